/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which records an output gets (--records). `no-maps` has all but heat maps, and windows without what is 0. `alarms`
 * are the lines with an alarm, those that take one back, the diagnoses of regions that are alarms, and what says from
 * when to when and with which trouble vapro watched.
 */
#ifndef VAPRO_RECORD_FILTER_H
#define VAPRO_RECORD_FILTER_H

#include <stdbool.h>

enum record_choice { RECORDS_ALL, RECORDS_NO_MAPS, RECORDS_ALARMS };

#define RECORD_CHOICE_WORDS "all|no-maps|alarms" /* in this order */

struct record_filter;

/* Returns the choice of a word; RECORDS_ALL for NULL. */
enum record_choice record_filter__choice(const char *word);

/* Returns NULL when out of memory. */
struct record_filter *record_filter__new(enum record_choice choice);
void record_filter__free(struct record_filter *filter);

/* Whether a line passes; without memory it does. */
bool record_filter__passes(struct record_filter *filter, const char *line);

/*
 * Returns the line of a window as an output without heat maps gets it, malloc'ed: without keys that are 0, null or
 * false and without clocks and sensing, half of its bytes; NULL where the line stays as it is.
 */
char *record_filter__shortened(const struct record_filter *filter, const char *line);

#endif
