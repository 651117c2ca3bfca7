/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Functions and lines of source behind places of an image, by its symbols and its DWARF or that of its separate debug
 * file: by build-id or .gnu_debuglink, below /usr/lib/debug or, but not in the background, beside the image. All of it
 * is read confined, and names are demangled there.
 */
#ifndef VAPRO_TARGET_SOURCE_H
#define VAPRO_TARGET_SOURCE_H

#include <sys/types.h>

#include "sandbox/confine.h"

#define SOURCE_SERVICE "source"
#define SOURCE_FILE_MAX 4096	 /* bytes of a file's path */
#define SOURCE_FRAMES_MAX 32	 /* of one place; outer ones are left out */
#define SOURCE_FUNCTION_MAX 1024 /* bytes of a function's name, which is cut there */
#define SOURCE_PLACES_MAX 256	 /* in one request: a reader has limited CPU time */

/* A function at a place. */
struct source_frame {
	const char *function; /* demangled; of Fortran as in the source; NULL unknown */
	uint64_t offset;      /* of the return address in the function; 0: the line is known, or the function is not */
	const char *file;     /* as the compiler had it; NULL unknown */
	uint32_t line;	      /* 0 unknown */
};

/* The function that holds the call at a place, then those it is inlined into. */
struct source_place {
	const struct source_frame *frames;
	size_t count; /* 0: nothing is known of the place */
};

struct source_request {
	int file;		 /* descriptor of the image */
	uid_t owner;		 /* of a process that maps it */
	const char *path;	 /* the image's, to find its debug file */
	const char *build_id;	 /* the image's must begin with it */
	const char *debug;	 /* path of a debug file, tried before the usual ones; NULL: none */
	const uint64_t *offsets; /* return addresses, as file offsets: what is looked up is the call before */
	size_t count;		 /* at most SOURCE_PLACES_MAX */
	bool image_only;	 /* no separate debug file is read */
	bool background;	 /* by a reader in the background (confine_request), whose response is bounded */
};

struct source;
struct source_query;

/*
 * Begins to look up places; arguments are copied or held. 0 with *query, for source_query__step() or
 * source_query__abandon(), or -errno with a sentence in err.
 */
int source_query__begin(const struct source_request *request, struct source_query **query, char *err, size_t err_size);

/*
 * Returns -EAGAIN while there is more to wait for; otherwise frees the query and returns 0 with *source, or -errno with
 * a sentence in err: unreadable, another build-id, or a failure of the reader.
 */
int source_query__step(struct source_query *query, struct source **source, char *err, size_t err_size);

/* The response is wanted soon: it does not wait for idle processors any more. */
void source_query__end_idle(struct source_query *query);

/* NULL is fine. */
void source_query__abandon(struct source_query *query);

/* Opens the image at path and waits for the response. NULL with a sentence in err. debug: as in a request. */
struct source *source__query(const char *path, const char *build_id, const char *debug, const uint64_t *offsets,
			     size_t count, char *err, size_t err_size);
void source__free(struct source *source);

/* One per offset; in the background perhaps the first ones only, at least one. */
const struct source_place *source__places(const struct source *source, size_t *count);

/* The image's whole build-id, or "". */
const char *source__build_id(const struct source *source);

/* Whether there is DWARF at all, and whether the image has a table of all its symbols: not a stripped one. */
bool source__has_dwarf(const struct source *source);
bool source__has_symbols(const struct source *source);

/* Runs confined, in the reader. */
int source__respond(struct flat_reader *about, struct confine_file *files, unsigned int file_count,
		    struct flat *response, char *err, size_t err_size);

#endif
