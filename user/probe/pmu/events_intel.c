// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Intel server CPUs, from intel/perfmon. From Ice Lake on they use ordinary counters, not PERF_METRICS:
 * reading PERF_METRICS stops and clears it, and its fields have 8 bits.
 */
#include "probe/pmu/events_private.h"

#define INSTRUCTIONS EVENT("INST_RETIRED.ANY_P", 0xc0, 0, EVENT_BUSY)
#define CYCLES EVENT("CPU_CLK_UNHALTED.THREAD_P", 0x3c, 0, EVENT_BUSY)
#define REFERENCE EVENT("CPU_CLK_UNHALTED.REF_TSC", 0x300, 0, EVENT_OPTIONAL | EVENT_REFERENCE | EVENT_BUSY)
#define SLOTS EVENT("TOPDOWN.SLOTS", 0x400, 0, EVENT_BUSY)

/* All time, for the groups of later stages: on fixed counters, and left out where even those are in use. */
#define CYCLES_TOO EVENT("CPU_CLK_UNHALTED.THREAD_P", 0x3c, 0, EVENT_OPTIONAL | EVENT_BUSY)
#define SLOTS_TOO EVENT("TOPDOWN.SLOTS", 0x400, 0, EVENT_OPTIONAL | EVENT_BUSY)

static const char *const named_as[] = {"loads", "stores", NULL};

#define NAMED                                                                                                          \
	{                                                                                                              \
		{"MEM_INST_RETIRED.ALL_LOADS", 0x81d0, 0, 0}, {"MEM_INST_RETIRED.ALL_STORES", 0x82d0, 0, 0},           \
	}

EVENT_GROUP(skylake_level1, "top-down", 1, NULL, topdown__skylake, .parts = TOPDOWN_LEVEL1_NAMES,
	    .events = {CYCLES,
		       {"IDQ_UOPS_NOT_DELIVERED.CORE", 0x19c, 0, 0},
		       {"UOPS_ISSUED.ANY", 0x10e, 0, EVENT_BUSY},
		       {"UOPS_RETIRED.RETIRE_SLOTS", 0x2c2, 0, EVENT_BUSY},
		       {"INT_MISC.RECOVERY_CYCLES", 0x10d, 0, 0},
		       REFERENCE});

EVENT_GROUP(skylake_level1_smt, "top-down", 1, NULL, topdown__skylake, .parts = TOPDOWN_LEVEL1_NAMES,
	    .events = {{"CPU_CLK_UNHALTED.THREAD_P_ANY", 0x20003c, 0, EVENT_BUSY},
		       {"IDQ_UOPS_NOT_DELIVERED.CORE", 0x19c, 0, 0},
		       {"UOPS_ISSUED.ANY", 0x10e, 0, EVENT_BUSY},
		       {"UOPS_RETIRED.RETIRE_SLOTS", 0x2c2, 0, EVENT_BUSY},
		       {"INT_MISC.RECOVERY_CYCLES_ANY", 0x20010d, 0, 0},
		       REFERENCE});

EVENT_GROUP(skylake_backend, "backend", 2, "backend", topdown__skylake_backend, .parts = {"memory", "core"},
	    .events = {{"CYCLE_ACTIVITY.STALLS_MEM_ANY", 0x140014a3, 0, 0},
		       {"EXE_ACTIVITY.BOUND_ON_STORES", 0x40a6, 0, 0},
		       {"CYCLE_ACTIVITY.STALLS_TOTAL", 0x40004a3, 0, 0},
		       {"EXE_ACTIVITY.1_PORTS_UTIL", 0x2a6, 0, 0},
		       {"EXE_ACTIVITY.2_PORTS_UTIL", 0x4a6, 0, EVENT_OPTIONAL},
		       REFERENCE});

EVENT_GROUP(skylake_frontend, "frontend", 2, "frontend", topdown__skylake_frontend,
	    .parts = {"fetch_latency", "fetch_bandwidth"}, .whole = topdown__whole_slots,
	    .events = {{"IDQ_UOPS_NOT_DELIVERED.CYCLES_0_UOPS_DELIV.CORE", 0x400019c, 0, 0},
		       {"IDQ_UOPS_NOT_DELIVERED.CORE", 0x19c, 0, 0},
		       CYCLES_TOO,
		       REFERENCE});

EVENT_GROUP(intel_bad_speculation, "bad_speculation", 2, "bad_speculation", topdown__two_parts,
	    .parts = {"branch_mispredicts", "machine_clears"},
	    .events = {
		{"BR_MISP_RETIRED.ALL_BRANCHES", 0xc5, 0, 0}, {"MACHINE_CLEARS.COUNT", 0x10401c3, 0, 0}, REFERENCE});

EVENT_GROUP(skylake_retiring, "retiring", 2, "retiring", topdown__skylake_retiring,
	    .parts = {"heavy_operations", "light_operations"},
	    .events = {{"UOPS_RETIRED.RETIRE_SLOTS", 0x2c2, 0, EVENT_BUSY}, {"UOPS_RETIRED.MACRO_FUSED", 0x4c2, 0, 0}});

EVENT_GROUP(skylake_memory, "memory", 3, "memory", topdown__stalls_by_level,
	    .parts = {"l1", "l2", "l3", "dram", "store"}, .whole = topdown__whole_stalls,
	    .events = {{"CYCLE_ACTIVITY.STALLS_MEM_ANY", 0x140014a3, 0, 0},
		       {"CYCLE_ACTIVITY.STALLS_L1D_MISS", 0xc000ca3, 0, 0},
		       {"CYCLE_ACTIVITY.STALLS_L2_MISS", 0x50005a3, 0, 0},
		       {"CYCLE_ACTIVITY.STALLS_L3_MISS", 0x60006a3, 0, 0},
		       {"EXE_ACTIVITY.BOUND_ON_STORES", 0x40a6, 0, 0},
		       CYCLES_TOO,
		       REFERENCE});

EVENT_GROUP(skylake_l2_share, "l2_share", 3, "l2", topdown__l2_share, .parts = {"l2", "dram"},
	    .events = {{"MEM_LOAD_RETIRED.L2_HIT", 0x2d1, 0, 0},
		       {"MEM_LOAD_RETIRED.FB_HIT", 0x40d1, 0, 0},
		       {"MEM_LOAD_RETIRED.L1_MISS", 0x8d1, 0, 0},
		       {"L1D_PEND_MISS.FB_FULL", 0x248, 1, 0}});

static const struct event_group *const skylake_groups[] = {
    &skylake_level1,   &skylake_backend, &skylake_frontend, &intel_bad_speculation,
    &skylake_retiring, &skylake_memory,	 &skylake_l2_share, NULL};

EVENT_CPU(event_cpu_skx, "SKX", "Intel Skylake-SP", 4, skylake_groups, .instructions = INSTRUCTIONS,
	  .stage1_smt = &skylake_level1_smt, .named = NAMED, .named_as = named_as);

EVENT_CPU(event_cpu_clx, "CLX", "Intel Cascade Lake-SP", 4, skylake_groups, .instructions = INSTRUCTIONS,
	  .stage1_smt = &skylake_level1_smt, .named = NAMED, .named_as = named_as);

EVENT_GROUP(icelake_level1, "top-down", 1, NULL, topdown__icelake, .parts = TOPDOWN_LEVEL1_NAMES,
	    .events = {SLOTS,
		       {"UOPS_RETIRED.SLOTS", 0x2c2, 0, EVENT_BUSY},
		       {"IDQ_UOPS_NOT_DELIVERED.CORE", 0x19c, 0, 0},
		       {"TOPDOWN.BACKEND_BOUND_SLOTS", 0x2a4, 0, 0},
		       {"INT_MISC.UOP_DROPPING", 0x100d, 0, EVENT_OPTIONAL},
		       REFERENCE});

EVENT_GROUP(icelake_backend, "backend", 2, "backend", topdown__skylake_backend, .parts = {"memory", "core"},
	    .events = {{"CYCLE_ACTIVITY.STALLS_MEM_ANY", 0x140014a3, 0, 0},
		       {"EXE_ACTIVITY.BOUND_ON_STORES", 0x20040a6, 0, 0},
		       {"CYCLE_ACTIVITY.STALLS_TOTAL", 0x40004a3, 0, 0},
		       {"EXE_ACTIVITY.1_PORTS_UTIL", 0x2a6, 0, 0},
		       {"EXE_ACTIVITY.2_PORTS_UTIL", 0x4a6, 0, EVENT_OPTIONAL},
		       REFERENCE});

EVENT_GROUP(icelake_frontend, "frontend", 2, "frontend", topdown__icelake_frontend,
	    .parts = {"fetch_latency", "fetch_bandwidth"}, .whole = topdown__whole_icelake_frontend,
	    .events = {{"IDQ_UOPS_NOT_DELIVERED.CYCLES_0_UOPS_DELIV.CORE", 0x500019c, 0, 0},
		       {"IDQ_UOPS_NOT_DELIVERED.CORE", 0x19c, 0, 0},
		       {"INT_MISC.UOP_DROPPING", 0x100d, 0, EVENT_OPTIONAL},
		       SLOTS_TOO,
		       REFERENCE});

EVENT_GROUP(icelake_memory, "memory", 3, "memory", topdown__stalls_by_level,
	    .parts = {"l1", "l2", "l3", "dram", "store"}, .whole = topdown__whole_stalls,
	    .events = {{"CYCLE_ACTIVITY.STALLS_MEM_ANY", 0x140014a3, 0, 0},
		       {"CYCLE_ACTIVITY.STALLS_L1D_MISS", 0xc000ca3, 0, 0},
		       {"CYCLE_ACTIVITY.STALLS_L2_MISS", 0x50005a3, 0, 0},
		       {"CYCLE_ACTIVITY.STALLS_L3_MISS", 0x60006a3, 0, 0},
		       {"EXE_ACTIVITY.BOUND_ON_STORES", 0x20040a6, 0, 0},
		       CYCLES_TOO,
		       REFERENCE});

EVENT_GROUP(icelake_l2_share, "l2_share", 3, "l2", topdown__l2_share, .parts = {"l2", "dram"},
	    .events = {{"MEM_LOAD_RETIRED.L2_HIT", 0x2d1, 0, 0},
		       {"MEM_LOAD_RETIRED.FB_HIT", 0x40d1, 0, 0},
		       {"MEM_LOAD_RETIRED.L1_MISS", 0x8d1, 0, 0},
		       {"L1D_PEND_MISS.FB_FULL_PERIODS", 0x1040248, 0, 0}});

static const struct event_group *const icelake_groups[] = {&icelake_level1,
							   &icelake_backend,
							   &icelake_frontend,
							   &intel_bad_speculation,
							   &icelake_memory,
							   &icelake_l2_share,
							   NULL};

EVENT_CPU(event_cpu_icx, "ICX", "Intel Ice Lake-SP", 5, icelake_groups, .instructions = INSTRUCTIONS, .named = NAMED,
	  .named_as = named_as);

EVENT_GROUP(sapphire_level1, "top-down", 1, NULL, topdown__icelake, .parts = TOPDOWN_LEVEL1_NAMES,
	    .events = {SLOTS,
		       {"UOPS_RETIRED.SLOTS", 0x2c2, 0, EVENT_BUSY},
		       {"IDQ_BUBBLES.CORE", 0x19c, 0, 0},
		       {"TOPDOWN.BACKEND_BOUND_SLOTS", 0x2a4, 0, 0},
		       {"INT_MISC.UOP_DROPPING", 0x10ad, 0, EVENT_OPTIONAL},
		       REFERENCE});

EVENT_GROUP(sapphire_backend, "backend", 2, "backend", topdown__part_of, .parts = {"memory", "core"},
	    .whole = topdown__whole_second,
	    .events = {{"TOPDOWN.MEMORY_BOUND_SLOTS", 0x10a4, 0, 0},
		       {"TOPDOWN.BACKEND_BOUND_SLOTS", 0x2a4, 0, 0},
		       SLOTS_TOO,
		       REFERENCE});

EVENT_GROUP(sapphire_frontend, "frontend", 2, "frontend", topdown__icelake_frontend,
	    .parts = {"fetch_latency", "fetch_bandwidth"}, .whole = topdown__whole_icelake_frontend,
	    .events = {{"IDQ_UOPS_NOT_DELIVERED.CYCLES_0_UOPS_DELIV.CORE", 0x600019c, 0, 0},
		       {"IDQ_BUBBLES.CORE", 0x19c, 0, 0},
		       {"INT_MISC.UOP_DROPPING", 0x10ad, 0, EVENT_OPTIONAL},
		       SLOTS_TOO,
		       REFERENCE});

EVENT_GROUP(sapphire_memory, "memory", 3, "memory", topdown__stalls_by_level,
	    .parts = {"l1", "l2", "l3", "dram", "store"}, .whole = topdown__whole_stalls,
	    .events = {{"EXE_ACTIVITY.BOUND_ON_LOADS", 0x50021a6, 0, 0},
		       {"MEMORY_ACTIVITY.STALLS_L1D_MISS", 0x3000347, 0, 0},
		       {"MEMORY_ACTIVITY.STALLS_L2_MISS", 0x5000547, 0, 0},
		       {"MEMORY_ACTIVITY.STALLS_L3_MISS", 0x9000947, 0, 0},
		       {"EXE_ACTIVITY.BOUND_ON_STORES", 0x20040a6, 0, 0},
		       CYCLES_TOO,
		       REFERENCE});

static const struct event_group *const sapphire_groups[] = {
    &sapphire_level1, &sapphire_backend, &sapphire_frontend, &intel_bad_speculation, &sapphire_memory, NULL};

EVENT_CPU(event_cpu_spr, "SPR", "Intel Sapphire Rapids", 6, sapphire_groups, .instructions = INSTRUCTIONS,
	  .named = NAMED, .named_as = named_as);

EVENT_CPU(event_cpu_emr, "EMR", "Intel Emerald Rapids", 6, sapphire_groups, .instructions = INSTRUCTIONS,
	  .named = NAMED, .named_as = named_as);

EVENT_CPU(event_cpu_gnr, "GNR", "Intel Granite Rapids", 6, sapphire_groups, .instructions = INSTRUCTIONS,
	  .named = NAMED, .named_as = named_as);
