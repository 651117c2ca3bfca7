// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/attach_costs.h"

#define SETTLED_NS 500000000ULL /* from an attachment until its first records are resolved */
#define SECOND_NS 1000000000ULL
#define FIRST 0.25 /* of what an image's first processes cost, later ones will: by then it is known */
#define MOST 4	   /* times what the attachments themselves cost: more is other work of the same time */

/* Returns the number of an image for its owner, or ATTACH_COSTS_IMAGES. */
static size_t find(const struct attach_costs *costs, const struct attach_image *image)
{
	const struct image_cost *images = costs->images;
	size_t i = 0;

	while (i < ATTACH_COSTS_IMAGES && (!images[i].first_ns || images[i].inode != image->inode ||
					   images[i].device != image->device || images[i].owner != image->owner))
		i++;
	return i;
}

void attach_costs__candidate(struct attach_costs *costs, uint64_t cpu_ns, uint64_t now_ns)
{
	if (costs->measuring)
		return;
	costs->measuring = true;
	costs->begin_cpu_ns = cpu_ns;
	costs->begin_ns = costs->last_ns = now_ns;
	costs->own_ns = 0;
	costs->processes = costs->attached_count = 0;
}

void attach_costs__attached(struct attach_costs *costs, const struct attach_image *image, uint64_t own_ns,
			    uint64_t now_ns)
{
	bool first = !attach_costs__first(costs, image->device, image->inode);
	size_t at = 0;

	if (find(costs, image) == ATTACH_COSTS_IMAGES)
		costs->images[costs->image_count++ % ATTACH_COSTS_IMAGES] = (struct image_cost){
		    .device = image->device, .inode = image->inode, .owner = image->owner, .first_ns = now_ns};
	if (!costs->measuring)
		return;
	costs->last_ns = now_ns;
	costs->own_ns += own_ns;
	costs->processes++;
	while (at < costs->attached_count &&
	       (costs->attached[at].inode != image->inode || costs->attached[at].device != image->device ||
		costs->attached[at].owner != image->owner))
		at++;
	if (at == ATTACH_COSTS_AT_ONCE)
		return;
	if (at == costs->attached_count) {
		costs->attached[at] = *image;
		costs->attached[at].first = first;
		costs->attached[at].own_ns = costs->attached[at].processes = 0;
		costs->attached_count++;
	}
	costs->attached[at].own_ns += own_ns;
	costs->attached[at].processes++;
}

bool attach_costs__is_due(const struct attach_costs *costs, uint64_t now_ns)
{
	return costs->measuring ? now_ns >= costs->last_ns + SETTLED_NS : now_ns >= costs->second.at_ns + SECOND_NS;
}

/* Notes what each attached process cost. */
static void note(struct attach_costs *costs, uint64_t cpu_ns, uint64_t now_ns)
{
	double usual = costs->rate_before * (double)(now_ns - costs->begin_ns);
	double cost = (double)(cpu_ns - costs->begin_cpu_ns) - usual, most = MOST * (double)costs->own_ns;

	cost = cost > most ? most : cost;
	for (size_t i = 0; i < costs->attached_count; i++) {
		const struct attach_image *image = &costs->attached[i];
		double part = costs->own_ns ? (double)image->own_ns / (double)costs->own_ns : 0;
		size_t of = find(costs, image);

		if (of < ATTACH_COSTS_IMAGES && cost > 0)
			costs->images[of].cost_ns[image->linked] =
			    (uint64_t)(cost * part * (image->first ? FIRST : 1) / (double)image->processes);
	}
}

void attach_costs__step(struct attach_costs *costs, bool expecting, uint64_t cpu_ns, uint64_t now_ns)
{
	if (!attach_costs__is_due(costs, now_ns))
		return;
	if (costs->measuring) {
		if (costs->processes)
			note(costs, cpu_ns, now_ns);
		else if (expecting)
			return;
		costs->measuring = false;
	} else if (costs->second.at_ns) {
		costs->rate_before = (double)(cpu_ns - costs->second.cpu_ns) / (double)(now_ns - costs->second.at_ns);
	}
	costs->second.cpu_ns = cpu_ns;
	costs->second.at_ns = now_ns;
}

uint64_t attach_costs__of(const struct attach_costs *costs, const struct attach_image *image)
{
	size_t of = find(costs, image);

	return of < ATTACH_COSTS_IMAGES ? costs->images[of].cost_ns[image->linked] : 0;
}

uint64_t attach_costs__first(const struct attach_costs *costs, uint64_t device, uint64_t inode)
{
	uint64_t first_ns = 0;

	for (size_t i = 0; i < ATTACH_COSTS_IMAGES; i++) {
		const struct image_cost *of = &costs->images[i];

		if (of->first_ns && of->inode == inode && of->device == device &&
		    (!first_ns || of->first_ns < first_ns))
			first_ns = of->first_ns;
	}
	return first_ns;
}
