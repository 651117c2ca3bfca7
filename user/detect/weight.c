// SPDX-License-Identifier: GPL-2.0-or-later
#include "detect/weight.h"

#include "detect/evidence.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define WAITING_MORE 10 /* times min_share */

/* Begins and ends of rows, each in order: many variances count the rows alive. */
struct lives {
	uint64_t *from, *to;
	size_t from_count, to_count;
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
	if (!lives->from || !lives->to)
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
	return 0;
}

static void clear(struct lives *lives)
{
	free(lives->from);
	free(lives->to);
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
	return fmax(0, variance->total.lost[variance->class]);
}

static enum vapro_severity severity_of(const struct variance *variance, const struct vapro_config *config)
{
	if (!variance->alarm)
		return VAPRO_INFO;
	if (variance->share >= config->critical_share)
		return VAPRO_CRITICAL;
	return variance->share >= config->warning_share || own_loss(variance) >= config->min_lost_s * 1e9
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

/* Adds what each effect lost to its cause. A cause may outlast the bins of an effect, whose loss then stays its own. */
static void sum_effects(struct variance_book *book)
{
	for (size_t i = 0; i < book->count; i++)
		book->variances[i].caused_ns = book->variances[i].caused_past_ns;
	for (size_t i = 0; i < book->count; i++) {
		struct variance *effect = &book->variances[i];
		struct variance *cause = cause_of(book, effect);

		if (effect->left && effect->effect_of)
			cause = variance__find(book, (uint32_t)effect->effect_of);
		else
			effect->effect_ns = cause ? own_loss(effect) : 0;
		if (!cause)
			continue;
		cause->caused_ns += effect->effect_ns;
		if (effect->left)
			cause->caused_past_ns += effect->effect_ns;
	}
}

int weight__judge(struct variance_book *book, const struct stg_job *job, const struct vapro_config *config)
{
	double stride = config->window_s * 2 / 3 * 1e9;
	struct lives lives = {0};

	if (!book->count)
		return 0;
	if (lives_of(job, &lives)) {
		clear(&lives);
		return -ENOMEM;
	}
	sum_effects(book);
	for (size_t i = 0; i < book->count; i++) {
		struct variance *variance = &book->variances[i];
		double lost = own_loss(variance), lasts, all;

		if (!variance->matched)
			continue;
		lasts = fmax(stride, (double)((variance->end - variance->begin) * VAPRO_BIN_NS));
		all = lasts * (double)alive(&lives, variance);
		variance->share = all > 0 ? (lost + variance->caused_ns) / all : 0;
		variance->small = lost < config->min_lost_s * 1e9 && variance->share < config->min_share;
		if (variance->waiting && !variance->confirmed && !variance->effect_of)
			variance->small = is_common_waiting(variance, config);
		if (variance->outlier)
			variance->small = true;
		if (variance->small)
			variance->alarm = false;
		variance->severity = severity_of(variance, config);
	}
	forget_unlisted_causes(book, config);
	clear(&lives);
	return 0;
}
