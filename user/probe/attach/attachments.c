// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/attach/attachments.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/grow.h"
#include "sandbox/page_holder.h"
#include "sandbox/user_file.h"
#include "target/foreign_mount.h"

#define COUNTERS_BYTES 262144	/* of counters that are read at once; more makes one system call no cheaper */
#define REMOVAL_NS 100000000ULL /* from the closing of a link that is no perf link to its last hit */

bool attachments__init(struct attachments *all, const struct attach_policy *policy, struct kernel_side *side)
{
	all->policy = policy;
	all->side = side;
	all->most = UINT32_MAX;
	all->cpus = (uint32_t)libbpf_num_possible_cpus();
	all->rows_at_once = (uint32_t)(COUNTERS_BYTES / (all->cpus * sizeof(*all->per_cpu))) + 1;
	if (all->rows_at_once > KERNEL_FUNCTIONS)
		all->rows_at_once = KERNEL_FUNCTIONS;
	all->per_cpu = calloc((size_t)all->rows_at_once * all->cpus, sizeof(*all->per_cpu));
	all->detacher = async_detach__new();
	return all->per_cpu && all->detacher;
}

static void close_all(const struct attachments *all, struct attached *image)
{
	for (size_t i = 0; i < image->link_count; i++)
		image->links[i].marked = true;
	attached__close_marked(all, image, true);
}

static void image_free(struct attachments *all, struct attached *image)
{
	close_all(all, image);
	page_holder__release(&image->hold);
	all->policy->free(image);
	if (image->file >= 0)
		close(image->file);
	free(image->path);
	free(image->skips);
	free(image->links);
	free(image->pids);
	free(image->alone);
	free(image);
}

void attachments__free(struct attachments *all)
{
	for (size_t i = 0; i < all->count; i++)
		image_free(all, all->images[i]);
	free(all->images);
	free(all->per_cpu);
	async_detach__free(all->detacher);
}

static struct attached *find(const struct attachments *all, const struct process_mapping *mapping)
{
	for (size_t i = 0; i < all->count; i++)
		if (all->images[i]->public.device == mapping->device && all->images[i]->public.inode == mapping->inode)
			return all->images[i];
	return NULL;
}

/* A descriptor that refers to a mapped file, or -errno: what users mounted or serve is not read at all. */
static int refer(const struct process *process, const struct process_mapping *mapping)
{
	char path[128];
	int file;

	if (foreign_mount__has(process, mapping))
		return -EPERM;
	process__map_file(process, mapping, path, sizeof(path));
	file = user_file__refer(path);
	return file < 0 ? -errno : file;
}

struct attached *attachments__image(struct attachments *all, const struct process *process,
				    const struct process_mapping *mapping, char *err, size_t err_size)
{
	struct attached *image = find(all, mapping);
	int status;

	if (image)
		return image;
	image = calloc(1, all->policy->image_size);
	if (!image || grow(&all->images, &all->room, all->count + 1, sizeof(*all->images))) {
		snprintf(err, err_size, "out of memory");
		free(image);
		errno = ENOMEM;
		return NULL;
	}
	image->file = refer(process, mapping);
	image->path = strdup(mapping->path);
	image->owner = process->owner;
	image->public = (struct attached_image){
	    .device = mapping->device, .inode = mapping->inode, .path = image->path, .build_id = image->build_id};
	status = image->file < 0 ? image->file : image->path ? 0 : -ENOMEM;
	if (status)
		snprintf(err, err_size, "process %d: cannot open %s: %s", process->pid, mapping->path,
			 strerror(-status));
	else if (all->policy->read)
		status = all->policy->read(all, image, err, err_size);
	if (!status)
		return all->images[all->count++] = image;
	image_free(all, image);
	errno = confine__is_later(status) ? -status : ENOEXEC;
	return NULL;
}

bool attached__is_linked(const struct attached *image)
{
	return image->public.linked;
}

/* Updates what the image shows of its mappers. */
static void count_filtered(struct attached *image)
{
	image->public.filtered = 0;
	for (size_t i = 0; i < image->mapper_count; i++)
		image->public.filtered += image->alone[i];
	image->public.linked = image->public.filtered < image->mapper_count;
}

bool attachments__linked(const struct attachments *all, const struct process_mapping *mapping)
{
	const struct attached *image = find(all, mapping);

	return image && image->public.linked;
}

bool attachments__any_linked(const struct attachments *all)
{
	for (size_t i = 0; i < all->count; i++)
		if (all->images[i]->public.linked)
			return true;
	return false;
}

void attachments__close_shared(struct attachments *all)
{
	for (size_t i = 0; i < all->count; i++) {
		if (!attached__is_linked(all->images[i]))
			continue;
		kernel_side__hold(all->side, true);
		attached__close_of(all, all->images[i], false);
	}
}

int attachments__part(struct attachments *all, int (*link_mapper)(void *ctx, size_t image, size_t mapper), void *ctx)
{
	int first = 0;

	for (size_t i = 0; i < all->count; i++) {
		struct attached *image = all->images[i];

		if (!attached__is_linked(image))
			continue;
		kernel_side__hold(all->side, true);
		attached__set_alone(image, true);
		for (size_t j = 0; j < image->mapper_count; j++) {
			int status = link_mapper(ctx, i, j);

			first = first ? first : status;
		}
	}
	attachments__finalize(all);
	kernel_side__hold(all->side, all->paused);
	return first;
}

uint32_t attachments__own_links(const struct attachments *all, const struct process_mapping *mapping)
{
	const struct attached *image = find(all, mapping);

	return image ? image->public.filtered : 0;
}

void attached__set_alone(struct attached *image, bool alone)
{
	for (size_t i = 0; i < image->mapper_count; i++)
		image->alone[i] = alone;
	count_filtered(image);
}

void attached__close_of(const struct attachments *all, struct attached *image, bool alone)
{
	for (size_t i = 0; i < image->link_count; i++)
		image->links[i].marked = alone == (image->links[i].pid != 0);
	attached__close_marked(all, image, true);
}

bool attached__is_mapped_by(const struct attached *image, pid_t pid)
{
	for (size_t i = 0; i < image->mapper_count; i++)
		if (image->pids[i] == pid)
			return true;
	return false;
}

int attached__add_mapper(const struct attachments *all, struct attached *image, pid_t pid, bool alone, char *err,
			 size_t err_size)
{
	if (attached__is_mapped_by(image, pid))
		return 0;
	alone &= !image->public.linked;
	if (alone && image->public.filtered >= all->most) {
		snprintf(err, err_size,
			 "process %d: %u processes that map %s are watched by links of their own already; each further "
			 "one would slow all of them",
			 pid, all->most, image->path);
		return -E2BIG;
	}
	if (grow(&image->pids, &image->pid_room, image->mapper_count + 1, sizeof(*image->pids)) ||
	    grow(&image->alone, &image->alone_room, image->mapper_count + 1, sizeof(*image->alone)))
		return -ENOMEM;
	image->pids[image->mapper_count] = pid;
	image->alone[image->mapper_count++] = alone;
	count_filtered(image);
	return 0;
}

void attachments__release(struct attachments *all, pid_t pid)
{
	for (size_t i = 0; i < all->count; i++) {
		struct attached *image = all->images[i];
		size_t left = 0;

		for (size_t j = 0; j < image->mapper_count; j++)
			if (image->pids[j] != pid) {
				image->pids[left] = image->pids[j];
				image->alone[left++] = image->alone[j];
			}
		image->mapper_count = left;
		count_filtered(image);
		for (size_t j = 0; j < image->link_count; j++)
			image->links[j].marked = image->links[j].pid == pid;
		attached__close_marked(all, image, true);
		if (image->mapper_count)
			continue;
		image_free(all, image);
		all->images[i--] = all->images[--all->count];
	}
}

void attachments__pause(struct attachments *all)
{
	for (size_t i = 0; i < all->count; i++)
		close_all(all, all->images[i]);
	attachments__finalize(all);
	all->paused = true;
}

const struct kernel_function_counters *attachments__counters(const struct attachments *all, uint32_t row)
{
	int map = kernel_side__map(all->side, KERNEL_MAP_FUNCTION_COUNTERS);

	return bpf_map_lookup_elem(map, &row, all->per_cpu) ? NULL : all->per_cpu;
}

/* Reads the counters of the next rows before end into all->per_cpu. Returns how many rows; 0: they cannot be read. */
static uint32_t read_rows(const struct attachments *all, uint32_t first, uint32_t end)
{
	uint32_t keys[KERNEL_FUNCTIONS], before = first - 1, next;
	uint32_t count = end - first < all->rows_at_once ? end - first : all->rows_at_once;

	if (bpf_map_lookup_batch(kernel_side__map(all->side, KERNEL_MAP_FUNCTION_COUNTERS), first ? &before : NULL,
				 &next, keys, all->per_cpu, &count, NULL) &&
	    errno != ENOENT)
		count = attachments__counters(all, first) != NULL; /* before 5.13 one by one */
	return count;
}

void attachments__count_calls(const struct attachments *all, uint32_t first, uint32_t end, struct function_calls *calls)
{
	memset(calls, 0, (end - first) * sizeof(*calls));
	while (first < end) {
		uint32_t count = read_rows(all, first, end);
		const struct kernel_function_counters *counters = all->per_cpu;

		if (!count)
			return;
		first += count;
		for (; count; count--, calls++)
			for (uint32_t cpu = 0; cpu < all->cpus; cpu++, counters++) {
				calls->calls += counters->enter + counters->calls;
				calls->waits += counters->waits;
				calls->waited_ns += counters->waited_ns;
			}
	}
}

/* Completes the description of a function by what its row states. */
static void complete(uint32_t row, struct bpf_function_state *function)
{
	const struct function_row *about = functions__row(row);

	function->roles = about->roles;
	function->class = (u8)about->class;
	function->kind = (u8)about->kind;
	function->forked = about->forked;
	function->unit = (u8)(functions__unit(row) + 1);
}

void attachments__describe(const struct attachments *all, const uint32_t *rows, struct bpf_function_state *functions,
			   uint32_t count)
{
	int map = kernel_side__map(all->side, KERNEL_MAP_FUNCTIONS);
	uint32_t described = count;

	for (uint32_t i = 0; i < count; i++)
		complete(rows[i], &functions[i]);
	if (count > 1 && !bpf_map_update_batch(map, rows, functions, &described, NULL))
		return;
	for (uint32_t i = 0; i < count; i++)
		bpf_map_update_elem(map, &rows[i], &functions[i], BPF_ANY);
}

int attached__skip(struct attached *image, const char *function, const char *reason)
{
	struct attached_image *public = &image->public;

	if (grow(&image->skips, &image->skip_room, public->skipped_count + 1, sizeof(*image->skips)))
		return -ENOMEM;
	image->skips[public->skipped_count++] = (struct attached_skip){function, reason};
	public->skipped = image->skips;
	return 0;
}

int attached__hold_pages(struct attached *image, const uint64_t *offsets, size_t count)
{
	page_holder__release(&image->hold);
	return page_holder__hold(&image->hold, image->file, image->owner, offsets, count);
}

void attached__release_pages(struct attached *image)
{
	page_holder__release(&image->hold);
}

int attached__link_sites(const struct attachments *all, const struct attached *image, const struct row_site *sites,
			 size_t count, pid_t pid, bool entry_only, bool *refused, struct kernel_link **link)
{
	uint64_t *offsets = calloc(2 * count + 1, sizeof(*offsets));
	struct kernel_sites linked = {
	    .offsets = offsets, .count = (uint32_t)count, .pid = pid, .entry_only = entry_only, .refused = refused};
	struct page_hold hold = {0};
	char path[64];
	int status = 0;

	*link = NULL;
	if (!offsets)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		offsets[i] = sites[i].offset;
		offsets[count + i] = sites[i].cookie;
	}
	linked.cookies = offsets + count;
	linked.path = path;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", image->file);
	if (!image->hold.id)
		status = page_holder__hold(&hold, image->file, image->owner, offsets, count);
	if (!status)
		status = kernel_side__link(all->side, &linked, link);
	page_holder__release(&hold);
	free(offsets);
	return status;
}

struct attached_link *attached__find_link(const struct attached *image, int64_t set, pid_t pid)
{
	for (size_t i = 0; i < image->link_count; i++)
		if (image->links[i].set == set && (image->links[i].pid == pid || !image->links[i].pid))
			return &image->links[i];
	return NULL;
}

int attached__add_link(const struct attachments *all, struct attached *image, const struct attached_link *link)
{
	if (grow(&image->links, &image->link_room, image->link_count + 1, sizeof(*image->links))) {
		if (link->open)
			attachments__unlink(all, link->open);
		return -ENOMEM;
	}
	image->links[image->link_count++] = *link;
	return 0;
}

void attachments__unlink(const struct attachments *all, struct kernel_link *link)
{
	if (kernel_side__mode(all->side) == ATTACH_MODE_PERF)
		kernel_side__unlink(all->side, link);
	else
		async_detach__close(all->detacher, link);
}

bool attachments__detaching(const struct attachments *all)
{
	return async_detach__busy(all->detacher, 0) || kernel_side__detaching(all->side);
}

bool attachments__still_hit(const struct attachments *all)
{
	return async_detach__busy_since(all->detacher, mono_now() - REMOVAL_NS) || kernel_side__detaching(all->side);
}

void attachments__wait(const struct attachments *all, pid_t pid)
{
	if (async_detach__busy(all->detacher, pid))
		async_detach__wait(all->detacher);
}

void attachments__finalize(const struct attachments *all)
{
	async_detach__wait(all->detacher);
	kernel_side__finalize(all->side);
}

void attached__close_marked(const struct attachments *all, struct attached *image, bool dropped)
{
	size_t left = 0;

	for (size_t i = 0; i < image->link_count; i++) {
		struct attached_link link = image->links[i];

		if (link.marked && link.open)
			attachments__unlink(all, link.open);
		if (!link.marked)
			image->links[left++] = link;
		else if (!dropped)
			image->links[left++] = (struct attached_link){.pid = link.pid, .set = link.set};
	}
	image->link_count = left;
}

void attached__drop_set(const struct attachments *all, struct attached *image, int64_t set)
{
	for (size_t i = 0; i < image->link_count; i++)
		image->links[i].marked = image->links[i].set == set;
	attached__close_marked(all, image, true);
}
