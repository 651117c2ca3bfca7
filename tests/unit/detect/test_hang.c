// SPDX-License-Identifier: GPL-2.0-or-later
/* A job without progress: found after the stated time, with who is where and for whom, and kept to the end. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <vapro/analysis.h>

#include "detect/hang.h"
#include "near.h"
#include "sim.h"

#define MS 1000000ULL
#define S 1000000000ULL
#define BEGIN SIM_BEGIN_NS
#define STRIDE 10
#define AFTER 30 /* s: --hang-after here */
#define RANKS_MOST 64

enum {
	ALLREDUCE,
	WORK,
	RECV,
	ISEND_WAIT,
	BCAST,
	BCAST_OF_1,
	READ,
	LOG_READ,
	WRITE_ALL,
	OTHER_ALLREDUCE,
	FURTHER_RECV,
	STATES
};

static const struct vapro_state states[STATES] = {
    [ALLREDUCE] = {.class = VAPRO_COMMUNICATION,
		   .to = "app@1+0x10",
		   .labels = "comm=0 function=MPI_Allreduce op=sum",
		   .common = "function=MPI_Allreduce op=sum"},
    [WORK] = {.class = VAPRO_COMPUTATION,
	      .from = "app@1+0x10",
	      .to = "app@1+0x10",
	      .labels = "from.function=MPI_Allreduce to.function=MPI_Allreduce"},
    [RECV] = {.class = VAPRO_COMMUNICATION,
	      .to = "app@1+0x20",
	      .labels = "comm=0 function=MPI_Recv peer=0",
	      .common = "function=MPI_Recv"},
    [ISEND_WAIT] = {.class = VAPRO_COMMUNICATION, .to = "app@1+0x30", .labels = "function=MPI_Wait requests=1"},
    [BCAST] = {.class = VAPRO_COMMUNICATION,
	       .to = "app@1+0x40",
	       .labels = "comm=0 function=MPI_Bcast root=0",
	       .common = "function=MPI_Bcast root=0"},
    [BCAST_OF_1] = {.class = VAPRO_COMMUNICATION,
		    .to = "app@1+0x40",
		    .labels = "comm=0 function=MPI_Bcast root=1",
		    .common = "function=MPI_Bcast root=1"},
    [READ] = {.class = VAPRO_IO,
	      .to = "app@1+0x50",
	      .labels = "fd_kind=fifo file=7 function=read",
	      .common = "fd_kind=fifo function=read"},
    [LOG_READ] = {.class = VAPRO_IO,
		  .to = "app@1+0x58",
		  .labels = "fd_kind=file file=8 function=read",
		  .common = "fd_kind=file function=read"},
    [WRITE_ALL] = {.class = VAPRO_IO,
		   .to = "app@1+0x60",
		   .labels = "function=MPI_File_write_all",
		   .common = "function=MPI_File_write_all"},
    [OTHER_ALLREDUCE] = {.class = VAPRO_COMMUNICATION,
			 .to = "app@1+0x70",
			 .labels = "comm=3 function=MPI_Allreduce op=sum",
			 .common = "function=MPI_Allreduce op=sum"},
    [FURTHER_RECV] = {.class = VAPRO_COMMUNICATION,
		      .to = "app@1+0x20",
		      .labels = "comm=3 function=MPI_Recv peer=0",
		      .common = "function=MPI_Recv"},
};

/* What a rank does from a moment on. */
struct act {
	int state;			   /* in this call; -1 outside of calls */
	bool on_cpu;			   /* all the time */
	double ends_s;			   /* the rank ends; 0: never */
	double from_s;			   /* begin, s; 0: STOP */
	double silent_from_s, silent_to_s; /* nothing comes from its node; 0: it does */
	uint32_t stopped_by;
	bool stopped;
};

#define STOP 20.0 /* s: until then all ranks loop over computation and MPI_Allreduce */

static struct {
	struct analysis *analysis;
	uint32_t ranks, world_size, window;
	struct act acts[RANKS_MOST];
	double governed_from_s, resumes_s; /* 0: never */
	bool no_account, no_collective;
	bool no_facts;		 /* input without those of processes */
	struct result_hang hang; /* as last emitted */
	struct result_hang_group groups[RESULT_HANG_GROUPS];
	int32_t ranks_of[RESULT_HANG_GROUPS][RANKS_MOST], waited_of[RESULT_HANG_GROUPS][RANKS_MOST],
	    missing_of[RESULT_HANG_GROUPS][RANKS_MOST];
	unsigned emitted, opened;
	double found_s;
} job;

static void add(uint32_t rank, int state, uint64_t start_ns, uint64_t end_ns, uint32_t flags)
{
	const struct vapro_bundle bundle = {.thread = rank,
					    .state = (uint32_t)state,
					    .n = 1,
					    .flags = flags,
					    .start_ns = start_ns,
					    .end_ns = end_ns,
					    .sum_ns = end_ns - start_ns,
					    .min_ns = end_ns - start_ns,
					    .max_ns = end_ns - start_ns};

	assert_int_equal(analysis__add_bundle(job.analysis, &bundle), 0);
}

static uint64_t at(double seconds)
{
	return BEGIN + (uint64_t)(seconds * 1e9);
}

static void begin(uint32_t ranks)
{
	struct vapro_config config;

	memset(&job, 0, sizeof(job));
	sim_config(&config);
	config.hang_after_s = AFTER;
	job.ranks = ranks;
	job.analysis = analysis__new(&config, VAPRO_BY_ARGUMENTS);
	for (uint32_t i = 0; i < STATES; i++) {
		struct vapro_state state = states[i];

		state.id = i;
		assert_int_equal(analysis__add_state(job.analysis, &state), 0);
	}
}

static void announce(void)
{
	for (uint32_t rank = 0; rank < job.ranks; rank++) {
		const struct vapro_thread thread = {.id = rank,
						    .rank = (int32_t)rank,
						    .world_size = job.world_size ? job.world_size : job.ranks,
						    .pid = 100 + rank,
						    .tid = 100 + rank,
						    .job = "j",
						    .host = rank % 2 ? "n1" : "n0"};

		assert_int_equal(analysis__add_thread(job.analysis, &thread), 0);
		assert_int_equal(analysis__thread_seen(job.analysis, rank, BEGIN, 0), 0);
	}
}

/* Copies what was emitted: results live until the next window. */
static void note(const struct result_hang *hang, double end_s)
{
	job.emitted++;
	job.opened += hang->state == VAPRO_REGION_OPEN || !hang->revision;
	if (!job.found_s)
		job.found_s = end_s;
	job.hang = *hang;
	for (uint32_t i = 0; i < hang->group_count; i++) {
		struct result_hang_group *group = &job.groups[i];

		*group = hang->groups[i];
		memcpy(job.ranks_of[i], group->ranks, group->rank_count * sizeof(int32_t));
		memcpy(job.waited_of[i], group->waits_for, group->waits_for_count * sizeof(int32_t));
		if (group->did_not_enter_count)
			memcpy(job.missing_of[i], group->did_not_enter, group->did_not_enter_count * sizeof(int32_t));
		group->ranks = job.ranks_of[i];
	}
	job.hang.groups = job.groups;
}

/* What a rank does in a bin, for its account. */
static void account(uint32_t rank, double from_s)
{
	const struct act *act = &job.acts[rank];
	double stop_s = act->from_s ? act->from_s : STOP;
	struct vapro_account bin = {.thread = rank, .bin = at(from_s) / VAPRO_BIN_NS};
	bool acts = from_s >= stop_s && !(job.resumes_s && from_s >= job.resumes_s);

	if (job.no_account || (act->ends_s && from_s >= act->ends_s))
		return;
	if (acts && act->stopped) {
		bin.stopped_ns = VAPRO_BIN_NS;
		bin.stopped_by = act->stopped_by;
	} else if (acts && !act->on_cpu)
		return; /* asleep all the time */
	else
		bin.on_cpu_ns = VAPRO_BIN_NS;
	assert_int_equal(analysis__add_account(job.analysis, &bin), 0);
}

/* Calls and computation of a rank while it works, [from, to) in seconds: 50 ms a turn. */
static void work(uint32_t rank, double from_s, double to_s)
{
	for (double s = from_s; s < to_s - 0.04; s += 0.05) {
		add(rank, WORK, at(s), at(s + 0.04), 0);
		add(rank, job.no_collective ? ISEND_WAIT : ALLREDUCE, at(s + 0.04), at(s + 0.05), 0);
	}
}

static void window(double from_s, double to_s, bool last)
{
	const struct job_result *results;
	uint32_t count;

	for (uint32_t rank = 0; rank < job.ranks; rank++) {
		const struct act *act = &job.acts[rank];
		double stop_s = act->from_s ? act->from_s : STOP;

		if (act->silent_from_s && to_s > act->silent_from_s && to_s <= act->silent_to_s)
			continue;
		if (!job.no_facts) {
			bool governed = job.governed_from_s && to_s > job.governed_from_s && !rank;
			const struct vapro_process_facts facts = {
			    .pid = 100 + rank, .job = "j", .wall_ns = 10 * S, .governed_ns = governed ? S : 0};

			assert_int_equal(analysis__add_facts(job.analysis, &facts), 0);
		}
		if (act->ends_s && act->ends_s > from_s && act->ends_s <= to_s)
			assert_int_equal(analysis__thread_seen(job.analysis, rank, BEGIN, at(act->ends_s)), 0);
		work(rank, from_s, fmin(to_s, stop_s));
		if (job.resumes_s && job.resumes_s < to_s) {
			if (job.resumes_s >= from_s && act->state >= 0)
				add(rank, act->state, at(stop_s), at(job.resumes_s), 0);
			work(rank, fmax(from_s, job.resumes_s), to_s);
		} else if (act->state >= 0 && to_s > stop_s && !(act->ends_s && act->ends_s <= to_s))
			add(rank, act->state, at(stop_s), at(to_s), VAPRO_BUNDLE_OPEN);
		for (double s = from_s; s < to_s - 0.1; s += 0.2)
			account(rank, s);
	}
	assert_int_equal(analysis__end_window(job.analysis, at(from_s), at(to_s), last, &results, &count), 0);
	for (uint32_t i = 0; i < count; i++) {
		if (results[i].hang)
			note(results[i].hang, to_s);
	}
}

static void run(double seconds)
{
	if (!job.window)
		announce();
	for (; job.window * STRIDE + STRIDE <= seconds; job.window++)
		window(job.window * STRIDE, job.window * STRIDE + STRIDE, false);
}

static int end(void **state)
{
	(void)state;
	analysis__free(job.analysis);
	return 0;
}

/* An unanswered receive: 60 s of silence are found in the window in which they are complete. */
static void test_unanswered_receive(void **unused)
{
	(void)unused;
	begin(2);
	job.acts[0].state = ALLREDUCE;
	job.acts[1].state = RECV;
	job.acts[1].on_cpu = true; /* it polls */
	run(STOP + AFTER - STRIDE);
	assert_int_equal(job.emitted, 0);
	run(STOP + AFTER + STRIDE);
	assert_int_equal(job.opened, 1);
	assert_true(job.found_s <= STOP + AFTER + STRIDE);
	assert_int_equal(job.hang.kind, VAPRO_HANG_CALLS);
	assert_true(job.hang.alarm);
	assert_int_equal(job.hang.severity, VAPRO_CRITICAL);
	assert_near((double)(job.hang.begin_ns - BEGIN) / 1e9, STOP, 0.1);
	assert_int_equal(job.hang.group_count, 2);
	assert_int_equal(job.groups[0].condition, VAPRO_HANG_IN_CALL);
	assert_int_equal(job.ranks_of[0][0], 0);
	assert_int_equal(job.groups[0].did_not_enter_count, 1);
	assert_int_equal(job.missing_of[0][0], 1);
	assert_int_equal(job.ranks_of[1][0], 1);
	assert_int_equal(job.groups[1].waits_for_count, 1);
	assert_int_equal(job.waited_of[1][0], 0);
	assert_near((double)(job.groups[1].since_ns - BEGIN) / 1e9, STOP, 0.1);
}

/* The same of 16 ranks, on two hosts: one receives for ever, is blocked in IO, or reads from a file and uses no CPU. */
static void test_many_ranks(void **unused)
{
	static const struct {
		int state;
		bool on_cpu;
		int32_t waits_for;
	} cases[] = {{RECV, true, 0}, {RECV, false, 0}, {READ, false, -1}, {LOG_READ, false, -1}};

	(void)unused;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		if (i)
			end(NULL);
		begin(16);
		for (int rank = 0; rank < 16; rank++)
			job.acts[rank] = (struct act){.state = ALLREDUCE, .on_cpu = rank % 3 == 0};
		job.acts[11] = (struct act){.state = cases[i].state, .on_cpu = cases[i].on_cpu};
		run(10);
		if (cases[i].state == READ)
			add(11, READ, at(10.001), at(10.002), 0); /* what it waits for came before */
		run(STOP + AFTER - STRIDE);
		assert_int_equal(job.emitted, 0);
		run(STOP + AFTER + STRIDE);
		assert_int_equal(job.opened, 1);
		assert_int_equal(job.hang.kind, VAPRO_HANG_CALLS);
		assert_int_equal(job.hang.severity, VAPRO_CRITICAL);
		assert_int_equal(job.hang.group_count, 2);
		assert_int_equal(job.groups[0].rank_count, 1);
		assert_int_equal(job.ranks_of[0][0], 11);
		assert_int_equal(job.groups[0].state->id, cases[i].state);
		assert_int_equal(job.groups[0].waits_for_count, cases[i].waits_for >= 0);
		if (cases[i].waits_for >= 0)
			assert_int_equal(job.waited_of[0][0], cases[i].waits_for);
		assert_int_equal(job.groups[1].rank_count, 15);
		assert_int_equal(job.groups[1].state->id, ALLREDUCE);
		assert_int_equal(job.groups[1].did_not_enter_count, 1);
		assert_int_equal(job.missing_of[1][0], 11);
		for (int rank = 0; rank < 16; rank++)
			job.acts[rank].ends_s = 73;
		run(90);
		assert_int_equal(job.hang.outcome, VAPRO_HANG_JOB_ENDED);
		assert_true(job.hang.alarm);
		assert_int_equal(job.groups[0].state->id, cases[i].state);
	}
}

/* The record is emitted again when the length has doubled, not in each window, and once more when the job was killed.
 */
static void test_stays_when_killed(void **unused)
{
	unsigned before;

	(void)unused;
	begin(2);
	job.acts[0].state = ALLREDUCE;
	job.acts[1].state = RECV;
	run(150);
	assert_in_range(job.emitted, 2, 4);
	assert_int_equal(job.hang.outcome, VAPRO_HANG_GOES_ON);
	before = job.emitted;
	job.acts[0].ends_s = job.acts[1].ends_s = 153;
	run(160);
	assert_int_equal(job.emitted, before + 1);
	assert_int_equal(job.opened, 1);
	assert_int_equal(job.hang.state, VAPRO_REGION_CLOSED);
	assert_int_equal(job.hang.outcome, VAPRO_HANG_JOB_ENDED);
	assert_true(job.hang.alarm);
	assert_int_equal(job.hang.severity, VAPRO_CRITICAL);
	assert_near((double)(job.hang.end_ns - BEGIN) / 1e9, 153, 0.01);
	assert_int_equal(job.hang.group_count, 2); /* still as they were */
	assert_int_equal(job.groups[1].condition, VAPRO_HANG_IN_CALL);
	assert_int_equal(job.groups[1].state->id, RECV);
	run(180);
	assert_int_equal(job.emitted, before + 1);
}

/* A read that the kernel interrupts as it kills its process ends then: that is no progress. */
static void test_killed_in_a_system_call(void **unused)
{
	(void)unused;
	begin(2);
	job.acts[0].state = ALLREDUCE;
	job.acts[1].state = LOG_READ;
	run(60);
	assert_int_equal(job.opened, 1);
	job.acts[0].ends_s = job.acts[1].ends_s = 63;
	add(1, LOG_READ, at(STOP), at(63), 0);
	run(70);
	assert_int_equal(job.hang.outcome, VAPRO_HANG_JOB_ENDED);
	assert_int_equal(job.hang.state, VAPRO_REGION_CLOSED);
}

static void test_resumed(void **unused)
{
	(void)unused;
	begin(4);
	for (int i = 0; i < 3; i++)
		job.acts[i].state = ALLREDUCE;
	job.acts[3].state = -1; /* asleep */
	job.resumes_s = 72;
	run(70);
	assert_int_equal(job.opened, 1);
	assert_int_equal(job.groups[0].condition, VAPRO_HANG_ASLEEP);
	assert_int_equal(job.ranks_of[0][0], 3);
	assert_int_equal(job.groups[0].state->id, ALLREDUCE); /* the last call that it made */
	assert_int_equal(job.groups[1].rank_count, 3);
	assert_int_equal(job.groups[1].did_not_enter_count, 1);
	assert_int_equal(job.missing_of[1][0], 3);
	run(100);
	assert_int_equal(job.hang.outcome, VAPRO_HANG_RESUMED);
	assert_near((double)(job.hang.end_ns - BEGIN) / 1e9, 72, 0.1);
	assert_true(job.hang.alarm);
	assert_int_equal(job.hang.severity, VAPRO_CRITICAL); /* 52 of 72 s */
	assert_near(job.hang.rated_share, 52. / 72, 0.01);
}

/* One rank that computes is no hang, however long the others wait, nor is a computation of all. */
static void test_computation(void **unused)
{
	(void)unused;
	for (int all = 0; all < 2; all++) {
		if (all)
			end(NULL);
		begin(4);
		for (int i = 0; i < 4; i++)
			job.acts[i] = (struct act){.state = i && !all ? ALLREDUCE : -1, .on_cpu = true};
		run(120);
		assert_int_equal(job.emitted, 0);
	}
}

/* The time counts from the moment at which the last rank stopped to compute. */
static void test_computes_first(void **unused)
{
	(void)unused;
	begin(2);
	job.acts[0].state = ALLREDUCE;
	job.acts[1] = (struct act){.state = -1, .on_cpu = true};
	run(60);
	job.acts[1].on_cpu = false;
	run(80);
	assert_int_equal(job.emitted, 0);
	run(100);
	assert_int_equal(job.opened, 1);
	assert_near((double)(job.hang.begin_ns - BEGIN) / 1e9, 60, 0.3);
}

static void test_not_before_a_collective(void **unused)
{
	(void)unused;
	begin(2);
	job.no_collective = true;
	job.acts[0].state = ALLREDUCE;
	job.acts[1].state = READ;
	run(100);
	assert_int_equal(job.emitted, 0);
}

/* A pipe that has never delivered is waited for by design; one that did is not. */
static void test_input(void **unused)
{
	(void)unused;
	for (int delivered = 0; delivered < 2; delivered++) {
		if (delivered)
			end(NULL);
		begin(2);
		job.acts[0].state = BCAST;
		job.acts[1].state = READ;
		run(10);
		if (delivered)
			add(1, READ, at(10.001), at(10.002), 0);
		run(100);
		assert_int_equal(job.opened, 1);
		assert_int_equal(job.hang.kind, delivered ? VAPRO_HANG_CALLS : VAPRO_HANG_INPUT);
		assert_int_equal(job.hang.alarm, delivered);
		assert_int_equal(job.hang.severity, delivered ? VAPRO_CRITICAL : VAPRO_INFO);
	}
}

/* A blocked read is no work, one that uses a CPU is; so is a collective write that all ranks are in. */
static void test_io(void **unused)
{
	static const struct {
		int states[2];
		bool on_cpu, hangs;
	} cases[] = {
	    {{ALLREDUCE, LOG_READ}, false, true},  {{ALLREDUCE, LOG_READ}, true, false},
	    {{WRITE_ALL, WRITE_ALL}, true, false}, {{WRITE_ALL, WRITE_ALL}, false, true},
	    {{WRITE_ALL, ALLREDUCE}, true, true},
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		if (i)
			end(NULL);
		begin(2);
		for (int rank = 0; rank < 2; rank++)
			job.acts[rank] = (struct act){.state = cases[i].states[rank], .on_cpu = cases[i].on_cpu};
		run(80);
		assert_int_equal(job.opened, cases[i].hangs);
	}
}

static void test_stopped(void **unused)
{
	static const struct {
		uint32_t by;
		enum vapro_hang_kind kind;
		enum vapro_hang_condition condition;
	} cases[] = {
	    {VAPRO_STOPPED_SIGNAL, VAPRO_HANG_STOPPED, VAPRO_HANG_STOPPED_RANK},
	    {VAPRO_STOPPED_TRACER, VAPRO_HANG_TRACED, VAPRO_HANG_TRACED_RANK},
	    {VAPRO_STOPPED_FREEZER, VAPRO_HANG_FROZEN, VAPRO_HANG_FROZEN_RANK},
	    {VAPRO_STOPPED_UNKNOWN, VAPRO_HANG_STOPPED, VAPRO_HANG_STOPPED_RANK},
	    {17, VAPRO_HANG_STOPPED, VAPRO_HANG_STOPPED_RANK}, /* a later version, or a damaged file */
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		if (i)
			end(NULL);
		begin(3);
		job.acts[0].state = job.acts[1].state = ALLREDUCE;
		job.acts[2] = (struct act){.state = -1, .stopped = true, .stopped_by = cases[i].by};
		run(80);
		assert_int_equal(job.opened, 1);
		assert_int_equal(job.hang.kind, cases[i].kind);
		assert_true(job.hang.alarm);
		assert_int_equal(job.groups[0].condition, cases[i].condition);
		assert_int_equal(job.ranks_of[0][0], 2);
		assert_int_equal(job.missing_of[1][0], 2);
	}
}

/* Where probes were closed a rank may be in a call that was not seen, also while it uses a CPU. */
static void test_probes_closed(void **unused)
{
	(void)unused;
	for (int on_cpu = 0; on_cpu < 2; on_cpu++) {
		if (on_cpu)
			end(NULL);
		begin(2);
		job.governed_from_s = 15;
		job.acts[0].state = ALLREDUCE;
		job.acts[1] = (struct act){.state = -1, .on_cpu = on_cpu};
		run(80);
		assert_int_equal(job.opened, 1);
		assert_int_equal(job.hang.kind, VAPRO_HANG_NOT_KNOWN);
		assert_false(job.hang.alarm);
		assert_int_equal(job.groups[0].condition, VAPRO_HANG_UNSEEN);
		assert_int_equal(job.ranks_of[0][0], 1);
	}
	/* calls that were seen are known all the same */
	end(NULL);
	begin(2);
	job.governed_from_s = 15;
	job.acts[0].state = ALLREDUCE;
	job.acts[1].state = RECV;
	run(80);
	assert_int_equal(job.hang.kind, VAPRO_HANG_CALLS);
	assert_true(job.hang.alarm);
}

static void test_without_account(void **unused)
{
	(void)unused;
	begin(2);
	job.no_account = true;
	job.acts[0].state = ALLREDUCE;
	job.acts[1].state = -1;
	run(80);
	assert_int_equal(job.hang.kind, VAPRO_HANG_NOT_KNOWN);
	end(NULL);
	begin(2);
	job.no_account = true;
	job.acts[0].state = ALLREDUCE;
	job.acts[1].state = RECV;
	run(80);
	assert_int_equal(job.hang.kind, VAPRO_HANG_CALLS);
}

/* Ranks that are not watched may be at work; all ranks that are watched wait for them. */
static void test_partial(void **unused)
{
	(void)unused;
	begin(2);
	job.world_size = 4;
	job.acts[0].state = job.acts[1].state = ALLREDUCE;
	run(80);
	assert_int_equal(job.hang.kind, VAPRO_HANG_NOT_KNOWN);
	assert_false(job.hang.alarm);
	assert_int_equal(job.hang.unseen_ranks, 2);
}

/*
 * A node of which nothing comes, since its blocks are lost or its vaprod was killed: what its rank does is not known,
 * so that a rank that computes is no hang of the others, which wait for it.
 */
static void test_silent_node(void **unused)
{
	(void)unused;
	for (int back = 0; back < 2; back++) {
		if (back)
			end(NULL);
		begin(4);
		for (int i = 0; i < 3; i++)
			job.acts[i].state = ALLREDUCE;
		job.acts[3] =
		    (struct act){.state = -1, .on_cpu = true, .silent_from_s = 30, .silent_to_s = back ? 50 : 1000};
		run(100);
		assert_int_equal(job.opened, !back);
		if (back)
			continue;
		assert_int_equal(job.hang.kind, VAPRO_HANG_NOT_KNOWN);
		assert_false(job.hang.alarm);
		assert_int_equal(job.hang.group_count, 2);
		assert_int_equal(job.groups[1].condition, VAPRO_HANG_NO_DATA);
		assert_int_equal(job.ranks_of[1][0], 3);
	}
}

/* A rank that sleeps on a node of which data comes is asleep, and one whose node falls silent later did what it did. */
static void test_silent_later(void **unused)
{
	(void)unused;
	begin(4);
	for (int i = 0; i < 3; i++)
		job.acts[i].state = ALLREDUCE;
	job.acts[3] = (struct act){.state = -1, .silent_from_s = 70, .silent_to_s = 1000};
	run(70);
	assert_int_equal(job.hang.kind, VAPRO_HANG_CALLS);
	assert_int_equal(job.groups[0].condition, VAPRO_HANG_ASLEEP);
	run(200);
	assert_true(job.emitted > 1);
	assert_int_equal(job.hang.kind, VAPRO_HANG_CALLS);
	assert_true(job.hang.alarm);
	assert_int_equal(job.groups[0].condition, VAPRO_HANG_ASLEEP);
	assert_int_equal(job.ranks_of[0][0], 3);
}

/* Wrong roots: each rank is in a broadcast that the other has not entered. Other communicators name no ranks. */
static void test_who_waits(void **unused)
{
	(void)unused;
	begin(2);
	job.acts[0].state = BCAST;
	job.acts[1].state = BCAST_OF_1;
	run(80);
	assert_int_equal(job.hang.group_count, 2);
	assert_int_equal(job.missing_of[0][0], 1);
	assert_int_equal(job.missing_of[1][0], 0);
	end(NULL);
	begin(2);
	job.acts[0].state = OTHER_ALLREDUCE;
	job.acts[1].state = FURTHER_RECV;
	run(80);
	assert_int_equal(job.hang.kind, VAPRO_HANG_CALLS);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(job.groups[i].did_not_enter_count, 0);
		assert_int_equal(job.groups[i].waits_for_count, 0);
	}
}

static void test_rank_ended(void **unused)
{
	(void)unused;
	begin(16);
	for (int i = 0; i < 16; i++)
		job.acts[i].state = ALLREDUCE;
	job.acts[5] = (struct act){.state = -1, .ends_s = 21};
	run(80);
	assert_int_equal(job.hang.kind, VAPRO_HANG_CALLS);
	assert_int_equal(job.hang.group_count, 2);
	assert_int_equal(job.groups[0].condition, VAPRO_HANG_ENDED);
	assert_int_equal(job.ranks_of[0][0], 5);
	assert_int_equal(job.groups[1].rank_count, 15);
	assert_int_equal(job.missing_of[1][0], 5);
}

/* A hang that is first seen with the last window is closed at once. */
static void test_last_window(void **unused)
{
	(void)unused;
	begin(2);
	job.no_facts = true;
	job.acts[0].state = ALLREDUCE;
	job.acts[1].state = RECV;
	run(50);
	window(50, 60, true);
	assert_int_equal(job.hang.state, VAPRO_REGION_CLOSED);
	assert_int_equal(job.hang.outcome, VAPRO_HANG_UNWATCHED);
	assert_true(job.hang.alarm);
}

/* After a checkpoint the hang is the same one, and is closed with the calls that it had. */
static void test_checkpoint(void **unused)
{
	struct vapro_config config;
	uint8_t *data;
	size_t size;
	char err[200];
	uint64_t id;

	(void)unused;
	begin(2);
	job.acts[0].state = ALLREDUCE;
	job.acts[1].state = RECV;
	run(70);
	id = job.hang.id;
	assert_int_equal(analysis__save(job.analysis, &data, &size, err, sizeof(err)), 0);
	analysis__free(job.analysis);
	sim_config(&config);
	config.hang_after_s = AFTER;
	job.analysis = analysis__new(&config, VAPRO_BY_ARGUMENTS);
	assert_int_equal(analysis__load(job.analysis, data, size, err, sizeof(err)), 0);
	free(data);
	job.acts[0].ends_s = job.acts[1].ends_s = 73;
	run(80);
	assert_int_equal(job.hang.id, id);
	assert_int_equal(job.opened, 1);
	assert_int_equal(job.hang.outcome, VAPRO_HANG_JOB_ENDED);
	assert_int_equal(job.groups[1].state->id, RECV);
}

static void test_collectives(void **unused)
{
	(void)unused;
	assert_true(hang__is_collective("MPI_Barrier"));
	assert_true(hang__is_collective("MPI_File_write_at_all"));
	assert_false(hang__is_collective("MPI_Ibarrier"));
	assert_false(hang__is_collective("MPI_Recv"));
	assert_false(hang__is_collective("MPI_File_write"));
	assert_false(hang__is_collective("Barrier"));
	assert_false(hang__is_collective("MPI_"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_teardown(test_unanswered_receive, end),
	    cmocka_unit_test_teardown(test_many_ranks, end),
	    cmocka_unit_test_teardown(test_stays_when_killed, end),
	    cmocka_unit_test_teardown(test_killed_in_a_system_call, end),
	    cmocka_unit_test_teardown(test_resumed, end),
	    cmocka_unit_test_teardown(test_computation, end),
	    cmocka_unit_test_teardown(test_computes_first, end),
	    cmocka_unit_test_teardown(test_not_before_a_collective, end),
	    cmocka_unit_test_teardown(test_input, end),
	    cmocka_unit_test_teardown(test_io, end),
	    cmocka_unit_test_teardown(test_stopped, end),
	    cmocka_unit_test_teardown(test_probes_closed, end),
	    cmocka_unit_test_teardown(test_without_account, end),
	    cmocka_unit_test_teardown(test_partial, end),
	    cmocka_unit_test_teardown(test_silent_node, end),
	    cmocka_unit_test_teardown(test_silent_later, end),
	    cmocka_unit_test_teardown(test_who_waits, end),
	    cmocka_unit_test_teardown(test_rank_ended, end),
	    cmocka_unit_test_teardown(test_last_window, end),
	    cmocka_unit_test_teardown(test_checkpoint, end),
	    cmocka_unit_test(test_collectives),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
