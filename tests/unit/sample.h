/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A hand-made result of one job's window, for tests of its output. */
#ifndef VAPRO_TESTS_SAMPLE_H
#define VAPRO_TESTS_SAMPLE_H

#include <math.h>
#include <vapro/analysis.h>

#define SAMPLE_UTC 1800000000000000000ULL /* 2027-01-15T08:00:00Z, a bin border */
#define SAMPLE_BINS 75
#define SAMPLE_RANKS 4

static const struct vapro_state sample_edge = {
    .class = VAPRO_COMPUTATION,
    .from = "solver@1f2e3d4c5b6a+0x1200",
    .to = "solver@1f2e3d4c5b6a+0x1280",
    .labels = "",
    .common = "",
    .from_symbol = "exchange+0x20",
    .to_symbol = "reduce+0x14",
    .from_path = "/home/you/solver",
    .to_path = "/home/you/solver",
};

static const struct vapro_state sample_vertex = {
    .id = 1,
    .class = VAPRO_COMMUNICATION,
    .to = "solver@1f2e3d4c5b6a+0x1280",
    .labels = "bytes=8 function=MPI_Allreduce",
    .common = "bytes=8 function=MPI_Allreduce",
};

/* A hang: rank 2 is in a call, for rank 0, and the others wait for it since the end of the sample. */
static inline struct result_hang sample__hang(void)
{
	static const int32_t late[] = {2}, others[] = {0, 1, 3}, zero[] = {0};
	static const struct result_hang_group groups[] = {
	    {.condition = VAPRO_HANG_IN_CALL,
	     .state = &sample_edge,
	     .since_ns = SAMPLE_UTC + 15000000000ULL,
	     .ranks = late,
	     .rank_count = 1,
	     .waits_for = zero,
	     .waits_for_count = 1},
	    {.condition = VAPRO_HANG_IN_CALL,
	     .state = &sample_vertex,
	     .since_ns = SAMPLE_UTC + 14000000000ULL,
	     .ranks = others,
	     .rank_count = 3,
	     .did_not_enter = late,
	     .did_not_enter_count = 1},
	};

	return (struct result_hang){.id = 9,
				    .state = VAPRO_REGION_OPEN,
				    .kind = VAPRO_HANG_CALLS,
				    .alarm = true,
				    .severity = VAPRO_CRITICAL,
				    .begin_ns = SAMPLE_UTC + 15000000000ULL,
				    .end_ns = SAMPLE_UTC + 75000000000ULL,
				    .rated_share = 0.8,
				    .groups = groups,
				    .group_count = 2};
}

/* Fills *result with static data: rank 2 is slow from 5 s to 8 s, the others wait for it. */
static inline void sample__fill(struct job_result *result)
{
	static const int32_t ranks[] = {0, 1, 2, 3}, slow[] = {2}, waiting[] = {0, 1, 3};
	static double values[2][SAMPLE_RANKS][SAMPLE_BINS];
	static struct result_row rows[2][SAMPLE_RANKS];
	static struct result_heatmap heatmaps[2];
	static const struct result_site sites[] = {{&sample_edge, 1.5, 2.25}}, waits[] = {{&sample_vertex, 4.25, NAN}};
	static const struct result_cause late_peer[] = {{.cause = "late_peer",
							 .explained = true,
							 .lost_seconds = 4.25,
							 .begin_ns = SAMPLE_UTC + 5000000000ULL,
							 .end_ns = SAMPLE_UTC + 8000000000ULL,
							 .ranks = waiting,
							 .rank_count = 3}};
	static const struct result_cause unknown[] = {{.cause = "unknown",
						       .lost_seconds = 0.2,
						       .begin_ns = SAMPLE_UTC + 12000000000ULL,
						       .end_ns = SAMPLE_UTC + 12600000000ULL,
						       .ranks = ranks,
						       .rank_count = 2}};
	static struct result_cause preempted[1];
	static const struct result_culprit culprits[] = {{2, -1, 1.5, 0.01}};
	static const struct result_thread threads[] = {{2, 3, 1002, 1005}};
	static const struct result_exemplar exemplars[] = {
	    {2,
	     0,
	     1002,
	     SAMPLE_UTC + 5123456789ULL,
	     130000000,
	     &sample_edge,
	     {[VAPRO_PREEMPTED] = 65e6, [VAPRO_MIGRATIONS] = 2}},
	};
	static const struct result_factor factors[] = {
	    {"suspension", 1, NULL, 0.91, 1.365, 1.4, "formula", NAN, true, false, NULL, false},
	    {"on_cpu", 1, NULL, 0.09, 0.135, 0, "formula", NAN, false, true, NULL, false},
	    {"preempted", 2, "suspension", 0.97, 1.32, 1.4, "formula", NAN, true, false, NULL, false},
	    {"involuntary_switches", 2, NULL, 0.3, 0.4, 0.5, "regression", 0.0012, true, false, "migrations", true},
	};
	static const struct result_interferer interferers[] = {
	    {.comm = "stress-ng", .pid = 4242, .seconds = 1.3},
	    {.comm = "odd\xff\"name", .pid = 7, .relation = VAPRO_SAME_JOB, .seconds = 0.08}};
	static const struct result_regression regressions[] = {{"kernel", "fitted", 120, 0.75},
							       {"memory", "too_few_rows", 4, NAN}};
	static const struct result_shared shared[] = {{"socket", "1", 2, "n2"}};
	static const char *const hosts[] = {"n2"};
	static struct result_variance variances[3];
	static const struct result_uncovered uncovered[] = {{&sample_vertex, 0, 0.0612, VAPRO_FEW_FRAGMENTS},
							    {NULL, 0, 0.013, VAPRO_NOT_SEEN}};
	static const struct result_shared same_host[] = {{"host", "n2", 0, NULL}};
	static const struct result_imbalance imbalances[] = {{
	    .state = &sample_edge,
	    .fast_rank = 0,
	    .slow_rank = 3,
	    .fast_ns = 1e6,
	    .slow_ns = 1.25e6,
	    .share = 0.31,
	    .ranks = &ranks[2],
	    .rank_count = 2,
	    .ratio = 1.24,
	    .ratio_least = 1.2,
	    .ratio_most = 1.28,
	    .ratio_slow = 1.25,
	    .lost_seconds = 0.75,
	    .states = 3,
	    .certain = true,
	    .shared = same_host,
	    .shared_count = 1,
	    .variance = 1,
	}};
	static const char *const noisy_hosts[] = {"n1"};
	static struct result_noise noise[1];
	static const struct result_drift drifts[] = {{&sample_edge, 1.18, 6}};
	static const struct result_rare rares[] = {{&sample_vertex, 1, NULL, 0, 3, 0.75, 0, NAN},
						   {&sample_edge, 2, NULL, 0, 4, 0.5, 12, 123456.78}};

	for (int map = 0; map < 2; map++) {
		for (int rank = 0; rank < SAMPLE_RANKS; rank++) {
			for (int bin = 0; bin < SAMPLE_BINS; bin++) {
				bool late = bin >= 25 && bin < 40;
				double value = 0.985 + 0.0123456 * ((bin + rank) % 2);

				if (late && (map == 0) == (rank == 2))
					value = map ? 0.3 : 0.52;
				values[map][rank][bin] = bin < 2 ? NAN : value;
			}
			rows[map][rank] =
			    (struct result_row){rank, -1, 1000 + rank, rank < 2 ? "n1" : "n2", values[map][rank]};
		}
		heatmaps[map] = (struct result_heatmap){
		    map ? VAPRO_COMMUNICATION : VAPRO_COMPUTATION, SAMPLE_UTC, SAMPLE_BINS, 0, rows[map], SAMPLE_RANKS};
	}
	preempted[0] = (struct result_cause){.cause = "preempted",
					     .explained = true,
					     .culprit = &interferers[0],
					     .lost_seconds = 1.5000004,
					     .caused_seconds = 4.25,
					     .begin_ns = SAMPLE_UTC + 5000000000ULL,
					     .end_ns = SAMPLE_UTC + 8000000000ULL,
					     .ranks = slow,
					     .rank_count = 1};
	variances[0] = (struct result_variance){
	    .id = 1,
	    .revision = 0,
	    .state = VAPRO_REGION_CLOSED,
	    .class = VAPRO_COMPUTATION,
	    .also = {[VAPRO_IO] = true},
	    .lost_by_class = {1.4, 0, 0.1},
	    .begin_ns = SAMPLE_UTC + 5000000000ULL,
	    .end_ns = SAMPLE_UTC + 8000000000ULL,
	    .ranks = slow,
	    .rank_count = 1,
	    .threads = threads,
	    .thread_count = 1,
	    .who = "thread 3 of rank 2",
	    .performance = 0.52,
	    .ratio_slow = 2.125,
	    .lost_seconds = 1.5000004,
	    .caused_seconds = 4.25,
	    .share = 0.0958,
	    .rated_share = 0.0958,
	    .denominator_seconds = 60,
	    .judged_seconds = 3.125,
	    .causes = preempted,
	    .cause_count = 1,
	    .severity = VAPRO_CRITICAL,
	    .confidence = VAPRO_CONFIRMED,
	    .confirmed = true,
	    .evidence = "the kernel attributes 91 % of the loss",
	    .alarm = true,
	    .sites = sites,
	    .site_count = 1,
	    .culprits = culprits,
	    .culprit_count = 1,
	    .exemplars = exemplars,
	    .exemplar_count = 1,
	    .diagnosis =
		{
		    .stage = 2,
		    .final = true,
		    .factors = factors,
		    .factor_count = 4,
		    .interferers = interferers,
		    .interferer_count = 2,
		    .abnormal = 40,
		    .normal = 4000,
		    .regressions = regressions,
		    .regression_count = 2,
		    .shared = shared,
		    .shared_count = 1,
		    .cause = "preempted",
		    .culprit = &interferers[0],
		    .rows = 1,
		    .hosts = hosts,
		    .host_count = 1,
		    .host = hosts[0],
		    .verdict = "rank 2 lost 1.5 s\a.",
		    .advice = "Another task shares the CPU of rank 2. Keep it off the job's CPUs.",
		},
	};
	variances[1] = (struct result_variance){
	    .id = 2,
	    .revision = 1,
	    .state = VAPRO_REGION_CHANGED,
	    .class = VAPRO_COMMUNICATION,
	    .lost_by_class = {0, 4.25, 0},
	    .begin_ns = SAMPLE_UTC + 5000000000ULL,
	    .end_ns = SAMPLE_UTC + 8000000000ULL,
	    .ranks = waiting,
	    .rank_count = 3,
	    .who = "ranks 0-1,3",
	    .performance = 0.3,
	    .lost_seconds = 4.25,
	    .share = 0.071,
	    .causes = late_peer,
	    .cause_count = 1,
	    .severity = VAPRO_WARNING,
	    .confidence = VAPRO_CONFIRMED,
	    .slow_path = true,
	    .confirmed = true,
	    .evidence = "waiting for rank 2",
	    .effect_of = 1,
	    .sites = waits,
	    .site_count = 1,
	};
	variances[2] = (struct result_variance){
	    .id = 3,
	    .state = VAPRO_REGION_OPEN,
	    .class = VAPRO_COMPUTATION,
	    .lost_by_class = {0.2, 0, 0},
	    .begin_ns = SAMPLE_UTC + 12000000000ULL,
	    .end_ns = SAMPLE_UTC + 12600000000ULL,
	    .ranks = ranks,
	    .rank_count = 2,
	    .who = "ranks 0-1",
	    .performance = 0.8,
	    .lost_seconds = 0.2,
	    .causes = unknown,
	    .cause_count = 1,
	    .confidence = VAPRO_PLACE,
	    .from_start = true,
	    .evidence = "one state only, and the kernel attributes nothing",
	    .still_open = true,
	    .sites = sites,
	    .site_count = 1,
	};
	*noise = (struct result_noise){
	    .id = 3,
	    .revision = 2,
	    .what = "kworker",
	    .relation = VAPRO_FOREIGN,
	    .slices = 1600,
	    .lost_s = 0.36,
	    .longest_s = 0.0011,
	    .share = 0.024,
	    .period_s = 0.0125,
	    .period_least_s = 0.01,
	    .period_most_s = 0.015,
	    .ranks = ranks,
	    .rank_count = 2,
	    .hosts = noisy_hosts,
	    .host_count = 1,
	    .begin_ns = SAMPLE_UTC + 200000000,
	    .end_ns = SAMPLE_UTC + 14800000000ULL,
	};
	*result = (struct job_result){
	    .job = "slurm:1234.0",
	    .begin_ns = SAMPLE_UTC,
	    .end_ns = SAMPLE_UTC + 15000000000ULL,
	    .ranks = ranks,
	    .rank_count = SAMPLE_RANKS,
	    .world_size = 8,
	    .partial = true,
	    .coverage = {0.6, 0.3, 0},
	    .coverage_total = 0.9,
	    .performance = {0.97, 0.88, NAN},
	    .bundles = 4321,
	    .fragments = (1ULL << 53) + 1,
	    .open = 2,
	    .lost = {[VAPRO_LOST_RING_FULL] = 12},
	    .overhead_pct_mean = 0.41,
	    .overhead_pct_max = 0.77,
	    .uncovered = uncovered,
	    .uncovered_count = 2,
	    .heatmaps = heatmaps,
	    .heatmap_count = 2,
	    .variances = variances,
	    .variance_count = 3,
	    .imbalances = imbalances,
	    .imbalance_count = 1,
	    .drifts = drifts,
	    .drift_count = 1,
	    .rares = rares,
	    .rare_count = 2,
	    .noise = noise,
	    .noise_count = 1,
	    .sensing = {.unseen_s = 0.4, .rank = 3, .fragments = 1800, .seconds = 60, .intervals = {5, 6, 7, 8}},
	    .account = {.known = true, .on_cpu_s = 12.25, .stopped_s = 2.5},
	    .small_count = 17,
	    .small_seconds = 0.0625,
	    .clusters = {.states = 3, .clusters = 9, .rare = 2, .approximate = 1, .coarser = 1, .slack = 0.00123456},
	};
}

#endif
