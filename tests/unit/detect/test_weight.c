// SPDX-License-Identifier: GPL-2.0-or-later
/* The cost of variances for the job decides which variances are alarms, and their severity. */
#include "detect/weight.h"
#include "painted.h"

#define STRIDE 50 /* bins, 10 s */

static struct variance items[4];
static uint64_t age_bins = STRIDE; /* of the job */
static struct variance_book book;

static void empty(void)
{
	memset(items, 0, sizeof(items));
	book = (struct variance_book){.variances = items};
}

static int begin(void **state)
{
	empty();
	age_bins = STRIDE;
	return setup(state);
}

#define WEIGHT(f) cmocka_unit_test_setup_teardown(f, begin, teardown)

/* Adds a confirmed variance with this loss. */
static struct variance *add(double lost_ns, uint64_t bins)
{
	struct variance *variance = &items[book.count++];

	*variance = (struct variance){.id = (uint32_t)book.count,
				      .begin = FIRST,
				      .end = FIRST + bins,
				      .matched = true,
				      .class = VAPRO_COMPUTATION,
				      .confirmed = true,
				      .alarm = true};
	variance->total.lost[VAPRO_COMPUTATION] = lost_ns;
	return variance;
}

/* Adds waiting of other rows for the first variance. */
static void add_caused(double ns)
{
	items[0].others = (double)job->row_count - 1;
	items[0].total.caused[TALLY_OTHER] += ns;
}

/* Adds a region of waiting for the first variance. */
static struct variance *add_effect(double lost_ns, uint64_t bins)
{
	struct variance *effect = add(lost_ns, bins);

	effect->class = VAPRO_COMMUNICATION;
	effect->total.lost[VAPRO_COMPUTATION] = 0;
	effect->total.lost[VAPRO_COMMUNICATION] = lost_ns;
	effect->waiting = true;
	effect->effect_of = 1;
	effect->confirmed = effect->alarm = false;
	return effect;
}

/* Judges a job that began with the first bin and has its age. */
static void judge(void)
{
	for (size_t row = 0; row < job->row_count; row++)
		((struct stg_row *)job->rows)[row].from_ns = (uint64_t)(FIRST * BIN);
	assert_int_equal(weight__judge(&book, job, &config, (uint64_t)((FIRST + (double)age_bins) * BIN)), 0);
}

/* 50 ms of one of 64 ranks that hold up the other 63 cost the job 3.2 s; alone they cost next to nothing. */
static void test_one_of_64(void **state)
{
	(void)state;
	for (int holds_up = 0; holds_up < 2; holds_up++) {
		empty();
		other_job(64, 8);
		add(50e6, 2);
		if (holds_up)
			add_caused(63 * 50e6);
		judge();
		assert_near(items[0].caused_ns, holds_up ? 63 * 50e6 : 0, 1);
		assert_near(items[0].share, (holds_up ? 64 : 1) * 0.05 / (64 * 10), 1e-9);
		assert_int_equal(items[0].small, !holds_up);
		assert_int_equal(items[0].alarm, holds_up);
		assert_int_equal(items[0].severity, holds_up ? VAPRO_WARNING : VAPRO_INFO);
	}
}

/* A timer tick of 4 ms of one of 4,096 ranks holds up all others and still is no report. */
static void test_tick_of_4096(void **state)
{
	(void)state;
	other_job(4096, 8);
	add(4e6, 1);
	add_caused(4095 * 4e6);
	judge();
	assert_near(items[0].share, 4e6 / 10e9, 1e-9);
	assert_true(items[0].small && !items[0].alarm);
	assert_int_equal(items[0].severity, VAPRO_INFO);
}

/*
 * An effect names its cause only where that is listed. Without, it is waiting like any other, of which only much is
 * worth a report.
 */
static void test_effect_of_the_unlisted(void **state)
{
	(void)state;
	for (int much = 0; much < 2; much++) {
		empty();
		other_job(4096, 8);
		add(4e6, STRIDE * 100); /* it lasts so long that its share is small, whatever it causes */
		add_effect(much ? 0.02 * 4096 * 10e9 : 110e6, STRIDE);
		judge();
		assert_true(items[0].small && !items[0].alarm);
		assert_int_equal(items[1].effect_of, 0);
		assert_int_equal(items[1].small, !much);
		assert_null(strstr(items[1].evidence, "variance 1"));
	}
	/* a cause that was listed is known */
	items[0].emitted_once = true;
	items[1].effect_of = 1;
	judge();
	assert_int_equal(items[1].effect_of, 1);
}

/* 100 ms of own loss in one region count in a job of any size; just below they do not. */
static void test_own_loss(void **state)
{
	(void)state;
	other_job(4096, 8);
	add(101e6, 2);
	add(99e6, 2);
	judge();
	assert_true(items[0].alarm && !items[0].small);
	assert_int_equal(items[0].severity, VAPRO_WARNING);
	assert_true(!items[1].alarm && items[1].small);
}

#define MINUTE 300 /* bins */
#define HOUR (60 * MINUTE)

/* Severity goes by the greatest share of the ranks' time in any hour, or of the whole job while it is shorter. */
static void test_severity(void **state)
{
	static const struct {
		double lost_ns;
		uint64_t bins, age;
		enum vapro_severity severity;
		double denominator_ns;
	} diagnoses[] = {
	    /* of four ranks: 40 s in ten seconds */
	    {0.05 * 40e9 + 1e6, 10, STRIDE, VAPRO_CRITICAL, 40e9},
	    {0.05 * 40e9 - 1e6, 10, STRIDE, VAPRO_WARNING, 40e9},
	    {0.05 * 40e9 + 1e6, STRIDE, STRIDE, VAPRO_CRITICAL, 40e9},
	    /* the same loss in a job three times as old */
	    {0.05 * 40e9 + 1e6, STRIDE, 3 * STRIDE, VAPRO_WARNING, 120e9},
	    {0.15 * 40e9 + 1e6, 3 * STRIDE, 3 * STRIDE, VAPRO_CRITICAL, 120e9},
	    {0.002 * 40e9, 1, STRIDE, VAPRO_WARNING, 40e9},
	    /* after an hour its age does not matter: 14,400 s of four ranks in an hour */
	    {0.05 * 14400e9 + 1e6, 10, 10 * HOUR, VAPRO_CRITICAL, 14400e9},
	    {0.05 * 14400e9 - 1e6, 10, 10 * HOUR, VAPRO_WARNING, 14400e9},
	    /* what lasts for two hours has half of its loss in one */
	    {0.10 * 14400e9 + 1e9, 2 * HOUR, 10 * HOUR, VAPRO_CRITICAL, 14400e9},
	    {0.10 * 14400e9 - 1e9, 2 * HOUR, 10 * HOUR, VAPRO_WARNING, 14400e9},
	};

	(void)state;
	for (size_t c = 0; c < sizeof(diagnoses) / sizeof(diagnoses[0]); c++) {
		empty();
		add(diagnoses[c].lost_ns, diagnoses[c].bins);
		age_bins = diagnoses[c].age;
		judge();
		assert_int_equal(items[0].severity, diagnoses[c].severity);
		assert_near(items[0].denominator_ns, diagnoses[c].denominator_ns, 1e6);
		assert_true(items[0].alarm);
	}
}

/* The same loss in the first minute and in hour 9 has the same severity, and is listed alike. */
static void test_when_it_comes(void **state)
{
	static const uint64_t begins[] = {10, MINUTE - 5, HOUR - 5, 9 * HOUR, 10 * HOUR - 20};
	static const double losses[] = {90e6, 0.3e9, 20e9, 800e9};

	(void)state;
	age_bins = 10 * HOUR;
	for (size_t l = 0; l < sizeof(losses) / sizeof(*losses); l++) {
		struct variance first = {0};

		for (size_t b = 0; b < sizeof(begins) / sizeof(*begins); b++) {
			empty();
			add(losses[l], 10);
			items[0].begin += begins[b];
			items[0].end += begins[b];
			judge();
			first = b ? first : items[0];
			assert_int_equal(items[0].severity, first.severity);
			assert_int_equal(items[0].small, first.small);
			assert_near(items[0].rated_share, first.rated_share, 1e-9);
		}
	}
}

/* Nobody is rated by more than all of the time, and rows that came late or ended are not counted before and after. */
static void test_denominator(void **state)
{
	(void)state;
	for (uint32_t rank = 1; rank < 4; rank++)
		assert_int_equal(stg__thread_seen(stg, rank, 1, (uint64_t)((FIRST + HOUR) * BIN)), 0);
	job = stg__job(stg, 0);
	add(100e9, 10);
	items[0].begin += 5 * HOUR;
	items[0].end += 5 * HOUR;
	age_bins = 10 * HOUR;
	judge();
	assert_near(items[0].denominator_ns, 3600e9, 1e6);
	assert_near(items[0].rated_share, 100.0 / 3600, 1e-9);
	items[0].total.lost[VAPRO_COMPUTATION] = 9000e9;
	judge();
	assert_near(items[0].rated_share, 1, 0);
}

/* Both borders of severity can be set, and so can the share below which nothing is reported. */
static void test_tunables(void **state)
{
	(void)state;
	add(60e6, 2); /* 0.0015 of the time of ten seconds */
	judge();
	assert_int_equal(items[0].severity, VAPRO_WARNING);
	config.warning_share = 0.002;
	items[0].alarm = true;
	judge();
	assert_int_equal(items[0].severity, VAPRO_INFO);
	assert_true(items[0].alarm);
	config.critical_share = 0.001;
	judge();
	assert_int_equal(items[0].severity, VAPRO_CRITICAL);
	config.min_share = 0.01;
	judge();
	assert_true(items[0].small && !items[0].alarm);
	assert_int_equal(items[0].severity, VAPRO_INFO);
	/* with no least loss at all, everything counts */
	config.min_lost_s = 0;
	items[0].alarm = true;
	judge();
	assert_true(!items[0].small && items[0].alarm);
}

/* A variance that is no alarm is information, whatever its cost, and stays no alarm. */
static void test_unconfirmed(void **state)
{
	(void)state;
	add(20e9, STRIDE);
	items[0].confirmed = items[0].alarm = false;
	judge();
	assert_false(items[0].alarm || items[0].small);
	assert_int_equal(items[0].severity, VAPRO_INFO);
}

/* The time of ranks that had ended, or came later, is no part of the job's. */
static void test_ended_ranks(void **state)
{
	(void)state;
	for (uint32_t rank = 1; rank < 4; rank++)
		assert_int_equal(stg__thread_seen(stg, rank, 1, (uint64_t)(FIRST * BIN) - 1), 0);
	job = stg__job(stg, 0);
	add(0.5e9, STRIDE);
	judge();
	assert_near(items[0].share, 0.05, 1e-9);
	assert_int_equal(items[0].severity, VAPRO_CRITICAL);
}

/* Waiting is bounded by what the other rows can wait for a part of a loss, and its parts add up. */
static void test_bounded(void **state)
{
	(void)state;
	add(50e6, 2);
	add_caused(30e6);
	judge();
	assert_near(items[0].caused_ns, 30e6, 1);
	add_caused(9e9);
	judge();
	assert_near(items[0].caused_ns, 3 * 50e6, 1);
	items[0].total.attributed[VAPRO_COMPUTATION] = 50e6;
	items[0].total.causes = &(struct tally_cause){.part = TALLY_STOPPED, .lost = 20e6};
	items[0].total.cause_count = 1;
	items[0].total.caused[TALLY_STOPPED] = 1e9;
	judge();
	assert_near(items[0].caused_ns, 3 * 20e6 + 3 * 30e6, 1);
	assert_true(!items[0].small && items[0].alarm);
}

/* Only much waiting without a cause is reported: ranks wait for each other all the time. */
static void test_waiting_without_cause(void **state)
{
	static const struct {
		double share;
		bool small;
	} diagnoses[] = {{0.005, true}, {0.02, false}};

	(void)state;
	for (size_t c = 0; c < sizeof(diagnoses) / sizeof(diagnoses[0]); c++) {
		empty();
		add_effect(diagnoses[c].share * 40e9, 5);
		items[0].effect_of = 0;
		judge();
		assert_int_equal(items[0].small, diagnoses[c].small);
	}
}

/* A gain is no loss. */
static void test_gain(void **state)
{
	(void)state;
	add(-5e9, STRIDE);
	add_effect(-1e9, STRIDE);
	judge();
	assert_near(items[0].share, 0, 0);
	assert_true(items[0].small && !items[0].alarm);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    WEIGHT(test_one_of_64),   WEIGHT(test_tick_of_4096), WEIGHT(test_effect_of_the_unlisted),
	    WEIGHT(test_own_loss),    WEIGHT(test_severity),	 WEIGHT(test_tunables),
	    WEIGHT(test_unconfirmed), WEIGHT(test_ended_ranks),	 WEIGHT(test_when_it_comes),
	    WEIGHT(test_denominator), WEIGHT(test_bounded),	 WEIGHT(test_waiting_without_cause),
	    WEIGHT(test_gain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
