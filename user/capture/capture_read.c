/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A replay passes one capture through as it is, and merges several (capture_merge.c). */
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "capture/capture.h"
#include "capture/capture_file.h"
#include "capture/capture_merge.h"
#include "config/config_json.h"

/* The rest after the last window of a file that was cut short is analysed as a last window. */
struct tail {
	struct stream_clock clock;
	uint64_t begin_ns, end_ns; /* UTC */
	bool ended;		   /* the last window came */
};

static void tail__note(struct tail *tail, const struct stream_event *event)
{
	uint64_t offset = tail->clock.utc_ns - tail->clock.mono_ns, start, end;

	switch (event->type) {
	case STREAM_CLOCK:
		tail->clock = event->clock;
		break;
	case STREAM_BUNDLE:
		start = event->bundle.start_ns + offset;
		end = event->bundle.end_ns + offset;
		if (!tail->begin_ns)
			tail->begin_ns = start / VAPRO_BIN_NS * VAPRO_BIN_NS;
		if (end > tail->end_ns)
			tail->end_ns = end;
		break;
	case STREAM_WINDOW:
		tail->begin_ns = event->window.end_ns;
		tail->ended = event->window.last;
		break;
	default:
		break;
	}
}

static int tail__close(const struct tail *tail, struct stream_sink *sink)
{
	struct stream_event event = {.type = STREAM_WINDOW};

	if (tail->ended || !tail->clock.utc_ns || tail->end_ns < tail->begin_ns || !tail->end_ns)
		return 0;
	event.window.begin_ns = tail->begin_ns;
	event.window.end_ns = (tail->end_ns / VAPRO_BIN_NS + 1) * VAPRO_BIN_NS;
	event.window.last = true;
	return stream__put(sink, &event);
}

static int replay_one(const char *path, int run, struct stream_sink *sink, char *err, size_t err_size)
{
	struct capture_file *file = capture_file__open(path, run, err, err_size);
	struct stream_event event;
	struct tail tail = {0};
	int ret, put = 0;

	if (!file)
		return -errno;
	while ((ret = capture_file__next(file, &event, err, err_size)) > 0) {
		tail__note(&tail, &event);
		put = stream__put(sink, &event);
		if (put)
			break;
	}
	if (!put && ret < 0)
		put = tail__close(&tail, sink);
	if (put) {
		snprintf(err, err_size, "%s: the replay stopped: %s", path, strerror(-put));
		ret = put;
	}
	capture_file__close(file);
	return ret == -ENODATA ? 1 : ret;
}

int capture__replay(const char *const *paths, size_t count, struct stream_sink *sink, char *err, size_t err_size)
{
	return capture__replay_run(paths, count, CAPTURE_LAST_RUN, sink, err, err_size);
}

int capture__replay_run(const char *const *paths, size_t count, int run, struct stream_sink *sink, char *err,
			size_t err_size)
{
	if (err_size)
		err[0] = 0;
	if (count == 1)
		return replay_one(paths[0], run, sink, err, err_size);
	return capture_merge(paths, count, run, sink, NULL, err, err_size);
}

/* Available events have their places in the order in which they were wanted. */
static void read_counters(struct capture_info *info, const cJSON *counters)
{
	struct rules rules;
	char why[256];
	int found = 0;

	if (rules__parse(&rules, info->config.workload, info->config.bands, why, sizeof(why)))
		return;
	for (unsigned i = 0; i < rules.event_count && found < RULES_NAMED; i++) {
		const cJSON *counter;

		cJSON_ArrayForEach(counter, counters)
		{
			const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(counter, "name"));

			if (!name || strcmp(name, rules.events[i].name) ||
			    !cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(counter, "available")))
				continue;
			snprintf(info->named[found++], sizeof(info->named[0]), "%s", name);
			break;
		}
	}
}

void capture_info__hello(struct capture_info *info, const char *line)
{
	cJSON *object = cJSON_Parse(line);
	const char *type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "type"));
	const char *source = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "workload_source"));
	const char *host = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "host"));

	if (type && !strcmp(type, "hello")) {
		info->by_instructions = source && !strcmp(source, "instructions");
		snprintf(info->host, sizeof(info->host), "%s", host ? host : "");
		read_counters(info, cJSON_GetObjectItemCaseSensitive(object, "counters"));
	}
	cJSON_Delete(object);
}

int capture__info(const char *path, struct capture_info *info, char *err, size_t err_size)
{
	return capture__run_info(path, CAPTURE_LAST_RUN, info, err, err_size);
}

int capture__run_info(const char *path, int run, struct capture_info *info, char *err, size_t err_size)
{
	struct capture_file *file;
	struct stream_event event;
	int ret;

	memset(info, 0, sizeof(*info));
	config__init(&info->config);
	file = capture_file__open(path, run, err, err_size);
	if (!file)
		return -errno;
	info->runs = capture_file__runs(file, &info->run);
	ret = config__from_text(&info->config, capture_file__tunables(file), err, err_size);
	/* the replay reports damage further on */
	while (!ret && !info->host[0] && capture_file__next(file, &event, err, err_size) > 0 &&
	       event.type != STREAM_WINDOW) {
		if (event.type == STREAM_LINE)
			capture_info__hello(info, event.line.text);
	}
	capture_file__close(file);
	return ret;
}
