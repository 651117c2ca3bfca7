/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The lines of a job's variability. */
#include "report/variability_json.h"

#include <math.h>

static double share_pct(double share)
{
	return isnan(share) ? NAN : 100 * fmin(1, fmax(0, share));
}

static bool add_temporal(cJSON *object, const struct result_variability *at)
{
	cJSON *part = record__put_object(object, KEY(variability, temporal));

	return part && record__put_number(part, KEY(temporal, median_pct), 100 * at->figures.temporal) &&
	       record__put_number(part, KEY(temporal, worst_pct), 100 * at->figures.temporal_worst) &&
	       record__put_number(part, KEY(temporal, worst_rank), at->temporal_rank) &&
	       record__put_number(part, KEY(temporal, range_over_mean_pct), 100 * at->figures.range_over_mean);
}

static bool add_spatial(cJSON *object, const struct result_variability *at)
{
	cJSON *part = record__put_object(object, KEY(variability, spatial));

	return part && record__put_number(part, KEY(spatial, spread_pct), 100 * at->figures.spread) &&
	       record__put_number(part, KEY(spatial, slowest_pct), 100 * at->figures.slowest) &&
	       record__put_number(part, KEY(spatial, slowest_over_fastest_pct), 100 * at->figures.over_fastest) &&
	       record__put_number(part, KEY(spatial, between_pct), share_pct(at->figures.between)) &&
	       record__put_ranks(part, KEY(spatial, slow_ranks), at->slow_ranks, at->slow_count) &&
	       record__put_shared(part, KEY(spatial, shared), at->shared, at->shared_count);
}

static bool add_rv(cJSON *object, const struct result_variability *at)
{
	cJSON *part;

	if (isnan(at->figures.rv))
		return record__put_null(object, KEY(variability, rv));
	part = record__put_object(object, KEY(variability, rv));
	return part && record__put_number(part, KEY(rv, median), at->figures.rv) &&
	       record__put_number(part, KEY(rv, worst), at->figures.rv_worst) &&
	       record__put_number(part, KEY(rv, worst_rank), at->rv_rank) &&
	       record__put_uint(part, KEY(rv, batches), (uint64_t)at->figures.rv_n) &&
	       record__put_number(part, KEY(rv, error), at->figures.rv_error);
}

static bool add_calls(cJSON *object, const struct result_variability *at)
{
	cJSON *part;

	if (isnan(at->call_p50_s))
		return true;
	part = record__put_object(object, KEY(variability, calls));
	return part && record__put_number(part, KEY(io_calls, p50_us), 1e6 * at->call_p50_s) &&
	       record__put_number(part, KEY(io_calls, p95_us), 1e6 * at->call_p95_s) &&
	       record__put_number(part, KEY(io_calls, above_p50_seconds), at->call_above_s);
}

static bool add_durations(cJSON *object, const struct result_variability *at)
{
	cJSON *list = record__put_list(object, KEY(variability, by_rank));
	bool ok = list;

	for (uint32_t i = 0; ok && i < at->duration_count; i++) {
		const struct result_durations *rank = &at->durations[i];
		cJSON *item = record__append(list);

		ok = item && record__put_number(item, KEY(rank_durations, rank), rank->rank) &&
		     record__put_uint(item, KEY(rank_durations, batches), (uint64_t)rank->batches) &&
		     record__put_number(item, KEY(rank_durations, p05_us), 1e6 * rank->p05_s) &&
		     record__put_number(item, KEY(rank_durations, p50_us), 1e6 * rank->p50_s) &&
		     record__put_number(item, KEY(rank_durations, p95_us), 1e6 * rank->p95_s);
	}
	return ok;
}

int variability_json__put(const struct job_result *result, const struct result_variability *at,
			  const struct json_context *context, record_put put, void *arg)
{
	const struct variability_figures *figures = &at->figures;
	cJSON *object = record__begin(RECORD_OBJECT_variability, result->end_ns, context->host);
	bool ok =
	    object && record__put_job(object, result->job, result->user) &&
	    record__put_state(object, at->state, context->names) &&
	    record__put_text(object, KEY(variability, kind), vapro_variability_kind_name[figures->kind]) &&
	    record__put_text(object, KEY(variability, origin), vapro_variability_origin_name[figures->origin]) &&
	    record__put_text(object, KEY(variability, work), vapro_variability_work_name[at->work]) &&
	    record__put_number(object, KEY(variability, seconds), at->seconds) &&
	    record__put_uint(object, KEY(variability, ranks), figures->rows) &&
	    record__put_uint(object, KEY(variability, batches), (uint64_t)figures->batches) &&
	    record__put_number(object, KEY(variability, fragments_per_batch), figures->fragments / figures->batches) &&
	    add_temporal(object, at) && add_spatial(object, at) && add_rv(object, at) &&
	    record__put_number(object, KEY(variability, software_pct), share_pct(figures->software)) &&
	    record__put_number(object, KEY(variability, frequency_pct), share_pct(figures->frequency)) &&
	    record__put_number(object, KEY(variability, stalls_pct), share_pct(figures->stalls)) &&
	    add_calls(object, at) && add_durations(object, at);

	return record__emit(RECORD_OBJECT_variability, object, ok, put, arg);
}
