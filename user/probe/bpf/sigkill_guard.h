/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Work that a SIGKILL to us must not interrupt. The kernel gives up what it does for a task that is being
 * killed: probes are then set in some processes and not in others, and it fails to take out even those
 * ("failed to unregister, leaking uprobe"), so that breakpoints stay in the targets. A process of its own
 * that shares our memory and descriptors ends the work in any case; what it opened goes with it where we
 * are gone.
 */
#ifndef VAPRO_SHELTER_H
#define VAPRO_SHELTER_H

/*
 * Runs work(ctx) so, and waits for it. Returns what it returned. The calling thread stands still meanwhile, others
 * go on. Signals of the caller wait. Where no process can be made the caller works itself.
 */
int shelter__run(int (*work)(void *ctx), void *ctx);

#endif
