// SPDX-License-Identifier: GPL-2.0-or-later
/* Images, their functions and their mappers: see row_attacher.h. */
#include "probe/attach/row_attacher.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/grow.h"
#include "probe/attach/row_attacher_private.h"
#include "probe/attach/row_memory.h"
#include "probe/attach/row_image.h"

#define NAMED_MAX 8 /* functions that cannot be probed, in one sentence */

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

static int read_image(struct attachments *all, struct attached *base, char *err, size_t err_size)
{
	struct row_image *image = (struct row_image *)base;

	(void)all;
	image->mark_ns = image->account.last_ns = mono_now();
	image->unseen = calloc(1, sizeof(*image->unseen));
	snprintf(err, err_size, "%s", image->unseen ? "" : "out of memory");
	return image->unseen ? 0 : -ENOMEM;
}

static void free_image(struct attached *base)
{
	struct row_image *image = (struct row_image *)base;

	for (size_t i = 0; i < image->probe_count; i++)
		probe_free(image->probes[i]);
	row_sites__free(image->outlined);
	row_sites__free(image->unseen);
	free(image->probes);
}

static const struct attach_policy policy = {
    .image_size = sizeof(struct row_image), .read = read_image, .free = free_image};

struct row_attacher *row_attacher__new(struct kernel_side *side, const struct costs *costs, double budget,
				       uint64_t seed)
{
	struct row_attacher *attacher = calloc(1, sizeof(*attacher));

	if (!attacher)
		return NULL;
	attacher->costs = costs;
	attacher->budget = budget;
	attacher->random.seed = seed | 1;
	attacher->memory = row_memory__new();
	if (!attachments__init(&attacher->base, &policy, side) || !attacher->memory) {
		row_attacher__free(attacher);
		return NULL;
	}
	return attacher;
}

void row_attacher__free(struct row_attacher *attacher)
{
	if (!attacher)
		return;
	attachments__free(&attacher->base);
	row_memory__free(attacher->memory);
	free(attacher);
}

bool row_image__shares_mapper(const struct row_image *image, const struct row_image *other)
{
	for (size_t i = 0; i < image->base.mapper_count; i++)
		if (attached__is_mapped_by(&other->base, image->base.pids[i]))
			return true;
	return false;
}

/* Whether a function that hands others to teams is left out in an image that shares a mapper with this one. */
static bool misses_forks(const struct row_attacher *attacher, const struct row_image *image)
{
	for (size_t i = 0; i < attacher->base.count; i++) {
		const struct row_image *other = row_attacher__image(attacher, i);

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
	struct bpf_function_state function = {
	    .known = probe->state == ROW_OPEN,
	    .no_wait = probe->group == ROW_OUTLINED && misses_forks(attacher, image),
	};

	attachments__describe(&attacher->base, &probe->function.row, &function, 1);
}

void row_attacher__describe_outlined(struct row_attacher *attacher)
{
	for (size_t i = 0; i < attacher->base.count; i++) {
		const struct row_image *image = row_attacher__image(attacher, i);

		for (size_t j = 0; j < image->probe_count; j++)
			if (image->probes[j]->group == ROW_OUTLINED)
				row_attacher__describe_row(attacher, image, image->probes[j]);
	}
}

/* Takes the function over. */
static int add_probe(struct row_attacher *attacher, struct row_image *image, enum row_group group,
		     struct row_function *function)
{
	struct row_probe *probe = calloc(1, sizeof(*probe));

	if (probe)
		probe->cpu = calloc(attacher->base.cpus, sizeof(*probe->cpu));
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
	row_memory__recall(attacher->memory, image->base.owner, image->base.build_id, probe->function.entry,
			   &probe->backoff);
	if (probe->backoff.until_ns) {
		probe->state = ROW_LEFT_OUT;
		probe->left_out = strdup("it was too expensive in another process of this image");
	} else {
		probe->state =
		    attacher->budget > 0 && !kernel_side__frugal(attacher->base.side) ? ROW_NEW : ROW_FITTING;
	}
	image->probes[image->probe_count++] = probe;
	row_image__join_family(image, probe);
	row_attacher__measure(attacher, probe);
	row_attacher__describe_row(attacher, image, probe);
	return 0;
}

static int add_skips(struct row_sites *sites, const struct row_sites *more)
{
	int status = 0;

	for (size_t i = 0; i < more->skip_count && !status; i++)
		status = row_sites__skip(sites, more->skips[i].function, more->skips[i].entry, more->skips[i].reason);
	return status;
}

/*
 * Links the functions for all processes in place of the links that single ones have: through both, a call of such a
 * process would be seen twice. Meanwhile nothing is recorded.
 */
static int replace_links(struct row_attacher *attacher, struct row_image *image)
{
	struct attachments *all = &attacher->base;
	int status;

	kernel_side__hold(all->side, true);
	status = row_image__link_mapper(attacher, image, image->base.mapper_count - 1);
	if (!status) {
		attached__close_of(all, &image->base, true);
		attached__set_alone(&image->base, false);
	}
	attachments__finalize(all);
	kernel_side__hold(all->side, all->paused);
	return status;
}

/* The image behind a mapping, with the process among its mappers; NULL with *status and a sentence. */
static struct row_image *join(struct row_attacher *attacher, const struct process *process,
			      const struct process_mapping *mapping, bool alone, int *status, char *err,
			      size_t err_size)
{
	struct attached *base = attachments__image(&attacher->base, process, mapping, err, err_size);
	struct row_image *image = (struct row_image *)base;
	size_t before = base ? base->mapper_count : 0;

	*status = base ? attached__add_mapper(&attacher->base, base, process->pid, alone, err, err_size) : -errno;
	if (!*status && base->mapper_count > before) {
		image->learn_ns = 1;
		image->learn_looks = 0;
		*status = !base->alone[before] && base->public.filtered
			      ? replace_links(attacher, image)
			      : row_image__link_mapper(attacher, image, before);
	}
	return *status ? NULL : image;
}

/* Adds probes for the file's functions of these rows. */
static int read_rows(struct row_attacher *attacher, struct row_image *image, enum row_group group,
		     const unsigned int *rows, size_t count, char *err, size_t err_size)
{
	struct row_sites *sites =
	    row_sites__query(image->base.file, image->base.owner, image->base.path, rows, count, err, err_size);
	int status = 0;

	if (!sites)
		return confine__is_later(-errno) ? -errno : -ENOEXEC;
	snprintf(image->base.build_id, sizeof(image->base.build_id), "%s", sites->build_id);
	for (size_t i = 0; i < sites->function_count && !status; i++)
		status = add_probe(attacher, image, group, &sites->functions[i]);
	add_skips(image->unseen, sites);
	row_sites__free(sites);
	image->read |= 1U << group;
	return status;
}

/* Opens functions that fit at once, where nothing has to be waited for. */
static int open_at_once(struct row_attacher *attacher, struct row_image *image)
{
	if (!attacher->base.paused)
		row_image__reunite(attacher, image);
	if (!attacher->base.paused && !row_attacher__is_closing(attacher))
		return row_image__open(attacher, image);
	row_image__describe(image);
	return 0;
}

int row_attacher__attach(struct row_attacher *attacher, const struct process *process,
			 const struct process_mapping *mapping, enum row_group group, const unsigned int *rows,
			 size_t count, bool alone, char *err, size_t err_size)
{
	int functions = 0, status;
	struct row_image *image = join(attacher, process, mapping, alone, &status, err, err_size);

	if (image && !(image->read & 1U << group))
		status = read_rows(attacher, image, group, rows, count, err, err_size);
	if (status)
		return status;
	status = open_at_once(attacher, image);
	if (status) {
		snprintf(err, err_size, "process %d: cannot probe functions of %s: %s", process->pid, image->base.path,
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

static bool has_outlined_probe(const struct row_image *image, uint64_t offset)
{
	for (size_t i = 0; i < image->probe_count; i++)
		if (image->probes[i]->group == ROW_OUTLINED && image->probes[i]->function.entry == offset)
			return true;
	return false;
}

static bool is_settled(const struct row_image *image, uint64_t offset)
{
	for (size_t i = 0; image->outlined && i < image->outlined->skip_count; i++)
		if (image->outlined->skips[i].entry == offset)
			return true;
	return has_outlined_probe(image, offset);
}

/* Whether a function of a team is not probed at all: skips also note functions with unseen exits. */
static bool is_left_alone(struct row_image *image, const struct row_skip *skip)
{
	return !outlined_at(image, skip->entry) && !has_outlined_probe(image, skip->entry);
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
				image->base.path, count);
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
	if (grow(&sites->functions, &sites->function_room, sites->function_count + more->function_count,
		 sizeof(*sites->functions)))
		return -ENOMEM;
	for (size_t i = 0; i < more->function_count; i++)
		sites->functions[sites->function_count++] = more->functions[i];
	more->function_count = 0;
	return add_skips(sites, more);
}

static int read_outlined(struct row_image *image, uint64_t offset, char *err, size_t err_size)
{
	struct row_sites *sites = row_sites__query_at(image->base.file, image->base.owner, image->base.path, offset,
						      !image->outlined, KERNEL_ROW_OUTLINED, err, err_size);
	int status = 0;

	if (!sites)
		return confine__is_later(-errno) ? -errno : -ENOEXEC;
	add_skips(image->unseen, sites);
	if (!image->outlined) {
		image->outlined = sites;
		snprintf(image->base.build_id, sizeof(image->base.build_id), "%s", sites->build_id);
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
		snprintf(err, err_size, "%s: %s: no room for another function", image->base.path, row.symbol);
		return number;
	}
	row_sites__number(function, (unsigned int)number);
	return add_probe(attacher, image, ROW_OUTLINED, function);
}

int row_attacher__outlined(struct row_attacher *attacher, const struct process *process,
			   const struct process_mapping *mapping, uint64_t address, bool alone, char *err,
			   size_t err_size)
{
	int status;
	struct row_image *image = join(attacher, process, mapping, alone, &status, err, err_size);
	uint64_t offset = address - mapping->start + mapping->offset;
	struct row_function *function;

	if (status)
		return status;
	if (!is_settled(image, offset) && !outlined_at(image, offset))
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
	attachments__release(&attacher->base, pid);
}

bool row_attacher__linked(const struct row_attacher *attacher, const struct process_mapping *mapping)
{
	return attachments__linked(&attacher->base, mapping);
}

uint32_t row_attacher__own_links(const struct row_attacher *attacher, const struct process_mapping *mapping)
{
	return attachments__own_links(&attacher->base, mapping);
}

void row_attacher__bound(struct row_attacher *attacher, uint32_t most)
{
	attacher->base.most = most;
}

bool row_attacher__any_linked(const struct row_attacher *attacher)
{
	return attachments__any_linked(&attacher->base);
}

void row_attacher__close_shared(struct row_attacher *attacher)
{
	attachments__close_shared(&attacher->base);
}

static int link_numbered(void *attacher, size_t image, size_t mapper)
{
	return row_image__link_mapper(attacher, row_attacher__image(attacher, image), mapper);
}

int row_attacher__part(struct row_attacher *attacher)
{
	return attachments__part(&attacher->base, link_numbered, attacher);
}

void row_attacher__pause(struct row_attacher *attacher)
{
	if (attacher)
		attachments__pause(&attacher->base);
}

size_t row_attacher__images(const struct row_attacher *attacher, pid_t pid, const struct attached_image **images,
			    size_t max)
{
	size_t count = 0;

	for (size_t i = 0; i < attacher->base.count && count < max; i++)
		if (attached__is_mapped_by(attacher->base.images[i], pid))
			images[count++] = &attacher->base.images[i]->public;
	return count;
}
