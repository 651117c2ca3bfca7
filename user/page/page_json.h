/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a page shows, as JSON; user/page/web/data.js reads it. Times are seconds since `start`, shares are 0..1. */
#ifndef VAPRO_PAGE_PAGE_JSON_H
#define VAPRO_PAGE_PAGE_JSON_H

#include <cjson/cJSON.h>

#include "page/cells.h"
#include "page/report_input.h"
#include "page/run_report.h"

/* Returns the report without its cells, or NULL when out of memory. */
cJSON *page_json__report(const struct run_report *report, const struct report_input *input, const char *version);

/* Adds a map and how its cells are laid out; worst and mean: ids of the elements that have them. Returns whether there
 * was memory. */
bool page_json__add_map(cJSON *page, const struct run_report *report, const struct view_map *map,
			const struct cells *cells, const char *worst, const char *mean);

#define PAGE_REGIONS 5000 /* most regions of a page: the worst */

/* page_regions.c: the slow regions. Returns the list, or NULL when out of memory. */
cJSON *page_json__regions(const struct run_report *report);

/* page_states.c: adds what is known of states. Returns whether there was memory for it. */
bool page_json__add_states(cJSON *page, const struct run_report *report);

/* page_variability.c: adds how the time of equal work varied. Returns whether there was memory for it. */
bool page_json__add_variability(cJSON *page, const struct run_report *report);

/* page_profile.c: adds the profiles of the ranks. Returns whether there was memory for it. */
bool page_json__add_profiles(cJSON *page, const struct run_report *report);

#endif
