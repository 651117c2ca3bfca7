// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/broker_rows.h"
#include "cli/from_blocks.h"
#include "cli/shared_rows.h"
#include "query/client.h"
#include "base/printable.h"
#include "base/terminal.h"
#include "daemon/daemon.h"

#define PATIENCE_S 60	  /* time for a whole response, which may have to wait for others */
#define LIST_PATIENCE_S 2 /* the same, where it only helps to choose */

struct choice {
	const char *socket, *job;
	struct time_option time;
	bool json;
	struct source_options source; /* a broker in place of a vaprod */
	struct option_list regions;
};

/* clang-format off */
static const struct option_row rows[] = {
    {.type = OPTION_STRING, OPTION_AT(struct choice, socket), .name = "socket", .value = "PATH",
     .help = "where vaprod is reached, as its --socket; root chooses one where several run (" VAPRO_SOCKET ")"},
    {.type = OPTION_STRING, OPTION_AT(struct choice, job), .name = "job", .letter = 'j', .value = "JOB",
     .max = sizeof(((struct query_request *)0)->job) - 1, .noun = "job",
     .help = "only this job, by its identity in the records"},
    SINCE_ROW(struct choice, time, SINCE_HELP),
    UNTIL_ROW(struct choice, time),
    {.type = OPTION_SWITCH, OPTION_AT(struct choice, json), .name = "json",
     .help = "`diagnosis` records, one a line, instead of text"},
    OPTIONS_HELP_ROW,
    FROM_ROWS(struct choice, source),
};
/* clang-format on */

static int diagnose__main(int argc, char **argv);

const struct command diagnose_command = {
    .name = "diagnose",
    .program = "vapro diagnose",
    .summary = "query a running vaprod, or a job of many nodes, for why ranks were slow in a time that you choose",
    .synopsis = "[option]... RANKS@BEGIN..END\n[option]... --since TIME|--until TIME [RANKS]\n--broker URL [option]... "
		"RANKS@BEGIN..END",
    .about =
	"Queries a running vaprod (or vapro run) for why these ranks (all, or as in 0-3,7) were slow in this time, "
	"slow or not. BEGIN and END are seconds since vaprod began, or times as in the records; an empty one is "
	"the begin or the end of the retained time, so that all@.. is all of it. The retained time is printed "
	"where the region is not in it; vaprod's --keep and keep-bytes (of its configuration file) bound it. Users "
	"get an answer about their own jobs, root about all.\n"
	"With --broker it queries what the nodes of a job have published so far, all of them at once, and needs no "
	"root; "
	"nodes times keep-bytes bound the time.",
    .examples = "vapro diagnose all@..\tall ranks, all of the retained time\n"
		"vapro diagnose 0-3,7@12..15\tthese ranks, from 12 to 15 s after vaprod began\n"
		"vapro diagnose --since 2026-11-24T08:00:00Z 0-3\tthese ranks, from a time of the day on\n"
		"vapro diagnose --broker nats://broker --job slurm:123.0 all@..\tall ranks of a job of many nodes",
    .rows = rows,
    .row_count = sizeof(rows) / sizeof(*rows),
    .operands = offsetof(struct choice, regions),
    .main = diagnose__main,
};

/* Prints an error. Returns code. */
__attribute__((format(printf, 2, 3))) static int fail(int code, const char *format, ...)
{
	va_list arguments;

	fputs("vapro diagnose: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	return code;
}

static void print_note(const char *sentence)
{
	fail(0, "%s", sentence);
}

static void no_note(const char *sentence)
{
	(void)sentence;
}

/* Prints a vaprod among several: its socket, its PID and its jobs. */
static void describe(const char *path)
{
	const struct query_request request = {.jobs = true};
	char query[QUERY_REQUEST_MAX + 1], *text = NULL, *rest = NULL, err[512];
	int length = query_request__format(&request, query, sizeof(query)), fd = query_socket__connect(path);
	struct query_response response;
	size_t size, jobs = 0;

	fprintf(stderr, "  --socket %s", path);
	if (fd >= 0) {
		fprintf(stderr, "  pid %d", query_socket__peer_pid(fd));
		close(fd);
	}
	if (length > 0 &&
	    !query_client__request(path, query, (size_t)length, LIST_PATIENCE_S, &text, &size, err, sizeof(err)) &&
	    !query_client__read(text, size, print_note, &response) && response.body) {
		rest = (char *)response.body;
		for (char *job; (job = strtok_r(NULL, "\n", &rest)); jobs++)
			fprintf(stderr, "%s%s", jobs ? ", " : ": ", printable(job));
		fputs(jobs ? "" : ": no job yet", stderr);
	}
	fputc('\n', stderr);
	free(text);
}

/* Prints the response, or its error. Returns an exit code. */
static int print_response(char *text, size_t size)
{
	static const int codes[QUERY_ERRORS] = {
	    [QUERY_USAGE] = EXIT_USAGE, [QUERY_REFUSED] = EXIT_REFUSED, [QUERY_FAILED] = EXIT_FAILED};
	struct query_response response;

	if (query_client__read(text, size, print_note, &response))
		return fail(EXIT_FAILED, "the response of vaprod is incomplete; it may have ended");
	if (!response.body)
		return fail(codes[response.error], "%s", response.sentence);
	if (fwrite(response.body, 1, response.bytes, stdout) != response.bytes || fflush(stdout))
		return fail(EXIT_FAILED, "standard output: %s", strerror(errno));
	return EXIT_OK;
}

/* Lists the vaprods of which one must be chosen. Only root may query them for their jobs. */
static void list_sockets(const struct query_found *found)
{
	for (int i = 0; i < found->several && i < QUERY_NAMED && !geteuid(); i++)
		describe(found->names[i]);
}

/* Queries one vaprod. Returns an exit code; *answered: it had an answer, and not only a reason. */
static int query_one(const char *path, const char *query, size_t length, bool quiet, bool *answered)
{
	struct query_response response;
	char *text, *copy, err[512];
	size_t size;
	int error = query_client__request(path, query, length, PATIENCE_S, &text, &size, err, sizeof(err)), code;

	*answered = false;
	if (error)
		return quiet ? EXIT_FAILED
			     : fail(error == -EPERM || error == -EACCES ? EXIT_REFUSED : EXIT_FAILED, "%s", err);
	copy = malloc(size + 1);
	if (copy) {
		memcpy(copy, text, size + 1);
		*answered = !query_client__read(copy, size, no_note, &response) && response.body;
		free(copy);
	}
	code = *answered || !quiet ? print_response(text, size) : EXIT_FAILED;
	free(text);
	return code;
}

static int query(const char *where, const struct query_request *request)
{
	char query[QUERY_REQUEST_MAX + 1], err[512];
	int length = query_request__format(request, query, sizeof(query)), error, code = EXIT_FAILED, count;
	struct query_found found;
	bool answered = false;

	if (length < 0)
		return fail(EXIT_USAGE, "the region or the job is too long");
	/* a user's own jobs are shown by the socket that serves all users */
	error = query_client__find(where, geteuid() != 0, &found, err, sizeof(err));
	if (error && (error != -EEXIST || !geteuid())) {
		fail(0, "%s", err);
		list_sockets(&found);
		return error == -EEXIST || error == -ENAMETOOLONG ? EXIT_USAGE : EXIT_FAILED;
	}
	if (!error)
		return query_one(found.path, query, (size_t)length, false, &answered);
	/* a user need not know which vaprod watches the job: the first that has an answer, or the reason of the last */
	count = found.several < QUERY_NAMED ? found.several : QUERY_NAMED;
	for (int i = 0; i < count && !answered; i++)
		code = query_one(found.names[i], query, (size_t)length, i + 1 < count, &answered);
	return code;
}

/* Reads what is to be diagnosed. Returns 0 or an exit code. */
static int choose_region(const struct choice *choice, struct query_request *request)
{
	const char *region = choice->regions.count ? choice->regions.items[0] : NULL;
	char err[512];

	if (choice->regions.count > 1)
		return fail(EXIT_USAGE, "one region is expected, not also '%s'; --help has the form",
			    choice->regions.items[1]);
	if (choice->time.since || choice->time.until) {
		if (region_option__span(&request->region, region, &choice->time, request->region_text,
					sizeof(request->region_text), err, sizeof(err)))
			return fail(EXIT_USAGE, "%s", err);
		return 0;
	}
	if (!region)
		return fail(EXIT_USAGE, "a region is needed, such as all@.. or 0-3@12..15; --help has the form");
	if (region_option__parse(&request->region, region, err, sizeof(err)))
		return fail(EXIT_USAGE, "%s", err);
	if ((size_t)snprintf(request->region_text, sizeof(request->region_text), "%s", region) >=
	    sizeof(request->region_text))
		return fail(EXIT_USAGE, "the region is too long");
	return 0;
}

static int diagnose(struct choice *choice)
{
	struct query_request request = {.width = terminal__width(STDOUT_FILENO), .json = choice->json};
	char err[SOURCE_ERR];
	int code = choose_region(choice, &request);

	if (code)
		return code;
	snprintf(request.job, sizeof(request.job), "%s", choice->job ? choice->job : "");
	if (broker_rows__check(&choice->source, err, sizeof(err)))
		return fail(EXIT_USAGE, "%s", err);
	if (choice->source.broker.servers) {
		choice->source.job = choice->job;
		return from_blocks__diagnose(&choice->source, &request);
	}
	if (geteuid() != 0)
		print_note("without root: the vaprod of this node is asked about your own jobs");
	return query(choice->socket, &request);
}

static int diagnose__main(int argc, char **argv)
{
	struct choice choice = {.socket = VAPRO_SOCKET, .source.broker.name = "vapro diagnose"};
	int code = command__parse(&diagnose_command, &choice, argc, argv);

	if (!code)
		code = diagnose(&choice);
	option_list__clear(&choice.regions);
	return code == COMMAND_DONE ? EXIT_OK : code;
}
