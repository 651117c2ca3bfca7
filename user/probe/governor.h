/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The hard cap on overhead: per process, hits times calibrated cost are paid from an allowance that
 * grows by the cap. Who overdraws it has the libmpi links closed until the debt is paid, for a spell
 * that is randomised so that periodic programs are not always seen in the same phase. Pure: time and
 * cost come in as arguments.
 */
#ifndef VAPRO_GOVERNOR_H
#define VAPRO_GOVERNOR_H

#include <stdbool.h>
#include <stdint.h>

struct governor {
	double cap;		  /* 0..1; 0 = no cap */
	uint64_t paused_until_ns; /* 0 = links are open */
	uint64_t seed;
	uint32_t pauses;
};

/* Allowance of one process. */
struct governor_account {
	double credit_ns;
	uint64_t last_ns;
};

void governor__init(struct governor *governor, double cap_pct, uint64_t seed);
void governor__open_account(struct governor_account *account, uint64_t now_ns);

/* Charges what a process spent since the last call; true when it overdrew and links should close. */
bool governor__charge(const struct governor *governor, struct governor_account *account, uint64_t now_ns,
		      double spent_ns);

/* Chooses how long links stay closed for the largest debt (ns of cost); at least a second. */
void governor__pause(struct governor *governor, uint64_t now_ns, double debt_ns);

/* True once when a pause is over. */
bool governor__resume(struct governor *governor, uint64_t now_ns);

#endif
