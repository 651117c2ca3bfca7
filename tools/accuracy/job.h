/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Synthetic MPI jobs whose slow ranks are known, to measure the findings of the analysis. A job is a
 * program (steps that every rank repeats), an arrangement of ranks on hosts, and effects: faults and
 * changes that only look like one. The simulation is exact: each rank has its own clock, calls wait for those
 * they depend on, so waiting arises as it does in reality. The truth is the cost of the faults
 * there, computed without the analysis. Deterministic: equal jobs give equal events.
 *
 * Times are seconds since the job's start unless a name ends in _ns.
 */
#ifndef VAPRO_ACCURACY_JOB_H
#define VAPRO_ACCURACY_JOB_H

#include <stddef.h>

#include <vapro/analysis.h>
#include "capture/stream.h"

#define JOB_BEGIN_NS 1800000000000000000ULL /* UTC, a bin border */
#define JOB_MONO_NS 100000000000ULL	    /* the same moment, CLOCK_MONOTONIC */
#define JOB_LEAST_LOST_S 0.1		    /* of a fault that is demanded: own loss */
#define JOB_STEPS 16
#define JOB_EFFECTS 12
#define JOB_FAULTS 6
#define JOB_MODES 2 /* enum vapro_workload_source */

enum step_kind {
	STEP_COMPUTE,
	STEP_EXCHANGE,	 /* MPI_Sendrecv with rank - 1 and rank + 1, in a ring */
	STEP_COLLECTIVE, /* MPI_Allreduce: all wait for the last */
	STEP_WRITE,	 /* write() to a file, no waiting */
};

/* One state of the program. */
struct job_step {
	enum step_kind kind;
	double ns;	/* of a computation or a write, undisturbed; of a call its transfer, without waiting */
	double bytes;	/* of calls */
	double memory;	/* share of a computation that waits for memory */
	unsigned every; /* only in each so many-th iteration; 0: in all */
	/* of programs with a shape of their own: */
	const char *function, *comm; /* of a call, its communicator's number in each process; NULL: MPI's usual, "0" */
	int after, before;	     /* of a computation: calls before and behind it, from 1; 0: this step, the next */
	double scatter;		     /* of calls: sigma of their log-normal transfers */
	double asleep;		     /* share of a computation in which the rank sleeps until a device has finished */
};

struct job;
struct draw;

enum ranks_of { RANKS_ALL, RANKS_RANGE, RANKS_HOST, RANKS_SOCKET, RANKS_SECOND_SOCKETS /* of all hosts */ };

/* A set of ranks: first..last, all of hosts first..last, or all of sockets first..last (over all hosts). */
struct job_ranks {
	enum ranks_of of;
	int first, last;
};

enum effect_kind {
	EFFECT_SLOW,	  /* computations take `factor` times as long on their CPU, for no reason that is reported */
	EFFECT_FREQUENCY, /* the same, and the machine reports its lower frequency */
	EFFECT_DRIFT,	  /* the same, silent; rises from 1 at begin to `factor` at end */
	/*
	 * Something else has the CPU. With factor > 1 both share it in slices of `length` s (0: 4 ms), so
	 * that everything takes about `factor` times as long. With a period, only in the first `share` of
	 * each period; with a period and factor <= 1, it has all of that part.
	 */
	EFFECT_CPU_BUSY,
	EFFECT_STALLS, /* at begin, and then every `period`, one rank of the set stands still for `length` s */
	EFFECT_MOVING, /* the same, but what falls into a call's waiting costs nothing; all are one fault */
	EFFECT_SLEEP,  /* each computation ends with `length` s of sleep */
	EFFECT_CALLS,  /* transfers and writes take `factor` times as long */
	EFFECT_WORK,   /* `factor` times the work: time and instructions */
	EFFECT_GROUPS, /* `share` of the computations have `factor` times the work; with `alike` in all ranks the same
			*/
	EFFECT_TAILS,  /* `share` of the computations take up to `factor` times as long, silent */
	EFFECT_LUCKY,  /* one computation takes `factor` of its time */
	EFFECT_COLD,   /* the first `share` members of each computation take up to `factor` times as long */
	EFFECT_GROWTH, /* work (time and instructions) rises from its usual at begin to `factor` times that at end */
	EFFECT_DEVICE, /* the sleep for a device takes `factor` times as long */
	EFFECT_HITS,   /* calls of a rank take `length` s longer, each `period` s on average, at random */
};

struct job_effect {
	enum effect_kind kind;
	struct job_ranks ranks;
	double begin, end; /* end 0: for ever */
	double factor, share, period, length;
	uint32_t steps;		 /* bit per step; 0: all of the kind that the effect has to do with */
	enum vapro_factor cause; /* what it is reported as; of CPU_BUSY, STALLS and MOVING 0 is VAPRO_PREEMPTED */
	bool reported;		 /* `cause` is attributed by the kernel; of EFFECT_SLOW: the counter that it shows in */
	bool alike;
	enum vapro_factor second; /* of EFFECT_SLOW: where `share` of what it costs shows */
	int fault;		  /* number of the job's fault that it belongs to, from 1; 0: it is none */
};

/* What the analysis should say of a fault. */
enum finding {
	FINDING_NONE,	  /* nothing is demanded, but what is said of it is not wrong */
	FINDING_ALARM,	  /* a variance with alarm and severity warning or critical */
	FINDING_PLACE,	  /* a variance of confidence `place`, or an imbalance, with the set of ranks */
	FINDING_DRIFT,	  /* a drift record */
	FINDING_REPORTED, /* a variance of any confidence that does not blame late ranks */
};

struct job_fault {
	enum vapro_class class;
	enum finding expected[JOB_MODES]; /* by enum vapro_workload_source */
	bool vague;			  /* it has no sharp begin and loss to be compared with */
};

/* What is random in a healthy machine, beside `jitter` and the effects. All of it is silent; 0: none. */
struct job_noise {
	double heavy;		 /* sigma of log-normal computations */
	double pareto;		 /* exponent of the tail of 2 % of the computations */
	double wander, wander_s; /* speed of a rank as AR(1): standard deviation, correlation time */
	double wave, wave_s;	 /* of a host's temperature: amplitude, period */
	double steps, steps_s;	 /* a host's frequency takes another step of up to `steps`, each so often */
	double warm, warm_s;	 /* all computations have `warm` times the work at first: a JIT */
	double alternates;	 /* every second computation takes so many times as long at equal instructions */
	double locality;	 /* a rank's computations take up to so many times as long, by where its data lies */
	double counters;	 /* standard deviation of counted instructions */
	double calls, writes;	 /* sigma of log-normal transfers and writes */
};

/* When ranks are observed, where that is not always: the last ranks only. */
struct job_watch {
	int first;	    /* rank from which on this holds */
	double from, until; /* until 0: to the end; from = until > 0: never */
};

struct sim;

/* A program of its own: how its ranks move. */
struct shape {
	const char *name;
	void (*prepare)(struct job *job, struct draw *draw); /* ranks, hosts, steps */
	void (*run)(struct sim *sim);			     /* until the job's end */
};

struct job {
	const char *kind;    /* of case */
	const void *variant; /* of case */
	const char *place;   /* "block" or "cyclic", for the record; NULL */
	uint64_t seed;
	int ranks, hosts; /* block: host = rank * hosts / ranks */
	bool cyclic;	  /* host = rank % hosts */
	double seconds;
	double jitter; /* standard deviation of a computation's time, relative */
	struct job_step steps[JOB_STEPS];
	int step_count;
	struct job_effect effects[JOB_EFFECTS];
	int effect_count;
	struct job_fault faults[JOB_FAULTS];
	int fault_count;
	struct job_ranks second_core; /* these have another core type, where `core_types` */
	bool core_types;
	int skewed_host; /* its clock is skew_s ahead of the others' */
	double skew_s;
	double clock_error_s;	   /* all hosts say that their clocks are at most so far off; 0: they say nothing */
	const struct shape *shape; /* NULL: ranks repeat the steps one after the other */
	int columns;		   /* of a grid of ranks */
	int iterations;		   /* after which the program ends; 0: it goes on */
	double varies;		   /* sigma of what the program itself draws: the sizes of tasks, blocks, lengths */
	struct job_noise noise;
	struct job_watch watch;
	bool few;  /* faults are demanded although few fragments were seen before */
	bool bulk; /* bundles are drawn bin by bin, not from fragments: for jobs of many ranks and short fragments */
};

/* A fault as it was simulated. */
struct truth {
	int fault; /* index into the job's */
	enum vapro_class class;
	enum finding expected;
	bool vague;
	bool stall;	  /* one rank stood still once */
	bool unsupported; /* there was no reference before it */
	int32_t *ranks;	  /* ascending, those that lost something */
	uint32_t rank_count;
	double begin, end;  /* first and last moment that was lost */
	double first, last; /* begin of the first fragment with a loss, end of the last */
	double shown;	    /* end of the last one that had ended, or lost JOB_LEAST_LOST_S, by the end of the run */
	double judged;	    /* begin of the first that is no warm-up and above the bar; INFINITY: none */
	double fragment;    /* longest fragment with a loss, as it would have been without */
	double lost[VAPRO_CLASSES]; /* own time of these ranks, not others' waiting for them */
	double base;		    /* undisturbed duration of the disturbed fragments */
	double attributed;	    /* of lost: what the kernel reports */
	double batches;		    /* of references before it */
	double hits;		    /* of EFFECT_HITS: calls that were hit */
	enum vapro_factor cause;    /* VAPRO_FACTORS: silent */
};

struct truths {
	struct truth *items;
	size_t count;
};

/* Sums of a simulation, for its own tests and the record. */
struct job_totals {
	uint64_t bundles, fragments, open;
	double fragment_seconds; /* of all ranks' fragments up to the end */
	double elapsed_seconds;	 /* of all ranks */
};

/*
 * Simulates a job and puts its events into the sink, in the order of a capture, with STREAM_END but
 * without hello; windows of window_s with the daemon's stride. The sink stays open. truths is to be
 * freed with truths__free(). Returns 0 or a negative errno (the sink's, too).
 */
int job__run(const struct job *job, enum vapro_workload_source source, double window_s, struct stream_sink *sink,
	     struct truths *truths, struct job_totals *totals);

void truths__free(struct truths *truths);

/* Whether a rank belongs to a set, and where it runs. */
bool job__has(const struct job *job, const struct job_ranks *ranks, int rank);
int job__host(const struct job *job, int rank);
int job__socket(const struct job *job, int rank); /* over all hosts, two a host */

/*
 * The usual program: compute-bound, exchange, memory-bound, (write,) allreduce. length_ns is the first
 * computation's; `calls` is the transfers' share of it; writes > 0: a write of that share of it.
 */
enum { JOB_COMPUTE, JOB_EXCHANGE, JOB_MEMORY, JOB_ALLREDUCE, JOB_WRITE };
void job__program(struct job *job, double length_ns, double calls, double writes);

/* Adds an effect or a fault and gives access to it. */
struct job_effect *job__effect(struct job *job, enum effect_kind kind, double begin, double end, double factor);
struct job_effect *job__fault(struct job *job, enum vapro_class class, enum finding counts, enum finding arguments,
			      enum effect_kind kind, double begin, double end, double factor);

#endif
