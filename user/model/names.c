/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The words of the output contract for classes, factors, losses and uncovered time (ARCHITECTURE 8 to 10). */
#include <vapro/analysis.h>

const char *const vapro_class_name[VAPRO_CLASSES] = {
    [VAPRO_COMPUTATION] = "computation",
    [VAPRO_COMMUNICATION] = "communication",
    [VAPRO_IO] = "io",
};

const char *const vapro_factor_name[VAPRO_FACTORS] = {
    [VAPRO_PREEMPTED] = "preempted",
    [VAPRO_WAKEUP_WAIT] = "wakeup_wait",
    [VAPRO_BLOCKED_IO] = "blocked_io",
    [VAPRO_BLOCKED_OTHER] = "blocked_other",
    [VAPRO_THROTTLED] = "throttled",
    [VAPRO_STEAL] = "steal",
    [VAPRO_STOPPED] = "stopped",
    [VAPRO_IRQ] = "irq",
    [VAPRO_KERNEL] = "kernel",
    [VAPRO_RETIRING] = "retiring",
    [VAPRO_FRONTEND] = "frontend",
    [VAPRO_BAD_SPECULATION] = "bad_speculation",
    [VAPRO_BACKEND] = "backend",
    [VAPRO_FRONTEND_LATENCY] = "frontend_latency",
    [VAPRO_FRONTEND_BANDWIDTH] = "frontend_bandwidth",
    [VAPRO_MISPREDICTS] = "mispredicts",
    [VAPRO_CLEARS] = "clears",
    [VAPRO_MEMORY] = "memory",
    [VAPRO_CORE] = "core",
    [VAPRO_L1] = "l1",
    [VAPRO_L2] = "l2",
    [VAPRO_L3] = "l3",
    [VAPRO_DRAM] = "dram",
    [VAPRO_STORE] = "store",
    [VAPRO_PAGE_FAULTS] = "page_faults",
    [VAPRO_SYSTEM_CALLS] = "system_calls",
    [VAPRO_RECLAIM] = "reclaim",
    [VAPRO_HARD_IRQ] = "hard_irq",
    [VAPRO_SOFT_IRQ] = "soft_irq",
    [VAPRO_FREQUENCY] = "frequency",
    [VAPRO_MINOR_FAULTS] = "minor_faults",
    [VAPRO_MAJOR_FAULTS] = "major_faults",
    [VAPRO_VOLUNTARY_SWITCHES] = "voluntary_switches",
    [VAPRO_INVOLUNTARY_SWITCHES] = "involuntary_switches",
    [VAPRO_MIGRATIONS] = "migrations",
    [VAPRO_L2_FILLS] = "l2_fills",
    [VAPRO_L3_FILLS] = "l3_fills",
    [VAPRO_DRAM_FILLS] = "dram_fills",
    [VAPRO_REMOTE_FILLS] = "remote_fills",
};

const char *const vapro_loss_name[VAPRO_LOSSES] = {
    [VAPRO_LOST_RING_FULL] = "ring_full",     [VAPRO_LOST_MAP_FULL] = "map_full",
    [VAPRO_LOST_NO_STORAGE] = "no_storage",   [VAPRO_LOST_NESTING] = "nesting",
    [VAPRO_LOST_ARGUMENT] = "argument",	      [VAPRO_LOST_TRUNCATED] = "truncated",
    [VAPRO_LOST_GOVERNED] = "governed",	      [VAPRO_LOST_VANISHED] = "vanished",
    [VAPRO_LOST_UNACCOUNTED] = "unaccounted", [VAPRO_LOST_APPROXIMATED] = "approximated",
    [VAPRO_LOST_UNMATCHED] = "unmatched",     [VAPRO_LOST_COUNTER] = "counter",
    [VAPRO_LOST_STATES] = "states",
};

const char *const vapro_uncovered_name[VAPRO_UNCOVERED_REASONS] = {
    [VAPRO_COVERED] = "covered",	 [VAPRO_FEW_FRAGMENTS] = "few_fragments",
    [VAPRO_SPREAD] = "spread",		 [VAPRO_RARE] = "rare",
    [VAPRO_GOVERNED] = "governed",	 [VAPRO_NO_RETURN] = "no_return",
    [VAPRO_NOT_SEEN] = "not_seen",	 [VAPRO_LOST] = "lost",
    [VAPRO_NO_WORKLOAD] = "no_workload", [VAPRO_SHED] = "shed",
    [VAPRO_WARM_UP] = "warm_up",
};
