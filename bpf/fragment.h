/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Begins and ends of a thread's fragments: its state, the vertices and edges it goes through, and its
 * counts until they are reported.
 */
#ifndef VAPRO_FRAGMENT_H
#define VAPRO_FRAGMENT_H

#include "emit.h"

static __always_inline struct kernel_function_counters *function_counter(u32 row)
{
	return bpf_map_lookup_elem(&function_counters, &row);
}

static __always_inline void report_row(struct kernel_row_hits *hits)
{
	struct kernel_function_counters *count = hits->calls ? function_counter(hits->row) : 0;

	if (count)
		count->calls += hits->calls;
	hits->calls = 0;
}

/* Counts a call of a function whose entries and returns need not be exact. */
static __always_inline void note_row(struct bpf_thread_state *thread, u32 row)
{
	struct kernel_row_hits *hits = &thread->rows[row & (KERNEL_ROW_HITS - 1)];

	if (hits->row != row) {
		report_row(hits);
		hits->row = row;
	}
	hits->calls++;
}

/*
 * Sums up a thread's hits by weight: the greatest sum of an epoch is the busiest thread's. A thread that spends much in
 * one epoch wakes vaprod, once; otherwise vaprod looks ten times a second.
 */
static __always_inline void note_busy(struct bpf_thread_state *thread, u64 weight)
{
	struct kernel_counters *to = counters_of(thread->slot);
	u32 epoch = governed_of(thread->slot)->epoch;

	if (thread->epoch != epoch) {
		thread->epoch = epoch;
		thread->epoch_hits = 0;
	}
	if (hits_reach(thread->epoch_hits, weight, wake_hits))
		bpf_ringbuf_output(&wakes, &thread->slot, sizeof(thread->slot), BPF_RB_FORCE_WAKEUP);
	thread->epoch_hits += weight;
	if (to->busiest < thread->epoch_hits)
		to->busiest = thread->epoch_hits;
}

/* Adds the thread's counts to its process's counters. noinline: few hits come here. */
__noinline int report_hits(struct bpf_thread_state *thread, u64 now)
{
	struct kernel_governed *governor;
	struct kernel_counters *to;

	if (!thread)
		return 0;
	to = counters_of(thread->slot);
	note_busy(thread, (u64)thread->hits.enter + thread->hits.exit);
	add(to->enter, thread->hits.enter);
	add(to->exit, thread->hits.exit);
	add(to->emitted, thread->hits.emitted);
	thread->hits.enter = thread->hits.exit = thread->hits.emitted = 0;
	thread->hits.reported_ns = now;
	for (u32 i = 0; i < KERNEL_ROW_HITS; i++)
		report_row(&thread->rows[i]);
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

/*
 * Notes a hit of the thread, of a return or not, at the end of the program's first part, which began at `now`. Returns
 * the time of that part, ns, where the hit follows a pause, else 0.
 */
static __always_inline u64 note_hit(struct bpf_thread_state *thread, u32 returned, u64 now)
{
	u64 pause = now - thread->hit_ns, spent;

	thread->hit_ns = now;
	if (pause < KERNEL_PAUSE_NS)
		return 0;
	spent = bpf_ktime_get_ns() - now;
	if (spent > KERNEL_PREAMBLE_MOST_NS)
		spent = KERNEL_PREAMBLE_MOST_NS;
	add(counters_of(thread->slot)->pauses[returned][pause_class(pause)], 1);
	add(counters_of(thread->slot)->preamble_ns[returned], spent);
	return spent;
}

/* Counts a hit of the thread. Returns whether it is one of those whose program is timed. */
static __always_inline bool timing_is_due(struct bpf_thread_state *thread)
{
	if (thread->hits.untimed) {
		thread->hits.untimed--;
		return false;
	}
	thread->hits.untimed = KERNEL_TIMED_EVERY - 1;
	return true;
}

/* Adds the time of the program at a hit, which began at `began`. */
static __always_inline void note_program_time(struct bpf_thread_state *thread, u32 returned, u64 began)
{
	u64 spent = bpf_ktime_get_ns() - began;
	struct kernel_counters *to = counters_of(thread->slot);

	if (spent > KERNEL_TIMED_MOST_NS)
		return;
	add(to->timed[returned], 1);
	add(to->timed_ns[returned], spent);
}

/* Gives a key a number, and counts the entry; 0 when the map is full. */
static __always_inline u32 give_number(void *map, const void *key, u32 *next, u32 *made, u32 *owned, u32 *used)
{
	u32 *known, fresh = __sync_fetch_and_add(next, 1);

	if (bpf_map_update_elem(map, key, &fresh, BPF_NOEXIST) == 0) {
		add(*made, 1);
		add(*owned, 1);
		add(*used, 1);
		return fresh;
	}
	known = bpf_map_lookup_elem(map, key);
	return known ? *known : 0;
}

/* A process is bounded from here on; user space reports it once. */
static __always_inline void note_bounded(struct kernel_counters *of, u32 what)
{
	if (!(of->bounded & what))
		of->bounded |= what;
}

/* Counts a state without number as lost: its process exceeds its share, or the map is full. */
static __always_inline void lose_state(u32 slot)
{
	lose(slot, counters_of(slot)->bounded & KERNEL_BOUNDED_STATES ? KERNEL_LOST_STATES : KERNEL_LOST_MAP_FULL, 1);
}

/* Returns a vertex's number, new at first sight; 0 where its process may have no more, or the map is full. */
__noinline u32 find_vertex(struct kernel_vertex_key *of, u32 slot)
{
	struct kernel_counters *to = counters_of(slot);
	struct kernel_owner *owner = owner_of(to);
	u32 room = room_of(owner, KERNEL_STATES);
	struct kernel_vertex_key key;
	struct kernel_vertex *by_id;
	u32 *known, vertex, place;

	if (!of)
		return 0;
	key = *of;
	known = bpf_map_lookup_elem(&vertices, &key);
	if (known)
		return *known;
	if (!has_share(to->vertices, owner->vertices, room, KERNEL_DETAILED)) {
		note_bounded(to, KERNEL_BOUNDED_VALUES);
		coarsen_vertex(&key);
		known = bpf_map_lookup_elem(&vertices, &key);
		if (known)
			return *known;
		/* coarse vertices have as much room again, and a few each process has */
		if (to->vertices >= KERNEL_STATES_LEAST &&
		    !has_share(to->vertices / 2, owner->vertices, room, KERNEL_VERTICES_MOST / 2)) {
			note_bounded(to, KERNEL_BOUNDED_STATES);
			return 0;
		}
	}
	if (vertices_used >= KERNEL_STATES)
		return 0;
	vertex = give_number(&vertices, &key, &next_vertex, &to->vertices, &owner->vertices, &vertices_used);
	place = vertex & (KERNEL_NEW_VERTICES - 1);
	by_id = vertex ? bpf_map_lookup_elem(&vertices_by_id, &place) : 0;
	if (by_id && by_id->id != vertex) {
		__sync_lock_test_and_set(&by_id->id, 0);
		by_id->key = key;
		__sync_lock_test_and_set(&by_id->id, vertex);
	}
	return vertex;
}

/* Returns a vertex's number, cached if it is recent. */
static __always_inline u32 vertex_of(struct bpf_thread_state *thread, struct kernel_vertex_key *key)
{
	struct kernel_recent *recent = &thread->recent[recent_place(key)];
	u32 epoch = states_epoch, vertex;

	if (recent->epoch == epoch && same_vertex(&recent->key, key))
		return recent->vertex;
	vertex = find_vertex(key, thread->slot);
	if (!vertex)
		return 0;
	recent->key = *key;
	recent->vertex = vertex;
	recent->epoch = epoch;
	return vertex;
}

/* Returns an edge's number, new at first sight; 0 where its process may have no more, or the map is full. */
static __always_inline u32 number_edge(const struct kernel_edge_key *key, struct kernel_counters *to)
{
	u32 *known = bpf_map_lookup_elem(&edges, key);
	struct kernel_owner *owner = owner_of(to);

	if (known)
		return *known;
	if (to->edges >= KERNEL_STATES_LEAST &&
	    !has_share(to->edges, owner->edges, room_of(owner, KERNEL_STATES), KERNEL_EDGES_MOST)) {
		note_bounded(to, KERNEL_BOUNDED_STATES);
		return 0;
	}
	if (edges_used >= KERNEL_STATES)
		return 0;
	return give_number(&edges, key, &next_edge, &to->edges, &owner->edges, &edges_used);
}

/* Returns the number of an edge that is not cached; 0 as above. */
__noinline u32 find_edge(struct bpf_thread_state *thread, u32 from, u32 to)
{
	struct kernel_edge_key key = {.from = from, .to = to};
	u32 epoch = states_epoch, edge, place;
	struct kernel_recent_edge *recent;
	struct kernel_edge *by_id;

	if (!thread)
		return 0;
	edge = number_edge(&key, counters_of(thread->slot));
	if (!edge)
		return 0;
	place = edge & (KERNEL_STATES - 1);
	by_id = bpf_map_lookup_elem(&edges_by_id, &place);
	if (by_id && by_id->id != edge) {
		__sync_lock_test_and_set(&by_id->id, 0);
		by_id->key = key;
		__sync_lock_test_and_set(&by_id->id, edge);
	}
	recent = &thread->recent_edges[recent_edge_place(&key)];
	recent->key = key;
	recent->edge = edge;
	recent->epoch = epoch;
	return edge;
}

static __always_inline u32 edge_of(struct bpf_thread_state *thread, const struct kernel_edge_key *key)
{
	struct kernel_recent_edge *recent = &thread->recent_edges[recent_edge_place(key)];

	if (recent->epoch == states_epoch && recent->key.from == key->from && recent->key.to == key->to)
		return recent->edge;
	return find_edge(thread, key->from, key->to);
}

/* Returns whether calls of the thread may go unseen at present: the time between two is no fragment then. */
static __always_inline bool unseen(const struct bpf_thread_state *thread)
{
	return thread->probe_epoch & 1;
}

/* Closes the computation that led to this vertex, if the thread's last call is known. */
static __always_inline void close_computation(struct bpf_thread_state *thread, u32 to, u64 now)
{
	struct kernel_edge_key key = {.from = thread->vertex, .to = to};
	u32 edge;

	if (!key.from || !key.to || unseen(thread))
		return;
	edge = edge_of(thread, &key);
	if (!edge) {
		lose_state(thread->slot);
		return;
	}
	/* before user space sees the edge */
	if (thread->polls)
		bpf_map_update_elem(&polled, &edge, &thread->polls, BPF_NOEXIST);
	thread->polls = 0;
	emit(thread, edge | KERNEL_EDGE, now, 0);
}

static __always_inline void open_vertex(struct bpf_thread_state *thread, u32 open, u32 vertex, u64 bytes, u64 now)
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
static __always_inline void close_vertex(struct bpf_thread_state *thread, u64 now)
{
	if (!thread->vertex)
		lose_state(thread->slot);
	else if (emit(thread, thread->vertex, now, thread->bytes))
		thread->hits.emitted++;
	thread->open = KERNEL_NOTHING;
	thread->start_ns = now;
	counts_border(thread);
	if (counting)
		count_begin();
}

/* Drops the open vertex, which is no fragment; the last call stays known. From here on the thread computes. */
static __always_inline void skip_vertex(struct bpf_thread_state *thread, u64 now)
{
	thread->open = KERNEL_NOTHING;
	thread->start_ns = now;
	counts_border(thread);
	if (counting)
		count_begin();
}

/* Ends a thread's wait for its team, as no wait, where the thread may have been in a region unseen. */
static __always_inline void judge_wait(struct bpf_thread_state *thread, u32 enters)
{
	if (thread->open != KERNEL_WAIT || waited(thread, team_of(thread->slot)->regions, enters))
		return;
	lose(thread->slot, KERNEL_LOST_GOVERNED, 1);
	thread->open = KERNEL_NOTHING;
	thread->vertex = 0;
}

/* Drops the open vertex: its frame will not return, or its links were closed. */
static __always_inline void drop_open(struct bpf_thread_state *thread, u32 cause)
{
	struct kernel_function_counters *count = 0;

	if (thread->open == KERNEL_CALL && (thread->counted || thread->own_sites))
		count = function_counter(thread->function);
	if (count)
		add(count->vanished, 1);
	if (thread->open != KERNEL_NOTHING)
		lose(thread->slot, cause, 1);
	thread->open = KERNEL_NOTHING;
	thread->vertex = 0;
	thread->computing = 0;
	thread->fork_sp = thread->fork_outer = 0;
	thread->pending = 0;
	thread->suppressed_ns = thread->entered_ns = 0;
}

/* Closes what ends where `to` begins: the computation, or a call whose return was not wanted. */
static __always_inline void close_previous(struct bpf_thread_state *thread, u32 to, u64 now)
{
	if (thread->open == KERNEL_NOTHING && thread->start_ns == now)
		return; /* this very entry ended a wait */
	if (!(thread->process_flags & KERNEL_PROCESS_NO_RETURN) || thread->computing)
		close_computation(thread, to, now);
	else if (thread->vertex && !unseen(thread))
		close_vertex(thread, now);
}

/*
 * A row's links were closed or opened: drops a computation that began before, and what is open if its
 * exit may have gone unseen. Calls whose return is hijacked still return.
 */
static __always_inline void settle_rows(struct bpf_thread_state *thread)
{
	if (thread->rows_generation == rows_generation)
		return;
	thread->rows_generation = rows_generation;
	if (thread->open == KERNEL_NOTHING)
		thread->vertex = 0;
	else if (thread->open == KERNEL_WAIT || (thread->open == KERNEL_CALL && thread->own_sites))
		drop_open(thread, KERNEL_LOST_GOVERNED);
}

/* Switches to another set of probed functions, whose calls are other states: cached calls are void. */
static __always_inline void enter_set(struct bpf_thread_state *thread, u32 set)
{
	thread->set = set;
	thread->pending = 0; /* requests posted in the other set are dropped with it */
	thread->posts_epoch++;
	for (u32 i = 0; i < KERNEL_RECENT_CALLS; i++)
		thread->recent_calls[i].epoch = 0;
}

/*
 * Enters a probe epoch: probes were closed or opened. The time between two calls is void, since others may
 * have gone unseen; so is an open call whose return probe was closed. All else has its end.
 */
static __always_inline void settle_epoch(struct bpf_thread_state *thread, u32 probe_epoch)
{
	struct kernel_governed *governor = governed_of(thread->slot);
	u32 row = thread->function, drop_open_epoch = governor->drop_open_epoch;
	bool none_returns = thread->drop_open_epoch != drop_open_epoch;
	struct kernel_function_counters *count;
	struct bpf_function_state *function;

	if (thread->open == KERNEL_CALL && !thread->own_sites) {
		function = bpf_map_lookup_elem(&functions, &row);
		if (none_returns || (function && function->hot)) {
			count = thread->counted ? function_counter(row) : 0;
			if (count) /* the return is given up, not missing */
				add(count->vanished, 1);
			drop_open(thread, KERNEL_LOST_GOVERNED);
		}
	}
	if (thread->set != governor->set) {
		/* not yet: what is open ends as a state of its own set, and what follows is void */
		if (thread->open != KERNEL_NOTHING)
			return;
		enter_set(thread, governor->set);
	}
	thread->probe_epoch = probe_epoch;
	thread->drop_open_epoch = drop_open_epoch;
	thread->suppressed_ns = thread->entered_ns = 0;
	if (thread->open == KERNEL_NOTHING) {
		thread->vertex = 0;
		thread->computing = 0;
	}
}

/* Applies closed and opened probes to a thread's state. noinline: most calls find none. */
__noinline int settle(struct bpf_thread_state *thread, u32 probe_epoch)
{
	if (!thread)
		return 0;
	settle_rows(thread);
	if (thread->probe_epoch != probe_epoch)
		settle_epoch(thread, probe_epoch);
	return 0;
}

/*
 * Renews the state of a thread that has none yet (create: it may get one) or one of an earlier generation,
 * or became another process. Returns whether it has one now: its process is watched.
 */
__noinline int renew_thread(u64 now, bool create)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 tgid = task->tgid, tid = task->pid, one = 1;
	struct bpf_process_state *process = bpf_map_lookup_elem(&processes, &tgid);
	struct bpf_thread_state *thread;

	if (!process) {
		if (discover && create && bpf_map_update_elem(&reported, &tgid, &one, BPF_NOEXIST) == 0)
			send_event(KERNEL_UNKNOWN, tgid, tid, now);
		return false;
	}
	thread = bpf_task_storage_get(&threads, task, 0, create ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);
	if (!thread) {
		if (create)
			lose(process->slot, KERNEL_LOST_NO_STORAGE, 1);
		return false;
	}
	if (thread->tgid != tgid || thread->slot != process->slot) { /* drops counts of a released process */
		thread->hits.enter = thread->hits.exit = thread->hits.emitted = 0;
		__builtin_memset(thread->rows, 0, sizeof(thread->rows));
		__builtin_memset(thread->spans, 0, sizeof(thread->spans));
	}
	if (thread->tgid != tgid) {
		__builtin_memset(thread, 0, offsetof(struct bpf_thread_state, registers));
		thread->tgid = tgid;
		thread->tid = tid;
		send_event(KERNEL_THREAD, tgid, tid, now);
	} else {
		drop_open(thread, KERNEL_LOST_GOVERNED);
	}
	thread->slot = process->slot;
	thread->process_flags = process->flags;
	thread->generation = generation;
	thread->rows_generation = rows_generation;
	enter_set(thread, governed_of(process->slot)->set);
	thread->probe_epoch = governed_of(process->slot)->probe_epoch;
	thread->drop_open_epoch = governed_of(process->slot)->drop_open_epoch;
	return true;
}

/*
 * Returns the state of the current thread, whose task this is, made at first sight where its process is watched,
 * else NULL. Brings the state up to the present generation.
 */
static __always_inline struct bpf_thread_state *thread_of(struct task_struct *task, u64 now, bool create)
{
	struct bpf_thread_state *thread = bpf_task_storage_get(&threads, task, 0, 0);
	u32 probe_epoch;

	if (thread && thread->generation == generation && thread->tgid == (u32)task->tgid) {
		probe_epoch = governed_of(thread->slot)->probe_epoch;
		if (thread->probe_epoch != probe_epoch || thread->rows_generation != rows_generation)
			settle(thread, probe_epoch);
		return thread;
	}
	if ((!thread && !create) || !renew_thread(now, create))
		return 0;
	return bpf_task_storage_get(&threads, task, 0, 0);
}

#endif
