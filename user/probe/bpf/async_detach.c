// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/bpf/async_detach.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/grow.h"

#define THREADS_MOST 64 /* more links than an image has */
#define NICE -10	/* what is removed costs as long as no CPU is free for its removal */

struct closing {
	struct kernel_link *link;
	pid_t pid;
	bool begun;
	uint64_t queued_ns; /* CLOCK_MONOTONIC */
};

struct async_detach {
	pthread_mutex_t lock; /* guards all members below */
	pthread_cond_t idle;  /* the last thread is about to end */
	struct closing *queue;
	size_t count, room;
	size_t threads;
};

struct async_detach *async_detach__new(void)
{
	struct async_detach *detacher = calloc(1, sizeof(*detacher));

	if (detacher) {
		pthread_mutex_init(&detacher->lock, NULL);
		pthread_cond_init(&detacher->idle, NULL);
	}
	return detacher;
}

void async_detach__free(struct async_detach *detacher)
{
	if (!detacher)
		return;
	async_detach__wait(detacher);
	pthread_mutex_destroy(&detacher->lock);
	pthread_cond_destroy(&detacher->idle);
	free(detacher->queue);
	free(detacher);
}

/* The next link that no thread has begun to close; NULL where there is none. */
static struct kernel_link *begin(struct async_detach *detacher)
{
	for (size_t i = 0; i < detacher->count; i++)
		if (!detacher->queue[i].begun) {
			detacher->queue[i].begun = true;
			return detacher->queue[i].link;
		}
	return NULL;
}

/* A link stays in the queue until it is closed. */
static void remove_closed(struct async_detach *detacher, const struct kernel_link *link)
{
	for (size_t i = 0; i < detacher->count; i++)
		if (detacher->queue[i].begun && detacher->queue[i].link == link) {
			detacher->queue[i] = detacher->queue[--detacher->count];
			return;
		}
}

static void close_all(struct async_detach *detacher)
{
	struct kernel_link *link;

	while ((link = begin(detacher))) {
		pthread_mutex_unlock(&detacher->lock);
		modes__close(link);
		pthread_mutex_lock(&detacher->lock);
		remove_closed(detacher, link);
	}
}

static void *work(void *ctx)
{
	const struct sched_param none = {0};
	struct async_detach *detacher = ctx;

	/* of this thread alone; where that is not permitted the removal only begins later */
	sched_setscheduler(0, SCHED_OTHER, &none);
	setpriority(PRIO_PROCESS, 0, NICE);
	pthread_mutex_lock(&detacher->lock);
	close_all(detacher);
	if (!--detacher->threads)
		pthread_cond_broadcast(&detacher->idle);
	pthread_mutex_unlock(&detacher->lock);
	return NULL;
}

static bool start(struct async_detach *detacher)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	pthread_t thread;
	bool failed;

	/* signals are for the daemon's own thread */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	failed = pthread_create(&thread, &attributes, work, detacher);
	pthread_attr_destroy(&attributes);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return !failed;
}

void async_detach__close(struct async_detach *detacher, struct kernel_link *link)
{
	bool queued;

	pthread_mutex_lock(&detacher->lock);
	queued = !grow(&detacher->queue, &detacher->room, detacher->count + 1, sizeof(*detacher->queue));
	if (queued)
		detacher->queue[detacher->count++] = (struct closing){link, link->pid, false, mono_now()};
	/* the kernel waits for a grace period per link; meanwhile the next link's probes go on costing */
	if (queued && detacher->threads < THREADS_MOST && start(detacher))
		detacher->threads++;
	if (queued && !detacher->threads)
		close_all(detacher);
	pthread_mutex_unlock(&detacher->lock);
	if (!queued)
		modes__close(link);
}

bool async_detach__busy(struct async_detach *detacher, pid_t pid)
{
	bool busy = false;

	pthread_mutex_lock(&detacher->lock);
	for (size_t i = 0; i < detacher->count && !busy; i++)
		busy = !pid || !detacher->queue[i].pid || detacher->queue[i].pid == pid;
	pthread_mutex_unlock(&detacher->lock);
	return busy;
}

bool async_detach__busy_since(struct async_detach *detacher, uint64_t since_ns)
{
	bool busy = false;

	pthread_mutex_lock(&detacher->lock);
	for (size_t i = 0; i < detacher->count && !busy; i++)
		busy = detacher->queue[i].queued_ns >= since_ns;
	pthread_mutex_unlock(&detacher->lock);
	return busy;
}

void async_detach__wait(struct async_detach *detacher)
{
	pthread_mutex_lock(&detacher->lock);
	while (detacher->threads)
		pthread_cond_wait(&detacher->idle, &detacher->lock);
	pthread_mutex_unlock(&detacher->lock);
}
