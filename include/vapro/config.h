/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The configuration of a run: tunables, and the constants of the judgement (vapro/tunables.def). config/tunables.h has
 * the table that feeds the configuration file, the command line, --help, the man page and the hello record alike.
 */
#ifndef VAPRO_CONFIG_H
#define VAPRO_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VAPRO_FUNCTIONS_TEXT 4096
#define VAPRO_TEXT_MAX 512 /* size of a text tunable */

enum vapro_tristate { VAPRO_OFF, VAPRO_ON, VAPRO_AUTO };
enum vapro_states { VAPRO_BY_CALL_SITE, VAPRO_BY_CALL_PATH };
enum vapro_reference { VAPRO_REFERENCE_TYPICAL, VAPRO_REFERENCE_FASTEST };

/* auto: the best attach mode that the kernel accepts */
enum vapro_attach { VAPRO_ATTACH_AUTO, VAPRO_ATTACH_SESSION, VAPRO_ATTACH_MULTI, VAPRO_ATTACH_PERF };

/* auto: hardware where counters exist, else none; test: clocks instead, to test the readers of counters */
enum vapro_counters { VAPRO_COUNTERS_AUTO, VAPRO_COUNTERS_HARDWARE, VAPRO_COUNTERS_NONE, VAPRO_COUNTERS_TEST };

/* A site's definition of an event that the built-in tables lack or define otherwise: `event NAME=pmu/terms/`. */
struct vapro_event_spec {
	char name[64];
	char spec[128];
};

#define VAPRO_EVENT_SPECS 16
#define VAPRO_SOCKET "/run/vapro/"

/* The members of the types of vapro/tunables.def. Seconds, shares (0.05) and percentages (5) are doubles. */
#define VAPRO_MEMBER_NUMBER(member) double member
#define VAPRO_MEMBER_SHARE(member) double member
#define VAPRO_MEMBER_PERCENT(member) double member
#define VAPRO_MEMBER_SECONDS(member) double member
#define VAPRO_MEMBER_UINT(member) uint64_t member
#define VAPRO_MEMBER_SIZE(member) uint64_t member
#define VAPRO_MEMBER_POWER(member) uint64_t member
#define VAPRO_MEMBER_BOOL(member) bool member
#define VAPRO_MEMBER_TEXT(member) char member[VAPRO_TEXT_MAX]
#define VAPRO_MEMBER_PATH(member) char member[VAPRO_TEXT_MAX]
#define VAPRO_MEMBER_WORKLOAD(member) char member[VAPRO_TEXT_MAX]
#define VAPRO_MEMBER_BANDS(member) char member[VAPRO_TEXT_MAX]
#define VAPRO_MEMBER_FUNCTIONS(member) char member[VAPRO_FUNCTIONS_TEXT]
#define VAPRO_MEMBER_TRISTATE(member) enum vapro_tristate member
#define VAPRO_MEMBER_REFERENCE(member) enum vapro_reference member
#define VAPRO_MEMBER_ATTACH(member) enum vapro_attach member
#define VAPRO_MEMBER_COUNTERS(member) enum vapro_counters member
#define VAPRO_MEMBER_STATES(member) enum vapro_states member

struct vapro_config {
#define TUNABLE(level, group, type, member, name, initial, min, max, help) VAPRO_MEMBER_##type(member);
#define CONSTANT(type, member, value) VAPRO_MEMBER_##type(member);
#include <vapro/tunables.def>
	struct vapro_event_spec events[VAPRO_EVENT_SPECS];
	uint32_t event_count;
};

/* Sets every tunable to its default, and every constant to its value. */
void config__init(struct vapro_config *config);

/*
 * Sets one tunable from text, with units as in base/units.h. Names are written with - or _; older names are known.
 * `event NAME` is no row of the table but sets how that event is counted here.
 * Returns 0, -ENOENT where no tunable has that name, or -EINVAL with a sentence in err.
 */
int config__set(struct vapro_config *config, const char *name, const char *value, char *err, size_t err_size);

#endif
