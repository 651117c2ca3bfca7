// SPDX-License-Identifier: GPL-2.0-or-later
/* The search for the offset between the clocks of two hosts from their calls at one call-site: see clocks.h. */
#include "detect/clock_search.h"

#include <math.h>

#include "detect/clock_ends.h"
#include "detect/together.h"
#include "model/judgement.h"

enum { ROUGH_ENDS = 64 };	/* calls that the first sweep compares, of one host only */
#define REGULAR 1.3		/* times the typical time: in a longer gap between calls something was late */
#define QUICK 0.7		/* times the typical time: calls hardly follow each other sooner */
#define DEVIATION_MOST_NS 200e6 /* of one call in a cost: a greater one is another fault */
#define COST_MOST_NS 5e6	/* calls that agree worse, beside their own scatter, are not the same */
#define COST_MOST_CALLS 0.25	/* the scatter, as a share of the typical time from call to call */
#define NEARLY 1.25		/* times the least cost: agrees nearly as well */
#define ROUGHLY 1.5		/* times a cost: some of the calls may cost that much where all cost less */
#define SPREAD_MOST_NS 50e6	/* of offsets that agree nearly as well: with more the offset is not known */
enum { STRIDE = 6 };		/* items that are passed over at once */
enum { CANDIDATES = 6 };	/* best offsets that are refined */
enum { ROUGH_CANDIDATES = 16 }; /* best offsets of the first sweep */
enum { DOUBTS = 32 };		/* offsets that agree roughly as well and are compared by all calls */
enum { BEYOND = 8 };		/* slips on each side of those near equal clocks that are compared, too */

static struct clock_estimate estimate(const struct clock_ends *ends, uint32_t at, double ordinal)
{
	const struct clock_end *from = &ends->items[at], *to = &ends->items[at + 1];
	double calls = ordinal - from->ordinal, left = to->ordinal - ordinal;
	double each = (to->ns - from->ns) / (calls + left), quick = QUICK * ends->each_ns;
	double least = quick < each ? quick : each;

	return (struct clock_estimate){
	    .ns = from->ns + each * calls,
	    .regular = calls == 0 || each <= REGULAR * ends->each_ns,
	    .least = from->ns + least * calls,
	    .most = to->ns - least * left,
	};
}

/* The last item from `at` on whose ordinal is not greater, but one before the last item at most. */
static uint32_t last_until(const struct clock_ends *ends, uint32_t at, double ordinal)
{
	while (at + STRIDE + 1 < ends->count && ends->items[at + STRIDE].ordinal <= ordinal)
		at += STRIDE;
	while (at + 2 < ends->count && ends->items[at + 1].ordinal <= ordinal)
		at++;
	return at;
}

/* How far a call's end is from where the offset has it, ns. */
static double deviation(const struct clock_estimate *at, double offset_ns)
{
	double wanted = at->own_ns + offset_ns, off;

	if (at->regular)
		off = fabs(wanted - at->ns);
	else if (wanted < at->least)
		off = at->least - wanted;
	else
		off = wanted > at->most ? wanted - at->most : 0;
	return off < DEVIATION_MOST_NS ? off : DEVIATION_MOST_NS;
}

/*
 * Compares each `every`-th of one host's calls with the other host's; the offset is the median of the regular ones. The
 * cost is INFINITY where too few of them are.
 */
static struct clock_agreement compare(const struct clock_ends *of, uint32_t every, const struct clock_ends *with,
				      double slip, struct clock_scratch *scratch)
{
	struct clock_agreement found = {.cost = INFINITY};
	struct clock_estimate *estimates = scratch->estimates;
	uint32_t regular = 0;
	double sum = 0;

	scratch->spent += 1 + of->count / every / ROUGH_ENDS;
	for (uint32_t i = 0, at = 0; i < of->count && with->count > 1; i += every) {
		double ordinal = of->items[i].ordinal + slip;

		at = last_until(with, at, ordinal);
		if (ordinal < with->items[at].ordinal)
			continue;
		if (ordinal > with->items[at + 1].ordinal)
			break;
		estimates[found.pairs] = estimate(with, at, ordinal);
		estimates[found.pairs].own_ns = of->items[i].ns;
		if (estimates[found.pairs].regular)
			scratch->differences[regular++] = estimates[found.pairs].ns - of->items[i].ns;
		found.pairs++;
	}
	if (regular < (every > 1 ? CLOCK_PAIRS_LEAST / 2 : CLOCK_PAIRS_LEAST))
		return found;
	found.offset_ns = clock_ends__median(scratch->differences, regular);
	for (uint32_t i = 0; i < found.pairs; i++)
		sum += deviation(&estimates[i], found.offset_ns);
	found.cost = sum / found.pairs;
	return found;
}

struct clock_agreement clock_search__compare(struct clock_scratch *scratch, int64_t slip)
{
	/* each host has ends that the other lacks */
	struct clock_agreement to = compare(&scratch->base, 1, &scratch->other, (double)slip, scratch);
	struct clock_agreement back = compare(&scratch->other, 1, &scratch->base, -(double)slip, scratch);

	return (struct clock_agreement){.slip = slip,
					.offset_ns = (to.offset_ns - back.offset_ns) / 2,
					.cost = (to.cost + back.cost) / 2,
					.pairs = to.pairs < back.pairs ? to.pairs : back.pairs};
}

double clock_search__most_cost(const struct clock_scratch *scratch)
{
	return COST_MOST_NS + COST_MOST_CALLS * scratch->base.each_ns;
}

/* Of a short overlap any slip may agree by chance: half of the fewer calls have to be compared. */
static uint32_t pairs_least(const struct clock_scratch *scratch)
{
	uint32_t fewer = scratch->base.count < scratch->other.count ? scratch->base.count : scratch->other.count;

	return fewer / 2 > CLOCK_PAIRS_LEAST ? fewer / 2 : CLOCK_PAIRS_LEAST;
}

/* Slips that are compared: from the middle, `steps` of `step` on both sides. */
struct range {
	int64_t middle, step, steps;
};

struct search {
	struct clock_scratch *scratch;
	double offset_most_ns;
	struct clock_agreement best[CANDIDATES]; /* least cost first */
	uint32_t count;
};

/* Puts an agreement into a list that is sorted by cost. Returns the new count. */
static uint32_t insert(struct clock_agreement *best, uint32_t count, uint32_t most, const struct clock_agreement *found)
{
	uint32_t at = count;

	if (count == most) {
		if (found->cost >= best[--at].cost)
			return count;
	} else {
		count++;
	}
	for (; at && best[at - 1].cost > found->cost; at--)
		best[at] = best[at - 1];
	best[at] = *found;
	return count;
}

/* Compares all calls for one slip; each is compared once. Returns the agreement; its cost is INFINITY where none is. */
static struct clock_agreement look(struct search *search, int64_t slip)
{
	struct clock_scratch *scratch = search->scratch;
	struct clock_agreement found;

	for (uint32_t i = 0; i < scratch->exact_count; i++) {
		if (scratch->exact[i].slip == slip)
			return scratch->exact[i];
	}
	found = clock_search__compare(scratch, slip);
	if (found.pairs < pairs_least(scratch) || !isfinite(found.cost) ||
	    fabs(found.offset_ns) > search->offset_most_ns)
		found.cost = INFINITY;
	else
		search->count = insert(search->best, search->count, CANDIDATES, &found);
	if (scratch->exact_count < CLOCK_TRIED)
		scratch->exact[scratch->exact_count++] = found;
	return found;
}

/* Compares some of the base's calls for each slip of the range, and then all calls for the best of these. */
static void sweep(struct search *search, const struct range *range)
{
	struct clock_scratch *scratch = search->scratch;
	struct clock_agreement best[ROUGH_CANDIDATES];
	uint32_t every = scratch->base.count / ROUGH_ENDS > 1 ? scratch->base.count / ROUGH_ENDS : 1, count = 0;

	for (int64_t i = -range->steps; i <= range->steps && scratch->rough_count < CLOCK_TRIED; i++) {
		int64_t slip = range->middle + i * range->step;
		struct clock_agreement found = compare(&scratch->base, every, &scratch->other, (double)slip, scratch);

		found.slip = slip;
		/* a few pairs less than all calls would have: the exact comparison decides */
		if (!isfinite(found.cost) || (found.pairs + 2) * every < pairs_least(scratch) ||
		    fabs(found.offset_ns) > search->offset_most_ns)
			continue;
		scratch->rough[scratch->rough_count++] = found;
		count = insert(best, count, ROUGH_CANDIDATES, &found);
	}
	for (uint32_t i = 0; i < count; i++)
		look(search, best[i].slip);
}

/* Looks at the differences of ordinals for which a long gap of one host is one of the other's. */
static void match_gaps(struct search *search)
{
	struct clock_gaps base = clock_ends__gaps(&search->scratch->base);
	struct clock_gaps other = clock_ends__gaps(&search->scratch->other);

	for (uint32_t i = 0; i < base.count; i++) {
		for (uint32_t k = 0; k < other.count; k++)
			look(search, (int64_t)(other.ordinals[k] - base.ordinals[i]));
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

/* Refines each candidate of the steps. */
static void refine(struct search *search, int64_t step)
{
	while (step > 1) {
		int64_t around[CANDIDATES], finer = step / 4 > 1 ? step / 4 : 1;
		uint32_t count = search->count;

		for (uint32_t i = 0; i < count; i++)
			around[i] = search->best[i].slip;
		for (uint32_t i = 0; i < count; i++) {
			for (int64_t k = -(step / finer + 1); k <= step / finer + 1; k++)
				look(search, around[i] + k * finer);
		}
		step = finer;
	}
}

/*
 * How far off the offset may be: the distance of the farthest slip that agrees nearly as well, ns. Of the slips that
 * some of the calls do not rule out, the likeliest are compared by all.
 */
static double spread(struct search *search, const struct clock_agreement *best, int64_t step)
{
	struct clock_scratch *scratch = search->scratch;
	double limit = NEARLY * best->cost + CLOCK_NOISE_NS, farthest = best->cost;
	struct clock_agreement doubts[DOUBTS];
	uint32_t count = 0;

	for (int64_t i = -16; i <= 16; i++)
		look(search, best->slip + i * (step > 8 ? step / 8 : 1));
	for (uint32_t i = 0; i < scratch->exact_count; i++) {
		if (scratch->exact[i].cost <= limit)
			farthest = fmax(farthest, fabs(scratch->exact[i].offset_ns - best->offset_ns));
	}
	for (uint32_t i = 0; i < scratch->rough_count; i++) {
		const struct clock_agreement *at = &scratch->rough[i];

		if (at->cost <= ROUGHLY * limit && fabs(at->offset_ns - best->offset_ns) > farthest)
			count = insert(doubts, count, DOUBTS, at);
	}
	for (uint32_t i = 0; i < count && farthest <= SPREAD_MOST_NS; i++) {
		struct clock_agreement found = look(search, doubts[i].slip);

		if (found.cost <= limit)
			farthest = fmax(farthest, fabs(found.offset_ns - best->offset_ns));
	}
	return farthest;
}

/*
 * Whether calls that agree are of two operations: those of several communicators with one label, each of which its
 * ranks leave together, or those of another slip. They follow each other closely where something else couples the
 * ranks, and a late rank then seems to be a clock that is off. Where most calls are known one by one, their ends show
 * it. The pair before shows what is one moment on both clocks, since an offset does not change from call to call.
 */
static bool end_apart(const struct clock_scratch *scratch, const struct clock_agreement *found)
{
	const struct clock_ends *base = &scratch->base, *other = &scratch->other;
	double before_ns = NAN, longest_before_ns = 0;
	uint32_t singles = 0, together = 0;

	for (uint32_t i = 0, k = 0; i < base->count && k < other->count; i++) {
		const struct clock_end *a = &base->items[i], *b;
		double longest_ns, apart_ns;

		while (k + 1 < other->count && other->items[k].ordinal < a->ordinal + (double)found->slip)
			k++;
		b = &other->items[k];
		if (b->ordinal != a->ordinal + (double)found->slip || a->single_ns <= 0 || b->single_ns <= 0)
			continue;
		longest_ns = fmax(a->single_ns, b->single_ns);
		apart_ns = b->ns - a->ns;
		if (!isnan(before_ns)) {
			singles++;
			together +=
			    fabs(apart_ns - before_ns) <= together__most_apart(fmax(longest_ns, longest_before_ns));
		}
		before_ns = apart_ns;
		longest_before_ns = longest_ns;
	}
	return singles >= SHARE_MOST * found->pairs && together < SHARE_MOST * singles;
}

/* Turns the best agreement into a link. Returns false where none is good enough, or too different ones are as good. */
static bool conclude(struct search *search, int64_t step, struct clock_link *link)
{
	struct clock_agreement best = search->best[0];
	double spread_ns;

	if (!search->count || best.cost > clock_search__most_cost(search->scratch) || end_apart(search->scratch, &best))
		return false;
	spread_ns = spread(search, &best, step);
	if (spread_ns > SPREAD_MOST_NS)
		return false;
	*link = (struct clock_link){.found = true,
				    .slip = (double)best.slip,
				    .offset_ns = best.offset_ns,
				    .spread_ns = spread_ns,
				    .cost = best.cost};
	return true;
}

static struct search begin(struct clock_scratch *scratch, double offset_most_ns)
{
	scratch->rough_count = scratch->exact_count = 0;
	return (struct search){.scratch = scratch, .offset_most_ns = offset_most_ns};
}

bool clock_search__all(struct clock_scratch *scratch, struct clock_link *link)
{
	struct search search = begin(scratch, CLOCK_OFFSET_MOST_NS);
	double each_ns = scratch->other.each_ns;
	struct range range = {.middle = slip_of_equal_clocks(scratch),
			      .step = (int64_t)fmax(1, CLOCK_LITTLE_NS / each_ns)};

	range.steps = (int64_t)ceil(CLOCK_OFFSET_MOST_NS / (each_ns * (double)range.step));
	match_gaps(&search);
	sweep(&search, &range);
	refine(&search, range.step);
	return conclude(&search, range.step, link);
}

/* The median cost of some of the calls over all slips that were compared. */
static double typical_cost(struct clock_scratch *scratch)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < scratch->rough_count && count < CLOCK_CALLS; i++)
		scratch->differences[count++] = scratch->rough[i].cost;
	return count ? clock_ends__median(scratch->differences, count) : 0;
}

bool clock_search__near(struct clock_scratch *scratch, double bound_ns, struct clock_link *link)
{
	struct search search = begin(scratch, CLOCK_OFFSET_MOST_NS);
	double each_ns = scratch->other.each_ns;
	int64_t reach = (int64_t)ceil(bound_ns / each_ns);
	struct range range = {.middle = slip_of_equal_clocks(scratch), .step = 1 + reach / 32};
	struct clock_link found;

	range.steps = reach / range.step + BEYOND;
	sweep(&search, &range);
	if (!search.count || search.best[0].cost > SHARE_MOST * typical_cost(scratch) * (range.step > 1 ? 2 : 1))
		return false;
	refine(&search, range.step);
	if (search.best[0].cost > SHARE_MOST * typical_cost(scratch) || !conclude(&search, range.step, &found) ||
	    fabs(found.offset_ns) > bound_ns)
		return false;
	*link = found;
	return true;
}
