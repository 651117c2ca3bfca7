/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The result of a check of a node, for people and for programs. */
#ifndef VAPRO_NODE_REPORT_H
#define VAPRO_NODE_REPORT_H

#include <stdio.h>

#include "node/node_check.h"

struct node_report {
	const struct node_run *run;
	const struct node_check *check;
	const char *profile_name; /* file; NULL: no profile */
	const struct node_run *profile;
	const struct node_check *compared; /* NULL: not compared, for the reason in other_class */
	const char *other_class;
};

/* The worst verdict of both. One CPU alone has no verdict of its own: beside a profile that one counts. */
enum node_verdict node_report__verdict(const struct node_report *report);

void node_report__text(const struct node_report *report, FILE *out, unsigned width);

/* Prints one JSON object. Returns 0 or -ENOMEM. */
int node_report__json(const struct node_report *report, FILE *out);

#endif
