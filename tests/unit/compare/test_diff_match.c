/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parts of vapro diff: shifts, and states that are matched between runs of one program, and of another build. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "compare/compare.h"
#include "compare/shift.h"

#define MS 1000000ULL
#define FRAGMENTS 400

static char err[512];

/* A computation between two call-sites and a call. */
struct edge {
	const char *from, *from_symbol, *to, *to_symbol;
	double ms;
};

static void add(struct profile *profile, const struct vapro_state *state, double ms)
{
	uint64_t at = 0;

	assert_int_equal(profile__add_state(profile, state), 0);
	for (int i = 0; i < FRAGMENTS; i++) {
		uint64_t ns = (uint64_t)(ms * 1e6 * (1 + 0.01 * ((i * 7) % 11) / 11.0));
		struct vapro_bundle bundle = {.thread = 0,
					      .state = state->id,
					      .n = 1,
					      .start_ns = at,
					      .end_ns = at + ns,
					      .sum_ns = ns,
					      .min_ns = ns,
					      .max_ns = ns};

		at += 100 * MS;
		assert_int_equal(profile__add_bundle(profile, &bundle), 0);
	}
}

/* A run of one process whose computations are these; each ends in an MPI_Send. */
static struct profile *run(const struct edge *edges, size_t count)
{
	struct profile *profile = profile__new(false);
	struct vapro_thread thread = {.rank = 0, .world_size = 1, .pid = 7, .tid = 7, .job = "j", .host = "n0"};

	assert_non_null(profile);
	assert_int_equal(profile__add_thread(profile, &thread), 0);
	for (size_t i = 0; i < count; i++) {
		struct vapro_state call = {.id = (uint32_t)(2 * i),
					   .class = VAPRO_COMMUNICATION,
					   .to = edges[i].to,
					   .to_symbol = edges[i].to_symbol,
					   .labels = "function=MPI_Send",
					   .common = "function=MPI_Send"};
		struct vapro_state edge = {.id = (uint32_t)(2 * i + 1),
					   .class = VAPRO_COMPUTATION,
					   .from = edges[i].from,
					   .to = edges[i].to,
					   .from_symbol = edges[i].from_symbol,
					   .to_symbol = edges[i].to_symbol,
					   .labels = "",
					   .common = ""};

		add(profile, &call, 0.01);
		add(profile, &edge, edges[i].ms);
	}
	assert_int_equal(profile__end(profile), 0);
	return profile;
}

static struct comparison compare(const struct profile *a, const struct profile *b, int wanted)
{
	const struct compare_options options = {.threshold = 0.03};
	struct comparison found;

	assert_int_equal(compare__runs(&found, a, b, &options, err, sizeof(err)), wanted);
	return found;
}

/* The ratio of the state that ends at a call-site of B. */
static double ratio_at(const struct comparison *found, const struct profile *b, const char *to)
{
	for (size_t i = 0; i < found->row_count; i++) {
		const struct compare_row *row = &found->rows[i];

		if (row->what == COMPARE_STATE && row->unit != COMPARE_ALL &&
		    !strcmp(stg__state(b->stg, b->kinds[row->kind].state)->about.to, to))
			return row->ratio;
	}
	return NAN;
}

static const struct edge old_build[] = {
    {"app@aaa+0x10", "main+0x10", "app@aaa+0x20", "main+0x20", 1},
    {"app@aaa+0x20", "main+0x20", "app@aaa+0x90", "solve+0x10", 2},
    {"app@aaa+0x90", "solve+0x10", "app@aaa+0x10", "main+0x10", 3},
};
static const struct edge new_build[] = {
    {"app@bbb+0x14", "main+0x14", "app@bbb+0x40", "main+0x40", 1},
    {"app@bbb+0x40", "main+0x40", "app@bbb+0x94", "solve+0x44", 2.4},
    {"app@bbb+0x94", "solve+0x44", "app@bbb+0x14", "main+0x14", 3},
};

static void same_build(void **state)
{
	struct profile *a = run(old_build, 3), *b = run(old_build, 3);
	struct comparison found = compare(a, b, 0);

	(void)state;
	assert_int_equal(found.match.changed_count, 0);
	assert_int_equal(found.match.count, 6);
	assert_true(found.match.only_a == 0 && found.match.only_b == 0);
	assert_int_equal(found.unit_kind, COMPARE_THREADS);
	compare__clear(&found);
	profile__free(a);
	profile__free(b);
}

/* Call-sites of another build are matched by function and order; the state that is slower is the right one. */
static void other_build(void **state)
{
	struct profile *a = run(old_build, 3), *b = run(new_build, 3);
	struct comparison found = compare(a, b, 0);

	(void)state;
	assert_int_equal(found.match.changed_count, 1);
	assert_string_equal(found.match.changed[0].build_a, "aaa");
	assert_string_equal(found.match.changed[0].build_b, "bbb");
	assert_int_equal(found.match.count, 6);
	assert_true(fabs(ratio_at(&found, b, "app@bbb+0x94") / 1.2 - 1) < 0.01);
	assert_true(fabs(ratio_at(&found, b, "app@bbb+0x40") - 1) < 0.01);
	compare__clear(&found);
	profile__free(a);
	profile__free(b);
}

/* The program has another name, too. */
static void other_name(void **state)
{
	static const struct edge renamed[] = {
	    {"app2@bbb+0x14", "main+0x14", "app2@bbb+0x40", "main+0x40", 1},
	    {"app2@bbb+0x40", "main+0x40", "app2@bbb+0x94", "solve+0x44", 2},
	    {"app2@bbb+0x94", "solve+0x44", "app2@bbb+0x14", "main+0x14", 3},
	};
	struct profile *a = run(old_build, 3), *b = run(renamed, 3);
	struct comparison found = compare(a, b, 0);

	(void)state;
	assert_int_equal(found.match.changed_count, 1);
	assert_string_equal(found.match.changed[0].name_a, "app");
	assert_string_equal(found.match.changed[0].name_b, "app2");
	assert_int_equal(found.match.count, 6);
	compare__clear(&found);
	profile__free(a);
	profile__free(b);
}

/* A function that makes another number of calls: which one is which is not guessed. */
static void one_call_more(void **state)
{
	static const struct edge more[] = {
	    {"app@bbb+0x14", "main+0x14", "app@bbb+0x40", "main+0x40", 1},
	    {"app@bbb+0x40", "main+0x40", "app@bbb+0x94", "solve+0x44", 2},
	    {"app@bbb+0x94", "solve+0x44", "app@bbb+0x14", "main+0x14", 3},
	    {"app@bbb+0x60", "main+0x60", "app@bbb+0x60", "main+0x60", 3},
	};
	struct profile *a = run(old_build, 3), *b = run(more, 4);
	struct comparison found;

	(void)state;
	/* the only call-site of solve remains, and no computation between two that are known */
	found = compare(a, b, -ENODATA);
	assert_int_equal(found.match.count, 1);
	assert_true(found.match.only_a > 0 && found.match.only_b > 0);
	compare__clear(&found);
	profile__free(a);
	profile__free(b);
}

static void nothing_in_common(void **state)
{
	static const struct edge other[] = {{"tool@ccc+0x14", "run+0x14", "tool@ccc+0x40", "run+0x40", 1}};
	struct profile *a = run(old_build, 3), *b = run(other, 1);
	struct comparison found;

	(void)state;
	found = compare(a, b, -ENODATA);
	assert_non_null(strstr(err, "no state in common"));
	assert_non_null(strstr(err, "app"));
	assert_non_null(strstr(err, "tool"));
	compare__clear(&found);
	profile__free(a);
	profile__free(b);
}

/* Two programs whose main() alone looks alike are not said to be as fast as each other. */
static void other_program(void **state)
{
	static const struct edge other[] = {
	    {"tool@ccc+0x14", "main+0x14", "tool@ccc+0x40", "main+0x40", 1},
	    {"tool@ccc+0x40", "main+0x40", "tool@ccc+0x94", "search+0x44", 2},
	    {"tool@ccc+0x94", "search+0x44", "tool@ccc+0x14", "main+0x14", 3},
	};
	struct profile *a = run(old_build, 3), *b = run(other, 3);
	struct comparison found;

	(void)state;
	found = compare(a, b, -ENODATA);
	assert_true(found.other_program && found.match.count > 0);
	assert_non_null(strstr(err, "different programs"));
	assert_non_null(strstr(err, "A is a run of app, B of tool"));
	compare__clear(&found);
	profile__free(a);
	profile__free(b);
}

static void shifts(void **state)
{
	double a[40], b[40], all[4] = {0.04, 0.001, 0.02, 0.03}, some[5] = {0.1, 0, 0.001, 0.2, -0.001};
	struct shift shift;
	int agree;

	(void)state;
	for (int i = 0; i < 40; i++) {
		a[i] = (i * 17 % 40) / 40.0;
		b[i] = a[i] + 1;
	}
	assert_int_equal(shift__of(a, 40, b, 40, &shift), 0);
	assert_true(fabs(shift.by - 1) < 0.02 && shift.low <= shift.by && shift.by <= shift.high);
	assert_true(shift.p < 1e-9);
	assert_int_equal(shift__of(a, 40, a, 40, &shift), 0);
	assert_true(fabs(shift.by) < 1e-9 && shift.low < 0 && shift.high > 0 && shift.p > 0.99);
	assert_int_equal(shift__of(a, SHIFT_LEAST - 1, b, 40, &shift), -ENODATA);
	/* values that rise slowly are few independent ones */
	for (int i = 0; i < 40; i++) {
		a[i] = i / 40.0;
		b[i] = a[i] + 0.3;
	}
	assert_int_equal(shift__of(a, 40, b, 40, &shift), 0);
	assert_true(shift.p > 0.01);
	assert_true(fabs(shift__common(all, 4, 0.05, &agree) - 0.03) < 1e-9 && agree);
	assert_true(fabs(shift__common(some, 5, 0.03, &agree)) < 1e-9 && agree);
	assert_true(shift__common(some, 2, 0.0001, &agree) == 0 && !agree);
	/* the greatest of five is as it was, the least one times five */
	double p[5] = {0.5, 0.001, 0.04, 0.03, 0.8};

	assert_int_equal(shift__adjust(p, 5), 0);
	assert_true(fabs(p[1] - 0.005) < 1e-9 && fabs(p[4] - 0.8) < 1e-9);
	assert_true(fabs(p[3] - 0.04 * 5 / 3) < 1e-9 && fabs(p[2] - 0.04 * 5 / 3) < 1e-9);
}

/* Many batches become fewer and longer ones with the same mean. */
static void long_runs(void **state)
{
	struct samples samples = {0};
	double sum = 0, n = 0;

	(void)state;
	for (uint64_t bin = 0; bin < 5000; bin++)
		assert_int_equal(samples__add(&samples, bin, 6, 6 * (100 + (double)(bin % 10)), 1000), 0);
	assert_int_equal(samples__close(&samples), 0);
	assert_in_range(samples.count, SAMPLES_MOST / 2, SAMPLES_MOST);
	for (size_t i = 0; i < samples.count; i++) {
		sum += samples.items[i].mean_ns * samples.items[i].n;
		n += samples.items[i].n;
		assert_true(fabs(samples.items[i].size - 1000) < 1e-6);
	}
	assert_true(fabs(sum / n - 104.5) < 0.1);
	assert_int_equal(samples.members, 30000);
	samples__clear(&samples);
}

/* Bundles of a bin that arrive between those of later ones belong to its batch. */
static void late_bundles(void **state)
{
	struct samples samples = {0};

	(void)state;
	for (uint64_t bin = 0; bin < 40; bin++) {
		/* half of the fragments take 100 ns, the others 300 ns and come two bins later */
		assert_int_equal(samples__add(&samples, bin, 10, 1000, 0), 0);
		if (bin >= 2)
			assert_int_equal(samples__add(&samples, bin - 2, 10, 3000, 0), 0);
	}
	assert_int_equal(samples__close(&samples), 0);
	assert_int_equal(samples.count, 40);
	for (size_t i = 0; i < 38; i++)
		assert_true(fabs(samples.items[i].mean_ns - 200) < 1e-9);
	samples__clear(&samples);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(same_build),	 cmocka_unit_test(other_build),	  cmocka_unit_test(other_name),
	    cmocka_unit_test(one_call_more),	 cmocka_unit_test(shifts),	  cmocka_unit_test(long_runs),
	    cmocka_unit_test(nothing_in_common), cmocka_unit_test(other_program), cmocka_unit_test(late_bundles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
