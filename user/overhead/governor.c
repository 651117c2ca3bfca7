// SPDX-License-Identifier: GPL-2.0-or-later
#include "overhead/governor.h"

#include <math.h>

#define SHARE 0.9	  /* share of the budget that is spent: reaction time and cold caches use the rest */
#define PEAK_SHARE 0.8	  /* share of the cap that is spent */
#define REACTION_NS 5e7	  /* time from a decision to close probes to its effect */
#define SHORTEST_LOOK 1e6 /* ns; the cost over less time gives no speed */
#define FIRST_LOOK_NS 5e6 /* a speed over so much time counts alone where there is no other yet */
#define MEAN_NS 1e9
#define BURST 2		    /* times the rate: so much at two looks is closed without waiting for the mean */
#define OPENING_CREDIT 0.25 /* most of the room: the mean holds for a short run, too */
#define HELD_MOST 0.8	    /* share of the rate up to which waits for vaprod are charged at any time */
#define MOST_OWED 1	    /* of the room: waits for vaprod that are paid for later */
#define AHEAD_NS 1e8	    /* an allowance that lasts no longer is checked often */
#define LEAST_SPELL_NS 1e9
#define OPEN_PERIOD_NS 1e8  /* open time that is worth opening probes, of a program that is known to be expensive */
#define LEAST_PERIOD_NS 2e7 /* open time until it can be closed again */
#define FIRST_PERIOD 0.5    /* most of the room that is saved up for that */
#define REFILL 0.6	    /* least part of the savings wanted with which probes are opened; at most all of it */
#define MOST_LEVEL 4	    /* 16 times as long */
#define FAR_OVERDRAWN 0.25  /* of the room: the reserve of the cap, which two such bursts within 5 s may exceed */
#define PAID_FAR 1.5	    /* times that a debt beyond the cap's reserve is paid back */
#define PAYING_BACK 0.8	    /* share of the budget that the plan of an overdrawn account uses */
#define CALM 0.5	    /* share of the budget: a load that pays back an earlier burst by itself */
#define SETTLING_NS 1000000000ULL /* from a step to what it has saved */
#define WORTH_LESS 0.9		  /* the same where probes stay open by that, instead of a duty cycle */
#define WORTH_MORE 1.1		  /* factor of covered time that is worth suppressing more */
#define LEAST_LOAD_NS 5e7	  /* open time before a plan is made */
#define LEAST_UNIT 0.02		  /* share of the cost: less is not worth a link's change */
#define TO_SPARE 0.6	       /* share of the budget: a set is chosen once, by call shares, not quite those of cost */
#define WORTH_LEAVING_OUT 0.15 /* savings below it are no reason to see coarser, if probes close all the same */

/* Returns how long a set stays as it is. */
static uint64_t retention_ns(const struct governor_set *set)
{
	return GOVERNOR_KEEP_NS << set->level;
}

void governor__init(struct governor *governor, double budget_pct, double cap_pct, uint64_t seed)
{
	double cap = cap_pct / 100, mean = budget_pct > 0 && budget_pct < cap_pct ? budget_pct / 100 : cap;

	*governor = (struct governor){.seed = seed | 1};
	if (cap <= 0)
		return;
	governor->budget = mean;
	governor->rate = mean * SHARE;
	governor->room_ns = (cap - governor->rate) * (double)GOVERNOR_PEAK_NS * PEAK_SHARE;
	governor->opening_ns =
	    fmin(governor->room_ns * OPENING_CREDIT, (mean - governor->rate) * (double)GOVERNOR_PEAK_NS * PEAK_SHARE);
}

struct governor governor__of_share(double share)
{
	return (struct governor){.budget = share,
				 .rate = share * SHARE,
				 .room_ns = share * 1e9,
				 .opening_ns = share * 1e9 * OPENING_CREDIT,
				 .seed = 1};
}

uint64_t governor__seed(const char *host, uint64_t time_ns)
{
	uint64_t hash = 0xcbf29ce484222325ULL ^ time_ns; /* FNV-1a */

	for (; *host; host++)
		hash = (hash ^ (unsigned char)*host) * 0x100000001b3ULL;
	return (hash ^ hash >> 32) | 1;
}

double governor__random(struct governor *governor)
{
	governor->seed ^= governor->seed << 13; /* xorshift */
	governor->seed ^= governor->seed >> 7;
	governor->seed ^= governor->seed << 17;
	return (double)(governor->seed >> 11) / 9007199254740992.0;
}

double governor__busiest(uint64_t busiest, uint64_t hits)
{
	return busiest && busiest < hits ? (double)busiest / (double)hits : 1;
}

void governor__open_account(const struct governor *governor, struct governor_account *account, uint64_t now_ns)
{
	*account = (struct governor_account){.credit_ns = governor->opening_ns, .last_ns = now_ns};
}

void governor__adjusted(struct governor_account *account)
{
	account->speed = account->mean = 0;
	account->looked = false;
}

double governor__held(const struct governor *governor, struct governor_account *account, uint64_t now_ns,
		      double held_ns)
{
	double due = account->owed_ns + held_ns;
	double charged = fmin(due, HELD_MOST * governor->rate * (double)(now_ns - account->last_ns));

	account->owed_ns = fmin(due - charged, governor->room_ns * MOST_OWED);
	return charged;
}

void governor__begin_first(struct governor_account *account, uint64_t now_ns)
{
	account->first_until_ns = now_ns + GOVERNOR_PEAK_NS;
}

/* Returns what an account may spend by now: waits in its first seconds are due by the end of these. */
static double spendable(const struct governor *governor, const struct governor_account *account)
{
	uint64_t now_ns = account->last_ns, until_ns = account->first_until_ns;
	double later = now_ns < until_ns ? governor->rate * (double)(until_ns - now_ns) : 0;

	return account->credit_ns + fmin(account->lent_ns, later);
}

void governor__held_first(struct governor_account *account, double held_ns)
{
	account->credit_ns -= held_ns;
	account->lent_ns += held_ns;
}

double governor__rate_left(const struct governor *governor, const struct governor_account *account, uint64_t now_ns)
{
	double left_ns = now_ns < account->first_until_ns ? (double)(account->first_until_ns - now_ns) : 0;

	return left_ns > 0 ? governor->rate + fmin(0, account->credit_ns / left_ns) : governor->rate;
}

/* Pays what is owed from what was saved up, beyond the allowance of the first moments. */
static void pay(const struct governor *governor, struct governor_account *account)
{
	double paid = fmin(account->owed_ns, fmax(0, account->credit_ns - governor->opening_ns));

	account->credit_ns -= paid;
	account->owed_ns -= paid;
}

bool governor__charge(const struct governor *governor, struct governor_account *account, uint64_t now_ns,
		      double spent_ns)
{
	double passed = (double)(now_ns - account->last_ns), speed = account->speed, lesser = speed;
	bool at_once = false;

	account->credit_ns += governor->rate * passed - spent_ns;
	if (account->credit_ns > governor->room_ns)
		account->credit_ns = governor->room_ns;
	pay(governor, account);
	account->last_ns = now_ns;
	if (passed >= SHORTEST_LOOK) {
		speed = spent_ns / passed;
		lesser = speed < lesser ? speed : lesser; /* one look may be an accident */
		/* what would be gone before another look is none */
		at_once = !account->looked && passed >= FIRST_LOOK_NS && speed > governor->rate * BURST &&
			  spendable(governor, account) < speed * REACTION_NS;
		account->looked = true;
		account->speed = speed;
		account->mean += (speed - account->mean) * passed / (passed + MEAN_NS);
	}
	if (governor->rate <= 0)
		return false;
	/* a process that has slowed down pays its debt with its probes open; a short burst is no reason to close them
	 */
	return at_once || (lesser > governor->rate * BURST && spendable(governor, account) < lesser * REACTION_NS) ||
	       (account->mean > governor->rate && spendable(governor, account) < 0);
}

bool governor__is_close(const struct governor *governor, const struct governor_account *account)
{
	return account->speed > governor->rate && spendable(governor, account) < account->speed * AHEAD_NS;
}

double governor__covered(const struct governor_load *load, unsigned thin)
{
	double time = 0, covered = 0;

	for (unsigned i = 0; i < KERNEL_SPANS; i++) {
		time += load->time_ns[i];
		covered += i >= thin ? load->time_ns[i] : 0;
	}
	return time > 0 ? covered / time : 1;
}

static struct governor_plan plan_of(double rate, const struct governor_load *load, unsigned thin)
{
	struct governor_plan plan = {.thin = thin, .open = 1};
	double now_saved = 0, saved = 0;

	for (unsigned i = 0; i < KERNEL_SPANS; i++) {
		now_saved += i < load->thin ? load->calls[i] * load->return_ns : 0;
		saved += i < thin ? load->calls[i] * load->return_ns : 0;
	}
	plan.cost = (load->cost_ns + now_saved - saved) / load->open_ns;
	plan.saved = saved / load->open_ns;
	plan.covered = governor__covered(load, thin);
	if (plan.cost > rate)
		plan.open = rate / plan.cost;
	return plan;
}

/* Returns the plan that keeps the rate, in a duty cycle if need be, and covers most; of equals it suppresses least. */
static struct governor_plan best_plan(double rate, const struct governor_load *load)
{
	struct governor_plan best = plan_of(rate, load, 0);

	for (unsigned thin = 1; thin < KERNEL_SPANS && load->return_ns > 0; thin++) {
		struct governor_plan plan = plan_of(rate, load, thin);

		/* probes that stay open are worth something by themselves */
		double more = plan.open >= 1 && best.open < 1 ? WORTH_LESS : WORTH_MORE;

		if (plan.covered * plan.open > best.covered * best.open * more)
			best = plan;
	}
	return best;
}

struct governor_plan governor__plan(const struct governor *governor, const struct governor_load *load)
{
	if (governor->rate <= 0 || load->open_ns < LEAST_LOAD_NS)
		return (struct governor_plan){.thin = load->thin, .covered = 1, .open = 1};
	return best_plan(governor->rate, load);
}

bool governor__step(const struct governor *governor, struct governor_steps *steps, const struct governor_load *load,
		    bool overdrawn, uint64_t now_ns, struct governor_plan *plan)
{
	bool measured = governor->rate > 0 && load->open_ns >= LEAST_LOAD_NS;

	*plan = governor__plan(governor, load);
	if (measured && overdrawn) {
		struct governor_plan repaying = best_plan(governor->rate * PAYING_BACK, load);

		if (repaying.thin > steps->thin && repaying.open >= 1)
			*plan = repaying;
	}
	if (!measured ||
	    (steps->changed_ns &&
	     now_ns < steps->changed_ns + (overdrawn && plan->thin > steps->thin ? SETTLING_NS : GOVERNOR_STEP_NS)))
		return false;
	if (plan->thin < steps->thin) {
		struct governor_plan wary = best_plan(governor->rate * GOVERNOR_GIVE_BACK, load);
		/* restored returns lengthen spans by their own cost: the octave at the border stays suppressed */
		unsigned back = wary.thin ? wary.thin + 1 : 0;

		if (back >= steps->thin)
			return false;
		*plan = plan_of(governor->rate, load, back);
	}
	if (plan->thin == steps->thin)
		return false;
	steps->thin = plan->thin;
	steps->changed_ns = now_ns;
	return true;
}

bool governor__can_wait(const struct governor *governor, const struct governor_account *account,
			const struct governor_steps *steps, const struct governor_plan *plan, uint64_t now_ns)
{
	bool settling = steps->changed_ns && now_ns < steps->changed_ns + SETTLING_NS;
	/* closing takes time: what is owed when it has an effect counts */
	double latest = account->speed * REACTION_NS - FAR_OVERDRAWN * governor->room_ns;

	/* the unused budget pays the debt back hardly later than closed probes would */
	if (plan->cost > 0 && plan->cost <= CALM * governor->rate && account->speed <= governor->rate)
		return true;
	return (settling || (plan->cost > 0 && plan->open >= 1)) && spendable(governor, account) > latest;
}

void governor__saved_shares(const struct governor_load *load, double shares[GOVERNOR_UNITS])
{
	double all = 0, after_pauses, remaining, saved;

	for (int i = 0; i < GOVERNOR_UNITS; i++)
		all += shares[i];
	if (all <= 0 || load->cost_ns <= 0 || load->pauses <= 0)
		return;
	after_pauses = fmin(1, load->pauses_ns / load->cost_ns);
	remaining = fmin(1, fmax(0, 1 - all) * load->entries / load->pauses);
	saved = 1 - after_pauses + after_pauses * (1 - remaining) / all;
	for (int i = 0; i < GOVERNOR_UNITS; i++)
		shares[i] *= saved;
}

bool governor__leave_out(const struct governor *governor, struct governor_set *set, const double shares[GOVERNOR_UNITS],
			 double cost, uint64_t now_ns)
{
	uint32_t without = set->without;
	double share = 0; /* share of the cost of the units to be left out */
	/* a set that soon proves too small is changed once more, not again and again */
	bool soon = without && now_ns < set->changed_ns + retention_ns(set);
	double spend = soon ? 0 : governor->rate * TO_SPARE;

	if (governor->rate <= 0 || cost <= governor->rate)
		return false;
	while (cost * (1 - share) > spend) {
		int most = -1;

		for (int i = 0; i < GOVERNOR_UNITS; i++)
			if (!(without >> i & 1) && shares[i] >= LEAST_UNIT && (most < 0 || shares[i] > shares[most]))
				most = i;
		if (most < 0)
			break;
		without |= 1U << most;
		share += shares[most];
	}
	if (without == set->without || (cost * (1 - share) > governor->rate && share < WORTH_LEAVING_OUT))
		return false;
	if (set->restored_ns && now_ns < set->restored_ns + retention_ns(set) && set->level < MOST_LEVEL)
		set->level++;
	/* units left out before count by the cost at that time, not by this one */
	set->ratio = (1 + set->ratio) / fmax(1 - share, LEAST_UNIT) - 1;
	set->without = without;
	set->changed_ns = now_ns;
	return true;
}

bool governor__restore(const struct governor *governor, struct governor_set *set, double cost, uint64_t now_ns)
{
	if (!set->without || now_ns < set->changed_ns + retention_ns(set) ||
	    cost * (1 + set->ratio) > governor->rate * GOVERNOR_GIVE_BACK)
		return false;
	*set = (struct governor_set){.restored_ns = now_ns, .level = set->level};
	return true;
}

uint64_t governor__undo(struct governor_set *set, uint32_t units, uint64_t now_ns)
{
	set->without &= ~units;
	if (!set->without)
		set->ratio = 0;
	if (set->level < MOST_LEVEL)
		set->level++;
	set->restored_ns = set->changed_ns = now_ns;
	return retention_ns(set);
}

void governor__close(struct governor *governor, struct governor_duty *duty, uint64_t now_ns, double cost,
		     double credit_ns)
{
	bool far = credit_ns < -FAR_OVERDRAWN * governor->room_ns;
	double least = (far ? (double)GOVERNOR_OPENING_NS : LEAST_SPELL_NS) * (1 + 0.25 * governor__random(governor));
	double wanted = ldexp(governor__period_ns(governor, cost), (int)(duty->count < 16 ? duty->count : 16));

	/* a full allowance grows no further: longer closed periods would leave a part of the budget unused */
	wanted = fmin(wanted, governor->room_ns) * (REFILL + (1 - REFILL) * governor__random(governor));
	/* the next opening may overdraw as much, and a mean that begins with a full room has to hold, too */
	if (far)
		credit_ns *= PAID_FAR;
	duty->closed_until_ns = now_ns + (uint64_t)fmax((wanted - credit_ns) / governor->rate, least);
	duty->count++;
}

void governor__close_for_rest(const struct governor *governor, struct governor_duty *duty, uint64_t now_ns, double rest,
			      double credit_ns)
{
	double paid_ns = (governor->rate - rest) * (double)GOVERNOR_PEAK_NS;

	duty->closed_until_ns = now_ns + (uint64_t)(fmax(0, -credit_ns - paid_ns) / governor->rate);
	duty->count++;
}

double governor__period_ns(const struct governor *governor, double cost)
{
	double wanted = fmin(cost * (OPEN_PERIOD_NS + REACTION_NS), governor->room_ns * FIRST_PERIOD);

	/* the first look and closing are paid in any case */
	return fmin(fmax(wanted, cost * (LEAST_PERIOD_NS + REACTION_NS)), governor->room_ns);
}

bool governor__is_due(struct governor_duty *duty, uint64_t now_ns)
{
	if (!duty->closed_until_ns || now_ns < duty->closed_until_ns)
		return false;
	duty->closed_until_ns = 0;
	duty->opened_ns = now_ns;
	return true;
}
