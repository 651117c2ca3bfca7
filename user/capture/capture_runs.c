/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/capture_format.h"
#include "capture/capture_runs.h"
#include "capture/crc.h"
#include "base/grow.h"

#define CHUNK_BYTES (1U << 20)
#define RECORD_HEAD 8 /* bytes: type and length */

/* A part of the file in memory. */
struct part {
	int fd;
	uint64_t begin, size; /* size is the file's */
	uint8_t *bytes;
	size_t length, capacity;
};

/* Returns the bytes at offset, *got in number and at least `need`; NULL where the file has fewer. */
static const uint8_t *part__at(struct part *part, uint64_t offset, size_t need, size_t *got, int *error)
{
	size_t wanted = need > CHUNK_BYTES ? need : CHUNK_BYTES;

	if (offset > part->size || need > part->size - offset)
		return NULL;
	if (wanted > part->size - offset)
		wanted = (size_t)(part->size - offset);
	if (offset < part->begin || offset - part->begin + need > part->length) {
		*error = grow_untouched(&part->bytes, &part->capacity, wanted, 1);
		part->begin = offset;
		part->length = 0;
		while (!*error && part->length < wanted) {
			ssize_t read = pread(part->fd, part->bytes + part->length, wanted - part->length,
					     (off_t)(offset + part->length));

			if (read < 0 && errno != EINTR)
				*error = -errno;
			if (!read)
				break;
			part->length += read > 0 ? (size_t)read : 0;
		}
		if (*error || part->length < need)
			return NULL;
	}
	*got = part->length - (size_t)(offset - part->begin);
	return part->bytes + (offset - part->begin);
}

/* As memmem: the first byte is rare in records, and memchr goes through many bytes at once. */
static const uint8_t *find_begin(const uint8_t *bytes, size_t size, size_t length)
{
	const uint8_t *end = bytes + size - length + 1;

	for (const uint8_t *at = bytes; at < end; at++) {
		at = memchr(at, *CAPTURE_HEAD_BEGIN, (size_t)(end - at));
		if (!at || !memcmp(at, CAPTURE_HEAD_BEGIN, length))
			return at;
	}
	return NULL;
}

/* Finds the first text from offset on that looks like a head's start; else returns the file's size. */
static uint64_t find_head(struct part *part, uint64_t offset, int *error)
{
	size_t length = strlen(CAPTURE_HEAD_BEGIN), got;
	const uint8_t *bytes, *found;

	while ((bytes = part__at(part, offset, length, &got, error))) {
		found = find_begin(bytes, got, length);
		if (found)
			return offset + (uint64_t)(found - bytes);
		offset += got - length + 1;
	}
	return part->size;
}

/* Returns the end of the record at offset; offset itself where no whole record is. */
static uint64_t end_of_record(struct part *part, uint64_t offset, int *error)
{
	const uint8_t *record;
	uint32_t length, crc;
	size_t got;

	record = part__at(part, offset, RECORD_HEAD, &got, error);
	if (!record)
		return offset;
	memcpy(&length, record + 4, sizeof(length));
	length = le32toh(length);
	if (length > CAPTURE_RECORD_MAX)
		return offset;
	record = part__at(part, offset, RECORD_HEAD + (size_t)length + sizeof(crc), &got, error);
	if (!record)
		return offset;
	memcpy(&crc, record + RECORD_HEAD + length, sizeof(crc));
	if (le32toh(crc) != crc__of(record, RECORD_HEAD + (size_t)length))
		return offset;
	return offset + RECORD_HEAD + length + sizeof(crc);
}

static uint64_t end_of_line(struct part *part, uint64_t offset, int *error)
{
	const uint8_t *bytes, *found;
	size_t got;

	while ((bytes = part__at(part, offset, 1, &got, error))) {
		found = memchr(bytes, '\n', got);
		if (found)
			return offset + (uint64_t)(found - bytes) + 1;
		offset += got;
	}
	return part->size;
}

/*
 * Finds the end of the run at begin. head is a text that looks like the next head: inside a whole record
 * it is a user's text; after a record that is damaged or cut off it is the next run.
 */
static uint64_t end_of_run(struct part *part, uint64_t begin, uint64_t head, int *error)
{
	uint64_t at = end_of_line(part, begin, error), next;

	if (head < at)
		return head; /* no JSON line holds a head: this line was cut off */
	while (!*error && head < part->size && head != at) {
		if (head < at) {
			head = find_head(part, at, error);
			continue;
		}
		next = end_of_record(part, at, error);
		if (next == at)
			break;
		at = next;
	}
	return head;
}

static int find_runs(struct part *part, struct capture_run **runs, size_t *count)
{
	size_t capacity = 0;
	int error = 0;

	for (uint64_t begin = 0, head; !error && (begin < part->size || !*count); begin = (*runs)[*count - 1].end) {
		head = find_head(part, begin + 1, &error);
		if (!error && head < part->size)
			head = end_of_run(part, begin, head, &error);
		if (!error)
			error = grow(runs, &capacity, *count + 1, sizeof(**runs));
		if (error)
			break;
		(*runs)[(*count)++] = (struct capture_run){begin, head};
	}
	return error;
}

int capture_runs__find(int fd, struct capture_run **runs, size_t *count)
{
	struct part part = {.fd = fd};
	struct stat status;
	int error;

	*runs = NULL;
	*count = 0;
	if (fstat(fd, &status))
		return -errno;
	if (!S_ISREG(status.st_mode)) {
		*runs = calloc(1, sizeof(**runs));
		if (!*runs)
			return -ENOMEM;
		**runs = (struct capture_run){0, UINT64_MAX};
		*count = 1;
		return 0;
	}
	part.size = (uint64_t)status.st_size;
	error = find_runs(&part, runs, count);
	free(part.bytes);
	if (!error)
		return 0;
	free(*runs);
	*runs = NULL;
	return error;
}
