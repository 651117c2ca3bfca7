/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Commands that read a run and print records of one kind, as a table or as they are: noise, variability. */
#ifndef VAPRO_CLI_SHOWN_H
#define VAPRO_CLI_SHOWN_H

#include <stdio.h>

#include "cli/broker_rows.h"
#include "cli/command.h"
#include "page/run_report.h"

/* What the options of such a command have in common. */
struct shown {
	bool json, no_pager;
	const char *job;
	struct source_options source; /* a broker in place of files */
	int run;
	struct option_list files;
};

/*
 * All of a command: parses its options into choice, of which shown is a part, reads the input and has it printed.
 * print returns an exit code. Returns an exit code.
 */
int shown__main(const struct command *command, void *choice, struct shown *shown, int argc, char **argv,
		int (*print)(const void *choice, const struct run_report *report, FILE *out));

#endif
