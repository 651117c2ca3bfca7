/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The JSON schema (draft 7) of the records, made from their table. */
#ifndef VAPRO_RECORDS_RECORD_SCHEMA_H
#define VAPRO_RECORDS_RECORD_SCHEMA_H

#include <cjson/cJSON.h>
#include <stdbool.h>

/*
 * Makes the schema; the caller deletes it. strict: records may have keys of the table only, which holds for what this
 * version writes, and for no reader. Returns NULL where memory is short.
 */
cJSON *record_schema__make(bool strict);

#endif
