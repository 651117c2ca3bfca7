// SPDX-License-Identifier: GPL-2.0-or-later
/* Tables and rows; the values of columns are in archive_values.c. */
#include "base/archive.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/archive_private.h"
#include "base/grow.h"

#define NAME_MAX_BYTES 64
#define TABLES_MAX 256
#define BLOCK_ROWS 256 /* rows whose columns are written together: rows of a block stay in a cache */

static struct archive *make(void)
{
	return calloc(1, sizeof(struct archive));
}

struct archive *archive__new(void)
{
	return make();
}

struct archive *archive__open(const uint8_t *data, size_t size, size_t most_bytes)
{
	struct archive *archive = make();

	if (!archive)
		return NULL;
	archive->reads = true;
	archive->at = data;
	archive->end = data + size;
	archive->budget = most_bytes;
	return archive;
}

void archive__free(struct archive *archive)
{
	if (!archive)
		return;
	free(archive->out.data);
	free(archive->column.data);
	for (size_t i = 0; archive->reads && i < archive->table_count; i++)
		free(archive->tables[i].columns);
	free(archive->tables);
	free(archive);
}

bool archive__reads(const struct archive *archive)
{
	return archive->reads;
}

int archive__error(const struct archive *archive)
{
	return archive->error;
}

const char *archive__why(const struct archive *archive)
{
	return archive->why;
}

void archive__fail(struct archive *archive, int error, const char *why)
{
	if (archive->error)
		return;
	archive->error = error;
	snprintf(archive->why, sizeof(archive->why), "%s", why);
}

void archive__refuse(struct archive *archive, const char *why)
{
	archive__fail(archive, -EBADMSG, why);
}

bool archive__check(struct archive *archive, bool holds, const char *why)
{
	if (!holds)
		archive__refuse(archive, why);
	return !archive->error;
}

const uint8_t *archive__data(const struct archive *archive, size_t *size)
{
	*size = archive->out.length;
	return archive->out.data;
}

void *archive__take(struct archive *archive, size_t count, size_t size)
{
	size_t bytes;
	void *memory;

	if (archive->error)
		return NULL;
	if (__builtin_mul_overflow(count, size, &bytes) || (archive->reads && bytes > archive->budget)) {
		archive__refuse(archive, "it needs more memory than it may");
		return NULL;
	}
	memory = calloc(1, bytes + !bytes);
	if (!memory)
		archive__fail(archive, -ENOMEM, "out of memory");
	else if (archive->reads)
		archive->budget -= bytes;
	return memory;
}

char *archive__copy(struct archive *archive, const char *text)
{
	size_t size = text ? strlen(text) + 1 : 0;
	char *copy = text ? archive__take(archive, size, 1) : NULL;

	return copy ? memcpy(copy, text, size) : NULL;
}

/* ---- tables and their columns */

static void write_name(struct archive *archive, const char *name)
{
	archive__put_varint(archive, &archive->out, strlen(name));
	archive__put(archive, &archive->out, name, strlen(name));
}

static size_t read_name(struct archive *archive, char *name)
{
	uint64_t length = archive__get_varint(archive);

	if (!archive__check(archive, length < NAME_MAX_BYTES && length <= (size_t)(archive->end - archive->at),
			    "a name is too long"))
		return 0;
	memcpy(name, archive->at, length);
	name[length] = '\0';
	archive->at += length;
	return length;
}

static struct archive_known *add_known(struct archive *archive)
{
	if (archive->table_count >= TABLES_MAX) {
		archive__refuse(archive, "it has too many tables");
		return NULL;
	}
	if (grow(&archive->tables, &archive->table_capacity, archive->table_count + 1, sizeof(*archive->tables))) {
		archive__fail(archive, -ENOMEM, "out of memory");
		return NULL;
	}
	return &archive->tables[archive->table_count++];
}

/* The number of a table from 1 on is written; before the first use 0 and its columns. */
static void write_table(struct archive *archive, const struct archive_table *table)
{
	struct archive_known *known;

	for (size_t i = 0; i < archive->table_count; i++) {
		if (archive->tables[i].table == table) {
			archive__put_varint(archive, &archive->out, i + 1);
			return;
		}
	}
	known = add_known(archive);
	if (!known)
		return;
	known->table = table;
	archive__put_varint(archive, &archive->out, 0);
	write_name(archive, table->name);
	archive__put_varint(archive, &archive->out, table->count);
	for (uint32_t i = 0; i < table->count; i++) {
		write_name(archive, table->columns[i].name);
		archive__put_varint(archive, &archive->out, table->columns[i].kind);
		archive__put_varint(archive, &archive->out, table->columns[i].count);
	}
}

static const struct archive_column *find_column(const struct archive_table *table, const char *name)
{
	for (uint32_t i = 0; i < table->count; i++) {
		if (!strcmp(table->columns[i].name, name))
			return &table->columns[i];
	}
	return NULL;
}

static void read_columns(struct archive *archive, const struct archive_table *table, struct archive_known *known)
{
	uint64_t count = archive__get_varint(archive);

	if (!archive__check(archive, count <= ARCHIVE_COLUMNS_MAX, "a table has too many columns"))
		return;
	known->columns = calloc(count + 1, sizeof(*known->columns));
	if (!known->columns) {
		archive__fail(archive, -ENOMEM, "out of memory");
		return;
	}
	for (uint64_t i = 0; i < count && !archive->error; i++) {
		char name[NAME_MAX_BYTES];
		const struct archive_column *own = read_name(archive, name) ? find_column(table, name) : NULL;
		uint64_t kind = archive__get_varint(archive), elements = archive__get_varint(archive);

		/* a type that changed has another meaning: its values are skipped like those of an unknown column */
		if (own && own->kind == kind && own->count == elements)
			known->columns[i] = own;
		known->count = (uint32_t)i + 1;
	}
}

static struct archive_known *read_table(struct archive *archive, const struct archive_table *table)
{
	uint64_t number = archive__get_varint(archive);
	struct archive_known *known;
	char name[NAME_MAX_BYTES] = "";

	if (archive->error)
		return NULL;
	if (number) {
		known = number <= archive->table_count ? &archive->tables[number - 1] : NULL;
		return archive__check(archive, known && known->table == table, "its tables are not in order") ? known
													      : NULL;
	}
	read_name(archive, name);
	if (archive->error || !archive__check(archive, !strcmp(name, table->name), "its tables are not in order"))
		return NULL;
	known = add_known(archive);
	if (!known)
		return NULL;
	known->table = table;
	read_columns(archive, table, known);
	return archive->error ? NULL : &archive->tables[archive->table_count - 1];
}

/* ---- rows */

static void write_block(struct archive *archive, const struct archive_table *table, const char *rows, size_t count)
{
	for (uint32_t i = 0; i < table->count; i++) {
		archive->column.length = 0;
		archive__write_column(archive, &table->columns[i], rows, table->bytes, count);
		archive__put_varint(archive, &archive->out, archive->column.length);
		archive__put(archive, &archive->out, archive->column.data, archive->column.length);
	}
}

static void read_block(struct archive *archive, const struct archive_known *known, char *rows, size_t count)
{
	for (uint32_t i = 0; i < known->count && !archive->error; i++) {
		uint64_t length = archive__get_varint(archive);
		const uint8_t *end = archive->end;

		if (!archive__check(archive, length <= (size_t)(end - archive->at), "a column is cut"))
			return;
		archive->end = archive->at + length;
		/* an empty column is all zeros, as its rows are already */
		if (length && known->columns[i])
			archive__read_column(archive, known->columns[i], rows, known->table->bytes, count);
		else
			archive->at = archive->end;
		archive__check(archive, archive->at == archive->end, "a column is longer than its rows");
		archive->end = end;
	}
}

static void write_rows(struct archive *archive, const struct archive_table *table, const void *rows, size_t count)
{
	for (size_t at = 0; at < count; at += BLOCK_ROWS)
		write_block(archive, table, (const char *)rows + at * table->bytes,
			    count - at < BLOCK_ROWS ? count - at : BLOCK_ROWS);
}

static void read_rows(struct archive *archive, const struct archive_known *known, void *rows, size_t count)
{
	for (size_t at = 0; at < count && !archive->error; at += BLOCK_ROWS)
		read_block(archive, known, (char *)rows + at * known->table->bytes,
			   count - at < BLOCK_ROWS ? count - at : BLOCK_ROWS);
}

static void clear_members(const struct archive_table *table, void *rows, size_t count)
{
	for (size_t row = 0; row < count; row++) {
		for (uint32_t i = 0; i < table->count; i++)
			memset((char *)rows + row * table->bytes + table->columns[i].offset, 0,
			       archive__column_bytes(&table->columns[i]));
	}
}

void archive__array(struct archive *archive, const struct archive_table *table, void *rows, size_t count)
{
	struct archive_known *known;

	if (archive->reads)
		clear_members(table, rows, count);
	if (archive->error)
		return;
	if (!archive->reads) {
		write_table(archive, table);
		write_rows(archive, table, rows, count);
		return;
	}
	known = read_table(archive, table);
	if (known)
		read_rows(archive, known, rows, count);
	if (archive->error)
		clear_members(table, rows, count);
}

void archive__record(struct archive *archive, const struct archive_table *table, void *row)
{
	archive__array(archive, table, row, 1);
}

void archive__rows(struct archive *archive, const struct archive_table *table, void *items, size_t *count,
		   size_t *capacity)
{
	struct archive_known *known;
	uint64_t rows, room;
	void *array = NULL;

	if (!archive->reads) {
		if (archive->error)
			return;
		memcpy(&array, items, sizeof(array));
		write_table(archive, table);
		archive__put_varint(archive, &archive->out, *count);
		archive__put_varint(archive, &archive->out, *capacity);
		write_rows(archive, table, array, *count);
		return;
	}
	*count = *capacity = 0;
	memcpy(items, &array, sizeof(array));
	known = archive->error ? NULL : read_table(archive, table);
	rows = archive__get_varint(archive);
	room = archive__get_varint(archive);
	if (!archive__check(archive, known && rows <= room, "a table has more rows than room") || !room)
		return;
	array = archive__take(archive, room, table->bytes);
	if (!array)
		return;
	read_rows(archive, known, array, rows);
	if (archive->error) {
		free(array);
		return;
	}
	memcpy(items, &array, sizeof(array));
	*count = rows;
	*capacity = room;
}

void archive__rows32(struct archive *archive, const struct archive_table *table, void *items, uint32_t *count,
		     uint32_t *capacity)
{
	size_t rows = *count, room = *capacity;

	archive__rows(archive, table, items, &rows, &room);
	if (!archive__check(archive, room <= UINT32_MAX, "a table is too long") && archive->reads)
		rows = room = 0;
	*count = (uint32_t)rows;
	*capacity = (uint32_t)room;
}

void archive__number(struct archive *archive, uint64_t *number)
{
	static const struct archive_column columns[] = {{"number", ARCHIVE_U64, 1, 0, false}};
	static const struct archive_table table = {"number", columns, 1, sizeof(uint64_t)};

	archive__record(archive, &table, number);
}

/* ---- texts */

/* A text that was dropped is a zero byte, which no text has. */
static void write_text(struct archive *archive, const char *text)
{
	if (text) {
		write_name(archive, text);
		return;
	}
	archive__put_varint(archive, &archive->out, 1);
	archive__put(archive, &archive->out, "", 1);
}

static void read_text(struct archive *archive, struct intern *texts, uint64_t id)
{
	uint64_t length = archive__get_varint(archive);
	char *copy;
	uint32_t got;

	if (!archive__check(archive, length <= (size_t)(archive->end - archive->at), "a text is cut"))
		return;
	copy = archive__take(archive, length + 1, 1);
	if (!copy)
		return;
	memcpy(copy, archive->at, length);
	archive->at += length;
	if (length == 1 && !*copy) {
		if (intern__skip(texts))
			archive__fail(archive, -ENOMEM, "out of memory");
	} else if (archive__check(archive, strlen(copy) == length, "a text has a zero byte")) {
		got = intern__id(texts, copy);
		if (got == INTERN_NONE)
			archive__fail(archive, -ENOMEM, "out of memory");
		else
			archive__check(archive, got == id, "a text comes twice");
	}
	free(copy);
}

void archive__texts(struct archive *archive, struct intern *texts)
{
	uint64_t count = archive->reads ? 0 : intern__count(texts);

	archive__number(archive, &count);
	for (uint64_t id = 1; id < count && !archive->error; id++) {
		if (archive->reads)
			read_text(archive, texts, id);
		else
			write_text(archive, intern__text(texts, (uint32_t)id));
	}
	if (archive->reads)
		intern__skipped(texts);
	archive->texts = texts;
	archive->text_count = (uint32_t)intern__count(texts);
}
