// SPDX-License-Identifier: GPL-2.0-or-later
/* The profile of each rank, for the page: a row per rank, a column per function with most time. */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "page/page_json.h"
#include "report/json.h"
#include "report/profile_text.h"
#include "report/record.h"

enum { COLUMNS_MOST = 8, ROWS_MOST = 1024 };

/* The time of all ranks in a function. */
struct column {
	const char *name; /* the record's */
	double seconds;
};

struct columns {
	struct column *items;
	size_t count, capacity;
};

static int compare_columns(const void *a, const void *b)
{
	const struct column *left = a, *right = b;

	if (left->seconds != right->seconds)
		return left->seconds > right->seconds ? -1 : 1;
	return strcmp(left->name, right->name);
}

static struct column *column_of(struct columns *columns, const char *name)
{
	for (size_t i = 0; i < columns->count; i++)
		if (!strcmp(columns->items[i].name, name))
			return &columns->items[i];
	if (grow(&columns->items, &columns->capacity, columns->count + 1, sizeof(*columns->items)))
		return NULL;
	columns->items[columns->count].name = name;
	return &columns->items[columns->count++];
}

/* Adds up the functions of all ranks; those with most time come first. Returns whether there was memory. */
static bool sum_columns(struct columns *columns, const struct summary *summary)
{
	for (size_t i = 0; i < summary->profile_count; i++) {
		const cJSON *part;

		cJSON_ArrayForEach(part, record__item(summary->profiles[i], KEY(rank_profile, parts)))
		{
			const char *name = record__text(part, KEY(profile_part, function));
			struct column *column = name ? column_of(columns, name) : NULL;

			if (name && !column)
				return false;
			if (name)
				column->seconds += record__number(part, KEY(profile_part, seconds), 0);
		}
	}
	if (columns->count)
		qsort(columns->items, columns->count, sizeof(*columns->items), compare_columns);
	return true;
}

static double time_in(const cJSON *record, const char *function)
{
	double seconds = 0;
	const cJSON *part;

	cJSON_ArrayForEach(part, record__item(record, KEY(rank_profile, parts)))
	{
		const char *name = record__text(part, KEY(profile_part, function));

		if (name && !strcmp(name, function))
			seconds += record__number(part, KEY(profile_part, seconds), 0);
	}
	return seconds;
}

static bool add_functions(cJSON *item, const cJSON *record, const struct columns *columns)
{
	cJSON *list = cJSON_AddArrayToObject(item, "functions");
	bool ok = list;

	for (size_t i = 0; ok && i < columns->count && i < COLUMNS_MOST; i++)
		ok = json__add_to_list(list, json__number(time_in(record, columns->items[i].name), 6));
	return ok;
}

static bool add_rank(cJSON *list, const cJSON *record, const struct columns *columns)
{
	struct profile_sums sums = profile_text__sums(record);
	cJSON *item = cJSON_CreateObject();

	return json__add_to_list(list, item) && json__add_text(item, "job", record__text(record, KEY(of_job, job))) &&
	       json__add_number(item, "rank", record__number(record, KEY(rank_profile, rank), -1), 0) &&
	       json__add_uint(item, "pid", record__uint(record, KEY(rank_profile, pid))) &&
	       json__add_text(item, "host", record__text(record, KEY(rank_profile, on_host))) &&
	       json__add_number(item, "seconds", sums.all, 6) &&
	       json__add_number(item, "computation", sums.class[VAPRO_COMPUTATION], 6) &&
	       json__add_number(item, "communication", sums.class[VAPRO_COMMUNICATION], 6) &&
	       json__add_number(item, "waiting", sums.waiting, 6) &&
	       json__add_number(item, "io", sums.class[VAPRO_IO], 6) &&
	       json__add_number(item, "not_seen", sums.not_seen, 6) && add_functions(item, record, columns);
}

bool page_json__add_profiles(cJSON *page, const struct run_report *report)
{
	const struct summary *summary = run_report__summary(report);
	cJSON *object = cJSON_AddObjectToObject(page, "profile");
	cJSON *names = object ? cJSON_AddArrayToObject(object, "functions") : NULL;
	cJSON *ranks = names ? cJSON_AddArrayToObject(object, "ranks") : NULL;
	struct columns columns = {.count = 0};
	bool ok = ranks && sum_columns(&columns, summary);

	for (size_t i = 0; ok && i < columns.count && i < COLUMNS_MOST; i++)
		ok = json__add_to_list(names, json__text(columns.items[i].name));
	for (size_t i = 0; ok && i < summary->profile_count && i < ROWS_MOST; i++)
		ok = add_rank(ranks, summary->profiles[i], &columns);
	ok = ok &&
	     json__add_number(object, "more",
			      summary->profile_count > ROWS_MOST ? (double)(summary->profile_count - ROWS_MOST) : 0, 0);
	free(columns.items);
	return ok;
}
