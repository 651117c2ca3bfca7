// SPDX-License-Identifier: GPL-2.0-or-later
/* Finds the processes to track: running ones, candidates, and successors of ended ones. */
#include <errno.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/grow.h"
#include "base/log.h"
#include "base/shortened.h"
#include "daemon/tracker_private.h"

/*
 * An attachment costs some 3 ms of CPU time, and waits for a process that opens its links (sigkill_guard.h): of a job
 * of many ranks that starts, or many jobs, each pass of the loop attaches a few.
 */
#define ATTACHED_AT_ONCE 4

#define LOOKS 5
#define STARTED_LOOKS 2	      /* after which a process should have mapped the libraries that it is linked to */
#define CLAIM_NS 100000000ULL /* between two looks for a slot that is to be given back */
#define NAMED_REST_NS 5000000L
#define ATTACH_SHARE 0.01 /* share of a process's life that its attachment may cost in CPU time */

/* Times after which a candidate is inspected: a library is mapped some time after exec. */
static const uint64_t look_after_ms[LOOKS] = {3, 20, 100, 400, 1500};

/* A requested pid means the first process seen with it, whatever that executes, and no later one. */
static bool is_named(struct tracker *tracker, const struct process *process)
{
	for (size_t i = 0; i < tracker->selection->pid_count; i++) {
		if (tracker->selection->pids[i] != process->pid)
			continue;
		if (!tracker->named_start[i])
			tracker->named_start[i] = process->start_time;
		return tracker->named_start[i] == process->start_time;
	}
	return false;
}

/* Returns whether a process may be a target by its pid and executable alone; cheap. */
static bool may_take(const struct tracker *tracker, pid_t pid)
{
	struct process stub = {.pid = pid};

	if (tracker->selection->glob_count)
		process__read_exe(pid, stub.exe, sizeof(stub.exe));
	return selection__takes(tracker->selection, &stub);
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
 * had time to start, threads of its own, a rank of a program without MPI, or functions that a site requested.
 * Launchers are selected with their job and are excluded.
 */
static bool observable_without_mpi(const struct tracker *tracker, const struct process *process, int look)
{
	const struct selection *selection = tracker->selection;

	if (!is_selective(selection) || is_launcher(process))
		return false;
	if (look && tracker->parts.threads != VAPRO_OFF && tracker__maps_openmp(process))
		return true;
	if (look < LOOKS - 1)
		return false;
	if (tracker->parts.threads != VAPRO_OFF && process__threads(process->pid, NULL, 0) > 1)
		return true;
	if (process->rank >= 0 && !strcmp(process->job_kind, "distributed"))
		return true;
	return tracker->parts.user_row_count && (!selection->ancestor || selection->ancestor == process->pid);
}

/*
 * Returns whether attaching would cost more than 1 % of a process's life so far, by what the last attachment to its
 * image cost; the attachment is then put off until it does not. The first one, of unknown cost, never is.
 */
static bool is_too_young(struct tracker *tracker, const struct process *process, uint64_t now_ns)
{
	double cost = (double)tracker__attach_cost(tracker, process), age = process__age(process) * 1e9;

	if (cost <= ATTACH_SHARE * age)
		return false;
	tracker->later =
	    (struct candidate){.due_ns = now_ns + (uint64_t)(cost / ATTACH_SHARE - age), .owner = process->owner};
	shortened(process->exe, tracker->later.exe, sizeof(tracker->later.exe));
	return true;
}

int tracker__identify(struct tracker *tracker, struct process *process, bool started, char *err, size_t err_size)
{
	/* a rank without a library that is named like one is worth a look at all that it maps */
	bool all = is_selective(tracker->selection) || (process->launched && started);

	return mpi_files__look(tracker->files, process, all, err, err_size);
}

/* Why and until when a candidate's attachment is put off. */
static void take_over(struct candidate *candidate, const struct candidate *later)
{
	candidate->due_ns = later->due_ns;
	candidate->owner = later->owner;
	candidate->waits = later->waits;
	candidate->held = later->held;
	candidate->traced = later->traced;
	memcpy(candidate->exe, later->exe, sizeof(candidate->exe));
}

/* Whether a process was refused for want of room, and is still that one. */
static bool is_crowded(const struct tracker *tracker, pid_t pid)
{
	const struct refusal *refusal = refusals__of(&tracker->bystanders.refused, pid);

	return refusal && process__is_same(&(struct process){.pid = pid, .start_time = refusal->start_time});
}

/*
 * Inspects one process: attaches it when it is selected and has an MPI or is observable without one, or was
 * requested by pid. look: number of earlier inspections, as the process may still map what it needs.
 * Returns 0, -EAGAIN for later, -EINPROGRESS until watch->later.due_ns, -EBUSY while an ended process of this pid is
 * not drained yet, -ENOSPC until a slot is given back, or -errno.
 */
static int consider(struct tracker *tracker, pid_t pid, int look, uint64_t now_ns, char *err, size_t err_size)
{
	struct tracked *before = tracker__of(tracker, pid);
	struct process *process;
	bool named = false;
	int status, pidfd = -1;

	if (pid == getpid() || (before && !before->ended_ns) || is_crowded(tracker, pid))
		return 0;
	if (before && !tracker__retire(tracker, before, now_ns))
		return -EBUSY;
	tracker__purge(tracker);
	enforcer__ran(tracker->enforcer, ENFORCER_RECORDS);
	if (selection__names(tracker->selection, pid) || may_take(tracker, pid)) {
		/* what is read after that is of one process, unless that has ended by then */
		pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
		status = process__read(pid, &process, err, err_size);
		if (status) {
			if (pidfd >= 0)
				close(pidfd);
			return status;
		}
	} else {
		return 0;
	}
	named = is_named(tracker, process);
	if (!named && !selection__takes(tracker->selection, process)) {
		status = 0;
		goto leave;
	}
	status = tracker__identify(tracker, process, look >= STARTED_LOOKS, err, err_size);
	if (status) {
		status = tracker__put_off(tracker, process, status, err, now_ns);
		goto leave;
	}
	if (!named && is_too_young(tracker, process, now_ns)) {
		status = -EINPROGRESS;
		goto leave;
	}
	status = -EAGAIN;
	tracker->later.ranked = process->launched;
	if (!named && !process__mpi(process, NULL) && !process__moved_mpi(process) &&
	    !observable_without_mpi(tracker, process, look)) {
		if (look >= LOOKS - 1 && !is_launcher(process))
			tracker__note_unseen(tracker, process, now_ns);
		goto leave;
	}
	status = tracker__prepare(tracker, process, now_ns);
	if (!status)
		return tracker__attach(tracker, process, pidfd, now_ns, err, err_size);
leave:
	if (pidfd >= 0)
		close(pidfd);
	enforcer__ran_for(tracker->enforcer, process->owner);
	process__free(process);
	return status;
}

struct scanning {
	const struct tracker *tracker;
	pid_t *pids;
	size_t count, room;
};

static bool is_candidate(void *ctx, const struct process *process)
{
	const struct scanning *scanning = ctx;

	if (!process->mapping_count)
		return false;
	if (is_selective(scanning->tracker->selection))
		return may_take(scanning->tracker, process->pid);
	for (size_t i = 0; i < process->mapping_count; i++)
		if (process->mappings[i].inode && mpi_files__suggests(process->mappings[i].path))
			return true;
	return process__is_launched(process->pid);
}

static bool collect_candidate(void *ctx, const struct process *process)
{
	struct scanning *scanning = ctx;

	if (grow(&scanning->pids, &scanning->room, scanning->count + 1, sizeof(*scanning->pids)))
		return false;
	scanning->pids[scanning->count++] = process->pid;
	return true;
}

static bool is_among(const pid_t *pids, size_t count, pid_t pid)
{
	for (size_t i = 0; i < count; i++)
		if (pids[i] == pid)
			return true;
	return false;
}

size_t tracker__candidates(struct tracker *tracker, pid_t **pids)
{
	const struct selection *selection = tracker->selection;
	struct scanning scanning = {.tracker = tracker};

	if (!selection->pid_count || selection->glob_count)
		process__each(is_candidate, collect_candidate, &scanning);
	for (size_t i = 0; i < selection->pid_count; i++)
		if (!is_among(scanning.pids, scanning.count, selection->pids[i]) &&
		    !grow(&scanning.pids, &scanning.room, scanning.count + 1, sizeof(*scanning.pids)))
			scanning.pids[scanning.count++] = selection->pids[i];
	*pids = scanning.pids;
	return scanning.count;
}

bool tracker__is_target(struct tracker *tracker, const struct process *process)
{
	if (process->pid == getpid())
		return false;
	if (selection__names(tracker->selection, process->pid))
		return true;
	return selection__takes(tracker->selection, process) &&
	       (process__mpi(process, NULL) || process__moved_mpi(process) ||
		observable_without_mpi(tracker, process, LOOKS - 1));
}

/* Has a process inspected again whose attachment was put off just now. */
static void wait_for(struct tracker *tracker, pid_t pid, uint64_t now_ns)
{
	tracker__is_candidate(tracker, pid, now_ns);
	for (size_t i = 0; i < tracker->candidate_count && tracker->later.traced; i++)
		if (tracker->candidate[i].pid == pid)
			take_over(&tracker->candidate[i], &tracker->later);
}

/* Finds what runs, but for the processes requested by pid, and attaches it at once or makes it a candidate. */
static void scan_running(struct tracker *tracker, bool at_once, uint64_t now_ns)
{
	struct scanning scanning = {.tracker = tracker};
	char ignored[512];

	verdicts__outdated(&tracker->verdicts);
	tracker__find_translators(tracker, now_ns);
	if (tracker->selection->pid_count && !tracker->selection->glob_count)
		return;
	process__each(is_candidate, collect_candidate, &scanning);
	for (size_t i = 0; i < scanning.count; i++) {
		const struct tracked *tracked = tracker__of(tracker, scanning.pids[i]);
		int status = -EAGAIN;

		if (tracked && !tracked->ended_ns)
			continue;
		if (at_once)
			status = consider(tracker, scanning.pids[i], 0, now_ns, ignored, sizeof(ignored));
		if (status == -EINPROGRESS)
			wait_for(tracker, scanning.pids[i], now_ns);
		else if (status == -EAGAIN || status == -ENOSPC)
			tracker__is_candidate(tracker, scanning.pids[i], now_ns); /* the process may have just begun */
	}
	free(scanning.pids);
}

int tracker__scan(struct tracker *tracker, uint64_t now_ns, char *err, size_t err_size)
{
	int status = 0;

	tracker__find_translators(tracker, now_ns);
	for (size_t i = 0; i < tracker->selection->pid_count && !status; i++) {
		pid_t pid = tracker->selection->pids[i];

		/* at the start there is nothing else that would wait */
		while ((status = consider(tracker, pid, 0, mono_now(), err, err_size)) == -EINPROGRESS &&
		       !tracker->later.held && !tracker->later.traced)
			nanosleep(&(struct timespec){.tv_nsec = NAMED_REST_NS}, NULL);
		if (status == -EINPROGRESS) {
			if (tracker->later.traced)
				log__warning("%s; it is as soon as that has gone", err);
			wait_for(tracker, pid, now_ns);
			status = 0;
		}
	}
	if (status)
		return status;
	scan_running(tracker, true, now_ns);
	return (int)tracker->count;
}

void tracker__rescan(struct tracker *tracker, uint64_t now_ns)
{
	scan_running(tracker, false, now_ns);
}

static void add_candidate(struct tracker *tracker, pid_t pid, uint64_t now_ns, int limit)
{
	if (tracker->selection->pid_count && !tracker->selection->glob_count &&
	    !selection__names(tracker->selection, pid))
		return;
	for (size_t i = 0; i < tracker->candidate_count; i++)
		if (tracker->candidate[i].pid == pid) {
			tracker->candidate[i].since_ns = now_ns;
			tracker->candidate[i].looks = 0;
			if (tracker->candidate[i].limit < limit)
				tracker->candidate[i].limit = limit;
			return;
		}
	if (grow(&tracker->candidate, &tracker->candidate_room, tracker->candidate_count + 1,
		 sizeof(*tracker->candidate)))
		return;
	if (!tracker->candidate_count)
		attach_costs__candidate(&tracker->costs, cpu_of_process(), now_ns);
	tracker->candidate[tracker->candidate_count++] =
	    (struct candidate){.pid = pid, .since_ns = now_ns, .limit = limit};
}

void tracker__mapped_beside(struct tracker *tracker, pid_t pid, const char *path)
{
	if (verdicts__concern(&tracker->verdicts, path) && !may_take(tracker, pid))
		verdicts__mapped(&tracker->verdicts, path);
}

void tracker__is_candidate(struct tracker *tracker, pid_t pid, uint64_t now_ns)
{
	add_candidate(tracker, pid, now_ns, LOOKS);
}

void tracker__executed(struct tracker *tracker, pid_t pid, uint64_t now_ns)
{
	/*
	 * The finder reports libraries when they are mapped: one inspection finds an MPI in the executable. Selected
	 * processes are inspected further, as they may be observable without MPI.
	 */
	add_candidate(tracker, pid, now_ns, tracker->parts.finds && !is_selective(tracker->selection) ? 1 : LOOKS);
}

static bool has_ended(pid_t pid)
{
	return kill(pid, 0) && errno == ESRCH;
}

/* Reports a process that ended while its attachment was put off. Returns whether it did. */
static bool was_too_short(struct tracker *tracker, const struct candidate *candidate)
{
	/* one that its parent has not waited for is still there, without anything to attach to */
	if (!candidate->due_ns || candidate->waits ||
	    (!has_ended(candidate->pid) && process__thread_state(candidate->pid) != 'Z'))
		return false;
	tracker__warn_owner(tracker, "too_short", candidate->pid, candidate->owner,
			    "process %d (%s) ended before it could be attached: to read its image and set its "
			    "probes would have cost more than %g %% of its time",
			    candidate->pid, candidate->exe, ATTACH_SHARE * 100);
	return true;
}

void tracker__end_inspection(struct tracker *tracker)
{
	for (size_t i = 0; i < tracker->candidate_count; i++)
		was_too_short(tracker, &tracker->candidate[i]);
}

void tracker__inspect(struct tracker *tracker, uint64_t now_ns)
{
	char err[512];

	tracker->claims = 0;
	portion__begin(&tracker->attachments, ATTACHED_AT_ONCE);
	for (size_t i = 0; i < tracker->candidate_count; i++) {
		struct candidate *candidate = &tracker->candidate[i];
		int status;

		if (now_ns < candidate->since_ns + look_after_ms[candidate->looks] * 1000000 ||
		    (now_ns < candidate->due_ns && !has_ended(candidate->pid)))
			continue;
		if (was_too_short(tracker, candidate)) {
			*candidate = tracker->candidate[--tracker->candidate_count];
			i--;
			continue;
		}
		if (!has_ended(candidate->pid) && tracker__still_waits(candidate, now_ns))
			continue;
		if (!portion__allows(&tracker->attachments))
			break;
		status = consider(tracker, candidate->pid, candidate->looks, now_ns, err, sizeof(err));
		if (status == -EINPROGRESS) {
			take_over(candidate, &tracker->later);
			tracker__report_wait(tracker, candidate);
			continue;
		}
		if (status == -ENOSPC) {
			candidate->since_ns = now_ns + CLAIM_NS;
			continue;
		}
		if (status == -EAGAIN && tracker->later.ranked)
			candidate->limit = LOOKS;
		if (status == -EBUSY || (status == -EAGAIN && ++candidate->looks < candidate->limit))
			continue;
		*candidate = tracker->candidate[--tracker->candidate_count];
		i--;
	}
	tracker__give_back_slots(tracker, now_ns);
}

bool tracker__is_behind(const struct tracker *tracker)
{
	return tracker->attachments.cut;
}

bool tracker__expects(const struct tracker *tracker)
{
	return tracker->candidate_count > 0;
}

bool tracker__expects_soon(const struct tracker *tracker)
{
	for (size_t i = 0; i < tracker->candidate_count; i++)
		if (!tracker->candidate[i].held && !tracker->candidate[i].traced)
			return true;
	return false;
}
