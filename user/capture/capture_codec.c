/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rows are encoded by this version's columns and decoded by the file's. */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "capture/capture_format.h"

#define COMM_BYTES sizeof(((struct stream_event *)0)->interference.comm)

void capture_buffer__add(struct capture_buffer *buffer, const void *data, size_t size)
{
	if (buffer->failed || !size)
		return;
	if (buffer->length + size > buffer->capacity) {
		size_t capacity = 2 * (buffer->length + size);
		uint8_t *grown = realloc(buffer->data, capacity);

		if (!grown) {
			buffer->failed = true;
			return;
		}
		buffer->data = grown;
		buffer->capacity = capacity;
	}
	memcpy(buffer->data + buffer->length, data, size);
	buffer->length += size;
}

void capture_buffer__add_u32(struct capture_buffer *buffer, uint32_t value)
{
	value = htole32(value);
	capture_buffer__add(buffer, &value, sizeof(value));
}

static void add_varint(struct capture_buffer *buffer, uint64_t value)
{
	uint8_t bytes[10];
	size_t used = 0;

	for (; value >= 0x80; value >>= 7)
		bytes[used++] = (uint8_t)value | 0x80;
	bytes[used++] = (uint8_t)value;
	capture_buffer__add(buffer, bytes, used);
}

static void add_text(struct capture_buffer *buffer, const char *text, size_t length)
{
	add_varint(buffer, length);
	capture_buffer__add(buffer, text, length);
	capture_buffer__add(buffer, "", 1);
}

/* Gives a value as an integer's bits; 0 need not be written. */
static uint64_t bits_of(const struct capture_column *column, const void *member)
{
	const char *text;
	uint64_t bits;
	int32_t number;

	switch (column->kind) {
	case COLUMN_U32:
		return *(const uint32_t *)member;
	case COLUMN_U64:
		return *(const uint64_t *)member;
	case COLUMN_BOOL:
		return *(const bool *)member;
	case COLUMN_I32:
		number = *(const int32_t *)member;
		return (uint32_t)number << 1 ^ (uint32_t)(number >> 31);
	case COLUMN_DOUBLE:
		memcpy(&bits, member, sizeof(bits));
		return bits;
	case COLUMN_TEXT:
		memcpy(&text, member, sizeof(text));
		return text != NULL;
	case COLUMN_COMM:
		break;
	}
	return *(const char *)member != 0;
}

static void add_value(struct capture_buffer *buffer, const struct capture_column *column, const char *member,
		      uint64_t value)
{
	const char *text;

	switch (capture__wire(column->kind)) {
	case WIRE_UINT:
	case WIRE_INT:
		add_varint(buffer, value);
		break;
	case WIRE_FLOAT:
		value = htole64(value);
		capture_buffer__add(buffer, &value, sizeof(value));
		break;
	case WIRE_TEXT:
	case WIRES:
		if (column->kind == COLUMN_COMM) {
			add_text(buffer, member, strnlen(member, COMM_BYTES));
			break;
		}
		memcpy(&text, member, sizeof(text));
		add_text(buffer, text, strlen(text));
		break;
	}
}

void capture__encode(struct capture_buffer *buffer, const struct stream_event *event)
{
	const struct capture_table *table = &capture_tables[event->type];
	uint64_t bitmap = 0, all[CAPTURE_COLUMNS_MAX];

	for (uint32_t i = 0; i < table->count; i++) {
		all[i] = bits_of(&table->columns[i], (const char *)event + table->columns[i].offset);
		bitmap |= (uint64_t)(all[i] != 0) << i;
	}
	add_varint(buffer, bitmap);
	for (; bitmap; bitmap &= bitmap - 1) {
		int i = __builtin_ctzll(bitmap);

		add_value(buffer, &table->columns[i], (const char *)event + table->columns[i].offset, all[i]);
	}
}

static bool is_same(const struct capture_column *column, const void *one, const void *other)
{
	if (column->kind == COLUMN_COMM)
		return !strncmp(one, other, COMM_BYTES);
	return bits_of(column, one) == bits_of(column, other);
}

void capture__encode_next(struct capture_buffer *buffer, const struct stream_event *event,
			  const struct stream_event *before)
{
	const struct capture_table *table = &capture_tables[event->type];
	uint64_t bitmap = 0;

	for (uint32_t i = 0; i < table->count; i++) {
		size_t offset = table->columns[i].offset;

		if (!is_same(&table->columns[i], (const char *)event + offset, (const char *)before + offset))
			bitmap |= 1ULL << i;
	}
	add_varint(buffer, bitmap);
	for (; bitmap; bitmap &= bitmap - 1) {
		const struct capture_column *column = &table->columns[__builtin_ctzll(bitmap)];
		const char *member = (const char *)event + column->offset;

		add_value(buffer, column, member, bits_of(column, member));
	}
}

/*
 * Reads a number of more than 56 bits, byte by byte. Returns the byte after the number, or NULL where the number is cut
 * or has more than 64 bits.
 */
static uint8_t *take_long_varint(uint8_t *at, const uint8_t *end, uint64_t *value)
{
	*value = 0;
	for (int shift = 0; shift < 64 && at < end; shift += 7) {
		uint8_t byte = *at++;

		if (shift == 63 && byte > 1)
			return NULL;
		*value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return at;
	}
	return NULL;
}

/* Returns the byte after the number, or NULL where it is cut. Reads CAPTURE_SLACK bytes, also beyond the end. */
static inline uint8_t *take_varint(uint8_t *at, const uint8_t *end, uint64_t *value)
{
	uint64_t word, stop;

	if (*at < 0x80) {
		*value = *at;
		return at < end ? at + 1 : NULL;
	}
	memcpy(&word, at, sizeof(word));
	word = le64toh(word);
	stop = ~word & 0x8080808080808080ULL; /* bytes without a successor */
	if (!stop)
		return take_long_varint(at, end, value);
	at += __builtin_ctzll(stop) / 8 + 1;
	word &= (stop ^ (stop - 1)) & 0x7f7f7f7f7f7f7f7fULL;
	/* eight groups of 7 bits move together, by two, by four, by eight: 256 - 128, 2^16 - 2^14 are subtracted */
	word -= (word & 0x7f007f007f007f00ULL) >> 1;
	word -= ((word & 0x3fff00003fff0000ULL) >> 2) * 3;
	*value = (word & 0xffffffffULL) | word >> 32 << 28;
	return at <= end ? at : NULL;
}

static uint8_t *take_text(uint8_t *at, const uint8_t *end, const char **text)
{
	uint64_t length;

	at = take_varint(at, end, &length);
	if (!at || length >= (uint64_t)(end - at))
		return NULL;
	*text = (const char *)at;
	return strnlen(*text, length + 1) == length ? at + length + 1 : NULL;
}

/* Returns whether the member has room for the value. */
static inline bool store_integer(enum column_kind kind, char *member, uint64_t value)
{
	if (kind == COLUMN_U64)
		*(uint64_t *)member = value;
	else if (kind == COLUMN_BOOL)
		*(bool *)member = value != 0;
	else if (value > UINT32_MAX)
		return false;
	else if (kind == COLUMN_U32)
		*(uint32_t *)member = (uint32_t)value;
	else /* zigzag */
		*(int32_t *)member = (int32_t)(value & 1 ? ~(value >> 1) : value >> 1);
	return true;
}

void capture_layout__add(struct capture_layout *layout, enum column_wire wire, const struct capture_column *own)
{
	static const enum column_kind widest[WIRES] = {
	    [WIRE_UINT] = COLUMN_U64, [WIRE_INT] = COLUMN_U64, [WIRE_FLOAT] = COLUMN_DOUBLE, [WIRE_TEXT] = COLUMN_TEXT};

	layout->columns[layout->count].kind = own ? own->kind : widest[wire];
	layout->columns[layout->count++].offset = own ? (uint32_t)own->offset : CAPTURE_NO_MEMBER;
}

const char *capture__decode(const struct capture_layout *layout, uint8_t *payload, size_t length,
			    struct stream_event *event)
{
	const uint8_t *end = payload + length;
	const char *wrong = capture__decode_next(layout, &payload, end, event);

	return wrong || payload == end ? wrong : "there is more in it than its columns";
}

const char *capture__decode_next(const struct capture_layout *layout, uint8_t **row, const uint8_t *end,
				 struct stream_event *event)
{
	uint8_t *at = *row;
	uint64_t bitmap, value;
	const char *text;

	at = take_varint(at, end, &bitmap);
	if (!at)
		return "its bitmap is cut";
	if (layout->count < 64 && bitmap >> layout->count)
		return "it has columns that the head does not name";
	for (; bitmap; bitmap &= bitmap - 1) {
		int i = __builtin_ctzll(bitmap);
		enum column_kind kind = layout->columns[i].kind;
		uint32_t offset = layout->columns[i].offset;
		char *member = (char *)event + offset;

		switch (kind) {
		case COLUMN_U64:
		case COLUMN_U32:
		case COLUMN_I32:
		case COLUMN_BOOL:
			at = take_varint(at, end, &value);
			if (!at)
				return "a number is cut";
			if (offset != CAPTURE_NO_MEMBER && !store_integer(kind, member, value))
				return "a number is too large";
			break;
		case COLUMN_DOUBLE:
			if (end - at < (ptrdiff_t)sizeof(value))
				return "a number is cut";
			memcpy(&value, at, sizeof(value));
			at += sizeof(value);
			value = le64toh(value);
			if (offset != CAPTURE_NO_MEMBER)
				memcpy(member, &value, sizeof(value));
			break;
		case COLUMN_TEXT:
		case COLUMN_COMM:
			at = take_text(at, end, &text);
			if (!at)
				return "a text is cut";
			if (kind == COLUMN_COMM) /* no NUL where comm fills all 16 */
				strncpy(member, text, COMM_BYTES);
			else if (offset != CAPTURE_NO_MEMBER)
				memcpy(member, &text, sizeof(text));
			if (event->type == STREAM_LINE)
				event->line = stream__line(event->line.text);
			break;
		}
	}
	*row = at;
	return NULL;
}
