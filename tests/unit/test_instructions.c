/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fragments with instructions, from NDJSON and captures through the whole analysis to lines: several
 * hosts are one run, the order of lines is nothing, rare clusters and better minima are told, scores.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "collect/capture.h"
#include "report/pipeline.h"
#include "report/sink.h"
#include "sim.h"

#define UTC 1800000000000000000ULL /* a bin border */
#define MS 1000000ULL
#define S 1000000000ULL
#define RANKS 4
#define STEPS 400
#define FILES 4

static char paths[FILES][64], out_path[64], err[512];
static struct vapro_config config;

static int setup(void **state)
{
	(void)state;
	for (int i = 0; i < FILES; i++)
		snprintf(paths[i], sizeof(paths[i]), "/tmp/vapro-test-instructions-%d-%d", i, getpid());
	snprintf(out_path, sizeof(out_path), "/tmp/vapro-test-instructions-out-%d", getpid());
	sim_config(&config);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (int i = 0; i < FILES; i++)
		unlink(paths[i]);
	unlink(out_path);
	return 0;
}

/* ---- a run: two computations and a call a step, 50 ms each step; rank 2 is slow on the CPU from 8 s to 12 s */

struct piece {
	int rank;
	bool call;
	const char *truth;
	uint64_t start_ns, duration_ns;
	double instructions, loads, flops;
};

static size_t make(struct piece *pieces)
{
	uint64_t random = 11;
	size_t count = 0;

	for (int step = 0; step < STEPS; step++) {
		for (int rank = 0; rank < RANKS; rank++) {
			uint64_t at = UTC + (uint64_t)step * 50 * MS;
			bool slow = rank == 2 && step >= 160 && step < 240, once = step == 300 && rank == 1;
			bool heavy = step % 2;
			double work = once ? 9e6 : heavy ? 4e6 : 1e6;
			/* the heavy kind has as many instructions as loads and flops together differ by */
			uint64_t ns = (uint64_t)((once	  ? 30
						  : heavy ? 20
							  : 15) *
						 1e6 * (1 + 0.02 * sim_random(&random)) * (slow ? 1.4 : 1));

			pieces[count++] = (struct piece){
			    .rank = rank,
			    .truth = once    ? "once"
				     : heavy ? "heavy"
					     : "light",
			    .start_ns = at,
			    .duration_ns = ns,
			    .instructions = floor(work * (1 + 0.01 * sim_random(&random))),
			    .loads = floor(work / 3 * (1 + 0.01 * sim_random(&random))),
			    .flops = heavy ? 5e5 : 2e5,
			};
			pieces[count++] =
			    (struct piece){.rank = rank, .call = true, .start_ns = at + ns, .duration_ns = 5 * MS};
		}
	}
	return count;
}

static const char *host_of(int rank)
{
	return rank < RANKS / 2 ? "n1" : "n2";
}

static void write_line(FILE *file, const struct piece *piece)
{
	fprintf(file,
		"{\"rank\":%d,\"host\":\"%s\",\"job\":\"slurm:9\",\"world_size\":%d,\"start_ns\":%llu,\"duration_ns\":%"
		"llu,",
		piece->rank, host_of(piece->rank), RANKS, (unsigned long long)piece->start_ns,
		(unsigned long long)piece->duration_ns);
	if (piece->call) {
		fprintf(file, "\"class\":\"communication\",\"at\":\"a@1+0x2\",\"workload\":{\"function\":"
			      "\"MPI_Allreduce\",\"bytes\":8}}\n");
		return;
	}
	/* magnitudes in any order: slots go by name */
	fprintf(file,
		"\"class\":\"computation\",\"from\":\"a@1+0x1\",\"to\":\"a@1+0x2\",\"truth\":\"%s\",\"workload\":{",
		piece->truth);
	if (piece->rank % 2)
		fprintf(file, "\"loads\":%.0f,\"flops\":%.0f,", piece->loads, piece->flops);
	else
		fprintf(file, "\"flops\":%.0f,\"loads\":%.0f,", piece->flops, piece->loads);
	fprintf(file, "\"instructions\":%.0f}}\n", piece->instructions);
}

static char *contents(void)
{
	FILE *file = fopen(out_path, "r");
	char *text = NULL;
	size_t size;

	assert_non_null(file);
	if (getdelim(&text, &size, 0, file) < 0)
		fail_msg("no lines");
	fclose(file);
	return text;
}

/* All lines of the run that the files hold. */
static char *run_ndjson(const char *const *files, size_t count, struct vapro_score *score)
{
	struct line_sink *lines = line_sink__open(out_path, false);
	struct stream_sink *pipeline;
	struct ndjson *ndjson;
	uint64_t bad;

	ndjson = ndjson__read(files, count, true, &bad, err, sizeof(err));
	assert_non_null(ndjson);
	assert_true(ndjson__by_instructions(ndjson));
	pipeline = pipeline__new(&config, VAPRO_BY_INSTRUCTIONS, NULL, lines, NULL);
	assert_int_equal(ndjson__feed(ndjson, config.window_s, pipeline, err, sizeof(err)), 0);
	if (score)
		assert_int_equal(pipeline__score(pipeline, score), 0);
	stream__close(pipeline);
	ndjson__free(ndjson);
	assert_int_equal(line_sink__close(lines), 0);
	return contents();
}

static void test_hosts_as_files(void **state)
{
	static struct piece pieces[STEPS * RANKS * 2];
	size_t count = make(pieces);
	const char *const whole[] = {paths[0]}, *const hosts[] = {paths[1], paths[2]},
			  *const turned[] = {paths[2], paths[1]}, *const shuffled[] = {paths[3]};
	struct vapro_score score;
	FILE *files[3];
	char *one, *two;
	uint64_t random = 12;

	(void)state;
	config.min_lost_s = 0.02; /* the rare one is short */
	for (int i = 0; i < 3; i++)
		files[i] = fopen(paths[i], "w");
	for (size_t i = 0; i < count; i++) {
		write_line(files[0], &pieces[i]);
		write_line(files[pieces[i].rank < RANKS / 2 ? 1 : 2], &pieces[i]);
	}
	for (int i = 0; i < 3; i++)
		fclose(files[i]);
	for (size_t i = count - 1; i; i--) {
		size_t other = (size_t)((double)(i + 1) * sim_random(&random));
		struct piece piece = pieces[i];

		pieces[i] = pieces[other];
		pieces[other] = piece;
	}
	files[0] = fopen(paths[3], "w");
	for (size_t i = 0; i < count; i++)
		write_line(files[0], &pieces[i]);
	fclose(files[0]);

	one = run_ndjson(whole, 1, &score);
	assert_true(score.homogeneity == 1 && score.completeness == 1 && score.v_measure == 1);
	assert_true(score.fragments == STEPS * RANKS && score.truths == 3 && score.clusters == 3);
	assert_true(!score.approximate && !score.unclustered);
	/* the slow ranks, the rare one, the certificate */
	assert_non_null(strstr(one, "\"type\":\"variance\""));
	assert_non_null(strstr(one, "\"ranks\":\"2\""));
	assert_non_null(strstr(one, "\"rank\":1,\"members\":1,"));
	assert_non_null(strstr(one, "\"clusters\":{\"states\":1,\"clusters\":3,\"rare\":1,\"exact\":true"));
	two = run_ndjson(hosts, 2, NULL);
	assert_string_equal(one, two);
	free(two);
	two = run_ndjson(turned, 2, NULL);
	assert_string_equal(one, two);
	free(two);
	two = run_ndjson(shuffled, 1, &score);
	assert_string_equal(one, two);
	assert_true(score.v_measure == 1);
	free(two);
	free(one);
}

/* ---- the same as captures of hosts */

static void put(struct stream_sink *sink, struct stream_event event)
{
	assert_int_equal(stream__put(sink, &event), 0);
}

static void write_capture(const char *path, const struct piece *pieces, size_t count, int first_rank, int ranks)
{
	struct stream_sink *sink = capture__create(path, "{}");
	size_t next = 0;

	assert_non_null(sink);
	put(sink, (struct stream_event){.type = STREAM_CLOCK, .clock = {UTC, UTC}});
	for (int i = 0; i < ranks; i++) {
		int rank = first_rank + i;
		struct vapro_thread thread = {
		    .id = (uint32_t)i, .rank = rank, .world_size = RANKS, .job = "slurm:9", .host = host_of(rank)};

		put(sink, (struct stream_event){.type = STREAM_THREAD, .thread = thread});
		put(sink, (struct stream_event){.type = STREAM_SEEN, .seen = {(uint32_t)i, UTC, UTC + 20 * S}});
	}
	put(sink,
	    (struct stream_event){
		.type = STREAM_STATE,
		.state = {.class = VAPRO_COMPUTATION, .from = "a@1+0x1", .to = "a@1+0x2", .labels = "", .common = ""}});
	put(sink, (struct stream_event){.type = STREAM_STATE,
					.state = {.id = 1,
						  .class = VAPRO_COMMUNICATION,
						  .to = "a@1+0x2",
						  .labels = "function=MPI_Allreduce",
						  .common = "function=MPI_Allreduce"}});
	for (uint64_t end = 15; end <= 25; end += 10) {
		for (; next < count && pieces[next].start_ns + pieces[next].duration_ns < UTC + end * S; next++) {
			const struct piece *piece = &pieces[next];
			struct vapro_bundle bundle = {
			    .thread = (uint32_t)(piece->rank - first_rank),
			    .state = piece->call,
			    .n = 1,
			    .start_ns = piece->start_ns,
			    .end_ns = piece->start_ns + piece->duration_ns,
			    .sum_ns = piece->duration_ns,
			    .min_ns = piece->duration_ns,
			    .max_ns = piece->duration_ns,
			};

			if (piece->rank < first_rank || piece->rank >= first_rank + ranks)
				continue;
			bundle.magnitude_min[VAPRO_INSTRUCTIONS] = piece->instructions;
			bundle.magnitude_min[VAPRO_BYTES] = piece->call ? 8 : 0;
			bundle.magnitude_min[VAPRO_NAMED] = piece->flops;
			bundle.magnitude_min[VAPRO_NAMED + 1] = piece->loads;
			memcpy(bundle.magnitude_max, bundle.magnitude_min, sizeof(bundle.magnitude_max));
			put(sink, (struct stream_event){.type = STREAM_BUNDLE, .bundle = bundle});
		}
		put(sink,
		    (struct stream_event){.type = STREAM_WINDOW,
					  .window = {UTC + (end == 15 ? 0 : 15) * S, UTC + end * S, end == 25, 0.5}});
	}
	put(sink, (struct stream_event){.type = STREAM_END});
	assert_int_equal(stream__close(sink), 0);
}

static char *run_captures(const char *const *files, size_t count)
{
	struct line_sink *lines = line_sink__open(out_path, false);
	struct stream_sink *pipeline = pipeline__new(&config, VAPRO_BY_INSTRUCTIONS, NULL, lines, NULL);
	struct vapro_score score;

	assert_int_equal(capture__replay(files, count, pipeline, err, sizeof(err)), 0);
	assert_int_equal(pipeline__score(pipeline, &score), -ENODATA); /* captures know no truth */
	stream__close(pipeline);
	assert_int_equal(line_sink__close(lines), 0);
	return contents();
}

/* A merge of hosts has no clock but UTC: that pair alone may differ. */
static char *without_clocks(char *text)
{
	for (char *at = text; (at = strstr(at, ",\"clock\":{"));) {
		char *end = strchr(at, '}');

		memmove(at, end + 1, strlen(end));
	}
	return text;
}

static int compare_pieces(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;
	uint64_t left = x->start_ns + x->duration_ns, right = y->start_ns + y->duration_ns;

	return left != right ? (left > right) - (left < right) : x->rank - y->rank;
}

static void test_hosts_as_captures(void **state)
{
	static struct piece pieces[STEPS * RANKS * 2];
	size_t count = make(pieces);
	const char *const whole[] = {paths[0]}, *const hosts[] = {paths[1], paths[2]};
	char *one, *two;

	(void)state;
	qsort(pieces, count, sizeof(*pieces), compare_pieces);
	write_capture(paths[0], pieces, count, 0, RANKS);
	write_capture(paths[1], pieces, count, 0, RANKS / 2);
	write_capture(paths[2], pieces, count, RANKS / 2, RANKS / 2);
	one = without_clocks(run_captures(whole, 1));
	two = without_clocks(run_captures(hosts, 2));
	assert_non_null(strstr(one, "\"clusters\":{\"states\":1,\"clusters\":3,\"rare\":1,\"exact\":true"));
	assert_non_null(strstr(one, "\"type\":\"variance\""));
	assert_string_equal(one, two);
	free(one);
	free(two);
}

/* ---- windows */

static struct analysis *analysis_of(int ranks)
{
	struct analysis *analysis;
	struct vapro_state edge = {.class = VAPRO_COMPUTATION, .from = "a@1+1", .to = "a@1+2", .labels = ""};

	sim_config(&config);
	config.reference = VAPRO_REFERENCE_FASTEST;
	analysis = analysis__new(&config, VAPRO_BY_INSTRUCTIONS);
	for (int i = 0; i < ranks; i++) {
		struct vapro_thread thread = {.id = (uint32_t)i, .rank = i, .job = "j", .host = "n"};

		assert_int_equal(analysis__add_thread(analysis, &thread), 0);
	}
	assert_int_equal(analysis__add_state(analysis, &edge), 0);
	return analysis;
}

static int add(struct analysis *analysis, uint32_t rank, uint64_t start_ms, uint64_t ms, double instructions,
	       double loads)
{
	struct vapro_bundle bundle = {
	    .thread = rank,
	    .n = 1,
	    .start_ns = UTC + start_ms * MS,
	    .end_ns = UTC + (start_ms + ms) * MS,
	    .sum_ns = ms * MS,
	    .min_ns = ms * MS,
	    .max_ns = ms * MS,
	};

	bundle.magnitude_min[VAPRO_INSTRUCTIONS] = bundle.magnitude_max[VAPRO_INSTRUCTIONS] = instructions;
	bundle.magnitude_min[VAPRO_NAMED] = bundle.magnitude_max[VAPRO_NAMED] = loads;
	return analysis__add_bundle(analysis, &bundle);
}

static const struct job_result *window(struct analysis *analysis, uint64_t begin_s, uint64_t end_s)
{
	const struct job_result *results;
	uint32_t count;

	assert_int_equal(analysis__end_window(analysis, UTC + begin_s * S, UTC + end_s * S, false, &results, &count),
			 0);
	assert_int_equal(count, 1);
	return results;
}

/* A faster member that shows up later lowers what was told of the time that is still in view. */
static void test_better_minimum(void **state)
{
	struct analysis *analysis = analysis_of(2);
	const struct job_result *result;

	(void)state;
	for (uint64_t at = 0; at < 15000; at += 100)
		assert_int_equal(add(analysis, 0, at, 100, 1e6, 0), 0);
	result = window(analysis, 0, 15);
	assert_int_equal(result->heatmap_count, 1);
	assert_true(result->heatmaps[0].rows[0].values[60] == 1);
	/* another rank does the same in 50 ms, once */
	for (uint64_t at = 15000; at < 25000; at += 100) {
		assert_int_equal(add(analysis, 0, at, 100, 1e6, 0), 0);
		assert_int_equal(add(analysis, 1, at, at == 20000 ? 50 : 100, 1e6, 0), 0);
	}
	result = window(analysis, 15, 25);
	assert_int_equal(result->heatmap_count, 2);
	assert_int_equal(result->heatmaps[0].begin_ns, UTC + 10 * S);
	assert_int_equal(result->heatmaps[0].bins, 25);
	assert_true(result->heatmaps[0].revision > 0);
	assert_true(fabs(result->heatmaps[0].rows[0].values[0] - 0.5) < 1e-6);
	assert_true(fabs(result->heatmaps[0].rows[0].values[24] - 0.5) < 1e-6);
	assert_int_equal(result->heatmaps[1].begin_ns, UTC + 15 * S);
	assert_true(fabs(result->heatmaps[1].rows[0].values[0] - 0.5) < 1e-6);
	/* nothing new: nothing is told again */
	for (uint64_t at = 25000; at < 35000; at += 100)
		assert_int_equal(add(analysis, 0, at, 100, 1e6, 0), 0);
	result = window(analysis, 25, 35);
	assert_int_equal(result->heatmap_count, 1);
	analysis__free(analysis);
}

/* Of what was told only the bins that are otherwise now are told again. */
static void test_only_what_changed(void **state)
{
	struct analysis *analysis = analysis_of(2);
	const struct job_result *result;

	(void)state;
	for (uint64_t at = 0; at < 15000; at += 100)
		assert_int_equal(add(analysis, 0, at, 100, at >= 12000 && at < 13000 ? 3e6 : 1e6, 0), 0);
	window(analysis, 0, 15);
	/* another rank does in 50 ms what was done between 12 and 13 s */
	for (uint64_t at = 15000; at < 25000; at += 100) {
		assert_int_equal(add(analysis, 0, at, 100, 1e6, 0), 0);
		assert_int_equal(add(analysis, 1, at, at == 20000 ? 50 : 100, at == 20000 ? 3e6 : 1e6, 0), 0);
	}
	result = window(analysis, 15, 25);
	assert_int_equal(result->heatmap_count, 2);
	assert_int_equal(result->heatmaps[0].begin_ns, UTC + 12 * S);
	assert_int_equal(result->heatmaps[0].bins, 5);
	assert_int_equal(result->heatmaps[0].revision, 1);
	assert_int_equal(result->heatmaps[0].row_count, 1);
	assert_true(fabs(result->heatmaps[0].rows[0].values[4] - 0.5) < 1e-6);
	assert_int_equal(result->heatmaps[1].row_count, 2);
	analysis__free(analysis);
}

static const struct result_uncovered *uncovered(const struct job_result *result, enum vapro_uncovered_reason reason)
{
	for (uint32_t i = 0; i < result->uncovered_count; i++) {
		if (result->uncovered[i].reason == reason)
			return &result->uncovered[i];
	}
	return NULL;
}

static void test_rare(void **state)
{
	struct analysis *analysis = analysis_of(3);
	const struct job_result *result;
	uint32_t id;

	(void)state;
	for (uint64_t at = 0; at < 15000; at += 100)
		assert_int_equal(add(analysis, 0, at, 100, 1e6, 0), 0);
	/* equal norms, other vectors: one rank's 0.4 s, another's 0.3 s and 1 s, too short ones, none measured */
	assert_int_equal(add(analysis, 1, 1000, 400, 3e6, 4e6), 0);
	assert_int_equal(add(analysis, 2, 1000, 300, 4e6, 3e6), 0);
	assert_int_equal(add(analysis, 2, 3000, 1000, 4.01e6, 3e6), 0);
	assert_int_equal(add(analysis, 2, 5000, 50, 9e6, 0), 0);
	assert_int_equal(add(analysis, 2, 6000, 3000, 0, 0), 0);
	result = window(analysis, 0, 15);
	assert_int_equal(result->rare_count, 2);
	assert_true(result->rares[0].rank == 2 && result->rares[0].members == 2);
	assert_true(fabs(result->rares[0].seconds - 1.3) < 1e-9 && result->rares[0].norm == 5e6);
	assert_true(result->rares[1].rank == 1 && result->rares[1].members == 1);
	assert_true(result->rares[1].norm == 5e6 && result->rares[1].cluster != result->rares[0].cluster);
	/* a state tells its greatest reason, for all of its uncovered time */
	assert_true(fabs(uncovered(result, VAPRO_NO_WORKLOAD)->share - 4.75 / 43) < 0.01);
	assert_int_equal(result->clusters.states, 1);
	assert_int_equal(result->clusters.clusters, 4);
	assert_int_equal(result->clusters.rare, 3);
	assert_int_equal(result->clusters.approximate, 0);
	id = result->rares[0].cluster;
	/* the next window: only who meets it again is told, under the same number */
	assert_int_equal(add(analysis, 1, 16000, 500, 4e6, 3e6), 0);
	assert_int_equal(add(analysis, 2, 16000, 200, 4e6, 3e6), 0);
	assert_int_equal(add(analysis, 0, 16000, 200, 2e6, 0), 0); /* a smaller seed before them */
	result = window(analysis, 15, 25);
	assert_int_equal(result->rare_count, 2);
	assert_true(result->rares[0].cluster == id && result->rares[0].members == 4 && result->rares[0].rank == 1);
	assert_true(result->rares[1].rank == 0 && result->rares[1].norm == 2e6);
	/* the fifth makes it known */
	assert_int_equal(add(analysis, 2, 26000, 200, 4e6, 3e6), 0);
	result = window(analysis, 25, 35);
	assert_int_equal(result->rare_count, 0);
	assert_int_equal(result->clusters.rare, 3);
	analysis__free(analysis);
}

static void test_odd_input(void **state)
{
	static const double bad[] = {-1, NAN, INFINITY, 1e151};
	struct analysis *analysis = analysis_of(1);
	const struct job_result *result;
	struct vapro_score score;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(add(analysis, 0, 0, 100, bad[i], 0), -EINVAL);
	/* one fragment; and the largest there may be */
	assert_int_equal(add(analysis, 0, 0, 200, 1e150, 1e150), 0);
	result = window(analysis, 0, 15);
	assert_int_equal(result->rare_count, 1);
	assert_true(isfinite(result->rares[0].norm));
	/* all zeros: measured by nobody */
	for (uint64_t at = 15000; at < 25000; at += 100)
		assert_int_equal(add(analysis, 0, at, 100, 0, 0), 0);
	result = window(analysis, 15, 25);
	assert_int_equal(result->rare_count, 0);
	assert_true(result->coverage_total == 0 && uncovered(result, VAPRO_NO_WORKLOAD));
	assert_int_equal(analysis__score(analysis, &score), -ENODATA);
	analysis__free(analysis);
}

/* A truth counts within its state; what was not measured is one cluster; without instructions sizes count. */
static void test_score(void **state)
{
	static const char *const lines[] = {
	    /* 4 fragments in 2 clusters, one true class of each torn: h = c = 1 - H(1/2)/ln 2 ... by hand below */
	    "\"from\":\"a@1+1\",\"to\":\"a@1+2\",\"truth\":\"x\",\"workload\":{\"instructions\":1000000}",
	    "\"from\":\"a@1+1\",\"to\":\"a@1+2\",\"truth\":\"x\",\"workload\":{\"instructions\":1010000}",
	    "\"from\":\"a@1+1\",\"to\":\"a@1+2\",\"truth\":\"y\",\"workload\":{\"instructions\":1020000}",
	    "\"from\":\"a@1+1\",\"to\":\"a@1+2\",\"truth\":\"y\",\"workload\":{\"instructions\":5000000}",
	    /* the same names at another state are other classes */
	    "\"from\":\"a@1+2\",\"to\":\"a@1+1\",\"truth\":\"x\",\"workload\":{\"instructions\":1000000}",
	    "\"from\":\"a@1+2\",\"to\":\"a@1+1\",\"truth\":7,\"workload\":{}",
	};
	const char *const files[] = {paths[0]};
	struct vapro_score score;
	FILE *file = fopen(paths[0], "w");
	double mixed, torn, h_truth, h_cluster;

	(void)state;
	for (int i = 0; i < 6; i++)
		fprintf(file, "{\"rank\":0,\"class\":\"computation\",\"start_ns\":%d,\"duration_ns\":1000,%s}\n",
			i * 2000, lines[i]);
	fclose(file);
	free(run_ndjson(files, 1, &score));
	assert_true(score.fragments == 6 && score.unclustered == 1 && score.truths == 4 && score.clusters == 4);
	/* truths 2 2 1 1, clusters 3 1 1 1; the cluster of 3 holds 2 and 1; the truth y is torn 1 and 1 */
	h_truth = 2 * (2 / 6.0) * log(3) + 2 * (1 / 6.0) * log(6);
	h_cluster = 0.5 * log(2) + 3 * (1 / 6.0) * log(6);
	mixed = 0.5 * (log(3) - 2 / 3.0 * log(2));
	torn = 2 / 6.0 * log(2);
	assert_true(fabs(score.homogeneity - (1 - mixed / h_truth)) < 1e-12);
	assert_true(fabs(score.completeness - (1 - torn / h_cluster)) < 1e-12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_hosts_as_files), cmocka_unit_test(test_hosts_as_captures),
	    cmocka_unit_test(test_better_minimum), cmocka_unit_test(test_only_what_changed),
	    cmocka_unit_test(test_rare),	   cmocka_unit_test(test_odd_input),
	    cmocka_unit_test(test_score),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
