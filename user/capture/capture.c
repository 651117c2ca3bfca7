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
#define PACKED_BYTES (16U << 10) /* a record of several rows ends there: damage to one loses no more */

#define RECORD_HEAD 8 /* bytes: type and length */

static const char encoding[] =
    "after this line: records {u32 type, u32 length, payload, u32 crc}, little endian, crc = CRC-32 of type, length "
    "and payload; a payload is one row or several; a row is a varint bitmap of the columns that are not zero, in later "
    "rows of those that differ from the row before, then their values: uint = LEB128, int = zigzag LEB128, float = "
    "IEEE "
    "754 double, text = LEB128 length, bytes, NUL";

struct capture {
	struct stream_sink sink; /* first */
	struct capture_buffer buffer;
	bool open;		  /* the last record in the buffer may get further rows */
	size_t start;		  /* where it begins */
	struct stream_event last; /* its last row */
	int fd;
	int error; /* once set, nothing more is written: the file stays readable up to here */
};

/* Ends the record at hand, whose length and checksum are known now. */
static void end_record(struct capture *capture)
{
	struct capture_buffer *buffer = &capture->buffer;
	uint32_t length;

	if (!capture->open || buffer->failed)
		return;
	capture->open = false;
	length = htole32((uint32_t)(buffer->length - capture->start - RECORD_HEAD));
	memcpy(buffer->data + capture->start + 4, &length, sizeof(length));
	capture_buffer__add_u32(buffer, crc__of(buffer->data + capture->start, buffer->length - capture->start));
}

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

static bool continues(const struct capture *capture, const struct stream_event *event)
{
	return capture->open && event->type == capture->last.type &&
	       capture->buffer.length - capture->start < PACKED_BYTES;
}

/* Begins a record with the event. Returns 0 or -E2BIG. */
static int begin_record(struct capture *capture, const struct stream_event *event)
{
	struct capture_buffer *buffer = &capture->buffer;

	end_record(capture);
	capture->start = buffer->length;
	capture_buffer__add_u32(buffer, event->type);
	capture_buffer__add_u32(buffer, 0);
	capture__encode(buffer, event);
	if (buffer->length - capture->start > RECORD_HEAD + CAPTURE_RECORD_MAX) {
		buffer->length = capture->start;
		return -E2BIG;
	}
	capture->open = true;
	if (!capture__packs(event->type))
		end_record(capture);
	return 0;
}

static int capture__put(struct stream_sink *sink, const struct stream_event *event)
{
	struct capture *capture = (struct capture *)sink;
	int ret = 0;

	if (capture->error)
		return capture->error;
	if (continues(capture, event))
		capture__encode_next(&capture->buffer, event, &capture->last);
	else
		ret = begin_record(capture, event);
	if (ret)
		return ret;
	if (capture->open)
		capture->last = *event;
	/* finished windows of a killed daemon are whole in the file */
	if (capture->buffer.length < FLUSH_BYTES && event->type != STREAM_WINDOW && event->type != STREAM_END &&
	    !capture->buffer.failed)
		return 0;
	end_record(capture);
	return flush(capture);
}

static int capture__close(struct stream_sink *sink)
{
	struct capture *capture = (struct capture *)sink;
	int ret;

	end_record(capture);
	ret = flush(capture);

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
