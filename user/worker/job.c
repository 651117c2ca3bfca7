// SPDX-License-Identifier: GPL-2.0-or-later
/* Blocks of a job come in: runs, their order, what came late. */
#include "worker/job_private.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/grow.h"
#include "capture/capture.h"
#include "config/config_json.h"
#include "report/lines.h"
#include "pipeline/pipeline.h"

#define TROUBLES_PER_WINDOW 16	  /* warnings; further ones are counted only */
#define SEQUENCE_MAX (1ULL << 48) /* of a block: a node sends a few a second */

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

static void give(void *arg, const struct job_result *result)
{
	struct worker_job *job = arg;

	job->receiver->result(job->receiver, result);
}

int worker_job__causes(struct worker_job *job, struct cause_list *list)
{
	return job->pipeline ? pipeline__causes(job->pipeline, list) : -ENOENT;
}

int worker_job__warn(struct worker_job *job, const char *host, const char *code, const char *text)
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

bool worker_job__same_host(const struct member *a, const char *host)
{
	return !strcmp(worker_run__host(a->run), host);
}

size_t worker_job__count_hosts(const struct worker_job *job)
{
	size_t hosts = 0;

	for (size_t i = 0; i < job->member_count; i++) {
		bool known = false;

		for (size_t k = 0; !known && k < i; k++)
			known = worker_job__same_host(&job->members[k], worker_run__host(job->members[i].run));
		hosts += !known;
	}
	return hosts;
}

/* Makes the pipeline of the job's tunables, hello and memory cap (0: by the number of hosts). */
static int make_pipeline(struct worker_job *job, const char *tunables)
{
	struct capture_info *info = calloc(1, sizeof(*info));
	const char *named[RULES_NAMED];
	char err[512];
	int ret = 0;

	if (!info)
		return -ENOMEM;
	config__init(&info->config);
	if (tunables && config__from_text(&info->config, tunables, err, sizeof(err)))
		ret = worker_job__warn(job, NULL, "no_introduction", err);
	if (job->hello)
		capture_info__hello(info, job->hello);
	if (!job->memory_cap)
		job->memory_cap = info->config.memory_cap * worker_job__count_hosts(job);
	if (job->memory_cap > job->options.memory_bytes)
		job->memory_cap = job->options.memory_bytes;
	info->config.memory_cap = job->memory_cap;
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
	if (!ret && job->receiver && job->receiver->result)
		pipeline__give(job->pipeline, give, job);
	free(info);
	return ret;
}

/* Returns a copy of a hello record, with the host of the job's first node; NULL: out of memory. */
static char *hello_of_first(const struct worker_job *job, const char *hello)
{
	const char *host = worker_run__host(job->members[0].run);
	cJSON *object = cJSON_Parse(hello);
	char *text = NULL;

	if (!object)
		return strdup(hello);
	cJSON_DeleteItemFromObjectCaseSensitive(object, "host");
	if (cJSON_AddStringToObject(object, "host", host))
		text = cJSON_PrintUnformatted(object);
	cJSON_Delete(object);
	return text;
}

int worker_job__make_pipeline(struct worker_job *job)
{
	const char *tunables = NULL, *hello = NULL;
	int ret = 0;

	for (size_t i = 0; !tunables && i < job->member_count; i++) {
		tunables = worker_run__tunables(job->members[i].run);
		hello = worker_run__hello(job->members[i].run);
	}
	if (tunables)
		job->tunables = strdup(tunables);
	else
		ret = worker_job__warn(
		    job, NULL, "no_introduction",
		    "no block with the nodes' tunables came: this job is analysed with the default ones");
	/* the records of a job are those of its first node, whichever was introduced first */
	if (hello)
		job->hello = hello_of_first(job, hello);
	if (!ret && ((tunables && !job->tunables) || (hello && !job->hello)))
		ret = -ENOMEM;
	if (!ret)
		ret = make_pipeline(job, job->tunables);
	return ret ? ret : worker_job__add_hellos(job);
}

int worker_job__add_hellos(struct worker_job *job)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < job->member_count; i++) {
		struct member *member = &job->members[i];
		const char *hello = worker_run__hello(member->run);

		if (member->introduced || !hello)
			continue;
		member->introduced = true;
		if (hello[0])
			ret = add_line(job, hello);
	}
	return ret;
}

int worker_job__remake_pipeline(struct worker_job *job)
{
	return make_pipeline(job, job->tunables);
}

static int put_event(struct stream_sink *sink, const struct stream_event *event)
{
	struct worker_job *job = (struct worker_job *)sink;

	return stream__put(pipeline__sink(job->pipeline), event);
}

/* Empties the job of all that came. Returns 0 or -ENOMEM. */
int worker_job__reset(struct worker_job *job, uint64_t now_ns)
{
	for (size_t i = 0; i < job->member_count; i++)
		worker_run__free(job->members[i].run);
	job->member_count = 0;
	stream_merge__free(job->merge);
	pipeline__close(job->pipeline);
	free(job->tunables);
	free(job->hello);
	job->pipeline = NULL;
	job->tunables = job->hello = NULL;
	job->lines.length = 0;
	job->due_ns = job->first_ns = job->caught_up_ns = 0;
	job->again_ns = UINT64_MAX;
	job->again_blocks = 0;
	job->begun = job->finished = job->overfull = job->loaded = false;
	job->last_judged_ns = 0;
	job->memory_cap = 0;
	job->number = job->through = 0;
	job->late = job->refused = 0;
	job->saved_ns = 0;
	job->pass_began_ns = now_ns;
	job->reread_began_ns = 0;
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
	if (!worker_job__reset(job, now_ns))
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
	free(job->tunables);
	free(job->hello);
	stream_merge__free(job->merge);
	pipeline__close(job->pipeline);
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
const struct judged *worker_job__judged_at(const struct worker_job *job, uint64_t utc_ns)
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
	const struct judged *judged = worker_job__judged_at(job, missed_ns);

	if (!judged || job->overfull || now_ns - judged->at_ns > job->options.again_ns) {
		job->late += job->number > job->through;
		return;
	}
	if (job->again_ns == UINT64_MAX)
		job->again_since_ns = now_ns;
	job->again_blocks++;
	if (judged->begin_ns < job->again_ns)
		job->again_ns = judged->begin_ns;
}

/*
 * Decides about the first block to arrive of a run whose earlier blocks are lost. The run's processes were running in
 * windows that were judged without them: an analysis from the start counts them among the ranks of these windows.
 */
static void note_joined(struct worker_job *job, uint64_t now_ns)
{
	const struct judged *first = job->judged;

	if (job->judged_count && job->judged_count <= JUDGED && !job->through &&
	    now_ns - first->at_ns <= job->options.again_ns)
		note_late(job, first->begin_ns, now_ns);
}

static struct member *find_member(struct worker_job *job, uint64_t run)
{
	for (size_t i = 0; i < job->member_count; i++) {
		if (worker_run__id(job->members[i].run) == run)
			return &job->members[i];
	}
	return NULL;
}

struct member *worker_job__add_member(struct worker_job *job, struct worker_run *run)
{
	struct member *member;

	if (grow(&job->members, &job->member_capacity, job->member_count + 1, sizeof(*member)))
		return NULL;
	member = &job->members[job->member_count++];
	*member = (struct member){.source = -1, .run = run};
	return member;
}

static struct member *add_run(struct worker_job *job, const struct block_head *head)
{
	struct worker_run *run;
	struct member *member;

	/* an older run of the host has ended, whether its last block came or not */
	for (size_t i = 0; i < job->member_count; i++) {
		if (worker_job__same_host(&job->members[i], head->host) && !head->sequence)
			worker_run__end(job->members[i].run, stream_merge__end_ns(job->merge));
	}
	run = worker_run__new(head);
	member = run ? worker_job__add_member(job, run) : NULL;
	if (!member)
		worker_run__free(run);
	return member;
}

static int refuse(struct worker_job *job, const char *host, const char *why)
{
	if (job->number <= job->through)
		return 0; /* it was refused before the checkpoint */
	job->refused++;
	return worker_job__warn(job, host, "block_refused", why);
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
	if (head->sequence > SEQUENCE_MAX) {
		snprintf(text, sizeof(text), "a block of %s has an impossible number: it was refused", parsed.host);
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
	*member = add_run(job, head);
	return *member ? 0 : -ENOMEM;
}

/*
 * Decides about a block that belongs to windows which were judged without its node. Returns whether its bytes count;
 * its place is held in any case, and if it counts later, it comes once more when the stream is read again.
 */
static bool is_in_time(struct worker_job *job, struct member *member, struct block_head *head, uint64_t now_ns)
{
	uint64_t end_ns = stream_merge__end_ns(job->merge);
	bool passed;

	/* what was read before a checkpoint is read again as it was; what was read since is a duplicate */
	if (worker_run__was_read(member->run, head->sequence, &passed)) {
		if (passed && member->missed_ns && head->first_ns)
			note_late(job, member->missed_ns, now_ns);
		return !passed;
	}
	/* a run that is new when windows were judged already has missed them */
	if (!member->timed && !member->missed_ns && head->first_ns && head->first_ns < end_ns)
		member->missed_ns = head->first_ns;
	else if (!member->timed && !member->missed_ns && head->first_ns && head->sequence && end_ns)
		note_joined(job, now_ns);
	member->timed |= head->first_ns != 0;
	if (job->finished) {
		if (!head->first_ns || head->first_ns >= end_ns)
			head->first_ns = end_ns - 1;
		if (!member->missed_ns)
			member->missed_ns = head->first_ns;
	}
	if (member->missed_ns && head->first_ns >= end_ns)
		member->missed_ns = 0; /* it has come back to the others */
	if (!member->missed_ns || !head->first_ns)
		return true;
	if (head->first_ns < member->missed_ns)
		member->missed_ns = head->first_ns;
	note_late(job, member->missed_ns, now_ns);
	return false;
}

int worker_job__put(struct worker_job *job, const char *subject, uint64_t number, void *bytes, size_t size,
		    uint64_t now_ns)
{
	uint64_t end_ns = stream_merge__end_ns(job->merge);
	struct block_head head;
	struct member *member;
	uint64_t skipped_ns;
	int ret;

	job->number = number;
	if (number > job->highest) {
		if (!job->highest)
			job->first_number = number;
		job->highest = number;
		job->input_bytes += size;
	}
	ret = find_run(job, subject, bytes, size, &head, &member);
	if (ret || !member) {
		free(bytes);
		return ret;
	}
	if (!job->first_ns)
		job->first_ns = now_ns;
	job->latest_ns = member->came_ns = now_ns;
	if (!is_in_time(job, member, &head, now_ns)) {
		free(bytes);
		bytes = NULL;
	}
	ret = worker_run__put(member->run, &head, number, bytes, size, number <= job->through);
	if (ret == RUN_QUEUED)
		return 0;
	free(bytes);
	if (ret == RUN_SKIPPED && worker_run__was_skipped(member->run, head.sequence, &skipped_ns) && end_ns)
		note_late(job, skipped_ns < end_ns ? skipped_ns : end_ns - 1, now_ns);
	return ret < 0 ? ret : 0;
}
