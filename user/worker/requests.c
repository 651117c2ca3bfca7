// SPDX-License-Identifier: GPL-2.0-or-later
#include "worker/requests.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "report/pipeline.h"
#include "worker/job_private.h"
#include "worker/worker_private.h"

#define HOPS_MOST 8		 /* decisions about call-sites in a window */
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

static void give_stage(const struct worker_job *job, struct wire_request request, struct worker_requests *requests)
{
	struct vapro_stage_request stage;

	pipeline__stage_request(job->pipeline, &stage);
	if (!stage.expand && !stage.interrupts)
		return;
	request.kind = WIRE_REQUEST_STAGE;
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

void worker_job__request(struct worker_job *job, const struct wire_job *about, uint64_t now_ns,
			 struct worker_requests *requests)
{
	struct wire_request request = {.user = about->user};

	if (!job->pipeline)
		return;
	snprintf(request.job, sizeof(request.job), "%s", about->job);
	give_stage(job, request, requests);
	give_inside(job, request, requests);
	give_hops(job, request, now_ns, requests);
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
	struct sending sending = {.requests.send = send, .work = work};
	struct wire_subject subject;
	int64_t age_ns = (int64_t)(utc_now() - judged_ns);

	if (age_ns > RECENT_NS || age_ns < -RECENT_NS || wire_subject__parse(&subject, work->out) || subject.cut)
		return;
	sending.job = subject.job;
	worker_job__request(work->job, &subject.job, mono_now(), &sending.requests);
}
