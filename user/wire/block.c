// SPDX-License-Identifier: GPL-2.0-or-later
/* Heads of blocks, and what writer and reader have in common. */
#include <endian.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/capture_head.h"
#include "base/text.h"
#include "capture/crc.h"
#include "wire/block_private.h"

#define MAGIC_BYTES 16 /* padded by NULs */
#define MAGIC_FAMILY "vapro-wire/"
#define CRC_BYTES 4
#define LONGEST_SHOWN 64 /* letters of a host in a sentence */

static pthread_once_t tables_once = PTHREAD_ONCE_INIT;
static char *tables_text;

static void make_tables(void)
{
	cJSON *tables = capture_head__tables();

	tables_text = cJSON_PrintUnformatted(tables);
	cJSON_Delete(tables);
}

const char *block__tables_text(void)
{
	pthread_once(&tables_once, make_tables);
	return tables_text;
}

uint64_t block__tables(void)
{
	const char *text = block__tables_text();

	return text ? text__hash(text, strlen(text)) : 0;
}

static void add_u16(struct capture_buffer *buffer, uint16_t value)
{
	value = htole16(value);
	capture_buffer__add(buffer, &value, sizeof(value));
}

static void add_u64(struct capture_buffer *buffer, uint64_t value)
{
	value = htole64(value);
	capture_buffer__add(buffer, &value, sizeof(value));
}

static void add_text(struct capture_buffer *buffer, const char *text)
{
	size_t length = strnlen(text, WIRE_TEXT_MAX - 1);

	add_u16(buffer, (uint16_t)length);
	capture_buffer__add(buffer, text, length);
}

/* Magic, length and host lie in the same place in every version, so that a refusal can name both. */
void block_head__write(struct capture_buffer *buffer, const struct block_head *head)
{
	static const char magic[MAGIC_BYTES] = BLOCK_MAGIC;
	size_t start = buffer->length;
	uint32_t length;

	capture_buffer__add(buffer, magic, sizeof(magic));
	capture_buffer__add_u32(buffer, 0);
	add_text(buffer, head->host);
	add_u64(buffer, head->tables);
	add_u64(buffer, head->run);
	add_u64(buffer, head->sequence);
	add_u64(buffer, head->first_ns);
	add_u64(buffer, head->last_ns);
	add_u64(buffer, head->through_ns);
	add_u64(buffer, head->dropped_blocks);
	add_u64(buffer, head->dropped_fragments);
	capture_buffer__add_u32(buffer, head->flags);
	capture_buffer__add_u32(buffer, head->events);
	capture_buffer__add_u32(buffer, head->raw_bytes);
	capture_buffer__add_u32(buffer, head->packed_bytes);
	capture_buffer__add_u32(buffer, head->frame_crc);
	capture_buffer__add_u32(buffer, head->job.user);
	add_text(buffer, head->job.cluster);
	add_text(buffer, head->job.job);
	if (buffer->failed)
		return;
	length = htole32((uint32_t)(buffer->length - start + CRC_BYTES));
	memcpy(buffer->data + start + MAGIC_BYTES, &length, sizeof(length));
	capture_buffer__add_u32(buffer, crc__of(buffer->data + start, buffer->length - start));
}

/* Bytes of a head that were not read yet; failed once there were too few. */
struct taker {
	const uint8_t *at;
	size_t left;
	bool failed;
};

static uint64_t take(struct taker *taker, size_t bytes)
{
	uint64_t value = 0;

	if (taker->left < bytes) {
		taker->failed = true;
		return 0;
	}
	for (size_t i = 0; i < bytes; i++)
		value |= (uint64_t)taker->at[i] << 8 * i;
	taker->at += bytes;
	taker->left -= bytes;
	return value;
}

/* Text without control characters: it goes into subjects and messages. */
static void take_text(struct taker *taker, char text[WIRE_TEXT_MAX])
{
	size_t length = take(taker, 2);

	text[0] = 0;
	if (taker->failed || length >= WIRE_TEXT_MAX || length > taker->left) {
		taker->failed = true;
		return;
	}
	for (size_t i = 0; i < length; i++)
		taker->failed |= taker->at[i] < ' ' || taker->at[i] == 127;
	if (taker->failed)
		return;
	memcpy(text, taker->at, length);
	text[length] = 0;
	taker->at += length;
	taker->left -= length;
}

static void take_fields(struct taker *taker, struct block_head *head)
{
	head->tables = take(taker, 8);
	head->run = take(taker, 8);
	head->sequence = take(taker, 8);
	head->first_ns = take(taker, 8);
	head->last_ns = take(taker, 8);
	head->through_ns = take(taker, 8);
	head->dropped_blocks = take(taker, 8);
	head->dropped_fragments = take(taker, 8);
	head->flags = (uint32_t)take(taker, 4);
	head->events = (uint32_t)take(taker, 4);
	head->raw_bytes = (uint32_t)take(taker, 4);
	head->packed_bytes = (uint32_t)take(taker, 4);
	head->frame_crc = (uint32_t)take(taker, 4);
	head->job.user = (uint32_t)take(taker, 4);
	take_text(taker, head->job.cluster);
	take_text(taker, head->job.job);
}

/* Returns what is wrong with the values of a head whose checksum is right, or NULL. */
static const char *check_values(const struct block_head *head, size_t frame)
{
	if (head->packed_bytes != frame)
		return "its length is not that in its head";
	if (head->raw_bytes > BLOCK_RAW_MAX)
		return "it is larger than a block may be";
	if (head->first_ns > head->last_ns || head->last_ns > BLOCK_TIME_MAX || head->through_ns > BLOCK_TIME_MAX ||
	    head->last_ns - head->first_ns > BLOCK_SPAN_NS)
		return "its times are impossible";
	return NULL;
}

/* Returns 0, or an errno with what is wrong. */
static int read_head(struct block_head *head, const uint8_t *bytes, size_t size, const char **wrong)
{
	struct taker taker = {.at = bytes + MAGIC_BYTES, .left = size - MAGIC_BYTES};
	uint32_t length, crc;

	*wrong = "it is no block";
	if (size < MAGIC_BYTES || memcmp(bytes, MAGIC_FAMILY, sizeof(MAGIC_FAMILY) - 1))
		return -EBADMSG;
	length = (uint32_t)take(&taker, 4);
	take_text(&taker, head->host);
	*wrong = NULL; /* the version */
	if (memcmp(bytes, BLOCK_MAGIC, sizeof(BLOCK_MAGIC)))
		return -EPROTO;
	*wrong = "its head is damaged";
	if (taker.failed || length > BLOCK_HEAD_MAX || length > size || length < MAGIC_BYTES + CRC_BYTES)
		return -EBADMSG;
	memcpy(&crc, bytes + length - CRC_BYTES, sizeof(crc));
	taker.left = (size_t)(bytes + length - CRC_BYTES - taker.at);
	if (bytes + length - CRC_BYTES < taker.at || le32toh(crc) != crc__of(bytes, length - CRC_BYTES))
		return -EBADMSG;
	take_fields(&taker, head); /* fields of a later program may follow */
	if (taker.failed)
		return -EBADMSG;
	*wrong = check_values(head, size - length);
	return *wrong ? -EBADMSG : 0;
}

int block__head(struct block_head *head, const void *bytes, size_t size, char *err, size_t err_size)
{
	const char *wrong;
	int ret;

	memset(head, 0, sizeof(*head));
	ret = read_head(head, bytes, size, &wrong);
	if (!ret)
		return 0;
	if (ret == -EPROTO)
		snprintf(err, err_size,
			 "a block of host %.*s has version %.*s, and this program reads version %s: update the older "
			 "of the two",
			 LONGEST_SHOWN, head->host[0] ? head->host : "(unknown)",
			 (int)strnlen((const char *)bytes + sizeof(MAGIC_FAMILY) - 1,
				      MAGIC_BYTES - (sizeof(MAGIC_FAMILY) - 1)),
			 (const char *)bytes + sizeof(MAGIC_FAMILY) - 1, &BLOCK_MAGIC[sizeof(MAGIC_FAMILY) - 1]);
	else
		snprintf(err, err_size, "a block of host %.*s is refused: %s", LONGEST_SHOWN,
			 head->host[0] ? head->host : "(unknown)", wrong);
	return ret;
}

size_t block_head__bytes(const void *bytes)
{
	uint32_t length;

	memcpy(&length, (const char *)bytes + MAGIC_BYTES, sizeof(length));
	return le32toh(length);
}

/* Whether all numbers of a bundle are numbers: sums of a job would else be none. */
static bool is_finite(const struct vapro_bundle *bundle)
{
	for (int i = 0; i < VAPRO_MAGNITUDES; i++) {
		if (!isfinite(bundle->magnitude_min[i]) || !isfinite(bundle->magnitude_max[i]))
			return false;
	}
	for (int i = 0; i < VAPRO_FACTORS; i++) {
		if (!isfinite(bundle->factor[i]))
			return false;
	}
	return true;
}

/* UTC ns of an event's start and end, 0 where it has none. Returns false where a bin is beyond all time. */
static bool times_of(const struct stream_event *event, const struct stream_clock *clock, uint64_t *start_ns,
		     uint64_t *end_ns)
{
	uint64_t offset = clock->utc_ns - clock->mono_ns;

	*start_ns = *end_ns = 0;
	switch (event->type) {
	case STREAM_BUNDLE:
		*start_ns = event->bundle.start_ns + offset;
		*end_ns = event->bundle.end_ns + offset;
		break;
	case STREAM_SEEN:
		*start_ns = event->seen.from_ns ? event->seen.from_ns + offset : 0;
		*end_ns = event->seen.to_ns ? event->seen.to_ns + offset : 0;
		break;
	case STREAM_STAGE:
		*start_ns = event->stage.begin_ns + offset;
		*end_ns = event->stage.end_ns + offset;
		break;
	case STREAM_HOP:
		*start_ns = event->hop.begin_ns + offset;
		*end_ns = event->hop.end_ns + offset;
		break;
	case STREAM_INTERFERENCE:
	case STREAM_ACCOUNT:
		*start_ns = event->type == STREAM_ACCOUNT ? event->account.bin : event->interference.bin;
		if (*start_ns > BLOCK_TIME_MAX / VAPRO_BIN_NS)
			return false;
		*start_ns *= VAPRO_BIN_NS;
		*end_ns = *start_ns + VAPRO_BIN_NS;
		break;
	case STREAM_WINDOW:
		*start_ns = event->window.begin_ns;
		*end_ns = event->window.end_ns;
		break;
	case STREAM_LINE:
	case STREAM_CLOCK:
	case STREAM_THREAD:
	case STREAM_STATE:
	case STREAM_FACTS:
	case STREAM_END:
	case STREAM_PLACE:
	case STREAM_NAME:
	case STREAM_INSIDE:
	case STREAM_HOST_CLOCK:
	case STREAM_GONE:
		break;
	}
	return true;
}

const char *block__check(const struct stream_event *event, const struct stream_clock *clock, uint64_t *end_ns)
{
	uint64_t start_ns;

	if (event->type == STREAM_CLOCK &&
	    (event->clock.utc_ns > BLOCK_TIME_MAX || event->clock.mono_ns > BLOCK_TIME_MAX))
		return "its clock is impossible";
	if (event->type == STREAM_BUNDLE && !is_finite(&event->bundle))
		return "a bundle has a value that is no number";
	if (event->type == STREAM_WINDOW &&
	    (event->window.begin_ns % VAPRO_BIN_NS || event->window.end_ns % VAPRO_BIN_NS))
		return "a window does not end on a bin's border";
	if (!times_of(event, clock, &start_ns, end_ns) ||
	    (*end_ns && (start_ns > *end_ns || *end_ns > BLOCK_TIME_MAX || *end_ns - start_ns > BLOCK_LONGEST_NS)))
		return "a time is impossible";
	return NULL;
}

uint32_t *block__thread_of(struct stream_event *event)
{
	switch (event->type) {
	case STREAM_BUNDLE:
		return &event->bundle.thread;
	case STREAM_SEEN:
		return &event->seen.thread;
	case STREAM_PLACE:
		return &event->place.thread;
	case STREAM_INTERFERENCE:
		return &event->interference.thread;
	case STREAM_ACCOUNT:
		return &event->account.thread;
	case STREAM_INSIDE:
		return &event->inside.thread;
	case STREAM_LINE:
	case STREAM_CLOCK:
	case STREAM_THREAD:
	case STREAM_STATE:
	case STREAM_FACTS:
	case STREAM_WINDOW:
	case STREAM_END:
	case STREAM_STAGE:
	case STREAM_HOP:
	case STREAM_NAME:
	case STREAM_HOST_CLOCK:
	case STREAM_GONE:
		break;
	}
	return NULL;
}

uint32_t *block__state_of(struct stream_event *event)
{
	if (event->type == STREAM_BUNDLE)
		return &event->bundle.state;
	return event->type == STREAM_INSIDE ? &event->inside.state : NULL;
}
