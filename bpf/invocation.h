/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * External functions: entry closes the computation fragment of the edge (previous call-site -> this
 * one) and opens the vertex; the return closes it. One pair of programs (one session program where
 * the kernel has them) serves all functions; the cookie is the row. What each argument means comes
 * from the row's roles. Entry and return of a call find each other by the stack pointer.
 */
#ifndef VAPRO_INVOCATION_H
#define VAPRO_INVOCATION_H

#include "arch.h"
#include "caller.h"
#include "fragment.h"
#include "pending.h"
#include "thinning.h"

static __always_inline struct arguments *registers_of(struct bpf_thread_state *thread)
{
	_Static_assert(sizeof(struct arguments) == sizeof(thread->registers), "registers lie there");
	return (struct arguments *)thread->registers;
}

/* Numbers an unknown handle. Returns KERNEL_OTHER_HANDLES - 1 where its process may have no more. */
__noinline u32 number_handle(struct kernel_handle_key *of, u32 slot)
{
	struct kernel_counters *to = counters_of(slot);
	struct kernel_owner *owner = owner_of(to);
	struct kernel_handle_key key;
	u32 *known, fresh;

	if (!of)
		return 0;
	key = *of;
	if (has_share(to->handles, owner->handles, room_of(owner, KERNEL_HANDLES), KERNEL_HANDLES_MOST) &&
	    handles_used < KERNEL_HANDLES) {
		fresh = handle_number_of(__sync_fetch_and_add(&next_handle, 1));
		if (bpf_map_update_elem(&handles, &key, &fresh, BPF_NOEXIST) == 0) {
			add(to->handles, 1);
			add(owner->handles, 1);
			add(handles_used, 1);
			return fresh;
		}
		known = bpf_map_lookup_elem(&handles, &key);
		if (known)
			return *known;
	}
	note_bounded(to, KERNEL_BOUNDED_VALUES);
	return KERNEL_OTHER_HANDLES - 1;
}

static __always_inline u16 handle_number(struct bpf_thread_state *thread, u32 kind, u64 handle)
{
	struct kernel_handle_key key = {.handle = handle, .tgid = thread->tgid, .kind = kind};
	struct kernel_recent_handle *recent = &thread->recent_handles[kind];
	u32 *known, number, epoch = states_epoch;

	if (thread->process_flags & KERNEL_PROCESS_MPICH)
		key.handle = (u32)handle;
	if (recent->epoch == epoch && recent->handle == key.handle)
		return (u16)(recent->number + 1);
	known = bpf_map_lookup_elem(&handles, &key);
	number = known ? *known : number_handle(&key, thread->slot);
	recent->handle = key.handle;
	recent->number = number;
	recent->epoch = epoch;
	return (u16)(number + 1);
}

#define OPEN_MPI_PREDEFINED 2 /* OPAL_DATATYPE_FLAG_PREDEFINED: neither freed nor changed */

/*
 * Reads the size of an Open MPI datatype: a size_t at +24 of the object that the handle points to, behind
 * the type's flags. A program's own handle may be another type's by the next call.
 */
static __always_inline bool open_mpi_size(struct bpf_thread_state *thread, u64 handle, u64 *size)
{
	struct kernel_recent_handle *recent = &thread->recent_types[recent_type_place(handle)];
	struct {
		u16 flags, id;
		u32 used;
		u64 size;
	} type;

	if (recent->epoch == states_epoch && recent->handle == handle) {
		*size = recent->number;
		return true;
	}
	if (bpf_probe_read_user(&type, sizeof(type), (void *)(handle + 16)))
		return false;
	*size = type.size;
	if (type.flags & OPEN_MPI_PREDEFINED && type.size >> 32 == 0) {
		recent->handle = handle;
		recent->number = (u32)type.size;
		recent->epoch = states_epoch;
	}
	return true;
}

/*
 * Returns the bytes of count elements. MPICH has a predefined datatype's size in bits 8-15 of the handle, the standard
 * ABI has a list.
 * The size of other types, or in unreadable memory, is unknown: the number of elements stands for it,
 * and the vertex has a flag. large: the count is an MPI_Count.
 */
static __always_inline u64 bytes_of(struct bpf_thread_state *thread, const struct arguments *args, u8 count_at,
				    u8 type_at, bool array, bool large, struct kernel_vertex_key *key)
{
	u64 size = 1, count = argument(args, count_at), handle;

	if (array) {
		u64 first = 0;

		if (bpf_probe_read_user(&first, large ? sizeof(u64) : sizeof(u32), (void *)count)) {
			lose(thread->slot, KERNEL_LOST_ARGUMENT, 1);
			key->flags |= KERNEL_VERTEX_APPROX;
		}
		count = first;
	}
	if (!large)
		count = (u32)count;
	if (!type_at)
		return count;
	handle = argument(args, type_at);
	if (thread->process_flags & KERNEL_PROCESS_MPICH) {
		size = mpich_size((u32)handle);
		if (!mpich_sized((u32)handle))
			key->flags |= KERNEL_VERTEX_NO_SIZE;
	} else if (thread->process_flags & KERNEL_PROCESS_STANDARD) {
		size = standard_size(handle);
		if (!size) {
			size = 1;
			key->flags |= KERNEL_VERTEX_NO_SIZE;
		}
	} else if (!open_mpi_size(thread, handle, &size)) {
		lose(thread->slot, KERNEL_LOST_ARGUMENT, 1);
		key->flags |= KERNEL_VERTEX_NO_SIZE;
	}
	return count * size;
}

/* Returns whether a variable is the application's; a binding's lie between the two stack pointers. */
static __always_inline bool is_own(const struct arguments *args, u64 caller_sp, u64 at)
{
	return at < args->sp || at >= caller_sp;
}

static __always_inline void describe_post(struct bpf_thread_state *thread, struct task_struct *task,
					  const struct arguments *args, const struct vapro_roles *roles, u64 sp,
					  u64 bytes)
{
	u64 at = argument(args, roles->request);
	bool own = is_own(args, sp, at);

	/* completions could not distinguish known requests: only those that outlive completions are followed */
	if (thread->set & KERNEL_SET_POSTS && !(roles->flags & VAPRO_ROLE_PERSISTENT))
		return;

	/* without returns the handle is read at the next call, and a binding's variable is gone by then */
	if (own || !(thread->process_flags & KERNEL_PROCESS_NO_RETURN))
		request_post(thread, task, at, bytes, roles->flags & VAPRO_ROLE_PERSISTENT, own);
}

/* Describes the requests that a call completes or starts: their number and bytes are the call's own. */
static __always_inline void describe_requests(struct bpf_thread_state *thread, struct task_struct *task,
					      const struct arguments *args, const struct vapro_roles *roles, u64 sp,
					      struct kernel_vertex_key *key, u64 *bytes, u64 now)
{
	struct request_walk walk = {
	    .tgid = thread->tgid, .counters = thread->slot, .start = roles->flags & VAPRO_ROLE_START, .id = now};
	struct kernel_pending *pending;
	struct request_sum sum = {};
	s32 count = 1;

	if (thread->set & KERNEL_SET_POSTS) {
		if (roles->requests != 255)
			count = (s32)argument(args, roles->requests);
		key->requests = count > 0 ? (u16)count : 0;
		key->flags |= KERNEL_VERTEX_NO_BYTES;
		return;
	}
	pending = pending_of(thread, task);
	if (!pending)
		return;
	pending->done = roles->flags & (VAPRO_ROLE_DONE_FLAG | VAPRO_ROLE_DONE_INDEX | VAPRO_ROLE_DONE_SOME);
	walk.all = !pending->done && !walk.start;
	if (roles->requests == 255) {
		pending->array = argument(args, 1);
	} else {
		count = (s32)argument(args, roles->requests);
		pending->array = argument(args, roles->requests + 1);
	}
	pending->slots = walk.slots = is_own(args, sp, pending->array);
	if (count > KERNEL_REQUESTS) {
		lose(thread->slot, KERNEL_LOST_TRUNCATED, count - KERNEL_REQUESTS);
		count = KERNEL_REQUESTS;
	}
	pending->count = count > 0 ? count : 0;
	requests_sum(thread, pending, &walk, &sum);
	if (pending->done && !sum.n)
		pending->count = 0; /* no request that could be done */
	if (pending->done && pending->count) {
		pending->done_at = argument(args, roles->done);
		pending->indices_at = argument(args, roles->done + 1);
		thread->pending = 1;
	}
	if (sum.unmatched && now < governed_of(thread->slot)->known_ns)
		key->flags |= KERNEL_VERTEX_NO_BYTES;
	else if (sum.unmatched)
		lose(thread->slot, KERNEL_LOST_UNMATCHED, sum.unmatched);
	if (sum.guessed)
		key->flags |= KERNEL_VERTEX_APPROX;
	*bytes = sum.bytes;
	key->requests = sum.n;
}

static __always_inline void describe_caller(struct bpf_thread_state *thread, const struct arguments *args,
					    struct kernel_vertex_key *key, u64 *sp)
{
	struct caller caller = {.sp = caller_sp(args), .frame = args->frame};

	if (call_site(args, &caller.site))
		lose(thread->slot, KERNEL_LOST_ARGUMENT, 1);
	if (transparents)
		true_caller(&caller, thread->tgid);
	key->site = caller.site;
	*sp = caller.sp;
	if (hopping && !call_paths)
		key->path = hopped_path_of(&caller, thread->tgid, KERNEL_HOPS, thread->slot);
	if (caller.approx)
		key->flags |= KERNEL_VERTEX_APPROX;
	if (!call_paths)
		return;
	key->path = path_of(&caller, thread->tgid, thread->slot);
	if (!key->path)
		key->flags |= KERNEL_VERTEX_NO_FRAMES;
}

static __always_inline void describe(struct bpf_thread_state *thread, struct task_struct *task,
				     const struct arguments *args, u32 cookie,
				     const struct bpf_function_state *function, struct kernel_vertex_key *key,
				     u64 *bytes, u64 now)
{
	const struct vapro_roles *roles = &function->roles;
	bool array = roles->flags & VAPRO_ROLE_COUNT_ARRAY, large = cookie & KERNEL_SITE_LARGE;
	u64 sp = 0;

	key->tgid = thread->tgid;
	key->set = (u16)thread->set;
	key->function = cookie & KERNEL_SITE_ROW;
	if (roles->count)
		*bytes = bytes_of(thread, args, roles->count, roles->type, array, large, key);
	if (roles->count2)
		*bytes += bytes_of(thread, args, roles->count2, roles->type2, array, large, key);
	if (roles->peer)
		key->peer = (s32)argument(args, roles->peer);
	else
		key->flags |= KERNEL_VERTEX_NO_PEER;
	if (roles->root)
		key->root = (s32)argument(args, roles->root);
	else
		key->flags |= KERNEL_VERTEX_NO_ROOT;
	if (roles->comm)
		key->comm = handle_number(thread, KERNEL_COMM, argument(args, roles->comm));
	if (roles->op)
		key->op = handle_number(thread, KERNEL_OP, argument(args, roles->op));
	describe_caller(thread, args, key, &sp);
	if (roles->requests)
		describe_requests(thread, task, args, roles, sp, key, bytes, now);
	else if (roles->request)
		describe_post(thread, task, args, roles, sp, *bytes);
	key->cell = cell_of(*bytes);
	if (key->flags & (KERNEL_VERTEX_APPROX | KERNEL_VERTEX_NO_SIZE))
		lose(thread->slot, KERNEL_LOST_APPROXIMATED, 1);
}

/* The kernel makes the trampoline's page at the first return that it hijacks. */
static __always_inline u64 trampoline_of(struct bpf_thread_state *thread, struct task_struct *task)
{
	if (!thread->trampoline)
		thread->trampoline = BPF_CORE_READ(task, mm, uprobes_state.xol_area, vaddr);
	return thread->trampoline;
}

/*
 * Returns how an entered function, whose registers the thread has saved, nests in what is open. Calls inside an
 * open call are skipped, frames that vanished are given up. noinline: most calls come when nothing is open.
 */
__noinline int enter_nesting(struct bpf_thread_state *thread, u64 now)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 top = 0, expected = 0;
	struct arguments *args;
	enum nesting nesting;

	if (!thread)
		return NEST_INNER;
	args = registers_of(thread);
	if (thread->open == KERNEL_CALL) {
		expected = thread->own_sites ? thread->return_to : trampoline_of(thread, task);
		if (expected && !returns_to(args, thread->sp, &top))
			expected = 0;
	}
	nesting = nest(thread, args->sp, top, expected);
	if (nesting == NEST_INNER) {
		add(counters_of(thread->slot)->skipped, 1);
		return nesting;
	}
	if (nesting == NEST_VANISHED) {
		add(counters_of(thread->slot)->vanished, 1);
		drop_open(thread, KERNEL_LOST_VANISHED);
	} else if (thread->open == KERNEL_SYSCALL) {
		drop_open(thread, KERNEL_LOST_VANISHED); /* tracing stopped before its exit */
	}
	read_counts(thread, task);
	judge_wait(thread, 0);
	if (thread->open == KERNEL_WAIT)
		close_vertex(thread, now);
	return nesting;
}

/* Returns whether the entered function is not inside another; then what was open is closed. */
static __always_inline bool is_outer(struct bpf_thread_state *thread, struct task_struct *task, u64 now)
{
	if (thread->open != KERNEL_NOTHING)
		return enter_nesting(thread, now) != NEST_INNER;
	read_counts(thread, task);
	return true;
}

/* Returns a plain call's cache entry; NULL for others. */
static __always_inline struct kernel_recent_call *recent_call(struct bpf_thread_state *thread,
							      const struct arguments *args, u32 cookie, u64 *site)
{
	if (!(cookie & KERNEL_SITE_PLAIN) || call_paths || transparents ||
	    thread->process_flags & KERNEL_PROCESS_NO_RETURN || call_site(args, site) || !*site)
		return 0;
	return &thread->recent_calls[recent_call_place(*site, cookie, args->in)];
}

/* Returns whether registers alone determine a call's bytes: its datatype is neither freed nor changed. */
static __always_inline bool keeps_size(const struct bpf_thread_state *thread, const struct arguments *args,
				       const struct vapro_roles *roles)
{
	const struct kernel_recent_handle *type;
	u64 handle;

	if (!roles->type || thread->process_flags & (KERNEL_PROCESS_MPICH | KERNEL_PROCESS_STANDARD))
		return true;
	handle = argument(args, roles->type);
	type = &thread->recent_types[recent_type_place(handle)];
	return type->handle == handle && type->epoch == states_epoch;
}

static __always_inline void remember_call(struct kernel_recent_call *recent, u32 epoch, u64 site, u32 cookie,
					  const struct arguments *args, u32 vertex, u64 bytes)
{
	recent->epoch = epoch;
	recent->site = site;
	recent->function = cookie & KERNEL_SITE_ROW;
	recent->vertex = vertex;
	recent->bytes = bytes;
	for (u32 i = 0; i < KERNEL_PLAIN_ARGUMENTS; i++)
		recent->in[i] = args->in[i];
}

/*
 * Returns the vertex of the call whose registers the current thread has saved, 0 where the map is full; the
 * call's bytes go to thread->described. noinline slow path: cached calls stay in the caller.
 */
__noinline u32 described_vertex(struct bpf_thread_state *thread, u32 cookie, u64 now)
{
	u32 epoch = states_epoch, row = cookie & KERNEL_SITE_ROW, vertex;
	struct bpf_function_state *function = bpf_map_lookup_elem(&functions, &row);
	struct kernel_vertex_key key = {};
	struct kernel_recent_call *recent;
	struct arguments *args;
	u64 bytes = 0, site = 0;

	if (!thread || !function)
		return 0;
	args = registers_of(thread);
	describe(thread, bpf_get_current_task_btf(), args, cookie, function, &key, &bytes, now);
	thread->described = bytes;
	if (thread->process_flags & KERNEL_PROCESS_NO_RETURN && !(cookie & KERNEL_SITE_OWN))
		key.flags |= KERNEL_VERTEX_NO_RETURN;
	vertex = vertex_of(thread, &key);
	recent = recent_call(thread, args, cookie, &site);
	if (recent && vertex && key.site == site && !key.path &&
	    !(key.flags & (KERNEL_VERTEX_APPROX | KERNEL_VERTEX_NO_SIZE)) && keeps_size(thread, args, &function->roles))
		remember_call(recent, epoch, site, cookie, args, vertex, bytes);
	return vertex;
}

/* Returns the vertex that a call opens; writes *bytes. */
static __always_inline u32 call_vertex(struct bpf_thread_state *thread, struct task_struct *task,
				       const struct arguments *args, u32 cookie, const struct vapro_roles *roles,
				       u64 *bytes, u64 now)
{
	struct kernel_recent_call *recent;
	u64 site = 0;
	u32 vertex;

	recent = recent_call(thread, args, cookie, &site);
	if (recent && recent->epoch == states_epoch && same_call(recent, site, cookie, args->in)) {
		*bytes = recent->bytes;
		if (roles->request)
			describe_post(thread, task, args, roles, caller_sp(args), *bytes);
		return recent->vertex;
	}
	vertex = described_vertex(thread, cookie, now);
	*bytes = thread->described;
	return vertex;
}

/* Returns 0 when the return is wanted, 1 to leave it untraced. */
static __always_inline int call_enter(struct bpf_thread_state *thread, struct task_struct *task, u32 cookie, u64 now)
{
	struct kernel_function_counters *count;
	struct bpf_function_state *function;
	struct arguments *args = registers_of(thread);
	u32 row = cookie & KERNEL_SITE_ROW, vertex;
	u64 bytes = 0;

	if (hold)
		return 1;
	if (seccomp_kills && task->seccomp.mode)
		thread->process_flags |= KERNEL_PROCESS_NO_RETURN; /* the task may have got its filter while watched */
	if (!is_outer(thread, task, now))
		return 1;
	function = bpf_map_lookup_elem(&functions, &row);
	if (!function || !function->known)
		return 1;
	if (function->stepped) {
		add(counters_of(thread->slot)->stepped, 1);
		note_busy(thread, KERNEL_STEPPED_WEIGHT - 1);
	}
	if ((function->hot && unseen(thread)) ||
	    (function->unit && governed_of(thread->slot)->set >> ((function->unit - 1) & 31) & 1))
		return 1; /* its probe is being closed: its return may go unseen */
	requests_settle(thread);
	vertex = call_vertex(thread, task, args, cookie, &function->roles, &bytes, now);
	close_previous(thread, vertex, now);
	thread->computing = 0;
	if (thread->process_flags & KERNEL_PROCESS_NO_RETURN) {
		/* time counts entry to entry and belongs to the first call */
		open_vertex(thread, KERNEL_NOTHING, vertex, bytes, now);
		return 1;
	}
	if (governing && is_governed(thread) &&
	    is_suppressed(thread, vertex, function->class == KERNEL_COMMUNICATION, now))
		return 1;
	open_vertex(thread, KERNEL_CALL, vertex, bytes, now);
	thread->sp = args->sp;
	thread->function = row;
	thread->own_sites = 0;
	thread->counted = cookie & KERNEL_SITE_COUNTED;
	if (thread->counted) {
		count = function_counter(row);
		if (count)
			add(count->enter, 1);
	} else {
		note_row(thread, row);
	}
	return 0;
}

/* Counts a call that ends now where it was long: a function with hardly any such call may be left out (governor.h). */
static __always_inline void note_wait(const struct bpf_thread_state *thread, u64 now)
{
	u64 lasted = now - thread->start_ns;
	struct kernel_function_counters *count;

	if (lasted < KERNEL_WAIT_NS)
		return;
	lasted = call_waited(thread, lasted);
	if (lasted < KERNEL_WAIT_NS)
		return;
	count = function_counter(thread->function);
	if (!count)
		return;
	add(count->waits, 1);
	add(count->waited_ns, lasted);
}

/* The current thread enters, after a pause from hits or not, with saved registers. */
static __always_inline int invocation_enter(struct bpf_thread_state *thread, struct task_struct *task, u32 cookie,
					    u64 now, bool paused)
{
	bool timed = timing_is_due(thread) && !paused;
	int unwanted;

	thread->hits.enter++;
	unwanted = call_enter(thread, task, cookie, now);
	if (unwanted && hits_due(&thread->hits, now))
		report_hits(thread, now);
	if (timed)
		note_program_time(thread, 0, now);
	return unwanted;
}

static __always_inline int invocation_exit(struct pt_regs *ctx, struct task_struct *task, u64 now)
{
	struct bpf_thread_state *thread = bpf_task_storage_get(&threads, task, 0, 0);
	struct kernel_function_counters *count;
	u64 sp = entry_sp(ctx);
	bool timed;

	if (!thread)
		return 0;
	thread->hits.exit++;
	timed = timing_is_due(thread) && now - thread->hit_ns < KERNEL_PAUSE_NS;
	if (thread->generation != generation || thread->open != KERNEL_CALL || thread->own_sites || thread->sp != sp)
		return 0; /* an inner call, or its entry was given up: vanished, or of an earlier generation */
	note_hit(thread, 1, now);
	if (thread->counted) {
		count = function_counter(thread->function);
		if (count)
			add(count->exit, 1);
	}
	note_wait(thread, now);
	read_counts(thread, task);
	close_vertex(thread, now);
	requests_settle(thread);
	if (hits_due(&thread->hits, now))
		report_hits(thread, now);
	if (timed)
		note_program_time(thread, 1, now);
	return 0;
}

#endif
