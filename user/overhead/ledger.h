/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What vaprod's CPU time was spent for, by owner of the processes (struct process) and by process: drained records are
 * divided by their number, the analysis of a window by the states that it visits, and the reading of a process and its
 * images belongs to that process's owner. Who waits for a CPU that vaprod has pays for what the same owner made vaprod
 * run; the rest is billed to those who made it run. Pure: times are arguments.
 */
#ifndef VAPRO_LEDGER_H
#define VAPRO_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct kernel_counters;

struct ledger_owner {
	uid_t uid;
	size_t processes;
	double ran_ns;	  /* of vaprod, for this owner, so far */
	double before_ns; /* ran_ns at the begin of this second */
	double worked_ns; /* of this second: for its processes, the sum of theirs */
	double bill_ns;	  /* waits of others in this second that the owner caused */
	struct ledger_owner *next;
};

/* A process. What it points to is read at each division of time. */
struct ledger_entry {
	struct ledger_owner *owner; /* NULL: none */
	const uint64_t *records;    /* of the process, drained so far; NULL: not counted */
	const struct kernel_counters *counters;
	uint64_t divided; /* records at the last division */
	uint64_t states;  /* most entries of the tables since the last window */
	double worked_ns; /* of this second */
	double weight;	  /* in the present division */
	struct ledger_entry *next;
};

/* All zeros, but for read_ns: an empty ledger. */
struct ledger {
	struct ledger_owner *owners;
	struct ledger_entry *entries;
	uint64_t read_ns; /* vaprod's CPU time up to here is divided */
	double ran_ns, before_ns;
};

/* Enters a process; its owner, counters and records are set by the caller after that. 0 or -ENOMEM. */
int ledger__enter(struct ledger *ledger, struct ledger_entry *entry, uid_t owner, const uint64_t *records,
		  const struct kernel_counters *counters);
void ledger__leave(struct ledger *ledger, struct ledger_entry *entry);

/* What vaprod ran since the last call, up to cpu_ns of its CPU time, was for: */
void ledger__by_records(struct ledger *ledger, uint64_t cpu_ns); /* all that was drained */
void ledger__by_states(struct ledger *ledger, uint64_t cpu_ns);	 /* a window */
void ledger__for(struct ledger *ledger, uint64_t cpu_ns, uid_t owner);

/* Returns what vaprod ran for an owner so far; 0 where it has no process. */
double ledger__caused(const struct ledger *ledger, uid_t owner);

/* Returns vaprod's time in this second, and the owner's share of it (1 where vaprod did not run). */
double ledger__ran(const struct ledger *ledger);
double ledger__share(const struct ledger *ledger, const struct ledger_owner *owner);

/* Bills a wait in this second to the other owners, by what they made vaprod run. */
void ledger__bill(struct ledger *ledger, const struct ledger_owner *owner, double waited_ns);

/* Returns what of its owner's bill a process pays: at most what it made vaprod run. */
double ledger__due(const struct ledger_entry *entry);

/* Begins a second. */
void ledger__begin(struct ledger *ledger);

#endif
