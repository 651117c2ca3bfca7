// SPDX-License-Identifier: GPL-2.0-or-later
/* The probes of an image, which are those of all processes that map it: closed and opened in a duty cycle. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "overhead/enforcer_private.h"

#define KEEP_MOST 0.0625 /* share of the cost that may stay open where the functions called most are closed */
#define KEEP_SHARE 0.25	 /* share of the budget that calls left open may cost */
#define RECOUNTS 2	 /* first closed periods after which all returns are seen, to count calls by function */
#define OTHERS_SHARE 0.2 /* share of the cost of a process from which links of other processes are not worth it */

struct image_duty *enforcer__duty_of(struct enforcer *enforcer, const struct attached_image *image, const char *path)
{
	struct image_duty *duty = enforcer->duties;

	while (duty && duty->image != image)
		duty = duty->next;
	if (duty)
		return duty;
	duty = calloc(1, sizeof(*duty));
	if (!duty)
		return NULL;
	*duty = (struct image_duty){.image = image, .path = path, .next = enforcer->duties};
	enforcer->duties = duty;
	return duty;
}

void enforcer__forget_image(struct enforcer *enforcer, struct image_duty *duty)
{
	struct image_duty **at = &enforcer->duties;

	while (*at != duty)
		at = &(*at)->next;
	*at = duty->next;
	free(duty);
}

void enforcer__begin_change(struct image_duty *duty, uint64_t now_ns)
{
	for (struct governed *governed = duty->first; governed; governed = governed->next_of_image) {
		enforcer__count_gap(governed, now_ns, true);
		enforcer__advance_epoch(governed, true);
	}
}

uint64_t enforcer__end_change(const struct enforcer *enforcer, struct image_duty *duty)
{
	uint64_t now_ns = enforcer->ops.now();

	for (struct governed *governed = duty->first; governed; governed = governed->next_of_image) {
		enforcer__advance_epoch(governed, duty->closed);
		enforcer__refresh_gap(governed, now_ns);
		enforcer__charge(enforcer, governed, now_ns);
		governor__adjusted(&governed->account);
		if (!duty->closed)
			enforcer__begin_load(governed, now_ns);
	}
	return now_ns;
}

/* Describes why probes are closed: what the calls cost now or, where that is little, what a burst of them has cost. */
static void describe_excess(const struct governor *governor, const struct governed *governed, char *text, size_t size)
{
	const struct governor_load *load = &governed->load;
	double overdrawn_ns = -governor__savings(&governed->account);
	int used;

	if (load->open_ns > 0 && load->cost_ns < load->open_ns * governor->rate && overdrawn_ns > 0) {
		snprintf(
		    text, size,
		    "process %d (%s): a burst of calls cost %.2g ms more than the budget of %.2g %% has allowed so far",
		    governed->process.pid, governed->exe, overdrawn_ns * 1e-6, governor->budget * 100);
		return;
	}
	enforcer__describe_load(governed, text, size);
	used = (int)strlen(text);
	if (load->cost_ns < load->open_ns * governor->budget)
		snprintf(text + used, size - (size_t)used,
			 ", over the %.2g %% that calls may cost of the budget of %.2g %%", governor->rate * 100,
			 governor->budget * 100);
	else
		snprintf(text + used, size - (size_t)used, ", over the budget of %.2g %%", governor->budget * 100);
}

bool enforcer__share(const struct enforcer *enforcer, struct governed *governed)
{
	struct image_duty *duty = governed->duty;

	if (!duty || governed->others_ns <= governed->load.cost_ns * OTHERS_SHARE ||
	    !enforcer->ops.share(enforcer->ctx, duty->image))
		return false;
	enforcer__end_change(enforcer, duty);
	return true;
}

bool enforcer__end_learning(const struct enforcer *enforcer, const struct governed *governed, uint64_t now_ns)
{
	struct image_duty *duty = governed->duty;

	if (!duty || duty->closed || !enforcer->ops.end_learning(enforcer->ctx, duty->image))
		return false;
	enforcer__begin_change(duty, now_ns);
	enforcer__end_change(enforcer, duty);
	return true;
}

/* No return is suppressed from now on. */
static void time_all(struct image_duty *duty)
{
	for (struct governed *governed = duty->first; governed; governed = governed->next_of_image) {
		governed->steps = (struct governor_steps){0};
		__atomic_store_n(&governed->process.orders->thin_ns, 0, __ATOMIC_RELAXED);
	}
}

void enforcer__close_image(struct enforcer *enforcer, struct governed *worst, uint64_t now_ns)
{
	struct governor *governor = &enforcer->governor;
	const struct governor_load *load = &worst->load;
	struct image_duty *duty = worst->duty;
	double mean = load->open_ns > 0 ? load->cost_ns / load->open_ns : 1, cost = fmax(mean, worst->account.speed);
	double keep = duty->closed ? 0 : fmin(KEEP_MOST, KEEP_SHARE * governor->rate / cost);
	bool again = duty->closed;
	struct enforcer_closed closed = {0};
	char text[512];

	describe_excess(governor, worst, text, sizeof(text));
	/* calls whose returns are suppressed do not show whether they wait */
	if (duty->cycle.count < RECOUNTS && enforcer->ops.may_be_short(enforcer->ctx, duty->image))
		time_all(duty);
	/* the gap begins first: while links are removed, calls are seen only in part */
	enforcer__begin_change(duty, now_ns);
	enforcer->ops.close_image(enforcer->ctx, duty->image, keep, &closed);
	duty->closed = true;
	for (struct governed *governed = duty->first; governed; governed = governed->next_of_image) {
		governed->process.orders->drop_open_epoch += closed.parted;
	}
	now_ns = enforcer__end_change(enforcer, duty);
	duty->unopened = 0;
	if (!again && enforcer__leave_out_closed(enforcer, worst, fmin(cost, 1), text, now_ns))
		return;
	if (!again)
		duty->cost = fmin(cost, 1);
	governor__close(governor, &duty->cycle, now_ns, cost, governor__savings(&worst->account));
	if (duty->reported)
		return;
	duty->reported = true;
	enforcer__warn(
	    enforcer, "governed", worst->process.pid,
	    "%s: the probes of %u of %u functions of %s (most calls: %s) are closed for "
	    "%.1f s and then opened in a duty cycle of about %.2g %%; the gaps are uncovered, reason governed: "
	    "only what the kernel's scheduler did to their threads is known",
	    text, closed.functions, closed.of, duty->path, closed.name ? closed.name : "none",
	    (double)(duty->cycle.closed_until_ns - now_ns) * 1e-9,
	    governor->rate / (mean > governor->rate ? mean : fmax(cost, governor->rate)) * 100);
}

/* Ends an image's duty cycle once every process that maps it keeps the budget with a margin. */
static void release_image(struct enforcer *enforcer, struct image_duty *duty, uint64_t now_ns)
{
	if (!duty->reported || duty->closed || now_ns < duty->cycle.opened_ns + 2 * GOVERNOR_STEP_NS)
		return;
	for (const struct governed *governed = duty->first; governed; governed = governed->next_of_image)
		if (governed->cost > enforcer->governor.rate * GOVERNOR_GIVE_BACK)
			return;
	duty->reported = false;
	duty->cost = 0;
	duty->cycle = (struct governor_duty){.opened_ns = duty->cycle.opened_ns};
	enforcer__warn(enforcer, "released", 0,
		       "the probes of %s stay open again: no process that maps it costs over %.2g %%", duty->path,
		       enforcer->governor.budget * 100 * GOVERNOR_GIVE_BACK);
}

/* While an image is closed nothing that its processes do is a fragment: their other functions are closed, too. */
static void rest_rows(const struct enforcer *enforcer, const struct image_duty *duty)
{
	size_t count = 0;
	pid_t *pids;

	for (struct governed *governed = duty->first; governed; governed = governed->next_of_image)
		count++;
	pids = calloc(count ? count : 1, sizeof(*pids));
	if (!pids)
		return; /* the functions stay open and cost more than they have to */
	count = 0;
	for (struct governed *governed = duty->first; governed; governed = governed->next_of_image)
		pids[count++] = governed->process.pid;
	enforcer->ops.rest_rows(enforcer->ctx, pids, count, duty->cycle.closed_until_ns);
	free(pids);
}

void enforcer__warn_unopened(const struct enforcer *enforcer, const struct image_duty *duty, int status)
{
	enforcer__warn(enforcer, "attach_failed", duty->first ? duty->first->process.pid : 0,
		       "probes of %s that were closed could not all be opened again: %s; the calls of the functions "
		       "without a probe are not seen until a later attempt succeeds",
		       duty->path, strerror(-status));
}

void enforcer__cycle_image(struct enforcer *enforcer, struct image_duty *duty, uint64_t now_ns)
{
	/* links are not opened before old ones are removed, which takes too long to wait for it here */
	bool waits = duty->closed && enforcer->ops.detaching(enforcer->ctx), due;
	int status = 0;

	due = !waits && governor__is_due(&duty->cycle, now_ns);
	if (due)
		status = enforcer->ops.open_image(enforcer->ctx, duty->image);
	else if (duty->closed && !waits)
		status = enforcer->ops.open_remaining(enforcer->ctx, duty->image);
	if (status)
		enforcer__warn_unopened(enforcer, duty, status);
	if (!due) {
		release_image(enforcer, duty, now_ns);
		if (duty->closed)
			rest_rows(enforcer, duty);
		return;
	}
	duty->closed = false;
	duty->unopened = 0;
	enforcer__end_change(enforcer, duty);
}
