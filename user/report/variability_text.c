/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/variability_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/printable.h"
#include "base/text.h"
#include "base/wrap.h"
#include "report/record.h"
#include "report/summary.h"

enum { INDENT = 10 };

static const char *job_of(const cJSON *record)
{
	const char *job = record__text(record, KEY(of_job, job));

	return job ? job : "";
}

int variability_text__compare(const void *a, const void *b)
{
	const cJSON *left = *(const cJSON *const *)a, *right = *(const cJSON *const *)b;
	double seconds = record__number(left, KEY(variability, seconds), 0);
	double others = record__number(right, KEY(variability, seconds), 0);
	const char *ids[] = {record__text(left, KEY(state, state_id)), record__text(right, KEY(state, state_id))};
	int order = strcmp(job_of(left), job_of(right));

	if (order)
		return order;
	if (seconds != others)
		return seconds > others ? -1 : 1;
	return strcmp(ids[0] ? ids[0] : "", ids[1] ? ids[1] : "");
}

/* Writes a percentage, or nothing where it is not known. */
static const char *percent(const cJSON *object, enum record_row key, char text[16])
{
	double value = record__number(object, key, NAN);

	*text = '\0';
	if (!isnan(value))
		snprintf(text, 16, "%.1f %%", value);
	return text;
}

static const char *word(const cJSON *record, enum record_row key)
{
	const char *text = record__text(record, key);

	return text ? text : "?";
}

static void print_workload(const cJSON *record, FILE *out)
{
	const cJSON *temporal = record__item(record, KEY(variability, temporal));
	const cJSON *spatial = record__item(record, KEY(variability, spatial));
	const cJSON *rv = record__item(record, KEY(variability, rv));
	char seconds[40], median[16], worst[16], slowest[16], between[16], statistic[32] = "";
	char *state = summary__describe_item(record);

	if (!isnan(record__number(rv, KEY(rv, median), NAN)))
		snprintf(statistic, sizeof(statistic), "%.1f+-%.1f", record__number(rv, KEY(rv, median), 0),
			 record__number(rv, KEY(rv, error), 0));
	fprintf(out, "%-8.8s %-8.8s %11s %8s %8s %8s %8s %10s  %s\n", word(record, KEY(variability, kind)),
		word(record, KEY(variability, origin)),
		duration__text(record__number(record, KEY(variability, seconds), 0), seconds, sizeof(seconds)),
		percent(temporal, KEY(temporal, median_pct), median),
		percent(temporal, KEY(temporal, worst_pct), worst),
		percent(spatial, KEY(spatial, slowest_pct), slowest),
		percent(spatial, KEY(spatial, between_pct), between), statistic, state ? state : "?");
	free(state);
}

static void append_ranks(char *text, const cJSON *spatial)
{
	const char *ranks = record__text(spatial, KEY(spatial, slow_ranks));
	const cJSON *fact;
	bool any = false;

	if (!ranks || !*ranks)
		return;
	text__append(text, VARIABILITY_NOTE_SIZE, "slow: rank%s %.200s", strpbrk(ranks, ",-") ? "s" : "", ranks);
	cJSON_ArrayForEach(fact, record__item(spatial, KEY(spatial, shared)))
	{
		const char *host = record__text(fact, KEY(shared_fact, host));

		text__append(text, VARIABILITY_NOTE_SIZE, "%s %.20s %.60s", any ? "," : ", all on",
			     word(fact, KEY(shared_fact, fact)), word(fact, KEY(shared_fact, value)));
		if (host)
			text__append(text, VARIABILITY_NOTE_SIZE, " of host %.60s", host);
		any = true;
	}
	text__append(text, VARIABILITY_NOTE_SIZE, "; ");
}

char *variability_text__note(const cJSON *record, char text[VARIABILITY_NOTE_SIZE])
{
	const cJSON *temporal = record__item(record, KEY(variability, temporal));
	const cJSON *spatial = record__item(record, KEY(variability, spatial));
	const cJSON *calls = record__item(record, KEY(variability, calls));
	const char *kind = word(record, KEY(variability, kind)), *work = record__text(record, KEY(variability, work));
	double rank = record__number(temporal, KEY(temporal, worst_rank), -1);
	char median[40], high[40], above[40];
	size_t length;

	*text = '\0';
	append_ranks(text, spatial);
	if ((!strcmp(kind, "temporal") || !strcmp(kind, "both")) && rank >= 0 &&
	    record__uint(record, KEY(variability, ranks)) > 1)
		text__append(text, VARIABILITY_NOTE_SIZE, "most in time: rank %.0f; ", rank);
	if (calls)
		text__append(
		    text, VARIABILITY_NOTE_SIZE, "calls: median %s, 95th percentile %s, %s above the median; ",
		    duration__text(record__number(calls, KEY(io_calls, p50_us), 0) / 1e6, median, sizeof(median)),
		    duration__text(record__number(calls, KEY(io_calls, p95_us), 0) / 1e6, high, sizeof(high)),
		    duration__text(record__number(calls, KEY(io_calls, above_p50_seconds), 0), above, sizeof(above)));
	if (work && !strcmp(work, "unknown") && strcmp(kind, "none") != 0)
		text__append(text, VARIABILITY_NOTE_SIZE, "the amount of work is not known: it may vary; ");
	length = strlen(text);
	if (length >= 2)
		text[length - 2] = '\0';
	return printable(text);
}

void variability_text__print(cJSON *const *records, size_t count, FILE *out, unsigned width)
{
	bool several = count && strcmp(job_of(records[0]), job_of(records[count - 1])) != 0;
	char note[VARIABILITY_NOTE_SIZE], name[256];

	for (size_t i = 0; i < count; i++) {
		bool first = !i || strcmp(job_of(records[i - 1]), job_of(records[i])) != 0;

		snprintf(name, sizeof(name), "%s", job_of(records[i]));
		if (first && several)
			fprintf(out, "%sjob %s\n", i ? "\n" : "", printable(name));
		if (first)
			fprintf(out, "%-8s %-8s %11s %8s %8s %8s %8s %10s  %s\n", "kind", "origin", "time", "in time",
				"worst", "slowest", "between", "RV", "workload");
		print_workload(records[i], out);
		if (*variability_text__note(records[i], note))
			wrap__print(out, "", note, INDENT, width);
	}
}
