// SPDX-License-Identifier: GPL-2.0-or-later
/* How the time of equal work varied, for the page. */
#include <math.h>
#include <stdlib.h>

#include "page/page_json.h"
#include "report/json.h"
#include "report/record.h"
#include "report/variability_text.h"

/* Adds a percentage of a record as a share of 1; null where it is not known. */
static bool add_share(cJSON *item, const char *name, const cJSON *object, enum record_row key)
{
	return json__add_number(item, name, record__number(object, key, NAN) / 100, 6);
}

/* Adds the durations of each rank as [rank, 5th percentile, median, 95th percentile], seconds. */
static bool add_ranks(cJSON *item, const cJSON *record)
{
	static const enum record_row keys[] = {KEY(rank_durations, p05_us), KEY(rank_durations, p50_us),
					       KEY(rank_durations, p95_us)};
	cJSON *list = cJSON_AddArrayToObject(item, "ranks");
	const cJSON *rank;
	bool ok = list;

	cJSON_ArrayForEach(rank, record__item(record, KEY(variability, by_rank)))
	{
		cJSON *one = ok ? cJSON_CreateArray() : NULL;

		ok = one && json__add_to_list(list, one) &&
		     json__add_to_list(one, json__number(record__number(rank, KEY(rank_durations, rank), -1), 0));
		for (int i = 0; ok && i < 3; i++)
			ok = json__add_to_list(one, json__number(record__number(rank, keys[i], 0) / 1e6, 9));
	}
	return ok;
}

static bool add_workload(cJSON *list, const cJSON *record)
{
	const cJSON *temporal = record__item(record, KEY(variability, temporal));
	const cJSON *spatial = record__item(record, KEY(variability, spatial));
	const cJSON *rv = record__item(record, KEY(variability, rv));
	char note[VARIABILITY_NOTE_SIZE], *state = summary__describe_item(record);
	cJSON *item = cJSON_CreateObject();
	bool ok = item && cJSON_AddItemToArray(list, item) && json__add_text(item, "text", state) &&
		  json__add_text(item, "job", record__text(record, KEY(of_job, job))) &&
		  json__add_text(item, "class", record__text(record, KEY(state, class))) &&
		  json__add_text(item, "kind", record__text(record, KEY(variability, kind))) &&
		  json__add_text(item, "origin", record__text(record, KEY(variability, origin))) &&
		  json__add_number(item, "seconds", record__number(record, KEY(variability, seconds), NAN), 6) &&
		  add_share(item, "temporal", temporal, KEY(temporal, median_pct)) &&
		  add_share(item, "worst", temporal, KEY(temporal, worst_pct)) &&
		  add_share(item, "slowest", spatial, KEY(spatial, slowest_pct)) &&
		  add_share(item, "between", spatial, KEY(spatial, between_pct)) &&
		  json__add_number(item, "rv", record__number(rv, KEY(rv, median), NAN), 2) &&
		  json__add_number(item, "rv_error", record__number(rv, KEY(rv, error), NAN), 2) &&
		  json__add_text(item, "note", variability_text__note(record, note)) && add_ranks(item, record);

	free(state);
	return ok;
}

bool page_json__add_variability(cJSON *page, const struct run_report *report)
{
	const struct summary *summary = run_report__summary(report);
	cJSON *list = cJSON_AddArrayToObject(page, "variability");
	bool ok = list;

	for (size_t i = 0; ok && i < summary->variability_count; i++)
		ok = add_workload(list, summary->variability[i]);
	return ok;
}
