/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel side's table of accounts (bpf/accounts.h), mapped. Each bin is read once, some time after its end: a bin
 * holds what the kernel side added, plus the thread's current stay as far as the stay lies in the bin.
 */
#ifndef VAPRO_COLLECT_ACCOUNTS_H
#define VAPRO_COLLECT_ACCOUNTS_H

#include <vapro/bundle.h>
#include <vapro/bpf/thread_account.h>

#include "probe/bpf/kernel_side.h"

struct accounts;

/* Receives a thread's times in a bin; account->thread is not set. */
typedef void (*accounts_sums)(void *ctx, uint32_t tgid, uint32_t tid, const struct vapro_account *account);

/* side must live longer. NULL with errno set. */
struct accounts *accounts__new(struct kernel_side *side);
void accounts__free(struct accounts *accounts);

/*
 * Hands over the sums of the bins (UTC / KERNEL_BIN_NS) after `from` up to `last`; CLOCK_MONOTONIC + offset_ns = UTC.
 * A thread that slept through a bin is left out there, unless it worked in the last minute: most threads of libraries
 * always sleep. Accounts of threads that ended before the end of the last bin are freed. 0 or -errno.
 */
int accounts__read(struct accounts *accounts, uint64_t from, uint64_t last, uint64_t offset_ns, accounts_sums emit,
		   void *ctx);

/*
 * Computes the sums of one bin of a copied account: sums->bin and all times. look is as old as the copy. Pure.
 */
void accounts__sum(const struct kernel_account *account, const struct kernel_account_look *look, uint64_t bin,
		   uint64_t offset_ns, uint64_t now_ns, struct vapro_account *sums);

/*
 * Whether sums of a thread's bin are to be handed over; *busy: the last bin in which it worked, 0: none yet, which is
 * brought up to date. Of one thread in the order of time. Pure.
 */
bool accounts__is_needed(const struct vapro_account *sums, uint64_t *busy);

#endif
