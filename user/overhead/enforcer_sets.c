// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Where calls cost too much, functions that never wait, or were measured to wait hardly ever, are left out of the
 * probes before anything else (governor.h). An image has one set for all processes that map it, since they share its
 * links. A change of the set discards open calls and forgets posted requests; from then on all states carry the set, in
 * the kernel side's keys and in their labels.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "overhead/enforcer_private.h"

_Static_assert(GOVERNOR_UNITS == FUNCTIONS_UNITS, "a share for each unit");

#define LEAST_COUNT_NS 5e6	   /* open time before a process's cost in it is trusted */
#define LEAST_LOOK_NS 2e7	   /* the same before the first check of a process that has not spent its allowance */
#define WORTH_MORE 1.2		   /* factor of covered time that is worth leaving out functions that can wait */
#define NOT_LOWER 0.9		   /* share of the covered time without that; less is not the noise of a minute */
#define WARM_UP_NS 15000000000ULL  /* time until the states of a new set have a history */
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

static void begin_watch(struct coverage_watch *watch, uint64_t now_ns)
{
	watch->since_ns = watch->last_ns = now_ns;
	watch->closed_ns = 0;
	watch->judged_ns = watch->analysed_ns = 0;
	watch->tried = 0;
	watch->otherwise = 0;
}

/* Changes an image's probes to enforcer__without(); before: units left out until now. */
static void enforcer__change_set(struct enforcer *enforcer, struct image_duty *duty, uint32_t before)
{
	bool parted = false;
	int status;

	publish_set(duty, before, UINT64_MAX);
	enforcer__begin_change(duty, enforcer->ops.now());
	status = enforcer->ops.leave_out(enforcer->ctx, duty->image, enforcer__without(duty), &parted);
	if (status)
		enforcer__warn_unopened(enforcer, duty, status);
	if (parted && !duty->closed) {
		/* opened as soon as the old links are gone */
		duty->closed = true;
		duty->cycle.closed_until_ns = enforcer->ops.now();
	}
	for (struct governed *governed = duty->first; governed; governed = governed->next_of_image)
		governed->process.orders->drop_open_epoch += parted;
	publish_set(duty, enforcer__without(duty), enforcer->ops.now() + UNDER_WAY_NS);
	duty->counted_ns = enforcer__end_change(enforcer, duty);
	begin_watch(&duty->watch, duty->counted_ns);
}

/* Returns what is left out in words: functions that never wait, or measured to wait hardly ever. */
static const char *kind_of(uint32_t units)
{
	return units & FUNCTIONS_UNITS_WAITING ? "hardly ever wait" : "never wait";
}

/* Returns what is not known any more without these units, in words. */
static const char *loss_of(uint32_t units)
{
	if (!(units & KERNEL_SET_POSTS))
		return "the time between two other calls is one computation then, with any wait in these functions";
	if (units & FUNCTIONS_UNITS_WAITING)
		return "the time between two other calls is one computation then, with any wait in these functions, "
		       "and what completions transfer is unknown";
	return "the time between two other calls is one computation then, and what completions transfer is unknown";
}

/* What a set is chosen by, of an image's worst process, as shares of time. */
struct choice {
	struct governor_set set;
	double rest;		   /* cost of all that stays */
	double covered, otherwise; /* with the set, and without its functions that can wait */
	double with_all;	   /* with nothing left out */
};

/* Returns the share of time that is covered at most where calls cost so much, and their returns can be suppressed. */
static double covered_at_most(const struct enforcer *enforcer, const struct governor_load *load, double cost)
{
	double rate = enforcer->governor.rate;

	cost *= load->cost_ns > 0 ? fmax(0, 1 - load->return_ns * load->entries / load->cost_ns) : 1;
	return cost > rate ? rate / cost : 1;
}

/* Returns the share of time that is covered where nothing more is left out: by the plan, or at most before there is
 * one. */
static double covered_otherwise(const struct enforcer *enforcer, struct governed *worst, double cost)
{
	struct governor_plan plan;

	enforcer__read_spans(enforcer, worst);
	plan = governor__plan(&enforcer->governor, &worst->load);
	return plan.cost > 0 ? plan.covered * plan.open : covered_at_most(enforcer, &worst->load, cost);
}

/* Chooses a set by the units' shares of the calls of a process. Returns whether it leaves out more. */
static bool choose_by(const struct enforcer *enforcer, const struct governed *worst,
		      const double of_calls[FUNCTIONS_UNITS], double cost, uint64_t now_ns, struct choice *choice)
{
	const struct governor *governor = &enforcer->governor;
	const struct image_duty *duty = worst->duty;
	uint32_t before = enforcer__without(duty);
	double shares[FUNCTIONS_UNITS];

	memcpy(shares, of_calls, sizeof(shares));
	governor__saved_shares(&worst->load, shares);
	choice->set = duty->set;
	if (!governor__leave_out(governor, &choice->set, shares, cost, now_ns))
		return false;
	choice->rest = cost;
	for (int i = 0; i < FUNCTIONS_UNITS; i++)
		choice->rest -= (choice->set.without & ~before) >> i & 1 ? shares[i] * cost : 0;
	choice->covered = choice->rest > governor->rate ? governor->rate / choice->rest : 1;
	return true;
}

/*
 * Chooses what is left out of the image of a process whose calls cost so much. Functions that can wait are part of it
 * where more time is covered without them than by any other way to keep the budget. Returns whether there is anything.
 */
static bool choose_set(const struct enforcer *enforcer, struct governed *worst, double cost, uint64_t now_ns,
		       struct choice *choice)
{
	const struct image_duty *duty = worst->duty;
	double shares[FUNCTIONS_UNITS], posts[FUNCTIONS_UNITS] = {0},
					otherwise = covered_otherwise(enforcer, worst, cost);
	struct choice all = {0};
	bool any;

	enforcer->ops.unit_shares(enforcer->ctx, duty->image, shares);
	for (int i = 0; i < FUNCTIONS_UNITS; i++) {
		if (now_ns < duty->watch.barred_ns && duty->watch.barred >> i & 1)
			shares[i] = 0;
		posts[i] = functions__unit_waits(i) ? 0 : shares[i];
	}
	choice->with_all = all.with_all = otherwise;
	any = choose_by(enforcer, worst, posts, cost, now_ns, choice);
	/* calls whose returns are suppressed are not counted by function */
	if (worst->steps.thin || !choose_by(enforcer, worst, shares, cost, now_ns, &all))
		return any;
	all.otherwise = any ? fmax(otherwise, covered_at_most(enforcer, &worst->load, choice->rest)) : otherwise;
	if (!(all.set.without & ~duty->set.without & FUNCTIONS_UNITS_WAITING) ||
	    all.covered <= all.otherwise * WORTH_MORE)
		return any;
	*choice = all;
	return true;
}

/* Leaves out what was chosen. excess: what the calls of the process cost and over which budget, in words. */
static void leave_out(struct enforcer *enforcer, const struct governed *governed, const struct choice *choice,
		      const char *excess)
{
	struct image_duty *duty = governed->duty;
	struct coverage_watch *watch = &duty->watch;
	uint32_t before = enforcer__without(duty), tried = choice->set.without & ~before & FUNCTIONS_UNITS_WAITING;
	char names[FUNCTIONS_UNITS_TEXT], brings[96] = "";

	duty->set = choice->set;
	functions__name_units(duty->set.without, names, sizeof(names));
	enforcer__change_set(enforcer, duty, before);
	watch->otherwise = choice->with_all;
	watch->tried = tried;
	watch->before = watch->covered > 0 ? fmin(choice->otherwise, watch->covered) : choice->otherwise;
	if (tried)
		snprintf(brings, sizeof(brings), ", so that %.0f %% of the time is covered instead of at most %.0f %%",
			 choice->covered * 100, choice->otherwise * 100);
	enforcer__warn(enforcer, "coarser", governed->process.pid,
		       "%s: functions of %s that %s (%s) are not probed for at least "
		       "%.0f s, which saves %.0f %% of that%s; %s",
		       excess, duty->path, kind_of(duty->set.without), names,
		       (double)(GOVERNOR_KEEP_NS << duty->set.level) * 1e-9,
		       duty->set.ratio / (1 + duty->set.ratio) * 100, brings, loss_of(duty->set.without));
}

bool enforcer__leave_out(struct enforcer *enforcer, struct governed *governed, uint64_t now_ns)
{
	const struct governor_load *load = &governed->load;
	struct choice choice;
	char text[512];
	size_t used;

	if (!governed->duty || governed->duty->closed || load->open_ns < LEAST_COUNT_NS ||
	    !choose_set(enforcer, governed, fmax(load->cost_ns / load->open_ns, governed->account.mean), now_ns,
			&choice))
		return false;
	enforcer__describe_load(governed, text, sizeof(text));
	used = strlen(text);
	snprintf(text + used, sizeof(text) - used, ", over the budget of %.2g %%", enforcer->governor.budget * 100);
	leave_out(enforcer, governed, &choice, text);
	return true;
}

bool enforcer__leave_out_closed(struct enforcer *enforcer, struct governed *worst, double cost, const char *excess,
				uint64_t now_ns)
{
	struct image_duty *duty = worst->duty;
	struct choice choice;

	if (!choose_set(enforcer, worst, cost, now_ns, &choice) || choice.rest >= enforcer->governor.rate)
		return false;
	leave_out(enforcer, worst, &choice, excess);
	governor__close_for_rest(&enforcer->governor, &duty->cycle, now_ns, choice.rest,
				 governor__savings(&worst->account));
	return true;
}

/* Returns the share of time that was covered since a set began to hold, of the process that was covered least. */
static double covered_since(const struct image_duty *duty)
{
	const struct coverage_watch *watch = &duty->watch;
	double covered = 1;

	for (const struct governed *governed = duty->first; governed; governed = governed->next_of_image)
		if (governed->covered > 0)
			covered = fmin(covered, governed->covered);
	return covered * (1 - (double)watch->closed_ns / (double)(watch->last_ns - watch->since_ns));
}

/*
 * Probes functions again that were left out to no avail, and not soon again without them. covered, otherwise: the
 * covered shares of time without and with them.
 */
static void undo(struct enforcer *enforcer, struct image_duty *duty, uint32_t again, double covered, double otherwise,
		 uint64_t now_ns)
{
	uint32_t before = enforcer__without(duty);
	char names[FUNCTIONS_UNITS_TEXT];

	duty->watch.barred = again | FUNCTIONS_UNITS_WAITING;
	duty->watch.barred_ns = now_ns + 2 * governor__undo(&duty->set, again, now_ns);
	again &= before & ~enforcer__without(duty);
	if (!again)
		return; /* other nodes need them left out */
	enforcer__change_set(enforcer, duty, before);
	functions__name_units(again, names, sizeof(names));
	enforcer__warn(enforcer, "released", 0,
		       "functions of %s that %s (%s) are probed again: without them %.0f %% of the time "
		       "was covered, and with them about %.0f %% can be",
		       duty->path, kind_of(again), names, covered * 100, otherwise * 100);
}

void enforcer__judged(struct governed *governed, uint64_t begin_ns, uint64_t end_ns, double share)
{
	struct coverage_watch *watch = governed->duty ? &governed->duty->watch : NULL;

	if (!watch || !watch->since_ns || begin_ns < watch->since_ns + WARM_UP_NS || end_ns <= begin_ns)
		return;
	watch->judged_ns += share * (double)(end_ns - begin_ns);
	watch->analysed_ns += (double)(end_ns - begin_ns);
}

/*
 * Compares what can be judged with and without the units of a set: where that is less than the time for which all
 * probes could be open, as where the time between two other calls is of many kinds, they are probed again for a while,
 * and left out again only if less is judged with them.
 */
static void compare_judged(struct enforcer *enforcer, struct image_duty *duty, uint64_t now_ns)
{
	struct coverage_watch *watch = &duty->watch;
	double judged = watch->judged_ns / watch->analysed_ns, otherwise = watch->otherwise;

	if (duty->set.without && !watch->doubted && judged < otherwise * NOT_LOWER) {
		watch->doubted = duty->set.without;
		watch->judged = judged;
		undo(enforcer, duty, watch->doubted, judged, otherwise, now_ns);
	} else if (watch->doubted && !(enforcer__without(duty) & watch->doubted)) {
		if (judged < watch->judged)
			watch->barred_ns = now_ns;
		else
			watch->doubted = 0;
	}
}

void enforcer__watch_coverage(struct enforcer *enforcer, struct image_duty *duty, uint64_t now_ns)
{
	struct coverage_watch *watch = &duty->watch;

	if (!watch->since_ns)
		begin_watch(watch, now_ns);
	if (now_ns < watch->last_ns)
		return;
	watch->closed_ns += duty->closed ? now_ns - watch->last_ns : 0;
	watch->last_ns = now_ns;
	if (duty->closed || now_ns < watch->since_ns + GOVERNOR_KEEP_NS)
		return;
	watch->covered = covered_since(duty);
	if (watch->tried && watch->covered < watch->before * NOT_LOWER)
		undo(enforcer, duty, watch->tried, watch->covered, watch->before, now_ns);
	else if (watch->analysed_ns > 0)
		compare_judged(enforcer, duty, now_ns);
	begin_watch(watch, now_ns);
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
	char names[FUNCTIONS_UNITS_TEXT];
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
	duty->watch.doubted = 0; /* what the program does now is another comparison */
	again = before & ~enforcer__without(duty);
	if (!again)
		return;
	functions__name_units(again, names, sizeof(names));
	enforcer__change_set(enforcer, duty, before);
	enforcer__warn(enforcer, "released", 0,
		       "functions of %s that %s (%s) are probed again: no process that maps it would cost over "
		       "%.2g %% of its time with them",
		       duty->path, kind_of(again), names, enforcer->governor.budget * 100 * GOVERNOR_GIVE_BACK);
}

/*
 * States of different sets of functions are never compared, so the nodes of a job do without the same ones: a worker
 * requests of each node what the others leave out (docs/many-nodes.md). These units are not the node's own set: what it
 * needs itself is decided as if they were probed, and a worker unites own sets only, so that no set holds itself.
 */

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
	char names[FUNCTIONS_UNITS_TEXT];

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
		enforcer__warn(enforcer, "coarser", 0,
			       "functions of %s that %s (%s) are not probed for at least %.0f s: %s; %s", duty->path,
			       kind_of(fewer), names, (double)(until_ns - now_ns) * 1e-9, followed->why,
			       loss_of(fewer));
	}
	if (again) {
		functions__name_units(again, names, sizeof(names));
		enforcer__warn(
		    enforcer, "released", 0,
		    "functions of %s that %s (%s) are probed again: no worker has requested to leave them out for all "
		    "nodes of a job any more",
		    duty->path, kind_of(again), names);
	}
}

/*
 * What is remembered of a program at its end: the functions that were left out, and those that had to be closed. Its
 * next run begins without them, so that short runs of one program do not each pay for the same discovery. Paths say
 * nothing across owners: one user's runs of a program are none of another's, whose namespace may have another file
 * there.
 */

#define REMEMBERED_NS 3600000000000ULL /* time in which a program that is started again is assumed to be the same */
#define UNOPENED_MOST 8 /* runs in a row that ended before probes were opened; the program may have changed since */

/* Returns whether probes were open for so long at the end that they are no longer too expensive. */
static bool is_affordable(const struct image_duty *duty, uint64_t now_ns)
{
	return !duty->closed && now_ns >= duty->cycle.opened_ns + GOVERNOR_OPENING_NS;
}

static bool is_any(const struct functions_spared *spared)
{
	uint64_t any = 0;

	for (size_t i = 0; i < sizeof(spared->costly) / sizeof(spared->costly[0]); i++)
		any |= spared->costly[i];
	return any;
}

/* Returns the index of what is remembered of an image of an owner's program; FORMER_RUNS where that is nothing. */
static size_t find(const struct enforcer *enforcer, uid_t owner, const char *exe, const char *image, uint64_t now_ns)
{
	for (size_t i = 0; i < FORMER_RUNS; i++) {
		const struct former_run *of = &enforcer->former[i];

		if (of->ended_ns && now_ns < of->ended_ns + REMEMBERED_NS && of->owner == owner &&
		    !strcmp(of->exe, exe) && !strcmp(of->image, image))
			return i;
	}
	return FORMER_RUNS;
}

void enforcer__remember(struct enforcer *enforcer, const struct image_duty *duty, const struct governed *last,
			uint64_t now_ns)
{
	bool costly = duty->cost > 0 && !is_affordable(duty, now_ns);
	size_t at = find(enforcer, last->process.owner, last->exe, duty->path, now_ns);
	struct former_run *to = &enforcer->former[at % FORMER_RUNS];

	if (!duty->set.without && !costly)
		return;
	for (size_t i = 0; at == FORMER_RUNS && i < FORMER_RUNS; i++)
		if (enforcer->former[i].ended_ns < to->ended_ns)
			to = &enforcer->former[i];
	*to = (struct former_run){.owner = last->process.owner, .ended_ns = now_ns, .set = duty->set};
	snprintf(to->exe, sizeof(to->exe), "%s", last->exe);
	snprintf(to->image, sizeof(to->image), "%s", duty->path);
	if (!costly)
		return;
	enforcer->ops.costly(enforcer->ctx, duty->image, &to->spared);
	to->cost = is_any(&to->spared) ? duty->cost : 0;
	to->unopened = duty->unopened;
}

/* Returns whether the functions that were closed begin closed: a first open period is not affordable at once. */
static bool begins_closed(const struct enforcer *enforcer, const struct former_run *former)
{
	const struct governor *governor = &enforcer->governor;

	return former->cost > 0 && former->unopened < UNOPENED_MOST &&
	       governor__period_ns(governor, former->cost) > governor->opening_ns;
}

struct functions_spared enforcer__former(const struct enforcer *enforcer, uid_t owner, const char *exe,
					 const char *image, uint64_t now_ns)
{
	size_t at = find(enforcer, owner, exe, image, now_ns);
	struct functions_spared spared = {0};

	if (at == FORMER_RUNS)
		return spared;
	spared = enforcer->former[at].spared;
	spared.units = enforcer->former[at].set.without;
	spared.closed = begins_closed(enforcer, &enforcer->former[at]);
	return spared;
}

static void warn_of_set(const struct enforcer *enforcer, const struct image_duty *duty, const struct governed *first)
{
	char names[FUNCTIONS_UNITS_TEXT];

	functions__name_units(duty->set.without, names, sizeof(names));
	enforcer__warn(
	    enforcer, "coarser", first->process.pid,
	    "process %d (%s): functions of %s that %s (%s) are not probed for at least %.0f s, since they were "
	    "over the overhead budget of %.2g %% when the program ran before; %s",
	    first->process.pid, first->exe, duty->path, kind_of(duty->set.without), names,
	    (double)(GOVERNOR_KEEP_NS << duty->set.level) * 1e-9, enforcer->governor.budget * 100,
	    loss_of(duty->set.without));
}

/* Begins a duty cycle with a closed period. */
static void begin_closed(struct enforcer *enforcer, struct image_duty *duty, const struct governed *first,
			 uint64_t now_ns)
{
	duty->closed = duty->reported = true;
	duty->unopened++;
	governor__close(&enforcer->governor, &duty->cycle, now_ns, duty->cost, governor__savings(&first->account));
	enforcer__warn(enforcer, "governed", first->process.pid,
		       "process %d (%s): expensive functions of %s are not probed for the first %.1f s and then in a "
		       "duty cycle, since calls cost %.2g %% of its time when the program ran before, over the budget "
		       "of %.2g %%; the gaps are uncovered, reason governed: only what the kernel's scheduler did to "
		       "their threads is known",
		       first->process.pid, first->exe, duty->path,
		       (double)(duty->cycle.closed_until_ns - now_ns) * 1e-9, duty->cost * 100,
		       enforcer->governor.budget * 100);
}

void enforcer__recall(struct enforcer *enforcer, struct image_duty *duty, const struct governed *first, uint64_t now_ns)
{
	size_t at = find(enforcer, first->process.owner, first->exe, duty->path, now_ns);
	struct former_run former;

	if (at == FORMER_RUNS)
		return;
	former = enforcer->former[at];
	enforcer->former[at] = (struct former_run){0};
	duty->set = former.set;
	duty->cost = former.cost;
	duty->unopened = former.unopened;
	duty->cycle.opened_ns = now_ns;
	if (duty->set.without) {
		duty->set.changed_ns = now_ns;
		warn_of_set(enforcer, duty, first);
	}
	if (begins_closed(enforcer, &former))
		begin_closed(enforcer, duty, first, now_ns);
}
