// SPDX-License-Identifier: GPL-2.0-or-later
#include "sandbox/flat.h"

#include <stdlib.h>
#include <string.h>

#include "base/printable.h"

static void put_bytes(struct flat *flat, const void *bytes, size_t size)
{
	if (flat->failed)
		return;
	if (flat->room - flat->size < size) {
		size_t room = flat->room ? flat->room : 4096;
		uint8_t *data;

		while (room - flat->size < size)
			room *= 2;
		data = realloc(flat->data, room);
		if (!data) {
			flat->failed = true;
			return;
		}
		flat->data = data;
		flat->room = room;
	}
	memcpy(flat->data + flat->size, bytes, size);
	flat->size += size;
}

void flat__put(struct flat *flat, uint64_t number)
{
	put_bytes(flat, &number, sizeof(number));
}

void flat__put_text(struct flat *flat, const char *text)
{
	size_t length = strlen(text);

	flat__put(flat, length);
	put_bytes(flat, text, length + 1);
}

void flat__put_flat(struct flat *flat, const struct flat *more)
{
	flat->failed |= more->failed;
	if (more->size)
		put_bytes(flat, more->data, more->size);
}

uint64_t flat__get(struct flat_reader *reader)
{
	uint64_t number;

	if (reader->bad || (size_t)(reader->end - reader->at) < sizeof(number)) {
		reader->bad = true;
		return 0;
	}
	memcpy(&number, reader->at, sizeof(number));
	reader->at += sizeof(number);
	return number;
}

uint64_t flat__get_upto(struct flat_reader *reader, uint64_t max)
{
	uint64_t number = flat__get(reader);

	if (number <= max)
		return number;
	reader->bad = true;
	return 0;
}

size_t flat__get_count(struct flat_reader *reader, size_t bytes_each)
{
	uint64_t count = flat__get(reader);

	if (!reader->bad && count <= (size_t)(reader->end - reader->at) / bytes_each)
		return (size_t)count;
	reader->bad = true;
	return 0;
}

const char *flat__get_text(struct flat_reader *reader, size_t max)
{
	uint64_t length = flat__get(reader);
	char *text = (char *)reader->at;

	if (reader->bad || length > max || length >= (size_t)(reader->end - reader->at) || text[length] != '\0' ||
	    memchr(text, '\0', length)) {
		reader->bad = true;
		return "";
	}
	printable__bytes(text, length);
	reader->at += length + 1;
	return text;
}

bool flat__done(const struct flat_reader *reader)
{
	return !reader->bad && reader->at == reader->end;
}
