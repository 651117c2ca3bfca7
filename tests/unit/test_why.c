// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Why: a job of four ranks whose rank 1 is slow for 6 s for a reason that the test knows, for every
 * factor of every stage, through the whole analysis. The right factors must be major and within 3 points of
 * what was put in, and nothing else may be major; mixed noise (papers/000 figure 11) and prices by
 * regression within 5.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "diagnose/driver.h"
#include "diagnose/where.h"
#include "region_option.h"
#include "sim.h"

#define RANKS 4
#define MS 1e6
#define BASE_NS (10 * MS)
#define SLOW 1
#define ALL_GROUPS ((1U << TOLD_GROUPS) - 1)

/* What a quiet fragment spends, of BASE_NS; wholes are sums of their parts. */
static const double quiet[FACTOR_NODES] = {
    [NODE_RETIRING] = 0.4,
    [NODE_FRONTEND] = 0.1,
    [NODE_BAD_SPECULATION] = 0.05,
    [NODE_BACKEND] = 0.3,
    [NODE_KERNEL] = 0.08,
    [NODE_IRQ] = 0.03,
    [NODE_PREEMPTED] = 0.02,
    [NODE_BLOCKED_OTHER] = 0.02,
    [NODE_FRONTEND_LATENCY] = 0.06,
    [NODE_FRONTEND_BANDWIDTH] = 0.04,
    [NODE_MISPREDICTS] = 0.04,
    [NODE_CLEARS] = 0.01,
    [NODE_MEMORY] = 0.2,
    [NODE_CORE] = 0.1,
    [NODE_PAGE_FAULTS] = 0.03,
    [NODE_SYSTEM_CALLS] = 0.03,
    [NODE_RECLAIM] = 0.02,
    [NODE_HARD_IRQ] = 0.02,
    [NODE_SOFT_IRQ] = 0.01,
    [NODE_L1] = 0.05,
    [NODE_L2] = 0.03,
    [NODE_L3] = 0.04,
    [NODE_DRAM] = 0.06,
    [NODE_STORE] = 0.02,
};

struct cause {
	enum factor_node node;
	double share; /* of BASE_NS, on top; of a count its price */
	double every; /* 1: all fragments in the time, else that share of them */
};

struct run {
	struct cause causes[3];
	unsigned groups; /* of counters that are on; all stages at once, or as the driver wishes */
	bool progressive;
	bool kernel_blind; /* nobody tells the kernel's time */
	bool rare;	   /* some fragments of other work, few and long, at the same time */
	bool hidden;	   /* causes cost time that no factor tells, beside counts */
	double jitter;	   /* of each leaf of a quiet fragment */
	bool merged;	   /* neighbours of a state come as one, slow ones and others apart */
	double better;	   /* share of frontend that goes while it is slow: of this, less is better */
	double seconds;
	const struct vapro_selection *selection;
	bool places;
	uint64_t seed;
	double put[FACTOR_NODES]; /* the truth: what causes added, of BASE_NS */
	/* a question in the midst of the run, of a copy */
	const struct vapro_selection *question;
	double ask_at, remember, window; /* s; window 0: as it is */
	uint64_t remember_bytes;
	struct asked *asked;
};

struct told {
	char name[32], parent[32], shared[128];
	int stage;
	double share, impact, p;
	bool major, regression, implied;
};

struct answer {
	struct told factor[FACTOR_NODES];
	uint32_t count, tellings, stages[8];
	bool finals[8], final;
	char outcome[24];
	double lost, rows;
	char verdict[512], shared_facts[128];
	struct answer_region {
		uint32_t abnormal, normal;
		double lost, performance, begin, end;
		char verdict[512], who[64];
		enum vapro_class class;
	} chosen[3];
	uint32_t chosen_count, rares;
	struct result_rare rare; /* the last one told */
	int requests[64];
	char expands[64][24];
	int request_count;
};

/* What a copy has answered, in memory that is shared with it. */
struct asked {
	struct answer answer;
	uint32_t jobs;
	double begin, end; /* of what is kept, s */
	uint64_t fragments;
	double judged;
};

/* What a quiet fragment spends this time: leaves that jitter, and what they sum up to. */
static void spend(struct run *run, double noise, double *spent)
{
	for (int node = FACTOR_NODES; node-- > 0;) {
		bool whole = false;

		for (int part = 0; part < FACTOR_NODES; part++)
			whole |= (int)factor_infos[part].parent == node && quiet[part] > 0;
		if (!whole)
			spent[node] = quiet[node] * noise;
		if (!whole && run->jitter > 0)
			spent[node] *= fmax(0, 1 + run->jitter * sim_gauss(&run->seed));
		if (factor_infos[node].parent != FACTOR_ROOT)
			spent[factor_infos[node].parent] += spent[node];
	}
}

static void fill(struct run *run, const double *extra, const double *counts, unsigned groups, double noise,
		 struct vapro_bundle *bundle)
{
	double sum = 0, spent[FACTOR_NODES] = {0};

	spend(run, noise, spent);

	for (int node = 0; node < FACTOR_NODES; node++) {
		const struct factor_info *info = &factor_infos[node];
		enum told_group group = factors__group(node);
		double ns = (spent[node] + extra[node]) * BASE_NS;

		if (info->parent == FACTOR_ROOT || info->parent == NODE_SUSPENSION)
			sum += node == NODE_SUSPENSION ? 0 : ns;
		if (factors__counted((enum factor_node)node))
			bundle->factor[info->factor] = counts[node];
		else if (info->factor >= VAPRO_FACTORS || (group != TOLD_GROUPS && !(groups & 1U << group)))
			continue;
		else if (!(run->kernel_blind && (node == NODE_KERNEL || info->parent == NODE_KERNEL)))
			bundle->factor[info->factor] = ns;
	}
	bundle->sum_ns = bundle->min_ns = bundle->max_ns = (uint64_t)sum;
	bundle->end_ns = bundle->start_ns + bundle->sum_ns;
}

/* One computation of a rank at t (ns since the start). */
static void compute(struct run *run, int rank, int state, double t, unsigned groups, struct vapro_bundle *bundle)
{
	double extra[FACTOR_NODES] = {0}, counts[FACTOR_NODES], noise = 1 + 0.002 * sim_gauss(&run->seed);
	bool slow = rank == SLOW && t >= 12e9 && t < 18e9;

	*bundle = (struct vapro_bundle){
	    .thread = (uint32_t)rank, .state = (uint32_t)state, .n = 1, .start_ns = SIM_BEGIN_NS + (uint64_t)t};
	bundle->magnitude_min[VAPRO_INSTRUCTIONS] = bundle->magnitude_max[VAPRO_INSTRUCTIONS] = 1e7 + 1e6 * state;
	for (int node = 0; node < FACTOR_NODES; node++)
		counts[node] = factors__counted((enum factor_node)node) ? floor(3 * sim_random(&run->seed)) : 0;
	for (size_t i = 0; i < sizeof(run->causes) / sizeof(*run->causes); i++) {
		const struct cause *cause = &run->causes[i];
		double much = cause->share * (0.8 + 0.4 * sim_random(&run->seed));
		enum factor_node node = cause->node;

		if (!slow || !much || (cause->every < 1 && sim_random(&run->seed) >= cause->every))
			continue;
		if (factors__counted(node)) {
			counts[node] += floor(1000 * much);
			much = floor(1000 * much) / 1000;
			node = run->hidden ? NODE_RETIRING : factor_infos[node].parent;
		}
		run->put[cause->node] += much;
		for (; node != FACTOR_ROOT; node = factor_infos[node].parent)
			extra[node] += much;
	}
	if (slow)
		extra[NODE_FRONTEND] -= run->better * quiet[NODE_FRONTEND];
	fill(run, extra, counts, groups, noise, bundle);
}

static void take_factors(struct answer *answer, const struct result_diagnosis *diagnosis);

static void note(struct answer *answer, const struct result_variance *variance)
{
	const struct result_diagnosis *diagnosis = &variance->diagnosis;

	assert_true(answer->tellings < 8);
	answer->stages[answer->tellings] = (uint32_t)diagnosis->stage;
	answer->finals[answer->tellings++] = diagnosis->final;
	answer->final = diagnosis->final;
	answer->lost = variance->lost_seconds;
	snprintf(answer->verdict, sizeof(answer->verdict), "%s", diagnosis->verdict);
	answer->shared_facts[0] = 0;
	for (uint32_t i = 0; i < diagnosis->shared_count; i++)
		snprintf(answer->shared_facts + strlen(answer->shared_facts),
			 sizeof(answer->shared_facts) - strlen(answer->shared_facts), "%s=%s ",
			 diagnosis->shared[i].fact, diagnosis->shared[i].value);
	take_factors(answer, diagnosis);
}

static void take_factors(struct answer *answer, const struct result_diagnosis *diagnosis)
{
	answer->count = diagnosis->factor_count;
	answer->outcome[0] = 0;
	if (diagnosis->regression_count) {
		snprintf(answer->outcome, sizeof(answer->outcome), "%s", diagnosis->regressions[0].outcome);
		answer->rows = (double)diagnosis->regressions[0].rows;
	}
	for (uint32_t i = 0; i < diagnosis->factor_count; i++) {
		const struct result_factor *factor = &diagnosis->factors[i];
		struct told *told = &answer->factor[i];

		*told = (struct told){.stage = factor->stage,
				      .share = factor->contribution,
				      .impact = factor->impact_seconds,
				      .p = factor->p_value,
				      .major = factor->major,
				      .regression = !strcmp(factor->method, "regression"),
				      .implied = factor->implied};
		snprintf(told->name, sizeof(told->name), "%s", factor->name);
		snprintf(told->parent, sizeof(told->parent), "%s", factor->parent ? factor->parent : "");
		snprintf(told->shared, sizeof(told->shared), "%s", factor->shared_with ? factor->shared_with : "");
		assert_true(isfinite(told->share) && isfinite(told->impact));
		assert_true(isnan(told->p) || (told->p >= 0 && told->p <= 1));
	}
}

static void announce(struct analysis *analysis)
{
	static const struct vapro_state states[] = {
	    {0, VAPRO_COMPUTATION, "a@b+0x1", "a@b+0x2", "after=MPI_Recv before=MPI_Send", NULL, NULL, NULL, NULL,
	     NULL},
	    {1, VAPRO_COMPUTATION, "a@b+0x2", "a@b+0x1", "after=MPI_Send before=MPI_Recv", NULL, NULL, NULL, NULL,
	     NULL},
	};

	for (uint32_t i = 0; i < RANKS; i++)
		assert_int_equal(analysis__add_thread(analysis, &(struct vapro_thread){.id = i,
										       .rank = (int32_t)i,
										       .world_size = RANKS,
										       .pid = 100 + i,
										       .tid = 100 + i,
										       .job = "j",
										       .host = "n1"}),
				 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(analysis__add_state(analysis, &states[i]), 0);
}

static void place(struct analysis *analysis)
{
	for (uint32_t i = 0; i < RANKS; i++) {
		struct vapro_place place = {
		    .thread = i, .cpu = (int32_t)i, .socket = i == SLOW, .numa = -1, .cgroup = "/slurm/job"};

		assert_int_equal(analysis__place(analysis, &place), 0);
	}
	assert_int_equal(analysis__place(analysis, &(struct vapro_place){.thread = RANKS}), -EINVAL);
}

static void note_chosen(struct answer *answer, const struct job_result *result)
{
	for (uint32_t i = 0; i < result->selection_count; i++) {
		const struct result_variance *at = &result->selections[i];
		struct answer_region *chosen = &answer->chosen[answer->chosen_count++];

		assert_true(answer->chosen_count <= 3);
		*chosen = (struct answer_region){.abnormal = at->diagnosis.abnormal,
						 .normal = at->diagnosis.normal,
						 .lost = at->lost_seconds,
						 .performance = at->performance,
						 .begin = (double)(at->begin_ns - SIM_BEGIN_NS) / 1e9,
						 .end = (double)(at->end_ns - SIM_BEGIN_NS) / 1e9,
						 .class = at->class};
		snprintf(chosen->verdict, sizeof(chosen->verdict), "%s", at->diagnosis.verdict);
		snprintf(chosen->who, sizeof(chosen->who), "%s", at->who);
		take_factors(answer, &at->diagnosis);
	}
}

static unsigned groups_of(const struct analysis *analysis, struct answer *answer)
{
	struct vapro_stage_request request;

	analysis__stage_request(analysis, &request);
	assert_true(answer->request_count < 64);
	answer->requests[answer->request_count] = request.stage;
	snprintf(answer->expands[answer->request_count++], sizeof(answer->expands[0]), "%s",
		 request.expand ? request.expand : "");
	for (int group = TOLD_FRONTEND; group < TOLD_GROUPS; group++) {
		if (request.expand && !strcmp(request.expand, factor_infos[told_infos[group].parent].name)) {
			assert_int_equal(request.stage, told_infos[group].stage);
			assert_string_equal(request.job, "j");
			assert_true(request.variance);
			return 1U << group;
		}
	}
	assert_int_equal(request.stage, 1);
	return 1U << TOLD_TOP;
}

#define TOGETHER 4

/* What the kernel side does with fragments that are neither long nor new; a state's. */
static void merge(const struct run *run, struct analysis *analysis, struct vapro_bundle *held,
		  const struct vapro_bundle *bundle)
{
	bool abnormal = bundle && (double)bundle->sum_ns > 1.2 * BASE_NS;

	if (held->n && (!bundle || held->n == TOGETHER || abnormal != (held->flags == VAPRO_BUNDLE_ABNORMAL) ||
			bundle->end_ns / VAPRO_BIN_NS != held->end_ns / VAPRO_BIN_NS)) {
		assert_int_equal(analysis__add_bundle(analysis, held), 0);
		held->n = 0;
	}
	if (!bundle)
		return;
	if (!run->merged) {
		assert_int_equal(analysis__add_bundle(analysis, bundle), 0);
		return;
	}
	if (!held->n) {
		*held = *bundle;
		held->flags = abnormal ? VAPRO_BUNDLE_ABNORMAL : 0;
		return;
	}
	held->n++;
	held->end_ns = bundle->end_ns;
	held->sum_ns += bundle->sum_ns;
	held->min_ns = bundle->min_ns < held->min_ns ? bundle->min_ns : held->min_ns;
	held->max_ns = bundle->max_ns > held->max_ns ? bundle->max_ns : held->max_ns;
	for (int i = 0; i < VAPRO_FACTORS; i++)
		held->factor[i] += bundle->factor[i];
}

static void note_chosen(struct answer *answer, const struct job_result *result);

/* As the daemon asks: a copy is spoilt, the analysis goes on as if nothing had been. */
static void ask(const struct run *run, struct analysis *analysis)
{
	uint64_t now = SIM_BEGIN_NS + (uint64_t)(run->ask_at * 1e9);
	struct asked *asked = run->asked;
	int status;
	pid_t pid = fork();

	if (!pid) {
		const struct job_result *results;

		memset(asked, 0, sizeof(*asked));
		if (analysis__ask(analysis, run->question, "j", now, &results, &asked->jobs))
			_exit(1);
		asked->begin = ((double)results[0].begin_ns - (double)SIM_BEGIN_NS) / 1e9;
		asked->end = ((double)results[0].end_ns - (double)SIM_BEGIN_NS) / 1e9;
		asked->fragments = results[0].fragments;
		asked->judged = results[0].coverage_total;
		note_chosen(&asked->answer, &results[0]);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
}

static void go(struct run *run, struct answer *answer)
{
	struct vapro_config config;
	struct analysis *analysis;
	double seconds = run->seconds > 0 ? run->seconds : 30, step = 2.5 * BASE_NS;
	struct vapro_bundle held[RANKS][2] = {0};
	double t[RANKS] = {0};
	unsigned groups = run->progressive ? 1U << TOLD_TOP : run->groups;

	memset(answer, 0, sizeof(*answer));
	memset(run->put, 0, sizeof(run->put));
	sim_config(&config);
	if (run->progressive)
		config.window_s = 3; /* the variance lasts for several */
	if (run->window > 0)
		config.window_s = run->window;
	analysis = analysis__new(&config, VAPRO_BY_INSTRUCTIONS);
	assert_non_null(analysis);
	if (run->remember > 0)
		analysis__remember(analysis, run->remember, run->remember_bytes ? run->remember_bytes : 1U << 30);
	announce(analysis);
	if (run->places)
		place(analysis);
	if (run->selection)
		assert_int_equal(analysis__select(analysis, run->selection), 0);
	for (double begin = 0, end = config.window_s; begin < seconds; begin = end, end += config.window_s * 2 / 3) {
		const struct job_result *results;
		uint32_t count;

		end = round(fmin(end, seconds) * 5) / 5;
		for (int rank = 0; rank < RANKS; rank++) {
			for (; t[rank] < end * 1e9 - 3 * step; t[rank] += step) {
				struct vapro_bundle bundle;

				for (int state = 0; state < 2; state++) {
					compute(run, rank, state, t[rank] + 1.2 * BASE_NS * state, groups, &bundle);
					if (bundle.sum_ns > 1.2 * BASE_NS)
						t[rank] += bundle.sum_ns - BASE_NS;
					merge(run, analysis, &held[rank][state], &bundle);
				}
			}
			for (int state = 0; state < 2; state++)
				merge(run, analysis, &held[rank][state], NULL);
		}
		if (run->rare && begin <= 13 && end > 13) {
			struct vapro_bundle other = {.thread = SLOW, .n = 1, .start_ns = SIM_BEGIN_NS + (uint64_t)13e9};

			other.sum_ns = other.min_ns = other.max_ns = 900000000;
			other.end_ns = other.start_ns + other.sum_ns;
			other.magnitude_min[VAPRO_INSTRUCTIONS] = other.magnitude_max[VAPRO_INSTRUCTIONS] = 5e9;
			other.factor[VAPRO_BLOCKED_IO] = 890e6;
			assert_int_equal(analysis__add_bundle(analysis, &other), 0);
		}
		if (run->question && begin <= run->ask_at && end > run->ask_at)
			ask(run, analysis);
		assert_int_equal(analysis__end_window(analysis, SIM_BEGIN_NS + (uint64_t)(begin * 1e9),
						      SIM_BEGIN_NS + (uint64_t)(end * 1e9), end >= seconds, &results,
						      &count),
				 0);
		for (uint32_t i = 0; count && i < results[0].variance_count; i++)
			note(answer, &results[0].variances[i]);
		if (count && results[0].rare_count) {
			answer->rares += results[0].rare_count;
			answer->rare = results[0].rares[0];
		}
		if (count)
			note_chosen(answer, &results[0]);
		if (run->progressive)
			groups = groups_of(analysis, answer);
	}
	analysis__free(analysis);
}

static const struct told *find(const struct answer *answer, const char *name)
{
	for (uint32_t i = 0; i < answer->count; i++) {
		if (!strcmp(answer->factor[i].name, name))
			return &answer->factor[i];
	}
	return NULL;
}

static void show(const struct answer *answer)
{
	for (uint32_t i = 0; i < answer->count; i++) {
		const struct told *at = &answer->factor[i];

		print_error("  %d %-20s of %-14s %6.2f %% %8.3f s p %-8.2g%s%s%s %s\n", at->stage, at->name, at->parent,
			    100 * at->share, at->impact, at->p, at->major ? " major" : "",
			    at->regression ? " regression" : "", at->implied ? " implied" : "", at->shared);
	}
}

static void assert_levels(const struct answer *answer)
{
	for (uint32_t i = 0; i < answer->count; i++) {
		double sum = 0;

		for (uint32_t k = 0; k < answer->count; k++) {
			if (!strcmp(answer->factor[k].parent, answer->factor[i].parent) && !answer->factor[k].implied)
				sum += answer->factor[k].share;
		}
		/* A level of nothing but insignificant counts holds nothing. */
		if (sum > 0 && fabs(sum - 1) > 1e-6) {
			show(answer);
			fail_msg("the level of %s sums to %g", answer->factor[i].name, sum);
		}
	}
}

/* Of the whole loss, by the way down the tree. */
static double of_all(const struct answer *answer, const char *name)
{
	double share = 1;

	while (*name) {
		const struct told *told = find(answer, name);

		if (!told)
			return 0;
		share *= told->share;
		name = told->parent;
	}
	return share;
}

/* The furthest that any answer of a test was from the truth, in points. */
static struct worst {
	double points;
	const char *name;
} worst;

static void tell_worst(const char *group)
{
	print_message("%s: at most %.2f points from the truth (%s)\n", group, worst.points, worst.name);
	worst = (struct worst){0};
}

static void measure(double found, double truth, const char *name)
{
	double points = 100 * fabs(found - truth);

	if (points >= worst.points)
		worst = (struct worst){points, name};
}

static void expect_only(const struct answer *answer, enum factor_node node, double points)
{
	assert_levels(answer);
	measure(of_all(answer, factor_infos[node].name), 1, factor_infos[node].name);
	for (uint32_t i = 0; i < answer->count; i++) {
		const struct told *told = &answer->factor[i];
		bool right = false;

		for (enum factor_node at = node; at != FACTOR_ROOT; at = factor_infos[at].parent)
			right |= !strcmp(told->name, factor_infos[at].name);
		if (told->major != right) {
			show(answer);
			fail_msg("with %s slow, %s is %smajor", factor_infos[node].name, told->name,
				 told->major ? "" : "not ");
		}
	}
	if (!(of_all(answer, factor_infos[node].name) >= 1 - points / 100)) {
		show(answer);
		fail_msg("%s: %.1f %%", factor_infos[node].name, 100 * of_all(answer, factor_infos[node].name));
	}
}

static const double jitters[] = {0, 0.05};

static void test_each_factor(void **state)
{
	(void)state;
	for (int at = 0; at < 3 * FACTOR_NODES; at++) {
		int node = at / 3;
		struct run run = {.causes = {{node, 0.6, 1}},
				  .groups = ALL_GROUPS,
				  .jitter = jitters[at % 3 > 0],
				  .merged = at % 3 > 1,
				  .seed = (uint64_t)node + 1};
		bool whole = false;
		struct answer answer;

		for (int part = 0; part < FACTOR_NODES; part++)
			whole |= (int)factor_infos[part].parent == node;
		if (whole || factor_infos[node].rest || factors__counted((enum factor_node)node) || node == NODE_ON_CPU)
			continue;
		go(&run, &answer);
		assert_true(answer.tellings > 0 && answer.final);
		expect_only(&answer, node, 3);
	}
	tell_worst("each factor alone");
}

static bool leaf(int node)
{
	for (int part = 0; part < FACTOR_NODES; part++) {
		/* counts split what formulas split as well */
		if ((int)factor_infos[part].parent == node)
			return false;
	}
	return !factor_infos[node].rest && node != NODE_ON_CPU;
}

static bool below(int node, int whole)
{
	while (node != whole && node != FACTOR_ROOT)
		node = factor_infos[node].parent;
	return node == whole;
}

/* The factors that causes went to are major up to the root, and nobody else; shares as they were put in. */
static void expect_mix(const struct answer *answer, const struct run *run, double points)
{
	double sum = 0;

	assert_levels(answer);
	for (int node = 0; node < FACTOR_NODES; node++)
		sum += run->put[node];
	for (int node = 0; node < FACTOR_NODES; node++) {
		const struct told *told = find(answer, factor_infos[node].name);
		double truth = 0, found = of_all(answer, factor_infos[node].name), level = 0;
		enum factor_node parent = factor_infos[node].parent;

		for (int cause = 0; cause < FACTOR_NODES; cause++) {
			truth += below(cause, node) ? run->put[cause] / sum : 0;
			level += below(cause, parent) ? run->put[cause] / sum : 0;
		}
		if (truth > 0 || found > 0)
			measure(found, truth, factor_infos[node].name);
		if (fabs(found - truth) > points / 100) {
			show(answer);
			fail_msg("%s: %.1f %% instead of %.1f %%", factor_infos[node].name, 100 * found, 100 * truth);
		}
		/* near the border either is right */
		if (level > 0 && fabs(truth / level - 0.25) < 0.05)
			continue;
		if ((told && told->major) != (level > 0 && truth / level > 0.25)) {
			show(answer);
			fail_msg("%s is %smajor", factor_infos[node].name, told && told->major ? "" : "not ");
		}
	}
}

/* Each leaf of the tree beside another one: far from it, and its neighbour. */
static void test_pairs(void **state)
{
	(void)state;
	for (int node = 0; node < FACTOR_NODES; node++) {
		bool away = factor_infos[node].parent == NODE_SUSPENSION;
		enum factor_node others[2] = {away ? NODE_DRAM : NODE_PREEMPTED, FACTOR_ROOT};

		if (!leaf(node) || factors__counted((enum factor_node)node))
			continue;
		for (int other = 0; other < FACTOR_NODES; other++) {
			if (other != node && factor_infos[other].parent == factor_infos[node].parent && leaf(other) &&
			    !factors__counted((enum factor_node)other))
				others[1] = (enum factor_node)other;
		}
		for (int i = 0; i < 4; i++) {
			struct run run = {.causes = {{node, 0.5, 1}, {others[i / 2], 0.3, 1}},
					  .groups = ALL_GROUPS,
					  .jitter = jitters[i % 2],
					  .seconds = 20,
					  .seed = (uint64_t)(1000 + 2 * node + i)};
			struct answer answer;

			if (others[i / 2] == FACTOR_ROOT)
				continue;
			go(&run, &answer);
			expect_mix(&answer, &run, 3);
		}
	}
	tell_worst("each factor beside another one");
}

/* Wholes, where only their stage was counted. */
static void test_each_stage(void **state)
{
	static const struct {
		enum factor_node node;
		unsigned groups;
	} cases[] = {
	    {NODE_RETIRING, 1U << TOLD_TOP},
	    {NODE_FRONTEND, 1U << TOLD_TOP},
	    {NODE_BAD_SPECULATION, 1U << TOLD_TOP},
	    {NODE_BACKEND, 1U << TOLD_TOP},
	    {NODE_MEMORY, 1U << TOLD_TOP | 1U << TOLD_BACKEND},
	    {NODE_CORE, 1U << TOLD_BACKEND},
	    {NODE_DRAM, 1U << TOLD_MEMORY},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct run run = {.causes = {{cases[i].node, 0.6, 1}}, .groups = cases[i].groups, .seed = 77 + i};
		struct answer answer;

		go(&run, &answer);
		expect_only(&answer, cases[i].node, 3);
	}
	/* No counters at all: the CPU is one factor. */
	{
		struct run run = {.causes = {{NODE_BACKEND, 0.6, 1}}, .seed = 5};
		struct answer answer;

		go(&run, &answer);
		expect_only(&answer, NODE_ON_CPU, 3);
	}
}

/* Counts cost time that is told for the kernel as a whole, or for nobody. */
static void test_each_count(void **state)
{
	(void)state;
	for (int node = NODE_MINOR_FAULTS; node <= NODE_REMOTE_FILLS; node++) {
		for (int told = 0; told < 2; told++) {
			struct run run = {.causes = {{node, 0.6, 1}},
					  .groups = told ? 1U << TOLD_TOP | 1U << TOLD_BACKEND : 0,
					  .kernel_blind = !told,
					  .hidden = !told,
					  .jitter = jitters[node % 2],
					  .seed = (uint64_t)(node + 100 * told)};
			struct answer answer;
			const struct told *count;

			if (!factors__counted((enum factor_node)node))
				continue;
			go(&run, &answer);
			expect_only(&answer, node, 5);
			count = find(&answer, factor_infos[node].name);
			assert_true(count->regression && count->p < 0.05);
			assert_string_equal(answer.outcome, "fitted");
			assert_true(answer.rows > 100);
		}
	}
	tell_worst("each count alone");
}

/* Two counts that always come together cannot be told apart, and that is said. */
static void test_collinear(void **state)
{
	struct contribution contribution = {0};
	struct breakdown breakdown;
	struct vapro_config config;

	(void)state;
	sim_config(&config);
	regression__begin(&contribution.rows[PRICED_KERNEL], 5);
	for (int i = 0; i < 100; i++) {
		double n = i % 7, x[5] = {n, 0, 2 * n, (i * 37 % 11), 0};

		regression__add(&contribution.rows[PRICED_KERNEL], 500 * n + (i * 13 % 5), x, 1);
	}
	contribution.impact[NODE_ON_CPU] = 60000;
	contribution.impact[NODE_MINOR_FAULTS] = 100;
	contribution.impact[NODE_VOLUNTARY_SWITCHES] = 200;
	breakdown__make(&contribution, &config, &breakdown);
	assert_true(breakdown.node[NODE_KERNEL].major && breakdown.node[NODE_KERNEL].regression);
	assert_true(breakdown.node[NODE_MINOR_FAULTS].major && breakdown.node[NODE_VOLUNTARY_SWITCHES].major);
	assert_true(breakdown.node[NODE_MINOR_FAULTS].implied != breakdown.node[NODE_VOLUNTARY_SWITCHES].implied);
	assert_true(breakdown.node[NODE_MINOR_FAULTS].shared == 1ULL << NODE_VOLUNTARY_SWITCHES);
	assert_true(breakdown.node[NODE_VOLUNTARY_SWITCHES].shared == 1ULL << NODE_MINOR_FAULTS);
	assert_true(fabs(breakdown.node[NODE_KERNEL].impact_ns - 50000) < 500);
	assert_true(fabs(breakdown.node[NODE_MINOR_FAULTS].impact_ns - 50000) < 500);
	assert_true(fabs(breakdown.node[NODE_VOLUNTARY_SWITCHES].impact_ns - 50000) < 500);
	assert_false(breakdown.node[NODE_MAJOR_FAULTS].present); /* constant */
	assert_true(breakdown.node[NODE_INVOLUNTARY_SWITCHES].present);
	assert_false(breakdown.node[NODE_INVOLUNTARY_SWITCHES].major);
}

/* Too few rows, no rows, nothing that varies: stated, and the rest stands. */
static void test_degenerate(void **state)
{
	struct contribution contribution = {.impact = {[NODE_ON_CPU] = 100}, .abnormal = 3};
	struct vapro_config config;
	struct breakdown breakdown;
	double x[5] = {1, 2, 3, 4, 5};

	(void)state;
	sim_config(&config);
	breakdown__make(&contribution, &config, &breakdown);
	assert_int_equal(breakdown.outcome[PRICED_KERNEL], REGRESSION_TOO_FEW);
	assert_true(breakdown.node[NODE_ON_CPU].major);
	regression__begin(&contribution.rows[PRICED_KERNEL], 5);
	for (int i = 0; i < 16; i++)
		regression__add(&contribution.rows[PRICED_KERNEL], i, x, 1);
	breakdown__make(&contribution, &config, &breakdown);
	assert_int_equal(breakdown.outcome[PRICED_KERNEL], REGRESSION_TOO_FEW);
	regression__add(&contribution.rows[PRICED_KERNEL], 0, x, 1);
	breakdown__make(&contribution, &config, &breakdown);
	assert_int_equal(breakdown.outcome[PRICED_KERNEL], REGRESSION_NO_FACTOR);
	for (int node = 0; node < FACTOR_NODES; node++) {
		assert_true(isfinite(breakdown.node[node].impact_ns) && isfinite(breakdown.node[node].share));
		assert_false(factors__counted((enum factor_node)node) && breakdown.node[node].present);
	}
	assert_true(breakdown.node[NODE_ON_CPU].share == 1);
}

/* Figure 11: computing noise and memory contention at once; and other mixtures, not everywhere at the same time. */
static void test_mixed(void **state)
{
	static const struct cause mixtures[][3] = {
	    {{NODE_PREEMPTED, 0.9, 0.5}, {NODE_DRAM, 0.3, 1}},
	    {{NODE_PREEMPTED, 0.5, 0.5}, {NODE_DRAM, 0.6, 0.6}},
	    {{NODE_WAKEUP_WAIT, 0.8, 0.3}, {NODE_L3, 0.4, 0.8}, {NODE_STORE, 0.4, 0.8}},
	    {{NODE_STEAL, 0.9, 0.4}, {NODE_SOFT_IRQ, 0.4, 1}},
	    {{NODE_THROTTLED, 0.9, 0.5}, {NODE_PAGE_FAULTS, 0.4, 0.9}, {NODE_MISPREDICTS, 0.5, 0.8}},
	    {{NODE_BLOCKED_IO, 2, 0.3}, {NODE_RECLAIM, 0.5, 1}},
	};

	(void)state;
	for (size_t i = 0; i < 3 * sizeof(mixtures) / sizeof(*mixtures); i++) {
		struct run run = {
		    .groups = ALL_GROUPS, .jitter = jitters[i % 3 > 0], .merged = i % 3 > 1, .seed = 11 + i};
		struct answer answer;

		memcpy(run.causes, mixtures[i / 3], sizeof(run.causes));
		go(&run, &answer);
		expect_mix(&answer, &run, 5);
	}
	tell_worst("mixtures");
}

/* Section 4.2: what a regression finds is what formulas tell, within 5 points. */
static void test_regression_against_formula(void **state)
{
	static const struct {
		enum factor_node formula[2], counts[2];
		double shares[2], every[2];
	} cases[] = {
	    {{NODE_PAGE_FAULTS, NODE_SYSTEM_CALLS}, {NODE_MINOR_FAULTS, NODE_VOLUNTARY_SWITCHES}, {0.5, 0.3}, {1, 0.7}},
	    {{NODE_PAGE_FAULTS, NODE_RECLAIM}, {NODE_MAJOR_FAULTS, NODE_MIGRATIONS}, {0.6, 0.6}, {0.5, 0.5}},
	    {{NODE_SYSTEM_CALLS, NODE_RECLAIM}, {NODE_INVOLUNTARY_SWITCHES, NODE_MINOR_FAULTS}, {0.3, 0.7}, {1, 0.4}},
	    {{NODE_L3, NODE_DRAM}, {NODE_L3_FILLS, NODE_DRAM_FILLS}, {0.5, 0.4}, {0.8, 0.8}},
	    {{NODE_DRAM, NODE_STORE}, {NODE_REMOTE_FILLS, NODE_L2_FILLS}, {0.8, 0.4}, {0.6, 0.6}},
	};

	(void)state;
	for (size_t at = 0; at < 2 * sizeof(cases) / sizeof(*cases); at++) {
		size_t i = at / 2;
		struct run formula = {.groups = ALL_GROUPS, .jitter = jitters[at % 2], .seed = 21 + at};
		struct run counts = {.kernel_blind = true, .hidden = true, .jitter = jitters[at % 2], .seed = 21 + at};
		struct answer told, found;

		for (int k = 0; k < 2; k++) {
			formula.causes[k] = (struct cause){cases[i].formula[k], cases[i].shares[k], cases[i].every[k]};
			counts.causes[k] = (struct cause){cases[i].counts[k], cases[i].shares[k], cases[i].every[k]};
		}
		go(&formula, &told);
		go(&counts, &found);
		for (int k = 0; k < 2; k++) {
			const char *by_formula = factor_infos[cases[i].formula[k]].name,
				   *by_count = factor_infos[cases[i].counts[k]].name;

			measure(of_all(&found, by_count), of_all(&told, by_formula), by_count);
			if (fabs(of_all(&told, by_formula) - of_all(&found, by_count)) > 0.05) {
				show(&told);
				show(&found);
				fail_msg("%s is not %s, jitter %g", by_count, by_formula, jitters[at % 2]);
			}
		}
	}
	tell_worst("regression against formulas");
}

/* A factor that shrinks while others grow takes nothing from their sum; work of another kind is not looked at. */
static void test_less_is_better_and_rare(void **state)
{
	struct run run = {
	    .causes = {{NODE_CORE, 0.6, 1}}, .groups = ALL_GROUPS, .better = 0.8, .rare = true, .seed = 4};
	struct answer answer, without;

	(void)state;
	go(&run, &answer);
	expect_only(&answer, NODE_CORE, 3);
	assert_true(find(&answer, "frontend")->share == 0);
	/* a rare cluster is told as one, and is no part of the variance that it lies in */
	assert_int_equal(answer.rares, 1);
	assert_true(answer.rare.rank == SLOW && answer.rare.members == 1 && answer.rare.norm == 5e9);
	assert_true(fabs(answer.rare.seconds - 0.9) < 1e-9);
	run.rare = false;
	run.seed = 4;
	go(&run, &without);
	assert_int_equal(without.rares, 0);
	assert_true(answer.lost == without.lost && answer.tellings == without.tellings);
}

/* One stage after the other, each with counters of its own, as far down as something is major; then stage 1 again. */
static void test_progressive(void **state)
{
	static const enum factor_node nodes[] = {NODE_DRAM,	   NODE_RETIRING,
						 NODE_PREEMPTED,   NODE_FRONTEND_LATENCY,
						 NODE_CLEARS,	   NODE_FRONTEND_BANDWIDTH,
						 NODE_MISPREDICTS, NODE_CORE,
						 NODE_L1,	   NODE_L2,
						 NODE_L3,	   NODE_STORE};

	(void)state;
	for (size_t i = 0; i < sizeof(nodes) / sizeof(*nodes); i++) {
		struct run run = {.causes = {{nodes[i], 0.6, 1}}, .progressive = true, .seed = 9};
		const char *expected[5] = {"", "", "", "", ""};
		int stage = factor_infos[nodes[i]].stage;
		struct answer answer;
		size_t at = 0;

		/* what the kernel tells in time anyway needs no counters */
		if (nodes[i] == NODE_PREEMPTED)
			stage = 1;
		if (stage == 3)
			expected[1] = "backend";
		if (stage >= 2)
			expected[stage - 1] = factor_infos[factor_infos[nodes[i]].parent].name;
		go(&run, &answer);
		for (int k = 0; k < answer.request_count; k++) {
			if (strcmp(answer.expands[k], expected[at])) {
				at++;
				assert_true(at < sizeof(expected) / sizeof(*expected));
				assert_string_equal(answer.expands[k], expected[at]);
			}
		}
		assert_int_equal(at, stage == 1 ? 0 : stage); /* and back to stage 1 */
		expect_only(&answer, nodes[i], 5);
		assert_true(answer.final);
		for (uint32_t k = 1; k < answer.tellings; k++)
			assert_true(answer.stages[k] >= answer.stages[k - 1]);
		if (stage < 3)
			continue;
		/* What was counted for a part of the time speaks for the whole loss. */
		assert_true(find(&answer, "backend")->impact > 0.9 * answer.lost);
		assert_true(fabs(find(&answer, factor_infos[nodes[i]].name)->impact / find(&answer, "backend")->impact -
				 1) < 0.06);
		assert_int_equal(answer.stages[0], 1);
		assert_false(answer.finals[0]);
		assert_int_equal(answer.stages[answer.tellings - 1], 3);
	}
	tell_worst("one stage after the other");
}

/* A region chosen by hand: inside of the slow time, around it, and where nothing is slow. */
static void test_selection(void **state)
{
	static const int32_t slow_rank[][2] = {{SLOW, SLOW}}, others[][2] = {{0, 0}, {2, 3}};
	const struct vapro_selection inside = {.ranks = slow_rank,
					       .range_count = 1,
					       .begin_ns = SIM_BEGIN_NS + (uint64_t)13e9,
					       .end_ns = SIM_BEGIN_NS + (uint64_t)15e9};
	const struct vapro_selection all = {.relative = true, .begin_ns = (uint64_t)10e9};
	const struct vapro_selection quick = {
	    .ranks = others, .range_count = 2, .relative = true, .begin_ns = (uint64_t)12e9, .end_ns = (uint64_t)18e9};
	static const enum factor_node nodes[] = {NODE_RETIRING, NODE_WAKEUP_WAIT, NODE_SYSTEM_CALLS,
						 NODE_HARD_IRQ, NODE_CORE,	  NODE_L2};
	struct run run = {.causes = {{NODE_DRAM, 0.6, 1}}, .groups = ALL_GROUPS, .selection = &inside, .seed = 6};
	struct answer answer;

	(void)state;
	for (size_t i = 0; i < sizeof(nodes) / sizeof(*nodes); i++) {
		run.causes[0].node = nodes[i];
		run.seed = 60 + i;
		go(&run, &answer);
		assert_int_equal(answer.chosen_count, 1);
		expect_only(&answer, nodes[i], 3);
	}
	tell_worst("a region chosen by hand");
	run.causes[0].node = NODE_DRAM;
	run.seed = 6;
	go(&run, &answer);
	assert_int_equal(answer.chosen_count, 1);
	expect_only(&answer, NODE_DRAM, 3);
	/* Two of six seconds of the variance. */
	assert_true(fabs(answer.chosen[0].lost / answer.lost - 1 / 3.0) < 0.03);
	assert_true(answer.chosen[0].begin == 13 && answer.chosen[0].end == 15);
	assert_int_equal(answer.chosen[0].normal, 0);
	assert_string_equal(answer.chosen[0].who, "rank 1");
	run.selection = &all;
	run.seed = 6;
	go(&run, &answer);
	assert_int_equal(answer.chosen_count, 1);
	expect_only(&answer, NODE_DRAM, 3);
	/* All that is less than the fastest adds up, quiet as it is. */
	assert_true(answer.chosen[0].lost > answer.lost && answer.chosen[0].lost < answer.lost + 0.02 * RANKS * 20);
	assert_true(answer.chosen[0].normal > 1000);
	assert_true(answer.chosen[0].begin == 10 && answer.chosen[0].end == 30);
	assert_string_equal(answer.chosen[0].who, "ranks 0-3");
	run.selection = &quick;
	run.seed = 6;
	go(&run, &answer);
	assert_int_equal(answer.chosen_count, 1);
	assert_int_equal(answer.chosen[0].abnormal, 0);
	for (uint32_t i = 0; i < answer.count; i++)
		assert_false(answer.factor[i].major);
	assert_true(answer.chosen[0].performance > 0.98);
	assert_string_equal(answer.chosen[0].who, "ranks 0,2-3");
}

static void assert_same(const struct answer *a, const struct answer *b)
{
	assert_int_equal(a->count, b->count);
	assert_int_equal(a->tellings, b->tellings);
	assert_string_equal(a->verdict, b->verdict);
	assert_true(a->lost == b->lost);
	for (uint32_t i = 0; i < a->count; i++) {
		assert_string_equal(a->factor[i].name, b->factor[i].name);
		assert_true(a->factor[i].share == b->factor[i].share && a->factor[i].impact == b->factor[i].impact);
	}
}

/*
 * Asked between windows: the answer is that of a region chosen beforehand, for as long as what it rests on
 * is kept, and the run goes on as if nobody had asked.
 */
static void test_question(void **state)
{
	static const int32_t slow_rank[][2] = {{SLOW, SLOW}};
	const struct vapro_selection inside = {.ranks = slow_rank,
					       .range_count = 1,
					       .begin_ns = SIM_BEGIN_NS + (uint64_t)13e9,
					       .end_ns = SIM_BEGIN_NS + (uint64_t)15e9},
				     all = {.begin_ns = SIM_BEGIN_NS},
				     over = {.begin_ns = SIM_BEGIN_NS, .end_ns = SIM_BEGIN_NS + (uint64_t)9e9},
				     later = {.begin_ns = SIM_BEGIN_NS + (uint64_t)25e9};
	static const struct {
		double at, window, remember;
		uint64_t bytes;
		double kept_from;
		bool told;
	} cases[] = {
	    {14.9, 0, 0, 0, 0, true},		  /* in the first window, of which nobody has told yet */
	    {24.9, 0, 0, 0, 10, true},		  /* the present view reaches back to it */
	    {28.9, 3, 0, 0, 26, false},		  /* no more */
	    {28.9, 3, 60, 0, 0, true},		  /* but for who remembers */
	    {28.9, 3, 20, 0, 7, true},		  /* as long as that */
	    {28.9, 3, 10, 0, 17, false},	  /* and no longer */
	    {28.9, 3, 60, 1000 * 250, 20, false}, /* nor more */
	};
	struct run run = {.causes = {{NODE_DRAM, 0.6, 1}}, .groups = ALL_GROUPS, .seed = 6}, quiet_run;
	struct answer answer, quiet_answer;
	struct asked *asked = mmap(NULL, sizeof(*asked), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_true(asked != MAP_FAILED);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		run.seed = 6;
		run.asked = NULL;
		run.question = NULL;
		run.ask_at = cases[i].at;
		run.window = cases[i].window;
		run.remember = cases[i].remember;
		run.remember_bytes = cases[i].bytes;
		quiet_run = run;
		quiet_run.remember = 0;
		go(&quiet_run, &quiet_answer);
		run.asked = asked;
		run.question = &inside;
		go(&run, &answer);
		assert_same(&answer, &quiet_answer);
		assert_int_equal(asked->jobs, 1);
		assert_true(asked->end == cases[i].at);
		if (cases[i].bytes ? asked->begin < cases[i].kept_from : fabs(asked->begin - cases[i].kept_from) > 0.21)
			fail_msg("case %zu is kept from %g", i, asked->begin);
		assert_int_equal(asked->answer.chosen_count, cases[i].told);
		if (!cases[i].told) {
			assert_int_equal(asked->fragments, 0);
			continue;
		}
		expect_only(&asked->answer, NODE_DRAM, 3);
		assert_string_equal(asked->answer.chosen[0].who, "rank 1");
		assert_true(asked->answer.chosen[0].begin == 13);
		assert_true(asked->answer.chosen[0].end == fmin(15, cases[i].at));
		assert_true(asked->fragments > 60 && asked->judged > 0.99);
	}
	/* all of it, what is over, and what is to come */
	run.window = run.remember = 0;
	run.remember_bytes = 0;
	run.ask_at = 24.9;
	run.seed = 6;
	run.question = &all;
	go(&run, &answer);
	assert_int_equal(asked->answer.chosen_count, 1);
	assert_true(asked->answer.chosen[0].begin == asked->begin && asked->answer.chosen[0].end == 24.9);
	assert_true(asked->answer.chosen[0].lost > answer.lost);
	assert_true(asked->answer.chosen[0].lost < answer.lost + 0.02 * RANKS * 15);
	run.question = &over;
	run.seed = 6;
	go(&run, &answer);
	assert_true(asked->jobs == 1 && !asked->answer.chosen_count && !asked->fragments);
	run.question = &later;
	run.seed = 6;
	go(&run, &answer);
	assert_true(asked->jobs == 1 && !asked->answer.chosen_count && !asked->fragments);
	munmap(asked, sizeof(*asked));
}

static void add_write(struct analysis *analysis, double begin, double end, uint32_t flags)
{
	struct vapro_bundle bundle = {.state = 1, .n = 1, .flags = flags};

	bundle.start_ns = SIM_BEGIN_NS + (uint64_t)llround(begin * 1e9);
	bundle.end_ns = SIM_BEGIN_NS + (uint64_t)llround(end * 1e9);
	bundle.sum_ns = bundle.min_ns = bundle.max_ns = bundle.end_ns - bundle.start_ns;
	bundle.factor[VAPRO_BLOCKED_IO] = (double)bundle.sum_ns * 0.9;
	bundle.magnitude_min[VAPRO_BYTES] = bundle.magnitude_max[VAPRO_BYTES] = 4096;
	assert_int_equal(analysis__add_bundle(analysis, &bundle), 0);
}

static void end_window(struct analysis *analysis, double begin, double end)
{
	const struct job_result *results;
	uint32_t count;

	assert_int_equal(analysis__end_window(analysis, SIM_BEGIN_NS + (uint64_t)(begin * 1e9),
					      SIM_BEGIN_NS + (uint64_t)(end * 1e9), false, &results, &count),
			 0);
}

/* A rank that is stuck in a write is in the answer; once, when it has ended. */
static void test_question_about_the_stuck(void **state)
{
	static const struct vapro_state write = {1,  VAPRO_IO, NULL, "a@b+0x5", "fd_kind=file function=write",
						 "", NULL,     NULL, NULL,	NULL};
	const struct vapro_selection all = {.begin_ns = SIM_BEGIN_NS};
	struct asked *asked = mmap(NULL, sizeof(*asked), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct run run = {.question = &all, .asked = asked, .ask_at = 16};
	struct analysis *analysis;
	struct vapro_config config;

	(void)state;
	assert_true(asked != MAP_FAILED);
	sim_config(&config);
	analysis = analysis__new(&config, VAPRO_BY_ARGUMENTS);
	assert_non_null(analysis);
	analysis__remember(analysis, 60, 1U << 30);
	assert_int_equal(
	    analysis__add_thread(analysis,
				 &(struct vapro_thread){.world_size = 1, .pid = 9, .tid = 9, .job = "j", .host = "n"}),
	    0);
	{
		struct vapro_state first = {0, VAPRO_COMPUTATION, "a", "b", "", "", NULL, NULL, NULL, NULL};

		assert_int_equal(analysis__add_state(analysis, &first), 0);
		assert_int_equal(analysis__add_state(analysis, &write), 0);
	}
	for (double t = 0.1; t < 12; t += 0.02)
		add_write(analysis, t, t + 0.002, 0);
	add_write(analysis, 12, 15, VAPRO_BUNDLE_OPEN);
	end_window(analysis, 0, 15);
	ask(&run, analysis);
	assert_int_equal(asked->answer.chosen_count, 1);
	assert_int_equal(asked->answer.chosen[0].class, VAPRO_IO);
	assert_true(fabs(asked->answer.chosen[0].lost - 3) < 0.05);
	assert_true(find(&asked->answer, "blocked_io")->major);
	add_write(analysis, 12, 17, 0);
	for (double t = 17.1; t < 24; t += 0.02)
		add_write(analysis, t, t + 0.002, 0);
	run.ask_at = 25;
	ask(&run, analysis);
	assert_true(fabs(asked->answer.chosen[0].lost - 5) < 0.05);
	end_window(analysis, 15, 25);
	run.ask_at = 26;
	ask(&run, analysis);
	assert_true(fabs(asked->answer.chosen[0].lost - 5) < 0.05);
	/* all of the job has fallen silent: what it did is there, for a minute */
	end_window(analysis, 25, 35);
	end_window(analysis, 35, 45);
	run.ask_at = 45;
	ask(&run, analysis);
	assert_int_equal(asked->answer.chosen_count, 1);
	assert_true(fabs(asked->answer.chosen[0].lost - 5) < 0.05);
	analysis__free(analysis);
	munmap(asked, sizeof(*asked));
}

static void test_where_and_verdict(void **state)
{
	struct run run = {.causes = {{NODE_DRAM, 0.6, 1}}, .groups = ALL_GROUPS, .places = true, .seed = 6};
	struct answer answer;
	char expected[160];

	(void)state;
	go(&run, &answer);
	assert_string_equal(answer.shared_facts, "socket=1 cpu=1 "); /* the cgroup is everybody's */
	snprintf(expected, sizeof(expected),
		 "rank 1, on socket 1, lost %.1f s: 100 %% backend bound, nearly all of it memory, nearly all of that "
		 "DRAM.",
		 answer.lost);
	assert_string_equal(answer.verdict, expected);
	run.places = false;
	run.causes[0].node = NODE_PREEMPTED;
	go(&run, &answer);
	assert_string_equal(answer.shared_facts, "");
	snprintf(expected, sizeof(expected), "rank 1 lost %.1f s: 100 %% off the CPU, nearly all of it preempted.",
		 answer.lost);
	assert_string_equal(answer.verdict, expected);
}

/* What is shared: by all slow ones, by few others, and of sockets only within a host. */
static void test_where(void **state)
{
	static const char *const hosts[] = {"n1", "n1", "n1", "n1", "n2", "n2"};
	static const int32_t sockets[] = {0, 0, 1, 1, 0, 1};
	static const unsigned char one_socket[] = {1, 1, 0, 0, 0, 0}, one_host[] = {0, 0, 0, 0, 1, 1},
				   spread[] = {1, 0, 1, 0, 0, 0}, everybody[] = {1, 1, 1, 1, 1, 1},
				   gone[] = {1, 1, 2, 2, 2, 2};
	struct stg *stg = stg__new();
	struct places places = {0};
	const struct vapro_place *limited;
	struct where where[WHERE_FACTS];
	uint32_t count;

	(void)state;
	assert_non_null(stg);
	for (uint32_t i = 0; i < 6; i++) {
		struct vapro_thread thread = {.id = i, .rank = (int32_t)i, .job = "j", .host = hosts[i], .pid = i + 1};

		assert_int_equal(stg__add_thread(stg, &thread), 0);
	}
	/* Nothing but hosts is known. */
	assert_int_equal(where__find(&places, stg, 0, one_host, where, &count), 0);
	assert_int_equal(count, 1);
	assert_string_equal(where[0].fact, "host");
	for (uint32_t i = 6; i-- > 0;)
		assert_int_equal(
		    places__add(&places,
				&(struct vapro_place){.thread = i, .cpu = -1, .socket = sockets[i], .numa = -1}),
		    0);
	assert_int_equal(where__find(&places, stg, 0, one_socket, where, &count), 0);
	assert_int_equal(count, 1);
	assert_string_equal(where[0].fact, "socket");
	assert_string_equal(where[0].value, "0");
	assert_int_equal(where[0].others, 0);
	assert_int_equal(where__find(&places, stg, 0, one_host, where, &count), 0);
	assert_int_equal(count, 1);
	assert_string_equal(where[0].value, "n2");
	assert_int_equal(where__find(&places, stg, 0, spread, where, &count), 0);
	assert_int_equal(count, 0);
	assert_int_equal(where__find(&places, stg, 0, everybody, where, &count), 0);
	assert_int_equal(count, 0);
	assert_int_equal(where__find(&places, stg, 0, gone, where, &count), 0);
	assert_int_equal(count, 0);
	/* a quota is remembered, and told of the slow ones alone */
	assert_int_equal(where__limit(&places, stg, 0, one_socket, &limited), 0);
	assert_null(limited);
	assert_int_equal(places__add(&places, &(struct vapro_place){.thread = 1, .limit = "l", .limit_cgroup = "/c"}),
			 0);
	assert_int_equal(places__add(&places, &(struct vapro_place){.thread = 1}), 0);
	assert_int_equal(where__limit(&places, stg, 0, one_socket, &limited), 0);
	assert_non_null(limited);
	assert_string_equal(limited->limit, "l");
	assert_string_equal(limited->limit_cgroup, "/c");
	assert_int_equal(where__limit(&places, stg, 0, one_host, &limited), 0);
	assert_null(limited);
	places__free(&places);
	stg__free(stg);
}

static void test_region_option(void **state)
{
	static const char *const bad[] = {"",
					  "0-3",
					  "0-3@1",
					  "@1..2",
					  "3-1@1..2",
					  "0,@1..2",
					  "x@1..2",
					  "0@2..1",
					  "0@1..x",
					  "0@-1..2",
					  "0@1m..2",
					  "0-@1..2",
					  "0 @1..2",
					  "0@1..1",
					  "allx@1..2",
					  "0@nan..2",
					  "0@1..inf",
					  "99999999999@1..2",
					  "0@2027-01-15T08:00:00Z..20"};
	struct region_option region;
	struct vapro_selection selection;
	char err[256];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		*err = 0;
		if (!region_option__parse(&region, bad[i], err, sizeof(err)))
			fail_msg("'%s' is taken", bad[i]);
		assert_true(*err);
	}
	assert_int_equal(region_option__parse(&region, "0-3,7@12.5..20s", err, sizeof(err)), 0);
	selection = region_option__selection(&region);
	assert_true(selection.relative && selection.range_count == 2);
	assert_true(selection.begin_ns == 12500000000 && selection.end_ns == 20000000000);
	assert_true(selection.ranks[0][0] == 0 && selection.ranks[0][1] == 3 && selection.ranks[1][0] == 7 &&
		    selection.ranks[1][1] == 7);
	assert_int_equal(region_option__parse(&region, "all@..", err, sizeof(err)), 0);
	selection = region_option__selection(&region);
	assert_true(!selection.ranks && !selection.begin_ns && !selection.end_ns);
	assert_int_equal(
	    region_option__parse(&region, "5@2027-01-15T08:00:00Z..2027-01-15T08:00:01.5Z", err, sizeof(err)), 0);
	selection = region_option__selection(&region);
	assert_true(!selection.relative && selection.end_ns - selection.begin_ns == 1500000000);
}

/* Several cases: one group at a time in the order of the wishes, shared, and given up in the end. */
static void test_driver(void **state)
{
	struct diagnosis_case a = {.id = 1}, b = {.id = 2};
	unsigned told = 1U << TOLD_TOP;
	struct driver driver = {0};
	struct driver_wish vain;
	bool final;

	(void)state;
	a.sum.told[TOLD_TOP] = b.sum.told[TOLD_TOP] = 10;
	a.breakdown.node[NODE_BACKEND].major = true;
	b.breakdown.node[NODE_FRONTEND].major = true;
	/* Nobody counts: nobody is asked. */
	assert_int_equal(driver__see(&driver, 0, &a, 0, 5), 0);
	assert_false(driver__turn(&driver, &vain));
	assert_null(driver__current(&driver));
	for (int window = 0; window < DRIVER_PATIENCE; window++) {
		assert_int_equal(driver__see(&driver, 0, &a, told, 5), 0);
		assert_int_equal(driver__see(&driver, 1, &b, told, 5), 0);
		assert_int_equal(driver__stage(&a, &final), 1);
		assert_false(final);
		assert_false(driver__turn(&driver, &vain));
		assert_int_equal(driver__current(&driver)->group, TOLD_BACKEND);
	}
	driver__see(&driver, 0, &a, told, 5);
	driver__see(&driver, 1, &b, told, 5);
	assert_true(driver__turn(&driver, &vain));
	assert_true(vain.job == 0 && vain.variance == 1 && vain.group == TOLD_BACKEND);
	a.tried |= 1U << vain.group;
	assert_int_equal(driver__current(&driver)->group, TOLD_FRONTEND);
	driver__see(&driver, 0, &a, told, 5);
	assert_int_equal(driver__stage(&a, &final), 2);
	assert_true(final);
	/* The other one's variance ends. */
	assert_false(driver__turn(&driver, &vain));
	assert_null(driver__current(&driver));
	driver__free(&driver);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_each_factor),
	    cmocka_unit_test(test_pairs),
	    cmocka_unit_test(test_each_stage),
	    cmocka_unit_test(test_each_count),
	    cmocka_unit_test(test_collinear),
	    cmocka_unit_test(test_degenerate),
	    cmocka_unit_test(test_mixed),
	    cmocka_unit_test(test_regression_against_formula),
	    cmocka_unit_test(test_less_is_better_and_rare),
	    cmocka_unit_test(test_progressive),
	    cmocka_unit_test(test_selection),
	    cmocka_unit_test(test_question),
	    cmocka_unit_test(test_question_about_the_stuck),
	    cmocka_unit_test(test_where_and_verdict),
	    cmocka_unit_test(test_where),
	    cmocka_unit_test(test_region_option),
	    cmocka_unit_test(test_driver),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
