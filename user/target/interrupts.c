// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/interrupts.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

#define CPUS_MOST 65536 /* a line with a higher number is not one of a CPU */

struct cpu_ticks {
	uint64_t all, busy;	  /* ticks since boot; busy: in interrupts */
	uint64_t all_of, busy_of; /* between the last two reads */
};

struct interrupts {
	char *path;
	struct cpu_ticks *cpus; /* by number */
	size_t count;
};

struct interrupts *interrupts__new(const char *path)
{
	struct interrupts *interrupts = calloc(1, sizeof(*interrupts));

	if (!interrupts)
		return NULL;
	interrupts->path = strdup(path);
	if (interrupts->path)
		return interrupts;
	free(interrupts);
	return NULL;
}

void interrupts__free(struct interrupts *interrupts)
{
	if (!interrupts)
		return;
	free(interrupts->path);
	free(interrupts->cpus);
	free(interrupts);
}

/* Forgets the ticks between reads: a CPU that the file does not have is offline. */
static void forget(struct interrupts *interrupts)
{
	for (size_t i = 0; i < interrupts->count; i++)
		interrupts->cpus[i].all_of = interrupts->cpus[i].busy_of = 0;
}

/* A CPU that comes online again may count from other numbers: its ticks are known from its second read on. */
static void note(struct cpu_ticks *cpu, uint64_t all, uint64_t busy)
{
	bool follows = cpu->all && all >= cpu->all && busy >= cpu->busy;

	cpu->all_of = follows ? all - cpu->all : 0;
	cpu->busy_of = follows ? busy - cpu->busy : 0;
	cpu->all = all;
	cpu->busy = busy;
}

/* Reads a line of the file. Returns 0, also for a line of no single CPU, or -ENOMEM. */
static int read_line(struct interrupts *interrupts, const char *line)
{
	unsigned long long user, nice, system, idle, wait, hard, soft, steal = 0;
	unsigned int cpu;

	/* the first line is the sum of all CPUs */
	if (!isdigit((unsigned char)line[3]))
		return 0;
	/* guests' time, behind steal, is part of users' time */
	if (sscanf(line, "cpu%u %llu %llu %llu %llu %llu %llu %llu %llu", &cpu, &user, &nice, &system, &idle, &wait,
		   &hard, &soft, &steal) < 8 ||
	    cpu >= CPUS_MOST)
		return 0;
	if (grow(&interrupts->cpus, &interrupts->count, cpu + 1, sizeof(*interrupts->cpus)))
		return -ENOMEM;
	note(&interrupts->cpus[cpu], user + nice + system + idle + wait + hard + soft + steal, hard + soft);
	return 0;
}

int interrupts__read(struct interrupts *interrupts)
{
	FILE *file = fopen(interrupts->path, "re");
	char *line = NULL;
	size_t size = 0;
	int error = file ? 0 : -errno;

	forget(interrupts);
	while (file && !error && getline(&line, &size, file) > 0 && !strncmp(line, "cpu", 3))
		error = read_line(interrupts, line);
	free(line);
	if (file)
		fclose(file);
	return error;
}

double interrupts__share(const struct interrupts *interrupts, uint32_t cpu)
{
	const struct cpu_ticks *at = cpu < interrupts->count ? &interrupts->cpus[cpu] : NULL;

	return at && at->all_of ? (double)at->busy_of / (double)at->all_of : 0;
}
