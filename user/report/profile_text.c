// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/profile_text.h"

#include <math.h>
#include <string.h>

#include "base/printable.h"
#include "report/record.h"

enum { FUNCTIONS_SHOWN = 4 }; /* of a rank, those with most time */

static const char *job_of(const cJSON *record)
{
	const char *job = record__text(record, KEY(of_job, job));

	return job ? job : "";
}

int profile_text__compare(const void *a, const void *b)
{
	const cJSON *left = *(const cJSON *const *)a, *right = *(const cJSON *const *)b;
	const enum record_row keys[] = {KEY(rank_profile, rank), KEY(rank_profile, pid)};
	int order = strcmp(job_of(left), job_of(right));

	for (size_t i = 0; !order && i < sizeof(keys) / sizeof(*keys); i++) {
		double x = record__number(left, keys[i], -1), y = record__number(right, keys[i], -1);

		order = (x > y) - (x < y);
	}
	return order;
}

struct profile_sums profile_text__sums(const cJSON *record)
{
	struct profile_sums sums = {.all = record__number(record, KEY(rank_profile, seconds), 0)};
	const cJSON *part;

	sums.not_seen = sums.all;
	cJSON_ArrayForEach(part, record__item(record, KEY(rank_profile, parts)))
	{
		int class = record__word(record__text(part, KEY(profile_part, class)), vapro_class_name, VAPRO_CLASSES);
		double seconds = record__number(part, KEY(profile_part, seconds), 0);

		if (class == VAPRO_CLASSES)
			continue;
		sums.class[class] += seconds;
		sums.waiting += record__number(part, KEY(profile_part, waiting_seconds), 0);
		sums.not_seen -= seconds;
	}
	sums.not_seen = fmax(0, sums.not_seen);
	return sums;
}

/* Prints the functions with most time, which come first. */
static void print_functions(const cJSON *record, FILE *out)
{
	const cJSON *part;
	char name[64];
	int shown = 0;

	cJSON_ArrayForEach(part, record__item(record, KEY(rank_profile, parts)))
	{
		const char *function = record__text(part, KEY(profile_part, function));

		if (!function || shown++ >= FUNCTIONS_SHOWN)
			continue;
		snprintf(name, sizeof(name), "%s", function);
		fprintf(out, "%s%s %.2f", shown > 1 ? ", " : "  ", printable(name),
			record__number(part, KEY(profile_part, seconds), 0));
	}
	if (shown > FUNCTIONS_SHOWN)
		fprintf(out, ", and %d more", shown - FUNCTIONS_SHOWN);
	putc('\n', out);
}

static void print_rank(const cJSON *record, FILE *out)
{
	struct profile_sums sums = profile_text__sums(record);
	double rank = record__number(record, KEY(rank_profile, rank), -1);
	const char *host = record__text(record, KEY(rank_profile, on_host));
	char name[32], who[24];

	snprintf(name, sizeof(name), "%.16s", host ? host : "?");
	if (rank >= 0)
		snprintf(who, sizeof(who), "%.0f", rank);
	else
		snprintf(who, sizeof(who), "pid %llu",
			 (unsigned long long)record__uint(record, KEY(rank_profile, pid)));
	fprintf(out, "%-10s %-16s %9.2f %12.2f %14.2f %9.2f %8.2f %9.2f", who, printable(name), sums.all,
		sums.class[VAPRO_COMPUTATION], sums.class[VAPRO_COMMUNICATION], sums.waiting, sums.class[VAPRO_IO],
		sums.not_seen);
	print_functions(record, out);
}

void profile_text__print(cJSON *const *records, size_t count, FILE *out)
{
	bool several = count && strcmp(job_of(records[0]), job_of(records[count - 1])) != 0;
	char name[256];

	for (size_t i = 0; i < count; i++) {
		bool first = !i || strcmp(job_of(records[i - 1]), job_of(records[i])) != 0;

		snprintf(name, sizeof(name), "%s", job_of(records[i]));
		if (first && several)
			fprintf(out, "%sjob %s\n", i ? "\n" : "", printable(name));
		if (first)
			fprintf(out, "%-10s %-16s %9s %12s %14s %9s %8s %9s  %s\n", "rank", "host", "time",
				"computation", "communication", "waiting", "io", "not seen", "most time in");
		print_rank(records[i], out);
	}
}
