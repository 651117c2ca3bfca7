// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/shared_rows.h"

#include <errno.h>
#include <stdio.h>

#include "report/json.h"

int shared_rows__read_fail_on(void *member, const char *value, char *why, size_t why_size)
{
	(void)why;
	(void)why_size;
	return outcome__parse(value, member);
}

bool shared_rows__write_fail_on(const void *member, size_t n, char *text, size_t size)
{
	const struct outcome_limit *limit = member;

	if (n || !limit->given)
		return false;
	snprintf(text, size, "%s", json_severity_name[limit->least]);
	return true;
}

int shared_rows__read_run(void *member, const char *value, char *why, size_t why_size)
{
	(void)why;
	(void)why_size;
	return run_option__parse(value, member) ? 0 : -EINVAL;
}
