// SPDX-License-Identifier: GPL-2.0-or-later
/* Links of units: opened, closed, and made anew without what the kernel refuses. See row_attacher.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/grow.h"
#include "probe/row_attacher_private.h"

int row_image__describe(struct row_image *image)
{
	struct attached_image *public = &image->public;
	size_t skips = 0;

	public->functions = public->shifted = public->at_entry = public->stepped = 0;
	for (size_t i = 0; i < image->unit_count; i++) {
		const struct row_sites *sites = image->units[i]->sites;

		for (size_t j = 0; j < sites->function_count; j++) {
			public->functions++;
			public->shifted += sites->functions[j].shifted;
			public->at_entry += !sites->functions[j].shifted;
			public->stepped += sites->functions[j].stepped;
		}
		if (grow(&image->skips, &image->skip_room, skips + sites->skip_count, sizeof(*image->skips)))
			return -ENOMEM;
		for (size_t j = 0; j < sites->skip_count; j++)
			image->skips[skips++] =
			    (struct attached_skip){sites->skips[j].function, sites->skips[j].reason};
	}
	public->skipped = image->skips;
	public->skipped_count = (uint32_t)skips;
	return 0;
}

static int compare_sites(const void *a, const void *b)
{
	const struct row_site *x = a, *y = b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Functions that end in the same waiting function share its exits: each offset once. */
static size_t gather(const struct row_function *functions, size_t count, struct row_site **out)
{
	size_t total = 0, kept = 0;
	struct row_site *sites;

	for (size_t i = 0; i < count; i++)
		total += functions[i].site_count;
	sites = calloc(total + 1, sizeof(*sites));
	*out = sites;
	if (!sites)
		return 0;
	total = 0;
	for (size_t i = 0; i < count; i++) {
		memcpy(sites + total, functions[i].sites, functions[i].site_count * sizeof(*sites));
		total += functions[i].site_count;
	}
	qsort(sites, total, sizeof(*sites), compare_sites);
	for (size_t i = 0; i < total; i++)
		if (!kept || sites[kept - 1].offset != sites[i].offset)
			sites[kept++] = sites[i];
	return kept;
}

static bool has_site(const struct row_function *function, uint64_t offset)
{
	for (size_t i = 0; i < function->site_count; i++)
		if (function->sites[i].offset == offset)
			return true;
	return false;
}

/* Takes out of a unit the functions that have a site which the kernel will not probe. How many went. */
static size_t drop_refused(struct row_unit *unit, const struct kernel_sites *linked)
{
	struct row_sites *sites = unit->sites;
	size_t kept = 0, dropped;

	for (size_t i = 0; i < sites->function_count; i++) {
		struct row_function *function = &sites->functions[i];
		bool refused = false;

		for (uint32_t j = 0; j < linked->count; j++)
			refused |= linked->refused[j] && has_site(function, linked->offsets[j]);
		if (!refused) {
			sites->functions[kept++] = *function;
			continue;
		}
		row_sites__skip(sites, function->name, "the kernel refuses to probe one of its instructions");
		free(function->name);
		free(function->sites);
	}
	dropped = sites->function_count - kept;
	sites->function_count = kept;
	return dropped;
}

static int try_link(struct row_attacher *attacher, const struct row_image *image, struct row_unit *unit, pid_t pid,
		    struct kernel_link **link, size_t *dropped)
{
	struct row_site *sites;
	size_t count = gather(unit->sites->functions, unit->sites->function_count, &sites);
	uint64_t *offsets = calloc(count + 1, sizeof(*offsets)), *cookies = calloc(count + 1, sizeof(*cookies));
	struct kernel_sites linked = {.offsets = offsets,
				      .cookies = cookies,
				      .count = (uint32_t)count,
				      .pid = pid,
				      .entry_only = true,
				      .refused = calloc(count + 1, sizeof(*linked.refused))};
	char path[64], byte;
	int status = -ENOMEM;

	*dropped = 0;
	if (sites && offsets && cookies && linked.refused) {
		for (size_t i = 0; i < count; i++) {
			offsets[i] = sites[i].offset;
			cookies[i] = sites[i].cookie;
			/* a page that is not cached makes the kernel warn when a breakpoint goes into it */
			if (pread(image->file, &byte, 1, (off_t)sites[i].offset) < 0)
				break;
		}
		snprintf(path, sizeof(path), "/proc/self/fd/%d", image->file);
		linked.path = path;
		status = kernel_side__link(attacher->side, &linked, link);
		if (!status || status == -EOPNOTSUPP)
			*dropped = drop_refused(unit, &linked);
	}
	free(sites);
	free(offsets);
	free(cookies);
	free(linked.refused);
	return status;
}

int row_unit__link(struct row_attacher *attacher, struct row_image *image, struct row_unit *unit, pid_t pid,
		   struct kernel_link **link)
{
	size_t dropped;
	int status;

	*link = NULL;
	if (!unit->sites->function_count)
		return -EOPNOTSUPP;
	status = try_link(attacher, image, unit, pid, link, &dropped);
	if (!dropped)
		return status;
	/* a function is seen entirely or not at all */
	if (!status)
		kernel_side__unlink(attacher->side, *link);
	row_image__describe(image);
	return row_unit__link(attacher, image, unit, pid, link);
}

int row_attacher__open(struct row_attacher *attacher, struct row_image *image, struct row_unit *unit)
{
	int status = 0;

	for (size_t i = 0; i < unit->link_count; i++) {
		struct row_link *link = &unit->links[i];
		int opened = link->open ? 0 : row_unit__link(attacher, image, unit, link->pid, &link->open);

		if (opened && !status)
			status = opened;
	}
	return status;
}

void row_attacher__close(struct row_attacher *attacher, struct row_unit *unit)
{
	for (size_t i = 0; i < unit->link_count; i++) {
		kernel_side__unlink(attacher->side, unit->links[i].open);
		unit->links[i].open = NULL;
	}
}
