/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The truth log of a test workload: the time of each segment, that is of the code between the return
 * of one MPI or IO call and the start of the next one, logged by the program itself. tools/truth.py
 * compares vaprod's findings with the log.
 *
 *   truth__leave(log);       a call has returned: a segment starts
 *   truth__enter(log, id);   the next call is due: the segment ends and gets its id
 *
 * A record costs two reads of the clock and three stores. Records stay in memory that was touched at
 * start. truth__close() writes them, or truth__flush() where the program calls it (a flush is IO and
 * lies between two segments). Without a directory all functions do nothing.
 *
 * File DIR/NAME.RANK, text: "#" lines (header, "# name ID TEXT", "# io ID"), then lines "ID START_NS DURATION_NS",
 * CLOCK_MONOTONIC. The last line is "# end COUNT": a file without it was cut short.
 */
#ifndef VAPRO_WORKLOAD_TRUTH_H
#define VAPRO_WORKLOAD_TRUTH_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct truth_record {
	uint64_t start_ns;
	uint64_t duration_ns;
	uint32_t id;
};

struct truth {
	FILE *file;
	struct truth_record *records;
	size_t count, capacity;
	uint64_t written, dropped;
	uint64_t start_ns;
};

static inline uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

/* Opens a log; directory NULL: none. capacity: records between flushes; more are counted as dropped. */
static inline void truth__open(struct truth *log, const char *directory, const char *name, int rank, size_t capacity)
{
	char path[4096];

	memset(log, 0, sizeof(*log));
	if (!directory)
		return;
	snprintf(path, sizeof(path), "%s/%s.%d", directory, name, rank);
	log->file = fopen(path, "w");
	if (!log->file) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		exit(1);
	}
	log->records = malloc(capacity * sizeof(*log->records));
	if (!log->records) {
		fprintf(stderr, "%s: no memory for %zu records\n", path, capacity);
		exit(1);
	}
	memset(log->records, 1, capacity * sizeof(*log->records)); /* no page faults later */
	log->capacity = capacity;
	fprintf(log->file, "# vapro truth 1, rank %d, pid %d\n", rank, (int)getpid());
	fprintf(log->file, "# id start_ns duration_ns (CLOCK_MONOTONIC)\n");
	fflush(log->file);
}

static inline void truth__name(struct truth *log, uint32_t id, const char *text)
{
	if (log->file)
		fprintf(log->file, "# name %u %s\n", id, text);
}

/* Marks the call after this segment as file IO: tools/truth.py takes the following gap as the call's time. */
static inline void truth__io(struct truth *log, uint32_t id)
{
	if (log->file)
		fprintf(log->file, "# io %u\n", id);
}

static inline void truth__leave(struct truth *log)
{
	log->start_ns = now_ns();
}

static inline void truth__add(struct truth *log, uint32_t id, uint64_t start_ns, uint64_t end_ns)
{
	struct truth_record *record;

	if (!log->file)
		return;
	if (log->count == log->capacity) {
		log->dropped++;
		return;
	}
	record = &log->records[log->count++];
	record->id = id;
	record->start_ns = start_ns;
	record->duration_ns = end_ns - start_ns;
}

static inline void truth__enter(struct truth *log, uint32_t id)
{
	truth__add(log, id, log->start_ns, now_ns());
}

static inline void truth__flush(struct truth *log)
{
	size_t i;

	if (!log->file)
		return;
	for (i = 0; i < log->count; i++)
		fprintf(log->file, "%u %llu %llu\n", log->records[i].id, (unsigned long long)log->records[i].start_ns,
			(unsigned long long)log->records[i].duration_ns);
	log->written += log->count;
	log->count = 0;
	fflush(log->file);
}

/* Returns 0, or -1 with a message on stderr where the log could not be written or is not complete. */
static inline int truth__close(struct truth *log)
{
	int failed;

	if (!log->file)
		return 0;
	truth__flush(log);
	if (log->dropped)
		fprintf(log->file, "# dropped %llu\n", (unsigned long long)log->dropped);
	fprintf(log->file, "# end %llu\n", (unsigned long long)log->written);
	failed = ferror(log->file);
	if (fclose(log->file))
		failed = 1;
	free(log->records);
	if (failed || log->dropped)
		fprintf(stderr, "truth log is not complete: %s\n",
			failed ? strerror(errno) : "more records than expected");
	return failed || log->dropped ? -1 : 0;
}

#endif
