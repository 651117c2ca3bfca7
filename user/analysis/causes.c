/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analysis/causes.h"

#include "analysis/causes_private.h"
#include "base/grow.h"
#include "diagnose/root_cause.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct causes *causes__new(const struct vapro_config *config)
{
	struct causes *causes = calloc(1, sizeof(*causes));

	if (!causes)
		return NULL;
	causes->texts = intern__new();
	causes->hosts = intern__new();
	causes->critical_share = config->critical_share;
	causes->warning_share = config->warning_share;
	causes->min_lost_s = config->min_lost_s;
	if (causes->texts && causes->hosts)
		return causes;
	causes__free(causes);
	return NULL;
}

static void free_region(struct rolled_region *region)
{
	free(region->ranks);
	free(region->hosts);
}

void causes__free(struct causes *causes)
{
	if (!causes)
		return;
	for (size_t i = 0; i < causes->region_count; i++)
		free_region(&causes->regions[i]);
	for (size_t i = 0; i < causes->history.count; i++)
		causes__clear_sum(&causes->history.items[i]);
	for (size_t i = 0; i < causes->time_count; i++)
		free(causes->times[i].minutes.items);
	free(causes->regions);
	free(causes->history.items);
	free(causes->times);
	free(causes->emitted);
	if (causes->texts)
		intern__free(causes->texts);
	if (causes->hosts)
		intern__free(causes->hosts);
	free(causes);
}

/* Returns where a cause of the region with this id is or belongs. */
static size_t position(const struct causes *causes, uint32_t job, uint32_t user, uint64_t id, uint32_t part,
		       bool *found)
{
	size_t low = 0, high = causes->region_count;

	*found = false;
	while (low < high) {
		size_t middle = (low + high) / 2;
		const struct rolled_region *at = &causes->regions[middle];
		bool before = at->key.job != job     ? at->key.job < job
			      : at->key.user != user ? at->key.user < user
			      : at->id != id	     ? at->id < id
						     : at->part < part;

		*found |= at->key.job == job && at->key.user == user && at->id == id && at->part == part;
		if (before)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int compare_ids(const void *a, const void *b)
{
	const uint64_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

bool causes__is_current(const struct causes *causes, size_t region)
{
	const struct rolled_region *at = &causes->regions[region], *first = at;

	while (first > causes->regions && first[-1].id == at->id && first[-1].key.job == at->key.job &&
	       first[-1].key.user == at->key.user)
		first--;
	return at->revision == first->revision;
}

static bool is_folded(const struct rolled_region *region, uint64_t border)
{
	return region->closed && region->id <= border;
}

/* Moves the older half of the regions that have ended into the sums. */
static int fold(struct causes *causes)
{
	uint64_t *ids = malloc(causes->region_count * sizeof(*ids)), border;
	bool *drop = calloc(causes->region_count, sizeof(*drop));
	size_t retained = 0;
	int error = ids && drop ? 0 : -ENOMEM;

	if (error)
		goto cleanup;
	for (size_t i = 0; i < causes->region_count; i++)
		ids[i] = causes->regions[i].id;
	qsort(ids, causes->region_count, sizeof(*ids), compare_ids);
	border = ids[causes->region_count / 2];
	for (size_t i = 0; i < causes->region_count && !error; i++) {
		const struct rolled_region *region = &causes->regions[i];

		drop[i] = is_folded(region, border) || !causes__is_current(causes, i);
		if (drop[i] && !region->effect_of && causes__is_current(causes, i))
			error = causes__add_region(&causes->history, region);
	}
	for (size_t i = 0; i < causes->region_count && !error; i++) {
		if (drop[i])
			free_region(&causes->regions[i]);
		else
			causes->regions[retained++] = causes->regions[i];
	}
	if (error)
		goto cleanup;
	causes->region_count = retained;
	causes->folded = border;
cleanup:
	free(ids);
	free(drop);
	return error;
}

/* Returns the id of a culprit's name, of which there may be any number. */
static uint32_t name_id(struct causes *causes, const char *name)
{
	uint32_t id;

	if (!name || causes->names < CAUSES_NAMES) {
		id = intern__id(causes->texts, name);
		if (id != INTERN_NONE && id > causes->names)
			causes->names = id;
		return id;
	}
	for (id = 1; id <= causes->names; id++) {
		const char *known = intern__text(causes->texts, id);

		/* those of a job that is over were dropped */
		if (known && !strcmp(known, name))
			return id;
	}
	return intern__id(causes->texts, CAUSES_OTHER);
}

/* Copies what a region has of lists. Returns 0 or -ENOMEM; what was there before is freed. */
static int copy_lists(struct causes *causes, struct rolled_region *own, const struct cause_region *region)
{
	int32_t *ranks = malloc((region->rank_count + 1) * sizeof(*ranks));
	uint32_t *hosts = malloc((region->host_count + 1) * sizeof(*hosts));
	bool ok = ranks && hosts;

	if (ok && region->rank_count)
		memcpy(ranks, region->ranks, region->rank_count * sizeof(*ranks));
	for (uint32_t i = 0; ok && i < region->host_count; i++) {
		hosts[i] = intern__id(causes->hosts, region->hosts[i]);
		ok = hosts[i] != INTERN_NONE;
	}
	if (!ok) {
		free(ranks);
		free(hosts);
		return -ENOMEM;
	}
	free_region(own);
	own->ranks = ranks;
	own->hosts = hosts;
	own->rank_count = region->rank_count;
	own->host_count = region->host_count;
	return 0;
}

static bool fill_key(struct causes *causes, struct cause_key *key, const struct cause_region *region)
{
	key->job = intern__id(causes->texts, region->job ? region->job : "");
	key->user = region->user;
	key->cause = intern__id(causes->texts, region->cause ? region->cause : CAUSE_UNKNOWN);
	key->culprit = name_id(causes, region->culprit);
	key->culprit_job = name_id(causes, region->culprit ? region->culprit_job : NULL);
	key->place = intern__id(causes->texts, region->culprit ? NULL : region->place);
	key->confirmed = region->confirmed;
	return key->job != INTERN_NONE && key->cause != INTERN_NONE && key->culprit != INTERN_NONE &&
	       key->culprit_job != INTERN_NONE && key->place != INTERN_NONE;
}

int causes__add(struct causes *causes, const struct cause_region *region)
{
	struct rolled_region *own;
	struct cause_key key;
	bool found;
	size_t at;

	if (!fill_key(causes, &key, region))
		return -ENOMEM;
	if (region->part) {
		position(causes, key.job, key.user, region->id, 0, &found);
		if (!found) /* its variance is no longer held */
			return 0;
	}
	at = position(causes, key.job, key.user, region->id, region->part, &found);
	if (!found && !region->part && region->id <= causes->folded && region->revision > 0)
		return 0;
	if (!found) {
		/* all causes of a variance are folded together */
		if (causes->region_count >= CAUSES_REGIONS && !region->part && fold(causes))
			return -ENOMEM;
		at = position(causes, key.job, key.user, region->id, region->part, &found);
		if (grow(&causes->regions, &causes->region_capacity, causes->region_count + 1,
			 sizeof(*causes->regions)))
			return -ENOMEM;
		memmove(&causes->regions[at + 1], &causes->regions[at],
			(causes->region_count - at) * sizeof(*causes->regions));
		causes->region_count++;
		causes->regions[at] = (struct rolled_region){.key = key};
	} else if (region->revision < causes->regions[at].revision) {
		return 0;
	}
	own = &causes->regions[at];
	if (copy_lists(causes, own, region))
		return -ENOMEM;
	own->key = key;
	own->id = region->id;
	own->part = region->part;
	own->revision = region->revision;
	own->pid = region->pid;
	own->culprit_rank = region->culprit_rank;
	own->relation = region->relation;
	own->class = region->class;
	own->closed = region->closed;
	own->alarm = region->alarm;
	own->effect_of = region->effect_of;
	own->begin_ns = region->begin_ns;
	own->end_ns = region->end_ns;
	own->lost_ns = (uint64_t)llround(fmax(0, region->lost_seconds) * 1e9);
	own->culprit_ns = (uint64_t)llround(fmax(0, region->culprit_seconds) * 1e9);
	own->task_ns = (uint64_t)llround(fmax(0, region->task_seconds) * 1e9);
	own->caused_ns = (uint64_t)llround(fmax(0, region->caused_seconds) * 1e9);
	return 0;
}

struct job_time *causes__time_of(const struct causes *causes, uint32_t job, uint32_t user)
{
	for (size_t i = 0; i < causes->time_count; i++) {
		if (causes->times[i].job == job && causes->times[i].user == user)
			return &causes->times[i];
	}
	return NULL;
}

bool causes__is_over(const struct causes *causes, const struct job_time *time)
{
	return time && causes->latest_ns > time->end_ns && causes->latest_ns - time->end_ns > CAUSES_OVER_NS;
}

static bool is_key_over(const struct causes *causes, const struct cause_key *key)
{
	return causes__is_over(causes, causes__time_of(causes, key->job, key->user));
}

static void mark_key(unsigned char *used, const struct cause_key *key)
{
	used[key->job] = used[key->cause] = used[key->culprit] = used[key->culprit_job] = used[key->place] = 1;
}

/* Marks the texts of what does not belong to a job that is over. */
static void mark_used(const struct causes *causes, unsigned char *used)
{
	for (size_t i = 0; i < causes->region_count; i++) {
		if (!is_key_over(causes, &causes->regions[i].key))
			mark_key(used, &causes->regions[i].key);
	}
	for (size_t i = 0; i < causes->history.count; i++) {
		if (!is_key_over(causes, &causes->history.items[i].key))
			mark_key(used, &causes->history.items[i].key);
	}
	for (size_t i = 0; i < causes->emitted_count; i++) {
		if (!is_key_over(causes, &causes->emitted[i].key))
			mark_key(used, &causes->emitted[i].key);
	}
	for (size_t i = 0; i < causes->time_count; i++)
		used[causes->times[i].job] |= !causes__is_over(causes, &causes->times[i]);
}

int causes__drop_over(struct causes *causes)
{
	size_t count = intern__count(causes->texts), live = 0;
	unsigned char *used;
	bool any = false;
	int error;

	for (size_t i = 0; i < causes->time_count; i++)
		any |= causes__is_over(causes, &causes->times[i]);
	if (!any)
		return 0;
	used = calloc(count, 1);
	if (!used)
		return -ENOMEM;
	mark_used(causes, used);
	error = intern__retain(causes->texts, used);
	if (error)
		goto cleanup;
	for (size_t i = 0; i < causes->region_count; i++) {
		if (is_key_over(causes, &causes->regions[i].key))
			free_region(&causes->regions[i]);
		else
			causes->regions[live++] = causes->regions[i];
	}
	causes->region_count = live;
	live = 0;
	for (size_t i = 0; i < causes->history.count; i++) {
		if (is_key_over(causes, &causes->history.items[i].key))
			causes__clear_sum(&causes->history.items[i]);
		else
			causes->history.items[live++] = causes->history.items[i];
	}
	causes->history.count = live;
	live = 0;
	for (size_t i = 0; i < causes->emitted_count; i++) {
		if (!is_key_over(causes, &causes->emitted[i].key))
			causes->emitted[live++] = causes->emitted[i];
	}
	causes->emitted_count = live;
	live = 0;
	for (size_t i = 0; i < causes->time_count; i++) {
		if (causes__is_over(causes, &causes->times[i]))
			free(causes->times[i].minutes.items);
		else
			causes->times[live++] = causes->times[i];
	}
	causes->time_count = live;
cleanup:
	free(used);
	return error;
}

int causes__add_time(struct causes *causes, const char *job, uint32_t user, uint64_t begin_ns, uint64_t end_ns,
		     double rank_seconds)
{
	uint32_t id = intern__id(causes->texts, job ? job : "");
	struct job_time *time;

	if (id == INTERN_NONE)
		return -ENOMEM;
	time = causes__time_of(causes, id, user);
	if (!time) {
		if (grow(&causes->times, &causes->time_capacity, causes->time_count + 1, sizeof(*causes->times)))
			return -ENOMEM;
		time = &causes->times[causes->time_count++];
		*time = (struct job_time){.job = id, .user = user, .begin_ns = begin_ns, .end_ns = end_ns};
	}
	time->rank_seconds += rank_seconds;
	time->begin_ns = begin_ns < time->begin_ns ? begin_ns : time->begin_ns;
	time->end_ns = end_ns > time->end_ns ? end_ns : time->end_ns;
	causes->latest_ns = end_ns > causes->latest_ns ? end_ns : causes->latest_ns;
	return causes_rating__add(&time->minutes, begin_ns, end_ns, (uint64_t)llround(fmax(0, rank_seconds) * 1e9));
}

/* Adds a cause of a variance. Returns 0 or -ENOMEM. */
static int add_cause(struct causes *causes, const struct job_result *result, const struct result_variance *variance,
		     uint32_t part)
{
	const struct result_diagnosis *diagnosis = &variance->diagnosis;
	const struct result_cause *cause = &variance->causes[part];
	const struct cause_region region = {
	    .job = result->job,
	    .user = result->user,
	    .id = variance->id,
	    .part = part,
	    .revision = variance->revision,
	    .closed = variance->state == VAPRO_REGION_CLOSED,
	    .confirmed = cause_region__is_sure(variance->confirmed || variance->alarm, cause->explained, part),
	    .alarm = cause_region__is_sure(variance->alarm, cause->explained, part),
	    .effect_of = variance->effect_of,
	    .cause = cause->cause,
	    .culprit = cause->culprit ? cause->culprit->comm : NULL,
	    .pid = cause->culprit ? cause->culprit->pid : 0,
	    .culprit_seconds = cause->culprit ? cause->culprit_seconds : 0,
	    .task_seconds = cause->culprit ? cause->lost_seconds : 0,
	    .relation = cause->culprit ? cause->culprit->relation : VAPRO_FOREIGN,
	    .culprit_job = cause->culprit ? cause->culprit->job : NULL,
	    .culprit_rank = cause->culprit ? cause->culprit->rank : -1,
	    .place = diagnosis->shared_count ? diagnosis->shared[0].fact : NULL,
	    .class = variance->class,
	    .begin_ns = cause->begin_ns,
	    .end_ns = cause->end_ns,
	    .lost_seconds = cause->lost_seconds,
	    .caused_seconds = cause->caused_seconds,
	    .ranks = cause->ranks,
	    .rank_count = cause->rank_count,
	    .hosts = diagnosis->hosts,
	    .host_count = diagnosis->host_count,
	};

	return causes__add(causes, &region);
}

int causes__add_result(struct causes *causes, const struct job_result *result)
{
	double seconds = (double)(result->end_ns - result->begin_ns) / 1e9;
	int error = causes__add_time(causes, result->job, result->user, result->begin_ns, result->end_ns,
				     seconds * result->rank_count);

	for (uint32_t i = 0; !error && i < result->variance_count; i++) {
		for (uint32_t part = 0; !error && part < result->variances[i].cause_count; part++)
			error = add_cause(causes, result, &result->variances[i], part);
	}
	return error;
}
