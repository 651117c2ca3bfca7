/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether system calls are worth tracing. Every system call of the node pays for it, also those of
 * processes that nobody watches (ARCHITECTURE section 2.4), so the calibrated price times the node's own
 * rate is held against what is learnt: the time that the watched spend in IO. Given up, it is tried
 * again later and later. Pure: rates come in once a second.
 */
#ifndef VAPRO_IO_TAX_H
#define VAPRO_IO_TAX_H

#include <stdbool.h>
#include <stdint.h>

/* What happened in the last second or so. */
struct io_second {
	double seconds;
	bool asked;	  /* a watched process does at least one IO call a second */
	bool inside;	  /* one is in a traced call */
	double calls;	  /* of the whole node, while it is traced */
	double learnt_ns; /* of the watched, in traced calls */
	double cpus;	  /* of the node */
	double each_ns;	  /* what a call of anybody costs more */
};

struct io_tax {
	double bound;		     /* share of the node's CPU time; 0 = none */
	double traced_s;	     /* so long by now; 0 = it is not traced */
	double asked_s;		     /* since it was asked for last */
	double idle_s;		     /* until it is tried again; 0 = it was not given up */
	unsigned vain;		     /* times in a row that it was given up */
	double calls_s, tax, learnt; /* means over some seconds: calls/s, shares of the node's and of one CPU's time */
};

enum io_verdict {
	IO_AS_ASKED,
	IO_GIVEN_UP, /* just now: calls_s, tax and learnt tell why, idle_s for how long */
};

void io_tax__init(struct io_tax *tax, double bound);

/* Whether it is to be traced from now on is tax->traced_s > 0. */
enum io_verdict io_tax__second(struct io_tax *tax, const struct io_second *second);

#endif
