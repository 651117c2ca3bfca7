// SPDX-License-Identifier: GPL-2.0-or-later
/* Accounts for the tracked processes, their cost and facts, by second and by window. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "collect/requests.h"
#include "base/grow.h"
#include "daemon/tracker_private.h"

#define RETIRE_NS 600000000ULL /* delay after a process's end until its last bin is drained */

#define ENDED_MOST 65536 /* threads whose end is not reported yet */

#define SILENT_NS 10000000000ULL /* time without any call after an attachment that is reported */

#define REQUEST_NS 60000000000ULL /* age of a request whose completion is given up */

static void say_pathless(struct watch *watch, struct watched *watched)
{
	if (watched->pathless || !resolver__pathless(watch->parts.resolver, watched->pid))
		return;
	watched->pathless = true;
	watch__warn(watch, "no_frame_pointers", watched->pid,
		    "process %d (%s) keeps no frame pointers: its states are distinguished by call-site alone",
		    watched->pid, watched->identity.exe);
}

/* Reports once each consequence of a process's having more states than its share. */
static void say_bounded(struct watch *watch, struct watched *watched)
{
	uint32_t fresh = watch__counters(watch, watched)->bounded & ~watched->bounded_reported;

	watched->bounded_reported |= fresh;
	if (fresh & KERNEL_BOUNDED_STATES)
		watch__warn(watch, "states_bounded", watched->pid,
			    "process %d (%s) has more states than its share of the kernel's tables: fragments of "
			    "further states are lost, by the cause 'states'",
			    watched->pid, watched->identity.exe);
	else if (fresh & KERNEL_BOUNDED_VALUES)
		watch__warn(watch, "states_bounded", watched->pid,
			    "process %d (%s) has more states than its share of the kernel's tables: further values "
			    "of peer, root, communicator, operation, file, mode and call path are one, 'other'",
			    watched->pid, watched->identity.exe);
}

/*
 * A user who attaches to a hanging job sees none of its calls begin. What /proc shows of a process then
 * is no fragment, but a hint where to look next.
 */
static void say_silent(struct watch *watch, struct watched *watched, uint64_t now_ns)
{
	const struct kernel_counters *counters = watch__counters(watch, watched);
	struct process_activity activity;
	char rank[32] = "", where[384] = "runs";
	bool closed = watch__orders(watch, watched)->probe_epoch & 1;

	if (watched->silence_reported || !watched->image || closed ||
	    (watched->looked_ns && now_ns < watched->looked_ns + SILENT_NS))
		return;
	if (counters->enter + counters->left + counters->syscalls) {
		watched->silence_reported = true;
		return;
	}
	if (process__activity(watched->pid, &activity))
		return;
	if (!watched->looked_ns) {
		watched->looked_ns = now_ns;
		watched->looked_cpu_s = activity.cpu_s;
		return;
	}
	watched->silence_reported = true;
	if (watched->identity.rank >= 0)
		snprintf(rank, sizeof(rank), "rank %d, ", watched->identity.rank);
	if (activity.state != 'R')
		snprintf(where, sizeof(where), "%s%s%s%s%s", activity.state == 'T' ? "is stopped" : "sleeps",
			 *activity.call ? " in " : "", activity.call, *activity.file ? " of " : "", activity.file);
	watch__warn(
	    watch, "no_calls", watched->pid,
	    "process %d (%s%s): no call was seen in the %.0f s since it was attached: its present call or computation "
	    "began before and is not reported; its main thread %s; %.1f s of CPU time meanwhile",
	    watched->pid, rank, watched->identity.exe, (double)(now_ns - watched->attached_ns) * 1e-9, where,
	    activity.cpu_s - watched->looked_cpu_s);
}

void watch__thread_ended(struct watch *watch, pid_t pid, pid_t tid, uint64_t time_ns)
{
	/* a main thread may end long before its process, whose end is reported separately */
	if (tid == pid || watch->ended_count >= ENDED_MOST ||
	    grow(&watch->ended, &watch->ended_room, watch->ended_count + 1, sizeof(*watch->ended)))
		return;
	watch->ended[watch->ended_count++] = (struct ended_thread){tid, time_ns};
}

/* Reports the ends of threads whose last bundles were drained: a thread without bundles has no number. */
static void report_ended(struct watch *watch, uint64_t now_ns)
{
	size_t done = 0;

	for (; done < watch->ended_count && watch->ended[done].time_ns + RETIRE_NS <= now_ns; done++) {
		int64_t thread = resolver__thread(watch->parts.resolver, (uint32_t)watch->ended[done].tid, 0);
		struct stream_event event = {.type = STREAM_SEEN};

		if (thread < 0)
			continue;
		event.seen = (struct stream_seen){.thread = (uint32_t)thread, .to_ns = watch->ended[done].time_ns};
		stream__put(watch->parts.sink, &event);
	}
	watch->ended_count -= done;
	memmove(watch->ended, watch->ended + done, watch->ended_count * sizeof(*watch->ended));
}

void watch__second(struct watch *watch, uint64_t now_ns, struct watch_second *second)
{
	double seconds = (double)(now_ns - watch->last_second_ns) * 1e-9;

	*second = (struct watch_second){0};
	report_ended(watch, now_ns);
	for (size_t i = 0; i < watch->count; i++) {
		struct watched *watched = &watch->watched[i];
		struct kernel_thread thread;
		uint64_t calls;
		size_t threads;

		if (watched->ended_ns)
			continue;
		calls = process__io_calls(watched->pid);
		second->io_worth |= watched->io_requested || (double)(calls - watched->io_calls) >= seconds;
		watched->io_requested = false;
		watched->io_calls = calls;
		second->io_ns += watch__counters(watch, watched)->io_ns - watched->io_ns;
		watched->io_ns = watch__counters(watch, watched)->io_ns;
		second->in_io |=
		    !kernel_side__thread(watch->parts.side, watched->pid, &thread) && thread.open == KERNEL_SYSCALL;
		threads = process__threads(watched->pid, NULL, 0);
		second->threads += (uint32_t)threads;
		watch__look_for_threads(watch, watched, threads);
		say_pathless(watch, watched);
		say_bounded(watch, watched);
		say_silent(watch, watched, now_ns);
	}
	watch->last_second_ns = now_ns;
}

void watch__stopped(struct watch *watch, pid_t pid)
{
	struct watched *watched = watch__of(watch, pid);
	pid_t tracer = watched && !watched->ended_ns ? process__tracer(pid) : 0;
	char exe[512] = "", *base;

	if (!watched || tracer == watched->tracer)
		return;
	watched->tracer = tracer;
	if (!tracer)
		return;
	process__read_exe(tracer, exe, sizeof(exe));
	base = strrchr(exe, '/');
	watch__warn(
	    watch, "traced", pid,
	    "process %d (%s): a debugger or tracer is attached to it, %s (pid %d): the time in which that stops it "
	    "is reported as stopped",
	    pid, watched->identity.exe, base ? base + 1 : "unknown", tracer);
}

static int emit_facts(struct watch *watch, struct watched *watched, uint64_t begin_ns, uint64_t end_ns)
{
	struct kernel_counters now = *watch__counters(watch, watched), delta = {0};
	struct stream_event event = {.type = STREAM_FACTS};
	uint64_t from = begin_ns > watched->attached_ns ? begin_ns : watched->attached_ns;
	uint64_t to = watched->ended_ns && watched->ended_ns < end_ns ? watched->ended_ns : end_ns;
	uint64_t delivered = collector__delivered(watch->parts.collector, watched->slot) - watched->delivered_before;
	struct enforcer_window cost = enforcer__end_window(watch->enforcer, watched->governed, to);

	delta.enter = now.enter - watched->window.enter;
	delta.exit = now.exit - watched->window.exit;
	delta.left = now.left - watched->window.left;
	delta.syscalls = now.syscalls - watched->window.syscalls;
	event.facts = (struct vapro_process_facts){.pid = (uint32_t)watched->pid,
						   .job = watched->identity.job,
						   .user = (uint32_t)watched->identity.uid + 1,
						   .wall_ns = to > from ? to - from : 0,
						   .governed_ns = cost.closed_ns,
						   .thinned_ns = cost.thinned_ns,
						   .thinned = cost.thinned,
						   .hits = delta.enter + delta.exit + delta.left + delta.syscalls,
						   .cost_ns = cost.cost_ns + now.held_ns - watched->window.held_ns};
	for (int i = 0; i < VAPRO_LOSSES; i++)
		event.facts.lost[i] = now.lost[i] - watched->window.lost[i];
	event.facts.lost[VAPRO_LOST_GOVERNED] += event.facts.thinned;
	/* fragments emitted by the kernel side and never delivered; of live processes some are always under way */
	if (watched->ended_ns && now.emitted > delivered + watched->unaccounted) {
		event.facts.lost[VAPRO_LOST_UNACCOUNTED] += now.emitted - delivered - watched->unaccounted;
		watched->unaccounted = now.emitted - delivered;
	}
	watched->window = now;
	return stream__put(watch->parts.sink, &event);
}

int watch__emit_place(struct watch *watch, const struct watched *watched, pid_t tid)
{
	int64_t thread = resolver__thread(watch->parts.resolver, (uint32_t)tid, 0);
	struct stream_event event = {.type = STREAM_PLACE};

	if (thread < 0 || !topology__place(watch->topology, watched->pid, tid, &event.place))
		return 0;
	event.place.thread = (uint32_t)thread;
	return stream__put(watch->parts.sink, &event);
}

static void forget(struct watch *watch, struct watched *watched)
{
	watch->hits += watch__hits_of(watch, watched);
	resolver__remove(watch->parts.resolver, watched->pid, watched->slot);
	watch->slots[watched->slot] = false;
	close(watched->pidfd);
	enforcer__remove(watch->enforcer, watched->governed);
	*watched = watch->watched[--watch->count];
}

bool watch__retire(struct watch *watch, struct watched *watched, uint64_t now_ns)
{
	if (!watched->ended_ns || watched->ended_ns + RETIRE_NS > now_ns)
		return false;
	say_pathless(watch, watched);
	say_bounded(watch, watched);
	emit_facts(watch, watched, watch->window_ns, now_ns);
	forget(watch, watched);
	return true;
}

struct aging {
	struct watch *watch;
	uint64_t now_ns;
};

/* Returns whether a request's completion is missed for good: its process has ended, or the request is old. */
static bool is_stale(void *ctx, uint32_t tgid, const struct kernel_request *request)
{
	struct aging *aging = ctx;
	struct kernel_counters *counters = kernel_side__shared(aging->watch->parts.side)->counters;

	for (size_t i = 0; i < aging->watch->count; i++) {
		const struct watched *watched = &aging->watch->watched[i];

		if ((uint32_t)watched->pid != tgid)
			continue;
		if (!watched->ended_ns &&
		    (request->flags & KERNEL_REQUEST_PERSISTENT || request->time_ns + REQUEST_NS > aging->now_ns))
			return false;
		if (!(request->flags & KERNEL_REQUEST_PERSISTENT) && !watch__orders(aging->watch, watched)->set)
			__atomic_fetch_add(&counters[watched->slot].lost[VAPRO_LOST_UNMATCHED], request->count,
					   __ATOMIC_RELAXED);
		return true;
	}
	return true;
}

/* Forgets the processes that ended before a window's end and have been drained since. */
static void retire(struct watch *watch, uint64_t end_ns)
{
	for (size_t i = 0; i < watch->count; i++) {
		struct watched *watched = &watch->watched[i];

		if (!watched->ended_ns || watched->ended_ns + RETIRE_NS > end_ns)
			continue;
		forget(watch, watched);
		i--;
	}
}

int watch__end_window(struct watch *watch, uint64_t begin_ns, uint64_t end_ns)
{
	pid_t tids[256];
	int status = 0;

	requests__age(kernel_side__map(watch->parts.side, KERNEL_MAP_REQUESTS), is_stale,
		      &(struct aging){watch, end_ns});
	for (size_t i = 0; i < watch->count && !status; i++) {
		struct watched *watched = &watch->watched[i];
		size_t count = watched->ended_ns ? 0 : process__threads(watched->pid, tids, 256);

		for (size_t j = 0; j < count && j < 256 && !status; j++) {
			status = collector__emit_open(watch->parts.collector, tids[j], end_ns);
			if (!status)
				status = watch__emit_place(watch, watched, tids[j]);
		}
		if (!status)
			status = emit_facts(watch, watched, begin_ns, end_ns);
		say_pathless(watch, watched); /* covers a process that ended since the last second */
		say_bounded(watch, watched);
	}
	retire(watch, end_ns);
	watch->window_ns = end_ns;
	return status;
}
