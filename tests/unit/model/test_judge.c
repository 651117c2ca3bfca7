/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The verdict on a bundle: coverage, reference, and loss. */
#include "model/judge.h"
#include "near.h"
#include "sim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static struct vapro_config config;
static struct stg *stg;
static struct series_book book;

static int setup(void **state)
{
	(void)state;
	sim_config(&config);
	stg = stg__new();
	return series__init(&book, &config, VAPRO_BY_ARGUMENTS, stg);
}

static int teardown(void **state)
{
	(void)state;
	series__free(&book);
	stg__free(stg);
	return 0;
}

/* Adds a thread for each of `ranks` ranks. */
static void add_ranks(uint32_t ranks)
{
	for (uint32_t i = 0; i < ranks; i++) {
		struct vapro_thread thread = {
		    .id = i, .rank = (int32_t)i, .pid = i, .job = "j", .host = "h", .world_size = 4};

		assert_int_equal(stg__add_thread(stg, &thread), 0);
	}
}

static void add_state(struct vapro_state state)
{
	assert_int_equal(stg__add_state(stg, &state), 0);
}

static void add_computation(void)
{
	add_state((struct vapro_state){.class = VAPRO_COMPUTATION, .from = "a+0", .to = "a+1", .labels = "x"});
}

static struct vapro_bundle bundle(uint32_t thread, uint32_t state, double ns, uint32_t n, double bytes)
{
	struct vapro_bundle b = {.thread = thread, .state = state, .n = n, .start_ns = 1000};

	b.min_ns = b.max_ns = (uint64_t)ns;
	b.sum_ns = (uint64_t)ns * n;
	b.end_ns = b.start_ns + b.sum_ns;
	b.magnitude_min[VAPRO_BYTES] = b.magnitude_max[VAPRO_BYTES] = bytes;
	return b;
}

static struct bundle_rec add(struct vapro_bundle b)
{
	struct bundle_rec rec;

	assert_int_equal(series__add(&book, (struct series_of){b.thread, b.state}, &b, b.factor, &rec), 0);
	return rec;
}

/* Judges by the references that were computed last. */
static struct bundle_rec judge(struct vapro_bundle b)
{
	struct bundle_rec rec = add(b);

	judge__bundle(&book, &rec);
	return rec;
}

/* Judges by references that include the bundle itself. */
static struct bundle_rec refresh_and_judge(struct vapro_bundle b)
{
	struct bundle_rec rec = add(b);

	judge__refresh(&book);
	judge__bundle(&book, &rec);
	return rec;
}

static void test_judge(void **state)
{
	static const char *const labels[] = {"file=1 function=write", "file=2 function=write"};
	struct vapro_bundle b;
	struct bundle_rec rec;

	(void)state;
	add_ranks(4);
	add_computation();
	for (uint32_t i = 0; i < 2; i++)
		add_state((struct vapro_state){.id = i + 1,
					       .class = VAPRO_IO,
					       .to = i ? "a+3" : "a+2",
					       .labels = labels[i],
					       .common = "function=write"});
	/* Ranks 0 to 2 agree within 5 %, rank 3 does not. */
	for (uint32_t rank = 0; rank < 4; rank++)
		rec = add(bundle(rank, 0, rank == 3 ? 2e6 : 1e6 * (1 + 0.02 * rank), 49, 0));
	judge__refresh(&book);
	judge__bundle(&book, &rec);
	assert_int_equal(rec.reason, VAPRO_FEW_FRAGMENTS);
	for (uint32_t rank = 0; rank < 4; rank++) {
		add(bundle(rank, 0, rank == 3 ? 2e6 : 1e6 * (1 + 0.02 * rank), 1, 0));
		judge__refresh(&book);
	}
	for (uint32_t rank = 0; rank < 4; rank++) {
		b = bundle(rank, 0, 1e6, 1, 0);
		b.flags = VAPRO_BUNDLE_OPEN;
		rec = judge(b);
		/* half of rank 3's duration is other work than that of its state */
		assert_true(rec.covered == (rank != 3) && rec.certified == (rank != 3));
		assert_int_equal(rec.reason, rank == 3 ? VAPRO_SPREAD : VAPRO_COVERED);
		if (rank != 3)
			assert_near(rec.reference, 1.02e6, 1);
	}
	b = bundle(3, 0, 2e6, 1, 0);
	b.flags = VAPRO_BUNDLE_OPEN;
	rec = judge(b);
	assert_true(rec.covered && rec.certified);
	assert_near(rec.reference, 2e6, 1);
	/* Preempted time is no on-CPU time. */
	b = bundle(0, 0, 9e6, 1, 0);
	b.factor[VAPRO_PREEMPTED] = 8e6;
	rec = add(b);
	assert_near(series__compared_ns(VAPRO_COMPUTATION, &rec), 1e6, 1);
	/* Sizes within 5 % are one workload, others are not. */
	add(bundle(0, 1, 1e5, 60, 100000));
	add(bundle(0, 1, 1e5, 1, 104000));
	rec = refresh_and_judge(bundle(0, 1, 9e5, 1, 900000));
	assert_false(rec.covered);
	/* Stuck in a state never seen: judged by the common labels. */
	b = bundle(1, 2, 30e9, 1, 100000);
	b.flags = VAPRO_BUNDLE_OPEN;
	rec = judge(b);
	assert_true(rec.covered && !rec.certified && !rec.no_reference);
	assert_near(rec.reference, 1e5, 1);
}

/* Losses of work that spreads are only those that the kernel attributes, and only large ones. */
static void test_losses_of_random_work(void **state)
{
	static const struct {
		double ns, preempted, irq, frequency;
		bool attributed_only;
	} diagnoses[] = {{5e6, 0, 0, 0, false},	 {5e6, 0.5e6, 0, 0, false}, {5e6, 2e6, 0, 0, true},
			 {5e6, 0, 2e6, 0, true}, {1e6, 1e6, 0, 0, true},    {5e6, 0, 0, 2e6, true}};
	static const double on_cpu = 1e9, saved = 0;
	uint64_t random = 7;

	(void)state;
	add_ranks(1);
	add_computation();
	for (int i = 0; i < 200; i++)
		add(bundle(0, 0, 1e6 * (0.3 + 1.4 * sim_random(&random)), 1, 0));
	judge__refresh(&book);
	assert_int_equal(stg__set_speed(stg, 0, &on_cpu, &saved), 0);
	for (size_t i = 0; i < sizeof(diagnoses) / sizeof(diagnoses[0]); i++) {
		struct vapro_bundle b = bundle(0, 0, diagnoses[i].ns, 1, 0);
		struct bundle_rec rec;

		b.factor[VAPRO_PREEMPTED] = diagnoses[i].preempted;
		b.factor[VAPRO_IRQ] = diagnoses[i].irq;
		b.factor[VAPRO_FREQUENCY] = diagnoses[i].frequency;
		rec = judge(b);
		assert_int_equal(rec.reason, VAPRO_SPREAD);
		assert_int_equal(rec.covered, diagnoses[i].attributed_only);
		assert_int_equal(rec.attributed_only, diagnoses[i].attributed_only);
		assert_false(rec.certified || rec.no_reference);
		if (diagnoses[i].attributed_only)
			assert_near(bundle_rec__loss(&rec).lost,
				    diagnoses[i].preempted + diagnoses[i].irq + diagnoses[i].frequency, 10);
	}
}

/*
 * Work whose usual frequency is not known of itself has the frequency that is usual on CPUs of its kind: that of the
 * least slowed rank, in the view in which it was least slowed.
 */
static void test_usual_frequency(void **state)
{
	static const double views[][4] = {{0.5, 0.6, 0.1, 0.1}, {0.4, 0.4, 0.1, 0.3}};
	static const double on_cpu[] = {1e9, 1e9, 1e9, 1e9};
	uint64_t random = 7;

	(void)state;
	add_ranks(4);
	for (uint32_t rank = 0; rank < 4; rank++) {
		struct vapro_place place = {.thread = rank, .core_type = rank < 2 ? "slow" : "fast"};

		assert_int_equal(stg__set_place(stg, &place), 0);
	}
	add_computation();
	for (int i = 0; i < 200; i++)
		add(bundle(0, 0, 1e6 * (0.3 + 1.4 * sim_random(&random)), 1, 0));
	judge__refresh(&book);
	for (int view = 0; view < 2; view++) {
		double saved[4];

		for (int rank = 0; rank < 4; rank++)
			saved[rank] = 1e9 * views[view][rank];
		assert_int_equal(stg__set_speed(stg, 0, on_cpu, saved), 0);
	}
	for (uint32_t rank = 0; rank < 4; rank++) {
		struct vapro_bundle b = bundle(rank, 0, 5e6, 1, 0);
		struct bundle_rec rec;

		assert_near(stg__job(stg, 0)->rows[rank].full_speed, rank < 2 ? 0.6 : 0.9, 1e-6);
		b.factor[VAPRO_FREQUENCY] = 2e6;
		rec = judge(b);
		assert_int_equal(rec.attributed_only, rank >= 2);
		if (rank >= 2)
			assert_near(bundle_rec__loss(&rec).lost, 1.5e6, 10);
	}
}

/* A call without a return is not judged, however steady: the time is not the call's alone. */
static void test_without_return(void **state)
{
	static const char *const labels[] = {"function=MPI_Send", "function=MPI_Send no_return=1"};

	(void)state;
	add_ranks(1);
	for (uint32_t i = 0; i < 2; i++) {
		struct bundle_rec rec;

		add_state(
		    (struct vapro_state){.id = i, .class = VAPRO_COMMUNICATION, .to = "a+1", .labels = labels[i]});
		rec = refresh_and_judge(bundle(0, i, 1e6, 200, 8));
		assert_int_equal(rec.covered, i == 0);
		assert_int_equal(rec.reason, i ? VAPRO_NO_RETURN : VAPRO_COVERED);
	}
}

/* A completion of requests not followed is known by its label; one with a size, or with other labels, is not. */
static void test_unknown_bytes(void **state)
{
	static const char *const labels[] = {"bytes=unknown function=MPI_Waitall requests=8 without=Irecv",
					     "function=MPI_Waitall requests=8", "function=MPI_Send unit=unknown"};

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		add_state(
		    (struct vapro_state){.id = i, .class = VAPRO_COMMUNICATION, .to = "a+1", .labels = labels[i]});
		assert_int_equal(stg__state(stg, i)->no_bytes, i == 0);
	}
	assert_int_not_equal(stg__state(stg, 0)->kind, stg__state(stg, 1)->kind);
}

/* A call stuck where it was never seen before is compared with the same call of its size elsewhere. */
static void test_stuck_calls(void **state)
{
	static const double each_ns[] = {1e6, 9e6, 4e6}, bytes[] = {8, 800, 8};

	(void)state;
	add_ranks(1);
	for (uint32_t i = 0; i < 5; i++) {
		char to[8];

		snprintf(to, sizeof(to), "a+%u", i);
		add_state((struct vapro_state){
		    .id = i, .class = VAPRO_COMMUNICATION, .to = to, .labels = i == 4 ? "f=y" : "f=x"});
		if (i < 3)
			add(bundle(0, i, each_ns[i], 60, bytes[i]));
	}
	for (uint32_t i = 0; i < 3; i++) {
		struct bundle_rec rec = refresh_and_judge(bundle(0, i == 2 ? 4 : 3, 5e9, 1, i ? 5000 : 8));

		assert_near(rec.reference, i == 2 ? 0 : i ? 9e6 : 4e6, 1e5);
		assert_int_equal(rec.no_reference, i == 2);
	}
}

/* Memory of an ended job goes to the next; another job's histories stay unchanged. */
static void test_forgetting(void **state)
{
	struct bundle_rec first, rec;

	(void)state;
	add_computation();
	for (uint32_t i = 0; i < 40; i++) {
		char job[16];
		struct vapro_thread thread = {
		    .id = i, .rank = 0, .pid = 1 + i, .job = job, .host = "n", .world_size = 1};

		snprintf(job, sizeof(job), "job%u", i);
		assert_int_equal(stg__add_thread(stg, &thread), 0);
		rec = add(bundle(i, 0, 1e6, 60, 0));
		if (!i)
			first = rec;
		assert_int_equal(stg__thread_seen(stg, i, 1, 0), 0);
		assert_false(stg__job_over(stg, i, 2));
		assert_int_equal(stg__thread_seen(stg, i, 1, 2), 0);
		assert_false(stg__job_over(stg, i, 1));
		assert_true(stg__job_goes_on(stg, i, 1));
		assert_true(stg__job_over(stg, i, 2));
		assert_false(stg__job_goes_on(stg, i, 2));
		if (i)
			assert_int_equal(series__forget(&book, i), 0);
	}
	assert_int_equal(book.count, 2);
	assert_int_equal(book.workload_count, 2);
	judge__refresh(&book);
	judge__bundle(&book, &first);
	assert_true(first.certified);
	/* the same name again: no history */
	rec = refresh_and_judge(bundle(39, 0, 1e6, 1, 0));
	assert_int_equal(rec.reason, VAPRO_FEW_FRAGMENTS);
}

static void test_naps_are_work(void **state)
{
	struct bundle_rec rec;

	(void)state;
	add_ranks(1);
	add_computation();
	for (int i = 0; i < 100; i++) {
		struct vapro_bundle b = bundle(0, 0, 3e6, 1, 0);

		b.factor[VAPRO_BLOCKED_OTHER] = 2e6;
		rec = add(b);
	}
	judge__refresh(&book);
	judge__bundle(&book, &rec);
	judge__usual(&book, 0);
	bundle_rec__set_usual(&rec, BUNDLE_USUAL_BLOCKED, book.series[rec.series].usual_blocked);
	assert_true(rec.certified);
	assert_near(rec.reference, 3e6, 10);
	assert_near(rec.factor[BUNDLE_USUAL_BLOCKED], 2e6, 10);
	assert_near(bundle_rec__loss(&rec).blocked, 0, 10);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_judge),	       TEST(test_losses_of_random_work), TEST(test_usual_frequency),
	    TEST(test_without_return), TEST(test_unknown_bytes),	 TEST(test_forgetting),
	    TEST(test_stuck_calls),    TEST(test_naps_are_work),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
