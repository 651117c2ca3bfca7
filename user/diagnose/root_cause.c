/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "diagnose/root_cause.h"

#include "diagnose/factors.h"
#include "diagnose/interferers.h"

#include <string.h>

const struct result_factor *root_cause__factor(const struct result_diagnosis *diagnosis)
{
	const struct result_factor *best = NULL, *off = NULL;

	for (uint32_t i = 0; i < diagnosis->factor_count; i++) {
		const struct result_factor *factor = &diagnosis->factors[i];

		if (!factor->major)
			continue;
		if (!strcmp(factor->name, "suspension")) {
			off = factor;
			continue;
		}
		/* Between a whole and its part of equal impact, the part says more. */
		if (!best || factor->impact_seconds > best->impact_seconds ||
		    (factor->parent && !strcmp(factor->parent, best->name)))
			best = factor;
	}
	return best ? best : off;
}

const char *root_cause__finest(const struct result_diagnosis *diagnosis, const char *factor)
{
	for (const struct result_factor *part = NULL;; factor = part->name, part = NULL) {
		for (uint32_t i = 0; i < diagnosis->factor_count; i++) {
			const struct result_factor *at = &diagnosis->factors[i];

			if (at->major && !at->implied && at->parent && !strcmp(at->parent, factor) &&
			    (!part || at->impact_seconds > part->impact_seconds))
				part = at;
		}
		if (!part)
			return factor;
	}
}

bool root_cause__polls(enum vapro_class class, const char *factor)
{
	int node = factors__find(factor);

	while (node < FACTOR_NODES && factor_infos[node].parent != FACTOR_ROOT)
		node = (int)factor_infos[node].parent;
	return class == VAPRO_COMMUNICATION && node <= NODE_BACKEND;
}

/* Returns the function that the worst state of a variance calls; NULL where its labels name none. */
static const char *labelled(const struct result_variance *variance, int *length)
{
	static const char before[] = "function=";
	const char *labels = variance->site_count ? variance->sites[0].state->labels : NULL;
	const char *name = labels ? strstr(labels, before) : NULL;

	if (!name)
		return NULL;
	name += sizeof(before) - 1;
	*length = (int)strcspn(name, " ");
	return name;
}

const char *root_cause__called(const struct result_variance *variance, int *length)
{
	return variance->class == VAPRO_IO ? labelled(variance, length) : NULL;
}

const char *root_cause__region(const struct result_variance *variance, int *length)
{
	static const char after[] = ":barrier";
	const char *name = labelled(variance, length);

	if (!name)
		return NULL;
	*length -= (int)(sizeof(after) - 1);
	return *length > 0 && !strncmp(name + *length, after, sizeof(after) - 1) ? name : NULL;
}

static bool waits_for_cpu(const char *factor)
{
	return !strcmp(factor, "preempted") || !strcmp(factor, "wakeup_wait");
}

void root_cause__find(struct result_variance *variance, bool waiting, bool transfer)
{
	struct result_diagnosis *diagnosis = &variance->diagnosis;
	const struct result_factor *factor = root_cause__factor(diagnosis);
	int length;

	diagnosis->culprit = NULL;
	if (variance->slow_path) {
		diagnosis->cause = CAUSE_SLOW_PATH;
	} else if (waiting && root_cause__region(variance, &length)) {
		diagnosis->cause = CAUSE_BARRIER;
	} else if (waiting) {
		diagnosis->cause = transfer ? CAUSE_TRANSFER : CAUSE_LATE_PEER;
	} else if (!factor) {
		diagnosis->cause = CAUSE_UNKNOWN;
	} else if (root_cause__polls(variance->class, factor->name)) {
		diagnosis->cause = CAUSE_POLLING;
	} else if (!waits_for_cpu(factor->name)) {
		diagnosis->cause = factor->name;
	} else if (diagnosis->oversubscribed.cpus) {
		diagnosis->cause = CAUSE_OVERSUBSCRIBED;
	} else {
		diagnosis->cause = CAUSE_PREEMPTED;
		diagnosis->culprit = interferers__named(diagnosis);
	}
}
