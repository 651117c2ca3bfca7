// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/packed_lines.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#define LEVEL 3
#define SUFFIX ".zst"
#define HEAD_MOST 18 /* bytes of a frame's head */
#define BLOCK_HEAD 3
#define CHECKSUM 4

static const unsigned char magic[] = {0x28, 0xb5, 0x2f, 0xfd};

bool packed_lines__is_named(const char *path)
{
	size_t length = strlen(path);

	return length >= strlen(SUFFIX) && !strcmp(path + length - strlen(SUFFIX), SUFFIX);
}

/* Returns the bytes of a frame's head (RFC 8878, section 3.1.1.1), 0 for what is none. */
static size_t head_bytes(const unsigned char *head, size_t size, bool *has_checksum)
{
	static const size_t dictionary[] = {0, 1, 2, 4}, content[] = {0, 2, 4, 8};
	unsigned char flags = size > sizeof(magic) ? head[sizeof(magic)] : 0;
	bool single = flags & 0x20;
	size_t of_content = content[flags >> 6];

	if (memcmp(head, magic, size < sizeof(magic) ? size : sizeof(magic)))
		return 0;
	if (single && !of_content)
		of_content = 1;
	*has_checksum = flags & 4;
	return sizeof(magic) + 1 + !single + dictionary[flags & 3] + of_content;
}

/* Finds the end of the frame at an offset: beyond the file's end for a torn one. Returns 0 or a negative errno. */
static int end_of_frame(int fd, off_t size, off_t *at)
{
	unsigned char bytes[HEAD_MOST];
	ssize_t got = pread(fd, bytes, sizeof(bytes), *at);
	bool checksum = false, last = false;
	size_t head = got > 0 ? head_bytes(bytes, (size_t)got, &checksum) : 0;
	off_t end = *at + (off_t)head;

	if (got < 0)
		return -errno;
	if (!head)
		return -EBADMSG;
	while (!last && end < size) {
		uint32_t block;

		got = pread(fd, bytes, BLOCK_HEAD, end);
		if (got < 0)
			return -errno;
		if (got < BLOCK_HEAD)
			break;
		block = bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16;
		last = block & 1;
		/* a block of one repeated byte has that byte only */
		end += BLOCK_HEAD + ((block >> 1 & 3) == 1 ? 1 : (off_t)(block >> 3));
	}
	*at = last ? end + (checksum ? CHECKSUM : 0) : size + 1;
	return 0;
}

int packed_lines__whole(int fd, off_t size, off_t *end)
{
	off_t at = 0;
	int ret = 0;

	for (*end = 0; !ret && at < size;) {
		ret = end_of_frame(fd, size, &at);
		if (!ret && at <= size)
			*end = at;
	}
	return ret;
}

int packed_lines__pack(const char *lines, size_t length, char **frame, size_t *size)
{
	size_t room = ZSTD_compressBound(length);

	*frame = malloc(room);
	if (!*frame)
		return -ENOMEM;
	*size = ZSTD_compress(*frame, room, lines, length, LEVEL);
	if (!ZSTD_isError(*size))
		return 0;
	free(*frame);
	*frame = NULL;
	return -ENOMEM;
}

/* Cuts off what follows the last whole line. Returns 0 or a negative errno. */
static int cut_torn_line(FILE *file)
{
	int fd = fileno(file);
	char last = 0;
	off_t end;

	if (fflush(file))
		return -errno;
	for (end = lseek(fd, 0, SEEK_END); end > 0; end--) {
		if (pread(fd, &last, 1, end - 1) != 1)
			return -EIO;
		if (last == '\n')
			break;
	}
	return ftruncate(fd, end) ? -errno : 0;
}

/* Unpacks all frames. Returns 0, or a negative errno. */
static int unpack(FILE *from, FILE *into, ZSTD_DStream *stream)
{
	size_t in_size = ZSTD_DStreamInSize(), out_size = ZSTD_DStreamOutSize(), missing = 0;
	char *in = malloc(in_size), *out = malloc(out_size);
	size_t got;
	int ret = in && out ? 0 : -ENOMEM;

	while (!ret && (got = fread(in, 1, in_size, from)) > 0) {
		ZSTD_inBuffer input = {in, got, 0};
		ZSTD_outBuffer output = {out, out_size, out_size};

		/* a full output means that more may come of the same input */
		while (!ret && (input.pos < input.size || output.pos == output.size)) {
			output.pos = 0;
			missing = ZSTD_decompressStream(stream, &output, &input);
			if (ZSTD_isError(missing))
				ret = -EBADMSG;
			else if (fwrite(out, 1, output.pos, into) != output.pos)
				ret = -errno;
		}
	}
	if (!ret && ferror(from))
		ret = -EIO;
	if (!ret && missing)
		ret = cut_torn_line(into);
	free(in);
	free(out);
	return ret;
}

FILE *packed_lines__unpacked(FILE *file)
{
	int first = getc(file), ret;
	ZSTD_DStream *stream;
	FILE *into;

	/* no text begins with this byte */
	if (first != EOF)
		ungetc(first, file);
	if (first != magic[0])
		return file;
	into = tmpfile();
	if (!into)
		return NULL;
	stream = ZSTD_createDStream();
	ret = stream ? unpack(file, into, stream) : -ENOMEM;
	ZSTD_freeDStream(stream);
	if (!ret && !fseeko(into, 0, SEEK_SET))
		return into;
	fclose(into);
	errno = ret ? -ret : EIO;
	return NULL;
}

FILE *packed_lines__open(const char *path)
{
	FILE *file = fopen(path, "re"), *lines = file ? packed_lines__unpacked(file) : NULL;
	int error = errno;

	if (file && lines != file)
		fclose(file);
	errno = error;
	return lines;
}
