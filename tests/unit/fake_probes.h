/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Programs of simulated call rates under the overhead enforcer, and what stands below it: links that take time to
 * change, and the kernel side's counters. Probes slow a program down, so that it calls less. Deterministic.
 */
#ifndef VAPRO_FAKE_PROBES_H
#define VAPRO_FAKE_PROBES_H

#include "overhead/enforcer.h"

#define FAKE_SECOND 1000000000ULL
#define FAKE_LOOK (FAKE_SECOND / 100) /* the loop's shortest iteration */
#define FAKE_CHANGE 4		      /* looks until closed links are gone, at first */
#define FAKE_ENTRY_NS 450.0
#define FAKE_RETURN_NS 300.0
#define FAKE_SYSCALL_NS 500.0
#define FAKE_BYSTANDER_NS 100.0
#define FAKE_BESIDE_NS 40.0
#define FAKE_POLLS 400000 /* a second */
#define FAKE_PROCESSES 12
#define FAKE_WARNINGS 64

/* The functions of the image: posts never wait and are unit 0; FAKE_SHORT has a unit where it is measured to be short.
 */
enum fake_function { FAKE_SHORT, FAKE_LONG, FAKE_POST, FAKE_FUNCTIONS };
#define FAKE_SHORT_UNIT 12

/* What a process does a second, when nothing is probed. */
struct fake_program {
	const char *exe; /* NULL: "program" */
	double calls[FAKE_FUNCTIONS];
	unsigned octaves[FAKE_FUNCTIONS]; /* of the spans of their states */
	double syscalls;
	double rows;	  /* calls of functions with exits of their own, which cost two entries */
	double held;	  /* share of its time for which vaprod has its CPU */
	unsigned waiting; /* threads that wait for it meanwhile; 0: one */
	uid_t owner;
	double records; /* that vaprod drains */
	bool spares_returns;
};

struct fake_process {
	const struct fake_program *program;
	struct governed *governed;
	struct kernel_counters counters;
	uint64_t records;
	struct kernel_governed orders;
	double part[FAKE_FUNCTIONS + 2]; /* of a call that is not complete */
	double *spent;			 /* cost in each look, waits for vaprod included, ns */
	double reported, time;		 /* time of calls: recorded, and all */
	double covered_ns;		 /* time that is covered: all calls but those left out are seen and recorded */
	double unseen_ns;		 /* time while some of its calls were not seen */
	uint64_t last_step_ns, least_between_steps_ns;
	unsigned thin, steps_up, steps_back;
	double left_for_rows; /* share of its time that its calls leave; 0: not limited */
};

struct fake_warning {
	char code[32], text[512];
	pid_t pid;
};

struct fake {
	struct enforcer *enforcer;
	struct governor governor;
	struct costs costs;
	struct fake_process processes[FAKE_PROCESSES];
	size_t count;
	uint64_t now, next_pass;
	uint64_t ran_ns; /* CPU time of vaprod */
	size_t looks, room;
	bool open[FAKE_FUNCTIONS], costly[FAKE_FUNCTIONS];
	double counted[FAKE_FUNCTIONS]; /* cost of calls since counting began */
	uint32_t without;
	uint32_t others;		      /* processes that have links of their own at the same sites */
	bool strangers;			      /* the image cannot be linked for all */
	unsigned closings, openings, changes; /* of links */
	uint64_t last_opening, least_between_openings;
	double open_looks;
	unsigned change; /* looks until closed links are gone */
	bool brief;	 /* calls of FAKE_SHORT hardly ever wait */
	bool parted;	 /* FAKE_SHORT has links of its own */
	double instead;	 /* calls of FAKE_LONG that come for each of FAKE_SHORT while that is left out */
	bool again;	 /* the image was attached to before */
	bool polls;	 /* polling calls have most of the cost until their learning ends */
	bool detaching;	 /* closed links are not removed yet */
	bool still_hit;	 /* and their probes may be hit */
	bool rows_close; /* functions with exits of their own are to blame */
	unsigned row_closings;
	size_t resting; /* processes whose functions with exits of their own are closed, until then */
	uint64_t rest_until_ns;
	int refused;						/* status of the next opening */
	void (*on_change)(struct fake *fake, const char *what); /* called before links are changed */
	struct fake_warning warnings[FAKE_WARNINGS];
	size_t warning_count;
};

/* Begins with a bound of budget and cap, percent, for as many seconds at most; no process yet. */
void fake__begin(struct fake *fake, double budget_pct, double cap_pct, uint64_t seed, size_t seconds);
void fake__end(struct fake *fake);

/* Starts a process that maps the image. The program may be replaced later. */
struct fake_process *fake__start(struct fake *fake, const struct fake_program *program);

/* Runs the programs for a look, without the enforcer. */
void fake__look(struct fake *fake);

/* Runs programs and enforcer: it passes every 100 ms, every 10 ms where it is alert or hits wake it. */
void fake__run(struct fake *fake, double seconds);

/* Returns how many warnings have the code. */
unsigned fake__warned(const struct fake *fake, const char *code);

/* Returns the greatest cost of a process in any 5 s, and the mean since a second, as shares of time. */
double fake__peak(const struct fake *fake, const struct fake_process *process);
double fake__mean(const struct fake *fake, const struct fake_process *process, size_t from_second);

/* Returns the greatest mean from the begin to any time after so many seconds. */
double fake__greatest_mean(const struct fake *fake, const struct fake_process *process, size_t after_second);

#endif
