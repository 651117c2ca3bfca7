// SPDX-License-Identifier: GPL-2.0-or-later
#include "pipeline/record_filter.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/table.h"
#include "base/text.h"
#include "report/record.h"

#define ALARMS_MOST 65536 /* regions and hangs that were alarms; beyond, all are forgotten */

struct record_filter {
	enum record_choice choice;
	struct table *alarms; /* of (host and job, id): those of which a line has passed */
};

enum record_choice record_filter__choice(const char *word)
{
	if (word && !strcmp(word, "no-maps"))
		return RECORDS_NO_MAPS;
	return word && !strcmp(word, "alarms") ? RECORDS_ALARMS : RECORDS_ALL;
}

struct record_filter *record_filter__new(enum record_choice choice)
{
	struct record_filter *filter = calloc(1, sizeof(*filter));

	if (!filter)
		return NULL;
	filter->choice = choice;
	filter->alarms = table__new();
	if (filter->alarms)
		return filter;
	free(filter);
	return NULL;
}

void record_filter__free(struct record_filter *filter)
{
	if (!filter)
		return;
	table__free(filter->alarms);
	free(filter);
}

static uint64_t hash_of(const char *text)
{
	return text ? text__hash(text, strlen(text)) : 0;
}

/* Whether a record about a region or a hang passes: it is an alarm, or was one in a line before. */
static bool is_of_alarm(struct record_filter *filter, const cJSON *record, enum record_row id, bool alarm)
{
	uint64_t whose = table__hash(hash_of(record__text(record, KEY(head, host))),
				     hash_of(record__text(record, KEY(of_job, job))));
	uint64_t number = record__uint(record, id);
	uint32_t known;

	if (table__get(filter->alarms, whose, number, &known))
		return true;
	if (!alarm)
		return false;
	if (table__size(filter->alarms) > 2 * ALARMS_MOST) {
		struct table *fresh = table__new();

		if (fresh) {
			table__free(filter->alarms);
			filter->alarms = fresh;
		}
	}
	table__put(filter->alarms, whose, number, 1);
	return true;
}

/* Whether a line passes that may have an alarm. */
static bool passes_as_alarm(struct record_filter *filter, enum record_object type, const char *line)
{
	cJSON *record = cJSON_Parse(line);
	bool passes = !record;

	if (record && type == RECORD_OBJECT_variance)
		passes = is_of_alarm(filter, record, KEY(variance, id), record__true(record, KEY(variance, alarm)));
	else if (record && type == RECORD_OBJECT_hang)
		passes = is_of_alarm(filter, record, KEY(hang, id), record__true(record, KEY(hang, alarm)));
	else if (record && type == RECORD_OBJECT_diagnosis)
		passes = is_of_alarm(filter, record, KEY(diagnosis, variance), false);
	else if (record)
		passes = record__true(record, KEY(cause, alarm));
	cJSON_Delete(record);
	return passes;
}

/* Whether a member says nothing: null, false, 0, or an object of such members. */
static bool says_nothing(const cJSON *item)
{
	const cJSON *part;

	if (!cJSON_IsObject(item))
		return cJSON_IsNull(item) || cJSON_IsFalse(item) || (cJSON_IsNumber(item) && item->valuedouble == 0);
	cJSON_ArrayForEach(part, item)
	{
		if (!says_nothing(part))
			return false;
	}
	return true;
}

/* Leaves out the members of an object that say nothing. */
static void drop_nothing(cJSON *object)
{
	cJSON *next;

	for (cJSON *part = object ? object->child : NULL; part; part = next) {
		next = part->next;
		if (says_nothing(part))
			cJSON_Delete(cJSON_DetachItemViaPointer(object, part));
	}
}

char *record_filter__shortened(const struct record_filter *filter, const char *line)
{
	static const enum record_row maps[] = {KEY(window, lost), KEY(window, account_seconds)},
				     bare[] = {KEY(window, partial), KEY(window, covered_before_seconds),
					       KEY(window, open),    KEY(window, lost),
					       KEY(window, io),	     KEY(window, bystanders),
					       KEY(window, small),   KEY(window, clusters)};
	cJSON *record, *gap;
	char *text;

	if (filter->choice != RECORDS_NO_MAPS || record_table__type_of(line) != RECORD_OBJECT_window)
		return NULL;
	record = cJSON_Parse(line);
	for (size_t i = 0; record && i < sizeof(maps) / sizeof(*maps); i++)
		drop_nothing(cJSON_GetObjectItemCaseSensitive(record, record_keys[maps[i]].name));
	for (size_t i = 0; record && i < sizeof(bare) / sizeof(*bare); i++) {
		cJSON *item = cJSON_GetObjectItemCaseSensitive(record, record_keys[bare[i]].name);

		if (item && says_nothing(item))
			cJSON_Delete(cJSON_DetachItemViaPointer(record, item));
	}
	cJSON_ArrayForEach(gap, cJSON_GetObjectItemCaseSensitive(record, record_keys[KEY(window, uncovered)].name))
	{
		drop_nothing(gap);
	}
	cJSON_DeleteItemFromObjectCaseSensitive(record, record_keys[KEY(window, sensing)].name);
	cJSON_DeleteItemFromObjectCaseSensitive(record, record_keys[KEY(window, clock)].name);
	text = record ? cJSON_PrintUnformatted(record) : NULL;
	cJSON_Delete(record);
	return text;
}

bool record_filter__passes(struct record_filter *filter, const char *line)
{
	enum record_object type = filter->choice == RECORDS_ALL ? RECORD_OBJECTS : record_table__type_of(line);

	if (filter->choice == RECORDS_ALL)
		return true;
	if (filter->choice == RECORDS_NO_MAPS)
		return type != RECORD_OBJECT_heatmap;
	switch (type) {
	case RECORD_OBJECT_hello:
	case RECORD_OBJECT_judging:
	case RECORD_OBJECT_warning:
	case RECORD_OBJECT_bye:
		return true;
	case RECORD_OBJECT_variance:
	case RECORD_OBJECT_hang:
	case RECORD_OBJECT_diagnosis:
	case RECORD_OBJECT_cause:
		return passes_as_alarm(filter, type, line);
	default:
		return false;
	}
}
