// SPDX-License-Identifier: GPL-2.0-or-later
/* Noise components that the scheduler shows: sums of slices by name, in any order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "detect/noise.h"

#define US 1000ULL

static struct noise noise;

static int end(void **state)
{
	(void)state;
	noise__clear(&noise);
	return 0;
}

static void add(const char *name, uint32_t relation, uint32_t process, uint32_t thread, uint64_t bin, uint64_t slices,
		uint64_t us)
{
	const struct noise_slices one = {.name = name,
					 .relation = relation,
					 .process = process,
					 .thread = thread,
					 .bin = bin,
					 .slices = slices,
					 .ns = slices * us * US,
					 .longest_us = (uint32_t)us};

	assert_int_equal(noise__add(&noise, &one), 0);
}

static const struct noise_component *find(const char *name)
{
	for (size_t i = 0; i < noise.count; i++) {
		if (!strcmp(noise.components[i].name, name))
			return &noise.components[i];
	}
	return NULL;
}

static void slices_are_summed(void **state)
{
	const struct noise_component *hog;

	(void)state;
	add("hog", VAPRO_FOREIGN, 40, 0, 105, 20, 200);
	add("hog", VAPRO_FOREIGN, 40, 1, 100, 2, 900);
	add("hog", VAPRO_FOREIGN, 40, 0, 101, 18, 210);
	assert_int_equal(noise.count, 1);
	hog = find("hog");
	assert_int_equal(hog->slices, 40);
	assert_int_equal(hog->ns, (20 * 200 + 2 * 900 + 18 * 210) * US);
	assert_int_equal(hog->longest_us, 900);
	assert_int_equal(hog->process, 40);
	assert_int_equal(hog->begin, 100);
	assert_int_equal(hog->end, 106);
	assert_int_equal(noise.part_count, 2);
	assert_int_equal(noise.parts[0].slices, 38);
	assert_int_equal(noise.parts[1].ns, 1800 * US);

	/* another process of that name, and a rank of another job: what is whose stays apart */
	add("hog", VAPRO_FOREIGN, 41, 0, 101, 1, 1);
	assert_int_equal(find("hog")->process, 0);
	add("hog", VAPRO_OTHER_JOB, 41, 0, 101, 1, 1);
	assert_int_equal(noise.count, 2);
}

static void the_job_s_own_threads_are_no_noise(void **state)
{
	(void)state;
	add("rank", VAPRO_SAME_JOB, 40, 0, 100, 5, 100);
	add("helper", VAPRO_OWN_THREAD, 40, 0, 100, 5, 100);
	add("old", VAPRO_FOREIGN, 40, 0, 100, 0, 100); /* of unknown number */
	assert_int_equal(noise.count, 0);
	add("vaprod", VAPRO_MONITOR, 40, 0, 100, 5, 100);
	assert_int_equal(noise.count, 1);
}

static void kernel_threads_of_all_cpus_are_one(void **state)
{
	static const char *const same[][2] = {
	    {"kworker/1:2-events", "kworker"},
	    {"kworker/u8:0", "kworker"},
	    {"ksoftirqd/11", "ksoftirqd"},
	    {"migration/0", "migration"},
	    {"irq/12-nvme", "irq"},
	    {"rcu_preempt", "rcu_preempt"},
	    {"a/b", "a/b"},
	    {"/1", "/1"},
	    {"", ""},
	};
	char name[NOISE_NAME];

	(void)state;
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
		noise__name(same[i][0], name);
		assert_string_equal(name, same[i][1]);
	}
}

#define SLICES 600

static int compare(const void *a, const void *b)
{
	const struct noise_component *left = a, *right = b;

	return strcmp(left->name, right->name);
}

/* Slices of several tasks, threads and bins make the same components in whatever order they come. */
static void order_does_not_matter(void **state)
{
	struct noise_component first[8];
	uint32_t order[SLICES];
	size_t count = 0;

	(void)state;
	srand(52);
	for (uint32_t i = 0; i < SLICES; i++)
		order[i] = i;
	for (int pass = 0; pass < 20; pass++) {
		for (uint32_t i = 0; i < SLICES; i++) {
			uint32_t with = (uint32_t)rand() % SLICES, one = order[i];

			order[i] = order[with];
			order[with] = one;
		}
		noise__clear(&noise);
		for (uint32_t i = 0; i < SLICES; i++) {
			uint32_t of = order[i];
			char name[16];

			snprintf(name, sizeof(name), "task%u", of % 7);
			add(name, of % 7 ? VAPRO_FOREIGN : VAPRO_MONITOR, 100 + of % 7, of % 13, 500 + of % 31,
			    1 + of % 5, 100 + of % 77);
		}
		qsort(noise.components, noise.count, sizeof(*noise.components), compare);
		if (!pass) {
			count = noise.count;
			assert_int_equal(count, 7);
			memcpy(first, noise.components, count * sizeof(*first));
			continue;
		}
		assert_int_equal(noise.count, count);
		assert_memory_equal(noise.components, first, count * sizeof(*first));
	}
}

/* Beyond the bound the names with the least time go, with their threads, and their time is known. */
static void names_are_bounded(void **state)
{
	uint64_t sum = 0;

	(void)state;
	for (uint32_t i = 0; i < NOISE_NAMES; i++) {
		char name[16];

		snprintf(name, sizeof(name), "task-%u", i);
		add(name, VAPRO_FOREIGN, i, i, 100, 1, 1000 + i);
		add(name, VAPRO_FOREIGN, i, 7, 100, 1, 1000);
	}
	assert_int_equal(noise.count, NOISE_NAMES);
	assert_int_equal(noise.forgotten_ns, 0);
	add("late", VAPRO_FOREIGN, 1, 3, 100, 1, 5);
	assert_int_equal(noise.count, NOISE_NAMES / 2 + 1);
	assert_null(find("task-0"));
	assert_non_null(find("task-255"));
	assert_non_null(find("late"));
	for (size_t i = 0; i < noise.part_count; i++) {
		assert_true(noise.parts[i].component < noise.count);
		sum += noise.parts[i].ns;
	}
	for (size_t i = 0; i < noise.count; i++)
		sum -= noise.components[i].ns;
	assert_int_equal(sum, 0);
	for (uint64_t i = 0; i < NOISE_NAMES / 2; i++)
		sum += (2000 + i) * US;
	assert_int_equal(noise.forgotten_ns, sum);

	/* what stays is added to where it was */
	add("task-255", VAPRO_FOREIGN, 255, 255, 100, 1, 10);
	assert_int_equal(find("task-255")->slices, 3);
	for (size_t i = 0; i < noise.part_count; i++) {
		if (&noise.components[noise.parts[i].component] == find("task-255") && noise.parts[i].thread == 255)
			assert_int_equal(noise.parts[i].slices, 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_teardown(slices_are_summed, end),
	    cmocka_unit_test_teardown(the_job_s_own_threads_are_no_noise, end),
	    cmocka_unit_test_teardown(kernel_threads_of_all_cpus_are_one, end),
	    cmocka_unit_test_teardown(order_does_not_matter, end),
	    cmocka_unit_test_teardown(names_are_bounded, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
