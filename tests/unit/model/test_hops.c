/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Decisions on hops of call-sites, their depth and return, for simulated programs that wrap their calls. */
#include "model/hops.h"
#include "sim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PHASES_MOST 128
#define DEPTH_MOST 8
#define TEXT_MAX 1024
#define SECOND 1000000000ULL
#define STATES_MOST 4096

/* A call and the computation before it. */
struct phase {
	const char *chain[DEPTH_MOST]; /* return addresses, innermost first */
	double ns, scatter;	       /* computation: at least ns, at most ns * (1 + scatter) */
	double preempted_ns;	       /* on top */
	enum vapro_class class;
};

static struct vapro_config config;
static struct stg *stg;
static struct series_book book;
static struct hops *hops;
static struct phase phases[PHASES_MOST];
static size_t phase_count;
static uint32_t ranks;
static char *texts[STATES_MOST];
static const char *up[PHASES_MOST], *refused[PHASES_MOST];
static size_t up_count, refused_count;
static uint64_t now_ns;
static uint32_t chance;
static double noise;	 /* share of the computations that another task interrupts */
static char story[8192]; /* decisions, one a line */

static int setup(void **state)
{
	(void)state;
	sim_config(&config);
	config.hop_frames = 4;
	stg = stg__new();
	hops = hops__new();
	phase_count = up_count = refused_count = 0;
	now_ns = SECOND;
	chance = 1;
	noise = 0;
	story[0] = '\0';
	ranks = 2;
	for (uint32_t i = 0; i < 2; i++) {
		struct vapro_thread thread = {
		    .id = i, .rank = (int32_t)i, .pid = i + 1, .job = "j", .host = "h", .world_size = 2};

		assert_int_equal(stg__add_thread(stg, &thread), 0);
	}
	return series__init(&book, &config, VAPRO_BY_ARGUMENTS, stg);
}

static int teardown(void **state)
{
	(void)state;
	for (size_t i = 0; i < stg__states(stg); i++)
		free(texts[i]);
	hops__free(hops);
	series__free(&book);
	stg__free(stg);
	return 0;
}

static double random_unit(void)
{
	chance = chance * 1664525u + 1013904223u;
	return (chance >> 8) / 16777216.0;
}

static bool among(const char *const *names, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

/* Writes the present name of a call's site. */
static void name(const struct phase *phase, char *text)
{
	strcpy(text, phase->chain[0]);
	for (int i = 0; i + 1 < DEPTH_MOST && phase->chain[i + 1] && among(up, up_count, phase->chain[i]); i++) {
		strcat(text, SITE_CALLED_BY);
		strcat(text, phase->chain[i + 1]);
	}
}

static uint32_t state_of(const char *from, const char *to, enum vapro_class class)
{
	struct vapro_state about = {.class = class, .from = from, .to = to, .labels = "", .common = ""};
	char text[2 * TEXT_MAX + 16];
	size_t count = stg__states(stg);

	snprintf(text, sizeof(text), "%d %s %s", (int)class, from, to);
	for (size_t i = 0; i < count; i++)
		if (!strcmp(texts[i], text))
			return (uint32_t)i;
	assert_true(count < STATES_MOST);
	about.id = (uint32_t)count;
	assert_int_equal(stg__add_state(stg, &about), 0);
	texts[count] = strdup(text);
	return about.id;
}

static void add(uint32_t rank, uint32_t state, double ns, double preempted_ns)
{
	struct vapro_bundle bundle = {.thread = rank, .state = state, .n = 1, .start_ns = now_ns};
	double factor[VAPRO_FACTORS] = {[VAPRO_PREEMPTED] = preempted_ns};
	struct bundle_rec rec;

	bundle.sum_ns = bundle.min_ns = bundle.max_ns = (uint64_t)(ns + preempted_ns);
	bundle.end_ns = bundle.start_ns + bundle.sum_ns;
	assert_int_equal(series__add(&book, (struct series_of){bundle.thread, bundle.state}, &bundle, factor, &rec), 0);
}

/* Runs the program's phases one by one, `rounds` times on each rank. */
static void run(int rounds)
{
	char from[TEXT_MAX], to[TEXT_MAX];

	for (int round = 0; round < rounds; round++)
		for (uint32_t rank = 0; rank < ranks; rank++)
			for (size_t i = 0; i < phase_count; i++) {
				const struct phase *phase = &phases[i];
				bool hit = noise > 0 && random_unit() < noise;

				name(&phases[(i + phase_count - 1) % phase_count], from);
				name(phase, to);
				add(rank, state_of(from, to, phase->class),
				    phase->ns * (1 + phase->scatter * random_unit()), hit ? 4e6 : phase->preempted_ns);
			}
}

/* Carries out all due decisions, as the daemon does each second. */
static void decide(void)
{
	struct vapro_hop_event event;

	for (int i = 0; i < 64; i++) {
		size_t length = strlen(story);

		assert_int_equal(hops__next(hops, &book, now_ns, &event), 0);
		if (event.hop == VAPRO_HOP_NONE)
			return;
		if (event.hop == VAPRO_HOP_UP && among(refused, refused_count, event.site))
			event.hop = VAPRO_HOP_REFUSED;
		if (event.hop == VAPRO_HOP_UP)
			up[up_count++] = strdup(event.site);
		for (size_t k = 0; event.hop == VAPRO_HOP_BACK && k < up_count; k++)
			if (!strcmp(up[k], event.site)) {
				free((char *)up[k]);
				up[k] = up[--up_count];
			}
		snprintf(story + length, sizeof(story) - length, "%s %s\n", vapro_hop_name[event.hop], event.site);
		assert_int_equal(hops__note(hops, &event, now_ns), 0);
	}
	fail_msg("decisions do not end: %s", story);
}

static void live(int seconds, int rounds_each)
{
	for (int i = 0; i < seconds; i++) {
		run(rounds_each);
		now_ns += SECOND;
		decide();
	}
	for (size_t i = 0; i < up_count; i++)
		assert_non_null(up[i]);
}

static void forget_up(void)
{
	while (up_count)
		free((char *)up[--up_count]);
}

static void add_phase(struct phase phase)
{
	assert_true(phase_count < PHASES_MOST);
	phases[phase_count++] = phase;
}

static const char *const callers[] = {"p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8"};
static const double times[] = {10e6, 12e6, 14.5e6, 17e6, 20e6, 24e6, 29e6, 35e6};

static void test_wrapper(void **state)
{
	(void)state;
	for (size_t i = 0; i < 8; i++)
		add_phase((struct phase){.chain = {"w", callers[i]}, .ns = times[i], .scatter = 0.01});
	live(2, 20);
	assert_string_equal(story, "up w\n");
	live(10, 20);
	assert_string_equal(story, "up w\nstays w\n");
	forget_up();
}

/* Groups that are narrow by themselves are several workloads all the same. */
static void test_few_callers(void **state)
{
	(void)state;
	for (size_t i = 0; i < 3; i++)
		add_phase((struct phase){.chain = {"w", callers[3 * i]}, .ns = times[3 * i], .scatter = 0.01});
	live(20, 20);
	assert_string_equal(story, "up w\nstays w\n");
	forget_up();
}

/* Most time is steady, but in one state a slow fragment of a workload would pass for one of the other. */
static void test_groups_in_one_state(void **state)
{
	(void)state;
	add_phase((struct phase){.chain = {"w", "p1"}, .ns = 9e6, .scatter = 0.01});
	add_phase((struct phase){.chain = {"w", "p1"}, .ns = 9e6, .scatter = 0.01});
	add_phase((struct phase){.chain = {"w", "p2"}, .ns = 17e6, .scatter = 0.01});
	add_phase((struct phase){.chain = {"v", "main"}, .ns = 5e6, .scatter = 0.01});
	add_phase((struct phase){.chain = {"w", "p3"}, .ns = 36e6, .scatter = 0.01});
	live(20, 20);
	assert_string_equal(story, "up w\nstays w\n");
	forget_up();
}

/*
 * Pipelined sweeps with a reduction in a wrapper: two callers whose work is alike are a fifth of the computations, and
 * a long one is a third of the time. Each is a workload, and most others are in the state as well.
 */
static void test_long_work_among_short(void **state)
{
	static const double ns[] = {6e6, 0.41e6, 0.54e6, 0.73e6, 0.98e6, 1.31e6, 1.74e6, 2.33e6, 2.5e6};
	static const char *const names[] = {"source", "g1", "g2", "g3", "g4", "g5", "g6", "g7", "moments"};

	(void)state;
	for (size_t i = 0; i < 9; i++)
		add_phase((struct phase){.chain = {"w", names[i]}, .ns = ns[i], .scatter = 0.01});
	live(40, 20);
	assert_string_equal(story, "up w\nstays w\n");
	forget_up();
}

/* Most of the time is near one duration, but not enough to certify the state: a few callers, each with its own work. */
static void test_not_enough_of_one_work(void **state)
{
	static const double others[] = {1e6, 1.6e6, 2.6e6, 4.2e6, 9e6};

	(void)state;
	for (size_t i = 0; i < 4; i++)
		add_phase((struct phase){.chain = {"w", "often"}, .ns = 7e6, .scatter = 0.01});
	for (size_t i = 0; i < 5; i++)
		add_phase((struct phase){.chain = {"w", callers[i]}, .ns = others[i], .scatter = 0.01});
	live(40, 20);
	assert_string_equal(story, "up w\nstays w\n");
	forget_up();
}

static void test_wrapper_in_wrapper(void **state)
{
	(void)state;
	for (size_t i = 0; i < 8; i++)
		add_phase((struct phase){.chain = {"w", "x", callers[i]}, .ns = times[i], .scatter = 0.01});
	live(20, 20);
	assert_string_equal(story, "up w\nup x\nstays x\nstays w\n");
	forget_up();
}

/* Where only some callers still spread, only those are hopped again. */
static void test_one_caller_goes_on(void **state)
{
	(void)state;
	add_phase((struct phase){.chain = {"w", "a", "main"}, .ns = 30e6, .scatter = 0.01});
	for (size_t i = 0; i < 8; i++)
		add_phase((struct phase){.chain = {"w", "x", callers[i]}, .ns = 3 * times[i], .scatter = 0.01});
	live(40, 20);
	assert_true(among(up, up_count, "w"));
	assert_true(among(up, up_count, "x"));
	assert_false(among(up, up_count, "a"));
	assert_null(strstr(story, "back"));
	forget_up();
}

static void test_nothing_to_find(void **state)
{
	(void)state;
	add_phase((struct phase){.chain = {"w", "main", "libc"}, .ns = 10e6, .scatter = 3});
	refused[refused_count++] = "main";
	live(10, 50);
	assert_string_equal(story, "up w\nrefused main\nback w\n");
	live(100, 50);
	assert_string_equal(story, "up w\nrefused main\nback w\n"); /* for good */
	assert_int_equal(up_count, 0);
}

static void test_spreads_whoever_calls(void **state)
{
	(void)state;
	for (size_t i = 0; i < 3; i++)
		add_phase((struct phase){.chain = {"w", callers[i], "main"}, .ns = 10e6, .scatter = 3});
	for (size_t i = 0; i < 3; i++)
		refused[refused_count++] = callers[i];
	live(60, 50);
	assert_int_equal(up_count, 0);
	assert_non_null(strstr(story, "up w\n"));
	assert_non_null(strstr(story, "back w\n"));
	assert_non_null(strstr(story, "refused p1\n"));
}

/* Slow fragments at the begin of a trial, as from a disturbance, do not end it. */
static void test_disturbed_trial(void **state)
{
	(void)state;
	for (size_t i = 0; i < 4; i++)
		add_phase((struct phase){.chain = {"w", callers[i], "main"}, .ns = times[2 * i], .scatter = 0.01});
	live(3, 20);
	assert_string_equal(story, "up w\n");
	for (size_t i = 0; i < 4; i++) {
		phases[i].scatter = 2;
		refused[refused_count++] = callers[i];
	}
	live(2, 40);
	assert_null(strstr(story, "back w\n"));
	for (size_t i = 0; i < 4; i++)
		phases[i].scatter = 0.01;
	live(40, 40);
	assert_non_null(strstr(story, "stays w\n"));
	forget_up();
}

/* While other tasks interrupt computations, and displace cached data of those between, a trial is not given up. */
static void test_noise_in_a_trial(void **state)
{
	(void)state;
	for (size_t i = 0; i < 4; i++) {
		add_phase((struct phase){.chain = {"w", callers[i], "main"}, .ns = times[2 * i] / 32, .scatter = 0.01});
		refused[refused_count++] = callers[i];
	}
	while (!*story)
		live(1, 60);
	for (size_t i = 0; i < 4; i++)
		phases[i].scatter = 2;
	noise = 0.2;
	live(15, 60);
	assert_string_equal(story, "up w\n");
	for (size_t i = 0; i < 4; i++)
		phases[i].scatter = 0.01;
	noise = 0;
	live(60, 60);
	assert_null(strstr(story, "back w\n"));
	assert_non_null(strstr(story, "stays w\n"));
	forget_up();
}

/* A hop that stays is no trial any more, whatever happens: what spreads then may be looked for further up only. */
static void test_noise_and_stop_after_a_trial(void **state)
{
	(void)state;
	for (size_t i = 0; i < 8; i++)
		add_phase((struct phase){.chain = {"w", callers[i]}, .ns = times[i], .scatter = 0.01});
	live(10, 20);
	assert_string_equal(story, "up w\nstays w\n");
	phases[2].preempted_ns = 1e9;
	live(1, 1);
	phases[2].preempted_ns = 0;
	noise = 0.8;
	live(100, 20);
	assert_true(among(up, up_count, "w"));
	assert_null(strstr(story, "back w\n"));
	forget_up();
}

/* Noise from the first second on, for as long as the program runs. */
static void test_noise_all_the_time(void **state)
{
	(void)state;
	for (size_t i = 0; i < 8; i++)
		add_phase((struct phase){.chain = {"w", callers[i]}, .ns = times[i], .scatter = 0.01});
	noise = 0.2;
	live(40, 20);
	assert_string_equal(story, "up w\nstays w\n");
	forget_up();
}

/* A trial does not end for its length while one of its callers is tried. */
static void test_a_caller_is_tried(void **state)
{
	static const struct vapro_hop_event outer = {.hop = VAPRO_HOP_UP, .site = "x"},
					    inner = {.hop = VAPRO_HOP_UP, .site = "w"};

	(void)state;
	for (size_t i = 0; i < 8; i++)
		add_phase((struct phase){.chain = {"w", "x", callers[i]}, .ns = times[i] / 64, .scatter = 0.01});
	up[up_count++] = strdup("w");
	assert_int_equal(hops__note(hops, &inner, now_ns), 0);
	run(1);
	now_ns += 55 * SECOND;
	up[up_count++] = strdup("x");
	assert_int_equal(hops__note(hops, &outer, now_ns), 0);
	live(20, 1);
	assert_string_equal(story, "");
	live(20, 100);
	assert_string_equal(story, "stays x\nstays w\n");
	forget_up();
}

static void test_frames_are_bounded(void **state)
{
	(void)state;
	for (size_t i = 0; i < 8; i++)
		add_phase((struct phase){
		    .chain = {"w", "x1", "x2", "x3", "x4", "x5", callers[i]}, .ns = times[i], .scatter = 0.01});
	live(40, 20);
	assert_string_equal(story, "up w\nup x1\nup x2\nup x3\nback x3\nback x2\nback x1\nback w\n");
	config.hop_frames = 1;
	live(5, 20);
	assert_int_equal(up_count, 0);
}

static void test_one_frame_is_wanted(void **state)
{
	(void)state;
	config.hop_frames = 1;
	for (size_t i = 0; i < 8; i++)
		add_phase((struct phase){.chain = {"w", "x", callers[i]}, .ns = times[i], .scatter = 0.01});
	live(10, 20);
	assert_string_equal(story, "up w\nback w\n");
}

static void test_off(void **state)
{
	(void)state;
	config.hop_frames = 0;
	for (size_t i = 0; i < 8; i++)
		add_phase((struct phase){.chain = {"w", callers[i]}, .ns = times[i], .scatter = 0.01});
	live(10, 20);
	assert_string_equal(story, "");
}

static void test_steady(void **state)
{
	(void)state;
	for (size_t i = 0; i < 8; i++)
		add_phase((struct phase){.chain = {callers[i], "main"}, .ns = times[i], .scatter = 0.05});
	live(20, 20);
	assert_string_equal(story, "");
}

/* Runs a program with one caller on a host that is slow for every second second. */
static void live_on_a_slow_host(int seconds)
{
	for (int i = 0; i < seconds; i++) {
		phases[0].ns = i % 2 ? 10e6 : 15e6;
		live(1, 20);
	}
}

/* A host that is slow for a while is no matter of callers, unless that lasts: then the callers may change with time. */
static void test_slow_host(void **state)
{
	(void)state;
	add_phase((struct phase){.chain = {"w", "main"}, .scatter = 0.01});
	live_on_a_slow_host(60);
	assert_string_equal(story, "");
	refused[refused_count++] = "main";
	live_on_a_slow_host(200);
	assert_string_equal(story, "up w\nrefused main\nback w\n");
}

/* While other tasks interrupt many computations, these and the ones between them differ in any case. */
static void test_interrupted(void **state)
{
	(void)state;
	for (size_t i = 0; i < 8; i++)
		add_phase((struct phase){
		    .chain = {"w", callers[i]}, .ns = times[i], .scatter = 0.01, .preempted_ns = i < 2 ? 3e6 : 0});
	live(5, 12); /* less than 20 s in all */
	assert_string_equal(story, "");
	phases[0].preempted_ns = phases[1].preempted_ns = 0;
	live(20, 20);
	assert_string_equal(story, "up w\nstays w\n");
	forget_up();
}

/* Calls last long when other ranks are late: no caller changes that. */
static void test_calls_do_not_count(void **state)
{
	(void)state;
	for (size_t i = 0; i < 3; i++)
		add_phase(
		    (struct phase){.chain = {"w", callers[i]}, .ns = 10e6, .scatter = 3, .class = VAPRO_COMMUNICATION});
	live(20, 20);
	assert_string_equal(story, "");
}

/* A state that spreads is worth nothing where it is a small part of all time. */
static void test_small(void **state)
{
	(void)state;
	add_phase((struct phase){.chain = {"steady", "main"}, .ns = 400e6, .scatter = 0.01});
	add_phase((struct phase){.chain = {"steady", "main"}, .ns = 400e6, .scatter = 0.01});
	add_phase((struct phase){.chain = {"w", "main"}, .ns = 4e6, .scatter = 3});
	live(20, 60);
	assert_string_equal(story, "");
}

static void test_too_many_callers(void **state)
{
	static char names[100][16];

	(void)state;
	for (int i = 0; i < 100; i++) {
		snprintf(names[i], sizeof(names[i]), "q%d", i);
		add_phase((struct phase){.chain = {"w", names[i]}, .ns = 1e6 * (10 + i), .scatter = 0.01});
	}
	live(10, 3);
	assert_string_equal(story, "up w\nback w\n");
}

static void test_trials_are_bounded(void **state)
{
	static char names[10][16];

	(void)state;
	for (int i = 0; i < 10; i++) {
		snprintf(names[i], sizeof(names[i]), "w%d", i);
		for (int k = 0; k < 4; k++) /* mostly after itself: other sites do not matter */
			add_phase((struct phase){.chain = {names[i]}, .ns = 10e6, .scatter = 9});
	}
	live(1, 20);
	assert_int_equal(up_count, 8);
	live(70, 1); /* hops do not wait for unseen callers for ever */
	assert_int_equal(up_count, 2);
	live(70, 1);
	assert_int_equal(up_count, 0);
	live(70, 1);
	assert_int_equal(up_count, 0);
}

/* IO through a runtime counts at the program's call-site, which is behind the runtime. */
static void test_runtime(void **state)
{
	(void)state;
	for (size_t i = 0; i < 8; i++) {
		static char names[8][32];

		snprintf(names[i], sizeof(names[i]), "libc%slogs", SITE_CALLED_BY);
		add_phase((struct phase){.chain = {names[i]}, .ns = times[i], .scatter = 0.01});
	}
	refused[refused_count++] = "logs";
	live(3, 20);
	assert_string_equal(story, "refused logs\n");
}

/* Decisions that were made elsewhere, as in a capture. */
static void test_noted(void **state)
{
	const struct vapro_hop_event event = {.hop = VAPRO_HOP_REFUSED, .site = "w", .reason = "is none"};

	(void)state;
	assert_int_equal(hops__note(hops, &event, now_ns), 0);
	for (size_t i = 0; i < 8; i++)
		add_phase((struct phase){.chain = {"w", callers[i]}, .ns = times[i], .scatter = 0.01});
	live(10, 20);
	assert_string_equal(story, "");
}

static void note(enum vapro_hop hop)
{
	const struct vapro_hop_event event = {.hop = hop, .site = "w", .reason = "is none"};

	assert_int_equal(hops__note(hops, &event, now_ns), 0);
}

/* Nodes of a job that differ: one refuses, before or after another has hopped; the trial goes on with the others. */
static void check_refusal(bool first)
{
	for (size_t i = 0; i < 8; i++)
		add_phase((struct phase){.chain = {"w", callers[i]}, .ns = times[i], .scatter = 0.01});
	if (first)
		note(VAPRO_HOP_REFUSED);
	up[up_count++] = strdup("w");
	note(VAPRO_HOP_UP);
	if (!first)
		note(VAPRO_HOP_REFUSED);
	live(10, 20);
	assert_string_equal(story, "stays w\n");
	forget_up();
}

static void test_refused_by_one_node_first(void **state)
{
	(void)state;
	check_refusal(true);
}

static void test_refused_by_one_node_later(void **state)
{
	(void)state;
	check_refusal(false);
}

/* What one node undid is undone for good, though another one hops it after that. */
static void test_undone(void **state)
{
	(void)state;
	for (size_t i = 0; i < 8; i++)
		add_phase((struct phase){.chain = {"w", callers[i]}, .ns = times[i], .scatter = 0.01});
	note(VAPRO_HOP_UP);
	note(VAPRO_HOP_BACK);
	up[up_count++] = strdup("w");
	note(VAPRO_HOP_UP);
	live(10, 20);
	assert_string_equal(story, "");
	forget_up();
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_wrapper),
	    TEST(test_few_callers),
	    TEST(test_groups_in_one_state),
	    TEST(test_long_work_among_short),
	    TEST(test_not_enough_of_one_work),
	    TEST(test_wrapper_in_wrapper),
	    TEST(test_one_caller_goes_on),
	    TEST(test_nothing_to_find),
	    TEST(test_spreads_whoever_calls),
	    TEST(test_disturbed_trial),
	    TEST(test_noise_in_a_trial),
	    TEST(test_noise_and_stop_after_a_trial),
	    TEST(test_noise_all_the_time),
	    TEST(test_a_caller_is_tried),
	    TEST(test_frames_are_bounded),
	    TEST(test_one_frame_is_wanted),
	    TEST(test_off),
	    TEST(test_steady),
	    TEST(test_slow_host),
	    TEST(test_interrupted),
	    TEST(test_calls_do_not_count),
	    TEST(test_small),
	    TEST(test_too_many_callers),
	    TEST(test_trials_are_bounded),
	    TEST(test_runtime),
	    TEST(test_noted),
	    TEST(test_refused_by_one_node_first),
	    TEST(test_refused_by_one_node_later),
	    TEST(test_undone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
