/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Only the files of a request for names include this one. */
#ifndef VAPRO_SOURCE_PRIVATE_H
#define VAPRO_SOURCE_PRIVATE_H

#include <elfutils/libdw.h>

#include "target/source.h"

#define SOURCE_LINK_MAX 255  /* bytes of a debug file's name */
#define SOURCE_FRAMES_MAX 32 /* of one place; outer ones are left out */
#define SOURCE_PLACE_BYTES 8
#define SOURCE_ANSWER_BYTES 56000 /* of all places, in the background */
#define SOURCE_FRAME_BYTES (2 * (8 + 1) + 2 * 8)

/* The functions of a place, while they are found. */
struct found_frames {
	size_t count;
	struct {
		char function[SOURCE_FUNCTION_MAX]; /* "" unknown */
		char file[SOURCE_FILE_MAX];	    /* "" unknown, as is then the line */
		int line;
	} frames[SOURCE_FRAMES_MAX];
};

/* What was found of units and functions that were needed; zeroed at first. */
struct dwarf_frames {
	struct functions *units;
	size_t count, room;
	struct qualified *qualified;
	size_t qualified_count, qualified_room;
};

void dwarf_frames__clear(struct dwarf_frames *cache);

/* Finds functions and lines at a linked address. symbol: that of the address, or NULL. Runs confined. */
void dwarf_frames__find(struct dwarf_frames *cache, Dwarf *dwarf, uint64_t address, const char *symbol,
			struct found_frames *found);

#endif
