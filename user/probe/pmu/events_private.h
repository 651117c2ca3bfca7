/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tables of the vendors, for events.c. */
#ifndef VAPRO_EVENTS_PRIVATE_H
#define VAPRO_EVENTS_PRIVATE_H

#include "probe/pmu/events.h"

extern const struct event_cpu event_cpu_skx, event_cpu_clx, event_cpu_icx, event_cpu_spr, event_cpu_emr, event_cpu_gnr;
extern const struct event_cpu event_cpu_zen2, event_cpu_zen3, event_cpu_zen4, event_cpu_zen5;
extern const struct event_cpu event_cpu_n1, event_cpu_v1, event_cpu_n2, event_cpu_n2_early, event_cpu_v2, event_cpu_n3,
    event_cpu_v3, event_cpu_a64fx;

/* Rows of the tables: what all have, then further members by their names. */
#define EVENT(...)                                                                                                     \
	{                                                                                                              \
		__VA_ARGS__                                                                                            \
	}
#define EVENT_GROUP(variable, name_, stage_, parent_, formula_, ...)                                                   \
	static const struct event_group variable = {                                                                   \
	    .name = name_, .stage = stage_, .parent = parent_, .formula = formula_, __VA_ARGS__}
#define EVENT_CPU(variable, name_, title_, width_, groups_, ...)                                                       \
	const struct event_cpu variable = {                                                                            \
	    .name = name_, .title = title_, .width = width_, .groups = groups_, __VA_ARGS__}

#endif
