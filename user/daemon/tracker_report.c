// SPDX-License-Identifier: GPL-2.0-or-later
/* Emits what is reported of processes: lines, and the row of each rank. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/printable.h"
#include "daemon/tracker_private.h"

#define IMAGES_MAX 16
#define COMMAND_MAX 1024 /* bytes of a command line that are reported */

static void emit_line(struct tracker *tracker, enum record_object type, char *line)
{
	struct stream_event event = {.type = STREAM_LINE, .line = {type, line}};

	if (line)
		stream__put(tracker->parts.sink, &event);
	free(line);
}

static void emit_warning(struct tracker *tracker, const char *code, pid_t pid, uint64_t count, const char *text)
{
	struct line_warning warning = {.utc_ns = utc_now(),
				       .host = tracker->parts.host,
				       .code = code,
				       .pid = (uint32_t)pid,
				       .text = text,
				       .count = count};

	log__warning("%s", text);
	emit_line(tracker, RECORD_OBJECT_warning, lines__warning(&warning));
}

void tracker__warn(struct tracker *tracker, const char *code, pid_t pid, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	printable(text); /* a target's paths may hold terminal control sequences */
	emit_warning(tracker, code, pid, 0, text);
}

void tracker__warn_owner(struct tracker *tracker, const char *code, pid_t pid, uid_t owner, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	printable(text);
	if (repeats__note(&tracker->repeats, code, owner, pid, text))
		emit_warning(tracker, code, pid, 0, text);
}

static void emit_repeat(void *ctx, const struct repeat *repeat)
{
	char text[1152];

	snprintf(text, sizeof(text), "%s%s", repeat->text,
		 repeat->count > 1 ? "; this is the latest of several such messages (count)" : "");
	emit_warning(ctx, repeat->code, repeat->pid, repeat->count, text);
}

void tracker__report_repeats(struct tracker *tracker)
{
	repeats__end_window(&tracker->repeats, emit_repeat, tracker);
}

void tracker__report_libraries(struct tracker *tracker, const struct tracked *tracked, const char *probed)
{
	const struct process *process = &tracked->identity;

	if (process->library.others)
		tracker__warn_owner(tracker, "several_mpi", process->pid, process->owner,
				    "process %d (%s) maps %u MPI libraries: calls of %s are seen, what the others do "
				    "outside of these is not",
				    process->pid, process->name, process->library.others + 1, probed);
}

uint64_t tracker__start_utc(const struct process *process)
{
	uint64_t tick_ns = 1000000000ULL / (uint64_t)sysconf(_SC_CLK_TCK);
	uint64_t began = utc_now() - (uint64_t)(process__age(process) * 1e9);

	return (began + tick_ns / 2) / tick_ns * tick_ns; /* the kernel gives the start to the tick only */
}

void tracker__emit_process(struct tracker *tracker, const struct tracked *tracked, enum line_process_state state,
			   uint64_t hits, const char *reason)
{
	const struct process *process = &tracked->identity;
	const struct kernel_counters *counters = tracker__counters(tracker, tracked);
	const struct attached_image *images[IMAGES_MAX];
	struct line_image line_images[IMAGES_MAX];
	char command[COMMAND_MAX] = "", user[64];
	size_t count = 0;
	struct line_process line = {
	    .utc_ns = utc_now(),
	    .host = tracker->parts.host,
	    .pid = (uint32_t)process->pid,
	    .start_utc_ns = tracked->start_utc_ns,
	    .exe = process->exe,
	    .build_id = tracked->build_id[0] ? tracked->build_id : NULL,
	    .rank = process->rank,
	    .world_size = process->world_size,
	    .job_kind = process->job_kind,
	    .job_id = process->job_id,
	    .job_step = process->job_step[0] ? process->job_step : NULL,
	    .job = process->job,
	    .user = (uint32_t)process->uid + 1,
	    .names = &process->names,
	    .threads = (uint32_t)process__threads(process->pid, NULL, 0),
	    .hits = hits,
	    .returns = hits ? counters->exit + counters->left : 0,
	    .attach_cpu_ms =
		(double)(tracked->attach_cost_ns + resolver__read_ns(tracker->parts.resolver, tracked->pid)) * 1e-6,
	    .state = state,
	    .reason = reason,
	};

	if (state == LINE_ATTACHED)
		process__read_command(process->pid, command, sizeof(command));
	process__user_name(process->uid, user, sizeof(user));
	line.command = *command ? printable(command) : NULL;
	line.user_name = *user ? user : NULL;
	if (tracked->image)
		images[count++] = tracked->image;
	count += row_attacher__images(tracker->parts.rows, process->pid, images + count, IMAGES_MAX - count);
	/* the two skip lists have the same shape; the attachers are the owners */
	for (size_t i = 0; i < count; i++)
		line_images[i] = (struct line_image){.path = images[i]->path,
						     .build_id = images[i]->build_id,
						     .functions = images[i]->functions,
						     .shifted = images[i]->shifted,
						     .skipped = (const struct line_skipped *)images[i]->skipped,
						     .skipped_count = images[i]->skipped_count};
	line.images = count ? line_images : NULL;
	line.image_count = count;
	emit_line(tracker, RECORD_OBJECT_process, lines__process(&line));
}

const char *tracker__program(const void *ctx, const char *job, uint32_t user)
{
	const struct tracker *tracker = ctx;

	for (size_t i = 0; i < tracker->count; i++) {
		const struct process *process = &tracker->tracked[i].identity;

		if (process->uid + 1 == user && !strcmp(process->job, job))
			return process->exe;
	}
	return NULL;
}

int tracker__print_jobs(const struct tracker *tracker, FILE *out)
{
	for (size_t i = 0; i < tracker->count; i++) {
		const struct tracked *first = &tracker->tracked[i];
		size_t before = 0, processes = 0;

		for (size_t k = 0; k < tracker->count; k++) {
			const struct tracked *other = &tracker->tracked[k];
			bool same = !other->ended_ns && !strcmp(other->identity.job, first->identity.job) &&
				    other->identity.uid == first->identity.uid;

			before += same && k < i;
			processes += same;
		}
		if (!before && processes && !first->ended_ns &&
		    fprintf(out, "%s of uid %u (%zu process%s)\n", first->identity.job, first->identity.uid, processes,
			    processes == 1 ? "" : "es") < 0)
			return -EIO;
	}
	return 0;
}

size_t tracker__status(const struct tracker *tracker, struct board_process *processes, size_t room)
{
	size_t count = tracker->count < room ? tracker->count : room;

	for (size_t i = 0; i < count; i++) {
		const struct tracked *tracked = &tracker->tracked[i];
		const struct kernel_governed *orders = tracker__orders(tracker, tracked);

		processes[i] = (struct board_process){
		    .pid = (uint32_t)tracked->pid,
		    .user = (uint32_t)tracked->identity.uid + 1,
		    .rank = tracked->identity.rank,
		    .world_size = tracked->identity.world_size,
		    .job = tracked->identity.job,
		    .exe = tracked->identity.exe,
		    .names = &tracked->identity.names,
		    .calls_per_s = tracked->calls_per_s,
		    .overhead_pct = tracked->overhead_pct,
		    .probes = tracked->ended_ns					? BOARD_ENDED
			      : orders->probe_epoch & 1				? BOARD_CLOSED
			      : orders->set || orders->thin_ns || orders->no_io ? BOARD_REDUCED
										: BOARD_OPEN,
		};
	}
	return count;
}

bool tracker__tracks(const struct tracker *tracker, pid_t pid)
{
	for (size_t i = 0; i < tracker->count; i++) {
		if (tracker->tracked[i].pid == pid)
			return true;
	}
	return false;
}

void tracker__emit_row(struct tracker *tracker, const struct tracked *tracked, uint64_t to_ns)
{
	int64_t thread = resolver__thread(tracker->parts.resolver, (uint32_t)tracked->pid, (uint32_t)tracked->pid);
	struct stream_event event = {.type = STREAM_SEEN};

	if (thread < 0)
		return;
	event.seen = (struct stream_seen){.thread = (uint32_t)thread, .from_ns = tracked->attached_ns, .to_ns = to_ns};
	stream__put(tracker->parts.sink, &event);
	if (!to_ns)
		tracker__emit_place(tracker, tracked, tracked->pid);
}
