/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/profile_json.h"

#include <math.h>

static bool add_part(cJSON *list, const struct result_profile_part *part)
{
	cJSON *item = record__append(list);

	return item && record__put_text(item, KEY(profile_part, class), vapro_class_name[part->class]) &&
	       record__put_text(item, KEY(profile_part, function), part->function) &&
	       record__put_uint(item, KEY(profile_part, calls), (uint64_t)llround(part->calls)) &&
	       record__put_number(item, KEY(profile_part, seconds), part->seconds) &&
	       record__put_number(item, KEY(profile_part, waiting_seconds), part->waiting_seconds) &&
	       record__put_number(item, KEY(profile_part, covered_seconds), part->covered_seconds);
}

int profile_json__put(const struct job_result *result, const struct result_rank_profile *profile,
		      const struct json_context *context, record_put put, void *arg)
{
	cJSON *object = record__begin(RECORD_OBJECT_rank_profile, result->end_ns, context->host), *parts = NULL;
	bool ok = object && record__put_job(object, result->job, result->user) &&
		  record__put_number(object, KEY(rank_profile, rank), profile->rank < 0 ? NAN : profile->rank) &&
		  record__put_uint(object, KEY(rank_profile, pid), profile->pid) &&
		  record__put_text(object, KEY(rank_profile, on_host), profile->host) &&
		  record__put_number(object, KEY(rank_profile, seconds), profile->seconds);

	if (ok)
		parts = record__put_list(object, KEY(rank_profile, parts));
	ok = parts;
	for (uint32_t i = 0; ok && i < profile->part_count; i++)
		ok = add_part(parts, &profile->parts[i]);
	return record__emit(RECORD_OBJECT_rank_profile, object, ok, put, arg);
}
