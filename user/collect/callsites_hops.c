// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Return addresses that are hopped to their callers are held by image, for all processes that map the image. Frames
 * are looked up on demand: of call-sites that the analysis requests, and of runtimes (between the program and its IO)
 * when a call-site ends there. Looking up takes time that ranks may need: all of an image are looked up in one request,
 * in the background and after a rest (image_cache__look_up()).
 */
#include "collect/callsites_private.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

#define RUNTIME_SITES_MOST 128 /* per image */
#define LOOKUP_REST 200	       /* rest after a look-up, as a multiple of its processor time, */
/* but for what was saved up: from a call in a runtime to the program's own frame it takes several look-ups */
#define LOOKUP_SAVED_NS 10000000000ULL

static const char no_memory[] = "needs memory that there is not";

static const char *const runtimes[] = {"libc.so.6*", "ld-linux*",      "libstdc++.so*",	 "libgfortran.so*",
				       "libc++.so*", "libflang*.so*",  "libpgf90*",	 "libifcore*",
				       "libifport*", "libpthread.so*", "libFortran*.so*"};

/* Interpreters make all their calls from one loop; modules that they load are listed as well. */
static const char *const interpreters[] = {"python[0-9]*", "libpython*.so*", "*.cpython-*.so", "*.abi3.so",
					   "perl*",	   "libperl.so*",    "ruby*",	       "libruby*.so*",
					   "libR.so*",	   "java",	     "libjvm.so",      "libjulia*.so*",
					   "lua*",	   "liblua*.so*",    "node",	       "liboctinterp.so*"};

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

#define AMONG(globs, name) among(globs, sizeof(globs) / sizeof((globs)[0]), name)

static bool among(const char *const *globs, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (!fnmatch(globs[i], name, 0))
			return true;
	return false;
}

bool cached_image__is_runtime(const struct cached_image *cached)
{
	return AMONG(runtimes, base_of(cached->path));
}

bool cached_image__is_interpreter(const struct cached_image *cached)
{
	return AMONG(interpreters, base_of(cached->path));
}

static struct hopped_site *site_at(const struct cached_image *cached, uint64_t offset)
{
	for (size_t i = 0; i < cached->site_count; i++)
		if (cached->sites[i].offset == offset)
			return &cached->sites[i];
	return NULL;
}

static struct hopped_site *add_site(struct cached_image *cached, uint64_t offset)
{
	if (grow(&cached->sites, &cached->site_room, cached->site_count + 1, sizeof(*cached->sites)))
		return NULL;
	cached->sites[cached->site_count] = (struct hopped_site){.offset = offset};
	return &cached->sites[cached->site_count++];
}

/* Says whether a text is of this image: `name@<first 12 of build-id>+0xOFFSET`. */
static bool is_of(struct cached_image *cached, const char *site, uint64_t *offset)
{
	const char *base = base_of(cached->path);
	size_t length = strcspn(base, " ");
	struct image *image = cached->tried ? cached_image__parsed(cached) : NULL;
	char head[CALLSITE_MAX];
	char *end;

	if (!image)
		return false;
	snprintf(head, sizeof(head), "%.*s@%.12s+", (int)length, base,
		 image__build_id(image)[0] ? image__build_id(image) : "0");
	if (strncmp(site, head, strlen(head)))
		return false;
	*offset = strtoull(site + strlen(head), &end, 16);
	return !*end;
}

static bool in_main(struct cached_image *cached, uint64_t offset)
{
	struct image *image = cached_image__parsed(cached);
	uint64_t vaddr, distance;
	const char *name;

	if (image__vaddr_of(image, offset - 1, &vaddr))
		return false;
	name = image__symbolise(image, vaddr, &distance);
	return name && (!strcmp(name, "main") || !strcmp(name, "MAIN__"));
}

/* Returns a place of an image, whose frame will be looked up where it is not known. NULL when out of memory. */
static struct hopped_site *wanted_site(struct cached_image *cached, uint64_t offset)
{
	struct hopped_site *site = site_at(cached, offset);

	if (!site)
		site = add_site(cached, offset);
	if (site && !site->known)
		cached->cache->wanted = true;
	return site;
}

static const char *refusal_of(const struct hopped_site *site)
{
	switch (site->frame.rule) {
	case FRAME_FOUND:
		return NULL;
	case FRAME_NONE:
		return "lies in code without unwind information (.eh_frame)";
	case FRAME_EXPRESSION:
		return "has a frame that only an expression describes, based on neither the stack pointer nor the "
		       "frame pointer";
	case FRAME_RULES:
		break;
	}
	return "lies in a file whose unwind information could not be read";
}

/*
 * Returns why a place of an image is never hopped, whatever its frame, or NULL. *top: nothing of the program calls the
 * place.
 */
static const char *never(struct cached_image *cached, uint64_t offset, bool *top)
{
	const char *base = base_of(cached->path);

	if (cached_image__is_interpreter(cached))
		return "is called by an interpreter, all of whose calls come from the same frames";
	*top = true;
	if (AMONG(runtimes, base))
		return "lies in the C library or the runtime of a language";
	if (in_main(cached, offset))
		return "lies in the main function, which nothing of the program calls";
	*top = false;
	if (!image__build_id(cached_image__parsed(cached))[0])
		return "lies in a file without a build-id";
	return NULL;
}

/* Returns whether a place of an image can be hopped now: 0, -EAGAIN, or -EPERM with a refusal. */
static int can_hop(struct cached_image *cached, uint64_t offset, const char **refusal, bool *top)
{
	const struct hopped_site *site = NULL;

	*refusal = never(cached, offset, top);
	if (!*refusal) {
		site = wanted_site(cached, offset);
		*refusal = !site ? no_memory : site->known ? refusal_of(site) : NULL;
	}
	return *refusal ? -EPERM : site->known ? 0 : -EAGAIN;
}

static bool remember(struct image_cache *cache, const char *site)
{
	for (size_t i = 0; i < cache->hopped_count; i++)
		if (!strcmp(cache->hopped[i], site))
			return true;
	if (grow(&cache->hopped, &cache->hopped_room, cache->hopped_count + 1, sizeof(*cache->hopped)) ||
	    !(cache->hopped[cache->hopped_count] = strdup(site)))
		return false;
	cache->hopped_count++;
	return true;
}

int image_cache__hop(struct image_cache *cache, const char *site, const char **refusal, bool *top)
{
	uint64_t offset;
	int status = -EPERM;

	*refusal = "lies in no file that is mapped now";
	*top = false;
	for (size_t i = 0; i < cache->count; i++) {
		if (!is_of(cache->images[i], site, &offset))
			continue;
		status = can_hop(cache->images[i], offset, refusal, top);
		if (status)
			return status;
	}
	if (status)
		return status;
	if (!remember(cache, site)) {
		*refusal = no_memory;
		return -EPERM;
	}
	for (size_t i = 0; i < cache->count; i++)
		if (is_of(cache->images[i], site, &offset))
			site_at(cache->images[i], offset)->on = true;
	return 0;
}

void cached_image__resume_hops(struct cached_image *cached)
{
	struct image_cache *cache = cached->cache;
	const char *refusal;
	uint64_t offset;
	bool top;

	for (size_t i = 0; i < cache->hopped_count; i++) {
		int status =
		    is_of(cached, cache->hopped[i], &offset) ? can_hop(cached, offset, &refusal, &top) : -EPERM;

		if (status == -EAGAIN)
			site_at(cached, offset)->wanted = true;
		else if (!status)
			site_at(cached, offset)->on = cache->changed = true;
	}
}

void image_cache__unhop(struct image_cache *cache, const char *site)
{
	for (size_t i = 0; i < cache->hopped_count; i++) {
		if (strcmp(cache->hopped[i], site))
			continue;
		free(cache->hopped[i]);
		cache->hopped[i] = cache->hopped[--cache->hopped_count];
	}
	for (size_t i = 0; i < cache->count; i++) {
		struct hopped_site *hopped;
		uint64_t offset;

		hopped = is_of(cache->images[i], site, &offset) ? site_at(cache->images[i], offset) : NULL;
		if (hopped)
			hopped->on = hopped->wanted = false;
	}
}

bool callsites__in_runtime(struct callsites *callsites, uint64_t address)
{
	const struct process_mapping *mapping = process__mapping_at(callsites->process, address);
	struct cached_image *cached;
	struct hopped_site *site;
	uint64_t offset;

	if (!mapping || !mapping->inode || !AMONG(runtimes, base_of(mapping->path)))
		return false;
	cached = callsites__hold(callsites, mapping);
	offset = address - mapping->start + mapping->offset;
	if (cached && cached->site_count < RUNTIME_SITES_MOST && !site_at(cached, offset)) {
		site = wanted_site(cached, offset);
		if (site)
			site->wanted = true;
	}
	return true;
}

/* Records the frame of a place, or that its image could not be read (NULL). Returns whether it is hopped now. */
static bool know(struct hopped_site *site, const struct frame *frame)
{
	bool hopped = site->wanted && frame && frame->rule == FRAME_FOUND;

	site->frame = frame ? *frame : (struct frame){.rule = FRAME_RULES};
	site->known = true;
	site->wanted = false;
	site->on |= hopped;
	return hopped;
}

void cached_image__give_up(struct cached_image *cached)
{
	struct lookup *lookup = &cached->cache->lookup;

	if (lookup->image != cached)
		return;
	frames_lookup__free(lookup->frames);
	lookup->frames = NULL;
	lookup->image = NULL;
}

/* Ends a look-up that is over. Returns whether a place is hopped now. */
static bool end_look_up(struct lookup *lookup, uint64_t now_ns)
{
	struct frame frames[FRAMES_MOST];
	bool hopped = false;
	uint64_t cpu_ns;
	char err[256];
	int status = frames_lookup__poll(lookup->frames, frames, &cpu_ns, err, sizeof(err));

	if (status == -EAGAIN)
		return false;
	for (size_t i = 0; i < lookup->count; i++)
		hopped |= know(site_at(lookup->image, lookup->offsets[i]), status ? NULL : &frames[i]);
	if (lookup->rest_ns + LOOKUP_SAVED_NS < now_ns)
		lookup->rest_ns = now_ns - LOOKUP_SAVED_NS;
	lookup->rest_ns += LOOKUP_REST * cpu_ns;
	cached_image__give_up(lookup->image);
	return hopped;
}

/* Begins to look up what is not known of an image. Returns whether there is anything, also if it failed at once. */
static bool begin_look_up(struct lookup *lookup, struct cached_image *cached)
{
	char err[256];

	lookup->count = 0;
	for (size_t i = 0; i < cached->site_count && lookup->count < FRAMES_MOST; i++)
		if (!cached->sites[i].known)
			lookup->offsets[lookup->count++] = cached->sites[i].offset;
	if (!lookup->count)
		return false;
	lookup->image = cached;
	if (cached->file < 0 || frames_lookup__begin(cached->file, cached->owner, lookup->offsets, lookup->count,
						     &lookup->frames, err, sizeof(err))) {
		for (size_t i = 0; i < lookup->count; i++)
			know(site_at(cached, lookup->offsets[i]), NULL);
		lookup->image = NULL;
	}
	return true;
}

bool image_cache__look_up(struct image_cache *cache, uint64_t now_ns)
{
	struct lookup *lookup = &cache->lookup;
	bool found = cache->changed;

	cache->changed = false;
	if (lookup->frames)
		return end_look_up(lookup, now_ns) || found;
	if (!cache->wanted || now_ns < lookup->rest_ns)
		return found;
	for (size_t i = 0; i < cache->count; i++)
		if (begin_look_up(lookup, cache->images[i]))
			return found;
	cache->wanted = false;
	return found;
}

bool image_cache__hop_trouble(struct image_cache *cache, char *text, size_t size)
{
	for (size_t i = 0; i < cache->count; i++) {
		struct cached_image *cached = cache->images[i];

		if (cached->refused || !cached_image__is_runtime(cached))
			continue;
		for (size_t k = 0; k < cached->site_count; k++) {
			const struct hopped_site *site = &cached->sites[k];

			if (!site->known || site->frame.rule == FRAME_FOUND)
				continue;
			cached->refused = true;
			snprintf(text, size, "%s+%#llx %s: IO that comes through it stays without its callers",
				 base_of(cached->path), (unsigned long long)site->offset, refusal_of(site));
			return true;
		}
	}
	return false;
}

size_t callsites__push_hops(struct callsites *callsites, int map)
{
	struct kernel_hopped_key key = {.tgid = (uint32_t)callsites->process->pid};
	size_t count = 0;

	for (size_t i = 0; i < callsites->held_count; i++) {
		struct cached_image *cached = callsites->held[i];
		struct image *image = cached->site_count ? cached_image__parsed(cached) : NULL;

		for (size_t k = 0; image && k < cached->site_count; k++) {
			const struct hopped_site *site = &cached->sites[k];
			uint64_t vaddr;

			if (image__vaddr_of(image, site->offset, &vaddr) ||
			    callsites__loaded_at(callsites, cached, image, vaddr, &key.address))
				continue;
			if (!site->on)
				bpf_map_delete_elem(map, &key);
			else
				count += !bpf_map_update_elem(map, &key, &site->frame.hop, BPF_ANY);
		}
	}
	return count;
}
