/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reports that jobs leave their owners (reports/reporter.h), as the daemon's loop feeds them. */
#ifndef VAPRO_DAEMON_REPORTING_H
#define VAPRO_DAEMON_REPORTING_H

#include "daemon/daemon_private.h"

/*
 * Starts the process that writes them, before any probe, where --job-reports asks for it; where that fails a warning
 * follows. Nothing is done later without it.
 */
void reporting__start(struct daemon *daemon);

/* Has the board hand over records. To be called when the board is there. */
void reporting__feed(struct daemon *daemon);

/* Looks which jobs have ended: some once a second. */
void reporting__see(struct daemon *daemon, uint64_t now_ns);

/* Sends what is waiting, and warns of what went wrong. Never waits. */
void reporting__step(struct daemon *daemon, uint64_t now_ns);
void reporting__warn(struct daemon *daemon);

/* Ends the process when it has written the reports of all jobs. */
void reporting__finish(struct daemon *daemon);

#endif
