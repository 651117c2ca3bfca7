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
		cause_sum__clear(&causes->history.items[i]);
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

/* Returns where the region with this id is or belongs. */
static size_t position(const struct causes *causes, uint32_t job, uint32_t user, uint64_t id, bool *found)
{
	size_t low = 0, high = causes->region_count;

	*found = false;
	while (low < high) {
		size_t middle = (low + high) / 2;
		const struct rolled_region *at = &causes->regions[middle];
		bool before = at->key.job != job     ? at->key.job < job
			      : at->key.user != user ? at->key.user < user
						     : at->id < id;

		*found |= at->key.job == job && at->key.user == user && at->id == id;
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

/* Returns the region that another one waits for; NULL where it is not held. */
static struct rolled_region *cause_of(struct causes *causes, const struct rolled_region *effect)
{
	bool found;
	size_t at = position(causes, effect->key.job, effect->key.user, effect->effect_of, &found);

	return found ? &causes->regions[at] : NULL;
}

void causes__sum_effects(struct causes *causes)
{
	for (size_t i = 0; i < causes->region_count; i++)
		causes->regions[i].effects_ns = causes->regions[i].past_effects_ns;
	for (size_t i = 0; i < causes->region_count; i++) {
		const struct rolled_region *region = &causes->regions[i];
		struct rolled_region *cause = region->effect_of ? cause_of(causes, region) : NULL;

		if (cause)
			cause->effects_ns += region->lost_ns;
	}
}

static bool is_folded(const struct rolled_region *region, uint64_t border)
{
	return region->closed && region->id <= border;
}

/* Moves the older half of the regions that have ended into the sums. */
static int fold(struct causes *causes)
{
	uint64_t *ids = malloc(causes->region_count * sizeof(*ids)), border;
	size_t retained = 0;
	int error = 0;

	if (!ids)
		return -ENOMEM;
	for (size_t i = 0; i < causes->region_count; i++)
		ids[i] = causes->regions[i].id;
	qsort(ids, causes->region_count, sizeof(*ids), compare_ids);
	border = ids[causes->region_count / 2];
	free(ids);
	causes__sum_effects(causes);
	/* what is held on sums up what is not: its loss counts further */
	for (size_t i = 0; i < causes->region_count; i++) {
		const struct rolled_region *region = &causes->regions[i];
		struct rolled_region *cause =
		    region->effect_of && is_folded(region, border) ? cause_of(causes, region) : NULL;

		if (cause)
			cause->past_effects_ns += region->lost_ns;
	}
	for (size_t i = 0; i < causes->region_count; i++) {
		struct rolled_region *region = &causes->regions[i];

		if (error || !is_folded(region, border)) {
			causes->regions[retained++] = *region;
			continue;
		}
		if (!region->effect_of)
			error = cause_sums__add(&causes->history, region);
		free_region(region);
	}
	causes->region_count = retained;
	causes->folded = border;
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
		if (!strcmp(intern__text(causes->texts, id), name))
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
	key->place = intern__id(causes->texts, region->culprit ? NULL : region->place);
	key->confirmed = region->confirmed;
	return key->job != INTERN_NONE && key->cause != INTERN_NONE && key->culprit != INTERN_NONE &&
	       key->place != INTERN_NONE;
}

int causes__add(struct causes *causes, const struct cause_region *region)
{
	struct rolled_region *own;
	struct cause_key key;
	bool found;
	size_t at;

	if (!fill_key(causes, &key, region))
		return -ENOMEM;
	at = position(causes, key.job, key.user, region->id, &found);
	if (!found && region->id <= causes->folded && region->revision > 0)
		return 0;
	if (!found) {
		if (causes->region_count >= CAUSES_REGIONS && fold(causes))
			return -ENOMEM;
		at = position(causes, key.job, key.user, region->id, &found);
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
	own->revision = region->revision;
	own->pid = region->pid;
	own->relation = region->relation;
	own->class = region->class;
	own->severity = region->severity;
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

int causes__add_time(struct causes *causes, const char *job, uint32_t user, double rank_seconds)
{
	uint32_t id = intern__id(causes->texts, job ? job : "");

	if (id == INTERN_NONE)
		return -ENOMEM;
	for (size_t i = 0; i < causes->time_count; i++) {
		if (causes->times[i].job != id || causes->times[i].user != user)
			continue;
		causes->times[i].rank_seconds += rank_seconds;
		return 0;
	}
	if (grow(&causes->times, &causes->time_capacity, causes->time_count + 1, sizeof(*causes->times)))
		return -ENOMEM;
	causes->times[causes->time_count++] = (struct job_time){id, user, rank_seconds};
	return 0;
}

static double task_seconds(const struct result_diagnosis *diagnosis)
{
	double sum = 0;

	for (uint32_t i = 0; i < diagnosis->interferer_count && i < CAUSE_TASKS; i++)
		sum += diagnosis->interferers[i].seconds;
	return sum;
}

int causes__add_result(struct causes *causes, const struct job_result *result)
{
	double seconds = (double)(result->end_ns - result->begin_ns) / 1e9;
	int error = causes__add_time(causes, result->job, result->user, seconds * result->rank_count);

	for (uint32_t i = 0; !error && i < result->variance_count; i++) {
		const struct result_variance *variance = &result->variances[i];
		const struct result_diagnosis *diagnosis = &variance->diagnosis;
		const struct cause_region region = {
		    .job = result->job,
		    .user = result->user,
		    .id = variance->id,
		    .revision = variance->revision,
		    .closed = variance->state == VAPRO_REGION_CLOSED,
		    .confirmed = variance->confirmed || variance->alarm,
		    .alarm = variance->alarm,
		    .effect_of = variance->effect_of,
		    .cause = diagnosis->cause,
		    .culprit = diagnosis->culprit ? diagnosis->culprit->comm : NULL,
		    .pid = diagnosis->culprit ? diagnosis->culprit->pid : 0,
		    .culprit_seconds = diagnosis->culprit ? diagnosis->culprit->seconds : 0,
		    .task_seconds = task_seconds(diagnosis),
		    .relation = diagnosis->culprit ? diagnosis->culprit->relation : VAPRO_FOREIGN,
		    .place = diagnosis->shared_count ? diagnosis->shared[0].fact : NULL,
		    .class = variance->class,
		    .severity = variance->severity,
		    .begin_ns = variance->begin_ns,
		    .end_ns = variance->end_ns,
		    .lost_seconds = variance->lost_seconds,
		    .caused_seconds = variance->caused_seconds,
		    .ranks = variance->ranks,
		    .rank_count = variance->rank_count,
		    .hosts = diagnosis->hosts,
		    .host_count = diagnosis->host_count,
		};

		error = causes__add(causes, &region);
	}
	return error;
}
