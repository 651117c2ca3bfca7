/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A job of 4,096 ranks in which one program is the cause on 64 hosts: the first lines of every text, and the map, say
 * so. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "parsed.h"
#include "pipeline/pipeline.h"
#include "report/summary.h"
#include "report/view.h"

#define S 1000000000ULL
#define UTC 1800000000000000000ULL

/* A job of 4,096 ranks on 64 hosts: on each of them a program takes half of one rank's CPU twice for a second. */
#define RANKS 4096
#define PER_HOST 64
#define SECONDS 30
#define BIN_S 0.2

static bool disturbed(uint32_t rank, uint64_t bin)
{
	uint64_t host = rank / PER_HOST;

	return (rank % PER_HOST == host && bin / 5 == 6 + host % 4) ||
	       (rank % PER_HOST == (host + 20) % PER_HOST && bin / 5 == 15 + host % 3);
}

static void put(struct stream_sink *sink, const struct stream_event *event)
{
	assert_int_equal(stream__put(sink, event), 0);
}

static void put_bin(struct stream_sink *sink, uint32_t rank, uint64_t bin, uint64_t *calls)
{
	bool disturbs = disturbed(rank, bin);
	uint32_t n = disturbs ? 10 : 20;
	double each[] = {8e6, 1.5e6};

	for (uint32_t of = 0; of < 2; of++) {
		struct stream_event event = {.type = STREAM_BUNDLE};
		struct vapro_bundle *bundle = &event.bundle;
		double ns = each[of] * (of || !disturbs ? 1 : 2);

		*bundle = (struct vapro_bundle){.thread = rank,
						.state = of,
						.n = n,
						.start_ns = bin * VAPRO_BIN_NS,
						.end_ns = bin * VAPRO_BIN_NS + 196000000,
						.sum_ns = (uint64_t)(ns * n),
						.min_ns = (uint64_t)(ns * 0.99),
						.max_ns = (uint64_t)(ns * 1.01),
						.first_call = *calls,
						.last_call = *calls + n - 1};
		if (of)
			bundle->magnitude_min[VAPRO_BYTES] = bundle->magnitude_max[VAPRO_BYTES] = 64;
		else
			bundle->magnitude_min[VAPRO_INSTRUCTIONS] = bundle->magnitude_max[VAPRO_INSTRUCTIONS] = 16e6;
		if (!of && disturbs)
			bundle->factor[VAPRO_PREEMPTED] = each[0] * n;
		*calls += n;
		put(sink, &event);
	}
	if (disturbs)
		put(sink, &(struct stream_event){.type = STREAM_INTERFERENCE,
						 .interference = {.thread = rank,
								  .pid = 4000 + rank / PER_HOST,
								  .bin = UTC / VAPRO_BIN_NS + bin,
								  .preempted_ns = VAPRO_BIN_NS / 2,
								  .comm = "hog"}});
}

static void put_ranks(struct stream_sink *sink)
{
	for (uint32_t rank = 0; rank < RANKS; rank++) {
		struct stream_event event = {.type = STREAM_THREAD};
		char host[32];

		snprintf(host, sizeof(host), "node%02u", rank / PER_HOST);
		event.thread = (struct vapro_thread){.id = rank,
						     .rank = (int32_t)rank,
						     .world_size = RANKS,
						     .pid = 10000 + rank,
						     .tid = 10000 + rank,
						     .job = "slurm:77",
						     .host = host};
		put(sink, &event);
		put(sink, &(struct stream_event){.type = STREAM_SEEN, .seen = {rank, 0, 0}});
		put(sink, &(struct stream_event){.type = STREAM_PLACE,
						 .place = {.thread = rank, .cpu = (int32_t)(rank % PER_HOST)}});
	}
}

static void put_states(struct stream_sink *sink)
{
	put(sink, &(struct stream_event){.type = STREAM_STATE,
					 .state = {.class = VAPRO_COMPUTATION,
						   .from = "a@0123456789ab+0x10",
						   .to = "a@0123456789ab+0x10",
						   .labels = "",
						   .common = "",
						   .from_symbol = "solve",
						   .to_symbol = "solve"}});
	put(sink, &(struct stream_event){.type = STREAM_STATE,
					 .state = {.id = 1,
						   .class = VAPRO_COMMUNICATION,
						   .to = "a@0123456789ab+0x10",
						   .labels = "bytes=64 comm=0 function=MPI_Allreduce",
						   .common = "bytes=64 function=MPI_Allreduce"}});
}

static void run_job(const char *path, struct summary *summary)
{
	struct line_sink *lines = line_sink__open(path, false);
	struct pipeline *pipeline;
	struct stream_sink *sink;
	struct vapro_config config;
	static uint64_t calls[RANKS];
	uint64_t begin = 0;

	config__init(&config);
	config.memory_cap *= 64;
	pipeline = pipeline__new(&config, VAPRO_BY_INSTRUCTIONS, "node00", lines, summary);
	assert_non_null(pipeline);
	sink = pipeline__sink(pipeline);
	put(sink, &(struct stream_event){.type = STREAM_CLOCK, .clock = {0, UTC}});
	put(sink, &(struct stream_event){
		      .type = STREAM_LINE,
		      .line = stream__line("{\"schema\":\"vapro/1\",\"type\":\"process\",\"time\":\"2027-01-15T08:"
					   "00:00Z\",\"host\":\"node00\",\"exe\":\"/opt/solver\",\"job\":{"
					   "\"identity\":\"slurm:77\"},\"state\":\"attached\"}")});
	put_ranks(sink);
	put_states(sink);
	for (uint64_t bin = 0; bin < SECONDS * 5; bin++) {
		bool last = bin + 1 == SECONDS * 5;

		for (uint32_t rank = 0; rank < RANKS; rank++)
			put_bin(sink, rank, bin, &calls[rank]);
		if (bin != 74 && !last)
			continue;
		for (uint32_t rank = 0; last && rank < RANKS; rank++)
			put(sink,
			    &(struct stream_event){.type = STREAM_SEEN, .seen = {rank, 0, (bin + 1) * VAPRO_BIN_NS}});
		put(sink, &(struct stream_event){.type = STREAM_WINDOW,
						 .window = {UTC + begin, UTC + (bin + 1) * VAPRO_BIN_NS, last, 0.1}});
		begin = (bin + 1) * VAPRO_BIN_NS;
	}
	pipeline__close(pipeline);
	assert_int_equal(line_sink__close(lines), 0);
}

/* Cuts a text after its first lines, and joins those with blanks. */
static char *first_lines(char *text, unsigned lines)
{
	for (char *at = text; *at; at++) {
		if (*at != '\n')
			continue;
		*at = ' ';
		if (!--lines)
			at[1] = '\0';
	}
	return text;
}

static void says(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' is not in: %s", part, text);
}

/* Checks the roll-up against its variances: nothing is lost or counted twice. */
static void check_cause(const char *path)
{
	FILE *file = fopen(path, "r");
	double lost[4096] = {0}, sum = 0, rolled = 0;
	uint64_t causes = 0;
	char *text = NULL;
	size_t size = 0;

	assert_non_null(file);
	while (getline(&text, &size, file) > 0) {
		cJSON *object = cJSON_Parse(text);
		const char *type = cJSON_GetStringValue(at(object, "type"));

		if (!strcmp(type, "variance") && cJSON_IsNull(at(object, "effect_of")) &&
		    cJSON_GetNumberValue(at(object, "id")) < 4096)
			lost[(size_t)cJSON_GetNumberValue(at(object, "id"))] =
			    cJSON_GetNumberValue(at(object, "lost_seconds"));
		if (!strcmp(type, "cause") && cJSON_IsTrue(at(object, "final"))) {
			causes++;
			is_text(object, "culprit/comm", "hog");
			is_null(object, "culprit/pid");
			is_number(object, "host_count", 64);
			is_text(object, "hosts/63", "node63");
			assert_true(cJSON_IsTrue(at(object, "alarm")));
			rolled = cJSON_GetNumberValue(at(object, "lost_seconds"));
		}
		cJSON_Delete(object);
	}
	for (size_t i = 0; i < 4096; i++)
		sum += lost[i];
	assert_int_equal(causes, 1);
	assert_true(fabs(sum - rolled) < 1e-3);
	assert_true(sum > 10);
	free(text);
	fclose(file);
}

/* Counts the cells of a map below the threshold. */
static unsigned count_marks(const char *text)
{
	const char *map = strstr(text, "computation, job"), *end = strstr(text, "% of best speed");
	unsigned marks = 0;

	assert_true(map && end && map < end);
	for (map = strchr(map, '\n'); map < end; map++)
		marks += strchr("=*#%@", *map) != NULL && map[1] != '-';
	return marks;
}

static void test_first_lines(void **state)
{
	static const char wanted[] = "warning: hog preempted 128 ranks on 64 hosts, from 6.0 to 18.0 s: ";
	struct view_options options = {.color = VIEW_COLOR_NEVER, .width = 80};
	struct summary *summary = summary__new();
	char path[64], err[256], *text = NULL;
	size_t size;
	FILE *out;

	(void)state;
	snprintf(path, sizeof(path), "/tmp/vapro-test-causes-%d", getpid());
	run_job(path, summary);
	check_cause(path);
	out = open_memstream(&text, &size);
	summary__print(summary, out, &(struct summary_options){.width = 80});
	fclose(out);
	first_lines(text, 24);
	says(text, wanted);
	says(text, "solver (slurm 77): 4096 ranks on 64 hosts, watched for 30.0 s");
	says(text, "128 slow regions: ");
	says(text, " 1. ");
	free(text);
	text = NULL;
	out = tmpfile(); /* a file: fileno() needs one */
	assert_int_equal(view__file(path, &options, out, NULL, err, sizeof(err)), 0);
	size = (size_t)ftell(out);
	rewind(out);
	text = calloc(1, size + 1);
	assert_int_equal(fread(text, 1, size, out), size);
	fclose(out);
	/* of the regions of one cause the worst is printed: the cause sums them up */
	says(text, " 1. ");
	assert_null(strstr(text, " 2. "));
	says(text, "and 127 more");
	/* on each host some rank is slow at some time, and the picture is not full of it */
	says(text, "each cell shows the mean of");
	assert_true(count_marks(text) < 200);
	says(text, "The map of waiting is hidden");
	assert_null(strstr(text, "waiting in communication,"));
	first_lines(text, 24);
	says(text, wanted);
	says(text, "solver (slurm 77): 4096 ranks on 64 hosts, watched for 30.0 s");
	says(text, "  judged  ");
	says(text, "  overhead  ");
	free(text);
	summary__free(summary);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_first_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
