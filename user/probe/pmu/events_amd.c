// SPDX-License-Identifier: GPL-2.0-or-later
/* AMD Zen 2 to 5, from the kernel's pmu-events. Bits 8-11 of an event's code are bits 32-35 of config. */
#include "probe/pmu/events_private.h"

#define INSTRUCTIONS EVENT("ex_ret_instr", 0xc0, 0, EVENT_BUSY)
#define CYCLES EVENT("ls_not_halted_cyc", 0x76, 0, EVENT_BUSY)

#define CYCLES_TOO EVENT("ls_not_halted_cyc", 0x76, 0, EVENT_OPTIONAL | EVENT_BUSY)

#define NO_SLOTS "this CPU counts no slots: shares are of cycles, and bad speculation is within backend"
#define BY_FILLS "shares of lines fetched, not of time"

EVENT_GROUP(zen2_level1, "top-down", 1, NULL, topdown__zen2, .approx = NO_SLOTS, .parts = TOPDOWN_LEVEL1_NAMES,
	    .events = {CYCLES, {"de_dis_uop_queue_empty_di0", 0xa9, 0, 0}, {"ex_ret_cops", 0xc1, 0, EVENT_BUSY}});

static const struct event_group *const zen2_groups[] = {&zen2_level1, NULL};

EVENT_CPU(event_cpu_zen2, "amdzen2", "AMD Zen 2", 6, zen2_groups, .instructions = INSTRUCTIONS);

EVENT_GROUP(zen3_level1, "top-down", 1, NULL, topdown__zen2, .approx = NO_SLOTS, .parts = TOPDOWN_LEVEL1_NAMES,
	    .events = {CYCLES, {"de_dis_uop_queue_empty_di0", 0xa9, 0, 0}, {"ex_ret_ops", 0xc1, 0, EVENT_BUSY}});

EVENT_GROUP(zen3_memory, "memory", 3, "memory", topdown__fills, .approx = BY_FILLS,
	    .parts = {"l2", "l3", "dram", "dram_far"},
	    .events = {{"ls_dmnd_fills_from_sys.lcl_l2", 0x143, 0, 0},
		       {"ls_dmnd_fills_from_sys.int_cache", 0x243, 0, 0},
		       {"ls_dmnd_fills_from_sys.mem_io_local", 0x843, 0, 0},
		       {"ls_dmnd_fills_from_sys.mem_io_remote", 0x4043, 0, 0}});

static const struct event_group *const zen3_groups[] = {&zen3_level1, &zen3_memory, NULL};

EVENT_CPU(event_cpu_zen3, "amdzen3", "AMD Zen 3", 6, zen3_groups, .instructions = INSTRUCTIONS);

EVENT_GROUP(zen4_level1, "top-down", 1, NULL, topdown__zen4, .parts = TOPDOWN_LEVEL1_NAMES,
	    .events = {CYCLES,
		       {"de_no_dispatch_per_slot.no_ops_from_frontend", 0x1000001a0, 0, 0},
		       {"de_no_dispatch_per_slot.backend_stalls", 0x100001ea0, 0, 0},
		       {"ex_ret_ops", 0xc1, 0, EVENT_BUSY}});

EVENT_GROUP(zen4_backend, "backend", 2, "backend", topdown__part_of, .parts = {"memory", "core"},
	    .events = {{"ex_no_retire.load_not_complete", 0xa2d6, 0, 0}, {"ex_no_retire.not_complete", 0x2d6, 0, 0}});

EVENT_GROUP(zen4_frontend, "frontend", 2, "frontend", topdown__zen4_frontend,
	    .parts = {"fetch_latency", "fetch_bandwidth"}, .whole = topdown__whole_slots,
	    .events = {{"de_no_dispatch_per_slot.no_ops_from_frontend", 0x1000001a0, 6, 0},
		       {"de_no_dispatch_per_slot.no_ops_from_frontend", 0x1000001a0, 0, 0},
		       CYCLES_TOO});

EVENT_GROUP(zen5_frontend, "frontend", 2, "frontend", topdown__zen4_frontend,
	    .parts = {"fetch_latency", "fetch_bandwidth"}, .whole = topdown__whole_slots,
	    .events = {{"de_no_dispatch_per_slot.no_ops_from_frontend", 0x1000001a0, 8, 0},
		       {"de_no_dispatch_per_slot.no_ops_from_frontend", 0x1000001a0, 0, 0},
		       CYCLES_TOO});

EVENT_GROUP(zen4_bad_speculation, "bad_speculation", 2, "bad_speculation", topdown__two_parts,
	    .parts = {"branch_mispredicts", "machine_clears"},
	    .events = {{"ex_ret_brn_misp", 0xc3, 0, 0}, {"resyncs_or_nc_redirects", 0x96, 0, 0}});

EVENT_GROUP(zen5_bad_speculation, "bad_speculation", 2, "bad_speculation", topdown__two_parts,
	    .parts = {"branch_mispredicts", "machine_clears"},
	    .events = {{"ex_ret_brn_misp", 0xc3, 0, 0}, {"bp_redirects.resync", 0x19f, 0, 0}});

EVENT_GROUP(zen4_retiring, "retiring", 2, "retiring", topdown__part_of, .parts = {"microcode", "fastpath"},
	    .events = {{"ex_ret_ucode_ops", 0x1000000c2, 0, 0}, {"ex_ret_ops", 0xc1, 0, EVENT_BUSY}});

EVENT_GROUP(zen4_memory, "memory", 3, "memory", topdown__fills, .approx = BY_FILLS,
	    .parts = {"l2", "l3", "dram", "dram_far"},
	    .events = {{"ls_dmnd_fills_from_sys.local_l2", 0x143, 0, 0},
		       {"ls_dmnd_fills_from_sys.local_ccx", 0x243, 0, 0},
		       {"ls_dmnd_fills_from_sys.dram_io_near", 0x843, 0, 0},
		       {"ls_dmnd_fills_from_sys.dram_io_far", 0x4043, 0, 0}});

static const struct event_group *const zen4_groups[] = {
    &zen4_level1, &zen4_backend, &zen4_frontend, &zen4_bad_speculation, &zen4_retiring, &zen4_memory, NULL};
static const struct event_group *const zen5_groups[] = {
    &zen4_level1, &zen4_backend, &zen5_frontend, &zen5_bad_speculation, &zen4_retiring, &zen4_memory, NULL};

EVENT_CPU(event_cpu_zen4, "amdzen4", "AMD Zen 4", 6, zen4_groups, .instructions = INSTRUCTIONS);

EVENT_CPU(event_cpu_zen5, "amdzen5", "AMD Zen 5", 8, zen5_groups, .instructions = INSTRUCTIONS);
