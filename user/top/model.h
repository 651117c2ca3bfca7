/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a person sees of the snapshots and has chosen: page, list, cursor, order, filter. A page leads to the next one:
 * jobs, the ranks of a job, one rank; each has a list of slow regions too, and a region has a page of its own. The
 * model knows no terminal: keys go in, and lists of positions come out, which layout.h draws.
 */
#ifndef VAPRO_TOP_MODEL_H
#define VAPRO_TOP_MODEL_H

#include "top/snapshot.h"

enum top_page { TOP_PAGE_JOBS, TOP_PAGE_JOB, TOP_PAGE_RANK, TOP_PAGE_REGION };

/* The lists, each with an order and a filter of its own. */
enum top_list { TOP_JOBS, TOP_RANKS, TOP_REGIONS, TOP_LISTS };

enum top_key {
	TOP_KEY_UP = 0x110000, /* beyond all characters */
	TOP_KEY_DOWN,
	TOP_KEY_PAGE_UP,
	TOP_KEY_PAGE_DOWN,
	TOP_KEY_HOME,
	TOP_KEY_END,
	TOP_KEY_ENTER,
	TOP_KEY_BACK,  /* escape, left */
	TOP_KEY_ERASE, /* backspace: back, except where text is typed */
	TOP_KEY_TAB,
	TOP_KEY_HELP,
	TOP_KEY_QUIT,
};

#define TOP_FILTER 64

/* What a list shows now. */
struct top_rows {
	size_t *items; /* positions in the snapshot: of jobs, of the job's processes, of regions */
	size_t count, capacity;
	size_t cursor;	   /* row of the selected one, below count where there is one */
	uint64_t selected; /* identity of it, which stays when others come and go; 0: none */
	size_t first;	   /* row that is shown first: kept by the layout */
	unsigned order;	   /* number of the column by which rows are ordered */
	bool reverse;
	char filter[TOP_FILTER];
};

struct top_model {
	struct top_snapshot *snapshot; /* shown; NULL: none yet */
	struct top_snapshot *next;     /* the latest while frozen; NULL: none came since */
	bool frozen, help, quit;
	bool typing;		  /* a filter, into the list that has the focus */
	enum top_page page, from; /* from: the page that a region's page was opened on */
	enum top_list focus;
	struct top_rows rows[TOP_LISTS];
	uint64_t job, process, region; /* identities of what the pages show; 0: none */
	size_t scroll;		       /* first line of the region's page */
	size_t page_rows;	       /* rows of a list that fit: set by the layout */
	uint32_t only_user;	       /* as in struct vapro_thread: only this user's jobs; 0: all */
	char notice[256];	       /* what is the matter with the connection; "" nothing */
};

void top_model__init(struct top_model *model);
void top_model__clear(struct top_model *model);

/* Takes over a snapshot, shown at once or, while frozen, later. */
void top_model__update(struct top_model *model, struct top_snapshot *snapshot);

/* Handles a key: an enum top_key, or a character. */
void top_model__key(struct top_model *model, uint32_t key);

/* Puts all lists in order again. */
void top_model__arrange(struct top_model *model);

/* Makes a job the one whose ranks are listed, on whatever page. */
void top_model__open(struct top_model *model, const struct top_job *job);

/* What the pages show, or NULL where it is not there (any more). */
const struct top_job *top_model__job(const struct top_model *model);
const struct top_process *top_model__process(const struct top_model *model);
const struct region *top_model__region(const struct top_model *model);

/* Names of the columns by which a list can be ordered; count: how many there are. */
const char *const *top_model__orders(enum top_list list, unsigned *count);

/* Returns the lowest of the classes' speeds, NAN where all are unknown. */
double top__slowest(const double *speed);

/* Says what a region is, in the words of the records: cause and culprit, then the verdict, or who lost how much. */
void top__sentence(const struct region *region, char *text, size_t size);

/* Returns whether the ranks of a region include one. */
bool top__includes(const struct region *region, int32_t rank);

#endif
