/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Advice and verdict: each factor's own resource and no other, the papers' cures, slow paths; and no contradictions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "diagnose/advice.h"
#include "diagnose/factors.h"
#include "diagnose/interferers.h"
#include "diagnose/verdict.h"
#include "report/regions.h"

static const int32_t ranks[] = {43, 44, 45};

/* Words about the event that the advice on a factor must have. */
static const struct {
	const char *factor, *resource;
} claims[] = {
    {"on_cpu", "on the CPU"},
    {"retiring", "more instructions"},
    {"frontend", "waited for instructions"},
    {"bad_speculation", "wrong predictions"},
    {"backend", "memory or execution units"},
    {"kernel", "in the kernel"},
    {"irq", "interrupts ran"},
    {"suspension", "off the CPU"},
    {"preempted", "Other tasks ran on the CPU"},
    {"wakeup_wait", "Other tasks ran on the CPU"},
    {"blocked_io", "data came from a disk"},
    {"blocked_other", "asleep"},
    {"throttled", "cgroup"},
    {"steal", "virtual CPU"},
    {"stopped", "stopped by a signal"},
    {"frequency", "highest frequency"},
    {"frontend_latency", "waited for instructions"},
    {"frontend_bandwidth", "instructions came"},
    {"mispredicts", "wrong predictions"},
    {"clears", "pipeline"},
    {"memory", "waited for data"},
    {"core", "execution units"},
    {"page_faults", "page faults"},
    {"system_calls", "system calls"},
    {"reclaim", "freed memory"},
    {"hard_irq", "interrupts of devices"},
    {"soft_irq", "network, timers or disks"},
    {"minor_faults", "mapped more pages"},
    {"major_faults", "pages from disk"},
    {"voluntary_switches", "slept and woke"},
    {"involuntary_switches", "switched out"},
    {"migrations", "moved between CPUs"},
    {"kernel_other", "in the kernel"},
    {"l1", "L1 cache"},
    {"l2", "L2 cache"},
    {"l3", "L3 cache"},
    {"dram", "DRAM"},
    {"store", "stores"},
    {"l2_fills", "L2 cache"},
    {"l3_fills", "L3 cache"},
    {"dram_fills", "DRAM"},
    {"remote_fills", "another socket"},
    {"memory_other", "waited for data"},
};

/* Words that claim a resource, and the factors that may use them: for all other factors they are wrong. */
static const struct {
	const char *word, *factors;
} resources[] = {
    {"DRAM", " dram dram_fills "},
    {"L1", " l1 "},
    {"L2", " l2 l2_fills "},
    {"L3", " l3 l3_fills "},
    {"frequency", " frequency "},
    {"virtual CPU", " steal "},
    {"cgroup", " throttled "},
    {"interrupt", " irq hard_irq "},
    {"kernel", " kernel kernel_other soft_irq "},
    {"predictions", " bad_speculation mispredicts "},
    {"execution units", " backend core "},
    {"asleep", " blocked_io blocked_other "},
    {"Other tasks", " preempted wakeup_wait "},
    {"page", " page_faults minor_faults major_faults "},
    {"on the CPU all the time", " on_cpu "},
    {"No single factor", " "},
    {"cannot be determined", " "},
    {"nothing", " "},
};

static struct result_factor factor;
static char advice[1024], verdict[1024];

static struct result_variance slow(const char *name)
{
	factor = (struct result_factor){
	    .name = name, .stage = 1, .contribution = 1, .impact_seconds = 4, .duration_seconds = 4, .major = true};
	return (struct result_variance){
	    .id = 1,
	    .ranks = ranks,
	    .rank_count = 3,
	    .who = "ranks 43-45",
	    .performance = 0.8,
	    .lost_seconds = 4,
	    .confidence = VAPRO_CONFIRMED,
	    .confirmed = true,
	    .diagnosis = {.stage = 1, .final = true, .factors = &factor, .factor_count = 1, .abnormal = 10},
	};
}

static void write_both(const struct result_variance *variance, bool waiting, bool transfer)
{
	advice__write(variance, waiting, transfer, advice, sizeof(advice));
	verdict__write(variance, waiting, transfer, verdict, sizeof(verdict));
}

static void has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' is not in: %s", part, text);
}

static void lacks(const char *text, const char *part)
{
	if (strstr(text, part))
		fail_msg("'%s' is in: %s", part, text);
}

/* With a factor at 100 % each text is about that factor: the event names its resource, and no other. */
static void test_each_factor(void **state)
{
	(void)state;
	for (int node = 0; node < FACTOR_NODES; node++) {
		const char *name = factor_infos[node].name;
		struct result_variance variance = slow(name);
		char own[64], *claim_end;
		size_t row = 0;

		while (row < sizeof(claims) / sizeof(*claims) && strcmp(claims[row].factor, name))
			row++;
		if (row == sizeof(claims) / sizeof(*claims))
			fail_msg("a factor that this test does not know: %s", name);
		write_both(&variance, false, false);
		has(advice, "ranks 43-45");
		has(verdict, node == NODE_ON_CPU ? ": they took 1.25 times as long, all of it on the CPU" : ": 100 % ");
		lacks(verdict, "no single factor");
		/* the text after the first stop or semicolon says where to look, which may be anywhere */
		claim_end = strpbrk(advice, ";.");
		assert_non_null(claim_end);
		assert_true(strlen(claim_end) > 10 || node == NODE_PREEMPTED || node == NODE_WAKEUP_WAIT);
		*claim_end = 0;
		has(advice, claims[row].resource);
		snprintf(own, sizeof(own), " %s ", name);
		for (size_t i = 0; i < sizeof(resources) / sizeof(*resources); i++) {
			if (!strstr(resources[i].factors, own))
				lacks(advice, resources[i].word);
		}
	}
}

/* A part of the loss that the job's own threads had is said, where another factor is greater, too. */
static void test_oversubscribed_part(void **state)
{
	static const struct result_cause causes[] = {
	    {.cause = "on_cpu", .explained = true, .lost_seconds = 3},
	    {.cause = "oversubscribed", .explained = true, .lost_seconds = 1},
	};
	struct result_variance variance = slow("on_cpu");

	(void)state;
	variance.causes = causes;
	variance.cause_count = 2;
	write_both(&variance, false, false);
	has(verdict, "; 1.00 s of it off the CPU, since the job is oversubscribed");
	/* what the sentence is about is not said again */
	lacks(verdict, "slower on the CPU");
}

/* Shares are of what the factors explain: that is said where it is not nearly all of the loss. */
static void test_explained(void **state)
{
	struct result_factor tree[] = {
	    {.name = "suspension", .stage = 1, .contribution = 1, .impact_seconds = 3, .major = true},
	    {.name = "preempted", .stage = 2, .parent = "suspension", .contribution = 1, .impact_seconds = 3},
	};
	struct result_variance variance = slow("suspension");

	(void)state;
	variance.diagnosis.factors = tree;
	variance.diagnosis.factor_count = 2;
	write_both(&variance, false, false);
	has(verdict, "ranks 43-45 lost 4.00 s, 3.00 s of it explained: 100 % off the CPU");
	tree[0].impact_seconds = 3.8;
	write_both(&variance, false, false);
	has(verdict, "ranks 43-45 lost 4.00 s: 100 % off the CPU");
}

/* The summary explains each factor in words, too. */
static void test_each_meaning(void **state)
{
	(void)state;
	for (int node = 0; node < FACTOR_NODES; node++) {
		struct regions regions = {0};
		struct region *region = regions__get(&regions, "j", 1);
		char *text = NULL, expected[80];
		size_t size;
		FILE *out = open_memstream(&text, &size);

		assert_non_null(region);
		assert_non_null(out);
		region->causes[0] = (struct region_cause){.share = 1, .major = true};
		snprintf(region->causes[0].name, sizeof(region->causes[0].name), "%s", factor_infos[node].name);
		region->cause_count = 1;
		region->lost_seconds = 1;
		regions__print(&regions, out, &(struct regions_options){.width = 200, .most = 5});
		fclose(out);
		snprintf(expected, sizeof(expected), "100 %% %s: ", factor_infos[node].name);
		has(text, expected);
		free(text);
		regions__free(&regions);
	}
}

/* A major part is named instead of its major whole; a whole without a major part is named; else nothing is. */
static void test_finest(void **state)
{
	struct result_factor tree[] = {
	    {.name = "suspension", .stage = 1, .contribution = 1, .impact_seconds = 3, .major = true},
	    {.name = "blocked_io", .stage = 2, .parent = "suspension", .contribution = 0.2, .impact_seconds = 0.6},
	};
	struct result_variance variance = slow("suspension");

	(void)state;
	variance.diagnosis.factors = tree;
	variance.diagnosis.factor_count = 2;
	write_both(&variance, false, false);
	has(advice, "off the CPU");
	has(verdict, "100 % off the CPU.");
	tree[1].major = true;
	write_both(&variance, false, false);
	has(advice, "data came from a disk");
	tree[0].major = tree[1].major = false;
	write_both(&variance, false, false);
	assert_string_equal(advice,
			    "No single factor explains it; look at the call-sites and exemplars of ranks 43-45.");
	has(verdict, "no single factor explains it");
}

/* A stop is named as such, with its length, and is no sleep. */
static void test_stopped(void **state)
{
	struct result_factor tree[] = {
	    {.name = "suspension", .stage = 1, .contribution = 0.98, .impact_seconds = 2.04, .major = true},
	    {.name = "stopped",
	     .stage = 2,
	     .parent = "suspension",
	     .contribution = 0.99,
	     .impact_seconds = 2.01,
	     .major = true},
	};
	struct result_variance variance = slow("suspension");

	(void)state;
	variance.diagnosis.factors = tree;
	variance.diagnosis.factor_count = 2;
	write_both(&variance, false, false);
	has(verdict, "ranks 43-45 lost 4.00 s: were stopped (signal or tracer) for 2.0 s in all.");
	has(advice, "SIGSTOP");
	lacks(verdict, "asleep");
	variance.rank_count = 1;
	variance.who = "rank 43";
	write_both(&variance, false, false);
	has(verdict, "rank 43 lost 4.00 s: was stopped (signal or tracer) for 2.0 s.");
	/* beside other causes a stop is a part as any other */
	tree[1].contribution = 0.5;
	write_both(&variance, false, false);
	has(verdict, "98 % off the CPU, 50 % of it stopped (signal or tracer) for 2.0 s.");
}

/* Time on the CPU: its meaning depends on the class, and the advice does not look for a reported frequency. */
static void test_on_cpu(void **state)
{
	struct result_factor both[2];
	struct result_variance variance = slow("on_cpu");

	(void)state;
	write_both(&variance, false, false);
	has(advice, "look at frequency, memory bandwidth");
	both[0] = factor;
	both[1] = (struct result_factor){.name = "frequency", .stage = 1, .contribution = 0.02};
	variance.diagnosis.factors = both;
	variance.diagnosis.factor_count = 2;
	write_both(&variance, false, false);
	lacks(advice, "frequency");
	has(advice, "look at memory bandwidth");
	/* a thread of a team polls while it waits */
	variance.team_unseen = true;
	write_both(&variance, false, false);
	has(advice, "or waited for another of its threads");
	has(verdict, "or waiting for another of its threads");
	variance.team_unseen = false;
	write_both(&variance, false, false);
	lacks(advice, "its threads");
	lacks(verdict, "its threads");
	variance.class = VAPRO_IO;
	write_both(&variance, false, false);
	has(advice, "inside the calls");
	lacks(advice, "got less done");
	variance.class = VAPRO_COMMUNICATION;
	write_both(&variance, false, false);
	has(advice, "waited inside MPI, which polls on the CPU");
	lacks(advice, "frequency");
	lacks(advice, "bandwidth");
	has(verdict, "busy-waiting inside MPI for other ranks");
	lacks(verdict, "slower on the CPU");
}

/* L2 or DRAM bound on one socket or host from the start: huge pages; a host whose memory is slow: out of service. */
static void test_memory_cures(void **state)
{
	static const struct {
		const char *factor, *fact;
		bool from_start, cache, memory;
	} diagnoses[] = {
	    {"l2", "socket", true, true, false},	 {"dram", "socket", true, true, false},
	    {"l2_fills", "host", true, true, false},	 {"dram", "host", true, true, true},
	    {"dram_fills", "host", false, false, true},	 {"l2", "socket", false, false, false},
	    {"l2", "cgroup", true, false, false},	 {"l2", NULL, true, false, false},
	    {"memory", "host", false, false, true},	 {"backend", "host", true, false, true},
	    {"memory_other", "host", true, false, true}, {"memory", "socket", true, false, false},
	    {"core", "host", true, false, false},	 {"l1", "socket", true, false, false},
	    {"preempted", "host", true, false, false},	 {"frequency", "host", true, false, false},
	};
	struct result_factor weak[2];
	struct result_shared shared;
	struct result_variance variance;

	(void)state;
	for (size_t i = 0; i < sizeof(diagnoses) / sizeof(*diagnoses); i++) {
		variance = slow(diagnoses[i].factor);
		variance.from_start = diagnoses[i].from_start;
		shared = (struct result_shared){diagnoses[i].fact, "n2", 0, NULL};
		variance.diagnosis.shared = &shared;
		variance.diagnosis.shared_count = diagnoses[i].fact != NULL;
		write_both(&variance, false, false);
		(diagnoses[i].cache ? has : lacks)(
		    advice, "compare with huge pages (1 GiB); some CPUs have known L2 eviction faults.");
		(diagnoses[i].memory ? has : lacks)(advice, "take host n2 out of service or have its memory checked.");
	}
	/* a quarter of the loss is no reason to take a host out of service */
	variance = slow("memory");
	weak[0] = (struct result_factor){
	    .name = "backend", .stage = 1, .contribution = 0.3, .impact_seconds = 1, .major = true};
	weak[1] = (struct result_factor){
	    .name = "memory", .stage = 2, .parent = "backend", .contribution = 1, .impact_seconds = 1, .major = true};
	shared = (struct result_shared){"host", "n2", 0, NULL};
	variance.diagnosis.factors = weak;
	variance.diagnosis.factor_count = 2;
	variance.diagnosis.shared = &shared;
	variance.diagnosis.shared_count = 1;
	write_both(&variance, false, false);
	lacks(advice, "out of service");
	has(advice, "begin with host n2, where every rank was slow.");
	weak[0].contribution = 0.9;
	write_both(&variance, false, false);
	has(advice, "take host n2 out of service");
}

static void test_slow_path(void **state)
{
	struct result_variance variance = slow("on_cpu");

	(void)state;
	variance.class = VAPRO_COMMUNICATION;
	variance.slow_path = true;
	variance.who = "rank 3";
	variance.rank_count = 1;
	variance.performance = 1 / 3.0;
	variance.diagnosis.host = "n1";
	write_both(&variance, true, true);
	assert_string_equal(verdict,
			    "transfers of rank 3, on host n1, take 3.0 times as long (4.00 s lost); no rank was late.");
	assert_string_equal(advice, "Transfers of rank 3 are slow while no rank was late: look at the network adapter, "
				    "cable and switch port of host n1.");
	variance.who = "ranks 3,7";
	variance.rank_count = 2;
	variance.diagnosis.host = NULL;
	variance.confirmed = false;
	variance.confidence = VAPRO_UNCONFIRMED;
	write_both(&variance, false, false);
	assert_string_equal(verdict, "transfers of ranks 3,7 take 3.0 times as long (4.00 s lost); unconfirmed.");
	lacks(advice, "of host");
	lacks(advice, "no rank was late");
	variance.performance = 0;
	write_both(&variance, true, true);
	lacks(verdict, "inf");
	/* a late call is no slow path */
	variance.slow_path = false;
	write_both(&variance, true, false);
	has(verdict, "they waited for ranks that came late");
	lacks(advice, "adapter");
}

/* A place within a host is named with it, and only where the place of a core can be the reason. */
static void test_place_within_a_host(void **state)
{
	static const struct {
		const char *factor, *fact;
		bool begins;
	} rows[] = {
	    {"on_cpu", "cpu", true},	    {"dram", "socket", true},	   {"frequency", "cpu", true},
	    {"irq", "cpu", true},	    {"steal", "cpu", true},	   {"stopped", "cpu", false},
	    {"throttled", "cpu", false},    {"blocked_io", "numa", false}, {"blocked_other", "cpu", false},
	    {"minor_faults", "cpu", false}, {"retiring", "socket", false}, {"throttled", "cgroup", true},
	    {"stopped", "host", true},	    {"blocked_io", "host", true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		bool within = strcmp(rows[i].fact, "host") && strcmp(rows[i].fact, "cgroup");
		struct result_shared shared = {rows[i].fact, "3", i % 2, within ? "n7" : NULL};
		struct result_variance variance = slow(rows[i].factor);

		variance.diagnosis.shared = &shared;
		variance.diagnosis.shared_count = 1;
		write_both(&variance, false, false);
		has(verdict, within ? "ranks 43-45, all on host n7, on " : "ranks 43-45, all ");
		(rows[i].begins ? has : lacks)(advice, "begin with");
		if (rows[i].begins) {
			has(advice, within ? " 3 of host n7, where " : " 3, where ");
			has(advice, i % 2 ? "where nearly every rank was slow" : "where every rank was slow");
		}
	}
	/* the host stands once, though two facts lie in it */
	{
		static const struct result_shared both[] = {{"socket", "1", 0, "n7"}, {"cgroup", "/j", 0, NULL}};

		verdict__place(both, 2, 2, verdict, sizeof(verdict));
		assert_string_equal(verdict, ", all on host n7, on socket 1, in cgroup /j,");
	}
}

/* Sleep names the call and what is behind it; inside computation it is no file system that is asked for. */
static void test_asleep(void **state)
{
	static const struct {
		const char *labels, *asleep, *look;
	} calls[] = {
	    {"function=pwrite size=65536 fd_kind=file file=2", "asleep in pwrite",
	     "look at the file system of that file"},
	    {"function=read fd_kind=fifo", "asleep in read", "look at the process at the other end of the pipe"},
	    {"function=recvmsg fd_kind=socket", "asleep in recvmsg", "and the network"},
	    {"function=ioctl fd_kind=char", "asleep in ioctl", "look at the device"},
	    {"function=poll", "asleep in poll", "look at what is behind that call"},
	};
	struct result_factor tree[] = {
	    {.name = "suspension", .stage = 1, .contribution = 1, .impact_seconds = 4, .major = true},
	    {.name = "blocked_other",
	     .stage = 2,
	     .parent = "suspension",
	     .contribution = 1,
	     .impact_seconds = 4,
	     .major = true},
	};
	struct result_variance variance = slow("suspension");

	(void)state;
	variance.diagnosis.factors = tree;
	variance.diagnosis.factor_count = 2;
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		struct vapro_state at = {.class = VAPRO_IO, .labels = calls[i].labels};
		struct result_site site = {.state = &at, .lost_seconds = 4};

		variance.class = VAPRO_IO;
		variance.sites = &site;
		variance.site_count = 1;
		write_both(&variance, false, false);
		has(verdict, calls[i].asleep);
		has(advice, calls[i].asleep);
		has(advice, calls[i].look);
	}
	variance.class = VAPRO_COMPUTATION;
	variance.site_count = 0;
	write_both(&variance, false, false);
	has(advice, "asleep in a call that is not observed; look for a device (ioctl), a child process");
	tree[1].name = "blocked_io";
	write_both(&variance, false, false);
	has(advice, "look at memory pressure, swap");
	lacks(advice, "file system");
}

/* A stop or a quota that hit one rank says nothing of its place. */
static void test_place_of_one_rank(void **state)
{
	static const char *const factors[] = {"stopped", "throttled"};
	static const struct result_shared shared = {"cgroup", "/j/rank", 0, NULL};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct result_variance variance = slow(factors[i]);

		variance.diagnosis.shared = &shared;
		variance.diagnosis.shared_count = 1;
		write_both(&variance, false, false);
		has(advice, "begin with cgroup /j/rank, where every rank was slow");
		variance.rank_count = 1;
		write_both(&variance, false, false);
		lacks(advice, "begin with");
	}
}

/* A quota is named with its cgroup, and with its value where that was seen before it was gone. */
static void test_quota(void **state)
{
	static const struct result_shared shared = {"cgroup", "/j/rank", 0, NULL};
	struct result_variance variance = slow("throttled");

	(void)state;
	write_both(&variance, false, false);
	has(advice, "raise its CPU quota");
	variance.diagnosis.shared = &shared;
	variance.diagnosis.shared_count = 1;
	write_both(&variance, false, false);
	has(advice, "cgroup /j/rank or one above it used up its CPU quota; raise it");
	variance.diagnosis.limit = "cpu.max 40000 100000";
	variance.diagnosis.limit_cgroup = "/j";
	write_both(&variance, false, false);
	has(advice, "cgroup /j used up its CPU quota (cpu.max 40000 100000); raise it");
}

/* The advice has a sentence for each cause that is listed, about its own ranks, and denies none of them. */
static void test_advice_on_causes(void **state)
{
	static const int32_t own[] = {44};
	struct result_factor both[] = {
	    {.name = "suspension", .stage = 1, .contribution = .52, .impact_seconds = 2.1, .major = true},
	    {.name = "steal",
	     .stage = 2,
	     .parent = "suspension",
	     .contribution = .9,
	     .impact_seconds = 1.9,
	     .major = true},
	    {.name = "on_cpu", .stage = 1, .contribution = .47, .impact_seconds = 1.9, .major = true},
	};
	struct result_cause causes[] = {
	    {.cause = "steal", .explained = true, .lost_seconds = 1.9, .ranks = own, .rank_count = 1},
	    {.cause = "on_cpu", .explained = true, .lost_seconds = 1.8, .ranks = ranks, .rank_count = 3},
	    {.cause = "throttled", .explained = true, .lost_seconds = .3, .ranks = ranks, .rank_count = 3},
	};
	struct result_variance variance = slow("suspension");

	(void)state;
	variance.diagnosis.factors = both;
	variance.diagnosis.factor_count = 3;
	variance.causes = causes;
	variance.cause_count = 3;
	write_both(&variance, false, false);
	has(advice, "rank 44: the host ran other work on the virtual CPU's core");
	has(advice, "ranks 43-45: on the CPU but got less done there");
	lacks(advice, "all the time");
	has(advice, "raise its CPU quota");
	has(verdict, "52 % off the CPU, almost entirely stolen by the hypervisor; 47 % of the loss on the CPU");
	/* what nothing explains is none of them */
	causes[0].explained = false;
	write_both(&variance, false, false);
	lacks(advice, "virtual CPU");
}

/* Preemption that is divided by tasks has a sentence for each of them. */
static void test_advice_on_tasks(void **state)
{
	static const int32_t own[] = {44};
	struct result_interferer tasks[] = {{.comm = "daemon", .pid = 7, .seconds = 3},
					    {.comm = "hog", .pid = 9, .seconds = 1}};
	struct result_cause causes[] = {
	    {.cause = "preempted",
	     .explained = true,
	     .culprit = &tasks[0],
	     .culprit_seconds = 3,
	     .lost_seconds = 3,
	     .ranks = ranks,
	     .rank_count = 3},
	    {.cause = "preempted",
	     .explained = true,
	     .culprit = &tasks[1],
	     .culprit_seconds = 1,
	     .lost_seconds = 1,
	     .ranks = own,
	     .rank_count = 1},
	};
	struct result_variance variance = slow("preempted");

	(void)state;
	variance.diagnosis.interferers = tasks;
	variance.diagnosis.interferer_count = 2;
	variance.diagnosis.interfered = 4;
	variance.causes = causes;
	variance.cause_count = 2;
	write_both(&variance, false, false);
	has(advice, "daemon (pid 7) ran 3.0 s on the CPU of ranks 43-45");
	has(advice, "hog (pid 9) ran 1.0 s on the CPU of rank 44: move or stop it");
	/* what was lost to the second one is more than its time on the CPU: others ran with it */
	causes[1].lost_seconds = 2;
	write_both(&variance, false, false);
	has(advice, "hog (pid 9, 1.0 s) and others ran 2.0 s on the CPUs of rank 44");
}

/* The verdict names each task that is a cause, and that which is "almost entirely" to blame took that share itself. */
static void test_verdict_on_tasks(void **state)
{
	static const int32_t own[] = {44};
	struct result_interferer tasks[] = {{.comm = "daemon", .pid = 7, .seconds = 3},
					    {.comm = "hog", .pid = 9, .seconds = 1}};
	struct result_factor off[] = {
	    {.name = "suspension", .stage = 1, .contribution = 1, .impact_seconds = 4, .major = true},
	    {.name = "preempted",
	     .stage = 2,
	     .parent = "suspension",
	     .contribution = 1,
	     .impact_seconds = 4,
	     .major = true},
	};
	struct result_cause causes[] = {
	    {.cause = "preempted", .explained = true, .culprit = &tasks[0], .ranks = ranks, .rank_count = 3},
	    {.cause = "preempted", .explained = true, .culprit = &tasks[1], .ranks = own, .rank_count = 1},
	};
	struct result_variance variance = slow("suspension");

	(void)state;
	variance.diagnosis.factors = off;
	variance.diagnosis.factor_count = 2;
	variance.diagnosis.interferers = tasks;
	variance.diagnosis.interferer_count = 2;
	variance.diagnosis.interfered = 4;
	variance.diagnosis.rows = 3;
	variance.causes = causes;
	variance.cause_count = 2;
	causes[0].lost_seconds = causes[0].culprit_seconds = 3;
	causes[1].lost_seconds = causes[1].culprit_seconds = 1;
	write_both(&variance, false, false);
	has(verdict, ": 100 % off the CPU, mostly because daemon (pid 7) ran on their CPUs; 1.00 s of it because hog "
		     "(pid 9) ran on its CPU (rank 44).");
	causes[0].lost_seconds = causes[0].culprit_seconds = 3.8;
	causes[1].lost_seconds = causes[1].culprit_seconds = 0.2;
	write_both(&variance, false, false);
	has(verdict, "almost entirely because daemon (pid 7) ran on their CPUs; 0.20 s of it because hog (pid 9) ran");
	/* of what none took half, none is to blame alone */
	causes[0].culprit = NULL;
	write_both(&variance, false, false);
	has(verdict, "almost entirely because other tasks, most of all daemon (pid 7), ran on their CPUs; 0.20 s of it "
		     "because hog (pid 9)");
	causes[0].culprit = &tasks[0];
	causes[0].culprit_seconds = 2;
	write_both(&variance, false, false);
	has(verdict, "because daemon (pid 7) and others ran on their CPUs");
}

/* A thread of the kernel can be neither moved nor stopped: what it does is said where that is known. */
static void test_kernel_thread(void **state)
{
	static const struct {
		const char *comm, *does;
		bool is_one;
	} rows[] = {
	    {"kdamond.0", "it is a thread of the kernel, which monitors accesses to memory (DAMON)", true},
	    {"kworker/0:1-eve", "which does deferred work", true},
	    {"ksoftirqd/3", "which handles soft interrupts", true},
	    {"rcu_preempt", "which ends grace periods", true},
	    {"md0_raid1", "which does IO to disks in a RAID", true},
	    {"oom_reaper", "it is a thread of the kernel.", true},
	    {"mdrun", "move or stop it", false},
	    {"loopback", "move or stop it", false},
	    {"hog", "move or stop it", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct result_interferer task = {.pid = 9, .seconds = 2};
		struct result_variance variance = slow("preempted");

		snprintf(task.comm, sizeof(task.comm), "%s", rows[i].comm);
		variance.diagnosis.interferers = &task;
		variance.diagnosis.interferer_count = 1;
		variance.diagnosis.interfered = 2;
		write_both(&variance, false, false);
		has(advice, rows[i].does);
		(rows[i].is_one ? lacks : has)(advice, "move or stop");
		/* the others can be moved, it cannot */
		variance.diagnosis.interfered = 5;
		write_both(&variance, false, false);
		(rows[i].is_one ? lacks : has)(advice, "move or stop");
		has(advice, "bind ranks and daemons apart");
		task.relation = VAPRO_SAME_JOB;
		write_both(&variance, false, false);
		lacks(advice, "kernel");
	}
}

/* What starts ranks forwards their output: it is no neighbour that could be moved. */
static void test_launcher(void **state)
{
	struct result_interferer task = {.comm = "hydra_pmi_proxy", .pid = 9, .seconds = 2};
	struct result_variance variance = slow("preempted");

	(void)state;
	variance.diagnosis.interferers = &task;
	variance.diagnosis.interferer_count = 1;
	variance.diagnosis.interfered = 2;
	write_both(&variance, false, false);
	has(advice, "it forwards what the ranks print");
	lacks(advice, "move or stop");
	strcpy(task.comm, "mpirunner");
	write_both(&variance, false, false);
	has(advice, "move or stop it");
}

/* One rank that waited is no "they". */
static void test_number(void **state)
{
	struct result_variance variance = slow("on_cpu");

	(void)state;
	variance.class = VAPRO_COMMUNICATION;
	variance.who = "rank 1";
	variance.rank_count = 1;
	write_both(&variance, true, false);
	has(verdict, "rank 1 lost 4.00 s: it waited for ranks that came late.");
	variance.effect_of = 3;
	write_both(&variance, true, false);
	has(verdict, "it waited for what variance 3 is about");
	variance.class = VAPRO_COMPUTATION;
	variance.effect_of = 0;
	variance.ratio_slow = 1.3;
	write_both(&variance, false, false);
	has(verdict, "rank 1 lost 4.00 s: it took 1.30 times as long, all of it on the CPU.");
	/* of work that is not known there is no usual time */
	variance.work_unknown = true;
	write_both(&variance, false, false);
	has(verdict, "rank 1 lost 4.00 s: all of it on the CPU.");
}

/* Places in words: the widest first, without the places inside it; and the certainty. */
static void test_places(void **state)
{
	static const struct result_shared facts[] = {{"host", "n2", 0, NULL},
						     {"cpu_model", "AMD EPYC 7742", 0, NULL},
						     {"numa", "1", 0, NULL},
						     {"cgroup", "/job", 0, NULL}};
	struct result_variance variance = slow("dram");

	(void)state;
	variance.diagnosis.shared = facts;
	variance.diagnosis.shared_count = 4;
	variance.confirmed = false;
	variance.confidence = VAPRO_PLACE;
	write_both(&variance, false, false);
	assert_string_equal(verdict,
			    "ranks 43-45, all on host n2, with CPU AMD EPYC 7742, in cgroup /job, lost 4.00 s: "
			    "100 % DRAM; by their place, not certain.");
	variance.diagnosis.shared = &facts[1];
	variance.diagnosis.shared_count = 1;
	write_both(&variance, false, false);
	has(verdict, "ranks 43-45, all on hosts with CPU AMD EPYC 7742, lost");
	has(advice, "begin with hosts with CPU AMD EPYC 7742, where every rank was slow");
	verdict__place(NULL, 0, 3, verdict, sizeof(verdict));
	assert_string_equal(verdict, "");
	verdict__place(facts, 1, 1, verdict, sizeof(verdict));
	assert_string_equal(verdict, ", on host n2,");
}

/* Threads of a team wait for each other, without a transfer. */
static void test_barrier_of_a_team(void **state)
{
	struct vapro_state at = {.class = VAPRO_COMMUNICATION,
				 .labels = "function=solve._omp_fn.2:barrier scope=process"};
	struct result_site site = {.state = &at, .lost_seconds = 4};
	struct result_culprit culprit = {.rank = 43, .thread = 5, .lost_seconds = 4};
	struct result_variance variance = slow("on_cpu");

	(void)state;
	variance.sites = &site;
	variance.site_count = 1;
	write_both(&variance, true, true);
	has(verdict, "threads of a rank wait at the barrier of solve._omp_fn.2");
	lacks(verdict, "transfers");
	lacks(verdict, "for thread");
	has(advice, "barrier of solve._omp_fn.2");
	lacks(advice, "network");
	variance.culprits = &culprit;
	variance.culprit_count = 1;
	variance.effect_of = 7;
	write_both(&variance, true, false);
	has(verdict, "wait at the barrier of solve._omp_fn.2 for thread 5 of rank 43, which variance 7 is about");
	/* a process without rank; and a call that is no barrier */
	culprit.rank = -1;
	variance.rank_count = 0;
	write_both(&variance, true, false);
	has(verdict, "threads of the process wait at the barrier of solve._omp_fn.2 for thread 5");
	lacks(verdict, "of rank");
	at.labels = "function=MPI_Barrier comm=0";
	variance.effect_of = 0;
	write_both(&variance, true, true);
	has(verdict, "transfers took longer");
}

/* Of a late rank whose work is not known it is said when it came. */
static void test_entered_last(void **state)
{
	static const int32_t ranks[] = {3};
	struct result_variance variance = slow("on_cpu");

	(void)state;
	variance.entered_last = (struct result_entered_last){
	    .ranks = ranks, .rank_count = 1, .who = "rank 3", .operations = 1, .of = 1, .late_seconds = 24};
	write_both(&variance, true, false);
	has(verdict, "they waited for ranks that came late; rank 3 entered last in 1 of 1 operation, 24.0 s after the "
		     "median rank");
	has(advice, "compare the work of rank 3 with that of the others");
	variance.entered_last.operations = 11;
	variance.entered_last.of = 12;
	write_both(&variance, true, false);
	has(verdict, "rank 3 entered last in 11 of 12 operations");
	/* the cause says more */
	variance.effect_of = 7;
	write_both(&variance, true, false);
	lacks(verdict, "entered last");
	variance.effect_of = 0;
	write_both(&variance, true, true);
	lacks(verdict, "entered last");
}

/* Ranks and threads of the job: what to do depends on how many CPUs they have. A rank of another job is named as that.
 */
static void test_relations(void **state)
{
	static const struct {
		enum vapro_relation relation;
		bool unknown;
		const char *advice;
	} cases[] = {
	    {VAPRO_OWN_THREAD, false, "although there are enough"},
	    {VAPRO_OWN_THREAD, true, "which CPUs they may use is not known"},
	    {VAPRO_SAME_JOB, true, "which CPUs they may use is not known"},
	    {VAPRO_OTHER_JOB, false, "app (pid 9, rank 3 of job slurm:7) ran 2.0 s on the CPU of rank 1: both jobs"},
	    {VAPRO_FOREIGN, false, "app (pid 9) ran 2.0 s on the CPU of rank 1: move or stop it"},
	};
	struct result_interferer task = {.comm = "app", .pid = 9, .seconds = 2, .rank = 3};
	static const int32_t ranks[] = {1};
	struct result_factor factors[] = {
	    {.name = "suspension", .stage = 1, .contribution = 1, .impact_seconds = 2, .major = true},
	    {.name = "preempted",
	     .stage = 2,
	     .parent = "suspension",
	     .contribution = 1,
	     .impact_seconds = 2,
	     .major = true}};
	struct result_variance variance = {
	    .who = "rank 1",
	    .ranks = ranks,
	    .rank_count = 1,
	    .lost_seconds = 2,
	    .diagnosis = {
		.factors = factors, .factor_count = 2, .interferers = &task, .interferer_count = 1, .interfered = 2}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		task.relation = cases[i].relation;
		variance.diagnosis.interfered_own =
		    task.relation == VAPRO_SAME_JOB || task.relation == VAPRO_OWN_THREAD ? 2 : 0;
		task.job = task.relation == VAPRO_OTHER_JOB ? "slurm:7" : NULL;
		variance.diagnosis.cpus_unknown = cases[i].unknown;
		write_both(&variance, false, false);
		has(advice, cases[i].advice);
	}
}

/* A task of another program is to blame, unless the job's own threads took more than all others together. */
static void test_named_interferer(void **state)
{
	struct result_interferer tasks[] = {{.comm = "rank", .pid = 10, .seconds = 0.8, .relation = VAPRO_SAME_JOB},
					    {.comm = "rank", .pid = 11, .seconds = 0.7, .relation = VAPRO_SAME_JOB},
					    {.comm = "kdamond", .pid = 77, .seconds = 0.1, .relation = VAPRO_FOREIGN}};
	struct result_diagnosis diagnosis = {.interferers = tasks, .interferer_count = 3};

	(void)state;
	assert_int_equal(interferers__named(&diagnosis)->pid, 10);
	tasks[2].seconds = 1.6;
	assert_int_equal(interferers__named(&diagnosis)->pid, 77);
	diagnosis.interferer_count = 2;
	assert_int_equal(interferers__named(&diagnosis)->pid, 10);
	/* 200 processes that took 1 % each are not listed */
	diagnosis.interfered = 20;
	diagnosis.interfered_own = 1.5;
	assert_null(interferers__named(&diagnosis));
	diagnosis.interferer_count = 3;
	assert_int_equal(interferers__named(&diagnosis)->pid, 77);
	diagnosis.interfered_own = 12;
	assert_int_equal(interferers__named(&diagnosis)->pid, 10);
	diagnosis.interfered = diagnosis.interfered_own = 0;
	diagnosis.interferer_count = 2;
	tasks[0].relation = tasks[1].relation = VAPRO_MONITOR;
	assert_int_equal(interferers__named(&diagnosis)->pid, 10);
	diagnosis.interferer_count = 0;
	assert_null(interferers__named(&diagnosis));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_named_interferer),
	    cmocka_unit_test(test_entered_last),
	    cmocka_unit_test(test_barrier_of_a_team),
	    cmocka_unit_test(test_each_factor),
	    cmocka_unit_test(test_each_meaning),
	    cmocka_unit_test(test_explained),
	    cmocka_unit_test(test_finest),
	    cmocka_unit_test(test_stopped),
	    cmocka_unit_test(test_on_cpu),
	    cmocka_unit_test(test_memory_cures),
	    cmocka_unit_test(test_slow_path),
	    cmocka_unit_test(test_places),
	    cmocka_unit_test(test_place_within_a_host),
	    cmocka_unit_test(test_asleep),
	    cmocka_unit_test(test_advice_on_causes),
	    cmocka_unit_test(test_advice_on_tasks),
	    cmocka_unit_test(test_launcher),
	    cmocka_unit_test(test_verdict_on_tasks),
	    cmocka_unit_test(test_kernel_thread),
	    cmocka_unit_test(test_place_of_one_rank),
	    cmocka_unit_test(test_quota),
	    cmocka_unit_test(test_oversubscribed_part),
	    cmocka_unit_test(test_number),
	    cmocka_unit_test(test_relations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
