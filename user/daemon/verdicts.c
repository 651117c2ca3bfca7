// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/verdicts.h"

#include <string.h>

#include "base/text.h"

#define LIFETIME_NS 1000000000ULL /* of what other processes may change unseen */

/* A file has one name but many paths: processes see it from mounts of their own. */
static uint64_t name_of(const char *path)
{
	const char *base = strrchr(path, '/');

	base = base ? base + 1 : path;
	return text__hash(base, strlen(base));
}

static struct verdict *find(struct verdicts *verdicts, const struct process_mapping *mapping)
{
	for (size_t i = 0; i < VERDICTS; i++) {
		struct verdict *verdict = &verdicts->of[i];

		if (verdict->at_ns && verdict->inode == mapping->inode && verdict->device == mapping->device)
			return verdict;
	}
	return NULL;
}

/* What is known of an image, by a search where that may have changed. */
static const struct verdict *look_at(struct verdicts *verdicts, const struct selection *selection,
				     const struct process_mapping *mapping, uint64_t now_ns)
{
	struct verdict *verdict = find(verdicts, mapping);
	size_t others;

	if (verdict && ((verdicts->reported && !verdict->shared) || now_ns <= verdict->at_ns + LIFETIME_NS))
		return verdict;
	if (!verdict)
		verdict = &verdicts->of[verdicts->next++ % VERDICTS];
	*verdict = (struct verdict){
	    .device = mapping->device, .inode = mapping->inode, .name = name_of(mapping->path), .at_ns = now_ns};
	verdict->targets = selection__sharers(selection, mapping, &others);
	verdict->shared = others;
	return verdict;
}

bool verdicts__is_alone(struct verdicts *verdicts, const struct selection *selection,
			const struct process_mapping *mapping, uint32_t linked, uint64_t now_ns)
{
	const struct verdict *verdict = look_at(verdicts, selection, mapping, now_ns);

	/* a job that is just starting may have more than the first few ranks by now */
	return verdict->shared || (verdict->targets <= verdicts->few && linked < verdicts->few);
}

bool verdicts__is_shared(struct verdicts *verdicts, const struct selection *selection,
			 const struct process_mapping *mapping, uint64_t now_ns)
{
	return look_at(verdicts, selection, mapping, now_ns)->shared;
}

bool verdicts__concern(const struct verdicts *verdicts, const char *path)
{
	uint64_t name = name_of(path);

	for (size_t i = 0; i < VERDICTS; i++)
		if (verdicts->of[i].at_ns && verdicts->of[i].name == name)
			return true;
	return false;
}

void verdicts__mapped(struct verdicts *verdicts, const char *path)
{
	uint64_t name = name_of(path);

	for (size_t i = 0; i < VERDICTS; i++)
		if (verdicts->of[i].name == name)
			verdicts->of[i].at_ns = 0;
}

void verdicts__outdated(struct verdicts *verdicts)
{
	for (size_t i = 0; i < VERDICTS; i++)
		verdicts->of[i].at_ns = 0;
}
