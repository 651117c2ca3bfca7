// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/chosen_sites.h"

#include <errno.h>
#include <stdlib.h>

#include "base/grow.h"
#include "base/table.h"

void chosen_sites__begin(struct chosen_sites *sites)
{
	for (size_t i = 0; i < sites->count; i++)
		sites->items[i].dur[0] = sites->items[i].ref[0] = 0;
}

int chosen_sites__add(struct chosen_sites *sites, uint32_t state, bool retiring, double dur_ns, double ref_ns)
{
	uint32_t at;

	if (!sites->by_state && !(sites->by_state = table__new()))
		return -ENOMEM;
	if (!table__get(sites->by_state, state, 0, &at)) {
		at = (uint32_t)sites->count;
		if (grow(&sites->items, &sites->capacity, sites->count + 1, sizeof(*sites->items)) ||
		    table__put(sites->by_state, state, 0, at))
			return -ENOMEM;
		sites->items[sites->count++] = (struct chosen_site){.state = state};
	}
	sites->items[at].dur[retiring] += dur_ns;
	sites->items[at].ref[retiring] += ref_ns;
	return 0;
}

void chosen_sites__free(struct chosen_sites *sites)
{
	free(sites->items);
	table__free(sites->by_state);
	*sites = (struct chosen_sites){0};
}

size_t chosen_sites__bytes(const struct chosen_sites *sites)
{
	return sites->capacity * sizeof(*sites->items) + (sites->by_state ? table__bytes(sites->by_state) : 0);
}
