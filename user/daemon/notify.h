/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reports the state of vaprod to a service manager, by the protocol of sd_notify(3): a datagram to the socket that
 * NOTIFY_SOCKET names. Without that variable there is no manager, and nothing is sent.
 */
#ifndef VAPRO_NOTIFY_H
#define VAPRO_NOTIFY_H

#include <stdint.h>

/* Sends a state, as "READY=1". Returns 0, also without a manager, or -errno. Never waits. */
int notify__send(const char *state);

/* Returns the time between two signs of life, ns: half of what the manager waits for one; 0: it expects none. */
uint64_t notify__watchdog_ns(void);

#endif
