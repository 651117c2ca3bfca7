// SPDX-License-Identifier: GPL-2.0-or-later
/* Responds to a query about a job of many nodes from the blocks that these have published. */
#include <errno.h>
#include <string.h>

#include "base/exit_codes.h"
#include "cli/broker_rows.h"
#include "cli/from_blocks.h"
#include "pipeline/pipeline.h"

#define RETAINED_S 1e9 /* all of the job; bytes are the bound */

/* Between the merge and the pipeline. */
struct replay {
	struct stream_sink sink;  /* first */
	struct merge_watch watch; /* what the merge holds */
	struct pipeline *pipeline;
	uint64_t start_ns; /* UTC begin of the first window; 0: none yet */
};

static int put(struct stream_sink *sink, const struct stream_event *event)
{
	struct replay *replay = (struct replay *)sink;

	if (event->type == STREAM_WINDOW && !replay->start_ns)
		replay->start_ns = event->window.begin_ns;
	return stream__put(pipeline__sink(replay->pipeline), event);
}

static void hold(struct merge_watch *watch, size_t bytes)
{
	struct replay *replay = (struct replay *)((char *)watch - offsetof(struct replay, watch));

	pipeline__held_elsewhere(replay->pipeline, bytes);
}

/* Replays all blocks. Returns 0 or a negative errno with a sentence in err. */
static int run(struct replay *replay, struct source_blocks *blocks, char *err, size_t err_size)
{
	const char *named[RULES_NAMED];
	struct capture_info info;
	uint64_t hosts = source_blocks__hosts(blocks);

	if (source_blocks__info(blocks, &info, err, err_size))
		fprintf(stderr, "vapro diagnose: %s\n", err);
	info.config.memory_cap *= hosts;
	for (int i = 0; i < RULES_NAMED; i++)
		named[i] = info.named[i][0] ? info.named[i] : NULL;
	replay->pipeline =
	    pipeline__new(&info.config, info.by_instructions ? VAPRO_BY_INSTRUCTIONS : VAPRO_BY_ARGUMENTS,
			  info.host[0] ? info.host : NULL, NULL, NULL);
	if (!replay->pipeline || pipeline__name_events(replay->pipeline, named)) {
		snprintf(err, err_size, "out of memory");
		return -ENOMEM;
	}
	/* a node retains so much of its own ranks */
	pipeline__remember(replay->pipeline, RETAINED_S, info.config.keep_bytes * hosts);
	return source_blocks__feed(blocks, &replay->sink, info.config.memory_cap / 2, &replay->watch, err, err_size);
}

static int put_line(void *arg, enum record_object type, const char *line)
{
	(void)type;
	return fprintf(arg, "%s\n", line) < 0 ? -EIO : 0;
}

/* Prints the response. Returns an exit code. */
static int respond(const struct replay *replay, const struct query_request *request)
{
	struct query query = {.selection = region_option__selection(&request->region),
			      .start_ns = replay->start_ns,
			      .now_ns = pipeline__end_ns(replay->pipeline)};
	char note[QUERY_SENTENCE_MAX];
	struct response response;
	int failed;

	if (query.selection.relative) {
		query.selection.relative = false;
		query.selection.begin_ns += query.start_ns;
		query.selection.end_ns += query.selection.end_ns ? query.start_ns : 0;
	}
	failed = pipeline__query(replay->pipeline, &query.selection, NULL, query.now_ns, &response);
	if (failed) {
		fprintf(stderr, "vapro diagnose: %s\n", strerror(-failed));
		return EXIT_FAILED;
	}
	failed = !response__check(&response, &query, note, sizeof(note));
	if (*note)
		fprintf(stderr, "vapro diagnose: %s\n", note);
	if (failed)
		return EXIT_FAILED;
	failed = request->json ? response__json(&response, put_line, stdout)
			       : response__text(&response, &query, stdout, request->width);
	if (!failed && !fflush(stdout))
		return EXIT_OK;
	fprintf(stderr, "vapro diagnose: the response could not be written\n");
	return EXIT_FAILED;
}

int from_blocks__diagnose(const struct source_options *source, const struct query_request *request)
{
	struct replay replay = {.sink.put = put, .watch.held = hold};
	struct source_blocks *blocks = NULL;
	char err[SOURCE_ERR];
	int ret = source_blocks__open(&blocks, source, err, sizeof(err)), code;

	if (!ret)
		ret = run(&replay, blocks, err, sizeof(err));
	if (ret) {
		fprintf(stderr, "vapro diagnose: %s\n", err);
		code = broker_rows__code(ret);
	} else {
		from_blocks__say("diagnose", blocks, NULL);
		code = respond(&replay, request);
	}
	pipeline__close(replay.pipeline);
	source_blocks__close(blocks);
	return code;
}
