/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "model/state_id.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* FNV-1a, 64 bits (Fowler, Noll, Vo) */
#define FNV_BASIS 0xcbf29ce484222325
#define FNV_PRIME 0x100000001b3

/* Adds a text with its NUL, which separates it from the next one. NULL is as "". */
static uint64_t add(uint64_t hash, const char *text)
{
	for (; text && *text; text++)
		hash = (hash ^ (uint8_t)*text) * FNV_PRIME;
	return hash * FNV_PRIME;
}

uint64_t state_id__of(const struct vapro_state *state)
{
	uint64_t hash;

	if (!state)
		return 0;
	hash = add(add(FNV_BASIS, state->from), state->to);
	return add(hash, state->common ? state->common : state->labels);
}

const char *state_id__text(const struct vapro_state *state, char text[STATE_ID_SIZE])
{
	if (!state)
		return NULL;
	snprintf(text, STATE_ID_SIZE, "%016" PRIx64, state_id__of(state));
	return text;
}

uint64_t state_id__parse(const char *text)
{
	char *end;
	uint64_t id = text ? strtoull(text, &end, 16) : 0;

	return text && !*end ? id : 0;
}
