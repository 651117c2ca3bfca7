/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kernel side's decisions about calls, bundles and records, compiled natively. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "../../bpf/logic.h"

static void cells_are_log_linear(void **state)
{
	uint16_t last = 0;

	(void)state;
	assert_int_equal(cell_of(0), 0);
	assert_int_equal(cell_of(7), 7);
	assert_int_equal(cell_of(8), 8);
	assert_int_equal(cell_of(15), 15);
	assert_int_equal(cell_of(16), cell_of(17));
	for (uint64_t v = 1; v < 1ULL << 60; v += v / 7 + 1) {
		uint16_t cell = cell_of(v);

		assert_true(cell >= last);
		last = cell;
		/* same cell means within an eighth */
		if (v >= 8)
			assert_true(cell_of(v + v / 8 + 1) > cell);
	}
	assert_true(cell_of(UINT64_MAX) < 512);
}

static void computation_is_open_between_calls(void **state)
{
	struct bpf_thread_state thread = {.open = KERNEL_NOTHING};

	(void)state;
	assert_false(computes(&thread)); /* before the first call */
	thread.vertex = 3;
	assert_true(computes(&thread));
	for (uint32_t open = KERNEL_CALL; open <= KERNEL_WAIT; open++) {
		thread.open = open;
		assert_false(computes(&thread));
	}
}

static void nesting_follows_the_stack_pointer(void **state)
{
	struct bpf_thread_state thread = {.open = KERNEL_NOTHING, .sp = 1000};

	(void)state;
	assert_int_equal(nest(&thread, 900, 0, 0), NEST_OUTER);
	thread.open = KERNEL_CALL;
	assert_int_equal(nest(&thread, 900, 0, 0), NEST_INNER);
	assert_int_equal(nest(&thread, 1000, 0, 0), NEST_VANISHED); /* the same frame again: it never returned */
	assert_int_equal(nest(&thread, 1100, 0, 0), NEST_VANISHED);
	assert_int_equal(nest(&thread, 900, 77, 77), NEST_INNER);
	assert_int_equal(nest(&thread, 900, 12, 77), NEST_VANISHED);		/* its slot was written over */
	assert_int_equal(nest(&thread, 1000, 12, 77), NEST_VANISHED);		/* by this call's return address */
	assert_int_equal(nest(&thread, 1000, 77, 77), NEST_INNER);		/* a tail call: it returns for both */
	assert_int_equal(nest(&thread, 1100, 77, 77), NEST_VANISHED);		/* left by longjmp */
	assert_int_equal(nest(&thread, 1000 + STACK_NEAR, 77, 77), NEST_INNER); /* another stack */
}

static void tail_calls_belong_to_their_call(void **state)
{
	struct bpf_thread_state thread = {.open = KERNEL_CALL, .sp = 1000};

	(void)state;
	/* the same frame, its slot still the kernel's: a jump out of the open call */
	assert_int_equal(nest(&thread, 1000, 77, 77), NEST_INNER);
	/* a new call from the same place has put its return address in the slot */
	assert_int_equal(nest(&thread, 1000, 12, 77), NEST_VANISHED);
	assert_int_equal(nest(&thread, 1000, 77, 0), NEST_VANISHED); /* trampoline not known yet */
	assert_int_equal(nest(&thread, 1008, 77, 77), NEST_VANISHED);

	/* with exits at sites the slot holds the return address, before and after */
	thread.own_sites = 1;
	assert_int_equal(nest(&thread, 1000, 77, 77), NEST_VANISHED);
	assert_int_equal(nest(&thread, 900, 77, 77), NEST_INNER);
	assert_int_equal(nest(&thread, 900, 12, 77), NEST_VANISHED);

	/* any event ends a wait */
	thread.open = KERNEL_WAIT;
	assert_int_equal(nest(&thread, 900, 0, 0), NEST_OUTER);
}

static void merging_keeps_sums_and_bounds(void **state)
{
	struct kernel_bundle a = {.start_ns = 10,
				  .end_ns = 20,
				  .sum_ns = 10,
				  .min_ns = 10,
				  .max_ns = 10,
				  .bytes_min = 8,
				  .bytes_max = 8,
				  .first_call = 5,
				  .last_call = 5,
				  .n = 1,
				  .counts = {.preempted_ns = 3, .minor_faults = 1}};
	struct kernel_bundle b = {.start_ns = 30,
				  .end_ns = 34,
				  .sum_ns = 4,
				  .min_ns = 4,
				  .max_ns = 4,
				  .bytes_min = 4,
				  .bytes_max = 16,
				  .first_call = 7,
				  .last_call = 7,
				  .n = 1,
				  .counts = {.preempted_ns = 2, .minor_faults = 2}};

	(void)state;
	bundle_merge(&a, &b);
	assert_int_equal(a.start_ns, 10);
	assert_int_equal(a.end_ns, 34);
	assert_int_equal(a.sum_ns, 14);
	assert_int_equal(a.min_ns, 4);
	assert_int_equal(a.max_ns, 10);
	assert_int_equal(a.bytes_min, 4);
	assert_int_equal(a.bytes_max, 16);
	assert_int_equal(a.first_call, 5);
	assert_int_equal(a.last_call, 7);
	assert_int_equal(a.n, 2);
	assert_int_equal(a.counts.preempted_ns, 5);
	assert_int_equal(a.counts.minor_faults, 3);
}

/* Returns one fragment as a bundle of its own. */
static struct kernel_bundle alone(uint64_t start, uint64_t end, uint64_t bytes, uint64_t call,
				  const struct kernel_counts *counts)
{
	struct kernel_bundle one = {.start_ns = start,
				    .end_ns = end,
				    .sum_ns = end - start,
				    .min_ns = end - start,
				    .max_ns = end - start,
				    .bytes_min = bytes,
				    .bytes_max = bytes,
				    .first_call = call,
				    .last_call = call,
				    .n = 1};

	if (counts)
		one.counts = *counts;
	return one;
}

static void adding_a_fragment_is_merging_its_bundle(void **state)
{
	struct kernel_counts counts;
	struct kernel_bundle added = alone(100, 150, 64, 7, NULL), merged = added;
	uint64_t start = 200;

	(void)state;
	for (size_t i = 0; i < sizeof(counts) / sizeof(uint64_t); i++)
		((uint64_t *)&counts)[i] = i + 1;
	for (uint64_t i = 0; i < 50; i++) {
		uint64_t duration = i * 37 % 101, bytes = i * 53 % 127, end = start + duration;
		const struct kernel_counts *what = i % 3 ? NULL : &counts;
		struct kernel_bundle one = alone(start, end, bytes, 8 + i, what);

		bundle_add(&added, start, end, bytes, 8 + i);
		if (what)
			counts_sum(&added.counts, what);
		bundle_merge(&merged, &one);
		assert_memory_equal(&added, &merged, sizeof(added));
		start = end;
	}
	assert_int_equal(added.n, 51);
	assert_int_equal(added.counts.migrations, counts.migrations * 17);
}

static void vertices_differ_by_any_byte(void **state)
{
	struct kernel_vertex_key a, b;

	(void)state;
	memset(&a, 0x5a, sizeof(a));
	b = a;
	assert_true(same_vertex(&a, &b));
	for (size_t i = 0; i < sizeof(a); i++) {
		((char *)&b)[i]++;
		assert_false(same_vertex(&a, &b));
		((char *)&b)[i]--;
	}
}

/* After a process takes its full share, the next process finds an eighth of the rest. */
static void a_share_leaves_room_for_others(void **state)
{
	uint32_t used = 0, last = UINT32_MAX;

	(void)state;
	assert_true(has_share(0, 0, 65536, 1024));
	assert_false(has_share(1024, 1024, 65536, 1024));
	assert_false(has_share(0, 65536, 65536, 1024));
	assert_false(has_share(0, 65537, 65536, 1024));
	for (int process = 0; process < 24; process++) {
		uint32_t made = 0;

		while (has_share(made, used, 65536, UINT32_MAX)) {
			made++;
			used++;
		}
		assert_true(made > 0 && made <= last);
		assert_true(made >= (65536 - used) / 8);
		last = made;
	}
	assert_true(used < 65536);
}

static void further_values_are_one_vertex(void **state)
{
	struct kernel_vertex_key a = {.site = 0x1000,
				      .tgid = 7,
				      .function = 3,
				      .cell = 9,
				      .peer = 5,
				      .root = 1,
				      .comm = 1,
				      .op = 200,
				      .file = 17};
	struct kernel_vertex_key b = a, path = a;

	(void)state;
	b.peer = -1;
	b.root = 9;
	b.op = 300;
	b.file = 18;
	b.mode = 02;
	path.path = 12;
	coarsen_vertex(&a);
	coarsen_vertex(&b);
	coarsen_vertex(&path);
	assert_true(same_vertex(&a, &b));
	assert_int_equal(a.flags, KERNEL_VERTEX_OTHERS);
	assert_int_equal(a.comm, 1); /* the number of MPI_COMM_WORLD does not change */
	assert_int_equal(a.cell, 9);
	assert_int_equal(path.path, KERNEL_OTHER_PATHS);
	b.site++; /* sites, of which a process has few, distinguish vertices */
	assert_false(same_vertex(&a, &b));
}

/* Numbers of handles are 16 bits wide: they never become those of predefined ones, or of all others. */
static void handles_keep_their_range(void **state)
{
	(void)state;
	assert_int_equal(handle_number_of(0), KERNEL_FIRST_UNKNOWN);
	for (uint32_t n = 0; n < 300000; n++) {
		assert_true(handle_number_of(n) >= KERNEL_FIRST_UNKNOWN);
		assert_true(handle_number_of(n) + 1 < KERNEL_OTHER_HANDLES);
	}
	assert_int_equal(coarse_handle(0), 0);
	assert_int_equal(coarse_handle(KERNEL_FIRST_UNKNOWN), KERNEL_FIRST_UNKNOWN);
	assert_int_equal(coarse_handle(KERNEL_FIRST_UNKNOWN + 1), KERNEL_OTHER_HANDLES);
}

static void calls_differ_by_what_their_row_reads(void **state)
{
	uint32_t cookie = 17 | KERNEL_SITE_PLAIN | 0x2eU << KERNEL_SITE_READS; /* not the first nor the fifth */
	struct kernel_recent_call recent = {.site = 0x1234, .function = 17, .in = {1, 2, 3, 4, 5, 6}};
	uint64_t in[6] = {1, 2, 3, 4, 5, 6};

	(void)state;
	assert_true(same_call(&recent, 0x1234, cookie, in));
	assert_true(same_call(&recent, 0x1234, cookie | KERNEL_SITE_COUNTED, in));
	assert_false(same_call(&recent, 0x1235, cookie, in));
	assert_false(same_call(&recent, 0x1234, cookie + 1, in));
	for (int i = 0; i < 6; i++) {
		in[i] += 1ULL << (11 * i);
		assert_int_equal(same_call(&recent, 0x1234, cookie, in), i == 0 || i == 4);
		in[i] = recent.in[i];
	}
}

static void recent_places_are_within(void **state)
{
	struct kernel_vertex_key vertex = {.site = 0x55d2c4a31b7fULL};
	struct kernel_edge_key edge = {0};
	bool used[KERNEL_RECENT] = {false};
	int places = 0;

	(void)state;
	for (uint32_t i = 0; i < 1000; i++) {
		vertex.site += 29; /* calls are some bytes apart */
		edge.from = i;
		edge.to = i + 1;
		assert_true(recent_place(&vertex) < KERNEL_RECENT);
		assert_true(recent_edge_place(&edge) < KERNEL_RECENT_EDGES);
		assert_true(recent_outlined_place(vertex.site) < KERNEL_RECENT_OUTLINED);
		assert_true(recent_call_place(vertex.site, ~0U, (uint64_t[6]){i, i << 8}) < KERNEL_RECENT_CALLS);
		assert_true(posted_place(vertex.site) < KERNEL_POSTED);
		assert_true(recent_type_place(vertex.site * i) < KERNEL_TYPES);
		used[recent_place(&vertex)] = true;
	}
	for (int i = 0; i < KERNEL_RECENT; i++)
		places += used[i];
	assert_int_equal(places, KERNEL_RECENT);
}

/* Variables of one array do not displace each other, whatever the size of a handle. */
static void posted_operations_of_an_array_have_places(void **state)
{
	(void)state;
	for (uint64_t size = 4; size <= 8; size += 4) {
		for (uint64_t base = 0x7ffd1000; base < 0x7ffd1400; base += 128) {
			uint64_t used = 0;

			for (uint64_t i = 0; i < KERNEL_POSTED; i++)
				used |= 1ULL << posted_place(base + i * size);
			assert_int_equal(used, (1ULL << KERNEL_POSTED) - 1);
		}
	}
}

/* A program that copies its handles misses again and again; one that missed a few times recovers. */
static void posted_operations_are_found_or_misses_weigh(void **state)
{
	uint32_t misses = 0;

	(void)state;
	for (int i = 0; i < 1000; i++)
		misses = misses_after(misses, i % 20 == 0);
	assert_true(misses < KERNEL_POSTED_MISSES);
	for (int i = 0; i < KERNEL_POSTED_MISSES / KERNEL_POSTED_MISS; i++)
		misses = misses_after(misses, true);
	assert_true(misses >= KERNEL_POSTED_MISSES);
	assert_int_equal(misses_after(0, false), 0);
}

static void abnormal_needs_ratio_and_floor(void **state)
{
	(void)state;
	assert_false(is_abnormal(5000, 1000, 1229));	   /* under the floor */
	assert_false(is_abnormal(1190000, 1000000, 1229)); /* 1.19 */
	assert_true(is_abnormal(1210000, 1000000, 1229));
	assert_false(is_abnormal(1210000, 0, 1229)); /* no reference yet */
}

static void tokens_bound_records(void **state)
{
	struct bpf_thread_state thread = {0};
	uint64_t now = 10 * KERNEL_BIN_NS;
	int granted = 0;

	(void)state;
	for (int i = 0; i < 1000; i++)
		granted += take_token(&thread, now + (uint64_t)i, KERNEL_TOKENS);
	assert_int_equal(granted, KERNEL_TOKENS);
	assert_true(take_token(&thread, now + KERNEL_BIN_NS + 1000, KERNEL_TOKENS));
}

static void pauses_fall_into_classes(void **state)
{
	(void)state;
	assert_int_equal(pause_class(KERNEL_PAUSE_NS), 0);
	for (uint32_t i = 1; i < KERNEL_PAUSES; i++) {
		assert_int_equal(pause_class((KERNEL_PAUSE_NS << i) - 1), i - 1);
		assert_int_equal(pause_class(KERNEL_PAUSE_NS << i), i);
	}
	assert_int_equal(pause_class(UINT64_MAX), KERNEL_PAUSES - 1);
}

static void ranges_hold_their_addresses(void **state)
{
	struct kernel_transparent at = {.count = 2, .ranges = {{.begin = 100, .end = 200}, {.begin = 300, .end = 400}}};

	(void)state;
	at.ranges[2] = (struct kernel_text){.begin = 500, .end = 600}; /* past the count: not there */
	assert_null(range_of(&at, 99));
	assert_ptr_equal(range_of(&at, 100), &at.ranges[0]);
	assert_ptr_equal(range_of(&at, 199), &at.ranges[0]);
	assert_null(range_of(&at, 200));
	assert_ptr_equal(range_of(&at, 300), &at.ranges[1]);
	assert_null(range_of(&at, 550));
}

static void frames_go_up_the_stack(void **state)
{
	(void)state;
	assert_true(is_frame(0x7000, 0x7000));
	assert_true(is_frame(0x7010, 0x7000));
	assert_false(is_frame(0x6ff8, 0x7000)); /* down */
	assert_false(is_frame(0x7014, 0x7000)); /* not aligned */
	assert_false(is_frame(0x7000 + FRAME_MAX, 0x7000));
	assert_false(is_frame(1, 0x7000));
}

static void shares_add_up(void **state)
{
	uint64_t left = 1000;
	uint64_t sum = 0;

	(void)state;
	for (uint32_t n = 7; n; n--) {
		uint64_t share = request_share(left, n);

		sum += share;
		left -= share;
	}
	assert_int_equal(sum, 1000);
	assert_int_equal(request_share(10, 0), 0);
	assert_true(mpich_sized(0x4c000805)); /* MPI_INT and the like */
	assert_false(mpich_sized(0x8c000000));
}

/* Sizes of the C types that handles of the standard ABI stand for. */
static void standard_types_have_sizes(void **state)
{
	(void)state;
	assert_int_equal(standard_size(0x209), sizeof(int));
	assert_int_equal(standard_size(0x20a), sizeof(long));
	assert_int_equal(standard_size(0x20c), sizeof(unsigned short));
	assert_int_equal(standard_size(0x210), sizeof(float));
	assert_int_equal(standard_size(0x214), sizeof(double));
	assert_int_equal(standard_size(0x216), 2 * sizeof(double));
	assert_int_equal(standard_size(0x220), sizeof(long double));
	assert_int_equal(standard_size(0x229), sizeof(double) + sizeof(int));
	assert_int_equal(standard_size(0x23c), sizeof(wchar_t));
	assert_int_equal(standard_size(0x240), 1); /* INT8_T */
	assert_int_equal(standard_size(0x247), 1); /* BYTE */
	assert_int_equal(standard_size(0x249), 2); /* UINT16_T */
	assert_int_equal(standard_size(0x251), 4);
	assert_int_equal(standard_size(0x258), 8);
	assert_int_equal(standard_size(0x2c1), 1); /* INTEGER1 */
	assert_int_equal(standard_size(0x2da), 8); /* REAL8 */
	assert_int_equal(standard_size(0x2eb), 32);
	assert_int_equal(standard_size(0x200), 0); /* null */
	assert_int_equal(standard_size(0x280), 0);
	assert_int_equal(standard_size(0x300), 0);
	assert_int_equal(standard_size(0x101), 0);
	assert_int_equal(standard_size(0x7f0000000209), 0); /* a derived type */
}

static void bundles_have_places(void **state)
{
	struct kernel_bundle_key key = {.state = 7 | KERNEL_EDGE, .tid = 5, .bin = 8, .cell = 3}, other = key;
	u32 seen[KERNEL_RECENT_BUNDLES] = {0}, used = 0;
	unsigned char *byte = (unsigned char *)&other;

	(void)state;
	for (size_t i = 0; i < sizeof(other); i++) {
		byte[i] ^= 4;
		assert_false(same_bundle(&key, &other));
		byte[i] ^= 4;
	}
	assert_true(same_bundle(&key, &other));
	/* entries of a loop of ten calls hardly ever share one index */
	for (u32 i = 0; i < 20; i++) {
		key.state = i < 10 ? 40 + i : (90 + i) | KERNEL_EDGE;
		assert_true(recent_bundle_place(&key) < KERNEL_RECENT_BUNDLES);
		used += !seen[recent_bundle_place(&key)]++;
	}
	assert_int_equal(used, 20);
	assert_true(bin_after(1, 0xfffffff0u));
	assert_false(bin_after(0xfffffff0u, 1));
	assert_false(bin_after(4, 4));
}

/* Whatever period a program's calls have, each call is sampled as often as the others. */
static void spans_sample_calls_evenly(void **state)
{
	(void)state;
	for (u32 period = 1; period <= 64; period++) {
		for (u32 phase = 0; phase < period; phase++) {
			u32 due = 0, calls = 64000;

			for (u32 i = 0; i < calls; i++)
				due += span_due(1000 + phase + (u64)i * period);
			assert_in_range(due, calls / KERNEL_SPAN_EACH * 9 / 10, calls / KERNEL_SPAN_EACH * 11 / 10);
		}
	}
}

static void test_waits_of_a_team(void **state)
{
	struct bpf_thread_state thread = {0};

	(void)state;
	assert_true(waited(&thread, 0, 0)); /* no region was seen to begin: a wait is possible */
	/* a worker was in region 7: it waits until it enters the next one */
	thread.region = 7;
	assert_true(waited(&thread, 8, 1));
	assert_true(waited(&thread, 7, 0));
	/* a region without it came between; or it is in another one that it was not seen to enter */
	assert_false(waited(&thread, 9, 1));
	assert_false(waited(&thread, 8, 0));
	/* numbers begin again */
	thread.region = UINT32_MAX;
	assert_true(waited(&thread, 0, 1));
	/* a thread that has begun a region waits until it is in the function, not until another event */
	thread.region = 8;
	thread.unentered = 1;
	assert_true(waited(&thread, 8, 1));
	assert_false(waited(&thread, 8, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_waits_of_a_team),
	    cmocka_unit_test(spans_sample_calls_evenly),
	    cmocka_unit_test(bundles_have_places),
	    cmocka_unit_test(cells_are_log_linear),
	    cmocka_unit_test(computation_is_open_between_calls),
	    cmocka_unit_test(nesting_follows_the_stack_pointer),
	    cmocka_unit_test(merging_keeps_sums_and_bounds),
	    cmocka_unit_test(tail_calls_belong_to_their_call),
	    cmocka_unit_test(adding_a_fragment_is_merging_its_bundle),
	    cmocka_unit_test(vertices_differ_by_any_byte),
	    cmocka_unit_test(a_share_leaves_room_for_others),
	    cmocka_unit_test(further_values_are_one_vertex),
	    cmocka_unit_test(handles_keep_their_range),
	    cmocka_unit_test(calls_differ_by_what_their_row_reads),
	    cmocka_unit_test(recent_places_are_within),
	    cmocka_unit_test(posted_operations_of_an_array_have_places),
	    cmocka_unit_test(posted_operations_are_found_or_misses_weigh),
	    cmocka_unit_test(abnormal_needs_ratio_and_floor),
	    cmocka_unit_test(tokens_bound_records),
	    cmocka_unit_test(pauses_fall_into_classes),
	    cmocka_unit_test(ranges_hold_their_addresses),
	    cmocka_unit_test(frames_go_up_the_stack),
	    cmocka_unit_test(shares_add_up),
	    cmocka_unit_test(standard_types_have_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
