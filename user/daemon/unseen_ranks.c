// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Processes that an MPI launcher has given a rank, and in which no MPI was found: a library of an unknown kind, or
 * none. Wrappers between launcher and rank have the rank's environment, too, so that only what computes and is no other
 * process's rank is reported.
 */
#include <signal.h>
#include <string.h>

#include "base/base_name.h"
#include "daemon/tracker_private.h"

#define AGE_NS 5000000000ULL /* from the last look to the report: MPI may be loaded late */
#define COMPUTES_S 1.0	     /* CPU time meanwhile */

static struct unseen_rank *find(struct tracker *tracker, pid_t pid)
{
	for (size_t i = 0; i < tracker->unseen_count; i++)
		if (tracker->unseen[i].pid == pid)
			return &tracker->unseen[i];
	return NULL;
}

bool tracker__is_unseen(struct tracker *tracker, pid_t pid)
{
	return find(tracker, pid);
}

void tracker__note_unseen(struct tracker *tracker, const struct process *process, uint64_t now_ns)
{
	struct unseen_rank *known = find(tracker, process->pid);
	struct process_activity activity;

	if (!process->launched || process->rank < 0 || (known && known->start_time == process->start_time) ||
	    process__activity(process->pid, &activity))
		return;
	if (!known && tracker->unseen_count == TRACKER_UNSEEN)
		return;
	known = known ? known : &tracker->unseen[tracker->unseen_count++];
	*known = (struct unseen_rank){
	    .pid = process->pid, .start_time = process->start_time, .since_ns = now_ns, .cpu_s = activity.cpu_s};
}

static void warn(struct tracker *tracker, const struct process *process, bool tracked)
{
	const char *base = base_name(process->exe);

	tracker__warn_owner(
	    tracker, "rank_without_mpi", process->pid, process->owner,
	    "process %d (%s) has rank %d in its environment, and no MPI library was found in it: %s%s%s", process->pid,
	    process->name, process->rank,
	    tracked ? "only its threads, its IO and requested functions are seen" : "it is not watched. --exe ",
	    tracked ? "" : base, tracked ? "" : " watches its threads, its IO and requested functions");
}

/* Reports a process that computes. Returns whether it is to be looked at again. */
static bool look_at(struct tracker *tracker, struct unseen_rank *unseen)
{
	const struct tracked *tracked = tracker__of(tracker, unseen->pid);
	struct process_activity activity;
	struct process *process;
	char err[256];
	bool same;

	if (kill(unseen->pid, 0) || (tracked && (tracked->ended_ns || tracked->image)) ||
	    process__activity(unseen->pid, &activity))
		return false;
	if (unseen->reported || activity.cpu_s - unseen->cpu_s < COMPUTES_S)
		return true;
	if (process__read(unseen->pid, &process, err, sizeof(err)))
		return false;
	same = process->start_time == unseen->start_time;
	if (same && !tracker__has_rank(tracker, process)) {
		unseen->reported = true;
		warn(tracker, process, tracked);
	}
	process__free(process);
	return same;
}

void tracker__report_unseen(struct tracker *tracker, uint64_t now_ns)
{
	for (size_t i = 0; i < tracker->unseen_count; i++) {
		struct unseen_rank *unseen = &tracker->unseen[i];

		if (now_ns < unseen->since_ns + AGE_NS || look_at(tracker, unseen))
			continue;
		*unseen = tracker->unseen[--tracker->unseen_count];
		i--;
	}
}
