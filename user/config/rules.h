/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rules are what the user says of workload beyond instructions: which events belong to the vector, which
 * of them are better when larger (VAPRO (PPoPP'22) section 3.4: the vector has their opposites), and dynamic
 * rules: fragments are compared with each other only where a ratio of two counts, such as that
 * of cache misses, lies in the same band (VAPRO (PPoPP'22) section 3.3, vSensor).
 *
 *   workload  EVENT, ...                   1/EVENT: larger is better
 *   bands     EVENT/EVENT:BORDER,... [;..] ascending; a band is [border, next border)
 *
 * Events of bands alone are counted but are no part of the vector. A ratio of a merged bundle is that of
 * the middles of its members' counts.
 */
#ifndef VAPRO_RULES_H
#define VAPRO_RULES_H

#include <stddef.h>

#include <vapro/bundle.h>

#define RULES_NAMED (VAPRO_MAGNITUDES - VAPRO_NAMED)
#define RULES_EVENTS 16
#define RULES_BANDS 4
#define RULES_BORDERS 15 /* borders of one ratio */
#define RULES_INVERSE 1e12

struct rule_event {
	char name[64];
	bool inverse; /* the vector has RULES_INVERSE / count; a count of 0 passes for 0.5 */
	bool apart;   /* for bands only */
};

struct rule_band {
	char name[2][64]; /* numerator, denominator */
	double border[RULES_BORDERS];
	unsigned count;
};

struct rules {
	struct rule_event events[RULES_EVENTS]; /* beside instructions, in the order in which they get slots */
	unsigned event_count;
	struct rule_band bands[RULES_BANDS];
	unsigned band_count;
	int slot[RULES_EVENTS];	       /* magnitude of each event, -1 none; rules__finalize */
	int band_slot[RULES_BANDS][2]; /* magnitudes of each ratio, -1 none */
};

/* Reads both tunables. Returns 0, or -EINVAL with a sentence in err. */
int rules__parse(struct rules *rules, const char *workload, const char *bands, char *err, size_t err_size);

/* Sets which events the slots from VAPRO_NAMED on hold; NULL: none. An event in no slot has no effect. */
void rules__finalize(struct rules *rules, const char *const named[RULES_NAMED]);

/* Whether any rule splits states. */
bool rules__split(const struct rules *rules);

/*
 * Returns the bands that a computation lies in, as one number from 1 on, 0 where a ratio has no value.
 * *approx becomes true where the bundle's members may lie in several.
 */
unsigned rules__band(const struct rules *rules, const struct vapro_bundle *bundle, bool *approx);

/* Writes the bands of a number as labels, "cache-misses/instructions=0.01..0.1", sorted by key; "" for 0. */
void rules__labels(const struct rules *rules, unsigned band, char *text, size_t size);

/* Makes the counts of a computation its vector: opposites, and 0 for events that are for bands only. */
void rules__apply(const struct rules *rules, struct vapro_bundle *bundle);

#endif
