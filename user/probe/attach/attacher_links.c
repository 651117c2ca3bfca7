// SPDX-License-Identifier: GPL-2.0-or-later
/* Links of images: opened, refused in part, closed. */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probe/attach/attacher_private.h"
#include "functions/functions.h"

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

/* Whether a function shares the last unit; others that never wait are linked one by one. */
static bool is_of_others(const struct probe *probe)
{
	return probe->unit >= 0 && probe->unit == functions__other_unit();
}

bool attached__is_of(const struct probe *probe, int64_t row)
{
	if (row >= 0)
		return probe->row == (uint64_t)row;
	if (row == LINK_OTHERS)
		return is_of_others(probe);
	return probe->unit < 0 && (row == LINK_WAITING || probe->hot == (row == LINK_HOT));
}

bool attached__leaves_out(const struct attached *image, const struct link *link)
{
	for (size_t i = 0; i < image->probe_count; i++) {
		const struct probe *probe = &image->probes[i];

		if (probe->unit >= 0 && attached__is_of(probe, link->row))
			return image->public.without >> probe->unit & 1;
	}
	return false;
}

/* Removes from the image those sites linked for row that the kernel refuses. */
static void drop_refused(struct attached *image, int64_t row, const bool *refused)
{
	size_t live = 0, site = 0;

	for (size_t i = 0; i < image->probe_count; i++) {
		if (attached__is_of(&image->probes[i], row) && refused[site++])
			attached__skip(image, image->probes[i].name, "the kernel refuses to probe its instruction");
		else
			image->probes[live++] = image->probes[i];
	}
	if (live == image->probe_count)
		return;
	image->probe_count = live;
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
			if (!attached__is_of(&image->probes[i], link->row))
				continue;
			offsets[sites.count] = image->probes[i].offset;
			cookies[sites.count] =
			    image->probes[i].row | functions__plain(&function_rows[image->probes[i].row]);
			/* attacher__check() and count_calls() rest on these */
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
	bool closed =
	    attacher->paused || (row == LINK_HOT && image->public.closed) || attached__leaves_out(image, &link);
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

/* Adds a link for each function that is linked alone. */
static int link_each(struct attacher *attacher, struct attached *image, pid_t pid, size_t before)
{
	size_t i = 0;

	while (i < image->probe_count) {
		size_t count = image->probe_count;
		const struct probe *probe = &image->probes[i];
		bool alone = kernel_side__frugal(attacher->side) || (probe->unit >= 0 && !is_of_others(probe));
		int status = 0;

		/* MPI_X and PMPI_X, where they are two functions, share a row and its link */
		if (alone && !has_link(image, before, probe->row))
			status = add_link(attacher, image, pid, (int64_t)probe->row);
		if (image->probe_count < count)
			continue; /* refused and removed from the list */
		if (status)
			return status;
		i++;
	}
	return 0;
}

/* Adds a link of many functions, or none where all of them are refused. */
static int link_many(struct attacher *attacher, struct attached *image, pid_t pid, int64_t row)
{
	int status = add_link(attacher, image, pid, row);

	return status == -EOPNOTSUPP ? 0 : status;
}

int attached__link(struct attacher *attacher, struct attached *image, pid_t pid)
{
	static const int64_t whole[] = {LINK_WAITING, LINK_OTHERS}, parts[] = {LINK_CALM, LINK_HOT, LINK_OTHERS};
	const int64_t *rows = image->parted ? parts : whole;
	size_t before = image->link_count, count = kernel_side__frugal(attacher->side) ? 0 : image->parted ? 3 : 2;
	int status = 0;

	for (size_t i = 0; i < count && !status; i++)
		status = link_many(attacher, image, pid, rows[i]);
	if (!status)
		status = link_each(attacher, image, pid, before);
	if (!status && !image->probe_count)
		status = -EOPNOTSUPP;
	while (status && image->link_count > before)
		kernel_side__unlink(attacher->side, image->links[--image->link_count].open);
	return status;
}

static int insert_hot(struct attached *image, size_t calm)
{
	if (grow(&image->links, &image->link_room, image->link_count + 1, sizeof(*image->links)))
		return -ENOMEM;
	memmove(&image->links[calm + 1], &image->links[calm], (image->link_count - calm) * sizeof(*image->links));
	image->links[calm].row = LINK_CALM;
	image->links[calm + 1] = (struct link){.pid = image->links[calm].pid, .row = LINK_HOT};
	image->link_count++;
	return 0;
}

static bool is_part(const struct attached *image, const struct link *link, int64_t by)
{
	(void)image;
	(void)by;
	return link->row == LINK_CALM || link->row == LINK_HOT;
}

int attached__part(struct attacher *attacher, struct attached *image)
{
	int status = 0;

	for (size_t i = 0; i < image->link_count && !status; i++)
		if (image->links[i].row == LINK_WAITING)
			status = insert_hot(image, i);
	if (status)
		return status;
	image->parted = true;
	attached__close_links(attacher, image, is_part, 0);
	for (size_t i = 0; i < image->link_count && !attacher->paused; i++) {
		int made =
		    image->links[i].row == LINK_CALM ? attached__open_link(attacher, image, &image->links[i]) : 0;

		if (made && made != -EOPNOTSUPP && !status)
			status = made;
	}
	return status;
}

void attached__close_links(struct attacher *attacher, struct attached *image,
			   bool (*chosen)(const struct attached *image, const struct link *link, int64_t by),
			   int64_t by)
{
	struct kernel_link **links = calloc(image->link_count + 1, sizeof(*links));
	size_t count = 0;

	for (size_t i = 0; i < image->link_count; i++) {
		struct link *link = &image->links[i];

		if (!link->open || !chosen(image, link, by))
			continue;
		if (links)
			links[count++] = link->open;
		else
			kernel_side__unlink(attacher->side, link->open);
		link->open = NULL;
	}
	if (count)
		kernel_side__unlink_all(attacher->side, links, count);
	free(links);
}

static bool is_before(const struct attached *image, const struct link *link, int64_t end)
{
	return link - image->links < end;
}

void attached__drop_links(struct attacher *attacher, struct attached *image, size_t count)
{
	if (!count)
		return;
	attached__close_links(attacher, image, is_before, (int64_t)count);
	image->link_count -= count;
	memmove(image->links, image->links + count, image->link_count * sizeof(*image->links));
	kernel_side__settle(attacher->side);
}

void attached__relink(struct attacher *attacher, struct attached *image, const struct probe *probe)
{
	const struct probe of = *probe; /* a refused one leaves the list */

	for (size_t i = 0; i < image->link_count; i++) {
		struct link *link = &image->links[i], fresh = {.pid = link->pid, .row = link->row};

		if (!link->open || !attached__is_of(&of, link->row))
			continue;
		/* where the new site is refused the old link goes, too: the kernel side has the new site's description
		 */
		attached__open_link(attacher, image, &fresh);
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
		attached__close_links(attacher, image, is_before, INT64_MAX);
	}
	attacher->paused = true;
}
