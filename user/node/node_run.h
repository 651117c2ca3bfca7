/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A run of the kernels: how long iterations took, in bundles of one instance, one kernel and one 200 ms bin. It is a
 * source of fragments, as a capture is one of a job: an instance is a rank, a kernel a state, the iterations of a
 * kernel are equal work. What it means is for the analysis and the comparison of runs.
 */
#ifndef VAPRO_NODE_RUN_H
#define VAPRO_NODE_RUN_H

#include "base/archive.h"
#include "capture/stream.h"
#include "compare/profile.h"
#include "node/kernels.h"
#include "node/machine_cpus.h"

/* Iterations of one instance; times are UTC ns. */
struct node_bundle {
	uint32_t instance;
	uint32_t kernel;
	uint32_t n;
	uint64_t start_ns, end_ns; /* of the first, of the last; the end in one bin */
	uint64_t sum_ns, min_ns, max_ns;
	uint64_t waited_ns; /* part of the sum in which the instance had no CPU */
};

struct node_run;

/* The machine is copied. NULL when out of memory. */
struct node_run *node_run__new(const struct machine_cpus *machine);
void node_run__free(struct node_run *run);

/* Adds a bundle. Returns 0, -EINVAL for one that cannot be, -E2BIG where the run is full, or -ENOMEM. */
int node_run__add(struct node_run *run, const struct node_bundle *bundle);

/* Instances that have no CPU of their own (any more), and results that were wrong. */
void node_run__unpin(struct node_run *run, uint32_t instance);
void node_run__note_wrong(struct node_run *run, uint32_t instance, enum node_kernel kernel);

const struct machine_cpus *node_run__machine(const struct node_run *run);
size_t node_run__count(const struct node_run *run); /* bundles */
size_t node_run__unpinned(const struct node_run *run);
bool node_run__wrong(const struct node_run *run, uint32_t instance, enum node_kernel kernel);
double node_run__mean_ns(const struct node_run *run, enum node_kernel kernel); /* of an iteration; NAN: there is none */
double node_run__seconds(const struct node_run *run); /* from the first begin to the last end */
uint64_t node_run__begin_ns(const struct node_run *run);

/* The share of an instance's time in which it had no CPU. */
double node_run__waited(const struct node_run *run, uint32_t instance);

/*
 * Puts all of it as a capture would be replayed: threads, places, states, bundles in windows of window_s. Cores of
 * different types have states of their own, since they differ by design. Returns 0 or what the sink returned; -ENODATA
 * of an empty run.
 */
int node_run__feed(const struct node_run *run, double window_s, struct stream_sink *sink);

/* Makes the profile by which runs are compared, to be freed. Returns 0, -ENODATA of an empty run, or -ENOMEM. */
int node_run__profile(const struct node_run *run, struct profile **profile);

/* The kernel of a state's labels; NODE_KERNELS: none. */
enum node_kernel node_run__kernel_of(const char *labels);

/* Writes a run, or reads into a new one what was read before of no machine: node_file.h has the files. */
void node_run__archive(struct archive *archive, struct node_run *run);
struct node_run *node_run__empty(void);

#endif
