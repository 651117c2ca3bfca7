/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "diagnose/factors.h"
#include "diagnose/interferers.h"
#include "base/duration.h"
#include "base/grow.h"
#include "base/printable.h"
#include "report/regions.h"

#define INDENT 12

static const char *meaning_of(const struct region *region, const char *name)
{
	int node = factors__find(name);

	/* no slower workload: MPI polls until the others arrive */
	if (!strcmp(name, "on_cpu") && region->class && !strcmp(region->class, "communication"))
		return "inside the call: MPI polls while it waits";
	return node < FACTOR_NODES ? factor_infos[node].meaning : NULL;
}

struct region *regions__get(struct regions *regions, const char *job, uint64_t id)
{
	struct region *region;

	for (size_t i = regions->count; i-- > 0;) {
		region = &regions->items[i];
		if (region->id == id && !strcmp(region->job, job))
			return region;
	}
	if (grow(&regions->items, &regions->capacity, regions->count + 1, sizeof(*region)))
		return NULL;
	region = &regions->items[regions->count];
	memset(region, 0, sizeof(*region));
	region->id = id;
	if (!region__set_text(&region->job, job))
		return NULL;
	regions->count++;
	return region;
}

void regions__free(struct regions *regions)
{
	for (size_t i = 0; i < regions->count; i++) {
		struct region *region = &regions->items[i];

		free(region->job);
		free(region->class);
		free(region->who);
		free(region->site);
		free(region->evidence);
		free(region->advice);
		free(region->verdict);
	}
	free(regions->items);
	memset(regions, 0, sizeof(*regions));
}

char *regions__defuse(char *text)
{
	return printable(text);
}

bool region__set_text(char **text, const char *value)
{
	char *copy = value ? regions__defuse(strdup(value)) : NULL;

	if (value && !copy)
		return false;
	free(*text);
	*text = copy;
	return true;
}

void regions__wrap(FILE *out, const char *head, const char *text, unsigned indent, unsigned width)
{
	unsigned column = (unsigned)fprintf(out, "%s", head);

	for (; column < indent; column++)
		putc(' ', out);
	while (*text) {
		size_t word = strcspn(text, " ");

		if (column > indent && column + 1 + word > width)
			column = (unsigned)fprintf(out, "\n%*s", (int)indent, "") - 1;
		else if (column > indent)
			column += (unsigned)fprintf(out, " ");
		column += (unsigned)fprintf(out, "%.*s", (int)word, text);
		text += word + strspn(text + word, " ");
	}
	putc('\n', out);
}

__attribute__((format(printf, 4, 5))) static void print(FILE *out, const char *head, unsigned width, const char *format,
							...)
{
	char text[2048];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	regions__wrap(out, head, text, INDENT, width);
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
	duration__text(lead, from, sizeof(from));
	duration__text((double)(region->end_ns - region->begin_ns) / 1e9, to, sizeof(to));
	print(out, "    when", width, "%s to %s UTC: %s after the start, for %s%s", begin, end, from, to,
	      region->ended ? "" : ", and not over when last seen");
}

static void print_why(const struct region *region, FILE *out, unsigned width)
{
	const char *head = "    why";

	for (size_t i = 0; i < region->cause_count; i++) {
		const struct region_cause *cause = &region->causes[i];
		const char *means = meaning_of(region, cause->name);

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

static void print_who(const struct region *region, FILE *out, unsigned width)
{
	const char *head = "    who";

	for (size_t i = 0; i < region->interferer_count; i++) {
		const struct region_interferer *who = &region->interferers[i];
		char duration[40];

		duration__text(who->seconds, duration, sizeof(duration));
		if (who->pid)
			print(out, head, width, "%s (pid %u%s%s) took %s", who->comm, who->pid,
			      who->relation ? ", " : "", interferers__says(who->relation), duration);
		else
			print(out, head, width, "%s took %s", who->comm, duration);
		head = "";
	}
}

static void print_effects(const struct regions *regions, const struct region *cause, FILE *out, unsigned width)
{
	const char *head = "    effect";

	for (size_t i = 0; i < regions->count; i++) {
		const struct region *effect = &regions->items[i];
		char lost[40];

		if (effect->effect_of != cause->id || strcmp(effect->job, cause->job))
			continue;
		duration__text(effect->lost_seconds, lost, sizeof(lost));
		print(out, head, width, "%s waited %s for it (%s)", effect->who ? effect->who : "?", lost,
		      effect->class ? effect->class : "");
		head = "";
	}
}

static void print_region(const struct regions *regions, const struct region *region, size_t number, FILE *out,
			 uint64_t start_ns, unsigned width)
{
	char lost[40], waited[40], caused[80] = "", head[40], text[2048];

	duration__text(region->lost_seconds, lost, sizeof(lost));
	if (region->caused_seconds > 0)
		snprintf(caused, sizeof(caused), ", and made others wait %s",
			 duration__text(region->caused_seconds, waited, sizeof(waited)));
	snprintf(head, sizeof(head), "%2zu. ", number);
	snprintf(text, sizeof(text), "%s%s%s of %s: %s lost, %s %.0f %% of %s%s%s",
		 region->alarm ? *region->severity ? region->severity : "alarm" : "", region->alarm ? ": " : "",
		 region->class ? region->class : "?", region->who ? region->who : "?", lost,
		 region->work_unknown ? "could run" : "running at", 100 * region->performance,
		 region->work_unknown ? "the time" : "proven speed", caused,
		 region->confirmed ? ""
		 : region->place   ? " [by its place, not certain]"
				   : " [unconfirmed]");
	regions__wrap(out, head, text, 4, width);
	print_when(region, out, start_ns, width);
	if (region->site)
		print(out, "    where", width, "%s", region->site);
	if (region->verdict)
		print(out, "    verdict", width, "%s", region->verdict);
	print_why(region, out, width);
	print_who(region, out, width);
	if (region->evidence && !region->confirmed)
		print(out, "    doubt", width, "%s", region->evidence);
	if (region->advice)
		print(out, "    advice", width, "%s", region->advice);
	print_effects(regions, region, out, width);
}

bool region__sure(const struct region *region)
{
	return region->confirmed || region->alarm;
}

/* Orders sure regions first, then by cost. */
static int compare(const void *a, const void *b)
{
	const struct region *x = a, *y = b;

	if (region__sure(x) != region__sure(y))
		return region__sure(x) ? -1 : 1;
	if (x->confirmed != y->confirmed)
		return x->confirmed ? -1 : 1;
	if (x->lost_seconds != y->lost_seconds)
		return x->lost_seconds > y->lost_seconds ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

static bool has_cause(const struct regions *regions, const struct region *effect)
{
	for (size_t i = 0; effect->effect_of && i < regions->count; i++) {
		if (regions->items[i].id == effect->effect_of && !strcmp(regions->items[i].job, effect->job))
			return true;
	}
	return false;
}

void regions__print(struct regions *regions, FILE *out, uint64_t start_ns, unsigned width, size_t most)
{
	size_t number = 0, left = 0;
	double left_seconds = 0;
	char lost[40];

	if (regions->count)
		qsort(regions->items, regions->count, sizeof(*regions->items), compare);
	for (size_t i = 0; i < regions->count; i++) {
		const struct region *region = &regions->items[i];

		if (has_cause(regions, region))
			continue;
		if (number < most) {
			print_region(regions, region, ++number, out, start_ns, width);
			continue;
		}
		left++;
		left_seconds += region->lost_seconds;
	}
	if (left)
		fprintf(out, "    and %zu more, %s lost\n", left, duration__text(left_seconds, lost, sizeof(lost)));
}
