/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Probes of rows whose exits are probes of their own: thread libraries, a site's functions, outlined
 * functions.
 *
 * A function is not probed to find out what that costs. Its entries, with those of all others of its image that are
 * new, are counted for some 10 ms through one link, at most for a few hundred calls; then those that fit into the
 * share of the budget are opened (row_plan.h), and the others are left out by name, for 10 s at first and for minutes
 * in the end, remembered by build-id and function for all processes of the image, until a look shows that they fit.
 * A function of at most ten times its share gets a duty cycle instead, open for as long as the saved time lasts.
 * Functions that are called about equally often share links, since links cannot be partly detached. Those that share
 * exits are opened and left out together.
 *
 * Open functions are measured: where an image's functions cost more than their share, those that cost most are closed,
 * in the background. Each such decision is reported once, for all of its functions.
 */
#ifndef VAPRO_ROW_ATTACHER_H
#define VAPRO_ROW_ATTACHER_H

#include "functions/functions.h"
#include "overhead/calibrate.h"
#include "probe/attach/attacher.h"
#include "probe/attach/row_group.h"

struct row_attacher;

/*
 * side and costs must outlive it. budget: share of a process's time that all of its functions here may cost; 0 = no
 * bound. seed: differs from host to host.
 */
struct row_attacher *row_attacher__new(struct kernel_side *side, const struct costs *costs, double budget,
				       uint64_t seed);
void row_attacher__free(struct row_attacher *attacher);

/*
 * Attaches the functions that these rows name in one mapped image of a process. alone: a link for
 * this process only. Returns how many functions are or will be probed for the process, 0 where the image has
 * none, -E2BIG for too many filtered links, or another -errno with a sentence.
 */
int row_attacher__attach(struct row_attacher *attacher, const struct process *process,
			 const struct process_mapping *mapping, enum row_group group, const unsigned int *rows,
			 size_t count, bool alone, char *err, size_t err_size);

/*
 * Attaches the outlined function at an address of a process, as a row of its own. The first one of an image requests
 * all of them. 0, or -errno with a sentence; -ENOENT names all functions of the image that cannot be probed, once.
 */
int row_attacher__outlined(struct row_attacher *attacher, const struct process *process,
			   const struct process_mapping *mapping, uint64_t address, bool alone, char *err,
			   size_t err_size);

/* Whether an image has a link for all processes that map it. */
bool row_attacher__linked(const struct row_attacher *attacher, const struct process_mapping *mapping);

/* Returns how many processes have links of their own in an image. */
uint32_t row_attacher__own_links(const struct row_attacher *attacher, const struct process_mapping *mapping);

/* As attacher__bound(), attacher__any_linked(), attacher__close_shared() and attacher__part(). */
void row_attacher__bound(struct row_attacher *attacher, uint32_t most);
bool row_attacher__any_linked(const struct row_attacher *attacher);
void row_attacher__close_shared(struct row_attacher *attacher);
int row_attacher__part(struct row_attacher *attacher);

/* A process has ended, or is no target any more. */
void row_attacher__release(struct row_attacher *attacher, pid_t pid);

/* Closes all links for good: the end. */
void row_attacher__pause(struct row_attacher *attacher);

/* The images on which a process has links, at most max; returns how many. They belong to the attacher. */
size_t row_attacher__images(const struct row_attacher *attacher, pid_t pid, const struct attached_image **images,
			    size_t max);

/* Scales the recorded costs of hits by ratio. */
void row_attacher__scale(struct row_attacher *attacher, double ratio);

enum row_decision_kind {
	ROWS_LEFT_OUT, /* not opened, or closed: too expensive */
	ROWS_OPENED,   /* left out before, and probed from now on */
	ROWS_FAILED,   /* the kernel does not link them: error */
};

struct row_decision {
	enum row_decision_kind kind;
	const char *image;
	const char *functions;	      /* the first few, with their rates: "f (31000 calls/s, 34 %), g (...)" */
	size_t count;		      /* functions */
	double calls_per_s, cost_pct; /* of one process; what all of them cost or would cost */
	double left_out_s;	      /* until the first of them is looked at again */
	bool reported;		      /* all of them were reported as left out before */
	bool in_duty_cycle;	      /* some of them are opened again as soon as their cost is paid */
	int error;
	const pid_t *pids; /* processes that map the image */
	size_t pid_count;
};

typedef void row_decided(void *ctx, const struct row_decision *decision);

/*
 * To be called in each pass of the loop: looks at new functions and at those whose time has come, opens what fits,
 * charges what is open, and closes what costs too much. hits: hits of all functions so far; while they are too few to
 * overdraw, functions are measured once a second, since each one takes a system call that gathers every CPU's
 * counts. Takes up to 20 ms where there is something to look at. Returns whether the next call should come soon.
 */
bool row_attacher__govern(struct row_attacher *attacher, uint64_t hits, uint64_t now_ns, row_decided *decided,
			  void *ctx);

/*
 * A process overdrew its allowance by debt_ns, spending such a share of its time (speed), although each image stays
 * within its own: closes the functions that cost it most lately, so that the rest need not be closed. They have no duty
 * cycle for a minute where its calls are a considerable part (calls: their share of its time, 0: not known yet), since
 * these show more. false where no function costs a considerable part.
 */
bool row_attacher__close_costliest(struct row_attacher *attacher, pid_t pid, double speed, double calls, double debt_ns,
				   uint64_t now_ns, row_decided *decided, void *ctx);

/*
 * Limits functions to the share of a process's time that its calls leave, which may be negative. Where that lasts,
 * functions that exceed it are left out for a minute, without a duty cycle, since the calls show more of the process. A
 * share that all functions may cost in any case is no limit, and images with functions that users requested are not
 * limited.
 */
void row_attacher__limit(struct row_attacher *attacher, pid_t pid, double share, uint64_t now_ns);

/*
 * The calls of these processes are not seen until until_ns, a time of the monotonic clock: functions of images that no
 * other process maps are closed and not looked at until then, since their hits would only cost. Those that exceed the
 * functions' share of the budget are left out for longer, and have no duty cycle for a minute: what they would spend
 * shows more where these calls are seen instead.
 */
void row_attacher__rest(struct row_attacher *attacher, const pid_t *pids, size_t count, uint64_t until_ns);

#endif
