// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The requesting side: it sends the image to a reader, then again with each debug file that may be the image's, until
 * one has DWARF.
 */
#include "target/source.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "target/image.h"
#include "target/source_private.h"
#include "sandbox/user_file.h"

#define DEBUG_ROOT "/usr/lib/debug"
#define IDLE_MS 30000 /* nothing depends on names at once, and to inflate a debug file takes 0.2 s */

struct source {
	uint8_t *data; /* where the texts lie */
	const char *build_id, *link;
	bool has_dwarf, has_symbols;
	struct source_place *places;
	struct source_frame *frames; /* of all places */
	size_t count;
};

struct source_query {
	int image;
	uid_t owner;
	char *path, *debug;
	struct flat about;
	size_t count;
	bool background, image_only;
	struct confine_query sent;	 /* of the reader at work */
	struct confine_request *request; /* in the background; NULL: none */
	struct source *found;		 /* by the image alone, once that is known */
	int tried;			 /* debug files */
};

void source__free(struct source *source)
{
	if (!source)
		return;
	free(source->places);
	free(source->frames);
	free(source->data);
	free(source);
}

const struct source_place *source__places(const struct source *source, size_t *count)
{
	*count = source->count;
	return source->places;
}

const char *source__build_id(const struct source *source)
{
	return source->build_id;
}

bool source__has_dwarf(const struct source *source)
{
	return source->has_dwarf;
}

bool source__has_symbols(const struct source *source)
{
	return source->has_symbols;
}

static const char *text_or_null(const char *text)
{
	return *text ? text : NULL;
}

/* Reads the places, whose number was checked; frames have room for all that the response can hold. */
static void get_places(struct source *source, struct flat_reader *reader)
{
	size_t used = 0;

	for (size_t i = 0; i < source->count; i++) {
		struct source_place *place = &source->places[i];

		place->frames = source->frames + used;
		place->count = flat__get_count(reader, SOURCE_FRAME_BYTES);
		if (place->count > SOURCE_FRAMES_MAX)
			reader->bad = true;
		for (size_t k = 0; k < place->count && !reader->bad; k++, used++) {
			struct source_frame *frame = &source->frames[used];

			frame->function = text_or_null(flat__get_text(reader, SOURCE_FUNCTION_MAX));
			frame->offset = flat__get(reader);
			frame->file = text_or_null(flat__get_text(reader, SOURCE_FILE_MAX));
			frame->line = (uint32_t)flat__get_upto(reader, INT_MAX);
		}
		if (reader->bad)
			return;
	}
}

static int get(struct source *source, size_t size, size_t wanted)
{
	struct flat_reader reader = {.at = source->data, .end = source->data + size};

	source->build_id = flat__get_text(&reader, IMAGE_BUILD_ID_MAX - 1);
	source->link = flat__get_text(&reader, SOURCE_LINK_MAX);
	source->has_dwarf = flat__get_upto(&reader, 1);
	source->has_symbols = flat__get_upto(&reader, 1);
	source->count = flat__get_count(&reader, SOURCE_PLACE_BYTES);
	/* both become parts of a path */
	if (strspn(source->build_id, "0123456789abcdef") != strlen(source->build_id) || strchr(source->link, '/') ||
	    source->link[0] == '.' || source->count > wanted || (wanted && !source->count))
		reader.bad = true;
	if (reader.bad)
		return -EBADMSG;
	source->places = calloc(source->count + 1, sizeof(*source->places));
	source->frames = calloc((size_t)(reader.end - reader.at) / SOURCE_FRAME_BYTES + 1, sizeof(*source->frames));
	if (!source->places || !source->frames)
		return -ENOMEM;
	get_places(source, &reader);
	return flat__done(&reader) ? 0 : -EBADMSG;
}

/*
 * Gives the i-th place where the separate debug file may lie, or "". false after the last. In the background, that is
 * in the daemon, it is no directory of users: what they put there could make an open wait, or open a device.
 */
static bool debug_path(const struct source_query *query, int i, char *buf, size_t size)
{
	const struct source *source = query->found;
	const char *slash = strrchr(query->path, '/');
	int directory = slash ? (int)(slash - query->path) : 0;

	buf[0] = '\0';
	if (i == 0 && query->debug)
		snprintf(buf, size, "%s", query->debug);
	else if (i == 1 && strlen(source->build_id) > 2)
		snprintf(buf, size, DEBUG_ROOT "/.build-id/%.2s/%s.debug", source->build_id, source->build_id + 2);
	else if (i == 2 && *source->link && !query->background)
		snprintf(buf, size, "%.*s/%s", directory, query->path, source->link);
	else if (i == 3 && *source->link && !query->background)
		snprintf(buf, size, "%.*s/.debug/%s", directory, query->path, source->link);
	else if (i == 4 && *source->link)
		snprintf(buf, size, DEBUG_ROOT "%.*s/%s", directory, query->path, source->link);
	return i < 5;
}

/* Starts a reader in the background. */
static int send(struct source_query *query, int debug, char *err, size_t err_size)
{
	query->sent = (struct confine_query){.service = SOURCE_SERVICE,
					     .about = &query->about,
					     .files = {query->image, debug},
					     .file_count = debug >= 0 ? 2 : 1,
					     .owner = query->owner,
					     .idle_ms = IDLE_MS};
	return confine_request__begin(&query->sent, &query->request, err, err_size);
}

/* Opens the next debug file that is there, or returns -1. */
static int next_debug(struct source_query *query)
{
	char place[SOURCE_FILE_MAX + 512];
	int debug = -1;

	while (debug < 0 && debug_path(query, query->tried++, place, sizeof(place)))
		debug = *place ? user_file__refer(place) : -1;
	return debug;
}

/* Sends the next debug file that is there. Returns whether there is one. */
static bool try_debug(struct source_query *query)
{
	char ignored[256];
	int debug, status = -ENOENT;

	while (status && (debug = next_debug(query)) >= 0) {
		status = send(query, debug, ignored, sizeof(ignored));
		close(debug);
	}
	return !status;
}

void source_query__end_idle(struct source_query *query)
{
	if (query->request)
		confine_request__end_idle(query->request);
}

void source_query__abandon(struct source_query *query)
{
	if (!query)
		return;
	confine_request__free(query->request);
	source__free(query->found);
	if (query->image >= 0)
		close(query->image);
	free(query->about.data);
	free(query->path);
	free(query->debug);
	free(query);
}

/* Makes a query of a request, whose reader is not started. NULL when out of memory. */
static struct source_query *query_of(const struct source_request *request)
{
	struct source_query *query = calloc(1, sizeof(*query));

	if (!query)
		return NULL;
	query->background = request->background;
	query->image_only = request->image_only;
	query->count = request->count;
	query->owner = request->owner;
	query->path = strdup(request->path);
	query->debug = request->debug ? strdup(request->debug) : NULL;
	query->image = fcntl(request->file, F_DUPFD_CLOEXEC, 0);
	flat__put_text(&query->about, request->build_id);
	flat__put(&query->about, request->background ? SOURCE_ANSWER_BYTES : SIZE_MAX);
	flat__put(&query->about, request->count);
	for (size_t i = 0; i < request->count; i++)
		flat__put(&query->about, request->offsets[i]);
	if (query->path && (!request->debug || query->debug) && query->image >= 0 && !query->about.failed)
		return query;
	source_query__abandon(query);
	return NULL;
}

int source_query__begin(const struct source_request *request, struct source_query **begun, char *err, size_t err_size)
{
	int status;

	snprintf(err, err_size, "out of memory");
	*begun = query_of(request);
	if (!*begun)
		return -ENOMEM;
	status = send(*begun, -1, err, err_size);
	if (status) {
		source_query__abandon(*begun);
		*begun = NULL;
	}
	return status;
}

/* Makes a source of a response. NULL with a sentence in err. */
static struct source *understand(struct confine_response *response, size_t count, char *err, size_t err_size)
{
	struct source *source = calloc(1, sizeof(*source));
	int status;

	if (!source) {
		snprintf(err, err_size, "out of memory");
		free(response->data);
		return NULL;
	}
	source->data = response->data;
	status = get(source, response->size, count);
	if (!status)
		return source;
	snprintf(err, err_size, "its confined reader gave an answer that makes no sense");
	source__free(source);
	return NULL;
}

/*
 * Keeps a response where it is the first, or better. 0; or where nothing is known of the image, -errno with a sentence
 * in err. Takes the response's bytes.
 */
static int take(struct source_query *query, int status, struct confine_response *response, char *err, size_t err_size)
{
	struct source *better = status ? NULL : understand(response, query->count, err, err_size);

	if (!query->found && !better)
		return status ? status : -EBADMSG;
	/* a debug file that is of no use leaves what the image has */
	if (better && query->found && !better->has_dwarf) {
		source__free(better);
	} else if (better) {
		better->has_symbols |= query->found && query->found->has_symbols;
		source__free(query->found);
		query->found = better;
	}
	return 0;
}

int source_query__step(struct source_query *query, struct source **source, char *err, size_t err_size)
{
	struct confine_response response;
	int status = confine_request__poll(query->request, &response, err, err_size);

	*source = NULL;
	if (status == -EAGAIN)
		return status;
	confine_request__free(query->request);
	query->request = NULL;
	status = take(query, status, &response, err, err_size);
	if (!status && !query->found->has_dwarf && !query->image_only && try_debug(query))
		return -EAGAIN;
	*source = query->found;
	query->found = NULL;
	source_query__abandon(query);
	return status;
}

struct source *source__query(const char *path, const char *build_id, const char *debug, const uint64_t *offsets,
			     size_t count, char *err, size_t err_size)
{
	struct source_request request = {
	    .path = path, .build_id = build_id, .debug = debug, .offsets = offsets, .count = count};
	struct source *source = NULL;
	struct source_query *query;
	int status = 0, file = -1;

	request.file = user_file__refer(path);
	if (request.file < 0) {
		snprintf(err, err_size, "cannot open: %s", strerror(errno));
		return NULL;
	}
	query = query_of(&request);
	close(request.file);
	if (!query) {
		snprintf(err, err_size, "out of memory");
		return NULL;
	}
	do {
		const struct confine_query sent = {.service = SOURCE_SERVICE,
						   .about = &query->about,
						   .files = {query->image, file},
						   .file_count = file >= 0 ? 2 : 1};
		struct confine_response response;

		status = confine__query(&sent, &response, err, err_size);
		status = take(query, status, &response, err, err_size);
		if (file >= 0)
			close(file);
		file = -1;
	} while (!status && !query->found->has_dwarf && (file = next_debug(query)) >= 0);
	source = query->found;
	query->found = NULL;
	source_query__abandon(query);
	return source;
}
