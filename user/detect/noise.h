/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Noise components of a job that the scheduler shows (docs/noise.md): the tasks of others that ran on a CPU while the
 * job's threads waited for it, each name with its number of slices, their sum, the longest one, and the threads that
 * they hit. NoiseMiner (papers/001) calls such noise external, and finds it by groups of durations; the scheduler
 * counts it. Everything is a sum, a greatest or a least value, so that the order in which slices come does not matter
 * while no more than NOISE_NAMES names and NOISE_PARTS pairs of a name and a thread come.
 */
#ifndef VAPRO_DETECT_NOISE_H
#define VAPRO_DETECT_NOISE_H

#include "base/table.h"
#include "model/stg.h"

#include <vapro/analysis.h>

enum { NOISE_NAME = 16 };     /* bytes, as of the kernel's names of tasks */
enum { NOISE_NAMES = 256 };   /* names in a job; then the half of them with the least time is forgotten */
enum { NOISE_PARTS = 65536 }; /* threads hit in a job, summed over the names; later ones are forgotten */

/* All slices of tasks of one name and one relation to the job. */
struct noise_component {
	char name[NOISE_NAME];
	uint32_t relation; /* enum vapro_relation */
	uint32_t process;  /* pid of their process; 0: of several */
	uint64_t slices, ns;
	uint32_t longest_us;
	uint64_t begin, end; /* first bin, and last bin + 1 */
	/* as last emitted */
	uint32_t id; /* 0: never */
	uint32_t revision;
	uint64_t emitted_slices, emitted_ns;
	bool final;
};

/* The slices of a component that hit one thread. */
struct noise_part {
	uint32_t component, thread;
	uint64_t slices, ns;
};

struct noise {
	struct noise_component *components;
	size_t count, capacity;
	struct noise_part *parts; /* in the order of their first slices */
	size_t part_count, part_capacity;
	struct table *index; /* of parts, by component and thread */
	size_t recent;	     /* component that was found last: slices of one task come one after the other */
	uint32_t last_id;
	uint64_t forgotten_ns; /* time of slices that had no room */
};

/* Slices of one task that hit one thread in a bin. */
struct noise_slices {
	const char *name;
	uint32_t relation, process;
	uint32_t thread;
	uint64_t bin;
	uint64_t slices, ns;
	uint32_t longest_us;
};

/* Returns whether tasks of this relation to the job are noise: the job's own are not. */
bool noise__is_noise(uint32_t relation);

/* Adds slices. Returns 0 or -ENOMEM. */
int noise__add(struct noise *noise, const struct noise_slices *slices);

/*
 * Writes the name under which tasks are summed: kernel threads of different CPUs are one, "kworker/1:2-events" and
 * "kworker/u8:0" are "kworker".
 */
void noise__name(const char *comm, char name[NOISE_NAME]);

void noise__clear(struct noise *noise);
size_t noise__bytes(const struct noise *noise);

/* Writes or reads the noise of a job; what is to be read is empty. */
void noise__archive(struct archive *archive, struct noise *noise, const struct stg *stg, uint32_t job);

#endif
