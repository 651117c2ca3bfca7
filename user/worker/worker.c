// SPDX-License-Identifier: GPL-2.0-or-later
#include "worker/worker.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/grow.h"
#include "base/log.h"
#include "worker/worker_private.h"

#define IDLE_MS 20		 /* between looks for blocks and leases */
#define METRICS_NS 5000000000ULL /* between two writings of the metrics */
#define STOP_NS 6000000000ULL	 /* beside the request under way, the end waits so long for a broker */

/* An id that no other worker has: host, and a random number. */
static int make_id(struct worker *worker)
{
	char token[WIRE_TOKEN_MAX + 1];
	uint64_t random;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -errno;
	gethostname(worker->host, sizeof(worker->host) - 1);
	if (wire__token(token, sizeof(token), worker->host))
		return -ENOSPC;
	snprintf(worker->id, sizeof(worker->id), "%.64s-%016llx", token, (unsigned long long)random);
	return 0;
}

static struct work *find(struct worker *worker, const char *job)
{
	for (size_t i = 0; i < worker->count; i++) {
		if (!strcmp(worker->works[i]->key, job))
			return worker->works[i];
	}
	return NULL;
}

static void drop(struct worker *worker, size_t at)
{
	work__free(worker->works[at]);
	worker->works[at] = worker->works[--worker->count];
}

/* Where the broker does not answer, this worker cannot know which of the two it is. */
static void warn_lost(const struct work *work)
{
	log__warning("%s: the broker did not renew the lease in time, or another worker has the job: this one stops "
		     "until it has the job again",
		     work->key);
}

/* Takes up the jobs whose leases came, and drops those whose leases went. */
static int follow_leases(struct worker *worker)
{
	struct held_lease *leases;
	size_t count;
	int ret = keeper__held(worker->keeper, &leases, &count);

	for (size_t i = worker->count; !ret && i > 0; i--) {
		const struct work *work = worker->works[i - 1];
		bool held = false;

		for (size_t k = 0; !held && k < count; k++)
			held = !strcmp(leases[k].job, work->key) && leases[k].epoch == work->epoch;
		if (!held) {
			warn_lost(work);
			drop(worker, i - 1);
		}
	}
	for (size_t i = 0; !ret && i < count && !*worker->options->stop; i++) {
		struct work *work;
		int opened;

		if (find(worker, leases[i].job))
			continue;
		if (grow(&worker->works, &worker->capacity, worker->count + 1, sizeof(struct work *))) {
			ret = -ENOMEM;
			break;
		}
		opened = work__open(worker, &leases[i], &work);
		if (!opened)
			worker->works[worker->count++] = work;
		else
			log__debug("%s: cannot be taken up now: %s", leases[i].job, strerror(-opened));
		if (opened && opened != -ETIMEDOUT && opened != -ENOTCONN)
			keeper__hand_back(worker->keeper, leases[i].job, false, 0);
	}
	free(leases);
	return ret;
}

static void step_all(struct worker *worker)
{
	for (size_t i = worker->count; i > 0 && !*worker->options->stop; i--) {
		struct work *work = worker->works[i - 1];
		int ret = keeper__holds(worker->keeper, work->key) ? work__step(work) : -ESTALE;

		if (!ret)
			continue;
		if (ret == -ESTALE)
			warn_lost(work);
		else if (ret != -ECANCELED)
			log__error("%s: the analysis stopped: %s; it begins again from the stream", work->key,
				   strerror(-ret));
		if (ret != -ECANCELED)
			keeper__hand_back(worker->keeper, work->key, false, 0);
		drop(worker, i - 1);
	}
}

/* Writes the metrics, from time to time and at the end. */
static void meter(struct worker *worker, bool up)
{
	struct metrics_counts counts = {
	    .lost_lines = worker->lost_lines, .over_lines = worker->over_lines, .overhead_pct = NAN};
	uint64_t now_ns = mono_now();
	int status;

	if (!worker->metrics || (up && now_ns < worker->metrics_due_ns))
		return;
	worker->metrics_due_ns = now_ns + METRICS_NS;
	for (size_t i = 0; i < worker->count; i++) {
		counts.lost_lines += worker->works[i]->file ? line_sink__lost(worker->works[i]->file) : 0;
		counts.over_lines += worker->works[i]->file ? line_sink__over(worker->works[i]->file) : 0;
	}
	counts.lost_lines -= counts.over_lines;
	counts.lost_lines += worker->stdout_sink ? line_sink__lost(worker->stdout_sink) : 0;
	status = metrics__write(worker->metrics, &counts, up, now_ns);
	if (status && !worker->metrics_failed)
		log__warning("metrics %s: %s", worker->options->metrics, strerror(-status));
	worker->metrics_failed = status;
}

/* Hands all jobs back. A broker that does not answer is waited for so long, however many jobs there are. */
static void stop(struct worker *worker)
{
	uint64_t until_ns = mono_now() + STOP_NS;

	while (worker->count) {
		if (mono_now() > until_ns)
			store__abandon(worker->store);
		drop(worker, worker->count - 1);
	}
	keeper__stop(worker->keeper, until_ns);
}

int worker__run(const struct worker_options *options)
{
	const struct timespec idle = {0, IDLE_MS * 1000000L};
	struct worker worker = {.options = options};
	struct keeper_options keeper = {
	    .renew_ns = options->renew_ns, .expire_ns = options->expire_ns, .worker = worker.id};
	char err[1024];
	int ret = make_id(&worker);

	if (ret) {
		log__error("no id for this worker: %s", strerror(-ret));
		return -1;
	}
	worker.store = store__open(&options->store, err, sizeof(err));
	if (worker.store && options->to_stdout) {
		worker.stdout_sink = line_sink__append(NULL, true, LINE_SINK_BACKLOG);
		if (!worker.stdout_sink)
			snprintf(err, sizeof(err), "no standard output: %s", strerror(errno));
		else
			line_sink__bound(worker.stdout_sink, record_filter__choice(options->records), 0);
	}
	if (worker.store && options->metrics) {
		worker.metrics = metrics__new(options->metrics);
		if (!worker.metrics)
			log__warning("metrics %s: out of memory", options->metrics);
	}
	if (worker.store && (worker.stdout_sink || !options->to_stdout))
		worker.keeper = keeper__start(worker.store, &keeper, err, sizeof(err));
	if (!worker.keeper) {
		log__error("%s", err);
		ret = -1;
	}
	while (!ret && !*options->stop) {
		ret = follow_leases(&worker);
		if (ret)
			log__error("out of memory");
		step_all(&worker);
		meter(&worker, true);
		nanosleep(&idle, NULL);
	}
	stop(&worker);
	meter(&worker, false);
	metrics__free(worker.metrics);
	free(worker.works);
	store__close(worker.store);
	line_sink__close(worker.stdout_sink);
	return ret ? -1 : 0;
}
