/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the writer and the reader of blocks share; only they include it. */
#ifndef VAPRO_WIRE_BLOCK_PRIVATE_H
#define VAPRO_WIRE_BLOCK_PRIVATE_H

#include "capture/capture_format.h"
#include "wire/block.h"

#define BLOCK_RECORDS_MAX (512U << 10)		  /* of records; the rest of BLOCK_RAW_MAX is for an introduction */
#define BLOCK_RECORD_HEAD 8			  /* type and length */
#define BLOCK_HEAD_MAX 4096			  /* a head of this version has at most 1,100 bytes */
#define BLOCK_SPAN_NS 86400000000000ULL		  /* from the first to the last end in one block */
#define BLOCK_LONGEST_NS (90 * 86400000000000ULL) /* from an event's start to its end */

/* Writes a head; packed_bytes and raw_bytes are set. */
void block_head__write(struct capture_buffer *buffer, const struct block_head *head);

/* Length of a head that block__head() accepted. */
size_t block_head__bytes(const void *bytes);

/* UTC ns of an event's end, 0 where it has none. Returns what makes its times or values impossible, or NULL. */
const char *block__check(const struct stream_event *event, const struct stream_clock *clock, uint64_t *end_ns);

/* Where an event holds the number of its thread, NULL where it has none. */
uint32_t *block__thread_of(struct stream_event *event);

/* The same of its state. */
uint32_t *block__state_of(struct stream_event *event);

#endif
