// SPDX-License-Identifier: GPL-2.0-or-later
/* Links of images: opened, refused in part, closed. */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probe/attacher_private.h"
#include "probe/functions.h"

/*
 * A page that is not in the page cache makes the kernel warn when a breakpoint goes into it, so each
 * is read first.
 */
static void warm_pages(const struct attached *image)
{
	char byte;

	for (size_t i = 0; i < image->probe_count; i++)
		if (pread(image->file, &byte, 1, (off_t)image->probes[i].offset) < 0)
			return;
}

static bool is_of(const struct probe *probe, int64_t row)
{
	if (row == LINK_CALM || row == LINK_HOT)
		return probe->hot == (row == LINK_HOT);
	return row < 0 || probe->row == (uint64_t)row;
}

/* Takes out of the image the sites that the kernel refuses, of those that were linked for row. */
static void drop_refused(struct attached *image, int64_t row, const bool *refused)
{
	size_t kept = 0, site = 0;

	for (size_t i = 0; i < image->probe_count; i++) {
		if (is_of(&image->probes[i], row) && refused[site++])
			attached__skip(image, image->probes[i].name, "the kernel refuses to probe its instruction");
		else
			image->probes[kept++] = image->probes[i];
	}
	if (kept == image->probe_count)
		return;
	image->probe_count = kept;
	attached__count_probes(image);
}

int attached__open_link(struct attacher *attacher, struct attached *image, struct link *link)
{
	uint64_t *offsets = calloc(image->probe_count, sizeof(*offsets));
	uint64_t *cookies = calloc(image->probe_count, sizeof(*cookies));
	bool *refused = calloc(image->probe_count, sizeof(*refused));
	char path[64];
	struct kernel_sites sites = {
	    .path = path, .offsets = offsets, .cookies = cookies, .pid = link->pid, .refused = refused};
	int status = -ENOMEM;

	link->open = NULL;
	if (offsets && cookies && refused) {
		for (size_t i = 0; i < image->probe_count; i++) {
			if (!is_of(&image->probes[i], link->row))
				continue;
			offsets[sites.count] = image->probes[i].offset;
			cookies[sites.count] =
			    image->probes[i].row | functions__plain(&function_rows[image->probes[i].row]);
			/* attacher__check() and find_busy() rest on these */
			if (image->probes[i].offset != image->probes[i].entry || kernel_side__frugal(attacher->side))
				cookies[sites.count] |= KERNEL_SITE_COUNTED;
			sites.count++;
		}
		snprintf(path, sizeof(path), "/proc/self/fd/%d", image->file);
		warm_pages(image);
		status = sites.count ? kernel_side__link(attacher->side, &sites, &link->open) : 0;
		drop_refused(image, link->row, refused);
	}
	free(offsets);
	free(cookies);
	free(refused);
	return status;
}

static int add_link(struct attacher *attacher, struct attached *image, pid_t pid, int64_t row)
{
	struct link link = {.pid = pid, .row = row};
	bool closed = attacher->paused || (row == LINK_HOT && image->public.closed);
	int status = closed ? 0 : attached__open_link(attacher, image, &link);

	if (!status)
		status = grow(&image->links, &image->link_room, image->link_count + 1, sizeof(*image->links));
	if (status) {
		kernel_side__unlink(attacher->side, link.open);
		return status;
	}
	image->links[image->link_count++] = link;
	return 0;
}

static bool has_link(const struct attached *image, size_t first, uint64_t row)
{
	for (size_t i = first; i < image->link_count; i++)
		if (image->links[i].row == (int64_t)row)
			return true;
	return false;
}

int attached__link(struct attacher *attacher, struct attached *image, pid_t pid)
{
	size_t before = image->link_count, i = 0;
	int status = 0;

	if (image->parted) {
		status = add_link(attacher, image, pid, LINK_CALM);
		if (!status)
			status = add_link(attacher, image, pid, LINK_HOT);
		goto out;
	}
	if (!kernel_side__frugal(attacher->side))
		return add_link(attacher, image, pid, LINK_ALL);
	while (i < image->probe_count && !status) {
		size_t count = image->probe_count;

		/* MPI_X and PMPI_X, where they are two functions, share a row and its link */
		if (has_link(image, before, image->probes[i].row)) {
			i++;
			continue;
		}

		status = add_link(attacher, image, pid, (int64_t)image->probes[i].row);
		if (image->probe_count < count)
			status = 0; /* refused, and out of the list */
		else
			i++;
	}
	if (!status && image->link_count == before)
		status = -EOPNOTSUPP;
out:
	while (status && image->link_count > before)
		kernel_side__unlink(attacher->side, image->links[--image->link_count].open);
	return status;
}

void attached__drop_links(struct attacher *attacher, struct attached *image, size_t count)
{
	if (!count)
		return;
	for (size_t i = 0; i < count; i++)
		kernel_side__unlink(attacher->side, image->links[i].open);
	image->link_count -= count;
	memmove(image->links, image->links + count, image->link_count * sizeof(*image->links));
	kernel_side__settle(attacher->side);
}

void attached__relink(struct attacher *attacher, struct attached *image, const struct probe *probe)
{
	for (size_t i = 0; i < image->link_count; i++) {
		struct link *link = &image->links[i], fresh = {.pid = link->pid, .row = link->row};

		if (!link->open || !is_of(probe, link->row) || attached__open_link(attacher, image, &fresh))
			continue;
		kernel_side__unlink(attacher->side, link->open);
		link->open = fresh.open;
	}
}

void attacher__pause(struct attacher *attacher)
{
	kernel_side__hold(attacher->side, true);
	for (size_t i = 0; i < attacher->count; i++) {
		struct attached *image = attacher->images[i];

		attached__learnt(attacher, image);
		for (size_t j = 0; j < image->link_count; j++) {
			kernel_side__unlink(attacher->side, image->links[j].open);
			image->links[j].open = NULL;
		}
	}
	attacher->paused = true;
}
