/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Images and the links on them. An image (device and inode) is read once: which rows of the function
 * table it defines and where their probes go. A link for all processes where every mapper is a
 * target, else one per selected process (at most 16). A link is closed when its last mapper ends.
 */
#ifndef VAPRO_ATTACHER_H
#define VAPRO_ATTACHER_H

#include <stdbool.h>
#include <stdint.h>

#include "functions/functions.h"
#include "probe/bpf/bpf_object.h"
#include "target/process.h"

#define ATTACHER_MAX_FILTERED 16

struct attacher;

struct attached_skip {
	const char *function;
	const char *reason;
};

struct attached_image {
	uint64_t device, inode;
	const char *path;
	const char *build_id;
	uint32_t functions; /* probed */
	uint32_t shifted;   /* of them past their entry */
	uint32_t at_entry;
	uint32_t stepped; /* of them single-stepped */
	const struct attached_skip *skipped;
	uint32_t skipped_count;
	bool closed;	  /* its functions that are called most, or all, are not seen at present */
	uint32_t without; /* units of functions that never wait, which are left out: functions__unit() */
};

/*
 * side must outlive the attacher. learn_s: how long polling calls are linked after each process that is
 * attached, seconds; 0 = never. NULL when out of memory.
 */
struct attacher *attacher__new(struct kernel_side *side, double learn_s);
void attacher__free(struct attacher *attacher);

/*
 * Attaches the external functions of one mapped image of a process. alone: other processes map the
 * image and are not targets, so the link is for this process only. *image describes it and belongs
 * to the attacher. Returns 0, -E2BIG for too many filtered links, or another -errno with a sentence.
 */
int attacher__attach(struct attacher *attacher, const struct process *process, const struct process_mapping *mapping,
		     bool alone, const struct attached_image **image, char *err, size_t err_size);

/* Whether an image has a link for all processes already: then further mappers are probed as they come. */
bool attacher__linked(const struct attacher *attacher, const struct process_mapping *mapping);

/* A process has ended, or is no target any more: its own links go, and those of images nobody maps now. */
void attacher__release(struct attacher *attacher, pid_t pid);

/* What was closed of an image. */
struct attacher_closed {
	const char *name;   /* of the function that was called most */
	uint32_t functions; /* closed */
	uint32_t of;	    /* functions probed */
	bool parted;	    /* links that stay were opened anew: calls under way are not seen to return */
};

/*
 * Closes the probes of an image that cost most, until the others had at most a share `keep` of what
 * all cost since they were opened. stepped: how many times as much a single-stepped one costs. The
 * caller sees to it that the kernel side takes nothing for a fragment meanwhile. 0 or -errno, and then
 * at least what was to be closed is.
 */
int attacher__close(struct attacher *attacher, const struct attached_image *image, double keep, double stepped,
		    struct attacher_closed *told);

/* Opens them again. 0 or the first -errno. */
int attacher__open(struct attacher *attacher, const struct attached_image *image);

/*
 * Leaves units of functions that never wait out of what is probed, and probes those again that were left out and are
 * not any more. The caller sees to it that the kernel side takes nothing for a fragment meanwhile, and that it knows
 * the set. Returns 0 or the first -errno of links that could not be opened again.
 */
int attacher__leave_out(struct attacher *attacher, const struct attached_image *image, uint32_t units);

/* What part of the cost of calls, since these were counted from, each unit had. stepped: as of attacher__close(). */
void attacher__unit_shares(struct attacher *attacher, const struct attached_image *image, double stepped,
			   double shares[FUNCTIONS_UNITS]);

/* Calls are counted from now on. */
void attacher__begin_count(struct attacher *attacher, const struct attached_image *image);

/* Closes every link for good: the end. */
void attacher__pause(struct attacher *attacher);

/* Ends the learning of polling calls whose time is up, or that has seen enough. To be called in each turn. */
void attacher__learn(struct attacher *attacher, uint64_t now_ns);

/*
 * Compares enters, returns and vanished frames of each function with the number of tracked threads.
 * A function whose returns stay away is moved to its entry; its name is returned (else NULL).
 */
const char *attacher__check(struct attacher *attacher, uint32_t threads);

#endif
