/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions and lines at an address of an image, by its DWARF. Runs confined. */
#ifndef VAPRO_DWARF_FRAMES_H
#define VAPRO_DWARF_FRAMES_H

#include <elfutils/libdw.h>

#include "target/source.h"

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
