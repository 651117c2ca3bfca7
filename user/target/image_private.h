/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Only image*.c (file, segments, frames; names; tables) and source_child.c (lines) include this file. */
#ifndef VAPRO_IMAGE_PRIVATE_H
#define VAPRO_IMAGE_PRIVATE_H

#include "target/image.h"

#include <elfutils/libdw.h>
#include <gelf.h>

#define IMAGE_LOADS_MAX 1024 /* segments; linkers make a dozen at most */

struct load {
	uint64_t vaddr, offset, bytes; /* bytes: those that the file really has */
	bool executable;
};

struct entry {
	struct image_symbol symbol;
	bool function; /* else a label without type */
};

struct image {
	char *data;
	bool borrowed; /* data is another's */
	size_t size;
	Elf *elf; /* NULL: made of tables, and data holds the names */
	bool is_executable;
	char build_id[IMAGE_BUILD_ID_MAX];
	struct load *loads;
	size_t load_count;
	struct entry *entries; /* by address, then name; a name at an address once */
	size_t entry_count, entry_room;
	struct image_symbol *objects; /* of .dynsym, by name; a name once */
	size_t object_count, object_room;
	char **names; /* copies of names that carried a version */
	size_t name_count;
	bool cfi_tried;
	Dwarf_CFI *cfi;	      /* of .eh_frame; owned */
	Dwarf *dwarf;	      /* only where .eh_frame is missing */
	Dwarf_CFI *debug_cfi; /* of .debug_frame; owned by dwarf */
};

/* Finds the segment that holds a linked address and its bytes, or NULL. */
const struct load *image__load(const struct image *image, uint64_t vaddr);

/* Fills the table of symbols. 0 or -ENOMEM; damaged tables are read as far as they go. */
int image__read_symbols(struct image *image);

#endif
