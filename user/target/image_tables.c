// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/image_tables.h"

#include <stdlib.h>
#include <string.h>

#include "sandbox/confine.h"
#include "target/image_private.h"

#define NAMES_BYTES_MAX (CONFINE_RESPONSE_BYTES_MAX / 4 * 3)
#define NAME_MAX_BYTES 4096

enum { FLAG_FUNCTION = 1, FLAG_IFUNC = 2, FLAG_DYNAMIC = 4, FLAGS = 7 };

#define NUMBER 8
#define LOAD_BYTES (4 * NUMBER)
#define ENTRY_BYTES (4 * NUMBER + 2)
#define OBJECT_BYTES (3 * NUMBER + 2)

static size_t bytes_of(const char *name)
{
	return ENTRY_BYTES + strlen(name);
}

static void put_names(const struct image *image, struct flat *flat)
{
	size_t bytes = 0, count = 0, objects = 0;

	while (objects < image->object_count && (bytes += bytes_of(image->objects[objects].name)) < NAMES_BYTES_MAX / 2)
		objects++;
	while (count < image->entry_count && (bytes += bytes_of(image->entries[count].symbol.name)) < NAMES_BYTES_MAX)
		count++;
	flat__put(flat, count);
	for (size_t i = 0; i < count; i++) {
		const struct entry *entry = &image->entries[i];

		flat__put(flat, entry->symbol.vaddr);
		flat__put(flat, entry->symbol.size);
		flat__put(flat, (entry->function ? FLAG_FUNCTION : 0) | (entry->symbol.ifunc ? FLAG_IFUNC : 0) |
				    (entry->symbol.dynamic ? FLAG_DYNAMIC : 0));
		flat__put_text(flat, entry->symbol.name);
	}
	flat__put(flat, objects);
	for (size_t i = 0; i < objects; i++) {
		flat__put(flat, image->objects[i].vaddr);
		flat__put(flat, image->objects[i].size);
		flat__put_text(flat, image->objects[i].name);
	}
}

void image_tables__put(const struct image *image, bool names, struct flat *flat)
{
	flat__put(flat, image->is_executable);
	flat__put_text(flat, image->build_id);
	flat__put(flat, image->load_count);
	for (size_t i = 0; i < image->load_count; i++) {
		flat__put(flat, image->loads[i].vaddr);
		flat__put(flat, image->loads[i].offset);
		flat__put(flat, image->loads[i].bytes);
		flat__put(flat, image->loads[i].executable);
	}
	if (names) {
		put_names(image, flat);
		return;
	}
	flat__put(flat, 0);
	flat__put(flat, 0);
}

/* Allocates a table of as many items as announced. */
static size_t begin(struct flat_reader *reader, size_t bytes_each, void *table, size_t size, bool *memory)
{
	size_t count = flat__get_count(reader, bytes_each);
	void *items = count ? calloc(count, size) : NULL;

	if (count && !items) {
		*memory = true;
		reader->bad = true;
		return 0;
	}
	memcpy(table, &items, sizeof(items));
	return count;
}

static void get_loads(struct image *image, struct flat_reader *reader, uint64_t file_bytes, bool *memory)
{
	size_t count = begin(reader, LOAD_BYTES, &image->loads, sizeof(*image->loads), memory);

	if (count > IMAGE_LOADS_MAX)
		reader->bad = true;
	for (size_t i = 0; i < count && !reader->bad; i++) {
		struct load load = {.vaddr = flat__get(reader)};

		load.offset = flat__get_upto(reader, file_bytes);
		load.bytes = flat__get_upto(reader, file_bytes - load.offset);
		load.executable = flat__get_upto(reader, 1);
		if (!load.bytes || load.vaddr > UINT64_MAX - load.bytes)
			reader->bad = true;
		image->loads[image->load_count++] = load;
	}
}

static void get_entries(struct image *image, struct flat_reader *reader, bool *memory)
{
	size_t count = begin(reader, ENTRY_BYTES, &image->entries, sizeof(*image->entries), memory);
	const struct load *load = NULL;
	uint64_t least = 0;

	for (size_t i = 0; i < count && !reader->bad; i++) {
		struct image_symbol symbol = {.vaddr = flat__get(reader)};
		uint64_t flags;

		/* in order of addresses the segment seldom changes */
		if (!load || symbol.vaddr < load->vaddr || symbol.vaddr - load->vaddr >= load->bytes)
			load = image__load(image, symbol.vaddr);
		symbol.size = flat__get(reader);
		flags = flat__get_upto(reader, FLAGS);
		symbol.name = flat__get_text(reader, NAME_MAX_BYTES);
		symbol.ifunc = flags & FLAG_IFUNC;
		symbol.dynamic = flags & FLAG_DYNAMIC;
		if (!load || !load->executable || symbol.vaddr < least || !*symbol.name)
			reader->bad = true;
		else
			symbol.offset = load->offset + (symbol.vaddr - load->vaddr);
		least = symbol.vaddr;
		image->entries[image->entry_count++] =
		    (struct entry){.symbol = symbol, .function = flags & FLAG_FUNCTION};
	}
}

/* Objects out of order are only not found. */
static void get_objects(struct image *image, struct flat_reader *reader, bool *memory)
{
	size_t count = begin(reader, OBJECT_BYTES, &image->objects, sizeof(*image->objects), memory);

	for (size_t i = 0; i < count && !reader->bad; i++) {
		struct image_symbol *object = &image->objects[image->object_count++];

		object->vaddr = flat__get(reader);
		object->size = flat__get(reader);
		object->name = flat__get_text(reader, NAME_MAX_BYTES);
		object->dynamic = true;
	}
}

struct image *image_tables__get(struct flat_reader *reader, uint64_t file_bytes, bool *memory)
{
	struct image *image = calloc(1, sizeof(*image));
	const char *build_id;

	*memory = !image;
	if (!image)
		return NULL;
	image->is_executable = flat__get_upto(reader, 1);
	build_id = flat__get_text(reader, IMAGE_BUILD_ID_MAX - 1);
	if (strspn(build_id, "0123456789abcdef") != strlen(build_id))
		reader->bad = true;
	strcpy(image->build_id, build_id); /* of at most IMAGE_BUILD_ID_MAX - 1 bytes */
	get_loads(image, reader, file_bytes, memory);
	get_entries(image, reader, memory);
	get_objects(image, reader, memory);
	if (!reader->bad)
		return image;
	image__free(image);
	return NULL;
}
