// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/bpf/kernel_side.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vapro/bundle.h>

#include "base/log.h"
#include "probe/bpf/async_detach.h"
#include "probe/pmu/counters.h"
#include "target/kernel_range.h"
#include "target/machine.h"
#include "vapro.skel.h"

#define INTERFERENCE_PER_CPU 1024
#define INTERFERENCE_LEAST 2048
#define INTERFERENCE_MOST 8192

/* Numbers that the kernel side shares with the analysis. */
_Static_assert(KERNEL_BIN_NS == VAPRO_BIN_NS, "bins");
_Static_assert((int)KERNEL_LOST_RING_FULL == VAPRO_LOST_RING_FULL && (int)KERNEL_LOST_GOVERNED == VAPRO_LOST_GOVERNED &&
		   (int)KERNEL_LOST_APPROXIMATED == VAPRO_LOST_APPROXIMATED &&
		   (int)KERNEL_LOST_STATES == VAPRO_LOST_STATES &&
		   (int)KERNEL_LOST_INTERFERENCE == VAPRO_LOST_INTERFERENCE,
	       "causes of losses");
_Static_assert((int)KERNEL_LOSSES_KNOWN == VAPRO_LOSSES && VAPRO_LOSSES <= KERNEL_LOSSES, "causes of losses");

struct kernel_side {
	struct vapro_bpf *bpf;
	struct kernel_shared shared;
	const struct counters *counters; /* while loading */
	enum attach_mode mode;
	struct attach_mode_of modes[ATTACH_MODES];
	struct facts facts;
	bool no_return, held, switch_has_state;
	struct async_detach *detacher;
	bool looks_at_accounts; /* a program that user space runs can be loaded */
	bool samples;		/* a program at perf events can be loaded */
	struct bpf_link *task_links[6];
	struct bpf_link *syscall_links[2];
	struct bpf_link *interrupt_links[4];
};

/* Modes and features are tried until one works, so that libbpf's warnings are not those of vapro. */
static int print_libbpf(enum libbpf_print_level level, const char *format, va_list arguments)
{
	if (level != LIBBPF_DEBUG)
		log__print(LOG_LEVEL_DEBUG, format, arguments);
	return 0;
}

static const unsigned short io_numbers[] = {SYS_read,	SYS_write,  SYS_pread64, SYS_pwrite64, SYS_readv,
					    SYS_writev, SYS_openat, SYS_close,	 SYS_fsync,    SYS_fdatasync,
#ifdef SYS_open
					    SYS_open
#endif
};

/*
 * Returns the number of entries of a map of interference: for each CPU as many switches from or to a tracked thread as
 * a bin may have. A larger map would cost more, since reading a map walks through all of its buckets.
 */
static uint32_t interference_room(void)
{
	uint32_t room = INTERFERENCE_PER_CPU * (uint32_t)libbpf_num_possible_cpus();

	return room < INTERFERENCE_LEAST ? INTERFERENCE_LEAST : room > INTERFERENCE_MOST ? INTERFERENCE_MOST : room;
}

static int set_sizes(struct vapro_bpf *bpf, const struct vapro_config *config)
{
	uint32_t half = (uint32_t)config->map_entries;
	int status = bpf_map__set_max_entries(bpf->maps.pool, 2 * half);

	if (!status)
		status = bpf_map__set_max_entries(bpf->maps.places, 2 * half);
	if (!status)
		status = bpf_map__set_max_entries(bpf->maps.ring, (uint32_t)config->ring_bytes);
	if (!status)
		status = bpf_map__set_max_entries(bpf->maps.interference_even, interference_room());
	if (!status)
		status = bpf_map__set_max_entries(bpf->maps.interference_odd, interference_room());
	if (!status)
		status = bpf_map__set_max_entries(bpf->maps.waiting_on, (uint32_t)libbpf_num_possible_cpus());
	bpf->rodata->pool_half = half;
	bpf->rodata->interference_room = interference_room();
	bpf->rodata->singles_room = config->ring_bytes - config->ring_bytes / 8;
	bpf->rodata->long_ns = (uint64_t)(config->long_fragment_s * 1e9);
	bpf->rodata->abnormal_ratio_1024 = (uint32_t)(config->abnormal_ratio * 1024);
	bpf->rodata->new_fragments = (uint32_t)config->rare_members;
	bpf->rodata->seccomp_kills = kernel_range__troubled(KERNEL_SECCOMP_KILLS);
	bpf->rodata->own_tgid = (uint32_t)getpid();
	bpf->rodata->governing = config->overhead_cap_pct > 0;
	bpf->rodata->call_paths = config->states == VAPRO_BY_CALL_PATH;
	for (size_t i = 0; i < sizeof(io_numbers) / sizeof(io_numbers[0]); i++)
		bpf->rodata->io_syscalls[io_numbers[i]] = 1;
	return status;
}

/* Says why the kernel did not take the object, in words an operator can act on. */
static int refusal(int status, char *err, size_t err_size)
{
	struct machine machine;

	machine__read(&machine, "");
	if (machine__locked(&machine)) {
		snprintf(err, err_size,
			 "the kernel is locked down (confidentiality), so that BPF may not read its memory and no "
			 "probe works: "
			 "boot with lockdown=integrity or none");
		return 3;
	}
	if (status == -EPERM || status == -EACCES) {
		snprintf(err, err_size,
			 "the kernel refused the BPF object (%s): a capability is missing%s; `vapro check` shows which",
			 strerror(-status),
			 machine.seccomp == 2 ? ", or a seccomp filter (container) refuses bpf(2)" : "");
		return 3;
	}
	if (access("/sys/kernel/btf/vmlinux", R_OK)) {
		snprintf(err, err_size,
			 "this kernel has no BTF (/sys/kernel/btf/vmlinux): CONFIG_DEBUG_INFO_BTF is needed");
		return 3;
	}
	snprintf(err, err_size, "cannot attach probes on this kernel (%s); run `vapro check`", strerror(-status));
	return status == -EINVAL || status == -ESRCH || status == -ENOENT || status == -EOPNOTSUPP ? 3 : 1;
}

/* Whether sched_switch has the state of the task that leaves among its arguments: after preempt, prev and next. */
static bool switch_has_state(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	const struct btf_type *type = NULL;
	bool has_state = true;
	int id = btf ? btf__find_by_name_kind(btf, "btf_trace_sched_switch", BTF_KIND_TYPEDEF) : -1;

	if (id > 0)
		type = btf__type_by_id(btf, btf__type_by_id(btf, (uint32_t)id)->type);
	if (type && btf_is_ptr(type))
		type = btf__type_by_id(btf, type->type);
	if (type && btf_is_func_proto(type))
		has_state = btf_vlen(type) > 4; /* the first is the tracepoint's own */
	btf__free(btf);
	return has_state;
}

/* Selects a rung's programs and how they will be attached. */
static void prepare_programs(struct kernel_side *side, enum attach_mode mode)
{
	struct bpf_program *session = side->bpf->progs.invocation, *entry = side->bpf->progs.invocation_entry,
			   *exited = side->bpf->progs.invocation_return;
	enum bpf_attach_type type = mode == ATTACH_MODE_PERF ? 0 : (enum bpf_attach_type)ATTACH_UPROBE_MULTI;

	bpf_program__set_expected_attach_type(session, (enum bpf_attach_type)ATTACH_UPROBE_SESSION);
	bpf_program__set_expected_attach_type(entry, type);
	bpf_program__set_expected_attach_type(exited, type);
	bpf_program__set_autoload(session, mode == ATTACH_MODE_SESSION && !side->no_return);
	bpf_program__set_autoload(exited, mode != ATTACH_MODE_SESSION && !side->no_return);
	bpf_program__set_autoload(side->bpf->progs.account_look, side->looks_at_accounts);
	bpf_program__set_autoload(side->bpf->progs.inside_clock, side->samples);
	bpf_program__set_autoload(side->bpf->progs.task_switch, side->switch_has_state);
	bpf_program__set_autoload(side->bpf->progs.task_switch_before_5_18, !side->switch_has_state);
}

static int try_object(struct kernel_side *side, enum attach_mode mode, const struct vapro_config *config)
{
	int error;

	side->bpf = vapro_bpf__open();
	if (!side->bpf)
		return -errno;
	prepare_programs(side, mode);
	error = set_sizes(side->bpf, config);
	if (!error)
		error = counters__prepare(side->counters, side->bpf);
	if (!error)
		error = vapro_bpf__load(side->bpf);
	if (!error)
		return 0;
	vapro_bpf__destroy(side->bpf);
	side->bpf = NULL;
	return error;
}

/* Two programs are optional: each is left out where the object does not load with it. */
static int load_object(struct kernel_side *side, enum attach_mode mode, const struct vapro_config *config)
{
	bool *const optional[] = {&side->samples, &side->looks_at_accounts};
	const bool before[] = {side->samples, side->looks_at_accounts};
	int error = try_object(side, mode, config);

	for (size_t i = 0; error && i < 2; i++) {
		if (!*optional[i])
			continue;
		*optional[i] = false;
		error = try_object(side, mode, config);
	}
	for (size_t i = 0; error && i < 2; i++)
		*optional[i] = before[i]; /* the fault is elsewhere */
	return error;
}

/* Loads on the first rung that this kernel takes. Returns 0 or the first rung's -errno. */
static int climb(struct kernel_side *side, const struct vapro_config *config)
{
	int error = 0;

	for (enum attach_mode mode = 0; mode < ATTACH_MODES; mode++) {
		struct attach_mode_of *learnt = &side->modes[mode];
		int status;

		if (side->bpf || (config->attach && config->attach != mode + VAPRO_ATTACH_SESSION)) {
			snprintf(learnt->reason, sizeof(learnt->reason), "not tried: %s",
				 config->attach ? "another one was requested" : "a better one works");
			continue;
		}
		status = modes__try(mode, learnt->reason, sizeof(learnt->reason));
		if (!status) {
			status = load_object(side, mode, config);
			if (status)
				snprintf(learnt->reason, sizeof(learnt->reason),
					 "the kernel refuses the BPF object: %s", strerror(-status));
		}
		if (!status) {
			learnt->works = true;
			side->mode = mode;
		} else if (!error) {
			error = status;
		}
	}
	return side->bpf ? 0 : error;
}

/* The kernel may take the object without the code that reads counters, which makes it bigger. */
static int climb_uncounted(struct kernel_side *side, const struct vapro_config *config, struct counters *counters,
			   int error)
{
	char why[160];

	side->counters = NULL;
	memset(side->modes, 0, sizeof(side->modes));
	if (climb(side, config))
		return error;
	snprintf(why, sizeof(why), "the kernel refuses the BPF object with the code that reads counters (%s)",
		 strerror(-error));
	counters__give_up(counters, why);
	return 0;
}

struct kernel_side *kernel_side__load(const struct vapro_config *config, struct counters *counters, char *err,
				      size_t err_size, int *status)
{
	struct kernel_side *side = calloc(1, sizeof(*side));
	struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY}, files;
	int error;

	*status = 1;
	if (side)
		side->detacher = async_detach__new();
	if (!side || !side->detacher) {
		snprintf(err, err_size, "out of memory");
		free(side);
		return NULL;
	}
	libbpf_set_print(print_libbpf);
	setrlimit(RLIMIT_MEMLOCK, &unlimited); /* older kernels charge maps to it; refusal is harmless on newer ones */
	side->no_return = config->no_return;
	side->switch_has_state = switch_has_state();
	side->looks_at_accounts = libbpf_probe_bpf_prog_type(BPF_PROG_TYPE_SYSCALL, NULL) > 0;
	side->samples = config->inside != VAPRO_OFF && libbpf_probe_bpf_prog_type(BPF_PROG_TYPE_PERF_EVENT, NULL) > 0;
	side->counters = counters;
	error = climb(side, config);
	if (error && counters && counters__count(counters))
		error = climb_uncounted(side, config, counters, error);
	if (!error)
		features__learn(&side->facts, side->mode != ATTACH_MODE_PERF);
	if (!error && side->mode == ATTACH_MODE_PERF && !getrlimit(RLIMIT_NOFILE, &files)) {
		files.rlim_cur = files.rlim_max; /* perf links need a descriptor per site and half */
		setrlimit(RLIMIT_NOFILE, &files);
	}
	if (error) {
		*status = refusal(error, err, err_size);
		kernel_side__free(side);
		return NULL;
	}
	side->shared = shared__of(side->bpf);
	for (size_t i = 0; i < KERNEL_SLOTS; i++)
		side->shared.owners[i] = (struct kernel_owner){.share = KERNEL_SHARE_ALL, .tokens = KERNEL_TOKENS};
	return side;
}

void kernel_side__free(struct kernel_side *side)
{
	if (!side)
		return;
	kernel_side__watch_syscalls(side, false);
	kernel_side__watch_interrupts(side, false);
	for (size_t i = 0; i < sizeof(side->task_links) / sizeof(side->task_links[0]); i++)
		bpf_link__destroy(side->task_links[i]);
	vapro_bpf__destroy(side->bpf);
	async_detach__free(side->detacher);
	free(side);
}

struct vapro_bpf *kernel_side__bpf(struct kernel_side *side)
{
	return side->bpf;
}

const struct kernel_shared *kernel_side__shared(const struct kernel_side *side)
{
	return &side->shared;
}

int kernel_side__map(struct kernel_side *side, enum kernel_map map)
{
	return bpf_map__fd(shared__map(side->bpf, map));
}

uint32_t kernel_side__map_room(struct kernel_side *side, enum kernel_map map)
{
	return bpf_map__max_entries(shared__map(side->bpf, map));
}

void kernel_side__look(struct kernel_side *side, struct kernel_account_look *look)
{
	shared__look(side->bpf, look);
}

enum attach_mode kernel_side__mode(const struct kernel_side *side)
{
	return side->mode;
}

const struct attach_mode_of *kernel_side__modes(const struct kernel_side *side)
{
	return side->modes;
}

const struct facts *kernel_side__facts(const struct kernel_side *side)
{
	return &side->facts;
}

bool kernel_side__frugal(const struct kernel_side *side)
{
	return side->mode == ATTACH_MODE_PERF;
}

int kernel_side__sampling_program(const struct kernel_side *side)
{
	return side->samples ? bpf_program__fd(side->bpf->progs.inside_clock) : -EOPNOTSUPP;
}

bool kernel_side__spares_returns(const struct kernel_side *side)
{
	return side->mode == ATTACH_MODE_SESSION;
}

int kernel_side__link(struct kernel_side *side, const struct kernel_sites *sites, struct kernel_link **link)
{
	const struct mode_programs programs = {.session = bpf_program__fd(side->bpf->progs.invocation),
					       .entry = bpf_program__fd(side->bpf->progs.invocation_entry),
					       .exited = bpf_program__fd(side->bpf->progs.invocation_return)};
	bool hold = side->mode == ATTACH_MODE_PERF && !side->held;
	struct kernel_sites wanted = *sites;
	int status;

	wanted.entry_only |= side->no_return;
	if (async_detach__busy(side->detacher, sites->pid))
		async_detach__wait(side->detacher); /* old probes would fire beside the new ones */
	if (hold)
		kernel_side__hold(side, true);
	status = modes__open(side->mode, &programs, &wanted, link);
	if (hold)
		kernel_side__hold(side, false);
	return status;
}

void kernel_side__unlink(struct kernel_side *side, struct kernel_link *link)
{
	if (link && link->mode == ATTACH_MODE_PERF)
		async_detach__close(side->detacher, link);
	else
		modes__close(link);
}

void kernel_side__finalize(struct kernel_side *side)
{
	async_detach__wait(side->detacher);
}

bool kernel_side__detaching(const struct kernel_side *side)
{
	return async_detach__busy(side->detacher, 0);
}

void kernel_side__hold(struct kernel_side *side, bool held)
{
	if (!held && side->held)
		side->bpf->data->generation++;
	side->held = held;
	__atomic_store_n(&side->bpf->bss->hold, held, __ATOMIC_RELEASE);
}

int kernel_side__watch_tasks(struct kernel_side *side, char *err, size_t err_size)
{
	struct bpf_program *programs[] = {side->switch_has_state ? side->bpf->progs.task_switch
								 : side->bpf->progs.task_switch_before_5_18,
					  side->bpf->progs.task_wakeup,
					  side->bpf->progs.task_migration,
					  side->bpf->progs.task_exec,
					  side->bpf->progs.task_exit,
					  side->bpf->progs.task_new};

	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		side->task_links[i] = bpf_program__attach(programs[i]);
		if (!side->task_links[i]) {
			snprintf(err, err_size, "cannot attach %s: %s", bpf_program__name(programs[i]),
				 strerror(errno));
			return -errno;
		}
	}
	return 0;
}

int kernel_side__watch_syscalls(struct kernel_side *side, bool on)
{
	struct bpf_program *programs[] = {side->bpf ? side->bpf->progs.syscall_exit : NULL,
					  side->bpf ? side->bpf->progs.syscall_enter : NULL};

	for (size_t i = 0; i < 2; i++) {
		if (!on) {
			bpf_link__destroy(side->syscall_links[i]);
			side->syscall_links[i] = NULL;
		} else if (!side->syscall_links[i]) {
			/* exits first: an entry that is seen must have its exit seen */
			side->syscall_links[i] = bpf_program__attach(programs[i]);
			if (!side->syscall_links[i])
				return -errno;
		}
	}
	return 0;
}

bool kernel_side__watches_syscalls(const struct kernel_side *side)
{
	return side->syscall_links[0] != NULL;
}

/* An interrupt begun in the last watched period has no end. */
static int forget_interrupts(struct kernel_side *side)
{
	size_t size = bpf_map__value_size(side->bpf->maps.interrupted);
	void *none = calloc((size_t)libbpf_num_possible_cpus(), (size + 7) & ~(size_t)7);
	uint32_t zero = 0;
	int status = -ENOMEM;

	if (none)
		status =
		    bpf_map_update_elem(bpf_map__fd(side->bpf->maps.interrupted), &zero, none, BPF_ANY) ? -errno : 0;
	free(none);
	return status;
}

int kernel_side__watch_interrupts(struct kernel_side *side, bool on)
{
	/* ends first: a beginning that is seen must have its end seen */
	struct bpf_program *programs[] = {
	    side->bpf ? side->bpf->progs.hard_exit : NULL, side->bpf ? side->bpf->progs.soft_exit : NULL,
	    side->bpf ? side->bpf->progs.hard_entry : NULL, side->bpf ? side->bpf->progs.soft_entry : NULL};
	size_t count = sizeof(programs) / sizeof(programs[0]);
	int status = 0;

	if (on == (side->interrupt_links[0] != NULL))
		return 0;
	if (on)
		status = forget_interrupts(side);
	for (size_t i = 0; on && !status && i < count; i++) {
		side->interrupt_links[i] = bpf_program__attach(programs[i]);
		if (!side->interrupt_links[i])
			status = -errno;
	}
	if (on && !status) {
		__atomic_store_n(&side->bpf->bss->watch_interrupts, 1, __ATOMIC_RELEASE);
		return 0;
	}
	if (side->bpf)
		__atomic_store_n(&side->bpf->bss->watch_interrupts, 0, __ATOMIC_RELEASE);
	for (size_t i = count; i-- > 0;) {
		bpf_link__destroy(side->interrupt_links[i]);
		side->interrupt_links[i] = NULL;
	}
	return status;
}
