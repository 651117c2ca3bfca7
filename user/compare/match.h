/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds the kinds of states that two runs have in common. Call-sites are build-id and offset, hence equal texts are
 * equal places. Where an image has other build-ids in the other run (the program changed, or has another name), its
 * call-sites are matched by the function that they lie in, the function that they call, and their order among those
 * that agree in both: only where both runs have equally many of them.
 */
#ifndef VAPRO_MATCH_H
#define VAPRO_MATCH_H

#include "compare/profile.h"

struct match_pair {
	uint32_t a, b; /* kinds */
};

/* An image that is not the same file in both runs; texts belong to the match. */
struct match_image {
	char *name_a, *name_b;	 /* equal, but where the program has another name */
	char *build_a, *build_b; /* build-ids, as in call-sites */
};

struct match {
	struct match_pair *pairs; /* by kind of B */
	size_t count, capacity;
	struct match_image *changed;
	size_t changed_count, changed_capacity;
	uint32_t only_a, only_b; /* kinds without a counterpart */
	double only_a_s, only_b_s;
};

/* Returns 0 or -ENOMEM; the match must be cleared in either case. */
int match__kinds(struct match *match, const struct profile *a, const struct profile *b);
void match__clear(struct match *match);

#endif
