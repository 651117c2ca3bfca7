// SPDX-License-Identifier: GPL-2.0-or-later
/* The factors of the breakdown: one row each has its place in the tree and its texts. */
#include <string.h>

#include "diagnose/factors.h"

const struct factor_info factor_infos[FACTOR_NODES] = {
    [NODE_ON_CPU] =
	{
	    .name = "on_cpu",
	    .stage = 1,
	    .parent = FACTOR_ROOT,
	    .factor = VAPRO_FACTORS,
	    .noun = "slower on the CPU",
	    .meaning = "slower while it ran; counters would print more",
	},
    [NODE_RETIRING] =
	{
	    .name = "retiring",
	    .stage = 1,
	    .parent = FACTOR_ROOT,
	    .factor = VAPRO_RETIRING,
	    .noun = "more instructions",
	    .meaning = "more instructions than usual",
	    .advice = "more instructions were executed; the work of these ranks may differ",
	},
    [NODE_FRONTEND] =
	{
	    .name = "frontend",
	    .stage = 1,
	    .parent = FACTOR_ROOT,
	    .factor = VAPRO_FRONTEND,
	    .noun = "frontend bound",
	    .meaning = "the CPU waited for instructions",
	    .advice = "waited for instructions; look at code placement and instruction cache misses",
	},
    [NODE_BAD_SPECULATION] =
	{
	    .name = "bad_speculation",
	    .stage = 1,
	    .parent = FACTOR_ROOT,
	    .factor = VAPRO_BAD_SPECULATION,
	    .noun = "bad speculation",
	    .meaning = "the CPU mispredicted branches",
	    .advice = "work thrown away after wrong predictions; the data of these ranks may differ",
	},
    [NODE_BACKEND] =
	{
	    .name = "backend",
	    .stage = 1,
	    .parent = FACTOR_ROOT,
	    .factor = VAPRO_BACKEND,
	    .noun = "backend bound",
	    .meaning = "the CPU waited for memory or execution units",
	    .advice = "waited for memory or execution units; look at memory bandwidth, NUMA placement and neighbours",
	    .cures = CURE_MEMORY,
	},
    [NODE_KERNEL] =
	{
	    .name = "kernel",
	    .stage = 1,
	    .parent = FACTOR_ROOT,
	    .factor = VAPRO_KERNEL,
	    .noun = "in the kernel",
	    .meaning = "inside the kernel",
	    .advice = "more time in the kernel; look at page faults and system calls",
	},
    [NODE_IRQ] =
	{
	    .name = "irq",
	    .stage = 1,
	    .parent = FACTOR_ROOT,
	    .factor = VAPRO_IRQ,
	    .noun = "interrupts",
	    .meaning = "interrupts ran on its CPU",
	    .advice = "interrupts ran instead; move the interrupts of this node away from the CPUs of the ranks",
	},
    [NODE_SUSPENSION] =
	{
	    .name = "suspension",
	    .stage = 1,
	    .parent = FACTOR_ROOT,
	    .factor = VAPRO_FACTORS,
	    .noun = "off the CPU",
	    .meaning = "not running although it had work",
	    .advice =
		"off the CPU although there was work; look at what else runs on their CPUs and at what they wait for",
	},
    [NODE_PREEMPTED] =
	{
	    .name = "preempted",
	    .stage = 2,
	    .parent = NODE_SUSPENSION,
	    .factor = VAPRO_PREEMPTED,
	    .noun = "preempted",
	    .meaning = "another task ran on its CPU",
	},
    [NODE_WAKEUP_WAIT] =
	{
	    .name = "wakeup_wait",
	    .stage = 2,
	    .parent = NODE_SUSPENSION,
	    .factor = VAPRO_WAKEUP_WAIT,
	    .noun = "waiting for a CPU",
	    .meaning = "ready to run, but waiting for a CPU",
	},
    [NODE_BLOCKED_IO] =
	{
	    .name = "blocked_io",
	    .stage = 2,
	    .parent = NODE_SUSPENSION,
	    .factor = VAPRO_BLOCKED_IO,
	    .noun = "asleep in IO",
	    .meaning = "asleep until a disk or file server answered",
	    .advice = "asleep in disk or file system IO; look at the file system and at who else used it then",
	},
    [NODE_BLOCKED_OTHER] =
	{
	    .name = "blocked_other",
	    .stage = 2,
	    .parent = NODE_SUSPENSION,
	    .factor = VAPRO_BLOCKED_OTHER,
	    .noun = "asleep for something else than IO",
	    .meaning = "asleep for something else than IO",
	    .advice = "asleep where it used to run through; look for a lock, a pipe, a stopped process or a slow "
		      "server behind the call",
	},
    [NODE_THROTTLED] =
	{
	    .name = "throttled",
	    .stage = 2,
	    .parent = NODE_SUSPENSION,
	    .factor = VAPRO_THROTTLED,
	    .noun = "throttled by its cgroup",
	    .meaning = "stopped by the CPU limit of its cgroup",
	    .advice = "throttled by the cgroup; raise its CPU quota or lower the number of threads",
	},
    [NODE_STEAL] =
	{
	    .name = "steal",
	    .stage = 2,
	    .parent = NODE_SUSPENSION,
	    .factor = VAPRO_STEAL,
	    .noun = "stolen by the hypervisor",
	    .meaning = "the hypervisor ran something else on the CPU",
	    .advice = "the host ran other work on the virtual CPU's core; move the virtual machine or ask for "
		      "dedicated cores",
	},
    [NODE_STOPPED] =
	{
	    .name = "stopped",
	    .stage = 2,
	    .parent = NODE_SUSPENSION,
	    .factor = VAPRO_STOPPED,
	    .noun = "stopped (signal or tracer)",
	    .meaning = "stopped by a signal, a tracer or a freezer",
	    .advice = "stopped by a signal (SIGSTOP), a tracer or a freezer; look at who suspends or freezes jobs of "
		      "this node, and for a debugger that is attached to these processes",
	},
    [NODE_FREQUENCY] =
	{
	    .name = "frequency",
	    .stage = 1,
	    .parent = FACTOR_ROOT,
	    .factor = VAPRO_FREQUENCY,
	    .noun = "a lower CPU frequency",
	    .meaning = "its CPU ran below its highest frequency",
	    .advice = "ran on CPUs below their highest frequency; look at the frequency governor, at power and heat "
		      "limits, and at who else computes on the same socket",
	},
    [NODE_FRONTEND_LATENCY] =
	{
	    .name = "frontend_latency",
	    .stage = 2,
	    .parent = NODE_FRONTEND,
	    .factor = VAPRO_FRONTEND_LATENCY,
	    .noun = "fetch latency",
	    .meaning = "instructions came late",
	    .advice = "waited for instructions to come; look at instruction cache misses and code placement",
	},
    [NODE_FRONTEND_BANDWIDTH] =
	{
	    .name = "frontend_bandwidth",
	    .stage = 2,
	    .parent = NODE_FRONTEND,
	    .factor = VAPRO_FRONTEND_BANDWIDTH,
	    .noun = "fetch bandwidth",
	    .meaning = "instructions came too few at a time",
	    .advice = "instructions came too few at a time; look at what shares their cores",
	},
    [NODE_MISPREDICTS] =
	{
	    .name = "mispredicts",
	    .stage = 2,
	    .parent = NODE_BAD_SPECULATION,
	    .factor = VAPRO_MISPREDICTS,
	    .noun = "mispredicts",
	    .meaning = "branches went another way than predicted",
	    .advice = "work thrown away after wrong predictions; the data of these ranks may differ",
	},
    [NODE_CLEARS] =
	{
	    .name = "clears",
	    .stage = 2,
	    .parent = NODE_BAD_SPECULATION,
	    .factor = VAPRO_CLEARS,
	    .noun = "machine clears",
	    .meaning = "the pipeline was emptied and started again",
	    .advice = "the pipeline was emptied; look for memory that several threads write, and at denormal numbers",
	},
    [NODE_MEMORY] =
	{
	    .name = "memory",
	    .stage = 2,
	    .parent = NODE_BACKEND,
	    .factor = VAPRO_MEMORY,
	    .noun = "memory",
	    .meaning = "waited for data",
	    .advice = "waited for data; look at memory bandwidth, NUMA placement and neighbours on the same socket",
	    .cures = CURE_MEMORY,
	},
    [NODE_CORE] =
	{
	    .name = "core",
	    .stage = 2,
	    .parent = NODE_BACKEND,
	    .factor = VAPRO_CORE,
	    .noun = "execution units",
	    .meaning = "waited for execution units",
	    .advice = "waited for execution units; look at what shares their cores",
	},
    [NODE_PAGE_FAULTS] =
	{
	    .name = "page_faults",
	    .stage = 2,
	    .parent = NODE_KERNEL,
	    .factor = VAPRO_PAGE_FAULTS,
	    .noun = "page faults",
	    .meaning = "handling page faults",
	    .advice = "handled page faults; look at memory pressure, huge pages and NUMA balancing",
	},
    [NODE_SYSTEM_CALLS] =
	{
	    .name = "system_calls",
	    .stage = 2,
	    .parent = NODE_KERNEL,
	    .factor = VAPRO_SYSTEM_CALLS,
	    .noun = "system calls",
	    .meaning = "in system calls",
	    .advice = "were longer in system calls; look at what they call, and at security modules",
	},
    [NODE_RECLAIM] =
	{
	    .name = "reclaim",
	    .stage = 2,
	    .parent = NODE_KERNEL,
	    .factor = VAPRO_RECLAIM,
	    .noun = "reclaim",
	    .meaning = "freeing memory for others",
	    .advice = "freed memory for others; look at the memory limit of the cgroup and at who fills the memory",
	},
    [NODE_HARD_IRQ] =
	{
	    .name = "hard_irq",
	    .stage = 2,
	    .parent = NODE_IRQ,
	    .factor = VAPRO_HARD_IRQ,
	    .noun = "hard interrupts",
	    .meaning = "handlers of devices",
	    .advice = "interrupts of devices ran instead; move those of this node away from the CPUs of the ranks",
	},
    [NODE_SOFT_IRQ] =
	{
	    .name = "soft_irq",
	    .stage = 2,
	    .parent = NODE_IRQ,
	    .factor = VAPRO_SOFT_IRQ,
	    .noun = "soft interrupts",
	    .meaning = "network, timers and block devices",
	    .advice = "the kernel worked for network, timers or disks on their CPUs; move the interrupts away",
	},
    [NODE_MINOR_FAULTS] =
	{
	    .name = "minor_faults",
	    .stage = 2,
	    .parent = NODE_KERNEL,
	    .factor = VAPRO_MINOR_FAULTS,
	    .noun = "minor faults",
	    .meaning = "pages mapped in",
	    .advice = "mapped more pages in; look at memory pressure, huge pages and NUMA balancing",
	},
    [NODE_MAJOR_FAULTS] =
	{
	    .name = "major_faults",
	    .stage = 2,
	    .parent = NODE_KERNEL,
	    .factor = VAPRO_MAJOR_FAULTS,
	    .noun = "major faults",
	    .meaning = "pages read from disk",
	    .advice = "read pages from disk; look at memory pressure and swap",
	},
    [NODE_VOLUNTARY_SWITCHES] =
	{
	    .name = "voluntary_switches",
	    .stage = 2,
	    .parent = NODE_KERNEL,
	    .factor = VAPRO_VOLUNTARY_SWITCHES,
	    .noun = "voluntary switches",
	    .meaning = "went to sleep more often",
	    .advice = "slept and woke more often; look for locks and at the network",
	},
    [NODE_INVOLUNTARY_SWITCHES] =
	{
	    .name = "involuntary_switches",
	    .stage = 2,
	    .parent = NODE_KERNEL,
	    .factor = VAPRO_INVOLUNTARY_SWITCHES,
	    .noun = "involuntary switches",
	    .meaning = "was switched out more often",
	    .advice = "were switched out more often; bind ranks and daemons apart",
	},
    [NODE_MIGRATIONS] =
	{
	    .name = "migrations",
	    .stage = 2,
	    .parent = NODE_KERNEL,
	    .factor = VAPRO_MIGRATIONS,
	    .noun = "migrations",
	    .meaning = "moved between CPUs",
	    .advice = "moved between CPUs; bind the ranks",
	},
    [NODE_KERNEL_OTHER] =
	{
	    .name = "kernel_other",
	    .stage = 2,
	    .parent = NODE_KERNEL,
	    .factor = VAPRO_FACTORS,
	    .rest = true,
	    .noun = "kernel other",
	    .meaning = "what no count explains",
	    .advice = "more time in the kernel, of which no count explains more; look at what they call",
	},
    [NODE_L1] =
	{
	    .name = "l1",
	    .stage = 3,
	    .parent = NODE_MEMORY,
	    .factor = VAPRO_L1,
	    .noun = "the L1 cache",
	    .meaning = "data came from the L1 cache",
	    .advice = "waited for the L1 cache; look at what shares their cores",
	},
    [NODE_L2] =
	{
	    .name = "l2",
	    .stage = 3,
	    .parent = NODE_MEMORY,
	    .factor = VAPRO_L2,
	    .noun = "the L2 cache",
	    .meaning = "data came from the L2 cache",
	    .advice = "waited for the L2 cache; look at what shares their cores",
	    .cures = CURE_CACHE,
	},
    [NODE_L3] =
	{
	    .name = "l3",
	    .stage = 3,
	    .parent = NODE_MEMORY,
	    .factor = VAPRO_L3,
	    .noun = "the L3 cache",
	    .meaning = "data came from the L3 cache",
	    .advice = "waited for the L3 cache; look at who else uses the caches of the same socket",
	},
    [NODE_DRAM] =
	{
	    .name = "dram",
	    .stage = 3,
	    .parent = NODE_MEMORY,
	    .factor = VAPRO_DRAM,
	    .noun = "DRAM",
	    .meaning = "data came from DRAM",
	    .advice =
		"waited for DRAM; look at who else uses its bandwidth, at NUMA placement, and at the memory's health",
	    .cures = CURE_MEMORY | CURE_CACHE,
	},
    [NODE_STORE] =
	{
	    .name = "store",
	    .stage = 3,
	    .parent = NODE_MEMORY,
	    .factor = VAPRO_STORE,
	    .noun = "stores",
	    .meaning = "stores were not drained fast enough",
	    .advice = "waited for stores; look at memory bandwidth and at what writes to the same cache lines",
	},
    [NODE_L2_FILLS] =
	{
	    .name = "l2_fills",
	    .stage = 3,
	    .parent = NODE_MEMORY,
	    .factor = VAPRO_L2_FILLS,
	    .noun = "l2 fills",
	    .meaning = "lines fetched from the L2 cache",
	    .advice = "fetched more from the L2 cache; look at what shares their cores",
	    .cures = CURE_CACHE,
	},
    [NODE_L3_FILLS] =
	{
	    .name = "l3_fills",
	    .stage = 3,
	    .parent = NODE_MEMORY,
	    .factor = VAPRO_L3_FILLS,
	    .noun = "l3 fills",
	    .meaning = "lines fetched from the L3 cache",
	    .advice = "fetched more from the L3 cache; look at what shares their cores",
	},
    [NODE_DRAM_FILLS] =
	{
	    .name = "dram_fills",
	    .stage = 3,
	    .parent = NODE_MEMORY,
	    .factor = VAPRO_DRAM_FILLS,
	    .noun = "dram fills",
	    .meaning = "lines fetched from DRAM",
	    .advice = "fetched more from DRAM; look at who else uses the caches of the same socket",
	    .cures = CURE_MEMORY | CURE_CACHE,
	},
    [NODE_REMOTE_FILLS] =
	{
	    .name = "remote_fills",
	    .stage = 3,
	    .parent = NODE_MEMORY,
	    .factor = VAPRO_REMOTE_FILLS,
	    .noun = "remote fills",
	    .meaning = "lines fetched from another socket",
	    .advice = "fetched more from another socket; look at NUMA placement and bind them to their memory",
	},
    [NODE_MEMORY_OTHER] =
	{
	    .name = "memory_other",
	    .stage = 3,
	    .parent = NODE_MEMORY,
	    .factor = VAPRO_FACTORS,
	    .rest = true,
	    .noun = "memory other",
	    .meaning = "what no count explains",
	    .advice = "waited for data, of which no count explains more; look at memory bandwidth and NUMA placement",
	    .cures = CURE_MEMORY,
	},
};

int factors__find(const char *name)
{
	int node = 0;

	while (node < FACTOR_NODES && strcmp(factor_infos[node].name, name))
		node++;
	return node;
}
