/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The few kernel types that vapro reads, declared by hand; libbpf relocates each access to the
 * running kernel's layout (CO-RE). pt_regs is the CPU's own and is fixed.
 */
#ifndef VAPRO_VMLINUX_H
#define VAPRO_VMLINUX_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed int s32;
typedef signed long long s64;
typedef u8 __u8;
typedef u16 __u16;
typedef u32 __u32;
typedef u64 __u64;
typedef s32 __s32;
typedef s64 __s64;
typedef u16 __be16;
typedef u32 __be32;
typedef u32 __wsum;
typedef _Bool bool;
#define true 1
#define false 0

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PROG_ARRAY = 3,
	BPF_MAP_TYPE_PERF_EVENT_ARRAY = 4,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};

enum { BPF_ANY = 0, BPF_NOEXIST = 1, BPF_EXIST = 2 };
enum { BPF_F_NO_PREALLOC = 1, BPF_F_MMAPABLE = 1024 };
enum { BPF_LOCAL_STORAGE_GET_F_CREATE = 1 };
enum { BPF_RB_NO_WAKEUP = 1, BPF_RB_FORCE_WAKEUP = 2, BPF_RB_AVAIL_DATA = 0 };

struct bpf_perf_event_value {
	u64 counter;
	u64 enabled;
	u64 running;
};

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs {
	u64 regs[31];
	u64 sp, pc, pstate;
};
#endif

/* The context of a program at a perf event: its layout is that of user space, whatever the kernel. */
struct bpf_perf_event_data {
	struct pt_regs regs;
	u64 sample_period;
	u64 addr;
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct super_block {
	u32 s_dev;
};

struct inode {
	unsigned short i_mode;
	unsigned long i_ino;
};

struct file {
	struct inode *f_inode;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

/* A kernel's version and configuration determine which of these fields exist: check before reading. */
struct rq {
	u64 clock, clock_task, clock_pelt, lost_idle_time;
	u64 prev_irq_time, prev_steal_time, prev_steal_time_rq;
};

struct cfs_rq {
	struct rq *rq;
	int throttle_count;
	u64 throttled_clock_self, throttled_clock_self_time; /* 6.6 */
	u64 throttled_clock_pelt, throttled_clock_pelt_time; /* 6.0 */
	u64 throttled_clock_task, throttled_clock_task_time;
};

struct sched_entity {
	u64 nr_migrations;
	u64 sum_exec_runtime;
	struct cfs_rq *cfs_rq;
};

/* The page of a process where hijacked returns go (kernel/events/uprobes.c). */
struct xol_area {
	unsigned long vaddr;
};

struct uprobes_state {
	struct xol_area *xol_area;
};

struct mm_struct {
	struct uprobes_state uprobes_state;
};

struct seccomp {
	int mode;
};

/* Run context of a program at a probe of a multi link (kernel/trace/bpf_trace.c). */
struct bpf_session_run_ctx {
	_Bool is_return;
};

struct bpf_uprobe {
	unsigned long long cookie;
};

struct bpf_uprobe_multi_run_ctx {
	struct bpf_session_run_ctx session_ctx;
	struct bpf_uprobe *uprobe;
};

struct thread_info {
	u32 cpu;
};

struct task_struct {
	struct thread_info thread_info;
	unsigned int __state;
	int on_cpu;
	unsigned int flags;
	int pid;
	int tgid;
	int prio;
	char comm[16];
	unsigned long nvcsw, nivcsw;
	unsigned long min_flt, maj_flt;
	struct sched_entity se;
	struct files_struct *files;
	struct mm_struct *mm;
	struct seccomp seccomp;
	struct bpf_local_storage *bpf_storage;
	struct bpf_run_ctx *bpf_ctx;
	unsigned in_iowait : 1;
	unsigned frozen : 1;
	struct task_struct *real_parent;
};

struct linux_binprm;
struct irqaction;

/* Lets a program read obj as this type; no call at run time: the verifier removes it (6.2). */
extern void *bpf_rdonly_cast(const void *obj, unsigned int btf_id) __attribute__((section(".ksyms"), weak));

#pragma clang attribute pop

#endif
