// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The kernel side, one object. The attach mode (user/probe/bpf/) decides which of the invocation
 * programs are loaded and how they attach; their logic lives in the headers beside this file.
 */
#include "maps.h"
#include "fragment.h"
#include "invocation.h"
#include "rows.h"
#include "syscalls.h"
#include "task.h"
#include "inside.h"

/*
 * Kernels from 6.13 on give programs of this type a stack for each CPU, as if they could not be preempted.
 * Programs at uprobes can be, and another thread that runs the same program on that CPU would overwrite
 * the first one's stack: the kernel faults in the target's context. A program that contains a tail call
 * stays on the kernel's stack; the tail call need not be made.
 */
struct nowhere {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} nowhere_in_session SEC(".maps"), nowhere SEC(".maps"); /* one for each way to attach, or kernels refuse them */

const volatile u8 never;

static __always_inline void stay_on_the_kernels_stack(struct pt_regs *ctx, void *map)
{
	if (never)
		bpf_tail_call(ctx, map, 0);
}

/*
 * Kernels before 6.13 have no sessions: the two programs below serve them. A session's program reads whether it is
 * at a return, and its cookie, where the kernel stores them for its helpers: a helper's call costs more than all
 * these reads, much more where kernels guard their returns.
 */
SEC("uprobe")
int invocation(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct bpf_uprobe_multi_run_ctx *run = 0;
	u64 now = bpf_ktime_get_ns();
	bool returned;
	u32 cookie;

	stay_on_the_kernels_stack(ctx, &nowhere_in_session);
	if (bpf_core_field_exists(run->session_ctx.is_return) && bpf_core_field_exists(run->uprobe->cookie)) {
		run = bpf_rdonly_cast(task->bpf_ctx, bpf_core_type_id_kernel(struct bpf_uprobe_multi_run_ctx));
		returned = run->session_ctx.is_return;
		cookie = run->uprobe->cookie;
	} else {
		/* at the entry both addresses are the site's, at the return the thread is back in the caller */
		returned = bpf_get_func_ip(ctx) != SYSCALL_IP(ctx);
		cookie = bpf_get_attach_cookie(ctx);
	}
	return returned ? invocation_exit(ctx, task, now) : entered(ctx, task, cookie, now);
}

SEC("uprobe")
int invocation_entry(struct pt_regs *ctx)
{
	stay_on_the_kernels_stack(ctx, &nowhere);
	entered(ctx, bpf_get_current_task_btf(), (u32)bpf_get_attach_cookie(ctx), bpf_ktime_get_ns());
	return 0;
}

SEC("uretprobe")
int invocation_return(struct pt_regs *ctx)
{
	stay_on_the_kernels_stack(ctx, &nowhere);
	return invocation_exit(ctx, bpf_get_current_task_btf(), bpf_ktime_get_ns());
}

SEC("tp_btf/sys_enter")
int BPF_PROG(syscall_enter, struct pt_regs *regs, long nr)
{
	return syscall_begin(regs, nr);
}

SEC("tp_btf/sys_exit")
int BPF_PROG(syscall_exit, struct pt_regs *regs, long ret)
{
	return syscall_end();
}

SEC("tp_btf/sched_switch")
int BPF_PROG(task_switch, bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int prev_state)
{
	return switched(preempt, prev, next, prev_state);
}

/* Kernels before 5.18 do not pass the state with which prev leaves; it is in the task then. */
SEC("tp_btf/sched_switch")
int BPF_PROG(task_switch_before_5_18, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	return switched(preempt, prev, next, prev->__state);
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(task_wakeup, struct task_struct *task)
{
	return woken(task);
}

SEC("tp_btf/sched_migrate_task")
int BPF_PROG(task_migration, struct task_struct *task, int cpu)
{
	return migrated(task, (u32)cpu);
}

/* The next four, attached only while a diagnosis wants them, cost every interrupt of the node. */
SEC("tp_btf/irq_handler_entry")
int BPF_PROG(hard_entry, int irq, struct irqaction *action)
{
	return hard_begins();
}

SEC("tp_btf/irq_handler_exit")
int BPF_PROG(hard_exit, int irq, struct irqaction *action, int ret)
{
	return hard_ends();
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(soft_entry, unsigned int vector)
{
	return soft_begins();
}

SEC("tp_btf/softirq_exit")
int BPF_PROG(soft_exit, unsigned int vector)
{
	return soft_ends();
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(task_exec, struct task_struct *task, int old_pid, struct linux_binprm *bprm)
{
	ended(task, KERNEL_EXEC);
	if (report_execs)
		send_event(KERNEL_EXEC, task->tgid, task->pid, bpf_ktime_get_ns());
	if (wake_execs)
		bpf_ringbuf_output(&wakes, &wake_execs, sizeof(wake_execs), BPF_RB_FORCE_WAKEUP);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(task_exit, struct task_struct *task)
{
	ended(task, KERNEL_EXIT);
	return 0;
}

SEC("tp_btf/task_newtask")
int BPF_PROG(task_new, struct task_struct *task, u64 clone_flags)
{
	return thread_begins(task, clone_flags);
}

/* Left out where the kernel refuses it: see user/probe/bpf/sampler.h. */
SEC("perf_event")
int inside_clock(struct bpf_perf_event_data *ctx)
{
	inside_sample(ctx);
	return 0;
}

SEC("syscall")
int account_look(void *ctx)
{
	return look_at_account();
}

char _license[] SEC("license") = "GPL";
