// SPDX-License-Identifier: GPL-2.0-or-later
/* Where slow computation runs: which threads are sampled, what of it belongs to a variance, and how people read it. */
#include <stdio.h>

#include "simulated.h"

#include "report/inside_words.h"

/* A hog of one rank over three windows: its rank alone is sampled, and only while the variance is open. */
static void threads_of_open_variances_are_sampled(void **state)
{
	struct sim_scenario scenario = {.ranks = 4,
					.seconds = 60,
					.seed = 3,
					.noise = 0.04,
					.hogs = {{2, 14, 37, 77}},
					.hog_count = 1,
					.inside = true};
	const struct sim_found *alarm;

	(void)state;
	run(&scenario);
	alarm = sim_alarm(&report);
	expect(alarm && alarm->first_rank == 2);
	expect(report.requested_most == 1 && report.requested_tid == 1002);
	expect(report.requested_last == 0);
	expect(alarm->samples > 0);
	expect(!strcmp(alarm->hottest, "p@0+0x2"));
	expect(alarm->hottest_samples * 450 == alarm->samples * 300);
	for (int i = 0; i < report.found_count; i++)
		expect(report.found[i].class == VAPRO_COMPUTATION || !report.found[i].samples);
}

/* Samples of an earlier variance are not those of a later one on the same rank. */
static void samples_go_with_their_variance(void **state)
{
	struct sim_scenario scenario = {.ranks = 2,
					.seconds = 90,
					.seed = 5,
					.noise = 0.04,
					.hogs = {{0, 14, 27, 77}, {0, 54, 67, 78}},
					.hog_count = 2,
					.inside = true};
	uint64_t samples[2] = {0};
	int count = 0;

	(void)state;
	run(&scenario);
	for (int i = 0; i < report.found_count; i++)
		if (report.found[i].alarm && count < 2)
			samples[count++] = report.found[i].samples;
	expect(count == 2);
	expect(samples[0] && samples[0] == samples[1]);
}

/* Many ranks: no more threads than can be sampled. */
static void few_threads_are_sampled(void **state)
{
	struct sim_scenario scenario = {.ranks = 40,
					.seconds = 40,
					.seed = 7,
					.noise = 0.04,
					.memory_rank = -1,
					.grow_at = 0,
					.hog_count = SIM_HOGS,
					.inside = true};

	(void)state;
	for (int i = 0; i < SIM_HOGS; i++)
		scenario.hogs[i] = (struct sim_hog){4 * i, 12, 33, (uint32_t)(70 + i)};
	run(&scenario);
	expect(report.requested_most > 1 && report.requested_most <= VAPRO_INSIDE_THREADS);
}

static void add_name(struct source_names *names, const char *site, uint32_t depth, const char *function, uint32_t line)
{
	const struct stream_name name = {
	    .site = site, .depth = depth, .function = function, .offset = line ? 0 : 8, .file = "/s/x.c", .line = line};

	assert_int_equal(source_names__add(names, &name), 0);
}

/* Places of a function are one entry, those of unknown functions one for each file. */
static void places_become_functions(void **state)
{
	static const struct result_inside places[] = {{"a@0+0x1", 300}, {"a@0+0x2", 250},      {"a@0+0x9", 200},
						      {"b@0+0x1", 90},	{VAPRO_IN_KERNEL, 60}, {"b@0+0x7", 50},
						      {"0x7f00", 4}};
	struct result_variance variance = {.inside = places, .inside_count = 7, .inside_samples = 1000};
	struct source_names *names = source_names__new();
	cJSON *object = cJSON_CreateObject();
	char *text;

	(void)state;
	add_name(names, "a@0+0x1", 0, "lcg", 24);
	add_name(names, "a@0+0x1", 1, "steady", 14);
	add_name(names, "a@0+0x9", 0, "lcg", 24);
	add_name(names, "a@0+0x9", 1, "growing", 19);
	add_name(names, "a@0+0x2", 0, "growing", 0);
	assert_true(inside_words__add_json(object, &variance, names));
	text = cJSON_PrintUnformatted(object);
	assert_string_equal(text,
			    "{\"inside\":["
			    "{\"source\":\"growing\",\"function\":\"growing\",\"pct_of_samples\":45,\"samples\":450},"
			    "{\"source\":\"lcg (x.c:24) in steady "
			    "(x.c:14)\",\"function\":\"steady\",\"pct_of_samples\":30,\"samples\":300},"
			    "{\"source\":\"b\",\"function\":null,\"pct_of_samples\":14,\"samples\":140},"
			    "{\"source\":\"the kernel\",\"function\":null,\"pct_of_samples\":6,\"samples\":60}]}");
	free(text);
	text = inside_words__of_record(object);
	assert_string_equal(text, "45 % in growing, 30 % in lcg (x.c:24) in steady (x.c:14)");
	free(text);
	cJSON_Delete(object);
	source_names__free(names);
}

static void nothing_is_made_up(void **state)
{
	static const struct result_inside many[20];
	struct result_variance variance = {.inside = many};
	struct result_inside spread[20];
	char sites[20][16], *text;
	cJSON *object = cJSON_CreateObject();

	(void)state;
	assert_true(inside_words__add_json(object, &variance, NULL));
	assert_null(object->child);
	cJSON_Delete(object);
	assert_null(inside_words__of(&variance, NULL));
	for (int i = 0; i < 20; i++) {
		snprintf(sites[i], sizeof(sites[i]), "l%d@0+0x1", i);
		spread[i] = (struct result_inside){sites[i], 5};
	}
	variance = (struct result_variance){.inside = spread, .inside_count = 20, .inside_samples = 100};
	text = inside_words__of(&variance, NULL);
	assert_string_equal(text, "spread over many functions");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(threads_of_open_variances_are_sampled),
	    cmocka_unit_test(samples_go_with_their_variance),
	    cmocka_unit_test(few_threads_are_sampled),
	    cmocka_unit_test(places_become_functions),
	    cmocka_unit_test(nothing_is_made_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
