/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a running vaprod retains, as records in NDJSON (query/status.h). */
#ifndef VAPRO_LIVE_RECORDS_H
#define VAPRO_LIVE_RECORDS_H

#include <stdio.h>

#include "query/client.h"

struct live_records {
	FILE *file;	  /* the records */
	const char *name; /* the socket that they came from */
	char *text;
	struct query_found found;
};

/*
 * Reads them from the vaprod at a socket, or at the only one in a directory, into live, which is to be freed. Returns
 * 0, or an exit code after saying why on standard error, as the command `vapro COMMAND`.
 */
int live_records__read(struct live_records *live, const char *command, const char *socket);
void live_records__free(struct live_records *live);

#endif
