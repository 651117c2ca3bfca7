// SPDX-License-Identifier: GPL-2.0-or-later
/* Attaches functions beyond MPI's in a tracked process: those of thread libraries, of a site, and outlined ones. */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "probe/attach/row_attacher.h"
#include "base/base_name.h"
#include "base/clock.h"
#include "daemon/tracker_private.h"
#include "sandbox/confine.h"

#define ROWS_OF_IMAGE 128
#define HELD_NS 900000000ULL	 /* beside the time that mappings are waited for */
#define OUTLINED_NS 500000000ULL /* until the file of an outlined function is asked for again */

static bool is_libc(const struct process_mapping *mapping)
{
	const char *base = base_name(mapping->path);

	return !strcmp(base, "libc.so.6") || !strcmp(base, "libpthread.so.0");
}

static bool is_in(const struct function_row *row, const struct process *process, const struct process_mapping *mapping)
{
	if (!row->image)
		return false;
	if (!strcmp(row->image, "exe"))
		return !strcmp(process->exe, mapping->path);
	return !fnmatch(row->image, base_name(mapping->path), FNM_EXTMATCH);
}

/* Returns whether a mapping is the first one of its image: each image counts once. */
static bool is_first(const struct process *process, size_t index)
{
	const struct process_mapping *mapping = &process->mappings[index];

	if (!mapping->inode)
		return false;
	for (size_t i = 0; i < index; i++)
		if (process->mappings[i].inode == mapping->inode && process->mappings[i].device == mapping->device)
			return false;
	return true;
}

bool tracker__maps_openmp(const struct process *process)
{
	static const char *const globs[] = {"libgomp.so*", "libomp.so*", "libomp-*.so*", "libiomp5.so*"};

	for (size_t i = 0; i < sizeof(globs) / sizeof(globs[0]); i++)
		if (process__mapping_named(process, globs[i]))
			return true;
	return false;
}

/*
 * MPI and OpenMP libraries wait in libc from threads of their own, which shows nothing of the
 * program: libc's function entries are not automatic beside these libraries.
 */
static bool wants_threads(const struct tracker *tracker, const struct tracked *tracked, const struct process *process,
			  const struct process_mapping *mapping, size_t threads)
{
	if (tracker->parts.threads != VAPRO_AUTO)
		return tracker->parts.threads == VAPRO_ON;
	return !is_libc(mapping) || (threads > 1 && !tracked->image && !tracker__maps_openmp(process));
}

/* Returns whether targets get links of their own: few ones beside other mappers, as for MPI libraries. */
static bool is_alone(struct tracker *tracker, const struct process_mapping *mapping)
{
	const struct row_attacher *rows = tracker->parts.rows;

	if (is_libc(mapping))
		return true; /* every process maps libc: never a link for all mappers */
	if (row_attacher__linked(rows, mapping))
		return false;
	return tracker__spares_bystanders(tracker, mono_now()) ||
	       verdicts__is_alone(&tracker->verdicts, tracker->selection, mapping,
				  row_attacher__own_links(rows, mapping), mono_now());
}

static int attach_rows(struct tracker *tracker, const struct process *process, const struct process_mapping *mapping,
		       enum row_group group, const unsigned int *rows, size_t count)
{
	char err[512] = "";
	int status;

	if (!count)
		return 0;
	status = row_attacher__attach(tracker->parts.rows, process, mapping, group, rows, count,
				      is_alone(tracker, mapping), err, sizeof(err));
	if (status >= 0)
		return status;
	if (confine__is_later(status)) {
		tracker->rows_status = status;
		snprintf(tracker->later_reason, sizeof(tracker->later_reason), "%s", err);
		return 0;
	}
	tracker__warn_owner(tracker, "rows_not_attached", process->pid, process->owner, "%s",
			    err[0] ? err : strerror(-status));
	return 0;
}

static int attach_thread_rows(struct tracker *tracker, struct tracked *tracked, const struct process *process,
			      size_t threads)
{
	int functions = 0;

	/* where each probe is expensive, only requested functions are probed */
	if (tracker->parts.threads == VAPRO_OFF ||
	    (tracker->parts.threads == VAPRO_AUTO && kernel_side__frugal(tracker->parts.side)))
		return 0;
	for (size_t i = 0; i < process->mapping_count; i++) {
		const struct process_mapping *mapping = &process->mappings[i];
		unsigned int rows[ROWS_OF_IMAGE];
		size_t count = 0;

		if (!is_first(process, i) || !wants_threads(tracker, tracked, process, mapping, threads))
			continue;
		for (unsigned int j = 0; j < thread_row_count && count < ROWS_OF_IMAGE; j++)
			if (!thread_rows[j].polling && is_in(&thread_rows[j], process, mapping))
				rows[count++] = function_row_count + j;
		functions += attach_rows(tracker, process, mapping, ROW_THREADS, rows, count);
	}
	return functions;
}

static int attach_user_rows(struct tracker *tracker, const struct process *process)
{
	int functions = 0;

	for (size_t i = 0; i < process->mapping_count; i++) {
		const struct process_mapping *mapping = &process->mappings[i];
		unsigned int rows[ROWS_OF_IMAGE];
		size_t count = 0;

		if (!is_first(process, i))
			continue;
		for (size_t j = 0; j < tracker->parts.user_row_count && count < ROWS_OF_IMAGE; j++)
			if (is_in(functions__row(tracker->parts.user_rows[j]), process, mapping))
				rows[count++] = tracker->parts.user_rows[j];
		functions += attach_rows(tracker, process, mapping, ROW_USER, rows, count);
	}
	return functions;
}

void tracker__look_again(struct tracker *tracker, struct tracked *tracked, const char *reason, bool held,
			 uint64_t now_ns)
{
	tracked->remapped_ns = now_ns + (held ? HELD_NS : 0);
	if (!held || tracked->held_reported)
		return;
	tracked->held_reported = true;
	tracker__warn(tracker, "file_held", tracked->pid,
		      "process %d (%s): functions are not seen yet, and are as soon as that ends: %s", tracked->pid,
		      tracked->identity.name, reason);
}

/* Has functions attached later whose files are being read, or held. */
static void finish_rows(struct tracker *tracker, struct tracked *tracked)
{
	int status = tracker->rows_status;

	tracker->rows_status = 0;
	if (status)
		tracker__look_again(tracker, tracked, tracker->later_reason, status != -EINPROGRESS, mono_now());
}

int tracker__attach_rows(struct tracker *tracker, struct tracked *tracked, const struct process *process)
{
	size_t threads = process__threads(process->pid, NULL, 0);
	int functions = attach_user_rows(tracker, process);

	if (tracker->parts.user_row_count && !functions && !tracker->rows_status)
		tracker__warn_owner(tracker, "function_missing", process->pid, process->owner,
				    "process %d: it maps none of the requested functions", process->pid);
	tracked->threaded = threads > 1;
	functions += attach_thread_rows(tracker, tracked, process, threads);
	finish_rows(tracker, tracked);
	return functions;
}

void tracker__rows_remapped(struct tracker *tracker, struct tracked *tracked, const struct process *process)
{
	attach_user_rows(tracker, process);
	attach_thread_rows(tracker, tracked, process, process__threads(tracked->pid, NULL, 0));
	finish_rows(tracker, tracked);
}

void tracker__inspect_threads(struct tracker *tracker, struct tracked *tracked, size_t threads)
{
	uint64_t spent_ns = cpu_spent();
	struct process *process;
	char err[256];

	if (tracked->threaded || threads < 2 || tracker->parts.threads == VAPRO_OFF)
		return;
	tracked->threaded = true;
	if (process__read(tracked->pid, &process, err, sizeof(err)))
		return;
	attach_thread_rows(tracker, tracked, process, threads);
	finish_rows(tracker, tracked);
	process__free(process);
	tracked->attach_cost_ns += cpu_spent() - spent_ns;
}

/* What the processes spent until then says nothing of what they will: what was overdrawn stays overdrawn. */
static void forget_speed(struct tracker *tracker, const struct row_decision *decision)
{
	for (size_t i = 0; i < tracker->count; i++)
		for (size_t j = 0; j < decision->pid_count; j++)
			if (tracker->tracked[i].pid == decision->pids[j])
				enforcer__reset_rates(tracker->tracked[i].governed);
}

void tracker__rows_decided(void *ctx, const struct row_decision *decision)
{
	struct tracker *tracker = ctx;
	char rate[48] = "not called, but hit at exits";
	const char *processes = decision->pid_count == 1 ? "its process" : "each process";

	if (decision->calls_per_s >= 0.5)
		snprintf(rate, sizeof(rate), "%.0f calls/s", decision->calls_per_s);
	switch (decision->kind) {
	case ROWS_LEFT_OUT:
		forget_speed(tracker, decision);
		if (!decision->reported)
			tracker__warn(
			    tracker, "thinned", 0,
			    "%zu function%s of %s would cost %.3g %% of the time of %s (%s) and %s "
			    "%s: %s; %s in %.0f s%s; what only they show is not covered meanwhile",
			    decision->count, decision->count == 1 ? "" : "s", decision->image, decision->cost_pct,
			    processes, rate, decision->count == 1 ? "is" : "are",
			    decision->in_duty_cycle ? "opened in a duty cycle" : "left out", decision->functions,
			    decision->in_duty_cycle ? "the first opens" : "checked again", decision->left_out_s,
			    decision->in_duty_cycle ? "" : ", and less often each time");
		break;
	case ROWS_OPENED:
		tracker__warn(tracker, "released", 0,
			      "%zu function%s of %s cost%s %.3g %% of the time of %s now and %s probed again: %s",
			      decision->count, decision->count == 1 ? "" : "s", decision->image,
			      decision->count == 1 ? "s" : "", decision->cost_pct, processes,
			      decision->count == 1 ? "is" : "are", decision->functions);
		break;
	case ROWS_FAILED:
		tracker__warn(tracker, "rows_not_attached", 0, "functions of %s cannot be probed: %s", decision->image,
			      strerror(-decision->error));
		break;
	}
}

/* Notes a function whose file is being read; where there are too many the oldest makes way. */
static void outline_later(struct tracker *tracker, pid_t pid, uint64_t address)
{
	struct outlined_later *later = &tracker->outlined[tracker->outlined_next++ % OUTLINED_LATER];

	*later = (struct outlined_later){.pid = pid, .address = address, .due_ns = mono_now() + OUTLINED_NS};
}

void tracker__outline_due(struct tracker *tracker, uint64_t now_ns)
{
	for (size_t i = 0; i < OUTLINED_LATER; i++) {
		struct outlined_later due = tracker->outlined[i];

		if (!due.pid || now_ns < due.due_ns)
			continue;
		tracker->outlined[i].pid = 0;
		tracker__outlined(tracker, due.pid, due.address);
	}
}

void tracker__outlined(struct tracker *tracker, pid_t pid, uint64_t address)
{
	struct tracked *tracked = tracker__of(tracker, pid);
	const struct process_mapping *mapping;
	uint64_t spent_ns = cpu_spent();
	struct process *process;
	char err[512] = "";
	int status;

	if (!tracked || tracked->ended_ns || process__read(pid, &process, err, sizeof(err)))
		return;
	mapping = process__mapping_at(process, address);
	if (mapping && mapping->inode) {
		status = row_attacher__outlined(tracker->parts.rows, process, mapping, address,
						is_alone(tracker, mapping), err, sizeof(err));
		if (confine__is_later(status))
			outline_later(tracker, pid, address);
		else if (status)
			tracker__warn(tracker, "rows_not_attached", pid, "%s", err[0] ? err : strerror(-status));
	}
	process__free(process);
	tracked->attach_cost_ns += cpu_spent() - spent_ns;
}
