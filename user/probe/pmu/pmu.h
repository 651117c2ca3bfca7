/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel's performance monitoring units as sysfs describes them: which there are, which CPUs they
 * belong to, and how an event is written (event_source/devices/PMU/format). root is "" or, in tests, a
 * directory that stands for /.
 */
#ifndef VAPRO_PMU_H
#define VAPRO_PMU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <vapro/bpf/abi.h>

struct cpu_list {
	uint64_t bits[KERNEL_CPUS / 64];
	unsigned count;
};

struct pmu {
	char name[64];
	uint32_t type;
	unsigned slots; /* per cycle, where the PMU reports them; else 0 */
	bool hybrid;	/* other CPUs have other PMUs */
	struct cpu_list cpus;
};

static inline bool pmu__has_cpu(const struct cpu_list *list, unsigned cpu)
{
	return cpu < KERNEL_CPUS && list->bits[cpu / 64] >> (cpu % 64) & 1;
}

/* Reads "0,2-3" from a file. False where there is none, or nothing in it. */
bool pmu__read_cpu_list(const char *path, struct cpu_list *list);
bool pmu__parse_cpu_list(const char *text, struct cpu_list *list);

/* The CPUs' own PMUs, at most max; returns how many. One without a list belongs to all online CPUs. */
size_t pmu__find(const char *root, struct pmu *pmus, size_t max);

struct pmu_event {
	uint32_t type;
	uint64_t config, config1, config2;
};

/*
 * Encodes "pmu/term=value,term=value/" or "pmu/event-name/" (of the PMU's events directory).
 * Returns 0, or a negative errno with a sentence in err.
 */
int pmu__encode(const char *root, const char *spec, struct pmu_event *event, char *err, size_t err_size);

/* The first line of root/path; false where there is none. */
bool pmu__read_line(const char *root, const char *path, char *line, size_t size);

#endif
