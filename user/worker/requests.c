// SPDX-License-Identifier: GPL-2.0-or-later
#include "worker/requests.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "functions/functions.h"
#include "pipeline/pipeline.h"
#include "worker/job_private.h"
#include "worker/worker_private.h"

#define IMAGES_MOST 16		 /* with MPI functions, of a job */
#define SILENT_NS 60000000000ULL /* what a node decided that sends nothing for so long does not count any more */
#define HOPS_MOST 8		 /* decisions about call-sites in a window */
#define SITES_MOST 256		 /* call-sites of a job that are hopped */
#define MISSED_MOST 16		 /* windows after which a node that does not follow is left as it is */
#define RECENT_NS 120000000000LL /* since the end of a window; what is older is read again, or comes late */

/* Makes the request of each node of the job, once per node. */
static void give(const struct worker_job *job, const struct wire_request *request, struct worker_requests *requests)
{
	for (size_t i = 0; i < job->member_count; i++) {
		bool known = false;

		for (size_t k = 0; !known && k < i; k++)
			known = worker_job__same_host(&job->members[k], worker_run__host(job->members[i].run));
		if (!known)
			requests->send(requests, worker_run__host(job->members[i].run), request);
	}
}

/* Whether a node still sends. */
static bool is_alive(const struct member *member, uint64_t now_ns)
{
	return now_ns <= member->came_ns + SILENT_NS;
}

/* Nodes that count parts for the job count all of the time again, at once and not when the request ends by itself. */
static void end_parts(const struct worker_job *job, struct wire_request request, uint64_t now_ns,
		      struct worker_requests *requests)
{
	request.stage = 1;
	for (size_t i = 0; i < job->member_count; i++) {
		const struct worker_run *run = job->members[i].run;

		if (is_alive(&job->members[i], now_ns) && !strcmp(worker_run__parts_job(run), request.job))
			requests->send(requests, worker_run__host(run), &request);
	}
}

static void give_stage(const struct worker_job *job, struct wire_request request, uint64_t now_ns,
		       struct worker_requests *requests)
{
	struct vapro_stage_request stage;

	pipeline__stage_request(job->pipeline, &stage);
	request.kind = WIRE_REQUEST_STAGE;
	if (!stage.expand && !stage.interrupts) {
		end_parts(job, request, now_ns, requests);
		return;
	}
	request.stage = stage.stage;
	snprintf(request.expand, sizeof(request.expand), "%s", stage.expand ? stage.expand : "");
	request.variance = stage.variance;
	request.interrupts = stage.interrupts;
	give(job, &request, requests);
}

static void give_inside(const struct worker_job *job, struct wire_request request, struct worker_requests *requests)
{
	pipeline__inside_request(job->pipeline, &request.inside);
	if (!request.inside.count)
		return;
	request.kind = WIRE_REQUEST_INSIDE;
	give(job, &request, requests);
}

/* Decisions are made again until their outcome is in the blocks. */
static void give_hops(struct worker_job *job, struct wire_request request, uint64_t now_ns,
		      struct worker_requests *requests)
{
	char first[sizeof(request.site)] = "";
	struct vapro_hop_event event;

	request.kind = WIRE_REQUEST_HOP;
	for (int i = 0; i < HOPS_MOST; i++) {
		pipeline__hop_request(job->pipeline, now_ns, &event);
		if (event.hop == VAPRO_HOP_NONE)
			return;
		request.hop = event.hop;
		if ((size_t)snprintf(request.site, sizeof(request.site), "%s", event.site) >= sizeof(request.site))
			return; /* a text that is cut names nothing */
		snprintf(request.symbol, sizeof(request.symbol), "%s", event.symbol ? event.symbol : "");
		if (!strcmp(first, request.site))
			return;
		if (!i)
			strcpy(first, request.site);
		give(job, &request, requests);
	}
}

/* A call-site that is hopped on some node of the job, or that one could not hop. */
struct job_hop {
	const char *site, *symbol;
	enum vapro_hop hop; /* up, or back: what was undone on one node is undone on all */
};

static size_t add_hops(struct job_hop *all, size_t count, const struct run_hop *hops, size_t hop_count)
{
	for (size_t i = 0; i < hop_count; i++) {
		bool back = hops[i].hop == VAPRO_HOP_BACK;
		size_t k = 0;

		/* a refusal is one node's: others may still look for the frame, or not have the request */
		if (hops[i].hop == VAPRO_HOP_NONE)
			continue;
		while (k < count && strcmp(all[k].site, hops[i].site) != 0)
			k++;
		if (k == SITES_MOST)
			continue;
		if (k == count)
			all[count++] = (struct job_hop){hops[i].site, hops[i].symbol, VAPRO_HOP_UP};
		if (back)
			all[k].hop = VAPRO_HOP_BACK;
	}
	return count;
}

/* Whether a node has yet to do what others did, or refused; its own refusal is final. */
static bool lacks(enum vapro_hop has, enum vapro_hop wanted)
{
	return wanted == VAPRO_HOP_UP ? has == VAPRO_HOP_NONE : has == VAPRO_HOP_UP || has == VAPRO_HOP_STAYS;
}

/*
 * What some nodes have carried out or refused, and others have not, is requested of these again: a request was lost, a
 * node came later, or one has decided alone. A call-site goes from its calls as such to callers, and back for good,
 * never further, so that the nodes end with the same states.
 */
static void give_missing_hops(const struct worker_job *job, struct wire_request request, uint64_t now_ns,
			      struct worker_requests *requests)
{
	struct job_hop all[SITES_MOST];
	const struct run_hop *hops;
	size_t count = 0, hop_count;

	for (size_t i = 0; i < job->member_count; i++) {
		hops = worker_run__hops(job->members[i].run, &hop_count);
		if (is_alive(&job->members[i], now_ns))
			count = add_hops(all, count, hops, hop_count);
	}
	request.kind = WIRE_REQUEST_HOP;
	for (size_t i = 0; i < job->member_count; i++) {
		struct worker_run *run = job->members[i].run;
		unsigned sent = 0;

		if (!is_alive(&job->members[i], now_ns) || worker_run__has_ended(run))
			continue;
		for (size_t k = 0; k < count && sent < HOPS_MOST; k++) {
			struct run_hop *hop = worker_run__hop(run, all[k].site);

			if (!hop || !lacks(hop->hop, all[k].hop) || strlen(all[k].site) >= sizeof(request.site))
				continue;
			/* at first its answer may be on the way */
			if (hop->missed >= MISSED_MOST || hop->missed++ == 0)
				continue;
			sent++;
			request.hop = all[k].hop;
			strcpy(request.site, all[k].site);
			snprintf(request.symbol, sizeof(request.symbol), "%s", all[k].symbol ? all[k].symbol : "");
			requests->send(requests, worker_run__host(run), &request);
		}
	}
}

/* An image of the job, and the nodes that leave units of it out by themselves. */
struct needed_set {
	const char *image;
	const char *hosts[FUNCTIONS_UNITS][2]; /* the first two of each unit */
};

/* Returns what is known of an image, which is added; NULL where there are too many. */
static struct needed_set *needed_of(struct needed_set *needed, const char *image)
{
	for (size_t i = 0; i < IMAGES_MOST; i++) {
		if (!needed[i].image)
			needed[i].image = image;
		if (!strcmp(needed[i].image, image))
			return &needed[i];
	}
	return NULL;
}

static void add_need(struct needed_set *needed, uint32_t units, const char *host)
{
	for (int unit = 0; unit < FUNCTIONS_UNITS; unit++) {
		const char **hosts = needed->hosts[unit];

		if (!(units >> unit & 1))
			continue;
		if (!hosts[0])
			hosts[0] = host;
		else if (!hosts[1] && strcmp(hosts[0], host) != 0)
			hosts[1] = host;
	}
}

/* Returns the units that other nodes than this one leave out, and sets *by to one of these. */
static uint32_t needed_elsewhere(const struct needed_set *needed, const char *host, const char **by)
{
	uint32_t units = 0;

	for (int unit = 0; unit < FUNCTIONS_UNITS; unit++) {
		const char *const *hosts = needed->hosts[unit];
		const char *other = hosts[0] && !strcmp(hosts[0], host) ? hosts[1] : hosts[0];

		if (!other)
			continue;
		units |= 1U << unit;
		*by = other;
	}
	return units;
}

/* Returns the sets of a node that still sends. */
static const struct run_set *sets_of(const struct member *member, uint64_t now_ns, size_t *count)
{
	const struct run_set *sets = worker_run__sets(member->run, count);

	if (!is_alive(member, now_ns))
		*count = 0;
	return sets;
}

/*
 * All nodes of the job leave out what one of them does by its own need. What a node leaves out on request is not in
 * these sets, so that none is held by the requests alone.
 */
static void give_sets(const struct worker_job *job, struct wire_request request, uint64_t now_ns,
		      struct worker_requests *requests)
{
	struct needed_set needed[IMAGES_MOST] = {0}, *of;
	const struct run_set *sets;
	size_t count;

	request.kind = WIRE_REQUEST_SET;
	snprintf(request.worker, sizeof(request.worker), "%s", requests->worker);
	for (size_t i = 0; i < job->member_count; i++) {
		sets = sets_of(&job->members[i], now_ns, &count);
		for (size_t k = 0; k < count; k++)
			if ((of = needed_of(needed, sets[k].image)))
				add_need(of, sets[k].own, worker_run__host(job->members[i].run));
	}
	for (size_t i = 0; i < job->member_count; i++) {
		const char *host = worker_run__host(job->members[i].run), *by;

		sets = sets_of(&job->members[i], now_ns, &count);
		for (size_t k = 0; k < count; k++) {
			uint32_t units;

			of = needed_of(needed, sets[k].image);
			units = of ? needed_elsewhere(of, host, &by) : 0;
			if (!units)
				continue;
			snprintf(request.image, sizeof(request.image), "%s", sets[k].image);
			snprintf(request.host, sizeof(request.host), "%s", by);
			functions__name_units(units, request.without, sizeof(request.without));
			requests->send(requests, host, &request);
		}
	}
}

void worker_job__request(struct worker_job *job, const struct wire_job *about, uint64_t now_ns,
			 struct worker_requests *requests)
{
	struct wire_request request = {.user = about->user};

	if (!job->pipeline)
		return;
	snprintf(request.job, sizeof(request.job), "%s", about->job);
	give_stage(job, request, now_ns, requests);
	give_inside(job, request, requests);
	give_hops(job, request, now_ns, requests);
	give_missing_hops(job, request, now_ns, requests);
	give_sets(job, request, now_ns, requests);
}

/* The requests of a job on their way to the broker. */
struct sending {
	struct worker_requests requests; /* first */
	struct work *work;
	struct wire_job job;
};

static void send(struct worker_requests *requests, const char *host, const struct wire_request *request)
{
	struct sending *sending = (struct sending *)requests;
	char subject[WIRE_SUBJECT_MAX], text[WIRE_REQUEST_MAX + 1];
	int length = wire_request__format(text, sizeof(text), request), ret;

	if (length < 0 || wire__subject(subject, sizeof(subject), WIRE_REQ, &sending->job, host))
		return;
	ret = store__send(sending->work->worker->store, subject, text, (size_t)length);
	/* the next window makes it again */
	if (ret)
		log__debug("%s: a request to %s could not be sent: %s", sending->work->key, host, strerror(-ret));
}

void work__request(struct work *work, uint64_t judged_ns)
{
	struct sending sending = {.requests = {work->worker->id, send}, .work = work};
	struct wire_subject subject;
	int64_t age_ns = (int64_t)(utc_now() - judged_ns);

	if (age_ns > RECENT_NS || age_ns < -RECENT_NS || wire_subject__parse(&subject, work->out) || subject.cut)
		return;
	sending.job = subject.job;
	worker_job__request(work->job, &subject.job, mono_now(), &sending.requests);
}
