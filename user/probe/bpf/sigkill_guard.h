/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Runs work that a SIGKILL to the daemon must not interrupt. The kernel aborts operations of a task that is
 * being killed: probes are then set in some processes and not in others, and even those are not removed
 * ("failed to unregister, leaking uprobe"), so that breakpoints stay in the targets. A separate process that
 * shares the daemon's memory and descriptors completes the work in any case; where the daemon is gone, the
 * descriptors that were opened are closed with that process.
 */
#ifndef VAPRO_SIGKILL_GUARD_H
#define VAPRO_SIGKILL_GUARD_H

/*
 * Runs work(ctx) in such a process and waits for its end. Returns the result of work. Other threads go on meanwhile;
 * signals of the caller wait. Where no process can be made the caller runs the work itself.
 */
int sigkill_guard__run(int (*work)(void *ctx), void *ctx);

#endif
