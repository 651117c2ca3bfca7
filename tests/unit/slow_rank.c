/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "slow_rank.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

const double slow_rank_jitters[2] = {0, 0.05};

/* Shares of BASE_NS that a quiet fragment spends; wholes are sums of their parts. */
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

/* Computes what a quiet fragment spends this time: jittered leaves, and their sums. */
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
		enum counter_group group = factors__group(node);
		double ns = (spent[node] + extra[node]) * BASE_NS;

		if (info->parent == FACTOR_ROOT || info->parent == NODE_SUSPENSION)
			sum += node == NODE_SUSPENSION ? 0 : ns;
		if (factors__counted((enum factor_node)node))
			bundle->factor[info->factor] = counts[node];
		else if (info->factor >= VAPRO_FACTORS || (group != COUNTER_GROUPS && !(groups & 1U << group)))
			continue;
		else if (!(run->kernel_has_none && (node == NODE_KERNEL || info->parent == NODE_KERNEL)))
			bundle->factor[info->factor] = ns;
	}
	bundle->sum_ns = bundle->min_ns = bundle->max_ns = (uint64_t)sum;
	bundle->end_ns = bundle->start_ns + bundle->sum_ns;
}

/* Makes one computation of a rank at t (ns since the start). */
static void compute(struct run *run, int rank, int state, double t, unsigned groups, struct vapro_bundle *bundle)
{
	double extra[FACTOR_NODES] = {0}, counts[FACTOR_NODES], noise = 1 + 0.002 * sim_gauss(&run->seed);
	bool slow = rank == SLOW && (run->always || (t >= 12e9 && t < 18e9));

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

static void take_factors(struct diagnosed *diagnosed, const struct result_diagnosis *diagnosis)
{
	diagnosed->count = diagnosis->factor_count;
	diagnosed->outcome[0] = 0;
	if (diagnosis->regression_count) {
		snprintf(diagnosed->outcome, sizeof(diagnosed->outcome), "%s", diagnosis->regressions[0].outcome);
		diagnosed->rows = (double)diagnosis->regressions[0].rows;
	}
	for (uint32_t i = 0; i < diagnosis->factor_count; i++) {
		const struct result_factor *factor = &diagnosis->factors[i];
		struct diagnosed_factor *shown = &diagnosed->factor[i];

		*shown = (struct diagnosed_factor){.stage = factor->stage,
						   .share = factor->contribution,
						   .impact = factor->impact_seconds,
						   .p = factor->p_value,
						   .major = factor->major,
						   .regression = !strcmp(factor->method, "regression"),
						   .implied = factor->implied};
		snprintf(shown->name, sizeof(shown->name), "%s", factor->name);
		snprintf(shown->parent, sizeof(shown->parent), "%s", factor->parent ? factor->parent : "");
		snprintf(shown->shared, sizeof(shown->shared), "%s", factor->shared_with ? factor->shared_with : "");
		assert_true(isfinite(shown->share) && isfinite(shown->impact));
		assert_true(isnan(shown->p) || (shown->p >= 0 && shown->p <= 1));
	}
}

static void note(struct diagnosed *diagnosed, const struct result_variance *variance)
{
	const struct result_diagnosis *diagnosis = &variance->diagnosis;

	assert_true(diagnosed->reports < 8);
	diagnosed->stages[diagnosed->reports] = (uint32_t)diagnosis->stage;
	diagnosed->finals[diagnosed->reports++] = diagnosis->final;
	diagnosed->final = diagnosis->final;
	diagnosed->lost = variance->lost_seconds;
	snprintf(diagnosed->verdict, sizeof(diagnosed->verdict), "%s", diagnosis->verdict);
	diagnosed->shared_facts[0] = 0;
	for (uint32_t i = 0; i < diagnosis->shared_count; i++)
		snprintf(diagnosed->shared_facts + strlen(diagnosed->shared_facts),
			 sizeof(diagnosed->shared_facts) - strlen(diagnosed->shared_facts), "%s=%s ",
			 diagnosis->shared[i].fact, diagnosis->shared[i].value);
	take_factors(diagnosed, diagnosis);
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

static void note_chosen(struct diagnosed *diagnosed, const struct job_result *result)
{
	for (uint32_t i = 0; i < result->selection_count; i++) {
		const struct result_variance *at = &result->selections[i];
		struct response_region *chosen = &diagnosed->chosen[diagnosed->chosen_count++];

		assert_true(diagnosed->chosen_count <= 3);
		*chosen = (struct response_region){.abnormal = at->diagnosis.abnormal,
						   .normal = at->diagnosis.normal,
						   .lost = at->lost_seconds,
						   .performance = at->performance,
						   .begin = (double)(at->begin_ns - SIM_BEGIN_NS) / 1e9,
						   .end = (double)(at->end_ns - SIM_BEGIN_NS) / 1e9,
						   .class = at->class};
		snprintf(chosen->verdict, sizeof(chosen->verdict), "%s", at->diagnosis.verdict);
		snprintf(chosen->who, sizeof(chosen->who), "%s", at->who);
		take_factors(diagnosed, &at->diagnosis);
	}
}

static unsigned groups_of(const struct analysis *analysis, struct diagnosed *diagnosed)
{
	struct vapro_stage_request request;

	analysis__stage_request(analysis, &request);
	assert_true(diagnosed->request_count < 64);
	diagnosed->requests[diagnosed->request_count] = request.stage;
	snprintf(diagnosed->expands[diagnosed->request_count++], sizeof(diagnosed->expands[0]), "%s",
		 request.expand ? request.expand : "");
	for (int group = COUNTER_FRONTEND; group < COUNTER_GROUPS; group++) {
		if (request.expand && !strcmp(request.expand, factor_infos[counter_group_infos[group].parent].name)) {
			assert_int_equal(request.stage, counter_group_infos[group].stage);
			assert_string_equal(request.job, "j");
			assert_true(request.variance);
			return 1U << group;
		}
	}
	assert_int_equal(request.stage, 1);
	return 1U << COUNTER_TOP;
}

#define TOGETHER 4

/* Merges fragments of a state that are neither long nor new, as the kernel side does. */
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

void slow_rank__query(const struct run *run, struct analysis *analysis)
{
	uint64_t now = SIM_BEGIN_NS + (uint64_t)(run->query_at * 1e9);
	struct response *response = run->response;
	int status;
	pid_t pid = fork();

	if (!pid) {
		const struct job_result *results;

		memset(response, 0, sizeof(*response));
		if (analysis__query(analysis, run->query, "j", now, &results, &response->jobs))
			_exit(1);
		response->begin = ((double)results[0].begin_ns - (double)SIM_BEGIN_NS) / 1e9;
		response->end = ((double)results[0].end_ns - (double)SIM_BEGIN_NS) / 1e9;
		response->fragments = results[0].fragments;
		response->judged = results[0].coverage_total;
		note_chosen(&response->diagnosed, &results[0]);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
}

void slow_rank__run(struct run *run, struct diagnosed *diagnosed)
{
	struct vapro_config config;
	struct analysis *analysis;
	double seconds = run->seconds > 0 ? run->seconds : 30, step = 2.5 * BASE_NS;
	struct vapro_bundle held[RANKS][2] = {0};
	double t[RANKS] = {0};
	unsigned groups = run->progressive ? 1U << COUNTER_TOP : run->groups;

	memset(diagnosed, 0, sizeof(*diagnosed));
	memset(run->put, 0, sizeof(run->put));
	sim_config(&config);
	if (run->progressive)
		config.window_s = 3; /* the variance lasts for several windows */
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
		if (run->query && begin <= run->query_at && end > run->query_at)
			slow_rank__query(run, analysis);
		assert_int_equal(analysis__end_window(analysis, SIM_BEGIN_NS + (uint64_t)(begin * 1e9),
						      SIM_BEGIN_NS + (uint64_t)(end * 1e9), end >= seconds, &results,
						      &count),
				 0);
		for (uint32_t i = 0; count && i < results[0].variance_count; i++)
			note(diagnosed, &results[0].variances[i]);
		if (count && results[0].rare_count) {
			diagnosed->rares += results[0].rare_count;
			diagnosed->rare = results[0].rares[0];
		}
		if (count)
			note_chosen(diagnosed, &results[0]);
		if (run->progressive)
			groups = groups_of(analysis, diagnosed);
	}
	analysis__free(analysis);
}

const struct diagnosed_factor *slow_rank__find(const struct diagnosed *diagnosed, const char *name)
{
	for (uint32_t i = 0; i < diagnosed->count; i++) {
		if (!strcmp(diagnosed->factor[i].name, name))
			return &diagnosed->factor[i];
	}
	return NULL;
}

void slow_rank__show(const struct diagnosed *diagnosed)
{
	for (uint32_t i = 0; i < diagnosed->count; i++) {
		const struct diagnosed_factor *at = &diagnosed->factor[i];

		print_error("  %d %-20s of %-14s %6.2f %% %8.3f s p %-8.2g%s%s%s %s\n", at->stage, at->name, at->parent,
			    100 * at->share, at->impact, at->p, at->major ? " major" : "",
			    at->regression ? " regression" : "", at->implied ? " implied" : "", at->shared);
	}
}

void slow_rank__assert_levels(const struct diagnosed *diagnosed)
{
	for (uint32_t i = 0; i < diagnosed->count; i++) {
		double sum = 0;

		for (uint32_t k = 0; k < diagnosed->count; k++) {
			if (!strcmp(diagnosed->factor[k].parent, diagnosed->factor[i].parent) &&
			    !diagnosed->factor[k].implied)
				sum += diagnosed->factor[k].share;
		}
		/* A level of insignificant counts only is empty. */
		if (sum > 0 && fabs(sum - 1) > 1e-6) {
			slow_rank__show(diagnosed);
			fail_msg("the level of %s sums to %g", diagnosed->factor[i].name, sum);
		}
	}
}

double slow_rank__of_all(const struct diagnosed *diagnosed, const char *name)
{
	double share = 1;

	while (*name) {
		const struct diagnosed_factor *shown = slow_rank__find(diagnosed, name);

		if (!shown)
			return 0;
		share *= shown->share;
		name = shown->parent;
	}
	return share;
}

static struct worst {
	double points;
	const char *name;
} worst;

void slow_rank__report_worst(const char *group)
{
	print_message("%s: at most %.2f points from the truth (%s)\n", group, worst.points, worst.name);
	worst = (struct worst){0};
}

void slow_rank__measure(double found, double truth, const char *name)
{
	double points = 100 * fabs(found - truth);

	if (points >= worst.points)
		worst = (struct worst){points, name};
}

void slow_rank__expect_only(const struct diagnosed *diagnosed, enum factor_node node, double points)
{
	slow_rank__assert_levels(diagnosed);
	slow_rank__measure(slow_rank__of_all(diagnosed, factor_infos[node].name), 1, factor_infos[node].name);
	for (uint32_t i = 0; i < diagnosed->count; i++) {
		const struct diagnosed_factor *shown = &diagnosed->factor[i];
		bool right = false;

		for (enum factor_node at = node; at != FACTOR_ROOT; at = factor_infos[at].parent)
			right |= !strcmp(shown->name, factor_infos[at].name);
		if (shown->major != right) {
			slow_rank__show(diagnosed);
			fail_msg("with %s slow, %s is %smajor", factor_infos[node].name, shown->name,
				 shown->major ? "" : "not ");
		}
	}
	if (!(slow_rank__of_all(diagnosed, factor_infos[node].name) >= 1 - points / 100)) {
		slow_rank__show(diagnosed);
		fail_msg("%s: %.1f %%", factor_infos[node].name,
			 100 * slow_rank__of_all(diagnosed, factor_infos[node].name));
	}
}
