// SPDX-License-Identifier: GPL-2.0-or-later
/* The offset between the clocks of two hosts from window to window: see clocks.h. */
#include "detect/clock_track.h"

#include <math.h>

#include "detect/clock_ends.h"
#include "detect/clock_search.h"

#define STILL_AGREES 2	  /* times the former cost */
#define LONGER 2	  /* times the longest gap of the latest search: may show an offset that it did not */
#define GAP_LEAST_NS 50e6 /* by which it is longer: less shows no more than jitter does */

static bool same_offset(const struct clock_link *a, const struct clock_link *b)
{
	return fabs(a->offset_ns - b->offset_ns) <= fmax(a->spread_ns, b->spread_ns);
}

static bool is_usable(const struct clock_agreement *found)
{
	return found->pairs >= CLOCK_PAIRS_LEAST && isfinite(found->cost);
}

/* Lists the calls of both hosts. Returns whether there are enough. */
static bool list_both(const struct clock_pair *pair, struct clock_scratch *scratch)
{
	scratch->base = *pair->base_ends;
	scratch->other = clock_ends__list(pair->other, scratch->base.origin_ns, scratch, scratch->other_room);
	pair->other->each_ns = scratch->other.each_ns;
	return clock_ends__enough(&scratch->base) && clock_ends__enough(&scratch->other);
}

static double longest_gap(const struct clock_scratch *scratch)
{
	struct clock_gaps base = clock_ends__gaps(&scratch->base), other = clock_ends__gaps(&scratch->other);

	return fmax(base.count ? base.ns[0] : 0, other.count ? other.ns[0] : 0);
}

/* Notes that a search did not make the link known. */
static void wait_longer(struct clock_schedule *schedule, const struct clock_scratch *scratch, uint64_t window)
{
	schedule->tries += schedule->tries < CLOCK_TRIES_MOST;
	schedule->due = window + (1ULL << schedule->tries);
	schedule->gap_ns = longest_gap(scratch);
}

/* Notes that a search found a candidate: calls from now on may confirm it. */
static void wait_for_calls(struct clock_schedule *schedule, uint64_t window)
{
	schedule->due = window + 1 + (schedule->tries > 2 ? 1ULL << (schedule->tries - 2) : 0);
	schedule->gap_ns = 0;
}

/*
 * Looks for an offset among the calls that are listed: near equal clocks first, unless it is known to be greater. A
 * greater one is searched if there is none, and later by clock_track__audit() if there is: a host may be said to be
 * synchronised and not be.
 */
static bool search(const struct clock_pair *pair, bool may_be_near, struct clock_scratch *scratch,
		   struct clock_link *found)
{
	bool near =
	    may_be_near && pair->bound_ns < CLOCK_OFFSET_MOST_NS && clock_search__near(scratch, pair->bound_ns, found);

	found->unaudited = near;
	return near || clock_search__all(scratch, found);
}

static void set_until(const struct clock_scratch *scratch, struct clock_link *link)
{
	link->until =
	    fmin(clock_ends__last_ordinal(&scratch->base), clock_ends__last_ordinal(&scratch->other) - link->slip);
}

/* Looks for an offset among all calls; it is a candidate at first. */
static void find_candidate(const struct clock_pair *pair, struct clock_scratch *scratch, struct clock_link *link)
{
	struct clock_link found = {0};

	if (search(pair, true, scratch, &found)) {
		set_until(scratch, &found);
		wait_for_calls(&pair->other->schedule, pair->window);
	} else {
		found = (struct clock_link){0};
		wait_longer(&pair->other->schedule, scratch, pair->window);
	}
	/* the same offset by another slip, as after lost calls, is no news */
	found.known = found.found && link->known && same_offset(&found, link);
	*link = found;
}

enum judgement { WAIT, REFUTED, CONFIRMED };

/*
 * Judges a candidate by the calls since it was found, without those that it was found by. Regular calls agree with any
 * slip, so agreement alone confirms nothing: a search among the new calls has to find the same offset, and no other.
 */
static enum judgement judge(const struct clock_pair *pair, struct clock_scratch *scratch, struct clock_link *found)
{
	struct clock_link *link = &pair->other->link;
	struct clock_agreement now;

	if (clock_ends__last_ordinal(&scratch->base) < link->until ||
	    clock_ends__last_ordinal(&scratch->other) < link->until + link->slip)
		return REFUTED; /* counts from another call now */
	clock_ends__drop_until(&scratch->base, link->until);
	clock_ends__drop_until(&scratch->other, link->until + link->slip);
	if (!clock_ends__enough(&scratch->base) || !clock_ends__enough(&scratch->other))
		return WAIT;
	now = clock_search__compare(scratch, (int64_t)link->slip);
	if (!is_usable(&now))
		return WAIT;
	if (now.cost > clock_search__most_cost(scratch))
		return REFUTED;
	link->offset_ns = now.offset_ns; /* clocks drift until a search finds one */
	if (!search(pair, fabs(link->offset_ns) <= pair->bound_ns, scratch, found))
		return WAIT;
	return same_offset(found, link) ? CONFIRMED : REFUTED;
}

/* The link found among the new calls, as all calls show it. */
static void confirm(struct clock_scratch *scratch, struct clock_link *link, const struct clock_link *found)
{
	struct clock_agreement first = clock_search__compare(scratch, (int64_t)link->slip);
	struct clock_agreement second = clock_search__compare(scratch, (int64_t)found->slip);

	if (second.cost < first.cost) {
		link->slip = found->slip;
		first = second;
	}
	link->known = true;
	link->offset_ns = first.offset_ns;
	link->cost = first.cost;
}

/* Judges a candidate; one that is refuted makes place for another. */
static void follow_candidate(const struct clock_pair *pair, struct clock_scratch *scratch)
{
	struct clock_track *track = pair->other;
	struct clock_link found = {0};
	enum judgement judgement = judge(pair, scratch, &found);

	if (judgement == WAIT)
		wait_longer(&track->schedule, scratch, pair->window);
	list_both(pair, scratch);
	if (judgement == CONFIRMED) {
		confirm(scratch, &track->link, &found);
		track->schedule.tries = 0;
	}
	if (judgement != REFUTED)
		return;
	track->schedule.tries += track->schedule.tries < CLOCK_TRIES_MOST;
	find_candidate(pair, scratch, &track->link);
}

/* Compares a known link with the calls of now. */
static void follow_known(const struct clock_pair *pair, struct clock_scratch *scratch, bool may_search)
{
	struct clock_track *track = pair->other;
	struct clock_link *link = &track->link, found = *link;
	struct clock_agreement now = clock_search__compare(scratch, (int64_t)link->slip);

	if (!is_usable(&now))
		return;
	if (now.cost <= STILL_AGREES * link->cost + CLOCK_NOISE_NS) {
		link->offset_ns = now.offset_ns;
		track->schedule = (struct clock_schedule){.tried = track->schedule.tried};
		return;
	}
	if (may_search && pair->window >= track->schedule.due) {
		track->schedule.tried = pair->window;
		find_candidate(pair, scratch, &found);
	} else {
		found = (struct clock_link){0};
	}
	/* nothing is better for certain */
	if (!found.found && now.cost <= clock_search__most_cost(scratch))
		link->offset_ns = now.offset_ns;
	else
		*link = found;
}

bool clock_track__is_due(const struct clock_pair *pair)
{
	const struct clock_schedule *schedule = &pair->other->schedule;
	double gap_ns = fmax(pair->base->new_gap_ns, pair->other->new_gap_ns);

	return pair->window >= schedule->due || gap_ns > LONGER * schedule->gap_ns + GAP_LEAST_NS;
}

void clock_track__link(const struct clock_pair *pair, struct clock_scratch *scratch, bool may_search)
{
	struct clock_track *track = pair->other;

	/* without calls that can be compared the former offset stays */
	if (!list_both(pair, scratch))
		return;
	if (track->link.known) {
		follow_known(pair, scratch, may_search);
		return;
	}
	track->schedule.tried = pair->window;
	if (track->link.found)
		follow_candidate(pair, scratch);
	else
		find_candidate(pair, scratch, &track->link);
}

void clock_track__audit(const struct clock_pair *pair, struct clock_scratch *scratch)
{
	struct clock_track *track = pair->other;
	struct clock_link found = {0};
	struct clock_agreement now;

	track->link.unaudited = false;
	track->schedule.tried = pair->window;
	if (!list_both(pair, scratch) || !clock_search__all(scratch, &found) || same_offset(&found, &track->link))
		return;
	now = clock_search__compare(scratch, (int64_t)track->link.slip);
	if (found.cost >= now.cost)
		return;
	set_until(scratch, &found);
	track->link = found;
	track->schedule.tries = 0;
	wait_for_calls(&track->schedule, pair->window);
}
