// SPDX-License-Identifier: GPL-2.0-or-later
#include "detect/weight.h"

#include <math.h>

#define WAITING_MORE 10 /* times min_share */

static size_t alive(const struct stg_job *job, const struct variance *variance)
{
	uint64_t from = variance->begin * VAPRO_BIN_NS, to = variance->end * VAPRO_BIN_NS;
	size_t count = 0;

	for (size_t row = 0; row < job->row_count; row++) {
		const struct stg_row *at = &job->rows[row];

		count += at->from_ns && at->from_ns < to && (!at->to_ns || at->to_ns > from);
	}
	return count;
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

void weight__judge(struct variance_book *book, const struct stg_job *job, const struct vapro_config *config)
{
	double stride = config->window_s * 2 / 3 * 1e9;

	for (size_t i = 0; i < book->count; i++)
		book->variances[i].caused_ns = 0;
	for (size_t i = 0; i < book->count; i++) {
		struct variance *cause = book->variances[i].matched && book->variances[i].effect_of
					     ? variance__find(book, (uint32_t)book->variances[i].effect_of)
					     : NULL;

		if (cause)
			cause->caused_ns += own_loss(&book->variances[i]);
	}
	for (size_t i = 0; i < book->count; i++) {
		struct variance *variance = &book->variances[i];
		double lost = own_loss(variance), lasts, all;

		if (!variance->matched)
			continue;
		lasts = fmax(stride, (double)((variance->end - variance->begin) * VAPRO_BIN_NS));
		all = lasts * (double)alive(job, variance);
		variance->share = all > 0 ? (lost + variance->caused_ns) / all : 0;
		variance->small = lost < config->min_lost_s * 1e9 && variance->share < config->min_share;
		/* Ranks wait for each other all the time; without a cause it is worth a report where it is much. */
		if (variance->waiting && !variance->confirmed && !variance->effect_of)
			variance->small = variance->share < WAITING_MORE * config->min_share;
		if (variance->outlier)
			variance->small = true;
		if (variance->small)
			variance->alarm = false;
		variance->severity = severity_of(variance, config);
	}
}
