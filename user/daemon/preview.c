// SPDX-License-Identifier: GPL-2.0-or-later
/* What would be watched: vaprod --dry-run. Images are read and processes are judged as for an attachment. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/printable.h"
#include "daemon/tracker_private.h"

#define WAIT_NS 10000000L /* for a reader of a file that takes longer */
#define WAITS_MOST 500

/* Waits a moment for a reader at work. Returns false where it has taken too long, or status is another one. */
static bool wait_for(int status, unsigned *waits)
{
	return status == -EINPROGRESS && (*waits)++ < WAITS_MOST &&
	       !nanosleep(&(struct timespec){.tv_nsec = WAIT_NS}, NULL);
}

/* Writes the library, the number of functions and the links of a process's MPI; false: it is refused. */
static bool describe_links(struct tracker *tracker, const struct process *process, uint64_t now_ns, char *text,
			   size_t size)
{
	const struct process_mapping *library = NULL;
	const struct attached_image *image;
	unsigned waits = 0;
	char err[512];

	process__mpi(process, &library);
	if (process__moved_mpi(process)) {
		snprintf(text, size, "the code of %s lies in memory of its own (huge pages): its IO",
			 process__moved_mpi(process));
		return true;
	}
	if (!library) {
		snprintf(text, size, "no MPI library: its threads, requested functions and IO");
		return true;
	}
	do
		image = attacher__read(tracker->parts.attacher, process, library, err, sizeof(err));
	while (!image && wait_for(-errno, &waits));
	if (!image) {
		snprintf(text, size, "%s", err);
		return false;
	}
	if (!image->functions) {
		snprintf(text, size, "%s defines none of the functions vapro knows", library->path);
		return false;
	}
	snprintf(text, size, "%u functions of %s by %s links for %s", image->functions, library->path,
		 attach_mode_name[kernel_side__mode(tracker->parts.side)],
		 tracker__is_alone(tracker, library, now_ns) ? "this process alone"
							     : "all processes that map it (no others do)");
	return true;
}

/* Prints one process, where it is a target. Returns whether it would be watched: 1 or 0; -ENOENT: it is no target. */
static int print_process(struct tracker *tracker, struct process *process, uint64_t now_ns, FILE *out)
{
	char text[1024], err[512], rank[48] = "";
	const char *refusal;
	unsigned waits = 0;
	bool watched;
	int status;

	while (wait_for(tracker__identify(tracker, process, true, err, sizeof(err)), &waits))
		;
	if (!tracker__is_target(tracker, process))
		return -ENOENT;
	refusal = tracker__refusal(tracker, process, err, sizeof(err), &status);
	watched = !refusal && describe_links(tracker, process, now_ns, text, sizeof(text));
	if (refusal)
		snprintf(text, sizeof(text), "%s", refusal);
	if (process->rank >= 0 && process->world_size)
		snprintf(rank, sizeof(rank), ", rank %d of %u", process->rank, process->world_size);
	else if (process->rank >= 0)
		snprintf(rank, sizeof(rank), ", rank %d", process->rank);
	fprintf(out, "process %d (%s)%s, job %s: %s%s\n", process->pid, printable(process->name), rank,
		*process->job ? printable(process->job) : "none", watched ? "" : "not watched: ", printable(text));
	return watched;
}

int tracker__preview(struct tracker *tracker, uint64_t now_ns, FILE *out)
{
	size_t count, watched = 0, refused = 0;
	pid_t *pids;

	tracker__find_translators(tracker, now_ns);
	count = tracker__candidates(tracker, &pids);
	for (size_t i = 0; i < count; i++) {
		struct process *process;
		char err[512];
		int status = process__read(pids[i], &process, err, sizeof(err));

		if (!status) {
			status = print_process(tracker, process, now_ns, out);
			process__free(process);
		} else if (selection__names(tracker->selection, pids[i])) {
			fprintf(out, "process %d: not watched: %s\n", pids[i], err);
			status = 0;
		}
		watched += status == 1;
		refused += status == 0;
	}
	free(pids);
	fprintf(out, "%zu process%s would be watched now, %zu not; %s\n", watched, watched == 1 ? "" : "es", refused,
		tracker->selection->pid_count && !tracker->selection->glob_count ? "no others"
										 : "and those that match later");
	return fflush(out) || ferror(out) ? -EIO : 0;
}
