/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of all keys of records (records.def), as constants and as rows. */
#ifndef VAPRO_RECORDS_RECORD_TABLE_H
#define VAPRO_RECORDS_RECORD_TABLE_H

#include <stdbool.h>

/* Name and version of the format, the value of the key `schema`. */
#define RECORD_SCHEMA "vapro/1"

/* Objects: records, and the parts that lie within them. */
enum record_object {
#define RECORD(name, ...) RECORD_OBJECT_##name,
#define PART(name, ...) RECORD_OBJECT_##name,
#define KEY(...)
#define INCLUDE(...)
#include "records/records.def"
	RECORD_OBJECTS
};

/* Rows of the table, in its order. */
enum record_row {
#define RECORD(...)
#define PART(...)
#define KEY(object, key, ...) RECORD_ROW_##object##__##key,
#define INCLUDE(object, part) RECORD_ROW_##object##__includes_##part,
#include "records/records.def"
	RECORD_ROWS
};

/* The row of a key: KEY(window, coverage). A key that the table does not have does not compile. */
#define KEY(object, key) RECORD_ROW_##object##__##key

enum record_value {
	RECORD_TEXT,
	RECORD_NAME, /* the name of a record */
	RECORD_TIME, /* RFC 3339, UTC, nanoseconds */
	RECORD_RANKS,
	RECORD_BOOLEAN,
	RECORD_INTEGER,
	RECORD_NUMBER,
	RECORD_PART,	 /* an object with keys of its own */
	RECORD_NUMBERS,	 /* an object of names and numbers */
	RECORD_SETTINGS, /* an object of names and scalars */
	RECORD_INCLUDE	 /* no key: the keys of another object */
};

/* A number that is written as it is. */
#define RECORD_UNROUNDED (-1)

struct record_key {
	const char *name;
	const char *text;	   /* a phrase for people */
	const char *whole;	   /* of a percentage: what is 100 % */
	const char *const *words;  /* the values that a text may have, or the names of numbers; NULL: any */
	const char *const *only;   /* values of the record's first key with which this one is present; NULL: any */
	enum record_object object; /* the object that has the key */
	enum record_object part;   /* RECORD_PART, RECORD_INCLUDE: the object that is the value, or is included */
	enum record_value value;
	int word_count, only_count;
	int digits; /* RECORD_NUMBER, RECORD_NUMBERS: digits behind the point, or RECORD_UNROUNDED */
	bool list;  /* the value is a list of such values */
	bool nullable, optional;
	bool has_least, has_most;
	double least, most;
};

extern const struct record_key record_keys[RECORD_ROWS];

struct record_object_info {
	const char *name;
	const char *text;
	bool is_record; /* a record, and no part of one */
};

extern const struct record_object_info record_objects[RECORD_OBJECTS];

/* Returns the type of a finished record by its first bytes; RECORD_OBJECTS for a text that does not begin as records
 * do. */
enum record_object record_table__type_of(const char *line);

#endif
