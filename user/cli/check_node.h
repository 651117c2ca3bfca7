/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `vapro check --node`: the kernels of varbench on all CPUs of this node, judged as the work of a job. */
#ifndef VAPRO_CLI_CHECK_NODE_H
#define VAPRO_CLI_CHECK_NODE_H

#include <stdbool.h>

struct check_node {
	double seconds;
	const char *store;   /* file that becomes the profile; NULL: none */
	const char *profile; /* file to compare with; NULL: none */
	bool force;	     /* also beside ranks */
	bool json;
};

#define CHECK_NODE_SECONDS 10 /* by default */

/* Runs, judges and prints. Returns an exit code. */
int check_node__run(const struct check_node *choice);

#endif
