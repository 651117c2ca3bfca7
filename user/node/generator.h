/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Runs the kernels on all CPUs of a machine: a child process with a thread pinned to each CPU. All threads begin each
 * iteration together, at a barrier. The kernels alternate every half bin, so that each is spread over the whole time.
 * The child sends its bundles through a pipe, holds private memory only, and is killed when this process ends, however
 * it ends.
 */
#ifndef VAPRO_NODE_GENERATOR_H
#define VAPRO_NODE_GENERATOR_H

#include <signal.h>

#include "node/node_run.h"

/* The least time in which the analysis gets enough batches of each kernel, and the most, seconds. */
#define GENERATOR_LEAST_S 5
#define GENERATOR_MOST_S 600

/*
 * Runs the kernels for some seconds into a new run. *stop: of a signal, ends it. Returns 0, -EINTR where it was
 * stopped, or a negative errno with a sentence in err; the run is to be freed.
 */
int generator__run(const struct machine_cpus *machine, double seconds, const volatile sig_atomic_t *stop,
		   struct node_run **run, char *err, size_t err_size);

#endif
