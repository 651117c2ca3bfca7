// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The state of an analysis as bytes: docs/checkpoint.md says what is in it, and what is not. A function describes each
 * object for both directions.
 */
#include "analysis/checkpoint.h"

#include "analysis/analysis_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/tunables.h"

#define KIND "analysis"
#define MOST_FACTOR 64		/* bytes in memory for each byte of a checkpoint: zeros take next to none */
#define MOST_LEAST (1ULL << 30) /* and what a small one may hold */

/* ---- what must be equal: the tunables */

struct tunables {
	char text[8192];
};

static const struct archive_column tunables_columns[] = {ARCHIVE_MANY(struct tunables, text)};
static const struct archive_table tunables_table = ARCHIVE_TABLE("tunables", struct tunables, tunables_columns);

static bool matters(const struct option_row *option)
{
	return option->group == VAPRO_GROUP_ANALYSIS || !strcmp(option->name, "hop-frames") ||
	       !strcmp(option->name, "memory-cap") || !strcmp(option->name, "no-return");
}

/* Writes the tunables of an analysis, one a line. */
static void write_tunables(const struct analysis_context *context, struct tunables *tunables)
{
	size_t used = (size_t)snprintf(tunables->text, sizeof(tunables->text), "workload source: %s\n",
				       context->source == VAPRO_BY_INSTRUCTIONS ? "instructions" : "arguments");
	char value[VAPRO_FUNCTIONS_TEXT];

	for (size_t i = 0; i < vapro_tunable_count && used < sizeof(tunables->text); i++) {
		if (!matters(&vapro_tunables[i]))
			continue;
		config__format(&context->config, &vapro_tunables[i], value, sizeof(value));
		used += (size_t)snprintf(tunables->text + used, sizeof(tunables->text) - used, "%s: %s\n",
					 vapro_tunables[i].name, value);
	}
}

/* Refuses a checkpoint of other tunables by the first line that differs. */
static void compare(struct archive *archive, const char *here, const char *there)
{
	char why[200];

	while (*here && *there) {
		size_t length = strcspn(here, "\n"), other = strcspn(there, "\n");

		if (length == other && !memcmp(here, there, length)) {
			here += length + (here[length] == '\n');
			there += other + (there[other] == '\n');
			continue;
		}
		snprintf(why, sizeof(why), "it was made with other settings (%.*s; here %.*s)",
			 (int)(other < 70 ? other : 70), there, (int)(length < 70 ? length : 70), here);
		archive__fail(archive, -ENOTSUP, why);
		return;
	}
	if (*here || *there)
		archive__fail(archive, -ENOTSUP, "it was made by a version that has other settings");
}

static void archive_tunables(struct archive *archive, const struct analysis_context *context)
{
	struct tunables *tunables = calloc(2, sizeof(*tunables));

	if (!tunables) {
		archive__fail(archive, -ENOMEM, "out of memory");
		return;
	}
	write_tunables(context, &tunables[0]);
	tunables[1] = tunables[0];
	archive__record(archive, &tunables_table, &tunables[1]);
	if (archive__reads(archive) && !archive__error(archive))
		compare(archive, tunables[0].text, tunables[1].text);
	free(tunables);
}

/* ---- the context */

static const struct archive_column context_columns[] = {
    ARCHIVE_ONE(struct analysis_context, last_variance),
    ARCHIVE_ONE(struct analysis_context, counted),
    ARCHIVE_ONE(struct analysis_context, remember_bins),
    ARCHIVE_ONE(struct analysis_context, remember_bytes),
    ARCHIVE_ONE(struct analysis_context, memory.fixed),
    ARCHIVE_ONE(struct analysis_context, memory.elsewhere),
    ARCHIVE_ONE(struct analysis_context, memory.results),
    ARCHIVE_ONE(struct analysis_context, memory.series),
    ARCHIVE_ONE(struct analysis_context, memory.look_at),
    ARCHIVE_ONE(struct analysis_context, memory.short_history),
    ARCHIVE_ONE(struct analysis_context, memory.exhausted),
    ARCHIVE_ONE(struct analysis_context, memory.shed.bytes),
    ARCHIVE_ONE(struct analysis_context, memory.shed.remembered),
    ARCHIVE_ONE(struct analysis_context, memory.shed.merged),
    ARCHIVE_ONE(struct analysis_context, memory.shed.bins),
    ARCHIVE_ONE(struct analysis_context, memory.shed.coarser),
    ARCHIVE_ONE(struct analysis_context, memory.shed.bundles),
    ARCHIVE_ONE(struct analysis_context, memory.shed.fragments),
    ARCHIVE_ONE(struct analysis_context, memory.shed.seconds),
    ARCHIVE_ONE(struct analysis_context, memory.shed.evicted),
    ARCHIVE_ONE(struct analysis_context, memory.reported.bytes),
    ARCHIVE_ONE(struct analysis_context, memory.reported.remembered),
    ARCHIVE_ONE(struct analysis_context, memory.reported.merged),
    ARCHIVE_ONE(struct analysis_context, memory.reported.bins),
    ARCHIVE_ONE(struct analysis_context, memory.reported.coarser),
    ARCHIVE_ONE(struct analysis_context, memory.reported.bundles),
    ARCHIVE_ONE(struct analysis_context, memory.reported.fragments),
    ARCHIVE_ONE(struct analysis_context, memory.reported.seconds),
    ARCHIVE_ONE(struct analysis_context, memory.reported.evicted),
};
static const struct archive_table context_table = ARCHIVE_TABLE("analysis", struct analysis_context, context_columns);

/* ---- jobs */

static const struct archive_column job_columns[] = {
    ARCHIVE_ONE(struct analysis_job, active),
    ARCHIVE_ONE(struct analysis_job, forgotten),
    ARCHIVE_ONE(struct analysis_job, room),
    ARCHIVE_ONE(struct analysis_job, known_from),
    ARCHIVE_ONE(struct analysis_job, bundles),
    ARCHIVE_ONE(struct analysis_job, fragments),
    ARCHIVE_ONE(struct analysis_job, variability_known),
    ARCHIVE_ONE(struct analysis_job, history.from),
    ARCHIVE_ONE(struct analysis_job, facts.wall_ns),
    ARCHIVE_ONE(struct analysis_job, facts.governed_ns),
    ARCHIVE_ONE(struct analysis_job, facts.thinned_ns),
    ARCHIVE_ONE(struct analysis_job, facts.thinned),
    ARCHIVE_ONE(struct analysis_job, facts.shed_ns),
    ARCHIVE_ONE(struct analysis_job, facts.shed),
    ARCHIVE_ONE(struct analysis_job, facts.overhead_sum_pct),
    ARCHIVE_ONE(struct analysis_job, facts.overhead_max_pct),
    ARCHIVE_ONE(struct analysis_job, facts.overhead_max_pid),
    ARCHIVE_ONE(struct analysis_job, facts.processes),
    ARCHIVE_MANY(struct analysis_job, facts.lost),
};
static const struct archive_table job_table = ARCHIVE_TABLE("job", struct analysis_job, job_columns);

static const struct archive_column interference_columns[] = {
    ARCHIVE_ONE(struct interference_rec, thread),	 ARCHIVE_ONE(struct interference_rec, row),
    ARCHIVE_ONE(struct interference_rec, bin),		 ARCHIVE_ONE(struct interference_rec, counted),
    ARCHIVE_MANY(struct interference_rec, task.comm),	 ARCHIVE_ONE(struct interference_rec, task.pid),
    ARCHIVE_ONE(struct interference_rec, task.relation), ARCHIVE_ONE(struct interference_rec, task.seconds),
    ARCHIVE_ONE(struct interference_rec, task.rank),	 ARCHIVE_ONE(struct interference_rec, other_job),
};
static const struct archive_table interference_table =
    ARCHIVE_TABLE("interference", struct interference_rec, interference_columns);

static void archive_interference(struct archive *archive, const struct stg *stg, uint32_t job,
				 struct interference_rec **items, size_t *count, size_t *capacity)
{
	archive__rows(archive, &interference_table, items, count, capacity);
	for (size_t i = 0; archive__reads(archive) && i < *count; i++) {
		const struct interference_rec *at = &(*items)[i];

		archive__check(archive,
			       at->thread < stg__threads(stg) && stg__thread(stg, at->thread)->job == job &&
				   at->row < stg__job(stg, job)->row_count && at->task.relation < VAPRO_RELATIONS,
			       "an interference has an unknown thread");
	}
}

static void archive_recs(struct archive *archive, struct analysis_context *context, struct analysis_job *job)
{
	struct series_book *book = &context->series;
	struct history *history = &job->history;

	series__archive_recs(archive, book, job->id, &job->recs, &job->rec_count, &job->rec_capacity);
	series__archive_recs(archive, book, job->id, &job->open, &job->open_count, &job->open_capacity);
	archive_interference(archive, context->stg, job->id, &job->interference, &job->interference_count,
			     &job->interference_capacity);
	series__archive_recs(archive, book, job->id, &history->recs, &history->rec_count, &history->rec_capacity);
	series__archive_recs(archive, book, job->id, &history->open, &history->open_count, &history->open_capacity);
	archive_interference(archive, context->stg, job->id, &history->interference, &history->interference_count,
			     &history->interference_capacity);
}

static void archive_clocks(struct archive *archive, struct analysis_job *job)
{
	uint64_t clocks = job->clocks != NULL;

	archive__number(archive, &clocks);
	if (archive__reads(archive) && clocks && !archive__error(archive)) {
		job->clocks = clocks__new();
		if (!job->clocks)
			archive__fail(archive, -ENOMEM, "out of memory");
	}
	if (job->clocks)
		clocks__archive(archive, job->clocks);
}

static void archive_job(struct archive *archive, struct analysis_context *context, struct analysis_job *job)
{
	size_t rows = stg__job(context->stg, job->id)->row_count, series = context->series.count;
	uint64_t waits = job->waiting != NULL;

	archive__record(archive, &job_table, job);
	archive__check(archive, job->room <= JOB_ROOM_SURE, "a job has no such room");
	if (job_series__bound(&context->series, job->id, job->room))
		archive__fail(archive, -ENOMEM, "out of memory");
	archive_recs(archive, context, job);
	account__archive(archive, &job->account, context->stg, job->id);
	noise__archive(archive, &job->noise, context->stg, job->id);
	rank_profile__archive(archive, &job->profile, rows);
	stalls__archive(archive, &job->stalls, rows, stg__states(context->stg));
	stall_kinds__archive(archive, &job->stall_list);
	sensing__archive(archive, &job->sensing, rows);
	heatmap__archive(archive, &job->map, rows);
	archive__number(archive, &waits);
	archive__check(archive, job->forgotten == !waits && (job->forgotten || !job->vacant),
		       "a job waits without being there");
	if (archive__reads(archive) && waits && !archive__error(archive)) {
		job->waiting = waiting__new();
		if (!job->waiting)
			archive__fail(archive, -ENOMEM, "out of memory");
	}
	if (job->waiting)
		waiting__archive(archive, job->waiting);
	job->book.last_id = &context->last_variance;
	archive_clocks(archive, job);
	variance__archive(archive, &job->book, rows, series);
	diagnoses__archive(archive, &job->diagnoses);
	lateness__archive(archive, &job->coverage.lateness);
	sets__archive(archive, &job->sets, rows, series);
	hang__archive(archive, &job->hang, rows, stg__states(context->stg));
}

static void archive_jobs(struct archive *archive, struct analysis *analysis)
{
	uint64_t count = analysis->job_count, capacity = analysis->job_capacity;

	archive__number(archive, &count);
	archive__number(archive, &capacity);
	if (archive__reads(archive)) {
		if (!archive__check(archive, count == stg__jobs(analysis->context.stg) && count <= capacity,
				    "its jobs are not those of its threads"))
			return;
		analysis->jobs = archive__take(archive, capacity, sizeof(*analysis->jobs));
		analysis->job_capacity = analysis->jobs ? capacity : 0;
	}
	for (uint64_t i = 0; i < count && !archive__error(archive); i++) {
		if (archive__reads(archive)) {
			analysis->jobs[i].id = (uint32_t)i;
			analysis->jobs[i].vacant = !stg__job(analysis->context.stg, (uint32_t)i)->name;
			analysis->job_count++;
		}
		archive_job(archive, &analysis->context, &analysis->jobs[i]);
	}
}

void analysis__archive(struct archive *archive, struct analysis *analysis)
{
	struct analysis_context *context = &analysis->context;

	if (context->selection.active)
		archive__fail(archive, -ENOTSUP, "a region chosen by hand cannot be part of a checkpoint");
	archive_tunables(archive, context);
	archive__record(archive, &context_table, context);
	stg__archive(archive, context->stg);
	series__archive(archive, &context->series);
	hops__archive(archive, context->hops);
	archive__check(archive, hops__states(context->hops) <= stg__states(context->stg),
		       "call-sites are of states that are not there");
	driver__archive(archive, &context->driver, stg__jobs(context->stg));
	places__archive(archive, &context->places);
	archive_jobs(archive, analysis);
	inside__archive(archive, context->inside, context->stg);
	host_clocks__archive(archive, context->host_clocks);
}

/* ---- as a file */

size_t analysis__most_bytes(size_t size)
{
	return size > SIZE_MAX / MOST_FACTOR - MOST_LEAST ? SIZE_MAX : size * MOST_FACTOR + MOST_LEAST;
}

int analysis__report(const struct archive *archive, const char *what, char *err, size_t err_size)
{
	int error = archive ? archive__error(archive) : -ENOMEM;

	if (error && err_size)
		snprintf(err, err_size, "%s: %s", what, archive ? archive__why(archive) : "out of memory");
	return error;
}

int analysis__save(const struct analysis *analysis, uint8_t **data, size_t *size, char *err, size_t err_size)
{
	struct archive *archive = archive__new();
	int error;

	*data = NULL;
	*size = 0;
	if (archive) {
		/* writing changes nothing: one function describes both directions */
		analysis__archive(archive, (struct analysis *)analysis);
		*data = archive__seal(archive, KIND, size);
	}
	error = analysis__report(archive, "the analysis cannot be saved", err, err_size);
	archive__free(archive);
	return error;
}

int analysis__load(struct analysis *analysis, const uint8_t *data, size_t size, char *err, size_t err_size)
{
	struct archive *archive = archive__unseal(data, size, KIND, analysis__most_bytes(size));
	int error;

	if (archive && stg__threads(analysis->context.stg))
		archive__fail(archive, -EINVAL, "it can be read into a new analysis only");
	if (archive && !archive__error(archive)) {
		analysis__archive(archive, analysis);
		archive__end(archive);
	}
	error = analysis__report(archive, "the checkpoint is refused", err, err_size);
	archive__free(archive);
	return error;
}
