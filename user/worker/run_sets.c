// SPDX-License-Identifier: GPL-2.0-or-later
/* What a node leaves out of its images by itself, as the facts of its processes say before each window. */
#include <stdio.h>
#include <string.h>

#include "functions/functions.h"
#include "worker/run_private.h"

void run_sets__note(struct run_sets *sets, const struct vapro_process_facts *facts)
{
	struct run_set *set = sets->next;

	if (!facts->image || strlen(facts->image) >= sizeof(set->image))
		return;
	while (set < sets->next + sets->next_count && strcmp(set->image, facts->image) != 0)
		set++;
	if (set == sets->next + RUN_SETS)
		return;
	if (set == sets->next + sets->next_count) {
		strcpy(set->image, facts->image);
		sets->next_count++;
	}
	/* a newer node may know functions that this worker does not */
	if (!facts->without_own || !functions__read_units(facts->without_own, &set->own))
		set->own = 0;
}

void run_sets__end_window(struct run_sets *sets)
{
	memcpy(sets->list, sets->next, sizeof(sets->list));
	sets->count = sets->next_count;
	sets->next_count = 0;
}

const struct run_set *worker_run__sets(const struct worker_run *run, size_t *count)
{
	*count = run->ended ? 0 : run->sets.count;
	return run->sets.list;
}
