// SPDX-License-Identifier: GPL-2.0-or-later
/* What the fuzzers share: see fuzz.h. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/pipeline.h"
#include "pipeline/line_sink.h"

#define LEAST_SHARE 4 /* an input that is shorter than this part of its origin begins again */

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);

static uint64_t draw(uint64_t *state, uint64_t below)
{
	*state ^= *state << 13; /* xorshift */
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state % below;
}

/* Overwrites a few bytes in their place: tables and records stay where they are. */
static void overwrite(uint8_t *data, size_t size, uint64_t *state)
{
	static const uint8_t values[] = {0, 1, 2, 3, 4, 5, 0x7f, 0x80, 0xfe, 0xff};
	size_t at = draw(state, size);

	for (uint64_t changes = 1 + draw(state, 4); changes; changes--) {
		size_t length = (size_t)1 << draw(state, 4);

		if (length > size)
			length = size;
		if (at + length > size)
			at = size - length;
		switch (draw(state, 4)) {
		case 0: /* any value */
			data[at] = (uint8_t)draw(state, 256);
			break;
		case 1: /* one that borders on others */
			data[at] = values[draw(state, sizeof(values))];
			break;
		case 2: /* the same value several times: large or small numbers */
			memset(data + at, values[draw(state, sizeof(values))], length);
			break;
		default: /* something that stands elsewhere */
			memmove(data + at, data + draw(state, size - length + 1), length);
		}
		at = draw(state, 2) ? draw(state, size) : at + draw(state, 16);
		if (at >= size)
			at = size - 1;
	}
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	uint64_t state = seed * 0x9e3779b97f4a7c15ULL | 1;
	const uint8_t *origin;
	size_t length;

	origin = fuzz__origin(&length);
	fuzz__require(length <= max_size && length >= 16);
	if (size < length / LEAST_SHARE) {
		memcpy(data, origin, length);
		size = length;
	}
	if (!draw(&state, 4))
		return LLVMFuzzerMutate(data, size, max_size);
	overwrite(data, size, &state);
	return size;
}

void fuzz__required(int holds, const char *condition, const char *file, int line)
{
	if (holds)
		return;
	fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, condition);
	abort();
}

const struct vapro_config *fuzz__config(void)
{
	static struct vapro_config config;

	if (!config.window_s) {
		config__init(&config);
		config.hop_frames = 4;
	}
	return &config;
}

struct streamed fuzz__stream(struct stream_sink *to)
{
	return (struct streamed){.to = to, .ranks = 2, .seconds = 40, .step_ns = 250 * MS};
}

void fuzz__hello(struct stream_sink *to)
{
	fuzz__require(!stream__put(
	    to, &(struct stream_event){.type = STREAM_LINE,
				       .line = stream__line("{\"schema\":\"vapro/1\",\"type\":\"hello\",\"time\":"
							    "\"2027-01-15T08:00:00.000000000Z\",\"host\":\"n1\","
							    "\"workload_source\":\"instructions\"}")}));
}

struct pipeline *fuzz__pipeline(void)
{
	static struct line_sink *lines;
	struct pipeline *pipeline;

	if (!lines)
		lines = line_sink__open(NULL, false);
	fuzz__require(lines != NULL);
	pipeline = pipeline__new(fuzz__config(), VAPRO_BY_INSTRUCTIONS, NULL, lines, NULL);
	fuzz__require(pipeline != NULL);
	return pipeline;
}

static char path[64];

static void remove_file(void)
{
	unlink(path);
}

const char *fuzz__file(const void *data, size_t size)
{
	FILE *file;

	if (!*path) {
		snprintf(path, sizeof(path), "/dev/shm/vapro-fuzz-%d", getpid());
		atexit(remove_file);
	}
	file = fopen(path, "wb");
	fuzz__require(file != NULL);
	fuzz__require(fwrite(data, 1, size, file) == size);
	fuzz__require(!fclose(file));
	return path;
}

uint8_t *fuzz__read(const char *name, size_t *size)
{
	FILE *file = fopen(name, "rb");
	uint8_t *data;
	long end;

	fuzz__require(file && !fseek(file, 0, SEEK_END));
	end = ftell(file);
	fuzz__require(end >= 0);
	rewind(file);
	data = malloc((size_t)end + 1);
	fuzz__require(data && fread(data, 1, (size_t)end, file) == (size_t)end);
	fclose(file);
	*size = (size_t)end;
	return data;
}
