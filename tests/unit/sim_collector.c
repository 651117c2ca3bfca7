/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sim_collector.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SINGLES_PER_BIN 20

static void *room(void *items, size_t *capacity, size_t need, size_t size)
{
	if (need > *capacity) {
		*capacity = need * 2;
		items = realloc(items, *capacity * size);
		assert_non_null(items);
	}
	return items;
}

uint64_t sim_utc(double t)
{
	return SIM_BEGIN_NS + (uint64_t)llround(t);
}

static void put(struct sim *sim, const struct vapro_bundle *bundle)
{
	sim->bundles = room(sim->bundles, &sim->capacity, sim->count + 1, sizeof(*sim->bundles));
	sim->bundles[sim->count++] = *bundle;
}

void sim_flush(struct sim *sim, struct rank *rank)
{
	for (int i = 0; i < SIM_CELLS; i++) {
		if (rank->cells[i].used)
			put(sim, &rank->cells[i].bundle);
		rank->cells[i].used = false;
	}
	rank->singles = 0;
}

static void make(const struct sim *sim, const struct fragment *f, double end, struct vapro_bundle *b)
{
	double part = f->end > f->start ? (end - f->start) / (f->end - f->start) : 1;

	*b = (struct vapro_bundle){
	    .thread = (uint32_t)f->rank,
	    .state = (uint32_t)f->state,
	    .n = 1,
	    .start_ns = sim_utc(f->start),
	    .end_ns = sim_utc(end),
	};
	b->sum_ns = b->min_ns = b->max_ns = b->end_ns - b->start_ns;
	b->first_call = b->last_call = sim->ranks[f->rank].calls;
	b->factor[VAPRO_PREEMPTED] = f->preempted * part;
	b->factor[VAPRO_BLOCKED_IO] = f->blocked_io * part;
	b->factor[VAPRO_BLOCKED_OTHER] = f->blocked_other * part;
	b->factor[VAPRO_INVOLUNTARY_SWITCHES] = f->preempted > 0;
	if (f->state <= C3 && sim->source == VAPRO_BY_INSTRUCTIONS)
		b->magnitude_min[VAPRO_INSTRUCTIONS] = b->magnitude_max[VAPRO_INSTRUCTIONS] = f->instructions;
	if (f->state > C3)
		b->magnitude_min[VAPRO_BYTES] = b->magnitude_max[VAPRO_BYTES] = f->state == W ? 65536 : 8;
}

static uint32_t bucket_of(double ns)
{
	uint64_t v = (uint64_t)ns;
	uint32_t exponent;

	if (v < 8)
		return (uint32_t)v;
	exponent = 63 - (uint32_t)__builtin_clzll(v);
	return (exponent - 2) * 8 + (uint32_t)(v >> (exponent - 3) & 7);
}

void sim_emit(struct sim *sim, const struct fragment *f)
{
	struct rank *rank = &sim->ranks[f->rank];
	struct vapro_bundle b;
	double on_cpu = f->end - f->start - f->preempted - f->blocked_io - f->blocked_other;
	uint32_t bucket = bucket_of(f->state <= C3 ? fmax(on_cpu, 0) : 65536.0 * f->state) + 1000u * (uint32_t)f->state;
	bool abnormal, single;
	struct cell *cell = NULL;

	if (f->start >= sim->s->seconds * 1e9)
		return;
	for (int i = 0; i < sim->window_count; i++) {
		struct window *w = &sim->windows[i];

		if (f->start < w->end && f->end > w->end) {
			w->open = room(w->open, &w->open_capacity, w->open_count + 1, sizeof(*w->open));
			make(sim, f, w->end, &w->open[w->open_count]);
			w->open[w->open_count++].flags = VAPRO_BUNDLE_OPEN;
		}
	}
	if (f->end >= sim->s->seconds * 1e9)
		return;
	make(sim, f, f->end, &b);
	rank->calls++;
	if (b.end_ns / VAPRO_BIN_NS != rank->bin) {
		sim_flush(sim, rank);
		rank->bin = b.end_ns / VAPRO_BIN_NS;
	}
	if (!rank->seen[f->state] || (double)b.sum_ns < rank->least[f->state])
		rank->least[f->state] = (double)b.sum_ns;
	abnormal = (double)b.sum_ns > 1.2 * rank->least[f->state];
	single = b.sum_ns > 10000000 || rank->seen[f->state] < 5 || (abnormal && rank->singles < SINGLES_PER_BIN);
	rank->seen[f->state]++;
	if (single) {
		rank->singles++;
		put(sim, &b);
		return;
	}
	if (abnormal)
		bucket += 500000;
	for (int i = 0; i < SIM_CELLS; i++) {
		if (rank->cells[i].used && rank->cells[i].bucket == bucket) {
			cell = &rank->cells[i];
			break;
		}
		if (!rank->cells[i].used && !cell)
			cell = &rank->cells[i];
	}
	assert_non_null(cell);
	if (!cell->used) {
		*cell = (struct cell){.bundle = b, .bucket = bucket, .used = true};
		cell->bundle.flags = abnormal ? VAPRO_BUNDLE_ABNORMAL : 0;
		return;
	}
	cell->bundle.n++;
	cell->bundle.end_ns = b.end_ns;
	cell->bundle.sum_ns += b.sum_ns;
	cell->bundle.min_ns = b.min_ns < cell->bundle.min_ns ? b.min_ns : cell->bundle.min_ns;
	cell->bundle.max_ns = b.max_ns > cell->bundle.max_ns ? b.max_ns : cell->bundle.max_ns;
	cell->bundle.last_call = b.last_call;
	for (int i = 0; i < VAPRO_FACTORS; i++)
		cell->bundle.factor[i] += b.factor[i];
	for (int i = 0; i < VAPRO_MAGNITUDES; i++) {
		cell->bundle.magnitude_min[i] = fmin(cell->bundle.magnitude_min[i], b.magnitude_min[i]);
		cell->bundle.magnitude_max[i] = fmax(cell->bundle.magnitude_max[i], b.magnitude_max[i]);
	}
}

void sim_preempt(struct sim *sim, int rank, uint32_t pid, double from, double to)
{
	while (from < to) {
		uint64_t bin = sim_utc(from) / VAPRO_BIN_NS;
		double border = (double)((bin + 1) * VAPRO_BIN_NS - SIM_BEGIN_NS), end = fmin(border, to);
		struct vapro_interference *last = NULL;

		for (size_t i = sim->interference_count; i-- > 0 && sim->interference_count - i < 200;) {
			if (sim->interference[i].thread == (uint32_t)rank && sim->interference[i].bin == bin &&
			    sim->interference[i].pid == pid) {
				last = &sim->interference[i];
				break;
			}
		}
		if (!last) {
			sim->interference = room(sim->interference, &sim->interference_capacity,
						 sim->interference_count + 1, sizeof(*sim->interference));
			last = &sim->interference[sim->interference_count++];
			*last = (struct vapro_interference){
			    .thread = (uint32_t)rank,
			    .pid = pid,
			    .bin = bin,
			    .comm = "hog",
			    .process = sim->s->threads && pid >= 1000 && pid < 1100 ? 1000 : pid,
			    .monitor = pid == SIM_MONITOR};
		}
		last->preempted_ns += (uint64_t)(end - from);
		last->slices += end >= to;
		last->longest_us = (uint32_t)fmax(last->longest_us, (end - from) / 1e3);
		from = end;
	}
}

static void announce(struct sim *sim, struct analysis *analysis)
{
	static const struct vapro_state states[STATES] = {
	    [C1] = {C1, VAPRO_COMPUTATION, "a@b+0x1", "a@b+0x2", "after=MPI_Allreduce before=MPI_Allreduce", NULL,
		    "solve", "norm"},
	    [C2] = {C2, VAPRO_COMPUTATION, "a@b+0x2", "a@b+0x3", "after=MPI_Allreduce before=write", NULL, NULL, NULL},
	    [C3] = {C3, VAPRO_COMPUTATION, "a@b+0x3", "a@b+0x1", "after=write before=MPI_Allreduce", NULL, NULL, NULL},
	    [A1] = {A1, VAPRO_COMMUNICATION, NULL, "a@b+0x2", "comm=0 function=MPI_Allreduce", "function=MPI_Allreduce",
		    NULL, NULL},
	    [A2] = {A2, VAPRO_COMMUNICATION, NULL, "a@b+0x1", "comm=0 function=MPI_Allreduce", "function=MPI_Allreduce",
		    NULL, NULL},
	    [W] = {W, VAPRO_IO, NULL, "a@b+0x3", "fd_kind=file function=write", NULL, NULL, NULL},
	};

	static const char barrier[] = "function=pthread_barrier_wait scope=process";
	bool threads = sim->s->threads;

	for (int i = 0; i < sim->s->ranks; i++) {
		struct vapro_thread thread = {
		    .id = (uint32_t)i,
		    .rank = threads ? 0 : i,
		    .thread = threads ? i : 0,
		    .world_size = threads	       ? 1
				  : sim->s->world_size ? sim->s->world_size
						       : (uint32_t)sim->s->ranks,
		    .pid = 1000 + (threads ? 0 : (uint32_t)i),
		    .tid = 1000 + (uint32_t)i,
		    .job = "slurm:1",
		    .host = "n1",
		};

		assert_int_equal(analysis__add_thread(analysis, &thread), 0);
		if (sim->s->cpus) {
			struct vapro_place place = {
			    .thread = (uint32_t)i, .cpu = -1, .socket = -1, .numa = -1, .cpus = sim->s->cpus};

			assert_int_equal(analysis__place(analysis, &place), 0);
		}
	}
	for (int i = 0; i < STATES; i++) {
		struct vapro_state state = states[i];

		if (threads && state.class == VAPRO_COMMUNICATION)
			state.labels = state.common = barrier;
		assert_int_equal(analysis__add_state(analysis, &state), 0);
	}
}

static int by_end(const void *a, const void *b)
{
	const struct vapro_bundle *left = a, *right = b;

	return (left->end_ns > right->end_ns) - (left->end_ns < right->end_ns);
}

/* Samples the requested threads in the computations after each call, as if the next window were over. */
static void sample(struct sim *sim, struct analysis *analysis)
{
	static const uint32_t calls[] = {A1, A2, W};
	struct sim_report *found = sim->report;
	struct vapro_inside_request request;

	analysis__inside_request(analysis, &request);
	found->requested_last = request.count;
	if (request.count > found->requested_most)
		found->requested_most = request.count;
	if (request.count)
		found->requested_tid = request.tids[0];
	for (uint32_t i = 0; i < request.count; i++)
		for (size_t call = 0; call < sizeof(calls) / sizeof(calls[0]); call++) {
			uint32_t thread = request.tids[i] - 1000;

			assert_int_equal(analysis__add_inside(analysis, thread, calls[call], "p@0+0x1", 100), 0);
			assert_int_equal(analysis__add_inside(analysis, thread, calls[call], "p@0+0x2", 200), 0);
			assert_int_equal(analysis__add_inside(analysis, thread, calls[call], "p@0+0x2", 100), 0);
			assert_int_equal(analysis__add_inside(analysis, thread, calls[call], NULL, 50), 0);
		}
	assert_int_equal(analysis__add_inside(analysis, 4095, 0, "p@0+0x1", 1), -EINVAL);
	assert_int_equal(analysis__add_inside(analysis, 0, 4095, "p@0+0x1", 1), -EINVAL);
}

void sim_feed(struct sim *sim, struct analysis *analysis)
{
	size_t at = 0, next = 0;

	announce(sim, analysis);
	qsort(sim->bundles, sim->count, sizeof(*sim->bundles), by_end);
	for (int w = 0; w < sim->window_count; w++) {
		struct window *window = &sim->windows[w];
		const struct job_result *results;
		uint32_t count;
		struct vapro_process_facts facts = {
		    .pid = 1000,
		    .job = "slurm:1",
		    .wall_ns = (uint64_t)(window->end - window->begin),
		    .governed_ns = (uint64_t)((window->end - window->begin) * sim->s->governed_share),
		};

		for (; at < sim->count && sim->bundles[at].end_ns < sim_utc(window->end); at++) {
			/* Fragments on links that the governor closed are unobserved. */
			if (sim->s->governed_share > 0 &&
			    fmod((double)(sim->bundles[at].end_ns - SIM_BEGIN_NS) / 1e9, 1) < sim->s->governed_share) {
				facts.thinned_ns += sim->bundles[at].sum_ns;
				facts.thinned += sim->bundles[at].n;
				continue;
			}
			assert_int_equal(analysis__add_bundle(analysis, &sim->bundles[at]), 0);
		}
		for (size_t i = 0; i < window->open_count; i++)
			assert_int_equal(analysis__add_bundle(analysis, &window->open[i]), 0);
		for (; next < sim->interference_count &&
		       sim->interference[next].bin < sim_utc(window->end) / VAPRO_BIN_NS;
		     next++)
			assert_int_equal(analysis__add_interference(analysis, &sim->interference[next]), 0);
		facts.lost[VAPRO_LOST_GOVERNED] = facts.thinned;
		if (sim->s->thinned)
			facts.governed_ns = 0;
		else
			facts.thinned_ns = facts.thinned = facts.lost[VAPRO_LOST_GOVERNED] = 0;
		assert_int_equal(analysis__add_facts(analysis, &facts), 0);
		assert_int_equal(analysis__end_window(analysis, sim_utc(window->begin), sim_utc(window->end),
						      w == sim->window_count - 1, &results, &count),
				 0);
		assert_int_equal(count, 1);
		sim_read(sim->report, &results[0]);
		if (sim->s->inside)
			sample(sim, analysis);
	}
}
