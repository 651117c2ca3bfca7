// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/valid_lines.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "report/record.h"

struct line {
	long offset; /* in the file of all lines */
	size_t size;
	uint64_t utc_ns; /* `time` of the record */
};

struct valid_lines {
	FILE *file;	    /* lines in the order in which they came */
	struct line *items; /* those that count so far */
	size_t count, capacity;
	uint64_t epoch, pass; /* the greatest so far */
	struct valid_counts counts;
};

struct valid_lines *valid_lines__new(void)
{
	struct valid_lines *lines = calloc(1, sizeof(*lines));

	if (!lines)
		return NULL;
	lines->file = tmpfile();
	if (lines->file)
		return lines;
	free(lines);
	return NULL;
}

void valid_lines__free(struct valid_lines *lines)
{
	if (!lines)
		return;
	fclose(lines->file);
	free(lines->items);
	free(lines);
}

/* Takes out what the pass that begins replaces: all lines after a time, or all where that is unknown. */
static void replace(struct valid_lines *lines, const cJSON *judging)
{
	uint64_t from_ns = 0;
	size_t left = 0;

	record__time(judging, KEY(judging, from), &from_ns);
	for (size_t i = 0; i < lines->count; i++) {
		if (lines->items[i].utc_ns <= from_ns)
			lines->items[left++] = lines->items[i];
	}
	lines->counts.replaced += lines->count - left;
	lines->count = left;
}

static int append(struct valid_lines *lines, const char *text, size_t size, uint64_t utc_ns)
{
	struct line line = {.offset = ftell(lines->file), .size = size, .utc_ns = utc_ns};

	if (grow(&lines->items, &lines->capacity, lines->count + 1, sizeof(line)))
		return -ENOMEM;
	if (line.offset < 0 || fwrite(text, 1, size, lines->file) != size)
		return errno ? -errno : -EIO;
	lines->items[lines->count++] = line;
	return 0;
}

static int add_line(struct valid_lines *lines, const char *text, size_t size)
{
	cJSON *record = cJSON_ParseWithLength(text, size);
	const char *type = record__text(record, KEY(head, type));
	uint64_t epoch = record__uint(record, KEY(head, epoch)), pass = record__uint(record, KEY(head, pass)), utc_ns;
	int ret = 0;

	if (!type || !epoch || !record__time(record, KEY(head, time), &utc_ns)) {
		lines->counts.bad++;
	} else if (epoch < lines->epoch || (epoch == lines->epoch && pass < lines->pass)) {
		lines->counts.replaced++;
	} else {
		lines->epoch = epoch;
		lines->pass = pass;
		if (!strcmp(type, "judging"))
			replace(lines, record);
		else
			ret = append(lines, text, size, utc_ns);
	}
	cJSON_Delete(record);
	return ret;
}

int valid_lines__add(struct valid_lines *lines, const char *text, size_t size)
{
	const char *end = text + size, *newline;
	int ret = 0;

	for (; !ret && text < end; text = newline + 1) {
		newline = memchr(text, '\n', (size_t)(end - text));
		if (!newline) {
			lines->counts.bad++;
			break;
		}
		ret = add_line(lines, text, (size_t)(newline - text) + 1);
	}
	return ret;
}

struct valid_counts valid_lines__counts(const struct valid_lines *lines)
{
	struct valid_counts counts = lines->counts;

	counts.valid = lines->count;
	return counts;
}

/* Copies the lines that count. Returns 0 or a negative errno. */
static int copy(const struct valid_lines *lines, FILE *to)
{
	size_t room = 0;
	char *text = NULL;
	int ret = 0;

	for (size_t i = 0; !ret && i < lines->count; i++) {
		const struct line *line = &lines->items[i];

		if (grow_untouched(&text, &room, line->size, 1)) {
			ret = -ENOMEM;
			break;
		}
		errno = EIO;
		if (fseek(lines->file, line->offset, SEEK_SET) ||
		    fread(text, 1, line->size, lines->file) != line->size ||
		    fwrite(text, 1, line->size, to) != line->size)
			ret = -errno;
	}
	free(text);
	return ret;
}

FILE *valid_lines__file(const struct valid_lines *lines)
{
	FILE *file = tmpfile();
	int ret = file ? copy(lines, file) : 0;

	if (!file)
		return NULL;
	fseek(lines->file, 0, SEEK_END);
	if (!ret && fflush(file))
		ret = -errno;
	if (!ret) {
		rewind(file);
		return file;
	}
	fclose(file);
	errno = -ret;
	return NULL;
}
