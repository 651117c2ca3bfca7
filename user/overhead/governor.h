/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The bound on overhead: per process, hits times calibrated cost are paid from an allowance that
 * grows by the budget, a mean, and may be saved up as far as the cap allows, which bounds any 5 s.
 *
 * The cost of a process beyond the allowance is removed in this order, and given back in reverse, at
 * most one step in 10 s:
 *  (a) functions that never wait, or were measured to wait hardly ever, are not probed, most expensive first, by all
 *      processes of an image and for at least a minute: all time stays covered, but the time between two other calls
 *      is one computation, and without posts it is unknown what completions transfer;
 *  (b) the return half of calls in states whose span, entry to entry, is short: the entry's trap stays,
 *      the call and what follows it are no fragments. Short ones go first, since least time is lost;
 *  (c) polling calls and the functions of a site or a thread library (row_attacher.h);
 *  (d) where even entries are too expensive, or returns cannot be suppressed: probes are closed and
 *      opened in a duty cycle, the most expensive functions alone if that is enough. A closed period
 *      lasts until most of the allowance is saved up, and no longer: what a process may spend is spent on open
 *      probes. It is randomised, so that neither a periodic program nor other nodes keep step.
 * An allowance that is overdrawn closes at once: the cap holds whatever the plan was.
 *
 * Of several ways to keep the budget, the one that leaves most time covered is chosen: where all states
 * are equally short, suppression leaves nothing to see, and a duty cycle shows a share of everything.
 *
 * Pure: time, rates and cost come in as arguments. Costs and times are ns, shares 0..1.
 */
#ifndef VAPRO_GOVERNOR_H
#define VAPRO_GOVERNOR_H

#include <stdbool.h>
#include <stdint.h>
#include <vapro/bpf/abi.h>

#define GOVERNOR_STEP_NS 10000000000ULL	  /* time between two steps */
#define GOVERNOR_OPENING_NS 5000000000ULL /* time from an overdraft beyond the reserve of the cap to an opening */
#define GOVERNOR_PEAK_NS 5000000000ULL	  /* time over which the cap holds */
#define GOVERNOR_GIVE_BACK 0.7		  /* share of the budget that must be enough before a step is undone */

struct governor {
	double budget;	   /* share of time, as configured; 0 = no bound */
	double rate;	   /* share that is spent; the rest is a reserve for unknown costs */
	double room_ns;	   /* most that may be saved up */
	double opening_ns; /* allowance of a process at first */
	uint64_t seed;
};

/* budget_pct: the mean; cap_pct: of any 5 s. 0 = none; without a cap there is no bound at all. seed: of the host. */
void governor__init(struct governor *governor, double budget_pct, double cap_pct, uint64_t seed);

/* Returns the bound of a share of a process's time, for probes that are closed alone. */
struct governor governor__of_share(double share);

/* Returns a number of 0..1 from the governor's seed. */
double governor__random(struct governor *governor);

/* Returns a seed that differs from host to host and from run to run. */
uint64_t governor__seed(const char *host, uint64_t time_ns);

/*
 * Returns the share of a process's cost that its busiest thread has, which alone slows the process down: that thread's
 * part `busiest` of all hits, by their weight. 1 where that is not known.
 */
double governor__busiest(uint64_t busiest, uint64_t hits);

/* Allowance of one process. */
struct governor_account {
	double credit_ns;
	uint64_t last_ns;
	double speed, mean; /* shares spent: at the last look, and over the last second or so */
	double owed_ns;	    /* waits that are not paid yet */
	/* end of the process's first GOVERNOR_PEAK_NS (0: none), and its waits for vaprod in that time */
	uint64_t first_until_ns;
	double lent_ns;
	bool looked; /* there was a look since it was opened or adjusted */
};

void governor__open_account(const struct governor *governor, struct governor_account *account, uint64_t now_ns);

/* Resets the rates of an account after its probes were closed or opened: earlier costs predict nothing. */
void governor__adjusted(struct governor_account *account);

/*
 * Returns what is to be charged for waits for vaprod since the last charge and what is owed of earlier ones, which
 * fewer probes would spare the process only in part: at most a share of the rate. The account owes the rest, which is
 * charged later, or paid from what is saved up beyond the allowance of the first moments.
 */
double governor__held(const struct governor *governor, struct governor_account *account, uint64_t now_ns,
		      double held_ns);

/*
 * Begins the first GOVERNOR_PEAK_NS of a process: waits for vaprod, most of them for its attachment, are paid from the
 * allowance of all of this time.
 */
void governor__begin_first(struct governor_account *account, uint64_t now_ns);

/*
 * Charges waits for vaprod in the first seconds. They are paid by the end of these seconds, and are no reason to close
 * probes, which would not spare the process any of them.
 */
void governor__held_first(struct governor_account *account, double held_ns);

/*
 * Returns the rate at which a process may spend for the rest of its first seconds, so that waits for vaprod are paid by
 * their end; after the first seconds the rate of all processes.
 */
double governor__rate_left(const struct governor *governor, const struct governor_account *account, uint64_t now_ns);

/*
 * Charges what a process spent since the last call. True where it will have overdrawn by the time that
 * closing its probes takes effect.
 */
bool governor__charge(const struct governor *governor, struct governor_account *account, uint64_t now_ns,
		      double spent_ns);

/* Returns the credit less what is owed. */
static inline double governor__savings(const struct governor_account *account)
{
	return account->credit_ns - account->owed_ns;
}

/* Returns whether an account overspends and its savings last for a moment only: then it is charged often. */
bool governor__is_close(const struct governor *governor, const struct governor_account *account);

/* The load of one process's calls while its probes were open. */
struct governor_load {
	double open_ns;
	double cost_ns;	  /* cost of all calls */
	double pauses_ns; /* part of it: what hits cost more since they follow pauses */
	double pauses;	  /* number of these pauses, if all cost as much as the longest */
	double entries;
	double calls[KERNEL_SPANS];   /* calls by octave of the span of their states */
	double time_ns[KERNEL_SPANS]; /* time of these calls, entry to entry */
	double return_ns;	      /* saving of a suppressed return; 0 = none can be suppressed */
	unsigned thin;		      /* octaves whose returns were suppressed meanwhile */
};

struct governor_plan {
	unsigned thin;	/* octaves to suppress from now on */
	double cost;	/* share of the process's time, while open */
	double saved;	/* share of time saved by suppression */
	double covered; /* share of calls' time that is covered */
	double open;	/* share of time that can be afforded; 1 = always */
};

/* Returns the plan for a load, the present one where the load is empty. */
struct governor_plan governor__plan(const struct governor *governor, const struct governor_load *load);

/* Returns the share of calls' time that is covered while the returns of so many octaves are suppressed. */
double governor__covered(const struct governor_load *load, unsigned thin);

/* The steps of one process. */
struct governor_steps {
	unsigned thin;
	uint64_t changed_ns; /* 0 = never */
};

/*
 * Takes the plan's step for a process, or with hysteresis one back. Where its account is overdrawn the plan pays that
 * back, and more is suppressed a second after the last step at the earliest instead of GOVERNOR_STEP_NS. Returns true
 * where steps->thin changed, and *plan shows why.
 */
bool governor__step(const struct governor *governor, struct governor_steps *steps, const struct governor_load *load,
		    bool overdrawn, uint64_t now_ns, struct governor_plan *plan);

/*
 * Returns whether an overdrawn account can do without closing probes, since what it owes keeps inside the cap: a step
 * was taken just now, or the load so far keeps the budget by its plan, so that the debt comes from a burst; or whatever
 * it owes, since the load is far below the budget.
 */
bool governor__can_wait(const struct governor *governor, const struct governor_account *account,
			const struct governor_steps *steps, const struct governor_plan *plan, uint64_t now_ns);

/* The functions that are left out of an image: a bitmap of units (functions__unit()). */
#define GOVERNOR_UNITS 16
#define GOVERNOR_KEEP_NS 60000000000ULL /* least time that a set stays */

struct governor_set {
	uint32_t without;
	double ratio;	      /* cost of the units left out to that of the rest, at the decision */
	uint64_t changed_ns;  /* 0 = never */
	uint64_t restored_ns; /* time when all units were probed again; 0 = never */
	unsigned level;	      /* the set stays 2^level times as long: units had to be left out again soon */
};

/*
 * Turns the units' shares of a load's calls into shares of its cost that it saves to leave them out. What a hit costs
 * more after a pause is not saved where another call follows the pause then: each call of the rest may follow one.
 */
void governor__saved_shares(const struct governor_load *load, double shares[GOVERNOR_UNITS]);

/*
 * Leaves out more where the most expensive process costs so much: units by their shares of its cost, the greatest
 * first, until the rest keeps the budget with a margin. Leaves out nothing where that makes little difference.
 * Returns whether the set has changed.
 */
bool governor__leave_out(const struct governor *governor, struct governor_set *set, const double shares[GOVERNOR_UNITS],
			 double cost, uint64_t now_ns);

/*
 * Empties the set where all units may be probed again: with them the most expensive process, which costs so much
 * without, would keep the budget with a margin, and the set is old enough. Returns whether the set was emptied.
 */
bool governor__restore(const struct governor *governor, struct governor_set *set, double cost, uint64_t now_ns);

/* Takes units out of a set that were left out to no avail. Returns how long the next set stays, ns. */
uint64_t governor__undo(struct governor_set *set, uint32_t units, uint64_t now_ns);

/* The duty cycle of probes or of system calls. */
struct governor_duty {
	uint64_t closed_until_ns; /* 0 = open */
	uint64_t opened_ns;	  /* time of the last opening */
	uint32_t count;		  /* closed periods so far */
};

/*
 * Closes until the worst account, which has so much and costs such a share of time, would have saved up most of its
 * room; at first only what a short open period needs, and each time twice as much: what was seen in a disturbed moment
 * is soon looked at again. At least for a second, and for GOVERNOR_OPENING_NS where the account is overdrawn by so much
 * that a second burst like it might exceed the cap.
 */
void governor__close(struct governor *governor, struct governor_duty *duty, uint64_t now_ns, double cost,
		     double credit_ns);

/*
 * Closes after expensive functions were left out. rest: the cost of all other functions, as a share of time, below the
 * rate. Probes are opened again as soon as the rate without that cost pays back the debt within GOVERNOR_PEAK_NS.
 */
void governor__close_for_rest(const struct governor *governor, struct governor_duty *duty, uint64_t now_ns, double rest,
			      double credit_ns);

/* Returns the savings with which probes of such a cost are opened for a period: at most the room. */
double governor__period_ns(const struct governor *governor, double cost);

/* Returns true once, when a closed period is over. */
bool governor__is_due(struct governor_duty *duty, uint64_t now_ns);

/* Returns the span below which returns are suppressed, for a number of octaves. */
static inline uint64_t governor__thin_ns(unsigned octaves)
{
	return octaves ? 1024ULL << octaves : 0;
}

#endif
