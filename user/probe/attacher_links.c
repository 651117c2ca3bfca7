// SPDX-License-Identifier: GPL-2.0-or-later
/* Links of images: opened, refused in part, closed for a while. */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probe/attacher_private.h"

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

/* Opens a link: *link->open stays NULL where that fails. */
static int make_link(struct attacher *attacher, struct attached *image, struct link *link)
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
			cookies[sites.count++] = image->probes[i].row;
		}
		snprintf(path, sizeof(path), "/proc/self/fd/%d", image->file);
		warm_pages(image);
		status = kernel_side__link(attacher->side, &sites, &link->open);
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
	int status = attacher->paused ? 0 : make_link(attacher, image, &link);

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

	if (!kernel_side__frugal(attacher->side))
		return add_link(attacher, image, pid, -1);
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

		if (!link->open || !is_of(probe, link->row) || make_link(attacher, image, &fresh))
			continue;
		kernel_side__unlink(attacher->side, link->open);
		link->open = fresh.open;
	}
}

static uint64_t sum_entered(const struct kernel_function_counters *per_cpu, uint32_t cpus)
{
	uint64_t sum = 0;

	for (uint32_t cpu = 0; cpu < cpus; cpu++)
		sum += per_cpu[cpu].enter;
	return sum;
}

/*
 * Whether a link of one function costs enough to be closed: at least a hundredth of the calls since
 * the last pause. The others stay: what they see is ignored meanwhile.
 */
static bool *find_busy(struct attacher *attacher, struct attached *image)
{
	int map = bpf_map__fd(kernel_side__bpf(attacher->side)->maps.function_counters);
	struct kernel_function_counters *per_cpu = calloc(attacher->cpus, sizeof(*per_cpu));
	uint64_t *calls = calloc(KERNEL_FUNCTIONS, sizeof(*calls)), all = 0;
	bool *busy = calloc(KERNEL_FUNCTIONS, sizeof(*busy));

	for (size_t i = 0; per_cpu && calls && i < image->probe_count; i++) {
		struct probe *probe = &image->probes[i];
		uint32_t row = (uint32_t)probe->row;
		uint64_t entered;

		if (bpf_map_lookup_elem(map, &row, per_cpu))
			continue;
		entered = sum_entered(per_cpu, attacher->cpus);
		calls[row] = entered - probe->entered;
		probe->entered = entered;
		all += calls[row];
	}
	for (uint32_t row = 0; calls && busy && row < KERNEL_FUNCTIONS; row++)
		busy[row] = calls[row] && calls[row] * 100 >= all;
	free(calls);
	free(per_cpu);
	return busy;
}

void attacher__pause(struct attacher *attacher)
{
	kernel_side__hold(attacher->side, true);
	for (size_t i = 0; i < attacher->count; i++) {
		struct attached *image = attacher->images[i];
		bool *busy = kernel_side__frugal(attacher->side) ? find_busy(attacher, image) : NULL;

		attached__learnt(attacher, image);
		for (size_t j = 0; j < image->link_count; j++) {
			struct link *link = &image->links[j];

			if (busy && link->row >= 0 && !busy[link->row])
				continue;
			kernel_side__unlink(attacher->side, link->open);
			link->open = NULL;
		}
		free(busy);
	}
	attacher->paused = true;
}

int attacher__resume(struct attacher *attacher)
{
	int status = 0;

	attacher->paused = false;
	for (size_t i = 0; i < attacher->count; i++)
		for (size_t j = 0; j < attacher->images[i]->link_count; j++) {
			struct link *link = &attacher->images[i]->links[j];
			int made = link->open ? 0 : make_link(attacher, attacher->images[i], link);

			if (made && !status)
				status = made;
		}
	kernel_side__hold(attacher->side, false);
	return status;
}
