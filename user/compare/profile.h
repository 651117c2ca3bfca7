/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a run is compared by: for each thread, kind of state and size of work the means of batches of its undisturbed
 * fragments, and by slices of time what the kernel attributes to obstacles. Bounded by threads times kinds, whatever
 * the length of the run.
 *
 * Durations of calls are mostly waiting for others, and a rank that waits longer is not slower. Therefore a kind is
 * compared in one of three ways:
 *
 *  PROFILE_OWN    computation and IO that waits for no other rank: by rank
 *  PROFILE_LEAST  blocking collectives: the least call of all ranks in each bin, since the last to arrive waits for
 * none; for the job as a whole PROFILE_NONE   everything else (receives, waits for requests, barriers of threads,
 * pipes, sockets): not compared
 */
#ifndef VAPRO_PROFILE_H
#define VAPRO_PROFILE_H

#include "base/archive.h"
#include "compare/samples.h"
#include "model/stg.h"

enum { PROFILE_SLICES = 128 }; /* slices of time of a thread that a comparison retains */

enum profile_mode { PROFILE_OWN, PROFILE_LEAST, PROFILE_NONE };

enum { PROFILE_CAUSES = 6 }; /* obstacles to running, in computation and IO */
extern const enum vapro_factor profile_causes[PROFILE_CAUSES];

/* Fragments of one thread, one kind and about one size. */
struct profile_cell {
	uint32_t thread, kind;
	uint32_t bucket; /* of the size: 8 to an octave; 0 where work has no size */
	struct samples samples;
	uint32_t met;	  /* members met, up to the end of the warm-up */
	double elapsed_s; /* time of the samples, obstacles included */
};

/* The least calls of a kind and size, by bin. */
struct profile_least {
	uint32_t kind, bucket;
	uint64_t first; /* bin of the first item */
	float *ns;	/* 0: no call in that bin */
	size_t count, capacity;
	uint64_t n; /* calls */
	double size;
};

struct profile_kind {
	uint32_t state; /* the first state of the kind */
	enum profile_mode mode;
	double seconds;
	bool used;
};

struct profile_slice {
	double busy_ns; /* time of computation and IO, obstacles included */
	double cause_ns[PROFILE_CAUSES];
};

struct profile_thread {
	uint64_t first, end; /* bins of its fragments: [first, end) */
	double own_s, least_s, none_s;
	uint32_t width; /* bins in a slice */
	struct profile_slice *slices;
	double cause_s[PROFILE_CAUSES];
};

struct profile {
	struct stg *stg;
	bool by_instructions;
	struct table *by_key; /* cells and leasts */
	struct profile_cell *cells;
	size_t cell_count, cell_capacity;
	struct profile_least *leasts;
	size_t least_count, least_capacity;
	struct profile_kind *kinds;
	size_t kind_capacity;
	struct profile_thread *threads;
	size_t thread_capacity;
	uint64_t fragments, unmeasured; /* computations without a count of instructions, where there are counts */
	uint32_t job;			/* the job with most time; set by profile__end */
	uint32_t other_jobs;
};

struct profile *profile__new(bool by_instructions);
void profile__free(struct profile *profile);

/* As events arrive; a bundle's times have any one clock. Return 0, -EINVAL for an id that is not known, or -ENOMEM. */
int profile__add_thread(struct profile *profile, const struct vapro_thread *thread);
int profile__add_state(struct profile *profile, const struct vapro_state *state);
int profile__add_bundle(struct profile *profile, const struct vapro_bundle *bundle);

/* Ends the batches that are being filled and chooses the job. Returns 0, -ENODATA of nothing, or -ENOMEM. */
int profile__end(struct profile *profile);

/*
 * Writes an ended profile, whose samples become fewer, or reads one into a new profile, which is ended then: it can be
 * compared, and takes nothing more.
 */
void profile__archive(struct archive *archive, struct profile *profile);

/* From its first to its last fragment, seconds; after profile__end. */
double profile__length_s(const struct profile *profile);

/* A state with most time, or NULL. */
const struct vapro_state *profile__main(const struct profile *profile);

#endif
