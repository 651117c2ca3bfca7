// SPDX-License-Identifier: GPL-2.0-or-later
#include "page/page_json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/printable.h"
#include "page/page_json_private.h"
#include "page/scale.h"
#include "report/cause_text.h"
#include "report/json.h"
#include "report/record.h"

#define WARNINGS_MOST 200 /* different ones that are listed */
#define CAUSES_MOST 500

double page_json__offset(const struct run_report *report, uint64_t utc_ns)
{
	return utc_ns >= report->start_ns ? (double)(utc_ns - report->start_ns) / 1e9
					  : -(double)(report->start_ns - utc_ns) / 1e9;
}

cJSON *page_json__append(cJSON *list)
{
	cJSON *item = cJSON_CreateObject();

	if (item && !cJSON_AddItemToArray(list, item)) {
		cJSON_Delete(item);
		return NULL;
	}
	return item;
}

static bool append_text(cJSON *list, const char *text)
{
	cJSON *item = json__text(text);

	if (item && cJSON_AddItemToArray(list, item))
		return true;
	cJSON_Delete(item);
	return false;
}

static bool add_source(cJSON *page, const struct report_input *input)
{
	cJSON *source = cJSON_AddObjectToObject(page, "source"), *files;
	bool ok = source && json__add_text(source, "kind",
					   input->live				? "a running vaprod"
					   : input->kind == FILE_KIND_CAPTURE	? "captures"
					   : input->kind == FILE_KIND_FRAGMENTS ? "fragments"
										: "records");

	ok = ok && json__add_uint(source, "run", input->run_read) && json__add_uint(source, "runs", input->runs) &&
	     json__add_uint(source, "bad_lines", input->bad_lines) && cJSON_AddBoolToObject(source, "cut", input->cut);
	files = ok ? cJSON_AddArrayToObject(source, "files") : NULL;
	ok = files;
	for (size_t i = 0; ok && i < input->count; i++)
		ok = append_text(files, input->files[i]);
	return ok;
}

/* Adds what of a job's time was not evaluated: by reason, with the state that has most of it. */
static bool add_gaps(cJSON *object, const struct job_summary *job)
{
	cJSON *list = cJSON_AddArrayToObject(object, "gaps");
	bool ok = list;

	for (int reason = 0; ok && reason < VAPRO_UNCOVERED_REASONS; reason++) {
		const struct gap *most = NULL;
		double seconds = 0;
		cJSON *item;

		for (size_t i = 0; i < job->gap_count; i++) {
			const struct gap *gap = &job->gaps[i];

			if ((int)gap->reason != reason)
				continue;
			seconds += gap->rank_seconds;
			if (*gap->state && (!most || gap->rank_seconds > most->rank_seconds))
				most = gap;
		}
		if (!(seconds > 0))
			continue;
		item = page_json__append(list);
		ok = item && json__add_text(item, "reason", vapro_uncovered_name[reason]) &&
		     json__add_text(item, "text", summary_reason_text[reason]) &&
		     json__add_text(item, "help", summary_reason_help[reason]) &&
		     json__add_number(item, "share", seconds / job->rank_seconds, 6) &&
		     json__add_text(item, "state", most ? most->state : NULL) &&
		     json__add_number(item, "state_share", most ? most->rank_seconds / job->rank_seconds : NAN, 6);
	}
	return ok;
}

static bool add_losses(cJSON *object, const struct job_summary *job)
{
	cJSON *list = cJSON_AddArrayToObject(object, "losses");
	bool ok = list;

	for (int i = 0; ok && i < VAPRO_LOSSES; i++) {
		cJSON *item;

		if (!job->lost[i])
			continue;
		item = page_json__append(list);
		ok = item && json__add_uint(item, "count", job->lost[i]) &&
		     json__add_text(item, "text", summary_loss_text[i]) &&
		     cJSON_AddBoolToObject(item, "lost", i != VAPRO_LOST_APPROXIMATED && i != VAPRO_LOST_UNMATCHED);
	}
	return ok;
}

static bool add_classes(cJSON *object, const struct job_summary *job)
{
	cJSON *list = cJSON_AddArrayToObject(object, "classes");
	bool ok = list;

	for (int i = 0; ok && i < VAPRO_CLASSES; i++) {
		cJSON *item = page_json__append(list);

		ok = item && json__add_text(item, "class", vapro_class_name[i]) &&
		     json__add_number(item, "covered", job->covered[i] / job->rank_seconds, 6) &&
		     json__add_number(item, "speed",
				      job->performed_weight[i] > 0 ? job->performed[i] / job->performed_weight[i] : NAN,
				      6);
	}
	return ok;
}

/* Returns how many ranks of a job were seen: each host's windows have its own, and the maps have all. */
static size_t count_ranks(const struct run_report *report, const struct job_summary *job)
{
	size_t most = job->ranks;

	for (size_t i = 0; i < report->view.map_count; i++) {
		const struct view_map *map = &report->view.maps[i];
		size_t ranks = 0;

		for (size_t k = 0; k < map->row_count && !strcmp(map->said, job->said); k++)
			ranks += map->rows[k].thread < 0;
		most = ranks > most ? ranks : most;
	}
	return most;
}

/* Adds the jobs of which there was a window. */
static bool add_jobs(cJSON *page, const struct run_report *report)
{
	const struct summary *summary = run_report__summary(report);
	cJSON *list = cJSON_AddArrayToObject(page, "jobs");
	bool ok = list;

	for (size_t i = 0; ok && i < summary->job_count; i++) {
		const struct job_summary *job = &summary->jobs[i];
		size_t ranks = count_ranks(report, job);
		char title[SUMMARY_JOB_NAME];
		cJSON *item;

		if (!job->end_ns)
			continue;
		item = page_json__append(list);
		ok = item && json__add_text(item, "name", job->name) &&
		     json__add_text(item, "title", summary__job_title(summary, job, title)) &&
		     json__add_number(item, "ranks", (double)ranks, 0) &&
		     json__add_number(item, "world", job->world_size, 0) &&
		     cJSON_AddBoolToObject(item, "partial", job->partial && ranks < job->world_size) &&
		     json__add_number(item, "hosts", (double)job->host_count, 0) &&
		     json__add_text(item, "host", job->host_count == 1 ? job->hosts[0] : NULL) &&
		     json__add_number(item, "begin", page_json__offset(report, job->begin_ns), 9) &&
		     json__add_number(item, "seconds", (double)(job->end_ns - job->begin_ns) / 1e9, 9) &&
		     json__add_uint(item, "fragments", job->fragments) &&
		     json__add_number(item, "rank_seconds", job->rank_seconds, 3) &&
		     json__add_number(item, "covered", job->covered_total / job->rank_seconds, 6) &&
		     json__add_number(item, "unseen_seconds", job->covered_total > 0 ? job->unseen_s : NAN, 3) &&
		     json__add_number(item, "unseen_rank", job->unseen_rank, 0) &&
		     json__add_number(item, "overhead_pct",
				      job->overhead_weight > 0 ? job->overhead / job->overhead_weight : NAN, 4) &&
		     json__add_number(item, "overhead_most_pct", job->overhead_weight > 0 ? job->overhead_max : NAN,
				      4) &&
		     json__add_uint(item, "small_regions", job->small_count) &&
		     json__add_number(item, "small_seconds", job->small_seconds, 6) && add_classes(item, job) &&
		     add_gaps(item, job) && add_losses(item, job);
	}
	return ok;
}

/* Adds the numbers of a cause's regions, as the page shows them. */
static bool add_cause_regions(cJSON *object, const struct run_report *report, const struct cause *cause)
{
	cJSON *list = cJSON_AddArrayToObject(object, "numbers");
	bool ok = list;

	for (uint32_t i = 0; ok && i < cause->variance_count; i++) {
		const struct run_region *region = run_report__find(report, cause->job, cause->variances[i]);

		ok = !region || append_text(list, region->number);
	}
	return ok;
}

static bool add_causes(cJSON *page, const struct run_report *report)
{
	cJSON *list = cJSON_AddArrayToObject(page, "causes");
	char text[CAUSE_TEXT_SIZE];
	bool ok = list;
	uint32_t shown = cause_text__listed(&report->cause_list);

	shown = shown < CAUSES_MOST ? shown : CAUSES_MOST;
	for (uint32_t i = 0; ok && i < shown; i++) {
		const struct cause *cause = &report->cause_list.items[i];
		cJSON *item = page_json__append(list);

		ok = item && json__add_text(item, "job", cause->job) &&
		     json__add_text(item, "severity",
				    cause->confirmed ? json_severity_name[cause->severity] : "unconfirmed") &&
		     json__add_text(item, "text", cause_text__write(cause, text)) &&
		     json__add_text(item, "noun", cause_text__noun(cause->cause)) &&
		     json__add_text(item, "culprit", cause->culprit) &&
		     json__add_number(item, "lost", cause->lost_seconds, 6) &&
		     json__add_number(item, "caused", cause->caused_seconds, 6) &&
		     json__add_number(item, "share", cause->share, 8) &&
		     json__add_number(item, "ranks", cause->rank_count, 0) &&
		     json__add_number(item, "hosts", cause->host_count, 0) &&
		     json__add_uint(item, "regions", cause->regions) && add_cause_regions(item, report, cause);
	}
	return ok && json__add_number(page, "causes_more", report->cause_list.count - shown, 0);
}

/* Adds the alarms that a job hangs, which stand before all causes. */
static bool add_hangs(cJSON *page, const struct run_report *report)
{
	const struct summary *summary = run_report__summary(report);
	cJSON *list = cJSON_AddArrayToObject(page, "hangs");
	bool ok = list;

	for (size_t i = 0; ok && i < summary->hang_count; i++) {
		const struct hang_said *hang = &summary->hangs[i];
		cJSON *item = hang->alarm ? page_json__append(list) : NULL;

		ok = !hang->alarm || (item && json__add_text(item, "job", hang->job) &&
				      json__add_text(item, "severity", json_severity_name[hang->severity]) &&
				      json__add_text(item, "text", hang->text));
	}
	return ok;
}

static bool add_findings(cJSON *page, const struct run_report *report)
{
	const struct summary *summary = run_report__summary(report);
	cJSON *list = cJSON_AddArrayToObject(page, "findings");
	char text[1024];
	bool ok = list;

	for (size_t i = 0; ok && i < summary->findings.count; i++) {
		const struct finding *finding = &summary->findings.items[i];
		cJSON *item = page_json__append(list);

		ok = item && json__add_text(item, "kind", findings__kind(finding->kind)) &&
		     json__add_text(item, "text", findings__text(finding, text, sizeof(text)));
	}
	for (size_t i = 0; ok && i < summary->hang_count; i++) {
		cJSON *item = summary->hangs[i].alarm ? NULL : page_json__append(list);

		ok = summary->hangs[i].alarm || (item && json__add_text(item, "kind", "note") &&
						 json__add_text(item, "text", summary->hangs[i].text));
	}
	for (size_t i = 0; ok && i < summary->earlier_count; i++) {
		cJSON *item = page_json__append(list);

		ok = item && json__add_text(item, "kind", "earlier runs") &&
		     json__add_text(item, "text", summary->earlier[i]);
	}
	list = ok ? cJSON_AddArrayToObject(page, "chosen") : NULL;
	ok = list;
	for (size_t i = 0; ok && i < summary->chosen_count; i++)
		ok = append_text(list, summary->chosen[i]);
	return ok;
}

/* Adds each warning once, with how often it came. */
static bool add_warnings(cJSON *page, const struct run_report *report)
{
	cJSON *list = cJSON_AddArrayToObject(page, "warnings"), *item;
	const char *seen[WARNINGS_MOST][2];
	uint64_t counts[WARNINGS_MOST], more = report->dropped;
	size_t count = 0, i = 0;
	bool ok = list;

	for (size_t k = 0; k < report->warnings.count; k++) {
		const char *code = record__text(report->warnings.items[k], KEY(warning, code));
		const char *text = record__text(report->warnings.items[k], KEY(warning, text));

		if (!code || !text)
			continue;
		for (i = 0; i < count && (strcmp(seen[i][0], code) || strcmp(seen[i][1], text)); i++)
			;
		if (i == WARNINGS_MOST) {
			more++;
			continue;
		}
		if (i == count) {
			seen[count][0] = code;
			seen[count][1] = text;
			counts[count++] = 0;
		}
		counts[i]++;
	}
	for (i = 0; ok && i < count; i++) {
		item = page_json__append(list);
		ok = item && json__add_text(item, "code", seen[i][0]) && json__add_text(item, "text", seen[i][1]) &&
		     json__add_uint(item, "count", counts[i]);
	}
	return ok && json__add_uint(page, "warnings_more", more);
}

/* Adds what the daemon's first and last records say of how the run was observed. */
static bool add_observer(cJSON *page, const struct run_report *report)
{
	const struct summary *summary = run_report__summary(report);
	const cJSON *hello = report->hellos.count ? report->hellos.items[0] : NULL,
		    *pmu = record__item(hello, KEY(hello, pmu));
	const cJSON *status = report->statuses.count ? report->statuses.items[0] : NULL;
	const cJSON *bye = report->byes.count ? report->byes.items[report->byes.count - 1] : NULL;
	cJSON *object = cJSON_AddObjectToObject(page, "observer");

	return object && json__add_text(object, "version", record__text(hello ? hello : status, KEY(hello, version))) &&
	       json__add_text(object, "shows", record__text(status, KEY(status, shows))) &&
	       json__add_uint(object, "left_out", report->left_out) &&
	       json__add_text(object, "kernel", record__text(hello, KEY(hello, kernel))) &&
	       json__add_text(object, "attach_mode", record__text(hello, KEY(hello, attach_mode))) &&
	       json__add_text(object, "workload_source", record__text(hello, KEY(hello, workload_source))) &&
	       json__add_text(object, "no_counters", record__text(pmu, KEY(pmu, reason))) &&
	       json__add_text(object, "exit_reason", record__text(bye, KEY(bye, reason))) &&
	       json__add_uint(object, "lost_lines",
			      record__uint(record__item(bye, KEY(bye, totals)), KEY(totals, lost_lines))) &&
	       json__add_number(object, "cpu_pct",
				summary->cpu_seconds > 0 ? summary->cpu_pct_seconds / summary->cpu_seconds : NAN, 4);
}

/* Adds the lost seconds of all regions but those that waited for others. */
static bool add_totals(cJSON *page, const struct run_report *report)
{
	double seconds[2] = {0};
	cJSON *object = cJSON_AddObjectToObject(page, "totals");
	unsigned counts[2] = {0};

	for (size_t i = 0; i < report->region_count; i++) {
		const struct region *region = report->regions[i].region;
		bool sure = regions__sure(region);

		if (region->effect_of)
			continue;
		seconds[sure] += region->lost_seconds;
		counts[sure]++;
	}
	return object && json__add_number(object, "sure", counts[1], 0) &&
	       json__add_number(object, "sure_seconds", seconds[1], 6) &&
	       json__add_number(object, "unsure", counts[0], 0) &&
	       json__add_number(object, "unsure_seconds", seconds[0], 6);
}

/* Adds the colours of the heat maps, on light and on dark ground, as lists of percent and colour. */
static bool add_scales(cJSON *page)
{
	static const char *const grounds[] = {"light", "dark"}, *const kinds[] = {"speed", "waiting"};
	cJSON *list = cJSON_AddObjectToObject(page, "scales");
	bool ok = list != NULL;

	for (int i = 0; ok && i < SCALE_GROUNDS * SCALE_KINDS; i++) {
		const struct scale *scale = &scales[i % SCALE_KINDS][i / SCALE_KINDS];
		cJSON *ground = i % SCALE_KINDS ? cJSON_GetObjectItem(list, grounds[i / SCALE_KINDS])
						: cJSON_AddObjectToObject(list, grounds[i / SCALE_KINDS]);
		cJSON *stops = cJSON_AddArrayToObject(ground, kinds[i % SCALE_KINDS]);

		ok = stops != NULL;
		for (size_t k = 0; ok && k < scale->count; k++) {
			char color[16];
			cJSON *stop = cJSON_CreateArray();

			snprintf(color, sizeof(color), "#%06x", scale->stops[k].rgb);
			ok = cJSON_AddItemToArray(stops, stop) &&
			     cJSON_AddItemToArray(stop, cJSON_CreateNumber(scale->stops[k].pct)) &&
			     cJSON_AddItemToArray(stop, cJSON_CreateString(color));
		}
	}
	return ok;
}

/* Adds how far jobs could be compared, where that is little. */
static bool add_notes(cJSON *page, const struct run_report *report)
{
	cJSON *list = cJSON_AddArrayToObject(page, "notes");
	char text[RUN_REPORT_VERDICT_SIZE];
	bool ok = list;

	for (size_t i = 0; ok && i < run_report__summary(report)->job_count; i++)
		ok = !run_report__coverage(report, i, text) || append_text(list, text);
	return ok;
}

cJSON *page_json__report(const struct run_report *report, const struct report_input *input, const char *version)
{
	char verdict[RUN_REPORT_VERDICT_SIZE], start[32];
	cJSON *page = cJSON_CreateObject();
	const char *level = run_report__verdict(report, verdict);
	bool ok;

	snprintf(start, sizeof(start), "%llu", (unsigned long long)report->start_ns);
	ok = page && json__add_text(page, "version", version) && json__add_time(page, "created", utc_now()) &&
	     json__add_text(page, "start", start) &&
	     json__add_number(page, "seconds", (double)(report->end_ns - report->start_ns) / 1e9, 9) &&
	     json__add_text(page, "level", level) && json__add_text(page, "verdict", verdict) &&
	     add_notes(page, report) && add_source(page, input) && add_observer(page, report) &&
	     add_jobs(page, report) && add_hangs(page, report) && add_causes(page, report) &&
	     add_totals(page, report) && json__add(page, "regions", page_json__regions(report)) &&
	     json__add_number(page, "regions_more",
			      report->region_count > PAGE_REGIONS ? (double)(report->region_count - PAGE_REGIONS) : 0,
			      0) &&
	     page_json__add_states(page, report) && page_json__add_variability(page, report) &&
	     page_json__add_profiles(page, report) && add_findings(page, report) && add_warnings(page, report) &&
	     add_scales(page) && cJSON_AddArrayToObject(page, "hosts") && cJSON_AddArrayToObject(page, "maps");
	if (ok)
		return page;
	cJSON_Delete(page);
	return NULL;
}

/* Returns the place of a host in the page's list, where it is added if it is new, or -1 when out of memory. */
static int host_index(cJSON *hosts, const char *host, int *count, int guess)
{
	const cJSON *item = cJSON_GetArrayItem(hosts, guess);
	int at = 0;

	if (item && !strcmp(item->valuestring, host))
		return guess;
	cJSON_ArrayForEach(item, hosts)
	{
		if (!strcmp(item->valuestring, host))
			return at;
		at++;
	}
	return append_text(hosts, host) ? (*count)++ : -1;
}

/* Adds the rows as lists of rank, thread, pid and the place of the host in `hosts`. */
static bool list_rows(cJSON *item, cJSON *hosts, const struct view_map *map)
{
	cJSON *rows = cJSON_AddArrayToObject(item, "rows");
	int count = cJSON_GetArraySize(hosts), host = 0;
	bool ok = rows;

	for (size_t i = 0; ok && i < map->row_count; i++) {
		const struct view_row *row = &map->rows[i];
		double values[4] = {(double)row->rank, (double)row->thread, (double)row->pid};
		cJSON *list;

		host = host_index(hosts, row->host, &count, host);
		values[3] = host;
		list = host >= 0 ? cJSON_CreateDoubleArray(values, 4) : NULL;
		ok = list && cJSON_AddItemToArray(rows, list);
	}
	return ok;
}

static bool same_rows(const struct view_map *a, const struct view_map *b)
{
	bool same = a->row_count == b->row_count;

	for (size_t i = 0; same && i < a->row_count; i++) {
		const struct view_row *x = &a->rows[i], *y = &b->rows[i];

		same = x->rank == y->rank && x->thread == y->thread && x->pid == y->pid && !strcmp(x->host, y->host);
	}
	return same;
}

/* Adds the rows, or the place of a map before this one that has the same, as the classes of a job mostly have. */
static bool add_rows(cJSON *page, cJSON *item, const struct run_report *report, const struct view_map *map)
{
	int at = 0;

	for (const struct view_map *other = report->view.maps; other < map; other++) {
		if (!other->end)
			continue;
		if (same_rows(other, map))
			return json__add_number(item, "rows_of", at, 0);
		at++;
	}
	return list_rows(item, cJSON_GetObjectItem(page, "hosts"), map);
}

bool page_json__add_map(cJSON *page, const struct run_report *report, const struct view_map *map,
			const struct cells *cells, const char *worst, const char *mean)
{
	cJSON *item = page_json__append(cJSON_GetObjectItem(page, "maps")), *parts;
	char *said = printable(strdup(map->said));
	bool ok = item && said && json__add_text(item, "job", map->job) && json__add_text(item, "said", said) &&
		  json__add_number(item, "uid", map->uid, 0) && json__add_text(item, "class", map->class) &&
		  cJSON_AddBoolToObject(item, "waiting", !strcmp(map->class, vapro_class_name[VAPRO_COMMUNICATION])) &&
		  json__add_number(item, "bin", (double)map->bin_ns / 1e9, 9) &&
		  json__add_number(item, "begin", page_json__offset(report, map->first * map->bin_ns), 9) &&
		  json__add_number(item, "end", page_json__offset(report, map->end * map->bin_ns), 9) &&
		  cJSON_AddBoolToObject(item, "rounded", cells->rounding != CELLS_EXACT) &&
		  json__add_text(item, "worst", worst) && json__add_text(item, "mean", mean) &&
		  add_rows(page, item, report, map);

	free(said);
	parts = ok ? cJSON_AddArrayToObject(item, "parts") : NULL;
	ok = parts;
	for (size_t i = 0; ok && i < cells->part_count; i++) {
		const struct cells_part *part = &cells->parts[i];
		const double values[3] = {page_json__offset(report, part->first * map->bin_ns), part->columns,
					  part->bins};
		cJSON *list = cJSON_CreateDoubleArray(values, 3);

		ok = list && cJSON_AddItemToArray(parts, list);
	}
	return ok;
}
