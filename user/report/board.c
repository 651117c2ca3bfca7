/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/board_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "diagnose/interferers.h"
#include "report/json.h"
#include "report/record.h"

#define JOBS_MOST 256
#define USERS_LEAST                                                                                                    \
	4 /* a user has a part of the jobs for sure: that of so many users, or of all where these are more */
#define REGIONS_MOST 64		      /* of a job */
#define LINE_MOST 32768		      /* bytes of a line that is retained */
#define BYTES_MOST (8U << 20)	      /* bytes of all records of regions and hangs */
#define WINDOW_BYTES_MOST (4U << 20)  /* bytes of all records of windows, beyond the latest of each job */
#define RECENT_BINS 10		      /* bins at a window's end whose mean is the present speed */
#define ANOTHER_USER "(another user)" /* in place of a task's name */

const char *const board_probes_name[BOARD_PROBES] = {[BOARD_OPEN] = "open",
						     [BOARD_REDUCED] = "reduced",
						     [BOARD_CLOSED] = "closed",
						     [BOARD_ENDED] = "ended",
						     [BOARD_UNKNOWN] = "unknown"};

struct board *board__new(board_shows shows, void *ctx)
{
	struct board *board = calloc(1, sizeof(*board));

	if (!board)
		return NULL;
	board->shows = shows;
	board->ctx = ctx;
	return board;
}

static size_t bytes_of(const struct board_text *text)
{
	return (text->whole ? strlen(text->whole) + 1 : 0) + (text->shown ? strlen(text->shown) + 1 : 0);
}

/* Replaces a text; the board owns the new one. */
static void set_text(struct board *board, struct board_text *text, struct board_text fresh)
{
	board->bytes += bytes_of(&fresh);
	board->bytes -= bytes_of(text);
	free(text->whole);
	free(text->shown);
	*text = fresh;
}

static void free_region(struct board *board, struct board_region *region)
{
	set_text(board, &region->variance, (struct board_text){0});
	set_text(board, &region->diagnosis, (struct board_text){0});
}

static void drop_hang(struct board *board, struct board_job *job, size_t at)
{
	board->bytes -= strlen(job->hangs[at].line) + 1;
	free(job->hangs[at].line);
	job->hang_count--;
	memmove(&job->hangs[at], &job->hangs[at + 1], (job->hang_count - at) * sizeof(job->hangs[at]));
}

/* Drops the oldest windows of a job. */
static void drop_windows(struct board *board, struct board_job *job, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		board->window_bytes -= strlen(job->windows[i].line) + 1;
		free(job->windows[i].line);
	}
	job->window_count -= count;
	if (job->window_count)
		memmove(job->windows, job->windows + count, job->window_count * sizeof(*job->windows));
}

void board_job__free(struct board *board, struct board_job *job)
{
	drop_windows(board, job, job->window_count);
	free(job->windows);
	for (size_t i = 0; i < job->region_count; i++)
		free_region(board, &job->regions[i]);
	free(job->regions);
	while (job->hang_count)
		drop_hang(board, job, 0);
	free(job->rows);
	free(job->name);
}

void board__free(struct board *board)
{
	if (!board)
		return;
	for (size_t i = 0; i < board->job_count; i++)
		board_job__free(board, &board->jobs[i]);
	free(board->jobs);
	free(board->hello);
	free(board->stage);
	free(board);
}

static size_t jobs_of(const struct board *board, uint32_t user)
{
	size_t count = 0;

	for (size_t i = 0; i < board->job_count; i++)
		count += board->jobs[i].user == user;
	return count;
}

/* Returns how many jobs each user has for sure, with one more user. */
static size_t guaranteed(const struct board *board, uint32_t user)
{
	size_t users = jobs_of(board, user) ? 0 : 1;

	for (size_t i = 0; i < board->job_count; i++) {
		bool before = false;

		for (size_t k = 0; k < i && !before; k++)
			before = board->jobs[k].user == board->jobs[i].user;
		users += !before;
	}
	return JOBS_MOST / (users > USERS_LEAST ? users : USERS_LEAST);
}

/* Makes room for a job of a user who has fewer than each has for sure: the user with most jobs loses the last one. */
static bool make_room(struct board *board, uint32_t user)
{
	size_t own = jobs_of(board, user), last = board->job_count, sure, most;

	if (own >= JOBS_MOST / USERS_LEAST)
		return false;
	most = sure = guaranteed(board, user);
	if (own >= sure)
		return false;
	for (size_t i = 0; i < board->job_count; i++) {
		size_t count = jobs_of(board, board->jobs[i].user);

		if (count < most || count <= sure)
			continue;
		most = count;
		last = i;
	}
	if (last == board->job_count)
		return false;
	board_job__free(board, &board->jobs[last]);
	board->jobs[last] = board->jobs[--board->job_count];
	return true;
}

static struct board_job *job_of(struct board *board, const char *name, uint32_t user)
{
	struct board_job *job;

	for (size_t i = 0; i < board->job_count; i++) {
		job = &board->jobs[i];
		if (job->user == user && !strcmp(job->name, name))
			return job;
	}
	if (board->job_count == JOBS_MOST) {
		board->jobs_left_out++;
		if (!make_room(board, user))
			return NULL;
	}
	if (grow(&board->jobs, &board->job_capacity, board->job_count + 1, sizeof(*job)))
		return NULL;
	job = &board->jobs[board->job_count];
	*job = (struct board_job){.name = strdup(name), .user = user};
	if (!job->name)
		return NULL;
	board->job_count++;
	return job;
}

/* Finds or makes the row of a rank. The maps of a window have them in one order: the guess is mostly right. */
static struct board_row *row_of(struct board_job *job, const struct result_row *line, size_t guess)
{
	struct board_row *row;

	for (size_t i = 0; i < job->row_count; i++) {
		row = &job->rows[(guess + i) % job->row_count];
		if (row->pid == line->pid && row->rank == line->rank)
			return row;
	}
	if (grow(&job->rows, &job->row_capacity, job->row_count + 1, sizeof(*row)))
		return NULL;
	row = &job->rows[job->row_count++];
	*row = (struct board_row){.pid = line->pid, .rank = line->rank};
	for (int class = 0; class < VAPRO_CLASSES; class ++)
		row->speed[class] = NAN;
	return row;
}

/* Adds a rank's values of one class: its speed now, and how much of the window could be evaluated. */
static void add_row(struct board_job *job, const struct result_heatmap *map, uint32_t at, size_t guess)
{
	const struct result_row *line = &map->rows[at];
	struct board_row *row = line->thread < 0 ? row_of(job, line, guess) : NULL;
	uint32_t valid = 0, recent = 0;
	double sum = 0;

	if (!row)
		return;
	for (uint32_t bin = 0; bin < map->bins; bin++) {
		if (isnan(line->values[bin]))
			continue;
		valid++;
		if (bin + RECENT_BINS < map->bins)
			continue;
		recent++;
		sum += line->values[bin];
	}
	if (recent)
		row->speed[map->class] = sum / recent;
	row->evaluated = fmax(row->evaluated, (double)valid / map->bins);
}

/* Forgets regions and hangs that ended too long ago. */
static void forget_ended(struct board *board, struct board_job *job, uint64_t now_ns)
{
	for (size_t i = job->hang_count; i-- > 0;) {
		if (job->hangs[i].ended_ns && job->hangs[i].ended_ns + BOARD_RETAINED_NS <= now_ns)
			drop_hang(board, job, i);
	}
	for (size_t i = job->region_count; i-- > 0;) {
		struct board_region *region = &job->regions[i];

		if (!region->ended_ns || region->ended_ns + BOARD_RETAINED_NS > now_ns)
			continue;
		free_region(board, region);
		*region = job->regions[--job->region_count];
	}
}

void board__begin(struct board *board, const struct job_result *result)
{
	struct board_job *job = job_of(board, result->job, result->user);
	size_t before = 0; /* rows of the parts of a map that came before */

	board->result = job ? result : NULL;
	board->current = job ? (size_t)(job - board->jobs) : 0;
	if (!job)
		return;
	job->end_ns = result->end_ns;
	job->row_count = 0;
	forget_ended(board, job, result->end_ns);
	for (uint32_t i = 0; i < result->heatmap_count; i++) {
		const struct result_heatmap *map = &result->heatmaps[i];

		/* other maps correct what was before */
		if (map->begin_ns + map->bins * VAPRO_BIN_NS != result->end_ns)
			continue;
		before = i && map->class == map[-1].class ? before + map[-1].row_count : 0;
		for (uint32_t row = 0; row < map->row_count; row++)
			add_row(job, map, row, before + row);
	}
}

/* Finds or makes a region. A job that has too many gives up what ended first, then what lost least. */
static struct board_region *region_of(struct board *board, struct board_job *job, uint64_t id)
{
	struct board_region *least = NULL;

	for (size_t i = 0; i < job->region_count; i++) {
		struct board_region *region = &job->regions[i];

		if (region->id == id)
			return region;
		if (!least || (region->ended_ns ? !least->ended_ns || region->ended_ns < least->ended_ns
						: !least->ended_ns && region->lost_s < least->lost_s))
			least = region;
	}
	if (job->region_count == REGIONS_MOST) {
		job->regions_left_out += !least->ended_ns;
		free_region(board, least);
		*least = (struct board_region){.id = id};
		return least;
	}
	if (grow(&job->regions, &job->region_capacity, job->region_count + 1, sizeof(*least)))
		return NULL;
	job->regions[job->region_count] = (struct board_region){.id = id};
	return &job->regions[job->region_count++];
}

static const struct result_variance *variance_of(const struct job_result *result, uint64_t id)
{
	for (uint32_t i = 0; i < result->variance_count; i++) {
		if (result->variances[i].id == id)
			return &result->variances[i];
	}
	return NULL;
}

static bool is_shown(const struct board *board, const struct result_interferer *task)
{
	return !interferers__is_foreign(task) || (board->shows && board->shows(board->ctx, board->result->user, task));
}

/* Returns whether a diagnosis names a task that the job's user may not see. */
static bool names_others(const struct board *board, const struct result_diagnosis *diagnosis)
{
	bool others = diagnosis->culprit && !is_shown(board, diagnosis->culprit);

	for (uint32_t i = 0; !others && i < diagnosis->interferer_count; i++)
		others = !is_shown(board, &diagnosis->interferers[i]);
	return others;
}

/* Returns whether a name is that of a task which the job's user may not see. */
static bool is_hidden(const struct board *board, const struct result_diagnosis *diagnosis, const char *comm)
{
	for (uint32_t i = 0; i <= diagnosis->interferer_count; i++) {
		const struct result_interferer *task =
		    i < diagnosis->interferer_count ? &diagnosis->interferers[i] : diagnosis->culprit;

		if (task && !strncmp(task->comm, comm, sizeof(task->comm)) && !is_shown(board, task))
			return true;
	}
	return false;
}

/* Replaces the culprits in the causes of a record that the job's user may not see. */
static void hide_culprits(const struct board *board, const struct result_diagnosis *diagnosis, cJSON *record)
{
	cJSON *cause;

	cJSON_ArrayForEach(cause, cJSON_GetObjectItemCaseSensitive(record, "causes"))
	{
		const char *culprit = record__text(cause, KEY(region_cause, culprit));

		if (culprit && is_hidden(board, diagnosis, culprit))
			cJSON_ReplaceItemInObjectCaseSensitive(cause, "culprit", cJSON_CreateString(ANOTHER_USER));
	}
}

/* Replaces the names of others' tasks in a record, and drops the sentences that may hold them. */
static char *without_others(const struct board *board, const struct result_diagnosis *diagnosis, cJSON *record)
{
	cJSON *list = cJSON_GetObjectItemCaseSensitive(record, "interferers");

	cJSON_DeleteItemFromObjectCaseSensitive(record, "verdict");
	if (diagnosis->culprit && !is_shown(board, diagnosis->culprit) && record__text(record, KEY(diagnosis, culprit)))
		cJSON_ReplaceItemInObjectCaseSensitive(record, "culprit", cJSON_CreateString(ANOTHER_USER));
	hide_culprits(board, diagnosis, record);
	if (list)
		cJSON_ReplaceItemInObjectCaseSensitive(record, "advice", cJSON_CreateNull());
	for (uint32_t i = 0; i < diagnosis->interferer_count; i++) {
		cJSON *item = cJSON_GetArrayItem(list, (int)i);

		if (!item || is_shown(board, &diagnosis->interferers[i]))
			continue;
		cJSON_ReplaceItemInObjectCaseSensitive(item, "comm", cJSON_CreateString(ANOTHER_USER));
		cJSON_ReplaceItemInObjectCaseSensitive(item, "pid", cJSON_CreateNumber(0));
		cJSON_ReplaceItemInObjectCaseSensitive(item, "relation",
						       cJSON_CreateString(interferers__relation[VAPRO_FOREIGN]));
		cJSON_DeleteItemFromObjectCaseSensitive(item, "job");
		cJSON_DeleteItemFromObjectCaseSensitive(item, "rank");
	}
	return cJSON_PrintUnformatted(record);
}

void board__share(struct board *board, board_share share, void *ctx)
{
	board->share = share;
	board->share_ctx = ctx;
}

static void share(const struct board *board, const char *line)
{
	if (board->share)
		board->share(board->share_ctx, board->result->job, board->result->user, line, false);
}

/*
 * Retains a line, and what of it the job's user may see. Without memory, or room on the board, the earlier line
 * remains.
 */
static void retain(struct board *board, struct board_text *text, const char *line, cJSON *record,
		   const struct result_diagnosis *diagnosis)
{
	struct board_text fresh = {.others = names_others(board, diagnosis)};
	char *shown = fresh.others ? without_others(board, diagnosis, record) : NULL;
	bool room = strlen(line) <= LINE_MOST && board->bytes + 2 * strlen(line) <= BYTES_MOST;

	if (shown || !fresh.others)
		share(board, shown ? shown : line);
	fresh.whole = room ? strdup(line) : NULL;
	fresh.shown = shown;
	if (fresh.whole && (!fresh.others || fresh.shown)) {
		set_text(board, text, fresh);
		return;
	}
	if (!text->whole)
		board->jobs[board->current].regions_left_out++;
	free(fresh.whole);
	free(shown);
}

static void add_variance(struct board *board, const char *line, cJSON *record)
{
	struct board_job *job = &board->jobs[board->current];
	const struct result_variance *variance = variance_of(board->result, record__uint(record, KEY(variance, id)));
	struct board_region *region = variance ? region_of(board, job, variance->id) : NULL;

	if (!region)
		return;
	region->ended_ns = variance->state == VAPRO_REGION_CLOSED ? board->result->end_ns : 0;
	region->lost_s = variance->lost_seconds;
	retain(board, &region->variance, line, record, &variance->diagnosis);
}

static void add_diagnosis(struct board *board, const char *line, cJSON *record)
{
	struct board_job *job = &board->jobs[board->current];
	const struct result_variance *variance =
	    variance_of(board->result, record__uint(record, KEY(diagnosis, variance)));
	struct board_region *region = variance ? region_of(board, job, variance->id) : NULL;

	if (region)
		retain(board, &region->diagnosis, line, record, &variance->diagnosis);
}

/* Retains the latest line of a hang. Without memory, or room on the board, the earlier line remains. */
static void add_hang(struct board *board, const char *line, const cJSON *record)
{
	struct board_job *job = &board->jobs[board->current];
	const char *state = record__text(record, KEY(hang, state));
	uint64_t id = record__uint(record, KEY(hang, id));
	size_t at = 0, size = strlen(line) + 1;
	char *copy = size <= LINE_MOST && board->bytes + size <= BYTES_MOST ? strdup(line) : NULL;

	if (!copy)
		return;
	while (at < job->hang_count && job->hangs[at].id != id)
		at++;
	if (at < job->hang_count || job->hang_count == BOARD_HANGS)
		drop_hang(board, job, at < job->hang_count ? at : 0);
	job->hangs[job->hang_count++] = (struct board_hang){
	    .id = id,
	    .ended_ns = state && !strcmp(state, "closed") ? board->result->end_ns : 0,
	    .line = copy,
	};
	board->bytes += size;
}

/* Retains a window's record. Without memory, or where it is too long, the earlier ones remain. */
static void add_window(struct board *board, const char *line)
{
	struct board_job *job = &board->jobs[board->current];
	uint64_t end_ns = board->result->end_ns;
	size_t size = strlen(line) + 1;
	char *copy = NULL;

	if (size <= LINE_MOST &&
	    !grow(&job->windows, &job->window_capacity, job->window_count + 1, sizeof(*job->windows)))
		copy = strdup(line);
	if (!copy)
		return;
	while (job->window_count &&
	       (job->windows[0].end_ns + BOARD_RETAINED_NS <= end_ns || board->window_bytes + size > WINDOW_BYTES_MOST))
		drop_windows(board, job, 1);
	job->windows[job->window_count++] = (struct board_window){.line = copy, .end_ns = end_ns};
	board->window_bytes += size;
}

static void replace(char **text, const char *line)
{
	char *copy = strlen(line) <= LINE_MOST ? strdup(line) : NULL;

	if (!copy)
		return;
	free(*text);
	*text = copy;
}

/* Shares a record of a process, which belongs to no window. */
static void share_process(const struct board *board, const char *line)
{
	cJSON *record = cJSON_Parse(line);
	const cJSON *job = record__item(record, KEY(process, job));
	const char *identity = record__text(job, KEY(process_job, identity));
	const char *state = record__text(record, KEY(process, state));
	double uid = record__number(job, KEY(process_job, uid), -1);

	if (identity && state && uid >= 0 && uid < UINT32_MAX)
		board->share(board->share_ctx, identity, (uint32_t)uid + 1, line, !strcmp(state, "attached"));
	cJSON_Delete(record);
}

/* Returns whether a record of a job's window is about the job alone, and names no task of others. */
static bool is_own(enum record_object type)
{
	return type == RECORD_OBJECT_window || type == RECORD_OBJECT_heatmap || type == RECORD_OBJECT_hang ||
	       type == RECORD_OBJECT_imbalance || type == RECORD_OBJECT_drift || type == RECORD_OBJECT_rare ||
	       type == RECORD_OBJECT_variability;
}

void board__line(struct board *board, enum record_object type, const char *line)
{
	cJSON *record;

	if (type == RECORD_OBJECT_hello)
		replace(&board->hello, line);
	if (type == RECORD_OBJECT_stage)
		replace(&board->stage, line);
	if (type == RECORD_OBJECT_process && board->share)
		share_process(board, line);
	if (!board->result)
		return;
	if (is_own(type))
		share(board, line);
	if (type == RECORD_OBJECT_window)
		add_window(board, line);
	if (type != RECORD_OBJECT_variance && type != RECORD_OBJECT_diagnosis && type != RECORD_OBJECT_hang)
		return;
	record = cJSON_Parse(line);
	if (record && type == RECORD_OBJECT_variance)
		add_variance(board, line, record);
	else if (record && type == RECORD_OBJECT_hang)
		add_hang(board, line, record);
	else if (record)
		add_diagnosis(board, line, record);
	cJSON_Delete(record);
}

void board__end(struct board *board, uint64_t end_ns)
{
	board->result = NULL;
	board->end_ns = end_ns;
	for (size_t i = board->job_count; i-- > 0;) {
		if (board->jobs[i].end_ns + BOARD_RETAINED_NS > end_ns)
			continue;
		board_job__free(board, &board->jobs[i]);
		board->jobs[i] = board->jobs[--board->job_count];
	}
}
