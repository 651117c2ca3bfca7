// SPDX-License-Identifier: GPL-2.0-or-later
/* Checkpoints of a run: which of its blocks are done with, were skipped, and have to be read again. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/archive.h"
#include "base/grow.h"
#include "base/intern.h"
#include "worker/run_private.h"

/* What is saved of a run in one row. */
struct saved_run {
	char host[WIRE_TEXT_MAX];
	const char *columns, *tunables, *hello;
	uint64_t id, first, replay_to, settled;
	uint64_t blocks, duplicates, missing, refused, dropped_blocks, dropped_fragments;
	uint64_t lost, lost_total, fragments, reads, dropped_before;
	uint32_t gap_count;
	bool ended, has_trouble;
	char trouble[512];
};

static const struct archive_column run_columns[] = {
    {"host", ARCHIVE_CHARS, WIRE_TEXT_MAX, offsetof(struct saved_run, host), false},
    ARCHIVE_ONE(struct saved_run, columns),
    ARCHIVE_ONE(struct saved_run, tunables),
    ARCHIVE_ONE(struct saved_run, hello),
    ARCHIVE_ONE(struct saved_run, id),
    ARCHIVE_ONE(struct saved_run, first),
    ARCHIVE_ONE(struct saved_run, replay_to),
    ARCHIVE_ONE(struct saved_run, settled),
    ARCHIVE_ONE(struct saved_run, blocks),
    ARCHIVE_ONE(struct saved_run, duplicates),
    ARCHIVE_ONE(struct saved_run, missing),
    ARCHIVE_ONE(struct saved_run, refused),
    ARCHIVE_ONE(struct saved_run, dropped_blocks),
    ARCHIVE_ONE(struct saved_run, dropped_fragments),
    ARCHIVE_ONE(struct saved_run, lost),
    ARCHIVE_ONE(struct saved_run, lost_total),
    ARCHIVE_ONE(struct saved_run, fragments),
    ARCHIVE_ONE(struct saved_run, reads),
    ARCHIVE_ONE(struct saved_run, dropped_before),
    ARCHIVE_ONE(struct saved_run, gap_count),
    ARCHIVE_ONE(struct saved_run, ended),
    ARCHIVE_ONE(struct saved_run, has_trouble),
    {"trouble", ARCHIVE_CHARS, 512, offsetof(struct saved_run, trouble), false},
};
static const struct archive_table run_table = ARCHIVE_TABLE("run", struct saved_run, run_columns);

static const struct archive_column gap_columns[] = {
    ARCHIVE_ONE(struct gap, from),
    ARCHIVE_ONE(struct gap, to),
    ARCHIVE_ONE(struct gap, at_ns),
    ARCHIVE_ONE(struct gap, lost),
};
static const struct archive_table gap_table = ARCHIVE_TABLE("gap", struct gap, gap_columns);

static const struct archive_column passed_columns[] = {{"sequence", ARCHIVE_U64, 1, 0, false}};
static const struct archive_table passed_table = ARCHIVE_TABLE("passed over", uint64_t, passed_columns);

void worker_run__release(struct worker_run *run, uint64_t first_held)
{
	size_t done = 0;

	while (done < run->recent_count && done < run->at && run->recent[done].sequence + 1 < first_held)
		done++;
	if (!done)
		return;
	run->recent_count -= done;
	run->at -= done;
	memmove(run->recent, run->recent + done, run->recent_count * sizeof(*run->recent));
}

uint64_t worker_run__resume(const struct worker_run *run)
{
	uint64_t least = UINT64_MAX;

	for (size_t i = 0; i < run->recent_count; i++) {
		if (run->recent[i].number < least)
			least = run->recent[i].number;
	}
	for (const struct queued *queued = run->queue; queued; queued = queued->next) {
		if (queued->number < least)
			least = queued->number;
	}
	return least;
}

bool worker_run__was_read(const struct worker_run *run, uint64_t sequence, bool *passed)
{
	*passed = false;
	if (sequence < run->next)
		return true;
	if (sequence >= run->replay_to)
		return false;
	for (size_t i = 0; i < run->passed_count; i++)
		*passed |= run->passed[i] == sequence;
	return true;
}

static struct saved_run saved_of(const struct worker_run *run)
{
	struct saved_run saved = {
	    .columns = block_reader__columns(run->blocks),
	    .tunables = block_reader__tunables(run->blocks),
	    .hello = block_reader__hello(run->blocks),
	    .id = run->id,
	    .first = run->recent_count ? run->recent[0].sequence : run->next,
	    .replay_to = run->next,
	    .settled = run->settled,
	    .blocks = run->counts.blocks,
	    .duplicates = run->counts.duplicates,
	    .missing = run->counts.missing,
	    .refused = run->counts.refused,
	    .dropped_blocks = run->counts.dropped_blocks,
	    .dropped_fragments = run->counts.dropped_fragments,
	    .lost = run->recent_count ? run->recent[0].lost : run->lost,
	    .lost_total = run->lost_total,
	    .fragments = run->fragments,
	    .reads = run->reads,
	    .dropped_before = run->dropped_before,
	    .gap_count = run->gap_count,
	    .ended = run->ended,
	    .has_trouble = run->has_trouble,
	};

	memcpy(saved.host, run->host, sizeof(saved.host));
	memcpy(saved.trouble, run->trouble, sizeof(saved.trouble));
	return saved;
}

/* Lists the recent blocks that were passed over. */
static int list_passed(const struct worker_run *run, uint64_t **list, size_t *count, size_t *capacity)
{
	for (size_t i = 0; i < run->recent_count; i++) {
		if (!run->recent[i].passed)
			continue;
		if (grow(list, capacity, *count + 1, sizeof(**list)))
			return -ENOMEM;
		(*list)[(*count)++] = run->recent[i].sequence;
	}
	return 0;
}

static void load(struct archive *archive, struct worker_run *run, const struct saved_run *saved)
{
	int ret = block_reader__introduce(run->blocks, saved->columns, saved->tunables, saved->hello);

	if (ret == -ENOMEM)
		archive__fail(archive, ret, "out of memory");
	archive__check(archive, !ret, "the columns of a run are damaged");
	archive__check(archive, saved->first <= saved->replay_to && saved->replay_to < UINT64_MAX,
		       "the blocks of a run are not in order");
	run->first = run->next = saved->first;
	run->replay_to = saved->replay_to;
	run->settled = saved->settled;
	run->lost = saved->lost;
	run->lost_total = saved->lost_total;
	run->fragments = saved->fragments;
	run->reads = saved->reads;
	run->dropped_before = saved->dropped_before;
	run->gap_count = saved->gap_count;
	run->ended = saved->ended;
	run->has_trouble = saved->has_trouble;
	memcpy(run->trouble, saved->trouble, sizeof(run->trouble));
	run->counts = (struct run_counts){
	    .blocks = saved->blocks,
	    .duplicates = saved->duplicates,
	    .missing = saved->missing,
	    .refused = saved->refused,
	    .dropped_blocks = saved->dropped_blocks,
	    .dropped_fragments = saved->dropped_fragments,
	};
	run->reader.block = run->next;
	run->reader.event = UINT64_MAX;
}

/* The texts of a run are in one set, of which the row has the numbers. */
void worker_run__archive(struct worker_run **run, struct archive *archive)
{
	struct intern *texts = intern__new();
	struct saved_run saved = {.id = 0};
	uint64_t *passed = NULL;
	size_t count = 0, capacity = 0;

	if (!texts) {
		archive__fail(archive, -ENOMEM, "out of memory");
		return;
	}
	if (!archive__reads(archive)) {
		saved = saved_of(*run);
		intern__id(texts, saved.columns);
		intern__id(texts, saved.tunables);
		intern__id(texts, saved.hello);
		if (list_passed(*run, &passed, &count, &capacity))
			archive__fail(archive, -ENOMEM, "out of memory");
	}
	archive__texts(archive, texts);
	archive__record(archive, &run_table, &saved);
	if (archive__reads(archive) && !archive__error(archive)) {
		struct block_head head = {.run = saved.id};

		memcpy(head.host, saved.host, sizeof(head.host));
		*run = worker_run__new(&head);
		if (*run)
			load(archive, *run, &saved);
		else
			archive__fail(archive, -ENOMEM, "out of memory");
	}
	if (!archive__error(archive))
		archive__array(archive, &gap_table, (*run)->gaps, GAPS);
	archive__rows(archive, &passed_table, &passed, &count, &capacity);
	if (archive__reads(archive) && !archive__error(archive)) {
		(*run)->passed = passed;
		(*run)->passed_count = count;
		passed = NULL;
	}
	free(passed);
	intern__free(texts);
}
