// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Writes captures of blocks: of each run its own, with what its blocks hold, in order of their sequence, and nothing of
 * those that are missing. Standard input has {u32 length, block} one after the other, in any order, also twice. Tests
 * compare what a worker finds with what `vapro analyze` finds in these captures.
 */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "capture/capture.h"
#include "wire/block_private.h"

struct packed {
	struct block_head head;
	uint8_t *bytes;
	size_t size;
};

/* Numbers of a run, which need not be dense, as numbers of a capture. */
struct numbers {
	uint32_t *of; /* + 1; 0: not announced yet */
	size_t capacity;
	uint32_t count;
};

struct unpacker {
	struct stream_sink sink; /* first */
	struct stream_sink *capture;
	struct numbers threads, states;
	bool ended;
};

/* Returns whether the number is announced for the first time; *id is the capture's then. */
static bool announce(struct numbers *numbers, uint32_t *id)
{
	if (grow(&numbers->of, &numbers->capacity, (size_t)*id + 1, sizeof(*numbers->of)) || numbers->of[*id])
		return false;
	numbers->of[*id] = ++numbers->count;
	*id = numbers->count - 1;
	return true;
}

static int put(struct stream_sink *sink, const struct stream_event *event)
{
	struct unpacker *unpacker = (struct unpacker *)sink;
	struct stream_event copy = *event;
	uint32_t *thread = block__thread_of(&copy), *state = block__state_of(&copy);

	if (event->type == STREAM_THREAD && !announce(&unpacker->threads, &copy.thread.id))
		return 0;
	if (event->type == STREAM_STATE && !announce(&unpacker->states, &copy.state.id))
		return 0;
	if (thread)
		*thread = unpacker->threads.of[*thread] - 1;
	if (state)
		*state = unpacker->states.of[*state] - 1;
	unpacker->ended |= event->type == STREAM_END;
	return stream__put(unpacker->capture, &copy);
}

static int by_run(const void *a, const void *b)
{
	const struct block_head *one = &((const struct packed *)a)->head, *other = &((const struct packed *)b)->head;

	if (one->run != other->run)
		return one->run < other->run ? -1 : 1;
	return one->sequence < other->sequence ? -1 : one->sequence > other->sequence;
}

/* Reads all blocks; returns their number, or -1 after a message. */
static long read_blocks(struct packed **blocks)
{
	size_t capacity = 0, count = 0;
	uint32_t length;
	char err[512];

	while (fread(&length, sizeof(length), 1, stdin) == 1) {
		struct packed *packed;

		length = le32toh(length);
		if (grow(blocks, &capacity, count + 1, sizeof(**blocks)))
			return -1;
		packed = &(*blocks)[count++];
		packed->size = length;
		packed->bytes = malloc(length ? length : 1);
		if (!packed->bytes || fread(packed->bytes, 1, length, stdin) != length ||
		    block__head(&packed->head, packed->bytes, length, err, sizeof(err))) {
			fprintf(stderr, "unpack_blocks: a block cannot be read\n");
			return -1;
		}
	}
	return (long)count;
}

/* Writes the capture of one run. Returns 0 or -1 after a message. */
static int unpack(const struct packed *blocks, size_t count, const char *directory, size_t number)
{
	struct unpacker unpacker = {.sink = {put}};
	struct block_reader *reader = block_reader__new();
	char path[1024], err[512] = "no introduction";
	struct block_head head;
	int ret = -EINVAL;

	/* tunables and the line hello come first in a capture, whichever block introduces */
	for (size_t i = 0; i < count && !block_reader__tunables(reader); i++)
		block_reader__read(reader, blocks[i].bytes, blocks[i].size, &head, NULL, err, sizeof(err));
	snprintf(path, sizeof(path), "%s/%.200s-%zu.capture", directory, blocks->head.host, number);
	if (block_reader__tunables(reader))
		unpacker.capture = capture__create(path, block_reader__tunables(reader));
	if (unpacker.capture && block_reader__hello(reader))
		ret = stream__put(
		    unpacker.capture,
		    &(struct stream_event){.type = STREAM_LINE, .line = stream__line(block_reader__hello(reader))});
	for (size_t i = 0; !ret && i < count; i++) {
		if (i && blocks[i].head.sequence == blocks[i - 1].head.sequence)
			continue;
		ret = block_reader__read(reader, blocks[i].bytes, blocks[i].size, &head, &unpacker.sink, err,
					 sizeof(err));
	}
	if (!ret && !unpacker.ended)
		ret = stream__put(unpacker.capture, &(struct stream_event){.type = STREAM_END});
	if (unpacker.capture && stream__close(unpacker.capture) && !ret)
		ret = -EIO;
	if (ret)
		fprintf(stderr, "unpack_blocks: %s: %s\n", path, err);
	else
		puts(path);
	block_reader__free(reader);
	free(unpacker.threads.of);
	free(unpacker.states.of);
	return ret ? -1 : 0;
}

int main(int argc, char **argv)
{
	struct packed *blocks = NULL;
	size_t begin = 0, runs = 0;
	long count;
	int ret = 0;

	if (argc != 2) {
		fputs("Usage: unpack_blocks DIRECTORY\nWrites captures of the blocks on standard input, and their "
		      "paths.\n",
		      stderr);
		return 2;
	}
	count = read_blocks(&blocks);
	if (count < 0)
		return 1;
	if (count)
		qsort(blocks, (size_t)count, sizeof(*blocks), by_run);
	for (size_t i = 1; !ret && i <= (size_t)count; i++) {
		if (i < (size_t)count && blocks[i].head.run == blocks[begin].head.run)
			continue;
		ret = unpack(&blocks[begin], i - begin, argv[1], runs++);
		begin = i;
	}
	for (size_t i = 0; i < (size_t)count; i++)
		free(blocks[i].bytes);
	free(blocks);
	return ret ? 1 : 0;
}
