// SPDX-License-Identifier: GPL-2.0-or-later
/* What makes a variance an alarm: attributed time, in seconds and as a share; frequency; slow paths; places. */
#include "detect/evidence.h"
#include "detect/bundle_shares.h"
#include "painted.h"

static struct variance items[4];
static uint32_t rows[4][8];
static struct tally_series entries[4][8];
static struct variance_book book;
static struct series series[8];
static struct series_book series_book;
static struct workload workloads[] = {{.class = VAPRO_COMPUTATION, .series = SERIES_NONE},
				      {.class = VAPRO_COMPUTATION, .series = SERIES_NONE}};
static struct evidence_input input;

static int begin(void **state)
{
	setup(state);
	memset(items, 0, sizeof(items));
	book = (struct variance_book){.variances = items};
	for (uint32_t i = 0; i < 8; i++)
		series[i] = (struct series){.row = i};
	series_book = (struct series_book){
	    .config = &config, .series = series, .count = 8, .workloads = workloads, .workload_count = 2};
	input = (struct evidence_input){.config = &config,
					.map = &map,
					.job = job,
					.series = &series_book,
					.stg = stg,
					.begin = FIRST,
					.end = FIRST + 50};
	return 0;
}

#define EVIDENCE(f) cmocka_unit_test_setup_teardown(f, begin, teardown)

static struct variance *add(enum vapro_class class, uint32_t first, size_t count, double lost_s)
{
	uint32_t *own = rows[book.count];
	struct tally_series *entry = entries[book.count];
	struct variance *variance = &items[book.count++];

	/* each row lost its part in a hundred fragments of one state, which lasted three times as long */
	for (size_t i = 0; i < count; i++) {
		double lost = lost_s * 1e9 / (double)count;

		own[i] = first + (uint32_t)i;
		series[own[i]].class = class;
		entry[i] = (struct tally_series){.series = own[i], .n = 100, .dur = 1.5 * lost, .ref = 0.5 * lost};
		entry[i].lost = lost;
		entry[i].net = entry[i].dur;
		entry[i].longest = 3 * entry[i].ref / entry[i].n;
	}
	*variance = (struct variance){.id = (uint32_t)book.count,
				      .begin = FIRST + 10,
				      .end = FIRST + 40,
				      .rows = own,
				      .row_count = count,
				      .matched = true};
	variance->has[class] = true;
	variance->total.series = entry;
	variance->total.series_count = count;
	variance->total.dur[class] = lost_s * 1.5e9;
	variance->total.ref[class] = lost_s * 0.5e9;
	variance->total.lost[class] = lost_s * 1e9;
	return variance;
}

static void judge(void)
{
	evidence__judge(&book, &input);
}

static void assert_says(const struct variance *variance, bool alarm, const char *words)
{
	if (variance->alarm != alarm || !strstr(variance->evidence, words))
		fail_msg("alarm %d, not %d: %s", variance->alarm, alarm, variance->evidence);
}

/*
 * A hog takes 0.8 s of a second that a rank loses: confirmed. Then the region grows by unattributed loss: the proven
 * part stays, and is an alarm, as long as it is worth a report by itself.
 */
static void test_grown_region(void **state)
{
	static const struct {
		double attributed, lost;
		bool proven_before, alarm;
	} diagnoses[] = {
	    {0.8, 1, false, true},
	    {0.8, 10, true, true},
	    {0.8, 100, true, true},
	    {0.8, 10, false, false},
	    /* less than 100 ms: the attributed part of a large region may be chance */
	    {0.05, 10, true, false},
	};

	(void)state;
	/* two rows: without counts several ranks that slow down may have more work */
	for (size_t c = 0; c < sizeof(diagnoses) / sizeof(diagnoses[0]); c++) {
		for (int frequency = 0; frequency < 2; frequency++) {
			struct variance *variance;

			book.count = 0;
			variance = add(VAPRO_COMPUTATION, 0, 2, diagnoses[c].lost);
			*(frequency ? &variance->total.frequency : &variance->total.cpu[VAPRO_COMPUTATION]) =
			    diagnoses[c].attributed * 1e9;
			variance->proven = diagnoses[c].proven_before;
			judge();
			assert_says(variance, diagnoses[c].alarm,
				    !diagnoses[c].alarm ? ""
				    : frequency		? "the machine attributes"
							: "the kernel attributes");
		}
	}
}

/* A region grows from one revision to the next. */
static void test_grown_by_revisions(void **state)
{
	struct variance *variance = add(VAPRO_COMPUTATION, 0, 2, 1);

	(void)state;
	variance->total.cpu[VAPRO_COMPUTATION] = 0.9e9;
	variance->state = VAPRO_REGION_OPEN;
	for (int window = 0; window < 5; window++) {
		judge();
		assert_says(variance, true, "the kernel attributes");
		variance__emit(variance, 0.1);
		assert_true(variance->emitted.confirmed);
		variance->total.lost[VAPRO_COMPUTATION] += 5e9;
		variance->end += 50;
		variance->state = VAPRO_REGION_CHANGED;
	}
}

/* Adds bundles of all four ranks, at a lower frequency than usual, or without a reported frequency. */
static void slow_all(double frequency, struct bundle_rec *rec)
{
	for (uint32_t row = 0; row < 4; row++) {
		for (int bin = 10; bin < 40; bin++) {
			struct bundle_rec *at = &rec[row * 30 + (uint32_t)bin - 10];
			float *factor = calloc(BUNDLE_FACTORS, sizeof(*factor));

			assert_non_null(factor);
			*at = fragment(bin, bin + 0.999, 0.7 * BIN, 0);
			at->factor = factor;
			factor[VAPRO_FREQUENCY] = (float)((frequency + 0.05) * BIN);
			factor[BUNDLE_USUAL_FREQUENCY] = (float)(0.05 * BIN);
			at->series = row;
			at->certified = 1;
			assert_int_equal(heatmap__add(&map, at, row, VAPRO_COMPUTATION, 0, UINT64_MAX), 0);
		}
	}
}

/*
 * Where all ranks slow down alike only the machine itself can say that it was no change of work: a power cap is an
 * alarm where frequency is reported, and none where it is not.
 */
static void test_frequency_of_all(void **state)
{
	static const double frequency[] = {0.28, 0.1, 0};

	for (size_t c = 0; c < 3; c++) {
		uint32_t ids = 0;
		struct variance_book own = {.last_id = &ids};
		struct region_result drafts;
		struct parts parts = {0};
		struct bundle_rec rec[4 * 30];

		if (c)
			begin(state);
		slow_all(frequency[c], rec);
		assert_int_equal(grown(&drafts), 1);
		assert_int_equal(variance__match(&own, &map, job, &drafts, FIRST + 50, true), 0);
		region__clear(&drafts);
		assert_int_equal(own.count, 1);
		assert_int_equal(own.variances[0].row_count, 4);
		assert_int_equal(bundle_shares__find(&parts, &map, &series_book, rec, NULL, 4 * 30, FIRST + 50, FIRST),
				 0);
		assert_int_equal(bundle_shares__tally(&parts, &own, &series_book), 0);
		assert_near(own.variances[0].total.frequency / (120 * BIN), frequency[c], 0.001);
		evidence__judge(&own, &input);
		if (c == 0)
			assert_says(&own.variances[0], true, "a lower CPU frequency");
		else
			assert_says(&own.variances[0], false, "all ranks slowed alike");
		assert_int_equal(own.variances[0].alike, c > 0);
		/* with counts equal work that takes longer is an alarm in any case */
		input.source = VAPRO_BY_INSTRUCTIONS;
		evidence__judge(&own, &input);
		assert_true(own.variances[0].alarm);
		for (size_t i = 0; i < 4 * 30; i++)
			free((void *)rec[i].factor);
		free(parts.items);
		variance__free(&own);
		if (c < 2)
			teardown(state);
	}
}

/* Against a reference without support a loss is shown, and confirmed only by attributed time. */
static void test_provisional(void **state)
{
	struct variance *variance = add(VAPRO_COMPUTATION, 0, 1, 2);

	(void)state;
	input.source = VAPRO_BY_INSTRUCTIONS;
	variance->total.provisional = 1.5e9;
	judge();
	assert_says(variance, false, "too little was seen");
	variance->total.cpu[VAPRO_COMPUTATION] = 1.2e9;
	judge();
	assert_says(variance, true, "the kernel attributes");
	variance->total.cpu[VAPRO_COMPUTATION] = 0;
	variance->total.provisional = 0.5e9;
	judge();
	assert_says(variance, true, "the same instructions took longer");
}

/* One unattributed fragment is an outlier, in both modes: programs have some. An attributed fragment is none. */
static void test_one_fragment(void **state)
{
	(void)state;
	for (int counted = 0; counted < 2; counted++) {
		struct variance *variance;

		input.source = counted ? VAPRO_BY_INSTRUCTIONS : VAPRO_BY_ARGUMENTS;
		book.count = 0;
		variance = add(VAPRO_COMPUTATION, 0, 1, 0.5);
		entries[0][0].longest = entries[0][0].lost + entries[0][0].ref / entries[0][0].n;
		judge();
		assert_says(variance, false, "only one fragment");
		assert_true(variance->outlier);
		variance->total.cpu[VAPRO_COMPUTATION] = 0.4e9;
		judge();
		assert_says(variance, true, "the kernel attributes");
		assert_false(variance->outlier);
	}
}

/* Without counts ranks of one place are likely slow, ranks of several places may have got work. */
static void test_without_counts(void **state)
{
	struct variance *variance;

	(void)state;
	other_job(8, 4);
	input.job = job;
	input.stg = stg;
	variance = add(VAPRO_COMPUTATION, 3, 1, 2);
	rows[0][1] = 7;
	variance->row_count = 2;
	judge();
	assert_says(variance, false, "the ranks of one place");
	assert_true(variance->by_place);
	/* ranks 3 and 6 are on two hosts */
	rows[0][1] = 6;
	judge();
	assert_says(variance, false, "several ranks are slow");
	assert_false(variance->by_place);
	/* a third slow rank at the same time indicates the program */
	add(VAPRO_COMPUTATION, 1, 1, 2);
	judge();
	assert_says(variance, false, "work may have moved");
	/* the constant slowness of a set of ranks is by place, too */
	book.count = 1;
	variance->lasting = true;
	judge();
	assert_true(variance->by_place && !variance->alarm);
}

/* All ranks compute at their usual speed, except `slow`, if any. */
static void compute(uint32_t slow, double its_performance)
{
	for (uint32_t row = 0; row < 4; row++)
		paint(row, 0, 50, VAPRO_COMPUTATION, row == slow ? its_performance : 1, false);
}

/* Adds equal calls of one rank that last three times as long, on a path of their own. */
static struct variance *add_path(void)
{
	struct variance *variance = add(VAPRO_COMMUNICATION, 3, 1, 2);

	variance->path = true;
	return variance;
}

/* A slow path has a verdict of its own, once it is proven and no late peer can have been the reason. */
static void test_slow_path(void **state)
{
	struct variance *variance;

	(void)state;
	variance = add_path();
	/* the ranks' concurrent computation is unknown */
	judge();
	assert_says(variance, false, "late peers cannot be excluded");
	compute(UINT32_MAX, 1);
	judge();
	assert_says(variance, false, "as slow at other times");
	series[3].slower = true;
	judge();
	assert_says(variance, true, "take 3.0 times as long");
	input.partial = true;
	judge();
	assert_says(variance, false, "not all ranks");
	input.partial = false;
	variance->total.provisional = 1.5e9;
	judge();
	assert_says(variance, false, "too little was seen");
}

static void test_slow_path_beside_variance(void **state)
{
	struct variance *variance;

	(void)state;
	variance = add_path();
	series[3].slower = true;
	compute(1, 0.3);
	judge();
	assert_says(variance, false, "late peers cannot be excluded");
}

/* Calls that were faster before, beyond their scatter, are proven without other ranks. */
static void test_faster_before(void **state)
{
	struct variance *variance;

	(void)state;
	variance = add_path();
	compute(UINT32_MAX, 1);
	/* 1,000 calls of 10 ms in 100 bundles, some of them 11 ms */
	series[3].usual = (struct series_usual){.n = 1000, .bundles = 100, .dur = 1e10, .dur_sq = 1.01e17};
	series[3].usual.net = series[3].usual.dur;
	series[3].usual.net_sq = series[3].usual.dur_sq;
	judge();
	assert_says(variance, true, "times as long as usual while no rank was late");
	/* calls that scatter by as much prove nothing */
	series[3].usual.dur_sq = series[3].usual.net_sq = 1e18;
	judge();
	assert_says(variance, false, "as slow at other times");
}

static void repeat(struct series_usual *usual, double n, double ns)
{
	const struct series_usual sums = {n, n, n * ns, n * ns * ns, n * ns, n * ns * ns};

	series__merge_usual(usual, &sums, 1);
}

/*
 * 12 calls took 10 ms, and since then calls take 30 ms: a lasting slowdown does not become usual, however long it
 * lasts, but calls that were as slow at other times are usual.
 */
static void test_goes_on(void **state)
{
	static const double lengths[] = {3, 20, 1000};

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct variance *variance;

		book.count = 0;
		variance = add_path();
		compute(UINT32_MAX, 1);
		series[3].usual = series[3].usual_live = (struct series_usual){0};
		repeat(&series[3].usual, 12, 10e6);
		repeat(&series[3].usual_live, lengths[i], 30e6);
		repeat(&entries[0][0].own, lengths[i], 30e6);
		judge();
		assert_says(variance, true, "take 3.0 times as long as usual");
		repeat(&series[3].usual, 100, 30e6);
		judge();
		assert_says(variance, false, "as slow at other times");
	}
}

/* Two calls that took 30 ms among 12 that took 10 ms do not go on: any state has outliers. */
static void test_does_not_go_on(void **state)
{
	struct tally_series *entry = &entries[0][0];
	struct variance *variance;

	(void)state;
	for (int calls = 2; calls <= 3; calls++) {
		book.count = 0;
		variance = add_path();
		compute(UINT32_MAX, 1);
		entry->n = calls;
		entry->dur = entry->net = calls * 30e6;
		entry->ref = calls * 10e6;
		entry->lost = calls * 20e6;
		series[3].usual = (struct series_usual){0};
		repeat(&series[3].usual, 12, 10e6);
		repeat(&series[3].usual, calls, 30e6);
		repeat(&entry->own, calls, 30e6);
		judge();
		assert_says(variance, calls > 2, calls > 2 ? "as long as usual" : "as slow at other times");
	}
}

/* One rank is slow by three times in two states, of which the second takes a hundredth of the time. */
static struct variance *two_states(double its_slowdown)
{
	struct tally_series *entry = &entries[0][1];
	struct variance *variance;

	book.count = 0;
	input.source = VAPRO_BY_ARGUMENTS;
	variance = add(VAPRO_COMPUTATION, 0, 1, 2);
	series[1] = (struct series){.row = 0, .workload = 1, .class = VAPRO_COMPUTATION};
	*entry = (struct tally_series){.series = 1, .n = 100, .dur = its_slowdown * 1e7, .ref = 1e7};
	entry->net = entry->dur;
	entry->lost = entry->dur - entry->ref;
	entry->longest = entry->dur / 100;
	for (int i = 0; i < 2; i++) {
		series[i].usual = (struct series_usual){0};
		repeat(&series[i].usual, 1000, entries[0][i].ref / entries[0][i].n);
	}
	variance->total.series_count = 2;
	variance->total.pair_base = variance->total.pair_lost = 2e9;
	return variance;
}

/* A short state is a second witness where it is as slow as the long one; a slowdown from the start proves nothing. */
static void test_short_witness(void **state)
{
	struct variance *variance;

	(void)state;
	variance = two_states(3);
	judge();
	assert_says(variance, true, "different states of one rank");
	variance = two_states(1.4);
	judge();
	assert_says(variance, false, "no second state");
	variance = two_states(3);
	variance->begin = 8; /* bins after the rank began */
	judge();
	assert_says(variance, false, "first seen");
}

/* A variance knows its own part of usual calls, over windows, without the calls that its alarm excluded. */
static void test_own_part(void **state)
{
	struct variance *variance;

	(void)state;
	book = (struct variance_book){.variances = items};
	for (int alarm = 0; alarm < 2; alarm++) {
		const struct tally_series *entry;

		items[0] = (struct variance){.id = 1, .end = FIRST + 40, .matched = true, .alarm = alarm};
		variance = &items[0];
		book.count = 1;
		for (int i = 0; i < 4; i++) {
			struct bundle_rec rec = fragment(10 + i, 11 + i, 0.5 * BIN, 0);

			rec.series = 3;
			rec.learnt = i != 1;
			assert_int_equal(tally__add(i < 2 ? &variance->retiring : &variance->staying, &rec,
						    VAPRO_COMPUTATION, 0.5, false, 0, 1),
					 0);
		}
		assert_near(tally__of(&variance->retiring, 3)->own.n, 0.5, 1e-9);
		assert_near(tally__of(&variance->staying, 3)->own.net, BIN, 1);
		assert_null(tally__of(&variance->staying, 2));
		assert_int_equal(variance__retire(&book, &map), 0);
		entry = tally__of(&variance->history, 3);
		assert_near(entry->n, 1, 1e-9);
		assert_near(entry->own.n, alarm ? 0 : 0.5, 1e-9);
		tally__clear(&variance->history);
	}
}

/* A read on a pipe takes as long as the other end wants, unless the reader itself was stopped in it. */
static void test_stopped_in_io(void **state)
{
	const struct vapro_state pipe = {.class = VAPRO_IO, .to = "exe+0x10", .labels = "fd_kind=pipe function=read"};
	struct variance *variance = add(VAPRO_IO, 1, 1, 2);

	(void)state;
	assert_int_equal(stg__add_state(stg, &pipe), 0);
	judge();
	assert_says(variance, false, "on a pipe");
	variance->total.cpu[VAPRO_IO] = 1.9e9;
	judge();
	assert_says(variance, true, "the kernel attributes 95 %");
	/* also in a call without a reference */
	variance->total.no_reference = 2e9;
	judge();
	assert_says(variance, true, "the kernel attributes 95 %");
}

/* A computation that had no CPU, and IO that slept meanwhile, are a disturbance of the computation. */
static void test_preempted_beside_io(void **state)
{
	struct variance *variance = add(VAPRO_COMPUTATION, 1, 1, 0.7);

	(void)state;
	variance->total.cpu[VAPRO_COMPUTATION] = 0.7e9;
	variance->has[VAPRO_IO] = true;
	variance->total.lost[VAPRO_IO] = 0.9e9;
	variance->total.cpu[VAPRO_IO] = 0.1e9;
	judge();
	assert_int_equal(variance->class, VAPRO_COMPUTATION);
	assert_says(variance, true, "the kernel attributes 100 %");
	/* where the computation lost little, it is the IO's */
	variance->total.lost[VAPRO_IO] = 3e9;
	judge();
	assert_int_equal(variance->class, VAPRO_IO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    EVIDENCE(test_grown_region),
	    EVIDENCE(test_grown_by_revisions),
	    EVIDENCE(test_frequency_of_all),
	    EVIDENCE(test_provisional),
	    EVIDENCE(test_one_fragment),
	    EVIDENCE(test_without_counts),
	    EVIDENCE(test_slow_path),
	    EVIDENCE(test_slow_path_beside_variance),
	    EVIDENCE(test_faster_before),
	    EVIDENCE(test_goes_on),
	    EVIDENCE(test_does_not_go_on),
	    EVIDENCE(test_short_witness),
	    EVIDENCE(test_own_part),
	    EVIDENCE(test_stopped_in_io),
	    EVIDENCE(test_preempted_beside_io),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
