// SPDX-License-Identifier: GPL-2.0-or-later
/* The values of columns as bytes: see archive.h. */
#include "base/archive_private.h"

#include <endian.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define INTEGER_MOST 4503599627370496.0 /* 2^52: integers below have varints */

/* First bytes of a double. */
enum { SAME = 0, INTEGER = 1, FOUR_BYTES = 2, EIGHT_BYTES = 3 };

static const size_t sizes[] = {
    [ARCHIVE_BOOL] = sizeof(bool),
    [ARCHIVE_U8] = 1,
    [ARCHIVE_U16] = 2,
    [ARCHIVE_U32] = 4,
    [ARCHIVE_U64] = 8,
    [ARCHIVE_I32] = 4,
    [ARCHIVE_FLOAT] = sizeof(float),
    [ARCHIVE_DOUBLE] = sizeof(double),
    [ARCHIVE_TEXT] = sizeof(char *),
    [ARCHIVE_CHARS] = 1,
};

size_t archive__column_bytes(const struct archive_column *column)
{
	return column->count * sizes[column->kind];
}

void archive__put(struct archive *archive, struct archive_bytes *bytes, const void *data, size_t size)
{
	if (archive->error || !size)
		return;
	if (size > bytes->capacity - bytes->length) {
		size_t capacity = 2 * (bytes->length + size);
		uint8_t *more = realloc(bytes->data, capacity);

		if (!more) {
			archive__fail(archive, -ENOMEM, "out of memory");
			return;
		}
		bytes->data = more;
		bytes->capacity = capacity;
	}
	memcpy(bytes->data + bytes->length, data, size);
	bytes->length += size;
}

void archive__put_varint(struct archive *archive, struct archive_bytes *bytes, uint64_t value)
{
	uint8_t out[10];
	size_t used = 0;

	for (; value >= 0x80; value >>= 7)
		out[used++] = (uint8_t)value | 0x80;
	out[used++] = (uint8_t)value;
	archive__put(archive, bytes, out, used);
}

uint64_t archive__get_varint(struct archive *archive)
{
	uint64_t value = 0;

	for (int shift = 0; shift < 64 && archive->at < archive->end && !archive->error; shift += 7) {
		uint8_t byte = *archive->at++;

		if (shift == 63 && byte > 1)
			break;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	archive__refuse(archive, "a number is cut");
	return 0;
}

/* ---- values as bits */

static uint64_t load(struct archive *archive, enum archive_kind kind, const char *member)
{
	const char *text;
	uint64_t wide;
	uint32_t half;
	uint16_t two;

	switch (kind) {
	case ARCHIVE_BOOL:
		return *(const bool *)member;
	case ARCHIVE_U8:
		return *(const uint8_t *)member;
	case ARCHIVE_U16:
		memcpy(&two, member, sizeof(two));
		return two;
	case ARCHIVE_U32:
	case ARCHIVE_FLOAT:
		memcpy(&half, member, sizeof(half));
		return half;
	case ARCHIVE_I32:
		memcpy(&half, member, sizeof(half));
		return (uint64_t)(int64_t)(int32_t)half;
	case ARCHIVE_U64:
	case ARCHIVE_DOUBLE:
		memcpy(&wide, member, sizeof(wide));
		return wide;
	case ARCHIVE_TEXT:
		memcpy(&text, member, sizeof(text));
		wide = intern__id(archive->texts, text);
		if (wide >= archive->text_count) /* there was no memory for it */
			archive__fail(archive, -ENOMEM, "out of memory");
		return wide;
	case ARCHIVE_CHARS:
		break;
	}
	return 0;
}

static void store(struct archive *archive, enum archive_kind kind, char *member, uint64_t value)
{
	static const uint64_t most[] = {[ARCHIVE_BOOL] = 1,
					[ARCHIVE_U8] = UINT8_MAX,
					[ARCHIVE_U16] = UINT16_MAX,
					[ARCHIVE_U32] = UINT32_MAX,
					[ARCHIVE_FLOAT] = UINT32_MAX,
					[ARCHIVE_U64] = UINT64_MAX,
					[ARCHIVE_DOUBLE] = UINT64_MAX,
					[ARCHIVE_TEXT] = UINT32_MAX,
					[ARCHIVE_I32] = UINT64_MAX};
	uint32_t half = (uint32_t)value;
	uint16_t two = (uint16_t)value;
	const char *text;

	if (!archive__check(archive, value <= most[kind], "a number is too large"))
		return;
	switch (kind) {
	case ARCHIVE_BOOL:
		*(bool *)member = value;
		break;
	case ARCHIVE_U8:
		*(uint8_t *)member = (uint8_t)value;
		break;
	case ARCHIVE_U16:
		memcpy(member, &two, sizeof(two));
		break;
	case ARCHIVE_I32:
		if (!archive__check(archive, (int64_t)value == (int32_t)half, "a number is too large"))
			break;
		/* fall through */
	case ARCHIVE_U32:
	case ARCHIVE_FLOAT:
		memcpy(member, &half, sizeof(half));
		break;
	case ARCHIVE_U64:
	case ARCHIVE_DOUBLE:
		memcpy(member, &value, sizeof(value));
		break;
	case ARCHIVE_TEXT:
		if (!archive__check(archive, value < archive->text_count, "a text is not among its texts"))
			break;
		text = intern__text(archive->texts, half);
		memcpy(member, &text, sizeof(text));
		break;
	case ARCHIVE_CHARS:
		break;
	}
}

static double value_of(uint64_t bits)
{
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static uint64_t bits_of(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static float narrow_of(uint32_t bits)
{
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static void write_double(struct archive *archive, uint64_t bits)
{
	double value = value_of(bits);
	float narrow = (float)value;
	uint8_t first = FOUR_BYTES;
	uint32_t half;

	if (value >= 0 && value < INTEGER_MOST && bits_of((double)(uint64_t)value) == bits) {
		archive__put_varint(archive, &archive->column, (uint64_t)value << 2 | INTEGER);
		return;
	}
	if (bits_of((double)narrow) == bits) {
		memcpy(&half, &narrow, sizeof(half));
		half = htole32(half);
		archive__put(archive, &archive->column, &first, 1);
		archive__put(archive, &archive->column, &half, sizeof(half));
		return;
	}
	first = EIGHT_BYTES;
	bits = htole64(bits);
	archive__put(archive, &archive->column, &first, 1);
	archive__put(archive, &archive->column, &bits, sizeof(bits));
}

/* Reads a double whose first number is known. */
static uint64_t read_double(struct archive *archive, uint64_t first)
{
	size_t size = first == FOUR_BYTES ? 4 : 8;
	uint64_t bits = 0;

	if ((first & 3) == INTEGER)
		return bits_of((double)(first >> 2));
	if (!archive__check(archive, first == FOUR_BYTES || first == EIGHT_BYTES, "a number has an unknown form") ||
	    !archive__check(archive, (size_t)(archive->end - archive->at) >= size, "a number is cut"))
		return 0;
	memcpy(&bits, archive->at, size);
	archive->at += size;
	bits = le64toh(bits);
	return size == 4 ? bits_of((double)narrow_of((uint32_t)bits)) : bits;
}

/* Whether a column may have the value. */
static bool allowed(const struct archive_column *column, uint64_t bits)
{
	if (column->any)
		return true;
	if (column->kind == ARCHIVE_FLOAT)
		return isfinite(narrow_of((uint32_t)bits));
	return column->kind != ARCHIVE_DOUBLE || isfinite(value_of(bits));
}

/* ---- columns */

static uint64_t zigzag(uint64_t difference)
{
	return difference << 1 ^ (0 - (difference >> 63));
}

static uint64_t unzigzag(uint64_t value)
{
	return value >> 1 ^ (0 - (value & 1));
}

static void write_chars(struct archive *archive, const struct archive_column *column, const char *rows, size_t stride,
			size_t count)
{
	bool any = false;

	for (size_t row = 0; row < count; row++)
		any |= *(rows + row * stride + column->offset);
	for (size_t row = 0; any && row < count; row++) {
		const char *text = rows + row * stride + column->offset;
		size_t length = strnlen(text, column->count);

		archive__put_varint(archive, &archive->column, length);
		archive__put(archive, &archive->column, text, length);
	}
}

static void read_chars(struct archive *archive, const struct archive_column *column, char *rows, size_t stride,
		       size_t count)
{
	for (size_t row = 0; row < count; row++) {
		char *text = rows + row * stride + column->offset;
		uint64_t length = archive__get_varint(archive);

		if (!archive__check(archive, length < column->count && length <= (size_t)(archive->end - archive->at),
				    "a text is too long"))
			return;
		memset(text, 0, column->count);
		memcpy(text, archive->at, length);
		archive->at += length;
	}
}

void archive__write_column(struct archive *archive, const struct archive_column *column, const char *rows,
			   size_t stride, size_t count)
{
	size_t size = sizes[column->kind];
	uint64_t before = 0, run = 0;
	bool any = false;

	if (column->kind == ARCHIVE_CHARS) {
		write_chars(archive, column, rows, stride, count);
		return;
	}
	for (uint32_t element = 0; element < column->count; element++) {
		const char *at = rows + column->offset + element * size;

		for (size_t row = 0; row < count; row++, at += stride) {
			uint64_t bits = load(archive, column->kind, at);

			if (bits == before) {
				run++;
				continue;
			}
			any = true;
			if (run) {
				archive__put_varint(archive, &archive->column, SAME);
				archive__put_varint(archive, &archive->column, run - 1);
				run = 0;
			}
			if (column->kind == ARCHIVE_DOUBLE)
				write_double(archive, bits);
			else
				archive__put_varint(archive, &archive->column, zigzag(bits - before));
			before = bits;
		}
	}
	if (any && run) {
		archive__put_varint(archive, &archive->column, SAME);
		archive__put_varint(archive, &archive->column, run - 1);
	}
}

void archive__read_column(struct archive *archive, const struct archive_column *column, char *rows, size_t stride,
			  size_t count)
{
	size_t size = sizes[column->kind];
	uint64_t bits = 0, run = 0;

	if (column->kind == ARCHIVE_CHARS) {
		read_chars(archive, column, rows, stride, count);
		return;
	}
	for (uint32_t element = 0; element < column->count; element++) {
		char *at = rows + column->offset + element * size;

		for (size_t row = 0; row < count && !archive->error; row++, at += stride) {
			if (run) {
				run--;
			} else {
				uint64_t first = archive__get_varint(archive);

				if (first == SAME)
					run = archive__get_varint(archive);
				else if (column->kind == ARCHIVE_DOUBLE)
					bits = read_double(archive, first);
				else
					bits += unzigzag(first);
				archive__check(archive, allowed(column, bits), "a number is not finite");
			}
			store(archive, column->kind, at, bits);
		}
	}
	archive__check(archive, !run, "a column is longer than its rows");
}
