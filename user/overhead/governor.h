/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The bound on overhead: per process, hits times calibrated cost are paid from an allowance that
 * grows by the budget, a mean, and may be saved up as far as the cap allows, which bounds any 5 s.
 *
 * What a process costs beyond it is taken away in this order, and given back in reverse, at most one
 * step in 10 s:
 *  (a) functions that never wait are not probed, most expensive first, by all processes of an image and for at
 *      least a minute: all time stays covered, but the time between two calls that can wait is one computation,
 *      and what completions transfer is unknown;
 *  (b) the return half of calls in states whose span, entry to entry, is short: the entry's trap stays,
 *      the call and what follows it are no fragments. Short ones go first, since least time is lost;
 *  (c) polling calls and the functions of a site or a thread library (row_attacher.h);
 *  (d) where even entries are too dear, or returns cannot be let go: probes are closed and opened in
 *      turns, the dearest functions alone if that is enough. Closed spells are randomised, so that
 *      neither a periodic program nor other nodes keep step, and double while what is opened costs so
 *      much that a second of it cannot be afforded.
 * An allowance that is overdrawn closes at once: the cap holds whatever the plan was.
 *
 * Of several ways to keep the budget the one is taken that leaves most time covered: where all states
 * are equally short, to let them go leaves nothing to see, and turns show a share of everything.
 *
 * Pure: time, rates and cost come in as arguments. Costs and times are ns, shares 0..1.
 */
#ifndef VAPRO_GOVERNOR_H
#define VAPRO_GOVERNOR_H

#include <stdbool.h>
#include <stdint.h>
#include <vapro/kernel.h>

#define GOVERNOR_STEP_NS 10000000000ULL	  /* between two steps */
#define GOVERNOR_OPENING_NS 5000000000ULL /* between two openings */
#define GOVERNOR_PEAK_NS 5000000000ULL	  /* over which the cap holds */
#define GOVERNOR_GIVE_BACK 0.7		  /* of the budget must be enough before a step is taken back */

struct governor {
	double budget;	/* share of time, as it was asked for; 0 = no bound */
	double rate;	/* share that is spent: some is kept for what is not known */
	double room_ns; /* what may be saved up */
	uint64_t seed;
};

/* budget_pct: the mean; cap_pct: of any 5 s. 0 = none; without a cap there is no bound at all. seed: of the host. */
void governor__init(struct governor *governor, double budget_pct, double cap_pct, uint64_t seed);

/* The bound of a share of somebody's time, for what is closed alone. */
struct governor governor__of_share(double share);

/* A number of 0..1 from the governor's seed. */
double governor__random(struct governor *governor);

/* A seed that differs from host to host and from run to run. */
uint64_t governor__seed(const char *host, uint64_t time_ns);

/*
 * The share of a process's cost that its busiest thread has, which alone slows it down: of so many hits it had these,
 * by their weight. 1 where that is not known.
 */
double governor__busiest(uint64_t busiest, uint64_t hits);

/* Allowance of one process. */
struct governor_account {
	double credit_ns;
	uint64_t last_ns;
	double speed, mean; /* shares spent: at the last look, and over the last second or so */
};

void governor__open_account(const struct governor *governor, struct governor_account *account, uint64_t now_ns);

/* Its probes were closed or opened: what it spent until then tells nothing of what it will. */
void governor__turned(struct governor_account *account);

/*
 * Charges what a process spent since the last call. True where it will have overdrawn by the time that
 * closing its probes takes effect.
 */
bool governor__charge(const struct governor *governor, struct governor_account *account, uint64_t now_ns,
		      double spent_ns);

/* Whether it spends more than it gets, and what it has saved will last for a moment only: it has to be charged often.
 */
bool governor__is_close(const struct governor *governor, const struct governor_account *account);

/* What one process's calls were while its probes were open. */
struct governor_load {
	double open_ns;
	double cost_ns;		      /* all of it */
	double calls[KERNEL_SPANS];   /* by octave of the span of their states */
	double time_ns[KERNEL_SPANS]; /* of theirs, entry to entry */
	double return_ns;	      /* what letting a return go saves; 0 = that cannot be done */
	unsigned thin;		      /* octaves whose returns were let go meanwhile */
};

struct governor_plan {
	unsigned thin;	/* octaves to let go from now on */
	double cost;	/* share of the process's time, while open */
	double saved;	/* of that by letting go, against none */
	double covered; /* share of calls' time that is told */
	double open;	/* share of time that can be afforded; 1 = always */
};

/* The plan for a load, none other where it is empty. */
struct governor_plan governor__plan(const struct governor *governor, const struct governor_load *load);

/* The steps of one process. */
struct governor_steps {
	unsigned thin;
	uint64_t changed_ns; /* 0 = never */
};

/*
 * What to do next about a process: takes the plan's step, or with hysteresis one back. Returns true
 * where steps->thin changed, and *plan tells why.
 */
bool governor__step(const struct governor *governor, struct governor_steps *steps, const struct governor_load *load,
		    uint64_t now_ns, struct governor_plan *plan);

/* Which functions that never wait are left out of an image: a bitmap of units (functions__unit()). */
#define GOVERNOR_UNITS 16
#define GOVERNOR_KEEP_NS 60000000000ULL /* a set is kept for at least so long */

struct governor_set {
	uint32_t without;
	double ratio;	      /* cost of what is left out to that of the rest, when it was decided */
	uint64_t changed_ns;  /* 0 = never */
	uint64_t restored_ns; /* all were probed again; 0 = never */
	unsigned level;	      /* it is kept 2^level times as long: they had to be left out again soon */
};

/*
 * What more to leave out where the process that costs most costs so much: units by their shares of its cost, the
 * greatest first, until the rest keeps the budget with something to spare. Nothing where that does not make much of a
 * difference. Returns whether the set has changed.
 */
bool governor__leave_out(const struct governor *governor, struct governor_set *set, const double shares[GOVERNOR_UNITS],
			 double cost, uint64_t now_ns);

/*
 * Whether all may be probed again: with them the process that costs most, which costs so much without, would keep the
 * budget with something to spare, and the set was kept long enough. Then the set is empty.
 */
bool governor__restore(const struct governor *governor, struct governor_set *set, double cost, uint64_t now_ns);

/* Probes that are closed and opened in turns. */
struct governor_turns {
	uint64_t closed_until_ns; /* 0 = open */
	uint64_t opened_ns;	  /* last */
	unsigned level;		  /* the next spell is at least 2^level seconds */
	uint32_t count;		  /* spells */
};

/* Closes for long enough to pay back what the worst account lacks of its room. */
void governor__close(struct governor *governor, struct governor_turns *turns, uint64_t now_ns, double credit_ns);

/* What stays open overdraws as well, and was closed too: the spell goes on until that is paid back. */
void governor__prolong(const struct governor *governor, struct governor_turns *turns, uint64_t now_ns,
		       double credit_ns);

/* True once, when a spell is over. */
bool governor__is_due(struct governor_turns *turns, uint64_t now_ns);

/* The span below which returns are let go, for a number of octaves. */
static inline uint64_t governor__thin_ns(unsigned octaves)
{
	return octaves ? 1024ULL << octaves : 0;
}

#endif
