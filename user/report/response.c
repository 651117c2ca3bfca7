/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/response.h"
#include "base/job_names.h"
#include "base/text.h"
#include "base/wrap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "diagnose/interferers.h"
#include "report/json.h"
#include "report/regions.h"
#include "report/summary.h"

#define ANOTHER_USER "(another user)" /* in place of a task's name, as on a board */
#define REGIONS_PRINTED 64	      /* jobs times classes */

char *response__time(const struct query *query, uint64_t utc_ns, char *buf, size_t size)
{
	time_t seconds = (time_t)(utc_ns / 1000000000);
	double since = utc_ns > query->start_ns ? (double)(utc_ns - query->start_ns) / 1e9 : 0;
	char text[40];
	struct tm tm;

	gmtime_r(&seconds, &tm);
	strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm);
	snprintf(buf, size, "%s.%llu UTC (%.1f s)", text, (unsigned long long)(utc_ns / 100000000 % 10), since);
	return buf;
}

static const char *name_of(const struct job_result *job)
{
	return job->job && *job->job ? job->job : "(no name)";
}

static bool concerns(const struct query *query, const struct job_result *job)
{
	return job_names__match(query->job, job->job);
}

/* Adds the retained time of each job of the query. */
static void say_retained(const struct response *response, const struct query *query, char *why, size_t size)
{
	char begin[80], end[80];
	const char *between = "; available: ";

	for (uint32_t i = 0; i < response->job_count; i++) {
		const struct job_result *job = &response->jobs[i];
		char *ranks;

		if (!concerns(query, job))
			continue;
		ranks = json__ranks(job->ranks, job->rank_count);
		text__append(why, size, "%sranks %s of job %s, %s to %s", between, ranks ? ranks : "?", name_of(job),
			     response__time(query, job->begin_ns, begin, sizeof(begin)),
			     response__time(query, job->end_ns, end, sizeof(end)));
		between = "; ";
		free(ranks);
	}
}

static bool has_rank(const struct job_result *job, const struct vapro_selection *selection)
{
	for (uint32_t i = 0; i < job->rank_count; i++) {
		for (uint32_t k = 0; k < selection->range_count; k++) {
			if (job->ranks[i] >= selection->ranks[k][0] && job->ranks[i] <= selection->ranks[k][1])
				return true;
		}
	}
	return !selection->range_count;
}

static void say_reasons(const struct job_result *job, char *text, size_t size)
{
	for (uint32_t i = 0; i < job->uncovered_count; i++)
		text__append(text, size, "%s%.0f %% %s", i ? ", " : ": ", 100 * job->uncovered[i].share,
			     summary_reason_text[job->uncovered[i].reason]);
}

/* Writes the first reason why there is nothing to report. */
static void say_why_not(const struct response *response, const struct query *query, char *why, size_t size)
{
	const struct vapro_selection *selection = &query->selection;
	bool any = false, ranks = false, later = true, earlier = true, fragments = false;

	for (uint32_t i = 0; i < response->job_count; i++) {
		const struct job_result *job = &response->jobs[i];

		if (!concerns(query, job))
			continue;
		any = true;
		ranks |= has_rank(job, selection);
		later &= selection->begin_ns >= job->end_ns;
		earlier &= selection->end_ns && selection->end_ns <= job->begin_ns;
		fragments |= job->fragments > 0;
	}
	if (!response->job_count) {
		text__append(why, size,
			     "there is no data of any job: no process is tracked, or none has made a call yet");
		return;
	}
	if (!any) {
		text__append(why, size, "there is no data of a job '%s', only of", query->job);
		for (uint32_t i = 0; i < response->job_count; i++)
			text__append(why, size, "%s %s", i ? "," : "", name_of(&response->jobs[i]));
		return;
	}
	if (later)
		text__append(why, size, "that region is in the future");
	else if (earlier)
		text__append(why, size, "that region is over and dropped");
	else if (!ranks)
		text__append(why, size, "no such ranks");
	else if (!fragments)
		text__append(why, size, "there is no data of that region");
	else
		text__append(why, size, "nothing there could be judged");
	if (fragments && !later && !earlier && ranks) {
		for (uint32_t i = 0; i < response->job_count; i++) {
			if (concerns(query, &response->jobs[i]))
				say_reasons(&response->jobs[i], why, size);
		}
		return;
	}
	say_retained(response, query, why, size);
}

bool response__check(const struct response *response, const struct query *query, char *why, size_t size)
{
	bool any = false;

	*why = 0;
	for (uint32_t i = 0; i < response->job_count; i++)
		any |= response->jobs[i].selection_count > 0;
	if (!any) {
		say_why_not(response, query, why, size);
		regions__defuse(why);
		return false;
	}
	for (uint32_t i = 0; i < response->job_count; i++) {
		const struct job_result *job = &response->jobs[i];
		char text[80];

		if (!job->selection_count)
			continue;
		/* a query "from the begin" covers retained data only */
		if (query->selection.begin_ns > query->start_ns &&
		    query->selection.begin_ns + VAPRO_BIN_NS < job->begin_ns)
			text__append(why, size, "%sthe data of job %s begins at %s", *why ? "; " : "", name_of(job),
				     response__time(query, job->begin_ns, text, sizeof(text)));
		if (query->selection.end_ns > job->end_ns)
			text__append(why, size, "%sthe region has not ended yet", *why ? "; " : "");
	}
	regions__defuse(why);
	return true;
}

bool response__chosen(const struct job_result *results, uint32_t count, const struct vapro_selection *selection,
		      uint64_t start_ns, char *why, size_t size)
{
	struct query query = {.selection = *selection, .start_ns = start_ns};
	struct job_result *jobs = calloc(count + 1, sizeof(*jobs));
	const struct response response = {.jobs = jobs, .job_count = count};
	bool any;

	if (!jobs) {
		snprintf(why, size, "out of memory");
		return false;
	}
	for (uint32_t i = 0; i < count; i++) {
		jobs[i] = results[i];
		jobs[i].begin_ns = start_ns; /* the last window's record begins later, the input does not */
	}
	if (selection->relative) {
		query.selection.begin_ns += start_ns;
		if (selection->end_ns && selection->end_ns != UINT64_MAX)
			query.selection.end_ns += start_ns;
	}
	any = response__check(&response, &query, why, size);
	free(jobs);
	return any;
}

/* What a user may see. */
struct sight {
	uint32_t user;
	response_shows shows;
	void *ctx;
};

/* Takes the name of a task that the user may not see. Returns whether it was one. */
static bool hide_task(const struct sight *sight, const struct result_interferer *seen)
{
	struct result_interferer *task = (struct result_interferer *)(uintptr_t)seen;

	if (!task || !interferers__is_foreign(task) || sight->shows(sight->ctx, sight->user, task))
		return false;
	snprintf(task->comm, sizeof(task->comm), "%s", ANOTHER_USER);
	task->pid = 0;
	task->relation = VAPRO_FOREIGN;
	task->job = NULL;
	task->rank = -1;
	return true;
}

static void hide_others(const struct sight *sight, const struct result_variance *seen)
{
	struct result_variance *variance = (struct result_variance *)(uintptr_t)seen;
	struct result_diagnosis *diagnosis = &variance->diagnosis;
	bool hidden = hide_task(sight, diagnosis->culprit);

	for (uint32_t i = 0; i < diagnosis->interferer_count; i++)
		hidden |= hide_task(sight, &diagnosis->interferers[i]);
	for (uint32_t i = 0; i < variance->cause_count; i++)
		hidden |= hide_task(sight, variance->causes[i].culprit);
	/* sentences may hold names */
	if (hidden)
		diagnosis->verdict = diagnosis->advice = NULL;
}

int response__restrict(struct response *response, uint32_t user, response_shows shows, void *ctx)
{
	const struct sight sight = {user, shows, ctx};
	struct job_result *own = calloc(response->job_count + 1UL, sizeof(*own));
	uint32_t count = 0;

	if (!own)
		return -ENOMEM;
	for (uint32_t i = 0; i < response->job_count; i++) {
		const struct job_result *job = &response->jobs[i];

		if (job->user != user)
			continue;
		for (uint32_t k = 0; k < job->selection_count; k++)
			hide_others(&sight, &job->selections[k]);
		own[count++] = *job;
	}
	response->jobs = own; /* the copy of the daemon ends with it */
	response->job_count = count;
	return 0;
}

int response__json(const struct response *response, record_put put, void *arg)
{
	int ret = 0;

	for (uint32_t i = 0; !ret && i < response->job_count; i++)
		ret = window_json__put_variances(&response->jobs[i], &response->context, put, arg);
	return ret;
}

static int print_job(const struct job_result *job, const struct json_context *context, const struct query *query,
		     FILE *out, unsigned width)
{
	const char *about = job->job ? job->job : "", *program;
	struct regions regions = {0};
	char text[2048] = "", name[SUMMARY_JOB_NAME];
	int ret = 0;

	for (uint32_t i = 0; !ret && i < job->selection_count; i++) {
		struct region *region = regions__get(&regions, about, (uint64_t)job->selections[i].class + 1);

		ret = region ? summary__fill_region(region, &job->selections[i], context->names) : -ENOMEM;
		/* the query claims no variance: nothing to confirm */
		if (!ret)
			region->confirmed = region->ended = true;
	}
	if (!ret) {
		program = query->program ? query->program(query->ctx, about, job->user) : NULL;
		text__append(text, sizeof(text), "%s on host %s: %llu fragments, %.0f %% of their time judged",
			     summary__job_name(
				 &(struct summary_title){.job = about, .program = program, .user = job->user}, name),
			     context->host ? context->host : "?", (unsigned long long)job->fragments,
			     100 * job->coverage_total);
		say_reasons(job, text, sizeof(text));
		wrap__print(out, "", regions__defuse(text), 0, width);
		regions__print(
		    &regions, out,
		    &(struct regions_options){
			.start_ns = query->start_ns, .width = width, .most = REGIONS_PRINTED, .details = true});
	}
	regions__free(&regions);
	return ret;
}

int response__text(const struct response *response, const struct query *query, FILE *out, unsigned width)
{
	int ret = 0;

	if (!width)
		width = 80;
	if (width < 40)
		width = 40;
	for (uint32_t i = 0; !ret && i < response->job_count; i++) {
		if (response->jobs[i].selection_count)
			ret = print_job(&response->jobs[i], &response->context, query, out, width);
	}
	return ret;
}
