/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/crc.h"

#include <endian.h>
#include <stdbool.h>
#include <string.h>

#define POLYNOMIAL 0xedb88320U

static uint32_t tables[8][256];
static bool ready;

static void make_tables(void)
{
	for (uint32_t byte = 0; byte < 256; byte++) {
		uint32_t crc = byte;

		for (int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ POLYNOMIAL : crc >> 1;
		tables[0][byte] = crc;
	}
	for (int later = 1; later < 8; later++) {
		for (uint32_t byte = 0; byte < 256; byte++)
			tables[later][byte] = tables[later - 1][byte] >> 8 ^ tables[0][tables[later - 1][byte] & 0xff];
	}
	ready = true;
}

uint32_t crc__of(const uint8_t *data, size_t size)
{
	uint32_t crc = UINT32_MAX;

	if (!ready)
		make_tables();
	for (; size >= 8; size -= 8, data += 8) {
		uint64_t word;

		memcpy(&word, data, sizeof(word));
		word = le64toh(word) ^ crc;
		crc = tables[7][word & 0xff] ^ tables[6][word >> 8 & 0xff] ^ tables[5][word >> 16 & 0xff] ^
		      tables[4][word >> 24 & 0xff] ^ tables[3][word >> 32 & 0xff] ^ tables[2][word >> 40 & 0xff] ^
		      tables[1][word >> 48 & 0xff] ^ tables[0][word >> 56];
	}
	for (; size; size--)
		crc = crc >> 8 ^ tables[0][(crc ^ *data++) & 0xff];
	return ~crc;
}
