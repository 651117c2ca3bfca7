// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Where calls cost too much, functions that never wait are left out of the probes before anything else (governor.h).
 * An image has one set for all processes that map it, since they share its links. A change of the set discards open
 * calls and forgets posted requests; from then on all states carry the set, in the kernel side's keys and in their
 * labels.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "overhead/enforcer_private.h"

_Static_assert(GOVERNOR_UNITS == FUNCTIONS_UNITS, "a share for each unit");

#define LEAST_COUNT_NS 5e6	   /* open time before a process's cost in it is trusted */
#define LEAST_LOOK_NS 2e7	   /* the same before the first check of a process that has not spent its allowance */
#define CHECK_EACH_NS 500000000ULL /* each check reads a counter of each function on each CPU */

/* Requests under way when posts are probed again are unknown; nearly all of them end within this time. */
#define UNDER_WAY_NS 5000000000ULL

/* Publishes the set of an image's processes; requests posted before known_ns may be unknown without a loss. */
static void publish_set(const struct image_duty *duty, uint32_t without, uint64_t known_ns)
{
	for (struct governed *governed = duty->first; governed; governed = governed->next_of_image) {
		governed->process.orders->known_ns = known_ns;
		__atomic_store_n(&governed->process.orders->set, without, __ATOMIC_RELEASE);
	}
}

void enforcer__change_set(struct enforcer *enforcer, struct image_duty *duty, uint32_t before)
{
	int status;

	publish_set(duty, before, UINT64_MAX);
	enforcer__begin_change(duty, enforcer->ops.now());
	status = enforcer->ops.leave_out(enforcer->ctx, duty->image, enforcer__without(duty));
	if (status)
		enforcer__warn_unopened(enforcer, duty, status);
	publish_set(duty, enforcer__without(duty), enforcer->ops.now() + UNDER_WAY_NS);
	duty->counted_ns = enforcer__end_change(enforcer, duty);
}

/*
 * Removes the probes of the units that the set of the process's image has gained; before: units left out until now;
 * excess: what the calls of the process cost and over which budget, in words.
 */
static void leave_out(struct enforcer *enforcer, const struct governed *governed, uint32_t before, const char *excess)
{
	struct image_duty *duty = governed->duty;
	char names[96];

	functions__name_units(duty->set.without, names, sizeof(names));
	enforcer__change_set(enforcer, duty, before);
	enforcer__warn(
	    enforcer, "coarser", governed->process.pid,
	    "%s: functions of %s that never wait (%s) are not probed for at least "
	    "%.0f s, which saves %.0f %% of that; the time between two other calls is one computation then, and "
	    "what completions transfer is unknown",
	    excess, duty->path, names, (double)(GOVERNOR_KEEP_NS << duty->set.level) * 1e-9,
	    duty->set.ratio / (1 + duty->set.ratio) * 100);
}

bool enforcer__leave_out(struct enforcer *enforcer, struct governed *governed, uint64_t now_ns)
{
	const struct governor_load *load = &governed->load;
	struct image_duty *duty = governed->duty;
	double shares[FUNCTIONS_UNITS], cost;
	uint32_t before;
	char text[512];
	size_t used;

	if (!duty || duty->closed || load->open_ns < LEAST_COUNT_NS)
		return false;
	cost = fmax(load->cost_ns / load->open_ns, governed->account.mean);
	before = enforcer__without(duty);
	enforcer->ops.unit_shares(enforcer->ctx, duty->image, shares);
	governor__saved_shares(load, shares);
	if (!governor__leave_out(&enforcer->governor, &duty->set, shares, cost, now_ns))
		return false;
	enforcer__describe_load(governed, text, sizeof(text));
	used = strlen(text);
	snprintf(text + used, sizeof(text) - used, ", over the budget of %.2g %%", enforcer->governor.budget * 100);
	leave_out(enforcer, governed, before, text);
	return true;
}

bool enforcer__leave_out_closed(struct enforcer *enforcer, struct governed *worst, double cost, const char *excess,
				uint64_t now_ns)
{
	struct image_duty *duty = worst->duty;
	uint32_t before = enforcer__without(duty);
	struct governor_set set = duty->set;
	double shares[FUNCTIONS_UNITS], rest = 1;

	enforcer->ops.unit_shares(enforcer->ctx, duty->image, shares);
	governor__saved_shares(&worst->load, shares);
	if (!governor__leave_out(&enforcer->governor, &set, shares, cost, now_ns))
		return false;
	for (int i = 0; i < FUNCTIONS_UNITS; i++)
		rest -= (set.without & ~before) >> i & 1 ? shares[i] : 0;
	rest *= cost;
	if (rest >= enforcer->governor.rate)
		return false;
	duty->set = set;
	leave_out(enforcer, worst, before, excess);
	governor__close_for_rest(&enforcer->governor, &duty->cycle, now_ns, rest, governor__savings(&worst->account));
	return true;
}

/*
 * Returns whether a process costs more than its budget, though its allowance lasts for a while: checked once soon after
 * its attachment, and then where the allowance is half gone.
 */
static bool costs_too_much(const struct enforcer *enforcer, struct governed *governed, uint64_t now_ns)
{
	const struct governor *governor = &enforcer->governor;

	if (!governed->duty || governed->duty->closed || governor->rate <= 0)
		return false;
	if (!governed->looked && governed->load.open_ns >= LEAST_LOOK_NS) {
		governed->looked = true;
		return governed->load.cost_ns > governor->rate * governed->load.open_ns;
	}
	if (governed->account.mean <= governor->rate || governed->account.credit_ns >= governor->room_ns / 2 ||
	    now_ns < governed->checked_ns + CHECK_EACH_NS)
		return false;
	governed->checked_ns = now_ns;
	return true;
}

bool enforcer__leave_out_early(struct enforcer *enforcer, struct governed *governed, uint64_t now_ns)
{
	return costs_too_much(enforcer, governed, now_ns) &&
	       (enforcer__end_learning(enforcer, governed, now_ns) || enforcer__share(enforcer, governed) ||
		enforcer__leave_out(enforcer, governed, now_ns));
}

void enforcer__probe_again(struct enforcer *enforcer, struct image_duty *duty, uint64_t now_ns)
{
	uint32_t before = enforcer__without(duty), again;
	char names[96];
	double cost = 0, mean = 0;

	if (duty->closed)
		return;
	for (const struct governed *governed = duty->first; governed; governed = governed->next_of_image) {
		cost = fmax(cost, governed->cost);
		mean = fmax(mean, governed->account.mean);
	}
	/* shares cover recent calls only, but their count does not restart where a decision may be near */
	if (now_ns >= duty->counted_ns + GOVERNOR_STEP_NS && mean < enforcer->governor.rate / 2) {
		enforcer->ops.begin_count(enforcer->ctx, duty->image);
		duty->counted_ns = now_ns;
	}
	/* what others need does not count: the set is what this node would need alone */
	if (!governor__restore(&enforcer->governor, &duty->set, fmax(cost, mean) * (1 + duty->followed.ratio), now_ns))
		return;
	again = before & ~enforcer__without(duty);
	if (!again)
		return;
	functions__name_units(again, names, sizeof(names));
	enforcer__change_set(enforcer, duty, before);
	enforcer__warn(enforcer, "released", 0,
		       "functions of %s that never wait (%s) are probed again: no process that maps it would cost over "
		       "%.2g %% of its time with them",
		       duty->path, names, enforcer->governor.budget * 100 * GOVERNOR_GIVE_BACK);
}
