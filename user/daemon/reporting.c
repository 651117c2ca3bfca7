// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/reporting.h"

#include "base/log.h"
#include "reports/reporter.h"

#define PATIENCE_NS 20000000000ULL /* for reports of jobs that run when vaprod ends */

void reporting__start(struct daemon *daemon)
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

void reporting__feed(struct daemon *daemon)
{
	if (daemon->reporter && daemon->board)
		board__share(daemon->board, take_line, daemon);
}

void reporting__see(struct daemon *daemon, uint64_t now_ns)
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

void reporting__step(struct daemon *daemon, uint64_t now_ns)
{
	if (daemon->reporter)
		reporter__step(daemon->reporter, now_ns);
}

void reporting__warn(struct daemon *daemon)
{
	char text[512];

	uint64_t removed = daemon->reporter ? reporter__removed(daemon->reporter) : 0;

	if (removed)
		log__info("%llu files of old job reports were removed", (unsigned long long)removed);
	while (daemon->reporter && reporter__news(daemon->reporter, text, sizeof(text)))
		tracker__warn(daemon->tracker, "report_failed", 0, "%s", text);
}

void reporting__finish(struct daemon *daemon)
{
	reporter__finish(daemon->reporter, PATIENCE_NS);
	daemon->reporter = NULL;
}
