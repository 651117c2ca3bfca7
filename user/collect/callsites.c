// SPDX-License-Identifier: GPL-2.0-or-later
#include "collect/callsites_private.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/grow.h"
#include "collect/name_reader.h"
#include "probe/elf/transparent.h"

struct cached_image *callsites__hold(struct callsites *callsites, const struct process_mapping *mapping)
{
	struct cached_image *cached;

	for (size_t i = 0; i < callsites->held_count; i++)
		if (callsites->held[i]->device == mapping->device && callsites->held[i]->inode == mapping->inode)
			return callsites->held[i];
	cached = image_cache__get(callsites->cache, callsites->process, mapping);
	if (!cached ||
	    grow(&callsites->held, &callsites->held_room, callsites->held_count + 1, sizeof(*callsites->held)))
		return NULL;
	cached->users++;
	callsites->held[callsites->held_count++] = cached;
	return cached;
}

static void hold_mapped(struct callsites *callsites)
{
	const struct process *process = callsites->process;

	for (size_t i = 0; i < process->mapping_count; i++)
		if (process->mappings[i].inode)
			callsites__hold(callsites, &process->mappings[i]);
}

int callsites__remapped(struct callsites *callsites)
{
	int status = process__reread_mappings(callsites->process);

	if (!status)
		hold_mapped(callsites);
	return status;
}

struct callsites *callsites__new(struct image_cache *cache, struct process *process)
{
	struct callsites *callsites = calloc(1, sizeof(*callsites));

	if (!callsites)
		return NULL;
	callsites->cache = cache;
	callsites->process = process;
	callsites->transparent = -1;
	hold_mapped(callsites);
	return callsites;
}

void callsites__free(struct callsites *callsites)
{
	if (!callsites)
		return;
	for (size_t i = 0; i < callsites->held_count; i++)
		image_cache__put(callsites->cache, callsites->held[i]);
	for (uint32_t i = 0; i < CACHED_SITES; i++)
		free(callsites->cached[i]);
	free(callsites->held);
	free(callsites);
}

/* Numbers an image and passes its table to the kernel side, once. False without a table. */
static bool number_transparent(struct image_cache *cache, struct cached_image *cached)
{
	const struct transparent_call *calls;
	struct kernel_hop_key key;
	size_t count = 0;

	if (cached->number)
		return true;
	cached->transparent = true;
	calls = cached_image__parsed(cached) ? survey__calls(cached->survey, &count) : NULL;
	if (!count)
		return false;
	key.image = cached->number = ++cache->numbers;
	for (size_t i = 0; i < count; i++) {
		key.vaddr = calls[i].vaddr;
		bpf_map_update_elem(cache->hops, &key, &calls[i].hop, BPF_ANY);
	}
	return true;
}

/* Whether an image is looked through; of one that is not surveyed its name decides. */
static bool is_transparent(const struct callsites *callsites, const struct process_mapping *mapping,
			   const struct cached_image *cached)
{
	const char *base = strrchr(mapping->path, '/');

	return cached->transparent || (base && transparent__is(base + 1, callsites->more_transparent));
}

static void push_transparent(struct callsites *callsites)
{
	struct kernel_transparent updates = {0};
	uint32_t tgid = (uint32_t)callsites->process->pid;

	for (size_t i = 0; i < callsites->process->mapping_count && updates.count < KERNEL_TRANSPARENT; i++) {
		const struct process_mapping *mapping = &callsites->process->mappings[i];
		struct cached_image *cached = mapping->inode ? callsites__hold(callsites, mapping) : NULL;
		uint64_t vaddr;

		if (!cached || !is_transparent(callsites, mapping, cached) ||
		    !number_transparent(callsites->cache, cached) ||
		    image__vaddr_of(survey__image(cached->survey), mapping->offset, &vaddr))
			continue;
		updates.ranges[updates.count++] = (struct kernel_text){.begin = mapping->start,
								       .end = mapping->end,
								       .bias = mapping->start - vaddr,
								       .image = cached->number};
	}
	if (updates.count && !bpf_map_update_elem(callsites->transparent, &tgid, &updates, BPF_ANY))
		++*callsites->updates;
	callsites->numbered = callsites->cache->numbers;
}

/* Whether an image was found to be transparent after the kernel side had the tables of the process. */
static bool is_unpushed(const struct callsites *callsites, const struct cached_image *cached)
{
	size_t count = 0;

	if (!cached->transparent || !cached->survey)
		return false;
	survey__calls(cached->survey, &count);
	return count && (!cached->number || cached->number > callsites->numbered);
}

void callsites__push_transparent(struct callsites *callsites, int transparent, int hops, const char *more,
				 uint32_t *updates)
{
	callsites->updates = updates;
	callsites->transparent = transparent;
	callsites->more_transparent = more;
	callsites->cache->hops = hops;
	push_transparent(callsites);
}

bool callsites__frame(struct callsites *callsites, uint64_t address, struct callsite *site)
{
	const struct process_mapping *mapping = process__mapping_at(callsites->process, address);
	const char *base = mapping ? strrchr(mapping->path, '/') : NULL;

	/* frames below the program's start are the C library's, built without frame pointers */
	if (!base || !mapping->inode || !fnmatch("libc.so*", base + 1, 0) || !fnmatch("ld-linux*", base + 1, 0))
		return false;
	callsites__resolve(callsites, address, site);
	return true;
}

/* Returns whether all is known that will be known. */
static bool resolve(struct callsites *callsites, uint64_t address, struct callsite *site)
{
	const struct process_mapping *mapping = process__mapping_at(callsites->process, address);
	struct cached_image *cached;
	const char *base, *name;
	uint64_t offset, vaddr, distance, spent_ns;
	struct image *image;

	if (!mapping && !process__reread_mappings(callsites->process)) { /* a library came late */
		mapping = process__mapping_at(callsites->process, address);
		if (callsites->transparent >= 0)
			push_transparent(callsites);
	}
	cached = mapping && mapping->inode ? callsites__hold(callsites, mapping) : NULL;
	site->symbol[0] = '\0';
	site->path = cached ? cached->path : NULL;
	site->transparent = false;
	if (!cached) {
		snprintf(site->text, sizeof(site->text), "anonymous@0+%#llx", (unsigned long long)address);
		return true;
	}
	spent_ns = cached->tried ? 0 : cpu_spent();
	image = cached_image__parsed(cached);
	callsites->read_ns += spent_ns ? cpu_spent() - spent_ns : 0;
	offset = address - mapping->start + mapping->offset;
	base = strrchr(mapping->path, '/');
	base = base ? base + 1 : mapping->path;
	site->transparent = callsites->transparent >= 0 && is_transparent(callsites, mapping, cached);
	if (site->transparent && is_unpushed(callsites, cached))
		push_transparent(callsites);
	snprintf(site->text, sizeof(site->text), "%.*s@%.12s+%#llx", (int)strcspn(base, " "), base,
		 image && image__build_id(image)[0] ? image__build_id(image) : "0", (unsigned long long)offset);
	/* the call is before the address it returns to */
	if (!image || image__vaddr_of(image, offset ? offset - 1 : 0, &vaddr))
		return cached->tried || cached->file < 0;
	name = image__symbolise(image, vaddr, &distance);
	if (name)
		snprintf(site->symbol, sizeof(site->symbol), "%s+%#llx", name, (unsigned long long)distance + 1);
	return true;
}

static struct cached_site **slot_of(struct callsites *callsites, uint64_t address)
{
	return &callsites->cached[(address ^ address >> 12) & (CACHED_SITES - 1)];
}

void callsites__resolve(struct callsites *callsites, uint64_t address, struct callsite *site)
{
	struct cached_site **slot = slot_of(callsites, address);

	if (*slot && (*slot)->address == address) {
		*site = (*slot)->site;
		return;
	}
	if (!resolve(callsites, address, site)) /* its image is read later */
		return;
	if (!*slot)
		*slot = calloc(1, sizeof(**slot));
	if (*slot)
		**slot = (struct cached_site){.address = address, .site = *site};
}

uint64_t callsites__read_ns(const struct callsites *callsites)
{
	return callsites->read_ns;
}

void callsites__name(struct callsites *callsites, uint64_t address, const char *text, bool urgent)
{
	struct name_reader *names = callsites->cache->names;
	struct cached_site *known = *slot_of(callsites, address);
	const struct process_mapping *mapping;
	struct cached_image *cached;
	struct name_image about;
	struct image *image;

	if (known && known->address != address)
		known = NULL;
	if (!names || (known && known->named && (known->named_urgently || !urgent)))
		return;
	mapping = process__mapping_at(callsites->process, address);
	cached = mapping && mapping->inode ? callsites__hold(callsites, mapping) : NULL;
	image = cached ? cached_image__parsed(cached) : NULL;
	if (!image)
		return;
	if (known) {
		known->named = true;
		known->named_urgently |= urgent;
	}
	about = (struct name_image){.file = cached->file,
				    .owner = cached->owner,
				    .path = cached->path,
				    .build_id = image__build_id(image),
				    .interpreter = cached_image__is_interpreter(cached),
				    .runtime = cached_image__is_runtime(cached)};
	name_reader__want(names, text, address - mapping->start + mapping->offset, &about, urgent);
}

const char *callsites__build_id(struct callsites *callsites)
{
	for (size_t i = 0; i < callsites->held_count; i++) {
		struct cached_image *cached = callsites->held[i];

		if (!strcmp(cached->path, callsites->process->exe) && cached_image__parsed(cached))
			return image__build_id(survey__image(cached->survey));
	}
	return "";
}

int callsites__loaded_at(const struct callsites *callsites, const struct cached_image *cached, struct image *image,
			 uint64_t vaddr, uint64_t *address)
{
	uint64_t text_vaddr;

	/* the load bias is the same for all segments: any mapping shows it */
	for (size_t i = 0; i < callsites->process->mapping_count; i++) {
		const struct process_mapping *mapping = &callsites->process->mappings[i];

		if (mapping->inode != cached->inode || mapping->device != cached->device ||
		    image__vaddr_of(image, mapping->offset, &text_vaddr))
			continue;
		*address = mapping->start - text_vaddr + vaddr;
		return 0;
	}
	return -ENOENT;
}

int callsites__object(struct callsites *callsites, const char *name, uint64_t *address)
{
	const struct process_library *mpi = &callsites->process->library;

	/* the executable comes first: a copy-relocated object lives there */
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < callsites->held_count; i++) {
			struct cached_image *cached = callsites->held[i];
			bool library = cached->inode == mpi->inode && cached->device == mpi->device;
			bool executable = !strcmp(cached->path, callsites->process->exe);
			struct image *image;
			uint64_t vaddr, size;

			if (!(pass ? library : executable))
				continue;
			image = cached_image__parsed(cached);
			if (image && !image__object(image, name, &vaddr, &size) &&
			    !callsites__loaded_at(callsites, cached, image, vaddr, address))
				return 0;
		}
	return -ENOENT;
}

int callsites__push_io(struct callsites *callsites, int map, pid_t pid)
{
	struct {
		uint64_t ip;
		uint32_t tgid, pad;
	} key = {.tgid = (uint32_t)pid};
	int updates = 0;

	for (size_t i = 0; i < callsites->held_count; i++) {
		struct cached_image *cached = callsites->held[i];
		struct image *image = cached_image__is_libc(cached) ? cached_image__parsed(cached) : NULL;
		const struct io_site *sites;
		size_t count = 0;

		sites = image ? survey__io_sites(cached->survey, &count) : NULL;
		for (size_t j = 0; j < count; j++) {
			if (callsites__loaded_at(callsites, cached, image, sites[j].vaddr, &key.ip))
				continue;
			updates += !bpf_map_update_elem(map, &key, &sites[j].displacement, BPF_ANY);
		}
	}
	return updates;
}
