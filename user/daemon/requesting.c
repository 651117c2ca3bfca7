// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Carries out what workers request for the jobs of this node (docs/many-nodes.md): what its own analysis may request,
 * within the same limits, and nothing else. A refused request is counted, and each reason is reported once, in the
 * records of the node, which its workers read.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/printable.h"
#include "daemon/daemon_private.h"
#include "overhead/enforcer.h"
#include "wire/hash.h"
#include "wire/request.h"

#define AT_ONCE 32		/* requests in a second; what a worker sends in a window are a few */
#define VALID_NS 60000000000ULL /* without a new request the node's own analysis decides again */
#define HOPS_MOST 256		/* call-sites in a run that are hopped for workers */
#define SET_WINDOWS 3		/* a set is requested for that many windows at least */
#define REASON 512

/* Counts a refusal, and reports its reason once. */
__attribute__((format(printf, 2, 3))) static void refuse(struct daemon *daemon, const char *format, ...)
{
	struct remote *remote = &daemon->remote;
	va_list arguments;
	char text[REASON];
	uint32_t digest;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	remote->refused++;
	digest = (uint32_t)wire__hash(text, strlen(text));
	for (unsigned i = 0; i < remote->reason_count; i++) {
		if (remote->reasons[i] == digest)
			return;
	}
	if (remote->reason_count == REFUSALS_REPORTED)
		return;
	remote->reasons[remote->reason_count++] = digest;
	tracker__warn(daemon->tracker, "request_refused", 0, "a request of a worker is refused: %s", printable(text));
}

static void take_stage(struct daemon *daemon, const struct wire_request *request)
{
	struct remote *remote = &daemon->remote;
	const struct event_group *group = NULL;
	bool interrupts = request->interrupts && daemon->options->config.interrupts == VAPRO_AUTO;

	if (request->interrupts && daemon->options->config.interrupts == VAPRO_OFF)
		refuse(daemon, "interrupts are not timed here (--interrupts off)");
	if (*request->expand) {
		if (counters__count(daemon->counters))
			group = counters__find(daemon->counters, request->stage, request->expand);
		if (!group) {
			refuse(daemon, "the parts of %s cannot be counted here: %s", request->expand,
			       counters__count(daemon->counters) ? "no events that part it are known for this CPU"
								 : "this node counts no events");
			/* interrupts need no counters */
			if (!interrupts)
				return;
		}
	}
	remote->accepted++;
	/* a job that needs nothing takes nothing away from another one */
	if (!group && !interrupts && strcmp(remote->stage_job, request->job) != 0)
		return;
	snprintf(remote->stage_job, sizeof(remote->stage_job), "%s", request->job);
	remote->stage = (struct vapro_stage_request){
	    .stage = group ? request->stage : 1,
	    .expand = group ? group->parent : NULL,
	    .job = remote->stage_job,
	    .variance = group ? request->variance : 0,
	    .interrupts = interrupts,
	};
	remote->stage_until_ns = mono_now() + VALID_NS;
}

/* Returns whether a thread is one of a process that is watched: no other is sampled. */
static bool is_watched(const struct daemon *daemon, uint32_t tid)
{
	char path[40], text[1024], *tgid;
	FILE *file;
	size_t size;

	snprintf(path, sizeof(path), "/proc/%u/status", tid);
	file = fopen(path, "re");
	if (!file)
		return false;
	size = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[size] = 0;
	tgid = strstr(text, "\nTgid:\t");
	return tgid && tracker__tracks(daemon->tracker, (pid_t)strtol(tgid + strlen("\nTgid:\t"), NULL, 10));
}

static void take_inside(struct daemon *daemon, const struct wire_request *request)
{
	struct remote *remote = &daemon->remote;

	if (!daemon->sampler) {
		refuse(daemon, "threads are not sampled here (--inside off, or the kernel cannot)");
		return;
	}
	/* the threads of other nodes of the job are in the request, too */
	remote->inside.count = 0;
	for (uint32_t i = 0; i < request->inside.count; i++) {
		if (is_watched(daemon, request->inside.tids[i]))
			remote->inside.tids[remote->inside.count++] = request->inside.tids[i];
	}
	remote->accepted++;
	remote->inside_until_ns = mono_now() + VALID_NS;
	daemon__select_inside(daemon);
}

static void take_hop(struct daemon *daemon, struct wire_request *request)
{
	struct vapro_hop_event event = {
	    .hop = request->hop, .site = request->site, .symbol = *request->symbol ? request->symbol : NULL};
	struct remote *remote = &daemon->remote;

	if (daemon->options->config.states == VAPRO_BY_CALL_PATH) {
		refuse(daemon, "states are call-paths here (states): calls have their callers already");
		return;
	}
	if (remote->hops == HOPS_MOST) {
		refuse(daemon, "%d call-sites were distinguished for workers in this run, and no more are", HOPS_MOST);
		return;
	}
	/* a request that cannot be carried out yet is repeated by the worker */
	if (!daemon__carry_out_hop(daemon, &event))
		return;
	remote->hops++;
	if (event.hop == VAPRO_HOP_REFUSED)
		remote->refused++; /* the stream has the reason */
	else
		remote->accepted++;
}

static void take_set(struct daemon *daemon, const struct wire_request *request)
{
	char why[ENFORCER_WHY];
	double window_ns = daemon->options->config.window_s * 1e9;
	uint32_t units;

	if (!functions__read_units(request->without, &units)) {
		refuse(daemon, "'%s' is no list of functions that never wait, and no others are left out",
		       request->without);
		return;
	}
	snprintf(why, sizeof(why),
		 "the overhead budget of node %.90s requires that, and worker %.90s requests it for all nodes of job "
		 "%.90s, so that their ranks are compared",
		 request->host, request->worker, request->job);
	printable(why);
	/* the worker makes its requests after each window */
	if (!tracker__follow(daemon->tracker, request, units,
			     mono_now() + (uint64_t)fmax(VALID_NS, SET_WINDOWS * window_ns), why)) {
		refuse(daemon, "no process of job %s maps %s for its MPI functions here", request->job, request->image);
		return;
	}
	daemon->remote.accepted++;
}

static void take(struct daemon *daemon, const char *bytes, size_t size)
{
	struct wire_request request;
	char why[256];

	if (wire_request__parse(&request, bytes, size, why, sizeof(why))) {
		refuse(daemon, "%s", why);
		return;
	}
	if (!tracker__program(daemon->tracker, request.job, request.user)) {
		refuse(daemon, "no process of job %s of uid %lld is watched here", request.job,
		       (long long)request.user - 1);
		return;
	}
	switch (request.kind) {
	case WIRE_REQUEST_STAGE:
		take_stage(daemon, &request);
		break;
	case WIRE_REQUEST_INSIDE:
		take_inside(daemon, &request);
		break;
	case WIRE_REQUEST_HOP:
		take_hop(daemon, &request);
		break;
	case WIRE_REQUEST_SET:
		take_set(daemon, &request);
		break;
	case WIRE_REQUEST_KINDS:
		break;
	}
}

void daemon__take_requests(struct daemon *daemon)
{
	struct remote *remote = &daemon->remote;
	char bytes[WIRE_REQUEST_MAX];
	struct requests *requests;
	uint64_t dropped;
	size_t size;

	if (!daemon->tee.publishing)
		return;
	requests = publishing__requests(daemon->tee.publishing);
	for (int i = 0; i < AT_ONCE && requests__next(requests, bytes, &size); i++)
		take(daemon, bytes, size);
	dropped = requests__dropped(requests);
	if (dropped && !remote->dropped)
		tracker__warn(daemon->tracker, "request_refused", 0,
			      "requests of workers come faster than %d a second, or are larger than %d bytes: the "
			      "others are dropped",
			      AT_ONCE, WIRE_REQUEST_MAX);
	remote->dropped = dropped;
}

bool daemon__remote_stage(const struct daemon *daemon, struct vapro_stage_request *request)
{
	/* one for the whole of the time leaves the parts to the own analysis */
	if (mono_now() >= daemon->remote.stage_until_ns || !daemon->remote.stage.expand)
		return false;
	*request = daemon->remote.stage;
	return true;
}

bool daemon__remote_interrupts(const struct daemon *daemon)
{
	return mono_now() < daemon->remote.stage_until_ns && daemon->remote.stage.interrupts;
}

void daemon__refuse_remote_stage(struct daemon *daemon)
{
	daemon->remote.refused++;
	daemon->remote.accepted--;
	daemon->remote.stage_until_ns = 0;
}

void daemon__add_remote_inside(const struct daemon *daemon, struct vapro_inside_request *request)
{
	const struct remote *remote = &daemon->remote;
	struct vapro_inside_request all = {.count = 0};
	const struct vapro_inside_request *const sources[] = {&remote->inside, request};

	if (mono_now() >= remote->inside_until_ns)
		return;
	for (int source = 0; source < 2; source++) {
		for (uint32_t i = 0; i < sources[source]->count && all.count < VAPRO_INSIDE_THREADS; i++) {
			bool known = false;

			for (uint32_t k = 0; k < all.count; k++)
				known |= all.tids[k] == sources[source]->tids[i];
			if (!known)
				all.tids[all.count++] = sources[source]->tids[i];
		}
	}
	*request = all;
}
