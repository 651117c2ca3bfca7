// SPDX-License-Identifier: GPL-2.0-or-later
/* Links of units: opened, closed, and made again without refused sites. See row_attacher.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/grow.h"
#include "probe/attach/row_attacher_private.h"
#include "probe/bpf/shared.h"

void row_image__skip(struct row_image *image, const char *function, uint64_t entry, const char *reason)
{
	struct row_skip skip = {strdup(function), strdup(reason), entry};

	if (skip.function && skip.reason &&
	    !grow(&image->row_skips, &image->row_skip_room, image->row_skip_count + 1, sizeof(skip))) {
		image->row_skips[image->row_skip_count++] = skip;
		return;
	}
	free(skip.function);
	free(skip.reason);
}

int row_image__describe(struct row_image *image)
{
	struct attached_image *public = &image->public;
	size_t skips = 0;

	if (grow(&image->skips, &image->skip_room, image->row_skip_count + image->probe_count + 1,
		 sizeof(*image->skips)))
		return -ENOMEM;
	public->functions = public->shifted = public->at_entry = public->stepped = 0;
	for (size_t i = 0; i < image->probe_count; i++) {
		const struct row_probe *probe = image->probes[i];

		if (probe->state == ROW_REFUSED)
			continue;
		if (probe->state == ROW_LEFT_OUT) {
			image->skips[skips++] = (struct attached_skip){functions__row(probe->function.row)->symbol,
								       probe->left_out ? probe->left_out : ""};
			continue;
		}
		public->functions++;
		public->shifted += probe->function.shifted;
		public->at_entry += !probe->function.shifted;
		public->stepped += probe->function.stepped;
	}
	for (size_t i = 0; i < image->row_skip_count; i++)
		image->skips[skips++] =
		    (struct attached_skip){image->row_skips[i].function, image->row_skips[i].reason};
	public->skipped = image->skips;
	public->skipped_count = (uint32_t)skips;
	return 0;
}

static int compare_sites(const void *a, const void *b)
{
	const struct row_site *x = a, *y = b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/*
 * Functions that end in the same waiting function share its exits: each offset is gathered once. entries: only the
 * first site of each function, its entry.
 */
static size_t gather(struct row_probe *const *probes, size_t count, bool entries, struct row_site **out)
{
	size_t total = 0, once = 0;
	struct row_site *sites;

	for (size_t i = 0; i < count; i++)
		total += probes[i]->function.site_count;
	sites = calloc(total + 1, sizeof(*sites));
	*out = sites;
	if (!sites)
		return 0;
	total = 0;
	for (size_t i = 0; i < count; i++) {
		const struct row_function *function = &probes[i]->function;
		size_t own = entries && function->site_count ? 1 : function->site_count;

		memcpy(sites + total, function->sites, own * sizeof(*sites));
		total += own;
	}
	qsort(sites, total, sizeof(*sites), compare_sites);
	for (size_t i = 0; i < total; i++)
		if (!once || sites[once - 1].offset != sites[i].offset)
			sites[once++] = sites[i];
	return once;
}

static bool has_site(const struct row_function *function, uint64_t offset)
{
	for (size_t i = 0; i < function->site_count; i++)
		if (function->sites[i].offset == offset)
			return true;
	return false;
}

/* Marks functions with a site that the kernel refuses; returns how many. */
static size_t find_refused(struct row_probe *const *probes, size_t count, const struct kernel_sites *linked,
			   bool *refused)
{
	size_t found = 0;

	for (size_t i = 0; i < count; i++) {
		refused[i] = false;
		for (uint32_t j = 0; j < linked->count && !refused[i]; j++)
			refused[i] = linked->refused[j] && has_site(&probes[i]->function, linked->offsets[j]);
		found += refused[i];
	}
	return found;
}

int row_attacher__link(struct row_attacher *attacher, const struct row_image *image, struct row_probe *const *probes,
		       size_t count, enum row_sites_wanted wanted, pid_t pid, bool *refused, struct kernel_link **link)
{
	uint64_t flag = wanted == ROW_SITES ? 0 : KERNEL_SITE_LOOK;
	struct row_site *sites;
	size_t site_count = gather(probes, count, wanted == ROW_LOOK_ENTRIES, &sites);
	uint64_t *offsets = calloc(site_count + 1, sizeof(*offsets)),
		 *cookies = calloc(site_count + 1, sizeof(*cookies));
	struct kernel_sites linked = {.offsets = offsets,
				      .cookies = cookies,
				      .count = (uint32_t)site_count,
				      .pid = pid,
				      .entry_only = true,
				      .refused = calloc(site_count + 1, sizeof(*linked.refused))};
	char path[64], byte;
	int status = -ENOMEM;

	*link = NULL;
	if (sites && offsets && cookies && linked.refused) {
		for (size_t i = 0; i < site_count; i++) {
			offsets[i] = sites[i].offset;
			cookies[i] = sites[i].cookie | flag;
			/* a page that is not cached makes the kernel warn when a breakpoint goes into it */
			if (pread(image->file, &byte, 1, (off_t)sites[i].offset) < 0)
				break;
		}
		snprintf(path, sizeof(path), "/proc/self/fd/%d", image->file);
		linked.path = path;
		status = kernel_side__link(attacher->side, &linked, link);
		if (refused && (!status || status == -EOPNOTSUPP) && find_refused(probes, count, &linked, refused) &&
		    *link) {
			/* a function is seen entirely or not at all */
			kernel_side__unlink(attacher->side, *link);
			*link = NULL;
			status = -EOPNOTSUPP;
		}
	}
	free(sites);
	free(offsets);
	free(cookies);
	free(linked.refused);
	return status;
}

void row_attacher__unlink(struct row_attacher *attacher, struct kernel_link *link)
{
	if (link && link->rung == RUNG_PERF)
		kernel_side__unlink(attacher->side, link);
	else if (link)
		async_detach__close(attacher->detacher, link);
}

bool row_attacher__is_closing(struct row_attacher *attacher)
{
	return async_detach__busy(attacher->detacher, 0);
}

/* Prevents an edge begun before from being joined with later calls. */
static void forget_edges(struct row_attacher *attacher)
{
	__atomic_fetch_add(kernel_side__shared(attacher->side)->rows_generation, 1, __ATOMIC_RELEASE);
}

static int link_unit(struct row_attacher *attacher, struct row_image *image, struct row_unit *unit, pid_t pid)
{
	bool *refused = calloc(unit->count + 1, sizeof(*refused));
	struct row_link link = {.pid = pid};
	int status = refused ? 0 : -ENOMEM;

	for (size_t i = 0; i < unit->link_count; i++)
		if (unit->links[i].pid == pid || !unit->links[i].pid)
			goto out;
	if (!status)
		status = grow(&unit->links, &unit->link_room, unit->link_count + 1, sizeof(*unit->links));
	while (!status && unit->count) {
		size_t left = 0;

		status =
		    row_attacher__link(attacher, image, unit->probes, unit->count, ROW_SITES, pid, refused, &link.open);
		if (!status)
			unit->links[unit->link_count++] = link;
		if (status != -EOPNOTSUPP)
			break;
		for (size_t i = 0; i < unit->count; i++) {
			struct row_probe *probe = unit->probes[i];

			if (!refused[i]) {
				unit->probes[left++] = probe;
				continue;
			}
			probe->state = ROW_REFUSED;
			row_image__skip(image, probe->function.name, probe->function.entry,
					"the kernel refuses to probe one of its instructions");
		}
		status = left < unit->count ? 0 : status;
		unit->count = left;
	}
out:
	free(refused);
	return status;
}

int row_image__link_mapper(struct row_attacher *attacher, struct row_image *image, const struct row_mapper *mapper)
{
	int status = 0;

	for (size_t i = 0; i < image->unit_count && !status && !attacher->paused; i++)
		if (image->units[i]->count)
			status = link_unit(attacher, image, image->units[i], mapper->alone ? mapper->pid : 0);
	return status;
}

static struct row_unit *add_unit(struct row_image *image)
{
	struct row_unit *unit = calloc(1, sizeof(*unit));

	if (unit && !grow(&image->units, &image->unit_room, image->unit_count + 1, sizeof(*image->units))) {
		unit->probes = calloc(image->probe_count, sizeof(struct row_probe *));
		if (unit->probes)
			return image->units[image->unit_count++] = unit;
	}
	free(unit);
	return NULL;
}

static void drop_unit(struct row_image *image, struct row_unit *unit)
{
	for (size_t i = 0; i < image->unit_count; i++)
		if (image->units[i] == unit)
			image->units[i--] = image->units[--image->unit_count];
	free(unit->probes);
	free(unit->links);
	free(unit);
}

/* Takes the functions of a group and a class that fit into a unit of their own: one alone where links are per site. */
static struct row_unit *make_unit(struct row_attacher *attacher, struct row_image *image)
{
	bool alone = kernel_side__frugal(attacher->side);
	struct row_unit *unit = NULL;

	for (size_t i = 0; i < image->probe_count; i++) {
		struct row_probe *probe = image->probes[i];

		if (probe->state != ROW_FITTING)
			continue;
		if (!unit)
			unit = add_unit(image);
		if (!unit)
			return NULL;
		if (unit->count &&
		    (alone || unit->probes[0]->group != probe->group ||
		     row_plan__class(unit->probes[0]->calls_per_s) != row_plan__class(probe->calls_per_s)))
			continue;
		probe->state = ROW_OPEN;
		unit->probes[unit->count++] = probe;
	}
	return unit;
}

static int open_unit(struct row_attacher *attacher, struct row_image *image, struct row_unit *unit)
{
	int status = 0;

	for (size_t i = 0; i < image->mapper_count && !status; i++)
		status = link_unit(attacher, image, unit, image->mappers[i].alone ? image->pids[i] : 0);
	for (size_t i = 0; i < unit->count; i++) {
		struct row_probe *probe = unit->probes[i];

		if (status) {
			probe->state = ROW_REFUSED;
			row_image__skip(image, probe->function.name, probe->function.entry, strerror(-status));
		}
		row_attacher__measure(attacher, probe);
		row_probe__mark(probe);
		row_backoff__opened(&probe->backoff);
		row_attacher__describe_row(attacher, image, probe);
	}
	if (!status && unit->count)
		return 0;
	for (size_t i = 0; i < unit->link_count; i++)
		row_attacher__unlink(attacher, unit->links[i].open);
	drop_unit(image, unit);
	return status;
}

int row_image__open(struct row_attacher *attacher, struct row_image *image)
{
	struct row_unit *unit;
	bool any = false;
	int first = 0;

	while ((unit = make_unit(attacher, image))) {
		int status = open_unit(attacher, image, unit);

		if (status && !first)
			first = status;
		any = true;
	}
	if (any) {
		image->opened_ns = image->mark_ns = mono_now();
		row_attacher__describe_outlined(attacher);
		forget_edges(attacher);
	}
	row_image__describe(image);
	return first;
}

void row_image__close(struct row_attacher *attacher, struct row_image *image, struct row_probe *probe)
{
	struct row_unit *unit = NULL;

	for (size_t i = 0; i < image->unit_count && !unit; i++)
		for (size_t j = 0; j < image->units[i]->count; j++)
			if (image->units[i]->probes[j] == probe)
				unit = image->units[i];
	if (!unit)
		return;
	/* the kernel side first ignores all hits of the unit: while links close, the others see only a part */
	for (size_t i = 0; i < unit->count; i++) {
		unit->probes[i]->state = unit->probes[i] == probe ? ROW_LEFT_OUT : ROW_FITTING;
		row_attacher__describe_row(attacher, image, unit->probes[i]);
	}
	row_attacher__describe_outlined(attacher);
	forget_edges(attacher);
	for (size_t i = 0; i < unit->link_count; i++)
		row_attacher__unlink(attacher, unit->links[i].open);
	drop_unit(image, unit);
	row_image__describe(image);
}

void row_image__unlink(struct row_attacher *attacher, struct row_image *image, pid_t pid)
{
	for (size_t i = 0; i < image->unit_count; i++) {
		struct row_unit *unit = image->units[i];
		size_t left = 0;

		for (size_t j = 0; j < unit->link_count; j++)
			if (pid && unit->links[j].pid != pid)
				unit->links[left++] = unit->links[j];
			else
				row_attacher__unlink(attacher, unit->links[j].open);
		unit->link_count = left;
	}
}
