/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "model/judge.h"

#include "model/alike.h"
#include "base/grow.h"
#include "model/own_part.h"
#include "model/reference.h"
#include "model/scatter.h"
#include "model/typical.h"

#include <math.h>

/* A single fragment that lasts this long is reported even where its state has little history. */
#define STUCK_NS 1e9
#define SUPPORTED_SHARE 0.4

/* Fragments that a series needs; fewer where other ranks do the same in the same time. */
static double enough_of(const struct vapro_config *config, const struct series *series)
{
	double all = (double)config->certify_fragments;

	return series->supported ? SUPPORTED_SHARE * all : all;
}

static void refresh_series(const struct vapro_config *config, struct series *series)
{
	struct reference cpu = reference__of(&series->cpu, config), net = cpu;

	series->dirty = false;
	series->own_ns = cpu.expected_ns;
	series->asleep_ns = 0;
	if (series->net.n > 0) {
		net = reference__of(&series->net, config);
		series->asleep_ns = fmax(0, net.expected_ns - cpu.expected_ns);
	}
	if (series->settled)
		return;
	if (series->cpu.sum_ns > 0)
		cpu.near_share = fmin(cpu.near_share, 1 - series->wide_ns / series->cpu.sum_ns);
	series->certified = series->cpu.n >= enough_of(config, series) &&
			    (series->proven || (cpu.groups && cpu.near_share >= config->certify_share));
	/* A state whose sleep varies at will has no fixed duration, whatever its time on the CPU. */
	if (series->net.n > 0 && net.near_share < config->certify_share && series->cpu.sum_ns < series->net.sum_ns / 2)
		series->certified = false;
	series->settled = series->certified && series->cpu.n >= 2 * (double)config->certify_fragments;
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

static void judge_stuck(const struct series_book *book, struct kept *kept, const struct series *series)
{
	if (kept->n != 1 || kept->sum_ns < STUCK_NS)
		return;
	if (series->cpu.n >= (double)book->config->rare_members && series->own_ns < kept->sum_ns)
		kept->reference = (float)series->own_ns;
	else
		kept->reference = (float)labels_reference(book, series);
	/* A helper thread that sleeps in a read of its event pipe is normal. */
	kept->blind = kept->reference <= 0;
	kept->covered = !kept->blind || !stg__state(book->stg, series->state)->peer;
}

static void judge_cluster(const struct series_book *book, struct kept *kept, const struct series *series)
{
	const struct clusters *clusters = book->workloads[book->workloads[series->workload].head].clusters;
	const struct cluster *cluster;

	kept->reason = VAPRO_NO_WORKLOAD;
	if (kept->cell == KEPT_NO_WORKLOAD)
		return;
	kept->reason = VAPRO_FEW_FRAGMENTS;
	cluster = clusters && kept->cell != KEPT_NO_CELL ? clusters__of(clusters, kept->cell) : NULL;
	if (!cluster)
		return;
	kept->reason = VAPRO_RARE;
	if (cluster->members < book->config->rare_members)
		return;
	kept->reason = VAPRO_WARM_UP;
	if (kept->warm_up && book->config->reference != VAPRO_REFERENCE_FASTEST)
		return;
	if (book->config->reference == VAPRO_REFERENCE_FASTEST || series->reference_ns <= 0) {
		kept->reference = (float)cluster->fastest_ns;
		kept->provisional = book->config->reference != VAPRO_REFERENCE_FASTEST;
	} else {
		kept->reference = (float)(series->reference_ns + series->asleep_ns);
		kept->provisional = !series->supported;
	}
	kept->reason = VAPRO_COVERED;
	kept->covered = kept->certified = 1;
}

/* Judges work that may vary, by attributed time alone. */
static void judge_attributed(const struct vapro_config *config, struct kept *kept)
{
	double own = kept->sum_ns - kept__cpu_attributed(kept);

	if (kept->covered || kept->reason == VAPRO_NO_RETURN || own >= config->threshold * kept->sum_ns)
		return;
	kept->reference = (float)(fmax(0, own) / kept->n);
	kept->covered = kept->taken = 1;
}

/* Judges IO whose durations spread, except on pipes: the time of the other end has no distribution. */
static void judge_scattered(const struct series_book *book, struct kept *kept, const struct series *series)
{
	if (stg__state(book->stg, series->state)->peer)
		return;
	kept->certified = 1;
	kept->reason = VAPRO_COVERED;
	if (scatter__judges(series))
		kept->reference = (float)scatter__reference(series, kept);
}

void judge__bundle(const struct series_book *book, struct kept *kept)
{
	const struct series *series = &book->series[kept->series];
	bool enough = series->cpu.n >= enough_of(book->config, series);

	kept->covered = kept->certified = kept->blind = kept->taken = kept->provisional = 0;
	kept->reference = 0;
	kept->usual_frequency = series->usual_frequency * kept->ratio;
	if (series->class == VAPRO_COMPUTATION && book->source == VAPRO_BY_INSTRUCTIONS) {
		judge_cluster(book, kept, series);
		judge_attributed(book->config, kept);
		return;
	}
	/* Without returns a time is from entry to entry, waiting and work in one: it cannot be judged. */
	if (book->config->no_return || stg__state(book->stg, series->state)->no_return) {
		kept->reason = VAPRO_NO_RETURN;
		return;
	}
	if (kept->warm_up) {
		kept->reason = enough ? VAPRO_WARM_UP : VAPRO_FEW_FRAGMENTS;
		judge_attributed(book->config, kept);
		return;
	}
	kept->certified = series->certified;
	kept->reason = series->certified ? VAPRO_COVERED : enough ? VAPRO_SPREAD : VAPRO_FEW_FRAGMENTS;
	if (series->certified || (enough && series->class != VAPRO_COMPUTATION)) {
		kept->covered = 1;
		kept->provisional = !series->supported;
		kept->reference = (float)(series->reference_ns * kept->ratio + series->asleep_ns);
		if (series->class == VAPRO_IO)
			judge_scattered(book, kept, series);
		return;
	}
	if (series->class == VAPRO_COMPUTATION)
		judge_attributed(book->config, kept);
	else
		judge_stuck(book, kept, series);
}

void judge__usual(struct series_book *book, uint32_t job)
{
	for (size_t i = 0; i < book->count; i++) {
		struct series *series = &book->series[i];

		if (series->job == job)
			series->usual_blocked = series->class == VAPRO_COMMUNICATION ? 0 : (float)usual_blocked(series);
	}
}
