// SPDX-License-Identifier: GPL-2.0-or-later
/* What a pipeline's users read from it, and what its analysis requests of them. */
#include "pipeline/line_sink.h"
#include "pipeline/pipeline_private.h"

void pipeline__outcome(const struct stream_sink *sink, struct outcome *outcome, uint64_t *selections)
{
	const struct pipeline *pipeline = pipeline_of(sink);

	*outcome = (struct outcome){.rank_seconds = pipeline->rank_seconds, .judged_seconds = pipeline->judged_seconds};
	reported__alarms(pipeline->reported, outcome->alarms);
	reported__alarms(pipeline->reported_hangs, outcome->alarms);
	if (selections)
		*selections = pipeline->selections;
}

void pipeline__totals(const struct stream_sink *sink, struct line_totals *totals)
{
	const struct pipeline *pipeline = pipeline_of(sink);
	struct outcome outcome;

	*totals = pipeline->totals;
	totals->variances = reported__count(pipeline->reported);
	pipeline__outcome(sink, &outcome, NULL);
	totals->alarms = 0;
	for (int i = 0; i < VAPRO_SEVERITIES; i++)
		totals->alarms += outcome.alarms[i];
	if (pipeline->lines)
		totals->lost_lines = line_sink__lost(pipeline->lines);
}

const char *pipeline__host(const struct stream_sink *sink)
{
	return pipeline_of(sink)->host;
}

uint64_t pipeline__end_ns(const struct stream_sink *sink)
{
	return pipeline_of(sink)->end_ns;
}

int pipeline__select(struct stream_sink *sink, const struct vapro_selection *selection)
{
	struct pipeline *pipeline = pipeline_of(sink);

	pipeline->selection = *selection;
	pipeline->selected = true;
	return analysis__select(pipeline->analysis, selection);
}

const char *pipeline__unanswered(const struct stream_sink *sink)
{
	return pipeline_of(sink)->unanswered;
}

void pipeline__stage_request(const struct stream_sink *sink, struct vapro_stage_request *request)
{
	analysis__stage_request(pipeline_of(sink)->analysis, request);
}

void pipeline__inside_request(const struct stream_sink *sink, struct vapro_inside_request *request)
{
	analysis__inside_request(pipeline_of(sink)->analysis, request);
}

void pipeline__hop_request(struct stream_sink *sink, uint64_t now_ns, struct vapro_hop_event *event)
{
	analysis__hop_request(pipeline_of(sink)->analysis, now_ns, event);
}

int pipeline__score(const struct stream_sink *sink, struct vapro_score *score)
{
	return analysis__score(pipeline_of(sink)->analysis, score);
}

void pipeline__held_elsewhere(struct stream_sink *sink, size_t bytes)
{
	struct pipeline *pipeline = pipeline_of(sink);

	analysis__held_elsewhere(pipeline->analysis, bytes + source_names__bytes(pipeline->names));
}

void pipeline__remember(struct stream_sink *sink, double seconds, uint64_t bytes)
{
	analysis__remember(pipeline_of(sink)->analysis, seconds, bytes);
}
