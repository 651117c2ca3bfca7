// SPDX-License-Identifier: GPL-2.0-or-later
#include "worker/keeper.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

#define STUCK_NS 300000000000ULL /* a worker that says nothing for so long is stuck */
#define JOB_KEY "job"
#define WORKER_KEY "worker"

struct peer {
	char key[WIRE_SUBJECT_MAX];
	uint64_t revision, changed_ns;
};

struct keeper {
	struct store *store;
	struct keeper_options options;
	pthread_t thread;
	pthread_mutex_t lock; /* of all below; never held during a request to the broker */
	pthread_cond_t wake;
	bool stop, stopped;
	struct lease_table leases;
	uint64_t alive_ns, started_ns;
	size_t workers;	    /* that live; 0: not counted yet */
	struct peer *peers; /* the thread's own */
	size_t peer_count;
};

/* A request that is made without the lock. */
struct request {
	char job[WIRE_SUBJECT_MAX];
	struct lease_value value;
	uint64_t revision;
	bool taking; /* not ours yet */
};

static void job_key(char *key, size_t size, const char *job)
{
	snprintf(key, size, JOB_KEY ".%s", job);
}

/* Writes a lease. Returns as store__set() does; *revision is the new one. */
static int write_lease(struct keeper *keeper, const char *job, const struct lease_value *value, uint64_t *revision)
{
	char key[WIRE_SUBJECT_MAX + 8], text[LEASE_VALUE_MAX];

	job_key(key, sizeof(key), job);
	if (lease_value__format(text, sizeof(text), value))
		return -ENOSPC;
	return store__set(keeper->store, key, text, revision);
}

/* Notes which jobs have blocks, and how many. Subjects are vapro.v1.in.<cluster>.<job>.<host>. */
static int look_for_jobs(struct keeper *keeper)
{
	size_t skipped = strlen(WIRE_PREFIX ".in."), count;
	struct store_subject *list;
	int ret = store__subjects(keeper->store, &list, &count);

	if (ret)
		return ret;
	pthread_mutex_lock(&keeper->lock);
	for (size_t i = 0; i < keeper->leases.count; i++) {
		keeper->leases.items[i]->present = false;
		keeper->leases.items[i]->blocks = 0;
	}
	for (size_t i = 0; !ret && i < count; i++) {
		char *job = list[i].text + skipped, *host = strrchr(job, '.');
		struct lease *lease;

		if (!host || host == job)
			continue;
		*host = '\0';
		lease = lease_table__of(&keeper->leases, job);
		*host = '.';
		if (!lease) {
			ret = -ENOMEM;
			break;
		}
		lease->present = true;
		lease->blocks += list[i].messages;
	}
	pthread_mutex_unlock(&keeper->lock);
	/* a job that was done has more where one of its subjects has a later block */
	for (size_t i = 0; !ret && i < count; i++) {
		char *job = list[i].text + skipped, *host = strrchr(job, '.');
		uint64_t last = 0, through = 0;
		struct lease *lease;
		bool look;

		if (!host || host == job)
			continue;
		*host = '\0';
		pthread_mutex_lock(&keeper->lock);
		lease = lease_table__of(&keeper->leases, job);
		look =
		    lease && lease->value.state == LEASE_DONE && !lease->more && lease->blocks != lease->value.blocks;
		through = lease ? lease->value.through : 0;
		pthread_mutex_unlock(&keeper->lock);
		*host = '.';
		if (!look || store__last_block(keeper->store, list[i].text, &last) || last <= through)
			continue;
		pthread_mutex_lock(&keeper->lock);
		lease->more = true;
		pthread_mutex_unlock(&keeper->lock);
	}
	free(list);
	return ret;
}

/* Reads the leases of others. */
static int look_at_leases(struct keeper *keeper)
{
	int ret = 0;

	for (size_t i = 0; !ret; i++) {
		char key[WIRE_SUBJECT_MAX + 8], text[LEASE_VALUE_MAX];
		struct lease *lease = NULL;
		uint64_t revision = 0;
		bool look;

		pthread_mutex_lock(&keeper->lock);
		if (i < keeper->leases.count)
			lease = keeper->leases.items[i];
		look = lease && !lease->ours && !lease->giving && lease->present;
		pthread_mutex_unlock(&keeper->lock);
		if (!lease)
			break;
		if (!look)
			continue;
		job_key(key, sizeof(key), lease->job);
		ret = store__get(keeper->store, key, text, sizeof(text), &revision);
		pthread_mutex_lock(&keeper->lock);
		if (!lease->ours && !lease->giving && (!ret || ret == -ENOENT))
			lease__note(lease, ret ? NULL : text, revision, mono_now());
		pthread_mutex_unlock(&keeper->lock);
		if (ret == -ENOENT)
			ret = 0;
	}
	return ret;
}

/* Says that this worker is there, and counts those whose entries change. Returns 0 or a negative errno. */
static int count_workers(struct keeper *keeper, size_t *workers)
{
	char key[WIRE_SUBJECT_MAX], text[LEASE_VALUE_MAX], (*keys)[WIRE_SUBJECT_MAX];
	uint64_t now_ns;
	size_t count;
	int ret;

	snprintf(key, sizeof(key), WORKER_KEY ".%s", keeper->options.worker);
	ret = store__put(keeper->store, key, "{}");
	if (!ret)
		ret = store__keys(keeper->store, WORKER_KEY, &keys, &count);
	if (ret)
		return ret;
	now_ns = mono_now();
	*workers = 0;
	for (size_t i = 0; !ret && i < count; i++) {
		struct peer *peer = NULL, *grown;
		uint64_t revision = 0;

		for (size_t k = 0; !peer && k < keeper->peer_count; k++) {
			if (!strcmp(keeper->peers[k].key, keys[i]))
				peer = &keeper->peers[k];
		}
		if (!peer) {
			grown = reallocarray(keeper->peers, keeper->peer_count + 1, sizeof(*peer));
			if (!grown) {
				ret = -ENOMEM;
				break;
			}
			keeper->peers = grown;
			peer = &grown[keeper->peer_count++];
			*peer = (struct peer){.revision = 0};
			snprintf(peer->key, sizeof(peer->key), "%s", keys[i]);
		}
		if (store__get(keeper->store, keys[i], text, sizeof(text), &revision))
			continue;
		if (revision != peer->revision)
			peer->changed_ns = now_ns;
		peer->revision = revision;
		if (now_ns - peer->changed_ns < keeper->options.expire_ns)
			(*workers)++;
		else if (now_ns - peer->changed_ns > 12 * keeper->options.expire_ns)
			store__remove(keeper->store, keys[i]);
	}
	free(keys);
	return ret;
}

/* Notes how a lease that was to be renewed or taken is now. */
static void note_written(struct keeper *keeper, const struct request *request, uint64_t revision, int ret)
{
	uint64_t now_ns = mono_now();
	struct lease *lease;

	pthread_mutex_lock(&keeper->lock);
	lease = lease_table__of(&keeper->leases, request->job);
	if (lease && !ret) {
		lease->revision = revision;
		lease->changed_ns = now_ns;
		/* what was handed back meanwhile stays so; an epoch that was raised meanwhile, too */
		if (request->taking)
			lease->value = request->value;
		lease->ours |= request->taking;
		lease->more &= !request->taking;
	} else if (lease && (ret == -ESTALE || now_ns - lease->changed_ns >= keeper->options.expire_ns)) {
		/* another worker has it, or may take it */
		lease->ours = lease->giving = false;
	}
	pthread_mutex_unlock(&keeper->lock);
}

static void stop_giving(struct keeper *keeper, const char *job)
{
	struct lease *lease;

	pthread_mutex_lock(&keeper->lock);
	lease = lease_table__of(&keeper->leases, job);
	if (lease)
		lease->giving = false;
	pthread_mutex_unlock(&keeper->lock);
}

/* Renews the leases that are held, and gives back those that are to be: all of them, or until a broker does not answer.
 */
static void renew(struct keeper *keeper)
{
	for (size_t i = 0;; i++) {
		struct request request = {.revision = 0};
		bool due = false, giving = false, more;

		pthread_mutex_lock(&keeper->lock);
		more = i < keeper->leases.count;
		if (more && (keeper->leases.items[i]->ours || keeper->leases.items[i]->giving)) {
			const struct lease *lease = keeper->leases.items[i];

			due = true;
			giving = lease->giving;
			request.value = lease->value;
			request.revision = lease->revision;
			snprintf(request.job, sizeof(request.job), "%s", lease->job);
		}
		pthread_mutex_unlock(&keeper->lock);
		if (!more)
			break;
		if (due) {
			uint64_t revision = request.revision;
			int ret = write_lease(keeper, request.job, &request.value, &revision);

			note_written(keeper, &request, revision, ret);
			if (giving && !ret)
				stop_giving(keeper, request.job);
			if (ret == -ETIMEDOUT || ret == -ENOTCONN)
				break;
		}
	}
}

/* Takes a share of what may be taken. */
static void take(struct keeper *keeper, size_t workers)
{
	size_t wanted;

	pthread_mutex_lock(&keeper->lock);
	keeper->workers = workers;
	wanted = lease_table__wanted(&keeper->leases, workers);
	pthread_mutex_unlock(&keeper->lock);
	for (size_t i = 0; wanted; i++) {
		struct request request = {.taking = true};
		bool may = false, more;
		uint64_t revision;
		int ret;

		pthread_mutex_lock(&keeper->lock);
		more = i < keeper->leases.count;
		if (more && lease_table__may_take(&keeper->leases, keeper->leases.items[i], mono_now())) {
			const struct lease *lease = keeper->leases.items[i];

			may = true;
			request.value = (struct lease_value){.state = LEASE_HELD,
							     .epoch = lease->value.epoch + 1,
							     .checkpoint = lease->value.checkpoint};
			snprintf(request.value.worker, sizeof(request.value.worker), "%s", keeper->options.worker);
			request.revision = lease->revision;
			snprintf(request.job, sizeof(request.job), "%s", lease->job);
		}
		pthread_mutex_unlock(&keeper->lock);
		if (!more)
			break;
		if (!may)
			continue;
		revision = request.revision;
		ret = write_lease(keeper, request.job, &request.value, &revision);
		note_written(keeper, &request, revision, ret);
		wanted -= !ret;
	}
}

/* Waits until a time, own clock, or until the condition is true. With the lock held. */
static void wait_until(struct keeper *keeper, uint64_t at_ns, const bool *condition)
{
	const struct timespec until = {(time_t)(at_ns / 1000000000ULL), (long)(at_ns % 1000000000ULL)};

	while (!*condition && mono_now() < at_ns)
		pthread_cond_timedwait(&keeper->wake, &keeper->lock, &until);
}

static void *keep(void *arg)
{
	struct keeper *keeper = arg;
	bool stop = false;

	while (!stop) {
		uint64_t now_ns = mono_now(), at_ns;
		size_t workers = 1;
		bool stuck;

		pthread_mutex_lock(&keeper->lock);
		stuck = now_ns - keeper->alive_ns > STUCK_NS;
		pthread_mutex_unlock(&keeper->lock);
		if (!stuck) {
			renew(keeper);
			/* other workers that start at the same time show themselves first */
			if (!look_for_jobs(keeper) && !look_at_leases(keeper) && !count_workers(keeper, &workers) &&
			    now_ns - keeper->started_ns > 2 * keeper->options.renew_ns)
				take(keeper, workers);
		}
		at_ns = now_ns + keeper->options.renew_ns;
		pthread_mutex_lock(&keeper->lock);
		wait_until(keeper, at_ns, &keeper->stop);
		stop = keeper->stop;
		pthread_mutex_unlock(&keeper->lock);
	}
	pthread_mutex_lock(&keeper->lock);
	keeper->stopped = true;
	pthread_cond_broadcast(&keeper->wake);
	pthread_mutex_unlock(&keeper->lock);
	return NULL;
}

struct keeper *keeper__start(struct store *store, const struct keeper_options *options, char *err, size_t err_size)
{
	struct keeper *keeper = calloc(1, sizeof(*keeper));
	pthread_condattr_t attributes;
	int error;

	if (!keeper) {
		snprintf(err, err_size, "out of memory");
		return NULL;
	}
	keeper->store = store;
	keeper->options = *options;
	keeper->leases.expire_ns = options->expire_ns;
	keeper->alive_ns = keeper->started_ns = mono_now();
	pthread_mutex_init(&keeper->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&keeper->wake, &attributes);
	pthread_condattr_destroy(&attributes);
	error = pthread_create(&keeper->thread, NULL, keep, keeper);
	if (!error)
		return keeper;
	snprintf(err, err_size, "no thread for the leases: %s", strerror(error));
	free(keeper);
	return NULL;
}

void keeper__stop(struct keeper *keeper, uint64_t until_ns)
{
	char key[WIRE_SUBJECT_MAX];
	bool late;

	if (!keeper)
		return;
	pthread_mutex_lock(&keeper->lock);
	keeper->stop = true;
	pthread_cond_broadcast(&keeper->wake);
	wait_until(keeper, until_ns, &keeper->stopped);
	late = !keeper->stopped;
	pthread_mutex_unlock(&keeper->lock);
	if (late)
		store__abandon(keeper->store);
	pthread_join(keeper->thread, NULL);
	for (size_t i = 0; i < keeper->leases.count; i++)
		keeper__hand_back(keeper, keeper->leases.items[i]->job, false, 0);
	renew(keeper);
	snprintf(key, sizeof(key), WORKER_KEY ".%s", keeper->options.worker);
	store__remove(keeper->store, key);
	lease_table__clear(&keeper->leases);
	free(keeper->peers);
	pthread_cond_destroy(&keeper->wake);
	pthread_mutex_destroy(&keeper->lock);
	free(keeper);
}

int keeper__held(struct keeper *keeper, struct held_lease **list, size_t *count)
{
	int ret = 0;

	*count = 0;
	pthread_mutex_lock(&keeper->lock);
	keeper->alive_ns = mono_now();
	*list = calloc(keeper->leases.count + 1, sizeof(**list));
	if (!*list)
		ret = -ENOMEM;
	for (size_t i = 0; !ret && i < keeper->leases.count; i++) {
		const struct lease *lease = keeper->leases.items[i];

		if (!lease->ours)
			continue;
		(*list)[*count].epoch = lease->value.epoch;
		(*list)[*count].blocks = lease->blocks;
		(*list)[*count].checkpoint = lease->value.checkpoint;
		snprintf((*list)[(*count)++].job, sizeof((*list)->job), "%s", lease->job);
	}
	pthread_mutex_unlock(&keeper->lock);
	return ret;
}

bool keeper__holds(struct keeper *keeper, const char *job)
{
	struct lease *lease;
	bool holds;

	pthread_mutex_lock(&keeper->lock);
	lease = lease_table__of(&keeper->leases, job);
	holds = lease && lease->ours && mono_now() - lease->changed_ns < keeper->options.expire_ns;
	pthread_mutex_unlock(&keeper->lock);
	return holds;
}

void keeper__raise(struct keeper *keeper, const char *job, uint64_t epoch)
{
	struct lease *lease;

	pthread_mutex_lock(&keeper->lock);
	lease = lease_table__of(&keeper->leases, job);
	if (lease && lease->ours && lease->value.epoch < epoch)
		lease->value.epoch = epoch;
	pthread_mutex_unlock(&keeper->lock);
}

bool keeper__has_surplus(struct keeper *keeper)
{
	bool surplus;

	pthread_mutex_lock(&keeper->lock);
	surplus = lease_table__surplus(&keeper->leases, keeper->workers) > 0;
	pthread_mutex_unlock(&keeper->lock);
	return surplus;
}

void keeper__checkpoint(struct keeper *keeper, const char *job, uint64_t number)
{
	struct lease *lease;

	pthread_mutex_lock(&keeper->lock);
	lease = lease_table__of(&keeper->leases, job);
	if (lease && lease->ours)
		lease->value.checkpoint = number;
	pthread_mutex_unlock(&keeper->lock);
}

void keeper__hand_back(struct keeper *keeper, const char *job, bool done, uint64_t through)
{
	struct lease *lease;

	pthread_mutex_lock(&keeper->lock);
	lease = lease_table__of(&keeper->leases, job);
	if (lease && lease->ours) {
		lease->ours = false;
		lease->giving = true;
		lease->value.state = done ? LEASE_DONE : LEASE_FREE;
		lease->value.through = through;
		lease->value.blocks = lease->blocks;
	}
	pthread_mutex_unlock(&keeper->lock);
}
