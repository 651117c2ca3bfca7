// SPDX-License-Identifier: GPL-2.0-or-later
/* From facts to a diagnosis: facts that slow ranks share, the verdict, the queue of stages, the text of a region. */
#include "slow_rank.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/where.h"
#include "query/region_option.h"

static void test_where_and_verdict(void **state)
{
	struct run run = {.causes = {{NODE_DRAM, 0.6, 1}}, .groups = ALL_GROUPS, .places = true, .seed = 6};
	struct diagnosed diagnosed;
	char expected[160];

	(void)state;
	slow_rank__run(&run, &diagnosed);
	assert_string_equal(diagnosed.shared_facts, "socket=1 cpu=1 "); /* all ranks have the cgroup */
	snprintf(expected, sizeof(expected),
		 "rank 1, on host n1, on socket 1, lost %.2f s: 100 %% backend bound, almost entirely memory, almost "
		 "entirely DRAM.",
		 diagnosed.lost);
	assert_string_equal(diagnosed.verdict, expected);
	run.places = false;
	run.causes[0].node = NODE_PREEMPTED;
	slow_rank__run(&run, &diagnosed);
	assert_string_equal(diagnosed.shared_facts, "");
	snprintf(expected, sizeof(expected), "rank 1 lost %.2f s: 100 %% off the CPU, almost entirely preempted.",
		 diagnosed.lost);
	assert_string_equal(diagnosed.verdict, expected);
}

static bool not_in(const void *arg, uint32_t row)
{
	return !((const unsigned char *)arg)[row];
}

static bool every(const void *arg, uint32_t row)
{
	(void)arg;
	(void)row;
	return true;
}

/* Returns the quota of rows [from, to). */
static const struct vapro_place *limit_of(const struct places *places, const struct stg *stg, uint32_t from,
					  uint32_t to)
{
	struct where_index *index = where_index__new(places, stg, 0, every, NULL);
	const uint32_t rows[] = {0, 1, 2, 3, 4, 5};
	const struct vapro_place *limited;

	assert_non_null(index);
	limited = where_index__limit(index, &rows[from], to - from);
	where_index__free(index);
	return limited;
}

/* One index serves many regions; rows that are left out do not count, also where they are slow. */
static void test_where_index(void **state)
{
	static const unsigned char left_out[] = {0, 0, 0, 1, 0, 0};
	struct stg *stg = stg__new();
	struct places places = {0};
	struct where where[WHERE_FACTS];
	struct where_index *index;
	uint32_t count;

	(void)state;
	for (uint32_t i = 0; i < 6; i++) {
		struct vapro_thread thread = {.id = i, .rank = (int32_t)i, .job = "j", .host = i & 1 ? "b" : "a"};

		thread.pid = i + 1;
		assert_int_equal(stg__add_thread(stg, &thread), 0);
		assert_int_equal(
		    places__add(&places, &(struct vapro_place){.thread = i, .cpu = -1, .socket = i >= 4, .numa = -1}),
		    0);
	}
	index = where_index__new(&places, stg, 0, not_in, left_out);
	assert_non_null(index);
	/* host b: rows 1 and 5 are counted there, and 0, 2, 4 elsewhere */
	assert_int_equal(where_index__find(index, (uint32_t[]){1, 3, 5}, 3, where, &count), 0);
	assert_int_equal(count, 1);
	assert_string_equal(where[0].value, "b");
	assert_int_equal(where[0].others, 0);
	/* socket 1 of both hosts */
	assert_int_equal(where_index__find(index, (uint32_t[]){4, 5}, 2, where, &count), 0);
	assert_int_equal(count, 1);
	assert_string_equal(where[0].fact, "socket");
	/* one of two hosts */
	assert_int_equal(where_index__find(index, (uint32_t[]){0}, 1, where, &count), 0);
	assert_int_equal(count, 0);
	where_index__free(index);
	places__free(&places);
	stg__free(stg);
}

static bool not_left_out(const void *arg, uint32_t row)
{
	return ((const unsigned char *)arg)[row] != 2;
}

/* Finds the facts of slow rows: slow[row] is 1 for a slow row, 0 for another one, 2 for one to be left out. */
static int find(const struct places *places, const struct stg *stg, uint32_t job, const unsigned char *slow,
		struct where *where, uint32_t *count)
{
	struct where_index *index = where_index__new(places, stg, job, not_left_out, slow);
	const struct stg_job *about = stg__job(stg, job);
	uint32_t *rows = calloc(about->row_count + 1, sizeof(*rows));
	size_t slow_count = 0;
	int error = -ENOMEM;

	*count = 0;
	for (uint32_t row = 0; rows && row < about->row_count; row++) {
		if (slow[row] == 1)
			rows[slow_count++] = row;
	}
	if (index && rows)
		error = where_index__find(index, rows, slow_count, where, count);
	free(rows);
	where_index__free(index);
	return error;
}

/* Returns the only fact that the slow rows share; NULL: none. */
static const struct where *shared_by(const struct places *places, const struct stg *stg, const unsigned char *slow)
{
	static struct where where[WHERE_FACTS];
	uint32_t count;

	assert_int_equal(find(places, stg, 0, slow, where, &count), 0);
	assert_true(count <= 1);
	return count ? &where[0] : NULL;
}

/* Shared facts: shared by all slow rows and few others; sockets only within a host. */
static void test_where(void **state)
{
	static const char *const hosts[] = {"n1", "n1", "n1", "n1", "n2", "n2"};
	static const int32_t sockets[] = {0, 0, 1, 1, 0, 1};
	static const unsigned char one_socket[] = {1, 1, 0, 0, 0, 0}, one_host[] = {0, 0, 0, 0, 1, 1},
				   spread[] = {1, 0, 1, 0, 0, 0}, one_model[] = {1, 0, 0, 0, 0, 1},
				   all_rows[] = {1, 1, 1, 1, 1, 1}, gone[] = {1, 1, 2, 2, 2, 2};
	struct stg *stg = stg__new();
	struct places places = {0};
	const struct vapro_place *limited;
	const struct where *shared;

	(void)state;
	assert_non_null(stg);
	for (uint32_t i = 0; i < 6; i++) {
		struct vapro_thread thread = {.id = i, .rank = (int32_t)i, .job = "j", .host = hosts[i], .pid = i + 1};

		assert_int_equal(stg__add_thread(stg, &thread), 0);
	}
	/* Only hosts are known. */
	assert_string_equal(shared_by(&places, stg, one_host)->fact, "host");
	for (uint32_t i = 6; i-- > 0;)
		assert_int_equal(
		    places__add(&places,
				&(struct vapro_place){.thread = i, .cpu = -1, .socket = sockets[i], .numa = -1}),
		    0);
	shared = shared_by(&places, stg, one_socket);
	assert_string_equal(shared->fact, "socket");
	assert_string_equal(shared->value, "0");
	assert_int_equal(shared->others, 0);
	assert_string_equal(shared_by(&places, stg, one_host)->value, "n2");
	assert_null(shared_by(&places, stg, spread));
	assert_null(shared_by(&places, stg, all_rows));
	assert_null(shared_by(&places, stg, gone));
	/* the first and the last rank have another CPU than all others, each on its own host */
	for (uint32_t i = 0; i < 6; i++)
		assert_int_equal(
		    places__add(&places, &(struct vapro_place){.thread = i,
							       .cpu = -1,
							       .socket = -1,
							       .numa = -1,
							       .cpu_model = i == 0 || i == 5 ? "slow" : "fast"}),
		    0);
	shared = shared_by(&places, stg, one_model);
	assert_string_equal(shared->fact, "cpu_model");
	assert_string_equal(shared->value, "slow");
	assert_int_equal(shared->others, 0);
	/* a quota is remembered, and reported for the slow rows alone */
	assert_null(limit_of(&places, stg, 0, 2));
	assert_int_equal(places__add(&places, &(struct vapro_place){.thread = 1, .limit = "l", .limit_cgroup = "/c"}),
			 0);
	assert_int_equal(places__add(&places, &(struct vapro_place){.thread = 1}), 0);
	limited = limit_of(&places, stg, 0, 2);
	assert_non_null(limited);
	assert_string_equal(limited->limit, "l");
	assert_string_equal(limited->limit_cgroup, "/c");
	assert_null(limit_of(&places, stg, 4, 6));
	places__free(&places);
	stg__free(stg);
}

static void test_region_option(void **state)
{
	static const char *const bad[] = {"",
					  "0-3",
					  "0-3@1",
					  "@1..2",
					  "3-1@1..2",
					  "0,@1..2",
					  "x@1..2",
					  "0@2..1",
					  "0@1..x",
					  "0@-1..2",
					  "0@1m..2",
					  "0-@1..2",
					  "0 @1..2",
					  "0@1..1",
					  "allx@1..2",
					  "0@nan..2",
					  "0@1..inf",
					  "99999999999@1..2",
					  "0@2027-01-15T08:00:00Z..20"};
	struct region_option region;
	struct vapro_selection selection;
	char err[256];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		*err = 0;
		if (!region_option__parse(&region, bad[i], err, sizeof(err)))
			fail_msg("'%s' is accepted", bad[i]);
		assert_true(*err);
	}
	assert_int_equal(region_option__parse(&region, "0-3,7@12.5..20s", err, sizeof(err)), 0);
	selection = region_option__selection(&region);
	assert_true(selection.relative && selection.range_count == 2);
	assert_true(selection.begin_ns == 12500000000 && selection.end_ns == 20000000000);
	assert_true(selection.ranks[0][0] == 0 && selection.ranks[0][1] == 3 && selection.ranks[1][0] == 7 &&
		    selection.ranks[1][1] == 7);
	assert_int_equal(region_option__parse(&region, "all@..", err, sizeof(err)), 0);
	selection = region_option__selection(&region);
	assert_true(!selection.ranks && !selection.begin_ns && !selection.end_ns);
	assert_int_equal(
	    region_option__parse(&region, "5@2027-01-15T08:00:00Z..2027-01-15T08:00:01.5Z", err, sizeof(err)), 0);
	selection = region_option__selection(&region);
	assert_true(!selection.relative && selection.end_ns - selection.begin_ns == 1500000000);
}

static void test_time_options(void **state)
{
	struct time_option time = {.since = "12.5"};
	struct region_option region;
	char text[64], err[256];

	(void)state;
	assert_int_equal(region_option__span(&region, NULL, &time, text, sizeof(text), err, sizeof(err)), 0);
	assert_string_equal(text, "all@12.5..");
	assert_true(region.relative && region.begin_ns == 12500000000 && !region.end_ns && !region.range_count);
	time.until = "20";
	assert_int_equal(region_option__span(&region, "0-3", &time, text, sizeof(text), err, sizeof(err)), 0);
	assert_true(region.end_ns == 20000000000 && region.range_count == 1);
	assert_int_equal(region_option__span(&region, "0@1..2", &time, text, sizeof(text), err, sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, "ranks alone"));
	time.until = "12";
	assert_int_equal(region_option__span(&region, NULL, &time, text, sizeof(text), err, sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, "ends before it begins"));
	time.until = "9999999999999999999999999999999999999999999999999999999999999";
	assert_int_equal(region_option__span(&region, NULL, &time, text, sizeof(text), err, sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, "too long"));
}

/* Several cases: one group at a time in the order of the wishes, shared, and given up in the end. */
static void test_driver(void **state)
{
	struct contribution counted = {.counted = {[COUNTER_TOP] = 10}};
	struct diagnosis_of a = {.id = 1, .parts = {[CASE_SUM] = &counted}};
	struct diagnosis_of b = {.id = 2, .parts = {[CASE_SUM] = &counted}};
	unsigned groups = 1U << COUNTER_TOP;
	struct driver driver = {0};
	struct driver_wish vain;
	bool final;

	(void)state;
	a.breakdown.node[NODE_BACKEND].major = true;
	b.breakdown.node[NODE_FRONTEND].major = true;
	/* Without counters there is no request. */
	assert_int_equal(driver__see(&driver, 0, &a, 0, 5), 0);
	assert_false(driver__switch(&driver, &vain));
	assert_null(driver__current(&driver));
	for (int window = 0; window < DRIVER_PATIENCE; window++) {
		assert_int_equal(driver__see(&driver, 0, &a, groups, 5), 0);
		assert_int_equal(driver__see(&driver, 1, &b, groups, 5), 0);
		assert_int_equal(driver__stage(&a, &final), 1);
		assert_false(final);
		assert_false(driver__switch(&driver, &vain));
		assert_int_equal(driver__current(&driver)->group, COUNTER_BACKEND);
	}
	driver__see(&driver, 0, &a, groups, 5);
	driver__see(&driver, 1, &b, groups, 5);
	assert_true(driver__switch(&driver, &vain));
	assert_true(vain.job == 0 && vain.variance == 1 && vain.group == COUNTER_BACKEND);
	a.tried |= 1U << vain.group;
	assert_int_equal(driver__current(&driver)->group, COUNTER_FRONTEND);
	driver__see(&driver, 0, &a, groups, 5);
	assert_int_equal(driver__stage(&a, &final), 2);
	assert_true(final);
	/* The other case's variance ends. */
	assert_false(driver__switch(&driver, &vain));
	assert_null(driver__current(&driver));
	driver__free(&driver);
}

/* However many cases request the same counters, few of them queue, and all are served together. */
static void test_driver_of_many_cases(void **state)
{
	struct contribution few = {.counted = {[COUNTER_TOP] = 10}};
	unsigned groups = 1U << COUNTER_TOP;
	struct driver driver = {0};
	struct driver_wish vain;
	bool final;

	(void)state;
	for (int window = 0; window < 2; window++) {
		/* counted in the second window */
		few.counted[COUNTER_BACKEND] = window ? 10 : 0;
		for (uint32_t id = 1; id <= 1000; id++) {
			struct diagnosis_of item = {.id = id, .parts = {[CASE_SUM] = &few}};

			item.breakdown.node[NODE_BACKEND].major = true;
			assert_int_equal(driver__see(&driver, 0, &item, groups, 5), 0);
			driver__stage(&item, &final);
			assert_int_equal(final, window);
		}
		assert_int_equal(driver.count, DRIVER_QUEUE);
		assert_false(driver__switch(&driver, &vain));
	}
	assert_null(driver__current(&driver));
	driver__free(&driver);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_where_and_verdict),
	    cmocka_unit_test(test_where),
	    cmocka_unit_test(test_where_index),
	    cmocka_unit_test(test_region_option),
	    cmocka_unit_test(test_time_options),
	    cmocka_unit_test(test_driver_of_many_cases),
	    cmocka_unit_test(test_driver),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
