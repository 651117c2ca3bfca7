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

struct frames_lookup {
	struct flat about;
	struct confine_query query;
	struct confine_request *request;
	size_t count;
};

int frames_lookup__begin(int fd, uid_t owner, const uint64_t *offsets, size_t count, struct frames_lookup **lookup,
			 char *err, size_t err_size)
{
	struct frames_lookup *fresh = calloc(1, sizeof(*fresh));
	int status = -ENOMEM;

	*lookup = NULL;
	snprintf(err, err_size, "out of memory");
	if (!fresh)
		return status;
	fresh->count = count;
	fresh->query = (struct confine_query){
	    .service = FRAMES_SERVICE, .about = &fresh->about, .files = {fd}, .file_count = 1, .owner = owner};
	flat__put(&fresh->about, count);
	for (size_t i = 0; i < count; i++)
		flat__put(&fresh->about, offsets[i]);
	if (!fresh->about.failed)
		status = confine_request__begin(&fresh->query, &fresh->request, err, err_size);
	if (status)
		frames_lookup__free(fresh);
	else
		*lookup = fresh;
	return status;
}

int frames_lookup__poll(struct frames_lookup *lookup, struct frame *frames, uint64_t *cpu_ns, char *err,
			size_t err_size)
{
	struct confine_response response;
	struct flat_reader reader;
	int status = confine_request__poll(lookup->request, &response, err, err_size);

	*cpu_ns = response.cpu_ns;
	if (status)
		return status;
	reader = (struct flat_reader){.at = response.data, .end = response.data + response.size};
	for (size_t i = 0; i < lookup->count; i++)
		get_frame(&reader, &frames[i]);
	if (!flat__done(&reader)) {
		snprintf(err, err_size, "its confined reader gave a response that makes no sense");
		status = -EBADMSG;
	}
	free(response.data);
	return status;
}

void frames_lookup__free(struct frames_lookup *lookup)
{
	if (!lookup)
		return;
	confine_request__free(lookup->request);
	free(lookup->about.data);
	free(lookup);
}
