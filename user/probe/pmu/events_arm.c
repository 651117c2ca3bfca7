// SPDX-License-Identifier: GPL-2.0-or-later
/* Arm Neoverse, from Arm's telemetry data; Fujitsu A64FX, which accounts cycles by what held up commits. */
#include "probe/pmu/events_private.h"

#define INSTRUCTIONS                                                                                                   \
	{                                                                                                              \
		"INST_RETIRED", 0x8, 0, EVENT_BUSY                                                                     \
	}
#define CYCLES                                                                                                         \
	{                                                                                                              \
		"CPU_CYCLES", 0x11, 0, EVENT_BUSY                                                                      \
	}
#define CYCLES_TOO                                                                                                     \
	{                                                                                                              \
		"CPU_CYCLES", 0x11, 0, EVENT_OPTIONAL | EVENT_BUSY                                                     \
	}
#define SLOT_EVENTS                                                                                                    \
	CYCLES, {"STALL_SLOT_FRONTEND", 0x3e, 0, 0}, {"STALL_SLOT_BACKEND", 0x3d, 0, 0},                               \
	    {"OP_RETIRED", 0x3a, 0, EVENT_BUSY},                                                                       \
	{                                                                                                              \
		"OP_SPEC", 0x3b, 0, EVENT_BUSY                                                                         \
	}
#define MISPREDICTED                                                                                                   \
	{                                                                                                              \
		"BR_MIS_PRED", 0x10, 0, 0                                                                              \
	}

static const struct event_group n1_level1 = {
    .name = "top-down",
    .stage = 1,
    .approx = "this CPU counts no slots: shares are of cycles",
    .parts = EVENT_PARTS_LEVEL1,
    .formula = topdown__neoverse_n1,
    .events = {
	CYCLES, {"STALL_FRONTEND", 0x23, 0, 0}, {"STALL_BACKEND", 0x24, 0, 0}, {"INST_SPEC", 0x1b, 0, EVENT_BUSY}}};

static const struct event_group *const n1_groups[] = {&n1_level1, NULL};

const struct event_cpu event_cpu_n1 = {
    .name = "neoverse_n1", .title = "Arm Neoverse N1", .width = 4, .instructions = INSTRUCTIONS, .groups = n1_groups};

static const struct event_group memory = {
    .name = "backend",
    .stage = 2,
    .parent = "backend",
    .parts = {"memory", "core"},
    .formula = topdown__part_of,
    .whole = topdown__whole_second,
    .events = {{"STALL_BACKEND_MEM", 0x4005, 0, 0}, {"STALL_BACKEND", 0x24, 0, 0}, CYCLES_TOO}};

static const struct event_group v1_level1 = {.name = "top-down",
					     .stage = 1,
					     .parts = EVENT_PARTS_LEVEL1,
					     .formula = topdown__neoverse_v1,
					     .events = {SLOT_EVENTS, MISPREDICTED}};
static const struct event_group v2_level1 = {.name = "top-down",
					     .stage = 1,
					     .parts = EVENT_PARTS_LEVEL1,
					     .formula = topdown__neoverse_v2,
					     .events = {SLOT_EVENTS, MISPREDICTED}};
static const struct event_group n2_early_level1 = {.name = "top-down",
						   .stage = 1,
						   .parts = EVENT_PARTS_LEVEL1,
						   .formula = topdown__neoverse_n2_early,
						   .events = {SLOT_EVENTS, MISPREDICTED}};
static const struct event_group v3_level1 = {.name = "top-down",
					     .stage = 1,
					     .parts = EVENT_PARTS_LEVEL1,
					     .formula = topdown__neoverse_v3,
					     .events = {SLOT_EVENTS, {"STALL_FRONTEND_FLUSH", 0x8162, 0, 0}}};

static const struct event_group *const v1_groups[] = {&v1_level1, &memory, NULL};
static const struct event_group *const v2_groups[] = {&v2_level1, &memory, NULL};
static const struct event_group *const n2_early_groups[] = {&n2_early_level1, &memory, NULL};
static const struct event_group *const v3_groups[] = {&v3_level1, &memory, NULL};

const struct event_cpu event_cpu_v1 = {
    .name = "neoverse_v1", .title = "Arm Neoverse V1", .width = 8, .instructions = INSTRUCTIONS, .groups = v1_groups};
const struct event_cpu event_cpu_n2 = {
    .name = "neoverse_n2", .title = "Arm Neoverse N2", .width = 5, .instructions = INSTRUCTIONS, .groups = v2_groups};
const struct event_cpu event_cpu_n2_early = {.name = "neoverse_n2",
					     .title = "Arm Neoverse N2 (up to r0p2)",
					     .width = 5,
					     .instructions = INSTRUCTIONS,
					     .groups = n2_early_groups};
const struct event_cpu event_cpu_v2 = {
    .name = "neoverse_v2", .title = "Arm Neoverse V2", .width = 8, .instructions = INSTRUCTIONS, .groups = v2_groups};
const struct event_cpu event_cpu_n3 = {
    .name = "neoverse_n3", .title = "Arm Neoverse N3", .width = 5, .instructions = INSTRUCTIONS, .groups = v3_groups};
const struct event_cpu event_cpu_v3 = {
    .name = "neoverse_v3", .title = "Arm Neoverse V3", .width = 10, .instructions = INSTRUCTIONS, .groups = v3_groups};

static const struct event_group a64fx_level1 = {.name = "top-down",
						.stage = 1,
						.parts = EVENT_PARTS_LEVEL1,
						.formula = topdown__a64fx,
						.events = {CYCLES,
							   {"_0INST_COMMIT", 0x190, 0, 0},
							   {"LD_COMP_WAIT", 0x184, 0, 0},
							   {"EU_COMP_WAIT", 0x189, 0, 0},
							   {"BR_COMP_WAIT", 0x18b, 0, 0}}};

static const struct event_group a64fx_backend = {
    .name = "backend",
    .stage = 2,
    .parent = "backend",
    .parts = {"memory", "core"},
    .formula = topdown__two_parts,
    .whole = topdown__whole_a64fx_backend,
    .events = {{"LD_COMP_WAIT", 0x184, 0, 0}, {"EU_COMP_WAIT", 0x189, 0, 0}, CYCLES_TOO}};

static const struct event_group a64fx_core = {.name = "core",
					      .stage = 3,
					      .parent = "core",
					      .parts = {"floating_point", "integer"},
					      .formula = topdown__part_of,
					      .events = {{"FL_COMP_WAIT", 0x18a, 0, 0}, {"EU_COMP_WAIT", 0x189, 0, 0}}};

static const struct event_group a64fx_memory = {.name = "memory",
						.stage = 3,
						.parent = "memory",
						.parts = {"l1", "l2", "dram"},
						.formula = topdown__a64fx_memory,
						.whole = topdown__whole_a64fx_memory,
						.events = {{"LD_COMP_WAIT", 0x184, 0, 0},
							   {"LD_COMP_WAIT_L1_MISS", 0x182, 0, 0},
							   {"LD_COMP_WAIT_L2_MISS", 0x180, 0, 0},
							   CYCLES_TOO}};

static const struct event_group *const a64fx_groups[] = {&a64fx_level1, &a64fx_backend, &a64fx_memory, &a64fx_core,
							 NULL};

const struct event_cpu event_cpu_a64fx = {
    .name = "a64fx", .title = "Fujitsu A64FX", .width = 4, .instructions = INSTRUCTIONS, .groups = a64fx_groups};
