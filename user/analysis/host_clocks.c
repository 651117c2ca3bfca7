// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/host_clocks.h"

#include "base/grow.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct host_clock {
	char host[256];
	bool synchronised;
	uint64_t error_ns;
};

struct host_clocks {
	struct host_clock *items; /* in order of names */
	size_t count, capacity;
};

struct host_clocks *host_clocks__new(void)
{
	return calloc(1, sizeof(struct host_clocks));
}

void host_clocks__free(struct host_clocks *clocks)
{
	if (!clocks)
		return;
	free(clocks->items);
	free(clocks);
}

size_t host_clocks__bytes(const struct host_clocks *clocks)
{
	return sizeof(*clocks) + clocks->capacity * sizeof(*clocks->items);
}

static int compare_names(const char *host, const struct host_clock *at)
{
	return strncmp(host, at->host, sizeof(at->host) - 1);
}

/* The place of a host, or the one where it belongs. */
static size_t place(const struct host_clocks *clocks, const char *host)
{
	size_t from = 0, to = clocks->count;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (compare_names(host, &clocks->items[middle]) > 0)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

static bool is_at(const struct host_clocks *clocks, size_t at, const char *host)
{
	return at < clocks->count && !compare_names(host, &clocks->items[at]);
}

int host_clocks__set(struct host_clocks *clocks, const struct vapro_host_clock *clock)
{
	size_t at = place(clocks, clock->host);
	struct host_clock *item;

	if (!is_at(clocks, at, clock->host)) {
		if (grow(&clocks->items, &clocks->capacity, clocks->count + 1, sizeof(*clocks->items)))
			return -ENOMEM;
		memmove(&clocks->items[at + 1], &clocks->items[at], (clocks->count - at) * sizeof(*clocks->items));
		clocks->count++;
		clocks->items[at] = (struct host_clock){0};
	}
	item = &clocks->items[at];
	strncpy(item->host, clock->host, sizeof(item->host) - 1);
	item->synchronised = clock->synchronised;
	item->error_ns = clock->error_ns;
	return 0;
}

double host_clocks__error_ns(const struct host_clocks *clocks, const char *host)
{
	size_t at = place(clocks, host);

	return is_at(clocks, at, host) && clocks->items[at].synchronised ? (double)clocks->items[at].error_ns
									 : INFINITY;
}

static const struct archive_column host_columns[] = {
    ARCHIVE_MANY(struct host_clock, host),
    ARCHIVE_ONE(struct host_clock, synchronised),
    ARCHIVE_ONE(struct host_clock, error_ns),
};
static const struct archive_table host_table = ARCHIVE_TABLE("host clock", struct host_clock, host_columns);

void host_clocks__archive(struct archive *archive, struct host_clocks *clocks)
{
	archive__rows(archive, &host_table, &clocks->items, &clocks->count, &clocks->capacity);
	for (size_t i = 1; i < clocks->count && !archive__error(archive); i++)
		archive__check(archive, compare_names(clocks->items[i - 1].host, &clocks->items[i]) < 0,
			       "clocks of hosts are not in order");
}
