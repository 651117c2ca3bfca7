// SPDX-License-Identifier: GPL-2.0-or-later
#include "metrics/metrics_private.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/text.h"
#include "diagnose/root_cause.h"

#define TRACKED 4096		       /* jobs that are distinguished; further ones are in no series */
#define FORGET_NS (2 * CAUSES_OVER_NS) /* a job that is seen again later would count its losses again */
#define CURRENT_NS 60000000000ULL      /* performance counts so long, or for two windows */
#define ALARMS_MOST (1U << 17)	       /* entries of the table */
#define LOW_PERCENTILE 0.05

const char *const metrics__job_cause[JOB_CAUSES] = {
    [JOB_PREEMPTED] = "preempted", [JOB_HELD] = "throttled_or_stopped", [JOB_OTHER] = "other"};

const char *const metrics__node_cause[NODE_CAUSES] = {[NODE_PREEMPTED] = "preempted",
						      [NODE_WAKEUP] = "wakeup_wait",
						      [NODE_THROTTLED] = "throttled",
						      [NODE_STOPPED] = "stopped",
						      [NODE_STEAL] = "steal",
						      [NODE_IO] = "io",
						      [NODE_IRQ] = "irq",
						      [NODE_FREQUENCY] = "frequency",
						      [NODE_PAGES] = "page_faults",
						      [NODE_MEMORY] = "memory",
						      [NODE_NETWORK] = "network",
						      [NODE_WAITING] = "waiting",
						      [NODE_OTHER] = "other"};

const char *const metrics__stat[JOB_STATS] = {[STAT_MIN] = "min", [STAT_P05] = "p05", [STAT_P50] = "p50"};

/* Words of causes (diagnose/root_cause.h); all others are NODE_OTHER. */
static const struct {
	const char *word;
	enum node_cause cause;
} words[] = {
    {CAUSE_PREEMPTED, NODE_PREEMPTED},
    {CAUSE_OVERSUBSCRIBED, NODE_PREEMPTED},
    {"wakeup_wait", NODE_WAKEUP},
    {"throttled", NODE_THROTTLED},
    {"stopped", NODE_STOPPED},
    {"steal", NODE_STEAL},
    {"blocked_io", NODE_IO},
    {"irq", NODE_IRQ},
    {"hard_irq", NODE_IRQ},
    {"soft_irq", NODE_IRQ},
    {"frequency", NODE_FREQUENCY},
    {"page_faults", NODE_PAGES},
    {"minor_faults", NODE_PAGES},
    {"major_faults", NODE_PAGES},
    {"reclaim", NODE_PAGES},
    {"memory", NODE_MEMORY},
    {"l1", NODE_MEMORY},
    {"l2", NODE_MEMORY},
    {"l3", NODE_MEMORY},
    {"dram", NODE_MEMORY},
    {"store", NODE_MEMORY},
    {CAUSE_TRANSFER, NODE_NETWORK},
    {CAUSE_SLOW_PATH, NODE_NETWORK},
    {CAUSE_LATE_PEER, NODE_WAITING},
    {CAUSE_BARRIER, NODE_WAITING},
    {CAUSE_POLLING, NODE_WAITING},
};

static enum node_cause cause_of(const char *word)
{
	for (size_t i = 0; word && i < sizeof(words) / sizeof(*words); i++) {
		if (!strcmp(words[i].word, word))
			return words[i].cause;
	}
	return NODE_OTHER;
}

enum job_cause metrics__fold(enum node_cause cause)
{
	switch (cause) {
	case NODE_PREEMPTED:
	case NODE_WAKEUP:
		return JOB_PREEMPTED;
	case NODE_THROTTLED:
	case NODE_STOPPED:
		return JOB_HELD;
	default:
		return JOB_OTHER;
	}
}

struct metrics *metrics__new(const char *path)
{
	struct metrics *metrics = calloc(1, sizeof(*metrics));

	if (!metrics)
		return NULL;
	metrics->overhead_pct = NAN;
	metrics->path = strdup(path);
	metrics->alarms = table__new();
	/* the collector reads files whose names end in .prom only */
	if (metrics->path && metrics->alarms && asprintf(&metrics->fresh, "%s.new", path) >= 0)
		return metrics;
	metrics->fresh = NULL;
	metrics__free(metrics);
	return NULL;
}

static void free_job(struct metrics_job *job)
{
	free(job->cluster);
	free(job->job);
}

void metrics__free(struct metrics *metrics)
{
	if (!metrics)
		return;
	for (size_t i = 0; i < metrics->count; i++)
		free_job(&metrics->jobs[i]);
	free(metrics->jobs);
	table__free(metrics->alarms);
	free(metrics->path);
	free(metrics->fresh);
	free(metrics);
}

bool metrics__is_shown(const struct metrics_job *job, uint64_t now_ns)
{
	return job->shown && now_ns - job->seen_ns < METRICS_AFTER_NS;
}

static bool is_job(const struct metrics_job *job, const char *cluster, const char *name, uint32_t user)
{
	return job->user == user && !strcmp(job->job, name) && !strcmp(job->cluster, cluster);
}

static struct metrics_job *find_job(struct metrics *metrics, const char *cluster, const char *name, uint32_t user)
{
	for (size_t i = 0; i < metrics->count; i++) {
		if (is_job(&metrics->jobs[i], cluster, name, user))
			return &metrics->jobs[i];
	}
	return NULL;
}

/* Forgets jobs that ended long ago. */
static void forget_old(struct metrics *metrics, uint64_t now_ns)
{
	size_t left = 0;

	for (size_t i = 0; i < metrics->count; i++) {
		if (now_ns - metrics->jobs[i].seen_ns < FORGET_NS)
			metrics->jobs[left++] = metrics->jobs[i];
		else
			free_job(&metrics->jobs[i]);
	}
	metrics->count = left;
}

/* Writes the label of a job. One without a manager is known by a process and a host, which no label names. */
static void name_job(struct metrics_job *job)
{
	if (!strncmp(job->job, "none:", 5))
		snprintf(job->label, sizeof(job->label), "none:%08x", (unsigned)text__hash(job->job, strlen(job->job)));
	else
		snprintf(job->label, sizeof(job->label), "%s", job->job);
}

/* Whether a new job may have series: there is room, and no other job has its label. */
static bool may_show(const struct metrics *metrics, const struct metrics_job *job, uint64_t now_ns)
{
	size_t shown = 0;

	for (size_t i = 0; i < metrics->count; i++) {
		const struct metrics_job *other = &metrics->jobs[i];

		if (!metrics__is_shown(other, now_ns))
			continue;
		shown++;
		if (!strcmp(other->label, job->label))
			return false;
	}
	return shown < METRICS_JOBS && strcmp(job->label, "other") != 0;
}

/* Adds a job; NULL where there are too many, or no memory. */
static struct metrics_job *add_job(struct metrics *metrics, const char *cluster, const struct job_result *result,
				   uint64_t now_ns)
{
	struct metrics_job fresh = {.user = result->user, .seen_ns = now_ns};

	forget_old(metrics, now_ns);
	if (metrics->count >= TRACKED || grow(&metrics->jobs, &metrics->capacity, metrics->count + 1, sizeof(fresh)))
		return NULL;
	fresh.cluster = strdup(cluster);
	fresh.job = strdup(result->job);
	if (!fresh.cluster || !fresh.job) {
		free_job(&fresh);
		return NULL;
	}
	name_job(&fresh);
	fresh.shown = may_show(metrics, &fresh, now_ns);
	metrics->jobs[metrics->count] = fresh;
	return &metrics->jobs[metrics->count++];
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Adds the mean of a rank's bins. */
static void add_mean(const struct result_heatmap *map, const struct result_row *row, double *means, uint32_t *count)
{
	double sum = 0;
	uint32_t valid = 0;

	for (uint32_t bin = 0; bin < map->bins; bin++) {
		sum += isnan(row->values[bin]) ? 0 : row->values[bin];
		valid += !isnan(row->values[bin]);
	}
	if (valid)
		means[(*count)++] = sum / valid;
}

/* Sets the distribution of the ranks' performance in one class. Returns 0 or -ENOMEM. */
static int set_performance(struct metrics_job *job, const struct job_result *result, const struct result_heatmap *map)
{
	double *means = malloc((map->row_count + 1) * sizeof(*means)), *stats = job->performance[map->class];
	uint32_t count = 0;

	if (!means)
		return -ENOMEM;
	/* other maps correct earlier bins */
	if (map->begin_ns + map->bins * VAPRO_BIN_NS == result->end_ns) {
		for (uint32_t i = 0; i < map->row_count; i++) {
			if (map->rows[i].thread < 0)
				add_mean(map, &map->rows[i], means, &count);
		}
	}
	if (count) {
		qsort(means, count, sizeof(*means), compare);
		stats[STAT_MIN] = means[0];
		stats[STAT_P05] = means[(uint32_t)(LOW_PERCENTILE * (count - 1))];
		stats[STAT_P50] = means[(count - 1) / 2];
	}
	free(means);
	return 0;
}

/* Counts an alarm, once for each severity that it reaches. */
static int count_alarm(struct metrics *metrics, const struct job_result *result, uint64_t id,
		       enum vapro_severity severity)
{
	uint64_t job = table__hash(text__hash(result->job, strlen(result->job)), result->user);
	uint32_t before;
	bool known = table__get(metrics->alarms, job, id, &before);

	if (known && before >= (uint32_t)severity)
		return 0;
	if (table__size(metrics->alarms) > ALARMS_MOST) {
		struct table *fresh = table__new();

		if (!fresh)
			return -ENOMEM;
		table__free(metrics->alarms);
		metrics->alarms = fresh;
	}
	metrics->alarm_count[severity]++;
	return table__put(metrics->alarms, job, id, (uint32_t)severity);
}

static int count_alarms(struct metrics *metrics, const struct job_result *result)
{
	int ret = 0;

	for (uint32_t i = 0; !ret && i < result->variance_count; i++) {
		const struct result_variance *variance = &result->variances[i];

		if (variance->alarm)
			ret = count_alarm(metrics, result, variance->id, variance->severity);
	}
	if (!ret && result->hang && result->hang->alarm)
		ret = count_alarm(metrics, result, result->hang->id, result->hang->severity);
	return ret;
}

static void add_node(struct metrics *metrics, const struct job_result *result)
{
	double rank_seconds = (double)(result->end_ns - result->begin_ns) * 1e-9 * result->rank_count;

	metrics->judged = true;
	metrics->rank_seconds += rank_seconds;
	for (int i = 0; i < VAPRO_CLASSES; i++)
		metrics->covered[i] += isnan(result->coverage[i]) ? 0 : rank_seconds * result->coverage[i];
	metrics->overhead_pct = fmax(metrics->overhead_pct, result->overhead_pct_mean);
	for (int i = 0; i < VAPRO_LOSSES; i++) {
		/* these cost a label or a detail, and no fragment; blocks are counted by the publisher */
		if (i != VAPRO_LOST_ARGUMENT && i != VAPRO_LOST_TRUNCATED && i != VAPRO_LOST_APPROXIMATED &&
		    i != VAPRO_LOST_GOVERNED && i != VAPRO_LOST_COUNTER && i != VAPRO_LOST_INTERFERENCE &&
		    i != VAPRO_LOST_PUBLISHED)
			metrics->lost_fragments += result->lost[i];
	}
}

int metrics__add(struct metrics *metrics, const char *cluster, const struct job_result *result, uint64_t now_ns)
{
	struct metrics_job *job = find_job(metrics, cluster, result->job, result->user);
	uint64_t twice_ns = 2 * (result->end_ns - result->begin_ns);
	int ret = count_alarms(metrics, result);

	add_node(metrics, result);
	if (!job)
		job = add_job(metrics, cluster, result, now_ns);
	if (!job)
		return ret;
	job->seen_ns = now_ns;
	job->current_ns = now_ns + (twice_ns > CURRENT_NS ? twice_ns : CURRENT_NS);
	for (int class = 0; class < VAPRO_CLASSES; class ++) {
		for (int stat = 0; stat < JOB_STATS; stat++)
			job->performance[class][stat] = NAN;
	}
	for (uint32_t i = 0; !ret && i < result->heatmap_count; i++)
		ret = set_performance(job, result, &result->heatmaps[i]);
	return ret;
}

/* Adds what a job lost since the last call: its sums are revised, and count where they are higher than ever before. */
static void add_lost(struct metrics *metrics, struct metrics_job *job, const double *sums)
{
	for (int cause = 0; cause < NODE_CAUSES; cause++) {
		double more = sums[cause] - job->lost[cause];

		if (!(more > 0))
			continue;
		job->lost[cause] += more;
		metrics->lost[cause] += more;
		if (!job->shown)
			metrics->other[metrics__fold((enum node_cause)cause)] += more;
	}
}

void metrics__add_causes(struct metrics *metrics, const char *cluster, const struct cause_list *list)
{
	for (size_t k = 0; k < metrics->count; k++) {
		struct metrics_job *job = &metrics->jobs[k];
		double sums[NODE_CAUSES] = {0};

		for (uint32_t i = 0; i < list->count; i++) {
			const struct cause *cause = &list->items[i];

			if (cause->confirmed && cause->job && is_job(job, cluster, cause->job, cause->user))
				sums[cause_of(cause->cause)] += cause->lost_seconds;
		}
		add_lost(metrics, job, sums);
	}
}
