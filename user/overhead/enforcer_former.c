// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What is remembered of a program at its end: the functions that were left out, and those that had to be closed. Its
 * next run begins without them, so that short runs of one program do not each pay for the same discovery. Paths say
 * nothing across owners: one user's runs of a program are none of another's, whose namespace may have another file
 * there.
 */
#include <stdio.h>
#include <string.h>

#include "overhead/enforcer_private.h"

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
	char names[96];

	functions__name_units(duty->set.without, names, sizeof(names));
	enforcer__warn(
	    enforcer, "coarser", first->process.pid,
	    "process %d (%s): functions of %s that never wait (%s) are not probed for at least %.0f s, since they were "
	    "over the overhead budget of %.2g %% when the program ran before; the time between two other calls is one "
	    "computation then, and what completions transfer is unknown",
	    first->process.pid, first->exe, duty->path, names, (double)(GOVERNOR_KEEP_NS << duty->set.level) * 1e-9,
	    enforcer->governor.budget * 100);
}

/* Begins a duty cycle with a closed period. */
static void begin_closed(struct enforcer *enforcer, struct image_duty *duty, const struct governed *first,
			 uint64_t now_ns)
{
	duty->closed = duty->reported = true;
	duty->unopened++;
	governor__begin_closed(&enforcer->governor, &duty->cycle, now_ns,
			       governor__period_ns(&enforcer->governor, duty->cost),
			       governor__savings(&first->account));
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
