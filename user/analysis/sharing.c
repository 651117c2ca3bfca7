// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/sharing.h"

#include "base/grow.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CPUS_MAX 8192
#define MARGIN 1.1 /* threads that sleep now and then are counted a little too high */

struct cpu_list {
	uint64_t bits[CPUS_MAX / 64];
};

/* Threads of one host with equal lists of CPUs. */
struct group {
	uint32_t host;
	const char *list; /* interned: equal lists have equal addresses */
	struct cpu_list set;
	double runnable_ns; /* of threads with bundles */
	double threads;	    /* mean of runnable ones of those without */
};

struct sharing {
	const struct stg_job *about;
	const char **lists; /* by thread of the run; NULL unknown */
	const char **rows;  /* by row: the list of a thread of it, for those of its rank without one */
	bool *seen;	    /* by thread: it has bundles */
	struct group *groups;
	size_t count, capacity;
	uint64_t first_ns, last_ns; /* what the bundles span: a job may begin or end within the view */
};

static void read_list(const char *list, struct cpu_list *set)
{
	memset(set, 0, sizeof(*set));
	while (isdigit((unsigned char)*list)) {
		char *end;
		unsigned long first = strtoul(list, &end, 10), last = first;

		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		for (; first <= last && first < CPUS_MAX; first++)
			set->bits[first / 64] |= 1ULL << first % 64;
		list = *end == ',' ? end + 1 : end;
	}
}

static bool is_within(const struct cpu_list *inner, const struct cpu_list *outer)
{
	for (size_t i = 0; i < CPUS_MAX / 64; i++)
		if (inner->bits[i] & ~outer->bits[i])
			return false;
	return true;
}

static uint32_t size_of(const struct cpu_list *set)
{
	uint32_t size = 0;

	for (size_t i = 0; i < CPUS_MAX / 64; i++)
		size += (uint32_t)__builtin_popcountll(set->bits[i]);
	return size;
}

/* Returns the group of a thread, made at first use; NULL where its CPUs are not known, or when out of memory. */
static struct group *group_of(struct sharing *sharing, uint32_t thread, uint32_t row)
{
	uint32_t host = sharing->about->rows[row].host_number;
	uint32_t leader = sharing->about->rows[row].leader;
	const char *list = sharing->lists[thread] ? sharing->lists[thread]
			   : sharing->rows[row]	  ? sharing->rows[row]
						  : sharing->rows[leader];
	struct group *group;

	if (!list)
		return NULL;
	for (size_t i = 0; i < sharing->count; i++)
		if (sharing->groups[i].host == host && sharing->groups[i].list == list)
			return &sharing->groups[i];
	if (grow(&sharing->groups, &sharing->capacity, sharing->count + 1, sizeof(*sharing->groups)))
		return NULL;
	group = &sharing->groups[sharing->count++];
	*group = (struct group){.host = host, .list = list};
	read_list(list, &group->set);
	return group;
}

/* Returns the ns of a bundle inside [from, to) in which its thread was on a CPU or waited for one. */
static double runnable_ns(const struct bundle_rec *rec, uint64_t from, uint64_t to)
{
	uint64_t begin = rec->start_ns > from ? rec->start_ns : from, end = rec->end_ns < to ? rec->end_ns : to;
	double wall = rec->end_ns > rec->start_ns ? (double)(rec->end_ns - rec->start_ns) : 1;
	double runnable = rec->sum_ns - rec->factor[VAPRO_BLOCKED_IO] - rec->factor[VAPRO_BLOCKED_OTHER];

	return end > begin && runnable > 0 ? runnable * (double)(end - begin) / wall : 0;
}

static void add_time(struct sharing *sharing, const struct analysis_context *context, const struct bundle_rec *rec,
		     size_t count, const struct analysis_span *span)
{
	uint64_t from = span->view * VAPRO_BIN_NS, to = span->end * VAPRO_BIN_NS;

	for (size_t i = 0; i < count && to > from; i++) {
		const struct series *series = &context->series.series[rec[i].series];
		struct group *group = group_of(sharing, series->thread, series->row);

		sharing->seen[series->thread] = true;
		if (group)
			group->runnable_ns += runnable_ns(&rec[i], from, to);
		if (rec[i].end_ns <= from || rec[i].start_ns >= to)
			continue;
		if (rec[i].start_ns < sharing->first_ns)
			sharing->first_ns = rec[i].start_ns > from ? rec[i].start_ns : from;
		if (rec[i].end_ns > sharing->last_ns)
			sharing->last_ns = rec[i].end_ns < to ? rec[i].end_ns : to;
	}
}

/*
 * Adds the threads without any bundle by the kernel's account: the time on a CPU, and in which they were denied one, of
 * the time since the account began. A rank's further threads call nothing, but each needs a CPU of its own.
 */
static void add_accounts(struct sharing *sharing, const struct analysis_context *context,
			 const struct analysis_job *job, const struct analysis_span *span)
{
	for (size_t i = 0; i < stg__threads(context->stg); i++) {
		const struct stg_thread *thread = stg__thread(context->stg, (uint32_t)i);
		struct group *group;

		if (thread->job != job->id || !thread->work_from || thread->to_ns || sharing->seen[i] ||
		    thread->work_from > span->end)
			continue;
		group = group_of(sharing, (uint32_t)i, thread->row);
		if (group)
			group->threads += fmin(1, (thread->on_cpu_ns + thread->attributed_ns) /
						      ((double)(span->end - thread->work_from + 1) * VAPRO_BIN_NS));
	}
}

static void free_sharing(struct sharing *sharing)
{
	if (!sharing)
		return;
	free(sharing->lists);
	free(sharing->rows);
	free(sharing->seen);
	free(sharing->groups);
	free(sharing);
}

/* Covers the bins of the view. Returns NULL when out of memory. */
static struct sharing *new_sharing(const struct analysis_context *context, const struct analysis_job *job,
				   const struct analysis_span *span)
{
	struct sharing *sharing = calloc(1, sizeof(*sharing));

	if (!sharing)
		return NULL;
	sharing->about = stg__job(context->stg, job->id);
	sharing->first_ns = UINT64_MAX;
	sharing->lists = calloc(stg__threads(context->stg) + 1, sizeof(*sharing->lists));
	sharing->rows = calloc(sharing->about->row_count + 1, sizeof(*sharing->rows));
	sharing->seen = calloc(stg__threads(context->stg) + 1, sizeof(*sharing->seen));
	if (!sharing->lists || !sharing->rows || !sharing->seen) {
		free_sharing(sharing);
		return NULL;
	}
	for (size_t i = 0; i < context->places.count && i < stg__threads(context->stg); i++) {
		const struct stg_thread *thread = stg__thread(context->stg, (uint32_t)i);

		if (thread->job != job->id)
			continue;
		sharing->lists[i] = context->places.items[i].cpus;
		if (!sharing->rows[thread->row] || thread->about.tid == thread->about.pid)
			sharing->rows[thread->row] = sharing->lists[i];
	}
	add_time(sharing, context, job->recs, job->rec_count, span);
	add_time(sharing, context, job->open, job->open_count, span);
	add_accounts(sharing, context, job, span);
	return sharing;
}

/*
 * Returns the CPUs that a thread may use, and the mean number of the job's threads that may use no
 * others and were runnable: on a CPU or waiting for one. cpus is 0 where the CPUs are not known.
 */
static struct cpu_demand demand_of(struct sharing *sharing, const struct interference_rec *at)
{
	struct cpu_demand demand = {0};
	const struct group *own = group_of(sharing, at->thread, at->row);
	double span_ns = sharing->last_ns > sharing->first_ns ? (double)(sharing->last_ns - sharing->first_ns) : 1;

	if (!own)
		return demand;
	demand.cpus = size_of(&own->set);
	for (size_t i = 0; i < sharing->count; i++)
		if (sharing->groups[i].host == own->host && is_within(&sharing->groups[i].set, &own->set))
			demand.threads += sharing->groups[i].threads + sharing->groups[i].runnable_ns / span_ns;
	return demand;
}

/* Whether the threads outnumber the CPUs. */
static bool is_oversubscribed(const struct cpu_demand *demand)
{
	return demand->cpus && demand->threads > MARGIN * demand->cpus;
}

int sharing__count_waits(const struct analysis_context *context, struct analysis_job *job,
			 const struct analysis_span *span)
{
	struct sharing *sharing = NULL;

	for (size_t i = 0; i < job->interference_count; i++) {
		const struct interference_rec *at = &job->interference[i];
		bool own = at->task.relation == VAPRO_OWN_THREAD || at->task.relation == VAPRO_SAME_JOB, many;
		uint32_t owner = analysis__owner_of(job, at);
		struct variance *variance = owner ? variance__find(&job->book, owner) : NULL;
		struct cpu_demand demand = {0};
		struct tally *tally;

		if (!variance)
			continue;
		if (own && !sharing && !(sharing = new_sharing(context, job, span)))
			return -ENOMEM;
		if (own)
			demand = demand_of(sharing, at);
		/* where the CPUs are not known, the job's own threads are assumed too many */
		many = own && (is_oversubscribed(&demand) || !demand.cpus);
		tally = at->bin < span->retire ? &variance->retiring : &variance->staying;
		tally__add_cpu_wait(tally, at->task.seconds, many ? &demand : NULL);
	}
	free_sharing(sharing);
	return 0;
}
