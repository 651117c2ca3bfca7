// SPDX-License-Identifier: GPL-2.0-or-later
#include "pipeline/reported.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

#define REPORTED_MAX 4096 /* a variance hardly changes after half as many others */

struct reported {
	uint64_t id;
	bool alarm;
	enum vapro_severity severity;
};

struct reported_variances {
	struct reported *items; /* the latest */
	size_t count, capacity;
	uint64_t older, older_alarms[VAPRO_SEVERITIES];
};

struct reported_variances *reported__new(void)
{
	return calloc(1, sizeof(struct reported_variances));
}

static void add_alarms(const struct reported *items, size_t count, uint64_t alarms[VAPRO_SEVERITIES])
{
	for (size_t i = 0; i < count; i++)
		alarms[items[i].severity] += items[i].alarm;
}

/* Moves the older half to the final counts. */
static void count_older(struct reported_variances *reported)
{
	add_alarms(reported->items, REPORTED_MAX / 2, reported->older_alarms);
	reported->older += REPORTED_MAX / 2;
	reported->count -= REPORTED_MAX / 2;
	memmove(reported->items, reported->items + REPORTED_MAX / 2, reported->count * sizeof(*reported->items));
}

int reported__note(struct reported_variances *reported, uint64_t id, bool alarm, enum vapro_severity severity)
{
	const struct reported now = {.id = id, .alarm = alarm, .severity = severity};

	/* latest first: an open region is a recent one */
	for (size_t i = reported->count; i-- > 0;) {
		if (reported->items[i].id == now.id) {
			reported->items[i] = now;
			return 0;
		}
	}
	if (reported->count == REPORTED_MAX)
		count_older(reported);
	if (grow(&reported->items, &reported->capacity, reported->count + 1, sizeof(now)))
		return -ENOMEM;
	reported->items[reported->count++] = now;
	return 0;
}

uint64_t reported__count(const struct reported_variances *reported)
{
	return reported->older + reported->count;
}

void reported__alarms(const struct reported_variances *reported, uint64_t alarms[VAPRO_SEVERITIES])
{
	for (int i = 0; i < VAPRO_SEVERITIES; i++)
		alarms[i] += reported->older_alarms[i];
	add_alarms(reported->items, reported->count, alarms);
}

void reported__free(struct reported_variances *reported)
{
	if (reported)
		free(reported->items);
	free(reported);
}

static const struct archive_column counts_columns[] = {
    ARCHIVE_ONE(struct reported_variances, older),
    ARCHIVE_MANY(struct reported_variances, older_alarms),
};
static const struct archive_table counts_table = ARCHIVE_TABLE("reported", struct reported_variances, counts_columns);

static const struct archive_column item_columns[] = {
    ARCHIVE_ONE(struct reported, id),
    ARCHIVE_ONE(struct reported, alarm),
    ARCHIVE_ONE(struct reported, severity),
};
static const struct archive_table item_table = ARCHIVE_TABLE("reported variances", struct reported, item_columns);

void reported__archive(struct archive *archive, struct reported_variances *reported)
{
	archive__record(archive, &counts_table, reported);
	archive__rows(archive, &item_table, &reported->items, &reported->count, &reported->capacity);
	archive__check(archive, reported->count <= REPORTED_MAX, "too many variances were reported");
	for (size_t i = 0; archive__reads(archive) && i < reported->count; i++)
		archive__check(archive, reported->items[i].severity < VAPRO_SEVERITIES,
			       "a reported variance is of no severity");
}
