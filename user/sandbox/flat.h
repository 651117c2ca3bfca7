/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Flat bytes between the daemon and its confined reader: numbers of 8 bytes in the machine's order,
 * texts as length, bytes, NUL. The writer remembers that memory ran out, the reader that something
 * was missing or malformed, so that one check at the end is enough; a bad reader gives zeros and
 * empty texts.
 */
#ifndef VAPRO_FLAT_H
#define VAPRO_FLAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct flat {
	uint8_t *data; /* free() it */
	size_t size, room;
	bool failed; /* out of memory */
};

void flat__put(struct flat *flat, uint64_t number);
void flat__put_text(struct flat *flat, const char *text);
void flat__put_flat(struct flat *flat, const struct flat *more);

struct flat_reader {
	uint8_t *at, *end;
	bool bad;
};

uint64_t flat__get(struct flat_reader *reader);

/* A number of at most max; more than that is bad. */
uint64_t flat__get_upto(struct flat_reader *reader, uint64_t max);

/*
 * A count of things of at least bytes_each bytes each: a count that the bytes left cannot hold is bad.
 * So the bytes received bound the memory for the things announced.
 */
size_t flat__get_count(struct flat_reader *reader, size_t bytes_each);

/*
 * A text of at most max bytes, in place: it lives as long as the bytes do. Control characters become
 * '?', since texts end on people's terminals.
 */
const char *flat__get_text(struct flat_reader *reader, size_t max);

/* Whether nothing was bad and no bytes are left. */
bool flat__done(const struct flat_reader *reader);

#endif
