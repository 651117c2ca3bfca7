// SPDX-License-Identifier: GPL-2.0-or-later
/* The reader's side of a query for frames. All of it runs confined, on bytes that may be anything. */
#include <errno.h>
#include <stdio.h>

#include "probe/elf/frames.h"
#include "target/image.h"

static bool fits(int64_t value)
{
	return value >= INT32_MIN && value <= INT32_MAX;
}

/* The rules in force are those of the call, before the address that it returns to: that may be another function's. */
enum frame_rule frames__of(struct image *image, uint64_t vaddr, struct kernel_hop *hop)
{
	struct image_frame frame;
	int status = vaddr ? image__frame(image, vaddr - 1, &frame) : -ENOENT;

	*hop = (struct kernel_hop){0};
	if (status == -ENOENT)
		return FRAME_NONE;
	if (status || !fits(frame.cfa) || !fits(frame.return_at) || (!frame.frame_unchanged && !fits(frame.frame_at)))
		return FRAME_EXPRESSION;
	*hop =
	    (struct kernel_hop){.return_at = (int32_t)frame.return_at,
				.sp = (int32_t)frame.cfa,
				.by_frame = frame.by_frame,
				.frame_at = frame.frame_unchanged ? KERNEL_FRAME_UNCHANGED : (int32_t)frame.frame_at};
	return FRAME_FOUND;
}

int frames__respond(struct flat_reader *about, struct confine_file *files, unsigned int file_count,
		    struct flat *response, char *err, size_t err_size)
{
	size_t count = (size_t)flat__get_upto(about, FRAMES_MOST);
	struct image *image;

	if (file_count != 1 || about->bad) {
		snprintf(err, err_size, "the query makes no sense");
		return -EINVAL;
	}
	image = image__from_bytes(files[0].data, files[0].size, false, err, err_size);
	if (!image)
		return -EINVAL;
	for (size_t i = 0; i < count; i++) {
		enum frame_rule rule = FRAME_NONE;
		struct kernel_hop hop = {0};
		uint64_t vaddr;

		if (!image__vaddr_of(image, flat__get(about), &vaddr))
			rule = frames__of(image, vaddr, &hop);
		flat__put(response, rule);
		flat__put(response, (uint32_t)hop.return_at);
		flat__put(response, (uint32_t)hop.sp);
		flat__put(response, (uint32_t)hop.frame_at);
		flat__put(response, hop.by_frame);
	}
	image__free(image);
	if (!flat__done(about)) {
		snprintf(err, err_size, "the query makes no sense");
		return -EINVAL;
	}
	return 0;
}
