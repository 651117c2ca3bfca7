/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The call-sites of one run, and texts for them that agree with the other run's; only the matching includes it. */
#ifndef VAPRO_MATCH_SITES_H
#define VAPRO_MATCH_SITES_H

#include "base/intern.h"
#include "compare/profile.h"

struct match_site {
	const char *text; /* the profile's */
	char *image, *build;
	char *symbol;	/* without offsets; "" where unknown */
	char *function; /* that is called there; "" where unknown */
	uint64_t offset;
	double seconds;
	char *common; /* NULL: its text is the same in both runs, or it has no counterpart */
};

struct match_sites {
	struct intern *ids;	  /* of texts; NULL has id 0 */
	struct match_site *items; /* item of id - 1 */
	size_t count, capacity;
};

/* Gathers the call-sites of all kinds that have time. Returns 0 or -ENOMEM; to be cleared in either case. */
int match_sites__gather(struct match_sites *sites, const struct profile *profile);
void match_sites__clear(struct match_sites *sites);

/*
 * Gives the call-sites of an image of either run, by their names, common texts where they agree. `as` is the name of
 * the image in these texts. Returns 0 or -ENOMEM.
 */
int match_sites__pair(struct match_sites *a, const char *image_a, struct match_sites *b, const char *image_b,
		      const char *as);

/* The text of a call-site by which it is matched; NULL for NULL. */
const char *match_sites__text(const struct match_sites *sites, const char *site);

#endif
