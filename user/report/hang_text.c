// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/hang_text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "report/regions.h"

#define GROUPS_SAID 4
#define RANKS_SAID 80 /* characters of a list of ranks */

static const char *const kind_text[VAPRO_HANG_KINDS] = {
    [VAPRO_HANG_CALLS] = "hang",
    [VAPRO_HANG_STOPPED] = "stopped",
    [VAPRO_HANG_TRACED] = "stopped by a tracer",
    [VAPRO_HANG_FROZEN] = "frozen by the cgroup",
    [VAPRO_HANG_INPUT] = "waiting for input",
    [VAPRO_HANG_NOT_KNOWN] = "perhaps a hang",
};

/* Writes the time of day, "16:58:21". */
static const char *time_of_day(uint64_t utc_ns, char *buf)
{
	json__time(utc_ns, buf);
	buf[19] = 0;
	return buf + 11;
}

/* Writes "rank 1", "ranks 0-3,7", or the number of ranks where their list is long. */
static void say_ranks(FILE *out, const int32_t *ranks, uint32_t count)
{
	char *list = json__ranks(ranks, count);

	if (list && strlen(list) <= RANKS_SAID)
		fprintf(out, "rank%s %s", count == 1 ? "" : "s", list);
	else
		fprintf(out, "%u ranks", count);
	free(list);
}

/* Writes for whom the calls of a group wait, as far as their arguments say. */
static void say_peers(FILE *out, const struct result_hang_group *group, bool over)
{
	if (group->waits_for_count || group->any_source)
		fputs(", for ", out);
	if (group->waits_for_count)
		say_ranks(out, group->waits_for, group->waits_for_count);
	if (group->any_source)
		fputs(group->waits_for_count ? " or any rank" : "any rank", out);
	if (!group->did_not_enter_count)
		return;
	fputs(", which ", out);
	say_ranks(out, group->did_not_enter, group->did_not_enter_count);
	fprintf(out, " %s not entered", over ? "had" : group->did_not_enter_count > 1 ? "have" : "has");
}

/* What a rank, or several, are or were doing; NULL where the verb is one of their own. */
static const char *const condition_text[VAPRO_HANG_CONDITIONS] = {
    [VAPRO_HANG_STOPPED_RANK] = "stopped by a signal, last seen in",
    [VAPRO_HANG_TRACED_RANK] = "stopped by a tracer, last seen in",
    [VAPRO_HANG_FROZEN_RANK] = "frozen by the cgroup, last seen in",
    [VAPRO_HANG_ASLEEP] = "asleep outside of calls, after",
    [VAPRO_HANG_WAITS_FOR_INPUT] = "waiting for input of which none was seen before, in",
    [VAPRO_HANG_UNSEEN] = "not seen in a call since",
    [VAPRO_HANG_IN_CALL] = "in",
    [VAPRO_HANG_NO_DATA] = "without data from its node since",
};

static void say_group(FILE *out, const struct result_hang_group *group, const struct source_names *names, bool over)
{
	char *state = group->state ? source_names__call(names, group->state) : NULL, time[JSON_TIME_SIZE];
	const char *text = condition_text[group->condition];

	say_ranks(out, group->ranks, group->rank_count);
	if (!text)
		fprintf(out, " ended at %s, after", time_of_day(group->since_ns, time));
	else if (over)
		fprintf(out, " %s %s", group->rank_count > 1 ? "were" : "was", text);
	else
		fprintf(out, " %s %s", group->rank_count > 1 ? "are" : "is", text);
	fprintf(out, " %s", state ? state : "a call that is not known");
	if (group->condition == VAPRO_HANG_IN_CALL)
		say_peers(out, group, over);
	free(state);
}

static void say_head(FILE *out, const struct result_hang *hang)
{
	char begin[JSON_TIME_SIZE], end[JSON_TIME_SIZE], length[40];

	duration__text((double)(hang->end_ns - hang->begin_ns) / 1e9, length, sizeof(length));
	fprintf(out, "%s: no rank ", kind_text[hang->kind]);
	if (hang->outcome == VAPRO_HANG_RESUMED)
		fprintf(out, "made progress from %s to %s UTC (%s), then the job went on",
			time_of_day(hang->begin_ns, begin), time_of_day(hang->end_ns, end), length);
	else if (hang->outcome == VAPRO_HANG_JOB_ENDED)
		fprintf(out, "made progress from %s UTC until the job ended at %s (%s)",
			time_of_day(hang->begin_ns, begin), time_of_day(hang->end_ns, end), length);
	else if (hang->outcome == VAPRO_HANG_UNWATCHED)
		fprintf(out, "has made progress since %s UTC (%s)", time_of_day(hang->begin_ns, begin), length);
	else /* no length: the hang goes on after this record */
		fprintf(out, "has made progress since %s UTC", time_of_day(hang->begin_ns, begin));
}

static bool has(const struct result_hang *hang, enum vapro_hang_condition condition)
{
	for (uint32_t i = 0; i < hang->group_count; i++) {
		if (hang->groups[i].condition == condition)
			return true;
	}
	return false;
}

char *hang_text__write(const struct result_hang *hang, const struct source_names *names)
{
	bool over = hang->outcome == VAPRO_HANG_RESUMED || hang->outcome == VAPRO_HANG_JOB_ENDED;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	say_head(out, hang);
	for (uint32_t i = 0; i < hang->group_count && i < GROUPS_SAID; i++) {
		fputs(i ? "; " : ": ", out);
		say_group(out, &hang->groups[i], names, over);
	}
	if (hang->group_count > GROUPS_SAID)
		fputs("; the record has further ranks", out);
	if (hang->kind == VAPRO_HANG_NOT_KNOWN && hang->unseen_ranks)
		fprintf(out, "; %u rank%s of the job %s not watched here, and may be at work", hang->unseen_ranks,
			hang->unseen_ranks > 1 ? "s" : "", hang->unseen_ranks > 1 ? "are" : "is");
	else if (hang->kind == VAPRO_HANG_NOT_KNOWN)
		fprintf(
		    out, "; whether the job hangs is not known, since %s",
		    has(hang, VAPRO_HANG_NO_DATA)
			? "a rank of which nothing came may be at work"
			: "probes were closed to keep the overhead down or nothing is known of a rank's time on CPUs");
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return regions__defuse(text);
}

static bool add_group(cJSON *list, const struct result_hang_group *group, const struct source_names *names)
{
	cJSON *item = record__append(list);
	bool ok = item && record__put_state(item, group->state, names) &&
		  record__put_ranks(item, KEY(hang_group, ranks), group->ranks, group->rank_count) &&
		  record__put_text(item, KEY(hang_group, condition), vapro_hang_condition_name[group->condition]) &&
		  (group->since_ns ? record__put_time(item, KEY(hang_group, since), group->since_ns)
				   : record__put_null(item, KEY(hang_group, since)));

	if (ok && group->waits_for_count)
		ok = record__put_ranks(item, KEY(hang_group, waits_for), group->waits_for, group->waits_for_count);
	if (ok && group->any_source)
		ok = record__put_bool(item, KEY(hang_group, any_source), true);
	if (ok && group->did_not_enter_count)
		ok = record__put_ranks(item, KEY(hang_group, did_not_enter), group->did_not_enter,
				       group->did_not_enter_count);
	return ok;
}

static bool add_groups(cJSON *object, const struct result_hang *hang, const struct source_names *names)
{
	cJSON *list = record__put_list(object, KEY(hang, groups));
	bool ok = list;

	for (uint32_t i = 0; ok && i < hang->group_count; i++)
		ok = add_group(list, &hang->groups[i], names);
	return ok;
}

/* Adds when a hang was. */
static bool add_times(cJSON *object, const struct result_hang *hang)
{
	return record__put_time(object, KEY(hang, begin), hang->begin_ns) &&
	       record__put_time(object, KEY(hang, end), hang->end_ns) &&
	       record__put_number(object, KEY(hang, seconds), (double)(hang->end_ns - hang->begin_ns) / 1e9);
}

int hang_text__put(const struct job_result *result, const struct json_context *context, record_put put, void *arg)
{
	static const char *const states[] = {
	    [VAPRO_REGION_OPEN] = "open", [VAPRO_REGION_CHANGED] = "changed", [VAPRO_REGION_CLOSED] = "closed"};
	const struct result_hang *hang = result->hang;
	char *text = hang_text__write(hang, context->names);
	cJSON *object = text ? record__begin(RECORD_OBJECT_hang, result->end_ns, context->host) : NULL;
	bool ok = object && record__put_job(object, result->job, result->user) &&
		  record__put_uint(object, KEY(hang, id), hang->id) &&
		  record__put_uint(object, KEY(hang, revision), hang->revision) &&
		  record__put_text(object, KEY(hang, state), states[hang->state]) &&
		  record__put_text(object, KEY(hang, kind), vapro_hang_kind_name[hang->kind]) &&
		  record__put_text(object, KEY(hang, outcome), vapro_hang_outcome_name[hang->outcome]) &&
		  record__put_bool(object, KEY(hang, alarm), hang->alarm) &&
		  record__put_text(object, KEY(hang, severity), json_severity_name[hang->severity]) &&
		  add_times(object, hang) && record__put_uint(object, KEY(hang, unwatched_ranks), hang->unseen_ranks) &&
		  add_groups(object, hang, context->names) && record__put_text(object, KEY(hang, text), text);

	free(text);
	return record__emit(RECORD_OBJECT_hang, object, ok, put, arg);
}
