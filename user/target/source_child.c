// SPDX-License-Identifier: GPL-2.0-or-later
/* The reader's side of a request for names. All of it runs confined, on bytes that may be anything. */
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "target/demangle.h"
#include "target/image_private.h"
#include "target/source_private.h"
#include "target/dwarf_frames.h"

/* Opens DWARF with units, or NULL. */
static Dwarf *dwarf_of(Elf *elf)
{
	Dwarf *dwarf = elf ? dwarf_begin_elf(elf, DWARF_C_READ, NULL) : NULL;
	Dwarf_Off next;
	size_t header;

	if (!dwarf || !dwarf_nextcu(dwarf, 0, &next, &header, NULL, NULL, NULL))
		return dwarf;
	dwarf_end(dwarf);
	return NULL;
}

/* Whether a separate debug file is this image's: by build-id, else by the link's checksum. */
static bool belongs(Elf *debug, const struct confine_file *file, const struct image *image)
{
	const void *own, *other;
	ssize_t size = dwelf_elf_gnu_build_id(image->elf, &own);
	GElf_Word crc;

	if (size > 0)
		return dwelf_elf_gnu_build_id(debug, &other) == size && !memcmp(own, other, (size_t)size);
	return dwelf_elf_gnu_debuglink(image->elf, &crc) &&
	       crc == (GElf_Word)crc32_z(0, (const Bytef *)file->data, file->size);
}

/* Adds the symbols of a debug file, which a stripped image lacks. 0 or -ENOMEM. */
static int add_symbols(struct image *image, Elf *debug)
{
	Elf *own = image->elf;
	int status;

	image->elf = debug;
	status = image__read_symbols(image);
	image->elf = own;
	return status;
}

static bool has_symbols(const struct image *image)
{
	for (size_t i = 0; i < image->entry_count; i++)
		if (!image->entries[i].symbol.dynamic)
			return true;
	return false;
}

static void put_frames(const struct found_frames *found, uint64_t offset, struct flat *response)
{
	flat__put(response, found->count);
	for (size_t i = 0; i < found->count; i++) {
		bool line = *found->frames[i].file;

		flat__put_text(response, found->frames[i].function);
		flat__put(response, line || !*found->frames[i].function ? 0 : offset);
		flat__put_text(response, found->frames[i].file);
		flat__put(response, line ? (uint64_t)found->frames[i].line : 0);
	}
}

/* Puts the functions at a place: by DWARF, else by the symbol before it. */
static void put_place(struct image *image, Dwarf *dwarf, struct dwarf_frames *cache, uint64_t offset,
		      struct found_frames *found, struct flat *response)
{
	uint64_t address, distance = 0;
	const char *symbol;
	char *function;

	found->count = 0;
	/* the call is before the address it returns to */
	if (image__vaddr_of(image, offset ? offset - 1 : 0, &address)) {
		flat__put(response, 0);
		return;
	}
	symbol = image__symbolise(image, address, &distance);
	if (dwarf)
		dwarf_frames__find(cache, dwarf, address, symbol, found);
	if (!found->count && symbol) {
		found->count = 1;
		found->frames[0].function[0] = '\0';
		found->frames[0].file[0] = '\0';
	}
	/* DWARF of an assembler has lines without functions */
	function = found->count ? found->frames[found->count - 1].function : NULL;
	if (function && !*function && symbol && !demangle(symbol, DEMANGLE_WHOLE, function, SOURCE_FUNCTION_MAX))
		snprintf(function, SOURCE_FUNCTION_MAX, "%s", symbol);
	put_frames(found, distance + 1, response);
}

/* Answers for the first places, as many as a response of `most` bytes has room for; their number comes first. */
static void put_places(struct image *image, Dwarf *dwarf, struct flat_reader *about, size_t count, uint64_t most,
		       struct found_frames *found, struct flat *response)
{
	struct dwarf_frames cache = {0};
	struct flat places = {0};
	size_t done;

	for (done = 0; done < count; done++) {
		size_t before = places.size;

		put_place(image, dwarf, &cache, flat__get(about), found, &places);
		if (places.size <= most)
			continue;
		places.size = before;
		if (done) /* the caller requests the others again */
			break;
		flat__put(&places, 0); /* a place with more than a response can hold */
	}
	flat__put(response, done);
	flat__put_flat(response, &places);
	free(places.data);
	dwarf_frames__clear(&cache);
}

int source__respond(struct flat_reader *about, struct confine_file *files, unsigned int file_count,
		    struct flat *response, char *err, size_t err_size)
{
	const char *wanted = flat__get_text(about, IMAGE_BUILD_ID_MAX), *link;
	uint64_t most = flat__get(about);
	size_t count = flat__get_count(about, sizeof(uint64_t));
	struct found_frames *found = malloc(sizeof(*found));
	struct image *image = NULL;
	Elf *debug = NULL;
	Dwarf *dwarf = NULL;
	GElf_Word crc;
	int status = -EINVAL;

	if (about->bad || !file_count || count > SOURCE_PLACES_MAX || !found) {
		snprintf(err, err_size, "the question makes no sense");
		goto cleanup;
	}
	image = image__from_bytes(files[0].data, files[0].size, "", true, err, err_size);
	if (!image)
		goto cleanup;
	if (strncmp(image->build_id, wanted, strlen(wanted))) {
		snprintf(err, err_size, "another build (%.12s, not %.12s) is there now", image->build_id, wanted);
		goto cleanup;
	}
	if (file_count > 1) {
		debug = elf_memory(files[1].data, files[1].size);
		if (!debug || !belongs(debug, &files[1], image)) {
			snprintf(err, err_size, "the debug file is another image's");
			goto cleanup;
		}
		status = add_symbols(image, debug);
		if (status)
			goto cleanup;
		dwarf = dwarf_of(debug);
	} else {
		dwarf = dwarf_of(image->elf);
	}
	flat__put_text(response, image->build_id);
	link = dwelf_elf_gnu_debuglink(image->elf, &crc);
	flat__put_text(response, link && strnlen(link, SOURCE_LINK_MAX + 1) <= SOURCE_LINK_MAX ? link : "");
	flat__put(response, dwarf != NULL);
	flat__put(response, has_symbols(image));
	put_places(image, dwarf, about, count, most, found, response);
	status = 0;
cleanup:
	if (dwarf)
		dwarf_end(dwarf);
	if (debug)
		elf_end(debug);
	image__free(image);
	free(found);
	return status;
}
