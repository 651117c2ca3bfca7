// SPDX-License-Identifier: GPL-2.0-or-later
/* Images, their functions and their mappers: see row_attacher.h. */
#include "probe/attach/row_attacher.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/grow.h"
#include "probe/attach/row_attacher_private.h"
#include "sandbox/user_file.h"
#include "probe/bpf/shared.h"

#define NAMED_MAX 8 /* functions that cannot be probed, in one sentence */

struct row_attacher *row_attacher__new(struct kernel_side *side, const struct costs *costs, double budget,
				       uint64_t seed)
{
	struct row_attacher *attacher = calloc(1, sizeof(*attacher));

	if (!attacher)
		return NULL;
	attacher->side = side;
	attacher->costs = costs;
	attacher->budget = budget;
	attacher->random.seed = seed | 1;
	attacher->cpus = (uint32_t)libbpf_num_possible_cpus();
	attacher->per_cpu = calloc(attacher->cpus, sizeof(*attacher->per_cpu));
	attacher->memory = row_memory__new();
	attacher->detacher = async_detach__new();
	if (!attacher->memory || !attacher->detacher) {
		row_attacher__free(attacher);
		return NULL;
	}
	return attacher;
}

static void probe_free(struct row_probe *probe)
{
	if (probe->group == ROW_OUTLINED)
		functions__drop(probe->function.row);
	free(probe->function.name);
	free(probe->function.sites);
	free(probe->left_out);
	free(probe->cpu);
	free(probe);
}

static void image_free(struct row_attacher *attacher, struct row_image *image)
{
	row_image__unlink(attacher, image, 0);
	for (size_t i = 0; i < image->unit_count; i++) {
		free(image->units[i]->probes);
		free(image->units[i]->links);
		free(image->units[i]);
	}
	for (size_t i = 0; i < image->probe_count; i++)
		probe_free(image->probes[i]);
	for (size_t i = 0; i < image->row_skip_count; i++) {
		free(image->row_skips[i].function);
		free(image->row_skips[i].reason);
	}
	if (image->file >= 0)
		close(image->file);
	row_sites__free(image->outlined);
	free(image->probes);
	free(image->units);
	free(image->mappers);
	free(image->pids);
	free(image->row_skips);
	free(image->skips);
	free(image->path);
	free(image);
}

void row_attacher__free(struct row_attacher *attacher)
{
	if (!attacher)
		return;
	for (size_t i = 0; i < attacher->count; i++)
		image_free(attacher, attacher->images[i]);
	async_detach__free(attacher->detacher);
	row_memory__free(attacher->memory);
	free(attacher->images);
	free(attacher->per_cpu);
	free(attacher);
}

static struct row_image *image_of(struct row_attacher *attacher, const struct process *process,
				  const struct process_mapping *mapping, char *err, size_t err_size)
{
	struct row_image *image;
	char path[128];

	for (size_t i = 0; i < attacher->count; i++)
		if (attacher->images[i]->public.device == mapping->device &&
		    attacher->images[i]->public.inode == mapping->inode)
			return attacher->images[i];
	image = calloc(1, sizeof(*image));
	if (!image) {
		snprintf(err, err_size, "out of memory");
		return NULL;
	}
	process__map_file(process, mapping, path, sizeof(path));
	image->file = user_file__open(path);
	image->path = strdup(mapping->path);
	image->mark_ns = image->account.last_ns = mono_now();
	image->public = (struct attached_image){
	    .device = mapping->device, .inode = mapping->inode, .path = image->path, .build_id = image->build_id};
	if (image->file < 0 || !image->path ||
	    grow(&attacher->images, &attacher->room, attacher->count + 1, sizeof(*attacher->images))) {
		snprintf(err, err_size, "process %d: cannot open %s: %s", process->pid, mapping->path, strerror(errno));
		image_free(attacher, image);
		return NULL;
	}
	attacher->images[attacher->count++] = image;
	return image;
}

bool row_image__shares_mapper(const struct row_image *image, const struct row_image *other)
{
	for (size_t i = 0; i < image->mapper_count; i++)
		for (size_t j = 0; j < other->mapper_count; j++)
			if (image->pids[i] == other->pids[j])
				return true;
	return false;
}

/* Whether a function that hands others to teams is left out in an image that shares a mapper with this one. */
static bool misses_forks(const struct row_attacher *attacher, const struct row_image *image)
{
	for (size_t i = 0; i < attacher->count; i++) {
		const struct row_image *other = attacher->images[i];

		if (!row_image__shares_mapper(image, other))
			continue;
		for (size_t j = 0; j < other->probe_count; j++)
			if (other->probes[j]->state != ROW_OPEN && other->probes[j]->state != ROW_REFUSED &&
			    functions__row(other->probes[j]->function.row)->kind == KERNEL_ROW_FORK)
				return true;
	}
	return false;
}

void row_attacher__describe_row(struct row_attacher *attacher, const struct row_image *image,
				const struct row_probe *probe)
{
	int map = kernel_side__map(attacher->side, KERNEL_MAP_FUNCTIONS);
	uint32_t key = probe->function.row;
	const struct function_row *row = functions__row(key);
	struct kernel_function function = {
	    .roles = row->roles,
	    .class = (u8)row->class,
	    .known = probe->state == ROW_OPEN,
	    .kind = (u8)row->kind,
	    .forked = row->forked,
	    .no_wait = row->kind == KERNEL_ROW_OUTLINED && misses_forks(attacher, image),
	};

	bpf_map_update_elem(map, &key, &function, BPF_ANY);
}

void row_attacher__describe_outlined(struct row_attacher *attacher)
{
	for (size_t i = 0; i < attacher->count; i++)
		for (size_t j = 0; j < attacher->images[i]->probe_count; j++)
			if (attacher->images[i]->probes[j]->group == ROW_OUTLINED)
				row_attacher__describe_row(attacher, attacher->images[i],
							   attacher->images[i]->probes[j]);
}

/* Takes the function over. */
static int add_probe(struct row_attacher *attacher, struct row_image *image, enum row_group group,
		     struct row_function *function)
{
	struct row_probe *probe = calloc(1, sizeof(*probe));

	if (probe)
		probe->cpu = calloc(attacher->cpus, sizeof(*probe->cpu));
	if (!probe || !probe->cpu ||
	    grow(&image->probes, &image->probe_room, image->probe_count + 1, sizeof(*image->probes))) {
		if (probe)
			free(probe->cpu);
		free(probe);
		return -ENOMEM;
	}
	probe->function = *function;
	*function = (struct row_function){0};
	probe->group = group;
	row_memory__recall(attacher->memory, image->build_id, probe->function.entry, &probe->backoff);
	if (probe->backoff.until_ns) {
		probe->state = ROW_LEFT_OUT;
		probe->left_out = strdup("it was too expensive in another process of this image");
	} else {
		probe->state = attacher->budget > 0 && !kernel_side__frugal(attacher->side) ? ROW_NEW : ROW_FITTING;
	}
	image->probes[image->probe_count++] = probe;
	row_attacher__measure(attacher, probe);
	row_attacher__describe_row(attacher, image, probe);
	return 0;
}

static void keep_skips(struct row_image *image, const struct row_sites *sites)
{
	for (size_t i = 0; i < sites->skip_count; i++)
		row_image__skip(image, sites->skips[i].function, sites->skips[i].entry, sites->skips[i].reason);
}

static int add_mapper(struct row_attacher *attacher, struct row_image *image, const struct process *process, bool alone,
		      char *err, size_t err_size)
{
	struct row_mapper mapper = {process->pid, alone};
	size_t filtered = 0;

	for (size_t i = 0; i < image->mapper_count; i++) {
		if (image->pids[i] == process->pid)
			return 0;
		filtered += image->mappers[i].alone;
	}
	if (alone && filtered >= ATTACHER_MAX_FILTERED) {
		snprintf(err, err_size,
			 "process %d: functions of %s are watched in %d processes beside others that map it; each "
			 "further one would slow all of them",
			 process->pid, image->path, ATTACHER_MAX_FILTERED);
		return -E2BIG;
	}
	if (grow(&image->mappers, &image->mapper_room, image->mapper_count + 1, sizeof(*image->mappers)) ||
	    grow(&image->pids, &image->pid_room, image->mapper_count + 1, sizeof(*image->pids)))
		return -ENOMEM;
	image->pids[image->mapper_count] = process->pid;
	image->mappers[image->mapper_count++] = mapper;
	image->learn_ns = 1;
	image->learn_looks = 0;
	return row_image__link_mapper(attacher, image, &mapper);
}

/* Adds probes for the file's functions of these rows. */
static int read_rows(struct row_attacher *attacher, struct row_image *image, enum row_group group,
		     const unsigned int *rows, size_t count, char *err, size_t err_size)
{
	struct row_sites *sites = row_sites__query(image->file, image->path, rows, count, err, err_size);
	int status = 0;

	if (!sites)
		return -ENOEXEC;
	snprintf(image->build_id, sizeof(image->build_id), "%s", sites->build_id);
	for (size_t i = 0; i < sites->function_count && !status; i++)
		status = add_probe(attacher, image, group, &sites->functions[i]);
	keep_skips(image, sites);
	row_sites__free(sites);
	image->read |= 1U << group;
	return status;
}

/* Opens functions that fit at once, where nothing has to be waited for. */
static int open_at_once(struct row_attacher *attacher, struct row_image *image)
{
	if (attacher->paused || row_attacher__is_closing(attacher))
		return row_image__describe(image);
	return row_image__open(attacher, image);
}

int row_attacher__attach(struct row_attacher *attacher, const struct process *process,
			 const struct process_mapping *mapping, enum row_group group, const unsigned int *rows,
			 size_t count, bool alone, char *err, size_t err_size)
{
	struct row_image *image = image_of(attacher, process, mapping, err, err_size);
	int functions = 0, status;

	if (!image)
		return -ENOEXEC;
	status = add_mapper(attacher, image, process, alone, err, err_size);
	if (!status && !(image->read & 1U << group))
		status = read_rows(attacher, image, group, rows, count, err, err_size);
	if (status)
		return status;
	status = open_at_once(attacher, image);
	if (status) {
		snprintf(err, err_size, "process %d: cannot probe functions of %s: %s", process->pid, image->path,
			 strerror(-status));
		return status;
	}
	for (size_t i = 0; i < image->probe_count; i++)
		functions += image->probes[i]->group == group && image->probes[i]->state != ROW_REFUSED;
	return functions;
}

/* The outlined function at a file offset; NULL where it is not known, or has its probe. */
static struct row_function *outlined_at(struct row_image *image, uint64_t offset)
{
	for (size_t i = 0; image->outlined && i < image->outlined->function_count; i++)
		if (image->outlined->functions[i].entry == offset && image->outlined->functions[i].site_count)
			return &image->outlined->functions[i];
	return NULL;
}

static bool is_settled(const struct row_image *image, uint64_t offset)
{
	for (size_t i = 0; i < image->probe_count; i++)
		if (image->probes[i]->group == ROW_OUTLINED && image->probes[i]->function.entry == offset)
			return true;
	for (size_t i = 0; image->outlined && i < image->outlined->skip_count; i++)
		if (image->outlined->skips[i].entry == offset)
			return true;
	return false;
}

/* Whether a function of a team is not probed at all: skips also note functions with unseen exits. */
static bool is_left_alone(struct row_image *image, const struct row_skip *skip)
{
	if (outlined_at(image, skip->entry))
		return false;
	for (size_t i = 0; i < image->probe_count; i++)
		if (image->probes[i]->group == ROW_OUTLINED && image->probes[i]->function.entry == skip->entry)
			return false;
	return true;
}

/* Names all functions of the image's teams that are not probed. Returns false where there are none. */
static bool name_skips(struct row_image *image, pid_t pid, char *err, size_t err_size)
{
	size_t count = 0, named = 0, used;

	for (size_t i = 0; i < image->outlined->skip_count; i++)
		count += is_left_alone(image, &image->outlined->skips[i]);
	if (!count)
		return false;
	used = (size_t)snprintf(err, err_size,
				"process %d: %s: %zu functions of its thread teams cannot be watched: ", pid,
				image->path, count);
	for (size_t i = 0; i < image->outlined->skip_count && used < err_size && named < NAMED_MAX; i++) {
		const struct row_skip *skip = &image->outlined->skips[i];

		if (is_left_alone(image, skip))
			used +=
			    (size_t)snprintf(err + used, err_size - used, "%s%s (%s)", named++ ? ", " : "",
					     skip->function[0] ? skip->function : "one without a name", skip->reason);
	}
	if (named < count && used < err_size)
		snprintf(err + used, err_size - used, " and %zu more", count - named);
	return true;
}

/* Moves the contents of one response into another. */
static int join_sites(struct row_sites *sites, struct row_sites *more)
{
	int status = 0;

	if (grow(&sites->functions, &sites->function_room, sites->function_count + more->function_count,
		 sizeof(*sites->functions)))
		return -ENOMEM;
	for (size_t i = 0; i < more->function_count; i++)
		sites->functions[sites->function_count++] = more->functions[i];
	more->function_count = 0;
	for (size_t i = 0; i < more->skip_count && !status; i++)
		status = row_sites__skip(sites, more->skips[i].function, more->skips[i].entry, more->skips[i].reason);
	return status;
}

static int read_outlined(struct row_image *image, uint64_t offset, char *err, size_t err_size)
{
	struct row_sites *sites =
	    row_sites__query_at(image->file, image->path, offset, !image->outlined, KERNEL_ROW_OUTLINED, err, err_size);
	int status = 0;

	if (!sites)
		return -ENOEXEC;
	keep_skips(image, sites);
	if (!image->outlined) {
		image->outlined = sites;
		snprintf(image->build_id, sizeof(image->build_id), "%s", sites->build_id);
		return 0;
	}
	image->named &= !sites->skip_count;
	status = join_sites(image->outlined, sites);
	row_sites__free(sites);
	return status;
}

static int add_outlined(struct row_attacher *attacher, struct row_image *image, struct row_function *function,
			char *err, size_t err_size)
{
	struct function_row row = {
	    .class = VAPRO_COMMUNICATION, .threads = true, .kind = KERNEL_ROW_OUTLINED, .own_sites = true};
	char name[48];
	int number;

	snprintf(name, sizeof(name), "outlined+%#llx", (unsigned long long)function->entry);
	row.symbol = function->name[0] ? function->name : name;
	number = functions__add(&row);
	if (number < 0) {
		snprintf(err, err_size, "%s: %s: no room for another function", image->path, row.symbol);
		return number;
	}
	row_function__number(function, (unsigned int)number);
	return add_probe(attacher, image, ROW_OUTLINED, function);
}

int row_attacher__outlined(struct row_attacher *attacher, const struct process *process,
			   const struct process_mapping *mapping, uint64_t address, bool alone, char *err,
			   size_t err_size)
{
	struct row_image *image = image_of(attacher, process, mapping, err, err_size);
	uint64_t offset = address - mapping->start + mapping->offset;
	struct row_function *function;
	int status;

	if (!image)
		return -ENOEXEC;
	status = add_mapper(attacher, image, process, alone, err, err_size);
	if (!status && !is_settled(image, offset) && !outlined_at(image, offset))
		status = read_outlined(image, offset, err, err_size);
	function = outlined_at(image, offset);
	if (!status && function)
		status = add_outlined(attacher, image, function, err, err_size);
	if (!status)
		status = open_at_once(attacher, image);
	if (status || image->named || !image->outlined)
		return status;
	image->named = true;
	return name_skips(image, process->pid, err, err_size) ? -ENOENT : 0;
}

void row_attacher__release(struct row_attacher *attacher, pid_t pid)
{
	for (size_t i = 0; i < attacher->count; i++) {
		struct row_image *image = attacher->images[i];
		size_t left = 0;

		for (size_t j = 0; j < image->mapper_count; j++)
			if (image->pids[j] != pid) {
				image->pids[left] = image->pids[j];
				image->mappers[left++] = image->mappers[j];
			}
		image->mapper_count = left;
		row_image__unlink(attacher, image, pid);
		if (image->mapper_count)
			continue;
		image_free(attacher, image);
		attacher->images[i--] = attacher->images[--attacher->count];
	}
}

bool row_attacher__linked(const struct row_attacher *attacher, const struct process_mapping *mapping)
{
	for (size_t i = 0; i < attacher->count; i++) {
		const struct row_image *image = attacher->images[i];

		if (image->public.device != mapping->device || image->public.inode != mapping->inode)
			continue;
		for (size_t j = 0; j < image->mapper_count; j++)
			if (!image->mappers[j].alone)
				return true;
	}
	return false;
}

void row_attacher__pause(struct row_attacher *attacher)
{
	if (!attacher)
		return;
	for (size_t i = 0; i < attacher->count; i++)
		row_image__unlink(attacher, attacher->images[i], 0);
	async_detach__wait(attacher->detacher);
	attacher->paused = true;
}

size_t row_attacher__images(const struct row_attacher *attacher, pid_t pid, const struct attached_image **images,
			    size_t max)
{
	size_t count = 0;

	for (size_t i = 0; i < attacher->count && count < max; i++)
		for (size_t j = 0; j < attacher->images[i]->mapper_count; j++)
			if (attacher->images[i]->pids[j] == pid) {
				images[count++] = &attacher->images[i]->public;
				break;
			}
	return count;
}
