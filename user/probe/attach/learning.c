// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The learning window (ARCHITECTURE section 3): calls that only query how far communication is come in
 * loops and would cost too much for good, so they are linked for a short time when a process is
 * attached. An edge in which one was seen is progress of communication, not computation.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "probe/attach/attacher_private.h"

#define ENOUGH 20000 /* polling calls: some tens of milliseconds of the targets' time at most */

static uint64_t polls_seen(const struct attacher *attacher)
{
	return __atomic_load_n(kernel_side__shared(attacher->side)->polls_seen, __ATOMIC_RELAXED);
}

void attached__learn(struct attacher *attacher, struct attached *image, pid_t pid)
{
	struct learning *learning = &image->learning;
	uint64_t *offsets, *cookies;
	char path[64];
	struct kernel_sites sites = {.path = path, .count = (uint32_t)learning->count, .pid = pid, .entry_only = true};

	if (!learning->count || !attacher->learn_ns || attacher->paused || image->public.closed ||
	    kernel_side__frugal(attacher->side))
		return;
	learning->until_ns = mono_now() + attacher->learn_ns;
	if (learning->open && (!learning->pid || learning->pid == pid))
		return;
	attached__learnt(attacher, image);
	sites.offsets = offsets = calloc(learning->count, sizeof(*offsets));
	sites.cookies = cookies = calloc(learning->count, sizeof(*cookies));
	for (size_t i = 0; offsets && cookies && i < learning->count; i++) {
		offsets[i] = learning->probes[i].offset;
		cookies[i] = learning->probes[i].row | KERNEL_SITE_POLL;
		if (learning->probes[i].class == SITE_STEPPED)
			cookies[i] |= KERNEL_SITE_STEPPED;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", image->file);
	learning->pid = pid;
	learning->polls = polls_seen(attacher);
	if (offsets && cookies && kernel_side__link(attacher->side, &sites, &learning->open))
		learning->open = NULL;
	free(offsets);
	free(cookies);
}

void attached__learnt(struct attacher *attacher, struct attached *image)
{
	kernel_side__unlink(attacher->side, image->learning.open);
	image->learning.open = NULL;
}

void attacher__learn(struct attacher *attacher, uint64_t now_ns)
{
	for (size_t i = 0; i < attacher->count; i++) {
		const struct learning *learning = &attacher->images[i]->learning;

		if (learning->open && (now_ns >= learning->until_ns || polls_seen(attacher) - learning->polls > ENOUGH))
			attached__learnt(attacher, attacher->images[i]);
	}
}
