/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table of accounts that the kernel side keeps (bpf/accounts.h), mapped. Each bin is read once, when it has been
 * over for a while: what the kernel side added to it, and the part of it that lies in what the thread is in just now.
 */
#ifndef VAPRO_COLLECT_ACCOUNTS_H
#define VAPRO_COLLECT_ACCOUNTS_H

#include <vapro/bundle.h>
#include <vapro/kernel_account.h>

#include "probe/bpf/bpf_object.h"

struct accounts;

/* What a thread was in during a bin; account->thread is not set. */
typedef void (*accounts_sums)(void *ctx, uint32_t tgid, uint32_t tid, const struct vapro_account *account);

/* side outlives it. NULL with errno set. */
struct accounts *accounts__new(struct kernel_side *side);
void accounts__free(struct accounts *accounts);

/*
 * Hands over what is known of the bins (UTC / KERNEL_BIN_NS) after `from` up to `last`; offset_ns: CLOCK_MONOTONIC +
 * this = UTC. Of a thread that slept through a bin nothing is handed over. Accounts of threads that ended before the
 * end of the last bin are freed. 0 or -errno.
 */
int accounts__read(struct accounts *accounts, uint64_t from, uint64_t last, uint64_t offset_ns, accounts_sums tell,
		   void *ctx);

/*
 * The sums of one bin, of an account as it was copied: account->bin and all times. look: as of the copy. Pure.
 */
void accounts__sum(const struct kernel_account *account, const struct kernel_account_look *look, uint64_t bin,
		   uint64_t offset_ns, uint64_t now_ns, struct vapro_account *sums);

#endif
