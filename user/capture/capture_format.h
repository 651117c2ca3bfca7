/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The layout of a capture, shared by its writer and its reader. Each kind of event is a table of
 * columns; the tables are written into the file's head, and a reader goes by the head, so columns
 * may be added without a new version.
 *
 * A row is a bitmap (varint) of the columns that are not zero, then their values in order:
 * uint = LEB128 varint, int = zigzag varint, float = 8 bytes IEEE 754 little endian, text = length
 * (varint), bytes, NUL. A record is {u32 type, u32 length, payload, u32 crc}, little endian; the crc
 * (zlib's CRC-32) runs over type, length and payload. A payload is a row, or several of them, one for each
 * event: a later row has the columns that differ from the row before it.
 */
#ifndef VAPRO_COLLECT_CAPTURE_FORMAT_H
#define VAPRO_COLLECT_CAPTURE_FORMAT_H

#include <stddef.h>
#include "capture/stream.h"

#define CAPTURE_MAGIC "vapro-capture/2"
#define CAPTURE_MAGIC_1 "vapro-capture/1"		 /* read as well: each of its payloads is one row */
#define CAPTURE_HEAD_BEGIN "{\"magic\":\"vapro-capture/" /* start of any version's head */
#define CAPTURE_RECORD_MAX (16U << 20)
#define CAPTURE_HEAD_MAX (1U << 20)
#define CAPTURE_COLUMNS_MAX 64
#define CAPTURE_TYPES (STREAM_GONE + 1)

enum column_kind { COLUMN_U32, COLUMN_U64, COLUMN_I32, COLUMN_BOOL, COLUMN_DOUBLE, COLUMN_TEXT, COLUMN_COMM };
enum column_wire { WIRE_UINT, WIRE_INT, WIRE_FLOAT, WIRE_TEXT, WIRES };

struct capture_column {
	const char *name;
	enum column_kind kind;
	size_t offset; /* in struct stream_event */
	const char *unit;
};

struct capture_table {
	const char *name; /* NULL where no event has this number */
	const struct capture_column *columns;
	uint32_t count;
	size_t bytes; /* size of the event's member */
};

extern const struct capture_table capture_tables[CAPTURE_TYPES];
extern const char *const capture_wire_name[WIRES];

enum column_wire capture__wire(enum column_kind kind);

/* A growing byte buffer; failed stays set once memory ran out. */
struct capture_buffer {
	uint8_t *data;
	size_t length, capacity;
	bool failed;
};

void capture_buffer__add(struct capture_buffer *buffer, const void *data, size_t size);
void capture_buffer__add_u32(struct capture_buffer *buffer, uint32_t value);

/* Adds an event's row. */
void capture__encode(struct capture_buffer *buffer, const struct stream_event *event);

/* Returns whether events of a type come in long sequences, whose rows share records. They have no texts to point to. */
bool capture__packs(enum stream_type type);

/* Adds an event's row after that of an event of its type. */
void capture__encode_next(struct capture_buffer *buffer, const struct stream_event *event,
			  const struct stream_event *before);

#define CAPTURE_NO_MEMBER UINT32_MAX
#define CAPTURE_SLACK 8 /* bytes after a payload that must be readable; their values do not matter */

/* Maps a file's columns of one kind of event to ours. */
struct capture_layout {
	uint32_t count;
	struct {
		enum column_kind kind; /* for an unknown column: the widest of its wire type */
		uint32_t offset;       /* in struct stream_event; CAPTURE_NO_MEMBER: not stored */
	} columns[CAPTURE_COLUMNS_MAX];
};

/* Adds a file's column, for which there is room; own: ours of that name and wire type, or NULL. */
void capture_layout__add(struct capture_layout *layout, enum column_wire wire, const struct capture_column *own);

/*
 * Fills the event, whose type the caller sets; texts point into payload, which CAPTURE_SLACK bytes follow. Returns
 * NULL, or a sentence about the payload's error.
 */
const char *capture__decode(const struct capture_layout *layout, uint8_t *payload, size_t length,
			    struct stream_event *event);

/*
 * Fills the event from the row at *at, which is set to the byte after the row; the caller sets the type, and before
 * the first row of a payload all members to 0: what a later row leaves out is as in the row before it. As
 * capture__decode() else.
 */
const char *capture__decode_next(const struct capture_layout *layout, uint8_t **at, const uint8_t *end,
				 struct stream_event *event);

#endif
