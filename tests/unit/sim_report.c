/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The reports of the analysis on a simulated job. */
#include "sim.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "written_records.h"
#include "report/window_json.h"

static struct sim_found *find(struct sim_report *report, uint64_t id)
{
	for (int i = 0; i < report->found_count; i++) {
		if (report->found[i].id == id)
			return &report->found[i];
	}
	assert_true(report->found_count < SIM_FOUND);
	memset(&report->found[report->found_count], 0, sizeof(*report->found));
	report->found[report->found_count].id = id;
	return &report->found[report->found_count++];
}

static void note(struct sim_report *report, const struct result_variance *v)
{
	struct sim_found *f = find(report, v->id);
	double most = 0;

	assert_int_equal(v->revision, f->reports);
	assert_true(f->reports ? v->state != VAPRO_REGION_OPEN : v->state != VAPRO_REGION_CHANGED);
	f->effect_of = v->effect_of;
	f->class = v->class;
	f->state = v->state;
	f->alarm = v->alarm;
	f->ever_alarm |= v->alarm;
	f->confirmed = v->confirmed;
	f->still_open = v->still_open;
	f->ever_open |= v->still_open;
	f->begin = ((double)v->begin_ns - (double)SIM_BEGIN_NS) / 1e9;
	f->end = ((double)v->end_ns - (double)SIM_BEGIN_NS) / 1e9;
	f->lost = v->lost_seconds;
	f->observed = v->observed;
	f->whole_lost = v->whole_lost_seconds;
	memcpy(f->lost_by_class, v->lost_by_class, sizeof(f->lost_by_class));
	f->performance = v->performance;
	f->ratio_slow = v->ratio_slow;
	f->site_ratio = v->site_count ? v->sites[0].ratio : 0;
	f->rank_count = v->thread_count ? v->thread_count : v->rank_count;
	f->first_rank = v->thread_count ? v->threads[0].thread : v->ranks[0];
	f->last_rank = v->thread_count ? v->threads[v->thread_count - 1].thread : v->ranks[v->rank_count - 1];
	snprintf(f->who, sizeof(f->who), "%s", v->who);
	f->reports++;
	f->closed += v->state == VAPRO_REGION_CLOSED;
	f->culprits = v->culprit_count;
	f->culprit = v->culprit_count ? v->culprits[0].rank : -1;
	f->exemplars = v->exemplar_count;
	f->sites = v->site_count;
	f->samples = v->inside_samples;
	f->hottest_samples = v->inside_count ? v->inside[0].samples : 0;
	snprintf(f->hottest, sizeof(f->hottest), "%s", v->inside_count ? v->inside[0].site : "");
	snprintf(f->evidence, sizeof(f->evidence), "%s", v->evidence);
	snprintf(f->advice, sizeof(f->advice), "%s", v->diagnosis.advice);
	memset(f->level_sum, 0, sizeof(f->level_sum));
	f->major[0] = 0;
	f->preempted = 0;
	for (uint32_t i = 0; i < v->diagnosis.factor_count; i++) {
		const struct result_factor *factor = &v->diagnosis.factors[i];

		if (!factor->implied && (!factor->parent || !strcmp(factor->parent, "suspension")))
			f->level_sum[factor->stage] += factor->contribution;
		if (!strcmp(factor->name, "preempted"))
			f->preempted = factor->contribution;
		if (factor->major && strcmp(factor->name, "suspension") && factor->impact_seconds > most) {
			most = factor->impact_seconds;
			snprintf(f->major, sizeof(f->major), "%s", factor->name);
		}
	}
	f->interferer[0] = 0;
	f->oversubscribed = v->diagnosis.oversubscribed;
	if (v->diagnosis.interferer_count) {
		snprintf(f->interferer, sizeof(f->interferer), "%.15s", v->diagnosis.interferers[0].comm);
		f->interferer_pid = v->diagnosis.interferers[0].pid;
		f->interferer_seconds = v->diagnosis.interferers[0].seconds;
		f->relation = v->diagnosis.interferers[0].relation;
	}
}

/* Leaves the window's records: a report begins a run. */
static void write_records(const struct sim_report *report, const struct job_result *r)
{
	const struct json_context context = {.host = "n1"};
	static FILE *file;

	if (!report->windows) {
		if (file)
			fclose(file);
		file = written_records__open();
	}
	if (!file)
		return;
	assert_int_equal(window_json__put(r, &context, written_records__put, file), 0);
	fflush(file);
}

void sim_read(struct sim_report *report, const struct job_result *r)
{
	write_records(report, r);
	report->windows++;
	report->coverage_last = r->coverage_total;
	report->coverage_max = fmax(report->coverage_max, r->coverage_total);
	report->coverage_computation = r->coverage[VAPRO_COMPUTATION];
	report->coverage_communication = r->coverage[VAPRO_COMMUNICATION];
	report->performance = r->performance[VAPRO_COMPUTATION];
	report->drifts += (int)r->drift_count;
	report->imbalances += (int)r->imbalance_count;
	if (r->imbalance_count)
		report->imbalance = r->imbalances[0];
	report->rares += (int)r->rare_count;
	report->partial = r->partial;
	report->bundles += r->bundles;
	report->governed = report->not_seen = 0;
	for (uint32_t i = 0; i < r->uncovered_count; i++) {
		if (r->uncovered[i].reason == VAPRO_GOVERNED)
			report->governed = r->uncovered[i].share;
		if (r->uncovered[i].reason == VAPRO_NOT_SEEN)
			report->not_seen = r->uncovered[i].share;
	}
	for (uint32_t i = 0; i < r->heatmap_count; i++) {
		const struct result_heatmap *map = &r->heatmaps[i];

		report->emitted_again += map->revision > 0;
		for (uint32_t row = 0; row < map->row_count; row++)
			report->thread_lines += map->rows[row].thread >= 0;
		/* Only maps that reach back have bins before the new part. */
		assert_true(map->begin_ns <= r->begin_ns);
		assert_int_equal(map->begin_ns % VAPRO_BIN_NS, 0);
		for (uint32_t row = 0; row < map->row_count; row++) {
			for (uint32_t bin = 0; bin < map->bins; bin++) {
				double v = map->rows[row].values[bin];

				assert_true(isnan(v) || (v >= 0 && v <= 1));
			}
		}
	}
	for (uint32_t i = 0; i < r->variance_count; i++)
		note(report, &r->variances[i]);
}

const struct sim_found *sim_alarm(const struct sim_report *report)
{
	const struct sim_found *best = NULL;

	for (int i = 0; i < report->found_count; i++) {
		if (report->found[i].alarm && (!best || report->found[i].lost > best->lost))
			best = &report->found[i];
	}
	return best;
}

void sim_print(const struct sim_report *report)
{
	static const char *const states[] = {"open", "changed", "closed"};

	printf("windows %d coverage %.3f (max %.3f) perf %.3f alarms %d/%d drifts %d imbalances %d rares %d retold %d "
	       "governed %.3f not_seen %.3f bundles %llu\n",
	       report->windows, report->coverage_last, report->coverage_max, report->performance, report->alarms,
	       report->ever_alarms, report->drifts, report->imbalances, report->rares, report->emitted_again,
	       report->governed, report->not_seen, (unsigned long long)report->bundles);
	for (int i = 0; i < report->found_count; i++) {
		const struct sim_found *f = &report->found[i];

		printf(" #%llu %s %s%s%s effect_of %llu [%.1f,%.1f) ranks %d..%d (%u) lost %.3f (%.3f %.3f %.3f) perf "
		       "%.2f "
		       "major %s hog %s %.2f reported %u culprit %d: %s | %s\n",
		       (unsigned long long)f->id, vapro_class_name[f->class], states[f->state],
		       f->alarm ? " ALARM" : "", f->ever_alarm && !f->alarm ? " (was alarm)" : "",
		       (unsigned long long)f->effect_of, f->begin, f->end, f->first_rank, f->last_rank, f->rank_count,
		       f->lost, f->lost_by_class[0], f->lost_by_class[1], f->lost_by_class[2], f->performance, f->major,
		       f->interferer, f->interferer_seconds, f->reports, f->culprit, f->evidence, f->advice);
	}
}
