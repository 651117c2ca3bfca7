/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The judge of the papers' case studies (tools/accuracy/papers_judge.c): findings that it accepts and rejects. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../tools/accuracy/cases.h"
#include "../../tools/accuracy/papers.h"

#define COUNTS VAPRO_BY_INSTRUCTIONS
#define ARGUMENTS VAPRO_BY_ARGUMENTS

static int32_t slow[] = {4, 5, 6}, others[] = {4, 5, 7};

static const struct paper paper = {.kind = "made up",
				   .study = "a bad host",
				   .place = "host n2",
				   .verdict = {[COUNTS] = "backend;L2|DRAM"},
				   .ratio = 1.5,
				   .within = 0.02,
				   .waiting = true};

/* A found fault of 10 s, which each test changes. */
struct made_up {
	struct truth truth;
	struct truths truths;
	struct found_variance variances[2];
	struct found_imbalance imbalance;
	struct findings findings;
};

static void make(struct made_up *at, enum finding expected)
{
	*at = (struct made_up){
	    .truth = {.class = VAPRO_COMPUTATION,
		      .expected = expected,
		      .ranks = slow,
		      .rank_count = 3,
		      .begin = 10,
		      .end = 20,
		      .first = 9.9,
		      .last = 20.1},
	    .truths = {&at->truth, 1},
	    .variances = {{.id = 1,
			   .class = VAPRO_COMPUTATION,
			   .begin = 10,
			   .end = 20.2,
			   .ranks = slow,
			   .rank_count = 3,
			   .performance = 1 / 1.5,
			   .severity = VAPRO_WARNING,
			   .confidence = VAPRO_CONFIRMED,
			   .alarm = true,
			   .raised = 20,
			   .dropped = NAN,
			   .place = "host n2",
			   .verdict = "ranks 4-6: 96 % backend bound, most of it the L2 cache."},
			  {.id = 2,
			   .class = VAPRO_COMMUNICATION,
			   .begin = 10,
			   .end = 20,
			   .ranks = others,
			   .rank_count = 3,
			   .effect_of = 1}},
	    .imbalance = {.class = VAPRO_COMPUTATION,
			  .ranks = slow,
			  .rank_count = 3,
			  .ratio = 1.5,
			  .last = 25,
			  .place = "host n2"},
	    .findings = {.variances = at->variances, .variance_count = 2},
	};
}

static struct paper_result judge(const struct made_up *at, enum vapro_workload_source source)
{
	struct paper_result result;

	papers__judge(&paper, source, &at->truths, &at->findings, &result);
	assert_true(result.judged);
	assert_int_equal(result.good, !*result.missing);
	return result;
}

#define assert_misses(at, source, text)                                                                                \
	do {                                                                                                           \
		struct paper_result result_ = judge(at, source);                                                       \
		assert_false(result_.good);                                                                            \
		assert_non_null(strstr(result_.missing, text));                                                        \
	} while (0)

static void test_alarm(void **state)
{
	struct made_up at;

	(void)state;
	make(&at, FINDING_ALARM);
	assert_true(judge(&at, COUNTS).good);

	at.variances[0].ranks = others;
	assert_misses(&at, COUNTS, "ranks");
	make(&at, FINDING_ALARM);
	at.variances[0].end = 14;
	assert_misses(&at, COUNTS, "time");
	make(&at, FINDING_ALARM);
	*at.variances[0].place = '\0';
	assert_misses(&at, COUNTS, "host n2");
	make(&at, FINDING_ALARM);
	at.variances[0].performance = 1 / 1.6;
	assert_misses(&at, COUNTS, "ratio");
	make(&at, FINDING_ALARM);
	at.variances[0].class = VAPRO_IO;
	assert_misses(&at, COUNTS, "no alarm");
	make(&at, FINDING_ALARM);
	at.variances[0].alarm = false;
	assert_misses(&at, COUNTS, "no alarm");
	make(&at, FINDING_ALARM);
	at.variances[1].effect_of = 0;
	assert_misses(&at, COUNTS, "no effect");
	at.variances[1].alarm = true;
	assert_misses(&at, COUNTS, "2 alarms");
}

static void test_verdict(void **state)
{
	struct made_up at;

	(void)state;
	make(&at, FINDING_ALARM);
	strcpy(at.variances[0].verdict, "ranks 4-6: 96 % backend bound, most of it DRAM.");
	assert_true(judge(&at, COUNTS).good);
	strcpy(at.variances[0].verdict, "ranks 4-6: 96 % backend bound.");
	assert_misses(&at, COUNTS, "L2|DRAM");
	assert_true(judge(&at, ARGUMENTS).good); /* where no words are required */
	/* the ratio in the verdict counts */
	strcpy(at.variances[0].verdict, "backend, L2: they take 3.0 times as long.");
	assert_misses(&at, COUNTS, "ratio");
	strcpy(at.variances[0].verdict, "backend, L2: they take 1.5 times as long.");
	at.variances[0].performance = 0.1;
	assert_true(judge(&at, COUNTS).good);
}

static void test_place(void **state)
{
	struct made_up at;

	(void)state;
	make(&at, FINDING_PLACE);
	at.findings.variance_count = 0;
	assert_misses(&at, ARGUMENTS, "no imbalance");
	at.findings.imbalances = &at.imbalance;
	at.findings.imbalance_count = 1;
	assert_true(judge(&at, ARGUMENTS).good);
	*at.imbalance.place = '\0';
	assert_misses(&at, ARGUMENTS, "host n2");
	strcpy(at.imbalance.place, "host n2");
	at.imbalance.ratio = 1.54;
	assert_misses(&at, ARGUMENTS, "ratio");
	at.imbalance.ratio = 1.5;
	at.imbalance.ranks = others;
	assert_misses(&at, ARGUMENTS, "ranks");
	/* a variance by place is as good; an unconfirmed one is not */
	make(&at, FINDING_PLACE);
	at.variances[0].alarm = false;
	at.variances[0].confidence = VAPRO_PLACE;
	assert_true(judge(&at, ARGUMENTS).good);
	at.variances[0].confidence = VAPRO_UNCONFIRMED;
	assert_misses(&at, ARGUMENTS, "no place");
}

static void test_lasting(void **state)
{
	struct made_up at;

	(void)state;
	make(&at, FINDING_ALARM);
	at.truth.end = at.truth.last = at.variances[0].end = 600;
	assert_true(judge(&at, COUNTS).good);
	at.variances[0].raised = 30;
	assert_misses(&at, COUNTS, "raised after 20 s");
	at.variances[0].raised = 20;
	at.variances[0].end = 500;
	assert_misses(&at, COUNTS, "ends 100 s early");
}

static void test_quiet(void **state)
{
	struct made_up at;

	(void)state;
	make(&at, FINDING_ALARM);
	at.truths.count = 0;
	at.variances[0].alarm = false;
	assert_true(judge(&at, COUNTS).good);
	at.variances[0].alarm = true;
	assert_misses(&at, COUNTS, "1 alarms");
}

static struct paper_result judge_by(const struct paper *by, const struct made_up *at)
{
	struct paper_result result;

	papers__judge(by, COUNTS, &at->truths, &at->findings, &result);
	return result;
}

static void test_loss_coverage_and_delay(void **state)
{
	struct paper by = {.kind = "made up", .study = "", .lost_within = 0.1};
	struct made_up at;

	(void)state;
	make(&at, FINDING_ALARM);
	at.truth.lost[VAPRO_COMPUTATION] = 10;
	at.variances[0].lost = 9.1;
	assert_true(judge_by(&by, &at).good);
	at.variances[0].lost = 8.9;
	assert_non_null(strstr(judge_by(&by, &at).missing, "loss -11 %"));
	by = (struct paper){.kind = "made up", .study = "", .coverage = 0.7};
	at.findings.rank_seconds = 2;
	at.findings.covered_seconds = 1.41;
	assert_true(judge_by(&by, &at).good);
	at.findings.covered_seconds = 1.39;
	assert_non_null(strstr(judge_by(&by, &at).missing, "coverage"));
	by = (struct paper){.kind = "made up", .study = "", .raised_s = 10};
	assert_true(judge_by(&by, &at).good);
	at.variances[0].raised = 20.5;
	assert_non_null(strstr(judge_by(&by, &at).missing, "raised after"));
}

/* What must be reported need be no alarm, but late ranks are no explanation of it. */
static void test_reported(void **state)
{
	struct paper by = {.kind = "made up", .study = ""};
	struct made_up at;

	(void)state;
	make(&at, FINDING_REPORTED);
	at.variances[0].alarm = false;
	at.variances[0].confidence = VAPRO_UNCONFIRMED;
	assert_true(judge_by(&by, &at).good);
	strcpy(at.variances[0].evidence, "ranks waited for late peers");
	assert_non_null(strstr(judge_by(&by, &at).missing, "no record"));
}

static bool is_case(const struct case_table *table, const char *kind)
{
	for (size_t i = 0; i < table->count; i++) {
		if (!strcmp(table->cases[i].kind, kind))
			return true;
	}
	return false;
}

/* Each case of the papers has words, and all words have a case. Each case demands something of both modes. */
static void test_tables(void **state)
{
	static const struct case_table *const tables[] = {&papers_cases, &shape_fault_cases, &shape_call_cases,
							  &shape_quiet_cases};

	(void)state;
	for (size_t i = 0; i < papers_cases.count; i++) {
		struct job job;

		assert_non_null(papers__find(papers_cases.cases[i].kind));
		cases__make(&papers_cases.cases[i], 0, 2, &job);
		assert_true(job.ranks > 0 && job.step_count > 0 && job.seconds > 0);
		assert_true(job.effect_count <= JOB_EFFECTS && job.fault_count <= JOB_FAULTS);
		for (int fault = 0; fault < job.fault_count; fault++) {
			assert_int_not_equal(job.faults[fault].expected[COUNTS], FINDING_NONE);
			assert_int_not_equal(job.faults[fault].expected[ARGUMENTS], FINDING_NONE);
		}
	}
	for (size_t i = 0; i < paper_count; i++) {
		bool has = false;

		for (size_t table = 0; table < sizeof(tables) / sizeof(*tables); table++)
			has |= is_case(tables[table], papers[i].kind);
		assert_true(has);
	}
	assert_null(papers__find("no such case"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_alarm),
	    cmocka_unit_test(test_verdict),
	    cmocka_unit_test(test_place),
	    cmocka_unit_test(test_lasting),
	    cmocka_unit_test(test_quiet),
	    cmocka_unit_test(test_tables),
	    cmocka_unit_test(test_loss_coverage_and_delay),
	    cmocka_unit_test(test_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
