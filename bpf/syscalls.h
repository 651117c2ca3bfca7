/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * IO by the system-call tracepoints, for tracked threads only: an inode-wide probe on libc would tax
 * every process of the node. Inside an MPI call the system call belongs to that call.
 */
#ifndef VAPRO_SYSCALLS_H
#define VAPRO_SYSCALLS_H

#include "arch.h"
#include "caller.h"
#include "thinning.h"

#define IOVECS 8

/* S_IFMT bits >> 12 */
#define KIND_BLOCK 6
#define KIND_FILE 8

/* Returns a vector's requested bytes; *cut: it is longer than IOVECS. */
static __always_inline u64 vector_bytes(u64 at, u64 count, bool *cut)
{
	struct {
		u64 base, length;
	} one;
	u64 sum = 0;

	for (u32 i = 0; i < IOVECS; i++) {
		if (i >= count)
			return sum;
		if (bpf_probe_read_user(&one, sizeof(one), (void *)(at + i * sizeof(one))))
			return sum;
		sum += one.length;
	}
	*cut = count > IOVECS;
	return sum;
}

/* Writes a descriptor's kind and inode to key. */
static __always_inline void describe_fd(struct task_struct *task, u64 fd, struct kernel_vertex_key *key)
{
	struct fdtable *table = task->files ? BPF_CORE_READ(task, files, fdt) : 0;
	struct file **slots, *file = 0;
	struct inode *inode;

	if (!table || fd >= BPF_CORE_READ(table, max_fds))
		return;
	slots = BPF_CORE_READ(table, fd);
	if (bpf_probe_read_kernel(&file, sizeof(file), &slots[fd]) || !file)
		return;
	inode = BPF_CORE_READ(file, f_inode);
	if (!inode)
		return;
	key->fd_kind = BPF_CORE_READ(inode, i_mode) >> 12;
	key->file = (u32)BPF_CORE_READ(inode, i_ino);
}

/* Sets the application's call-site: the libc wrapper's return address, found by a table of its system calls. */
static __always_inline void io_call_site(struct pt_regs *regs, const struct bpf_thread_state *thread,
					 struct kernel_vertex_key *key)
{
	struct io_site_key at = {.ip = SYSCALL_IP(regs), .tgid = thread->tgid};
	s32 *displacement = bpf_map_lookup_elem(&io_sites, &at);
	u64 sp = regs->sp;

	if (displacement && !bpf_probe_read_user(&key->site, sizeof(key->site), (void *)(sp + *displacement))) {
		struct caller caller = {
		    .site = key->site, .sp = sp + *displacement + sizeof(u64), .frame = SYSCALL_FRAME(regs)};

		if (hopping && !call_paths)
			key->path = hopped_path_of(&caller, thread->tgid, KERNEL_PATH_DEPTH, thread->slot);
		if (caller.approx)
			key->flags |= KERNEL_VERTEX_APPROX;
		return;
	}
	key->site = at.ip;
	key->flags |= KERNEL_VERTEX_APPROX;
}

static __always_inline int syscall_begin(struct pt_regs *regs, long nr)
{
	struct task_struct *task;
	struct bpf_thread_state *thread;
	struct kernel_vertex_key key = {};
	u64 now, a0, a1, a2, bytes = 0, *count;
	bool cut = false;
	u32 vertex, zero = 0;

	count = bpf_map_lookup_elem(&syscall_counts, &zero);
	if (count)
		(*count)++;
	if (nr < 0 || nr >= KERNEL_SYSCALLS || !io_syscalls[nr])
		return 0;
	task = bpf_get_current_task_btf();
	thread = known_thread(task);
	if (!thread)
		return 0;
	now = bpf_ktime_get_ns();
	thread = thread_of(task, now, false);
	if (hold || !thread || thread->open == KERNEL_CALL || thread->open == KERNEL_WAIT ||
	    (thread->process_flags & KERNEL_PROCESS_NO_RETURN) || thread->suppressed_ns)
		return 0; /* hold: it may be one of a call of MPI */
	if (thread->open == KERNEL_SYSCALL)
		drop_open(thread, KERNEL_LOST_VANISHED); /* tracing stopped before its exit */
	if (governed_of(thread->slot)->no_io) {
		suppress_io(thread);
		return 0;
	}
	a0 = SYSCALL_A0(regs);
	a1 = SYSCALL_A1(regs);
	a2 = SYSCALL_A2(regs);
	key.tgid = thread->tgid;
	key.set = (u16)thread->set;
	key.function = (u16)(KERNEL_FUNCTIONS + nr);
	key.flags = KERNEL_VERTEX_NO_PEER | KERNEL_VERTEX_NO_ROOT;
	switch (nr) {
	case NR_READ:
	case NR_WRITE:
	case NR_PREAD:
	case NR_PWRITE:
		bytes = a2;
		break;
	case NR_READV:
	case NR_WRITEV:
		bytes = vector_bytes(a1, a2, &cut);
		break;
	case NR_OPEN:
		key.mode = (u32)a1;
		break;
	case NR_OPENAT:
		key.mode = (u32)a2;
		break;
	}
	if (cut)
		lose(thread->slot, KERNEL_LOST_TRUNCATED, 1);
	if (nr != NR_OPEN && nr != NR_OPENAT)
		describe_fd(task, a0, &key);
	/* the system call may be an unseen MPI call's, but those read and write no files */
	if ((unseen(thread) || thread->set) && key.fd_kind != KIND_FILE && key.fd_kind != KIND_BLOCK)
		return 0;
	key.cell = cell_of(bytes);
	io_call_site(regs, thread, &key);
	read_counts(thread, task);
	vertex = vertex_of(thread, &key);
	close_computation(thread, vertex, now);
	open_vertex(thread, KERNEL_SYSCALL, vertex, bytes, now);
	add(counters_of(thread->slot)->syscalls, 1);
	return 0;
}

static __always_inline int syscall_end(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct bpf_thread_state *thread = known_thread(task);
	u64 now;

	if (!thread || thread->open != KERNEL_SYSCALL || thread->generation != generation)
		return 0;
	now = bpf_ktime_get_ns();
	add(counters_of(thread->slot)->io_ns, now - thread->start_ns);
	read_counts(thread, task);
	close_vertex(thread, now);
	return 0;
}

#endif
