// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/noise_json.h"

#include <math.h>

#include "diagnose/interferers.h"
#include "model/state_id.h"
#include "report/json.h"

#define NOISE_HOSTS_MOST 256 /* hosts named in a record, as of causes */

static bool add_hosts(cJSON *object, const struct result_noise *noise)
{
	cJSON *hosts = record__put_list(object, KEY(noise, hosts));
	bool ok = hosts;

	for (uint32_t i = 0; ok && i < noise->host_count && i < NOISE_HOSTS_MOST; i++) {
		cJSON *item = json__text(noise->hosts[i]);

		ok = item && cJSON_AddItemToArray(hosts, item);
	}
	return ok && record__put_uint(object, KEY(noise, host_count), noise->host_count);
}

static bool add_sites(cJSON *object, const struct result_noise *noise, const struct source_names *names)
{
	cJSON *list = record__put_list(object, KEY(noise, call_sites));
	bool ok = list;

	for (uint32_t i = 0; ok && i < noise->site_count; i++) {
		cJSON *item = record__append(list);

		ok = item && record__put_state(item, noise->sites[i].state, names) &&
		     record__put_number(item, KEY(noise_site, pct_of_stalls), 100 * noise->sites[i].share);
	}
	return ok;
}

/* Adds an exemplar's state, which is mostly one of the listed call-sites and is not spelt out again. */
static bool add_exemplar_state(cJSON *item, const struct result_noise *noise, const struct vapro_state *state)
{
	uint32_t site = 0;
	char id[STATE_ID_SIZE];

	while (site < noise->site_count && noise->sites[site].state != state)
		site++;
	return record__put_text(item, KEY(exemplar, state_id), state_id__text(state, id)) &&
	       (site < noise->site_count || (record__put_text(item, KEY(exemplar, from), state->from) &&
					     record__put_text(item, KEY(exemplar, to), state->to) &&
					     record__put_text(item, KEY(exemplar, labels), state->labels)));
}

static bool add_exemplars(cJSON *object, const struct result_noise *noise)
{
	cJSON *list = record__put_list(object, KEY(noise, exemplars));
	bool ok = list;

	for (uint32_t i = 0; ok && i < noise->exemplar_count; i++) {
		const struct result_exemplar *exemplar = &noise->exemplars[i];
		cJSON *item = record__append(list);

		ok = item && record__put_time(item, KEY(exemplar, begin), exemplar->start_ns) &&
		     record__put_uint(item, KEY(exemplar, duration_ns), exemplar->duration_ns) &&
		     record__put_number(item, KEY(exemplar, rank), exemplar->rank) &&
		     record__put_number(item, KEY(exemplar, thread), exemplar->thread) &&
		     record__put_uint(item, KEY(exemplar, tid), exemplar->tid) &&
		     add_exemplar_state(item, noise, exemplar->state) &&
		     record__put_factors(item, KEY(exemplar, factors), exemplar->factor);
	}
	return ok;
}

/* Adds what only components of fragments have. */
static bool add_fragments(cJSON *object, const struct result_noise *noise, const struct source_names *names)
{
	return noise->source != VAPRO_NOISE_FRAGMENTS ||
	       (record__put_text(object, KEY(noise, class), vapro_class_name[noise->class]) &&
		record__put_uint(object, KEY(noise, unresolved), noise->unresolved) &&
		record__put_number(object, KEY(noise, regularity), noise->regularity) &&
		record__put_number(object, KEY(noise, waited_seconds), noise->waited_s) &&
		record__put_text(object, KEY(noise, together), vapro_noise_together_name[noise->together]) &&
		record__put_number(object, KEY(noise, second), noise->second < 0 ? NAN : noise->second) &&
		add_sites(object, noise, names) && add_exemplars(object, noise));
}

static const char *relation(const struct result_noise *noise)
{
	return noise->source == VAPRO_NOISE_SCHEDULER ? interferers__relation[noise->relation] : NULL;
}

int noise_json__put(const struct job_result *result, const struct result_noise *noise,
		    const struct json_context *context, record_put put, void *arg)
{
	cJSON *object = record__begin(RECORD_OBJECT_noise, result->end_ns, context->host);
	bool ok = object && record__put_job(object, result->job, result->user) &&
		  record__put_uint(object, KEY(noise, id), noise->id) &&
		  record__put_uint(object, KEY(noise, revision), noise->revision) &&
		  record__put_bool(object, KEY(noise, final), noise->final) &&
		  record__put_text(object, KEY(noise, source), vapro_noise_source_name[noise->source]) &&
		  record__put_text(object, KEY(noise, what), noise->what) &&
		  record__put_text(object, KEY(noise, relation), relation(noise)) &&
		  record__put_number(object, KEY(noise, pid), noise->pid ? noise->pid : NAN) &&
		  record__put_uint(object, KEY(noise, n), noise->slices) &&
		  record__put_number(object, KEY(noise, longest_us), 1e6 * noise->longest_s) &&
		  record__put_number(object, KEY(noise, period_ms), 1e3 * noise->period_s) &&
		  record__put_number(object, KEY(noise, period_least_ms), 1e3 * noise->period_least_s) &&
		  record__put_number(object, KEY(noise, period_most_ms), 1e3 * noise->period_most_s) &&
		  record__put_number(object, KEY(noise, time_pct_of_ranks), 100 * fmin(1, noise->share)) &&
		  record__put_number(object, KEY(noise, lost_seconds), noise->lost_s) &&
		  record__put_ranks(object, KEY(noise, ranks), noise->ranks, noise->rank_count) &&
		  add_hosts(object, noise) && record__put_time(object, KEY(noise, begin), noise->begin_ns) &&
		  record__put_time(object, KEY(noise, end), noise->end_ns) &&
		  record__put_number(object, KEY(noise, forgotten_seconds), noise->forgotten_s) &&
		  add_fragments(object, noise, context->names);

	return record__emit(RECORD_OBJECT_noise, object, ok, put, arg);
}
