// SPDX-License-Identifier: GPL-2.0-or-later
/* Which call-sites a node distinguishes by their callers, as it has reported. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "worker/run_private.h"

#define HOPS_OF_RUN 256 /* call-sites; others are left as their node has them */

struct run_hop *worker_run__hop(struct worker_run *run, const char *site)
{
	struct run_hops *hops = &run->hops;
	char *copy;

	for (size_t i = 0; i < hops->count; i++)
		if (!strcmp(hops->list[i].site, site))
			return &hops->list[i];
	if (hops->count == HOPS_OF_RUN || grow(&hops->list, &hops->capacity, hops->count + 1, sizeof(*hops->list)) ||
	    !(copy = strdup(site)))
		return NULL;
	hops->list[hops->count] = (struct run_hop){.site = copy, .hop = VAPRO_HOP_NONE};
	return &hops->list[hops->count++];
}

bool worker_run__has_ended(const struct worker_run *run)
{
	return run->ended;
}

const struct run_hop *worker_run__hops(const struct worker_run *run, size_t *count)
{
	*count = run->ended ? 0 : run->hops.count;
	return run->hops.list;
}

void run_hops__note(struct worker_run *run, const struct stream_hop *event)
{
	struct run_hop *hop = event->site && event->hop < VAPRO_HOPS ? worker_run__hop(run, event->site) : NULL;

	/* without memory the node is left as it is */
	if (!hop)
		return;
	/* a node notes that a hop stays, though the request for it was lost */
	if (event->hop == VAPRO_HOP_STAYS && hop->hop != VAPRO_HOP_UP)
		return;
	/* what is hopped stays so where another request for it is refused, since its file is not mapped any more */
	if (event->hop == VAPRO_HOP_REFUSED && hop->hop != VAPRO_HOP_NONE)
		return;
	hop->hop = (enum vapro_hop)event->hop;
	if (!hop->symbol && event->symbol)
		hop->symbol = strdup(event->symbol);
}

void run_hops__free(struct run_hops *hops)
{
	for (size_t i = 0; i < hops->count; i++) {
		free(hops->list[i].site);
		free(hops->list[i].symbol);
	}
	free(hops->list);
}
