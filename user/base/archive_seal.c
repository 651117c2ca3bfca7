// SPDX-License-Identifier: GPL-2.0-or-later
/* The head of a checkpoint: see archive.h. */
#include "base/archive_private.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define MAGIC "vapro-checkpoint/"
#define VERSION "4"
#define HEAD_MOST 64

static uint32_t crc_of(const uint8_t *data, size_t size)
{
	return (uint32_t)crc32_z(0, data, size);
}

uint8_t *archive__seal(struct archive *archive, const char *kind, size_t *size)
{
	uint64_t length = htole64(archive->out.length);
	uint32_t crc = htole32(crc_of(archive->out.data, archive->out.length));
	char head[HEAD_MOST];
	uint8_t *data, *at;
	int used = snprintf(head, sizeof(head), MAGIC VERSION " %s\n", kind);

	if (archive->error)
		return NULL;
	data = malloc((size_t)used + sizeof(length) + sizeof(crc) + archive->out.length);
	if (!data) {
		archive__fail(archive, -ENOMEM, "out of memory");
		return NULL;
	}
	at = mempcpy(data, head, (size_t)used);
	at = mempcpy(at, &length, sizeof(length));
	at = mempcpy(at, &crc, sizeof(crc));
	at = mempcpy(at, archive->out.data, archive->out.length);
	*size = (size_t)(at - data);
	return data;
}

/* Reads the head. Returns NULL, or the sentence why it is refused. */
static const char *read_head(struct archive *archive, const char *kind)
{
	size_t left = (size_t)(archive->end - archive->at), used;
	char head[HEAD_MOST];
	uint64_t length;
	uint32_t crc;

	used = (size_t)snprintf(head, sizeof(head), MAGIC VERSION " %s\n", kind);
	if (left < sizeof(MAGIC) - 1 || memcmp(archive->at, MAGIC, sizeof(MAGIC) - 1))
		return "it is no checkpoint";
	if (left < used || memcmp(archive->at, MAGIC VERSION " ", sizeof(MAGIC VERSION " ") - 1))
		return "it is a checkpoint of another version";
	if (memcmp(archive->at, head, used))
		return "it is a checkpoint of something else";
	archive->at += used;
	if (left - used < sizeof(length) + sizeof(crc))
		return "it is cut short";
	memcpy(&length, archive->at, sizeof(length));
	memcpy(&crc, archive->at + sizeof(length), sizeof(crc));
	archive->at += sizeof(length) + sizeof(crc);
	left = (size_t)(archive->end - archive->at);
	if (le64toh(length) != left)
		return le64toh(length) > left ? "it is cut short" : "more bytes follow than it has";
	return le32toh(crc) == crc_of(archive->at, left) ? NULL : "it is damaged: its checksum is wrong";
}

struct archive *archive__unseal(const uint8_t *data, size_t size, const char *kind, size_t most_bytes)
{
	struct archive *archive = archive__open(data, size, most_bytes);
	const char *why = archive ? read_head(archive, kind) : NULL;

	if (why)
		archive__refuse(archive, why);
	return archive;
}

void archive__end(struct archive *archive)
{
	archive__check(archive, archive->at == archive->end, "it goes on after its end");
}
