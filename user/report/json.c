/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parts of every line. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/utf8.h"
#include "report/json.h"

#define NS_PER_S 1000000000ULL

const char *const json_severity_name[VAPRO_SEVERITIES] = {
    [VAPRO_INFO] = "info", [VAPRO_WARNING] = "warning", [VAPRO_CRITICAL] = "critical"};
const char *const json_confidence_name[VAPRO_CONFIRMED + 1] = {
    [VAPRO_UNCONFIRMED] = "unconfirmed", [VAPRO_PLACE] = "place", [VAPRO_CONFIRMED] = "confirmed"};

char *json__time(uint64_t utc_ns, char *buf)
{
	time_t seconds = (time_t)(utc_ns / NS_PER_S);
	struct tm tm;

	gmtime_r(&seconds, &tm);
	snprintf(buf, JSON_TIME_SIZE, "%04d-%02d-%02dT%02d:%02d:%02d.%09uZ", (tm.tm_year + 1900) % 10000, tm.tm_mon + 1,
		 tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, (unsigned)(utc_ns % NS_PER_S));
	return buf;
}

bool json__parse_time(const char *text, uint64_t *utc_ns)
{
	unsigned long nanoseconds = 0;
	struct tm tm = {0};
	int used = 0;
	time_t seconds;

	if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour, &tm.tm_min,
		   &tm.tm_sec, &used) != 6)
		return false;
	text += used;
	if (*text == '.') {
		unsigned long unit = 100000000;

		for (text++; *text >= '0' && *text <= '9'; text++, unit /= 10)
			nanoseconds += (unsigned long)(*text - '0') * unit;
	}
	if (strcmp(text, "Z"))
		return false;
	tm.tm_year -= 1900;
	tm.tm_mon -= 1;
	seconds = timegm(&tm);
	if (seconds < 0)
		return false;
	*utc_ns = (uint64_t)seconds * NS_PER_S + nanoseconds;
	return true;
}

char *json__ranks(const int32_t *ranks, uint32_t count)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	for (uint32_t first = 0, last; first < count; first = last + 1) {
		last = first;
		while (last + 1 < count && ranks[last + 1] - ranks[last] <= 1)
			last++;
		/* -1 is no neighbour of 0: it stands for all rows of unknown rank */
		if (ranks[first] < 0) {
			while (last > first && ranks[last] >= 0)
				last--;
			fprintf(out, "%s?", first ? "," : "");
			continue;
		}
		fprintf(out, "%s%d", first ? "," : "", ranks[first]);
		if (ranks[last] > ranks[first])
			fprintf(out, "-%d", ranks[last]);
	}
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

cJSON *json__text(const char *text)
{
	char *valid = text ? utf8__valid(text) : NULL;
	cJSON *item = !text ? cJSON_CreateNull() : valid ? cJSON_CreateString(valid) : NULL;

	free(valid);
	return item;
}

cJSON *json__number(double value, int decimals)
{
	double unit = pow(10, decimals), rounded = round(value * unit) / unit;

	if (!isfinite(value))
		return cJSON_CreateNull();
	/* avoids "-0", and overflow by the scaling */
	return cJSON_CreateNumber(!isfinite(rounded) ? value : rounded == 0 ? 0 : rounded);
}

bool json__add(cJSON *object, const char *key, cJSON *item)
{
	if (item && cJSON_AddItemToObject(object, key, item))
		return true;
	cJSON_Delete(item);
	return false;
}

bool json__add_to_list(cJSON *list, cJSON *item)
{
	if (item && cJSON_AddItemToArray(list, item))
		return true;
	cJSON_Delete(item);
	return false;
}

bool json__add_text(cJSON *object, const char *key, const char *text)
{
	return json__add(object, key, json__text(text));
}

bool json__add_number(cJSON *object, const char *key, double value, int decimals)
{
	return json__add(object, key, json__number(value, decimals));
}

bool json__add_time(cJSON *object, const char *key, uint64_t utc_ns)
{
	char buf[JSON_TIME_SIZE];

	return json__add(object, key, cJSON_CreateString(json__time(utc_ns, buf)));
}

bool json__add_uint(cJSON *object, const char *key, uint64_t value)
{
	char digits[24];

	/* cJSON's numbers are doubles, exact up to 2^53 only */
	snprintf(digits, sizeof(digits), "%llu", (unsigned long long)value);
	return json__add(object, key, cJSON_CreateRaw(digits));
}

char *json__finish(cJSON *object)
{
	char *text = object ? cJSON_PrintUnformatted(object) : NULL;

	cJSON_Delete(object);
	return text;
}

int json__put_line(cJSON *object, bool ok, FILE *out)
{
	char *line = NULL;

	if (ok)
		line = json__finish(object);
	else
		cJSON_Delete(object);
	if (!line)
		return -ENOMEM;
	fprintf(out, "%s\n", line);
	free(line);
	return 0;
}
