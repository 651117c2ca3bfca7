/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Faults of computation. */
#include "cases.h"

#define C VAPRO_COMPUTATION
#define ALARM FINDING_ALARM
#define PLACE FINDING_PLACE

/* When a fault begins, seconds: references must exist before it. */
static double onset(const struct job *job, struct draw *draw, double length_ms)
{
	double least = length_ms >= 400 ? 45 : 20;

	return draw__between(draw, least, fmax(least + 1, 0.5 * job->seconds));
}

/*
 * Length of a disturbance that takes 1 - 1 / factor of the time, so that it costs at least low s, and clearly
 * more than the scatter of one fragment: a smaller cost cannot be measured.
 */
static double lasts(const struct job *job, struct draw *draw, double factor, double low, double longest)
{
	double scatter = 20 * job->jitter * job->steps[JOB_COMPUTE].ns / 1e9;
	double least = 1.1 * fmax(low, scatter) / (1 - 1 / factor);

	return least * pow(fmax(1, longest / least), draw__unit(draw));
}

static double strength(struct draw *draw)
{
	return draw__unit(draw) < 0.5 ? draw__between(draw, 1.22, 1.6) : draw__between(draw, 1.6, 3);
}

/* Another task has the CPU of one rank for a while. */
static struct job_effect *busy_rank(struct job *job, struct draw *draw, double length_ms)
{
	double factor = strength(draw), begin;
	struct job_effect *effect;

	cases__usual(job, draw, length_ms, 0.05, 0);
	begin = onset(job, draw, length_ms);
	effect = job__fault(job, C, ALARM, ALARM, EFFECT_CPU_BUSY, begin, begin + lasts(job, draw, factor, 0.12, 20),
			    factor);
	effect->ranks = cases__rank(job, draw);
	return effect;
}

static void hog(struct job *job, struct draw *draw, double length_ms)
{
	busy_rank(job, draw, length_ms);
}

struct many {
	int ranks;
	double seconds; /* with fragments of up to 100 ms */
};

static void hog_of_many(struct job *job, struct draw *draw, double length_ms)
{
	struct job_effect *effect = busy_rank(job, draw, length_ms);
	const struct many *many = job->variant;

	job->ranks = many->ranks;
	job->hosts = many->ranks / 32;
	job->seconds = length_ms > 100 ? 120 : many->seconds;
	effect->ranks = cases__rank(job, draw);
	effect->begin = draw__between(draw, 0.4, 0.6) * job->seconds;
	effect->end = effect->begin + draw__between(draw, 2, 10);
}

/* Few ranks, or one alone, need longer for a reference. */
static void hog_small(struct job *job, struct draw *draw, double length_ms)
{
	struct job_effect *effect = busy_rank(job, draw, length_ms);
	double length = effect->end - effect->begin;

	job->ranks = 1 << draw__int(draw, 0, 3);
	job->hosts = 1;
	job->seconds = length_ms >= 400 ? 240 : 120;
	effect->ranks = cases__rank(job, draw);
	effect->begin = draw__between(draw, 0.5, 0.75) * job->seconds;
	effect->end = effect->begin + length;
}

/* In the first part of each period only. */
static void duty(struct job *job, struct draw *draw, double length_ms)
{
	struct job_effect *effect = busy_rank(job, draw, length_ms);

	effect->period = draw__between(draw, 0.05, 0.2);
	effect->share = draw__between(draw, 0.1, 0.5);
	effect->factor = 1;
	effect->end = effect->begin + lasts(job, draw, 1 / (1 - effect->share), 0.15, 20);
}

static void steal(struct job *job, struct draw *draw, double length_ms)
{
	busy_rank(job, draw, length_ms)->cause = VAPRO_STEAL;
}

/* A CPU quota: no CPU time for the rest of each 100 ms. */
static void quota(struct job *job, struct draw *draw, double length_ms)
{
	struct job_effect *effect = busy_rank(job, draw, length_ms);

	effect->cause = VAPRO_THROTTLED;
	effect->period = 0.1;
	effect->share = draw__between(draw, 0.2, 0.6);
	effect->factor = 1;
	effect->end = effect->begin + lasts(job, draw, 1 / (1 - effect->share), 0.15, 20);
}

/* One rank is slow in both computations, without a reported reason. */
static void silent_rank(struct job *job, struct draw *draw, double length_ms)
{
	double factor = draw__between(draw, 1.22, 2.5), begin;

	cases__usual(job, draw, length_ms, 0.05, 0);
	begin = onset(job, draw, length_ms);
	job__fault(job, C, ALARM, ALARM, EFFECT_SLOW, begin, begin + lasts(job, draw, factor, 0.4, 25), factor)->ranks =
	    cases__rank(job, draw);
}

/* One socket's memory is slow: the memory-bound computation shows it, the other does not. */
static void memory_socket(struct job *job, struct draw *draw, double length_ms)
{
	double factor = draw__between(draw, 1.22, 2), begin;
	struct job_effect *effect;

	cases__usual(job, draw, length_ms, 0.05, 0);
	begin = draw__unit(draw) < 0.3 ? 0 : onset(job, draw, length_ms);
	effect = job__fault(job, C, ALARM, PLACE, EFFECT_SLOW, begin,
			    begin > 0 ? begin + draw__between(draw, 10, 40) : 0, factor);
	effect->steps = 1U << JOB_MEMORY;
	effect->ranks = cases__socket(job, draw);
}

static void bad_node(struct job *job, struct draw *draw, double length_ms, double factor, bool middle)
{
	cases__usual(job, draw, length_ms, 0.05, 0);
	job->jitter = draw__between(draw, 0.005, 0.02);
	job->cyclic = draw__unit(draw) < 0.5;
	job__fault(job, C, ALARM, PLACE, EFFECT_SLOW, middle ? onset(job, draw, length_ms) : 0, 0, factor)->ranks =
	    cases__host(job, draw);
}

struct node {
	double factor;
	bool middle; /* it becomes slow in the middle of the run */
};

static void node(struct job *job, struct draw *draw, double length_ms)
{
	const struct node *node = job->variant;

	bad_node(job, draw, length_ms, node->factor, node->middle);
}

static void node_256(struct job *job, struct draw *draw, double length_ms)
{
	bad_node(job, draw, length_ms, draw__between(draw, 1.2, 1.4), true);
	job->ranks = 256;
	job->hosts = 8;
	job->effects[0].ranks = cases__host(job, draw);
}

/* Ranks stall, for lengths around the bars; the kernel reports the reason. */
static void stalls(struct job *job, struct draw *draw, double length_ms)
{
	static const double lengths[][2] = {{0.05, 0.14}, {0.152, 0.25}, {0.25, 0.5}};
	static const enum vapro_factor causes[] = {VAPRO_PREEMPTED, VAPRO_STEAL, VAPRO_WAKEUP_WAIT, VAPRO_BLOCKED_IO,
						   VAPRO_STOPPED};
	double begin;

	cases__usual(job, draw, length_ms, 0.05, 0);
	begin = length_ms >= 400 ? 45 : 20;
	for (int i = 0; i < 3; i++) {
		struct job_effect *effect =
		    job__fault(job, C, ALARM, ALARM, EFFECT_STALLS, begin + 4 * i, job->seconds - 3, 1);

		effect->period = 12;
		effect->length = draw__between(draw, lengths[i][0], lengths[i][1]);
		effect->cause = causes[draw__int(draw, 0, 4)];
	}
}

/* 10 ms of another rank's CPU each 100 ms. No finding is demanded; no other class may be blamed. */
static void os_noise(struct job *job, struct draw *draw, double length_ms)
{
	struct job_effect *effect;
	double begin;

	cases__usual(job, draw, length_ms, 0.05, 0);
	begin = onset(job, draw, length_ms);
	effect = job__fault(job, C, FINDING_NONE, FINDING_NONE, EFFECT_MOVING, begin,
			    begin + draw__between(draw, 10, 30), 1);
	effect->period = 0.1;
	effect->length = draw__between(draw, 0.008, 0.012);
}

static void drift(struct job *job, struct draw *draw, double length_ms)
{
	cases__usual(job, draw, length_ms, 0.05, 0);
	job->seconds = 150;
	job__fault(job, C, ALARM, FINDING_DRIFT, EFFECT_DRIFT, onset(job, draw, length_ms) / 2 + 10, 150,
		   draw__between(draw, 1.35, 1.7));
	job->faults[0].vague = true;
}

/* All ranks are slow from one moment on. */
static void all_slow(struct job *job, struct draw *draw, double length_ms)
{
	cases__usual(job, draw, length_ms, 0.05, 0);
	job__fault(job, C, ALARM, FINDING_DRIFT, EFFECT_SLOW, onset(job, draw, length_ms), 0,
		   draw__between(draw, 1.22, 1.6));
}

static void frequency(struct job *job, struct draw *draw, double length_ms, bool all)
{
	double begin;
	struct job_effect *effect;

	cases__usual(job, draw, length_ms, 0.05, 0);
	begin = onset(job, draw, length_ms);
	effect = job__fault(job, C, ALARM, ALARM, EFFECT_FREQUENCY, begin,
			    draw__unit(draw) < 0.5 ? 0 : begin + draw__between(draw, 10, 30),
			    draw__between(draw, 1.22, 1.6));
	if (!all)
		effect->ranks = cases__host(job, draw);
}

static void frequency_all(struct job *job, struct draw *draw, double length_ms)
{
	frequency(job, draw, length_ms, true);
}

static void frequency_host(struct job *job, struct draw *draw, double length_ms)
{
	frequency(job, draw, length_ms, false);
}

/* One rank sleeps in its computation and sends late; all others wait for it. */
static void late_sender(struct job *job, struct draw *draw, double length_ms)
{
	double part = draw__between(draw, 0.4, 1), begin;
	struct job_effect *effect;

	cases__usual(job, draw, length_ms, 0.05, 0);
	begin = onset(job, draw, length_ms);
	effect = job__fault(job, C, ALARM, ALARM, EFFECT_SLEEP, begin, begin + lasts(job, draw, 1 + part, 0.4, 15), 1);
	effect->ranks = cases__rank(job, draw);
	effect->steps = 1U << JOB_COMPUTE;
	effect->length = part * length_ms / 1e3;
}

/* A hog on one rank, another rank silently slow in both computations, at the same time. */
static void two_separate(struct job *job, struct draw *draw, double length_ms)
{
	struct job_effect *first = busy_rank(job, draw, length_ms), *second;
	int rank = (first->ranks.first + draw__int(draw, 3, job->ranks - 3)) % job->ranks;

	first->end = first->begin + draw__between(draw, 6, 20);
	second = job__fault(job, C, ALARM, ALARM, EFFECT_SLOW, first->begin + draw__between(draw, 0, 3),
			    first->end + draw__between(draw, 0, 5), draw__between(draw, 1.3, 2));
	second->ranks = (struct job_ranks){RANKS_RANGE, rank, rank};
}

/* Two hogs on neighbours, one twice as bad as the other, overlapping. */
static void two_adjacent(struct job *job, struct draw *draw, double length_ms)
{
	struct job_effect *first = busy_rank(job, draw, length_ms), *second;
	int rank = first->ranks.first + (first->ranks.first + 1 < job->ranks ? 1 : -1);

	first->factor = draw__between(draw, 1.9, 2.6);
	first->end = first->begin + draw__between(draw, 6, 15);
	second = job__fault(job, C, ALARM, ALARM, EFFECT_CPU_BUSY, first->begin + draw__between(draw, 2, 4),
			    first->end + draw__between(draw, 2, 5), draw__between(draw, 1.3, 1.45));
	second->ranks = (struct job_ranks){RANKS_RANGE, rank, rank};
}

static void two_same_rank(struct job *job, struct draw *draw, double length_ms)
{
	struct job_effect *first = busy_rank(job, draw, length_ms), *second;
	double begin;

	first->end = first->begin + lasts(job, draw, first->factor, 0.3, 10);
	begin = first->end + draw__between(draw, 6, 12);
	second = job__fault(job, C, ALARM, ALARM, EFFECT_CPU_BUSY, begin, begin + draw__between(draw, 3, 10),
			    draw__between(draw, 1.3, 2.5));
	second->ranks = first->ranks;
	job->seconds = fmax(job->seconds, second->end + 10);
}

struct lasting {
	enum finding arguments;
	enum effect_kind kind;
	double low, high; /* of its factor */
	struct job_ranks (*ranks)(const struct job *job, struct draw *draw);
};

static void lasting(struct job *job, struct draw *draw, double length_ms)
{
	const struct lasting *lasting = job->variant;
	double factor = draw__between(draw, lasting->low, lasting->high);
	struct job_effect *effect;

	cases__usual(job, draw, length_ms, 0.05, 0);
	job->ranks = 16;
	job->hosts = 2;
	job->seconds = 630;
	job->jitter = draw__between(draw, 0.005, 0.02);
	effect = job__fault(job, C, ALARM, lasting->arguments, lasting->kind, 30, 0, factor);
	if (lasting->ranks)
		effect->ranks = lasting->ranks(job, draw);
}

#define S .part = "simulated", .kind =
static const struct accuracy_case cases[] = {
    {S "hog", CASE_FAULT, {0.1, 1, 20, 500, 2000}, hog},
    {S "hog-small", CASE_FAULT, {1, 20, 500}, hog_small},
    {S "hog-256", CASE_FAULT | CASE_LARGE, {1, 20, 500}, hog_of_many, VARIANT(struct many, 256, 60)},
    {S "hog-1024", CASE_FAULT | CASE_LARGE, {20, 500}, hog_of_many, VARIANT(struct many, 1024, 60)},
    {S "hog-4096", CASE_FAULT | CASE_LARGE, {20, 500}, hog_of_many, VARIANT(struct many, 4096, 45)},
    {S "duty", CASE_FAULT, {1, 20, 500}, duty},
    {S "steal", CASE_FAULT, {1, 20, 500}, steal},
    {S "quota", CASE_FAULT, {1, 20, 500}, quota},
    {S "silent-rank", CASE_FAULT, {0.1, 1, 20, 500}, silent_rank},
    {S "memory-socket", CASE_FAULT, {1, 20, 500}, memory_socket},
    {S "node-start-5", CASE_FAULT, {1, 20, 500}, node, VARIANT(struct node, 1.055, false)},
    {S "node-start-10", CASE_FAULT, {1, 20, 500}, node, VARIANT(struct node, 1.1, false)},
    {S "node-start-20", CASE_FAULT, {1, 20, 500}, node, VARIANT(struct node, 1.2, false)},
    {S "node-middle-5", CASE_FAULT, {1, 20, 500}, node, VARIANT(struct node, 1.055, true)},
    {S "node-middle-10", CASE_FAULT, {1, 20, 500}, node, VARIANT(struct node, 1.1, true)},
    {S "node-middle-20", CASE_FAULT, {1, 20, 500}, node, VARIANT(struct node, 1.2, true)},
    {S "node-256", CASE_FAULT | CASE_LARGE, {20, 500}, node_256},
    {S "stalls", CASE_FAULT, {1, 20, 500}, stalls},
    {S "os-noise", CASE_FAULT, {1, 20, 500}, os_noise},
    {S "drift", CASE_FAULT, {1, 20, 500}, drift},
    {S "all-slow", CASE_FAULT, {1, 20, 500}, all_slow},
    {S "frequency-all", CASE_FAULT, {1, 20, 500}, frequency_all},
    {S "frequency-host", CASE_FAULT, {1, 20, 500}, frequency_host},
    {S "late-sender", CASE_FAULT, {1, 20, 500}, late_sender},
    {S "two-separate", CASE_FAULT, {1, 20, 500}, two_separate},
    {S "two-adjacent", CASE_FAULT, {1, 20, 500}, two_adjacent},
    {S "two-same-rank", CASE_FAULT, {1, 20, 500}, two_same_rank},
    {S "lasting-hog",
     CASE_LASTING,
     {1, 20, 500},
     lasting,
     VARIANT(struct lasting, ALARM, EFFECT_CPU_BUSY, 1.3, 2.5, cases__rank)},
    {S "lasting-rank",
     CASE_LASTING,
     {1, 20, 500},
     lasting,
     VARIANT(struct lasting, ALARM, EFFECT_SLOW, 1.22, 2, cases__rank)},
    {S "lasting-node",
     CASE_LASTING,
     {1, 20, 500},
     lasting,
     VARIANT(struct lasting, PLACE, EFFECT_SLOW, 1.2, 1.5, cases__host)},
    {S "lasting-frequency",
     CASE_LASTING,
     {1, 20, 500},
     lasting,
     VARIANT(struct lasting, ALARM, EFFECT_FREQUENCY, 1.22, 1.5, NULL)},
};

const struct case_table fault_cases = {cases, sizeof(cases) / sizeof(*cases)};
