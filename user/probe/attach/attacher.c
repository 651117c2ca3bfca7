// SPDX-License-Identifier: GPL-2.0-or-later
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "probe/attach/attacher_private.h"
#include "functions/functions.h"
#include "probe/elf/survey.h"
#include "sandbox/user_file.h"

_Static_assert(VAPRO_COMMUNICATION == KERNEL_COMMUNICATION, "the class whose calls may be suppressed");

struct attacher *attacher__new(struct kernel_side *side, double learn_s)
{
	struct attacher *attacher = calloc(1, sizeof(*attacher));

	if (attacher) {
		attacher->side = side;
		attacher->learn_ns = (uint64_t)(learn_s * 1e9);
		attacher->cpus = (uint32_t)libbpf_num_possible_cpus();
	}
	return attacher;
}

static bool is_any(const struct attached *image, const struct link *link, int64_t by)
{
	(void)image;
	(void)link;
	(void)by;
	return true;
}

static bool is_of_process(const struct attached *image, const struct link *link, int64_t pid)
{
	(void)image;
	return link->pid == (pid_t)pid;
}

static void image_close(struct attacher *attacher, struct attached *image)
{
	attached__close_links(attacher, image, is_any, 0);
	attached__learnt(attacher, image);
	if (image->file >= 0)
		close(image->file);
	free(image->path);
	free(image->probes);
	free(image->skips);
	free(image->links);
	free(image->mappers);
	free(image->learning.probes);
	survey__free(image->survey);
	free(image);
}

void attacher__free(struct attacher *attacher)
{
	if (!attacher)
		return;
	for (size_t i = 0; i < attacher->count; i++)
		image_close(attacher, attacher->images[i]);
	free(attacher->images);
	free(attacher);
}

bool attached__skip(struct attached *image, const char *function, const char *reason)
{
	for (uint32_t i = 0; i < image->public.skipped_count; i++)
		if (image->skips[i].function == function)
			return true; /* MPI_X and PMPI_X have one row */
	if (grow(&image->skips, &image->skip_room, image->public.skipped_count + 1, sizeof(*image->skips)))
		return false;
	image->skips[image->public.skipped_count++] = (struct attached_skip){function, reason};
	return true;
}

static bool has_entry(const struct attached *image, uint64_t entry)
{
	for (size_t i = 0; i < image->probe_count; i++)
		if (image->probes[i].entry == entry)
			return true; /* MPI_X and PMPI_X share an address */
	return false;
}

static int add_polling(struct learning *learning, const struct survey_function *function, unsigned int row)
{
	for (size_t i = 0; i < learning->count; i++)
		if (learning->probes[i].entry == function->symbol.offset)
			return 0;
	if (function->site.class == SITE_REFUSED)
		return 0;
	if (grow(&learning->probes, &learning->room, learning->count + 1, sizeof(*learning->probes)))
		return -ENOMEM;
	learning->probes[learning->count++] = (struct probe){.offset = function->site.offset,
							     .entry = function->symbol.offset,
							     .row = row,
							     .name = function_rows[row].symbol,
							     .class = function->site.class,
							     .unit = -1};
	return 0;
}

/* Adds a probe for each function of the survey that may have one. rows: those of the wanted functions. */
static int choose(struct attached *image, const unsigned int *rows, bool frugal)
{
	size_t count;
	const struct survey_function *functions = survey__functions(image->survey, &count);

	for (size_t i = 0; i < count; i++) {
		const struct survey_function *function = &functions[i];
		unsigned int row = rows[function->wanted];

		if (function_rows[row].progress) {
			if (add_polling(&image->learning, function, row))
				return -ENOMEM;
			continue;
		}
		if (has_entry(image, function->symbol.offset))
			continue;
		if (frugal && !function_rows[row].common) {
			if (!attached__skip(image, function_rows[row].symbol,
					    "left out: probes are slow to remove in this attach mode"))
				return -ENOMEM;
			continue;
		}
		if (function->site.class == SITE_REFUSED) {
			if (!attached__skip(image, function_rows[row].symbol, function->site.reason))
				return -ENOMEM;
			continue;
		}
		if (grow(&image->probes, &image->probe_room, image->probe_count + 1, sizeof(*image->probes)))
			return -ENOMEM;
		image->probes[image->probe_count++] = (struct probe){.offset = function->site.offset,
								     .entry = function->symbol.offset,
								     .row = row,
								     .name = function_rows[row].symbol,
								     .class = function->site.class,
								     .unit = functions__unit(row)};
	}
	return 0;
}

/* Finds in the confined reader which rows the image defines and where their probes go. */
static int survey(struct attached *image, bool frugal, char *err, size_t err_size)
{
	struct survey_wanted *wanted = calloc(function_row_count, sizeof(*wanted));
	unsigned int *rows = calloc(function_row_count, sizeof(*rows));
	size_t count = 0;
	int status = -ENOMEM;

	snprintf(err, err_size, "out of memory");
	if (!wanted || !rows)
		goto out;
	for (unsigned int row = 0; row < function_row_count; row++) {
		bool progress = function_rows[row].progress;

		if (function_rows[row].polling && !progress)
			continue;
		rows[count] = row;
		wanted[count++] =
		    (struct survey_wanted){.symbol = function_rows[row].symbol,
					   .arguments = progress ? 0 : functions__arguments(&function_rows[row])};
	}
	image->survey = survey__query(image->file, image->path, 0, wanted, count, err, err_size);
	status = image->survey ? choose(image, rows, frugal) : -ENOEXEC;
out:
	free(wanted);
	free(rows);
	return status;
}

void attached__count_probes(struct attached *image)
{
	image->public.functions = (uint32_t)image->probe_count;
	image->public.shifted = image->public.at_entry = image->public.stepped = 0;
	for (size_t i = 0; i < image->probe_count; i++) {
		const struct probe *probe = &image->probes[i];

		image->public.shifted += probe->offset != probe->entry;
		image->public.at_entry += probe->offset == probe->entry;
		image->public.stepped += probe->class == SITE_STEPPED;
	}
	image->public.skipped = image->skips;
}

static struct attached *image_open(const struct attacher *attacher, const struct process *process,
				   const struct process_mapping *mapping, char *err, size_t err_size)
{
	struct attached *attached = calloc(1, sizeof(*attached));
	char path[128];

	if (!attached) {
		snprintf(err, err_size, "out of memory");
		return NULL;
	}
	process__map_file(process, mapping, path, sizeof(path));
	attached->file = user_file__open(path);
	attached->path = strdup(mapping->path);
	if (attached->file < 0 || !attached->path) {
		snprintf(err, err_size, "process %d: cannot open %s: %s", process->pid, mapping->path, strerror(errno));
		goto fail;
	}
	if (survey(attached, kernel_side__frugal(attacher->side), err, err_size))
		goto fail;
	snprintf(attached->build_id, sizeof(attached->build_id), "%s",
		 image__build_id(survey__image(attached->survey)));
	attached->public = (struct attached_image){.device = mapping->device,
						   .inode = mapping->inode,
						   .path = attached->path,
						   .build_id = attached->build_id,
						   .skipped_count = attached->public.skipped_count};
	attached__count_probes(attached);
	return attached;
fail:
	if (attached->file >= 0)
		close(attached->file);
	free(attached->path);
	free(attached->probes);
	free(attached->skips);
	survey__free(attached->survey);
	free(attached);
	return NULL;
}

static bool is_left_out(const struct attached *image, size_t probe)
{
	int unit = image->probes[probe].unit;

	return unit >= 0 && image->public.without >> unit & 1;
}

void attached__describe_rows(struct attacher *attacher, const struct attached *image)
{
	int map = kernel_side__map(attacher->side, KERNEL_MAP_FUNCTIONS);

	for (size_t i = 0; i < image->probe_count; i++) {
		const struct function_row *row = &function_rows[image->probes[i].row];
		struct kernel_function function = {.roles = row->roles,
						   .class = (u8)row->class,
						   .known = 1,
						   .stepped = image->probes[i].class == SITE_STEPPED,
						   .hot = image->probes[i].hot || is_left_out(image, i)};
		uint32_t key = (uint32_t)image->probes[i].row;

		bpf_map_update_elem(map, &key, &function, BPF_ANY);
	}
}

static struct link *link_for(struct attached *image, pid_t pid)
{
	for (size_t i = 0; i < image->link_count; i++)
		if (image->links[i].pid == pid || image->links[i].pid == 0)
			return &image->links[i];
	return NULL;
}

static int add_mapper(struct attached *image, pid_t pid)
{
	for (size_t i = 0; i < image->mapper_count; i++)
		if (image->mappers[i] == pid)
			return 0;
	if (grow(&image->mappers, &image->mapper_room, image->mapper_count + 1, sizeof(*image->mappers)))
		return -ENOMEM;
	image->mappers[image->mapper_count++] = pid;
	return 0;
}

/* Counts processes with links of their own. */
static uint32_t count_filtered(const struct attacher *attacher)
{
	uint32_t filtered = 0;

	for (size_t i = 0; i < attacher->count; i++)
		for (size_t j = 0; j < attacher->images[i]->link_count; j++) {
			const struct link *links = attacher->images[i]->links;

			filtered += links[j].pid && (!j || links[j].pid != links[j - 1].pid);
		}
	return filtered;
}

static struct attached *image_of(const struct attacher *attacher, const struct process_mapping *mapping)
{
	for (size_t i = 0; i < attacher->count; i++)
		if (attacher->images[i]->public.device == mapping->device &&
		    attacher->images[i]->public.inode == mapping->inode)
			return attacher->images[i];
	return NULL;
}

bool attacher__linked(const struct attacher *attacher, const struct process_mapping *mapping)
{
	struct attached *image = image_of(attacher, mapping);
	const struct link *link = image ? link_for(image, 0) : NULL;

	return link && !link->pid;
}

int attacher__attach(struct attacher *attacher, const struct process *process, const struct process_mapping *mapping,
		     bool alone, const struct attached_image **out, char *err, size_t err_size)
{
	struct attached *image;
	pid_t pid = alone ? process->pid : 0;
	uint32_t filtered;
	size_t before;
	int status;

	*out = NULL;
	image = image_of(attacher, mapping);
	if (!image) {
		image = image_open(attacher, process, mapping, err, err_size);
		if (!image)
			return -ENOEXEC;
		if (grow(&attacher->images, &attacher->room, attacher->count + 1, sizeof(*attacher->images))) {
			image_close(attacher, image);
			snprintf(err, err_size, "out of memory");
			return -ENOMEM;
		}
		attacher->images[attacher->count++] = image;
		attached__describe_rows(attacher, image);
		attached__begin_count(attacher, image);
	}
	*out = &image->public;
	status = add_mapper(image, process->pid);
	if (status)
		return status;
	if (!image->probe_count) {
		snprintf(err, err_size, "%s defines none of the functions vapro knows", mapping->path);
		return -ENOENT;
	}
	/* first, so that no edge is reported before its polling is seen */
	attached__learn(attacher, image, pid);
	if (link_for(image, pid))
		return 0;
	filtered = count_filtered(attacher);
	if (pid && filtered >= ATTACHER_MAX_FILTERED) {
		snprintf(err, err_size,
			 "process %d: %u processes are watched by links of their own beside others that map %s; each "
			 "further one would slow all of them",
			 process->pid, filtered, mapping->path);
		return -E2BIG;
	}
	/* not all functions are linked at once, and links for one process and for all see a call twice */
	if (kernel_side__frugal(attacher->side) || (!pid && image->link_count))
		kernel_side__hold(attacher->side, true);
	before = image->link_count;
	status = attached__link(attacher, image, pid);
	if (status)
		snprintf(err, err_size, "process %d: cannot probe %s: %s", process->pid, mapping->path,
			 strerror(-status));
	else if (!pid)
		attached__drop_links(attacher, image, before);
	kernel_side__hold(attacher->side, attacher->paused);
	return status;
}

void attacher__release(struct attacher *attacher, pid_t pid)
{
	for (size_t i = 0; i < attacher->count; i++) {
		struct attached *image = attacher->images[i];
		uint32_t live = 0;

		for (size_t j = 0; j < image->mapper_count; j++)
			if (image->mappers[j] != pid)
				image->mappers[live++] = image->mappers[j];
		image->mapper_count = live;
		live = 0;
		attached__close_links(attacher, image, is_of_process, pid);
		for (size_t j = 0; j < image->link_count; j++)
			if (image->links[j].pid != pid)
				image->links[live++] = image->links[j];
		image->link_count = live;
		if (image->mapper_count)
			continue;
		image_close(attacher, image);
		attacher->images[i--] = attacher->images[--attacher->count];
	}
}

void attached__move(struct attacher *attacher, struct attached *image, struct probe *probe, uint64_t offset,
		    enum site_class class)
{
	probe->offset = offset;
	probe->class = class;
	attached__count_probes(image);
	attached__describe_rows(attacher, image);
	kernel_side__hold(attacher->side, true); /* calls are seen twice meanwhile */
	attached__relink(attacher, image, probe);
	kernel_side__settle(attacher->side);
	kernel_side__hold(attacher->side, attacher->paused);
}

const char *attacher__check(struct attacher *attacher, uint32_t threads)
{
	int map = kernel_side__map(attacher->side, KERNEL_MAP_FUNCTION_COUNTERS);
	struct kernel_function_counters *per_cpu = calloc(attacher->cpus, sizeof(*per_cpu));
	const char *moved = NULL;

	for (uint32_t i = 0; per_cpu && i < attacher->count && !moved; i++) {
		struct attached *image = attacher->images[i];

		for (size_t j = 0; j < image->probe_count && !moved; j++) {
			struct probe *probe = &image->probes[j];
			uint32_t key = (uint32_t)probe->row;
			int64_t missing = 0;

			if (probe->offset == probe->entry || bpf_map_lookup_elem(map, &key, per_cpu))
				continue;
			for (uint32_t cpu = 0; cpu < attacher->cpus; cpu++)
				missing += (int64_t)(per_cpu[cpu].enter - per_cpu[cpu].exit - per_cpu[cpu].vanished);
			/* at most one per thread can be under way; a drift is seen in check after check */
			probe->departed = missing > (int64_t)threads ? probe->departed + 1 : 0;
			if (probe->departed < 3)
				continue;
			/* its instruction is not known: a single step is the highest cost */
			attached__move(attacher, image, probe, probe->entry, SITE_STEPPED);
			moved = probe->name;
		}
	}
	free(per_cpu);
	return moved;
}
