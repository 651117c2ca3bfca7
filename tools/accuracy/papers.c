/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The case studies of VAPRO, NoiseMiner, vSensor and varbench. Where a paper leaves a number open, it is
 * chosen so that the fault costs what the paper says.
 */
#include "papers.h"

#include <string.h>

#include "cases.h"

#define C VAPRO_COMPUTATION
#define COMM VAPRO_COMMUNICATION
#define IO VAPRO_IO
#define ALARM FINDING_ALARM
#define PLACE FINDING_PLACE

static void size(struct job *job, int ranks, int hosts, double seconds)
{
	job->ranks = ranks;
	job->hosts = hosts;
	job->seconds = seconds;
	job->jitter = 0.01;
}

static struct job_ranks one(int rank)
{
	return (struct job_ranks){RANKS_RANGE, rank, rank};
}

static struct job_ranks host(int number)
{
	return (struct job_ranks){RANKS_HOST, number, number};
}

static struct job_ranks socket_of(int number)
{
	return (struct job_ranks){RANKS_SOCKET, number, number};
}

/* What distinguishes studies of one function: a second, a ratio, a count of steps, or jitter. */
static double number(const struct job *job)
{
	return *(const double *)job->variant;
}

/* 000: one second of another task on one rank's CPU, which takes half of it. */
static void sp(struct job *job)
{
	size(job, 8, 1, 40);
	job__program(job, 8e6, 0.05, 0);
	job__fault(job, C, ALARM, ALARM, EFFECT_CPU_BUSY, 20, 21, 2)->ranks = one(5);
}

/* 000: noise on two of 86 nodes, which costs 42.8 % of their time; mpiP blames the network. */
static void cg2048(struct job *job)
{
	size(job, 2048, 86, 8);
	job__program(job, 8e6, 0.05, 0);
	job__fault(job, C, ALARM, ALARM, EFFECT_CPU_BUSY, 2.1, 4.0, 1 / (1 - 0.428))->ranks = host(1);
	job__fault(job, C, ALARM, ALARM, EFFECT_CPU_BUSY, 2.1, 4.0, 1 / (1 - 0.428))->ranks = host(43);
}

/* 003: 128 ranks, noise on two nodes, one after the other. */
static void cg128(struct job *job)
{
	size(job, 128, 8, 80);
	job__program(job, 10e6, 0.05, 0);
	job__fault(job, C, ALARM, ALARM, EFFECT_CPU_BUSY, 20, 30, 2)->ranks = host(2);
	job__fault(job, C, ALARM, ALARM, EFFECT_CPU_BUSY, 50, 60, 2)->ranks = host(5);
}

/* One bad host, with cyclic placement of ranks: still one fault. */
static void cyclic(struct job *job)
{
	size(job, 64, 8, 60);
	job->cyclic = true;
	job__program(job, 10e6, 0.05, 0);
	job__fault(job, C, ALARM, ALARM, EFFECT_CPU_BUSY, 30, 38, 1.5)->ranks = host(2);
}

/* 000: the L2 cache of one socket evicts lines that it should hold, from the given second on. */
static void eviction(struct job *job)
{
	struct job_effect *effect;

	size(job, 36, 1, 80);
	job__program(job, 12e6, 0.05, 0);
	effect = job__fault(job, C, ALARM, PLACE, EFFECT_SLOW, number(job), 0, 1.35);
	effect->ranks = socket_of(1);
	effect->cause = VAPRO_L2;
	effect->second = VAPRO_DRAM;
	effect->share = 0.44; /* 38.0 of 48.2 + 38.0 */
}

/* 000: a node with slow memory, from start to end; all kernels are bound by memory. */
static void nekbone(struct job *job)
{
	size(job, 64, 3, 100);
	job__program(job, 10e6, 0.05, 0);
	job->steps[JOB_COMPUTE].memory = 0.6;
	job__fault(job, C, ALARM, PLACE, EFFECT_SLOW, 0, 0, number(job))->ranks = host(2);
}

/* 003: a bad node of CG, 21 % of the time of all; computation in registers is as fast as elsewhere. */
static void cg_bad_node(struct job *job)
{
	struct job_effect *effect;

	size(job, 256, 16, 80);
	job__program(job, 6e6, 0.05, 0);
	job->steps[JOB_MEMORY].ns = 8e6;
	job->steps[JOB_MEMORY].memory = 0.8;
	effect = job__fault(job, C, ALARM, PLACE, EFFECT_SLOW, 0, 0, 1.37);
	effect->ranks = host(9);
	effect->steps = 1U << JOB_MEMORY;
}

/* 000: the file system is slow for rank 0 alone, for 8 s from the given second on; from 0 on always. */
static void raxml(struct job *job)
{
	double begin = number(job), end = begin > 0 ? begin + 8 : 0;
	struct job_effect *effect;

	size(job, 8, 2, 60);
	job__program(job, 10e6, 0.05, 0.2);
	effect = job__fault(job, IO, ALARM, ALARM, EFFECT_CALLS, begin, end, 3);
	effect->ranks = one(0);
	effect->steps = 1U << JOB_WRITE;
	effect->cause = VAPRO_BLOCKED_IO;
	effect->reported = true;
}

static void iolong(struct job *job)
{
	struct job_effect *effect;

	size(job, 8, 2, 630);
	job__program(job, 20e6, 0.05, 0.2);
	effect = job__fault(job, IO, ALARM, ALARM, EFFECT_CALLS, 30, 0, 3);
	effect->steps = 1U << JOB_WRITE;
	effect->cause = VAPRO_BLOCKED_IO;
	effect->reported = true;
}

/* 003: the all-to-all exchanges of FT take 3.37 times as long from 16 s to 67 s, at one call-site or at two. */
static void fourier(struct job *job)
{
	static const struct job_step steps[] = {
	    {.kind = STEP_COMPUTE, .ns = 30e6, .memory = 0.4},
	    {.kind = STEP_COLLECTIVE, .ns = 12e6, .bytes = 4 << 20},
	    {.kind = STEP_COMPUTE, .ns = 20e6, .memory = 0.2},
	    {.kind = STEP_COLLECTIVE, .ns = 6e6, .bytes = 2 << 20},
	};

	size(job, 64, 8, 100);
	memcpy(job->steps, steps, sizeof(steps));
	job->step_count = (int)number(job);
	job__fault(job, COMM, ALARM, ALARM, EFFECT_CALLS, 16, 67, 3.37);
}

/* A network adapter that makes all transfers of one rank three times as long, for 10 s or always. */
static void adapter(struct job *job)
{
	double begin = number(job), end = begin > 0 ? begin + 10 : 0;

	size(job, 8, 4, 60);
	job__program(job, 8e6, 0.15, 0);
	job__fault(job, COMM, ALARM, ALARM, EFFECT_CALLS, begin, end, 3)->ranks = one(3);
}

static void netbad(struct job *job)
{
	size(job, 8, 4, 630);
	job__program(job, 15e6, 0.15, 0);
	job__fault(job, COMM, ALARM, ALARM, EFFECT_CALLS, 30, 0, 3);
}

/* 001: each MPI_Send of rank 0 takes 5.70 ms more, every 21.34 ms. */
static void namd(struct job *job)
{
	struct job_effect *effect;

	size(job, 8, 2, 30.4);
	job__program(job, 9e6, 0.02, 0);
	job->steps[JOB_EXCHANGE].ns = 0.1e6;
	effect = job__fault(job, COMM, ALARM, ALARM, EFFECT_CALLS, 0, 0, 58);
	effect->ranks = one(0);
	effect->steps = 1U << JOB_EXCHANGE;
}

/* 000: STREAM on the idle cores of one socket uses its memory bandwidth for a while. */
static void mem(struct job *job)
{
	struct job_effect *effect;

	size(job, 16, 1, 60);
	job__program(job, 8e6, 0.05, 0);
	effect = job__fault(job, C, ALARM, PLACE, EFFECT_SLOW, 25, 35, 1.5);
	effect->ranks = socket_of(0);
	effect->steps = 1U << JOB_MEMORY;
}

/* 004: a power cap, and the machine reports its frequency. */
static void cap(struct job *job)
{
	size(job, 16, 2, 80);
	job__program(job, 8e6, 0.05, 0);
	job__fault(job, C, ALARM, ALARM, EFFECT_FREQUENCY, 30, 50, 1.4);
}

/* A node goes bad after 30 s and stays so for 20 times as long. */
static void gobad(struct job *job)
{
	struct job_effect *effect;

	size(job, 16, 4, 630);
	job__program(job, 15e6, 0.05, 0);
	effect = job__fault(job, C, ALARM, PLACE, EFFECT_SLOW, 30, 0, 1.3);
	effect->ranks = host(1);
	effect->steps = 1U << JOB_COMPUTE;
	effect = job__effect(job, EFFECT_SLOW, 30, 0, 1.6);
	effect->ranks = host(1);
	effect->steps = 1U << JOB_MEMORY;
	effect->fault = 1;
}

/* Four ranks with fragments of 5 ms and nothing wrong but jitter. */
static void quiet(struct job *job)
{
	size(job, 4, 1, 40);
	job__program(job, 5e6, 0.05, 0);
	job->jitter = number(job);
}

/* One computation of all takes 40 % less. */
static void lucky(struct job *job)
{
	quiet(job);
	job__effect(job, EFFECT_LUCKY, 10, 0, 0.6)->ranks = one(2);
}

#define P .part = "papers", .kind =
static const struct accuracy_case cases[] = {
    {P "sp", CASE_FAULT, .study = sp},
    {P "cg2048", CASE_FAULT, .study = cg2048},
    {P "cg128", CASE_FAULT, .study = cg128},
    {P "cyclic", CASE_FAULT, .study = cyclic},
    {P "hpl", CASE_FAULT, .study = eviction, .variant = VARIANT(double, 30)},
    {P "hpl0", CASE_FAULT, .study = eviction, .variant = VARIANT(double, 0)},
    {P "nek124", CASE_FAULT, .study = nekbone, .variant = VARIANT(double, 1.24)},
    {P "nek114", CASE_FAULT, .study = nekbone, .variant = VARIANT(double, 1.15)},
    {P "cg_bad_node", CASE_FAULT, .study = cg_bad_node},
    {P "rax_always", CASE_FAULT, .study = raxml, .variant = VARIANT(double, 0)},
    {P "rax_spell", CASE_FAULT, .study = raxml, .variant = VARIANT(double, 30)},
    {P "iolong", CASE_LASTING, .study = iolong},
    {P "ft1", CASE_FAULT, .study = fourier, .variant = VARIANT(double, 2)},
    {P "ft2", CASE_FAULT, .study = fourier, .variant = VARIANT(double, 4)},
    {P "nic_always", CASE_FAULT, .study = adapter, .variant = VARIANT(double, 0)},
    {P "nic_spell", CASE_FAULT, .study = adapter, .variant = VARIANT(double, 25)},
    {P "netbad", CASE_LASTING, .study = netbad},
    {P "namd", CASE_FAULT, .study = namd},
    {P "mem", CASE_FAULT, .study = mem},
    {P "cap", CASE_FAULT, .study = cap},
    {P "gobad", CASE_LASTING, .study = gobad},
    {P "lucky", CASE_QUIET, .study = lucky, .variant = VARIANT(double, 0.01)},
    {P "noisy3", CASE_QUIET, .study = quiet, .variant = VARIANT(double, 0.03)},
    {P "noisy6", CASE_QUIET, .study = quiet, .variant = VARIANT(double, 0.06)},
};

const struct case_table papers_cases = {cases, sizeof(cases) / sizeof(*cases)};

#define BOTH(text)                                                                                                     \
	{                                                                                                              \
		[VAPRO_BY_INSTRUCTIONS] = text, [VAPRO_BY_ARGUMENTS] = text                                            \
	}
#define COUNTED(text)                                                                                                  \
	{                                                                                                              \
		[VAPRO_BY_INSTRUCTIONS] = text                                                                         \
	}
/* The time of a call is measured with its usual wait, so the ratio of calls is less than that of their transfers. */
#define ONE_PATH BOTH("ransfers;no rank was late|no peer was late;times as long")
#define MEMORY COUNTED("backend|memory|DRAM")
#define EVICTED COUNTED("backend;memory;L2|DRAM")
#define HOG BOTH("off the CPU;hog")

const struct paper papers[] = {
    {"sp", "000: 1 s of noise, half of a CPU", .verdict = HOG, .ratio = 2, .within = 0.05, .waiting = true},
    {"cg2048", "000: two nodes, 42.8 %, not the network", .place = "host n", .verdict = HOG, .waiting = true},
    {"cg128", "003: two injections on two nodes", .place = "host n", .verdict = HOG, .waiting = true},
    {"cyclic", "one bad host is one fault", .place = "host n2", .verdict = HOG, .waiting = true},
    {"hpl", "000: L2 evictions on socket 1", .place = "socket 1", .verdict = EVICTED, .ratio = 1.35, .within = 0.05},
    {"hpl0", "000: the same from the start", .place = "socket 1", .verdict = EVICTED, .ratio = 1.35, .within = 0.05},
    {"nek124", "000: slow memory, 1.24 times", .place = "host n2", .verdict = MEMORY, .ratio = 1.24, .within = 0.02},
    {"nek114", "000: slow memory, 1.15 times", .place = "host n2", .verdict = MEMORY, .ratio = 1.15, .within = 0.02},
    /* ratio of the slow computation, and of all computation */
    {"cg_bad_node", "003: a bad node of CG, 21 %", .place = "host n9", .verdict = MEMORY, .ratio = 1.37,
     .also_ratio = (6 + 8 * 1.37) / 14, .within = 0.02},
    {"rax_always", "000: IO of rank 0 is slow", .verdict = BOTH("IO"), .ratio = 3, .within = 0.05},
    {"rax_spell", "000: the same for 8 s", .verdict = BOTH("IO"), .ratio = 3, .within = 0.05},
    {"iolong", "000: IO is slow for good", .verdict = BOTH("IO"), .ratio = 3, .within = 0.05},
    {"ft1", "003: all-to-all 3.37 times, one call-site", .verdict = BOTH("ransfers"), .ratio = 3.37, .within = 0.05},
    {"ft2", "003: the same, two call-sites", .verdict = BOTH("ransfers"), .ratio = 3.37, .within = 0.05},
    {"nic_always", "transfers of one rank, three times", .place = "host n1", .verdict = ONE_PATH, .ratio = 3,
     .within = 0.15},
    {"nic_spell", "the same for 10 s", .place = "host n1", .verdict = ONE_PATH, .ratio = 3, .within = 0.15},
    {"netbad", "003: the network is slow for good", .verdict = BOTH("ransfers"), .ratio = 3, .within = 0.15},
    {"namd", "001: MPI_Send of rank 0, +5.70 ms", .verdict = BOTH("ransfers;no rank was late|no peer was late")},
    {"namd-sends", "001: the same, at random, no rank waits",
     .verdict = BOTH("ransfers|sends;no rank was late|no peer was late"), .lost_within = 0.05, .stalls_s = 5.7e-3},
    {"namd-sends-mild", "001: the same, 2.9 % of the time", .lost_within = 0.05, .stalls_s = 5.7e-3},
    {"namd-sends-all", "001: the same on all ranks", .lost_within = 0.05, .stalls_s = 5.7e-3},
    {"ep1", "000: EP, one computation of 60 s", .ratio = 1.4, .within = 0.02, .coverage = 0.7},
    {"ep6", "000: EP in six pieces", .ratio = 1.4, .within = 0.02, .coverage = 0.7, .waiting = true},
    {"hpl208", "000: HPL's shrinking work, 208 times", .place = "socket 1", .verdict = COUNTED("backend"),
     .ratio = 1.222, .within = 0.02, .lost_within = 0.1, .coverage = 0.7},
    {"hpl208-middle", "000: the same, slow from 20 s on", .place = "socket 1", .verdict = COUNTED("backend"),
     .ratio = 1.222, .within = 0.02, .lost_within = 0.1, .coverage = 0.7},
    {"hpl1000", "000: HPL in 1,000 iterations", .place = "socket 1", .verdict = COUNTED("backend"), .ratio = 1.222,
     .within = 0.02, .lost_within = 0.1, .coverage = 0.7},
    {"hpl1000-middle", "000: the same, slow from 20 s on", .place = "socket 1", .verdict = COUNTED("backend"),
     .ratio = 1.222, .within = 0.02, .lost_within = 0.1, .coverage = 0.7},
    {"long2s", "iterations of 2 s, one host slow", .place = "host n1", .ratio = 1.3, .within = 0.02, .raised_s = 20},
    {.kind = "hpl-good-1", .study = "000: a good HPL, jitter of 1 %"},
    {.kind = "hpl-good-6", .study = "000: a good HPL, jitter of 6 %"},
    {"mem", "000: STREAM beside one socket", .place = "socket 0", .verdict = COUNTED("backend;memory;DRAM")},
    {"cap", "004: a power cap", .verdict = BOTH("frequency"), .ratio = 1.4, .within = 0.05},
    {"gobad", "003: a node goes bad and stays so", .place = "host n1", .verdict = MEMORY},
    {.kind = "lucky", .study = "003: one lucky fragment is no fault"},
    {.kind = "noisy3", .study = "003: jitter of 3 % is no fault"},
    {.kind = "noisy6", .study = "003: jitter of 6 % is no fault"},
};

const size_t paper_count = sizeof(papers) / sizeof(*papers);

const struct paper *papers__find(const char *kind)
{
	for (size_t i = 0; i < paper_count; i++) {
		if (!strcmp(papers[i].kind, kind))
			return &papers[i];
	}
	return NULL;
}
