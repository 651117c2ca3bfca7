/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events to the end summary, with a scripted analysis. */
#include "scripted.h"

static void test_summary(void **state)
{
	struct summary *summary = summary__new();
	char *text;

	(void)state;
	pipeline__close(run(NULL, summary));
	summary__add_trouble(summary, "out.ndjson: No space left on device; lines are being lost");
	text = print(summary, 90);
	has(text, "1 slow region: 1.50 s lost in all, 1.50 % of the ranks' time\n");
	has(text, " 1. critical: computation of thread 3 of rank 2: 1.50 s lost, at 52 % of its best observed\n");
	has(text, "    speed, and made others wait 4.25 s\n");
	has(text, "2027-01-15 08:00:05.0 to 08:00:08.0 UTC: 5.00 s after the start, for\n");
	has(text, "exchange+0x20 -> reduce+0x14");
	has(text, "of it 97 % preempted: another task ran on its CPU\n");
	has(text, "    preempted by  stress-ng (pid 4242), 1.30 s of CPU time\n");
	has(text, "ranks 0-1,3 waited 4.25 s for it (communication)\n");
	has(text, " 2. computation of ranks 0-1: 0.20 s lost, at 80 % of its best observed speed [by its\n");
	has(text, "    confidence    medium: one state only, and the kernel attributes nothing\n");
	has(text, "  small       34 slow regions of too little weight to be listed, 0.12 s lost\n");
	has(text, "4 ranks on 2 hosts, watched for 25.0 s");
	has(text, "!!! only 4 of 8 ranks were seen");
	has(text, "judged      90.0 %");
	has(text, "  unseen      at most 0.40 s at a time without work that was judged (rank 3)\n");
	has(text, "overhead    0.41 %");
	has(text, "6.1 % seen too few times to know its usual speed; most: MPI_Allreduce at");
	has(text, "!!! 24 fragments lost: the ring buffer was full (ring-bytes)\n");
	has(text, "; this monitor used 0.60 % of\n");
	has(text, "!!! out.ndjson: No space left");
	free(text);
	text = print(summary, 200);
	has(text, "\nimbalance   ranks 2-3, all on host n2, are always 24 % slower than the others (20 to 28 % in 3 "
		  "states), 1.50 s "
		  "lost, most in exchange+0x20 -> reduce+0x14: slower hardware or system there\n");
	free(text);
	summary__free(summary);
}

static void test_quiet_summary(void **state)
{
	static const int32_t ranks[] = {0};
	struct summary *summary = summary__new();
	struct job_result result = {
	    .job = "j",
	    .begin_ns = SAMPLE_UTC,
	    .end_ns = SAMPLE_UTC + 1000000000,
	    .ranks = ranks,
	    .rank_count = 1,
	    .coverage = {0.5, 0, 0},
	    .coverage_total = 0.5,
	    .performance = {0.99, NAN, NAN},
	};
	char *text = print(summary, 0);

	(void)state;
	has(text, "no MPI or multi-threaded process was found\n");
	free(text);
	assert_int_equal(summary__add(summary, &result, NAN), 0);
	text = print(summary, 0);
	has(text, "no slow region found in the 50.0 % of the ranks' time that could be compared\n");
	has(text, "1 rank, watched for 1.00 s");
	assert_null(strstr(text, "!!!"));
	assert_null(strstr(text, "nan"));
	free(text);
	summary__free(summary);
}

/* The worst process is that of a window of seconds: of the short one at the end of a job a few calls are much. */
static void test_overhead(void **state)
{
	static const int32_t ranks[] = {0};
	struct summary *summary = summary__new();
	struct job_result result = {.job = "j",
				    .begin_ns = SAMPLE_UTC,
				    .end_ns = SAMPLE_UTC + 1000000000,
				    .ranks = ranks,
				    .rank_count = 1,
				    .performance = {NAN, NAN, NAN},
				    .overhead_pct_mean = 1,
				    .overhead_pct_max = 9,
				    .overhead_pid_max = 7};
	char *text;

	(void)state;
	assert_int_equal(summary__add(summary, &result, NAN), 0);
	text = print(summary, 100);
	has(text, "worst process 9.00 % (pid 7)\n");
	free(text);
	result.begin_ns = result.end_ns;
	result.end_ns += 15000000000;
	result.overhead_pct_max = 2;
	result.overhead_pid_max = 8;
	assert_int_equal(summary__add(summary, &result, NAN), 0);
	result.begin_ns = result.end_ns;
	result.end_ns += 4000000000;
	result.overhead_pct_max = 30;
	result.overhead_pid_max = 7;
	assert_int_equal(summary__add(summary, &result, NAN), 0);
	text = print(summary, 100);
	has(text, "worst process 2.00 % (pid 8)\n");
	free(text);
	summary__free(summary);
}

/* A run in which nothing could be compared is no quiet run: why, and what would help. */
static void test_no_result(void **state)
{
	static const int32_t ranks[] = {0, 1};
	static const struct vapro_state solve = {.from = "a+0x1", .to = "a+0x2", .labels = ""};
	static const struct result_uncovered uncovered[] = {{&solve, 0, 0.8, VAPRO_FEW_FRAGMENTS},
							    {&solve, 0, 0.2, VAPRO_SPREAD}};
	struct job_result result = {.job = "j",
				    .begin_ns = SAMPLE_UTC,
				    .end_ns = SAMPLE_UTC + 4000000000,
				    .ranks = ranks,
				    .rank_count = 2,
				    .performance = {NAN, NAN, NAN},
				    .uncovered = uncovered,
				    .uncovered_count = 2};
	struct summary *summary = summary__new();
	char *text;

	(void)state;
	assert_int_equal(summary__add(summary, &result, NAN), 0);
	text = print(summary, 200);
	has(text, "no result: 0.0 % of the time of job j could be compared. 80 % of it: seen too few times to know its "
		  "usual speed. What would help: a longer run.\n");
	assert_null(strstr(text, "no slow region"));
	assert_null(strstr(text, "speed  "));
	free(text);
	summary__free(summary);
	/* and a run that found nothing to watch names what was run */
	summary = summary__new();
	{
		size_t size;
		FILE *out = open_memstream(&text, &size);

		summary__print(summary, out, &(struct summary_options){.command = "true"});
		fclose(out);
	}
	assert_string_equal(text, "no MPI or multi-threaded process was found in: true\n");
	free(text);
	{
		size_t size;
		FILE *out = open_memstream(&text, &size);

		summary__print(summary, out, &(struct summary_options){.replayed = true});
		fclose(out);
	}
	assert_string_equal(text, "no result: the input has nothing that could be analysed\n");
	free(text);
	summary__free(summary);
}

/* Findings that are no variances appear once, in their last form, largest first; names are harmless. */
static void test_findings(void **state)
{
	static const struct vapro_state solve = {.class = VAPRO_COMPUTATION,
						 .from = "a+0x1",
						 .to = "a+0x2",
						 .labels = "",
						 .from_symbol = "so\033lve",
						 .to_symbol = "norm"};
	static const struct vapro_state reads = {.class = VAPRO_IO, .to = "a+0x3", .labels = "function=read size=8"};
	struct result_rare rares[] = {
	    {.state = &solve, .rank = 2, .members = 1, .seconds = 0.4, .cluster = 7, .norm = 5e6},
	    {.state = &solve, .rank = 1, .members = 3, .seconds = 2, .cluster = 8, .norm = 6e6},
	    {.state = &reads, .rank = 3, .members = 3, .seconds = 0.7, .norm = NAN},
	};
	struct result_drift drift = {.state = &solve, .ratio = 1.25, .windows = 4};
	static const int32_t slow[] = {3};
	struct result_imbalance imbalance = {.state = &solve,
					     .fast_rank = 0,
					     .slow_rank = 3,
					     .fast_ns = 2e6,
					     .slow_ns = 3e6,
					     .share = 0.4,
					     .ranks = slow,
					     .rank_count = 1,
					     .ratio = 1.5,
					     .ratio_least = 1.5,
					     .ratio_most = 1.51,
					     .ratio_slow = 1.5,
					     .states = 2};
	static const int32_t stalled[] = {0, 1};
	struct result_noise noise[] = {
	    {.id = 1,
	     .what = "kwor\033ker",
	     .relation = VAPRO_FOREIGN,
	     .slices = 10,
	     .lost_s = 0.36,
	     .longest_s = 0.0011,
	     .share = 0.024,
	     .period_s = 0.0125,
	     .ranks = stalled,
	     .rank_count = 2},
	    {.id = 2,
	     .what = "ticker",
	     .relation = VAPRO_OTHER_JOB,
	     .pid = 71,
	     .slices = 1,
	     .lost_s = 0.5,
	     .longest_s = 0.5,
	     .share = 0.25,
	     .period_s = 2,
	     .ranks = slow,
	     .rank_count = 1},
	};
	struct job_result result = {.job = "j",
				    .begin_ns = SAMPLE_UTC,
				    .end_ns = SAMPLE_UTC + 1000000000,
				    .noise = noise,
				    .noise_count = 2,
				    .rares = rares,
				    .rare_count = 3,
				    .drifts = &drift,
				    .drift_count = 1,
				    .imbalances = &imbalance,
				    .imbalance_count = 1};
	struct summary *summary = summary__new();
	char *text;

	(void)state;
	assert_int_equal(summary__add(summary, &result, NAN), 0);
	rares[0].members = 4;
	rares[0].seconds = 1.3;
	noise[0].slices = 1600;
	assert_int_equal(summary__add(summary, &result, NAN), 0);
	text = print(summary, 200);
	has(text,
	    "\nnoise       ticker (pid 71, of another watched job) stalled rank 3 once, for 0.50 s: 25.0 % of its "
	    "time\n"
	    "            kwor?ker stalled ranks 0-1 1600 times: 0.225 ms each, at most 1.1 ms, each rank on average "
	    "every "
	    "12.5 ms over the job, 2.4 % of their time, 0.36 s in all\n"
	    "rare        so?lve -> norm: other work 3 times, 2.00 s in all, longest on rank 1: too rare to be "
	    "judged\n"
	    "            so?lve -> norm: other work 4 times, 1.30 s in all, longest on rank 2: too rare to be "
	    "judged\n"
	    "            read at a+0x3: seen 3 times, 0.70 s in all, longest on rank 3: too rare to be judged\n"
	    "drift       so?lve -> norm: slower on all ranks together, by 25 % over 4 windows\n"
	    "imbalance   rank 3 is always 50 % slower than the others, most in so?lve -> norm: more work, or a slower "
	    "core; both look the same without counters\n\n");
	free(text);
	/* many findings: the largest, and how many more */
	for (uint32_t i = 0; i < 20; i++) {
		rares[0].cluster = 100 + i;
		assert_int_equal(summary__add(summary, &result, NAN), 0);
	}
	text = print(summary, 200);
	has(text, "            and 18 more\ndrift");
	free(text);
	summary__free(summary);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_summary),  cmocka_unit_test(test_findings),  cmocka_unit_test(test_quiet_summary),
	    cmocka_unit_test(test_overhead), cmocka_unit_test(test_no_result),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
