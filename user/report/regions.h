/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Slow regions told to a person: ranked by lost seconds, waiting effects under their cause. The end
 * summary fills it from results, `vapro view` from lines.
 */
#ifndef VAPRO_REPORT_REGIONS_H
#define VAPRO_REPORT_REGIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <vapro/analysis.h>

#define REGION_CAUSES 48
#define REGION_INTERFERERS 3

struct region_cause {
	char name[32];
	double share; /* 0..1 of its level */
	bool major;
	bool part; /* of another cause in the list */
};

struct region_interferer {
	char comm[32];
	uint32_t pid;
	enum vapro_relation relation;
	double seconds;
};

struct region {
	uint64_t id, effect_of;
	char *job, *class, *who, *site, *evidence, *advice, *verdict; /* owned; NULL where unknown */
	uint64_t begin_ns, end_ns;
	bool work_unknown; /* performance is the share of the time that it was not kept from running */
	double performance, lost_seconds;
	double caused_seconds; /* others' waiting for it */
	char severity[16];     /* in words; "" unknown */
	bool confirmed, alarm, ended;
	bool place; /* not confirmed, but all ranks of one place are slow and no others */
	struct region_cause causes[REGION_CAUSES];
	size_t cause_count;
	struct region_interferer interferers[REGION_INTERFERERS];
	size_t interferer_count;
};

struct regions {
	struct region *items;
	size_t count, capacity;
};

/* Whether it counts as slow: confirmed, or an alarm. Others are perhaps slow. */
bool region__sure(const struct region *region);

/* The region with that id, made where there is none; NULL when out of memory. */
struct region *regions__get(struct regions *regions, const char *job, uint64_t id);
void regions__free(struct regions *regions);

/* Takes control characters out, in place: names are chosen by users and end on terminals. NULL is fine. */
char *regions__defuse(char *text);

/* Replaces an owned text, defused. */
bool region__set_text(char **text, const char *value);

/* start_ns: what offsets count from. most: regions told in full, the rest are counted. Sorts the regions. */
void regions__print(struct regions *regions, FILE *out, uint64_t start_ns, unsigned width, size_t most);

/* "5.2 s", "3 min 20 s", "4 h 10 min". Returns buf. */
char *regions__duration(double seconds, char *buf, size_t size);

/* Prints text in lines of at most width columns, the further ones indented. */
void regions__wrap(FILE *out, const char *head, const char *text, unsigned indent, unsigned width);

#endif
