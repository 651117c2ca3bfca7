/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "diagnose/advice.h"

#include <stdio.h>
#include <string.h>

/* "rank 3", "threads 0-3,7" of an ascending list; cut with an ellipsis where it is too long. Returns its length. */
static size_t format_list(const char *word, const int32_t *list, uint32_t count, char *buf, size_t size)
{
	size_t used = (size_t)snprintf(buf, size, "%s%s ", word, count > 1 ? "s" : "");

	for (uint32_t i = 0, next; i < count; i = next) {
		for (next = i + 1; next < count && list[next] == list[i] + (int32_t)(next - i); next++)
			;
		if (used + 32 > size)
			return used + (size_t)snprintf(buf + used, size - used, "...");
		used += (size_t)snprintf(buf + used, size - used, "%s%d", i ? "," : "", list[i]);
		if (next - i > 1)
			used += (size_t)snprintf(buf + used, size - used, "-%d", list[next - 1]);
	}
	return used;
}

void advice__who(const struct result_variance *variance, bool threads, char *buf, size_t size)
{
	int32_t list[64];
	size_t used = 0;

	/* Threads of several ranks would be a table; the record has it. */
	if (threads && variance->rank_count == 1 && variance->thread_count <= sizeof(list) / sizeof(*list)) {
		for (uint32_t i = 0; i < variance->thread_count; i++)
			list[i] = variance->threads[i].thread;
		used = format_list("thread", list, variance->thread_count, buf, size / 2);
		used += (size_t)snprintf(buf + used, size - used, " of ");
	}
	if (!variance->rank_count || variance->ranks[0] < 0)
		snprintf(buf + used, size - used, "%s", variance->rank_count > 1 ? "these processes" : "this process");
	else
		format_list("rank", variance->ranks, variance->rank_count, buf + used, size - used);
}

/* The factor with most impact among those that are not split further; NULL where nothing is major. */
static const struct result_factor *finest_factor(const struct result_variance *variance)
{
	const struct result_factor *best = NULL;

	for (uint32_t i = 0; i < variance->diagnosis.factor_count; i++) {
		const struct result_factor *factor = &variance->diagnosis.factors[i];

		/* Of a whole and its part that say the same, the part says more. */
		if (factor->major && strcmp(factor->name, "suspension") &&
		    (!best || factor->impact_seconds > best->impact_seconds ||
		     (factor->parent && !strcmp(factor->parent, best->name))))
			best = factor;
	}
	return best;
}

static const char *finest(const struct result_variance *variance)
{
	const struct result_factor *best = finest_factor(variance);

	return best ? best->name : NULL;
}

static const struct {
	const char *factor, *text;
} rules[] = {
    {"blocked_io", "asleep in disk or file system IO; look at the file system and at who else used it then"},
    {"blocked_other", "asleep where it used to run through; look for a lock, a pipe, a stopped process or a slow "
		      "server behind the call"},
    {"throttled", "throttled by the cgroup; raise its CPU quota or lower the number of threads"},
    {"steal", "the host took the virtual CPU away; move the virtual machine or ask for dedicated cores"},
    {"frequency",
     "ran on CPUs below their highest frequency; look at the frequency governor, at power and heat limits, "
     "and at who else computes on the same socket"},
    {"irq", "interrupts ran instead; move the interrupts of this node away from the CPUs of the ranks"},
    {"kernel", "more time in the kernel; look at page faults and system calls"},
    {"backend", "waited for memory or execution units; look at memory bandwidth, NUMA placement and neighbours"},
    {"frontend", "waited for instructions; look at code placement and instruction cache misses"},
    {"bad_speculation", "work thrown away after wrong predictions; the data of these ranks may differ"},
    {"retiring", "more was executed; the work of these ranks may differ"},
    {"memory", "waited for data; look at memory bandwidth, NUMA placement and neighbours on the same socket"},
    {"core", "waited for execution units; look at what shares their cores, and at the frequency"},
    {"l1", "waited for the L1 cache; look at what shares their cores"},
    {"l2", "waited for the L2 cache; look at what shares their cores"},
    {"l3", "waited for the L3 cache; look at who else uses the caches of the same socket"},
    {"dram", "waited for DRAM; look at who else uses its bandwidth, at NUMA placement, and at the memory's health"},
    {"store", "waited for stores; look at memory bandwidth and at what writes to the same cache lines"},
    {"l2_fills", "fetched more from the L2 cache; look at what shares their cores"},
    {"l3_fills", "fetched more from the L3 cache; look at what shares their cores"},
    {"dram_fills", "fetched more from DRAM; look at who else uses the caches of the same socket"},
    {"remote_fills", "fetched more from another socket; look at NUMA placement and bind them to their memory"},
    {"frontend_latency", "waited for instructions to come; look at instruction cache misses and code placement"},
    {"frontend_bandwidth", "instructions came too few at a time; look at what shares their cores"},
    {"mispredicts", "work thrown away after wrong predictions; the data of these ranks may differ"},
    {"clears", "the pipeline was emptied; look for memory that several threads write, and at denormal numbers"},
    {"page_faults", "handled page faults; look at memory pressure, huge pages and NUMA balancing"},
    {"minor_faults", "mapped more pages in; look at memory pressure, huge pages and NUMA balancing"},
    {"major_faults", "read pages from disk; look at memory pressure and swap"},
    {"reclaim", "freed memory for others; look at the memory limit of the cgroup and at who fills the memory"},
    {"system_calls", "were longer in system calls; look at what they call, and at security modules"},
    {"voluntary_switches", "slept and woke more often; look for locks and at the network"},
    {"involuntary_switches", "were switched out more often; bind ranks and daemons apart"},
    {"migrations", "moved between CPUs; bind the ranks"},
    {"hard_irq", "devices interrupted them; move the interrupts of this node away from the CPUs of the ranks"},
    {"soft_irq", "the kernel worked for network, timers or disks on their CPUs; move the interrupts away"},
    {"on_cpu", "on the CPU all the time but got less done; look at frequency, memory bandwidth and neighbours on "
	       "the same core or socket"},
};

/* Where to look first, when only the slow ones are there; "" otherwise. */
static void say_where(const struct result_diagnosis *diagnosis, char *buf, size_t size)
{
	const struct result_shared *first = diagnosis->shared;

	*buf = 0;
	if (!diagnosis->shared_count)
		return;
	snprintf(buf, size, "; begin with %s %s, where %s runs",
		 !strcmp(first->fact, "numa")	     ? "NUMA node"
		 : !strcmp(first->fact, "core_type") ? "cores of type"
		 : !strcmp(first->fact, "cpu")	     ? "CPU"
		 : !strcmp(first->fact, "cpu_model") ? "hosts with CPU"
						     : first->fact,
		 first->value, first->others ? "hardly anybody else of the job" : "nobody else of the job");
}

void advice__write(const struct result_variance *variance, bool waiting, bool transfer, char *buf, size_t size)
{
	const struct result_diagnosis *diagnosis = &variance->diagnosis;
	const char *factor = finest(variance);
	const char *ranks = variance->who;
	char where[256];

	say_where(diagnosis, where, sizeof(where));

	if (waiting && !transfer && variance->effect_of) {
		snprintf(buf, size, "%s waited for others: see variance %llu for the cause.", ranks,
			 (unsigned long long)variance->effect_of);
		return;
	}
	if (waiting && !transfer) {
		snprintf(buf, size, "%s waited for ranks that came late: compare the work of the ranks.", ranks);
		return;
	}
	if (waiting && !variance->confirmed) {
		snprintf(buf, size,
			 "%s waited at the same time; whether for the network or for each other cannot be told here.",
			 ranks);
		return;
	}
	if (waiting) {
		snprintf(buf, size,
			 "Transfers of %s took longer than before: look at the network and who else uses it.", ranks);
		return;
	}
	if (factor && (!strcmp(factor, "preempted") || !strcmp(factor, "wakeup_wait")) && diagnosis->interferer_count) {
		const struct result_interferer *top = &diagnosis->interferers[0];

		if (top->seconds < 0.6 * diagnosis->interfered) {
			snprintf(buf, size,
				 "%.15s (pid %u, %.1f s) and others ran %.1f s on the CPUs of %s: move or stop "
				 "them, or bind ranks and daemons apart.",
				 top->comm, top->pid, top->seconds, diagnosis->interfered, ranks);
			return;
		}
		snprintf(
		    buf, size,
		    "%.15s (pid %u) ran %.1f s on the CPU of %s: move or stop it, or bind ranks and daemons apart.",
		    top->comm, top->pid, top->seconds, ranks);
		return;
	}
	if (factor && (!strcmp(factor, "preempted") || !strcmp(factor, "wakeup_wait"))) {
		snprintf(buf, size, "Other tasks ran on the CPU of %s: bind ranks and daemons apart.", ranks);
		return;
	}
	if (factor && !strcmp(factor, "throttled") && diagnosis->limit) {
		snprintf(buf, size,
			 "%s: cgroup %s used up its CPU quota (%s); raise it or lower the number of threads that run "
			 "under it%s.",
			 ranks, diagnosis->limit_cgroup, diagnosis->limit, where);
		return;
	}
	for (size_t i = 0; factor && i < sizeof(rules) / sizeof(*rules); i++) {
		if (!strcmp(factor, rules[i].factor)) {
			snprintf(buf, size, "%s: %s%s.", ranks, rules[i].text, where);
			return;
		}
	}
	snprintf(buf, size, "No single factor explains it; look at the call-sites and exemplars of %s.", ranks);
}
