/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Images and the links on them. An image (device and inode) is read once: which rows of the function
 * table it defines and where their probes go. It has links for each process that is a target, or for all
 * processes; both are made again as the others when that is requested. A link is closed when its last mapper ends.
 */
#ifndef VAPRO_ATTACHER_H
#define VAPRO_ATTACHER_H

#include "functions/functions.h"
#include "probe/attach/attached_image.h"
#include "probe/bpf/kernel_side.h"
#include "target/process.h"

struct attacher;

/*
 * side must outlive the attacher. learn_s: how long polling calls are linked after each process that is
 * attached, seconds; 0 = never. NULL when out of memory.
 */
struct attacher *attacher__new(struct kernel_side *side, double learn_s);
void attacher__free(struct attacher *attacher);

/*
 * Attaches the external functions of one mapped image of a process. alone: the links are for this process only, unless
 * the image is linked for all. spared: what is not probed, where the image has no links yet. *image describes it and
 * belongs to the attacher. Returns 0, -E2BIG where too many processes have links of their own, or another -errno with
 * a sentence.
 */
int attacher__attach(struct attacher *attacher, const struct process *process, const struct process_mapping *mapping,
		     bool alone, const struct functions_spared *spared, const struct attached_image **image, char *err,
		     size_t err_size);

/*
 * Reads an image, so that attacher__attach() need not; it belongs to the attacher. NULL with errno and a sentence:
 * confine__is_later(-errno) (sandbox/confine.h) where that takes longer.
 */
const struct attached_image *attacher__read(struct attacher *attacher, const struct process *process,
					    const struct process_mapping *mapping, char *err, size_t err_size);

/* Whether an image has a link for all processes already: then further mappers are probed as they come. */
bool attacher__linked(const struct attacher *attacher, const struct process_mapping *mapping);

/* How many processes of an image have links of their own. */
uint32_t attacher__own_links(const struct attacher *attacher, const struct process_mapping *mapping);

/* Bounds the processes of an image that have links of their own; at first nothing does. */
void attacher__bound(struct attacher *attacher, uint32_t most);

/* Links an image for all processes instead of each: its hits cost less. 0, or -errno with the links as they were. */
int attacher__share(struct attacher *attacher, const struct attached_image *image);

/* Whether an image is linked for all processes. */
bool attacher__any_linked(const struct attacher *attacher);

/* As attachments__close_shared() and attachments__part(). */
void attacher__close_shared(struct attacher *attacher);
int attacher__part(struct attacher *attacher);

/* Drops a process that ended or is no target any more: closes its own links and those of unmapped images. */
void attacher__release(struct attacher *attacher, pid_t pid);

/* Functions of an image that were closed. */
struct attacher_closed {
	const char *name;   /* function that was called most */
	uint32_t functions; /* closed */
	uint32_t of;	    /* functions probed */
	bool parted;	    /* links that stay were opened again: calls under way are not seen to return */
};

/*
 * Ends the learning of polling calls of an image where these had most of the cost since its calls are counted. stepped:
 * how many times as much a single-stepped call costs. Returns whether they had, also where it has just ended.
 */
bool attacher__end_learning(struct attacher *attacher, const struct attached_image *image, double stepped);

/*
 * Ends the learning of polling calls and closes the probes of an image that cost most, until the others had at most a
 * share `keep` of what all cost since they were opened. stepped: as above. Links that stay may have to be opened again,
 * once old ones are removed: attacher__open_remaining(). The caller ensures that the kernel side records no fragment
 * meanwhile.
 */
void attacher__close(struct attacher *attacher, const struct attached_image *image, double keep, double stepped,
		     struct attacher_closed *closed);

/* Opens those links of a closed image that stay. 0 or the first -errno. */
int attacher__open_remaining(struct attacher *attacher, const struct attached_image *image);

/* Returns whether closed links are still being removed, and whether their probes may still be hit. */
bool attacher__detaching(const struct attacher *attacher);
bool attacher__still_hit(const struct attacher *attacher);

/*
 * Adds the rows of an image that are closed in duty cycles and had a part of the cost when they were chosen: where all
 * functions are closed, the others of them are no reason for it.
 */
void attacher__costly(const struct attacher *attacher, const struct attached_image *image,
		      struct functions_spared *spared);

/* Opens closed probes again. 0 or the first -errno. */
int attacher__open(struct attacher *attacher, const struct attached_image *image);

/*
 * Leaves out these units, and probes again those that are left out no longer. The caller ensures that the kernel side
 * records no fragment meanwhile and knows the set. Links that functions shared which are left out for the first time
 * are closed (*parted), in the background: attacher__open() is to follow once they are gone, and the image is not seen
 * until then. Returns 0 or the first -errno of links that could not be opened again.
 */
int attacher__leave_out(struct attacher *attacher, const struct attached_image *image, uint32_t units, bool *parted);

/*
 * Shares of units in the cost of calls since counting began. Units of functions that can wait have a share only where
 * hardly any of these calls waited. stepped: as of attacher__close().
 */
void attacher__unit_shares(struct attacher *attacher, const struct attached_image *image, double stepped,
			   double shares[FUNCTIONS_UNITS]);

/* Returns whether functions that can wait, but may be left out where they are short, were called since counting began.
 */
bool attacher__may_be_short(struct attacher *attacher, const struct attached_image *image);

/* Starts counting calls. */
void attacher__begin_count(struct attacher *attacher, const struct attached_image *image);

/* Closes every link for good, at the end. */
void attacher__pause(struct attacher *attacher);

/* Ends the learning of polling calls whose time is up, or that has seen enough. To be called in each pass. */
void attacher__learn(struct attacher *attacher, uint64_t now_ns);

/*
 * Compares enters, returns and vanished frames of each function with the number of tracked threads.
 * A function whose returns stay away is moved to its entry; its name is returned (else NULL).
 */
const char *attacher__check(struct attacher *attacher, uint32_t threads);

#endif
