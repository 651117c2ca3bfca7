/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Only the two ends of a request for lines include this file. */
#ifndef VAPRO_SOURCE_PRIVATE_H
#define VAPRO_SOURCE_PRIVATE_H

#define SOURCE_LINK_MAX 255 /* bytes of a debug file's name */
#define SOURCE_LINE_BYTES (2 * 8 + 1)

#endif
