/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Declarations that only the tracker's own files share. */
#ifndef VAPRO_TRACKER_PRIVATE_H
#define VAPRO_TRACKER_PRIVATE_H

#include "report/lines.h"
#include "target/image.h"
#include "target/topology.h"
#include "probe/elf/mpi_files.h"
#include "probe/bpf/kernel_side.h"
#include "daemon/attach_costs.h"
#include "daemon/owners.h"
#include "daemon/refusals.h"
#include "daemon/portion.h"
#include "daemon/repeats.h"
#include "daemon/tracker.h"
#include "daemon/verdicts.h"
#include "overhead/enforcer.h"

struct tracked {
	pid_t pid;
	int pidfd;
	uint32_t slot;
	uint32_t owner;		 /* number of its owner (owners.h) */
	uint32_t flags;		 /* KERNEL_PROCESS_* */
	struct process identity; /* its mappings belong to the resolver's copy and are not used here */
	const struct attached_image *image;
	char build_id[IMAGE_BUILD_ID_MAX];
	uint64_t attached_ns, ended_ns;
	uint64_t attach_cost_ns; /* CPU time spent on reading its images and setting its probes */
	uint64_t start_utc_ns;
	struct kernel_counters window; /* counters at the last window's end */
	struct governed *governed;     /* its account, of the enforcer */
	uint64_t delivered_before;     /* vertex fragments of this slot before it was assigned */
	uint64_t unaccounted;	       /* fragments reported as unaccounted so far */
	uint64_t io_calls, io_ns;
	uint64_t second_calls, second_cost_ns; /* at the last second's end */
	double calls_per_s, overhead_pct;      /* in that second; NAN before the first */
	uint64_t looked_ns;		       /* time of the first check for calls, and CPU time by then */
	double looked_cpu_s;
	uint64_t remapped_ns;	   /* time of mappings made since it was read; 0: none */
	bool io_requested;	   /* it did IO before its attachment: traced at once, not after a second */
	bool threaded;		   /* its thread functions were attached once it had threads */
	bool gone;		   /* its end was seen */
	bool drained;		   /* it was detached, and nothing of it is left to be drained */
	bool pathless;		   /* it keeps no frame pointers, as was reported */
	pid_t tracer;		   /* tracer that was reported; 0: none */
	uint32_t bounded_reported; /* KERNEL_BOUNDED_* that were reported */
	bool held_reported;	   /* that a file system holds functions of it */
	bool silence_reported;	   /* its silence was reported, or a call was seen */
};

struct candidate {
	pid_t pid;
	uint64_t since_ns;
	int looks, limit;
	uint64_t due_ns; /* time from which it is old enough to attach; 0 = not checked yet */
	uid_t owner;
	char exe[64];  /* this and owner are set with due_ns */
	bool waits;    /* until due_ns, for a reader of its files and not for its age */
	bool held;     /* for a file system that does not answer, or for its user's share of readers */
	bool traced;   /* by a debugger or tracer, until that has gone */
	bool ranked;   /* a launcher gave it a rank: its library may have any name */
	bool reported; /* as held */
};

#define OUTLINED_LATER 32

/* An outlined function whose file is being read. */
struct outlined_later {
	pid_t pid; /* 0: none */
	uint64_t address, due_ns;
};

#define TRACKER_UNSEEN 64 /* those that come later are not reported */

/* A process with a rank in which no MPI was found (unseen_ranks.c). */
struct unseen_rank {
	pid_t pid;
	uint64_t start_time, since_ns;
	double cpu_s; /* at since_ns */
	bool reported;
};

/* A thread that ended. */
struct ended_thread {
	pid_t tid;
	uint64_t time_ns;
};

#define BYSTANDERS_TRANSLATORS 64 /* processes; where there are more, all processes are inspected when these ended */

/*
 * Processes that are no targets and map what targets map. One that runs under a binary translator would be killed by a
 * probe (translator.h), and any other pays for each hit: links that reach them are made again for each target alone.
 */
struct bystanders {
	pid_t translators[BYSTANDERS_TRANSLATORS];
	size_t count;
	bool overflown;		 /* there were more */
	uint32_t most;		 /* targets of an image that have links of their own */
	struct refusals refused; /* for that bound */
	uint64_t until_ns;	 /* no link for all processes before; CLOCK_MONOTONIC */
	uint64_t hits;		 /* of untracked processes, at second_ns */
	uint64_t second_ns;	 /* begin of the second in which their hits are counted */
	uint64_t window_hits;	 /* at the last window's end */
};

struct tracker {
	struct tracker_parts parts;
	const struct selection *selection;
	struct tracked *tracked;
	size_t count, room;
	struct candidate *candidate;
	size_t candidate_count, candidate_room;
	struct candidate later; /* due_ns and exe of a process that was too young, or whose files are read yet */
	const char *later_code; /* of the warning about it */
	char later_reason[512];
	uint64_t prepare_cost_ns; /* CPU time of the last tracker__prepare() */
	int rows_status;	  /* why functions are attached later, or 0 */
	struct outlined_later outlined[OUTLINED_LATER];
	size_t outlined_next;
	bool slots[KERNEL_SLOTS];
	bool any;	   /* a process was attached at some time */
	char refusal[640]; /* the latest process that is not watched, and why; "": there is none */
	uint64_t hits;	   /* hits of processes that ended */
	uint64_t last_second_ns;
	uint64_t window_ns; /* begin of the present window, CLOCK_MONOTONIC */
	uint64_t aged_ns;   /* when old requests were last looked for */
	struct mpi_files *files;
	struct unseen_rank unseen[TRACKER_UNSEEN];
	size_t unseen_count;
	struct topology *topology;
	uint64_t *named_start; /* start times of the processes requested by pid; 0 = not seen yet */
	struct verdicts verdicts;
	struct bystanders bystanders;
	uint64_t unshared_ns; /* last time at which an image was not linked for all, since others map it */
	struct attach_costs costs;
	struct portion attachments; /* in a pass of the loop */
	struct owners owners;
	struct repeats repeats;
	size_t claims;	     /* processes that wait for a slot that an owner has borrowed */
	uint32_t lender;     /* this owner */
	uint64_t claimed_ns; /* last claim, 0: none */
	struct enforcer *enforcer;
	struct ended_thread *ended; /* in the order of end times */
	size_t ended_count, ended_room;
	struct numbered_process forgotten[KERNEL_SLOTS]; /* their entries in the kernel side's tables are left */
	size_t forgotten_count;
};

static inline const struct kernel_counters *tracker__counters(const struct tracker *tracker,
							      const struct tracked *tracked)
{
	return &kernel_side__shared(tracker->parts.side)->counters[tracked->slot];
}

/* Returns the governor's orders for a process, as the kernel side reads them. */
static inline const struct kernel_governed *tracker__orders(const struct tracker *tracker,
							    const struct tracked *tracked)
{
	return &kernel_side__shared(tracker->parts.side)->governed[tracked->slot];
}

static inline uint64_t tracker__hits_of(const struct tracker *tracker, const struct tracked *tracked)
{
	return tracker__counters(tracker, tracked)->enter;
}

/* Returns the start of a process as UTC, ns. */
uint64_t tracker__start_utc(const struct process *process);

struct tracked *tracker__of(struct tracker *tracker, pid_t pid);

/*
 * Begins to track a process that was read since pidfd was opened; takes ownership of both. The kernel side must know
 * the process, its handles and its libc before the first hit, so the links come last. 0 or -errno with a sentence in
 * err.
 */
int tracker__attach(struct tracker *tracker, struct process *process, int pidfd, uint64_t now_ns, char *err,
		    size_t err_size);

/* Ends the tracking of a process that ended, became another one or gives way to others. */
void tracker__detach(struct tracker *tracker, struct tracked *tracked, const char *reason, uint64_t now_ns);

/* Returns why a process may not be tracked, perhaps written to err, with a status; NULL where it may. */
const char *tracker__refusal(const struct tracker *tracker, const struct process *process, char *err, size_t err_size,
			     int *status);

/*
 * Returns whether a return probe would kill the process. A session then spares the returns of this process; other
 * links, and sessions for single processes, hijack the returns of all processes.
 */
bool tracker__returns_kill(const struct process *process);

/*
 * Fills process->library (mpi_files.h). started: the process has had time to map what it is linked to. 0 or
 * confine__is_later() with a sentence.
 */
int tracker__identify(struct tracker *tracker, struct process *process, bool started, char *err, size_t err_size);

/* Whether a tracked process of the same job has the rank of a process. */
bool tracker__has_rank(const struct tracker *tracker, const struct process *process);

/* Notes a process in which no MPI was found: where an MPI launcher gave it a rank it may be reported. */
void tracker__note_unseen(struct tracker *tracker, const struct process *process, uint64_t now_ns);

/* Whether a process was noted so. */
bool tracker__is_unseen(struct tracker *tracker, pid_t pid);

/* Reports the noted processes that compute; once a second. */
void tracker__report_unseen(struct tracker *tracker, uint64_t now_ns);

/* Gathers the running processes that may be targets; the caller frees them. Returns how many. */
size_t tracker__candidates(struct tracker *tracker, pid_t **pids);

/* Returns whether a process that was read is a target, by all that was found of it after it had time to start. */
bool tracker__is_target(struct tracker *tracker, const struct process *process);

/*
 * Reads the images that the attachment of a process needs. 0, also where they cannot be read, or as
 * tracker__put_off().
 */
int tracker__prepare(struct tracker *tracker, const struct process *process, uint64_t now_ns);

/* Puts an attachment off where a status says that its files are read later: -EINPROGRESS, else the status itself. */
int tracker__put_off(struct tracker *tracker, const struct process *process, int status, const char *reason,
		     uint64_t now_ns);

/* Puts the attachment of a process off until nothing traces it any more: -EINPROGRESS. */
int tracker__wait_for_tracer(struct tracker *tracker, const struct process *process);

/*
 * Returns whether a candidate goes on to wait, for its tracer or for another reader of its user's files: so that many
 * such processes are not inspected again and again.
 */
bool tracker__still_waits(struct candidate *candidate, uint64_t now_ns);

/* Reports, once, that a candidate waits for a file system or a share. */
void tracker__report_wait(struct tracker *tracker, struct candidate *candidate);

/* Why a process is not tracked whose MPI library, or statically linked executable, is this mapping (or NULL); or NULL.
 */
const char *tracker__refuses_file(const struct process *process, const struct process_mapping *mapping);

/* Returns the expected cost of an attachment to a process, ns, by that of the last one to its image; 0: not known. */
uint64_t tracker__attach_cost(struct tracker *tracker, const struct process *process);

/* Returns whether an image is known: its first process on this node was attached some seconds ago. */
bool tracker__attached_before(struct tracker *tracker, const struct attached_image *image, uint64_t now_ns);

/* Handles a file mapped as code by a process that is not tracked: it may share an image with targets (verdicts.h). */
void tracker__mapped_beside(struct tracker *tracker, pid_t pid, const char *path);

/* Makes a process that became another program a candidate. */
void tracker__executed(struct tracker *tracker, pid_t pid, uint64_t now_ns);

/* Returns whether a candidate is yet to be inspected that no file system holds and nothing traces. */
bool tracker__expects_soon(const struct tracker *tracker);

/* Inspects the candidates that are due, until so many were attached as one pass of the loop may attach. */
void tracker__inspect(struct tracker *tracker, uint64_t now_ns);

/* Reports the candidates that ended while their attachment was put off. Called once, before vaprod ends. */
void tracker__end_inspection(struct tracker *tracker);

/* Notes that a process has joined or left its owner: what owners may have of the kernel side's tables changes. */
void tracker__share_out(struct tracker *tracker);

/* Has owners give back what they have of these tables beyond their room; once a second. */
void tracker__give_back(struct tracker *tracker, uint64_t now_ns);

/* Detaches a process that goes on, since its slot is needed. */
void tracker__detach_running(struct tracker *tracker, struct tracked *tracked, uint64_t now_ns);

/* Detaches processes of the owner that has borrowed most, one for each process that waits for its slot. */
void tracker__give_back_slots(struct tracker *tracker, uint64_t now_ns);

/*
 * Forgets a process that ended and has been drained since, after its last facts. false where it is too early. To be
 * followed by tracker__purge(), for several at once.
 */
bool tracker__retire(struct tracker *tracker, struct tracked *tracked, uint64_t now_ns);

/* Removes what forgotten processes have in the kernel side's tables: before another process is tracked. */
void tracker__purge(struct tracker *tracker);

/* Attaches user and thread functions of a newly tracked process. Returns how many functions. */
int tracker__attach_rows(struct tracker *tracker, struct tracked *tracked, const struct process *process);

/* Attaches user and thread functions of a process that maps more than before. */
void tracker__rows_remapped(struct tracker *tracker, struct tracked *tracked, const struct process *process);

/* Attaches thread functions of a process that has got threads since. */
void tracker__inspect_threads(struct tracker *tracker, struct tracked *tracked, size_t threads);

/* Looks at the mappings of a process again: a file is being read, or held, which is reported once. */
void tracker__look_again(struct tracker *tracker, struct tracked *tracked, const char *reason, bool held,
			 uint64_t now_ns);

/* Attaches outlined functions whose files were being read. */
void tracker__outline_due(struct tracker *tracker, uint64_t now_ns);

/* Reports a decision about functions' probes; ctx: the watch. */
void tracker__rows_decided(void *ctx, const struct row_decision *decision);

/* Returns whether a process maps an OpenMP library. */
bool tracker__maps_openmp(const struct process *process);

/* Returns the enforcer of the overhead's bounds; the watch outlives it. NULL when out of memory. */
struct enforcer *tracker__new_enforcer(struct tracker *tracker);

/* Begins to govern a process, which owns its slot from now on. NULL when out of memory. */
struct governed *tracker__begin_governing(const struct tracker *tracker, const struct tracked *tracked,
					  uint64_t now_ns);

/* Starts the recording of a process whose links are set; its image may have probes closed or left out. */
void tracker__join_image(struct tracker *tracker, const struct tracked *tracked, uint64_t now_ns);

/* Returns the flags of a process for the kernel side. */
uint32_t tracker__flags_of(const struct tracker *tracker, const struct process *process, enum process_mpi mpi);

/* Returns whether a process gets links of its own (verdicts.h); never where the image is linked for all. */
bool tracker__is_alone(struct tracker *tracker, const struct process_mapping *mapping, uint64_t now_ns);

/* Links an image for all processes, where that is cheaper and harms no process. Returns whether it did. */
bool tracker__share(struct tracker *tracker, const struct attached_image *image, uint64_t now_ns);

/* Emits a warning of which an owner's processes may cause many: further equal ones come as one record a window. */
void tracker__warn_owner(struct tracker *tracker, const char *code, pid_t pid, uid_t owner, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Emits these records at a window's end. */
void tracker__report_repeats(struct tracker *tracker);

/* Warns where a process maps several MPI libraries. probed: the path of the one whose calls are seen. */
void tracker__report_libraries(struct tracker *tracker, const struct tracked *tracked, const char *probed);

/* Emits a `process` line. */
void tracker__emit_process(struct tracker *tracker, const struct tracked *tracked, enum line_process_state state,
			   uint64_t hits, const char *reason);

/* Emits where a thread that has a row runs; an ended one stays where it was last. Returns the sink's status. */
int tracker__emit_place(struct tracker *tracker, const struct tracked *tracked, pid_t tid);

/* Announces the main thread as a row, from its attachment to to_ns (0: it goes on). */
void tracker__emit_row(struct tracker *tracker, const struct tracked *tracked, uint64_t to_ns);

/* Inspects all processes for translators: at the start, and where mappings were lost. */
void tracker__find_translators(struct tracker *tracker, uint64_t now_ns);

/* Handles a file mapped as code: where it is a translator's, no link reaches its process any more. */
void tracker__translated(struct tracker *tracker, pid_t pid, const char *path, uint64_t now_ns);

/* Whether targets get links of their own for the sake of others, whatever these cost. */
bool tracker__spares_bystanders(const struct tracker *tracker, uint64_t now_ns);

/*
 * Makes room for links of a process of a user's own on an image, where another user's processes have more of the room
 * than this user's: one of them that calls least is dropped.
 */
void tracker__make_room(struct tracker *tracker, const struct process_mapping *mapping, uid_t uid, uint64_t now_ns);

/* Notes that a process is not tracked since too many processes of an image have links of their own. */
void tracker__crowded(struct tracker *tracker, const struct process *process, uint64_t device, uint64_t inode,
		      uint64_t now_ns);

/* Notes translators that ended, and what others than targets pay. To be called in each pass. */
void tracker__watch_bystanders(struct tracker *tracker, uint64_t now_ns);

#endif
