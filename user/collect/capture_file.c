/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <cjson/cJSON.h>
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "collect/capture_file.h"

struct capture_file {
	char *path;
	FILE *file;
	uint64_t offset; /* of the record being read */
	uint8_t *record; /* type, length, payload, crc */
	size_t capacity;
	char *tunables;
	struct capture_layout layouts[CAPTURE_TYPES];
	uint32_t type_of[CAPTURE_TYPES]; /* our type of the file's */
	uint32_t threads, states;
	bool ended;
};

/* Returns a sentence about what is wrong, or NULL. */
static const char *read_columns(struct capture_layout *layout, const struct capture_table *table, const cJSON *columns)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, columns)
	{
		const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "name"));
		const char *type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "type"));
		uint32_t wire = 0;

		if (!name || !type || layout->count == CAPTURE_COLUMNS_MAX)
			return "its head names a column badly";
		while (wire < WIRES && strcmp(type, capture_wire_name[wire]))
			wire++;
		if (wire == WIRES)
			return "its head has a column of unknown type";
		layout->columns[layout->count].wire = wire;
		layout->columns[layout->count].own = NULL;
		for (uint32_t i = 0; table && i < table->count; i++) {
			if (strcmp(table->columns[i].name, name))
				continue;
			if (capture__wire(table->columns[i].kind) != wire)
				return "its head has a column of another type than ours";
			layout->columns[layout->count].own = &table->columns[i];
		}
		layout->count++;
	}
	return NULL;
}

static const char *read_head(struct capture_file *file, const cJSON *head)
{
	const char *magic = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(head, "magic"));
	const char *order = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(head, "byte_order"));
	const cJSON *records = cJSON_GetObjectItemCaseSensitive(head, "records"), *record;
	const cJSON *tunables = cJSON_GetObjectItemCaseSensitive(head, "tunables");
	const char *wrong = NULL;

	if (!magic)
		return "it is no capture";
	if (strcmp(magic, CAPTURE_MAGIC))
		return "it is a capture of another version (this program reads " CAPTURE_MAGIC ")";
	if (!order || strcmp(order, "little"))
		return "its byte order is not little";
	if (!cJSON_IsObject(records))
		return "its head names no records";
	cJSON_ArrayForEach(record, records)
	{
		const cJSON *number = cJSON_GetObjectItemCaseSensitive(record, "type");
		uint32_t type = 0;

		if (!cJSON_IsNumber(number) || number->valuedouble < 0 || number->valuedouble != number->valueint)
			return "its head has a record without a type";
		while (type < CAPTURE_TYPES &&
		       (!capture_tables[type].name || strcmp(capture_tables[type].name, record->string)))
			type++;
		/* a later version's: told apart by its number, and passed over */
		if (type == CAPTURE_TYPES || number->valueint >= CAPTURE_TYPES)
			continue;
		file->type_of[number->valueint] = type;
		file->layouts[type].count = 0;
		wrong = read_columns(&file->layouts[type], &capture_tables[type],
				     cJSON_GetObjectItemCaseSensitive(record, "columns"));
		if (wrong)
			return wrong;
	}
	file->tunables = tunables ? cJSON_PrintUnformatted(tunables) : strdup("{}");
	return file->tunables ? NULL : "out of memory";
}

/* A head that never ends is no head: do not read a whole disk in search of one. */
static char *read_line(FILE *file, size_t *length)
{
	size_t capacity = 4096;
	char *line = malloc(capacity);
	int c;

	*length = 0;
	while (line && (c = getc(file)) != EOF && c != '\n') {
		if (*length + 2 > capacity) {
			char *grown = capacity < CAPTURE_HEAD_MAX ? realloc(line, 2 * capacity) : NULL;

			if (!grown)
				break;
			line = grown;
			capacity *= 2;
		}
		line[(*length)++] = (char)c;
	}
	if (line)
		line[*length] = 0;
	return line;
}

struct capture_file *capture_file__open(const char *path, char *err, size_t err_size)
{
	struct capture_file *file = calloc(1, sizeof(*file));
	const char *wrong = NULL;
	cJSON *head = NULL;
	char *line = NULL;
	size_t length;
	int error;

	if (file) {
		file->path = strdup(path);
		file->file = fopen(path, "re");
	}
	if (!file || !file->path || !file->file) {
		error = errno;
		snprintf(err, err_size, "%s: %s", path, strerror(error));
		goto failed;
	}
	line = read_line(file->file, &length);
	head = line ? cJSON_Parse(line) : NULL;
	wrong = head ? read_head(file, head) : "it is no capture";
	file->offset = length + 1;
	error = EBADMSG;
	if (ferror(file->file)) {
		error = errno;
		wrong = strerror(error);
	}
	cJSON_Delete(head);
	free(line);
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
	if (file->file)
		fclose(file->file);
	free(file->path);
	free(file->record);
	free(file->tunables);
	free(file);
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

static int reserve(struct capture_file *file, size_t size)
{
	uint8_t *grown;

	if (size <= file->capacity)
		return 0;
	grown = realloc(file->record, size);
	if (!grown)
		return -ENOMEM;
	file->record = grown;
	file->capacity = size;
	return 0;
}

static const char *empty_for_null(const char *text)
{
	return text ? text : "";
}

/* What consumers take for granted. Returns what is wrong, or NULL. */
static const char *check(struct capture_file *file, struct stream_event *event)
{
	const struct vapro_bundle *bundle = &event->bundle;

	switch (event->type) {
	case STREAM_LINE:
		return event->line ? NULL : "an empty line";
	case STREAM_THREAD:
		event->thread.job = empty_for_null(event->thread.job);
		event->thread.host = empty_for_null(event->thread.host);
		return event->thread.id == file->threads++ ? NULL : "a thread is out of order";
	case STREAM_STATE:
		event->state.to = empty_for_null(event->state.to);
		event->state.labels = empty_for_null(event->state.labels);
		event->state.common = empty_for_null(event->state.common);
		if ((uint32_t)event->state.class >= VAPRO_CLASSES)
			return "a state is of no class";
		return event->state.id == file->states++ ? NULL : "a state is out of order";
	case STREAM_SEEN:
		return event->seen.thread < file->threads ? NULL : "an unknown thread";
	case STREAM_PLACE:
		return event->place.thread < file->threads ? NULL : "an unknown thread";
	case STREAM_INTERFERENCE:
		return event->interference.thread < file->threads ? NULL : "an unknown thread";
	case STREAM_FACTS:
		event->facts.job = empty_for_null(event->facts.job);
		return NULL;
	case STREAM_BUNDLE:
		if (bundle->thread >= file->threads || bundle->state >= file->states)
			return "a bundle of an unknown thread or state";
		return bundle->n && bundle->start_ns <= bundle->end_ns ? NULL : "an impossible bundle";
	case STREAM_WINDOW:
		return event->window.begin_ns <= event->window.end_ns ? NULL : "an impossible window";
	case STREAM_CLOCK:
	case STREAM_END:
		break;
	}
	return NULL;
}

/* Reads one record whole. Returns 1, 0 at the end of the file, or a negative errno with err filled. */
static int read_record(struct capture_file *file, uint32_t *type, uint32_t *length, char *err, size_t err_size)
{
	uint32_t words[2], crc;
	size_t got = fread(words, 1, sizeof(words), file->file);

	if (ferror(file->file))
		return refuse(file, -EIO, strerror(errno), err, err_size);
	if (!got)
		return 0;
	if (got < sizeof(words))
		return refuse(file, -ENODATA, NULL, err, err_size);
	*type = le32toh(words[0]);
	*length = le32toh(words[1]);
	if (*length > CAPTURE_RECORD_MAX)
		return refuse(file, -EBADMSG, "an impossible length", err, err_size);
	if (reserve(file, sizeof(words) + (size_t)*length + sizeof(crc)))
		return refuse(file, -ENOMEM, strerror(ENOMEM), err, err_size);
	memcpy(file->record, words, sizeof(words));
	got = fread(file->record + sizeof(words), 1, *length + sizeof(crc), file->file);
	if (ferror(file->file))
		return refuse(file, -EIO, strerror(errno), err, err_size);
	if (got < *length + sizeof(crc))
		return refuse(file, -ENODATA, NULL, err, err_size);
	memcpy(&crc, file->record + sizeof(words) + *length, sizeof(crc));
	if (le32toh(crc) != (uint32_t)crc32(0, file->record, (uInt)(sizeof(words) + *length)))
		return refuse(file, -EBADMSG, "the checksum differs", err, err_size);
	return 1;
}

int capture_file__next(struct capture_file *file, struct stream_event *event, char *err, size_t err_size)
{
	uint32_t type, length;
	const char *wrong;
	int ret;

	while (!file->ended) {
		ret = read_record(file, &type, &length, err, err_size);
		if (ret < 0)
			return ret;
		if (!ret)
			return refuse(file, -ENODATA, "the end record is missing", err, err_size);
		if (type < CAPTURE_TYPES && file->type_of[type]) {
			memset(event, 0, sizeof(*event));
			event->type = file->type_of[type];
			wrong = capture__decode(&file->layouts[event->type], file->record + 8, length, event);
			if (!wrong)
				wrong = check(file, event);
			if (wrong)
				return refuse(file, -EBADMSG, wrong, err, err_size);
			file->ended = event->type == STREAM_END;
			file->offset += 8 + (uint64_t)length + 4;
			return 1;
		}
		file->offset += 8 + (uint64_t)length + 4;
	}
	return 0;
}
