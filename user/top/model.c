// SPDX-License-Identifier: GPL-2.0-or-later
#include "top/model_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "diagnose/root_cause.h"
#include "report/cause_text.h"

void top_model__init(struct top_model *model)
{
	*model = (struct top_model){.page_rows = 1};
}

void top_model__clear(struct top_model *model)
{
	top_snapshot__free(model->snapshot);
	top_snapshot__free(model->next);
	for (int list = 0; list < TOP_LISTS; list++)
		free(model->rows[list].items);
	*model = (struct top_model){0};
}

double top__slowest(const double *speed)
{
	double slowest = NAN;

	for (int class = 0; class < VAPRO_CLASSES; class ++)
		slowest = fmin(slowest, speed[class]); /* of a number and NAN fmin returns the number */
	return slowest;
}

bool top__includes(const struct region *region, int32_t rank)
{
	for (uint32_t i = 0; i < region->rank_count; i++) {
		if (region->ranks[i] == rank)
			return true;
	}
	return false;
}

void top__sentence(const struct region *region, char *text, size_t size)
{
	const char *cause = region->cause && strcmp(region->cause, CAUSE_UNKNOWN) ? region->cause : NULL;
	size_t used = 0;
	char lost[40];

	if (cause)
		used = (size_t)snprintf(text, size, "%s%s%s: ", cause_text__noun(cause),
					*region->culprit.comm ? " by " : "", region->culprit.comm);
	if (used >= size)
		return;
	duration__text(region->lost_seconds, lost, sizeof(lost));
	if (region->verdict)
		snprintf(text + used, size - used, "%s", region->verdict);
	else
		snprintf(text + used, size - used, "%s of %s, %s lost so far", region->class ? region->class : "work",
			 region->who ? region->who : "?", lost);
}

void top_model__update(struct top_model *model, struct top_snapshot *snapshot)
{
	struct top_snapshot **place = model->frozen && model->snapshot ? &model->next : &model->snapshot;

	top_snapshot__free(*place);
	*place = snapshot;
	top_model__arrange(model);
}

/* ---- keys */

/* Notes what is selected, so that the cursor follows it. */
static void move_to(struct top_model *model, size_t row)
{
	struct top_rows *rows = &model->rows[model->focus];

	rows->cursor = rows->count && row >= rows->count ? rows->count - 1 : row;
	rows->selected = rows->count ? top_model__identity(model, model->focus, rows->items[rows->cursor]) : 0;
}

static void move(struct top_model *model, uint32_t key)
{
	size_t at = model->page == TOP_PAGE_REGION ? model->scroll : model->rows[model->focus].cursor;
	size_t step = key == TOP_KEY_UP || key == TOP_KEY_DOWN ? 1 : model->page_rows;

	if (key == TOP_KEY_HOME)
		at = 0;
	else if (key == TOP_KEY_END)
		at = SIZE_MAX / 2;
	else if (key == TOP_KEY_UP || key == TOP_KEY_PAGE_UP)
		at = at > step ? at - step : 0;
	else
		at += step;
	if (model->page == TOP_PAGE_REGION)
		model->scroll = at; /* the layout knows where it ends */
	else
		move_to(model, at);
}

void top_model__open(struct top_model *model, const struct top_job *job)
{
	model->job = top_job__identity(job);
	top_model__arrange(model);
}

static void focus_on(struct top_model *model, enum top_page page, enum top_list list)
{
	model->page = page;
	model->focus = list;
	top_model__arrange(model);
}

/* Starts a list from its first row. */
static void rewind_list(struct top_model *model, enum top_list list)
{
	struct top_rows *rows = &model->rows[list];

	rows->cursor = rows->first = 0;
	rows->selected = 0;
	*rows->filter = 0;
}

static void enter(struct top_model *model)
{
	struct top_rows *rows = &model->rows[model->focus];
	uint64_t identity;

	if (model->page == TOP_PAGE_REGION || !rows->count)
		return;
	identity = top_model__identity(model, model->focus, rows->items[rows->cursor]);
	rows->selected = identity;
	if (model->focus == TOP_REGIONS) {
		model->region = identity;
		model->from = model->page;
		model->page = TOP_PAGE_REGION;
		model->scroll = 0;
		return;
	}
	if (model->focus == TOP_JOBS) {
		model->job = identity;
		rewind_list(model, TOP_RANKS);
		rewind_list(model, TOP_REGIONS);
		focus_on(model, TOP_PAGE_JOB, TOP_RANKS);
		return;
	}
	model->process = identity;
	rewind_list(model, TOP_REGIONS);
	focus_on(model, TOP_PAGE_RANK, TOP_REGIONS);
}

static void go_back(struct top_model *model)
{
	if (*model->rows[model->focus].filter && model->page != TOP_PAGE_REGION) {
		*model->rows[model->focus].filter = 0;
		top_model__arrange(model);
	} else if (model->page == TOP_PAGE_REGION) {
		focus_on(model, model->from, TOP_REGIONS);
	} else if (model->page == TOP_PAGE_RANK) {
		rewind_list(model, TOP_REGIONS);
		focus_on(model, TOP_PAGE_JOB, TOP_RANKS);
	} else if (model->page == TOP_PAGE_JOB) {
		rewind_list(model, TOP_REGIONS);
		focus_on(model, TOP_PAGE_JOBS, TOP_JOBS);
	}
}

/* Handles a key while a filter is typed. */
static void type(struct top_model *model, uint32_t key)
{
	char *filter = model->rows[model->focus].filter;
	size_t length = strlen(filter);

	if (key == TOP_KEY_ENTER || key == TOP_KEY_BACK) {
		model->typing = false;
		if (key == TOP_KEY_BACK)
			*filter = 0;
	} else if (key == TOP_KEY_ERASE) {
		if (length)
			filter[length - 1] = 0;
		else
			model->typing = false;
	} else if (key >= ' ' && key < 0x7f && length + 1 < TOP_FILTER) {
		filter[length] = (char)key;
		filter[length + 1] = 0;
	}
	top_model__arrange(model);
}

static void freeze(struct top_model *model)
{
	model->frozen = !model->frozen;
	if (model->frozen || !model->next)
		return;
	top_snapshot__free(model->snapshot);
	model->snapshot = model->next;
	model->next = NULL;
	top_model__arrange(model);
}

static void change_order(struct top_model *model, uint32_t key)
{
	struct top_rows *rows = &model->rows[model->focus];
	unsigned count;

	top_model__orders(model->focus, &count);
	if (key == 'r' || key == 'R')
		rows->reverse = !rows->reverse;
	else
		rows->order = (rows->order + (key == '<' ? count - 1 : 1)) % count;
	top_model__arrange(model);
}

void top_model__key(struct top_model *model, uint32_t key)
{
	static const uint32_t same[][2] = {{'k', TOP_KEY_UP},	{'j', TOP_KEY_DOWN}, {'h', TOP_KEY_HELP},
					   {'?', TOP_KEY_HELP}, {'g', TOP_KEY_HOME}, {'G', TOP_KEY_END},
					   {'q', TOP_KEY_QUIT}, {'Q', TOP_KEY_QUIT}};

	if (model->typing) {
		type(model, key);
		return;
	}
	for (size_t i = 0; i < sizeof(same) / sizeof(*same); i++)
		key = key == same[i][0] ? same[i][1] : key;
	if (key == TOP_KEY_QUIT) {
		model->quit = true;
	} else if (model->help) {
		model->help = false; /* any key ends the help */
	} else if (key == TOP_KEY_HELP) {
		model->help = true;
	} else if (key == ' ') {
		freeze(model);
	} else if (!model->snapshot) {
		return;
	} else if (key >= TOP_KEY_UP && key <= TOP_KEY_END) {
		move(model, key);
	} else if (key == TOP_KEY_ENTER) {
		enter(model);
	} else if (key == TOP_KEY_BACK || key == TOP_KEY_ERASE) {
		go_back(model);
	} else if (model->page == TOP_PAGE_REGION) {
		return;
	} else if (key == TOP_KEY_TAB && model->page != TOP_PAGE_RANK) {
		model->focus = model->focus != TOP_REGIONS    ? TOP_REGIONS
			       : model->page == TOP_PAGE_JOBS ? TOP_JOBS
							      : TOP_RANKS;
	} else if (key == '/') {
		model->typing = true;
	} else if (key == 's' || key == '>' || key == '<' || key == 'r' || key == 'R') {
		change_order(model, key);
	}
}
