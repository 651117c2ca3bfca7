/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Exit codes of vaprod and vapro. The last four are used on request only (--fail-on, check --node): a run without
 * alarms, or without anything to watch, is no failure unless a script depends on it.
 */
#ifndef VAPRO_EXIT_CODES_H
#define VAPRO_EXIT_CODES_H

enum {
	EXIT_OK,
	EXIT_FAILED,
	EXIT_USAGE,
	EXIT_REFUSED,	      /* kernel or privileges do not allow it */
	EXIT_ALARM,	      /* an alarm of at least the requested severity; slow CPUs of a node */
	EXIT_NOTHING_WATCHED, /* no process was watched */
	EXIT_NOTHING_JUDGED,  /* no time of the watched processes could be evaluated; nothing is decided of a node */
	EXIT_SLOWER,	      /* one run is slower than another, or a node than its profile */
};

#endif
