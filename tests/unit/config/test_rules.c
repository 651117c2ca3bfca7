/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The user's rules on workload: events in the vector, opposites, bands; and all rules through the pipeline. */
#include <errno.h>
#include <inttypes.h>
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
#include "config/config_json.h"
#include "model/bands.h"
#include "pipeline/pipeline.h"
#include "sim.h"
#include "capture/ndjson.h"

static struct rules rules;
static char err[256];

static int parse(const char *workload, const char *bands)
{
	return rules__parse(&rules, workload, bands, err, sizeof(err));
}

static struct vapro_bundle counted(double instructions, double first, double second)
{
	struct vapro_bundle bundle = {.n = 1};

	bundle.magnitude_min[VAPRO_INSTRUCTIONS] = bundle.magnitude_max[VAPRO_INSTRUCTIONS] = instructions;
	bundle.magnitude_min[VAPRO_NAMED] = bundle.magnitude_max[VAPRO_NAMED] = first;
	bundle.magnitude_min[VAPRO_NAMED + 1] = bundle.magnitude_max[VAPRO_NAMED + 1] = second;
	return bundle;
}

static void test_events(void **state)
{
	(void)state;
	assert_int_equal(parse("instructions", ""), 0);
	assert_true(rules.event_count == 0 && rules.band_count == 0);
	assert_int_equal(parse("instructions, loads 1/cache-hits", "misses/loads:0.5;cache-hits / refs: 0.1, 2"), 0);
	assert_int_equal(rules.event_count, 4);
	assert_string_equal(rules.events[0].name, "loads");
	assert_true(!rules.events[0].inverse && !rules.events[0].apart);
	assert_string_equal(rules.events[1].name, "cache-hits");
	assert_true(rules.events[1].inverse && !rules.events[1].apart);
	assert_string_equal(rules.events[2].name, "misses");
	assert_true(!rules.events[2].inverse && rules.events[2].apart);
	assert_string_equal(rules.events[3].name, "refs");
	/* sorted, as labels are */
	assert_int_equal(rules.band_count, 2);
	assert_string_equal(rules.bands[0].name[0], "cache-hits");
	assert_true(rules.bands[0].count == 2 && rules.bands[0].border[1] == 2);
	assert_string_equal(rules.bands[1].name[1], "loads");
}

static void test_refusals(void **state)
{
	static const struct {
		const char *workload, *bands, *words;
	} bad[] = {
	    {"1/instructions", "", "not better"},
	    {"a/b", "", "no name"},
	    {"1/", "", "no name"},
	    {"", "misses", "no rule"},
	    {"", "misses/loads", "no rule"},
	    {"", "misses:0.1", "no rule"},
	    {"", "misses/loads:", "no borders"},
	    {"", "misses/loads:0.1,x", "no number"},
	    {"", "misses/loads:-1", "no number"},
	    {"", "misses/loads:nan", "no number"},
	    {"", "misses/loads:0.2,0.1", "ascend"},
	    {"", "misses/loads:0.1,0.1", "ascend"},
	    {"", "/loads:0.1", "no name"},
	    {"", "a b/loads:0.1", "no name"},
	    {"", "a/b:1;a/b:2", "twice"},
	    {"", "a/b:1;b/c:1;c/d:1;d/e:1;e/f:1", "no more than 4"},
	    {"", "a/b:1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16", "no more than 15"},
	    {"a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q", "", "no more than 16"},
	};
	struct vapro_config config;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(parse(bad[i].workload, bad[i].bands), -EINVAL);
		assert_non_null(strstr(err, bad[i].words));
	}
	/* errors show at once, where the tunable is set */
	config__init(&config);
	assert_int_equal(config__set(&config, "bands", "misses/loads:0.2,0.1", err, sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, "--bands: 0.1: borders must ascend"));
	assert_int_equal(config__set(&config, "workload", "1/instructions", err, sizeof(err)), -EINVAL);
	assert_string_equal(config.workload, "instructions");
	assert_int_equal(config__set(&config, "bands", "misses/loads:0.1", err, sizeof(err)), 0);
	assert_int_equal(config__set(&config, "bands", "", err, sizeof(err)), 0);
	assert_string_equal(config.bands, "");
}

static void check_band(struct vapro_bundle bundle, const char *labels, bool uncertain)
{
	char text[256];
	bool approx = false;

	rules__labels(&rules, rules__band(&rules, &bundle, &approx), text, sizeof(text));
	assert_string_equal(text, labels);
	assert_true(approx == uncertain);
}

static void test_bands(void **state)
{
	static const char *const both[] = {"misses", "loads"}, *const turned[] = {"loads", "misses"};
	struct vapro_bundle merged = counted(1000, 95, 0);

	(void)state;
	assert_int_equal(parse("instructions", "misses/instructions:0.01,0.1"), 0);
	/* no events are counted: no rule acts */
	assert_false(rules__split(&rules));
	check_band(counted(1000, 50, 0), "", false);
	rules__finalize(&rules, both);
	assert_true(rules__split(&rules));
	check_band(counted(1000, 0, 0), "misses/instructions=..0.01", false);
	check_band(counted(1000, 9, 0), "misses/instructions=..0.01", false);
	check_band(counted(1000, 10, 0), "misses/instructions=0.01..0.1", false); /* border: the next band */
	check_band(counted(1000, 99, 0), "misses/instructions=0.01..0.1", false);
	check_band(counted(1000, 5000, 0), "misses/instructions=0.1..", false);
	check_band(counted(0, 50, 0), "", false); /* not measured */
	merged.n = 2;
	merged.magnitude_max[VAPRO_NAMED] = 98;
	check_band(merged, "misses/instructions=0.01..0.1", false);
	merged.magnitude_max[VAPRO_NAMED] = 101;
	check_band(merged, "misses/instructions=0.01..0.1", true);
	merged.magnitude_max[VAPRO_NAMED] = 107;
	check_band(merged, "misses/instructions=0.1..", true);
	/* two ratios, in any slots */
	assert_int_equal(parse("", "misses/loads:0.5;loads/instructions:0.2,0.4,0.6"), 0);
	rules__finalize(&rules, turned);
	check_band(counted(1000, 300, 100), "loads/instructions=0.2..0.4 misses/loads=..0.5", false);
	check_band(counted(1000, 700, 600), "loads/instructions=0.6.. misses/loads=0.5..", false);
	check_band(counted(1000, 0, 600), "", false);
	/* one ratio is not counted */
	rules__finalize(&rules, (const char *const[]){"loads", NULL});
	check_band(counted(1000, 300, 0), "loads/instructions=0.2..0.4", false);
}

static void test_vector(void **state)
{
	static const char *const named[] = {"hits", "misses"};
	struct vapro_bundle bundle = counted(1000, 500, 20), call = {.n = 1};

	(void)state;
	assert_int_equal(parse("instructions,1/hits", "misses/instructions:0.01"), 0);
	rules__finalize(&rules, named);
	bundle.magnitude_max[VAPRO_NAMED] = 1000;
	rules__apply(&rules, &bundle);
	assert_true(bundle.magnitude_min[VAPRO_INSTRUCTIONS] == 1000);
	/* the most hits are the least of the opposite */
	assert_true(bundle.magnitude_min[VAPRO_NAMED] == RULES_INVERSE / 1000);
	assert_true(bundle.magnitude_max[VAPRO_NAMED] == RULES_INVERSE / 500);
	/* an event for bands alone is no part of the vector */
	assert_true(bundle.magnitude_min[VAPRO_NAMED + 1] == 0 && bundle.magnitude_max[VAPRO_NAMED + 1] == 0);
	/* no hit is worse than one */
	bundle = counted(1000, 0, 0);
	rules__apply(&rules, &bundle);
	assert_true(bundle.magnitude_max[VAPRO_NAMED] == 2 * RULES_INVERSE);
	/* calls and unmeasured bundles stay unchanged */
	call.magnitude_min[VAPRO_BYTES] = call.magnitude_max[VAPRO_BYTES] = 8;
	bundle = call;
	rules__apply(&rules, &bundle);
	assert_memory_equal(&bundle, &call, sizeof(call));
}

static void test_states(void **state)
{
	static const char *const named[] = {"misses", NULL};
	struct vapro_state edge = {.class = VAPRO_COMPUTATION,
				   .from = "a@1+1",
				   .to = "a@1+2",
				   .labels = "after=f zone=1"},
			   call = {.id = 1, .class = VAPRO_COMMUNICATION, .to = "a@1+2", .labels = "function=f"}, fresh;
	struct vapro_bundle low = counted(1000, 1, 0), high = counted(1000, 100, 0), other = {.n = 1, .state = 1};
	struct bands *bands;

	(void)state;
	assert_int_equal(parse("instructions", "misses/instructions:0.01"), 0);
	rules__finalize(&rules, named);
	bands = bands__new(&rules);
	assert_int_equal(bands__add_state(bands, &call), -EINVAL); /* not the next id */
	assert_int_equal(bands__add_state(bands, &edge), 0);
	assert_int_equal(bands__add_state(bands, &call), 0);
	assert_int_equal(bands__add_state(bands, &edge), 0); /* known */
	assert_int_equal(bands__place(bands, &high, &fresh), 1);
	assert_true(high.state == 0 && fresh.id == 0);
	assert_string_equal(fresh.labels, "after=f misses/instructions=0.01.. zone=1");
	assert_string_equal(fresh.common, fresh.labels);
	assert_string_equal(fresh.from, "a@1+1");
	assert_int_equal(bands__place(bands, &other, &fresh), 1);
	assert_true(other.state == 1 && fresh.id == 1);
	assert_string_equal(fresh.labels, "function=f");
	assert_int_equal(bands__place(bands, &low, &fresh), 1);
	assert_true(low.state == 2 && fresh.id == 2);
	assert_string_equal(fresh.labels, "after=f misses/instructions=..0.01 zone=1");
	high = counted(1000, 200, 0);
	assert_int_equal(bands__place(bands, &high, &fresh), 0);
	assert_int_equal(high.state, 0);
	other.state = 2;
	assert_int_equal(bands__place(bands, &other, &fresh), -EINVAL);
	bands__free(bands);
}

/*
 * Runs one piece of work; every third fragment misses the cache ten times as often and lasts twice as
 * long. Compared with all fragments, a third of the time is slow; with bands none is.
 */
static void run(const char *bands, double *performance, uint32_t *states, uint32_t *clusters)
{
	char path[64], out[64], *text = NULL, *at;
	const char *const files[] = {path};
	struct vapro_config config;
	struct pipeline *pipeline;
	struct line_sink *lines;
	struct ndjson *ndjson;
	const char *named[RULES_NAMED];
	uint64_t bad, now = 1800000000000000000ULL;
	size_t size;
	FILE *file;

	snprintf(path, sizeof(path), "/tmp/vapro-test-rules-%d", getpid());
	snprintf(out, sizeof(out), "/tmp/vapro-test-rules-out-%d", getpid());
	file = fopen(path, "w");
	for (int i = 0; i < 900; i++) {
		bool slow = i % 3 == 0;
		uint64_t ns = slow ? 20000000 : 10000000;

		fprintf(file,
			"{\"rank\":0,\"class\":\"computation\",\"from\":\"a@1+1\",\"to\":\"a@1+2\",\"start_ns\":%llu,"
			"\"duration_ns\":%llu,\"workload\":{\"instructions\":1000000,\"misses\":%d}}\n",
			(unsigned long long)now, (unsigned long long)ns, slow ? 20000 : 2000);
		now += ns;
	}
	fclose(file);
	config__init(&config);
	assert_int_equal(config__set(&config, "bands", bands, err, sizeof(err)), 0);
	assert_int_equal(config__set(&config, "reference", "fastest", err, sizeof(err)), 0);
	lines = line_sink__open(out, false);
	ndjson = ndjson__read(files, 1, true, &bad, err, sizeof(err));
	assert_non_null(ndjson);
	for (int i = 0; i < RULES_NAMED; i++)
		named[i] = ndjson__named(ndjson, i);
	assert_string_equal(named[0], "misses");
	assert_null(named[1]);
	pipeline = pipeline__new(&config, VAPRO_BY_INSTRUCTIONS, NULL, lines, NULL);
	assert_int_equal(pipeline__name_events(pipeline, named), 0);
	assert_int_equal(ndjson__feed(ndjson, config.window_s, pipeline__sink(pipeline), err, sizeof(err)), 0);
	pipeline__close(pipeline);
	ndjson__free(ndjson);
	assert_int_equal(line_sink__close(lines), 0);
	file = fopen(out, "r");
	assert_true(getdelim(&text, &size, 0, file) > 0);
	fclose(file);
	written_records__all(text);
	at = strstr(text, "\"performance\":{\"computation\":");
	assert_non_null(at);
	*performance = atof(at + strlen("\"performance\":{\"computation\":"));
	at = strstr(text, "\"clusters\":{\"states\":");
	assert_non_null(at);
	assert_int_equal(sscanf(at, "\"clusters\":{\"states\":%" SCNu32 ",\"clusters\":%" SCNu32, states, clusters), 2);
	free(text);
	unlink(path);
	unlink(out);
}

static void test_whole(void **state)
{
	double performance;
	uint32_t states, clusters;

	(void)state;
	/* misses are in the vector: they distinguish the two, as two clusters of a state */
	run("", &performance, &states, &clusters);
	assert_true(states == 1 && clusters == 2 && performance > 0.99);
	/* in bands misses are not in the vector, and the two are states of their own */
	run("misses/instructions:0.01", &performance, &states, &clusters);
	assert_true(states == 2 && clusters == 2 && performance > 0.99);
	/* with both in one band, half of the fragments are slow */
	run("misses/instructions:0.1", &performance, &states, &clusters);
	assert_true(states == 1 && clusters == 1);
	assert_true(fabs(performance - 0.75) < 0.01);
}

/* A capture's events are in the slots that its own tunables set, except events that could not be counted. */
static void test_capture(void **state)
{
	static const char hello[] =
	    "{\"schema\":\"vapro/"
	    "1\",\"type\":\"hello\",\"host\":\"n1\",\"workload_source\":\"instructions\",\"counters\":["
	    "{\"name\":\"loads\",\"provider\":\"none\",\"available\":false},"
	    "{\"name\":\"instructions\",\"provider\":\"hardware\",\"available\":true},"
	    "{\"name\":\"misses\",\"provider\":\"hardware\",\"available\":true},"
	    "{\"name\":\"stores\",\"provider\":\"hardware\",\"available\":true}]}";
	struct stream_event line = {.type = STREAM_LINE, .line = stream__line(hello)}, end = {.type = STREAM_END};
	struct vapro_config config;
	struct capture_info info;
	struct stream_sink *sink;
	char path[64], *tunables;

	(void)state;
	snprintf(path, sizeof(path), "/tmp/vapro-test-rules-capture-%d", getpid());
	config__init(&config);
	assert_int_equal(config__set(&config, "workload", "instructions,loads,1/stores", err, sizeof(err)), 0);
	assert_int_equal(config__set(&config, "bands", "misses/stores:0.5", err, sizeof(err)), 0);
	tunables = config__to_text(&config);
	sink = capture__create(path, tunables);
	free(tunables);
	assert_non_null(sink);
	assert_int_equal(stream__put(sink, &line), 0);
	assert_int_equal(stream__put(sink, &end), 0);
	assert_int_equal(stream__close(sink), 0);
	assert_int_equal(capture__info(path, &info, err, sizeof(err)), 0);
	unlink(path);
	assert_true(info.by_instructions);
	assert_string_equal(info.config.bands, "misses/stores:0.5");
	assert_string_equal(info.named[0], "stores");
	assert_string_equal(info.named[1], "misses");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_events),  cmocka_unit_test(test_refusals), cmocka_unit_test(test_bands),
	    cmocka_unit_test(test_vector),  cmocka_unit_test(test_states),   cmocka_unit_test(test_whole),
	    cmocka_unit_test(test_capture),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
