/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/archive.h"
#include "base/arena.h"
#include "base/intern.h"
#include "model/reference.h"
#include "model/stg.h"
#include "base/table.h"
#include "near.h"
#include "sim.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool is_odd(const void *ctx, uint32_t value)
{
	(void)ctx;
	return value & 1;
}

static void test_table(void **state)
{
	struct table *table = table__new();
	uint32_t value;

	(void)state;
	for (uint32_t i = 0; i < 5000; i++)
		assert_int_equal(table__put(table, i * 7ULL << 32, i, i), 0);
	for (uint32_t i = 0; i < 5000; i++) {
		assert_true(table__get(table, i * 7ULL << 32, i, &value));
		assert_int_equal(value, i);
	}
	assert_false(table__get(table, 1, 1, &value));
	assert_int_equal(table__put(table, 0, 0, 42), 0);
	assert_true(table__get(table, 0, 0, &value));
	assert_int_equal(value, 42);
	assert_int_equal(table__prune(table, is_odd, NULL), 0);
	for (uint32_t i = 0; i < 5000; i++)
		assert_int_equal(table__get(table, i * 7ULL << 32, i, &value), i & 1);
	assert_int_equal(table__put(table, 0, 0, 43), 0);
	assert_true(table__get(table, 0, 0, &value));
	table__free(table);
}

static void test_intern(void **state)
{
	struct intern *intern = intern__new();
	uint32_t a = intern__id(intern, "a"), empty = intern__id(intern, "");

	(void)state;
	assert_int_equal(intern__id(intern, NULL), 0);
	assert_null(intern__text(intern, 0));
	assert_int_not_equal(a, empty);
	assert_int_equal(intern__id(intern, "a"), a);
	assert_string_equal(intern__text(intern, a), "a");
	intern__free(intern);
}

static void test_arena(void **state)
{
	struct arena arena = {0};

	(void)state;
	assert_non_null(arena__take(&arena, 0));
	for (int i = 0; i < 1000; i++)
		memset(arena__take(&arena, 100), 1, 100);
	memset(arena__take(&arena, 1000000), 1, 1000000);
	assert_string_equal(arena__copy(&arena, "text"), "text");
	arena__clear(&arena);
}

static void test_histogram_buckets(void **state)
{
	(void)state;
	/* Buckets: 32 per octave, 8 cells, contiguous, also across octaves. */
	for (uint64_t v = 1; v < 100000; v++) {
		uint32_t step = histogram__index((double)v) - histogram__index((double)(v - 1));

		assert_true(step <= 1);
	}
	assert_int_equal(histogram__index(2048) - histogram__index(1024), 32);
	assert_near(histogram__log_width(histogram__index(1024) / HISTOGRAM_PER_CELL), log(9.0 / 8), 1e-12);
	assert_near(histogram__log_width(histogram__index(2047) / HISTOGRAM_PER_CELL), log(16.0 / 15), 1e-12);
}

static void fill(struct histogram *histogram, uint64_t *seed, double mean, double sigma, int n)
{
	for (int i = 0; i < n; i++)
		assert_int_equal(histogram__add(histogram, mean * (1 + sigma * sim_gauss(seed)), 1), 0);
}

static void test_reference_noise(void **state)
{
	struct vapro_config config;

	(void)state;
	sim_config(&config);
	/* One noisy peak, wherever it lies relative to bucket borders, is one certified group with its mean. */
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct histogram histogram = {0};
		struct reference reference;
		uint64_t random = seed;
		double mean = 1e6 * pow(2, (double)seed / 17);

		fill(&histogram, &random, mean, 0.01 + 0.05 * (double)(seed % 2), 200);
		reference = reference__of(&histogram, &config);
		assert_int_equal(reference.groups, 1);
		assert_near(reference.expected_ns / mean, 1, 0.03);
		assert_true(reference.near_share > 0.7);
		histogram__clear(&histogram);
	}
}

static void test_reference_outlier(void **state)
{
	struct vapro_config config;
	struct histogram histogram = {0};
	struct reference reference;
	uint64_t seed = 3;

	(void)state;
	sim_config(&config);
	fill(&histogram, &seed, 1e6, 0.02, 50);
	histogram__add(&histogram, 3e9, 1);
	histogram__add(&histogram, 1e5, 2); /* the single fastest fragment is never the reference */
	reference = reference__of(&histogram, &config);
	assert_near(reference.expected_ns, 1e6, 2e4);
	histogram__clear(&histogram);
	reference = reference__of(&histogram, &config);
	assert_true(reference.expected_ns == 0 && !reference.groups);
}

static void test_reference_lowest_populous(void **state)
{
	struct vapro_config config;
	struct histogram histogram = {0};
	struct reference reference;
	uint64_t seed = 5;

	(void)state;
	sim_config(&config);
	fill(&histogram, &seed, 2e6, 0.02, 100);
	reference = reference__of(&histogram, &config);
	assert_near(reference.expected_ns, 2e6, 4e4);
	/* A group below 20 % changes nothing, beyond it the reference improves. */
	fill(&histogram, &seed, 1e6, 0.02, 20);
	reference = reference__of(&histogram, &config);
	assert_near(reference.expected_ns, 2e6, 4e4);
	fill(&histogram, &seed, 1e6, 0.02, 20);
	reference = reference__of(&histogram, &config);
	assert_near(reference.expected_ns, 1e6, 2e4);
	assert_int_equal(reference.groups, 2);
	assert_true(reference.near_share > 0.9);
	histogram__clear(&histogram);
}

static void test_reference_random_work(void **state)
{
	struct vapro_config config;
	int certified = 0;

	(void)state;
	sim_config(&config);
	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct histogram histogram = {0};
		uint64_t random = seed;

		for (int i = 0; i < 50 + (int)seed; i++)
			histogram__add(&histogram, 1e6 * (0.3 + 1.4 * sim_random(&random)), 1);
		certified += reference__of(&histogram, &config).near_share >= config.certify_share;
		histogram__clear(&histogram);
	}
	assert_int_equal(certified, 0);
}

static void add_thread(struct stg *stg, uint32_t id, int32_t rank, uint32_t pid)
{
	struct vapro_thread thread = {.id = id, .rank = rank, .pid = pid, .job = "j", .host = "h", .world_size = 4};

	assert_int_equal(stg__add_thread(stg, &thread), 0);
}

/* Rows are in the order of ranks, and rows of one host and socket are neighbours, whatever came first. */
static void test_placement(void **state)
{
	static const char *const hosts[] = {"z", "y", "x"};
	static const uint32_t ranks[] = {7, 2, 11, 0, 5, 8, 1, 10, 3, 4, 9, 6};
	/* rank % 3 is the host, rank / 3 % 2 the socket; the sockets of host y are unknown */
	static const int32_t expected[] = {0, 6, 3, 9, 1, 4, 7, 10, 2, 8, 5, 11};
	struct stg *stg = stg__new();
	const struct stg_job *job;

	(void)state;
	for (uint32_t i = 0; i < 12; i++) {
		struct vapro_thread thread = {.id = i,
					      .rank = (int32_t)ranks[i],
					      .pid = ranks[i] + 1,
					      .job = "j",
					      .host = hosts[ranks[i] % 3],
					      .world_size = 12};

		assert_int_equal(stg__add_thread(stg, &thread), 0);
		if (ranks[i] % 3 != 1)
			assert_int_equal(
			    stg__set_place(stg,
					   &(struct vapro_place){.thread = i, .socket = (int32_t)(ranks[i] / 3 % 2)}),
			    0);
		/* a later location moves no row */
		assert_int_equal(
		    stg__set_place(stg, &(struct vapro_place){.thread = i, .socket = ranks[i] % 3 == 1 ? -1 : 5}), 0);
	}
	job = stg__job(stg, 0);
	assert_int_equal(job->host_count, 3);
	for (uint32_t i = 0; i < 12; i++) {
		assert_int_equal(job->rows[job->order[i]].rank, i);
		assert_int_equal(job->place[job->order[i]], i);
		assert_int_equal(job->rows[job->neighbours[i]].rank, expected[i]);
	}
	/* A further thread stays beside its rank. */
	assert_int_equal(
	    stg__add_thread(
		stg,
		&(struct vapro_thread){
		    .id = 12, .rank = 6, .pid = 7, .tid = 99, .thread = 1, .job = "j", .host = "z", .world_size = 12}),
	    0);
	assert_int_equal(stg__touch(stg, 12, 100, true), 0);
	job = stg__job(stg, 0);
	assert_int_equal(job->row_count, 13);
	assert_int_equal(job->rows[job->neighbours[1]].rank, 6);
	assert_int_equal(job->rows[job->neighbours[2]].rank, 6);
	assert_int_equal(job->rows[job->neighbours[2]].thread, 1);
	/* its rank's row does not wait for its end */
	assert_int_equal(stg__thread_seen(stg, 11, 50, 70), 0);
	assert_int_equal(job->rows[stg__thread(stg, 11)->row].to_ns, 70);
	assert_int_equal(job->rows[stg__thread(stg, 12)->row].to_ns, 0);
	stg__free(stg);
}

/* Threads end by themselves or with their process, and a number that is used again begins a life of its own. */
static void test_ends(void **state)
{
	struct stg *stg = stg__new();

	(void)state;
	for (uint32_t i = 0; i < 4; i++) {
		uint32_t pid = i < 3 ? 100 : 200;
		struct vapro_thread thread = {.id = i,
					      .rank = i / 3,
					      .thread = i % 3,
					      .world_size = 2,
					      .pid = pid,
					      .tid = pid + i % 3,
					      .job = "j",
					      .host = "h"};

		assert_int_equal(stg__add_thread(stg, &thread), 0);
	}
	assert_int_equal(stg__thread_seen(stg, 0, 10, 0), 0);
	assert_int_equal(stg__thread_seen(stg, 3, 10, 0), 0);
	assert_int_equal(stg__touch(stg, 1, 20, true), 0);
	assert_int_equal(stg__touch(stg, 2, 20, true), 0);
	assert_int_equal(stg__thread_seen(stg, 1, 0, 50), 0);
	assert_int_equal(stg__thread(stg, 1)->from_ns, 20);
	assert_int_equal(stg__thread(stg, 1)->to_ns, 50);
	assert_int_equal(stg__job(stg, 0)->rows[stg__thread(stg, 1)->row].to_ns, 50);
	assert_int_equal(stg__thread(stg, 2)->to_ns, 0);
	assert_int_equal(stg__touch(stg, 1, 40, true), 0); /* a bundle that was drained late */
	assert_int_equal(stg__thread(stg, 1)->to_ns, 50);
	assert_int_equal(stg__touch(stg, 1, 60, true), 0);
	assert_int_equal(stg__thread(stg, 1)->to_ns, 0);
	assert_int_equal(stg__job(stg, 0)->rows[stg__thread(stg, 1)->row].to_ns, 0);
	assert_int_equal(stg__thread_seen(stg, 0, 10, 90), 0);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(stg__thread(stg, i)->to_ns, 90);
		assert_int_equal(stg__job(stg, 0)->rows[stg__thread(stg, i)->row].to_ns, 90);
	}
	assert_int_equal(stg__thread(stg, 3)->to_ns, 0);
	assert_int_equal(
	    stg__add_thread(
		stg,
		&(struct vapro_thread){
		    .id = 4, .rank = 0, .thread = 3, .world_size = 2, .pid = 100, .tid = 103, .job = "j", .host = "h"}),
	    0);
	assert_int_equal(stg__touch(stg, 4, 80, true), 0); /* its first bundle is drained after its process's end */
	assert_int_equal(stg__thread(stg, 4)->to_ns, 90);
	assert_int_equal(stg__job(stg, 0)->rows[stg__thread(stg, 4)->row].to_ns, 90);
	stg__free(stg);
}

/* A graph that was written and read back. */
static struct stg *copy_of(struct stg *stg)
{
	struct archive *out = archive__new(), *in;
	struct stg *copy = stg__new();
	const uint8_t *bytes;
	size_t size;

	stg__archive(out, stg);
	assert_int_equal(archive__error(out), 0);
	bytes = archive__data(out, &size);
	in = archive__open(bytes, size, 1 << 20);
	stg__archive(in, copy);
	assert_int_equal(archive__error(in), 0);
	archive__free(in);
	archive__free(out);
	return copy;
}

/* A main thread ends the threads of its process: of this job, on this host, and that have not ended before. */
static void check_processes(struct stg *stg)
{
	const struct stg_job *job = stg__job(stg, 0);
	uint64_t expected[] = {90, 90, 0, 0, 0, 0, 50, 90, 0, 0};

	assert_int_equal(stg__thread_seen(stg, 6, 0, 50), 0);
	assert_int_equal(stg__thread_seen(stg, 0, 10, 90), 0);
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(stg__thread(stg, i)->to_ns, expected[i]);
	assert_int_equal(job->rows[stg__thread(stg, 0)->row].to_ns, 90);
	assert_int_equal(job->rows[stg__thread(stg, 2)->row].to_ns, 0);
	/* the number is used again; what has ended keeps its end */
	assert_int_equal(stg__thread_seen(stg, 0, 100, 0), 0);
	assert_int_equal(stg__add_thread(stg, &(struct vapro_thread){.id = 10,
								     .rank = 0,
								     .thread = 4,
								     .world_size = 2,
								     .pid = 100,
								     .tid = 107,
								     .job = "j",
								     .host = "h"}),
			 0);
	assert_int_equal(stg__thread_seen(stg, 10, 110, 0), 0);
	assert_int_equal(stg__thread_seen(stg, 0, 100, 190), 0);
	expected[0] = 190;
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(stg__thread(stg, i)->to_ns, expected[i]);
	assert_int_equal(stg__thread(stg, 10)->to_ns, 190);
	stg__free(stg);
}

static void test_processes(void **state)
{
	struct stg *stg = stg__new(), *copy;
	const struct vapro_thread threads[] = {
	    {.rank = 0, .pid = 100, .tid = 100, .job = "j", .host = "h"},
	    {.rank = 0, .thread = 1, .pid = 100, .tid = 101, .job = "j", .host = "h"},
	    {.rank = 1, .pid = 200, .tid = 200, .job = "j", .host = "h"},
	    {.rank = 2, .pid = 100, .tid = 100, .job = "j", .host = "g"}, /* the same number on another host */
	    {.rank = 2, .thread = 1, .pid = 100, .tid = 101, .job = "j", .host = "g"},
	    {.rank = 0, .pid = 100, .tid = 105, .job = "other", .host = "h"},
	    {.rank = 0, .thread = 2, .pid = 100, .tid = 102, .job = "j", .host = "h"},
	    {.rank = 0, .thread = 3, .pid = 100, .tid = 103, .job = "j", .host = "h"},
	    {.rank = 3, .job = "j", .host = "h"}, /* neither process nor task are known */
	    {.rank = 4, .job = "j", .host = "h"},
	};

	(void)state;
	for (uint32_t i = 0; i < sizeof(threads) / sizeof(*threads); i++) {
		struct vapro_thread thread = threads[i];

		thread.id = i;
		thread.world_size = 5;
		assert_int_equal(stg__add_thread(stg, &thread), 0);
		assert_int_equal(stg__thread_seen(stg, i, 10, 0), 0);
	}
	copy = copy_of(stg);
	check_processes(stg);
	check_processes(copy);
}

static void test_stg(void **state)
{
	struct stg *stg = stg__new();
	struct vapro_state states[] = {
	    {.id = 0, .class = VAPRO_COMMUNICATION, .to = "a+1", .labels = "comm=0 peer=1", .common = "f=x"},
	    {.id = 1, .class = VAPRO_COMMUNICATION, .to = "a+1", .labels = "comm=3 peer=2", .common = "f=x"},
	    {.id = 2, .class = VAPRO_COMPUTATION, .from = "a+0", .to = "a+1", .labels = "f=x"},
	    {.id = 3, .class = VAPRO_IO, .to = "a+9", .labels = "fd_kind=pipe function=read"},
	};
	struct vapro_state hole = {.id = 9};
	struct vapro_thread gap = {.id = 17, .job = "j", .host = "h"};
	const struct stg_job *job;

	(void)state;
	add_thread(stg, 0, 3, 30);
	add_thread(stg, 1, 1, 10);
	add_thread(stg, 2, 1, 10); /* a second thread of rank 1 */
	add_thread(stg, 3, -1, 99);
	assert_int_equal(stg__add_thread(stg, &gap), -EINVAL);
	assert_int_equal(stg__jobs(stg), 1);
	job = stg__job(stg, 0);
	assert_int_equal(job->row_count, 3);
	assert_int_equal(job->rows[job->order[0]].rank, -1);
	assert_int_equal(job->rows[job->order[2]].rank, 3);
	assert_int_equal(job->place[0], 2);
	assert_int_equal(stg__thread(stg, 1)->row, stg__thread(stg, 2)->row);
	for (int i = 0; i < 4; i++)
		assert_int_equal(stg__add_state(stg, &states[i]), 0);
	assert_int_equal(stg__add_state(stg, &hole), -EINVAL);
	assert_int_equal(stg__state(stg, 0)->kind, stg__state(stg, 1)->kind);
	assert_int_not_equal(stg__state(stg, 0)->kind, stg__state(stg, 2)->kind);
	assert_int_equal(stg__state(stg, 0)->group, STG_WORLD);
	assert_int_not_equal(stg__state(stg, 1)->group, STG_WORLD);
	assert_true(stg__state(stg, 3)->peer);
	stg__touch(stg, 0, 500, true);
	stg__touch(stg, 0, 400, true);
	assert_int_equal(job->rows[0].from_ns, 400);
	assert_int_equal(stg__thread_seen(stg, 0, 300, 900), 0);
	assert_int_equal(stg__job(stg, 0)->rows[0].to_ns, 900);
	assert_int_equal(stg__thread_seen(stg, 99, 1, 2), -EINVAL);
	stg__free(stg);
}

static void test_names(void **state)
{
	(void)state;
	for (int i = 0; i < VAPRO_CLASSES; i++)
		assert_non_null(vapro_class_name[i]);
	for (int i = 0; i < VAPRO_FACTORS; i++)
		assert_non_null(vapro_factor_name[i]);
	for (int i = 0; i < VAPRO_LOSSES; i++)
		assert_non_null(vapro_loss_name[i]);
	for (int i = 0; i < VAPRO_UNCOVERED_REASONS; i++)
		assert_non_null(vapro_uncovered_name[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_table),
	    cmocka_unit_test(test_intern),
	    cmocka_unit_test(test_arena),
	    cmocka_unit_test(test_histogram_buckets),
	    cmocka_unit_test(test_reference_noise),
	    cmocka_unit_test(test_reference_outlier),
	    cmocka_unit_test(test_reference_lowest_populous),
	    cmocka_unit_test(test_reference_random_work),
	    cmocka_unit_test(test_stg),
	    cmocka_unit_test(test_ends),
	    cmocka_unit_test(test_processes),
	    cmocka_unit_test(test_placement),
	    cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
