// SPDX-License-Identifier: GPL-2.0-or-later
/* The rows of the lists: columns that are as wide as the grid allows. */
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/duration.h"
#include "top/layout_private.h"

#define WIDE 110	/* columns from which on further columns are shown */
#define GOOD_SPEED 0.95 /* performance that needs no attention */
#define SLOW_SPEED 0.85 /* default of --threshold */

static const char *const class_title[VAPRO_CLASSES] = {
    [VAPRO_COMPUTATION] = "COMPUTE", [VAPRO_COMMUNICATION] = "COMMUNIC", [VAPRO_IO] = "IO"};

static unsigned bar_width(const struct grid *grid)
{
	return grid->width >= 160 ? 16 : grid->width >= WIDE ? 12 : 8;
}

static enum grid_style style_of(double speed)
{
	return isnan(speed) ? GRID_DIM : speed < SLOW_SPEED ? GRID_BAD : speed < GOOD_SPEED ? GRID_FAIR : GRID_GOOD;
}

/* Draws a speed as "[||||  87]", per cent of the best observed one. */
static void draw_bar(struct grid *grid, unsigned row, unsigned column, unsigned width, double speed)
{
	unsigned inner = width - 2, full = isnan(speed) ? 0 : (unsigned)lround(fmin(fmax(speed, 0), 1) * inner);
	char text[16] = "-";

	grid__put(grid, row, column, 1, GRID_PLAIN, "[");
	for (unsigned i = 0; i < full; i++)
		grid__put(grid, row, column + 1 + i, 1, style_of(speed), "|");
	grid__put(grid, row, column + width - 1, 1, GRID_PLAIN, "]");
	if (!isnan(speed))
		snprintf(text, sizeof(text), "%.0f", 100 * fmin(fmax(speed, 0), 9.99));
	grid__right(grid, row, column + 1, inner, style_of(speed), text);
}

static unsigned draw_bars(struct grid *grid, unsigned row, unsigned column, const double *speed)
{
	unsigned width = bar_width(grid);

	for (int class = 0; class < VAPRO_CLASSES; class ++, column += width + 1)
		draw_bar(grid, row, column, width, speed[class]);
	return column;
}

static unsigned title_bars(struct grid *grid, unsigned row, unsigned column)
{
	unsigned width = bar_width(grid);

	for (int class = 0; class < VAPRO_CLASSES; class ++, column += width + 1)
		grid__left(grid, row, column, width, GRID_TITLE, class_title[class]);
	return column;
}

static void draw_percent(struct grid *grid, unsigned row, unsigned column, unsigned width, double percent)
{
	char text[32] = "-";

	if (!isnan(percent))
		snprintf(text, sizeof(text), percent < 10 ? "%.1f%%" : "%.0f%%", percent);
	grid__right(grid, row, column, width, GRID_PLAIN, text);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

char *top_rows__clock(uint64_t utc_ns, char *clock)
{
	time_t seconds = (time_t)(utc_ns / 1000000000);
	struct tm tm;

	gmtime_r(&seconds, &tm);
	strftime(clock, 16, "%H:%M:%S", &tm);
	return clock;
}

/* Columns of the list of jobs; a width of 0: not shown. */
struct job_columns {
	unsigned user, job, program, ranks, cover;
};

static struct job_columns job_columns_of(const struct grid *grid)
{
	unsigned fixed = 8 + 1 + 6 + 1 + 3 * (bar_width(grid) + 1) + 6 + 1 + 4 + 1 + 9;
	struct job_columns columns = {.user = 8, .ranks = 6, .cover = grid->width >= WIDE ? 6 : 0};
	unsigned left;

	fixed += columns.cover ? columns.cover + 1 : 0;
	left = grid->width > fixed + 9 ? grid->width - fixed - 1 : 8;
	columns.program = grid->width >= WIDE ? left / 2 - 1 : 0;
	columns.job = left - (columns.program ? columns.program + 1 : 0);
	return columns;
}

static void title_jobs(struct grid *grid, unsigned row)
{
	struct job_columns columns = job_columns_of(grid);
	unsigned at = 0;

	grid__left(grid, row, at, columns.user, GRID_TITLE, "USER");
	at += columns.user + 1;
	grid__left(grid, row, at, columns.job, GRID_TITLE, "JOB");
	at += columns.job + 1;
	if (columns.program) {
		grid__left(grid, row, at, columns.program, GRID_TITLE, "PROGRAM");
		at += columns.program + 1;
	}
	grid__right(grid, row, at, columns.ranks, GRID_TITLE, "RANKS");
	at = title_bars(grid, row, at + columns.ranks + 1);
	if (columns.cover) {
		grid__right(grid, row, at, columns.cover, GRID_TITLE, "COVER");
		at += columns.cover + 1;
	}
	grid__right(grid, row, at, 6, GRID_TITLE, "OVERH");
	grid__right(grid, row, at + 7, 4, GRID_TITLE, "SLOW");
	grid__right(grid, row, at + 12, 9, GRID_TITLE, "LOST");
}

void top_rows__job(struct grid *grid, unsigned row, const struct top_job *job)
{
	struct job_columns columns = job_columns_of(grid);
	unsigned at = 0;
	char text[64];

	grid__left(grid, row, at, columns.user, GRID_PLAIN, job->user_name);
	at += columns.user + 1;
	grid__left(grid, row, at, columns.job, GRID_BOLD, job->title);
	at += columns.job + 1;
	if (columns.program) {
		grid__left(grid, row, at, columns.program, GRID_PLAIN,
			   job->process_count ? base_name(job->processes[0].exe) : "");
		at += columns.program + 1;
	}
	snprintf(text, sizeof(text), "%zu", job->process_count);
	if (job->world_size > job->process_count) /* the others are on other nodes, or not watched */
		snprintf(text, sizeof(text), "%zu/%u", job->process_count, job->world_size);
	grid__right(grid, row, at, columns.ranks, GRID_PLAIN, text);
	at = draw_bars(grid, row, at + columns.ranks + 1, job->speed);
	if (columns.cover) {
		draw_percent(grid, row, at, columns.cover, 100 * job->coverage);
		at += columns.cover + 1;
	}
	draw_percent(grid, row, at, 6, job->overhead_pct);
	snprintf(text, sizeof(text), "%zu%s", job->region_count, job->alarm_count ? "!" : "");
	if (top_job__hangs(job))
		snprintf(text, sizeof(text), "HANG");
	grid__right(grid, row, at + 7, 4, job->alarm_count || top_job__hangs(job) ? GRID_BAD : GRID_PLAIN, text);
	duration__text(job->lost_s, text, sizeof(text));
	grid__right(grid, row, at + 12, 9, GRID_PLAIN, job->lost_s > 0 ? text : "-");
}

static void title_processes(struct grid *grid, unsigned row)
{
	unsigned at;

	grid__right(grid, row, 0, 6, GRID_TITLE, "RANK");
	grid__right(grid, row, 7, 8, GRID_TITLE, "PID");
	at = title_bars(grid, row, 16);
	grid__right(grid, row, at, 5, GRID_TITLE, "EVAL");
	grid__right(grid, row, at + 6, 9, GRID_TITLE, "CALLS/S");
	grid__right(grid, row, at + 16, 6, GRID_TITLE, "OVERH");
	grid__left(grid, row, at + 23, 8, GRID_TITLE, "PROBES");
	if (grid->width < WIDE)
		return;
	grid__left(grid, row, at + 32, 16, GRID_TITLE, "HOST");
	grid__left(grid, row, at + 49, grid->width, GRID_TITLE, "PROGRAM");
}

void top_rows__process(struct grid *grid, unsigned row, const struct top_process *process, const char *host)
{
	char text[64] = "?";
	unsigned at;

	if (process->rank >= 0)
		snprintf(text, sizeof(text), "%d", process->rank);
	grid__right(grid, row, 0, 6, GRID_BOLD, text);
	snprintf(text, sizeof(text), "%u", process->pid);
	grid__right(grid, row, 7, 8, GRID_PLAIN, text);
	at = draw_bars(grid, row, 16, process->speed);
	draw_percent(grid, row, at, 5, process->evaluated_pct);
	snprintf(text, sizeof(text), "%.0f", process->calls_per_s);
	grid__right(grid, row, at + 6, 9, GRID_PLAIN, isnan(process->calls_per_s) ? "-" : text);
	draw_percent(grid, row, at + 16, 6, process->overhead_pct);
	grid__left(grid, row, at + 23, 8, strcmp(process->probes, "open") ? GRID_FAIR : GRID_PLAIN, process->probes);
	if (grid->width < WIDE)
		return;
	grid__left(grid, row, at + 32, 16, GRID_PLAIN, host);
	grid__left(grid, row, at + 49, grid->width, GRID_PLAIN, base_name(process->exe));
}

void top_rows__region(struct grid *grid, unsigned row, const struct region *region)
{
	enum grid_style style = region->ended ? GRID_DIM : region->alarm ? GRID_BAD : GRID_PLAIN;
	char text[2048], clock[16];

	grid__put(grid, row, 0, 1, style, region->alarm ? "!" : " ");
	duration__text(region->lost_seconds + region->caused_seconds, text, sizeof(text));
	grid__right(grid, row, 2, 9, style, text);
	grid__put(grid, row, 12, 8, style, top_rows__clock(region->begin_ns, clock));
	grid__put(grid, row, 21, 5, style, region->ended ? "ended" : "lasts");
	top__sentence(region, text, sizeof(text));
	grid__left(grid, row, 27, grid->width, style, text);
}

void top_rows__title(enum top_list list, struct grid *grid, unsigned row)
{
	grid__style(grid, row, GRID_TITLE);
	if (list == TOP_JOBS) {
		title_jobs(grid, row);
	} else if (list == TOP_RANKS) {
		title_processes(grid, row);
	} else {
		grid__right(grid, row, 2, 9, GRID_TITLE, "LOST");
		grid__put(grid, row, 12, 8, GRID_TITLE, "SINCE");
		grid__put(grid, row, 21, grid->width, GRID_TITLE, "STATE SLOW REGION: CAUSE, AND WHO LOST HOW MUCH");
	}
}
