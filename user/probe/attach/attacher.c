// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "functions/functions.h"
#include "base/grow.h"
#include "probe/attach/attacher.h"
#include "probe/attach/mpi_image.h"
#include "probe/elf/survey.h"

#define CHECKS 3 /* in a row with missing returns, until a probe is moved to its entry */

_Static_assert(VAPRO_COMMUNICATION == KERNEL_COMMUNICATION, "the class whose calls may be suppressed");

int mpi_image__skip(struct mpi_image *image, const char *function, const char *reason)
{
	for (uint32_t i = 0; i < image->base.public.skipped_count; i++)
		if (image->base.skips[i].function == function)
			return 0; /* MPI_X and PMPI_X have one row */
	return attached__skip(&image->base, function, reason);
}

/* Functions that share links at first. */
static int64_t set_of(unsigned int row, bool frugal)
{
	int unit = functions__unit(row);

	if (frugal)
		return row;
	if (unit < 0 || functions__unit_waits(unit))
		return SET_CALM;
	return unit == functions__other_unit() ? SET_OTHERS : (int64_t)row;
}

/* Adds a probe to an array. 0, also where it has one, or -ENOMEM. */
static int add_probe(struct probe **probes, size_t *count, size_t *room, const struct survey_function *function,
		     unsigned int row, bool frugal)
{
	for (size_t i = 0; i < *count; i++)
		if ((*probes)[i].entry == function->symbol.offset)
			return 0; /* MPI_X and PMPI_X share an address */
	if (grow(probes, room, *count + 1, sizeof(**probes)))
		return -ENOMEM;
	(*probes)[(*count)++] = (struct probe){.offset = function->site.offset,
					       .entry = function->symbol.offset,
					       .row = row,
					       .name = function_rows[row].symbol,
					       .class = function->site.class,
					       .large = function->large,
					       .unit = functions__unit(row),
					       .set = set_of(row, frugal)};
	return 0;
}

/* Adds a probe for each function of the survey that may have one. rows: those of the wanted functions. */
static int choose(struct mpi_image *image, const unsigned int *rows, bool frugal)
{
	struct learning *learning = &image->learning;
	size_t count;
	const struct survey_function *functions = survey__functions(image->survey, &count);
	int status = 0;

	for (size_t i = 0; i < count && !status; i++) {
		const struct survey_function *function = &functions[i];
		unsigned int row = rows[function->wanted];
		bool polling = function_rows[row].progress, refused = function->site.class == SITE_REFUSED;
		bool left_out = frugal && !function_rows[row].common;

		if (frugal && function->large)
			continue; /* its row's own form decides what is reported as left out */

		if (polling && !refused)
			status = add_probe(&learning->probes, &learning->count, &learning->room, function, row, frugal);
		else if (!polling && (left_out || refused))
			status = mpi_image__skip(image, function_rows[row].symbol,
						 left_out ? "left out: probes are slow to remove in this attach mode"
							  : function->site.reason);
		else if (!polling)
			status =
			    add_probe(&image->probes, &image->probe_count, &image->probe_room, function, row, frugal);
	}
	return status;
}

/* Finds in the confined reader which rows an image defines and where their probes go. */
static int read_image(struct attachments *all, struct attached *base, char *err, size_t err_size)
{
	struct mpi_image *image = (struct mpi_image *)base;
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
	image->survey = survey__query(base->file, base->owner, base->path, 0, wanted, count, err, err_size);
	status = image->survey ? choose(image, rows, kernel_side__frugal(all->side)) : -errno;
	if (status)
		goto out;
	snprintf(base->build_id, sizeof(base->build_id), "%s", image__build_id(survey__image(image->survey)));
	mpi_image__count_probes(image);
	mpi_image__describe_rows(all, image);
	mpi_image__begin_count(all, image);
out:
	free(wanted);
	free(rows);
	return status;
}

static void free_image(struct attached *base)
{
	struct mpi_image *image = (struct mpi_image *)base;

	free(image->probes);
	free(image->learning.probes);
	survey__free(image->survey);
}

static const struct attach_policy policy = {
    .image_size = sizeof(struct mpi_image), .read = read_image, .free = free_image};

struct attacher *attacher__new(struct kernel_side *side, double learn_s)
{
	struct attacher *attacher = calloc(1, sizeof(*attacher));

	if (!attacher || !attachments__init(&attacher->base, &policy, side)) {
		attacher__free(attacher);
		return NULL;
	}
	attacher->learn_ns = (uint64_t)(learn_s * 1e9);
	return attacher;
}

void attacher__free(struct attacher *attacher)
{
	if (attacher)
		attachments__free(&attacher->base);
	free(attacher);
}

void mpi_image__count_probes(struct mpi_image *image)
{
	struct attached_image *public = &image->base.public;

	public->functions = (uint32_t)image->probe_count;
	public->shifted = public->at_entry = public->stepped = 0;
	for (size_t i = 0; i < image->probe_count; i++) {
		const struct probe *probe = &image->probes[i];

		public->shifted += probe->offset != probe->entry;
		public->at_entry += probe->offset == probe->entry;
		public->stepped += probe->class == SITE_STEPPED;
	}
}

void mpi_image__describe_rows(const struct attachments *all, const struct mpi_image *image)
{
	struct bpf_function_state functions[KERNEL_FUNCTIONS];
	uint32_t rows[KERNEL_FUNCTIONS], count = 0;

	for (size_t i = 0; i < image->probe_count && count < KERNEL_FUNCTIONS; i++) {
		const struct probe *probe = &image->probes[i];
		bool left_out = probe->unit >= 0 && image->base.public.without >> probe->unit & 1;

		rows[count] = (uint32_t)probe->row;
		functions[count++] = (struct bpf_function_state){
		    .known = 1, .stepped = probe->class == SITE_STEPPED, .hot = probe->hot || left_out};
	}
	attachments__describe(all, rows, functions, count);
}

bool attacher__linked(const struct attacher *attacher, const struct process_mapping *mapping)
{
	return attachments__linked(&attacher->base, mapping);
}

uint32_t attacher__own_links(const struct attacher *attacher, const struct process_mapping *mapping)
{
	return attachments__own_links(&attacher->base, mapping);
}

/* Holds the pages of all functions that may be linked. */
static int hold_pages(struct mpi_image *image)
{
	size_t count = image->probe_count + image->learning.count;
	uint64_t *offsets = calloc(count + 1, sizeof(*offsets));
	int status;

	if (!offsets)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		offsets[i] = i < image->probe_count ? image->probes[i].offset
						    : image->learning.probes[i - image->probe_count].offset;
	status = attached__hold_pages(&image->base, offsets, count);
	free(offsets);
	return status;
}

/* Links an image for all processes, in place of the links that single ones have. Nothing is recorded meanwhile. */
static int link_all(struct attacher *attacher, struct mpi_image *image)
{
	struct attachments *all = &attacher->base;
	int status;

	kernel_side__hold(all->side, true);
	status = mpi_image__link(attacher, image, 0);
	if (!status) {
		attached__close_of(all, &image->base, true);
		attached__set_alone(&image->base, false);
	}
	attachments__finalize(all);
	kernel_side__hold(all->side, all->paused);
	return status;
}

/* Links what is to be linked for a process that maps an image. */
static int link_mapper(struct attacher *attacher, struct mpi_image *image, pid_t pid, bool replaces)
{
	struct attachments *all = &attacher->base;
	int status;

	/* first, so that no edge is reported before its polling is seen */
	mpi_image__learn(attacher, image, pid);
	if (attached__find_link(&image->base, SET_CALM, pid))
		return 0;
	/* not all functions are linked at once */
	if (kernel_side__frugal(all->side))
		kernel_side__hold(all->side, true);
	status = replaces ? link_all(attacher, image) : mpi_image__link(attacher, image, pid);
	kernel_side__hold(all->side, all->paused);
	return status;
}

int attacher__attach(struct attacher *attacher, const struct process *process, const struct process_mapping *mapping,
		     bool alone, const struct functions_spared *spared, const struct attached_image **out, char *err,
		     size_t err_size)
{
	struct attachments *all = &attacher->base;
	struct attached *base = attachments__image(all, process, mapping, err, err_size);
	struct mpi_image *image = (struct mpi_image *)base;
	pid_t pid = alone ? process->pid : 0;
	bool replaces = !alone && base && base->link_count && !attached__is_linked(base);
	int status = base ? 0 : -errno;

	*out = base ? &base->public : NULL;
	if (!base)
		return status;
	status = attached__add_mapper(all, base, process->pid, alone, err, err_size);
	if (status)
		return status;
	if (!image->probe_count) {
		snprintf(err, err_size, "%s defines none of the functions vapro knows", mapping->path);
		return -ENOENT;
	}
	if (!base->link_count)
		mpi_image__spare(all, image, spared);
	if (!attached__find_link(base, SET_CALM, pid))
		status = hold_pages(image);
	if (status) {
		snprintf(err, err_size, "%s: its file system does not bring pages of it", mapping->path);
		return status;
	}
	status = link_mapper(attacher, image, pid, replaces);
	attached__release_pages(base);
	if (status)
		snprintf(err, err_size, "process %d: cannot probe %s: %s", process->pid, mapping->path,
			 strerror(-status));
	return status;
}

const struct attached_image *attacher__read(struct attacher *attacher, const struct process *process,
					    const struct process_mapping *mapping, char *err, size_t err_size)
{
	const struct attached *image = attachments__image(&attacher->base, process, mapping, err, err_size);

	return image ? &image->public : NULL;
}

int attacher__share(struct attacher *attacher, const struct attached_image *public)
{
	struct mpi_image *image = mpi_image__find(attacher, public);

	if (!image || attacher->base.paused || attached__is_linked(&image->base))
		return 0;
	return link_all(attacher, image);
}

void attacher__bound(struct attacher *attacher, uint32_t most)
{
	attacher->base.most = most;
}

bool attacher__any_linked(const struct attacher *attacher)
{
	return attachments__any_linked(&attacher->base);
}

void attacher__close_shared(struct attacher *attacher)
{
	attachments__close_shared(&attacher->base);
}

static int link_numbered(void *attacher, size_t image, size_t mapper)
{
	struct mpi_image *mpi = attacher__image(attacher, image);

	return ((struct attacher *)attacher)->base.paused ? 0 : mpi_image__link(attacher, mpi, mpi->base.pids[mapper]);
}

int attacher__part(struct attacher *attacher)
{
	return attachments__part(&attacher->base, link_numbered, attacher);
}

void attacher__release(struct attacher *attacher, pid_t pid)
{
	attachments__release(&attacher->base, pid);
}

void attacher__pause(struct attacher *attacher)
{
	kernel_side__hold(attacher->base.side, true);
	attachments__pause(&attacher->base);
}

void mpi_image__move(struct attacher *attacher, struct mpi_image *image, struct probe *probe, uint64_t offset,
		     enum site_class class)
{
	probe->offset = offset;
	probe->class = class;
	mpi_image__count_probes(image);
	mpi_image__describe_rows(&attacher->base, image);
	kernel_side__hold(attacher->base.side, true); /* calls are seen twice meanwhile */
	mpi_image__relink(attacher, image, probe->set);
	attachments__finalize(&attacher->base);
	kernel_side__hold(attacher->base.side, attacher->base.paused);
}

/* Whether more returns of a shifted probe's function are missing than calls can be under way, check after check. */
static bool misses_returns(const struct attacher *attacher, struct probe *probe, uint32_t threads)
{
	const struct kernel_function_counters *per_cpu;
	int64_t missing = 0;

	if (probe->offset == probe->entry)
		return false;
	per_cpu = attachments__counters(&attacher->base, (uint32_t)probe->row);
	if (!per_cpu)
		return false;
	for (uint32_t cpu = 0; cpu < attacher->base.cpus; cpu++)
		missing += (int64_t)(per_cpu[cpu].enter - per_cpu[cpu].exit - per_cpu[cpu].vanished);
	/* at most one per thread can be under way */
	probe->departed = missing > (int64_t)threads ? probe->departed + 1 : 0;
	return probe->departed >= CHECKS;
}

const char *attacher__check(struct attacher *attacher, uint32_t threads)
{
	for (size_t i = 0; i < attacher->base.count; i++) {
		struct mpi_image *image = attacher__image(attacher, i);

		for (size_t j = 0; j < image->probe_count; j++) {
			struct probe *probe = &image->probes[j];
			const char *name = probe->name;

			if (!misses_returns(attacher, probe, threads))
				continue;
			/* its instruction is not known: a single step is the highest cost */
			mpi_image__move(attacher, image, probe, probe->entry, SITE_STEPPED);
			return name;
		}
	}
	return NULL;
}
