// SPDX-License-Identifier: GPL-2.0-or-later
/* Links of MPI functions: opened, refused in part, opened elsewhere. */
#include <errno.h>
#include <stdlib.h>

#include "functions/functions.h"
#include "probe/attach/attacher.h"
#include "probe/attach/mpi_image.h"

bool mpi_image__stays_closed(const struct attacher *attacher, const struct mpi_image *image,
			     const struct attached_link *link)
{
	const struct attached_image *public = &image->base.public;

	for (size_t i = 0; i < image->probe_count; i++) {
		const struct probe *probe = &image->probes[i];

		if (probe->set == link->set &&
		    ((public->closed && probe->hot) || (probe->unit >= 0 && public->without >> probe->unit & 1)))
			return true;
	}
	return attacher->base.paused;
}

/* Removes from the image those sites linked for a set that the kernel refuses. */
static void drop_refused(struct mpi_image *image, int64_t set, const bool *refused)
{
	size_t live = 0, site = 0;

	for (size_t i = 0; i < image->probe_count; i++) {
		if (image->probes[i].set == set && refused[site++])
			mpi_image__skip(image, image->probes[i].name, "the kernel refuses to probe its instruction");
		else
			image->probes[live++] = image->probes[i];
	}
	image->probe_count = live;
	mpi_image__count_probes(image);
}

/* Opens a link, which stays closed where that fails or all functions of its set are refused. 0 or -errno. */
static int open_link(struct attacher *attacher, struct mpi_image *image, struct attached_link *link)
{
	struct row_site *sites = calloc(image->probe_count + 1, sizeof(*sites));
	bool *refused = calloc(image->probe_count + 1, sizeof(*refused));
	size_t count = 0;
	int status = -ENOMEM;

	link->open = NULL;
	if (!sites || !refused)
		goto out;
	attachments__wait(&attacher->base, link->pid);
	for (size_t i = 0; i < image->probe_count; i++) {
		const struct probe *probe = &image->probes[i];
		/* attacher__check() and count_costs() rest on the count */
		bool counted = probe->offset != probe->entry || kernel_side__frugal(attacher->base.side);

		if (probe->set == link->set)
			sites[count++] = (struct row_site){
			    .offset = probe->offset,
			    .cookie = probe->row | functions__plain(&function_rows[probe->row]) |
				      (probe->large ? KERNEL_SITE_LARGE : 0) | (counted ? KERNEL_SITE_COUNTED : 0),
			};
	}
	status = count ? attached__link_sites(&attacher->base, &image->base, sites, count, link->pid, false, refused,
					      &link->open)
		       : 0;
	drop_refused(image, link->set, refused);
	if (status == -EOPNOTSUPP)
		status = 0;
out:
	free(sites);
	free(refused);
	return status;
}

static int add_link(struct attacher *attacher, struct mpi_image *image, pid_t pid, int64_t set)
{
	struct attached_link link = {.pid = pid, .set = set};
	int status = mpi_image__stays_closed(attacher, image, &link) ? 0 : open_link(attacher, image, &link);

	return status ? status : attached__add_link(&attacher->base, &image->base, &link);
}

int mpi_image__link(struct attacher *attacher, struct mpi_image *image, pid_t pid)
{
	int status = 0;

	/* functions that can wait come last: nothing bounds what they cost until all links are there */
	for (size_t i = 0; i < image->probe_count && !status;) {
		int64_t set = image->probes[i].set;

		if (set == SET_CALM || set == SET_HOT || attached__find_link(&image->base, set, pid))
			i++;
		else /* refused functions leave the list */
			status = add_link(attacher, image, pid, set);
	}
	if (!status)
		status = add_link(attacher, image, pid, SET_CALM);
	if (!status)
		status = add_link(attacher, image, pid, SET_HOT);
	if (!status && !image->probe_count)
		status = -EOPNOTSUPP;
	for (size_t i = 0; i < image->base.link_count; i++)
		image->base.links[i].marked = status && image->base.links[i].pid == pid;
	attached__close_marked(&attacher->base, &image->base, true);
	return status;
}

int mpi_image__open_links(struct attacher *attacher, struct mpi_image *image)
{
	int first = 0;

	for (size_t i = 0; i < image->base.link_count; i++) {
		struct attached_link *link = &image->base.links[i];
		int status =
		    link->open || mpi_image__stays_closed(attacher, image, link) ? 0 : open_link(attacher, image, link);

		/* a process that has just ended needs no link; it is still listed until its exit is read */
		if (!first && status != -ESRCH)
			first = status;
	}
	return first;
}

void mpi_image__relink(struct attacher *attacher, struct mpi_image *image, int64_t set)
{
	for (size_t i = 0; i < image->base.link_count; i++) {
		struct attached_link *link = &image->base.links[i], fresh = *link;

		if (!link->open || link->set != set)
			continue;
		/* where the new site is refused the old link is closed, too: the kernel side knows the new site only */
		open_link(attacher, image, &fresh);
		kernel_side__unlink(attacher->base.side, link->open);
		link->open = fresh.open;
	}
}
