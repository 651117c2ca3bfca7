/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What of a run is a result: what was compared, and why the rest was not. */
#include <ctype.h>
#include <string.h>

#include "report/summary.h"
#include "report/summary_parts.h"

#define NOTHING 0.005 /* share of a job's time below which nothing was compared */
#define LITTLE 0.2    /* share below which that is said beside what was found */
#define SHORT_S 30    /* of a job that was watched for less, much is before the first and after the last call */

const char *const summary_reason_text[VAPRO_UNCOVERED_REASONS] = {
    [VAPRO_COVERED] = "covered",
    [VAPRO_FEW_FRAGMENTS] = "seen too few times to know its usual speed",
    [VAPRO_SPREAD] = "not comparable: durations vary too much (probably different work)",
    [VAPRO_RARE] = "rare",
    [VAPRO_GOVERNED] = "probes were closed to keep the overhead down",
    [VAPRO_NO_RETURN] = "no return probes (--no-return)",
    [VAPRO_NOT_SEEN] = "before the first or after the last observed call",
    [VAPRO_LOST] = "records were lost",
    [VAPRO_NO_WORKLOAD] = "its work was not measured",
    [VAPRO_WARM_UP] = "among the first of its workload on a rank",
    [VAPRO_SHED] = "not stored, for the memory cap",
};

const char *const summary_reason_help[VAPRO_UNCOVERED_REASONS] = {
    [VAPRO_COVERED] = "nothing",
    [VAPRO_FEW_FRAGMENTS] = "a longer run",
    [VAPRO_SPREAD] = "hardware counters, or --workload, which says what the work depends on",
    [VAPRO_RARE] = "a longer run",
    [VAPRO_GOVERNED] = "a higher --overhead-budget",
    [VAPRO_NO_RETURN] = "a run without --no-return",
    [VAPRO_NOT_SEEN] = "--function NAME, which watches functions of a program that rarely calls MPI",
    [VAPRO_LOST] = "a larger ring-bytes (configuration file)",
    [VAPRO_NO_WORKLOAD] = "a run in which counters are available throughout",
    [VAPRO_WARM_UP] = "a longer run",
    [VAPRO_SHED] = "a higher --memory-cap",
};

static double rank_seconds(const struct summary *summary)
{
	double all = 0;

	for (size_t i = 0; i < summary->job_count; i++)
		all += summary->jobs[i].rank_seconds;
	return all;
}

/* Returns the reason of most of the time that was not compared; VAPRO_COVERED where there is none. */
static int main_reason(const struct job_summary *job, double *seconds)
{
	double by_reason[VAPRO_UNCOVERED_REASONS] = {0};
	int most = VAPRO_COVERED;

	for (size_t i = 0; i < job->gap_count; i++)
		by_reason[job->gaps[i].reason] += job->gaps[i].rank_seconds;
	for (int i = 0; i < VAPRO_UNCOVERED_REASONS; i++) {
		if (by_reason[i] > by_reason[most])
			most = i;
	}
	*seconds = by_reason[most];
	return most;
}

/* Writes why much of a job was not compared, and what would help. */
static void write_reason(const struct job_summary *job, char *text, size_t size)
{
	bool brief = (double)(job->end_ns - job->begin_ns) < SHORT_S * 1e9;
	double seconds;
	int most = main_reason(job, &seconds);

	if (most == VAPRO_COVERED)
		snprintf(text, size, "A longer run may help.");
	else
		snprintf(text, size, "%.0f %% of it: %s. What would help: %s%s.", 100 * seconds / job->rank_seconds,
			 summary_reason_text[most], most == VAPRO_NOT_SEEN && brief ? "a longer run; or " : "",
			 summary_reason_help[most]);
}

/* Writes what kept processes from being seen; job NULL: of any job. Returns whether anything did. */
static bool write_obstacle(const struct summary *summary, const struct job_summary *job, char *text, size_t size)
{
	enum obstacle_kind kind;
	size_t count;
	const char *first =
	    obstacles__first(summary->obstacles, job ? job->said : NULL, job ? job->user : 0, &kind, &count);
	const char *help = first ? obstacles__help(kind) : NULL;
	char more[64] = "";

	if (!first)
		return false;
	if (count > 1)
		snprintf(more, sizeof(more), "; and %zu more process%s", count - 1, count > 2 ? "es" : "");
	snprintf(text, size, "%s%s.%s%s%s", first, more, help ? " What would help: " : "", help ? help : "",
		 help ? "." : "");
	*text = (char)toupper((unsigned char)*text);
	return true;
}

bool summary__no_result(const struct summary *summary, const struct job_summary *job, char *text, size_t size)
{
	char name[JOB_NAME_SIZE], why[1600];

	if (!(job->rank_seconds > 0) || job->covered_total >= NOTHING * job->rank_seconds)
		return false;
	if (!write_obstacle(summary, job, why, sizeof(why)))
		write_reason(job, why, sizeof(why));
	snprintf(text, size, "no result: %.1f %% of the time of %s could be compared. %s",
		 100 * job->covered_total / job->rank_seconds, summary__job_name(job, name), why);
	return true;
}

bool summary__little_compared(const struct summary *summary, const struct job_summary *job, char *text, size_t size)
{
	char name[JOB_NAME_SIZE], why[1600];

	if (!(job->rank_seconds > 0) || job->covered_total >= LITTLE * job->rank_seconds)
		return false;
	if (job->covered_total >= NOTHING * job->rank_seconds || !write_obstacle(summary, job, why, sizeof(why)))
		write_reason(job, why, sizeof(why));
	snprintf(text, size,
		 "only %.1f %% of the time of %s could be compared; of the rest, only what the kernel attributes is "
		 "judged. %s",
		 100 * job->covered_total / job->rank_seconds, summary__job_name(job, name), why);
	return true;
}

bool summary__nothing_watched(const struct summary *summary, const char *command, bool replayed, char *text,
			      size_t size)
{
	bool windows = summary->regions.count > 0 || (summary->job_count && summary->start_ns > 0);
	char why[1600];

	for (size_t i = 0; i < summary->job_count; i++)
		windows |= summary->jobs[i].end_ns > 0;
	if (windows)
		return false;
	if (write_obstacle(summary, NULL, why, sizeof(why)))
		snprintf(text, size, "no result: nothing could be compared. %s", why);
	else if (summary->job_count)
		snprintf(text, size,
			 "no result: what was found ended before anything could be compared; a longer run would help");
	else if (replayed)
		snprintf(text, size, "no result: the input has nothing that could be analysed");
	else
		snprintf(text, size, "no MPI or multi-threaded process was found%s%s", command ? " in: " : "",
			 command ? command : "");
	return true;
}

void summary__say_nothing_found(const struct summary *summary, char *text, size_t size)
{
	double all = rank_seconds(summary), covered = 0;

	for (size_t i = 0; i < summary->job_count; i++)
		covered += summary->jobs[i].covered_total;
	if (all > 0)
		snprintf(text, size, "no slow region found in the %.1f %% of the ranks' time that could be compared",
			 100 * covered / all);
	else
		snprintf(text, size, "no slow region found");
}

/* Whether a cause of a job is listed. */
static bool is_found(const struct cause_list *list, const struct job_summary *job)
{
	for (uint32_t i = 0; i < list->count; i++)
		if (list->items[i].user == job->user && !strcmp(list->items[i].job, job->said))
			return true;
	return false;
}

/* Whether a job hung: that is its result. */
static bool hangs(const struct summary *summary, const char *job)
{
	for (size_t i = 0; i < summary->hang_count; i++) {
		if (summary->hangs[i].alarm && !strcmp(summary->hangs[i].job, job))
			return true;
	}
	return false;
}

bool summary__say_coverage(const struct summary *summary, const struct cause_list *list, const struct job_summary *job,
			   bool little, char *text, size_t size)
{
	bool none = !is_found(list, job) && !hangs(summary, job->said) && summary__no_result(summary, job, text, size);

	return little ? !none && summary__little_compared(summary, job, text, size) : none;
}
