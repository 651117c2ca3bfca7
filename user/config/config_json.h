/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tunables as a JSON object, as in hello and in the head of a capture: seconds, ratios, names with _. */
#ifndef VAPRO_CONFIG_JSON_H
#define VAPRO_CONFIG_JSON_H

#include <cjson/cJSON.h>
#include <vapro/config.h>

/* NULL when out of memory. */
cJSON *config__to_json(const struct vapro_config *config);

/* Returns that object as malloc'ed text, as capture__create() takes it. */
char *config__to_text(const struct vapro_config *config);

/* Reads tunables from such an object; unknown names are ignored. Returns 0 or -EINVAL with a sentence in err. */
int config__from_text(struct vapro_config *config, const char *json, char *err, size_t err_size);

#endif
