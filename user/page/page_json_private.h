/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the parts of a page's JSON share. */
#ifndef VAPRO_PAGE_PAGE_JSON_PRIVATE_H
#define VAPRO_PAGE_PAGE_JSON_PRIVATE_H

#include <cjson/cJSON.h>

#include "page/run_report.h"

/* Returns a time as seconds since the report's start. */
double page_json__offset(const struct run_report *report, uint64_t utc_ns);

/* Appends a new object to list; returns it or NULL. */
cJSON *page_json__append(cJSON *list);

#endif
