/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where a thread runs in an open computation: samples of a software clock, opened for single threads for a while. */
#ifndef VAPRO_INSIDE_H
#define VAPRO_INSIDE_H

#include "arch.h"

static __always_inline void inside_sample(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct bpf_thread_state *thread = known_thread(task);
	struct kernel_inside_key key = {};
	struct kernel_inside *into, fresh = {.samples = 1};

	if (!thread || thread->tgid != (u32)task->tgid)
		return;
	add(counters_of(thread->slot)->sampled, 1);
	/* with an odd epoch not all calls are seen: the thread may be in one */
	if (!computes(thread) || governed_of(thread->slot)->probe_epoch & 1)
		return;
	fresh.address = sampled_address(&ctx->regs);
	key.block = fresh.address / KERNEL_INSIDE_BYTES;
	key.tid = thread->tid;
	key.vertex = thread->vertex;
	into = bpf_map_lookup_elem(&inside_samples, &key);
	if (into)
		into->samples++; /* one thread's samples come one after the other */
	else if (bpf_map_update_elem(&inside_samples, &key, &fresh, BPF_NOEXIST))
		add(inside_lost, 1);
}

#endif
