/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An image whose functions have exit sites, and its functions, for the files of their attacher. */
#ifndef VAPRO_ROW_IMAGE_H
#define VAPRO_ROW_IMAGE_H

#include "overhead/governor.h"
#include "probe/attach/attachments.h"
#include "probe/attach/row_backoff.h"
#include "probe/attach/row_group.h"

struct row_attacher;

enum row_state {
	ROW_NEW,     /* its call rate is not known */
	ROW_FITTING, /* it is to be opened */
	ROW_OPEN,
	ROW_LEFT_OUT, /* too expensive */
	ROW_REFUSED,  /* the kernel does not probe it */
};

/* Cost of hits with a function's number, ns: at its entry, at exits, and the part of the entry due to pauses. */
struct row_cost {
	double entry_ns, exit_ns, pauses_ns;
};

/* One function and its call statistics. Its cost is its cost on the CPU with most of its hits. */
struct row_probe {
	struct row_function function; /* its name and sites are its own */
	enum row_group group;
	unsigned int family; /* functions that share exits, directly or by others, are open together; 0: none does */
	enum row_state state;
	int64_t set; /* while open: the functions that share its links */
	struct row_backoff backoff;
	double calls_per_s;  /* of one process: at the last look or, while open, recently */
	double share;	     /* part of that CPU's time that its probes cost, or would cost, with shared exits */
	double own_share;    /* the same for hits with its number alone: own shares add up */
	double family_share; /* what its family would cost, by the last decision */
	uint64_t calls, calls_mark;
	struct row_cost cost, cost_mark; /* so far, and at the mark of its rates */
	struct row_cost *cpu;		 /* costs of each CPU at the last measurement */
	bool fits;			 /* into the share, by the last decision */
	bool in_duty_cycle;		 /* left out until its cost is paid */
	bool reported;			 /* it was reported as left out */
	char *left_out;			 /* why it is left out, for people */
};

struct row_image {
	struct attached base;
	unsigned int read;	    /* groups whose rows were looked for, one bit each */
	struct row_sites *outlined; /* known outlined functions; one with a probe is moved into the probe */
	bool named;		    /* functions that cannot be probed were reported */
	struct row_probe **probes;
	size_t probe_count, probe_room;
	unsigned int families;	  /* given so far */
	int64_t sets;		  /* given so far */
	struct row_sites *unseen; /* its skips are those of all groups */
	struct governor_account account;
	uint64_t mark_ns;	  /* when the present rates began */
	uint64_t opened_ns;	  /* the last time that something was opened */
	uint64_t soon_ns;	  /* end of the period in which costs are measured often */
	unsigned int idle_looks;  /* looks in a row without a hit */
	uint64_t looked_ns;	  /* the last time that functions were looked at */
	uint64_t rest_until_ns;	  /* nothing is opened or looked at before */
	uint64_t scarce_until_ns; /* calls of its processes exceeded the budget: no duty cycles before */
	uint64_t limit_from_ns;	 /* begin of the time in which calls have left less than the budget; 0: they leave it */
	uint64_t limit_until_ns; /* end of the limit */
	double limit;		 /* the share of their time that functions may cost until then */
	pid_t limit_pid;	 /* the process that leaves least */
	uint64_t learn_ns;	 /* when a look may show which functions a new mapper's teams are given; 0 = not */
	unsigned int learn_looks;
};

static inline bool row_probe__same_family(const struct row_probe *a, const struct row_probe *b)
{
	return a == b || (a->family && a->family == b->family);
}

/* Updates the public figures of an image from its functions. */
void row_image__describe(struct row_image *image);

/* Whether two images are mapped by one process. */
bool row_image__shares_mapper(const struct row_image *image, const struct row_image *other);

/*
 * Closes the sets of open functions that share exits with functions that fit, to be opened again together with these:
 * through two links, a shared exit would be hit twice.
 */
void row_image__reunite(struct row_attacher *attacher, struct row_image *image);

/*
 * Opens all functions of an image that fit, those of a group and a class of rates together; a family has one group and
 * one rate. Returns 0 or the first -errno; functions that could not be opened are refused then.
 */
int row_image__open(struct row_attacher *attacher, struct row_image *image);

/* Opens the links that a mapper needs. 0 or -errno. */
int row_image__link_mapper(struct row_attacher *attacher, struct row_image *image, size_t mapper);

/* Closes the set of a function in the background; the others of the set fit and are to be opened again. */
void row_image__close(struct row_attacher *attacher, struct row_image *image, struct row_probe *probe);

/*
 * Leaves a function out at these costs, closing it where it is open. A function that is not far too expensive gets a
 * duty cycle: it is opened again once pause_s have paid its cost.
 */
void row_image__leave_out(struct row_attacher *attacher, struct row_image *image, struct row_probe *probe,
			  bool in_duty_cycle, double pause_s, double random, uint64_t now_ns);

/* Whether functions of an image have no duty cycles, since its processes need the budget for their calls. */
bool row_image__is_scarce(const struct row_image *image, uint64_t now_ns);

/* The most that functions of an image may cost beside the calls of its processes, a share of time; or infinity. */
double row_image__limit(const struct row_image *image, uint64_t now_ns);

/* Puts a function of the image that is new into the family of those that it shares exits with. */
void row_image__join_family(struct row_image *image, struct row_probe *probe);

/*
 * Counts hits of functions for some milliseconds, which gives their rates. Exits are mostly single-stepped, so entries
 * are counted alone at first, then exits of those families that cost at most `most`, a share of time, by that; exits
 * of the others are estimated. Returns 0, or -errno where functions could not be linked.
 */
int row_image__look(struct row_attacher *attacher, struct row_image *image, struct row_probe *const *probes,
		    size_t count, double most);

/*
 * Looks at functions that hand others to teams and are left out: they do not show the functions of a new process's
 * teams. Their entries are counted for a moment, now and then until some are hit.
 */
void row_image__learn_teams(struct row_attacher *attacher, struct row_image *image, uint64_t now_ns);

#endif
