/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <cjson/cJSON.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/capture_check.h"
#include "capture/capture_file.h"
#include "capture/capture_head.h"
#include "capture/capture_runs.h"
#include "capture/crc.h"

#define READ_BYTES (256U << 10)
#define HEAD_BYTES 8 /* type and length of a record */
#define CRC_BYTES 4

struct capture_file {
	char *path;
	int fd;
	uint64_t offset; /* the current record's */
	uint64_t left;	 /* bytes of the run that were not read yet */
	size_t run, runs;
	uint8_t *buffer; /* bytes read ahead; records are decoded in place */
	size_t at, length, capacity;
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
	if (strcmp(magic, CAPTURE_MAGIC))
		return "it is a capture of another version (this program reads " CAPTURE_MAGIC ")";
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

/* Reads on until `need` bytes lie at `at`. Returns 1, 0 where the file ends before, or a negative errno. */
static int fill(struct capture_file *file, size_t need)
{
	if (file->length - file->at >= need)
		return 1;
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

	*error = -capture_runs__find(file->fd, &runs, &file->runs);
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

int capture_file__next(struct capture_file *file, struct stream_event *event, char *err, size_t err_size)
{
	uint32_t type, length;
	const char *wrong;
	uint8_t *record;
	int ret;

	while (!file->ended) {
		ret = read_record(file, &record, &length, err, err_size);
		if (ret < 0)
			return ret;
		if (!ret)
			return refuse(file, -ENODATA, "the end record is missing", err, err_size);
		type = word_at(record);
		if (type < CAPTURE_TYPES && file->type_of[type]) {
			event->type = file->type_of[type];
			memset((char *)event + offsetof(struct stream_event, line), 0,
			       capture_tables[event->type].bytes);
			wrong = capture__decode(&file->layouts[event->type], record + HEAD_BYTES, length, event);
			if (!wrong)
				wrong = check(file, event);
			if (wrong)
				return refuse(file, -EBADMSG, wrong, err, err_size);
			file->ended = event->type == STREAM_END;
			file->offset += HEAD_BYTES + (uint64_t)length + CRC_BYTES;
			return 1;
		}
		file->offset += HEAD_BYTES + (uint64_t)length + CRC_BYTES;
	}
	return 0;
}
