// SPDX-License-Identifier: GPL-2.0-or-later
#include "node/machine_cpus.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/grow.h"
#include "node/kernels.h"
#include "target/topology.h"

#define BUILD "kernels 1, " __VERSION__ /* the number rises with each change of the kernels */
#define MIB (1ULL << 20)

enum { SET_CPUS = 8192, CACHES = 8 };
static const uint64_t least_array = 4 * MIB, usual_array = 16 * MIB, most_array = 64 * MIB;

static int compare_cpus(const void *a, const void *b)
{
	const struct machine_cpu *left = a, *right = b;

	if (left->socket != right->socket)
		return left->socket < right->socket ? -1 : 1;
	return (left->cpu > right->cpu) - (left->cpu < right->cpu);
}

static bool read_word(const char *path, char *text, size_t size)
{
	FILE *file = fopen(path, "re");
	bool some = file && fgets(text, (int)size, file);

	if (file)
		fclose(file);
	if (some)
		text[strcspn(text, "\n")] = '\0';
	return some;
}

/* Returns the size of the CPU's cache of the highest level; 0 unknown. */
static uint64_t last_level(const char *sys, int32_t cpu)
{
	char path[512], text[64];
	unsigned long long size;
	uint64_t found = 0;
	int highest = 0;

	for (int i = 0; i < CACHES; i++) {
		snprintf(path, sizeof(path), "%s/devices/system/cpu/cpu%d/cache/index%d/level", sys, cpu, i);
		if (!read_word(path, text, sizeof(text)) || atoi(text) <= highest)
			continue;
		highest = atoi(text);
		snprintf(path, sizeof(path), "%s/devices/system/cpu/cpu%d/cache/index%d/size", sys, cpu, i);
		if (!read_word(path, text, sizeof(text)))
			continue;
		size = strtoull(text, NULL, 10);
		found = size < 1ULL << 30 ? size * (strchr(text, 'M') ? MIB : strchr(text, 'K') ? 1024 : 1) : 0;
	}
	return found;
}

static int add_cpu(struct machine_cpus *machine, const struct topology *topology, int32_t cpu)
{
	struct machine_cpu *own;
	struct vapro_place place;

	if (grow(&machine->cpus, &machine->capacity, machine->count + 1, sizeof(*machine->cpus)))
		return -ENOMEM;
	topology__cpu(topology, cpu, &place);
	own = &machine->cpus[machine->count++];
	*own = (struct machine_cpu){.cpu = cpu, .socket = place.socket, .numa = place.numa};
	snprintf(own->core_type, sizeof(own->core_type), "%s", place.core_type ? place.core_type : "");
	if (place.cpu_model && !*machine->model)
		snprintf(machine->model, sizeof(machine->model), "%s", place.cpu_model);
	return 0;
}

static int add_cpus(struct machine_cpus *machine, const struct topology *topology, char *err, size_t err_size)
{
	size_t size = CPU_ALLOC_SIZE(SET_CPUS);
	cpu_set_t *set = CPU_ALLOC(SET_CPUS);
	int error = set ? 0 : -ENOMEM;

	if (!error && sched_getaffinity(0, size, set))
		error = -errno;
	for (int32_t cpu = 0; !error && cpu < SET_CPUS; cpu++) {
		if (!CPU_ISSET_S(cpu, size, set))
			continue;
		error = machine->count < MACHINE_CPUS_MOST ? add_cpu(machine, topology, cpu) : -E2BIG;
	}
	if (error == -E2BIG)
		snprintf(err, err_size, "this process may use more than %d CPUs: choose some with taskset",
			 MACHINE_CPUS_MOST);
	else if (error)
		snprintf(err, err_size, "the CPUs that it may use cannot be read: %s", strerror(-error));
	CPU_FREE(set);
	return error;
}

/*
 * The instances together pass twice the last-level cache. A cache that a hypervisor shares out is larger than what
 * there is of it: the bounds hold then.
 */
static int set_arrays(struct machine_cpus *machine, uint64_t free_bytes, char *err, size_t err_size)
{
	uint64_t share = free_bytes / 4 / machine->count, bytes = 2 * machine->cache_bytes / machine->count;

	bytes = bytes < usual_array ? usual_array : bytes > most_array ? most_array : bytes;
	while (free_bytes && bytes > least_array && kernels__needs(bytes) > share)
		bytes /= 2;
	machine->array_bytes = bytes / 4096 * 4096;
	if (!free_bytes || kernels__needs(machine->array_bytes) <= share)
		return 0;
	snprintf(err, err_size, "%llu MiB of memory are free, and a quarter of it is too little for %zu CPUs",
		 (unsigned long long)(free_bytes / MIB), machine->count);
	return -ENOMEM;
}

int machine_cpus__read(struct machine_cpus *machine, const char *sys, const char *cpuinfo, uint64_t free_bytes,
		       char *err, size_t err_size)
{
	struct topology *topology = topology__new(sys, cpuinfo);
	int error = -ENOMEM;

	*machine = (struct machine_cpus){.count = 0};
	snprintf(err, err_size, "out of memory");
	if (!topology)
		return error;
	if (gethostname(machine->host, sizeof(machine->host) - 1))
		*machine->host = '\0';
	snprintf(machine->build, sizeof(machine->build), "%s", BUILD);
	error = add_cpus(machine, topology, err, err_size);
	topology__free(topology);
	if (error)
		return error;
	qsort(machine->cpus, machine->count, sizeof(*machine->cpus), compare_cpus);
	machine->cache_bytes = last_level(sys, machine->cpus[0].cpu);
	return set_arrays(machine, free_bytes, err, err_size);
}

int machine_cpus__copy(struct machine_cpus *to, const struct machine_cpus *from)
{
	*to = *from;
	to->cpus = calloc(from->count, sizeof(*to->cpus));
	to->capacity = to->cpus ? from->count : 0;
	to->count = to->capacity;
	if (!to->cpus)
		return -ENOMEM;
	memcpy(to->cpus, from->cpus, from->count * sizeof(*to->cpus));
	return 0;
}

void machine_cpus__clear(struct machine_cpus *machine)
{
	free(machine->cpus);
	*machine = (struct machine_cpus){.count = 0};
}

uint64_t machine_cpus__free_bytes(void)
{
	FILE *file = fopen("/proc/meminfo", "re");
	unsigned long long kib = 0;
	char line[128];

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "MemAvailable: %llu", &kib) == 1)
			break;
	}
	if (file)
		fclose(file);
	return kib * 1024;
}

bool machine_cpus__alike(const struct machine_cpus *a, const struct machine_cpus *b, char *why, size_t why_size)
{
	bool placed = a->count == b->count;

	for (size_t i = 0; placed && i < a->count; i++)
		placed = a->cpus[i].cpu == b->cpus[i].cpu && a->cpus[i].socket == b->cpus[i].socket &&
			 !strcmp(a->cpus[i].core_type, b->cpus[i].core_type);
	if (strcmp(a->model, b->model) != 0)
		snprintf(why, why_size, "it is of the CPU %s, not %s", a->model, b->model);
	else if (a->count != b->count)
		snprintf(why, why_size, "it is of %zu CPUs, not %zu", a->count, b->count);
	else if (!placed)
		snprintf(why, why_size, "it is of other CPUs of the node");
	else if (a->cache_bytes != b->cache_bytes || a->array_bytes != b->array_bytes)
		snprintf(why, why_size, "its arrays were of %llu KiB, not %llu: cache or free memory differ",
			 (unsigned long long)a->array_bytes / 1024, (unsigned long long)b->array_bytes / 1024);
	else if (strcmp(a->build, b->build) != 0)
		snprintf(why, why_size, "its kernels were built by %s, not %s", a->build, b->build);
	else
		return true;
	return false;
}

static int compare_numbers(const void *a, const void *b)
{
	int32_t left = *(const int32_t *)a, right = *(const int32_t *)b;

	return (left > right) - (left < right);
}

char *machine_cpus__list(const struct machine_cpus *machine, const uint32_t *instances, size_t count, char *text,
			 size_t size)
{
	int32_t *numbers = calloc(count + 1, sizeof(*numbers));
	size_t used = 0;

	*text = '\0';
	for (size_t i = 0; numbers && i < count; i++)
		numbers[i] = machine->cpus[instances[i]].cpu;
	if (numbers)
		qsort(numbers, count, sizeof(*numbers), compare_numbers);
	for (size_t i = 0, last; numbers && i < count && used + 32 < size; i = last + 1) {
		for (last = i; last + 1 < count && numbers[last + 1] == numbers[last] + 1;)
			last++;
		used += (size_t)snprintf(text + used, size - used, last > i ? "%s%d-%d" : "%s%d", used ? "," : "",
					 numbers[i], numbers[last]);
	}
	free(numbers);
	return text;
}
