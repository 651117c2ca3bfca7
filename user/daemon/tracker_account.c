// SPDX-License-Identifier: GPL-2.0-or-later
/* Accounts for the tracked processes, their cost and facts, by second and by window. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "collect/map_walk.h"
#include "base/base_name.h"
#include "base/grow.h"
#include "daemon/tracker_private.h"

#define RETIRE_NS 600000000ULL /* delay after a process's end until its last bin is drained */

#define ENDED_MOST 65536 /* threads whose end is not reported yet */

#define SILENT_NS 10000000000ULL /* time without any call after an attachment that is reported */

#define REQUEST_NS 60000000000ULL /* age of a request whose completion is given up */
#define AGE_EACH_NS 9000000000ULL /* time between two searches for old requests: less than a default window */

static void say_pathless(struct tracker *tracker, struct tracked *tracked)
{
	if (tracked->pathless || !resolver__pathless(tracker->parts.resolver, tracked->pid))
		return;
	tracked->pathless = true;
	tracker__warn_owner(tracker, "no_frame_pointers", tracked->pid, tracked->identity.owner,
			    "process %d (%s) keeps no frame pointers: its states are distinguished by call-site alone",
			    tracked->pid, tracked->identity.name);
}

/* Reports once each consequence of a process's having more states than its share. */
static void say_bounded(struct tracker *tracker, struct tracked *tracked)
{
	uint32_t fresh = tracker__counters(tracker, tracked)->bounded & ~tracked->bounded_reported;

	tracked->bounded_reported |= fresh;
	if (fresh & KERNEL_BOUNDED_STATES)
		tracker__warn_owner(
		    tracker, "states_bounded", tracked->pid, tracked->identity.owner,
		    "process %d (%s) has more states than its share of the kernel's tables: fragments of "
		    "further states are lost, by the cause 'states'",
		    tracked->pid, tracked->identity.name);
	else if (fresh & KERNEL_BOUNDED_VALUES)
		tracker__warn_owner(
		    tracker, "states_bounded", tracked->pid, tracked->identity.owner,
		    "process %d (%s) has more states than its share of the kernel's tables: further values of peer, "
		    "root, communicator, operation, file, mode and call path are recorded as one value, 'other'",
		    tracked->pid, tracked->identity.name);
}

/*
 * A user who attaches to a hanging job sees none of its calls begin. What /proc shows of a process then
 * is no fragment, but a hint where to look next.
 */
static void say_silent(struct tracker *tracker, struct tracked *tracked, uint64_t now_ns)
{
	const struct kernel_counters *counters = tracker__counters(tracker, tracked);
	struct process_activity activity;
	char rank[32] = "", where[384] = "runs";
	bool closed = tracker__orders(tracker, tracked)->probe_epoch & 1;

	if (tracked->silence_reported || !tracked->image || closed ||
	    (tracked->looked_ns && now_ns < tracked->looked_ns + SILENT_NS))
		return;
	if (counters->enter + counters->left + counters->syscalls) {
		tracked->silence_reported = true;
		return;
	}
	if (process__activity(tracked->pid, &activity))
		return;
	if (!tracked->looked_ns) {
		tracked->looked_ns = now_ns;
		tracked->looked_cpu_s = activity.cpu_s;
		return;
	}
	tracked->silence_reported = true;
	if (tracked->identity.rank >= 0)
		snprintf(rank, sizeof(rank), "rank %d, ", tracked->identity.rank);
	if (topology__stopped_by(tracker->topology, tracked->pid) == VAPRO_STOPPED_FREEZER)
		snprintf(where, sizeof(where), "is frozen by its cgroup");
	else if (activity.state != 'R')
		snprintf(where, sizeof(where), "%s%s%s%s%s", activity.state == 'T' ? "is stopped" : "sleeps",
			 *activity.call ? " in " : "", activity.call, *activity.file ? " of " : "", activity.file);
	tracker__warn_owner(
	    tracker, "no_calls", tracked->pid, tracked->identity.owner,
	    "process %d (%s%s): no call was seen in the %.0f s since it was attached: its present call or computation "
	    "began before and is not reported; its main thread %s; %.1f s of CPU time meanwhile",
	    tracked->pid, rank, tracked->identity.name, (double)(now_ns - tracked->attached_ns) * 1e-9, where,
	    activity.cpu_s - tracked->looked_cpu_s);
}

void tracker__thread_ended(struct tracker *tracker, pid_t pid, pid_t tid, uint64_t time_ns)
{
	/* a main thread may end long before its process, whose end is reported separately */
	if (tid == pid || tracker->ended_count >= ENDED_MOST ||
	    grow(&tracker->ended, &tracker->ended_room, tracker->ended_count + 1, sizeof(*tracker->ended)))
		return;
	tracker->ended[tracker->ended_count++] = (struct ended_thread){tid, time_ns};
}

/* Reports the ends of threads whose last bundles were drained: a thread without bundles has no number. */
static void report_ended(struct tracker *tracker, uint64_t now_ns)
{
	size_t done = 0;

	for (; done < tracker->ended_count && tracker->ended[done].time_ns + RETIRE_NS <= now_ns; done++) {
		int64_t thread = resolver__thread(tracker->parts.resolver, (uint32_t)tracker->ended[done].tid, 0);
		struct stream_event event = {.type = STREAM_SEEN};

		if (thread < 0)
			continue;
		event.seen = (struct stream_seen){.thread = (uint32_t)thread, .to_ns = tracker->ended[done].time_ns};
		stream__put(tracker->parts.sink, &event);
	}
	tracker->ended_count -= done;
	memmove(tracker->ended, tracker->ended + done, tracker->ended_count * sizeof(*tracker->ended));
}

/* Notes how often a process called in the last second, and what that cost it. */
static void note_rates(const struct tracker *tracker, struct tracked *tracked, uint64_t now_ns)
{
	const struct kernel_counters *counters = tracker__counters(tracker, tracked);
	uint64_t from = tracked->attached_ns > tracker->last_second_ns ? tracked->attached_ns : tracker->last_second_ns;
	uint64_t calls = counters->enter + counters->syscalls;
	uint64_t cost_ns = enforcer__spent(tracked->governed);
	double passed_ns = (double)(now_ns - from);

	if (now_ns <= from)
		return;
	tracked->calls_per_s = (double)(calls - tracked->second_calls) / passed_ns * 1e9;
	tracked->overhead_pct = (double)(cost_ns - tracked->second_cost_ns) / passed_ns * 100;
	tracked->second_calls = calls;
	tracked->second_cost_ns = cost_ns;
}

void tracker__second(struct tracker *tracker, uint64_t now_ns, struct watch_second *second)
{
	double seconds = (double)(now_ns - tracker->last_second_ns) * 1e-9;

	*second = (struct watch_second){0};
	tracker__give_back(tracker, now_ns);
	tracker__report_unseen(tracker, now_ns);
	report_ended(tracker, now_ns);
	for (size_t i = 0; i < tracker->count; i++) {
		struct tracked *tracked = &tracker->tracked[i];
		struct bpf_thread_state thread;
		uint64_t calls;
		size_t threads;
		bool known;

		if (tracked->ended_ns)
			continue;
		note_rates(tracker, tracked, now_ns);
		calls = process__io_calls(tracked->pid);
		second->io_worth |= tracked->io_requested || (double)(calls - tracked->io_calls) >= seconds;
		tracked->io_requested = false;
		tracked->io_calls = calls;
		second->io_ns += tracker__counters(tracker, tracked)->io_ns - tracked->io_ns;
		tracked->io_ns = tracker__counters(tracker, tracked)->io_ns;
		known = !kernel_side__thread(tracker->parts.side, tracked->pid, &thread);
		second->in_io |= known && thread.open == KERNEL_SYSCALL;
		if (known && thread.stolen_cpu && second->cpu_count < WATCH_CPUS)
			second->cpus[second->cpu_count++] = thread.stolen_cpu - 1;
		threads = process__threads(tracked->pid, NULL, 0);
		second->threads += (uint32_t)threads;
		tracker__inspect_threads(tracker, tracked, threads);
		say_pathless(tracker, tracked);
		say_bounded(tracker, tracked);
		say_silent(tracker, tracked, now_ns);
	}
	tracker->last_second_ns = now_ns;
}

void tracker__stopped(struct tracker *tracker, pid_t pid)
{
	struct tracked *tracked = tracker__of(tracker, pid);
	pid_t tracer = tracked && !tracked->ended_ns ? process__tracer(pid) : 0;
	char exe[512] = "", *base;

	if (!tracked || tracer == tracked->tracer)
		return;
	tracked->tracer = tracer;
	if (!tracer)
		return;
	process__read_exe(tracer, exe, sizeof(exe));
	base = strrchr(exe, '/');
	tracker__warn(
	    tracker, "traced", pid,
	    "process %d (%s): a debugger or tracer is attached to it, %s (pid %d): the time in which that stops it "
	    "is reported as stopped",
	    pid, tracked->identity.name, base ? base + 1 : "unknown", tracer);
}

/* Returns the names of a set of units, NULL where that is empty. */
static const char *name_set(uint32_t units, char *text, size_t size)
{
	functions__name_units(units, text, size);
	return units ? text : NULL;
}

/* Moves the counters of the last window's end towards the present ones by a part of what was counted since. */
static void advance(struct kernel_counters *before, const struct kernel_counters *now, double part)
{
	uint64_t *const at[] = {&before->enter, &before->exit, &before->left, &before->syscalls};
	const uint64_t to[] = {now->enter, now->exit, now->left, now->syscalls};

	for (size_t i = 0; i < sizeof(to) / sizeof(to[0]); i++)
		*at[i] += part < 1 ? (uint64_t)((double)(to[i] - *at[i]) * part) : to[i] - *at[i];
	for (int i = 0; i < VAPRO_LOSSES; i++)
		before->lost[i] += part < 1 ? (uint64_t)((double)(now->lost[i] - before->lost[i]) * part)
					    : now->lost[i] - before->lost[i];
}

static int emit_facts(struct tracker *tracker, struct tracked *tracked, uint64_t begin_ns, uint64_t end_ns, double part)
{
	struct kernel_counters before = tracked->window, delta = {0}, now = before;
	struct stream_event event = {.type = STREAM_FACTS};
	uint64_t emitted = tracker__counters(tracker, tracked)->emitted;
	char without[FUNCTIONS_UNITS_TEXT], own[FUNCTIONS_UNITS_TEXT];
	uint64_t from = begin_ns > tracked->attached_ns ? begin_ns : tracked->attached_ns;
	uint64_t to = tracked->ended_ns && tracked->ended_ns < end_ns ? tracked->ended_ns : end_ns;
	uint64_t delivered = collector__delivered(tracker->parts.collector, tracked->slot) - tracked->delivered_before;
	struct enforcer_window cost = enforcer__end_window(tracker->enforcer, tracked->governed, to, part);

	advance(&now, tracker__counters(tracker, tracked), part);
	delta.enter = now.enter - before.enter;
	delta.exit = now.exit - before.exit;
	delta.left = now.left - before.left;
	delta.syscalls = now.syscalls - before.syscalls;
	event.facts = (struct vapro_process_facts){.pid = (uint32_t)tracked->pid,
						   .job = tracked->identity.job,
						   .user = (uint32_t)tracked->identity.uid + 1,
						   .wall_ns = to > from ? to - from : 0,
						   .governed_ns = cost.closed_ns,
						   .thinned_ns = cost.thinned_ns,
						   .thinned = cost.thinned,
						   .hits = delta.enter + delta.exit + delta.left + delta.syscalls,
						   .cost_ns = cost.cost_ns};
	if (cost.image) {
		event.facts.image = base_name(cost.image);
		event.facts.without = name_set(cost.without, without, sizeof(without));
		event.facts.without_own = name_set(cost.own, own, sizeof(own));
	}
	for (int i = 0; i < VAPRO_LOSSES; i++)
		event.facts.lost[i] = now.lost[i] - before.lost[i];
	event.facts.lost[VAPRO_LOST_GOVERNED] += event.facts.thinned;
	/* fragments emitted by the kernel side and never delivered; of live processes some are always under way */
	if (tracked->ended_ns && emitted > delivered + tracked->unaccounted) {
		event.facts.lost[VAPRO_LOST_UNACCOUNTED] += emitted - delivered - tracked->unaccounted;
		tracked->unaccounted = emitted - delivered;
	}
	tracked->window = now;
	return stream__put(tracker->parts.sink, &event);
}

int tracker__emit_place(struct tracker *tracker, const struct tracked *tracked, pid_t tid)
{
	int64_t thread = resolver__thread(tracker->parts.resolver, (uint32_t)tid, 0);
	struct stream_event event = {.type = STREAM_PLACE};

	if (thread < 0 || !topology__place(tracker->topology, tracked->pid, tid, &event.place))
		return 0;
	event.place.thread = (uint32_t)thread;
	return stream__put(tracker->parts.sink, &event);
}

static void forget(struct tracker *tracker, struct tracked *tracked)
{
	tracker->hits += tracker__hits_of(tracker, tracked);
	resolver__remove(tracker->parts.resolver, tracked->pid);
	tracker->forgotten[tracker->forgotten_count++] = (struct numbered_process){tracked->pid, tracked->slot};
	tracker->owners.of[tracked->owner].leaving--;
	tracker->slots[tracked->slot] = false;
	close(tracked->pidfd);
	enforcer__remove(tracker->enforcer, tracked->governed);
	*tracked = tracker->tracked[--tracker->count];
}

void tracker__purge(struct tracker *tracker)
{
	const struct kernel_shared *shared = kernel_side__shared(tracker->parts.side);

	if (!tracker->forgotten_count)
		return;
	resolver__purge(tracker->parts.resolver, tracker->forgotten, tracker->forgotten_count);
	for (size_t i = 0; i < tracker->forgotten_count; i++)
		owners__leave(&tracker->owners, shared->counters[tracker->forgotten[i].slot].owner);
	tracker->forgotten_count = 0;
	tracker__share_out(tracker);
}

bool tracker__retire(struct tracker *tracker, struct tracked *tracked, uint64_t now_ns)
{
	if (!tracked->ended_ns || (!tracked->drained && tracked->ended_ns + RETIRE_NS > now_ns))
		return false;
	say_pathless(tracker, tracked);
	say_bounded(tracker, tracked);
	emit_facts(tracker, tracked, tracker->window_ns, now_ns, 1);
	forget(tracker, tracked);
	return true;
}

struct aging {
	struct tracker *tracker;
	uint64_t now_ns;
};

/* Returns whether a request's completion is missed for good: its process has ended, or the request is old. */
static bool is_stale(void *ctx, const void *key, const void *value)
{
	struct aging *aging = ctx;
	uint32_t tgid = ((const struct kernel_request_key *)key)->tgid;
	const struct kernel_request *request = value;
	struct kernel_counters *counters = kernel_side__shared(aging->tracker->parts.side)->counters;

	for (size_t i = 0; i < aging->tracker->count; i++) {
		const struct tracked *tracked = &aging->tracker->tracked[i];

		if ((uint32_t)tracked->pid != tgid)
			continue;
		if (!tracked->ended_ns &&
		    (request->flags & KERNEL_REQUEST_PERSISTENT || request->time_ns + REQUEST_NS > aging->now_ns))
			return false;
		if (!(request->flags & KERNEL_REQUEST_PERSISTENT) && !tracker__orders(aging->tracker, tracked)->set)
			__atomic_fetch_add(&counters[tracked->slot].lost[VAPRO_LOST_UNMATCHED], request->count,
					   __ATOMIC_RELAXED);
		return true;
	}
	return true;
}

/*
 * Removes old requests, now and then, since reading their map walks through its whole room. Where a process has ended,
 * its requests are counted before the process is forgotten.
 */
static void age_requests(struct tracker *tracker, uint64_t now_ns)
{
	bool due = now_ns >= tracker->aged_ns + AGE_EACH_NS;

	for (size_t i = 0; i < tracker->count; i++)
		due |= tracker->tracked[i].ended_ns != 0;
	if (!due)
		return;
	tracker->aged_ns = now_ns;
	map_walk__delete(kernel_side__map(tracker->parts.side, KERNEL_MAP_REQUESTS), is_stale,
			 &(struct aging){tracker, now_ns});
}

/* Forgets the processes that ended before a window's end and have been drained since. */
static void retire(struct tracker *tracker, uint64_t end_ns)
{
	for (size_t i = 0; i < tracker->count; i++) {
		struct tracked *tracked = &tracker->tracked[i];

		if (!tracked->ended_ns || tracked->ended_ns + RETIRE_NS > end_ns)
			continue;
		forget(tracker, tracked);
		i--;
	}
}

/* Emits what stops a process that has not called anything since the last window. */
static int emit_stopped(struct tracker *tracker, const struct tracked *tracked, uint64_t end_ns)
{
	const struct kernel_counters *now = tracker__counters(tracker, tracked), *before = &tracked->window;
	enum vapro_stopped_by by = VAPRO_STOPPED_UNKNOWN;

	if (now->enter == before->enter && now->exit == before->exit && now->left == before->left &&
	    now->syscalls == before->syscalls)
		by = topology__stopped_by(tracker->topology, tracked->pid);
	return by ? collector__emit_stopped(tracker->parts.collector, tracked->pid, end_ns, by) : 0;
}

int tracker__end_window(struct tracker *tracker, uint64_t begin_ns, uint64_t end_ns, double part)
{
	pid_t tids[256];
	int status = 0;

	enforcer__ran(tracker->enforcer, ENFORCER_RECORDS);
	tracker__report_repeats(tracker);
	age_requests(tracker, end_ns);
	for (size_t i = 0; i < tracker->count && !status; i++) {
		struct tracked *tracked = &tracker->tracked[i];
		size_t count = tracked->ended_ns ? 0 : process__threads(tracked->pid, tids, 256);

		for (size_t j = 0; j < count && j < 256 && !status; j++) {
			status = collector__emit_open(tracker->parts.collector, tids[j], end_ns);
			if (!status)
				status = tracker__emit_place(tracker, tracked, tids[j]);
		}
		if (!status && !tracked->ended_ns)
			status = emit_stopped(tracker, tracked, end_ns);
		/* what a process cost that is attached since counts in its own first window */
		if (!status && tracked->attached_ns < end_ns)
			status = emit_facts(tracker, tracked, begin_ns, end_ns, part);
		say_pathless(tracker, tracked); /* covers a process that ended since the last second */
		say_bounded(tracker, tracked);
	}
	retire(tracker, end_ns);
	tracker__purge(tracker);
	tracker->window_ns = end_ns;
	return status;
}

void tracker__judged(struct tracker *tracker, const struct job_result *result, uint64_t begin_ns, uint64_t end_ns)
{
	for (size_t i = 0; i < tracker->count; i++) {
		const struct tracked *tracked = &tracker->tracked[i];

		if (!tracked->ended_ns && (uint32_t)tracked->identity.uid + 1 == result->user &&
		    !strcmp(tracked->identity.job, result->job))
			enforcer__judged(tracked->governed, begin_ns, end_ns, result->coverage_total);
	}
}

void tracker__analysed(struct tracker *tracker)
{
	enforcer__ran(tracker->enforcer, ENFORCER_WINDOW);
}
