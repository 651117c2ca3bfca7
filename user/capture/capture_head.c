// SPDX-License-Identifier: GPL-2.0-or-later
#include <string.h>

#include "capture/capture_head.h"

static bool add_table(cJSON *records, uint32_t type)
{
	const struct capture_table *table = &capture_tables[type];
	cJSON *record = cJSON_AddObjectToObject(records, table->name), *columns;
	bool ok = record && cJSON_AddNumberToObject(record, "type", type);

	columns = ok ? cJSON_AddArrayToObject(record, "columns") : NULL;
	ok = columns;
	for (uint32_t i = 0; ok && i < table->count; i++) {
		const struct capture_column *own = &table->columns[i];
		cJSON *column = cJSON_CreateObject();

		ok = column && cJSON_AddItemToArray(columns, column) &&
		     cJSON_AddStringToObject(column, "name", own->name) &&
		     cJSON_AddStringToObject(column, "type", capture_wire_name[capture__wire(own->kind)]) &&
		     cJSON_AddStringToObject(column, "unit", own->unit);
	}
	return ok;
}

cJSON *capture_head__tables(void)
{
	cJSON *records = cJSON_CreateObject();
	bool ok = records;

	for (uint32_t type = 0; ok && type < CAPTURE_TYPES; type++) {
		if (capture_tables[type].name)
			ok = add_table(records, type);
	}
	if (ok)
		return records;
	cJSON_Delete(records);
	return NULL;
}

/* Returns a sentence about what is wrong, or NULL. */
static const char *read_columns(struct capture_layout *layout, const struct capture_table *table, const cJSON *columns)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, columns)
	{
		const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "name"));
		const char *type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "type"));
		const struct capture_column *own = NULL;
		uint32_t wire = 0;

		if (!name || !type || layout->count == CAPTURE_COLUMNS_MAX)
			return "its head names a column badly";
		while (wire < WIRES && strcmp(type, capture_wire_name[wire]))
			wire++;
		if (wire == WIRES)
			return "its head has a column of unknown type";
		for (uint32_t i = 0; table && i < table->count; i++) {
			if (strcmp(table->columns[i].name, name))
				continue;
			if (capture__wire(table->columns[i].kind) != wire)
				return "its head has a column of another type than ours";
			own = &table->columns[i];
		}
		capture_layout__add(layout, wire, own);
	}
	return NULL;
}

const char *capture_head__read_tables(const cJSON *records, struct capture_layout *layouts, uint32_t *type_of)
{
	const cJSON *record;
	const char *wrong;

	cJSON_ArrayForEach(record, records)
	{
		const cJSON *number = cJSON_GetObjectItemCaseSensitive(record, "type");
		uint32_t type = 0;

		if (!cJSON_IsNumber(number) || number->valuedouble < 0 || number->valuedouble != number->valueint)
			return "its head has a record without a type";
		while (type < CAPTURE_TYPES &&
		       (!capture_tables[type].name || strcmp(capture_tables[type].name, record->string)))
			type++;
		/* a later version's record is passed over by its number */
		if (type == CAPTURE_TYPES || number->valueint >= CAPTURE_TYPES)
			continue;
		type_of[number->valueint] = type;
		layouts[type].count = 0;
		wrong = read_columns(&layouts[type], &capture_tables[type],
				     cJSON_GetObjectItemCaseSensitive(record, "columns"));
		if (wrong)
			return wrong;
	}
	return NULL;
}
