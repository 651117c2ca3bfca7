// SPDX-License-Identifier: GPL-2.0-or-later
/* Fuzzer of fragments as NDJSON: vapro analyze --format ndjson. */
#include <stdio.h>

#include "capture/ndjson.h"
#include "fuzz.h"
#include "pipeline/pipeline.h"

#define LINES 160
#define LINE_MAX 512

static const char computation[] =
    "{\"rank\":%u,\"world_size\":2,\"job\":\"j\",\"host\":\"n%u\",\"class\":\"computation\",\"from\":\"a\","
    "\"to\":\"b\",\"start_ns\":%lu,\"duration_ns\":%lu,\"workload\":{\"instructions\":%u},"
    "\"factors\":{\"preempted\":%lu},\"cpu\":%u}\n";
static const char communication[] =
    "{\"rank\":%u,\"class\":\"communication\",\"at\":\"b\",\"start_ns\":%lu,\"end_ns\":%lu,\"duration_ns\":%lu,"
    "\"n\":2,\"workload\":{\"function\":\"MPI_Send\",\"peer\":\"1\",\"bytes\":8}}\n";

const uint8_t *fuzz__origin(size_t *size)
{
	static char origin[LINES * LINE_MAX];
	static size_t length;

	if (length) {
		*size = length;
		return (const uint8_t *)origin;
	}
	for (unsigned i = 0; i < LINES; i++) {
		uint64_t begin = UTC + i / 2 * 250 * MS, end = begin + 40 * MS, ns = 150 * MS + i % 7 * 1000;
		uint64_t slow = i > 80 && i < 120 ? 60 * MS : 0;
		char *at = origin + length;

		if (i % 5)
			length += (size_t)snprintf(at, LINE_MAX, computation, i % 2, i % 2, begin, ns + slow,
						   1000000 + i % 5, slow, i % 2);
		else
			length += (size_t)snprintf(at, LINE_MAX, communication, i % 2, begin, end, (end - begin) / 2);
	}
	*size = length;
	return (const uint8_t *)origin;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *path = fuzz__file(data, size);
	struct pipeline *pipeline = fuzz__pipeline();
	uint64_t bad;
	char err[512];

	(void)ndjson__replay(&path, 1, false, 15, pipeline__sink(pipeline), &bad, err, sizeof(err));
	pipeline__close(pipeline);
	return 0;
}
