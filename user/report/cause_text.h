/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A cause in one sentence, the same in records, summary, view and on the terminal: "hog preempted 32 ranks on 16 hosts,
 * 123 times in all: 96.8 s lost, 0.16 % of the job".
 */
#ifndef VAPRO_REPORT_CAUSE_TEXT_H
#define VAPRO_REPORT_CAUSE_TEXT_H

#include <stdio.h>

#include "analysis/causes.h"

#define CAUSE_TEXT_SIZE 512

/* Writes the sentence, with harmless characters only. Returns buf, of CAUSE_TEXT_SIZE bytes. */
char *cause_text__write(const struct cause *cause, char *buf);

/* Returns a cause in words: a factor's noun, or what a constant of diagnose/root_cause.h means. */
const char *cause_text__noun(const char *cause);

/*
 * Returns how many causes of a list have a line of their own: the last ones, which nothing explains, are below all
 * bounds. One at least, where there is any.
 */
uint32_t cause_text__listed(const struct cause_list *list);

/*
 * Prints at most `most` causes in lines of at most width columns, worst first, and counts the rest. several: there are
 * several jobs, so that each line names its own. An empty list prints nothing.
 */
void cause_text__print(const struct cause_list *list, FILE *out, unsigned width, size_t most, bool several);

#endif
