/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `--run N` selects one of several runs in a file, which a daemon that starts again with the same output
 * makes (1 = the first, -1 = the last). The last run is the default.
 */
#ifndef VAPRO_REPORT_RUN_OPTION_H
#define VAPRO_REPORT_RUN_OPTION_H

#include <stdbool.h>
#include <stddef.h>

#define RUN_OPTION_RANGE "1, 2, ... from the first, or -1, -2, ... from the last"
#define RUN_OPTION_LAST (-1)

/* Returns whether text is the number of a run. */
bool run_option__parse(const char *text, int *run);

/* Prints on standard error which of several runs is shown. */
void run_option__say(const char *command, const char *path, size_t run, size_t runs);

#endif
