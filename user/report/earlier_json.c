/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/earlier_json.h"

#include "report/json.h"
#include "report/record.h"

char *earlier_json__line(const struct earlier *earlier, const struct earlier_of *of)
{
	cJSON *object = record__begin(RECORD_OBJECT_earlier, of->utc_ns, of->host);
	char text[512];
	bool ok = object && record__put_job(object, of->job, of->user) &&
		  record__put_text(object, KEY(earlier, program), *earlier->program ? earlier->program : NULL) &&
		  record__put_uint(object, KEY(earlier, runs), earlier->runs) &&
		  record__put_number(object, KEY(earlier, run_seconds), earlier->seconds) &&
		  record__put_number(object, KEY(earlier, time_ratio), earlier->time_ratio) &&
		  record__put_bool(object, KEY(earlier, time_outlying), earlier->time_outlying) &&
		  record__put_number(object, KEY(earlier, work_ratio), earlier->work_ratio) &&
		  record__put_bool(object, KEY(earlier, work_outlying), earlier->work_outlying) &&
		  record__put_text(object, KEY(earlier, profile), of->profile) &&
		  record__put_text(object, KEY(earlier, text), earlier__text(earlier, text, sizeof(text)));

	if (ok)
		return json__finish(object);
	cJSON_Delete(object);
	return NULL;
}
