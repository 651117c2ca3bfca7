// SPDX-License-Identifier: GPL-2.0-or-later
/* Finds the processes to track: running ones, candidates, and successors of ended ones. */
#include <errno.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/grow.h"
#include "daemon/tracker_private.h"

#define LOOKS 5
#define ATTACH_SHARE 0.01 /* share of a process's life that its attachment may cost in CPU time */

/* Times after which a candidate is inspected: a library is mapped some time after exec. */
static const uint64_t look_after_ms[LOOKS] = {3, 20, 100, 400, 1500};

/* A requested pid means the first process seen with it, whatever that executes, and no later one. */
static bool is_named(struct watch *watch, const struct process *process)
{
	for (size_t i = 0; i < watch->selection->pid_count; i++) {
		if (watch->selection->pids[i] != process->pid)
			continue;
		if (!watch->named_start[i])
			watch->named_start[i] = process->start_time;
		return watch->named_start[i] == process->start_time;
	}
	return false;
}

/* Returns whether a process may be a target by its pid and executable alone; cheap. */
static bool may_take(const struct watch *watch, pid_t pid)
{
	struct process stub = {.pid = pid};

	if (watch->selection->glob_count)
		process__read_exe(pid, stub.exe, sizeof(stub.exe));
	return selection__takes(watch->selection, &stub);
}

static bool is_selective(const struct selection *selection)
{
	return selection->pid_count || selection->glob_count || selection->ancestor;
}

/* Recognises by base name a launcher, which only starts a job's processes, with threads of its own. */
static bool is_launcher(const struct process *process)
{
	static const char *const names[] = {"mpirun*", "mpiexec*", "orterun", "orted",	  "prte*",  "prun",
					    "hydra_*", "srun",	   "aprun",   "jsrun",	  "flux*",  "slurmstepd",
					    "palsd",   "prterun",  "pmix*",   "shmemrun", "oshrun", "flux-*"};
	const char *slash = strrchr(process->exe, '/'), *base = slash ? slash + 1 : process->exe;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!fnmatch(names[i], base, 0))
			return true;
	return false;
}

/*
 * Returns whether a selected process without MPI is observable: it has a team of OpenMP threads or, once it
 * had time to start, threads of its own or functions that a site requested. Launchers are selected with
 * their job and are excluded.
 */
static bool observable_without_mpi(const struct watch *watch, const struct process *process, int look)
{
	const struct selection *selection = watch->selection;

	if (!is_selective(selection) || is_launcher(process))
		return false;
	if (look && watch->parts.threads != VAPRO_IO_OFF && watch__maps_openmp(process))
		return true;
	if (look < LOOKS - 1)
		return false;
	if (watch->parts.threads != VAPRO_IO_OFF && process__threads(process->pid, NULL, 0) > 1)
		return true;
	return watch->parts.user_row_count && (!selection->ancestor || selection->ancestor == process->pid);
}

/*
 * Returns whether attaching would cost more than 1 % of a process's life so far, by the cost of the last attachment to
 * its library; the attachment is then put off until it does not. The first one to a library, of unknown cost, never is.
 */
static bool is_too_young(struct watch *watch, const struct process *process, uint64_t now_ns)
{
	const struct process_mapping *library = NULL;
	double cost, age = process__age(process) * 1e9;

	if (!process__mpi(process, &library) || !library)
		return false;
	cost = (double)watch__attach_cost(watch, library);
	if (cost <= ATTACH_SHARE * age)
		return false;
	watch->later.due_ns = now_ns + (uint64_t)(cost / ATTACH_SHARE - age);
	snprintf(watch->later.exe, sizeof(watch->later.exe), "%s", process->exe);
	return true;
}

/*
 * Inspects one process: attaches it when it is selected and has an MPI or is observable without one, or was
 * requested by pid. look: number of earlier inspections, as the process may still map what it needs.
 * Returns 0, -EAGAIN for later, -EINPROGRESS until watch->later.due_ns, -EBUSY while an ended process of this pid is
 * not drained yet, or -errno.
 */
static int consider(struct watch *watch, pid_t pid, int look, uint64_t now_ns, char *err, size_t err_size)
{
	struct watched *before = watch__of(watch, pid);
	struct process *process;
	bool named = false;
	int status;

	if (pid == getpid() || (before && !before->ended_ns))
		return 0;
	if (before && !watch__retire(watch, before, now_ns))
		return -EBUSY;
	if (selection__names(watch->selection, pid) || may_take(watch, pid)) {
		status = process__read(pid, &process, err, err_size);
		if (status)
			return status;
	} else {
		return 0;
	}
	named = is_named(watch, process);
	if (!named && !selection__takes(watch->selection, process)) {
		status = 0;
		goto leave;
	}
	if (is_selective(watch->selection))
		static_mpi__look(watch->statics, process);
	if (!named && is_too_young(watch, process, now_ns)) {
		status = -EINPROGRESS;
		goto leave;
	}
	status = -EAGAIN;
	if (named || process__mpi(process, NULL) || observable_without_mpi(watch, process, look))
		return watch__attach(watch, process, now_ns, err, err_size);
leave:
	process__free(process);
	return status;
}

struct scanning {
	const struct watch *watch;
	pid_t *pids;
	size_t count, room;
};

static bool is_candidate(void *ctx, const struct process *process)
{
	const struct scanning *scanning = ctx;

	return process__mpi(process, NULL) || (process->mapping_count && is_selective(scanning->watch->selection) &&
					       selection__takes(scanning->watch->selection, process));
}

static bool collect_candidate(void *ctx, const struct process *process)
{
	struct scanning *scanning = ctx;

	if (grow(&scanning->pids, &scanning->room, scanning->count + 1, sizeof(*scanning->pids)))
		return false;
	scanning->pids[scanning->count++] = process->pid;
	return true;
}

int watch__scan(struct watch *watch, uint64_t now_ns, char *err, size_t err_size)
{
	int status = 0;

	for (size_t i = 0; i < watch->selection->pid_count && !status; i++)
		status = consider(watch, watch->selection->pids[i], 0, now_ns, err, err_size);
	if (status)
		return status;
	watch__rescan(watch, now_ns);
	return (int)watch->count;
}

void watch__rescan(struct watch *watch, uint64_t now_ns)
{
	struct scanning scanning = {.watch = watch};
	char ignored[512];

	if (watch->selection->pid_count && !watch->selection->glob_count)
		return;
	process__each(is_candidate, collect_candidate, &scanning);
	for (size_t i = 0; i < scanning.count; i++) {
		int status = consider(watch, scanning.pids[i], 0, now_ns, ignored, sizeof(ignored));

		if (status == -EAGAIN || status == -EINPROGRESS)
			watch__heard_of(watch, scanning.pids[i], now_ns); /* the process may have just begun */
	}
	free(scanning.pids);
}

static void hear(struct watch *watch, pid_t pid, uint64_t now_ns, int limit)
{
	if (watch->selection->pid_count && !watch->selection->glob_count && !selection__names(watch->selection, pid))
		return;
	for (size_t i = 0; i < watch->heard_count; i++)
		if (watch->heard[i].pid == pid) {
			watch->heard[i].since_ns = now_ns;
			watch->heard[i].looks = 0;
			if (watch->heard[i].limit < limit)
				watch->heard[i].limit = limit;
			return;
		}
	if (grow(&watch->heard, &watch->heard_room, watch->heard_count + 1, sizeof(*watch->heard)))
		return;
	watch->heard[watch->heard_count++] = (struct heard){.pid = pid, .since_ns = now_ns, .limit = limit};
}

void watch__heard_of(struct watch *watch, pid_t pid, uint64_t now_ns)
{
	hear(watch, pid, now_ns, LOOKS);
}

void watch__executed(struct watch *watch, pid_t pid, uint64_t now_ns)
{
	/*
	 * The finder reports libraries when they are mapped: one inspection finds an MPI in the executable. Selected
	 * processes are inspected further, as they may be observable without MPI.
	 */
	hear(watch, pid, now_ns, watch->parts.finds && !is_selective(watch->selection) ? 1 : LOOKS);
}

static bool has_ended(pid_t pid)
{
	return kill(pid, 0) && errno == ESRCH;
}

void watch__look(struct watch *watch, uint64_t now_ns)
{
	char err[512];

	for (size_t i = 0; i < watch->heard_count; i++) {
		struct heard *heard = &watch->heard[i];
		int status;

		if (now_ns < heard->since_ns + look_after_ms[heard->looks] * 1000000 ||
		    (now_ns < heard->due_ns && !has_ended(heard->pid)))
			continue;
		if (heard->due_ns && has_ended(heard->pid)) {
			watch__warn(watch, "too_short", heard->pid,
				    "process %d (%s) ended before it could be attached: to read its image and set its "
				    "probes would have cost more than %g %% of its time",
				    heard->pid, heard->exe, ATTACH_SHARE * 100);
			*heard = watch->heard[--watch->heard_count];
			i--;
			continue;
		}
		status = consider(watch, heard->pid, heard->looks, now_ns, err, sizeof(err));
		if (status == -EINPROGRESS) {
			heard->due_ns = watch->later.due_ns;
			memcpy(heard->exe, watch->later.exe, sizeof(heard->exe));
			continue;
		}
		if (status == -EBUSY || (status == -EAGAIN && ++heard->looks < heard->limit))
			continue;
		*heard = watch->heard[--watch->heard_count];
		i--;
	}
}

bool watch__expects(const struct watch *watch)
{
	return watch->heard_count > 0;
}
