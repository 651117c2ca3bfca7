/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/wrap.h"
#include "report/json.h"
#include "report/regions.h"
#include "report/view_model.h"

#define HOST_MOST 16 /* characters of a host's name beside a map */

/*
 * Levels from fast to slow. Colours run from a quiet teal over yellow to red and differ in lightness too; every judged
 * cell carries its character in colour as well, for the colour-blind and for text that was copied: only a cell that is
 * not judged is blank.
 */
struct level {
	double least; /* least performance */
	char mark;
	int color, ink;
};

struct palette {
	const struct level *levels;
	size_t count;
	bool waiting; /* values are shown as the share of time that was waited */
};

static const struct level speed_levels[] = {
    {0.95, '.', 23, 66},  {0.85, ':', 29, 108}, {0.75, '-', 148, 16}, {0.65, '=', 184, 16}, {0.55, '+', 220, 16},
    {0.45, '*', 214, 16}, {0.35, '#', 208, 16}, {0.25, '%', 202, 16}, {-1, '@', 196, 16},
};

/* Waiting for others is no fault of the one who waits: blue, which is no step between good and bad. */
static const struct level waiting_levels[] = {
    {0.95, '.', 236, 244}, {0.85, '1', 17, 250}, {0.75, '2', 18, 250}, {0.65, '3', 19, 250}, {0.55, '4', 20, 252},
    {0.45, '5', 26, 252},  {0.35, '6', 32, 16},	 {0.25, '7', 38, 16},  {0.15, '8', 44, 16},  {-1, '9', 51, 16},
};

static const struct palette speed = {speed_levels, sizeof(speed_levels) / sizeof(*speed_levels), false};
static const struct palette waiting = {waiting_levels, sizeof(waiting_levels) / sizeof(*waiting_levels), true};

static void draw_level(FILE *out, const struct level *level, bool color, int *current)
{
	int wanted = level ? level->color : -1;

	if (color && wanted != *current) {
		if (level)
			fprintf(out, "\033[38;5;%d;48;5;%dm", level->ink, level->color);
		else
			fputs("\033[0m", out);
		*current = wanted;
	}
	putc(level ? level->mark : ' ', out);
}

static void draw_cell(FILE *out, const struct palette *palette, double value, bool color, int *current)
{
	size_t level = 0;

	while (level + 1 < palette->count && value < palette->levels[level].least)
		level++;
	draw_level(out, isnan(value) ? NULL : &palette->levels[level], color, current);
}

/* The rows of one line, added up by bin: the least value of few rows, the mean of many. */
struct line_bins {
	double sum;
	uint32_t count;
};

static void add_value(struct line_bins *bin, double value, bool mean)
{
	if (mean || !bin->count || value < bin->sum)
		bin->sum = (mean ? bin->sum : 0) + value;
	bin->count = mean ? bin->count + 1 : 1;
}

int view_model__cells(const struct view_map *map, size_t row, size_t row_end, uint64_t step, size_t columns,
		      double *cells)
{
	size_t bins = (size_t)(map->end - map->first);
	bool mean = row_end - row > VIEW_MEAN_OF;
	float *values = malloc(bins * sizeof(*values));
	uint32_t *drawn = malloc(bins * sizeof(*drawn)); /* revision + 1, 0 = not yet */
	struct line_bins *sums = calloc(bins + 1, sizeof(*sums));

	for (size_t i = 0; i < columns; i++)
		cells[i] = NAN;
	if (!values || !drawn || !sums) {
		free(values);
		free(drawn);
		free(sums);
		return -ENOMEM;
	}
	for (; row < row_end; row++) {
		memset(drawn, 0, bins * sizeof(*drawn));
		for (size_t p = 0; p < map->rows[row].piece_count; p++) {
			const struct view_piece *piece = &map->rows[row].pieces[p];
			/* of a map that was cut a piece may begin before it and end behind it */
			uint64_t at = piece->bin - map->first;

			for (uint32_t i = 0; i < piece->count; i++) {
				if (at + i >= bins || drawn[at + i] > piece->revision + 1)
					continue;
				drawn[at + i] = piece->revision + 1;
				values[at + i] = piece->values[i];
			}
		}
		for (size_t i = 0; i < bins; i++) {
			if (drawn[i] && !isnan(values[i]))
				add_value(&sums[i], values[i], mean);
		}
	}
	for (size_t i = 0; i < bins; i++) {
		double *cell = &cells[i / step], value = sums[i].count ? sums[i].sum / sums[i].count : NAN;

		if (!isnan(value) && !(*cell <= value))
			*cell = value;
	}
	free(values);
	free(drawn);
	free(sums);
	return 0;
}

static void draw_legend(FILE *out, const struct palette *palette, bool color)
{
	fputs(palette->waiting ? "  waiting, %: " : "  % of best speed: ", out);
	for (size_t i = 0; i < palette->count; i++) {
		bool last = i + 1 == palette->count;
		int current = -1;

		draw_level(out, &palette->levels[i], color, &current);
		if (color)
			fputs("\033[0m", out);
		if (palette->waiting)
			fprintf(out, " %zu%s", 10 * i, last ? "+" : "  ");
		else
			fprintf(out, " %s%.0f%s ", last ? "<" : "", 100 * palette->levels[last ? i - 1 : i].least,
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

static void name_rows(const struct view_map *map, size_t row, size_t row_end, char *buf, size_t size)
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
	else if (map->by_loss)
		snprintf(buf, size, "%zu others", row_end - row);
	else
		snprintf(buf, size, "%lld-%lld", (long long)first->rank, (long long)last->rank);
}

static bool is_waiting(const struct view_map *map)
{
	return !strcmp(map->class, vapro_class_name[VAPRO_COMMUNICATION]);
}

/* Counts ranks: rows of threads are parts of them. */
static size_t count_ranks(const struct view_map *map)
{
	size_t count = 0;

	for (size_t i = 0; i < map->row_count; i++)
		count += map->rows[i].thread < 0;
	return count;
}

/*
 * How rows share lines: at most `group` rows, and where hosts has it, of one host only. The first `alone` rows share
 * none, which are the worst where rows are in the order of what they lost.
 */
struct grouping {
	size_t group, alone;
	bool hosts;
};

static size_t group_end(const struct view_map *map, const struct grouping *grouping, size_t row)
{
	size_t end = row + 1;

	if (row < grouping->alone)
		return end;
	while (end < map->row_count && end < row + grouping->group &&
	       (!grouping->hosts || !strcmp(map->rows[end].host, map->rows[row].host)))
		end++;
	return end;
}

static size_t count_lines(const struct view_map *map, const struct grouping *grouping)
{
	size_t lines = 0;

	for (size_t row = 0; row < map->row_count; row = group_end(map, grouping, row))
		lines++;
	return lines;
}

/* Finds the smallest groups that fit; hosts are kept apart where they are several and fewer than the lines. */
static struct grouping find_grouping(const struct view_map *map, unsigned most_rows)
{
	struct grouping grouping = {.group = map->row_count, .hosts = true};
	size_t hosts = count_lines(map, &grouping);

	if (map->by_loss && map->row_count > most_rows)
		return (struct grouping){.group = map->row_count - most_rows + 1, .alone = most_rows - 1};
	grouping.hosts = hosts > 1 && hosts <= most_rows && !map->by_loss;
	grouping.group = (map->row_count + most_rows - 1) / most_rows;
	while (count_lines(map, &grouping) > most_rows)
		grouping.group++;
	return grouping;
}

/* Writes the name of a line; that of its host, where it is the first one there. */
static void row_label(const struct view_map *map, const struct grouping *grouping, size_t row, size_t row_end,
		      char *buf, size_t size)
{
	size_t used = 0;

	if (grouping->hosts && (!row || strcmp(map->rows[row - 1].host, map->rows[row].host)))
		used = (size_t)snprintf(buf, size, "%.*s ", HOST_MOST, map->rows[row].host);
	name_rows(map, row, row_end, buf + used, size - used);
	regions__defuse(buf);
}

static void draw_head(const struct view_map *map, FILE *out, uint64_t step, size_t group, unsigned width)
{
	size_t ranks = count_ranks(map);
	bool mean = group > VIEW_MEAN_OF;
	char begin[JSON_TIME_SIZE], lasted[40], column[40], rows[64] = "", text[512];

	json__time(map->first * map->bin_ns, begin);
	begin[21] = 0; /* cuts after tenths of a second */
	begin[10] = ' ';
	duration__text((double)((map->end - map->first) * map->bin_ns) / 1e9, lasted, sizeof(lasted));
	duration__text((double)(step * map->bin_ns) / 1e9, column, sizeof(column));
	snprintf(text, sizeof(text), "%s%s%.200s: %zu rank%s, %s from %s UTC",
		 is_waiting(map) ? "waiting in communication" : map->class, *map->job ? ", job " : "", map->job, ranks,
		 ranks == 1 ? "" : "s", lasted, begin);
	wrap__print(out, "", regions__defuse(text), 0, width);
	if (group > 1)
		snprintf(rows, sizeof(rows), ", one row is up to %zu %s", group,
			 ranks < map->row_count ? "ranks and threads" : "ranks");
	snprintf(text, sizeof(text), "one column is %s%s%s; blank: not judged", column, rows,
		 step <= 1 && group <= 1 ? ""
		 : is_waiting(map) ? (mean ? ", each cell shows the mean of its ranks in the 200 ms of most waiting"
					   : ", each cell shows the 200 ms of most waiting")
		 : mean		   ? ", each cell shows the mean of its ranks in its slowest 200 ms"
				   : ", each cell shows its slowest 200 ms");
	wrap__print(out, "", text, 2, width);
}

/* Draws one line of cells of rows that share it. Returns 0 or -ENOMEM. */
static int draw_line(const struct view_map *map, FILE *out, const char *label, int label_width, size_t row, size_t end,
		     uint64_t step, size_t columns, double *cells, bool color)
{
	const struct palette *palette = is_waiting(map) ? &waiting : &speed;
	int current = -1, ret = view_model__cells(map, row, end, step, columns, cells);

	fprintf(out, "%*s ", label_width, label);
	for (size_t i = 0; i < columns; i++)
		draw_cell(out, palette, cells[i], color, &current);
	if (current >= 0)
		fputs("\033[0m", out);
	putc('\n', out);
	return ret;
}

int view_model__draw_map(const struct view_map *map, FILE *out, bool color, unsigned width, unsigned most_rows)
{
	uint64_t bins = map->end - map->first, step;
	struct grouping grouping;
	size_t room, columns;
	double *cells = NULL;
	int label_width = 0, ret = 0;
	size_t worst = map->row_count;
	char label[64], worst_label[64];

	if (!bins || !map->row_count)
		return 0;
	grouping = find_grouping(map, most_rows);
	for (size_t row = 0, end; row < map->row_count; row = end) {
		end = group_end(map, &grouping, row);
		row_label(map, &grouping, row, end, label, sizeof(label));
		if ((int)strlen(label) > label_width)
			label_width = (int)strlen(label);
	}
	if (grouping.group > 1 && !map->by_loss)
		worst = view_model__worst_row(map);
	if (worst < map->row_count) {
		if (map->rows[worst].rank < 0)
			snprintf(worst_label, sizeof(worst_label), "worst: pid %llu",
				 (unsigned long long)map->rows[worst].pid);
		else
			snprintf(worst_label, sizeof(worst_label), "worst: rank %lld",
				 (long long)map->rows[worst].rank);
		if ((int)strlen(worst_label) > label_width)
			label_width = (int)strlen(worst_label);
	}
	room = width > (unsigned)label_width + 12 ? width - (unsigned)label_width - 2 : 10;
	step = (bins + room - 1) / room;
	columns = (size_t)((bins + step - 1) / step);
	cells = calloc(columns, sizeof(*cells));
	if (!cells)
		return -ENOMEM;
	draw_head(map, out, step, grouping.group, width);
	/* a line that ranks share does not show which of them is the worst */
	if (worst < map->row_count)
		ret = draw_line(map, out, worst_label, label_width, worst, worst + 1, step, columns, cells, color);
	for (size_t row = 0, end; !ret && row < map->row_count; row = end) {
		end = group_end(map, &grouping, row);
		row_label(map, &grouping, row, end, label, sizeof(label));
		ret = draw_line(map, out, label, label_width, row, end, step, columns, cells, color);
	}
	if (!ret)
		ret = draw_axis(out, columns, step * map->bin_ns, label_width);
	draw_legend(out, is_waiting(map) ? &waiting : &speed, color);
	putc('\n', out);
	free(cells);
	return ret;
}
