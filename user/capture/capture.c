/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The writer of captures is a sink whose file replays into the sink's events. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/capture.h"
#include "capture/capture_format.h"
#include "capture/capture_head.h"
#include "capture/crc.h"
#include "capture/output_file.h"

#define FLUSH_BYTES (256U << 10)

static const char encoding[] =
    "after this line: records {u32 type, u32 length, payload, u32 crc}, little endian, crc = CRC-32 of type, length "
    "and payload; a payload is a varint bitmap of the columns that are not zero, then their values: uint = LEB128, "
    "int = zigzag LEB128, float = IEEE 754 double, text = LEB128 length, bytes, NUL";

struct capture {
	struct stream_sink sink; /* first */
	struct capture_buffer buffer;
	int fd;
	int error; /* once set, nothing more is written: the file stays readable up to here */
};

static int flush(struct capture *capture)
{
	const uint8_t *data = capture->buffer.data;
	size_t left = capture->buffer.length;

	if (capture->buffer.failed && !capture->error)
		capture->error = -ENOMEM;
	while (left && !capture->error) {
		ssize_t written = write(capture->fd, data, left);

		if (written < 0) {
			if (errno != EINTR)
				capture->error = -errno;
			continue;
		}
		data += written;
		left -= (size_t)written;
	}
	capture->buffer.length = 0;
	return capture->error;
}

static int capture__put(struct stream_sink *sink, const struct stream_event *event)
{
	struct capture *capture = (struct capture *)sink;
	struct capture_buffer *buffer = &capture->buffer;
	size_t start = buffer->length, length;
	uint32_t stored;

	if (capture->error)
		return capture->error;
	capture_buffer__add_u32(buffer, event->type);
	capture_buffer__add_u32(buffer, 0);
	capture__encode(buffer, event);
	if (buffer->failed)
		return flush(capture);
	length = buffer->length - start - 8;
	if (length > CAPTURE_RECORD_MAX) {
		buffer->length = start;
		return -E2BIG;
	}
	stored = htole32((uint32_t)length);
	memcpy(buffer->data + start + 4, &stored, sizeof(stored));
	capture_buffer__add_u32(buffer, crc__of(buffer->data + start, length + 8));
	/* finished windows of a killed daemon are whole in the file */
	if (buffer->length >= FLUSH_BYTES || event->type == STREAM_WINDOW || event->type == STREAM_END)
		return flush(capture);
	return 0;
}

static int capture__close(struct stream_sink *sink)
{
	struct capture *capture = (struct capture *)sink;
	int ret = flush(capture);

	if (close(capture->fd) && !ret)
		ret = -errno;
	free(capture->buffer.data);
	free(capture);
	return ret;
}

static char *make_head(const char *tunables)
{
	cJSON *head = cJSON_CreateObject(), *parsed = cJSON_Parse(tunables ? tunables : "{}"), *records = NULL;
	char *text = NULL;
	bool ok;

	if (!parsed) {
		errno = EINVAL;
		goto cleanup;
	}
	ok = head && cJSON_AddStringToObject(head, "magic", CAPTURE_MAGIC) &&
	     cJSON_AddStringToObject(head, "byte_order", "little") &&
	     cJSON_AddStringToObject(head, "clock", "CLOCK_MONOTONIC") &&
	     cJSON_AddStringToObject(head, "encoding", encoding) && cJSON_AddItemToObject(head, "tunables", parsed);
	if (ok) {
		parsed = NULL;
		records = capture_head__tables();
		ok = records && cJSON_AddItemToObject(head, "records", records);
	}
	text = ok ? cJSON_PrintUnformatted(head) : NULL;
	if (!text)
		errno = ENOMEM;
cleanup:
	cJSON_Delete(head);
	cJSON_Delete(parsed);
	return text;
}

/* Returns 0, or the errno for a file that no capture can be added to. */
static int check_file(int fd, const struct stat *status)
{
	char begin[sizeof(CAPTURE_HEAD_BEGIN) - 1];

	if (S_ISFIFO(status->st_mode))
		return ESPIPE; /* a reader that stops would end a capture, and opening must not wait */
	if (!S_ISREG(status->st_mode) || !status->st_size)
		return 0;
	if (output_file__read(fd, 0, begin, sizeof(begin)) && !memcmp(begin, CAPTURE_HEAD_BEGIN, sizeof(begin)))
		return 0;
	return EEXIST;
}

static struct stream_sink *open_capture(const char *path, enum output_file_mode mode, const char *tunables)
{
	struct capture *capture = calloc(1, sizeof(*capture));
	char *head = capture ? make_head(tunables) : NULL;
	struct stat status;
	int error;

	if (!head)
		goto failed;
	capture->sink.put = capture__put;
	capture->sink.close = capture__close;
	capture->fd = output_file__open(path, mode, 0600, &status); /* has call-sites and paths of users */
	if (capture->fd < 0)
		goto failed;
	error = mode == OUTPUT_FILE_APPEND ? check_file(capture->fd, &status) : 0;
	if (error) {
		close(capture->fd);
		errno = error;
		goto failed;
	}
	capture_buffer__add(&capture->buffer, head, strlen(head));
	capture_buffer__add(&capture->buffer, "\n", 1);
	free(head);
	error = flush(capture);
	if (!error)
		return &capture->sink;
	capture__close(&capture->sink);
	errno = -error;
	return NULL;
failed:
	error = errno;
	free(head);
	free(capture);
	errno = error;
	return NULL;
}

struct stream_sink *capture__create(const char *path, const char *tunables)
{
	return open_capture(path, OUTPUT_FILE_REPLACE, tunables);
}

struct stream_sink *capture__append(const char *path, const char *tunables)
{
	return open_capture(path, OUTPUT_FILE_APPEND, tunables);
}
