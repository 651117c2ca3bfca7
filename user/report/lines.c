/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config_json.h"
#include "report/job_book.h"
#include "report/json.h"
#include "report/record.h"
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
	cJSON *pmu = record__put_object(object, KEY(hello, pmu)), *counters;
	bool ok = pmu && record__put_bool(pmu, KEY(pmu, available), hello->pmu_available) &&
		  record__put_text(pmu, KEY(pmu, reason), hello->pmu_reason);

	counters = ok ? record__put_list(object, KEY(hello, counters)) : NULL;
	ok = counters;
	for (uint32_t i = 0; ok && i < hello->counter_count; i++) {
		const struct line_counter *counter = &hello->counters[i];
		cJSON *item = record__append(counters);

		ok = item && record__put_text(item, KEY(counter, name), counter->name) &&
		     record__put_text(item, KEY(counter, provider), counter->provider) &&
		     record__put_bool(item, KEY(counter, available), counter->available) &&
		     record__put_text(item, KEY(counter, reason), counter->reason);
	}
	return ok;
}

static bool add_factors(cJSON *object, const struct line_hello *hello)
{
	cJSON *factors = record__put_list(object, KEY(hello, factors));
	bool ok = factors;

	for (uint32_t i = 0; ok && i < hello->factor_count; i++) {
		const struct line_factor *factor = &hello->factors[i];
		cJSON *item = record__append(factors);

		ok = item && record__put_text(item, KEY(os_factor, name), factor->name) &&
		     record__put_text(item, KEY(os_factor, source), factor->source) &&
		     record__put_bool(item, KEY(os_factor, available), factor->available) &&
		     record__put_bool(item, KEY(os_factor, approx), factor->approx) &&
		     record__put_text(item, KEY(os_factor, reason), factor->reason);
	}
	return ok;
}

static bool add_pauses(cJSON *object, const struct line_costs *costs)
{
	cJSON *pauses = record__put_list(object, KEY(costs, pauses));
	bool ok = pauses;

	for (uint32_t i = 0; ok && i < costs->pause_count; i++) {
		cJSON *item = record__append(pauses);

		ok = item && record__put_number(item, KEY(pause, from_ns), costs->pauses[i].from_ns) &&
		     record__put_number(item, KEY(pause, entry_ns), costs->pauses[i].entry_ns) &&
		     record__put_number(item, KEY(pause, return_ns), costs->pauses[i].return_ns);
	}
	return ok;
}

static bool add_costs(cJSON *object, const struct line_costs *costs)
{
	cJSON *item;

	if (!costs)
		return record__put_null(object, KEY(hello, costs));
	item = record__put_object(object, KEY(hello, costs));
	return item && record__put_number(item, KEY(costs, entry_ns), costs->entry_ns) &&
	       record__put_number(item, KEY(costs, return_ns), costs->return_ns) &&
	       record__put_number(item, KEY(costs, nop5_ns), costs->nop5_ns) &&
	       record__put_number(item, KEY(costs, syscall_ns), costs->syscall_ns) &&
	       record__put_number(item, KEY(costs, bystander_ns), costs->bystander_ns) &&
	       record__put_number(item, KEY(costs, beside_ns), costs->beside_ns) &&
	       record__put_number(item, KEY(costs, sample_ns), costs->sample_ns) && add_pauses(item, costs);
}

static bool add_clock(cJSON *object, const struct stream_clock *clock)
{
	cJSON *pair = record__put_object(object, KEY(hello, clock));

	return pair && record__put_uint(pair, KEY(clock, mono_ns), clock->mono_ns) &&
	       record__put_time(pair, KEY(clock, utc), clock->utc_ns);
}

static bool add_modes(cJSON *object, const struct line_hello *hello)
{
	cJSON *modes = record__put_list(object, KEY(hello, attach_modes));
	bool ok = modes;

	for (uint32_t i = 0; ok && i < hello->mode_count; i++) {
		const struct line_mode *mode = &hello->modes[i];
		cJSON *item = record__append(modes);

		ok = item && record__put_text(item, KEY(attach_mode, name), mode->name) &&
		     record__put_bool(item, KEY(attach_mode, works), mode->works) &&
		     record__put_text(item, KEY(attach_mode, reason), mode->reason);
	}
	return ok;
}

char *lines__hello(const struct line_hello *hello)
{
	cJSON *object = record__begin(RECORD_OBJECT_hello, hello->utc_ns, hello->host);
	cJSON *tunables = config__to_json(hello->config);
	bool ok =
	    object && record__put_text(object, KEY(hello, version), hello->version) &&
	    record__put_text(object, KEY(hello, kernel), hello->kernel) &&
	    record__put_text(object, KEY(hello, attach_mode), hello->mode) && add_modes(object, hello) &&
	    add_pmu(object, hello) && add_factors(object, hello) &&
	    record__put_text(object, KEY(hello, workload_source), lines__workload_source(hello->workload_source)) &&
	    add_costs(object, hello->costs) && record__put(object, KEY(hello, tunables), tunables) &&
	    add_clock(object, &hello->clock);

	return finish(object, ok);
}

static bool add_image(cJSON *images, const struct line_image *image)
{
	cJSON *item = record__append(images), *list;
	bool ok = item && record__put_text(item, KEY(image, path), image->path) &&
		  record__put_text(item, KEY(image, build_id), image->build_id) &&
		  record__put_uint(item, KEY(image, functions), image->functions) &&
		  record__put_uint(item, KEY(image, shifted), image->shifted);

	list = ok ? record__put_list(item, KEY(image, skipped)) : NULL;
	ok = list;
	for (uint32_t i = 0; ok && i < image->skipped_count; i++) {
		cJSON *skipped = record__append(list);

		ok = skipped &&
		     record__put_text(skipped, KEY(skipped_function, function), image->skipped[i].function) &&
		     record__put_text(skipped, KEY(skipped_function, reason), image->skipped[i].reason);
	}
	return ok;
}

static bool add_job(cJSON *object, const struct line_process *process)
{
	cJSON *job = record__put_object(object, KEY(process, job));

	return job && record__put_text(job, KEY(process_job, kind), process->job_kind) &&
	       record__put_text(job, KEY(process_job, id), process->job_id) &&
	       record__put_text(job, KEY(process_job, step), process->job_step) &&
	       record__put_text(job, KEY(process_job, identity), process->job) &&
	       (!process->user || record__put_uint(job, KEY(process_job, uid), process->user - 1)) &&
	       job_book__put(job, KEY(process_job, names), process->names);
}

char *lines__process(const struct line_process *process)
{
	cJSON *object = record__begin(RECORD_OBJECT_process, process->utc_ns, process->host), *images;
	bool ok = object && record__put_uint(object, KEY(process, pid), process->pid) &&
		  (process->start_utc_ns ? record__put_time(object, KEY(process, start_time), process->start_utc_ns)
					 : record__put_text(object, KEY(process, start_time), NULL)) &&
		  record__put_text(object, KEY(process, exe), process->exe) &&
		  record__put_text(object, KEY(process, build_id), process->build_id) &&
		  (!process->command || record__put_text(object, KEY(process, command), process->command)) &&
		  (!process->user_name || record__put_text(object, KEY(process, user), process->user_name)) &&
		  record__put_number(object, KEY(process, rank), process->rank >= 0 ? (double)process->rank : NAN) &&
		  (process->world_size ? record__put_uint(object, KEY(process, world_size), process->world_size)
				       : record__put_number(object, KEY(process, world_size), NAN)) &&
		  add_job(object, process) && record__put_uint(object, KEY(process, threads), process->threads);

	images = ok ? record__put_list(object, KEY(process, images)) : NULL;
	ok = images;
	for (uint32_t i = 0; ok && i < process->image_count; i++)
		ok = add_image(images, &process->images[i]);
	ok = ok && record__put_uint(object, KEY(process, hits), process->hits) &&
	     record__put_uint(object, KEY(process, returns), process->returns) &&
	     record__put_number(object, KEY(process, attach_cpu_ms), process->attach_cpu_ms) &&
	     record__put_text(object, KEY(process, state), process_state_name[process->state]) &&
	     record__put_text(object, KEY(process, reason), process->reason);
	return finish(object, ok);
}

char *lines__warning(const struct line_warning *warning)
{
	cJSON *object = record__begin(RECORD_OBJECT_warning, warning->utc_ns, warning->host);
	bool ok = object && record__put_text(object, KEY(warning, code), warning->code) &&
		  record__put_text(object, KEY(warning, text), warning->text) &&
		  record__put_number(object, KEY(warning, pid), warning->pid ? warning->pid : NAN);

	if (ok && warning->count)
		ok = record__put_uint(object, KEY(warning, count), warning->count);
	return finish(object, ok);
}

static bool add_events(cJSON *object, const char *events)
{
	cJSON *array = record__put_list(object, KEY(stage, counters));
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
	cJSON *object = record__begin(RECORD_OBJECT_stage, stage->utc_ns, stage->host);
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
	ok = object && record__put_uint(object, KEY(stage, stage), stage->stage) &&
	     record__put_text(object, KEY(stage, parts_of), stage->expand) &&
	     record__put_bool(object, KEY(stage, counted), !stage->refused) &&
	     record__put_text(object, KEY(stage, reason), stage->refused) &&
	     record__put_text(object, KEY(stage, job), stage->job) &&
	     record__put_number(object, KEY(stage, variance), stage->variance ? (double)stage->variance : NAN) &&
	     add_events(object, stage->events) &&
	     record__put_number(object, KEY(stage, uncounted_ms), (double)stage->uncounted_ns * 1e-6) &&
	     record__put_text(object, KEY(stage, text), text);
	return finish(object, ok);
}

char *lines__bye(const struct line_bye *bye)
{
	const struct line_totals *totals = &bye->totals;
	cJSON *object = record__begin(RECORD_OBJECT_bye, bye->utc_ns, bye->host), *item, *lost;
	bool ok;

	item = object ? record__put_object(object, KEY(bye, totals)) : NULL;
	ok = item && record__put_uint(item, KEY(totals, windows), totals->windows) &&
	     record__put_uint(item, KEY(totals, variances), totals->variances) &&
	     record__put_uint(item, KEY(totals, alarms), totals->alarms) &&
	     record__put_uint(item, KEY(totals, bundles), totals->bundles) &&
	     record__put_uint(item, KEY(totals, fragments), totals->fragments);
	lost = ok ? record__put_object(item, KEY(totals, lost)) : NULL;
	ok = lost;
	for (int i = 0; ok && i < VAPRO_LOSSES; i++)
		ok = record__put_named(lost, KEY(totals, lost), vapro_loss_name[i], (double)totals->lost[i]);
	ok = ok && record__put_uint(item, KEY(totals, lost_lines), totals->lost_lines) &&
	     record__put_uint(item, KEY(totals, refused), totals->refused) &&
	     record__put_uint(item, KEY(totals, untracked_hits), totals->untracked_hits) &&
	     record__put_text(object, KEY(bye, reason), bye->reason);
	return finish(object, ok);
}
