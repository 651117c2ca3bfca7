/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines of causes: the variances of one cause, culprit and kind of place as one record. */
#include "report/cause_json.h"

#include <math.h>
#include <string.h>

#include "diagnose/factors.h"
#include "diagnose/interferers.h"
#include "diagnose/root_cause.h"
#include "report/cause_text.h"

#define CAUSES_MOST 64 /* causes of the whole run; the smallest are not emitted */
#define HOSTS_MOST 256 /* names in a record; host_count counts all */

/* Returns the factor of a cause; NULL for a cause that is none. */
static const char *factor_of(const char *cause)
{
	if (!strcmp(cause, CAUSE_OVERSUBSCRIBED))
		return CAUSE_PREEMPTED;
	return factors__find(cause) < FACTOR_NODES ? cause : NULL;
}

static bool add_culprit(cJSON *object, const struct cause *cause)
{
	cJSON *culprit;

	if (!cause->culprit)
		return cJSON_AddNullToObject(object, "culprit");
	culprit = cJSON_AddObjectToObject(object, "culprit");
	return culprit && json__add_text(culprit, "comm", cause->culprit) &&
	       json__add_number(culprit, "pid", cause->pid ? cause->pid : NAN, 0) &&
	       json__add_number(culprit, "share_pct", 100 * cause->culprit_share, 1) &&
	       json__add_text(culprit, "relation", interferers__relation[cause->relation]);
}

static bool add_hosts(cJSON *object, const struct cause *cause)
{
	cJSON *hosts = cJSON_AddArrayToObject(object, "hosts");
	bool ok = hosts;

	for (uint32_t i = 0; ok && i < cause->host_count && i < HOSTS_MOST; i++) {
		cJSON *item = json__text(cause->hosts[i]);

		ok = item && cJSON_AddItemToArray(hosts, item);
	}
	return ok && json__add_uint(object, "host_count", cause->host_count);
}

static bool add_variances(cJSON *object, const struct cause *cause)
{
	cJSON *variances = cJSON_AddArrayToObject(object, "variances");
	bool ok = variances;

	for (uint32_t i = 0; ok && i < cause->variance_count; i++) {
		cJSON *item = cJSON_CreateNumber((double)cause->variances[i]);

		ok = item && cJSON_AddItemToArray(variances, item);
	}
	return ok;
}

static int put_cause(const struct cause *cause, uint32_t number, uint64_t end_ns, const char *host, bool final,
		     json_put put, void *arg)
{
	cJSON *object = json__head("cause", end_ns, host);
	char text[CAUSE_TEXT_SIZE];
	bool ok = object && json__add_job(object, *cause->job ? cause->job : NULL, cause->user) &&
		  json__add_uint(object, "number", number) && cJSON_AddBoolToObject(object, "final", final) &&
		  json__add_text(object, "cause", cause->cause) &&
		  json__add_text(object, "factor", factor_of(cause->cause)) && add_culprit(object, cause) &&
		  json__add_text(object, "place", cause->place) &&
		  json__add_text(object, "class", vapro_class_name[cause->class]) &&
		  json__add_text(object, "severity", json_severity_name[cause->severity]) &&
		  cJSON_AddBoolToObject(object, "confirmed", cause->confirmed) &&
		  cJSON_AddBoolToObject(object, "alarm", cause->alarm) &&
		  json__add_time(object, "begin", cause->begin_ns) && json__add_time(object, "end", cause->end_ns) &&
		  json__add_number(object, "lost_seconds", cause->lost_seconds, 6) &&
		  json__add_number(object, "caused_seconds", cause->caused_seconds, 6) &&
		  json__add_number(object, "lost_pct", 100 * cause->lost_share, 4) &&
		  json__add_number(object, "share_pct", 100 * cause->share, 4) &&
		  json__add_uint(object, "regions", cause->regions) &&
		  json__add_uint(object, "rank_intervals", cause->intervals) &&
		  json__add_ranks(object, "ranks", cause->ranks, cause->rank_count) &&
		  json__add_uint(object, "rank_count", cause->rank_count) && add_hosts(object, cause) &&
		  add_variances(object, cause) && json__add_text(object, "text", cause_text__write(cause, text));

	return json__emit(object, ok, put, arg);
}

int json__causes(struct causes *causes, uint64_t end_ns, const char *host, bool final, json_put put, void *arg)
{
	struct cause_list list;
	int ret = causes__list(causes, &list);

	for (uint32_t i = 0; !ret && i < list.count && i < CAUSES_MOST; i++) {
		if (!final && !list.items[i].changed)
			continue;
		ret = put_cause(&list.items[i], i + 1, end_ns, host, final, put, arg);
		if (!ret)
			ret = causes__emitted(causes, &list.items[i]);
	}
	cause_list__free(&list);
	return ret;
}
