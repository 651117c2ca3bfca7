// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/tracker_private.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/grow.h"
#include "target/kernel_range.h"

#define REMAP_NS 100000000ULL /* mappings come in bursts */
#define ENDS_AT_ONCE 64

struct watch *watch__new(const struct watch_parts *parts, const struct selection *selection)
{
	struct watch *watch = calloc(1, sizeof(*watch));

	if (!watch)
		return NULL;
	watch->parts = *parts;
	watch->selection = selection;
	watch->slots[KERNEL_SLOTS - 1] = true; /* reserved for the calibration child */
	watch->statics = static_mpi__new();
	watch->topology = topology__new("/sys", "/proc/cpuinfo");
	watch->named_start = calloc(selection->pid_count + 1, sizeof(*watch->named_start));
	watch->enforcer = watch__new_enforcer(watch);
	if (!watch->statics || !watch->topology || !watch->named_start || !watch->enforcer) {
		watch__free(watch);
		return NULL;
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
	free(watch->named_start);
	enforcer__free(watch->enforcer);
	free(watch->ended);
	static_mpi__free(watch->statics);
	topology__free(watch->topology);
	free(watch);
}

struct watched *watch__of(struct watch *watch, pid_t pid)
{
	for (size_t i = 0; i < watch->count; i++)
		if (watch->watched[i].pid == pid)
			return &watch->watched[i];
	return NULL;
}

/* Marks the tracked processes that have ended, by one system call for many instead of one for each. */
static void look_for_ends(struct watch *watch)
{
	struct pollfd fds[ENDS_AT_ONCE];

	for (size_t first = 0; first < watch->count; first += ENDS_AT_ONCE) {
		size_t count = watch->count - first < ENDS_AT_ONCE ? watch->count - first : ENDS_AT_ONCE;

		for (size_t i = 0; i < count; i++)
			fds[i] = (struct pollfd){.fd = watch->watched[first + i].pidfd, .events = POLLIN};
		if (poll(fds, count, 0) <= 0)
			continue;
		for (size_t i = 0; i < count; i++)
			watch->watched[first + i].gone |= fds[i].revents != 0;
	}
}

static void say_goodbye(struct watch *watch, struct watched *watched, enum line_process_state state, const char *reason,
			uint64_t now_ns)
{
	uint64_t hits = watch__hits_of(watch, watched);

	watched->ended_ns = now_ns;
	watch__emit_row(watch, watched, now_ns);
	watch__emit_process(watch, watched, state, hits, watched->image && !hits ? "mapped but never hit" : reason);
}

static void detach(struct watch *watch, struct watched *watched, const char *reason, uint64_t now_ns)
{
	enforcer__leave(watch->enforcer, watched->governed, now_ns);
	say_goodbye(watch, watched, LINE_EXITED, reason, now_ns);
	attacher__release(watch->parts.attacher, watched->pid);
	row_attacher__release(watch->parts.rows, watched->pid);
	watched->image = NULL;
	kernel_side__untrack(watch->parts.side, watched->pid);
}

/* Attaches the MPI that a process lacked when it was attached, if it has one now. */
static void join(struct watch *watch, struct watched *watched, uint64_t now_ns)
{
	const struct process_mapping *library;
	struct process *process;
	enum process_mpi mpi;
	char err[512];
	int status;

	if (process__read(watched->pid, &process, err, sizeof(err)))
		return;
	mpi = process__mpi(process, &library);
	if (mpi) {
		struct kernel_process tracked = {.slot = watched->slot, .flags = watch__flags_of(watch, process, mpi)};

		watched->flags = tracked.flags;
		resolver__remapped(watch->parts.resolver, watched->pid, mpi);
		kernel_side__reflag(watch->parts.side, watched->pid, &tracked);
		enforcer__suspend(watched->governed);
		status = attacher__attach(watch->parts.attacher, process, library,
					  watch__is_alone(watch, library, now_ns), &watched->image, err, sizeof(err));
		if (status) {
			attacher__release(watch->parts.attacher, watched->pid);
			watched->image = NULL;
			watch__warn(watch, "attach_failed", watched->pid,
				    "libmpi was loaded after attachment and could not be probed: %s", err);
		}
		watch__join_image(watch, watched, now_ns);
		if (!status) {
			watch__emit_process(watch, watched, LINE_ATTACHED, watch__hits_of(watch, watched),
					    "libmpi was loaded after attachment");
		}
	}
	process__free(process);
}

static void remap(struct watch *watch, struct watched *watched, uint64_t now_ns)
{
	uint64_t spent_ns = cpu_spent();

	watched->remapped_ns = 0;
	watch__rows_remapped(watch, watched);
	if (watched->image)
		resolver__remapped(watch->parts.resolver, watched->pid, PROCESS_NO_MPI);
	else
		join(watch, watched, now_ns);
	watched->attach_cost_ns += cpu_spent() - spent_ns;
}

void watch__mapped(struct watch *watch, pid_t pid, const char *path, uint64_t now_ns)
{
	struct watched *watched = watch__of(watch, pid);
	bool mpi = process__mpi_of_path(path);

	if (path[0] != '/' || path[1] == '/') /* no file: the vdso, or code compiled at run time */
		return;
	if (!watched || watched->ended_ns) {
		if (mpi)
			watch__heard_of(watch, pid, now_ns);
		return;
	}
	if (mpi && !watched->image)
		watched->remapped_ns = now_ns - REMAP_NS;
	else if (!watched->remapped_ns)
		watched->remapped_ns = now_ns;
}

void watch__exec(struct watch *watch, pid_t pid, uint64_t exec_ns, uint64_t now_ns)
{
	struct watched *watched = watch__of(watch, pid);

	if (watched && !watched->ended_ns) {
		if (exec_ns < watched->attached_ns)
			return; /* the process was read after the exec, whose mappings arrived first, another way */
		detach(watch, watched, "it became another program (exec)", now_ns);
	}
	watch__executed(watch, pid, now_ns);
}

void watch__poll(struct watch *watch, uint64_t now_ns)
{
	watch__look(watch, now_ns);
	look_for_ends(watch);
	for (size_t i = 0; i < watch->count; i++) {
		struct watched *watched = &watch->watched[i];

		if (watched->ended_ns) {
			i -= watch__retire(watch, watched, now_ns); /* open files make umount fail */
			continue;
		}
		if (watched->gone) {
			/* records of the process before its end, perhaps an exec, come first */
			collector__drain_ring(watch->parts.collector);
			watched = &watch->watched[i];
			if (!watched->ended_ns)
				detach(watch, watched, "it ended", now_ns);
		} else if (watched->remapped_ns && now_ns >= watched->remapped_ns + REMAP_NS) {
			remap(watch, watched, now_ns);
		}
	}
}

size_t watch__alive(const struct watch *watch)
{
	size_t alive = 0;

	for (size_t i = 0; i < watch->count; i++)
		alive += !watch->watched[i].ended_ns;
	return alive;
}

bool watch__any(const struct watch *watch)
{
	return watch->any;
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
