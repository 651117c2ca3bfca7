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

/* How often the ranks were concerned, where that is more than once each. */
static void say_times(char *text, const struct cause *cause)
{
	if (cause->intervals > (cause->rank_count ? cause->rank_count : 1))
		text__append(text, CAUSE_TEXT_SIZE, ", %llu times%s", (unsigned long long)cause->intervals,
			     cause->rank_count == 1 ? "" : " in all");
}

/* Writes a share with digits enough to be seen. */
static void say_share(char *text, double share)
{
	if (share > 0)
		text__append(text, CAUSE_TEXT_SIZE, ", %.*f %% of the job",
			     share < 0.0001 ? 4
			     : share < 0.1  ? 2
					    : 0,
			     100 * share);
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
	say_share(buf, cause->lost_share);
	if (cause->caused_seconds > 0)
		text__append(buf, CAUSE_TEXT_SIZE, "; others waited %s for it",
			     duration__text(cause->caused_seconds, duration, sizeof(duration)));
	if (cause->regions > 1 && cause->regions != cause->intervals)
		text__append(buf, CAUSE_TEXT_SIZE, " (%llu regions)", (unsigned long long)cause->regions);
	return printable(buf);
}

void cause_text__print(const struct cause_list *list, FILE *out, unsigned width, size_t most, bool several)
{
	double lost = 0;

	for (uint32_t i = 0; i < list->count && i < most; i++) {
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
	for (uint32_t i = (uint32_t)most; i < list->count; i++)
		lost += list->items[i].lost_seconds;
	if (list->count > most) {
		char duration[40];

		fprintf(out, "and %zu smaller cause%s, %s lost\n", list->count - most,
			list->count - most == 1 ? "" : "s", duration__text(lost, duration, sizeof(duration)));
	}
}
