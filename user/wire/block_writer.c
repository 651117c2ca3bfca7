// SPDX-License-Identifier: GPL-2.0-or-later
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/grow.h"
#include "base/table.h"
#include "base/text.h"
#include "capture/crc.h"
#include "wire/announcements.h"
#include "wire/block_private.h"

#define LEVEL 3 /* of zstd: higher ones save some per cent for several times the CPU time */

/* Where a thread or a state was announced: in the current block if number is the block's, and index among its. */
struct mark {
	uint64_t block; /* its sequence + 1 */
	uint32_t index;
};

struct block_writer {
	struct block_head head; /* of the current block */
	struct announcements *announced;
	struct capture_buffer records;
	struct mark *threads, *states;
	size_t thread_capacity, state_capacity;
	uint32_t thread_count, state_count; /* announced in this block */
	struct table *sites;		    /* places in code of all states of the job, by hash */
	struct stream_clock clock;	    /* latest in this block */
	uint64_t begun_ns, fragments, named;
	bool introduce; /* this block has an introduction */
	bool repeat;	/* and what the blocks before it announced may be lost */
	bool dropped;	/* blocks were dropped since it was begun */
};

struct block_writer *block_writer__new(const struct block_identity *identity, struct announcements *announced)
{
	struct block_writer *writer = calloc(1, sizeof(*writer));

	if (!writer)
		return NULL;
	writer->sites = table__new();
	if (!writer->sites) {
		free(writer);
		return NULL;
	}
	writer->announced = announced;
	writer->head.job = identity->job;
	writer->head.run = identity->run;
	writer->head.tables = block__tables();
	snprintf(writer->head.host, sizeof(writer->head.host), "%s", identity->host);
	return writer;
}

void block_writer__free(struct block_writer *writer)
{
	if (!writer)
		return;
	table__free(writer->sites);
	free(writer->records.data);
	free(writer->threads);
	free(writer->states);
	free(writer);
}

static void add_record(struct block_writer *writer, const struct stream_event *event)
{
	struct capture_buffer *buffer = &writer->records;
	size_t start = buffer->length;
	uint32_t length;

	capture_buffer__add_u32(buffer, event->type);
	capture_buffer__add_u32(buffer, 0);
	capture__encode(buffer, event);
	if (buffer->failed)
		return;
	length = htole32((uint32_t)(buffer->length - start - BLOCK_RECORD_HEAD));
	memcpy(buffer->data + start + 4, &length, sizeof(length));
	writer->head.events++;
}

/* Begins a block with the clock, and where it has an introduction with what is known of that. */
static void begin(struct block_writer *writer, uint64_t now_ns)
{
	const struct vapro_host_clock *host_clock = announcements__host_clock(writer->announced);
	struct stream_event event = {.type = STREAM_CLOCK};

	writer->begun_ns = now_ns;
	writer->introduce = !(writer->head.sequence % BLOCK_INTRODUCTION_EVERY) || writer->dropped;
	writer->repeat = writer->dropped;
	writer->dropped = false;
	writer->clock = event.clock = announcements__clock(writer->announced);
	add_record(writer, &event);
	if (writer->introduce && host_clock) {
		event = (struct stream_event){.type = STREAM_HOST_CLOCK, .host_clock = *host_clock};
		add_record(writer, &event);
	}
}

/* Returns the thread's number in the block, and announces it if it has none. UINT32_MAX: unknown, or out of memory. */
static uint32_t thread_in_block(struct block_writer *writer, uint32_t id)
{
	const struct vapro_thread *thread = announcements__thread(writer->announced, id);
	const struct vapro_place *place = announcements__place(writer->announced, id);
	const struct stream_seen *seen = announcements__seen(writer->announced, id);
	struct stream_event event = {.type = STREAM_THREAD};
	struct mark *mark;

	if (!thread || grow(&writer->threads, &writer->thread_capacity, (size_t)id + 1, sizeof(*mark)))
		return UINT32_MAX;
	mark = &writer->threads[id];
	if (mark->block == writer->head.sequence + 1 && mark->index < writer->thread_count)
		return mark->index;
	*mark = (struct mark){writer->head.sequence + 1, writer->thread_count++};
	event.thread = *thread;
	add_record(writer, &event);
	if (writer->introduce && place) {
		event = (struct stream_event){.type = STREAM_PLACE, .place = *place};
		event.place.thread = mark->index;
		add_record(writer, &event);
	}
	if (writer->repeat && seen) {
		event = (struct stream_event){.type = STREAM_SEEN, .seen = *seen};
		event.seen.thread = mark->index;
		event.seen.to_ns = 0; /* its end is an event of its own */
		if (!seen->to_ns)
			add_record(writer, &event);
	}
	return mark->index;
}

/* Calls back for each place in code of a text: the call-site and the callers that it is hopped to. */
static int each_site(struct block_writer *writer, const char *text,
		     int (*call)(struct block_writer *writer, const char *site))
{
	char site[1024];
	int ret = 0;

	while (text && !ret) {
		const char *next = strstr(text, SITE_CALLED_BY);
		size_t length = next ? (size_t)(next - text) : strlen(text);

		if (length < sizeof(site)) {
			memcpy(site, text, length);
			site[length] = 0;
			ret = call(writer, site);
		}
		text = next ? next + sizeof(SITE_CALLED_BY) - 1 : NULL;
	}
	return ret;
}

static int repeat_names(struct block_writer *writer, const char *site)
{
	size_t count;
	const struct stream_name *names = announcements__names(writer->announced, site, &count);

	for (size_t i = 0; i < count; i++)
		add_record(writer, &(struct stream_event){.type = STREAM_NAME, .name = names[i]});
	return 0;
}

/* Notes that the job has this place in code; what is known of it is new for the job. */
static int note_site(struct block_writer *writer, const char *site)
{
	uint64_t hash = text__hash(site, strlen(site));
	uint32_t ignored;

	if (table__get(writer->sites, hash, 0, &ignored))
		return writer->introduce ? repeat_names(writer, site) : 0;
	if (table__put(writer->sites, hash, 0, 1))
		return -ENOMEM;
	return repeat_names(writer, site);
}

static bool has_site(const struct block_writer *writer, const char *site)
{
	size_t length = strcspn(site, "<");
	uint32_t ignored;

	/* a hop names a call-site with its callers: the job has the call-site */
	if (site[length] && length && site[length - 1] == ' ')
		length--;
	return table__get(writer->sites, text__hash(site, strlen(site)), 0, &ignored) ||
	       table__get(writer->sites, text__hash(site, length), 0, &ignored);
}

static uint32_t state_in_block(struct block_writer *writer, uint32_t id)
{
	const struct vapro_state *state = announcements__state(writer->announced, id);
	struct stream_event event = {.type = STREAM_STATE};
	struct mark *mark;

	if (!state || grow(&writer->states, &writer->state_capacity, (size_t)id + 1, sizeof(*mark)))
		return UINT32_MAX;
	mark = &writer->states[id];
	if (mark->block == writer->head.sequence + 1 && mark->index < writer->state_count)
		return mark->index;
	*mark = (struct mark){writer->head.sequence + 1, writer->state_count++};
	event.state = *state;
	add_record(writer, &event);
	if (each_site(writer, state->from, note_site) || each_site(writer, state->to, note_site))
		return UINT32_MAX;
	return mark->index;
}

/* Adds the record with what it needs. Returns 0 or -ENOMEM. */
static int add_event(struct block_writer *writer, const struct stream_event *event)
{
	struct stream_event copy = *event;
	uint32_t *thread = block__thread_of(&copy), *state = block__state_of(&copy);

	if (event->type == STREAM_CLOCK)
		writer->clock = event->clock;
	if (event->type == STREAM_THREAD)
		return thread_in_block(writer, event->thread.id) == UINT32_MAX ? -ENOMEM : 0;
	if (thread) {
		*thread = thread_in_block(writer, *thread);
		if (*thread == UINT32_MAX)
			return -ENOMEM;
	}
	if (state) {
		*state = state_in_block(writer, *state);
		if (*state == UINT32_MAX)
			return -ENOMEM;
	}
	if (event->type == STREAM_INSIDE && each_site(writer, event->inside.site, note_site))
		return -ENOMEM;
	add_record(writer, &copy);
	return writer->records.failed ? -ENOMEM : 0;
}

/* Whether the block may also hold an event that ends then. */
static bool spans(const struct block_writer *writer, uint64_t end_ns)
{
	const struct block_head *head = &writer->head;

	return !end_ns || !head->last_ns ||
	       (end_ns + BLOCK_SPAN_NS >= head->last_ns && head->first_ns + BLOCK_SPAN_NS >= end_ns);
}

static void note_times(struct block_writer *writer, const struct stream_event *event, uint64_t end_ns)
{
	struct block_head *head = &writer->head;

	if (end_ns && (!head->first_ns || end_ns < head->first_ns))
		head->first_ns = end_ns;
	if (end_ns > head->last_ns)
		head->last_ns = end_ns;
	if (event->type == STREAM_WINDOW && event->window.end_ns > head->through_ns)
		head->through_ns = event->window.end_ns;
	if (event->type == STREAM_BUNDLE)
		writer->fragments += event->bundle.n;
	if (event->type == STREAM_FACTS)
		writer->named += event->facts.lost[VAPRO_LOST_PUBLISHED];
}

int block_writer__put(struct block_writer *writer, const struct stream_event *event, uint64_t now_ns)
{
	uint32_t threads = writer->thread_count, states = writer->state_count, events = writer->head.events;
	struct stream_clock clock = writer->records.length ? writer->clock : announcements__clock(writer->announced);
	size_t length = writer->records.length;
	uint64_t end_ns;
	int ret;

	if (event->type == STREAM_STATE || (event->type == STREAM_CLOCK && !length))
		return 0; /* a state is announced when it is used, a block begins with the clock */
	if ((event->type == STREAM_NAME && !has_site(writer, event->name.site)) ||
	    (event->type == STREAM_HOP && !has_site(writer, event->hop.site)))
		return 0;
	if (block__check(event, &clock, &end_ns))
		return -EINVAL;
	if (length && !spans(writer, end_ns))
		return -ENOBUFS;
	if (!length)
		begin(writer, now_ns);
	ret = add_event(writer, event);
	if (!ret && writer->records.length > BLOCK_RECORDS_MAX)
		ret = length ? -ENOBUFS : -E2BIG;
	if (!ret) {
		note_times(writer, event, end_ns);
		return 0;
	}
	/* back to what it was: marks beyond the counts are void */
	writer->records.length = length;
	writer->records.failed = false;
	writer->thread_count = threads;
	writer->state_count = states;
	writer->head.events = events;
	writer->clock = clock;
	return ret;
}

bool block_writer__ready(const struct block_writer *writer, uint64_t now_ns)
{
	return writer->records.length >= BLOCK_READY_BYTES ||
	       (writer->records.length && now_ns >= writer->begun_ns + BLOCK_READY_NS);
}

static void add_part(struct capture_buffer *raw, const char *text, size_t length)
{
	capture_buffer__add_u32(raw, (uint32_t)length);
	capture_buffer__add(raw, text, length);
}

/* Adds the introduction; a text that no block can hold is left out. */
static void introduce(const struct block_writer *writer, struct capture_buffer *raw)
{
	const char *const texts[] = {block__tables_text(), announcements__tunables(writer->announced),
				     announcements__hello(writer->announced)};
	size_t room = BLOCK_RAW_MAX - BLOCK_RECORDS_MAX - 3 * sizeof(uint32_t);

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		size_t length = texts[i] ? strlen(texts[i]) : 0;

		if (length > room)
			length = 0;
		room -= length;
		add_part(raw, texts[i], length);
	}
}

/* Compresses to a block with its head. Returns 0 or -ENOMEM. */
static int pack(struct block_head *head, const struct capture_buffer *raw, struct block *block)
{
	size_t bound = ZSTD_compressBound(raw->length), packed = 0;
	ZSTD_CCtx *context = ZSTD_createCCtx();
	struct capture_buffer out = {0};
	void *frame = malloc(bound);
	bool ok = context && frame && !raw->failed;

	if (ok) {
		ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, LEVEL);
		packed = ZSTD_compress2(context, frame, bound, raw->data, raw->length);
		ok = !ZSTD_isError(packed);
	}
	if (ok) {
		head->raw_bytes = (uint32_t)raw->length;
		head->packed_bytes = (uint32_t)packed;
		head->frame_crc = crc__of(frame, packed);
		block_head__write(&out, head);
		capture_buffer__add(&out, frame, packed);
		ok = !out.failed;
	}
	ZSTD_freeCCtx(context);
	free(frame);
	if (!ok) {
		free(out.data);
		return -ENOMEM;
	}
	block->bytes = out.data;
	block->size = out.length;
	return 0;
}

/* Begins the next block. */
static void next(struct block_writer *writer)
{
	writer->records.length = 0;
	writer->records.failed = false;
	writer->thread_count = writer->state_count = 0;
	writer->fragments = writer->named = 0;
	writer->introduce = writer->repeat = false;
	writer->head.first_ns = writer->head.last_ns = 0;
	writer->head.events = writer->head.flags = 0;
	writer->head.sequence++;
}

int block_writer__finish(struct block_writer *writer, uint32_t flags, struct block *block)
{
	struct capture_buffer raw = {0};
	int ret;

	if (!writer->records.length && !flags)
		return -ENODATA;
	if (!writer->records.length)
		begin(writer, 0);
	writer->head.flags = flags | (writer->introduce ? BLOCK_INTRODUCES : 0);
	if (writer->introduce)
		introduce(writer, &raw);
	capture_buffer__add(&raw, writer->records.data, writer->records.length);
	*block = (struct block){.run = writer->head.run,
				.sequence = writer->head.sequence,
				.fragments = writer->fragments,
				.named = writer->named};
	ret = pack(&writer->head, &raw, block);
	free(raw.data);
	next(writer);
	if (ret)
		block_writer__dropped(writer, 1, block->fragments);
	return ret;
}

void block_writer__dropped(struct block_writer *writer, uint64_t blocks, uint64_t fragments)
{
	writer->head.dropped_blocks += blocks;
	writer->head.dropped_fragments += fragments;
	writer->dropped = true;
}
