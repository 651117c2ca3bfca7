/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Images, the processes that map them and the links on them: what attaching MPI functions (attacher.h) and rows with
 * exit sites (row_attacher.h) has in common. An image is known by device and inode and opened once. Its functions are
 * divided into sets; a link has the probes of one set, since the kernel removes a link only as a whole. A set has one
 * link for all processes, or one for each process whose image others map that are no targets. The two attachers are
 * policies: they choose the functions, divide them into sets and decide when a set is linked.
 */
#ifndef VAPRO_ATTACHMENTS_H
#define VAPRO_ATTACHMENTS_H

#include <sys/types.h>

#include "functions/functions.h"
#include "probe/attach/attached_image.h"
#include "probe/bpf/async_detach.h"
#include "probe/bpf/kernel_side.h"
#include "probe/elf/row_sites.h"
#include "sandbox/page_holder.h"
#include "target/process.h"
#include "probe/attach/attached.h"

struct attachments;

struct attach_policy {
	size_t image_size;
	/* Completes an image that was opened; NULL: nothing is to be done. 0, or -errno with a sentence. */
	int (*read)(struct attachments *all, struct attached *image, char *err, size_t err_size);
	/* Frees what the policy holds of an image; its links are closed already. */
	void (*free)(struct attached *image);
};

/* The images of one policy; the first member of its attacher. */
struct attachments {
	const struct attach_policy *policy;
	struct kernel_side *side;
	struct async_detach *detacher; /* closes links in the background; perf links are the kernel side's */
	struct attached **images;
	size_t count, room;
	bool paused;   /* for good */
	uint32_t most; /* processes of an image that may have links of their own */
	uint32_t cpus;
	uint32_t rows_at_once;
	struct kernel_function_counters *per_cpu; /* of the functions that were read last: rows_at_once x cpus */
};

/* Returns false when out of memory. */
bool attachments__init(struct attachments *all, const struct attach_policy *policy, struct kernel_side *side);

/* Closes all links and frees all images. */
void attachments__free(struct attachments *all);

/*
 * The image behind a mapping, read where it is not known yet. NULL with a sentence and errno: one of
 * confine__is_later() (sandbox/confine.h) where that takes longer, else ENOMEM or ENOEXEC.
 */
struct attached *attachments__image(struct attachments *all, const struct process *process,
				    const struct process_mapping *mapping, char *err, size_t err_size);

/* How many processes of an image have links of their own. */
uint32_t attachments__own_links(const struct attachments *all, const struct process_mapping *mapping);

/* Whether an image is linked for all processes that map it, or will be. */
bool attachments__linked(const struct attachments *all, const struct process_mapping *mapping);

/* Whether an image is linked for all processes that map it. */
bool attachments__any_linked(const struct attachments *all);

/*
 * Links all images for single processes, in two steps: closes what reaches other processes, in the background, and
 * opens links for each mapper of the images that were linked. Between the two nothing is recorded. link_mapper links
 * one: 0 or -errno; image and mapper are numbers. Returns 0, or the first -errno.
 */
void attachments__close_shared(struct attachments *all);
int attachments__part(struct attachments *all, int (*link_mapper)(void *ctx, size_t image, size_t mapper), void *ctx);

/* Removes a mapper from all images, with its own links and the images that no other maps. */
void attachments__release(struct attachments *all, pid_t pid);

/* Closes all links for good, and waits for those that are closed in the background. */
void attachments__pause(struct attachments *all);

/* What each CPU counted of a function; valid until the next call, NULL where it cannot be read. */
const struct kernel_function_counters *attachments__counters(const struct attachments *all, uint32_t row);

/* Calls of a function, and those of them that took KERNEL_WAIT_NS or longer, with their time. */
struct function_calls {
	uint64_t calls, waits, waited_ns;
};

/* Counts the calls of the rows from first to before end, of all CPUs: end - first counts, 0 where they cannot be read.
 */
void attachments__count_calls(const struct attachments *all, uint32_t first, uint32_t end,
			      struct function_calls *calls);

/* Describes functions to the kernel side, each completed by what its row states. */
void attachments__describe(const struct attachments *all, const uint32_t *rows, struct bpf_function_state *functions,
			   uint32_t count);

/*
 * Removes the probes of a link in the background. The kernel takes them out of the code at once, one by one, but then
 * waits until no program of theirs runs, which takes seconds where all CPUs are busy; perf links are waited for one by
 * one.
 */
void attachments__unlink(const struct attachments *all, struct kernel_link *link);

/* Returns whether links are still being removed, and whether their probes may still be hit. */
bool attachments__detaching(const struct attachments *all);
bool attachments__still_hit(const struct attachments *all);

/* Waits until closed links for a process (0: any) are removed: through old and new ones a call would be seen twice. */
void attachments__wait(const struct attachments *all, pid_t pid);

/* Waits until all closed links are removed. */
void attachments__finalize(const struct attachments *all);

#endif
