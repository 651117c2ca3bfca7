// SPDX-License-Identifier: GPL-2.0-or-later
#include "top/snapshot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/job_names.h"
#include "base/printable.h"
#include "report/json.h"
#include "report/record.h"
#include "report/summary.h"

void top_snapshot__free(struct top_snapshot *snapshot)
{
	if (!snapshot)
		return;
	for (size_t i = 0; i < snapshot->job_count; i++) {
		struct top_job *job = &snapshot->jobs[i];

		for (size_t k = 0; k < job->process_count; k++)
			free(job->processes[k].exe);
		free(job->processes);
		free(job->name);
		free(job->title);
		free(job->host);
		free(job->hang);
	}
	free(snapshot->jobs);
	free(snapshot->host);
	free(snapshot->version);
	free(snapshot->stage);
	summary__free(snapshot->summary);
	free(snapshot);
}

const struct regions *top_snapshot__regions(const struct top_snapshot *snapshot)
{
	return summary__regions(snapshot->summary);
}

bool top_job__hangs(const struct top_job *job)
{
	return job->hang && job->hang_lasts && job->hang_alarm;
}

bool top_job__has(const struct top_job *job, const struct region *region)
{
	return job->user == region->user && !strcmp(job->name, region->job);
}

/* Copies a text of a record, defused; "" where it is missing. NULL when out of memory. */
static char *copy_of(const cJSON *record, enum record_row key)
{
	const char *text = record__text(record, key);

	return printable(strdup(text ? text : ""));
}

static uint32_t user_of(const cJSON *record)
{
	double uid = record__number(record, KEY(of_job, uid), -1);

	return uid >= 0 && uid < UINT32_MAX ? (uint32_t)uid + 1 : 0;
}

static void read_speeds(const cJSON *record, double *speed)
{
	const cJSON *performance = record__item(record, KEY(job_process, performance));

	for (int class = 0; class < VAPRO_CLASSES; class ++)
		speed[class] = record__member_number(performance, vapro_class_name[class], NAN);
}

static struct top_job *find_job(const struct top_snapshot *snapshot, const cJSON *record)
{
	const char *name = record__text(record, KEY(of_job, job));
	struct top_job *found = NULL;
	char *shown = name ? printable(strdup(name)) : NULL;

	for (size_t i = 0; shown && !found && i < snapshot->job_count; i++) {
		if (!strcmp(snapshot->jobs[i].name, shown) && snapshot->jobs[i].user == user_of(record))
			found = &snapshot->jobs[i];
	}
	free(shown);
	return found;
}

static bool add_process(struct top_job *job, const cJSON *item)
{
	const char *probes = record__text(item, KEY(job_process, probes));
	double rank = record__number(item, KEY(job_process, rank), -1);
	struct top_process process = {
	    .pid = (uint32_t)record__uint(item, KEY(job_process, pid)),
	    .rank = rank >= 0 && rank <= INT32_MAX ? (int32_t)rank : -1,
	    .evaluated_pct = record__number(item, KEY(job_process, evaluated_pct), NAN),
	    .calls_per_s = record__number(item, KEY(job_process, calls_per_second), NAN),
	    .overhead_pct = record__number(item, KEY(job_process, overhead_pct), NAN),
	    .exe = copy_of(item, KEY(job_process, exe)),
	};

	snprintf(process.probes, sizeof(process.probes), "%s", probes ? probes : "");
	printable(process.probes);
	read_speeds(item, process.speed);
	if (!process.exe || grow(&job->processes, &job->process_capacity, job->process_count + 1, sizeof(process))) {
		free(process.exe);
		return false;
	}
	job->processes[job->process_count++] = process;
	return true;
}

static void name_user(struct top_job *job, top_user_name user_name)
{
	if (!job->user) {
		strcpy(job->user_name, "?");
		return;
	}
	if (user_name)
		user_name(job->user - 1, job->user_name);
	if (!*job->user_name)
		snprintf(job->user_name, sizeof(job->user_name), "%u", job->user - 1);
	printable(job->user_name);
}

/* Makes the title of a job: "heat (slurm 2)" where its name is known, else its identity. NULL when out of memory. */
static char *title_of(const cJSON *record)
{
	const char *job = record__text(record, KEY(job_status, job)),
		   *called = record__text(record__item(record, KEY(job_status, names)), KEY(job_names, name));
	char identity[JOB_IDENTITY_SHORT_SIZE], *title;

	if (!called || !*called)
		return copy_of(record, KEY(job_status, job));
	return asprintf(&title, "%s (%s)", called, job_names__short(job, identity)) < 0 ? NULL : printable(title);
}

static bool add_job(struct top_snapshot *snapshot, const cJSON *record, top_user_name user_name)
{
	const cJSON *item;
	struct top_job *job;

	if (!record__text(record, KEY(job_status, job)) || find_job(snapshot, record)) {
		snapshot->bad_lines++;
		return true;
	}
	if (grow(&snapshot->jobs, &snapshot->job_capacity, snapshot->job_count + 1, sizeof(*job)))
		return false;
	job = &snapshot->jobs[snapshot->job_count++];
	*job = (struct top_job){.name = copy_of(record, KEY(of_job, job)),
				.title = title_of(record),
				.host = copy_of(record, KEY(head, host)),
				.user = user_of(record),
				.world_size = (uint32_t)record__uint(record, KEY(job_status, world_size)),
				.coverage = NAN,
				.overhead_pct = NAN,
				.overhead_most_pct = NAN,
				.regions_left_out = record__uint(record, KEY(job_status, left_out))};
	for (int class = 0; class < VAPRO_CLASSES; class ++)
		job->speed[class] = NAN;
	if (!job->name || !job->title || !job->host)
		return false;
	name_user(job, user_name);
	cJSON_ArrayForEach(item, record__item(record, KEY(job_status, processes)))
	{
		if (!add_process(job, item))
			return false;
	}
	return true;
}

static void add_window(struct top_snapshot *snapshot, const cJSON *record)
{
	const cJSON *overhead = record__item(record, KEY(window, overhead_pct)),
		    *lost = record__item(record, KEY(window, lost));
	struct top_job *job = find_job(snapshot, record);

	if (!job) {
		snapshot->bad_lines++;
		return;
	}
	read_speeds(record, job->speed);
	job->coverage = record__member_number(record__item(record, KEY(window, coverage)), "total", NAN);
	job->overhead_pct = record__number(overhead, KEY(overhead, mean), NAN);
	job->overhead_most_pct = record__number(overhead, KEY(overhead, max), NAN);
	for (int i = 0; i < VAPRO_LOSSES; i++)
		job->lost[i] = record__member_uint(lost, vapro_loss_name[i]);
}

/* Takes the hang of a job, unless one is known that lasts. Returns whether there was memory. */
static bool add_hang(struct top_snapshot *snapshot, const cJSON *record)
{
	struct top_job *job = find_job(snapshot, record);
	const char *state = record__text(record, KEY(hang, state));

	if (!job || !state || !record__text(record, KEY(hang, text))) {
		snapshot->bad_lines++;
		return true;
	}
	if (job->hang && job->hang_lasts)
		return true;
	free(job->hang);
	job->hang = copy_of(record, KEY(hang, text));
	job->hang_lasts = strcmp(state, "closed") != 0;
	job->hang_alarm = record__true(record, KEY(hang, alarm));
	return job->hang;
}

static bool add_status(struct top_snapshot *snapshot, const cJSON *record)
{
	const char *shows = record__text(record, KEY(status, shows));

	snapshot->host = copy_of(record, KEY(head, host));
	snapshot->version = copy_of(record, KEY(status, version));
	snapshot->pid = (uint32_t)record__uint(record, KEY(status, pid));
	snapshot->window_s = record__number(record, KEY(status, window_seconds), 0);
	snapshot->daemon_cpu_pct = record__number(record, KEY(status, daemon_cpu_pct), NAN);
	snapshot->lost_lines = record__uint(record, KEY(status, lost_lines));
	snapshot->jobs_left_out = record__uint(record, KEY(status, left_out));
	snapshot->all = shows && !strcmp(shows, "all");
	record__time(record, KEY(head, time), &snapshot->utc_ns);
	record__time(record, KEY(status, begin), &snapshot->begin_ns);
	record__time(record, KEY(status, window_end), &snapshot->window_end_ns);
	return snapshot->host && snapshot->version;
}

/* Reads one record. Returns whether there was memory. */
static bool add_record(struct top_snapshot *snapshot, const cJSON *record, top_user_name user_name)
{
	const char *type = record__text(record, KEY(head, type)), *why;
	int status;

	if (!type)
		snapshot->bad_lines++;
	else if (!strcmp(type, "status") && !snapshot->host)
		return add_status(snapshot, record);
	else if (!strcmp(type, "job_status"))
		return add_job(snapshot, record, user_name);
	else if (!strcmp(type, "window"))
		add_window(snapshot, record);
	else if (!strcmp(type, "hang"))
		return add_hang(snapshot, record);
	else if (!strcmp(type, "stage") && record__text(record, KEY(stage, parts_of)) && !snapshot->stage)
		return (snapshot->stage = copy_of(record, KEY(stage, parts_of)));
	else if (!strcmp(type, "variance") || !strcmp(type, "diagnosis")) {
		status = summary__add_record(snapshot->summary, record, &why);
		snapshot->bad_lines += status == -EINVAL;
		return status != -ENOMEM;
	}
	return true;
}

bool top_snapshot__has_cause(const struct top_snapshot *snapshot, const struct region *region)
{
	const struct regions *regions = top_snapshot__regions(snapshot);

	for (size_t i = 0; region->effect_of && i < regions->count; i++) {
		if (regions->items[i].id == region->effect_of)
			return true;
	}
	return false;
}

/* Adds up each job's regions that last. */
static void sum_regions(struct top_snapshot *snapshot)
{
	const struct regions *regions = top_snapshot__regions(snapshot);

	for (size_t i = 0; i < snapshot->job_count; i++) {
		struct top_job *job = &snapshot->jobs[i];

		for (size_t k = 0; k < regions->count; k++) {
			const struct region *region = &regions->items[k];

			if (region->ended || !top_job__has(job, region) || top_snapshot__has_cause(snapshot, region))
				continue;
			job->region_count++;
			job->alarm_count += region->alarm;
			job->lost_s += region->lost_seconds + region->caused_seconds;
		}
	}
}

struct top_snapshot *top_snapshot__read(const char *text, size_t size, top_user_name user_name)
{
	struct top_snapshot *snapshot = calloc(1, sizeof(*snapshot));
	const char *end = text + size, *stop;
	bool good = snapshot && (snapshot->summary = summary__new());

	for (; good && text < end; text = stop + 1) {
		cJSON *record;

		stop = memchr(text, '\n', (size_t)(end - text));
		if (!stop)
			stop = end;
		record = cJSON_ParseWithLength(text, (size_t)(stop - text));
		if (record)
			good = add_record(snapshot, record, user_name);
		else
			snapshot->bad_lines++;
		cJSON_Delete(record);
	}
	if (good && snapshot->host) {
		sum_regions(snapshot);
		return snapshot;
	}
	top_snapshot__free(snapshot);
	return NULL;
}
