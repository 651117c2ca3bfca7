// SPDX-License-Identifier: GPL-2.0-or-later
#include "top/layout.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/wrap.h"
#include "top/layout_private.h"

#define HEAD 4	      /* rows above the lists */
#define DETAIL_MOST 6 /* effects of a region on its page */

static const char *const help_lines[] = {
    "Jobs, then the ranks of a job, then one rank: Enter goes on, Esc goes back.",
    "",
    "  Up Down j k         move                 Enter Right    open what is selected",
    "  PgUp PgDn Home End  move far             Esc Left       back, or end a filter",
    "  Tab                 to the slow regions, and to the list above",
    "  s < >               next order of a list r              reverse the order",
    "  /                   filter a list        Space          freeze, and go on",
    "  h ?                 this help            q              quit",
    "",
    "A bar is the present speed, in % of the best observed one, of each kind of time:",
    "computation, communication and IO; - means that it could not be evaluated.",
    "EVAL: share of the last window that could be evaluated. OVERH: what the probes",
    "cost. PROBES: open; reduced or closed to keep the budget; ended.",
    "SLOW: slow regions that last, ! an alarm; HANG: no rank makes progress.",
    "LOST: time lost and caused by the slow regions.",
    "",
    "The man page vapro(1) has more, in its section top.",
};

/* ---- a list */

static void draw_item(const struct top_model *model, enum top_list list, size_t item, struct grid *grid, unsigned row)
{
	const struct top_job *job;

	if (list == TOP_JOBS) {
		top_rows__job(grid, row, &model->snapshot->jobs[item]);
	} else if (list == TOP_RANKS) {
		job = top_model__job(model);
		top_rows__process(grid, row, &job->processes[item], job->host);
	} else {
		top_rows__region(grid, row, &top_snapshot__regions(model->snapshot)->items[item]);
	}
}

/* Says why a list is empty. */
static const char *nothing(const struct top_model *model, enum top_list list)
{
	if (*model->rows[list].filter)
		return "nothing matches the filter";
	if (list == TOP_REGIONS)
		return "no slow region";
	if (list == TOP_RANKS)
		return top_model__job(model) ? "its processes have ended" : "the job has ended";
	return !model->snapshot->pid  ? "no job has a result of the last minutes"
	       : model->snapshot->all ? "no process is watched"
				      : "no process of yours is watched; root sees the jobs of all users";
}

/* Draws a list into some rows, of which the first is its title. */
static void draw_list(struct top_model *model, enum top_list list, struct grid *grid, unsigned top, unsigned height)
{
	struct top_rows *rows = &model->rows[list];
	size_t room = height > 1 ? height - 1 : 0;
	bool focus = model->focus == list;

	if (!height)
		return;
	top_rows__title(list, grid, top);
	if (focus && room)
		model->page_rows = room;
	if (rows->cursor < rows->first)
		rows->first = rows->cursor;
	if (room && rows->cursor >= rows->first + room)
		rows->first = rows->cursor - room + 1;
	if (rows->first + room > rows->count)
		rows->first = rows->count > room ? rows->count - room : 0;
	if (!rows->count && room)
		grid__left(grid, top + 1, 2, grid->width, GRID_DIM, nothing(model, list));
	for (size_t i = 0; i < room && rows->first + i < rows->count; i++) {
		unsigned row = top + 1 + (unsigned)i;

		draw_item(model, list, rows->items[rows->first + i], grid, row);
		if (focus && rows->first + i == rows->cursor)
			grid__style(grid, row, GRID_CURSOR);
	}
}

/* Draws the list above, in as many rows as it needs but not most of them, and the regions. */
static void draw_lists(struct top_model *model, enum top_list list, struct grid *grid, unsigned top, unsigned height)
{
	unsigned most = height - height / 3, need = 2 + (unsigned)model->rows[list].count, above;

	above = model->rows[list].count + 2 > most ? most : need > most ? most : need;
	draw_list(model, list, grid, top, above);
	draw_list(model, TOP_REGIONS, grid, top + above, height - above);
}

/* ---- jobs that make no progress */

#define HANGS_MOST 3 /* jobs of which it is said above the list of jobs, a row each */

static const char *hang_mark(const struct top_job *job)
{
	return top_job__hangs(job) ? "! " : "  ";
}

static enum grid_style hang_style(const struct top_job *job)
{
	return top_job__hangs(job) ? GRID_BAD : job->hang_lasts ? GRID_PLAIN : GRID_DIM;
}

/* Draws a hang into as many rows as it needs, of height at most. Returns how many these are. */
static unsigned draw_hang(const struct top_job *job, struct grid *grid, unsigned top, unsigned height)
{
	char *text = NULL;
	unsigned row = 0;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return 0;
	wrap__print(out, hang_mark(job), job->hang, 2, grid->width);
	if (fclose(out)) {
		free(text);
		return 0;
	}
	for (char *at = text, *stop; row < height && (stop = strchr(at, '\n')); at = stop + 1, row++) {
		*stop = 0;
		grid__left(grid, top + row, 0, grid->width, hang_style(job), at);
	}
	free(text);
	return row;
}

/* Says above the lists which jobs make no progress, in a third of the height at most. Returns the rows taken. */
static unsigned draw_hangs(const struct top_model *model, struct grid *grid, unsigned top, unsigned height)
{
	const struct top_rows *rows = &model->rows[TOP_JOBS];
	const struct top_job *job = top_model__job(model);
	unsigned row = 0;

	if (model->page == TOP_PAGE_REGION)
		return 0;
	if (model->page != TOP_PAGE_JOBS)
		return job && job->hang ? draw_hang(job, grid, top, height / 3) : 0;
	for (size_t i = 0; i < rows->count && row < HANGS_MOST && row < height / 3; i++) {
		char text[1024];

		job = &model->snapshot->jobs[rows->items[i]];
		if (!job->hang)
			continue;
		snprintf(text, sizeof(text), "%s%s: %s", hang_mark(job), job->title, job->hang);
		grid__left(grid, top + row++, 0, grid->width, hang_style(job), text);
	}
	return row;
}

/* ---- a region's page */

/* Prints a region as the end summary does, with its effects. malloc'ed, NULL when out of memory. */
static char *describe(const struct top_model *model, const struct region *region, unsigned width)
{
	const struct regions *all = top_snapshot__regions(model->snapshot);
	struct regions shown = {.items = calloc(1 + DETAIL_MOST, sizeof(*shown.items)), .count = 1};
	struct regions_options options = {
	    .start_ns = model->snapshot->begin_ns, .width = width, .most = 1, .details = true};
	char *text = NULL;
	size_t size;
	FILE *out = shown.items ? open_memstream(&text, &size) : NULL;

	if (out) {
		/* what the copies point to stays the snapshot's */
		shown.items[0] = *region;
		shown.items[0].effect_of = 0;
		for (size_t i = 0; i < all->count && shown.count <= DETAIL_MOST; i++) {
			if (all->items[i].effect_of == region->id && !strcmp(all->items[i].job, region->job))
				shown.items[shown.count++] = all->items[i];
		}
		regions__print(&shown, out, &options);
		if (region->effect_of)
			fprintf(out, "    This is an effect of slow region %llu.\n",
				(unsigned long long)region->effect_of);
		if (fclose(out)) {
			free(text);
			text = NULL;
		}
	}
	free(shown.items);
	return text;
}

static void draw_region(struct top_model *model, struct grid *grid, unsigned top, unsigned height)
{
	const struct region *region = top_model__region(model);
	char *text = region ? describe(model, region, grid->width) : NULL, *at = text;
	size_t lines = 0, line = 0;

	if (!region)
		grid__left(grid, top, 2, grid->width, GRID_DIM, "the region ended more than a minute ago");
	for (const char *stop = text; stop && (stop = strchr(stop, '\n')); stop++)
		lines++;
	if (model->scroll + height > lines)
		model->scroll = lines > height ? lines - height : 0;
	for (char *stop; at && (stop = strchr(at, '\n')); at = stop + 1, line++) {
		*stop = 0;
		if (line >= model->scroll && line < model->scroll + height)
			grid__put(grid, top + (unsigned)(line - model->scroll), 0, grid->width, GRID_PLAIN, at);
	}
	model->page_rows = height;
	free(text);
}

/* ---- the page */

static void draw_title(const struct top_model *model, struct grid *grid)
{
	const struct top_snapshot *snapshot = model->snapshot;
	char clock[16], right[64];

	grid__style(grid, 0, GRID_BOLD);
	if (!snapshot) {
		grid__print(grid, 0, 0, GRID_BOLD, "vapro top");
		return;
	}
	if (snapshot->pid)
		grid__print(grid, 0, 0, GRID_BOLD, "vapro top: %s, vaprod %u (%s)%s", snapshot->host, snapshot->pid,
			    snapshot->version, snapshot->all ? "" : ", your jobs");
	else
		grid__print(grid, 0, 0, GRID_BOLD, "vapro top: %s", snapshot->host);
	snprintf(right, sizeof(right), "%s%s UTC", model->frozen ? "FROZEN " : "",
		 top_rows__clock(snapshot->utc_ns, clock));
	grid__right(grid, 0, grid->width > 30 ? grid->width - 30 : 0, 30, GRID_BOLD, right);
}

/* Draws where the page is, the filter and the order. */
static void draw_place(const struct top_model *model, struct grid *grid, unsigned row)
{
	unsigned count;
	const char *const *orders = top_model__orders(model->focus, &count);
	const struct top_job *job = top_model__job(model);
	const struct top_process *process = top_model__process(model);
	enum top_page page = model->page == TOP_PAGE_REGION ? model->from : model->page;
	const struct top_rows *rows = &model->rows[model->focus];
	unsigned at = grid__print(grid, row, 0, GRID_DIM, "jobs");
	char order[64];

	if (page != TOP_PAGE_JOBS)
		at += grid__print(grid, row, at, GRID_DIM, " > %s", job ? job->title : "(ended)");
	if (page == TOP_PAGE_RANK && process && process->rank >= 0)
		at += grid__print(grid, row, at, GRID_DIM, " > rank %d", process->rank);
	else if (page == TOP_PAGE_RANK)
		at += grid__print(grid, row, at, GRID_DIM, " > pid %llu", (unsigned long long)model->process);
	if (model->page == TOP_PAGE_REGION) {
		grid__print(grid, row, at, GRID_DIM, " > slow region %llu", (unsigned long long)model->region);
		return;
	}
	snprintf(order, sizeof(order), "by %s%s", orders[rows->order], rows->reverse ? ", reversed" : "");
	if (grid->width > at + strlen(order))
		grid__right(grid, row, at, grid->width - at, GRID_DIM, order);
	if (model->typing || *rows->filter)
		grid__print(grid, row, at + 2, GRID_BOLD, "filter: %s%s", rows->filter, model->typing ? "_" : "");
}

static void draw_keys(const struct top_model *model, struct grid *grid, unsigned row)
{
	const char *keys = "Enter open  Esc back  Tab list  s order  / filter  Space freeze  h help  q quit";

	if (model->typing)
		keys = "Enter accept   Esc no filter";
	else if (model->help)
		keys = "any key ends the help";
	else if (model->page == TOP_PAGE_REGION)
		keys = "Esc back   Up Down scroll   Space freeze   h help   q quit";
	grid__style(grid, row, GRID_TITLE);
	grid__put(grid, row, 0, grid->width, GRID_TITLE, keys);
}

static void draw_page(struct top_model *model, struct grid *grid, unsigned top, unsigned height)
{
	const struct top_job *job = top_model__job(model);
	const struct top_process *process = top_model__process(model);

	switch (model->page) {
	case TOP_PAGE_JOBS:
		draw_lists(model, TOP_JOBS, grid, top, height);
		break;
	case TOP_PAGE_JOB:
		draw_lists(model, TOP_RANKS, grid, top, height);
		break;
	case TOP_PAGE_RANK:
		if (height < 3)
			break;
		top_rows__title(TOP_RANKS, grid, top);
		if (process)
			top_rows__process(grid, top + 1, process, job->host);
		else
			grid__left(grid, top + 1, 2, grid->width, GRID_DIM, "the process has ended");
		draw_list(model, TOP_REGIONS, grid, top + 3, height - 3);
		break;
	case TOP_PAGE_REGION:
		draw_region(model, grid, top, height);
		break;
	}
}

void top_layout__draw(struct top_model *model, struct grid *grid)
{
	unsigned bottom = grid->height ? grid->height - 1 : 0;
	struct top_head head;

	draw_title(model, grid);
	if (model->help) {
		for (unsigned i = 0; i < sizeof(help_lines) / sizeof(*help_lines) && i + 2 < bottom; i++)
			grid__left(grid, i + 2, 0, grid->width, GRID_PLAIN, help_lines[i]);
	} else if (model->snapshot) {
		top_head__say(model, &head);
		grid__left(grid, 1, 0, grid->width, head.alarm ? GRID_BAD : GRID_PLAIN, head.work);
		grid__left(grid, 2, 0, grid->width, GRID_PLAIN, head.costs);
		draw_place(model, grid, 3);
		if (bottom > HEAD) {
			unsigned said = draw_hangs(model, grid, HEAD, bottom - HEAD);

			draw_page(model, grid, HEAD + said, bottom - HEAD - said);
		}
	}
	if (*model->notice && !model->help) {
		grid__style(grid, model->snapshot ? 2 : 1, GRID_PLAIN);
		for (unsigned column = 0; column < grid->width; column++)
			grid__put(grid, model->snapshot ? 2 : 1, column, 1, GRID_PLAIN, " ");
		grid__left(grid, model->snapshot ? 2 : 1, 0, grid->width, GRID_BAD, model->notice);
	}
	if (bottom)
		draw_keys(model, grid, bottom);
}

/* ---- plain text */

static void write_regions(const struct top_model *model, FILE *out, unsigned width)
{
	const struct top_rows *rows = &model->rows[TOP_REGIONS];
	const struct regions *regions = top_snapshot__regions(model->snapshot);

	fputs(rows->count ? "\nslow regions: alarm, time lost and caused, begin, state\n" : "\nno slow region\n", out);
	for (size_t i = 0; i < rows->count; i++) {
		const struct region *region = &regions->items[rows->items[i]];
		char text[2048], head[64], clock[16], lost[40];

		duration__text(region->lost_seconds + region->caused_seconds, lost, sizeof(lost));
		snprintf(head, sizeof(head), "%s %9s %s %s", region->alarm ? "!" : " ", lost,
			 top_rows__clock(region->begin_ns, clock), region->ended ? "ended" : "lasts");
		top__sentence(region, text, sizeof(text));
		wrap__print(out, head, text, 27, width);
	}
}

/* Writes a list: its title and all of its items. */
static int write_list(const struct top_model *model, enum top_list list, FILE *out, unsigned width)
{
	const struct top_rows *rows = &model->rows[list];
	struct grid grid = {0};

	if (grid__resize(&grid, width, 1 + (unsigned)rows->count))
		return -ENOMEM;
	top_rows__title(list, &grid, 0);
	for (size_t i = 0; i < rows->count; i++)
		draw_item(model, list, rows->items[i], &grid, 1 + (unsigned)i);
	putc('\n', out);
	grid__write(&grid, out);
	grid__free(&grid);
	return 0;
}

int top_layout__text(struct top_model *model, FILE *out, unsigned width)
{
	struct grid grid = {0};
	int error = grid__resize(&grid, width, 1);
	struct top_head head;

	if (error)
		return error;
	draw_title(model, &grid);
	grid__write(&grid, out);
	grid__free(&grid);
	top_head__say(model, &head);
	wrap__print(out, "", head.work, 0, width);
	wrap__print(out, "", head.costs, 0, width);
	model->page = TOP_PAGE_JOBS;
	top_model__arrange(model);
	for (size_t i = 0; i < model->rows[TOP_JOBS].count; i++) {
		const struct top_job *job = &model->snapshot->jobs[model->rows[TOP_JOBS].items[i]];
		char *text;

		if (!job->hang || asprintf(&text, "%s: %s", job->title, job->hang) < 0)
			continue;
		wrap__print(out, hang_mark(job), text, 2, width);
		free(text);
	}
	if (model->rows[TOP_JOBS].count)
		error = write_list(model, TOP_JOBS, out, width);
	for (size_t i = 0; !error && i < model->rows[TOP_JOBS].count; i++) {
		const struct top_job *job = &model->snapshot->jobs[model->rows[TOP_JOBS].items[i]];

		top_model__open(model, job);
		fprintf(out, "\njob %s of %s", job->title, job->user_name);
		error = write_list(model, TOP_RANKS, out, width);
	}
	if (!error && model->rows[TOP_JOBS].count)
		write_regions(model, out, width);
	return error;
}
