/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "capture/crc.h"

#include <endian.h>
#include <stdbool.h>
#include <string.h>

#define POLYNOMIAL 0xedb88320U

#define SLICES 16

static uint32_t tables[SLICES][256];
static bool ready;

static void make_tables(void)
{
	for (uint32_t byte = 0; byte < 256; byte++) {
		uint32_t crc = byte;

		for (int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ POLYNOMIAL : crc >> 1;
		tables[0][byte] = crc;
	}
	for (int later = 1; later < SLICES; later++) {
		for (uint32_t byte = 0; byte < 256; byte++)
			tables[later][byte] = tables[later - 1][byte] >> 8 ^ tables[0][tables[later - 1][byte] & 0xff];
	}
	ready = true;
}

static inline uint64_t word_at(const uint8_t *data)
{
	uint64_t word;

	memcpy(&word, data, sizeof(word));
	return le64toh(word);
}

/* Gives the CRC of eight bytes that `follow` others follow in the slice. */
static inline uint32_t slices(uint64_t word, int follow)
{
	return tables[follow + 7][word & 0xff] ^ tables[follow + 6][word >> 8 & 0xff] ^
	       tables[follow + 5][word >> 16 & 0xff] ^ tables[follow + 4][word >> 24 & 0xff] ^
	       tables[follow + 3][word >> 32 & 0xff] ^ tables[follow + 2][word >> 40 & 0xff] ^
	       tables[follow + 1][word >> 48 & 0xff] ^ tables[follow][word >> 56];
}

uint32_t crc__of(const uint8_t *data, size_t size)
{
	uint32_t crc = UINT32_MAX;

	if (!ready)
		make_tables();
	for (; size >= 16; size -= 16, data += 16) {
		uint64_t low = word_at(data) ^ crc, high = word_at(data + 8);

		crc = slices(low, 8) ^ slices(high, 0);
	}
	for (; size >= 8; size -= 8, data += 8)
		crc = slices(word_at(data) ^ crc, 0);
	for (; size; size--)
		crc = crc >> 8 ^ tables[0][(crc ^ *data++) & 0xff];
	return ~crc;
}
