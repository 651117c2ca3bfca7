// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/live_records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/exit_codes.h"
#include "base/printable.h"
#include "query/status.h"

#define PATIENCE_S 60 /* time for the whole response, which may have to wait for others */

static void print_note(const char *sentence)
{
	fprintf(stderr, "vapro: %s\n", sentence);
}

/* Names the sockets where there are several. */
static void name_sockets(const struct query_found *found)
{
	for (int i = 0; i < found->several && i < QUERY_NAMED; i++)
		fprintf(stderr, "  --socket %.*s\n", (int)(strlen(found->names[i]) - strlen(QUERY_STATUS)),
			found->names[i]);
}

/* Takes the records out of the response. Returns 0, or an exit code with a sentence in err. */
static int take_records(struct live_records *live, size_t size, char *err, size_t err_size)
{
	struct query_response response;

	if (query_client__read(live->text, size, print_note, &response)) {
		snprintf(err, err_size, "the response of vaprod is incomplete; it may have ended");
		return EXIT_FAILED;
	}
	if (!response.body) {
		snprintf(err, err_size, "%s%s", response.sentence,
			 response.error == QUERY_USAGE ? ": it is of an earlier version, and knows no reports" : "");
		printable(err);
		return response.error == QUERY_REFUSED ? EXIT_REFUSED : EXIT_FAILED;
	}
	live->file = response.bytes ? fmemopen((char *)response.body, response.bytes, "r") : NULL;
	if (live->file)
		return 0;
	snprintf(err, err_size, "%s", response.bytes ? strerror(errno) : "vaprod has no records");
	return EXIT_FAILED;
}

int live_records__read(struct live_records *live, const char *command, const char *socket)
{
	const struct status_request request = {.report = true};
	char text[STATUS_REQUEST_MAX], err[QUERY_SENTENCE_MAX];
	int length = status_request__format(&request, text, sizeof(text)), error, code = EXIT_FAILED;
	size_t size;

	*live = (struct live_records){.name = live->found.path};
	error = query_client__find(socket, true, &live->found, err, sizeof(err));
	if (error == -EEXIST || error == -ENAMETOOLONG)
		code = EXIT_USAGE;
	if (!error) {
		error = query_client__request(live->found.path, text, (size_t)length, PATIENCE_S, &live->text, &size,
					      err, sizeof(err));
		if (error == -EPERM || error == -EACCES)
			code = EXIT_REFUSED;
	}
	if (!error)
		code = take_records(live, size, err, sizeof(err));
	if (!code)
		return 0;
	fprintf(stderr, "vapro %s: %s\n", command, err);
	name_sockets(&live->found);
	live_records__free(live);
	return code;
}

void live_records__free(struct live_records *live)
{
	if (live->file)
		fclose(live->file);
	free(live->text);
	*live = (struct live_records){.file = NULL};
}
