/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines of variances (when, where and who) and of their diagnoses (why). */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/interferers.h"
#include "model/state_id.h"
#include "report/inside_words.h"
#include "report/json.h"
#include "report/node_variances.h"
#include "report/window_json.h"

#define NS_PER_S 1e9
#define LEAST_SITE 0.05	      /* of the first in the list */
#define LEAST_INTERFERER 0.05 /* of the region's loss */
/* Lists of a variance that is no alarm are shorter: it calls no person. */
#define SITES_NO_ALARM 3
#define EXEMPLARS_NO_ALARM 2
#define INTERFERERS_NO_ALARM 3
#define LEAST_PART 0.001 /* share of its level */

static const char *const region_state_name[] = {
    [VAPRO_REGION_OPEN] = "open", [VAPRO_REGION_CHANGED] = "changed", [VAPRO_REGION_CLOSED] = "closed"};

static bool add_classes(cJSON *object, const struct result_variance *variance)
{
	cJSON *also = record__put_list(object, KEY(variance, also)), *lost;
	bool ok = also;

	for (int i = 0; ok && i < VAPRO_CLASSES; i++) {
		cJSON *name;

		if (!variance->also[i])
			continue;
		name = cJSON_CreateString(vapro_class_name[i]);
		ok = name && cJSON_AddItemToArray(also, name);
	}
	lost = ok ? record__put_object(object, KEY(variance, lost_by_class)) : NULL;
	ok = lost;
	for (int i = 0; ok && i < VAPRO_CLASSES; i++)
		ok = record__put_named(lost, KEY(variance, lost_by_class), vapro_class_name[i],
				       variance->lost_by_class[i]);
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
	cJSON *list = record__put_list(object, KEY(variance, call_sites));
	uint32_t count = emitted_sites(variance);
	bool ok = list;

	for (uint32_t i = 0; ok && i < count; i++) {
		const struct result_site *site = &variance->sites[i];
		cJSON *item = record__append(list);

		ok = item && record__put_state(item, site->state, names) &&
		     record__put_number(item, KEY(call_site, lost_seconds), site->lost_seconds) &&
		     record__put_number(item, KEY(call_site, ratio), site->ratio);
	}
	return ok;
}

static bool add_culprits(cJSON *object, const struct result_variance *variance)
{
	cJSON *list = record__put_list(object, KEY(variance, culprits));
	bool ok = list;

	for (uint32_t i = 0; ok && i < variance->culprit_count; i++) {
		const struct result_culprit *culprit = &variance->culprits[i];
		cJSON *item = record__append(list);

		ok = item && record__put_number(item, KEY(late_rank, rank), culprit->rank);
		if (ok && culprit->thread >= 0)
			ok = record__put_number(item, KEY(late_rank, thread), culprit->thread);
		ok = ok && record__put_number(item, KEY(late_rank, lost_seconds), culprit->lost_seconds) &&
		     record__put_number(item, KEY(late_rank, wait_seconds), culprit->wait_seconds);
	}
	return ok;
}

static bool add_entered_last(cJSON *object, const struct result_entered_last *last)
{
	cJSON *item = last->rank_count ? record__put_object(object, KEY(variance, entered_last)) : NULL;

	if (!last->rank_count)
		return true;
	return item && record__put_ranks(item, KEY(entered_last, ranks), last->ranks, last->rank_count) &&
	       record__put_uint(item, KEY(entered_last, operations), last->operations) &&
	       record__put_uint(item, KEY(entered_last, of_operations), last->of) &&
	       record__put_number(item, KEY(entered_last, late_seconds), last->late_seconds);
}

static bool add_causes(cJSON *object, const struct result_variance *variance)
{
	cJSON *list = record__put_list(object, KEY(variance, causes));
	bool ok = list;

	for (uint32_t i = 0; ok && i < variance->cause_count; i++) {
		const struct result_cause *cause = &variance->causes[i];
		cJSON *item = record__append(list);

		ok = item && record__put_text(item, KEY(region_cause, cause), cause->cause) &&
		     record__put_text(item, KEY(region_cause, culprit), cause->culprit ? cause->culprit->comm : NULL) &&
		     (!cause->culprit ||
		      record__put_number(item, KEY(region_cause, culprit_seconds), cause->culprit_seconds)) &&
		     record__put_ranks(item, KEY(region_cause, ranks), cause->ranks, cause->rank_count) &&
		     record__put_time(item, KEY(region_cause, begin), cause->begin_ns) &&
		     record__put_time(item, KEY(region_cause, end), cause->end_ns) &&
		     record__put_number(item, KEY(region_cause, lost_seconds), cause->lost_seconds) &&
		     record__put_number(item, KEY(region_cause, caused_seconds), cause->caused_seconds);
	}
	return ok;
}

static bool add_threads(cJSON *object, const struct result_variance *variance)
{
	cJSON *list = record__put_list(object, KEY(variance, threads));
	bool ok = list;

	for (uint32_t i = 0; ok && i < variance->thread_count; i++) {
		const struct result_thread *thread = &variance->threads[i];
		cJSON *item = record__append(list);

		ok = item && record__put_number(item, KEY(thread, rank), thread->rank) &&
		     record__put_number(item, KEY(thread, thread), thread->thread) &&
		     record__put_uint(item, KEY(thread, pid), thread->pid) &&
		     record__put_uint(item, KEY(thread, tid), thread->tid);
	}
	return ok;
}

/* Adds an exemplar's state, which is mostly one of the listed call-sites and is not spelt out again. */
static bool add_exemplar_state(cJSON *item, const struct result_variance *variance, const struct vapro_state *state)
{
	uint32_t count = emitted_sites(variance), site = 0;
	char id[STATE_ID_SIZE];

	while (site < count && variance->sites[site].state != state)
		site++;
	return record__put_text(item, KEY(exemplar, state_id), state_id__text(state, id)) &&
	       (site < count || (record__put_text(item, KEY(exemplar, from), state->from) &&
				 record__put_text(item, KEY(exemplar, to), state->to) &&
				 record__put_text(item, KEY(exemplar, labels), state->labels)));
}

static bool add_exemplars(cJSON *object, const struct result_variance *variance)
{
	cJSON *list = record__put_list(object, KEY(variance, exemplars));
	uint32_t most = variance->alarm ? UINT32_MAX : EXEMPLARS_NO_ALARM;
	bool ok = list;

	for (uint32_t i = 0; ok && i < variance->exemplar_count && i < most; i++) {
		const struct result_exemplar *exemplar = &variance->exemplars[i];
		const struct vapro_state *state = exemplar->state;
		cJSON *item = record__append(list);

		ok = item && record__put_time(item, KEY(exemplar, begin), exemplar->start_ns) &&
		     record__put_uint(item, KEY(exemplar, duration_ns), exemplar->duration_ns) &&
		     record__put_number(item, KEY(exemplar, rank), exemplar->rank) &&
		     record__put_number(item, KEY(exemplar, thread), exemplar->thread) &&
		     record__put_uint(item, KEY(exemplar, tid), exemplar->tid);
		if (ok && state)
			ok = add_exemplar_state(item, variance, state);
		ok = ok && record__put_factors(item, KEY(exemplar, factors), exemplar->factor);
	}
	return ok;
}

/* Adds severity and scope. Unseen ranks may be slow or wait, too: then the scope is the node. */
static bool add_weight(cJSON *object, const struct job_result *result, const struct result_variance *variance)
{
	enum vapro_confidence confidence = variance->confirmed ? VAPRO_CONFIRMED : variance->confidence;

	return record__put_text(object, KEY(variance, severity), json_severity_name[variance->severity]) &&
	       record__put_number(object, KEY(variance, caused_seconds), variance->caused_seconds) &&
	       record__put_number(object, KEY(variance, cost_pct_of_job), 100 * variance->share) &&
	       record__put_number(object, KEY(variance, rated_pct), 100 * variance->rated_share) &&
	       record__put_number(object, KEY(variance, denominator_seconds), variance->denominator_seconds) &&
	       record__put_text(object, KEY(variance, scope), result->partial ? "node" : "job") &&
	       record__put_text(object, KEY(variance, confidence), json_confidence_name[confidence]) &&
	       record__put_bool(object, KEY(variance, from_start), variance->from_start) &&
	       record__put_bool(object, KEY(variance, slow_path), variance->slow_path) &&
	       record__put_bool(object, KEY(variance, work_unknown), variance->work_unknown) &&
	       record__put_bool(object, KEY(variance, team_unseen), variance->team_unseen);
}

static int put_variance(const struct job_result *result, const struct result_variance *variance,
			const struct json_context *context, record_put put, void *arg)
{
	cJSON *object = record__begin(RECORD_OBJECT_variance, result->end_ns, context->host);
	bool ok = object && record__put_job(object, result->job, result->user) &&
		  record__put_uint(object, KEY(variance, id), variance->id) &&
		  record__put_uint(object, KEY(variance, revision), variance->revision) &&
		  record__put_text(object, KEY(variance, state), region_state_name[variance->state]) &&
		  record__put_text(object, KEY(variance, class), vapro_class_name[variance->class]) &&
		  record__put_time(object, KEY(variance, begin), variance->begin_ns) &&
		  record__put_time(object, KEY(variance, end), variance->end_ns) &&
		  record__put_ranks(object, KEY(variance, ranks), variance->ranks, variance->rank_count) &&
		  add_threads(object, variance) && record__put_text(object, KEY(variance, who), variance->who) &&
		  record__put_number(object, KEY(variance, performance), variance->performance) &&
		  record__put_number(object, KEY(variance, lost_seconds), variance->lost_seconds) &&
		  record__put_number(object, KEY(variance, judged_seconds), variance->judged_seconds) &&
		  record__put_number(object, KEY(variance, observed_pct_of_region), 100 * variance->observed) &&
		  record__put_number(object, KEY(variance, whole_lost_seconds), variance->whole_lost_seconds) &&
		  record__put_number(object, KEY(variance, unseen_before_seconds), variance->unseen_before_seconds) &&
		  record__put_number(object, KEY(variance, unseen_after_seconds), variance->unseen_after_seconds) &&
		  record__put_number(object, KEY(variance, ratio_slow), variance->ratio_slow) &&
		  add_weight(object, result, variance) &&
		  record__put_text(object, KEY(variance, evidence), variance->evidence) &&
		  (!variance->diagnosis.stage ||
		   record__put_text(object, KEY(variance, verdict), variance->diagnosis.verdict)) &&
		  record__put_bool(object, KEY(variance, alarm), variance->alarm);

	if (ok && variance->effect_of)
		ok = record__put_uint(object, KEY(variance, effect_of), variance->effect_of);
	else if (ok)
		ok = record__put_null(object, KEY(variance, effect_of));
	ok = ok && record__put_bool(object, KEY(variance, still_open), variance->still_open) &&
	     add_classes(object, variance) && add_sites(object, variance, context->names) &&
	     inside_words__add_json(object, variance, context->names) && add_culprits(object, variance) &&
	     add_entered_last(object, &variance->entered_last) && add_causes(object, variance) &&
	     add_exemplars(object, variance) &&
	     (!context->nodes || node_variances__add(context->nodes, object, result, variance));
	return record__emit(RECORD_OBJECT_variance, object, ok, put, arg);
}

/* Returns whether a part explains next to nothing: its level's sum changes by at most half a percent without it. */
static bool says_nothing(const struct result_factor *factor)
{
	return factor->stage > 1 && !factor->major && !factor->implied && !factor->shared_with &&
	       fabs(factor->contribution) < LEAST_PART;
}

static bool add_diagnosis_factors(cJSON *object, const struct result_diagnosis *diagnosis)
{
	cJSON *list = record__put_list(object, KEY(diagnosis, factors));
	bool ok = list;

	for (uint32_t i = 0; ok && i < diagnosis->factor_count; i++) {
		const struct result_factor *factor = &diagnosis->factors[i];
		cJSON *item;

		if (says_nothing(factor))
			continue;
		item = record__append(list);
		ok = item && record__put_text(item, KEY(factor, name), factor->name) &&
		     record__put_number(item, KEY(factor, stage), factor->stage) &&
		     record__put_text(item, KEY(factor, parent), factor->parent) &&
		     record__put_number(item, KEY(factor, contribution_pct_of_level), 100 * factor->contribution) &&
		     record__put_number(item, KEY(factor, impact_seconds), factor->impact_seconds) &&
		     record__put_text(item, KEY(factor, method), factor->method) &&
		     record__put_number(item, KEY(factor, p), factor->p_value) &&
		     record__put_bool(item, KEY(factor, major), factor->major) &&
		     record__put_bool(item, KEY(factor, approx), factor->approx) &&
		     record__put_text(item, KEY(factor, shared_with), factor->shared_with) &&
		     (!factor->implied || record__put_bool(item, KEY(factor, implied), true));
	}
	return ok;
}

/* Adds the job's threads that wait for each other, and the CPUs that those threads share. */
static bool add_oversubscribed(cJSON *object, const struct cpu_demand *demand)
{
	cJSON *item = demand->cpus ? record__put_object(object, KEY(diagnosis, oversubscribed)) : NULL;

	return !demand->cpus || (item && record__put_number(item, KEY(oversubscribed, threads), demand->threads) &&
				 record__put_uint(item, KEY(oversubscribed, cpus), demand->cpus));
}

/* Adds interferers; a region chosen by hand has as many as an alarm. */
static bool add_interferers(cJSON *object, const struct result_variance *variance)
{
	const struct result_diagnosis *diagnosis = &variance->diagnosis;
	uint32_t most = variance->alarm || !variance->id ? UINT32_MAX : INTERFERERS_NO_ALARM;
	cJSON *list = record__put_list(object, KEY(diagnosis, interferers));
	bool ok = list;

	for (uint32_t i = 0; ok && i < diagnosis->interferer_count && i < most; i++) {
		const struct result_interferer *interferer = &diagnosis->interferers[i];
		char comm[sizeof(interferer->comm) + 1] = "";
		cJSON *item;

		if (variance->lost_seconds > 0 && interferer->seconds < LEAST_INTERFERER * variance->lost_seconds)
			break;
		item = record__append(list);
		memcpy(comm, interferer->comm, sizeof(interferer->comm));
		ok = item && record__put_text(item, KEY(interferer, comm), comm) &&
		     record__put_uint(item, KEY(interferer, pid), interferer->pid) &&
		     record__put_number(item, KEY(interferer, seconds), interferer->seconds) &&
		     record__put_text(item, KEY(interferer, relation), interferers__relation[interferer->relation]);
		if (ok && interferer->job)
			ok = record__put_text(item, KEY(interferer, job), interferer->job) &&
			     (interferer->rank < 0 ||
			      record__put_uint(item, KEY(interferer, rank), (uint64_t)interferer->rank));
	}
	return ok;
}

static bool add_quota(cJSON *where, const struct result_diagnosis *diagnosis)
{
	cJSON *quota = record__put_object(where, KEY(place, quota));

	return quota && record__put_text(quota, KEY(quota, cgroup), diagnosis->limit_cgroup) &&
	       record__put_text(quota, KEY(quota, value), diagnosis->limit);
}

/* Adds where the slow ranks run, and the facts that those share and the others do not. */
static bool add_where(cJSON *object, const struct result_diagnosis *diagnosis)
{
	cJSON *where = record__put_object(object, KEY(diagnosis, where));
	cJSON *hosts = where ? record__put_list(where, KEY(place, hosts)) : NULL;
	bool ok = hosts;

	for (uint32_t i = 0; ok && i < diagnosis->host_count; i++) {
		cJSON *item = json__text(diagnosis->hosts[i]);

		ok = item && cJSON_AddItemToArray(hosts, item);
	}
	return ok &&
	       (!diagnosis->shared ||
		record__put_shared(where, KEY(place, shared), diagnosis->shared, diagnosis->shared_count)) &&
	       (!diagnosis->limit || add_quota(where, diagnosis));
}

/* Adds the bounds of a region chosen by hand, which has no variance line. */
static bool add_region(cJSON *object, const struct result_variance *variance, const struct source_names *names)
{
	cJSON *region;

	if (variance->id)
		return true;
	region = record__put_object(object, KEY(diagnosis, region));
	return region && record__put_text(region, KEY(region, class), vapro_class_name[variance->class]) &&
	       record__put_time(region, KEY(region, begin), variance->begin_ns) &&
	       record__put_time(region, KEY(region, end), variance->end_ns) &&
	       record__put_ranks(region, KEY(region, ranks), variance->ranks, variance->rank_count) &&
	       record__put_number(region, KEY(region, performance), variance->performance) &&
	       record__put_number(region, KEY(region, lost_seconds), variance->lost_seconds) &&
	       add_sites(region, variance, names) && inside_words__add_json(region, variance, names);
}

/* Adds the cause that regions are rolled up by, and the task that is to blame. */
static bool add_cause(cJSON *object, const struct result_diagnosis *diagnosis)
{
	if (!diagnosis->cause)
		return true;
	return record__put_text(object, KEY(diagnosis, cause), diagnosis->cause) &&
	       record__put_text(object, KEY(diagnosis, culprit), diagnosis->culprit ? diagnosis->culprit->comm : NULL);
}

static int put_diagnosis(const struct job_result *result, const struct result_variance *variance,
			 const struct json_context *context, record_put put, void *arg)
{
	const struct result_diagnosis *diagnosis = &variance->diagnosis;
	cJSON *object = record__begin(RECORD_OBJECT_diagnosis, result->end_ns, context->host);
	bool ok = object && record__put_job(object, result->job, result->user) &&
		  record__put_uint(object, KEY(diagnosis, variance), variance->id) &&
		  record__put_uint(object, KEY(diagnosis, revision), variance->revision) &&
		  record__put_number(object, KEY(diagnosis, stage), diagnosis->stage) &&
		  record__put_bool(object, KEY(diagnosis, final), diagnosis->final) &&
		  add_diagnosis_factors(object, diagnosis) && add_interferers(object, variance) &&
		  add_oversubscribed(object, &diagnosis->oversubscribed) && add_where(object, diagnosis) &&
		  record__put_text(object, KEY(diagnosis, advice), diagnosis->advice) &&
		  (!diagnosis->verdict || record__put_text(object, KEY(diagnosis, verdict), diagnosis->verdict)) &&
		  add_cause(object, diagnosis) && add_region(object, variance, context->names);

	return record__emit(RECORD_OBJECT_diagnosis, object, ok, put, arg);
}

int window_json__put_variances(const struct job_result *result, const struct json_context *context, record_put put,
			       void *arg)
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
