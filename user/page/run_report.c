// SPDX-License-Identifier: GPL-2.0-or-later
#include "page/run_report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/table.h"
#include "report/cause_text.h"
#include "report/json.h"
#include "report/record.h"

static void free_list(struct record_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		cJSON_Delete(list->items[i]);
	free(list->items);
	table__free(list->places);
	*list = (struct record_list){0};
}

/* Adds a record to its list, which then owns it. Returns whether it did. */
static bool keep(struct run_report *report, struct record_list *list, cJSON **line)
{
	if (list->count >= RUN_REPORT_RECORDS) {
		report->dropped++;
		return false;
	}
	if (grow(&list->items, &list->capacity, list->count + 1, sizeof(*list->items))) {
		report->out_of_memory = true;
		return false;
	}
	list->items[list->count++] = *line;
	*line = NULL;
	return true;
}

/* Keeps the latest record of each number of a job. */
static void keep_latest(struct run_report *report, struct record_list *list, cJSON **line, uint64_t id)
{
	uint64_t job = regions__job_number(record__text(*line, KEY(of_job, job)));
	uint32_t at;

	if (!list->places)
		list->places = table__new();
	if (!list->places) {
		report->out_of_memory = true;
	} else if (table__get(list->places, id, job, &at)) {
		cJSON_Delete(list->items[at]);
		list->items[at] = *line;
		*line = NULL;
	} else if (keep(report, list, line) && table__put(list->places, id, job, (uint32_t)list->count - 1)) {
		report->out_of_memory = true;
	}
}

/* Keeps the latest record of each region; key: its member that has the region's number. */
static void keep_of_region(struct run_report *report, struct record_list *list, cJSON **line, enum record_row key)
{
	const char *host = record__text(*line, KEY(head, host));

	keep_latest(report, list, line,
		    summary__region_id(report->view.summary, host ? host : "", record__uint(*line, key)));
}

/* Keeps the latest record of each noise component, whose numbers are those of the host that wrote it. */
static void keep_noise(struct run_report *report, cJSON **line)
{
	uint64_t host = regions__job_number(record__text(*line, KEY(head, host)));

	keep_latest(report, &report->noise, line, table__hash(host, record__uint(*line, KEY(noise, id))));
}

static void see(void *arg, cJSON **line)
{
	struct run_report *report = arg;
	const char *type = record__text(*line, KEY(head, type));

	report->lines++;
	if (report->progress)
		report->progress(report->lines, "lines");
	if (!strcmp(type, "variance"))
		keep_of_region(report, &report->variances, line, KEY(variance, id));
	else if (!strcmp(type, "diagnosis") && !record__item(*line, KEY(diagnosis, region)))
		keep_of_region(report, &report->diagnoses, line, KEY(diagnosis, variance));
	else if (!strcmp(type, "hang"))
		keep_of_region(report, &report->hangs, line, KEY(hang, id));
	else if (!strcmp(type, "noise"))
		keep_noise(report, line);
	else if (!strcmp(type, "hello"))
		keep(report, &report->hellos, line);
	else if (!strcmp(type, "bye"))
		keep(report, &report->byes, line);
	else if (!strcmp(type, "warning"))
		keep(report, &report->warnings, line);
	else if (!strcmp(type, "stage"))
		keep(report, &report->stages, line);
	else if (!strcmp(type, "status"))
		keep(report, &report->statuses, line);
	else if (!strcmp(type, "job_status"))
		report->left_out += record__uint(*line, KEY(job_status, left_out));
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
	causes__free_list(&report->cause_list);
	causes__free(report->causes);
	view_model__free(&report->view);
	free(report->regions);
	table__free(report->places);
	state_totals__free(report->states);
	free_list(&report->variances);
	free_list(&report->diagnoses);
	free_list(&report->hangs);
	free_list(&report->noise);
	free_list(&report->hellos);
	free_list(&report->byes);
	free_list(&report->warnings);
	free_list(&report->stages);
	free_list(&report->statuses);
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
	uint32_t at;

	return list->places && table__get(list->places, region->id, regions__job_number(region->job), &at)
		   ? list->items[at]
		   : NULL;
}

static struct run_region *add_region(struct run_report *report, const struct region *region)
{
	struct run_region *own = &report->regions[report->region_count++];

	*own = (struct run_region){.region = region,
				   .variance = record_of(&report->variances, region),
				   .diagnosis = record_of(&report->diagnoses, region)};
	return own;
}

#define NONE UINT32_MAX
#define STEPS_MOST 16 /* from an effect of an effect to the cause; more are a circle */

/* Which region waited for which, by their places in the order of the summary. */
struct effects {
	struct table *places;
	uint32_t *first, *next; /* effects of a region */
};

/* Returns the place of the region that this one waited for in the end; its own where it did for none. */
static uint32_t cause_of(const struct regions *regions, const struct table *places, uint32_t at)
{
	uint32_t cause = at;

	for (int steps = 0; steps < STEPS_MOST; steps++) {
		const struct region *region = &regions->items[cause];

		if (!region->effect_of ||
		    !table__get(places, region->effect_of, regions__job_number(region->job), &cause))
			return cause;
	}
	return at;
}

/* Lists the effects of each region. Returns 0 or -ENOMEM. */
static int find_effects(const struct regions *regions, struct effects *effects)
{
	effects->places = table__new();
	effects->first = malloc((regions->count + 1) * sizeof(*effects->first));
	effects->next = malloc((regions->count + 1) * sizeof(*effects->next));
	if (!effects->places || !effects->first || !effects->next)
		return -ENOMEM;
	for (uint32_t i = 0; i < regions->count; i++) {
		const struct region *region = &regions->items[i];

		effects->first[i] = NONE;
		if (region->class && table__put(effects->places, region->id, regions__job_number(region->job), i))
			return -ENOMEM;
	}
	/* from the last to the first, so that each list begins with the worst */
	for (uint32_t i = (uint32_t)regions->count; i-- > 0;) {
		uint32_t cause = regions->items[i].class ? cause_of(regions, effects->places, i) : i;

		if (cause == i)
			continue;
		effects->next[i] = effects->first[cause];
		effects->first[cause] = i;
	}
	return 0;
}

/* Numbers the regions as `vapro view` does, and those that waited beside them. */
static int number_regions(struct run_report *report)
{
	struct regions *regions = &report->view.summary->regions;
	struct effects effects = {0};
	unsigned number = 0;
	int ret = 0;

	regions__sort(regions);
	report->regions = calloc(regions->count + 1, sizeof(*report->regions));
	if (!report->regions || find_effects(regions, &effects))
		ret = -ENOMEM;
	for (uint32_t i = 0; !ret && i < regions->count; i++) {
		const struct region *region = &regions->items[i];
		unsigned nth = 0;

		if (!region->class || cause_of(regions, effects.places, i) != i)
			continue;
		snprintf(add_region(report, region)->number, sizeof(report->regions->number), "%u", ++number);
		for (uint32_t k = effects.first[i]; k != NONE; k = effects.next[k])
			snprintf(add_region(report, &regions->items[k])->number, sizeof(report->regions->number),
				 "%u.%u", number, ++nth);
	}
	report->places = table__new();
	if (!report->places)
		ret = -ENOMEM;
	for (uint32_t i = 0; !ret && i < report->region_count; i++) {
		const struct region *region = report->regions[i].region;

		ret = table__put(report->places, region->id, regions__job_number(region->job), i);
	}
	table__free(effects.places);
	free(effects.first);
	free(effects.next);
	return ret;
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

const struct run_region *run_report__find(const struct run_report *report, const char *job, uint64_t id)
{
	uint32_t at;

	return table__get(report->places, id, regions__job_number(job), &at) ? &report->regions[at] : NULL;
}

/* The first alarm that a job hangs; NULL: none. */
static const struct hang_said *first_hang(const struct summary *summary)
{
	for (size_t i = 0; i < summary->hang_count; i++) {
		if (summary->hangs[i].alarm)
			return &summary->hangs[i];
	}
	return NULL;
}

const char *run_report__verdict(const struct run_report *report, char *text)
{
	const struct summary *summary = run_report__summary(report);
	const struct hang_said *hang = first_hang(summary);
	bool judged = false, windows = false;

	if (hang)
		snprintf(text, RUN_REPORT_VERDICT_SIZE, "%s", hang->text);
	if (hang)
		return json_severity_name[hang->severity];
	if (report->cause_list.count) {
		const struct cause *cause = &report->cause_list.items[0];

		cause_text__write(cause, text);
		return cause->confirmed ? json_severity_name[cause->severity] : "unconfirmed";
	}
	if (!summary__nothing_watched(summary, NULL, false, text, RUN_REPORT_VERDICT_SIZE))
		snprintf(text, RUN_REPORT_VERDICT_SIZE, "no slow region was reported");
	for (size_t i = 0; i < summary->job_count; i++) {
		const struct job_summary *job = &summary->jobs[i];

		windows |= job->end_ns > 0;
		judged |= job->end_ns && !summary__no_result(summary, job, text, RUN_REPORT_VERDICT_SIZE);
	}
	if (judged) {
		summary__say_nothing_found(summary, text, RUN_REPORT_VERDICT_SIZE);
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
	return "no result";
}

bool run_report__coverage(const struct run_report *report, size_t at, char *text)
{
	const struct summary *summary = run_report__summary(report);
	const struct job_summary *job = &summary->jobs[at];
	char verdict[RUN_REPORT_VERDICT_SIZE];

	for (int little = 0; little < 2; little++) {
		if (summary__say_coverage(summary, &report->cause_list, job, little, text, RUN_REPORT_VERDICT_SIZE)) {
			run_report__verdict(report, verdict);
			return strcmp(verdict, text) != 0;
		}
	}
	return false;
}
