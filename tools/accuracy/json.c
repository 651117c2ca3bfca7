/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Unknown values are null. */
static void number(cJSON *object, const char *name, double value)
{
	if (isnan(value))
		cJSON_AddNullToObject(object, name);
	else
		cJSON_AddNumberToObject(object, name, round(value * 1e6) / 1e6);
}

static cJSON *of_truth(const struct truth_score *at)
{
	cJSON *object = cJSON_CreateObject();

	cJSON_AddStringToObject(object, "class", vapro_class_name[at->class]);
	cJSON_AddStringToObject(object, "ranks", at->ranks);
	cJSON_AddStringToObject(object, "expected", score__finding_name[at->expected]);
	cJSON_AddStringToObject(object, "apart", score__apart_name[at->apart]);
	number(object, "begin", at->begin);
	number(object, "end", at->end);
	number(object, "lost_seconds", at->lost);
	number(object, "ratio", at->ratio);
	number(object, "batches_before", at->batches);
	cJSON_AddBoolToObject(object, "attributed", at->attributed);
	cJSON_AddBoolToObject(object, "found", at->hit);
	if (!at->hit) {
		cJSON_AddStringToObject(object, "nearest", at->near);
		return object;
	}
	cJSON_AddStringToObject(object, "by", at->by);
	cJSON_AddStringToObject(object, "cause", at->cause);
	cJSON_AddBoolToObject(object, "kept", at->retained);
	number(object, "jaccard", at->jaccard);
	number(object, "overlap", at->overlap);
	number(object, "begin_error", at->begin_error);
	number(object, "end_error", at->end_error);
	number(object, "fragment_seconds", at->length);
	cJSON_AddBoolToObject(object, "times_good", at->times_good);
	cJSON_AddBoolToObject(object, "times_vague", at->vague || at->grows);
	number(object, "loss_error", at->lost_error);
	number(object, "delay", at->delay);
	number(object, "found_ratio", at->found_ratio);
	number(object, "further_variances", at->parts);
	return object;
}

static cJSON *of_alarm(const struct alarm_score *at)
{
	cJSON *object = cJSON_CreateObject();

	cJSON_AddStringToObject(object, "is", score__alarm_name[at->kind]);
	cJSON_AddStringToObject(object, "class", vapro_class_name[at->class]);
	cJSON_AddStringToObject(object, "ranks", at->ranks);
	number(object, "begin", at->begin);
	number(object, "end", at->end);
	number(object, "lost_seconds", at->lost);
	cJSON_AddStringToObject(object, "evidence", at->evidence);
	return object;
}

static cJSON *of_paper(const struct run *run)
{
	cJSON *object = cJSON_CreateObject();

	cJSON_AddStringToObject(object, "study", papers__find(run->at->kind)->study);
	cJSON_AddBoolToObject(object, "demanded", run->paper.judged);
	cJSON_AddBoolToObject(object, "good", run->paper.good);
	cJSON_AddStringToObject(object, "wanted", run->paper.wanted);
	cJSON_AddStringToObject(object, "found", run->paper.found);
	cJSON_AddStringToObject(object, "missing", run->paper.missing);
	return object;
}

/* Of a simple rule, on the same events. */
static cJSON *of_plain(const struct run *run)
{
	cJSON *object = cJSON_CreateObject(), *found = cJSON_AddArrayToObject(object, "found");

	for (uint32_t i = 0; i < run->score.truth_count; i++)
		cJSON_AddItemToArray(found, cJSON_CreateBool(run->plain.hit[i]));
	for (int i = 0; i < ALARM_KINDS; i++) {
		char name[32];

		snprintf(name, sizeof(name), "alarms_%s", score__alarm_name[i]);
		number(object, name, run->plain.by_kind[i]);
	}
	return object;
}

static cJSON *of_run(const struct run *run)
{
	cJSON *object = cJSON_CreateObject(), *truths, *alarms;

	cJSON_AddStringToObject(object, "part", run->at->part);
	cJSON_AddStringToObject(object, "kind", run->at->kind);
	cJSON_AddStringToObject(object, "name", run->name);
	cJSON_AddStringToObject(object, "mode", report__mode_name[run->source]);
	number(object, "seed", (double)run->seed);
	number(object, "fragment_ms", run->length_ms > 0 ? run->length_ms : NAN);
	number(object, "ranks", run->ranks);
	number(object, "seconds", run->seconds);
	number(object, "jitter", run->jitter);
	cJSON_AddBoolToObject(object, "cyclic", run->cyclic);
	cJSON_AddBoolToObject(object, "failed", run->failed);
	number(object, "bundles", (double)run->totals.bundles);
	number(object, "fragments", (double)run->totals.fragments);
	number(object, "coverage", run->coverage);
	number(object, "cpu_seconds", run->cpu_s);
	number(object, "rss_mib", run->rss_mib);
	number(object, "window_cpu_seconds_max", run->window_cpu_max);
	number(object, "variances", run->score.variances);
	number(object, "imbalances", run->score.imbalances);
	number(object, "drifts", run->score.drifts);
	number(object, "alarms_withdrawn", run->score.withdrawn);
	truths = cJSON_AddArrayToObject(object, "truths");
	for (uint32_t i = 0; i < run->score.truth_count; i++)
		cJSON_AddItemToArray(truths, of_truth(&run->score.truths[i]));
	alarms = cJSON_AddArrayToObject(object, "alarms");
	for (uint32_t i = 0; i < run->score.alarm_count; i++)
		cJSON_AddItemToArray(alarms, of_alarm(&run->score.alarms[i]));
	if (report__is_shape(run))
		cJSON_AddItemToObject(object, "robust_z", of_plain(run));
	if (papers__find(run->at->kind))
		cJSON_AddItemToObject(object, "paper", of_paper(run));
	return object;
}

static cJSON *of_mode(const struct run *runs, size_t count, enum vapro_workload_source source)
{
	cJSON *object = cJSON_CreateObject();
	struct summary_of sum;

	if (!report__sum(runs, count, source, NULL, &sum))
		return object;
	number(object, "jobs", sum.runs);
	number(object, "failed", sum.failed);
	number(object, "quiet", sum.quiet);
	number(object, "quiet_alarmed", sum.quiet_alarmed);
	number(object, "demanded", sum.demanded);
	number(object, "found", sum.hit);
	number(object, "places", sum.places);
	number(object, "places_found", sum.places_hit);
	number(object, "drifts", sum.drifts);
	number(object, "drifts_found", sum.drifts_hit);
	number(object, "stalls", sum.stalls);
	number(object, "stalls_found", sum.stalls_hit);
	number(object, "unsupported", sum.unsupported);
	number(object, "unsupported_found", sum.unsupported_hit);
	number(object, "below", sum.below);
	number(object, "below_found", sum.below_hit);
	for (int i = 0; i < ALARM_KINDS; i++) {
		char name[32];

		snprintf(name, sizeof(name), "alarms_%s", score__alarm_name[i]);
		number(object, name, sum.alarms[i]);
	}
	number(object, "split", sum.split);
	number(object, "lasting", sum.lasting);
	number(object, "lasting_good", sum.lasting_good);
	number(object, "loss_error_median", report__quantile(sum.loss, sum.loss_count, 0.5));
	number(object, "loss_error_p90", report__quantile(sum.loss, sum.loss_count, 0.9));
	number(object, "begin_error_median", report__quantile(sum.begin, sum.begin_count, 0.5));
	number(object, "begin_error_p99", report__quantile(sum.begin, sum.begin_count, 0.99));
	number(object, "end_error_median", report__quantile(sum.end, sum.end_count, 0.5));
	number(object, "end_error_p99", report__quantile(sum.end, sum.end_count, 0.99));
	number(object, "ratio_error_median", report__quantile(sum.ratio, sum.ratio_count, 0.5));
	report__free(&sum);
	return object;
}

static void add_modes(cJSON *root, const char *name, const struct run *runs, size_t count)
{
	cJSON *modes = cJSON_AddObjectToObject(root, name);

	for (int mode = 0; mode < JOB_MODES; mode++)
		cJSON_AddItemToObject(modes, report__mode_name[mode],
				      of_mode(runs, count, (enum vapro_workload_source)mode));
}

int report__json(const struct run *runs, size_t count, const char *directory)
{
	size_t others = report__others(runs, count);
	cJSON *root = cJSON_CreateObject(), *list;
	char path[512], *text;
	FILE *file;
	int bad = 1;

	add_modes(root, "modes", runs, others);
	add_modes(root, "shapes", runs + others, count - others);
	list = cJSON_AddArrayToObject(root, "jobs");
	for (size_t i = 0; i < count; i++)
		cJSON_AddItemToArray(list, of_run(&runs[i]));
	text = cJSON_Print(root);
	cJSON_Delete(root);
	snprintf(path, sizeof(path), "%s/accuracy.json", directory);
	mkdir("build", 0777);
	mkdir(directory, 0777);
	file = text ? fopen(path, "w") : NULL;
	if (file) {
		bad = fputs(text, file) < 0;
		bad |= fclose(file) != 0;
	}
	if (bad)
		fprintf(stderr, "accuracy: cannot write %s: %s\n", path, strerror(errno));
	free(text);
	return bad;
}
