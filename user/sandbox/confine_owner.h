/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of one user may cost. Confined readers of files of a user's processes may use 2 s of processor time a
 * minute, and the loop may wait 1 s a minute for them, 250 ms at a time: what takes longer goes on in the background.
 * A user beyond that waits, and no other does. The times may be overdrawn by the last reader or wait; what is
 * overdrawn is paid back first.
 */
#ifndef VAPRO_CONFINE_OWNER_H
#define VAPRO_CONFINE_OWNER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define CONFINE_OWNERS 256 /* the one that was not used for longest makes way */
#define CONFINE_OWNER_MINUTE_MS 60000
#define CONFINE_OWNER_READ_MS 2000
#define CONFINE_OWNER_WAIT_MS 1000
#define CONFINE_OWNER_WAIT_ONCE_MS 250

/* Times are of CLOCK_MONOTONIC. */

/* Whether a reader may be started for a user. */
bool confine_owner__may_read(uid_t owner, int64_t now_ms);

/* Charges a user for processor time of a reader. */
void confine_owner__charge(uid_t owner, uint64_t cpu_ns, int64_t now_ms);

/* How long the loop may wait for a reader of a user now, ms. */
unsigned int confine_owner__patience(uid_t owner, int64_t now_ms);

/* Charges a user for time in which the loop waited. */
void confine_owner__waited(uid_t owner, uint64_t waited_ns, int64_t now_ms);

#endif
