/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config/config_json.h"

static cJSON *make_value(const struct vapro_config *config, const struct vapro_option *option)
{
	const char *member = (const char *)config + option->offset;
	char text[VAPRO_TEXT_MAX];

	switch (option->type) {
	case VAPRO_OPT_DOUBLE:
	case VAPRO_OPT_SHARE:
	case VAPRO_OPT_PERCENT:
	case VAPRO_OPT_SECONDS:
		return cJSON_CreateNumber(*(const double *)member);
	case VAPRO_OPT_SIZE:
	case VAPRO_OPT_UINT: /* the table's ranges end below 2^53 */
		return cJSON_CreateNumber((double)*(const uint64_t *)member);
	case VAPRO_OPT_BOOL:
		return cJSON_CreateBool(*(const bool *)member);
	case VAPRO_OPT_FUNCTIONS:
		return cJSON_CreateString(member);
	case VAPRO_OPT_TRISTATE:
	case VAPRO_OPT_ATTACH:
	case VAPRO_OPT_STATES:
	case VAPRO_OPT_COUNTERS:
	case VAPRO_OPT_REFERENCE:
	case VAPRO_OPT_TEXT:
	case VAPRO_OPT_PATH:
	case VAPRO_OPT_EVENTS:
		break;
	}
	config__format(config, option, text, sizeof(text));
	return cJSON_CreateString(text);
}

cJSON *config__to_json(const struct vapro_config *config)
{
	cJSON *object = cJSON_CreateObject();

	for (size_t i = 0; object && i < vapro_option_count; i++) {
		cJSON *value = make_value(config, &vapro_options[i]);
		char name[64];

		snprintf(name, sizeof(name), "%s", vapro_options[i].name);
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
