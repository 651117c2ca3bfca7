// SPDX-License-Identifier: GPL-2.0-or-later
/* Responds to `vapro diagnose` with what the daemon retains of the requested time and ranks. */
#include <string.h>

#include "daemon/daemon_private.h"
#include "report/response.h"
#include "report/pipeline.h"

static int put_line(void *arg, enum record_object type, const char *line)
{
	(void)type;
	return fprintf(arg, "%s\n", line) < 0 ? -1 : 0;
}

/* Runs in a forked copy of the daemon, which exits after the response. */
static int response_question(void *ctx, const struct query_request *request, FILE *out, char *note,
			     enum query_error *error)
{
	struct daemon *daemon = ctx;
	struct query query = {
	    .selection = region_option__selection(&request->region),
	    .job = *request->job ? request->job : NULL,
	    .start_ns = daemon->first_window,
	    .program = tracker__program,
	    .ctx = daemon->tracker,
	};
	uint64_t now = mono_now() - SETTLE_NS + (daemon->clock.utc_ns - daemon->clock.mono_ns);
	struct response response;
	int failed;

	*error = QUERY_FAILED;
	if (request->jobs)
		return tracker__print_jobs(daemon->tracker, out) ? -1 : 0;
	/* only fully drained bins count */
	query.now_ns = now > query.start_ns ? now / VAPRO_BIN_NS * VAPRO_BIN_NS : query.start_ns;
	if (query.selection.relative) {
		query.selection.relative = false;
		query.selection.begin_ns += query.start_ns;
		query.selection.end_ns += query.selection.end_ns ? query.start_ns : 0;
	}
	failed = pipeline__query(daemon->tee.pipeline, &query.selection, query.job, query.now_ns, &response);
	if (failed || !response__check(&response, &query, note, QUERY_SENTENCE_MAX))
		return -1;
	if (request->json)
		failed = response__json(&response, put_line, out);
	else
		failed = response__text(&response, &query, out, request->width);
	return failed ? -1 : 0;
}

void daemon__serve(struct daemon *daemon)
{
	const struct vapro_config *config = &daemon->options->config;
	char err[512];

	if (!*config->socket)
		return;
	daemon->queries = query_server__open(config->socket, response_question, daemon, err, sizeof(err));
	if (daemon->queries)
		pipeline__remember(daemon->tee.pipeline, config->keep_s, config->keep_bytes);
	else
		tracker__warn(daemon->tracker, "no_socket", 0, "`vapro diagnose` cannot reach this vaprod: %s", err);
}
