/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The texts of states that the stream has announced, each with its number there, and which processes use them.
 * A text that no process uses any more is retained for the next process of the same program, as long as all such
 * texts together are not too long; the longest unused text is dropped first. A dropped number is not given again, and
 * a text that returns gets another: sinks have copies of their own, and know numbers only.
 */
#ifndef VAPRO_STATE_NAMES_H
#define VAPRO_STATE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct state_names;

/* unused_bytes: limit for texts that no process uses. NULL when out of memory. */
struct state_names *state_names__new(size_t unused_bytes);
void state_names__free(struct state_names *names);

/*
 * Returns the number of a text, which a process uses from here on, or -ENOMEM. *fresh: the number is new; numbers
 * go from 0 upwards without gaps.
 */
int64_t state_names__use(struct state_names *names, uint32_t process, const char *text, bool *fresh);

/* Releases a process's texts; gone gets the numbers of those that are dropped therefore. */
void state_names__release(struct state_names *names, uint32_t process, void (*gone)(void *arg, uint32_t id), void *arg);

/* Bytes held, all included. */
size_t state_names__bytes(const struct state_names *names);

#endif
