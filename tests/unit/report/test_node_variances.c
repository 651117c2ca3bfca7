// SPDX-License-Identifier: GPL-2.0-or-later
/* Variances of nodes that a job's variance contains. */
#include <errno.h>
#include <stdio.h>

#include "parsed.h"
#include "report/json.h"
#include "report/node_variances.h"

#define UTC 1800000000000000000ULL
#define S 1000000000ULL

static const int32_t ranks[] = {2, 3, 4, 9};
static const struct result_variance slow = {
    .id = 7,
    .class = VAPRO_COMPUTATION,
    .begin_ns = UTC + 10 * S,
    .end_ns = UTC + 20 * S,
    .ranks = ranks,
    .rank_count = 4,
};

/* Notes a variance of the sixth user's job that lasts from..to seconds. */
static int note(struct node_variances *nodes, const char *host, unsigned id, const char *class, const char *of,
		unsigned from, unsigned to)
{
	char begin[JSON_TIME_SIZE], end[JSON_TIME_SIZE], text[1024];
	cJSON *record;
	int ret;

	snprintf(
	    text, sizeof(text),
	    "{\"type\":\"variance\",\"host\":\"%s\",\"job\":\"mpi:launcher-7@a\",\"uid\":5,\"id\":%u,\"class\":\"%s\","
	    "\"scope\":\"node\",\"ranks\":\"%s\",\"begin\":\"%s\",\"end\":\"%s\"}",
	    host, id, class, of, json__time(UTC + from * S, begin), json__time(UTC + to * S, end));
	record = cJSON_Parse(text);
	assert_non_null(record);
	ret = node_variances__note(nodes, record);
	cJSON_Delete(record);
	return ret;
}

static void assert_contains(const struct node_variances *nodes, const struct job_result *result, const char *expected)
{
	cJSON *object = cJSON_CreateObject();
	char *text;

	assert_true(node_variances__add(nodes, object, result, &slow));
	text = json__finish(object);
	assert_string_equal(text, expected);
	free(text);
}

static void half_inside_is_contained(void **state)
{
	const struct job_result result = {.job = "mpi:launcher-7@a", .user = 6};
	struct job_result other = result;
	struct node_variances nodes = {0};

	(void)state;
	assert_contains(&nodes, &result, "{}");
	assert_int_equal(note(&nodes, "n1", 1, "computation", "2-4", 10, 20), 0);
	assert_int_equal(note(&nodes, "n2", 1, "computation", "9-10", 14, 26), 0); /* half of both */
	assert_int_equal(note(&nodes, "n2", 2, "computation", "9-11", 14, 26), 0); /* a third of the ranks */
	assert_int_equal(note(&nodes, "n2", 3, "computation", "9", 15, 26), 0);	   /* less than half of the time */
	assert_int_equal(note(&nodes, "n2", 4, "computation", "9", 20, 26), 0);	   /* after it */
	assert_int_equal(note(&nodes, "n2", 5, "communication", "9", 10, 20), 0);  /* another class */
	assert_contains(&nodes, &result, "{\"contains\":[{\"host\":\"n1\",\"id\":1},{\"host\":\"n2\",\"id\":1}]}");
	/* a later revision counts */
	assert_int_equal(note(&nodes, "n1", 1, "computation", "5-6", 10, 20), 0);
	assert_int_equal(nodes.count, 6);
	assert_contains(&nodes, &result, "{\"contains\":[{\"host\":\"n2\",\"id\":1}]}");
	/* another user's job, another job, and an analysis that sees a part of the ranks */
	other.user = 7;
	assert_contains(&nodes, &other, "{}");
	other = result;
	other.job = "mpi:launcher-7@b";
	assert_contains(&nodes, &other, "{}");
	other = result;
	other.partial = true;
	assert_contains(&nodes, &other, "{}");
	node_variances__clear(&nodes);
	assert_contains(&nodes, &result, "{}");
}

static void wrong_records_are_refused(void **state)
{
	static const char *const texts[] = {
	    "{}",
	    "[]",
	    "{\"type\":\"variance\"}",
	    "{\"type\":\"variance\",\"host\":1,\"job\":2,\"id\":\"x\",\"class\":[],\"scope\":\"node\"}",
	};
	struct node_variances nodes = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		cJSON *record = cJSON_Parse(texts[i]);

		assert_int_equal(node_variances__note(&nodes, record), -EINVAL);
		cJSON_Delete(record);
	}
	assert_int_equal(note(&nodes, "n", 1, "sleep", "1", 0, 1), -EINVAL);
	assert_int_equal(note(&nodes, "n", 1, "io", "1", 1, 1), -EINVAL);	  /* no time */
	assert_int_equal(note(&nodes, "n", 1, "io", "?", 0, 1), -EINVAL);	  /* no ranks */
	assert_int_equal(note(&nodes, "n", 0, "io", "1", 0, 1), -EINVAL);	  /* a region chosen by hand */
	assert_int_equal(note(&nodes, "n", 1, "io", "0-9999999", 0, 1), -EINVAL); /* more ranks than any job has */
	assert_int_equal(nodes.count, 0);
	node_variances__clear(&nodes);
}

static void memory_is_bounded(void **state)
{
	struct node_variances nodes = {0};

	(void)state;
	for (unsigned i = 1; i <= 5000; i++)
		assert_int_equal(note(&nodes, "n", i, "io", "0-9", 0, 1), 0);
	assert_int_equal(nodes.count, 4096);
	assert_int_equal(nodes.rank_count, 40960);
	for (unsigned i = 1; i <= 20; i++)
		assert_int_equal(note(&nodes, "m", i, "io", "0-99999", 0, 1), 0);
	assert_int_equal(nodes.count, 10); /* of 100,000 ranks each: the greatest number of ranks is 2^20 */
	assert_int_equal(nodes.rank_count, 1000000);
	node_variances__clear(&nodes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(half_inside_is_contained),
	    cmocka_unit_test(wrong_records_are_refused),
	    cmocka_unit_test(memory_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
