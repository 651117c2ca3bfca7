// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/interrupt_timing.h"

#include <string.h>

#define INTERRUPTED 0.1 /* share of a CPU's time in a second: less is no reason to time each interrupt of the node */

void interrupt_timing__init(struct interrupt_timing *timing, struct kernel_side *side)
{
	*timing = (struct interrupt_timing){.side = side, .load = interrupts__new("/proc/stat")};
}

void interrupt_timing__clear(struct interrupt_timing *timing)
{
	interrupts__free(timing->load);
	*timing = (struct interrupt_timing){0};
}

static void time_interrupts(struct interrupt_timing *timing, struct tracker *tracker, bool on)
{
	int status = kernel_side__watch_interrupts(timing->side, on);

	if (!status || timing->failed)
		return;
	timing->failed = true;
	tracker__warn(tracker, "no_interrupts", 0, "interrupts cannot be timed: %s", strerror(-status));
}

void interrupt_timing__second(struct interrupt_timing *timing, struct tracker *tracker,
			      const struct watch_second *second)
{
	bool much = false;

	/* read in each second, so that shares are of that time */
	if (!timing->load || interrupts__read(timing->load))
		return;
	for (uint32_t i = 0; i < second->cpu_count && !much; i++)
		much = interrupts__share(timing->load, second->cpus[i]) >= INTERRUPTED;
	if (!much)
		return;
	timing->noticed = true;
	if (!timing->failed)
		time_interrupts(timing, tracker, true);
}

void interrupt_timing__end_window(struct interrupt_timing *timing, struct tracker *tracker, bool requested)
{
	time_interrupts(timing, tracker, requested || timing->noticed);
	timing->noticed = false;
}
