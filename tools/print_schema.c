/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * print_schema [--strict]: the JSON schema (draft 7) of the records, made from their table. strict: records may have
 * keys of the table only, which holds for what this version writes, and for no reader.
 */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "records/record_table.h"

#define REFERENCE_SIZE 64

static const char time_pattern[] = "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{9}Z$";
static const char ranks_pattern[] = "^$|^(\\?|[0-9]+(-[0-9]+)?)(,[0-9]+(-[0-9]+)?)*$";

/* Adds an item to a list; returns the item, or NULL. */
static cJSON *append(cJSON *list, cJSON *item)
{
	if (item && cJSON_AddItemToArray(list, item))
		return item;
	cJSON_Delete(item);
	return NULL;
}

/* Adds a value to an object under a name, which it copies; returns the value, or NULL. */
static cJSON *put(cJSON *object, const char *name, cJSON *value)
{
	if (value && cJSON_AddItemToObject(object, name, value))
		return value;
	cJSON_Delete(value);
	return NULL;
}

static bool put_text(cJSON *object, const char *name, const char *text)
{
	return put(object, name, cJSON_CreateString(text));
}

static bool put_type(cJSON *object, const char *type, bool nullable)
{
	cJSON *types;

	if (!nullable)
		return put_text(object, "type", type);
	types = put(object, "type", cJSON_CreateArray());
	return types && append(types, cJSON_CreateString(type)) && append(types, cJSON_CreateString("null"));
}

static bool put_reference(cJSON *object, const char *name)
{
	char text[REFERENCE_SIZE];

	snprintf(text, sizeof(text), "#/definitions/%s", name);
	return put_text(object, "$ref", text);
}

/* Adds a reference with a description beside it, which draft 7 ignores within the object of the reference itself. */
static bool put_referred(cJSON *schema, const char *name, bool nullable)
{
	cJSON *list = put(schema, nullable ? "anyOf" : "allOf", cJSON_CreateArray());
	cJSON *reference = list ? append(list, cJSON_CreateObject()) : NULL, *null;

	if (!reference || !put_reference(reference, name))
		return false;
	if (!nullable)
		return true;
	null = append(list, cJSON_CreateObject());
	return null && put_text(null, "type", "null");
}

static bool put_names(cJSON *schema, const char *const *words, int count, bool nullable)
{
	cJSON *list = put(schema, "enum", cJSON_CreateArray());
	bool ok = list;

	for (int i = 0; ok && i < count; i++)
		ok = append(list, cJSON_CreateString(words[i]));
	return ok && (!nullable || append(list, cJSON_CreateNull()));
}

static bool put_record_names(cJSON *schema)
{
	cJSON *list = put(schema, "enum", cJSON_CreateArray());
	bool ok = list;

	for (int i = 0; ok && i < RECORD_OBJECTS; i++)
		ok = !record_objects[i].is_record || append(list, cJSON_CreateString(record_objects[i].name));
	return ok;
}

static bool put_bounds(cJSON *schema, const struct record_key *key)
{
	return (!key->has_least || cJSON_AddNumberToObject(schema, "minimum", key->least)) &&
	       (!key->has_most || cJSON_AddNumberToObject(schema, "maximum", key->most));
}

/* Adds the names and the values of an object whose keys are names of a fixed set. */
static bool put_values(cJSON *schema, const struct record_key *key)
{
	static const char *const scalars[] = {"number", "string", "boolean"};
	cJSON *values, *types, *names;

	if (!put_text(schema, "type", "object") ||
	    !(values = put(schema, "additionalProperties", cJSON_CreateObject())))
		return false;
	if (key->value == RECORD_NUMBERS) {
		if (!put_type(values, "number", key->nullable) || !cJSON_AddNumberToObject(values, "minimum", 0) ||
		    !put_bounds(values, key))
			return false;
		names = key->words ? put(schema, "propertyNames", cJSON_CreateObject()) : NULL;
		return !key->words || (names && put_names(names, key->words, key->word_count, false));
	}
	types = put(values, "type", cJSON_CreateArray());
	for (unsigned i = 0; types && i < sizeof(scalars) / sizeof(*scalars); i++)
		if (!append(types, cJSON_CreateString(scalars[i])))
			return false;
	return types;
}

/* Fills the schema of one value of a key. */
static bool put_value(cJSON *schema, const struct record_key *key)
{
	switch (key->value) {
	case RECORD_TEXT:
		return put_type(schema, "string", key->nullable) &&
		       (!key->words || put_names(schema, key->words, key->word_count, key->nullable));
	case RECORD_NAME:
		return put_record_names(schema);
	case RECORD_TIME:
		return put_referred(schema, "time", key->nullable);
	case RECORD_RANKS:
		return put_referred(schema, "ranks", key->nullable);
	case RECORD_BOOLEAN:
		return put_type(schema, "boolean", key->nullable);
	case RECORD_INTEGER:
		return put_type(schema, "integer", key->nullable) && put_bounds(schema, key);
	case RECORD_NUMBER:
		return put_type(schema, "number", key->nullable) && put_bounds(schema, key);
	case RECORD_PART:
		return put_referred(schema, record_objects[key->part].name, key->nullable);
	case RECORD_NUMBERS:
	case RECORD_SETTINGS:
		return put_values(schema, key);
	case RECORD_INCLUDE:
		break;
	}
	return false;
}

static bool put_description(cJSON *schema, const struct record_key *key)
{
	char text[1024];

	if (!key->whole)
		return put_text(schema, "description", key->text);
	snprintf(text, sizeof(text), "%s; percent of %s", key->text, key->whole);
	return put_text(schema, "description", text);
}

static bool put_key(cJSON *properties, const struct record_key *key)
{
	cJSON *schema = put(properties, key->name, cJSON_CreateObject()), *item = schema;

	if (schema && key->list && put_text(schema, "type", "array"))
		item = put(schema, "items", cJSON_CreateObject());
	return schema && item && put_value(item, key) && put_description(schema, key);
}

/* Adds the keys of an object, with those of the objects that it includes. */
static bool put_keys(cJSON *properties, cJSON *required, enum record_object object)
{
	for (int i = 0; i < RECORD_ROWS; i++) {
		const struct record_key *key = &record_keys[i];

		if (key->object != object)
			continue;
		if (key->value == RECORD_INCLUDE) {
			if (!put_keys(properties, required, key->part))
				return false;
			continue;
		}
		if (!put_key(properties, key))
			return false;
		if (!key->optional && !key->only && !append(required, cJSON_CreateString(key->name)))
			return false;
	}
	return true;
}

static const struct record_key *first_key(enum record_object object)
{
	const struct record_key *key = record_keys;

	while (key->object != object)
		key++;
	return key;
}

/* Adds a condition: a key is required where the first key of the object is one of a list of words. */
static bool put_condition(cJSON *conditions, const struct record_key *key)
{
	cJSON *branch = append(conditions, cJSON_CreateObject());
	cJSON *condition = branch ? put(branch, "if", cJSON_CreateObject()) : NULL;
	cJSON *then = condition ? put(branch, "then", cJSON_CreateObject()) : NULL;
	cJSON *properties = then ? put(condition, "properties", cJSON_CreateObject()) : NULL;
	const char *first = first_key(key->object)->name;
	cJSON *value = properties ? put(properties, first, cJSON_CreateObject()) : NULL;
	cJSON *required = value ? put(then, "required", cJSON_CreateArray()) : NULL;

	return required && put_names(value, key->only, key->only_count, false) &&
	       append(required, cJSON_CreateString(key->name));
}

static bool put_conditions(cJSON *schema, enum record_object object)
{
	cJSON *conditions = NULL;
	bool ok = true;

	for (int i = 0; ok && i < RECORD_ROWS; i++) {
		if (record_keys[i].object != object || !record_keys[i].only)
			continue;
		if (!conditions)
			conditions = put(schema, "allOf", cJSON_CreateArray());
		ok = conditions && put_condition(conditions, &record_keys[i]);
	}
	return ok;
}

/* Allows the keys of all records, and no others. */
static bool put_strict(cJSON *schema, cJSON *properties, bool is_record)
{
	bool ok = cJSON_AddFalseToObject(schema, "additionalProperties");

	for (int i = 0; ok && is_record && i < RECORD_ROWS; i++) {
		const char *name = record_keys[i].name;

		if (record_keys[i].object == RECORD_OBJECT_head && !cJSON_GetObjectItemCaseSensitive(properties, name))
			ok = cJSON_AddTrueToObject(properties, name);
	}
	return ok;
}

static bool put_object(cJSON *definitions, enum record_object object, bool strict)
{
	const struct record_object_info *info = &record_objects[object];
	cJSON *schema = put(definitions, info->name, cJSON_CreateObject()), *properties, *required;

	if (!schema || !put_text(schema, "type", "object") || !put_text(schema, "description", info->text))
		return false;
	properties = put(schema, "properties", cJSON_CreateObject());
	required = put(schema, "required", cJSON_CreateArray());
	return properties && required && put_keys(properties, required, object) && put_conditions(schema, object) &&
	       (!strict || put_strict(schema, properties, info->is_record));
}

static bool put_pattern(cJSON *definitions, const char *name, const char *pattern, const char *description)
{
	cJSON *schema = put(definitions, name, cJSON_CreateObject());

	return schema && put_text(schema, "type", "string") && put_text(schema, "pattern", pattern) &&
	       put_text(schema, "description", description);
}

/* Adds the branch by which a record with the name of an object is such an object. */
static bool put_branch(cJSON *branches, const char *name)
{
	cJSON *branch = append(branches, cJSON_CreateObject());
	cJSON *condition = branch ? put(branch, "if", cJSON_CreateObject()) : NULL;
	cJSON *then = condition ? put(branch, "then", cJSON_CreateObject()) : NULL;
	cJSON *properties = then ? put(condition, "properties", cJSON_CreateObject()) : NULL;
	cJSON *type = properties ? put(properties, "type", cJSON_CreateObject()) : NULL;
	cJSON *required = type ? put(condition, "required", cJSON_CreateArray()) : NULL;

	return required && put_text(type, "const", name) && append(required, cJSON_CreateString("type")) &&
	       put_reference(then, name);
}

/* Makes the schema; the caller deletes it. Returns NULL where memory is short. */
static cJSON *make(bool strict)
{
	cJSON *schema = cJSON_CreateObject(), *definitions = NULL, *properties, *required, *branches;
	bool ok = schema && put_text(schema, "$schema", "http://json-schema.org/draft-07/schema#") &&
		  put_text(schema, "$id", "https://vapro.example/vapro.schema.json") &&
		  put_text(schema, "title", RECORD_SCHEMA) &&
		  put_text(schema, "description", "One line of vapro's NDJSON output.") &&
		  (definitions = put(schema, "definitions", cJSON_CreateObject())) &&
		  put_pattern(definitions, "time", time_pattern, "RFC 3339, UTC, nanoseconds") &&
		  put_pattern(definitions, "ranks", ranks_pattern,
			      "ascending ranks and ranges of ranks: 0-3,7; ? stands for processes of unknown rank");

	for (int i = 0; ok && i < RECORD_OBJECTS; i++)
		ok = put_object(definitions, (enum record_object)i, strict);
	ok = ok && put_text(schema, "type", "object") && (required = put(schema, "required", cJSON_CreateArray())) &&
	     (properties = put(schema, "properties", cJSON_CreateObject())) &&
	     put_keys(properties, required, RECORD_OBJECT_head) &&
	     (branches = put(schema, "allOf", cJSON_CreateArray()));
	for (int i = 0; ok && i < RECORD_OBJECTS; i++)
		ok = !record_objects[i].is_record || put_branch(branches, record_objects[i].name);
	if (ok)
		return schema;
	cJSON_Delete(schema);
	return NULL;
}

int main(int argc, char **argv)
{
	cJSON *schema = make(argc > 1 && !strcmp(argv[1], "--strict"));
	char *text = schema ? cJSON_Print(schema) : NULL;
	int ret = text && puts(text) >= 0 && !fflush(stdout) ? 0 : 1;

	if (!text)
		fprintf(stderr, "print_schema: out of memory\n");
	free(text);
	cJSON_Delete(schema);
	return ret;
}
