// SPDX-License-Identifier: GPL-2.0-or-later
/* Messages over the socket of `vapro diagnose`: requests and the heads of responses, good and bad. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "query/protocol.h"
#include "sim.h"

static const char query[] = "vapro/1 diagnose\nregion 0-3,7@1.5..4\njob slurm:1.0 x\nformat json\nwidth 120\n\n";

static void test_question(void **state)
{
	struct query_request request, again;
	char text[QUERY_REQUEST_MAX], err[256];
	size_t size = strlen(query);
	int length;

	(void)state;
	for (size_t i = 0; i < size; i++)
		assert_int_equal(query_request__parse(query, i, &request, err, sizeof(err)), -EAGAIN);
	assert_int_equal(query_request__parse(query, size, &request, err, sizeof(err)), 0);
	assert_true(request.json && request.width == 120 && request.region.range_count == 2);
	assert_string_equal(request.job, "slurm:1.0 x");
	assert_string_equal(request.region_text, "0-3,7@1.5..4");
	length = query_request__format(&request, text, sizeof(text));
	assert_int_equal(length, size);
	assert_memory_equal(text, query, size);
	/* later text is no part of the request */
	snprintf(text, sizeof(text), "%snonsense\n", query);
	assert_int_equal(query_request__parse(text, strlen(text), &request, err, sizeof(err)), 0);
	/* the least request */
	memset(&request, 0, sizeof(request));
	strcpy(request.region_text, "all@..");
	length = query_request__format(&request, text, sizeof(text));
	assert_true(length > 0);
	assert_int_equal(query_request__parse(text, (size_t)length, &again, err, sizeof(err)), 0);
	assert_true(!again.json && !*again.job && again.region.relative && !again.region.range_count);
	assert_int_equal(query_request__format(&request, text, 20), -EINVAL);
	/* a list of jobs needs no region */
	memset(&request, 0, sizeof(request));
	request.jobs = true;
	length = query_request__format(&request, text, sizeof(text));
	assert_true(length > 0);
	assert_int_equal(query_request__parse(text, (size_t)length, &again, err, sizeof(err)), 0);
	assert_true(again.jobs && !again.region.given);
	assert_int_equal(query_request__format(&request, text, 20), -EINVAL);
}

static void test_bad_questions(void **state)
{
	static const struct {
		const char *text, *named;
	} bad[] = {
	    {"GET / HTTP/1.1\r\n", "not a request"},
	    {"vapro/2 diagnose\n", "not a request"},
	    {"vapro/1 diagnose \n", "not a request"},
	    {"\n", "not a request"},
	    {"vapro/1 diagnose\n\n", "no region"},
	    {"vapro/1 diagnose\njob a\n\n", "no region"},
	    {"vapro/1 diagnose\njobs some\n\n", "unknown request line 'jobs some'"},
	    {"vapro/1 diagnose\nregion 0@0..1\njobs all\n\n", "no region"},
	    {"vapro/1 diagnose\nregion\n", "invalid region"},
	    {"vapro/1 diagnose\nregion 0\n", "RANKS@BEGIN..END"},
	    {"vapro/1 diagnose\nregion 3-1@0..1\n", "invalid ranks"},
	    {"vapro/1 diagnose\nregion 0@2..1\n", "ends before"},
	    {"vapro/1 diagnose\nregion 0@0..1\nregion 0@0..1\n", "region"},
	    {"vapro/1 diagnose\njob a\njob b\n", "job b"},
	    {"vapro/1 diagnose\njob \n", "job"},
	    {"vapro/1 diagnose\nformat xml\n", "format xml"},
	    {"vapro/1 diagnose\nwidth -1\n", "width -1"},
	    {"vapro/1 diagnose\nwidth 99999999999999999999\n", "width"},
	    {"vapro/1 diagnose\nwidth 8x\n", "width"},
	    {"vapro/1 diagnose\nshutdown now\n", "shutdown"},
	    {"vapro/1 diagnose\njob a\x1b[2J\n", "not text"},
	};
	struct query_request request;
	char text[QUERY_REQUEST_MAX], err[256];
	uint64_t seed = 1;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		*err = 0;
		if (query_request__parse(bad[i].text, strlen(bad[i].text), &request, err, sizeof(err)) != -EINVAL ||
		    !strstr(err, bad[i].named))
			fail_msg("'%s': %s", bad[i].text, err);
	}
	assert_int_equal(query_request__parse("vapro/1 diagnose\njob a\0b\n", 25, &request, err, sizeof(err)), -EINVAL);
	/* a request without end */
	memset(text, 'x', sizeof(text));
	memcpy(text, query, 17);
	assert_int_equal(query_request__parse(text, sizeof(text) - 1, &request, err, sizeof(err)), -EAGAIN);
	assert_int_equal(query_request__parse(text, sizeof(text), &request, err, sizeof(err)), -EINVAL);
	text[sizeof(text) - 1] = '\n';
	assert_int_equal(query_request__parse(text, sizeof(text), &request, err, sizeof(err)), -EINVAL);
	memset(text, '1', sizeof(text));
	memcpy(text, "vapro/1 diagnose\nregion ", 24);
	text[sizeof(text) - 1] = '\n';
	assert_int_equal(query_request__parse(text, sizeof(text), &request, err, sizeof(err)), -EINVAL);
	/* all other input ends in one of the three results */
	for (int i = 0; i < 20000; i++) {
		size_t size = strlen(query), at = (size_t)(sim_random(&seed) * (double)size);
		int outcome;

		memcpy(text, query, size);
		for (int k = 0; k <= i % 3; k++)
			text[(at + (size_t)k * 7) % size] = (char)(sim_random(&seed) * 256);
		outcome = query_request__parse(text, size - (size_t)(i % 5), &request, err, sizeof(err));
		assert_true(outcome == 0 || outcome == -EAGAIN || outcome == -EINVAL);
	}
}

static void test_heads(void **state)
{
	static const char *const bad[] = {
	    "",	    "ok",     "ok x", "ok -1",	"ok 99999999999999", "error failed", "error a b",
	    "note", "good 1", "OK 1", "ok 1 2", "note a\tb"};
	struct query_head head = {.line = QUERY_ERROR, .error = QUERY_REFUSED, .sentence = "not you"};
	char text[2 * QUERY_SENTENCE_MAX], sentence[2 * QUERY_SENTENCE_MAX];

	(void)state;
	assert_string_equal(query_head__format(&head, text, sizeof(text)), "error refused not you\n");
	text[strlen(text) - 1] = 0;
	assert_int_equal(query_head__parse(text, &head), 0);
	assert_true(head.line == QUERY_ERROR && head.error == QUERY_REFUSED);
	assert_string_equal(head.sentence, "not you");
	head = (struct query_head){.line = QUERY_OK, .bytes = 12345};
	assert_string_equal(query_head__format(&head, text, sizeof(text)), "ok 12345\n");
	text[strlen(text) - 1] = 0;
	assert_int_equal(query_head__parse(text, &head), 0);
	assert_true(head.line == QUERY_OK && head.bytes == 12345);
	memset(sentence, 'a', sizeof(sentence));
	sentence[sizeof(sentence) - 1] = 0;
	head = (struct query_head){.line = QUERY_NOTE, .sentence = sentence};
	query_head__format(&head, text, sizeof(text));
	assert_true(strlen(text) <= QUERY_SENTENCE_MAX + 5 && text[strlen(text) - 1] == '\n');
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		snprintf(text, sizeof(text), "%s", bad[i]);
		if (!query_head__parse(text, &head))
			fail_msg("'%s' is accepted", bad[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_question),
	    cmocka_unit_test(test_bad_questions),
	    cmocka_unit_test(test_heads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
