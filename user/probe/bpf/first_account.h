/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The account of a thread that begins to be tracked (bpf/account.h). The scheduler says nothing of a thread that is
 * asleep or stopped until that ends: its state is read from /proc.
 */
#ifndef VAPRO_FIRST_ACCOUNT_H
#define VAPRO_FIRST_ACCOUNT_H

#include <vapro/bpf/thread_state.h>

struct vapro_bpf;

/* Opens an account for a thread in a lasting state (as in ps(1)); the kernel side opens all other accounts. */
void first_account__open(struct vapro_bpf *bpf, struct bpf_thread_state *thread, char state);

/* Corrects an account whose stop, by this state, ended before the kernel side had the thread: it would never end. */
void first_account__check(struct vapro_bpf *bpf, const struct bpf_thread_state *thread, char state);

/* Drops the account: the kernel side had the thread already, with its own. */
void first_account__drop(struct vapro_bpf *bpf, const struct bpf_thread_state *thread);

#endif
