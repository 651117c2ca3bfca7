// SPDX-License-Identifier: GPL-2.0-or-later
/* print_events: the event tables as CSV, one line per CPU and event: for compare_events.py. */
#include <stdio.h>

#include "probe/pmu/events.h"

static void print(const char *cpu, const struct event *event)
{
	printf("%s,%s,0x%llx\n", cpu, event->name, (unsigned long long)event->config);
}

int main(void)
{
	for (size_t i = 0; i < event_cpu_count; i++) {
		const struct event_cpu *cpu = event_cpus[i];

		print(cpu->name, &cpu->instructions);
		for (const char *const *name = cpu->named_as; name && *name; name++)
			print(cpu->name, &cpu->named[name - cpu->named_as]);
		for (const struct event_group *const *group = cpu->groups; *group; group++)
			for (size_t e = 0; e < events__group_size(*group); e++)
				print(cpu->name, &(*group)->events[e]);
		for (size_t e = 0; cpu->stage1_smt && e < events__group_size(cpu->stage1_smt); e++)
			print(cpu->name, &cpu->stage1_smt->events[e]);
	}
	return 0;
}
