// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/row_attacher.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/grow.h"
#include "probe/row_attacher_private.h"
#include "target/user_file.h"
#include "vapro.skel.h"

struct row_attacher *row_attacher__new(struct kernel_side *side, const struct costs *costs, double budget,
				       uint64_t seed)
{
	struct row_attacher *attacher = calloc(1, sizeof(*attacher));

	if (attacher) {
		attacher->side = side;
		attacher->costs = costs;
		attacher->budget = budget;
		attacher->random.seed = seed | 1;
		attacher->cpus = (uint32_t)libbpf_num_possible_cpus();
		attacher->per_cpu = calloc(attacher->cpus, sizeof(*attacher->per_cpu));
	}
	return attacher;
}

static void unit_free(struct row_attacher *attacher, struct row_unit *unit)
{
	row_attacher__close(attacher, unit);
	if (unit->group == ROW_OUTLINED)
		for (size_t i = 0; i < unit->sites->function_count; i++)
			functions__drop(unit->sites->functions[i].row);
	row_sites__free(unit->sites);
	free(unit->links);
	free(unit);
}

static void image_free(struct row_attacher *attacher, struct row_image *image)
{
	for (size_t i = 0; i < image->unit_count; i++)
		unit_free(attacher, image->units[i]);
	if (image->file >= 0)
		close(image->file);
	free(image->units);
	free(image->mappers);
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

/* The kernel side's view of a unit's rows. */
static void tell_rows(struct row_attacher *attacher, const struct row_sites *sites)
{
	int map = bpf_map__fd(kernel_side__bpf(attacher->side)->maps.functions);

	for (size_t i = 0; i < sites->function_count; i++) {
		uint32_t key = sites->functions[i].row;
		const struct function_row *row = functions__row(key);
		struct kernel_function function = {.roles = row->roles,
						   .class = (u8)row->class,
						   .known = 1,
						   .kind = (u8)row->kind,
						   .forked = row->forked};

		bpf_map_update_elem(map, &key, &function, BPF_ANY);
	}
}

static struct row_unit *add_unit(struct row_attacher *attacher, struct row_image *image, enum row_group group,
				 struct row_sites *sites)
{
	struct row_unit *unit = calloc(1, sizeof(*unit));

	if (!unit || grow(&image->units, &image->unit_room, image->unit_count + 1, sizeof(*image->units))) {
		free(unit);
		row_sites__free(sites);
		return NULL;
	}
	unit->group = group;
	unit->sites = sites;
	image->units[image->unit_count++] = unit;
	snprintf(image->build_id, sizeof(image->build_id), "%s", sites->build_id);
	tell_rows(attacher, sites);
	row_attacher__reset(attacher, image, unit);
	return row_image__describe(image) ? NULL : unit;
}

static int add_mapper(struct row_image *image, pid_t pid)
{
	for (size_t i = 0; i < image->mapper_count; i++)
		if (image->mappers[i] == pid)
			return 0;
	if (grow(&image->mappers, &image->mapper_room, image->mapper_count + 1, sizeof(*image->mappers)))
		return -ENOMEM;
	image->mappers[image->mapper_count++] = pid;
	return 0;
}

static size_t filtered(const struct row_unit *unit)
{
	size_t count = 0;

	for (size_t i = 0; i < unit->link_count; i++)
		count += unit->links[i].pid != 0;
	return count;
}

static int link_unit(struct row_attacher *attacher, struct row_image *image, struct row_unit *unit,
		     const struct process *process, bool alone, char *err, size_t err_size)
{
	struct row_link link = {.pid = alone ? process->pid : 0};
	int status = 0;

	for (size_t i = 0; i < unit->link_count; i++)
		if (unit->links[i].pid == link.pid || unit->links[i].pid == 0)
			return 0;
	if (link.pid && filtered(unit) >= ATTACHER_MAX_FILTERED) {
		snprintf(err, err_size,
			 "process %d: functions of %s are watched in %d processes beside others that map it; each "
			 "further one would slow all of them",
			 process->pid, image->path, ATTACHER_MAX_FILTERED);
		return -E2BIG;
	}
	if (grow(&unit->links, &unit->link_room, unit->link_count + 1, sizeof(*unit->links)))
		return -ENOMEM;
	if (!attacher->paused && !unit->closed_until_ns)
		status = row_unit__link(attacher, image, unit, link.pid, &link.open);
	if (status)
		snprintf(err, err_size, "process %d: cannot probe functions of %s: %s", process->pid, image->path,
			 strerror(-status));
	else
		unit->links[unit->link_count++] = link;
	return status;
}

/* Each function a unit of its own, except for thread rows. Takes sites over. */
static int split_units(struct row_attacher *attacher, struct row_image *image, enum row_group group,
		       struct row_sites *sites)
{
	if (group == ROW_THREADS || sites->function_count < 2)
		return add_unit(attacher, image, group, sites) ? 0 : -ENOMEM;
	while (sites->function_count > 1) {
		struct row_sites *one = calloc(1, sizeof(*one));

		if (!one || grow(&one->functions, &one->function_room, 1, sizeof(*one->functions))) {
			free(one);
			row_sites__free(sites);
			return -ENOMEM;
		}
		memcpy(one->build_id, sites->build_id, sizeof(one->build_id));
		one->functions[one->function_count++] = sites->functions[--sites->function_count];
		if (!add_unit(attacher, image, group, one)) {
			row_sites__free(sites);
			return -ENOMEM;
		}
	}
	return add_unit(attacher, image, group, sites) ? 0 : -ENOMEM;
}

int row_attacher__attach(struct row_attacher *attacher, const struct process *process,
			 const struct process_mapping *mapping, enum row_group group, const unsigned int *rows,
			 size_t count, bool alone, char *err, size_t err_size)
{
	struct row_image *image = image_of(attacher, process, mapping, err, err_size);
	struct row_sites *sites;
	int functions = 0, status;

	if (!image)
		return -ENOEXEC;
	status = add_mapper(image, process->pid);
	if (!status && !(image->read & 1U << group)) {
		sites = row_sites__ask(image->file, image->path, rows, count, err, err_size);
		if (!sites)
			return -ENOEXEC;
		status = split_units(attacher, image, group, sites);
		image->read |= 1U << group;
	}
	for (size_t i = 0; i < image->unit_count && !status; i++) {
		struct row_unit *unit = image->units[i];

		if (unit->group != group || !unit->sites->function_count)
			continue;
		status = link_unit(attacher, image, unit, process, alone, err, err_size);
		functions += (int)unit->sites->function_count;
	}
	return status ? status : functions;
}

int row_attacher__outlined(struct row_attacher *attacher, const struct process *process,
			   const struct process_mapping *mapping, uint64_t address, bool alone, char *err,
			   size_t err_size)
{
	struct row_image *image = image_of(attacher, process, mapping, err, err_size);
	uint64_t offset = address - mapping->start + mapping->offset;
	struct function_row row = {
	    .class = VAPRO_COMMUNICATION, .threads = true, .kind = KERNEL_ROW_OUTLINED, .own_sites = true};
	struct row_unit *unit = NULL;
	struct row_sites *sites;
	char name[48];
	int number, status;

	if (!image)
		return -ENOEXEC;
	status = add_mapper(image, process->pid);
	for (size_t i = 0; i < image->unit_count && !unit; i++)
		if (image->units[i]->group == ROW_OUTLINED && image->units[i]->offset == offset)
			unit = image->units[i];
	if (!unit && !status) {
		snprintf(name, sizeof(name), "outlined+%#llx", (unsigned long long)offset);
		sites = row_sites__ask_at(image->file, image->path, offset, row.kind, err, err_size);
		if (!sites)
			return -ENOEXEC;
		if (sites->function_count) {
			row.symbol = sites->functions[0].name[0] ? sites->functions[0].name : name;
			number = functions__add(&row);
			if (number < 0) {
				snprintf(err, err_size, "%s: %s: no room for another function", image->path,
					 row.symbol);
				row_sites__free(sites);
				return number;
			}
			row_sites__number(sites, (unsigned int)number);
		}
		unit = add_unit(attacher, image, ROW_OUTLINED, sites);
		if (!unit)
			return -ENOMEM;
		unit->offset = offset;
	}
	if (status)
		return status;
	if (!unit->sites->function_count) {
		snprintf(err, err_size, "process %d: %s: a function of its thread team cannot be watched: %s",
			 process->pid, image->path,
			 unit->sites->skip_count ? unit->sites->skips[0].reason : "it is not in the file");
		return -ENOENT;
	}
	return link_unit(attacher, image, unit, process, alone, err, err_size);
}

void row_attacher__release(struct row_attacher *attacher, pid_t pid)
{
	for (size_t i = 0; i < attacher->count; i++) {
		struct row_image *image = attacher->images[i];
		size_t kept = 0;

		for (size_t j = 0; j < image->mapper_count; j++)
			if (image->mappers[j] != pid)
				image->mappers[kept++] = image->mappers[j];
		image->mapper_count = kept;
		for (size_t u = 0; u < image->unit_count; u++) {
			struct row_unit *unit = image->units[u];

			kept = 0;
			for (size_t j = 0; j < unit->link_count; j++) {
				if (unit->links[j].pid != pid)
					unit->links[kept++] = unit->links[j];
				else
					kernel_side__unlink(attacher->side, unit->links[j].open);
			}
			unit->link_count = kept;
		}
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
		for (size_t j = 0; j < image->unit_count; j++)
			for (size_t k = 0; k < image->units[j]->link_count; k++)
				if (!image->units[j]->links[k].pid)
					return true;
	}
	return false;
}

void row_attacher__pause(struct row_attacher *attacher)
{
	if (!attacher)
		return;
	for (size_t i = 0; i < attacher->count; i++)
		for (size_t j = 0; j < attacher->images[i]->unit_count; j++)
			row_attacher__close(attacher, attacher->images[i]->units[j]);
	attacher->paused = true;
}

size_t row_attacher__images(const struct row_attacher *attacher, pid_t pid, const struct attached_image **images,
			    size_t max)
{
	size_t count = 0;

	for (size_t i = 0; i < attacher->count && count < max; i++)
		for (size_t j = 0; j < attacher->images[i]->mapper_count; j++)
			if (attacher->images[i]->mappers[j] == pid) {
				images[count++] = &attacher->images[i]->public;
				break;
			}
	return count;
}
