// SPDX-License-Identifier: GPL-2.0-or-later
/* Decides which functions are open, so that the budget holds: see row_attacher.h and row_plan.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "probe/attach/row_attacher_private.h"
#include "probe/attach/row_costs.h"
#include "probe/attach/row_image.h"
#include "probe/attach/row_memory.h"
#include "probe/attach/row_plan.h"
#include "probe/attach/row_report.h"

/* What functions may spend where the calls of their processes need the budget: see row_attacher.h. */

#define LIMIT_LEAST 1e-4 /* a share of nothing would be no bound */
#define SCARCE_NS                                                                                                      \
	60000000000ULL /* time without duty cycles after calls exceeded the budget, or from the last limit on */
/* A shorter limit comes from a burst of calls, or from waits in the first seconds of a process. */
#define LASTING_NS 5000000000ULL

bool row_image__is_scarce(const struct row_image *image, uint64_t now_ns)
{
	return now_ns < image->scarce_until_ns;
}

double row_image__limit(const struct row_image *image, uint64_t now_ns)
{
	return now_ns < image->limit_until_ns ? image->limit : INFINITY;
}

/* Calls of the image's processes exceed their budget: there are no duty cycles for a minute from then on. */
static void row_image__make_scarce(struct row_image *image, uint64_t from_ns)
{
	image->scarce_until_ns = from_ns + SCARCE_NS;
}

/* Whether functions of an image were requested by users: these have their part whatever the calls cost. */
static bool is_requested(const struct row_image *image)
{
	for (size_t i = 0; i < image->probe_count; i++)
		if (image->probes[i]->group == ROW_USER)
			return true;
	return false;
}

void row_attacher__limit(struct row_attacher *attacher, pid_t pid, double share, uint64_t now_ns)
{
	for (size_t i = 0; i < attacher->base.count; i++) {
		struct row_image *image = row_attacher__image(attacher, i);
		bool limited = now_ns < image->limit_until_ns;

		if ((!limited && share >= attacher->budget) || !attached__is_mapped_by(&image->base, pid) ||
		    is_requested(image))
			continue;
		if (limited && pid != image->limit_pid && share > image->limit)
			continue; /* of several processes the one with least counts */
		image->limit = fmax(share, LIMIT_LEAST);
		image->limit_pid = pid;
		if (share >= attacher->budget) {
			image->limit_from_ns = 0;
			continue;
		}
		if (!limited || !image->limit_from_ns)
			image->limit_from_ns = now_ns;
		image->limit_until_ns = now_ns + SCARCE_NS;
		if (now_ns >= image->limit_from_ns + LASTING_NS)
			row_image__make_scarce(image, now_ns);
	}
}

static bool maps_only(const struct attached *image, const pid_t *pids, size_t count)
{
	for (size_t i = 0; i < image->mapper_count; i++) {
		size_t at = 0;

		while (at < count && pids[at] != image->pids[i])
			at++;
		if (at == count)
			return false;
	}
	return image->mapper_count;
}

/* Whether a function, or what shares exits with it, exceeds the functions' share of the budget alone. */
static bool exceeds(const struct row_attacher *attacher, const struct row_probe *probe)
{
	return probe->family_share > attacher->budget;
}

/* Closes an open or fitting function until the rest ends. */
static void rest_function(struct row_attacher *attacher, struct row_image *image, struct row_probe *probe)
{
	free(probe->left_out);
	probe->left_out = strdup("closed with the other probes of its processes, which are over their budget");
	probe->in_duty_cycle = true;
	probe->backoff.until_ns = image->rest_until_ns;
	if (probe->state == ROW_OPEN)
		row_image__close(attacher, image, probe);
	probe->state = ROW_LEFT_OUT;
}

void row_attacher__rest(struct row_attacher *attacher, const pid_t *pids, size_t count, uint64_t until_ns)
{
	double random = governor__random(&attacher->random);
	uint64_t now_ns = mono_now();

	for (size_t i = 0; i < attacher->base.count; i++) {
		struct row_image *image = row_attacher__image(attacher, i);

		if (attacher->base.paused || attacher->budget <= 0 || !maps_only(&image->base, pids, count))
			continue;
		image->rest_until_ns = until_ns;
		row_image__make_scarce(image, until_ns);
		for (size_t j = 0; j < image->probe_count; j++) {
			struct row_probe *probe = image->probes[j];
			bool open = probe->state == ROW_OPEN || probe->state == ROW_FITTING;

			if (exceeds(attacher, probe) &&
			    (open || (probe->state == ROW_LEFT_OUT && probe->in_duty_cycle)))
				row_image__leave_out(attacher, image, probe, false, 0, random, now_ns);
			else if (open)
				rest_function(attacher, image, probe);
		}
		row_image__describe(image);
	}
}

#define LOOK_NS 1e9		     /* functions are measured after so long in any case */
#define IDLE_SHARE 0.5		     /* of the budget: while all functions cost less, none is measured */
#define AGAIN_NS 5e7		     /* functions are not measured again before, unless they cost much meanwhile: */
#define MUCH_NS 1e8		     /* what the budget of so much time allows */
#define SOON_NS 500000000ULL	     /* period after an opening of new functions in which costs are measured often */
#define PLAN_SHARE 0.8		     /* part of the share to plan with: rates change */
#define SHORTEST_NS 10000000.0	     /* shortest interval of a rate */
#define LOOKS_APART_NS 5000000000ULL /* between two looks at functions of an image that were left out */
#define DUTY_CYCLE_MOST 10	     /* times the share: costlier functions get no duty cycle */
#define OPEN_LEAST_S 1.0	     /* shortest closed period of a duty cycle */
#define IDLE_LOOKS 3		     /* in a row, at functions left out */
#define CAUSE 0.25		     /* of what a process spends, that functions must cost to be closed for it */
#define CALLS 0.3 /* share of what a process spends: from it on its calls need the budget of its functions */

/* Whether functions of an image are open, or will be again as soon as they can be afforded. */
static bool spends(const struct row_image *image)
{
	for (size_t i = 0; i < image->probe_count; i++)
		if (image->probes[i]->state == ROW_OPEN || image->probes[i]->state == ROW_FITTING ||
		    (image->probes[i]->state == ROW_LEFT_OUT && image->probes[i]->in_duty_cycle))
			return true;
	return false;
}

/* What an image may spend: one budget is for all images of a process. Each has its part, or what the others leave. */
static struct governor share_of(const struct row_attacher *attacher, const struct row_image *image, uint64_t now_ns)
{
	double left = attacher->budget;
	size_t images = 1;

	for (size_t i = 0; i < attacher->base.count; i++) {
		const struct row_image *other = row_attacher__image(attacher, i);

		if (other == image || !spends(other) || !row_image__shares_mapper(image, other))
			continue;
		images++;
		left -= other->account.mean;
	}
	left = fmax(left, attacher->budget / (double)images);
	return governor__of_share(fmin(left, row_image__limit(image, now_ns)));
}

/* Starts a new interval for the rates. */
static void mark(struct row_image *image, uint64_t now_ns)
{
	image->mark_ns = now_ns;
	for (size_t i = 0; i < image->probe_count; i++)
		row_costs__mark(image->probes[i]);
}

/* The share of a process's time left for functions of an image beside open ones, here and in its other images. */
static double available(const struct row_attacher *attacher, const struct row_image *image, uint64_t now_ns)
{
	double share = fmin(attacher->budget, row_image__limit(image, now_ns)) * PLAN_SHARE;

	for (size_t i = 0; i < attacher->base.count; i++) {
		const struct row_image *other = row_attacher__image(attacher, i);

		if (other != image && !row_image__shares_mapper(image, other))
			continue;
		for (size_t j = 0; j < other->probe_count; j++) {
			if (other->probes[j]->state == ROW_OPEN || other->probes[j]->state == ROW_FITTING)
				share -= other->probes[j]->own_share;
		}
	}
	return share > 0 ? share : 0;
}

static struct row_picked pick_none(const struct row_image *image)
{
	return (struct row_picked){.probes = calloc(image->probe_count + 1, sizeof(struct row_probe *))};
}

static struct row_picked pick_open(const struct row_image *image)
{
	struct row_picked picked = pick_none(image);

	for (size_t i = 0; picked.probes && i < image->probe_count; i++)
		if (image->probes[i]->state == ROW_OPEN)
			picked.probes[picked.count++] = image->probes[i];
	return picked;
}

/* Decides which functions fit into a share of a process's time together: none where memory is out. */
static void choose_fitting(const struct row_picked *picked, double share)
{
	struct row_load *loads = row_costs__loads(picked->probes, picked->count);

	if (loads)
		row_plan__choose(loads, picked->count, share);
	for (size_t i = 0; i < picked->count; i++) {
		picked->probes[i]->fits = loads && loads[i].open;
		picked->probes[i]->family_share = loads ? loads[i].family_share : picked->probes[i]->share;
	}
	free(loads);
}

void row_image__leave_out(struct row_attacher *attacher, struct row_image *image, struct row_probe *probe,
			  bool in_duty_cycle, double pause_s, double random, uint64_t now_ns)
{
	probe->in_duty_cycle = in_duty_cycle && !row_image__is_scarce(image, now_ns) &&
			       probe->family_share <= attacher->budget * DUTY_CYCLE_MOST;
	if (probe->in_duty_cycle) {
		probe->backoff.until_ns = now_ns + (uint64_t)(fmax(pause_s, OPEN_LEAST_S) * (1 + random / 2) * 1e9);
	} else {
		row_backoff__refuse(&probe->backoff, now_ns, random);
		row_memory__keep(attacher->memory, image->base.owner, image->base.build_id, probe->function.entry,
				 &probe->backoff);
	}
	free(probe->left_out);
	probe->left_out = row_report__reason(image, probe);
	if (probe->state == ROW_OPEN)
		row_image__close(attacher, image, probe);
	probe->state = ROW_LEFT_OUT;
}

static bool is_picked(const struct row_picked *picked, const struct row_probe *probe)
{
	for (size_t i = 0; i < picked->count; i++)
		if (picked->probes[i] == probe)
			return true;
	return false;
}

/* The highest level of back-off in the family of a function. */
static unsigned int family_level(const struct row_image *image, const struct row_probe *probe)
{
	unsigned int level = probe->backoff.level;

	for (size_t i = 0; probe->family && i < image->probe_count; i++)
		if (row_probe__same_family(image->probes[i], probe) && image->probes[i]->backoff.level > level)
			level = image->probes[i]->backoff.level;
	return level;
}

/* Adds the rest of the families of picked functions that do not fit: a family is left out as one, for the same time. */
static void complete_families(const struct row_image *image, struct row_picked *picked)
{
	size_t decided = picked->count;

	for (size_t i = 0; i < decided; i++) {
		const struct row_probe *unfit = picked->probes[i];
		unsigned int level = family_level(image, unfit);

		for (size_t j = 0; !unfit->fits && unfit->family && j < image->probe_count; j++) {
			struct row_probe *probe = image->probes[j];

			if (probe->state == ROW_REFUSED || !row_probe__same_family(probe, unfit))
				continue;
			probe->backoff.level = level;
			if (is_picked(picked, probe))
				continue;
			probe->fits = false;
			probe->family_share = unfit->family_share;
			picked->probes[picked->count++] = probe;
		}
	}
}

/* Leaves out and reports picked functions that do not fit. Returns whether there are any. */
static bool sort_out(struct row_attacher *attacher, struct row_image *image, struct row_picked *picked, double debt_ns,
		     uint64_t now_ns, row_decided *decided, void *ctx)
{
	double random = governor__random(&attacher->random); /* the same for all: they are looked at together */
	double pause_s = debt_ns / share_of(attacher, image, now_ns).rate * 1e-9;
	size_t out = 0;
	double share = 0; /* of all that are left out: all of them get a duty cycle, or none */

	complete_families(image, picked);
	for (size_t i = 0; i < picked->count; i++)
		share += picked->probes[i]->fits ? 0 : picked->probes[i]->own_share;
	for (size_t i = 0; i < picked->count; i++) {
		struct row_probe *probe = picked->probes[i];

		if (probe->fits)
			continue;
		row_image__leave_out(attacher, image, probe, share <= attacher->budget * DUTY_CYCLE_MOST, pause_s,
				     random, now_ns);
		picked->probes[out++] = probe;
	}
	picked->count = out;
	row_report__decision(image, ROWS_LEFT_OUT, picked, now_ns, decided, ctx);
	return out;
}

static bool is_candidate(const struct row_image *image, const struct row_probe *probe, uint64_t now_ns)
{
	return probe->state == ROW_NEW ||
	       (probe->state == ROW_LEFT_OUT && row_backoff__is_over(&probe->backoff, now_ns) &&
		(probe->in_duty_cycle || now_ns >= image->looked_ns + LOOKS_APART_NS));
}

/* Opens functions with duty cycles again, at their known rates. Returns whether no other candidate is left. */
static bool resume_duty(struct row_image *image, uint64_t now_ns)
{
	bool others = false;

	for (size_t i = 0; i < image->probe_count; i++) {
		struct row_probe *probe = image->probes[i];

		if (!is_candidate(image, probe, now_ns))
			continue;
		if (probe->state == ROW_LEFT_OUT && probe->in_duty_cycle &&
		    probe->family_share <= row_image__limit(image, now_ns))
			probe->state = ROW_FITTING;
		else
			others = true;
	}
	return !others;
}

/*
 * Whether nothing was hit: the program waits, or has no CPU. That says nothing of functions that were too expensive
 * before: they are left out for as long as at first, IDLE_LOOKS times.
 */
static bool is_idle(struct row_image *image, const struct row_picked *picked)
{
	for (size_t i = 0; i < picked->count; i++)
		if (picked->probes[i]->share > 0) {
			image->idle_looks = 0;
			return false;
		}
	return image->idle_looks++ < IDLE_LOOKS;
}

/* Leaves out new functions that share exits with one that is left out, until that is looked at again. */
static void join_left_out(struct row_image *image)
{
	for (size_t i = 0; i < image->probe_count; i++) {
		struct row_probe *probe = image->probes[i];

		for (size_t j = 0; probe->state == ROW_NEW && probe->family && j < image->probe_count; j++) {
			const struct row_probe *other = image->probes[j];

			if (other->state != ROW_LEFT_OUT || !row_probe__same_family(other, probe))
				continue;
			probe->state = ROW_LEFT_OUT;
			probe->backoff = other->backoff;
			probe->in_duty_cycle = other->in_duty_cycle;
			probe->left_out = strdup("shares exits with a function that is left out");
		}
	}
}

/* Looks at functions whose rate is not known, and decides. */
static void consider(struct row_attacher *attacher, struct row_image *image, uint64_t now_ns, row_decided *decided,
		     void *ctx)
{
	struct row_picked picked = {0}, again = {0};
	double most;
	bool idle;

	join_left_out(image);
	if (resume_duty(image, now_ns))
		return;
	picked = pick_none(image);
	again = pick_none(image);
	if (!picked.probes || !again.probes)
		goto out;
	for (size_t i = 0; i < image->probe_count; i++)
		if (is_candidate(image, image->probes[i], now_ns))
			picked.probes[picked.count++] = image->probes[i];
	image->looked_ns = now_ns;
	/* where the look fails the link fails too, and says why */
	most = available(attacher, image, now_ns) * (row_image__is_scarce(image, now_ns) ? 1 : DUTY_CYCLE_MOST);
	row_image__look(attacher, image, picked.probes, picked.count, most);
	/* a function that nearly fits is closed once it has used up the saved time */
	choose_fitting(&picked, most);
	idle = is_idle(image, &picked);
	for (size_t i = 0; i < picked.count; i++) {
		struct row_probe *probe = picked.probes[i];

		if (!probe->fits)
			continue;
		if (probe->state == ROW_LEFT_OUT && idle) {
			probe->backoff.until_ns = now_ns + ROW_BACKOFF_FIRST_S * 1000000000ULL;
			continue;
		}
		if (probe->state == ROW_LEFT_OUT && probe->reported)
			again.probes[again.count++] = probe;
		probe->state = ROW_FITTING;
	}
	sort_out(attacher, image, &picked, 0, mono_now(), decided, ctx);
	row_report__decision(image, ROWS_OPENED, &again, now_ns, decided, ctx);
	for (size_t i = 0; i < again.count; i++)
		again.probes[i]->reported = false;
	row_image__describe(image);
out:
	free(picked.probes);
	free(again.probes);
}

/* The cost of the open functions so far, ns. */
static double cost_of(const struct row_image *image)
{
	double cost = 0;

	for (size_t i = 0; i < image->probe_count; i++)
		if (image->probes[i]->state == ROW_OPEN)
			cost += image->probes[i]->cost.entry_ns + image->probes[i]->cost.exit_ns;
	return cost;
}

/* Measures rates and shares of open functions since the mark. */
static void measure_image(struct row_attacher *attacher, struct row_image *image, uint64_t now_ns)
{
	struct row_picked open = pick_open(image);

	row_attacher__rate(attacher, open.probes, open.count, fmax((double)(now_ns - image->mark_ns), SHORTEST_NS),
			   (double)image->base.mapper_count);
	free(open.probes);
}

/* Closes functions that do not fit into a share of a process's time at measured rates. Returns whether any. */
static bool close_unfit(struct row_attacher *attacher, struct row_image *image, double share, double debt_ns,
			uint64_t now_ns, row_decided *decided, void *ctx)
{
	struct row_picked picked = pick_open(image);
	bool closed;

	choose_fitting(&picked, share);
	closed = sort_out(attacher, image, &picked, debt_ns, now_ns, decided, ctx);
	free(picked.probes);
	return closed;
}

/* Charges an image what its functions cost since the last time. True where it has to be looked at again soon. */
static bool charge(struct row_attacher *attacher, struct row_image *image, uint64_t now_ns, row_decided *decided,
		   void *ctx)
{
	struct governor share = share_of(attacher, image, now_ns);
	double before = cost_of(image);
	bool overdrawn;

	measure_image(attacher, image, now_ns);
	overdrawn = governor__charge(&share, &image->account, now_ns, cost_of(image) - before);
	if (overdrawn) {
		close_unfit(attacher, image, share.budget * PLAN_SHARE / 2, share.room_ns - image->account.credit_ns,
			    now_ns, decided, ctx);
		governor__adjusted(&image->account);
	}
	/* the next time only later costs count: a program that was idle before says nothing of its rates */
	if (overdrawn || now_ns > image->mark_ns + (uint64_t)SHORTEST_NS)
		mark(image, now_ns);
	return overdrawn || governor__is_close(&share, &image->account);
}

/* Whether functions are to be measured now: their hits might overdraw a share, or a second has passed. */
static bool is_due(struct row_attacher *attacher, uint64_t hits, uint64_t now_ns)
{
	double passed = (double)(now_ns - attacher->looked_ns);
	double most = attacher->costs->entry_ns + row_costs__stepping_ns(attacher->costs); /* cost of a hit */
	double cost = (double)(hits - attacher->looked_hits) * most;
	bool due = hits < attacher->looked_hits || passed >= LOOK_NS ||
		   (cost >= IDLE_SHARE * attacher->budget * passed &&
		    (passed >= AGAIN_NS || cost >= attacher->budget * MUCH_NS));

	if (due) {
		attacher->looked_ns = now_ns;
		attacher->looked_hits = hits;
	}
	return due;
}

/* Opens functions that fit. True where any is opened, or waits for other links to close. */
static bool open_fitting(struct row_attacher *attacher, struct row_image *image, uint64_t now_ns, row_decided *decided,
			 void *ctx)
{
	struct row_decision decision = {.kind = ROWS_FAILED, .image = image->base.path, .pids = image->base.pids};
	struct governor share = share_of(attacher, image, now_ns);
	bool any = false, first = !image->opened_ns, known = true;

	for (size_t i = 0; i < image->probe_count; i++) {
		any |= image->probes[i]->state == ROW_FITTING;
		known &= image->probes[i]->state != ROW_FITTING || image->probes[i]->in_duty_cycle;
	}
	if (!any)
		return false;
	row_image__reunite(attacher, image);
	if (row_attacher__is_closing(attacher))
		return true;
	decision.error = row_image__open(attacher, image);
	decision.pid_count = image->base.mapper_count;
	image->soon_ns = known ? 0 : image->opened_ns + SOON_NS;
	mark(image, image->opened_ns);
	if (first)
		governor__open_account(&share, &image->account, image->opened_ns);
	governor__adjusted(&image->account);
	if (decision.error)
		decided(ctx, &decision);
	return true;
}

bool row_attacher__govern(struct row_attacher *attacher, uint64_t hits, uint64_t now_ns, row_decided *decided,
			  void *ctx)
{
	bool soon = false, due;

	if (attacher->base.paused)
		return false;
	due = attacher->budget > 0 && is_due(attacher, hits, now_ns);
	for (size_t i = 0; i < attacher->base.count; i++) {
		struct row_image *image = row_attacher__image(attacher, i);

		if (now_ns < image->rest_until_ns)
			continue;
		row_image__learn_teams(attacher, image, now_ns);
		if (attacher->budget > 0)
			consider(attacher, image, now_ns, decided, ctx);
		soon |= open_fitting(attacher, image, now_ns, decided, ctx);
		if (due)
			soon |= charge(attacher, image, mono_now(), decided, ctx);
		soon |= now_ns < image->soon_ns;
	}
	return soon;
}

bool row_attacher__close_costliest(struct row_attacher *attacher, pid_t pid, double speed, double calls, double debt_ns,
				   uint64_t now_ns, row_decided *decided, void *ctx)
{
	struct row_image *costliest = NULL;
	double most = speed * CAUSE;

	if (attacher->base.paused || attacher->budget <= 0)
		return false;
	for (size_t i = 0; i < attacher->base.count; i++) {
		struct row_image *image = row_attacher__image(attacher, i);
		double share = fmax(image->account.speed, image->account.mean);

		if (share <= most || !attached__is_mapped_by(&image->base, pid))
			continue;
		most = share;
		costliest = image;
	}
	if (!costliest)
		return false;
	if (calls > speed * CALLS)
		row_image__make_scarce(costliest, now_ns);
	/* half of its recent cost stays open */
	return close_unfit(attacher, costliest, most / 2, debt_ns, now_ns, decided, ctx);
}
