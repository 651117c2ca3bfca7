/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A job's blocks as the input of a command. */
#ifndef VAPRO_FROM_BLOCKS_H
#define VAPRO_FROM_BLOCKS_H

#include "query/protocol.h"
#include "source/blocks.h"

struct summary;

/* Reports on standard error, and in the summary (or NULL), which blocks are not in the analysis. */
void from_blocks__say(const char *command, const struct source_blocks *blocks, struct summary *summary);

/* Responds to a query as a vaprod would that watched all nodes of the job. Returns an exit code. */
int from_blocks__diagnose(const struct source_options *source, const struct query_request *request);

#endif
