// SPDX-License-Identifier: GPL-2.0-or-later
/* Responds to `vapro diagnose` with what the daemon retains of the requested time and ranks. */
#include <string.h>

#include "daemon/daemon_private.h"
#include "report/answer.h"
#include "report/pipeline.h"

static int put_line(void *arg, const char *line)
{
	return fprintf(arg, "%s\n", line) < 0 ? -1 : 0;
}

/* Runs in a forked copy of the daemon, which exits after the response. */
static int answer_question(void *ctx, const struct query_request *request, FILE *out, char *note,
			   enum query_error *error)
{
	struct daemon *daemon = ctx;
	struct question question = {
	    .selection = region_option__selection(&request->region),
	    .job = *request->job ? request->job : NULL,
	    .start_ns = daemon->first_window,
	};
	uint64_t now = mono_now() - SETTLE_NS + (daemon->clock.utc_ns - daemon->clock.mono_ns);
	struct answer answer;
	int failed;

	*error = QUERY_FAILED;
	if (request->jobs)
		return watch__print_jobs(daemon->watch, out) ? -1 : 0;
	/* only fully drained bins count */
	question.now_ns = now > question.start_ns ? now / VAPRO_BIN_NS * VAPRO_BIN_NS : question.start_ns;
	if (question.selection.relative) {
		question.selection.relative = false;
		question.selection.begin_ns += question.start_ns;
		question.selection.end_ns += question.selection.end_ns ? question.start_ns : 0;
	}
	failed = pipeline__query(daemon->tee.pipeline, &question.selection, question.job, question.now_ns, &answer);
	if (failed || !answer__check(&answer, &question, note, QUERY_SENTENCE_MAX))
		return -1;
	if (request->json)
		failed = answer__json(&answer, put_line, out);
	else
		failed = answer__text(&answer, &question, out, request->width);
	return failed ? -1 : 0;
}

void daemon__hear(struct daemon *daemon)
{
	const struct vapro_config *config = &daemon->options->config;
	char err[512];

	if (!*config->socket)
		return;
	daemon->queries = query_server__open(config->socket, answer_question, daemon, err, sizeof(err));
	if (daemon->queries)
		pipeline__remember(daemon->tee.pipeline, config->keep_s, config->keep_bytes);
	else
		watch__warn(daemon->watch, "no_socket", 0, "`vapro diagnose` cannot reach this vaprod: %s", err);
}
