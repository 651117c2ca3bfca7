/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/state_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/table.h"
#include "base/text.h"

#define NONE UINT32_MAX
#define LEAST_BUCKETS 1024 /* a power of two */

struct name {
	char *text; /* NULL: this place is free */
	uint64_t hash;
	uint32_t id;
	uint32_t users;
	uint32_t next;		 /* in the bucket, or free place */
	uint32_t older, younger; /* unused names */
};

struct user {
	uint32_t process;
	struct table *has; /* places of the names in use */
	uint32_t *uses;
	size_t count, capacity;
};

struct state_names {
	struct name *names;
	size_t count, capacity;
	uint32_t free;	   /* the first free place */
	uint32_t *buckets; /* first names, by hash */
	size_t bucket_count, live;
	struct user *users;
	size_t user_count, user_capacity;
	uint32_t next_id;
	uint32_t oldest, youngest; /* unused names */
	size_t text_bytes, unused_bytes, unused_most;
};

struct state_names *state_names__new(size_t unused_bytes)
{
	struct state_names *names = calloc(1, sizeof(*names));

	if (!names)
		return NULL;
	names->free = names->oldest = names->youngest = NONE;
	names->unused_most = unused_bytes;
	names->bucket_count = LEAST_BUCKETS;
	names->buckets = malloc(names->bucket_count * sizeof(*names->buckets));
	if (!names->buckets) {
		free(names);
		return NULL;
	}
	memset(names->buckets, 0xff, names->bucket_count * sizeof(*names->buckets));
	return names;
}

static void free_user(struct user *user)
{
	table__free(user->has);
	free(user->uses);
}

void state_names__free(struct state_names *names)
{
	if (!names)
		return;
	for (size_t i = 0; i < names->count; i++)
		free(names->names[i].text);
	for (size_t i = 0; i < names->user_count; i++)
		free_user(&names->users[i]);
	free(names->names);
	free(names->buckets);
	free(names->users);
	free(names);
}

static uint32_t *bucket_of(const struct state_names *names, uint64_t hash)
{
	return &names->buckets[hash & (names->bucket_count - 1)];
}

/* Doubles the buckets; without memory for them, chains grow longer. */
static void enlarge(struct state_names *names)
{
	size_t count = names->bucket_count * 2;
	uint32_t *buckets = malloc(count * sizeof(*buckets));

	if (!buckets)
		return;
	memset(buckets, 0xff, count * sizeof(*buckets));
	free(names->buckets);
	names->buckets = buckets;
	names->bucket_count = count;
	for (uint32_t i = 0; i < names->count; i++) {
		uint32_t *bucket = bucket_of(names, names->names[i].hash);

		if (!names->names[i].text)
			continue;
		names->names[i].next = *bucket;
		*bucket = i;
	}
}

static uint32_t find(const struct state_names *names, const char *text, uint64_t hash)
{
	uint32_t at = *bucket_of(names, hash);

	while (at != NONE && (names->names[at].hash != hash || strcmp(names->names[at].text, text)))
		at = names->names[at].next;
	return at;
}

static void join_unused(struct state_names *names, uint32_t at)
{
	struct name *name = &names->names[at];

	name->older = names->youngest;
	name->younger = NONE;
	if (names->youngest != NONE)
		names->names[names->youngest].younger = at;
	else
		names->oldest = at;
	names->youngest = at;
	names->unused_bytes += strlen(name->text) + 1;
}

static void leave_unused(struct state_names *names, uint32_t at)
{
	struct name *name = &names->names[at];

	if (name->older != NONE)
		names->names[name->older].younger = name->younger;
	else
		names->oldest = name->younger;
	if (name->younger != NONE)
		names->names[name->younger].older = name->older;
	else
		names->youngest = name->older;
	names->unused_bytes -= strlen(name->text) + 1;
}

static void forget(struct state_names *names, uint32_t at)
{
	struct name *name = &names->names[at];
	uint32_t *link = bucket_of(names, name->hash);

	leave_unused(names, at);
	while (*link != at)
		link = &names->names[*link].next;
	*link = name->next;
	names->text_bytes -= strlen(name->text) + 1;
	free(name->text);
	*name = (struct name){.next = names->free};
	names->free = at;
	names->live--;
}

/* Adds a name that is unused yet. NONE when out of memory. */
static uint32_t add(struct state_names *names, const char *text, uint64_t hash)
{
	uint32_t at = names->free, *bucket;
	char *copy;

	if (at == NONE && grow(&names->names, &names->capacity, names->count + 1, sizeof(*names->names)))
		return NONE;
	copy = strdup(text);
	if (!copy)
		return NONE;
	if (at == NONE)
		at = (uint32_t)names->count++;
	else
		names->free = names->names[at].next;
	if (++names->live > names->bucket_count)
		enlarge(names);
	bucket = bucket_of(names, hash);
	names->names[at] = (struct name){.text = copy, .hash = hash, .id = names->next_id++, .next = *bucket};
	*bucket = at;
	names->text_bytes += strlen(text) + 1;
	join_unused(names, at);
	return at;
}

static struct user *user_of(struct state_names *names, uint32_t process)
{
	struct user *user;

	for (size_t i = 0; i < names->user_count; i++) {
		if (names->users[i].process == process)
			return &names->users[i];
	}
	if (grow(&names->users, &names->user_capacity, names->user_count + 1, sizeof(*names->users)))
		return NULL;
	user = &names->users[names->user_count];
	*user = (struct user){.process = process, .has = table__new()};
	if (!user->has)
		return NULL;
	names->user_count++;
	return user;
}

int64_t state_names__use(struct state_names *names, uint32_t process, const char *text, bool *fresh)
{
	struct user *user = user_of(names, process);
	uint64_t hash = table__hash(text__hash(text, strlen(text)), 0);
	uint32_t at, known;

	*fresh = false;
	if (!user || grow(&user->uses, &user->capacity, user->count + 1, sizeof(*user->uses)))
		return -ENOMEM;
	at = find(names, text, hash);
	if (at != NONE && table__get(user->has, at, 0, &known))
		return names->names[at].id;
	*fresh = at == NONE;
	if (at == NONE)
		at = add(names, text, hash);
	/* a number that was not announced is given again */
	if (at == NONE || table__put(user->has, at, 0, at)) {
		if (*fresh && at != NONE) {
			forget(names, at);
			names->next_id--;
		}
		*fresh = false;
		return -ENOMEM;
	}
	user->uses[user->count++] = at;
	if (!names->names[at].users++)
		leave_unused(names, at);
	return names->names[at].id;
}

void state_names__release(struct state_names *names, uint32_t process, void (*gone)(void *arg, uint32_t id), void *arg)
{
	struct user *user = NULL;

	for (size_t i = 0; !user && i < names->user_count; i++) {
		if (names->users[i].process == process)
			user = &names->users[i];
	}
	if (!user)
		return;
	for (size_t i = 0; i < user->count; i++) {
		if (!--names->names[user->uses[i]].users)
			join_unused(names, user->uses[i]);
	}
	free_user(user);
	*user = names->users[--names->user_count];
	while (names->unused_bytes > names->unused_most) {
		gone(arg, names->names[names->oldest].id);
		forget(names, names->oldest);
	}
}

size_t state_names__bytes(const struct state_names *names)
{
	size_t bytes = sizeof(*names) + names->text_bytes + names->capacity * sizeof(*names->names) +
		       names->bucket_count * sizeof(*names->buckets) + names->user_capacity * sizeof(*names->users);

	for (size_t i = 0; i < names->user_count; i++)
		bytes += table__bytes(names->users[i].has) + names->users[i].capacity * sizeof(*names->users[i].uses);
	return bytes;
}
