/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/duration.h"
#include "base/wrap.h"
#include "report/narrator.h"

#include <fcntl.h>
#include <math.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/grow.h"
#include "base/log.h"
#include "base/printable.h"
#include "report/inside_words.h"
#include "report/json.h"
#include "report/program_name.h"
#include "report/record.h"
#include "report/regions.h"

#define INDENT 9	    /* of the further lines of a sentence: behind the time */
#define NOTED_MOST 4096	    /* regions; a region hardly changes after half as many others */
#define SENTENCES_MOST 1024 /* about regions, since the last ones were written */

/* Processes of one job and program that were found or ended since the last sentence. */
struct group {
	char job[288], program[PROGRAM_NAME_MAX], host[128], state[16];
	char reason[256]; /* of a refusal */
	uint32_t pid, count;
	double uid;
};

/* What was said of a region. */
struct noted {
	uint64_t id;
	int severity;
	bool ended;
};

/* A sentence about a region, behind the time at which it began or ended. */
struct sentence {
	char time[32];
	uint64_t id; /* of the region */
	char *text;
};

struct narrator {
	int fd;
	unsigned width;
	struct group *groups;
	size_t group_count, group_capacity;
	struct noted *noted;
	size_t noted_count, noted_capacity;
	struct sentence *sentences; /* of the regions of a window, whose order is that of their loss */
	size_t sentence_count, sentence_capacity;
};

int narrator__terminal(int fd)
{
	char path[32];

	if (!isatty(fd))
		return -1;
	/* the flag belongs to the open file: on fd itself the shell and other programs would have it too */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

struct narrator *narrator__new(int fd, unsigned width)
{
	struct narrator *narrator = calloc(1, sizeof(*narrator));

	if (!narrator)
		return NULL;
	narrator->fd = fd;
	narrator->width = width;
	return narrator;
}

void narrator__free(struct narrator *narrator)
{
	if (!narrator)
		return;
	for (size_t i = 0; i < narrator->sentence_count; i++)
		free(narrator->sentences[i].text);
	free(narrator->sentences);
	free(narrator->groups);
	free(narrator->noted);
	free(narrator);
}

/* Writes one sentence behind its time of day, "08:00:15 "; time NULL: none. */
static void say(const struct narrator *narrator, const char *time, char *sentence)
{
	char head[16], *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return;
	/* records have "2027-01-15T08:00:15.000000000Z" */
	if (time && strlen(time) > 19)
		snprintf(head, sizeof(head), "%.8s ", time + 11);
	else
		snprintf(head, sizeof(head), "%*s", INDENT, "");
	wrap__print(out, head, printable(sentence), INDENT, narrator->width);
	if (!fclose(out)) {
		log__progress(NULL);
		/* a reader that has stopped loses the sentence */
		if (write(narrator->fd, text, size) < 0)
			clearerr(stderr);
	}
	free(text);
}

/* Orders by time, then by region. Times of records have one form, so that their texts can be compared. */
static int compare_sentences(const void *a, const void *b)
{
	const struct sentence *left = a, *right = b;
	int order = strcmp(left->time, right->time);

	return order ? order : left->id < right->id ? -1 : left->id > right->id;
}

/* Writes the sentences about regions, in the order of their times. */
static void say_sentences(struct narrator *narrator)
{
	if (narrator->sentence_count)
		qsort(narrator->sentences, narrator->sentence_count, sizeof(*narrator->sentences), compare_sentences);
	for (size_t i = 0; i < narrator->sentence_count; i++) {
		say(narrator, narrator->sentences[i].time, narrator->sentences[i].text);
		free(narrator->sentences[i].text);
	}
	narrator->sentence_count = 0;
}

static void say_later(struct narrator *narrator, const char *time, uint64_t id, const char *text)
{
	struct sentence sentence = {.id = id, .text = strdup(text)};

	if (narrator->sentence_count == SENTENCES_MOST)
		say_sentences(narrator);
	snprintf(sentence.time, sizeof(sentence.time), "%s", time ? time : "");
	if (sentence.text &&
	    !grow(&narrator->sentences, &narrator->sentence_capacity, narrator->sentence_count + 1, sizeof(sentence)))
		narrator->sentences[narrator->sentence_count++] = sentence;
	else
		free(sentence.text);
}

static void copy(char *to, size_t size, const char *from)
{
	snprintf(to, size, "%s", from ? from : "");
}

static void add_process(struct narrator *narrator, const cJSON *record)
{
	const cJSON *job = record__item(record, KEY(process, job));
	const char *program = record__text(record, KEY(process, exe));
	struct group new = {.count = 1,
			    .pid = (uint32_t)record__uint(record, KEY(process, pid)),
			    .uid = record__number(job, KEY(process_job, uid), NAN)};

	copy(new.job, sizeof(new.job), record__text(job, KEY(process_job, identity)));
	program_name(program ? program : "", record__text(record, KEY(process, command)), new.program);
	copy(new.host, sizeof(new.host), record__text(record, KEY(head, host)));
	copy(new.state, sizeof(new.state), record__text(record, KEY(process, state)));
	copy(new.reason, sizeof(new.reason), record__text(record, KEY(process, reason)));
	for (size_t i = 0; i < narrator->group_count; i++) {
		struct group *group = &narrator->groups[i];

		if (strcmp(group->job, new.job) || strcmp(group->program, new.program) ||
		    strcmp(group->state, new.state) || strcmp(group->host, new.host))
			continue;
		group->count++;
		return;
	}
	if (!grow(&narrator->groups, &narrator->group_capacity, narrator->group_count + 1, sizeof(new)))
		narrator->groups[narrator->group_count++] = new;
}

static void say_group(const struct narrator *narrator, const struct group *group)
{
	const struct passwd *entry = isnan(group->uid) ? NULL : getpwuid((uid_t)group->uid);
	bool refused = !strcmp(group->state, "refused");
	char user[80] = "", job[300] = "", text[1400];

	if (entry)
		snprintf(user, sizeof(user), ", user %s", entry->pw_name);
	else if (!isnan(group->uid))
		snprintf(user, sizeof(user), ", user %.0f", group->uid);
	if (*group->job)
		snprintf(job, sizeof(job), " of job %s", group->job);
	if (refused && group->count == 1)
		snprintf(text, sizeof(text), "process %u%s (%s%s) is not watched: %s", group->pid, job, group->program,
			 user, group->reason);
	else
		snprintf(text, sizeof(text), "%s %u process%s%s (%s%s)%s%s",
			 refused			     ? "cannot watch"
			 : !strcmp(group->state, "attached") ? "attached to"
							     : "ended:",
			 group->count, group->count == 1 ? "" : "es", job, group->program, user, refused ? ": " : "",
			 refused ? group->reason : "");
	say(narrator, NULL, text);
}

void narrator__flush(struct narrator *narrator)
{
	say_sentences(narrator);
	for (size_t i = 0; i < narrator->group_count; i++)
		say_group(narrator, &narrator->groups[i]);
	narrator->group_count = 0;
}

static bool is_noted(const struct narrator *narrator, uint64_t id)
{
	for (size_t i = narrator->noted_count; i-- > 0;) {
		if (narrator->noted[i].id == id)
			return true;
	}
	return false;
}

/* Finds or makes what was said of a region; NULL when out of memory. */
static struct noted *noted_of(struct narrator *narrator, uint64_t id)
{
	for (size_t i = narrator->noted_count; i-- > 0;) {
		if (narrator->noted[i].id == id)
			return &narrator->noted[i];
	}
	if (narrator->noted_count == NOTED_MOST) {
		narrator->noted_count = NOTED_MOST / 2;
		memmove(narrator->noted, narrator->noted + NOTED_MOST / 2, NOTED_MOST / 2 * sizeof(*narrator->noted));
	}
	if (grow(&narrator->noted, &narrator->noted_capacity, narrator->noted_count + 1, sizeof(*narrator->noted)))
		return NULL;
	narrator->noted[narrator->noted_count] = (struct noted){.id = id, .severity = -1};
	return &narrator->noted[narrator->noted_count++];
}

/* Writes the severity of a region and, where others waited for it, the share by which it is rated. */
static void say_severity(const cJSON *record, const char *severity, char *text, size_t size)
{
	double rated = record__number(record, KEY(variance, rated_pct), NAN);
	bool waited = record__number(record, KEY(variance, caused_seconds), 0) > 0;

	if (waited && rated > 0 && rated <= 100)
		snprintf(text, size, " (%s, %.*f %% with the waiting)", severity,
			 rated < 0.01 ? 4
			 : rated < 10 ? 2
				      : 0,
			 rated);
	else
		snprintf(text, size, " (%s)", severity);
}

/* Writes how long a region lasted that has ended: the time in front of its sentence is that of its end. */
static void say_lasting(const cJSON *record, bool first, char *text, size_t size)
{
	uint64_t begin, end;
	char lasted[40];

	*text = 0;
	if (!record__time(record, KEY(variance, begin), &begin) || !record__time(record, KEY(variance, end), &end) ||
	    end <= begin)
		return;
	snprintf(text, size, " %s %s", first ? "within" : "after",
		 duration__text((double)(end - begin) / 1e9, lasted, sizeof(lasted)));
}

/* Reports an alarm when it opens, when it becomes more severe and when it ends. What is no alarm is in the summary. */
static void say_variance(struct narrator *narrator, const cJSON *record)
{
	const char *state = record__text(record, KEY(variance, state)),
		   *verdict = record__text(record, KEY(variance, verdict));
	const char *who = record__text(record, KEY(variance, who)), *class = record__text(record, KEY(variance, class));
	const char *evidence = record__text(record, KEY(variance, evidence));
	int severity =
	    record__word(record__text(record, KEY(variance, severity)), json_severity_name, VAPRO_SEVERITIES);
	bool ended = state && !strcmp(state, "closed"), alarm = record__true(record, KEY(variance, alarm)), first;
	char text[1400], lost[40], word[80] = "", lasting[60] = "", *inside;
	struct noted *noted;

	if (severity == VAPRO_SEVERITIES || (!alarm && !is_noted(narrator, record__uint(record, KEY(variance, id)))))
		return;
	noted = noted_of(narrator, record__uint(record, KEY(variance, id)));
	if (!noted || (!alarm && !ended) || (noted->ended && ended) || (!ended && severity <= noted->severity))
		return;
	first = noted->severity < 0;
	noted->ended = ended;
	if (severity > noted->severity)
		say_severity(record, json_severity_name[severity], word, sizeof(word));
	if (ended)
		say_lasting(record, first, lasting, sizeof(lasting));
	noted->severity = severity > noted->severity ? severity : noted->severity;
	inside = inside_words__of_record(record);
	duration__text(record__number(record, KEY(variance, lost_seconds), 0), lost, sizeof(lost));
	snprintf(text, sizeof(text), "slow region %llu%s %s%s: ", (unsigned long long)noted->id, word,
		 ended && first ? "began and ended"
		 : ended	? "ended"
		 : first	? "began"
				: "is worse now",
		 lasting);
	if (!alarm)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "no alarm any more: %s",
			 evidence ? evidence : "it lost too little");
	else if (verdict)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s%s%s", verdict,
			 inside ? " Inside: " : "", inside ? inside : "", inside ? "." : "");
	else
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s of %s, %s lost so far",
			 class ? class : "work", who ? who : "?", lost);
	free(inside);
	say_later(narrator, record__text(record, ended ? KEY(variance, end) : KEY(variance, begin)), noted->id, text);
}

/* Reports a hang when it is found, when its kind or severity is another one, and when it is over. */
static void say_hang(struct narrator *narrator, const cJSON *record)
{
	const char *text = record__text(record, KEY(hang, text)), *state = record__text(record, KEY(hang, state));
	const char *kind = record__text(record, KEY(hang, kind));
	int severity = record__word(record__text(record, KEY(hang, severity)), json_severity_name, VAPRO_SEVERITIES);
	int known = severity * VAPRO_HANG_KINDS + record__word(kind, vapro_hang_kind_name, VAPRO_HANG_KINDS);
	bool alarm = record__true(record, KEY(hang, alarm)), ended = state && !strcmp(state, "closed");
	struct noted *noted = noted_of(narrator, record__uint(record, KEY(hang, id)));
	char *said = NULL;

	if (!text || !noted || severity == VAPRO_SEVERITIES || (!ended && noted->severity == known))
		return;
	noted->severity = known;
	if (asprintf(&said, "%s%s%s", alarm ? json_severity_name[severity] : "", alarm ? ": " : "", text) >= 0)
		say_later(narrator, record__text(record, KEY(head, time)), noted->id, said);
	free(said);
}

static void say_hello(struct narrator *narrator, const cJSON *record)
{
	const char *host = record__text(record, KEY(head, host)), *version = record__text(record, KEY(hello, version));
	char text[400];

	snprintf(text, sizeof(text), "watching host %s (vapro %s); times are UTC", host ? host : "?",
		 version ? version : "?");
	say(narrator, record__text(record, KEY(head, time)), text);
}

void narrator__record(struct narrator *narrator, enum record_object type, const char *line)
{
	static void (*const say[RECORD_OBJECTS])(struct narrator * narrator,
						 const cJSON *record) = {[RECORD_OBJECT_hello] = say_hello,
									 [RECORD_OBJECT_process] = add_process,
									 [RECORD_OBJECT_variance] = say_variance,
									 [RECORD_OBJECT_hang] = say_hang};
	cJSON *record;

	/* heat maps are most of all records: they are not parsed */
	if (type >= RECORD_OBJECTS || !say[type])
		return;
	record = cJSON_Parse(line);
	if (record)
		say[type](narrator, record);
	cJSON_Delete(record);
}
