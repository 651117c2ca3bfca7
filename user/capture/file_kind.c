/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "capture/file_kind.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "capture/capture_format.h"

#define LOOK_BYTES 4096
#define PACKED_BYTES (192 << 10) /* more than a block of zstd, which is unpacked as a whole */

static bool begins(const char *bytes, size_t size, const char *with, size_t length)
{
	return size >= length && !memcmp(bytes, with, length);
}

static enum file_kind kind_of_text(const char *text)
{
	if (strstr(text, CAPTURE_HEAD_BEGIN))
		return FILE_KIND_CAPTURE;
	if (text[strspn(text, " \t\r\n")] != '{')
		return FILE_KIND_UNKNOWN;
	if (strstr(text, "\"schema\":\"vapro/"))
		return FILE_KIND_RECORDS;
	return strstr(text, "\"duration_ns\"") || strstr(text, "\"start_ns\"") ? FILE_KIND_FRAGMENTS
									       : FILE_KIND_UNKNOWN;
}

static enum file_kind kind_of(const char *bytes, size_t size)
{
	static const struct {
		const char *begin;
		size_t length;
		enum file_kind kind;
	} magic[] = {{"\x1f\x8b", 2, FILE_KIND_GZIP},
		     {"\x28\xb5\x2f\xfd", 4, FILE_KIND_ZSTD},
		     {"\xfd"
		      "7zXZ",
		      5, FILE_KIND_XZ},
		     {"BZh", 3, FILE_KIND_BZIP2}};

	if (!size)
		return FILE_KIND_EMPTY;
	for (size_t i = 0; i < sizeof(magic) / sizeof(*magic); i++)
		if (begins(bytes, size, magic[i].begin, magic[i].length))
			return magic[i].kind;
	return kind_of_text(bytes);
}

/* Returns what the begin of a packed file is when unpacked: records, which are read as they are, or packed. */
static enum file_kind kind_of_packed(int fd)
{
	ZSTD_DStream *stream = ZSTD_createDStream();
	char text[LOOK_BYTES + 1], *bytes = malloc(PACKED_BYTES);
	ssize_t size = bytes ? pread(fd, bytes, PACKED_BYTES, 0) : 0;
	ZSTD_inBuffer in = {bytes, size > 0 ? (size_t)size : 0, 0};
	ZSTD_outBuffer out = {text, LOOK_BYTES, 0};

	/* an error leaves what was unpacked before it */
	while (stream && in.pos < in.size && out.pos < out.size &&
	       !ZSTD_isError(ZSTD_decompressStream(stream, &out, &in)))
		;
	ZSTD_freeDStream(stream);
	free(bytes);
	text[out.pos] = '\0';
	return kind_of_text(text) == FILE_KIND_RECORDS ? FILE_KIND_RECORDS : FILE_KIND_ZSTD;
}

enum file_kind file_kind__of(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	enum file_kind kind = FILE_KIND_UNKNOWN;
	char bytes[LOOK_BYTES + 1];
	struct stat status;
	ssize_t size;

	if (fd < 0)
		return FILE_KIND_UNKNOWN;
	if (!fstat(fd, &status) && S_ISDIR(status.st_mode)) {
		kind = FILE_KIND_DIRECTORY;
	} else if (S_ISREG(status.st_mode)) { /* what was read of a pipe would be lost */
		size = read(fd, bytes, LOOK_BYTES);
		if (size >= 0) {
			bytes[size] = '\0';
			kind = kind_of(bytes, (size_t)size);
			if (kind == FILE_KIND_ZSTD)
				kind = kind_of_packed(fd);
		}
	}
	close(fd);
	return kind;
}

/* Writes how a file that was compressed by a program is read. */
static void name_cure(const char *path, const char *program, enum file_kind expected, char *err, size_t err_size)
{
	if (expected == FILE_KIND_RECORDS)
		snprintf(err, err_size, "%s is compressed: `%s -dc %s | vapro view -` reads it", path, program, path);
	else if (expected == FILE_KIND_FRAGMENTS)
		snprintf(err, err_size, "%s is compressed: `%s -dc %s | vapro analyze --format ndjson -` reads it",
			 path, program, path);
	else
		snprintf(err, err_size, "%s is compressed: `%s -d %s` restores the capture", path, program, path);
}

int file_kind__expect(const char *path, enum file_kind expected, char *err, size_t err_size)
{
	enum file_kind kind = strcmp(path, "-") ? file_kind__of(path) : FILE_KIND_UNKNOWN;

	if (kind == expected)
		return 0;
	switch (kind) {
	case FILE_KIND_UNKNOWN:
		return 0;
	case FILE_KIND_CAPTURE:
		if (expected == FILE_KIND_FRAGMENTS)
			snprintf(err, err_size,
				 "%s is a capture: `vapro analyze %s`, without --format ndjson, reads it", path, path);
		else
			snprintf(
			    err, err_size,
			    "%s is a capture, not NDJSON: `vapro analyze --summary -o run.ndjson %s` reads it, and "
			    "`vapro view run.ndjson` draws the result",
			    path, path);
		break;
	case FILE_KIND_RECORDS:
		snprintf(err, err_size, "%s holds the records of a run, not %s: `vapro view %s` shows them", path,
			 expected == FILE_KIND_CAPTURE ? "a capture (vaprod --capture FILE)" : "fragments", path);
		break;
	case FILE_KIND_FRAGMENTS:
		snprintf(err, err_size,
			 "%s holds fragments: `vapro analyze --format ndjson --summary -o run.ndjson %s` reads them",
			 path, path);
		break;
	case FILE_KIND_GZIP:
		name_cure(path, "gzip", expected, err, err_size);
		break;
	case FILE_KIND_ZSTD:
		name_cure(path, "zstd", expected, err, err_size);
		break;
	case FILE_KIND_XZ:
		name_cure(path, "xz", expected, err, err_size);
		break;
	case FILE_KIND_BZIP2:
		name_cure(path, "bzip2", expected, err, err_size);
		break;
	case FILE_KIND_EMPTY:
		snprintf(err, err_size,
			 "%s is empty: the vaprod that writes it has seen nothing yet, or it could not start", path);
		break;
	case FILE_KIND_DIRECTORY:
		snprintf(err, err_size, "%s is a directory: name a file in it", path);
		break;
	}
	return -EINVAL;
}
