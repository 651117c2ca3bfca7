// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The learning window (ARCHITECTURE section 3): calls that only query how far communication is come in
 * loops and would cost too much for good, so they are linked for a short time when a process is
 * attached. An edge in which one was seen is progress of communication, not computation.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "probe/attach/attacher.h"
#include "probe/attach/mpi_image.h"

#define ENOUGH 20000 /* polling calls: some tens of milliseconds of the targets' time at most */

static uint64_t polls_seen(const struct attacher *attacher)
{
	return __atomic_load_n(kernel_side__shared(attacher->base.side)->polls_seen, __ATOMIC_RELAXED);
}

void mpi_image__learn(const struct attacher *attacher, struct mpi_image *image, pid_t pid)
{
	const struct attachments *all = &attacher->base;
	struct learning *learning = &image->learning;
	struct attached_link link = {.pid = pid, .set = SET_POLLING};
	struct row_site *sites;
	bool goes_on = learning->until_ns;

	if (!learning->count || !attacher->learn_ns || all->paused || kernel_side__frugal(all->side))
		return;
	/* an edge is learnt where both of its calls are seen */
	learning->put_off = image->base.public.closed;
	if (learning->put_off)
		return;
	learning->until_ns = mono_now() + attacher->learn_ns;
	if (attached__find_link(&image->base, SET_POLLING, pid))
		return;
	if (!pid)
		attached__drop_set(all, &image->base, SET_POLLING);
	attachments__wait(all, pid);
	sites = calloc(learning->count, sizeof(*sites));
	for (size_t i = 0; sites && i < learning->count; i++) {
		const struct probe *probe = &learning->probes[i];
		uint64_t stepped = probe->class == SITE_STEPPED ? KERNEL_SITE_STEPPED : 0;

		sites[i] = (struct row_site){probe->offset, probe->row | KERNEL_SITE_POLL | stepped};
	}
	if (!goes_on)
		learning->polls = polls_seen(attacher);
	if (sites && !attached__link_sites(all, &image->base, sites, learning->count, pid, true, NULL, &link.open))
		attached__add_link(all, &image->base, &link);
	free(sites);
}

uint64_t mpi_image__polls(const struct attacher *attacher, const struct mpi_image *image)
{
	return image->learning.until_ns ? polls_seen(attacher) - image->learning.polls : image->learning.seen;
}

void mpi_image__learnt(const struct attacher *attacher, struct mpi_image *image)
{
	attached__drop_set(&attacher->base, &image->base, SET_POLLING);
	image->learning.seen = mpi_image__polls(attacher, image);
	image->learning.until_ns = 0;
}

void attacher__learn(struct attacher *attacher, uint64_t now_ns)
{
	for (size_t i = 0; i < attacher->base.count; i++) {
		const struct learning *learning = &attacher__image(attacher, i)->learning;

		if (learning->until_ns &&
		    (now_ns >= learning->until_ns || polls_seen(attacher) - learning->polls > ENOUGH))
			mpi_image__learnt(attacher, attacher__image(attacher, i));
	}
}
