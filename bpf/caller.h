/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds the caller: through transparent images (language bindings) to the true caller, by tables that
 * user space makes of their unwind information, and from there up the stack: by frame pointers, or
 * from hopped call-sites by rules that user space looks up.
 */
#ifndef VAPRO_CALLER_H
#define VAPRO_CALLER_H

#include "arch.h"
#include "fragment.h"

#define HOPS 4 /* f08 binding -> f77 binding -> library, and one to spare */

struct caller {
	u64 site;
	u64 sp;	    /* caller's stack pointer after the return */
	u64 frame;  /* caller's frame pointer */
	u64 approx; /* the true caller was not reached */
};

/* Leaves a frame by its rule. Returns false, and the caller is unchanged, where the stack cannot be read. */
static __always_inline bool leave_frame(const struct kernel_hop *to, struct caller *caller)
{
	u64 site = 0, frame = caller->frame, base = to->by_frame ? caller->frame : caller->sp;

	if (bpf_probe_read_user(&site, sizeof(site), (void *)(base + to->return_at)))
		return false;
	if (to->frame_at != KERNEL_FRAME_UNCHANGED &&
	    bpf_probe_read_user(&frame, sizeof(frame), (void *)(base + to->frame_at)))
		return false;
	caller->site = site;
	caller->frame = frame;
	caller->sp = base + to->sp;
	return true;
}

/* Leaves a transparent image. Returns false where there is none, or it cannot be left. */
static __always_inline bool hop(const struct kernel_transparent *transparent, struct caller *caller)
{
	const struct kernel_text *range = range_of(transparent, caller->site);
	struct kernel_hop_key key = {};
	struct kernel_hop *to;

	if (!range)
		return false;
	key.image = range->image;
	key.vaddr = (u32)(caller->site - range->bias);
	to = bpf_map_lookup_elem(&hops, &key);
	caller->approx = true;
	if (!to || !leave_frame(to, caller))
		return false;
	caller->approx = false;
	return true;
}

/* These functions are global: the verifier checks each once. */
__noinline int true_caller(struct caller *caller, u32 tgid)
{
	struct kernel_transparent *at = bpf_map_lookup_elem(&transparent, &tgid);

	if (!at || !caller)
		return 0;
	for (u32 i = 0; i < HOPS; i++)
		if (!hop(at, caller))
			return 0;
	caller->approx = range_of(at, caller->site) != 0;
	return 0;
}

static __always_inline u32 number_path(const struct kernel_path_key *key, struct kernel_counters *to)
{
	u32 *known = bpf_map_lookup_elem(&paths, key), number = 0;
	struct kernel_owner *owner = owner_of(to);

	if (known)
		return *known;
	if (has_share(to->paths, owner->paths, room_of(owner, KERNEL_PATHS), KERNEL_PATHS_MOST) &&
	    paths_used < KERNEL_PATHS)
		number = give_number(&paths, key, &next_path, &to->paths, &owner->paths, &paths_used);
	if (number)
		return number;
	note_bounded(to, KERNEL_BOUNDED_VALUES);
	return KERNEL_OTHER_PATHS;
}

/* Returns the path number of the callers above a call-site; 0 if the caller keeps no frame pointer. */
__noinline u32 path_of(struct caller *caller, u32 tgid, u32 slot)
{
	struct kernel_path_key key = {.tgid = tgid};
	struct {
		u64 next, address;
	} frame;
	u64 at, below;

	if (!caller)
		return 0;
	at = caller->frame;
	below = caller->sp;
	for (u32 i = 0; i < KERNEL_PATH_DEPTH; i++) {
		if (!is_frame(at, below) || bpf_probe_read_user(&frame, sizeof(frame), (void *)at))
			break;
		key.address[i] = frame.address;
		key.count = i + 1;
		below = at + sizeof(frame);
		at = frame.next;
	}
	return key.count ? number_path(&key, counters_of(slot)) : 0;
}

/*
 * Returns the path number of at most `frames` callers above a hopped call-site; 0 where the call-site is not hopped.
 * A frame that cannot be read ends the chain and makes it approximate.
 */
__noinline u32 hopped_path_of(struct caller *caller, u32 tgid, u32 frames, u32 slot)
{
	struct kernel_path_key key = {.tgid = tgid};
	struct kernel_hopped_key at = {.tgid = tgid};
	struct kernel_hop *to;

	if (!caller)
		return 0;
	for (u32 i = 0; i < KERNEL_PATH_DEPTH; i++) {
		at.address = caller->site;
		to = i < frames ? bpf_map_lookup_elem(&hopped, &at) : 0;
		if (!to)
			break;
		if (!leave_frame(to, caller)) {
			caller->approx = true;
			break;
		}
		key.address[i] = caller->site;
		key.count = i + 1;
	}
	return key.count ? number_path(&key, counters_of(slot)) : 0;
}

#endif
