// SPDX-License-Identifier: GPL-2.0-or-later
/* Fuzzer of captures: vapro analyze of a file whose records have right checksums. */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "capture/capture.h"
#include "capture/crc.h"
#include "fuzz.h"
#include "pipeline/pipeline.h"

#define RECORD_HEAD 8 /* type and length */
#define CRC_BYTES 4

const uint8_t *fuzz__origin(size_t *size)
{
	static uint8_t *origin;
	static size_t length;

	if (!origin) {
		const char *path = fuzz__file("", 0);
		struct stream_sink *capture = capture__create(path, "{\"threshold\":0.9,\"hop-frames\":4}");
		const struct streamed stream = fuzz__stream(capture);

		fuzz__require(capture != NULL);
		fuzz__hello(capture);
		streamed__run(&stream);
		fuzz__require(!stream__put(capture, &(struct stream_event){.type = STREAM_END}));
		fuzz__require(!stream__close(capture));
		origin = fuzz__read(path, &length);
	}
	*size = length;
	return origin;
}

/* Sets the checksums of all records right, and the length of the last one. */
static void forge(uint8_t *data, size_t size)
{
	uint8_t *end_of_head = memchr(data, '\n', size), *at = end_of_head ? end_of_head + 1 : data + size;
	size_t left = size - (size_t)(at - data);
	uint32_t length, crc;

	for (; left >= RECORD_HEAD + CRC_BYTES; at += length, left -= length) {
		memcpy(&length, at + CRC_BYTES, sizeof(length));
		length = le32toh(length);
		if (length > left - RECORD_HEAD - CRC_BYTES) {
			length = htole32((uint32_t)(left - RECORD_HEAD - CRC_BYTES));
			memcpy(at + CRC_BYTES, &length, sizeof(length));
			length = le32toh(length);
		}
		length += RECORD_HEAD;
		crc = htole32(crc__of(at, length));
		memcpy(at + length, &crc, sizeof(crc));
		length += CRC_BYTES;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pipeline *pipeline = fuzz__pipeline();
	uint8_t *forged = malloc(size + 1);
	struct capture_info info;
	const char *path;
	char err[512];

	fuzz__require(forged != NULL);
	memcpy(forged, data, size);
	forge(forged, size);
	path = fuzz__file(forged, size);
	free(forged);
	(void)capture__info(path, &info, err, sizeof(err));
	(void)capture__replay(&path, 1, pipeline__sink(pipeline), err, sizeof(err));
	pipeline__close(pipeline);
	return 0;
}
