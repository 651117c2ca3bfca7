// SPDX-License-Identifier: GPL-2.0-or-later
#include "watch.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "model/grow.h"
#include "report/lines.h"
#include "target/image.h"
#include "vapro.skel.h"

#define MPI_LIBRARY "libmpi.so*"
#define RETIRE_NS 600000000ULL /* after a process's end its last bin is drained by then */
#define LOOKS 5

/* Times after which somebody we heard of is looked at: a library is mapped some time after exec. */
static const uint64_t look_after_ms[LOOKS] = { 3, 20, 100, 400, 1500 };

struct watched {
	pid_t pid;
	int pidfd;
	uint32_t slot;
	struct process identity; /* its mappings belong to the resolver's copy and are not used here */
	const struct attached_image *image;
	char build_id[IMAGE_BUILD_ID_MAX];
	uint64_t attached_ns, ended_ns;
	uint64_t start_utc_ns;
	struct kernel_counters window;  /* at the last window's end */
	struct governor_account account;
	double charged_ns;
	uint64_t governed_ns; /* in this window */
	uint64_t told;        /* vertex fragments of this slot, when it was given */
	uint64_t unaccounted; /* reported so far */
	uint64_t io_calls;
	bool trampoline;
};

struct heard {
	pid_t pid;
	uint64_t since_ns;
	int looks;
};

struct watch {
	struct watch_parts parts;
	const struct selection *selection;
	struct watched *watched;
	size_t count, room;
	struct heard *heard;
	size_t heard_count, heard_room;
	bool slots[KERNEL_SLOTS];
	size_t ever;
	uint64_t hits; /* of processes that ended */
	uint64_t last_second_ns;
};

struct watch *watch__new(const struct watch_parts *parts, const struct selection *selection)
{
	struct watch *watch = calloc(1, sizeof(*watch));

	if (watch) {
		watch->parts = *parts;
		watch->selection = selection;
		watch->slots[KERNEL_SLOTS - 1] = true; /* the calibration child's */
	}
	return watch;
}

void watch__free(struct watch *watch)
{
	if (!watch)
		return;
	for (size_t i = 0; i < watch->count; i++)
		close(watch->watched[i].pidfd);
	free(watch->watched);
	free(watch->heard);
	free(watch);
}

static uint64_t utc_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

static void tell_line(struct watch *watch, char *line)
{
	struct stream_event event = { .type = STREAM_LINE, .line = line };

	if (line)
		stream__put(watch->parts.sink, &event);
	free(line);
}

void watch__warn(struct watch *watch, const char *code, pid_t pid, const char *format, ...)
{
	struct line_warning warning = { .utc_ns = utc_now(), .host = watch->parts.host, .code = code, .pid = (uint32_t)pid };
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	warning.text = text;
	fprintf(stderr, "vaprod: %s\n", text);
	tell_line(watch, lines__warning(&warning));
}

/* Start of a process as UTC, from clock ticks since boot. */
static uint64_t start_utc(uint64_t ticks)
{
	uint64_t tick_ns = 1000000000ULL / (uint64_t)sysconf(_SC_CLK_TCK), since_boot;
	struct timespec boot;

	clock_gettime(CLOCK_BOOTTIME, &boot);
	since_boot = (uint64_t)boot.tv_sec * 1000000000ULL + (uint64_t)boot.tv_nsec;
	since_boot = utc_now() - since_boot + ticks * tick_ns;
	return (since_boot + tick_ns / 2) / tick_ns * tick_ns; /* to the tick: no more is known */
}

static void tell_process(struct watch *watch, const struct watched *watched, enum line_process_state state,
			 uint64_t hits, const char *reason)
{
	const struct process *process = &watched->identity;
	const struct attached_image *image = watched->image;
	struct line_image line_image = { 0 };
	struct line_process line = {
		.utc_ns = utc_now(),
		.host = watch->parts.host,
		.pid = (uint32_t)process->pid,
		.start_utc_ns = watched->start_utc_ns,
		.exe = process->exe,
		.build_id = watched->build_id[0] ? watched->build_id : NULL,
		.rank = process->rank,
		.world_size = process->world_size,
		.job_kind = process->job_kind,
		.job_id = process->job_id,
		.job_step = process->job_step[0] ? process->job_step : NULL,
		.job = process->job,
		.threads = (uint32_t)process__threads(process->pid, NULL, 0),
		.hits = hits,
		.state = state,
		.reason = reason,
	};

	if (image) {
		/* the two skip lists have the same shape; the attacher's is the owner */
		line_image = (struct line_image){ .path = image->path,
						  .build_id = image->build_id,
						  .functions = image->functions,
						  .shifted = image->shifted,
						  .at_entry = image->at_entry,
						  .skipped = (const struct line_skipped *)image->skipped,
						  .skipped_count = image->skipped_count };
		line.images = &line_image;
		line.image_count = 1;
	}
	tell_line(watch, lines__process(&line));
}

static bool selected(const struct watch *watch, const struct process *process)
{
	const struct selection *selection = watch->selection;
	const char *base = strrchr(process->exe, '/');

	if (selection->ancestor)
		return process__descends(process->pid, selection->ancestor);
	if (!selection->pid_count && !selection->glob_count)
		return true;
	for (size_t i = 0; i < selection->pid_count; i++)
		if (selection->pids[i] == process->pid)
			return true;
	for (size_t i = 0; i < selection->glob_count; i++)
		if (!fnmatch(selection->globs[i], process->exe, 0) ||
		    (base && !fnmatch(selection->globs[i], base + 1, 0)))
			return true;
	return false;
}

static bool by_number(const struct watch *watch, pid_t pid)
{
	for (size_t i = 0; i < watch->selection->pid_count; i++)
		if (watch->selection->pids[i] == pid)
			return true;
	return false;
}

static int own_slot(struct watch *watch)
{
	for (int i = 0; i < KERNEL_SLOTS; i++)
		if (!watch->slots[i])
			return i;
	return -1;
}

typedef bool (*each_process)(void *ctx, const struct process *process);

/* Calls visit for every process of the node until it returns false. */
static void for_each_process(each_process visit, void *ctx)
{
	struct dirent *entry;
	DIR *dir = opendir("/proc");
	bool more = true;

	while (dir && more && (entry = readdir(dir))) {
		struct process *process;
		char err[256];
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid <= 0 || process__read(pid, &process, err, sizeof(err)))
			continue;
		more = visit(ctx, process);
		process__free(process);
	}
	if (dir)
		closedir(dir);
}

struct sharing {
	const struct watch *watch;
	const struct process_mapping *mapping;
	size_t targets, others;
};

static bool count_sharer(void *ctx, const struct process *process)
{
	struct sharing *sharing = ctx;

	for (size_t i = 0; i < process->mapping_count; i++) {
		const struct process_mapping *mapping = &process->mappings[i];

		if (!mapping->executable || mapping->inode != sharing->mapping->inode ||
		    mapping->device != sharing->mapping->device)
			continue;
		if (selected(sharing->watch, process) && !process->opted_out && !process->traced)
			sharing->targets++;
		else
			sharing->others++;
		break;
	}
	return true;
}

/*
 * A link for all mappers of an image makes every one of them trap; beside others, few targets get
 * links of their own (ARCHITECTURE section 2.4).
 */
static bool alone(const struct watch *watch, const struct process_mapping *mapping)
{
	struct sharing sharing = { .watch = watch, .mapping = mapping };

	for_each_process(count_sharer, &sharing);
	return sharing.others && sharing.targets <= ATTACHER_MAX_FILTERED;
}

static struct watched *watched_of(struct watch *watch, pid_t pid)
{
	for (size_t i = 0; i < watch->count; i++)
		if (watch->watched[i].pid == pid)
			return &watch->watched[i];
	return NULL;
}

/* Announces the main thread as a row from now on. */
static void tell_row(struct watch *watch, const struct watched *watched, uint64_t to_ns)
{
	int64_t thread = resolver__thread(watch->parts.resolver, (uint32_t)watched->pid, (uint32_t)watched->pid);
	struct stream_event event = { .type = STREAM_SEEN };

	if (thread < 0)
		return;
	event.seen = (struct stream_seen){ .thread = (uint32_t)thread, .from_ns = watched->attached_ns, .to_ns = to_ns };
	stream__put(watch->parts.sink, &event);
}

static const char *refusal_of(const struct process *process, int *status)
{
	*status = -EPERM;
	if (process->opted_out)
		return "VAPRO=off in its environment";
	if (process->traced)
		return "a debugger or tracer is attached to it (ptrace)";
	return NULL;
}

/*
 * Begins to watch a process that was read; takes it over. The kernel side must know the process, its
 * handles and its libc before the first hit, so the links come last. 0 or -errno with a sentence.
 */
static int attach(struct watch *watch, struct process *process, uint64_t now_ns, char *err, size_t err_size)
{
	const struct process_mapping *library = process__mapping_named(process, MPI_LIBRARY);
	struct watched fresh = { .pid = process->pid, .pidfd = -1, .attached_ns = now_ns, .identity = *process };
	struct kernel_process tracked = { .flags = watch->parts.no_return ? KERNEL_PROCESS_NO_RETURN : 0 };
	struct vapro_bpf *bpf = kernel_side__bpf(watch->parts.side);
	const char *reason;
	bool owned = true;
	int slot, status;

	fresh.identity.mappings = NULL; /* they stay the resolver's */
	fresh.identity.text = NULL;
	reason = refusal_of(process, &status);
	if (reason)
		goto refused;
	slot = own_slot(watch);
	fresh.pidfd = (int)syscall(SYS_pidfd_open, process->pid, 0);
	status = slot < 0 ? -ENOSPC : fresh.pidfd < 0 ? -ESRCH : 0;
	reason = slot < 0 ? "1023 processes are watched already" : "it ended while being attached";
	if (status)
		goto refused;
	reason = "out of memory";
	status = grow(&watch->watched, &watch->room, watch->count + 1, sizeof(*watch->watched));
	if (status)
		goto refused;
	owned = false;
	status = resolver__add(watch->parts.resolver, process);
	if (status)
		goto refused;
	fresh.slot = tracked.slot = (uint32_t)slot;
	memset(&bpf->bss->counters[slot], 0, sizeof(bpf->bss->counters[slot]));
	fresh.told = collector__told(watch->parts.collector, fresh.slot);
	governor__open_account(&fresh.account, now_ns);
	fresh.io_calls = process__io_calls(fresh.pid);
	fresh.start_utc_ns = start_utc(fresh.identity.start_time);
	status = kernel_side__track(watch->parts.side, fresh.pid, &tracked);
	snprintf(err, err_size, "%s", strerror(-status));
	if (!status && library)
		status = attacher__attach(watch->parts.attacher, process, library, alone(watch, library), &fresh.image,
					  err, err_size);
	if (status) {
		reason = err;
		attacher__release(watch->parts.attacher, fresh.pid);
		kernel_side__untrack(watch->parts.side, fresh.pid);
		fresh.image = NULL;
		goto forget;
	}
	snprintf(fresh.build_id, sizeof(fresh.build_id), "%s", resolver__build_id(watch->parts.resolver, fresh.pid));
	watch->slots[slot] = true;
	watch->watched[watch->count++] = fresh;
	watch->ever++;
	reason = library	    ? NULL :
		 watch->parts.io ? "it maps no MPI library: only its IO is seen" :
				   "it maps no MPI library, and IO is off: nothing is seen";
	tell_process(watch, &fresh, LINE_ATTACHED, 0, reason);
	tell_row(watch, &fresh, 0);
	return 0;
forget:
	resolver__remove(watch->parts.resolver, fresh.pid);
refused:
	tell_process(watch, &fresh, LINE_REFUSED, 0, reason);
	if (reason != err)
		snprintf(err, err_size, "process %d (%s) is not watched: %s", fresh.pid, fresh.identity.exe, reason);
	if (fresh.pidfd >= 0)
		close(fresh.pidfd);
	if (owned)
		process__free(process);
	return status;
}

/* Looks at one process: attaches it when it is selected and maps what we want. 0, -EAGAIN for later, -errno. */
static int consider(struct watch *watch, pid_t pid, uint64_t now_ns, char *err, size_t err_size)
{
	struct process *process;
	bool asked = by_number(watch, pid);
	int status;

	if (pid == getpid())
		return 0;
	if (watched_of(watch, pid)) /* one that ended, by exec too, is let go first */
		return watched_of(watch, pid)->ended_ns ? -EBUSY : 0;
	status = process__read(pid, &process, err, err_size);
	if (status)
		return status;
	if (!selected(watch, process) || (!asked && !process__mapping_named(process, MPI_LIBRARY))) {
		process__free(process);
		return -EAGAIN;
	}
	return attach(watch, process, now_ns, err, err_size);
}

struct scanning {
	pid_t *pids;
	size_t count, room;
};

static bool collect_candidate(void *ctx, const struct process *process)
{
	struct scanning *scanning = ctx;

	if (!process__mapping_named(process, MPI_LIBRARY))
		return true;
	if (grow(&scanning->pids, &scanning->room, scanning->count + 1, sizeof(*scanning->pids)))
		return false;
	scanning->pids[scanning->count++] = process->pid;
	return true;
}

int watch__scan(struct watch *watch, uint64_t now_ns, char *err, size_t err_size)
{
	struct scanning scanning = { 0 };
	int status = 0;

	for (size_t i = 0; i < watch->selection->pid_count && !status; i++)
		status = consider(watch, watch->selection->pids[i], now_ns, err, err_size);
	if (status)
		return status;
	if (!watch->selection->pid_count || watch->selection->glob_count) {
		char ignored[512];

		for_each_process(collect_candidate, &scanning);
		for (size_t i = 0; i < scanning.count; i++)
			consider(watch, scanning.pids[i], now_ns, ignored, sizeof(ignored));
	}
	free(scanning.pids);
	return (int)watch->count;
}

void watch__heard_of(struct watch *watch, pid_t pid, uint64_t now_ns)
{
	if (watch->selection->pid_count && !watch->selection->glob_count)
		return;
	for (size_t i = 0; i < watch->heard_count; i++)
		if (watch->heard[i].pid == pid) {
			watch->heard[i].since_ns = now_ns;
			watch->heard[i].looks = 0;
			return;
		}
	if (grow(&watch->heard, &watch->heard_room, watch->heard_count + 1, sizeof(*watch->heard)))
		return;
	watch->heard[watch->heard_count++] = (struct heard){ pid, now_ns, 0 };
}

static void look(struct watch *watch, uint64_t now_ns)
{
	char err[512];

	for (size_t i = 0; i < watch->heard_count; i++) {
		struct heard *heard = &watch->heard[i];
		int status;

		if (now_ns < heard->since_ns + look_after_ms[heard->looks] * 1000000)
			continue;
		status = consider(watch, heard->pid, now_ns, err, sizeof(err));
		if (status == -EBUSY || (status == -EAGAIN && ++heard->looks < LOOKS))
			continue;
		*heard = watch->heard[--watch->heard_count];
		i--;
	}
}

static bool has_ended(const struct watched *watched)
{
	struct pollfd fd = { .fd = watched->pidfd, .events = POLLIN };

	return poll(&fd, 1, 0) > 0;
}

static const struct kernel_counters *counters_of(const struct watch *watch, const struct watched *watched)
{
	return &kernel_side__bpf(watch->parts.side)->bss->counters[watched->slot];
}

static uint64_t hits_of(const struct watch *watch, const struct watched *watched)
{
	return counters_of(watch, watched)->enter;
}

static void say_goodbye(struct watch *watch, struct watched *watched, enum line_process_state state,
			const char *reason, uint64_t now_ns)
{
	uint64_t hits = hits_of(watch, watched);

	watched->ended_ns = now_ns;
	tell_row(watch, watched, now_ns);
	tell_process(watch, watched, state, hits,
		     watched->image && !hits ? "mapped but never hit" : reason);
}

static void let_go(struct watch *watch, struct watched *watched, const char *reason, uint64_t now_ns)
{
	say_goodbye(watch, watched, LINE_EXITED, reason, now_ns);
	attacher__release(watch->parts.attacher, watched->pid);
	watched->image = NULL;
	kernel_side__untrack(watch->parts.side, watched->pid);
}

void watch__exec(struct watch *watch, pid_t pid, uint64_t now_ns)
{
	struct watched *watched = watched_of(watch, pid);

	if (watched && !watched->ended_ns)
		let_go(watch, watched, "it became another program (exec)", now_ns);
	watch__heard_of(watch, pid, now_ns);
}

void watch__poll(struct watch *watch, uint64_t now_ns)
{
	look(watch, now_ns);
	for (size_t i = 0; i < watch->count; i++)
		if (!watch->watched[i].ended_ns && has_ended(&watch->watched[i]))
			let_go(watch, &watch->watched[i], "it ended", now_ns);
}

size_t watch__alive(const struct watch *watch)
{
	size_t alive = 0;

	for (size_t i = 0; i < watch->count; i++)
		alive += !watch->watched[i].ended_ns;
	return alive;
}

size_t watch__ever(const struct watch *watch)
{
	return watch->ever;
}

/* Where hijacked returns of a process go, once the kernel made that place. */
static void find_trampoline(struct watch *watch, struct watched *watched)
{
	struct kernel_process tracked = { .slot = watched->slot,
					  .flags = watch->parts.no_return ? KERNEL_PROCESS_NO_RETURN : 0 };
	uint32_t key = (uint32_t)watched->pid;
	struct process *process;
	char err[128];

	if (process__read(watched->pid, &process, err, sizeof(err)))
		return;
	for (size_t i = 0; i < process->mapping_count; i++)
		if (!strcmp(process->mappings[i].path, "[uprobes]"))
			tracked.trampoline = process->mappings[i].start;
	process__free(process);
	if (!tracked.trampoline)
		return;
	watched->trampoline = true;
	bpf_map_update_elem(bpf_map__fd(kernel_side__bpf(watch->parts.side)->maps.processes), &key, &tracked, BPF_EXIST);
}

void watch__second(struct watch *watch, uint64_t now_ns, struct watch_second *second)
{
	double seconds = (double)(now_ns - watch->last_second_ns) * 1e-9;

	*second = (struct watch_second){ 0 };
	for (size_t i = 0; i < watch->count; i++) {
		struct watched *watched = &watch->watched[i];
		struct kernel_thread thread;
		uint64_t calls;

		if (watched->ended_ns)
			continue;
		calls = process__io_calls(watched->pid);
		second->io_worth |= (double)(calls - watched->io_calls) >= seconds;
		watched->io_calls = calls;
		second->in_io |= !kernel_side__thread(watch->parts.side, watched->pid, &thread) &&
				 thread.open == KERNEL_SYSCALL;
		second->threads += (uint32_t)process__threads(watched->pid, NULL, 0);
		if (!watched->trampoline && hits_of(watch, watched))
			find_trampoline(watch, watched);
	}
	watch->last_second_ns = now_ns;
}

double watch__charge(struct watch *watch, const struct governor *governor, uint64_t now_ns)
{
	double debt = 0;

	for (size_t i = 0; i < watch->count; i++) {
		struct watched *watched = &watch->watched[i];
		double cost = calibrate__cost(watch->parts.costs, counters_of(watch, watched));

		if (watched->ended_ns)
			continue;
		if (governor__charge(governor, &watched->account, now_ns, cost - watched->charged_ns) &&
		    -watched->account.credit_ns > debt)
			debt = -watched->account.credit_ns;
		watched->charged_ns = cost;
	}
	return debt;
}

void watch__governed(struct watch *watch, uint64_t from_ns, uint64_t to_ns)
{
	for (size_t i = 0; i < watch->count; i++) {
		struct watched *watched = &watch->watched[i];
		uint64_t from = from_ns > watched->attached_ns ? from_ns : watched->attached_ns;
		uint64_t to = watched->ended_ns && watched->ended_ns < to_ns ? watched->ended_ns : to_ns;

		if (to > from)
			watched->governed_ns += to - from;
	}
}

static int tell_facts(struct watch *watch, struct watched *watched, uint64_t begin_ns, uint64_t end_ns)
{
	struct kernel_counters now = *counters_of(watch, watched), delta = { 0 };
	struct stream_event event = { .type = STREAM_FACTS };
	uint64_t from = begin_ns > watched->attached_ns ? begin_ns : watched->attached_ns;
	uint64_t to = watched->ended_ns && watched->ended_ns < end_ns ? watched->ended_ns : end_ns;
	uint64_t told = collector__told(watch->parts.collector, watched->slot) - watched->told;

	delta.enter = now.enter - watched->window.enter;
	delta.exit = now.exit - watched->window.exit;
	delta.stepped = now.stepped - watched->window.stepped;
	delta.syscalls = now.syscalls - watched->window.syscalls;
	event.facts = (struct vapro_process_facts){ .pid = (uint32_t)watched->pid,
						    .job = watched->identity.job,
						    .wall_ns = to > from ? to - from : 0,
						    .governed_ns = watched->governed_ns,
						    .hits = delta.enter + delta.exit + delta.syscalls,
						    .cost_ns = (uint64_t)calibrate__cost(watch->parts.costs, &delta) };
	for (int i = 0; i < VAPRO_LOSSES; i++)
		event.facts.lost[i] = now.lost[i] - watched->window.lost[i];
	/* handed over by the kernel side and never told; of the living some are always under way */
	if (watched->ended_ns && now.emitted > told + watched->unaccounted) {
		event.facts.lost[VAPRO_LOST_UNACCOUNTED] += now.emitted - told - watched->unaccounted;
		watched->unaccounted = now.emitted - told;
	}
	watched->window = now;
	watched->governed_ns = 0;
	return stream__put(watch->parts.sink, &event);
}

/* What ended before a window's end and has been drained since. */
static void retire(struct watch *watch, uint64_t end_ns)
{
	for (size_t i = 0; i < watch->count; i++) {
		struct watched *watched = &watch->watched[i];

		if (!watched->ended_ns || watched->ended_ns + RETIRE_NS > end_ns)
			continue;
		watch->hits += hits_of(watch, watched);
		resolver__remove(watch->parts.resolver, watched->pid);
		watch->slots[watched->slot] = false;
		close(watched->pidfd);
		*watched = watch->watched[--watch->count];
		i--;
	}
}

int watch__end_window(struct watch *watch, uint64_t begin_ns, uint64_t end_ns)
{
	pid_t tids[256];
	int status = 0;

	for (size_t i = 0; i < watch->count && !status; i++) {
		struct watched *watched = &watch->watched[i];
		size_t count = watched->ended_ns ? 0 : process__threads(watched->pid, tids, 256);

		for (size_t j = 0; j < count && j < 256 && !status; j++)
			status = collector__tell_open(watch->parts.collector, tids[j], end_ns);
		if (!status)
			status = tell_facts(watch, watched, begin_ns, end_ns);
	}
	retire(watch, end_ns);
	return status;
}

void watch__detach_all(struct watch *watch, uint64_t now_ns, const char *reason)
{
	for (size_t i = 0; i < watch->count; i++)
		if (!watch->watched[i].ended_ns)
			say_goodbye(watch, &watch->watched[i], LINE_DETACHED, reason, now_ns);
}

uint64_t watch__hits(const struct watch *watch)
{
	uint64_t hits = watch->hits;

	for (size_t i = 0; i < watch->count; i++)
		hits += hits_of(watch, &watch->watched[i]);
	return hits;
}
