// SPDX-License-Identifier: GPL-2.0-or-later
/* The kernel's own account in the analysis: with fragments, and where there are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <vapro/analysis.h>

#include "near.h"
#include "sim.h"

#define MS 1000000ULL
#define BIN VAPRO_BIN_NS
#define FIRST 8900000000ULL /* a bin of these years: its number does not fit 32 bits */
#define AT(ms) (FIRST * BIN + (uint64_t)(ms)*MS)

/* A job of two ranks, of which the analysis gets bins and, where wanted, fragments. */
#define START (FIRST + 5 - FIRST % 5)
#define UTC(s) (START * BIN + (uint64_t)((s)*1e9))

static struct analysis *analysis;
static const struct job_result *result;

/* A second thread of rank 1. */
static const struct vapro_thread second = {
    .id = 2, .rank = 1, .thread = 1, .world_size = 2, .pid = 11, .tid = 12, .job = "j", .host = "h"};

static struct found {
	uint32_t variances, alarms;
	double begin, end, lost, performance, stopped, coverage, caused;
	int32_t rank;
	bool work_unknown, team_unseen;
	char evidence[160], major[32];
} found;

static int begin(void **state)
{
	struct vapro_config config;

	(void)state;
	sim_config(&config);
	analysis = analysis__new(&config, VAPRO_BY_ARGUMENTS);
	for (uint32_t i = 0; i < 2; i++) {
		struct vapro_thread thread = {.id = i,
					      .rank = (int32_t)i,
					      .world_size = 2,
					      .pid = 10 + i,
					      .tid = 10 + i,
					      .job = "j",
					      .host = "h"};

		assert_int_equal(analysis__add_thread(analysis, &thread), 0);
		assert_int_equal(analysis__thread_seen(analysis, i, UTC(0), 0), 0);
	}
	memset(&found, 0, sizeof(found));
	return 0;
}

static int end(void **state)
{
	(void)state;
	analysis__free(analysis);
	return 0;
}

static void start_again(void)
{
	end(NULL);
	begin(NULL);
}

/* Adds one bin of a rank; the rank spends the rest of the bin on the CPU. */
static void bin(uint32_t rank, uint64_t at, struct vapro_account sums)
{
	sums.thread = rank;
	sums.bin = START + at;
	sums.on_cpu_ns = BIN - sums.preempted_ns - sums.wakeup_wait_ns - sums.throttled_ns - sums.stopped_ns -
			 sums.steal_ns - sums.blocked_other_ns;
	assert_int_equal(analysis__add_account(analysis, &sums), 0);
}

static void task(uint32_t rank, uint64_t at, const char *comm, uint32_t pid, uint64_t ns)
{
	struct vapro_interference one = {.thread = rank, .pid = pid, .bin = START + at, .preempted_ns = ns};

	snprintf(one.comm, sizeof(one.comm), "%s", comm);
	assert_int_equal(analysis__add_interference(analysis, &one), 0);
}

static void interfere(uint32_t rank, uint64_t at, uint32_t pid, uint64_t ns)
{
	task(rank, at, "hog", pid, ns);
}

/* Adds a process's reports before each window: a job without reports has ended. */
static void facts(void)
{
	const struct vapro_process_facts one = {.pid = 10, .job = "j", .wall_ns = 10 * BIN};

	assert_int_equal(analysis__add_facts(analysis, &one), 0);
}

/* Ends the windows up to so many seconds: 15, 25, 35 ... */
static void windows(unsigned seconds)
{
	for (unsigned from = 0, to = 15; from < seconds; from = to, to += 10) {
		uint32_t count;

		if (to > seconds)
			to = seconds;
		facts();
		assert_int_equal(analysis__end_window(analysis, UTC(from), UTC(to), to == seconds, &result, &count), 0);
		assert_int_equal(count, 1);
		found.stopped += result->account.stopped_s;
		found.coverage = fmax(found.coverage, result->coverage_total);
		for (uint32_t i = 0; i < result->variance_count; i++) {
			const struct result_variance *at = &result->variances[i];

			if (at->state != VAPRO_REGION_CLOSED && to != seconds)
				continue;
			found.variances++;
			found.alarms += at->alarm;
			found.begin = ((double)at->begin_ns - (double)UTC(0)) / 1e9;
			found.end = ((double)at->end_ns - (double)UTC(0)) / 1e9;
			found.lost = at->lost_seconds;
			found.caused = at->caused_seconds;
			found.performance = at->performance;
			found.rank = at->ranks[0];
			found.work_unknown = at->work_unknown;
			found.team_unseen = at->team_unseen;
			snprintf(found.evidence, sizeof(found.evidence), "%s", at->evidence);
			for (uint32_t f = 0; f < at->diagnosis.factor_count; f++) {
				if (at->diagnosis.factors[f].major && at->diagnosis.factors[f].parent)
					snprintf(found.major, sizeof(found.major), "%s", at->diagnosis.factors[f].name);
			}
		}
	}
}

/* Runs both ranks; rank 1 loses `ns` of each bin from 6 s to 9 s. */
static void run_with(size_t offset, uint64_t ns)
{
	for (uint64_t at = 0; at < 100; at++) {
		struct vapro_account sums = {0};

		bin(0, at, sums);
		if (at >= 30 && at < 45)
			*(uint64_t *)((char *)&sums + offset) = ns;
		bin(1, at, sums);
	}
	windows(20);
}

static void expect(double lost, const char *major)
{
	assert_int_equal(found.variances, 1);
	assert_int_equal(found.alarms, 1);
	assert_int_equal(found.rank, 1);
	assert_near(found.begin, 6, 1e-6);
	assert_near(found.end, 9, 1e-6);
	assert_near(found.lost, lost, 1e-4);
	assert_near(found.performance, 1 - lost / 3, 1e-4);
	assert_string_equal(found.major, major);
	assert_true(found.work_unknown);
	assert_non_null(strstr(found.evidence, "not known"));
	assert_near(found.coverage, 0, 1e-9);
}

#define OF(member) offsetof(struct vapro_account, member)

static void a_hog_without_a_fragment(void **state)
{
	(void)state;
	for (uint64_t at = 30; at < 45; at++)
		interfere(1, at, 4242, 100 * MS);
	run_with(OF(preempted_ns), 100 * MS);
	expect(1.5, "preempted");
}

static void a_quota_without_a_fragment(void **state)
{
	(void)state;
	run_with(OF(throttled_ns), 120 * MS);
	expect(1.8, "throttled");
}

static void a_stop_without_a_fragment(void **state)
{
	(void)state;
	run_with(OF(stopped_ns), 200 * MS);
	expect(3, "stopped");
	assert_near(found.stopped, 3, 1e-6);
	assert_true(result->account.known);
}

static void stolen_time_without_a_fragment(void **state)
{
	(void)state;
	run_with(OF(steal_ns), 80 * MS);
	expect(1.2, "steal");
}

/* Ticks, daemons and other small activity stay below the threshold; sleep is the program's own. */
static void a_quiet_account_is_silent(void **state)
{
	(void)state;
	run_with(OF(preempted_ns), 20 * MS);
	assert_int_equal(found.variances, 0);
	start_again();
	run_with(OF(blocked_other_ns), 180 * MS);
	assert_int_equal(found.variances, 0);
}

/* Each of two ranks has half of the time that both want, and runs while the other one waits. */
static void share_cpu(void)
{
	for (uint64_t at = 0; at < 100; at++) {
		for (uint32_t rank = 0; rank < 2; rank++) {
			bin(rank, at, (struct vapro_account){.preempted_ns = 100 * MS});
			interfere(rank, at, 11 - rank, 100 * MS);
		}
	}
}

/* A job's own ranks share the CPUs: there is no intruder. A stop in the same job still counts as a stop. */
static void an_oversubscribed_job(void **state)
{
	(void)state;
	share_cpu();
	windows(20);
	assert_int_equal(found.alarms, 0);
	assert_int_equal(found.variances, 1);
	assert_non_null(strstr(found.evidence, "its own threads had the CPU"));

	/* the same where it is known that both have one CPU: no fragment says how much they want it, the account does
	 */
	start_again();
	for (uint32_t rank = 0; rank < 2; rank++) {
		struct vapro_place place = {.thread = rank, .cpus = "0"};

		assert_int_equal(analysis__place(analysis, &place), 0);
	}
	share_cpu();
	windows(20);
	assert_int_equal(found.alarms, 0);

	start_again();
	for (uint64_t at = 30; at < 45; at++)
		interfere(1, at, 10, 1 * MS);
	run_with(OF(stopped_ns), 199 * MS);
	assert_int_equal(found.alarms, 1);
}

/* A thread that sleeps all the time, as those of MPI libraries do, loses nothing when its process is stopped. */
static void an_idle_thread_takes_no_part(void **state)
{
	(void)state;
	assert_int_equal(analysis__add_thread(analysis, &second), 0);
	for (uint64_t at = 0; at < 45; at++) {
		struct vapro_account sums = {.blocked_other_ns = 198 * MS};

		if (at >= 30)
			sums = (struct vapro_account){.stopped_ns = 200 * MS};
		bin(2, at, sums);
	}
	run_with(OF(stopped_ns), 200 * MS);
	expect(3, "stopped");
}

/* The account of one that always slept begins where its process is stopped. */
static void a_thread_that_never_ran_takes_no_part(void **state)
{
	(void)state;
	assert_int_equal(analysis__add_thread(analysis, &second), 0);
	for (uint64_t at = 30; at < 45; at++)
		bin(2, at, (struct vapro_account){.stopped_ns = 200 * MS});
	run_with(OF(stopped_ns), 200 * MS);
	expect(3, "stopped");
}

static void states(void)
{
	const struct vapro_state list[] = {
	    {.id = 0, .class = VAPRO_COMPUTATION, .from = "e@1+1", .to = "e@1+2", .labels = ""},
	    {.id = 1, .class = VAPRO_COMPUTATION, .from = "e@1+3", .to = "e@1+4", .labels = ""}};

	for (int i = 0; i < 2; i++)
		assert_int_equal(analysis__add_state(analysis, &list[i]), 0);
}

static void fragment(uint32_t rank, uint32_t state, double from, double to, double preempted)
{
	struct vapro_bundle one = {.thread = rank,
				   .state = state,
				   .n = 1,
				   .start_ns = UTC(from),
				   .end_ns = UTC(to),
				   .sum_ns = UTC(to) - UTC(from),
				   .min_ns = UTC(to) - UTC(from),
				   .max_ns = UTC(to) - UTC(from)};

	one.factor[VAPRO_PREEMPTED] = preempted * 1e9;
	assert_int_equal(analysis__add_bundle(analysis, &one), 0);
}

/* Adds fragments of 20 ms; from 6 s to 9 s they last twice as long, since a hog has the CPU for half of the time. */
static void run_fragments(bool with_account, double until)
{
	states();
	for (double t = 0; t < until;) {
		bool hog = t > 5.999 && t < 8.999;

		fragment(0, 0, t, t + 0.02, 0);
		fragment(0, 0, t + 0.02, t + 0.04, 0);
		fragment(1, 0, t, t + (hog ? 0.04 : 0.02), hog ? 0.02 : 0);
		if (!hog)
			fragment(1, 0, t + 0.02, t + 0.04, 0);
		t += 0.04;
	}
	for (uint64_t at = 0; with_account && at < 100; at++) {
		bin(0, at, (struct vapro_account){0});
		bin(1, at, (struct vapro_account){.preempted_ns = at >= 30 && at < 45 ? 100 * MS : 0});
	}
	windows(20);
}

/* Time in judged fragments counts once. Where the fragments end the account goes on. */
static void fragments_carry_their_own(void **state)
{
	struct found without;

	(void)state;
	run_fragments(false, 20);
	without = found;
	assert_int_equal(without.alarms, 1);
	assert_near(without.lost, 1.5, 0.05);
	start_again();
	run_fragments(true, 20);
	assert_int_equal(found.variances, without.variances);
	assert_int_equal(found.alarms, 1);
	assert_near(found.lost, without.lost, 1e-6);
	assert_near(found.begin, without.begin, 1e-6);
	assert_near(found.end, without.end, 1e-6);
	assert_false(found.work_unknown);
	start_again();
	/* probes are closed at 7.4 s: half of the hog's time is known from the account alone */
	run_fragments(true, 7.4);
	assert_int_equal(found.alarms, 1);
	assert_near(found.lost, 1.5, 0.05);
	assert_near(found.begin, 6, 0.21);
	assert_near(found.end, 9, 0.21);
}

/* Runs rank 1 at half speed from 6 s to 9 s, beside a second thread of it that works or sleeps, and may be seen. */
static void run_team(bool busy, bool seen)
{
	start_again();
	states();
	assert_int_equal(analysis__add_thread(analysis, &second), 0);
	for (int step = 0; step < 1000; step++) {
		bool slow = step >= 300 && step < 450;

		fragment(0, 0, step * 0.02, step * 0.02 + 0.02, 0);
		if (seen)
			fragment(2, 1, step * 0.02, step * 0.02 + 0.02, 0);
		if (!slow || step % 2 == 0)
			fragment(1, 0, step * 0.02, step * 0.02 + (slow ? 0.04 : 0.02), 0);
	}
	for (uint64_t at = 0; at < 100; at++)
		for (uint32_t thread = 0; thread < 3; thread++)
			bin(thread, at,
			    (struct vapro_account){.blocked_other_ns = thread == 2 && !busy ? 199 * MS : 0});
	windows(20);
	assert_int_equal(found.variances, 1);
	assert_int_equal(found.rank, 1);
	assert_near(found.lost, 1.5, 0.05);
}

/* What a thread does that no probe sees may be what another one waits for. */
static void a_thread_that_works_unseen(void **state)
{
	(void)state;
	run_team(true, false);
	assert_true(found.team_unseen);
	run_team(false, false);
	assert_false(found.team_unseen);
	run_team(true, true);
	assert_false(found.team_unseen);
}

/* Runs two ranks that sleep in each bin; rank 1 is stopped from 6 s to 9 s, while rank 0 sleeps otherwise. */
static void run_sleepers(uint64_t usual_ns, uint64_t meanwhile_ns)
{
	for (uint64_t at = 0; at < 100; at++) {
		bool stop = at >= 30 && at < 45;

		bin(0, at, (struct vapro_account){.blocked_other_ns = stop ? meanwhile_ns : usual_ns});
		bin(1, at,
		    stop ? (struct vapro_account){.stopped_ns = 200 * MS}
			 : (struct vapro_account){.blocked_other_ns = usual_ns});
	}
	windows(20);
	expect(3, "stopped");
}

/* Ranks whose calls are not seen, since they talk over sockets: the others sleep while one of them is stopped. */
static void others_sleep_for_a_stopped_rank(void **state)
{
	(void)state;
	run_sleepers(40 * MS, 200 * MS);
	assert_near(found.caused, 15 * 0.16, 0.01);
	start_again();
	run_sleepers(40 * MS, 120 * MS);
	assert_near(found.caused, 15 * 0.08, 0.01);
	/* one that sleeps as usual waits for no rank */
	start_again();
	run_sleepers(150 * MS, 150 * MS);
	assert_near(found.caused, 0, 0.01);
}

/* A rank that sleeps more for a while is none that lost something, nor waits for one that did before. */
static void sleep_alone_is_no_loss(void **state)
{
	(void)state;
	for (uint64_t at = 0; at < 100; at++) {
		bool stop = at >= 30 && at < 45, sleeps = at >= 60 && at < 75;

		bin(0, at, (struct vapro_account){.blocked_other_ns = (sleeps ? 200 : 40) * MS});
		bin(1, at,
		    stop ? (struct vapro_account){.stopped_ns = 200 * MS}
			 : (struct vapro_account){.blocked_other_ns = 40 * MS});
	}
	windows(20);
	expect(3, "stopped");
	assert_near(found.caused, 0, 0.01);
}

static const struct result_cause *cause_by(const struct result_variance *variance, const char *comm)
{
	for (uint32_t i = 0; i < variance->cause_count; i++)
		if (variance->causes[i].culprit && !strcmp(variance->causes[i].culprit->comm, comm))
			return &variance->causes[i];
	fail();
	return NULL;
}

/* A daemon takes 30 % of both ranks all the time, a hog 2 s of rank 1 meanwhile: each is a cause with times of its own.
 */
static void a_hog_beside_a_daemon(void **state)
{
	const struct result_cause *cause;

	(void)state;
	for (uint64_t at = 0; at < 100; at++) {
		bool hog = at >= 40 && at < 50;

		for (uint32_t rank = 0; rank < 2; rank++) {
			task(rank, at, "daemon", 70, 60 * MS);
			task(rank, at, "kworker", 80 + rank, 1 * MS);
			bin(rank, at, (struct vapro_account){.preempted_ns = (hog && rank == 1 ? 151 : 61) * MS});
		}
		if (hog)
			task(1, at, "hog", 4242, 90 * MS);
	}
	windows(20);
	assert_int_equal(result->variance_count, 1);
	assert_int_equal(result->variances[0].cause_count, 2);
	cause = cause_by(&result->variances[0], "hog");
	assert_string_equal(cause->cause, "preempted");
	assert_near(cause->lost_seconds, 0.9, 0.01);
	assert_int_equal(cause->rank_count, 1);
	assert_int_equal(cause->ranks[0], 1);
	assert_near((double)(cause->begin_ns - UTC(0)) / 1e9, 8, 1e-6);
	assert_near((double)(cause->end_ns - UTC(0)) / 1e9, 10, 1e-6);
	cause = cause_by(&result->variances[0], "daemon");
	assert_near(cause->lost_seconds, 200 * .061, 0.01);
	assert_int_equal(cause->rank_count, 2);
	assert_near((double)(cause->begin_ns - UTC(0)) / 1e9, 0, 1e-6);
	assert_near((double)(cause->end_ns - UTC(0)) / 1e9, 20, 1e-6);
}

/* Ends a window of two jobs, and returns the result of the one named j. */
static const struct job_result *window_of_two(unsigned from, unsigned to)
{
	const struct job_result *results;
	uint32_t count;

	facts();
	assert_int_equal(analysis__end_window(analysis, UTC(from), UTC(to), to == 35, &results, &count), 0);
	for (uint32_t i = 0; i < count; i++)
		if (!strcmp(results[i].job, "j"))
			return &results[i];
	fail();
	return NULL;
}

/* A rank of another watched job is named as that, also after that job was over and its number was given again. */
static void a_rank_of_another_job(void **state)
{
	const struct vapro_thread other = {
	    .id = 2, .rank = 3, .world_size = 4, .pid = 4242, .tid = 4242, .job = "slurm:7.0", .host = "h"};
	const struct result_interferer *culprit = NULL;
	const struct result_diagnosis *diagnosis = NULL;

	(void)state;
	assert_int_equal(analysis__add_thread(analysis, &other), 0);
	assert_int_equal(analysis__thread_seen(analysis, 2, UTC(0), 0), 0);
	for (uint64_t at = 0; at < 175; at++) {
		bool now = at >= 30 && at < 60;

		bin(0, at, (struct vapro_account){0});
		bin(1, at, (struct vapro_account){.preempted_ns = now ? 100 * MS : 0});
		if (now)
			task(1, at, "app", 4242, 100 * MS);
		if (at < 70)
			bin(2, at, (struct vapro_account){0});
		if (at == 70) {
			const struct vapro_thread next = {
			    .id = 3, .rank = 0, .world_size = 1, .pid = 5000, .tid = 5000, .job = "next", .host = "h"};

			assert_int_equal(analysis__thread_seen(analysis, 2, UTC(0), UTC(14)), 0);
			assert_int_equal(analysis__add_thread(analysis, &next), 0);
		}
		if (at != 74 && at != 124 && at != 174)
			continue;
		result = window_of_two(at == 74 ? 0 : (unsigned)(at - 49) / 5, (unsigned)(at + 1) / 5);
		for (uint32_t i = 0; i < result->variance_count; i++) {
			diagnosis = &result->variances[i].diagnosis;
			culprit = diagnosis->culprit;
			assert_non_null(culprit);
			assert_int_equal(culprit->relation, VAPRO_OTHER_JOB);
			assert_int_equal(culprit->rank, 3);
			assert_string_equal(culprit->job, "slurm:7.0");
			assert_non_null(
			    strstr(diagnosis->verdict, "app (pid 4242, rank 3 of job slurm:7.0) ran on its CPU"));
			assert_non_null(strstr(diagnosis->advice,
					       "(pid 4242, rank 3 of job slurm:7.0) ran 3.0 s on the CPU of "
					       "rank 1: both jobs are allowed that CPU"));
		}
	}
	assert_non_null(culprit);
}

/*
 * Two ranks with three further threads each that work from 6 s on and call nothing, all of them on two CPUs: eight
 * threads share these, and binding them would be no help.
 */
static void threads_without_fragments(void **state)
{
	const struct result_variance *variance = NULL;

	(void)state;
	states();
	for (uint32_t i = 2; i < 8; i++) {
		const struct vapro_thread helper = {.id = i,
						    .rank = i % 2,
						    .thread = 1 + (int32_t)i / 2,
						    .world_size = 2,
						    .pid = 10 + i % 2,
						    .tid = 20 + i,
						    .job = "j",
						    .host = "h"};

		assert_int_equal(analysis__add_thread(analysis, &helper), 0);
	}
	/* of the further threads the CPUs were not announced: those of their rank hold */
	for (uint32_t i = 0; i < 2; i++) {
		const struct vapro_place place = {.thread = i, .cpus = "0-1"};

		assert_int_equal(analysis__place(analysis, &place), 0);
	}
	for (double t = 0; t<14.99; t += t> 5.999 ? 0.08 : 0.02)
		for (uint32_t rank = 0; rank < 2; rank++)
			fragment(rank, 0, t, t + (t > 5.999 ? 0.08 : 0.02), t > 5.999 ? 0.06 : 0);
	for (uint64_t at = 0; at < 75; at++) {
		bool many = at >= 30;

		for (uint32_t i = 0; i < 8; i++)
			bin(i, at,
			    (struct vapro_account){.preempted_ns = many ? 150 * MS : 0,
						   .blocked_other_ns = many || i < 2 ? 0 : 199 * MS});
		for (uint32_t i = 0; many && i < 2; i++)
			interfere(i, at, 22 + i, 150 * MS);
	}
	windows(15);
	for (uint32_t i = 0; i < result->variance_count; i++)
		variance = result->variances[i].class == VAPRO_COMPUTATION ? &result->variances[i] : variance;
	assert_non_null(variance);
	assert_int_equal(variance->diagnosis.oversubscribed.cpus, 2);
	assert_true(variance->diagnosis.oversubscribed.threads > 4 && variance->diagnosis.oversubscribed.threads < 8.1);
	assert_non_null(strstr(variance->diagnosis.advice, "The job is oversubscribed"));
	assert_non_null(strstr(variance->diagnosis.verdict, "runnable threads share 2 CPUs"));
}

/*
 * A computation of 18 s without history is reported before its end; then its fragment cannot be judged, and the
 * bins stay what the account says. Without an account all of the computation would be slow, or none of it.
 */
static void a_long_computation(void **state)
{
	(void)state;
	states();
	for (uint64_t at = 0; at < 75; at++) {
		bin(0, at, (struct vapro_account){0});
		bin(1, at, (struct vapro_account){.preempted_ns = at >= 60 ? 100 * MS : 0});
	}
	for (uint64_t at = 75; at < 100; at++)
		bin(0, at, (struct vapro_account){0});
	/* added after the first window, not by windows(): it begins before the second window and ends in that */
	{
		uint32_t count;

		assert_int_equal(analysis__end_window(analysis, UTC(0), UTC(15), false, &result, &count), 0);
		assert_int_equal(result->variance_count, 1);
		assert_near(result->variances[0].lost_seconds, 1.5, 1e-4);
		fragment(1, 1, 0.1, 18.1, 1.5);
		facts();
		assert_int_equal(analysis__end_window(analysis, UTC(15), UTC(20), true, &result, &count), 0);
		assert_int_equal(result->variance_count, 1);
		assert_true(result->variances[0].alarm);
		assert_near(result->variances[0].lost_seconds, 1.5, 1e-4);
		assert_near((double)(result->variances[0].begin_ns - UTC(0)) / 1e9, 12, 1e-6);
		assert_near((double)(result->variances[0].end_ns - UTC(0)) / 1e9, 15, 1e-6);
	}
}

/* A query between windows about the same time has the same response. */
static void a_question_about_the_account(void **state)
{
	const struct vapro_selection query = {.begin_ns = UTC(5.8), .end_ns = UTC(9.2)};
	const struct result_variance *selection;
	uint32_t count;

	(void)state;
	for (uint64_t at = 0; at < 75; at++) {
		bin(0, at, (struct vapro_account){0});
		bin(1, at, (struct vapro_account){.throttled_ns = at >= 30 && at < 45 ? 120 * MS : 0});
	}
	states();
	fragment(0, 0, 1, 1.02, 0); /* no query is about a job without retained data */
	analysis__remember(analysis, 60, 1 << 20);
	assert_int_equal(analysis__query(analysis, &query, "j", UTC(15), &result, &count), 0);
	assert_int_equal(count, 1);
	assert_int_equal(result->selection_count, 1);
	selection = &result->selections[0];
	assert_near(selection->lost_seconds, 1.8, 1e-3);
	assert_non_null(strstr(selection->diagnosis.verdict, "throttled"));
}

/* Ends a window and returns what the variance that began in the first 6 s has lost, or `known` where it is not emitted.
 */
static double early_loss(unsigned from, unsigned to, double known)
{
	uint32_t count;

	facts();
	assert_int_equal(analysis__end_window(analysis, UTC(from), UTC(to), false, &result, &count), 0);
	for (uint32_t i = 0; i < result->variance_count; i++)
		if (result->variances[i].begin_ns < UTC(6))
			known = result->variances[i].lost_seconds;
	return known;
}

/* What a thread loses later takes nothing away from what it has lost before, also where it is not the first one. */
static void an_early_loss_stays(void **state)
{
	struct vapro_thread thread = {
	    .id = 2, .rank = 0, .world_size = 2, .thread = 1, .pid = 10, .tid = 12, .job = "j", .host = "h"};
	double lost = 0;

	(void)state;
	assert_int_equal(analysis__add_thread(analysis, &thread), 0);
	for (uint64_t at = 0; at < 175; at++) {
		bool early = at >= 20 && at < 30, late = at >= 80 && at < 100;

		if (at == 75) {
			lost = early_loss(0, 15, 0);
			assert_near(lost, 1, 0.05);
		} else if (at == 125) {
			lost = early_loss(15, 25, lost);
			assert_near(lost, 1, 0.05);
		}
		bin(0, at, (struct vapro_account){0});
		bin(1, at, (struct vapro_account){0});
		bin(2, at, (struct vapro_account){.preempted_ns = early * 100 * MS, .throttled_ns = late * 150 * MS});
	}
	assert_near(early_loss(25, 35, lost), 1, 0.05);
}

#define JOB(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    JOB(a_hog_beside_a_daemon),
	    JOB(a_rank_of_another_job),
	    JOB(threads_without_fragments),
	    JOB(a_hog_without_a_fragment),
	    JOB(others_sleep_for_a_stopped_rank),
	    JOB(sleep_alone_is_no_loss),
	    JOB(a_quota_without_a_fragment),
	    JOB(a_stop_without_a_fragment),
	    JOB(stolen_time_without_a_fragment),
	    JOB(a_quiet_account_is_silent),
	    JOB(an_oversubscribed_job),
	    JOB(an_idle_thread_takes_no_part),
	    JOB(a_thread_that_never_ran_takes_no_part),
	    JOB(fragments_carry_their_own),
	    JOB(a_thread_that_works_unseen),
	    JOB(a_long_computation),
	    JOB(a_question_about_the_account),
	    JOB(an_early_loss_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
