/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Profiles of the jobs that run on this node (--profiles DIR), for `vapro runs` and `vapro diff`: when a job is over
 * its profile becomes a file of its user below DIR/UID/PROGRAM, and the job is compared with the earlier ones there. A
 * copy of the daemon that has given up its privileges for those of the user does both, at the lowest priority; what it
 * finds comes back as a record `earlier`. Nothing of earlier runs reaches the analysis.
 */
#ifndef VAPRO_RUN_STORE_H
#define VAPRO_RUN_STORE_H

#include <stdbool.h>
#include <stddef.h>

#include "capture/stream.h"

struct run_store;

/*
 * Opens an existing directory. host: of this node, outlives it. Returns NULL with a sentence in err where it cannot be
 * used: others than its owner can write it, or it is none.
 */
struct run_store *run_store__new(const char *directory, const char *host, bool by_instructions, char *err,
				 size_t err_size);

/* Stops what is under way. Takes NULL. */
void run_store__free(struct run_store *store);

/* Takes an event. Returns 0 or -ENOMEM. */
int run_store__put(struct run_store *store, const struct stream_event *event);

/*
 * Goes on with what is to be written. Returns whether something came back: a record `earlier`, or where warning is set
 * a sentence why a profile could not be written; malloc'ed.
 */
bool run_store__step(struct run_store *store, char **text, bool *warning);

/* Whether profiles are still to be written. */
bool run_store__busy(const struct run_store *store);

#endif
