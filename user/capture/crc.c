/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "capture/crc.h"

#include <endian.h>
#include <stdbool.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define POLYNOMIAL 0xedb88320U

enum { BLOCK = 16 }; /* bytes that are processed together */

static uint32_t tables[BLOCK][256];
static bool ready;

static void make_tables(void)
{
	for (uint32_t byte = 0; byte < 256; byte++) {
		uint32_t crc = byte;

		for (int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ POLYNOMIAL : crc >> 1;
		tables[0][byte] = crc;
	}
	for (int later = 1; later < BLOCK; later++) {
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

static inline uint32_t of_block(uint64_t low, uint64_t high)
{
	return slices(low, 8) ^ slices(high, 0);
}

#if defined(__x86_64__)
/*
 * Makes one block of all whole blocks, which has the CRC of them all after a CRC so far. A block moves on by 128 bits
 * as its halves are multiplied by x^191 and x^127 modulo the polynomial (Gopal et al., "Fast CRC Computation for
 * Generic Polynomials Using PCLMULQDQ Instruction", Intel 2009; the numbers are reflected and a bit further up).
 */
__attribute__((target("pclmul"))) static uint32_t fold(const uint8_t *data, size_t size, uint32_t crc)
{
	const __m128i later = _mm_set_epi64x(0xccaa009e, 0x1751997d0);
	__m128i sum = _mm_xor_si128(_mm_loadu_si128((const __m128i *)data), _mm_cvtsi32_si128((int)crc));
	uint8_t block[BLOCK];

	for (size_t at = BLOCK; size - at >= BLOCK; at += BLOCK)
		sum = _mm_xor_si128(
		    _mm_loadu_si128((const __m128i *)(data + at)),
		    _mm_xor_si128(_mm_clmulepi64_si128(sum, later, 0x00), _mm_clmulepi64_si128(sum, later, 0x11)));
	_mm_storeu_si128((__m128i *)block, sum);
	return of_block(word_at(block), word_at(block + 8));
}
#endif

uint32_t crc__of(const uint8_t *data, size_t size)
{
	uint32_t crc = UINT32_MAX;

	if (!ready)
		make_tables();
#if defined(__x86_64__)
	if (size >= 2 * BLOCK && __builtin_cpu_supports("pclmul")) {
		crc = fold(data, size, crc);
		data += size - size % BLOCK;
		size %= BLOCK;
	}
#endif
	for (; size >= BLOCK; size -= BLOCK, data += BLOCK)
		crc = of_block(word_at(data) ^ crc, word_at(data + 8));
	for (; size >= 8; size -= 8, data += 8)
		crc = slices(word_at(data) ^ crc, 0);
	for (; size; size--)
		crc = crc >> 8 ^ tables[0][(crc ^ *data++) & 0xff];
	return ~crc;
}
