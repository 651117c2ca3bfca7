/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lines of source behind places of an image, by its DWARF or that of its separate debug file (by
 * build-id or .gnu_debuglink, below /usr/lib/debug or beside the image). DWARF is read confined.
 */
#ifndef VAPRO_SOURCE_H
#define VAPRO_SOURCE_H

#include "sandbox/confine.h"

#define SOURCE_SERVICE "source"
#define SOURCE_FILE_MAX 4096

struct source_line {
	const char *file; /* as the compiler had it; NULL: no line is known */
	unsigned int line;
};

struct source;

/*
 * Looks up lines of count offsets in the image at path, whose build-id must start with build_id.
 * Offsets are return addresses: the line is that of the call before. NULL with a sentence in err:
 * unreadable, another build-id, or a failure of the reader. An image without DWARF gives a response
 * without lines.
 */
struct source *source__query(const char *path, const char *build_id, const uint64_t *offsets, size_t count, char *err,
			     size_t err_size);
void source__free(struct source *source);

/* One line per offset. */
const struct source_line *source__lines(const struct source *source);

/* Whether there is DWARF with lines at all. */
bool source__has_dwarf(const struct source *source);

/* Runs confined, in the reader. */
int source__answer(struct flat_reader *about, struct confine_file *files, unsigned int file_count, struct flat *answer,
		   char *err, size_t err_size);

#endif
