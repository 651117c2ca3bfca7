/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The maps of a view. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "report/record.h"
#include "report/view_model.h"

/* Compares users; NAN is unknown, as in older records. */
static bool same_user(double a, double b)
{
	return a == b || (isnan(a) && isnan(b));
}

/* Finds or makes a map. Where users have jobs of one name, all but the first are shown with their user. */
static struct view_map *find_map(struct view_model *model, const char *job, double uid, const char *class,
				 uint64_t bin_ns)
{
	char name[256];
	struct view_map *map;

	snprintf(name, sizeof(name), "%s", job);
	for (size_t i = 0; i < model->map_count; i++) {
		map = &model->maps[i];
		if (strcmp(map->said, job))
			continue;
		if (!same_user(map->uid, uid)) {
			if (!isnan(uid))
				snprintf(name, sizeof(name), "%s of uid %.0f", job, uid);
			continue;
		}
		if (map->bin_ns == bin_ns && !strcmp(map->class, class))
			return map;
	}
	if (grow(&model->maps, &model->map_capacity, model->map_count + 1, sizeof(*map)))
		return NULL;
	map = &model->maps[model->map_count++];
	memset(map, 0, sizeof(*map));
	map->job = strdup(name);
	map->said = strdup(job);
	map->uid = uid;
	map->class = strdup(class);
	map->bin_ns = bin_ns;
	return map->job && map->said && map->class ? map : NULL;
}

/* Lines of one run have rows in one order: the guess is right but for the first time. */
static struct view_row *find_row(struct view_map *map, size_t guess, int64_t rank, int64_t thread, uint64_t pid,
				 const char *host)
{
	struct view_row *row;

	for (size_t i = 0; i < map->row_count; i++) {
		row = &map->rows[(guess + i) % map->row_count];
		/* a rank is one row whichever process ran it; only unknown ranks need the pid */
		if (row->rank == rank && row->thread == thread &&
		    (rank >= 0 || (row->pid == pid && !strcmp(row->host, host))))
			return row;
	}
	if (grow(&map->rows, &map->row_capacity, map->row_count + 1, sizeof(*row)))
		return NULL;
	row = &map->rows[map->row_count];
	memset(row, 0, sizeof(*row));
	row->rank = rank;
	row->thread = thread;
	row->pid = pid;
	row->host = strdup(host);
	if (!row->host)
		return NULL;
	map->row_count++;
	return row;
}

static int add_piece(struct view_row *row, uint64_t bin, uint32_t revision, const cJSON *values)
{
	struct view_piece piece = {bin, 0, revision, NULL};
	const cJSON *value;

	if (grow(&row->pieces, &row->piece_capacity, row->piece_count + 1, sizeof(piece)))
		return -ENOMEM;
	piece.values = malloc(((size_t)cJSON_GetArraySize(values) + 1) * sizeof(*piece.values));
	if (!piece.values)
		return -ENOMEM;
	cJSON_ArrayForEach(value, values)
	{
		piece.values[piece.count++] = cJSON_IsNumber(value) ? (float)value->valuedouble : NAN;
	}
	row->pieces[row->piece_count++] = piece;
	return 0;
}

/* Returns the user of a record as in struct vapro_thread. */
static uint32_t uid_of(const cJSON *line)
{
	double uid = record__number(line, KEY(of_job, uid), -1);

	return uid >= 0 && uid < UINT32_MAX ? (uint32_t)uid + 1 : 0;
}

int view_model__add_map(struct view_model *model, const cJSON *line, const char **why)
{
	const char *job = record__text(line, KEY(of_job, job)), *class = record__text(line, KEY(heatmap, class)),
		   *host = record__text(line, KEY(head, host));
	const cJSON *rows = record__item(line, KEY(heatmap, rows)), *item;
	uint64_t begin_ns, bin_ns = record__uint(line, KEY(heatmap, bin_ns)), bin, bins = 0;
	struct view_map *map;
	size_t guess;

	*why = "a heatmap without class, begin, bin_ns or rows";
	if (!class || !bin_ns || !record__time(line, KEY(heatmap, begin), &begin_ns) || !cJSON_IsArray(rows))
		return -EINVAL;
	cJSON_ArrayForEach(item, rows)
	{
		const cJSON *values = record__item(item, KEY(row, values));
		uint64_t count = (uint64_t)cJSON_GetArraySize(values);

		*why = "a heatmap's row without rank or values";
		if (!cJSON_IsArray(values) || isnan(record__number(item, KEY(row, rank), NAN)))
			return -EINVAL;
		bins = count > bins ? count : bins;
	}
	map = find_map(model, job ? job : "", record__number(line, KEY(of_job, uid), NAN), class, bin_ns);
	if (!map)
		return -ENOMEM;
	guess = record__uint(line, KEY(heatmap, part)) ? map->next_row : 0;
	bin = begin_ns / bin_ns;
	*why = "its time is too far from that of the lines before";
	if (map->end && (bin + bins > map->first + VIEW_BINS_MAX || bin + VIEW_BINS_MAX < map->end))
		return -EINVAL;
	if (!bins)
		return 0;
	if (!map->end || bin < map->first)
		map->first = bin;
	if (bin + bins > map->end)
		map->end = bin + bins;
	if (!model->start_ns || begin_ns < model->start_ns)
		model->start_ns = begin_ns;
	cJSON_ArrayForEach(item, rows)
	{
		const char *own = record__text(item, KEY(row, host));
		struct view_row *row =
		    find_row(map, guess++, (int64_t)record__number(item, KEY(row, rank), -1),
			     (int64_t)record__number(item, KEY(row, thread), -1), record__uint(item, KEY(row, pid)),
			     own    ? own
			     : host ? host
				    : "");

		if (!row || summary__add_host(model->summary, job ? job : "", uid_of(line), row->host) ||
		    add_piece(row, bin, (uint32_t)record__uint(line, KEY(heatmap, revision)),
			      record__item(item, KEY(row, values))))
			return -ENOMEM;
	}
	map->next_row = guess;
	return 0;
}

static int compare_rows(const void *a, const void *b)
{
	const struct view_row *x = a, *y = b;
	int hosts = strcmp(x->host, y->host);

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->rank < 0 && (hosts || x->pid != y->pid))
		return hosts ? hosts : x->pid < y->pid ? -1 : 1;
	return x->thread < y->thread ? -1 : x->thread > y->thread;
}

static bool is_blank(const struct view_row *row)
{
	for (size_t p = 0; p < row->piece_count; p++) {
		for (uint32_t i = 0; i < row->pieces[p].count; i++) {
			if (!isnan(row->pieces[p].values[i]))
				return false;
		}
	}
	return true;
}

static void free_row(struct view_row *row)
{
	for (size_t p = 0; p < row->piece_count; p++)
		free(row->pieces[p].values);
	free(row->pieces);
	free(row->host);
}

/* Drops rows of threads of which nothing was judged: those of MPI itself. Their rank has a row in any case. */
static void drop_blank_threads(struct view_map *map)
{
	size_t left = 0;

	for (size_t i = 0; i < map->row_count; i++) {
		if (map->rows[i].thread >= 0 && is_blank(&map->rows[i]))
			free_row(&map->rows[i]);
		else
			map->rows[left++] = map->rows[i];
	}
	map->row_count = left;
}

static bool same_process(const struct view_row *a, const struct view_row *b)
{
	return a->rank == b->rank && (a->rank >= 0 || (a->pid == b->pid && !strcmp(a->host, b->host)));
}

static bool same_values(const struct view_piece *a, const struct view_piece *b)
{
	if (a->bin != b->bin || a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++) {
		if (a->values[i] != b->values[i] && !(isnan(a->values[i]) && isnan(b->values[i])))
			return false;
	}
	return true;
}

/* Returns whether the row of a rank has all that the row of a thread has. */
static bool has_all(const struct view_row *rank, const struct view_row *thread)
{
	for (size_t i = 0, at = 0; i < thread->piece_count; i++, at++) {
		while (at < rank->piece_count && !same_values(&rank->pieces[at], &thread->pieces[i]))
			at++;
		if (at == rank->piece_count)
			return false;
	}
	return true;
}

/* Drops the row of a rank's only thread, of rows in order: the row of the rank, which is before it, has all of it. */
static void drop_only_threads(struct view_map *map)
{
	size_t left = 0, next;

	for (size_t i = 0; i < map->row_count; i = next) {
		for (next = i + 1; next < map->row_count && same_process(&map->rows[i], &map->rows[next]);)
			next++;
		map->rows[left++] = map->rows[i];
		if (next - i == 2 && map->rows[i].thread < 0 && has_all(&map->rows[i], &map->rows[i + 1])) {
			free_row(&map->rows[i + 1]);
			continue;
		}
		for (size_t k = i + 1; k < next; k++)
			map->rows[left++] = map->rows[k];
	}
	map->row_count = left;
}

void view_model__sort(struct view_model *model)
{
	for (size_t i = 0; i < model->map_count; i++) {
		drop_blank_threads(&model->maps[i]);
		if (model->maps[i].row_count)
			qsort(model->maps[i].rows, model->maps[i].row_count, sizeof(struct view_row), compare_rows);
		drop_only_threads(&model->maps[i]);
	}
}

void view_model__free(struct view_model *model)
{
	for (size_t i = 0; i < model->map_count; i++) {
		struct view_map *map = &model->maps[i];

		for (size_t k = 0; k < map->row_count; k++) {
			free_row(&map->rows[k]);
		}
		free(map->rows);
		free(map->job);
		free(map->said);
		free(map->class);
	}
	free(model->maps);
	summary__free(model->summary);
}
