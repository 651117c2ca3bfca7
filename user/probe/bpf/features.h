/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Features of the running kernel's probes that are cheap to find out by trying. */
#ifndef VAPRO_FEATURES_H
#define VAPRO_FEATURES_H

#include <stdbool.h>

enum fact { FACT_UNKNOWN, FACT_NO, FACT_YES };

struct facts {
	enum fact return_syscall; /* hijacked returns are a system call (6.11), which a seccomp filter may stop */
	enum fact nop5_syscall;	  /* a probe on a nop5 becomes a call and a system call (6.18), no trap */
	enum fact thread_filter;  /* links for one process see one thread: see modes__filters_by_thread */
};

/*
 * Learns which of the two system calls are there. Both are for the kernel's own trampolines; called
 * from elsewhere one raises SIGILL, so a child calls them. Fills in thread_filter too where multi
 * says that uprobe_multi links work here.
 */
void features__learn(struct facts *facts, bool multi);

#endif
