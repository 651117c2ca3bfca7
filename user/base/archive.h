/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * State of objects as bytes, for checkpoints (docs/checkpoint.md). One function of an object describes its state for
 * both directions: archive__record and archive__rows write the members that a table names, or read them. An error
 * stays: all later calls do nothing and leave what they read empty, so that a caller checks once, at the end.
 *
 * A table is written as its name and its columns at its first use, and as its number later. A reader goes by the
 * names: a column that it does not know is skipped, one that is missing leaves zeros. Rows are written column by
 * column; equal values in a row after each other take one byte and their number.
 *
 *   unsigned, signed   zigzag varint of the difference to the value before; 0 is followed by the number of further
 *                      equal values
 *   float              its bits, as an unsigned
 *   double             varint: 0 = as the value before, followed by the number of further ones; 4 i + 1 = the integer
 *                      i; 2 = four bytes follow, a float; 3 = eight bytes follow
 *   text               unsigned: its number among the texts (archive__texts)
 *   chars              length (varint), and bytes
 *
 * All bytes are untrusted: lengths are checked, memory is bounded, doubles are finite unless the column says
 * otherwise. What numbers mean is checked by the objects (archive__refuse).
 */
#ifndef VAPRO_ARCHIVE_H
#define VAPRO_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"

enum archive_kind {
	ARCHIVE_BOOL,
	ARCHIVE_U8,
	ARCHIVE_U16,
	ARCHIVE_U32,
	ARCHIVE_U64,
	ARCHIVE_I32,
	ARCHIVE_FLOAT,
	ARCHIVE_DOUBLE,
	ARCHIVE_TEXT,  /* const char *, of the archive's texts; may be NULL */
	ARCHIVE_CHARS, /* char[], ends with NUL */
};

struct archive_column {
	const char *name;
	enum archive_kind kind;
	uint32_t count; /* elements of an array; bytes of chars */
	size_t offset;
	bool any; /* a double may be infinite or no number */
};

#define ARCHIVE_COLUMNS_MAX 96

struct archive_table {
	const char *name;
	const struct archive_column *columns;
	uint32_t count;
	size_t bytes; /* of a row */
};

#define ARCHIVE_KIND(value)                                                                                            \
	_Generic((value),                                                                                              \
	    bool: ARCHIVE_BOOL,                                                                                        \
	    uint8_t: ARCHIVE_U8,                                                                                       \
	    uint16_t: ARCHIVE_U16,                                                                                     \
	    uint32_t: ARCHIVE_U32,                                                                                     \
	    uint64_t: ARCHIVE_U64,                                                                                     \
	    int32_t: ARCHIVE_I32,                                                                                      \
	    float: ARCHIVE_FLOAT,                                                                                      \
	    double: ARCHIVE_DOUBLE,                                                                                    \
	    char: ARCHIVE_CHARS,                                                                                       \
	    char *: ARCHIVE_TEXT,                                                                                      \
	    const char *: ARCHIVE_TEXT)

#define ARCHIVE_COLUMN(type, member, element, any)                                                                     \
	{                                                                                                              \
#member, ARCHIVE_KIND(((type *)0)->element),                                                           \
		    sizeof(((type *)0)->member) / sizeof(((type *)0)->element), offsetof(type, member), any            \
	}

/* A member, an array, and an array of arrays; ARCHIVE_ANY and _ANY_MANY: not always finite. */
#define ARCHIVE_ONE(type, member) ARCHIVE_COLUMN(type, member, member, false)
#define ARCHIVE_MANY(type, member) ARCHIVE_COLUMN(type, member, member[0], false)
#define ARCHIVE_GRID(type, member) ARCHIVE_COLUMN(type, member, member[0][0], false)
#define ARCHIVE_ANY(type, member) ARCHIVE_COLUMN(type, member, member, true)
#define ARCHIVE_ANY_MANY(type, member) ARCHIVE_COLUMN(type, member, member[0], true)

#define ARCHIVE_TABLE(text, row, list)                                                                                 \
	{                                                                                                              \
		.name = text, .columns = list, .count = sizeof(list) / sizeof((list)[0]), .bytes = sizeof(row)         \
	}

struct archive;

/* Begins to write. NULL when out of memory. */
struct archive *archive__new(void);

/*
 * Begins to read bytes without a head; they outlive the archive. most_bytes bounds the memory for what is read. NULL
 * when out of memory.
 */
struct archive *archive__open(const uint8_t *data, size_t size, size_t most_bytes);
void archive__free(struct archive *archive);

bool archive__reads(const struct archive *archive);

/* 0 or the first error: -ENOMEM, -EBADMSG or -ENOTSUP. Its sentence is archive__why, "" where there is none. */
int archive__error(const struct archive *archive);
const char *archive__why(const struct archive *archive);

/* Sets the error, unless there is one; the sentence is copied. */
void archive__fail(struct archive *archive, int error, const char *why);

/* Refuses what was read: -EBADMSG. */
void archive__refuse(struct archive *archive, const char *why);

/* Refuses what was read unless a condition holds; returns whether there is no error so far. */
bool archive__check(struct archive *archive, bool holds, const char *why);

/* The bytes written so far; they belong to the archive. */
const uint8_t *archive__data(const struct archive *archive, size_t *size);

/*
 * The bytes as a checkpoint of a kind (a word): a line "vapro-checkpoint/4 KIND", their length and the CRC-32 of zlib
 * in little endian (64 and 32 bits), and they themselves. Returns malloc'ed data, or NULL with the error set.
 */
uint8_t *archive__seal(struct archive *archive, const char *kind, size_t *size);

/*
 * Begins to read a checkpoint of a kind. NULL when out of memory; else the error is set where the bytes are none, of
 * another version or kind, cut or damaged.
 */
struct archive *archive__unseal(const uint8_t *data, size_t size, const char *kind, size_t most_bytes);

/* Refuses what was read unless all bytes were read. */
void archive__end(struct archive *archive);

/* Rows whose number both sides know, and one row. Members without a column stay as they are. */
void archive__array(struct archive *archive, const struct archive_table *table, void *rows, size_t count);
void archive__record(struct archive *archive, const struct archive_table *table, void *row);

/*
 * The rows of an array that grow() allocates: items is the address of its pointer. Reading allocates the array, with
 * the capacity that it had, zeroed where no column is.
 */
void archive__rows(struct archive *archive, const struct archive_table *table, void *items, size_t *count,
		   size_t *capacity);

/* The same for arrays whose count and capacity are of 32 bits. */
void archive__rows32(struct archive *archive, const struct archive_table *table, void *items, uint32_t *count,
		     uint32_t *capacity);

/* A plain number. */
void archive__number(struct archive *archive, uint64_t *number);

/* All texts of an object, by number; columns of texts refer to them from here on. Reading adds to an empty object. */
void archive__texts(struct archive *archive, struct intern *texts);

/* Memory of count times size bytes, zeroed, within the bound; NULL with the error set. */
void *archive__take(struct archive *archive, size_t count, size_t size);

/* Reading: a copy of a text that came with the texts; NULL of NULL, or with the error set. */
char *archive__copy(struct archive *archive, const char *text);

#endif
