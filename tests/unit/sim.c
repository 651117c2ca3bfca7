/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sim.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { C1, C2, C3, A1, A2, W, STATES };

static const double base_ns[] = {[C1] = 6e6, [C2] = 4e6, [C3] = 3e6};

struct cell {
	struct vapro_bundle bundle;
	uint32_t bucket;
	bool used;
};

#define CELLS 256
#define SINGLES_PER_BIN 20

struct rank {
	double t;     /* ns since start */
	double slice; /* on-CPU time left before the hog runs */
	uint64_t calls, bin;
	struct cell cells[CELLS];
	double least[STATES];
	unsigned seen[STATES], singles;
	double bin_factor;
	uint64_t factor_bin;
};

struct window {
	double begin, end;
	struct vapro_bundle *open;
	size_t open_count, open_capacity;
};

struct sim {
	const struct sim_scenario *s;
	struct sim_report *report;
	uint64_t seed;
	struct rank *ranks;
	struct vapro_bundle *bundles;
	size_t count, capacity;
	struct vapro_interference *taken;
	size_t taken_count, taken_capacity;
	struct window windows[64];
	int window_count;
	enum vapro_workload_source source;
	double work[STATES]; /* instructions of the current fragment's state */
};

struct fragment {
	int rank, state;
	double start, end, preempted, blocked_io, blocked_other, instructions;
};

double sim_random(uint64_t *seed)
{
	uint64_t x = *seed += 0x9e3779b97f4a7c15ULL;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return (double)((x ^ x >> 31) >> 11) / 9007199254740992.0;
}

double sim_gauss(uint64_t *seed)
{
	double u = sim_random(seed), v = sim_random(seed);

	return sqrt(-2 * log(u + 1e-300)) * cos(6.283185307179586 * v);
}

void sim_config(struct vapro_config *config)
{
	*config = (struct vapro_config){
	    .window_s = 15,
	    .threshold = 0.85,
	    .min_cells = 2,
	    .min_lost_s = 0.1,
	    .min_share = 0.001,
	    .warning_share = 0.001,
	    .critical_share = 0.05,
	    .support_batches = 25,
	    .valid_bin = 0.1,
	    .cluster_tolerance = 0.05,
	    .cluster_floor = 64,
	    .cluster_cells = 4096,
	    .rare_members = 5,
	    .certify_fragments = 50,
	    .certify_share = 0.7,
	    .certify_width = 0.1,
	    .populous_share = 0.2,
	    .rank_agreement = 0.05,
	    .evidence_share = 0.5,
	    .abnormal_ratio = 1.2,
	    .major_share = 0.25,
	    .p_value = 0.05,
	};
}

static void *room(void *items, size_t *capacity, size_t need, size_t size)
{
	if (need > *capacity) {
		*capacity = need * 2;
		items = realloc(items, *capacity * size);
		assert_non_null(items);
	}
	return items;
}

static uint64_t utc(double t)
{
	return SIM_BEGIN_NS + (uint64_t)llround(t);
}

static void put(struct sim *sim, const struct vapro_bundle *bundle)
{
	sim->bundles = room(sim->bundles, &sim->capacity, sim->count + 1, sizeof(*sim->bundles));
	sim->bundles[sim->count++] = *bundle;
}

static void flush(struct sim *sim, struct rank *rank)
{
	for (int i = 0; i < CELLS; i++) {
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
	    .start_ns = utc(f->start),
	    .end_ns = utc(end),
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

/* What the kernel side does with a fragment that ended. */
static void emit(struct sim *sim, const struct fragment *f)
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
		flush(sim, rank);
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
	for (int i = 0; i < CELLS; i++) {
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

static const struct sim_hog *hog_at(const struct sim *sim, int rank, double t, double *next)
{
	*next = INFINITY;
	for (int i = 0; i < sim->s->hog_count; i++) {
		const struct sim_hog *hog = &sim->s->hogs[i];

		if (hog->rank != rank)
			continue;
		if (t >= hog->begin * 1e9 && t < hog->end * 1e9)
			return hog;
		if (t < hog->begin * 1e9)
			*next = fmin(*next, hog->begin * 1e9);
	}
	return NULL;
}

static void take(struct sim *sim, int rank, const struct sim_hog *hog, double from, double to)
{
	while (from < to) {
		uint64_t bin = utc(from) / VAPRO_BIN_NS;
		double border = (double)((bin + 1) * VAPRO_BIN_NS - SIM_BEGIN_NS), end = fmin(border, to);
		struct vapro_interference *last = NULL;

		for (size_t i = sim->taken_count; i-- > 0 && sim->taken_count - i < 200;) {
			if (sim->taken[i].thread == (uint32_t)rank && sim->taken[i].bin == bin &&
			    sim->taken[i].pid == hog->pid) {
				last = &sim->taken[i];
				break;
			}
		}
		if (!last) {
			sim->taken = room(sim->taken, &sim->taken_capacity, sim->taken_count + 1, sizeof(*sim->taken));
			last = &sim->taken[sim->taken_count++];
			*last = (struct vapro_interference){
			    .thread = (uint32_t)rank, .pid = hog->pid, .bin = bin, .comm = "hog"};
		}
		last->preempted_ns += (uint64_t)(end - from);
		from = end;
	}
}

/*
 * Lets a rank run until it has had `need` ns on its CPU and `until` has passed; a hog takes turns
 * of about 4 ms. Returns the time preempted.
 */
static double run(struct sim *sim, int id, double need, double until)
{
	struct rank *rank = &sim->ranks[id];
	double preempted = 0;

	while (need > 0 || rank->t < until) {
		double next, step = fmax(need, until - rank->t);
		const struct sim_hog *hog = hog_at(sim, id, rank->t, &next);

		if (!hog) {
			rank->slice = 0;
			step = fmin(step, fmax(1, next - rank->t));
		} else if (rank->slice <= 0) {
			double turn = 4e6 * (0.75 + 0.5 * sim_random(&sim->seed));

			turn = fmin(turn, hog->end * 1e9 - rank->t);
			take(sim, id, hog, rank->t, rank->t + turn);
			rank->t += turn;
			preempted += turn;
			rank->slice = 4e6 * (0.75 + 0.5 * sim_random(&sim->seed));
			continue;
		} else {
			step = fmin(step, rank->slice);
			rank->slice -= step;
		}
		rank->t += step;
		need -= step;
	}
	return preempted;
}

static double work_of(struct sim *sim, int id, int state, int iteration, double *instructions)
{
	const struct sim_scenario *s = sim->s;
	struct rank *rank = &sim->ranks[id];
	double ns = base_ns[state] * (s->scale > 0 ? s->scale : 1), t = rank->t / 1e9;

	if (s->random_work)
		ns *= 0.3 + 1.4 * sim_random(&sim->seed);
	if (s->alternating && state <= C2 && iteration & 1)
		ns *= 2;
	if (s->modes > 0 && sim_random(&sim->seed) < s->modes)
		ns *= 2;
	if (s->phase_factor > 0 && state == C1 && t >= s->phase_at)
		ns *= s->phase_factor;
	if (s->grow_factor > 0 && t >= s->grow_at)
		ns *= s->grow_factor;
	if (s->slow_rank_factor > 0 && id == s->ranks - 1)
		ns *= s->slow_rank_factor;
	*instructions = ns;
	ns *= 1 + s->drift * t;
	if (s->memory_factor > 0 && id == s->memory_rank && t >= s->memory_begin && t < s->memory_end &&
	    (state == C1 || !s->memory_first))
		ns *= s->memory_factor;
	if (s->bin_noise > 0) {
		uint64_t bin = utc(rank->t) / VAPRO_BIN_NS;

		if (bin != rank->factor_bin) {
			rank->factor_bin = bin;
			rank->bin_factor = 1 + s->bin_noise * sim_random(&sim->seed) * sim_random(&sim->seed);
		}
		ns *= rank->bin_factor;
	}
	return ns * fmax(0.5, 1 + s->noise * sim_gauss(&sim->seed));
}

static void compute(struct sim *sim, int id, int state, int iteration)
{
	struct rank *rank = &sim->ranks[id];
	struct fragment f = {.rank = id, .state = state, .start = rank->t};
	double ns = work_of(sim, id, state, iteration, &f.instructions);

	f.preempted = run(sim, id, ns, 0);
	if (sim->s->naps && state == C3) {
		f.blocked_other = 1.5e6 * (1 + 0.05 * sim_random(&sim->seed));
		rank->t += f.blocked_other;
	}
	if (sim->s->odd_naps > 0 && state == C3 && sim_random(&sim->seed) < sim->s->odd_naps) {
		f.blocked_other += 2e7;
		rank->t += 2e7;
	}
	f.end = rank->t;
	if (f.end < sim->s->seconds * 1e9)
		sim->report->truth_preempted[id % 64] += f.preempted / 1e9;
	emit(sim, &f);
}

static void allreduce(struct sim *sim, int state)
{
	const struct sim_scenario *s = sim->s;
	double last = 0, cost = 2e4 * (1 + 0.3 * sim_random(&sim->seed));

	for (int i = 0; i < s->ranks; i++)
		last = fmax(last, sim->ranks[i].t);
	if (last >= s->transfer_begin * 1e9 && last < s->transfer_end * 1e9)
		cost += s->transfer_ns;
	for (int i = 0; i < s->ranks; i++) {
		struct fragment f = {.rank = i, .state = state, .start = sim->ranks[i].t};

		f.preempted = run(sim, i, 5e3, last + cost);
		f.end = sim->ranks[i].t;
		if (s->spins) {
			struct sim_hog peer = {.pid = 1000 + (uint32_t)((i + 1) % s->ranks)};

			take(sim, i, &peer, f.start, f.end);
			f.preempted = f.end - f.start;
		}
		emit(sim, &f);
	}
}

static void write_file(struct sim *sim, int id, bool *stalled)
{
	const struct sim_scenario *s = sim->s;
	struct rank *rank = &sim->ranks[id];
	struct fragment f = {.rank = id, .state = W, .start = rank->t};

	f.preempted = run(sim, id, 3e5 * (1 + 0.1 * sim_random(&sim->seed)), 0);
	if (s->stall_s > 0 && !*stalled && id == s->stall_rank && rank->t >= s->stall_at * 1e9) {
		*stalled = true;
		rank->t += s->stall_s * 1e9;
		if (s->stall_attributed)
			f.blocked_io = s->stall_s * 1e9;
	}
	if (s->flush_share > 0 && sim_random(&sim->seed) < s->flush_share) {
		f.blocked_io += 2e7;
		rank->t += 2e7;
	}
	f.end = rank->t;
	emit(sim, &f);
}

static void simulate(struct sim *sim)
{
	const struct sim_scenario *s = sim->s;
	bool stalled = false;

	for (int iteration = 0; sim->ranks[0].t < s->seconds * 1e9; iteration++) {
		for (int i = 0; i < s->ranks; i++)
			compute(sim, i, C1, iteration);
		allreduce(sim, A1);
		for (int i = 0; i < s->ranks; i++) {
			compute(sim, i, C2, iteration);
			if (s->write_every && iteration % s->write_every == s->write_every - 1)
				write_file(sim, i, &stalled);
			compute(sim, i, C3, iteration);
		}
		allreduce(sim, A2);
	}
	for (int i = 0; i < s->ranks; i++)
		flush(sim, &sim->ranks[i]);
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

static void feed(struct sim *sim, struct analysis *analysis)
{
	size_t at = 0, taken = 0;

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

		for (; at < sim->count && sim->bundles[at].end_ns < utc(window->end); at++) {
			/* What the governor closes is not seen at all. */
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
		for (; taken < sim->taken_count && sim->taken[taken].bin < utc(window->end) / VAPRO_BIN_NS; taken++)
			assert_int_equal(analysis__add_interference(analysis, &sim->taken[taken]), 0);
		facts.lost[VAPRO_LOST_GOVERNED] = facts.thinned;
		if (sim->s->thinned)
			facts.governed_ns = 0;
		else
			facts.thinned_ns = facts.thinned = facts.lost[VAPRO_LOST_GOVERNED] = 0;
		assert_int_equal(analysis__add_facts(analysis, &facts), 0);
		assert_int_equal(analysis__end_window(analysis, utc(window->begin), utc(window->end),
						      w == sim->window_count - 1, &results, &count),
				 0);
		assert_int_equal(count, 1);
		sim_read(sim->report, &results[0]);
	}
}

void sim_run(const struct sim_scenario *scenario, enum vapro_workload_source source, struct sim_report *report)
{
	struct sim sim = {.s = scenario, .report = report, .seed = scenario->seed * 7919 + 1, .source = source};
	struct analysis *analysis;
	struct vapro_config config;

	memset(report, 0, sizeof(*report));
	sim.ranks = calloc((size_t)scenario->ranks, sizeof(*sim.ranks));
	assert_non_null(sim.ranks);
	for (double begin = 0, end = fmin(15, scenario->seconds); begin < scenario->seconds;
	     begin = end, end = fmin(end + 10, scenario->seconds)) {
		sim.windows[sim.window_count].begin = begin * 1e9;
		sim.windows[sim.window_count++].end = end * 1e9;
	}
	simulate(&sim);
	qsort(sim.bundles, sim.count, sizeof(*sim.bundles), by_end);
	sim_config(&config);
	analysis = analysis__new(&config, source);
	assert_non_null(analysis);
	announce(&sim, analysis);
	feed(&sim, analysis);
	analysis__free(analysis);
	for (int i = 0; i < report->found_count; i++) {
		report->alarms += report->found[i].alarm;
		report->ever_alarms += report->found[i].ever_alarm;
	}
	for (int i = 0; i < sim.window_count; i++)
		free(sim.windows[i].open);
	free(sim.bundles);
	free(sim.taken);
	free(sim.ranks);
}
