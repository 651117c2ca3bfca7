/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events to lines and to the end summary, with a scripted analysis. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "report/pipeline.h"
#include "report/summary.h"
#include "sample.h"

struct analysis {
	struct vapro_bundle bundle;
	struct job_result result;
	uint64_t from_ns, to_ns;
	uint32_t threads, states, windows, refused, hops;
	bool last;
	bool fresh; /* each window has new variances */
};

static struct analysis stub;

struct analysis *analysis__new(const struct vapro_config *config, enum vapro_workload_source source)
{
	(void)config;
	(void)source;
	memset(&stub, 0, sizeof(stub));
	return &stub;
}

void analysis__free(struct analysis *analysis)
{
	(void)analysis;
}

int analysis__add_thread(struct analysis *analysis, const struct vapro_thread *thread)
{
	return thread->id == analysis->threads++ ? 0 : -EINVAL;
}

int analysis__add_state(struct analysis *analysis, const struct vapro_state *state)
{
	return state->id == analysis->states++ ? 0 : -EINVAL;
}

int analysis__add_bundle_at(struct analysis *analysis, const struct vapro_bundle *bundle, uint64_t offset_ns)
{
	analysis->bundle = *bundle;
	analysis->bundle.start_ns += offset_ns;
	analysis->bundle.end_ns += offset_ns;
	return bundle->thread < analysis->threads ? 0 : -EINVAL;
}

int analysis__add_bundle(struct analysis *analysis, const struct vapro_bundle *bundle)
{
	return analysis__add_bundle_at(analysis, bundle, 0);
}

void analysis__held_elsewhere(struct analysis *analysis, size_t bytes)
{
	(void)analysis;
	(void)bytes;
}

int analysis__add_interference(struct analysis *analysis, const struct vapro_interference *interference)
{
	return interference->thread < analysis->threads ? 0 : -EINVAL;
}

int analysis__add_account(struct analysis *unused, const struct vapro_account *account)
{
	(void)unused;
	(void)account;
	return 0;
}

int analysis__add_facts(struct analysis *analysis, const struct vapro_process_facts *facts)
{
	(void)analysis;
	(void)facts;
	return 0;
}

int analysis__thread_seen(struct analysis *analysis, uint32_t thread, uint64_t from_ns, uint64_t to_ns)
{
	(void)thread;
	analysis->from_ns = from_ns;
	analysis->to_ns = to_ns;
	return 0;
}

int analysis__end_window(struct analysis *analysis, uint64_t begin_ns, uint64_t end_ns, bool last,
			 const struct job_result **results, uint32_t *count)
{
	static struct result_variance fresh[16];

	sample__fill(&analysis->result);
	assert_true(analysis->result.variance_count <= 16);
	analysis->result.begin_ns = begin_ns;
	analysis->result.end_ns = end_ns;
	analysis->last = last;
	for (uint32_t i = 0; analysis->fresh && i < analysis->result.variance_count; i++) {
		fresh[i] = analysis->result.variances[i];
		fresh[i].id += 1000ULL * analysis->windows;
		analysis->result.variances =
		    i + 1 == analysis->result.variance_count ? fresh : analysis->result.variances;
	}
	if (analysis->windows++) /* the first window's map is no later window's */
		analysis->result.heatmap_count = 0;
	*results = &analysis->result;
	*count = 1;
	return 0;
}

int analysis__place(struct analysis *analysis, const struct vapro_place *place)
{
	return place->thread < analysis->threads ? 0 : -EINVAL;
}

int analysis__select(struct analysis *analysis, const struct vapro_selection *selection)
{
	(void)analysis;
	(void)selection;
	return 0;
}

void analysis__remember(struct analysis *analysis, double seconds, uint64_t bytes)
{
	(void)analysis;
	(void)seconds;
	(void)bytes;
}

int analysis__query(struct analysis *analysis, const struct vapro_selection *selection, const char *job,
		    uint64_t now_ns, const struct job_result **results, uint32_t *count)
{
	(void)analysis;
	(void)selection;
	(void)job;
	(void)now_ns;
	*results = NULL;
	*count = 0;
	return 0;
}

void analysis__stage_request(const struct analysis *analysis, struct vapro_stage_request *request)
{
	(void)analysis;
	*request = (struct vapro_stage_request){.stage = 1};
}

void analysis__refuse_stage(struct analysis *analysis, const char *expand)
{
	assert_string_equal(expand, "memory");
	analysis->refused++;
}

void analysis__hop_request(struct analysis *analysis, uint64_t now_ns, struct vapro_hop_event *event)
{
	*event = (struct vapro_hop_event){.hop = now_ns == analysis->hops ? VAPRO_HOP_UP : VAPRO_HOP_NONE};
}

int analysis__hopped(struct analysis *analysis, const struct vapro_hop_event *event, uint64_t now_ns)
{
	analysis->hops += event->hop == VAPRO_HOP_REFUSED && now_ns == 7 && !strcmp(event->site, "a+1");
	return 0;
}

int analysis__score(const struct analysis *analysis, struct vapro_score *score)
{
	(void)analysis;
	*score = (struct vapro_score){.fragments = 7};
	return 0;
}

static struct vapro_shed shed;

void analysis__shed(const struct analysis *analysis, struct vapro_shed *reported)
{
	(void)analysis;
	*reported = shed;
}

static char path[64];

static int put(struct stream_sink *sink, struct stream_event event)
{
	return stream__put(sink, &event);
}

/* Feeds two windows; returns the pipeline, not yet closed. */
static struct stream_sink *run(struct line_sink *lines, struct summary *summary)
{
	const uint64_t second = 1000000000;
	struct vapro_config config;
	struct stream_sink *sink;

	config__init(&config);
	sink = pipeline__new(&config, VAPRO_BY_ARGUMENTS, NULL, lines, summary);
	assert_non_null(sink);
	assert_int_equal(put(sink, (struct stream_event){.type = STREAM_WINDOW}), -EINVAL); /* no clock yet */
	put(sink, (struct stream_event){.type = STREAM_LINE, .line = "{\"a line\":\"as it is\"}"});
	put(sink, (struct stream_event){.type = STREAM_CLOCK, .clock = {5000, SAMPLE_UTC}});
	for (uint32_t i = 0; i < 4; i++)
		put(sink, (struct stream_event){
			      .type = STREAM_THREAD,
			      .thread = {.id = i, .rank = (int32_t)i, .job = "slurm:1234.0", .host = "n1"}});
	put(sink, (struct stream_event){.type = STREAM_STATE, .state = sample_edge});
	put(sink, (struct stream_event){.type = STREAM_SEEN, .seen = {0, 6000, 0}});
	assert_true(stub.from_ns == SAMPLE_UTC + 1000);
	assert_int_equal(stub.to_ns, 0);
	put(sink, (struct stream_event){.type = STREAM_BUNDLE, .bundle = {.n = 1, .start_ns = 5010, .end_ns = 5020}});
	assert_true(stub.bundle.start_ns == SAMPLE_UTC + 10);
	assert_true(stub.bundle.end_ns == SAMPLE_UTC + 20);
	assert_int_equal(put(sink, (struct stream_event){.type = STREAM_BUNDLE, .bundle = {.thread = 9, .n = 1}}), 0);
	put(sink,
	    (struct stream_event){.type = STREAM_WINDOW, .window = {SAMPLE_UTC, SAMPLE_UTC + 15 * second, false, 0.5}});
	put(sink,
	    (struct stream_event){.type = STREAM_STAGE,
				  .stage = {6000, 7000, 2, "backend", "slurm:1234.0", 3, "instructions,a", NULL}});
	assert_int_equal(stub.refused, 0);
	put(sink, (struct stream_event){.type = STREAM_STAGE,
					.stage = {8000, 8000, 3, "memory", "slurm:1234.0", 3, NULL, "no room"}});
	assert_int_equal(stub.refused, 1);
	put(sink, (struct stream_event){.type = STREAM_HOP, .hop = {6, 7, VAPRO_HOP_REFUSED, "a+1", NULL, "no"}});
	assert_int_equal(stub.hops, 1);
	put(sink, (struct stream_event){.type = STREAM_WINDOW,
					.window = {SAMPLE_UTC + 15 * second, SAMPLE_UTC + 25 * second, true, 0.75}});
	put(sink, (struct stream_event){.type = STREAM_END});
	return sink;
}

static int setup(void **state)
{
	(void)state;
	snprintf(path, sizeof(path), "/tmp/vapro-test-pipeline-%d", getpid());
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(path);
	return 0;
}

static void test_lines(void **state)
{
	struct line_sink *lines = line_sink__open(path, false);
	struct stream_sink *sink = run(lines, NULL);
	struct line_totals totals;
	char line[20000];
	size_t count = 0;
	FILE *file;

	(void)state;
	assert_true(stub.last);
	pipeline__totals(sink, &totals);
	assert_int_equal(totals.windows, 2);
	assert_int_equal(totals.variances, 3); /* reported twice each, counted once */
	assert_int_equal(totals.alarms, 1);
	assert_int_equal(totals.bundles, 2 * 4321);
	assert_int_equal(totals.lost[VAPRO_LOST_RING_FULL], 24);
	assert_int_equal(totals.refused, 1);
	assert_string_equal(pipeline__host(sink), "n1"); /* host of the first thread */
	assert_true(pipeline__end_ns(sink) == SAMPLE_UTC + 25000000000ULL);
	assert_int_equal(stream__close(sink), 0);
	assert_int_equal(line_sink__close(lines), 0);
	file = fopen(path, "r");
	while (fgets(line, sizeof(line), file)) {
		if (!count++)
			assert_string_equal(line, "{\"a line\":\"as it is\"}\n");
		else
			assert_non_null(strstr(line, "\"host\":\"n1\""));
	}
	fclose(file);
	assert_int_equal(count, 1 + (11 + 2) + 2 + (9 + 2));
}

static char *print(struct summary *summary, unsigned width)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	summary__print(summary, out, &(struct summary_options){.width = width, .all = true});
	fclose(out);
	if (getenv("VAPRO_TEST_SHOW"))
		fputs(text, stderr);
	return text;
}

static void has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' is not in:\n%s", part, text);
}

/* A run of days counts its variances without storing them all. */
static void test_many_variances(void **state)
{
	const uint64_t second = 1000000000;
	struct stream_sink *sink = run(NULL, NULL);
	struct line_totals totals;

	(void)state;
	stub.fresh = true;
	for (uint64_t i = 0; i < 3000; i++)
		assert_int_equal(
		    put(sink, (struct stream_event){.type = STREAM_WINDOW,
						    .window = {SAMPLE_UTC + (25 + 10 * i) * second,
							       SAMPLE_UTC + (35 + 10 * i) * second, false, 0}}),
		    0);
	pipeline__totals(sink, &totals);
	assert_int_equal(totals.variances, 3 * (1 + 3000));
	assert_int_equal(totals.alarms, 1 + 3000);
	stream__close(sink);
}

/* Shed data is reported with each window, in the summary once. */
static void test_shed(void **state)
{
	struct line_sink *lines = line_sink__open(path, false);
	struct summary *summary = summary__new();
	unsigned warnings = 0;
	char line[20000], *text;
	FILE *file;

	(void)state;
	shed = (struct vapro_shed){.merged = 12, .coarser = 3, .bundles = 4, .fragments = 40, .seconds = 1.5};
	stream__close(run(lines, summary));
	shed = (struct vapro_shed){0};
	assert_int_equal(line_sink__close(lines), 0);
	file = fopen(path, "r");
	while (fgets(line, sizeof(line), file)) {
		if (!strstr(line, "\"memory_shed\""))
			continue;
		warnings++;
		assert_non_null(
		    strstr(line, "more than 256.0 MiB: 12 bundles merged with others of their state, 3 times "));
		assert_non_null(strstr(line, ", 4 bundles dropped (1.500 s of 40 fragments are uncovered); raise "));
		assert_null(strstr(line, "history"));
	}
	fclose(file);
	assert_int_equal(warnings, 2);
	text = print(summary, 0);
	has(text, "!!! the analysis would hold more than 256.0 MiB");
	assert_null(strstr(strstr(text, "!!! the analysis") + 1, "!!! the analysis"));
	free(text);
	summary__free(summary);
}

/* A full disk loses lines and does not end the run. */
static void test_full_disk(void **state)
{
	struct line_sink *lines = line_sink__open("/dev/full", false);
	struct stream_sink *sink = run(lines, NULL);
	struct line_totals totals;

	(void)state;
	pipeline__totals(sink, &totals);
	assert_int_equal(totals.windows, 2);
	assert_int_equal(totals.lost_lines, 1 + (11 + 2) + 2 + (9 + 2));
	assert_non_null(strstr(line_sink__error(lines), "No space left"));
	stream__close(sink);
	assert_int_equal(line_sink__close(lines), -ENOSPC);
}

static void test_summary(void **state)
{
	struct summary *summary = summary__new();
	char *text;

	(void)state;
	stream__close(run(NULL, summary));
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
	has(text, "overhead    0.41 %");
	has(text, "6.1 % seen too few times to know its usual speed; most: MPI_Allreduce at");
	has(text, "!!! 24 fragments lost: the ring buffer was full (--ring-bytes)\n");
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
	has(text, "no slow region found in what could be compared\n");
	has(text, "1 rank, watched for 1.00 s");
	assert_null(strstr(text, "!!!"));
	assert_null(strstr(text, "nan"));
	free(text);
	summary__free(summary);
}

/* A run in which nothing could be compared is no quiet run: why, and what would help. */
static void test_no_result(void **state)
{
	static const int32_t ranks[] = {0, 1};
	static const struct vapro_state solve = {.from = "a+0x1", .to = "a+0x2", .labels = ""};
	static const struct result_uncovered uncovered[] = {{&solve, 0.8, VAPRO_FEW_FRAGMENTS},
							    {&solve, 0.2, VAPRO_SPREAD}};
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
		  "usual speed. What would help: a longer run, or a lower --certify-fragments.\n");
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
	    {.state = &reads, .rank = 0, .members = 1, .seconds = 0.7, .norm = NAN},
	    {.state = &reads, .rank = 3, .members = 2, .seconds = 0.6, .norm = NAN},
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
	struct job_result result = {.job = "j",
				    .begin_ns = SAMPLE_UTC,
				    .end_ns = SAMPLE_UTC + 1000000000,
				    .rares = rares,
				    .rare_count = 4,
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
	assert_int_equal(summary__add(summary, &result, NAN), 0);
	text = print(summary, 200);
	has(text,
	    "\nrare        so?lve -> norm: other work 3 times, 2.00 s in all, longest on rank 1: too seldom to be "
	    "judged\n"
	    "            so?lve -> norm: other work 4 times, 1.30 s in all, longest on rank 2: too seldom to be "
	    "judged\n"
	    "            read at a+0x3: seen 1 time, 0.70 s in all, longest on rank 0: too seldom to be judged\n"
	    "            read at a+0x3: seen 2 times, 0.60 s in all, longest on rank 3: too seldom to be judged\n"
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
	has(text, "            and 19 more\ndrift");
	free(text);
	summary__free(summary);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_lines),	  cmocka_unit_test(test_many_variances),
	    cmocka_unit_test(test_full_disk),	  cmocka_unit_test(test_shed),
	    cmocka_unit_test(test_summary),	  cmocka_unit_test(test_findings),
	    cmocka_unit_test(test_quiet_summary), cmocka_unit_test(test_no_result),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
