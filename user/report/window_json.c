/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The lines of one job's window, except variances and diagnoses. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/json.h"

#define NS_PER_S 1e9
#define LEAST_UNCOVERED 0.02 /* least share of the ranks' time of a named state */

/* Averages over the classes by duration, as each class's own performance does over its bundles. */
static double total_performance(const struct job_result *result)
{
	double weight = 0, sum = 0;

	for (int i = 0; i < VAPRO_CLASSES; i++) {
		if (isnan(result->performance[i]) || !(result->coverage[i] > 0))
			continue;
		weight += result->coverage[i];
		sum += result->coverage[i] * result->performance[i];
	}
	return weight > 0 ? sum / weight : NAN;
}

static bool add_classes(cJSON *object, const char *key, const double *values, double total)
{
	cJSON *classes = cJSON_AddObjectToObject(object, key);
	bool ok = classes;

	for (int i = 0; ok && i < VAPRO_CLASSES; i++)
		ok = json__add_number(classes, vapro_class_name[i], values[i], 4);
	return ok && json__add_number(classes, "total", total, 4);
}

/* Adds the texts of a state; all null for time without state. */
static bool add_state(cJSON *object, const struct vapro_state *state, const struct source_names *names)
{
	char *symbols = state ? json__symbols(state) : NULL;
	bool ok = json__add_text(object, "state", state ? state->labels : NULL) &&
		  json__add_text(object, "class", state ? vapro_class_name[state->class] : NULL) &&
		  json__add_text(object, "from", state ? state->from : NULL) &&
		  json__add_text(object, "to", state ? state->to : NULL) &&
		  json__add_text(object, "symbols", symbols) &&
		  (!state || source_names__add_json(names, object, state));

	free(symbols);
	return ok;
}

static bool add_gap(cJSON *list, const struct source_names *names, const struct vapro_state *state, double share,
		    enum vapro_uncovered_reason reason)
{
	cJSON *item = cJSON_CreateObject();

	if (!item || !cJSON_AddItemToArray(list, item)) {
		cJSON_Delete(item);
		return false;
	}
	return add_state(item, state, names) && json__add_number(item, "share_pct", 100 * share, 2) &&
	       json__add_text(item, "reason", vapro_uncovered_name[reason]);
}

/* Adds uncovered time; states of little time share one entry per reason. */
static bool add_uncovered(cJSON *object, const struct source_names *names, const struct job_result *result)
{
	cJSON *list = cJSON_AddArrayToObject(object, "uncovered");
	double little[VAPRO_UNCOVERED_REASONS] = {0};
	bool ok = list;

	for (uint32_t i = 0; ok && i < result->uncovered_count; i++) {
		const struct result_uncovered *uncovered = &result->uncovered[i];

		if (uncovered->share < LEAST_UNCOVERED)
			little[uncovered->reason] += uncovered->share;
		else
			ok = add_gap(list, names, uncovered->state, uncovered->share, uncovered->reason);
	}
	for (int reason = 0; ok && reason < VAPRO_UNCOVERED_REASONS; reason++) {
		if (little[reason] > 0)
			ok = add_gap(list, names, NULL, little[reason], (enum vapro_uncovered_reason)reason);
	}
	return ok;
}

static bool add_lost(cJSON *object, const uint64_t *lost)
{
	cJSON *causes = cJSON_AddObjectToObject(object, "lost");
	bool ok = causes;

	for (int i = 0; ok && i < VAPRO_LOSSES; i++)
		ok = json__add_uint(causes, vapro_loss_name[i], lost[i]);
	return ok;
}

static bool add_overhead(cJSON *object, const struct job_result *result)
{
	cJSON *overhead = cJSON_AddObjectToObject(object, "overhead_pct");

	return overhead && json__add_number(overhead, "mean", result->overhead_pct_mean, 4) &&
	       json__add_number(overhead, "max", result->overhead_pct_max, 4);
}

static bool add_io(cJSON *object, const struct json_context *context)
{
	cJSON *io = cJSON_AddObjectToObject(object, "io");

	return io && json__add_number(io, "traced_pct", context->io_traced_pct, 2) &&
	       json__add_number(io, "node_tax_pct", context->io_tax_pct, 4);
}

static bool add_bystanders(cJSON *object, const struct json_context *context)
{
	cJSON *bystanders = cJSON_AddObjectToObject(object, "bystanders");

	return bystanders && json__add_number(bystanders, "hits", context->bystander_hits, 0) &&
	       json__add_number(bystanders, "cpu_pct", context->bystander_pct, 4);
}

static bool add_clock(cJSON *object, const struct stream_clock *clock)
{
	cJSON *pair;

	if (!clock->utc_ns)
		return cJSON_AddNullToObject(object, "clock");
	pair = cJSON_AddObjectToObject(object, "clock");
	return pair && json__add_uint(pair, "mono_ns", clock->mono_ns) && json__add_time(pair, "utc", clock->utc_ns);
}

static bool add_clusters(cJSON *object, const struct result_clusters *clusters)
{
	cJSON *item;

	if (!clusters->states)
		return cJSON_AddNullToObject(object, "clusters");
	item = cJSON_AddObjectToObject(object, "clusters");
	return item && json__add_uint(item, "states", clusters->states) &&
	       json__add_uint(item, "clusters", clusters->clusters) && json__add_uint(item, "rare", clusters->rare) &&
	       cJSON_AddBoolToObject(item, "exact", !clusters->approximate) &&
	       json__add_uint(item, "approximate", clusters->approximate) &&
	       json__add_uint(item, "coarser", clusters->coarser) &&
	       json__add_number(item, "slack_pct", 100 * clusters->slack, 4);
}

static bool add_account(cJSON *object, const struct result_account *account)
{
	cJSON *item;

	if (!account->known)
		return cJSON_AddNullToObject(object, "account");
	item = cJSON_AddObjectToObject(object, "account");
	return item && json__add_number(item, "on_cpu_seconds", account->on_cpu_s, 6) &&
	       json__add_number(item, "preempted_seconds", account->preempted_s, 6) &&
	       json__add_number(item, "wakeup_wait_seconds", account->wakeup_wait_s, 6) &&
	       json__add_number(item, "throttled_seconds", account->throttled_s, 6) &&
	       json__add_number(item, "stopped_seconds", account->stopped_s, 6) &&
	       json__add_number(item, "steal_seconds", account->steal_s, 6) &&
	       json__add_number(item, "blocked_io_seconds", account->blocked_io_s, 6) &&
	       json__add_number(item, "blocked_other_seconds", account->blocked_other_s, 6);
}

static bool add_small(cJSON *object, const struct job_result *result)
{
	cJSON *small = cJSON_AddObjectToObject(object, "small");

	return small && json__add_uint(small, "count", result->small_count) &&
	       json__add_number(small, "lost_seconds", result->small_seconds, 6);
}

/* Adds the clocks of the hosts of a job that has several. */
static bool add_clocks(cJSON *object, const struct job_result *result)
{
	cJSON *list, *item;
	bool ok = true;

	if (!result->clock_count)
		return true;
	list = cJSON_AddArrayToObject(object, "clock_offsets");
	for (uint32_t i = 0; (ok = ok && list) && i < result->clock_count; i++) {
		const struct result_clock *clock = &result->clocks[i];

		item = cJSON_CreateObject();
		ok = item && cJSON_AddItemToArray(list, item) && json__add_text(item, "host", clock->host) &&
		     json__add_number(item, "offset_ms", 1e3 * clock->offset_s, 3) &&
		     json__add_number(item, "spread_ms", 1e3 * clock->spread_s, 3) &&
		     json__add_number(item, "corrected_ms", 1e3 * clock->corrected_s, 3) &&
		     json__add_number(item, "bound_ms", 1e3 * clock->bound_s, 3);
	}
	return ok;
}

/* Makes the head and the members that all records of a window share. */
static cJSON *window_head(const char *type, const struct job_result *result, const struct json_context *context)
{
	cJSON *object = json__head(type, result->end_ns, context->host);

	if (object && json__add_job(object, result->job, result->user))
		return object;
	cJSON_Delete(object);
	return NULL;
}

static int put_window(const struct job_result *result, const struct json_context *context, json_put put, void *arg)
{
	cJSON *object = window_head("window", result, context);
	bool ok =
	    object && json__add_time(object, "begin", result->begin_ns) &&
	    json__add_time(object, "end", result->end_ns) &&
	    json__add_ranks(object, "ranks", result->ranks, result->rank_count) &&
	    json__add_uint(object, "world_size", result->world_size) &&
	    cJSON_AddBoolToObject(object, "partial", result->partial) &&
	    add_classes(object, "coverage", result->coverage, result->coverage_total) &&
	    add_classes(object, "performance", result->performance, total_performance(result)) &&
	    json__add_uint(object, "bundles", result->bundles) &&
	    json__add_uint(object, "fragments", result->fragments) && json__add_uint(object, "open", result->open) &&
	    add_lost(object, result->lost) && add_overhead(object, result) &&
	    json__add_number(object, "daemon_cpu_pct", context->daemon_cpu_pct, 3) && add_io(object, context) &&
	    add_bystanders(object, context) && add_uncovered(object, context->names, result) &&
	    add_small(object, result) && add_account(object, &result->account) &&
	    add_clusters(object, &result->clusters) && add_clock(object, &context->clock) && add_clocks(object, result);

	return json__emit(object, ok, put, arg);
}

#define VALUE_SIZE 32

/*
 * Writes a performance with two digits, as every other number is written, but without printf for each.
 * A third digit would be noise, and heat maps are most of the output of a quiet run.
 */
static char *put_value(char *at, double value)
{
	unsigned hundredths;

	if (!isfinite(value))
		return mempcpy(at, "null", 4);
	value = round(value * 100);
	if (!(value >= 0 && value <= 100))
		return at + snprintf(at, VALUE_SIZE, "%.15g", value / 100);
	hundredths = (unsigned)value;
	if (hundredths % 100 == 0) {
		*at++ = (char)('0' + hundredths / 100);
		return at;
	}
	at = mempcpy(at, "0.", 2);
	for (unsigned unit = 10; hundredths; hundredths %= unit, unit /= 10)
		*at++ = (char)('0' + hundredths / unit);
	return at;
}

/* Adds values as one text: a node for each value would use ten times the memory of the map itself. */
static bool add_values(cJSON *item, const double *values, uint32_t bins)
{
	char *text = malloc((size_t)bins * (VALUE_SIZE + 1) + 3), *at = text;
	bool ok;

	if (!text)
		return false;
	*at++ = '[';
	for (uint32_t i = 0; i < bins; i++) {
		if (i)
			*at++ = ',';
		at = put_value(at, values[i]);
	}
	*at++ = ']';
	*at = 0;
	ok = cJSON_AddRawToObject(item, "values", text);
	free(text);
	return ok;
}

static bool add_row(cJSON *rows, const struct result_row *row, uint32_t bins, const char *host)
{
	cJSON *item = cJSON_CreateObject();
	bool ok;

	if (!item || !cJSON_AddItemToArray(rows, item)) {
		cJSON_Delete(item);
		return false;
	}
	ok = json__add_number(item, "rank", row->rank, 0) && json__add_uint(item, "pid", row->pid);
	if (ok && row->thread >= 0)
		ok = json__add_number(item, "thread", row->thread, 0);
	if (ok && row->host && (!host || strcmp(row->host, host)))
		ok = json__add_text(item, "host", row->host);
	return ok && add_values(item, row->values, bins);
}

static int put_heatmap(const struct job_result *result, const struct result_heatmap *heatmap,
		       const struct json_context *context, json_put put, void *arg)
{
	cJSON *object = window_head("heatmap", result, context), *rows = NULL;
	bool ok =
	    object && json__add_text(object, "class", vapro_class_name[heatmap->class]) &&
	    json__add_time(object, "begin", heatmap->begin_ns) && json__add_uint(object, "bin_ns", VAPRO_BIN_NS) &&
	    json__add_uint(object, "revision", heatmap->revision) && (rows = cJSON_AddArrayToObject(object, "rows"));

	for (uint32_t i = 0; ok && i < heatmap->row_count; i++)
		ok = add_row(rows, &heatmap->rows[i], heatmap->bins, context->host);
	return json__emit(object, ok, put, arg);
}

static int put_imbalance(const struct job_result *result, const struct result_imbalance *imbalance,
			 const struct json_context *context, json_put put, void *arg)
{
	cJSON *object = window_head("imbalance", result, context);
	bool ok = object && add_state(object, imbalance->state, context->names) &&
		  json__add_number(object, "fast_rank", imbalance->fast_rank, 0) &&
		  json__add_number(object, "slow_rank", imbalance->slow_rank, 0) &&
		  json__add_number(object, "fast_seconds", imbalance->fast_ns / NS_PER_S, 9) &&
		  json__add_number(object, "slow_seconds", imbalance->slow_ns / NS_PER_S, 9) &&
		  json__add_number(object, "share_pct", 100 * imbalance->share, 2) &&
		  json__add_ranks(object, "ranks", imbalance->ranks, imbalance->rank_count) &&
		  json__add_number(object, "ratio", imbalance->ratio, 4) &&
		  json__add_number(object, "ratio_least", imbalance->ratio_least, 4) &&
		  json__add_number(object, "ratio_most", imbalance->ratio_most, 4) &&
		  json__add_number(object, "ratio_slow", imbalance->ratio_slow, 4) &&
		  json__add_number(object, "lost_seconds", imbalance->lost_seconds, 6) &&
		  json__add_uint(object, "states", imbalance->states) &&
		  cJSON_AddBoolToObject(object, "certain", imbalance->certain) &&
		  json__add_shared(object, imbalance->shared, imbalance->shared_count) &&
		  (imbalance->variance ? json__add_uint(object, "variance", imbalance->variance)
				       : cJSON_AddNullToObject(object, "variance") != NULL);

	return json__emit(object, ok, put, arg);
}

static int put_drift(const struct job_result *result, const struct result_drift *drift,
		     const struct json_context *context, json_put put, void *arg)
{
	cJSON *object = window_head("drift", result, context);
	bool ok = object && add_state(object, drift->state, context->names) &&
		  json__add_number(object, "ratio", drift->ratio, 4) &&
		  json__add_uint(object, "windows", drift->windows);

	return json__emit(object, ok, put, arg);
}

static int put_rare(const struct job_result *result, const struct result_rare *rare, const struct json_context *context,
		    json_put put, void *arg)
{
	cJSON *object = window_head("rare", result, context);
	bool ok = object && add_state(object, rare->state, context->names) &&
		  json__add_number(object, "rank", rare->rank, 0) && json__add_uint(object, "members", rare->members) &&
		  json__add_number(object, "seconds", rare->seconds, 6) &&
		  (rare->cluster ? json__add_uint(object, "cluster", rare->cluster)
				 : cJSON_AddNullToObject(object, "cluster") != NULL) &&
		  json__add_number(object, "norm", rare->norm, 1);

	return json__emit(object, ok, put, arg);
}

int json__heatmaps(const struct job_result *result, const struct json_context *context, json_put put, void *arg)
{
	int ret = 0;

	for (uint32_t i = 0; !ret && i < result->heatmap_count; i++)
		ret = put_heatmap(result, &result->heatmaps[i], context, put, arg);
	return ret;
}

int json__window(const struct job_result *result, const struct json_context *context, json_put put, void *arg)
{
	int ret = put_window(result, context, put, arg);

	if (!ret)
		ret = json__heatmaps(result, context, put, arg);
	if (!ret)
		ret = json__variances(result, context, put, arg);
	for (uint32_t i = 0; !ret && i < result->imbalance_count; i++)
		ret = put_imbalance(result, &result->imbalances[i], context, put, arg);
	for (uint32_t i = 0; !ret && i < result->drift_count; i++)
		ret = put_drift(result, &result->drifts[i], context, put, arg);
	for (uint32_t i = 0; !ret && i < result->rare_count; i++)
		ret = put_rare(result, &result->rares[i], context, put, arg);
	return ret;
}
