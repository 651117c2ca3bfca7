// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Where calls cost too much, functions that never wait are left out of the probes before anything else
 * (overhead/governor.h). An image has one set for all processes that map it, since they share its links. A change of
 * the set discards open calls and forgets posted requests; from then on all states carry the set, in the kernel side's
 * keys and in their labels.
 */
#include <bpf/libbpf.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "collect/requests.h"
#include "daemon/tracker_private.h"

_Static_assert(GOVERNOR_UNITS == FUNCTIONS_UNITS, "a share for each unit");

#define LEAST_LOOK_NS 2e7 /* open time before a process's cost in it is trusted */

#define FIRST_LOOK_NS 2e7	   /* open time of a process before its first check */
#define CHECK_EACH_NS 500000000ULL /* each check reads a counter of each function on each CPU */

/* Requests under way when posts are probed again are unknown; nearly all of them end within this time. */
#define UNDER_WAY_NS 5000000000ULL

struct forgetting {
	const struct watch *watch;
	const struct attached_image *image;
};

/* Persistent requests outlive their completions and are still there when posts are probed again. */
static bool is_forgotten(void *ctx, uint32_t tgid, const struct kernel_request *request)
{
	const struct forgetting *forgetting = ctx;
	const struct watch *watch = forgetting->watch;

	if (request->flags & KERNEL_REQUEST_PERSISTENT)
		return false;
	for (size_t i = 0; i < watch->count; i++)
		if ((uint32_t)watch->watched[i].pid == tgid && watch->watched[i].image == forgetting->image)
			return true;
	return false;
}

static void count_gaps(struct watch *watch, const struct attached_image *image, uint64_t now_ns, bool goes_on)
{
	for (size_t i = 0; i < watch->count; i++)
		if (watch->watched[i].image == image && !watch->watched[i].ended_ns)
			watch__count_gap(&watch->watched[i], now_ns,
					 goes_on || watch->watched[i].governed.io.closed_until_ns);
}

/* Publishes the set of an image's processes; requests posted before known_ns may be unknown without a loss. */
static void publish_set(struct watch *watch, const struct image_duty *duty, uint32_t without, uint64_t known_ns)
{
	for (size_t i = 0; i < watch->count; i++) {
		struct kernel_governed *orders = watch__orders(watch, &watch->watched[i]);

		if (watch->watched[i].image != duty->image)
			continue;
		orders->known_ns = known_ns;
		__atomic_store_n(&orders->set, without, __ATOMIC_RELEASE);
	}
}

/* Changes an image's probes to duty->set. before: units left out until now. */
static void change_set(struct watch *watch, struct image_duty *duty, uint32_t before)
{
	struct forgetting forgetting = {watch, duty->image};
	uint64_t now_ns;

	count_gaps(watch, duty->image, mono_now(), true);
	publish_set(watch, duty, before, UINT64_MAX);
	watch__advance_epochs(watch, duty->image, true, false);
	if (attacher__leave_out(watch->parts.attacher, duty->image, duty->set.without))
		watch__warn(watch, "attach_failed", 0, "some links could not be opened again");
	requests__age(kernel_side__map(watch->parts.side, KERNEL_MAP_REQUESTS), is_forgotten, &forgetting);
	now_ns = mono_now();
	publish_set(watch, duty, duty->set.without, now_ns + UNDER_WAY_NS);
	watch__advance_epochs(watch, duty->image, false, false);
	count_gaps(watch, duty->image, now_ns, false);
	watch__charge_image(watch, duty->image, now_ns);
	for (size_t i = 0; i < watch->count; i++)
		if (watch->watched[i].image == duty->image)
			watch__begin_load(watch, &watch->watched[i], now_ns);
	duty->counted_ns = now_ns;
}

bool watch__leave_out(struct watch *watch, struct watched *watched, uint64_t now_ns)
{
	const struct governor_load *load = &watched->governed.load;
	struct image_duty *duty = watched->image ? watch__duty_of(watch, watched->image) : NULL;
	double shares[FUNCTIONS_UNITS], cost;
	uint32_t before;
	char say[512], names[96];

	if (!duty || duty->image->closed || load->open_ns < LEAST_LOOK_NS)
		return false;
	cost = fmax(load->cost_ns / load->open_ns, watched->governed.account.mean);
	before = duty->set.without;
	attacher__unit_shares(watch->parts.attacher, duty->image, watch__stepped_ratio(watch->parts.costs), shares);
	if (!governor__leave_out(&watch->parts.governor, &duty->set, shares, cost, now_ns))
		return false;
	functions__name_units(duty->set.without, names, sizeof(names));
	watch__say_load(watch, watched, say, sizeof(say));
	change_set(watch, duty, before);
	watch__warn(
	    watch, "coarser", watched->pid,
	    "%s, over the budget of %.2g %%: functions of %s that never wait (%s) are not probed for at least "
	    "%.0f s, which saves %.0f %% of that; the time between two other calls is one computation then, and "
	    "what completions transfer is unknown",
	    say, watch__budget_pct(watch), duty->image->path, names,
	    (double)(GOVERNOR_KEEP_NS << duty->set.level) * 1e-9, duty->set.ratio / (1 + duty->set.ratio) * 100);
	return true;
}

/*
 * Returns whether a process costs more than its budget, though its allowance lasts for a while: checked once soon after
 * its attachment, and then where the allowance is half gone.
 */
static bool costs_too_much(const struct watch *watch, struct watched *watched, uint64_t now_ns)
{
	const struct governor *governor = &watch->parts.governor;
	struct governed *governed = &watched->governed;

	if (!watched->image || watched->image->closed || governor->rate <= 0)
		return false;
	if (!governed->looked && governed->load.open_ns >= FIRST_LOOK_NS) {
		governed->looked = true;
		return governed->load.cost_ns > governor->rate * governed->load.open_ns;
	}
	if (governed->account.mean <= governor->rate || governed->account.credit_ns >= governor->room_ns / 2 ||
	    now_ns < governed->checked_ns + CHECK_EACH_NS)
		return false;
	governed->checked_ns = now_ns;
	return true;
}

bool watch__leave_out_early(struct watch *watch, struct watched *watched, uint64_t now_ns)
{
	return costs_too_much(watch, watched, now_ns) && watch__leave_out(watch, watched, now_ns);
}

void watch__probe_again(struct watch *watch, struct image_duty *duty, uint64_t now_ns)
{
	uint32_t before = duty->set.without;
	char names[96];
	double cost = 0, mean = 0;

	if (duty->image->closed)
		return;
	for (size_t i = 0; i < watch->count; i++) {
		const struct governed *governed = &watch->watched[i].governed;

		if (watch->watched[i].image != duty->image || watch->watched[i].ended_ns)
			continue;
		cost = fmax(cost, governed->cost);
		mean = fmax(mean, governed->account.mean);
	}
	/* shares cover recent calls only, but their count does not restart where a decision may be near */
	if (now_ns >= duty->counted_ns + GOVERNOR_STEP_NS && mean < watch->parts.governor.rate / 2) {
		attacher__begin_count(watch->parts.attacher, duty->image);
		duty->counted_ns = now_ns;
	}
	if (!governor__restore(&watch->parts.governor, &duty->set, fmax(cost, mean), now_ns))
		return;
	functions__name_units(before, names, sizeof(names));
	change_set(watch, duty, before);
	watch__warn(watch, "released", 0,
		    "functions of %s that never wait (%s) are probed again: no process that maps it would cost over "
		    "%.2g %% of its time with them",
		    duty->image->path, names, watch__budget_pct(watch) * GOVERNOR_GIVE_BACK);
}
