// SPDX-License-Identifier: GPL-2.0-or-later
/* Arm Neoverse, from Arm's telemetry data; Fujitsu A64FX, which accounts cycles by what held up commits. */
#include "probe/pmu/events_private.h"

#define INSTRUCTIONS EVENT("INST_RETIRED", 0x8, 0, EVENT_BUSY)
#define CYCLES EVENT("CPU_CYCLES", 0x11, 0, EVENT_BUSY)
#define CYCLES_TOO EVENT("CPU_CYCLES", 0x11, 0, EVENT_OPTIONAL | EVENT_BUSY)
#define SLOT_EVENTS                                                                                                    \
	CYCLES, {"STALL_SLOT_FRONTEND", 0x3e, 0, 0}, {"STALL_SLOT_BACKEND", 0x3d, 0, 0},                               \
	    {"OP_RETIRED", 0x3a, 0, EVENT_BUSY},                                                                       \
	{                                                                                                              \
		"OP_SPEC", 0x3b, 0, EVENT_BUSY                                                                         \
	}
#define MISPREDICTED EVENT("BR_MIS_PRED", 0x10, 0, 0)

EVENT_GROUP(n1_level1, "top-down", 1, NULL, topdown__neoverse_n1,
	    .approx = "this CPU counts no slots: shares are of cycles", .parts = TOPDOWN_LEVEL1_NAMES,
	    .events = {CYCLES,
		       {"STALL_FRONTEND", 0x23, 0, 0},
		       {"STALL_BACKEND", 0x24, 0, 0},
		       {"INST_SPEC", 0x1b, 0, EVENT_BUSY}});

static const struct event_group *const n1_groups[] = {&n1_level1, NULL};

EVENT_CPU(event_cpu_n1, "neoverse_n1", "Arm Neoverse N1", 4, n1_groups, .instructions = INSTRUCTIONS);

EVENT_GROUP(memory, "backend", 2, "backend", topdown__part_of, .parts = {"memory", "core"},
	    .whole = topdown__whole_second,
	    .events = {{"STALL_BACKEND_MEM", 0x4005, 0, 0}, {"STALL_BACKEND", 0x24, 0, 0}, CYCLES_TOO});

EVENT_GROUP(v1_level1, "top-down", 1, NULL, topdown__neoverse_v1, .parts = TOPDOWN_LEVEL1_NAMES,
	    .events = {SLOT_EVENTS, MISPREDICTED});
EVENT_GROUP(v2_level1, "top-down", 1, NULL, topdown__neoverse_v2, .parts = TOPDOWN_LEVEL1_NAMES,
	    .events = {SLOT_EVENTS, MISPREDICTED});
EVENT_GROUP(n2_early_level1, "top-down", 1, NULL, topdown__neoverse_n2_early, .parts = TOPDOWN_LEVEL1_NAMES,
	    .events = {SLOT_EVENTS, MISPREDICTED});
EVENT_GROUP(v3_level1, "top-down", 1, NULL, topdown__neoverse_v3, .parts = TOPDOWN_LEVEL1_NAMES,
	    .events = {SLOT_EVENTS, {"STALL_FRONTEND_FLUSH", 0x8162, 0, 0}});

static const struct event_group *const v1_groups[] = {&v1_level1, &memory, NULL};
static const struct event_group *const v2_groups[] = {&v2_level1, &memory, NULL};
static const struct event_group *const n2_early_groups[] = {&n2_early_level1, &memory, NULL};
static const struct event_group *const v3_groups[] = {&v3_level1, &memory, NULL};

EVENT_CPU(event_cpu_v1, "neoverse_v1", "Arm Neoverse V1", 8, v1_groups, .instructions = INSTRUCTIONS);
EVENT_CPU(event_cpu_n2, "neoverse_n2", "Arm Neoverse N2", 5, v2_groups, .instructions = INSTRUCTIONS);
EVENT_CPU(event_cpu_n2_early, "neoverse_n2", "Arm Neoverse N2 (up to r0p2)", 5, n2_early_groups,
	  .instructions = INSTRUCTIONS);
EVENT_CPU(event_cpu_v2, "neoverse_v2", "Arm Neoverse V2", 8, v2_groups, .instructions = INSTRUCTIONS);
EVENT_CPU(event_cpu_n3, "neoverse_n3", "Arm Neoverse N3", 5, v3_groups, .instructions = INSTRUCTIONS);
EVENT_CPU(event_cpu_v3, "neoverse_v3", "Arm Neoverse V3", 10, v3_groups, .instructions = INSTRUCTIONS);

EVENT_GROUP(a64fx_level1, "top-down", 1, NULL, topdown__a64fx, .parts = TOPDOWN_LEVEL1_NAMES,
	    .events = {CYCLES,
		       {"_0INST_COMMIT", 0x190, 0, 0},
		       {"LD_COMP_WAIT", 0x184, 0, 0},
		       {"EU_COMP_WAIT", 0x189, 0, 0},
		       {"BR_COMP_WAIT", 0x18b, 0, 0}});

EVENT_GROUP(a64fx_backend, "backend", 2, "backend", topdown__two_parts, .parts = {"memory", "core"},
	    .whole = topdown__whole_a64fx_backend,
	    .events = {{"LD_COMP_WAIT", 0x184, 0, 0}, {"EU_COMP_WAIT", 0x189, 0, 0}, CYCLES_TOO});

EVENT_GROUP(a64fx_core, "core", 3, "core", topdown__part_of, .parts = {"floating_point", "integer"},
	    .events = {{"FL_COMP_WAIT", 0x18a, 0, 0}, {"EU_COMP_WAIT", 0x189, 0, 0}});

EVENT_GROUP(a64fx_memory, "memory", 3, "memory", topdown__a64fx_memory, .parts = {"l1", "l2", "dram"},
	    .whole = topdown__whole_a64fx_memory,
	    .events = {{"LD_COMP_WAIT", 0x184, 0, 0},
		       {"LD_COMP_WAIT_L1_MISS", 0x182, 0, 0},
		       {"LD_COMP_WAIT_L2_MISS", 0x180, 0, 0},
		       CYCLES_TOO});

static const struct event_group *const a64fx_groups[] = {&a64fx_level1, &a64fx_backend, &a64fx_memory, &a64fx_core,
							 NULL};

EVENT_CPU(event_cpu_a64fx, "a64fx", "Fujitsu A64FX", 4, a64fx_groups, .instructions = INSTRUCTIONS);
