// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Duty cycles of MPI functions (governor.h). Links cannot be detached in part, so functions that can wait are linked
 * as those that stay and those that cost most, and the former go on being seen.
 */
#include <stdlib.h>
#include <string.h>

#include "probe/attach/attacher.h"
#include "probe/attach/mpi_image.h"

#define SHORT_CALLS 1000     /* a function called less often since counting began may still wait */
#define SHORT_WAITS 0.01     /* most of the calls of a short function that take KERNEL_WAIT_NS or longer */
#define SHORT_WAITED_NS 1000 /* most of their time, divided among all its calls */
#define COSTLY (1.0 / 256)   /* share of the cost: a function with less is closed only since all are */

/* Reads the calls of each probe's row so far. */
static void read_calls(const struct attachments *all, struct mpi_image *image)
{
	struct function_calls calls[KERNEL_FUNCTIONS];
	uint32_t first = KERNEL_FUNCTIONS, end = 0;

	for (size_t i = 0; i < image->probe_count; i++) {
		uint32_t row = (uint32_t)image->probes[i].row;

		first = row < first ? row : first;
		end = row >= end ? row + 1 : end;
	}
	if (first < end)
		attachments__count_calls(all, first, end, calls);
	for (size_t i = 0; i < image->probe_count; i++)
		image->probes[i].calls = calls[image->probes[i].row - first];
}

void mpi_image__begin_count(const struct attachments *all, struct mpi_image *image)
{
	read_calls(all, image);
	for (size_t i = 0; i < image->probe_count; i++)
		image->probes[i].before = image->probes[i].calls;
	image->learning.seen = 0;
}

/* Sets the costs of all probes. Returns their sum. */
static double count_costs(const struct attacher *attacher, struct mpi_image *image, double stepped)
{
	double all = 0;

	read_calls(&attacher->base, image);
	for (size_t i = 0; i < image->probe_count; i++) {
		struct probe *probe = &image->probes[i];

		probe->cost =
		    (double)(probe->calls.calls - probe->before.calls) * (probe->class == SITE_STEPPED ? stepped : 1);
		all += probe->cost;
	}
	return all;
}

static int costliest_first(const void *a, const void *b)
{
	const struct probe *left = a, *right = b;

	if (left->cost != right->cost)
		return left->cost > right->cost ? -1 : 1;
	return left->row < right->row ? -1 : left->row > right->row;
}

static bool is_any_hot(const struct mpi_image *image)
{
	for (size_t i = 0; i < image->probe_count; i++)
		if (image->probes[i].hot)
			return true;
	return false;
}

/*
 * Marks the probes to close: those that cost most, until `keep` of the cost is left. Where nothing was called since the
 * count began, those that were closed before, or all. Returns whether they changed.
 */
static bool choose_hot(const struct attacher *attacher, struct mpi_image *image, double keep, double stepped,
		       struct attacher_closed *closed)
{
	bool hot[KERNEL_FUNCTIONS] = {false}, changed = false; /* MPI_X and PMPI_X share a row */
	double all = count_costs(attacher, image, stepped), rest = all;
	bool as_before = all <= 0 && keep > 0 && is_any_hot(image);

	qsort(image->probes, image->probe_count, sizeof(*image->probes), costliest_first);
	for (size_t i = 0; i < image->probe_count; i++) {
		const struct probe *probe = &image->probes[i];

		hot[probe->row] |= as_before ? probe->hot : keep <= 0 || all <= 0 || rest > keep * all;
		rest -= probe->cost;
	}
	for (size_t i = 0; i < image->probe_count; i++) {
		struct probe *probe = &image->probes[i];

		changed |= probe->hot != hot[probe->row];
		probe->hot = hot[probe->row];
		probe->costly = probe->hot && (probe->costly || probe->cost > COSTLY * all);
		closed->functions += probe->hot;
		if (probe->set == SET_CALM || probe->set == SET_HOT)
			probe->set = probe->hot ? SET_HOT : SET_CALM;
	}
	closed->of = (uint32_t)image->probe_count;
	closed->name = image->probe_count ? image->probes[0].name : NULL;
	return changed;
}

/* Adds a link, closed, of a function that shared one until now, for each process that had the other. 0 or -ENOMEM. */
static int add_own_links(const struct attachments *all, struct mpi_image *image, int64_t shared, int64_t set)
{
	int status = 0;

	for (size_t i = 0, count = image->base.link_count; i < count && !status; i++) {
		struct attached_link fresh = {.pid = image->base.links[i].pid, .set = set};

		if (image->base.links[i].set == shared && !attached__find_link(&image->base, set, fresh.pid))
			status = attached__add_link(all, &image->base, &fresh);
	}
	return status;
}

/*
 * Gives functions that are to be left out, and share links with others, links of their own. Returns whether there were
 * any: the shared links have to be opened again, without them.
 */
static bool part_links(const struct attachments *all, struct mpi_image *image, uint32_t units)
{
	bool parted = false;

	for (size_t i = 0; i < image->probe_count; i++) {
		struct probe *probe = &image->probes[i];

		if (probe->unit < 0 || !(units >> probe->unit & 1) ||
		    (probe->set != SET_CALM && probe->set != SET_HOT) ||
		    add_own_links(all, image, probe->set, (int64_t)probe->row))
			continue;
		probe->set = (int64_t)probe->row;
		parted = true;
	}
	return parted;
}

void mpi_image__spare(const struct attachments *all, struct mpi_image *image, const struct functions_spared *spared)
{
	bool any = false;

	for (size_t i = 0; i < image->probe_count; i++) {
		struct probe *probe = &image->probes[i];

		probe->hot = probe->costly = functions__is_costly(spared, probe->row);
		any |= probe->hot;
		if (probe->set == SET_CALM || probe->set == SET_HOT)
			probe->set = probe->hot ? SET_HOT : SET_CALM;
	}
	part_links(all, image, spared->units);
	image->base.public.without = spared->units;
	image->base.public.closed = spared->closed && any;
	mpi_image__describe_rows(all, image);
}

/*
 * Closes links that are not to be open, and those of functions that were divided again. All of them go together: each
 * link that is waited for before lets the expensive one cost for longer.
 */
static void close_links(const struct attacher *attacher, struct mpi_image *image, bool divided)
{
	for (size_t i = 0; i < image->base.link_count; i++) {
		struct attached_link *link = &image->base.links[i];

		link->marked = (divided && (link->set == SET_CALM || link->set == SET_HOT)) ||
			       (image->base.public.closed && link->set == SET_POLLING) ||
			       mpi_image__stays_closed(attacher, image, link);
	}
	attached__close_marked(&attacher->base, &image->base, false);
}

struct mpi_image *mpi_image__find(const struct attacher *attacher, const struct attached_image *public)
{
	for (size_t i = 0; i < attacher->base.count; i++)
		if (&attacher->base.images[i]->public == public)
			return attacher__image(attacher, i);
	return NULL;
}

bool attacher__end_learning(struct attacher *attacher, const struct attached_image *public, double stepped)
{
	struct mpi_image *image = mpi_image__find(attacher, public);
	uint64_t polls = image ? mpi_image__polls(attacher, image) : 0;

	/* the counts are read only where they decide: that is a read of all rows of all CPUs */
	if (!polls || (double)polls <= count_costs(attacher, image, stepped))
		return false;
	mpi_image__learnt(attacher, image);
	mpi_image__begin_count(&attacher->base, image);
	return true;
}

void attacher__close(struct attacher *attacher, const struct attached_image *public, double keep, double stepped,
		     struct attacher_closed *closed)
{
	struct mpi_image *image = mpi_image__find(attacher, public);
	bool changed;

	*closed = (struct attacher_closed){0};
	if (!image)
		return;
	changed = choose_hot(attacher, image, keep, stepped, closed);
	closed->parted = changed && !kernel_side__frugal(attacher->base.side);
	image->base.public.closed = true;
	mpi_image__describe_rows(&attacher->base, image);
	close_links(attacher, image, changed);
	mpi_image__learnt(attacher, image);
}

int attacher__open_remaining(struct attacher *attacher, const struct attached_image *public)
{
	struct mpi_image *image = mpi_image__find(attacher, public);

	return image ? mpi_image__open_links(attacher, image) : 0;
}

bool attacher__detaching(const struct attacher *attacher)
{
	return attachments__detaching(&attacher->base);
}

bool attacher__still_hit(const struct attacher *attacher)
{
	return attachments__still_hit(&attacher->base);
}

void attacher__costly(const struct attacher *attacher, const struct attached_image *public,
		      struct functions_spared *spared)
{
	const struct mpi_image *image = mpi_image__find(attacher, public);

	for (size_t i = 0; image && i < image->probe_count; i++)
		if (image->probes[i].costly)
			spared->costly[image->probes[i].row / 64] |= 1ULL << image->probes[i].row % 64;
}

int attacher__open(struct attacher *attacher, const struct attached_image *public)
{
	struct mpi_image *image = mpi_image__find(attacher, public);
	bool learns = image && image->learning.put_off;
	int status;

	if (!image || attacher->base.paused)
		return 0;
	image->base.public.closed = false;
	mpi_image__describe_rows(&attacher->base, image);
	status = mpi_image__open_links(attacher, image);
	mpi_image__begin_count(&attacher->base, image);
	for (size_t i = 0; learns && i < image->base.mapper_count; i++)
		mpi_image__learn(attacher, image, image->base.alone[i] ? image->base.pids[i] : 0);
	return status;
}

void attacher__begin_count(struct attacher *attacher, const struct attached_image *public)
{
	struct mpi_image *image = mpi_image__find(attacher, public);

	if (image)
		mpi_image__begin_count(&attacher->base, image);
}

/*
 * Returns whether a function hardly ever waited since counting began: few calls were long, as those that interrupts and
 * lost caches prolong are, and these took so little that, divided among all, each call was short.
 */
static bool is_short(const struct probe *probe)
{
	double calls = (double)(probe->calls.calls - probe->before.calls);

	return calls >= SHORT_CALLS && (double)(probe->calls.waits - probe->before.waits) <= calls * SHORT_WAITS &&
	       (double)(probe->calls.waited_ns - probe->before.waited_ns) <= calls * SHORT_WAITED_NS;
}

bool attacher__may_be_short(struct attacher *attacher, const struct attached_image *public)
{
	struct mpi_image *image = mpi_image__find(attacher, public);

	if (image)
		read_calls(&attacher->base, image);
	for (size_t i = 0; image && i < image->probe_count; i++)
		if (functions__unit_waits(image->probes[i].unit) &&
		    image->probes[i].calls.calls > image->probes[i].before.calls)
			return true;
	return false;
}

void attacher__unit_shares(struct attacher *attacher, const struct attached_image *public, double stepped,
			   double shares[FUNCTIONS_UNITS])
{
	struct mpi_image *image = mpi_image__find(attacher, public);
	bool counted[KERNEL_FUNCTIONS] = {false}; /* MPI_X and PMPI_X share a row */
	double all = 0;

	memset(shares, 0, FUNCTIONS_UNITS * sizeof(*shares));
	if (!image)
		return;
	count_costs(attacher, image, stepped);
	for (size_t i = 0; i < image->probe_count; i++) {
		const struct probe *probe = &image->probes[i];

		if (counted[probe->row])
			continue;
		counted[probe->row] = true;
		all += probe->cost;
		if (probe->unit >= 0 && (!functions__unit_waits(probe->unit) || is_short(probe)))
			shares[probe->unit] += probe->cost;
	}
	for (int i = 0; i < FUNCTIONS_UNITS && all > 0; i++)
		shares[i] /= all;
}

int attacher__leave_out(struct attacher *attacher, const struct attached_image *public, uint32_t units, bool *parted)
{
	struct mpi_image *image = mpi_image__find(attacher, public);
	int status = 0;

	*parted = false;
	if (!image || attacher->base.paused)
		return 0;
	image->base.public.without = units;
	*parted = part_links(&attacher->base, image, units);
	mpi_image__describe_rows(&attacher->base, image);
	close_links(attacher, image, *parted);
	/* links are not opened before old ones are gone */
	if (!*parted && !image->base.public.closed)
		status = mpi_image__open_links(attacher, image);
	mpi_image__begin_count(&attacher->base, image);
	return status;
}
