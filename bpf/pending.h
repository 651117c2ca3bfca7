/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a call leaves to be read after its return: the handle of a posted operation, the operations that
 * a partial completion reports. Most programs complete what they posted by the same variable in the same
 * thread: such operations stay in that thread's own table, since a lookup in the maps of requests reads
 * many lines of memory. They come to these maps only where they are displaced, or a completion does not
 * find its own.
 */
#ifndef VAPRO_PENDING_H
#define VAPRO_PENDING_H

#include "requests.h"

/* Returns the posted operation that a variable holds, or held; NULL if there is none. */
static __always_inline struct kernel_posted *posted_at(const struct bpf_thread_state *thread,
						       struct kernel_pending *pending, u64 at)
{
	struct kernel_posted *posted = &pending->posted[posted_place(at)];

	return posted->at == at && posted->epoch == thread->posts_epoch ? posted : 0;
}

/* Returns whether no other thread of the process of the current one posts requests or completes them. */
static __always_inline bool requests_alone(const struct bpf_thread_state *thread)
{
	struct kernel_governed *of = governed_of(thread->slot);
	u32 tid = of->requester;

	if (tid == thread->tid)
		return true;
	if (!tid && !__sync_val_compare_and_swap(&of->requester, 0, thread->tid))
		return true;
	if (tid != KERNEL_REQUESTERS)
		of->requester = KERNEL_REQUESTERS;
	return false;
}

/* Moves a posted operation to the maps. Returns whether there is one at this index. */
__noinline int posted_move(struct bpf_thread_state *thread, struct kernel_pending *pending, u32 index)
{
	struct kernel_posted *posted;

	if (!thread || !pending)
		return false;
	posted = &pending->posted[index & (KERNEL_POSTED - 1)];
	if (!posted->at || posted->epoch != thread->posts_epoch)
		return false;
	request_record(thread, posted, 0, true);
	posted->at = 0;
	return true;
}

/* Moves the posted operations to the maps. Returns how many there were. */
__noinline int posted_flush(struct bpf_thread_state *thread, struct kernel_pending *pending)
{
	int flushed = 0;

	if (!thread || !pending)
		return 0;
	pending->any_posted = 0;
	for (u32 i = 0; i < KERNEL_POSTED; i++)
		flushed += posted_move(thread, pending, i);
	return flushed;
}

/* Keeps a posted operation in its thread's table. Returns whether it is there, or is none. */
static __always_inline bool posted_add(struct bpf_thread_state *thread, struct kernel_pending *pending, u64 at,
				       u64 handle)
{
	const struct kernel_recent_handle *null = &thread->recent_handles[KERNEL_REQUEST];
	struct kernel_posted *posted = &pending->posted[posted_place(at)];

	if (pending->misses >= KERNEL_POSTED_MISSES)
		return false;
	if (!requests_alone(thread)) {
		if (pending->any_posted)
			posted_flush(thread, pending);
		return false;
	}
	if (null->epoch == states_epoch && null->handle == handle)
		return true;
	/* an operation in the same variable was completed unseen, or its handle was copied */
	if (posted->at && posted->epoch == thread->posts_epoch)
		request_record(thread, posted, 0, true);
	posted->at = at;
	posted->handle = handle;
	posted->bytes = pending->post_bytes;
	posted->epoch = thread->posts_epoch;
	pending->any_posted = 1;
	return true;
}

/* Records a posted operation, now that its handle is written. */
static __always_inline void request_posted(struct bpf_thread_state *thread, struct kernel_pending *pending)
{
	struct kernel_posted of = {.at = pending->post_at, .bytes = pending->post_bytes};
	bool persistent = pending->post_flags & KERNEL_REQUEST_PERSISTENT;

	of.handle = handle_at(of.at, thread->process_flags & KERNEL_PROCESS_MPICH);
	pending->post_at = 0;
	if (!persistent && pending->slots && posted_add(thread, pending, of.at, of.handle))
		return;
	request_record(thread, &of, pending->post_flags, pending->slots);
}

/* Adds a posted operation to a sum. Returns whether there is one with that handle in that variable. */
__noinline int posted_sum(struct bpf_thread_state *thread, struct kernel_pending *pending, u64 at, u64 handle,
			  struct request_sum *sum)
{
	struct kernel_posted *posted;

	if (!thread || !pending || !sum)
		return false;
	posted = posted_at(thread, pending, at);
	if (!posted || posted->handle != handle)
		return false;
	sum->bytes += posted->bytes;
	sum->n++;
	return true;
}

/* Removes a posted operation that is done. Returns whether there was one with that handle in that variable. */
__noinline int posted_remove(struct bpf_thread_state *thread, struct kernel_pending *pending, u64 at, u64 handle)
{
	struct kernel_posted *posted;

	if (!thread || !pending)
		return false;
	posted = posted_at(thread, pending, at);
	if (!posted || posted->handle != handle)
		return false;
	posted->at = 0;
	return true;
}

/*
 * Sums up the requests of a completion that are all among the thread's posted operations, and removes them where the
 * call is about all. Returns false where they are not: then the sum is of some.
 */
__noinline int posted_complete(struct bpf_thread_state *thread, struct kernel_pending *pending, struct request_sum *sum)
{
	const struct kernel_recent_handle *null;
	u32 size, epoch = states_epoch;
	bool mpich;

	if (!thread || !pending || !sum)
		return false;
	if (!requests_alone(thread) || !pending->slots || !pending->any_posted)
		return false;
	null = &thread->recent_handles[KERNEL_REQUEST];
	mpich = thread->process_flags & KERNEL_PROCESS_MPICH;
	size = mpich ? 4 : 8;
	for (u32 i = 0; i < KERNEL_REQUESTS; i++) {
		if (i >= pending->count)
			break;
		pending->handle[i] = handle_at(pending->array + i * size, mpich);
		if (null->handle == pending->handle[i] && null->epoch == epoch)
			continue;
		if (!posted_sum(thread, pending, pending->array + i * size, pending->handle[i], sum))
			return false;
	}
	pending->misses = misses_after(pending->misses, false);
	if (pending->done)
		return true;
	for (u32 i = 0; i < KERNEL_REQUESTS; i++) {
		if (i >= pending->count)
			break;
		posted_remove(thread, pending, pending->array + i * size, pending->handle[i]);
	}
	pending->count = 0;
	return true;
}

/* A completion that may leave requests open has returned: those that it reports are done. */
__noinline int requests_completed(struct bpf_thread_state *thread, struct kernel_pending *pending)
{
	struct request_walk walk = {};
	u32 size, count, done_count;
	s32 index = 0;

	if (!thread || !pending)
		return 0;
	walk.tgid = thread->tgid;
	walk.counters = thread->slot;
	walk.slots = pending->slots;
	size = thread->process_flags & KERNEL_PROCESS_MPICH ? 4 : 8;
	count = pending->count;
	pending->count = 0;
	if (bpf_probe_read_user(&index, sizeof(index), (void *)pending->done_at))
		return 0;
	if (pending->done & VAPRO_ROLE_DONE_FLAG)
		done_count = index ? count : 0;
	else if (pending->done & VAPRO_ROLE_DONE_SOME)
		done_count = index > 0 ? index : 0;
	else
		done_count = 1;
	for (u32 i = 0; i < KERNEL_REQUESTS; i++) {
		u32 which = i;

		if (i >= done_count)
			break;
		if (pending->done & VAPRO_ROLE_DONE_INDEX)
			which = index;
		else if (pending->done & VAPRO_ROLE_DONE_SOME)
			bpf_probe_read_user(&which, sizeof(which), (void *)(pending->indices_at + 4 * i));
		if (which < count && !posted_remove(thread, pending, pending->array + which * size,
						    pending->handle[which & (KERNEL_REQUESTS - 1)]))
			request_complete(pending->array + which * size, pending->handle[which & (KERNEL_REQUESTS - 1)],
					 &walk);
	}
	return 0;
}

/* Slow path of requests_settle(): few calls leave anything. */
__noinline int requests_left(struct bpf_thread_state *thread)
{
	struct kernel_pending *pending;

	if (!thread)
		return 0;
	thread->pending = 0;
	pending = bpf_task_storage_get(&pending_calls, bpf_get_current_task_btf(), 0, 0);
	if (pending && pending->post_at)
		request_posted(thread, pending);
	if (pending && pending->count)
		requests_completed(thread, pending);
	return 0;
}

/* The thread ends: another one may complete what it posted. */
static __always_inline void requests_end(struct bpf_thread_state *thread, struct task_struct *task)
{
	struct kernel_pending *pending = bpf_task_storage_get(&pending_calls, task, 0, 0);

	if (pending && pending->any_posted)
		posted_flush(thread, pending);
}

/* Reads what the last call left, after that call's return or at the thread's next call. */
static __always_inline void requests_settle(struct bpf_thread_state *thread)
{
	if (thread->pending)
		requests_left(thread);
}

static __always_inline struct kernel_pending *pending_of(struct bpf_thread_state *thread, struct task_struct *task)
{
	struct kernel_pending *pending = bpf_task_storage_get(&pending_calls, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!pending)
		lose(thread->slot, KERNEL_LOST_NO_STORAGE, 1);
	return pending;
}

/* An operation is posted: its handle will be at `at`. */
static __always_inline void request_post(struct bpf_thread_state *thread, struct task_struct *task, u64 at, u64 bytes,
					 bool persistent, bool slots)
{
	struct kernel_pending *pending = pending_of(thread, task);

	if (!pending)
		return;
	pending->post_at = at;
	pending->post_bytes = bytes;
	pending->post_flags = persistent ? KERNEL_REQUEST_PERSISTENT : 0;
	pending->slots = slots;
	thread->pending = 1;
}

/* Sums up the requests of a completion or a start, as requests_read() does. */
static __always_inline void requests_sum(struct bpf_thread_state *thread, struct kernel_pending *pending,
					 struct request_walk *walk, struct request_sum *sum)
{
	if (!walk->start && posted_complete(thread, pending, sum))
		return;
	__builtin_memset(sum, 0, sizeof(*sum));
	if (!walk->start && pending->any_posted && posted_flush(thread, pending))
		pending->misses = misses_after(pending->misses, true);
	requests_read(thread, pending, walk, sum);
}

#endif
