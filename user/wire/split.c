// SPDX-License-Identifier: GPL-2.0-or-later
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/grow.h"
#include "wire/announcements.h"
#include "wire/split.h"

/* A job on one host, in this run. */
struct part {
	struct wire_job job;
	char host[WIRE_TEXT_MAX];
	uint64_t run;
	struct block_writer *writer;
	uint32_t live;	/* threads that did not end */
	bool quiet;	/* nothing came since the last window */
	uint64_t lost;	/* fragments in discarded blocks that no facts have yet */
	uint64_t again; /* those that facts in discarded blocks had */
};

struct wire_split {
	struct stream_sink sink; /* first */
	char cluster[WIRE_TEXT_MAX], host[WIRE_TEXT_MAX];
	struct wire_receiver *receiver;
	struct announcements *announced;
	struct part **parts;
	size_t count, capacity;
	struct part **of_thread; /* by id; NULL: its job has ended, or not begun */
	size_t thread_capacity;
	uint64_t now_ns;
	int error; /* the last of a put */
};

static struct wire_split *split_of(struct stream_sink *sink)
{
	return (struct wire_split *)sink;
}

static void part__free(struct part *part)
{
	if (part)
		block_writer__free(part->writer);
	free(part);
}

/* Finds the part of a job, on any host where host is NULL. */
static struct part *find(const struct wire_split *split, const char *job, uint32_t user, const char *host)
{
	for (size_t i = 0; i < split->count; i++) {
		struct part *part = split->parts[i];

		if (part->job.user == user && !strncmp(part->job.job, job, WIRE_TEXT_MAX - 1) &&
		    (!host || !strcmp(part->host, host)))
			return part;
	}
	return NULL;
}

/* Returns the part of a job, begun where there is none; NULL when out of memory. */
static struct part *part_of(struct wire_split *split, const char *job, uint32_t user, const char *host)
{
	struct block_identity identity = {.host = host};
	struct part *part = find(split, job, user, host);

	if (part)
		return part;
	part = calloc(1, sizeof(*part));
	if (!part || grow(&split->parts, &split->capacity, split->count + 1, sizeof(struct part *)))
		goto failed;
	snprintf(part->job.cluster, sizeof(part->job.cluster), "%s", split->cluster);
	snprintf(part->job.job, sizeof(part->job.job), "%s", job);
	snprintf(part->host, sizeof(part->host), "%s", host);
	part->job.user = user;
	if (getrandom(&part->run, sizeof(part->run), 0) != sizeof(part->run))
		goto failed;
	identity.job = part->job;
	identity.run = part->run;
	part->writer = block_writer__new(&identity, split->announced);
	if (!part->writer)
		goto failed;
	split->parts[split->count++] = part;
	return part;
failed:
	part__free(part);
	return NULL;
}

static const char *host_of(const struct wire_split *split, const struct vapro_thread *thread)
{
	return split->host[0] ? split->host : thread->host;
}

/* Returns the part of a thread's job, begun again where the job had ended. */
static struct part *part_of_thread(struct wire_split *split, uint32_t id)
{
	const struct vapro_thread *thread = announcements__thread(split->announced, id);

	if (!thread || grow(&split->of_thread, &split->thread_capacity, (size_t)id + 1, sizeof(struct part *)))
		return NULL;
	if (!split->of_thread[id])
		split->of_thread[id] = part_of(split, thread->job, thread->user, host_of(split, thread));
	return split->of_thread[id];
}

/* Packs a part's block and hands it on. */
static void finish(struct wire_split *split, struct part *part, uint32_t flags)
{
	struct block block;
	int ret = block_writer__finish(part->writer, flags, &block);

	if (!ret)
		split->receiver->take(split->receiver, &part->job, part->host, &block);
	else if (ret != -ENODATA) {
		part->lost += block.fragments;
		part->again += block.named;
	}
}

static int put(struct wire_split *split, struct part *part, const struct stream_event *event)
{
	int ret = block_writer__put(part->writer, event, split->now_ns);

	if (ret == -ENOBUFS) {
		finish(split, part, 0);
		ret = block_writer__put(part->writer, event, split->now_ns);
	}
	if (ret)
		split->error = ret;
	else if (block_writer__ready(part->writer, split->now_ns))
		finish(split, part, 0);
	return ret == -ENOMEM ? ret : 0; /* an event that no block holds is no reason to end */
}

static int put_all(struct wire_split *split, const struct stream_event *event)
{
	int ret = 0;

	for (size_t i = 0; i < split->count; i++) {
		int status = put(split, split->parts[i], event);

		if (status)
			ret = status;
	}
	return ret;
}

/* Puts an event to one part, if there is one. */
static int put_to(struct wire_split *split, struct part *part, const struct stream_event *event)
{
	if (!part)
		return 0;
	part->quiet = false;
	return put(split, part, event);
}

static int put_of_thread(struct wire_split *split, uint32_t thread, const struct stream_event *event)
{
	struct part *part = part_of_thread(split, thread);

	return part ? put_to(split, part, event) : -ENOMEM;
}

/* Counts the threads that live, before the event is noted: without one the job ends. Returns 0 or -ENOMEM. */
static int note_life(struct wire_split *split, const struct stream_seen *seen)
{
	const struct stream_seen *before = announcements__seen(split->announced, seen->thread);
	struct part *part = part_of_thread(split, seen->thread);
	bool ended = before && before->to_ns;

	if (!part)
		return -ENOMEM;
	if (ended && !seen->to_ns)
		part->live++;
	else if (!ended && seen->to_ns && part->live)
		part->live--;
	return 0;
}

/* The part that has a process; the newest thread counts, since pids are used again. */
static struct part *part_of_pid(const struct wire_split *split, uint32_t pid)
{
	for (size_t i = announcements__threads(split->announced); i-- > 0;) {
		const struct vapro_thread *thread = announcements__thread(split->announced, (uint32_t)i);

		if (thread->pid == pid)
			return find(split, thread->job, thread->user, host_of(split, thread));
	}
	return NULL;
}

/* Lines about a process belong to its job, which begins with it; a refused one begins none. */
static int put_process(struct wire_split *split, const cJSON *line, const struct stream_event *event)
{
	const cJSON *job = cJSON_GetObjectItemCaseSensitive(line, "job");
	const char *identity = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(job, "identity"));
	const char *state = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(line, "state"));
	const char *host = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(line, "host"));
	const cJSON *uid = cJSON_GetObjectItemCaseSensitive(job, "uid");
	uint32_t user = cJSON_IsNumber(uid) && uid->valuedouble >= 0 && uid->valuedouble < UINT32_MAX
			    ? (uint32_t)uid->valuedouble + 1
			    : 0;
	struct part *part;

	if (!identity || !host)
		return 0;
	if (split->host[0])
		host = split->host;
	part = state && !strcmp(state, "attached") ? part_of(split, identity, user, host)
						   : find(split, identity, user, host);
	return put_to(split, part, event);
}

static int put_line(struct wire_split *split, const struct stream_event *event)
{
	cJSON *line = cJSON_Parse(event->line.text);
	const cJSON *pid = cJSON_GetObjectItemCaseSensitive(line, "pid");
	int ret = 0;

	if (event->line.type == RECORD_OBJECT_process)
		ret = put_process(split, line, event);
	else if (event->line.type == RECORD_OBJECT_warning && cJSON_IsNumber(pid) && pid->valuedouble > 0)
		ret = put_to(split, part_of_pid(split, (uint32_t)pid->valuedouble), event);
	else if (event->line.type == RECORD_OBJECT_warning)
		ret = put_all(split, event);
	cJSON_Delete(line);
	return ret;
}

/* Packs what is left of a job, and forgets it. */
static void end_part(struct wire_split *split, size_t index)
{
	struct part *part = split->parts[index];

	finish(split, part, BLOCK_LAST);
	for (size_t i = 0; i < split->thread_capacity; i++) {
		if (split->of_thread[i] == part)
			split->of_thread[i] = NULL;
	}
	part__free(part);
	split->parts[index] = split->parts[--split->count];
}

/* A job without threads of which nothing came in a whole window has ended. */
static int put_window(struct wire_split *split, const struct stream_event *event)
{
	int ret = put_all(split, event);

	for (size_t i = split->count; i-- > 0;) {
		struct part *part = split->parts[i];

		if (part->quiet && !part->live)
			end_part(split, i);
		else
			part->quiet = true;
	}
	return ret;
}

static int put_thread(struct wire_split *split, const struct stream_event *event)
{
	struct part *part = part_of_thread(split, event->thread.id);

	if (!part)
		return -ENOMEM;
	part->live++;
	return put_to(split, part, event);
}

static int split__put(struct stream_sink *sink, const struct stream_event *event)
{
	struct wire_split *split = split_of(sink);
	int ret = 0;

	if (event->type == STREAM_SEEN)
		ret = note_life(split, &event->seen);
	if (!ret)
		ret = announcements__note(split->announced, event);
	if (ret)
		return ret;
	switch (event->type) {
	case STREAM_LINE:
		return put_line(split, event);
	case STREAM_THREAD:
		return put_thread(split, event);
	case STREAM_BUNDLE:
		return put_of_thread(split, event->bundle.thread, event);
	case STREAM_SEEN:
		return put_of_thread(split, event->seen.thread, event);
	case STREAM_PLACE:
		return put_of_thread(split, event->place.thread, event);
	case STREAM_INTERFERENCE:
		return put_of_thread(split, event->interference.thread, event);
	case STREAM_ACCOUNT:
		return put_of_thread(split, event->account.thread, event);
	case STREAM_INSIDE:
		return put_of_thread(split, event->inside.thread, event);
	case STREAM_FACTS:
		return put_to(split, find(split, event->facts.job, event->facts.user, NULL), event);
	case STREAM_WINDOW:
		return put_window(split, event);
	case STREAM_CLOCK:
	case STREAM_END:
	case STREAM_STAGE:
	case STREAM_HOP:
	case STREAM_NAME:
	case STREAM_HOST_CLOCK:
		return put_all(split, event);
	case STREAM_STATE:
	case STREAM_GONE: /* a block has numbers of its own */
		break;
	}
	return 0;
}

static int split__close(struct stream_sink *sink)
{
	struct wire_split *split = split_of(sink);

	while (split->count)
		end_part(split, split->count - 1);
	return split->error;
}

struct wire_split *wire_split__new(const char *cluster, const char *host, const char *tunables,
				   struct wire_receiver *receiver)
{
	struct wire_split *split = calloc(1, sizeof(*split));

	if (!split)
		return NULL;
	split->announced = announcements__new(tunables);
	if (!split->announced) {
		free(split);
		return NULL;
	}
	split->sink.put = split__put;
	split->sink.close = split__close;
	split->receiver = receiver;
	snprintf(split->cluster, sizeof(split->cluster), "%s", cluster);
	snprintf(split->host, sizeof(split->host), "%s", host);
	return split;
}

void wire_split__free(struct wire_split *split)
{
	if (!split)
		return;
	for (size_t i = 0; i < split->count; i++)
		part__free(split->parts[i]);
	free(split->parts);
	free(split->of_thread);
	announcements__free(split->announced);
	free(split);
}

struct stream_sink *wire_split__sink(struct wire_split *split)
{
	return &split->sink;
}

void wire_split__tick(struct wire_split *split, uint64_t now_ns)
{
	split->now_ns = now_ns;
	for (size_t i = 0; i < split->count; i++) {
		if (block_writer__ready(split->parts[i]->writer, now_ns))
			finish(split, split->parts[i], 0);
	}
}

void wire_split__dropped(struct wire_split *split, const struct block_drop *drop)
{
	for (size_t i = 0; i < split->count; i++) {
		struct part *part = split->parts[i];

		if (part->run != drop->run)
			continue;
		part->lost += drop->fragments;
		part->again += drop->named;
		block_writer__dropped(part->writer, drop->blocks, drop->fragments);
	}
}

uint64_t wire_split__take_lost(struct wire_split *split, const char *job, uint32_t user, uint64_t *again)
{
	struct part *part = find(split, job, user, NULL);
	uint64_t lost = part ? part->lost : 0;

	*again = part ? part->again : 0;
	if (part)
		part->lost = part->again = 0;
	return lost;
}
