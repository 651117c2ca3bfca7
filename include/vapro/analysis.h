/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pure floors behind one door: model/ (State Transition Graph, clusters), detect/ (when and
 * where) and diagnose/ (why). Bundles and clocks go in, results come out; nothing here knows BPF,
 * a file, a socket or JSON. The same object serves a live node, a replayed capture and simulated
 * ranks. Not thread safe; one caller.
 */
#ifndef VAPRO_ANALYSIS_H
#define VAPRO_ANALYSIS_H

#include <vapro/bundle.h>
#include <vapro/config.h>

struct analysis;

enum vapro_workload_source { VAPRO_BY_ARGUMENTS, VAPRO_BY_INSTRUCTIONS };

/* Reasons for uncovered time. */
enum vapro_uncovered_reason {
	VAPRO_COVERED,
	VAPRO_FEW_FRAGMENTS, /* fewer than certify_fragments seen (or than rare_members with instructions) */
	VAPRO_SPREAD,	     /* no populous group holds enough of its on-CPU time: the workload varies */
	VAPRO_RARE,	     /* with instructions: its cluster is rare */
	VAPRO_GOVERNED,	     /* links closed or calls suppressed by the governor */
	VAPRO_NO_RETURN,     /* --no-return: time is entry to entry */
	VAPRO_NOT_SEEN,	     /* before the first or after the last call of the thread */
	VAPRO_LOST,	     /* bundles lost, by cause in `lost` */
	VAPRO_NO_WORKLOAD,   /* with instructions: a computation that was not measured */
	VAPRO_WARM_UP,	     /* a computation among the first of its workload on a rank */
	VAPRO_SHED,	     /* dropped for the sake of the memory cap */
	VAPRO_UNCOVERED_REASONS,
};

extern const char *const vapro_uncovered_name[VAPRO_UNCOVERED_REASONS];

struct result_uncovered {
	const struct vapro_state *state; /* NULL for gaps that belong to no state */
	uint64_t state_id;		 /* from a record; 0: that of the state */
	double share;			 /* share of the ranks' wall time in the new part */
	enum vapro_uncovered_reason reason;
};

/* A rank, all its threads together, or one thread of a rank with a variance. */
struct result_row {
	int32_t rank;
	int32_t thread; /* -1 = the rank */
	uint32_t pid;
	const char *host;
	const double *values; /* NAN where the bin is not valid */
};

struct result_heatmap {
	enum vapro_class class;
	uint64_t begin_ns; /* UTC; a multiple of VAPRO_BIN_NS */
	uint32_t bins;
	uint32_t revision; /* 0 first, higher for bins emitted again */
	const struct result_row *rows;
	uint32_t row_count;
};

struct result_site {
	const struct vapro_state *state;
	double lost_seconds;
	double ratio; /* the region's time there over its expected time; NAN: unknown */
};

/* A place in code where slow computation ran. */
struct result_inside {
	const char *site; /* as of a call that returns there; VAPRO_IN_KERNEL */
	uint64_t samples;
};

#define VAPRO_IN_KERNEL "[kernel]"

struct result_exemplar {
	int32_t rank, thread; /* thread: its number within the rank */
	uint32_t tid;
	uint64_t start_ns, duration_ns;
	const struct vapro_state *state;
	double factor[VAPRO_FACTORS];
};

struct result_culprit {
	int32_t rank;
	int32_t thread;	     /* -1 where the rank has one row only */
	double lost_seconds; /* its computation's loss in the region's time */
	double wait_seconds; /* its late-peer waiting in the same time */
};

/* Who came last to the operations that others waited in, where no loss names a culprit. rank_count 0: not known. */
struct result_entered_last {
	const int32_t *ranks; /* ascending */
	uint32_t rank_count;
	const char *who;	 /* in words */
	uint64_t operations, of; /* one of them was the last in so many, of so many whose members are known */
	double late_seconds;	 /* later than the median member, in the mean of these operations */
};

/* A thread of a rank with several rows. */
struct result_thread {
	int32_t rank, thread;
	uint32_t pid, tid;
};

enum vapro_region_state { VAPRO_REGION_OPEN, VAPRO_REGION_CHANGED, VAPRO_REGION_CLOSED };

struct result_factor {
	const char *name;
	int stage;		 /* 1 to 3 */
	const char *parent;	 /* NULL at stage 1 */
	double contribution;	 /* 0..1 of its level */
	double impact_seconds;	 /* sum of contributions of the abnormal fragments */
	double duration_seconds; /* time of abnormal fragments whose major factors include it */
	const char *method;	 /* formula, regression */
	double p_value;		 /* NAN where the method has none */
	bool major;
	bool approx;
	const char *shared_with; /* NULL, or factors inseparable from it, joined by commas */
	bool implied;		 /* estimated from shared_with: no part of its level's sum */
};

/* The basis of a regression of counts. */
struct result_regression {
	const char *factor;  /* factor that the counts are parts of */
	const char *outcome; /* fitted, too_few_rows, no_variance or no_factor */
	uint64_t rows;
	double r2; /* NAN where nothing was fitted */
};

/* Owner of a task that ran instead of a job's thread. */
enum vapro_relation {
	VAPRO_FOREIGN,	  /* no process of the job */
	VAPRO_OWN_THREAD, /* the same process */
	VAPRO_SAME_JOB,	  /* another rank of the job */
	VAPRO_MONITOR,	  /* vaprod itself */
	VAPRO_OTHER_JOB,  /* a rank of another job that is watched */
	VAPRO_RELATIONS,
};

struct result_interferer {
	char comm[16];
	uint32_t pid;
	enum vapro_relation relation;
	int32_t rank;	 /* OTHER_JOB: in its job; -1: not known */
	const char *job; /* OTHER_JOB: its job, by name; else NULL */
	double seconds;
};

/* CPUs that a thread may use, and the mean number of runnable threads of its job that may use no others. */
struct cpu_demand {
	double threads;
	uint32_t cpus; /* 0: not known */
};

/* A fact that all slow rows share and the others of the job do not, or hardly. */
struct result_shared {
	const char *fact; /* host, cpu_model, socket, numa, core_type, cgroup or cpu */
	const char *value;
	uint32_t others;  /* rows that have it too and are not slow */
	const char *host; /* of a socket, NUMA node or CPU, where it is one; else NULL */
};

struct result_diagnosis {
	int stage;
	bool final;
	bool same; /* no change of weight since an earlier revision reported it */
	const struct result_factor *factors;
	uint32_t factor_count;
	const struct result_interferer *interferers; /* most seconds first */
	uint32_t interferer_count;
	double interfered;		  /* seconds of all interferers, also of those not listed */
	double interfered_own;		  /* of these: of the job's own threads */
	struct cpu_demand oversubscribed; /* cpus 0: not oversubscribed, or not by the job's own threads */
	bool cpus_unknown;		  /* the job's own threads had the CPUs, which may be too few */
	const struct result_regression *regressions;
	uint32_t regression_count;
	uint32_t abnormal, normal; /* fragments of the diagnosis */
	const char *advice;	   /* one or two sentences */
	const char *verdict;	   /* one sentence: who, where, how much and why */
	const struct result_shared *shared;
	uint32_t shared_count;
	const char *cause;			 /* one word: a factor, or a constant of diagnose/root_cause.h */
	const struct result_interferer *culprit; /* the task that is to blame; NULL: none */
	uint32_t rows;				 /* slow rows */
	const char *const *hosts;		 /* hosts of the slow rows, in order */
	uint32_t host_count;
	const char *host;		  /* host of all slow rows; NULL: several */
	const char *limit, *limit_cgroup; /* CPU quota of slow rows, and the cgroup that has it; NULL: none known */
};

/* Certainty of a variance. Only a confirmed one is an alarm. */
enum vapro_confidence {
	VAPRO_UNCONFIRMED,
	VAPRO_PLACE, /* the ranks of one place are slow, and no others: speed is likelier than work, but not certain */
	VAPRO_CONFIRMED,
};

/* Cost of a variance for the job: its own loss and the waiting it causes, as a share of the ranks' time. */
enum vapro_severity { VAPRO_INFO, VAPRO_WARNING, VAPRO_CRITICAL, VAPRO_SEVERITIES };

#define RESULT_CAUSES 16 /* of one variance, at most */

/* One cause of a variance. All of them add up to its loss. */
struct result_cause {
	const char *cause;			 /* one word, as that of a diagnosis */
	bool explained;				 /* false: what no cause explains */
	const struct result_interferer *culprit; /* the task that took half of it or more; NULL: none */
	double culprit_seconds;			 /* of what was lost, that it took */
	double lost_seconds;
	double caused_seconds; /* others' waiting for it */
	uint64_t begin_ns, end_ns;
	const int32_t *ranks; /* ascending */
	uint32_t rank_count;
};

struct result_variance {
	uint64_t id; /* unique in the run; the same over revisions */
	uint32_t revision;
	enum vapro_region_state state;
	enum vapro_class class;
	bool also[VAPRO_CLASSES];
	double lost_by_class[VAPRO_CLASSES]; /* seconds */
	uint64_t begin_ns, end_ns;	     /* UTC, bin borders */
	const int32_t *ranks;		     /* ascending */
	uint32_t rank_count;
	const char *who;		     /* in words: "rank 3", "threads 1-2 of rank 0" */
	const struct result_thread *threads; /* threads in it, of ranks with several rows; ordered */
	uint32_t thread_count;
	double performance; /* 0..1, over all states of the class in the region */
	double ratio_slow;  /* its time in states that are slow there over the expected time */
	double lost_seconds;
	double observed;	   /* share of its ranks' time in it that was in fragments; NAN unknown */
	double whole_lost_seconds; /* loss if the time that was not observed was like the rest */
	/* time right before and after it in which nothing was seen of its ranks: it may have begun or ended then */
	double unseen_before_seconds, unseen_after_seconds;
	double caused_seconds; /* others' waiting for it: losses of its effects */
	double share;	       /* lost and caused share of the ranks' time while it lasts, at least one stride */
	double rated_share;    /* what decides the severity: the greatest such share in any hour of the job so far */
	double denominator_seconds;	   /* ranks' time of which that is */
	double judged_seconds;		   /* time of which lost_seconds were lost */
	const struct result_cause *causes; /* most lost first, what is not explained last */
	uint32_t cause_count;
	enum vapro_severity severity;
	enum vapro_confidence confidence;
	bool work_unknown;    /* it rests on the kernel's account: the work in its time is unknown */
	bool team_unseen;     /* other threads of its process work unseen: it may have waited for one of them */
	bool from_start;      /* slow since its ranks were first seen: nothing shows that they were faster before */
	bool slow_path;	      /* communication: transfers of these ranks, while no rank was late */
	bool confirmed;	      /* confidence is VAPRO_CONFIRMED */
	const char *evidence; /* one phrase: what confirms it, or what is missing */
	bool alarm;
	uint64_t effect_of;		 /* id of the cause, 0 = not an effect */
	bool still_open;		 /* rests on a fragment that has not ended */
	const struct result_site *sites; /* most lost first */
	uint32_t site_count;
	const struct result_inside *inside; /* of computation; most samples first */
	uint32_t inside_count;
	uint64_t inside_samples; /* also in places that are not listed; 0: it was not sampled */
	const struct result_culprit *culprits;
	uint32_t culprit_count;
	struct result_entered_last entered_last;
	const struct result_exemplar *exemplars; /* worst first, at most 5 */
	uint32_t exemplar_count;
	struct result_diagnosis diagnosis;
};

/*
 * A set of ranks that always takes longer than the others in the same state. With equal instructions, and in
 * calls of equal labels and bytes, the cause is speed (certain); else it is speed or work (section 6 b).
 */
struct result_imbalance {
	const struct vapro_state *state; /* where the set loses most */
	int32_t fast_rank, slow_rank;	 /* typical rank of the others, slowest rank of the set */
	double fast_ns, slow_ns;	 /* references of both, per fragment */
	double share;			 /* share of the job's wall time in this state */
	const int32_t *ranks;		 /* the slow set, ascending */
	uint32_t rank_count;
	double ratio;	     /* the set's typical time over the others', in all its states */
	double ratio_least;  /* least ratio of a state */
	double ratio_most;   /* greatest ratio of a state */
	double ratio_slow;   /* as ratio, over the states in which the set is slow */
	double lost_seconds; /* lost by the set in the new part */
	uint32_t states;     /* states where the set is slow */
	bool certain;
	const struct result_shared *shared; /* facts that the set shares and the others do not */
	uint32_t shared_count;
	uint64_t variance; /* id of the variance that the set is, 0 = none */
};

/* A slow-down common to all ranks and monotone over windows (section 6 d). */
struct result_drift {
	const struct vapro_state *state;
	double ratio; /* last window's mean over the first's */
	uint32_t windows;
};

enum vapro_variability_kind {
	VAPRO_VARIES_NOT,
	VAPRO_VARIES_SPATIALLY,	 /* from rank to rank */
	VAPRO_VARIES_TEMPORALLY, /* from time to time on a rank */
	VAPRO_VARIES_BOTH,
	VAPRO_VARIABILITY_KINDS,
};

enum vapro_variability_origin {
	VAPRO_ORIGIN_UNKNOWN,
	VAPRO_ORIGIN_SOFTWARE, /* other tasks, quotas, interrupts */
	VAPRO_ORIGIN_HARDWARE, /* frequency, or counted stalls */
	VAPRO_VARIABILITY_ORIGINS,
};

/* How far it is known that fragments are of equal work. */
enum vapro_variability_work {
	VAPRO_WORK_UNKNOWN,
	VAPRO_WORK_REPEATED, /* durations repeat on a rank */
	VAPRO_WORK_COUNTED,  /* equal by instructions, or by the bytes of calls */
	VAPRO_VARIABILITY_WORKS,
};

extern const char *const vapro_variability_kind_name[VAPRO_VARIABILITY_KINDS];
extern const char *const vapro_variability_origin_name[VAPRO_VARIABILITY_ORIGINS];
extern const char *const vapro_variability_work_name[VAPRO_VARIABILITY_WORKS];

/*
 * How the batches of some rows varied: model/variation.h has what a batch is. Shares and deviations are fractions: 0.1
 * is 10 %. A figure that too few rows or batches have is NAN.
 */
struct variability_figures {
	enum vapro_variability_kind kind;
	enum vapro_variability_origin origin;
	uint32_t rows; /* ranks, or threads, with enough batches */
	double batches, fragments;
	double between; /* share of the variance of all batches that lies between the rows */
	/* in time: 5th to 95th percentile of the batches of a row, over their median */
	double temporal, temporal_worst; /* of the median row, and of the worst */
	uint32_t temporal_row;		 /* index of the worst */
	double range_over_mean; /* varbench's figure: greatest less least batch over the mean, median of the rows */
	/* in space: of the rows' medians */
	double spread;	     /* 5th to 95th percentile, over the median row */
	double slowest;	     /* the slowest row over the median row, less 1 */
	double over_fastest; /* varbench's figure: the slowest row over the fastest, less 1 */
	/* varbench's RV of the batches of a row */
	double rv, rv_worst; /* of the median row, and the greatest by size */
	uint32_t rv_row;     /* index of the latter */
	double rv_n;	     /* least number of batches of these rows */
	double rv_error;     /* standard error of the kurtosis of as many normal values */
	/* shares of the variance that are covariance with a part of the time */
	double software, frequency, stalls;
};

/* The batches of a rank in a workload: percentiles of the mean time of a fragment, seconds. */
struct result_durations {
	int32_t rank; /* -1 unknown */
	double batches, p05_s, p50_s, p95_s;
};

/* How the time of a workload varied over the run of a job. Emitted once, when all of the job is known. */
struct result_variability {
	const struct vapro_state *state; /* of most of its time */
	enum vapro_variability_work work;
	struct variability_figures figures;
	double seconds;				  /* of all its fragments, of all ranks */
	int32_t temporal_rank, rv_rank;		  /* of the rows in figures; -1: not known */
	const struct result_durations *durations; /* of rows with enough batches, in the order of ranks */
	uint32_t duration_count;
	const int32_t *slow_ranks; /* those as slow as the slowest, where the ranks differ; ascending */
	uint32_t slow_count;
	const struct result_shared *shared; /* facts that these share and the others do not */
	uint32_t shared_count;
	/* of IO, by calls and not by batches: median and 95th percentile, and time above the median; else NAN */
	double call_p50_s, call_p95_s, call_above_s;
};

/* A state that its ranks have few times each, or with instructions a cluster of few members, that took long. */
struct result_rare {
	const struct vapro_state *state;
	int32_t rank;	      /* where it took longest: a cluster in this window, a state so far */
	const int32_t *ranks; /* of a state, ascending; of a cluster NULL */
	uint32_t rank_count;
	uint32_t members;
	double seconds;
	uint32_t cluster; /* stable id, unique among the clusters of its state; 0: a whole state */
	double norm;	  /* norm of the cluster's seed; NAN: a state */
};

/* Why no rank of a job makes progress. */
enum vapro_hang_kind {
	VAPRO_HANG_CALLS,     /* ranks are in calls that do not end, or asleep outside of calls */
	VAPRO_HANG_STOPPED,   /* a rank is stopped by a signal, or by what is not known */
	VAPRO_HANG_TRACED,    /* a rank is stopped by its tracer */
	VAPRO_HANG_FROZEN,    /* a rank is frozen by its cgroup */
	VAPRO_HANG_INPUT,     /* a rank waits for input of which none was seen: no alarm */
	VAPRO_HANG_NOT_KNOWN, /* what some ranks do was not seen: no alarm */
	VAPRO_HANG_KINDS,
};

/* What a rank does in a job that makes no progress. */
enum vapro_hang_condition {
	VAPRO_HANG_STOPPED_RANK,
	VAPRO_HANG_TRACED_RANK,
	VAPRO_HANG_FROZEN_RANK,
	VAPRO_HANG_ENDED,
	VAPRO_HANG_ASLEEP, /* outside of calls, without time on a CPU */
	VAPRO_HANG_WAITS_FOR_INPUT,
	VAPRO_HANG_UNSEEN, /* not known */
	VAPRO_HANG_IN_CALL,
	VAPRO_HANG_NO_DATA, /* nothing came from its node */
	VAPRO_HANG_CONDITIONS,
};

/* How a hang ended. */
enum vapro_hang_outcome {
	VAPRO_HANG_GOES_ON,
	VAPRO_HANG_RESUMED,   /* a rank made progress */
	VAPRO_HANG_JOB_ENDED, /* all ranks ended */
	VAPRO_HANG_UNWATCHED, /* vaprod, or its input, ended before */
	VAPRO_HANG_OUTCOMES,
};

extern const char *const vapro_hang_kind_name[VAPRO_HANG_KINDS];
extern const char *const vapro_hang_condition_name[VAPRO_HANG_CONDITIONS];
extern const char *const vapro_hang_outcome_name[VAPRO_HANG_OUTCOMES];

#define RESULT_HANG_GROUPS 16 /* of one hang, at most */

/* Ranks of a hang that do the same. Lists of ranks are ascending. */
struct result_hang_group {
	enum vapro_hang_condition condition;
	const struct vapro_state
	    *state;	   /* the call that they are in; ASLEEP, ENDED: the last one that they made; NULL */
	uint64_t since_ns; /* the first of them is in it since then, UTC; 0: not known */
	const int32_t *ranks;
	uint32_t rank_count;
	const int32_t *waits_for; /* ranks that their calls name */
	uint32_t waits_for_count;
	bool any_source;	      /* or any rank */
	const int32_t *did_not_enter; /* of a collective of all ranks */
	uint32_t did_not_enter_count;
};

/* Time in which no rank of a job made progress. Emitted when it is found, when it changes or has doubled, and once it
 * is over. */
struct result_hang {
	uint64_t id; /* unique in the run among variances and hangs */
	uint32_t revision;
	enum vapro_region_state state;
	enum vapro_hang_kind kind;
	enum vapro_hang_outcome outcome;
	enum vapro_severity severity;
	bool alarm;
	uint64_t begin_ns, end_ns; /* UTC; begin: the last progress */
	double rated_share;	   /* of the last hour of the job, or of all of its time while that is less */
	uint32_t unseen_ranks;	   /* ranks of the job that are not watched */
	const struct result_hang_group *groups; /* those that wait for no other rank first, then few ranks first */
	uint32_t group_count;
};

/*
 * Seconds of a job's threads in the new part by condition, from the kernel's account. The threads slept in the rest of
 * their time.
 */
struct result_account {
	bool known; /* false: no account (an older capture) */
	double on_cpu_s, preempted_s, wakeup_wait_s, throttled_s, stopped_s, steal_s, blocked_io_s, blocked_other_s;
};

/* The clusters of all states of a job by instructions, and whether they are those of Algorithm 1. */
struct result_clusters {
	uint32_t states; /* states with clusters; 0 without instructions */
	uint32_t clusters, rare;
	uint32_t approximate; /* states whose clusters are not certified to be exact */
	uint32_t coarser;     /* states that were too diverse for their bound on cells */
	double slack;	      /* slack of the worst state, see model/clusters.h */
	double work_ratio;    /* most instructions by least in a cluster that is judged, of the worst one; 0: none */
};

/* The clock of one of a job's hosts, against the others'. */
struct result_clock {
	const char *host;
	bool known;	    /* false: no collectives show it, or they do not agree */
	double offset_s;    /* ahead of the lower median of the job's known clocks; NAN: unknown */
	double spread_s;    /* how far off offset_s may be; NAN: unknown */
	double corrected_s; /* the times of the host's events were reduced by it */
	double bound_s;	    /* how far off it is at most, by its own kernel; NAN: not synchronised, or unknown */
};

/* Where the stalls of a noise component were found. */
enum vapro_noise_source { VAPRO_NOISE_SCHEDULER, VAPRO_NOISE_FRAGMENTS, VAPRO_NOISE_SOURCES };

/* Whether most ranks of a host, or of the job, lose the stalls of a component at the same moments. */
enum vapro_noise_together { VAPRO_NOISE_APART, VAPRO_NOISE_HOST, VAPRO_NOISE_JOB, VAPRO_NOISE_TOGETHER };

extern const char *const vapro_noise_source_name[VAPRO_NOISE_SOURCES];
extern const char *const vapro_noise_together_name[VAPRO_NOISE_TOGETHER];

/* A state in which stalls of a component were. */
struct result_noise_site {
	const struct vapro_state *state;
	double share; /* of the latest stalls */
};

/*
 * A noise component: stalls of one kind. Of the scheduler: all slices of tasks of one name, of no process of the job,
 * for which threads of the job waited. Of fragments: those that took about as much longer than their states usually do,
 * for no reason that the kernel attributes. Sums since the start of the job; ranks, hosts, periods and share are of the
 * ranks that lost most to it.
 */
struct result_noise {
	enum vapro_noise_source source;
	uint32_t id, revision;
	bool final;	  /* the job is over */
	const char *what; /* name of the tasks; of fragments the function in which most are, or their class */
	enum vapro_relation relation; /* of tasks */
	uint32_t pid;		      /* of their process; 0: of several */
	enum vapro_class class;	      /* of fragments */
	uint64_t slices;	      /* stalls */
	uint64_t unresolved;	      /* further stalls of these ranks and the class, merged with too different ones */
	double lost_s, longest_s;     /* of all stalls, of one */
	double waited_s;	      /* of fragments: other ranks' waiting for the stalls */
	double share;		      /* of the time of these ranks */
	double period_s, period_least_s, period_most_s; /* observed time of a rank by its stalls: median, least, most */
	double regularity;		    /* of fragments: deviation of the gaps by their mean; NAN: not known */
	enum vapro_noise_together together; /* of fragments */
	int second;			    /* of fragments: of the minute (UTC), in which all were; -1: none */
	const int32_t *ranks;
	uint32_t rank_count;
	const char *const *hosts;
	uint32_t host_count;
	const struct result_noise_site *sites; /* of fragments; most stalls first */
	uint32_t site_count;
	const struct result_exemplar *exemplars; /* of fragments; the latest first, without factors */
	uint32_t exemplar_count;
	uint64_t begin_ns, end_ns; /* UTC, on bin borders */
	double forgotten_s;	   /* of slices of the job that are in no component, since there were too many names */
};

/* A part of a rank's time over the run: computation, or a function of communication or IO. */
struct result_profile_part {
	enum vapro_class class;
	const char *function; /* NULL: of computation */
	double calls;	      /* fragments that ended; of computation those between two calls */
	double seconds;
	double
	    waiting_seconds; /* part in which calls took longer than they do where no peer is late, as far as known */
	double covered_seconds; /* part that was evaluated */
};

/* The time of a rank over the run, as coverage counts it; what its parts leave was not seen. */
struct result_rank_profile {
	int32_t rank; /* -1 unknown */
	uint32_t pid;
	const char *host;
	double seconds;
	const struct result_profile_part *parts; /* most time first */
	uint32_t part_count;
};

#define SENSING_INTERVALS 4

/* How often fragments of the ranks ended that were judged, in the new part of a window; see detect/sensing.h. */
struct result_sensing {
	double unseen_s; /* longest time of a rank in which none ended, from before the new part on; 0: no rank was
			    there */
	int32_t rank;	 /* that rank; -1 unknown */
	double fragments, seconds;	       /* judged fragments; time for which the ranks were there */
	uint64_t intervals[SENSING_INTERVALS]; /* between two of a rank: below 100 us, 10 ms, 1 s, and longer */
};

/* One job's window: a record covers its new part [begin_ns, end_ns). */
struct job_result {
	const char *job;
	uint32_t user; /* as in struct vapro_thread */
	uint64_t begin_ns, end_ns;
	const int32_t *ranks;
	uint32_t rank_count;
	uint32_t world_size;
	bool partial; /* fewer ranks seen than the world has */
	double coverage[VAPRO_CLASSES], coverage_total;
	double covered_before_s;	   /* before the window, by fragments that ended in it */
	double performance[VAPRO_CLASSES]; /* NAN where nothing is covered */
	uint64_t bundles, fragments, open;
	uint64_t shed; /* fragments that the memory cap left no room for; their time is uncovered */
	uint64_t lost[VAPRO_LOSSES];
	double overhead_pct_mean, overhead_pct_max;
	uint32_t overhead_pid_max;		  /* process of that maximum; 0: not known */
	const struct result_uncovered *uncovered; /* largest share first, those over 0.5 % */
	uint32_t uncovered_count;
	const struct result_heatmap *heatmaps;
	uint32_t heatmap_count;
	const struct result_variance *variances; /* changed in this window; most lost first */
	uint32_t variance_count;
	const struct result_variance *selections; /* the region chosen by hand, by class; with the last window */
	uint32_t selection_count;
	const struct result_imbalance *imbalances;
	uint32_t imbalance_count;
	const struct result_drift *drifts;
	uint32_t drift_count;
	const struct result_rare *rares;
	uint32_t rare_count;
	const struct result_noise *noise; /* changed in this window; greatest share of a rank's time first */
	uint32_t noise_count;
	const struct result_variability *variability; /* most time first; none before the job is over */
	uint32_t variability_count;
	const struct result_rank_profile *profiles; /* in the order of ranks; none before the job is over */
	uint32_t profile_count;
	const struct result_hang *hang; /* NULL: none, or no change in this window */
	struct result_clusters clusters;
	struct result_account account;
	struct result_sensing sensing;
	const struct result_clock *clocks; /* in the order of the hosts' names */
	uint32_t clock_count;		   /* 0: the job has one host */
	uint64_t small_count;		   /* slow regions that cost too little for a variance of their own */
	double small_seconds;		   /* lost by these regions */
};

/* config is copied. Returns NULL when out of memory. */
struct analysis *analysis__new(const struct vapro_config *config, enum vapro_workload_source source);
void analysis__free(struct analysis *analysis);

/* Add a thread or a state before its first bundle; ids are dense from 0. Texts are copied. 0 or -errno. */
int analysis__add_thread(struct analysis *analysis, const struct vapro_thread *thread);
int analysis__add_state(struct analysis *analysis, const struct vapro_state *state);

/* Nothing more comes of a state: its number is not used any more. Returns 0, or -EINVAL for an unknown state. */
int analysis__state_gone(struct analysis *analysis, uint32_t state);

/*
 * Adds a bundle (times in UTC ns), in any order between threads, time-ordered within one. An open
 * fragment (VAPRO_BUNDLE_OPEN) lasts for the next window only: it is added again each time.
 * Returns 0, -EINVAL for an unknown thread or state or impossible times, or -ENOMEM.
 */
int analysis__add_bundle(struct analysis *analysis, const struct vapro_bundle *bundle);

/*
 * Adds a bundle as analysis__add_bundle does, with times of a clock that is offset_ns behind UTC (ns, modulo 2^64).
 */
int analysis__add_bundle_at(struct analysis *analysis, const struct vapro_bundle *bundle, uint64_t offset_ns);
int analysis__add_interference(struct analysis *analysis, const struct vapro_interference *interference);
/* Adds a thread's account of a bin. */
int analysis__add_account(struct analysis *analysis, const struct vapro_account *account);
int analysis__add_facts(struct analysis *analysis, const struct vapro_process_facts *facts);

/* Sets what is known of a host's clock; the last call holds. Returns 0 or -ENOMEM. */
int analysis__add_host_clock(struct analysis *analysis, const struct vapro_host_clock *clock);

/* Sets a thread's location; the last call holds. Returns -EINVAL for an unknown thread. */
int analysis__place(struct analysis *analysis, const struct vapro_place *place);

/*
 * A region chosen by hand (VAPRO (PPoPP'22) section 3.5), to be diagnosed with the last window whether it
 * is slow or not. To be called before the first window ends. Texts and lists are copied.
 */
struct vapro_selection {
	const int32_t (*ranks)[2]; /* first and last of each range; NULL: all */
	uint32_t range_count;
	bool relative;		   /* times count from the begin of the first window */
	uint64_t begin_ns, end_ns; /* UTC; end 0: as long as it lasts */
};

int analysis__select(struct analysis *analysis, const struct vapro_selection *selection);

/* Sets the bytes that others hold under the same memory cap: the names of states before they come here. */
void analysis__held_elsewhere(struct analysis *analysis, size_t bytes);

/*
 * From now on retains what windows drop, for queries: at most so many seconds and about so many bytes,
 * the oldest goes first. Without retention a query reaches back as far as the next window's view.
 */
void analysis__remember(struct analysis *analysis, double seconds, uint64_t bytes);

/*
 * Serves a query between windows: why a region (its times UTC, not relative) of one job, or of all (NULL),
 * was slow. The response rests on retained bundles and on references as of now_ns, which the query updates:
 * later windows would differ, so query a copy (a forked process) that has no other task. The results name
 * every job with retained data; begin_ns and end_ns span that data. For jobs that the query is about,
 * fragments are those of the region, coverage_total the share of their time that could be judged, uncovered
 * the rest by reason (without states), ranks those of the job. Returns 0 or -ENOMEM.
 */
int analysis__query(struct analysis *analysis, const struct vapro_selection *selection, const char *job,
		    uint64_t now_ns, const struct job_result **results, uint32_t *count);

/*
 * Gets the heat maps of all jobs as they were last emitted, as far back as they are retained: of each job its name,
 * user, time and a map of ranks per class. They live until the next call. Returns 0 or -ENOMEM.
 */
int analysis__emitted(struct analysis *analysis, const struct job_result **results, uint32_t *count);

/* A thread has ended (its rows stop there) or appeared; UTC ns. */
int analysis__thread_seen(struct analysis *analysis, uint32_t thread, uint64_t from_ns, uint64_t to_ns);

/*
 * Ends a window: [begin_ns, end_ns) is its new part; the view reaches back a third of the window length further. Of a
 * part longer than a day only the last day is judged. With `last` every open region is closed. The results, one per
 * job, belong to the analysis and live until the next call. Returns 0 or -ENOMEM.
 */
int analysis__end_window(struct analysis *analysis, uint64_t begin_ns, uint64_t end_ns, bool last,
			 const struct job_result **results, uint32_t *count);

/*
 * Counters that the node should have on until the next window (VAPRO (PPoPP'22) section 4.3): those of one
 * stage at a time. Valid after each end_window; the text belongs to the analysis.
 */
struct vapro_stage_request {
	int stage;	    /* 1: the CPU's time as a whole */
	const char *expand; /* the factor whose parts are to be counted; NULL at stage 1 */
	const char *job;    /* the stage's job; NULL at stage 1 */
	uint64_t variance;  /* 0 at stage 1 */
	bool interrupts;    /* interrupts are to be timed, whatever is counted */
};

void analysis__stage_request(const struct analysis *analysis, struct vapro_stage_request *request);

/*
 * Threads to be sampled until the next window: those of slow computation that goes on, of the worst variances first.
 * Valid after each end_window.
 */
#define VAPRO_INSIDE_THREADS 16

struct vapro_inside_request {
	uint32_t count;
	uint32_t tids[VAPRO_INSIDE_THREADS]; /* tasks */
};

void analysis__inside_request(const struct analysis *analysis, struct vapro_inside_request *request);

/*
 * Adds samples of a thread's place in the computation after a call, of the window that ends next; site as in struct
 * result_inside, NULL: unlisted places. Returns 0, -EINVAL for an unknown thread or state, or -ENOMEM.
 */
int analysis__add_inside(struct analysis *analysis, uint32_t thread, uint32_t state, const char *site,
			 uint64_t samples);

/*
 * Hopping: the calls of a call-site in a wrapper, whose states' times spread, are distinguished by their callers, one
 * frame at a time; this stays only where times become steady. A decision holds for the call-site, whatever the rank.
 */
enum vapro_hop {
	VAPRO_HOP_NONE,
	VAPRO_HOP_UP,	   /* to be distinguished by its callers from now on */
	VAPRO_HOP_STAYS,   /* its states became steady: it remains so */
	VAPRO_HOP_BACK,	   /* its states stayed unsteady: as before, for good */
	VAPRO_HOP_REFUSED, /* the decided hop is not possible */
	VAPRO_HOPS,
};

extern const char *const vapro_hop_name[VAPRO_HOPS];

/* A decision about a call-site, or its outcome. */
struct vapro_hop_event {
	enum vapro_hop hop;
	const char *site;   /* the last of the call-sites that a state's text names at one end */
	const char *symbol; /* for people; NULL where unknown */
	const char *reason; /* why it is refused, else NULL */
};

/* Gets the next decision that is due, HOP_NONE if none; now_ns of any clock. Texts live until the next call. */
void analysis__hop_request(struct analysis *analysis, uint64_t now_ns, struct vapro_hop_event *request);

/* Notes that a decision was carried out, or could not be. Returns 0 or -ENOMEM. */
int analysis__hopped(struct analysis *analysis, const struct vapro_hop_event *event, uint64_t now_ns);

/* Data that a window gave up for the memory cap. */
struct vapro_shed {
	uint64_t bytes;		     /* bytes held at the window's end */
	uint64_t remembered;	     /* dropped bundles that were retained for queries */
	uint64_t merged;	     /* bundles merged into others of their state, bin and norm cell */
	uint64_t bins;		     /* bins of the heat maps' history */
	uint64_t coarser;	     /* states whose workload cells were made coarser */
	uint64_t bundles, fragments; /* dropped altogether; their time is uncovered, reason shed */
	double seconds;		     /* time of these fragments */
	uint64_t evicted;	     /* histories of states that were not met for long: no loss */
};

/* Gets what the last window gave up. */
void analysis__shed(const struct analysis *analysis, struct vapro_shed *shed);

/* Notes that a factor's parts cannot be counted here: they are not requested again, another request may follow. */
void analysis__refuse_stage(struct analysis *analysis, const char *expand);

/*
 * Saves the whole state as bytes (docs/checkpoint.md), at any time but in a call; smallest after a window. An analysis
 * with the same tunables that loads them and gets the rest of the calls returns what this one would. The bytes are
 * malloc'ed. Returns 0, -ENOMEM, or -ENOTSUP with a sentence in err where there is state that cannot be saved: a
 * region chosen by hand.
 */
int analysis__save(const struct analysis *analysis, uint8_t **data, size_t *size, char *err, size_t err_size);

/*
 * Loads the state into a new analysis. Returns 0, or with a sentence in err -EBADMSG for bytes that are no checkpoint,
 * damaged or contradictory, -ENOTSUP for one of other tunables, -EINVAL where the analysis is not new, or -ENOMEM; then
 * the analysis can only be freed.
 */
int analysis__load(struct analysis *analysis, const uint8_t *data, size_t size, char *err, size_t err_size);

#endif
