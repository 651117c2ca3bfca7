/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Files that `vapro report` and `vapro diff` write for people. A file that is no output of the same kind is not
 * replaced: its name was probably mistaken.
 */
#ifndef VAPRO_CLI_REPORT_OUTPUT_H
#define VAPRO_CLI_REPORT_OUTPUT_H

#include <stdio.h>

/*
 * Opens an output of `vapro COMMAND`; "-" is standard output. begin: how outputs of this kind begin. Returns NULL after
 * reporting why it is not written.
 */
FILE *report_output__open(const char *command, const char *path, const char *begin);

/* Closes an output after writing, whose result is ret: 0 or a negative errno. Returns an exit code. */
int report_output__close(const char *command, FILE *file, const char *path, int ret);

#endif
