// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Queries of a program that does not wait: each has a reader in the background, whose response is stored until the same
 * query is sent again. A user has one reader at a time. One whose file system does not answer stays that user's only
 * reader until it does; where nothing asks for it any more it is killed and left behind, and counts on as the user's.
 */
#include "sandbox/confine_order.h"
#include "sandbox/confine_private.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "sandbox/confine_owner.h"
#include "sandbox/confine_watch.h"

#define QUERIES 64
#define READERS 24	/* at a time, of all users */
#define STORED_MS 30000 /* that a query is stored which is not sent again */
#define HELD_LOOKS 4	/* at a reader that sleeps and uses no time, after which its file system counts as silent */
#define COMMON_MS 500	/* of common priority, after which a reader is in the background */
#define BACKGROUND_NICE 19

static pid_t on; /* the process that does not wait: a copy of it has other children */

/* A query whose reader works, or whose response waits to be taken. */
static struct ahead {
	struct confine_query sent; /* service is NULL: a free entry */
	char service[32];
	struct flat about;
	struct confine_version files[CONFINE_FILES_MAX];
	struct confine_request *request; /* NULL: it has ended */
	int status;
	char sentence[CONFINE_SENTENCE_MAX];
	struct confine_response response;
	int64_t begun_ms, wanted_ms;
	struct confine_watch watch;
	bool lowered; /* its reader has the least priority */
} queries[QUERIES];

void confine__wait_for_none(void)
{
	on = getpid();
}

bool confine_ahead__is_on(void)
{
	return on && on == getpid();
}

static int64_t now_ms(void)
{
	return (int64_t)(mono_now() / 1000000);
}

static void forget(struct ahead *query)
{
	confine_request__free(query->request);
	free(query->about.data);
	free(query->response.data);
	*query = (struct ahead){0};
}

static bool is_held(const struct ahead *query)
{
	return query->request && query->watch.silent >= HELD_LOOKS;
}

/* A reader that takes long leaves the processor to others. */
static void watch(struct ahead *query, int64_t now)
{
	pid_t reader = confine_request__reader(query->request);

	if (!reader)
		return;
	confine_watch__look(&query->watch, reader, now);
	if (now >= query->begun_ms + COMMON_MS && !query->lowered)
		query->lowered = !setpriority(PRIO_PROCESS, (id_t)reader, BACKGROUND_NICE);
}

static void step(struct ahead *query, int64_t now)
{
	if (!query->request)
		return;
	query->status =
	    confine_request__poll(query->request, &query->response, query->sentence, sizeof(query->sentence));
	if (query->status == -EAGAIN) {
		watch(query, now);
		return;
	}
	confine_request__free(query->request);
	query->request = NULL;
}

/* Gives up the queries that nothing asks for any more. */
static void clean(int64_t now)
{
	for (int i = 0; i < QUERIES; i++)
		if (queries[i].sent.service && now >= queries[i].wanted_ms + STORED_MS)
			forget(&queries[i]);
}

static bool is_same(const struct ahead *query, const struct confine_query *sent, const struct confine_version *files)
{
	if (!query->sent.service || strcmp(query->service, sent->service) ||
	    query->sent.file_count != sent->file_count || query->about.size != (sent->about ? sent->about->size : 0))
		return false;
	for (unsigned int i = 0; i < sent->file_count; i++)
		if (!confine_memory__is_same(&query->files[i], &files[i]))
			return false;
	return !query->about.size || !memcmp(query->about.data, sent->about->data, query->about.size);
}

/* The reader of a user, or NULL. */
static struct ahead *reader_of(uid_t owner)
{
	for (int i = 0; i < QUERIES; i++)
		if (queries[i].request && queries[i].sent.owner == owner)
			return &queries[i];
	return NULL;
}

static bool too_many(void)
{
	int working = 0, entries = 0;

	for (int i = 0; i < QUERIES; i++) {
		entries += queries[i].sent.service != NULL;
		working += queries[i].request && !is_held(&queries[i]);
	}
	return working >= READERS || entries == QUERIES;
}

/* Forgets the response that nothing has asked for since longest, where there is no free entry. */
static struct ahead *free_entry(void)
{
	struct ahead *oldest = NULL;

	for (int i = 0; i < QUERIES; i++) {
		if (!queries[i].sent.service)
			return &queries[i];
		if (!queries[i].request && (!oldest || queries[i].wanted_ms < oldest->wanted_ms))
			oldest = &queries[i];
	}
	if (oldest)
		forget(oldest);
	return oldest;
}

/* Starts the reader of a query. 0 with its entry, or a status with a sentence. */
static int start(const struct confine_query *sent, const struct confine_version *files, int64_t now,
		 struct ahead **started, char *err, size_t err_size)
{
	struct ahead *query;
	int status;

	if (!free_entry() || too_many()) {
		snprintf(err, err_size, "the confined readers are busy");
		return -EINPROGRESS;
	}
	query = free_entry();
	*query = (struct ahead){.sent = *sent, .begun_ms = now, .wanted_ms = now};
	snprintf(query->service, sizeof(query->service), "%s", sent->service);
	memcpy(query->files, files, sizeof(query->files));
	query->sent.service = query->service;
	query->sent.about = NULL;
	if (sent->about) {
		flat__put_flat(&query->about, sent->about);
		query->sent.about = &query->about;
	}
	status = query->about.failed ? -ENOMEM : 0;
	if (status)
		snprintf(err, err_size, "out of memory");
	else
		status = confine_request__start(&query->sent, INT_MAX, &query->request, err, err_size);
	if (status)
		forget(query);
	else
		*started = query;
	return status;
}

bool confine_ahead__is_held(uid_t owner)
{
	const struct ahead *query = confine_ahead__is_on() ? reader_of(owner) : NULL;

	return confine_ahead__is_on() && ((query && is_held(query)) || confine__left_behind(owner));
}

bool confine__must_wait(uid_t owner, bool held)
{
	struct ahead *query = confine_ahead__is_on() ? reader_of(owner) : NULL;

	if (query) {
		step(query, now_ms());
		query->wanted_ms = now_ms();
	}
	if (!held)
		return query && query->request && !is_held(query);
	return (query && query->request) || confine_ahead__is_held(owner) || !confine_owner__may_read(owner, now_ms());
}

/* Whether a user's files may have another reader. 0, or a status with a sentence. */
static int may_start(uid_t owner, bool charged, int64_t now, char *err, size_t err_size)
{
	if (confine_ahead__is_held(owner)) {
		snprintf(err, err_size, "the file system of another file of its user does not answer");
		return -ETIMEDOUT;
	}
	if (charged && !confine_owner__may_read(owner, now)) {
		snprintf(err, err_size, "its user's files have taken %d s of processor time to read in a minute",
			 CONFINE_OWNER_READ_MS / 1000);
		return -EDQUOT;
	}
	return 0;
}

/* What a query waits for. */
static int name_wait(const struct ahead *query, bool own, char *err, size_t err_size)
{
	if (!is_held(query)) {
		snprintf(err, err_size, "its confined reader is at work");
		return -EINPROGRESS;
	}
	snprintf(err, err_size, "%s does not answer",
		 own ? "its file system" : "the file system of another file of its user");
	return -ETIMEDOUT;
}

/* Takes the response of a query that has ended, or its failure. */
static int take(struct ahead *query, struct confine_response *response, char *err, size_t err_size)
{
	int status = query->status;

	*response = query->response;
	query->response = (struct confine_response){0};
	if (status)
		snprintf(err, err_size, "%s", query->sentence);
	forget(query);
	return status;
}

/* Waits for a reader while its owner may be waited for. */
static void wait_for(struct ahead *query, int64_t until_ms)
{
	uint64_t begin_ns = mono_now();

	while (query->request && !is_held(query) && now_ms() < until_ms) {
		confine_request__wait(query->request, (unsigned int)(until_ms - now_ms()));
		step(query, now_ms());
	}
	confine_owner__waited(query->sent.owner, mono_now() - begin_ns, now_ms());
}

int confine_ahead__query(const struct confine_query *sent, struct confine_response *response, char *err,
			 size_t err_size)
{
	struct confine_version files[CONFINE_FILES_MAX] = {0};
	int64_t now = now_ms(), until_ms = now + confine_owner__patience(sent->owner, now);
	struct ahead *query = NULL, *before;
	int status;

	clean(now);
	for (unsigned int i = 0; i < sent->file_count; i++)
		files[i] = confine_memory__version(sent->files[i]);
	for (int i = 0; i < QUERIES && !query; i++)
		if (is_same(&queries[i], sent, files))
			query = &queries[i];
	if (!query && confine_memory__recall(sent, files, response))
		return 0;
	/* one reader at a time */
	before = query ? NULL : reader_of(sent->owner);
	if (before) {
		step(before, now);
		wait_for(before, until_ms);
		if (before->request)
			return name_wait(before, false, err, err_size);
	}
	if (!query) {
		status = confine__broken(sent, files, err, err_size);
		if (status)
			return status;
		status = may_start(sent->owner, confine__is_charged(sent), now, err, err_size);
		if (!status)
			status = start(sent, files, now, &query, err, err_size);
		if (status)
			return status;
	}
	query->wanted_ms = now;
	step(query, now);
	wait_for(query, until_ms);
	return query->request ? name_wait(query, true, err, err_size) : take(query, response, err, err_size);
}
