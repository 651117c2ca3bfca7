/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What was announced in a run of vaprod: threads with their places, states, names, the clock, `hello` and the tunables.
 * Blocks announce it again. Copies live until the end of the run.
 */
#ifndef VAPRO_WIRE_ANNOUNCEMENTS_H
#define VAPRO_WIRE_ANNOUNCEMENTS_H

#include <stddef.h>
#include "capture/stream.h"

struct announcements;

/* tunables: JSON of the config in force, copied. Returns NULL when out of memory. */
struct announcements *announcements__new(const char *tunables);
void announcements__free(struct announcements *announced);

/* Notes an event; those that announce nothing are ignored. Returns 0, -EINVAL for ids that are not dense, -ENOMEM. */
int announcements__note(struct announcements *announced, const struct stream_event *event);

const char *announcements__tunables(const struct announcements *announced);
const char *announcements__hello(const struct announcements *announced); /* "" before it came */
struct stream_clock announcements__clock(const struct announcements *announced);

size_t announcements__threads(const struct announcements *announced); /* how many */

/* NULL where there is none. The texts live as long as the object. */
const struct vapro_host_clock *announcements__host_clock(const struct announcements *announced);
const struct vapro_thread *announcements__thread(const struct announcements *announced, uint32_t id);
const struct vapro_place *announcements__place(const struct announcements *announced, uint32_t thread);
const struct stream_seen *announcements__seen(const struct announcements *announced, uint32_t thread);
const struct vapro_state *announcements__state(const struct announcements *announced, uint32_t id);

/* Names of a place in code, by depth; *count of them. */
const struct stream_name *announcements__names(const struct announcements *announced, const char *site, size_t *count);

#endif
