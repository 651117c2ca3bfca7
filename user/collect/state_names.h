/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The texts of states that the stream has announced, each with its number there, and which processes use them.
 * A text that no process uses any more is kept for the next process of the same program, as long as all such texts
 * together are not too long; the one that has been unused the longest goes first. Its number is not given again, and
 * if the text comes again it gets another: sinks have copies of their own, and know numbers only.
 */
#ifndef VAPRO_STATE_NAMES_H
#define VAPRO_STATE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct state_names;

/* unused_bytes: how much of texts that nobody uses is kept. NULL when out of memory. */
struct state_names *state_names__new(size_t unused_bytes);
void state_names__free(struct state_names *names);

/*
 * The number of a text, which a process uses from here on; *fresh: it was given just now, from 0 upwards without
 * gaps. Returns -ENOMEM where there is no memory for it.
 */
int64_t state_names__use(struct state_names *names, uint32_t process, const char *text, bool *fresh);

/* A process uses none any more. */
void state_names__release(struct state_names *names, uint32_t process);

/* What it holds, all included. */
size_t state_names__bytes(const struct state_names *names);

#endif
