// SPDX-License-Identifier: GPL-2.0-or-later
/* The slow regions of a summary: what they take over from results, and what they are rolled up to. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/stg.h"
#include "report/inside_words.h"
#include "report/json.h"
#include "report/record.h"
#include "report/summary.h"
#include "report/summary_parts.h"

static void fill_interferer(struct region_interferer *task, const struct result_interferer *from)
{
	snprintf(task->comm, sizeof(task->comm), "%.*s", (int)sizeof(from->comm), from->comm);
	regions__defuse(task->comm);
	task->pid = from->pid;
	task->relation = from->relation;
	task->rank = from->rank;
	snprintf(task->job, sizeof(task->job), "%s", from->job ? from->job : "");
	regions__defuse(task->job);
	task->seconds = from->seconds;
}

int summary__fill_diagnosis(struct region *region, const struct result_diagnosis *diagnosis)
{
	const char *place = diagnosis->shared_count ? diagnosis->shared[0].fact : NULL;

	region->cause_count = region->interferer_count = 0;
	for (uint32_t i = 0; i < diagnosis->factor_count && region->cause_count < REGION_CAUSES; i++) {
		const struct result_factor *factor = &diagnosis->factors[i];
		struct region_cause *cause = &region->causes[region->cause_count++];

		snprintf(cause->name, sizeof(cause->name), "%s", factor->name);
		regions__defuse(cause->name);
		cause->share = factor->contribution;
		cause->major = factor->major;
		cause->part = factor->parent != NULL;
	}
	for (uint32_t i = 0; i < diagnosis->interferer_count && i < REGION_INTERFERERS; i++)
		fill_interferer(&region->interferers[region->interferer_count++], &diagnosis->interferers[i]);
	region->culprit = (struct region_interferer){0};
	if (diagnosis->culprit)
		fill_interferer(&region->culprit, diagnosis->culprit);
	return regions__set_text(&region->cause, diagnosis->cause) && regions__set_text(&region->place, place) &&
		       regions__set_hosts(region, diagnosis->hosts, diagnosis->host_count) &&
		       (!diagnosis->advice || regions__set_text(&region->advice, diagnosis->advice)) &&
		       (!diagnosis->verdict || regions__set_text(&region->verdict, diagnosis->verdict))
		   ? 0
		   : -ENOMEM;
}

static bool is_unseen(const struct vapro_state *state)
{
	const char *site = state->to_symbol ? state->to_symbol : state->to;

	return site && !strcmp(site, STG_UNSEEN_TEXT);
}

/* Returns the first call-site of a region of which calls were seen, or the first one. */
static const struct vapro_state *known_site(const struct result_variance *variance)
{
	for (uint32_t i = 0; i < variance->site_count; i++) {
		if (!is_unseen(variance->sites[i].state))
			return variance->sites[i].state;
	}
	return variance->sites[0].state;
}

int summary__fill_region(struct region *region, const struct result_variance *variance,
			 const struct source_names *names)
{
	char *site = NULL, *inside = inside_words__of(variance, names);
	bool ok = true;

	if (variance->site_count) {
		const struct vapro_state *state = known_site(variance);

		site = summary__describe(state, names);
		region->site_unknown = is_unseen(state);
		ok = site;
	}
	if (!ok)
		goto cleanup;
	region->effect_of = variance->effect_of;
	region->begin_ns = variance->begin_ns;
	region->end_ns = variance->end_ns;
	region->performance = variance->performance;
	region->work_unknown = variance->work_unknown;
	region->lost_seconds = variance->lost_seconds;
	region->observed = variance->observed;
	region->whole_lost_seconds = variance->whole_lost_seconds;
	region->unseen_before_seconds = variance->unseen_before_seconds;
	region->unseen_after_seconds = variance->unseen_after_seconds;
	region->caused_seconds = variance->caused_seconds;
	region->level = variance->severity;
	snprintf(region->severity, sizeof(region->severity), "%s", json_severity_name[variance->severity]);
	region->confirmed = variance->confirmed;
	region->place_only = variance->confidence == VAPRO_PLACE;
	region->alarm = variance->alarm;
	region->ended = variance->state == VAPRO_REGION_CLOSED;
	ok = regions__set_text(&region->class, vapro_class_name[variance->class]) &&
	     regions__set_text(&region->who, variance->who) && regions__set_text(&region->site, site) &&
	     (!inside || regions__set_text(&region->inside, inside)) &&
	     regions__set_text(&region->evidence, variance->evidence) &&
	     regions__set_ranks(region, variance->ranks, variance->rank_count) &&
	     regions__copy_causes(region, variance->causes, variance->cause_count) &&
	     (!variance->diagnosis.verdict || regions__set_text(&region->verdict, variance->diagnosis.verdict)) &&
	     (!variance->diagnosis.stage || !summary__fill_diagnosis(region, &variance->diagnosis));
cleanup:
	free(site);
	free(inside);
	return ok ? 0 : -ENOMEM;
}

/* Returns the task that a cause of a region blames; NULL: none. Where the region has no more of it, it has a name only.
 */
static const struct region_interferer *culprit_of(const struct region *region, const struct region_part *part,
						  struct region_interferer *name_only)
{
	if (!part)
		return *region->culprit.comm ? &region->culprit : NULL;
	if (!*part->culprit)
		return NULL;
	if (!strcmp(region->culprit.comm, part->culprit))
		return &region->culprit;
	for (size_t i = 0; i < region->interferer_count; i++) {
		if (!strcmp(region->interferers[i].comm, part->culprit))
			return &region->interferers[i];
	}
	*name_only = (struct region_interferer){.rank = -1, .seconds = part->lost_seconds};
	memcpy(name_only->comm, part->culprit, sizeof(name_only->comm));
	return name_only;
}

/* Returns what was lost to the culprit of a cause. Records of an earlier version have its time on the CPU only. */
static double culprit_seconds(const struct region_part *part, const struct region_interferer *culprit,
			      double lost_seconds)
{
	return part && part->culprit_seconds >= 0 ? part->culprit_seconds : fmin(culprit->seconds, lost_seconds);
}

/* Adds a cause of a region; part_count: the region as a whole, of a record of an earlier version. */
static int add_part(struct causes *causes, const struct region *region, uint32_t number)
{
	const struct region_part *part = number < region->part_count ? &region->parts[number] : NULL;
	struct region_interferer name_only;
	const struct region_interferer *culprit = culprit_of(region, part, &name_only);
	double lost_seconds = part ? part->lost_seconds : region->lost_seconds;
	bool explained = !part || part->explained;
	int class = record__word(region->class, vapro_class_name, VAPRO_CLASSES);
	const struct cause_region add = {
	    .job = region->job,
	    .user = region->user,
	    .id = region->id,
	    .part = part ? number : 0,
	    .closed = region->ended,
	    .confirmed = cause_region__is_sure(regions__sure(region), explained, number),
	    .alarm = cause_region__is_sure(region->alarm, explained, number),
	    .effect_of = region->effect_of,
	    .cause = part ? part->cause : region->cause,
	    .culprit = culprit ? culprit->comm : NULL,
	    .pid = culprit ? culprit->pid : 0,
	    .culprit_seconds = culprit ? culprit_seconds(part, culprit, lost_seconds) : 0,
	    .task_seconds = culprit ? lost_seconds : 0,
	    .relation = culprit ? culprit->relation : VAPRO_FOREIGN,
	    .culprit_job = culprit && *culprit->job ? culprit->job : NULL,
	    .culprit_rank = culprit ? culprit->rank : -1,
	    .place = region->place,
	    .class = class < VAPRO_CLASSES ? (enum vapro_class) class : VAPRO_COMPUTATION,
	    .begin_ns = part ? part->begin_ns : region->begin_ns,
	    .end_ns = part ? part->end_ns : region->end_ns,
	    .lost_seconds = lost_seconds,
	    .caused_seconds = part ? part->caused_seconds : region->caused_seconds,
	    .ranks = part ? part->ranks : region->ranks,
	    .rank_count = part ? part->rank_count : region->rank_count,
	    .hosts = (const char *const *)region->hosts,
	    .host_count = region->host_count,
	};

	return causes__add(causes, &add);
}

/* Adds the time of a job's ranks. Returns 0 or -ENOMEM. */
static int add_time(struct causes *causes, const struct job_summary *job)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < job->span_count; i++)
		ret = causes__add_time(causes, job->said, job->user, job->spans[i].begin_ns, job->spans[i].end_ns,
				       job->spans[i].rank_seconds);
	return ret;
}

/* Rates alarms by the time of their job as far as it is known now: as their causes are, which are listed above them. */
static void rate_regions(struct summary *summary, const struct causes *causes)
{
	for (size_t i = 0; i < summary->regions.count; i++) {
		struct region *region = &summary->regions.items[i];

		if (!region->alarm || !region->class)
			continue;
		region->level = causes__severity(causes, region->job, region->user, region->begin_ns, region->end_ns,
						 region->lost_seconds, region->caused_seconds, region->level);
		snprintf(region->severity, sizeof(region->severity), "%s", json_severity_name[region->level]);
	}
}

int summary__causes(struct summary *summary, struct causes **out, struct cause_list *list)
{
	struct causes *causes = causes__new(&summary->config);
	int ret = causes ? 0 : -ENOMEM;

	for (size_t i = 0; !ret && i < summary->job_count; i++)
		ret = add_time(causes, &summary->jobs[i]);
	for (size_t i = 0; !ret && i < summary->regions.count; i++) {
		const struct region *region = &summary->regions.items[i];

		if (!region->class) /* a diagnosis without its variance */
			continue;
		for (uint32_t part = 0; !ret && (part < region->part_count || !part); part++)
			ret = add_part(causes, region, part);
	}
	if (!ret)
		ret = causes__list(causes, list);
	if (!ret)
		rate_regions(summary, causes);
	*out = causes;
	return ret;
}
