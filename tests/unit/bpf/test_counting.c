// SPDX-License-Identifier: GPL-2.0-or-later
/* Counts of threads over switches, migrations and everything that goes wrong in between, compiled natively. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "../../bpf/logic.h"

/* A thread and the counters of some CPUs; every CPU counts for the thread that runs there. */
struct world {
	struct kernel_tally tally;
	u64 counter[4], time;
	u32 cpu, switches, epoch;
	u64 truth; /* the thread's true count */
};

static struct kernel_reading read_at(struct world *world)
{
	struct kernel_reading reading = {.enabled = ++world->time, .epoch = world->epoch, .switches = world->switches};

	reading.value[0] = world->counter[world->cpu];
	reading.value[1] = 2 * world->counter[world->cpu];
	return reading;
}

static void leave(struct world *world)
{
	struct kernel_reading reading = read_at(world);

	tally_out(&world->tally, &reading, true);
	world->switches++;
}

static void enter(struct world *world, u32 cpu)
{
	struct kernel_reading reading;

	world->cpu = cpu;
	reading = read_at(world);
	tally_in(&world->tally, &reading, true);
}

static void work(struct world *world, u64 n)
{
	world->counter[world->cpu] += n;
	world->truth += n;
}

/* Reads as count_now does; 0 where the count is unknown. */
static u64 look(struct world *world, u32 *mark)
{
	u64 counts[KERNEL_EVENTS];

	for (int attempt = 0; attempt < 3; attempt++) {
		u32 switches = world->tally.switches;

		world->tally.now = read_at(world);
		if (tally_now(&world->tally, switches, counts)) {
			*mark = world->tally.gaps + 1;
			assert_int_equal(counts[1], 2 * counts[0]);
			return counts[0];
		}
	}
	*mark = 0;
	return 0;
}

static void others_do_not_count(void **state)
{
	struct world world = {.epoch = 2, .counter = {1000, 77, 5, 0}};
	u32 before, after;
	u64 border;

	(void)state;
	border = look(&world, &before);
	world.truth = 0;
	work(&world, 100);
	for (u32 i = 0; i < 50; i++) {
		leave(&world);
		world.counter[i % 4] += 100000 + i; /* another thread */
		enter(&world, (i * 7) % 4);
		work(&world, 10 + i);
		world.counter[(world.cpu + 1) % 4] += 12345; /* meanwhile, elsewhere */
	}
	assert_int_equal(look(&world, &after) - border, world.truth);
	assert_int_equal(before, after); /* without a gap */
}

static void a_switch_while_reading_is_noticed(void **state)
{
	struct world world = {.epoch = 2};
	u64 border, counts[KERNEL_EVENTS];
	u32 before, after, switches;

	(void)state;
	border = look(&world, &before);
	world.truth = 0;
	work(&world, 500);
	switches = world.tally.switches;
	world.tally.now = read_at(&world);
	leave(&world);
	world.counter[0] += 99999;
	enter(&world, 0);
	assert_false(tally_now(&world.tally, switches, counts));
	work(&world, 3);
	assert_int_equal(look(&world, &after) - border, world.truth);
	assert_int_equal(before, after);
}

/* A switch interrupts the first reading of a thread that has been running for long. */
static void a_beginning_that_is_interrupted(void **state)
{
	struct world world = {.epoch = 2, .counter = {5000, 0, 0, 0}};
	u64 border, counts[KERNEL_EVENTS];
	u32 before, after;

	(void)state;
	world.tally.now = read_at(&world);
	leave(&world);
	world.counter[1] = 123456;
	enter(&world, 1);
	assert_false(tally_now(&world.tally, 0, counts));
	border = look(&world, &before);
	assert_int_not_equal(before, 0);
	world.truth = 0;
	work(&world, 42);
	leave(&world);
	enter(&world, 2);
	work(&world, 8);
	assert_int_equal(look(&world, &after) - border, 50);
	assert_int_equal(before, after);
}

enum trouble { UNSEEN_ENTER, UNSEEN_LEAVE, UNSEEN_BOTH, UNREADABLE, EXCHANGED, FROZEN, TROUBLES };

static void make(struct world *world, enum trouble trouble)
{
	struct kernel_reading nothing = {0};

	switch (trouble) {
	case UNSEEN_ENTER:
		leave(world);
		world->counter[0] += 1000;
		break;
	case UNSEEN_LEAVE:
		world->switches++;
		world->counter[0] += 1000;
		enter(world, 0);
		break;
	case UNSEEN_BOTH:
		world->switches++;
		world->counter[0] += 1000;
		break;
	case UNREADABLE:
		leave(world);
		tally_in(&world->tally, &nothing, false);
		break;
	case EXCHANGED:
		world->epoch += 2;
		world->counter[0] = 7;
		break;
	default: /* the counter of a CPU that went offline and came back */
		world->time = world->tally.last.enabled - 1;
		break;
	}
}

static void what_was_missed_is_a_gap(void **state)
{
	(void)state;
	for (int trouble = 0; trouble < TROUBLES; trouble++) {
		for (int leaves = 0; leaves < 2; leaves++) {
			struct world world = {.epoch = 2};
			u32 before, during, after;
			u64 border;

			look(&world, &before);
			leave(&world);
			enter(&world, 0);
			look(&world, &before);
			work(&world, 10);
			make(&world, (enum trouble)trouble);
			if (leaves) { /* noticed by the switch, not by the reader */
				leave(&world);
				enter(&world, 1);
			}
			work(&world, 10);
			look(&world, &during);
			assert_int_not_equal(before, during);
			/* a computation that begins later is counted again */
			border = look(&world, &before);
			work(&world, 33);
			leave(&world);
			enter(&world, 2);
			work(&world, 1);
			assert_int_equal(look(&world, &after) - border, 34);
			assert_int_equal(before, after);
		}
	}
}

static void work_cells_are_narrow(void **state)
{
	uint16_t last = 0;

	(void)state;
	assert_int_equal(work_cell_of(0), 0);
	assert_int_equal(work_cell_of(127), 127);
	for (uint64_t v = 1; v < 1ULL << 61; v += v / 131 + 1) {
		uint16_t cell = work_cell_of(v);

		assert_true(cell >= last);
		last = cell;
		if (v >= 128)
			assert_true(work_cell_of(v + v / 128 + 1) > cell);
	}
	assert_int_equal(work_cell_of(UINT64_MAX), ((63 - 6) << 7) + 127);
}

static void merging_keeps_the_counts(void **state)
{
	struct kernel_bundle into = {.n = 1, .start_ns = 1, .end_ns = 2}, one = into;

	(void)state;
	into.event_min[0] = into.event_max[0] = into.event_sum[0] = 100;
	one.event_min[0] = one.event_max[0] = one.event_sum[0] = 101;
	one.event_sum[KERNEL_EVENTS - 1] = 5;
	bundle_merge_events(&into, &one);
	assert_int_equal(into.event_min[0], 100);
	assert_int_equal(into.event_max[0], 101);
	assert_int_equal(into.event_sum[0], 201);
	assert_int_equal(into.event_sum[KERNEL_EVENTS - 1], 5);
}

/* Counters of other events replace the old ones while a thread sleeps: the counts before and after are no sum. */
static void an_exchange_while_asleep_is_a_gap(void **state)
{
	struct world world = {.epoch = 2};
	u32 before, after;

	(void)state;
	look(&world, &before);
	work(&world, 500);
	leave(&world);
	world.epoch += 2;
	enter(&world, 1);
	work(&world, 30);
	look(&world, &after);
	assert_int_not_equal(before, after);
	look(&world, &before);
	leave(&world);
	enter(&world, 0);
	look(&world, &after);
	assert_int_equal(before, after); /* later readings count */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(others_do_not_count),
	    cmocka_unit_test(a_switch_while_reading_is_noticed),
	    cmocka_unit_test(a_beginning_that_is_interrupted),
	    cmocka_unit_test(what_was_missed_is_a_gap),
	    cmocka_unit_test(an_exchange_while_asleep_is_a_gap),
	    cmocka_unit_test(work_cells_are_narrow),
	    cmocka_unit_test(merging_keeps_the_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
