/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Clocks of several hosts (detect/clocks.h) in the way of a job's events: calls are observed by the clock of their
 * host, offsets are estimated at the end of each window, and events enter the analysis at corrected times. What has
 * entered since the last window is shifted when a correction changes. Single fragments move exactly; merged bundles
 * and accounts, which belong to a bin of their host, by whole bins: they stay within half a bin of their true time.
 */
#ifndef VAPRO_ANALYSIS_CLOCK_SHIFT_H
#define VAPRO_ANALYSIS_CLOCK_SHIFT_H

#include "analysis/window.h"

/* How far the clock of a thread's host is ahead, as corrected so far, ns; of a job with clocks. */
int64_t clock_shift__corrected(const struct analysis_context *context, const struct analysis_job *job, uint32_t thread);

/* The nearest whole bins to a time, in ns. */
static inline int64_t clock_shift__whole_bins(int64_t ns)
{
	const int64_t bin = VAPRO_BIN_NS;

	return (ns >= 0 ? ns + bin / 2 : ns - bin / 2) / bin * bin;
}

/* ns to add to the times of a host's single fragments, modulo 2^64. Jobs on one host have no clocks. */
static inline uint64_t clock_shift__exact(const struct analysis_context *context, const struct analysis_job *job,
					  uint32_t thread)
{
	return job->clocks ? (uint64_t)-clock_shift__corrected(context, job, thread) : 0;
}

/* ns to add to the times of a host's merged bundles, whole bins, modulo 2^64. */
static inline uint64_t clock_shift__bins(const struct analysis_context *context, const struct analysis_job *job,
					 uint32_t thread)
{
	return job->clocks ? (uint64_t)-clock_shift__whole_bins(clock_shift__corrected(context, job, thread)) : 0;
}

/* The corrected bin of a host's event. */
uint64_t clock_shift__bin(const struct analysis_context *context, const struct analysis_job *job, uint32_t thread,
			  uint64_t bin);

/* Observes a finished bundle of a job on several hosts, with uncorrected times, UTC ns. Returns 0 or -ENOMEM. */
int clock_shift__observe(struct analysis_context *context, struct analysis_job *job, uint32_t thread, uint32_t state,
			 uint64_t start_ns, uint64_t end_ns, uint32_t n);

/* Estimates the offsets, and shifts what has entered since bin `begin` accordingly. Returns 0 or -ENOMEM. */
int clock_shift__end_window(struct analysis_context *context, struct analysis_job *job, uint64_t begin);

/* Lists the clocks of a job of several hosts, in the arena of the context. Returns 0 or -ENOMEM. */
int clock_shift__list(struct analysis_context *context, const struct analysis_job *job, const struct stg_job *about,
		      struct job_result *result);

#endif
