// SPDX-License-Identifier: GPL-2.0-or-later
/* Hangs in words and as records, and the summary and the terminal that have them from either. */
#include "parsed.h"

#include <unistd.h>

#include "report/hang_text.h"
#include "report/narrator.h"
#include "report/record.h"
#include "report/summary.h"
#include "report/window_json.h"

#define BEGIN 1800000000000000000ULL /* 2027-01-15T08:00:00Z */
#define S 1000000000ULL

static const struct vapro_state recv_state = {.class = VAPRO_COMMUNICATION,
					      .to = "app@1+0x20",
					      .labels = "comm=0 function=MPI_Recv peer=0",
					      .common = "function=MPI_Recv"};
static const struct vapro_state reduce_state = {.class = VAPRO_COMMUNICATION,
						.to = "app@1+0x10",
						.labels = "comm=0 function=MPI_Allreduce op=sum",
						.common = "function=MPI_Allreduce op=sum"};
static const int32_t all[] = {0, 1, 2, 3}, zero[] = {0}, one[] = {1}, others[] = {0, 2, 3};
static struct result_hang_group groups[2];
static struct result_hang hang;

static int setup(void **state)
{
	(void)state;
	groups[0] = (struct result_hang_group){.condition = VAPRO_HANG_IN_CALL,
					       .state = &recv_state,
					       .since_ns = BEGIN + S,
					       .ranks = one,
					       .rank_count = 1,
					       .waits_for = zero,
					       .waits_for_count = 1};
	groups[1] = (struct result_hang_group){.condition = VAPRO_HANG_IN_CALL,
					       .state = &reduce_state,
					       .since_ns = BEGIN,
					       .ranks = others,
					       .rank_count = 3,
					       .did_not_enter = one,
					       .did_not_enter_count = 1};
	hang = (struct result_hang){.id = 3,
				    .kind = VAPRO_HANG_CALLS,
				    .alarm = true,
				    .severity = VAPRO_CRITICAL,
				    .begin_ns = BEGIN + S,
				    .end_ns = BEGIN + 62 * S,
				    .rated_share = 0.5,
				    .groups = groups,
				    .group_count = 2};
	return 0;
}

static void expect(const char *wanted)
{
	char *text = hang_text__write(&hang, NULL);

	assert_non_null(text);
	assert_string_equal(text, wanted);
	free(text);
}

#define SINCE "no rank has made progress since 08:00:01 UTC: "
#define REST "; ranks 0,2-3 are in MPI_Allreduce at app+0x10, which rank 1 has not entered"

static void test_words(void **state)
{
	static const struct {
		enum vapro_hang_kind kind;
		enum vapro_hang_condition condition;
		const char *text;
	} cases[] = {
	    {VAPRO_HANG_CALLS, VAPRO_HANG_IN_CALL, "hang: " SINCE "rank 1 is in MPI_Recv at app+0x20, for rank 0" REST},
	    {VAPRO_HANG_CALLS, VAPRO_HANG_ASLEEP,
	     "hang: " SINCE "rank 1 is asleep outside of calls, after MPI_Recv at app+0x20" REST},
	    {VAPRO_HANG_CALLS, VAPRO_HANG_ENDED,
	     "hang: " SINCE "rank 1 ended at 08:00:01, after MPI_Recv at app+0x20" REST},
	    {VAPRO_HANG_STOPPED, VAPRO_HANG_STOPPED_RANK,
	     "stopped: " SINCE "rank 1 is stopped by a signal, last seen in MPI_Recv at app+0x20" REST},
	    {VAPRO_HANG_TRACED, VAPRO_HANG_TRACED_RANK,
	     "stopped by a tracer: " SINCE "rank 1 is stopped by a tracer, last seen in MPI_Recv at app+0x20" REST},
	    {VAPRO_HANG_FROZEN, VAPRO_HANG_FROZEN_RANK,
	     "frozen by the cgroup: " SINCE "rank 1 is frozen by the cgroup, last seen in MPI_Recv at app+0x20" REST},
	    {VAPRO_HANG_INPUT, VAPRO_HANG_WAITS_FOR_INPUT,
	     "waiting for input: " SINCE
	     "rank 1 is waiting for input of which none was seen before, in MPI_Recv at app+0x20" REST},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		hang.kind = cases[i].kind;
		groups[0].condition = cases[i].condition;
		expect(cases[i].text);
	}
}

static void test_over(void **state)
{
	(void)state;
	groups[0].any_source = true;
	hang.outcome = VAPRO_HANG_JOB_ENDED;
	expect(
	    "hang: no rank made progress from 08:00:01 UTC until the job ended at 08:01:02 (61.0 s): rank 1 was in "
	    "MPI_Recv at app+0x20, for rank 0 or any rank; ranks 0,2-3 were in MPI_Allreduce at app+0x10, which rank 1 "
	    "had "
	    "not entered");
	hang.outcome = VAPRO_HANG_RESUMED;
	hang.group_count = 1;
	groups[0].state = NULL;
	groups[0].waits_for_count = 0;
	expect("hang: no rank made progress from 08:00:01 to 08:01:02 UTC (61.0 s), then the job went on: rank 1 "
	       "was in a "
	       "call that is not known, for any rank");
}

static void test_not_known(void **state)
{
	(void)state;
	hang.kind = VAPRO_HANG_NOT_KNOWN;
	hang.group_count = 1;
	hang.unseen_ranks = 2;
	expect("perhaps a hang: " SINCE
	       "rank 1 is in MPI_Recv at app+0x20, for rank 0; 2 ranks of the job are not watched "
	       "here, and may be at work");
	hang.unseen_ranks = 0;
	groups[0].condition = VAPRO_HANG_UNSEEN;
	expect(
	    "perhaps a hang: " SINCE
	    "rank 1 is not seen in a call since MPI_Recv at app+0x20; whether the job hangs is not "
	    "known, since probes were closed to keep the overhead down or nothing is known of a rank's time on CPUs");
}

static void test_no_data(void **state)
{
	(void)state;
	hang.kind = VAPRO_HANG_NOT_KNOWN;
	groups[0].condition = VAPRO_HANG_NO_DATA;
	expect("perhaps a hang: " SINCE "rank 1 is without data from its node since MPI_Recv at app+0x20" REST
	       "; whether the job hangs is not known, since a rank of which nothing came may be at work");
}

/* Names of others reach a terminal without what controls it. */
static void test_harmless(void **state)
{
	const struct vapro_state hostile = {
	    .class = VAPRO_COMMUNICATION, .to = "a\033[2Jpp@1+0x20", .labels = "function=MPI_Recv", .common = ""};
	char *text;

	(void)state;
	groups[0].state = &hostile;
	text = hang_text__write(&hang, NULL);
	assert_non_null(text);
	assert_null(strchr(text, '\033'));
	free(text);
}

static const struct job_result *result(void)
{
	static const struct job_result job = {.job = "j",
					      .begin_ns = BEGIN,
					      .end_ns = BEGIN + 62 * S,
					      .hang = &hang,
					      .world_size = 4,
					      .ranks = all,
					      .rank_count = 4};

	return &job;
}

static void test_record(void **state)
{
	const struct json_context context = {.host = "n1"};
	const cJSON *group;
	cJSON *record;

	(void)state;
	assert_int_equal(hang_text__put(result(), &context, keep, NULL), 0);
	record = parsed(0);
	assert_int_equal(record__type(record), RECORD_OBJECT_hang);
	assert_string_equal(record__text(record, KEY(hang, kind)), "calls");
	assert_string_equal(record__text(record, KEY(hang, outcome)), "goes_on");
	assert_true(record__number(record, KEY(hang, seconds), 0) == 61);
	group = cJSON_GetArrayItem(record__item(record, KEY(hang, groups)), 0);
	assert_string_equal(record__text(group, KEY(hang_group, ranks)), "1");
	assert_string_equal(record__text(group, KEY(hang_group, waits_for)), "0");
	assert_null(record__text(group, KEY(hang_group, did_not_enter)));
	group = cJSON_GetArrayItem(record__item(record, KEY(hang, groups)), 1);
	assert_string_equal(record__text(group, KEY(hang_group, ranks)), "0,2-3");
	assert_string_equal(record__text(group, KEY(hang_group, did_not_enter)), "1");
	assert_string_equal(record__text(group, KEY(state, to)), "app@1+0x10");
	cJSON_Delete(record);
}

static char *printed(struct summary *summary)
{
	const struct summary_options options = {.width = 400};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	summary__print(summary, out, &options);
	fclose(out);
	summary__free(summary);
	return text;
}

/* The first line is the hang, of results and of records; a later revision replaces an earlier one. */
static void test_summary(void **state)
{
	const struct json_context context = {.host = "n1"};
	struct summary *of_results = summary__new(), *of_records = summary__new();
	const char *why, *end;
	char *left, *right;

	(void)state;
	for (int revision = 0; revision < 2; revision++) {
		hang.outcome = revision ? VAPRO_HANG_JOB_ENDED : VAPRO_HANG_GOES_ON;
		assert_int_equal(summary__add(of_results, result(), NAN), 0);
		assert_int_equal(window_json__put(result(), &context, keep, NULL), 0);
	}
	for (size_t i = 0; i < line_count; i++) {
		cJSON *record = cJSON_Parse(lines[i]);

		assert_int_equal(summary__add_record(of_records, record, &why), 0);
		cJSON_Delete(record);
	}
	left = printed(of_results);
	right = printed(of_records);
	end = strchr(left, '\n');
	assert_true(!strncmp(left, "critical: hang: no rank made progress from 08:00:01 UTC until the job ended", 75));
	assert_non_null(end);
	assert_memory_equal(left, right, (size_t)(end - left) + 1);
	assert_null(strstr(left, "no result"));
	assert_null(strstr(end, "hang:"));
	free(left);
	free(right);
}

/* What is no alarm is a note behind the causes, and does not hide that nothing could be compared. */
static void test_note(void **state)
{
	struct summary *summary = summary__new();
	char *text;

	(void)state;
	hang.kind = VAPRO_HANG_INPUT;
	hang.alarm = false;
	hang.severity = VAPRO_INFO;
	assert_int_equal(summary__add(summary, result(), NAN), 0);
	text = printed(summary);
	assert_true(!strncmp(text, "no result", 9));
	assert_non_null(strstr(text, "\nnote: waiting for input: "));
	free(text);
}

/* Says a hang once, and that it is over. */
static void test_narrated(void **state)
{
	const struct json_context context = {.host = "n1"};
	struct narrator *narrator;
	char text[4096];
	int ends[2];
	ssize_t got;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	narrator = narrator__new(ends[1], 1000);
	for (hang.revision = 0; hang.revision < 3; hang.revision++) {
		hang.state = hang.revision < 2 ? VAPRO_REGION_OPEN : VAPRO_REGION_CLOSED;
		hang.outcome = hang.revision < 2 ? VAPRO_HANG_GOES_ON : VAPRO_HANG_RESUMED;
		assert_int_equal(hang_text__put(result(), &context, keep, NULL), 0);
	}
	for (size_t i = 0; i < line_count; i++)
		narrator__record(narrator, record_table__type_of(lines[i]), lines[i]);
	narrator__flush(narrator);
	got = read(ends[0], text, sizeof(text) - 1);
	assert_true(got > 0);
	text[got] = 0;
	assert_true(!strncmp(text, "08:01:02 critical: hang: no rank has made progress", 50));
	assert_non_null(strstr(text, "then the job went on"));
	assert_null(strstr(strstr(text, "has made progress") + 1, "has made progress"));
	narrator__free(narrator);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_words, setup, clear),
	    cmocka_unit_test_setup_teardown(test_over, setup, clear),
	    cmocka_unit_test_setup_teardown(test_not_known, setup, clear),
	    cmocka_unit_test_setup_teardown(test_no_data, setup, clear),
	    cmocka_unit_test_setup_teardown(test_harmless, setup, clear),
	    cmocka_unit_test_setup_teardown(test_record, setup, clear),
	    cmocka_unit_test_setup_teardown(test_summary, setup, clear),
	    cmocka_unit_test_setup_teardown(test_note, setup, clear),
	    cmocka_unit_test_setup_teardown(test_narrated, setup, clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
