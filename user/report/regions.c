/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/duration.h"
#include "base/wrap.h"
#include "diagnose/factors.h"
#include "diagnose/interferers.h"
#include "diagnose/root_cause.h"
#include "base/grow.h"
#include "base/printable.h"
#include "base/table.h"
#include "report/json.h"
#include "report/regions.h"

#define SHOWN_UNSEEN_S 0.4 /* two bins: borders are known no better */
#define UNSEEN_MOST_S 1e6
#define SHOWN_GROWTH 1.1 /* a projected loss is shown where it is so many times the observed one */
#define GROWTH_MOST 11	 /* a loss is projected to ten times itself at most */
#define NOTHING_S 1e-6	 /* a region of less loss and waiting is not shown */
#define INDENT 18	 /* the longest label is "preempted by" */

const char *regions__meaning(const struct region *region, const char *name)
{
	int node = factors__find(name);

	/* no slower workload: MPI polls until the others arrive */
	if (region->class && !strcmp(region->class, vapro_class_name[VAPRO_COMMUNICATION]) &&
	    root_cause__polls(VAPRO_COMMUNICATION, name))
		return "busy-waiting inside MPI for another rank";
	return node < FACTOR_NODES ? factor_infos[node].meaning : NULL;
}

uint64_t regions__job_number(const char *job)
{
	char *harmless = printable(strdup(job ? job : ""));
	uint64_t number = 0;

	for (const char *at = harmless; at && *at; at++)
		number = table__hash(number, (unsigned char)*at);
	free(harmless);
	return number;
}

static void forget_places(struct regions *regions)
{
	table__free(regions->places);
	regions->places = NULL;
}

/* Makes the table of places where there is none. Returns 0 or -ENOMEM. */
static int make_places(struct regions *regions)
{
	if (regions->places)
		return 0;
	regions->places = table__new();
	for (size_t i = 0; regions->places && i < regions->count; i++) {
		const struct region *region = &regions->items[i];

		if (table__put(regions->places, region->id, regions__job_number(region->job), (uint32_t)i))
			forget_places(regions);
	}
	return regions->places ? 0 : -ENOMEM;
}

struct region *regions__get(struct regions *regions, const char *job, uint64_t id)
{
	uint64_t number = regions__job_number(job);
	struct region *region;
	uint32_t at;

	if (make_places(regions))
		return NULL;
	if (table__get(regions->places, id, number, &at))
		return &regions->items[at];
	if (grow(&regions->items, &regions->capacity, regions->count + 1, sizeof(*region)))
		return NULL;
	region = &regions->items[regions->count];
	memset(region, 0, sizeof(*region));
	region->id = id;
	if (!regions__set_text(&region->job, job) ||
	    table__put(regions->places, id, number, (uint32_t)regions->count)) {
		free(region->job);
		return NULL;
	}
	regions->count++;
	return region;
}

static void free_hosts(struct region *region)
{
	for (uint32_t i = 0; i < region->host_count; i++)
		free(region->hosts[i]);
	free(region->hosts);
	region->hosts = NULL;
	region->host_count = 0;
}

static void free_parts(struct region *region)
{
	for (uint32_t i = 0; i < region->part_count; i++)
		free(region->parts[i].ranks);
	free(region->parts);
	region->parts = NULL;
	region->part_count = 0;
}

static void free_region(struct region *region)
{
	free_parts(region);
	free(region->job);
	free(region->class);
	free(region->who);
	free(region->site);
	free(region->inside);
	free(region->evidence);
	free(region->advice);
	free(region->verdict);
	free(region->cause);
	free(region->place);
	free(region->ranks);
	free_hosts(region);
}

void regions__free(struct regions *regions)
{
	for (size_t i = 0; i < regions->count; i++)
		free_region(&regions->items[i]);
	free(regions->items);
	forget_places(regions);
	memset(regions, 0, sizeof(*regions));
}

void regions__clip(struct regions *regions, uint64_t begin_ns, uint64_t end_ns)
{
	size_t left = 0;

	for (size_t i = 0; i < regions->count; i++) {
		struct region *region = &regions->items[i];

		if (region->end_ns <= begin_ns || region->begin_ns >= end_ns)
			free_region(region);
		else
			regions->items[left++] = *region;
	}
	regions->count = left;
	forget_places(regions);
}

char *regions__defuse(char *text)
{
	return printable(text);
}

bool regions__set_text(char **text, const char *value)
{
	char *copy = value ? regions__defuse(strdup(value)) : NULL;

	if (value && !copy)
		return false;
	free(*text);
	*text = copy;
	return true;
}

bool regions__set_ranks(struct region *region, const int32_t *ranks, uint32_t count)
{
	int32_t *copy = malloc((count + 1) * sizeof(*copy));

	if (!copy)
		return false;
	if (count)
		memcpy(copy, ranks, count * sizeof(*copy));
	free(region->ranks);
	region->ranks = copy;
	region->rank_count = count;
	return true;
}

static bool copy_cause(struct region_part *part, const struct result_cause *cause)
{
	snprintf(part->cause, sizeof(part->cause), "%s", cause->cause);
	regions__defuse(part->cause);
	part->explained = cause->explained;
	if (cause->culprit)
		snprintf(part->culprit, sizeof(part->culprit), "%.*s", (int)sizeof(cause->culprit->comm),
			 cause->culprit->comm);
	regions__defuse(part->culprit);
	part->culprit_seconds = cause->culprit_seconds;
	part->lost_seconds = cause->lost_seconds;
	part->caused_seconds = cause->caused_seconds;
	part->begin_ns = cause->begin_ns;
	part->end_ns = cause->end_ns;
	part->ranks = malloc((cause->rank_count + 1) * sizeof(*part->ranks));
	if (!part->ranks)
		return false;
	if (cause->rank_count)
		memcpy(part->ranks, cause->ranks, cause->rank_count * sizeof(*part->ranks));
	part->rank_count = cause->rank_count;
	return true;
}

bool regions__copy_causes(struct region *region, const struct result_cause *causes, uint32_t count)
{
	free_parts(region);
	region->parts = calloc(count + 1, sizeof(*region->parts));
	if (!region->parts)
		return false;
	while (region->part_count < count) {
		if (!copy_cause(&region->parts[region->part_count], &causes[region->part_count]))
			return false;
		region->part_count++;
	}
	return true;
}

bool regions__set_hosts(struct region *region, const char *const *hosts, uint32_t count)
{
	char **copy = calloc(count + 1, sizeof(*copy));

	if (!copy)
		return false;
	free_hosts(region);
	region->hosts = copy;
	for (; region->host_count < count; region->host_count++) {
		if (!regions__set_text(&copy[region->host_count], hosts[region->host_count]))
			return false;
	}
	return true;
}

__attribute__((format(printf, 4, 5))) static void print(FILE *out, const char *head, unsigned width, const char *format,
							...)
{
	char text[2048];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	wrap__print(out, head, text, INDENT, width);
}

static void clock_text(uint64_t utc_ns, bool with_day, char *buf, size_t size)
{
	time_t seconds = (time_t)(utc_ns / 1000000000);
	struct tm tm;
	size_t used;

	gmtime_r(&seconds, &tm);
	used = strftime(buf, size, with_day ? "%Y-%m-%d %H:%M:%S" : "%H:%M:%S", &tm);
	snprintf(buf + used, size - used, ".%llu", (unsigned long long)(utc_ns / 100000000 % 10));
}

static void print_when(const struct region *region, FILE *out, uint64_t start_ns, unsigned width)
{
	char begin[40], end[40], from[40], to[40];
	double lead = region->begin_ns > start_ns ? (double)(region->begin_ns - start_ns) / 1e9 : 0;

	clock_text(region->begin_ns, true, begin, sizeof(begin));
	clock_text(region->end_ns, region->begin_ns / 86400000000000ULL != region->end_ns / 86400000000000ULL, end,
		   sizeof(end));
	*from = 0;
	if (lead > 0)
		duration__text(lead, from, sizeof(from));
	duration__text((double)(region->end_ns - region->begin_ns) / 1e9, to, sizeof(to));
	print(out, "    when", width, "%s to %s UTC: %s%s, for %s%s", begin, end, from,
	      *from ? " after the start" : "from the start on", to,
	      region->ended ? "" : ", and not over when last seen");
}

bool regions__is_waiting(const struct region *region)
{
	return region->cause && (!strcmp(region->cause, CAUSE_LATE_PEER) || !strcmp(region->cause, CAUSE_BARRIER));
}

static void print_why(const struct region *region, FILE *out, unsigned width)
{
	const char *head = "    why";

	/* waiting has its reason elsewhere: how the time in the calls was spent says nothing */
	if (regions__is_waiting(region))
		return;

	for (size_t i = 0; i < region->cause_count; i++) {
		const struct region_cause *cause = &region->causes[i];
		const char *means = regions__meaning(region, cause->name);

		if (!cause->major)
			continue;
		print(out, head, width, "%s%.0f %% %s%s%s", cause->part ? "of it " : "", 100 * cause->share,
		      cause->name, means ? ": " : "", means ? means : "");
		head = "";
	}
	if (!*head)
		return;
	/* no cause stands out: print the largest, or that there is no diagnosis yet */
	if (region->cause_count)
		print(out, head, width, "no single cause; most: %s, %.0f %%", region->causes[0].name,
		      100 * region->causes[0].share);
	else if (!region->effect_of)
		print(out, head, width, "unknown: too few fragments for a diagnosis");
}

static void print_interferers(const struct region *region, FILE *out, unsigned width)
{
	const char *head = "    preempted by";

	for (size_t i = 0; i < region->interferer_count; i++) {
		const struct region_interferer *task = &region->interferers[i];
		const struct result_interferer what = {
		    .relation = task->relation, .rank = task->rank, .job = task->job};
		char duration[40], pid[INTERFERER_WORDS + 32] = "", share[64] = "", words[INTERFERER_WORDS];

		duration__text(task->seconds, duration, sizeof(duration));
		if (task->pid)
			snprintf(pid, sizeof(pid), " (pid %u%s%s)", task->pid, task->relation ? ", " : "",
				 interferers__says(&what, words));
		if (task->relation == VAPRO_MONITOR && region->lost_seconds > 0)
			snprintf(share, sizeof(share), ", %.3g %% of the loss",
				 100 * fmin(1, task->seconds / region->lost_seconds));
		print(out, head, width, "%s%s, %s of CPU time%s", task->comm, pid, duration, share);
		head = "";
	}
}

#define NONE UINT32_MAX

/* Which region waited for which, by their places. */
struct effects {
	uint32_t *first, *next; /* effects of a region; NONE: no further one */
	bool *is_effect;
};

static void free_effects(struct effects *effects)
{
	free(effects->first);
	free(effects->next);
	free(effects->is_effect);
}

/* Lists the effects of each region, in the order of the regions. Returns 0 or -ENOMEM. */
static int find_effects(struct regions *regions, struct effects *effects)
{
	effects->first = malloc((regions->count + 1) * sizeof(*effects->first));
	effects->next = malloc((regions->count + 1) * sizeof(*effects->next));
	effects->is_effect = calloc(regions->count + 1, sizeof(*effects->is_effect));
	if (!effects->first || !effects->next || !effects->is_effect || make_places(regions))
		return -ENOMEM;
	for (size_t i = 0; i < regions->count; i++)
		effects->first[i] = NONE;
	for (uint32_t i = (uint32_t)regions->count; i-- > 0;) {
		const struct region *region = &regions->items[i];
		uint32_t cause;

		if (!region->effect_of ||
		    !table__get(regions->places, region->effect_of, regions__job_number(region->job), &cause))
			continue;
		effects->is_effect[i] = true;
		effects->next[i] = effects->first[cause];
		effects->first[cause] = i;
	}
	return 0;
}

static bool has_rank(const struct region *region, int32_t rank)
{
	for (uint32_t i = 0; i < region->rank_count; i++)
		if (region->ranks[i] == rank)
			return true;
	return false;
}

const char *regions__waiters(const struct region *cause, const struct region *effect, char *text, size_t size)
{
	int32_t *ranks = calloc(effect->rank_count + 1, sizeof(*ranks));
	const char *who = effect->who ? effect->who : "?";
	uint32_t count = 0;
	char *list;

	for (uint32_t i = 0; ranks && i < effect->rank_count; i++)
		if (!has_rank(cause, effect->ranks[i]))
			ranks[count++] = effect->ranks[i];
	if (!count && cause->rank_count == 1 && effect->rank_count == 1 && cause->ranks[0] >= 0) {
		/* threads of one rank wait for each other, a rank does not wait for itself */
		who = effect->class && !strncmp(who, "thread", 6) ? who : NULL;
	} else if (!count && effect->rank_count && cause->ranks[0] >= 0) {
		snprintf(text, size, "%s, for %s,", who, effect->rank_count > 1 ? "each other" : "other ranks");
		who = text;
	} else if (count && count < effect->rank_count) {
		list = json__ranks(ranks, count);
		snprintf(text, size, "rank%s %s", count > 1 ? "s" : "", list ? list : "?");
		free(list);
		who = text;
	}
	free(ranks);
	return who;
}

static void print_effects(const struct regions *regions, const struct effects *effects, size_t at, FILE *out,
			  unsigned width)
{
	const char *head = "    impact";

	for (uint32_t i = effects->first[at]; i != NONE; i = effects->next[i]) {
		const struct region *effect = &regions->items[i];
		char lost[40], text[512];

		const char *who = regions__waiters(&regions->items[at], effect, text, sizeof(text));

		if (!who || regions__is_nothing(effect))
			continue;
		duration__text(effect->lost_seconds, lost, sizeof(lost));
		print(out, head, width, "%s waited %s of that time (%s)", who, lost,
		      effect->class ? effect->class : "?");
		head = "";
	}
}

/* Returns the waiting for a region: a revision counts the effects that last at its time, all of them count here. */
static double caused_seconds(const struct regions *regions, const struct effects *effects, size_t at)
{
	double sum = 0;

	for (uint32_t i = effects->first[at]; i != NONE; i = effects->next[i])
		sum += regions->items[i].lost_seconds;
	return fmax(sum, regions->items[at].caused_seconds);
}

/* Prints the observed share of the region, where the projected loss is much greater than the observed one. */
static void print_observed(const struct region *region, FILE *out, unsigned width)
{
	char whole[40];

	double growth = region->whole_lost_seconds / region->lost_seconds;

	/* records of a file may say anything */
	if (!(region->observed >= 0 && region->observed < 1 && growth > SHOWN_GROWTH && growth < GROWTH_MOST))
		return;
	print(out, "    observed", width, "%.0f %% of this time; %s lost if the rest was alike", 100 * region->observed,
	      duration__text(region->whole_lost_seconds, whole, sizeof(whole)));
}

const char *regions__unseen(const struct region *region, char *text, size_t size)
{
	double before_s = region->unseen_before_seconds, after_s = region->unseen_after_seconds;
	char before[40], after[40];

	/* records of a file may say anything */
	if (!(before_s >= SHOWN_UNSEEN_S && before_s < UNSEEN_MOST_S))
		before_s = 0;
	if (!(after_s >= SHOWN_UNSEEN_S && after_s < UNSEEN_MOST_S))
		after_s = 0;
	duration__text(before_s, before, sizeof(before));
	duration__text(after_s, after, sizeof(after));
	if (before_s > 0 && after_s > 0)
		snprintf(text, size, "%s before and %s after it: it may have begun earlier and ended later", before,
			 after);
	else if (before_s > 0)
		snprintf(text, size, "%s before it: it may have begun earlier", before);
	else if (after_s > 0)
		snprintf(text, size, "%s after it: it may have ended later", after);
	return before_s > 0 || after_s > 0 ? text : NULL;
}

static void print_region(const struct regions *regions, const struct effects *effects, size_t at, size_t number,
			 FILE *out, const struct regions_options *options)
{
	const struct region *region = &regions->items[at];
	double waited_s = caused_seconds(regions, effects, at);
	unsigned width = options->width;
	char lost[40], waited[40], caused[80] = "", head[40], text[2048];

	duration__text(region->lost_seconds, lost, sizeof(lost));
	if (waited_s > 0)
		snprintf(caused, sizeof(caused), ", and made others wait %s",
			 duration__text(waited_s, waited, sizeof(waited)));
	snprintf(head, sizeof(head), "%2zu. ", number);
	snprintf(text, sizeof(text), "%s%s%s of %s: %s lost, %s %.0f %% of %s%s%s",
		 region->alarm ? region->severity : "", region->alarm ? ": " : "", region->class ? region->class : "?",
		 region->who ? region->who : "?", lost, region->work_unknown ? "got a CPU for" : "at",
		 100 * region->performance, region->work_unknown ? "the time" : "its best observed speed", caused,
		 region->confirmed    ? ""
		 : region->place_only ? " [by its place, not certain]"
				      : " [unconfirmed]");
	if (regions__is_waiting(region))
		snprintf(text, sizeof(text), "waiting of %s: %s waited in %s%s", region->who ? region->who : "?", lost,
			 region->class ? region->class : "?", region->confirmed ? "" : " [unconfirmed]");
	wrap__print(out, head, text, 4, width);
	print_when(region, out, options->start_ns, width);
	print_observed(region, out, width);
	if (regions__unseen(region, text, sizeof(text)))
		print(out, "    not seen", width, "%s", text);
	if (region->site)
		print(out, "    where", width, "%s", region->site);
	if (region->inside)
		print(out, "    inside", width, "%s", region->inside);
	if (region->verdict)
		print(out, "    verdict", width, "%s", region->verdict);
	if (options->details || !region->verdict)
		print_why(region, out, width);
	print_interferers(region, out, width);
	if (region->evidence && !region->confirmed)
		print(out, "    confidence", width, "%s: %s", region->place_only ? "medium" : "low", region->evidence);
	if (region->advice)
		print(out, "    suggestion", width, "%s", region->advice);
	print_effects(regions, effects, at, out, width);
}

bool regions__sure(const struct region *region)
{
	return region->confirmed || region->alarm;
}

/* Orders sure regions first, then by cost. */
static int compare(const void *a, const void *b)
{
	const struct region *x = a, *y = b;

	if (regions__sure(x) != regions__sure(y))
		return regions__sure(x) ? -1 : 1;
	if (x->confirmed != y->confirmed)
		return x->confirmed ? -1 : 1;
	if (x->lost_seconds != y->lost_seconds)
		return x->lost_seconds > y->lost_seconds ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

void regions__sort(struct regions *regions)
{
	if (regions->count)
		qsort(regions->items, regions->count, sizeof(*regions->items), compare);
	forget_places(regions);
}

bool regions__is_nothing(const struct region *region)
{
	return region->lost_seconds < NOTHING_S && region->caused_seconds < NOTHING_S;
}

static uint64_t text_key(uint64_t key, const char *text)
{
	return table__hash(key, regions__job_number(text));
}

/* Notes the cause of a region. Returns whether it was noted before; false where there is no memory. */
static bool is_repeated(struct table *causes, const struct region *region)
{
	uint64_t key = text_key(text_key(text_key(regions__sure(region), region->cause), region->culprit.comm),
				*region->culprit.comm ? NULL : region->place);
	uint64_t job = regions__job_number(region->job);
	uint32_t at;

	if (table__get(causes, key, job, &at))
		return true;
	table__put(causes, key, job, 0);
	return false;
}

/* Counts the regions that are no effects. */
static size_t count_listed(const struct regions *regions, const struct effects *effects)
{
	size_t count = 0;

	for (size_t i = 0; i < regions->count; i++)
		count += !effects->is_effect[i] && !regions__is_nothing(&regions->items[i]);
	return count;
}

void regions__print(struct regions *regions, FILE *out, const struct regions_options *options)
{
	size_t number = 0, left = 0;
	struct effects effects = {NULL, NULL, NULL};
	struct table *causes = NULL;
	double left_seconds = 0;
	char lost[40];

	regions__sort(regions);
	if (find_effects(regions, &effects)) {
		fputs("    out of memory\n", out);
		free_effects(&effects);
		return;
	}
	/* of many regions, the worst of each cause: the causes sum them up */
	if (count_listed(regions, &effects) > options->most)
		causes = table__new();
	for (size_t i = 0; i < regions->count; i++) {
		const struct region *region = &regions->items[i];

		if (effects.is_effect[i] || regions__is_nothing(region))
			continue;
		if (number < options->most && !(causes && is_repeated(causes, region))) {
			print_region(regions, &effects, i, ++number, out, options);
			continue;
		}
		left++;
		left_seconds += region->lost_seconds;
	}
	if (left)
		fprintf(out, "    and %zu more, %s lost%s%s\n", left, duration__text(left_seconds, lost, sizeof(lost)),
			options->more ? ": " : "", options->more ? options->more : "");
	table__free(causes);
	free_effects(&effects);
	forget_places(regions); /* the list may be a copy that is not freed as one */
}
