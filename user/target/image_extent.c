// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Extents of code by .eh_frame_hdr's sorted table and the frame descriptions behind it, in the one
 * encoding that linkers write (Linux Standard Base, "Exception Frames").
 */
#include <errno.h>
#include <string.h>

#include "target/image_private.h"

#define TABLE_ENCODING 0x3b /* relative to the table's section, 4 bytes, signed */
#define HEADER_BYTES 12

static int32_t read_s32(const uint8_t *bytes)
{
	int32_t value;

	memcpy(&value, bytes, sizeof(value));
	return value;
}

static int find_header(const struct image *image, uint64_t *vaddr)
{
	GElf_Phdr header;
	size_t count;

	if (elf_getphdrnum(image->elf, &count))
		return -ENOENT;
	for (size_t i = 0; i < count; i++)
		if (gelf_getphdr(image->elf, (int)i, &header) && header.p_type == PT_GNU_EH_FRAME) {
			*vaddr = header.p_vaddr;
			return 0;
		}
	return -ENOENT;
}

/* Reads the size in the description at vaddr (4-byte fields); -ENOENT unless it is that of start. */
static int read_description(const struct image *image, uint64_t vaddr, uint64_t start, uint64_t *size)
{
	size_t left;
	const uint8_t *bytes = image__bytes(image, vaddr, &left);

	/* length, distance of the common part, start, size */
	if (!bytes || left < 16 || read_s32(bytes) < 12 || !read_s32(bytes + 4))
		return -ENOENT;
	if (vaddr + 8 + (uint64_t)(int64_t)read_s32(bytes + 8) != start)
		return -ENOENT;
	*size = (uint32_t)read_s32(bytes + 12);
	return *size ? 0 : -ENOENT;
}

int image__extent(const struct image *image, uint64_t vaddr, uint64_t *start, uint64_t *size)
{
	uint64_t header, low = 0, high, at;
	const uint8_t *bytes;
	size_t left;

	if (find_header(image, &header))
		return -ENOENT;
	bytes = image__bytes(image, header, &left);
	if (!bytes || left < HEADER_BYTES || bytes[0] != 1 || bytes[2] != 0x03 || bytes[3] != TABLE_ENCODING)
		return -ENOENT;
	high = (uint32_t)read_s32(bytes + 8);
	if (high > (left - HEADER_BYTES) / 8)
		return -ENOENT;
	bytes += HEADER_BYTES;
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (header + (uint64_t)(int64_t)read_s32(bytes + 8 * middle) <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return -ENOENT;
	bytes += 8 * (low - 1);
	*start = header + (uint64_t)(int64_t)read_s32(bytes);
	at = header + (uint64_t)(int64_t)read_s32(bytes + 4);
	if (read_description(image, at, *start, size))
		return -ENOENT;
	return vaddr - *start < *size ? 0 : -ENOENT;
}
