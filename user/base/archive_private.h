/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the tables (archive.c) and the values (archive_values.c) of archives. */
#ifndef VAPRO_ARCHIVE_PRIVATE_H
#define VAPRO_ARCHIVE_PRIVATE_H

#include "base/archive.h"

struct archive_bytes {
	uint8_t *data;
	size_t length, capacity;
};

/* A table as it was written; columns: those read, by their place in the bytes, NULL where unknown. */
struct archive_known {
	const struct archive_table *table;
	const struct archive_column **columns;
	uint32_t count;
};

struct archive {
	bool reads;
	int error;
	char why[200];
	struct archive_bytes out, column; /* writing: all bytes, and those of one column */
	const uint8_t *at, *end;	  /* reading */
	size_t budget;
	struct archive_known *tables;
	size_t table_count, table_capacity;
	struct intern *texts;
	uint32_t text_count; /* those written or read: later ones are not in the bytes */
};

void archive__put(struct archive *archive, struct archive_bytes *bytes, const void *data, size_t size);
void archive__put_varint(struct archive *archive, struct archive_bytes *bytes, uint64_t value);

/* 0 with the error set where the number is cut. */
uint64_t archive__get_varint(struct archive *archive);

/* Bytes of the member of a column. */
size_t archive__column_bytes(const struct archive_column *column);

/* Writes to archive->column the values of rows that are stride bytes apart; nothing where all are zero. */
void archive__write_column(struct archive *archive, const struct archive_column *column, const char *rows,
			   size_t stride, size_t count);

/* Reads the values up to archive->end. */
void archive__read_column(struct archive *archive, const struct archive_column *column, char *rows, size_t stride,
			  size_t count);

#endif
