// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Duty cycles of an image's links (governor.h). Links cannot be detached in part, so the first time
 * the functions that cost most get a link of their own, and the others go on being seen.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "probe/attach/attacher_private.h"

/* Counts the calls of each row so far. */
static void count_calls(const struct attacher *attacher, const struct attached *image, uint64_t *calls)
{
	int map = kernel_side__map(attacher->side, KERNEL_MAP_FUNCTION_COUNTERS);
	struct kernel_function_counters *per_cpu = calloc(attacher->cpus, sizeof(*per_cpu));

	for (size_t i = 0; per_cpu && i < image->probe_count; i++) {
		uint32_t row = (uint32_t)image->probes[i].row;

		calls[row] = 0;
		if (bpf_map_lookup_elem(map, &row, per_cpu))
			continue;
		for (uint32_t cpu = 0; cpu < attacher->cpus; cpu++)
			calls[row] += per_cpu[cpu].enter + per_cpu[cpu].calls;
	}
	free(per_cpu);
}

void attached__begin_count(const struct attacher *attacher, struct attached *image)
{
	uint64_t *calls = calloc(KERNEL_FUNCTIONS, sizeof(*calls));

	if (!calls)
		return;
	count_calls(attacher, image, calls);
	for (size_t i = 0; i < image->probe_count; i++)
		image->probes[i].entered = calls[image->probes[i].row];
	free(calls);
}

struct weight {
	uint32_t row;
	double cost; /* in calls at emulated sites */
};

static int heaviest_first(const void *a, const void *b)
{
	const struct weight *left = a, *right = b;

	if (left->cost != right->cost)
		return left->cost > right->cost ? -1 : 1;
	return left->row < right->row ? -1 : 1;
}

/* Marks the probes to close. Returns 1 where they changed, 0, or -ENOMEM with all of them marked. */
static int choose_hot(const struct attacher *attacher, struct attached *image, double keep, double stepped,
		      struct attacher_closed *closed)
{
	uint64_t *calls = calloc(KERNEL_FUNCTIONS, sizeof(*calls));
	struct weight *weights = calloc(image->probe_count + 1, sizeof(*weights));
	bool *hot = calloc(KERNEL_FUNCTIONS, sizeof(*hot));
	double all = 0, rest;
	int changed = -ENOMEM;

	for (size_t i = 0; !(calls && weights && hot) && i < image->probe_count; i++)
		image->probes[i].hot = true;
	if (!calls || !weights || !hot)
		goto out;
	count_calls(attacher, image, calls);
	for (size_t i = 0; i < image->probe_count; i++) {
		const struct probe *probe = &image->probes[i];
		double each = probe->class == SITE_STEPPED ? stepped : 1;

		weights[i] = (struct weight){.row = (uint32_t)probe->row,
					     .cost = (double)(calls[probe->row] - probe->entered) * each};
		all += weights[i].cost;
	}
	qsort(weights, image->probe_count, sizeof(*weights), heaviest_first);
	rest = all;
	for (size_t i = 0; i < image->probe_count && (keep <= 0 || rest > keep * all); i++) {
		hot[weights[i].row] = true;
		rest -= weights[i].cost;
	}
	changed = 0;
	for (size_t i = 0; i < image->probe_count; i++) {
		struct probe *probe = &image->probes[i];

		changed |= probe->hot != hot[probe->row];
		probe->hot = hot[probe->row];
		closed->functions += probe->hot;
		if (probe->row == weights[0].row)
			closed->name = probe->name;
	}
out:
	free(calls);
	free(weights);
	free(hot);
	closed->of = (uint32_t)image->probe_count;
	return changed;
}

/* Whether a link has functions that are to close. */
static bool is_hot(const struct attached *image, const struct link *link, int64_t by)
{
	(void)by;
	if (link->row == LINK_WAITING || link->row == LINK_HOT)
		return true;
	for (size_t i = 0; i < image->probe_count && link->row != LINK_CALM; i++)
		if (image->probes[i].hot && attached__is_of(&image->probes[i], link->row))
			return true;
	return false;
}

static struct attached *find(const struct attacher *attacher, const struct attached_image *public)
{
	for (size_t i = 0; i < attacher->count; i++)
		if (&attacher->images[i]->public == public)
			return attacher->images[i];
	return NULL;
}

int attacher__close(struct attacher *attacher, const struct attached_image *public, double keep, double stepped,
		    struct attacher_closed *closed)
{
	struct attached *image = find(attacher, public);
	int changed, status = 0;

	*closed = (struct attacher_closed){0};
	if (!image)
		return -ENOENT;
	attached__learnt(attacher, image);
	changed = choose_hot(attacher, image, keep, stepped, closed);
	image->public.closed = true;
	attached__describe_rows(attacher, image);
	if (!kernel_side__frugal(attacher->side) && (!image->parted || changed)) {
		closed->parted = true;
		status = attached__part(attacher, image);
	}
	attached__close_links(attacher, image, is_hot, 0);
	return changed < 0 ? changed : status;
}

/* Opens links that should be open and are not. 0 or the first -errno. */
static int open_links(struct attacher *attacher, struct attached *image)
{
	int status = 0;

	for (size_t i = 0; i < image->link_count; i++) {
		struct link *link = &image->links[i];
		int made = 0;

		if (!link->open && !attached__leaves_out(image, link) &&
		    !(image->public.closed && is_hot(image, link, 0)))
			made = attached__open_link(attacher, image, link);
		if (made && made != -EOPNOTSUPP && !status)
			status = made;
	}
	return status;
}

int attacher__open(struct attacher *attacher, const struct attached_image *public)
{
	struct attached *image = find(attacher, public);
	int status;

	if (!image || attacher->paused)
		return 0;
	image->public.closed = false;
	attached__describe_rows(attacher, image);
	status = open_links(attacher, image);
	attached__begin_count(attacher, image);
	return status;
}

void attacher__begin_count(struct attacher *attacher, const struct attached_image *public)
{
	struct attached *image = find(attacher, public);

	if (image)
		attached__begin_count(attacher, image);
}

void attacher__unit_shares(struct attacher *attacher, const struct attached_image *public, double stepped,
			   double shares[FUNCTIONS_UNITS])
{
	struct attached *image = find(attacher, public);
	uint64_t *calls = image ? calloc(KERNEL_FUNCTIONS, sizeof(*calls)) : NULL;
	double all = 0;

	memset(shares, 0, FUNCTIONS_UNITS * sizeof(*shares));
	if (!calls)
		return;
	count_calls(attacher, image, calls);
	for (size_t i = 0; i < image->probe_count; i++) {
		const struct probe *probe = &image->probes[i];
		double cost =
		    (double)(calls[probe->row] - probe->entered) * (probe->class == SITE_STEPPED ? stepped : 1);

		all += cost;
		if (probe->unit >= 0)
			shares[probe->unit] += cost;
		calls[probe->row] = probe->entered; /* MPI_X and PMPI_X share a row */
	}
	for (int i = 0; i < FUNCTIONS_UNITS && all > 0; i++)
		shares[i] /= all;
	free(calls);
}

static bool is_left_out(const struct attached *image, const struct link *link, int64_t by)
{
	(void)by;
	return attached__leaves_out(image, link);
}

int attacher__leave_out(struct attacher *attacher, const struct attached_image *public, uint32_t units)
{
	struct attached *image = find(attacher, public);
	int status;

	if (!image || attacher->paused)
		return 0;
	image->public.without = units;
	attached__describe_rows(attacher, image);
	attached__close_links(attacher, image, is_left_out, 0);
	kernel_side__settle(attacher->side);
	status = open_links(attacher, image);
	attached__begin_count(attacher, image);
	return status;
}
