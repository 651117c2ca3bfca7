// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/tracker_private.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/grow.h"
#include "target/kernel_range.h"
#include "target/translator.h"

#define REMAP_NS 100000000ULL /* mappings come in bursts */
#define ENDS_AT_ONCE 64

#define USUAL_CALLS 500 /* calls a second */
#define FEW_SHARE 0.25	/* of the budget: targets have links of their own though no other process maps the image */
#define FEW_MOST 32
#define FEW_UNKNOWN 16 /* where costs are not known, or not bounded */
#define MOST_SHARE 0.5 /* of the budget: targets have links of their own beside others */
#define MOST_MOST 256
#define PERF_MOST 32 /* of these each takes seconds to remove */

/* So many links of other processes take a share of the budget of a process with usual calls; 0 where unknown. */
static double affordable(const struct tracker_parts *parts, double share)
{
	double each = parts->costs->beside_ns * USUAL_CALLS * 1e-9;

	return each > 0 && parts->governor.budget > 0 ? parts->governor.budget * share / each : 0;
}

/*
 * How many targets get links of their own in any case: as long as these cost a job of usual calls no considerable part
 * of its budget. None do where the kernel shows their main threads only, or kills some of them at a return; all do
 * where links cannot be closed soon.
 */
static size_t few_targets(const struct tracker_parts *parts)
{
	double few = affordable(parts, FEW_SHARE);

	if (kernel_side__frugal(parts->side))
		return SIZE_MAX;
	if (kernel_side__facts(parts->side)->thread_filter == FACT_YES ||
	    (kernel_range__troubled(KERNEL_SECCOMP_KILLS) && !parts->no_return))
		return 0;
	return few > 0 ? (size_t)fmin(1 + few, FEW_MOST) : FEW_UNKNOWN;
}

/* How many targets of an image have links of their own at most, for the sake of others. */
static uint32_t most_targets(const struct tracker_parts *parts)
{
	double most = affordable(parts, MOST_SHARE);

	if (kernel_side__frugal(parts->side))
		return PERF_MOST;
	return (uint32_t)fmax(most > 0 ? fmin(1 + most, MOST_MOST) : 0, FEW_MOST);
}

struct tracker *tracker__new(const struct tracker_parts *parts, const struct selection *selection)
{
	struct tracker *tracker = calloc(1, sizeof(*tracker));

	if (!tracker)
		return NULL;
	tracker->parts = *parts;
	tracker->selection = selection;
	tracker->verdicts.reported = parts->finds;
	tracker->verdicts.few = few_targets(parts);
	tracker->bystanders.most = most_targets(parts);
	attacher__bound(parts->attacher, tracker->bystanders.most);
	row_attacher__bound(parts->rows, tracker->bystanders.most);
	tracker->slots[KERNEL_SLOTS - 1] = true; /* reserved for the calibration child */
	tracker->files = mpi_files__new();
	tracker->topology = topology__new("/sys", "/proc/cpuinfo");
	tracker->named_start = calloc(selection->pid_count + 1, sizeof(*tracker->named_start));
	tracker->enforcer = tracker__new_enforcer(tracker);
	if (!tracker->files || !tracker->topology || !tracker->named_start || !tracker->enforcer) {
		tracker__free(tracker);
		return NULL;
	}
	return tracker;
}

void tracker__free(struct tracker *tracker)
{
	if (!tracker)
		return;
	for (size_t i = 0; i < tracker->count; i++)
		close(tracker->tracked[i].pidfd);
	free(tracker->tracked);
	free(tracker->candidate);
	refusals__clear(&tracker->bystanders.refused);
	free(tracker->named_start);
	enforcer__free(tracker->enforcer);
	free(tracker->ended);
	mpi_files__free(tracker->files);
	topology__free(tracker->topology);
	free(tracker);
}

struct tracked *tracker__of(struct tracker *tracker, pid_t pid)
{
	for (size_t i = 0; i < tracker->count; i++)
		if (tracker->tracked[i].pid == pid)
			return &tracker->tracked[i];
	return NULL;
}

/* Marks the tracked processes that have ended, by one system call for many instead of one for each. */
static void look_for_ends(struct tracker *tracker)
{
	struct pollfd fds[ENDS_AT_ONCE];

	for (size_t first = 0; first < tracker->count; first += ENDS_AT_ONCE) {
		size_t count = tracker->count - first < ENDS_AT_ONCE ? tracker->count - first : ENDS_AT_ONCE;

		for (size_t i = 0; i < count; i++)
			fds[i] = (struct pollfd){.fd = tracker->tracked[first + i].pidfd, .events = POLLIN};
		if (poll(fds, count, 0) <= 0)
			continue;
		for (size_t i = 0; i < count; i++)
			tracker->tracked[first + i].gone |= fds[i].revents != 0;
	}
}

static void say_goodbye(struct tracker *tracker, struct tracked *tracked, enum line_process_state state,
			const char *reason, uint64_t now_ns)
{
	uint64_t hits = tracker__hits_of(tracker, tracked);

	tracked->ended_ns = now_ns;
	tracker->owners.of[tracked->owner].leaving++;
	tracker__emit_process(tracker, tracked, state, hits,
			      state == LINE_EXITED && tracked->image && !hits ? "mapped but never hit" : reason);
}

/*
 * Ends the row of a process in which no fragment can begin any more. The end is the present time, not that of the
 * loop's begin: a fragment that begins after the end of its thread passes for another thread's, and its job never ends.
 */
static void end_row(struct tracker *tracker, const struct tracked *tracked)
{
	tracker__emit_row(tracker, tracked, mono_now());
}

void tracker__detach(struct tracker *tracker, struct tracked *tracked, const char *reason, uint64_t now_ns)
{
	enforcer__leave(tracker->enforcer, tracked->governed, now_ns);
	say_goodbye(tracker, tracked, LINE_EXITED, reason, now_ns);
	attacher__release(tracker->parts.attacher, tracked->pid);
	row_attacher__release(tracker->parts.rows, tracked->pid);
	tracked->image = NULL;
	kernel_side__untrack(tracker->parts.side, tracked->pid);
	end_row(tracker, tracked);
}

void tracker__detach_running(struct tracker *tracker, struct tracked *tracked, uint64_t now_ns)
{
	enforcer__leave(tracker->enforcer, tracked->governed, now_ns);
	say_goodbye(tracker, tracked, LINE_DETACHED, "another user needs its slot", now_ns);
	attacher__release(tracker->parts.attacher, tracked->pid);
	row_attacher__release(tracker->parts.rows, tracked->pid);
	tracked->image = NULL;
	tracked->drained = !tracker__hits_of(tracker, tracked);
	kernel_side__release(tracker->parts.side, tracked->pid);
	end_row(tracker, tracked);
}

/* Attaches the MPI that a process lacked when it was attached, if it has one now. */
static void join(struct tracker *tracker, struct tracked *tracked, struct process *process, uint64_t now_ns)
{
	const struct process_mapping *library = NULL;
	struct bpf_process_state entry = {.slot = tracked->slot};
	struct functions_spared spared;
	enum process_mpi mpi;
	char err[512];
	int status;

	status = mpi_files__look(tracker->files, process, true, err, sizeof(err));
	mpi = process__mpi(process, &library);
	if (status)
		status = tracker__put_off(tracker, process, status, err, now_ns);
	else if (!mpi)
		return;
	else
		status = tracker__prepare(tracker, process, now_ns);
	/* what is read yet, or held, is looked at again when mappings are */
	if (status) {
		tracker__look_again(tracker, tracked, tracker->later_reason, tracker->later.held, now_ns);
		return;
	}
	entry.flags = tracker__flags_of(tracker, process, mpi);
	spared = enforcer__former(tracker->enforcer, process->owner, process->name, library->path, now_ns);
	tracked->flags = entry.flags;
	tracked->identity.library = process->library;
	resolver__remapped(tracker->parts.resolver, tracked->pid, &process->library);
	kernel_side__reflag(tracker->parts.side, tracked->pid, &entry);
	enforcer__suspend(tracked->governed);
	status =
	    attacher__attach(tracker->parts.attacher, process, library, tracker__is_alone(tracker, library, now_ns),
			     &spared, &tracked->image, err, sizeof(err));
	if (status) {
		attacher__release(tracker->parts.attacher, tracked->pid);
		tracked->image = NULL;
		tracker__warn(tracker, "attach_failed", tracked->pid,
			      "an MPI library was loaded after attachment and could not be probed: %s", err);
	}
	tracker__join_image(tracker, tracked, now_ns);
	if (!status) {
		tracker__emit_process(tracker, tracked, LINE_ATTACHED, tracker__hits_of(tracker, tracked),
				      "its MPI library was loaded after attachment");
		tracker__report_libraries(tracker, tracked, library->path);
	}
}

static void remap(struct tracker *tracker, struct tracked *tracked, uint64_t now_ns)
{
	uint64_t spent_ns = cpu_spent();
	const struct process *known;
	struct process *process;
	char err[256];

	tracked->remapped_ns = 0;
	if (tracked->image) {
		known = resolver__remapped(tracker->parts.resolver, tracked->pid, NULL);
		if (known)
			tracker__rows_remapped(tracker, tracked, known);
	} else if (!process__read(tracked->pid, &process, err, sizeof(err))) {
		tracker__rows_remapped(tracker, tracked, process);
		join(tracker, tracked, process, now_ns);
		process__free(process);
	}
	tracked->attach_cost_ns += cpu_spent() - spent_ns;
}

void tracker__mapped(struct tracker *tracker, pid_t pid, const char *path, uint64_t now_ns)
{
	struct tracked *tracked = tracker__of(tracker, pid);
	bool suggested = mpi_files__suggests(path);

	if (path[0] != '/' || path[1] == '/') /* no file: the vdso, or code compiled at run time */
		return;
	tracker__translated(tracker, pid, path, now_ns);
	if (tracked && !tracked->ended_ns && translator__of_path(path))
		tracker__detach(tracker, tracked, "a binary translator runs it now", now_ns);
	if (!tracked || tracked->ended_ns) {
		tracker__mapped_beside(tracker, pid, path);
		if (suggested || tracker__is_unseen(tracker, pid))
			tracker__is_candidate(tracker, pid, now_ns);
		return;
	}
	if (suggested && !tracked->image)
		tracked->remapped_ns = now_ns - REMAP_NS;
	else if (!tracked->remapped_ns)
		tracked->remapped_ns = now_ns;
}

void tracker__exec(struct tracker *tracker, pid_t pid, uint64_t exec_ns, uint64_t now_ns)
{
	struct tracked *tracked = tracker__of(tracker, pid);

	if (tracked && !tracked->ended_ns) {
		if (exec_ns < tracked->identity.read_ns)
			return; /* the process was read after the exec, whose mappings arrived first, another way */
		tracker__detach(tracker, tracked, "it became another program (exec)", now_ns);
	}
	if (!tracker->parts.finds && process__translator(pid))
		tracker__find_translators(tracker, now_ns);
	refusals__forget(&tracker->bystanders.refused, pid);
	tracker__executed(tracker, pid, now_ns);
}

void tracker__poll(struct tracker *tracker, uint64_t now_ns)
{
	tracker__inspect(tracker, now_ns);
	tracker__watch_bystanders(tracker, now_ns);
	*kernel_side__shared(tracker->parts.side)->wake_execs =
	    attacher__any_linked(tracker->parts.attacher) || row_attacher__any_linked(tracker->parts.rows);
	if (attach_costs__is_due(&tracker->costs, now_ns))
		attach_costs__step(&tracker->costs, tracker__expects_soon(tracker), cpu_of_process(), now_ns);
	tracker__outline_due(tracker, now_ns);
	look_for_ends(tracker);
	for (size_t i = 0; i < tracker->count; i++) {
		struct tracked *tracked = &tracker->tracked[i];

		if (tracked->ended_ns) {
			i -= tracker__retire(tracker, tracked, now_ns); /* open files make umount fail */
			continue;
		}
		if (tracked->gone) {
			/* records of the process before its end, perhaps an exec, come first */
			collector__drain_ring(tracker->parts.collector);
			tracked = &tracker->tracked[i];
			if (!tracked->ended_ns)
				tracker__detach(tracker, tracked, "it ended", now_ns);
		} else if (tracked->remapped_ns && now_ns >= tracked->remapped_ns + REMAP_NS) {
			remap(tracker, tracked, now_ns);
		}
	}
	tracker__purge(tracker);
}

size_t tracker__alive(const struct tracker *tracker)
{
	size_t alive = 0;

	for (size_t i = 0; i < tracker->count; i++)
		alive += !tracker->tracked[i].ended_ns;
	return alive;
}

bool tracker__any(const struct tracker *tracker)
{
	return tracker->any;
}

const char *tracker__refusal_seen(const struct tracker *tracker)
{
	return *tracker->refusal ? tracker->refusal : NULL;
}

void tracker__detach_all(struct tracker *tracker, uint64_t now_ns, const char *reason)
{
	tracker__end_inspection(tracker);
	for (size_t i = 0; i < tracker->count; i++)
		if (!tracker->tracked[i].ended_ns) {
			say_goodbye(tracker, &tracker->tracked[i], LINE_DETACHED, reason, now_ns);
			end_row(tracker, &tracker->tracked[i]);
		}
}

uint64_t tracker__hits(const struct tracker *tracker)
{
	uint64_t hits = tracker->hits;

	for (size_t i = 0; i < tracker->count; i++)
		hits += tracker__hits_of(tracker, &tracker->tracked[i]);
	return hits;
}
