/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A pager for a text that is longer than the terminal. */
#ifndef VAPRO_REPORT_PAGER_H
#define VAPRO_REPORT_PAGER_H

#include <stdbool.h>
#include <stdio.h>

/*
 * Opens what a long text is written to: $PAGER, or less where that is unset, if standard output is a terminal and
 * `wanted`; else standard output. less ends at once where the text fits. Until pager__close the process ignores SIGINT
 * and SIGPIPE.
 */
FILE *pager__open(bool wanted);

/* Waits for the pager's end. */
void pager__close(FILE *out);

#endif
