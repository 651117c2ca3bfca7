// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Before a process is attached its images are read, in the background where that takes long. Until then the process
 * stays a candidate: no other waits for it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/shortened.h"
#include "daemon/tracker_private.h"
#include "sandbox/confine.h"
#include "sandbox/page_holder.h"
#include "target/foreign_mount.h"

#define AT_WORK_NS 20000000ULL /* until a reader at work is asked again */
#define TRACED_NS 500000000ULL /* until a tracer is looked for again */
#define HELD_NS 1000000000ULL  /* until a file system that does not answer is asked again */

const char *tracker__refuses_file(const struct process *process, const struct process_mapping *mapping)
{
	return mapping && foreign_mount__has(process, mapping)
		   ? "its MPI library lies on a file system that a user mounted or serves"
		   : NULL;
}

int tracker__put_off(struct tracker *tracker, const struct process *process, int status, const char *reason,
		     uint64_t now_ns)
{
	struct candidate *later = &tracker->later;

	if (!confine__is_later(status))
		return status;
	*later = (struct candidate){.owner = process->owner, .waits = true, .held = status != -EINPROGRESS};
	later->due_ns = now_ns + (later->held ? HELD_NS : AT_WORK_NS);
	shortened(process->exe, later->exe, sizeof(later->exe));
	snprintf(tracker->later_reason, sizeof(tracker->later_reason), "%s", reason);
	tracker->later_code = status == -EDQUOT ? "reading_bounded" : "file_held";
	return -EINPROGRESS;
}

int tracker__wait_for_tracer(struct tracker *tracker, const struct process *process)
{
	tracker->later = (struct candidate){
	    .owner = process->owner, .waits = true, .traced = true, .due_ns = mono_now() + TRACED_NS};
	shortened(process->exe, tracker->later.exe, sizeof(tracker->later.exe));
	return -EINPROGRESS;
}

int tracker__prepare(struct tracker *tracker, const struct process *process, uint64_t now_ns)
{
	const struct process_mapping *library;
	uint64_t spent_ns = cpu_spent();
	char err[512] = "";
	int status;

	tracker->prepare_cost_ns = 0;
	process__mpi(process, &library);
	if (tracker__refuses_file(process, library))
		return 0; /* for good: nothing is read */
	status = resolver__prepare(tracker->parts.resolver, process, err, sizeof(err));
	if (!status && library)
		status = attacher__read(tracker->parts.attacher, process, library, err, sizeof(err)) ? 0 : -errno;
	tracker->prepare_cost_ns = cpu_spent() - spent_ns;
	/* what cannot be read at all is reported by the attachment */
	return confine__is_later(status) ? tracker__put_off(tracker, process, status, err, now_ns) : 0;
}

bool tracker__still_waits(struct candidate *candidate, uint64_t now_ns)
{
	if (candidate->traced) {
		candidate->traced = process__tracer(candidate->pid);
		candidate->due_ns = now_ns + TRACED_NS;
		return candidate->traced;
	}
	if (!candidate->waits || (!confine__must_wait(candidate->owner, candidate->held) &&
				  !page_holder__waits(candidate->owner, candidate->held)))
		return false;
	candidate->due_ns = now_ns + (candidate->held ? HELD_NS : AT_WORK_NS);
	return true;
}

void tracker__report_wait(struct tracker *tracker, struct candidate *candidate)
{
	if (!candidate->held || candidate->reported)
		return;
	candidate->reported = true;
	tracker__warn_owner(tracker, tracker->later_code, candidate->pid, candidate->owner,
			    "process %d (%s) is not attached yet, and is as soon as that ends: %s", candidate->pid,
			    candidate->exe, tracker->later_reason);
}
