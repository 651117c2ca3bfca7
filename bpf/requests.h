/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Non-blocking and persistent operations, joined to their completion: the handle of a posted request
 * is read when the post has returned, and a completion finds the post by it. A handle is the key;
 * where the library uses one for several operations, the variable it was written to distinguishes
 * them (ARCHITECTURE section 3). Global functions: the verifier checks each once and not for every
 * iteration of a loop.
 */
#ifndef VAPRO_REQUESTS_H
#define VAPRO_REQUESTS_H

#include "fragment.h"

/* Requests of a completion or a start. */
struct request_sum {
	u64 bytes;
	u64 guessed;   /* a handle whose bytes are a share of those of several operations; 0 = none */
	u32 n;	       /* requests that are not null */
	u32 unmatched; /* requests not seen when posted */
};

/* Layout of handles in memory, and the action on each. */
struct request_walk {
	u32 tgid;
	u32 counters; /* slot of the process's counters */
	u32 slots;    /* variables are the application's own, not a wrapper's */
	u32 start;    /* 1: starts requests */
	u32 all;      /* all named requests are done */
	u64 id;	      /* unique for each walk of a process: the time */
};

static __always_inline bool is_number(u64 handle, u32 tgid, u32 number)
{
	struct kernel_handle_key key = {.handle = handle, .tgid = tgid, .kind = KERNEL_REQUEST};
	u32 *known = bpf_map_lookup_elem(&handles, &key);

	return known && *known == number;
}

/* Source of the bytes of an operation. */
enum request_how { REQUEST_ALONE, REQUEST_BY_SLOT, REQUEST_LAST, REQUEST_SHARE };

/* Removes one operation from those of a handle. */
static __always_inline void request_done(const struct request_walk *walk, u64 slot, u64 handle, u64 bytes,
					 enum request_how how)
{
	struct kernel_request_key key = {.at = slot, .tgid = walk->tgid};
	struct kernel_request *request;

	if (walk->slots)
		bpf_map_delete_elem(&request_slots, &key);
	key.at = handle;
	request = bpf_map_lookup_elem(&requests, &key);
	if (!request)
		return;
	if (request->flags & KERNEL_REQUEST_PERSISTENT) {
		request->flags &= ~KERNEL_REQUEST_ACTIVE;
		return;
	}
	if (request->count <= 1) {
		bpf_map_delete_elem(&requests, &key);
		return;
	}
	if (how == REQUEST_LAST) {
		lose(walk->counters, KERNEL_LOST_UNMATCHED, request->count - 1);
		bpf_map_delete_elem(&requests, &key);
		return;
	}
	__sync_fetch_and_sub(&request->count, 1);
	__sync_fetch_and_sub(&request->bytes, bytes < request->bytes ? bytes : request->bytes);
}

/*
 * Returns the bytes of the operation in a variable that holds handle. Where the handle stands for several
 * and was written to another variable, each operation has its share: together all have what was posted.
 * A handle that libraries do not share belongs to its last operation: the others ended unseen.
 */
static __always_inline u64 request_bytes(const struct request_walk *walk, u64 slot, u64 handle,
					 struct kernel_request **found, enum request_how *how)
{
	struct kernel_request_key key = {.at = handle, .tgid = walk->tgid};
	struct kernel_request_slot *own;
	struct kernel_request *request;

	*how = REQUEST_ALONE;
	*found = request = bpf_map_lookup_elem(&requests, &key);
	if (!request)
		return 0;
	if (request->count <= 1)
		return request->bytes;
	key.at = slot;
	own = walk->slots ? bpf_map_lookup_elem(&request_slots, &key) : 0;
	*how = REQUEST_BY_SLOT;
	if (own && own->handle == handle)
		return own->bytes;
	*how = REQUEST_LAST;
	if (!is_number(handle, walk->tgid, KERNEL_REQUEST_SHARED))
		return request->last;
	*how = REQUEST_SHARE;
	return request_share(request->bytes, request->count);
}

/* Prepares a walk: a handle that occurs twice is one that the library shares. */
__noinline int request_mark(u64 handle, struct request_walk *walk)
{
	struct kernel_handle_key shared = {.handle = handle, .kind = KERNEL_REQUEST};
	struct kernel_request_key key = {.at = handle};
	struct kernel_request *request;
	u32 number = KERNEL_REQUEST_SHARED;

	if (!walk)
		return 0;
	key.tgid = shared.tgid = walk->tgid;
	request = bpf_map_lookup_elem(&requests, &key);
	if (!request)
		return 0;
	if (request->walk == walk->id)
		bpf_map_update_elem(&handles, &shared, &number, BPF_NOEXIST);
	request->walk = walk->id;
	return 0;
}

/* Visits one handle of a completion or a start. Returns whether it is the null handle. */
__noinline int request_visit(u64 slot, u64 handle, struct request_walk *walk, struct request_sum *sum)
{
	struct kernel_request *request;
	enum request_how how;
	u64 bytes;

	if (!walk || !sum)
		return 0;
	bytes = request_bytes(walk, slot, handle, &request, &how);
	if (!request) {
		if (is_number(handle, walk->tgid, KERNEL_REQUEST_NULL))
			return 1;
		sum->n++;
		sum->unmatched++;
		return 0;
	}
	if (walk->start)
		request->flags |= KERNEL_REQUEST_ACTIVE;
	else if (request->flags & KERNEL_REQUEST_PERSISTENT && !(request->flags & KERNEL_REQUEST_ACTIVE))
		return 0; /* not started: as if null */
	if (how == REQUEST_SHARE)
		sum->guessed = handle;
	else if (sum->guessed == handle)
		sum->guessed = 0; /* the handle's last operation: the shares are whole again */
	sum->n++;
	sum->bytes += bytes;
	if (walk->all)
		request_done(walk, slot, handle, bytes, how);
	return 0;
}

/* Completes a request that a partial completion reports. */
__noinline int request_complete(u64 slot, u64 handle, struct request_walk *walk)
{
	struct kernel_request *request;
	enum request_how how;
	u64 bytes;

	if (!walk)
		return 0;
	bytes = request_bytes(walk, slot, handle, &request, &how);
	if (request)
		request_done(walk, slot, handle, bytes, how);
	return 0;
}

static __always_inline u64 handle_at(u64 at, bool mpich)
{
	u64 handle = 0;

	if (mpich)
		bpf_probe_read_user(&handle, 4, (void *)at);
	else
		bpf_probe_read_user(&handle, 8, (void *)at);
	return handle;
}

/* Records a posted operation in the maps. own: its variable is the application's. */
__noinline int request_record(struct bpf_thread_state *thread, struct kernel_posted *of, u32 flags, u32 own)
{
	struct kernel_request_key key = {}, slot_key = {};
	struct kernel_request fresh = {.count = 1}, *known;
	struct kernel_request_slot slot = {};

	if (!thread || !of)
		return 0;
	key.tgid = slot_key.tgid = thread->tgid;
	key.at = slot.handle = of->handle;
	slot_key.at = of->at;
	if (!key.at || is_number(key.at, thread->tgid, KERNEL_REQUEST_NULL))
		return 0;
	slot.bytes = fresh.bytes = fresh.last = of->bytes;
	fresh.flags = flags;
	fresh.time_ns = thread->start_ns; /* start of the post or of a later call */
	if (own) {
		if (flags & KERNEL_REQUEST_PERSISTENT)
			bpf_map_delete_elem(&request_slots, &slot_key);
		else
			bpf_map_update_elem(&request_slots, &slot_key, &slot, BPF_ANY);
	}
	known = bpf_map_lookup_elem(&requests, &key);
	if (known && !(fresh.flags & KERNEL_REQUEST_PERSISTENT) && !(known->flags & KERNEL_REQUEST_PERSISTENT)) {
		__sync_fetch_and_add(&known->bytes, fresh.bytes);
		__sync_fetch_and_add(&known->count, 1);
		known->last = fresh.last;
		known->time_ns = fresh.time_ns;
		return 0;
	}
	if (bpf_map_update_elem(&requests, &key, &fresh, BPF_ANY))
		lose(thread->slot, KERNEL_LOST_MAP_FULL, 1);
	return 0;
}

/*
 * Reads the handles of a completion or a start. pending->done: 0 where the call is about all. Programs
 * often wait for completed requests: the null handle is cached.
 */
__noinline int requests_read(struct bpf_thread_state *thread, struct kernel_pending *pending, struct request_walk *walk,
			     struct request_sum *sum)
{
	struct kernel_recent_handle *null;
	u32 size, epoch = states_epoch;
	bool mpich;

	if (!thread || !pending || !walk || !sum)
		return 0;
	null = &thread->recent_handles[KERNEL_REQUEST];
	mpich = thread->process_flags & KERNEL_PROCESS_MPICH;
	size = mpich ? 4 : 8;

	for (u32 i = 0; i < KERNEL_REQUESTS; i++) {
		if (i >= pending->count)
			break;
		pending->handle[i] = handle_at(pending->array + i * size, mpich);
		if (pending->count > 1)
			request_mark(pending->handle[i], walk);
	}
	for (u32 i = 0; i < KERNEL_REQUESTS; i++) {
		if (i >= pending->count)
			break;
		if (null->handle == pending->handle[i] && null->epoch == epoch)
			continue;
		if (request_visit(pending->array + i * size, pending->handle[i], walk, sum)) {
			null->handle = pending->handle[i];
			null->epoch = epoch;
		}
	}
	if (!pending->done)
		pending->count = 0;
	return 0;
}

#endif
