/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unwind rules of the frames that some calls of an image return to, looked up in its .eh_frame by the confined
 * reader (sandbox/confine.h) for just those addresses.
 */
#ifndef VAPRO_FRAMES_H
#define VAPRO_FRAMES_H

#include <stdint.h>
#include <vapro/bpf/abi.h>
#include <sys/types.h>

#include "sandbox/confine.h"

#define FRAMES_SERVICE "frames"
#define FRAMES_MOST 64 /* addresses per query */

enum frame_rule {
	FRAME_FOUND,
	FRAME_NONE,	  /* no unwind information covers the address */
	FRAME_EXPRESSION, /* its frame is based on neither the stack pointer nor the frame pointer */
	FRAME_RULES,
};

struct frame {
	enum frame_rule rule;
	struct kernel_hop hop; /* valid with FRAME_FOUND */
};

struct frames_lookup;

/*
 * Begins to look up count (at most FRAMES_MOST) return addresses, as offsets in the file behind fd, a regular one, in
 * the background (confine_request__begin()). 0, or a negative errno with a sentence in err.
 */
int frames_lookup__begin(int fd, uid_t owner, const uint64_t *offsets, size_t count, struct frames_lookup **lookup,
			 char *err, size_t err_size);

/*
 * -EAGAIN while it is under way; else 0 with a frame for each address, or a negative errno with a sentence in err:
 * what is wrong with the image, or what became of its reader. cpu_ns: processor time that it took.
 */
int frames_lookup__poll(struct frames_lookup *lookup, struct frame *frames, uint64_t *cpu_ns, char *err,
			size_t err_size);
void frames_lookup__free(struct frames_lookup *lookup);

struct image;

/* The rule of one return address of an image that has its bytes, as linked. */
enum frame_rule frames__of(struct image *image, uint64_t vaddr, struct kernel_hop *hop);

/* The reader's side; runs confined. */
int frames__respond(struct flat_reader *about, struct confine_file *files, unsigned int file_count,
		    struct flat *response, char *err, size_t err_size);

#endif
