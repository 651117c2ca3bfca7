/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which of many runs of a program are outlying, and which hosts, ranks and states in them. Each run is compared with
 * one of them, as two runs are (compare.h); what is judged is each rank's time for equal work in each state over the
 * median of the runs (of the hosts, where five or more had the rank). An outlying run, host, rank or state lies
 * further from that median than the threshold, and further than chance explains by the spread of the runs.
 */
#ifndef VAPRO_RUNS_H
#define VAPRO_RUNS_H

#include "compare/compare.h"
#include "model/judgement.h"

enum { RUNS_LEAST = LEAST_RANKS }; /* compared runs below which none is called outlying */
enum { RUNS_PROGRAM_SIZE = 128 };  /* bytes of a program's name */

enum runs_use {
	RUNS_COMPARED,
	RUNS_OTHER_PROGRAM,
	RUNS_OTHER_RANKS,  /* another number of ranks: the work of each may differ */
	RUNS_INCOMPARABLE, /* too short, or nothing in common */
};

struct runs_run {
	const char *name; /* the caller's */
	const struct profile *profile;
	enum runs_use use;
	char program[RUNS_PROGRAM_SIZE]; /* "" unknown */
	uint32_t ranks, hosts;
	const char *host;      /* the first one */
	double seconds;	       /* from the first to the last fragment */
	double time_ratio;     /* of seconds, to the median of the compared runs */
	double work_ratio;     /* time for equal work, to that of the median run; NAN where not compared */
	double calls_ratio;    /* number of fragments, to the median of the compared runs */
	double time_p, work_p; /* adjusted probability of lying so far away by chance */
	bool time_outlying, work_outlying;
};

enum runs_what { RUNS_HOST, RUNS_RANK, RUNS_STATE, RUNS_WHATS };

/* What is outlying in a run. */
struct runs_row {
	enum runs_what what;
	uint32_t run;		   /* index; of several the one that is furthest away */
	uint32_t in_runs, of_runs; /* compared runs in which it is outlying, and in which it was seen */
	const char *host;	   /* of a host or rank; of a state of one host, else NULL */
	int32_t rank;		   /* of COMPARE_RANKS, COMPARE_PROCESSES or COMPARE_THREADS; -1: a host or state */
	const struct vapro_state *state; /* of a state, and the worst one of others */
	uint32_t states, of_states;	 /* in which it is outlying in the same direction, and that were compared */
	double ratio;			 /* time for equal work over that of the median run; median of its runs */
	double state_ratio;		 /* that of the state alone */
	double p;			 /* adjusted */
	double seconds; /* what it lasted longer in all its outlying runs, over its ranks; negative: less */
};

struct runs {
	struct runs_run *runs;
	uint32_t count, compared;
	uint32_t base;	       /* the run that the others were compared with */
	struct runs_row *rows; /* by what, most seconds first */
	size_t row_count, row_capacity;
	double median_s; /* of the compared runs */
	double spread;	 /* robust standard deviation of their time, relative */
	double threshold;
	enum compare_unit_kind unit_kind;
	bool by_instructions; /* work is counted in all compared runs */
	bool rebuilt;	      /* builds of the program or its libraries differ */
};

struct runs_input {
	const char *name;
	const struct profile *profile; /* ended */
};

/*
 * Compares runs; names and profiles must outlive the result, which is to be cleared in any case. program: compares
 * its runs only; NULL: those of the program with most runs. Returns 0, -ENODATA with a sentence in err where fewer than
 * two runs can be compared, or -ENOMEM.
 */
int runs__compare(struct runs *result, const struct runs_input *inputs, uint32_t count, double threshold,
		  const char *program, char *err, size_t err_size);
void runs__clear(struct runs *result);

/* Robust standard deviation, from the median of absolute deviations; -1 when out of memory. */
double runs__spread(const double *values, uint32_t count);

/*
 * The probability that one of `count` normal values lies so far from their median by chance, where their spread is the
 * robust one: Student's, with as many degrees of freedom as such a spread of so few values has. 1 of too few values.
 */
double runs__chance(double deviation, double spread, uint32_t count);

#endif
