/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "model/opposite.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SEPARATORS ", "

/* The slot of an event in the order of the workload: instructions have their own. VAPRO_MAGNITUDES: none. */
static int slot_of(const struct vapro_config *config, const char *wanted)
{
	char list[VAPRO_TEXT_MAX], *rest;
	int slot = VAPRO_NAMED;

	snprintf(list, sizeof(list), "%s", config->workload);
	for (char *name = strtok_r(list, SEPARATORS, &rest); name; name = strtok_r(NULL, SEPARATORS, &rest)) {
		if (!strcmp(name, "instructions"))
			continue;
		if (!strcmp(name, wanted))
			return slot < VAPRO_MAGNITUDES ? slot : VAPRO_MAGNITUDES;
		slot++;
	}
	return VAPRO_MAGNITUDES;
}

unsigned opposite__which(const struct vapro_config *config)
{
	char list[VAPRO_TEXT_MAX], *rest;
	unsigned which = 0;

	snprintf(list, sizeof(list), "%s", config->larger_is_better);
	for (char *name = strtok_r(list, SEPARATORS, &rest); name; name = strtok_r(NULL, SEPARATORS, &rest))
		which |= 1U << slot_of(config, name);
	return which & ((1U << VAPRO_MAGNITUDES) - 1);
}

bool opposite__stray(const struct vapro_config *config, char *name, size_t size)
{
	char list[VAPRO_TEXT_MAX], *rest;

	snprintf(list, sizeof(list), "%s", config->larger_is_better);
	for (char *at = strtok_r(list, SEPARATORS, &rest); at; at = strtok_r(NULL, SEPARATORS, &rest)) {
		if (slot_of(config, at) < VAPRO_MAGNITUDES)
			continue;
		snprintf(name, size, "%s", at);
		return true;
	}
	return false;
}

void opposite__turn(unsigned which, double *low, double *high)
{
	for (int i = VAPRO_NAMED; which && high[VAPRO_INSTRUCTIONS] > 0 && i < VAPRO_MAGNITUDES; i++) {
		double least = low[i];

		if (!(which & 1U << i))
			continue;
		low[i] = fmax(0, low[VAPRO_INSTRUCTIONS] - high[i]);
		high[i] = fmax(0, high[VAPRO_INSTRUCTIONS] - least);
	}
}
