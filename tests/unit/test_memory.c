/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The analysis in bounded memory: flat however long a run lasts, shedding detail under a cap with every
 * second accounted for, and living on where an allocation fails. The linker wraps the allocator, which
 * counts, and fails on request.
 */
#include <errno.h>
#include <malloc.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "detect/heatmap.h"
#include "model/clusters.h"
#include "base/pool.h"
#include "model/series.h"
#include "sim.h"

#define RANKS 4
#define STATES 4 /* two computations, two calls */
#define BIN VAPRO_BIN_NS
#define S 1000000000ULL
#define BEGIN SIM_BEGIN_NS

static size_t live_bytes, allocations, fail_at; /* fail_at: number of the allocation that fails; 0 = none */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__real_aligned_alloc(size_t border, size_t size);
void __real_free(void *memory);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void *__wrap_aligned_alloc(size_t border, size_t size);
char *__wrap_strdup(const char *text);
void __wrap_free(void *memory);

static bool fails(void)
{
	return ++allocations == fail_at;
}

static void *counted(void *memory)
{
	live_bytes += memory ? malloc_usable_size(memory) : 0;
	return memory;
}

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : counted(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size)
{
	return fails() ? NULL : counted(__real_calloc(count, size));
}

void *__wrap_realloc(void *memory, size_t size)
{
	size_t before = memory ? malloc_usable_size(memory) : 0;
	void *grown;

	if (fails())
		return NULL;
	grown = __real_realloc(memory, size);
	if (grown)
		live_bytes -= before;
	return counted(grown);
}

void *__wrap_aligned_alloc(size_t border, size_t size)
{
	return fails() ? NULL : counted(__real_aligned_alloc(border, size));
}

char *__wrap_strdup(const char *text)
{
	char *copy = __wrap_malloc(strlen(text) + 1);

	return copy ? strcpy(copy, text) : NULL;
}

void __wrap_free(void *memory)
{
	live_bytes -= memory ? malloc_usable_size(memory) : 0;
	__real_free(memory);
}

struct flow {
	struct analysis *analysis;
	struct vapro_config config;
	uint64_t bin, begin_ns;
	uint32_t per_state;    /* single fragments per state and bin */
	uint32_t fresh_states; /* further states per bin, met once each */
	uint32_t states;       /* states so far */
	double reported_ns, wall_ns;
	double covered, uncovered[VAPRO_UNCOVERED_REASONS]; /* rank-seconds in the last window */
	struct vapro_shed shed;
};

static int add_state(struct flow *flow, bool call)
{
	char from[64], to[64];
	struct vapro_state state = {.id = flow->states, .from = call ? NULL : from, .to = to, .labels = ""};

	snprintf(from, sizeof(from), "a@1+0x%x", flow->states);
	snprintf(to, sizeof(to), "a@1+0x%x", flow->states + 1);
	state.class = call ? VAPRO_COMMUNICATION : VAPRO_COMPUTATION;
	flow->states++;
	return analysis__add_state(flow->analysis, &state);
}

static int flow__begin(struct flow *flow, enum vapro_workload_source source)
{
	int error = 0;

	flow->bin = BEGIN / BIN;
	flow->begin_ns = BEGIN;
	flow->states = 0;
	flow->analysis = analysis__new(&flow->config, source);
	if (!flow->analysis)
		return -ENOMEM;
	for (uint32_t rank = 0; !error && rank < RANKS; rank++) {
		struct vapro_thread thread = {.id = rank,
					      .rank = (int32_t)rank,
					      .world_size = RANKS,
					      .pid = 10 + rank,
					      .tid = 10 + rank,
					      .job = "j",
					      .host = "h"};

		error = analysis__add_thread(flow->analysis, &thread);
		if (!error)
			error = analysis__thread_seen(flow->analysis, rank, BEGIN, 0);
	}
	for (uint32_t i = 0; !error && i < STATES; i++)
		error = add_state(flow, i & 1);
	return error;
}

static int add_fragment(struct flow *flow, uint32_t rank, uint32_t state, uint64_t start_ns, uint64_t ns)
{
	struct vapro_bundle b = {.thread = rank,
				 .state = state,
				 .n = 1,
				 .start_ns = start_ns,
				 .end_ns = start_ns + ns,
				 .sum_ns = ns,
				 .min_ns = ns,
				 .max_ns = ns};

	b.magnitude_min[VAPRO_INSTRUCTIONS] = b.magnitude_max[VAPRO_INSTRUCTIONS] = (double)(2 * ns);
	if (start_ns / 1000 % 7 == 0)
		b.factor[VAPRO_PREEMPTED] = (double)ns / 10;
	flow->reported_ns += (double)ns;
	return analysis__add_bundle(flow->analysis, &b);
}

/* Adds a bin of all ranks: each is busy all the time. Failures are skipped, as the pipeline's sources do. */
static int add_bin(struct flow *flow)
{
	uint64_t each = BIN / (STATES * flow->per_state + flow->fresh_states);
	uint32_t known = flow->states;
	int error = 0, status;

	for (uint32_t i = 0; i < flow->fresh_states; i++) {
		status = add_state(flow, false);
		if (status) { /* states are dense: the next attempt is for the same number */
			flow->states--;
			error = status;
		}
	}
	for (uint32_t rank = 0; rank < RANKS; rank++) {
		uint64_t at = flow->bin * BIN;

		for (uint32_t i = 0; i < STATES * flow->per_state; i++, at += each) {
			status = add_fragment(flow, rank, i % STATES, at, each - i % 5 * (each / 200));
			error = status ? status : error;
		}
		for (uint32_t i = known; i < flow->states; i++, at += each) {
			status = add_fragment(flow, rank, i, at, each);
			error = status ? status : error;
		}
	}
	flow->bin++;
	return error;
}

static int end_window(struct flow *flow, bool last)
{
	const struct job_result *results;
	uint64_t end_ns = flow->bin * BIN;
	uint32_t count;
	int error = analysis__end_window(flow->analysis, flow->begin_ns, end_ns, last, &results, &count);

	flow->wall_ns = RANKS * (double)(end_ns - flow->begin_ns);
	flow->begin_ns = end_ns;
	flow->covered = 0;
	memset(flow->uncovered, 0, sizeof(flow->uncovered));
	for (uint32_t i = 0; !error && i < count; i++) {
		flow->covered += results[i].coverage_total * flow->wall_ns / 1e9;
		for (uint32_t k = 0; k < results[i].uncovered_count; k++)
			flow->uncovered[results[i].uncovered[k].reason] +=
			    results[i].uncovered[k].share * flow->wall_ns / 1e9;
	}
	analysis__shed(flow->analysis, &flow->shed);
	return error;
}

static int window(struct flow *flow)
{
	int error = 0;

	for (uint32_t i = 0; i < 50; i++) {
		int status = add_bin(flow);

		error = status ? status : error;
	}
	flow->reported_ns = 0;
	return error ? error : end_window(flow, false);
}

static void begin(struct flow *flow, enum vapro_workload_source source, uint64_t cap, uint32_t per_state)
{
	*flow = (struct flow){.per_state = per_state};
	sim_config(&flow->config);
	flow->config.memory_cap = cap;
	assert_int_equal(flow__begin(flow, source), 0);
}

/* The analysis holds the same bytes after 100 windows as after 10. */
static void test_flat(void **state)
{
	for (int source = VAPRO_BY_ARGUMENTS; source <= VAPRO_BY_INSTRUCTIONS; source++) {
		size_t before = live_bytes, early = 0;
		struct flow flow;
		uint64_t held = 0;

		(void)state;
		begin(&flow, (enum vapro_workload_source)source, 0, 2);
		for (int i = 1; i <= 100; i++) {
			assert_int_equal(window(&flow), 0);
			assert_int_equal(flow.shed.merged + flow.shed.bins + flow.shed.coarser + flow.shed.bundles, 0);
			if (i != 10)
				continue;
			early = live_bytes;
			held = flow.shed.bytes;
		}
		assert_true(live_bytes <= early + early / 50);
		assert_true(flow.shed.bytes <= held + held / 50);
		/* the reported bytes are the held bytes, but for small objects */
		assert_true((double)(live_bytes - before) > 0.6 * (double)flow.shed.bytes);
		assert_true((double)(live_bytes - before) < 1.1 * (double)flow.shed.bytes);
		analysis__free(flow.analysis);
		assert_int_equal(live_bytes, before);
	}
}

#define JOBS 20	       /* short ones in a window */
#define THREADS_EACH 3 /* of a short job */

/* Jobs of a moment in the present window, each with threads, a place and a state of its own. The states of the former
 * ones are gone. */
static void add_short_jobs(struct flow *flow, uint32_t *threads)
{
	for (uint32_t i = 0; i < JOBS; i++) {
		char name[32];
		uint32_t state = flow->states;

		if (state >= STATES + JOBS)
			assert_int_equal(analysis__state_gone(flow->analysis, state - JOBS), 0);
		assert_int_equal(add_state(flow, false), 0);
		snprintf(name, sizeof(name), "none:pid-%u", *threads);
		for (uint32_t k = 0; k < THREADS_EACH; k++) {
			struct vapro_thread thread = {.id = *threads,
						      .rank = -1,
						      .thread = (int32_t)k,
						      .pid = 1000 + *threads - k,
						      .tid = 1000 + *threads,
						      .job = name,
						      .host = "h"};
			struct vapro_place place = {.thread = *threads, .cpu = 1, .numa = -1, .cgroup = name};
			uint64_t at = flow->begin_ns + i * BIN;

			assert_int_equal(analysis__add_thread(flow->analysis, &thread), 0);
			assert_int_equal(analysis__thread_seen(flow->analysis, *threads, at, 0), 0);
			assert_int_equal(analysis__place(flow->analysis, &place), 0);
			assert_int_equal(add_fragment(flow, *threads, state, at, BIN / 2), 0);
			assert_int_equal(analysis__thread_seen(flow->analysis, *threads, 0, at + BIN), 0);
			++*threads;
		}
	}
}

/* Programs that come and go take no memory that stays: as much is held after 5,000 of them as after 1,000. */
static void test_short_jobs(void **state)
{
	size_t before = live_bytes, early = 0;
	uint32_t threads = RANKS;
	struct flow flow;
	uint64_t held = 0;

	(void)state;
	begin(&flow, VAPRO_BY_ARGUMENTS, 0, 1);
	for (uint32_t jobs = JOBS; jobs <= 5000; jobs += JOBS) {
		add_short_jobs(&flow, &threads);
		assert_int_equal(window(&flow), 0);
		if (jobs != 1000)
			continue;
		early = live_bytes;
		held = flow.shed.bytes;
	}
	assert_true(live_bytes <= early + 65536);
	assert_true(flow.shed.bytes <= held + 65536);
	/* the first thread of a job that is over is not known any more, one that lives is */
	assert_int_equal(add_fragment(&flow, RANKS, 0, flow.begin_ns, BIN), -EINVAL);
	assert_int_equal(add_fragment(&flow, 0, 0, flow.begin_ns, BIN), 0);
	analysis__free(flow.analysis);
	assert_int_equal(live_bytes, before);
}

/* Adds a job of a user, with one process. */
static void add_job_of(struct flow *flow, uint32_t thread, uint32_t user)
{
	char name[32];
	struct vapro_thread about = {
	    .id = thread, .rank = 0, .pid = 500 + thread, .tid = 500 + thread, .job = name, .host = "h", .user = user};

	snprintf(name, sizeof(name), "job %u", thread);
	assert_int_equal(analysis__add_thread(flow->analysis, &about), 0);
	assert_int_equal(analysis__thread_seen(flow->analysis, thread, BEGIN, 0), 0);
}

/* A user with ever new states gives way: the histories of another, who begins later, all have room. */
static void test_users_share(void **state)
{
	uint64_t shed[2] = {0};
	struct flow flow;

	(void)state;
	begin(&flow, VAPRO_BY_ARGUMENTS, 8000000, 1);
	add_job_of(&flow, RANKS, 1);
	add_job_of(&flow, RANKS + 1, 2);
	for (uint32_t i = 0; i < 12; i++) {
		uint64_t end_ns = flow.begin_ns + 50 * BIN, at = flow.begin_ns;
		const struct job_result *results;
		uint32_t count, many = flow.states, few;

		for (uint32_t k = 0; k < 2000; k++) {
			assert_int_equal(add_state(&flow, false), 0);
			assert_int_equal(add_fragment(&flow, RANKS, many + k, at + k * (BIN / 50), BIN / 100), 0);
		}
		few = flow.states;
		for (uint32_t k = 0; i >= 6 && k < 20; k++) {
			assert_int_equal(add_state(&flow, false), 0);
			assert_int_equal(add_fragment(&flow, RANKS + 1, few + k, at + k * BIN, BIN / 2), 0);
		}
		for (uint32_t k = 0; k < 50; k++, flow.bin++)
			assert_int_equal(add_fragment(&flow, 0, 0, flow.bin * BIN, BIN / 2), 0);
		assert_int_equal(analysis__end_window(flow.analysis, flow.begin_ns, end_ns, false, &results, &count),
				 0);
		flow.begin_ns = end_ns;
		for (uint32_t k = 0; k < count; k++)
			shed[results[k].user != 1] += results[k].shed;
	}
	assert_true(shed[0] > 0);
	assert_int_equal(shed[1], 0);
	analysis__free(flow.analysis);
}

/* Bytes held elsewhere are part of the cap, too: less is left for bundles. */
static void test_held_elsewhere(void **state)
{
	struct flow flow;
	uint64_t held;

	(void)state;
	begin(&flow, VAPRO_BY_ARGUMENTS, 8000000, 2);
	assert_int_equal(window(&flow), 0);
	assert_int_equal(window(&flow), 0);
	held = flow.shed.bytes;
	assert_int_equal(flow.shed.merged + flow.shed.bundles, 0);
	analysis__held_elsewhere(flow.analysis, 7900000);
	for (int i = 0; i < 3; i++)
		assert_int_equal(window(&flow), 0);
	assert_true(flow.shed.bytes >= 7900000);
	assert_true(flow.shed.merged + flow.shed.bundles > 0);
	analysis__held_elsewhere(flow.analysis, 0);
	assert_int_equal(window(&flow), 0);
	assert_int_equal(window(&flow), 0);
	assert_true(flow.shed.bytes < 2 * held);
	analysis__free(flow.analysis);
}

/* A cap for all but the single fragments: those merge, and every second is still covered. */
static void test_merging(void **state)
{
	struct flow flow, free_flow;

	(void)state;
	begin(&free_flow, VAPRO_BY_ARGUMENTS, 0, 20);
	begin(&flow, VAPRO_BY_ARGUMENTS, 1200000, 20);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(window(&free_flow), 0);
		assert_int_equal(window(&flow), 0);
		assert_true(flow.shed.bytes <= flow.config.memory_cap);
	}
	assert_true(free_flow.shed.bytes > 2 * flow.config.memory_cap);
	assert_true(flow.shed.merged > 0);
	assert_int_equal(flow.shed.bundles, 0);
	assert_true(flow.uncovered[VAPRO_SHED] <= 0);
	assert_true(fabs(flow.covered - free_flow.covered) < 0.001 * free_flow.covered);
	assert_true(free_flow.covered > 0.9 * RANKS * 10);
	analysis__free(flow.analysis);
	analysis__free(free_flow.analysis);
}

/* Caps too small for any data: the analysis goes on, and reports the reasons for uncovered time. */
static void test_tiny_caps(void **state)
{
	static const uint64_t caps[] = {1, 10000, 100000, 300000};

	(void)state;
	for (size_t i = 0; i < sizeof(caps) / sizeof(*caps); i++) {
		struct flow flow;
		double sum = 0;

		begin(&flow, VAPRO_BY_INSTRUCTIONS, caps[i], 5);
		for (int k = 0; k < 4; k++)
			assert_int_equal(window(&flow), 0);
		for (int reason = 0; reason < VAPRO_UNCOVERED_REASONS; reason++)
			sum += flow.uncovered[reason];
		assert_true(flow.shed.bundles > 0);
		assert_int_equal(flow.shed.bundles, flow.shed.fragments);
		/* only negligible time is missing */
		assert_true(sum + flow.covered > 0.97 * RANKS * 10);
		assert_true(flow.uncovered[VAPRO_SHED] > 0);
		assert_true(fabs(flow.uncovered[VAPRO_SHED] - flow.shed.seconds) < 0.1 * RANKS * 10);
		analysis__free(flow.analysis);
	}
}

/* Endless new states do not displace known states. */
static void test_states_without_end(void **state)
{
	struct flow flow;
	size_t held;

	(void)state;
	begin(&flow, VAPRO_BY_ARGUMENTS, 4000000, 2);
	assert_int_equal(window(&flow), 0);
	flow.fresh_states = 4;
	for (int i = 0; i < 6; i++)
		assert_int_equal(window(&flow), 0);
	assert_true(flow.shed.bundles > 0);
	assert_true(flow.shed.bundles <= 50 * RANKS * 4);
	assert_true(flow.covered > 0.9 * 8 / 12 * RANKS * 10);
	held = flow.shed.bytes;
	for (int i = 0; i < 5; i++)
		assert_int_equal(window(&flow), 0);
	/* the numbers of states alone grow */
	assert_true(flow.shed.bytes < held + 5 * 50 * 4 * 1000);
	analysis__free(flow.analysis);
}

/* One allocation fails. Returns whether the flow could begin at all; then it ran three windows, and three more. */
static bool live_through(struct flow *flow, uint64_t cap, size_t at)
{
	int status;

	*flow = (struct flow){.per_state = 3};
	sim_config(&flow->config);
	flow->config.memory_cap = cap;
	allocations = 0;
	fail_at = at;
	status = flow__begin(flow, VAPRO_BY_INSTRUCTIONS);
	flow->fresh_states = 1;
	for (int i = 0; !status && i < 3; i++) {
		int error = window(flow);

		assert_true(!error || error == -ENOMEM);
	}
	fail_at = 0;
	assert_true(!status || status == -ENOMEM);
	flow->fresh_states = 0;
	for (int i = 0; !status && i < 3; i++)
		assert_int_equal(window(flow), 0);
	return !status;
}

/* Any failing allocation gives -ENOMEM at most, and the next windows are as good as before. */
static void test_failing_allocations(void **state)
{
	static const uint64_t caps[] = {16000000, 300000};

	(void)state;
	for (size_t i = 0; i < sizeof(caps) / sizeof(*caps); i++) {
		struct flow flow;
		size_t total, before;

		assert_true(live_through(&flow, caps[i], 0));
		total = allocations;
		analysis__free(flow.analysis);
		for (size_t at = 1; at <= total; at += at < 300 ? 1 : total / 300 + 1) {
			before = live_bytes;
			if (live_through(&flow, caps[i], at))
				assert_true(i > 0 || flow.covered > 0.9 * RANKS * 10);
			analysis__free(flow.analysis);
			assert_int_equal(live_bytes, before);
		}
	}
}

static void test_pool(void **state)
{
	struct pool pool = {.element_bytes = 12};
	unsigned char *elements[600];

	(void)state;
	for (int i = 0; i < 600; i++) {
		elements[i] = pool__take(&pool);
		assert_non_null(elements[i]);
		memset(elements[i], i, 12);
	}
	assert_true(pool.bytes >= 600 * 12);
	for (int i = 0; i < 600; i++) {
		for (int k = 0; k < 12; k++)
			assert_int_equal(elements[i][k], i % 256);
	}
	for (int i = 0; i < 600; i += 2)
		pool__give(&pool, elements[i]);
	assert_ptr_equal(pool__take(&pool), elements[598]);
	pool__give(&pool, elements[598]);
	for (int i = 1; i < 600; i += 2)
		pool__give(&pool, elements[i]);
	assert_int_equal(pool.bytes, 0);
	assert_int_equal(pool.used, 0);
}

static void test_cut_history(void **state)
{
	struct heatmap map = {0};
	size_t before;

	(void)state;
	assert_int_equal(heatmap__rows(&map, 3, 75), 0);
	heatmap__advance(&map, 1000, 1400);
	for (uint64_t bin = 1000; bin < 1400; bin++) {
		for (uint32_t row = 0; row < 3; row++)
			assert_int_equal(heatmap__add_wait(&map, HEATMAP_LATE, row, bin, (float)(bin * 10 + row)), 0);
		heatmap__bin(&map, bin)->emitted[0] = (uint32_t)bin;
	}
	before = heatmap__bytes(&map);
	assert_int_equal(heatmap__cut(&map), 400 - 75 - HEATMAP_LEAST);
	assert_int_equal(heatmap__cut(&map), 0);
	assert_true(heatmap__bytes(&map) < before / 3);
	assert_int_equal(map.end, 1400);
	assert_int_equal(map.end - map.begin, 75 + HEATMAP_LEAST);
	for (int further = 0; further < 300; further += 50) {
		for (uint64_t bin = map.begin; bin < 1400; bin++) {
			for (uint32_t row = 0; row < 3; row++)
				assert_true(heatmap__late(&map, row, bin) == (double)(bin * 10 + row));
			assert_int_equal(heatmap__bin(&map, bin)->emitted[0], bin);
		}
		assert_int_equal(heatmap__rows(&map, 3, 75), 0);
		heatmap__advance(&map, 1000, 1450 + (uint64_t)further);
		assert_int_equal(map.end - map.begin, 75 + HEATMAP_LEAST);
	}
	/* a longer view still gets its room */
	assert_int_equal(heatmap__rows(&map, 4, 400), 0);
	assert_int_equal(map.span, 400 + HEATMAP_LEAST);
	heatmap__free(&map);
}

/* Coarsening later has the same result as coarsening from the start. */
static void test_coarsen(void **state)
{
	struct vapro_config config, coarse;
	struct clusters *late, *early;

	(void)state;
	sim_config(&config);
	coarse = config;
	config.cluster_cells = 4096;
	late = clusters__new(&config);
	for (int i = 0; i < 600; i++) {
		double vector[VAPRO_MAGNITUDES] = {1e6 * pow(1.01, i)};

		assert_int_equal(clusters__add(late, vector, vector, 1, 10, 10, NULL), 0);
	}
	coarse.cluster_cells = clusters__cells(late)->count / 2;
	early = clusters__new(&coarse);
	for (int i = 0; i < 600; i++) {
		double vector[VAPRO_MAGNITUDES] = {1e6 * pow(1.01, i)};

		assert_int_equal(clusters__add(early, vector, vector, 1, 10, 10, NULL), 0);
	}
	assert_true(clusters__coarsen(late, 16));
	assert_int_equal(clusters__form(late), 0);
	assert_int_equal(clusters__form(early), 0);
	assert_int_equal(clusters__cells(late)->count, clusters__cells(early)->count);
	assert_int_equal(clusters__certificate(late)->widened, clusters__certificate(early)->widened);
	while (clusters__coarsen(late, 16))
		;
	assert_true(clusters__cells(late)->count <= 16);
	clusters__free(late);
	clusters__free(early);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_pool),
	    cmocka_unit_test(test_cut_history),
	    cmocka_unit_test(test_coarsen),
	    cmocka_unit_test(test_flat),
	    cmocka_unit_test(test_short_jobs),
	    cmocka_unit_test(test_users_share),
	    cmocka_unit_test(test_held_elsewhere),
	    cmocka_unit_test(test_merging),
	    cmocka_unit_test(test_tiny_caps),
	    cmocka_unit_test(test_states_without_end),
	    cmocka_unit_test(test_failing_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
