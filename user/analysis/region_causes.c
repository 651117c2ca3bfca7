/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The causes of a region: each part of its loss that the kernel knows, and each major part of the rest, with seconds,
 * ranks and times of its own. What is left is not explained. All of them add up to what the region lost.
 */
#include "analysis/result.h"

#include "detect/caused.h"
#include "diagnose/interferers.h"
#include "diagnose/root_cause.h"
#include "model/judgement.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROW_SHARE 0.05	 /* of a part's greatest loss of a row: rows with less have no part in it */
#define REST_SHARE 0.03	 /* of a loss: within the precision of its parts, and added to the greatest */
#define TASK_SHARE 0.05	 /* of a loss: tasks that took as much are a cause of their own */
#define STRONG_SHARE 0.2 /* of a CPU, while a task ran now and then: a short strong one within a long weak one */
#define TASKS_MOST 3	 /* causes of their own, beside the task that is named first */

/* What a part of a loss took from each row of a variance, and when. */
struct row_part {
	double lost; /* ns */
	uint64_t begin, end;
};

/* Returns the index of a row in a variance; its count where the row has left it. */
static size_t row_index(const struct builder *builder, const struct variance *variance, uint32_t row)
{
	const uint32_t *place = builder->about->place;
	size_t low = 0, high = variance->row_count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (place[variance->rows[middle]] < place[row])
			low = middle + 1;
		else
			high = middle;
	}
	return low < variance->row_count && variance->rows[low] == row ? low : variance->row_count;
}

static void sum_rows(const struct builder *builder, const struct variance *variance, enum tally_part part,
		     struct row_part *rows)
{
	const struct tally *tally = &variance->total;

	memset(rows, 0, variance->row_count * sizeof(*rows));
	for (size_t i = 0; i < tally->cause_count; i++) {
		const struct tally_cause *cause = &tally->causes[i];
		size_t at = row_index(builder, variance, builder->context->series.series[cause->series].row);

		if (cause->part != (uint32_t)part || at == variance->row_count)
			continue;
		rows[at].lost += cause->lost;
		if (cause->begin == cause->end)
			continue;
		if (rows[at].begin == rows[at].end || cause->begin < rows[at].begin)
			rows[at].begin = cause->begin;
		rows[at].end = cause->end > rows[at].end ? cause->end : rows[at].end;
	}
}

/* Sets ranks and times of a cause from its rows. Returns 0 or -ENOMEM. */
static int place_cause(const struct builder *builder, const struct variance *variance, const struct row_part *rows,
		       struct result_cause *cause)
{
	int32_t *ranks = result__take(builder, variance->row_count, sizeof(*ranks));
	uint64_t begin = UINT64_MAX, end = 0;
	double most = 0;

	if (!ranks)
		return -ENOMEM;
	for (size_t i = 0; rows && i < variance->row_count; i++)
		most = fmax(most, rows[i].lost);
	for (size_t i = 0; i < variance->row_count; i++) {
		int32_t rank = builder->about->rows[variance->rows[i]].rank;

		if (most > 0 && rows[i].lost < ROW_SHARE * most)
			continue;
		if (!cause->rank_count || ranks[cause->rank_count - 1] != rank)
			ranks[cause->rank_count++] = rank;
		if (most <= 0 || rows[i].begin == rows[i].end)
			continue;
		begin = rows[i].begin < begin ? rows[i].begin : begin;
		end = rows[i].end > end ? rows[i].end : end;
	}
	begin = begin > variance->begin && begin < variance->end ? begin : variance->begin;
	end = end > begin && end < variance->end ? end : variance->end;
	cause->ranks = ranks;
	cause->begin_ns = begin * VAPRO_BIN_NS;
	cause->end_ns = end * VAPRO_BIN_NS;
	return 0;
}

/* Returns the kind of interrupts that took most; "irq" where none took more than half. */
static const char *kind_of_interrupts(const struct result_diagnosis *diagnosis)
{
	const struct result_factor *most = NULL;
	double all = 0;

	for (uint32_t i = 0; i < diagnosis->factor_count; i++) {
		const struct result_factor *factor = &diagnosis->factors[i];

		if (!factor->parent || strcmp(factor->parent, "irq") != 0)
			continue;
		all += factor->impact_seconds;
		most = most && most->impact_seconds >= factor->impact_seconds ? most : factor;
	}
	return most && most->impact_seconds > all / 2 ? most->name : "irq";
}

static const char *name_of(const struct result_diagnosis *diagnosis, enum tally_part part)
{
	static const char *const names[TALLY_PARTS] = {
	    [TALLY_PREEMPTED] = CAUSE_PREEMPTED,
	    [TALLY_THROTTLED] = "throttled",
	    [TALLY_STEAL] = "steal",
	    [TALLY_STOPPED] = "stopped",
	    [TALLY_BLOCKED_IO] = "blocked_io",
	    [TALLY_BLOCKED_OTHER] = "blocked_other",
	};

	if (part == TALLY_IRQ)
		return kind_of_interrupts(diagnosis);
	return part == TALLY_PREEMPTED && diagnosis->oversubscribed.cpus ? CAUSE_OVERSUBSCRIBED : names[part];
}

/* Whether a major factor of the first stage is loss that the kernel's parts do not have. */
static bool is_other(const struct result_factor *factor)
{
	return factor->major && !factor->parent && strcmp(factor->name, "suspension") != 0 &&
	       strcmp(factor->name, "irq") != 0;
}

/* Adds the major parts of the rest of a loss. Returns the seconds that they explain. */
static double add_others(const struct result_variance *out, double rest, struct result_cause *causes, uint32_t *count)
{
	const struct result_diagnosis *diagnosis = &out->diagnosis;
	double all = 0, scale;

	for (uint32_t i = 0; i < diagnosis->factor_count; i++)
		all += is_other(&diagnosis->factors[i]) ? diagnosis->factors[i].impact_seconds : 0;
	scale = all > rest ? rest / all : 1;
	for (uint32_t i = 0; i < diagnosis->factor_count && *count < RESULT_CAUSES - 1; i++) {
		const struct result_factor *factor = &diagnosis->factors[i];

		if (!is_other(factor) || factor->impact_seconds <= 0)
			continue;
		causes[(*count)++] = (struct result_cause){.cause = root_cause__polls(out->class, factor->name)
									? CAUSE_POLLING
									: root_cause__finest(diagnosis, factor->name),
							   .explained = true,
							   .lost_seconds = scale * factor->impact_seconds};
	}
	return scale * all;
}

static struct result_cause *greatest(struct result_cause *causes, uint32_t count)
{
	struct result_cause *most = count ? &causes[0] : NULL;

	for (uint32_t i = 1; i < count; i++)
		most = causes[i].lost_seconds > most->lost_seconds ? &causes[i] : most;
	return most;
}

static int compare_causes(const void *a, const void *b)
{
	const struct result_cause *left = a, *right = b;

	if (left->explained != right->explained)
		return left->explained ? -1 : 1;
	if (left->lost_seconds != right->lost_seconds)
		return left->lost_seconds > right->lost_seconds ? -1 : 1;
	return strcmp(left->cause, right->cause);
}

/* Tasks of one name that ran instead of a region's threads. */
struct preempter {
	double seconds;
	uint64_t begin, end; /* bins; equal: not known */
	bool scattered;	     /* over more rows than are listed */
};

static bool is_strong(const struct preempter *task)
{
	return task->seconds * 1e9 >= STRONG_SHARE * (double)(task->end - task->begin) * VAPRO_BIN_NS;
}

static bool is_foreign(const struct result_interferer *task)
{
	return interferers__is_foreign(task) || task->relation == VAPRO_MONITOR;
}

/* Whether two tasks are one culprit: of a name, and of a job where they are ranks of others. */
static bool same_culprit(const struct result_interferer *a, const struct result_interferer *b)
{
	return !strcmp(a->comm, b->comm) && !strcmp(a->job ? a->job : "", b->job ? b->job : "");
}

/* Sums the tasks that are one culprit with a task, by rows in the time of all. */
static struct preempter sum_tasks(const struct builder *builder, const struct variance *variance,
				  const struct interferers *tasks, const struct result_interferer *task,
				  struct row_part *rows)
{
	struct preempter sum = {0};

	memset(rows, 0, variance->row_count * sizeof(*rows));
	for (size_t i = 0; i < tasks->count; i++) {
		const struct interferer *item = &tasks->items[i];

		if (strcmp(item->task.comm, task->comm) != 0 || strcmp(item->job, task->job ? task->job : "") != 0 ||
		    !is_foreign(&item->task))
			continue;
		sum.seconds += item->task.seconds;
		sum.scattered |= item->row_count > INTERFERER_ROWS;
		for (uint32_t k = 0; k < item->row_count && k < INTERFERER_ROWS; k++) {
			size_t at = row_index(builder, variance, item->rows[k]);

			if (at < variance->row_count)
				rows[at].lost += item->row_seconds[k];
		}
		if (item->begin == item->end)
			continue;
		sum.begin = sum.begin == sum.end || item->begin < sum.begin ? item->begin : sum.begin;
		sum.end = item->end > sum.end ? item->end : sum.end;
	}
	for (size_t i = 0; i < variance->row_count; i++) {
		rows[i].begin = sum.begin;
		rows[i].end = sum.end;
	}
	return sum;
}

/* Names what took most of what is left of a cause, or none where that is less than half of it. */
static void name_culprit(struct result_cause *cause, double seconds)
{
	cause->culprit_seconds = fmin(seconds, cause->lost_seconds);
	if (cause->culprit_seconds >= SHARE_MOST * cause->lost_seconds)
		return;
	cause->culprit = NULL;
	cause->culprit_seconds = 0;
}

/*
 * Divides the last cause, waits for a CPU, by those that ran instead: a hog of a second beside a daemon that runs all
 * the time has seconds, ranks and times of its own. The rest stays with the task that is named first. Returns 0 or
 * -ENOMEM.
 */
static int divide_by_tasks(const struct builder *builder, const struct variance *variance,
			   const struct interferers *tasks, struct row_part *rows, const struct result_variance *out,
			   struct result_cause *causes, uint32_t *count)
{
	const struct result_diagnosis *diagnosis = &out->diagnosis;
	struct result_cause *first = &causes[*count - 1];
	double lost = first->lost_seconds, caused = first->caused_seconds;
	uint32_t known = *count;
	struct preempter sum;

	for (uint32_t i = 0; i < diagnosis->interferer_count && *count < known + TASKS_MOST; i++) {
		const struct result_interferer *task = &diagnosis->interferers[i];
		struct result_cause *cause = &causes[*count];
		bool named = same_culprit(task, first->culprit);
		double share;

		for (uint32_t k = known; k < *count; k++)
			named |= same_culprit(task, causes[k].culprit);
		if (named || !is_foreign(task))
			continue;
		sum = sum_tasks(builder, variance, tasks, task, rows);
		share = sum.seconds / diagnosis->interfered;
		if (sum.scattered || sum.begin == sum.end || share * lost < builder->context->config.min_lost_s ||
		    (share * lost < TASK_SHARE * out->lost_seconds && !is_strong(&sum)))
			continue;
		*cause = (struct result_cause){.cause = first->cause,
					       .explained = true,
					       .culprit = task,
					       .culprit_seconds = share * lost,
					       .lost_seconds = share * lost,
					       .caused_seconds = share * caused};
		if (place_cause(builder, variance, rows, cause))
			return -ENOMEM;
		first->lost_seconds -= cause->lost_seconds;
		first->caused_seconds -= cause->caused_seconds;
		(*count)++;
	}
	sum = sum_tasks(builder, variance, tasks, first->culprit, rows);
	name_culprit(first, sum.seconds / diagnosis->interfered * lost);
	if (sum.scattered || sum.begin == sum.end)
		return 0;
	first->rank_count = 0;
	return place_cause(builder, variance, rows, first);
}

/* Adds the parts that the kernel attributes, each where it cost much, or was much of the loss. Returns 0 or -ENOMEM. */
static int add_attributed(const struct builder *builder, const struct variance *variance,
			  const struct diagnosis_of *item, struct row_part *rows, const struct result_variance *out,
			  struct result_cause *causes, uint32_t *count)
{
	const struct vapro_config *config = &builder->context->config;

	for (int part = 0; part < TALLY_OTHER; part++) {
		double lost = variance__part(variance, (enum tally_part)part) / 1e9;
		struct result_cause *cause = &causes[*count];

		if (lost <= 0 || (lost < config->min_lost_s && lost < config->major_share * out->lost_seconds))
			continue;
		*cause =
		    (struct result_cause){.cause = name_of(&out->diagnosis, (enum tally_part)part),
					  .explained = true,
					  .lost_seconds = lost,
					  .caused_seconds = caused__by_part(variance, (enum tally_part)part) / 1e9};
		if (part == TALLY_PREEMPTED && !out->diagnosis.oversubscribed.cpus)
			cause->culprit = interferers__named(&out->diagnosis);
		cause->culprit_seconds = cause->culprit ? lost : 0;
		sum_rows(builder, variance, (enum tally_part)part, rows);
		if (place_cause(builder, variance, rows, cause))
			return -ENOMEM;
		(*count)++;
		if (cause->culprit && is_foreign(cause->culprit) &&
		    divide_by_tasks(builder, variance, &item->interferers[CASE_SUM], rows, out, causes, count))
			return -ENOMEM;
	}
	return 0;
}

/* Adds what is left of the loss: its major parts, and what nothing explains. Returns 0 or -ENOMEM. */
static int add_rest(const struct builder *builder, const struct variance *variance, struct row_part *rows,
		    const struct result_variance *out, struct result_cause *causes, uint32_t *count)
{
	double rest = out->lost_seconds, caused = out->caused_seconds, left, share;
	uint32_t known = *count;

	for (uint32_t i = 0; i < known; i++) {
		rest -= causes[i].lost_seconds;
		caused -= causes[i].caused_seconds;
	}
	rest = fmax(0, rest);
	left = rest > REST_SHARE * out->lost_seconds ? rest - add_others(out, rest, causes, count) : rest;
	/* of an unconfirmed region no cause is sure */
	if (!*count || (out->confirmed && left > REST_SHARE * out->lost_seconds)) {
		causes[(*count)++] = (struct result_cause){.cause = CAUSE_UNKNOWN, .lost_seconds = left};
		left = 0;
	}
	sum_rows(builder, variance, TALLY_OTHER, rows);
	for (uint32_t i = known; i < *count; i++) {
		share = rest > 0 ? causes[i].lost_seconds / rest : 0;
		causes[i].caused_seconds = share * fmax(0, caused);
		if (place_cause(builder, variance, rows, &causes[i]))
			return -ENOMEM;
	}
	greatest(causes, *count)->lost_seconds += left;
	if (known == *count)
		greatest(causes, *count)->caused_seconds += fmax(0, caused);
	return 0;
}

/* The one cause of a region whose loss has no parts. */
static struct result_cause only_cause(const struct result_variance *out)
{
	return (struct result_cause){.cause = out->diagnosis.cause,
				     .culprit = out->diagnosis.culprit,
				     .culprit_seconds = out->diagnosis.culprit ? out->lost_seconds : 0,
				     .explained = strcmp(out->diagnosis.cause, CAUSE_UNKNOWN) != 0,
				     .lost_seconds = out->lost_seconds,
				     .caused_seconds = out->caused_seconds};
}

/* Names the greatest cause and its culprit, or the next one that has a culprit, in the diagnosis. */
static void name_first(struct result_diagnosis *diagnosis, struct result_cause *causes, uint32_t count)
{
	qsort(causes, count, sizeof(*causes), compare_causes);
	diagnosis->cause = causes[0].cause;
	diagnosis->culprit = NULL;
	for (uint32_t i = 0; i < count && !diagnosis->culprit; i++)
		diagnosis->culprit = causes[i].culprit;
}

int result__causes(const struct builder *builder, const struct variance *variance, const struct diagnosis_of *item,
		   struct result_variance *out)
{
	struct result_cause *causes = result__take(builder, RESULT_CAUSES, sizeof(*causes));
	struct row_part *rows = calloc(variance->row_count + 1, sizeof(*rows));
	int error = causes && rows ? 0 : -ENOMEM;
	uint32_t count = 0;

	if (!error && (variance->waiting || variance->path || !variance->matched)) {
		causes[count++] = only_cause(out);
		error = place_cause(builder, variance, NULL, causes);
	} else if (!error) {
		error = add_attributed(builder, variance, item, rows, out, causes, &count);
		if (!error)
			error = add_rest(builder, variance, rows, out, causes, &count);
		if (!error)
			name_first(&out->diagnosis, causes, count);
	}
	free(rows);
	out->causes = causes;
	out->cause_count = error ? 0 : count;
	return error;
}
