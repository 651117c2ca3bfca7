// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From cells of two profiles to rows. Sizes of work that lie near each other are one amount of work: where no fragment
 * of either run lies in a gap of a factor of about 1.4, the amounts beside the gap are compared apart. An amount that
 * one run lacks joins the nearest one that both have: more work per call is then seen as such.
 */
#include "compare/compare_private.h"

#include <math.h>

#include <gsl/gsl_sort.h>

#include "base/grow.h"
#include "model/batches.h"
#include "model/judgement.h"

#define GAP 4	     /* buckets of an eighth of an octave without fragments: a longer gap separates amounts of work */
#define SHORT_NS 2e4 /* mean of a computation that is mostly what the probes around it cost */

struct ref {
	uint32_t pair, bucket, amount, unit, side;
	const struct profile_cell *cell;
};

struct refs {
	struct ref *items;
	size_t count, capacity;
};

static int gather(struct refs *refs, const struct profile *profile, const struct match *match, uint32_t side,
		  const uint32_t *unit_of)
{
	uint32_t *pair_of = calloc(profile->kind_capacity + 1, sizeof(*pair_of));

	if (!pair_of)
		return -ENOMEM;
	for (uint32_t i = 0; i < match->count; i++)
		pair_of[side ? match->pairs[i].b : match->pairs[i].a] = i + 1;
	for (size_t i = 0; i < profile->cell_count; i++) {
		const struct profile_cell *cell = &profile->cells[i];

		if (!pair_of[cell->kind] || unit_of[cell->thread] == COMPARE_NONE || !cell->samples.members)
			continue;
		if (grow(&refs->items, &refs->capacity, refs->count + 1, sizeof(*refs->items))) {
			free(pair_of);
			return -ENOMEM;
		}
		refs->items[refs->count++] = (struct ref){.pair = pair_of[cell->kind] - 1,
							  .bucket = cell->bucket,
							  .unit = unit_of[cell->thread],
							  .side = side,
							  .cell = cell};
	}
	free(pair_of);
	return 0;
}

static int by_pair(const void *a, const void *b)
{
	const struct ref *x = a, *y = b;

	if (x->pair != y->pair)
		return x->pair < y->pair ? -1 : 1;
	return (x->bucket > y->bucket) - (x->bucket < y->bucket);
}

static int by_unit(const void *a, const void *b)
{
	const struct ref *x = a, *y = b;

	if (x->unit != y->unit)
		return x->unit < y->unit ? -1 : 1;
	if (x->amount != y->amount)
		return x->amount < y->amount ? -1 : 1;
	if (x->side != y->side)
		return x->side < y->side ? -1 : 1;
	return (x->cell->thread > y->cell->thread) - (x->cell->thread < y->cell->thread);
}

/* Whether an amount has enough fragments in both runs. */
static bool in_both(const struct ref *refs, size_t count, uint32_t amount, const double *all)
{
	double n[2] = {0};

	for (size_t i = 0; i < count; i++)
		if (refs[i].amount == amount)
			n[refs[i].side] += (double)refs[i].cell->samples.members;
	return n[0] > SHARE_NEGLIGIBLE * all[0] && n[1] > SHARE_NEGLIGIBLE * all[1];
}

/* Divides the refs of a pair, by bucket, into amounts of work. */
static void divide(struct ref *refs, size_t count)
{
	double all[2] = {0};
	uint32_t amounts = 1, last = 0;
	bool any = false;

	for (size_t i = 0; i < count; i++)
		all[refs[i].side] += (double)refs[i].cell->samples.members;
	for (size_t i = 0; i < count; i++) {
		amounts += i && refs[i].bucket > refs[i - 1].bucket + GAP;
		refs[i].amount = amounts - 1;
	}
	/* an amount of one run only joins the lower neighbour; before the first one of both runs, that one */
	for (size_t i = 0; i < count;) {
		uint32_t amount = refs[i].amount;
		bool both = in_both(refs + i, count - i, amount, all);
		uint32_t joined = both && any ? amount : last;

		if (both && !any)
			joined = last = 0;
		else if (both)
			last = joined;
		any |= both;
		for (; i < count && refs[i].amount == amount; i++)
			refs[i].amount = joined;
	}
}

/* What is known of a pair and unit: sums over amounts of work. */
struct sums {
	double base_ns, now_ns, error_ns;
	double least_now, work_ns, work_weight;
	double spread[2], calls[2];
	bool any;
};

/* Values of one side of an amount of work; n, time and work of all its fragments. */
struct amount {
	struct values values;
	double n, seconds, size_ns;
};

static int add_cell(struct amount *amount, const struct profile_cell *cell)
{
	const struct samples *samples = &cell->samples;

	for (size_t i = 0; i < samples->count; i++) {
		const struct sample *sample = &samples->items[i];

		if (sample->mean_ns > 0 && compare__add_value(&amount->values, log(sample->mean_ns)))
			return -ENOMEM;
		amount->size_ns += sample->size * sample->n;
		amount->n += sample->n;
	}
	amount->seconds += cell->elapsed_s;
	return 0;
}

/* Adds the comparison of one amount of work. calls: fragments of B. Returns 0, -ENODATA or -ENOMEM. */
static int add_amount(struct comparison *result, struct sums *sums, struct amount *amount, const double *calls)
{
	double centre[2], spread[2], base, now;
	uint64_t batches =
	    amount[0].values.count < amount[1].values.count ? amount[0].values.count : amount[1].values.count;
	struct shift shift;
	int error;

	compare__thin_values(&amount[0].values);
	compare__thin_values(&amount[1].values);
	error = shift__of(amount[0].values.items, amount[0].values.count, amount[1].values.items,
			  amount[1].values.count, &shift);
	if (error == -ENODATA) {
		result->too_few++;
		result->most_batches = batches > result->most_batches ? batches : result->most_batches;
	}
	if (error)
		return error;
	for (int side = 0; side < 2; side++) {
		spread[side] = compare__spread(&amount[side].values, &centre[side]);
		result->compared_s[side] += amount[side].seconds;
	}
	base = calls[1] * exp(centre[0]);
	now = base * exp(shift.by);
	sums->base_ns += base;
	sums->now_ns += now;
	sums->error_ns = hypot(sums->error_ns, now * shift.error);
	for (int side = 0; side < 2; side++) {
		sums->spread[side] += spread[side] * base;
		sums->calls[side] += calls[side];
	}
	if (amount[0].size_ns > 0 && amount[1].size_ns > 0) {
		sums->work_ns += base * log(amount[1].size_ns / amount[1].n * amount[0].n / amount[0].size_ns);
		sums->work_weight += base;
	}
	sums->any = true;
	result->compared++;
	return 0;
}

/* Fills a row from the sums. */
static void finish(struct compare_row *row, const struct sums *sums)
{
	double by = log(sums->now_ns / sums->base_ns), error = sums->error_ns / sums->now_ns;

	row->ratio = exp(by);
	row->low = exp(by - SHIFT_Z95 * error);
	row->high = exp(by + SHIFT_Z95 * error);
	row->error = error;
	row->base_s = sums->base_ns * 1e-9;
	row->seconds = (sums->now_ns - sums->base_ns) * 1e-9;
	row->calls_a = (uint64_t)sums->calls[0];
	row->calls_b = (uint64_t)sums->calls[1];
	row->call_a_ns = sums->base_ns / sums->calls[1];
	row->call_b_ns = sums->now_ns / sums->calls[1];
	row->spread_a = sums->spread[0] / sums->base_ns;
	row->spread_b = sums->spread[1] / sums->base_ns;
	row->work = sums->work_weight > 0 ? exp(sums->work_ns / sums->work_weight) : NAN;
}

/*
 * Whether the amount is of a computation that is mostly what the probes around it cost, in both runs: that depends on
 * the machine, and in a virtual machine on what else its host runs.
 */
static bool is_short(const struct comparison *result, const struct ref *ref, const struct amount *amount)
{
	const struct profile *profile = result->profile[ref->side];

	return stg__state(profile->stg, profile->kinds[ref->cell->kind].state)->about.class == VAPRO_COMPUTATION &&
	       amount[0].seconds * 1e9 < SHORT_NS * amount[0].n && amount[1].seconds * 1e9 < SHORT_NS * amount[1].n;
}

/* Compares the refs of one pair and unit, by amount and side. */
static int compare_unit(struct comparison *result, const struct ref *refs, size_t count)
{
	struct compare_unit *unit = &result->units[refs->unit];
	struct sums sums = {0};
	struct compare_row *row;
	int error = 0;

	for (size_t i = 0, next; (!error || error == -ENODATA) && i < count; i = next) {
		struct amount amount[2] = {0};
		double calls[2] = {0};

		error = 0;
		for (next = i; !error && next < count && refs[next].amount == refs[i].amount; next++) {
			calls[refs[next].side] += (double)refs[next].cell->samples.members;
			error = add_cell(&amount[refs[next].side], refs[next].cell);
		}
		if (!error && calls[0] > 0 && calls[1] > 0) {
			if (is_short(result, &refs[i], amount))
				result->too_short++;
			else
				error = add_amount(result, &sums, amount, calls);
		}
		free(amount[0].values.items);
		free(amount[1].values.items);
	}
	if (error && error != -ENODATA)
		return error;
	if (!sums.any)
		return 0;
	row = compare__row(result, COMPARE_STATE, (int32_t)refs->unit);
	if (!row)
		return -ENOMEM;
	row->kind = result->match.pairs[refs->pair].b;
	finish(row, &sums);
	unit->base_s += sums.base_ns * 1e-9;
	unit->now_s += sums.now_ns * 1e-9;
	unit->error = hypot(unit->error, sums.error_ns * 1e-9);
	return 0;
}

/* The least calls of a kind, in means of BATCH_MEMBERS bins in which it was called; all sizes that it has. */
static int add_leasts(struct amount *amount, const struct profile *profile, uint32_t kind, double *calls)
{
	for (size_t i = 0; i < profile->least_count; i++) {
		const struct profile_least *least = &profile->leasts[i];
		double sum = 0;
		unsigned bins = 0;

		if (least->kind != kind)
			continue;
		for (size_t bin = 0; bin < least->count; bin++) {
			sum += least->ns[bin];
			bins += least->ns[bin] > 0;
			if (bins < BATCH_MEMBERS)
				continue;
			if (compare__add_value(&amount->values, log(sum / bins)))
				return -ENOMEM;
			sum = 0;
			bins = 0;
		}
		*calls += (double)least->n;
		amount->n += (double)least->n;
		amount->size_ns += least->size * (double)least->n;
	}
	return 0;
}

static int compare_least(struct comparison *result, uint32_t pair)
{
	const uint32_t kinds[2] = {result->match.pairs[pair].a, result->match.pairs[pair].b};
	struct amount amount[2] = {0};
	struct sums sums = {0};
	double calls[2] = {0};
	struct compare_row *row;
	int error = 0;

	for (int side = 0; !error && side < 2; side++)
		error = add_leasts(&amount[side], result->profile[side], kinds[side], &calls[side]);
	if (!error && calls[0] > 0 && calls[1] > 0)
		error = add_amount(result, &sums, amount, calls);
	free(amount[0].values.items);
	free(amount[1].values.items);
	if (error && error != -ENODATA)
		return error;
	if (!sums.any)
		return 0;
	row = compare__row(result, COMPARE_STATE, COMPARE_ALL);
	if (!row)
		return -ENOMEM;
	row->kind = kinds[1];
	row->least = true;
	finish(row, &sums);
	return 0;
}

/* The least of all ranks is comparable only where both runs have the same ranks, and all were seen. */
static bool same_ranks(const struct comparison *result)
{
	for (int side = 0; side < 2; side++)
		if (result->side[side].units != result->unit_count ||
		    (result->side[side].world_size && result->side[side].world_size != result->unit_count))
			return false;
	return result->unit_count > 1;
}

int compare__cells(struct comparison *result, uint32_t *const unit_of[2])
{
	struct refs refs = {0};
	int error = gather(&refs, result->profile[0], &result->match, 0, unit_of[0]);

	if (!error)
		error = gather(&refs, result->profile[1], &result->match, 1, unit_of[1]);
	if (!error && refs.count)
		qsort(refs.items, refs.count, sizeof(*refs.items), by_pair);
	for (size_t i = 0, next; !error && i < refs.count; i = next) {
		for (next = i; next < refs.count && refs.items[next].pair == refs.items[i].pair; next++)
			;
		divide(refs.items + i, next - i);
		qsort(refs.items + i, next - i, sizeof(*refs.items), by_unit);
		for (size_t k = i, end; !error && k < next; k = end) {
			for (end = k; end < next && refs.items[end].unit == refs.items[k].unit; end++)
				;
			error = compare_unit(result, refs.items + k, end - k);
		}
	}
	free(refs.items);
	result->calls_compared = same_ranks(result) && result->unit_kind == COMPARE_RANKS;
	for (uint32_t i = 0; !error && result->calls_compared && i < result->match.count; i++)
		if (result->profile[0]->kinds[result->match.pairs[i].a].mode == PROFILE_LEAST)
			error = compare_least(result, i);
	return error;
}

int compare__add_value(struct values *values, double value)
{
	if (grow(&values->items, &values->capacity, values->count + 1, sizeof(*values->items)))
		return -ENOMEM;
	values->items[values->count++] = value;
	return 0;
}

void compare__thin_values(struct values *values)
{
	size_t step = (values->count + COMPARE_VALUES - 1) / COMPARE_VALUES, count = 0;

	for (size_t i = 0; step > 1 && i < values->count; i += step)
		values->items[count++] = values->items[i];
	if (step > 1)
		values->count = count;
}

double compare__spread(struct values *values, double *centre)
{
	size_t quarter = values->count / 4;

	*centre = shift__median(values->items, values->count);
	return values->count ? exp(values->items[values->count - 1 - quarter] - values->items[quarter]) - 1 : 0;
}
