/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the two ends of a question for lines agree on; nobody else includes it. */
#ifndef VAPRO_SOURCE_PRIVATE_H
#define VAPRO_SOURCE_PRIVATE_H

#define SOURCE_LINK_MAX 255 /* of a debug file's name */
#define SOURCE_LINE_BYTES (2 * 8 + 1)

#endif
