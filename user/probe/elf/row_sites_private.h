/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The format that both sides of a query for rows share; no other file includes it.
 *
 * Query: offset + 1 or 0, whether all outlined functions are wanted, count, then per row symbol, kind, arguments.
 * Response: build-id, functions (index in the query, name, entry, shift, class, exits (offset, class)), skips
 * (function, entry, reason).
 */
#ifndef VAPRO_ROW_SITES_PRIVATE_H
#define VAPRO_ROW_SITES_PRIVATE_H

#define ROW_WANTED_MAX 1024
#define ROW_TEXT_MAX 4096
#define ROW_FUNCTION_BYTES (8 * 8 + 1)
#define ROW_EXIT_BYTES (2 * 8)
#define ROW_SKIP_BYTES (3 * 8 + 2)

#endif
