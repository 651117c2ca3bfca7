/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How often the states of each job occurred and how long they took, over a whole run. Whatever was judged of them is
 * elsewhere: records name only states about which there is something to say.
 */
#ifndef VAPRO_REPORT_STATE_TOTALS_H
#define VAPRO_REPORT_STATE_TOTALS_H

#include <stddef.h>
#include <vapro/bundle.h>

#include "report/source_names.h"

struct state_total {
	uint32_t state; /* number of the state */
	const char *job;
	uint32_t user; /* of the job, as in struct vapro_thread */
	enum vapro_class class;
	uint64_t fragments;
	double seconds, least_s, most_s; /* of all fragments, of the shortest and of the longest one */
	char *text;			 /* for people; NULL until state_totals__describe() */
};

struct state_totals;

/* NULL when out of memory. */
struct state_totals *state_totals__new(void);
void state_totals__free(struct state_totals *totals);

/* Take over what is announced in a stream, in its order. Return 0 or -ENOMEM. */
int state_totals__add_thread(struct state_totals *totals, const struct vapro_thread *thread);
int state_totals__add_state(struct state_totals *totals, const struct vapro_state *state);
int state_totals__add_bundle(struct state_totals *totals, const struct vapro_bundle *bundle);

/* Writes the text of each total by the names that are known now; names may be NULL. Returns 0 or -ENOMEM. */
int state_totals__describe(struct state_totals *totals, const struct source_names *names);

/* The totals, which stay the object's; those of a state have one entry for each job. */
const struct state_total *state_totals__items(const struct state_totals *totals, size_t *count);

#endif
