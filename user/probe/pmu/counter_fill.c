// SPDX-License-Identifier: GPL-2.0-or-later
/* Converts counts to time: the counters of any stage, for the bundles that were counted with them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "probe/pmu/counters_private.h"
#include "probe/pmu/topdown.h"

#define USUALS 4096
#define USUAL_N 1024 /* fragments after which older ones count half */

/* Stage-1 result of one state and amount of work; the latest key has the entry. */
struct usual {
	uint64_t key;
	double n, kernel_ns, part_ns[TOPDOWN_LEVEL1];
};

static const char *const level1[TOPDOWN_LEVEL1] = TOPDOWN_LEVEL1_NAMES;

static const struct {
	const char *name;
	enum vapro_factor factor;
} parts[] = {
    {"fetch_latency", VAPRO_FRONTEND_LATENCY},
    {"fetch_bandwidth", VAPRO_FRONTEND_BANDWIDTH},
    {"branch_mispredicts", VAPRO_MISPREDICTS},
    {"machine_clears", VAPRO_CLEARS},
    {"memory", VAPRO_MEMORY},
    {"core", VAPRO_CORE},
    {"l1", VAPRO_L1},
    {"l2", VAPRO_L2},
    {"l3", VAPRO_L3},
    {"dram", VAPRO_DRAM},
    {"store", VAPRO_STORE},
};

struct usual *counters__new_usual(void)
{
	return calloc(USUALS, sizeof(struct usual));
}

void counters__lay_out(const struct counters *counters, struct counter_layout *layout)
{
	memset(layout, 0, sizeof(*layout));
	layout->group = counters->group;
	layout->fixed = (uint8_t)counters->fixed;
	layout->count = (uint8_t)counters->count;
	for (size_t i = counters->fixed; i < counters->count && counters->group; i++) {
		layout->row[i] = (uint8_t)(counters->events[i].row - counters->group->events);
		if (counters->events[i].row->flags & EVENT_REFERENCE)
			layout->reference = (uint8_t)i;
	}
}

bool counters__shares(const struct counters *counters, const struct counter_layout *layout, const uint64_t *counts,
		      double retiring, double *share, double *whole)
{
	struct topdown about = {
	    .width = counters->width, .smt = counters->smt, .instructions = (double)counts[0], .retiring = retiring};
	double in_order[EVENTS_IN_GROUP] = {0};

	for (size_t i = layout->fixed; i < layout->count; i++)
		in_order[layout->row[i]] = (double)counts[i];
	if (whole)
		*whole = layout->group->whole ? layout->group->whole(in_order, &about) : NAN;
	return layout->group->formula(in_order, &about, share);
}

static struct usual *usual_of(const struct counters *counters, const struct kernel_bundle_key *key, uint64_t *name)
{
	*name = (uint64_t)key->state << 32 | (uint32_t)(key->cell >> 3) << 1 | 1; /* as bpf/counting.h: work_place */
	return counters->usual ? &counters->usual[*name * 0x9e3779b97f4a7c15ULL >> 52] : NULL;
}

static void remember(const struct counters *counters, const struct kernel_bundle_key *key, double n,
		     const struct vapro_bundle *bundle)
{
	uint64_t name;
	struct usual *usual = usual_of(counters, key, &name);

	if (!usual)
		return;
	if (usual->key != name)
		*usual = (struct usual){.key = name};
	if (usual->n > USUAL_N) {
		usual->n /= 2;
		usual->kernel_ns /= 2;
		for (int i = 0; i < TOPDOWN_LEVEL1; i++)
			usual->part_ns[i] /= 2;
	}
	usual->n += n;
	usual->kernel_ns += bundle->factor[VAPRO_KERNEL];
	for (int i = 0; i < TOPDOWN_LEVEL1; i++)
		usual->part_ns[i] += bundle->factor[VAPRO_RETIRING + i];
}

/* Time in user mode, by the cycles that tick as fast as the time-stamp counter; NAN where they are not counted. */
static double user_ns(const struct counters *counters, const struct counter_layout *layout, const uint64_t *counts)
{
	if (!layout->reference || !(counters->tsc_hz > 0))
		return NAN;
	return (double)counts[layout->reference] / counters->tsc_hz * 1e9;
}

static void fill_top(const struct counters *counters, const struct counter_layout *layout,
		     const struct kernel_bundle_key *key, const struct kernel_bundle *counted, double on_cpu_ns,
		     struct vapro_bundle *bundle)
{
	double share[TOPDOWN_PARTS], user = user_ns(counters, layout, counted->event_sum);

	if (!counters__shares(counters, layout, counted->event_sum, 0, share, NULL))
		return;
	if (isnan(user))
		user = on_cpu_ns; /* the kernel's part is not known */
	user = fmin(user, on_cpu_ns);
	bundle->factor[VAPRO_KERNEL] = on_cpu_ns - user;
	for (int i = 0; i < TOPDOWN_LEVEL1; i++)
		bundle->factor[VAPRO_RETIRING + i] = share[i] * user;
	remember(counters, key, counted->n, bundle);
}

/* The share of the time in user mode that other factors leave, as they were at stage 1; NAN where that is not known. */
static double left_by_others(const struct usual *usual, const char *parent, double n, double user)
{
	double others = 0;
	bool parts_all = false;

	for (int i = 0; i < TOPDOWN_LEVEL1; i++) {
		if (strcmp(level1[i], parent))
			others += usual->part_ns[i];
		else
			parts_all = true;
	}
	return parts_all && user > 0 ? fmax(0, 1 - others / usual->n * n / user) : NAN;
}

static void enter(const struct event_group *group, const double *share, double ns, struct vapro_bundle *bundle)
{
	for (int i = 0; i < TOPDOWN_PARTS && group->parts[i]; i++) {
		for (size_t k = 0; k < sizeof(parts) / sizeof(parts[0]); k++)
			if (!strcmp(parts[k].name, group->parts[i]))
				bundle->factor[parts[k].factor] = share[i] * ns;
	}
}

static void fill_parts(const struct counters *counters, const struct counter_layout *layout,
		       const struct kernel_bundle_key *key, const struct kernel_bundle *counted, double on_cpu_ns,
		       struct vapro_bundle *bundle)
{
	double share[TOPDOWN_PARTS], whole, retiring = 0, user = user_ns(counters, layout, counted->event_sum);
	uint64_t name;
	const struct usual *usual = usual_of(counters, key, &name);

	if (usual && (usual->key != name || !(usual->n > 0)))
		usual = NULL;
	if (isnan(user))
		user = on_cpu_ns - (usual ? usual->kernel_ns / usual->n * counted->n : 0);
	user = fmax(0, fmin(user, on_cpu_ns));
	if (usual && user > 0)
		retiring = fmin(1, usual->part_ns[0] / usual->n * counted->n / user);
	if (!counters__shares(counters, layout, counted->event_sum, retiring, share, &whole))
		return;
	if (isnan(whole) && usual)
		whole = left_by_others(usual, layout->group->parent, counted->n, user);
	if (isnan(whole))
		return; /* the whole is not known */
	bundle->factor[VAPRO_KERNEL] = on_cpu_ns - user;
	/* a whole of 0 is entered too */
	enter(layout->group, share, fmax(1, whole * user), bundle);
}

/* Fetched lines are not time: a regression finds their cost. */
static void fill_fills(const struct counter_layout *layout, const uint64_t *counts, struct vapro_bundle *bundle)
{
	for (size_t i = layout->fixed; i < layout->count; i++)
		bundle->factor[VAPRO_L2_FILLS + layout->row[i]] = (double)counts[i];
}

void counters__fill(const struct counters *counters, const struct kernel_bundle_key *key,
		    const struct kernel_bundle *counted, double on_cpu_ns, struct vapro_bundle *bundle)
{
	static const int magnitude[KERNEL_MAGNITUDES] = {VAPRO_INSTRUCTIONS, VAPRO_NAMED, VAPRO_NAMED + 1};
	const struct counter_layout *layout = &counters->layouts[key->group];

	for (int i = 0; i < KERNEL_MAGNITUDES; i++) {
		bundle->magnitude_min[magnitude[i]] = (double)counted->event_min[i];
		bundle->magnitude_max[magnitude[i]] = (double)counted->event_max[i];
	}
	if (!key->group || !layout->group || !counted->event_sum[0])
		return;
	if (layout->group->stage == 1)
		fill_top(counters, layout, key, counted, on_cpu_ns, bundle);
	else if (layout->group->formula == topdown__fills)
		fill_fills(layout, counted->event_sum, bundle);
	else
		fill_parts(counters, layout, key, counted, on_cpu_ns, bundle);
}
