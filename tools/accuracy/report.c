/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LASTING_DELAY_S 15
#define LASTING_LOSS 0.05

const char *const report__mode_name[JOB_MODES] = {
    [VAPRO_BY_ARGUMENTS] = "arguments",
    [VAPRO_BY_INSTRUCTIONS] = "counts",
};

/* What one run shows, in a few words. */
static void verdict_of(const struct run *run, char *text, size_t size)
{
	const struct score *score = &run->score;
	unsigned demanded = 0, hit = 0;
	size_t used;

	if (run->failed) {
		snprintf(text, size, "FAILED to run");
		return;
	}
	for (uint32_t i = 0; i < score->truth_count; i++) {
		demanded += score->truths[i].apart == APART_NOT;
		hit += score->truths[i].apart == APART_NOT && score->truths[i].hit;
	}
	used = (size_t)snprintf(text, size, "%u of %u faults", hit, demanded);
	for (int kind = ALARM_PART; kind < ALARM_KINDS; kind++) {
		if (score->by_kind[kind])
			used += (size_t)snprintf(text + used, size - used, ", %u %s", score->by_kind[kind],
						 score__alarm_name[kind]);
	}
	if (score->withdrawn)
		snprintf(text + used, size - used, ", %u withdrawn", score->withdrawn);
}

void report__progress(const struct run *run, size_t finished, size_t count)
{
	char verdict[128];

	verdict_of(run, verdict, sizeof(verdict));
	fprintf(stderr, "%4zu/%zu %-28s seed %-3llu %-9s %5.1f s %5.0f MiB  %s\n", finished, count, run->name,
		(unsigned long long)run->seed, report__mode_name[run->source], run->cpu_s, run->rss_mib, verdict);
}

void report__verbose(const struct run *run, const struct findings *findings, FILE *out)
{
	const struct score *score = &run->score;

	fprintf(out, "== %s seed %llu %s: %d ranks, %.0f s, jitter %.1f %%%s\n", run->name,
		(unsigned long long)run->seed, report__mode_name[run->source], run->ranks, run->seconds,
		100 * run->jitter, run->cyclic ? ", cyclic" : "");
	for (uint32_t i = 0; i < score->truth_count; i++) {
		const struct truth_score *at = &score->truths[i];

		fprintf(out, "  TRUTH %-13s %8.3f..%8.3f lost %8.3f ranks %s x %.3f, expected %s%s%s: ",
			vapro_class_name[at->class], at->begin, at->end, at->lost, at->ranks, at->ratio,
			score__finding_name[at->expected], at->apart ? ", apart: " : "", score__apart_name[at->apart]);
		if (!at->hit)
			fprintf(out, "not found\n");
		else
			fprintf(
			    out,
			    "%s, ranks %.2f time %.2f, begin off %.3f end off %.3f loss off %+.1f %% after %.1f s%s "
			    "(%s)\n",
			    at->by, at->jaccard, at->overlap, at->begin_error, at->end_error, 100 * at->lost_error,
			    at->delay, at->retained ? "" : " NOT RETAINED", at->cause);
	}
	for (uint32_t i = 0; i < score->alarm_count; i++) {
		const struct alarm_score *at = &score->alarms[i];

		if (at->kind != ALARM_HIT)
			fprintf(out, "  %-11s %-13s %8.3f..%8.3f lost %8.3f ranks %s\n", score__alarm_name[at->kind],
				vapro_class_name[at->class], at->begin, at->end, at->lost, at->ranks);
	}
	fprintf(out, "  found:\n");
	findings__print(findings, out);
}

static int compare(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

double report__quantile(const double *sorted, size_t count, double part)
{
	double at = part * (double)(count - 1);
	size_t low = (size_t)at;

	if (!count)
		return NAN;
	if (low + 1 >= count)
		return sorted[count - 1];
	return sorted[low] + (at - (double)low) * (sorted[low + 1] - sorted[low]);
}

static void sum_lasting(const struct truth_score *at, struct summary_of *sum)
{
	bool late = !at->hit || !(at->delay <= LASTING_DELAY_S), dropped = !at->hit || !at->retained;
	bool loss = !at->hit || !(fabs(at->lost_error) <= LASTING_LOSS);

	sum->lasting++;
	sum->late += late;
	sum->dropped += dropped;
	sum->lasting_loss += loss;
	sum->lasting_good += !late && !dropped && !loss;
}

static void sum_hit(const struct truth_score *at, struct summary_of *sum)
{
	if (!isnan(at->found_ratio) && at->expected != FINDING_DRIFT && at->rank_count > 1 && !at->vague)
		sum->ratio[sum->ratio_count++] = fabs(at->found_ratio / at->ratio - 1);
	if (at->vague || isnan(at->lost_error))
		return;
	sum->loss[sum->loss_count++] = fabs(at->lost_error);
	/* slower ones than that have no sharp border */
	if (at->ratio < 1.175 || at->grows)
		return;
	sum->begin[sum->begin_count++] = at->begin_error;
	sum->end[sum->end_count++] = at->end_error;
	sum->times++;
	sum->times_good += at->times_good;
}

static void tally(unsigned *truths, unsigned *found, bool hit)
{
	++*truths;
	*found += hit;
}

static void sum_truth(const struct run *run, const struct truth_score *at, struct summary_of *sum)
{
	bool hit = at->hit;

	if (at->apart == APART_UNSUPPORTED)
		tally(&sum->unsupported, &sum->unsupported_hit, hit);
	else if (at->apart == APART_BELOW)
		tally(&sum->below, &sum->below_hit, hit);
	else if (at->apart == APART_FREE)
		tally(&sum->free, &sum->free_hit, hit);
	else if (at->stall)
		tally(&sum->stalls, &sum->stalls_hit, hit);
	else if (at->expected == FINDING_PLACE)
		tally(&sum->places, &sum->places_hit, hit);
	else if (at->expected == FINDING_DRIFT)
		tally(&sum->drifts, &sum->drifts_hit, hit);
	if (at->apart != APART_NOT)
		return;
	if (at->expected == FINDING_ALARM) {
		/* stalls have a bar of their own */
		sum->demanded += !at->stall;
		sum->hit += hit && !at->stall;
		sum->all_hit += hit;
		sum->split += hit && at->parts;
		if (run->at->type & CASE_LASTING)
			sum_lasting(at, sum);
	}
	if (hit)
		sum_hit(at, sum);
}

bool report__sum(const struct run *runs, size_t count, enum vapro_workload_source source, const char *kind,
		 struct summary_of *sum)
{
	size_t room = 1;

	for (size_t i = 0; i < count; i++)
		room += runs[i].score.truth_count;
	*sum = (struct summary_of){
	    .loss = calloc(room, sizeof(double)),
	    .begin = calloc(room, sizeof(double)),
	    .end = calloc(room, sizeof(double)),
	    .ratio = calloc(room, sizeof(double)),
	};
	if (!sum->loss || !sum->begin || !sum->end || !sum->ratio)
		return false;
	for (size_t i = 0; i < count; i++) {
		const struct run *run = &runs[i];
		const struct score *score = &run->score;
		unsigned wrong = score->by_kind[ALARM_FALSE] + score->by_kind[ALARM_WRONG_CLASS];

		if (run->source != source || (kind && strcmp(kind, run->at->kind)))
			continue;
		sum->runs++;
		sum->failed += run->failed;
		for (int at = 0; at < ALARM_KINDS; at++)
			sum->alarms[at] += score->by_kind[at];
		if (run->at->type & CASE_QUIET) {
			sum->quiet++;
			sum->quiet_alarmed += wrong > 0;
			sum->quiet_stalled += score->stalls > 0;
		}
		for (uint32_t at = 0; at < score->truth_count; at++)
			sum_truth(run, &score->truths[at], sum);
	}
	qsort(sum->loss, sum->loss_count, sizeof(double), compare);
	qsort(sum->begin, sum->begin_count, sizeof(double), compare);
	qsort(sum->end, sum->end_count, sizeof(double), compare);
	qsort(sum->ratio, sum->ratio_count, sizeof(double), compare);
	return true;
}

void report__free(struct summary_of *sum)
{
	free(sum->loss);
	free(sum->begin);
	free(sum->end);
	free(sum->ratio);
}
