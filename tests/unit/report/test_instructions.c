/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fragments with instructions, from NDJSON and captures through the whole analysis to lines: several
 * hosts are one run, and the order of lines does not matter.
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

#include "capture/capture.h"
#include "written_records.h"
#include "pipeline/pipeline.h"
#include "pipeline/line_sink.h"
#include "sim.h"
#include "capture/ndjson.h"

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
	fprintf(file, "\"class\":\"computation\",\"from\":\"a@1+0x1\",\"to\":\"a@1+0x2\",\"workload\":{");
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
	written_records__all(text);
	return text;
}

/* Returns all lines of the run in the files. */
static char *run_ndjson(const char *const *files, size_t count)
{
	struct line_sink *lines = line_sink__open(out_path, false);
	struct pipeline *pipeline;
	struct ndjson *ndjson;
	uint64_t bad;

	ndjson = ndjson__read(files, count, true, &bad, err, sizeof(err));
	assert_non_null(ndjson);
	assert_true(ndjson__by_instructions(ndjson));
	pipeline = pipeline__new(&config, VAPRO_BY_INSTRUCTIONS, NULL, lines, NULL);
	assert_int_equal(ndjson__feed(ndjson, config.window_s, pipeline__sink(pipeline), err, sizeof(err)), 0);
	pipeline__close(pipeline);
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
	FILE *files[3];
	char *one, *two;
	uint64_t random = 12;

	(void)state;
	config.min_lost_s = 0.02; /* the rare work is short */
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

	one = run_ndjson(whole, 1);
	/* the slow ranks, the rare work, the certificate */
	assert_non_null(strstr(one, "\"type\":\"variance\""));
	assert_non_null(strstr(one, "\"ranks\":\"2\""));
	assert_non_null(strstr(one, "\"rank\":1,\"fragments\":1,"));
	assert_non_null(strstr(one, "\"clusters\":{\"states\":1,\"clusters\":3,\"rare\":1,\"approximate\":0"));
	two = run_ndjson(hosts, 2);
	assert_string_equal(one, two);
	free(two);
	two = run_ndjson(turned, 2);
	assert_string_equal(one, two);
	free(two);
	two = run_ndjson(shuffled, 1);
	assert_string_equal(one, two);
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
	struct pipeline *pipeline = pipeline__new(&config, VAPRO_BY_INSTRUCTIONS, NULL, lines, NULL);

	assert_int_equal(capture__replay(files, count, pipeline__sink(pipeline), err, sizeof(err)), 0);
	pipeline__close(pipeline);
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
	assert_non_null(strstr(one, "\"clusters\":{\"states\":1,\"clusters\":3,\"rare\":1,\"approximate\":0"));
	assert_non_null(strstr(one, "\"type\":\"variance\""));
	assert_string_equal(one, two);
	free(one);
	free(two);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_hosts_as_files),
	    cmocka_unit_test(test_hosts_as_captures),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
