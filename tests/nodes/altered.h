/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Blocks as nodes of other versions, and hostile ones, would send them. The checksums are right in all of them. */
#ifndef VAPRO_TESTS_ALTERED_H
#define VAPRO_TESTS_ALTERED_H

#include <cjson/cJSON.h>
#include <endian.h>
#include <zstd.h>

#include "capture/crc.h"
#include "base/text.h"
#include "wire/block_private.h"

#define ALTERED_MAGIC 16 /* bytes, before the length of the head */

/* Of another version of the wire format, which none but its own programs can read. */
static inline void altered__version(uint8_t *bytes, char version)
{
	bytes[strlen(BLOCK_MAGIC) - 1] = (uint8_t)version;
}

/* Changes bytes of the head behind the host at random. */
static inline void altered__head(uint8_t *bytes, unsigned changes)
{
	uint32_t length = (uint32_t)block_head__bytes(bytes), crc;
	uint16_t host;
	size_t begin;

	memcpy(&host, bytes + ALTERED_MAGIC + 4, sizeof(host));
	begin = ALTERED_MAGIC + 6 + (size_t)le16toh(host);
	for (unsigned i = 0; i < changes; i++)
		bytes[begin + (size_t)random() % (length - 4 - begin)] ^= (uint8_t)(1 + random() % 255);
	crc = htole32(crc__of(bytes, length - 4));
	memcpy(bytes + length - 4, &crc, sizeof(crc));
}

/* The tables of a version without the last column of facts (added: with one more); the caller frees the text. */
static inline char *altered__tables(bool added)
{
	cJSON *tables = cJSON_Parse(block__tables_text()), *column = cJSON_CreateObject();
	cJSON *columns = cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(tables, "facts"), "columns");
	char *text;

	if (added) {
		cJSON_AddStringToObject(column, "name", "not known yet");
		cJSON_AddStringToObject(column, "type", "uint");
		cJSON_AddStringToObject(column, "unit", "1");
		cJSON_AddItemToArray(columns, column);
	} else {
		cJSON_Delete(column);
		cJSON_DeleteItemFromArray(columns, cJSON_GetArraySize(columns) - 1);
	}
	text = cJSON_PrintUnformatted(tables);
	cJSON_Delete(tables);
	return text;
}

/*
 * A block of the same events as a version with other columns writes it; the column that differs is zero in captures of
 * make_capture, and zeros are not written, so the records are the same bytes. Returns 0 or -1.
 */
static inline int altered__columns(struct block *block, bool added)
{
	struct capture_buffer raw = {0}, whole = {0};
	struct block_head head;
	char err[256], *tables = altered__tables(added);
	uint8_t *old, *packed;
	uint32_t length = 0;
	size_t room;
	int ret = -1;

	if (!tables || block__head(&head, block->bytes, block->size, err, sizeof(err)))
		return -1;
	old = malloc(head.raw_bytes);
	ZSTD_decompress(old, head.raw_bytes, (uint8_t *)block->bytes + block_head__bytes(block->bytes),
			head.packed_bytes);
	if (head.flags & BLOCK_INTRODUCES) {
		memcpy(&length, old, sizeof(length));
		length = le32toh(length) + 4;
		capture_buffer__add_u32(&raw, (uint32_t)strlen(tables));
		capture_buffer__add(&raw, tables, strlen(tables));
	}
	capture_buffer__add(&raw, old + length, head.raw_bytes - length);
	room = ZSTD_compressBound(raw.length);
	packed = malloc(room);
	head.tables = text__hash(tables, strlen(tables));
	head.raw_bytes = (uint32_t)raw.length;
	head.packed_bytes = (uint32_t)ZSTD_compress(packed, room, raw.data, raw.length, 1);
	head.frame_crc = crc__of(packed, head.packed_bytes);
	block_head__write(&whole, &head);
	capture_buffer__add(&whole, packed, head.packed_bytes);
	if (!whole.failed) {
		free(block->bytes);
		block->bytes = whole.data;
		block->size = whole.length;
		ret = 0;
	}
	free(old);
	free(packed);
	free(raw.data);
	free(tables);
	return ret;
}

#endif
