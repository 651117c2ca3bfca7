// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/pmu/counters_private.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TRY_LOOPS 100000

/* Events that the kernel knows itself, on any CPU. */
static const struct {
	const char *name;
	uint32_t type;
	uint64_t config;
} common[] = {
    {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    {"branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
    {"branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
    {"cache-references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES},
    {"cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
    {"ref-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES},
    {"cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK},
    {"task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
    {"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
};

/* Rate of the time-stamp counter, as the kernel shows it in an event's mapped page; 0 where it does not. */
static double find_tsc_hz(void)
{
	struct perf_event_attr attr = {
	    .type = PERF_TYPE_SOFTWARE, .size = sizeof(attr), .config = PERF_COUNT_SW_TASK_CLOCK};
	long page = sysconf(_SC_PAGESIZE);
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	struct perf_event_mmap_page *mapped;
	double hz = 0;

	if (fd < 0)
		return 0;
	mapped = mmap(NULL, (size_t)page, PROT_READ, MAP_SHARED, fd, 0);
	if (mapped != MAP_FAILED) {
		if (mapped->cap_user_time && mapped->time_mult)
			hz = 1e9 * (double)(1ULL << mapped->time_shift) / mapped->time_mult;
		munmap(mapped, (size_t)page);
	}
	close(fd);
	return hz;
}

static bool smt_active(void)
{
	char line[8];

	return pmu__read_line("", "/sys/devices/system/cpu/smt/active", line, sizeof(line)) && line[0] == '1';
}

int counters__find_table(struct counters *counters, char *err, size_t err_size)
{
	char text[64];

	if (!pmu__read_cpu_list("/sys/devices/system/cpu/online", &counters->online)) {
		snprintf(err, err_size, "/sys/devices/system/cpu/online cannot be read");
		return -ENOENT;
	}
	if (counters->config->counters == VAPRO_COUNTERS_TEST) {
		counters->provider = "clock";
		counters->cpus = counters->online;
		snprintf(counters->note, sizeof(counters->note),
			 "a clock in place of the counter, to test with: it shows no work");
		counters->table = &event_cpu_clocks;
		counters->width = counters->table->width;
		return 0;
	}
	counters->provider = "hardware";
	counters->pmu_count = pmu__find("", counters->pmus, COUNTER_PMUS);
	if (!counters->pmu_count) {
		snprintf(err, err_size,
			 "no PMU here: the kernel knows none for this CPU, or the hypervisor does not pass it on");
		return -ENODEV;
	}
	memset(&counters->cpus, 0, sizeof(counters->cpus));
	for (unsigned cpu = 0; cpu < KERNEL_CPUS; cpu++)
		for (size_t i = 0; i < counters->pmu_count; i++)
			if (pmu__has_cpu(&counters->online, cpu) && pmu__has_cpu(&counters->pmus[i].cpus, cpu) &&
			    !pmu__has_cpu(&counters->cpus, cpu)) {
				counters->cpus.bits[cpu / 64] |= 1ULL << (cpu % 64);
				counters->cpus.count++;
			}
	events__read_cpu("/proc/cpuinfo", &counters->id);
	events__format_cpu(&counters->id, text, sizeof(text));
	counters->table = counters->pmu_count == 1 ? events__match(&counters->id) : NULL;
	if (counters->pmu_count > 1)
		snprintf(counters->note, sizeof(counters->note),
			 "this machine has several kinds of cores: nothing but instructions is counted, and "
			 "speeds of different kinds are compared");
	else if (!counters->table)
		snprintf(counters->note, sizeof(counters->note),
			 "no table of events for this CPU (%s): nothing but instructions is counted", text);
	if (counters->table) {
		counters->width = counters->pmus[0].slots ? counters->pmus[0].slots : counters->table->width;
		counters->smt = smt_active();
		counters->tsc_hz = find_tsc_hz();
	}
	return 0;
}

static int by_spec(const char *name, const char *spec, struct counted *counted, char *err, size_t err_size)
{
	char why[200];
	int status;

	memset(counted, 0, sizeof(*counted));
	snprintf(counted->name, sizeof(counted->name), "%s", name);
	status = pmu__encode("", spec, &counted->event, why, sizeof(why));
	if (status)
		snprintf(err, err_size, "event %s: %s", name, why);
	counted->software = counted->event.type == PERF_TYPE_SOFTWARE || !strncmp(spec, "msr/", 4);
	return status;
}

static const char *site_spec(const struct counters *counters, const char *name)
{
	for (uint32_t i = 0; i < counters->config->event_count; i++)
		if (!strcmp(counters->config->events[i].name, name))
			return counters->config->events[i].spec;
	return NULL;
}

int counters__choose_row(const struct counters *counters, const struct event *row, struct counted *counted, char *err,
			 size_t err_size)
{
	const char *spec = site_spec(counters, row->name);
	int status = 0;

	if (spec) {
		status = by_spec(row->name, spec, counted, err, err_size);
	} else {
		memset(counted, 0, sizeof(*counted));
		snprintf(counted->name, sizeof(counted->name), "%s", row->name);
		counted->software = counters->config->counters == VAPRO_COUNTERS_TEST;
		counted->event.type = counted->software ? PERF_TYPE_SOFTWARE : counters->pmus[0].type;
		counted->event.config = event__config(row);
	}
	counted->row = row;
	return status;
}

static int by_common_name(const struct counters *counters, const char *name, struct counted *counted, char *err,
			  size_t err_size)
{
	bool clocks = counters->config->counters == VAPRO_COUNTERS_TEST;

	memset(counted, 0, sizeof(*counted));
	snprintf(counted->name, sizeof(counted->name), "%s", name);
	if (clocks && !strcmp(name, "instructions"))
		name = "cpu-clock";
	for (size_t i = 0; i < sizeof(common) / sizeof(common[0]); i++) {
		if (strcmp(common[i].name, name) || (clocks && common[i].type == PERF_TYPE_HARDWARE))
			continue;
		counted->event = (struct pmu_event){.type = common[i].type, .config = common[i].config};
		counted->software = common[i].type == PERF_TYPE_SOFTWARE;
		counted->by_core = !counted->software && counters->pmu_count > 1 && !counters->id.midr;
		return 0;
	}
	snprintf(err, err_size, "unknown event '%s'; `event %s=pmu/terms/` in the configuration says what it is", name,
		 name);
	return -ENOENT;
}

int counters__choose_named(const struct counters *counters, const char *name, struct counted *counted, char *err,
			   size_t err_size)
{
	const char *spec = site_spec(counters, name);
	const struct event *row = counters->table ? events__find(counters->table, name) : NULL;
	int status;

	if (spec)
		return by_spec(name, spec, counted, err, err_size);
	if (!row)
		return by_common_name(counters, name, counted, err, err_size);
	status = counters__choose_row(counters, row, counted, err, err_size);
	snprintf(counted->name, sizeof(counted->name), "%s", name);
	counted->row = NULL; /* not an event of the group */
	return status;
}

int counters__choose_instructions(const struct counters *counters, struct counted *counted, char *err, size_t err_size)
{
	const char *spec = site_spec(counters, "instructions");
	int status;

	if (spec)
		return by_spec("instructions", spec, counted, err, err_size);
	if (!counters->table)
		return by_common_name(counters, "instructions", counted, err, err_size);
	status = counters__choose_row(counters, &counters->table->instructions, counted, err, err_size);
	snprintf(counted->name, sizeof(counted->name), "instructions");
	return status;
}

int counters__try(const struct counted *counted, char *err, size_t err_size)
{
	bool busy = counted->row ? counted->row->flags & EVENT_BUSY : !strcmp(counted->name, "instructions");
	uint64_t count;
	int status;

	if (counted->by_core)
		return 0; /* this thread may be on any kind of core; opening on all CPUs will show */
	status = event_set__measure(counted, 1, TRY_LOOPS, &count, err, err_size);
	if (status || !busy || count)
		return status;
	snprintf(err, err_size, "%s: it opens but counts nothing, as under some hypervisors", counted->name);
	return -EIO;
}
