// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/bpf/first_account.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <vapro/bpf/thread_account.h>

#include "base/clock.h"
#include "vapro.skel.h"

/* State R does not show whether a thread runs or waits for a CPU. */
static u32 kind_of(char state)
{
	return state == 'T' || state == 't' ? ACCOUNT_STOPPED
	       : state == 'S'		    ? ACCOUNT_BLOCKED_OTHER
	       : state == 'D'		    ? ACCOUNT_BLOCKED_IO
					    : ACCOUNT_UNKNOWN;
}

static enum kernel_away away_of_kind(u32 kind)
{
	return kind == ACCOUNT_STOPPED	    ? KERNEL_AWAY_STOPPED
	       : kind == ACCOUNT_BLOCKED_IO ? KERNEL_AWAY_IO
					    : KERNEL_AWAY_ASLEEP;
}

void first_account__open(struct vapro_bpf *bpf, struct bpf_thread_state *thread, char state)
{
	struct kernel_account present,
	    account = {.tid = thread->tid, .tgid = thread->tgid, .kind = kind_of(state), .since_ns = mono_now()};
	int map = bpf_map__fd(bpf->maps.accounts);
	u32 number;

	if (account.kind == ACCOUNT_UNKNOWN)
		return;
	number = __atomic_fetch_add(&bpf->bss->accounts_given, 1, __ATOMIC_ACQ_REL) & (KERNEL_ACCOUNTS - 1);
	if (bpf_map_lookup_elem(map, &number, &present) || present.tid ||
	    bpf_map_update_elem(map, &number, &account, BPF_ANY))
		return;
	thread->account = number + 1;
	thread->off.out_ns = account.since_ns;
	thread->off.away = away_of_kind(account.kind);
}

void first_account__check(struct vapro_bpf *bpf, const struct bpf_thread_state *thread, char state)
{
	int map = bpf_map__fd(bpf->maps.accounts);
	struct kernel_account account;
	u32 number = thread->account - 1;

	if (!thread->account || kind_of(state) == ACCOUNT_STOPPED || bpf_map_lookup_elem(map, &number, &account) ||
	    account.tid != thread->tid || account.kind != ACCOUNT_STOPPED || account.since_ns != thread->off.out_ns)
		return;
	account.kind = ACCOUNT_UNKNOWN;
	bpf_map_update_elem(map, &number, &account, BPF_EXIST);
}

void first_account__drop(struct vapro_bpf *bpf, const struct bpf_thread_state *thread)
{
	struct kernel_account none = {0};
	u32 number = thread->account - 1;

	if (thread->account)
		bpf_map_update_elem(bpf_map__fd(bpf->maps.accounts), &number, &none, BPF_EXIST);
}
