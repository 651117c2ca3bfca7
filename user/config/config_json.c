/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config/config_json.h"
#include "config/tunables.h"

static cJSON *make_value(const struct vapro_config *config, const struct option_row *tunable)
{
	const char *member = (const char *)config + tunable->offset;
	char text[VAPRO_FUNCTIONS_TEXT];

	switch (tunable->type) {
	case OPTION_NUMBER:
	case OPTION_SHARE:
	case OPTION_PERCENT:
	case OPTION_SECONDS:
		return cJSON_CreateNumber(*(const double *)member);
	case OPTION_SIZE:
	case OPTION_POWER:
	case OPTION_UINT: /* the table's ranges end below 2^53 */
		return cJSON_CreateNumber((double)*(const uint64_t *)member);
	case OPTION_BOOL:
		return cJSON_CreateBool(*(const bool *)member);
	default:
		config__format(config, tunable, text, sizeof(text));
		return cJSON_CreateString(text);
	}
}

cJSON *config__to_json(const struct vapro_config *config)
{
	cJSON *object = cJSON_CreateObject();

	for (size_t i = 0; object && i < vapro_tunable_count; i++) {
		cJSON *value = make_value(config, &vapro_tunables[i]);
		char name[64];

		snprintf(name, sizeof(name), "%s", vapro_tunables[i].name);
		for (char *c = name; *c; c++)
			*c = *c == '-' ? '_' : *c;
		if (value && cJSON_AddItemToObject(object, name, value))
			continue;
		cJSON_Delete(value);
		cJSON_Delete(object);
		object = NULL;
	}
	return object;
}

char *config__to_text(const struct vapro_config *config)
{
	cJSON *object = config__to_json(config);
	char *text = object ? cJSON_PrintUnformatted(object) : NULL;

	cJSON_Delete(object);
	return text;
}

int config__from_text(struct vapro_config *config, const char *json, char *err, size_t err_size)
{
	cJSON *object = cJSON_Parse(json), *item;
	int ret = 0;

	if (!cJSON_IsObject(object)) {
		snprintf(err, err_size, "the tunables are no JSON object");
		ret = -EINVAL;
		goto cleanup;
	}
	cJSON_ArrayForEach(item, object)
	{
		char text[VAPRO_FUNCTIONS_TEXT];

		if (cJSON_IsString(item))
			snprintf(text, sizeof(text), "%s", item->valuestring);
		else if (cJSON_IsNumber(item))
			snprintf(text, sizeof(text), "%.17g", item->valuedouble);
		else if (cJSON_IsBool(item))
			snprintf(text, sizeof(text), "%s", cJSON_IsTrue(item) ? "true" : "false");
		else
			continue;
		ret = config__set(config, item->string, text, err, err_size);
		if (ret == -ENOENT) /* a tunable of another version */
			ret = 0;
		if (ret)
			goto cleanup;
	}
cleanup:
	cJSON_Delete(object);
	return ret;
}
