// SPDX-License-Identifier: GPL-2.0-or-later
/* A board that is filled from records, as workers publish them, in place of results. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "report/board_private.h"
#include "report/json.h"
#include "report/record.h"

#define BINS_MOST 4096 /* of a map: some minutes */

/* What of a window's records the board reads as a result. */
struct window {
	struct job_result result;
	struct result_heatmap *maps;
	struct result_variance *variances;
	size_t map_count, map_capacity, variance_count, variance_capacity;
	uint32_t world_size;
};

static void free_window(struct window *window)
{
	for (size_t i = 0; i < window->map_count; i++) {
		for (uint32_t row = 0; row < window->maps[i].row_count; row++)
			free((double *)window->maps[i].rows[row].values);
		free((struct result_row *)window->maps[i].rows);
	}
	free(window->maps);
	free(window->variances);
}

/* Reads the values of a row. Returns them, malloc'ed, or NULL. */
static double *values_of(const cJSON *row, uint32_t bins)
{
	double *values = malloc((bins + 1) * sizeof(*values));
	const cJSON *item;
	uint32_t bin = 0;

	cJSON_ArrayForEach(item, record__item(row, KEY(row, values)))
	{
		if (values && bin < bins)
			values[bin] = cJSON_IsNumber(item) ? item->valuedouble : NAN;
		bin++;
	}
	for (; values && bin < bins; bin++)
		values[bin] = NAN;
	return values;
}

static int add_map(struct window *window, const cJSON *record)
{
	int class = record__word(record__text(record, KEY(heatmap, class)), vapro_class_name, VAPRO_CLASSES);
	const cJSON *list = record__item(record, KEY(heatmap, rows)), *item;
	int count = cJSON_GetArraySize(list);
	int bins = cJSON_GetArraySize(record__item(cJSON_GetArrayItem(list, 0), KEY(row, values)));
	struct result_heatmap *map;
	struct result_row *rows;

	if (class == VAPRO_CLASSES || count <= 0 || bins <= 0 || bins > BINS_MOST)
		return 0;
	rows = calloc((size_t)count, sizeof(*rows));
	if (!rows || grow(&window->maps, &window->map_capacity, window->map_count + 1, sizeof(*map))) {
		free(rows);
		return -ENOMEM;
	}
	map = &window->maps[window->map_count++];
	*map = (struct result_heatmap){.class = (enum vapro_class) class, .bins = (uint32_t)bins, .rows = rows};
	record__time(record, KEY(heatmap, begin), &map->begin_ns);
	cJSON_ArrayForEach(item, list)
	{
		struct result_row *row = &rows[map->row_count];
		double rank = record__number(item, KEY(row, rank), -1),
		       thread = record__number(item, KEY(row, thread), -1);

		*row = (struct result_row){.rank = rank >= 0 && rank < INT32_MAX ? (int32_t)rank : -1,
					   .thread = thread >= 0 && thread < INT32_MAX ? (int32_t)thread : -1,
					   .pid = (uint32_t)record__uint(item, KEY(row, pid)),
					   .values = values_of(item, map->bins)};
		if (!row->values)
			return -ENOMEM;
		map->row_count++;
	}
	return 0;
}

static int add_variance(struct window *window, const cJSON *record)
{
	const char *state = record__text(record, KEY(variance, state));
	struct result_variance *variance;

	if (grow(&window->variances, &window->variance_capacity, window->variance_count + 1, sizeof(*variance)))
		return -ENOMEM;
	variance = &window->variances[window->variance_count++];
	variance->id = record__uint(record, KEY(variance, id));
	variance->state = state && !strcmp(state, "closed") ? VAPRO_REGION_CLOSED : VAPRO_REGION_OPEN;
	variance->lost_seconds = record__number(record, KEY(variance, lost_seconds), 0);
	return 0;
}

static int read_record(struct window *window, const cJSON *record)
{
	const char *type = record__text(record, KEY(head, type));

	if (!type)
		return 0;
	if (!strcmp(type, "heatmap"))
		return add_map(window, record);
	if (!strcmp(type, "variance"))
		return add_variance(window, record);
	if (!strcmp(type, "window")) {
		record__time(record, KEY(window, end), &window->result.end_ns);
		window->world_size = (uint32_t)record__uint(record, KEY(window, world_size));
	}
	return 0;
}

/* Calls put for each line, which it may change, until one fails. */
static int each_line(const char *text, size_t size, int (*put)(void *ctx, const char *line), void *ctx)
{
	const char *end = text + size, *stop;
	int ret = 0;

	for (; !ret && text < end; text = stop + 1) {
		char *line;

		stop = memchr(text, '\n', (size_t)(end - text));
		if (!stop)
			stop = end;
		line = strndup(text, (size_t)(stop - text));
		ret = line ? put(ctx, line) : -ENOMEM;
		free(line);
	}
	return ret;
}

static int read_line(void *ctx, const char *line)
{
	cJSON *record = cJSON_Parse(line);
	int ret = read_record(ctx, record);

	cJSON_Delete(record);
	return ret;
}

static int note_line(void *ctx, const char *line)
{
	board__line(ctx, record_table__type_of(line), line);
	return 0;
}

int board__records(struct board *board, const char *job, uint32_t user, const char *text, size_t size)
{
	struct window window = {.result = {.job = job, .user = user}};
	int ret = each_line(text, size, read_line, &window);

	/* without a window the lines are those of a node, such as its processes */
	if (!ret && window.result.end_ns) {
		window.result.heatmaps = window.maps;
		window.result.heatmap_count = (uint32_t)window.map_count;
		window.result.variances = window.variances;
		window.result.variance_count = (uint32_t)window.variance_count;
		board__begin(board, &window.result);
		if (board->result)
			board->jobs[board->current].world_size = window.world_size;
		ret = each_line(text, size, note_line, board);
		board__end(board, window.result.end_ns > board->end_ns ? window.result.end_ns : board->end_ns);
	}
	free_window(&window);
	return ret;
}

void board__forget(struct board *board, const char *job, uint32_t user)
{
	for (size_t i = board->job_count; i-- > 0;) {
		if (board->jobs[i].user != user || strcmp(board->jobs[i].name, job) != 0)
			continue;
		board_job__free(board, &board->jobs[i]);
		board->jobs[i] = board->jobs[--board->job_count];
	}
}

size_t board__ranks(const struct board *board, struct board_process *processes, size_t room)
{
	size_t count = 0;

	for (size_t i = 0; i < board->job_count; i++) {
		const struct board_job *job = &board->jobs[i];

		for (size_t k = 0; k < job->row_count; k++, count++) {
			if (count >= room)
				continue;
			processes[count] = (struct board_process){.pid = job->rows[k].pid,
								  .user = job->user,
								  .rank = job->rows[k].rank,
								  .world_size = job->world_size,
								  .job = job->name,
								  .exe = "",
								  .calls_per_s = NAN,
								  .overhead_pct = NAN,
								  .probes = BOARD_UNKNOWN};
		}
	}
	return count;
}
