/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Blocks as messages: the subject and the id that they have. */
#ifndef VAPRO_BROKER_BLOCKS_H
#define VAPRO_BROKER_BLOCKS_H

#include "broker/publisher.h"
#include "wire/block.h"

/* Hands a block over to the publisher, which counts it where it discards it. The bytes are the publisher's then. */
void blocks__put(struct publisher *publisher, const struct wire_job *job, const char *host, const struct block *block);

#endif
