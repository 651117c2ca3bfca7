/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An image of either attacher, with the processes that map it, which are its mappers, and the links on it. Its
 * functions are divided into sets, and a link has the probes of one set, since the kernel removes a link only as a
 * whole.
 */
#ifndef VAPRO_ATTACHED_H
#define VAPRO_ATTACHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "probe/attach/attached_image.h"
#include "probe/elf/row_sites.h"
#include "sandbox/page_holder.h"
#include "target/image.h"

struct attachments;
struct kernel_link;

struct attached_link {
	struct kernel_link *open; /* NULL while closed, or where all of its functions are refused */
	pid_t pid;		  /* 0 = all processes */
	int64_t set;		  /* a number that the policy gives */
	bool marked;		  /* to be closed */
};

/* An image of any policy; the first member of the policy's own structure. */
struct attached {
	struct attached_image public;
	char *path;
	char build_id[IMAGE_BUILD_ID_MAX];
	int file; /* refers to the file, which stays reachable whatever its name space, until the last mapper ends */
	struct page_hold hold; /* pages that are held for several links */
	uid_t owner;	       /* of the process that mapped it first */
	struct attached_skip *skips;
	size_t skip_room;
	struct attached_link *links;
	size_t link_count, link_room;
	pid_t *pids; /* processes that map it: its mappers */
	bool *alone; /* for each of them: it has links of its own */
	size_t mapper_count, pid_room, alone_room;
};

/*
 * Adds a mapper; does nothing where it is one. alone: its links are for it only, unless the image is linked for all.
 * 0, -E2BIG with a sentence where too many processes have links of their own, or -ENOMEM.
 */
int attached__add_mapper(const struct attachments *all, struct attached *image, pid_t pid, bool alone, char *err,
			 size_t err_size);

/* Whether a link for all processes is open, or will be: new mappers are seen by it. */
bool attached__is_linked(const struct attached *image);

/* Has each mapper links of its own from now on, or none. */
void attached__set_alone(struct attached *image, bool alone);

/* Closes the links for all processes (alone: false), or those for single ones, for good and in the background. */
void attached__close_of(const struct attachments *all, struct attached *image, bool alone);

bool attached__is_mapped_by(const struct attached *image, pid_t pid);

/* Notes that a function is not probed; the texts must outlive the note. 0 or -ENOMEM. */
int attached__skip(struct attached *image, const char *function, const char *reason);

/*
 * Links sites of the image's file for a process (0: for all), while their pages are held. refused: NULL, or one for
 * each site. As kernel_side__link(), or confine__is_later() (sandbox/confine.h) where the file system does not bring
 * the pages.
 */
int attached__link_sites(const struct attachments *all, const struct attached *image, const struct row_site *sites,
			 size_t count, pid_t pid, bool entry_only, bool *refused, struct kernel_link **link);

/*
 * Holds the pages of all sites that are linked until attached__release_pages(), in place of those of each link. 0 or
 * confine__is_later().
 */
int attached__hold_pages(struct attached *image, const uint64_t *offsets, size_t count);
void attached__release_pages(struct attached *image);

/* The link through which a process (0: any that maps the image) is seen to call functions of a set, or NULL. */
struct attached_link *attached__find_link(const struct attached *image, int64_t set, pid_t pid);

/* Takes over a link. 0, or -ENOMEM with the link closed. */
int attached__add_link(const struct attachments *all, struct attached *image, const struct attached_link *link);

/* Closes the marked links together. dropped: they leave the list, else they can be opened again. */
void attached__close_marked(const struct attachments *all, struct attached *image, bool dropped);

/* Closes the links of a set and removes them from the list. */
void attached__drop_set(const struct attachments *all, struct attached *image, int64_t set);

#endif
