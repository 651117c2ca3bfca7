// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fuzzer of blocks: a job of vapro-worker whose first block is any records under a right head; the blocks after it are
 * as they were.
 */
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "capture/crc.h"
#include "fuzz.h"
#include "wire/block_private.h"
#include "wire/split.h"
#include "worker/job.h"

#define BLOCKS 256

/* The blocks of the first job, as its node sends them. */
static struct sent {
	struct wire_receiver receiver; /* first */
	struct block blocks[BLOCKS];
	char subject[WIRE_SUBJECT_MAX];
	size_t count;
} sent;

static void receive(struct wire_receiver *receiver, const struct wire_job *job, const char *host,
		    const struct block *block)
{
	(void)receiver;
	if (strcmp(job->job, "slurm:7")) {
		free(block->bytes);
		return;
	}
	fuzz__require(sent.count < BLOCKS);
	fuzz__require(!wire__subject(sent.subject, sizeof(sent.subject), WIRE_IN, job, host));
	sent.blocks[sent.count++] = *block;
}

/* A sink in front of a splitter: blocks are finished as time passes. */
struct ticker {
	struct stream_sink sink; /* first */
	struct wire_split *split;
};

static int ticker__put(struct stream_sink *sink, const struct stream_event *event)
{
	struct wire_split *split = ((struct ticker *)sink)->split;

	if (event->type == STREAM_BUNDLE)
		wire_split__tick(split, event->bundle.end_ns);
	return stream__put(wire_split__sink(split), event);
}

static void send(void)
{
	struct ticker ticker = {.sink.put = ticker__put};
	const struct streamed stream = fuzz__stream(&ticker.sink);

	sent.receiver.take = receive;
	ticker.split = wire_split__new("test", "", "{\"threshold\":0.9,\"hop-frames\":4}", &sent.receiver);
	fuzz__require(ticker.split != NULL);
	fuzz__hello(&ticker.sink);
	streamed__run(&stream);
	fuzz__require(!stream__close(wire_split__sink(ticker.split)));
	wire_split__free(ticker.split);
	fuzz__require(sent.count > 10);
}

static struct block_head head_of(const struct block *block)
{
	struct block_head head;
	char err[256];

	fuzz__require(!block__head(&head, block->bytes, block->size, err, sizeof(err)));
	return head;
}

/* The frame of the first block, unpacked. */
const uint8_t *fuzz__origin(size_t *size)
{
	static uint8_t *origin;
	static size_t length;

	if (!origin) {
		const uint8_t *bytes;
		struct block_head head;

		send();
		bytes = sent.blocks[0].bytes;
		head = head_of(&sent.blocks[0]);
		length = head.raw_bytes;
		origin = malloc(length);
		fuzz__require(origin && ZSTD_decompress(origin, length, bytes + block_head__bytes(bytes),
							head.packed_bytes) == length);
	}
	*size = length;
	return origin;
}

static uint32_t word_at(const uint8_t *at)
{
	return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* Counts the records behind the introduction. */
static uint32_t count_records(const uint8_t *data, size_t size)
{
	uint32_t records = 0;
	size_t at = 0;

	for (int i = 0; i < 3 && size - at >= 4; i++) {
		size_t length = word_at(data + at);

		if (length > size - at - 4)
			return 0;
		at += 4 + length;
	}
	for (; size - at >= BLOCK_RECORD_HEAD; records++) {
		size_t length = word_at(data + at + 4);

		if (length > size - at - BLOCK_RECORD_HEAD)
			break;
		at += BLOCK_RECORD_HEAD + length;
	}
	return records;
}

/* Packs a frame as the first block; the caller frees its bytes. */
static struct capture_buffer pack(const uint8_t *data, size_t size)
{
	struct block_head head = head_of(&sent.blocks[0]);
	size_t bound = ZSTD_compressBound(size), packed;
	void *frame = malloc(bound);
	struct capture_buffer out = {0};

	fuzz__require(frame != NULL);
	packed = ZSTD_compress(frame, bound, data, size, 1);
	fuzz__require(!ZSTD_isError(packed));
	head.events = count_records(data, size);
	head.raw_bytes = (uint32_t)size;
	head.packed_bytes = (uint32_t)packed;
	head.frame_crc = crc__of(frame, packed);
	block_head__write(&out, &head);
	capture_buffer__add(&out, frame, packed);
	fuzz__require(!out.failed);
	free(frame);
	return out;
}

static int take_lines(struct worker_receiver *receiver, uint64_t end_ns, const char *lines, size_t size)
{
	(void)receiver;
	(void)end_ns;
	(void)lines;
	(void)size;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct worker_job_options options = {
	    .late_after_ns = 10 * S, .again_ns = 60 * S, .memory_bytes = 256 << 20};
	struct worker_receiver receiver = {take_lines};
	struct worker_job *job = worker_job__new(1, 0, S, &options, &receiver);
	size_t length;

	(void)fuzz__origin(&length); /* makes the blocks */
	fuzz__require(job != NULL);
	for (size_t i = 0; i < sent.count; i++) {
		struct capture_buffer block = {0};

		if (i)
			capture_buffer__add(&block, sent.blocks[i].bytes, sent.blocks[i].size);
		else
			block = pack(data, size);
		fuzz__require(!block.failed);
		fuzz__require(!worker_job__put(job, sent.subject, i + 1, block.data, block.length, S));
	}
	(void)worker_job__advance(job, S, true);
	(void)worker_job__finish(job, 2 * S);
	worker_job__free(job);
	return 0;
}
