/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From stream events to lines: feeds the analysis (monotonic time turned into UTC by the latest
 * STREAM_CLOCK), passes finished lines through, and at each STREAM_WINDOW writes what the analysis
 * found. The live daemon and `vapro analyze` use the same one, so a capture replays into the lines
 * of the live run.
 *
 * put() returns -ENOMEM, or -EINVAL for a window before any clock. Bundles that the analysis refuses
 * are counted, and a line sink that fails costs lines; neither stops the run.
 */
#ifndef VAPRO_PIPELINE_H
#define VAPRO_PIPELINE_H

#include <vapro/analysis.h>
#include "analysis/causes.h"
#include "capture/stream.h"
#include "config/rules.h"
#include "report/board.h"
#include "report/response.h"
#include "report/lines.h"
#include "report/outcome.h"
#include "pipeline/line_sink.h"
#include "report/state_totals.h"

struct board;
struct narrator;
struct pipeline;
struct summary;

/*
 * host NULL: the host of the first thread announced. lines and summary (NULL = none) stay the caller's
 * and outlive the pipeline: bye comes after the pipeline's close. Returns NULL when out of memory.
 */
struct pipeline *pipeline__new(const struct vapro_config *config, enum vapro_workload_source source, const char *host,
			       struct line_sink *lines, struct summary *summary);

/* Returns where its events go. */
struct stream_sink *pipeline__sink(struct pipeline *pipeline);

/* Writes what is left and frees it, or does nothing (NULL). Returns 0 or -ENOMEM. */
int pipeline__close(struct pipeline *pipeline);

/* Names the events of magnitudes from VAPRO_NAMED on (NULL: none) for the config's rules, before the first state. */
int pipeline__name_events(struct pipeline *pipeline, const char *const named[RULES_NAMED]);

/* From now on the narrator gets each line, too; it outlives the pipeline. */
void pipeline__narrate(struct pipeline *pipeline, struct narrator *narrator);

/* From now on put() gets each line, too. */
void pipeline__tap(struct pipeline *pipeline, void (*put)(void *arg, const char *line), void *arg);

/* From now on take() gets each job's result of a window, which is valid during the call. */
void pipeline__give(struct pipeline *pipeline, void (*take)(void *arg, const struct job_result *result), void *arg);

/* From now on the board gets each window and line, too; it outlives the pipeline. */
void pipeline__show(struct pipeline *pipeline, struct board *board);

/*
 * Saves the whole state between two events as bytes (docs/checkpoint.md); smallest after a STREAM_WINDOW. A pipeline
 * with the same settings that loads them before its first event, and gets the events that followed, writes the lines
 * that this one would. The bytes are malloc'ed. Return values are those of analysis__save and analysis__load; a
 * pipeline with a summary, a narrator, a board or a region chosen by hand cannot be saved, nor loaded into (-ENOTSUP),
 * and one that could not load can only be closed.
 */
int pipeline__save(const struct pipeline *pipeline, uint8_t **data, size_t *size, char *err, size_t err_size);
int pipeline__load(struct pipeline *pipeline, const uint8_t *data, size_t size, char *err, size_t err_size);

/* Gets totals so far, for the bye line. */
void pipeline__totals(const struct pipeline *pipeline, struct line_totals *totals);

/* Gets the outcome so far, for the exit code; selections: how many regions chosen by hand have a diagnosis. */
void pipeline__outcome(const struct pipeline *pipeline, struct outcome *outcome, uint64_t *selections);

/* Gets the causes of losses so far, which the caller frees (causes__free_list). Returns 0 or -ENOMEM. */
int pipeline__causes(struct pipeline *pipeline, struct cause_list *list);

/* As analysis__select and analysis__stage_request. */
int pipeline__select(struct pipeline *pipeline, const struct vapro_selection *selection);

/* Returns after the last window why the selected region has no diagnosis; NULL where it has one. */
const char *pipeline__unanswered(const struct pipeline *pipeline);

void pipeline__stage_request(const struct pipeline *pipeline, struct vapro_stage_request *request);

/* As analysis__inside_request; samples return as STREAM_INSIDE. */
void pipeline__inside_request(const struct pipeline *pipeline, struct vapro_inside_request *request);

/*
 * Words a place of a program by its function and line, where these were read. malloc'ed; NULL where neither is known,
 * and when out of memory.
 */
char *pipeline__place(const struct pipeline *pipeline, const char *site);

/* As analysis__hop_request; the outcome returns as a STREAM_HOP. */
void pipeline__hop_request(struct pipeline *pipeline, uint64_t now_ns, struct vapro_hop_event *event);

/* As analysis__held_elsewhere. */
void pipeline__held_elsewhere(struct pipeline *pipeline, size_t bytes);

/* As analysis__remember and analysis__query; the response includes the context of its lines. */
void pipeline__remember(struct pipeline *pipeline, double seconds, uint64_t bytes);
int pipeline__query(struct pipeline *pipeline, const struct vapro_selection *selection, const char *job,
		    uint64_t now_ns, struct response *response);

/*
 * Counts the states of all bundles from here on; without any before. Their texts are written when the pipeline is
 * closed, which returns -ENOMEM where that fails. totals are the caller's.
 */
void pipeline__count_states(struct pipeline *pipeline, struct state_totals *totals);

/*
 * Puts the lines of the heat maps that are retained (analysis__emitted), of the jobs that a reader may see. Returns 0,
 * -ENOMEM or the value of put.
 */
int pipeline__put_maps(struct pipeline *pipeline, const struct board_reader *reader, record_put put, void *arg);

/* Return the host in lines, and the UTC end of the last window (0 before the first): for the bye line of a replay. */
const char *pipeline__host(const struct pipeline *pipeline);
uint64_t pipeline__end_ns(const struct pipeline *pipeline);

#endif
