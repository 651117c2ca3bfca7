// SPDX-License-Identifier: GPL-2.0-or-later
/* The reader's side of a request for lines. All of it runs confined, on bytes that may be anything. */
#include <dwarf.h>
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "target/image_private.h"
#include "target/source.h"
#include "target/source_private.h"

/* Finds an address's unit: by .debug_aranges, which not every compiler writes, else by trying all. */
static bool unit_of(Dwarf *dwarf, Dwarf_Addr address, Dwarf_Die *unit)
{
	Dwarf_Off at = 0, next;
	size_t header;

	if (dwarf_addrdie(dwarf, address, unit))
		return true;
	for (; !dwarf_nextcu(dwarf, at, &next, &header, NULL, NULL, NULL); at = next)
		if (dwarf_offdie(dwarf, at + header, unit) && dwarf_haspc(unit, address) == 1)
			return true;
	return false;
}

static const char *line_of(Dwarf *dwarf, Dwarf_Addr address, int *number)
{
	Dwarf_Die unit;
	Dwarf_Line *line;
	const char *file;

	if (!unit_of(dwarf, address, &unit))
		return NULL;
	line = dwarf_getsrc_die(&unit, address);
	if (!line || dwarf_lineno(line, number) || *number <= 0)
		return NULL;
	file = dwarf_linesrc(line, NULL, NULL);
	return file && strnlen(file, SOURCE_FILE_MAX) < SOURCE_FILE_MAX ? file : NULL;
}

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

static void put_lines(const struct image *image, Dwarf *dwarf, struct flat_reader *about, size_t count,
		      struct flat *answer)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t offset = flat__get(about), address;
		const char *file = NULL;
		int number = 0;

		/* the call is before the address it returns to */
		if (dwarf && !image__vaddr_of(image, offset ? offset - 1 : 0, &address))
			file = line_of(dwarf, address, &number);
		flat__put(answer, file ? (uint64_t)number : 0);
		flat__put_text(answer, file ? file : "");
	}
}

int source__answer(struct flat_reader *about, struct confine_file *files, unsigned int file_count, struct flat *answer,
		   char *err, size_t err_size)
{
	const char *wanted = flat__get_text(about, IMAGE_BUILD_ID_MAX), *link;
	size_t count = flat__get_count(about, sizeof(uint64_t));
	struct image *image = NULL;
	Elf *debug = NULL;
	Dwarf *dwarf = NULL;
	GElf_Word crc;
	int status = -EINVAL;

	if (about->bad || !file_count) {
		snprintf(err, err_size, "the question makes no sense");
		return status;
	}
	image = image__from_bytes(files[0].data, files[0].size, "", true, err, err_size);
	files[0].data = NULL;
	if (!image)
		return status;
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
		dwarf = dwarf_of(debug);
	} else {
		dwarf = dwarf_of(image->elf);
	}
	flat__put_text(answer, image->build_id);
	link = dwelf_elf_gnu_debuglink(image->elf, &crc);
	flat__put_text(answer, link && strnlen(link, SOURCE_LINK_MAX + 1) <= SOURCE_LINK_MAX ? link : "");
	flat__put(answer, dwarf != NULL);
	flat__put(answer, count);
	put_lines(image, dwarf, about, count, answer);
	status = 0;
cleanup:
	if (dwarf)
		dwarf_end(dwarf);
	if (debug)
		elf_end(debug);
	image__free(image);
	return status;
}
