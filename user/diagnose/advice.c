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
static const char *finest(const struct result_variance *variance)
{
	const struct result_factor *best = NULL;

	for (uint32_t i = 0; i < variance->diagnosis.factor_count; i++) {
		const struct result_factor *factor = &variance->diagnosis.factors[i];

		if (factor->major && strcmp(factor->name, "suspension") &&
		    (!best || factor->impact_seconds > best->impact_seconds))
			best = factor;
	}
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
    {"irq", "interrupts ran instead; move the interrupts of this node away from the CPUs of the ranks"},
    {"kernel", "more time in the kernel; look at page faults and system calls"},
    {"backend", "waited for memory or execution units; look at memory bandwidth, NUMA placement and neighbours"},
    {"frontend", "waited for instructions; look at code placement and instruction cache misses"},
    {"bad_speculation", "work thrown away after wrong predictions; the data of these ranks may differ"},
    {"retiring", "more was executed; the work of these ranks may differ"},
    {"on_cpu", "on the CPU all the time but got less done; look at frequency, memory bandwidth and neighbours on "
	       "the same core or socket"},
};

void advice__write(const struct result_variance *variance, bool waiting, bool transfer, char *buf, size_t size)
{
	const struct result_diagnosis *diagnosis = &variance->diagnosis;
	const char *factor = finest(variance);
	const char *ranks = variance->who;

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
		double seconds = 0;

		for (uint32_t i = 0; i < diagnosis->interferer_count; i++)
			seconds += diagnosis->interferers[i].seconds;
		if (top->seconds < 0.6 * seconds) {
			snprintf(buf, size,
				 "%.15s (pid %u, %.1f s) and others ran %.1f s on the CPUs of %s: move or stop "
				 "them, or bind ranks and daemons apart.",
				 top->comm, top->pid, top->seconds, seconds, ranks);
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
	for (size_t i = 0; factor && i < sizeof(rules) / sizeof(*rules); i++) {
		if (!strcmp(factor, rules[i].factor)) {
			snprintf(buf, size, "%s: %s.", ranks, rules[i].text);
			return;
		}
	}
	snprintf(buf, size, "No single factor explains it; look at the call-sites and exemplars of %s.", ranks);
}
