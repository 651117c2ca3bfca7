/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Functions and lines of call-sites that a capture does not name, for a user's command: a file of the same build-id, if
 * one is still there, has them, or its debug file, or a debuginfod server that the user has configured
 * (DEBUGINFOD_URLS).
 */
#ifndef VAPRO_REPORT_NAME_LOOKUP_H
#define VAPRO_REPORT_NAME_LOOKUP_H

#include <stdio.h>

#include "report/source_names.h"

struct name_lookup;

/* names outlives the lookup. NULL when out of memory. */
struct name_lookup *name_lookup__new(struct source_names *names);
void name_lookup__free(struct name_lookup *lookup);

/* Adds a call-site and its callers; path: the call-site's image, or NULL. 0 or -ENOMEM. */
int name_lookup__add(struct name_lookup *lookup, const char *site, const char *path);

/* Looks up all that names does not have, and adds it there. What is missing, and what would help, goes to complaints.
 */
void name_lookup__query(struct name_lookup *lookup, const char *program, FILE *complaints);

#endif
