/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/line_target.h"
#include "pipeline/line_sink.h"
#include "records/record_table.h"

#define BYE_ROOM 4096 /* of the limit, for the last line: it states what was lost */

enum { FILE_TARGET, STDOUT_TARGET, TARGETS };

struct line_sink {
	struct line_target *targets[TARGETS]; /* NULL: none */
	char *line;			      /* line with its newline */
	size_t capacity;
	uint64_t lost;		      /* lines for which there was no memory */
	struct record_filter *filter; /* NULL: all lines pass */
	char sentence[512];
};

static struct line_sink *open_sink(const char *path, bool to_stdout, enum output_file_mode mode, size_t backlog)
{
	struct line_sink *sink = calloc(1, sizeof(*sink));
	int error;

	if (!sink)
		return NULL;
	if (path && (!strcmp(path, "-") || !strcmp(path, "/dev/stdout"))) {
		path = NULL;
		to_stdout = true;
	}
	if (path)
		sink->targets[FILE_TARGET] = line_target__open(path, mode, backlog);
	if (to_stdout && (!path || sink->targets[FILE_TARGET]))
		sink->targets[STDOUT_TARGET] = line_target__open(NULL, mode, backlog);
	if ((!path || sink->targets[FILE_TARGET]) && (!to_stdout || sink->targets[STDOUT_TARGET]))
		return sink;
	error = errno;
	line_sink__close(sink);
	errno = error;
	return NULL;
}

struct line_sink *line_sink__open(const char *path, bool to_stdout)
{
	return open_sink(path, to_stdout, OUTPUT_FILE_REPLACE, 0);
}

struct line_sink *line_sink__append(const char *path, bool to_stdout, size_t backlog)
{
	return open_sink(path, to_stdout, OUTPUT_FILE_APPEND, backlog);
}

int line_sink__bound(struct line_sink *sink, enum record_choice records, uint64_t most_bytes)
{
	record_filter__free(sink->filter);
	sink->filter = records == RECORDS_ALL ? NULL : record_filter__new(records);
	if (records != RECORDS_ALL && !sink->filter)
		return -ENOMEM;
	if (sink->targets[FILE_TARGET])
		line_target__limit(sink->targets[FILE_TARGET], most_bytes);
	return 0;
}

/* Notes the sentence of a failure. Returns the first of two errors. */
static int note(struct line_sink *sink, const struct line_target *target, int status, int before)
{
	if (status && status != -ENOMEM)
		snprintf(sink->sentence, sizeof(sink->sentence), "%s: %s; lines are being lost",
			 line_target__name(target), strerror(-status));
	return before ? before : status;
}

/* Puts a line into all targets. */
static int put(struct line_sink *sink, const char *line)
{
	size_t spare = record_table__type_of(line) == RECORD_OBJECT_bye ? 0 : BYE_ROOM;
	size_t length = strlen(line), targets = 0;
	int ret = 0;

	for (int i = 0; i < TARGETS; i++)
		targets += sink->targets[i] != NULL;
	if (length + 1 > sink->capacity && targets) {
		char *grown = realloc(sink->line, length + 1 + length / 2);

		if (!grown) {
			sink->lost += targets;
			return -ENOMEM;
		}
		sink->line = grown;
		sink->capacity = length + 1 + length / 2;
	}
	if (!targets)
		return 0;
	memcpy(sink->line, line, length);
	sink->line[length] = '\n';
	for (int i = 0; i < TARGETS; i++) {
		if (sink->targets[i])
			ret = note(sink, sink->targets[i],
				   line_target__put(sink->targets[i], sink->line, length + 1, spare), ret);
	}
	return ret;
}

int line_sink__put(struct line_sink *sink, const char *line)
{
	char *shortened;
	int ret;

	if (!sink->filter)
		return put(sink, line);
	if (!record_filter__passes(sink->filter, line))
		return 0;
	shortened = record_filter__shortened(sink->filter, line);
	ret = put(sink, shortened ? shortened : line);
	free(shortened);
	return ret;
}

int line_sink__flush(struct line_sink *sink)
{
	int ret = 0;

	for (int i = 0; i < TARGETS; i++) {
		if (sink->targets[i])
			ret = note(sink, sink->targets[i], line_target__flush(sink->targets[i]), ret);
	}
	return ret;
}

void line_sink__retry(struct line_sink *sink)
{
	for (int i = 0; i < TARGETS; i++) {
		if (sink->targets[i])
			note(sink, sink->targets[i], line_target__retry(sink->targets[i]), 0);
	}
}

int line_sink__reopen(struct line_sink *sink, char *err, size_t err_size)
{
	struct line_target *file = sink->targets[FILE_TARGET];
	int status = file ? line_target__reopen(file) : 0;

	if (status)
		snprintf(err, err_size, "%s: it cannot be opened again: %s; lines go on to the file that was open",
			 line_target__name(file), output_file__reason(-status));
	return status;
}

const char *line_sink__news(struct line_sink *sink, char *text, size_t size)
{
	for (int i = 0; i < TARGETS; i++) {
		enum line_target_news news = LINE_TARGET_NO_NEWS;
		const char *name = NULL;
		uint64_t lines;

		if (sink->targets[i]) {
			name = line_target__name(sink->targets[i]);
			news = line_target__news(sink->targets[i], &lines);
		}
		if (news == LINE_TARGET_FULL) {
			snprintf(text, size,
				 "%s: it has as many bytes as --output-max allows: lines are lost until it is rotated "
				 "(SIGHUP)",
				 name);
			return "output_full";
		}
		if (news == LINE_TARGET_STALLED) {
			snprintf(text, size, "%s: its reader has stopped: lines are dropped until it reads on", name);
			return "output_stalled";
		}
		if (news == LINE_TARGET_RESUMED) {
			snprintf(text, size, "%s: its reader reads on: %llu lines before this one were dropped", name,
				 (unsigned long long)lines);
			return "output_resumed";
		}
	}
	return NULL;
}

const char *line_sink__error(const struct line_sink *sink)
{
	return sink->sentence[0] ? sink->sentence : NULL;
}

uint64_t line_sink__lost(const struct line_sink *sink)
{
	uint64_t lost = sink->lost;

	for (int i = 0; i < TARGETS; i++)
		lost += sink->targets[i] ? line_target__lost(sink->targets[i]) : 0;
	return lost;
}

uint64_t line_sink__over(const struct line_sink *sink)
{
	return sink->targets[FILE_TARGET] ? line_target__over(sink->targets[FILE_TARGET]) : 0;
}

int line_sink__close(struct line_sink *sink)
{
	int error = 0;

	if (!sink)
		return 0;
	for (int i = 0; i < TARGETS; i++) {
		int status = line_target__close(sink->targets[i]);

		error = error ? error : status;
	}
	record_filter__free(sink->filter);
	free(sink->line);
	free(sink);
	return error;
}
