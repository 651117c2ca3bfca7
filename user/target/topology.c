// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/topology.h"

#include "base/clock.h"
#include "target/process.h"
#include "target/quota.h"

#include <ctype.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CPUS 8192
#define NODES 1024
#define MODELS 8		/* CPU models in one node */
#define ROOTS_NS 60000000000ULL /* the mounts of cgroups are read again after this time */

struct cpu {
	int32_t socket, numa;
	char core_type[24];
	const char *model; /* in the topology; NULL unknown */
};

struct topology {
	struct cpu *cpus;
	int32_t count;
	char models[MODELS][128]; /* "" from the first unused one on */
	char cgroup[512];
	char allowed[4096]; /* CPUs of the latest thread */
	struct quota_roots roots;
	uint64_t roots_ns; /* when they were read; 0 = not yet */
	struct quota quota;
	pid_t limited; /* process of the quota; 0 = none */
	bool has_quota;
};

static bool read_line(const char *path, char *buf, size_t size)
{
	FILE *file = fopen(path, "re");
	bool some = file && fgets(buf, (int)size, file);

	if (file)
		fclose(file);
	if (some)
		buf[strcspn(buf, "\n")] = '\0';
	return some && *buf;
}

static int32_t read_number(const char *path)
{
	char text[32];

	return read_line(path, text, sizeof(text)) && isdigit((unsigned char)*text) ? atoi(text) : -1;
}

/* Calls call for each known CPU of a list such as 0,2-3. */
static void each_of(struct topology *topology, const char *list, void (*call)(struct cpu *cpu, const void *arg),
		    const void *arg)
{
	while (isdigit((unsigned char)*list)) {
		char *end;
		long first = strtol(list, &end, 10), last = first;

		if (*end == '-' && isdigit((unsigned char)end[1]))
			last = strtol(end + 1, &end, 10);
		for (; first <= last && first < topology->count; first++)
			call(&topology->cpus[first], arg);
		list = *end == ',' ? end + 1 : end;
	}
}

static void set_numa(struct cpu *cpu, const void *arg)
{
	cpu->numa = *(const int32_t *)arg;
}

static void set_type(struct cpu *cpu, const void *arg)
{
	snprintf(cpu->core_type, sizeof(cpu->core_type), "%s", (const char *)arg);
}

/* Cores differ where the kernel gives them PMUs of their own (x86) or shows their capacity (arm64). */
static void read_types(struct topology *topology, const char *sys)
{
	static const char *const pmus[] = {"cpu_core", "cpu_atom"};
	int32_t least = INT32_MAX, most = -1;
	char path[512], list[4096];

	for (size_t i = 0; i < sizeof(pmus) / sizeof(*pmus); i++) {
		snprintf(path, sizeof(path), "%s/bus/event_source/devices/%s/cpus", sys, pmus[i]);
		if (read_line(path, list, sizeof(list)))
			each_of(topology, list, set_type, pmus[i]);
	}
	for (int pass = 0; pass < 2; pass++) {
		for (int32_t i = 0; i < topology->count; i++) {
			int32_t capacity;

			snprintf(path, sizeof(path), "%s/devices/system/cpu/cpu%d/cpu_capacity", sys, i);
			capacity = read_number(path);
			if (capacity < 0)
				continue;
			least = capacity < least ? capacity : least;
			most = capacity > most ? capacity : most;
			if (pass && least < most)
				snprintf(topology->cpus[i].core_type, sizeof(topology->cpus[i].core_type),
					 "capacity-%d", capacity);
		}
	}
}

static const char *add_model(struct topology *topology, const char *model)
{
	size_t size = sizeof(*topology->models);

	for (size_t i = 0; i < MODELS; i++) {
		if (!*topology->models[i])
			snprintf(topology->models[i], size, "%s", model);
		if (!strncmp(topology->models[i], model, size - 1))
			return topology->models[i];
	}
	return NULL;
}

/* Finds the value in a line `key : value` of cpuinfo, and cuts its end; NULL where the key is another one. */
static char *value_of(char *line, const char *key)
{
	size_t length = strlen(key);
	char *value, *end;

	if (strncmp(line, key, length) || !strchr(" \t:", line[length]))
		return NULL;
	value = strchr(line, ':');
	if (!value)
		return NULL;
	value += 1 + strspn(value + 1, " \t");
	for (end = value + strlen(value); end > value && isspace((unsigned char)end[-1]); end--)
		end[-1] = '\0';
	return value;
}

/* x86 has a name for each CPU, arm64 the numbers of its implementer and its part. */
static void read_models(struct topology *topology, const char *path)
{
	FILE *file = fopen(path, "re");
	char *line = NULL, *value, implementer[16] = "", model[64];
	struct cpu *cpu = NULL;
	size_t size = 0;

	while (file && getline(&line, &size, file) > 0) {
		if ((value = value_of(line, "processor"))) {
			int number = isdigit((unsigned char)*value) ? atoi(value) : -1;

			cpu = number >= 0 && number < topology->count ? &topology->cpus[number] : NULL;
		} else if (cpu && (value = value_of(line, "model name")) && *value) {
			cpu->model = add_model(topology, value);
		} else if (cpu && (value = value_of(line, "CPU implementer"))) {
			snprintf(implementer, sizeof(implementer), "%s", value);
		} else if (cpu && (value = value_of(line, "CPU part")) && !cpu->model) {
			snprintf(model, sizeof(model), "arm %s %.32s", implementer, value);
			cpu->model = add_model(topology, model);
		}
	}
	free(line);
	if (file)
		fclose(file);
}

static int32_t count_cpus(const char *sys)
{
	char path[512], list[4096], *last = list;
	int32_t count;

	snprintf(path, sizeof(path), "%s/devices/system/cpu/possible", sys);
	if (!read_line(path, list, sizeof(list)))
		return 0;
	for (char *at = list; *at; at++) {
		if (*at == '-' || *at == ',')
			last = at + 1;
	}
	count = atoi(last) + 1;
	return count > 0 && count <= CPUS ? count : 0;
}

struct topology *topology__new(const char *sys, const char *cpuinfo)
{
	struct topology *topology = calloc(1, sizeof(*topology));
	char path[512], list[4096];

	if (!topology)
		return NULL;
	topology->count = count_cpus(sys);
	topology->cpus = calloc((size_t)topology->count + 1, sizeof(*topology->cpus));
	if (!topology->cpus) {
		free(topology);
		return NULL;
	}
	for (int32_t i = 0; i < topology->count; i++) {
		snprintf(path, sizeof(path), "%s/devices/system/cpu/cpu%d/topology/physical_package_id", sys, i);
		topology->cpus[i].socket = read_number(path);
		topology->cpus[i].numa = -1;
	}
	for (int32_t node = 0; node < NODES; node++) {
		snprintf(path, sizeof(path), "%s/devices/system/node/node%d/cpulist", sys, node);
		if (read_line(path, list, sizeof(list)))
			each_of(topology, list, set_numa, &node);
	}
	read_types(topology, sys);
	read_models(topology, cpuinfo);
	return topology;
}

void topology__free(struct topology *topology)
{
	if (!topology)
		return;
	free(topology->cpus);
	free(topology);
}

void topology__cpu(const struct topology *topology, int32_t cpu, struct vapro_place *place)
{
	*place = (struct vapro_place){.cpu = -1, .socket = -1, .numa = -1};
	if (cpu < 0 || cpu >= topology->count)
		return;
	place->cpu = cpu;
	place->socket = topology->cpus[cpu].socket;
	place->numa = topology->cpus[cpu].numa;
	if (*topology->cpus[cpu].core_type)
		place->core_type = topology->cpus[cpu].core_type;
	place->cpu_model = topology->cpus[cpu].model;
}

/* Reads field 39 of stat, the last CPU. The name in field 2 may hold anything. */
static int32_t last_cpu(pid_t pid, pid_t tid)
{
	char path[64], text[2048], *at;
	FILE *file;
	size_t size;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
	file = fopen(path, "re");
	if (!file)
		return -1;
	size = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[size] = '\0';
	at = strrchr(text, ')');
	for (int field = 2; at && field < 39; field++) {
		at = strchr(at, ' ');
		at += at != NULL;
	}
	return at && isdigit((unsigned char)*at) ? atoi(at) : -1;
}

/* Reads version 2's path, else that of version 1's CPU controller. */
static const char *read_cgroup(struct topology *topology, pid_t pid)
{
	char path[64], line[sizeof(topology->cgroup)];
	FILE *file;

	topology->cgroup[0] = '\0';
	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
		bool unified = !strncmp(line, "0::", 3);

		if (!group || (!unified && !strstr(controllers, ":cpu,") && !strstr(controllers, ":cpu:") &&
			       !strstr(controllers, ",cpu:")))
			continue;
		group[1 + strcspn(group + 1, "\n")] = '\0';
		/* With both versions mounted the second may hold nothing but its root. */
		if (!topology->cgroup[0] || strcmp(group + 1, "/"))
			snprintf(topology->cgroup, sizeof(topology->cgroup), "%s", group + 1);
	}
	if (file)
		fclose(file);
	return topology->cgroup[0] ? topology->cgroup : NULL;
}

static void read_roots(struct topology *topology)
{
	uint64_t now_ns = mono_now();

	if (topology->roots_ns && now_ns < topology->roots_ns + ROOTS_NS)
		return;
	quota__read_roots("/proc/self/mounts", &topology->roots);
	topology->roots_ns = now_ns;
}

enum vapro_stopped_by topology__stopped_by(struct topology *topology, pid_t pid)
{
	char state = process__thread_state(pid), path[64];

	if (state == 't' || (state == 'T' && process__tracer(pid)))
		return VAPRO_STOPPED_TRACER;
	if (state == 'T')
		return VAPRO_STOPPED_SIGNAL;
	read_roots(topology);
	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	return quota__frozen(&topology->roots, path) ? VAPRO_STOPPED_FREEZER : VAPRO_STOPPED_UNKNOWN;
}

/* Threads of a process come one after the other, most often in one cgroup. */
static void read_limit(struct topology *topology, pid_t pid, pid_t tid, struct vapro_place *place)
{
	char path[64];

	read_roots(topology);
	if (pid == tid || pid != topology->limited) {
		snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
		topology->has_quota = quota__find(&topology->roots, path, &topology->quota);
		topology->limited = pid;
	}
	place->limit = topology->has_quota ? topology->quota.text : NULL;
	place->limit_cgroup = topology->has_quota ? topology->quota.cgroup : NULL;
}

/* Writes a set of CPUs as a list such as 0-3,7; NULL where it does not fit. */
static const char *write_list(const cpu_set_t *set, size_t size, char *buf, size_t buf_size)
{
	size_t used = 0;

	buf[0] = '\0';
	for (int first = 0; first < CPUS; first++) {
		int last = first;

		if (!CPU_ISSET_S(first, size, set))
			continue;
		while (last + 1 < CPUS && CPU_ISSET_S(last + 1, size, set))
			last++;
		used += (size_t)snprintf(buf + used, buf_size - used, last > first ? "%s%d-%d" : "%s%d",
					 used ? "," : "", first, last);
		if (used >= buf_size)
			return NULL;
		first = last;
	}
	return used ? buf : NULL;
}

/* Reads the CPUs that a thread may use: number and list; 0 where unknown. */
static int read_allowed(struct topology *topology, pid_t tid, const char **list)
{
	size_t size = CPU_ALLOC_SIZE(CPUS);
	cpu_set_t *set = CPU_ALLOC(CPUS);
	int count = 0;

	*list = NULL;
	if (set && !sched_getaffinity(tid, size, set)) {
		count = CPU_COUNT_S(size, set);
		*list = write_list(set, size, topology->allowed, sizeof(topology->allowed));
	}
	CPU_FREE(set);
	return count;
}

bool topology__place(struct topology *topology, pid_t pid, pid_t tid, struct vapro_place *place)
{
	int32_t cpu = last_cpu(pid, tid);

	topology__cpu(topology, cpu, place);
	if (read_allowed(topology, tid, &place->cpus) != 1)
		place->cpu = -1;
	place->cgroup = read_cgroup(topology, pid);
	read_limit(topology, pid, tid, place);
	return cpu >= 0;
}
