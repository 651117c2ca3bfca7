// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * States of different sets of functions are never compared, so the nodes of a job do without the same ones: a worker
 * requests of each node what the others leave out (docs/many-nodes.md). These units are not the node's own set: what it
 * needs itself is decided as if they were probed, and a worker unites own sets only, so that no set holds itself.
 */
#include <math.h>
#include <stdio.h>

#include "overhead/enforcer_private.h"

#define LEAST_REST 0.02 /* share of the cost that is assumed to remain */

void enforcer__follow(struct governed *governed, uint32_t units, uint64_t until_ns, const char *why)
{
	struct image_duty *duty = governed->duty;

	if (!duty)
		return;
	for (int i = 0; i < FUNCTIONS_UNITS; i++)
		if (units >> i & 1 && duty->followed.until_ns[i] < until_ns)
			duty->followed.until_ns[i] = until_ns;
	snprintf(duty->followed.why, sizeof(duty->followed.why), "%s", why);
}

/* Returns the units that are requested, and how long all of them are. */
static uint32_t requested(const struct followed_set *followed, uint64_t now_ns, uint64_t *until_ns)
{
	uint32_t units = 0;

	*until_ns = UINT64_MAX;
	for (int i = 0; i < FUNCTIONS_UNITS; i++) {
		if (followed->until_ns[i] <= now_ns)
			continue;
		units |= 1U << i;
		if (followed->until_ns[i] < *until_ns)
			*until_ns = followed->until_ns[i];
	}
	return units;
}

/* Returns the ratio of a set that loses probed units as well. */
static double ratio_with(const struct enforcer *enforcer, const struct image_duty *duty, uint32_t more)
{
	double shares[FUNCTIONS_UNITS], share = 0;

	enforcer->ops.unit_shares(enforcer->ctx, duty->image, shares);
	for (int i = 0; i < FUNCTIONS_UNITS; i++)
		share += more >> i & 1 ? shares[i] : 0;
	return (1 + duty->followed.ratio) / fmax(1 - share, LEAST_REST) - 1;
}

void enforcer__carry_out_requests(struct enforcer *enforcer, struct image_duty *duty, uint64_t now_ns)
{
	struct followed_set *followed = &duty->followed;
	uint32_t before = enforcer__without(duty), fewer, again;
	uint64_t until_ns;
	uint32_t units = requested(followed, now_ns, &until_ns);
	char names[96];

	if (units == followed->without || duty->closed ||
	    (followed->changed_ns && now_ns < followed->changed_ns + GOVERNOR_STEP_NS))
		return;
	followed->ratio = units ? ratio_with(enforcer, duty, units & ~before) : 0;
	followed->without = units;
	followed->changed_ns = now_ns;
	fewer = units & ~before;
	again = before & ~enforcer__without(duty);
	if (!fewer && !again)
		return;
	enforcer__change_set(enforcer, duty, before);
	if (fewer) {
		functions__name_units(fewer, names, sizeof(names));
		enforcer__warn(
		    enforcer, "coarser", 0,
		    "functions of %s that never wait (%s) are not probed for at least %.0f s: %s; the time "
		    "between two other calls is one computation then, and what completions transfer is unknown",
		    duty->path, names, (double)(until_ns - now_ns) * 1e-9, followed->why);
	}
	if (again) {
		functions__name_units(again, names, sizeof(names));
		enforcer__warn(
		    enforcer, "released", 0,
		    "functions of %s that never wait (%s) are probed again: no worker has requested to leave "
		    "them out for all nodes of a job any more",
		    duty->path, names);
	}
}
