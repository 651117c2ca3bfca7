// SPDX-License-Identifier: GPL-2.0
/*
 * Stand-ins for stalls, for guests whose emulated CPU has none, and for the events that count them.
 *
 * A program that writes {u32 kind, u32 ns} to /dev/standin is stalled that long: none of its
 * instructions is executed meanwhile. The PMU "standin" counts where time went: stalled time is of the kind
 * that was written, the rest is split by the parameters, per mille. Its events are those that A64FX
 * accounts cycles with, in ns; they may be in a group that a real event of the CPU leads.
 *
 * This is a test double: a real CPU may count differently.
 */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/perf_event.h>
#include <linux/percpu.h>
#include <linux/sched/clock.h>
#include <linux/uaccess.h>

enum kind { MEMORY, L2, L1, EXECUTION, BRANCH, FRONTEND, KINDS };

enum event { CYCLES, NO_COMMIT, LOAD_WAIT, L1_MISS_WAIT, L2_MISS_WAIT, EXECUTION_WAIT, BRANCH_WAIT, EVENTS };

/* Shares of the time without a stall; the rest of no_commit is the frontend's. */
static int no_commit = 600, load = 200, l1_miss = 120, l2_miss = 60, execution = 150, branch = 50;
module_param(no_commit, int, 0444);
module_param(load, int, 0444);
module_param(l1_miss, int, 0444);
module_param(l2_miss, int, 0444);
module_param(execution, int, 0444);
module_param(branch, int, 0444);

/* The events that count a stall of each kind. */
static const u8 counts[EVENTS] = {
    [CYCLES] = 0xff,
    [NO_COMMIT] = 0xff,
    [LOAD_WAIT] = 1 << MEMORY | 1 << L2 | 1 << L1,
    [L1_MISS_WAIT] = 1 << L2,
    [L2_MISS_WAIT] = 1 << MEMORY,
    [EXECUTION_WAIT] = 1 << EXECUTION,
    [BRANCH_WAIT] = 1 << BRANCH,
};

static DEFINE_PER_CPU(u64[KINDS], stood);

/* The counts of a CPU since it started; they never decrease. */
static u64 total(enum event event)
{
	const int usual[EVENTS] = {1000, no_commit, load, l1_miss, l2_miss, execution, branch};
	u64 rest = local_clock(), of_kinds = 0;
	int kind;

	for (kind = 0; kind < KINDS; kind++) {
		u64 ns = __this_cpu_read(stood[kind]);

		rest -= ns;
		if (counts[event] & 1 << kind)
			of_kinds += ns;
	}
	return of_kinds + rest / 1000 * usual[event];
}

static int standin_init(struct perf_event *event)
{
	if (event->attr.type != event->pmu->type)
		return -ENOENT;
	if (event->attr.config >= EVENTS)
		return -EINVAL;
	return is_sampling_event(event) ? -EOPNOTSUPP : 0;
}

static void standin_read(struct perf_event *event)
{
	u64 now = total(event->attr.config);

	local64_add(now - local64_xchg(&event->hw.prev_count, now), &event->count);
}

static void standin_start(struct perf_event *event, int flags)
{
	local64_set(&event->hw.prev_count, total(event->attr.config));
	event->hw.state = 0;
}

static void standin_stop(struct perf_event *event, int flags)
{
	if (!(event->hw.state & PERF_HES_STOPPED))
		standin_read(event);
	event->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
}

static int standin_add(struct perf_event *event, int flags)
{
	event->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
	if (flags & PERF_EF_START)
		standin_start(event, flags);
	return 0;
}

static void standin_del(struct perf_event *event, int flags)
{
	standin_stop(event, PERF_EF_UPDATE);
}

PMU_FORMAT_ATTR(event, "config:0-7");
PMU_EVENT_ATTR_STRING(cycles, cycles_attr, "event=0");
PMU_EVENT_ATTR_STRING(no_commit, no_commit_attr, "event=1");
PMU_EVENT_ATTR_STRING(load, load_attr, "event=2");
PMU_EVENT_ATTR_STRING(l1_miss, l1_miss_attr, "event=3");
PMU_EVENT_ATTR_STRING(l2_miss, l2_miss_attr, "event=4");
PMU_EVENT_ATTR_STRING(execution, execution_attr, "event=5");
PMU_EVENT_ATTR_STRING(branch, branch_attr, "event=6");

static struct attribute *event_attrs[] = {
    &cycles_attr.attr.attr,  &no_commit_attr.attr.attr, &load_attr.attr.attr,	&l1_miss_attr.attr.attr,
    &l2_miss_attr.attr.attr, &execution_attr.attr.attr, &branch_attr.attr.attr, NULL};
static struct attribute *format_attrs[] = {&format_attr_event.attr, NULL};
static const struct attribute_group event_group = {.name = "events", .attrs = event_attrs};
static const struct attribute_group format_group = {.name = "format", .attrs = format_attrs};
static const struct attribute_group *groups[] = {&event_group, &format_group, NULL};

/* In the software context, so that its events may be in a group of the CPU's own. */
static struct pmu standin = {
    .module = THIS_MODULE,
    .attr_groups = groups,
    .task_ctx_nr = perf_sw_context,
    .event_init = standin_init,
    .add = standin_add,
    .del = standin_del,
    .start = standin_start,
    .stop = standin_stop,
    .read = standin_read,
    .capabilities = PERF_PMU_CAP_NO_INTERRUPT,
};

static ssize_t stand_still(struct file *file, const char __user *from, size_t size, loff_t *at)
{
	struct {
		u32 kind, ns;
	} stall;
	u64 begin, ns = 0;

	if (size != sizeof(stall))
		return -EINVAL;
	if (copy_from_user(&stall, from, sizeof(stall)))
		return -EFAULT;
	if (stall.kind >= KINDS || stall.ns > NSEC_PER_SEC)
		return -EINVAL;
	preempt_disable();
	begin = local_clock();
	while (stall.ns && (ns = local_clock() - begin) < stall.ns)
		cpu_relax();
	this_cpu_add(stood[stall.kind], ns);
	preempt_enable();
	return size;
}

static const struct file_operations operations = {.owner = THIS_MODULE, .write = stand_still};
static struct miscdevice device = {.minor = MISC_DYNAMIC_MINOR, .name = "standin", .fops = &operations};

static int __init standin_load(void)
{
	int error = misc_register(&device);

	if (error)
		return error;
	error = perf_pmu_register(&standin, "standin", -1);
	if (error)
		misc_deregister(&device);
	return error;
}

static void __exit standin_unload(void)
{
	perf_pmu_unregister(&standin);
	misc_deregister(&device);
}

module_init(standin_load);
module_exit(standin_unload);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("stand-ins for stalls and the events that count them");
