/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The time of a region chosen by hand, by state: which call-sites lost it. */
#ifndef VAPRO_ANALYSIS_CHOSEN_SITES_H
#define VAPRO_ANALYSIS_CHOSEN_SITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct chosen_site {
	uint32_t state;
	double dur[2], ref[2]; /* ns; [0] of bundles that are added again in the next window, [1] of others */
};

struct chosen_sites {
	struct chosen_site *items; /* each state once */
	size_t count, capacity;
	struct table *by_state; /* state -> index */
};

/* Forgets the time of bundles that are added again. */
void chosen_sites__begin(struct chosen_sites *sites);

/* Adds time in a state, and the expected time of the same work. 0 or -ENOMEM. */
int chosen_sites__add(struct chosen_sites *sites, uint32_t state, bool retiring, double dur_ns, double ref_ns);
void chosen_sites__free(struct chosen_sites *sites);
size_t chosen_sites__bytes(const struct chosen_sites *sites);

#endif
