/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "report/json.h"
#include "report/view_model.h"

/*
 * Levels from fast to slow. Colours run from a quiet teal over yellow to red and differ in lightness
 * too; cells below the usual threshold carry their character in colour as well, for the colour-blind.
 */
static const struct {
	double least; /* least performance */
	char mark;
	int color;
} levels[] = {
    {0.95, '.', 23},  {0.85, ':', 29},	{0.75, '-', 148}, {0.65, '=', 184}, {0.55, '+', 220},
    {0.45, '*', 214}, {0.35, '#', 208}, {0.25, '%', 202}, {-1, '@', 196},
};

#define LEVELS (sizeof(levels) / sizeof(levels[0]))
#define QUIET 2 /* levels that are fast enough */

static size_t level_of(double value)
{
	size_t level = 0;

	while (level + 1 < LEVELS && value < levels[level].least)
		level++;
	return level;
}

static void draw_cell(FILE *out, double value, bool color, int *current)
{
	size_t level = isnan(value) ? 0 : level_of(value);
	int wanted = isnan(value) ? -1 : levels[level].color;

	if (color && wanted != *current) {
		if (wanted < 0)
			fputs("\033[0m", out);
		else
			fprintf(out, "\033[38;5;16;48;5;%dm", wanted);
		*current = wanted;
	}
	putc(isnan(value) || (color && level < QUIET) ? ' ' : levels[level].mark, out);
}

int view_map__cells(const struct view_map *map, size_t row, size_t row_end, uint64_t step, size_t columns,
		    double *cells)
{
	size_t bins = (size_t)(map->end - map->first);
	float *values = malloc(bins * sizeof(*values));
	uint32_t *drawn = malloc(bins * sizeof(*drawn)); /* revision + 1, 0 = not yet */

	for (size_t i = 0; i < columns; i++)
		cells[i] = NAN;
	if (!values || !drawn) {
		free(values);
		free(drawn);
		return -ENOMEM;
	}
	for (; row < row_end; row++) {
		memset(drawn, 0, bins * sizeof(*drawn));
		for (size_t p = 0; p < map->rows[row].piece_count; p++) {
			const struct view_piece *piece = &map->rows[row].pieces[p];
			size_t at = (size_t)(piece->bin - map->first);

			for (uint32_t i = 0; i < piece->count; i++) {
				if (drawn[at + i] > piece->revision + 1)
					continue;
				drawn[at + i] = piece->revision + 1;
				values[at + i] = piece->values[i];
			}
		}
		for (size_t i = 0; i < bins; i++) {
			double *cell = &cells[i / step];

			if (drawn[i] && !isnan(values[i]) && !(*cell <= values[i]))
				*cell = values[i];
		}
	}
	free(values);
	free(drawn);
	return 0;
}

static void draw_legend(FILE *out, bool color)
{
	int current = -1;

	fputs("  % of proven speed: ", out);
	for (size_t i = 0; i < LEVELS; i++) {
		bool last = i + 1 == LEVELS;

		draw_cell(out, levels[i].least + 0.01, color, &current);
		if (color)
			draw_cell(out, levels[i].least + 0.01, color, &current);
		if (color)
			fputs("\033[0m", out);
		current = -1;
		fprintf(out, "%s%s%.0f%s ", color ? "" : " ", last ? "<" : "", 100 * levels[last ? i - 1 : i].least,
			last ? "" : "+");
	}
	putc('\n', out);
}

/* Returns the interval of ticks: a round time, no shorter than a label is wide. */
static uint64_t tick_ns(uint64_t column_ns)
{
	static const uint64_t seconds[] = {1,	2,   5,	   10,	 20,   30,   60,    120,
					   300, 600, 1200, 1800, 3600, 7200, 14400, 43200};

	for (size_t i = 0; i < sizeof(seconds) / sizeof(seconds[0]); i++) {
		if (seconds[i] * 1000000000 >= 10 * column_ns)
			return seconds[i] * 1000000000;
	}
	return (10 * column_ns + 86399999999999ULL) / 86400000000000ULL * 86400000000000ULL;
}

static void tick_label(uint64_t offset_ns, uint64_t step_ns, char *buf, size_t size)
{
	uint64_t seconds = offset_ns / 1000000000;

	if (step_ns < 60000000000ULL && seconds < 3600)
		snprintf(buf, size, "%llus", (unsigned long long)seconds);
	else if (step_ns < 3600000000000ULL)
		snprintf(buf, size, "%lluh%02llum", (unsigned long long)(seconds / 3600),
			 (unsigned long long)(seconds / 60 % 60));
	else
		snprintf(buf, size, "%lluh", (unsigned long long)(seconds / 3600));
}

static int draw_axis(FILE *out, size_t columns, uint64_t column_ns, int label_width)
{
	uint64_t step = tick_ns(column_ns), next = 0;
	char *ticks = malloc(columns + 1), *labels = malloc(columns + 33);

	if (!ticks || !labels) {
		free(ticks);
		free(labels);
		return -ENOMEM;
	}
	memset(ticks, '-', columns);
	memset(labels, ' ', columns + 32);
	for (size_t i = 0; i < columns; i++) {
		char label[32];
		size_t length;

		if (i * column_ns + column_ns <= next)
			continue;
		ticks[i] = '+';
		tick_label(next, step, label, sizeof(label));
		length = strlen(label);
		if (i + length <= columns)
			memcpy(labels + i, label, length);
		next += step;
	}
	ticks[columns] = labels[columns] = 0;
	fprintf(out, "%*s %s\n%*s %s\n", label_width, "", ticks, label_width, "", labels);
	free(ticks);
	free(labels);
	return 0;
}

static void row_label(const struct view_map *map, size_t row, size_t row_end, char *buf, size_t size)
{
	const struct view_row *first = &map->rows[row], *last = &map->rows[row_end - 1];

	if (row_end - row == 1 && first->thread >= 0)
		snprintf(buf, size, " thread %lld", (long long)first->thread);
	else if (first->rank < 0 && row_end - row == 1)
		snprintf(buf, size, "pid %llu", (unsigned long long)first->pid);
	else if (first->rank < 0)
		snprintf(buf, size, "%zu pids", row_end - row);
	else if (first->rank == last->rank)
		snprintf(buf, size, "rank %lld", (long long)first->rank);
	else
		snprintf(buf, size, "%lld-%lld", (long long)first->rank, (long long)last->rank);
}

static void draw_head(const struct view_map *map, FILE *out, uint64_t step, size_t group, unsigned width)
{
	char begin[JSON_TIME_SIZE], lasted[40], column[40], rows[64] = "", text[512];

	json__time(map->first * map->bin_ns, begin);
	begin[21] = 0; /* cuts after tenths of a second */
	begin[10] = ' ';
	duration__text((double)((map->end - map->first) * map->bin_ns) / 1e9, lasted, sizeof(lasted));
	duration__text((double)(step * map->bin_ns) / 1e9, column, sizeof(column));
	snprintf(text, sizeof(text), "%s%s%.200s: %zu rank%s, %s from %s UTC", map->class, *map->job ? ", job " : "",
		 map->job, map->row_count, map->row_count == 1 ? "" : "s", lasted, begin);
	regions__wrap(out, "", regions__defuse(text), 0, width);
	if (group > 1)
		snprintf(rows, sizeof(rows), ", one row is %zu ranks", group);
	snprintf(text, sizeof(text), "one column is %s%s%s; blank: not judged", column, rows,
		 step > 1 || group > 1 ? ", each cell shows its slowest 200 ms" : "");
	regions__wrap(out, "", text, 2, width);
}

int view_map__draw(const struct view_map *map, FILE *out, bool color, unsigned width, unsigned most_rows)
{
	uint64_t bins = map->end - map->first, step;
	size_t group = (map->row_count + most_rows - 1) / most_rows, room, columns;
	double *cells = NULL;
	int label_width = 0, ret = 0;
	char label[64];

	if (!bins || !map->row_count)
		return 0;
	for (size_t row = 0; row < map->row_count; row += group) {
		size_t row_end = row + group < map->row_count ? row + group : map->row_count;

		row_label(map, row, row_end, label, sizeof(label));
		if ((int)strlen(label) > label_width)
			label_width = (int)strlen(label);
	}
	room = width > (unsigned)label_width + 12 ? width - (unsigned)label_width - 2 : 10;
	step = (bins + room - 1) / room;
	columns = (size_t)((bins + step - 1) / step);
	cells = calloc(columns, sizeof(*cells));
	if (!cells)
		return -ENOMEM;
	draw_head(map, out, step, group, width);
	for (size_t row = 0; !ret && row < map->row_count; row += group) {
		size_t row_end = row + group < map->row_count ? row + group : map->row_count;
		int current = -1;

		ret = view_map__cells(map, row, row_end, step, columns, cells);
		row_label(map, row, row_end, label, sizeof(label));
		fprintf(out, "%*s ", label_width, label);
		for (size_t i = 0; i < columns; i++)
			draw_cell(out, cells[i], color, &current);
		if (current >= 0)
			fputs("\033[0m", out);
		putc('\n', out);
	}
	if (!ret)
		ret = draw_axis(out, columns, step * map->bin_ns, label_width);
	draw_legend(out, color);
	putc('\n', out);
	free(cells);
	return ret;
}
