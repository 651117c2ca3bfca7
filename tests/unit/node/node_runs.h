/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Simulated runs of the kernels: a scatter of single iterations, and one that all iterations of a CPU share for a slot
 * of 100 ms. Included by tests.
 */
#ifndef VAPRO_TESTS_NODE_RUNS_H
#define VAPRO_TESTS_NODE_RUNS_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "node/node_file.h"
#include "sim.h"

#define SLOT_NS 100000000ULL
#define NOBODY UINT32_MAX

struct node_scenario {
	uint32_t cpus;
	uint64_t seed;
	double seconds;
	double scatter;	      /* standard deviation of an iteration */
	double slot_scatter;  /* of all iterations in a slot */
	uint32_t slow;	      /* instance, or NOBODY */
	double factor;	      /* of its iterations of `kernels` */
	double all;	      /* of all iterations of `kernels`; 0: 1 */
	uint32_t kernels;     /* bits */
	double waited;	      /* share of the time in which instance 0 has no CPU */
	const char *odd_type; /* of the cores of odd numbers, which take odd_factor times as long; NULL: one type */
	double odd_factor;
};

#define MEMORY_KERNELS (1U << NODE_LAST_LEVEL | 1U << NODE_RANDOM_ACCESS | 1U << NODE_TRIAD)

static inline void make_machine(struct machine_cpus *machine, const struct node_scenario *scenario)
{
	*machine = (struct machine_cpus){
	    .host = "n1", .model = "a CPU", .build = "a compiler", .array_bytes = 1 << 24, .cache_bytes = 1 << 25};
	machine->cpus = calloc(scenario->cpus, sizeof(*machine->cpus));
	assert_non_null(machine->cpus);
	machine->count = machine->capacity = scenario->cpus;
	for (uint32_t i = 0; i < scenario->cpus; i++) {
		machine->cpus[i] = (struct machine_cpu){.cpu = (int32_t)i, .socket = 2 * i >= scenario->cpus};
		if (scenario->odd_type)
			snprintf(machine->cpus[i].core_type, sizeof(machine->cpus[i].core_type), "%s",
				 i & 1 ? scenario->odd_type : "cpu_core");
	}
}

static inline double factor_of(const struct node_scenario *scenario, uint32_t instance, uint32_t kernel)
{
	bool hit = scenario->kernels & 1U << kernel;
	double factor = hit && scenario->all > 0 ? scenario->all : 1;

	if (hit && instance == scenario->slow)
		factor *= scenario->factor;
	return scenario->odd_type && instance & 1 ? factor * scenario->odd_factor : factor;
}

/* One slot of one instance: iterations until 90 ms are over. */
static inline struct node_bundle simulate_slot(const struct node_scenario *scenario, uint64_t *seed, uint32_t instance,
					       uint32_t kernel, uint64_t begin_ns)
{
	double usual = 1e6 * (1 + kernel), slot = 1 + scenario->slot_scatter * sim_gauss(seed);
	double waits = instance ? 0 : scenario->waited;
	struct node_bundle bundle = {
	    .instance = instance, .kernel = kernel, .start_ns = begin_ns, .min_ns = UINT64_MAX};

	while (bundle.sum_ns < 90000000) {
		double ns = usual * factor_of(scenario, instance, kernel) * slot *
			    fmax(0.5, 1 + scenario->scatter * sim_gauss(seed));
		uint64_t whole = (uint64_t)(ns / (1 - waits));

		bundle.n++;
		bundle.sum_ns += whole;
		bundle.waited_ns += whole - (uint64_t)ns;
		bundle.min_ns = whole < bundle.min_ns ? whole : bundle.min_ns;
		bundle.max_ns = whole > bundle.max_ns ? whole : bundle.max_ns;
	}
	bundle.end_ns = begin_ns + bundle.sum_ns;
	return bundle;
}

static inline struct node_run *simulate_run(const struct node_scenario *scenario)
{
	uint64_t seed = scenario->seed * 7919 + 1, slots = (uint64_t)(scenario->seconds * 1e9 / SLOT_NS);
	struct machine_cpus machine;
	struct node_run *run;

	make_machine(&machine, scenario);
	run = node_run__new(&machine);
	assert_non_null(run);
	for (uint64_t slot = 0; slot < slots; slot++) {
		uint32_t kernel = (uint32_t)(slot % NODE_KERNELS);

		for (uint32_t i = 0; i < scenario->cpus; i++) {
			struct node_bundle bundle =
			    simulate_slot(scenario, &seed, i, kernel, SIM_BEGIN_NS + slot * SLOT_NS);

			if (kernel == NODE_FALSE_SHARING && scenario->cpus == 1)
				continue;
			assert_int_equal(node_run__add(run, &bundle), 0);
		}
	}
	machine_cpus__clear(&machine);
	return run;
}

/* The bytes of a file with a run; size: also of them. */
static inline uint8_t *bytes_of(struct node_run *run, size_t *size)
{
	struct archive *archive = archive__new();
	uint8_t *data;

	assert_non_null(archive);
	node_run__archive(archive, run);
	data = archive__seal(archive, "node", size);
	assert_non_null(data);
	archive__free(archive);
	return data;
}

/* A run that was written to a file and read again. */
static inline struct node_run *replayed(struct node_run *run)
{
	struct node_run *again;
	char err[256];
	size_t size;
	uint8_t *data = bytes_of(run, &size);

	if (node_file__parse(data, size, &again, err, sizeof(err)))
		fail_msg("%s", err);
	node_run__free(run);
	free(data);
	return again;
}

#endif
