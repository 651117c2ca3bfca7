// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/clock_shift.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int64_t clock_shift__corrected(const struct analysis_context *context, const struct analysis_job *job, uint32_t thread)
{
	return (int64_t)clocks__of(job->clocks, stg__host_of(context->stg, thread)).corrected_ns;
}

uint64_t clock_shift__bin(const struct analysis_context *context, const struct analysis_job *job, uint32_t thread,
			  uint64_t bin)
{
	return bin + (uint64_t)((int64_t)clock_shift__bins(context, job, thread) / (int64_t)VAPRO_BIN_NS);
}

int clock_shift__observe(struct analysis_context *context, struct analysis_job *job, uint32_t thread, uint32_t state,
			 uint64_t start_ns, uint64_t end_ns, uint32_t n)
{
	const struct stg_state *about;
	const struct stg_thread *of;

	about = stg__state(context->stg, state);
	of = stg__thread(context->stg, thread);
	if (!about->together || of->about.thread || of->about.rank < 0)
		return 0;
	if (!job->clocks)
		job->clocks = clocks__new();
	if (!job->clocks)
		return -ENOMEM;
	return clocks__add(job->clocks, stg__host_of(context->stg, thread), of->about.rank, about->kind, start_ns,
			   end_ns, n);
}

/* How far the events of a host move by a new correction. */
struct shift {
	int64_t exact_ns, bins_ns;
};

static void shift_rec(struct bundle_rec *rec, const struct shift *shift)
{
	uint64_t ns = (uint64_t)(rec->n == 1 ? shift->exact_ns : shift->bins_ns);

	rec->start_ns += ns;
	rec->end_ns += ns;
}

static void shift_events(struct analysis_context *context, struct analysis_job *job, const struct shift *shifts,
			 uint64_t begin)
{
	const struct series *series = context->series.series;

	for (size_t i = 0; i < job->rec_count; i++) {
		if (job->recs[i].is_new)
			shift_rec(&job->recs[i],
				  &shifts[stg__host_of(context->stg, series[job->recs[i].series].thread)]);
	}
	for (size_t i = 0; i < job->open_count; i++)
		shift_rec(&job->open[i], &shifts[stg__host_of(context->stg, series[job->open[i].series].thread)]);
	for (size_t i = 0; i < job->interference_count; i++) {
		struct interference_rec *at = &job->interference[i];

		if (!at->counted && at->bin >= begin)
			at->bin +=
			    (uint64_t)(shifts[stg__host_of(context->stg, at->thread)].bins_ns / (int64_t)VAPRO_BIN_NS);
	}
	for (size_t i = 0; i < job->account.count; i++) {
		struct account_record *at = &job->account.records[i];

		if (at->bin >= begin)
			at->bin +=
			    (uint64_t)(shifts[stg__host_of(context->stg, at->thread)].bins_ns / (int64_t)VAPRO_BIN_NS);
	}
}

int clock_shift__end_window(struct analysis_context *context, struct analysis_job *job, uint64_t begin)
{
	uint32_t hosts = stg__hosts(context->stg, job->id);
	const struct stg_job *about;
	struct clock_host_about *hosts_about;
	struct shift *shifts;
	bool any = false;
	int error = -ENOMEM;

	if (!job->clocks)
		return 0;
	about = stg__job(context->stg, job->id);
	hosts_about = calloc(hosts, sizeof(*hosts_about));
	shifts = calloc(hosts, sizeof(*shifts));
	if (!hosts_about || !shifts)
		goto cleanup;
	for (size_t row = 0; row < about->row_count; row++)
		hosts_about[about->rows[row].host_number].name = about->rows[row].host;
	for (uint32_t i = 0; i < hosts; i++)
		hosts_about[i].error_ns = host_clocks__error_ns(context->host_clocks, hosts_about[i].name);
	for (uint32_t i = 0; i < hosts; i++)
		shifts[i].exact_ns = (int64_t)clocks__of(job->clocks, i).corrected_ns;
	error = clocks__estimate(job->clocks, hosts_about, hosts);
	for (uint32_t i = 0; !error && i < hosts; i++) {
		int64_t before = shifts[i].exact_ns, now = (int64_t)clocks__of(job->clocks, i).corrected_ns;

		shifts[i] =
		    (struct shift){before - now, clock_shift__whole_bins(before) - clock_shift__whole_bins(now)};
		if (before == now)
			continue;
		stg__shift_host(context->stg, job->id, i, shifts[i].exact_ns);
		any = true;
	}
	if (any)
		shift_events(context, job, shifts, begin);
cleanup:
	free(hosts_about);
	free(shifts);
	return error;
}

static int compare_clocks(const void *a, const void *b)
{
	const struct result_clock *left = a, *right = b;

	return strcmp(left->host, right->host);
}

int clock_shift__list(struct analysis_context *context, const struct analysis_job *job, const struct stg_job *about,
		      struct job_result *result)
{
	uint32_t hosts = about->host_count;
	struct result_clock *clocks;

	if (hosts < 2)
		return 0;
	clocks = arena__take(&context->arena, hosts * sizeof(*clocks));
	if (!clocks)
		return -ENOMEM;
	for (size_t row = 0; row < about->row_count; row++) {
		uint32_t host = about->rows[row].host_number;
		struct clock_offset offset = clocks__of(job->clocks, host);
		double error_ns = host_clocks__error_ns(context->host_clocks, about->rows[row].host);

		clocks[host] = (struct result_clock){
		    .host = about->rows[row].host,
		    .known = offset.known,
		    .offset_s = offset.known ? offset.offset_ns / 1e9 : NAN,
		    .spread_s = offset.known ? offset.spread_ns / 1e9 : NAN,
		    .corrected_s = offset.corrected_ns / 1e9,
		    .bound_s = isfinite(error_ns) ? error_ns / 1e9 : NAN,
		};
	}
	qsort(clocks, hosts, sizeof(*clocks), compare_clocks);
	result->clocks = clocks;
	result->clock_count = hosts;
	return 0;
}
