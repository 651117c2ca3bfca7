/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tables of the vendors, for events.c. */
#ifndef VAPRO_EVENTS_PRIVATE_H
#define VAPRO_EVENTS_PRIVATE_H

#include "probe/pmu/events.h"

extern const struct event_cpu event_cpu_skx, event_cpu_clx, event_cpu_icx, event_cpu_spr, event_cpu_emr, event_cpu_gnr;
extern const struct event_cpu event_cpu_zen2, event_cpu_zen3, event_cpu_zen4, event_cpu_zen5;
extern const struct event_cpu event_cpu_n1, event_cpu_v1, event_cpu_n2, event_cpu_n2_early, event_cpu_v2, event_cpu_n3,
    event_cpu_v3, event_cpu_a64fx;

#define EVENT_PARTS_LEVEL1                                                                                             \
	{                                                                                                              \
		"retiring", "frontend", "bad_speculation", "backend"                                                   \
	}

#endif
