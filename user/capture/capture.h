/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Captures: a self-describing file of stream events (ARCHITECTURE section 10). A one-line JSON head
 * names version, byte order and the columns of each record; then come records {u32 type, u32
 * length, payload, u32 crc}. A file cut short is read up to the cut and reported as cut; a damaged
 * record ends the reading with its offset.
 */
#ifndef VAPRO_CAPTURE_H
#define VAPRO_CAPTURE_H

#include <vapro/config.h>
#include "capture/stream.h"
#include "config/rules.h"

#define CAPTURE_LAST_RUN (-1)

/*
 * Opens a capture for writing, in place of what the file held; tunables is the JSON text of the config in
 * force. Mode 0600, and no symbolic link is followed. Returns NULL with an errno that
 * output_file__reason() explains. put() returns -errno on a full disk; what was written before stays readable.
 */
struct stream_sink *capture__create(const char *path, const char *tunables);

/* Adds a run to a file that holds runs already; EEXIST where the file holds something else. */
struct stream_sink *capture__append(const char *path, const char *tunables);

/*
 * Replays a run of each file (1 = the first, -1 = the last) into sink in time order of their windows; several files
 * (hosts) have their thread and state ids renumbered. An error's sentence goes to err. Returns 0, 1 when a
 * file was cut short (all before the cut was replayed), or a negative errno.
 */
int capture__replay_run(const char *const *paths, size_t count, int run, struct stream_sink *sink, char *err,
			size_t err_size);

/* Replays the last run. */
int capture__replay(const char *const *paths, size_t count, struct stream_sink *sink, char *err, size_t err_size);

/* Facts of a capture that a caller needs before the replay. */
struct capture_info {
	struct vapro_config config;  /* defaults, and over them the tunables in force in the run */
	bool by_instructions;	     /* workload_source of the hello */
	char host[256];		     /* host of the hello, "" none */
	char named[RULES_NAMED][64]; /* the events of magnitudes from VAPRO_NAMED on, "" none */
	size_t run, runs;	     /* the number of this run, from 1, and how many the file holds */
};

/* Fills what the line `hello` says, over tunables that are there already; other lines change nothing. */
void capture_info__hello(struct capture_info *info, const char *line);

/* Reads the head and the first lines of a run. Returns 0 or a negative errno with a sentence in err. */
int capture__run_info(const char *path, int run, struct capture_info *info, char *err, size_t err_size);

/* Reads the last run's info. */
int capture__info(const char *path, struct capture_info *info, char *err, size_t err_size);

#endif
