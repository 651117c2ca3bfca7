// SPDX-License-Identifier: GPL-2.0-or-later
#include "worker/job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/grow.h"
#include "capture/capture.h"
#include "capture/capture_format.h"
#include "config/config_json.h"
#include "report/lines.h"
#include "report/pipeline.h"
#include "worker/run.h"

#define JUDGED 256		/* windows whose time of judgement is remembered */
#define GATHER_NS 1000000000ULL /* late blocks of so long are judged again together */
#define AGAIN_SHARE 10		/* between two passes lies so many times the duration of the first */
#define RANKS_MOST (1U << 20)	/* of a job that is waited for until all ranks are there */
#define TROUBLES_PER_WINDOW 16	/* warnings; further ones are counted only */

/* A run as a source of the merge. */
struct member {
	struct worker_run *run;
	int source;		   /* number in the merge, -1: not yet */
	uint64_t missed_ns;	   /* UTC begin of the first window that was judged without it; 0 none */
	uint64_t missing, dropped; /* blocks that a warning has named */
	bool timed;		   /* a block with times has come */
	uint64_t came_ns;	   /* of its latest block */
};

struct judged {
	uint64_t begin_ns, end_ns, at_ns; /* window; when it was judged */
};

struct worker_job {
	struct stream_sink sink; /* first: between the merge and the pipeline */
	struct worker_job_options options;
	struct worker_receiver *receiver;
	uint64_t epoch, pass, from_ns;
	struct stream_merge *merge;
	struct stream_sink *pipeline;
	struct member *members;
	size_t member_count, member_capacity;
	char **expected; /* hosts that have blocks in the stream */
	size_t expected_count, expected_capacity;
	struct capture_buffer lines;
	struct judged judged[JUDGED]; /* a ring */
	uint64_t judged_count;
	uint64_t due_ns, due_since_ns; /* the window that is waited for */
	uint64_t first_ns, latest_ns;  /* when the first and the latest block came */
	uint64_t again_ns;	       /* UTC: judge again from here; UINT64_MAX: no */
	uint64_t again_since_ns;       /* when the first late block of it came */
	uint64_t pass_began_ns, caught_up_ns;
	uint64_t late, refused, troubles;
	uint64_t last_judged_ns;
	bool begun, finished;
	bool overfull; /* the memory was full: nothing is judged again */
};

static int add_line(struct worker_job *job, const char *line)
{
	size_t length = strlen(line);
	char tail[64];

	/* a record is an object: its end makes room for two members more */
	if (!length || line[length - 1] != '}')
		return 0;
	snprintf(tail, sizeof(tail), ",\"epoch\":%llu,\"pass\":%llu}\n", (unsigned long long)job->epoch,
		 (unsigned long long)job->pass);
	capture_buffer__add(&job->lines, line, length - 1);
	capture_buffer__add(&job->lines, tail, strlen(tail));
	return job->lines.failed ? -ENOMEM : 0;
}

static void tap(void *arg, const char *line)
{
	add_line(arg, line);
}

static int warn(struct worker_job *job, const char *host, const char *code, const char *text)
{
	struct line_warning warning = {.utc_ns = utc_now(), .host = host, .code = code, .text = text};
	char *line;
	int ret;

	if (job->troubles++ >= TROUBLES_PER_WINDOW)
		return 0;
	line = lines__warning(&warning);
	ret = line ? add_line(job, line) : -ENOMEM;
	free(line);
	return ret;
}

static bool same_host(const struct member *a, const char *host)
{
	return !strcmp(worker_run__host(a->run), host);
}

static size_t count_hosts(const struct worker_job *job)
{
	size_t hosts = 0;

	for (size_t i = 0; i < job->member_count; i++) {
		bool known = false;

		for (size_t k = 0; !known && k < i; k++)
			known = same_host(&job->members[k], worker_run__host(job->members[i].run));
		hosts += !known;
	}
	return hosts;
}

/* Makes the pipeline by what the first run says of itself: as `vapro analyze` does from the first capture. */
static int make_pipeline(struct worker_job *job)
{
	struct capture_info *info = calloc(1, sizeof(*info));
	const char *named[RULES_NAMED], *tunables = NULL, *hello = NULL;
	char err[512];
	int ret = -ENOMEM;

	if (!info)
		return -ENOMEM;
	for (size_t i = 0; !tunables && i < job->member_count; i++) {
		tunables = worker_run__tunables(job->members[i].run);
		hello = worker_run__hello(job->members[i].run);
	}
	config__init(&info->config);
	if (!tunables)
		ret = warn(job, NULL, "no_introduction",
			   "no block with the nodes' tunables came: this job is analysed with the default ones");
	else if (config__from_text(&info->config, tunables, err, sizeof(err)))
		ret = warn(job, NULL, "no_introduction", err);
	else
		ret = 0;
	if (hello)
		capture_info__hello(info, hello);
	info->config.memory_cap *= count_hosts(job);
	if (info->config.memory_cap > job->options.memory_bytes)
		info->config.memory_cap = job->options.memory_bytes;
	for (int i = 0; i < RULES_NAMED; i++)
		named[i] = info->named[i][0] ? info->named[i] : NULL;
	if (!ret)
		job->pipeline =
		    pipeline__new(&info->config, info->by_instructions ? VAPRO_BY_INSTRUCTIONS : VAPRO_BY_ARGUMENTS,
				  info->host[0] ? info->host : NULL, NULL, NULL);
	if (!ret && !job->pipeline)
		ret = -ENOMEM;
	if (!ret)
		ret = pipeline__name_events(job->pipeline, named);
	if (!ret)
		pipeline__tap(job->pipeline, tap, job);
	for (size_t i = 0; !ret && i < job->member_count; i++) {
		hello = worker_run__hello(job->members[i].run);
		if (hello && hello[0])
			ret = add_line(job, hello);
	}
	free(info);
	return ret;
}

static int put_event(struct stream_sink *sink, const struct stream_event *event)
{
	struct worker_job *job = (struct worker_job *)sink;

	return stream__put(job->pipeline, event);
}

/* Empties the job of all that came. Returns 0 or -ENOMEM. */
static int reset(struct worker_job *job, uint64_t now_ns)
{
	for (size_t i = 0; i < job->member_count; i++)
		worker_run__free(job->members[i].run);
	job->member_count = 0;
	stream_merge__free(job->merge);
	stream__close(job->pipeline);
	job->pipeline = NULL;
	job->lines.length = 0;
	job->due_ns = job->first_ns = job->caught_up_ns = 0;
	job->again_ns = UINT64_MAX;
	job->begun = job->finished = job->overfull = false;
	job->last_judged_ns = 0;
	job->pass_began_ns = now_ns;
	job->merge = stream_merge__new(&job->sink, MERGE_BY_WINDOW);
	return job->merge ? 0 : -ENOMEM;
}

struct worker_job *worker_job__new(uint64_t epoch, uint64_t from_ns, uint64_t now_ns,
				   const struct worker_job_options *options, struct worker_receiver *receiver)
{
	struct worker_job *job = calloc(1, sizeof(*job));

	if (!job)
		return NULL;
	job->sink.put = put_event;
	job->options = *options;
	job->receiver = receiver;
	job->epoch = epoch;
	job->from_ns = from_ns;
	if (!reset(job, now_ns))
		return job;
	worker_job__free(job);
	return NULL;
}

void worker_job__free(struct worker_job *job)
{
	if (!job)
		return;
	for (size_t i = 0; i < job->member_count; i++)
		worker_run__free(job->members[i].run);
	for (size_t i = 0; i < job->expected_count; i++)
		free(job->expected[i]);
	free(job->members);
	free(job->expected);
	free(job->lines.data);
	stream_merge__free(job->merge);
	stream__close(job->pipeline);
	free(job);
}

int worker_job__expect(struct worker_job *job, const char *host)
{
	for (size_t i = 0; i < job->expected_count; i++) {
		if (!strcmp(job->expected[i], host))
			return 0;
	}
	if (grow(&job->expected, &job->expected_capacity, job->expected_count + 1, sizeof(char *)))
		return -ENOMEM;
	job->expected[job->expected_count] = strdup(host);
	if (!job->expected[job->expected_count])
		return -ENOMEM;
	job->expected_count++;
	return 0;
}

/* The window that was judged and holds the time, or NULL. */
static const struct judged *judged_at(const struct worker_job *job, uint64_t utc_ns)
{
	for (uint64_t i = job->judged_count; i > 0 && job->judged_count - i < JUDGED; i--) {
		const struct judged *judged = &job->judged[(i - 1) % JUDGED];

		if (utc_ns >= judged->begin_ns && utc_ns < judged->end_ns)
			return judged;
	}
	return NULL;
}

/* Decides about a block of windows that were judged without it: judges them again, or counts it. */
static void note_late(struct worker_job *job, uint64_t missed_ns, uint64_t now_ns)
{
	const struct judged *judged = judged_at(job, missed_ns);

	if (!judged || job->overfull || now_ns - judged->at_ns > job->options.again_ns) {
		job->late++;
		return;
	}
	if (job->again_ns == UINT64_MAX)
		job->again_since_ns = now_ns;
	if (judged->begin_ns < job->again_ns)
		job->again_ns = judged->begin_ns;
}

static struct member *find_member(struct worker_job *job, uint64_t run)
{
	for (size_t i = 0; i < job->member_count; i++) {
		if (worker_run__id(job->members[i].run) == run)
			return &job->members[i];
	}
	return NULL;
}

static struct member *add_member(struct worker_job *job, const struct block_head *head)
{
	struct member *member;

	/* an older run of the host has ended, with a word or without */
	for (size_t i = 0; i < job->member_count; i++) {
		if (same_host(&job->members[i], head->host) && !head->sequence)
			worker_run__end(job->members[i].run, stream_merge__end_ns(job->merge));
	}
	if (grow(&job->members, &job->member_capacity, job->member_count + 1, sizeof(*member)))
		return NULL;
	member = &job->members[job->member_count];
	*member = (struct member){.source = -1, .run = worker_run__new(head)};
	if (!member->run)
		return NULL;
	job->member_count++;
	return member;
}

static int refuse(struct worker_job *job, const char *host, const char *why)
{
	job->refused++;
	return warn(job, host, "block_refused", why);
}

/* Reads the head of a block and finds its run. Returns 0 or a negative errno; *member is NULL where it is refused. */
static int find_run(struct worker_job *job, const char *subject, const void *bytes, size_t size,
		    struct block_head *head, struct member **member)
{
	struct wire_subject parsed = {.host = "?"};
	char why[512], text[1200], own[WIRE_SUBJECT_MAX];

	*member = NULL;
	wire_subject__parse(&parsed, subject);
	if (block__head(head, bytes, size, why, sizeof(why))) {
		snprintf(text, sizeof(text), "a block under the subject of %s was refused: %s", parsed.host, why);
		return refuse(job, parsed.host, text);
	}
	/* who may publish under a subject is the broker's to decide; a block cannot speak for another host or job */
	if (wire__subject(own, sizeof(own), WIRE_IN, &head->job, head->host) || strcmp(own, subject)) {
		snprintf(text, sizeof(text), "a block under the subject of %s names job %s of %s: it was refused",
			 parsed.host, head->job.job, head->host);
		return refuse(job, parsed.host, text);
	}
	*member = find_member(job, head->run);
	if (*member)
		return 0;
	*member = add_member(job, head);
	return *member ? 0 : -ENOMEM;
}

int worker_job__put(struct worker_job *job, const char *subject, void *bytes, size_t size, uint64_t now_ns)
{
	uint64_t end_ns = stream_merge__end_ns(job->merge);
	uint64_t skipped_ns;
	struct block_head head;
	struct member *member;
	int ret = find_run(job, subject, bytes, size, &head, &member);

	if (ret || !member) {
		free(bytes);
		return ret;
	}
	if (!job->first_ns)
		job->first_ns = now_ns;
	job->latest_ns = member->came_ns = now_ns;
	/* a run that is new when windows were judged already has missed them */
	if (!member->timed && !member->missed_ns && head.first_ns && head.first_ns < end_ns)
		member->missed_ns = head.first_ns;
	member->timed |= head.first_ns != 0;
	if (job->finished) {
		if (!head.first_ns || head.first_ns >= end_ns)
			head.first_ns = end_ns - 1;
		if (!member->missed_ns)
			member->missed_ns = head.first_ns;
	}
	if (member->missed_ns && head.first_ns >= end_ns)
		member->missed_ns = 0; /* it has come back to the others */
	if (member->missed_ns && head.first_ns) {
		if (head.first_ns < member->missed_ns)
			member->missed_ns = head.first_ns;
		/* its place is held; if it counts, it comes once more when the stream is read again */
		note_late(job, member->missed_ns, now_ns);
		free(bytes);
		bytes = NULL;
	}
	ret = worker_run__put(member->run, &head, bytes, size);
	if (ret == RUN_QUEUED)
		return 0;
	free(bytes);
	if (ret == RUN_SKIPPED && worker_run__was_skipped(member->run, head.sequence, &skipped_ns) && end_ns)
		note_late(job, skipped_ns < end_ns ? skipped_ns : end_ns - 1, now_ns);
	return ret < 0 ? ret : 0;
}

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

	for (size_t i = 0; i < job->expected_count; i++) {
		bool here = false;

		for (size_t k = 0; !here && k < job->member_count; k++)
			here = same_host(&job->members[k], job->expected[i]);
		if (!here)
			return 0;
	}
	set = calloc(RANKS_MOST, 1);
	if (!set)
		return -ENOMEM;
	for (size_t i = 0; i < job->member_count; i++) {
		int ret = worker_run__look(job->members[i].run);
		uint32_t size;

		if (ret) {
			free(set);
			return ret;
		}
		size = worker_run__ranks(job->members[i].run, set, RANKS_MOST);
		if (size > world)
			world = size;
	}
	for (uint32_t i = 0; i < world && i < RANKS_MOST; i++)
		found += set[i];
	free(set);
	return world && found == world;
}

/* Begins once everybody is there, or late. Returns whether it has, or a negative errno. */
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
	ret = make_pipeline(job);
	if (ret)
		return ret;
	job->begun = true;
	return 1;
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
	}
	return 0;
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
		    worker_run__skip(member->run, begin_ns))
			continue;
		if (!full && now_ns - member->came_ns < job->options.late_after_ns && waited_ns < job->options.again_ns)
			continue;
		stream_merge__excuse(job->merge, member->source, true);
		if (!member->missed_ns)
			member->missed_ns = begin_ns ? begin_ns : job->due_ns - 1;
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
			ret = warn(job, host, "block_refused", trouble);
		if (!ret && counts->missing > member->missing) {
			snprintf(text, sizeof(text),
				 "%llu blocks of %s did not arrive (%llu so far, of which the node discarded %llu): "
				 "fragments of that time are missing",
				 (unsigned long long)(counts->missing - member->missing), host,
				 (unsigned long long)counts->missing, (unsigned long long)counts->dropped_blocks);
			ret = warn(job, host, "blocks_missing", text);
			member->missing = counts->missing;
		}
	}
	return ret;
}

static void note_judged(struct worker_job *job, uint64_t begin_ns, uint64_t end_ns, uint64_t now_ns)
{
	struct judged *judged;

	/* a window that is judged again was first judged when it was: blocks are late from then on */
	if (judged_at(job, end_ns - 1))
		return;
	judged = &job->judged[job->judged_count++ % JUDGED];
	*judged = (struct judged){begin_ns, end_ns, now_ns};
}

/* Gives the lines since the last window to the receiver, unless they were given in an earlier pass. */
static int give(struct worker_job *job, uint64_t end_ns)
{
	int ret = job->lines.failed ? -ENOMEM : 0;

	if (!ret && end_ns > job->from_ns && job->lines.length)
		ret = job->receiver->take(job->receiver, end_ns, (const char *)job->lines.data, job->lines.length);
	job->lines.length = 0;
	job->troubles = 0;
	return ret;
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
	if (job->finished)
		return 0;
	ret = add_sources(job);
	excuse_missing(job);
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
		ret = report_losses(job);
		if (!ret)
			ret = give(job, end_ns);
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

int worker_job__again(struct worker_job *job, uint64_t now_ns)
{
	job->pass++;
	job->from_ns = job->again_ns;
	return reset(job, now_ns);
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
		ret = report_losses(job);
	return ret ? ret : give(job, end_ns);
}

void worker_job__state(const struct worker_job *job, struct worker_job_state *state)
{
	*state = (struct worker_job_state){
	    .pass = job->pass,
	    .from_ns = job->from_ns,
	    .judged_ns = job->last_judged_ns,
	    .windows = job->judged_count,
	    .late = job->late,
	    .refused = job->refused,
	    .hosts = count_hosts(job),
	    .bytes = bytes_of(job),
	};
	for (size_t i = 0; i < job->member_count; i++) {
		const struct run_counts *counts = worker_run__counts(job->members[i].run);

		state->blocks += counts->blocks;
		state->duplicates += counts->duplicates;
		state->missing += counts->missing;
		state->refused += counts->refused;
	}
}
