// SPDX-License-Identifier: GPL-2.0-or-later
/* Hangs as events of a trace: the time in which a job made no progress, and what its ranks were in. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "export/trace_private.h"
#include "report/json.h"
#include "report/record.h"

static bool is_of(const cJSON *hang, const struct trace_job *job)
{
	const char *name = record__text(hang, KEY(of_job, job));
	double uid = record__number(hang, KEY(of_job, uid), NAN);

	return !strcmp(name ? name : "", job->maps[0]->said) &&
	       (uid == job->maps[0]->uid || (isnan(uid) && isnan(job->maps[0]->uid)));
}

static cJSON *args_of(const cJSON *hang)
{
	const cJSON *groups = record__item(hang, KEY(hang, groups));
	cJSON *args = cJSON_CreateObject();

	if (args && json__add_uint(args, "id", record__uint(hang, KEY(hang, id))) &&
	    json__add_text(args, "kind", record__text(hang, KEY(hang, kind))) &&
	    json__add_text(args, "outcome", record__text(hang, KEY(hang, outcome))) &&
	    json__add_text(args, "severity", record__text(hang, KEY(hang, severity))) &&
	    json__add(args, "alarm", cJSON_CreateBool(record__true(hang, KEY(hang, alarm)))) &&
	    json__add_text(args, "text", record__text(hang, KEY(hang, text))) &&
	    (!groups || json__add(args, "groups", cJSON_Duplicate(groups, true))))
		return args;
	cJSON_Delete(args);
	return NULL;
}

void trace__hangs(struct trace *trace, const struct trace_job *job)
{
	const struct record_list *hangs = &trace->report->hangs;
	unsigned thread = 0;

	for (size_t i = 0; i < hangs->count; i++) {
		const char *kind = record__text(hangs->items[i], KEY(hang, kind));
		uint64_t begin, end;
		cJSON *event, *args;
		char name[80];

		if (!is_of(hangs->items[i], job) || !record__time(hangs->items[i], KEY(hang, begin), &begin) ||
		    !record__time(hangs->items[i], KEY(hang, end), &end) || end <= begin)
			continue;
		if (!thread)
			thread = trace__add_thread(trace, job->process, "no progress");
		snprintf(name, sizeof(name), "no progress: %.60s", kind ? kind : "?");
		args = args_of(hangs->items[i]);
		event = trace__event(trace, "X", name, job->process, thread, args);
		if (!args || !json__add_text(event, "cat", "hang"))
			trace->out_of_memory = true;
		trace__set_time(trace, event, begin, end);
		trace__put(trace, event);
	}
}
