// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/cpus.h"

#include <ctype.h>
#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Parses "0,2-3"; false for anything else. */
static bool parse(const char *list, cpu_set_t *set)
{
	CPU_ZERO(set);
	while (*list) {
		char *end;
		unsigned long first, last;

		if (!isdigit((unsigned char)*list))
			return false;
		first = last = strtoul(list, &end, 10);
		if (*end == '-' && isdigit((unsigned char)end[1]))
			last = strtoul(end + 1, &end, 10);
		if (last < first || last >= CPU_SETSIZE)
			return false;
		for (; first <= last; first++)
			CPU_SET(first, set);
		if (*end && *end++ != ',')
			return false;
		list = end;
	}
	return CPU_COUNT(set) > 0;
}

static bool read_list(const char *path, cpu_set_t *set)
{
	char text[4096];
	FILE *file = fopen(path, "re");
	bool some = file && fgets(text, sizeof(text), file) && text[0] != '\n';

	if (file)
		fclose(file);
	if (!some)
		return false;
	text[strcspn(text, "\n")] = '\0';
	return parse(text, set);
}

int cpus__finalize(const char *list, char *err, size_t err_size)
{
	cpu_set_t set, isolated, mine;

	if (list) {
		if (!parse(list, &set)) {
			snprintf(err, err_size, "--cpus: invalid list of CPUs '%s'; expected such as 0,2-3", list);
			return -EINVAL;
		}
		if (sched_setaffinity(0, sizeof(set), &set)) {
			snprintf(err, err_size, "--cpus: cannot run on %s: %s", list, strerror(errno));
			return -EINVAL;
		}
		return 0;
	}
	if (sched_getaffinity(0, sizeof(mine), &mine))
		return 0;
	if (read_list("/sys/devices/system/cpu/isolated", &isolated) ||
	    read_list("/sys/devices/system/cpu/nohz_full", &isolated)) {
		for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
			if (CPU_ISSET(cpu, &isolated))
				CPU_CLR(cpu, &mine);
		if (CPU_COUNT(&mine))
			sched_setaffinity(0, sizeof(mine), &mine);
	}
	return 0;
}
