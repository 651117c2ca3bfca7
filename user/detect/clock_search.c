// SPDX-License-Identifier: GPL-2.0-or-later
/* The search for the offset between the clocks of two hosts from their calls at one call-site: see clocks.h. */
#include "detect/clock_search.h"

#include <math.h>

#include "detect/clock_ends.h"
#include "detect/together.h"
#include "model/judgement.h"

enum {
	ROUGH_ENDS = CLOCK_SAMPLES / 2
};				/* calls that the first sweep compares, of one host only: less than twice as many */
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

/* The last item from `at` on whose ordinal is not greater, but one before the last item at most. */
static uint32_t last_until(const struct clock_ends *ends, uint32_t at, double ordinal)
{
	while (at + STRIDE + 1 < ends->count && ends->items[at + STRIDE].ordinal <= ordinal)
		at += STRIDE;
	while (at + 2 < ends->count && ends->items[at + 1].ordinal <= ordinal)
		at++;
	return at;
}

/* How far a time is from what is possible for a call in a gap in which something was late, ns. */
static double beyond(const struct clock_estimate *of, double wanted)
{
	const struct clock_end *from = of->gap, *to = &of->gap[1];
	double least = from->ns + from->least_ns * (of->ordinal - from->ordinal);
	double most = to->ns - from->least_ns * (to->ordinal - of->ordinal);

	if (wanted < least)
		return least - wanted;
	return wanted > most ? wanted - most : 0;
}

/* How far a call's end is from where the offset has it, ns. */
static double deviation(const struct clock_estimate *at, double offset_ns)
{
	double wanted = at->own_ns + offset_ns, off = at->gap ? beyond(at, wanted) : fabs(wanted - at->ns);

	return off < DEVIATION_MOST_NS ? off : DEVIATION_MOST_NS;
}

/*
 * Compares one host's calls with the other host's; the offset is the median of the regular ones. The cost is INFINITY
 * where too few of them are.
 */
static struct clock_agreement compare(const struct clock_ends *of, const struct clock_ends *with, double slip,
				      struct clock_scratch *scratch)
{
	struct clock_agreement found = {.cost = INFINITY};
	struct clock_estimate *estimates = scratch->estimates;
	uint32_t regular = 0, pairs = 0;
	double sum = 0;

	scratch->spent += 1 + of->count / ROUGH_ENDS;
	for (uint32_t i = 0, at = 0; i < of->count && with->count > 1; i++) {
		double ordinal = of->items[i].ordinal + slip, own_ns = of->items[i].ns, ns;
		const struct clock_end *from;

		at = last_until(with, at, ordinal);
		from = &with->items[at];
		if (ordinal < from->ordinal)
			continue;
		if (ordinal > from[1].ordinal)
			break;
		ns = from->ns + from->each_ns * (ordinal - from->ordinal);
		estimates[pairs] = (struct clock_estimate){.own_ns = own_ns, .ns = ns, .ordinal = ordinal};
		if (from->regular || ordinal == from->ordinal)
			scratch->differences[regular++] = ns - own_ns;
		else
			estimates[pairs].gap = from;
		pairs++;
	}
	found.pairs = pairs;
	if (regular < CLOCK_PAIRS_LEAST)
		return found;
	found.offset_ns = clock_ends__median(scratch->differences, regular);
	for (uint32_t i = 0; i < pairs; i++)
		sum += deviation(&estimates[i], found.offset_ns);
	found.cost = sum / pairs;
	return found;
}

struct clock_agreement clock_search__compare(struct clock_scratch *scratch, int64_t slip)
{
	/* each host has ends that the other lacks */
	struct clock_agreement to = compare(&scratch->base, &scratch->other, (double)slip, scratch);
	struct clock_agreement back = compare(&scratch->other, &scratch->base, -(double)slip, scratch);

	return (struct clock_agreement){.slip = slip,
					.offset_ns = (to.offset_ns - back.offset_ns) / 2,
					.cost = (to.cost + back.cost) / 2,
					.pairs = to.pairs < back.pairs ? to.pairs : back.pairs};
}

/* Takes each `every`-th of the base's calls for the slips of a sweep. */
static void take_samples(struct clock_samples *samples, const struct clock_ends *base, uint32_t every)
{
	samples->count = 0;
	samples->least = every > 1 ? CLOCK_PAIRS_LEAST / 2 : CLOCK_PAIRS_LEAST;
	samples->work = 1 + base->count / every / ROUGH_ENDS;
	for (uint32_t i = 0; i < base->count; i += every) {
		uint32_t k = samples->count++;

		samples->ordinal[k] = base->items[i].ordinal;
		samples->own_ns[k] = base->items[i].ns;
		samples->at[k] = 0;
		samples->to[k] = -INFINITY;
	}
}

/* Moves a sample on to the other host's calls around it, which no earlier slip passed by. */
static void move(struct clock_samples *samples, uint32_t k, const struct clock_ends *with, double ordinal)
{
	uint32_t at =
	    last_until(with, k && samples->at[k - 1] > samples->at[k] ? samples->at[k - 1] : samples->at[k], ordinal);

	samples->at[k] = at;
	samples->from[k] = with->items[at].ordinal;
	samples->to[k] = with->items[at + 1].ordinal;
	samples->from_ns[k] = with->items[at].ns;
	samples->each_ns[k] = with->items[at].each_ns;
	samples->gap[k] = !with->items[at].regular;
}

/* Moves samples [from, to) on, and lists those in a gap in which something was late. Returns how many. */
static uint32_t move_all(struct clock_samples *samples, uint32_t from, uint32_t to, const struct clock_ends *with,
			 double slip)
{
	uint32_t late = 0;

	for (uint32_t k = from; k < to; k++) {
		double ordinal = samples->ordinal[k] + slip;

		if (ordinal >= samples->to[k])
			move(samples, k, with, ordinal);
		if (samples->gap[k] && ordinal != samples->from[k])
			samples->late[late++] = k;
	}
	return late;
}

/* The sum of what samples [from, to) are off, ns; late: those listed. */
static double sum_off(struct clock_samples *samples, uint32_t from, uint32_t to, const struct clock_ends *with,
		      double slip, double offset_ns, uint32_t late)
{
	double sum = 0;

	for (uint32_t k = from; k < to; k++) {
		double off = fabs(samples->own_ns[k] + offset_ns - samples->ns[k]);

		samples->off[k] = off < DEVIATION_MOST_NS ? off : DEVIATION_MOST_NS;
	}
	for (uint32_t i = 0; i < late; i++) {
		uint32_t k = samples->late[i];
		struct clock_estimate at = {.own_ns = samples->own_ns[k],
					    .ordinal = samples->ordinal[k] + slip,
					    .gap = &with->items[samples->at[k]]};

		samples->off[k] = deviation(&at, offset_ns);
	}
	for (uint32_t k = from; k < to; k++)
		sum += samples->off[k];
	return sum;
}

/* Compares the samples with the other host's calls as compare() does; slips only go up. */
static struct clock_agreement compare_samples(struct clock_scratch *scratch, double slip)
{
	struct clock_samples *samples = &scratch->samples;
	const struct clock_ends *with = &scratch->other;
	struct clock_agreement found = {.cost = INFINITY};
	uint32_t from = 0, to = with->count > 1 ? samples->count : 0, late, regular;

	scratch->spent += samples->work;
	while (from < to && samples->ordinal[from] + slip < with->items[0].ordinal)
		from++;
	while (from < to && samples->ordinal[to - 1] + slip > with->items[with->count - 1].ordinal)
		to--;
	late = move_all(samples, from, to, with, slip);
	found.pairs = to - from;
	regular = found.pairs - late;
	if (regular < samples->least)
		return found;
	for (uint32_t k = from; k < to; k++) {
		samples->ns[k] =
		    samples->from_ns[k] + samples->each_ns[k] * (samples->ordinal[k] + slip - samples->from[k]);
		scratch->differences[k - from] = samples->ns[k] - samples->own_ns[k];
	}
	for (uint32_t i = late; i-- > 0;)
		scratch->differences[samples->late[i] - from] = scratch->differences[regular + i];
	found.offset_ns = clock_ends__median(scratch->differences, regular);
	found.cost = sum_off(samples, from, to, with, slip, found.offset_ns, late) / found.pairs;
	return found;
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

	take_samples(&scratch->samples, &scratch->base, every);
	for (int64_t i = -range->steps; i <= range->steps && scratch->rough_count < CLOCK_TRIED; i++) {
		int64_t slip = range->middle + i * range->step;
		struct clock_agreement found = compare_samples(scratch, (double)slip);

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
