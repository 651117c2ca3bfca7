// SPDX-License-Identifier: GPL-2.0-or-later
/* AMD Zen 2 to 5, from the kernel's pmu-events. Bits 8-11 of an event's code are bits 32-35 of config. */
#include "probe/pmu/events_private.h"

#define INSTRUCTIONS                                                                                                   \
	{                                                                                                              \
		"ex_ret_instr", 0xc0, 0, EVENT_BUSY                                                                    \
	}
#define CYCLES                                                                                                         \
	{                                                                                                              \
		"ls_not_halted_cyc", 0x76, 0, EVENT_BUSY                                                               \
	}

#define CYCLES_TOO                                                                                                     \
	{                                                                                                              \
		"ls_not_halted_cyc", 0x76, 0, EVENT_OPTIONAL | EVENT_BUSY                                              \
	}

#define NO_SLOTS "this CPU counts no slots: shares are of cycles, and bad speculation is within backend"
#define BY_FILLS "shares of lines fetched, not of time"

static const struct event_group zen2_level1 = {
    .name = "top-down",
    .stage = 1,
    .approx = NO_SLOTS,
    .parts = EVENT_PARTS_LEVEL1,
    .formula = topdown__zen2,
    .events = {CYCLES, {"de_dis_uop_queue_empty_di0", 0xa9, 0, 0}, {"ex_ret_cops", 0xc1, 0, EVENT_BUSY}}};

static const struct event_group *const zen2_groups[] = {&zen2_level1, NULL};

const struct event_cpu event_cpu_zen2 = {
    .name = "amdzen2", .title = "AMD Zen 2", .width = 6, .instructions = INSTRUCTIONS, .groups = zen2_groups};

static const struct event_group zen3_level1 = {
    .name = "top-down",
    .stage = 1,
    .approx = NO_SLOTS,
    .parts = EVENT_PARTS_LEVEL1,
    .formula = topdown__zen2,
    .events = {CYCLES, {"de_dis_uop_queue_empty_di0", 0xa9, 0, 0}, {"ex_ret_ops", 0xc1, 0, EVENT_BUSY}}};

static const struct event_group zen3_memory = {.name = "memory",
					       .stage = 3,
					       .parent = "memory",
					       .approx = BY_FILLS,
					       .parts = {"l2", "l3", "dram", "dram_far"},
					       .formula = topdown__fills,
					       .events = {{"ls_dmnd_fills_from_sys.lcl_l2", 0x143, 0, 0},
							  {"ls_dmnd_fills_from_sys.int_cache", 0x243, 0, 0},
							  {"ls_dmnd_fills_from_sys.mem_io_local", 0x843, 0, 0},
							  {"ls_dmnd_fills_from_sys.mem_io_remote", 0x4043, 0, 0}}};

static const struct event_group *const zen3_groups[] = {&zen3_level1, &zen3_memory, NULL};

const struct event_cpu event_cpu_zen3 = {
    .name = "amdzen3", .title = "AMD Zen 3", .width = 6, .instructions = INSTRUCTIONS, .groups = zen3_groups};

static const struct event_group zen4_level1 = {
    .name = "top-down",
    .stage = 1,
    .parts = EVENT_PARTS_LEVEL1,
    .formula = topdown__zen4,
    .events = {CYCLES,
	       {"de_no_dispatch_per_slot.no_ops_from_frontend", 0x1000001a0, 0, 0},
	       {"de_no_dispatch_per_slot.backend_stalls", 0x100001ea0, 0, 0},
	       {"ex_ret_ops", 0xc1, 0, EVENT_BUSY}}};

static const struct event_group zen4_backend = {
    .name = "backend",
    .stage = 2,
    .parent = "backend",
    .parts = {"memory", "core"},
    .formula = topdown__part_of,
    .events = {{"ex_no_retire.load_not_complete", 0xa2d6, 0, 0}, {"ex_no_retire.not_complete", 0x2d6, 0, 0}}};

static const struct event_group zen4_frontend = {
    .name = "frontend",
    .stage = 2,
    .parent = "frontend",
    .parts = {"fetch_latency", "fetch_bandwidth"},
    .formula = topdown__zen4_frontend,
    .whole = topdown__whole_slots,
    .events = {{"de_no_dispatch_per_slot.no_ops_from_frontend", 0x1000001a0, 6, 0},
	       {"de_no_dispatch_per_slot.no_ops_from_frontend", 0x1000001a0, 0, 0},
	       CYCLES_TOO}};

static const struct event_group zen5_frontend = {
    .name = "frontend",
    .stage = 2,
    .parent = "frontend",
    .parts = {"fetch_latency", "fetch_bandwidth"},
    .formula = topdown__zen4_frontend,
    .whole = topdown__whole_slots,
    .events = {{"de_no_dispatch_per_slot.no_ops_from_frontend", 0x1000001a0, 8, 0},
	       {"de_no_dispatch_per_slot.no_ops_from_frontend", 0x1000001a0, 0, 0},
	       CYCLES_TOO}};

static const struct event_group zen4_bad_speculation = {
    .name = "bad_speculation",
    .stage = 2,
    .parent = "bad_speculation",
    .parts = {"branch_mispredicts", "machine_clears"},
    .formula = topdown__two_parts,
    .events = {{"ex_ret_brn_misp", 0xc3, 0, 0}, {"resyncs_or_nc_redirects", 0x96, 0, 0}}};

static const struct event_group zen5_bad_speculation = {
    .name = "bad_speculation",
    .stage = 2,
    .parent = "bad_speculation",
    .parts = {"branch_mispredicts", "machine_clears"},
    .formula = topdown__two_parts,
    .events = {{"ex_ret_brn_misp", 0xc3, 0, 0}, {"bp_redirects.resync", 0x19f, 0, 0}}};

static const struct event_group zen4_retiring = {
    .name = "retiring",
    .stage = 2,
    .parent = "retiring",
    .parts = {"microcode", "fastpath"},
    .formula = topdown__part_of,
    .events = {{"ex_ret_ucode_ops", 0x1000000c2, 0, 0}, {"ex_ret_ops", 0xc1, 0, EVENT_BUSY}}};

static const struct event_group zen4_memory = {.name = "memory",
					       .stage = 3,
					       .parent = "memory",
					       .approx = BY_FILLS,
					       .parts = {"l2", "l3", "dram", "dram_far"},
					       .formula = topdown__fills,
					       .events = {{"ls_dmnd_fills_from_sys.local_l2", 0x143, 0, 0},
							  {"ls_dmnd_fills_from_sys.local_ccx", 0x243, 0, 0},
							  {"ls_dmnd_fills_from_sys.dram_io_near", 0x843, 0, 0},
							  {"ls_dmnd_fills_from_sys.dram_io_far", 0x4043, 0, 0}}};

static const struct event_group *const zen4_groups[] = {
    &zen4_level1, &zen4_backend, &zen4_frontend, &zen4_bad_speculation, &zen4_retiring, &zen4_memory, NULL};
static const struct event_group *const zen5_groups[] = {
    &zen4_level1, &zen4_backend, &zen5_frontend, &zen5_bad_speculation, &zen4_retiring, &zen4_memory, NULL};

const struct event_cpu event_cpu_zen4 = {
    .name = "amdzen4", .title = "AMD Zen 4", .width = 6, .instructions = INSTRUCTIONS, .groups = zen4_groups};

const struct event_cpu event_cpu_zen5 = {
    .name = "amdzen5", .title = "AMD Zen 5", .width = 8, .instructions = INSTRUCTIONS, .groups = zen5_groups};
