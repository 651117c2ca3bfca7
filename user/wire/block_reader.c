// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/grow.h"
#include "base/text.h"
#include "capture/capture_check.h"
#include "capture/capture_head.h"
#include "capture/crc.h"
#include "wire/block_private.h"

/* How records map to events of ours. */
struct tables {
	struct capture_layout layouts[CAPTURE_TYPES];
	uint32_t type_of[CAPTURE_TYPES]; /* a block's type to ours */
};

struct block_reader {
	struct tables *own, *foreign; /* foreign: the run's, where its columns are others */
	char *columns;		      /* text of the foreign ones */
	char *tunables, *hello;
	uint8_t *raw; /* of the current block, with CAPTURE_SLACK bytes after it */
	uint32_t *threads, *states;
	size_t thread_capacity, state_capacity;
};

/* One pass over the records of a block. */
struct pass {
	struct block_reader *reader;
	const struct block_head *head;
	const struct tables *tables;
	struct stream_sink *sink; /* NULL: checks only */
	struct stream_clock clock;
	uint32_t threads, states, events;
};

static const char *read_tables(struct tables *tables, const char *text, size_t length)
{
	cJSON *records = cJSON_ParseWithLength(text, length);
	const char *wrong = cJSON_IsObject(records)
				? capture_head__read_tables(records, tables->layouts, tables->type_of)
				: "its columns are no JSON";

	cJSON_Delete(records);
	return wrong;
}

struct block_reader *block_reader__new(void)
{
	struct block_reader *reader = calloc(1, sizeof(*reader));
	const char *text = block__tables_text();

	if (!reader)
		return NULL;
	reader->own = calloc(1, sizeof(*reader->own));
	if (reader->own && text && !read_tables(reader->own, text, strlen(text)))
		return reader;
	block_reader__free(reader);
	return NULL;
}

void block_reader__free(struct block_reader *reader)
{
	if (!reader)
		return;
	free(reader->own);
	free(reader->foreign);
	free(reader->columns);
	free(reader->tunables);
	free(reader->hello);
	free(reader->raw);
	free(reader->threads);
	free(reader->states);
	free(reader);
}

const char *block_reader__tunables(const struct block_reader *reader)
{
	return reader->tunables;
}

const char *block_reader__hello(const struct block_reader *reader)
{
	return reader->hello;
}

const char *block_reader__columns(const struct block_reader *reader)
{
	return reader->columns ? reader->columns : block__tables_text();
}

static uint32_t word_at(const uint8_t *bytes)
{
	uint32_t word;

	memcpy(&word, bytes, sizeof(word));
	return le32toh(word);
}

static bool is_same(const char *text, const char *of_head)
{
	return !strncmp(text, of_head, WIRE_TEXT_MAX - 1);
}

/* Returns what no honest node sends, or NULL. */
static const char *check(struct pass *pass, struct stream_event *event)
{
	const char *wrong = capture__check(event, pass->threads, pass->states);
	const struct block_head *head = pass->head;
	uint64_t end_ns;

	if (!wrong)
		wrong = block__check(event, &pass->clock, &end_ns);
	if (wrong)
		return wrong;
	if (!pass->events && event->type != STREAM_CLOCK)
		return "it does not begin with the clock";
	if (event->type == STREAM_THREAD &&
	    (!is_same(event->thread.host, head->host) || !is_same(event->thread.job, head->job.job) ||
	     event->thread.user != head->job.user))
		return "a thread is of another job or host";
	if (event->type == STREAM_FACTS &&
	    (!is_same(event->facts.job, head->job.job) || event->facts.user != head->job.user))
		return "facts are of another job";
	if (end_ns && (end_ns < head->first_ns || end_ns > head->last_ns))
		return "a time lies outside of the block's";
	return NULL;
}

/* Notes the run's id of an announced thread or state. Returns 0 or -ENOMEM. */
static int announce(uint32_t **ids, size_t *capacity, uint32_t *count, uint32_t id)
{
	if (grow(ids, capacity, (size_t)*count + 1, sizeof(**ids)))
		return -ENOMEM;
	(*ids)[(*count)++] = id;
	return 0;
}

/* Checks an event or puts it. Returns 0, -EBADMSG with what is wrong, or another negative errno. */
static int pass_event(struct pass *pass, struct stream_event *event, const char **wrong)
{
	struct block_reader *reader = pass->reader;
	uint32_t *thread = block__thread_of(event), *state = block__state_of(event);
	int ret = 0;

	if (!pass->sink) {
		*wrong = check(pass, event);
		if (*wrong)
			return -EBADMSG;
	}
	pass->events++;
	if (event->type == STREAM_CLOCK)
		pass->clock = event->clock;
	if (event->type == STREAM_THREAD)
		ret = announce(&reader->threads, &reader->thread_capacity, &pass->threads, event->thread.id);
	if (event->type == STREAM_STATE)
		ret = announce(&reader->states, &reader->state_capacity, &pass->states, event->state.id);
	if (ret || !pass->sink)
		return ret;
	if (thread)
		*thread = reader->threads[*thread];
	if (state)
		*state = reader->states[*state];
	return stream__put(pass->sink, event);
}

/* Reads all records once. As pass_event(). */
static int read_records(struct pass *pass, uint8_t *at, const uint8_t *end, const char **wrong)
{
	while (at < end) {
		struct stream_event event;
		uint32_t type, length;
		int ret;

		*wrong = "a record is cut";
		if (end - at < BLOCK_RECORD_HEAD)
			return -EBADMSG;
		type = word_at(at);
		length = word_at(at + 4);
		at += BLOCK_RECORD_HEAD;
		if (length > (size_t)(end - at))
			return -EBADMSG;
		if (type < CAPTURE_TYPES && pass->tables->type_of[type]) {
			event.type = pass->tables->type_of[type];
			memset((char *)&event + offsetof(struct stream_event, line), 0,
			       capture_tables[event.type].bytes);
			*wrong = capture__decode(&pass->tables->layouts[event.type], at, length, &event);
			if (*wrong)
				return -EBADMSG;
			ret = pass_event(pass, &event, wrong);
			if (ret)
				return ret;
		}
		at += length;
	}
	*wrong = NULL;
	return 0;
}

/* The parts of an introduction, in place; the records follow. */
struct introduction {
	const char *text[3]; /* tables, tunables, hello */
	size_t length[3];
};

/* Returns the byte after the introduction, or NULL where it is cut. */
static uint8_t *read_introduction(struct introduction *introduction, uint8_t *at, const uint8_t *end)
{
	for (int i = 0; i < 3; i++) {
		if (end - at < 4)
			return NULL;
		introduction->length[i] = word_at(at);
		at += 4;
		if (introduction->length[i] > (size_t)(end - at))
			return NULL;
		introduction->text[i] = (const char *)at;
		at += introduction->length[i];
	}
	return at;
}

static int replace(char **text, const char *bytes, size_t length)
{
	char *copy = strndup(bytes, length);

	if (!copy)
		return -ENOMEM;
	free(*text);
	*text = copy;
	return 0;
}

/* Takes over columns that are not the own ones. Returns 0, -EBADMSG with what is wrong, or -ENOMEM. */
static int set_foreign(struct block_reader *reader, const char *text, size_t length, const char **wrong)
{
	struct tables *foreign = calloc(1, sizeof(*foreign));

	if (!foreign)
		return -ENOMEM;
	*wrong = read_tables(foreign, text, length);
	if (*wrong || replace(&reader->columns, text, length)) {
		free(foreign);
		return *wrong ? -EBADMSG : -ENOMEM;
	}
	free(reader->foreign);
	reader->foreign = foreign;
	return 0;
}

/* Chooses how the block's records are read. Returns 0, -EAGAIN, -EBADMSG with what is wrong, or -ENOMEM. */
static int choose_tables(struct pass *pass, const struct introduction *introduction, const char **wrong)
{
	struct block_reader *reader = pass->reader;
	const char *text = introduction->text[0];
	size_t length = introduction->length[0];
	int ret;

	pass->tables = reader->own;
	if (pass->head->tables == block__tables())
		return 0;
	if (length) {
		*wrong =
		    text__hash(text, length) == pass->head->tables ? NULL : "its columns are not those of its digest";
		if (*wrong)
			return -EBADMSG;
		ret = set_foreign(reader, text, length, wrong);
		if (ret)
			return ret;
	}
	pass->tables = reader->foreign;
	return pass->tables ? 0 : -EAGAIN;
}

/* Returns the records after unpacking, NULL with an errno and what is wrong. */
static uint8_t *unpack(struct block_reader *reader, const struct block_head *head, const uint8_t *frame,
		       const char **wrong, int *ret)
{
	size_t got;

	*ret = -EBADMSG;
	*wrong = "its frame is damaged, or larger than its head says";
	if (crc__of(frame, head->packed_bytes) != head->frame_crc ||
	    ZSTD_getFrameContentSize(frame, head->packed_bytes) != head->raw_bytes ||
	    ZSTD_findFrameCompressedSize(frame, head->packed_bytes) != head->packed_bytes)
		return NULL;
	free(reader->raw);
	reader->raw = calloc(1, (size_t)head->raw_bytes + CAPTURE_SLACK);
	if (!reader->raw) {
		*ret = -ENOMEM;
		return NULL;
	}
	got = ZSTD_decompress(reader->raw, head->raw_bytes, frame, head->packed_bytes);
	if (ZSTD_isError(got) || got != head->raw_bytes)
		return NULL;
	*ret = 0;
	return reader->raw;
}

static int read_block(struct block_reader *reader, const struct block_head *head, const uint8_t *frame,
		      struct stream_sink *sink, const char **wrong)
{
	struct pass pass = {.reader = reader, .head = head};
	struct introduction introduction = {0};
	const uint8_t *end;
	uint8_t *records;
	int ret;

	records = unpack(reader, head, frame, wrong, &ret);
	if (ret)
		return ret;
	end = reader->raw + head->raw_bytes;
	if (head->flags & BLOCK_INTRODUCES)
		records = read_introduction(&introduction, records, end);
	*wrong = "its introduction is cut";
	if (!records)
		return -EBADMSG;
	ret = choose_tables(&pass, &introduction, wrong);
	if (!ret)
		ret = read_records(&pass, records, end, wrong);
	if (ret)
		return ret;
	if (head->flags & BLOCK_INTRODUCES) {
		ret = replace(&reader->tunables, introduction.text[1], introduction.length[1]);
		if (!ret && introduction.length[2])
			ret = replace(&reader->hello, introduction.text[2], introduction.length[2]);
	}
	if (ret || !sink)
		return ret;
	pass = (struct pass){.reader = reader, .head = head, .tables = pass.tables, .sink = sink};
	return read_records(&pass, records, end, wrong);
}

int block_reader__read(struct block_reader *reader, const void *bytes, size_t size, struct block_head *head,
		       struct stream_sink *sink, char *err, size_t err_size)
{
	const char *wrong = NULL;
	int ret;

	ret = block__head(head, bytes, size, err, err_size);
	if (ret)
		return ret;
	ret = read_block(reader, head, (const uint8_t *)bytes + block_head__bytes(bytes), sink, &wrong);
	if (ret == -EAGAIN)
		snprintf(err, err_size,
			 "block %llu of host %.64s has columns of another version, which a later block explains",
			 (unsigned long long)head->sequence, head->host);
	else if (ret == -ENOMEM)
		snprintf(err, err_size, "block %llu of host %.64s: out of memory", (unsigned long long)head->sequence,
			 head->host);
	else if (ret == -EBADMSG && wrong)
		snprintf(err, err_size, "block %llu of host %.64s is refused: %s", (unsigned long long)head->sequence,
			 head->host, wrong);
	return ret;
}

int block_reader__introduce(struct block_reader *reader, const char *columns, const char *tunables, const char *hello)
{
	const char *wrong;
	int ret = 0;

	if (columns && text__hash(columns, strlen(columns)) != block__tables())
		ret = set_foreign(reader, columns, strlen(columns), &wrong);
	if (!ret && tunables)
		ret = replace(&reader->tunables, tunables, strlen(tunables));
	if (!ret && hello)
		ret = replace(&reader->hello, hello, strlen(hello));
	return ret;
}
