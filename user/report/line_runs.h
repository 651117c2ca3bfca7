/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The runs in NDJSON output. A run begins with its `hello`; what a host has before its first one (the
 * file was rotated in a run) is a run too. Runs are those of a host: lines of several hosts, one run
 * each, may be mixed in a file.
 */
#ifndef VAPRO_REPORT_LINE_RUNS_H
#define VAPRO_REPORT_LINE_RUNS_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct line_runs;

/* Reads all of a file, which can be sought in. Returns NULL with errno set. */
struct line_runs *line_runs__read(FILE *file);
void line_runs__free(struct line_runs *runs);

/* The most runs that any host has. */
size_t line_runs__count(const struct line_runs *runs);

/*
 * Chooses the run with this number of each host, from 1, or from the end, from -1. Returns the number from
 * 1 as that of the host with most runs, 0 where there is no such run.
 */
size_t line_runs__choose(struct line_runs *runs, int run);

/* Where the first line of the chosen runs lies: those before need not be read. Its number, from 0, goes to *line. */
off_t line_runs__begin(struct line_runs *runs, uint64_t *line);

/* Lines in their order, from there on: whether this one is of a run that was chosen. NULL: a line that is no JSON. */
bool line_runs__has(struct line_runs *runs, const cJSON *line);

#endif
