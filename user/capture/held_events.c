// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/held_events.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

#define CHUNK_BYTES (64U << 10)

/* Before each payload; both together are a multiple of 8 bytes. */
struct record {
	uint64_t time_ns;
	uint32_t type, length; /* bytes of the payload */
};

struct chunk {
	struct chunk *next;
	size_t size, used;
	uint8_t bytes[]; /* CAPTURE_SLACK more than size */
};

struct held_event {
	uint32_t type, length;
	uint8_t payload[]; /* CAPTURE_SLACK more than length */
};

struct held_events {
	struct chunk *first, *last;
	struct record **undated; /* records of HELD_NEXT_WINDOW */
	size_t undated_count, undated_capacity;
	size_t bytes;
	struct capture_buffer payload;
	size_t given; /* bytes of the first chunk whose events are out */
	struct capture_layout layouts[CAPTURE_TYPES];
};

static size_t padded(size_t length)
{
	return sizeof(struct record) + (length + 7) / 8 * 8;
}

struct held_events *held_events__new(void)
{
	struct held_events *held = calloc(1, sizeof(*held));

	if (!held)
		return NULL;
	for (int type = 0; type < CAPTURE_TYPES; type++) {
		const struct capture_table *table = &capture_tables[type];

		for (uint32_t i = 0; i < table->count; i++)
			capture_layout__add(&held->layouts[type], capture__wire(table->columns[i].kind),
					    &table->columns[i]);
	}
	return held;
}

static void free_chunks(struct chunk *chunk)
{
	while (chunk) {
		struct chunk *next = chunk->next;

		free(chunk);
		chunk = next;
	}
}

void held_events__free(struct held_events *held)
{
	if (!held)
		return;
	free_chunks(held->first);
	free(held->undated);
	free(held->payload.data);
	free(held);
}

/* Returns room for a record, or NULL when out of memory. */
static struct record *append(struct held_events *held, size_t size)
{
	struct chunk *chunk = held->last;
	struct record *record;

	if (!chunk || chunk->size - chunk->used < size) {
		size_t room = size > CHUNK_BYTES ? size : CHUNK_BYTES;

		chunk = malloc(sizeof(*chunk) + room + CAPTURE_SLACK);
		if (!chunk)
			return NULL;
		memset(chunk->bytes + room, 0, CAPTURE_SLACK);
		chunk->next = NULL;
		chunk->size = room;
		chunk->used = 0;
		held->bytes += sizeof(*chunk) + room + CAPTURE_SLACK;
		if (held->last)
			held->last->next = chunk;
		else
			held->first = chunk;
		held->last = chunk;
	}
	record = (struct record *)(chunk->bytes + chunk->used);
	chunk->used += size;
	return record;
}

static int note_undated(struct held_events *held, struct record *record)
{
	if (record->time_ns != HELD_NEXT_WINDOW)
		return 0;
	if (grow(&held->undated, &held->undated_capacity, held->undated_count + 1, sizeof(struct record *)))
		return -ENOMEM;
	held->undated[held->undated_count++] = record;
	return 0;
}

int held_events__add(struct held_events *held, const struct stream_event *event, uint64_t time_ns)
{
	struct record *record;

	held->payload.length = 0;
	capture__encode(&held->payload, event);
	if (held->payload.failed)
		return -ENOMEM;
	record = append(held, padded(held->payload.length));
	if (!record)
		return -ENOMEM;
	*record = (struct record){time_ns, event->type, (uint32_t)held->payload.length};
	memcpy(record + 1, held->payload.data, held->payload.length);
	return note_undated(held, record);
}

void held_events__date(struct held_events *held, uint64_t time_ns)
{
	for (size_t i = 0; i < held->undated_count; i++)
		held->undated[i]->time_ns = time_ns;
	held->undated_count = 0;
}

static void decode(struct held_events *held, struct record *record, struct stream_event *event)
{
	memset(event, 0, sizeof(*event));
	event->type = record->type;
	capture__decode(&held->layouts[record->type], (uint8_t *)(record + 1), record->length, event);
}

bool held_events__take(struct held_events *held, struct stream_event *event)
{
	struct chunk *chunk = held->first;
	struct record *record;

	if (chunk && held->given == chunk->used) {
		held->first = chunk->next;
		if (!held->first)
			held->last = NULL;
		held->bytes -= sizeof(*chunk) + chunk->size + CAPTURE_SLACK;
		held->given = 0;
		free(chunk);
		chunk = held->first;
	}
	if (!chunk)
		return false;
	record = (struct record *)(chunk->bytes + held->given);
	held->given += padded(record->length);
	decode(held, record, event);
	return true;
}

int held_events__put(struct held_events *held, uint64_t end_ns, struct stream_sink *sink)
{
	struct chunk *chunk = held->first, *next;
	struct stream_event event;
	size_t at = held->given;
	int ret = 0;

	held->first = held->last = NULL;
	held->given = 0;
	held->bytes = 0;
	held->undated_count = 0;
	for (; chunk; chunk = next, at = 0) {
		while (!ret && at < chunk->used) {
			struct record *record = (struct record *)(chunk->bytes + at), *moved;
			size_t size = padded(record->length);

			at += size;
			if (record->time_ns < end_ns) {
				decode(held, record, &event);
				ret = stream__put(sink, &event);
				continue;
			}
			moved = append(held, size);
			if (moved)
				memcpy(moved, record, size);
			ret = moved ? note_undated(held, moved) : -ENOMEM;
		}
		next = chunk->next;
		free(chunk);
	}
	return ret;
}

int held_events__each(struct held_events *held,
		      int (*seen)(void *arg, const struct stream_event *event, uint64_t time_ns), void *arg)
{
	struct stream_event event;
	size_t at = held->given;

	for (struct chunk *chunk = held->first; chunk; chunk = chunk->next, at = 0) {
		while (at < chunk->used) {
			struct record *record = (struct record *)(chunk->bytes + at);
			int ret;

			decode(held, record, &event);
			ret = seen(arg, &event, record->time_ns);
			if (ret)
				return ret;
			at += padded(record->length);
		}
	}
	return 0;
}

struct held_event *held_events__pack(struct held_events *held, const struct stream_event *event)
{
	struct held_event *packed;

	held->payload.length = 0;
	capture__encode(&held->payload, event);
	if (held->payload.failed)
		return NULL;
	packed = calloc(1, sizeof(*packed) + held->payload.length + CAPTURE_SLACK);
	if (!packed)
		return NULL;
	packed->type = event->type;
	packed->length = (uint32_t)held->payload.length;
	memcpy(packed->payload, held->payload.data, packed->length);
	return packed;
}

void held_events__unpack(struct held_events *held, struct held_event *packed, struct stream_event *event)
{
	memset(event, 0, sizeof(*event));
	event->type = packed->type;
	capture__decode(&held->layouts[packed->type], packed->payload, packed->length, event);
}

size_t held_events__bytes(const struct held_events *held)
{
	return sizeof(*held) + held->bytes + held->undated_capacity * sizeof(struct record *) + held->payload.capacity;
}
