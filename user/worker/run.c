// SPDX-License-Identifier: GPL-2.0-or-later
#include "worker/run_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

static struct worker_run *run_of(struct stream_sink *sink)
{
	return (struct worker_run *)((char *)sink - offsetof(struct worker_run, sink));
}

static int note_thread(struct worker_run *run, const struct vapro_thread *thread)
{
	if (thread->world_size)
		run->world_size = thread->world_size;
	if (thread->rank < 0 || run->rank_count >= RANKS_MAX || run->looks >= LOOKS)
		return 0;
	if (grow(&run->ranks, &run->rank_capacity, run->rank_count + 1, sizeof(*run->ranks)))
		return -ENOMEM;
	run->ranks[run->rank_count++] = thread->rank;
	return 0;
}

/* Facts count the fragments in blocks that were lost: as many as there were in a block of the run, in the mean. */
static int put_facts(struct worker_run *run, const struct stream_event *event)
{
	struct stream_event facts = *event;

	facts.facts.lost[VAPRO_LOST_PUBLISHED] += run->lost * run->fragments / run->reads;
	run->lost = 0;
	return held_events__add(run->events, &facts, 0);
}

static void note_stage(struct worker_run *run, const struct stream_stage *stage)
{
	if (!stage->refused)
		snprintf(run->parts_job, sizeof(run->parts_job), "%s", stage->expand && stage->job ? stage->job : "");
}

static int put_event(struct stream_sink *sink, const struct stream_event *event)
{
	struct worker_run *run = run_of(sink);
	int ret = 0;

	if (event->type == STREAM_BUNDLE)
		run->fragments += event->bundle.n;

	if (event->type == STREAM_THREAD)
		ret = note_thread(run, &event->thread);
	if (event->type == STREAM_FACTS)
		run_sets__note(&run->sets, &event->facts);
	if (event->type == STREAM_STAGE)
		note_stage(run, &event->stage);
	if (event->type == STREAM_HOP)
		run_hops__note(run, &event->hop);
	if (event->type == STREAM_WINDOW) {
		run_sets__end_window(&run->sets);
		run->windows++;
	}
	run->recent[run->recent_count - 1].events++;
	if (!ret && event->type == STREAM_FACTS && run->lost)
		return put_facts(run, event);
	return ret ? ret : held_events__add(run->events, event, 0);
}

/* Jumps over what was skipped, before a checkpoint too. */
static void jump_gaps(struct worker_run *run)
{
	for (uint32_t i = 0; i < GAPS && i < run->gap_count; i++) {
		const struct gap *gap = &run->gaps[i];

		if (run->next < gap->from || run->next >= gap->to)
			continue;
		run->next = gap->to;
		run->lost += gap->lost;
		i = UINT32_MAX; /* another one may follow */
	}
}

/* Notes what is wrong with a block that was read now for the first time. */
static void note_trouble(struct worker_run *run, uint64_t sequence, int ret, const char *why)
{
	if (!ret || sequence < run->replay_to)
		return;
	run->counts.refused++;
	run->has_trouble = true;
	snprintf(run->trouble, sizeof(run->trouble), "%s", why);
	if (ret == -EAGAIN)
		snprintf(run->trouble, sizeof(run->trouble),
			 "%s: a block has columns of another version, and the introduction that names them is missing",
			 run->host);
}

/* Reads the next block. Returns 1, 0 where there is none in order, or -ENOMEM. */
static int read_block(struct worker_run *run)
{
	struct queued *queued = run->queue;
	struct block_head head;
	char why[512] = "";
	int ret;

	jump_gaps(run);
	if (!queued || queued->sequence != run->next)
		return 0;
	if (grow(&run->recent, &run->recent_capacity, run->recent_count + 1, sizeof(*run->recent)))
		return -ENOMEM;
	run->recent[run->recent_count++] = (struct recent){
	    .sequence = queued->sequence,
	    .number = queued->number,
	    .lost = run->lost,
	    .passed = !queued->bytes,
	};
	run->reads += queued->bytes != NULL;
	ret = !queued->bytes
		  ? 0
		  : block_reader__read(run->blocks, queued->bytes, queued->size, &head, &run->sink, why, sizeof(why));
	if (ret == -ENOMEM)
		return ret;
	note_trouble(run, queued->sequence, ret, why);
	run->last_read = queued->flags & BLOCK_LAST;
	run->ended |= run->last_read;
	run->queue = queued->next;
	if (!run->queue)
		run->tail = NULL;
	run->queued_bytes -= queued->size;
	run->next++;
	free(queued->bytes);
	free(queued);
	return 1;
}

/* What a checkpoint had read, and is not in the stream any more, is missing. */
static bool skip_replay(struct worker_run *run)
{
	if (run->queue || run->next >= run->replay_to || run->replay_to > run->settled)
		return false;
	run->counts.missing += run->replay_to - run->next;
	run->lost += run->replay_to - run->next;
	run->next = run->replay_to;
	return true;
}

/* Notes where the source is: at an event, or behind all blocks that were read where none is left. */
static void note_place(struct worker_run *run, bool event)
{
	if (!event) {
		run->at = run->recent_count;
		run->given = 0;
		run->reader.block = run->next; /* a block's number here is its sequence plus 1 */
		run->reader.event = UINT64_MAX;
		return;
	}
	while (run->given >= run->recent[run->at].events) {
		run->at++;
		run->given = 0;
	}
	run->reader.block = run->recent[run->at].sequence + 1;
	run->reader.event = run->given++;
}

/* Whether all blocks missing before the latest report of drops were discarded by the node: none of them will come. */
static bool are_discarded(const struct worker_run *run)
{
	uint64_t missing = run->dropped_before - run->next;

	if (run->dropped_before <= run->next || run->next < run->replay_to)
		return false;
	for (const struct queued *at = run->queue; at && at->sequence < run->dropped_before; at = at->next)
		missing--;
	return missing + run->counts.missing <= run->counts.dropped_blocks;
}

/* Reads the next block, beyond a gap of which nothing will come. As read_block(). */
static int read_on(struct worker_run *run)
{
	int ret = read_block(run);

	if (!ret &&
	    ((run->queue && run->queue->sequence <= run->settled) ||
	     (worker_run__has_gap(run) && are_discarded(run))) &&
	    worker_run__skip(run, 0))
		ret = read_block(run);
	return ret;
}

static int next_event(struct merge_reader *reader, struct stream_event *event)
{
	struct worker_run *run = (struct worker_run *)reader;
	int ret;

	while (!held_events__take(run->events, event)) {
		note_place(run, false);
		ret = read_on(run);
		if (ret < 0)
			return ret;
		if (ret || skip_replay(run))
			continue;
		return run->ended && !run->queue && run->next >= run->replay_to ? 0 : -EAGAIN;
	}
	note_place(run, true);
	if (event->type == STREAM_WINDOW && !--run->windows && run->last_read)
		event->window.last = true;
	return 1;
}

struct worker_run *worker_run__new(const struct block_head *head)
{
	struct worker_run *run = calloc(1, sizeof(*run));

	if (!run)
		return NULL;
	run->reader.next = next_event;
	run->sink.put = put_event;
	run->blocks = block_reader__new();
	run->events = held_events__new();
	run->id = head->run;
	snprintf(run->host, sizeof(run->host), "%s", head->host);
	if (run->blocks && run->events)
		return run;
	worker_run__free(run);
	return NULL;
}

void worker_run__free(struct worker_run *run)
{
	struct queued *queued, *next;

	if (!run)
		return;
	for (queued = run->queue; queued; queued = next) {
		next = queued->next;
		free(queued->bytes);
		free(queued);
	}
	block_reader__free(run->blocks);
	held_events__free(run->events);
	run_hops__free(&run->hops);
	free(run->recent);
	free(run->passed);
	free(run->ranks);
	free(run);
}

bool worker_run__was_skipped(const struct worker_run *run, uint64_t sequence, uint64_t *at_ns)
{
	for (uint32_t i = 0; i < GAPS && i < run->gap_count; i++) {
		if (sequence < run->gaps[i].from || sequence >= run->gaps[i].to)
			continue;
		*at_ns = run->gaps[i].at_ns;
		return true;
	}
	return false;
}

int worker_run__put(struct worker_run *run, const struct block_head *head, uint64_t number, void *bytes, size_t size,
		    bool counted)
{
	struct queued **at = &run->queue, *queued;
	uint64_t at_ns;

	if (head->dropped_blocks > run->counts.dropped_blocks) {
		run->counts.dropped_blocks = head->dropped_blocks;
		run->dropped_before = head->sequence;
	}
	if (head->dropped_fragments > run->counts.dropped_fragments)
		run->counts.dropped_fragments = head->dropped_fragments;
	if (worker_run__was_skipped(run, head->sequence, &at_ns))
		return RUN_SKIPPED;
	if (run->tail && run->tail->sequence < head->sequence)
		at = &run->tail->next;
	while (*at && (*at)->sequence < head->sequence)
		at = &(*at)->next;
	if (head->sequence < run->next || (*at && (*at)->sequence == head->sequence)) {
		run->counts.duplicates += !counted && head->sequence >= run->first;
		return RUN_DUPLICATE;
	}
	queued = malloc(sizeof(*queued));
	if (!queued)
		return -ENOMEM;
	*queued = (struct queued){
	    .next = *at,
	    .sequence = head->sequence,
	    .number = number,
	    .dropped_blocks = head->dropped_blocks,
	    .flags = head->flags,
	    .size = size,
	    .bytes = bytes,
	};
	*at = queued;
	if (!queued->next)
		run->tail = queued;
	run->queued_bytes += size;
	run->counts.blocks += bytes && !counted;
	return RUN_QUEUED;
}

/* Where the first blocks are missing, a later one may introduce the run; its events are read when it is due. */
static int find_introduction(struct worker_run *run)
{
	struct block_head head;
	char err[512];
	int ret = 0;

	for (struct queued *at = run->queue; ret != -ENOMEM && at && !block_reader__tunables(run->blocks);
	     at = at->next) {
		if (at->bytes && at->flags & BLOCK_INTRODUCES)
			ret = block_reader__read(run->blocks, at->bytes, at->size, &head, NULL, err, sizeof(err));
	}
	return ret == -ENOMEM ? ret : 0;
}

int worker_run__look(struct worker_run *run)
{
	int ret = 1;

	while (ret > 0 && run->looks < LOOKS) {
		ret = read_on(run);
		run->looks += ret > 0;
	}
	return ret < 0 ? ret : find_introduction(run);
}

bool worker_run__has_gap(const struct worker_run *run)
{
	return run->queue && run->queue->sequence != run->next;
}

uint64_t worker_run__awaited(const struct worker_run *run)
{
	bool discarded = are_discarded(run);
	uint64_t expected = run->next;

	if (run->next < run->replay_to)
		return UINT64_MAX;
	for (const struct queued *at = run->queue; at; at = at->next) {
		bool known = at->sequence <= run->settled || (discarded && expected < run->dropped_before);

		if (at->sequence != expected && !known)
			return expected;
		expected = at->sequence + 1;
	}
	return UINT64_MAX;
}

uint64_t worker_run__top(const struct worker_run *run)
{
	return run->tail ? run->tail->sequence + 1 : run->next;
}

/* Counts blocks of a gap that the node has not counted as discarded, and returns how many. */
static uint64_t count_lost(struct worker_run *run)
{
	uint64_t missing = run->counts.missing, dropped = run->counts.dropped_blocks;
	uint64_t total = missing > dropped ? missing - dropped : 0, lost;

	if (total <= run->lost_total)
		return 0;
	lost = total - run->lost_total;
	run->lost_total = total;
	run->lost += lost;
	return lost;
}

bool worker_run__skip(struct worker_run *run, uint64_t at_ns)
{
	uint64_t lost;

	jump_gaps(run);
	if (!worker_run__has_gap(run))
		return false;
	run->counts.missing += run->queue->sequence - run->next;
	lost = count_lost(run);
	run->gaps[run->gap_count++ % GAPS] = (struct gap){run->next, run->queue->sequence, at_ns, lost};
	run->next = run->queue->sequence;
	return true;
}

void worker_run__settle(struct worker_run *run)
{
	if (run->tail && run->tail->sequence > run->settled)
		run->settled = run->tail->sequence;
	if (run->replay_to > run->settled)
		run->settled = run->replay_to;
}

void worker_run__end(struct worker_run *run, uint64_t at_ns)
{
	run->ended = true;
	worker_run__skip(run, at_ns);
	worker_run__settle(run);
}

struct merge_reader *worker_run__reader(struct worker_run *run)
{
	return &run->reader;
}

const char *worker_run__parts_job(const struct worker_run *run)
{
	return run->ended ? "" : run->parts_job;
}

const char *worker_run__host(const struct worker_run *run)
{
	return run->host;
}

uint64_t worker_run__id(const struct worker_run *run)
{
	return run->id;
}

const struct run_counts *worker_run__counts(const struct worker_run *run)
{
	return &run->counts;
}

const char *worker_run__tunables(const struct worker_run *run)
{
	return block_reader__tunables(run->blocks);
}

const char *worker_run__hello(const struct worker_run *run)
{
	return block_reader__hello(run->blocks);
}

uint32_t worker_run__ranks(const struct worker_run *run, uint8_t *set, size_t size)
{
	for (size_t i = 0; i < run->rank_count; i++) {
		if ((size_t)run->ranks[i] < size)
			set[run->ranks[i]] = 1;
	}
	return run->world_size;
}

const char *worker_run__trouble(struct worker_run *run)
{
	if (!run->has_trouble)
		return NULL;
	run->has_trouble = false;
	return run->trouble;
}

size_t worker_run__bytes(const struct worker_run *run)
{
	return run->queued_bytes + held_events__bytes(run->events);
}
