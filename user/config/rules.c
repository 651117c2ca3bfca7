/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "config/rules.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define LIST_MAX 512
#define BLANKS " \t"

static bool is_name(const char *name)
{
	return *name && strlen(name) < sizeof(((struct rule_event *)0)->name) && !strpbrk(name, BLANKS "=/:;,");
}

static struct rule_event *find(struct rules *rules, const char *name)
{
	for (unsigned i = 0; i < rules->event_count; i++)
		if (!strcmp(rules->events[i].name, name))
			return &rules->events[i];
	return NULL;
}

/* Enters an event; instructions are always there. */
static int add_event(struct rules *rules, const char *name, bool inverse, bool apart, char *err, size_t err_size)
{
	struct rule_event *event = find(rules, name);

	if (!strcmp(name, "instructions"))
		return 0;
	if (event)
		return 0;
	if (rules->event_count == RULES_EVENTS) {
		snprintf(err, err_size, "no more than %d events can be named", RULES_EVENTS);
		return -EINVAL;
	}
	event = &rules->events[rules->event_count++];
	*event = (struct rule_event){.inverse = inverse, .apart = apart};
	snprintf(event->name, sizeof(event->name), "%s", name);
	return 0;
}

static int parse_workload(struct rules *rules, char *list, char *err, size_t err_size)
{
	char *rest = NULL;

	for (char *name = strtok_r(list, ", ", &rest); name; name = strtok_r(NULL, ", ", &rest)) {
		bool inverse = !strncmp(name, "1/", 2);

		name += inverse ? 2 : 0;
		if (!is_name(name)) {
			snprintf(err, err_size, "'%s' is no name of an event", name);
			return -EINVAL;
		}
		if (inverse && !strcmp(name, "instructions")) {
			snprintf(err, err_size, "instructions are the work itself: more of them is not better");
			return -EINVAL;
		}
		if (add_event(rules, name, inverse, false, err, err_size))
			return -EINVAL;
	}
	return 0;
}

static int parse_borders(struct rule_band *band, char *list, char *err, size_t err_size)
{
	char *rest = NULL, *end;

	for (char *text = strtok_r(list, ",", &rest); text; text = strtok_r(NULL, ",", &rest)) {
		double border;

		text = text__trim(text);
		border = strtod(text, &end);
		if (end == text || *end || !isfinite(border) || border <= 0) {
			snprintf(err, err_size, "'%s' is no number above 0", text);
			return -EINVAL;
		}
		if (band->count && border <= band->border[band->count - 1]) {
			snprintf(err, err_size, "%g: borders must ascend", border);
			return -EINVAL;
		}
		if (band->count == RULES_BORDERS) {
			snprintf(err, err_size, "a ratio has no more than %d borders", RULES_BORDERS);
			return -EINVAL;
		}
		band->border[band->count++] = border;
	}
	if (band->count)
		return 0;
	snprintf(err, err_size, "%s/%s has no borders", band->name[0], band->name[1]);
	return -EINVAL;
}

/* One rule: EVENT/EVENT:BORDER,... */
static int parse_band(struct rules *rules, char *text, char *err, size_t err_size)
{
	char *colon = strchr(text, ':'), *by = strchr(text, '/');
	struct rule_band *band = &rules->bands[rules->band_count];

	if (!colon || !by || by > colon) {
		snprintf(err, err_size, "'%s' is no rule; expected such as cache-misses/instructions:0.01,0.1", text);
		return -EINVAL;
	}
	if (rules->band_count == RULES_BANDS) {
		snprintf(err, err_size, "no more than %d ratios can be ruled", RULES_BANDS);
		return -EINVAL;
	}
	*colon = *by = '\0';
	*band = (struct rule_band){.count = 0};
	for (int i = 0; i < 2; i++) {
		const char *name = text__trim(i ? by + 1 : text);

		if (!is_name(name)) {
			snprintf(err, err_size, "'%s' is no name of an event", name);
			return -EINVAL;
		}
		snprintf(band->name[i], sizeof(band->name[i]), "%s", name);
	}
	if (parse_borders(band, colon + 1, err, err_size) ||
	    add_event(rules, band->name[0], false, true, err, err_size) ||
	    add_event(rules, band->name[1], false, true, err, err_size))
		return -EINVAL;
	rules->band_count++;
	return 0;
}

static int compare_bands(const void *a, const void *b)
{
	const struct rule_band *x = a, *y = b;
	int order = strcmp(x->name[0], y->name[0]);

	return order ? order : strcmp(x->name[1], y->name[1]);
}

int rules__parse(struct rules *rules, const char *workload, const char *bands, char *err, size_t err_size)
{
	char list[LIST_MAX], *rest = NULL;

	memset(rules, 0, sizeof(*rules));
	rules__finalize(rules, (const char *const[RULES_NAMED]){NULL});
	if (strlen(workload) >= sizeof(list) || strlen(bands) >= sizeof(list)) {
		snprintf(err, err_size, "the list is longer than %d bytes", LIST_MAX - 1);
		return -EINVAL;
	}
	strcpy(list, workload);
	if (parse_workload(rules, list, err, err_size))
		return -EINVAL;
	strcpy(list, bands);
	for (char *text = strtok_r(list, ";", &rest); text; text = strtok_r(NULL, ";", &rest)) {
		text = text__trim(text);
		if (*text && parse_band(rules, text, err, err_size))
			return -EINVAL;
	}
	/* labels are sorted by their keys */
	qsort(rules->bands, rules->band_count, sizeof(rules->bands[0]), compare_bands);
	for (unsigned i = 1; i < rules->band_count; i++) {
		if (!compare_bands(&rules->bands[i - 1], &rules->bands[i])) {
			snprintf(err, err_size, "%s/%s is ruled twice", rules->bands[i].name[0],
				 rules->bands[i].name[1]);
			return -EINVAL;
		}
	}
	return 0;
}

static int slot_of(const char *const named[RULES_NAMED], const char *name)
{
	if (!strcmp(name, "instructions"))
		return VAPRO_INSTRUCTIONS;
	for (int i = 0; i < RULES_NAMED; i++)
		if (named[i] && !strcmp(named[i], name))
			return VAPRO_NAMED + i;
	return -1;
}

void rules__finalize(struct rules *rules, const char *const named[RULES_NAMED])
{
	for (unsigned i = 0; i < RULES_EVENTS; i++)
		rules->slot[i] = i < rules->event_count ? slot_of(named, rules->events[i].name) : -1;
	for (unsigned i = 0; i < RULES_BANDS; i++)
		for (int k = 0; k < 2; k++)
			rules->band_slot[i][k] = i < rules->band_count ? slot_of(named, rules->bands[i].name[k]) : -1;
}

static bool acts(const struct rules *rules, unsigned band)
{
	return band < rules->band_count && rules->band_slot[band][0] >= 0 && rules->band_slot[band][1] >= 0;
}

bool rules__split(const struct rules *rules)
{
	for (unsigned i = 0; i < rules->band_count; i++)
		if (acts(rules, i))
			return true;
	return false;
}

static unsigned place(const struct rule_band *band, double ratio)
{
	unsigned at = 0;

	while (at < band->count && ratio >= band->border[at])
		at++;
	return at;
}

unsigned rules__band(const struct rules *rules, const struct vapro_bundle *bundle, bool *approx)
{
	unsigned number = 0;

	for (unsigned i = rules->band_count; i-- > 0;) {
		const struct rule_band *band = &rules->bands[i];
		int of = rules->band_slot[i][0], by = rules->band_slot[i][1];
		double low = bundle->magnitude_min[by < 0 ? 0 : by], high = bundle->magnitude_max[by < 0 ? 0 : by];
		unsigned at;

		if (!acts(rules, i))
			continue;
		if (!(low > 0))
			return 0;
		at = place(band, (bundle->magnitude_min[of] + bundle->magnitude_max[of]) / (low + high));
		*approx |= place(band, bundle->magnitude_min[of] / high) != at ||
			   place(band, bundle->magnitude_max[of] / low) != at;
		number = number * (RULES_BORDERS + 1) + at;
	}
	return number + 1;
}

void rules__labels(const struct rules *rules, unsigned number, char *text, size_t size)
{
	size_t used = 0;

	*text = '\0';
	if (!number--)
		return;
	for (unsigned i = 0; i < rules->band_count && used < size; i++) {
		const struct rule_band *band = &rules->bands[i];
		unsigned at = number % (RULES_BORDERS + 1);

		if (!acts(rules, i))
			continue;
		number /= RULES_BORDERS + 1;
		used += (size_t)snprintf(text + used, size - used, "%s%s/%s=", used ? " " : "", band->name[0],
					 band->name[1]);
		if (used < size && at)
			used += (size_t)snprintf(text + used, size - used, "%g", band->border[at - 1]);
		if (used < size)
			used += (size_t)snprintf(text + used, size - used, "..");
		if (used < size && at < band->count)
			used += (size_t)snprintf(text + used, size - used, "%g", band->border[at]);
	}
}

static double opposite(double count)
{
	return RULES_INVERSE / fmax(count, 0.5);
}

void rules__apply(const struct rules *rules, struct vapro_bundle *bundle)
{
	if (!(bundle->magnitude_max[VAPRO_INSTRUCTIONS] > 0))
		return; /* a call, or not measured */
	for (unsigned i = 0; i < rules->event_count; i++) {
		int slot = rules->slot[i];
		double low, high;

		if (slot < 0)
			continue;
		low = bundle->magnitude_min[slot];
		high = bundle->magnitude_max[slot];
		if (rules->events[i].apart)
			low = high = 0;
		bundle->magnitude_min[slot] = rules->events[i].inverse ? opposite(high) : low;
		bundle->magnitude_max[slot] = rules->events[i].inverse ? opposite(low) : high;
	}
}
