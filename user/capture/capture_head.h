/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tables of columns as JSON, in the head of a capture and in blocks (wire/block.h). */
#ifndef VAPRO_CAPTURE_HEAD_H
#define VAPRO_CAPTURE_HEAD_H

#include <cjson/cJSON.h>
#include "capture/capture_format.h"

/* This program's tables; the caller deletes the object. Returns NULL when out of memory. */
cJSON *capture_head__tables(void);

/*
 * Reads tables: how columns map to ours, by our type, and the types of their numbers (0: unknown, a later version's
 * record, to be passed over); both have CAPTURE_TYPES elements, zeroed. Returns what is wrong, or NULL.
 */
const char *capture_head__read_tables(const cJSON *records, struct capture_layout *layouts, uint32_t *type_of);

#endif
