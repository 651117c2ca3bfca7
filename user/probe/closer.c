// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/closer.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "model/grow.h"

struct closing {
	struct kernel_link *link;
	pid_t pid;
};

struct closer {
	pthread_mutex_t lock; /* of all below but started */
	struct closing *queue;
	size_t count, room;
	bool running;
	bool started; /* thread waits to be joined */
	pthread_t thread;
};

struct closer *closer__new(void)
{
	struct closer *closer = calloc(1, sizeof(*closer));

	if (closer)
		pthread_mutex_init(&closer->lock, NULL);
	return closer;
}

void closer__free(struct closer *closer)
{
	if (!closer)
		return;
	closer__wait(closer);
	pthread_mutex_destroy(&closer->lock);
	free(closer->queue);
	free(closer);
}

/* What is being closed stays in the queue until it is. */
static void *work(void *ctx)
{
	struct closer *closer = ctx;

	pthread_mutex_lock(&closer->lock);
	while (closer->count) {
		struct kernel_link *link = closer->queue[0].link;

		pthread_mutex_unlock(&closer->lock);
		ladder__close(link);
		pthread_mutex_lock(&closer->lock);
		closer->count--;
		memmove(closer->queue, closer->queue + 1, closer->count * sizeof(*closer->queue));
	}
	closer->running = false;
	pthread_mutex_unlock(&closer->lock);
	return NULL;
}

static bool start(struct closer *closer)
{
	sigset_t all, before;
	bool failed;

	if (closer->started)
		pthread_join(closer->thread, NULL); /* it has left its loop */
	/* signals are for the daemon's own thread */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	failed = pthread_create(&closer->thread, NULL, work, closer);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	closer->started = !failed;
	return !failed;
}

void closer__close(struct closer *closer, struct kernel_link *link)
{
	bool queued, running;

	pthread_mutex_lock(&closer->lock);
	queued = !grow(&closer->queue, &closer->room, closer->count + 1, sizeof(*closer->queue));
	if (queued)
		closer->queue[closer->count++] = (struct closing){link, link->pid};
	running = closer->running;
	closer->running |= queued;
	pthread_mutex_unlock(&closer->lock);
	if (!queued)
		ladder__close(link);
	else if (!running && !start(closer))
		work(closer);
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
	if (closer->started)
		pthread_join(closer->thread, NULL);
	closer->started = false;
}
