// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "export/trace.h"
#include "export/trace_private.h"
#include "report/cause_text.h"
#include "report/json.h"
#include "report/record.h"

#define DEPTH 16 /* most slices that nest in each other in one lane */

/* Ends of the slices of a lane that are open, outermost first. */
struct lane {
	uint64_t ends[DEPTH];
	unsigned depth;
};

int trace_slices__add(struct trace_slices *slices, const struct trace_slice *slice)
{
	if (grow(&slices->items, &slices->capacity, slices->count + 1, sizeof(*slices->items)))
		return -ENOMEM;
	slices->items[slices->count++] = *slice;
	return 0;
}

/* Orders rows, then begins, then longer slices before those that fit into them. */
static int compare(const void *a, const void *b)
{
	const struct trace_slice *x = a, *y = b;

	if (x->row != y->row)
		return x->row < y->row ? -1 : 1;
	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	if (x->end_ns != y->end_ns)
		return x->end_ns > y->end_ns ? -1 : 1;
	return x->kind < y->kind ? -1 : x->kind > y->kind;
}

/* Puts a slice into a lane, if it nests there. */
static bool enter(struct lane *lane, const struct trace_slice *slice)
{
	while (lane->depth && lane->ends[lane->depth - 1] <= slice->begin_ns)
		lane->depth--;
	if (lane->depth == DEPTH || (lane->depth && lane->ends[lane->depth - 1] < slice->end_ns))
		return false;
	lane->ends[lane->depth++] = slice->end_ns;
	return true;
}

void trace_slices__place(struct trace_slices *slices)
{
	struct lane lanes[TRACE_LANES];

	if (slices->count)
		qsort(slices->items, slices->count, sizeof(*slices->items), compare);
	for (size_t i = 0; i < slices->count; i++) {
		struct trace_slice *slice = &slices->items[i];

		if (!i || slice->row != slices->items[i - 1].row) {
			for (unsigned lane = 0; lane < TRACE_LANES; lane++)
				lanes[lane].depth = 0;
		}
		slice->lane = 0;
		while (slice->lane < TRACE_LANES && !enter(&lanes[slice->lane], slice))
			slice->lane++;
	}
}

void trace_slices__free(struct trace_slices *slices)
{
	free(slices->items);
	*slices = (struct trace_slices){.count = 0};
}

#define TASKS_MOST 2000 /* rows of tasks; those of the worst regions */

/* Rows of the tasks that ran instead of ranks. */
struct tasks {
	struct trace_row *items;
	size_t count, capacity;
};

/* Adds a slice, or counts it where there are too many. */
static int add(struct trace *trace, struct trace_slices *slices, const struct trace_slice *slice)
{
	if (trace->slices >= TRACE_SLICES) {
		trace->left_out++;
		return 0;
	}
	trace->slices++;
	return trace_slices__add(slices, slice);
}

/* Returns the row of a rank's thread, else of the rank; the count of rows where it has none. */
static size_t row_of(const struct trace_job *job, int64_t rank, int64_t thread)
{
	size_t found = job->order.count;

	for (size_t i = 0; i < job->order.count; i++) {
		const struct view_row *row = job->order.items[i].row;

		if (row->rank != rank)
			continue;
		if (row->thread == thread)
			return i;
		if (row->thread < 0)
			found = i;
	}
	return found;
}

static int add_fragments(struct trace *trace, const struct trace_job *job, const struct run_region *region,
			 struct trace_slices *slices)
{
	const cJSON *item;
	int ret = 0;

	cJSON_ArrayForEach(item, record__item(region->variance, KEY(variance, exemplars)))
	{
		struct trace_slice slice = {.kind = TRACE_FRAGMENT, .region = region, .item = item};
		double rank = record__number(item, KEY(exemplar, rank), -1);

		slice.row = row_of(job, (int64_t)rank, (int64_t)record__number(item, KEY(exemplar, thread), -1));
		if (slice.row == job->order.count || !record__time(item, KEY(exemplar, begin), &slice.begin_ns))
			continue;
		if (__builtin_add_overflow(slice.begin_ns, record__uint(item, KEY(exemplar, duration_ns)),
					   &slice.end_ns))
			continue;
		if (!ret)
			ret = add(trace, slices, &slice);
	}
	return ret;
}

static int add_region(struct trace *trace, const struct trace_job *job, const struct run_region *region,
		      struct trace_slices *slices)
{
	struct trace_slice slice = {.begin_ns = region->region->begin_ns,
				    .end_ns = region->region->end_ns,
				    .kind = TRACE_REGION,
				    .region = region,
				    .whole = true};
	int ret = 0;

	for (slice.row = 0; !ret && slice.row < job->order.count; slice.row++) {
		if (!row_order__region_has(region, job->order.items[slice.row].row))
			continue;
		ret = add(trace, slices, &slice);
		slice.whole = false;
	}
	return ret ? ret : add_fragments(trace, job, region, slices);
}

/* Finds or makes the row of a task. Returns 0, -ENOSPC where there are too many, or -ENOMEM. */
static int find_task(struct tasks *tasks, const struct region *region, const cJSON *interferer, size_t *row)
{
	const char *comm = record__text(interferer, KEY(interferer, comm));
	uint64_t pid = record__uint(interferer, KEY(interferer, pid));
	struct trace_row task = {.thread = 0};
	char number[32] = "";

	if (pid)
		snprintf(number, sizeof(number), " (pid %llu)", (unsigned long long)pid);
	if (region->host_count == 1)
		snprintf(task.name, sizeof(task.name), "%.64s%s on %.256s", comm ? comm : "?", number,
			 region->hosts[0]);
	else
		snprintf(task.name, sizeof(task.name), "%.64s%s", comm ? comm : "?", number);
	for (*row = 0; *row < tasks->count; (*row)++) {
		if (!strcmp(tasks->items[*row].name, task.name))
			return 0;
	}
	if (tasks->count == TASKS_MOST)
		return -ENOSPC;
	if (grow(&tasks->items, &tasks->capacity, tasks->count + 1, sizeof(task)))
		return -ENOMEM;
	tasks->items[tasks->count++] = task;
	return 0;
}

static int add_tasks(struct trace *trace, const struct run_region *region, struct trace_slices *slices,
		     struct tasks *tasks)
{
	const cJSON *item;
	int ret = 0;

	cJSON_ArrayForEach(item, record__item(region->diagnosis, KEY(diagnosis, interferers)))
	{
		struct trace_slice slice = {.begin_ns = region->region->begin_ns,
					    .end_ns = region->region->end_ns,
					    .kind = TRACE_TASK,
					    .region = region,
					    .item = item};

		if (!ret)
			ret = find_task(tasks, region->region, item, &slice.row);
		if (!ret)
			ret = add(trace, slices, &slice);
		if (ret == -ENOSPC) {
			trace->left_out++;
			ret = 0;
		}
	}
	return ret;
}

/* Writes what a region is called: "3: hog: preempted", "3.1: waiting", "4: computation". */
static void name_region(const struct run_region *run_region, char *buf, size_t size)
{
	const struct region *region = run_region->region;
	const char *cause = region->cause ? cause_text__noun(region->cause) : region->class;

	if (region->effect_of)
		snprintf(buf, size, "%s: waited for region %llu", run_region->number,
			 (unsigned long long)region->effect_of);
	else
		snprintf(buf, size, "%s: %s%s%.200s", run_region->number, region->culprit.comm,
			 *region->culprit.comm ? ": " : "", cause);
}

static bool add_optional(cJSON *args, const char *key, const char *text)
{
	return !text || json__add_text(args, key, text);
}

static cJSON *region_args(const struct trace_slice *slice)
{
	const struct region *region = slice->region->region;
	const char *confidence = record__text(slice->region->variance, KEY(variance, confidence));
	cJSON *args = cJSON_CreateObject();
	bool ok = args && json__add_text(args, "region", slice->region->number) &&
		  json__add_text(args, "class", region->class) && json__add_text(args, "cause", region->cause) &&
		  json__add_text(args, "culprit", *region->culprit.comm ? region->culprit.comm : NULL) &&
		  json__add_number(args, "lost_seconds", region->lost_seconds, 6) &&
		  json__add_text(args, "confidence",
				 confidence	     ? confidence
				 : region->confirmed ? "confirmed"
						     : "unconfirmed");

	if (ok && slice->whole) {
		const char *ranks = record__text(slice->region->variance, KEY(variance, ranks));

		ok = json__add_uint(args, "id", region->id) && add_optional(args, "ranks", ranks) &&
		     json__add_number(args, "caused_seconds", region->caused_seconds, 6) &&
		     json__add_number(args, "performance_pct", 100 * region->performance, 2) &&
		     add_optional(args, "severity", *region->severity ? region->severity : NULL) &&
		     json__add(args, "alarm", cJSON_CreateBool(region->alarm)) &&
		     add_optional(args, "where", region->site) && add_optional(args, "inside", region->inside) &&
		     add_optional(args, "verdict", region->verdict) && add_optional(args, "advice", region->advice);
	}
	if (ok)
		return args;
	cJSON_Delete(args);
	return NULL;
}

static cJSON *fragment_args(const struct trace_slice *slice)
{
	const cJSON *exemplar = slice->item, *factors = record__item(exemplar, KEY(exemplar, factors));
	cJSON *args = cJSON_CreateObject();

	if (args && json__add_text(args, "region", slice->region->number) &&
	    json__add_uint(args, "duration_ns", record__uint(exemplar, KEY(exemplar, duration_ns))) &&
	    (!record__text(exemplar, KEY(exemplar, labels)) ||
	     json__add_text(args, "labels", record__text(exemplar, KEY(exemplar, labels)))) &&
	    (!factors || json__add(args, "factors", cJSON_Duplicate(factors, true))))
		return args;
	cJSON_Delete(args);
	return NULL;
}

static cJSON *task_args(const struct trace_slice *slice)
{
	cJSON *args = cJSON_CreateObject();

	if (args && json__add_text(args, "region", slice->region->number) &&
	    json__add_number(args, "ran_seconds", record__number(slice->item, KEY(interferer, seconds), NAN), 6) &&
	    json__add_text(args, "relation", record__text(slice->item, KEY(interferer, relation))) &&
	    json__add_text(args, "interval",
			   "that of the region; the record has the sum of the task's time in it only"))
		return args;
	cJSON_Delete(args);
	return NULL;
}

/* Returns where a fragment ran: the words of its call-site. */
static const char *fragment_name(const struct trace_slice *slice)
{
	const cJSON *site = record__site_of(slice->region->variance, slice->item);
	const char *source = record__text(site, KEY(state, source)), *to = record__text(slice->item, KEY(exemplar, to));

	return source ? source : to ? to : "slow fragment";
}

static void put_slice(struct trace *trace, const struct trace_slice *slice, unsigned process, unsigned thread)
{
	static const char *const categories[] = {"region", "fragment", "task"};
	cJSON *args, *event;
	char name[512];

	if (slice->kind == TRACE_FRAGMENT)
		snprintf(name, sizeof(name), "%.500s", fragment_name(slice));
	else
		name_region(slice->region, name, sizeof(name));
	args = slice->kind == TRACE_REGION     ? region_args(slice)
	       : slice->kind == TRACE_FRAGMENT ? fragment_args(slice)
					       : task_args(slice);
	event = trace__event(trace, "X", name, process, thread, args);
	if (!args || !json__add_text(event, "cat", categories[slice->kind]))
		trace->out_of_memory = true;
	trace__set_time(trace, event, slice->begin_ns, slice->end_ns);
	trace__put(trace, event);
}

/* Puts the slices of rows. */
static void put_slices(struct trace *trace, struct trace_slices *slices, const struct trace_row *rows)
{
	unsigned lanes[TRACE_LANES];
	char name[sizeof(rows->name) + 32];

	trace_slices__place(slices);
	for (size_t i = 0; i < slices->count; i++) {
		const struct trace_slice *slice = &slices->items[i];
		const struct trace_row *row = &rows[slice->row];

		if (!i || slice->row != slices->items[i - 1].row) {
			memset(lanes, 0, sizeof(lanes));
			lanes[0] = row->thread;
		}
		if (slice->lane == TRACE_LANES) {
			trace->left_out++;
			continue;
		}
		if (!lanes[slice->lane]) {
			snprintf(name, sizeof(name), "%s, overlap %u", row->name, slice->lane);
			lanes[slice->lane] = trace__add_thread(trace, row->process, name);
		}
		put_slice(trace, slice, row->process, lanes[slice->lane]);
	}
}

/* Names the rows of tasks, which are those of a process of their own. */
static void name_tasks(struct trace *trace, const struct trace_job *job, struct tasks *tasks)
{
	unsigned process;
	char name[1200];

	if (!tasks->count)
		return;
	snprintf(name, sizeof(name), "tasks that ran instead of ranks of job %s", job->name);
	process = trace__add_process(trace, name);
	for (size_t i = 0; i < tasks->count; i++) {
		tasks->items[i].process = process;
		tasks->items[i].thread = trace__add_thread(trace, process, tasks->items[i].name);
	}
}

int trace__regions(struct trace *trace, const struct trace_job *job)
{
	struct trace_slices slices = {.count = 0}, task_slices = {.count = 0};
	struct tasks tasks = {.count = 0};
	int ret = 0;

	for (size_t i = 0; !ret && i < trace->report->region_count; i++) {
		const struct run_region *region = &trace->report->regions[i];

		if (!row_order__region_is_of(region, job->maps[0]))
			continue;
		ret = add_region(trace, job, region, &slices);
		if (!ret)
			ret = add_tasks(trace, region, &task_slices, &tasks);
	}
	if (!ret) {
		put_slices(trace, &slices, job->rows);
		name_tasks(trace, job, &tasks);
		put_slices(trace, &task_slices, tasks.items);
	}
	free(tasks.items);
	trace_slices__free(&slices);
	trace_slices__free(&task_slices);
	return ret;
}
