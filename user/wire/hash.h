/* SPDX-License-Identifier: GPL-2.0-or-later */
/* FNV-1a of a text, equal on all machines: for digests and cut tokens, where a collision gains nothing. */
#ifndef VAPRO_WIRE_HASH_H
#define VAPRO_WIRE_HASH_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t wire__hash(const char *text, size_t length)
{
	uint64_t hash = 0xcbf29ce484222325ULL;

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (uint8_t)text[i]) * 0x100000001b3ULL;
	return hash;
}

#endif
