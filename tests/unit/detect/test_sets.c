// SPDX-License-Identifier: GPL-2.0-or-later
/* Sets of ranks that are slower than the others throughout the view, such as the ranks of a bad node. */
#include "detect/sets.h"
#include "painted.h"
#include "model/job_series.h"

#define RANKS 64
#define WORKLOADS 2
#define MEMBERS 1600 /* of each third of the view */
#define END (FIRST + 50)

static double slow[WORKLOADS][RANKS]; /* factor over the usual time */
static struct series all[WORKLOADS * RANKS];
static struct workload workloads[WORKLOADS];
static struct series_book book;
static struct sets sets;

static int end_sets(void **state)
{
	sets__clear(&sets);
	job_series__clear(&book);
	return teardown(state);
}

#define SETS(f) cmocka_unit_test_setup_teardown(f, setup, end_sets)

/* A job of ranks that alternate between the hosts, which are all alike so far. */
static void begin(uint32_t ranks, uint32_t hosts, enum vapro_workload_source source)
{
	sets__clear(&sets);
	job_series__clear(&book);
	other_job(ranks, hosts);
	for (uint32_t i = 0; i < WORKLOADS * RANKS; i++)
		slow[i / RANKS][i % RANKS] = 1;
	book = (struct series_book){.config = &config,
				    .source = source,
				    .stg = stg,
				    .series = all,
				    .count = WORKLOADS * ranks,
				    .workloads = workloads,
				    .workload_count = WORKLOADS};
	for (uint32_t i = 0; i < book.count; i++)
		assert_int_equal(job_series__add(&book, 0, i), 0);
}

static void slow_down(uint32_t first, uint32_t step, double ratio, double other_ratio)
{
	for (uint32_t rank = first; rank < job->row_count; rank += step) {
		slow[0][rank] = ratio;
		slow[1][rank] = other_ratio;
	}
}

/* Adds the ranks' durations in the view, with some scatter of each third. */
static void measure(uint64_t seed, double jitter)
{
	uint32_t ranks = (uint32_t)job->row_count;

	for (uint32_t w = 0; w < WORKLOADS; w++) {
		workloads[w] = (struct workload){.class = VAPRO_COMPUTATION, .series = w * ranks};
		for (uint32_t rank = 0; rank < ranks; rank++) {
			struct series *series = &all[w * ranks + rank];

			*series = (struct series){.row = rank,
						  .workload = w,
						  .class = VAPRO_COMPUTATION,
						  .next = rank + 1 < ranks ? w * ranks + rank + 1 : SERIES_NONE,
						  .supported = true,
						  .certified = true,
						  .compared = true,
						  .reference_ns = 1e6 * (w + 1)};
			for (int k = 0; k < SERIES_THIRDS; k++) {
				series->third_n[k] = MEMBERS;
				series->third_ns[k] =
				    MEMBERS * series->reference_ns * slow[w][rank] * (1 + jitter * sim_gauss(&seed));
				series->view_bundles++;
				series->view_squares += series->third_ns[k] * series->third_ns[k] / MEMBERS;
			}
		}
	}
}

static size_t find(uint64_t view)
{
	struct sets_span span = {.view = view, .begin = view, .end = END, .wall_ns = 15e9 * (double)job->row_count};

	assert_int_equal(sets__find(&sets, &book, stg, 0, &map, &span), 0);
	return sets.count;
}

static const struct rank_set *only(void)
{
	assert_int_equal(sets.count, 1);
	return &sets.items[0];
}

static void assert_rows(const struct rank_set *set, uint32_t first, uint32_t step, size_t count)
{
	assert_int_equal(set->count, count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(set->rows[i], first + i * step);
}

/* One of eight hosts is 5 % slow, in a cyclic placement: it is one set, with its loss. */
static void test_bad_host(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		const struct rank_set *set;

		begin(32, 8, VAPRO_BY_INSTRUCTIONS);
		slow_down(3, 8, 1.05, 1.05);
		measure(seed, 0.005);
		find(FIRST);
		set = only();
		assert_rows(set, 3, 8, 4);
		assert_near(set->ratio, 1.05, 0.008);
		assert_true(set->certain && set->place && set->variance);
		assert_int_equal(set->states, WORKLOADS);
		assert_near(set->lost_ns / (4 * 3 * MEMBERS * 3e6 * 0.05), 1, 0.15);
		assert_int_equal(all[set->slow].row % 8, 3);
		assert_int_not_equal(all[set->fast].row % 8, 3);
		assert_int_equal(set->since, FIRST);
	}
}

/* A host may be half of the job, but not more than that. */
static void test_half_of_the_job(void **state)
{
	(void)state;
	begin(8, 2, VAPRO_BY_INSTRUCTIONS);
	slow_down(1, 2, 1.08, 1.08);
	measure(1, 0.003);
	find(FIRST);
	assert_rows(only(), 1, 2, 4);
	assert_near(sets.items[0].ratio, 1.08, 0.005);
	/* a host with all ranks is no place */
	begin(8, 1, VAPRO_BY_INSTRUCTIONS);
	slow_down(0, 1, 1.08, 1.08);
	measure(1, 0.003);
	assert_int_equal(find(FIRST), 0);
}

/* The ranks of one socket. */
static void test_bad_socket(void **state)
{
	(void)state;
	begin(32, 4, VAPRO_BY_INSTRUCTIONS);
	for (uint32_t rank = 0; rank < 32; rank++)
		stg__set_place(stg, &(struct vapro_place){.thread = rank, .socket = (int32_t)(rank / 4 % 2)});
	job = stg__job(stg, 0);
	/* host 2, socket 1: ranks 6, 14, 22, 30 */
	slow_down(6, 8, 1.12, 1.12);
	measure(4, 0.005);
	find(FIRST);
	assert_rows(only(), 6, 8, 4);
	assert_true(sets.items[0].place);
	assert_near(sets.items[0].ratio, 1.12, 0.01);
}

/* One slow rank is found by its gap to the others; so are two slow ranks of different hosts. */
static void test_gap(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		begin(16, 4, VAPRO_BY_INSTRUCTIONS);
		slow_down(5, 16, 1.1, 1.1);
		measure(seed, 0.005);
		find(FIRST);
		assert_rows(only(), 5, 1, 1);
		assert_true(sets.items[0].certain && !sets.items[0].variance && !sets.items[0].place);
		assert_near(sets.items[0].ratio, 1.1, 0.01);
		/* the set lasts */
		find(FIRST);
		assert_rows(only(), 5, 1, 1);
		assert_true(sets.items[0].variance);
	}
	slow_down(10, 16, 1.1, 1.1);
	measure(1, 0.005);
	sets__clear(&sets);
	find(FIRST);
	assert_rows(only(), 5, 5, 2);
}

/* A bad host and a slow rank elsewhere are two sets, each with its own ratio. */
static void test_two_sets(void **state)
{
	(void)state;
	begin(32, 8, VAPRO_BY_INSTRUCTIONS);
	slow_down(3, 8, 1.1, 1.1);
	slow_down(20, 32, 1.3, 1.3);
	measure(2, 0.005);
	assert_int_equal(find(FIRST), 2);
	assert_rows(&sets.items[0], 3, 8, 4);
	assert_near(sets.items[0].ratio, 1.1, 0.01);
	assert_rows(&sets.items[1], 20, 1, 1);
	assert_near(sets.items[1].ratio, 1.3, 0.015);
}

/* Jitter of single fragments of half a second, ten in a third of the view: no set, whatever the number of ranks. */
static void test_jitter(void **state)
{
	static const struct {
		uint32_t ranks, hosts;
		double jitter;
	} jobs[] = {{4, 1, 0.01}, {4, 2, 0.01}, {8, 2, 0.019}, {16, 8, 0.019}, {64, 8, 0.019}, {64, 1, 0.019}};

	(void)state;
	for (size_t j = 0; j < 2 * sizeof(jobs) / sizeof(jobs[0]); j++) {
		begin(jobs[j / 2].ranks, jobs[j / 2].hosts, j % 2 ? VAPRO_BY_INSTRUCTIONS : VAPRO_BY_ARGUMENTS);
		for (uint64_t seed = 1; seed <= 50; seed++) {
			measure(seed, jobs[j / 2].jitter);
			if (find(FIRST))
				fail_msg("%u ranks, seed %d: %g", jobs[j / 2].ranks, (int)seed, sets.items[0].ratio);
		}
	}
}

/* Ranks that are slow in a part of the view only are no set. */
static void test_not_steady(void **state)
{
	(void)state;
	begin(32, 8, VAPRO_BY_INSTRUCTIONS);
	for (int third = 0; third < SERIES_THIRDS; third++) {
		measure(3, 0.003);
		for (uint32_t w = 0; w < WORKLOADS; w++)
			for (uint32_t rank = 3; rank < 32; rank += 8)
				all[w * 32 + rank].third_ns[third] *= 1.3;
		assert_int_equal(find(FIRST), 0);
	}
}

/* Only workloads with a supported reference count, or without counts certified states. */
static void test_without_support(void **state)
{
	(void)state;
	for (int counted = 0; counted < 2; counted++) {
		begin(32, 8, counted ? VAPRO_BY_INSTRUCTIONS : VAPRO_BY_ARGUMENTS);
		slow_down(3, 8, 1.2, 1.2);
		measure(3, 0.003);
		for (size_t i = 0; i < book.count; i++)
			all[i].supported = all[i].certified = false;
		assert_int_equal(find(FIRST), 0);
	}
}

/*
 * Without counts more work looks the same as less speed: a set has both readings. Where ratios of a place
 * differ between workloads the cause is likely speed, and the set is a variance.
 */
static void test_uncounted(void **state)
{
	static const struct {
		double first, second;
		bool variance;
	} diagnoses[] = {{1.1, 1.1, false}, {1.2, 1, true}, {1.3, 1.15, true}};

	(void)state;
	for (size_t c = 0; c < sizeof(diagnoses) / sizeof(diagnoses[0]); c++) {
		begin(32, 8, VAPRO_BY_ARGUMENTS);
		slow_down(3, 8, diagnoses[c].first, diagnoses[c].second);
		measure(c + 1, 0.005);
		find(FIRST);
		assert_rows(only(), 3, 8, 4);
		assert_false(sets.items[0].certain);
		assert_true(sets.items[0].place);
		assert_int_equal(sets.items[0].variance, diagnoses[c].variance);
		/* the workloads take 1 and 2 ms */
		assert_near(sets.items[0].ratio, (diagnoses[c].first + 2 * diagnoses[c].second) / 3, 0.01);
		assert_near(sets.items[0].ratio_most, diagnoses[c].first, 0.01);
		assert_near(sets.items[0].ratio_least, diagnoses[c].second, 0.01);
		/* work that is not slow does not change the ratio of the rest */
		assert_near(sets.items[0].ratio_slow,
			    diagnoses[c].second > 1 ? sets.items[0].ratio : diagnoses[c].first, 0.01);
	}
	/* one rank alone is never such a set: it may have more work */
	begin(16, 4, VAPRO_BY_ARGUMENTS);
	slow_down(5, 16, 1.3, 1);
	measure(1, 0.005);
	find(FIRST);
	assert_rows(only(), 5, 1, 1);
	assert_false(sets.items[0].variance || sets.items[0].certain);
}

/* A new set begins where its rows together began to be slow; a known set retains its beginning. */
static void test_since(void **state)
{
	(void)state;
	begin(16, 8, VAPRO_BY_INSTRUCTIONS);
	for (uint32_t rank = 0; rank < 16; rank++) {
		paint(rank, 0, 12, VAPRO_COMPUTATION, 1, false);
		paint(rank, 12, 50, VAPRO_COMPUTATION, rank % 8 == 3 ? 1 / 1.1 : 1, false);
	}
	slow_down(3, 8, 1.1, 1.1);
	measure(1, 0.003);
	find(FIRST + 30);
	assert_int_equal(only()->since, FIRST + 12);
	find(FIRST + 40);
	assert_int_equal(only()->since, FIRST + 12);
}

/* Paints two ranks of a host, or all other ranks, in bins [from, to) of the map. */
static void paint_host(uint64_t from, uint64_t to, double performance)
{
	for (uint32_t rank = 0; rank < 16; rank++)
		paint(rank, from, to, VAPRO_COMPUTATION, rank % 8 == 3 ? performance : 1, false);
}

/*
 * A set is found by its ranks' durations in the whole view, and may begin or end within the view: it begins and ends
 * with its cells, also where there is a short calm stretch.
 */
static void test_within_the_view(void **state)
{
	(void)state;
	begin(16, 8, VAPRO_BY_INSTRUCTIONS);
	paint_host(0, 6, 1);
	paint_host(6, 12, 1 / 1.1);
	paint_host(12, 15, 1);
	paint_host(15, 44, 1 / 1.1);
	paint_host(44, 50, 1);
	slow_down(3, 8, 1.1, 1.1);
	measure(1, 0.003);
	find(FIRST);
	assert_int_equal(only()->since, FIRST + 6);
	assert_int_equal(sets.items[0].until, FIRST + 44);
}

/* After a few calm bins a set may continue; when it has ended, they are no part of it. */
static void test_end_in_the_stride(void **state)
{
	(void)state;
	begin(16, 8, VAPRO_BY_INSTRUCTIONS);
	paint_host(0, 48, 1 / 1.1);
	paint_host(48, 50, 1);
	slow_down(3, 8, 1.1, 1.1);
	measure(1, 0.003);
	find(FIRST);
	assert_int_equal(only()->since, FIRST);
	assert_int_equal(sets.items[0].until, END);
	slow_down(3, 8, 1, 1);
	measure(2, 0.003);
	find(FIRST);
	assert_true(only()->over);
	assert_int_equal(sets.items[0].until, END);
	heatmap__advance(&map, FIRST, END + 20);
	sets.items[0].over = false;
	paint_host(50, 70, 1);
	find(FIRST + 20);
	assert_true(only()->over);
	assert_int_equal(sets.items[0].until, FIRST + 48);
}

/* An ended set stays while the map has a part of it, and a later slowdown is another set. */
static void test_over(void **state)
{
	(void)state;
	begin(16, 8, VAPRO_BY_INSTRUCTIONS);
	for (uint32_t rank = 0; rank < 16; rank++) {
		paint(rank, 0, 35, VAPRO_COMPUTATION, rank % 8 == 3 ? 1 / 1.1 : 1, false);
		paint(rank, 35, 50, VAPRO_COMPUTATION, 1, false);
	}
	slow_down(3, 8, 1.1, 1.1);
	measure(1, 0.003);
	find(FIRST);
	only();
	sets.items[0].until = FIRST + 30; /* the window ended there */
	slow_down(3, 8, 1, 1);
	measure(2, 0.003);
	find(FIRST + 30);
	assert_true(only()->over);
	assert_int_equal(sets.items[0].since, FIRST);
	assert_int_equal(sets.items[0].until, FIRST + 35);
	slow_down(3, 8, 1.1, 1.1);
	measure(3, 0.003);
	assert_int_equal(find(FIRST + 40), 2);
	assert_false(sets.items[0].over);
	assert_true(sets.items[0].since >= FIRST + 35);
	assert_true(sets.items[1].over);
	/* a set outside the map is dropped */
	slow_down(3, 8, 1, 1);
	measure(2, 0.003);
	sets__clear(&sets);
	heatmap__advance(&map, FIRST + 2000, FIRST + 2050);
	assert_int_equal(find(FIRST + 2000), 0);
}

/* A rank that is slow by one long stall, in a third of the view, is not in the set of the others. */
static void test_outlier(void **state)
{
	(void)state;
	begin(16, 1, VAPRO_BY_INSTRUCTIONS);
	slow_down(4, 8, 1.2, 1.2);
	measure(1, 0.003);
	for (uint32_t w = 0; w < WORKLOADS; w++)
		all[w * 16 + 9].third_ns[1] *= 1.6;
	find(FIRST);
	assert_rows(only(), 4, 8, 2);
}

/* Twelve fragments of a rank in each third of the view; in one third the first is longer than it should be. */
static void measure_singles(uint32_t rank, int third, double longer, double others)
{
	for (uint32_t w = 0; w < WORKLOADS; w++) {
		struct series *series = &all[w * job->row_count + rank];

		series->view_bundles = series->view_squares = 0;
		for (int k = 0; k < SERIES_THIRDS; k++) {
			series->third_n[k] = 12;
			series->third_ns[k] = 0;
			for (int i = 0; i < 12; i++) {
				double ns = series->reference_ns * (!i && k == third ? longer : others);

				series->third_ns[k] += ns;
				series->view_squares += ns * ns;
				series->view_bundles++;
			}
		}
	}
}

/*
 * Where fragments are long, a few of them may be far longer than the others on the ranks of a place by chance, in each
 * third of the view. This is no set: a slow place is slow in all fragments, by the same ratio.
 */
static void test_few_outliers(void **state)
{
	(void)state;
	for (int all_slow = 0; all_slow < 2; all_slow++) {
		for (uint32_t hosts = 8; hosts <= 32; hosts += 24) {
			begin(32, hosts, VAPRO_BY_INSTRUCTIONS);
			measure(1, 0.003);
			for (uint32_t rank = 3, k = 0; rank < 32; rank += hosts, k++)
				measure_singles(rank, (int)k % 3, all_slow ? 1.06 : 3.16, all_slow ? 1.06 : 1);
			/* for one rank alone: one long fragment in each third */
			for (uint32_t w = 0; w < WORKLOADS && hosts == 32 && !all_slow; w++) {
				for (int k = 1; k < SERIES_THIRDS; k++)
					all[w * 32 + 3].third_ns[k] = all[w * 32 + 3].third_ns[0];
				all[w * 32 + 3].view_squares *= 3;
				all[w * 32 + 3].view_squares -= 2 * 24 * pow(all[w * 32 + 3].reference_ns, 2);
			}
			assert_int_equal(find(FIRST), all_slow);
			if (all_slow)
				assert_near(only()->ratio, 1.06, 0.003);
		}
	}
}

/*
 * The speed of each rank varies over seconds, by 3 % from third to third, and hardly from fragment to fragment. Two
 * ranks of a host are then slower than the others in each third now and then, which is no slow host.
 */
static void test_wander(void **state)
{
	size_t found[2] = {0, 0};

	(void)state;
	for (int slow_host = 0; slow_host < 2; slow_host++) {
		for (uint64_t seed = 1; seed <= 500; seed++) {
			begin(8, 4, VAPRO_BY_INSTRUCTIONS);
			slow_down(1, 4, slow_host ? 1.12 : 1, slow_host ? 1.12 : 1);
			measure(seed, 0.04);
			for (uint32_t i = 0; i < book.count; i++)
				all[i].view_bundles = SERIES_THIRDS * MEMBERS;
			found[slow_host] += find(FIRST);
		}
	}
	assert_in_range(found[0], 0, 2); /* six by the scatter of fragments alone */
	assert_in_range(found[1], 400, 510);
}

/* Gives each rank so many fragments of `ns` in the first workload's history, asleep for most of the time or not. */
static void met(double n, double ns, bool asleep)
{
	measure(1, 0);
	for (uint32_t i = 0; i < book.count; i++) {
		struct series *series = &all[i];
		double own = ns * slow[0][i % job->row_count];

		series->certified = series->supported = false;
		memset(series->third_n, 0, sizeof(series->third_n));
		if (i >= job->row_count)
			continue;
		series->window_n = n;
		assert_int_equal(histogram__add(&series->cpu, asleep ? 0.1 * ns : own, n), 0);
		if (asleep)
			assert_int_equal(histogram__add(&series->net, own, n), 0);
	}
}

static void forget(void)
{
	for (uint32_t i = 0; i < book.count; i++) {
		histogram__clear(&all[i].cpu);
		histogram__clear(&all[i].net);
	}
}

/*
 * What a rank does once in a run has no reference, and what sleeps none on the CPU: ranks that take 1.4 times as long
 * as most others are a set by their median, of unknown cause. Counted work that is rare is judged elsewhere.
 */
static void test_median(void **state)
{
	(void)state;
	for (int asleep = 0; asleep < 2; asleep++) {
		for (int counted = 0; counted < 2; counted++) {
			begin(16, 8, counted ? VAPRO_BY_INSTRUCTIONS : VAPRO_BY_ARGUMENTS);
			slow_down(3, 8, 1.4, 1);
			met(asleep ? 100 : 1, asleep ? 1e8 : 1e10, asleep);
			assert_int_equal(find(FIRST), asleep || !counted);
			if (sets.count) {
				assert_rows(only(), 3, 8, 2);
				assert_near(only()->ratio, 1.4, 1e-6);
				assert_false(only()->certain || only()->variance);
			}
			forget();
		}
	}
	/* where half of the ranks differ, none is slow; a tenth more is no matter */
	for (int half = 0; half < 2; half++) {
		begin(16, 8, VAPRO_BY_ARGUMENTS);
		slow_down(1, half ? 2 : 8, half ? 1.4 : 1.1, 1);
		met(1, 1e10, false);
		assert_int_equal(find(FIRST), 0);
		forget();
	}
}

/* Ranks that agree with enough others are certified first: the slow ones stay a set until they are certified, too. */
static void test_median_certified(void **state)
{
	(void)state;
	for (int all_known = 0; all_known < 2; all_known++) {
		begin(16, 8, VAPRO_BY_ARGUMENTS);
		slow_down(3, 8, 1.4, 1);
		met(24, 2e9, false);
		for (uint32_t i = 0; i < 16; i++)
			all[i].certified = all_known || slow[0][i] < 1.2;
		assert_int_equal(find(FIRST), !all_known);
		if (sets.count)
			assert_rows(only(), 3, 8, 2);
		forget();
	}
}

/* A workload of one bundle has its deviation as scatter: its usual scatter is unknown. */
static void test_chance(void **state)
{
	struct series series = {.third_n = {0, 10, 0}, .third_ns = {0, 20, 0}, .view_bundles = 1, .view_squares = 40};

	(void)state;
	assert_near(series__view_chance(&series, 1.5), 25, 1e-9);
	/* ten more take 1 each: standard deviations of fragments are those of the means of 10 times sqrt(10) */
	series.third_n[2] = 10;
	series.third_ns[2] = 10;
	series.view_bundles = 2;
	series.view_squares += 10;
	assert_near(series__view_chance(&series, 1.5), 20 * 5, 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    SETS(test_bad_host),   SETS(test_half_of_the_job), SETS(test_bad_socket),
	    SETS(test_gap),	   SETS(test_two_sets),	       SETS(test_jitter),
	    SETS(test_not_steady), SETS(test_without_support), SETS(test_uncounted),
	    SETS(test_since),	   SETS(test_within_the_view), SETS(test_end_in_the_stride),
	    SETS(test_over),	   SETS(test_outlier),	       SETS(test_few_outliers),
	    SETS(test_wander),	   SETS(test_median),	       SETS(test_median_certified),
	    SETS(test_chance),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
