/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "simulation.h"

#include <stdlib.h>

#define CFS_SLICE_NS 4e6
#define DRIFT_STEP_NS 5e7 /* a drift's factor holds for so long */
#define SPIN_NS 5e3	  /* of CPU time that the end of a call takes */
#define SCATTER 0.2	  /* of transfers, upwards */
#define HOG_PID 4000

static double begin_ns(const struct job_effect *effect)
{
	return effect->begin * S_NS;
}

static double end_ns(const struct job_effect *effect)
{
	return effect->end > 0 ? effect->end * S_NS : INFINITY;
}

static bool computes(enum effect_kind kind)
{
	return kind != EFFECT_CALLS && kind != EFFECT_HITS;
}

/* Whether an effect applies to a step. */
static bool concerns(const struct sim *sim, const struct job_effect *effect, int step)
{
	bool computation = sim->job->steps[step].kind == STEP_COMPUTE;

	if (effect->steps)
		return effect->steps >> step & 1;
	if (!computes(effect->kind))
		return !computation;
	return computation && computes(effect->kind);
}

static bool makes_occurrences(enum effect_kind kind)
{
	return kind == EFFECT_STALLS || kind == EFFECT_MOVING;
}

static bool prepare_occurrences(struct sim *sim, int number)
{
	const struct job_effect *effect = &sim->job->effects[number];
	double end = effect->end > 0 ? effect->end : sim->job->seconds;
	size_t count = effect->period > 0 ? (size_t)fmax(0, ceil((end - effect->begin) / effect->period)) : 1;
	struct occurrence *items = calloc(count ? count : 1, sizeof(*items));
	struct draw draw = {.seed = sim->job->seed ^ 0x5eed0ccUL ^ (uint64_t)number << 40};

	sim->occurrences[number] = items;
	sim->occurrence_count[number] = count;
	if (!items)
		return false;
	for (size_t i = 0; i < count; i++) {
		do {
			items[i].rank = draw__int(&draw, 0, sim->job->ranks - 1);
		} while (!job__has(sim->job, &effect->ranks, items[i].rank));
		items[i].t = S_NS * (effect->begin + effect->period * ((double)i + 0.3 * draw__unit(&draw)));
	}
	return true;
}

bool cost__prepare(struct sim *sim)
{
	for (int i = 0; i < sim->job->effect_count; i++) {
		const struct job_effect *effect = &sim->job->effects[i];

		for (int rank = 0; rank < sim->job->ranks; rank++) {
			if (job__has(sim->job, &effect->ranks, rank))
				sim->ranks[rank].effects |= 1U << i;
		}
		if (makes_occurrences(effect->kind) && !prepare_occurrences(sim, i))
			return false;
	}
	return true;
}

/* Which effects are in force for a rank now, and until when that holds. */
static uint32_t refresh(const struct sim *sim, struct rank *rank)
{
	if (rank->t < rank->border)
		return rank->active;
	rank->active = 0;
	rank->border = INFINITY;
	for (uint32_t left = rank->effects; left; left &= left - 1) {
		int i = __builtin_ctz(left);
		double begin = begin_ns(&sim->job->effects[i]), end = end_ns(&sim->job->effects[i]);

		if (rank->t < begin) {
			rank->border = fmin(rank->border, begin);
		} else if (rank->t < end) {
			rank->active |= 1U << i;
			rank->border = fmin(rank->border, end);
		}
	}
	return rank->active;
}

void cost__take(struct sim *sim, int rank, uint32_t pid, double from, double to)
{
	struct rank *victim = &sim->ranks[rank];
	double begin;

	begin = from = sim_clock(sim, rank, from);
	to = sim_clock(sim, rank, to);
	while (from < to) {
		uint64_t bin = sim_utc(from) / VAPRO_BIN_NS;
		double border = (double)((bin + 1) * VAPRO_BIN_NS - JOB_BEGIN_NS), end = fmin(border, to);
		struct vapro_interference *last =
		    victim->interference ? &sim->interference[victim->interference - 1] : NULL;

		if (!last || last->bin != bin || last->pid != pid) {
			struct vapro_interference *items =
			    sim__room(sim, sim->interference, &sim->interference_capacity, sim->interference_count + 1,
				      sizeof(*items));

			if (!items)
				return;
			sim->interference = items;
			last = &items[sim->interference_count];
			victim->interference = ++sim->interference_count;
			*last = (struct vapro_interference){
			    .thread = (uint32_t)rank, .pid = pid, .bin = bin, .comm = "hog"};
		}
		last->preempted_ns += (uint64_t)(end - from + 0.5);
		if (end >= to) {
			last->slices++;
			last->longest_us = (uint32_t)fmax(last->longest_us, (to - begin) / 1e3);
		}
		from = end;
	}
}

/* The rank is off its CPU for a while; `costs`: this time is lost. */
static void occupy(struct sim *sim, struct fragment *fragment, int number, double ns, bool costs)
{
	const struct job_effect *effect = &sim->job->effects[number];
	struct rank *rank = &sim->ranks[fragment->rank];

	if (ns <= 0)
		return;
	if (effect->reported) {
		fragment->factor[effect->cause] += ns;
		fragment->off += ns;
		if (effect->cause == VAPRO_PREEMPTED) {
			cost__take(sim, fragment->rank, HOG_PID + (uint32_t)number, rank->t, rank->t + ns);
			fragment->switches++;
		}
	} else {
		fragment->waits += ns;
	}
	if (costs)
		truth__lose(sim, number, fragment, rank->t, ns, effect->reported);
	rank->t += ns;
}

/* Time until another task takes the CPU; 0: that task has just run. */
static double until_busy(struct sim *sim, struct fragment *fragment, int number, bool costs)
{
	const struct job_effect *effect = &sim->job->effects[number];
	struct rank *rank = &sim->ranks[fragment->rank];
	double limit = INFINITY, slice = effect->length > 0 ? effect->length * S_NS : CFS_SLICE_NS;

	if (effect->period > 0) {
		double period = effect->period * S_NS, on = effect->share * period;
		double shift = draw__hash(sim->job->seed, (uint64_t)number, (uint64_t)fragment->rank) * (period - on);
		double phase = fmod(rank->t - begin_ns(effect) + period - shift, period);

		if (phase >= on)
			return fmax(1, period - phase);
		limit = fmax(1, on - phase);
		if (effect->factor <= 1) {
			occupy(sim, fragment, number, fmin(limit, end_ns(effect) - rank->t), costs);
			return 0;
		}
	}
	if (rank->slice[number] <= 0) {
		double ns = slice * (effect->factor - 1) * draw__between(&sim->draw, 0.75, 1.25);

		rank->slice[number] = slice * draw__between(&sim->draw, 0.75, 1.25);
		occupy(sim, fragment, number, fmin(ns, fmax(1, end_ns(effect) - rank->t)), costs);
		return 0;
	}
	return fmin(limit, rank->slice[number]);
}

/* The next time that one rank of several is hit. */
static double until_occurrence(struct sim *sim, struct fragment *fragment, int number)
{
	const struct job_effect *effect = &sim->job->effects[number];
	struct rank *rank = &sim->ranks[fragment->rank];
	bool moving = effect->kind == EFFECT_MOVING;
	double length = effect->length * S_NS;

	for (; rank->occurrence[number] < sim->occurrence_count[number]; rank->occurrence[number]++) {
		const struct occurrence *at = &sim->occurrences[number][rank->occurrence[number]];
		double left;

		if (at->rank != fragment->rank)
			continue;
		if (at->t > rank->t)
			return at->t - rank->t;
		rank->occurrence[number]++;
		left = moving ? at->t + length - rank->t : length;
		if (left <= 0)
			return 0;
		if (!moving && effect->fault)
			truth__begin(sim, number);
		occupy(sim, fragment, number, left, true);
		return 0;
	}
	return INFINITY;
}

static double drift_at(const struct job_effect *effect, double t)
{
	double part = (t - begin_ns(effect)) / (end_ns(effect) - begin_ns(effect));

	return 1 + (effect->factor - 1) * fmin(1, part);
}

/* Factor by which an effect slows execution on the CPU; 1: not at all. */
static double slowdown(const struct job_effect *effect, double t, double *limit)
{
	switch (effect->kind) {
	case EFFECT_SLOW:
	case EFFECT_FREQUENCY:
		return effect->factor;
	case EFFECT_DRIFT:
		*limit = fmin(*limit, DRIFT_STEP_NS);
		return drift_at(effect, t);
	default:
		return 1;
	}
}

static void show_at(struct fragment *fragment, enum vapro_factor level, double ns)
{
	if (level >= VAPRO_L1 && level <= VAPRO_STORE)
		fragment->level[level - VAPRO_L1] += ns;
}

/* The parts of memory in which a slowdown shows. */
static void show(struct fragment *fragment, const struct job_effect *effect, double ns)
{
	double second = effect->kind == EFFECT_SLOW && effect->second ? effect->share : 0;

	show_at(fragment, effect->cause, (1 - second) * ns);
	show_at(fragment, effect->second, second * ns);
}

/* Runs for at most limit ns at the speed that the effects leave. Returns the work that was done. */
static double run(struct sim *sim, struct fragment *fragment, uint32_t mask, double need, double limit)
{
	struct rank *rank = &sim->ranks[fragment->rank];
	double factor[JOB_EFFECTS], slow = 1, wall;

	for (uint32_t left = mask; left; left &= left - 1) {
		int i = __builtin_ctz(left);

		factor[i] = slowdown(&sim->job->effects[i], rank->t, &limit);
		slow *= factor[i];
	}
	wall = fmin(need * slow, limit);
	for (uint32_t left = mask; left; left &= left - 1) {
		int i = __builtin_ctz(left);
		const struct job_effect *effect = &sim->job->effects[i];
		double extra = wall * (1 - 1 / factor[i]);

		rank->slice[i] -= wall;
		if (factor[i] == 1)
			continue;
		if (effect->kind == EFFECT_FREQUENCY) {
			fragment->factor[VAPRO_FREQUENCY] += fmax(0, extra);
		} else {
			fragment->waits += fmax(0, extra);
			show(fragment, effect, fmax(0, extra));
		}
		truth__lose(sim, i, fragment, rank->t, extra, effect->kind == EFFECT_FREQUENCY);
		/* a long piece of work loses time to its end */
		if (sim->job->few)
			truth__extend(sim, i, rank->t + wall);
	}
	rank->t += wall;
	return wall / slow;
}

/* Lets the rank compute until it has had `need` ns of an undisturbed CPU. */
static void advance(struct sim *sim, struct fragment *fragment, double need)
{
	struct rank *rank = &sim->ranks[fragment->rank];

	while (need > 1e-3) {
		uint32_t mask = 0, active = refresh(sim, rank);
		double limit = rank->border - rank->t;

		for (uint32_t left = active; left && limit > 0; left &= left - 1) {
			int i = __builtin_ctz(left);
			const struct job_effect *effect = &sim->job->effects[i];

			if (!concerns(sim, effect, fragment->step))
				continue;
			mask |= 1U << i;
			if (effect->kind == EFFECT_CPU_BUSY)
				limit = fmin(limit, until_busy(sim, fragment, i, true));
			else if (makes_occurrences(effect->kind))
				limit = fmin(limit, until_occurrence(sim, fragment, i));
		}
		if (!mask) {
			limit = fmin(need, limit);
			rank->t += limit;
			need -= limit;
		} else if (limit > 0) {
			need -= run(sim, fragment, mask, need, limit);
		}
	}
}

/* The factors of a single computation: its work and its random duration. */
static double own_time(struct sim *sim, struct fragment *fragment, double need)
{
	struct rank *rank = &sim->ranks[fragment->rank];
	double luck = fmax(0.5, 1 + sim->job->jitter * draw__gauss(&sim->draw));
	unsigned member = rank->members[fragment->step]++;

	for (uint32_t left = refresh(sim, rank); left; left &= left - 1) {
		int i = __builtin_ctz(left);
		const struct job_effect *effect = &sim->job->effects[i];

		if (!concerns(sim, effect, fragment->step))
			continue;
		if (effect->kind == EFFECT_WORK) {
			need *= effect->factor;
		} else if (effect->kind == EFFECT_GROWTH) {
			need *= drift_at(effect, rank->t);
		} else if (effect->kind == EFFECT_GROUPS) {
			uint64_t rank_or_all = effect->alike ? 0 : (uint64_t)fragment->rank + 1;
			uint64_t which = (uint64_t)i << 8 | (uint64_t)fragment->step;

			if (draw__hash(sim->job->seed ^ which, rank_or_all, (uint64_t)sim->iteration) < effect->share)
				need *= effect->factor;
		} else if (effect->kind == EFFECT_TAILS) {
			if (draw__unit(&sim->draw) < effect->share)
				luck *= draw__between(&sim->draw, 2, effect->factor);
		} else if (effect->kind == EFFECT_COLD) {
			if (member < effect->share)
				luck *= 1 + (effect->factor - 1) * (1 - member / effect->share) *
						draw__between(&sim->draw, 0.5, 1);
		} else if (effect->kind == EFFECT_LUCKY && !rank->once[i]) {
			rank->once[i] = true;
			luck *= effect->factor;
		}
	}
	need *= noise__work(sim, fragment->rank);
	fragment->instructions = need * (1 + 0.003 * draw__between(&sim->draw, -1, 1));
	fragment->instructions *= noise__counter(sim);
	return need * luck * noise__computation(sim, fragment);
}

static double need_of(const struct sim *sim, const struct fragment *fragment)
{
	return fragment->need > 0 ? fragment->need : sim->job->steps[fragment->step].ns;
}

/* The rank gives work to a device, sleeps until that has finished, and is woken. */
static void sleep_for_device(struct sim *sim, struct fragment *fragment, double need)
{
	const struct job_step *step = &sim->job->steps[fragment->step];
	double on_cpu = (1 - step->asleep) * step->ns, sleep = fmax(0, need - on_cpu);
	struct rank *rank = &sim->ranks[fragment->rank];

	fragment->instructions *= on_cpu / need_of(sim, fragment);
	advance(sim, fragment, 0.9 * on_cpu);
	for (uint32_t left = refresh(sim, rank); left; left &= left - 1) {
		int i = __builtin_ctz(left);
		const struct job_effect *effect = &sim->job->effects[i];

		if (effect->kind == EFFECT_DEVICE && concerns(sim, effect, fragment->step))
			occupy(sim, fragment, i, sleep * (effect->factor - 1), true);
	}
	rank->t += sleep;
	fragment->off += sleep;
	fragment->factor[VAPRO_BLOCKED_OTHER] += sleep;
	advance(sim, fragment, 0.1 * on_cpu);
}

void cost__compute(struct sim *sim, struct fragment *fragment)
{
	struct rank *rank = &sim->ranks[fragment->rank];
	double need;

	fragment->start = rank->t;
	need = own_time(sim, fragment, need_of(sim, fragment));
	if (sim->job->steps[fragment->step].asleep > 0)
		sleep_for_device(sim, fragment, need);
	else
		advance(sim, fragment, need);
	for (uint32_t left = refresh(sim, rank); left; left &= left - 1) {
		int i = __builtin_ctz(left);
		const struct job_effect *effect = &sim->job->effects[i];

		if (effect->kind == EFFECT_SLEEP && concerns(sim, effect, fragment->step))
			occupy(sim, fragment, i, effect->length * S_NS * draw__between(&sim->draw, 1, 1.05), true);
	}
	fragment->end = rank->t;
}

/* What a call that is hit takes longer. */
static double hit(struct sim *sim, struct rank *rank, int number)
{
	const struct job_effect *effect = &sim->job->effects[number];
	double *next = &rank->next_hit[number], begin = fmax(begin_ns(effect), *next);

	if (!*next)
		*next = begin - effect->period * S_NS * log(1 - draw__unit(&sim->draw));
	if (rank->t < *next)
		return 0;
	*next = rank->t - effect->period * S_NS * log(1 - draw__unit(&sim->draw));
	return effect->length * S_NS * (1 + 0.01 * draw__gauss(&sim->draw));
}

double cost__transfer(struct sim *sim, struct fragment *fragment)
{
	struct rank *rank = &sim->ranks[fragment->rank];
	double ns = need_of(sim, fragment), factor = 1, more = 0;

	ns *= 1 + SCATTER * draw__unit(&sim->draw) * draw__unit(&sim->draw);
	ns *= noise__call(sim, fragment);
	for (uint32_t left = refresh(sim, rank); left; left &= left - 1) {
		int i = __builtin_ctz(left);
		const struct job_effect *effect = &sim->job->effects[i];

		if (computes(effect->kind) || !concerns(sim, effect, fragment->step))
			continue;
		if (effect->kind == EFFECT_HITS) {
			double took = hit(sim, rank, i);

			more += took;
			fragment->slowed |= took > 0 ? 1U << i : 0;
			continue;
		}
		factor *= effect->factor;
		fragment->slowed |= 1U << i;
		if (effect->reported) {
			fragment->factor[effect->cause] += ns * (effect->factor - 1);
			fragment->off += ns * (effect->factor - 1);
		}
	}
	fragment->plain = ns;
	return ns * factor + more;
}

/* The extra time of a call due to slow transfers, divided among the effects that caused it. */
static void lose_call(struct sim *sim, struct fragment *fragment, double extra)
{
	double all = 0;

	for (uint32_t left = fragment->slowed; left; left &= left - 1)
		all += sim->job->effects[__builtin_ctz(left)].factor - 1;
	for (uint32_t left = fragment->slowed; left && all > 0; left &= left - 1) {
		int i = __builtin_ctz(left);
		const struct job_effect *effect = &sim->job->effects[i];

		truth__lose(sim, i, fragment, fragment->start, extra * (effect->factor - 1) / all, effect->reported);
	}
}

/*
 * A slow network costs the extra time of calls against a separate clock without it: more than the extra transfers
 * where ranks wait for each other's transfers, less where a rank waits less.
 */
void cost__end_call(struct sim *sim, struct fragment *fragment, double usual)
{
	struct rank *rank = &sim->ranks[fragment->rank];

	fragment->end = rank->t;
	usual += SPIN_NS;
	lose_call(sim, fragment, fragment->end - fragment->start - (usual - rank->usual_t));
	rank->usual_t = usual;
}

void cost__write(struct sim *sim, struct fragment *fragment)
{
	struct rank *rank = &sim->ranks[fragment->rank];
	double plain, off;

	fragment->start = rank->t;
	plain = cost__transfer(sim, fragment);
	lose_call(sim, fragment, plain - fragment->plain);
	rank->usual_t -= plain - fragment->plain;
	off = fragment->off;
	/* sleep needs no CPU; the rest may be disturbed */
	rank->t += off;
	advance(sim, fragment, plain - off);
	fragment->end = rank->t;
}

/* Waits on its CPU, as MPI libraries do: other tasks there can only delay the end. */
void cost__wait(struct sim *sim, struct fragment *fragment, double until)
{
	struct rank *rank = &sim->ranks[fragment->rank];
	double need = SPIN_NS, late;
	uint32_t active = refresh(sim, rank);

	if (!active && rank->border >= until + SPIN_NS) {
		rank->t = fmax(until, rank->t) + SPIN_NS;
		return;
	}
	while (need > 1e-3 || rank->t < until) {
		bool over = rank->t >= until;
		double limit, step = over ? need : until - rank->t;

		active = refresh(sim, rank);
		limit = fmin(step, rank->border - rank->t);
		for (uint32_t left = active; left && limit > 0; left &= left - 1) {
			int i = __builtin_ctz(left);

			if (sim->job->effects[i].kind == EFFECT_CPU_BUSY)
				limit = fmin(limit, until_busy(sim, fragment, i, false));
		}
		if (limit <= 0)
			continue;
		for (uint32_t left = active; left; left &= left - 1)
			rank->slice[__builtin_ctz(left)] -= limit;
		rank->t += limit;
		need -= over ? fmin(need, limit) : 0;
	}
	late = rank->t - until - SPIN_NS;
	for (uint32_t left = active; left && late > 1; left &= left - 1) {
		int i = __builtin_ctz(left);

		if (sim->job->effects[i].kind == EFFECT_CPU_BUSY)
			truth__lose(sim, i, fragment, until, late, sim->job->effects[i].reported);
	}
}
