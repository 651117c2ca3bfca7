/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Exit codes of vaprod and vapro. The last three are used on request only (--fail-on): a run without alarms, or without
 * anything to watch, is no failure unless a script depends on it.
 */
#ifndef VAPRO_EXIT_CODES_H
#define VAPRO_EXIT_CODES_H

enum {
	EXIT_OK,
	EXIT_FAILED,
	EXIT_USAGE,
	EXIT_REFUSED,	      /* kernel or privileges do not allow it */
	EXIT_ALARM,	      /* an alarm of at least the requested severity */
	EXIT_NOTHING_WATCHED, /* no process was watched */
	EXIT_NOTHING_JUDGED,  /* no time of the watched processes could be evaluated */
	EXIT_SLOWER,	      /* one run is slower than another */
};

#endif
