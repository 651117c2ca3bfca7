/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sleep of vaprod's loop: hits end it, each once. With a map and a program of its own in place of the object's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include <bpf/bpf.h>
#include <poll.h>

#include "daemon/sleeper.h"
#include "probe/bpf/kernel_side.h"

#define LONG_NS 600000000000L /* a sleep that is not ended fails by the runner's limit */

static int map = -1;
static uint32_t wake_hits;
static const struct kernel_shared shared = {.wake_hits = &wake_hits};

int kernel_side__map(struct kernel_side *side, enum kernel_map of)
{
	(void)side;
	assert_int_equal(of, KERNEL_MAP_WAKES);
	return map;
}

const struct kernel_shared *kernel_side__shared(const struct kernel_side *side)
{
	(void)side;
	return &shared;
}

/* Wakes as note_busy() does. */
static void wake(void)
{
	const struct bpf_insn insns[] = {
	    {.code = BPF_ST | BPF_MEM | BPF_W, .dst_reg = BPF_REG_10, .off = -4, .imm = 7},
	    {.code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = BPF_REG_1, .src_reg = BPF_PSEUDO_MAP_FD, .imm = map},
	    {0},
	    {.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_2, .src_reg = BPF_REG_10},
	    {.code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = BPF_REG_2, .imm = -4},
	    {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_3, .imm = 4},
	    {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_4, .imm = BPF_RB_FORCE_WAKEUP},
	    {.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_ringbuf_output},
	    {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
	    {.code = BPF_JMP | BPF_EXIT},
	};
	char packet[64] = {0};
	LIBBPF_OPTS(bpf_test_run_opts, run, .data_in = packet, .data_size_in = sizeof(packet));
	int program =
	    bpf_prog_load(BPF_PROG_TYPE_SOCKET_FILTER, "wake", "GPL", insns, sizeof(insns) / sizeof(*insns), NULL);

	assert_true(program >= 0);
	assert_int_equal(bpf_prog_test_run_opts(program, &run), 0);
	close(program);
}

static bool is_readable(void)
{
	struct pollfd fd = {.fd = map, .events = POLLIN};

	return poll(&fd, 1, 0) > 0;
}

static void a_wake_ends_one_sleep(void **state)
{
	struct sleeper *sleeper;

	(void)state;
	map = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "wakes", 0, 0, (uint32_t)sysconf(_SC_PAGESIZE), NULL);
	if (map < 0)
		skip(); /* no privilege */
	sleeper = sleeper__new(NULL, NULL);
	assert_non_null(sleeper);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 400; i++) /* more than a small ring has room for */
			wake();
		assert_true(is_readable());
		sleeper__sleep(sleeper, LONG_NS);
		assert_false(is_readable()); /* the next sleep lasts */
	}
	sleeper__sleep(sleeper, 1000000);
	sleeper__free(sleeper);
	close(map);
}

static void hits_that_cost_four_milliseconds_wake(void **state)
{
	struct sleeper *sleeper;

	(void)state;
	map = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "wakes", 0, 0, (uint32_t)sysconf(_SC_PAGESIZE), NULL);
	if (map < 0)
		skip();
	sleeper = sleeper__new(NULL, NULL);
	assert_non_null(sleeper);
	sleeper__set_costs(sleeper, &(struct costs){.call_ns = 8000}); /* of two hits */
	assert_int_equal(wake_hits, 1000);
	sleeper__set_costs(sleeper, &(struct costs){0}); /* not known */
	assert_int_equal(wake_hits, 0);
	sleeper__set_costs(sleeper, &(struct costs){.call_ns = 1e-6});
	assert_int_equal(wake_hits, UINT32_MAX);
	sleeper__free(sleeper);
	close(map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_wake_ends_one_sleep),
	    cmocka_unit_test(hits_that_cost_four_milliseconds_wake),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
