// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/pmu/topdown.h"

#include <math.h>

enum { RETIRING, FRONTEND, BAD_SPECULATION, BACKEND, LEVEL1 = TOPDOWN_LEVEL1 };

/* Counters stop at slightly different moments: shares below 0 become 0, and all shares sum to 1. */
static bool whole(double *share, int parts)
{
	double sum = 0;

	for (int i = 0; i < parts; i++) {
		share[i] = isfinite(share[i]) ? fmax(0, share[i]) : 0;
		sum += share[i];
	}
	if (!(sum > 0))
		return false;
	for (int i = 0; i < parts; i++)
		share[i] /= sum;
	return true;
}

static bool two(double *share, double part, double all)
{
	if (!(all > 0))
		return false;
	share[0] = fmin(1, fmax(0, part / all));
	share[1] = 1 - share[0];
	return true;
}

/* cycles, slots not delivered, uops issued, slots retired, recovery cycles */
bool topdown__skylake(const double *count, const struct topdown *about, double *share)
{
	double threads = about->smt ? 2 : 1;
	double slots = about->width * count[0] / threads, recovery = about->width * count[4] / threads;

	if (!(slots > 0))
		return false;
	share[RETIRING] = count[3] / slots;
	share[FRONTEND] = count[1] / slots;
	share[BAD_SPECULATION] = (count[2] - count[3] + recovery) / slots;
	share[BACKEND] = 1 - (count[1] + count[2] + recovery) / slots;
	return whole(share, LEVEL1);
}

/* slots, slots retired, slots not delivered, slots backend bound, uops dropped */
bool topdown__icelake(const double *count, const struct topdown *about, double *share)
{
	double slots = count[0];

	(void)about;
	if (!(slots > 0))
		return false;
	share[RETIRING] = count[1] / slots;
	share[FRONTEND] = (count[2] - count[4]) / slots;
	share[BACKEND] = count[3] / slots;
	share[BAD_SPECULATION] = 1 - share[RETIRING] - share[FRONTEND] - share[BACKEND];
	return whole(share, LEVEL1);
}

/* cycles, slots without ops from the frontend, slots stalled by the backend, ops retired */
bool topdown__zen4(const double *count, const struct topdown *about, double *share)
{
	double slots = about->width * count[0];

	if (!(slots > 0))
		return false;
	share[RETIRING] = count[3] / slots;
	share[FRONTEND] = count[1] / slots;
	share[BACKEND] = count[2] / slots;
	share[BAD_SPECULATION] = 1 - share[RETIRING] - share[FRONTEND] - share[BACKEND];
	return whole(share, LEVEL1);
}

/* cycles, cycles with an empty queue of ops, ops retired; discarded work looks like waiting */
bool topdown__zen2(const double *count, const struct topdown *about, double *share)
{
	double cycles = count[0];

	if (!(cycles > 0))
		return false;
	share[RETIRING] = count[2] / (about->width * cycles);
	share[FRONTEND] = count[1] / cycles;
	share[BAD_SPECULATION] = 0;
	share[BACKEND] = 1 - share[RETIRING] - share[FRONTEND];
	return whole(share, LEVEL1);
}

/* cycles, cycles stalled by the frontend, by the backend, instructions speculated */
bool topdown__neoverse_n1(const double *count, const struct topdown *about, double *share)
{
	double cycles = count[0], useful = count[3] > 0 ? fmin(1, about->instructions / count[3]) : 1, rest;

	if (!(cycles > 0))
		return false;
	share[FRONTEND] = count[1] / cycles;
	share[BACKEND] = count[2] / cycles;
	rest = fmax(0, 1 - share[FRONTEND] - share[BACKEND]);
	share[RETIRING] = rest * useful;
	share[BAD_SPECULATION] = rest * (1 - useful);
	return whole(share, LEVEL1);
}

/*
 * cycles, slots stalled by the frontend, by the backend, ops retired, ops speculated, and one that says
 * how long the pipeline refilled: `refill` cycles of each part belong to bad speculation.
 */
static bool neoverse(const double *count, double width, double refill_frontend, double refill_backend, double corrected,
		     double *share)
{
	double cycles = count[0], slots = width * cycles, frontend = count[1] - corrected;
	double useful = count[4] > 0 ? fmin(1, count[3] / count[4]) : 1, busy;

	if (!(slots > 0))
		return false;
	busy = 1 - (frontend + count[2]) / slots;
	share[FRONTEND] = frontend / slots - refill_frontend / cycles;
	share[BACKEND] = count[2] / slots - refill_backend / cycles;
	share[RETIRING] = useful * busy;
	share[BAD_SPECULATION] = (1 - useful) * busy + (refill_frontend + refill_backend) / cycles;
	return whole(share, LEVEL1);
}

/* the last count: branches mispredicted */
bool topdown__neoverse_v1(const double *count, const struct topdown *about, double *share)
{
	return neoverse(count, about->width, 4 * count[5], 0, 0, share);
}

bool topdown__neoverse_v2(const double *count, const struct topdown *about, double *share)
{
	return neoverse(count, about->width, count[5], 3 * count[5], 0, share);
}

/* N2 up to r0p2 counts a slot too much per cycle in the frontend. */
bool topdown__neoverse_n2_early(const double *count, const struct topdown *about, double *share)
{
	return neoverse(count, about->width, count[5], 3 * count[5], count[0], share);
}

/* the last count: cycles that the frontend was refilled after a flush */
bool topdown__neoverse_v3(const double *count, const struct topdown *about, double *share)
{
	return neoverse(count, about->width, count[5], 0, 0, share);
}

/* cycles, cycles without a commit, of them waiting for a load, for execution, for a branch */
bool topdown__a64fx(const double *count, const struct topdown *about, double *share)
{
	double cycles = count[0];

	(void)about;
	if (!(cycles > 0))
		return false;
	share[RETIRING] = 1 - count[1] / cycles;
	share[BACKEND] = (count[2] + count[3]) / cycles;
	share[BAD_SPECULATION] = count[4] / cycles;
	share[FRONTEND] = (count[1] - count[2] - count[3] - count[4]) / cycles;
	return whole(share, LEVEL1);
}

/* stalls with loads pending, stalls on full store buffers, all stalls, cycles with 1 port in use, with 2 */
bool topdown__skylake_backend(const double *count, const struct topdown *about, double *share)
{
	return two(share, count[0] + count[1], count[2] + count[1] + count[3] + about->retiring * count[4]);
}

/* cycles that delivered nothing, slots not delivered */
bool topdown__skylake_frontend(const double *count, const struct topdown *about, double *share)
{
	return two(share, about->width * count[0], count[1]);
}

/* slots retired, macro-fused pairs: what one instruction needs beyond one slot is heavy */
bool topdown__skylake_retiring(const double *count, const struct topdown *about, double *share)
{
	return two(share, count[0] + count[1] - about->instructions, count[0]);
}

/* cycles that delivered nothing, slots not delivered, uops dropped */
bool topdown__icelake_frontend(const double *count, const struct topdown *about, double *share)
{
	return two(share, about->width * count[0] - count[2], count[1] - count[2]);
}

/* cycles without any op, slots without ops */
bool topdown__zen4_frontend(const double *count, const struct topdown *about, double *share)
{
	return two(share, about->width * count[0], count[1]);
}

bool topdown__part_of(const double *count, const struct topdown *about, double *share)
{
	(void)about;
	return two(share, count[0], count[1]);
}

bool topdown__two_parts(const double *count, const struct topdown *about, double *share)
{
	(void)about;
	return two(share, count[0], count[0] + count[1]);
}

/*
 * stalls on any load, on misses of the first cache, of the second, of the third, on stores. A load
 * that finds its line under way counts as a miss of the first cache that the second served: l2_share
 * gives such loads back to memory.
 */
bool topdown__stalls_by_level(const double *count, const struct topdown *about, double *share)
{
	double answered = fmax(0, count[1] - count[2]), known = about->l2_share > 0 ? about->l2_share : 1;

	share[0] = count[0] - count[1];
	share[1] = known * answered;
	share[2] = count[2] - count[3];
	share[3] = count[3] + answered - share[1];
	share[4] = count[4];
	return whole(share, 5);
}

/* hits of the second cache, of a line under way, misses of the first, cycles in which no line could be requested */
bool topdown__l2_share(const double *count, const struct topdown *about, double *share)
{
	double hits = count[0] * (1 + (count[2] > 0 ? count[1] / count[2] : 0));

	(void)about;
	return two(share, hits, hits + count[3]);
}

/* waiting for a load; part of it for the second cache, for memory */
bool topdown__a64fx_memory(const double *count, const struct topdown *about, double *share)
{
	(void)about;
	share[0] = count[0] - count[1] - count[2];
	share[1] = count[1];
	share[2] = count[2];
	return whole(share, 3);
}

/* fills from the second cache, from the third, from memory near, from afar */
bool topdown__fills(const double *count, const struct topdown *about, double *share)
{
	(void)about;
	for (int i = 0; i < 4; i++)
		share[i] = count[i];
	return whole(share, 4);
}

bool topdown__clocks(const double *count, const struct topdown *about, double *share)
{
	(void)about;
	share[RETIRING] = share[FRONTEND] = share[BAD_SPECULATION] = 0;
	share[BACKEND] = 1;
	return count[0] > 0;
}

static double part_of_all(double part, double all)
{
	return all > 0 ? fmin(1, fmax(0, part / all)) : NAN;
}

double topdown__whole_second(const double *count, const struct topdown *about)
{
	(void)about;
	return part_of_all(count[1], count[2]);
}

/* With two threads on a core the slots of a cycle are both threads'. */
double topdown__whole_slots(const double *count, const struct topdown *about)
{
	return about->smt ? NAN : part_of_all(count[1], about->width * count[2]);
}

/* slots not delivered, uops dropped, slots */
double topdown__whole_icelake_frontend(const double *count, const struct topdown *about)
{
	(void)about;
	return part_of_all(count[1] - count[2], count[3]);
}

/* stalls on any load, on stores, cycles */
double topdown__whole_stalls(const double *count, const struct topdown *about)
{
	(void)about;
	return part_of_all(count[0] + count[4], count[5]);
}

/* waiting for a load, for execution, cycles */
double topdown__whole_a64fx_backend(const double *count, const struct topdown *about)
{
	(void)about;
	return part_of_all(count[0] + count[1], count[2]);
}

/* waiting for a load, cycles */
double topdown__whole_a64fx_memory(const double *count, const struct topdown *about)
{
	(void)about;
	return part_of_all(count[0], count[3]);
}

double topdown__whole_all(const double *count, const struct topdown *about)
{
	(void)about;
	return count[0] > 0 ? 1 : NAN;
}
