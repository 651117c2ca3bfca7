/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The account of a thread that begins to be tracked (bpf/account.h). The scheduler says nothing of one that is asleep
 * or stopped until that ends: what it is in is taken from /proc.
 */
#ifndef VAPRO_FIRST_ACCOUNT_H
#define VAPRO_FIRST_ACCOUNT_H

#include <vapro/kernel_thread.h>

struct vapro_bpf;

/* Opens one for a thread in a state (as ps(1) has it) that lasts; of all others the kernel side opens it. */
void first_account__open(struct vapro_bpf *bpf, struct kernel_thread *thread, char state);

/* The kernel side has the thread now, which is in this state: a stop that was over by then would go on for ever. */
void first_account__check(struct vapro_bpf *bpf, const struct kernel_thread *thread, char state);

/* The kernel side had the thread already, with an account of its own. */
void first_account__drop(struct vapro_bpf *bpf, const struct kernel_thread *thread);

#endif
