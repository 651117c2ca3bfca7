/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fragments become bundles: long, new and abnormal ones travel singly through the ring, the rest is
 * merged per bin in the pool (ARCHITECTURE section 4). A single that finds the ring full is merged; the
 * ring's last room is for the events of processes.
 */
#ifndef VAPRO_EMIT_H
#define VAPRO_EMIT_H

#include "counting.h"
#include "stolen.h"

/* How a fragment travels. */
#define EMIT_SINGLE 1
#define EMIT_EVENTS 2 /* counters counted it, or should have: the counts are in the thread's scratch */
#define EMIT_COUNTS 4 /* the kernel counted something for it: in the scratch, too */

static __always_inline bool send_single(const struct bpf_thread_state *thread, const struct kernel_bundle_key *key,
					const struct kernel_bundle *one)
{
	struct kernel_record *record;

	if (bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) > singles_room)
		return false;
	record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
	if (!record)
		return false;
	record->type = KERNEL_FRAGMENT;
	record->tgid = thread->tgid;
	record->tid = thread->tid;
	record->pad = 0;
	record->time_ns = one->end_ns;
	record->key = *key;
	record->bundle = *one;
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
	return true;
}

static __always_inline struct kernel_recent_bundle *recent_bundle(struct bpf_thread_state *thread,
								  const struct kernel_bundle_key *key)
{
	u32 place = recent_bundle_place(key);

	barrier_var(place); /* the compiler knows its bounds, verifiers lose sight of them */
	return &thread->recent_bundles[place & (KERNEL_RECENT_BUNDLES - 1)];
}

/* Returns the pool slot of the last bundle of this kind, of any bin, in `places`; NULL if unknown. */
static __always_inline u32 *known_place(const struct kernel_bundle_key *key)
{
	struct kernel_bundle_key any = *key;

	any.bin = 0;
	return bpf_map_lookup_elem(&places, &any);
}

/* Returns the bundle in a pool slot if its key matches: drained slots are reused. */
static __always_inline struct kernel_bundle *bundle_at(u32 place, const struct kernel_bundle_key *key)
{
	struct bpf_pool_slot *at = bpf_map_lookup_elem(&pool, &place);

	return at && same_bundle(&at->key, key) ? &at->bundle : 0;
}

/* Returns the bundle of a key, or NULL. A closed bin is being drained: late fragments get another. */
static __always_inline struct kernel_bundle *bundle_of(struct bpf_thread_state *thread,
						       const struct kernel_bundle_key *key)
{
	struct kernel_recent_bundle *recent = recent_bundle(thread, key);
	u32 *known;

	if (!bin_after(key->bin, closed_bin) || recent->key.bin != key->bin)
		return 0;
	if (same_bundle(&recent->key, key))
		return bundle_at(recent->slot, key);
	known = known_place(key);
	return known ? bundle_at(*known, key) : 0;
}

/*
 * Returns whether a process may have another pool slot in a bin, and counts that slot. Free slots of a
 * bin are of no use after it, so one process may have half of those of its owner: its threads may be the only ones.
 */
static __always_inline bool has_place(struct kernel_counters *of, u32 bin)
{
	struct kernel_owner *owner = owner_of(of);
	u32 odd = bin & 1;

	begin_bin(&of->pool_bin[odd], &of->pool_used[odd], bin);
	begin_bin(&owner->pool_bin[odd], &owner->pool_used[odd], bin);
	if (!has_share(of->pool_used[odd] / 4, owner->pool_used[odd], room_of(owner, pool_half), pool_half))
		return false;
	add(of->pool_used[odd], 1);
	add(owner->pool_used[odd], 1);
	return true;
}

/* Puts the first of a bundle into a pool slot. Returns false if none is left. */
static __always_inline bool bundle_put(struct bpf_thread_state *thread, const struct kernel_bundle_key *key,
				       const struct kernel_bundle *one)
{
	struct kernel_recent_bundle *recent = recent_bundle(thread, key);
	u32 odd = key->bin & 1, place, *known;
	struct kernel_bundle_key any = *key;
	struct bpf_pool_slot *at;

	if (pool_used[odd] >= pool_half || !has_place(counters_of(thread->slot), key->bin))
		return false;
	place = 2 * __sync_fetch_and_add(&pool_used[odd], 1) + odd;
	at = bpf_map_lookup_elem(&pool, &place);
	if (!at)
		return false;
	at->bundle = *one;
	at->key.tid = key->tid;
	at->key.bin = key->bin;
	at->key.cell = key->cell;
	at->key.abnormal = key->abnormal;
	at->key.group = key->group;
	__builtin_memcpy(at->key.named_cell, key->named_cell, sizeof(key->named_cell));
	__sync_lock_test_and_set(&at->key.state, key->state); /* written last */
	if (recent->key.bin != key->bin || same_bundle(&recent->key, key)) {
		recent->key = *key;
		recent->slot = place;
		return true;
	}
	known = known_place(key);
	if (known) { /* if this entry was reused by now, bundle_at() detects the key mismatch */
		*known = place;
		return true;
	}
	/* if this fails, the next fragment may get another slot: one bundle in two parts */
	any.bin = 0;
	bpf_map_update_elem(&places, &any, &place, BPF_ANY);
	return true;
}

/* Fills `one` with a single fragment, or the first of a bundle. flags: counts that `one` has already. */
static __always_inline void bundle_begin(struct kernel_bundle *one, const struct bpf_thread_state *thread, u64 now,
					 u64 bytes, u32 flags)
{
	u64 duration = now - thread->start_ns;

	one->start_ns = thread->start_ns;
	one->end_ns = now;
	one->sum_ns = one->min_ns = one->max_ns = duration;
	one->bytes_min = one->bytes_max = bytes;
	one->first_call = one->last_call = thread->call;
	if (!(flags & EMIT_COUNTS))
		__builtin_memset(&one->counts, 0, sizeof(one->counts));
	if (!(flags & EMIT_EVENTS)) {
		__builtin_memset(one->event_min, 0, sizeof(one->event_min));
		__builtin_memset(one->event_max, 0, sizeof(one->event_max));
		__builtin_memset(one->event_sum, 0, sizeof(one->event_sum));
	}
	one->n = 1;
	one->slot = thread->slot;
}

/*
 * Emits a single fragment, merged where the ring is full, or the first of a bundle. Returns whether it is in a
 * bundle. noinline: most fragments do not come here.
 */
__noinline int emit_one(struct bpf_thread_state *thread, struct kernel_bundle_key *of, u64 now, u64 bytes, u32 flags)
{
	struct kernel_bundle *one, *into;
	struct kernel_bundle_key key;
	struct bpf_thread_state *own;

	/* `thread` itself, looked up again: kernels only copy from what they know as a map's value */
	own = bpf_task_storage_get(&threads, bpf_get_current_task_btf(), 0, 0);
	if (!thread || !of || !own)
		return false;
	key = *of;
	one = &own->one;
	bundle_begin(one, thread, now, bytes, flags);
	if (flags & EMIT_SINGLE) {
		if (send_single(thread, &key, one))
			return true;
		into = bundle_of(own, &key);
		if (into) {
			bundle_merge(into, one);
			if (counting)
				bundle_merge_events(into, one);
			return true;
		}
	}
	if (bundle_put(own, &key, one))
		return true;
	lose(thread->slot, flags & EMIT_SINGLE ? KERNEL_LOST_RING_FULL : KERNEL_LOST_MAP_FULL, 1);
	return false;
}

/* noinline for its stack, as emit() is. */
__noinline int end_counts(struct bpf_thread_state *thread, struct kernel_counts *counts, u64 duration)
{
	if (thread && counts)
		counts_end(thread, counts, duration);
	return 0;
}

/*
 * Emits a finished fragment. state: with KERNEL_EDGE for edges. Returns whether it is in a bundle.
 * A global function for its stack: kernels whose JIT gives programs no separate stack allow 512
 * bytes for a program with all its callees.
 */
__noinline int emit(struct bpf_thread_state *thread, u32 state, u64 now, u64 bytes)
{
	bool edge = state & KERNEL_EDGE;
	/* ids grow without end; sharing statistics only changes how fragments travel */
	u32 index = (state & (KERNEL_STATES - 1)) + (edge ? KERNEL_STATES : 0), flags = 0;
	struct kernel_bundle_key key = {.state = state};
	struct kernel_state_stats *seen;
	struct kernel_bundle *into;
	u64 duration, judged, away = 0;

	if (!thread)
		return false;
	duration = now - thread->start_ns;
	if (duration > long_ns)
		flags |= EMIT_SINGLE;
	key.tid = thread->tid;
	key.bin = bin_of_thread(thread, now + utc_offset_ns);
	if (counts_changed(thread)) {
		flags |= EMIT_COUNTS;
		end_counts(thread, &thread->one.counts, duration);
		away = counts_off_cpu(&thread->one.counts);
	}
	judged = edge && away < duration ? duration - away : duration;
	if (edge && counting) {
		__builtin_memset(thread->one.event_min, 0, sizeof(thread->one.event_min));
		__builtin_memset(thread->one.event_max, 0, sizeof(thread->one.event_max));
		__builtin_memset(thread->one.event_sum, 0, sizeof(thread->one.event_sum));
		flags |= EMIT_EVENTS;
		if (!count_end(&key))
			lose(thread->slot, KERNEL_LOST_COUNTER, 1);
		index = work_place(key.state, key.cell, key.bin);
	} else if (edge) {
		key.cell = cell_of(judged);
	}
	seen = bpf_map_lookup_elem(&stats, &index);
	if (seen) {
		if (seen->n < new_fragments) {
			seen->n++;
			flags |= EMIT_SINGLE;
		} else if (is_abnormal(duration, seen->min_ns, abnormal_ratio_1024)) {
			key.abnormal = 1;
			if (take_token(thread, now, owner_of(counters_of(thread->slot))->tokens))
				flags |= EMIT_SINGLE;
		}
		if (!seen->min_ns || judged < seen->min_ns)
			seen->min_ns = judged;
	}
	into = flags & EMIT_SINGLE ? 0 : bundle_of(thread, &key);
	if (!into)
		return emit_one(thread, &key, now, bytes, flags);
	bundle_add(into, thread->start_ns, now, bytes, thread->call);
	if (flags & EMIT_COUNTS)
		counts_sum(&into->counts, &thread->one.counts);
	if (flags & EMIT_EVENTS)
		bundle_merge_events(into, &thread->one);
	return true;
}

#endif
