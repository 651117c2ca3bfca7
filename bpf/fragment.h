/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fragments to bundles: what is long, new or abnormal travels singly through the ring, the rest is
 * merged per bin in maps (ARCHITECTURE section 4). A single that finds the ring full is merged.
 */
#ifndef VAPRO_FRAGMENT_H
#define VAPRO_FRAGMENT_H

#include "counting.h"
#include "taken.h"

/* enum vapro_loss, of which this side counts some */
enum {
	LOST_RING_FULL,
	LOST_MAP_FULL,
	LOST_NO_STORAGE,
	LOST_NESTING,
	LOST_ARGUMENT,
	LOST_TRUNCATED,
	LOST_GOVERNED,
	LOST_VANISHED,
	LOST_UNACCOUNTED, /* user space counts it */
	LOST_APPROXIMATED,
	LOST_UNMATCHED,
	LOST_COUNTER
};

/* How a fragment travels. */
#define EMIT_SINGLE 1
#define EMIT_EVENTS 2 /* counters counted it, or should have: what they did is in the thread's scratch */
#define EMIT_COUNTS 4 /* the kernel counted something for it, which is there, too */

static __always_inline bool send_single(const struct kernel_thread *thread, const struct kernel_bundle_key *key,
					const struct kernel_bundle *one)
{
	struct kernel_record *record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);

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

static __always_inline struct kernel_recent_bundle *recent_bundle(struct kernel_thread *thread,
								  const struct kernel_bundle_key *key)
{
	u32 place = recent_bundle_place(key);

	barrier_var(place); /* the compiler knows its bounds, verifiers lose sight of them */
	return &thread->recent_bundles[place & (KERNEL_RECENT_BUNDLES - 1)];
}

/* The bundle of a key, or NULL. */
static __always_inline struct kernel_bundle *bundle_of(struct kernel_thread *thread,
						       const struct kernel_bundle_key *key)
{
	struct kernel_recent_bundle *recent = recent_bundle(thread, key);
	struct kernel_place *at;
	u32 place = recent->place, *known;

	if (!same_bundle(&recent->key, key) || !bin_after(key->bin, closed_bin)) {
		known = bpf_map_lookup_elem(&places, key);
		if (!known)
			return 0;
		place = *known;
		recent->key = *key;
		recent->place = place;
	}
	at = bpf_map_lookup_elem(&pool, &place);
	return at ? &at->bundle : 0;
}

/* Gives the first of a bundle a place. False where there is none left. */
static __always_inline bool bundle_put(struct kernel_thread *thread, const struct kernel_bundle_key *key,
				       const struct kernel_bundle *one)
{
	struct kernel_recent_bundle *recent = recent_bundle(thread, key);
	u32 odd = key->bin & 1, place;
	struct kernel_place *at;

	if (pool_used[odd] >= pool_half)
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
	__sync_lock_test_and_set(&at->key.state, key->state); /* after all else */
	/* where that fails the next one gets a place of its own: they are one bundle in two parts */
	bpf_map_update_elem(&places, key, &place, BPF_ANY);
	recent->key = *key;
	recent->place = place;
	return true;
}

/* Of a fragment that is told alone, or as the first of its bundle. flags: what of it is in `one` already. */
static __always_inline void bundle_begin(struct kernel_bundle *one, const struct kernel_thread *thread, u64 now,
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
 * Hands on what is single, or the first of its bundle; merged where the ring is full. Returns whether it is
 * in a bundle. A function of its own, since most fragments do not come here.
 */
__noinline int emit_one(struct kernel_thread *thread, struct kernel_bundle_key *of, u64 now, u64 bytes, u32 flags)
{
	struct kernel_bundle *one, *into;
	struct kernel_bundle_key key;
	struct kernel_thread *own;

	/* the scratch of the current thread, which this one is: as a map's value, which kernels want to copy from */
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
	lose(thread->slot, flags & EMIT_SINGLE ? LOST_RING_FULL : LOST_MAP_FULL, 1);
	return false;
}

/* A function of its own for its stack, as emit is. */
__noinline int end_counts(struct kernel_thread *thread, struct kernel_counts *counts, u64 duration)
{
	if (thread && counts)
		counts_end(thread, counts, duration);
	return 0;
}

/*
 * Hands a finished fragment over. state: with KERNEL_EDGE for edges. Returns whether it is in a bundle.
 * A global function for its stack: kernels whose JIT gives programs no stack of their own allow 512
 * bytes for a program with all that it calls.
 */
__noinline int emit(struct kernel_thread *thread, u32 state, u64 now, u64 bytes)
{
	bool edge = state & KERNEL_EDGE;
	/* ids go on for ever; two that share statistics only travel in each other's way */
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
			lose(thread->slot, LOST_COUNTER, 1);
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
			if (take_token(thread, now))
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

static __always_inline struct kernel_function_counters *function_counter(u32 row)
{
	return bpf_map_lookup_elem(&function_counters, &row);
}

static __always_inline void tell_row(struct kernel_row_hits *hits)
{
	struct kernel_function_counters *count = hits->calls ? function_counter(hits->row) : 0;

	if (count)
		count->enter += hits->calls;
	hits->calls = 0;
}

/* A call of a row whose entries and returns need not be told exactly. */
static __always_inline void note_row(struct kernel_thread *thread, u32 row)
{
	struct kernel_row_hits *hits = &thread->rows[row & (KERNEL_ROW_HITS - 1)];

	if (hits->row != row) {
		tell_row(hits);
		hits->row = row;
	}
	hits->calls++;
}

/* A function of its own for its length. */
__noinline int tell_more_hits(struct kernel_thread *thread)
{
	struct kernel_governed *governor;

	if (!thread)
		return 0;
	for (u32 i = 0; i < KERNEL_ROW_HITS; i++)
		tell_row(&thread->rows[i]);
	if (!governing)
		return 0;
	governor = governed_of(thread->slot);
	for (u32 i = 0; i < KERNEL_SPANS; i++) {
		struct kernel_span_hits *hits = &thread->spans[i];

		if (!hits->calls && !hits->time_ns)
			continue;
		add(governor->calls[i], hits->calls);
		add(governor->time_ns[i], hits->time_ns);
		hits->calls = hits->time_ns = 0;
	}
	return 0;
}

/* Adds what the thread counted to its process's counters. */
static __always_inline void tell_hits(struct kernel_thread *thread, u64 now)
{
	struct kernel_counters *to = counters_of(thread->slot);

	add(to->enter, thread->hits.enter);
	add(to->exit, thread->hits.exit);
	add(to->emitted, thread->hits.emitted);
	thread->hits.enter = thread->hits.exit = thread->hits.emitted = 0;
	thread->hits.told_ns = now;
	tell_more_hits(thread);
}

/* Number of a state, given at first sight; 0 when the map is full. */
static __always_inline u32 number_of(void *map, const void *key, u32 *next)
{
	u32 *known = bpf_map_lookup_elem(map, key), fresh;

	if (known)
		return *known;
	fresh = __sync_fetch_and_add(next, 1);
	if (bpf_map_update_elem(map, key, &fresh, BPF_NOEXIST) == 0)
		return fresh;
	known = bpf_map_lookup_elem(map, key);
	return known ? *known : 0;
}

/* The same for a vertex, by what the thread found lately. */
static __always_inline u32 vertex_of(struct kernel_thread *thread, const struct kernel_vertex_key *key)
{
	struct kernel_recent *recent = &thread->recent[recent_place(key)];
	u32 epoch = states_epoch, vertex;

	if (recent->epoch == epoch && same_vertex(&recent->key, key))
		return recent->vertex;
	vertex = number_of(&vertices, key, &next_vertex);
	if (!vertex)
		return 0;
	recent->key = *key;
	recent->vertex = vertex;
	recent->epoch = epoch;
	return vertex;
}

static __always_inline u32 edge_of(struct kernel_thread *thread, const struct kernel_edge_key *key)
{
	struct kernel_recent_edge *recent = &thread->recent_edges[recent_edge_place(key)];
	u32 epoch = states_epoch, edge;

	if (recent->epoch == epoch && recent->key.from == key->from && recent->key.to == key->to)
		return recent->edge;
	edge = number_of(&edges, key, &next_edge);
	if (!edge)
		return 0;
	recent->key = *key;
	recent->edge = edge;
	recent->epoch = epoch;
	return edge;
}

/* Whether calls of the thread may go unseen at present: then what lies between two of them is not a fragment. */
static __always_inline bool unseen(const struct kernel_thread *thread)
{
	return thread->turn & 1;
}

/* Closes the computation that led to this vertex, if the thread's last call is known. */
static __always_inline void close_computation(struct kernel_thread *thread, u32 to, u64 now)
{
	struct kernel_edge_key key = {.from = thread->vertex, .to = to};
	u32 edge;

	if (!key.from || !key.to || unseen(thread))
		return;
	edge = edge_of(thread, &key);
	if (!edge) {
		lose(thread->slot, LOST_MAP_FULL, 1);
		return;
	}
	/* before anybody hears of the edge */
	if (thread->polls)
		bpf_map_update_elem(&polled, &edge, &thread->polls, BPF_NOEXIST);
	thread->polls = 0;
	emit(thread, edge | KERNEL_EDGE, now, 0);
}

/* Opens a vertex at now. */
static __always_inline void open_vertex(struct kernel_thread *thread, u32 open, u32 vertex, u64 bytes, u64 now)
{
	thread->open = open;
	thread->polls = 0;
	thread->vertex = vertex;
	thread->bytes = bytes;
	thread->start_ns = now;
	counts_border(thread);
	thread->call++;
}

/* Closes the open vertex; from here on the thread computes. */
static __always_inline void close_vertex(struct kernel_thread *thread, u64 now)
{
	if (!thread->vertex)
		lose(thread->slot, LOST_MAP_FULL, 1);
	else if (emit(thread, thread->vertex, now, thread->bytes))
		thread->hits.emitted++;
	thread->open = KERNEL_NOTHING;
	thread->start_ns = now;
	counts_border(thread);
	if (counting)
		count_begin();
}

/* Forgets what is open: a frame that will not return, or links that were closed. */
static __always_inline void drop_open(struct kernel_thread *thread, u32 cause)
{
	if (thread->open != KERNEL_NOTHING)
		lose(thread->slot, cause, 1);
	thread->open = KERNEL_NOTHING;
	thread->vertex = 0;
	thread->computing = 0;
	thread->fork_sp = thread->fork_outer = 0;
	thread->pending = 0;
	thread->let_go_ns = thread->entered_ns = 0;
}

/* What ended before `to` begins: the computation, or the time of a call whose return was not wanted. */
static __always_inline void close_previous(struct kernel_thread *thread, u32 to, u64 now)
{
	if (thread->open == KERNEL_NOTHING && thread->start_ns == now)
		return; /* a wait ended by this very entry */
	if (!(thread->process_flags & KERNEL_PROCESS_NO_RETURN) || thread->computing)
		close_computation(thread, to, now);
	else if (thread->vertex && !unseen(thread))
		close_vertex(thread, now);
}

/*
 * A row's links were closed or opened: a computation that began before was not seen as it is now, and
 * the exit of what is open may have gone unseen. Calls whose return is hijacked have theirs.
 */
static __always_inline void settle_rows(struct kernel_thread *thread)
{
	if (thread->rows_generation == rows_generation)
		return;
	thread->rows_generation = rows_generation;
	if (thread->open == KERNEL_NOTHING)
		thread->vertex = 0;
	else if (thread->open == KERNEL_WAIT || (thread->open == KERNEL_CALL && thread->own_sites))
		drop_open(thread, LOST_GOVERNED);
}

/*
 * Probes of the process were closed or opened. What lies between two calls is void, since others may
 * have come there unseen; so is an open call whose return probe was among them. All else has its end.
 */
static __always_inline void settle_turn(struct kernel_thread *thread, u32 turn)
{
	struct kernel_function *function;
	u32 row = thread->function, voids = governed_of(thread->slot)->voids;
	bool none_returns = thread->voids != voids;

	thread->turn = turn;
	thread->voids = voids;
	thread->let_go_ns = thread->entered_ns = 0;
	if (thread->open == KERNEL_NOTHING) {
		thread->vertex = 0;
		thread->computing = 0;
	}
	if (thread->open != KERNEL_CALL || thread->own_sites)
		return;
	function = bpf_map_lookup_elem(&functions, &row);
	if (none_returns || (function && function->hot))
		drop_open(thread, LOST_GOVERNED);
}

/*
 * The state of the current thread, made at first sight where its process is watched; NULL for
 * everybody else. Brings it up to the present generation.
 */
static __always_inline struct kernel_thread *thread_of(struct task_struct *task, u64 now, bool create)
{
	struct kernel_thread *thread = bpf_task_storage_get(&threads, task, 0, 0);
	struct kernel_process *process;
	u32 tgid = task->tgid, tid = task->pid, one = 1;

	if (thread && thread->generation == generation && thread->tgid == tgid) {
		u32 turn = governed_of(thread->slot)->turn;

		settle_rows(thread);
		if (thread->turn != turn)
			settle_turn(thread, turn);
		return thread;
	}
	if (!thread && !create)
		return 0;
	process = bpf_map_lookup_elem(&processes, &tgid);
	if (!process) {
		if (discover && create && bpf_map_update_elem(&reported, &tgid, &one, BPF_NOEXIST) == 0)
			tell(KERNEL_UNKNOWN, tgid, tid, now);
		return 0;
	}
	if (!thread) {
		thread = bpf_task_storage_get(&threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
		if (!thread) {
			lose(process->slot, LOST_NO_STORAGE, 1);
			return 0;
		}
	}
	if (thread->tgid != tgid ||
	    thread->slot != process->slot) { /* what was counted was told nobody, who let it go */
		thread->hits.enter = thread->hits.exit = thread->hits.emitted = 0;
		__builtin_memset(thread->rows, 0, sizeof(thread->rows));
		__builtin_memset(thread->spans, 0, sizeof(thread->spans));
	}
	if (thread->tgid != tgid) {
		__builtin_memset(thread, 0, offsetof(struct kernel_thread, registers));
		thread->tgid = tgid;
		thread->tid = tid;
		tell(KERNEL_THREAD, tgid, tid, now);
	} else {
		drop_open(thread, LOST_GOVERNED);
	}
	thread->slot = process->slot;
	thread->process_flags = process->flags;
	thread->generation = generation;
	thread->rows_generation = rows_generation;
	thread->turn = governed_of(process->slot)->turn;
	thread->voids = governed_of(process->slot)->voids;
	return thread;
}

#endif
