/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/duration.h"
#include "base/text.h"
#include "base/wrap.h"
#include "diagnose/verdict.h"
#include "report/cause_text.h"

#include <math.h>
#include <string.h>

#include "base/printable.h"
#include "diagnose/factors.h"
#include "diagnose/root_cause.h"
#include "report/json.h"
#include "report/regions.h"

#define LONG_S 600	    /* times of a job from which on they are hours, minutes and seconds */
#define WAITED_LEAST 0.001  /* share of what was lost from which waiting is stated */
#define WAITED_LEAST_S 1e-4 /* seconds from which it is */
#define WHOLE_JOB 0.999	    /* share of a job's time that is all of it: sums are of rounded times */

const char *cause_text__noun(const char *cause)
{
	static const char *const nouns[][2] = {
	    {CAUSE_LATE_PEER, "waiting for late ranks, which no slow region explains"},
	    {CAUSE_BARRIER, "threads waiting for each other at the end of a parallel region"},
	    {CAUSE_TRANSFER, "slow transfers"},
	    {CAUSE_SLOW_PATH, "slow network path"},
	    {CAUSE_OVERSUBSCRIBED, "oversubscription: more runnable threads than CPUs"},
	    {CAUSE_POLLING, "busy-waiting inside MPI"},
	    {CAUSE_UNKNOWN, "cause unknown"},
	    {"on_cpu", "slower on the CPU, cause unknown"},
	    {"suspension", "had work but was not running"},
	};
	int node = factors__find(cause);

	for (size_t i = 0; i < sizeof(nouns) / sizeof(*nouns); i++) {
		if (!strcmp(nouns[i][0], cause))
			return nouns[i][1];
	}
	return node < FACTOR_NODES ? factor_infos[node].noun : cause;
}

/* Names the ranks, or counts them. */
static void say_ranks(char *text, const struct cause *cause)
{
	if (!cause->rank_count)
		text__append(text, CAUSE_TEXT_SIZE, cause->intervals == 1 ? "one process" : "processes");
	else if (cause->rank_count == 1)
		text__append(text, CAUSE_TEXT_SIZE, "rank %d", (int)cause->ranks[0]);
	else if (cause->rank_count == 2)
		text__append(text, CAUSE_TEXT_SIZE, "ranks %d and %d", (int)cause->ranks[0], (int)cause->ranks[1]);
	else
		text__append(text, CAUSE_TEXT_SIZE, "%u ranks", cause->rank_count);
}

static void say_hosts(char *text, const struct cause *cause)
{
	if (cause->host_count == 1)
		text__append(text, CAUSE_TEXT_SIZE, " on host %.64s", cause->hosts[0]);
	else if (cause->host_count)
		text__append(text, CAUSE_TEXT_SIZE, " on %u hosts", cause->host_count);
}

/* Writes a time of a job: seconds with tenths or, of a long job, hours, minutes and seconds. Returns buf. */
static char *moment(double seconds, bool is_long, char *buf, size_t size)
{
	unsigned long whole = (unsigned long)(seconds + 0.5);

	if (is_long)
		snprintf(buf, size, "%lu:%02lu:%02lu", whole / 3600, whole / 60 % 60, whole % 60);
	else
		snprintf(buf, size, "%.1f", seconds);
	return buf;
}

/* How often the ranks were concerned, where that is more than once each, and when, from the begin of the job on. */
static void say_times(char *text, const struct cause *cause)
{
	bool often = cause->intervals > (cause->rank_count ? cause->rank_count : 1);
	uint64_t zero = cause->job_begin_ns;
	double begin = cause->begin_ns > zero ? (double)(cause->begin_ns - zero) / 1e9 : 0;
	double end = cause->end_ns > zero ? (double)(cause->end_ns - zero) / 1e9 : 0;
	char from[40], to[40];

	if (often)
		text__append(text, CAUSE_TEXT_SIZE, ", %llu times%s", (unsigned long long)cause->intervals,
			     cause->rank_count == 1 ? "" : " in all");
	if (zero && end > 0)
		text__append(text, CAUSE_TEXT_SIZE, "%s from %s to %s%s", often ? "" : ",",
			     moment(begin, end >= LONG_S, from, sizeof(from)),
			     moment(end, end >= LONG_S, to, sizeof(to)), end >= LONG_S ? "" : " s");
}

/* Writes a share with digits enough to be seen. Returns buf. */
static char *share_text(double share, char *buf, size_t size)
{
	snprintf(buf, size, "%.*f %%", share < 0.0001 ? 4 : share < 0.1 ? 2 : 0, 100 * share);
	return buf;
}

/* Writes the share of the job that was lost and, where that is another one, the share by which the cause is rated. */
static void say_shares(char *text, const struct cause *cause)
{
	bool hour = cause->denominator_seconds < WHOLE_JOB * cause->job_seconds;
	char lost[40], rated[40];

	if (!(cause->lost_share > 0))
		return;
	text__append(text, CAUSE_TEXT_SIZE, ", %s of the job", share_text(cause->lost_share, lost, sizeof(lost)));
	if (cause->rated_share > 0 && strcmp(share_text(cause->rated_share, rated, sizeof(rated)), lost) != 0)
		text__append(text, CAUSE_TEXT_SIZE, " (%s%s%s%s)", rated, hour ? " of its worst hour" : "",
			     hour && cause->caused_seconds > 0 ? "," : "",
			     cause->caused_seconds > 0 ? " with the waiting" : "");
}

/* Names a rank of another job, or the job. */
static void say_other_job(char *text, const struct cause *cause)
{
	if (cause->culprit_rank >= 0)
		text__append(text, CAUSE_TEXT_SIZE, "rank %d of ", (int)cause->culprit_rank);
	text__append(text, CAUSE_TEXT_SIZE, "job %.64s (%.32s)", cause->culprit_job, cause->culprit);
}

char *cause_text__write(const struct cause *cause, char *buf)
{
	char duration[40];

	*buf = 0;
	if (!strcmp(cause->cause, CAUSE_PREEMPTED)) {
		if (!cause->culprit)
			text__append(buf, CAUSE_TEXT_SIZE, "other tasks");
		else if (cause->relation == VAPRO_MONITOR)
			text__append(buf, CAUSE_TEXT_SIZE, "this monitor (%.32s)", cause->culprit);
		else if (cause->culprit_job)
			say_other_job(buf, cause);
		else if (cause->relation == VAPRO_FOREIGN || cause->relation == VAPRO_OTHER_JOB)
			text__append(buf, CAUSE_TEXT_SIZE, "%.32s", cause->culprit);
		else
			text__append(buf, CAUSE_TEXT_SIZE, "%.32s, a task of the job itself,", cause->culprit);
		if ((cause->relation == VAPRO_FOREIGN || cause->relation == VAPRO_OTHER_JOB) &&
		    cause->culprit_share < VERDICT_MOSTLY)
			text__append(buf, CAUSE_TEXT_SIZE, " and others");
		text__append(buf, CAUSE_TEXT_SIZE, " preempted ");
		say_ranks(buf, cause);
		say_hosts(buf, cause);
	} else {
		text__append(buf, CAUSE_TEXT_SIZE, "%s: ", cause_text__noun(cause->cause));
		say_ranks(buf, cause);
		say_hosts(buf, cause);
	}
	say_times(buf, cause);
	text__append(buf, CAUSE_TEXT_SIZE, ": %s lost",
		     duration__text(cause->lost_seconds, duration, sizeof(duration)));
	say_shares(buf, cause);
	if (cause->caused_seconds >= fmax(WAITED_LEAST_S, WAITED_LEAST * cause->lost_seconds))
		text__append(buf, CAUSE_TEXT_SIZE, "; others waited %s for it",
			     duration__text(cause->caused_seconds, duration, sizeof(duration)));
	if (cause->regions > 1 && cause->regions != cause->intervals)
		text__append(buf, CAUSE_TEXT_SIZE, " (%llu regions)", (unsigned long long)cause->regions);
	return printable(buf);
}

uint32_t cause_text__listed(const struct cause_list *list)
{
	uint32_t count = list->count;

	while (count > 1 && list->items[count - 1].little)
		count--;
	return count;
}

void cause_text__print(const struct cause_list *list, FILE *out, unsigned width, size_t most, bool several)
{
	uint32_t shown = cause_text__listed(list);
	double lost = 0;

	shown = shown < most ? shown : (uint32_t)most;
	for (uint32_t i = 0; i < shown; i++) {
		const struct cause *cause = &list->items[i];
		char text[CAUSE_TEXT_SIZE], line[CAUSE_TEXT_SIZE + 320], job[280] = "";

		if (several && *cause->job) {
			snprintf(job, sizeof(job), " [job %.256s]", cause->job);
			printable(job);
		}
		snprintf(line, sizeof(line), "%s: %s%s",
			 cause->confirmed ? json_severity_name[cause->severity] : "unconfirmed",
			 cause_text__write(cause, text), job);
		wrap__print(out, "", line, 0, width);
	}
	for (uint32_t i = shown; i < list->count; i++)
		lost += list->items[i].lost_seconds;
	if (list->count > shown) {
		char duration[40];

		fprintf(out, "and %u smaller cause%s, %s lost\n", list->count - shown,
			list->count - shown == 1 ? "" : "s", duration__text(lost, duration, sizeof(duration)));
	}
}
