// SPDX-License-Identifier: GPL-2.0-or-later
/* Kinds of stalls in 60 s of a rank's fragments: known mixtures of scatter, tails and delays, and sums in any order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <math.h>

#include "detect/stall_kinds.h"
#include "detect/stall_modes.h"
#include "model/reference.h"
#include "sim.h"

#define US 1e3
#define MS 1e6
#define S 1e9
#define LENGTH_NS (60 * S)
#define BEGIN_NS 1800000000000000000ULL
#define REPEATED 4
#define TYPES_MOST 20
#define ABNORMAL 1.2
#define SINGLES 20
#define MERGED_MOST 1000

enum tail { TAIL_NONE, TAIL_EXPONENTIAL, TAIL_PARETO, TAIL_UNIFORM };

/* A rank's program, and what is wrong with it. */
struct mixture {
	double least_ms, most_ms; /* of the types of work, in equal steps */
	int types;
	double jitter, sigma; /* standard deviation; of a log-normal */
	enum tail tail;	      /* of tail_share of the fragments: exponential of 1 ms, Pareto 1.5, 4 to 7 ms */
	double tail_share;
	double delay_ms, width; /* of delays, at random */
	double delays;
	double other_ms, others; /* a second delay */
};

struct fragment {
	double start, ns;
	int type;
	int delayed;
};

static struct {
	struct fragment *fragments;
	size_t count, capacity;
	double n[2]; /* true number of delays */
	double sum;  /* of the first ones */
} rank;

static struct stalls stalls;
static struct stg_row rows[8];
static double observed[8];
static struct stg_job job = {.rows = rows, .row_count = 1, .host_count = 1};
static struct stall_kind kinds[STALL_KINDS];
static size_t kind_count;

static uint64_t seed;

static double unit(void)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return ((double)(seed >> 11) + 0.5) / 9007199254740992.0;
}

static double gauss(void)
{
	return sqrt(-2 * log(unit())) * cos(2 * M_PI * unit());
}

static double tail_ns(const struct mixture *mixture)
{
	if (mixture->tail == TAIL_NONE || unit() >= mixture->tail_share)
		return 0;
	if (mixture->tail == TAIL_EXPONENTIAL)
		return -MS * log(unit());
	if (mixture->tail == TAIL_PARETO)
		return 0.3 * MS * (pow(unit(), -1 / 1.5) - 1);
	return MS * (4 + 3 * unit());
}

/* A delay that is due by the time that has passed. */
static double delay_ns(const struct mixture *mixture, double now, double *next, double ms, double times, int which)
{
	double ns;

	if (times <= 0 || now < *next)
		return 0;
	*next = now - LENGTH_NS / times * log(unit());
	ns = MS * ms * (1 + mixture->width * gauss());
	rank.n[which]++;
	rank.sum += which ? 0 : ns;
	return ns;
}

static void put(double start, double ns, int type)
{
	if (rank.count == rank.capacity) {
		rank.capacity = rank.capacity ? 2 * rank.capacity : 4096;
		rank.fragments = realloc(rank.fragments, rank.capacity * sizeof(*rank.fragments));
		assert_non_null(rank.fragments);
	}
	rank.fragments[rank.count++] = (struct fragment){.start = start, .ns = ns, .type = type};
}

static void run_program(const struct mixture *mixture)
{
	double next[2] = {0.2 * S, 0.1 * S}; /* not the first fragment, which is new to the kernel side */

	rank.count = 0;
	rank.n[0] = rank.n[1] = rank.sum = 0;
	for (double now = 0; now < LENGTH_NS;) {
		int type = mixture->types > 1 ? (int)(unit() * mixture->types) : 0;
		double step = mixture->types > 1 ? (mixture->most_ms - mixture->least_ms) / (mixture->types - 1) : 0;
		double ns = MS * (mixture->least_ms + step * type);

		ns *= fmax(0.1, 1 + mixture->jitter * gauss()) * exp(mixture->sigma * gauss());
		ns += tail_ns(mixture);
		ns += delay_ns(mixture, now, &next[0], mixture->delay_ms, mixture->delays, 0);
		ns += delay_ns(mixture, now, &next[1], mixture->other_ms, mixture->others, 1);
		put(now, ns, type);
		now += ns;
	}
}

/* The usual duration of each type, as the model has it. */
static void find_usual(double *usual)
{
	struct vapro_config config;

	sim_config(&config);
	for (int type = 0; type < TYPES_MOST; type++) {
		struct histogram histogram = {0};

		for (size_t i = 0; i < rank.count; i++) {
			if (rank.fragments[i].type == type)
				assert_int_equal(histogram__add(&histogram, rank.fragments[i].ns, 1), 0);
		}
		usual[type] = reference__of(&histogram, &config).expected_ns;
		histogram__clear(&histogram);
	}
}

/* Abnormal fragments beyond those that are sent one by one: merged by state and norm cell in a bin. */
static struct {
	struct stall_bundle bundle;
	int type;
	uint32_t cell;
	double sum, most;
} merged[MERGED_MOST];
static size_t merged_count;

static void add(const struct stall_bundle *bundle)
{
	if (bundle->ns >= bundle->edge_ns)
		assert_int_equal(stalls__add(&stalls, bundle), 0);
}

static void flush(const double *usual)
{
	for (size_t i = 0; i < merged_count; i++) {
		struct stall_bundle *bundle = &merged[i].bundle;

		bundle->ns = merged[i].sum / bundle->n - usual[merged[i].type];
		bundle->unequal =
		    bundle->n > 1 && merged[i].most - merged[i].sum / bundle->n > STALL_EQUAL * bundle->ns;
		add(bundle);
	}
	merged_count = 0;
}

static void merge(const struct stall_bundle *bundle, int type, double ns)
{
	uint32_t cell = histogram__index(ns) / HISTOGRAM_PER_CELL;
	size_t i = 0;

	while (i < merged_count && (merged[i].type != type || merged[i].cell != cell))
		i++;
	assert_true(i < MERGED_MOST);
	if (i == merged_count) {
		merged[merged_count].bundle = *bundle;
		merged[merged_count].type = type;
		merged[merged_count].cell = cell;
		merged[merged_count].sum = merged[merged_count].most = ns;
		merged_count++;
		return;
	}
	merged[i].bundle.n++;
	merged[i].bundle.end_ns = bundle->end_ns;
	merged[i].sum += ns;
	merged[i].most = fmax(merged[i].most, ns);
}

/* Adds the stalls of the rank as a row, as the kernel side sends them: so many in a bin one by one, the others merged.
 */
static void add_row(uint32_t row)
{
	double usual[TYPES_MOST], least[TYPES_MOST];
	uint64_t bin = 0;
	int singles = 0;

	find_usual(usual);
	for (int type = 0; type < TYPES_MOST; type++)
		least[type] = INFINITY;
	for (size_t i = 0; i < rank.count; i++) {
		const struct fragment *at = &rank.fragments[i];
		uint64_t start = BEGIN_NS + (uint64_t)at->start, end = start + (uint64_t)at->ns;
		struct stall_bundle bundle = {.row = row,
					      .class = VAPRO_COMMUNICATION,
					      .n = 1,
					      .ns = at->ns - usual[at->type],
					      .edge_ns = fmax(STALL_LEAST_NS, (STALL_RATIO - 1) * usual[at->type]),
					      .start_ns = start,
					      .end_ns = end};

		if (end / VAPRO_BIN_NS != bin) {
			flush(usual);
			singles = 0;
		}
		bin = end / VAPRO_BIN_NS;
		if (at->ns > ABNORMAL * least[at->type] && singles++ < SINGLES)
			add(&bundle);
		else if (at->ns > ABNORMAL * least[at->type])
			merge(&bundle, at->type, at->ns);
		least[at->type] = fmin(least[at->type], at->ns);
	}
	flush(usual);
}

static void find(void)
{
	struct stall_view view = {.job = &job, .observed_ns = observed, .share = 0.005, .least_ns = 0.1 * S};

	for (int i = 0; i < 8; i++)
		observed[i] = LENGTH_NS;
	assert_int_equal(stall_kinds__find(&stalls, &view, VAPRO_COMMUNICATION, kinds, &kind_count), 0);
}

/* Runs a mixture and finds its kinds. */
static void run(const struct mixture *mixture, uint64_t number)
{
	seed = 5 + 1000 * number;
	stalls__clear(&stalls);
	run_program(mixture);
	add_row(0);
	find();
}

static int end(void **state)
{
	(void)state;
	stalls__clear(&stalls);
	free(rank.fragments);
	memset(&rank, 0, sizeof(rank));
	job.row_count = 1;
	return 0;
}

static void scatter_and_tails_are_no_kinds(void **state)
{
	static const struct mixture quiet[] = {
	    {.least_ms = 1, .types = 1, .jitter = 0.03},
	    {.least_ms = 5, .types = 1, .jitter = 0.06},
	    {.least_ms = 1, .types = 1, .jitter = 0.15},
	    {.least_ms = 1, .most_ms = 8, .types = 4, .jitter = 0.03},
	    {.least_ms = 1, .most_ms = 8, .types = 4, .jitter = 0.10},
	    {.least_ms = 1, .most_ms = 8, .types = 4, .jitter = 0.15},
	    {.least_ms = 1, .types = 1, .jitter = 0.02, .tail = TAIL_EXPONENTIAL, .tail_share = 0.02},
	    {.least_ms = 1, .most_ms = 8, .types = 4, .jitter = 0.02, .tail = TAIL_EXPONENTIAL, .tail_share = 0.05},
	    {.least_ms = 1, .types = 1, .sigma = 0.3},
	    {.least_ms = 1, .types = 1, .sigma = 0.6},
	    {.least_ms = 1, .types = 1, .jitter = 0.02, .tail = TAIL_PARETO, .tail_share = 0.05},
	    {.least_ms = 1, .types = 1, .jitter = 0.02, .tail = TAIL_UNIFORM, .tail_share = 0.03},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(quiet) / sizeof(*quiet); i++) {
		for (uint64_t k = 0; k < REPEATED; k++) {
			run(&quiet[i], k);
			if (kind_count)
				fail_msg("mixture %zu, repetition %llu: %zu kinds, one of %.0f us, %llu times", i,
					 (unsigned long long)k, kind_count,
					 (double)kinds[0].ns / (double)kinds[0].n / US, (unsigned long long)kinds[0].n);
		}
	}
}

struct found {
	struct mixture mixture;
	double t, n; /* how far off length and number may be */
};

static void delays_are_one_kind(void **state)
{
	static const struct found found[] = {
	    {{.least_ms = 1, .types = 1, .jitter = 0.02, .delay_ms = 5.7, .width = 0.01, .delays = 2812}, .004, .002},
	    {{.least_ms = 1, .types = 1, .jitter = 0.02, .delay_ms = 5.7, .width = 0.01, .delays = 300}, .004, .002},
	    {{.least_ms = 1, .types = 1, .jitter = 0.02, .delay_ms = 5.7, .width = 0.01, .delays = 62}, .01, .02},
	    {{.least_ms = .2, .most_ms = 4, .types = 20, .jitter = 0.05, .delay_ms = 5.7, .width = 0.01, .delays = 300},
	     .01,
	     .01},
	    {{.least_ms = 1,
	      .types = 1,
	      .jitter = 0.02,
	      .tail = TAIL_EXPONENTIAL,
	      .tail_share = 0.02,
	      .delay_ms = 5.7,
	      .width = 0.01,
	      .delays = 300},
	     .02,
	     .03},
	    {{.least_ms = 1, .types = 1, .sigma = 0.6, .delay_ms = 15, .width = 0.01, .delays = 300}, .04, .05},
	    {{.least_ms = 1, .types = 1, .jitter = 0.02, .delay_ms = 5.7, .width = 0.05, .delays = 300}, .01, .02},
	    {{.least_ms = 1, .types = 1, .jitter = 0.02, .delay_ms = 0.5, .width = 0.01, .delays = 2000}, .01, .01},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(found) / sizeof(*found); i++) {
		for (uint64_t k = 0; k < REPEATED; k++) {
			double t, n;

			run(&found[i].mixture, k);
			if (kind_count != 1)
				fail_msg("mixture %zu, repetition %llu: %zu kinds", i, (unsigned long long)k,
					 kind_count);
			t = (double)kinds[0].ns / (double)kinds[0].n / (rank.sum / rank.n[0]) - 1;
			n = (double)kinds[0].n / rank.n[0] - 1;
			if (fabs(t) > found[i].t || fabs(n) > found[i].n)
				fail_msg("mixture %zu, repetition %llu: length %+.2f %%, number %+.2f %%", i,
					 (unsigned long long)k, 100 * t, 100 * n);
		}
	}
}

static void two_delays_are_two_kinds(void **state)
{
	static const struct mixture two = {.least_ms = 1,
					   .types = 1,
					   .jitter = 0.02,
					   .delay_ms = 5.7,
					   .width = 0.01,
					   .delays = 300,
					   .other_ms = 2.5,
					   .others = 600};

	(void)state;
	for (uint64_t k = 0; k < REPEATED; k++) {
		run(&two, k);
		assert_int_equal(kind_count, 2);
		assert_true(fabs((double)kinds[0].ns / (double)kinds[0].n / (2.5 * MS) - 1) < 0.01);
		assert_true(fabs((double)kinds[1].ns / (double)kinds[1].n / (5.7 * MS) - 1) < 0.01);
		/* some hit the same fragment */
		assert_true(fabs((double)kinds[0].n / rank.n[1] - 1) < 0.04);
		assert_true(fabs((double)kinds[1].n / rank.n[0] - 1) < 0.04);
	}
}

/* What has no single length is no kind, and what the kernel side merges cannot be one. */
static void what_cannot_be_one(void **state)
{
	static const struct mixture none[] = {
	    {.least_ms = 1, .types = 1, .jitter = 0.02, .delay_ms = 5.7, .width = 0.2, .delays = 300},
	    {.least_ms = 3, .types = 1, .jitter = 0.02, .delay_ms = 0.5, .width = 0.01, .delays = 2000},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++) {
		for (uint64_t k = 0; k < REPEATED; k++) {
			run(&none[i], k);
			assert_int_equal(kind_count, 0);
		}
	}
}

/* Ranks that were hit are one kind; what each has too few of is found in their sum. */
static void ranks_are_merged(void **state)
{
	static const struct mixture many = {
	    .least_ms = 1, .types = 1, .jitter = 0.02, .delay_ms = 5.7, .width = 0.01, .delays = 200};
	static const struct mixture few = {
	    .least_ms = 10, .types = 1, .jitter = 0.02, .delay_ms = 150, .width = 0.01, .delays = 4};
	double n = 0;

	(void)state;
	job.row_count = 8;
	for (uint32_t row = 0; row < 8; row++) {
		seed = 77 + row;
		run_program(&many);
		n += rank.n[0];
		add_row(row);
	}
	find();
	assert_int_equal(kind_count, 1);
	assert_true(fabs((double)kinds[0].n / n - 1) < 0.01);
	stalls__clear(&stalls);
	n = 0;
	for (uint32_t row = 0; row < 8; row++) {
		seed = 177 + row;
		run_program(&few);
		n += rank.n[0];
		add_row(row);
	}
	find();
	assert_int_equal(kind_count, 1);
	assert_true(kinds[0].summed);
	assert_int_equal(kinds[0].n, (uint64_t)n);
}

/* One rank of many is hit; all others have tails in which its stalls would drown. */
static void one_of_many(void **state)
{
	static const struct mixture hit = {
	    .least_ms = 1, .types = 1, .jitter = 0.02, .delay_ms = 3, .width = 0.01, .delays = 200};
	static const struct mixture other = {
	    .least_ms = 1, .types = 1, .jitter = 0.02, .tail = TAIL_EXPONENTIAL, .tail_share = 0.2};
	uint64_t n, ns;
	double truth = 0;

	(void)state;
	job.row_count = 8;
	for (uint32_t row = 0; row < 8; row++) {
		seed = 277 + row;
		run_program(row == 5 ? &hit : &other);
		truth = row == 5 ? rank.n[0] : truth;
		add_row(row);
	}
	find();
	assert_int_equal(kind_count, 1);
	assert_false(kinds[0].summed);
	assert_true(fabs((double)kinds[0].n / truth - 1) < 0.01);
	stall_kinds__of_row(&stalls, &kinds[0], 5, &n, &ns);
	assert_int_equal(n, kinds[0].n);
	stall_kinds__of_row(&stalls, &kinds[0], 2, &n, &ns);
	assert_int_equal(n, 0);
}

/* The same bundles in another order, and rows in another order, are the same kinds. */
static void any_order_is_equal(void **state)
{
	enum { BUNDLES = 3000 };
	static struct stall_bundle bundles[BUNDLES];
	struct stall_kind first[STALL_KINDS];
	size_t first_count;

	(void)state;
	job.row_count = 8;
	seed = 9;
	for (int i = 0; i < BUNDLES; i++) {
		double ns = (i % 3 ? 5.7 * MS : 1.9 * MS) * (1 + 0.01 * gauss());

		bundles[i] = (struct stall_bundle){.row = (uint32_t)(unit() * 8),
						   .class = VAPRO_COMMUNICATION,
						   .n = i % 5 ? 1 : 3,
						   .ns = ns,
						   .edge_ns = 0.1 * MS,
						   .start_ns = BEGIN_NS + (uint64_t)(unit() * LENGTH_NS)};
		bundles[i].end_ns = bundles[i].start_ns + (uint64_t)(2 * ns);
		assert_int_equal(stalls__add(&stalls, &bundles[i]), 0);
	}
	find();
	assert_int_equal(kind_count, 2);
	first_count = kind_count;
	memcpy(first, kinds, sizeof(first));
	for (int order = 0; order < 6; order++) {
		static const int steps[] = {1, 7, 11, 1999, 2999, 1501};

		stalls__clear(&stalls);
		for (int i = 0; i < BUNDLES; i++) {
			struct stall_bundle bundle = bundles[(int)((long)i * steps[order] % BUNDLES)];

			bundle.row = (bundle.row + (uint32_t)order) % 8;
			assert_int_equal(stalls__add(&stalls, &bundle), 0);
		}
		find();
		assert_int_equal(kind_count, first_count);
		for (size_t i = 0; i < kind_count; i++) {
			assert_int_equal(kinds[i].n, first[i].n);
			assert_int_equal(kinds[i].ns, first[i].ns);
			assert_int_equal(kinds[i].low, first[i].low);
			assert_int_equal(kinds[i].high, first[i].high);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_teardown(scatter_and_tails_are_no_kinds, end),
	    cmocka_unit_test_teardown(delays_are_one_kind, end),
	    cmocka_unit_test_teardown(two_delays_are_two_kinds, end),
	    cmocka_unit_test_teardown(what_cannot_be_one, end),
	    cmocka_unit_test_teardown(ranks_are_merged, end),
	    cmocka_unit_test_teardown(one_of_many, end),
	    cmocka_unit_test_teardown(any_order_is_equal, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
