/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The series of each job by their numbers: what is done for one job does not go through the histories of all. A list
 * belongs to its book, and a checkpoint has none: reading the histories makes the lists again.
 */
#ifndef VAPRO_JOB_SERIES_H
#define VAPRO_JOB_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct series_book;

/* Room of a job for further histories at present (analysis/memory.h). */
enum job_room {
	JOB_ROOM_SHARED, /* as long as there is any */
	JOB_ROOM_NONE,	 /* its user has more than a share, and others need the rest */
	JOB_ROOM_SURE,	 /* its user has less than a share */
};

struct job_series {
	uint32_t *ids;
	size_t count, capacity;
	bool stale; /* out of order, or some were released since */
	enum job_room room;
};

/* Ascending numbers. */
struct series_ids {
	const uint32_t *ids;
	size_t count;
};

/* The series of a job. They stay until a series is added or released. */
struct series_ids job_series__ids(const struct series_book *book, uint32_t job);

/* Adds a series to the list of its job. Returns 0 or -ENOMEM. */
int job_series__add(struct series_book *book, uint32_t job, uint32_t id);

/* Sets the room of a job. Returns 0 or -ENOMEM. */
int job_series__bound(struct series_book *book, uint32_t job, enum job_room room);

bool job_series__full(const struct series_book *book, uint32_t job);

/* Notes that a series of a job was released, or did not come into being. */
void job_series__drop(struct series_book *book, uint32_t job);

/* Gives back the list of a job, none of whose series is left. */
void job_series__forget(struct series_book *book, uint32_t job);

void job_series__clear(struct series_book *book);

/* Bytes held. */
size_t job_series__bytes(const struct series_book *book);

#endif
