/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What hang.c and hang_look.c share: what is gathered about a job whose last progress was long ago. */
#ifndef VAPRO_DETECT_HANG_PRIVATE_H
#define VAPRO_DETECT_HANG_PRIVATE_H

#include "detect/hang.h"

struct hang_look {
	const struct hang_input *input;
	const struct stg_job *job;
	uint32_t *open;		/* by row of a rank: its open call among the open bundles, + 1; 0: none */
	unsigned char *in_call; /* by thread of the run: 1 in an open call, 2 in one that may be at work */
	unsigned char *heard;	/* by row of a rank: something came of it in the window; NULL: its node was heard */
	uint64_t progress_ns;	/* the last end of a fragment that is progress, or begin of an open call */
	uint64_t active_ns;	/* the same, or the last use of a CPU outside of calls */
	uint64_t resumed_ns;	/* the last such time of ranks that live: work on end, or a fragment */
};

/* Gathers it; hang_look__end frees it. Returns 0 or -ENOMEM. */
int hang_look__begin(struct hang_look *look, const struct hang_input *input);
void hang_look__end(struct hang_look *look);

/* The last end of a fragment of a first thread of a job's ranks; 0: none. */
uint64_t hang_look__last(const struct hang_input *input, const struct stg_job *job);

/* Finds out whether each rank has completed a collective. Returns 0 or -ENOMEM. */
int hang_look__started(const struct hang_look *look, bool *started);

/* Whether a call reads from a pipe or terminal that has never delivered anything to its thread. */
bool hang_look__waits_for_input(const struct hang_input *input, const struct series *call);

static inline bool is_rank(const struct stg_job *job, size_t row)
{
	return job->rows[row].leader == row;
}

/* The thread of a list of threads; NULL at its end. */
static inline const struct stg_thread *thread_after(const struct hang_input *input, uint32_t at)
{
	return at ? stg__thread(input->stg, at - 1) : NULL;
}

static inline void later(uint64_t *time_ns, uint64_t other_ns)
{
	if (other_ns > *time_ns)
		*time_ns = other_ns;
}

#endif
