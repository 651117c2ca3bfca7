// SPDX-License-Identifier: GPL-2.0-or-later
/* Subjects: any text makes one token, and is read back. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "wire/subject.h"

static struct wire_job job_of(const char *cluster, const char *text, uint32_t user)
{
	struct wire_job job = {.user = user};

	snprintf(job.cluster, sizeof(job.cluster), "%s", cluster);
	snprintf(job.job, sizeof(job.job), "%s", text);
	return job;
}

static void test_words(void **state)
{
	struct wire_job job = job_of("main", "slurm:123.0", 1001);
	char subject[WIRE_SUBJECT_MAX];

	(void)state;
	assert_int_equal(wire__subject(subject, sizeof(subject), WIRE_IN, &job, "n1.site.org"), 0);
	assert_string_equal(subject, "vapro.v1.in.main.slurm=3A123=2E0==1001.n1=2Esite=2Eorg");
	assert_int_equal(wire__subject(subject, sizeof(subject), WIRE_OUT, &job, "ignored"), 0);
	assert_string_equal(subject, "vapro.v1.out.main.slurm=3A123=2E0==1001");
	assert_int_equal(wire__subject(subject, sizeof(subject), WIRE_REQ, &job, "n1"), 0);
	assert_string_equal(subject, "vapro.v1.req.main.n1");
	assert_int_equal(wire__filter(subject, sizeof(subject), WIRE_IN, NULL, NULL, "n1"), 0);
	assert_string_equal(subject, "vapro.v1.in.*.*.n1");
	assert_int_equal(wire__filter(subject, sizeof(subject), WIRE_STATE, "main", &job, NULL), 0);
	assert_string_equal(subject, "vapro.v1.state.main.slurm=3A123=2E0==1001");
	assert_int_equal(wire__message_id(subject, sizeof(subject), 0xab, &job, 7), 0);
	assert_string_equal(subject, "00000000000000ab-slurm=3A123=2E0==1001-7");
	assert_int_equal(wire__subject(subject, 20, WIRE_IN, &job, "n1"), -ENOSPC);
}

/* Every byte, the joints and escapes themselves, and lengths around the bound. */
static void test_any_text(void **state)
{
	char subject[WIRE_SUBJECT_MAX], text[WIRE_TEXT_MAX];
	struct wire_subject parsed;

	(void)state;
	srand(7);
	for (int round = 0; round < 20000; round++) {
		static const char often[] = "=.-*> g0A_%";
		size_t length = (size_t)rand() % (round % 100 ? 30 : WIRE_TEXT_MAX);
		struct wire_job job;

		for (size_t i = 0; i < length; i++)
			text[i] = rand() % 2 ? often[(size_t)rand() % (sizeof(often) - 1)] : (char)(1 + rand() % 255);
		text[length] = 0;
		job = job_of(text, text, (uint32_t)rand());
		assert_int_equal(wire__subject(subject, sizeof(subject), WIRE_IN, &job, text), 0);
		assert_null(strpbrk(subject, " *>\t\r\n"));
		for (const char *at = subject; *at; at++)
			assert_true((unsigned char)*at > ' ' && (unsigned char)*at < 127);
		assert_int_equal(wire_subject__parse(&parsed, subject), 0);
		assert_int_equal(parsed.role, WIRE_IN);
		assert_int_equal(parsed.job.user, job.user);
		if (parsed.cut) {
			assert_true(length > 20);
			assert_int_equal(strncmp(parsed.host, text, strlen(parsed.host)), 0);
			continue;
		}
		assert_true(wire_job__equal(&parsed.job, &job));
		assert_string_equal(parsed.host, text);
	}
}

/* Long texts that differ at their ends only have tokens that differ, and the subject stays within its bound. */
static void test_long(void **state)
{
	char a[WIRE_SUBJECT_MAX], b[WIRE_SUBJECT_MAX], text[WIRE_TEXT_MAX];
	struct wire_subject parsed;
	struct wire_job job;

	(void)state;
	memset(text, '.', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	job = job_of(text, text, UINT32_MAX);
	assert_int_equal(wire__subject(a, sizeof(a), WIRE_IN, &job, text), 0);
	assert_int_equal(wire_subject__parse(&parsed, a), 0);
	assert_true(parsed.cut);
	job.job[sizeof(job.job) - 2] = '-';
	assert_int_equal(wire__subject(b, sizeof(b), WIRE_IN, &job, text), 0);
	assert_string_not_equal(a, b);
}

static void test_refused(void **state)
{
	static const char *const wrong[] = {
	    "",
	    "vapro.v1",
	    "vapro.v1.",
	    "vapro.v1.in",
	    "vapro.v2.out.main.j==1",
	    "vapro.v1.out.main",
	    "vapro.v1.out.main.j",
	    "vapro.v1.out.main.j==",
	    "vapro.v1.out.main.==1",
	    "vapro.v1.out.main.j==x",
	    "vapro.v1.out.main.j==01",
	    "vapro.v1.out.main.j==4294967296",
	    "vapro.v1.out.main.j==1.host",
	    "vapro.v1.out..j==1",
	    "vapro.v1.out.*.j==1",
	    "vapro.v1.out.ma=in.j==1",
	    "vapro.v1.out.ma=41.j==1", /* a letter is not escaped */
	    "vapro.v1.out.ma=00.j==1",
	    "vapro.v1.out.ma=2e.j==1",
	    "vapro.v1.out.ma=2",
	    "vapro.v1.req.main.n1.more",
	    "vapro.v1.in.main.j==1.n1.more.and.more",
	};
	struct wire_subject parsed;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		if (wire_subject__parse(&parsed, wrong[i]) != -EINVAL)
			fail_msg("accepted: %s", wrong[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_words),
	    cmocka_unit_test(test_any_text),
	    cmocka_unit_test(test_long),
	    cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
