// SPDX-License-Identifier: GPL-2.0-or-later
/* Windows of a job: when one ends, which nodes it waits for, what is given to the receiver. */
#include "worker/job_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/grow.h"
#include "capture/capture.h"
#include "report/lines.h"
#include "pipeline/pipeline.h"

#define GATHER_NS 1000000000ULL /* late blocks that arrive within this time are judged again together */
#define AGAIN_SHARE 10		/* between two passes lies so many times the duration of the first */
#define REREADS 3		/* readings of a gap: a block that did not come once may not come soon after, either */
#define REREAD_PART 4		/* blocks are read again after this part of the time that a missing one is waited for */
#define RANKS_MOST (1U << 20)	/* of a job that is waited for until all ranks are there */

static int compare_members(const void *a, const void *b)
{
	const struct member *one = a, *other = b;
	int order = strcmp(worker_run__host(one->run), worker_run__host(other->run));
	uint64_t id = worker_run__id(one->run), id_other = worker_run__id(other->run);

	return order ? order : id < id_other ? -1 : id > id_other;
}

/* Whether all ranks of the job, and all nodes that the stream has, are there. Returns 1, 0 or -ENOMEM. */
static int all_here(struct worker_job *job)
{
	uint32_t world = 0, found = 0;
	uint8_t *set;

	/* also where a node is missing: the job begins with what is known by then */
	for (size_t i = 0; i < job->member_count; i++) {
		int ret = worker_run__look(job->members[i].run);

		if (ret)
			return ret;
	}
	for (size_t i = 0; i < job->expected_count; i++) {
		bool here = false;

		for (size_t k = 0; !here && k < job->member_count; k++)
			here = worker_job__same_host(&job->members[k], job->expected[i]);
		if (!here)
			return 0;
	}
	set = calloc(RANKS_MOST, 1);
	if (!set)
		return -ENOMEM;
	for (size_t i = 0; i < job->member_count; i++) {
		uint32_t size = worker_run__ranks(job->members[i].run, set, RANKS_MOST);

		if (size > world)
			world = size;
	}
	for (uint32_t i = 0; i < world && i < RANKS_MOST; i++)
		found += set[i];
	free(set);
	return world && found == world;
}

/* Begins once all nodes are there, or late. Returns whether it has, or a negative errno. */
static int begin(struct worker_job *job, uint64_t now_ns, bool caught_up)
{
	int ret;

	if (job->begun)
		return 1;
	if (!job->member_count || !caught_up)
		return 0;
	ret = all_here(job);
	if (ret < 0 || (!ret && now_ns - job->first_ns < job->options.late_after_ns))
		return ret;
	qsort(job->members, job->member_count, sizeof(*job->members), compare_members);
	ret = worker_job__make_pipeline(job);
	if (ret)
		return ret;
	job->begun = true;
	return 1;
}

/* Sources are put in the order of their hosts, whenever these came: as captures in the order of their names are. */
static void place_source(struct worker_job *job, const struct member *member)
{
	size_t before = 0;

	for (size_t i = 0; i < job->member_count; i++) {
		const struct member *other = &job->members[i];

		before += other->source >= 0 && other != member && compare_members(other, member) < 0;
	}
	stream_merge__place(job->merge, member->source, before);
}

static int add_sources(struct worker_job *job)
{
	for (size_t i = 0; i < job->member_count; i++) {
		struct member *member = &job->members[i];

		if (member->source >= 0)
			continue;
		member->source = stream_merge__add(job->merge, worker_run__reader(member->run));
		if (member->source < 0)
			return member->source;
		place_source(job, member);
	}
	return 0;
}

/* Whether a member's gap may close when the blocks are read again, which is yet to happen. */
static bool awaits_reread(const struct worker_job *job, const struct member *member, uint64_t now_ns)
{
	return member->new_gap_since_ns && now_ns - member->new_gap_since_ns < job->options.again_ns;
}

/*
 * What the merge waits for too long goes without: first blocks that are missing, then a node that sends nothing. A node
 * that sends, and whose window is yet to end, is waited for longer.
 */
static void excuse(struct worker_job *job, uint64_t now_ns, bool full)
{
	uint64_t begin_ns = stream_merge__end_ns(job->merge), waited_ns = now_ns - job->due_since_ns;

	for (size_t i = 0; i < job->member_count; i++) {
		struct member *member = &job->members[i];

		if (stream_merge__read_ns(job->merge, member->source) >= job->due_ns ||
		    (!full && awaits_reread(job, member, now_ns)) || worker_run__skip(member->run, begin_ns))
			continue;
		if (!full && now_ns - member->came_ns < job->options.late_after_ns && waited_ns < job->options.again_ns)
			continue;
		stream_merge__excuse(job->merge, member->source, true);
		if (!member->missed_ns)
			member->missed_ns = begin_ns ? begin_ns : job->due_ns - 1;
	}
}

/*
 * Blocks that are missing are waited for as long as a node, whether a window is due or not: where all nodes miss the
 * same time, as after an absence of the broker, none is.
 */
static void skip_gaps(struct worker_job *job, uint64_t now_ns, bool caught_up)
{
	for (size_t i = 0; i < job->member_count; i++) {
		struct member *member = &job->members[i];

		if (!caught_up || !worker_run__has_gap(member->run))
			member->gap_since_ns = 0;
		else if (!member->gap_since_ns)
			member->gap_since_ns = now_ns;
		else if (now_ns - member->gap_since_ns >= job->options.late_after_ns &&
			 !awaits_reread(job, member, now_ns))
			worker_run__skip(member->run, stream_merge__end_ns(job->merge));
	}
}

/* A node that was excused once is, until it has come back to the others. */
static void excuse_missing(struct worker_job *job)
{
	for (size_t i = 0; i < job->member_count; i++)
		stream_merge__excuse(job->merge, job->members[i].source, job->members[i].missed_ns != 0);
}

/* States what is missing of the nodes since the last window. */
static int report_losses(struct worker_job *job)
{
	char text[512];
	int ret = 0;

	for (size_t i = 0; !ret && i < job->member_count; i++) {
		struct member *member = &job->members[i];
		const struct run_counts *counts = worker_run__counts(member->run);
		const char *host = worker_run__host(member->run), *trouble = worker_run__trouble(member->run);

		if (trouble)
			ret = worker_job__warn(job, host, "block_refused", trouble);
		if (!ret && counts->missing > member->missing) {
			snprintf(text, sizeof(text),
				 "%llu blocks of %s did not arrive (%llu so far, of which the node discarded %llu): "
				 "fragments of that time are missing",
				 (unsigned long long)(counts->missing - member->missing), host,
				 (unsigned long long)counts->missing, (unsigned long long)counts->dropped_blocks);
			ret = worker_job__warn(job, host, "blocks_missing", text);
			member->missing = counts->missing;
		}
	}
	return ret;
}

static void note_judged(struct worker_job *job, uint64_t begin_ns, uint64_t end_ns, uint64_t now_ns)
{
	struct judged *judged;

	/* a window that is judged again was first judged when it was: blocks are late from then on */
	if (worker_job__judged_at(job, end_ns - 1))
		return;
	judged = &job->judged[job->judged_count++ % JUDGED];
	*judged = (struct judged){begin_ns, end_ns, now_ns};
}

/* Passes the lines since the last window to the receiver, unless an earlier pass did. */
static int give(struct worker_job *job, uint64_t end_ns)
{
	int ret = job->lines.failed ? -ENOMEM : 0;

	if (!ret && end_ns > job->from_ns && job->lines.length)
		ret = job->receiver->take(job->receiver, end_ns, (const char *)job->lines.data, job->lines.length);
	job->lines.length = 0;
	job->troubles = 0;
	return ret;
}

/* Ends a reading. A gap that is still there is read again later, REREADS times in all. */
static void end_reread(struct worker_job *job, uint64_t now_ns)
{
	uint64_t rest_ns = AGAIN_SHARE * (now_ns - job->reread_began_ns);

	if (rest_ns < job->options.late_after_ns / REREAD_PART)
		rest_ns = job->options.late_after_ns / REREAD_PART;
	job->reread_after_ns = now_ns + rest_ns;
	job->reread_began_ns = 0;
	for (size_t i = 0; i < job->member_count; i++) {
		struct member *member = &job->members[i];

		/* a gap that changed is counted from the start; blocks from reread_top on have been read only once */
		if (member->awaited == UINT64_MAX ||
		    (worker_run__awaited(member->run) == member->awaited && ++member->rereads >= REREADS))
			member->reread_to = member->reread_top;
	}
}

bool worker_job__wants_reread(struct worker_job *job, uint64_t now_ns, bool caught_up)
{
	bool wants = false, history = !job->caught_up_ns && (job->epoch > 1 || job->pass);

	if (!caught_up || job->finished)
		return false;
	if (job->reread_began_ns)
		end_reread(job, now_ns);
	for (size_t i = 0; i < job->member_count; i++) {
		struct member *member = &job->members[i];
		uint64_t awaited = worker_run__awaited(member->run);

		if (awaited != member->awaited)
			member->rereads = 0;
		member->awaited = awaited;
		if (awaited == UINT64_MAX || awaited < member->reread_to)
			member->new_gap_since_ns = 0;
		else if (!member->new_gap_since_ns)
			member->new_gap_since_ns = now_ns;
		/* what is only read again, in a later epoch or pass, is all in the stream */
		wants |= member->new_gap_since_ns &&
			 (history || now_ns - member->new_gap_since_ns >= job->options.late_after_ns / REREAD_PART);
	}
	if (!wants || now_ns < job->reread_after_ns)
		return false;
	job->reread_began_ns = now_ns;
	for (size_t i = 0; i < job->member_count; i++)
		job->members[i].reread_top = worker_run__top(job->members[i].run);
	return true;
}

static size_t bytes_of(const struct worker_job *job)
{
	size_t bytes = stream_merge__bytes(job->merge);

	for (size_t i = 0; i < job->member_count; i++)
		bytes += worker_run__bytes(job->members[i].run);
	return bytes;
}

int worker_job__advance(struct worker_job *job, uint64_t now_ns, bool caught_up)
{
	bool full = bytes_of(job) > job->options.memory_bytes / 2;
	int ret;

	if (caught_up && !job->caught_up_ns) {
		job->caught_up_ns = now_ns;
		/* in what was read again nothing is on its way any more */
		for (size_t i = 0; (job->epoch > 1 || job->pass) && i < job->member_count; i++)
			worker_run__settle(job->members[i].run);
	}
	ret = begin(job, now_ns, caught_up || full);
	if (ret <= 0)
		return ret;
	/* after a checkpoint all nodes that came since are there first */
	if (job->finished || (job->loaded && !job->caught_up_ns && !full))
		return 0;
	ret = add_sources(job);
	excuse_missing(job);
	skip_gaps(job, now_ns, caught_up);
	while (!ret) {
		uint64_t begin_ns = stream_merge__end_ns(job->merge), due_ns, end_ns;

		ret = stream_merge__advance(job->merge);
		if (!ret) {
			due_ns = stream_merge__due_ns(job->merge);
			if (due_ns != job->due_ns || (!caught_up && !full)) {
				job->due_ns = due_ns;
				job->due_since_ns = now_ns;
			}
			if (!due_ns || (now_ns - job->due_since_ns < job->options.late_after_ns && !full))
				break;
			excuse(job, now_ns, full);
			job->overfull |= full;
			ret = stream_merge__advance(job->merge);
			if (!ret)
				break; /* a gap was skipped, or there is nothing to judge */
		}
		if (ret < 0)
			return ret;
		end_ns = stream_merge__end_ns(job->merge);
		job->last_judged_ns = end_ns;
		note_judged(job, begin_ns, end_ns, now_ns);
		ret = worker_job__add_hellos(job);
		if (!ret)
			ret = report_losses(job);
		if (!ret)
			ret = give(job, end_ns);
		for (size_t i = 0; i < job->member_count; i++)
			worker_run__release(job->members[i].run,
					    stream_merge__held_block(job->merge, job->members[i].source));
		pipeline__held_elsewhere(job->pipeline, bytes_of(job));
	}
	return ret < 0 ? ret : 0;
}

bool worker_job__wants_again(const struct worker_job *job, uint64_t now_ns)
{
	uint64_t took_ns = job->caught_up_ns > job->pass_began_ns ? job->caught_up_ns - job->pass_began_ns : 0;

	return job->again_ns != UINT64_MAX && job->caught_up_ns && now_ns - job->again_since_ns >= GATHER_NS &&
	       now_ns - job->caught_up_ns >= AGAIN_SHARE * took_ns;
}

uint64_t worker_job__again_from(const struct worker_job *job)
{
	return job->again_ns;
}

void worker_job__too_late(struct worker_job *job)
{
	job->late += job->again_blocks;
	job->again_blocks = 0;
	job->again_ns = UINT64_MAX;
}

int worker_job__again(struct worker_job *job, uint64_t now_ns)
{
	job->pass++;
	job->from_ns = job->again_ns;
	return worker_job__reset(job, now_ns);
}

bool worker_job__ended(const struct worker_job *job, uint64_t now_ns, uint64_t idle_ns)
{
	if (!job->begun || !job->caught_up_ns || job->again_ns != UINT64_MAX)
		return false;
	return stream_merge__ended(job->merge) || now_ns - job->latest_ns >= idle_ns;
}

int worker_job__finish(struct worker_job *job, uint64_t now_ns)
{
	bool complete = stream_merge__ended(job->merge);
	uint64_t begin_ns = stream_merge__end_ns(job->merge), end_ns;
	int ret;

	if (job->finished || !job->begun)
		return 0;
	for (size_t i = 0; i < job->member_count; i++)
		worker_run__end(job->members[i].run, stream_merge__end_ns(job->merge));
	ret = worker_job__advance(job, now_ns, true);
	if (!ret)
		ret = stream_merge__finish(job->merge, complete);
	job->finished = true;
	end_ns = stream_merge__end_ns(job->merge);
	if (!ret && end_ns > begin_ns) {
		job->last_judged_ns = end_ns;
		note_judged(job, begin_ns, end_ns, now_ns);
	}
	if (!ret)
		ret = worker_job__add_hellos(job);
	if (!ret)
		ret = report_losses(job);
	return ret ? ret : give(job, end_ns);
}

void worker_job__state(const struct worker_job *job, struct worker_job_state *state)
{
	*state = (struct worker_job_state){
	    .pass = job->pass,
	    .from_ns = job->from_ns,
	    .judged_ns = job->last_judged_ns,
	    .first_number = job->first_number,
	    .windows = job->judged_count,
	    .late = job->late,
	    .refused = job->refused,
	    .hosts = worker_job__count_hosts(job),
	    .bytes = bytes_of(job),
	    .input_bytes = job->input_bytes,
	    .checkpoint_bytes = job->checkpoint_bytes,
	};
	for (size_t i = 0; i < job->member_count; i++) {
		const struct run_counts *counts = worker_run__counts(job->members[i].run);

		state->blocks += counts->blocks;
		state->duplicates += counts->duplicates;
		state->missing += counts->missing;
		state->refused += counts->refused;
	}
}
