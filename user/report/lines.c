/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config_json.h"
#include "report/json.h"
#include "report/lines.h"

static const char *const process_state_name[] = {
    [LINE_ATTACHED] = "attached", [LINE_DETACHED] = "detached", [LINE_REFUSED] = "refused", [LINE_EXITED] = "exited"};

const char *lines__workload_source(enum vapro_workload_source source)
{
	return source == VAPRO_BY_INSTRUCTIONS ? "instructions" : "arguments";
}

static char *finish(cJSON *object, bool ok)
{
	if (ok)
		return json__finish(object);
	cJSON_Delete(object);
	return NULL;
}

static bool add_pmu(cJSON *object, const struct line_hello *hello)
{
	cJSON *pmu = cJSON_AddObjectToObject(object, "pmu"), *counters;
	bool ok = pmu && cJSON_AddBoolToObject(pmu, "available", hello->pmu_available) &&
		  json__add_text(pmu, "reason", hello->pmu_reason);

	counters = ok ? cJSON_AddArrayToObject(object, "counters") : NULL;
	ok = counters;
	for (uint32_t i = 0; ok && i < hello->counter_count; i++) {
		const struct line_counter *counter = &hello->counters[i];
		cJSON *item = cJSON_CreateObject();

		ok = item && cJSON_AddItemToArray(counters, item) && json__add_text(item, "name", counter->name) &&
		     json__add_text(item, "provider", counter->provider) &&
		     cJSON_AddBoolToObject(item, "available", counter->available) &&
		     json__add_text(item, "reason", counter->reason);
	}
	return ok;
}

static bool add_factors(cJSON *object, const struct line_hello *hello)
{
	cJSON *factors = cJSON_AddArrayToObject(object, "factors");
	bool ok = factors;

	for (uint32_t i = 0; ok && i < hello->factor_count; i++) {
		const struct line_factor *factor = &hello->factors[i];
		cJSON *item = cJSON_CreateObject();

		ok = item && cJSON_AddItemToArray(factors, item) && json__add_text(item, "name", factor->name) &&
		     json__add_text(item, "source", factor->source) &&
		     cJSON_AddBoolToObject(item, "available", factor->available) &&
		     cJSON_AddBoolToObject(item, "approx", factor->approx) &&
		     json__add_text(item, "reason", factor->reason);
	}
	return ok;
}

static bool add_pauses(cJSON *object, const struct line_costs *costs)
{
	cJSON *pauses = cJSON_AddArrayToObject(object, "pauses");
	bool ok = pauses;

	for (uint32_t i = 0; ok && i < costs->pause_count; i++) {
		cJSON *item = cJSON_CreateObject();

		ok = item && cJSON_AddItemToArray(pauses, item) &&
		     json__add_number(item, "from_ns", costs->pauses[i].from_ns, 1) &&
		     json__add_number(item, "entry_ns", costs->pauses[i].entry_ns, 1) &&
		     json__add_number(item, "return_ns", costs->pauses[i].return_ns, 1);
	}
	return ok;
}

static bool add_costs(cJSON *object, const struct line_costs *costs)
{
	cJSON *item;

	if (!costs)
		return cJSON_AddNullToObject(object, "costs");
	item = cJSON_AddObjectToObject(object, "costs");
	return item && json__add_number(item, "entry_ns", costs->entry_ns, 1) &&
	       json__add_number(item, "return_ns", costs->return_ns, 1) &&
	       json__add_number(item, "stepped_ns", costs->stepped_ns, 1) &&
	       json__add_number(item, "nop5_ns", costs->nop5_ns, 1) &&
	       json__add_number(item, "syscall_ns", costs->syscall_ns, 1) &&
	       json__add_number(item, "bystander_ns", costs->bystander_ns, 1) &&
	       json__add_number(item, "beside_ns", costs->beside_ns, 1) &&
	       json__add_number(item, "sample_ns", costs->sample_ns, 1) &&
	       json__add_number(item, "program_entry_ns", costs->program_ns[0], 1) &&
	       json__add_number(item, "program_return_ns", costs->program_ns[1], 1) && add_pauses(item, costs);
}

static bool add_clock(cJSON *object, const struct stream_clock *clock)
{
	cJSON *pair = cJSON_AddObjectToObject(object, "clock");

	return pair && json__add_uint(pair, "mono_ns", clock->mono_ns) && json__add_time(pair, "utc", clock->utc_ns);
}

static bool add_modes(cJSON *object, const struct line_hello *hello)
{
	cJSON *modes = cJSON_AddArrayToObject(object, "ladder");
	bool ok = modes;

	for (uint32_t i = 0; ok && i < hello->mode_count; i++) {
		const struct line_mode *mode = &hello->modes[i];
		cJSON *item = cJSON_CreateObject();

		ok = item && cJSON_AddItemToArray(modes, item) && json__add_text(item, "rung", mode->name) &&
		     cJSON_AddBoolToObject(item, "tried", mode->tried) &&
		     cJSON_AddBoolToObject(item, "works", mode->works) && json__add_text(item, "reason", mode->reason);
	}
	return ok;
}

static bool add_fact(cJSON *object, const char *name, enum line_fact fact)
{
	return fact == LINE_UNKNOWN ? cJSON_AddNullToObject(object, name) != NULL
				    : cJSON_AddBoolToObject(object, name, fact == LINE_YES) != NULL;
}

static bool add_facts(cJSON *object, const struct line_facts *facts)
{
	cJSON *item;

	if (!facts)
		return cJSON_AddNullToObject(object, "facts");
	item = cJSON_AddObjectToObject(object, "facts");
	return item && add_fact(item, "uretprobe_syscall", facts->return_syscall) &&
	       add_fact(item, "nop5_syscall", facts->nop5_syscall) && add_fact(item, "emulation", facts->emulation) &&
	       add_fact(item, "thread_filter", facts->thread_filter);
}

char *lines__hello(const struct line_hello *hello)
{
	cJSON *object = json__head("hello", hello->utc_ns, hello->host);
	cJSON *tunables = config__to_json(hello->config);
	bool ok = object && json__add_text(object, "version", hello->version) &&
		  json__add_text(object, "kernel", hello->kernel) && json__add_text(object, "rung", hello->mode) &&
		  add_modes(object, hello) && add_facts(object, hello->facts) && add_pmu(object, hello) &&
		  add_factors(object, hello) &&
		  json__add_text(object, "workload_source", lines__workload_source(hello->workload_source)) &&
		  add_costs(object, hello->costs) && json__add(object, "tunables", tunables) &&
		  add_clock(object, &hello->clock);

	return finish(object, ok);
}

static bool add_image(cJSON *images, const struct line_image *image)
{
	cJSON *item = cJSON_CreateObject(), *list;
	bool ok = item && cJSON_AddItemToArray(images, item) && json__add_text(item, "path", image->path) &&
		  json__add_text(item, "build_id", image->build_id) &&
		  json__add_uint(item, "functions", image->functions) &&
		  json__add_uint(item, "shifted", image->shifted) && json__add_uint(item, "at_entry", image->at_entry);

	list = ok ? cJSON_AddArrayToObject(item, "skipped") : NULL;
	ok = list;
	for (uint32_t i = 0; ok && i < image->skipped_count; i++) {
		cJSON *skipped = cJSON_CreateObject();

		ok = skipped && cJSON_AddItemToArray(list, skipped) &&
		     json__add_text(skipped, "function", image->skipped[i].function) &&
		     json__add_text(skipped, "reason", image->skipped[i].reason);
	}
	return ok;
}

static bool add_job(cJSON *object, const struct line_process *process)
{
	cJSON *job = cJSON_AddObjectToObject(object, "job");

	return job && json__add_text(job, "kind", process->job_kind) && json__add_text(job, "id", process->job_id) &&
	       json__add_text(job, "step", process->job_step) && json__add_text(job, "identity", process->job) &&
	       (!process->user || json__add_uint(job, "uid", process->user - 1));
}

char *lines__process(const struct line_process *process)
{
	cJSON *object = json__head("process", process->utc_ns, process->host), *images;
	bool ok = object && json__add_uint(object, "pid", process->pid) &&
		  (process->start_utc_ns ? json__add_time(object, "start_time", process->start_utc_ns)
					 : json__add_text(object, "start_time", NULL)) &&
		  json__add_text(object, "exe", process->exe) &&
		  json__add_text(object, "build_id", process->build_id) &&
		  (!process->command || json__add_text(object, "command", process->command)) &&
		  (!process->user_name || json__add_text(object, "user", process->user_name)) &&
		  json__add_number(object, "rank", process->rank >= 0 ? process->rank : NAN, 0) &&
		  (process->world_size ? json__add_uint(object, "world_size", process->world_size)
				       : json__add_number(object, "world_size", NAN, 0)) &&
		  add_job(object, process) && json__add_uint(object, "threads", process->threads);

	images = ok ? cJSON_AddArrayToObject(object, "images") : NULL;
	ok = images;
	for (uint32_t i = 0; ok && i < process->image_count; i++)
		ok = add_image(images, &process->images[i]);
	ok = ok && json__add_uint(object, "hits", process->hits) &&
	     json__add_uint(object, "returns", process->returns) &&
	     json__add_number(object, "attach_cpu_ms", process->attach_cpu_ms, 3) &&
	     json__add_text(object, "state", process_state_name[process->state]) &&
	     json__add_text(object, "reason", process->reason);
	return finish(object, ok);
}

char *lines__warning(const struct line_warning *warning)
{
	cJSON *object = json__head("warning", warning->utc_ns, warning->host);
	bool ok = object && json__add_text(object, "code", warning->code) &&
		  json__add_text(object, "text", warning->text) &&
		  json__add_number(object, "pid", warning->pid ? warning->pid : NAN, 0);

	if (ok && warning->count)
		ok = json__add_uint(object, "count", warning->count);
	return finish(object, ok);
}

static bool add_events(cJSON *object, const char *events)
{
	cJSON *array = cJSON_AddArrayToObject(object, "counters");
	bool ok = array;

	while (ok && events && *events) {
		size_t length = strcspn(events, ",");
		char *name = strndup(events, length);
		cJSON *item = name ? cJSON_CreateString(name) : NULL;

		free(name);
		ok = item && cJSON_AddItemToArray(array, item);
		events += length + (events[length] == ',');
	}
	return ok;
}

char *lines__stage(const struct line_stage *stage)
{
	cJSON *object = json__head("stage", stage->utc_ns, stage->host);
	char text[640];
	bool ok;

	if (stage->refused)
		snprintf(text, sizeof(text), "the parts of %s cannot be counted here: %s", stage->expand,
			 stage->refused);
	else if (stage->expand)
		snprintf(text, sizeof(text),
			 "the parts of %s are counted from now on, for a variance of %s in which it is a "
			 "major factor",
			 stage->expand, stage->job ? stage->job : "a job");
	else
		snprintf(text, sizeof(text), "the time as a whole is counted again: no variance needs more");
	ok = object && json__add_uint(object, "stage", stage->stage) &&
	     json__add_text(object, "parts_of", stage->expand) &&
	     cJSON_AddBoolToObject(object, "counted", !stage->refused) &&
	     json__add_text(object, "reason", stage->refused) && json__add_text(object, "job", stage->job) &&
	     json__add_number(object, "variance", stage->variance ? (double)stage->variance : NAN, 0) &&
	     add_events(object, stage->events) &&
	     json__add_number(object, "uncounted_ms", (double)stage->uncounted_ns * 1e-6, 3) &&
	     json__add_text(object, "text", text);
	return finish(object, ok);
}

char *lines__bye(const struct line_bye *bye)
{
	const struct line_totals *totals = &bye->totals;
	cJSON *object = json__head("bye", bye->utc_ns, bye->host), *item, *lost;
	bool ok;

	item = object ? cJSON_AddObjectToObject(object, "totals") : NULL;
	ok = item && json__add_uint(item, "windows", totals->windows) &&
	     json__add_uint(item, "variances", totals->variances) && json__add_uint(item, "alarms", totals->alarms) &&
	     json__add_uint(item, "bundles", totals->bundles) && json__add_uint(item, "fragments", totals->fragments);
	lost = ok ? cJSON_AddObjectToObject(item, "lost") : NULL;
	ok = lost;
	for (int i = 0; ok && i < VAPRO_LOSSES; i++)
		ok = json__add_uint(lost, vapro_loss_name[i], totals->lost[i]);
	ok = ok && json__add_uint(item, "lost_lines", totals->lost_lines) &&
	     json__add_uint(item, "refused", totals->refused) &&
	     json__add_uint(item, "untracked_hits", totals->untracked_hits) &&
	     json__add_text(object, "exit_reason", bye->exit_reason);
	return finish(object, ok);
}
