/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The CPUs that a check may use, and what must be equal for two checks to be comparable: the class of the node. CPUs
 * that are offline, or that affinity or a cpuset withholds, are not among them. A plain value.
 */
#ifndef VAPRO_NODE_MACHINE_CPUS_H
#define VAPRO_NODE_MACHINE_CPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MACHINE_CPUS_MOST = 2048 };

struct machine_cpu {
	int32_t cpu, socket, numa; /* -1 unknown */
	char core_type[24];	   /* "" unknown, or the node has one only */
};

struct machine_cpus {
	char host[256], model[128]; /* "" unknown */
	char build[160];	    /* version of the kernels, and the compiler that made them */
	uint64_t cache_bytes;	    /* of the last level; 0 unknown */
	uint64_t array_bytes;	    /* of the kernels' arrays */
	struct machine_cpu *cpus;   /* by socket and number: an instance each */
	size_t count, capacity;
};

/*
 * Reads the CPUs that this process may use. sys: "/sys", cpuinfo: "/proc/cpuinfo", or stand-ins; free_bytes: memory
 * that is free, of which at most a quarter is used. Returns 0, or a negative errno with a sentence in err; to be
 * cleared in both cases.
 */
int machine_cpus__read(struct machine_cpus *machine, const char *sys, const char *cpuinfo, uint64_t free_bytes,
		       char *err, size_t err_size);
int machine_cpus__copy(struct machine_cpus *to, const struct machine_cpus *from); /* 0 or -ENOMEM */
void machine_cpus__clear(struct machine_cpus *machine);

/* Returns the memory that programs could have at once, by /proc/meminfo; 0 unknown. */
uint64_t machine_cpus__free_bytes(void);

/* Returns whether two nodes are of one class; else why says in which way they are not. */
bool machine_cpus__alike(const struct machine_cpus *a, const struct machine_cpus *b, char *why, size_t why_size);

/* Writes the CPUs of some instances as a list such as 0-3,7. Returns text. */
char *machine_cpus__list(const struct machine_cpus *machine, const uint32_t *instances, size_t count, char *text,
			 size_t size);

#endif
