/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The regions as they are printed: numbered, with who waited for each of them. */
#include "report/regions.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/duration.h"
#include "base/table.h"
#include "base/wrap.h"
#include "diagnose/interferers.h"
#include "diagnose/root_cause.h"
#include "model/judgement.h"
#include "report/region_effects.h"

#define SHOWN_GROWTH 1.1  /* a projected loss is shown where it is so many times the observed one */
#define GROWTH_MOST 11	  /* a loss is projected to ten times itself at most */
#define NO_PROGRESS 0.005 /* of the best observed speed: less is "0 %" */
#define SHOWN_WAIT_S 1e-6 /* less waiting is not shown */
#define INDENT 18	  /* the longest label is "preempted by" */

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

/* Lists the effects of each region, in the order of the regions. Returns 0 or -ENOMEM. */
static int find_effects(struct regions *regions, struct region_effects *effects)
{
	return regions__make_places(regions) ? -ENOMEM : region_effects__find(effects, regions);
}

/* Prints who waited for a region: together no more than what is attributed to it. */
static void print_effects(const struct regions *regions, const struct region_effects *effects, size_t at, FILE *out,
			  unsigned width)
{
	const char *head = "    impact";
	struct region_impact impacts[IMPACTS_MOST];
	uint32_t count = region_effects__sum(effects, regions, at, impacts);

	for (uint32_t i = 0; i < count; i++) {
		char waited[40];

		if (impacts[i].seconds >= SHOWN_WAIT_S) {
			duration__text(impacts[i].seconds, waited, sizeof(waited));
			print(out, head, width, "%s waited %s for it (%s)", impacts[i].who ? impacts[i].who : "?",
			      waited, impacts[i].class);
			head = "";
		}
		free(impacts[i].who);
	}
}

/* Whether the kernel accounts for nearly all of a loss: that is so for all of its time, whatever was observed. */
static bool is_accounted(const struct region *region)
{
	static const char *const kinds[] = {CAUSE_PREEMPTED, CAUSE_OVERSUBSCRIBED, "throttled", "steal", "stopped"};
	double seconds = 0;

	for (uint32_t i = 0; i < region->part_count; i++) {
		for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++)
			seconds += strcmp(region->parts[i].cause, kinds[k]) ? 0 : region->parts[i].lost_seconds;
	}
	return region->work_unknown || seconds >= SHARE_NEARLY_ALL * region->lost_seconds;
}

/* Prints the observed share of the region, where the projected loss is much greater than the observed one. */
static void print_observed(const struct region *region, FILE *out, unsigned width)
{
	char whole[40];

	double growth = region->whole_lost_seconds / region->lost_seconds;

	/* records of a file may say anything */
	if (is_accounted(region) ||
	    !(region->observed >= 0 && region->observed < 1 && growth > SHOWN_GROWTH && growth < GROWTH_MOST))
		return;
	print(out, "    observed", width, "%.0f %% of this time; %s lost if the rest was alike", 100 * region->observed,
	      duration__text(region->whole_lost_seconds, whole, sizeof(whole)));
}

/* Writes how fast a region was or, where its work is not known, for how much of the time it could run. Returns buf. */
static char *speed_text(const struct region *region, char *buf, size_t size)
{
	if (region->performance < NO_PROGRESS)
		snprintf(buf, size, "without progress");
	else if (region->work_unknown)
		snprintf(buf, size, "able to run for %.0f %% of the time", 100 * region->performance);
	else
		snprintf(buf, size, "at %.0f %% of its best observed speed", 100 * region->performance);
	return buf;
}

static void print_region(const struct regions *regions, const struct region_effects *effects, size_t at, size_t number,
			 FILE *out, const struct regions_options *options)
{
	const struct region *region = &regions->items[at];
	double waited_s = region->caused_seconds;
	unsigned width = options->width;
	char lost[40], waited[40], caused[80] = "", head[40], speed[80], text[2048];

	duration__text(region->lost_seconds, lost, sizeof(lost));
	if (waited_s > 0)
		snprintf(caused, sizeof(caused), ", and made others wait %s",
			 duration__text(waited_s, waited, sizeof(waited)));
	snprintf(head, sizeof(head), "%2zu. ", number);
	snprintf(text, sizeof(text), "%s%s%s of %s: %s lost, %s%s%s", region->alarm ? region->severity : "",
		 region->alarm ? ": " : "", region->class ? region->class : "?", region->who ? region->who : "?", lost,
		 speed_text(region, speed, sizeof(speed)), caused,
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
	if (region->site && !(region->site_unknown && region->inside))
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
static size_t count_listed(const struct regions *regions, const struct region_effects *effects)
{
	size_t count = 0;

	for (size_t i = 0; i < regions->count; i++)
		count += !effects->is_effect[i] && !regions__is_nothing(&regions->items[i]);
	return count;
}

void regions__print(struct regions *regions, FILE *out, const struct regions_options *options)
{
	size_t number = 0, left = 0;
	struct region_effects effects = {NULL, NULL, NULL};
	struct table *causes = NULL;
	double left_seconds = 0;
	char lost[40];

	regions__sort(regions);
	if (find_effects(regions, &effects)) {
		fputs("    out of memory\n", out);
		region_effects__free(&effects);
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
	region_effects__free(&effects);
	regions__forget_places(regions); /* the list may be a copy that is not freed as one */
}
