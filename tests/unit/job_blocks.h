/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Captures as blocks of a job of vapro-worker, and the lines that it finds in them; included by the file that is the
 * test. */
#ifndef VAPRO_TESTS_JOB_BLOCKS_H
#define VAPRO_TESTS_JOB_BLOCKS_H

#include "captured.h"
#include "written_records.h"
#include "wire/split.h"
#include "worker/job.h"

static inline uint64_t mono_at(uint64_t s)
{
	return s * S;
}

#define BLOCKS 512

struct sent {
	struct wire_receiver receiver; /* first */
	struct block blocks[BLOCKS];
	char subjects[BLOCKS][WIRE_SUBJECT_MAX];
	size_t count;
};

static inline void receive(struct wire_receiver *receiver, const struct wire_job *job, const char *host,
			   const struct block *block)
{
	struct sent *sent = (struct sent *)receiver;

	assert_true(sent->count < BLOCKS);
	assert_int_equal(wire__subject(sent->subjects[sent->count], WIRE_SUBJECT_MAX, WIRE_IN, job, host), 0);
	sent->blocks[sent->count++] = *block;
}

static struct wire_split *split;

static inline int tick(struct stream_sink *sink, const struct stream_event *event)
{
	(void)sink;
	if (event->type == STREAM_BUNDLE)
		wire_split__tick(split, event->bundle.end_ns);
	return stream__put(wire_split__sink(split), event);
}

static inline void pack(struct sent *sent, const char *path)
{
	struct stream_sink ticker = {.put = tick};

	split = wire_split__new("test", "", "{\"threshold\":0.9,\"io\":\"off\"}", &sent->receiver);
	assert_non_null(split);
	assert_int_equal(capture__replay((const char *const[]){path}, 1, &ticker, err, sizeof(err)), 0);
	assert_int_equal(stream__close(wire_split__sink(split)), 0);
	wire_split__free(split);
}

/* Collects the lines of windows; those of a new pass replace what they are about. */
struct found {
	struct worker_receiver receiver; /* first */
	char *lines;
	size_t windows;
	uint64_t end_ns;
};

static inline int find(struct worker_receiver *receiver, uint64_t end_ns, const char *lines, size_t size)
{
	struct found *found = (struct found *)receiver;
	char *joined = NULL;

	assert_true(asprintf(&joined, "%s%.*s", found->lines ? found->lines : "", (int)size, lines) > 0);
	free(found->lines);
	found->lines = joined;
	found->windows++;
	found->end_ns = end_ns;
	return 0;
}

static const struct worker_job_options job_options = {
    .late_after_ns = 10 * S, .again_ns = 60 * S, .memory_bytes = 256 << 20};

static inline struct worker_job *new_job(struct found *found)
{
	*found = (struct found){.receiver = {find}};
	return worker_job__new(1, 0, mono_at(1), &job_options, &found->receiver);
}

static inline void give(struct worker_job *job, const struct sent *sent, size_t i, uint64_t now_ns)
{
	void *copy = malloc(sent->blocks[i].size);

	memcpy(copy, sent->blocks[i].bytes, sent->blocks[i].size);
	assert_int_equal(worker_job__put(job, sent->subjects[i], i + 1, copy, sent->blocks[i].size, now_ns), 0);
}

/* The blocks of two nodes with a rank each: all of the first node, then all of the second. */
static inline void make_blocks(struct sent *sent)
{
	*sent = (struct sent){.receiver = {receive}};
	write_host(path_a, "node-0", 0, 1000 * S, 0, true);
	write_host(path_b, "node-1", 1, 2000 * S, 0, true);
	pack(sent, path_a);
	pack(sent, path_b);
	assert_true(sent->count > 20);
}

static inline void free_blocks(struct sent *sent)
{
	for (size_t i = 0; i < sent->count; i++)
		free(sent->blocks[i].bytes);
}

/* The lines when all blocks come in order: the reference of the other tests. */
static inline char *in_order(const struct sent *sent)
{
	struct found found;
	struct worker_job *job = new_job(&found);

	for (size_t i = 0; i < sent->count; i++)
		give(job, sent, i, mono_at(1));
	assert_int_equal(worker_job__advance(job, mono_at(1), true), 0);
	assert_true(worker_job__ended(job, mono_at(1), 100 * S));
	assert_int_equal(worker_job__finish(job, mono_at(1)), 0);
	assert_true(found.windows >= 2);
	worker_job__free(job);
	written_records__all(found.lines);
	return found.lines;
}

#endif
