// SPDX-License-Identifier: GPL-2.0-or-later
#include "source/blocks.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "capture/stream_merge.h"
#include "config/config_json.h"
#include "worker/run.h"

/*
 * A node has at most 64 blocks on their way, and sends one that failed before new ones: a block that is still missing
 * when so many later ones have come will not come.
 */
#define GAP_BLOCKS 256

/* One run of a vaprod, as a source of the merge. */
struct member {
	struct worker_run *run;
	int source;	   /* number in the merge, -1: not yet */
	uint64_t greatest; /* sequence so far */
	uint64_t waited;   /* blocks that came since one was missing */
	bool last;	   /* its last block has come */
	bool introduced;   /* its line `hello` was put */
};

struct source_blocks {
	struct broker_reader *reader;
	struct wire_job job;
	struct member *members;
	size_t count, capacity, hosts;
	bool read_up; /* all that the stream holds */
	bool overfull;
	uint64_t refused;
	char refusal[512];
};

static bool same_host(const struct member *member, const char *host)
{
	return !strcmp(worker_run__host(member->run), host);
}

static struct member *add_member(struct source_blocks *blocks, const struct block_head *head)
{
	struct member *member;

	/* an older run of the host has ended, whether its last block came or not */
	for (size_t i = 0; i < blocks->count; i++) {
		if (same_host(&blocks->members[i], head->host) && !head->sequence)
			worker_run__end(blocks->members[i].run, 0);
	}
	if (grow(&blocks->members, &blocks->capacity, blocks->count + 1, sizeof(*member)))
		return NULL;
	member = &blocks->members[blocks->count];
	*member = (struct member){.source = -1, .run = worker_run__new(head)};
	blocks->count += member->run != NULL;
	return member->run ? member : NULL;
}

static struct member *find_member(struct source_blocks *blocks, const struct block_head *head)
{
	for (size_t i = 0; i < blocks->count; i++) {
		if (worker_run__id(blocks->members[i].run) == head->run)
			return &blocks->members[i];
	}
	return add_member(blocks, head);
}

__attribute__((format(printf, 2, 3))) static void refuse(struct source_blocks *blocks, const char *format, ...)
{
	va_list arguments;

	if (blocks->refused++)
		return;
	va_start(arguments, format);
	vsnprintf(blocks->refusal, sizeof(blocks->refusal), format, arguments);
	va_end(arguments);
}

/* Waits for a block that is missing until enough later ones have come. */
static void note_gap(struct member *member, const struct block_head *head)
{
	const struct run_counts *counts = worker_run__counts(member->run);

	if (head->sequence > member->greatest)
		member->greatest = head->sequence;
	member->waited = counts->blocks + counts->missing > member->greatest ? 0 : member->waited + 1;
	if (member->waited < GAP_BLOCKS)
		return;
	worker_run__skip(member->run, 0);
	member->waited = 0;
}

/* Adds a block to its run. Returns 0 or -ENOMEM. */
static int put(struct source_blocks *blocks, const struct broker_message *message)
{
	char own[WIRE_SUBJECT_MAX], why[400];
	struct block_head head;
	struct member *member;
	void *bytes;
	int ret;

	if (block__head(&head, message->bytes, message->size, why, sizeof(why))) {
		refuse(blocks, "%s", why);
		return 0;
	}
	if (wire__subject(own, sizeof(own), WIRE_IN, &head.job, head.host) || strcmp(own, message->subject)) {
		refuse(blocks, "%s: a block names another host or job than its subject", head.host);
		return 0;
	}
	member = find_member(blocks, &head);
	bytes = member ? malloc(message->size) : NULL;
	if (!bytes)
		return -ENOMEM;
	memcpy(bytes, message->bytes, message->size);
	ret = worker_run__put(member->run, &head, 0, bytes, message->size, false);
	if (ret != RUN_QUEUED)
		free(bytes);
	if (ret < 0)
		return ret;
	member->last |= (head.flags & BLOCK_LAST) != 0;
	note_gap(member, &head);
	return 0;
}

/* Reads the next block. Returns 0, or a negative errno with a sentence in err. */
static int read_one(struct source_blocks *blocks, char *err, size_t err_size)
{
	struct broker_message message;
	int ret = broker_reader__next(blocks->reader, &message, err, err_size);

	if (ret > 0) {
		ret = put(blocks, &message);
		if (ret)
			snprintf(err, err_size, "out of memory");
		return ret;
	}
	blocks->read_up = !ret;
	/* what is missing in what was read will not come */
	for (size_t i = 0; !ret && i < blocks->count; i++)
		worker_run__settle(blocks->members[i].run);
	return ret;
}

static size_t count_hosts(const struct source_blocks *blocks)
{
	size_t hosts = 0;

	for (size_t i = 0; i < blocks->count; i++) {
		bool known = false;

		for (size_t k = 0; !known && k < i; k++)
			known = same_host(&blocks->members[k], worker_run__host(blocks->members[i].run));
		hosts += !known;
	}
	return hosts;
}

/* Whether all nodes have introduced themselves. Returns 1, 0 or -ENOMEM. */
static int is_introduced(struct source_blocks *blocks)
{
	bool all = count_hosts(blocks) >= blocks->hosts;

	for (size_t i = 0; all && i < blocks->count; i++) {
		if (worker_run__look(blocks->members[i].run))
			return -ENOMEM;
		all = worker_run__hello(blocks->members[i].run) != NULL;
	}
	return all;
}

static int compare_members(const void *a, const void *b)
{
	const struct member *one = a, *other = b;
	int order = strcmp(worker_run__host(one->run), worker_run__host(other->run));
	uint64_t id = worker_run__id(one->run), id_other = worker_run__id(other->run);

	return order ? order : (id > id_other) - (id < id_other);
}

/* Counts the hosts that have blocks of the job, and subscribes to these. */
static int start(struct source_blocks *blocks, char *err, size_t err_size)
{
	struct wire_subject *list = NULL;
	char filter[WIRE_SUBJECT_MAX];
	int ret;

	wire__filter(filter, sizeof(filter), WIRE_IN, blocks->job.cluster, &blocks->job, NULL);
	ret = broker_reader__subjects(blocks->reader, filter, &list, &blocks->hosts, err, err_size);
	free(list);
	return ret ? ret : broker_reader__start(blocks->reader, filter, 0, err, err_size);
}

int source_blocks__open(struct source_blocks **opened, const struct source_options *options, char *err, size_t err_size)
{
	struct source_blocks *blocks = calloc(1, sizeof(*blocks));
	int ret, ready = 0;

	if (!blocks) {
		snprintf(err, err_size, "out of memory");
		return -ENOMEM;
	}
	ret = source__open(&blocks->reader, options, WIRE_IN, &blocks->job, err, err_size);
	if (!ret)
		ret = start(blocks, err, err_size);
	while (!ret && !ready && !blocks->read_up) {
		ret = read_one(blocks, err, err_size);
		ready = ret ? 0 : is_introduced(blocks);
		if (ready < 0) {
			snprintf(err, err_size, "out of memory");
			ret = ready;
		}
	}
	if (!ret && !blocks->count) {
		snprintf(err, err_size, "job %s has no block that can be read%s%s", blocks->job.job,
			 blocks->refused ? ": " : "", blocks->refusal);
		ret = -ENODATA;
	}
	if (ret) {
		source_blocks__close(blocks);
		return ret;
	}
	qsort(blocks->members, blocks->count, sizeof(*blocks->members), compare_members);
	*opened = blocks;
	return 0;
}

void source_blocks__close(struct source_blocks *blocks)
{
	if (!blocks)
		return;
	for (size_t i = 0; i < blocks->count; i++)
		worker_run__free(blocks->members[i].run);
	free(blocks->members);
	broker_reader__close(blocks->reader);
	free(blocks);
}

const struct wire_job *source_blocks__job(const struct source_blocks *blocks)
{
	return &blocks->job;
}

size_t source_blocks__hosts(const struct source_blocks *blocks)
{
	return count_hosts(blocks);
}

int source_blocks__info(const struct source_blocks *blocks, struct capture_info *info, char *err, size_t err_size)
{
	const char *tunables = NULL, *hello = NULL;

	memset(info, 0, sizeof(*info));
	info->run = info->runs = 1;
	config__init(&info->config);
	for (size_t i = 0; !tunables && i < blocks->count; i++) {
		tunables = worker_run__tunables(blocks->members[i].run);
		hello = worker_run__hello(blocks->members[i].run);
	}
	if (!tunables) {
		snprintf(err, err_size, "no block with the nodes' tunables came: the default ones hold");
		return -ENOENT;
	}
	if (config__from_text(&info->config, tunables, err, err_size))
		return -EINVAL;
	if (hello)
		capture_info__hello(info, hello);
	return 0;
}

/* Puts the lines `hello` of runs that have introduced themselves. */
static int put_hellos(struct source_blocks *blocks, struct stream_sink *sink)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < blocks->count; i++) {
		struct stream_event event = {.type = STREAM_LINE,
					     .line = stream__line(worker_run__hello(blocks->members[i].run))};

		if (blocks->members[i].introduced || !event.line.text)
			continue;
		blocks->members[i].introduced = true;
		if (*event.line.text)
			ret = stream__put(sink, &event);
	}
	return ret;
}

static int add_sources(struct source_blocks *blocks, struct stream_merge *merge)
{
	for (size_t i = 0; i < blocks->count; i++) {
		struct member *member = &blocks->members[i];

		if (member->source < 0)
			member->source = stream_merge__add(merge, worker_run__reader(member->run));
		if (member->source < 0)
			return member->source;
	}
	return 0;
}

static size_t bytes_of(const struct source_blocks *blocks, const struct stream_merge *merge)
{
	size_t bytes = stream_merge__bytes(merge);

	for (size_t i = 0; i < blocks->count; i++)
		bytes += worker_run__bytes(blocks->members[i].run);
	return bytes;
}

/* The window that is due goes without the nodes that are behind. */
static void excuse(struct source_blocks *blocks, struct stream_merge *merge)
{
	uint64_t due_ns = stream_merge__due_ns(merge);

	for (size_t i = 0; i < blocks->count; i++) {
		struct member *member = &blocks->members[i];

		stream_merge__excuse(merge, member->source, stream_merge__read_ns(merge, member->source) < due_ns);
	}
	blocks->overfull = true;
}

/* Puts the windows that are complete. Returns 0 where more blocks are needed, or a negative errno. */
static int advance(struct source_blocks *blocks, struct stream_merge *merge, struct stream_sink *sink,
		   struct merge_watch *watch)
{
	int ret;

	do {
		ret = add_sources(blocks, merge);
		if (!ret)
			ret = put_hellos(blocks, sink);
		if (!ret)
			ret = stream_merge__advance(merge);
		watch->held(watch, bytes_of(blocks, merge));
	} while (ret > 0);
	return ret;
}

static int feed(struct source_blocks *blocks, struct stream_merge *merge, struct stream_sink *sink, size_t memory_bytes,
		struct merge_watch *watch, char *err, size_t err_size)
{
	bool complete;
	int ret = advance(blocks, merge, sink, watch);

	while (!ret && !blocks->read_up) {
		ret = read_one(blocks, err, err_size);
		if (ret)
			return ret;
		if (bytes_of(blocks, merge) > memory_bytes)
			excuse(blocks, merge);
		ret = advance(blocks, merge, sink, watch);
		for (size_t i = 0; i < blocks->count; i++)
			stream_merge__excuse(merge, blocks->members[i].source, false);
	}
	complete = stream_merge__ended(merge);
	for (size_t i = 0; i < blocks->count; i++)
		worker_run__end(blocks->members[i].run, 0);
	if (!ret)
		ret = advance(blocks, merge, sink, watch);
	if (!ret)
		ret = stream_merge__finish(merge, complete);
	if (ret)
		snprintf(err, err_size, "the analysis stopped: %s", strerror(-ret));
	return ret;
}

int source_blocks__feed(struct source_blocks *blocks, struct stream_sink *sink, size_t memory_bytes,
			struct merge_watch *watch, char *err, size_t err_size)
{
	struct stream_merge *merge = stream_merge__new(sink, MERGE_BY_WINDOW);
	int ret = -ENOMEM;

	if (merge)
		ret = feed(blocks, merge, sink, memory_bytes, watch, err, err_size);
	else
		snprintf(err, err_size, "out of memory");
	stream_merge__free(merge);
	return ret;
}

void source_blocks__counts(const struct source_blocks *blocks, struct source_counts *counts)
{
	*counts = (struct source_counts){.refused = blocks->refused, .overfull = blocks->overfull};
	memcpy(counts->refusal, blocks->refusal, sizeof(counts->refusal));
	for (size_t i = 0; i < blocks->count; i++) {
		const struct run_counts *run = worker_run__counts(blocks->members[i].run);
		const char *trouble = worker_run__trouble(blocks->members[i].run);

		counts->blocks += run->blocks;
		counts->duplicates += run->duplicates;
		counts->missing += run->missing;
		counts->refused += run->refused;
		counts->running += !blocks->members[i].last;
		if (trouble && !*counts->refusal)
			snprintf(counts->refusal, sizeof(counts->refusal), "%s", trouble);
	}
}
