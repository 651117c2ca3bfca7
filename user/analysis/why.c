/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The diagnosis of a variance as include/vapro/analysis.h promises it. */
#include "analysis/result.h"

#include "diagnose/advice.h"
#include "diagnose/root_cause.h"
#include "diagnose/verdict.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INTERFERERS_SHOWN 6
#define PREEMPTED_LEAST 0.05 /* of the loss: below, tasks that ran instead are not listed */
/* Changes for which a diagnosis is emitted again: loss when closed, loss when open, and a cause's share. */
#define MOVED_LOSS 0.02
#define MOVED_LOSS_OPEN 0.5
#define MOVED_SHARE 0.02f

static int compare_factors(const void *a, const void *b)
{
	const struct result_factor *left = a, *right = b;

	if (left->stage != right->stage)
		return left->stage < right->stage ? -1 : 1;
	if (left->contribution != right->contribution)
		return left->contribution > right->contribution ? -1 : 1;
	return strcmp(left->name, right->name);
}

/* Returns the names of a set of nodes; "" where the set is empty, NULL when out of memory. */
static const char *names_of(const struct builder *builder, uint64_t nodes)
{
	char text[256] = "";
	size_t used = 0;

	for (int node = 0; node < FACTOR_NODES; node++) {
		if (nodes & 1ULL << node && used + 32 < sizeof(text))
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", used ? "," : "",
						 factor_infos[node].name);
	}
	return arena__copy(&builder->context->arena, text);
}

static int build_factors(const struct builder *builder, const struct diagnosis_of *item,
			 struct result_diagnosis *diagnosis)
{
	struct result_factor *factors = result__take(builder, FACTOR_NODES, sizeof(*factors));

	if (!factors)
		return -ENOMEM;
	for (int at = 0; at < FACTOR_NODES; at++) {
		const struct breakdown_node *node = &item->breakdown.node[at];
		const struct factor_info *info = &factor_infos[at];
		const char *shared = NULL;

		if (!node->present)
			continue;
		if (node->shared) {
			shared = names_of(builder, node->shared);
			if (!shared)
				return -ENOMEM;
		}
		factors[diagnosis->factor_count++] = (struct result_factor){
		    .name = info->name,
		    .stage = info->stage,
		    .parent = info->parent == FACTOR_ROOT ? NULL : factor_infos[info->parent].name,
		    .contribution = node->share,
		    .impact_seconds = node->impact_ns / 1e9,
		    .duration_seconds = diagnoses__sum_of(item)->duration[at] / 1e9,
		    .method = node->regression ? "regression" : "formula",
		    .p_value = node->p,
		    .major = node->major,
		    .approx = diagnoses__sum_of(item)->approx,
		    .shared_with = shared,
		    .implied = node->implied,
		};
	}
	qsort(factors, diagnosis->factor_count, sizeof(*factors), compare_factors);
	diagnosis->factors = factors;
	return 0;
}

/* Counts that were not measured are left out. */
static int build_regressions(const struct builder *builder, const struct diagnosis_of *item,
			     struct result_diagnosis *diagnosis)
{
	static const char *const outcomes[] = {[REGRESSION_FITTED] = "fitted",
					       [REGRESSION_TOO_FEW] = "too_few_rows",
					       [REGRESSION_NO_VARIANCE] = "no_variance",
					       [REGRESSION_NO_FACTOR] = "no_factor"};
	struct result_regression *regressions = result__take(builder, PRICED_SETS, sizeof(*regressions));

	if (!regressions)
		return -ENOMEM;
	for (int set = 0; set < PRICED_SETS; set++) {
		const struct regression_moments *rows = &diagnoses__sum_of(item)->rows[set];
		bool any = false;

		for (uint32_t i = 1; i <= rows->factors; i++)
			any |= rows->co[i][i] > 0;
		if (any)
			regressions[diagnosis->regression_count++] = (struct result_regression){
			    .factor = factor_infos[priced_infos[set].parent].name,
			    .outcome = outcomes[item->breakdown.outcome[set]],
			    .rows = item->breakdown.rows[set],
			    .r2 = item->breakdown.r2[set],
			};
	}
	diagnosis->regressions = regressions;
	return 0;
}

/* Tasks that ran instead matter where waits for a CPU are a part of the loss. A region chosen by hand has all. */
static int build_interferers(const struct builder *builder, const struct diagnosis_of *item, double lost_seconds,
			     struct result_diagnosis *diagnosis)
{
	const struct breakdown_node *nodes = item->breakdown.node;
	double preempted = (nodes[NODE_PREEMPTED].impact_ns + nodes[NODE_WAKEUP_WAIT].impact_ns) / 1e9;
	struct result_interferer *interferers;

	if (preempted < PREEMPTED_LEAST * lost_seconds)
		return 0;
	diagnosis->interferer_count =
	    (uint32_t)(item->interferers[CASE_SUM].count < INTERFERERS_SHOWN ? item->interferers[CASE_SUM].count
									     : INTERFERERS_SHOWN);
	interferers = result__take(builder, diagnosis->interferer_count, sizeof(*interferers));
	if (!interferers)
		return -ENOMEM;
	for (uint32_t i = 0; i < diagnosis->interferer_count; i++) {
		const struct interferer *from = &item->interferers[CASE_SUM].items[i];

		interferers[i] = from->task;
		interferers[i].job = *from->job ? arena__copy(&builder->context->arena, from->job) : NULL;
		if (*from->job && !interferers[i].job)
			return -ENOMEM;
	}
	diagnosis->interferers = interferers;
	diagnosis->interfered = interferers__seconds(&item->interferers[CASE_SUM]);
	diagnosis->interfered_own = interferers__own(&item->interferers[CASE_SUM]);
	return 0;
}

#define MOSTLY_OWN 0.5 /* share of the waits for a CPU that makes a job's own threads the reason */

static int compare_hosts(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Builds the list of the hosts of slow rows; a host without a name is left out. */
static int build_hosts(const struct builder *builder, const uint32_t *rows, size_t count,
		       struct result_diagnosis *diagnosis)
{
	const char **hosts = result__take(builder, count, sizeof(*hosts));
	uint32_t found = 0;

	if (!hosts)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const char *host = builder->about->rows[rows[i]].host;

		/* Names are interned, and rows of a host mostly follow each other. */
		if (host && *host && (!found || hosts[found - 1] != host))
			hosts[found++] = host;
	}
	if (found)
		qsort(hosts, found, sizeof(*hosts), compare_hosts);
	for (uint32_t i = 0; i < found; i++) {
		if (!diagnosis->host_count || hosts[diagnosis->host_count - 1] != hosts[i])
			hosts[diagnosis->host_count++] = hosts[i];
	}
	diagnosis->rows = (uint32_t)count;
	diagnosis->hosts = hosts;
	diagnosis->host = diagnosis->host_count == 1 ? hosts[0] : NULL;
	return 0;
}

int result__shared(const struct builder *builder, const uint32_t *rows, size_t count, const struct result_shared **out,
		   uint32_t *out_count)
{
	struct result_shared *shared;
	struct where where[WHERE_FACTS];

	if (where_index__find(builder->where, rows, count, where, out_count))
		return -ENOMEM;
	shared = result__take(builder, *out_count, sizeof(*shared));
	if (!shared)
		return -ENOMEM;
	for (uint32_t i = 0; i < *out_count; i++) {
		const char *value = arena__copy(&builder->context->arena, where[i].value);

		if (!value)
			return -ENOMEM;
		shared[i] = (struct result_shared){where[i].fact, value, where[i].others, where[i].host};
	}
	*out = shared;
	return 0;
}

/* A CPU quota is part of the diagnosis only where it was used up. */
static int build_limit(const struct builder *builder, const struct diagnosis_of *item, const uint32_t *rows,
		       size_t count, struct result_diagnosis *diagnosis)
{
	const struct vapro_place *limited = where_index__limit(builder->where, rows, count);

	if (!limited || item->breakdown.node[NODE_THROTTLED].impact_ns <= 0)
		return 0;
	diagnosis->limit = arena__copy(&builder->context->arena, limited->limit);
	diagnosis->limit_cgroup =
	    arena__copy(&builder->context->arena, limited->limit_cgroup ? limited->limit_cgroup : "");
	return diagnosis->limit && diagnosis->limit_cgroup ? 0 : -ENOMEM;
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
	for (; text && *text; text++)
		hash = (hash ^ (unsigned char)*text) * 1099511628211ULL;
	return hash;
}

/* Hashes what a diagnosis says of where and why in words: other ranks, threads or places are another diagnosis. */
static uint64_t hash_words(const struct result_variance *out)
{
	const struct result_diagnosis *diagnosis = &out->diagnosis;
	uint64_t hash = 14695981039346656037ULL;

	for (uint32_t i = 0; i < out->rank_count; i++)
		hash = (hash ^ (uint32_t)out->ranks[i]) * 1099511628211ULL;
	for (uint32_t i = 0; i < diagnosis->shared_count; i++)
		hash = hash_text(hash, diagnosis->shared[i].value);
	hash = hash_text(hash_text(hash, out->who), diagnosis->cause);
	return diagnosis->culprit ? hash_text(hash, diagnosis->culprit->comm) : hash;
}

bool result__diagnosis_emitted(struct diagnosis_of *item, const struct result_variance *out)
{
	struct emitted_case now = {
	    .stage = out->diagnosis.stage,
	    .final = out->diagnosis.final,
	    .confirmed = out->confirmed,
	    .alarm = out->alarm,
	    .effect_of = out->effect_of,
	    .rows = out->rank_count + out->thread_count,
	    .words = hash_words(out),
	    .confidence = out->confidence,
	    .slow_path = out->slow_path,
	    .lost_seconds = out->lost_seconds,
	};
	const struct emitted_case *then = &item->emitted;
	double moved = out->state == VAPRO_REGION_CLOSED ? MOVED_LOSS : MOVED_LOSS_OPEN;
	bool same;

	/* An effect has its cause in another variance: why it waits is emitted once, in the end. */
	if (out->effect_of && out->state != VAPRO_REGION_CLOSED)
		return true;
	for (int at = 0; at < FACTOR_NODES; at++) {
		const struct breakdown_node *node = &item->breakdown.node[at];

		now.share[at] = node->present ? (float)node->share : 0;
		now.major |= (uint64_t)(node->present && node->major) << at;
	}
	same = now.stage == then->stage && now.final == then->final && now.confirmed == then->confirmed &&
	       now.alarm == then->alarm && now.effect_of == then->effect_of && now.rows == then->rows &&
	       now.words == then->words && now.confidence == then->confidence && now.slow_path == then->slow_path &&
	       now.major == then->major && fabs(now.lost_seconds - then->lost_seconds) <= moved * then->lost_seconds;
	for (int at = 0; same && at < FACTOR_NODES; at++)
		same = fabsf(now.share[at] - then->share[at]) <= MOVED_SHARE;
	if (!same)
		item->emitted = now;
	return same;
}

int result__diagnosis(const struct builder *builder, const struct diagnosis_of *item, const uint32_t *rows,
		      size_t count, const struct variance *variance, struct result_variance *out)
{
	struct result_diagnosis *diagnosis = &out->diagnosis;
	bool waiting = variance && variance->waiting;
	bool transfer = variance && variance->transfer > variance->late;
	char verdict[2048], advice[2048];

	if (!item || result__shared(builder, rows, count, &diagnosis->shared, &diagnosis->shared_count) ||
	    build_factors(builder, item, diagnosis) || build_regressions(builder, item, diagnosis) ||
	    build_interferers(builder, item, variance ? out->lost_seconds : 0, diagnosis) ||
	    build_limit(builder, item, rows, count, diagnosis) || build_hosts(builder, rows, count, diagnosis))
		return -ENOMEM;
	if (variance && tally__own_share(&variance->total) >= MOSTLY_OWN) {
		diagnosis->oversubscribed = variance->total.demand;
		diagnosis->cpus_unknown = !variance->total.demand.cpus;
	}
	diagnosis->stage = driver__stage(item, &diagnosis->final);
	diagnosis->abnormal = (uint32_t)lround(diagnoses__sum_of(item)->abnormal);
	diagnosis->normal = (uint32_t)lround(diagnoses__sum_of(item)->normal);
	root_cause__find(out, waiting, transfer);
	if (variance && result__causes(builder, variance, item, out))
		return -ENOMEM;
	if (variance && !variance->matched) {
		verdict__write_gone(out, verdict, advice, sizeof(verdict));
	} else {
		advice__write(out, waiting, transfer, advice, sizeof(advice));
		verdict__write(out, waiting, transfer, verdict, sizeof(verdict));
	}
	diagnosis->advice = arena__copy(&builder->context->arena, advice);
	diagnosis->verdict = arena__copy(&builder->context->arena, verdict);
	return diagnosis->advice && diagnosis->verdict ? 0 : -ENOMEM;
}
