// SPDX-License-Identifier: GPL-2.0-or-later
#include "top/feeds.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEARCH_NS 5000000000ULL /* between searches for sockets: each connects to all of them */
#define AGAIN_NS 1000000000ULL	/* the same where one is missing */
#define LATE_NS 500000000ULL	/* so long after the first snapshot the others are no longer waited for */

struct feeds_member {
	char path[QUERY_PATH_MAX];
	struct feed *feed;
	char *text; /* its latest snapshot; NULL: none, or the connection has ended */
	size_t size;
	enum feed_state state;
	bool fresh; /* the snapshot is not taken yet */
};

struct feeds {
	char where[512];
	unsigned interval_ms;
	struct feeds_member members[JOINED_PARTS];
	size_t count;
	uint64_t search_ns, fresh_ns; /* of the next search; when the first fresh snapshot came */
	char *joined;
	char why[512];
};

struct feeds *feeds__new(const char *where, unsigned interval_ms)
{
	struct feeds *feeds = calloc(1, sizeof(*feeds));

	if (!feeds)
		return NULL;
	snprintf(feeds->where, sizeof(feeds->where), "%s", where);
	feeds->interval_ms = interval_ms;
	return feeds;
}

static void forget_snapshot(struct feeds_member *member)
{
	free(member->text);
	member->text = NULL;
	member->fresh = false;
}

static void remove_member(struct feeds *feeds, size_t at)
{
	forget_snapshot(&feeds->members[at]);
	feed__free(feeds->members[at].feed);
	feeds->members[at] = feeds->members[--feeds->count];
}

void feeds__free(struct feeds *feeds)
{
	if (!feeds)
		return;
	while (feeds->count)
		remove_member(feeds, 0);
	free(feeds->joined);
	free(feeds);
}

static bool has_path(const struct feeds *feeds, const char *path)
{
	for (size_t i = 0; i < feeds->count; i++) {
		if (!strcmp(feeds->members[i].path, path))
			return true;
	}
	return false;
}

static void add_path(struct feeds *feeds, const char *path)
{
	struct feeds_member member = {.state = FEED_WAITING};

	if (has_path(feeds, path) || feeds->count == JOINED_PARTS)
		return;
	snprintf(member.path, sizeof(member.path), "%s", path);
	member.feed = feed__new(path, feeds->interval_ms);
	if (member.feed)
		feeds->members[feeds->count++] = member;
}

/* Removes the vaprods that have ended: a connection that goes on stays. */
static void remove_ended(struct feeds *feeds, const struct query_found *found)
{
	for (size_t i = feeds->count; i--;) {
		bool listed = !found->several && !strcmp(found->path, feeds->members[i].path);

		for (int k = 0; k < found->several && k < QUERY_NAMED; k++)
			listed |= !strcmp(found->names[k], feeds->members[i].path);
		if (!listed && feed__fd(feeds->members[i].feed) < 0)
			remove_member(feeds, i);
	}
}

/* Searches for vaprods. With none, why says so. */
static void search(struct feeds *feeds, uint64_t now_ns)
{
	struct query_found found = {.several = 0};
	char err[512];
	int error = query_client__find(feeds->where, true, &found, err, sizeof(err));

	remove_ended(feeds, &found);
	if (!error)
		add_path(feeds, found.path);
	for (int i = 0; i < found.several && i < QUERY_NAMED; i++)
		add_path(feeds, found.names[i]);
	if (error == -ENOENT)
		snprintf(feeds->why, sizeof(feeds->why), "waiting for vaprod: no socket in %s", feeds->where);
	else if (error && error != -EEXIST)
		snprintf(feeds->why, sizeof(feeds->why), "%s", err);
	feeds->search_ns = now_ns + (feeds->count ? SEARCH_NS : AGAIN_NS);
}

/* Lets a connection go on; retains its new snapshot, after which it waits until that is taken. */
static void step(struct feeds *feeds, struct feeds_member *member, uint64_t now_ns)
{
	const char *text;

	if (member->fresh)
		return;
	member->state = feed__step(member->feed, now_ns);
	if (member->state == FEED_WAITING || member->state == FEED_REFUSED) {
		forget_snapshot(member);
		if (feeds->search_ns > now_ns + AGAIN_NS)
			feeds->search_ns = now_ns + AGAIN_NS;
	}
	if (member->state != FEED_SNAPSHOT)
		return;
	forget_snapshot(member);
	text = feed__take(member->feed, &member->size);
	member->text = malloc(member->size + 1);
	if (!member->text)
		return;
	memcpy(member->text, text, member->size);
	member->text[member->size] = 0;
	member->fresh = true;
	if (!feeds->fresh_ns)
		feeds->fresh_ns = now_ns;
}

enum feed_state feeds__step(struct feeds *feeds, uint64_t now_ns)
{
	size_t fresh = 0, awaited = 0, refused = 0;

	free(feeds->joined);
	feeds->joined = NULL;
	if (now_ns >= feeds->search_ns)
		search(feeds, now_ns);
	for (size_t i = 0; i < feeds->count; i++) {
		struct feeds_member *member = &feeds->members[i];

		step(feeds, member, now_ns);
		fresh += member->fresh;
		awaited += member->state == FEED_CONNECTED && !member->fresh;
		refused += member->state == FEED_REFUSED;
	}
	if (fresh && (!awaited || now_ns > feeds->fresh_ns + LATE_NS))
		return FEED_SNAPSHOT;
	if (fresh || awaited)
		return FEED_CONNECTED;
	return refused && refused == feeds->count ? FEED_REFUSED : FEED_WAITING;
}

size_t feeds__fds(const struct feeds *feeds, struct pollfd fds[JOINED_PARTS])
{
	size_t count = 0;

	for (size_t i = 0; i < feeds->count; i++) {
		if (feed__fd(feeds->members[i].feed) >= 0)
			fds[count++] = (struct pollfd){.fd = feed__fd(feeds->members[i].feed), .events = POLLIN};
	}
	return count;
}

const char *feeds__take(struct feeds *feeds, size_t *size)
{
	struct joined_part parts[JOINED_PARTS];

	for (size_t i = 0; i < feeds->count; i++) {
		parts[i] = (struct joined_part){feeds->members[i].text, feeds->members[i].size};
		feeds->members[i].fresh = false;
	}
	feeds->fresh_ns = 0;
	free(feeds->joined);
	feeds->joined = joined_records__make(parts, feeds->count, size);
	return feeds->joined;
}

const char *feeds__why(const struct feeds *feeds)
{
	for (size_t i = 0; i < feeds->count; i++) {
		if (feed__fd(feeds->members[i].feed) >= 0)
			return "";
	}
	return feeds->count ? feed__why(feeds->members[0].feed) : feeds->why;
}
