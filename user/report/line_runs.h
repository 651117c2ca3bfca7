/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The runs in NDJSON output. A run begins with its `hello`; lines of a host before its first `hello` (the
 * file was rotated in a run) are a run too. Runs belong to hosts: lines of several hosts, one run
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

/* Reads all of a seekable file. Returns NULL with errno set. */
struct line_runs *line_runs__read(FILE *file);
void line_runs__free(struct line_runs *runs);

/* Returns the most runs that any host has. */
size_t line_runs__count(const struct line_runs *runs);

/*
 * Chooses the run with this number of each host, from 1, or from the end, from -1. Returns the number (from
 * 1) at the host with most runs, 0 where there is no such run.
 */
size_t line_runs__choose(struct line_runs *runs, int run);

/* Returns the offset of the chosen runs' first line: no earlier line is needed. *line: its number, from 0. */
off_t line_runs__begin(struct line_runs *runs, uint64_t *line);

/* Returns whether a line is in a chosen run; call in order, from line_runs__begin() on. NULL: the line is no JSON. */
bool line_runs__has(struct line_runs *runs, const cJSON *line);

#endif
