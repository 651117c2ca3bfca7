/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Functions and lines of source behind call-sites, collected from the stream, and the words for states made of them:
 * every text and record words a state by source_names__words().
 */
#ifndef VAPRO_REPORT_SOURCE_NAMES_H
#define VAPRO_REPORT_SOURCE_NAMES_H

#include <cjson/cJSON.h>
#include "base/archive.h"
#include "capture/stream.h"
#include "target/source.h"

struct source_names;

/* NULL when out of memory. */
struct source_names *source_names__new(void);
void source_names__free(struct source_names *names);

/* Writes or reads all names; an object to be read is new. */
void source_names__archive(struct archive *archive, struct source_names *names);

/* Adds a function of a place; contradictory ones, and those beyond the limits on memory, are ignored. 0 or -ENOMEM. */
int source_names__add(struct source_names *names, const struct stream_name *name);

/*
 * Returns the functions of a place, which has length bytes: the one that holds the call, then those it is inlined
 * into. NULL with *count 0 where none is known, and where names is NULL.
 */
const struct source_frame *source_names__of(const struct source_names *names, const char *site, size_t length,
					    size_t *count);

/*
 * Words where a state is, for people: "solve (cg.c:12)", "solve (cg.c:12 to 30)" of a computation, with callers
 * behind SITE_CALLED_BY; where no line is known "solve+0x1c", else "libcg.so+0x11c". names may be NULL. malloc'ed; NULL
 * when out of memory.
 */
char *source_names__words(const struct source_names *names, const struct vapro_state *state);

/*
 * The same, of a call behind the called function: "MPI_Recv at solve (cg.c:12)". malloc'ed; NULL when out of memory.
 */
char *source_names__call(const struct source_names *names, const struct vapro_state *state);

/*
 * Words one place: by its innermost function and the one that all others are inlined into, "lcg (common.h:24) in
 * solve (cg.c:12)". malloc'ed; NULL where neither is known, and when out of memory.
 */
char *source_names__place(const struct source_names *names, const char *site);

/*
 * Adds the words as `source`, the functions as `to_frames` and of a computation `from_frames`, and as `ran` the
 * function that holds both of its ends; what is not known is left out.
 */
bool source_names__add_json(const struct source_names *names, cJSON *object, const struct vapro_state *state);

/* Adds the functions of a call-site and its callers under a key; adds nothing where none is known. */
bool source_names__add_frames(const struct source_names *names, cJSON *object, const char *key, const char *site);

/* Bytes held. */
size_t source_names__bytes(const struct source_names *names);

#endif
