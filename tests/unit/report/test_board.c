// SPDX-License-Identifier: GPL-2.0-or-later
/* What the live state holds, and what of it a user sees. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>
#include <cmocka.h>

#include "boarded.h"
#include "report/record.h"

static bool shows_all(void *ctx, uint32_t user, const struct result_interferer *task)
{
	(void)ctx;
	(void)user;
	(void)task;
	return true;
}

/* Counts the records of a type, of any where it is NULL, in which a text occurs. */
static unsigned count(const char *text, const char *type, const char *part)
{
	char head[64], *copy = strdup(text), *rest = copy, *line;
	unsigned found = 0;

	snprintf(head, sizeof(head), "\"type\":\"%s\"", type ? type : "");
	while ((line = strsep(&rest, "\n")))
		found += *line && (!type || strstr(line, head)) && strstr(line, part);
	free(copy);
	return found;
}

/* The record of a type and job; the caller deletes it. */
static cJSON *record_of(const char *text, const char *type, const char *job)
{
	char *copy = strdup(text), *rest = copy, *line;
	cJSON *found = NULL;

	while (!found && (line = strsep(&rest, "\n"))) {
		cJSON *record = cJSON_Parse(line);
		const char *its = record__member_text(record, "type"), *name = record__member_text(record, "job");

		if (its && !strcmp(its, type) && (!job || (name && !strcmp(name, job))))
			found = record;
		else
			cJSON_Delete(record);
	}
	free(copy);
	return found;
}

static void test_root_sees_all(void **state)
{
	struct board *board = boarded__new(NULL);
	const cJSON *process, *speed;
	size_t size;
	char *text = boarded__write(board, 0 + 1, true, &size);
	cJSON *record = record_of(text, "job_status", "slurm:1234.0");

	(void)state;
	assert_non_null(record);
	assert_int_equal(record__member_uint(record, "uid"), 1000);
	assert_int_equal(record__member_uint(record, "world_size"), 8);
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(record, "processes")), 4);
	process = cJSON_GetArrayItem(cJSON_GetObjectItem(record, "processes"), 2);
	assert_int_equal(record__member_uint(process, "rank"), 2);
	assert_string_equal(record__member_text(process, "probes"), "open");
	speed = cJSON_GetObjectItem(process, "performance");
	/* the mean of the last bins, and nothing of a class that has no map */
	assert_true(fabs(record__member_number(speed, "computation", 0) - (0.985 + 0.0123456 / 2)) < 0.001);
	assert_true(isnan(record__member_number(speed, "io", NAN)));
	assert_true(fabs(record__member_number(process, "evaluated_pct", 0) - 100.0 * 73 / 75) < 0.1);
	cJSON_Delete(record);
	record = record_of(text, "status", NULL);
	assert_string_equal(record__member_text(record, "shows"), "all");
	assert_true(record__member_number(record, "daemon_cpu_pct", 0) > 0.4);
	cJSON_Delete(record);
	assert_int_equal(count(text, "window", ""), 2);
	assert_int_equal(count(text, "variance", ""), 6);
	assert_int_equal(count(text, "diagnosis", "stress-ng"), 2);
	assert_int_equal(count(text, NULL, "secret"), 1 + 1 + 3 + 1);
	free(text);
	board__free(board);
}

/* A user sees nothing of the jobs of others: no name, no process, no number. */
static void test_users_see_their_own(void **state)
{
	struct board *board = boarded__new(shows_all);
	static const char *const hidden[] = {"secret", "hidden", "7001", "\"uid\":2000", "/home/other"};
	size_t size;
	char *text = boarded__write(board, BOARDED_USER, false, &size);

	(void)state;
	assert_int_equal(count(text, "job_status", "slurm:1234.0"), 1);
	assert_int_equal(count(text, "variance", ""), 3);
	assert_int_equal(count(text, "status", "\"shows\":\"own\""), 1);
	for (size_t i = 0; i < sizeof(hidden) / sizeof(*hidden); i++)
		assert_null(strstr(text, hidden[i]));
	assert_true(strstr(text, "\"left_out\"") > strstr(text, "\"job_status\"")); /* of the job alone */
	free(text);
	text = boarded__write(board, BOARDED_OTHER, false, &size);
	assert_null(strstr(text, "slurm"));
	assert_null(strstr(text, "\"exe\":\"/home/you/solver\""));
	assert_null(strstr(text, "\"pid\":1000,"));
	assert_int_equal(count(text, "job_status", "secret"), 1);
	free(text);
	/* users without jobs, and what has no user, which is 0 */
	for (uint32_t user = 0; user < 2; user++) {
		text = boarded__write(board, user ? 3001 : 0, false, &size);
		assert_int_equal(count(text, NULL, ""), 1);
		assert_int_equal(count(text, "status", ""), 1);
		free(text);
	}
	board__free(board);
}

static bool shows_none(void *ctx, uint32_t user, const struct result_interferer *task)
{
	(void)ctx;
	assert_true(user == BOARDED_USER || user == BOARDED_OTHER);
	assert_int_equal(task->relation, VAPRO_FOREIGN); /* the job's own tasks are no question */
	return false;
}

/* The tasks of others have no names, nor are they in sentences; what remains are the cause and the time. */
static void test_tasks_of_others(void **state)
{
	struct board *board = boarded__new(shows_none);
	const cJSON *task;
	size_t size;
	char *text = boarded__write(board, BOARDED_USER, false, &size);
	cJSON *record = record_of(text, "diagnosis", NULL);

	(void)state;
	assert_null(strstr(text, "stress-ng"));
	assert_null(strstr(text, "4242"));
	assert_null(strstr(text, "rank 2 lost 1.5 s"));
	assert_null(strstr(text, "Another task"));
	assert_string_equal(record__member_text(record, "cause"), "preempted");
	assert_string_equal(record__member_text(record, "culprit"), "(another user)");
	task = cJSON_GetArrayItem(cJSON_GetObjectItem(record, "interferers"), 0);
	assert_string_equal(record__member_text(task, "comm"), "(another user)");
	assert_true(record__member_number(task, "seconds", 0) > 1.2);
	cJSON_Delete(record);
	free(text);
	/* root and the other records are as they were */
	text = boarded__write(board, 1, true, &size);
	assert_int_equal(count(text, "diagnosis", "stress-ng"), 2);
	assert_int_equal(count(text, "variance", "rank 2 lost 1.5 s"), 2);
	free(text);
	board__free(board);
}

/* Returns whether a task is no rank of another job. */
static bool shows_no_job(void *ctx, uint32_t user, const struct result_interferer *task)
{
	(void)ctx;
	(void)user;
	return task->relation != VAPRO_OTHER_JOB;
}

/* Of a rank of another user's job neither its name nor its job is shown, also where another task is the first culprit.
 */
static void test_ranks_of_others(void **state)
{
	static struct result_variance variance;
	static struct result_interferer tasks[] = {
	    {.comm = "daemon", .pid = 7, .seconds = 1},
	    {.comm = "hidden", .pid = 9, .seconds = 0.5, .relation = VAPRO_OTHER_JOB, .rank = 3, .job = "secret:1"}};
	static struct result_cause causes[2];
	struct board *board = board__new(shows_no_job, NULL);
	struct job_result result;
	const cJSON *task;
	cJSON *record;
	size_t size;
	char *text;

	(void)state;
	sample__fill(&result);
	result.user = BOARDED_USER;
	variance = result.variances[0];
	for (int i = 0; i < 2; i++) {
		causes[i] = variance.causes[0];
		causes[i].culprit = &tasks[i];
	}
	variance.causes = causes;
	variance.cause_count = 2;
	variance.diagnosis.interferers = tasks;
	variance.diagnosis.interferer_count = 2;
	variance.diagnosis.culprit = &tasks[0];
	result.variances = &variance;
	result.variance_count = 1;
	boarded__window(board, &result);
	board__end(board, result.end_ns);
	text = boarded__write(board, BOARDED_USER, false, &size);
	assert_null(strstr(text, "\"hidden\""));
	assert_null(strstr(text, "secret:1"));
	assert_null(strstr(text, "other_job"));
	assert_int_equal(count(text, "variance", "\"culprit\":\"daemon\""), 1);
	assert_int_equal(count(text, "variance", "\"culprit\":\"(another user)\""), 1);
	free(text);
	text = boarded__write(board, 1, true, &size);
	record = record_of(text, "diagnosis", NULL);
	task = cJSON_GetArrayItem(cJSON_GetObjectItem(record, "interferers"), 1);
	assert_string_equal(record__member_text(task, "relation"), "other_job");
	assert_string_equal(record__member_text(task, "job"), "secret:1");
	assert_int_equal(record__member_uint(task, "rank"), 3);
	cJSON_Delete(record);
	free(text);
	board__free(board);
}

/* The stage names another job: a user sees it only for a region of a job of the user. */
static void test_stage(void **state)
{
	static const char *const stages[] = {
	    "{\"schema\":\"vapro/"
	    "1\",\"type\":\"stage\",\"job\":\"slurm:1234.0\",\"variance\":1,\"parts_of\":\"memory\"}",
	    "{\"schema\":\"vapro/"
	    "1\",\"type\":\"stage\",\"job\":\"secret:9.0\",\"variance\":101,\"parts_of\":\"memory\"}",
	    "{\"schema\":\"vapro/1\",\"type\":\"stage\",\"job\":null,\"variance\":null,\"parts_of\":null}"};
	static const unsigned seen[][3] = {{1, 0, 0}, {0, 1, 0}, {1, 1, 1}}; /* by user, other, root */
	struct board *board = boarded__new(NULL);
	size_t size;

	(void)state;
	for (unsigned stage = 0; stage < 3; stage++) {
		board__line(board, RECORD_OBJECT_stage, stages[stage]);
		for (unsigned reader = 0; reader < 3; reader++) {
			char *text =
			    boarded__write(board, reader == 1 ? BOARDED_OTHER : BOARDED_USER, reader == 2, &size);

			assert_int_equal(count(text, "stage", ""), seen[reader][stage]);
			free(text);
		}
	}
	board__free(board);
}

/* What ended goes after a minute; ids and jobs without end take bounded room. */
static void test_bounds(void **state)
{
	struct board *board = board__new(NULL, NULL);
	struct result_variance *variances = calloc(2000, sizeof(*variances));
	struct job_result result;
	size_t size, ended;
	char *text;
	cJSON *record;

	(void)state;
	assert_non_null(variances);
	sample__fill(&result);
	result.user = BOARDED_USER;
	for (uint64_t i = 0; i < 2000; i++) {
		variances[i] = result.variances[2];
		variances[i].id = i + 1;
		variances[i].lost_seconds = (double)i;
	}
	result.variances = variances;
	result.variance_count = 2000;
	boarded__window(board, &result);
	board__end(board, result.end_ns);
	text = boarded__write(board, BOARDED_USER, false, &size);
	assert_int_equal(count(text, "variance", ""), 64);
	/* those that lost most are there */
	assert_int_equal(count(text, "variance", "\"lost_seconds\":1999"), 1);
	assert_int_equal(count(text, "variance", "\"lost_seconds\":1936"), 1);
	record = record_of(text, "job_status", "slurm:1234.0");
	assert_int_equal(record__member_uint(record, "left_out"), 2000 - 64);
	cJSON_Delete(record);
	free(text);
	for (uint64_t i = 0; i < 2000; i++)
		variances[i].state = VAPRO_REGION_CLOSED;
	boarded__window(board, &result);
	board__end(board, result.end_ns);
	text = boarded__write(board, BOARDED_USER, false, &size);
	ended = count(text, "variance", "\"state\":\"closed\"");
	assert_int_equal(ended, 64);
	free(text);
	result.variance_count = 0;
	result.end_ns += 61000000000ULL;
	boarded__window(board, &result);
	board__end(board, result.end_ns);
	text = boarded__write(board, BOARDED_USER, false, &size);
	assert_int_equal(count(text, "variance", ""), 0);
	assert_int_equal(count(text, "job_status", ""), 1);
	free(text);
	/* jobs without end */
	for (unsigned i = 0; i < 300; i++) {
		char name[32];

		snprintf(name, sizeof(name), "none:%u", i);
		result.job = name;
		boarded__window(board, &result);
	}
	board__end(board, result.end_ns);
	text = boarded__write(board, 1, true, &size);
	record = record_of(text, "status", NULL);
	assert_int_equal(record__member_uint(record, "left_out"), 301 - 256);
	cJSON_Delete(record);
	free(text);
	/* another user has a quarter for sure */
	for (unsigned i = 0; i < 70; i++) {
		char name[32];

		snprintf(name, sizeof(name), "late:%u", i);
		result.job = name;
		result.user = BOARDED_OTHER;
		boarded__window(board, &result);
	}
	board__end(board, result.end_ns);
	text = boarded__write(board, 1, true, &size);
	assert_int_equal(count(text, "window", "\"late:"), 64);
	assert_int_equal(count(text, "window", "\"none:"), 256 - 64 - 1);
	free(text);
	board__end(board, result.end_ns + 60000000001ULL);
	text = boarded__write(board, 1, true, &size);
	assert_int_equal(count(text, "window", ""), 0);
	free(text);
	board__free(board);
	board__free(NULL);
	free(variances);
}

/* A hang is shown in its latest revision, to its own user, and a minute after it was over only in a report. */
static void test_hangs(void **state)
{
	const struct board_reader root = {.all = true, .report = true};
	struct board *board = boarded__new(NULL);
	struct result_hang hang = sample__hang();
	struct job_result result;
	size_t size;
	char *text;

	(void)state;
	sample__fill(&result);
	result.user = BOARDED_USER;
	result.hang = &hang;
	for (hang.revision = 0; hang.revision < 2; hang.revision++)
		boarded__window(board, &result);
	board__end(board, result.end_ns);
	text = boarded__write(board, BOARDED_USER, false, &size);
	assert_int_equal(count(text, "hang", ""), 1);
	assert_int_equal(count(text, "hang", "\"revision\":1"), 1);
	free(text);
	text = boarded__write(board, BOARDED_OTHER, false, &size);
	assert_int_equal(count(text, "hang", ""), 0);
	free(text);
	hang.state = VAPRO_REGION_CLOSED;
	boarded__window(board, &result);
	hang.id++;
	boarded__window(board, &result);
	text = boarded__write(board, BOARDED_USER, false, &size);
	assert_int_equal(count(text, "hang", "\"state\":\"closed\""), 2);
	free(text);
	result.hang = NULL;
	result.end_ns += 61000000000ULL;
	boarded__window(board, &result);
	board__end(board, result.end_ns);
	text = boarded__write(board, BOARDED_USER, false, &size);
	assert_int_equal(count(text, "hang", ""), 0);
	free(text);
	text = boarded__read(board, &root, &size);
	assert_int_equal(count(text, "hang", ""), 2);
	free(text);
	/* hangs without end */
	result.hang = &hang;
	for (; hang.id < 100; hang.id++)
		boarded__window(board, &result);
	text = boarded__read(board, &root, &size);
	assert_int_equal(count(text, "hang", ""), 8);
	assert_int_equal(count(text, "hang", "\"id\":99,"), 1);
	free(text);
	result.hang = NULL;
	result.end_ns += 3600000000000ULL;
	boarded__window(board, &result);
	text = boarded__read(board, &root, &size);
	assert_int_equal(count(text, "hang", ""), 0);
	free(text);
	board__free(board);
}

/* Collects the lines of a window as one text. */
static int collect(void *text, enum record_object type, const char *line)
{
	char **all = text, *longer;

	(void)type;
	if (asprintf(&longer, "%s%s\n", *all ? *all : "", line) < 0)
		return -ENOMEM;
	free(*all);
	*all = longer;
	return 0;
}

static char *written(const struct board *board)
{
	const struct board_facts facts = {.host = "n1", .version = "1", .utc_ns = SAMPLE_UTC};
	const struct board_reader reader = {.all = true};
	struct board_process ranks[64];
	size_t size, found = board__ranks(board, ranks, 64);
	char *text = NULL;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	assert_true(found <= 64);
	assert_int_equal(board__write(board, &facts, ranks, found, &reader, out), 0);
	fclose(out);
	return text;
}

/* A board that is filled from records shows what one does that is filled from the result. */
static void test_records(void **state)
{
	const struct json_context context = {.host = "n1", .daemon_cpu_pct = 0.5, .io_traced_pct = 0, .io_tax_pct = 0};
	struct board *board = board__new(NULL, NULL), *other = board__new(NULL, NULL);
	static const char bad[] = "{\"type\":\"window\"}\nx\n[]";
	char *text = NULL, *one, *two;
	struct job_result result;

	(void)state;
	sample__fill(&result);
	window_json__put(&result, &context, collect, &text);
	boarded__window(board, &result);
	board__end(board, result.end_ns);
	assert_int_equal(board__records(other, result.job, result.user, text, strlen(text)), 0);
	one = written(board);
	two = written(other);
	assert_int_equal(count(one, "variance", ""), 3);
	assert_int_equal(count(two, "variance", ""), 3);
	assert_int_equal(count(one, "diagnosis", ""), count(two, "diagnosis", ""));
	for (int rank = 0; rank < SAMPLE_RANKS; rank++) {
		struct board_process ranks[64];

		assert_int_equal(board__ranks(other, ranks, 64), SAMPLE_RANKS);
		assert_int_equal(ranks[rank].rank, rank);
		assert_int_equal(ranks[rank].pid, 1000 + rank);
		assert_int_equal(ranks[rank].probes, BOARD_UNKNOWN);
	}
	{
		cJSON *a = record_of(one, "job_status", result.job), *b = record_of(two, "job_status", result.job);

		assert_int_equal(record__member_uint(b, "world_size"), result.world_size);
		for (int i = 0; i < SAMPLE_RANKS; i++) {
			const cJSON *left = cJSON_GetArrayItem(cJSON_GetObjectItem(a, "processes"), i);
			const cJSON *right = cJSON_GetArrayItem(cJSON_GetObjectItem(b, "processes"), i);
			double speed =
			    record__member_number(cJSON_GetObjectItem(left, "performance"), "computation", -1);

			/* values of records have two digits */
			assert_true(speed > 0);
			assert_true(fabs(speed - record__member_number(cJSON_GetObjectItem(right, "performance"),
								       "computation", -1)) < 0.006);
			assert_true(record__member_number(left, "evaluated_pct", -1) ==
				    record__member_number(right, "evaluated_pct", -2));
		}
		cJSON_Delete(a);
		cJSON_Delete(b);
	}
	free(one);
	free(two);
	/* what is no record changes nothing; a job that is forgotten is gone */
	assert_int_equal(board__records(other, result.job, result.user, bad, strlen(bad)), 0);
	assert_int_equal(board__ranks(other, NULL, 0), SAMPLE_RANKS);
	board__forget(other, result.job, result.user + 1);
	assert_int_equal(board__ranks(other, NULL, 0), SAMPLE_RANKS);
	board__forget(other, result.job, result.user);
	assert_int_equal(board__ranks(other, NULL, 0), 0);
	free(text);
	board__free(board);
	board__free(other);
}

/* A report has the windows of the time that is retained and what ended in it; the present has the latest alone. */
static void test_report(void **state)
{
	const struct board_reader root = {.user = 1, .all = true, .report = true},
				  user = {.user = BOARDED_USER, .report = true};
	struct board *board = board__new(NULL, NULL);
	struct result_variance variance;
	struct job_result result;
	size_t size;
	char *text;

	(void)state;
	board__line(board, RECORD_OBJECT_hello, "{\"schema\":\"vapro/1\",\"type\":\"hello\",\"version\":\"0.1.0\"}");
	sample__fill(&result);
	result.user = BOARDED_USER;
	variance = result.variances[2];
	variance.state = VAPRO_REGION_CLOSED;
	result.variances = &variance;
	for (int i = 0; i < 20; i++) {
		result.variance_count = i == 15;
		boarded__window(board, &result);
		board__end(board, result.end_ns);
		result.begin_ns = result.end_ns;
		result.end_ns += 15000000000ULL;
	}
	/* the region ended 60 s ago: 512 bins of 0.2 s are retained, with 7 windows of 15 s */
	text = boarded__read(board, &root, &size);
	assert_int_equal(count(text, "window", ""), 7);
	assert_int_equal(count(text, "variance", ""), 1);
	assert_ptr_equal(strstr(text, "\"type\":\"hello\""), strstr(text, "\"type\":"));
	free(text);
	text = boarded__read(board, &user, &size);
	assert_int_equal(count(text, "window", ""), 7);
	assert_int_equal(count(text, "hello", ""), 0);
	free(text);
	text = boarded__write(board, BOARDED_USER, false, &size);
	assert_int_equal(count(text, "window", ""), 1);
	assert_int_equal(count(text, "variance", ""), 0);
	free(text);
	board__free(board);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_root_sees_all),   cmocka_unit_test(test_users_see_their_own),
	    cmocka_unit_test(test_tasks_of_others), cmocka_unit_test(test_stage),
	    cmocka_unit_test(test_bounds),	    cmocka_unit_test(test_report),
	    cmocka_unit_test(test_hangs),	    cmocka_unit_test(test_ranks_of_others),
	    cmocka_unit_test(test_records)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
