// SPDX-License-Identifier: GPL-2.0-or-later
/* When threads and rows live, and how much of their time they work: see stg.h. */
#include "model/stg_private.h"

#include "model/judgement.h"

#include <errno.h>

/* Of a bin: less than computation takes, more than a thread that looks around. */
#define BUSY_NS (SHARE_MEANINGFUL * VAPRO_BIN_NS)
/* Of a bin: stopped all the time, but for the reading's slack. */
#define STOPPED_NS (SHARE_NEARLY_ALL * VAPRO_BIN_NS)
#define WORK_LEAST_NS 1e9 /* time in which a thread beside the first could run, before its share of work is known */

static void widen_row(struct stg *stg, const struct stg_thread *thread)
{
	struct stg_row *row = &stg->jobs[thread->job].rows[thread->row];

	if (!row->from_ns || thread->from_ns < row->from_ns)
		row->from_ns = thread->from_ns;
}

void stg__finished(struct stg *stg, uint32_t id, uint32_t state, uint64_t end_ns)
{
	struct stg_thread *thread = &stg->threads[id];

	if (end_ns < thread->last_ns)
		return;
	thread->last_ns = end_ns;
	thread->last_state = state;
}

/* A row ends with its last thread. */
static void end_row(struct stg *stg, struct stg_row *row)
{
	row->to_ns = 0;
	for (uint32_t at = row->first; at; at = stg->threads[at - 1].next) {
		const struct stg_thread *thread = &stg->threads[at - 1];

		if (!thread->from_ns)
			continue;
		if (!thread->to_ns) {
			row->to_ns = 0;
			return;
		}
		if (thread->to_ns > row->to_ns)
			row->to_ns = thread->to_ns;
	}
}

/* Ends all threads of a process with its main thread. */
static void end_process(struct stg *stg, const struct stg_thread *leader)
{
	for (uint32_t at = stg__process(stg, leader); at; at = stg->threads[at - 1].sibling) {
		struct stg_thread *thread = &stg->threads[at - 1];

		if (thread->to_ns)
			continue;
		thread->to_ns = leader->to_ns;
		end_row(stg, &stg->jobs[thread->job].rows[thread->row]);
	}
}

int stg__thread_seen(struct stg *stg, uint32_t id, uint64_t from_ns, uint64_t to_ns)
{
	struct stg_thread *thread;

	if (id >= stg->thread_count)
		return -EINVAL;
	thread = &stg->threads[id];
	if (from_ns) {
		thread->watched = true;
		thread->from_ns = from_ns;
	}
	thread->to_ns = to_ns == UINT64_MAX ? 0 : to_ns;
	if (thread->from_ns)
		widen_row(stg, thread);
	end_row(stg, &stg->jobs[thread->job].rows[thread->row]);
	if (thread->to_ns && thread->about.pid && thread->about.tid == thread->about.pid)
		end_process(stg, thread);
	return 0;
}

/* Returns when the process of a thread ended, as its main thread shows; 0: still running, or unknown. */
static uint64_t process_end(const struct stg *stg, const struct stg_thread *thread)
{
	const struct vapro_thread *about = &thread->about;
	const struct stg_thread *leader = about->pid ? stg__task(stg, about->host, about->pid, about->pid) : NULL;

	return leader && leader->job == thread->job ? leader->to_ns : 0;
}

int stg__touch(struct stg *stg, uint32_t id, uint64_t start_ns, bool finished)
{
	struct stg_thread *thread = &stg->threads[id];
	bool is_new = thread->about.thread > 0 && !stg->jobs[thread->job].rows[thread->row].thread;

	if (is_new) {
		uint32_t row;

		if (stg__find_row(stg, thread, thread->about.thread, &row))
			return -ENOMEM;
		stg__unlink_thread(stg, id);
		end_row(stg, &stg->jobs[thread->job].rows[thread->row]);
		thread->row = row;
		stg__link_thread(stg, id);
	}
	thread->used |= finished;
	if (thread->to_ns && start_ns >= thread->to_ns) { /* another thread reuses its number */
		thread->to_ns = 0;
		end_row(stg, &stg->jobs[thread->job].rows[thread->row]);
	}
	/* bundles are drained after the end of their process, the first of a thread, too */
	if (!thread->from_ns && process_end(stg, thread) > start_ns)
		thread->to_ns = process_end(stg, thread);
	if (!thread->from_ns || (!thread->watched && thread->from_ns > start_ns))
		thread->from_ns = start_ns;
	else if (!is_new)
		return 0;
	widen_row(stg, thread);
	if (is_new)
		end_row(stg, &stg->jobs[thread->job].rows[thread->row]);
	return 0;
}

void stg__add_work(struct stg *stg, uint32_t id, uint64_t bin, double on_cpu_ns, double attributed_ns)
{
	struct stg_thread *thread = &stg->threads[id];

	if (!thread->work_from || bin + 1 < thread->work_from)
		thread->work_from = bin + 1;
	if (bin + 2 > thread->work_to)
		thread->work_to = bin + 2;
	thread->on_cpu_ns += on_cpu_ns;
	thread->attributed_ns += attributed_ns;
}

void stg__note_account(struct stg *stg, const struct vapro_account *account)
{
	struct stg_thread *thread = &stg->threads[account->thread];
	uint64_t wanted_ns = account->on_cpu_ns + account->preempted_ns + account->wakeup_wait_ns +
			     account->throttled_ns + account->steal_ns;

	if ((double)wanted_ns >= BUSY_NS && account->bin >= thread->busy_to) {
		if (account->bin > thread->busy_to)
			thread->busy_from = account->bin;
		thread->busy_to = account->bin + 1;
	}
	if ((double)account->stopped_ns < STOPPED_NS && !account->stopped_by)
		return;
	if (account->bin > thread->stopped_to)
		thread->stopped_by = VAPRO_STOPPED_UNKNOWN;
	if (account->stopped_by && account->stopped_by < VAPRO_STOPPED_KINDS)
		thread->stopped_by = account->stopped_by;
	if (account->bin >= thread->stopped_to)
		thread->stopped_to = account->bin + 1;
}

double stg__work_share(const struct stg *stg, uint32_t id, uint64_t bin)
{
	const struct stg_thread *thread = &stg->threads[id];
	uint64_t to = bin + 2 > thread->work_to ? bin + 2 : thread->work_to;
	double all;

	if (!thread->work_from || bin + 1 < thread->work_from)
		return 0;
	/* of the same time as the sums: what is attributed later takes nothing away from an early bin */
	all = (double)((to - thread->work_from) * VAPRO_BIN_NS) - thread->attributed_ns;
	/* the account of a thread that always slept begins where it is stopped */
	if (thread->about.thread && all < WORK_LEAST_NS)
		return 0;
	return all > thread->on_cpu_ns ? thread->on_cpu_ns / all : 1;
}

static void shift(uint64_t *time_ns, int64_t ns)
{
	if (*time_ns)
		*time_ns += (uint64_t)ns;
}

void stg__shift_host(struct stg *stg, uint32_t job, uint32_t host, int64_t ns)
{
	struct stg_job *of = &stg->jobs[job];

	for (size_t i = 0; i < of->row_count; i++) {
		struct stg_row *row = &of->rows[i];

		if (row->host_number != host)
			continue;
		shift(&row->from_ns, ns);
		shift(&row->to_ns, ns);
		for (uint32_t at = row->first; at; at = stg->threads[at - 1].next) {
			shift(&stg->threads[at - 1].from_ns, ns);
			shift(&stg->threads[at - 1].to_ns, ns);
		}
	}
}
