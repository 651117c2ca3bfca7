/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Carries out the governor's decisions (governor.h): charges each process for the hits of its probes, and reduces what
 * is too expensive. It reads and writes the memory that the kernel side shares, and reaches links, other tables and the
 * output through struct enforcer_ops only.
 */
#ifndef VAPRO_ENFORCER_H
#define VAPRO_ENFORCER_H

#include <sys/types.h>

#include "functions/functions.h"
#include "overhead/costs.h"
#include "overhead/governor.h"

struct attached_image; /* passed on to the ops as it is */
struct enforcer;
struct governed; /* a process's account; the enforcer owns it until enforcer__remove() */

/* Functions of an image that were closed. */
struct enforcer_closed {
	const char *name;   /* function that was called most, or NULL */
	uint32_t functions; /* closed */
	uint32_t of;	    /* functions probed */
	bool parted;	    /* links that stay were opened again: calls under way are not seen to return */
};

/* ctx is the one of enforcer__new(). Statuses are 0, or -errno of links that could not be opened again. */
struct enforcer_ops {
	uint64_t (*now)(void);	   /* CLOCK_MONOTONIC, ns */
	uint64_t (*own_cpu)(void); /* CPU time of vaprod and its readers, ns */
	void (*warn)(void *ctx, const char *code, pid_t pid, const char *text); /* pid 0: of no process */

	/*
	 * Closes an image's most expensive probes, until the others had at most a share `keep` of all cost. To be
	 * followed by open_remaining() once links are no longer being removed.
	 */
	void (*close_image)(void *ctx, const struct attached_image *image, double keep, struct enforcer_closed *closed);
	int (*open_remaining)(void *ctx, const struct attached_image *image);
	int (*open_image)(void *ctx, const struct attached_image *image);

	/* Ends the learning of polling calls of an image where these have most of the cost. Returns whether they have.
	 */
	bool (*end_learning)(void *ctx, const struct attached_image *image);

	/* Returns whether closed links are not removed yet, and whether their calls may still cost. */
	bool (*detaching)(void *ctx);
	bool (*still_hit)(void *ctx);

	/* Adds the rows of the functions that cost so much that the image was closed. */
	void (*costly)(void *ctx, const struct attached_image *image, struct functions_spared *spared);

	/*
	 * Probes all units (functions__unit()) of an image but these, and forgets the requests that were posted.
	 * *parted: links of other functions had to be closed for that; open_image() is to follow once links are no
	 * longer being removed, and calls under way are not seen to return.
	 */
	int (*leave_out)(void *ctx, const struct attached_image *image, uint32_t units, bool *parted);

	/* Shares of units in the cost of an image's calls since counting began: of functions that never wait, or were
	 * seen to wait hardly ever.
	 */
	void (*unit_shares)(void *ctx, const struct attached_image *image, double shares[FUNCTIONS_UNITS]);
	void (*begin_count)(void *ctx, const struct attached_image *image);

	/* Returns whether functions that can wait but may be short were called since counting began. */
	bool (*may_be_short)(void *ctx, const struct attached_image *image);

	/* Bounds the functions with exits of their own; hits: theirs so far. Returns whether the next call is due soon.
	 */
	bool (*govern_rows)(void *ctx, uint64_t hits, uint64_t now_ns);

	/*
	 * Closes those that cost a process most. speed: the share of its time that the process spends; calls: the part
	 * of that for its calls (0: not known yet). false where none matters.
	 */
	bool (*close_costliest_rows)(void *ctx, pid_t pid, double speed, double calls, double debt_ns, uint64_t now_ns);

	/* Limits those of a process to the share of its time that its calls leave, which may be negative. */
	void (*limit_rows)(void *ctx, pid_t pid, double share, uint64_t now_ns);

	/* Returns how many other processes have links of their own on a process's image. */
	uint32_t (*others)(void *ctx, const struct attached_image *image);

	/* Links an image for all processes, where each has links of its own. false where it has not, or others map it.
	 */
	bool (*share)(void *ctx, const struct attached_image *image);

	/* Closes functions with exits of their own that only these processes call, until until_ns (monotonic clock). */
	void (*rest_rows)(void *ctx, const pid_t *pids, size_t count, uint64_t until_ns);
};

struct enforcer_process {
	pid_t pid;
	uid_t owner; /* as in struct process */
	const char *exe;
	bool spares_returns;		  /* returns of single calls can be suppressed */
	struct kernel_counters *counters; /* both of its slot, valid until enforcer__remove() */
	struct kernel_governed *orders;
	const uint64_t *records; /* of the process that vaprod has drained; NULL: not counted. Valid as long */
};

/* Cost of a process, and what was not seen, since the last window. */
struct enforcer_window {
	uint64_t cost_ns;    /* of hits, to its busiest thread */
	uint64_t closed_ns;  /* time with unseen calls */
	uint64_t thinned_ns; /* threads' time in and after suppressed calls */
	uint64_t thinned;    /* suppressed fragments */
	const char *image;   /* path; NULL: none, or the process has ended */
	uint32_t without;    /* units left out of it at present */
	uint32_t own;	     /* those of them that its processes' budget needs */
};

/* costs and ctx outlive the enforcer. NULL when out of memory. */
struct enforcer *enforcer__new(const struct governor *governor, const struct costs *costs,
			       const struct enforcer_ops *ops, void *ctx);
void enforcer__free(struct enforcer *enforcer);

/*
 * Opens the account of a process whose counters are zero, before its first hit. Until enforcer__join() no time between
 * two calls is a fragment. NULL when out of memory.
 */
struct governed *enforcer__add(struct enforcer *enforcer, const struct enforcer_process *process, uint64_t now_ns);

/*
 * Returns what of an image was too expensive when the last process of an owner's program ended, within an hour. The
 * links of a new process are to be opened without it: the enforcer__join() of the image's first process says so.
 */
struct functions_spared enforcer__former(const struct enforcer *enforcer, uid_t owner, const char *exe,
					 const char *image, uint64_t now_ns);

/*
 * Starts the recording of a process whose links are set. The image, NULL where it maps none, may have probes closed or
 * left out; image and path are valid until enforcer__leave(). Without memory the image's probes stay open for it.
 * again: the image was attached to on this node before. What the process waits for vaprod in its first
 * GOVERNOR_PEAK_NS, its attachment included, is paid from its budget of that time, but for 100 ms where the image is
 * new: all of it is read then.
 */
void enforcer__join(struct enforcer *enforcer, struct governed *governed, const struct attached_image *image,
		    const char *path, bool again, uint64_t now_ns);

/* Prepares a change of links one by one: until enforcer__join(), no time between two calls is a fragment. */
void enforcer__suspend(struct governed *governed);

#define ENFORCER_WHY 384 /* bytes of a reason for a warning */

/*
 * Leaves units out of a process's image, beside what its budget needs, until that time: other nodes of its job do
 * without them, and states of different sets are not compared (docs/many-nodes.md). why: for the warning, as in "not
 * probed for at least 60 s: why". The image changes in the next pass, but not twice in GOVERNOR_STEP_NS. A process
 * without an image is left alone.
 */
void enforcer__follow(struct governed *governed, uint32_t units, uint64_t until_ns, const char *why);

/* Discards what the threads of a process have open: its states got other numbers. */
void enforcer__restart(struct governed *governed);

/* Handles the end of a process: its window is still read, but no decision is made about it any more. */
void enforcer__leave(struct enforcer *enforcer, struct governed *governed, uint64_t now_ns);

void enforcer__remove(struct enforcer *enforcer, struct governed *governed);

/*
 * Charges all processes and enforces the budget: to be called in each iteration of the loop. Returns after what time it
 * is to be called again, ns: ENFORCER_SOON_NS while a process spends fast or closed probes are to be opened, later
 * where none spends more than its rate.
 */
#define ENFORCER_SOON_NS 10000000UL
uint64_t enforcer__pass(struct enforcer *enforcer, uint64_t now_ns);

/*
 * Enters what vaprod has run since the last of these calls as spent on records, on a window, or for an owner's
 * processes (ledger.h). enforcer__pass() enters what remains as spent on records.
 */
enum enforcer_work { ENFORCER_RECORDS, ENFORCER_WINDOW };
void enforcer__ran(struct enforcer *enforcer, enum enforcer_work work);
void enforcer__ran_for(struct enforcer *enforcer, uid_t owner);

/* Returns what vaprod ran for an owner's processes so far, ns; 0 where it has none. */
double enforcer__caused(const struct enforcer *enforcer, uid_t owner);

/* Returns whether probes of an image are closed. */
bool enforcer__is_closed(const struct enforcer *enforcer);

/*
 * Enters which share of a process's time in a window (CLOCK_MONOTONIC) the analysis could judge. Functions whose
 * absence leaves little to judge are probed again.
 */
void enforcer__judged(struct governed *governed, uint64_t begin_ns, uint64_t end_ns, double share);

/* Resets the rates of a process some of whose functions were closed: earlier costs predict nothing. */
void enforcer__reset_rates(struct governed *governed);

/* Returns what the hits of a process cost its busiest thread up to the last pass, ns. */
uint64_t enforcer__spent(const struct governed *governed);

/* Returns what there was since the last call, up to now_ns; part: of the cost since then, where now_ns is in the past.
 */
struct enforcer_window enforcer__end_window(const struct enforcer *enforcer, struct governed *governed, uint64_t now_ns,
					    double part);

#endif
