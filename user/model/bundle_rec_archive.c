// SPDX-License-Identifier: GPL-2.0-or-later
/* Retained bundles in checkpoints: see series.h. */
#include "model/series.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Bits of a saved bundle beyond its own: members that are 0 there follow from others. */
#define SUM_IS_LENGTH (1U << 16)
#define MOST_IS_SUM (1U << 17)
#define VERDICT_AS_BEFORE (1U << 18) /* that of the bundle of its series before */

/* A bundle without its factors. */
struct saved_rec {
	uint64_t start_ns, length_ns;
	double sum_ns;
	uint32_t series, n, flags, cell, bits;
	float max_ns, ratio, reference, waited_ns;
	uint8_t reason, counted;
	bool factors;
};

static const struct archive_column rec_columns[] = {
    ARCHIVE_ONE(struct saved_rec, start_ns),  ARCHIVE_ONE(struct saved_rec, length_ns),
    ARCHIVE_ONE(struct saved_rec, sum_ns),    ARCHIVE_ONE(struct saved_rec, series),
    ARCHIVE_ONE(struct saved_rec, n),	      ARCHIVE_ONE(struct saved_rec, flags),
    ARCHIVE_ONE(struct saved_rec, cell),      ARCHIVE_ONE(struct saved_rec, bits),
    ARCHIVE_ONE(struct saved_rec, max_ns),    ARCHIVE_ONE(struct saved_rec, ratio),
    ARCHIVE_ONE(struct saved_rec, reference), ARCHIVE_ONE(struct saved_rec, waited_ns),
    ARCHIVE_ONE(struct saved_rec, reason),    ARCHIVE_ONE(struct saved_rec, counted),
    ARCHIVE_ONE(struct saved_rec, factors),
};
static const struct archive_table rec_table = ARCHIVE_TABLE("bundles", struct saved_rec, rec_columns);

struct saved_factors {
	float factor[BUNDLE_FACTORS];
};

static const struct archive_column factor_columns[] = {ARCHIVE_MANY(struct saved_factors, factor)};
static const struct archive_table factor_table = ARCHIVE_TABLE("factors", struct saved_factors, factor_columns);

_Static_assert(VAPRO_UNCOVERED_REASONS <= 32, "a bundle has five bits for its reason");

static uint32_t bits_of(const struct bundle_rec *rec)
{
	return (uint32_t)rec->is_new | (uint32_t)rec->covered << 1 | (uint32_t)rec->certified << 2 |
	       (uint32_t)rec->no_reference << 3 | (uint32_t)rec->warm_up << 4 | (uint32_t)rec->provisional << 5 |
	       (uint32_t)rec->attributed_only << 6 | (uint32_t)rec->rebased << 7 | (uint32_t)rec->waits << 8 |
	       (uint32_t)rec->retained << 9 | (uint32_t)rec->disturbed << 10 | (uint32_t)rec->learnt << 11 |
	       (uint32_t)rec->account << 12 | (uint32_t)rec->young << 14 | (uint32_t)rec->occurrence << 15;
}

static void set_bits(struct bundle_rec *rec, uint32_t bits)
{
	rec->is_new = bits & 1;
	rec->covered = bits >> 1 & 1;
	rec->certified = bits >> 2 & 1;
	rec->no_reference = bits >> 3 & 1;
	rec->warm_up = bits >> 4 & 1;
	rec->provisional = bits >> 5 & 1;
	rec->attributed_only = bits >> 6 & 1;
	rec->rebased = bits >> 7 & 1;
	rec->waits = bits >> 8 & 1;
	rec->retained = bits >> 9 & 1;
	rec->disturbed = bits >> 10 & 1;
	rec->learnt = bits >> 11 & 1;
	rec->account = bits >> 12 & 3;
	rec->young = bits >> 14 & 1;
	rec->occurrence = bits >> 15 & 1;
}

static struct saved_rec saved_of(const struct bundle_rec *rec)
{
	return (struct saved_rec){
	    .start_ns = rec->start_ns,
	    .length_ns = rec->end_ns - rec->start_ns,
	    .sum_ns = rec->sum_ns,
	    .series = rec->series,
	    .n = rec->n,
	    .flags = rec->flags,
	    .cell = rec->cell,
	    .bits = bits_of(rec),
	    .max_ns = rec->max_ns,
	    .ratio = rec->ratio,
	    .reference = rec->reference,
	    .waited_ns = rec->waited_ns,
	    .reason = rec->reason,
	    .counted = rec->counted,
	    .factors = rec->factor != bundle_rec_no_factors,
	};
}

static struct bundle_rec rec_of(const struct saved_rec *saved)
{
	struct bundle_rec rec = {
	    .start_ns = saved->start_ns,
	    .end_ns = saved->start_ns + saved->length_ns,
	    .sum_ns = saved->sum_ns,
	    .factor = bundle_rec_no_factors,
	    .series = saved->series,
	    .n = saved->n,
	    .flags = saved->flags,
	    .cell = saved->cell,
	    .max_ns = saved->max_ns,
	    .ratio = saved->ratio,
	    .reference = saved->reference,
	    .waited_ns = saved->waited_ns,
	    .reason = saved->reason,
	    .counted = saved->counted,
	};

	set_bits(&rec, saved->bits);
	return rec;
}

/* The last verdict of each series. */
struct verdict {
	float ratio, reference;
};

static void leave_out(struct saved_rec *saved, struct verdict *before)
{
	struct verdict verdict = {saved->ratio, saved->reference};

	if (saved->max_ns == (float)saved->sum_ns) {
		saved->bits |= MOST_IS_SUM;
		saved->max_ns = 0;
	}
	if (saved->sum_ns == (double)saved->length_ns) {
		saved->bits |= SUM_IS_LENGTH;
		saved->sum_ns = 0;
	}
	if (!memcmp(&verdict, before, sizeof(verdict))) {
		saved->bits |= VERDICT_AS_BEFORE;
		saved->ratio = saved->reference = 0;
	}
	*before = verdict;
}

static void fill_in(struct saved_rec *saved, struct verdict *before)
{
	struct verdict verdict = {saved->ratio, saved->reference};

	if (saved->bits & SUM_IS_LENGTH)
		saved->sum_ns = (double)saved->length_ns;
	if (saved->bits & MOST_IS_SUM)
		saved->max_ns = (float)saved->sum_ns;
	if (saved->bits & VERDICT_AS_BEFORE)
		verdict = *before;
	saved->ratio = verdict.ratio;
	saved->reference = verdict.reference;
	*before = verdict;
}

static bool possible_rec(const struct series_book *book, uint32_t job, const struct saved_rec *saved)
{
	const struct clusters *clusters;

	if (saved->series >= book->count || book->series[saved->series].job != job || !saved->n ||
	    saved->length_ns > UINT64_MAX - saved->start_ns || saved->reason >= VAPRO_UNCOVERED_REASONS ||
	    saved->flags >= VAPRO_BUNDLE_APPROX << 1 || !(saved->ratio > 0))
		return false;
	if (saved->cell >= BUNDLE_NO_WORKLOAD)
		return true;
	clusters = book->workloads[book->workloads[book->series[saved->series].workload].head].clusters;
	/* without counts no bundle has a cell, and the member is 0 */
	return clusters ? saved->cell < clusters__cells(clusters)->handle_count : !saved->cell;
}

static void write_recs(struct archive *archive, const struct series_book *book, const struct bundle_rec *recs,
		       size_t count, size_t capacity)
{
	struct verdict *verdicts = archive__take(archive, book->count, sizeof(*verdicts));
	struct saved_rec *saved = archive__take(archive, count, sizeof(*saved));
	struct saved_factors *factors = archive__take(archive, count, sizeof(*factors));
	size_t used = 0;

	for (size_t i = 0; saved && factors && verdicts && i < count; i++) {
		saved[i] = saved_of(&recs[i]);
		leave_out(&saved[i], &verdicts[recs[i].series]);
		if (saved[i].factors)
			memcpy(factors[used++].factor, recs[i].factor, sizeof(factors->factor));
	}
	archive__rows(archive, &rec_table, &saved, &count, &capacity);
	archive__rows(archive, &factor_table, &factors, &used, &used);
	free(verdicts);
	free(saved);
	free(factors);
}

static void read_recs(struct archive *archive, struct series_book *book, uint32_t job, struct bundle_rec **recs,
		      size_t *count, size_t *capacity)
{
	size_t saved_count = 0, room = 0, factor_count = 0, factor_room = 0, used = 0;
	struct saved_factors *factors = NULL;
	struct saved_rec *saved = NULL;
	struct verdict *verdicts;

	archive__rows(archive, &rec_table, &saved, &saved_count, &room);
	archive__rows(archive, &factor_table, &factors, &factor_count, &factor_room);
	*recs = room ? archive__take(archive, room, sizeof(**recs)) : NULL;
	*capacity = *recs ? room : 0;
	*count = 0;
	verdicts = archive__take(archive, book->count, sizeof(*verdicts));
	for (size_t i = 0; i < saved_count && !archive__error(archive); i++) {
		struct bundle_rec rec;

		if (archive__check(archive, saved[i].series < book->count, "a bundle has no history"))
			fill_in(&saved[i], &verdicts[saved[i].series]);
		rec = rec_of(&saved[i]);
		archive__check(archive, possible_rec(book, job, &saved[i]), "a bundle contradicts its history");
		archive__check(archive, !saved[i].factors || used < factor_count, "a bundle lacks its factors");
		if (archive__error(archive))
			break;
		if (saved[i].factors) {
			float *own = pool__take(&book->factors);

			if (!own) {
				archive__fail(archive, -ENOMEM, "out of memory");
				break;
			}
			memcpy(own, factors[used++].factor, sizeof(factors->factor));
			rec.factor = own;
		}
		(*recs)[(*count)++] = rec;
	}
	free(verdicts);
	free(saved);
	free(factors);
}

void series__archive_recs(struct archive *archive, struct series_book *book, uint32_t job, struct bundle_rec **recs,
			  size_t *count, size_t *capacity)
{
	if (archive__reads(archive))
		read_recs(archive, book, job, recs, count, capacity);
	else
		write_recs(archive, book, *recs, *count, *capacity);
}
