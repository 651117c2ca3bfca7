/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of tunables: defaults, texts in and out, refusals that name the expected value. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "config/config_json.h"
#include "config/tunables.h"

static struct vapro_config config;
static char err[512];

static int set(const char *name, const char *value)
{
	err[0] = 0;
	return config__set(&config, name, value, err, sizeof(err));
}

static void test_defaults(void **state)
{
	(void)state;
	config__init(&config);
	assert_true(config.window_s == 15);
	assert_true(config.threshold == 0.85);
	assert_int_equal(config.min_cells, 2);
	assert_true(config.min_lost_s == 0.1);
	assert_true(config.long_fragment_s == 0.01);
	assert_int_equal(config.map_entries, 16384);
	assert_int_equal(config.ring_bytes, 4194304);
	assert_int_equal(config.io, VAPRO_AUTO);
	assert_false(config.no_return);
	assert_int_equal(config.attach, VAPRO_ATTACH_AUTO);
	assert_true(config.abnormal_ratio == 1.2);
	assert_true(config.overhead_cap_pct == 2);
	assert_true(config.overhead_budget_pct == 1);
}

/* Every default is valid, and every value written reads back as the same value. */
static void test_round_trip(void **state)
{
	(void)state;
	for (size_t i = 0; i < vapro_tunable_count; i++) {
		const struct option_row *option = &vapro_tunables[i];
		struct vapro_config again;
		char text[64];

		config__init(&config);
		assert_int_equal(set(option->name, option->initial), 0);
		config__format(&config, option, text, sizeof(text));
		assert_int_equal(set(option->name, text), 0);
		config__init(&again);
		assert_memory_equal(&again, &config, sizeof(config));
		assert_true(strlen(option->help) > 10);
	}
}

static void test_units(void **state)
{
	(void)state;
	config__init(&config);
	assert_int_equal(set("window", "2m"), 0);
	assert_true(config.window_s == 120);
	assert_int_equal(set("window", "1500ms"), 0);
	assert_true(config.window_s == 1.5);
	assert_int_equal(set("window", "30 s"), 0);
	assert_true(config.window_s == 30);
	assert_int_equal(set("window", "7"), 0);
	assert_true(config.window_s == 7);
	assert_int_equal(set("window", "1h"), 0);
	assert_true(config.window_s == 3600);
	assert_int_equal(set("window", "7d"), -EINVAL);
	assert_string_equal(err, "--window: invalid duration '7d'; expected 1s to 1h, such as 30, 500ms, 5m or 1h");
	assert_int_equal(set("threshold", "90%"), 0);
	assert_true(config.threshold == 0.9);
	assert_int_equal(set("threshold", "85"), -EINVAL);
	assert_string_equal(err, "--threshold: invalid share '85'; expected 1% to 100%");
	assert_int_equal(set("overhead-cap", "3%"), 0);
	assert_true(config.overhead_cap_pct == 3);
	assert_int_equal(set("overhead-cap", "3"), 0);
	assert_true(config.overhead_cap_pct == 3);
	assert_int_equal(set("memory-cap", "1G"), 0);
	assert_int_equal(config.memory_cap, 1073741824);
	assert_int_equal(set("ring-bytes", "3M"), -EINVAL);
	assert_string_equal(
	    err, "--ring-bytes: invalid size '3M'; expected 64K to 1G, a power of two, such as 64K, 256M or 1G");
}

static void test_refusals(void **state)
{
	static const char *const bad[][2] = {
	    {"threshold", ""},	     {"threshold", "0x1"},  {"threshold", "nan"},      {"threshold", "inf"},
	    {"threshold", "0.5x"},   {"threshold", "1.01"}, {"threshold", "-1"},       {"threshold", "1e999"},
	    {"rare-members", "2.5"}, {"rare-members", "0"}, {"ring-bytes", "65537"},   {"ring-bytes", "1"},
	    {"hop-frames", "5"},     {"io", "perhaps"},	    {"no-return", "maybe"},    {"overhead-cap", "101"},
	    {"states", "call-tree"}, {"states", ""},	    {"long-fragment", "-5ms"}, {"window", "0.5"},
	};
	struct vapro_config before;
	char text[VAPRO_TEXT_MAX + 1];

	(void)state;
	config__init(&config);
	before = config;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(set(bad[i][0], bad[i][1]), -EINVAL);
		assert_true(strlen(err) > 0);
		assert_memory_equal(&config, &before, sizeof(config));
	}
	assert_int_equal(set("threshold", "abc"), -EINVAL);
	assert_string_equal(err, "--threshold: invalid share 'abc'; expected 1% to 100%");
	assert_int_equal(set("min-cells", "3"), -ENOENT); /* a constant */
	assert_int_equal(set("counters", "test"), 0);	  /* not named to users */
	assert_int_equal(config.counters, VAPRO_COUNTERS_TEST);
	assert_int_equal(set("counters", "tests"), -EINVAL);
	assert_string_equal(err, "--counters: invalid word 'tests'; expected auto, hardware or none");
	assert_int_equal(set("threshhold", "0.5"), -ENOENT);
	assert_string_equal(err, "unknown setting 'threshhold'");
	assert_int_equal(set("attach", "kprobe"), -EINVAL);
	assert_string_equal(err, "--attach: invalid word 'kprobe'; expected auto, session, multi or perf");
	assert_int_equal(set("attach", "perf"), 0);
	assert_int_equal(config.attach, VAPRO_ATTACH_PERF);
	assert_int_equal(set("states", "path"), -EINVAL);
	assert_string_equal(err, "--states: invalid word 'path'; expected call-site or call-path");
	assert_int_equal(set("states", "call-path"), 0);
	assert_int_equal(config.states, VAPRO_BY_CALL_PATH);
	assert_int_equal(set("transparent", "libboost_mpi*.so*,libmine.so"), 0);
	assert_string_equal(config.transparent, "libboost_mpi*.so*,libmine.so");
	assert_int_equal(set("transparent", ""), 0);
	assert_string_equal(config.transparent, "");
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(set("transparent", text), -EINVAL);
	assert_int_equal(set("overhead-cap", "0"), 0);
	assert_int_equal(set("no-return", NULL), 0);
	assert_true(config.no_return);
	assert_int_equal(set("no_return", "no"), 0);
	assert_false(config.no_return);
}

static int read_text(const char *text)
{
	char path[] = "/tmp/vapro-test-config-XXXXXX";
	int fd = mkstemp(path), ret;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	ret = config__read(&config, path, NULL, err, sizeof(err));
	unlink(path);
	return ret;
}

static void test_file(void **state)
{
	struct vapro_config before;

	(void)state;
	config__init(&config);
	assert_int_equal(read_text("# site settings\n\nthreshold = 0.9   # stricter\n  io=off\nwindow =  30s\n"), 0);
	assert_true(config.threshold == 0.9);
	assert_int_equal(config.io, VAPRO_OFF);
	assert_true(config.window_s == 30);
	before = config;
	assert_int_equal(read_text("threshold = 0.8\nio = some\n"), -EINVAL);
	assert_non_null(strstr(err, ":2: io: invalid word 'some'"));
	assert_memory_equal(&config, &before, sizeof(config)); /* a bad file changes nothing */
	assert_int_equal(read_text("; old\n[analysis]\nthreshold = 70%\n[kernel]\nring-bytes=8M # more\n"
				   "event FOO=cpu/event=0xc0/\n[selection]\nfunction = exe:a; exe:b#c\n"),
			 0);
	assert_true(config.threshold == 0.7);
	assert_int_equal(config.ring_bytes, 8388608);
	assert_string_equal(config.events[0].name, "FOO");
	assert_string_equal(config.functions, "exe:a; exe:b#c");
	config = before;
	assert_int_equal(read_text("[output]\nthreshold = 0.9\n"), -EINVAL);
	assert_non_null(strstr(err, ":2: threshold belongs to [analysis], not to [output]"));
	assert_int_equal(read_text("[outptu]\n"), -EINVAL);
	assert_non_null(strstr(err, ":1: unknown section [outptu]; did you mean [output]?"));
	assert_int_equal(read_text("[output\n"), -EINVAL);
	assert_non_null(strstr(err, ":1: expected '[section]'"));
	assert_int_equal(read_text("windw = 3\n"), -ENOENT);
	assert_non_null(strstr(err, ":1: unknown setting 'windw'; did you mean 'window'?"));
	assert_memory_equal(&config, &before, sizeof(config));
	assert_int_equal(read_text("threshold\n"), -EINVAL);
	assert_non_null(strstr(err, ":1: expected 'name = value'"));
	assert_int_equal(config__read(&config, "/nonexistent/vapro.conf", NULL, err, sizeof(err)), -ENOENT);
	assert_non_null(strstr(err, "/nonexistent/vapro.conf"));
}

static void test_functions(void **state)
{
	char text[VAPRO_FUNCTIONS_TEXT];
	struct vapro_config again;
	char *json;

	(void)state;
	config__init(&config);
	assert_string_equal(config.functions, "");
	assert_int_equal(
	    read_text("function = exe:solve_step\nfunction = lib*.so:post class=communication count=2 peer=3\n"), 0);
	assert_int_equal(set("function", "exe:sim::step class=user"), 0);
	assert_string_equal(
	    config.functions,
	    "exe:solve_step; lib*.so:post class=communication count=2 peer=3; exe:sim::step class=user");
	for (size_t i = 0; i < vapro_tunable_count; i++)
		if (!strcmp(vapro_tunables[i].name, "function"))
			config__format(&config, &vapro_tunables[i], text, sizeof(text));
	assert_string_equal(text, config.functions);
	json = config__to_text(&config);
	config__init(&again);
	assert_int_equal(config__from_text(&again, json, err, sizeof(err)), 0);
	assert_memory_equal(&again, &config, sizeof(config));
	free(json);

	again = config;
	assert_int_equal(set("function", "solve_step"), -EINVAL);
	assert_non_null(strstr(err, "invalid IMAGE:FUNCTION"));
	assert_int_equal(set("function", "exe:solve class=fast"), -EINVAL);
	assert_int_equal(set("function", "exe:solve peer=1"), -EINVAL); /* a boundary reads no arguments */
	assert_int_equal(set("function", "exe:post class=io count=17"), -EINVAL);
	assert_int_equal(set("function", "exe:post class=io count=x"), -EINVAL);
	assert_int_equal(set("function", "exe:post class=io size=1"), -EINVAL);
	assert_int_equal(set("function", "exe:"), -EINVAL);
	assert_int_equal(set("function", "exe::solve"), -EINVAL);
	assert_int_equal(read_text("function = exe:a\nfunction = b\n"), -EINVAL);
	assert_non_null(strstr(err, ":2: function:"));
	assert_memory_equal(&again, &config, sizeof(config));
	memset(text, 'x', sizeof(text) - 1);
	memcpy(text, "exe:", 4);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(set("function", text), -EINVAL);
	assert_int_equal(set("function", ""), 0);
	assert_string_equal(config.functions, "");
}

static void test_json(void **state)
{
	struct vapro_config again;
	char *text;

	(void)state;
	config__init(&config);
	assert_int_equal(set("threshold", "0.9"), 0);
	assert_int_equal(set("io", "off"), 0);
	assert_int_equal(set("long-fragment", "3ms"), 0);
	text = config__to_text(&config);
	assert_non_null(strstr(text, "\"long_fragment\":0.003"));
	config__init(&again);
	assert_int_equal(config__from_text(&again, text, err, sizeof(err)), 0);
	assert_memory_equal(&again, &config, sizeof(config));
	assert_int_equal(config__from_text(&again, "{\"of_a_later_version\":1}", err, sizeof(err)), 0);
	assert_int_equal(config__from_text(&again, "[1]", err, sizeof(err)), -EINVAL);
	free(text);
}

/* The words of a row are in the order of its enum, with one that is not named to users. */
static void test_words(void **state)
{
	static const struct {
		const char *name, *word;
		unsigned value;
	} words[] = {
	    {"io", "off", VAPRO_OFF},
	    {"threads", "on", VAPRO_ON},
	    {"inside", "auto", VAPRO_AUTO},
	    {"attach", "auto", VAPRO_ATTACH_AUTO},
	    {"attach", "session", VAPRO_ATTACH_SESSION},
	    {"attach", "multi", VAPRO_ATTACH_MULTI},
	    {"attach", "perf", VAPRO_ATTACH_PERF},
	    {"states", "call-site", VAPRO_BY_CALL_SITE},
	    {"states", "call-path", VAPRO_BY_CALL_PATH},
	    {"reference", "typical", VAPRO_REFERENCE_TYPICAL},
	    {"reference", "fastest", VAPRO_REFERENCE_FASTEST},
	    {"counters", "auto", VAPRO_COUNTERS_AUTO},
	    {"counters", "hardware", VAPRO_COUNTERS_HARDWARE},
	    {"counters", "none", VAPRO_COUNTERS_NONE},
	    {"counters", "test", VAPRO_COUNTERS_TEST},
	};
	unsigned value;

	(void)state;
	config__init(&config);
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		assert_int_equal(set(words[i].name, words[i].word), 0);
		memcpy(&value, (char *)&config + config__find(words[i].name)->offset, sizeof(value));
		assert_int_equal(value, words[i].value);
	}
}

/* Every tunable has a group, and the table is in the order of the groups. */
static void test_groups(void **state)
{
	char text[64];

	(void)state;
	for (size_t i = 0; i < vapro_tunable_count; i++) {
		assert_true(vapro_tunables[i].group < VAPRO_GROUPS);
		assert_true(!i || vapro_tunables[i].group >= vapro_tunables[i - 1].group);
		option__value_name(&vapro_tunables[i], text, sizeof(text));
		assert_true(strlen(text) > 0);
	}
	for (int i = 0; i < VAPRO_GROUPS; i++)
		assert_true(vapro_groups[i].section && vapro_groups[i].heading);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_defaults), cmocka_unit_test(test_round_trip), cmocka_unit_test(test_units),
	    cmocka_unit_test(test_refusals), cmocka_unit_test(test_file),	cmocka_unit_test(test_json),
	    cmocka_unit_test(test_groups),   cmocka_unit_test(test_words),	cmocka_unit_test(test_functions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
