/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The generator's child: its threads, and what they send to the parent. */
#ifndef VAPRO_NODE_INSTANCES_H
#define VAPRO_NODE_INSTANCES_H

#include "node/node_run.h"

enum instance_news {
	INSTANCE_BUNDLE,
	INSTANCE_UNPINNED, /* it has no CPU of its own: bundle.instance */
	INSTANCE_WRONG,	   /* a result was wrong: bundle.instance, bundle.kernel */
	INSTANCE_FAILED,   /* the child ends: error */
	INSTANCE_DONE,
};

/* One is written at once: it is shorter than what a pipe takes in one piece. */
struct instance_message {
	enum instance_news news;
	int error; /* a positive errno */
	struct node_bundle bundle;
};

/* Runs the threads for some seconds and sends to a pipe. Never returns. */
__attribute__((noreturn)) void instances__run(const struct machine_cpus *machine, double seconds, int pipe);

#endif
