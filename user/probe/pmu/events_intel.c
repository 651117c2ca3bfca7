// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Intel server CPUs, from intel/perfmon. From Ice Lake on they use ordinary counters, not PERF_METRICS:
 * reading PERF_METRICS stops and clears it, and its fields have 8 bits.
 */
#include "probe/pmu/events_private.h"

#define INSTRUCTIONS                                                                                                   \
	{                                                                                                              \
		"INST_RETIRED.ANY_P", 0xc0, 0, EVENT_BUSY                                                              \
	}
#define CYCLES                                                                                                         \
	{                                                                                                              \
		"CPU_CLK_UNHALTED.THREAD_P", 0x3c, 0, EVENT_BUSY                                                       \
	}
#define REFERENCE                                                                                                      \
	{                                                                                                              \
		"CPU_CLK_UNHALTED.REF_TSC", 0x300, 0, EVENT_OPTIONAL | EVENT_REFERENCE | EVENT_BUSY                    \
	}
#define SLOTS                                                                                                          \
	{                                                                                                              \
		"TOPDOWN.SLOTS", 0x400, 0, EVENT_BUSY                                                                  \
	}

/* All time, for the groups of later stages: on fixed counters, and left out where even those are in use. */
#define CYCLES_TOO                                                                                                     \
	{                                                                                                              \
		"CPU_CLK_UNHALTED.THREAD_P", 0x3c, 0, EVENT_OPTIONAL | EVENT_BUSY                                      \
	}
#define SLOTS_TOO                                                                                                      \
	{                                                                                                              \
		"TOPDOWN.SLOTS", 0x400, 0, EVENT_OPTIONAL | EVENT_BUSY                                                 \
	}

static const char *const named_as[] = {"loads", "stores", NULL};

#define NAMED                                                                                                          \
	{                                                                                                              \
		{"MEM_INST_RETIRED.ALL_LOADS", 0x81d0, 0, 0}, {"MEM_INST_RETIRED.ALL_STORES", 0x82d0, 0, 0},           \
	}

static const struct event_group skylake_level1 = {.name = "top-down",
						  .stage = 1,
						  .parts = EVENT_PARTS_LEVEL1,
						  .formula = topdown__skylake,
						  .events = {CYCLES,
							     {"IDQ_UOPS_NOT_DELIVERED.CORE", 0x19c, 0, 0},
							     {"UOPS_ISSUED.ANY", 0x10e, 0, EVENT_BUSY},
							     {"UOPS_RETIRED.RETIRE_SLOTS", 0x2c2, 0, EVENT_BUSY},
							     {"INT_MISC.RECOVERY_CYCLES", 0x10d, 0, 0},
							     REFERENCE}};

static const struct event_group skylake_level1_smt = {
    .name = "top-down",
    .stage = 1,
    .parts = EVENT_PARTS_LEVEL1,
    .formula = topdown__skylake,
    .events = {{"CPU_CLK_UNHALTED.THREAD_P_ANY", 0x20003c, 0, EVENT_BUSY},
	       {"IDQ_UOPS_NOT_DELIVERED.CORE", 0x19c, 0, 0},
	       {"UOPS_ISSUED.ANY", 0x10e, 0, EVENT_BUSY},
	       {"UOPS_RETIRED.RETIRE_SLOTS", 0x2c2, 0, EVENT_BUSY},
	       {"INT_MISC.RECOVERY_CYCLES_ANY", 0x20010d, 0, 0},
	       REFERENCE}};

static const struct event_group skylake_backend = {.name = "backend",
						   .stage = 2,
						   .parent = "backend",
						   .parts = {"memory", "core"},
						   .formula = topdown__skylake_backend,
						   .events = {{"CYCLE_ACTIVITY.STALLS_MEM_ANY", 0x140014a3, 0, 0},
							      {"EXE_ACTIVITY.BOUND_ON_STORES", 0x40a6, 0, 0},
							      {"CYCLE_ACTIVITY.STALLS_TOTAL", 0x40004a3, 0, 0},
							      {"EXE_ACTIVITY.1_PORTS_UTIL", 0x2a6, 0, 0},
							      {"EXE_ACTIVITY.2_PORTS_UTIL", 0x4a6, 0, EVENT_OPTIONAL},
							      REFERENCE}};

static const struct event_group skylake_frontend = {
    .name = "frontend",
    .stage = 2,
    .parent = "frontend",
    .parts = {"fetch_latency", "fetch_bandwidth"},
    .formula = topdown__skylake_frontend,
    .whole = topdown__whole_slots,
    .events = {{"IDQ_UOPS_NOT_DELIVERED.CYCLES_0_UOPS_DELIV.CORE", 0x400019c, 0, 0},
	       {"IDQ_UOPS_NOT_DELIVERED.CORE", 0x19c, 0, 0},
	       CYCLES_TOO,
	       REFERENCE}};

static const struct event_group intel_bad_speculation = {
    .name = "bad_speculation",
    .stage = 2,
    .parent = "bad_speculation",
    .parts = {"branch_mispredicts", "machine_clears"},
    .formula = topdown__two_parts,
    .events = {{"BR_MISP_RETIRED.ALL_BRANCHES", 0xc5, 0, 0}, {"MACHINE_CLEARS.COUNT", 0x10401c3, 0, 0}, REFERENCE}};

static const struct event_group skylake_retiring = {
    .name = "retiring",
    .stage = 2,
    .parent = "retiring",
    .parts = {"heavy_operations", "light_operations"},
    .formula = topdown__skylake_retiring,
    .events = {{"UOPS_RETIRED.RETIRE_SLOTS", 0x2c2, 0, EVENT_BUSY}, {"UOPS_RETIRED.MACRO_FUSED", 0x4c2, 0, 0}}};

static const struct event_group skylake_memory = {.name = "memory",
						  .stage = 3,
						  .parent = "memory",
						  .parts = {"l1", "l2", "l3", "dram", "store"},
						  .formula = topdown__stalls_by_level,
						  .whole = topdown__whole_stalls,
						  .events = {{"CYCLE_ACTIVITY.STALLS_MEM_ANY", 0x140014a3, 0, 0},
							     {"CYCLE_ACTIVITY.STALLS_L1D_MISS", 0xc000ca3, 0, 0},
							     {"CYCLE_ACTIVITY.STALLS_L2_MISS", 0x50005a3, 0, 0},
							     {"CYCLE_ACTIVITY.STALLS_L3_MISS", 0x60006a3, 0, 0},
							     {"EXE_ACTIVITY.BOUND_ON_STORES", 0x40a6, 0, 0},
							     CYCLES_TOO,
							     REFERENCE}};

static const struct event_group skylake_l2_share = {.name = "l2_share",
						    .stage = 3,
						    .parent = "l2",
						    .parts = {"l2", "dram"},
						    .formula = topdown__l2_share,
						    .events = {{"MEM_LOAD_RETIRED.L2_HIT", 0x2d1, 0, 0},
							       {"MEM_LOAD_RETIRED.FB_HIT", 0x40d1, 0, 0},
							       {"MEM_LOAD_RETIRED.L1_MISS", 0x8d1, 0, 0},
							       {"L1D_PEND_MISS.FB_FULL", 0x248, 1, 0}}};

static const struct event_group *const skylake_groups[] = {
    &skylake_level1,   &skylake_backend, &skylake_frontend, &intel_bad_speculation,
    &skylake_retiring, &skylake_memory,	 &skylake_l2_share, NULL};

const struct event_cpu event_cpu_skx = {.name = "SKX",
					.title = "Intel Skylake-SP",
					.width = 4,
					.instructions = INSTRUCTIONS,
					.groups = skylake_groups,
					.stage1_smt = &skylake_level1_smt,
					.named = NAMED,
					.named_as = named_as};

const struct event_cpu event_cpu_clx = {.name = "CLX",
					.title = "Intel Cascade Lake-SP",
					.width = 4,
					.instructions = INSTRUCTIONS,
					.groups = skylake_groups,
					.stage1_smt = &skylake_level1_smt,
					.named = NAMED,
					.named_as = named_as};

static const struct event_group icelake_level1 = {.name = "top-down",
						  .stage = 1,
						  .parts = EVENT_PARTS_LEVEL1,
						  .formula = topdown__icelake,
						  .events = {SLOTS,
							     {"UOPS_RETIRED.SLOTS", 0x2c2, 0, EVENT_BUSY},
							     {"IDQ_UOPS_NOT_DELIVERED.CORE", 0x19c, 0, 0},
							     {"TOPDOWN.BACKEND_BOUND_SLOTS", 0x2a4, 0, 0},
							     {"INT_MISC.UOP_DROPPING", 0x100d, 0, EVENT_OPTIONAL},
							     REFERENCE}};

static const struct event_group icelake_backend = {.name = "backend",
						   .stage = 2,
						   .parent = "backend",
						   .parts = {"memory", "core"},
						   .formula = topdown__skylake_backend,
						   .events = {{"CYCLE_ACTIVITY.STALLS_MEM_ANY", 0x140014a3, 0, 0},
							      {"EXE_ACTIVITY.BOUND_ON_STORES", 0x20040a6, 0, 0},
							      {"CYCLE_ACTIVITY.STALLS_TOTAL", 0x40004a3, 0, 0},
							      {"EXE_ACTIVITY.1_PORTS_UTIL", 0x2a6, 0, 0},
							      {"EXE_ACTIVITY.2_PORTS_UTIL", 0x4a6, 0, EVENT_OPTIONAL},
							      REFERENCE}};

static const struct event_group icelake_frontend = {
    .name = "frontend",
    .stage = 2,
    .parent = "frontend",
    .parts = {"fetch_latency", "fetch_bandwidth"},
    .formula = topdown__icelake_frontend,
    .whole = topdown__whole_icelake_frontend,
    .events = {{"IDQ_UOPS_NOT_DELIVERED.CYCLES_0_UOPS_DELIV.CORE", 0x500019c, 0, 0},
	       {"IDQ_UOPS_NOT_DELIVERED.CORE", 0x19c, 0, 0},
	       {"INT_MISC.UOP_DROPPING", 0x100d, 0, EVENT_OPTIONAL},
	       SLOTS_TOO,
	       REFERENCE}};

static const struct event_group icelake_memory = {.name = "memory",
						  .stage = 3,
						  .parent = "memory",
						  .parts = {"l1", "l2", "l3", "dram", "store"},
						  .formula = topdown__stalls_by_level,
						  .whole = topdown__whole_stalls,
						  .events = {{"CYCLE_ACTIVITY.STALLS_MEM_ANY", 0x140014a3, 0, 0},
							     {"CYCLE_ACTIVITY.STALLS_L1D_MISS", 0xc000ca3, 0, 0},
							     {"CYCLE_ACTIVITY.STALLS_L2_MISS", 0x50005a3, 0, 0},
							     {"CYCLE_ACTIVITY.STALLS_L3_MISS", 0x60006a3, 0, 0},
							     {"EXE_ACTIVITY.BOUND_ON_STORES", 0x20040a6, 0, 0},
							     CYCLES_TOO,
							     REFERENCE}};

static const struct event_group icelake_l2_share = {.name = "l2_share",
						    .stage = 3,
						    .parent = "l2",
						    .parts = {"l2", "dram"},
						    .formula = topdown__l2_share,
						    .events = {{"MEM_LOAD_RETIRED.L2_HIT", 0x2d1, 0, 0},
							       {"MEM_LOAD_RETIRED.FB_HIT", 0x40d1, 0, 0},
							       {"MEM_LOAD_RETIRED.L1_MISS", 0x8d1, 0, 0},
							       {"L1D_PEND_MISS.FB_FULL_PERIODS", 0x1040248, 0, 0}}};

static const struct event_group *const icelake_groups[] = {&icelake_level1,
							   &icelake_backend,
							   &icelake_frontend,
							   &intel_bad_speculation,
							   &icelake_memory,
							   &icelake_l2_share,
							   NULL};

const struct event_cpu event_cpu_icx = {.name = "ICX",
					.title = "Intel Ice Lake-SP",
					.width = 5,
					.instructions = INSTRUCTIONS,
					.groups = icelake_groups,
					.named = NAMED,
					.named_as = named_as};

static const struct event_group sapphire_level1 = {.name = "top-down",
						   .stage = 1,
						   .parts = EVENT_PARTS_LEVEL1,
						   .formula = topdown__icelake,
						   .events = {SLOTS,
							      {"UOPS_RETIRED.SLOTS", 0x2c2, 0, EVENT_BUSY},
							      {"IDQ_BUBBLES.CORE", 0x19c, 0, 0},
							      {"TOPDOWN.BACKEND_BOUND_SLOTS", 0x2a4, 0, 0},
							      {"INT_MISC.UOP_DROPPING", 0x10ad, 0, EVENT_OPTIONAL},
							      REFERENCE}};

static const struct event_group sapphire_backend = {.name = "backend",
						    .stage = 2,
						    .parent = "backend",
						    .parts = {"memory", "core"},
						    .formula = topdown__part_of,
						    .whole = topdown__whole_second,
						    .events = {{"TOPDOWN.MEMORY_BOUND_SLOTS", 0x10a4, 0, 0},
							       {"TOPDOWN.BACKEND_BOUND_SLOTS", 0x2a4, 0, 0},
							       SLOTS_TOO,
							       REFERENCE}};

static const struct event_group sapphire_frontend = {
    .name = "frontend",
    .stage = 2,
    .parent = "frontend",
    .parts = {"fetch_latency", "fetch_bandwidth"},
    .formula = topdown__icelake_frontend,
    .whole = topdown__whole_icelake_frontend,
    .events = {{"IDQ_UOPS_NOT_DELIVERED.CYCLES_0_UOPS_DELIV.CORE", 0x600019c, 0, 0},
	       {"IDQ_BUBBLES.CORE", 0x19c, 0, 0},
	       {"INT_MISC.UOP_DROPPING", 0x10ad, 0, EVENT_OPTIONAL},
	       SLOTS_TOO,
	       REFERENCE}};

static const struct event_group sapphire_memory = {.name = "memory",
						   .stage = 3,
						   .parent = "memory",
						   .parts = {"l1", "l2", "l3", "dram", "store"},
						   .formula = topdown__stalls_by_level,
						   .whole = topdown__whole_stalls,
						   .events = {{"EXE_ACTIVITY.BOUND_ON_LOADS", 0x50021a6, 0, 0},
							      {"MEMORY_ACTIVITY.STALLS_L1D_MISS", 0x3000347, 0, 0},
							      {"MEMORY_ACTIVITY.STALLS_L2_MISS", 0x5000547, 0, 0},
							      {"MEMORY_ACTIVITY.STALLS_L3_MISS", 0x9000947, 0, 0},
							      {"EXE_ACTIVITY.BOUND_ON_STORES", 0x20040a6, 0, 0},
							      CYCLES_TOO,
							      REFERENCE}};

static const struct event_group *const sapphire_groups[] = {
    &sapphire_level1, &sapphire_backend, &sapphire_frontend, &intel_bad_speculation, &sapphire_memory, NULL};

const struct event_cpu event_cpu_spr = {.name = "SPR",
					.title = "Intel Sapphire Rapids",
					.width = 6,
					.instructions = INSTRUCTIONS,
					.groups = sapphire_groups,
					.named = NAMED,
					.named_as = named_as};

const struct event_cpu event_cpu_emr = {.name = "EMR",
					.title = "Intel Emerald Rapids",
					.width = 6,
					.instructions = INSTRUCTIONS,
					.groups = sapphire_groups,
					.named = NAMED,
					.named_as = named_as};

const struct event_cpu event_cpu_gnr = {.name = "GNR",
					.title = "Intel Granite Rapids",
					.width = 6,
					.instructions = INSTRUCTIONS,
					.groups = sapphire_groups,
					.named = NAMED,
					.named_as = named_as};
