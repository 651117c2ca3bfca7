// SPDX-License-Identifier: GPL-2.0-or-later
#include "pipeline/replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "report/lines.h"
#include "capture/ndjson.h"

#define SHOW_NS 1000000000ULL /* between two pictures of the progress */
#define LOOK_BUNDLES 4096     /* the clock is read after so many */

/* A sink that passes events on and shows the progress of long work. */
struct progress {
	struct stream_sink sink; /* first */
	struct stream_sink *to;
	const char *command;
	uint64_t bundles, next_ns;
	bool shown;
};

static int progress_put(struct stream_sink *sink, const struct stream_event *event)
{
	struct progress *progress = (struct progress *)sink;
	uint64_t now_ns;

	if (event->type == STREAM_BUNDLE && ++progress->bundles % LOOK_BUNDLES == 0) {
		now_ns = mono_now();
		if (now_ns >= progress->next_ns) {
			fprintf(stderr, "\rvapro %s: %.1f million bundles \033[K", progress->command,
				(double)progress->bundles * 1e-6);
			progress->next_ns = now_ns + SHOW_NS;
			progress->shown = true;
		}
	}
	return stream__put(progress->to, event);
}

/* What the merge of several captures holds counts as memory of the analysis. */
struct memory {
	struct merge_watch watch; /* first */
	struct pipeline *pipeline;
};

static void memory_held(struct merge_watch *watch, size_t bytes)
{
	pipeline__held_elsewhere(((struct memory *)watch)->pipeline, bytes);
}

struct pipeline *replay__pipeline(const struct replay *replay, const struct vapro_config *config,
				  struct line_sink *lines, struct summary *summary)
{
	const struct capture_info *info = replay->info;
	struct ndjson *ndjson = replay->ndjson;
	enum vapro_workload_source source = (ndjson ? ndjson__by_instructions(ndjson) : info->by_instructions)
						? VAPRO_BY_INSTRUCTIONS
						: VAPRO_BY_ARGUMENTS;
	const char *host = !ndjson && info->host[0] ? info->host : NULL, *named[RULES_NAMED];
	struct pipeline *pipeline = pipeline__new(config, source, host, lines, summary);

	for (int i = 0; i < RULES_NAMED; i++)
		named[i] = ndjson ? ndjson__named(ndjson, i) : info->named[i][0] ? info->named[i] : NULL;
	if (!pipeline || !pipeline__name_events(pipeline, named))
		return pipeline;
	pipeline__close(pipeline);
	return NULL;
}

int replay__feed(const struct replay *replay, double window_s, struct pipeline *pipeline, char *err, size_t err_size)
{
	struct stream_sink *to = replay->through ? replay->through : pipeline__sink(pipeline);
	struct progress progress = {
	    .sink = {.put = progress_put}, .to = to, .command = replay->command, .next_ns = mono_now() + SHOW_NS};
	struct stream_sink *sink = isatty(STDERR_FILENO) ? &progress.sink : to;
	struct memory memory = {.watch = {memory_held}, .pipeline = pipeline};
	int ret;

	if (replay->feed)
		ret = replay->feed(replay->ctx, sink, &memory.watch, err, err_size);
	else if (replay->ndjson)
		ret = ndjson__feed(replay->ndjson, window_s, sink, err, err_size);
	else if (replay->count > 1)
		ret = capture_merge(replay->files, replay->count, replay->run, sink, &memory.watch, err, err_size);
	else
		ret = capture__replay_run(replay->files, 1, replay->run, sink, err, err_size);
	if (progress.shown)
		fputs("\r\033[K", stderr);
	return ret;
}

void replay__end(const struct replay *replay, const struct pipeline *pipeline, struct line_sink *lines, int status)
{
	struct line_bye bye = {
	    .utc_ns = utc_now(), .host = pipeline__host(pipeline), .reason = status ? "error" : "end_of_input"};
	char *line;

	/* a complete capture holds the bye of its run */
	if (!replay->ndjson && !replay->feed && !status)
		return;
	if (!bye.host)
		bye.host = "unknown";
	pipeline__totals(pipeline, &bye.totals);
	line = lines__bye(&bye);
	if (line)
		line_sink__put(lines, line);
	free(line);
}
