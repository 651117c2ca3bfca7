// SPDX-License-Identifier: GPL-2.0-or-later
/* Requests of workers to nodes: what is accepted, and that anything else is refused with a reason. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "wire/request.h"

static struct wire_request sample(enum wire_request_kind kind)
{
	struct wire_request request = {.kind = kind, .job = "slurm:4.0", .user = 1001};

	if (kind == WIRE_REQUEST_STAGE) {
		request.stage = 2;
		strcpy(request.expand, "backend");
		request.variance = 1ULL << 52;
		request.interrupts = true;
	} else if (kind == WIRE_REQUEST_INSIDE) {
		request.inside.count = VAPRO_INSIDE_THREADS;
		for (uint32_t i = 0; i < VAPRO_INSIDE_THREADS; i++)
			request.inside.tids[i] = INT32_MAX - i;
	} else if (kind == WIRE_REQUEST_SET) {
		strcpy(request.image, "libmpi.so.40.30.4");
		strcpy(request.without, "Isend,Irecv");
		strcpy(request.host, "node-2.site");
		strcpy(request.worker, "w1:44@hub");
	} else {
		request.hop = VAPRO_HOP_STAYS;
		strcpy(request.site, "libfoo.so@1f2e+0x10");
		strcpy(request.symbol, "f\xc3\xbcr(\"int\")");
	}
	return request;
}

static void test_round_trip(void **state)
{
	(void)state;
	for (int kind = 0; kind < WIRE_REQUEST_KINDS; kind++) {
		struct wire_request request = sample((enum wire_request_kind)kind), read;
		char text[WIRE_REQUEST_MAX + 1], why[256];
		int length = wire_request__format(text, sizeof(text), &request);

		assert_true(length > 0);
		assert_int_equal(wire_request__parse(&read, text, (size_t)length, why, sizeof(why)), 0);
		assert_memory_equal(&read, &request, sizeof(request));
		assert_int_equal(wire_request__format(text, 20, &request), -ENOSPC);
	}
}

static void refuse(const char *text, size_t size, const char *reason)
{
	struct wire_request read;
	char why[256] = "";

	if (wire_request__parse(&read, text, size, why, sizeof(why)) != -EINVAL)
		fail_msg("accepted: %.*s", (int)size, text);
	if (!strstr(why, reason))
		fail_msg("%.*s: %s", (int)size, text, why);
}

#define HEAD "{\"version\":1,\"job\":\"a\",\"user\":0,\"kind\":"

#define SET(image, without, host)                                                                                      \
	HEAD "\"set\",\"image\":\"" image "\",\"without\":\"" without "\",\"host\":\"" host "\""
#define LONG "Isend,Isend,Isend,Isend,Isend,Isend,Isend,Isend,Isend,Isend,Isend,Isend,"

static void test_refused(void **state)
{
	static const struct {
		const char *text, *reason;
	} wrong[] = {
	    {"", "no JSON"},
	    {"null", "no JSON"},
	    {"[]", "no JSON"},
	    {"\"stage\"", "no JSON"},
	    {"{\"version\":1", "no JSON"},
	    {"{}", "version"},
	    {"{\"version\":-1}", "version"},
	    {"{\"version\":1.5}", "version"},
	    {"{\"version\":2,\"kind\":\"stage\"}", "version is 2"},
	    {"{\"version\":1}", "no kind"},
	    {"{\"version\":1,\"kind\":7}", "no kind"},
	    {"{\"version\":1,\"kind\":\"exec\"}", "'exec'"},
	    {"{\"version\":1,\"kind\":\"st\\u001bage\"}", "no kind"},
	    {"{\"version\":1,\"kind\":\"stage\"}", "no job"},
	    {"{\"version\":1,\"kind\":\"stage\",\"job\":\"\",\"user\":0}", "no job"},
	    {"{\"version\":1,\"kind\":\"stage\",\"job\":\"a\"}", "no job"},
	    {"{\"version\":1,\"kind\":\"stage\",\"job\":\"a\",\"user\":4294967296}", "no job"},
	    {HEAD "\"stage\"}", "missing"},
	    {HEAD "\"stage\",\"stage\":0,\"expand\":\"\",\"variance\":0,\"interrupts\":true}", "impossible"},
	    {HEAD "\"stage\",\"stage\":1,\"expand\":\"backend\",\"variance\":0,\"interrupts\":true}", "impossible"},
	    {HEAD "\"stage\",\"stage\":2,\"expand\":\"\",\"variance\":0,\"interrupts\":true}", "impossible"},
	    {HEAD "\"stage\",\"stage\":2,\"expand\":\"a\\nb\",\"variance\":0,\"interrupts\":true}", "impossible"},
	    {HEAD "\"stage\",\"stage\":2,\"expand\":\"backend\",\"variance\":1e300,\"interrupts\":true}", "impossible"},
	    {HEAD "\"stage\",\"stage\":2,\"expand\":\"backend\",\"variance\":0,\"interrupts\":1}", "impossible"},
	    {HEAD "\"inside\"}", "missing"},
	    {HEAD "\"inside\",\"tids\":{}}", "impossible"},
	    {HEAD "\"inside\",\"tids\":[0]}", "impossible"},
	    {HEAD "\"inside\",\"tids\":[-1]}", "impossible"},
	    {HEAD "\"inside\",\"tids\":[1.5]}", "impossible"},
	    {HEAD "\"inside\",\"tids\":[\"1\"]}", "impossible"},
	    {HEAD "\"inside\",\"tids\":[2147483648]}", "impossible"},
	    {HEAD "\"inside\",\"tids\":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]}", "impossible"},
	    {HEAD "\"hop\",\"site\":\"\",\"symbol\":\"\",\"hop\":\"up\"}", "impossible"},
	    {HEAD "\"hop\",\"site\":\"a\",\"hop\":\"up\"}", "missing"},
	    {HEAD "\"hop\",\"site\":\"a\",\"symbol\":\"\",\"hop\":\"refused\"}", "impossible"},
	    {HEAD "\"set\"}", "missing"},
	    {SET("a", "Isend", "h") "}", "missing"},
	    {SET("a", "Isend", "") ",\"worker\":\"w\"}", "impossible"},
	    {SET("a", "", "h") ",\"worker\":\"w\"}", "impossible"},
	    {SET("", "Isend", "h") ",\"worker\":\"w\"}", "impossible"},
	    {SET("a", "Is\\nend", "h") ",\"worker\":\"w\"}", "impossible"},
	    {SET("a", LONG LONG LONG, "h") ",\"worker\":\"w\"}", "impossible"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		refuse(wrong[i].text, strlen(wrong[i].text), wrong[i].reason);
}

static void test_large(void **state)
{
	char *text = malloc(1 << 20);

	(void)state;
	assert_non_null(text);
	memset(text, ' ', 1 << 20);
	memcpy(text, "{\"version\":", 11);
	refuse(text, 1 << 20, "no JSON");
	memset(text, '[', WIRE_REQUEST_MAX);
	refuse(text, WIRE_REQUEST_MAX, "no JSON");
	memset(text, '{', 1 << 20);
	refuse(text, 1 << 20, "no JSON");
	/* a text that is longer than its member of the struct */
	memset(text, 'x', 4000);
	memcpy(text, HEAD "\"hop\",\"symbol\":\"\",\"hop\":\"up\",\"site\":\"",
	       strlen(HEAD "\"hop\",\"symbol\":\"\",\"hop\":\"up\",\"site\":\""));
	memcpy(text + 3998, "\"}", 2);
	refuse(text, 4000, "impossible");
	free(text);
}

/* Bytes of a good request are changed, cut and repeated: it is refused, or what is read is within its bounds. */
static void test_damaged(void **state)
{
	uint64_t random = 1;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		struct wire_request request = sample((enum wire_request_kind)(i % WIRE_REQUEST_KINDS)), read;
		char text[WIRE_REQUEST_MAX + 1], why[256];
		int length = wire_request__format(text, sizeof(text), &request);
		size_t size = (size_t)length;

		for (int k = 0; k < 1 + i % 4; k++) {
			random = random * 6364136223846793005ULL + 1442695040888963407ULL;
			text[(random >> 33) % size] = (char)(random >> 24);
		}
		if (i % 7 == 0)
			size = (random >> 33) % size;
		if (wire_request__parse(&read, text, size, why, sizeof(why)))
			continue;
		assert_in_range(read.kind, 0, WIRE_REQUEST_KINDS - 1);
		assert_true(read.inside.count <= VAPRO_INSIDE_THREADS);
		assert_non_null(memchr(read.site, 0, sizeof(read.site)));
		assert_non_null(memchr(read.job, 0, sizeof(read.job)));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_round_trip),
	    cmocka_unit_test(test_refused),
	    cmocka_unit_test(test_large),
	    cmocka_unit_test(test_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
