/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/record.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "model/state_id.h"
#include "report/json.h"

#define RANKS_MOST (1 << 24) /* more ranks than that are a wrong text */

static const cJSON *member(const cJSON *object, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(object, name);
}

const char *record__member_text(const cJSON *object, const char *name)
{
	return cJSON_GetStringValue(member(object, name));
}

double record__member_number(const cJSON *object, const char *name, double missing)
{
	const cJSON *item = member(object, name);

	return cJSON_IsNumber(item) && isfinite(item->valuedouble) ? item->valuedouble : missing;
}

uint64_t record__member_uint(const cJSON *object, const char *name)
{
	double number = record__member_number(object, name, 0);

	return number >= 1 && number < 1e18 ? (uint64_t)number : 0;
}

const cJSON *record__item(const cJSON *object, enum record_row key)
{
	return member(object, record_keys[key].name);
}

const char *record__text(const cJSON *object, enum record_row key)
{
	return record__member_text(object, record_keys[key].name);
}

double record__number(const cJSON *object, enum record_row key, double missing)
{
	return record__member_number(object, record_keys[key].name, missing);
}

uint64_t record__uint(const cJSON *object, enum record_row key)
{
	return record__member_uint(object, record_keys[key].name);
}

bool record__true(const cJSON *object, enum record_row key)
{
	return cJSON_IsTrue(record__item(object, key));
}

bool record__time(const cJSON *object, enum record_row key, uint64_t *utc_ns)
{
	const char *text = record__text(object, key);

	return text && json__parse_time(text, utc_ns);
}

enum record_object record__type(const cJSON *record)
{
	const char *type = record__text(record, KEY(head, type));

	for (int i = 0; type && i < RECORD_OBJECTS; i++)
		if (record_objects[i].is_record && !strcmp(record_objects[i].name, type))
			return (enum record_object)i;
	return RECORD_OBJECTS;
}

const cJSON *record__site_of(const cJSON *variance, const cJSON *exemplar)
{
	uint64_t id = state_id__parse(record__text(exemplar, KEY(exemplar, state_id)));
	const cJSON *site;

	cJSON_ArrayForEach(site, record__item(variance, KEY(variance, call_sites)))
	{
		if (id && state_id__parse(record__text(site, KEY(state, state_id))) == id)
			return site;
	}
	return NULL;
}

int record__word(const char *word, const char *const *names, int count)
{
	for (int i = 0; word && i < count; i++) {
		if (names[i] && !strcmp(names[i], word))
			return i;
	}
	return count;
}

int record__ranks(const char *text, int32_t **ranks, uint32_t *count)
{
	size_t capacity = 0;

	*ranks = NULL;
	*count = 0;
	while (text && *text) {
		bool unknown = *text == '?';
		char *end = (char *)(uintptr_t)text + 1;
		long first = unknown ? -1 : strtol(text, &end, 10), last = first;

		if (end == text || (first < 0 && !unknown) || first >= RANKS_MOST)
			break;
		if (*end == '-' && !unknown) {
			text = end + 1;
			last = strtol(text, &end, 10);
			if (end == text || last < first || last >= RANKS_MOST)
				break;
		}
		if (grow_untouched(ranks, &capacity, *count + (size_t)(last - first) + 1, sizeof(**ranks)))
			return -ENOMEM;
		for (; first <= last && *count < RANKS_MOST; first++)
			(*ranks)[(*count)++] = (int32_t)first;
		text = end + (*end == ',');
		if (text == end)
			break;
	}
	return 0;
}
