/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The replay of captures, or of fragments as NDJSON, into the lines of a live run; for all commands that have one. */
#ifndef VAPRO_REPLAY_H
#define VAPRO_REPLAY_H

#include "capture/capture.h"
#include "capture/capture_merge.h"
#include "pipeline/pipeline.h"
#include "capture/ndjson.h"

struct replay {
	const char *command; /* `vapro COMMAND`, whose progress is shown where standard error is a terminal */
	const char *const *files;
	size_t count;
	int run;			 /* of captures: as --run */
	struct ndjson *ndjson;		 /* fragments that were read from the files; NULL: the files are captures */
	const struct capture_info *info; /* of the first capture */

	/* Feeds an input that is no file, in place of the files, as capture_merge() does; NULL: the files. */
	int (*feed)(void *ctx, struct stream_sink *sink, struct merge_watch *watch, char *err, size_t err_size);
	void *ctx;

	struct stream_sink *through; /* passes all events on to the pipeline's sink; NULL: they go there at once */
};

/* Makes the pipeline of a replay; lines and summary may be NULL. Returns NULL when out of memory. */
struct pipeline *replay__pipeline(const struct replay *replay, const struct vapro_config *config,
				  struct line_sink *lines, struct summary *summary);

/* Feeds the whole input. Returns as capture__replay_run() or ndjson__feed() does. */
int replay__feed(const struct replay *replay, double window_s, struct pipeline *pipeline, char *err, size_t err_size);

/* Adds the end of a run whose input has none: fragments, no file, or an input that ended in an error (status not 0). */
void replay__end(const struct replay *replay, const struct pipeline *pipeline, struct line_sink *lines, int status);

#endif
