// SPDX-License-Identifier: GPL-2.0-or-later
#include "wire/request.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"

#define WHOLE_MOST 9007199254740992.0 /* of a number in JSON: 2^53 */
#define DEPTH_MOST 4		      /* of objects and lists in each other */

const char *const wire_request_name[WIRE_REQUEST_KINDS] = {[WIRE_REQUEST_STAGE] = "stage",
							   [WIRE_REQUEST_INSIDE] = "inside",
							   [WIRE_REQUEST_HOP] = "hop",
							   [WIRE_REQUEST_SET] = "set"};

static bool add_inside(cJSON *object, const struct vapro_inside_request *inside)
{
	cJSON *list = cJSON_AddArrayToObject(object, "tids");
	bool ok = list;

	for (uint32_t i = 0; ok && i < inside->count; i++)
		ok = cJSON_AddItemToArray(list, cJSON_CreateNumber(inside->tids[i]));
	return ok;
}

static bool add_kind(cJSON *object, const struct wire_request *request)
{
	switch (request->kind) {
	case WIRE_REQUEST_STAGE:
		return cJSON_AddNumberToObject(object, "stage", request->stage) &&
		       cJSON_AddStringToObject(object, "expand", request->expand) &&
		       cJSON_AddNumberToObject(object, "variance", (double)request->variance) &&
		       cJSON_AddBoolToObject(object, "interrupts", request->interrupts);
	case WIRE_REQUEST_INSIDE:
		return add_inside(object, &request->inside);
	case WIRE_REQUEST_HOP:
		return cJSON_AddStringToObject(object, "site", request->site) &&
		       cJSON_AddStringToObject(object, "symbol", request->symbol) &&
		       cJSON_AddStringToObject(object, "hop", vapro_hop_name[request->hop]);
	case WIRE_REQUEST_SET:
		return cJSON_AddStringToObject(object, "image", request->image) &&
		       cJSON_AddStringToObject(object, "without", request->without) &&
		       cJSON_AddStringToObject(object, "host", request->host) &&
		       cJSON_AddStringToObject(object, "worker", request->worker);
	case WIRE_REQUEST_KINDS:
		break;
	}
	return false;
}

int wire_request__format(char *text, size_t size, const struct wire_request *request)
{
	cJSON *object = cJSON_CreateObject();
	bool ok = object && cJSON_AddNumberToObject(object, "version", WIRE_REQUEST_VERSION) &&
		  cJSON_AddStringToObject(object, "kind", wire_request_name[request->kind]) &&
		  cJSON_AddStringToObject(object, "job", request->job) &&
		  cJSON_AddNumberToObject(object, "user", request->user) && add_kind(object, request);
	char *line = ok ? cJSON_PrintUnformatted(object) : NULL;
	int length = line ? (int)strlen(line) : -ENOMEM;

	cJSON_Delete(object);
	if (line && (size_t)length < size && length <= WIRE_REQUEST_MAX)
		memcpy(text, line, (size_t)length + 1);
	else if (line)
		length = -ENOSPC;
	free(line);
	return length;
}

/* Reads a whole number up to a maximum; false where the member is no such number. */
static bool get_number(const cJSON *object, const char *key, double most, uint64_t *number)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

	if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0) || item->valuedouble > most ||
	    item->valuedouble != floor(item->valuedouble))
		return false;
	*number = (uint64_t)item->valuedouble;
	return true;
}

/* Reads a text that has no control characters and fits. */
static bool get_text(const cJSON *object, const char *key, char *text, size_t size)
{
	const char *value = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));

	if (!value || strlen(value) >= size)
		return false;
	for (const char *at = value; *at; at++) {
		if ((unsigned char)*at < 0x20 || *at == 0x7f)
			return false;
	}
	strcpy(text, value);
	return true;
}

static bool get_bool(const cJSON *object, const char *key, bool *value)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

	*value = cJSON_IsTrue(item);
	return cJSON_IsBool(item);
}

static bool get_tids(const cJSON *object, struct vapro_inside_request *inside)
{
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(object, "tids"), *item;

	if (!cJSON_IsArray(list))
		return false;
	cJSON_ArrayForEach(item, list)
	{
		double number = cJSON_IsNumber(item) ? item->valuedouble : 0;

		if (!(number >= 1) || number > INT32_MAX || number != floor(number) ||
		    inside->count == VAPRO_INSIDE_THREADS)
			return false;
		inside->tids[inside->count++] = (uint32_t)number;
	}
	return true;
}

static bool get_hop(const cJSON *object, enum vapro_hop *hop)
{
	static const enum vapro_hop allowed[] = {VAPRO_HOP_UP, VAPRO_HOP_STAYS, VAPRO_HOP_BACK};
	char word[16];

	if (!get_text(object, "hop", word, sizeof(word)))
		return false;
	for (size_t i = 0; i < sizeof(allowed) / sizeof(*allowed); i++) {
		*hop = allowed[i];
		if (!strcmp(word, vapro_hop_name[*hop]))
			return true;
	}
	return false;
}

static bool get_kind(const cJSON *object, struct wire_request *request)
{
	uint64_t stage;

	switch (request->kind) {
	case WIRE_REQUEST_STAGE:
		if (!get_number(object, "stage", 100, &stage) || !stage ||
		    !get_text(object, "expand", request->expand, sizeof(request->expand)) ||
		    !get_number(object, "variance", WHOLE_MOST, &request->variance) ||
		    !get_bool(object, "interrupts", &request->interrupts))
			return false;
		request->stage = (int)stage;
		return (request->stage == 1) == !*request->expand;
	case WIRE_REQUEST_INSIDE:
		return get_tids(object, &request->inside);
	case WIRE_REQUEST_HOP:
		return get_text(object, "site", request->site, sizeof(request->site)) && *request->site &&
		       get_text(object, "symbol", request->symbol, sizeof(request->symbol)) &&
		       get_hop(object, &request->hop);
	case WIRE_REQUEST_SET:
		return get_text(object, "image", request->image, sizeof(request->image)) && *request->image &&
		       get_text(object, "without", request->without, sizeof(request->without)) && *request->without &&
		       get_text(object, "host", request->host, sizeof(request->host)) && *request->host &&
		       get_text(object, "worker", request->worker, sizeof(request->worker)) && *request->worker;
	case WIRE_REQUEST_KINDS:
		break;
	}
	return false;
}

/* Whether a text may be parsed: cJSON goes as deep as 1,000 lists in each other. */
static bool is_flat(const char *text, size_t size)
{
	unsigned depth = 0;

	for (size_t i = 0; i < size; i++) {
		if (text[i] == '[' || text[i] == '{')
			depth++;
		else if (text[i] == ']' || text[i] == '}')
			depth -= depth > 0;
		if (depth > DEPTH_MOST)
			return false;
	}
	return true;
}

static int read_head(const cJSON *object, struct wire_request *request, char *why, size_t why_size)
{
	uint64_t version, user;
	char kind[32];

	if (!get_number(object, "version", WHOLE_MOST, &version)) {
		snprintf(why, why_size, "it has no version");
		return -EINVAL;
	}
	if (version != WIRE_REQUEST_VERSION) {
		snprintf(why, why_size, "its version is %llu, and this vaprod knows %d", (unsigned long long)version,
			 WIRE_REQUEST_VERSION);
		return -EINVAL;
	}
	if (!get_text(object, "kind", kind, sizeof(kind))) {
		snprintf(why, why_size, "it has no kind");
		return -EINVAL;
	}
	request->kind = WIRE_REQUEST_STAGE;
	while (request->kind < WIRE_REQUEST_KINDS && strcmp(kind, wire_request_name[request->kind]) != 0)
		request->kind++;
	if (request->kind == WIRE_REQUEST_KINDS) {
		snprintf(why, why_size, "its kind '%s' is not one of stage, inside, hop and set", printable(kind));
		return -EINVAL;
	}
	if (!get_text(object, "job", request->job, sizeof(request->job)) || !*request->job ||
	    !get_number(object, "user", UINT32_MAX, &user)) {
		snprintf(why, why_size, "it names no job");
		return -EINVAL;
	}
	request->user = (uint32_t)user;
	return 0;
}

int wire_request__parse(struct wire_request *request, const void *bytes, size_t size, char *why, size_t why_size)
{
	cJSON *object = NULL;
	int ret;

	memset(request, 0, sizeof(*request));
	if (size <= WIRE_REQUEST_MAX && is_flat(bytes, size))
		object = cJSON_ParseWithLength(bytes, size);
	if (!cJSON_IsObject(object)) {
		snprintf(why, why_size, "it is no JSON object of at most %d bytes", WIRE_REQUEST_MAX);
		cJSON_Delete(object);
		return -EINVAL;
	}
	ret = read_head(object, request, why, why_size);
	if (!ret && !get_kind(object, request)) {
		snprintf(why, why_size, "a member of the kind %s is missing, or has an impossible value",
			 wire_request_name[request->kind]);
		ret = -EINVAL;
	}
	cJSON_Delete(object);
	return ret;
}
