// SPDX-License-Identifier: GPL-2.0-or-later
#include "page/run_report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/printable.h"
#include "report/cause_text.h"
#include "report/json.h"
#include "report/record.h"

static void free_list(struct record_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		cJSON_Delete(list->items[i]);
	free(list->items);
	free(list->ids);
	*list = (struct record_list){0};
}

/* Adds a record to its list, which then owns it. */
static void keep(struct run_report *report, struct record_list *list, cJSON **line, uint64_t id)
{
	if (list->count >= RUN_REPORT_RECORDS) {
		report->dropped++;
		return;
	}
	if (grow(&list->items, &list->capacity, list->count + 1, sizeof(*list->items)) ||
	    grow(&list->ids, &list->id_capacity, list->count + 1, sizeof(*list->ids))) {
		report->out_of_memory = true;
		return;
	}
	list->ids[list->count] = id;
	list->items[list->count++] = *line;
	*line = NULL;
}

/* Returns whether a record is about a job, whose name may be that of a region: with harmless characters. */
static bool has_job(const cJSON *line, const char *job)
{
	const char *own = record__text(line, "job");
	char *harmless = printable(strdup(own ? own : ""));
	bool has = !strcmp(own ? own : "", job) || (harmless && !strcmp(harmless, job));

	free(harmless);
	return has;
}

/* Returns the place of the record of a region; list->count where there is none. */
static size_t find_record(const struct record_list *list, const char *job, uint64_t id)
{
	/* revisions follow each other closely: what is looked for is near the end */
	for (size_t i = list->count; i-- > 0;) {
		if (list->ids[i] == id && has_job(list->items[i], job))
			return i;
	}
	return list->count;
}

/* Keeps the latest record of each region; key: its member that has the region's number. */
static void keep_latest(struct run_report *report, struct record_list *list, cJSON **line, const char *key)
{
	const char *host = record__text(*line, "host"), *job = record__text(*line, "job");
	uint64_t id = summary__region_id(report->view.summary, host ? host : "", record__uint(*line, key));
	size_t at = find_record(list, job ? job : "", id);

	if (at == list->count) {
		keep(report, list, line, id);
		return;
	}
	cJSON_Delete(list->items[at]);
	list->items[at] = *line;
	*line = NULL;
}

static void see(void *arg, cJSON **line)
{
	struct run_report *report = arg;
	const char *type = record__text(*line, "type");

	report->lines++;
	if (report->progress)
		report->progress(report->lines, "lines");
	if (!strcmp(type, "variance"))
		keep_latest(report, &report->variances, line, "id");
	else if (!strcmp(type, "diagnosis") && !record__item(*line, "region"))
		keep_latest(report, &report->diagnoses, line, "variance");
	else if (!strcmp(type, "hello"))
		keep(report, &report->hellos, line, 0);
	else if (!strcmp(type, "bye"))
		keep(report, &report->byes, line, 0);
	else if (!strcmp(type, "warning"))
		keep(report, &report->warnings, line, 0);
	else if (!strcmp(type, "stage"))
		keep(report, &report->stages, line, 0);
}

int run_report__init(struct run_report *report)
{
	*report = (struct run_report){.start_ns = 0};
	if (view_model__init(&report->view))
		return -ENOMEM;
	report->view.seen = see;
	report->view.seen_arg = report;
	return 0;
}

void run_report__free(struct run_report *report)
{
	cause_list__free(&report->cause_list);
	causes__free(report->causes);
	view_model__free(&report->view);
	free(report->regions);
	free_list(&report->variances);
	free_list(&report->diagnoses);
	free_list(&report->hellos);
	free_list(&report->byes);
	free_list(&report->warnings);
	free_list(&report->stages);
	*report = (struct run_report){.start_ns = 0};
}

int run_report__add_file(struct run_report *report, FILE *file, int run, const char *name)
{
	int ret = view_model__add_file(&report->view, file, run, name);

	return !ret && report->out_of_memory ? -ENOMEM : ret;
}

static void include(struct run_report *report, uint64_t begin_ns, uint64_t end_ns)
{
	if (!report->start_ns || begin_ns < report->start_ns)
		report->start_ns = begin_ns;
	if (end_ns > report->end_ns)
		report->end_ns = end_ns;
}

static void find_times(struct run_report *report)
{
	const struct summary *summary = run_report__summary(report);

	for (size_t i = 0; i < report->view.map_count; i++) {
		const struct view_map *map = &report->view.maps[i];

		if (map->end)
			include(report, map->first * map->bin_ns, map->end * map->bin_ns);
	}
	for (size_t i = 0; i < summary->job_count; i++) {
		if (summary->jobs[i].end_ns)
			include(report, summary->jobs[i].begin_ns, summary->jobs[i].end_ns);
	}
}

/* Returns the record of a region, or NULL. */
static const cJSON *record_of(const struct record_list *list, const struct region *region)
{
	size_t at = find_record(list, region->job, region->id);

	return at < list->count ? list->items[at] : NULL;
}

static struct run_region *add_region(struct run_report *report, const struct region *region)
{
	struct run_region *own = &report->regions[report->region_count++];

	*own = (struct run_region){.region = region,
				   .variance = record_of(&report->variances, region),
				   .diagnosis = record_of(&report->diagnoses, region)};
	return own;
}

/* Numbers the regions as `vapro view` does, and those that waited beside them. */
static int number_regions(struct run_report *report)
{
	struct regions *regions = &report->view.summary->regions;
	unsigned number = 0;

	regions__sort(regions);
	report->regions = calloc(regions->count + 1, sizeof(*report->regions));
	if (!report->regions)
		return -ENOMEM;
	for (size_t i = 0; i < regions->count; i++) {
		const struct region *region = &regions->items[i];
		unsigned effects = 0;

		if (!region->class || regions__is_effect(regions, region))
			continue;
		snprintf(add_region(report, region)->number, sizeof(report->regions->number), "%u", ++number);
		for (size_t k = 0; k < regions->count; k++) {
			const struct region *effect = &regions->items[k];

			if (effect->class && effect->effect_of == region->id && !strcmp(effect->job, region->job) &&
			    effect != region)
				snprintf(add_region(report, effect)->number, sizeof(report->regions->number), "%u.%u",
					 number, ++effects);
		}
	}
	return 0;
}

int run_report__finish(struct run_report *report)
{
	view_model__sort(&report->view);
	find_times(report);
	summary__start(report->view.summary, report->view.start_ns);
	if (summary__causes(report->view.summary, &report->causes, &report->cause_list))
		return -ENOMEM;
	return number_regions(report);
}

const char *run_report__verdict(const struct run_report *report, char *text)
{
	const struct summary *summary = run_report__summary(report);
	bool judged = false, windows = false;

	if (report->cause_list.count) {
		const struct cause *cause = &report->cause_list.items[0];

		cause_text__write(cause, text);
		return cause->confirmed ? json_severity_name[cause->severity] : "unconfirmed";
	}
	snprintf(text, RUN_REPORT_VERDICT_SIZE, "no MPI or multi-threaded process was found");
	for (size_t i = 0; i < summary->job_count; i++) {
		const struct job_summary *job = &summary->jobs[i];

		windows |= job->end_ns > 0;
		judged |= job->end_ns && !job_summary__no_result(job, text, RUN_REPORT_VERDICT_SIZE);
	}
	if (judged) {
		snprintf(text, RUN_REPORT_VERDICT_SIZE, "no slow region found in what could be compared");
		return "quiet";
	}
	for (size_t i = 0; !windows && i < report->view.map_count; i++) {
		if (!report->view.maps[i].end)
			continue;
		snprintf(
		    text, RUN_REPORT_VERDICT_SIZE,
		    "no slow region was reported; the records have no window, so that what was compared is not known");
		return "no result";
	}
	if (summary->job_count && !windows)
		snprintf(text, RUN_REPORT_VERDICT_SIZE,
			 "no result: what was found ended before anything could be compared; a longer run would help");
	return "no result";
}
