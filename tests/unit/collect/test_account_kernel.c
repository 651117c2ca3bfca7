// SPDX-License-Identifier: GPL-2.0-or-later
/* The kernel's own account: its sums in the kernel side, and their reader. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <vapro/analysis.h>

#include "../../bpf/logic.h"
#include "collect/accounts.h"
#include "near.h"

#define MS 1000000ULL
#define BIN VAPRO_BIN_NS
#define FIRST 8900000000ULL /* a bin of these years: its number does not fit 32 bits */
#define AT(ms) (FIRST * BIN + (uint64_t)(ms)*MS)

static struct kernel_account account;

static int fresh(void **state)
{
	(void)state;
	memset(&account, 0, sizeof(account));
	return 0;
}

static struct vapro_account sum(uint64_t bin, uint64_t now, uint64_t throttled)
{
	struct kernel_account_look look = {.throttled_ns = throttled};
	struct vapro_account sums;

	accounts__sum(&account, &look, FIRST + bin, 0, now, &sums);
	assert_int_equal(sums.bin, FIRST + bin);
	return sums;
}

/* Times are UTC here: the offset is 0. A hog in the middle of a bin, and a sleep over several. */
static void conditions_go_to_their_bins(void **state)
{
	struct vapro_account sums;

	(void)state;
	account_change(&account, ACCOUNT_ON_CPU, AT(50), 0, 0); /* earlier time is unknown */
	account_leave(&account, KERNEL_AWAY_RUNNABLE, 0, AT(120), 0);
	account_change(&account, ACCOUNT_ON_CPU, AT(180), 0, 0);
	account_leave(&account, KERNEL_AWAY_ASLEEP, 0, AT(210), 0);
	account_wake(&account, AT(650), 0);
	account_change(&account, ACCOUNT_ON_CPU, AT(660), 0, 0);
	assert_int_equal(account.writing % 2, 0);

	sums = sum(0, AT(800), 0);
	assert_int_equal(sums.on_cpu_ns, (70 + 20) * MS);
	assert_int_equal(sums.preempted_ns, 60 * MS);
	assert_int_equal(sums.blocked_other_ns + sums.wakeup_wait_ns + sums.stopped_ns, 0);
	sums = sum(1, AT(800), 0);
	assert_int_equal(sums.on_cpu_ns, 10 * MS);
	assert_int_equal(sums.blocked_other_ns, 190 * MS);
	assert_int_equal(sum(2, AT(800), 0).blocked_other_ns, 200 * MS);
	/* the present condition has not been added yet */
	sums = sum(3, AT(800), 0);
	assert_int_equal(sums.blocked_other_ns, 50 * MS);
	assert_int_equal(sums.wakeup_wait_ns, 10 * MS);
	assert_int_equal(sums.on_cpu_ns, 140 * MS);
	assert_int_equal(sum(4, AT(1000), 0).on_cpu_ns, 200 * MS);
}

/* Asleep, woken for the signal, stopped, continued: each is counted separately, in a lasting stop, too. */
static void a_stop_is_reported_while_it_lasts(void **state)
{
	struct vapro_account sums;

	(void)state;
	account_change(&account, ACCOUNT_ON_CPU, AT(0), 0, 0);
	account_leave(&account, KERNEL_AWAY_ASLEEP, 0, AT(20), 0);
	account_wake(&account, AT(100), 0);
	account_change(&account, ACCOUNT_ON_CPU, AT(101), 0, 0);
	account_leave(&account, KERNEL_AWAY_STOPPED, 0, AT(102), 0);
	sums = sum(0, AT(260), 0);
	assert_int_equal(sums.stopped_ns, 98 * MS);
	assert_int_equal(sums.blocked_other_ns, 80 * MS);
	assert_int_equal(sum(1, AT(460), 0).stopped_ns, 200 * MS);
	assert_int_equal(sum(2, AT(460), 0).stopped_ns, 60 * MS); /* not before the wait is over */
	assert_int_equal(sum(3, AT(460), 0).stopped_ns, 0);
	account_wake(&account, AT(500), 0);
	account_wake(&account, AT(510), 0); /* the thread already waits for a CPU */
	account_change(&account, ACCOUNT_ON_CPU, AT(530), 0, 0);
	sums = sum(2, AT(660), 0);
	assert_int_equal(sums.stopped_ns, 100 * MS);
	assert_int_equal(sums.wakeup_wait_ns, 30 * MS);
	assert_int_equal(sums.on_cpu_ns, 70 * MS);
	/* the account of an ended thread does not grow */
	account_change(&account, ACCOUNT_UNKNOWN, AT(900), 0, 0);
	account.ended_ns = AT(900);
	assert_int_equal(sum(4, AT(1100), 0).on_cpu_ns, 100 * MS);
	assert_int_equal(sum(5, AT(1300), 0).on_cpu_ns, 0);
}

/* Hands over bins [from, to) of a thread, which sleeps or works in them. Returns how many were needed. */
static unsigned needed(uint64_t from, uint64_t to, uint64_t on_cpu_ns, uint64_t *busy)
{
	unsigned count = 0;

	for (uint64_t bin = from; bin < to; bin++) {
		struct vapro_account sums = {
		    .bin = FIRST + bin, .on_cpu_ns = on_cpu_ns, .blocked_other_ns = BIN - on_cpu_ns};

		count += accounts__is_needed(&sums, busy);
	}
	return count;
}

/* A rank that works sleeps while it waits for a late one: that is a wait of its own, however many bins it lasts. */
static void the_sleep_of_a_thread_that_works_is_needed(void **state)
{
	uint64_t busy = 0;

	(void)state;
	assert_int_equal(needed(0, 10, 120 * MS, &busy), 10);
	assert_int_equal(needed(10, 60, 0, &busy), 50);
	assert_int_equal(needed(60, 61, 30 * MS, &busy), 1);
	/* one that does not wake any more is left out after a minute */
	assert_int_equal(needed(61, 1000, 0, &busy), 300);
}

/* A thread that always sleeps, or wakes for a moment, as those of MPI libraries: nothing but what it wakes for. */
static void the_sleep_of_others_is_not_needed(void **state)
{
	uint64_t busy = 0;

	(void)state;
	assert_int_equal(needed(0, 20, 0, &busy), 0);
	assert_int_equal(needed(20, 21, MS / 10, &busy), 1);
	assert_int_equal(needed(21, 40, 0, &busy), 0);
}

static void throttled_time_is_a_part_of_waits(void **state)
{
	struct vapro_account sums;

	(void)state;
	account_change(&account, ACCOUNT_ON_CPU, AT(0), 0, 0);
	account_leave(&account, KERNEL_AWAY_RUNNABLE, 0, AT(100), 0);
	/* the thread was throttled for any 180 of the 300 ms so far */
	sums = sum(1, AT(400), 180 * MS);
	assert_in_range(sums.throttled_ns, 119 * MS, 120 * MS);
	assert_int_equal(sums.throttled_ns + sums.preempted_ns, 200 * MS);
	account_change(&account, ACCOUNT_ON_CPU, AT(500), 0, 400 * MS);
	sums = sum(0, AT(700), 0);
	assert_int_equal(sums.throttled_ns, 100 * MS);
	assert_int_equal(sums.preempted_ns, 0);
	account_leave(&account, KERNEL_AWAY_RUNNABLE, 0, AT(600), 0);
	account_change(&account, ACCOUNT_ON_CPU, AT(1000), 0, 100 * MS);
	sums = sum(4, AT(1200), 0);
	assert_in_range(sums.throttled_ns, 49 * MS, 50 * MS);
	assert_int_equal(sums.throttled_ns + sums.preempted_ns, 200 * MS);
	/* years in a queue do not overflow */
	assert_in_range(account_part(1ULL << 61, BIN, 1ULL << 62), 0, BIN);
}

/* Time is left out after an unseen switch, in bins that were read long ago, and in more bins than there is room for. */
static void what_is_not_known_is_left_out(void **state)
{
	(void)state;
	account_change(&account, ACCOUNT_STOPPED, AT(0), 0, 0); /* condition from /proc */
	account_leave(&account, KERNEL_AWAY_ASLEEP, 0, AT(150), 0);
	assert_int_equal(sum(0, AT(160), 0).stopped_ns, 0);
	account_wake(&account, AT(200 * 40), 0);
	for (uint64_t bin = 40 - KERNEL_ACCOUNT_BINS; bin < 40; bin++)
		assert_int_equal(sum(bin, AT(200 * 41), 0).blocked_other_ns, BIN);
	assert_int_equal(sum(39 - KERNEL_ACCOUNT_BINS, AT(200 * 41), 0).blocked_other_ns, 0);
	/* a later bin has the place of this one */
	account_add(&account, ACCOUNT_ON_CPU, AT(200 * 20), AT(200 * 20 + 50), 0);
	assert_int_equal(sum(36, AT(200 * 41), 0).on_cpu_ns, 0);
	assert_int_equal(sum(20, AT(200 * 41), 0).on_cpu_ns, 0);
}

/* The kernel reports no switch from certain tasks: the thread's CPU time shows since when it has had a CPU again. */
static void an_unseen_switch_is_no_wait(void **state)
{
	struct kernel_account_look look = {.running_ns = 95 * MS};
	struct vapro_account sums;

	(void)state;
	account_change(&account, ACCOUNT_ON_CPU, AT(0), 0, 0);
	account_leave(&account, KERNEL_AWAY_RUNNABLE, 1000 * MS, AT(100), 0);
	/* while it lasts: preempted for 5 ms */
	accounts__sum(&account, &look, FIRST, 0, AT(200), &sums);
	assert_int_equal(sums.preempted_ns, 5 * MS);
	assert_int_equal(sums.on_cpu_ns, 195 * MS);
	look.running_ns = 155 * MS;
	accounts__sum(&account, &look, FIRST, 0, AT(260), &sums);
	assert_int_equal(sums.preempted_ns, 5 * MS);
	accounts__sum(&account, &look, FIRST + 1, 0, AT(260), &sums);
	assert_int_equal(sums.preempted_ns, 0);
	assert_int_equal(sums.on_cpu_ns, 60 * MS);
	/* at the next switch, and then as ever */
	account_leave(&account, KERNEL_AWAY_RUNNABLE, 1245 * MS, AT(350), 0);
	account_change(&account, ACCOUNT_ON_CPU, AT(360), 0, 0);
	sums = sum(0, AT(400), 0);
	assert_int_equal(sums.preempted_ns, 5 * MS);
	assert_int_equal(sums.on_cpu_ns, 195 * MS);
	sums = sum(1, AT(400), 0);
	assert_int_equal(sums.preempted_ns, 10 * MS);
	assert_int_equal(sums.on_cpu_ns, 190 * MS);
}

/* The same where the thread ends, on its CPU, before the next switch: it was waiting for 5 ms, not until its end. */
static void a_thread_ends_after_an_unseen_switch(void **state)
{
	struct vapro_account sums;

	(void)state;
	account_change(&account, ACCOUNT_ON_CPU, AT(0), 0, 0);
	account_leave(&account, KERNEL_AWAY_RUNNABLE, 1000 * MS, AT(100), 0);
	account_end(&account, 1085 * MS, AT(190), 0);
	sums = sum(0, AT(260), 0);
	assert_int_equal(sums.preempted_ns, 5 * MS);
	assert_int_equal(sums.on_cpu_ns, 185 * MS);
	assert_int_equal(sum(1, AT(460), 0).on_cpu_ns, 0);
	/* one whose switches were all reported, and one without any */
	fresh(NULL);
	account_leave(&account, KERNEL_AWAY_RUNNABLE, 1000 * MS, AT(100), 0);
	account_change(&account, ACCOUNT_ON_CPU, AT(120), 0, 0);
	account_end(&account, 1002 * MS, AT(150), 0);
	sums = sum(0, AT(260), 0);
	assert_int_equal(sums.preempted_ns, 20 * MS);
	assert_int_equal(sums.on_cpu_ns, 30 * MS);
	fresh(NULL);
	account_end(&account, 1000 * MS, AT(150), 0);
	assert_int_equal(sum(0, AT(260), 0).on_cpu_ns, 0);
}

#define KERNEL(f) cmocka_unit_test_setup(f, fresh)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    KERNEL(conditions_go_to_their_bins),
	    KERNEL(a_stop_is_reported_while_it_lasts),
	    KERNEL(the_sleep_of_a_thread_that_works_is_needed),
	    KERNEL(the_sleep_of_others_is_not_needed),
	    KERNEL(throttled_time_is_a_part_of_waits),
	    KERNEL(what_is_not_known_is_left_out),
	    KERNEL(an_unseen_switch_is_no_wait),
	    KERNEL(a_thread_ends_after_an_unseen_switch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
