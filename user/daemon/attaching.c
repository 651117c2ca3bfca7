// SPDX-License-Identifier: GPL-2.0-or-later
/* Attaching to a process in three steps: it is admitted, registered on all sides, and its probes are linked. */
#include "daemon/tracker_private.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/grow.h"
#include "base/log.h"
#include "base/shortened.h"
#include "sandbox/confine.h"
#include "target/kernel_range.h"

#define UNSHARED_NS 10000000000ULL /* between two searches for other processes that map an image */
#define RESERVED_NS 1000000000ULL  /* those who claimed a slot look for it every 100 ms */
#define FIRST_NS 3000000000ULL	   /* the first processes of an image: what they call is read for all */

static int own_slot(struct tracker *tracker)
{
	for (int i = 0; i < KERNEL_SLOTS; i++)
		if (!tracker->slots[i])
			return i;
	return -1;
}

bool tracker__is_alone(struct tracker *tracker, const struct process_mapping *mapping, uint64_t now_ns)
{
	if (attacher__linked(tracker->parts.attacher, mapping))
		return false;
	return tracker__spares_bystanders(tracker, now_ns) ||
	       verdicts__is_alone(&tracker->verdicts, tracker->selection, mapping,
				  attacher__own_links(tracker->parts.attacher, mapping), now_ns);
}

bool tracker__share(struct tracker *tracker, const struct attached_image *image, uint64_t now_ns)
{
	struct process_mapping mapping = {.device = image->device, .inode = image->inode, .path = image->path};

	/* perf links cannot be closed in time when a translator comes */
	if (image->linked || image->filtered < 2 || kernel_side__frugal(tracker->parts.side) ||
	    tracker__spares_bystanders(tracker, now_ns) ||
	    (tracker->unshared_ns && now_ns < tracker->unshared_ns + UNSHARED_NS))
		return false;
	if (!verdicts__is_shared(&tracker->verdicts, tracker->selection, &mapping, now_ns))
		return !attacher__share(tracker->parts.attacher, image);
	tracker->unshared_ns = now_ns;
	return false;
}

static const struct tracked *rank_of(const struct tracker *tracker, const struct process *process)
{
	for (size_t i = 0; i < tracker->count; i++)
		if (!tracker->tracked[i].ended_ns && process__same_rank(&tracker->tracked[i].identity, process))
			return &tracker->tracked[i];
	return NULL;
}

bool tracker__has_rank(const struct tracker *tracker, const struct process *process)
{
	const struct tracked *rank = rank_of(tracker, process);

	return rank && rank->pid != process->pid;
}

bool tracker__returns_kill(const struct process *process)
{
	return process->filtered && kernel_range__troubled(KERNEL_SECCOMP_KILLS);
}

static const char traced_reason[] = "a debugger or tracer is attached to it (ptrace)";

static bool has_mpi(void *ctx, struct process *process)
{
	mpi_files__recall(ctx, process);
	return process__mpi(process, NULL) != PROCESS_NO_MPI || process__moved_mpi(process);
}

const char *tracker__refusal(const struct tracker *tracker, const struct process *process, char *err, size_t err_size,
			     int *status)
{
	const struct tracked *rank = rank_of(tracker, process);
	const struct process_mapping *library;
	const char *file;

	*status = -EPERM;
	process__mpi(process, &library);
	file = tracker__refuses_file(process, library);
	if (file)
		return file;
	if (process->opted_out)
		return "VAPRO=off in its environment";
	if (process->translator) {
		snprintf(err, err_size, "it runs under a binary translator (%s), which a probe would kill",
			 process->translator);
		return err;
	}
	if (process->traced)
		return traced_reason;
	if (tracker__returns_kill(process) && !tracker->parts.no_return &&
	    !kernel_side__spares_returns(tracker->parts.side) &&
	    kernel_side__facts(tracker->parts.side)->return_syscall != FACT_NO)
		return "this kernel kills a seccomp-filtered process at a return probe: --no-return watches it";
	*status = -EEXIST;
	if (selection__names(tracker->selection, process->pid))
		return NULL;
	if (rank) {
		snprintf(err, err_size, "rank %d of its job is process %d: this one inherited its environment",
			 process->rank, rank->pid);
		return err;
	}
	if (process__child_of_rank(process, has_mpi, tracker->files))
		return "it is the child of a rank and inherited its environment";
	return NULL;
}

uint32_t tracker__flags_of(const struct tracker *tracker, const struct process *process, enum process_mpi mpi)
{
	return (tracker->parts.no_return || tracker__returns_kill(process) ? KERNEL_PROCESS_NO_RETURN : 0) |
	       (mpi == PROCESS_MPICH ? KERNEL_PROCESS_MPICH : 0) |
	       (mpi == PROCESS_STANDARD_ABI ? KERNEL_PROCESS_STANDARD : 0);
}

/* Identifies the image that attachments to a process are measured by: MPI's library, else the executable. */
static bool identify(struct tracker *tracker, const struct process *process, struct attach_image *image)
{
	const struct process_mapping *library = NULL, *of;

	process__mpi(process, &library);
	of = library ? library : process__executable(process);
	if (of)
		*image = (struct attach_image){.device = of->device,
					       .inode = of->inode,
					       .owner = process->owner,
					       .linked = library && attacher__linked(tracker->parts.attacher, library)};
	return of;
}

uint64_t tracker__attach_cost(struct tracker *tracker, const struct process *process)
{
	struct attach_image image;

	return identify(tracker, process, &image) ? attach_costs__of(&tracker->costs, &image) : 0;
}

bool tracker__attached_before(struct tracker *tracker, const struct attached_image *image, uint64_t now_ns)
{
	uint64_t first_ns = attach_costs__first(&tracker->costs, image->device, image->inode);

	return first_ns && now_ns >= first_ns + FIRST_NS;
}

/* A process on its way to being tracked. */
struct attaching {
	struct process *process;
	const struct process_mapping *library; /* of MPI, or NULL */
	struct attach_image measured;	       /* the image that the cost belongs to */
	bool by_itself;			       /* it gets links of its own */
	uint64_t search_ns;		       /* CPU time of the search for others that map the library */
	bool admitted, registered, joined;
	char moved[128]; /* path of its MPI library where the code of that was moved (process__moved_mpi()), else "" */
	struct tracked fresh;
	struct bpf_process_state entry;
	char *err; /* a sentence, err_size bytes */
	size_t err_size;
	const char *reason; /* why it is not tracked */
};

/* Returns whether the process of a descriptor has ended: its number may be another one's since. */
static bool has_ended(int pidfd)
{
	struct pollfd poll_fd = {.fd = pidfd, .events = POLLIN};

	return poll(&poll_fd, 1, 0) != 0;
}

/* Returns whether free slots wait for those who claimed them: processes of the user that gave them back get none. */
static bool is_reserved(const struct tracker *tracker, uid_t owner, uint64_t now_ns)
{
	return tracker->claimed_ns && now_ns < tracker->claimed_ns + RESERVED_NS &&
	       tracker->owners.of[tracker->lender].uid == owner;
}

/* First step: whether it may be tracked, and room for it. Returns 0, or -errno with a reason. */
static int admit(struct tracker *tracker, struct attaching *attaching)
{
	struct tracked *fresh = &attaching->fresh;
	int slot, status;

	attaching->reason = tracker__refusal(tracker, attaching->process, attaching->err, attaching->err_size, &status);
	if (attaching->reason)
		return status;
	if (rank_of(tracker, attaching->process)) /* requested beside another process of this rank: a row of its own */
		fresh->identity.rank = attaching->process->rank = -1;
	slot = is_reserved(tracker, attaching->process->owner, fresh->attached_ns) ? -1 : own_slot(tracker);
	if (slot < 0 &&
	    owners__may_claim(&tracker->owners, attaching->process->owner, KERNEL_SLOTS - 1, &tracker->lender)) {
		tracker->claims++;
		tracker->claimed_ns = fresh->attached_ns;
		return -ENOSPC;
	}
	attaching->reason = "1023 processes are tracked already";
	if (slot < 0)
		return -EMFILE;
	fresh->slot = attaching->entry.slot = (uint32_t)slot;
	attaching->reason = "it ended while being attached";
	if (fresh->pidfd < 0 || has_ended(fresh->pidfd) || !process__is_same(attaching->process))
		return -ESRCH;
	attaching->reason = "out of memory";
	return grow(&tracker->tracked, &tracker->room, tracker->count + 1, sizeof(*tracker->tracked));
}

/* Second step: all sides know the process, whose hits are counted from here on. Returns 0, or -errno with a reason. */
static int enroll(struct tracker *tracker, struct attaching *attaching)
{
	struct tracked *fresh = &attaching->fresh;
	const struct kernel_shared *shared = kernel_side__shared(tracker->parts.side);
	int status;

	attaching->admitted = true; /* the process is the resolver's */
	status = resolver__add(tracker->parts.resolver, attaching->process);
	if (status)
		return status;
	attaching->registered = true;
	memset(&shared->counters[fresh->slot], 0, sizeof(shared->counters[fresh->slot]));
	shared->governed[fresh->slot].requester = 0;
	fresh->owner = owners__join(&tracker->owners, attaching->process->owner);
	attaching->joined = true;
	if (tracker->owners.of[fresh->owner].processes == 1)
		shared->owners[fresh->owner] = (struct kernel_owner){0};
	shared->counters[fresh->slot].owner = fresh->owner;
	tracker__share_out(tracker);
	fresh->governed = tracker__begin_governing(tracker, fresh, fresh->attached_ns);
	if (!fresh->governed)
		return -ENOMEM;
	fresh->delivered_before = collector__delivered(tracker->parts.collector, fresh->slot);
	fresh->io_calls = process__io_calls(fresh->pid);
	fresh->io_requested = (double)fresh->io_calls >= process__age(attaching->process);
	fresh->start_utc_ns = tracker__start_utc(attaching->process);
	status = kernel_side__track(tracker->parts.side, fresh->pid, &attaching->entry);
	if (status)
		snprintf(attaching->err, attaching->err_size, "%s", strerror(-status));
	attaching->reason = attaching->err;
	return status;
}

/* Third step: its probes. Returns 0, or -errno with a reason. */
static int link_probes(struct tracker *tracker, struct attaching *attaching)
{
	const struct process_mapping *library = attaching->library;
	struct tracked *fresh = &attaching->fresh;
	struct functions_spared spared;
	int status;

	if (!library)
		return 0;
	attaching->search_ns = cpu_spent();
	attaching->by_itself = tracker__is_alone(tracker, library, fresh->attached_ns);
	attaching->search_ns = cpu_spent() - attaching->search_ns;
	if (attaching->by_itself && tracker__returns_kill(attaching->process) && !tracker->parts.no_return) {
		snprintf(attaching->err, attaching->err_size,
			 "this kernel kills a seccomp-filtered process at a return probe, and links "
			 "for single processes of its image would set it one: --no-return watches it");
		return -EPERM;
	}
	if (attaching->by_itself)
		tracker__make_room(tracker, library, attaching->process->owner, fresh->attached_ns);
	spared = enforcer__former(tracker->enforcer, attaching->process->owner, attaching->process->name, library->path,
				  fresh->attached_ns);
	status = attacher__attach(tracker->parts.attacher, attaching->process, library, attaching->by_itself, &spared,
				  &fresh->image, attaching->err, attaching->err_size);
	if (status == -E2BIG)
		tracker__crowded(tracker, attaching->process, library->device, library->inode, fresh->attached_ns);
	return status;
}

/* Takes back what the steps have done. */
static void take_back(struct tracker *tracker, struct attaching *attaching)
{
	struct tracked *fresh = &attaching->fresh;

	if (attaching->registered) {
		attacher__release(tracker->parts.attacher, fresh->pid);
		kernel_side__untrack(tracker->parts.side, fresh->pid);
		fresh->image = NULL;
		resolver__remove(tracker->parts.resolver, fresh->pid);
		resolver__purge(tracker->parts.resolver, &(struct numbered_process){fresh->pid, fresh->slot}, 1);
	}
	if (fresh->governed)
		enforcer__remove(tracker->enforcer, fresh->governed);
	if (attaching->joined) {
		owners__leave(&tracker->owners, fresh->owner);
		tracker__share_out(tracker);
	}
	/* a process that is no target may map what targets map; what was read of it may be freed by now */
	if (fresh->identity.opted_out || fresh->identity.traced || fresh->identity.translator)
		verdicts__outdated(&tracker->verdicts);
	if (fresh->pidfd >= 0)
		close(fresh->pidfd);
	if (!attaching->admitted)
		process__free(attaching->process);
}

/* Reports why a process is not tracked. Returns status, or -EINPROGRESS where the reason may pass. */
static int refuse(struct tracker *tracker, struct attaching *attaching, int status)
{
	struct tracked *fresh = &attaching->fresh;

	take_back(tracker, attaching);
	tracker__emit_process(tracker, fresh, LINE_REFUSED, 0, attaching->reason);
	if (attaching->reason != attaching->err)
		snprintf(attaching->err, attaching->err_size, "process %d (%s) is not watched: %s", fresh->pid,
			 fresh->identity.name, attaching->reason);
	if (status != -EEXIST)
		snprintf(tracker->refusal, sizeof(tracker->refusal), "process %d (%.256s) is not watched: %s",
			 fresh->pid, fresh->identity.name, attaching->reason);
	/* each child of a rank is refused, too */
	if (status != -EEXIST && !selection__names(tracker->selection, fresh->pid))
		log__info("process %d (%s) is not watched: %s", fresh->pid, fresh->identity.name, attaching->reason);
	enforcer__ran_for(tracker->enforcer, fresh->identity.owner);
	return attaching->reason == traced_reason ? tracker__wait_for_tracer(tracker, &fresh->identity) : status;
}

/* Returns what of an attached process is not seen, or NULL. */
static const char *restriction_of(const struct tracker *tracker, const struct attaching *attaching, int functions)
{
	if (attaching->library && tracker__returns_kill(&attaching->fresh.identity))
		return "this kernel kills a seccomp-filtered process at a return probe: time is entry to entry";
	if (attaching->library)
		return NULL;
	if (*attaching->moved)
		return "the code of its MPI library lies in memory of its own (huge pages), where no probe takes "
		       "effect: no MPI call is seen";
	if (functions)
		return "it maps no MPI library: only its threads and the requested functions are seen";
	return tracker->parts.io ? "it maps no MPI library: only its IO is seen"
				 : "it maps no MPI library, and IO is off: nothing is seen";
}

/* Warns of a process that was requested by its PID and is not the one that was meant, or cannot be read. */
static void warn_of_restriction(const struct attaching *attaching, const char *restriction)
{
	const struct process *process = &attaching->fresh.identity;

	if (!*process->exe)
		log__warning(
		    "--pid %d: what it executes and maps cannot be read (a kernel thread, or CAP_SYS_PTRACE is "
		    "missing): only its IO is seen",
		    process->pid);
	else
		log__warning(
		    "--pid %d (%s): %s%s", process->pid, process->name, restriction,
		    attaching->library ? "" : "; if it is a shell or a launcher, name the PIDs of the ranks instead");
}

static void warn_of_moved_code(struct tracker *tracker, const struct attaching *attaching)
{
	const struct process *process = &attaching->fresh.identity;

	tracker__warn_owner(
	    tracker, "code_moved", process->pid, process->owner,
	    "process %d (%s): the code of its MPI library %s lies in memory of its own, as tools for huge "
	    "pages move it: no probe takes effect there, and no MPI call is seen",
	    process->pid, process->name, attaching->moved);
}

int tracker__attach(struct tracker *tracker, struct process *process, int pidfd, uint64_t now_ns, char *err,
		    size_t err_size)
{
	struct attaching attaching = {.process = process,
				      .fresh = {.pid = process->pid,
						.pidfd = pidfd,
						.attached_ns = now_ns,
						.identity = *process,
						.calls_per_s = NAN,
						.overhead_pct = NAN},
				      .err = err,
				      .err_size = err_size};
	struct tracked *fresh = &attaching.fresh;
	enum process_mpi mpi = process__mpi(process, &attaching.library);
	uint64_t spent_ns = cpu_spent();
	const char *restriction;
	int status, functions;
	bool measured;

	tracker->attachments.done++;
	fresh->identity.mappings = NULL; /* the mappings stay the resolver's */
	fresh->identity.text = NULL;
	fresh->identity.moved_count = 0;
	if (process__moved_mpi(process))
		shortened(process__moved_mpi(process), attaching.moved, sizeof(attaching.moved));
	fresh->flags = attaching.entry.flags = tracker__flags_of(tracker, process, mpi);
	measured = identify(tracker, process, &attaching.measured);
	status = admit(tracker, &attaching);
	if (status == -ENOSPC) { /* it waits until a slot is given back */
		close(pidfd);
		process__free(process);
		return status;
	}
	status = status ? status : enroll(tracker, &attaching);
	status = status ? status : link_probes(tracker, &attaching);
	if (confine__is_later(status)) { /* a file system stopped answering just now */
		take_back(tracker, &attaching);
		return tracker__put_off(tracker, &fresh->identity, status, err, now_ns);
	}
	if (status)
		return refuse(tracker, &attaching, status);
	snprintf(fresh->build_id, sizeof(fresh->build_id), "%s",
		 resolver__build_id(tracker->parts.resolver, fresh->pid));
	functions = tracker__attach_rows(tracker, fresh, process);
	tracker__join_image(tracker, fresh, now_ns);
	fresh->attach_cost_ns = cpu_spent() - spent_ns + tracker->prepare_cost_ns;
	/* the search reads the mappings of others, of which a user may have any number */
	if (measured)
		attach_costs__attached(&tracker->costs, &attaching.measured,
				       fresh->attach_cost_ns - attaching.search_ns, now_ns);
	tracker->slots[fresh->slot] = true;
	tracker->tracked[tracker->count++] = *fresh;
	tracker->any = true;
	restriction = restriction_of(tracker, &attaching, functions);
	tracker__emit_process(tracker, fresh, LINE_ATTACHED, 0, restriction);
	if (restriction && selection__names(tracker->selection, fresh->pid))
		warn_of_restriction(&attaching, restriction);
	if (attaching.by_itself && kernel_side__facts(tracker->parts.side)->thread_filter == FACT_YES &&
	    process__threads(fresh->pid, NULL, 0) > 1)
		tracker__warn(
		    tracker, "main_thread_only", fresh->pid,
		    "process %d: this kernel's links for one process see its main thread only; MPI calls of its "
		    "other threads are not seen (--attach perf sees them)",
		    fresh->pid);
	if (*attaching.moved)
		warn_of_moved_code(tracker, &attaching);
	else if (!attaching.library)
		tracker__note_unseen(tracker, &fresh->identity, now_ns);
	else
		tracker__report_libraries(tracker, fresh, attaching.library->path);
	tracker__emit_row(tracker, fresh, 0);
	return 0;
}
