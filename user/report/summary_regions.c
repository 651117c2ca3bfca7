// SPDX-License-Identifier: GPL-2.0-or-later
/* The slow regions of a summary: what they take over from results, and what they are rolled up to. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
	task->seconds = from->seconds;
}

int region__fill_diagnosis(struct region *region, const struct result_diagnosis *diagnosis)
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
	return region__set_text(&region->cause, diagnosis->cause) && region__set_text(&region->place, place) &&
		       region__set_hosts(region, diagnosis->hosts, diagnosis->host_count) &&
		       (!diagnosis->advice || region__set_text(&region->advice, diagnosis->advice)) &&
		       (!diagnosis->verdict || region__set_text(&region->verdict, diagnosis->verdict))
		   ? 0
		   : -ENOMEM;
}

int region__fill(struct region *region, const struct result_variance *variance, const struct source_names *names)
{
	char *site = NULL, *inside = inside_words__of(variance, names);
	bool ok = true;

	if (variance->site_count) {
		site = summary__describe(variance->sites[0].state, names);
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
	ok = region__set_text(&region->class, vapro_class_name[variance->class]) &&
	     region__set_text(&region->who, variance->who) && region__set_text(&region->site, site) &&
	     (!inside || region__set_text(&region->inside, inside)) &&
	     region__set_text(&region->evidence, variance->evidence) &&
	     region__set_ranks(region, variance->ranks, variance->rank_count) &&
	     (!variance->diagnosis.verdict || region__set_text(&region->verdict, variance->diagnosis.verdict)) &&
	     (!variance->diagnosis.stage || !region__fill_diagnosis(region, &variance->diagnosis));
cleanup:
	free(site);
	free(inside);
	return ok ? 0 : -ENOMEM;
}

static double task_seconds(const struct region *region)
{
	double sum = 0;

	for (size_t i = 0; i < region->interferer_count && i < CAUSE_TASKS; i++)
		sum += region->interferers[i].seconds;
	return sum;
}

int summary__causes(const struct summary *summary, struct causes **out, struct cause_list *list)
{
	struct causes *causes = causes__new(&summary->config);
	int ret = causes ? 0 : -ENOMEM;

	for (size_t i = 0; !ret && i < summary->job_count; i++)
		ret = causes__add_time(causes, summary->jobs[i].said, summary->jobs[i].user,
				       summary->jobs[i].rank_seconds);
	for (size_t i = 0; !ret && i < summary->regions.count; i++) {
		const struct region *region = &summary->regions.items[i];
		int class = record__word(region->class, vapro_class_name, VAPRO_CLASSES);
		const struct cause_region add = {
		    .job = region->job,
		    .user = region->user,
		    .id = region->id,
		    .closed = region->ended,
		    .confirmed = region__sure(region),
		    .alarm = region->alarm,
		    .effect_of = region->effect_of,
		    .cause = region->cause,
		    .culprit = *region->culprit.comm ? region->culprit.comm : NULL,
		    .pid = region->culprit.pid,
		    .culprit_seconds = region->culprit.seconds,
		    .task_seconds = task_seconds(region),
		    .relation = region->culprit.relation,
		    .place = region->place,
		    .class = class < VAPRO_CLASSES ? (enum vapro_class) class : VAPRO_COMPUTATION,
		    .severity = region->level,
		    .begin_ns = region->begin_ns,
		    .end_ns = region->end_ns,
		    .lost_seconds = region->lost_seconds,
		    .caused_seconds = region->caused_seconds,
		    .ranks = region->ranks,
		    .rank_count = region->rank_count,
		    .hosts = (const char *const *)region->hosts,
		    .host_count = region->host_count,
		};

		if (region->class) /* NULL: a diagnosis without its variance */
			ret = causes__add(causes, &add);
	}
	if (!ret)
		ret = causes__list(causes, list);
	*out = causes;
	return ret;
}
