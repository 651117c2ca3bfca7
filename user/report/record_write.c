/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/record.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/state_id.h"
#include "report/json.h"
#include "report/source_names.h"

bool record__put(cJSON *object, enum record_row key, cJSON *item)
{
	if (item && cJSON_AddItemToObjectCS(object, record_keys[key].name, item))
		return true;
	cJSON_Delete(item);
	return false;
}

/* Adds an item that is filled later; returns it, or NULL. */
static cJSON *put_part(cJSON *object, enum record_row key, cJSON *part)
{
	return record__put(object, key, part) ? part : NULL;
}

cJSON *record__put_object(cJSON *object, enum record_row key)
{
	return put_part(object, key, cJSON_CreateObject());
}

cJSON *record__put_list(cJSON *object, enum record_row key)
{
	return put_part(object, key, cJSON_CreateArray());
}

cJSON *record__append(cJSON *list)
{
	cJSON *item = cJSON_CreateObject();

	if (item && cJSON_AddItemToArray(list, item))
		return item;
	cJSON_Delete(item);
	return NULL;
}

bool record__put_job(cJSON *object, const char *job, uint32_t user)
{
	return record__put_text(object, KEY(of_job, job), job) &&
	       (!user || record__put_uint(object, KEY(of_job, uid), user - 1));
}

bool record__put_text(cJSON *object, enum record_row key, const char *text)
{
	return record__put(object, key, json__text(text));
}

static cJSON *number_of(enum record_row key, double value)
{
	int digits = record_keys[key].digits;

	return digits == RECORD_UNROUNDED && isfinite(value) ? cJSON_CreateNumber(value) : json__number(value, digits);
}

bool record__put_number(cJSON *object, enum record_row key, double value)
{
	return record__put(object, key, number_of(key, value));
}

bool record__put_named(cJSON *map, enum record_row key, const char *name, double value)
{
	return json__add(map, name, number_of(key, value));
}

bool record__put_bool(cJSON *object, enum record_row key, bool value)
{
	return record__put(object, key, cJSON_CreateBool(value));
}

bool record__put_null(cJSON *object, enum record_row key)
{
	return record__put(object, key, cJSON_CreateNull());
}

bool record__put_uint(cJSON *object, enum record_row key, uint64_t value)
{
	char digits[24];

	/* cJSON's numbers are doubles, exact up to 2^53 only */
	snprintf(digits, sizeof(digits), "%llu", (unsigned long long)value);
	return record__put(object, key, cJSON_CreateRaw(digits));
}

bool record__put_time(cJSON *object, enum record_row key, uint64_t utc_ns)
{
	char buf[JSON_TIME_SIZE];

	return record__put(object, key, cJSON_CreateString(json__time(utc_ns, buf)));
}

bool record__put_ranks(cJSON *object, enum record_row key, const int32_t *ranks, uint32_t count)
{
	char *text = json__ranks(ranks, count);
	bool ok = text && record__put(object, key, cJSON_CreateString(text));

	free(text);
	return ok;
}

bool record__put_shared(cJSON *object, enum record_row key, const struct result_shared *shared, uint32_t count)
{
	cJSON *list = record__put_list(object, key);
	bool ok = list;

	for (uint32_t i = 0; ok && i < count; i++) {
		cJSON *item = record__append(list);

		ok = item && record__put_text(item, KEY(shared_fact, fact), shared[i].fact) &&
		     record__put_text(item, KEY(shared_fact, value), shared[i].value) &&
		     record__put_uint(item, KEY(shared_fact, others), shared[i].others) &&
		     (!shared[i].host || record__put_text(item, KEY(shared_fact, host), shared[i].host));
	}
	return ok;
}

bool record__put_state(cJSON *object, const struct vapro_state *state, const struct source_names *names)
{
	char id[STATE_ID_SIZE];

	return record__put_text(object, KEY(state, state_id), state_id__text(state, id)) &&
	       record__put_text(object, KEY(state, labels), state ? state->labels : NULL) &&
	       record__put_text(object, KEY(state, class), state ? vapro_class_name[state->class] : NULL) &&
	       record__put_text(object, KEY(state, from), state ? state->from : NULL) &&
	       record__put_text(object, KEY(state, to), state ? state->to : NULL) &&
	       (!state || source_names__add_json(names, object, state));
}

bool record__put_factors(cJSON *object, enum record_row key, const double *factor)
{
	cJSON *factors = record__put_object(object, key);
	bool ok = factors;

	for (int i = 0; ok && i < VAPRO_FACTORS; i++) {
		char name[64];

		if (!(factor[i] > 0))
			continue;
		/* the spelling of the input format: times end in _ns, counts do not */
		snprintf(name, sizeof(name), "%s%s", vapro_factor_name[i], i < VAPRO_FACTOR_COUNTS ? "_ns" : "");
		ok = record__put_named(factors, key, name, factor[i]);
	}
	return ok;
}

cJSON *record__begin(enum record_object type, uint64_t utc_ns, const char *host)
{
	cJSON *object = cJSON_CreateObject();

	if (object && record__put_text(object, KEY(head, schema), RECORD_SCHEMA) &&
	    record__put_text(object, KEY(head, type), record_objects[type].name) &&
	    record__put_time(object, KEY(head, time), utc_ns) &&
	    record__put_text(object, KEY(head, host), host ? host : "unknown"))
		return object;
	cJSON_Delete(object);
	return NULL;
}

/* Counts the letters of an item as a rough measure of its part of a line. */
static size_t letters_of(const cJSON *item)
{
	size_t letters = item->string ? strlen(item->string) + 3 : 0;
	const cJSON *part;

	letters += item->valuestring ? strlen(item->valuestring) + 3 : 8;
	cJSON_ArrayForEach(part, item)
	{
		letters += letters_of(part);
	}
	return letters;
}

/* Finds the longest list of two items or more, at any depth. */
static void find_longest(cJSON *item, cJSON **longest, size_t *most)
{
	size_t letters = cJSON_IsArray(item) && item->child && item->child->next ? letters_of(item) : 0;
	cJSON *part;

	if (letters > *most) {
		*most = letters;
		*longest = item;
	}
	cJSON_ArrayForEach(part, item)
	{
		find_longest(part, longest, most);
	}
}

/* Leaves out the second half of the longest list. Returns how many items that were, 0 where no list can be halved. */
static uint64_t halve_longest(cJSON *object)
{
	cJSON *longest = NULL;
	size_t most = 0;
	uint64_t left_out = 0;
	int count;

	find_longest(object, &longest, &most);
	if (!longest)
		return 0;
	count = cJSON_GetArraySize(longest);
	for (int i = count - 1; i >= (count + 1) / 2; i--, left_out++)
		cJSON_DeleteItemFromArray(longest, i);
	return left_out;
}

/* Prints a record as a line shorter than RECORD_LINE_MOST, without ends of its lists where it is too long. */
static char *print_bounded(cJSON *object)
{
	char *line = cJSON_PrintUnformatted(object);
	uint64_t left_out = 0, more;

	while (line && strlen(line) + 1 >= RECORD_LINE_MOST && (more = halve_longest(object)) > 0) {
		free(line);
		left_out += more;
		cJSON_DeleteItemFromObjectCaseSensitive(object, record_keys[KEY(head, omitted)].name);
		line = record__put_uint(object, KEY(head, omitted), left_out) ? cJSON_PrintUnformatted(object) : NULL;
	}
	return line;
}

int record__emit(enum record_object type, cJSON *object, bool ok, record_put put, void *arg)
{
	char *line = ok ? print_bounded(object) : NULL;
	int ret = line ? put(arg, type, line) : -ENOMEM;

	cJSON_Delete(object);
	free(line);
	return ret;
}
