/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the parts of a simulation share: the program (job.c), its costs (cost.c), the collector (collect.c). */
#ifndef VAPRO_ACCURACY_SIMULATION_H
#define VAPRO_ACCURACY_SIMULATION_H

#include <math.h>

#include "draw.h"
#include "job.h"

#define S_NS 1e9
#define TOUCHED 4

struct touched {
	uint32_t truth;
	double extra_ns;
};

/* One fragment of one rank. Times are ns since the job's start. */
struct fragment {
	int rank, step;
	double start, end;
	double off;	     /* of it, off the CPU */
	double need;	     /* undisturbed duration; 0: the step's */
	double bytes;	     /* of calls; 0: the step's */
	double instructions; /* of computations */
	double waits;	     /* extra waits for memory, on the CPU */
	double factor[VAPRO_FREQUENCY + 1];
	double level[VAPRO_STORE - VAPRO_L1 + 1]; /* parts of `waits`: where they show, the rest in DRAM */
	uint32_t slowed;			  /* bit per effect that makes this call slow */
	double plain;				  /* ns of its transfer without them */
	struct touched touched[TOUCHED];	  /* truths that it adds to */
	int touched_count;
	unsigned switches;
};

/* A merged bundle or a single that waits for its bin to close. */
struct held {
	struct vapro_bundle bundle;
	uint64_t key; /* of merged ones; 0: a single */
};

struct known {
	uint64_t key;
	double least;
	unsigned seen;
};

#define KNOWN 64

struct rank {
	double t;
	double usual_t;		   /* the clock without faults that slow calls */
	uint32_t effects, active;  /* bit per effect of the job: that has to do with this rank; now */
	double border;		   /* until then `active` holds */
	double slice[JOB_EFFECTS]; /* ns on the CPU before it loses it again */
	size_t occurrence[JOB_EFFECTS];
	bool once[JOB_EFFECTS];
	unsigned members[JOB_STEPS];
	/* batches for references: slices of 200 ms with 5 members, or 5 members */
	uint64_t slice_bin[JOB_STEPS];
	unsigned slice_members[JOB_STEPS], carried[JOB_STEPS], batches[JOB_STEPS];
	double sum;		      /* ns of its fragments */
	double speed, speed_t;	      /* noise.wander: the last value, and when */
	double next_hit[JOB_EFFECTS]; /* of EFFECT_HITS */
	/* the collector's */
	uint64_t calls, bin;
	unsigned singles;
	struct held *held;
	size_t held_count, held_capacity;
	struct known known[KNOWN];
	int known_count;
	size_t interference; /* its latest entry in sim.interference, from 1 */
};

struct occurrence {
	double t;
	int rank;
};

struct sim {
	const struct job *job;
	enum vapro_workload_source source;
	struct stream_sink *sink;
	int status;
	struct draw draw;
	struct rank *ranks;
	struct occurrence *occurrences[JOB_EFFECTS];
	size_t occurrence_count[JOB_EFFECTS];
	long truth_of[JOB_FAULTS]; /* index of the fault's truth, -1: not begun */
	struct truths *truths;
	size_t truth_capacity;
	unsigned char **lost; /* per truth: a byte per rank */
	uint64_t all_batches[JOB_STEPS];
	double (*batches)[JOB_STEPS]; /* per truth: of all ranks when it began */
	double (*step_lost)[JOB_STEPS];
	int iteration;
	double size;   /* of messages now, of their usual bytes; 0: 1 */
	int announced; /* ranks that the collector knows */
	struct job_totals *totals;
	/* windows */
	double window_begin, window_end, window_s;
	struct vapro_bundle *pending; /* that end after the window */
	size_t pending_count, pending_capacity;
	struct fragment *spanning; /* that end after the window and began in it */
	size_t spanning_count, spanning_capacity;
	struct vapro_interference *interference;
	size_t interference_count, interference_capacity;
};

/* cost.c: durations. Ranks' clocks advance; fragments get their factors. */
bool cost__prepare(struct sim *sim);
void cost__compute(struct sim *sim, struct fragment *fragment);
void cost__write(struct sim *sim, struct fragment *fragment);
double cost__transfer(struct sim *sim, struct fragment *fragment);	   /* ns, without waiting */
void cost__wait(struct sim *sim, struct fragment *fragment, double until); /* in a call */
/* A call that ended: it would have ended at `usual` on the clock without slow calls. */
void cost__end_call(struct sim *sim, struct fragment *fragment, double usual);
void cost__take(struct sim *sim, int rank, uint32_t pid, double from, double to);

/* noise.c: what a computation takes beside its work, and a call beside its transfer; 1 where there is no noise. */
double noise__computation(struct sim *sim, const struct fragment *fragment);
double noise__call(struct sim *sim, const struct fragment *fragment);
double noise__work(const struct sim *sim, int rank);
double noise__counter(struct sim *sim);

/* truth.c: the cost of faults. */
void truth__lose(struct sim *sim, int effect, struct fragment *fragment, double from, double extra_ns, bool reported);
void truth__extend(struct sim *sim, int effect, double until); /* a loss lasted so long, ns */
void truth__count(struct sim *sim, const struct fragment *fragment);
void truth__settle(struct sim *sim);
long truth__begin(struct sim *sim, int effect);

/* collect.c: fragments become bundles, bundles windows. */
void collect__announce(struct sim *sim);
bool collect__watched(const struct sim *sim, int rank, double from, double to); /* ns */
void collect__fragment(struct sim *sim, struct fragment *fragment);
void collect__bundle(struct sim *sim, const struct vapro_bundle *bundle);
void collect__close_windows(struct sim *sim, double t); /* that end until t, ns */
void collect__end(struct sim *sim);
void collect__factors(const struct sim *sim, const struct fragment *fragment, double *factor);

/* bulk.c */
void bulk__run(struct sim *sim);

static inline uint64_t sim_utc(double t_ns)
{
	return JOB_BEGIN_NS + (uint64_t)(int64_t)floor(t_ns + 0.5);
}

static inline uint64_t sim_mono(double t_ns)
{
	return JOB_MONO_NS + (uint64_t)(int64_t)floor(t_ns + 0.5);
}

/* A moment by the clock of a rank's host. */
static inline double sim_clock(const struct sim *sim, int rank, double t_ns)
{
	const struct job *job = sim->job;

	return job->skew_s != 0 && job__host(job, rank) == job->skewed_host ? t_ns + job->skew_s * S_NS : t_ns;
}

/* Room for one more, doubled when needed; NULL (and sim->status) when out of memory. */
void *sim__room(struct sim *sim, void *items, size_t *capacity, size_t need, size_t size);

#endif
