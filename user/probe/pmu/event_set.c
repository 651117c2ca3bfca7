// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/pmu/event_set.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"

struct event_set {
	int *fds; /* by CPU, then event */
	size_t count;
	unsigned cpus;
};

/* The result of reading a group. */
struct group_read {
	uint64_t count, enabled, running, value[KERNEL_EVENTS];
};

static bool watchdog_counts(void)
{
	char line[16];

	return pmu__read_line("", "/proc/sys/kernel/nmi_watchdog", line, sizeof(line)) && !strcmp(line, "1");
}

static void explain(int error, const char *name, bool alone, char *err, size_t err_size)
{
	switch (error) {
	case ENOENT:
	case ENODEV:
	case EOPNOTSUPP:
		snprintf(err, err_size, "%s: this machine's PMU has no such event", name);
		break;
	case EACCES:
	case EPERM:
		snprintf(err, err_size, "%s: the kernel does not allow it (CAP_PERFMON, lockdown or a seccomp filter)",
			 name);
		break;
	case EINVAL:
		if (alone)
			snprintf(err, err_size, "%s: the PMU does not take this event", name);
		else
			snprintf(err, err_size, "%s: the PMU has no counter left for it beside the others of its group",
				 name);
		break;
	default:
		snprintf(err, err_size, "%s: %s", name, strerror(error));
	}
}

static int open_one(const struct counted *counted, const struct pmu *pmu, pid_t pid, int cpu, int leader)
{
	struct perf_event_attr attr = {.type = counted->event.type,
				       .size = sizeof(attr),
				       .config = counted->event.config,
				       .config1 = counted->event.config1,
				       .config2 = counted->event.config2,
				       .read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED |
						      PERF_FORMAT_TOTAL_TIME_RUNNING};
	int fd;

	if (counted->by_core && pmu)
		attr.config |= (uint64_t)pmu->type << 32;
	if (!counted->software)
		attr.exclude_kernel = attr.exclude_hv = 1;
	if (leader < 0)
		attr.pinned = attr.disabled = 1;
	fd = (int)syscall(SYS_perf_event_open, &attr, pid, cpu, leader, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Opens a group, enables it and reads it once. On failure nothing stays open. */
static int open_group(const struct counted *events, size_t count, const struct pmu *pmu, pid_t pid, int cpu, int *fds,
		      char *err, size_t err_size)
{
	struct group_read now;
	ssize_t got = 0;
	size_t opened;
	int status = 0;

	for (opened = 0; opened < count && !status; opened++) {
		fds[opened] = open_one(&events[opened], pmu, pid, cpu, opened ? fds[0] : -1);
		if (fds[opened] >= 0)
			continue;
		status = fds[opened];
		explain(-status, events[opened].name, !opened, err, err_size);
		break;
	}
	if (!status && ioctl(fds[0], PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP))
		status = -errno;
	if (!status) {
		/* a pinned group that finds no room reads nothing at all */
		got = read(fds[0], &now, sizeof(now));
		if (got <= 0) {
			status = -EBUSY;
			snprintf(err, err_size, "%zu events do not fit together beside what others count%s", count,
				 watchdog_counts() ? "; the NMI watchdog holds a counter of each CPU: "
						     "kernel.nmi_watchdog=0 frees it"
						   : "");
		}
	}
	while (status && opened--)
		close(fds[opened]);
	return status;
}

static void want_files(size_t count)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur >= count + 1024)
		return;
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
}

static const struct pmu *pmu_of(const struct pmu *pmus, size_t count, unsigned cpu)
{
	for (size_t i = 0; i < count; i++)
		if (pmu__has_cpu(&pmus[i].cpus, cpu))
			return &pmus[i];
	return NULL;
}

int event_set__open(const struct counted *events, size_t count, const struct cpu_list *cpus, const struct pmu *pmus,
		    size_t pmu_count, struct event_set **out, char *err, size_t err_size)
{
	struct event_set *set = calloc(1, sizeof(*set));
	char why[256];
	int status = 0;

	for (unsigned cpu = 0; set && cpu < KERNEL_CPUS; cpu++)
		if (pmu__has_cpu(cpus, cpu))
			set->cpus = cpu + 1;
	if (set)
		set->fds = malloc(sizeof(*set->fds) * (set->cpus * count + 1));
	if (!set || !set->fds) {
		event_set__close(set);
		snprintf(err, err_size, "out of memory");
		return -ENOMEM;
	}
	set->count = count;
	for (size_t i = 0; i < set->cpus * count; i++)
		set->fds[i] = -1;
	want_files(cpus->count * count);
	for (unsigned cpu = 0; cpu < set->cpus && !status; cpu++) {
		int *fds = set->fds + cpu * count;

		if (!pmu__has_cpu(cpus, cpu))
			continue;
		status = open_group(events, count, pmu_of(pmus, pmu_count, cpu), -1, (int)cpu, fds, why, sizeof(why));
		if (!status)
			continue;
		for (size_t i = 0; i < count; i++)
			fds[i] = -1;
		snprintf(err, err_size, "%s (CPU %u)", why, cpu);
	}
	if (status) {
		event_set__close(set);
		return status;
	}
	*out = set;
	return 0;
}

void event_set__close(struct event_set *set)
{
	if (!set)
		return;
	/* siblings before their leaders */
	for (size_t i = set->fds ? set->cpus * set->count : 0; i-- > 0;)
		if (set->fds[i] >= 0)
			close(set->fds[i]);
	free(set->fds);
	free(set);
}

int event_set__fd(const struct event_set *set, unsigned cpu, size_t event)
{
	return cpu < set->cpus && event < set->count ? set->fds[cpu * set->count + event] : -1;
}

#define TIMED_READS 64

/* The least time to read an event, ns; 0: it cannot be read. */
static double least_read_ns(const struct counted *counted)
{
	struct group_read now;
	double least = 0;
	char err[256];
	int fd;

	if (open_group(counted, 1, NULL, 0, -1, &fd, err, sizeof(err)))
		return 0;
	for (int i = 0; i < TIMED_READS; i++) {
		uint64_t begin = mono_now();
		double took;

		if (read(fd, &now, sizeof(now)) <= 0)
			break;
		took = (double)(mono_now() - begin);
		if (!i || took < least)
			least = took;
	}
	close(fd);
	return least;
}

double event_set__read_ns(const struct counted *counted, double *bare_ns)
{
	const struct counted nothing = {.event = {.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY},
					.software = true};
	double all = least_read_ns(counted);

	*bare_ns = least_read_ns(&nothing);
	return *bare_ns > 0 && all > *bare_ns ? all - *bare_ns : 0;
}

/* Two instructions a round, whatever the compiler. */
static void loop(uint64_t rounds)
{
#if defined(__x86_64__)
	__asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(rounds) : : "cc");
#elif defined(__aarch64__)
	__asm__ volatile("1: subs %0, %0, #1\n\tb.ne 1b" : "+r"(rounds) : : "cc");
#else
#error "write the loop for this CPU"
#endif
}

int event_set__measure(const struct counted *events, size_t count, uint64_t loops, uint64_t *counts, char *err,
		       size_t err_size)
{
	struct group_read before, after;
	int fds[KERNEL_EVENTS], status;
	ssize_t first, second;

	status = open_group(events, count, NULL, 0, -1, fds, err, err_size);
	if (status)
		return status;
	first = read(fds[0], &before, sizeof(before));
	loop(loops);
	second = read(fds[0], &after, sizeof(after));
	if (first <= 0 || second <= 0 || after.count != count) {
		snprintf(err, err_size, "%s: its counter was lost", events[0].name);
		status = -EBUSY;
	}
	for (size_t i = 0; i < count; i++)
		counts[i] = status ? 0 : after.value[i] - before.value[i];
	for (size_t i = count; i-- > 0;)
		close(fds[i]);
	return status;
}
