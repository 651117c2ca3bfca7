/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the analysis of a job requests of its nodes after a window: the counters, threads and call-sites that a node's
 * own analysis would request, decided for all nodes at once (docs/many-nodes.md).
 */
#ifndef VAPRO_WORKER_REQUESTS_H
#define VAPRO_WORKER_REQUESTS_H

#include "wire/request.h"
#include "worker/job.h"

struct worker_requests {
	const char *worker; /* id of this one */
	/* Sends a request to a node. */
	void (*send)(struct worker_requests *requests, const char *host, const struct wire_request *request);
};

/* Makes the requests of each node that has sent blocks of the job, whose identity the caller knows. now_ns: own clock.
 */
void worker_job__request(struct worker_job *job, const struct wire_job *about, uint64_t now_ns,
			 struct worker_requests *requests);

#endif
