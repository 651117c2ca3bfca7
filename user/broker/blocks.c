// SPDX-License-Identifier: GPL-2.0-or-later
#include "broker/blocks.h"

void blocks__put(struct publisher *publisher, const struct wire_job *job, const char *host, const struct block *block)
{
	char subject[WIRE_SUBJECT_MAX], id[WIRE_ID_MAX];
	struct publish_message message = {.subject = subject,
					  .id = id,
					  .bytes = block->bytes,
					  .size = block->size,
					  .run = block->run,
					  .fragments = block->fragments,
					  .named = block->named};

	wire__subject(subject, sizeof(subject), WIRE_IN, job, host);
	wire__message_id(id, sizeof(id), block->run, job, block->sequence);
	publisher__put(publisher, &message);
}
