/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vapro diff: pairs of synthetic runs whose difference is known. Each is compared in both modes. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../tools/accuracy/job.h"
#include "cli/diff_run.h"
#include "compare/compare.h"

#define RANKS 8
#define MODES 2

static const enum vapro_workload_source modes[MODES] = {VAPRO_BY_ARGUMENTS, VAPRO_BY_INSTRUCTIONS};
static const struct compare_options options = {.threshold = 0.03};
static char err[512];

/* A run that is usual: 30 s of iterations of some 11 ms. */
static struct job usual(uint64_t seed)
{
	struct job job = {.seed = seed, .ranks = RANKS, .hosts = 2, .seconds = 30, .jitter = 0.02};

	job__program(&job, 5e6, 0.1, 0.05);
	return job;
}

/* The same, with one rank slower for all of the time. */
static struct job with(uint64_t seed, enum effect_kind kind, int first, int last, double factor)
{
	struct job job = usual(seed);
	struct job_effect *effect = job__effect(&job, kind, 0, 0, factor);

	effect->ranks = (struct job_ranks){.of = RANKS_RANGE, .first = first, .last = last};
	return job;
}

static struct profile *run(const struct job *job, enum vapro_workload_source source)
{
	struct profile *profile = profile__new(source == VAPRO_BY_INSTRUCTIONS);
	struct job_totals totals = {0};
	struct truths truths = {0};
	struct diff_sink sink;

	assert_non_null(profile);
	diff_run__init_sink(&sink, profile);
	assert_int_equal(job__run(job, source, 15, &sink.sink, &truths, &totals), 0);
	assert_int_equal(profile__end(profile), 0);
	assert_int_equal(sink.refused, 0);
	truths__free(&truths);
	return profile;
}

struct pair {
	struct profile *a, *b;
	struct comparison found;
};

static struct pair compare(const struct job *a, const struct job *b, enum vapro_workload_source source)
{
	struct pair pair = {run(a, source), run(b, source), {0}};

	assert_int_equal(compare__runs(&pair.found, pair.a, pair.b, &options, err, sizeof(err)), 0);
	return pair;
}

static void end(struct pair *pair)
{
	compare__clear(&pair->found);
	profile__free(pair->a);
	profile__free(pair->b);
}

static void print(const struct comparison *found)
{
	for (size_t i = 0; i < found->row_count; i++) {
		const struct compare_row *row = &found->rows[i];

		print_message(
		    "%s what %d unit %d kind %u cause %u ratio %.4f [%.4f %.4f] beyond %.4f p %.2g seconds %.3f "
		    "work %.3f error %.4f\n",
		    row->named ? "NAMED" : "     ", row->what, row->unit, row->kind, row->cause, row->ratio, row->low,
		    row->high, row->beyond, row->p, row->seconds, row->work, row->error);
	}
}

/* How many rows of a kind of comparison are named; job_wide: of the whole job. */
static unsigned named(const struct comparison *found, enum compare_what what, bool job_wide)
{
	unsigned count = 0;

	for (size_t i = 0; i < found->row_count; i++)
		count += found->rows[i].named && found->rows[i].what == what &&
			 (found->rows[i].unit == COMPARE_ALL) == job_wide;
	return count;
}

static const struct compare_row *row_of(const struct comparison *found, enum compare_what what, int32_t unit)
{
	for (size_t i = 0; i < found->row_count; i++)
		if (found->rows[i].what == what && found->rows[i].unit == unit)
			return &found->rows[i];
	return NULL;
}

/* Only rows of these ranks are named, and none of the job. */
static void assert_only(const struct comparison *found, int first, int last)
{
	for (size_t i = 0; i < found->row_count; i++) {
		const struct compare_row *row = &found->rows[i];

		if (!row->named || row->what == COMPARE_HOST)
			continue;
		if (row->unit < first || row->unit > last)
			print(found);
		assert_in_range(row->unit, first, last);
	}
}

static void assert_rank(const struct comparison *found, int rank, double ratio)
{
	const struct compare_row *row = row_of(found, COMPARE_RANK, rank);

	assert_non_null(row);
	if (!row->named || fabs(row->ratio / ratio - 1) > 0.01)
		print(found);
	assert_true(row->named);
	assert_true(fabs(row->ratio / ratio - 1) < 0.01);
	assert_true(row->low <= row->ratio && row->ratio <= row->high);
}

static void one_rank_slow(void **state)
{
	(void)state;
	/* ten pairs in each mode: another rank each, all states or one */
	for (int mode = 0; mode < MODES; mode++) {
		for (int i = 0; i < 10; i++) {
			enum effect_kind kind = i % 2 ? EFFECT_WORK : EFFECT_SLOW;
			int rank = i % RANKS;
			struct job a = usual(100 + (uint64_t)i), b = with(200 + (uint64_t)i, kind, rank, rank, 1.1);
			struct pair pair;

			pair = compare(&a, &b, modes[mode]);
			assert_only(&pair.found, rank, rank);
			assert_rank(&pair.found, rank, 1.1);
			assert_int_equal(named(&pair.found, COMPARE_RANK, false), 1);
			assert_int_equal(named(&pair.found, COMPARE_STATE, false), 2);
			assert_int_equal(named(&pair.found, COMPARE_HOST, true), 0);
			if (modes[mode] == VAPRO_BY_INSTRUCTIONS) {
				const struct compare_row *row = row_of(&pair.found, COMPARE_STATE, rank);

				assert_true(fabs(row->work / (kind == EFFECT_WORK ? 1.1 : 1) - 1) < 0.01);
			} else {
				assert_true(isnan(row_of(&pair.found, COMPARE_STATE, rank)->work));
			}
			end(&pair);
		}
	}
}

static void one_state_of_a_rank(void **state)
{
	(void)state;
	for (int mode = 0; mode < MODES; mode++) {
		struct job a = usual(1), b = with(2, EFFECT_SLOW, 5, 5, 1.2);
		struct pair pair;

		b.effects[0].steps = 1U << JOB_MEMORY;
		pair = compare(&a, &b, modes[mode]);
		assert_only(&pair.found, 5, 5);
		assert_int_equal(named(&pair.found, COMPARE_STATE, false), 1);
		assert_int_equal(named(&pair.found, COMPARE_RANK, false), 1);
		end(&pair);
	}
}

static void equal_runs(void **state)
{
	static const double jitters[] = {0.005, 0.02, 0.05, 0.15};

	(void)state;
	for (int mode = 0; mode < MODES; mode++) {
		for (int i = 0; i < 24; i++) {
			struct job a = usual(1000 + 2 * (uint64_t)i), b = usual(1001 + 2 * (uint64_t)i);
			struct pair pair;

			a.jitter = b.jitter = jitters[i % 4];
			if (i % 3 == 1)
				b.seconds = 60;
			if (i % 3 == 2) { /* other workloads at random, alike in both */
				for (struct job *job = &a; job; job = job == &a ? &b : NULL) {
					struct job_effect *effect = job__effect(job, EFFECT_GROUPS, 0, 0, 3);

					effect->share = 0.3;
				}
			}
			pair = compare(&a, &b, modes[mode]);
			assert_only(&pair.found, 1, 0);
			assert_int_equal(named(&pair.found, COMPARE_HOST, true), 0);
			assert_true(pair.found.common);
			end(&pair);
		}
	}
}

static void whole_job(void **state)
{
	(void)state;
	for (int mode = 0; mode < MODES; mode++) {
		struct job a = usual(1), b = with(2, EFFECT_SLOW, 0, RANKS - 1, 1.1);
		struct pair pair = compare(&a, &b, modes[mode]);
		const struct compare_row *row = row_of(&pair.found, COMPARE_JOB, COMPARE_ALL);

		assert_int_equal(named(&pair.found, COMPARE_RANK, false), 0);
		assert_int_equal(named(&pair.found, COMPARE_STATE, false), 0);
		assert_int_equal(named(&pair.found, COMPARE_STATE, true), 2);
		assert_true(row && row->named && row->seconds > 0);
		assert_true(fabs(row->ratio / 1.1 - 1) < 0.01);
		end(&pair);
		/* the same, the other way round: faster */
		pair = compare(&b, &a, modes[mode]);
		row = row_of(&pair.found, COMPARE_JOB, COMPARE_ALL);
		assert_true(row && row->named && row->seconds < 0);
		assert_int_equal(named(&pair.found, COMPARE_RANK, false), 0);
		end(&pair);
		/* and one rank beyond it */
		b = with(2, EFFECT_SLOW, 0, RANKS - 1, 1.1);
		job__effect(&b, EFFECT_SLOW, 0, 0, 1.2)->ranks =
		    (struct job_ranks){.of = RANKS_RANGE, .first = 3, .last = 3};
		pair = compare(&a, &b, modes[mode]);
		assert_int_equal(named(&pair.found, COMPARE_RANK, false), 1);
		row = row_of(&pair.found, COMPARE_RANK, 3);
		assert_true(row->named && fabs(row->beyond / 1.2 - 1) < 0.02);
		end(&pair);
	}
}

static void one_host(void **state)
{
	(void)state;
	for (int mode = 0; mode < MODES; mode++) {
		struct job a = usual(1), b = with(2, EFFECT_SLOW, 4, 7, 1.1);
		struct pair pair = compare(&a, &b, modes[mode]);

		/* half of the ranks: no change of the job */
		assert_only(&pair.found, 4, 7);
		assert_int_equal(named(&pair.found, COMPARE_RANK, false), 4);
		assert_int_equal(named(&pair.found, COMPARE_HOST, true), 1);
		for (size_t i = 0; i < pair.found.row_count; i++)
			if (pair.found.rows[i].what == COMPARE_HOST && pair.found.rows[i].named)
				assert_string_equal(pair.found.rows[i].host, "n1");
		end(&pair);
	}
}

static void faster_rank(void **state)
{
	(void)state;
	for (int mode = 0; mode < MODES; mode++) {
		struct job a = with(2, EFFECT_SLOW, 6, 6, 1.25), b = usual(1);
		struct pair pair = compare(&a, &b, modes[mode]);

		assert_only(&pair.found, 6, 6);
		assert_rank(&pair.found, 6, 1 / 1.25);
		end(&pair);
	}
}

/* A rank that loses its CPU for a tenth of its time: its work is the same, and the cause is named. */
static void cause(void **state)
{
	(void)state;
	for (int mode = 0; mode < MODES; mode++) {
		struct job a = usual(1), b = with(2, EFFECT_CPU_BUSY, 2, 2, 1.1);
		struct pair pair;
		const struct compare_row *row;

		b.effects[0].cause = VAPRO_THROTTLED;
		pair = compare(&a, &b, modes[mode]);
		assert_only(&pair.found, 2, 2);
		assert_int_equal(named(&pair.found, COMPARE_RANK, false), 0);
		assert_int_equal(named(&pair.found, COMPARE_CAUSE, false), 1);
		row = row_of(&pair.found, COMPARE_CAUSE, 2);
		assert_int_equal(profile_causes[row->cause], VAPRO_THROTTLED);
		assert_true(row->share_a == 0 && row->share_b > 0.05 && row->share_b < 0.15 && row->seconds > 0);
		end(&pair);
	}
}

/* Collectives whose own part is twice as long are named, for the job; late peers are not. */
static void calls(void **state)
{
	(void)state;
	for (int mode = 0; mode < MODES; mode++) {
		struct job a = usual(1), b = with(2, EFFECT_CALLS, 0, RANKS - 1, 3);
		struct pair pair;
		unsigned least = 0;

		b.effects[0].steps = 1U << JOB_ALLREDUCE;
		pair = compare(&a, &b, modes[mode]);
		assert_true(pair.found.calls_compared);
		assert_int_equal(named(&pair.found, COMPARE_RANK, false), 0);
		assert_int_equal(named(&pair.found, COMPARE_STATE, true), 1);
		for (size_t i = 0; i < pair.found.row_count; i++)
			least += pair.found.rows[i].named && pair.found.rows[i].least;
		assert_int_equal(least, 1);
		end(&pair);
	}
}

static void other_ranks(void **state)
{
	(void)state;
	for (int mode = 0; mode < MODES; mode++) {
		struct job a = usual(1), b = with(2, EFFECT_SLOW, 1, 1, 1.1);
		struct pair pair;

		b.ranks = 4;
		pair = compare(&a, &b, modes[mode]);
		assert_int_equal(pair.found.unit_count, 4);
		assert_int_equal(pair.found.side[0].units, 8);
		assert_int_equal(pair.found.side[1].units, 4);
		assert_false(pair.found.calls_compared);
		assert_only(&pair.found, 1, 1);
		assert_rank(&pair.found, 1, 1.1);
		end(&pair);
	}
}

static void missing_states(void **state)
{
	(void)state;
	for (int mode = 0; mode < MODES; mode++) {
		struct job a = usual(1), b = with(2, EFFECT_SLOW, 1, 1, 1.1);
		struct pair pair;

		job__program(&b, 5e6, 0.1, 0); /* no writes: the edge behind the last call leads elsewhere, too */
		pair = compare(&a, &b, modes[mode]);
		assert_true(pair.found.match.only_a >= 1);
		assert_true(pair.found.match.only_a_s > 0);
		assert_only(&pair.found, 1, 1);
		assert_rank(&pair.found, 1, 1.1);
		end(&pair);
	}
}

static void too_short(void **state)
{
	(void)state;
	for (int mode = 0; mode < MODES; mode++) {
		struct job a = usual(1), b = usual(2);
		struct pair pair = {0};

		b.seconds = 1;
		pair.a = run(&a, modes[mode]);
		pair.b = run(&b, modes[mode]);
		assert_int_equal(compare__runs(&pair.found, pair.a, pair.b, &options, err, sizeof(err)), -ENODATA);
		assert_non_null(strstr(err, "too short"));
		end(&pair);
	}
}

/* Computations that are mostly what the probes around them cost are not compared, nor named. */
static void short_computations(void **state)
{
	(void)state;
	for (int length_us = 12; length_us <= 120; length_us += 108) {
		struct job jobs[2];
		struct pair pair = {0};
		int named = 0, status;

		for (int side = 0; side < 2; side++) {
			jobs[side] = (struct job){
			    .seed = 1 + (uint64_t)side, .ranks = 2, .hosts = 1, .seconds = 3, .jitter = 0.02};
			job__program(&jobs[side], length_us * 1e3, 0.1, 0);
		}
		job__effect(&jobs[1], EFFECT_SLOW, 0, 0, 1.5)->ranks =
		    (struct job_ranks){.of = RANKS_RANGE, .first = 1, .last = 1};
		pair.a = run(&jobs[0], VAPRO_BY_ARGUMENTS);
		pair.b = run(&jobs[1], VAPRO_BY_ARGUMENTS);
		status = compare__runs(&pair.found, pair.a, pair.b, &options, err, sizeof(err));
		assert_true(!status || status == -ENODATA);
		for (size_t i = 0; !status && i < pair.found.row_count; i++)
			named += pair.found.rows[i].named && pair.found.rows[i].unit == 1;
		if (length_us < 20)
			assert_true(pair.found.too_short > 0 && !named);
		else
			assert_true(!pair.found.too_short && named > 0);
		end(&pair);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(one_rank_slow), cmocka_unit_test(one_state_of_a_rank),
	    cmocka_unit_test(equal_runs),    cmocka_unit_test(whole_job),
	    cmocka_unit_test(one_host),	     cmocka_unit_test(faster_rank),
	    cmocka_unit_test(cause),	     cmocka_unit_test(calls),
	    cmocka_unit_test(other_ranks),   cmocka_unit_test(missing_states),
	    cmocka_unit_test(too_short),     cmocka_unit_test(short_computations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
