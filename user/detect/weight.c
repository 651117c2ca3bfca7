// SPDX-License-Identifier: GPL-2.0-or-later
#include "detect/weight.h"

#include "detect/caused.h"
#include "detect/evidence.h"
#include "detect/rating.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define WAITING_MORE 10 /* times min_share: least share of waiting that is emitted */

/* Begins and ends of rows, each in order, and the sums of those before: many variances count the time of rows alive. */
struct lives {
	uint64_t *from, *to;
	double *from_sums, *to_sums; /* ns since the first begin */
	size_t from_count, to_count;
	uint64_t now_ns; /* end of the window */
};

static int compare_times(const void *a, const void *b)
{
	const uint64_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

static int lives_of(const struct stg_job *job, struct lives *lives)
{
	lives->from = malloc((job->row_count + 1) * sizeof(*lives->from));
	lives->to = malloc((job->row_count + 1) * sizeof(*lives->to));
	lives->from_sums = malloc((job->row_count + 1) * sizeof(*lives->from_sums));
	lives->to_sums = malloc((job->row_count + 1) * sizeof(*lives->to_sums));
	if (!lives->from || !lives->to || !lives->from_sums || !lives->to_sums)
		return -ENOMEM;
	for (size_t row = 0; row < job->row_count; row++) {
		const struct stg_row *at = &job->rows[row];

		if (!at->from_ns)
			continue;
		lives->from[lives->from_count++] = at->from_ns;
		if (at->to_ns)
			lives->to[lives->to_count++] = at->to_ns > at->from_ns ? at->to_ns : at->from_ns;
	}
	qsort(lives->from, lives->from_count, sizeof(*lives->from), compare_times);
	qsort(lives->to, lives->to_count, sizeof(*lives->to), compare_times);
	lives->from_sums[0] = lives->to_sums[0] = 0;
	for (size_t i = 0; i < lives->from_count; i++)
		lives->from_sums[i + 1] = lives->from_sums[i] + (double)(lives->from[i] - lives->from[0]);
	for (size_t i = 0; i < lives->to_count; i++)
		lives->to_sums[i + 1] = lives->to_sums[i] + (double)(lives->to[i] - lives->from[0]);
	return 0;
}

static void clear(struct lives *lives)
{
	free(lives->from);
	free(lives->to);
	free(lives->from_sums);
	free(lives->to_sums);
}

/* Counts the times before another one. */
static size_t count_before(const uint64_t *times, size_t count, uint64_t before)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (times[middle] < before)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Counts rows that began before a variance's end, less those over at its begin. */
static size_t alive(const struct lives *lives, const struct variance *variance)
{
	return count_before(lives->from, lives->from_count, variance->end * VAPRO_BIN_NS) -
	       count_before(lives->to, lives->to_count, variance->begin * VAPRO_BIN_NS + 1);
}

static double own_loss(const struct variance *variance)
{
	return variance__lost(variance);
}

/* Returns the time that rows lived before a moment, ns. */
static double lived_before(const struct lives *lives, uint64_t before)
{
	size_t begun = count_before(lives->from, lives->from_count, before);
	size_t ended = count_before(lives->to, lives->to_count, before);
	double since = begun ? (double)(before - lives->from[0]) : 0;

	return since * (double)begun - lives->from_sums[begun] - (since * (double)ended - lives->to_sums[ended]);
}

/* The time that all rows lived, ns. */
static double lived(const void *arg, uint64_t from_ns, uint64_t to_ns)
{
	const struct lives *lives = arg;

	to_ns = to_ns < lives->now_ns ? to_ns : lives->now_ns;
	return to_ns > from_ns ? lived_before(lives, to_ns) - lived_before(lives, from_ns) : 0;
}

/* What a variance lost and made others wait, spread evenly over its time, ns. */
static double cost_of(const void *arg, uint64_t from_ns, uint64_t to_ns)
{
	const struct variance *variance = arg;
	uint64_t begin = variance->begin * VAPRO_BIN_NS, end = variance->end * VAPRO_BIN_NS;
	uint64_t cost = (uint64_t)llround(fmax(0, own_loss(variance) + variance->caused_ns));

	return (double)(rating__before(begin, end, cost, to_ns) - rating__before(begin, end, cost, from_ns));
}

static void rate(struct variance *variance, const struct lives *lives)
{
	const struct rating rating = rating__of(&(struct rating_input){
	    .job_begin_ns = lives->from_count ? lives->from[0] : lives->now_ns,
	    .job_end_ns = lives->now_ns,
	    .begin_ns = variance->begin * VAPRO_BIN_NS,
	    .end_ns = variance->end * VAPRO_BIN_NS,
	    .cost = cost_of,
	    .cost_arg = variance,
	    .time = lived,
	    .time_arg = lives,
	});

	variance->rated_share = isnan(rating.share) ? 0 : rating.share;
	variance->denominator_ns = isnan(rating.share) ? 0 : rating.denominator_ns;
}

static enum vapro_severity severity_of(const struct variance *variance, const struct vapro_config *config)
{
	if (!variance->alarm)
		return VAPRO_INFO;
	if (variance->rated_share >= config->critical_share)
		return VAPRO_CRITICAL;
	return variance->rated_share >= config->warning_share || own_loss(variance) >= config->min_lost_s * 1e9
		   ? VAPRO_WARNING
		   : VAPRO_INFO;
}

static struct variance *cause_of(struct variance_book *book, const struct variance *effect)
{
	return effect->matched && effect->effect_of ? variance__find(book, (uint32_t)effect->effect_of) : NULL;
}

/* Ranks wait for each other all the time; without a cause only much waiting is worth a report. */
static bool is_common_waiting(const struct variance *variance, const struct vapro_config *config)
{
	return variance->share < WAITING_MORE * config->min_share;
}

static bool is_listed(const struct variance *variance, const struct vapro_config *config)
{
	return variance->emitted_once || (!variance->small && own_loss(variance) >= variance__least_s(config) * 1e9);
}

/* No text may name a variance that is not listed. */
static void forget_unlisted_causes(struct variance_book *book, const struct vapro_config *config)
{
	for (size_t i = 0; i < book->count; i++) {
		struct variance *effect = &book->variances[i];
		const struct variance *cause = cause_of(book, effect);

		if (!cause || is_listed(cause, config))
			continue;
		evidence__unexplained(effect);
		effect->small = is_common_waiting(effect, config);
	}
}

int weight__judge(struct variance_book *book, const struct stg_job *job, const struct vapro_config *config,
		  uint64_t now_ns)
{
	double stride = config->window_s * 2 / 3 * 1e9;
	struct lives lives = {.now_ns = now_ns};

	if (!book->count)
		return 0;
	if (lives_of(job, &lives)) {
		clear(&lives);
		return -ENOMEM;
	}
	for (size_t i = 0; i < book->count; i++) {
		struct variance *variance = &book->variances[i];
		double lost = own_loss(variance), lasts, all;

		if (!variance->matched && !variance->over)
			variance->caused_ns = variance->rated_share = 0;
		if (!variance->matched)
			continue;
		variance->caused_ns = caused__by(variance);
		lasts = fmax(stride, (double)((variance->end - variance->begin) * VAPRO_BIN_NS));
		all = lasts * (double)alive(&lives, variance);
		variance->share = all > 0 ? fmin(1, (lost + variance->caused_ns) / all) : 0;
		variance->small = lost < config->min_lost_s * 1e9 && variance->share < config->min_share;
		if (variance->waiting && !variance->confirmed && !variance->effect_of)
			variance->small = is_common_waiting(variance, config);
		if (variance->outlier)
			variance->small = variance->share < config->min_share;
		if (variance->small)
			variance->alarm = false;
		rate(variance, &lives);
		variance->severity = severity_of(variance, config);
	}
	forget_unlisted_causes(book, config);
	clear(&lives);
	return 0;
}
