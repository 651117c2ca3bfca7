// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/tracker_private.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/cpus.h"
#include "base/grow.h"
#include "target/kernel_range.h"

#define VERDICT_NS 1000000000ULL /* lifetime of a verdict on who maps an image */
#define REMAP_NS 100000000ULL	 /* mappings come in bursts */
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
	if (!watch->statics || !watch->topology || !watch->named_start) {
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
	free(watch->duties);
	free(watch->ended);
	static_mpi__free(watch->statics);
	topology__free(watch->topology);
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
 * links of their own (ARCHITECTURE section 2.4). The check inspects every process of the node, so the
 * ranks of a job, which come together, share one verdict.
 */
static bool alone(struct watch *watch, const struct process_mapping *mapping, uint64_t now_ns)
{
	struct verdict *verdict = &watch->verdict;

	if (attacher__linked(watch->parts.attacher, mapping))
		return false;
	/* a job that is just starting may have more than the first few ranks by now */
	if (!verdict->at_ns || now_ns > verdict->at_ns + VERDICT_NS || verdict->inode != mapping->inode ||
	    verdict->device != mapping->device || verdict->uses >= ATTACHER_MAX_FILTERED) {
		size_t targets, others;

		selection__sharers(watch->selection, mapping, &targets, &others);
		*verdict = (struct verdict){.device = mapping->device,
					    .inode = mapping->inode,
					    .at_ns = now_ns,
					    .alone = others && targets <= ATTACHER_MAX_FILTERED};
	}
	verdict->uses += verdict->alone;
	return verdict->alone;
}

struct watched *watch__of(struct watch *watch, pid_t pid)
{
	for (size_t i = 0; i < watch->count; i++)
		if (watch->watched[i].pid == pid)
			return &watch->watched[i];
	return NULL;
}

static const struct watched *rank_of(const struct watch *watch, const struct process *process)
{
	for (size_t i = 0; i < watch->count; i++)
		if (!watch->watched[i].ended_ns && process__same_rank(&watch->watched[i].identity, process))
			return &watch->watched[i];
	return NULL;
}

/*
 * Returns whether a return probe would kill the process. A session then spares the returns of this
 * process; other links hijack the returns of all processes.
 */
static bool returns_kill(const struct process *process)
{
	return process->filtered && kernel_range__troubled(KERNEL_SECCOMP_KILLS);
}

static const char *refusal_of(const struct watch *watch, const struct process *process, char *err, size_t err_size,
			      int *status)
{
	const struct watched *rank = rank_of(watch, process);

	*status = -EPERM;
	if (process->opted_out)
		return "VAPRO=off in its environment";
	if (process->traced)
		return "a debugger or tracer is attached to it (ptrace)";
	if (returns_kill(process) && !watch->parts.no_return && !kernel_side__spares_returns(watch->parts.side) &&
	    kernel_side__facts(watch->parts.side)->return_syscall != FACT_NO)
		return "this kernel kills a seccomp-filtered process at a return probe: --no-return watches it";
	*status = -EEXIST;
	if (selection__names(watch->selection, process->pid))
		return NULL;
	if (rank) {
		snprintf(err, err_size, "rank %d of its job is process %d: this one inherited its environment",
			 process->rank, rank->pid);
		return err;
	}
	if (process__child_of_rank(process))
		return "it is the child of a rank and inherited its environment";
	return NULL;
}

static uint32_t flags_of(const struct watch *watch, const struct process *process, enum process_mpi mpi)
{
	return (watch->parts.no_return || returns_kill(process) ? KERNEL_PROCESS_NO_RETURN : 0) |
	       (mpi == PROCESS_MPICH ? KERNEL_PROCESS_MPICH : 0);
}

static struct image_cost *cost_of(struct watch *watch, uint64_t device, uint64_t inode)
{
	for (size_t i = 0; i < IMAGE_COSTS; i++)
		if (watch->costs[i].inode == inode && watch->costs[i].device == device)
			return &watch->costs[i];
	return NULL;
}

uint64_t watch__attach_cost(struct watch *watch, const struct process_mapping *mapping)
{
	const struct image_cost *cost = cost_of(watch, mapping->device, mapping->inode);

	if (!cost)
		return 0;
	return attacher__linked(watch->parts.attacher, mapping) ? cost->join_ns : cost->open_ns;
}

/* Records the cost of an attachment. linked: the image had its links before. */
static void note_attach_cost(struct watch *watch, const struct attached_image *image, bool linked, uint64_t ns)
{
	struct image_cost *cost = cost_of(watch, image->device, image->inode);

	if (!cost) {
		cost = &watch->costs[watch->cost_count++ % IMAGE_COSTS];
		*cost = (struct image_cost){.device = image->device, .inode = image->inode};
		if (!linked)
			return;
	}
	if (linked)
		cost->join_ns = ns;
	else
		cost->open_ns = ns;
}

int watch__attach(struct watch *watch, struct process *process, uint64_t now_ns, char *err, size_t err_size)
{
	const struct process_mapping *library = NULL;
	enum process_mpi mpi = process__mpi(process, &library);
	struct watched fresh = {.pid = process->pid, .pidfd = -1, .attached_ns = now_ns, .identity = *process};
	struct kernel_process tracked = {.flags = flags_of(watch, process, mpi)};
	struct vapro_bpf *bpf = kernel_side__bpf(watch->parts.side);
	uint64_t spent_ns = cpus__spent_ns();
	const char *reason;
	bool owned = true, by_itself, linked = library && attacher__linked(watch->parts.attacher, library);
	int slot, status, functions;

	fresh.identity.mappings = NULL; /* the mappings stay the resolver's */
	fresh.identity.text = NULL;
	reason = refusal_of(watch, process, err, err_size, &status);
	if (reason)
		goto refused;
	if (rank_of(watch, process)) /* requested beside another process of this rank: a row of its own */
		fresh.identity.rank = process->rank = -1;
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
	watch__begin_governing(watch, &fresh, now_ns);
	fresh.delivered_before = collector__delivered(watch->parts.collector, fresh.slot);
	fresh.io_calls = process__io_calls(fresh.pid);
	fresh.io_requested = (double)fresh.io_calls >= process__age(process);
	fresh.start_utc_ns = watch__start_utc(process);
	status = kernel_side__track(watch->parts.side, fresh.pid, &tracked);
	snprintf(err, err_size, "%s", strerror(-status));
	by_itself = library && alone(watch, library, now_ns);
	if (!status && by_itself && returns_kill(process) && !watch->parts.no_return) {
		snprintf(err, err_size,
			 "this kernel kills a seccomp-filtered process at a return probe, and links "
			 "for single processes of its image would set it one: --no-return watches it");
		status = -EPERM;
	}
	if (!status && library)
		status =
		    attacher__attach(watch->parts.attacher, process, library, by_itself, &fresh.image, err, err_size);
	if (status) {
		reason = err;
		attacher__release(watch->parts.attacher, fresh.pid);
		kernel_side__untrack(watch->parts.side, fresh.pid);
		fresh.image = NULL;
		goto forget;
	}
	snprintf(fresh.build_id, sizeof(fresh.build_id), "%s", resolver__build_id(watch->parts.resolver, fresh.pid));
	functions = watch__attach_rows(watch, &fresh, process);
	watch__join_image(watch, &fresh, now_ns);
	fresh.attach_cost_ns = cpus__spent_ns() - spent_ns;
	if (fresh.image)
		note_attach_cost(watch, fresh.image, linked, fresh.attach_cost_ns);
	watch->slots[slot] = true;
	watch->watched[watch->count++] = fresh;
	watch->ever++;
	reason = library && returns_kill(&fresh.identity)
		     ? "this kernel kills a seccomp-filtered process at a return probe: time is entry to entry"
		 : library	   ? NULL
		 : functions	   ? "it maps no MPI library: only its threads and the requested functions are seen"
		 : watch->parts.io ? "it maps no MPI library: only its IO is seen"
				   : "it maps no MPI library, and IO is off: nothing is seen";
	watch__emit_process(watch, &fresh, LINE_ATTACHED, 0, reason);
	if (by_itself && kernel_side__facts(watch->parts.side)->thread_filter == FACT_YES &&
	    process__threads(fresh.pid, NULL, 0) > 1)
		watch__warn(
		    watch, "main_thread_only", fresh.pid,
		    "process %d: this kernel's links for one process see its main thread only; MPI calls of its "
		    "other threads are not seen (--attach perf sees them)",
		    fresh.pid);
	watch__emit_row(watch, &fresh, 0);
	return 0;
forget:
	resolver__remove(watch->parts.resolver, fresh.pid, (uint32_t)slot);
refused:
	watch__emit_process(watch, &fresh, LINE_REFUSED, 0, reason);
	if (reason != err)
		snprintf(err, err_size, "process %d (%s) is not watched: %s", fresh.pid, fresh.identity.exe, reason);
	if (fresh.pidfd >= 0)
		close(fresh.pidfd);
	if (owned)
		process__free(process);
	return status;
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
	const struct attached_image *image = watched->image;

	watch__count_gap(watched, now_ns, false);
	say_goodbye(watch, watched, LINE_EXITED, reason, now_ns);
	attacher__release(watch->parts.attacher, watched->pid);
	row_attacher__release(watch->parts.rows, watched->pid);
	watched->image = NULL;
	if (image)
		watch__forget_image(watch, image);
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
		struct kernel_process tracked = {.slot = watched->slot, .flags = flags_of(watch, process, mpi)};

		watched->flags = tracked.flags;
		resolver__remapped(watch->parts.resolver, watched->pid, mpi);
		kernel_side__reflag(watch->parts.side, watched->pid, &tracked);
		watch__leave_image(watch, watched);
		status = attacher__attach(watch->parts.attacher, process, library, alone(watch, library, now_ns),
					  &watched->image, err, sizeof(err));
		if (status) {
			attacher__release(watch->parts.attacher, watched->pid);
			watched->image = NULL;
			watch__warn(watch, "attach_failed", watched->pid, "its MPI came late and is not seen: %s", err);
		}
		watch__join_image(watch, watched, now_ns);
		if (!status) {
			watch__emit_process(watch, watched, LINE_ATTACHED, watch__hits_of(watch, watched),
					    "its MPI came late");
		}
	}
	process__free(process);
}

static void remap(struct watch *watch, struct watched *watched, uint64_t now_ns)
{
	uint64_t spent_ns = cpus__spent_ns();

	watched->remapped_ns = 0;
	watch__rows_remapped(watch, watched);
	if (watched->image)
		resolver__remapped(watch->parts.resolver, watched->pid, PROCESS_NO_MPI);
	else
		join(watch, watched, now_ns);
	watched->attach_cost_ns += cpus__spent_ns() - spent_ns;
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
