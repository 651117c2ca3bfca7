/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The collector as bpf/emit.h and collect/ have it: single fragments, merged ones, windows. */
#include "simulation.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONG_NS 10e6	   /* longer fragments are emitted singly */
#define NEW_FRAGMENTS 5	   /* the first of a cell are emitted singly, too */
#define ABNORMAL_RATIO 1.2 /* fragments above this times the least of the cell are emitted singly, ... */
#define SINGLES_PER_BIN 20 /* ... up to this number */
#define MERGED_ABNORMAL (1ULL << 63)
#define PER_INSTRUCTION 2.0 /* instructions in a ns of a computation at its usual speed */

void *sim__room(struct sim *sim, void *items, size_t *capacity, size_t need, size_t size)
{
	size_t fresh = *capacity;
	void *larger;

	if (need <= fresh)
		return items;
	while (fresh < need)
		fresh = fresh ? 2 * fresh : 16;
	larger = realloc(items, fresh * size);
	if (!larger) {
		sim->status = sim->status ? sim->status : -ENOMEM;
		return NULL;
	}
	*capacity = fresh;
	return larger;
}

static void put(struct sim *sim, const struct stream_event *event)
{
	if (!sim->status)
		sim->status = stream__put(sim->sink, event);
}

/* Labels of a call whose function the program names. */
static void label(const struct job_step *step, struct vapro_state *state, char *own, char *common, size_t size)
{
	if (step->kind == STEP_WRITE) {
		snprintf(own, size, "fd_kind=file function=%s", step->function);
		common = NULL;
	} else {
		snprintf(own, size, "comm=%s function=%s", step->comm ? step->comm : "0", step->function);
		snprintf(common, size, "function=%s", step->function);
	}
	state->labels = own;
	state->common = common;
}

static void announce_states(struct sim *sim)
{
	static const enum vapro_class classes[] = {
	    [STEP_COMPUTE] = VAPRO_COMPUTATION,
	    [STEP_EXCHANGE] = VAPRO_COMMUNICATION,
	    [STEP_COLLECTIVE] = VAPRO_COMMUNICATION,
	    [STEP_WRITE] = VAPRO_IO,
	};
	static const char *const labels[][2] = {
	    [STEP_COMPUTE] = {"", NULL},
	    [STEP_EXCHANGE] = {"comm=0 function=MPI_Sendrecv", "function=MPI_Sendrecv"},
	    [STEP_COLLECTIVE] = {"comm=0 function=MPI_Allreduce", "function=MPI_Allreduce"},
	    [STEP_WRITE] = {"fd_kind=file function=write", NULL},
	};
	const struct job *job = sim->job;

	for (int i = 0; i < job->step_count; i++) {
		const struct job_step *step = &job->steps[i];
		struct stream_event event = {.type = STREAM_STATE};
		bool edge = step->kind == STEP_COMPUTE;
		char from[64], to[64], own[64], common[64];
		int next = edge ? (i + 1) % job->step_count : i;

		snprintf(from, sizeof(from), "app@0123456789ab+0x%x",
			 0x1000 + 16 * (step->after ? step->after - 1 : i));
		snprintf(to, sizeof(to), "app@0123456789ab+0x%x",
			 0x1000 + 16 * (step->before ? step->before - 1 : next));
		event.state = (struct vapro_state){
		    .id = (uint32_t)i,
		    .class = classes[job->steps[i].kind],
		    .from = edge ? from : NULL,
		    .to = to,
		    .labels = labels[job->steps[i].kind][0],
		    .common = labels[job->steps[i].kind][1],
		};
		if (step->function)
			label(step, &event.state, own, common, sizeof(own));
		put(sim, &event);
	}
}

/* Whether the collector sees a fragment of a rank. */
bool collect__watched(const struct sim *sim, int rank, double from, double to)
{
	const struct job_watch *watch = &sim->job->watch;

	if (!watch->first || rank < watch->first)
		return true;
	return from >= watch->from * S_NS && (watch->until <= 0 || to <= watch->until * S_NS);
}

static uint64_t seen_from(const struct sim *sim, int rank)
{
	bool late = sim->job->watch.first && rank >= sim->job->watch.first;

	return sim_mono(sim_clock(sim, rank, late ? sim->job->watch.from * S_NS : 0));
}

static void announce_rank(struct sim *sim, int rank)
{
	const struct job *job = sim->job;
	bool second = job->core_types && job__has(job, &job->second_core, rank);
	struct stream_event event = {.type = STREAM_THREAD};
	char host[32];

	snprintf(host, sizeof(host), "n%d", job__host(job, rank));
	event.thread = (struct vapro_thread){
	    .id = (uint32_t)rank,
	    .rank = rank,
	    .world_size = (uint32_t)job->ranks,
	    .pid = 10000 + (uint32_t)rank,
	    .tid = 10000 + (uint32_t)rank,
	    .job = "sim:1",
	    .host = host,
	};
	put(sim, &event);
	put(sim, &(struct stream_event){.type = STREAM_SEEN,
					.seen = {.thread = (uint32_t)rank, .from_ns = seen_from(sim, rank)}});
	put(sim, &(struct stream_event){
		     .type = STREAM_PLACE,
		     .place = {
			 .thread = (uint32_t)rank,
			 .cpu = job->cyclic ? rank / job->hosts
					    : rank - (job__host(job, rank) * job->ranks + job->hosts - 1) / job->hosts,
			 .socket = job__socket(job, rank) & 1,
			 .numa = job__socket(job, rank) & 1,
			 .cpu_model = "Synthetic CPU",
			 .core_type = !job->core_types ? NULL
				      : second	       ? "efficiency"
						       : "performance",
		     }});
}

static void announce_clock(struct sim *sim, int host)
{
	struct stream_event event = {.type = STREAM_HOST_CLOCK};
	char name[16];

	snprintf(name, sizeof(name), "n%d", host);
	event.host_clock = (struct vapro_host_clock){
	    .host = name, .synchronised = true, .error_ns = (uint64_t)(sim->job->clock_error_s * S_NS)};
	put(sim, &event);
}

void collect__announce(struct sim *sim)
{
	put(sim, &(struct stream_event){.type = STREAM_CLOCK, .clock = {JOB_MONO_NS, JOB_BEGIN_NS}});
	for (int host = 0; host < sim->job->hosts && sim->job->clock_error_s > 0; host++)
		announce_clock(sim, host);
	for (int rank = 0; rank < sim->job->ranks && collect__watched(sim, rank, 0, 0); rank++)
		announce_rank(sim, sim->announced++);
	announce_states(sim);
}

/* Log-linear, 8 cells per octave. */
static uint32_t cell_of(double number)
{
	uint64_t v = (uint64_t)fmax(0, number);
	uint32_t exponent;

	if (v < 8)
		return (uint32_t)v;
	exponent = 63 - (uint32_t)__builtin_clzll(v);
	return (exponent - 2) * 8 + (uint32_t)(v >> (exponent - 3) & 7);
}

/* How a CPU's counters split the time of a computation. */
void collect__factors(const struct sim *sim, const struct fragment *fragment, double *factor)
{
	static const double levels[] = {.2, .15, .15, .45, .05}; /* VAPRO_L1 .. VAPRO_STORE */
	double memory = sim->job->steps[fragment->step].memory;
	double on_cpu = fmax(0, fragment->end - fragment->start - fragment->off - factor[VAPRO_FREQUENCY]);
	double usual = fmax(0, on_cpu - fragment->waits), pure = usual * (1 - memory), shown = 0;

	factor[VAPRO_RETIRING] = 0.6 * pure;
	factor[VAPRO_FRONTEND] = 0.15 * pure;
	factor[VAPRO_BAD_SPECULATION] = 0.05 * pure;
	factor[VAPRO_CORE] = 0.2 * pure;
	factor[VAPRO_MEMORY] = usual * memory + fmin(fragment->waits, on_cpu);
	factor[VAPRO_BACKEND] = factor[VAPRO_CORE] + factor[VAPRO_MEMORY];
	for (int i = 0; i < 5; i++) {
		factor[VAPRO_L1 + i] = levels[i] * usual * memory + fragment->level[i];
		shown += fragment->level[i];
	}
	factor[VAPRO_DRAM] += fmax(0, fmin(fragment->waits, on_cpu) - shown);
}

static void make(const struct sim *sim, const struct fragment *fragment, double end, struct vapro_bundle *bundle)
{
	double part = fragment->end > fragment->start ? (end - fragment->start) / (fragment->end - fragment->start) : 1;
	const struct job_step *step = &sim->job->steps[fragment->step];
	bool computes = step->kind == STEP_COMPUTE, counts = sim->source == VAPRO_BY_INSTRUCTIONS;

	*bundle = (struct vapro_bundle){
	    .thread = (uint32_t)fragment->rank,
	    .state = (uint32_t)fragment->step,
	    .n = 1,
	    .start_ns = sim_mono(sim_clock(sim, fragment->rank, fragment->start)),
	    .end_ns = sim_mono(sim_clock(sim, fragment->rank, end)),
	    .first_call = sim->ranks[fragment->rank].calls,
	    .last_call = sim->ranks[fragment->rank].calls,
	};
	bundle->sum_ns = bundle->min_ns = bundle->max_ns = bundle->end_ns - bundle->start_ns;
	memcpy(bundle->factor, fragment->factor, sizeof(fragment->factor));
	if (computes && counts) {
		collect__factors(sim, fragment, bundle->factor);
		bundle->magnitude_min[VAPRO_INSTRUCTIONS] = floor(PER_INSTRUCTION * part * fragment->instructions);
	} else if (!computes) {
		bundle->magnitude_min[VAPRO_BYTES] = fragment->bytes > 0 ? fragment->bytes : step->bytes;
	}
	memcpy(bundle->magnitude_max, bundle->magnitude_min, sizeof(bundle->magnitude_max));
	for (int i = 0; part < 1 && i < VAPRO_FACTOR_COUNTS; i++)
		bundle->factor[i] *= part;
	bundle->factor[VAPRO_INVOLUNTARY_SWITCHES] = fragment->switches;
}

/* Hands a bundle over, when its window has come. */
void collect__bundle(struct sim *sim, const struct vapro_bundle *bundle)
{
	struct vapro_bundle *items;

	if (bundle->end_ns < sim_mono(sim->window_end)) {
		sim->totals->bundles++;
		put(sim, &(struct stream_event){.type = STREAM_BUNDLE, .bundle = *bundle});
		return;
	}
	items = sim__room(sim, sim->pending, &sim->pending_capacity, sim->pending_count + 1, sizeof(*items));
	if (!items)
		return;
	sim->pending = items;
	items[sim->pending_count++] = *bundle;
}

static int by_end(const void *a, const void *b)
{
	const struct held *left = a, *right = b;

	if (left->bundle.end_ns != right->bundle.end_ns)
		return left->bundle.end_ns < right->bundle.end_ns ? -1 : 1;
	return (left->bundle.first_call > right->bundle.first_call) -
	       (left->bundle.first_call < right->bundle.first_call);
}

/* A bin of a rank has closed. */
static void flush(struct sim *sim, struct rank *rank)
{
	if (rank->held_count > 1)
		qsort(rank->held, rank->held_count, sizeof(*rank->held), by_end);
	for (size_t i = 0; i < rank->held_count; i++)
		collect__bundle(sim, &rank->held[i].bundle);
	rank->held_count = 0;
	rank->singles = 0;
}

static struct known *known_of(struct rank *rank, uint64_t key)
{
	struct known *known;

	for (int i = 0; i < rank->known_count; i++) {
		if (rank->known[i].key == key)
			return &rank->known[i];
	}
	known = &rank->known[rank->known_count < KNOWN ? rank->known_count++ : (int)(key % KNOWN)];
	*known = (struct known){.key = key, .least = INFINITY};
	return known;
}

static void merge(struct vapro_bundle *into, const struct vapro_bundle *bundle)
{
	into->n++;
	into->end_ns = bundle->end_ns;
	into->sum_ns += bundle->sum_ns;
	into->min_ns = bundle->min_ns < into->min_ns ? bundle->min_ns : into->min_ns;
	into->max_ns = bundle->max_ns > into->max_ns ? bundle->max_ns : into->max_ns;
	into->last_call = bundle->last_call;
	for (int i = 0; i < VAPRO_FACTORS; i++)
		into->factor[i] += bundle->factor[i];
	for (int i = 0; i < VAPRO_MAGNITUDES; i++) {
		into->magnitude_min[i] = fmin(into->magnitude_min[i], bundle->magnitude_min[i]);
		into->magnitude_max[i] = fmax(into->magnitude_max[i], bundle->magnitude_max[i]);
	}
}

static void hold(struct sim *sim, struct rank *rank, const struct vapro_bundle *bundle, uint64_t key)
{
	struct held *items;

	for (size_t i = 0; key && i < rank->held_count; i++) {
		if (rank->held[i].key == key) {
			merge(&rank->held[i].bundle, bundle);
			return;
		}
	}
	items = sim__room(sim, rank->held, &rank->held_capacity, rank->held_count + 1, sizeof(*items));
	if (!items)
		return;
	rank->held = items;
	items[rank->held_count] = (struct held){.bundle = *bundle, .key = key};
	if (key & MERGED_ABNORMAL)
		items[rank->held_count].bundle.flags = VAPRO_BUNDLE_ABNORMAL;
	rank->held_count++;
}

static void span(struct sim *sim, const struct fragment *fragment)
{
	struct fragment *items =
	    sim__room(sim, sim->spanning, &sim->spanning_capacity, sim->spanning_count + 1, sizeof(*items));

	if (!items)
		return;
	sim->spanning = items;
	items[sim->spanning_count++] = *fragment;
}

/* A fragment has ended: it is emitted by itself or merged with others of its bin. */
void collect__fragment(struct sim *sim, struct fragment *fragment)
{
	struct rank *rank = &sim->ranks[fragment->rank];
	bool computes = sim->job->steps[fragment->step].kind == STEP_COMPUTE;
	bool counts = computes && sim->source == VAPRO_BY_INSTRUCTIONS, abnormal;
	double end = sim->job->seconds * S_NS, net = fragment->end - fragment->start - fragment->off, judged;
	struct vapro_bundle bundle;
	struct known *known;
	uint64_t key;

	if (fragment->start >= end)
		return;
	sim->totals->fragment_seconds += (fmin(fragment->end, end) - fragment->start) / S_NS;
	truth__count(sim, fragment);
	if (!collect__watched(sim, fragment->rank, fragment->start, fragment->end))
		return;
	while (fragment->rank >= sim->announced)
		announce_rank(sim, sim->announced++);
	if (sim_clock(sim, fragment->rank, fragment->end) > sim->window_end)
		span(sim, fragment);
	if (fragment->end >= end)
		return;
	sim->totals->fragments++;
	make(sim, fragment, fragment->end, &bundle);
	rank->calls++;
	if (bundle.end_ns / VAPRO_BIN_NS != rank->bin) {
		flush(sim, rank);
		rank->bin = bundle.end_ns / VAPRO_BIN_NS;
	}
	judged = computes ? net : (double)bundle.sum_ns;
	key = counts	 ? cell_of(bundle.magnitude_min[VAPRO_INSTRUCTIONS])
	      : computes ? 0
			 : cell_of(bundle.magnitude_min[VAPRO_BYTES]);
	key |= (uint64_t)(fragment->step + 1) << 32;
	known = known_of(rank, key);
	abnormal = known->seen >= NEW_FRAGMENTS && (double)bundle.sum_ns > ABNORMAL_RATIO * known->least;
	if (judged < known->least)
		known->least = judged;
	known->seen++;
	if (computes && !counts)
		key |= cell_of(net);
	if (abnormal)
		key |= MERGED_ABNORMAL;
	if ((double)bundle.sum_ns > LONG_NS || known->seen <= NEW_FRAGMENTS ||
	    (abnormal && rank->singles < SINGLES_PER_BIN)) {
		rank->singles += abnormal;
		key = 0;
	}
	hold(sim, rank, &bundle, key);
}

static void put_open(struct sim *sim)
{
	size_t retained = 0;

	for (size_t i = 0; i < sim->spanning_count; i++) {
		const struct fragment *at = &sim->spanning[i];
		struct stream_event event = {.type = STREAM_BUNDLE};
		/* the end of the window by the clock of the rank's host */
		double window_end = 2 * sim->window_end - sim_clock(sim, at->rank, sim->window_end);

		if (at->start < window_end && at->end > window_end) {
			make(sim, at, window_end, &event.bundle);
			event.bundle.flags = VAPRO_BUNDLE_OPEN;
			put(sim, &event);
			sim->totals->open++;
		}
		if (at->end > window_end)
			sim->spanning[retained++] = *at;
	}
	sim->spanning_count = retained;
}

static void put_interference(struct sim *sim)
{
	uint64_t end = sim_utc(sim->window_end) / VAPRO_BIN_NS;
	size_t retained = 0;

	for (int rank = 0; rank < sim->job->ranks; rank++)
		sim->ranks[rank].interference = 0;
	for (size_t i = 0; i < sim->interference_count; i++) {
		if (sim->interference[i].bin >= end) {
			sim->interference[retained] = sim->interference[i];
			sim->ranks[sim->interference[retained].thread].interference = retained + 1;
			retained++;
			continue;
		}
		if ((int)sim->interference[i].thread < sim->announced)
			put(sim,
			    &(struct stream_event){.type = STREAM_INTERFERENCE, .interference = sim->interference[i]});
	}
	sim->interference_count = retained;
}

static void close_window(struct sim *sim)
{
	bool last = sim->window_end >= sim->job->seconds * S_NS;
	size_t pending = sim->pending_count;

	for (int rank = 0; rank < sim->job->ranks; rank++) {
		if ((sim->ranks[rank].bin + 1) * VAPRO_BIN_NS <= sim_mono(sim->window_end) || last)
			flush(sim, &sim->ranks[rank]);
	}
	put_open(sim);
	put_interference(sim);
	for (int rank = 0; rank < sim->announced; rank++) {
		bool left = !collect__watched(sim, rank, sim->window_end, sim->window_end);
		double until = left ? sim->job->watch.until * S_NS : sim->window_end;

		if (last || left)
			put(sim, &(struct stream_event){.type = STREAM_SEEN,
							.seen = {(uint32_t)rank, seen_from(sim, rank),
								 sim_mono(sim_clock(sim, rank, until))}});
		put(sim, &(struct stream_event){.type = STREAM_FACTS,
						.facts = {.pid = 10000 + (uint32_t)rank,
							  .job = "sim:1",
							  .wall_ns = (uint64_t)(sim->window_end - sim->window_begin)}});
	}
	put(sim,
	    &(struct stream_event){
		.type = STREAM_WINDOW,
		.window = {.begin_ns = sim_utc(sim->window_begin), .end_ns = sim_utc(sim->window_end), .last = last}});
	sim->window_begin = sim->window_end;
	sim->window_end = fmin(sim->window_end + floor(sim->window_s * S_NS * 2 / 3), sim->job->seconds * S_NS);
	pending = sim->pending_count;
	sim->pending_count = 0;
	/* fragments that are still too late move to the front, never past the read position */
	for (size_t i = 0; i < pending; i++) {
		struct vapro_bundle bundle = sim->pending[i];

		collect__bundle(sim, &bundle);
	}
}

void collect__close_windows(struct sim *sim, double t)
{
	/* the host that is behind reaches the end of the window later */
	double late = fmax(0, -sim->job->skew_s) * S_NS;

	while (!sim->status && sim->window_begin < sim->job->seconds * S_NS && t >= sim->window_end + late)
		close_window(sim);
}

void collect__end(struct sim *sim)
{
	collect__close_windows(sim, INFINITY);
	put(sim, &(struct stream_event){.type = STREAM_END});
}
