/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Only the files of a request for names include this one. */
#ifndef VAPRO_SOURCE_PRIVATE_H
#define VAPRO_SOURCE_PRIVATE_H

#include "target/source.h"

#define SOURCE_LINK_MAX 255 /* bytes of a debug file's name */
#define SOURCE_PLACE_BYTES 8
#define SOURCE_ANSWER_BYTES 56000 /* of all places, in the background */
#define SOURCE_FRAME_BYTES (2 * (8 + 1) + 2 * 8)

#endif
