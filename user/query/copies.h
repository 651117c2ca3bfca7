/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Forked copies of the daemon that compute responses: a copy takes as long as it needs and may overwrite its memory.
 * It closes everything but its client at once, so that it holds no probe, and dies with the daemon. Copies, those of
 * one user, their lifetime and their processor time are bounded; one place is root's.
 */
#ifndef VAPRO_QUERY_COPIES_H
#define VAPRO_QUERY_COPIES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "query/listener.h"
#include "query/protocol.h"

#define COPIES_MOST 3 /* that run at the same time, or fewer */

struct copies {
	size_t most; /* that run at the same time */
	struct {
		pid_t pid; /* 0: none */
		uid_t uid; /* of its client */
	} places[COPIES_MOST];
};

/*
 * Runs in the copy: writes the response to out, a sentence on omissions into note (QUERY_SENTENCE_MAX bytes).
 * Returns 0, or -1 with the error's kind and its sentence in note.
 */
typedef int (*copies_answer)(void *ctx, FILE *out, char *note, enum query_error *error);

/*
 * Has a copy respond to the client at a place of a listener, whose request is complete; root may have all places of
 * copies, users one each and not the last one. The client is dropped once the copy runs, and refused with a sentence
 * where none can be made or none became free in time. may_start: whether one may be started now. Returns whether one
 * was.
 */
bool copies__serve(struct copies *copies, struct listener *listener, size_t at, bool may_start, copies_answer answer,
		   void *ctx, uint64_t now_ns);

/* Takes note of copies that have ended. */
void copies__reap(struct copies *copies);

/* Ends all copies. */
void copies__end(struct copies *copies);

#endif
