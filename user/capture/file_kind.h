/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Recognises files by their first bytes, so that a command can name the one that reads them. */
#ifndef VAPRO_FILE_KIND_H
#define VAPRO_FILE_KIND_H

#include <stddef.h>

enum file_kind {
	FILE_KIND_UNKNOWN,   /* not to be opened, no regular file, or nothing that is known */
	FILE_KIND_CAPTURE,   /* of vaprod --capture */
	FILE_KIND_RECORDS,   /* NDJSON output, also in zstd frames (packed_lines.h) */
	FILE_KIND_FRAGMENTS, /* NDJSON input */
	FILE_KIND_GZIP,
	FILE_KIND_ZSTD,
	FILE_KIND_XZ,
	FILE_KIND_BZIP2,
	FILE_KIND_EMPTY,
	FILE_KIND_DIRECTORY,
};

enum file_kind file_kind__of(const char *path);

/*
 * Checks that a file is of the expected kind, which is one of captures, records or fragments; "-" and unknown ones
 * are. Returns 0, or -EINVAL with a sentence in err that names the right command.
 */
int file_kind__expect(const char *path, enum file_kind expected, char *err, size_t err_size);

#endif
