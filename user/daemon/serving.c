// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What users get of vaprod: the live state of the run for `vapro top` and `vapro report`, a region for `vapro
 * diagnose`, what jobs leave their owners, and metrics for a collector.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/daemon_private.h"
#include "metrics/metrics.h"
#include "pipeline/pipeline.h"
#include "report/response.h"

#define PATIENCE_NS 20000000000ULL /* for reports of jobs that run when vaprod ends */

/* Reads a number behind a key of /proc/PID/status; 0 where it is missing. */
static unsigned long number_of(const char *text, const char *key)
{
	const char *found = strstr(text, key);

	return found ? strtoul(found + strlen(key), NULL, 10) : 0;
}

/*
 * Returns whether a user may see the name of a task that took CPU time: it is the user's, or the system's. Tasks that
 * are gone, whose number another one may have by now, and root's own jobs are another user's.
 */
static bool shows(void *ctx, uint32_t user, const struct result_interferer *task)
{
	const struct daemon *daemon = ctx;
	char path[32], text[1024], name[sizeof(task->comm) + 16];
	size_t size;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%u/status", task->pid);
	file = user && task->pid ? fopen(path, "re") : NULL;
	if (!file)
		return false;
	size = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[size] = 0;
	snprintf(name, sizeof(name), "Name:\t%.*s\n", (int)sizeof(task->comm), task->comm);
	if (strncmp(text, name, strlen(name)) || !strstr(text, "\nUid:\t"))
		return false;
	if (number_of(text, "\nUid:\t"))
		return number_of(text, "\nUid:\t") == user - 1;
	return !tracker__tracks(daemon->tracker, (pid_t)number_of(text, "\nTgid:\t"));
}

static int put_line(void *arg, enum record_object type, const char *line)
{
	(void)type;
	return fprintf(arg, "%s\n", line) < 0 ? -1 : 0;
}

/* Writes the state for a reader; a user sees the jobs of that user, root sees all. */
static int write_board(struct daemon *daemon, const struct board_reader *reader, FILE *out)
{
	static struct board_process processes[KERNEL_SLOTS];
	struct line_totals totals;
	struct board_facts facts = {
	    .host = daemon->host,
	    .version = VAPRO_VERSION,
	    .pid = (uint32_t)getpid(),
	    .utc_ns = utc_now(),
	    .begin_ns = daemon->first_window,
	    .window_s = daemon->options->config.window_s,
	    .daemon_cpu_pct = daemon->window_cpu_pct,
	};

	pipeline__totals(daemon->tee.pipeline, &totals);
	facts.lost_lines = totals.lost_lines;
	return board__write(daemon->board, &facts, processes, tracker__status(daemon->tracker, processes, KERNEL_SLOTS),
			    reader, out);
}

static int write_snapshot(void *ctx, uid_t uid, FILE *out)
{
	const struct board_reader reader = {.user = (uint32_t)uid + 1, .all = !uid};

	return write_board(ctx, &reader, out);
}

/* Runs in a forked copy of the daemon, which exits after the response. */
static int write_report(void *ctx, uid_t uid, FILE *out)
{
	const struct board_reader reader = {.user = (uint32_t)uid + 1, .all = !uid, .report = true};
	struct daemon *daemon = ctx;
	int ret = write_board(daemon, &reader, out);

	return ret ? ret : pipeline__put_maps(daemon->tee.pipeline, &reader, put_line, out);
}

/* Runs in a forked copy of the daemon, which exits after the response. */
static int diagnose_for(struct daemon *daemon, uid_t uid, const struct query_request *request, FILE *out, char *note,
			enum query_error *error)
{
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
	if (request->jobs && uid) {
		*error = QUERY_REFUSED;
		snprintf(note, QUERY_SENTENCE_MAX, "only root may list the jobs of all users");
		return -1;
	}
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
	if (!failed && uid)
		failed = response__restrict(&response, (uint32_t)uid + 1, shows, daemon);
	if (failed || !response__check(&response, &query, note, QUERY_SENTENCE_MAX))
		return -1;
	if (request->json)
		failed = response__json(&response, put_line, out);
	else
		failed = response__text(&response, &query, out, request->width);
	return failed ? -1 : 0;
}

static int response_question(void *ctx, const struct query_request *request, FILE *out, char *note,
			     enum query_error *error)
{
	return diagnose_for(ctx, 0, request, out, note, error);
}

static int diagnose_own(void *ctx, uid_t uid, const struct query_request *request, FILE *out, char *note,
			enum query_error *error)
{
	return diagnose_for(ctx, uid, request, out, note, error);
}

void daemon__make_board(struct daemon *daemon)
{
	if (*daemon->options->config.socket || daemon->reporter)
		daemon->board = board__new(shows, daemon);
	if (daemon->board)
		pipeline__show(daemon->tee.pipeline, daemon->board);
	daemon__feed_reports(daemon);
}

void daemon__show(struct daemon *daemon)
{
	const struct status_answers answers = {
	    .snapshot = write_snapshot, .report = write_report, .diagnose = diagnose_own, .ctx = daemon};
	char err[512] = "out of memory";

	daemon->window_cpu_pct = NAN;
	if (!daemon->queries)
		return;
	if (daemon->board)
		daemon->status = status_server__open(query_server__path(daemon->queries), &answers, err, sizeof(err));
	if (!daemon->status)
		tracker__warn(daemon->tracker, "no_socket", 0, "`vapro top` cannot reach this vaprod: %s", err);
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

static const char *cluster_of(const struct daemon *daemon)
{
	return daemon->options->publish.cluster ? daemon->options->publish.cluster : PUBLISHING_CLUSTER;
}

int daemon__open_metrics(struct daemon *daemon)
{
	if (!daemon->options->metrics)
		return EXIT_OK;
	daemon->metrics = metrics__new(daemon->options->metrics);
	if (daemon->metrics)
		return EXIT_OK;
	log__error("out of memory");
	return EXIT_FAILED;
}

void daemon__meter_result(struct daemon *daemon, const struct job_result *result)
{
	if (daemon->metrics)
		metrics__add(daemon->metrics, cluster_of(daemon), result, mono_now());
}

void daemon__meter(struct daemon *daemon, bool up)
{
	struct metrics_counts counts = {.over_lines = line_sink__over(daemon->lines), .overhead_pct = NAN};
	struct cause_list list;
	int status;

	if (!daemon->metrics)
		return;
	counts.lost_lines = line_sink__lost(daemon->lines) - counts.over_lines;
	if (daemon->tee.publishing) {
		struct publisher_totals totals = publishing__totals(daemon->tee.publishing);

		counts.published_blocks = totals.acknowledged;
		counts.discarded_blocks = totals.dropped;
	}
	if (!pipeline__causes(daemon->tee.pipeline, &list)) {
		metrics__add_causes(daemon->metrics, cluster_of(daemon), &list);
		causes__free_list(&list);
	}
	status = metrics__write(daemon->metrics, &counts, up, mono_now());
	if (status && !daemon->metrics_failed)
		tracker__warn(daemon->tracker, "metrics_failed", 0, "metrics %s: %s; it is tried again at each window",
			      daemon->options->metrics, strerror(-status));
	daemon->metrics_failed = status;
}

/* ---- what jobs leave */

void daemon__start_reports(struct daemon *daemon)
{
	const struct daemon_options *options = daemon->options;
	char err[256];

	if (!options->job_reports || !*options->job_reports || options->dry_run)
		return;
	daemon->reports = (struct reporter_options){.directory = options->job_reports,
						    .age_s = options->job_reports_age_s,
						    .bytes = options->job_reports_bytes,
						    .version = VAPRO_VERSION,
						    .host = daemon->host};
	daemon->reporter = reporter__start(&daemon->reports, err, sizeof(err));
	if (!daemon->reporter)
		log__warning("no job leaves a report: %s", err);
}

/* Takes a record of a job, as the job's user may see it. */
static void take_line(void *ctx, const char *job, uint32_t user, const char *line, bool attached)
{
	const struct daemon *daemon = ctx;

	reporter__line(daemon->reporter, job, user, line, attached);
}

void daemon__feed_reports(struct daemon *daemon)
{
	if (daemon->reporter && daemon->board)
		board__share(daemon->board, take_line, daemon);
}

void daemon__see_jobs(struct daemon *daemon, uint64_t now_ns)
{
	static struct board_process processes[KERNEL_SLOTS];
	static struct reporter_process running[KERNEL_SLOTS];
	size_t count;

	if (!daemon->reporter)
		return;
	count = tracker__status(daemon->tracker, processes, KERNEL_SLOTS);
	for (size_t i = 0; i < count; i++)
		running[i] = (struct reporter_process){
		    .job = processes[i].job, .user = processes[i].user, .ended = processes[i].probes == BOARD_ENDED};
	reporter__see(daemon->reporter, running, count, now_ns);
}

void daemon__step_reports(struct daemon *daemon, uint64_t now_ns)
{
	if (daemon->reporter)
		reporter__step(daemon->reporter, now_ns);
}

void daemon__warn_of_reports(struct daemon *daemon)
{
	char text[512];

	uint64_t removed = daemon->reporter ? reporter__removed(daemon->reporter) : 0;

	if (removed)
		log__info("%llu files of old job reports were removed", (unsigned long long)removed);
	while (daemon->reporter && reporter__news(daemon->reporter, text, sizeof(text)))
		tracker__warn(daemon->tracker, "report_failed", 0, "%s", text);
}

void daemon__finish_reports(struct daemon *daemon)
{
	reporter__finish(daemon->reporter, PATIENCE_NS);
	daemon->reporter = NULL;
}
