/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Declarations that only the enforcer's own files share. */
#ifndef VAPRO_ENFORCER_PRIVATE_H
#define VAPRO_ENFORCER_PRIVATE_H

#include "overhead/enforcer.h"
#include "overhead/ledger.h"

/*
 * What the threads of a process waited for a CPU that vaprod had: the kernel side sums the waits of all threads, each
 * with what others had of that CPU meanwhile. In each second they cost the process no more than vaprod's CPU time in
 * it, and only the part that vaprod ran for processes of its owner. The rest costs those for whom it ran.
 */
struct waits_for_vaprod {
	uint64_t summed_ns; /* sum of the kernel side at the begin of this second */
	double ran_ns;	    /* vaprod's CPU time in this second before the process was there */
	uint64_t before_ns; /* cost before this second */
	uint64_t cost_ns;   /* cost up to the last charge */
};

/*
 * What a process pays while its probes are open, but for functions that have exits of their own: its calls, and its
 * waits for vaprod without those of its first GOVERNOR_PEAK_NS. Most of these are for its attachment; those that
 * come after the attachment are no cost of the calls, but such waits will go on, and limit other functions.
 */
struct calls_cost {
	uint64_t attached_ns;	 /* time from which waits are not for the attachment */
	uint64_t waits_from_ns;	 /* time from which waits count in cost_ns */
	double open_ns, cost_ns; /* since the share was updated */
	double early_waits_ns;	 /* waits from attached_ns to waits_from_ns, since the share was updated */
	double share;		 /* of the process's time, smoothed; 0: not known yet */
};

/* The governor's state for one process. */
struct governed {
	struct enforcer_process process; /* exe is the one below */
	char exe[512];
	struct image_duty *duty; /* of its image; NULL: none, or the process has ended */
	struct governed *next, *next_of_image;
	bool ended;
	struct governor_account account;
	struct governor_steps steps;
	struct governor_duty io; /* duty cycle of system calls */
	struct kernel_counters charged;
	uint64_t charged_io;
	struct waits_for_vaprod waits;
	struct ledger_entry ledger;
	uint64_t paid_waits_ns; /* part of waits.cost_ns that was charged to the account */
	double free_waits_ns;	/* first waits that are not charged: an image's first attachment costs more */
	uint64_t spent_ns;	/* cost of hits to its busiest thread so far */
	uint64_t paid_ns;	/* part of spent_ns that was charged to the account */
	uint64_t reported_ns;	/* cost of all kinds in windows that ended */
	struct calls_cost calls_cost;
	struct governor_load load; /* load since load_ns; load_* below: counters at load_ns */
	double others_ns;	   /* part of the load's cost that links for all processes would save */
	uint64_t load_ns, load_calls, load_io, load_thinned_io;
	uint64_t calls[KERNEL_SPANS], time_ns[KERNEL_SPANS];
	double cost;	     /* cost of the last load, share of the process's time */
	double covered;	     /* share of its calls' time whose returns are not suppressed; 0: not known yet */
	bool looked;	     /* the check soon after the attachment was made */
	uint64_t checked_ns; /* last check of what could be left out, before the allowance is used up */
	uint64_t gap_ns;     /* begin of the time with unseen calls that is not counted yet; 0 = all is seen */
	uint64_t closed_ns;  /* time with unseen calls in this window */
	uint64_t thinned, thinned_ns, thinned_io; /* counts at the last window's end */
};

/* Units left out of an image for all nodes of a job, since another node needs that. */
struct followed_set {
	uint32_t without; /* some may be in the own set, too */
	double ratio;	  /* cost of those that are not to that of the rest, when they were left out */
	uint64_t until_ns[FUNCTIONS_UNITS]; /* 0: not requested */
	uint64_t changed_ns;		    /* 0: never */
	char why[ENFORCER_WHY];		    /* of the latest request */
};

/*
 * The covered share of time of an image's processes since a set began to hold, and what it is compared with. Time in
 * which probes are open is covered as far as the enforcer knows; the analysis says how much of it could be judged.
 */
struct coverage_watch {
	uint64_t since_ns, last_ns, closed_ns;
	double judged_ns, analysed_ns; /* what could be judged of the windows in this time, and these windows */
	double covered;		       /* in the last time that was watched; 0: none yet */
	uint32_t tried;		       /* units of functions that can wait, left out at since_ns */
	double before;		       /* covered share that is to be expected without that */
	double otherwise;	       /* the same without any unit of the set; 0: the set is older */
	uint32_t doubted; /* units that were probed again, or had been, to compare what can be judged with them */
	double judged;	  /* share of time that could be judged without these */
	uint32_t barred;  /* units that stay probed until barred_ns: leaving them out lowered the covered time */
	uint64_t barred_ns;
};

/* An image's probes: the functions left out, and the duty cycle. */
struct image_duty {
	const struct attached_image *image;
	const char *path;
	struct image_duty *next;
	struct governed *first;	 /* process of the image */
	struct governor_set set; /* what this node needs */
	struct followed_set followed;
	struct coverage_watch watch;
	uint64_t counted_ns; /* begin of the count of calls, for the shares of functions */
	struct governor_duty cycle;
	bool closed; /* its functions that are called most, or all, are not seen at present */
	bool reported;
	double cost;	   /* share of time that all its functions cost when they were closed last; 0: never */
	unsigned unopened; /* runs of the program so far at whose end they had not been opened once */
};

/* What of a program's image was too expensive when its owner's last process ended. */
struct former_run {
	char exe[512], image[512];
	uid_t owner;
	uint64_t ended_ns; /* 0: not in use */
	struct governor_set set;
	struct functions_spared spared; /* costly functions only */
	double cost;			/* as of struct image_duty */
	unsigned unopened;
};

#define FORMER_RUNS 8

struct enforcer {
	struct ledger ledger;
	uint64_t second_ns; /* begin of the ledger's second */
	struct governor governor;
	const struct costs *costs;
	struct enforcer_ops ops;
	void *ctx;
	struct governed *governed; /* a list, and so below */
	struct image_duty *duties;
	struct former_run former[FORMER_RUNS];
};

/* Returns the units that are not probed at present. */
static inline uint32_t enforcer__without(const struct image_duty *duty)
{
	return duty->set.without | duty->followed.without;
}

void enforcer__warn(const struct enforcer *enforcer, const char *code, pid_t pid, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Charges a process's account. Returns true where the process overdraws. */
bool enforcer__charge(const struct enforcer *enforcer, struct governed *governed, uint64_t now_ns);

/* Returns how many other processes have links of their own at the sites of a process's calls. */
uint32_t enforcer__others(const struct enforcer *enforcer, const struct governed *governed);

/*
 * Adds hits while probes are open to the load and to the cost of calls. others: processes with links of their own at
 * the same sites; busiest: the part of a process's busiest thread.
 */
void enforcer__add_hits(struct governed *governed, const struct costs *costs, const struct kernel_counters *delta,
			uint32_t others, double busiest);

/* Limits functions with exits of their own to what calls and waits of a process left of the budget, now and then. */
void enforcer__limit_rows(const struct enforcer *enforcer, struct governed *governed, uint64_t now_ns);

/* Raises a process's probe epoch, which resets its threads. unseen: some calls are not seen from now on. */
void enforcer__advance_epoch(struct governed *governed, bool unseen);

/* Adds the time up to now in which calls were unseen to the window's; goes_on: calls still are unseen. */
void enforcer__count_gap(struct governed *governed, uint64_t now_ns, bool goes_on);

/* As above, by what is closed at present. */
void enforcer__refresh_gap(struct governed *governed, uint64_t now_ns);

/* Starts a new interval over which the cost of a process's calls is measured. */
void enforcer__begin_load(struct governed *governed, uint64_t now_ns);

/* Formats the interval's load: "process 12 (lmp): 31000 calls/s cost 2.9 % of its time". */
void enforcer__describe_load(const struct governed *governed, char *text, size_t size);

/* Returns the record of an image, made at first sight; NULL when out of memory. */
struct image_duty *enforcer__duty_of(struct enforcer *enforcer, const struct attached_image *image, const char *path);

/* Forgets an image that no process maps any more. */
void enforcer__forget_image(struct enforcer *enforcer, struct image_duty *duty);

/* Prepares a change of an image's links: while they are changed, calls are seen only in part. */
void enforcer__begin_change(struct image_duty *duty, uint64_t now_ns);

/*
 * Charges an image's processes once its links have changed, and begins their measurements, since earlier costs predict
 * nothing. Returns the time.
 */
uint64_t enforcer__end_change(const struct enforcer *enforcer, struct image_duty *duty);

/* Has an image linked for all processes where links for each are much of the cost. Returns whether it costs less. */
bool enforcer__share(const struct enforcer *enforcer, struct governed *governed);

/* Ends the learning of polling calls where these make a process overdraw. Returns whether it costs less by that. */
bool enforcer__end_learning(const struct enforcer *enforcer, const struct governed *governed, uint64_t now_ns);

/* Closes the most expensive probes of a process's image, or all that are still open, since the process overdraws. */
void enforcer__close_image(struct enforcer *enforcer, struct governed *worst, uint64_t now_ns);

/* Opens an image's probes, or ends its duty cycle, when it is time for that. */
void enforcer__cycle_image(struct enforcer *enforcer, struct image_duty *duty, uint64_t now_ns);

/* Reads a process's calls by span into its load. */
void enforcer__read_spans(const struct enforcer *enforcer, struct governed *governed);

/*
 * Watches the covered share of time of an image's processes. Functions that can wait and were left out are probed again
 * where it has fallen.
 */
void enforcer__watch_coverage(struct enforcer *enforcer, struct image_duty *duty, uint64_t now_ns);

/*
 * Leaves functions that hardly ever wait out of the image of a process that costs too much. Returns whether there were
 * any: then it costs less from now on.
 */
bool enforcer__leave_out(struct enforcer *enforcer, struct governed *governed, uint64_t now_ns);

/*
 * Leaves functions that hardly ever wait out of an image that was closed for the cost of its worst process, where all
 * other functions keep the rate: a burst of posts does not hide these for long. cost: of the calls, as a share of the
 * process's time; excess: that cost in words. Returns whether functions were left out: then the closed period is set.
 */
bool enforcer__leave_out_closed(struct enforcer *enforcer, struct governed *worst, double cost, const char *excess,
				uint64_t now_ns);

/* Remembers what is left out of an image and closed when its last process ends, for the program's next run. */
void enforcer__remember(struct enforcer *enforcer, const struct image_duty *duty, const struct governed *last,
			uint64_t now_ns);

/* Begins with what an earlier run of the program of an image's first process had, see enforcer__former(). */
void enforcer__recall(struct enforcer *enforcer, struct image_duty *duty, const struct governed *first,
		      uint64_t now_ns);

/* Says that probes of an image could not be opened again; status: -errno of the first of them. */
void enforcer__warn_unopened(const struct enforcer *enforcer, const struct image_duty *duty, int status);

/* Leaves out what is requested for all nodes of a job, and probes again what is not requested any more. */
void enforcer__carry_out_requests(struct enforcer *enforcer, struct image_duty *duty, uint64_t now_ns);

/* Calls enforcer__leave_out() where a process is over its budget, though its allowance lasts for a while. */
bool enforcer__leave_out_early(struct enforcer *enforcer, struct governed *governed, uint64_t now_ns);

/* Probes functions that were left out again where all processes of the image can afford that. */
void enforcer__probe_again(struct enforcer *enforcer, struct image_duty *duty, uint64_t now_ns);

#endif
