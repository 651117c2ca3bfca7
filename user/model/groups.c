// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/groups.h"

#include "model/judgement.h"
#include "model/reference.h"

#include <math.h>
#include <string.h>

#define STRETCH_S 2	  /* least length of a stretch, seconds */
#define GROUP_STRETCHES 2 /* steady stretches with the same groups, from the first on */

/* Fills centres of groups that may be separate workloads, ascending. */
static unsigned centres_of(const struct reference *reference, float *centres)
{
	unsigned count = 0;

	for (unsigned i = 0; i < reference->centre_count && count < SERIES_GROUPS; i++) {
		if (!count || reference->centre_ns[i] > RATIO_APART * centres[count - 1])
			centres[count++] = (float)reference->centre_ns[i];
	}
	return count;
}

static bool same_groups(const struct series *series, const float *centres, unsigned count)
{
	if (count != series->group_count)
		return false;
	for (unsigned i = 0; i < count; i++) {
		if (fmaxf(centres[i], series->group_ns[i]) > RATIO_ALIKE * fminf(centres[i], series->group_ns[i]))
			return false;
	}
	return true;
}

static void end_stretch(struct series_book *book, struct series *series)
{
	struct reference reference = reference__of(&series->stretch, book->config);
	bool enough = series->stretch.n >= (double)book->config->certify_fragments;
	float centres[SERIES_GROUPS] = {0};
	unsigned count;

	histogram__clear(&series->stretch);
	series->stretch_begin = 0;
	if (!reference.groups || reference.near_share < SHARE_STEADY)
		return;
	count = centres_of(&reference, centres);
	if (!series->grouped && !series->single) {
		if (same_groups(series, centres, count)) {
			series->group_stretches++;
		} else {
			series->group_stretches = 1;
			series->group_count = (uint8_t)count;
			memcpy(series->group_ns, centres, sizeof(centres));
		}
		if (series->group_stretches >= GROUP_STRETCHES && count < 2)
			series->single = true;
	}
	series->proven |= enough || series->group_stretches >= GROUP_STRETCHES;
}

/* Ends a stretch that is complete before `bin`. */
static void end_before(struct series_book *book, struct series *series, uint64_t bin)
{
	if (series->stretch_begin && bin >= series->stretch_begin + STRETCH_S * VAPRO_BINS_PER_SECOND &&
	    series->stretch.n >= SHARE_MOST * (double)book->config->certify_fragments)
		end_stretch(book, series);
}

int groups__add(struct series_book *book, struct series *series, const struct bundle_rec *rec, double ns)
{
	/* Stretches can prove nothing more. */
	if (series->proven && (series->grouped || series->single))
		return 0;
	end_before(book, series, bundle_rec__bin(rec));
	series->stretch_last = bundle_rec__bin(rec);
	if (!series->stretch_begin)
		series->stretch_begin = series->stretch_last;
	return histogram__add(&series->stretch, ns / rec->n, rec->n);
}

/* Sums per fragment do not apply to units. */
static void begin_units(struct series *series)
{
	series->grouped = true;
	batches__empty(&series->batches);
	series->usual = (struct series_usual){0};
	series->normal = (struct series_pile){0};
	series->frequency_n = series->frequency_ns = 0;
	series->mean_count = 0;
}

static void find(struct series_book *book, const struct workload *workload)
{
	size_t decided = 0, several = 0;

	for (uint32_t i = workload->series; i != SERIES_NONE; i = book->series[i].next) {
		struct series *series = &book->series[i];
		bool known;

		end_before(book, series, series->stretch_last + 1);
		known = series->group_stretches >= GROUP_STRETCHES;
		decided += known;
		several += known && series->group_count >= 2;
	}
	if (!several || (double)several < SHARE_MOST * (double)decided)
		return;
	for (uint32_t i = workload->series; i != SERIES_NONE; i = book->series[i].next) {
		struct series *series = &book->series[i];

		if (!series->grouped && !series->single && series->group_count >= 2 &&
		    series->group_stretches >= GROUP_STRETCHES)
			begin_units(series);
	}
}

void groups__find(struct series_book *book)
{
	if (book->source == VAPRO_BY_INSTRUCTIONS)
		return;
	for (size_t i = 0; i < book->workload_count; i++) {
		const struct workload *workload = &book->workloads[i];

		if (workload->job != SERIES_NONE && workload->dirty && workload->class == VAPRO_COMPUTATION)
			find(book, workload);
	}
}

float groups__grouped_ratio(const struct series *series, const struct bundle_rec *rec)
{
	double ns = series__compared_ns(series->class, rec) / rec->n;
	unsigned group = 0;

	/* An open fragment may be of any group. */
	if (rec->flags & VAPRO_BUNDLE_OPEN)
		group = series->group_count - 1U;
	while (group + 1 < series->group_count && series->group_ns[group + 1] <= RATIO_ALIKE * ns)
		group++;
	return series->group_ns[group] / series->group_ns[0];
}
