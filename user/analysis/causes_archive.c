// SPDX-License-Identifier: GPL-2.0-or-later
/* The roll-up in checkpoints: see causes.h. */
#include "analysis/causes_private.h"

#include <stdlib.h>

static const struct archive_column causes_columns[] = {
    ARCHIVE_ONE(struct causes, folded),
    ARCHIVE_ONE(struct causes, names),
    ARCHIVE_ONE(struct causes, latest_ns),
};
static const struct archive_table causes_table = ARCHIVE_TABLE("causes", struct causes, causes_columns);

static const struct archive_column region_columns[] = {
    ARCHIVE_ONE(struct rolled_region, key.job),	     ARCHIVE_ONE(struct rolled_region, key.user),
    ARCHIVE_ONE(struct rolled_region, key.cause),    ARCHIVE_ONE(struct rolled_region, key.culprit),
    ARCHIVE_ONE(struct rolled_region, key.place),    ARCHIVE_ONE(struct rolled_region, key.confirmed),
    ARCHIVE_ONE(struct rolled_region, id),	     ARCHIVE_ONE(struct rolled_region, part),
    ARCHIVE_ONE(struct rolled_region, revision),     ARCHIVE_ONE(struct rolled_region, pid),
    ARCHIVE_ONE(struct rolled_region, relation),     ARCHIVE_ONE(struct rolled_region, class),
    ARCHIVE_ONE(struct rolled_region, closed),	     ARCHIVE_ONE(struct rolled_region, alarm),
    ARCHIVE_ONE(struct rolled_region, effect_of),    ARCHIVE_ONE(struct rolled_region, begin_ns),
    ARCHIVE_ONE(struct rolled_region, end_ns),	     ARCHIVE_ONE(struct rolled_region, lost_ns),
    ARCHIVE_ONE(struct rolled_region, caused_ns),    ARCHIVE_ONE(struct rolled_region, culprit_ns),
    ARCHIVE_ONE(struct rolled_region, task_ns),	     ARCHIVE_ONE(struct rolled_region, key.culprit_job),
    ARCHIVE_ONE(struct rolled_region, culprit_rank),
};
static const struct archive_table region_table = ARCHIVE_TABLE("rolled", struct rolled_region, region_columns);

static const struct archive_column rank_columns[] = {{"rank", ARCHIVE_I32, 1, 0, false}};
static const struct archive_table rank_table = {"ranks", rank_columns, 1, sizeof(int32_t)};

static const struct archive_column host_columns[] = {{"host", ARCHIVE_U32, 1, 0, false}};
static const struct archive_table host_table = {"hosts", host_columns, 1, sizeof(uint32_t)};

static const struct archive_column sum_columns[] = {
    ARCHIVE_ONE(struct cause_sum, key.job),
    ARCHIVE_ONE(struct cause_sum, key.user),
    ARCHIVE_ONE(struct cause_sum, key.cause),
    ARCHIVE_ONE(struct cause_sum, key.culprit),
    ARCHIVE_ONE(struct cause_sum, key.place),
    ARCHIVE_ONE(struct cause_sum, key.confirmed),
    ARCHIVE_ONE(struct cause_sum, alarm),
    ARCHIVE_ONE(struct cause_sum, pid),
    ARCHIVE_ONE(struct cause_sum, pids),
    ARCHIVE_ONE(struct cause_sum, relation),
    ARCHIVE_ONE(struct cause_sum, begin_ns),
    ARCHIVE_ONE(struct cause_sum, end_ns),
    ARCHIVE_ONE(struct cause_sum, lost_ns),
    ARCHIVE_ONE(struct cause_sum, caused_ns),
    ARCHIVE_ONE(struct cause_sum, culprit_ns),
    ARCHIVE_ONE(struct cause_sum, task_ns),
    ARCHIVE_ONE(struct cause_sum, regions),
    ARCHIVE_ONE(struct cause_sum, intervals),
    ARCHIVE_MANY(struct cause_sum, class_ns),
    ARCHIVE_ONE(struct cause_sum, worst_count),
    ARCHIVE_ONE(struct cause_sum, key.culprit_job),
    ARCHIVE_ONE(struct cause_sum, culprit_rank),
};
static const struct archive_table sum_table = ARCHIVE_TABLE("sums", struct cause_sum, sum_columns);

static const struct archive_column word_columns[] = {{"bits", ARCHIVE_U64, 1, 0, false}};
static const struct archive_table word_table = {"rank bits", word_columns, 1, sizeof(uint64_t)};

static const struct archive_column minute_columns[] = {
    ARCHIVE_ONE(struct cause_minute, minute),
    ARCHIVE_ONE(struct cause_minute, ns),
};
static const struct archive_table minute_table = ARCHIVE_TABLE("minutes", struct cause_minute, minute_columns);

static const struct archive_column time_columns[] = {
    ARCHIVE_ONE(struct job_time, job),		ARCHIVE_ONE(struct job_time, user),
    ARCHIVE_ONE(struct job_time, rank_seconds), ARCHIVE_ONE(struct job_time, begin_ns),
    ARCHIVE_ONE(struct job_time, end_ns),
};
static const struct archive_table time_table = ARCHIVE_TABLE("times", struct job_time, time_columns);

static const struct archive_column emitted_columns[] = {
    ARCHIVE_ONE(struct emitted_cause, key.job),		ARCHIVE_ONE(struct emitted_cause, key.user),
    ARCHIVE_ONE(struct emitted_cause, key.cause),	ARCHIVE_ONE(struct emitted_cause, key.culprit),
    ARCHIVE_ONE(struct emitted_cause, key.culprit_job), ARCHIVE_ONE(struct emitted_cause, key.place),
    ARCHIVE_ONE(struct emitted_cause, key.confirmed),	ARCHIVE_ONE(struct emitted_cause, cost_ns),
    ARCHIVE_ONE(struct emitted_cause, severity),	ARCHIVE_ONE(struct emitted_cause, alarm),
};
static const struct archive_table emitted_table =
    ARCHIVE_TABLE("emitted causes", struct emitted_cause, emitted_columns);

static bool possible_key(const struct causes *causes, const struct cause_key *key)
{
	size_t count = intern__count(causes->texts);

	/* 0 is no text: a culprit and a place may be unknown */
	return key->job && key->job < count && key->cause && key->cause < count && key->culprit < count &&
	       key->culprit_job < count && key->place < count;
}

static void archive_region(struct archive *archive, const struct causes *causes, struct rolled_region *region)
{
	uint32_t ranks = region->rank_count, hosts = region->host_count;

	archive__rows32(archive, &rank_table, &region->ranks, &region->rank_count, &ranks);
	archive__rows32(archive, &host_table, &region->hosts, &region->host_count, &hosts);
	if (!archive__reads(archive))
		return;
	archive__check(archive,
		       possible_key(causes, &region->key) && region->relation < VAPRO_RELATIONS &&
			   region->class < VAPRO_CLASSES,
		       "a region of a cause contradicts others");
	for (uint32_t i = 0; i < region->host_count; i++)
		archive__check(archive, region->hosts[i] && region->hosts[i] < intern__count(causes->hosts),
			       "a region of a cause has an unknown host");
}

static bool known_hosts(const struct causes *causes, const struct cause_sum *sum)
{
	for (size_t bit = 0; bit < 32 * sum->host_words; bit++) {
		if (sum->hosts[bit / 32] & 1U << bit % 32 && (!bit || bit >= intern__count(causes->hosts)))
			return false;
	}
	return true;
}

static void archive_minutes(struct archive *archive, struct cause_minutes *minutes)
{
	archive__rows(archive, &minute_table, &minutes->items, &minutes->count, &minutes->capacity);
	for (size_t i = 1; archive__reads(archive) && i < minutes->count; i++)
		archive__check(archive, minutes->items[i - 1].minute < minutes->items[i].minute,
			       "the minutes of a cause are not in order");
}

static void archive_sum(struct archive *archive, const struct causes *causes, struct cause_sum *sum)
{
	archive__rows(archive, &word_table, &sum->ranks, &sum->rank_words, &sum->rank_words);
	archive__rows(archive, &host_table, &sum->hosts, &sum->host_words, &sum->host_words);
	archive_minutes(archive, &sum->minutes);
	if (!archive__check(archive, sum->worst_count <= CAUSE_VARIANCES, "a cause has too many variances"))
		sum->worst_count = 0;
	for (uint32_t i = 0; i < sum->worst_count; i++) {
		archive__number(archive, &sum->worst[i].id);
		archive__number(archive, &sum->worst[i].lost_ns);
	}
	if (archive__reads(archive))
		archive__check(archive,
			       possible_key(causes, &sum->key) && sum->relation < VAPRO_RELATIONS &&
				   known_hosts(causes, sum),
			       "a cause contradicts others");
}

void causes__archive(struct archive *archive, struct causes *causes)
{
	archive__record(archive, &causes_table, causes);
	archive__texts(archive, causes->texts);
	archive__texts(archive, causes->hosts);
	archive__check(archive, !causes->names || causes->names < intern__count(causes->texts),
		       "a cause has an unknown name");
	archive__rows(archive, &region_table, &causes->regions, &causes->region_count, &causes->region_capacity);
	for (size_t i = 0; i < causes->region_count; i++)
		archive_region(archive, causes, &causes->regions[i]);
	archive__rows(archive, &sum_table, &causes->history.items, &causes->history.count, &causes->history.capacity);
	for (size_t i = 0; i < causes->history.count; i++)
		archive_sum(archive, causes, &causes->history.items[i]);
	archive__rows(archive, &time_table, &causes->times, &causes->time_count, &causes->time_capacity);
	for (size_t i = 0; i < causes->time_count; i++)
		archive_minutes(archive, &causes->times[i].minutes);
	archive__rows(archive, &emitted_table, &causes->emitted, &causes->emitted_count, &causes->emitted_capacity);
	for (size_t i = 0; archive__reads(archive) && i < causes->time_count; i++)
		archive__check(archive, causes->times[i].job < intern__count(causes->texts), "a job has no name");
	for (size_t i = 0; archive__reads(archive) && i < causes->emitted_count; i++)
		archive__check(archive,
			       possible_key(causes, &causes->emitted[i].key) &&
				   causes->emitted[i].severity < VAPRO_SEVERITIES,
			       "an emitted cause contradicts others");
}
