// SPDX-License-Identifier: GPL-2.0-or-later
#include "collect/site_name.h"

#include <stdio.h>
#include <string.h>
#include <vapro/bundle.h>

static void begin(struct site_name *name, struct callsites *callsites, const struct kernel_vertex_key *key,
		  struct callsite *site)
{
	callsites__resolve(callsites, key->site, site);
	callsites__name(callsites, key->site, site->text, key->function < KERNEL_FUNCTIONS);
	snprintf(name->text, sizeof(name->text), "%s", site->text);
	snprintf(name->symbol, sizeof(name->symbol), "%s", site->symbol);
	name->path = site->path;
	name->transparent = site->transparent;
}

static bool append(char *text, size_t size, const char *more)
{
	size_t length = strlen(text);

	if (length + strlen(SITE_CALLED_BY) + strlen(more) >= size)
		return false;
	snprintf(text + length, size - length, "%s%s", SITE_CALLED_BY, more);
	return true;
}

/* Appends a caller; a place stands for an unknown symbol, so that the others stay useful. */
static void append_caller(struct site_name *name, struct callsites *callsites, uint64_t address, bool urgent)
{
	struct callsite caller;

	callsites__resolve(callsites, address, &caller);
	if (!append(name->text, sizeof(name->text), caller.text))
		return;
	callsites__name(callsites, address, caller.text, urgent);
	if (!name->symbol[0])
		snprintf(name->symbol, sizeof(name->symbol), "%.*s", (int)strcspn(name->text, " "), name->text);
	append(name->symbol, sizeof(name->symbol), caller.symbol[0] ? caller.symbol : caller.text);
}

/* Finds the program's frame that called a runtime; false where the path does not leave the runtime. */
static bool out_of_runtime(struct callsites *callsites, const struct kernel_path_key *path, uint64_t *address)
{
	for (uint32_t i = 0; i < path->count && i < KERNEL_PATH_DEPTH; i++) {
		if (callsites__in_runtime(callsites, path->address[i]))
			continue;
		*address = path->address[i];
		return true;
	}
	return false;
}

void site_name__hopped(struct site_name *name, struct callsites *callsites, const struct kernel_vertex_key *key,
		       const struct kernel_path_key *path, bool hops)
{
	bool system_call = key->function >= KERNEL_FUNCTIONS;
	struct callsite site;
	uint64_t address;

	begin(name, callsites, key, &site);
	if (system_call && hops && callsites__in_runtime(callsites, key->site)) {
		if (path && out_of_runtime(callsites, path, &address))
			append_caller(name, callsites, address, false);
		return;
	}
	for (uint32_t i = 0; path && i < path->count && i < KERNEL_PATH_DEPTH; i++)
		append_caller(name, callsites, path->address[i], !system_call);
}

/* The hash (FNV-1a) is of the callers' places, which are the same on all ranks where raw addresses are not. */
void site_name__by_path(struct site_name *name, struct callsites *callsites, const struct kernel_vertex_key *key,
			const struct kernel_path_key *path)
{
	uint32_t hash = 2166136261u;
	struct callsite site;
	size_t length;

	begin(name, callsites, key, &site);
	if (!path)
		return;
	for (uint32_t i = 0; i < path->count && i < KERNEL_PATH_DEPTH; i++) {
		if (!callsites__frame(callsites, path->address[i], &site))
			break;
		for (const char *c = site.text; *c; c++)
			hash = (hash ^ (unsigned char)*c) * 16777619u;
		hash = (hash ^ '\n') * 16777619u;
	}
	length = strlen(name->text);
	snprintf(name->text + length, sizeof(name->text) - length, "#path:%08x", hash);
}

void site_name__other_path(struct site_name *name)
{
	size_t length = strlen(name->text);

	snprintf(name->text + length, sizeof(name->text) - length, "#path:other");
}
