// SPDX-License-Identifier: GPL-2.0-or-later
#include "export/trace.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "export/trace_private.h"
#include "report/json.h"
#include "report/record.h"

cJSON *trace__event(struct trace *trace, const char *phase, const char *name, unsigned process, unsigned thread,
		    cJSON *args)
{
	cJSON *event = cJSON_CreateObject();

	if (!event || !json__add_text(event, "ph", phase) || !json__add_text(event, "name", name) ||
	    !json__add_uint(event, "pid", process) || !json__add_uint(event, "tid", thread))
		trace->out_of_memory = true;
	if (args && !json__add(event, "args", args))
		trace->out_of_memory = true;
	return event;
}

void trace__set_time(struct trace *trace, cJSON *event, uint64_t begin_ns, uint64_t end_ns)
{
	/* differences are taken in whole nanoseconds: a double has not enough digits for those since the epoch */
	uint64_t after_ns = begin_ns > trace->start_ns ? begin_ns - trace->start_ns : 0;

	if (!json__add_number(event, "ts", (double)after_ns / 1e3, 3) ||
	    (end_ns && !json__add_number(event, "dur", (double)(end_ns - begin_ns) / 1e3, 3)))
		trace->out_of_memory = true;
}

void trace__put(struct trace *trace, cJSON *event)
{
	char *text = json__finish(event);

	if (!text) {
		trace->out_of_memory = true;
		return;
	}
	fputs(trace->events++ ? ",\n" : "\n", trace->out);
	fputs(text, trace->out);
	free(text);
}

static void put_name(struct trace *trace, const char *kind, const char *name, unsigned process, unsigned thread)
{
	cJSON *args = cJSON_CreateObject();

	if (!args || !json__add_text(args, "name", name))
		trace->out_of_memory = true;
	trace__put(trace, trace__event(trace, "M", kind, process, thread, args));
}

unsigned trace__add_process(struct trace *trace, const char *name)
{
	unsigned process = ++trace->last_id;

	put_name(trace, "process_name", name, process, process);
	return process;
}

unsigned trace__add_thread(struct trace *trace, unsigned process, const char *name)
{
	unsigned thread = ++trace->last_id;

	put_name(trace, "thread_name", name, process, thread);
	return thread;
}

/* Names the hosts and rows of a job. */
static int name_rows(struct trace *trace, struct trace_job *job, bool several)
{
	unsigned process = 0;
	char name[1536];

	job->rows = calloc(job->order.count + 1, sizeof(*job->rows));
	if (!job->rows)
		return -ENOMEM;
	for (size_t i = 0; i < job->order.count; i++) {
		const struct ordered_row *ordered = &job->order.items[i];
		struct trace_row *row = &job->rows[i];

		if (!i || ordered->host != job->order.items[i - 1].host) {
			const char *host = *ordered->row->host ? ordered->row->host : "host not known";

			snprintf(name, sizeof(name), "%s%s%s", host, several ? ", job " : "", several ? job->name : "");
			process = trace__add_process(trace, name);
		}
		row_order__name(ordered->row, row->name, sizeof(row->name));
		row->process = process;
		row->thread = trace__add_thread(trace, process, row->name);
	}
	return 0;
}

static int put_job(struct trace *trace, const struct view_map *first, bool several)
{
	const struct view_model *view = &trace->report->view;
	struct trace_job job = {.name = *first->job ? first->job : "(no name)"};
	char name[1100];
	int ret;

	for (size_t i = 0; i < view->map_count && job.map_count < VAPRO_CLASSES; i++) {
		const struct view_map *map = &view->maps[i];

		if (map->end && !strcmp(map->job, first->job))
			job.maps[job.map_count++] = map;
	}
	snprintf(name, sizeof(name), "job %s", job.name);
	job.process = trace__add_process(trace, name);
	ret = row_order__make(&job.order, job.maps, job.map_count);
	if (!ret)
		ret = name_rows(trace, &job, several);
	if (!ret)
		ret = trace__counters(trace, &job);
	if (!ret)
		ret = trace__regions(trace, &job);
	if (!ret)
		trace__hangs(trace, &job);
	row_order__free(&job.order);
	free(job.rows);
	return ret;
}

/* Returns whether a map is the first one of its job. */
static bool begins_job(const struct view_model *view, size_t at)
{
	if (!view->maps[at].end)
		return false;
	for (size_t i = 0; i < at; i++) {
		if (view->maps[i].end && !strcmp(view->maps[i].job, view->maps[at].job))
			return false;
	}
	return true;
}

static int put_jobs(struct trace *trace)
{
	const struct view_model *view = &trace->report->view;
	size_t jobs = 0;
	int ret = 0;

	for (size_t i = 0; i < view->map_count; i++)
		jobs += begins_job(view, i);
	for (size_t i = 0; !ret && i < view->map_count; i++) {
		if (begins_job(view, i))
			ret = put_job(trace, &view->maps[i], jobs > 1);
	}
	return ret;
}

/* Rows of what vaprod itself reports, one for each host. */
struct daemon_row {
	const char *host;
	unsigned thread;
};

/* Puts records of one type as instants; name, text: members of theirs. */
static void put_instants(struct trace *trace, const struct record_list *list, unsigned process, struct daemon_row *rows,
			 size_t *row_count)
{
	for (size_t i = 0; i < list->count; i++) {
		const cJSON *record = list->items[i];
		const char *host = record__text(record, KEY(head, host)),
			   *code = record__text(record, KEY(warning, code));
		const cJSON *item;
		cJSON *args = cJSON_CreateObject(), *event;
		char name[80];
		uint64_t time;
		size_t at = 0;

		if (!record__time(record, KEY(head, time), &time)) {
			cJSON_Delete(args);
			continue;
		}
		while (at < *row_count && strcmp(rows[at].host, host ? host : ""))
			at++;
		if (at == *row_count) {
			snprintf(name, sizeof(name), "%.60s", host && *host ? host : "host not known");
			rows[(*row_count)++] =
			    (struct daemon_row){host ? host : "", trace__add_thread(trace, process, name)};
		}
		if (code)
			snprintf(name, sizeof(name), "warning: %.60s", code);
		else
			snprintf(name, sizeof(name), "counters of stage %llu",
				 (unsigned long long)record__uint(record, KEY(stage, stage)));
		cJSON_ArrayForEach(item, record)
		{
			if (item->string && strcmp(item->string, "schema") && strcmp(item->string, "time") &&
			    !json__add(args, item->string, cJSON_Duplicate(item, true)))
				trace->out_of_memory = true;
		}
		event = trace__event(trace, "i", name, process, rows[at].thread, args);
		if (!json__add_text(event, "s", "t") || !json__add_text(event, "cat", code ? "warning" : "stage"))
			trace->out_of_memory = true;
		trace__set_time(trace, event, time, 0);
		trace__put(trace, event);
	}
}

static int put_daemons(struct trace *trace)
{
	const struct run_report *report = trace->report;
	size_t most = report->warnings.count + report->stages.count, count = 0;
	struct daemon_row *rows;
	unsigned process;

	if (!most)
		return 0;
	rows = calloc(most, sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	process = trace__add_process(trace, "vaprod: warnings, changes of counters");
	put_instants(trace, &report->warnings, process, rows, &count);
	put_instants(trace, &report->stages, process, rows, &count);
	free(rows);
	return 0;
}

/* Returns the first time of a run: warnings may precede all windows. */
static uint64_t start_of(const struct run_report *report)
{
	const struct record_list *const lists[] = {&report->hellos, &report->warnings, &report->stages};
	uint64_t start = report->start_ns, time;

	for (size_t k = 0; k < sizeof(lists) / sizeof(*lists); k++) {
		for (size_t i = 0; i < lists[k]->count; i++) {
			if (record__time(lists[k]->items[i], KEY(head, time), &time) && (!start || time < start))
				start = time;
		}
	}
	for (size_t i = 0; i < report->hangs.count; i++) {
		if (record__time(report->hangs.items[i], KEY(hang, begin), &time) && time < start)
			start = time;
	}
	for (size_t i = 0; i < report->region_count; i++) {
		if (report->regions[i].region->begin_ns < start)
			start = report->regions[i].region->begin_ns;
	}
	return start;
}

int trace__write(const struct run_report *report, const char *version, FILE *out, uint64_t *left_out)
{
	struct trace trace = {.report = report, .out = out, .start_ns = start_of(report)};
	char begin[JSON_TIME_SIZE];
	int ret;

	fprintf(out, TRACE_BEGIN "\"version\":\"%s\",\"begin\":\"%s\"},\"displayTimeUnit\":\"ms\",\"traceEvents\":[",
		version, json__time(trace.start_ns, begin));
	ret = put_jobs(&trace);
	if (!ret)
		ret = put_daemons(&trace);
	/* a viewer takes members that it does not know for remarks */
	fprintf(out, "\n],\"eventsLeftOut\":%llu}\n", (unsigned long long)trace.left_out);
	*left_out = trace.left_out;
	if (!ret && trace.out_of_memory)
		ret = -ENOMEM;
	return ret;
}
