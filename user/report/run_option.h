/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `--run N`: a file holds several runs where a daemon was started again with the same output, and the
 * last one is what is shown unless another is asked for (1 = the first, -1 = the last).
 */
#ifndef VAPRO_REPORT_RUN_OPTION_H
#define VAPRO_REPORT_RUN_OPTION_H

#include <stdbool.h>
#include <stddef.h>

#define RUN_OPTION_LAST (-1)

/* Returns whether text is the number of a run. */
bool run_option__parse(const char *text, int *run);

/* Says on standard error which run is shown, where a file holds several. */
void run_option__say(const char *command, const char *path, size_t run, size_t runs);

#endif
