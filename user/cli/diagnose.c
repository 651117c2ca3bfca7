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
#include "query/client.h"
#include "base/printable.h"
#include "base/terminal.h"
#include "daemon/daemon.h"

#define PATIENCE_S 60	  /* time for a whole response, which may have to wait for others */
#define LIST_PATIENCE_S 2 /* the same, where it only helps to choose */

enum { ROW_SOCKET = 1, ROW_JOB, ROW_JSON, ROW_SINCE, ROW_UNTIL };

static const struct option_row rows[] = {
    {"socket", "PATH", "where vaprod is reached, as its --socket; needed where several run (" VAPRO_SOCKET ")",
     ROW_SOCKET, 0},
    {"job", "JOB", "only this job, by its identity in the records", ROW_JOB, 'j'},
    {"since", "TIME", SINCE_HELP, ROW_SINCE, 'S'},
    {"until", "TIME", UNTIL_HELP, ROW_UNTIL, 'U'},
    {"json", NULL, "`diagnosis` records, one a line, instead of text", ROW_JSON, 0},
    OPTIONS_HELP_ROW,
    FROM_ROWS,
};

static int diagnose__main(int argc, char **argv);

const struct command diagnose_command = {
    .name = "diagnose",
    .program = "vapro diagnose",
    .summary = "query a running vaprod, or a job of many nodes, for why ranks were slow in a time that you choose",
    .synopsis = "[option]... RANKS@BEGIN..END\n[option]... --since TIME|--until TIME [RANKS]\n--from URL [option]... "
		"RANKS@BEGIN..END",
    .about =
	"Queries a running vaprod (or vapro run) for why these ranks (all, or as in 0-3,7) were slow in this time, "
	"slow or not. BEGIN and END are seconds since vaprod began, or times as in the records; an empty one is "
	"the begin or the end of the retained time, so that all@.. is all of it. The retained time is printed "
	"where the region is not in it; vaprod's --keep and --keep-bytes bound it. Needs root.\n"
	"With --from it queries what the nodes of a job have published so far, all of them at once, and needs no root; "
	"nodes times --keep-bytes bound the time.",
    .examples = "vapro diagnose all@..\tall ranks, all of the retained time\n"
		"vapro diagnose 0-3,7@12..15\tthese ranks, from 12 to 15 s after vaprod began\n"
		"vapro diagnose --since 2026-11-24T08:00:00Z 0-3\tthese ranks, from a time of the day on\n"
		"vapro diagnose --from nats://broker --job slurm:123.0 all@..\tall ranks of a job of many nodes",
    .rows = rows,
    .row_count = sizeof(rows) / sizeof(*rows),
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

static int query(const char *where, const struct query_request *request)
{
	char query[QUERY_REQUEST_MAX + 1], *text, err[512];
	int length = query_request__format(request, query, sizeof(query)), error, code;
	struct query_found found;
	size_t size;

	if (length < 0)
		return fail(EXIT_USAGE, "the region or the job is too long");
	error = query_client__find(where, false, &found, err, sizeof(err));
	if (error) {
		fail(0, "%s", err);
		for (int i = 0; i < found.several && i < QUERY_NAMED; i++)
			describe(found.names[i]);
		return error == -EEXIST || error == -ENAMETOOLONG ? EXIT_USAGE : EXIT_FAILED;
	}
	error = query_client__request(found.path, query, (size_t)length, PATIENCE_S, &text, &size, err, sizeof(err));
	if (error)
		return fail(error == -EPERM || error == -EACCES ? EXIT_REFUSED : EXIT_FAILED, "%s", err);
	code = print_response(text, size);
	free(text);
	return code;
}

static int diagnose__main(int argc, char **argv)
{
	struct options options = command__options(&diagnose_command, argc, argv);
	const char *where = VAPRO_SOCKET, *region = NULL;
	struct query_request request = {.width = terminal__width(STDOUT_FILENO)};
	char err[SOURCE_ERR];
	struct source_options source = {.broker.name = "vapro diagnose"};
	struct time_option time = {NULL, NULL};
	int id;

	while ((id = options__next(&options)) != OPTIONS_END) {
		if (from_rows__set(&source, id, options.value))
			continue;
		switch (id) {
		case ROW_SOCKET:
			where = options.value;
			break;
		case ROW_JOB:
			if (!*options.value || (size_t)snprintf(request.job, sizeof(request.job), "%s",
								options.value) >= sizeof(request.job))
				return fail(EXIT_USAGE, "--job: invalid job '%s'", options.value);
			break;
		case ROW_JSON:
			request.json = true;
			break;
		case ROW_SINCE:
			time.since = options.value;
			break;
		case ROW_UNTIL:
			time.until = options.value;
			break;
		case OPTIONS_OPERAND:
			if (region)
				return fail(EXIT_USAGE, "one region is expected, not also '%s'; --help has the form",
					    options.value);
			region = options.value;
			break;
		case OPTIONS_HELP:
			return command__help(&diagnose_command, options.value, stdout);
		default:
			return EXIT_USAGE;
		}
	}
	if (time.since || time.until) {
		if (region_option__span(&request.region, region, &time, request.region_text,
					sizeof(request.region_text), err, sizeof(err)))
			return fail(EXIT_USAGE, "%s", err);
		region = request.region_text;
	}
	if (!region)
		return fail(EXIT_USAGE, "a region is needed, such as all@.. or 0-3@12..15; --help has the form");
	if (region_option__parse(&request.region, region, err, sizeof(err)))
		return fail(EXIT_USAGE, "%s", err);
	if (region != request.region_text && (size_t)snprintf(request.region_text, sizeof(request.region_text), "%s",
							      region) >= sizeof(request.region_text))
		return fail(EXIT_USAGE, "the region is too long");
	if (from_rows__check(&source, err, sizeof(err)))
		return fail(EXIT_USAGE, "%s", err);
	if (source.broker.servers) {
		source.job = *request.job ? request.job : NULL;
		return diagnose_from(&source, &request);
	}
	if (geteuid() != 0)
		return fail(EXIT_REFUSED, "permission denied: root only, because the data covers all users' processes");
	return query(where, &request);
}
