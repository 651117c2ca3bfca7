/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/run_option.h"

bool run_option__parse(const char *text, int *run)
{
	char *end;
	long number;

	errno = 0;
	number = strtol(text, &end, 10);
	if (errno || end == text || *end || !number || number < -INT_MAX || number > INT_MAX)
		return false;
	*run = (int)number;
	return true;
}

void run_option__say(const char *command, const char *path, size_t run, size_t runs)
{
	if (runs > 1)
		fprintf(stderr, "vapro %s: %s holds %zu runs; this is run %zu%s; --run chooses another\n", command,
			path, runs, run, run == runs ? ", the last" : "");
}
