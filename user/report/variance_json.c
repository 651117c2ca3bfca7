/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines of variances (when, where and who) and of their diagnoses (why). */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/interferers.h"
#include "report/inside_words.h"
#include "report/json.h"

#define NS_PER_S 1e9
/* Entries smaller than this share of the first in their list are left out. */
#define LEAST_SITE 0.05
#define LEAST_INTERFERER 0.01
/* Lists of a variance that is no alarm are shorter: it calls no person. */
#define SITES_NO_ALARM 3
#define EXEMPLARS_NO_ALARM 2
#define INTERFERERS_NO_ALARM 3
#define LEAST_PART 0.001 /* share of its level */

static const char *const region_state_name[] = {
    [VAPRO_REGION_OPEN] = "open", [VAPRO_REGION_CHANGED] = "changed", [VAPRO_REGION_CLOSED] = "closed"};

/* Appends a new object to list; returns it or NULL. */
static cJSON *append(cJSON *list)
{
	cJSON *item = cJSON_CreateObject();

	if (item && !cJSON_AddItemToArray(list, item)) {
		cJSON_Delete(item);
		return NULL;
	}
	return item;
}

static const struct vapro_thread *find_thread(const struct json_context *context, uint32_t id)
{
	return context->threads && id < context->thread_count ? &context->threads[id] : NULL;
}

static bool add_classes(cJSON *object, const struct result_variance *variance)
{
	cJSON *also = cJSON_AddArrayToObject(object, "also"), *lost;
	bool ok = also;

	for (int i = 0; ok && i < VAPRO_CLASSES; i++) {
		cJSON *name;

		if (!variance->also[i])
			continue;
		name = cJSON_CreateString(vapro_class_name[i]);
		ok = name && cJSON_AddItemToArray(also, name);
	}
	lost = ok ? cJSON_AddObjectToObject(object, "lost_by_class") : NULL;
	ok = lost;
	for (int i = 0; ok && i < VAPRO_CLASSES; i++)
		ok = json__add_number(lost, vapro_class_name[i], variance->lost_by_class[i], 6);
	return ok;
}

/* Returns how many call-sites of a variance are listed. */
static uint32_t emitted_sites(const struct result_variance *variance)
{
	uint32_t most = variance->alarm ? UINT32_MAX : SITES_NO_ALARM, count = 0;

	while (count < variance->site_count && count < most &&
	       variance->sites[count].lost_seconds >= LEAST_SITE * variance->sites[0].lost_seconds)
		count++;
	return count;
}

static bool add_sites(cJSON *object, const struct result_variance *variance, const struct source_names *names)
{
	cJSON *list = cJSON_AddArrayToObject(object, "call_sites");
	uint32_t count = emitted_sites(variance);
	bool ok = list;

	for (uint32_t i = 0; ok && i < count; i++) {
		const struct result_site *site = &variance->sites[i];
		char *symbols;
		cJSON *item;

		symbols = json__symbols(site->state);
		item = append(list);
		ok = item && json__add_text(item, "class", vapro_class_name[site->state->class]) &&
		     json__add_text(item, "from", site->state->from) && json__add_text(item, "to", site->state->to) &&
		     json__add_text(item, "symbols", symbols) && source_names__add_json(names, item, site->state) &&
		     json__add_text(item, "labels", site->state->labels) &&
		     json__add_number(item, "lost_seconds", site->lost_seconds, 6) &&
		     json__add_number(item, "ratio", site->ratio, 4);
		free(symbols);
	}
	return ok;
}

static bool add_culprits(cJSON *object, const struct result_variance *variance)
{
	cJSON *list = cJSON_AddArrayToObject(object, "culprits");
	bool ok = list;

	for (uint32_t i = 0; ok && i < variance->culprit_count; i++) {
		const struct result_culprit *culprit = &variance->culprits[i];
		cJSON *item = append(list);

		ok = item && json__add_number(item, "rank", culprit->rank, 0);
		if (ok && culprit->thread >= 0)
			ok = json__add_number(item, "thread", culprit->thread, 0);
		ok = ok && json__add_number(item, "lost_seconds", culprit->lost_seconds, 6) &&
		     json__add_number(item, "wait_seconds", culprit->wait_seconds, 6);
	}
	return ok;
}

static bool add_threads(cJSON *object, const struct result_variance *variance)
{
	cJSON *list = cJSON_AddArrayToObject(object, "threads");
	bool ok = list;

	for (uint32_t i = 0; ok && i < variance->thread_count; i++) {
		const struct result_thread *thread = &variance->threads[i];
		cJSON *item = append(list);

		ok = item && json__add_number(item, "rank", thread->rank, 0) &&
		     json__add_number(item, "thread", thread->thread, 0) && json__add_uint(item, "pid", thread->pid) &&
		     json__add_uint(item, "tid", thread->tid);
	}
	return ok;
}

/* Adds an exemplar's state: mostly one of the listed call-sites, which is not spelt out again. */
static bool add_exemplar_state(cJSON *item, const struct result_variance *variance, const struct vapro_state *state)
{
	uint32_t count = emitted_sites(variance), site = 0;

	while (site < count && variance->sites[site].state != state)
		site++;
	if (site < count)
		return json__add_uint(item, "site", site);
	return json__add_text(item, "from", state->from) && json__add_text(item, "to", state->to) &&
	       json__add_text(item, "labels", state->labels);
}

static bool add_exemplars(cJSON *object, const struct result_variance *variance, const struct json_context *context)
{
	cJSON *list = cJSON_AddArrayToObject(object, "exemplars");
	uint32_t most = variance->alarm ? UINT32_MAX : EXEMPLARS_NO_ALARM;
	bool ok = list;

	for (uint32_t i = 0; ok && i < variance->exemplar_count && i < most; i++) {
		const struct result_exemplar *exemplar = &variance->exemplars[i];
		const struct vapro_thread *thread = find_thread(context, exemplar->thread);
		const struct vapro_state *state = exemplar->state;
		cJSON *item = append(list);

		ok = item && json__add_time(item, "start", exemplar->start_ns) &&
		     json__add_uint(item, "duration_ns", exemplar->duration_ns);
		if (ok && thread)
			ok = json__add_number(item, "rank", thread->rank, 0) &&
			     json__add_number(item, "thread", thread->thread, 0) &&
			     json__add_uint(item, "tid", thread->tid);
		if (ok && state)
			ok = add_exemplar_state(item, variance, state);
		ok = ok && json__add_factors(item, "factors", exemplar->factor);
	}
	return ok;
}

/* Adds severity and scope. Unseen ranks may be slow or wait, too: then the scope is the node. */
static bool add_weight(cJSON *object, const struct job_result *result, const struct result_variance *variance)
{
	enum vapro_confidence confidence = variance->confirmed ? VAPRO_CONFIRMED : variance->confidence;

	return json__add_text(object, "severity", json_severity_name[variance->severity]) &&
	       json__add_number(object, "caused_seconds", variance->caused_seconds, 6) &&
	       json__add_number(object, "share_pct", 100 * variance->share, 4) &&
	       json__add_text(object, "scope", result->partial ? "node" : "job") &&
	       json__add_text(object, "confidence", json_confidence_name[confidence]) &&
	       cJSON_AddBoolToObject(object, "from_start", variance->from_start) &&
	       cJSON_AddBoolToObject(object, "slow_path", variance->slow_path) &&
	       cJSON_AddBoolToObject(object, "work_unknown", variance->work_unknown) &&
	       cJSON_AddBoolToObject(object, "team_unseen", variance->team_unseen);
}

static int put_variance(const struct job_result *result, const struct result_variance *variance,
			const struct json_context *context, json_put put, void *arg)
{
	cJSON *object = json__head("variance", result->end_ns, context->host);
	bool ok =
	    object && json__add_job(object, result->job, result->user) && json__add_uint(object, "id", variance->id) &&
	    json__add_uint(object, "revision", variance->revision) &&
	    json__add_text(object, "state", region_state_name[variance->state]) &&
	    json__add_text(object, "class", vapro_class_name[variance->class]) &&
	    json__add_time(object, "begin", variance->begin_ns) && json__add_time(object, "end", variance->end_ns) &&
	    json__add_ranks(object, "ranks", variance->ranks, variance->rank_count) && add_threads(object, variance) &&
	    json__add_text(object, "who", variance->who) &&
	    json__add_number(object, "performance", variance->performance, 4) &&
	    json__add_number(object, "lost_seconds", variance->lost_seconds, 6) &&
	    json__add_number(object, "observed_pct", 100 * variance->observed, 1) &&
	    json__add_number(object, "whole_lost_seconds", variance->whole_lost_seconds, 6) &&
	    json__add_number(object, "unseen_before_seconds", variance->unseen_before_seconds, 1) &&
	    json__add_number(object, "unseen_after_seconds", variance->unseen_after_seconds, 1) &&
	    json__add_number(object, "loss_pct", 100 * (1 - variance->performance), 2) &&
	    json__add_number(object, "ratio_slow", variance->ratio_slow, 4) && add_weight(object, result, variance) &&
	    json__add_text(object, "evidence", variance->evidence) &&
	    (!variance->diagnosis.stage || json__add_text(object, "verdict", variance->diagnosis.verdict)) &&
	    cJSON_AddBoolToObject(object, "alarm", variance->alarm);

	if (ok && variance->effect_of)
		ok = json__add_uint(object, "effect_of", variance->effect_of);
	else if (ok)
		ok = cJSON_AddNullToObject(object, "effect_of");
	ok = ok && cJSON_AddBoolToObject(object, "still_open", variance->still_open) && add_classes(object, variance) &&
	     add_sites(object, variance, context->names) && inside_words__add_json(object, variance, context->names) &&
	     add_culprits(object, variance) && add_exemplars(object, variance, context) &&
	     (!context->nodes || node_variances__add(context->nodes, object, result, variance));
	return json__emit(object, ok, put, arg);
}

/* Returns whether a part explains next to nothing: its level's sum changes by at most half a percent without it. */
static bool says_nothing(const struct result_factor *factor)
{
	return factor->stage > 1 && !factor->major && !factor->implied && !factor->shared_with &&
	       fabs(factor->contribution) < LEAST_PART;
}

static bool add_diagnosis_factors(cJSON *object, const struct result_diagnosis *diagnosis)
{
	cJSON *list = cJSON_AddArrayToObject(object, "factors");
	bool ok = list;

	for (uint32_t i = 0; ok && i < diagnosis->factor_count; i++) {
		const struct result_factor *factor = &diagnosis->factors[i];
		cJSON *item;

		if (says_nothing(factor))
			continue;
		item = append(list);
		ok = item && json__add_text(item, "name", factor->name) &&
		     json__add_number(item, "stage", factor->stage, 0) &&
		     json__add_text(item, "parent", factor->parent) &&
		     json__add_number(item, "contribution_pct", 100 * factor->contribution, 2) &&
		     json__add_number(item, "impact_seconds", factor->impact_seconds, 6) &&
		     json__add_number(item, "duration_seconds", factor->duration_seconds, 6) &&
		     json__add_text(item, "method", factor->method) &&
		     json__add_number(item, "p_value", factor->p_value, 6) &&
		     cJSON_AddBoolToObject(item, "major", factor->major) &&
		     cJSON_AddBoolToObject(item, "approx", factor->approx) &&
		     json__add_text(item, "shared_with", factor->shared_with) &&
		     (!factor->implied || cJSON_AddBoolToObject(item, "implied", true));
	}
	return ok;
}

static bool add_regressions(cJSON *object, const struct result_diagnosis *diagnosis)
{
	cJSON *list;
	bool ok = true;

	if (!diagnosis->regression_count)
		return true;
	list = cJSON_AddArrayToObject(object, "regressions");
	for (uint32_t i = 0; (ok = ok && list) && i < diagnosis->regression_count; i++) {
		const struct result_regression *regression = &diagnosis->regressions[i];
		cJSON *item = append(list);

		ok = item && json__add_text(item, "factor", regression->factor) &&
		     json__add_text(item, "outcome", regression->outcome) &&
		     json__add_uint(item, "rows", regression->rows) && json__add_number(item, "r2", regression->r2, 4);
	}
	return ok;
}

/* Adds the job's threads that wait for each other, and the CPUs that those threads share. */
static bool add_oversubscribed(cJSON *object, const struct cpu_demand *demand)
{
	cJSON *item = demand->cpus ? cJSON_AddObjectToObject(object, "oversubscribed") : NULL;

	return !demand->cpus || (item && json__add_number(item, "threads", demand->threads, 3) &&
				 json__add_uint(item, "cpus", demand->cpus));
}

/* Adds interferers; a region chosen by hand has as many as an alarm. */
static bool add_interferers(cJSON *object, const struct result_variance *variance)
{
	const struct result_diagnosis *diagnosis = &variance->diagnosis;
	uint32_t most = variance->alarm || !variance->id ? UINT32_MAX : INTERFERERS_NO_ALARM;
	cJSON *list = cJSON_AddArrayToObject(object, "interferers");
	bool ok = list;

	for (uint32_t i = 0; ok && i < diagnosis->interferer_count && i < most; i++) {
		const struct result_interferer *interferer = &diagnosis->interferers[i];
		char comm[sizeof(interferer->comm) + 1] = "";
		cJSON *item;

		if (interferer->seconds < LEAST_INTERFERER * diagnosis->interferers[0].seconds)
			break;
		item = append(list);
		memcpy(comm, interferer->comm, sizeof(interferer->comm));
		ok = item && json__add_text(item, "comm", comm) && json__add_uint(item, "pid", interferer->pid) &&
		     json__add_number(item, "seconds", interferer->seconds, 6) &&
		     json__add_text(item, "relation", interferers__relation[interferer->relation]);
	}
	return ok;
}

static bool add_quota(cJSON *where, const struct result_diagnosis *diagnosis)
{
	cJSON *quota = cJSON_AddObjectToObject(where, "quota");

	return quota && json__add_text(quota, "cgroup", diagnosis->limit_cgroup) &&
	       json__add_text(quota, "value", diagnosis->limit);
}

/* Adds where the slow ranks run, and the facts that those share and the others do not. */
static bool add_where(cJSON *object, const struct result_diagnosis *diagnosis)
{
	cJSON *where = cJSON_AddObjectToObject(object, "where");
	cJSON *hosts = where ? cJSON_AddArrayToObject(where, "hosts") : NULL;
	bool ok = hosts;

	for (uint32_t i = 0; ok && i < diagnosis->host_count; i++) {
		cJSON *item = json__text(diagnosis->hosts[i]);

		ok = item && cJSON_AddItemToArray(hosts, item);
	}
	return ok && (!diagnosis->shared || json__add_shared(where, diagnosis->shared, diagnosis->shared_count)) &&
	       (!diagnosis->limit || add_quota(where, diagnosis));
}

/* Adds the bounds of a region chosen by hand, which has no variance line. */
static bool add_region(cJSON *object, const struct result_variance *variance, const struct source_names *names)
{
	cJSON *region;

	if (variance->id)
		return true;
	region = cJSON_AddObjectToObject(object, "region");
	return region && json__add_text(region, "class", vapro_class_name[variance->class]) &&
	       json__add_time(region, "begin", variance->begin_ns) && json__add_time(region, "end", variance->end_ns) &&
	       json__add_ranks(region, "ranks", variance->ranks, variance->rank_count) &&
	       json__add_number(region, "performance", variance->performance, 4) &&
	       json__add_number(region, "lost_seconds", variance->lost_seconds, 6) &&
	       add_sites(region, variance, names) && inside_words__add_json(region, variance, names);
}

/* Adds the cause that regions are rolled up by, and the task that is to blame. */
static bool add_cause(cJSON *object, const struct result_diagnosis *diagnosis)
{
	if (!diagnosis->cause)
		return true;
	return json__add_text(object, "cause", diagnosis->cause) &&
	       json__add_text(object, "culprit", diagnosis->culprit ? diagnosis->culprit->comm : NULL);
}

static int put_diagnosis(const struct job_result *result, const struct result_variance *variance,
			 const struct json_context *context, json_put put, void *arg)
{
	const struct result_diagnosis *diagnosis = &variance->diagnosis;
	cJSON *object = json__head("diagnosis", result->end_ns, context->host);
	bool ok = object && json__add_job(object, result->job, result->user) &&
		  json__add_uint(object, "variance", variance->id) &&
		  json__add_uint(object, "revision", variance->revision) &&
		  json__add_number(object, "stage", diagnosis->stage, 0) &&
		  cJSON_AddBoolToObject(object, "final", diagnosis->final) &&
		  add_diagnosis_factors(object, diagnosis) && add_regressions(object, diagnosis) &&
		  add_interferers(object, variance) && add_oversubscribed(object, &diagnosis->oversubscribed) &&
		  json__add_uint(object, "abnormal", diagnosis->abnormal) &&
		  json__add_uint(object, "normal", diagnosis->normal) && add_where(object, diagnosis) &&
		  json__add_text(object, "advice", diagnosis->advice) &&
		  (!diagnosis->verdict || json__add_text(object, "verdict", diagnosis->verdict)) &&
		  add_cause(object, diagnosis) && add_region(object, variance, context->names);

	return json__emit(object, ok, put, arg);
}

int json__variances(const struct job_result *result, const struct json_context *context, json_put put, void *arg)
{
	int ret = 0;

	for (uint32_t i = 0; !ret && i < result->variance_count; i++) {
		const struct result_variance *variance = &result->variances[i];

		ret = put_variance(result, variance, context, put, arg);
		/* stage 0: no diagnosis yet */
		if (!ret && variance->diagnosis.stage > 0 && !variance->diagnosis.same)
			ret = put_diagnosis(result, variance, context, put, arg);
	}
	for (uint32_t i = 0; !ret && i < result->selection_count; i++)
		ret = put_diagnosis(result, &result->selections[i], context, put, arg);
	return ret;
}
