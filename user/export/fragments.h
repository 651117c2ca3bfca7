/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The fragments of a run in a file, one a line, as a capture or other input has them: NDJSON, which `vapro analyze
 * --format ndjson` reads again, or comma-separated values where the path ends in .csv. A bundle that the kernel side
 * merged is one line with its number of fragments n, the sum of their durations, the least and the greatest. A fragment
 * that has not ended is written once, where it has not at the end of the input either.
 *
 * Times are UTC. The writer lies between a source of events and their sink, and passes all events on.
 */
#ifndef VAPRO_EXPORT_FRAGMENTS_H
#define VAPRO_EXPORT_FRAGMENTS_H

#include <stdint.h>
#include <vapro/analysis.h>

#include "capture/stream.h"
#include "config/rules.h"

struct fragments;

/* Which fragments; the ranks of the selection and the texts are the caller's and outlive the writer. */
struct fragments_choice {
	struct vapro_selection selection; /* those that overlap it; of zeros: all */
	const char *state;		  /* its state_id, or a part of its call-sites, labels or symbols; NULL: all */
	const char *named[RULES_NAMED];	  /* events of magnitudes from VAPRO_NAMED on; NULL: none */
};

/* Creates the file; later events go to `to`, too. Returns NULL with an errno, which output_file__reason() explains. */
struct fragments *fragments__open(const char *path, const struct fragments_choice *choice, struct stream_sink *to);

/* Returns where events go. */
struct stream_sink *fragments__sink(struct fragments *fragments);

/* Writes what is left and closes the file. Gets the number of lines; returns 0 or a negative errno. Takes NULL. */
int fragments__close(struct fragments *fragments, uint64_t *lines);

#endif
