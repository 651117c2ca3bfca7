/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What it costs to attach to the processes of an image, by which the next attachment to it is put off.
 *
 * Reading images and setting probes is the smaller part of it: processes are looked for, the first records of each are
 * resolved, IO tracing starts. All of that counts, so that the cost is the processor time that vaprod used from the
 * first candidate until some time after the last attachment, without what it used before in as much time, divided among
 * the processes that were attached, by what the attachment of each owner's cost itself. What one owner's processes cost
 * puts off no other's: a process may have 65,000 mappings. Confined readers, which read an image once, do not count,
 * and of the first measurement a quarter: what is read for the first time is known later.
 */
#ifndef VAPRO_ATTACH_COSTS_H
#define VAPRO_ATTACH_COSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define ATTACH_COSTS_IMAGES 32
#define ATTACH_COSTS_AT_ONCE 4 /* images whose processes are attached at the same time; more are not measured */

struct attach_image {
	uint64_t device, inode;
	uid_t owner; /* of the process, as in struct process */
	bool linked; /* it had its links already */
	/* private: */
	bool first;	 /* no process of it was attached before */
	uint64_t own_ns; /* sum of what its attachments themselves cost */
	size_t processes;
};

struct image_cost {
	uint64_t device, inode;
	uid_t owner;
	uint64_t first_ns;   /* first attachment, CLOCK_MONOTONIC */
	uint64_t cost_ns[2]; /* of a process whose image had no links, had links; 0: not known */
};

/* All members are private. */
struct attach_costs {
	struct image_cost images[ATTACH_COSTS_IMAGES]; /* a ring */
	size_t image_count;
	struct {
		uint64_t cpu_ns, at_ns;
	} second; /* the last reading outside of a measurement: rate_before is that between two */
	double rate_before;
	bool measuring;
	uint64_t begin_cpu_ns, begin_ns; /* of the present measurement */
	uint64_t last_ns;		 /* its last attachment */
	uint64_t own_ns;		 /* sum of what the attachments themselves cost */
	size_t processes;
	struct attach_image attached[ATTACH_COSTS_AT_ONCE];
	size_t attached_count;
};

/* A process might be attached soon. cpu_ns: processor time of vaprod so far. */
void attach_costs__candidate(struct attach_costs *costs, uint64_t cpu_ns, uint64_t now_ns);

/* A process was attached, which cost own_ns for its images and probes alone. */
void attach_costs__attached(struct attach_costs *costs, const struct attach_image *image, uint64_t own_ns,
			    uint64_t now_ns);

/* Returns whether attach_costs__step() has something to do now, for which it needs the processor time. */
bool attach_costs__is_due(const struct attach_costs *costs, uint64_t now_ns);

/* Ends a measurement some time after its last attachment. expecting: there are candidates. */
void attach_costs__step(struct attach_costs *costs, bool expecting, uint64_t cpu_ns, uint64_t now_ns);

/* Returns the expected cost of attaching to an owner's process of an image, ns; 0 where it is not known. */
uint64_t attach_costs__of(const struct attach_costs *costs, const struct attach_image *image);

/* Returns the time of the first attachment to an image, of any owner's process, ns; 0 where there was none. */
uint64_t attach_costs__first(const struct attach_costs *costs, uint64_t device, uint64_t inode);

#endif
