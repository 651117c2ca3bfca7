// SPDX-License-Identifier: GPL-2.0-or-later
#include "query/joined_records.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "report/record.h"

/* A job, and the part that it is taken from. */
struct owned_job {
	char *job;
	uint64_t uid; /* UINT64_MAX: unknown */
	size_t part;
	int processes;
};

struct join {
	struct joined_part parts[JOINED_PARTS]; /* in the order of the begins of their runs */
	uint64_t begin_ns[JOINED_PARTS];
	size_t count;
	struct owned_job *jobs;
	size_t job_count, job_capacity;
	FILE *out;
};

/* Does something with a record of a part. Returns whether there was memory. */
typedef bool (*use_record)(struct join *join, size_t part, const cJSON *record, const char *line, size_t size);

static bool each_record(struct join *join, size_t part, use_record use)
{
	const char *at = join->parts[part].text, *end = at + join->parts[part].size, *stop;
	bool good = true;

	for (; good && at < end; at = stop + 1) {
		cJSON *record;

		stop = memchr(at, '\n', (size_t)(end - at));
		if (!stop)
			stop = end;
		record = cJSON_ParseWithLength(at, (size_t)(stop - at));
		if (record)
			good = use(join, part, record, at, (size_t)(stop - at));
		cJSON_Delete(record);
	}
	return good;
}

static uint64_t uid_of(const cJSON *record)
{
	return record__item(record, KEY(of_job, uid)) ? record__uint(record, KEY(of_job, uid)) : UINT64_MAX;
}

static struct owned_job *find_job(const struct join *join, const cJSON *record)
{
	const char *job = record__text(record, KEY(of_job, job));

	for (size_t i = 0; job && i < join->job_count; i++) {
		if (!strcmp(join->jobs[i].job, job) && join->jobs[i].uid == uid_of(record))
			return &join->jobs[i];
	}
	return NULL;
}

static bool note_begin(struct join *join, size_t part, const cJSON *record, const char *line, size_t size)
{
	(void)line;
	(void)size;
	if (record__type(record) == RECORD_OBJECT_status)
		record__time(record, KEY(status, begin), &join->begin_ns[part]);
	return true;
}

static bool note_job(struct join *join, size_t part, const cJSON *record, const char *line, size_t size)
{
	int processes = cJSON_GetArraySize(record__item(record, KEY(job_status, processes)));
	struct owned_job *job = find_job(join, record);

	(void)line;
	(void)size;
	if (record__type(record) != RECORD_OBJECT_job_status || !record__text(record, KEY(job_status, job)))
		return true;
	if (!job) {
		if (grow(&join->jobs, &join->job_capacity, join->job_count + 1, sizeof(*job)))
			return false;
		job = &join->jobs[join->job_count];
		*job = (struct owned_job){.job = strdup(record__text(record, KEY(job_status, job))),
					  .uid = uid_of(record),
					  .part = part,
					  .processes = processes};
		join->job_count += job->job != NULL;
		return job->job;
	}
	if (processes > job->processes) {
		job->part = part;
		job->processes = processes;
	}
	return true;
}

/* Whether a record is about the run of a vaprod, of which the joined records have one. */
static bool is_of_run(const cJSON *record)
{
	enum record_object type = record__type(record);

	return type == RECORD_OBJECT_status || type == RECORD_OBJECT_hello || type == RECORD_OBJECT_stage ||
	       type == RECORD_OBJECT_bye;
}

static bool put_record(struct join *join, size_t part, const cJSON *record, const char *line, size_t size)
{
	const struct owned_job *job = find_job(join, record);
	bool of_other = job ? job->part != part : part > 0 && is_of_run(record);

	if (of_other)
		return true;
	return fwrite(line, 1, size, join->out) == size && putc('\n', join->out) != EOF;
}

/* Puts the parts into the order of the begins of their runs; there are few. */
static void sort_parts(struct join *join)
{
	for (size_t i = 1; i < join->count; i++) {
		for (size_t k = i; k && join->begin_ns[k] < join->begin_ns[k - 1]; k--) {
			struct joined_part part = join->parts[k];
			uint64_t begin_ns = join->begin_ns[k];

			join->parts[k] = join->parts[k - 1];
			join->begin_ns[k] = join->begin_ns[k - 1];
			join->parts[k - 1] = part;
			join->begin_ns[k - 1] = begin_ns;
		}
	}
}

static bool join_all(struct join *join)
{
	bool good = true;

	for (size_t i = 0; good && i < join->count; i++)
		good = each_record(join, i, note_begin);
	sort_parts(join);
	for (size_t i = 0; good && i < join->count; i++)
		good = each_record(join, i, note_job);
	for (size_t i = 0; good && i < join->count; i++)
		good = each_record(join, i, put_record);
	return good;
}

char *joined_records__make(const struct joined_part *parts, size_t count, size_t *size)
{
	struct join join = {.count = 0};
	char *text = NULL;
	bool good;

	for (size_t i = 0; i < count && join.count < JOINED_PARTS; i++) {
		if (parts[i].text)
			join.parts[join.count++] = parts[i];
	}
	join.out = open_memstream(&text, size);
	if (!join.out)
		return NULL;
	if (join.count == 1)
		good = fwrite(join.parts[0].text, 1, join.parts[0].size, join.out) == join.parts[0].size;
	else
		good = join_all(&join);
	good &= !fclose(join.out);
	for (size_t i = 0; i < join.job_count; i++)
		free(join.jobs[i].job);
	free(join.jobs);
	if (good)
		return text;
	free(text);
	return NULL;
}
