/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "score.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_RANKS 0.5
#define LEAST_TIMES 0.3
#define LEAST_RATIO 1.18
#define LEAST_SET_RATIO 1.05 /* of several ranks, with counts */
#define GROWS_S 15	     /* longer than any warm-up: such a fault crosses the bar by growing */
#define LEAST_STALL_S 0.15
#define NEAR_S 0.4 /* begin and end */
#define BINS_PER_S 5.0
#define WITHIN 0.5	 /* of a part's ranks and time lie in the fault's */
#define OTHER_SHARE 0.05 /* of a fault's loss in another class: no wrong class */

const char *const score__alarm_name[ALARM_KINDS] = {"hit", "part", "allowed", "wrong_class", "false"};
const char *const score__apart_name[] = {"", "free", "below", "unsupported"};
const char *const score__finding_name[] = {"none", "alarm", "place", "drift", "reported"};

double score__ranks(const int32_t *a, uint32_t a_count, const int32_t *b, uint32_t b_count)
{
	uint32_t both = 0;

	for (uint32_t i = 0, j = 0; i < a_count && j < b_count;) {
		both += a[i] == b[j];
		if (a[i] == b[j]) {
			i++;
			j++;
		} else if (a[i] < b[j]) {
			i++;
		} else {
			j++;
		}
	}
	return a_count + b_count ? (double)both / (a_count + b_count - both) : 0;
}

double score__times(double a_begin, double a_end, double b_begin, double b_end)
{
	double both = fmin(a_end, b_end) - fmax(a_begin, b_begin);
	double all = fmax(a_end, b_end) - fmin(a_begin, b_begin);

	return both > 0 && all > 0 ? both / all : 0;
}

static double floor_bin(double t)
{
	return floor(t * BINS_PER_S) / BINS_PER_S;
}

static double ceil_bin(double t)
{
	return ceil(t * BINS_PER_S) / BINS_PER_S;
}

static double overlap_of(const struct truth *truth, double begin, double end)
{
	double raw = score__times(truth->begin, truth->end, begin, end);
	double bins = score__times(floor_bin(truth->begin), ceil_bin(truth->end), begin, end);
	double fragments = score__times(floor_bin(truth->first), ceil_bin(truth->last), begin, end);

	return fmax(raw, fmax(bins, fragments));
}

static double ratio_of(const struct truth *truth)
{
	return truth->base > 0 ? 1 + truth->lost[truth->class] / truth->base : 1;
}

static bool one_place(const struct job *job, const struct truth *truth)
{
	for (uint32_t i = 1; i < truth->rank_count; i++) {
		if (job__host(job, truth->ranks[i]) != job__host(job, truth->ranks[0]))
			return false;
	}
	return truth->rank_count > 1;
}

enum apart score__apart(const struct job *job, enum vapro_workload_source source, const struct truth *truth)
{
	double lost = truth->lost[truth->class], ratio = ratio_of(truth), least = LEAST_RATIO;

	if (truth->expected == FINDING_NONE)
		return APART_FREE;
	if (source == VAPRO_BY_INSTRUCTIONS && truth->class == VAPRO_COMPUTATION && one_place(job, truth))
		least = LEAST_SET_RATIO;
	/* a fault that was drawn at a bar may be a little below it */
	if (ratio < least - 0.005 || lost < JOB_LEAST_LOST_S || (truth->stall && lost < LEAST_STALL_S - 0.002))
		return APART_BELOW;
	return truth->unsupported ? APART_UNSUPPORTED : APART_NOT;
}

static double match(const struct truth *truth, const struct found_variance *found)
{
	double ranks = score__ranks(truth->ranks, truth->rank_count, found->ranks, found->rank_count);
	double times = overlap_of(truth, found->begin, found->end);

	if (truth->class != found->class || ranks < LEAST_RANKS || times < LEAST_TIMES)
		return 0;
	return ranks * times;
}

/*
 * The latest time from which a fault can be judged: a fault from the start is first seen in warm-up members, and a
 * slowly growing one is below the bar at first.
 */
static double judged_from(const struct truth *truth)
{
	return isfinite(truth->judged) && truth->judged > truth->begin ? truth->judged : truth->begin;
}

static void set_hit(struct truth_score *score, const struct truth *truth, const struct found_variance *found)
{
	double lost = 0, near = fmax(NEAR_S, truth->fragment);
	bool united = false;

	for (int i = 0; i < VAPRO_CLASSES; i++)
		united |= found->also[i] && i != (int)found->class;
	lost = united ? found->lost_by_class[truth->class] : found->lost;
	score->hit = true;
	snprintf(score->by, sizeof(score->by), "%s", found->alarm ? "alarm" : "place");
	snprintf(score->cause, sizeof(score->cause), "%s", found->cause);
	score->jaccard = score__ranks(truth->ranks, truth->rank_count, found->ranks, found->rank_count);
	score->overlap = overlap_of(truth, found->begin, found->end);
	score->begin_error = fmax(0, fmax(truth->first - found->begin, found->begin - judged_from(truth)));
	score->end_error = fmax(0, fmax(truth->end - found->end, found->end - truth->last));
	score->times_good = score->begin_error <= near && score->end_error <= near;
	score->retained = found->end >= truth->end - fmax(1, near);
	score->lost_error = lost / truth->lost[truth->class] - 1;
	score->delay = found->raised - truth->begin;
	/* time without the fault is no part of the truth's ratio either */
	if (truth->class == VAPRO_COMPUTATION && found->performance > 0)
		score->found_ratio = found->ratio_slow;
}

/* Pairs of fault and alarm, the best first. used: of the variances. */
static void pair_alarms(const struct truths *truths, const struct findings *findings, struct truth_score *scores,
			char *used)
{
	for (;;) {
		double best = 0, value;
		size_t truth = 0, variance = 0;

		for (size_t i = 0; i < truths->count; i++) {
			for (size_t j = 0; j < findings->variance_count; j++) {
				const struct found_variance *at = &findings->variances[j];

				if (scores[i].hit || used[j] || !at->alarm)
					continue;
				value = match(&truths->items[i], at);
				if (value > best) {
					best = value;
					truth = i;
					variance = j;
				}
			}
		}
		if (best <= 0)
			return;
		used[variance] = 1;
		set_hit(&scores[truth], &truths->items[truth], &findings->variances[variance]);
	}
}

/* A place may also be found by a variance that is no alarm, or by an imbalance. */
static void find_place(const struct truth *truth, const struct findings *findings, struct truth_score *score)
{
	double best = 0;

	for (size_t i = 0; i < findings->variance_count && !score->hit; i++) {
		const struct found_variance *at = &findings->variances[i];

		if (at->confidence >= VAPRO_PLACE && !at->effect_of && match(truth, at) > 0)
			set_hit(score, truth, at);
	}
	for (size_t i = 0; i < findings->imbalance_count; i++) {
		const struct found_imbalance *at = &findings->imbalances[i];
		double ranks = score__ranks(truth->ranks, truth->rank_count, at->ranks, at->rank_count);

		if (at->class != truth->class || ranks < LEAST_RANKS || ranks <= best || at->last < truth->begin)
			continue;
		best = ranks;
		score->found_ratio = at->ratio_slow;
		if (score->hit)
			continue;
		score->jaccard = ranks;
		score->delay = at->first - truth->begin;
		score->retained = at->last >= truth->end - 1;
	}
	if (best > 0 && !score->hit) {
		score->hit = true;
		snprintf(score->by, sizeof(score->by), "imbalance");
	}
}

static void find_drift(const struct truth *truth, const struct findings *findings, struct truth_score *score)
{
	if (score->hit || !findings->drift.windows || findings->drift.last < truth->begin)
		return;
	score->hit = score->retained = true;
	score->found_ratio = findings->drift.ratio;
	score->delay = findings->drift.first - truth->begin;
	snprintf(score->by, sizeof(score->by), "drift");
}

static void find_reported(const struct truth *truth, const struct findings *findings, struct truth_score *score)
{
	for (size_t i = 0; i < findings->variance_count && !score->hit; i++) {
		const struct found_variance *at = &findings->variances[i];

		if (at->effect_of || strstr(at->evidence, "late peers") || match(truth, at) <= 0)
			continue;
		set_hit(score, truth, at);
		snprintf(score->by, sizeof(score->by), "reported");
	}
}

/* The record that is nearest to a fault that was missed. */
static void find_near(const struct truth *truth, const struct findings *findings, struct truth_score *score)
{
	double best = 0;

	for (size_t i = 0; i < findings->variance_count; i++) {
		const struct found_variance *at = &findings->variances[i];
		double value = score__ranks(truth->ranks, truth->rank_count, at->ranks, at->rank_count) *
			       overlap_of(truth, at->begin, at->end) * (at->class == truth->class ? 2 : 1);
		char ranks[16];

		if (value <= best || at->effect_of)
			continue;
		best = value;
		findings__ranks(at->ranks, at->rank_count, ranks, sizeof(ranks));
		snprintf(score->near, sizeof(score->near), "%s %s %.1f..%.1f s, %.2f s lost%s: %s", ranks,
			 vapro_class_name[at->class], at->begin, at->end, at->lost, at->alarm ? ", alarm" : "",
			 at->evidence);
	}
}

static double share_of_ranks(const struct truth *truth, const struct found_variance *found)
{
	double jaccard = score__ranks(truth->ranks, truth->rank_count, found->ranks, found->rank_count);
	double both = jaccard * (truth->rank_count + found->rank_count) / (1 + jaccard);

	return found->rank_count ? both / found->rank_count : 0;
}

static double share_of_time(const struct truth *truth, const struct found_variance *found)
{
	double begin = fmin(floor_bin(truth->begin), floor_bin(truth->first)) - NEAR_S;
	double end = fmax(ceil_bin(truth->end), ceil_bin(truth->last)) + NEAR_S;
	double both = fmin(found->end, end) - fmax(found->begin, begin);

	return found->end > found->begin ? fmax(0, both) / (found->end - found->begin) : 0;
}

/* The relation of an alarm without a hit to the truth. */
static enum alarm_kind classify(const struct truths *truths, const struct found_variance *found,
				struct truth_score *scores)
{
	enum alarm_kind kind = ALARM_FALSE;

	for (size_t i = 0; i < truths->count; i++) {
		const struct truth *truth = &truths->items[i];
		double all = 0;

		for (int class = 0; class < VAPRO_CLASSES; class ++)
			all += truth->lost[class];
		if (share_of_ranks(truth, found) < WITHIN || share_of_time(truth, found) < WITHIN)
			continue;
		if (found->class != truth->class && truth->lost[found->class] < OTHER_SHARE * all) {
			kind = kind == ALARM_FALSE ? ALARM_WRONG_CLASS : kind;
			continue;
		}
		if (scores[i].apart != APART_NOT || truth->expected != FINDING_ALARM) {
			kind = ALARM_ALLOWED;
			continue;
		}
		scores[i].parts++;
		return ALARM_PART;
	}
	return kind;
}

static void describe_truth(const struct truth *truth, struct truth_score *score)
{
	score->class = truth->class;
	score->expected = truth->expected;
	score->vague = truth->vague;
	score->stall = truth->stall;
	score->attributed = truth->attributed > 0.5 * truth->lost[truth->class];
	findings__ranks(truth->ranks, truth->rank_count, score->ranks, sizeof(score->ranks));
	score->rank_count = truth->rank_count;
	score->begin = truth->begin;
	score->end = truth->end;
	score->lost = truth->lost[truth->class];
	score->ratio = ratio_of(truth);
	score->grows = isfinite(truth->judged) && truth->judged > truth->begin + GROWS_S;
	score->batches = truth->batches;
	score->length = truth->fragment;
	score->jaccard = score->overlap = score->begin_error = score->end_error = NAN;
	score->lost_error = score->delay = score->found_ratio = NAN;
}

static void list_alarm(struct score *score, const struct found_variance *found, enum alarm_kind kind)
{
	struct alarm_score *alarm = &score->alarms[score->alarm_count];

	score->by_kind[kind]++;
	if (score->alarm_count == SCORE_ALARMS)
		return;
	score->alarm_count++;
	*alarm = (struct alarm_score){
	    .kind = kind, .class = found->class, .begin = found->begin, .end = found->end, .lost = found->lost};
	findings__ranks(found->ranks, found->rank_count, alarm->ranks, sizeof(alarm->ranks));
	snprintf(alarm->evidence, sizeof(alarm->evidence), "%s", found->evidence);
}

void score__job(const struct job *job, enum vapro_workload_source source, const struct truths *truths,
		const struct findings *findings, struct score *score)
{
	struct truth_score *scores = calloc(truths->count ? truths->count : 1, sizeof(*scores));
	char *used = calloc(findings->variance_count ? findings->variance_count : 1, 1);

	*score = (struct score){
	    .imbalances = (uint32_t)findings->imbalance_count,
	    .drifts = findings->drift.windows,
	    .variances = (uint32_t)findings->variance_count,
	};
	if (!scores || !used)
		abort();
	for (size_t i = 0; i < truths->count; i++) {
		describe_truth(&truths->items[i], &scores[i]);
		scores[i].apart = score__apart(job, source, &truths->items[i]);
	}
	pair_alarms(truths, findings, scores, used);
	for (size_t i = 0; i < truths->count; i++) {
		if (truths->items[i].expected == FINDING_PLACE)
			find_place(&truths->items[i], findings, &scores[i]);
		if (truths->items[i].expected == FINDING_DRIFT)
			find_drift(&truths->items[i], findings, &scores[i]);
		if (truths->items[i].expected == FINDING_REPORTED)
			find_reported(&truths->items[i], findings, &scores[i]);
		if (!scores[i].hit)
			find_near(&truths->items[i], findings, &scores[i]);
	}
	for (size_t i = 0; i < findings->variance_count; i++) {
		const struct found_variance *at = &findings->variances[i];

		score->withdrawn += !at->alarm && !isnan(at->raised) && !at->effect_of;
		if (at->alarm)
			list_alarm(score, at, used[i] ? ALARM_HIT : classify(truths, at, scores));
	}
	for (uint32_t i = 0; i < findings->noise_count; i++)
		score->stalls += findings->noise[i].source == VAPRO_NOISE_FRAGMENTS;
	score->truth_count = truths->count < SCORE_TRUTHS ? (uint32_t)truths->count : SCORE_TRUTHS;
	memcpy(score->truths, scores, score->truth_count * sizeof(*scores));
	free(scores);
	free(used);
}
