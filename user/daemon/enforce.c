// SPDX-License-Identifier: GPL-2.0-or-later
/* Carries out and reports the governor's decisions (overhead/governor.h) about the tracked processes. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/grow.h"
#include "daemon/tracker_private.h"

#define AHEAD_NS 60000000ULL  /* before probes are opened the loop is faster than it sleeps otherwise */
#define ALERT_NS 500000000ULL /* a process once over its budget is so again soon after its probes open */
#define HELD_MOST 0.5	      /* share of the budget up to which waits for vaprod are charged */
#define FAR_OVER 0.5	      /* share of its time at which a process has all that is expensive closed at once */
#define KEEP_MOST 0.0625      /* share of the cost that may stay open where the functions called most are closed */
#define KEEP_SHARE 0.25	      /* share of the budget that calls left open may cost */

#define GRACE_NS 1000000000ULL /* closed probes may cost until they are removed: no reason to close more */

struct kernel_governed *watch__orders(const struct watch *watch, const struct watched *watched)
{
	return &kernel_side__shared(watch->parts.side)->governed[watched->slot];
}

/* Raises a process's probe epoch, which resets its threads. unseen: some calls are not seen from now on. */
static void advance_epoch(struct kernel_governed *orders, bool unseen)
{
	__atomic_store_n(&orders->probe_epoch, ((orders->probe_epoch >> 1) + 1) << 1 | unseen, __ATOMIC_RELEASE);
}

static bool closed(const struct watched *watched)
{
	return watched->image && watched->image->closed;
}

void watch__count_gap(struct watched *watched, uint64_t now_ns, bool goes_on)
{
	struct governed *governed = &watched->governed;

	if (governed->gap_ns && now_ns > governed->gap_ns)
		governed->closed_ns += now_ns - governed->gap_ns;
	if (!goes_on)
		governed->gap_ns = 0;
	else if (now_ns > governed->gap_ns)
		governed->gap_ns = now_ns;
}

static void refresh_gap(struct watched *watched, uint64_t now_ns)
{
	watch__count_gap(watched, now_ns, closed(watched) || watched->governed.io.closed_until_ns);
}

void watch__begin_load(const struct watch *watch, struct watched *watched, uint64_t now_ns)
{
	struct governed *governed = &watched->governed;
	const struct kernel_counters *counters = watch__counters(watch, watched);

	governed->load = (struct governor_load){.thin = governed->steps.thin};
	governed->load_ns = now_ns;
	governed->load_calls = counters->enter;
	governed->load_io = counters->syscalls;
	governed->load_thinned_io = watch__orders(watch, watched)->thinned_io;
	memcpy(governed->calls, watch__orders(watch, watched)->calls, sizeof(governed->calls));
	memcpy(governed->time_ns, watch__orders(watch, watched)->time_ns, sizeof(governed->time_ns));
}

void watch__begin_governing(const struct watch *watch, struct watched *watched, uint64_t now_ns)
{
	/* until watch__join_image() has all links open, time between two calls is not a fragment */
	*watch__orders(watch, watched) = (struct kernel_governed){.probe_epoch = 1};
	watched->governed = (struct governed){0};
	governor__open_account(&watch->parts.governor, &watched->governed.account, now_ns);
	watch__begin_load(watch, watched, now_ns);
}

void watch__join_image(struct watch *watch, struct watched *watched, uint64_t now_ns)
{
	if (watched->image) {
		watch__duty_of(watch, watched->image);
		watch__orders(watch, watched)->set = watched->image->without;
	}
	advance_epoch(watch__orders(watch, watched), closed(watched));
	refresh_gap(watched, now_ns);
}

void watch__leave_image(const struct watch *watch, const struct watched *watched)
{
	advance_epoch(watch__orders(watch, watched), true);
}

/*
 * Adds what hits cost the thread that was hit most since the last charge, ns: a thread waits for its own hits only, so
 * that this bounds the slowdown of the process. The cost of system calls is not divided.
 */
static void spend(const struct watch *watch, struct watched *watched)
{
	struct governed *governed = &watched->governed;
	struct kernel_governed *orders = watch__orders(watch, watched);
	struct kernel_counters *counters = &kernel_side__shared(watch->parts.side)->counters[watched->slot];
	const struct kernel_counters now = *counters, *since = &governed->charged;
	const struct costs *costs = watch->parts.costs;
	struct kernel_counters delta = {.enter = now.enter - since->enter,
					.exit = now.exit - since->exit,
					.stepped = now.stepped - since->stepped,
					.left = now.left - since->left};
	uint64_t thinned_io = orders->thinned_io, hits;

	for (int i = 0; i < KERNEL_PAUSES; i++) {
		delta.pauses[0][i] = now.pauses[0][i] - since->pauses[0][i];
		delta.pauses[1][i] = now.pauses[1][i] - since->pauses[1][i];
	}
	hits = delta.enter + delta.exit + delta.left + delta.stepped * (KERNEL_STEPPED_WEIGHT - 1);
	governed->spent_ns += (uint64_t)(calibrate__cost(costs, &delta) * governor__busiest(now.busiest, hits) +
					 (double)(now.syscalls - since->syscalls) * costs->syscall_ns +
					 (double)(thinned_io - governed->charged_io) * costs->bystander_ns);
	__atomic_store_n(&counters->busiest, 0, __ATOMIC_RELAXED);
	__atomic_add_fetch(&orders->epoch, 1, __ATOMIC_RELEASE);
	governed->charged = now;
	governed->charged_io = thinned_io;
}

/* Charges a process's account. Returns true where the process overdraws. */
static bool charge(struct watch *watch, struct watched *watched, uint64_t now_ns)
{
	struct governed *governed = &watched->governed;
	double passed = (double)(now_ns - governed->account.last_ns), spent;
	uint64_t held_ns = watch__counters(watch, watched)->held_ns;

	spend(watch, watched);
	spent = (double)(governed->spent_ns - governed->paid_ns);
	governed->paid_ns = governed->spent_ns;
	/* waits for vaprod itself are charged as well, but fewer probes recover only some of them */
	spent += fmin((double)(held_ns - governed->held_ns), HELD_MOST * watch->parts.governor.rate * passed);
	governed->held_ns = held_ns;
	if (!closed(watched)) {
		governed->load.open_ns += passed;
		governed->load.cost_ns += spent;
	}
	return governor__charge(&watch->parts.governor, &governed->account, now_ns, spent);
}

uint64_t watch__spent(const struct watch *watch, struct watched *watched)
{
	struct governed *governed = &watched->governed;
	uint64_t before = governed->reported_ns;

	spend(watch, watched);
	governed->reported_ns = governed->spent_ns;
	return governed->spent_ns - before;
}

double watch__budget_pct(const struct watch *watch)
{
	return watch->parts.governor.budget * 100;
}

const char *watch__say_load(const struct watch *watch, const struct watched *watched, char *text, size_t size)
{
	const struct governed *governed = &watched->governed;
	double seconds = governed->load.open_ns * 1e-9;

	if (seconds > 0)
		snprintf(text, size, "process %d (%s): %.0f calls/s cost %.2g %% of its time", watched->pid,
			 watched->identity.exe,
			 (double)(watch__counters(watch, watched)->enter - governed->load_calls) / seconds,
			 governed->load.cost_ns / governed->load.open_ns * 100);
	else
		snprintf(text, size, "process %d (%s)", watched->pid, watched->identity.exe);
	return text;
}

static void report_step(struct watch *watch, const struct watched *watched, const struct governor_plan *plan,
			unsigned before)
{
	char load[512], what[80] = "all returns are seen again";

	watch__say_load(watch, watched, load, sizeof(load));
	if (plan->thin)
		snprintf(what, sizeof(what), "only call sites with a period under %g ms are not timed",
			 (double)governor__thin_ns(plan->thin) * 1e-6);
	if (plan->thin < before)
		watch__warn(watch, "released", watched->pid, "%s, which the budget of %.2g %% allows for: %s", load,
			    watch__budget_pct(watch), what);
	else
		watch__warn(
		    watch, "governed", watched->pid,
		    "%s, over the overhead budget of %.2g %%: call sites with a period under %g ms are no longer "
		    "timed, which saves %.2g %%; %.0f %% of the time is still observed (the rest: reason "
		    "governed)",
		    load, watch__budget_pct(watch), (double)governor__thin_ns(plan->thin) * 1e-6, plan->saved * 100,
		    plan->covered * 100);
}

/* Evaluates the recent cost of a process. Returns the plan for that process. */
static struct governor_plan look(struct watch *watch, struct watched *watched, uint64_t now_ns)
{
	struct governed *governed = &watched->governed;
	const struct costs *costs = watch->parts.costs;
	struct kernel_governed *out = watch__orders(watch, watched);
	struct governor_plan plan;
	unsigned before = governed->steps.thin;

	if (kernel_side__spares_returns(watch->parts.side) && !(watched->flags & KERNEL_PROCESS_NO_RETURN))
		governed->load.return_ns = fmax(0, costs->call_ns - costs->entry_ns);
	for (unsigned i = 0; i < KERNEL_SPANS; i++) {
		governed->load.calls[i] = (double)(out->calls[i] - governed->calls[i]);
		governed->load.time_ns[i] = (double)(out->time_ns[i] - governed->time_ns[i]);
	}
	if (governor__step(&watch->parts.governor, &governed->steps, &governed->load, now_ns, &plan)) {
		__atomic_store_n(&out->thin_ns, governor__thin_ns(governed->steps.thin), __ATOMIC_RELAXED);
		report_step(watch, watched, &plan, before);
	}
	governed->cost = plan.cost;
	return plan;
}

void watch__advance_epochs(struct watch *watch, const struct attached_image *image, bool unseen, bool voids)
{
	for (size_t i = 0; i < watch->count; i++) {
		struct watched *watched = &watch->watched[i];
		struct kernel_governed *out = watch__orders(watch, watched);

		if (watched->image != image)
			continue;
		out->voids += voids;
		advance_epoch(out, unseen);
	}
}

void watch__charge_image(struct watch *watch, const struct attached_image *image, uint64_t now_ns)
{
	for (size_t i = 0; i < watch->count; i++)
		if (watch->watched[i].image == image && !watch->watched[i].ended_ns) {
			charge(watch, &watch->watched[i], now_ns);
			governor__adjusted(&watch->watched[i].governed.account);
		}
}

static void refresh_gaps(struct watch *watch, uint64_t now_ns)
{
	for (size_t i = 0; i < watch->count; i++)
		if (!watch->watched[i].ended_ns)
			refresh_gap(&watch->watched[i], now_ns);
}

struct image_duty *watch__duty_of(struct watch *watch, const struct attached_image *image)
{
	for (size_t i = 0; i < watch->duty_count; i++)
		if (watch->duties[i].image == image)
			return &watch->duties[i];
	if (grow(&watch->duties, &watch->duty_room, watch->duty_count + 1, sizeof(*watch->duties)))
		return NULL;
	watch->duties[watch->duty_count] = (struct image_duty){.image = image};
	return &watch->duties[watch->duty_count++];
}

void watch__forget_image(struct watch *watch, const struct attached_image *image)
{
	for (size_t i = 0; i < watch->count; i++)
		if (watch->watched[i].image == image)
			return;
	for (size_t i = 0; i < watch->duty_count; i++)
		if (watch->duties[i].image == image)
			watch->duties[i--] = watch->duties[--watch->duty_count];
}

double watch__stepped_ratio(const struct costs *costs)
{
	return costs->call_ns > 0 ? fmax(1, costs->stepped_call_ns / costs->call_ns) : 1;
}

/* Closes an image's most expensive probes for a process that overdraws, or all that are still open. */
static void close_image(struct watch *watch, struct image_duty *duty, struct watched *worst, uint64_t now_ns)
{
	struct governor *governor = &watch->parts.governor;
	const struct governed *governed = &worst->governed;
	double cost = governed->load.open_ns > 0 ? governed->load.cost_ns / governed->load.open_ns : 1, keep = 0;
	bool again = duty->image->closed;
	struct attacher_closed outcome;
	char load[512];

	cost = fmax(cost, governed->account.speed);
	if (!again)
		keep = fmin(KEEP_MOST, KEEP_SHARE * governor->rate / cost);
	watch__say_load(watch, worst, load, sizeof(load));
	/* the gap begins first: while links are removed, calls are seen only in part */
	watch__advance_epochs(watch, duty->image, true, false);
	if (attacher__close(watch->parts.attacher, duty->image, keep, watch__stepped_ratio(watch->parts.costs),
			    &outcome))
		watch__warn(watch, "attach_failed", 0, "some links could not be opened again");
	watch__advance_epochs(watch, duty->image, true, outcome.parted);
	refresh_gaps(watch, now_ns);
	now_ns = mono_now();
	watch__charge_image(watch, duty->image, now_ns);
	duty->closed_ns = now_ns;
	if (again)
		governor__prolong(governor, &duty->cycle, now_ns, governed->account.credit_ns);
	else
		governor__close(governor, &duty->cycle, now_ns, governed->account.credit_ns);
	if (duty->reported && duty->cycle.level <= duty->reported_level)
		return;
	duty->reported = true;
	duty->reported_level = duty->cycle.level;
	watch__warn(
	    watch, "governed", worst->pid,
	    "%s, over the budget of %.2g %%: the probes of %u of %u functions of %s (most calls: %s) are closed for "
	    "%.1f s and then opened in a duty cycle of about %.2g %%; the gaps are uncovered, reason governed: "
	    "only what the kernel's scheduler did to their threads is known",
	    load, watch__budget_pct(watch), outcome.functions, outcome.of, duty->image->path,
	    outcome.name ? outcome.name : "none", (double)(duty->cycle.closed_until_ns - now_ns) * 1e-9,
	    fmin(1, governor->rate / fmax(cost, 1e-9)) * 100);
}

static void open_image(struct watch *watch, struct image_duty *duty, uint64_t now_ns)
{
	if (attacher__open(watch->parts.attacher, duty->image))
		watch__warn(watch, "attach_failed", 0, "some links could not be opened again");
	watch__advance_epochs(watch, duty->image, false, false);
	now_ns = mono_now();
	refresh_gaps(watch, now_ns);
	watch__charge_image(watch, duty->image, now_ns);
	for (size_t i = 0; i < watch->count; i++)
		if (watch->watched[i].image == duty->image)
			watch__begin_load(watch, &watch->watched[i], now_ns);
}

/* Ends an image's duty cycle once every process that maps it keeps the budget with a margin. */
static void release_image(struct watch *watch, struct image_duty *duty, uint64_t now_ns)
{
	if (!duty->reported || duty->image->closed || now_ns < duty->cycle.opened_ns + 2 * GOVERNOR_STEP_NS)
		return;
	for (size_t i = 0; i < watch->count; i++)
		if (watch->watched[i].image == duty->image &&
		    watch->watched[i].governed.cost > watch->parts.governor.rate * GOVERNOR_GIVE_BACK)
			return;
	duty->reported = false;
	duty->reported_level = 0;
	duty->cycle = (struct governor_duty){.opened_ns = duty->cycle.opened_ns};
	watch__warn(watch, "released", 0,
		    "the probes of %s stay open again: no process that maps it costs over %.2g %%", duty->image->path,
		    watch__budget_pct(watch) * GOVERNOR_GIVE_BACK);
}

/* Returns whether traced system calls make up more than half of a process's cost. */
static bool is_io(const struct watch *watch, const struct watched *watched)
{
	const struct governed *governed = &watched->governed;
	double io = (double)(watch__counters(watch, watched)->syscalls - governed->load_io);

	return !governed->io.closed_until_ns && io * watch->parts.costs->syscall_ns * 2 > governed->load.cost_ns;
}

/* Returns whether suppressed system calls, which every process of the node pays for (io_tracing.h), cost most. */
static bool is_tax(const struct watch *watch, const struct watched *watched)
{
	const struct governed *governed = &watched->governed;
	double io = (double)(watch__orders(watch, watched)->thinned_io - governed->load_thinned_io);

	return io * watch->parts.costs->bystander_ns * 2 > governed->load.cost_ns;
}

static void close_io(struct watch *watch, struct watched *watched, uint64_t now_ns)
{
	struct governed *governed = &watched->governed;
	char load[512];

	governor__close(&watch->parts.governor, &governed->io, now_ns, governed->account.credit_ns);
	__atomic_store_n(&watch__orders(watch, watched)->no_io, 1, __ATOMIC_RELEASE);
	governor__adjusted(&governed->account);
	refresh_gap(watched, now_ns);
	if (governed->io.count > 1)
		return;
	watch__warn(
	    watch, "governed", watched->pid,
	    "%s, over the overhead budget of %.2g %%, most of it for system calls: IO tracing of this process is "
	    "throttled, at first for %.1f s (the gaps: reason governed)",
	    watch__say_load(watch, watched, load, sizeof(load)), watch__budget_pct(watch),
	    (double)(governed->io.closed_until_ns - now_ns) * 1e-9);
}

static void open_io(struct watch *watch, struct watched *watched, uint64_t now_ns)
{
	struct governed *governed = &watched->governed;

	if (governor__is_due(&governed->io, now_ns)) {
		__atomic_store_n(&watch__orders(watch, watched)->no_io, 0, __ATOMIC_RELEASE);
		governor__adjusted(&governed->account);
		refresh_gap(watched, now_ns);
		watch__begin_load(watch, watched, now_ns);
		return;
	}
	if (!governed->io.count || governed->io.closed_until_ns ||
	    now_ns < governed->io.opened_ns + 2 * GOVERNOR_STEP_NS)
		return;
	governed->io = (struct governor_duty){0};
	watch__warn(watch, "released", watched->pid, "IO tracing of process %d (%s) resumed", watched->pid,
		    watched->identity.exe);
}

/* Reduces the cost of a process that overdraws: what is missed least goes first, and at once. */
static void relieve(struct watch *watch, struct watched *watched, uint64_t now_ns)
{
	const struct governed *governed = &watched->governed;
	unsigned before = governed->steps.thin;
	struct image_duty *duty;

	/* what costs so much cannot wait until links of some functions are gone */
	if (governed->account.speed < FAR_OVER && watch__leave_out(watch, watched, now_ns))
		return;
	if (!closed(watched)) {
		struct governor_plan plan = look(watch, watched, now_ns);

		if (governed->steps.thin > before && plan.open >= 1) {
			watch__begin_load(watch, watched, now_ns);
			governor__adjusted(&watched->governed.account);
			return;
		}
	}
	if (row_attacher__close_costliest(
		watch->parts.rows, watched->pid, fmax(governed->account.speed, governed->account.mean),
		watch->parts.governor.room_ns - governed->account.credit_ns, now_ns, watch__rows_decided, watch))
		return;
	if (is_io(watch, watched)) {
		close_io(watch, watched, now_ns);
		return;
	}
	if (is_tax(watch, watched)) {
		governor__adjusted(&watched->governed.account);
		return;
	}
	duty = watched->image ? watch__duty_of(watch, watched->image) : NULL;
	if (duty && duty->image->closed && now_ns < duty->closed_ns + GRACE_NS)
		return;
	if (duty)
		close_image(watch, duty, watched, now_ns);
	else
		governor__adjusted(&watched->governed.account); /* all that can be closed is closed */
}

/* Returns the hits of function entries whose exits are sites, of all processes so far. */
static uint64_t row_hits(const struct watch *watch)
{
	uint64_t hits = 0;

	for (size_t i = 0; i < watch->count; i++) {
		const struct kernel_counters *counters = watch__counters(watch, &watch->watched[i]);

		hits += counters->rows + counters->left;
	}
	return hits;
}

bool watch__govern(struct watch *watch, uint64_t now_ns)
{
	const struct governor *governor = &watch->parts.governor;
	bool alert = row_attacher__govern(watch->parts.rows, row_hits(watch), now_ns, watch__rows_decided, watch);

	for (size_t i = 0; i < watch->count; i++) {
		struct watched *watched = &watch->watched[i];
		const struct governor_account *account = &watched->governed.account;

		if (watched->ended_ns)
			continue;
		if (charge(watch, watched, now_ns)) {
			relieve(watch, watched, now_ns);
			alert = true;
		} else if (watch__leave_out_early(watch, watched, now_ns)) {
			alert = true;
		} else if (now_ns >= watched->governed.load_ns + GOVERNOR_STEP_NS && !closed(watched)) {
			look(watch, watched, now_ns);
			watch__begin_load(watch, watched, now_ns);
		}
		open_io(watch, watched, now_ns);
		/* what a program calls is not known before its first look */
		alert |= governor__is_close(governor, account) ||
			 (watched->image && !closed(watched) && !watched->governed.looked && governor->rate > 0);
	}
	for (size_t i = 0; i < watch->duty_count; i++) {
		if (governor__is_due(&watch->duties[i].cycle, now_ns))
			open_image(watch, &watch->duties[i], now_ns);
		else
			release_image(watch, &watch->duties[i], now_ns);
		watch__probe_again(watch, &watch->duties[i], now_ns);
		alert |= (watch->duties[i].cycle.closed_until_ns &&
			  now_ns + AHEAD_NS > watch->duties[i].cycle.closed_until_ns) ||
			 now_ns < watch->duties[i].cycle.opened_ns + ALERT_NS;
	}
	return alert;
}

bool watch__is_governed(const struct watch *watch)
{
	for (size_t i = 0; i < watch->duty_count; i++)
		if (watch->duties[i].image->closed)
			return true;
	return false;
}
