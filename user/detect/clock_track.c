// SPDX-License-Identifier: GPL-2.0-or-later
/* The offset between the clocks of two hosts from their calls at one call-site: see clocks.h. */
#include "detect/clocks_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define OFFSET_MOST_NS 10e9 /* a greater offset is not searched */
#define SPAN_MOST_NS 40e9   /* of calls: clocks drift */
#define GAPS 4		    /* longest of each host, that may be the same */
#define COARSE_NS 20e6	    /* step of the search */
#define REGULAR 1.3	    /* times the typical time: in a longer gap between calls something was late */
#define QUICK 0.7	    /* times the typical time: calls hardly follow each other sooner */
#define DEVIATION_MOST_NS 200e6
#define PAIRS_LEAST 16
#define COST_MOST_NS 5e6     /* calls that agree worse, beside their own scatter, are not the same */
#define COST_MOST_CALLS 0.25 /* the scatter, as a share of the typical time from call to call */
#define NEARLY 1.25	     /* times the least cost: agrees nearly as well */
#define NOISE_NS 20e3	     /* of the least cost */
#define SPREAD_MOST_NS 50e6
#define CANDIDATES 6
#define STILL_AGREES 2 /* times the former cost */

static int compare_calls(const void *a, const void *b)
{
	const struct clock_calls *left = a, *right = b;

	if (left->end_ns != right->end_ns)
		return left->end_ns < right->end_ns ? -1 : 1;
	return (left->start_ns > right->start_ns) - (left->start_ns < right->start_ns);
}

static int compare_numbers(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

static double median(double *numbers, uint32_t count)
{
	qsort(numbers, count, sizeof(*numbers), compare_numbers);
	return count & 1 ? numbers[count / 2] : (numbers[count / 2 - 1] + numbers[count / 2]) / 2;
}

/*
 * Lists the ends of calls whose ordinals are certain. The last call of a bundle has all earlier calls before it only
 * where no later bundle had begun: bundles of short and of long calls of one bin overlap.
 */
static void list_ends(const struct clock_track *track, struct clock_scratch *scratch, struct clock_ends *ends)
{
	struct clock_calls *sorted = scratch->sorted;
	uint64_t later_ns = UINT64_MAX;
	double ordinal = (double)track->before;
	uint32_t live = 0;

	if (track->count)
		memcpy(sorted, track->calls, track->count * sizeof(*sorted));
	qsort(sorted, track->count, sizeof(*sorted), compare_calls);
	for (size_t i = 0; i < track->count; i++)
		ordinal += sorted[i].n;
	for (size_t i = track->count; i-- > 0;) {
		if ((double)(sorted[track->count - 1].end_ns - sorted[i].end_ns) > SPAN_MOST_NS)
			break;
		if (sorted[i].end_ns <= later_ns)
			ends->items[live++] =
			    (struct clock_end){ordinal, (double)(int64_t)(sorted[i].end_ns - scratch->origin_ns)};
		ordinal -= sorted[i].n;
		later_ns = sorted[i].start_ns < later_ns ? sorted[i].start_ns : later_ns;
	}
	for (uint32_t i = 0; i < live / 2; i++) {
		struct clock_end end = ends->items[i];

		ends->items[i] = ends->items[live - 1 - i];
		ends->items[live - 1 - i] = end;
	}
	ends->count = live;
	for (uint32_t i = 1; i < live; i++)
		scratch->differences[i - 1] =
		    (ends->items[i].ns - ends->items[i - 1].ns) / (ends->items[i].ordinal - ends->items[i - 1].ordinal);
	ends->each_ns = live > 1 ? median(scratch->differences, live - 1) : 0;
}

/* The end of a call by the other host's clock: between two bounds, and most likely at `ns`. */
struct estimate {
	double least, most, ns;
	bool regular;
};

static struct estimate estimate(const struct clock_ends *ends, uint32_t at, double ordinal)
{
	const struct clock_end *from = &ends->items[at], *to = &ends->items[at + 1];
	double calls = ordinal - from->ordinal, left = to->ordinal - ordinal, gap = to->ns - from->ns;
	struct estimate found = {.ns = from->ns + gap * calls / (calls + left)};

	found.regular = calls == 0 || gap <= REGULAR * ends->each_ns * (calls + left);
	if (calls == 0)
		found.ns = from->ns;
	found.least = from->ns + fmin(QUICK * ends->each_ns * calls, gap * calls / (calls + left));
	found.most = to->ns - fmin(QUICK * ends->each_ns * left, gap * left / (calls + left));
	return found;
}

/* How well the calls of two hosts agree for a difference of ordinals. */
struct agreement {
	double offset_ns, cost;
	uint32_t pairs;
};

/* Compares each of one host's calls with the other host's; the offset is the median of the regular ones. */
static struct agreement compare(const struct clock_ends *of, const struct clock_ends *with, double slip,
				struct clock_scratch *scratch)
{
	struct agreement found = {.cost = INFINITY};
	uint32_t regular = 0;
	double sum = 0;

	for (uint32_t i = 0, at = 0; i < of->count; i++) {
		double ordinal = of->items[i].ordinal + slip;
		struct estimate other;

		while (at + 2 < with->count && with->items[at + 1].ordinal <= ordinal)
			at++;
		if (with->count < 2 || ordinal < with->items[at].ordinal || ordinal > with->items[at + 1].ordinal)
			continue;
		other = estimate(with, at, ordinal);
		found.pairs++;
		if (other.regular)
			scratch->differences[regular++] = other.ns - of->items[i].ns;
	}
	if (regular < PAIRS_LEAST)
		return found;
	found.offset_ns = median(scratch->differences, regular);
	for (uint32_t i = 0, at = 0; i < of->count; i++) {
		double ordinal = of->items[i].ordinal + slip, wanted = of->items[i].ns + found.offset_ns, off;
		struct estimate other;

		while (at + 2 < with->count && with->items[at + 1].ordinal <= ordinal)
			at++;
		if (ordinal < with->items[at].ordinal || ordinal > with->items[at + 1].ordinal)
			continue;
		other = estimate(with, at, ordinal);
		if (other.regular)
			off = fabs(wanted - other.ns);
		else
			off = fmax(0, fmax(other.least - wanted, wanted - other.most));
		sum += fmin(off, DEVIATION_MOST_NS);
	}
	found.cost = sum / found.pairs;
	return found;
}

/* Both ways: each host has ends that the other lacks. */
static struct agreement compare_both(struct clock_scratch *scratch, int64_t slip)
{
	struct agreement to = compare(&scratch->base, &scratch->other, (double)slip, scratch);
	struct agreement back = compare(&scratch->other, &scratch->base, -(double)slip, scratch);

	return (struct agreement){.offset_ns = (to.offset_ns - back.offset_ns) / 2,
				  .cost = (to.cost + back.cost) / 2,
				  .pairs = to.pairs < back.pairs ? to.pairs : back.pairs};
}

/* The greatest cost of calls that are the same. */
static double most_cost(const struct clock_scratch *scratch)
{
	return COST_MOST_NS + COST_MOST_CALLS * scratch->base.each_ns;
}

/* Of a short overlap any slip may agree by chance: half of the fewer calls have to be compared. */
static uint32_t pairs_least(const struct clock_scratch *scratch)
{
	uint32_t fewer = scratch->base.count < scratch->other.count ? scratch->base.count : scratch->other.count;

	return fewer / 2 > PAIRS_LEAST ? fewer / 2 : PAIRS_LEAST;
}

struct candidate {
	int64_t slip;
	struct agreement found;
};

struct search {
	struct clock_scratch *scratch;
	struct candidate best[CANDIDATES]; /* least cost first */
	uint32_t count;
	double farthest_ns, limit; /* farthest[ns] from `around_ns` of what costs at most `limit`; in the second pass */
	double around_ns;
};

static void look(struct search *search, int64_t slip)
{
	struct candidate candidate = {slip, compare_both(search->scratch, slip)};
	uint32_t at = search->count;

	if (candidate.found.pairs < pairs_least(search->scratch) || !isfinite(candidate.found.cost) ||
	    fabs(candidate.found.offset_ns) > OFFSET_MOST_NS)
		return;
	if (candidate.found.cost <= search->limit)
		search->farthest_ns = fmax(search->farthest_ns, fabs(candidate.found.offset_ns - search->around_ns));
	for (uint32_t i = 0; i < search->count; i++) {
		if (search->best[i].slip == slip)
			return;
	}
	if (at == CANDIDATES) {
		if (candidate.found.cost >= search->best[--at].found.cost)
			return;
	} else {
		search->count++;
	}
	for (; at && search->best[at - 1].found.cost > candidate.found.cost; at--)
		search->best[at] = search->best[at - 1];
	search->best[at] = candidate;
}

static void sweep(struct search *search, int64_t middle, int64_t step, int64_t steps)
{
	for (int64_t i = -steps; i <= steps; i++)
		look(search, middle + i * step);
}

/* Lists the calls after the longest gaps per call, longest first. Returns how many. */
static uint32_t longest_gaps(const struct clock_ends *ends, double ordinals[static GAPS])
{
	double gaps[GAPS];
	uint32_t count = 0;

	for (uint32_t i = 1; i < ends->count; i++) {
		const struct clock_end *end = &ends->items[i];
		double gap = (end->ns - end[-1].ns) - ends->each_ns * (end->ordinal - end[-1].ordinal);
		uint32_t at = count;

		while (at && gaps[at - 1] < gap)
			at--;
		if (at == GAPS)
			continue;
		count += count < GAPS;
		memmove(&gaps[at + 1], &gaps[at], (count - at - 1) * sizeof(*gaps));
		memmove(&ordinals[at + 1], &ordinals[at], (count - at - 1) * sizeof(*ordinals));
		gaps[at] = gap;
		ordinals[at] = end->ordinal;
	}
	return count;
}

/* Looks at the differences of ordinals for which a long gap of one host is one of the other's. */
static void match_gaps(struct search *search)
{
	double base[GAPS], other[GAPS];
	uint32_t base_count = longest_gaps(&search->scratch->base, base);
	uint32_t other_count = longest_gaps(&search->scratch->other, other);

	for (uint32_t i = 0; i < base_count; i++) {
		for (uint32_t k = 0; k < other_count; k++)
			look(search, (int64_t)(other[k] - base[i]));
	}
}

/* The difference of ordinals for which both clocks would be equal. */
static int64_t slip_of_equal_clocks(const struct clock_scratch *scratch)
{
	const struct clock_end *from = &scratch->base.items[scratch->base.count / 2];
	const struct clock_ends *with = &scratch->other;
	uint32_t at = 0;

	while (at + 1 < with->count && with->items[at + 1].ns <= from->ns)
		at++;
	return (int64_t)(with->items[at].ordinal + (from->ns - with->items[at].ns) / with->each_ns - from->ordinal);
}

/* Refines each candidate of the coarse steps. */
static void refine(struct search *search, int64_t step)
{
	while (step > 1) {
		int64_t around[CANDIDATES], finer = step / 4 > 1 ? step / 4 : 1;
		uint32_t count = search->count;

		for (uint32_t i = 0; i < count; i++)
			around[i] = search->best[i].slip;
		for (uint32_t i = 0; i < count; i++)
			sweep(search, around[i], finer, step / finer + 1);
		step = finer;
	}
}

/* Searches the offset of all differences of ordinals. Returns false where none agrees, or too different ones do. */
static bool search_all(struct clock_scratch *scratch, struct clock_link *link)
{
	struct search search = {.scratch = scratch, .limit = -1};
	int64_t middle = slip_of_equal_clocks(scratch);
	int64_t step = (int64_t)fmax(1, COARSE_NS / scratch->other.each_ns);
	int64_t steps = (int64_t)ceil(OFFSET_MOST_NS / (scratch->other.each_ns * (double)step));

	match_gaps(&search);
	sweep(&search, middle, step, steps);
	refine(&search, step);
	if (!search.count || search.best[0].found.cost > most_cost(scratch))
		return false;
	*link = (struct clock_link){.found = true,
				    .slip = (double)search.best[0].slip,
				    .offset_ns = search.best[0].found.offset_ns,
				    .cost = search.best[0].found.cost};
	/* what else agrees nearly as well? */
	search.around_ns = link->offset_ns;
	search.limit = NEARLY * link->cost + NOISE_NS;
	sweep(&search, middle, step, steps);
	sweep(&search, (int64_t)link->slip, step > 8 ? step / 8 : 1, 16);
	link->spread_ns = fmax(search.farthest_ns, link->cost);
	return link->spread_ns <= SPREAD_MOST_NS;
}

/* Lists the calls of both hosts. Returns whether there are enough. */
static bool list_both(const struct clock_track *base, const struct clock_track *other, struct clock_scratch *scratch)
{
	scratch->origin_ns = base->count ? base->calls[0].end_ns : 0;
	list_ends(base, scratch, &scratch->base);
	list_ends(other, scratch, &scratch->other);
	return scratch->base.count > PAIRS_LEAST && scratch->other.count > PAIRS_LEAST && scratch->base.each_ns > 0 &&
	       scratch->other.each_ns > 0;
}

static double last_ordinal(const struct clock_ends *ends)
{
	return ends->items[ends->count - 1].ordinal;
}

/* Leaves the calls after an ordinal. */
static void drop_until(struct clock_ends *ends, double ordinal)
{
	uint32_t first = 0;

	while (first < ends->count && ends->items[first].ordinal <= ordinal)
		first++;
	ends->count -= first;
	memmove(ends->items, ends->items + first, ends->count * sizeof(*ends->items));
}

static bool same_offset(const struct clock_link *a, const struct clock_link *b)
{
	return fabs(a->offset_ns - b->offset_ns) <= fmax(a->spread_ns, b->spread_ns);
}

enum judgement { WAIT, REFUTED, CONFIRMED };

/*
 * Judges a link by the calls since it was found, without those that it was found by. Regular calls agree with any slip,
 * so agreement alone confirms nothing: a search among the new calls has to find the same offset, and no other.
 */
static enum judgement judge(struct clock_scratch *scratch, struct clock_link *link, struct clock_link *found)
{
	struct agreement now;

	if (last_ordinal(&scratch->base) < link->until || last_ordinal(&scratch->other) < link->until + link->slip)
		return REFUTED; /* counts from another call now */
	drop_until(&scratch->base, link->until);
	drop_until(&scratch->other, link->until + link->slip);
	if (scratch->base.count <= PAIRS_LEAST || scratch->other.count <= PAIRS_LEAST)
		return WAIT;
	now = compare_both(scratch, (int64_t)link->slip);
	if (now.pairs < PAIRS_LEAST || !isfinite(now.cost))
		return WAIT;
	if (now.cost > most_cost(scratch))
		return REFUTED;
	link->offset_ns = now.offset_ns; /* clocks drift until a search finds one */
	if (!search_all(scratch, found))
		return WAIT;
	return same_offset(found, link) ? CONFIRMED : REFUTED;
}

/* The link found among the new calls, as all calls show it. */
static void confirm(struct clock_scratch *scratch, struct clock_link *link, const struct clock_link *found)
{
	struct agreement first = compare_both(scratch, (int64_t)link->slip);
	struct agreement second = compare_both(scratch, (int64_t)found->slip);

	if (second.cost < first.cost) {
		link->slip = found->slip;
		first = second;
	}
	link->known = true;
	link->offset_ns = first.offset_ns;
	link->cost = first.cost;
}

/* Looks for an offset among all calls; it is a candidate at first. */
static void find_candidate(struct clock_scratch *scratch, struct clock_link *link)
{
	struct clock_link found = {0};

	if (search_all(scratch, &found))
		found.until = fmin(last_ordinal(&scratch->base), last_ordinal(&scratch->other) - found.slip);
	else
		found = (struct clock_link){0};
	/* the same offset by another slip, as after lost calls, is no news */
	found.known = found.found && link->known && same_offset(&found, link);
	*link = found;
}

void clock_track__link(const struct clock_track *base, const struct clock_track *other, struct clock_scratch *scratch,
		       struct clock_link *link)
{
	struct clock_link found = {0};
	struct agreement now;

	/* without calls that can be compared the former offset stays */
	if (!list_both(base, other, scratch))
		return;
	if (link->known) {
		now = compare_both(scratch, (int64_t)link->slip);
		if (now.pairs < PAIRS_LEAST || !isfinite(now.cost))
			return;
		if (now.cost <= STILL_AGREES * link->cost + NOISE_NS) {
			link->offset_ns = now.offset_ns;
			return;
		}
		found = *link;
		find_candidate(scratch, &found);
		/* nothing is better for certain */
		if (!found.found && now.cost <= most_cost(scratch))
			link->offset_ns = now.offset_ns;
		else
			*link = found;
		return;
	}
	if (link->found) {
		enum judgement judgement = judge(scratch, link, &found);

		list_both(base, other, scratch);
		if (judgement == CONFIRMED)
			confirm(scratch, link, &found);
		if (judgement != REFUTED)
			return;
	}
	find_candidate(scratch, link);
}
