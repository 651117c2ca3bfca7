/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/outcome.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/exit_codes.h"
#include "report/json.h"

int outcome__parse(const char *text, struct outcome_limit *limit)
{
	if (!strcmp(text, "alarm"))
		text = json_severity_name[VAPRO_INFO];
	for (int i = 0; i < VAPRO_SEVERITIES; i++) {
		if (strcmp(text, json_severity_name[i]))
			continue;
		*limit = (struct outcome_limit){.given = true, .least = (enum vapro_severity)i};
		return 0;
	}
	return -EINVAL;
}

int outcome__code(const struct outcome *outcome, const struct outcome_limit *limit, char *text, size_t size)
{
	uint64_t alarms = 0;

	if (!limit->given)
		return EXIT_OK;
	for (int i = (int)limit->least; i < VAPRO_SEVERITIES; i++)
		alarms += outcome->alarms[i];
	if (alarms) {
		snprintf(text, size, "--fail-on %s: %llu alarm%s; exit code %d", json_severity_name[limit->least],
			 (unsigned long long)alarms, alarms == 1 ? "" : "s", EXIT_ALARM);
		return EXIT_ALARM;
	}
	if (!(outcome->rank_seconds > 0)) {
		snprintf(text, size, "--fail-on %s: nothing was watched; exit code %d",
			 json_severity_name[limit->least], EXIT_NOTHING_WATCHED);
		return EXIT_NOTHING_WATCHED;
	}
	if (!(outcome->judged_seconds > 0)) {
		snprintf(
		    text, size,
		    "--fail-on %s: nothing could be evaluated, since no work was repeated often enough; exit code %d",
		    json_severity_name[limit->least], EXIT_NOTHING_JUDGED);
		return EXIT_NOTHING_JUDGED;
	}
	return EXIT_OK;
}
