/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The lines of one job's window, except variances and diagnoses. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/hang_text.h"
#include "report/job_book.h"
#include "report/json.h"
#include "report/profile_json.h"
#include "report/noise_json.h"
#include "report/variability_json.h"
#include "report/window_json.h"

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

static bool add_classes(cJSON *object, enum record_row key, const double *values, double total)
{
	cJSON *classes = record__put_object(object, key);
	bool ok = classes;

	for (int i = 0; ok && i < VAPRO_CLASSES; i++)
		ok = record__put_named(classes, key, vapro_class_name[i], values[i]);
	return ok && record__put_named(classes, key, "total", total);
}

static bool add_gap(cJSON *list, const struct source_names *names, const struct vapro_state *state, double share,
		    enum vapro_uncovered_reason reason)
{
	cJSON *item = record__append(list);

	return item && record__put_state(item, state, names) &&
	       record__put_number(item, KEY(uncovered, time_pct_of_job), 100 * fmin(1, share)) &&
	       record__put_text(item, KEY(uncovered, reason), vapro_uncovered_name[reason]);
}

/* Adds uncovered time; states of little time share one entry per reason. */
static bool add_uncovered(cJSON *object, const struct source_names *names, const struct job_result *result)
{
	cJSON *list = record__put_list(object, KEY(window, uncovered));
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
	cJSON *causes = record__put_object(object, KEY(window, lost));
	bool ok = causes;

	for (int i = 0; ok && i < VAPRO_LOSSES; i++)
		ok = record__put_named(causes, KEY(window, lost), vapro_loss_name[i], (double)lost[i]);
	return ok;
}

static bool add_overhead(cJSON *object, const struct job_result *result)
{
	cJSON *overhead = record__put_object(object, KEY(window, overhead_pct));

	return overhead && record__put_number(overhead, KEY(overhead, mean), result->overhead_pct_mean) &&
	       record__put_number(overhead, KEY(overhead, max), result->overhead_pct_max) &&
	       (!result->overhead_pid_max ||
		record__put_uint(overhead, KEY(overhead, max_pid), result->overhead_pid_max));
}

static bool add_io(cJSON *object, const struct json_context *context)
{
	cJSON *io = record__put_object(object, KEY(window, io));

	return io && record__put_number(io, KEY(io_tracing, traced_pct), context->io_traced_pct) &&
	       record__put_number(io, KEY(io_tracing, node_tax_pct), context->io_tax_pct);
}

static bool add_bystanders(cJSON *object, const struct json_context *context)
{
	cJSON *bystanders = record__put_object(object, KEY(window, bystanders));

	return bystanders && record__put_number(bystanders, KEY(bystanders, hits), context->bystander_hits) &&
	       record__put_number(bystanders, KEY(bystanders, cpu_pct), context->bystander_pct);
}

static bool add_clock(cJSON *object, const struct stream_clock *clock)
{
	cJSON *pair;

	if (!clock->utc_ns)
		return record__put_null(object, KEY(window, clock));
	pair = record__put_object(object, KEY(window, clock));
	return pair && record__put_uint(pair, KEY(clock, mono_ns), clock->mono_ns) &&
	       record__put_time(pair, KEY(clock, utc), clock->utc_ns);
}

static bool add_clusters(cJSON *object, const struct result_clusters *clusters)
{
	cJSON *item;

	if (!clusters->states)
		return record__put_null(object, KEY(window, clusters));
	item = record__put_object(object, KEY(window, clusters));
	return item && record__put_uint(item, KEY(clusters, states), clusters->states) &&
	       record__put_uint(item, KEY(clusters, clusters), clusters->clusters) &&
	       record__put_uint(item, KEY(clusters, rare), clusters->rare) &&
	       record__put_uint(item, KEY(clusters, approximate), clusters->approximate) &&
	       record__put_uint(item, KEY(clusters, coarser), clusters->coarser) &&
	       record__put_number(item, KEY(clusters, work_error_pct),
				  clusters->work_ratio > 0 ? 100 * (clusters->work_ratio - 1) : NAN);
}

static bool add_account(cJSON *object, const struct result_account *account)
{
	const double seconds[] = {account->on_cpu_s,	 account->preempted_s,	  account->wakeup_wait_s,
				  account->throttled_s,	 account->stopped_s,	  account->steal_s,
				  account->blocked_io_s, account->blocked_other_s};
	const enum record_row key = KEY(window, account_seconds);
	cJSON *item;
	bool ok;

	if (!account->known)
		return true;
	item = record__put_object(object, key);
	ok = item;
	for (int i = 0; ok && i < record_keys[key].word_count; i++)
		ok = record__put_named(item, key, record_keys[key].words[i], seconds[i]);
	return ok;
}

static bool add_sensing(cJSON *object, const struct result_sensing *sensing)
{
	const enum record_row key = KEY(sensing, intervals);
	cJSON *item, *intervals;
	bool ok;

	if (!(sensing->seconds > 0))
		return record__put_null(object, KEY(window, sensing));
	item = record__put_object(object, KEY(window, sensing));
	ok = item && record__put_number(item, KEY(sensing, unseen_seconds), sensing->unseen_s) &&
	     record__put_number(item, KEY(sensing, rank), sensing->rank);
	intervals = ok ? record__put_object(item, key) : NULL;
	ok = intervals;
	for (int i = 0; ok && i < SENSING_INTERVALS; i++)
		ok = record__put_named(intervals, key, record_keys[key].words[i], (double)sensing->intervals[i]);
	return ok;
}

static bool add_small(cJSON *object, const struct job_result *result)
{
	cJSON *small = record__put_object(object, KEY(window, small));

	return small && record__put_uint(small, KEY(small_regions, count), result->small_count) &&
	       record__put_number(small, KEY(small_regions, lost_seconds), result->small_seconds);
}

/* Adds the clocks of the hosts of a job that has several. */
static bool add_clocks(cJSON *object, const struct job_result *result)
{
	cJSON *list, *item;
	bool ok = true;

	if (!result->clock_count)
		return true;
	list = record__put_list(object, KEY(window, clock_offsets));
	for (uint32_t i = 0; (ok = ok && list) && i < result->clock_count; i++) {
		const struct result_clock *clock = &result->clocks[i];

		item = record__append(list);
		ok = item && record__put_text(item, KEY(clock_offset, host), clock->host) &&
		     record__put_number(item, KEY(clock_offset, offset_ms), 1e3 * clock->offset_s) &&
		     record__put_number(item, KEY(clock_offset, spread_ms), 1e3 * clock->spread_s) &&
		     record__put_number(item, KEY(clock_offset, corrected_ms), 1e3 * clock->corrected_s) &&
		     record__put_number(item, KEY(clock_offset, bound_ms), 1e3 * clock->bound_s);
	}
	return ok;
}

/* Makes the head and the members that all records of a window share. */
static cJSON *window_head(enum record_object type, const struct job_result *result, const struct json_context *context)
{
	cJSON *object = record__begin(type, result->end_ns, context->host);

	if (object && record__put_job(object, result->job, result->user))
		return object;
	cJSON_Delete(object);
	return NULL;
}

static int put_window(const struct job_result *result, const struct json_context *context, record_put put, void *arg)
{
	cJSON *object = window_head(RECORD_OBJECT_window, result, context);
	bool ok =
	    object && record__put_time(object, KEY(window, begin), result->begin_ns) &&
	    record__put_time(object, KEY(window, end), result->end_ns) &&
	    record__put_ranks(object, KEY(window, ranks), result->ranks, result->rank_count) &&
	    (!context->jobs ||
	     job_book__put(object, KEY(window, names), job_book__find(context->jobs, result->job, result->user))) &&
	    record__put_uint(object, KEY(window, world_size), result->world_size) &&
	    record__put_bool(object, KEY(window, partial), result->partial) &&
	    add_classes(object, KEY(window, coverage), result->coverage, result->coverage_total) &&
	    record__put_number(object, KEY(window, covered_before_seconds), result->covered_before_s) &&
	    add_classes(object, KEY(window, performance), result->performance, total_performance(result)) &&
	    record__put_uint(object, KEY(window, bundles), result->bundles) &&
	    record__put_uint(object, KEY(window, fragments), result->fragments) &&
	    record__put_uint(object, KEY(window, open), result->open) &&
	    (!result->shed || record__put_uint(object, KEY(window, shed), result->shed)) &&
	    add_lost(object, result->lost) && add_overhead(object, result) &&
	    record__put_number(object, KEY(window, daemon_cpu_pct), context->daemon_cpu_pct) &&
	    add_io(object, context) && add_bystanders(object, context) &&
	    add_uncovered(object, context->names, result) && add_small(object, result) &&
	    add_account(object, &result->account) && add_clusters(object, &result->clusters) &&
	    add_sensing(object, &result->sensing) && add_clock(object, &context->clock) && add_clocks(object, result);

	return record__emit(RECORD_OBJECT_window, object, ok, put, arg);
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
	ok = record__put(item, KEY(row, values), cJSON_CreateRaw(text));
	free(text);
	return ok;
}

#define BINS_OF_LINE 4096U   /* of a row: 20 KiB of values */
#define BYTES_OF_ROWS 58000U /* the head of a line has the rest of RECORD_LINE_MOST */
#define BYTES_OF_ROW 80U     /* its keys and numbers, without values and host */
#define BYTES_OF_VALUE 5U    /* at most, since a performance is from 0 to 1: "0.99," or "null," */
#define BYTES_OF_LETTER 6U   /* of a host, escaped */

/* The rows of a map, or of a part of its time, that become lines of bounded length. */
struct map_rows {
	const struct result_heatmap *map;
	const char *host;      /* of the line; rows of other hosts name theirs */
	uint32_t first, count; /* bins */
	uint32_t part, parts;
};

static bool has_own_host(const struct map_rows *rows, const struct result_row *row)
{
	return row->host && (!rows->host || strcmp(row->host, rows->host));
}

static bool add_row(cJSON *list, const struct map_rows *rows, const struct result_row *row)
{
	cJSON *item = record__append(list);
	bool ok = item && record__put_number(item, KEY(row, rank), row->rank) &&
		  record__put_uint(item, KEY(row, pid), row->pid);
	if (ok && row->thread >= 0)
		ok = record__put_number(item, KEY(row, thread), row->thread);
	if (ok && has_own_host(rows, row))
		ok = record__put_text(item, KEY(row, host), row->host);
	return ok && add_values(item, row->values + rows->first, rows->count);
}

/* Returns how many rows from this one on fit into a line: one at least. */
static uint32_t rows_of_line(const struct map_rows *rows, uint32_t from)
{
	size_t bytes = 0;
	uint32_t at = from;

	for (; at < rows->map->row_count; at++) {
		const struct result_row *row = &rows->map->rows[at];

		bytes += BYTES_OF_ROW + BYTES_OF_VALUE * rows->count;
		bytes += has_own_host(rows, row) ? BYTES_OF_LETTER * strlen(row->host) : 0;
		if (bytes > BYTES_OF_ROWS && at > from)
			break;
	}
	return at - from;
}

static int put_rows(const struct job_result *result, const struct map_rows *rows, uint32_t from, uint32_t count,
		    const struct json_context *context, record_put put, void *arg)
{
	cJSON *object = window_head(RECORD_OBJECT_heatmap, result, context), *list = NULL;
	uint64_t begin_ns = rows->map->begin_ns + rows->first * VAPRO_BIN_NS;
	bool ok = object && record__put_text(object, KEY(heatmap, class), vapro_class_name[rows->map->class]) &&
		  record__put_time(object, KEY(heatmap, begin), begin_ns) &&
		  record__put_uint(object, KEY(heatmap, bin_ns), VAPRO_BIN_NS) &&
		  record__put_uint(object, KEY(heatmap, revision), rows->map->revision);

	if (ok && rows->parts > 1)
		ok = record__put_uint(object, KEY(heatmap, part), rows->part) &&
		     record__put_uint(object, KEY(heatmap, parts), rows->parts);
	ok = ok && (list = record__put_list(object, KEY(heatmap, rows)));
	for (uint32_t i = 0; ok && i < count; i++)
		ok = add_row(list, rows, &rows->map->rows[from + i]);
	return record__emit(RECORD_OBJECT_heatmap, object, ok, put, arg);
}

/* Puts the map of a part of its time, in as many lines as its rows need. */
static int put_span(const struct job_result *result, struct map_rows *rows, const struct json_context *context,
		    record_put put, void *arg)
{
	uint32_t from = 0, count;
	int ret = 0;

	rows->part = rows->parts = 0;
	do {
		from += rows_of_line(rows, from);
		rows->parts++;
	} while (from < rows->map->row_count);
	for (from = 0; !ret && rows->part < rows->parts; from += count, rows->part++) {
		count = rows_of_line(rows, from);
		ret = put_rows(result, rows, from, count, context, put, arg);
	}
	return ret;
}

static int put_heatmap(const struct job_result *result, const struct result_heatmap *heatmap,
		       const struct json_context *context, record_put put, void *arg)
{
	struct map_rows rows = {.map = heatmap, .host = context->host};
	int ret = 0;

	do {
		rows.count = heatmap->bins - rows.first < BINS_OF_LINE ? heatmap->bins - rows.first : BINS_OF_LINE;
		ret = put_span(result, &rows, context, put, arg);
		rows.first += rows.count;
	} while (!ret && rows.first < heatmap->bins);
	return ret;
}

static int put_imbalance(const struct job_result *result, const struct result_imbalance *imbalance,
			 const struct json_context *context, record_put put, void *arg)
{
	cJSON *object = window_head(RECORD_OBJECT_imbalance, result, context);
	bool ok = object && record__put_state(object, imbalance->state, context->names) &&
		  record__put_number(object, KEY(imbalance, time_pct_of_job), 100 * fmin(1, imbalance->share)) &&
		  record__put_ranks(object, KEY(imbalance, ranks), imbalance->ranks, imbalance->rank_count) &&
		  record__put_number(object, KEY(imbalance, ratio), imbalance->ratio) &&
		  record__put_number(object, KEY(imbalance, ratio_least), imbalance->ratio_least) &&
		  record__put_number(object, KEY(imbalance, ratio_most), imbalance->ratio_most) &&
		  record__put_number(object, KEY(imbalance, ratio_slow), imbalance->ratio_slow) &&
		  record__put_number(object, KEY(imbalance, lost_seconds), imbalance->lost_seconds) &&
		  record__put_uint(object, KEY(imbalance, states), imbalance->states) &&
		  record__put_bool(object, KEY(imbalance, certain), imbalance->certain) &&
		  record__put_shared(object, KEY(imbalance, shared), imbalance->shared, imbalance->shared_count) &&
		  (imbalance->variance ? record__put_uint(object, KEY(imbalance, variance), imbalance->variance)
				       : record__put_null(object, KEY(imbalance, variance)));

	return record__emit(RECORD_OBJECT_imbalance, object, ok, put, arg);
}

static int put_drift(const struct job_result *result, const struct result_drift *drift,
		     const struct json_context *context, record_put put, void *arg)
{
	cJSON *object = window_head(RECORD_OBJECT_drift, result, context);
	bool ok = object && record__put_state(object, drift->state, context->names) &&
		  record__put_number(object, KEY(drift, ratio), drift->ratio) &&
		  record__put_uint(object, KEY(drift, windows), drift->windows);

	return record__emit(RECORD_OBJECT_drift, object, ok, put, arg);
}

static int put_rare(const struct job_result *result, const struct result_rare *rare, const struct json_context *context,
		    record_put put, void *arg)
{
	cJSON *object = window_head(RECORD_OBJECT_rare, result, context);
	bool ok = object && record__put_state(object, rare->state, context->names) &&
		  record__put_number(object, KEY(rare, rank), rare->rank) &&
		  record__put_uint(object, KEY(rare, fragments), rare->members) &&
		  record__put_number(object, KEY(rare, seconds), rare->seconds) &&
		  (rare->cluster ? record__put_uint(object, KEY(rare, cluster), rare->cluster)
				 : record__put_null(object, KEY(rare, cluster))) &&
		  (rare->ranks ? record__put_ranks(object, KEY(rare, ranks), rare->ranks, rare->rank_count)
			       : record__put_null(object, KEY(rare, ranks)));

	return record__emit(RECORD_OBJECT_rare, object, ok, put, arg);
}

int window_json__put_heatmaps(const struct job_result *result, const struct json_context *context, record_put put,
			      void *arg)
{
	int ret = 0;

	for (uint32_t i = 0; !ret && i < result->heatmap_count; i++)
		ret = put_heatmap(result, &result->heatmaps[i], context, put, arg);
	return ret;
}

int window_json__put(const struct job_result *result, const struct json_context *context, record_put put, void *arg)
{
	int ret = put_window(result, context, put, arg);

	if (!ret)
		ret = window_json__put_heatmaps(result, context, put, arg);
	if (!ret)
		ret = window_json__put_variances(result, context, put, arg);
	if (!ret && result->hang)
		ret = hang_text__put(result, context, put, arg);
	for (uint32_t i = 0; !ret && i < result->imbalance_count; i++)
		ret = put_imbalance(result, &result->imbalances[i], context, put, arg);
	for (uint32_t i = 0; !ret && i < result->drift_count; i++)
		ret = put_drift(result, &result->drifts[i], context, put, arg);
	for (uint32_t i = 0; !ret && i < result->rare_count; i++)
		ret = put_rare(result, &result->rares[i], context, put, arg);
	for (uint32_t i = 0; !ret && i < result->noise_count; i++)
		ret = noise_json__put(result, &result->noise[i], context, put, arg);
	for (uint32_t i = 0; !ret && i < result->profile_count; i++)
		ret = profile_json__put(result, &result->profiles[i], context, put, arg);
	for (uint32_t i = 0; !ret && i < result->variability_count; i++)
		ret = variability_json__put(result, &result->variability[i], context, put, arg);
	return ret;
}
