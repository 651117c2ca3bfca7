/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rows whose exits are probes of their own (ARCHITECTURE sections 2.3 and 5): nothing of the target's
 * stack is touched, so unwinding works through them. Calls of thread libraries are vertices from
 * entry to exit. User functions may contain calls and must not hide them: their entry and exit are
 * vertices without duration, nothing is open between, and an exit that is not seen (an exception, a
 * tail call) leaves nothing behind. Functions that a compiler outlined for a team of threads are the
 * same at their entry; their exit begins the wait for the thread's next function.
 */
#ifndef VAPRO_ROWS_H
#define VAPRO_ROWS_H

#include "invocation.h"

/* Charges a hit to its row: a hit costs more after a pause of its thread. preamble_ns: of note_hit(). */
static __always_inline void charge_row(u32 cookie, u64 pause, u64 preamble_ns)
{
	struct kernel_function_counters *count = function_counter(cookie & KERNEL_SITE_ROW);

	if (!count)
		return;
	if (cookie & KERNEL_SITE_EXIT)
		count->exit_hits++;
	else
		count->entry_hits++;
	if (pause >= KERNEL_PAUSE_NS) {
		count->pauses[pause_class(pause)]++;
		count->preamble_ns += preamble_ns;
	}
}

static __always_inline void count_site(struct bpf_thread_state *thread, u32 cookie, u64 pause, u64 preamble_ns)
{
	charge_row(cookie, pause, preamble_ns);
	if (cookie & KERNEL_SITE_EXIT) {
		add(counters_of(thread->slot)->left, 1);
	} else {
		add(counters_of(thread->slot)->enter, 1);
		add(counters_of(thread->slot)->rows, 1);
	}
	if (cookie & KERNEL_SITE_STEPPED)
		add(counters_of(thread->slot)->stepped, 1);
	note_busy(thread, cookie & KERNEL_SITE_STEPPED ? KERNEL_STEPPED_WEIGHT : 1);
}

static __always_inline u32 boundary_vertex(struct bpf_thread_state *thread, u64 at, u32 row, u16 flags)
{
	struct kernel_vertex_key key = {.tgid = thread->tgid, .function = row, .set = (u16)thread->set};

	key.site = at + 1; /* a call's return address there */
	key.flags = KERNEL_VERTEX_NO_PEER | KERNEL_VERTEX_NO_ROOT | flags;
	return vertex_of(thread, &key);
}

/* Passes a vertex without duration: one computation ends, the next begins. */
static __always_inline void pass_boundary(struct bpf_thread_state *thread, u32 vertex, u64 now)
{
	close_previous(thread, vertex, now);
	thread->vertex = vertex;
	thread->bytes = 0;
	thread->start_ns = now;
	counts_border(thread);
	thread->call++;
	thread->computing = 1;
	if (counting)
		count_begin();
}

/* Reports a function that a team is given to user space, once per process. */
static __always_inline void report_outlined(struct bpf_thread_state *thread, u64 address, u64 now)
{
	struct kernel_outlined_key key = {.address = address, .tgid = thread->tgid};
	struct kernel_recent_handle *recent = &thread->recent_outlined[recent_outlined_place(address)];
	struct kernel_record *record;
	u32 one = 1, epoch = states_epoch;

	if (recent->epoch == epoch && recent->handle == address)
		return;
	if (bpf_map_lookup_elem(&outlined, &key)) {
		recent->handle = address;
		recent->epoch = epoch;
		return;
	}
	record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
	if (!record) {
		add(records_lost, 1); /* the next call reports it */
		return;
	}
	__builtin_memset(record, 0, sizeof(*record));
	record->type = KERNEL_OUTLINED;
	record->tgid = thread->tgid;
	record->tid = thread->tid;
	record->time_ns = now;
	record->address = address;
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
	bpf_map_update_elem(&outlined, &key, &one, BPF_ANY);
}

static __always_inline void count_entry(u32 row)
{
	struct kernel_function_counters *count = function_counter(row);

	if (count)
		add(count->enter, 1);
}

/* A hit of a function that is not open yet is only counted. */
__noinline int row_looked(u32 cookie, u64 now)
{
	struct bpf_thread_state *thread = bpf_task_storage_get(&threads, bpf_get_current_task_btf(), 0, 0);
	struct bpf_function_state *function;
	u32 row = cookie & KERNEL_SITE_ROW;

	if (!thread)
		return 0;
	add(row_looks, 1);
	function = bpf_map_lookup_elem(&functions, &row);
	if (function && function->kind == KERNEL_ROW_FORK && !(cookie & KERNEL_SITE_EXIT))
		report_outlined(thread, argument(registers_of(thread), function->forked), now);
	return 0;
}

/* A thread enters the function of the last region that its process began. */
static __always_inline void enter_region(struct bpf_thread_state *thread)
{
	struct kernel_team *team = team_of(thread->slot);

	judge_wait(thread, 1);
	thread->region = team->regions;
	thread->unentered = 0;
	if (!thread->fork_sp)
		team->joined = thread->region;
}

#define ROW_DONE (-1)

/*
 * The current thread, with saved registers, enters a row at the site `at`. Returns the kind of a row whose vertex is
 * to be described and opened, or ROW_DONE where nothing is left to do. This function and the __noinline ones below are
 * global and look up the thread themselves: calls of MPI do not use them, and the verifier checks each once.
 */
__noinline int row_entered(u32 cookie, u64 at, u64 now)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct bpf_thread_state *thread = bpf_task_storage_get(&threads, task, 0, 0);
	struct bpf_function_state *function;
	struct arguments *args;
	u32 row = cookie & KERNEL_SITE_ROW;

	if (!thread)
		return ROW_DONE;
	args = registers_of(thread);
	if (hold || thread->suppressed_ns) /* the thread may be inside a suppressed call */
		return ROW_DONE;
	function = bpf_map_lookup_elem(&functions, &row);
	if (!function || !function->known)
		return ROW_DONE;
	if (function->kind == KERNEL_ROW_FORK)
		report_outlined(thread, argument(args, function->forked), now);
	if (function->kind == KERNEL_ROW_OUTLINED)
		enter_region(thread);
	if (!is_outer(thread, task, now))
		return ROW_DONE;
	count_entry(row);
	if (function->kind != KERNEL_ROW_BOUNDARY && function->kind != KERNEL_ROW_OUTLINED)
		return function->kind;
	pass_boundary(thread, boundary_vertex(thread, at, row, 0), now);
	return ROW_DONE;
}

/* Opens what the preceding row_entered() found, at a vertex. */
__noinline int row_opened(u32 row, u32 kind, u32 vertex, u64 now)
{
	struct bpf_thread_state *thread = bpf_task_storage_get(&threads, bpf_get_current_task_btf(), 0, 0);
	struct arguments *args;

	if (!thread)
		return 0;
	args = registers_of(thread);
	close_previous(thread, vertex, now);
	if (kind == KERNEL_ROW_FORK) {
		open_vertex(thread, KERNEL_WAIT, vertex, thread->described, now);
		if (counting)
			count_begin();
		thread->fork_outer = thread->fork_sp;
		thread->fork_sp = args->sp;
		thread->region = __sync_fetch_and_add(&team_of(thread->slot)->regions, 1) + 1;
		thread->unentered = 1;
		return 0;
	}
	open_vertex(thread, KERNEL_CALL, vertex, thread->described, now);
	thread->sp = args->sp;
	thread->function = row;
	thread->own_sites = 1;
	thread->return_to = 0;
	call_site(args, &thread->return_to);
	return 0;
}

/*
 * The exit of an invocation: the call, or the wait for its team, began at this stack pointer. Returns whether it is the
 * end of a region whose function was not seen.
 */
static __always_inline bool leave_call(struct bpf_thread_state *thread, u64 sp, u64 now)
{
	struct kernel_function_counters *count;

	if (thread->open == KERNEL_CALL && thread->own_sites && thread->sp == sp) {
		count = function_counter(thread->function);
		if (count)
			add(count->exit, 1);
	} else {
		if (!thread->fork_sp || thread->fork_sp != sp)
			return false;
		thread->fork_sp = thread->fork_outer;
		thread->fork_outer = 0;
		if (thread->open != KERNEL_WAIT)
			return false;
		thread->computing = 1;
		if (thread->unentered) {
			thread->unentered = 0;
			thread->open = KERNEL_NOTHING;
			return true;
		}
		/* no wait: the team has one thread only */
		if (team_of(thread->slot)->joined != thread->region) {
			skip_vertex(thread, now);
			return false;
		}
	}
	close_vertex(thread, now);
	thread->computing = 1;
	return false;
}

/* Leaves a row; arguments as of row_entered(). */
__noinline int row_left(u32 cookie, u64 at, u64 now)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct bpf_thread_state *thread = bpf_task_storage_get(&threads, task, 0, 0);
	struct kernel_function_counters *count;
	struct bpf_function_state *function;
	struct arguments *args;
	u32 row = cookie & KERNEL_SITE_ROW, vertex;
	bool passes;

	if (!thread)
		return 0;
	args = registers_of(thread);
	if (hold || thread->suppressed_ns) /* the thread may be inside a suppressed call */
		return 0;
	function = bpf_map_lookup_elem(&functions, &row);
	if (!function || !function->known)
		return 0;
	if (function->kind == KERNEL_ROW_CALL || function->kind == KERNEL_ROW_FORK) {
		read_counts(thread, task);
		if (!leave_call(thread, args->sp, now))
			return 0;
		passes = true; /* a region is one computation, as it is between calls without any probe of it */
	} else {
		if (!is_outer(thread, task, now))
			return 0;
		count = function_counter(row);
		if (count)
			add(count->exit, 1);
		passes = function->kind == KERNEL_ROW_BOUNDARY;
	}
	vertex = boundary_vertex(thread, at, row, KERNEL_VERTEX_EXIT);
	if (passes) {
		pass_boundary(thread, vertex, now);
		return 0;
	}
	close_previous(thread, vertex, now);
	if (function->no_wait) {
		thread->vertex = 0;
		thread->computing = 0;
		return 0;
	}
	open_vertex(thread, KERNEL_WAIT, vertex, 0, now);
	thread->computing = 1;
	return 0;
}

/* A polling call only shows the thread's activity between two other calls. */
static __always_inline void row_polls(struct bpf_thread_state *thread)
{
	add(polls_seen, 1);
	if (thread->open == KERNEL_NOTHING)
		thread->polls++;
}

static __always_inline void row_enter(struct bpf_thread_state *thread, u32 cookie, u64 at, u64 now)
{
	int kind = row_entered(cookie, at, now);

	if (kind != ROW_DONE)
		row_opened(cookie & KERNEL_SITE_ROW, kind, described_vertex(thread, cookie, now), now);
}

/* Every entry program begins here. Returns 0 when the return is wanted, else 1. */
static __always_inline int entered(struct pt_regs *ctx, struct task_struct *task, u32 cookie, u64 now)
{
	struct bpf_thread_state *thread = thread_of(task, now, !(cookie & KERNEL_SITE_EXIT));
	u64 pause, preamble_ns;

	if (!thread) {
		add(untracked_hits, 1);
		return 1;
	}
	arguments_read(registers_of(thread), ctx);
	pause = now - thread->hit_ns;
	preamble_ns = note_hit(thread, 0, now);
	if (!(cookie & (KERNEL_SITE_EXIT | KERNEL_SITE_POLL | KERNEL_SITE_OWN)))
		return invocation_enter(thread, task, cookie, now, pause >= KERNEL_PAUSE_NS);
	count_site(thread, cookie, pause, preamble_ns);
	if (cookie & KERNEL_SITE_LOOK)
		row_looked(cookie, now);
	else if (cookie & KERNEL_SITE_EXIT)
		row_left(cookie, place(ctx), now);
	else if (cookie & KERNEL_SITE_POLL)
		row_polls(thread);
	else
		row_enter(thread, cookie, place(ctx), now);
	return 1;
}

#endif
