/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "model/judge.h"

#include "model/alike.h"
#include "base/grow.h"
#include "model/judgement.h"
#include "model/own_part.h"
#include "model/reference.h"
#include "model/scatter.h"
#include "model/typical.h"
#include "model/job_series.h"

#include <math.h>

/*
 * Fragments that a series needs; fewer where other ranks do the same in the same time, and where the work of all ranks
 * is one history.
 */
static double enough_of(const struct vapro_config *config, const struct series *series)
{
	double all = (double)config->certify_fragments;

	if (!series->supported)
		return all;
	if (series->class == VAPRO_IO)
		return (double)config->rare_members;
	return all < LEAST_FRAGMENTS ? all : LEAST_FRAGMENTS;
}

static void refresh_series(const struct vapro_config *config, struct series *series)
{
	struct reference cpu = reference__of(&series->cpu, config), net = cpu;

	series->dirty = false;
	series->own_ns = cpu.expected_ns;
	series->duration_ns = (float)cpu.expected_ns;
	series->asleep_ns = 0;
	if (series->net.n > 0) {
		net = reference__of(&series->net, config);
		series->asleep_ns = fmax(0, net.expected_ns - cpu.expected_ns);
	}
	if (series->final)
		return;
	if (series->cpu.sum_ns > 0)
		cpu.near_share = fmin(cpu.near_share, 1 - series->wide_ns / series->cpu.sum_ns);
	series->certified = series->cpu.n >= enough_of(config, series) &&
			    (series->proven || (cpu.groups && cpu.near_share >= config->certify_share));
	/* A state whose sleep varies at will has no fixed duration, whatever its time on the CPU. */
	if (series->net.n > 0 && net.near_share < config->certify_share && series->cpu.sum_ns < series->net.sum_ns / 2)
		series->certified = false;
	series->final = series->certified && series->cpu.n >= 2 * (double)config->certify_fragments;
}

int judge__refresh(struct series_book *book)
{
	alike__forget(book->alike);
	for (size_t i = 0; i < book->count; i++) {
		if (book->series[i].dirty)
			refresh_series(book->config, &book->series[i]);
	}
	for (size_t i = 0; i < book->workload_count; i++) {
		struct workload *workload = &book->workloads[i];

		if (!workload->dirty)
			continue;
		if (workload->clusters && clusters__form(workload->clusters))
			return -ENOMEM;
		if (typical__refresh(book, workload))
			return -ENOMEM;
		if (workload->class == VAPRO_COMMUNICATION)
			own_part__refresh(book, workload);
		if (workload->class == VAPRO_IO)
			scatter__refresh(book, workload);
	}
	return 0;
}

static double usual_blocked(const struct series *series)
{
	double n = series->normal.n + series->normal_live.n, ns = 0;

	for (int i = VAPRO_BLOCKED_IO; i <= VAPRO_BLOCKED_OTHER; i++)
		ns += series->normal.factor[i] + series->normal_live.factor[i];
	return n > 0 ? ns / n : series->asleep_ns;
}

/*
 * The greatest reference of states with the same common labels: a lower one of another call-site could
 * raise a false alarm. Equal sizes come first. 0 where there is none.
 */
static double labels_reference(const struct series_book *book, const struct series *stuck)
{
	return alike__reference(book->alike, book, stuck);
}

static void judge_stuck(const struct series_book *book, struct bundle_rec *rec, const struct series *series)
{
	if (rec->n != 1 || rec->sum_ns < LONG_NS)
		return;
	if (series->cpu.n >= (double)book->config->rare_members && series->own_ns < rec->sum_ns)
		rec->reference = (float)series->own_ns;
	else
		rec->reference = (float)labels_reference(book, series);
	/* A helper thread that sleeps in a read of its event pipe is normal. */
	rec->no_reference = rec->reference <= 0;
	rec->covered = !rec->no_reference || !stg__state(book->stg, series->state)->peer;
}

static void judge_cluster(const struct series_book *book, struct bundle_rec *rec, const struct series *series)
{
	const struct clusters *clusters = book->workloads[book->workloads[series->workload].head].clusters;
	const struct cluster *cluster;

	rec->reason = VAPRO_NO_WORKLOAD;
	if (rec->cell == BUNDLE_NO_WORKLOAD)
		return;
	rec->reason = VAPRO_FEW_FRAGMENTS;
	cluster = clusters && rec->cell != BUNDLE_NO_CELL ? clusters__of(clusters, rec->cell) : NULL;
	if (!cluster)
		return;
	rec->reason = VAPRO_RARE;
	if (cluster->members < book->config->rare_members)
		return;
	rec->reason = VAPRO_WARM_UP;
	if (rec->warm_up && book->config->reference != VAPRO_REFERENCE_FASTEST)
		return;
	if (book->config->reference == VAPRO_REFERENCE_FASTEST || series->reference_ns <= 0) {
		rec->reference = (float)cluster->fastest_ns;
		rec->provisional = book->config->reference != VAPRO_REFERENCE_FASTEST;
	} else {
		rec->reference = (float)(series->reference_ns + series->asleep_ns);
		rec->provisional = !series->supported;
	}
	rec->reason = VAPRO_COVERED;
	rec->covered = rec->certified = 1;
}

/* Judges work that may vary, by attributed time alone: off the CPU, or on one that the machine reports to be slower. */
static void judge_attributed(const struct vapro_config *config, struct bundle_rec *rec)
{
	double own = rec->sum_ns - bundle_rec__cpu_attributed(rec) - bundle_rec__slowed(rec);

	if (rec->covered || rec->reason == VAPRO_NO_RETURN || own >= config->threshold * rec->sum_ns)
		return;
	rec->reference = (float)(fmax(0, own) / rec->n);
	rec->covered = rec->attributed_only = 1;
}

/* Judges IO whose durations spread, except on pipes: the time of the other end has no distribution. */
static void judge_scattered(const struct series_book *book, struct bundle_rec *rec, const struct series *series)
{
	if (stg__state(book->stg, series->state)->peer)
		return;
	rec->certified = 1;
	rec->reason = VAPRO_COVERED;
	if (scatter__judges(series))
		rec->reference = (float)scatter__reference(series, rec);
}

/* Time per fragment of a bundle that a usual frequency costs: of its workload, else of computation on such CPUs. */
static float usual_frequency(const struct series_book *book, const struct bundle_rec *rec, const struct series *series)
{
	if (rec->factor == bundle_rec_no_factors)
		return 0;
	if (series->usual_frequency >= 0)
		return series->usual_frequency * rec->ratio;
	return (1 - stg__job(book->stg, series->job)->rows[series->row].full_speed) *
	       (float)(bundle_rec__on_cpu(rec) / rec->n);
}

void judge__bundle(const struct series_book *book, struct bundle_rec *rec)
{
	const struct series *series = &book->series[rec->series];
	bool enough = series->cpu.n >= enough_of(book->config, series);

	rec->covered = rec->certified = rec->no_reference = rec->attributed_only = rec->provisional = 0;
	rec->occurrence = 0;
	rec->reference = rec->waited_ns = 0;
	bundle_rec__set_usual(rec, BUNDLE_USUAL_FREQUENCY, usual_frequency(book, rec, series));
	if (book->workloads[series->workload].mixed) {
		rec->reason = VAPRO_SPREAD;
		judge_attributed(book->config, rec);
		return;
	}
	if (series->class == VAPRO_COMPUTATION && book->source == VAPRO_BY_INSTRUCTIONS) {
		judge_cluster(book, rec, series);
		judge_attributed(book->config, rec);
		return;
	}
	/* Without returns a time is from entry to entry, waiting and work in one: it cannot be judged. */
	if (book->config->no_return || stg__state(book->stg, series->state)->no_return) {
		rec->reason = VAPRO_NO_RETURN;
		return;
	}
	if (rec->warm_up) {
		rec->reason = enough ? VAPRO_WARM_UP : VAPRO_FEW_FRAGMENTS;
		judge_attributed(book->config, rec);
		return;
	}
	rec->certified = series->certified;
	rec->reason = series->certified ? VAPRO_COVERED : enough ? VAPRO_SPREAD : VAPRO_FEW_FRAGMENTS;
	if (series->certified || (enough && series->class != VAPRO_COMPUTATION)) {
		rec->covered = 1;
		rec->provisional = !series->supported;
		rec->reference = (float)(series->reference_ns * rec->ratio + series->asleep_ns);
		if (series__is_other_work(series, rec)) {
			rec->covered = rec->certified = rec->provisional = 0;
			rec->reference = 0;
			rec->reason = VAPRO_SPREAD;
			judge_attributed(book->config, rec);
			return;
		}
		if (series->class == VAPRO_IO)
			judge_scattered(book, rec, series);
		return;
	}
	if (series->class == VAPRO_COMPUTATION)
		judge_attributed(book->config, rec);
	else
		judge_stuck(book, rec, series);
}

void judge__usual(struct series_book *book, uint32_t job)
{
	struct series_ids ids = job_series__ids(book, job);

	for (size_t i = 0; i < ids.count; i++) {
		struct series *series = &book->series[ids.ids[i]];

		series->usual_blocked = series->class == VAPRO_COMMUNICATION ? 0 : (float)usual_blocked(series);
	}
}
