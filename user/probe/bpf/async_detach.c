// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/bpf/async_detach.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

#define THREADS_MOST 8

struct closing {
	struct kernel_link *link;
	pid_t pid;
	bool begun;
};

struct closer {
	pthread_mutex_t lock; /* guards all members below */
	pthread_cond_t idle;  /* the last thread is about to end */
	struct closing *queue;
	size_t count, room;
	size_t threads;
};

struct closer *closer__new(void)
{
	struct closer *closer = calloc(1, sizeof(*closer));

	if (closer) {
		pthread_mutex_init(&closer->lock, NULL);
		pthread_cond_init(&closer->idle, NULL);
	}
	return closer;
}

void closer__free(struct closer *closer)
{
	if (!closer)
		return;
	closer__wait(closer);
	pthread_mutex_destroy(&closer->lock);
	pthread_cond_destroy(&closer->idle);
	free(closer->queue);
	free(closer);
}

/* The next link that no thread has begun to close; NULL where there is none. */
static struct kernel_link *begin(struct closer *closer)
{
	for (size_t i = 0; i < closer->count; i++)
		if (!closer->queue[i].begun) {
			closer->queue[i].begun = true;
			return closer->queue[i].link;
		}
	return NULL;
}

/* A link stays in the queue until it is closed. */
static void remove_closed(struct closer *closer, const struct kernel_link *link)
{
	for (size_t i = 0; i < closer->count; i++)
		if (closer->queue[i].begun && closer->queue[i].link == link) {
			closer->queue[i] = closer->queue[--closer->count];
			return;
		}
}

static void close_all(struct closer *closer)
{
	struct kernel_link *link;

	while ((link = begin(closer))) {
		pthread_mutex_unlock(&closer->lock);
		ladder__close(link);
		pthread_mutex_lock(&closer->lock);
		remove_closed(closer, link);
	}
}

static void *work(void *ctx)
{
	struct closer *closer = ctx;

	pthread_mutex_lock(&closer->lock);
	close_all(closer);
	if (!--closer->threads)
		pthread_cond_broadcast(&closer->idle);
	pthread_mutex_unlock(&closer->lock);
	return NULL;
}

static bool start(struct closer *closer)
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
	failed = pthread_create(&thread, &attributes, work, closer);
	pthread_attr_destroy(&attributes);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return !failed;
}

void closer__close(struct closer *closer, struct kernel_link *link)
{
	bool queued;

	pthread_mutex_lock(&closer->lock);
	queued = !grow(&closer->queue, &closer->room, closer->count + 1, sizeof(*closer->queue));
	if (queued)
		closer->queue[closer->count++] = (struct closing){link, link->pid, false};
	/* the kernel waits for a grace period per link; meanwhile the next link's probes go on costing */
	if (queued && closer->threads < THREADS_MOST && start(closer))
		closer->threads++;
	if (queued && !closer->threads)
		close_all(closer);
	pthread_mutex_unlock(&closer->lock);
	if (!queued)
		ladder__close(link);
}

bool closer__busy(struct closer *closer, pid_t pid)
{
	bool busy = false;

	pthread_mutex_lock(&closer->lock);
	for (size_t i = 0; i < closer->count && !busy; i++)
		busy = !pid || !closer->queue[i].pid || closer->queue[i].pid == pid;
	pthread_mutex_unlock(&closer->lock);
	return busy;
}

void closer__wait(struct closer *closer)
{
	pthread_mutex_lock(&closer->lock);
	while (closer->threads)
		pthread_cond_wait(&closer->idle, &closer->lock);
	pthread_mutex_unlock(&closer->lock);
}
