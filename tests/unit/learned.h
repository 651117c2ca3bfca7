/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A book of ranks with one kind of state, which learns bundles as windows do when they retire them; included by the
 * one file that is the test. Times ns. */
#ifndef VAPRO_TESTS_LEARNED_H
#define VAPRO_TESTS_LEARNED_H

#include "model/judge.h"
#include "model/series.h"
#include "near.h"
#include "sim.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SECOND 5 /* bins */
#define FIRST (SIM_BEGIN_NS / VAPRO_BIN_NS)
#define WORK 1e6 /* work: instructions of a computation */
#define BYTES 8192

static struct vapro_config config;
static struct stg *stg;
static struct series_book book;
static enum vapro_class class_of_book;

/* Makes two states of one kind; their labels differ beyond `common`. */
static inline void begin_kind(uint32_t ranks, enum vapro_workload_source source, enum vapro_class class,
			      const char *labels[2], const char *common)
{
	class_of_book = class;
	sim_config(&config);
	stg = stg__new();
	for (uint32_t i = 0; i < ranks; i++) {
		struct vapro_thread thread = {.id = i,
					      .rank = (int32_t)i,
					      .pid = i + 1,
					      .job = "j",
					      .host = i % 2 ? "odd" : "even",
					      .world_size = ranks};

		assert_int_equal(stg__add_thread(stg, &thread), 0);
	}
	for (uint32_t i = 0; i < 2; i++) {
		struct vapro_state about = {.id = i,
					    .class = class,
					    .from = class == VAPRO_COMPUTATION ? "a+0" : NULL,
					    .to = "a+1",
					    .labels = labels[i],
					    .common = common};

		assert_int_equal(stg__add_state(stg, &about), 0);
	}
	assert_int_equal(series__init(&book, &config, source, stg), 0);
}

static inline void begin(uint32_t ranks, enum vapro_workload_source source, enum vapro_class class, const char *common)
{
	const char *labels[] = {"peer=1", "peer=2"};

	begin_kind(ranks, source, class, labels, common);
}

static inline void finish(void)
{
	series__free(&book);
	stg__free(stg);
}

/* Returns n fragments of a rank that lasted ns each and ended in a bin. */
static inline struct vapro_bundle made(uint32_t rank, uint64_t bin, uint32_t n, double ns)
{
	struct vapro_bundle b = {.thread = rank, .n = n, .sum_ns = (uint64_t)(n * ns)};
	enum vapro_magnitude magnitude = class_of_book == VAPRO_COMPUTATION ? VAPRO_INSTRUCTIONS : VAPRO_BYTES;

	b.min_ns = b.max_ns = (uint64_t)ns;
	b.end_ns = (FIRST + bin + 1) * VAPRO_BIN_NS;
	b.start_ns = n == 1 ? b.end_ns - b.sum_ns : b.end_ns - VAPRO_BIN_NS;
	b.magnitude_min[magnitude] = b.magnitude_max[magnitude] = class_of_book == VAPRO_COMPUTATION ? WORK : BYTES;
	return b;
}

static inline struct series *learn_bundle(const struct vapro_bundle *bundle, bool disturbed)
{
	struct series *series;
	struct bundle_rec rec;

	assert_int_equal(
	    series__add(&book, (struct series_of){bundle->thread, bundle->state}, bundle, bundle->factor, &rec), 0);
	series = &book.series[rec.series];
	if (series__learns(series, &rec, disturbed)) {
		assert_int_equal(series__learn(&book, &rec, bundle_rec__bin(&rec), false), 0);
		series__add_usual(&series->usual, series->class, &rec);
	}
	series->disturbed_n += disturbed ? rec.n : 0;
	series__drop(&book, &rec);
	return series;
}

static inline struct series *learn(uint32_t rank, uint64_t bin, uint32_t n, double ns, bool disturbed)
{
	struct vapro_bundle b = made(rank, bin, n, ns);

	return learn_bundle(&b, disturbed);
}

/* Adds the first members, from which nothing is learnt. */
static inline void warm_up(uint32_t ranks, double ns)
{
	for (uint32_t rank = 0; rank < ranks; rank++)
		learn(rank, 0, SERIES_WARM_UP, ns, false);
}

/* Adds a batch of five for every rank in each bin of [from, to), with the same level but for one rank. */
static inline void learn_all(uint32_t ranks, uint64_t from, uint64_t to, double ns, uint32_t other, double other_ns)
{
	for (uint64_t bin = from; bin < to; bin++)
		for (uint32_t rank = 0; rank < ranks; rank++)
			learn(rank, bin, 5, rank == other ? other_ns : ns, false);
}

static inline void refresh(void)
{
	assert_int_equal(judge__refresh(&book), 0);
}

/* Returns a rank's latest series: with a second state, the second state's. */
static inline struct series *series_of(uint32_t rank)
{
	for (size_t i = book.count; i-- > 0;)
		if (book.series[i].row == stg__thread(stg, rank)->row)
			return &book.series[i];
	fail_msg("rank %u has no series", rank);
	return NULL;
}

static inline double reference(uint32_t rank)
{
	return series_of(rank)->reference_ns;
}

/* Returns the verdict on one more fragment. */
static inline struct bundle_rec judged(uint32_t rank, uint64_t bin, double ns)
{
	struct vapro_bundle b = made(rank, bin, 1, ns);
	struct bundle_rec rec;

	assert_int_equal(series__add(&book, (struct series_of){b.thread, b.state}, &b, b.factor, &rec), 0);
	refresh();
	judge__bundle(&book, &rec);
	return rec;
}

#endif
