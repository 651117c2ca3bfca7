/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "detect/tally.h"

#include "base/exact.h"
#include "base/grow.h"
#include "base/table.h"
#include "model/judgement.h"

#include <math.h>

/* Below this a search of the array is faster than hashing. */
enum { INDEX_FROM = 16 }; /* below this a search of the array is faster than hashing */

#define STRONG_SHARE 0.02 /* of a bundle's time: from there on a part was at work while the bundle lasted */

static struct tally_series *append(struct tally *tally, uint32_t series)
{
	uint32_t at = (uint32_t)tally->series_count;

	if (grow(&tally->series, &tally->series_capacity, tally->series_count + 1, sizeof(*tally->series)))
		return NULL;
	tally->series[tally->series_count++] = (struct tally_series){.series = series};
	if (tally->series_count < INDEX_FROM)
		return &tally->series[at];
	if (tally->index)
		return table__put(tally->index, series, 0, at) ? NULL : &tally->series[at];
	tally->index = table__new();
	for (uint32_t i = 0; tally->index && i < tally->series_count; i++) {
		if (table__put(tally->index, tally->series[i].series, 0, i))
			return NULL;
	}
	return tally->index ? &tally->series[at] : NULL;
}

const struct tally_series *tally__of(const struct tally *tally, uint32_t series)
{
	uint32_t at;

	if (tally->index)
		return table__get(tally->index, series, 0, &at) ? &tally->series[at] : NULL;
	for (size_t i = 0; i < tally->series_count; i++) {
		if (tally->series[i].series == series)
			return &tally->series[i];
	}
	return NULL;
}

static struct tally_series *find(struct tally *tally, uint32_t series)
{
	const struct tally_series *found = tally__of(tally, series);

	return found ? &tally->series[found - tally->series] : append(tally, series);
}

void tally__unlearn(struct tally *tally)
{
	for (size_t i = 0; i < tally->series_count; i++)
		tally->series[i].own = (struct series_usual){0};
}

/* Of equal excess the earlier comes first, so that the order of additions does not matter. */
static bool is_worse(const struct tally_worst *worst, const struct tally_worst *than)
{
	if (worst->excess != than->excess)
		return worst->excess > than->excess;
	if (worst->start_ns != than->start_ns)
		return worst->start_ns < than->start_ns;
	return worst->series < than->series;
}

static int add_worst(struct tally *tally, const struct tally_worst *worst)
{
	unsigned at = tally->worst_count;

	if (!tally->worst)
		tally->worst = malloc(TALLY_WORST * sizeof(*tally->worst));
	if (!tally->worst)
		return -ENOMEM;
	if (at == TALLY_WORST) {
		if (!is_worse(worst, &tally->worst[at - 1]))
			return 0;
		at--;
	} else {
		tally->worst_count++;
	}
	for (; at && is_worse(worst, &tally->worst[at - 1]); at--)
		tally->worst[at] = tally->worst[at - 1];
	tally->worst[at] = *worst;
	return 0;
}

/*
 * Whether calls were off the CPU and did nothing else beyond their usual time. A rank that is off the CPU while it
 * waits for others, too, would have waited as long without.
 */
static bool is_held_up(const struct loss *loss)
{
	return loss->lost - loss->cpu <= SHARE_MEANINGFUL * loss->cpu;
}

bool tally__is_held_up(const struct bundle_rec *rec)
{
	struct loss loss = bundle_rec__loss(rec);

	return is_held_up(&loss);
}

void tally__parts(const struct bundle_rec *rec, enum vapro_class class, double *parts)
{
	struct loss loss = bundle_rec__loss(rec);
	double blocked, asleep;

	memset(parts, 0, TALLY_PARTS * sizeof(*parts));
	if (rec->factor != bundle_rec_no_factors && (class != VAPRO_COMMUNICATION || is_held_up(&loss))) {
		parts[TALLY_PREEMPTED] =
		    (rec->waits ? 0 : (double)rec->factor[VAPRO_PREEMPTED]) + rec->factor[VAPRO_WAKEUP_WAIT];
		parts[TALLY_THROTTLED] = rec->factor[VAPRO_THROTTLED];
		parts[TALLY_STEAL] = rec->factor[VAPRO_STEAL];
		parts[TALLY_STOPPED] = rec->factor[VAPRO_STOPPED];
		parts[TALLY_IRQ] = rec->factor[VAPRO_IRQ];
	}
	/* in a call of communication sleep is a way of waiting */
	blocked = class == VAPRO_COMMUNICATION ? 0 : loss.blocked;
	asleep = blocked > 0 ? bundle_rec__blocked(rec) : 0;
	if (asleep > 0) {
		parts[TALLY_BLOCKED_IO] = blocked * rec->factor[VAPRO_BLOCKED_IO] / asleep;
		parts[TALLY_BLOCKED_OTHER] = blocked * rec->factor[VAPRO_BLOCKED_OTHER] / asleep;
	}
	parts[TALLY_OTHER] = loss.lost - loss.cpu - blocked;
}

static struct tally_cause *cause_of(struct tally *tally, struct tally_series *series, uint32_t part)
{
	for (uint32_t at = series->causes; at; at = tally->causes[at - 1].next) {
		if (tally->causes[at - 1].part == part)
			return &tally->causes[at - 1];
	}
	if (grow(&tally->causes, &tally->cause_capacity, tally->cause_count + 1, sizeof(*tally->causes)))
		return NULL;
	tally->causes[tally->cause_count++] =
	    (struct tally_cause){.series = series->series, .next = series->causes, .part = part};
	series->causes = (uint32_t)tally->cause_count;
	return &tally->causes[tally->cause_count - 1];
}

static void extend(struct tally_cause *cause, uint64_t begin, uint64_t end)
{
	if (begin >= end)
		return;
	if (cause->begin == cause->end) {
		cause->begin = begin;
		cause->end = end;
		return;
	}
	cause->begin = begin < cause->begin ? begin : cause->begin;
	cause->end = end > cause->end ? end : cause->end;
}

/* Adds the parts of a bundle's loss. */
static int add_causes(struct tally *tally, struct tally_series *series, const struct bundle_rec *rec,
		      enum vapro_class class, double share, uint64_t begin, uint64_t end)
{
	double parts[TALLY_PARTS];

	tally__parts(rec, class, parts);
	for (uint32_t part = 0; part < TALLY_PARTS; part++) {
		struct tally_cause *cause;

		if (part != TALLY_OTHER)
			tally->attributed[class] += exact__ns(parts[part] * share);
		if (!(parts[part] > 0) && part != TALLY_OTHER)
			continue;
		cause = cause_of(tally, series, part);
		if (!cause)
			return -ENOMEM;
		cause->lost += exact__ns(parts[part] * share);
		if (parts[part] >= STRONG_SHARE * rec->sum_ns)
			extend(cause, begin, end);
	}
	return 0;
}

int tally__add(struct tally *tally, const struct bundle_rec *rec, enum vapro_class class, double share, bool guest,
	       uint64_t begin, uint64_t end)
{
	struct loss loss = bundle_rec__loss(rec);
	double attributed = loss.cpu + (class == VAPRO_COMMUNICATION ? 0 : loss.blocked) + loss.frequency;
	double ref = exact__ns((double)rec->reference * rec->n * share), dur = exact__ns(rec->sum_ns * share);
	double lost = exact__ns(loss.lost * share), cpu = exact__ns(loss.cpu * share);
	struct tally_series *series;

	if (guest) {
		tally->lost[class] += cpu;
		tally->cpu[class] += cpu;
		return 0;
	}
	series = find(tally, rec->series);
	if (!series || add_causes(tally, series, rec, class, share, begin, end))
		return -ENOMEM;
	series->n += exact__count(bundle_rec__units(rec) * share);
	series->dur += dur;
	series->ref += ref;
	series->lost += lost;
	series->net += exact__ns((rec->sum_ns - attributed) * share);
	series->longest = fmax(series->longest, rec->max_ns);
	if (rec->learnt) {
		struct series_usual own = {0};

		series__add_usual(&own, class, rec);
		series__merge_usual(&series->own, &own, share);
	}
	tally->dur[class] += dur;
	tally->ref[class] += ref;
	tally->lost[class] += lost;
	tally->cpu[class] += cpu;
	tally->blocked[class] += exact__ns(loss.blocked * share);
	if (rec->factor[VAPRO_MAJOR_FAULTS] > 0)
		tally->faults += exact__ns(fmax(0, loss.lost - attributed) * share);
	if (class == VAPRO_COMPUTATION)
		tally->frequency += exact__ns(loss.frequency * share);
	if (rec->young)
		tally->young += exact__ns(fmax(0, loss.lost - loss.cpu) * share);
	if (rec->provisional)
		tally->provisional += exact__ns(fmax(0, loss.lost - loss.cpu) * share);
	if (rec->account)
		tally->account += lost;
	if (rec->no_reference)
		tally->no_reference += lost;
	if (rec->n == 1 && class == VAPRO_COMMUNICATION)
		tally->single_calls += lost;
	if (rec->occurrence)
		tally->occurrence += lost;
	for (int i = 0; i < VAPRO_FACTORS; i++)
		tally->factor[i] +=
		    i <= VAPRO_LAST_TIME ? exact__ns(rec->factor[i] * share) : exact__count(rec->factor[i] * share);
	if (rec->flags & VAPRO_BUNDLE_OPEN) {
		tally->open = true;
		series->open_n += exact__count(bundle_rec__units(rec) * share);
		series->open_dur += dur;
	}
	if (rec->n == 1 && share >= SHARE_MOST) {
		struct tally_worst worst = {
		    .excess = loss.lost,
		    .series = rec->series,
		    .start_ns = rec->start_ns,
		    .dur = rec->sum_ns,
		};

		memcpy(worst.factor, rec->factor, sizeof(worst.factor));
		return add_worst(tally, &worst);
	}
	return 0;
}

int tally__add_wait(struct tally *tally, const struct bundle_rec *rec, double share)
{
	double waited = exact__ns((double)rec->waited_ns * share);
	struct tally_series *series = find(tally, rec->series);

	if (!series)
		return -ENOMEM;
	series->n += exact__count(bundle_rec__units(rec) * share);
	series->dur += waited;
	series->lost += waited;
	tally->dur[VAPRO_COMMUNICATION] += waited;
	tally->lost[VAPRO_COMMUNICATION] += waited;
	tally->open |= (rec->flags & VAPRO_BUNDLE_OPEN) != 0;
	return 0;
}

void tally__add_cpu_wait(struct tally *tally, double seconds, const struct cpu_demand *oversubscribed)
{
	tally->cpu_waits += seconds;
	if (!oversubscribed)
		return;
	tally->own_waits += seconds;
	if (oversubscribed->threads > tally->demand.threads)
		tally->demand = *oversubscribed;
}

static void merge_series(struct tally_series *series, const struct tally_series *other)
{
	series->n += other->n;
	series->dur += other->dur;
	series->ref += other->ref;
	series->net += other->net;
	series->lost += other->lost;
	series->longest = fmax(series->longest, other->longest);
	series__merge_usual(&series->own, &other->own, 1);
	series->open_n += other->open_n;
	series->open_dur += other->open_dur;
}

/* Adds the causes of a series of another tally. */
static int merge_causes(struct tally *into, struct tally_series *series, const struct tally *from,
			const struct tally_series *other)
{
	for (uint32_t at = other->causes; at; at = from->causes[at - 1].next) {
		const struct tally_cause *more = &from->causes[at - 1];
		struct tally_cause *cause = cause_of(into, series, more->part);

		if (!cause)
			return -ENOMEM;
		cause->lost += more->lost;
		extend(cause, more->begin, more->end);
	}
	return 0;
}

int tally__merge(struct tally *into, const struct tally *from)
{
	for (int class = 0; class < VAPRO_CLASSES; class ++) {
		into->dur[class] += from->dur[class];
		into->ref[class] += from->ref[class];
		into->lost[class] += from->lost[class];
		into->cpu[class] += from->cpu[class];
		into->blocked[class] += from->blocked[class];
	}
	into->faults += from->faults;
	into->no_reference += from->no_reference;
	into->account += from->account;
	into->single_calls += from->single_calls;
	into->occurrence += from->occurrence;
	into->provisional += from->provisional;
	into->young += from->young;
	into->frequency += from->frequency;
	into->cpu_waits += from->cpu_waits;
	into->own_waits += from->own_waits;
	if (from->demand.threads > into->demand.threads)
		into->demand = from->demand;
	into->pair_lost += from->pair_lost;
	into->pair_base += from->pair_base;
	into->open |= from->open;
	for (int i = 0; i < VAPRO_FACTORS; i++)
		into->factor[i] += from->factor[i];
	for (int i = 0; i < VAPRO_CLASSES; i++)
		into->attributed[i] += from->attributed[i];
	for (int i = 0; i < TALLY_PARTS; i++)
		into->caused[i] += from->caused[i];
	for (size_t i = 0; i < from->series_count; i++) {
		const struct tally_series *other = &from->series[i];
		struct tally_series *series = find(into, other->series);

		if (!series)
			return -ENOMEM;
		merge_series(series, other);
		if (merge_causes(into, series, from, other))
			return -ENOMEM;
	}
	for (unsigned i = 0; i < from->worst_count; i++) {
		if (add_worst(into, &from->worst[i]))
			return -ENOMEM;
	}
	return 0;
}

void tally__clear(struct tally *tally)
{
	free(tally->series);
	free(tally->causes);
	free(tally->worst);
	table__free(tally->index);
	*tally = (struct tally){0};
}

size_t tally__bytes(const struct tally *tally)
{
	return tally->series_capacity * sizeof(*tally->series) + tally->cause_capacity * sizeof(*tally->causes) +
	       (tally->index ? table__bytes(tally->index) : 0) +
	       (tally->worst ? TALLY_WORST * sizeof(*tally->worst) : 0);
}

static const struct archive_column tally_columns[] = {
    ARCHIVE_MANY(struct tally, dur),	     ARCHIVE_MANY(struct tally, ref),
    ARCHIVE_MANY(struct tally, lost),	     ARCHIVE_MANY(struct tally, cpu),
    ARCHIVE_MANY(struct tally, blocked),     ARCHIVE_ONE(struct tally, faults),
    ARCHIVE_ONE(struct tally, no_reference), ARCHIVE_ONE(struct tally, account),
    ARCHIVE_ONE(struct tally, single_calls), ARCHIVE_ONE(struct tally, occurrence),
    ARCHIVE_ONE(struct tally, provisional),  ARCHIVE_ONE(struct tally, young),
    ARCHIVE_ONE(struct tally, frequency),    ARCHIVE_ONE(struct tally, cpu_waits),
    ARCHIVE_ONE(struct tally, own_waits),    ARCHIVE_ONE(struct tally, demand.threads),
    ARCHIVE_ONE(struct tally, demand.cpus),  ARCHIVE_ONE(struct tally, pair_lost),
    ARCHIVE_ONE(struct tally, pair_base),    ARCHIVE_MANY(struct tally, factor),
    ARCHIVE_ONE(struct tally, worst_count),  ARCHIVE_ONE(struct tally, open),
    ARCHIVE_MANY(struct tally, attributed),  ARCHIVE_MANY(struct tally, caused),
};
static const struct archive_table tally_table = ARCHIVE_TABLE("tally", struct tally, tally_columns);

static const struct archive_column cause_columns[] = {
    ARCHIVE_ONE(struct tally_cause, series), ARCHIVE_ONE(struct tally_cause, next),
    ARCHIVE_ONE(struct tally_cause, part),   ARCHIVE_ONE(struct tally_cause, lost),
    ARCHIVE_ONE(struct tally_cause, begin),  ARCHIVE_ONE(struct tally_cause, end),
};
static const struct archive_table cause_table = ARCHIVE_TABLE("tally causes", struct tally_cause, cause_columns);

static const struct archive_column share_columns[] = {
    ARCHIVE_ONE(struct tally_series, series),  ARCHIVE_ONE(struct tally_series, causes),
    ARCHIVE_ONE(struct tally_series, n),       ARCHIVE_ONE(struct tally_series, dur),
    ARCHIVE_ONE(struct tally_series, ref),     ARCHIVE_ONE(struct tally_series, net),
    ARCHIVE_ONE(struct tally_series, lost),    ARCHIVE_ONE(struct tally_series, longest),
    ARCHIVE_ONE(struct tally_series, open_n),  ARCHIVE_ONE(struct tally_series, open_dur),
    ARCHIVE_ONE(struct tally_series, own.n),   ARCHIVE_ONE(struct tally_series, own.bundles),
    ARCHIVE_ONE(struct tally_series, own.dur), ARCHIVE_ONE(struct tally_series, own.dur_sq),
    ARCHIVE_ONE(struct tally_series, own.net), ARCHIVE_ONE(struct tally_series, own.net_sq),
};
static const struct archive_table share_table = ARCHIVE_TABLE("tally series", struct tally_series, share_columns);

static const struct archive_column worst_columns[] = {
    ARCHIVE_ONE(struct tally_worst, excess),   ARCHIVE_ONE(struct tally_worst, series),
    ARCHIVE_ONE(struct tally_worst, start_ns), ARCHIVE_ONE(struct tally_worst, dur),
    ARCHIVE_MANY(struct tally_worst, factor),
};
static const struct archive_table worst_table = ARCHIVE_TABLE("worst", struct tally_worst, worst_columns);

/* Finds series again: only the first of equal ones would be found otherwise. */
static int index_series(struct tally *tally)
{
	if (tally->series_count < INDEX_FROM)
		return 0;
	tally->index = table__new();
	for (uint32_t i = 0; tally->index && i < tally->series_count; i++) {
		if (table__put(tally->index, tally->series[i].series, 0, i))
			return -ENOMEM;
	}
	return tally->index ? 0 : -ENOMEM;
}

void tally__archive(struct archive *archive, struct tally *tally, size_t series)
{
	size_t worst = tally->worst_count, room = tally->worst ? TALLY_WORST : 0;

	archive__record(archive, &tally_table, tally);
	archive__rows(archive, &share_table, &tally->series, &tally->series_count, &tally->series_capacity);
	archive__rows(archive, &cause_table, &tally->causes, &tally->cause_count, &tally->cause_capacity);
	archive__rows(archive, &worst_table, &tally->worst, &worst, &room);
	if (!archive__reads(archive))
		return;
	for (size_t i = 0; i < tally->cause_count; i++)
		archive__check(archive,
			       tally->causes[i].series < series && tally->causes[i].part < TALLY_PARTS &&
				   tally->causes[i].next <= i && tally->causes[i].begin <= tally->causes[i].end,
			       "a tally has an unknown cause");
	for (size_t i = 0; i < tally->series_count; i++)
		archive__check(archive, tally->series[i].causes <= tally->cause_count, "a tally has an unknown cause");
	archive__check(archive, worst == tally->worst_count && (room == TALLY_WORST || !room),
		       "a tally has too many worst fragments");
	for (size_t i = 0; i < tally->series_count; i++)
		archive__check(archive, tally->series[i].series < series, "a tally has an unknown history");
	for (size_t i = 0; i < worst; i++)
		archive__check(archive, tally->worst[i].series < series, "a tally has an unknown history");
	if (archive__error(archive))
		tally->worst_count = 0;
	else if (index_series(tally))
		archive__fail(archive, -ENOMEM, "out of memory");
}
