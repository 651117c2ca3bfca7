/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fragments as NDJSON (ARCHITECTURE section 10), read as a source of stream events. */
#ifndef VAPRO_NDJSON_H
#define VAPRO_NDJSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/stream.h"

/*
 * Reads fragments as NDJSON (section 10), `-` is standard input. Bad lines are refused with their
 * number on stderr and counted; with strict the first one ends the reading with -EINVAL. Lines of
 * several files (hosts) are one run, and what follows does not depend on their order.
 */
int ndjson__replay(const char *const *paths, size_t count, bool strict, double window_s, struct stream_sink *sink,
		   uint64_t *bad_lines, char *err, size_t err_size);

/*
 * ndjson__replay() in two steps, for a caller that needs the workload source to make the sink:
 * read (and check) all lines, then feed them.
 */
struct ndjson;

struct ndjson *ndjson__read(const char *const *paths, size_t count, bool strict, uint64_t *bad_lines, char *err,
			    size_t err_size);
bool ndjson__by_instructions(const struct ndjson *ndjson); /* any computation carries `instructions` */
uint64_t ndjson__hosts(const struct ndjson *ndjson);	   /* distinct ones; no host counts as one more */
const char *ndjson__named(const struct ndjson *ndjson,
			  int number); /* event of a magnitude from VAPRO_NAMED on, or NULL */
int ndjson__feed(const struct ndjson *ndjson, double window_s, struct stream_sink *sink, char *err, size_t err_size);
void ndjson__free(struct ndjson *ndjson);

#endif
