/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/causes.h"
#include "model/bands.h"
#include "base/grow.h"
#include "report/board.h"
#include "report/cause_json.h"
#include "report/json.h"
#include "report/lines.h"
#include "report/narrator.h"
#include "pipeline/pipeline_private.h"
#include "pipeline/reported.h"
#include "report/shed_text.h"
#include "report/summary.h"

/* Returns UTC minus CLOCK_MONOTONIC, ns. */
static uint64_t clock_offset(const struct pipeline *pipeline)
{
	return pipeline->clock.utc_ns - pipeline->clock.mono_ns;
}

static uint64_t utc(const struct pipeline *pipeline, uint64_t mono_ns)
{
	return mono_ns + clock_offset(pipeline);
}

/* Puts a line. An output that fails costs lines, not the run: the sink counts them and has the error's sentence. */
static int put_line(void *arg, enum record_object type, const char *line)
{
	struct pipeline *pipeline = arg;

	if (pipeline->lines)
		line_sink__put(pipeline->lines, line);
	if (pipeline->narrator)
		narrator__record(pipeline->narrator, type, line);
	if (pipeline->tap)
		pipeline->tap(pipeline->tap_arg, line);
	if (pipeline->board)
		board__line(pipeline->board, type, line);
	return 0;
}

static int add_thread(struct pipeline *pipeline, const struct vapro_thread *thread)
{
	pipeline->begun = true;
	if (!pipeline->host) {
		pipeline->host = strdup(thread->host);
		if (!pipeline->host)
			return -ENOMEM;
	}
	if (pipeline->states && state_totals__add_thread(pipeline->states, thread))
		return -ENOMEM;
	return analysis__add_thread(pipeline->analysis, thread);
}

/* Counts and skips contradictory records: one bad record must not end a run of days. */
static int counted(struct pipeline *pipeline, int ret)
{
	if (ret != -EINVAL)
		return ret;
	pipeline->totals.refused++;
	return 0;
}

/* Adds a state as it is judged. */
static int add_placed_state(struct pipeline *pipeline, const struct vapro_state *state)
{
	if (pipeline->states && state_totals__add_state(pipeline->states, state))
		return -ENOMEM;
	return analysis__add_state(pipeline->analysis, state);
}

static int add_state(struct pipeline *pipeline, const struct vapro_state *state)
{
	return pipeline->bands ? bands__add_state(pipeline->bands, state) : add_placed_state(pipeline, state);
}

/* Adds a bundle to the state in which it is judged. */
static int add_placed_bundle(struct pipeline *pipeline, const struct vapro_bundle *bundle)
{
	if (pipeline->states && state_totals__add_bundle(pipeline->states, bundle))
		return -ENOMEM;
	return counted(pipeline, analysis__add_bundle_at(pipeline->analysis, bundle, clock_offset(pipeline)));
}

static int add_bundle(struct pipeline *pipeline, const struct vapro_bundle *bundle)
{
	struct vapro_bundle placed;
	struct vapro_state fresh;
	int ret;

	if (!pipeline->bands && !pipeline->rules.event_count)
		return add_placed_bundle(pipeline, bundle);
	placed = *bundle;
	ret = pipeline->bands ? bands__place(pipeline->bands, &placed, &fresh) : 0;
	if (ret > 0)
		ret = add_placed_state(pipeline, &fresh);
	if (ret)
		return counted(pipeline, ret);
	rules__apply(&pipeline->rules, &placed);
	return add_placed_bundle(pipeline, &placed);
}

static int add_seen(struct pipeline *pipeline, const struct stream_seen *seen)
{
	uint64_t from_ns = seen->from_ns ? utc(pipeline, seen->from_ns) : 0;
	uint64_t to_ns = seen->to_ns ? utc(pipeline, seen->to_ns) : 0;

	return counted(pipeline, analysis__thread_seen(pipeline->analysis, seen->thread, from_ns, to_ns));
}

static int add_totals(struct pipeline *pipeline, const struct job_result *result)
{
	double rank_seconds = (double)(result->end_ns - result->begin_ns) * 1e-9 * result->rank_count;
	struct line_totals *totals = &pipeline->totals;
	int ret = 0;

	pipeline->rank_seconds += rank_seconds;
	pipeline->judged_seconds += rank_seconds * result->coverage_total + result->covered_before_s;
	pipeline->selections += result->selection_count;

	totals->bundles += result->bundles;
	totals->fragments += result->fragments;
	for (int i = 0; i < VAPRO_LOSSES; i++)
		totals->lost[i] += result->lost[i];
	for (uint32_t i = 0; !ret && i < result->variance_count; i++)
		ret = reported__note(pipeline->reported, result->variances[i].id, result->variances[i].alarm,
				     result->variances[i].severity);
	if (!ret && result->hang)
		ret = reported__note(pipeline->reported_hangs, result->hang->id, result->hang->alarm,
				     result->hang->severity);
	return ret;
}

/* Reports data dropped for the memory cap, once a window. Captures lack it: their replay drops data by itself. */
static int report_shed(struct pipeline *pipeline, const struct job_result *results, uint32_t count)
{
	const struct job_result *worst = NULL;
	struct line_warning warning = {.utc_ns = pipeline->end_ns, .host = pipeline->host, .code = "memory_shed"};
	struct vapro_shed shed;
	char text[512], *line;

	analysis__shed(pipeline->analysis, &shed);
	if (!shed.remembered && !shed.merged && !shed.bins && !shed.coarser && !shed.bundles)
		return 0;
	for (uint32_t i = 0; count > 1 && i < count; i++) {
		if (results[i].shed > (worst ? worst->shed : 0))
			worst = &results[i];
	}
	shed_text__write(&shed, pipeline->memory_cap, worst, text, sizeof(text));
	warning.text = text;
	line = lines__warning(&warning);
	if (!line)
		return -ENOMEM;
	put_line(pipeline, RECORD_OBJECT_warning, line);
	free(line);
	if (!pipeline->summary || pipeline->shed_reported)
		return 0;
	pipeline->shed_reported = true;
	return summary__add_trouble(pipeline->summary, text);
}

static struct json_context context_of(const struct pipeline *pipeline, const struct stream_window *window)
{
	return (struct json_context){
	    .host = pipeline->host,
	    .clock = pipeline->clock,
	    .daemon_cpu_pct = window->daemon_cpu_pct,
	    .io_traced_pct = window->io_traced_pct,
	    .io_tax_pct = window->io_tax_pct,
	    .bystander_hits = window->bystander_hits,
	    .bystander_pct = window->bystander_pct,
	    .names = pipeline->names,
	    .nodes = &pipeline->nodes,
	    .jobs = pipeline->jobs,
	};
}

/* Notes at the end why the region chosen by hand has no diagnosis. */
static int check_selection(struct pipeline *pipeline, const struct job_result *results, uint32_t count)
{
	char why[1024];

	if (response__chosen(results, count, &pipeline->selection, pipeline->begin_ns, why, sizeof(why)))
		return 0;
	pipeline->unanswered = strdup(why);
	return pipeline->unanswered ? 0 : -ENOMEM;
}

static int end_window(struct pipeline *pipeline, const struct stream_window *window)
{
	struct json_context context = context_of(pipeline, window);
	const struct job_result *results = NULL;
	uint32_t count = 0;
	int ret;

	if (!pipeline->clock.utc_ns)
		return -EINVAL;
	ret =
	    analysis__end_window(pipeline->analysis, window->begin_ns, window->end_ns, window->last, &results, &count);
	if (!pipeline->begin_ns)
		pipeline->begin_ns = window->begin_ns;
	pipeline->end_ns = window->end_ns;
	pipeline->totals.windows++;
	for (uint32_t i = 0; !ret && i < count; i++) {
		ret = add_totals(pipeline, &results[i]);
		if (pipeline->take)
			pipeline->take(pipeline->take_arg, &results[i]);
		if (pipeline->board)
			board__begin(pipeline->board, &results[i]);
		if (!ret)
			ret = window_json__put(&results[i], &context, put_line, pipeline);
		if (!ret)
			ret = causes__add_result(pipeline->causes, &results[i]);
		if (!ret && pipeline->summary)
			ret = summary__add(pipeline->summary, &results[i], window->daemon_cpu_pct);
	}
	if (pipeline->board)
		board__end(pipeline->board, window->end_ns);
	if (!ret && window->last && pipeline->selected)
		ret = check_selection(pipeline, results, count);
	if (!ret)
		ret =
		    cause_json__put(pipeline->causes, window->end_ns, pipeline->host, window->last, put_line, pipeline);
	if (!ret)
		ret = report_shed(pipeline, results, count);
	if (pipeline->lines)
		line_sink__flush(pipeline->lines);
	return ret;
}

/* Reports a stage. A replay also stops requesting what the live run could not count. */
static int emit_stage(struct pipeline *pipeline, const struct stream_stage *stage)
{
	struct line_stage reported = {
	    .utc_ns = utc(pipeline, stage->end_ns),
	    .host = pipeline->host,
	    .stage = stage->stage,
	    .expand = stage->expand,
	    .job = stage->job,
	    .variance = stage->variance,
	    .events = stage->events,
	    .refused = stage->refused,
	    .uncounted_ns = stage->refused ? 0 : stage->end_ns - stage->begin_ns,
	};
	char *line = lines__stage(&reported);
	int ret = line ? put_line(pipeline, RECORD_OBJECT_stage, line) : -ENOMEM;

	free(line);
	if (stage->refused)
		analysis__refuse_stage(pipeline->analysis, stage->expand);
	return ret;
}

static int add_hop(struct pipeline *pipeline, const struct stream_hop *hop)
{
	const struct vapro_hop_event event = {
	    .hop = (enum vapro_hop)hop->hop, .site = hop->site, .symbol = hop->symbol, .reason = hop->reason};

	if (!hop->site || hop->hop >= VAPRO_HOPS)
		return counted(pipeline, -EINVAL);
	return analysis__hopped(pipeline->analysis, &event, hop->end_ns);
}

/* Passes a finished line on; the summary has processes and warnings. A node's variance stays here: the node has emitted
 * it. */
static int pass_line(struct pipeline *pipeline, const struct stream_line *line)
{
	bool of_node = line->type == RECORD_OBJECT_variance;
	bool summed = line->type == RECORD_OBJECT_process || line->type == RECORD_OBJECT_warning ||
		      line->type == RECORD_OBJECT_earlier;
	const char *why;
	cJSON *record = NULL;
	int ret = 0;

	if (of_node || (pipeline->summary && summed))
		record = cJSON_Parse(line->text);
	if (of_node)
		ret = counted(pipeline, record ? node_variances__note(&pipeline->nodes, record) : -EINVAL);
	else if (record)
		ret = summary__add_record(pipeline->summary, record, &why);
	cJSON_Delete(record);
	if (!ret && line->type == RECORD_OBJECT_process)
		ret = job_book__note_line(pipeline->jobs, line->text);
	if (!of_node)
		put_line(pipeline, line->type, line->text);
	return ret == -ENOMEM ? ret : 0;
}

static int put(struct stream_sink *sink, const struct stream_event *event)
{
	struct pipeline *pipeline = (struct pipeline *)sink;

	switch (event->type) {
	case STREAM_LINE:
		return pass_line(pipeline, &event->line);
	case STREAM_CLOCK:
		pipeline->clock = event->clock;
		return 0;
	case STREAM_THREAD:
		return add_thread(pipeline, &event->thread);
	case STREAM_SEEN:
		return add_seen(pipeline, &event->seen);
	case STREAM_STATE:
		return add_state(pipeline, &event->state);
	case STREAM_BUNDLE:
		return add_bundle(pipeline, &event->bundle);
	case STREAM_INTERFERENCE:
		return counted(pipeline, analysis__add_interference(pipeline->analysis, &event->interference));
	case STREAM_ACCOUNT:
		return counted(pipeline, analysis__add_account(pipeline->analysis, &event->account));
	case STREAM_FACTS:
		return counted(pipeline, analysis__add_facts(pipeline->analysis, &event->facts));
	case STREAM_PLACE:
		return counted(pipeline, analysis__place(pipeline->analysis, &event->place));
	case STREAM_STAGE:
		return emit_stage(pipeline, &event->stage);
	case STREAM_HOP:
		return add_hop(pipeline, &event->hop);
	case STREAM_NAME:
		return source_names__add(pipeline->names, &event->name);
	case STREAM_INSIDE:
		return counted(pipeline,
			       analysis__add_inside(pipeline->analysis, event->inside.thread, event->inside.state,
						    event->inside.site, event->inside.samples));
	case STREAM_HOST_CLOCK:
		return counted(pipeline, analysis__add_host_clock(pipeline->analysis, &event->host_clock));
	case STREAM_GONE:
		/* states that rules split have other numbers, and stay */
		return pipeline->bands ? 0
				       : counted(pipeline, analysis__state_gone(pipeline->analysis, event->gone.state));
	case STREAM_WINDOW:
		return end_window(pipeline, &event->window);
	case STREAM_END:
		break;
	}
	return 0;
}

static void free_pipeline(struct pipeline *pipeline)
{
	if (pipeline->summary)
		summary__name(pipeline->summary, NULL);
	reported__free(pipeline->reported);
	reported__free(pipeline->reported_hangs);
	node_variances__clear(&pipeline->nodes);
	job_book__free(pipeline->jobs);
	source_names__free(pipeline->names);
	analysis__free(pipeline->analysis);
	causes__free(pipeline->causes);
	bands__free(pipeline->bands);
	free(pipeline->unanswered);
	free(pipeline->host);
	free(pipeline);
}

int pipeline__close(struct pipeline *pipeline)
{
	int ret;

	if (!pipeline)
		return 0;
	ret = pipeline->states ? state_totals__describe(pipeline->states, pipeline->names) : 0;
	if (pipeline->lines)
		line_sink__flush(pipeline->lines);
	free_pipeline(pipeline);
	return ret;
}

struct pipeline *pipeline__new(const struct vapro_config *config, enum vapro_workload_source source, const char *host,
			       struct line_sink *lines, struct summary *summary)
{
	struct pipeline *pipeline = calloc(1, sizeof(*pipeline));
	char why[256];

	if (!pipeline)
		return NULL;
	pipeline->sink.put = put;
	pipeline->lines = lines;
	pipeline->summary = summary;
	pipeline->memory_cap = config->memory_cap;
	pipeline->host = host ? strdup(host) : NULL;
	/* reading the tunables has already reported errors; such rules are dropped */
	if (rules__parse(&pipeline->rules, config->workload, config->bands, why, sizeof(why)))
		memset(&pipeline->rules, 0, sizeof(pipeline->rules));
	pipeline->analysis = analysis__new(config, source);
	pipeline->causes = causes__new(config);
	pipeline->names = source_names__new();
	pipeline->jobs = job_book__new();
	pipeline->reported = reported__new();
	pipeline->reported_hangs = reported__new();
	if (summary) {
		summary__configure(summary, config);
		summary__name(summary, pipeline->names);
	}
	if (pipeline->analysis && pipeline->causes && pipeline->names && pipeline->jobs && pipeline->reported &&
	    pipeline->reported_hangs && (!host || pipeline->host))
		return pipeline;
	free_pipeline(pipeline);
	return NULL;
}

struct stream_sink *pipeline__sink(struct pipeline *pipeline)
{
	return &pipeline->sink;
}

int pipeline__name_events(struct pipeline *pipeline, const char *const named[RULES_NAMED])
{
	rules__finalize(&pipeline->rules, named);
	if (!rules__split(&pipeline->rules))
		return 0;
	pipeline->bands = bands__new(&pipeline->rules);
	return pipeline->bands ? 0 : -ENOMEM;
}

void pipeline__narrate(struct pipeline *pipeline, struct narrator *narrator)
{
	pipeline->narrator = narrator;
}

void pipeline__tap(struct pipeline *pipeline, void (*put)(void *arg, const char *line), void *arg)
{
	pipeline->tap = put;
	pipeline->tap_arg = arg;
}

void pipeline__count_states(struct pipeline *pipeline, struct state_totals *totals)
{
	pipeline->states = totals;
}

void pipeline__give(struct pipeline *pipeline, void (*take)(void *arg, const struct job_result *result), void *arg)
{
	pipeline->take = take;
	pipeline->take_arg = arg;
}

void pipeline__show(struct pipeline *pipeline, struct board *board)
{
	pipeline->board = board;
}

static struct json_context context_of_no_window(const struct pipeline *pipeline)
{
	return context_of(pipeline, &(struct stream_window){.daemon_cpu_pct = NAN,
							    .io_traced_pct = NAN,
							    .io_tax_pct = NAN,
							    .bystander_hits = NAN,
							    .bystander_pct = NAN});
}

int pipeline__query(struct pipeline *pipeline, const struct vapro_selection *selection, const char *job,
		    uint64_t now_ns, struct response *response)
{
	response->context = context_of_no_window(pipeline);
	return analysis__query(pipeline->analysis, selection, job, now_ns, &response->jobs, &response->job_count);
}

int pipeline__put_maps(struct pipeline *pipeline, const struct board_reader *reader, record_put put, void *arg)
{
	struct json_context context = context_of_no_window(pipeline);
	const struct job_result *results;
	uint32_t count;
	int ret = analysis__emitted(pipeline->analysis, &results, &count);

	for (uint32_t i = 0; !ret && i < count; i++) {
		if (board_reader__sees(reader, results[i].user))
			ret = window_json__put_heatmaps(&results[i], &context, put, arg);
	}
	return ret;
}
