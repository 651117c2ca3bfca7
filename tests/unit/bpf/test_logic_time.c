/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kernel side's handling of a thread's time off its CPU and of its counts, compiled natively. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "../../bpf/logic.h"

static void preemption_is_distinguished_from_sleep(void **state)
{
	struct kernel_offcpu off = {0};
	struct kernel_counts counts = {0};

	(void)state;
	offcpu_begin(&off, 100, KERNEL_AWAY_RUNNABLE);
	assert_false(offcpu_wake(&off, 150)); /* has no effect on a runnable thread */
	assert_int_equal(offcpu_end(&off, &counts, 400, 0), 300);
	assert_int_equal(counts.preempted_ns, 300);

	offcpu_begin(&off, 1000, KERNEL_AWAY_ASLEEP);
	assert_true(offcpu_wake(&off, 1600));
	assert_false(offcpu_wake(&off, 1700)); /* the first wake-up counts */
	assert_int_equal(offcpu_end(&off, &counts, 1900, 0), 300);
	assert_int_equal(counts.blocked_other_ns, 600);
	assert_int_equal(counts.wakeup_wait_ns, 300);

	offcpu_begin(&off, 2000, KERNEL_AWAY_IO);
	assert_int_equal(offcpu_end(&off, &counts, 2500, 0), 0); /* a wake-up that was not seen */
	assert_int_equal(counts.blocked_io_ns, 500);

	assert_int_equal(offcpu_end(&off, &counts, 9000, 0), 0); /* the thread was not away */
	assert_int_equal(counts_off_cpu(&counts), 300 + 600 + 300 + 500);
}

static void stops_are_distinguished_from_sleep(void **state)
{
	struct kernel_offcpu off = {0};
	struct kernel_counts counts = {0}, delta = {0}, none = {0};

	(void)state;
	assert_int_equal(away_of(true, STATE_STOPPED, false, false), KERNEL_AWAY_RUNNABLE);
	assert_int_equal(away_of(false, 0, true, false), KERNEL_AWAY_RUNNABLE); /* on its way to a stop */
	assert_int_equal(away_of(false, 1, false, false), KERNEL_AWAY_ASLEEP);
	assert_int_equal(away_of(false, 2, false, true), KERNEL_AWAY_IO);
	assert_int_equal(away_of(false, STATE_STOPPED | 0x100, false, true), KERNEL_AWAY_STOPPED);
	assert_int_equal(away_of(false, STATE_TRACED, false, false), KERNEL_AWAY_STOPPED);
	assert_int_equal(away_of(false, 1, true, false), KERNEL_AWAY_STOPPED); /* the freezer of a cgroup */

	/* asleep in a call, woken by the signal, stopped, continued */
	offcpu_begin(&off, 1000, KERNEL_AWAY_ASLEEP);
	assert_true(offcpu_wake(&off, 1400));
	assert_int_equal(offcpu_end(&off, &counts, 1450, 0), 50);
	offcpu_begin(&off, 1460, KERNEL_AWAY_STOPPED);
	assert_true(offcpu_wake(&off, 9460));
	assert_int_equal(offcpu_end(&off, &counts, 9490, 0), 30);
	assert_int_equal(counts.blocked_other_ns, 400);
	assert_int_equal(counts.stopped_ns, 8000);
	assert_int_equal(counts.wakeup_wait_ns, 80);
	assert_int_equal(counts_off_cpu(&counts), 8480);
	counts_delta(&delta, &counts, &none);
	counts_sum(&delta, &counts);
	assert_int_equal(delta.stopped_ns, 16000);
}

static void throttled_time_is_distinguished_from_other_waits(void **state)
{
	struct kernel_offcpu off = {0};
	struct kernel_counts counts = {0};

	(void)state;
	/* the quota ran out; then another task had the CPU for a while */
	offcpu_begin(&off, 1000, KERNEL_AWAY_RUNNABLE);
	offcpu_queue(&off, 7, 500);
	assert_int_equal(offcpu_end(&off, &counts, 2000, 1300), 200);
	assert_int_equal(counts.throttled_ns, 800);
	assert_int_equal(counts.preempted_ns, 200);

	/* woken into a group without quota: sleep was not throttled, whatever the queue was then */
	offcpu_begin(&off, 3000, KERNEL_AWAY_ASLEEP);
	assert_true(offcpu_wake(&off, 3600));
	offcpu_queue(&off, 7, 1500);
	assert_int_equal(offcpu_end(&off, &counts, 4000, 1650), 250);
	assert_int_equal(counts.throttled_ns, 950);
	assert_int_equal(counts.blocked_other_ns, 600);
	assert_int_equal(counts.wakeup_wait_ns, 250);

	/* never more than the wait itself, and nothing where the clock went back or there is no queue */
	offcpu_begin(&off, 5000, KERNEL_AWAY_RUNNABLE);
	offcpu_queue(&off, 7, 0);
	assert_int_equal(offcpu_end(&off, &counts, 5100, 9000), 0);
	offcpu_begin(&off, 6000, KERNEL_AWAY_RUNNABLE);
	offcpu_queue(&off, 7, 9000);
	assert_int_equal(offcpu_end(&off, &counts, 6100, 20), 100);
	offcpu_begin(&off, 7000, KERNEL_AWAY_RUNNABLE);
	assert_int_equal(offcpu_end(&off, &counts, 7100, 20000), 100);
	assert_int_equal(counts.throttled_ns, 1050);
	assert_int_equal(counts_off_cpu(&counts), 1000 + 1000 + 100 + 100 + 100);
}

static void what_a_cpu_loses_is_lost_by_its_thread(void **state)
{
	struct bpf_thread_state thread = {0};
	struct kernel_stolen cpu3 = {.steal = 5000, .irq = 100, .slow = 70}, cpu4 = {.steal = 100};

	(void)state;
	/* first seen in the middle of a stay */
	stolen_now(&thread, &cpu3, 3);
	assert_int_equal(thread.now.steal_ns, 0);
	cpu3.steal += 40;
	cpu3.irq += 7;
	cpu3.hard_irq = 7;
	stolen_now(&thread, &cpu3, 3);
	assert_int_equal(thread.now.steal_ns, 40);
	assert_int_equal(thread.now.irq_ns, 7);
	assert_int_equal(thread.now.hard_irq_ns, 7);
	cpu3.steal += 10;
	stolen_out(&thread, &cpu3, 3);
	cpu3.steal += 999; /* stolen from another guest */
	stolen_in(&thread, &cpu4, 4);
	cpu4.steal += 3;
	cpu4.slow = 5;
	stolen_now(&thread, &cpu4, 4);
	assert_int_equal(thread.now.steal_ns, 53);
	assert_int_equal(thread.now.slow_ns, 5);
	/* the thread left unseen: the stay does not count, and no sum shrinks */
	stolen_out(&thread, &cpu3, 3);
	stolen_now(&thread, &cpu3, 3);
	assert_int_equal(thread.now.steal_ns, 53);
	/* a clock that caught up */
	cpu3.slow = 0;
	stolen_now(&thread, &cpu3, 3);
	assert_int_equal(thread.now.slow_ns, 5);
}

/* Ends a fragment of `duration` and begins the next one; the CPU lost time once, before. */
static void late(struct bpf_thread_state *thread, struct kernel_counts *counts, u64 duration)
{
	const struct kernel_stolen stolen = {.steal = 500, .irq = 90, .hard_irq = 20, .slow = 60};

	memset(counts, 0, sizeof(*counts));
	if (stolen_more(thread, 9))
		stolen_now(thread, &stolen, 2);
	counts_note(thread, (const u64[KERNEL_TASK_COUNTED]){[KERNEL_TASK_MINOR_FAULTS] = 7});
	if (counts_changed(thread))
		counts_end(thread, counts, duration);
	counts_border(thread);
}

static void what_is_reported_late_waits_for_time(void **state)
{
	struct bpf_thread_state thread = {.stolen_cpu = 3};
	struct kernel_counts counts;

	(void)state;
	thread.now.preempted_ns = 30;
	late(&thread, &counts, 100);
	assert_int_equal(counts.preempted_ns, 30);
	assert_int_equal(counts.minor_faults, 7);
	assert_int_equal(counts.steal_ns, 70);
	assert_int_equal(counts.irq_ns + counts.hard_irq_ns + counts.slow_ns, 0);
	late(&thread, &counts, 80);
	assert_int_equal(counts.preempted_ns + counts.minor_faults, 0);
	assert_int_equal(counts.steal_ns, 80);
	late(&thread, &counts, 600);
	assert_int_equal(counts.steal_ns, 350);
	assert_int_equal(counts.irq_ns, 90);
	assert_int_equal(counts.hard_irq_ns, 20); /* a part of those 90 */
	assert_int_equal(counts.slow_ns, 60);
	assert_false(counts_changed(&thread));
	assert_int_equal(thread.stolen_clock, 9); /* all of it is reported: no reader looks before the clock advances */
	late(&thread, &counts, 600);
	assert_int_equal(counts.steal_ns + counts.irq_ns + counts.slow_ns, 0);
}

static void any_count_makes_a_border(void **state)
{
	u64 counts[KERNEL_TASK_COUNTED];
	struct bpf_thread_state thread = {0};

	(void)state;
	for (int i = 0; i < KERNEL_TASK_COUNTED; i++)
		counts[i] = 5 + (u64)i;
	for (int i = -1; i < KERNEL_TASK_COUNTED; i++) {
		if (i >= 0)
			counts[i]++;
		counts_note(&thread, counts);
		assert_true(counts_changed(&thread));
		assert_int_equal(thread.now.minor_faults, counts[KERNEL_TASK_MINOR_FAULTS]);
		assert_int_equal(thread.now.migrations, counts[KERNEL_TASK_MIGRATIONS]);
		thread.now.preempted_ns += 100; /* a switch is counted, so this is seen too */
		counts_border(&thread);
		assert_false(counts_changed(&thread));
		assert_memory_equal(&thread.border, &thread.now, sizeof(thread.now));
		counts_note(&thread, counts);
		assert_false(counts_changed(&thread));
	}
	/* so does time lost without a switch */
	thread.now.steal_ns += 3;
	counts_note(&thread, counts);
	assert_true(counts_changed(&thread));
}

static void hits_reach_a_number_once(void **state)
{
	(void)state;
	assert_false(hits_reach(0, 99, 100));
	assert_true(hits_reach(99, 1, 100));
	assert_true(hits_reach(99, 8, 100)); /* a stepped hit counts eight times */
	assert_false(hits_reach(100, 1, 100));
	assert_false(hits_reach(0, 1000, 0)); /* none is set */
}

/* A call that lost its CPU is no call that waited: a function that never waits is preempted as often as others. */
static void a_preempted_call_has_not_waited(void **state)
{
	struct bpf_thread_state thread = {.border = {.preempted_ns = 500, .throttled_ns = 70, .blocked_other_ns = 9}};

	(void)state;
	thread.now = thread.border;
	assert_int_equal(call_waited(&thread, 9000), 9000);
	thread.now.blocked_other_ns += 2500; /* this is a wait */
	assert_int_equal(call_waited(&thread, 9000), 9000);
	thread.now.preempted_ns += 3000000;
	assert_int_equal(call_waited(&thread, 3009000), 0); /* caches were others' meanwhile */
	assert_int_equal(call_waited(&thread, 5000000), 2000000 - SWITCH_COSTS_NS);
	thread.now.throttled_ns += 1000000;
	assert_int_equal(call_waited(&thread, 5000000), 1000000 - SWITCH_COSTS_NS);
	assert_int_equal(call_waited(&thread, 3900000), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(preemption_is_distinguished_from_sleep),
	    cmocka_unit_test(stops_are_distinguished_from_sleep),
	    cmocka_unit_test(throttled_time_is_distinguished_from_other_waits),
	    cmocka_unit_test(what_a_cpu_loses_is_lost_by_its_thread),
	    cmocka_unit_test(what_is_reported_late_waits_for_time),
	    cmocka_unit_test(any_count_makes_a_border),
	    cmocka_unit_test(hits_reach_a_number_once),
	    cmocka_unit_test(a_preempted_call_has_not_waited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
