// SPDX-License-Identifier: GPL-2.0-or-later
/* Fuzzer of checkpoints: what is accepted goes on with more data and two windows. */
#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "fuzz.h"
#include "pipeline/pipeline.h"

#define HEAD "vapro-checkpoint/4 pipeline\n"
#define HEAD_BYTES (sizeof(HEAD) - 1 + 12) /* a length and a checksum follow the line */

const uint8_t *fuzz__origin(size_t *size)
{
	static uint8_t *origin;
	static size_t length;
	char err[256];

	if (!origin) {
		struct pipeline *pipeline = fuzz__pipeline();
		const struct streamed stream = fuzz__stream(pipeline__sink(pipeline));
		uint8_t *whole;

		streamed__run(&stream);
		fuzz__require(!pipeline__save(pipeline, &whole, &length, err, sizeof(err)));
		pipeline__close(pipeline);
		origin = whole + HEAD_BYTES;
		length -= HEAD_BYTES;
	}
	*size = length;
	return origin;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pipeline *pipeline = fuzz__pipeline();
	const struct streamed stream = fuzz__stream(pipeline__sink(pipeline));
	uint8_t *sealed = malloc(HEAD_BYTES + size), *at;
	uint64_t length = htole64(size), end = UTC + stream.seconds * S;
	uint32_t crc = htole32((uint32_t)crc32_z(0, data, size));
	char err[256];

	fuzz__require(sealed != NULL);
	at = mempcpy(sealed, HEAD, sizeof(HEAD) - 1);
	at = mempcpy(at, &length, sizeof(length));
	at = mempcpy(at, &crc, sizeof(crc));
	memcpy(at, data, size);
	if (pipeline__load(pipeline, sealed, HEAD_BYTES + size, err, sizeof(err))) {
		fuzz__require(!strncmp(err, "the checkpoint is refused: ", 27));
	} else {
		for (unsigned i = 0; i < 40; i++)
			streamed__iterate(&stream, stream.seconds * S + i * stream.step_ns, i);
		streamed__rarities(&stream, 3);
		for (unsigned i = 0; i < 2; i++)
			(void)stream__put(pipeline__sink(pipeline),
					  &(struct stream_event){.type = STREAM_WINDOW,
								 .window = {.begin_ns = end + i * 10 * S,
									    .end_ns = end + (i + 1) * 10 * S,
									    .last = i == 1}});
	}
	pipeline__close(pipeline);
	free(sealed);
	return 0;
}
