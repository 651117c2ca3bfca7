/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sums of a roll-up, and the causes as they are listed. */
#include "analysis/causes.h"

#include "analysis/causes_private.h"
#include "base/grow.h"
#include "diagnose/root_cause.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_NS 1000	     /* a cause that cost less is none */
#define MOVED 0.1	     /* share by which a cost must grow to be emitted again */
#define RANKS_MOST (1 << 24) /* a higher rank is a wrong one */

static int compare_keys(const struct cause_key *a, const struct cause_key *b)
{
	const uint32_t left[] = {a->job, a->user, a->confirmed, a->cause, a->culprit, a->culprit_job, a->place};
	const uint32_t right[] = {b->job, b->user, b->confirmed, b->cause, b->culprit, b->culprit_job, b->place};

	for (size_t i = 0; i < sizeof(left) / sizeof(*left); i++) {
		if (left[i] != right[i])
			return left[i] < right[i] ? -1 : 1;
	}
	return 0;
}

static bool same_key(const struct cause_key *a, const struct cause_key *b)
{
	return !compare_keys(a, b);
}

void causes__clear_sum(struct cause_sum *sum)
{
	free(sum->ranks);
	free(sum->hosts);
	free(sum->minutes.items);
}

/* Sets a bit of a growing set. */
static int set_bit64(uint64_t **words, size_t *count, uint32_t bit)
{
	if (grow(words, count, bit / 64 + 1, sizeof(**words)))
		return -ENOMEM;
	(*words)[bit / 64] |= 1ULL << bit % 64;
	return 0;
}

static int set_bit32(uint32_t **words, size_t *count, uint32_t bit)
{
	if (grow(words, count, bit / 32 + 1, sizeof(**words)))
		return -ENOMEM;
	(*words)[bit / 32] |= 1U << bit % 32;
	return 0;
}

/* Notes a variance among the worst: the order is that of loss, then of ids, whatever came first. */
static void add_worst(struct cause_sum *sum, uint64_t id, uint64_t lost_ns)
{
	uint32_t at = sum->worst_count;

	while (at && (sum->worst[at - 1].lost_ns < lost_ns ||
		      (sum->worst[at - 1].lost_ns == lost_ns && sum->worst[at - 1].id > id)))
		at--;
	if (at == CAUSE_VARIANCES)
		return;
	if (sum->worst_count < CAUSE_VARIANCES)
		sum->worst_count++;
	memmove(&sum->worst[at + 1], &sum->worst[at], (sum->worst_count - 1 - at) * sizeof(*sum->worst));
	sum->worst[at].id = id;
	sum->worst[at].lost_ns = lost_ns;
}

static int sum_region(struct cause_sum *sum, const struct rolled_region *region)
{
	if (!sum->regions || region->begin_ns < sum->begin_ns)
		sum->begin_ns = region->begin_ns;
	if (region->end_ns > sum->end_ns)
		sum->end_ns = region->end_ns;
	sum->pids |= sum->regions && sum->pid != region->pid;
	sum->pid = region->pid;
	sum->culprit_rank = sum->regions && sum->culprit_rank != region->culprit_rank ? -1 : region->culprit_rank;
	/* The most foreign relation counts: a name may be that of a rank and of a stranger. */
	if (!sum->regions || region->relation < sum->relation)
		sum->relation = region->relation;
	sum->alarm |= region->alarm;
	sum->lost_ns += region->lost_ns;
	sum->culprit_ns += region->culprit_ns;
	sum->task_ns += region->task_ns;
	sum->caused_ns += region->caused_ns;
	sum->class_ns[region->class] += region->lost_ns;
	sum->regions++;
	sum->intervals += region->rank_count;
	if (causes_rating__add(&sum->minutes, region->begin_ns, region->end_ns, region->lost_ns + region->caused_ns))
		return -ENOMEM;
	add_worst(sum, region->id, region->lost_ns);
	for (uint32_t i = 0; i < region->rank_count; i++) {
		if (region->ranks[i] >= 0 && region->ranks[i] < RANKS_MOST &&
		    set_bit64(&sum->ranks, &sum->rank_words, (uint32_t)region->ranks[i]))
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < region->host_count; i++) {
		if (set_bit32(&sum->hosts, &sum->host_words, region->hosts[i]))
			return -ENOMEM;
	}
	return 0;
}

/* Finds or makes the sum of a key. */
static struct cause_sum *sum_of(struct cause_sums *sums, const struct cause_key *key)
{
	struct cause_sum *sum;

	for (size_t i = 0; i < sums->count; i++) {
		if (same_key(&sums->items[i].key, key))
			return &sums->items[i];
	}
	if (grow(&sums->items, &sums->capacity, sums->count + 1, sizeof(*sums->items)))
		return NULL;
	sum = &sums->items[sums->count++];
	*sum = (struct cause_sum){.key = *key};
	return sum;
}

int causes__add_region(struct cause_sums *sums, const struct rolled_region *region)
{
	struct cause_sum *sum = sum_of(sums, &region->key);

	return sum ? sum_region(sum, region) : -ENOMEM;
}

static void clear(struct cause_sums *sums)
{
	for (size_t i = 0; i < sums->count; i++)
		causes__clear_sum(&sums->items[i]);
	free(sums->items);
}

/* Copies a sum with its sets. */
static int copy_sum(struct cause_sums *into, const struct cause_sum *from)
{
	struct cause_sum *sum = sum_of(into, &from->key);

	if (!sum)
		return -ENOMEM;
	*sum = *from;
	sum->rank_words = sum->host_words = 0;
	sum->ranks = NULL;
	sum->hosts = NULL;
	sum->minutes = (struct cause_minutes){0};
	if (causes_rating__merge(&sum->minutes, &from->minutes) ||
	    grow(&sum->ranks, &sum->rank_words, from->rank_words, sizeof(*sum->ranks)) ||
	    grow(&sum->hosts, &sum->host_words, from->host_words, sizeof(*sum->hosts)))
		return -ENOMEM;
	if (from->rank_words)
		memcpy(sum->ranks, from->ranks, from->rank_words * sizeof(*sum->ranks));
	if (from->host_words)
		memcpy(sum->hosts, from->hosts, from->host_words * sizeof(*sum->hosts));
	return 0;
}

/* Sums up all regions, those that are held and those that are not. */
static int sum_all(const struct causes *causes, struct cause_sums *sums)
{
	int error = 0;

	for (size_t i = 0; !error && i < causes->history.count; i++)
		error = copy_sum(sums, &causes->history.items[i]);
	for (size_t i = 0; !error && i < causes->region_count; i++) {
		if (!causes->regions[i].effect_of && causes__is_current(causes, i))
			error = causes__add_region(sums, &causes->regions[i]);
	}
	return error;
}

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int list_sets(const struct causes *causes, const struct cause_sum *sum, struct cause *cause)
{
	size_t ranks = 0, hosts = 0;

	for (size_t i = 0; i < sum->rank_words; i++)
		ranks += (size_t)__builtin_popcountll(sum->ranks[i]);
	for (size_t i = 0; i < sum->host_words; i++)
		hosts += (size_t)__builtin_popcount(sum->hosts[i]);
	cause->ranks = malloc((ranks + 1) * sizeof(*cause->ranks));
	cause->hosts = malloc((hosts + 1) * sizeof(*cause->hosts));
	if (!cause->ranks || !cause->hosts)
		return -ENOMEM;
	for (size_t bit = 0; bit < 64 * sum->rank_words; bit++) {
		if (sum->ranks[bit / 64] & 1ULL << bit % 64)
			cause->ranks[cause->rank_count++] = (int32_t)bit;
	}
	for (size_t bit = 0; bit < 32 * sum->host_words; bit++) {
		if (sum->hosts[bit / 32] & 1U << bit % 32)
			cause->hosts[cause->host_count++] = intern__text(causes->hosts, (uint32_t)bit);
	}
	if (cause->host_count)
		qsort(cause->hosts, cause->host_count, sizeof(*cause->hosts), compare_texts);
	return 0;
}

/*
 * Many small alarms together may weigh more than each. Regions that are no alarm are no reason to act, whatever their
 * sum.
 */
static enum vapro_severity severity_of(const struct causes *causes, bool alarm, double rated_share, double lost_seconds)
{
	if (!alarm)
		return VAPRO_INFO;
	if (rated_share >= causes->critical_share)
		return VAPRO_CRITICAL;
	return rated_share >= causes->warning_share || lost_seconds >= causes->min_lost_s ? VAPRO_WARNING : VAPRO_INFO;
}

enum vapro_severity causes__severity(const struct causes *causes, const char *job, uint32_t user, uint64_t begin_ns,
				     uint64_t end_ns, double lost_seconds, double caused_seconds,
				     enum vapro_severity otherwise)
{
	const struct job_time *time = NULL;
	struct cause_minutes minutes = {0};
	double share = NAN, all;

	for (size_t i = 0; i < causes->time_count && !time; i++) {
		const struct job_time *at = &causes->times[i];

		time = at->user == user && !strcmp(intern__text(causes->texts, at->job), job ? job : "") ? at : NULL;
	}
	if (time && !causes_rating__add(&minutes, begin_ns, end_ns,
					(uint64_t)llround(fmax(0, lost_seconds + caused_seconds) * 1e9)))
		causes_rating__rate(&minutes, time, &share, &all);
	free(minutes.items);
	return isnan(share) ? otherwise : severity_of(causes, true, share, lost_seconds);
}

/* Returns the record of what was emitted of a cause, or NULL. */
static struct emitted_cause *emitted_of(const struct causes *causes, const struct cause_key *key)
{
	for (size_t i = 0; i < causes->emitted_count; i++) {
		if (same_key(&causes->emitted[i].key, key))
			return &causes->emitted[i];
	}
	return NULL;
}

static bool is_changed(const struct causes *causes, const struct cause_sum *sum, const struct cause *cause)
{
	const struct emitted_cause *then = emitted_of(causes, &sum->key);
	double cost = (double)(sum->lost_ns + sum->caused_ns);

	return !then || then->severity != cause->severity || then->alarm != sum->alarm ||
	       fabs(cost - (double)then->cost_ns) > MOVED * (double)then->cost_ns;
}

static int list_cause(const struct causes *causes, const struct cause_sum *sum, struct cause *cause)
{
	const struct job_time *of = causes__time_of(causes, sum->key.job, sum->key.user);
	double time = of ? of->rank_seconds : 0;
	enum vapro_class most = VAPRO_COMPUTATION;

	for (int class = 0; class < VAPRO_CLASSES; class ++) {
		if (sum->class_ns[class] > sum->class_ns[most])
			most = (enum vapro_class) class;
	}
	*cause = (struct cause){
	    .job = intern__text(causes->texts, sum->key.job),
	    .user = sum->key.user,
	    .cause = intern__text(causes->texts, sum->key.cause),
	    .culprit = intern__text(causes->texts, sum->key.culprit),
	    .place = intern__text(causes->texts, sum->key.place),
	    .pid = sum->pids ? 0 : sum->pid,
	    .culprit_share = sum->task_ns ? fmin(1, (double)sum->culprit_ns / (double)sum->task_ns) : NAN,
	    .relation = sum->relation,
	    .culprit_job = intern__text(causes->texts, sum->key.culprit_job),
	    .culprit_rank = sum->culprit_rank,
	    .confirmed = sum->key.confirmed,
	    .alarm = sum->alarm,
	    .class = most,
	    .begin_ns = sum->begin_ns,
	    .end_ns = sum->end_ns,
	    .job_begin_ns = of ? of->begin_ns : 0,
	    .job_seconds = time,
	    .lost_seconds = (double)sum->lost_ns / 1e9,
	    .caused_seconds = (double)sum->caused_ns / 1e9,
	    .regions = sum->regions,
	    .intervals = sum->intervals,
	};
	/* several threads of a rank may lose more than the rank's time */
	cause->lost_share = time > 0 ? fmin(1, cause->lost_seconds / time) : NAN;
	cause->share = time > 0 ? fmin(1, (cause->lost_seconds + cause->caused_seconds) / time) : NAN;
	cause->rated_share = cause->denominator_seconds = NAN;
	if (of)
		causes_rating__rate(&sum->minutes, of, &cause->rated_share, &cause->denominator_seconds);
	cause->denominator_seconds /= 1e9;
	cause->severity = severity_of(causes, sum->alarm, cause->rated_share, cause->lost_seconds);
	cause->little = !cause->confirmed && !strcmp(cause->cause, CAUSE_UNKNOWN) &&
			cause->rated_share < causes->warning_share && cause->lost_seconds < causes->min_lost_s;
	cause->changed = is_changed(causes, sum, cause);
	cause->over = causes__is_over(causes, of);
	for (uint32_t i = 0; i < sum->worst_count; i++)
		cause->variances[cause->variance_count++] = sum->worst[i].id;
	return list_sets(causes, sum, cause);
}

static int compare_or_null(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

static int compare_causes(const void *a, const void *b)
{
	const struct cause *x = a, *y = b;
	double left = x->lost_seconds + x->caused_seconds, right = y->lost_seconds + y->caused_seconds;
	int order;

	if (x->confirmed != y->confirmed)
		return x->confirmed ? -1 : 1;
	if (x->severity != y->severity)
		return x->severity > y->severity ? -1 : 1;
	if (left != right)
		return left > right ? -1 : 1;
	order = strcmp(x->job, y->job);
	order = order ? order : (x->user > y->user) - (x->user < y->user);
	order = order ? order : strcmp(x->cause, y->cause);
	order = order ? order : compare_or_null(x->culprit, y->culprit);
	order = order ? order : compare_or_null(x->culprit_job, y->culprit_job);
	return order ? order : compare_or_null(x->place, y->place);
}

int causes__list(struct causes *causes, struct cause_list *list)
{
	struct cause_sums sums = {0};
	int error;

	error = sum_all(causes, &sums);
	*list = (struct cause_list){.items = error ? NULL : calloc(sums.count + 1, sizeof(*list->items))};
	if (!list->items)
		error = -ENOMEM;
	for (size_t i = 0; !error && i < sums.count; i++) {
		/* a variance that was withdrawn may have cost nothing, or less than is listed */
		if (sums.items[i].lost_ns >= LEAST_NS)
			error = list_cause(causes, &sums.items[i], &list->items[list->count++]);
	}
	if (!error && list->count)
		qsort(list->items, list->count, sizeof(*list->items), compare_causes);
	if (error)
		causes__free_list(list);
	clear(&sums);
	return error;
}

void causes__free_list(struct cause_list *list)
{
	for (uint32_t i = 0; i < list->count; i++) {
		free(list->items[i].ranks);
		free(list->items[i].hosts);
	}
	free(list->items);
	*list = (struct cause_list){0};
}

int causes__emitted(struct causes *causes, const struct cause *cause)
{
	struct cause_key key = {.job = intern__id(causes->texts, cause->job),
				.user = cause->user,
				.cause = intern__id(causes->texts, cause->cause),
				.culprit = intern__id(causes->texts, cause->culprit),
				.culprit_job = intern__id(causes->texts, cause->culprit_job),
				.place = intern__id(causes->texts, cause->place),
				.confirmed = cause->confirmed};
	struct emitted_cause *emitted = emitted_of(causes, &key);

	if (!emitted) {
		if (grow(&causes->emitted, &causes->emitted_capacity, causes->emitted_count + 1,
			 sizeof(*causes->emitted)))
			return -ENOMEM;
		emitted = &causes->emitted[causes->emitted_count++];
		emitted->key = key;
	}
	emitted->cost_ns = (uint64_t)llround((cause->lost_seconds + cause->caused_seconds) * 1e9);
	emitted->severity = cause->severity;
	emitted->alarm = cause->alarm;
	return 0;
}
