// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Carries out what the analysis requests of the node, and what workers request for its jobs: counters, samples of slow
 * computation, hops.
 */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/printable.h"
#include "base/text.h"
#include "daemon/daemon_private.h"
#include "overhead/enforcer.h"
#include "overhead/sample_cost.h"
#include "probe/bpf/sampler.h"
#include "pipeline/pipeline.h"
#include "wire/request.h"

/*
 * Carries out and reports, for all processes at once, the analysis' decisions which call-sites are hopped to their
 * callers (model/hops.h): a replay has the states that were seen, and the decisions as events.
 */

#define AT_ONCE 8 /* decisions a second; others wait for the next one */

/* Words a call-site for people: by its function and line, its symbol or its name, what is known. malloc'ed; or NULL. */
static char *words_of(const struct daemon *daemon, const struct vapro_hop_event *event)
{
	char *place = pipeline__place(daemon->tee.pipeline, event->site);

	return place ? place : strdup(event->symbol ? event->symbol : event->site);
}

/* Returns whether a refusal was reported: once for all call-sites of an image that share the reason. */
static bool is_known(struct daemon *daemon, const struct vapro_hop_event *event)
{
	struct hop_refusals *refusals = &daemon->refusals;
	char *image;

	if (refusals->count == HOP_REFUSALS)
		return true;
	image = refusals->image[refusals->count];
	snprintf(image, sizeof(refusals->image[0]), "%.*s", (int)strcspn(event->site, "@"), event->site);
	for (unsigned i = 0; i < refusals->count; i++)
		if (refusals->reason[i] == event->reason && !strcmp(refusals->image[i], image))
			return true;
	refusals->reason[refusals->count++] = event->reason;
	return false;
}

static void say(struct daemon *daemon, const struct vapro_hop_event *event)
{
	char *words = words_of(daemon, event);
	const char *shown = words ? words : event->site;

	switch (event->hop) {
	case VAPRO_HOP_UP:
		tracker__warn(
		    daemon->tracker, "hopped", 0,
		    "times between the calls at %s (%s) spread: from now on its calls are distinguished by their "
		    "callers, and stay so if that makes times steady",
		    shown, event->site);
		break;
	case VAPRO_HOP_BACK:
		tracker__warn(daemon->tracker, "hopped_back", 0,
			      "times between the calls at %s (%s) spread for every caller: its calls are no longer "
			      "distinguished by their callers",
			      shown, event->site);
		break;
	case VAPRO_HOP_REFUSED:
		if (!is_known(daemon, event))
			tracker__warn(
			    daemon->tracker, "hop_refused", 0,
			    "times between the calls at %s (%s) spread, but its calls cannot be distinguished by "
			    "their callers: it %s",
			    shown, event->site, event->reason);
		break;
	case VAPRO_HOP_NONE:
	case VAPRO_HOP_STAYS:
	case VAPRO_HOPS:
		break;
	}
	free(words);
}

/* Carries a decision out. Returns false where the frame of its call-site is not known yet: then it is to be made again.
 */
static bool carry_out_hop(struct daemon *daemon, struct vapro_hop_event *event)
{
	struct stream_event done = {.type = STREAM_HOP, .hop = {.begin_ns = mono_now(), .site = event->site}};
	bool top = false, up = event->hop == VAPRO_HOP_UP;
	int status = 0;

	if (event->hop != VAPRO_HOP_STAYS)
		status = resolver__hop(daemon->resolver, event->site, up, &event->reason, &top);
	if (status == -EAGAIN)
		return false;
	if (status)
		event->hop = VAPRO_HOP_REFUSED;
	if (!top) /* a caller without callers is not worth a report */
		say(daemon, event);
	done.hop.end_ns = mono_now();
	done.hop.hop = event->hop;
	done.hop.symbol = event->symbol;
	done.hop.reason = event->reason;
	stream__put(&daemon->tee.sink, &done);
	return true;
}

void daemon__hop(struct daemon *daemon)
{
	struct vapro_hop_event event;
	char text[512];

	if (daemon->options->config.states == VAPRO_BY_CALL_PATH)
		return;
	for (int i = 0; i < AT_ONCE; i++) {
		pipeline__hop_request(daemon->tee.pipeline, mono_now(), &event);
		if (event.hop == VAPRO_HOP_NONE || !carry_out_hop(daemon, &event))
			break;
	}
	while (resolver__hop_trouble(daemon->resolver, text, sizeof(text)))
		tracker__warn(daemon->tracker, "hop_refused", 0, "%s", text);
}

/*
 * Requests of workers (docs/many-nodes.md): what the node's own analysis may request, within the same limits, and
 * nothing else. A refused request is counted, and each reason is reported once, in the records of the node, which its
 * workers read.
 */
#define REQUESTS_AT_ONCE 32	/* requests in a second; what a worker sends in a window are a few */
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
	digest = (uint32_t)text__hash(text, strlen(text));
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
	if (!carry_out_hop(daemon, &event))
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
		refuse(daemon, "'%s' is no list of functions that can be left out", request->without);
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
	for (int i = 0; i < REQUESTS_AT_ONCE && requests__next(requests, bytes, &size); i++)
		take(daemon, bytes, size);
	dropped = requests__dropped(requests);
	if (dropped && !remote->dropped)
		tracker__warn(daemon->tracker, "request_refused", 0,
			      "requests of workers come faster than %d a second, or are larger than %d bytes: the "
			      "others are dropped",
			      REQUESTS_AT_ONCE, WIRE_REQUEST_MAX);
	remote->dropped = dropped;
}

/* Reads the counters that a worker requests at present. Returns false without a request: then the node's own analysis
 * decides. */
static bool remote_stage(const struct daemon *daemon, struct vapro_stage_request *request)
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

/* Forgets a request for counters that this node cannot follow: *expand, which the stream has refused. */
static void refuse_remote_stage(struct daemon *daemon)
{
	daemon->remote.refused++;
	daemon->remote.accepted--;
	daemon->remote.stage_until_ns = 0;
}

/* Puts the threads that a worker requests to sample before those of the request, up to VAPRO_INSIDE_THREADS. */
static void add_remote_inside(const struct daemon *daemon, struct vapro_inside_request *request)
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

/*
 * The progressive diagnosis drives the counters (VAPRO (PPoPP'22) section 4.3): what the analysis requests
 * after a window is counted until the next window ends. One group is on at a time, for the whole node.
 */

static void emit_stage(struct daemon *daemon, const struct vapro_stage_request *request, uint64_t begin_ns,
		       const char *refused)
{
	char events[512];
	struct stream_event event = {.type = STREAM_STAGE,
				     .stage = {.begin_ns = begin_ns,
					       .end_ns = mono_now(),
					       .stage = (uint32_t)request->stage,
					       .expand = request->expand,
					       .job = request->job,
					       .variance = request->variance,
					       .events = refused ? NULL : events,
					       .refused = refused}};

	if (refused)
		log__warning("the parts of %s cannot be counted here: %s", request->expand, refused);
	counters__names(daemon->counters, events, sizeof(events));
	stream__put(&daemon->tee.sink, &event);
}

/* Counts the whole of the time again, as whenever no parts are requested or countable. */
static void count_all(struct daemon *daemon, uint64_t begin_ns)
{
	const struct vapro_stage_request whole = {.stage = 1};
	char err[256];
	int status = counters__switch(daemon->counters, kernel_side__bpf(daemon->side),
				      counters__find(daemon->counters, 1, NULL), err, sizeof(err));
	bool lost = !counters__count(daemon->counters);

	if (status && lost != daemon->counters_lost)
		tracker__warn(daemon->tracker, "counters_lost", 0,
			      "counters could not be opened again, which is tried after each window: %s", err);
	daemon->counters_lost = lost;
	daemon->expanded = NULL;
	if (!lost)
		emit_stage(daemon, &whole, begin_ns, NULL);
}

/* Counts the requested parts. Returns whether the request is settled; if not, the analysis has the refusal. */
static bool count_parts(struct daemon *daemon, const struct vapro_stage_request *request)
{
	const struct event_group *group = counters__find(daemon->counters, request->stage, request->expand);
	uint64_t begin_ns = mono_now();
	char err[256];

	if (!group) {
		emit_stage(daemon, request, begin_ns, "no events that part it are known for this CPU");
		return false;
	}
	if (!counters__switch(daemon->counters, kernel_side__bpf(daemon->side), group, err, sizeof(err))) {
		daemon->expanded = request->expand;
		emit_stage(daemon, request, begin_ns, NULL);
		return true;
	}
	count_all(daemon, begin_ns);
	if (!daemon->counters_lost)
		emit_stage(daemon, request, mono_now(), err);
	return daemon->counters_lost;
}

static bool same(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

void daemon__switch_stage(struct daemon *daemon)
{
	struct vapro_stage_request request;

	if (daemon->counters_lost)
		count_all(daemon, mono_now());
	if (!counters__count(daemon->counters))
		return;
	for (bool final = false; !final;) {
		bool remote = remote_stage(daemon, &request);

		if (!remote)
			pipeline__stage_request(daemon->tee.pipeline, &request);
		if (same(request.expand, daemon->expanded))
			final = true;
		else if (request.expand)
			final = count_parts(daemon, &request);
		else
			count_all(daemon, mono_now());
		if (remote && !final && request.expand)
			refuse_remote_stage(daemon);
	}
}

/*
 * Samples where slow computation runs, while it is slow: the analysis requests threads after a window, and what their
 * clocks found enters the stream before the next window ends (ARCHITECTURE section 3.11).
 */

#define PLACES_MOST 48 /* of a thread's computation after one call, in a window; the others are unlisted */

static void warn(struct daemon *daemon, int status)
{
	if (daemon->inside_warned)
		return;
	daemon->inside_warned = true;
	tracker__warn(
	    daemon->tracker, "no_inside", 0,
	    "the kernel refuses to sample threads by a software clock (%s): functions inside slow computation "
	    "are not known",
	    strerror(-status));
}

void daemon__open_inside(struct daemon *daemon)
{
	enum vapro_tristate wanted = daemon->options->config.inside;
	int status = wanted == VAPRO_OFF ? 0 : sample_cost__measure(daemon->side, &daemon->costs.sample_ns);

	if (status && wanted == VAPRO_ON)
		log__warning("--inside on: the kernel refuses to sample threads by a software clock (%s)",
			     strerror(-status));
	if (!status && wanted != VAPRO_OFF)
		daemon->sampler = sampler__new(daemon->side);
}

/* Orders by thread and computation, there by samples, most first. */
static int compare(const void *a, const void *b)
{
	const struct sampler_entry *left = a, *right = b;

	if (left->key.tid != right->key.tid)
		return left->key.tid < right->key.tid ? -1 : 1;
	if (left->key.vertex != right->key.vertex)
		return left->key.vertex < right->key.vertex ? -1 : 1;
	if (left->inside.samples != right->inside.samples)
		return left->inside.samples > right->inside.samples ? -1 : 1;
	return (left->key.block > right->key.block) - (left->key.block < right->key.block);
}

/* Puts the samples of one computation of a thread: of unknown threads and states there is nothing to say. */
static void put(struct daemon *daemon, const struct sampler_entry *entries, size_t count)
{
	struct stream_event event = {.type = STREAM_INSIDE};
	int64_t thread, state;
	char text[512];
	uint32_t tgid;
	size_t i;

	state = resolver__state(daemon->resolver, entries[0].key.vertex, &tgid);
	thread = state < 0 ? state : resolver__thread(daemon->resolver, entries[0].key.tid, tgid);
	if (thread < 0)
		return;
	event.inside = (struct stream_inside){.thread = (uint32_t)thread, .state = (uint32_t)state};
	for (i = 0; i < count && i < PLACES_MOST; i++) {
		event.inside.samples = entries[i].inside.samples;
		event.inside.site = VAPRO_IN_KERNEL;
		if (entries[i].key.block) {
			if (resolver__place(daemon->resolver, (pid_t)tgid, entries[i].inside.address, text,
					    sizeof(text)))
				return;
			event.inside.site = text;
		}
		stream__put(&daemon->tee.sink, &event);
	}
	event.inside.site = NULL;
	for (event.inside.samples = 0; i < count; i++)
		event.inside.samples += entries[i].inside.samples;
	if (event.inside.samples)
		stream__put(&daemon->tee.sink, &event);
}

void daemon__drain_inside(struct daemon *daemon)
{
	struct sampler_entry *entries;
	size_t count, end;
	uint64_t lost;

	if (!daemon->sampler || !sampler__count(daemon->sampler))
		return;
	count = sampler__drain(daemon->sampler, &entries, &lost);
	if (lost)
		log__warning("%llu samples of slow computation found the kernel's table full",
			     (unsigned long long)lost);
	if (count)
		qsort(entries, count, sizeof(*entries), compare);
	resolver__begin(daemon->resolver);
	for (size_t i = 0; i < count; i = end) {
		end = i + 1;
		while (end < count && entries[end].key.tid == entries[i].key.tid &&
		       entries[end].key.vertex == entries[i].key.vertex)
			end++;
		put(daemon, &entries[i], end - i);
	}
}

void daemon__select_inside(struct daemon *daemon)
{
	struct vapro_inside_request request;
	pid_t tids[VAPRO_INSIDE_THREADS];
	int status;

	if (daemon->options->config.inside == VAPRO_OFF)
		return;
	pipeline__inside_request(daemon->tee.pipeline, &request);
	add_remote_inside(daemon, &request);
	if (!daemon->sampler) {
		if (request.count)
			warn(daemon, -EOPNOTSUPP);
		return;
	}
	for (uint32_t i = 0; i < request.count; i++)
		tids[i] = (pid_t)request.tids[i];
	status = sampler__select(daemon->sampler, tids, request.count);
	if (status)
		warn(daemon, status);
}
