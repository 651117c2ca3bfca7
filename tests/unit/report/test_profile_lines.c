/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The time of each rank, and a run beside earlier ones, as records and as people see them. VAPRO_TEST_LINES=FILE leaves
 * the records for test_records.py.
 */
#include "summarized.h"
#include "report/earlier_json.h"
#include "report/profile_text.h"
#include "report/window_json.h"

static const struct result_profile_part parts[] = {
    {.class = VAPRO_COMPUTATION, .calls = 1000, .seconds = 6.5, .covered_seconds = 6.25},
    {.class = VAPRO_COMMUNICATION,
     .function = "MPI_Allreduce",
     .calls = 499.6,
     .seconds = 2.25,
     .waiting_seconds = 2,
     .covered_seconds = 0.5},
    {.class = VAPRO_COMMUNICATION, .function = "MPI_Send", .calls = 3, .seconds = 0.5},
    {.class = VAPRO_IO, .function = "write", .calls = 7, .seconds = 0.25},
};
static const struct result_rank_profile profiles[] = {
    {.rank = 0, .pid = 100, .host = "n1", .seconds = 10, .parts = parts, .part_count = 4},
    {.rank = -1, .pid = 101, .host = "n2", .seconds = 2, .parts = parts, .part_count = 0},
};

static void render(void)
{
	const struct json_context context = {.host = "n1"};
	const struct job_result result = {.job = "slurm:1",
					  .begin_ns = 1800000000000000000ULL,
					  .end_ns = 1800000010000000000ULL,
					  .profiles = profiles,
					  .profile_count = 2};

	assert_int_equal(window_json__put(&result, &context, keep, NULL), 0);
	assert_int_equal(line_count, 3); /* the window, too */
}

static void test_record(void **state)
{
	cJSON *object;

	(void)state;
	render();
	object = parsed(1);
	is_text(object, "type", "rank_profile");
	is_text(object, "job", "slurm:1");
	is_number(object, "rank", 0);
	is_number(object, "pid", 100);
	is_text(object, "on_host", "n1");
	is_number(object, "seconds", 10);
	is_text(object, "parts/0/class", "computation");
	is_null(object, "parts/0/function");
	is_number(object, "parts/0/covered_seconds", 6.25);
	is_text(object, "parts/1/function", "MPI_Allreduce");
	is_number(object, "parts/1/calls", 500);
	is_number(object, "parts/1/seconds", 2.25);
	is_number(object, "parts/1/waiting_seconds", 2);
	cJSON_Delete(object);
	object = parsed(2);
	is_null(object, "rank");
	is_number(object, "pid", 101);
	cJSON_Delete(object);
}

static void test_earlier(void **state)
{
	const struct earlier found = {.runs = 14,
				      .program = "lmp",
				      .seconds = 93.125,
				      .time_ratio = 1.24,
				      .work_ratio = NAN,
				      .time_outlying = true};
	const struct earlier_of of = {
	    .host = "n1", .job = "slurm:2", .profile = "a.profile", .user = 1001, .utc_ns = 1800000020000000000ULL};
	char *line = earlier_json__line(&found, &of);
	cJSON *object;

	(void)state;
	assert_non_null(line);
	assert_int_equal(keep(NULL, RECORD_OBJECT_earlier, line), 0);
	free(line);
	object = parsed(0);
	is_text(object, "type", "earlier");
	is_text(object, "job", "slurm:2");
	is_number(object, "uid", 1000);
	is_text(object, "program", "lmp");
	is_number(object, "runs", 14);
	is_number(object, "time_ratio", 1.24);
	is_null(object, "work_ratio");
	is_text(object, "profile", "a.profile");
	is_text(object, "text",
		"lmp: the run lasted 93.1 s, 1.24 times the median of 14 earlier runs, more than these differ");
	cJSON_Delete(object);
}

static void test_table(void **state)
{
	const struct earlier found = {
	    .runs = 6, .program = "lmp", .seconds = 10, .time_ratio = 1, .work_ratio = 1.5, .work_outlying = true};
	const struct earlier_of of = {.host = "n1", .job = "slurm:1", .profile = "a.profile"};
	char *text, *line = earlier_json__line(&found, &of);

	(void)state;
	render();
	assert_int_equal(keep(NULL, RECORD_OBJECT_earlier, line), 0);
	free(line);
	text = summarized(true);
	assert_non_null(strstr(
	    text, "\nTime of each rank, seconds\n"
		  "rank       host                  time  computation  communication   waiting       io  not seen  "
		  "most time in\n"
		  "pid 101    n2                    2.00         0.00           0.00      0.00     0.00      2.00\n"
		  "0          n1                   10.00         6.50           2.75      2.00     0.25      0.50  "
		  "MPI_Allreduce 2.25, MPI_Send 0.50, write 0.25\n"));
	assert_non_null(strstr(text, "earlier runs"));
	assert_non_null(strstr(text, "1.50 times as long as in their median"));
	free(text);
	text = summarized(false);
	assert_null(strstr(text, "Time of each rank"));
	assert_non_null(strstr(text, "1.00 times the median of 6 earlier runs"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_teardown(test_record, clear),
	    cmocka_unit_test_teardown(test_earlier, clear),
	    cmocka_unit_test_teardown(test_table, clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
