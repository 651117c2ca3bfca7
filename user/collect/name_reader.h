/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads functions and lines of call-sites in the background: places are noted when they are first seen, and confined
 * readers look them up, one at a time, with the least priority and with rests between them. What is found goes to the
 * stream. Places are remembered by build-id, for all processes of the run.
 */
#ifndef VAPRO_NAME_READER_H
#define VAPRO_NAME_READER_H

#include <stddef.h>
#include <sys/types.h>

#include "capture/stream.h"

struct name_reader;

/* Found names go to sink, which outlives the reader. NULL when out of memory. */
struct name_reader *name_reader__new(struct stream_sink *sink);
void name_reader__free(struct name_reader *reader);

/* A file whose places are to be named. */
struct name_image {
	int file;	      /* descriptor; held by a copy of its own */
	uid_t owner;	      /* of a process that maps it */
	const char *path;     /* as the process sees it */
	const char *build_id; /* "" none */
	bool interpreter;     /* of a script, whose lines are nowhere in the file */
	bool runtime;	      /* the C library or a language's: it is named by functions, without lines */
};

/*
 * Notes a place `module@build-id+0xOFFSET`; reads nothing. urgent: a call of the program, whose names come first and
 * whose lack is reported. Beyond a limit places stay without names.
 */
void name_reader__want(struct name_reader *reader, const char *site, uint64_t offset, const struct name_image *image,
		       bool urgent);

/* Carries on: takes a response, or starts the next reader where one is due. */
void name_reader__step(struct name_reader *reader, uint64_t now_ns);

/* Reads all that is left without rests, within limit_ns: when no process is probed any more. */
void name_reader__finish(struct name_reader *reader, uint64_t limit_ns);

/*
 * Reports a file without lines and what would help, each once. false: none. The sentence's subject is the file.
 */
bool name_reader__trouble(struct name_reader *reader, char *text, size_t size);

/* Bytes held. */
size_t name_reader__bytes(const struct name_reader *reader);

#endif
