/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines of causes: the variances of one cause, culprit and kind of place as one record. */
#include "report/cause_json.h"

#include "report/json.h"

#include <math.h>
#include <string.h>

#include "diagnose/factors.h"
#include "diagnose/interferers.h"
#include "diagnose/root_cause.h"
#include "report/cause_text.h"

#define CAUSES_MOST 64 /* causes of the jobs that are not over; the smallest are not emitted */
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
		return record__put_null(object, KEY(cause, culprit));
	culprit = record__put_object(object, KEY(cause, culprit));
	return culprit && record__put_text(culprit, KEY(culprit, comm), cause->culprit) &&
	       record__put_number(culprit, KEY(culprit, pid), cause->pid ? cause->pid : NAN) &&
	       record__put_text(culprit, KEY(culprit, relation), interferers__relation[cause->relation]) &&
	       (!cause->culprit_job || record__put_text(culprit, KEY(culprit, job), cause->culprit_job)) &&
	       (!cause->culprit_job || cause->culprit_rank < 0 ||
		record__put_uint(culprit, KEY(culprit, rank), (uint64_t)cause->culprit_rank));
}

static bool add_hosts(cJSON *object, const struct cause *cause)
{
	cJSON *hosts = record__put_list(object, KEY(cause, hosts));
	bool ok = hosts;

	for (uint32_t i = 0; ok && i < cause->host_count && i < HOSTS_MOST; i++) {
		cJSON *item = json__text(cause->hosts[i]);

		ok = item && cJSON_AddItemToArray(hosts, item);
	}
	return ok && record__put_uint(object, KEY(cause, host_count), cause->host_count);
}

static bool add_variances(cJSON *object, const struct cause *cause)
{
	cJSON *variances = record__put_list(object, KEY(cause, variances));
	bool ok = variances;

	for (uint32_t i = 0; ok && i < cause->variance_count; i++) {
		cJSON *item = cJSON_CreateNumber((double)cause->variances[i]);

		ok = item && cJSON_AddItemToArray(variances, item);
	}
	return ok;
}

static int put_cause(const struct cause *cause, uint32_t number, uint64_t end_ns, const char *host, bool final,
		     record_put put, void *arg)
{
	cJSON *object = record__begin(RECORD_OBJECT_cause, end_ns, host);
	char text[CAUSE_TEXT_SIZE];
	bool ok = object && record__put_job(object, *cause->job ? cause->job : NULL, cause->user) &&
		  record__put_uint(object, KEY(cause, number), number) &&
		  record__put_bool(object, KEY(cause, final), final) &&
		  record__put_text(object, KEY(cause, cause), cause->cause) &&
		  record__put_text(object, KEY(cause, factor), factor_of(cause->cause)) && add_culprit(object, cause) &&
		  record__put_text(object, KEY(cause, place), cause->place) &&
		  record__put_text(object, KEY(cause, class), vapro_class_name[cause->class]) &&
		  record__put_text(object, KEY(cause, severity), json_severity_name[cause->severity]) &&
		  record__put_bool(object, KEY(cause, confirmed), cause->confirmed) &&
		  record__put_bool(object, KEY(cause, alarm), cause->alarm) &&
		  record__put_time(object, KEY(cause, begin), cause->begin_ns) &&
		  record__put_time(object, KEY(cause, end), cause->end_ns) &&
		  record__put_number(object, KEY(cause, lost_seconds), cause->lost_seconds) &&
		  record__put_number(object, KEY(cause, caused_seconds), cause->caused_seconds) &&
		  record__put_number(object, KEY(cause, cost_pct_of_job), 100 * cause->share) &&
		  record__put_number(object, KEY(cause, rated_pct), 100 * cause->rated_share) &&
		  record__put_number(object, KEY(cause, denominator_seconds), cause->denominator_seconds) &&
		  record__put_uint(object, KEY(cause, regions), cause->regions) &&
		  record__put_ranks(object, KEY(cause, ranks), cause->ranks, cause->rank_count) &&
		  add_hosts(object, cause) && add_variances(object, cause) &&
		  record__put_text(object, KEY(cause, text), cause_text__write(cause, text));

	return record__emit(RECORD_OBJECT_cause, object, ok, put, arg);
}

int cause_json__put(struct causes *causes, uint64_t end_ns, const char *host, bool final, record_put put, void *arg)
{
	struct cause_list list;
	int ret = causes__list(causes, &list);

	for (uint32_t i = 0; !ret && i < list.count; i++) {
		const struct cause *cause = &list.items[i];

		if (!cause->over && (i >= CAUSES_MOST || !(final || cause->changed)))
			continue;
		ret = put_cause(cause, i + 1, end_ns, host, final || cause->over, put, arg);
		if (!ret)
			ret = causes__emitted(causes, cause);
	}
	causes__free_list(&list);
	return ret ? ret : causes__drop_over(causes);
}
