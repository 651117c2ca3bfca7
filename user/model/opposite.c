/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "model/opposite.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define TURNED 1e12	   /* over x */
#define LEAST_OF_ALL 1e-12 /* what is less counts as this */
#define SEPARATORS ", "

/* The slot of an event in the order of the workload: instructions have their own. VAPRO_MAGNITUDES: none. */
static int slot_of(const struct vapro_config *config, const char *wanted)
{
	char list[VAPRO_TEXT_MAX], *rest;
	int slot = VAPRO_NAMED;

	if (!strcmp(wanted, "instructions"))
		return VAPRO_INSTRUCTIONS;
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
	bool measured = false;

	for (int i = 0; i < VAPRO_MAGNITUDES; i++)
		measured |= high[i] > 0;
	for (int i = 0; which && measured && i < VAPRO_MAGNITUDES; i++) {
		double least = fmax(low[i], LEAST_OF_ALL), most = fmax(high[i], LEAST_OF_ALL);

		if (!(which & 1U << i))
			continue;
		low[i] = TURNED / most;
		high[i] = TURNED / least;
	}
}
