/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Images with functions that have exit sites, on a fake kernel side. */
#ifndef VAPRO_TEST_ROW_IMAGES_H
#define VAPRO_TEST_ROW_IMAGES_H

#include "fake_kernel_side.h"
#include "base/clock.h"
#include "base/grow.h"
#include "probe/attach/row_attacher_private.h"
#include "probe/attach/row_image.h"

static const struct process_mapping mapping = {.device = 1, .inode = 2, .path = "libgomp.so"};
static const struct costs costs = {.entry_ns = 1000};

static struct row_attacher *begin(enum attach_mode mode, struct row_image **image)
{
	struct row_attacher *attacher;
	char err[64];

	fake__reset(mode);
	attacher = row_attacher__new(&side, &costs, 0, 1);
	assert_non_null(attacher);
	*image = calloc(1, sizeof(**image));
	(*image)->base.public.device = mapping.device;
	(*image)->base.public.inode = mapping.inode;
	(*image)->base.file = -1;
	assert_int_equal(attacher->base.policy->read(&attacher->base, &(*image)->base, err, sizeof(err)), 0);
	(*image)->read = 1U << ROW_USER | 1U << ROW_THREADS; /* as the confined reader would have */
	assert_false(grow(&attacher->base.images, &attacher->base.room, 1, sizeof(*attacher->base.images)));
	attacher->base.images[attacher->base.count++] = &(*image)->base;
	return attacher;
}

/* Adds a function that begins at an offset and ends at another. */
static struct row_probe *add(const struct row_attacher *attacher, struct row_image *image, enum row_group group,
			     uint64_t entry, uint64_t end, double calls_per_s)
{
	struct row_probe *probe = calloc(1, sizeof(*probe));

	assert_false(grow(&image->probes, &image->probe_room, image->probe_count + 1, sizeof(*image->probes)));
	probe->cpu = calloc(attacher->base.cpus, sizeof(*probe->cpu));
	probe->function.row = function_row_count + (unsigned int)image->probe_count;
	probe->function.name = strdup("function");
	probe->function.entry = entry;
	probe->function.site_count = 2;
	probe->function.sites = calloc(2, sizeof(*probe->function.sites));
	probe->function.sites[0].offset = entry;
	probe->function.sites[1].offset = end;
	probe->group = group;
	probe->state = ROW_FITTING;
	probe->calls_per_s = calls_per_s;
	image->probes[image->probe_count++] = probe;
	row_image__join_family(image, probe);
	return probe;
}

static int attach(struct row_attacher *attacher, pid_t pid, bool alone)
{
	const struct process process = {.pid = pid};
	char err[256] = "";
	int status = row_attacher__attach(attacher, &process, &mapping, ROW_USER, NULL, 0, alone, err, sizeof(err));

	assert_int_equal(status >= 0, !err[0]);
	return status;
}

static void end(struct row_attacher *attacher)
{
	row_attacher__pause(attacher);
	assert_int_equal(side.count, 0);
	row_attacher__free(attacher);
}

#endif
