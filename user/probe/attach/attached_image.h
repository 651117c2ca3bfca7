/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An image as its attacher describes it to others. */
#ifndef VAPRO_ATTACHED_IMAGE_H
#define VAPRO_ATTACHED_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

/* A function that is not probed, or not fully seen. */
struct attached_skip {
	const char *function;
	const char *reason;
};

struct attached_image {
	uint64_t device, inode;
	const char *path;
	const char *build_id;
	uint32_t functions; /* probed */
	uint32_t shifted;   /* probed past their entry */
	uint32_t at_entry;
	uint32_t stepped; /* probed by single steps */
	const struct attached_skip *skipped;
	uint32_t skipped_count;
	uint32_t filtered; /* processes with links of their own: each slows the hits of the others a little */
	bool linked;	   /* for all processes that map it */
	bool closed;	   /* its functions that are called most, or all, are not seen at present */
	uint32_t without;  /* units of functions that never wait, which are left out: functions__unit() */
};

#endif
