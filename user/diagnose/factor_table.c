// SPDX-License-Identifier: GPL-2.0-or-later
/* The factors of the breakdown: one row each has its place in the tree and its texts. */
#include <string.h>

#include "diagnose/factors.h"

/* One row: node, name, stage, parent, factor, noun, meaning, advice and, by their names, further members. */
#define FACTOR(node, name_, stage_, parent_, factor_, noun_, meaning_, ...)                                            \
	[NODE_##node] = {.name = name_,                                                                                \
			 .stage = stage_,                                                                              \
			 .parent = parent_,                                                                            \
			 .factor = factor_,                                                                            \
			 .noun = noun_,                                                                                \
			 .meaning = meaning_,                                                                          \
			 .advice = __VA_ARGS__}

const struct factor_info factor_infos[FACTOR_NODES] = {
    FACTOR(ON_CPU, "on_cpu", 1, FACTOR_ROOT, VAPRO_FACTORS, "slower on the CPU",
	   "slower while running on the CPU; cause unknown (no hardware counters here)", NULL),
    FACTOR(RETIRING, "retiring", 1, FACTOR_ROOT, VAPRO_RETIRING, "more instructions", "more instructions than usual",
	   "more instructions were executed; the work of these ranks may differ"),
    FACTOR(FRONTEND, "frontend", 1, FACTOR_ROOT, VAPRO_FRONTEND, "frontend bound", "the CPU waited for instructions",
	   "waited for instructions; look at code placement and instruction cache misses"),
    FACTOR(BAD_SPECULATION, "bad_speculation", 1, FACTOR_ROOT, VAPRO_BAD_SPECULATION, "bad speculation",
	   "the CPU mispredicted branches",
	   "work thrown away after wrong predictions; the data of these ranks may differ"),
    FACTOR(BACKEND, "backend", 1, FACTOR_ROOT, VAPRO_BACKEND, "backend bound",
	   "the CPU waited for memory or execution units",
	   "waited for memory or execution units; look at memory bandwidth, NUMA placement and neighbours",
	   .cures = CURE_MEMORY),
    FACTOR(KERNEL, "kernel", 1, FACTOR_ROOT, VAPRO_KERNEL, "in the kernel", "inside the kernel",
	   "more time in the kernel; look at page faults and system calls"),
    FACTOR(IRQ, "irq", 1, FACTOR_ROOT, VAPRO_IRQ, "interrupts", "interrupts ran on its CPU",
	   "interrupts ran instead; move the interrupts of this node away from the CPUs of the ranks"),
    FACTOR(SUSPENSION, "suspension", 1, FACTOR_ROOT, VAPRO_FACTORS, "off the CPU",
	   "off-CPU: had work but was not running",
	   "off the CPU although there was work; look at what else runs on their CPUs and at what they wait for"),
    FACTOR(PREEMPTED, "preempted", 2, NODE_SUSPENSION, VAPRO_PREEMPTED, "preempted", "another task ran on its CPU",
	   NULL),
    FACTOR(WAKEUP_WAIT, "wakeup_wait", 2, NODE_SUSPENSION, VAPRO_WAKEUP_WAIT, "waiting for a CPU",
	   "ready to run, but waiting for a CPU", NULL),
    FACTOR(BLOCKED_IO, "blocked_io", 2, NODE_SUSPENSION, VAPRO_BLOCKED_IO, "asleep in IO",
	   "asleep until a disk or file server answered",
	   "asleep in disk or file system IO; look at the file system and at who else used it then",
	   .in_work = "asleep until data came from a disk, inside computation: memory that was swapped out, or mapped "
		      "files; look at memory pressure, swap and the memory limit of the cgroup"),
    FACTOR(BLOCKED_OTHER, "blocked_other", 2, NODE_SUSPENSION, VAPRO_BLOCKED_OTHER,
	   "asleep for something other than IO", "asleep for something other than IO",
	   "asleep where it used to run through; look for a lock, a pipe, a stopped process or a slow "
	   "server behind the call",
	   .in_work = "asleep in a call that is not observed; look for a device (ioctl), a child process, a lock or a "
		      "pipe that it waits for"),
    FACTOR(THROTTLED, "throttled", 2, NODE_SUSPENSION, VAPRO_THROTTLED, "throttled by its cgroup",
	   "stopped by the CPU limit of its cgroup",
	   "throttled by the cgroup; raise its CPU quota or lower the number of threads"),
    FACTOR(STEAL, "steal", 2, NODE_SUSPENSION, VAPRO_STEAL, "stolen by the hypervisor",
	   "the hypervisor ran something else on the CPU",
	   "the host ran other work on the virtual CPU's core; move the virtual machine or ask for "
	   "dedicated cores"),
    FACTOR(STOPPED, "stopped", 2, NODE_SUSPENSION, VAPRO_STOPPED, "stopped (signal or tracer)",
	   "stopped by a signal, a tracer or a freezer",
	   "stopped by a signal (SIGSTOP), a tracer or a freezer; look at who suspends or freezes jobs of "
	   "this node, and for a debugger that is attached to these processes"),
    FACTOR(FREQUENCY, "frequency", 1, FACTOR_ROOT, VAPRO_FREQUENCY, "a lower CPU frequency",
	   "its CPU ran below its highest frequency",
	   "ran on CPUs below their highest frequency; look at the frequency governor, at power and heat "
	   "limits, and at who else computes on the same socket"),
    FACTOR(FRONTEND_LATENCY, "frontend_latency", 2, NODE_FRONTEND, VAPRO_FRONTEND_LATENCY, "fetch latency",
	   "instructions came late",
	   "waited for instructions to come; look at instruction cache misses and code placement"),
    FACTOR(FRONTEND_BANDWIDTH, "frontend_bandwidth", 2, NODE_FRONTEND, VAPRO_FRONTEND_BANDWIDTH, "fetch bandwidth",
	   "instructions came too few at a time",
	   "instructions came too few at a time; look at what shares their cores"),
    FACTOR(MISPREDICTS, "mispredicts", 2, NODE_BAD_SPECULATION, VAPRO_MISPREDICTS, "mispredicts",
	   "branches went another way than predicted",
	   "work thrown away after wrong predictions; the data of these ranks may differ"),
    FACTOR(CLEARS, "clears", 2, NODE_BAD_SPECULATION, VAPRO_CLEARS, "machine clears",
	   "the pipeline was emptied and started again",
	   "the pipeline was emptied; look for memory that several threads write, and at denormal numbers"),
    FACTOR(MEMORY, "memory", 2, NODE_BACKEND, VAPRO_MEMORY, "memory", "waited for data",
	   "waited for data; look at memory bandwidth, NUMA placement and neighbours on the same socket",
	   .cures = CURE_MEMORY),
    FACTOR(CORE, "core", 2, NODE_BACKEND, VAPRO_CORE, "execution units", "waited for execution units",
	   "waited for execution units; look at what shares their cores"),
    FACTOR(PAGE_FAULTS, "page_faults", 2, NODE_KERNEL, VAPRO_PAGE_FAULTS, "page faults", "handling page faults",
	   "handled page faults; look at memory pressure, huge pages and NUMA balancing"),
    FACTOR(SYSTEM_CALLS, "system_calls", 2, NODE_KERNEL, VAPRO_SYSTEM_CALLS, "system calls", "in system calls",
	   "were longer in system calls; look at what they call, and at security modules"),
    FACTOR(RECLAIM, "reclaim", 2, NODE_KERNEL, VAPRO_RECLAIM, "reclaim", "freeing memory for others",
	   "freed memory for others; look at the memory limit of the cgroup and at who fills the memory"),
    FACTOR(HARD_IRQ, "hard_irq", 2, NODE_IRQ, VAPRO_HARD_IRQ, "hard interrupts", "handlers of devices",
	   "interrupts of devices ran instead; move those of this node away from the CPUs of the ranks"),
    FACTOR(SOFT_IRQ, "soft_irq", 2, NODE_IRQ, VAPRO_SOFT_IRQ, "soft interrupts", "network, timers and block devices",
	   "the kernel worked for network, timers or disks on their CPUs; move the interrupts away"),
    FACTOR(MINOR_FAULTS, "minor_faults", 2, NODE_KERNEL, VAPRO_MINOR_FAULTS, "minor faults", "pages mapped in",
	   "mapped more pages in; look at memory that is freed and mapped again (malloc's trimming, munmap), huge "
	   "pages, NUMA balancing and memory pressure"),
    FACTOR(MAJOR_FAULTS, "major_faults", 2, NODE_KERNEL, VAPRO_MAJOR_FAULTS, "major faults", "pages read from disk",
	   "read pages from disk; look at memory pressure and swap"),
    FACTOR(VOLUNTARY_SWITCHES, "voluntary_switches", 2, NODE_KERNEL, VAPRO_VOLUNTARY_SWITCHES, "voluntary switches",
	   "went to sleep more often", "slept and woke more often; look for locks and at the network"),
    FACTOR(INVOLUNTARY_SWITCHES, "involuntary_switches", 2, NODE_KERNEL, VAPRO_INVOLUNTARY_SWITCHES,
	   "involuntary switches", "was switched out more often",
	   "were switched out more often; bind ranks and daemons apart"),
    FACTOR(MIGRATIONS, "migrations", 2, NODE_KERNEL, VAPRO_MIGRATIONS, "migrations", "moved between CPUs",
	   "moved between CPUs; bind the ranks"),
    FACTOR(KERNEL_OTHER, "kernel_other", 2, NODE_KERNEL, VAPRO_FACTORS, "kernel other", "what no count explains",
	   "more time in the kernel, of which no count explains more; look at what they call", .rest = true),
    FACTOR(L1, "l1", 3, NODE_MEMORY, VAPRO_L1, "the L1 cache", "data came from the L1 cache",
	   "waited for the L1 cache; look at what shares their cores"),
    FACTOR(L2, "l2", 3, NODE_MEMORY, VAPRO_L2, "the L2 cache", "data came from the L2 cache",
	   "waited for the L2 cache; look at what shares their cores", .cures = CURE_CACHE),
    FACTOR(L3, "l3", 3, NODE_MEMORY, VAPRO_L3, "the L3 cache", "data came from the L3 cache",
	   "waited for the L3 cache; look at who else uses the caches of the same socket"),
    FACTOR(DRAM, "dram", 3, NODE_MEMORY, VAPRO_DRAM, "DRAM", "data came from DRAM",
	   "waited for DRAM; look at who else uses its bandwidth, at NUMA placement, and at the memory's health",
	   .cures = CURE_MEMORY | CURE_CACHE),
    FACTOR(STORE, "store", 3, NODE_MEMORY, VAPRO_STORE, "stores", "stores were not drained fast enough",
	   "waited for stores; look at memory bandwidth and at what writes to the same cache lines"),
    FACTOR(L2_FILLS, "l2_fills", 3, NODE_MEMORY, VAPRO_L2_FILLS, "l2 fills", "lines fetched from the L2 cache",
	   "fetched more from the L2 cache; look at what shares their cores", .cures = CURE_CACHE),
    FACTOR(L3_FILLS, "l3_fills", 3, NODE_MEMORY, VAPRO_L3_FILLS, "l3 fills", "lines fetched from the L3 cache",
	   "fetched more from the L3 cache; look at what shares their cores"),
    FACTOR(DRAM_FILLS, "dram_fills", 3, NODE_MEMORY, VAPRO_DRAM_FILLS, "dram fills", "lines fetched from DRAM",
	   "fetched more from DRAM; look at who else uses the caches of the same socket",
	   .cures = CURE_MEMORY | CURE_CACHE),
    FACTOR(REMOTE_FILLS, "remote_fills", 3, NODE_MEMORY, VAPRO_REMOTE_FILLS, "remote fills",
	   "lines fetched from another socket",
	   "fetched more from another socket; look at NUMA placement and bind them to their memory"),
    FACTOR(MEMORY_OTHER, "memory_other", 3, NODE_MEMORY, VAPRO_FACTORS, "memory other", "what no count explains",
	   "waited for data, of which no count explains more; look at memory bandwidth and NUMA placement",
	   .cures = CURE_MEMORY, .rest = true),
};

int factors__find(const char *name)
{
	int node = 0;

	while (node < FACTOR_NODES && strcmp(factor_infos[node].name, name))
		node++;
	return node;
}
