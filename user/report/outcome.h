/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The outcome of a run as an exit code, for scripts (--fail-on SEVERITY). */
#ifndef VAPRO_REPORT_OUTCOME_H
#define VAPRO_REPORT_OUTCOME_H

#include <vapro/analysis.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The option: its values, its help, and what is expected in place of another value. */
#define OUTCOME_SEVERITIES "info|warning|critical"
#define OUTCOME_HELP                                                                                                   \
	"exit with code 4 if there was an alarm of this severity or a higher one, 5 if nothing was watched, 6 if "     \
	"nothing could be evaluated, the first of these that applies; without it none of these is a failure"
#define OUTCOME_EXPECTED "info, warning or critical"

struct outcome {
	uint64_t alarms[VAPRO_SEVERITIES];
	double rank_seconds;   /* time of all watched ranks */
	double judged_seconds; /* part of it that was compared with equal work */
};

struct outcome_limit {
	bool given;
	enum vapro_severity least;
};

/* Parses one of OUTCOME_SEVERITIES; "alarm" is the same as info. Returns 0 or -EINVAL. */
int outcome__parse(const char *text, struct outcome_limit *limit);

/*
 * Returns EXIT_ALARM, EXIT_NOTHING_WATCHED, EXIT_NOTHING_JUDGED or EXIT_OK (base/exit_codes.h), the first that applies,
 * with a sentence in text unless it is EXIT_OK, which is all that a limit that is not given has. An alarm counts also
 * where nothing was evaluated: the kernel's account alone proves many losses.
 */
int outcome__code(const struct outcome *outcome, const struct outcome_limit *limit, char *text, size_t size);

#endif
