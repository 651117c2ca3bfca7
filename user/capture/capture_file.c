// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/capture_file.h"

#include <cjson/cJSON.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/grow.h"
#include "capture/capture_check.h"
#include "capture/capture_format.h"
#include "capture/capture_head.h"
#include "capture/crc.h"

struct capture_run {
	uint64_t begin, end; /* bytes of the file */
};

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
static const uint8_t *part_at(struct part *part, uint64_t offset, size_t need, size_t *got, int *error)
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

	while ((bytes = part_at(part, offset, length, &got, error))) {
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

	record = part_at(part, offset, RECORD_HEAD, &got, error);
	if (!record)
		return offset;
	memcpy(&length, record + 4, sizeof(length));
	length = le32toh(length);
	if (length > CAPTURE_RECORD_MAX)
		return offset;
	record = part_at(part, offset, RECORD_HEAD + (size_t)length + sizeof(crc), &got, error);
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

	while ((bytes = part_at(part, offset, 1, &got, error))) {
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

/*
 * Finds the runs of an open file, which is read from its start; a file that is not regular is one run
 * without an end. Returns 0 with an array to free, of at least one run, or a negative errno.
 */
static int list_runs(int fd, struct capture_run **runs, size_t *count)
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

#define READ_BYTES (256U << 10)
#define HEAD_BYTES 8 /* type and length of a record */
#define CRC_BYTES 4

struct capture_file {
	char *path;
	int fd;
	uint64_t offset; /* the current record's */
	uint64_t record; /* its bytes */
	uint64_t left;	 /* bytes of the run that were not read yet */
	size_t run, runs;
	uint8_t *buffer; /* bytes read ahead; records are decoded in place */
	size_t at, length, capacity;
	size_t row, rows_end;	   /* rows of the current record that were not read yet, in the buffer */
	struct stream_event event; /* the row before these */
	char *tunables;
	struct capture_layout layouts[CAPTURE_TYPES];
	uint32_t type_of[CAPTURE_TYPES]; /* file's type to ours */
	uint32_t threads, states;
	bool ended;
};

static const char *read_head(struct capture_file *file, const cJSON *head)
{
	const char *magic = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(head, "magic"));
	const char *order = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(head, "byte_order"));
	const cJSON *records = cJSON_GetObjectItemCaseSensitive(head, "records");
	const cJSON *tunables = cJSON_GetObjectItemCaseSensitive(head, "tunables");
	const char *wrong;

	if (!magic)
		return "it is no capture";
	if (strcmp(magic, CAPTURE_MAGIC) && strcmp(magic, CAPTURE_MAGIC_1))
		return "it is a capture of another version (this program reads " CAPTURE_MAGIC_1 " and " CAPTURE_MAGIC
		       ")";
	if (!order || strcmp(order, "little"))
		return "its byte order is not little";
	if (!cJSON_IsObject(records))
		return "its head names no records";
	wrong = capture_head__read_tables(records, file->layouts, file->type_of);
	if (wrong)
		return wrong;
	file->tunables = tunables ? cJSON_PrintUnformatted(tunables) : strdup("{}");
	return file->tunables ? NULL : "out of memory";
}

/* Reads on until `need` bytes, which are not there yet, lie at `at`. Returns as fill(). */
static int read_on(struct capture_file *file, size_t need)
{
	if (file->at) {
		memmove(file->buffer, file->buffer + file->at, file->length - file->at);
		file->length -= file->at;
		file->at = 0;
	}
	if (need > file->capacity) {
		size_t capacity = need > READ_BYTES ? need : READ_BYTES;
		uint8_t *grown = realloc(file->buffer, capacity + CAPTURE_SLACK);

		if (!grown)
			return -ENOMEM;
		memset(grown + capacity, 0, CAPTURE_SLACK);
		file->buffer = grown;
		file->capacity = capacity;
	}
	while (file->length < need) {
		size_t room = file->capacity - file->length;
		ssize_t got = read(file->fd, file->buffer + file->length, room < file->left ? room : file->left);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			return 0;
		file->length += (size_t)got;
		file->left -= (uint64_t)got;
	}
	return 1;
}

/* Has `need` bytes at `at`. Returns 1, 0 where the file ends before, or a negative errno. */
static inline int fill(struct capture_file *file, size_t need)
{
	return file->length - file->at >= need ? 1 : read_on(file, need);
}

/* Reads the first line, ended by a NUL in the buffer; NULL where too long, or with an errno in *error. */
static char *read_line(struct capture_file *file, int *error)
{
	size_t length = 0;

	/* A head that never ends is no head: no whole disk is read in search of its end. */
	for (*error = 0; length < CAPTURE_HEAD_MAX; length++) {
		int ret = length < file->length ? 1 : fill(file, length + 1);

		if (ret < 0) {
			*error = -ret;
			return NULL;
		}
		if (ret && file->buffer[length] != '\n')
			continue;
		file->at = ret ? length + 1 : length;
		file->buffer[length] = 0;
		return (char *)file->buffer;
	}
	return NULL;
}

/* Chooses the run and seeks its start. Returns a sentence about what is wrong, or NULL, or NULL with *error. */
static const char *go_to_run(struct capture_file *file, int run, int *error)
{
	struct capture_run *runs;
	const char *wrong = NULL;

	*error = -list_runs(file->fd, &runs, &file->runs);
	if (*error)
		return NULL;
	file->run = run < 0 ? file->runs + 1 - (size_t)-run : (size_t)run;
	if (!run || file->run > file->runs || (run < 0 && (size_t)-run > file->runs)) {
		wrong = "it has no such run";
	} else {
		file->offset = runs[file->run - 1].begin;
		file->left = runs[file->run - 1].end - file->offset;
		if (file->offset && lseek(file->fd, (off_t)file->offset, SEEK_SET) < 0)
			*error = errno;
	}
	free(runs);
	return wrong;
}

struct capture_file *capture_file__open(const char *path, int run, char *err, size_t err_size)
{
	struct capture_file *file = calloc(1, sizeof(*file));
	const char *wrong = NULL;
	cJSON *head = NULL;
	char *line = NULL;
	int error;

	if (file) {
		file->path = strdup(path);
		file->fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	if (!file || !file->path || file->fd < 0) {
		error = errno;
		snprintf(err, err_size, "%s: %s", path, strerror(error));
		goto failed;
	}
	wrong = go_to_run(file, run, &error);
	line = wrong || error ? NULL : read_line(file, &error);
	head = line ? cJSON_Parse(line) : NULL;
	if (!wrong)
		wrong = error ? strerror(error) : head ? read_head(file, head) : "it is no capture";
	file->offset += file->at;
	if (!error)
		error = EBADMSG;
	cJSON_Delete(head);
	if (!wrong)
		return file;
	snprintf(err, err_size, "%s: %s", path, wrong);
failed:
	capture_file__close(file);
	errno = error;
	return NULL;
}

void capture_file__close(struct capture_file *file)
{
	if (!file)
		return;
	if (file->fd >= 0)
		close(file->fd);
	free(file->path);
	free(file->buffer);
	free(file->tunables);
	free(file);
}

size_t capture_file__runs(const struct capture_file *file, size_t *run)
{
	*run = file->run;
	return file->runs;
}

const char *capture_file__tunables(const struct capture_file *file)
{
	return file->tunables;
}

static int refuse(struct capture_file *file, int ret, const char *what, char *err, size_t err_size)
{
	file->ended = true;
	snprintf(err, err_size, "%s: %s at offset %llu%s%s", file->path,
		 ret == -ENODATA   ? "cut short"
		 : ret == -EBADMSG ? "damaged"
				   : "cannot be read",
		 (unsigned long long)file->offset, what ? ": " : "", what ? what : "");
	return ret;
}

/* Checks what consumers rely on: here ids are dense, too. Returns the error, or NULL. */
static const char *check(struct capture_file *file, struct stream_event *event)
{
	const char *wrong = capture__check(event, file->threads, file->states);

	if (wrong)
		return wrong;
	if (event->type == STREAM_THREAD && event->thread.id != file->threads++)
		return "a thread is out of order";
	if (event->type == STREAM_STATE && event->state.id != file->states++)
		return "a state is out of order";
	return NULL;
}

static uint32_t word_at(const uint8_t *bytes)
{
	uint32_t word;

	memcpy(&word, bytes, sizeof(word));
	return le32toh(word);
}

/* Reads one record whole; *record is {type, length, payload, crc}. 1, 0 at the end, or a negative errno with err. */
static int read_record(struct capture_file *file, uint8_t **record, uint32_t *length, char *err, size_t err_size)
{
	int ret = fill(file, HEAD_BYTES);

	if (ret > 0) {
		*length = word_at(file->buffer + file->at + 4);
		if (*length > CAPTURE_RECORD_MAX)
			return refuse(file, -EBADMSG, "an impossible length", err, err_size);
		ret = fill(file, HEAD_BYTES + (size_t)*length + CRC_BYTES);
	} else if (!ret && file->length == file->at) {
		return 0;
	}
	if (ret < 0)
		return refuse(file, ret == -ENOMEM ? ret : -EIO, strerror(-ret), err, err_size);
	if (!ret)
		return refuse(file, -ENODATA, NULL, err, err_size);
	*record = file->buffer + file->at;
	if (word_at(*record + HEAD_BYTES + *length) != crc__of(*record, HEAD_BYTES + (size_t)*length))
		return refuse(file, -EBADMSG, "the checksum differs", err, err_size);
	file->at += HEAD_BYTES + (size_t)*length + CRC_BYTES;
	return 1;
}

/* Reads a record of a known type, with all of its rows. Returns 1, 0 at the end, or a negative errno with err. */
static int next_record(struct capture_file *file, char *err, size_t err_size)
{
	uint32_t type, length;
	uint8_t *record;
	int ret;

	do {
		file->offset += file->record;
		file->record = 0;
		ret = read_record(file, &record, &length, err, err_size);
		if (ret < 0)
			return ret;
		if (!ret)
			return refuse(file, -ENODATA, "the end record is missing", err, err_size);
		file->record = HEAD_BYTES + (uint64_t)length + CRC_BYTES;
		type = word_at(record);
	} while (type >= CAPTURE_TYPES || !file->type_of[type]);
	file->event.type = file->type_of[type];
	file->row = (size_t)(record - file->buffer) + HEAD_BYTES;
	file->rows_end = file->row + length;
	return 1;
}

int capture_file__next(struct capture_file *file, struct stream_event *event, char *err, size_t err_size)
{
	bool first = file->row == file->rows_end;
	const char *wrong;
	uint8_t *at;
	int ret;

	if (file->ended)
		return 0;
	if (first) {
		ret = next_record(file, err, err_size);
		if (ret <= 0)
			return ret;
		event->type = file->event.type;
		memset((char *)event + offsetof(struct stream_event, line), 0, capture_tables[event->type].bytes);
	} else {
		*event = file->event;
	}
	at = file->buffer + file->row;
	wrong = capture__decode_next(&file->layouts[event->type], &at, file->buffer + file->rows_end, event);
	if (!wrong && at < file->buffer + file->rows_end && !capture__packs(event->type))
		wrong = "there is more in it than its columns";
	file->row = (size_t)(at - file->buffer);
	if (file->row < file->rows_end)
		file->event = *event;
	if (!wrong)
		wrong = check(file, event);
	if (wrong)
		return refuse(file, -EBADMSG, wrong, err, err_size);
	file->ended = event->type == STREAM_END;
	return 1;
}
