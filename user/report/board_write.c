/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The records of a board for one reader. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "report/board_private.h"
#include "report/job_book.h"
#include "report/json.h"
#include "report/record.h"

static int print(FILE *out, const char *line)
{
	return fprintf(out, "%s\n", line) < 0 ? -EIO : 0;
}

static int put(void *arg, enum record_object type, const char *line)
{
	(void)type;
	return print(arg, line);
}

static int put_status(const struct board *board, const struct board_facts *facts, bool all, FILE *out)
{
	cJSON *object = record__begin(RECORD_OBJECT_status, facts->utc_ns, facts->host);
	bool ok = object && record__put_text(object, KEY(status, version), facts->version) &&
		  record__put_uint(object, KEY(status, pid), facts->pid) &&
		  record__put_time(object, KEY(status, begin), facts->begin_ns) &&
		  record__put_number(object, KEY(status, window_seconds), facts->window_s) &&
		  record__put_text(object, KEY(status, shows), all ? "all" : "own") &&
		  (board->end_ns ? record__put_time(object, KEY(status, window_end), board->end_ns)
				 : record__put_text(object, KEY(status, window_end), NULL));

	/* what the daemon as a whole does is also a matter of the jobs of others */
	if (ok && all)
		ok = record__put_number(object, KEY(status, daemon_cpu_pct), facts->daemon_cpu_pct) &&
		     record__put_uint(object, KEY(status, lost_lines), facts->lost_lines) &&
		     record__put_uint(object, KEY(status, left_out), board->jobs_left_out);
	return record__emit(RECORD_OBJECT_status, object, ok, put, out);
}

static const struct board_row *row_of(const struct board_job *job, const struct board_process *process)
{
	for (size_t i = 0; job && i < job->row_count; i++) {
		/* nodes of a job may have equal pids */
		if (job->rows[i].pid == process->pid &&
		    (job->rows[i].rank < 0 || process->rank < 0 || job->rows[i].rank == process->rank))
			return &job->rows[i];
	}
	return NULL;
}

static bool add_process(cJSON *list, const struct board_process *process, const struct board_row *row)
{
	cJSON *item = record__append(list), *speed;
	bool ok = item && record__put_uint(item, KEY(job_process, pid), process->pid) &&
		  record__put_number(item, KEY(job_process, rank), process->rank < 0 ? NAN : (double)process->rank) &&
		  record__put_text(item, KEY(job_process, exe), process->exe) &&
		  record__put_text(item, KEY(job_process, probes), board_probes_name[process->probes]) &&
		  record__put_number(item, KEY(job_process, calls_per_second), process->calls_per_s) &&
		  record__put_number(item, KEY(job_process, overhead_pct), process->overhead_pct) &&
		  record__put_number(item, KEY(job_process, evaluated_pct), row ? 100 * row->evaluated : NAN);
	speed = ok ? record__put_object(item, KEY(job_process, performance)) : NULL;
	for (int class = 0; ok && class < VAPRO_CLASSES; class ++)
		ok = speed && record__put_named(speed, KEY(job_process, performance), vapro_class_name[class],
						row ? row->speed[class] : NAN);
	return ok;
}

/* A job by its name and user: what the board has of it, and its processes. */
struct named_job {
	const char *name;
	uint32_t user;
	const struct board_job *job; /* NULL: it had no window yet */
};

static int put_job(const struct board_facts *facts, const struct named_job *named,
		   const struct board_process *processes, size_t process_count, FILE *out)
{
	cJSON *object = record__begin(RECORD_OBJECT_job_status, facts->utc_ns, facts->host), *list;
	bool ok = object && record__put_job(object, named->name, named->user) &&
		  record__put_uint(object, KEY(job_status, left_out), named->job ? named->job->regions_left_out : 0);
	const struct job_names *names = NULL;
	uint32_t world_size = 0;

	list = ok ? record__put_list(object, KEY(job_status, processes)) : NULL;
	ok = list;
	for (size_t i = 0; ok && i < process_count; i++) {
		const struct board_process *process = &processes[i];

		if (process->user != named->user || strcmp(process->job, named->name))
			continue;
		if (process->names && (!names || process->names->source > names->source))
			names = process->names;
		world_size = process->world_size > world_size ? process->world_size : world_size;
		ok = add_process(list, process, row_of(named->job, process));
	}
	ok = ok && job_book__put(object, KEY(job_status, names), names) &&
	     record__put_uint(object, KEY(job_status, world_size), world_size);
	return record__emit(RECORD_OBJECT_job_status, object, ok, put, out);
}

static int put_text(const struct board_text *text, bool all, FILE *out)
{
	const char *line = text->others && !all ? text->shown : text->whole;

	return line ? print(out, line) : 0;
}

/* Returns whether a reader is shown what ended then, at the end of the latest window; 0: it has not ended. */
static bool is_recent(const struct board_reader *reader, uint64_t ended_ns, uint64_t end_ns)
{
	return reader->report || !ended_ns || ended_ns + BOARD_OVER_NS > end_ns;
}

static int put_findings(const struct board_job *job, const struct board_reader *reader, FILE *out)
{
	size_t first = reader->report || !job->window_count ? 0 : job->window_count - 1;
	int ret = 0;

	for (size_t i = first; !ret && i < job->window_count; i++)
		ret = print(out, job->windows[i].line);
	for (size_t i = 0; !ret && i < job->hang_count; i++)
		ret = is_recent(reader, job->hangs[i].ended_ns, job->end_ns) ? print(out, job->hangs[i].line) : 0;
	for (size_t i = 0; !ret && i < job->region_count; i++) {
		const struct board_region *region = &job->regions[i];

		if (!is_recent(reader, region->ended_ns, job->end_ns))
			continue;
		ret = put_text(&region->variance, reader->all, out);
		if (!ret && region->variance.whole)
			ret = put_text(&region->diagnosis, reader->all, out);
	}
	return ret;
}

/* Puts the stage: to a user only where it serves a region of the user's own job. */
static int put_stage(const struct board *board, uint32_t user, bool all, FILE *out)
{
	cJSON *record = board->stage ? cJSON_Parse(board->stage) : NULL;
	const char *name = record__text(record, KEY(stage, job));
	uint64_t id = record__uint(record, KEY(stage, variance));
	bool shown = record && all;

	for (size_t i = 0; record && name && !shown && i < board->job_count; i++) {
		const struct board_job *job = &board->jobs[i];

		if (job->user != user || strcmp(job->name, name))
			continue;
		for (size_t k = 0; !shown && k < job->region_count; k++)
			shown = job->regions[k].id == id;
	}
	cJSON_Delete(record);
	return shown ? print(out, board->stage) : 0;
}

static const struct board_job *find(const struct board *board, const char *name, uint32_t user)
{
	for (size_t i = 0; i < board->job_count; i++) {
		if (board->jobs[i].user == user && !strcmp(board->jobs[i].name, name))
			return &board->jobs[i];
	}
	return NULL;
}

/* Returns whether an earlier process has the job of this one, or the board does. */
static bool is_named(const struct board *board, const struct board_process *processes, size_t at)
{
	for (size_t i = 0; i < at; i++) {
		if (processes[i].user == processes[at].user && !strcmp(processes[i].job, processes[at].job))
			return true;
	}
	return find(board, processes[at].job, processes[at].user);
}

bool board_reader__sees(const struct board_reader *reader, uint32_t user)
{
	return reader->all || (user && user == reader->user);
}

int board__write(const struct board *board, const struct board_facts *facts, const struct board_process *processes,
		 size_t process_count, const struct board_reader *reader, FILE *out)
{
	/* what the daemon as a whole is like, and how it was started, is root's matter; a run begins with it */
	int ret = board->hello && reader->report && reader->all ? print(out, board->hello) : 0;

	if (!ret)
		ret = put_status(board, facts, reader->all, out);
	if (!ret)
		ret = put_stage(board, reader->user, reader->all, out);
	for (size_t i = 0; !ret && i < board->job_count; i++) {
		const struct board_job *job = &board->jobs[i];

		if (!board_reader__sees(reader, job->user) || !is_recent(reader, job->end_ns, board->end_ns))
			continue;
		ret = put_job(facts, &(struct named_job){job->name, job->user, job}, processes, process_count, out);
		if (!ret)
			ret = put_findings(job, reader, out);
	}
	for (size_t i = 0; !ret && i < process_count; i++) {
		const struct board_process *process = &processes[i];

		/* such a process has had no window yet */
		if (!board_reader__sees(reader, process->user) || is_named(board, processes, i))
			continue;
		ret = put_job(facts, &(struct named_job){process->job, process->user, NULL}, processes, process_count,
			      out);
	}
	return ret == -EIO ? 0 : ret;
}
