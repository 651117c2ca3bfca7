// SPDX-License-Identifier: GPL-2.0-or-later
#include "watch_private.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "model/grow.h"
#include "target/kernel_range.h"

#define LOOKS 5

/* Times after which somebody we heard of is looked at: a library is mapped some time after exec. */
static const uint64_t look_after_ms[LOOKS] = {3, 20, 100, 400, 1500};

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

static int own_slot(struct watch *watch)
{
	for (int i = 0; i < KERNEL_SLOTS; i++)
		if (!watch->slots[i])
			return i;
	return -1;
}

/*
 * A link for all mappers of an image makes every one of them trap; beside others, few targets get
 * links of their own (ARCHITECTURE section 2.4).
 */
static bool alone(const struct watch *watch, const struct process_mapping *mapping)
{
	size_t targets, others;

	selection__sharers(watch->selection, mapping, &targets, &others);
	return others && targets <= ATTACHER_MAX_FILTERED;
}

static struct watched *watched_of(struct watch *watch, pid_t pid)
{
	for (size_t i = 0; i < watch->count; i++)
		if (watch->watched[i].pid == pid)
			return &watch->watched[i];
	return NULL;
}

static const char *refusal_of(const struct watch *watch, const struct process *process, int *status)
{
	*status = -EPERM;
	if (process->opted_out)
		return "VAPRO=off in its environment";
	if (process->traced)
		return "a debugger or tracer is attached to it (ptrace)";
	if (process->filtered && !watch->parts.no_return && kernel_range__troubled(KERNEL_SECCOMP_KILLS))
		return "this kernel kills a seccomp-filtered process at a return probe: --no-return watches it";
	return NULL;
}

/*
 * Begins to watch a process that was read; takes it over. The kernel side must know the process, its
 * handles and its libc before the first hit, so the links come last. 0 or -errno with a sentence.
 */
static int attach(struct watch *watch, struct process *process, uint64_t now_ns, char *err, size_t err_size)
{
	const struct process_mapping *library = NULL;
	enum process_mpi mpi = process__mpi(process, &library);
	struct watched fresh = {.pid = process->pid, .pidfd = -1, .attached_ns = now_ns, .identity = *process};
	struct kernel_process tracked = {.flags = (watch->parts.no_return ? KERNEL_PROCESS_NO_RETURN : 0) |
						  (mpi == PROCESS_MPICH ? KERNEL_PROCESS_MPICH : 0)};
	struct vapro_bpf *bpf = kernel_side__bpf(watch->parts.side);
	const char *reason;
	bool owned = true;
	int slot, status;

	fresh.identity.mappings = NULL; /* they stay the resolver's */
	fresh.identity.text = NULL;
	reason = refusal_of(watch, process, &status);
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
	fresh.flags = tracked.flags;
	memset(&bpf->bss->counters[slot], 0, sizeof(bpf->bss->counters[slot]));
	fresh.told = collector__told(watch->parts.collector, fresh.slot);
	governor__open_account(&fresh.account, now_ns);
	fresh.io_calls = process__io_calls(fresh.pid);
	fresh.start_utc_ns = watch__start_utc(fresh.identity.start_time);
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
	reason = library	   ? NULL
		 : watch->parts.io ? "it maps no MPI library: only its IO is seen"
				   : "it maps no MPI library, and IO is off: nothing is seen";
	watch__tell_process(watch, &fresh, LINE_ATTACHED, 0, reason);
	watch__tell_row(watch, &fresh, 0);
	return 0;
forget:
	resolver__remove(watch->parts.resolver, fresh.pid);
refused:
	watch__tell_process(watch, &fresh, LINE_REFUSED, 0, reason);
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
	bool asked = selection__names(watch->selection, pid);
	int status;

	if (pid == getpid())
		return 0;
	if (watched_of(watch, pid)) /* one that ended, by exec too, is let go first */
		return watched_of(watch, pid)->ended_ns ? -EBUSY : 0;
	status = process__read(pid, &process, err, err_size);
	if (status)
		return status;
	if (!selection__takes(watch->selection, process) || (!asked && !process__mpi(process, NULL))) {
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

	if (!process__mpi(process, NULL))
		return true;
	if (grow(&scanning->pids, &scanning->room, scanning->count + 1, sizeof(*scanning->pids)))
		return false;
	scanning->pids[scanning->count++] = process->pid;
	return true;
}

int watch__scan(struct watch *watch, uint64_t now_ns, char *err, size_t err_size)
{
	struct scanning scanning = {0};
	int status = 0;

	for (size_t i = 0; i < watch->selection->pid_count && !status; i++)
		status = consider(watch, watch->selection->pids[i], now_ns, err, err_size);
	if (status)
		return status;
	if (!watch->selection->pid_count || watch->selection->glob_count) {
		char ignored[512];

		process__each(collect_candidate, &scanning);
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
	watch->heard[watch->heard_count++] = (struct heard){pid, now_ns, 0};
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
	struct pollfd fd = {.fd = watched->pidfd, .events = POLLIN};

	return poll(&fd, 1, 0) > 0;
}

static void say_goodbye(struct watch *watch, struct watched *watched, enum line_process_state state, const char *reason,
			uint64_t now_ns)
{
	uint64_t hits = watch__hits_of(watch, watched);

	watched->ended_ns = now_ns;
	watch__tell_row(watch, watched, now_ns);
	watch__tell_process(watch, watched, state, hits, watched->image && !hits ? "mapped but never hit" : reason);
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
		hits += watch__hits_of(watch, &watch->watched[i]);
	return hits;
}
