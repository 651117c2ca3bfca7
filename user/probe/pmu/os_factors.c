// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/pmu/os_factors.h"

#include <bpf/btf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RUN_QUEUE "run queue"

static bool has_member(const struct btf *btf, const char *name, const char *member)
{
	int id = btf ? btf__find_by_name_kind(btf, name, BTF_KIND_STRUCT) : -1;
	const struct btf_type *type = id > 0 ? btf__type_by_id(btf, (__u32)id) : NULL;
	const struct btf_member *members = type ? btf_members(type) : NULL;

	for (__u16 i = 0; type && i < btf_vlen(type); i++) {
		if (!strcmp(btf__name_by_offset(btf, members[i].name_off), member))
			return true;
	}
	return false;
}

/* Whether a line of a file that begins with `key` has the word. */
static bool has_word(const char *path, const char *key, const char *word)
{
	FILE *file = fopen(path, "re");
	char *line = NULL, *rest, *at;
	size_t size = 0;
	bool found = false;

	while (file && !found && getline(&line, &size, file) > 0) {
		if (strncmp(line, key, strlen(key)))
			continue;
		for (at = strtok_r(line, " \t\n", &rest); at && !found; at = strtok_r(NULL, " \t\n", &rest))
			found = !strcmp(at, word);
		break;
	}
	free(line);
	if (file)
		fclose(file);
	return found;
}

/* The eighth number of the first line of /proc/stat. */
static bool any_steal(void)
{
	unsigned long long steal = 0;
	FILE *file = fopen("/proc/stat", "re");

	if (file && fscanf(file, "cpu %*u %*u %*u %*u %*u %*u %*u %llu", &steal) != 1)
		steal = 0;
	if (file)
		fclose(file);
	return steal > 0;
}

void os_factors__learn(struct os_facts *facts, bool interrupts)
{
	struct btf *btf = btf__load_vmlinux_btf();

	*facts = (struct os_facts){
	    .queues = has_member(btf, "sched_entity", "cfs_rq") && has_member(btf, "cfs_rq", "rq"),
	    .throttled = has_member(btf, "cfs_rq", "throttled_clock_self_time"),
	    .throttled_old = has_member(btf, "cfs_rq", "throttled_clock_pelt_time") ||
			     has_member(btf, "cfs_rq", "throttled_clock_task_time"),
	    .steal = has_member(btf, "rq", "prev_steal_time_rq") || has_member(btf, "rq", "prev_steal_time"),
	    .irq_time = has_member(btf, "rq", "prev_irq_time"),
	    .slow_clock = has_member(btf, "rq", "clock_pelt"),
	    .interrupts = interrupts,
	    .reports_speed = has_word("/proc/cpuinfo", "flags", "aperfmperf") ||
			     !access("/sys/devices/system/cpu/cpu0/cpufreq", F_OK),
	    .steal_ever = any_steal(),
	    .virtual_machine = has_word("/proc/cpuinfo", "flags", "hypervisor"),
	};
	btf__free(btf);
}

static struct os_factor throttled(const struct os_facts *facts)
{
	struct os_factor factor = {.name = "throttled"};

	if (!facts->queues) {
		factor.reason =
		    "this kernel does not schedule by groups (CONFIG_FAIR_GROUP_SCHED): there are no quotas";
		return factor;
	}
	factor.available = facts->throttled || facts->throttled_old;
	factor.approx = factor.available && !facts->throttled;
	factor.source = factor.available ? RUN_QUEUE : NULL;
	if (factor.approx)
		factor.reason = "before kernel 6.6 it is measured by a clock that goes slower where CPUs do";
	else if (!factor.available)
		factor.reason = "this kernel has no CPU quotas (CONFIG_CFS_BANDWIDTH)";
	return factor;
}

static struct os_factor steal(const struct os_facts *facts)
{
	struct os_factor factor = {.name = "steal", .available = facts->queues && facts->steal};

	factor.source = factor.available ? RUN_QUEUE : NULL;
	if (!factor.available)
		factor.reason = "this kernel does not query its hypervisor (CONFIG_PARAVIRT)";
	else if (!facts->steal_ever)
		factor.reason = facts->virtual_machine
				    ? "none since boot: nothing was stolen, or the hypervisor does not report it"
				    : "none since boot";
	return factor;
}

static struct os_factor irq(const struct os_facts *facts)
{
	struct os_factor factor = {.name = "irq", .available = facts->queues && facts->irq_time};

	factor.source = factor.available ? RUN_QUEUE : NULL;
	if (!factor.available && facts->interrupts) {
		factor.available = true;
		factor.source = "tracepoints";
		factor.reason = "this kernel does not time interrupts (CONFIG_IRQ_TIME_ACCOUNTING): it is the sum of "
				"hard_irq and soft_irq, while those are timed";
	} else if (!factor.available) {
		factor.reason = "this kernel does not time interrupts (CONFIG_IRQ_TIME_ACCOUNTING), and --interrupts "
				"off was requested";
	}
	return factor;
}

static struct os_factor interrupts_of(const struct os_facts *facts, const char *name)
{
	struct os_factor factor = {.name = name, .available = facts->interrupts};

	factor.source = facts->interrupts ? "tracepoints" : NULL;
	factor.reason = facts->interrupts
			    ? "timed while a diagnosis requests it, or they take much of a target's CPU (--interrupts)"
			    : "not wanted: --interrupts off";
	return factor;
}

static struct os_factor frequency(const struct os_facts *facts)
{
	struct os_factor factor = {.name = "frequency",
				   .available = facts->queues && facts->slow_clock && facts->reports_speed};

	factor.source = factor.available ? RUN_QUEUE : NULL;
	if (!facts->reports_speed)
		factor.reason = "this machine reports no CPU frequency: neither aperf and mperf nor cpufreq";
	else if (!factor.available)
		factor.reason = "this kernel's scheduler does not follow the CPU frequency";
	else
		factor.reason = "as far as the kernel knows the CPU's highest one";
	return factor;
}

void os_factors__of(const struct os_facts *facts, struct os_factor *factors)
{
	factors[0] = throttled(facts);
	factors[1] = steal(facts);
	factors[2] = irq(facts);
	factors[3] = interrupts_of(facts, "hard_irq");
	factors[4] = interrupts_of(facts, "soft_irq");
	factors[5] = frequency(facts);
}
