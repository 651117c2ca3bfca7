/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Blocks: events of one job of one vaprod run, packed so that each can be read alone (docs/publishing.md). A block
 * announces every thread and every state that its events use, so blocks may be lost, late, repeated or in any order.
 *
 * Layout, little endian: a head (magic, sizes, identity, times, a CRC-32 of all of it), then one zstd frame. The
 * frame holds, where the head says so, an introduction {u32 length, text} x 3: columns of all records as JSON, as the
 * head of a capture has them; tunables in force as JSON; the line `hello`. Records follow as in a capture
 * (capture_format.h), without their checksums: the head has one of
 * the frame. Their threads and states are numbers within the
 * block, from 0 in order of announcement; the announcement has the run's own id.
 *
 * The first block of a run has an introduction, so has each BLOCK_INTRODUCTION_EVERY-th, and the first one after a
 * drop. A reader whose columns are the same (digest) needs none to decode a block.
 */
#ifndef VAPRO_WIRE_BLOCK_H
#define VAPRO_WIRE_BLOCK_H

#include "capture/stream.h"
#include "wire/subject.h"

#define BLOCK_MAGIC "vapro-wire/1"
#define BLOCK_READY_BYTES (64U << 10) /* of records: a block is ready from here on */
#define BLOCK_READY_NS 1000000000ULL  /* or this long after its first event */
#define BLOCK_RAW_MAX (768U << 10)    /* of a block's frame; a broker accepts 1 MiB by default */
#define BLOCK_BYTES_MAX (1000U << 10) /* of a whole block */
#define BLOCK_INTRODUCTION_EVERY 60
#define BLOCK_TIME_MAX (1ULL << 62)

enum block_flag {
	BLOCK_INTRODUCES = 1 << 0, /* has an introduction */
	BLOCK_LAST = 1 << 1,	   /* no block of this run and job follows */
};

struct block_head {
	uint64_t tables; /* digest of the columns */
	uint64_t run;	 /* random, of this job in this run of vaprod */
	uint64_t sequence;
	uint64_t first_ns, last_ns; /* UTC: ends of the first and the last event; 0 where no event has a time */
	uint64_t through_ns;	    /* UTC: all that ended before is in this block or an earlier one; 0 unknown */
	/* blocks of this run that the node discarded, and the fragments in them, since the start */
	uint64_t dropped_blocks, dropped_fragments;
	uint32_t flags, events;
	uint32_t raw_bytes, packed_bytes;
	uint32_t frame_crc; /* of the packed bytes */
	struct wire_job job;
	char host[WIRE_TEXT_MAX];
};

/*
 * Reads the head alone. Returns 0; -EPROTO for a version that this program does not know; -EBADMSG for what is no
 * block or is damaged. err has a sentence that names the host as far as it can be read.
 */
int block__head(struct block_head *head, const void *bytes, size_t size, char *err, size_t err_size);

/* The digest of this program's columns, and their text. The text lives as long as the program; NULL: out of memory. */
uint64_t block__tables(void);
const char *block__tables_text(void);

/*
 * Reads the blocks of one run (struct block_head: run), in any order; it remembers the run's introduction, and the
 * columns where they are not this program's own.
 */
struct block_reader;

struct block_reader *block_reader__new(void);
void block_reader__free(struct block_reader *reader);

/*
 * Puts a block's events into sink, in their order. Threads and states have the run's ids, which need not be dense, and
 * are announced in each block again; so may be places and names (the latest state is repeated with an introduction).
 * Times are the node's CLOCK_MONOTONIC; each block begins with a STREAM_CLOCK. The line `hello` is
 * block_reader__hello(), no event. A refused block puts nothing.
 *
 * Returns 0; -EAGAIN where the columns are others and no introduction of this run was read yet (the caller may hold the
 * block until one was); -EPROTO and -EBADMSG as block__head(), also for a frame that is larger than the head says, an
 * unknown thread, or a time outside the head's; -ENOMEM; or the sink's error. Errors but the sink's have a sentence
 * with the host.
 */
int block_reader__read(struct block_reader *reader, const void *bytes, size_t size, struct block_head *head,
		       struct stream_sink *sink, char *err, size_t err_size);

/* Texts of the latest introduction read, NULL before the first; valid until the next read. */
const char *block_reader__tunables(const struct block_reader *reader);
const char *block_reader__hello(const struct block_reader *reader);

/*
 * The columns of the run, as an introduction has them, and what another reader of the same run needs to go on: that
 * text and the two above, each may be NULL. Returns 0, -EBADMSG for columns that are none, or -ENOMEM.
 */
const char *block_reader__columns(const struct block_reader *reader);
int block_reader__introduce(struct block_reader *reader, const char *columns, const char *tunables, const char *hello);

/* What the blocks of a run share, and announce again. */
struct announcements;

/* Packs the events of one job. */
struct block_writer;

struct block_identity {
	struct wire_job job;
	const char *host;
	uint64_t run;
};

/* announced outlives the writer. Returns NULL when out of memory. */
struct block_writer *block_writer__new(const struct block_identity *identity, struct announcements *announced);
void block_writer__free(struct block_writer *writer);

/*
 * Adds an event of the run; its thread and state must be among the announcements. Returns 0; -EINVAL for a time or
 * a value that is impossible; -E2BIG for an event that no block can hold; -ENOBUFS where this block is full: finish it
 * and put the event again; or -ENOMEM.
 */
int block_writer__put(struct block_writer *writer, const struct stream_event *event, uint64_t now_ns);

/* Whether the block is due: large enough, or its first event is BLOCK_READY_NS old. An empty one is never due. */
bool block_writer__ready(const struct block_writer *writer, uint64_t now_ns);

/* A finished block. */
struct block {
	void *bytes; /* the caller frees them */
	size_t size;
	uint64_t run, sequence;
	uint64_t fragments; /* in its bundles */
	uint64_t named;	    /* fragments that its facts name as lost in earlier blocks */
};

/* Blocks of a run that were discarded after they were packed; sums of the above. */
struct block_drop {
	uint64_t run, blocks, fragments, named;
};

/*
 * Packs what was put since the last block and begins the next; flags are of enum block_flag. Returns 0, -ENODATA where
 * there is nothing and no flag, or -ENOMEM (the events are lost, and counted as dropped).
 */
int block_writer__finish(struct block_writer *writer, uint32_t flags, struct block *block);

/* Adds to the counts of drops in the heads to come; the next block has an introduction. */
void block_writer__dropped(struct block_writer *writer, uint64_t blocks, uint64_t fragments);

#endif
