/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Decides whether system calls are worth tracing. Every system call of the node pays for that, also those
 * of untracked processes (ARCHITECTURE section 2.4), so the calibrated price times the node's own rate is
 * compared with what is learnt: the time that tracked processes spend in IO. Tracing that was given up is
 * tried again later and later. Pure: rates come in once a second.
 */
#ifndef VAPRO_IO_TAX_H
#define VAPRO_IO_TAX_H

#include <stdbool.h>
#include <stdint.h>

/* The events of the last second or so. */
struct io_second {
	double seconds;
	bool requested;	  /* a tracked process makes at least one IO call a second */
	bool inside;	  /* a tracked process is in a traced call */
	double calls;	  /* calls of the whole node, while it is traced */
	double learnt_ns; /* time of tracked processes in traced calls */
	double cpus;	  /* CPUs of the node */
	double each_ns;	  /* extra cost of a call of any process */
};

struct io_tax {
	double bound;		     /* share of the node's CPU time; 0 = none */
	double traced_s;	     /* time traced by now; 0 = not traced */
	double unrequested_s;	     /* time since the last request */
	double idle_s;		     /* time until the next try; 0 = not given up */
	unsigned vain;		     /* times in a row that tracing was given up */
	double calls_s, tax, learnt; /* means over some seconds: calls/s, shares of the node's and of one CPU's time */
};

enum io_verdict {
	IO_AS_REQUESTED,
	IO_GIVEN_UP, /* given up just now: calls_s, tax and learnt show why, idle_s for how long */
};

void io_tax__init(struct io_tax *tax, double bound);

/* Decides from the last second: system calls are traced from now on where tax->traced_s > 0. */
enum io_verdict io_tax__second(struct io_tax *tax, const struct io_second *second);

#endif
