/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rows whose exits are probes of their own (ARCHITECTURE sections 2.3 and 5): nothing of the target's
 * stack is touched, so unwinding works through them. Calls of thread libraries are vertices from
 * entry to exit. User functions may contain calls and must not hide them: their entry and exit are
 * vertices without duration, nothing is open between, and an exit that is not seen (an exception, a
 * tail call) leaves nothing behind. Functions that a compiler outlined for a team of threads are the
 * same at their entry; their exit begins the wait for what the thread is given next.
 */
#ifndef VAPRO_ROWS_H
#define VAPRO_ROWS_H

#include "invocation.h"

static __always_inline void count_site(struct kernel_thread *thread, u32 cookie, u64 now)
{
	note_pause(thread, 0, now);
	if (cookie & KERNEL_SITE_EXIT)
		add(counters_of(thread->slot)->left, 1);
	else
		add(counters_of(thread->slot)->enter, 1);
	if (cookie & KERNEL_SITE_STEPPED)
		add(counters_of(thread->slot)->stepped, 1);
}

static __always_inline u32 boundary_vertex(struct kernel_thread *thread, struct pt_regs *ctx, u32 row, u16 flags)
{
	struct kernel_vertex_key key = {.tgid = thread->tgid, .function = row};

	key.site = place(ctx) + 1; /* as a call there would return to */
	key.flags = KERNEL_VERTEX_NO_PEER | KERNEL_VERTEX_NO_ROOT | flags;
	return vertex_of(thread, &key);
}

/* A vertex without duration: what led to it ends, what follows begins. */
static __always_inline void pass_boundary(struct kernel_thread *thread, u32 vertex, u64 now)
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

/* User space learns of a function that a team is given, once per process. */
static __always_inline void tell_outlined(const struct kernel_thread *thread, u64 address, u64 now)
{
	struct kernel_outlined_key key = {.address = address, .tgid = thread->tgid};
	struct kernel_record *record;
	u32 one = 1;

	if (bpf_map_lookup_elem(&outlined, &key))
		return;
	record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
	if (!record) {
		add(records_lost, 1); /* the next one tells */
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

static __always_inline int row_enter(struct pt_regs *ctx, struct task_struct *task, u32 cookie, u64 now)
{
	struct kernel_thread *thread = thread_of(task, now, true);
	struct kernel_function *function;
	struct arguments *args;
	u32 row = cookie & KERNEL_SITE_ROW, vertex;
	u64 sp;

	if (!thread)
		return 1;
	args = registers_of(thread);
	arguments_read(args, ctx);
	sp = args->sp;
	barrier_var(sp);
	count_site(thread, cookie, now);
	if (hold || thread->let_go_ns) /* it may be inside a call that was let go */
		return 1;
	function = bpf_map_lookup_elem(&functions, &row);
	if (!function || !function->known)
		return 1;
	if (function->kind == KERNEL_ROW_FORK)
		tell_outlined(thread, argument(args, function->forked), now);
	if (enter_nesting(thread, task, args, now) == NEST_INNER)
		return 1;
	count_entry(row);
	if (function->kind == KERNEL_ROW_BOUNDARY || function->kind == KERNEL_ROW_OUTLINED) {
		pass_boundary(thread, boundary_vertex(thread, ctx, row, 0), now);
		return 1;
	}
	vertex = described_vertex(thread, cookie, now);
	close_previous(thread, vertex, now);
	if (function->kind == KERNEL_ROW_FORK) {
		open_vertex(thread, KERNEL_WAIT, vertex, thread->described, now);
		thread->fork_outer = thread->fork_sp;
		thread->fork_sp = sp;
		return 1;
	}
	open_vertex(thread, KERNEL_CALL, vertex, thread->described, now);
	thread->sp = sp;
	thread->function = row;
	thread->own_sites = 1;
	thread->return_to = 0;
	call_site(args, &thread->return_to);
	return 1;
}

/* The exit of an invocation: it, or the wait for its team, began at this stack pointer. */
static __always_inline void leave_call(struct kernel_thread *thread, u64 sp, u64 now)
{
	struct kernel_function_counters *count;

	if (thread->open == KERNEL_CALL && thread->own_sites && thread->sp == sp) {
		count = function_counter(thread->function);
		if (count)
			add(count->exit, 1);
	} else {
		if (!thread->fork_sp || thread->fork_sp != sp)
			return;
		thread->fork_sp = thread->fork_outer;
		thread->fork_outer = 0;
		if (thread->open != KERNEL_WAIT)
			return;
	}
	close_vertex(thread, now);
	thread->computing = 1;
}

static __always_inline int row_leave(struct pt_regs *ctx, struct task_struct *task, u32 cookie, u64 now)
{
	struct kernel_thread *thread = thread_of(task, now, false);
	struct kernel_function_counters *count;
	struct kernel_function *function;
	struct arguments *args;
	u32 row = cookie & KERNEL_SITE_ROW, vertex;
	u64 sp;

	if (!thread)
		return 1;
	args = registers_of(thread);
	arguments_read(args, ctx);
	sp = args->sp;
	barrier_var(sp);
	count_site(thread, cookie, now);
	if (hold || thread->let_go_ns) /* it may be inside a call that was let go */
		return 1;
	function = bpf_map_lookup_elem(&functions, &row);
	if (!function || !function->known)
		return 1;
	if (function->kind == KERNEL_ROW_CALL || function->kind == KERNEL_ROW_FORK) {
		read_counts(thread, task);
		leave_call(thread, sp, now);
		return 1;
	}
	if (enter_nesting(thread, task, args, now) == NEST_INNER)
		return 1;
	count = function_counter(row);
	if (count)
		add(count->exit, 1);
	vertex = boundary_vertex(thread, ctx, row, KERNEL_VERTEX_EXIT);
	if (function->kind == KERNEL_ROW_BOUNDARY) {
		pass_boundary(thread, vertex, now);
		return 1;
	}
	close_previous(thread, vertex, now);
	open_vertex(thread, KERNEL_WAIT, vertex, 0, now);
	thread->computing = 1;
	return 1;
}

/* A polling call: between two others it says what the thread is doing there, and no more. */
static __always_inline int row_poll(struct task_struct *task, u32 cookie, u64 now)
{
	struct kernel_thread *thread = thread_of(task, now, true);

	if (!thread)
		return 1;
	count_site(thread, cookie, now);
	add(polls_seen, 1);
	if (thread->open == KERNEL_NOTHING)
		thread->polls++;
	return 1;
}

/* Every entry program begins here. Returns 0 when the return is wanted, else 1. */
static __always_inline int entered(struct pt_regs *ctx, struct task_struct *task, u32 cookie, u64 now)
{
	if (cookie & KERNEL_SITE_EXIT)
		return row_leave(ctx, task, cookie, now);
	if (cookie & KERNEL_SITE_POLL)
		return row_poll(task, cookie, now);
	if (cookie & KERNEL_SITE_OWN)
		return row_enter(ctx, task, cookie, now);
	return invocation_enter(ctx, task, cookie, now);
}

#endif
