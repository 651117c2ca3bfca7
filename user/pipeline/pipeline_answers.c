// SPDX-License-Identifier: GPL-2.0-or-later
/* What a pipeline's users read from it, and what its analysis requests of them. */
#include "pipeline/line_sink.h"
#include "pipeline/pipeline_private.h"

void pipeline__outcome(const struct pipeline *pipeline, struct outcome *outcome, uint64_t *selections)
{
	*outcome = (struct outcome){.rank_seconds = pipeline->rank_seconds, .judged_seconds = pipeline->judged_seconds};
	reported__alarms(pipeline->reported, outcome->alarms);
	reported__alarms(pipeline->reported_hangs, outcome->alarms);
	if (selections)
		*selections = pipeline->selections;
}

void pipeline__totals(const struct pipeline *pipeline, struct line_totals *totals)
{
	struct outcome outcome;

	*totals = pipeline->totals;
	totals->variances = reported__count(pipeline->reported);
	pipeline__outcome(pipeline, &outcome, NULL);
	totals->alarms = 0;
	for (int i = 0; i < VAPRO_SEVERITIES; i++)
		totals->alarms += outcome.alarms[i];
	if (pipeline->lines)
		totals->lost_lines = line_sink__lost(pipeline->lines);
}

int pipeline__causes(struct pipeline *pipeline, struct cause_list *list)
{
	return causes__list(pipeline->causes, list);
}

const char *pipeline__host(const struct pipeline *pipeline)
{
	return pipeline->host;
}

uint64_t pipeline__end_ns(const struct pipeline *pipeline)
{
	return pipeline->end_ns;
}

int pipeline__select(struct pipeline *pipeline, const struct vapro_selection *selection)
{
	pipeline->selection = *selection;
	pipeline->selected = true;
	return analysis__select(pipeline->analysis, selection);
}

const char *pipeline__unanswered(const struct pipeline *pipeline)
{
	return pipeline->unanswered;
}

void pipeline__stage_request(const struct pipeline *pipeline, struct vapro_stage_request *request)
{
	analysis__stage_request(pipeline->analysis, request);
}

void pipeline__inside_request(const struct pipeline *pipeline, struct vapro_inside_request *request)
{
	analysis__inside_request(pipeline->analysis, request);
}

char *pipeline__place(const struct pipeline *pipeline, const char *site)
{
	return source_names__place(pipeline->names, site);
}

void pipeline__hop_request(struct pipeline *pipeline, uint64_t now_ns, struct vapro_hop_event *event)
{
	analysis__hop_request(pipeline->analysis, now_ns, event);
}

void pipeline__held_elsewhere(struct pipeline *pipeline, size_t bytes)
{
	analysis__held_elsewhere(pipeline->analysis, bytes + source_names__bytes(pipeline->names));
}

void pipeline__remember(struct pipeline *pipeline, double seconds, uint64_t bytes)
{
	analysis__remember(pipeline->analysis, seconds, bytes);
}
