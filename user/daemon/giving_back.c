// SPDX-License-Identifier: GPL-2.0-or-later
/* What an owner's processes have borrowed of slots and of the kernel side's tables is given back when others need it.
 */
#include "daemon/tracker_private.h"

#include <math.h>
#include <unistd.h>

/* What vaprod may use of a CPU, or of all CPUs, before those for whom it runs most lose detail. */
#define CPU_PART 0.04
#define CPU_PART_OF_NODE 0.0025

/* Returns whether an owner has more states than its share, which others need; a reduced one only makes no new ones. */
static bool is_over(const struct owner *of, const struct kernel_owner *owner)
{
	uint32_t entries = owner->vertices > owner->edges ? owner->vertices : owner->edges;

	return (uint64_t)entries * KERNEL_SHARE_ALL > (uint64_t)KERNEL_STATES * owner->share << of->level;
}

void tracker__share_out(struct tracker *tracker)
{
	struct kernel_owner *owners = kernel_side__shared(tracker->parts.side)->owners;

	for (uint32_t i = 0; i < KERNEL_SLOTS; i++) {
		const struct owner *owner = &tracker->owners.of[i];

		if (!owner->processes)
			continue;
		__atomic_store_n(&owners[i].share, owners__share(&tracker->owners, i), __ATOMIC_RELAXED);
		__atomic_store_n(&owners[i].tokens, KERNEL_TOKENS >> owner->level, __ATOMIC_RELAXED);
	}
}

/* Notes what vaprod ran for each owner, and reduces the share of one for which it runs too much. */
static void limit_cpu(struct tracker *tracker, uint64_t now_ns)
{
	struct owners *owners = &tracker->owners;
	double passed_ns = (double)(now_ns - tracker->last_second_ns);
	uint32_t owner;

	for (uint32_t i = 0; i < KERNEL_SLOTS; i++)
		if (owners->of[i].processes)
			owners__note(owners, i, enforcer__caused(tracker->enforcer, owners->of[i].uid), passed_ns);
	owner =
	    owners__adjust(owners, fmax(CPU_PART, CPU_PART_OF_NODE * (double)sysconf(_SC_NPROCESSORS_ONLN)), now_ns);
	tracker__share_out(tracker);
	for (size_t i = 0; i < tracker->count && owner < KERNEL_SLOTS; i++) {
		const struct tracked *tracked = &tracker->tracked[i];

		if (tracked->owner != owner || tracked->ended_ns)
			continue;
		tracker__warn(
		    tracker, "detail_reduced", tracked->pid,
		    "vaprod uses %.2g %% of a CPU for %u processes of one user (process %d, %s, is one of them) while "
		    "it tracks processes of %zu users: from now on fewer of their states, and of their slow "
		    "fragments that are reported one by one, are recorded (1/%u of their usual share)",
		    owners->of[owner].rate * 100, owners->of[owner].processes, tracked->pid, tracked->identity.name,
		    owners->active, 1U << owners->of[owner].level);
		break;
	}
}

void tracker__give_back(struct tracker *tracker, uint64_t now_ns)
{
	const struct kernel_shared *shared = kernel_side__shared(tracker->parts.side);
	struct numbered_process given[KERNEL_SLOTS];
	const struct tracked *first = NULL;
	uint32_t owner = 0;
	size_t count = 0;

	limit_cpu(tracker, now_ns);
	while (owner < KERNEL_SLOTS &&
	       (!tracker->owners.of[owner].processes || !is_over(&tracker->owners.of[owner], &shared->owners[owner])))
		owner++;
	if (owner == KERNEL_SLOTS)
		return;
	for (size_t i = 0; i < tracker->count; i++) {
		const struct tracked *tracked = &tracker->tracked[i];

		if (tracked->owner != owner || tracked->ended_ns)
			continue;
		given[count++] = (struct numbered_process){tracked->pid, tracked->slot};
		first = first ? first : tracked;
	}
	if (!first)
		return;
	tracker__warn(tracker, "states_bounded", first->pid,
		      "%zu processes of one user (process %d, %s, is one of them) have more states than their share "
		      "of the kernel's tables, which processes of %zu users need now: the states of these processes "
		      "are recorded again, and beyond the share further values of peer, root, communicator, "
		      "operation, file, mode and call path are recorded as one value, 'other'",
		      count, first->pid, first->identity.name, tracker->owners.active);
	resolver__give_back(tracker->parts.resolver, given, count);
	for (size_t i = 0; i < tracker->count; i++)
		if (tracker->tracked[i].owner == owner && !tracker->tracked[i].ended_ns)
			enforcer__restart(tracker->tracked[i].governed);
}

/* Returns whether less is lost without a than without b. */
static bool is_idler(const struct tracker *tracker, const struct tracked *a, const struct tracked *b)
{
	double rates[] = {isnan(a->calls_per_s) ? 0 : a->calls_per_s, isnan(b->calls_per_s) ? 0 : b->calls_per_s};

	if (rates[0] != rates[1])
		return rates[0] < rates[1];
	if (tracker__hits_of(tracker, a) != tracker__hits_of(tracker, b))
		return tracker__hits_of(tracker, a) < tracker__hits_of(tracker, b);
	return a->attached_ns > b->attached_ns;
}

static struct tracked *idlest(struct tracker *tracker, uint32_t owner)
{
	struct tracked *found = NULL;

	for (size_t i = 0; i < tracker->count; i++) {
		struct tracked *tracked = &tracker->tracked[i];

		if (tracked->owner == owner && !tracked->ended_ns && (!found || is_idler(tracker, tracked, found)))
			found = tracked;
	}
	return found;
}

void tracker__give_back_slots(struct tracker *tracker, uint64_t now_ns)
{
	struct owner *lender = &tracker->owners.of[tracker->lender];
	size_t leaving = 0;

	for (size_t i = 0; tracker->claims && i < tracker->count; i++)
		leaving += tracker->tracked[i].ended_ns != 0;
	for (; leaving < tracker->claims; leaving++) {
		struct tracked *tracked = idlest(tracker, tracker->lender);

		if (!tracked)
			break;
		if (!lender->reported)
			tracker__warn(
			    tracker, "slots_given_back", tracked->pid,
			    "process %d (%s) and other processes of its user are detached, since another user's "
			    "processes need their slots: vaprod tracks at most %u processes, %u of each user at "
			    "least",
			    tracked->pid, tracked->identity.name, KERNEL_SLOTS - 1,
			    owners__guaranteed(&tracker->owners, KERNEL_SLOTS - 1, false));
		lender->reported = true;
		tracker__detach_running(tracker, tracked, now_ns);
	}
}
