// SPDX-License-Identifier: GPL-2.0-or-later
/* Binary exponential back-off of units that cost too much: see row_attacher.h. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "clock.h"
#include "probe/row_attacher_private.h"
#include "vapro.skel.h"

#define LEVELS 7		/* spells of 1 to 64 s */
#define QUIET_NS 2000000000ULL	/* within its share for so long after it was opened: it begins anew */
#define SHORTEST_NS 10000000ULL /* time over which rates are told at least */
#define LOOK_NS 1e9		/* units are measured after so long in any case */
#define IDLE_SHARE 0.5		/* of the budget: while all units cost less none is measured */

static double stepping_ns(const struct costs *costs)
{
	return costs->stepped_call_ns > costs->call_ns ? costs->stepped_call_ns - costs->call_ns : 0;
}

/* Calls of a unit's functions so far and what their probes cost. */
static void measure(struct row_attacher *attacher, struct row_unit *unit)
{
	int map = bpf_map__fd(kernel_side__bpf(attacher->side)->maps.function_counters);
	const struct costs *costs = attacher->costs;

	unit->calls = 0;
	unit->cost_ns = 0;
	for (size_t i = 0; i < unit->sites->function_count; i++) {
		const struct row_function *function = &unit->sites->functions[i];
		uint32_t key = function->row;
		double stepped_exits = function->exit_sites ? (double)function->exit_stepped / function->exit_sites : 0;
		uint64_t enter = 0, exit = 0;

		if (!attacher->per_cpu || bpf_map_lookup_elem(map, &key, attacher->per_cpu))
			continue;
		for (uint32_t cpu = 0; cpu < attacher->cpus; cpu++) {
			enter += attacher->per_cpu[cpu].enter;
			exit += attacher->per_cpu[cpu].exit;
		}
		unit->calls += enter;
		unit->cost_ns += (double)enter * (costs->entry_ns + function->stepped * stepping_ns(costs)) +
				 (double)exit * (costs->entry_ns + stepped_exits * stepping_ns(costs));
	}
}

void row_attacher__scale(struct row_attacher *attacher, double ratio)
{
	for (size_t i = 0; i < attacher->count; i++)
		for (size_t j = 0; j < attacher->images[i]->unit_count; j++) {
			attacher->images[i]->units[j]->cost_ns *= ratio;
			attacher->images[i]->units[j]->cost_at_open_ns *= ratio;
		}
}

static struct governor share_of(const struct row_attacher *attacher, const struct row_image *image)
{
	return governor__of_share(attacher->budget * (double)(image->mapper_count ? image->mapper_count : 1));
}

void row_attacher__reset(struct row_attacher *attacher, const struct row_image *image, struct row_unit *unit)
{
	struct governor share = share_of(attacher, image);

	measure(attacher, unit);
	unit->opened_ns = mono_now();
	unit->calls_at_open = unit->calls;
	unit->cost_at_open_ns = unit->cost_ns;
	governor__open_account(&share, &unit->account, unit->opened_ns);
}

static void forget_edges(struct row_attacher *attacher)
{
	kernel_side__bpf(attacher->side)->bss->rows_generation++;
}

/* What a unit has cost since it was opened. */
static struct row_thinned told_of(const struct row_image *image, const struct row_unit *unit, uint64_t now_ns)
{
	double open_ns = now_ns > unit->opened_ns + SHORTEST_NS ? (double)(now_ns - unit->opened_ns) : SHORTEST_NS;

	return (struct row_thinned){
	    .name = unit->group == ROW_THREADS ? "its thread functions"
					       : functions__row(unit->sites->functions[0].row)->symbol,
	    .image = image->path,
	    .calls_per_s = (double)(unit->calls - unit->calls_at_open) / open_ns * 1e9,
	    .cost_pct = (unit->cost_ns - unit->cost_at_open_ns) / open_ns / (double)image->mapper_count * 100,
	    .pids = image->mappers,
	    .pid_count = image->mapper_count,
	};
}

static void thin(struct row_attacher *attacher, struct row_image *image, struct row_unit *unit, double rate,
		 double debt, uint64_t now_ns, void (*thinned)(void *ctx, const struct row_thinned *thinned), void *ctx)
{
	double spell = (double)(1U << unit->level) * 1e9;
	struct row_thinned told = told_of(image, unit, now_ns);

	told.told = unit->level < unit->told_level;
	told.debt_ns = debt;
	if (spell < debt / rate)
		spell = debt / rate;
	spell *= 1 + 0.5 * governor__random(&attacher->random);
	told.closed_s = spell * 1e-9;
	unit->closed_until_ns = now_ns + (uint64_t)spell;
	if (unit->level + 1 < LEVELS)
		unit->level++;
	if (unit->told_level < unit->level)
		unit->told_level = unit->level;
	row_attacher__close(attacher, unit);
	forget_edges(attacher);
	thinned(ctx, &told);
}

/* It keeps to its share again. */
static void give_back(struct row_image *image, struct row_unit *unit, uint64_t now_ns,
		      void (*thinned)(void *ctx, const struct row_thinned *thinned), void *ctx)
{
	struct row_thinned told = told_of(image, unit, now_ns);

	unit->told_level = 0;
	thinned(ctx, &told);
}

/* Whether units are to be measured now: all hits together might overdraw a unit's share, or it is a second since. */
static bool is_due(struct row_attacher *attacher, uint64_t hits, uint64_t now_ns)
{
	double passed = (double)(now_ns - attacher->looked_ns);
	double most = attacher->costs->entry_ns + stepping_ns(attacher->costs); /* that a hit costs */
	bool due = hits < attacher->looked_hits || passed >= LOOK_NS ||
		   (double)(hits - attacher->looked_hits) * most >= IDLE_SHARE * attacher->budget * passed;

	if (due) {
		attacher->looked_ns = now_ns;
		attacher->looked_hits = hits;
	}
	return due;
}

size_t row_attacher__thin(struct row_attacher *attacher, uint64_t hits, uint64_t now_ns,
			  void (*thinned)(void *ctx, const struct row_thinned *thinned), void *ctx)
{
	size_t closed = 0;
	bool due;

	if (attacher->paused || attacher->budget <= 0)
		return 0;
	due = is_due(attacher, hits, now_ns);
	for (size_t i = 0; i < attacher->count; i++) {
		struct row_image *image = attacher->images[i];
		struct governor share = share_of(attacher, image);

		for (size_t j = 0; j < image->unit_count; j++) {
			struct row_unit *unit = image->units[j];
			double before = unit->cost_ns;

			if (!unit->sites->function_count || !unit->link_count)
				continue;
			if (unit->closed_until_ns && now_ns >= unit->closed_until_ns) {
				unit->closed_until_ns = 0;
				row_attacher__open(attacher, image, unit);
				row_attacher__reset(attacher, image, unit);
				forget_edges(attacher);
				continue;
			}
			if (unit->closed_until_ns) {
				closed++;
				continue;
			}
			if (!due)
				continue;
			measure(attacher, unit);
			if (governor__charge(&share, &unit->account, now_ns, unit->cost_ns - before)) {
				thin(attacher, image, unit, share.rate, share.room_ns - unit->account.credit_ns, now_ns,
				     thinned, ctx);
				closed++;
			} else if (now_ns > unit->opened_ns + QUIET_NS) {
				unit->level = 0;
				if (unit->told_level && now_ns > unit->opened_ns + GOVERNOR_STEP_NS)
					give_back(image, unit, now_ns, thinned, ctx);
			}
		}
	}
	return closed;
}

bool row_attacher__thin_costliest(struct row_attacher *attacher, double debt_ns, uint64_t now_ns,
				  void (*thinned)(void *ctx, const struct row_thinned *thinned), void *ctx)
{
	struct row_image *image = NULL;
	struct row_unit *costliest = NULL;
	double most = debt_ns / 4; /* less is not the cause */

	if (attacher->paused || attacher->budget <= 0)
		return false;
	for (size_t i = 0; i < attacher->count; i++)
		for (size_t j = 0; j < attacher->images[i]->unit_count; j++) {
			struct row_unit *unit = attacher->images[i]->units[j];

			if (unit->closed_until_ns || !unit->link_count || unit->cost_ns - unit->cost_at_open_ns < most)
				continue;
			most = unit->cost_ns - unit->cost_at_open_ns;
			costliest = unit;
			image = attacher->images[i];
		}
	if (costliest)
		thin(attacher, image, costliest, share_of(attacher, image).rate, debt_ns * (double)image->mapper_count,
		     now_ns, thinned, ctx);
	return costliest != NULL;
}
