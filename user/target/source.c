// SPDX-License-Identifier: GPL-2.0-or-later
/* The requesting side opens the image, and its debug file where needed. */
#include "target/source.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "target/image.h"
#include "target/source_private.h"
#include "sandbox/user_file.h"

#define DEBUG_ROOT "/usr/lib/debug"

struct source {
	uint8_t *data; /* where the texts lie */
	const char *build_id, *link;
	bool has_dwarf;
	struct source_line *lines;
	size_t count;
};

void source__free(struct source *source)
{
	if (!source)
		return;
	free(source->lines);
	free(source->data);
	free(source);
}

const struct source_line *source__lines(const struct source *source)
{
	return source->lines;
}

bool source__has_dwarf(const struct source *source)
{
	return source->has_dwarf;
}

static int get(struct source *source, size_t size, size_t wanted)
{
	struct flat_reader reader = {.at = source->data, .end = source->data + size};

	source->build_id = flat__get_text(&reader, IMAGE_BUILD_ID_MAX - 1);
	source->link = flat__get_text(&reader, SOURCE_LINK_MAX);
	source->has_dwarf = flat__get_upto(&reader, 1);
	source->count = flat__get_count(&reader, SOURCE_LINE_BYTES);
	/* both become parts of a path */
	if (strspn(source->build_id, "0123456789abcdef") != strlen(source->build_id) || strchr(source->link, '/') ||
	    source->link[0] == '.' || source->count != wanted)
		reader.bad = true;
	if (reader.bad)
		return -EBADMSG;
	source->lines = calloc(source->count + 1, sizeof(*source->lines));
	if (!source->lines)
		return -ENOMEM;
	for (size_t i = 0; i < source->count; i++) {
		source->lines[i].line = (unsigned int)flat__get_upto(&reader, INT_MAX);
		source->lines[i].file = flat__get_text(&reader, SOURCE_FILE_MAX);
		if (!source->lines[i].line || !*source->lines[i].file)
			source->lines[i] = (struct source_line){0};
	}
	return flat__done(&reader) ? 0 : -EBADMSG;
}

static struct source *query(int image, int debug, const struct flat *about, size_t count, char *err, size_t err_size)
{
	struct confine_question question = {
	    .service = SOURCE_SERVICE, .about = about, .files = {image, debug}, .file_count = debug >= 0 ? 2 : 1};
	struct source *source = calloc(1, sizeof(*source));
	struct confine_answer answer;
	int status = -ENOMEM;

	snprintf(err, err_size, "out of memory");
	if (source && !about->failed)
		status = confine__query(&question, &answer, err, err_size);
	if (!status) {
		source->data = answer.data;
		status = get(source, answer.size, count);
		if (status)
			snprintf(err, err_size, "its confined reader gave an answer that makes no sense");
	}
	if (!status)
		return source;
	source__free(source);
	return NULL;
}

/* Gives the i-th place where the separate debug file may lie. false after the last. */
static bool debug_path(const struct source *source, const char *path, int i, char *buf, size_t size)
{
	const char *slash = strrchr(path, '/');
	int directory = slash ? (int)(slash - path) : 0;

	buf[0] = '\0';
	if (i == 0 && strlen(source->build_id) > 2)
		snprintf(buf, size, DEBUG_ROOT "/.build-id/%.2s/%s.debug", source->build_id, source->build_id + 2);
	else if (i == 1 && *source->link)
		snprintf(buf, size, "%.*s/%s", directory, path, source->link);
	else if (i == 2 && *source->link)
		snprintf(buf, size, "%.*s/.debug/%s", directory, path, source->link);
	else if (i == 3 && *source->link)
		snprintf(buf, size, DEBUG_ROOT "%.*s/%s", directory, path, source->link);
	return i < 4;
}

struct source *source__query(const char *path, const char *build_id, const uint64_t *offsets, size_t count, char *err,
			     size_t err_size)
{
	struct source *source = NULL, *better = NULL;
	char place[SOURCE_FILE_MAX + 512], ignored[256];
	struct flat about = {0};
	int image = user_file__open(path);

	if (image < 0) {
		snprintf(err, err_size, "cannot open: %s", strerror(errno));
		return NULL;
	}
	flat__put_text(&about, build_id);
	flat__put(&about, count);
	for (size_t i = 0; i < count; i++)
		flat__put(&about, offsets[i]);
	source = query(image, -1, &about, count, err, err_size);
	for (int i = 0; source && !source->has_dwarf && !better && debug_path(source, path, i, place, sizeof(place));
	     i++) {
		int debug = *place ? user_file__open(place) : -1;

		if (debug < 0)
			continue;
		better = query(image, debug, &about, count, ignored, sizeof(ignored));
		close(debug);
	}
	close(image);
	free(about.data);
	if (!better)
		return source;
	source__free(source);
	return better;
}
