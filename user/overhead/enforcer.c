// SPDX-License-Identifier: GPL-2.0-or-later
/* The account of each process: what it is charged, what its load is, and what gives way where that is too much. */
#include "overhead/enforcer_private.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALM_NS 200000000ULL	  /* between two looks at what spends less than its rate: a burst wakes vaprod */
#define SPENDING_NS 100000000ULL  /* the same at what spends more */
#define ALERT_NS 500000000ULL	  /* a process once over its budget is so again soon after its probes open */
#define FAR_OVER 0.5		  /* share of its time at which a process has all that is expensive closed at once */
#define HASTE 0.1		  /* share of its time at which a process has probes closed without a plan */
#define FIRST_ATTACHMENT_NS 1e8	  /* most that the first attachment to an image may cost beyond the budget */
#define ATTACHING_NS 500000000ULL /* time that an attachment takes, with its looks at functions */
#define WAITS_NS 1000000000ULL	  /* time in which waits for vaprod are bounded by what it ran */

struct enforcer *enforcer__new(const struct governor *governor, const struct costs *costs,
			       const struct enforcer_ops *ops, void *ctx)
{
	struct enforcer *enforcer = calloc(1, sizeof(*enforcer));

	if (enforcer)
		*enforcer = (struct enforcer){.governor = *governor,
					      .costs = costs,
					      .ops = *ops,
					      .ctx = ctx,
					      .ledger = {.read_ns = ops->own_cpu()}};
	return enforcer;
}

void enforcer__free(struct enforcer *enforcer)
{
	if (!enforcer)
		return;
	while (enforcer->governed)
		enforcer__remove(enforcer, enforcer->governed);
	free(enforcer);
}

void enforcer__warn(const struct enforcer *enforcer, const char *code, pid_t pid, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	enforcer->ops.warn(enforcer->ctx, code, pid, text);
}

/* Returns whether probes of a process's image are closed. */
static bool enforcer__image_is_closed(const struct governed *governed)
{
	return governed->duty && governed->duty->closed;
}

void enforcer__advance_epoch(struct governed *governed, bool unseen)
{
	uint32_t *epoch = &governed->process.orders->probe_epoch;

	__atomic_store_n(epoch, ((*epoch >> 1) + 1) << 1 | unseen, __ATOMIC_RELEASE);
}

void enforcer__count_gap(struct governed *governed, uint64_t now_ns, bool goes_on)
{
	if (governed->gap_ns && now_ns > governed->gap_ns)
		governed->closed_ns += now_ns - governed->gap_ns;
	if (!goes_on)
		governed->gap_ns = 0;
	else if (now_ns > governed->gap_ns)
		governed->gap_ns = now_ns;
}

void enforcer__refresh_gap(struct governed *governed, uint64_t now_ns)
{
	enforcer__count_gap(governed, now_ns, enforcer__image_is_closed(governed) || governed->io.closed_until_ns);
}

void enforcer__begin_load(struct governed *governed, uint64_t now_ns)
{
	const struct kernel_governed *orders = governed->process.orders;

	governed->load = (struct governor_load){.thin = governed->steps.thin};
	governed->others_ns = 0;
	governed->load_ns = now_ns;
	governed->load_calls = governed->process.counters->enter;
	governed->load_io = governed->process.counters->syscalls;
	governed->load_thinned_io = orders->thinned_io;
	memcpy(governed->calls, orders->calls, sizeof(governed->calls));
	memcpy(governed->time_ns, orders->time_ns, sizeof(governed->time_ns));
}

/* Counts what the waits for vaprod cost a process up to now. Returns the waits in this second, ns. */
static double count_waits(const struct enforcer *enforcer, struct governed *governed)
{
	struct waits_for_vaprod *waits = &governed->waits;
	double waited = fmin((double)(governed->process.counters->held_ns - waits->summed_ns),
			     ledger__ran(&enforcer->ledger) - waits->ran_ns);
	uint64_t cost_ns;

	cost_ns = waits->before_ns + (uint64_t)(waited * ledger__share(&enforcer->ledger, governed->ledger.owner));
	/* what was charged stays so when vaprod runs for others in the rest of the second */
	if (cost_ns > waits->cost_ns)
		waits->cost_ns = cost_ns;
	return waited;
}

/* Ends a second: what processes waited while vaprod ran for other owners costs those owners' processes. */
static void bill_waits(struct enforcer *enforcer, uint64_t now_ns)
{
	if (now_ns >= enforcer->second_ns && now_ns - enforcer->second_ns < WAITS_NS)
		return;
	for (struct governed *governed = enforcer->governed; governed; governed = governed->next)
		ledger__bill(&enforcer->ledger, governed->ledger.owner, count_waits(enforcer, governed));
	for (struct governed *governed = enforcer->governed; governed; governed = governed->next) {
		uint64_t cost_ns = governed->waits.cost_ns + (uint64_t)ledger__due(&governed->ledger);

		governed->waits = (struct waits_for_vaprod){
		    .summed_ns = governed->process.counters->held_ns, .before_ns = cost_ns, .cost_ns = cost_ns};
	}
	ledger__begin(&enforcer->ledger);
	enforcer->second_ns = now_ns;
}

void enforcer__ran(struct enforcer *enforcer, enum enforcer_work work)
{
	uint64_t cpu_ns = enforcer->ops.own_cpu();

	if (work == ENFORCER_WINDOW)
		ledger__by_states(&enforcer->ledger, cpu_ns);
	else
		ledger__by_records(&enforcer->ledger, cpu_ns);
}

void enforcer__ran_for(struct enforcer *enforcer, uid_t owner)
{
	ledger__for(&enforcer->ledger, enforcer->ops.own_cpu(), owner);
}

double enforcer__caused(const struct enforcer *enforcer, uid_t owner)
{
	return ledger__caused(&enforcer->ledger, owner);
}

struct governed *enforcer__add(struct enforcer *enforcer, const struct enforcer_process *process, uint64_t now_ns)
{
	struct governed *governed = calloc(1, sizeof(*governed));

	if (!governed)
		return NULL;
	if (ledger__enter(&enforcer->ledger, &governed->ledger, process->owner, process->records, process->counters)) {
		free(governed);
		return NULL;
	}
	enforcer__ran_for(enforcer, process->owner);
	governed->process = *process;
	governed->process.exe = governed->exe;
	snprintf(governed->exe, sizeof(governed->exe), "%s", process->exe);
	*process->orders = (struct kernel_governed){.probe_epoch = 1};
	governor__open_account(&enforcer->governor, &governed->account, now_ns);
	governed->waits.ran_ns = ledger__ran(&enforcer->ledger);
	enforcer__begin_load(governed, now_ns);
	governed->next = enforcer->governed;
	enforcer->governed = governed;
	return governed;
}

void enforcer__join(struct enforcer *enforcer, struct governed *governed, const struct attached_image *image,
		    const char *path, bool again, uint64_t now_ns)
{
	struct image_duty *duty = image ? enforcer__duty_of(enforcer, image, path) : NULL;

	if (duty) {
		if (!duty->first)
			enforcer__recall(enforcer, duty, governed, now_ns);
		governed->duty = duty;
		governed->next_of_image = duty->first;
		duty->first = governed;
		governed->process.orders->set = enforcer__without(duty);
	}
	enforcer__ran_for(enforcer, governed->process.owner);
	governed->calls_cost.attached_ns = now_ns + ATTACHING_NS;
	governed->calls_cost.waits_from_ns = now_ns + GOVERNOR_PEAK_NS;
	if (image) {
		governor__begin_first(&governed->account, now_ns);
		governed->free_waits_ns = again ? 0 : FIRST_ATTACHMENT_NS;
	}
	/* links that came one after the other say nothing about the calls of all */
	enforcer__charge(enforcer, governed, enforcer->ops.now());
	governor__adjusted(&governed->account);
	enforcer__begin_load(governed, governed->account.last_ns);
	/* waits of others for an attachment are no running cost */
	for (struct governed *other = enforcer->governed; other; other = other->next) {
		if (now_ns < other->account.first_until_ns)
			continue;
		count_waits(enforcer, other);
		other->paid_waits_ns = other->waits.cost_ns;
	}
	enforcer__advance_epoch(governed, enforcer__image_is_closed(governed));
	enforcer__refresh_gap(governed, now_ns);
}

void enforcer__suspend(struct governed *governed)
{
	enforcer__advance_epoch(governed, true);
}

void enforcer__restart(struct governed *governed)
{
	enforcer__advance_epoch(governed, enforcer__image_is_closed(governed));
}

void enforcer__leave(struct enforcer *enforcer, struct governed *governed, uint64_t now_ns)
{
	struct image_duty *duty = governed->duty;
	struct governed **at;

	enforcer__count_gap(governed, now_ns, false);
	governed->ended = true;
	governed->duty = NULL;
	if (!duty)
		return;
	for (at = &duty->first; *at != governed;)
		at = &(*at)->next_of_image;
	*at = governed->next_of_image;
	if (!duty->first) {
		enforcer__remember(enforcer, duty, governed, now_ns);
		enforcer__forget_image(enforcer, duty);
	}
}

void enforcer__remove(struct enforcer *enforcer, struct governed *governed)
{
	struct governed **at = &enforcer->governed;

	enforcer__leave(enforcer, governed, 0);
	while (*at != governed)
		at = &(*at)->next;
	*at = governed->next;
	ledger__leave(&enforcer->ledger, &governed->ledger);
	free(governed);
}

void enforcer__reset_rates(struct governed *governed)
{
	governor__adjusted(&governed->account);
}

/*
 * Adds what hits cost the thread that was hit most since the last charge, ns: a thread waits for its own hits only, so
 * that this bounds the slowdown of the process. The cost of system calls is not divided.
 */
static void spend(const struct enforcer *enforcer, struct governed *governed)
{
	struct kernel_governed *orders = governed->process.orders;
	struct kernel_counters *counters = governed->process.counters;
	const struct kernel_counters now = *counters, *since = &governed->charged;
	const struct costs *costs = enforcer->costs;
	struct kernel_counters delta;
	uint64_t thinned_io = orders->thinned_io, hits;
	double cost, busiest;
	uint32_t others;

	costs__hits_since(&now, since, &delta);
	hits = delta.enter + delta.exit + delta.left + delta.stepped * (KERNEL_STEPPED_WEIGHT - 1);
	busiest = governor__busiest(now.busiest, hits);
	others = enforcer__others(enforcer, governed);
	cost = (costs__of(costs, &delta) + costs__of_others(costs, &delta, others)) * busiest;
	if (!enforcer__image_is_closed(governed))
		enforcer__add_hits(governed, costs, &delta, others, busiest);
	governed->spent_ns += (uint64_t)(cost + (double)(now.syscalls - since->syscalls) * costs->syscall_ns +
					 (double)(now.sampled - since->sampled) * costs->sample_ns +
					 (double)(thinned_io - governed->charged_io) * costs->bystander_ns);
	__atomic_store_n(&counters->busiest, 0, __ATOMIC_RELAXED);
	__atomic_add_fetch(&orders->epoch, 1, __ATOMIC_RELEASE);
	governed->charged = now;
	governed->charged_io = thinned_io;
}

/* Charges what a process waited for vaprod since the last charge. Returns what counts as spent at once, ns. */
static double charge_waits(const struct enforcer *enforcer, struct governed *governed, uint64_t now_ns)
{
	struct governor_account *account = &governed->account;
	double waited;

	count_waits(enforcer, governed);
	waited = (double)(governed->waits.cost_ns - governed->paid_waits_ns);
	governed->paid_waits_ns = governed->waits.cost_ns;
	if (now_ns < account->first_until_ns) {
		double unpaid = fmin(waited, governed->free_waits_ns);

		governed->free_waits_ns -= unpaid;
		governor__held_first(account, waited - unpaid);
		if (!enforcer__image_is_closed(governed) && now_ns >= governed->calls_cost.attached_ns)
			governed->calls_cost.early_waits_ns += waited - unpaid;
		return 0;
	}
	if (!enforcer__image_is_closed(governed) && now_ns >= governed->calls_cost.waits_from_ns)
		governed->calls_cost.cost_ns += waited;
	return governor__held(&enforcer->governor, account, now_ns, waited);
}

bool enforcer__charge(const struct enforcer *enforcer, struct governed *governed, uint64_t now_ns)
{
	const struct governor *governor = &enforcer->governor;
	double passed = (double)(now_ns - governed->account.last_ns), spent;

	if (now_ns < governed->account.last_ns)
		return false; /* its image's links were changed in this pass: it was charged then */
	spend(enforcer, governed);
	spent = (double)(governed->spent_ns - governed->paid_ns);
	governed->paid_ns = governed->spent_ns;
	spent += charge_waits(enforcer, governed, now_ns);
	if (!enforcer__image_is_closed(governed)) {
		governed->load.open_ns += passed;
		governed->load.cost_ns += spent;
		governed->calls_cost.open_ns += passed;
	}
	return governor__charge(governor, &governed->account, now_ns, spent);
}

uint64_t enforcer__spent(const struct governed *governed)
{
	return governed->spent_ns + governed->waits.cost_ns;
}

struct enforcer_window enforcer__end_window(const struct enforcer *enforcer, struct governed *governed, uint64_t now_ns,
					    double part)
{
	const struct kernel_governed *orders = governed->process.orders;
	struct enforcer_window window;
	uint64_t cost_ns;

	if (governed->gap_ns)
		enforcer__count_gap(governed, now_ns, true);
	spend(enforcer, governed);
	count_waits(enforcer, governed);
	cost_ns = enforcer__spent(governed) - governed->reported_ns;
	if (part < 1)
		cost_ns = (uint64_t)((double)cost_ns * part);
	window = (struct enforcer_window){.cost_ns = cost_ns,
					  .closed_ns = governed->closed_ns,
					  .thinned_ns = orders->thinned_ns - governed->thinned_ns,
					  .thinned = 2 * (orders->thinned - governed->thinned) +
						     2 * (orders->thinned_io - governed->thinned_io)};
	if (governed->duty) {
		window.image = governed->duty->path;
		window.without = enforcer__without(governed->duty);
		window.own = governed->duty->set.without;
	}
	governed->reported_ns += cost_ns;
	governed->closed_ns = 0;
	governed->thinned = orders->thinned;
	governed->thinned_ns = orders->thinned_ns;
	governed->thinned_io = orders->thinned_io;
	return window;
}

static void report_step(const struct enforcer *enforcer, const struct governed *governed,
			const struct governor_plan *plan, unsigned before)
{
	double budget = enforcer->governor.budget * 100, thin_ms = (double)governor__thin_ns(plan->thin) * 1e-6;
	pid_t pid = governed->process.pid;
	char load[512], what[80] = "all returns are seen again";

	enforcer__describe_load(governed, load, sizeof(load));
	if (plan->thin)
		snprintf(what, sizeof(what), "only call sites with a period under %g ms are not timed", thin_ms);
	if (plan->thin < before)
		enforcer__warn(enforcer, "released", pid, "%s, which the budget of %.2g %% allows for: %s", load,
			       budget, what);
	else
		enforcer__warn(
		    enforcer, "governed", pid,
		    "%s, over the overhead budget of %.2g %%: call sites with a period under %g ms are no longer "
		    "timed, which saves %.2g %%; %.0f %% of the time is still observed (the rest: reason "
		    "governed)",
		    load, budget, thin_ms, plan->saved * 100, plan->covered * 100);
}

void enforcer__read_spans(const struct enforcer *enforcer, struct governed *governed)
{
	const struct kernel_governed *orders = governed->process.orders;
	const struct costs *costs = enforcer->costs;

	/* links of other processes hijack each return as well */
	if (governed->process.spares_returns)
		governed->load.return_ns =
		    enforcer__others(enforcer, governed) ? 0 : costs__of_return(costs, governed->process.counters);
	for (unsigned i = 0; i < KERNEL_SPANS; i++) {
		governed->load.calls[i] = (double)(orders->calls[i] - governed->calls[i]);
		governed->load.time_ns[i] = (double)(orders->time_ns[i] - governed->time_ns[i]);
	}
}

/* Evaluates the recent cost of a process, whose account may be overdrawn. Returns the plan for that process. */
static struct governor_plan look(const struct enforcer *enforcer, struct governed *governed, bool overdrawn,
				 uint64_t now_ns)
{
	struct kernel_governed *orders = governed->process.orders;
	unsigned before = governed->steps.thin;
	struct governor_plan plan;

	enforcer__read_spans(enforcer, governed);
	if (governor__step(&enforcer->governor, &governed->steps, &governed->load, overdrawn, now_ns, &plan)) {
		__atomic_store_n(&orders->thin_ns, governor__thin_ns(governed->steps.thin), __ATOMIC_RELAXED);
		report_step(enforcer, governed, &plan, before);
	}
	governed->cost = plan.cost;
	governed->covered = governor__covered(&governed->load, governed->steps.thin);
	return plan;
}

/* Returns whether so many operations of the kind that costs each_ns are most of what a process's calls cost. */
static bool is_most(const struct governed *governed, uint64_t operations, double each_ns)
{
	return (double)operations * each_ns * 2 > governed->load.cost_ns;
}

static void close_io(struct enforcer *enforcer, struct governed *governed, uint64_t now_ns)
{
	char load[512];

	governor__close(&enforcer->governor, &governed->io, now_ns, governed->account.speed,
			governor__savings(&governed->account));
	__atomic_store_n(&governed->process.orders->no_io, 1, __ATOMIC_RELEASE);
	governor__adjusted(&governed->account);
	enforcer__refresh_gap(governed, now_ns);
	if (governed->io.count > 1)
		return;
	enforcer__describe_load(governed, load, sizeof(load));
	enforcer__warn(
	    enforcer, "governed", governed->process.pid,
	    "%s, over the overhead budget of %.2g %%, most of it for system calls: IO tracing of this process "
	    "is throttled, at first for %.1f s (the gaps: reason governed)",
	    load, enforcer->governor.budget * 100, (double)(governed->io.closed_until_ns - now_ns) * 1e-9);
}

static void open_io(const struct enforcer *enforcer, struct governed *governed, uint64_t now_ns)
{
	struct governor_duty *io = &governed->io;

	if (governor__is_due(io, now_ns)) {
		__atomic_store_n(&governed->process.orders->no_io, 0, __ATOMIC_RELEASE);
		governor__adjusted(&governed->account);
		enforcer__refresh_gap(governed, now_ns);
		enforcer__begin_load(governed, now_ns);
	} else if (io->count && !io->closed_until_ns && now_ns >= io->opened_ns + 2 * GOVERNOR_STEP_NS) {
		*io = (struct governor_duty){0};
		enforcer__warn(enforcer, "released", governed->process.pid, "IO tracing of process %d (%s) resumed",
			       governed->process.pid, governed->exe);
	}
}

/* Reduces the cost of a process that overdraws: what is missed least goes first, and at once. */
static void relieve(struct enforcer *enforcer, struct governed *governed, uint64_t now_ns)
{
	const struct governor_account *account = &governed->account;
	const struct kernel_counters *counters = governed->process.counters;
	const struct image_duty *duty = governed->duty;
	unsigned before = governed->steps.thin;

	/* each link that is removed before the one that costs most lets that cost for longer */
	if (enforcer__end_learning(enforcer, governed, now_ns))
		return;
	if (enforcer__share(enforcer, governed))
		return;
	/* what costs so much cannot wait until links of some functions are gone */
	if (account->speed < FAR_OVER && enforcer__leave_out(enforcer, governed, now_ns))
		return;
	if (!enforcer__image_is_closed(governed)) {
		struct governor_plan plan = look(enforcer, governed, true, now_ns);

		if (governed->steps.thin > before && plan.open >= 1) {
			enforcer__begin_load(governed, now_ns);
			governor__adjusted(&governed->account);
			return;
		}
		if (governed->process.spares_returns && plan.cost <= 0 && account->speed < HASTE)
			return; /* too little was seen for a plan */
		/* what is not timed any more is coarse, what is closed is not seen at all */
		if (account->speed < HASTE &&
		    governor__can_wait(&enforcer->governor, account, &governed->steps, &plan, now_ns))
			return;
	}
	if (enforcer->ops.close_costliest_rows(enforcer->ctx, governed->process.pid,
					       fmax(account->speed, account->mean), governed->calls_cost.share,
					       enforcer->governor.room_ns - account->credit_ns, now_ns))
		return;
	if (!governed->io.closed_until_ns &&
	    is_most(governed, counters->syscalls - governed->load_io, enforcer->costs->syscall_ns))
		close_io(enforcer, governed, now_ns);
	/* every process of the node pays for suppressed system calls (io_tax.h) */
	else if (!duty || is_most(governed, governed->process.orders->thinned_io - governed->load_thinned_io,
				  enforcer->costs->bystander_ns))
		governor__adjusted(&governed->account); /* all that can be closed is closed */
	else if (!duty->closed || !enforcer->ops.still_hit(enforcer->ctx))
		enforcer__close_image(enforcer, governed, now_ns);
}

/* Returns the hits of function entries whose exits are sites, of all processes so far. */
static uint64_t row_hits(const struct enforcer *enforcer)
{
	uint64_t hits = 0;

	for (const struct governed *governed = enforcer->governed; governed; governed = governed->next)
		hits += governed->process.counters->rows + governed->process.counters->left;
	return hits;
}

/* Charges a process and enforces its budget. Returns when it is to be charged again, ns. */
static uint64_t govern(struct enforcer *enforcer, struct governed *governed, uint64_t now_ns)
{
	const struct governor *governor = &enforcer->governor;
	bool alert = false;

	if (enforcer__charge(enforcer, governed, now_ns)) {
		relieve(enforcer, governed, now_ns);
		alert = true;
	} else if (enforcer__leave_out_early(enforcer, governed, now_ns)) {
		alert = true;
	} else if (now_ns >= governed->load_ns + GOVERNOR_STEP_NS && !enforcer__image_is_closed(governed)) {
		look(enforcer, governed, false, now_ns);
		enforcer__begin_load(governed, now_ns);
	}
	enforcer__limit_rows(enforcer, governed, now_ns);
	open_io(enforcer, governed, now_ns);
	/* what a program calls is not known before its first look */
	if (alert || governor__is_close(governor, &governed->account) ||
	    (governed->duty && !governed->duty->closed && !governed->looked && governor->rate > 0))
		return ENFORCER_SOON_NS;
	return !enforcer__image_is_closed(governed) && governed->account.speed > governor->rate ? SPENDING_NS : CALM_NS;
}

static uint64_t earlier(uint64_t a_ns, uint64_t b_ns)
{
	return a_ns < b_ns ? a_ns : b_ns;
}

uint64_t enforcer__pass(struct enforcer *enforcer, uint64_t now_ns)
{
	uint64_t next_ns = CALM_NS;
	bool alert = enforcer->ops.govern_rows(enforcer->ctx, row_hits(enforcer), now_ns);

	enforcer__ran(enforcer, ENFORCER_RECORDS);
	bill_waits(enforcer, now_ns);
	for (struct governed *governed = enforcer->governed; governed; governed = governed->next) {
		if (governed->ended)
			continue;
		/* the counters are those of this moment: the loop may have waited for a CPU since its time was read */
		now_ns = enforcer->ops.now();
		next_ns = earlier(next_ns, govern(enforcer, governed, now_ns));
	}
	for (struct image_duty *duty = enforcer->duties; duty; duty = duty->next) {
		enforcer__cycle_image(enforcer, duty, now_ns);
		enforcer__watch_coverage(enforcer, duty, now_ns);
		enforcer__probe_again(enforcer, duty, now_ns);
		enforcer__carry_out_requests(enforcer, duty, now_ns);
		alert |= now_ns < duty->cycle.opened_ns + ALERT_NS;
		if (duty->cycle.closed_until_ns)
			next_ns = earlier(
			    next_ns, duty->cycle.closed_until_ns > now_ns ? duty->cycle.closed_until_ns - now_ns : 0);
	}
	return alert || next_ns < ENFORCER_SOON_NS ? ENFORCER_SOON_NS : next_ns;
}

bool enforcer__is_closed(const struct enforcer *enforcer)
{
	for (const struct image_duty *duty = enforcer->duties; duty; duty = duty->next)
		if (duty->closed)
			return true;
	return false;
}
