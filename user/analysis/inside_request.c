// SPDX-License-Identifier: GPL-2.0-or-later
/* Which threads are sampled until the next window: those of slow computation that goes on. */
#include "analysis/analysis_private.h"

#include <string.h>

/* The worst variances, each of which has a thread at least. */
struct worst {
	const struct variance *variances[VAPRO_INSIDE_THREADS];
	const struct stg_job *jobs[VAPRO_INSIDE_THREADS];
	size_t count;
};

static double lost(const struct variance *variance)
{
	return variance->total.lost[VAPRO_COMPUTATION];
}

static void add(struct worst *worst, const struct variance *variance, const struct stg_job *job)
{
	size_t at = worst->count < VAPRO_INSIDE_THREADS ? worst->count++ : VAPRO_INSIDE_THREADS - 1;

	if (at == VAPRO_INSIDE_THREADS - 1 && worst->variances[at] && lost(worst->variances[at]) >= lost(variance))
		return;
	for (; at && lost(worst->variances[at - 1]) < lost(variance); at--) {
		worst->variances[at] = worst->variances[at - 1];
		worst->jobs[at] = worst->jobs[at - 1];
	}
	worst->variances[at] = variance;
	worst->jobs[at] = job;
}

static void add_threads(const struct stg *stg, const struct stg_row *row, struct vapro_inside_request *request)
{
	for (uint32_t next = row->first; next;) {
		const struct stg_thread *thread = stg__thread(stg, next - 1);
		bool known = false;

		for (uint32_t i = 0; i < request->count; i++)
			known |= request->tids[i] == thread->about.tid;
		if (thread->used && !thread->to_ns && !known && request->count < VAPRO_INSIDE_THREADS)
			request->tids[request->count++] = thread->about.tid;
		next = thread->next;
	}
}

void analysis__inside_request(const struct analysis *analysis, struct vapro_inside_request *request)
{
	const struct stg *stg = analysis->context.stg;
	struct worst worst = {.count = 0};
	bool more = true;

	*request = (struct vapro_inside_request){.count = 0};
	for (size_t i = 0; i < analysis->job_count; i++) {
		const struct variance_book *book = &analysis->jobs[i].book;

		for (size_t k = 0; k < book->count; k++)
			if (book->variances[k].emitted_once && inside__is_open(&book->variances[k]))
				add(&worst, &book->variances[k], stg__job(stg, analysis->jobs[i].id));
	}
	/* a row of each in turn: one variance of many ranks leaves some to the others */
	for (size_t row = 0; more && request->count < VAPRO_INSIDE_THREADS; row++) {
		more = false;
		for (size_t i = 0; i < worst.count; i++) {
			if (row >= worst.variances[i]->row_count)
				continue;
			more = true;
			add_threads(stg, &worst.jobs[i]->rows[worst.variances[i]->rows[row]], request);
		}
	}
}
