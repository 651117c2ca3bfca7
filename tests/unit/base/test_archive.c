/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Values, tables and heads of archives: what was written is read, by names, and other bytes are refused. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/archive.h"

#define ROWS 700 /* several blocks */

struct row {
	bool yes;
	uint8_t small;
	uint16_t two;
	uint32_t number;
	uint64_t wide;
	int32_t sign;
	float narrow;
	double real, any;
	double many[3];
	const char *text;
	char chars[8];
	uint32_t left_alone;
};

static const struct archive_column columns[] = {
    ARCHIVE_ONE(struct row, yes),    ARCHIVE_ONE(struct row, small), ARCHIVE_ONE(struct row, two),
    ARCHIVE_ONE(struct row, number), ARCHIVE_ONE(struct row, wide),  ARCHIVE_ONE(struct row, sign),
    ARCHIVE_ONE(struct row, narrow), ARCHIVE_ONE(struct row, real),  ARCHIVE_ANY(struct row, any),
    ARCHIVE_MANY(struct row, many),  ARCHIVE_ONE(struct row, text),  ARCHIVE_MANY(struct row, chars),
};
static const struct archive_table table = ARCHIVE_TABLE("rows", struct row, columns);

static struct row row_of(size_t i, struct intern *texts)
{
	const double reals[] = {0, 1, -1, 0.1, 1e300, -0.0, 4503599627370496.0, 5e-324, 123456.0, 0.5};
	const uint64_t wides[] = {0, UINT64_MAX, 1, 1ULL << 63, 1800000000000000000ULL};
	static const char *const words[] = {NULL, "", "one", "two"};
	struct row row = {
	    .yes = i & 1,
	    .small = (uint8_t)(i * 3),
	    .two = (uint16_t)(i * 977),
	    .number = i % 7 ? (uint32_t)i : UINT32_MAX,
	    .wide = wides[i / 3 % 5],
	    .sign = i % 5 ? -(int32_t)i : INT32_MIN,
	    .narrow = (float)reals[i % 4] / 3,
	    .real = reals[i / 2 % 10],
	    .any = i % 3 ? (double)NAN : (double)-INFINITY,
	    .many = {reals[i % 10], 0, (double)i / 7},
	    .text = intern__text(texts, intern__id(texts, words[i % 4])),
	    .left_alone = 5,
	};

	memcpy(row.chars, "abcdefg", i % 8);
	return row;
}

/* Writes the rows. */
static struct archive *write_rows(struct intern *texts, struct row **rows)
{
	struct archive *archive = archive__new();
	size_t count = ROWS, capacity = ROWS + 9;

	assert_non_null(archive);
	*rows = calloc(capacity, sizeof(**rows));
	for (size_t i = 0; i < count; i++)
		(*rows)[i] = row_of(i, texts);
	archive__texts(archive, texts);
	archive__rows(archive, &table, rows, &count, &capacity);
	archive__record(archive, &table, &(*rows)[3]);
	assert_int_equal(archive__error(archive), 0);
	return archive;
}

static void assert_row(const struct row *a, const struct row *b)
{
	for (size_t i = 0; i < sizeof(columns) / sizeof(*columns); i++) {
		if (columns[i].kind == ARCHIVE_TEXT)
			continue;
		assert_memory_equal((const char *)a + columns[i].offset, (const char *)b + columns[i].offset,
				    columns[i].kind == ARCHIVE_CHARS	? 8
				    : columns[i].kind == ARCHIVE_BOOL	? sizeof(bool)
				    : columns[i].kind == ARCHIVE_U8	? 1
				    : columns[i].kind == ARCHIVE_U16	? 2
				    : columns[i].kind == ARCHIVE_U64	? 8
				    : columns[i].kind == ARCHIVE_DOUBLE ? 8 * columns[i].count
									: 4);
	}
	if (b->text)
		assert_string_equal(a->text, b->text);
	else
		assert_null(a->text);
}

static void test_values(void **state)
{
	struct intern *texts = intern__new(), *copies = intern__new();
	struct row *rows, *read = NULL, one = {.left_alone = 8};
	size_t size, count = 0, capacity = 0;
	struct archive *from = write_rows(texts, &rows), *to;
	uint8_t *data = archive__seal(from, "test", &size);

	(void)state;
	to = archive__unseal(data, size, "test", 1 << 20);
	archive__texts(to, copies);
	archive__rows(to, &table, &read, &count, &capacity);
	archive__record(to, &table, &one);
	archive__end(to);
	assert_int_equal(archive__error(to), 0);
	assert_int_equal(count, ROWS);
	assert_int_equal(capacity, ROWS + 9);
	for (size_t i = 0; i < ROWS; i++)
		assert_row(&read[i], &rows[i]);
	assert_row(&one, &rows[3]);
	assert_int_equal(one.left_alone, 8);
	assert_int_equal(read[3].left_alone, 0);
	archive__free(from);
	archive__free(to);
	intern__free(texts);
	intern__free(copies);
	free(rows);
	free(read);
	free(data);
}

/* Other versions have other columns: unknown ones are skipped, missing ones and those of another type are zero. */
static void test_columns(void **state)
{
	struct other {
		uint32_t number;
		double later;
		uint64_t sign;
	};
	static const struct archive_column other_columns[] = {
	    ARCHIVE_ONE(struct other, later), ARCHIVE_ONE(struct other, number), ARCHIVE_ONE(struct other, sign)};
	static const struct archive_table other_table = ARCHIVE_TABLE("rows", struct other, other_columns);
	struct intern *texts = intern__new(), *copies = intern__new();
	struct other *read = NULL;
	size_t size, count = 0, capacity = 0;
	struct row *rows;
	struct archive *from = write_rows(texts, &rows), *to;
	const uint8_t *data = archive__data(from, &size);

	(void)state;
	to = archive__open(data, size, 1 << 20);
	archive__texts(to, copies);
	archive__rows(to, &other_table, &read, &count, &capacity);
	assert_int_equal(archive__error(to), 0);
	assert_int_equal(count, ROWS);
	for (size_t i = 0; i < ROWS; i++) {
		assert_int_equal(read[i].number, rows[i].number);
		assert_true(read[i].later == 0 && read[i].sign == 0);
	}
	archive__free(from);
	archive__free(to);
	intern__free(texts);
	intern__free(copies);
	free(rows);
	free(read);
}

/* Reads all, and returns the sentence of the error. */
static const char *refused(const uint8_t *data, size_t size, const struct archive_table *as, size_t most_bytes)
{
	struct archive *archive = archive__open(data, size, most_bytes);
	struct intern *texts = intern__new();
	static char why[256];
	struct row *read = NULL;
	size_t count = 0, capacity = 0;

	archive__texts(archive, texts);
	archive__rows(archive, as, &read, &count, &capacity);
	assert_true(!archive__error(archive) == (read != NULL));
	snprintf(why, sizeof(why), "%s", archive__why(archive));
	archive__free(archive);
	intern__free(texts);
	free(read);
	return why;
}

static void test_refused(void **state)
{
	static const struct archive_column strict_columns[] = {ARCHIVE_ONE(struct row, any)};
	static const struct archive_table strict = ARCHIVE_TABLE("rows", struct row, strict_columns);
	static const struct archive_table renamed = ARCHIVE_TABLE("lines", struct row, columns);
	struct intern *texts = intern__new();
	struct row *rows;
	size_t size;
	struct archive *from = write_rows(texts, &rows), *to;
	const uint8_t *data = archive__data(from, &size);
	uint8_t *sealed;

	(void)state;
	assert_string_equal(refused(data, size, &table, 1 << 20), "");
	assert_string_equal(refused(data, size, &strict, 1 << 20), "a number is not finite");
	assert_string_equal(refused(data, size, &renamed, 1 << 20), "its tables are not in order");
	assert_string_equal(refused(data, size, &table, ROWS * sizeof(struct row)), "it needs more memory than it may");
	for (size_t cut = 0; cut < size / 2; cut += 3) {
		uint8_t *part = malloc(cut + 1); /* sanitizers see what is read beyond */

		memcpy(part, data, cut);
		assert_string_not_equal(refused(part, cut, &table, 1 << 20), "");
		free(part);
	}
	sealed = archive__seal(from, "test", &size);
	to = archive__unseal(sealed, size, "other", 1 << 20);
	assert_int_equal(archive__error(to), -EBADMSG);
	assert_string_equal(archive__why(to), "it is a checkpoint of something else");
	archive__free(to);
	sealed[size / 2] ^= 4;
	to = archive__unseal(sealed, size, "test", 1 << 20);
	assert_string_equal(archive__why(to), "it is damaged: its checksum is wrong");
	archive__free(to);
	archive__free(from);
	intern__free(texts);
	free(rows);
	free(sealed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_values),
	    cmocka_unit_test(test_columns),
	    cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
