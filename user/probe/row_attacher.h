/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Links of rows whose exits are probes of their own: thread libraries, a site's functions, outlined
 * functions. Links cannot be partly detached, so what may have to go alone is a unit with links of
 * its own: each function of a site or a compiler, and all thread rows of an image together.
 *
 * A hot unit is thinned (papers/000 section 5, binary exponential back-off): what it costs is paid
 * from its share of the cap on overhead; who overdraws it is closed for 1, 2, 4, .. 64 s,
 * randomised, and for at least as long as its debt lasts. A unit that stays within its share when it
 * is opened again begins anew.
 */
#ifndef VAPRO_ROW_ATTACHER_H
#define VAPRO_ROW_ATTACHER_H

#include "probe/attacher.h"
#include "probe/calibrate.h"
#include "probe/functions.h"

enum row_group { ROW_THREADS, ROW_USER, ROW_OUTLINED };

struct row_attacher;

/*
 * side and costs must outlive it. budget: share of its targets' time that one unit may cost; 0 = no bound. seed:
 * differs from host to host.
 */
struct row_attacher *row_attacher__new(struct kernel_side *side, const struct costs *costs, double budget,
				       uint64_t seed);
void row_attacher__free(struct row_attacher *attacher);

/*
 * Attaches the functions that these rows name in one mapped image of a process. alone: a link for
 * this process only. Returns how many functions are probed for the process, 0 where the image has
 * none, -E2BIG for too many filtered links, or another -errno with a sentence.
 */
int row_attacher__attach(struct row_attacher *attacher, const struct process *process,
			 const struct process_mapping *mapping, enum row_group group, const unsigned int *rows,
			 size_t count, bool alone, char *err, size_t err_size);

/* Attaches the outlined function at an address of a process, as a row of its own. 0, or -errno with a sentence. */
int row_attacher__outlined(struct row_attacher *attacher, const struct process *process,
			   const struct process_mapping *mapping, uint64_t address, bool alone, char *err,
			   size_t err_size);

/* Whether an image has a link for all processes that map it. */
bool row_attacher__linked(const struct row_attacher *attacher, const struct process_mapping *mapping);

/* A process has ended, or is no target any more. */
void row_attacher__release(struct row_attacher *attacher, pid_t pid);

/* Closes all links for good: the end. */
void row_attacher__pause(struct row_attacher *attacher);

/* The images on which a process has links, at most max; returns how many. They belong to the attacher. */
size_t row_attacher__images(const struct row_attacher *attacher, pid_t pid, const struct attached_image **images,
			    size_t max);

/* What a hit costs is taken for so many times what it was. */
void row_attacher__scale(struct row_attacher *attacher, double ratio);

struct row_thinned {
	const char *name, *image;
	double calls_per_s, cost_pct; /* of its targets' time, since it was opened */
	double closed_s;	      /* 0: it is open for good, at these rates */
	bool told;		      /* a spell of this length was told before */
	double debt_ns;		      /* what it overdrew: forgiven, since the spell pays it */
	const pid_t *pids;	      /* who map the image */
	size_t pid_count;
};

/*
 * Charges units and opens those whose spell is over; thinned is told of each that is closed. hits: of all units so
 * far; while they are too few for any unit to overdraw, units are looked at once a second, since each look is a
 * system call for each function that gathers what every CPU has counted. Returns how many are closed now.
 */
size_t row_attacher__thin(struct row_attacher *attacher, uint64_t hits, uint64_t now_ns,
			  void (*thinned)(void *ctx, const struct row_thinned *thinned), void *ctx);

/*
 * Somebody overdrew the cap by debt_ns although each unit kept to its share: closes the one that cost
 * most since it was opened, so that the rest need not go. false where no unit is to blame.
 */
bool row_attacher__thin_costliest(struct row_attacher *attacher, double debt_ns, uint64_t now_ns,
				  void (*thinned)(void *ctx, const struct row_thinned *thinned), void *ctx);

#endif
