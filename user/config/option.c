// SPDX-License-Identifier: GPL-2.0-or-later
/* Values of options: how each type is read, written, and what messages and --help call it. */
#include "config/option.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/units.h"

#define EXPECTED_BYTES 256
#define BOOL_WORDS "yes|no"

/* Types by what they are: how a number is read and written, and what --help and messages call it. */
static const struct {
	const char *value, *noun;
	int (*read)(const char *text, double *number);
	const char *form; /* of numbers, for messages */
	bool whole;
} types[] = {
    [OPTION_SWITCH] = {.value = "", .noun = "word"},
    [OPTION_LEVEL] = {.value = "", .noun = "word"},
    [OPTION_BOOL] = {.value = BOOL_WORDS, .noun = "word"},
    [OPTION_WORD] = {.value = "", .noun = "word"},
    [OPTION_CHOICE] = {.value = "", .noun = "word"},
    [OPTION_STRING] = {.value = "TEXT", .noun = "value"},
    [OPTION_TEXT] = {.value = "LIST", .noun = "value"},
    [OPTION_LIST] = {.value = "TEXT", .noun = "value"},
    [OPTION_INT] = {"N", "number", units__number, "", true},
    [OPTION_UINT] = {"COUNT", "number", units__number, "", true},
    [OPTION_NUMBER] = {"NUMBER", "number", units__number, "", false},
    [OPTION_SHARE] = {"SHARE", "share", units__share, "", false},
    [OPTION_PERCENT] = {"PERCENT", "percentage", units__percent, "", false},
    [OPTION_SECONDS] = {"TIME", "duration", units__seconds, UNITS_TIME, false},
    [OPTION_NS] = {"TIME", "duration", units__seconds, UNITS_TIME, false},
    [OPTION_SIZE] = {"SIZE", "size", units__bytes, UNITS_SIZE, true},
    [OPTION_POWER] = {"SIZE", "size", units__bytes, "a power of two, " UNITS_SIZE, true},
    [OPTION_CUSTOM] = {.value = "VALUE", .noun = "value"},
    [OPTION_ALIAS] = {.value = "", .noun = "value"},
    [OPTION_HELP] = {.value = "all", .noun = "word"},
    [OPTION_VERSION] = {.value = "", .noun = "value"},
    [OPTION_COMPLETION] = {.value = "", .noun = "shell"},
};

int option_list__add(struct option_list *list, const char *text)
{
	int error = grow(&list->items, &list->room, list->count + 1, sizeof(*list->items));

	if (!error)
		list->items[list->count++] = text;
	return error;
}

void option_list__clear(struct option_list *list)
{
	free(list->items);
	*list = (struct option_list){NULL, 0, 0};
}

bool option__has_value(const struct option_row *row)
{
	return row->type != OPTION_SWITCH && row->type != OPTION_LEVEL && row->type != OPTION_VERSION;
}

bool option__may_be_alone(const struct option_row *row)
{
	return row->type == OPTION_BOOL || row->type == OPTION_HELP;
}

bool option__is_named(const struct option_row *row, const char *name)
{
	const char *a = row->name;

	if (!a)
		return false;
	/* the hello record and captures spell names with _, the command line with - */
	for (; *a && *name; a++, name++)
		if ((*a == '_' ? '-' : *a) != (*name == '_' ? '-' : *name))
			return false;
	return *a == *name;
}

void option__value_name(const struct option_row *row, char *text, size_t size)
{
	snprintf(text, size, "%s", row->value ? row->value : row->words ? row->words : types[row->type].value);
}

/* Writes a number as a type does, so that it reads as the same. */
static void format_number(const struct option_row *row, double number, char *text, size_t size)
{
	switch (row->type) {
	case OPTION_SHARE:
		units__format_share(number, text, size);
		break;
	case OPTION_PERCENT:
		units__format_percent(number, text, size);
		break;
	case OPTION_SECONDS:
	case OPTION_NS:
		units__format_seconds(number, text, size);
		break;
	case OPTION_SIZE:
	case OPTION_POWER:
		units__format_bytes((unsigned long long)number, text, size);
		break;
	default:
		snprintf(text, size, "%.15g", number);
		break;
	}
}

/* Writes words as a sentence has them: "off, on or auto". */
static void join_words(const char *words, char *text, size_t size)
{
	size_t used = 0;

	for (const char *word = words; *word && used < size;) {
		size_t length = strcspn(word, "|");
		const char *after = word + length;

		used += (size_t)snprintf(text + used, size - used, "%s%.*s",
					 word == words		     ? ""
					 : strchr(word, '|') != NULL ? ", "
								     : " or ",
					 (int)length, word);
		word = *after ? after + 1 : after;
	}
}

/* Writes what is expected of a value. */
static void expect(const struct option_row *row, char *text, size_t size)
{
	char least[32], most[32];

	if (row->expected) {
		snprintf(text, size, "%s", row->expected);
	} else if (row->type == OPTION_SWITCH || row->type == OPTION_LEVEL || row->type == OPTION_BOOL) {
		join_words(BOOL_WORDS, text, size);
	} else if (row->words) {
		join_words(row->value ? row->value : row->words, text, size);
	} else if (types[row->type].read) {
		const char *form = types[row->type].form;

		format_number(row, row->min, least, sizeof(least));
		format_number(row, row->max, most, sizeof(most));
		snprintf(text, size, "%s to %s%s%s", least, most, *form ? ", " : "", form);
	} else if (row->max > 0) {
		snprintf(text, size, "%s1 to %.0f bytes", row->type == OPTION_TEXT ? "at most " : "", row->max);
	} else {
		option__value_name(row, text, size);
	}
}

static int refuse(const struct option_row *row, const char *value, const char *prefix, char *err, size_t err_size)
{
	char expected[EXPECTED_BYTES];

	expect(row, expected, sizeof(expected));
	snprintf(err, err_size, "%s%s: invalid %s '%.64s'; expected %s", prefix, row->name,
		 row->noun ? row->noun : types[row->type].noun, value, expected);
	return -EINVAL;
}

/* Reads a number in the range of a row. */
static bool read_number(const struct option_row *row, const char *value, double *number)
{
	if (types[row->type].read(value, number) || *number < row->min || *number > row->max)
		return false;
	if (types[row->type].whole && *number != floor(*number))
		return false;
	return row->type != OPTION_POWER || !((uint64_t)*number & ((uint64_t)*number - 1));
}

static void store_number(const struct option_row *row, void *member, double number)
{
	if (row->type == OPTION_INT)
		*(int *)member = (int)number;
	else if (row->type == OPTION_NS)
		*(uint64_t *)member = (uint64_t)llround(number * 1e9);
	else if (types[row->type].whole)
		*(uint64_t *)member = (uint64_t)number;
	else
		*(double *)member = number;
}

static double load_number(const struct option_row *row, const void *member)
{
	if (row->type == OPTION_INT)
		return *(const int *)member;
	if (row->type == OPTION_NS)
		return (double)*(const uint64_t *)member * 1e-9;
	if (types[row->type].whole)
		return (double)*(const uint64_t *)member;
	return *(const double *)member;
}

static bool read_bool(const char *text, bool *value)
{
	static const char *const yes[] = {"true", "yes", "on", "1"}, *const no[] = {"false", "no", "off", "0"};

	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
		if (!strcmp(text, yes[i]) || !strcmp(text, no[i])) {
			*value = !strcmp(text, yes[i]);
			return true;
		}
	}
	return false;
}

/* Returns the index of a value among the words of a row, or -1; *word: the word itself, or NULL. */
static int index_of(const struct option_row *row, const char *value)
{
	int index = 0;

	for (const char *word = row->words; *word; index++) {
		size_t length = strcspn(word, "|");

		if (strlen(value) == length && !memcmp(word, value, length))
			return index;
		word += length + (word[length] == '|');
	}
	return -1;
}

/* A switch of the command line has no value; in a file it is yes or no. */
static bool set_switch(const struct option_row *row, void *member, const char *value, bool in_file)
{
	bool yes = true;

	if (in_file && !read_bool(value, &yes))
		return false;
	if (row->type == OPTION_SWITCH)
		*(bool *)member = yes;
	else if (yes)
		*(int *)member = (int)row->min;
	return true;
}

/* Stores a text in a member. Returns whether it is valid. */
static bool set_text(const struct option_row *row, void *member, const char *value)
{
	size_t length = strlen(value);

	switch (row->type) {
	case OPTION_CHOICE:
		if (index_of(row, value) < 0)
			return false;
		*(const char **)member = value;
		return true;
	case OPTION_TEXT:
		if (length > (size_t)row->max)
			return false;
		memset(member, 0, (size_t)row->max + 1);
		memcpy(member, value, length);
		return true;
	case OPTION_LIST:
		return length && !option_list__add(member, value);
	default:
		if (!length || (row->max > 0 && length > (size_t)row->max))
			return false;
		*(const char **)member = value;
		return true;
	}
}

int option__set(const struct option_row *row, void *base, const char *value, bool in_file, const char *prefix,
		char *err, size_t err_size)
{
	void *member = (char *)base + row->offset;
	bool good;

	if (row->type == OPTION_CUSTOM) {
		char why[512] = "";
		int ret = row->read(member, value, why, sizeof(why));

		if (ret && *why)
			snprintf(err, err_size, "%s%s: %s", prefix, row->name, why);
		else if (ret)
			refuse(row, value, prefix, err, err_size);
		return ret;
	}
	if (row->type == OPTION_SWITCH || row->type == OPTION_LEVEL) {
		good = set_switch(row, member, value, in_file);
	} else if (row->type == OPTION_BOOL) {
		good = read_bool(value ? value : "yes", member);
	} else if (row->type == OPTION_WORD) {
		int index = index_of(row, value);

		good = index >= 0;
		if (good)
			memcpy(member, &index, sizeof(index));
	} else if (types[row->type].read) {
		double number;

		good = read_number(row, value, &number);
		if (good)
			store_number(row, member, number);
	} else {
		good = set_text(row, member, value);
	}
	return good ? 0 : refuse(row, value, prefix, err, err_size);
}

/* Copies the index-th word. */
static void copy_word(const char *words, unsigned index, char *text, size_t size)
{
	while (index--)
		words += strcspn(words, "|") + 1;
	snprintf(text, size, "%.*s", (int)strcspn(words, "|"), words);
}

bool option__format(const struct option_row *row, const void *base, size_t n, char *text, size_t size)
{
	const void *member = (const char *)base + row->offset;
	const struct option_list *list = member;
	const char *string;

	if (row->write)
		return row->write(member, n, text, size);
	if (row->type == OPTION_LIST) {
		if (n < list->count)
			snprintf(text, size, "%s", list->items[n]);
		return n < list->count;
	}
	if (n)
		return false;
	switch (row->type) {
	case OPTION_SWITCH:
		snprintf(text, size, "yes");
		return *(const bool *)member;
	case OPTION_LEVEL:
		snprintf(text, size, "yes");
		return *(const int *)member == (int)row->min;
	case OPTION_BOOL:
		snprintf(text, size, "%s", *(const bool *)member ? "yes" : "no");
		return true;
	case OPTION_WORD:
		copy_word(row->words, *(const unsigned *)member, text, size);
		return true;
	case OPTION_STRING:
	case OPTION_CHOICE:
		string = *(const char *const *)member;
		snprintf(text, size, "%s", string ? string : "");
		return string;
	case OPTION_TEXT:
		snprintf(text, size, "%s", (const char *)member);
		return true;
	default:
		if (!types[row->type].read)
			return false;
		/* 0 stands for an option that was not given, where 0 is no valid value */
		if (row->min > 0 && load_number(row, member) == 0)
			return false;
		format_number(row, load_number(row, member), text, size);
		return true;
	}
}
