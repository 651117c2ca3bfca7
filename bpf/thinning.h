/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The governor (user/overhead/governor.h) suppresses the return half of calls in states whose span,
 * from entry to next entry, is short. The trap of the entry stays and emits the computation before
 * the call; the call itself and what follows are no fragments, and nothing is joined across them:
 * until its next call nothing is known of the thread.
 *
 * Spans are learnt entry to entry, so a state that becomes slow is seen again, and one call in
 * 64 that could be suppressed is recorded.
 */
#ifndef VAPRO_THINNING_H
#define VAPRO_THINNING_H

#include "fragment.h"

#define SHOWN_OF_THINNED 64

/* A Fortran binding's request is read when its call returns, or never: its variable is on the stack. */
static __always_inline bool leaves_request(const struct bpf_thread_state *thread)
{
	struct kernel_pending *pending;

	if (!thread->pending)
		return false;
	pending = bpf_task_storage_get(&pending_calls, bpf_get_current_task_btf(), 0, 0);
	return pending && pending->post_at && !pending->slots;
}

static __always_inline void note_span(struct bpf_thread_state *thread, u64 now)
{
	u32 index = thread->entered & (KERNEL_STATES - 1);
	struct kernel_state_stats *seen;

	if (!thread->entered_ns || now < thread->entered_ns)
		return;
	seen = bpf_map_lookup_elem(&stats, &index);
	if (seen)
		seen->span_ns = span_after(seen->span_ns, now - thread->entered_ns);
	if (thread->octave)
		thread->spans[(thread->octave - 1) & (KERNEL_SPANS - 1)].time_ns +=
		    (now - thread->entered_ns) * thread->weight;
}

/* Returns whether is_suppressed() has work: most calls skip it while no call is suppressed. */
static __always_inline bool is_governed(const struct bpf_thread_state *thread)
{
	return thread->entered_ns || thread->suppressed_ns || governed_of(thread->slot)->thin_ns ||
	       span_due(thread->call);
}

/*
 * A call enters `vertex`; able: its return may be suppressed. Returns whether it is, and then nothing is
 * open. A global function for its stack, as emit() is.
 */
__noinline int is_suppressed(struct bpf_thread_state *thread, u32 vertex, u32 able, u64 now)
{
	u32 index = vertex & (KERNEL_STATES - 1);
	struct kernel_state_stats *seen;
	struct kernel_governed *governor;

	if (!thread)
		return 0;
	governor = governed_of(thread->slot);
	if (thread->suppressed_ns && now > thread->suppressed_ns)
		add(governor->thinned_ns, now - thread->suppressed_ns);
	thread->suppressed_ns = 0;
	if (unseen(thread)) { /* the next hit may not be the next call */
		thread->entered_ns = 0;
		return 0;
	}
	note_span(thread, now);
	thread->octave = 0;
	thread->entered_ns = 0;
	if (!governor->thin_ns && !span_due(thread->call))
		return 0;
	thread->entered = vertex;
	thread->entered_ns = now;
	thread->weight = governor->thin_ns ? 1 : KERNEL_SPAN_EACH;
	seen = bpf_map_lookup_elem(&stats, &index);
	if (!vertex || !able || !seen || seen->n < new_fragments || !seen->span_ns)
		return 0;
	thread->octave = span_octave(seen->span_ns) + 1;
	thread->spans[(thread->octave - 1) & (KERNEL_SPANS - 1)].calls += thread->weight;
	if (seen->span_ns >= governor->thin_ns || leaves_request(thread) ||
	    bpf_get_prandom_u32() % SHOWN_OF_THINNED == 0)
		return 0;
	add(governor->thinned, 1);
	thread->suppressed_ns = now;
	thread->open = KERNEL_NOTHING;
	thread->vertex = 0;
	thread->polls = 0;
	thread->fork_sp = thread->fork_outer = 0; /* the fork's end is ignored */
	thread->call++;
	return 1;
}

/* Suppresses a system call: the times before and after are no fragments. */
static __always_inline void suppress_io(struct bpf_thread_state *thread)
{
	add(governed_of(thread->slot)->thinned_io, 1);
	thread->vertex = 0;
}

#endif
