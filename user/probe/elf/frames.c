// SPDX-License-Identifier: GPL-2.0-or-later
/* The requesting side: each field of the response is checked before use. */
#include "probe/elf/frames.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* The kernel side checks each access through these distances: any value that fits will do. */
static void get_frame(struct flat_reader *reader, struct frame *frame)
{
	frame->rule = (enum frame_rule)flat__get_upto(reader, FRAME_RULES - 1);
	frame->hop.return_at = (int32_t)(uint32_t)flat__get_upto(reader, UINT32_MAX);
	frame->hop.sp = (int32_t)(uint32_t)flat__get_upto(reader, UINT32_MAX);
	frame->hop.frame_at = (int32_t)(uint32_t)flat__get_upto(reader, UINT32_MAX);
	frame->hop.by_frame = (uint32_t)flat__get_upto(reader, 1);
}

int frames__query(int fd, const uint64_t *offsets, size_t count, struct frame *frames, char *err, size_t err_size)
{
	struct flat about = {0};
	struct confine_question question = {.service = FRAMES_SERVICE, .about = &about, .files = {fd}, .file_count = 1};
	struct confine_answer answer = {0};
	struct flat_reader reader;
	int status = -ENOMEM;

	snprintf(err, err_size, "out of memory");
	flat__put(&about, count);
	for (size_t i = 0; i < count; i++)
		flat__put(&about, offsets[i]);
	if (!about.failed)
		status = confine__query(&question, &answer, err, err_size);
	free(about.data);
	if (status)
		return status;
	reader = (struct flat_reader){.at = answer.data, .end = answer.data + answer.size};
	for (size_t i = 0; i < count; i++)
		get_frame(&reader, &frames[i]);
	if (!flat__done(&reader)) {
		snprintf(err, err_size, "its confined reader gave a response that makes no sense");
		status = -EBADMSG;
	}
	free(answer.data);
	return status;
}
