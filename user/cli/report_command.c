// SPDX-License-Identifier: GPL-2.0-or-later
/* `vapro report`: a run as a page, for people. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/exit_codes.h"
#include "base/printable.h"
#include "cli/broker_rows.h"
#include "cli/commands.h"
#include "cli/report_output.h"
#include "cli/shared_rows.h"
#include "cli/stored_reports.h"
#include "daemon/daemon.h"
#include "export/csv.h"
#include "export/svg.h"
#include "export/trace.h"
#include "page/page.h"
#include "page/report_input.h"
#include "page/report_text.h"
#include "page/run_report.h"
#include "query/client.h"
#include "query/joined_records.h"
#include "query/status.h"

struct live_records {
	FILE *file;	  /* the records */
	const char *name; /* the socket that they came from, or the directory of several */
	char *text;
	struct query_found found;
};

/* Paths; NULL: not wanted. */
struct report_exports {
	const char *svg, *csv, *trace;
	const char *class; /* of the picture; NULL: computation */
};

#define PATIENCE_S 60 /* time for the whole response, which may have to wait for others */

static void print_note(const char *sentence)
{
	fprintf(stderr, "vapro: %s\n", sentence);
}

/* What a vaprod has responded; its text is to be freed. */
struct live_response {
	char *text;
	struct query_response parts;
};

/* Queries one vaprod. Returns 0, or an exit code with a sentence in err. */
static int query_one(const char *path, struct live_response *response, char *err, size_t err_size)
{
	const struct status_request request = {.report = true};
	char text[STATUS_REQUEST_MAX];
	int length = status_request__format(&request, text, sizeof(text)), error;
	size_t size;

	error = query_client__request(path, text, (size_t)length, PATIENCE_S, &response->text, &size, err, err_size);
	if (error)
		return error == -EPERM || error == -EACCES ? EXIT_REFUSED : EXIT_FAILED;
	if (query_client__read(response->text, size, print_note, &response->parts)) {
		snprintf(err, err_size, "the response of vaprod is incomplete; it may have ended");
		return EXIT_FAILED;
	}
	if (response->parts.body)
		return 0;
	snprintf(err, err_size, "%s%s", response->parts.sentence,
		 response->parts.error == QUERY_USAGE ? ": it is of an earlier version, and knows no reports" : "");
	printable(err);
	return response->parts.error == QUERY_REFUSED ? EXIT_REFUSED : EXIT_FAILED;
}

static void free_records(struct live_records *live)
{
	if (live->file)
		fclose(live->file);
	free(live->text);
	*live = (struct live_records){.file = NULL};
}

/*
 * Queries all vaprods that were found, and joins what they respond; one that fails is named, and costs only what it
 * alone knows. Returns 0, or an exit code with a sentence in err where all fail.
 */
static int query_all(struct live_records *live, const char *command, char *err, size_t err_size)
{
	struct live_response responses[JOINED_PARTS] = {{.text = NULL}};
	struct joined_part parts[JOINED_PARTS] = {{.text = NULL}};
	int count = live->found.several ? live->found.several : 1, failed = 0, code = 0;
	size_t size = 0;

	count = count < JOINED_PARTS && count < QUERY_NAMED ? count : JOINED_PARTS;
	for (int i = 0; i < count; i++) {
		const char *path = live->found.several ? live->found.names[i] : live->found.path;
		int error = query_one(path, &responses[i], err, err_size);

		code = error ? error : code;
		failed += error != 0;
		if (error && count > 1)
			fprintf(stderr, "vapro %s: %s: %s\n", command, path, err);
		if (!error)
			parts[i] = (struct joined_part){responses[i].parts.body, responses[i].parts.bytes};
	}
	if (failed < count) {
		code = 0;
		live->text = joined_records__make(parts, (size_t)count, &size);
		live->file = size ? fmemopen(live->text, size, "r") : NULL;
		if (!live->file) {
			snprintf(err, err_size, "%s", size ? strerror(errno) : "vaprod has no records");
			code = EXIT_FAILED;
		}
	}
	for (int i = 0; i < count; i++)
		free(responses[i].text);
	return code;
}

/*
 * Reads them from the vaprod at a socket, or from all of a directory, into live, which is to be freed. Returns 0, or an
 * exit code after saying why on standard error, as the command `vapro COMMAND`.
 */
static int read_records(struct live_records *live, const char *command, const char *socket)
{
	char err[QUERY_SENTENCE_MAX];
	int error, code;

	*live = (struct live_records){.name = live->found.path};
	error = query_client__find(socket, true, &live->found, err, sizeof(err));
	if (error == -EEXIST)
		snprintf(live->found.path, sizeof(live->found.path), "%s", socket);
	if (error && error != -EEXIST)
		code = error == -ENAMETOOLONG ? EXIT_USAGE : EXIT_FAILED;
	else
		code = query_all(live, command, err, sizeof(err));
	if (!code)
		return 0;
	fprintf(stderr, "vapro %s: %s\n", command, err);
	free_records(live);
	return code;
}

#define FOLDER_PERMISSIONS 0750

/* Returns whether anything is wanted. */
static bool exports_any(const struct report_exports *exports)
{
	return exports->svg || exports->csv || exports->trace;
}

static int write_svg(const struct report_exports *exports, const struct run_report *report)
{
	char err[512];
	const struct view_map *map = svg__choose(report, exports->class, err, sizeof(err));
	FILE *file;

	if (!map) {
		fprintf(stderr, "vapro report: %s is not written: %s\n", exports->svg, err);
		return EXIT_FAILED;
	}
	file = report_output__open("report", exports->svg, SVG_BEGIN);
	return file ? report_output__close("report", file, exports->svg, svg__write(report, map, file)) : EXIT_FAILED;
}

static int write_table(const char *folder, const struct csv_table *table, const struct run_report *report)
{
	int code = EXIT_FAILED;
	char *path;
	FILE *file;

	if (asprintf(&path, "%s/%s", folder, table->name) < 0) {
		fprintf(stderr, "vapro report: out of memory\n");
		return EXIT_FAILED;
	}
	file = report_output__open("report", path, table->begin);
	if (file)
		code = report_output__close("report", file, path, csv__write(table, report, file));
	free(path);
	return code;
}

static int write_csv(const char *folder, const struct run_report *report)
{
	struct stat status;
	int code = EXIT_OK;

	if ((mkdir(folder, FOLDER_PERMISSIONS) && errno != EEXIST) || stat(folder, &status)) {
		fprintf(stderr, "vapro report: cannot make the folder %s: %s\n", folder, strerror(errno));
		return EXIT_FAILED;
	}
	if (!S_ISDIR(status.st_mode)) {
		fprintf(stderr, "vapro report: --csv writes into a folder, and %s is not one\n", folder);
		return EXIT_FAILED;
	}
	for (size_t i = 0; i < CSV_TABLES; i++)
		code |= write_table(folder, &csv_tables[i], report);
	return code ? EXIT_FAILED : EXIT_OK;
}

static int write_trace(const char *path, const struct run_report *report)
{
	FILE *file = report_output__open("report", path, TRACE_BEGIN);
	uint64_t left_out;
	int ret;

	if (!file)
		return EXIT_FAILED;
	ret = trace__write(report, VAPRO_VERSION, file, &left_out);
	if (left_out)
		fprintf(stderr, "vapro report: %s: %llu events are left out, more than a viewer can show\n", path,
			(unsigned long long)left_out);
	return report_output__close("report", file, path, ret);
}

/* Writes what is wanted; after a failure the others are still written. Returns an exit code. */
static int write_exports(const struct report_exports *exports, const struct run_report *report)
{
	int code = EXIT_OK;

	if (exports->svg)
		code |= write_svg(exports, report);
	if (exports->csv)
		code |= write_csv(exports->csv, report);
	if (exports->trace)
		code |= write_trace(exports->trace, report);
	return code ? EXIT_FAILED : EXIT_OK;
}

#define LIVE_NAME "vapro" /* of the page of a running vaprod, without its ending */

struct choice {
	const char *html; /* NULL: none */
	struct report_exports exports;
	const char *job;
	bool one_line;		      /* the verdict in one line, and nothing else */
	const char *directory;	      /* of the reports that jobs left */
	struct source_options source; /* a broker in place of files */
	const char *socket;	      /* NULL: not given */
	int run;
	struct option_list files;
};

/* clang-format off */
static const struct option_row rows[] = {
    {.type = OPTION_STRING, OPTION_AT(struct choice, html), .name = "html", .value = "OUT|-",
     .help = "the page's file; - is standard output (that of FILE with .html in place of its ending)"},
    {.type = OPTION_STRING, OPTION_AT(struct choice, exports.svg), .name = "svg", .value = "OUT|-",
     .help = "write the heat map of one job and class as a picture for papers"},
    {.type = OPTION_STRING, OPTION_AT(struct choice, exports.csv), .name = "csv", .value = "FOLDER",
     .help = "write tables: jobs, causes, variances, states, hangs, noise and cells, each a file of FOLDER"},
    {.type = OPTION_STRING, OPTION_AT(struct choice, exports.trace), .name = "trace", .value = "OUT|-",
     .help = "write a trace in JSON, for Perfetto or chrome://tracing"},
    {.type = OPTION_CHOICE, OPTION_AT(struct choice, exports.class), .name = "class",
     .words = "computation|communication|io", .help = "class of the picture (computation)"},
    {.type = OPTION_SWITCH, OPTION_AT(struct choice, one_line), .name = "one-line",
     .help = "print the verdict in one line of at most 250 characters, for the comment of a job, and write no file"},
    {.type = OPTION_STRING, OPTION_AT(struct choice, directory), .name = "directory", .value = "DIR",
     .help = "with --job and without FILE: where jobs left reports, as vaprod's --job-reports (" STORE_DIRECTORY ")"},
    JOB_ROW(struct choice, job, "only this job: its number, 123 or slurm:123, or as records name it (all jobs)"),
    {.type = OPTION_STRING, OPTION_AT(struct choice, socket), .name = "socket", .value = "PATH",
     .help = "without FILE: where vaprod is reached, as its --socket; all that run where it is a directory (" VAPRO_SOCKET ")"},
    RUN_ROW(struct choice, run, "of a file that holds"),
    OPTIONS_HELP_ROW,
    FROM_ROWS(struct choice, source),
};
/* clang-format on */

static int report_command__main(int argc, char **argv);

const struct command report_command = {
    .name = "report",
    .program = "vapro report",
    .summary = "write a run as one HTML page, a picture, tables or a trace",
    .synopsis = "[option]... FILE...\n[option]... [--socket PATH]\n[option]... --broker URL [--job JOB]",
    .about =
	"Writes a page that a browser opens without a network: the verdict, the causes of lost time, heat maps of "
	"all ranks over time, the slow regions with when, where and why, and what could not be evaluated. FILE is "
	"NDJSON output of vaprod, vapro run or vapro analyze (- is standard input), a capture, or fragments as "
	"NDJSON; several files are the hosts of one run. Without FILE the running vaprods (or vapro run) are "
	"read: what they retain, which is less than two minutes and slow regions that are open; users see their own "
	"jobs, root sees all; with --job a job that has ended is read from the report that it left (`vapro jobs`). "
	"With "
	"--svg, --csv or --trace the page is written only if "
	"--html "
	"is given too. A file that is no report is not overwritten. With --broker the page is of what workers have "
	"published about a job of many nodes so far.",
    .examples = "vapro report run.ndjson\twrites run.html\n"
		"vapro report\tyour jobs on this node at present, into vapro.html\n"
		"vapro report --html job.html node1.capture node2.capture\tone job on two hosts\n"
		"vapro report --svg map.svg --csv tables --trace run.json run.ndjson\ta picture, tables and a trace\n"
		"vapro report --broker nats://broker --job slurm:123.0 --html job.html\ta job of many nodes",
    .rows = rows,
    .row_count = sizeof(rows) / sizeof(*rows),
    .operands = offsetof(struct choice, files),
    .main = report_command__main,
};

/* Returns the page's name after that of its first file: run.html of run.ndjson. malloc'ed, or NULL. */
static char *default_name(const char *file)
{
	static const char *const endings[] = {".ndjson", ".jsonl", ".json", ".capture"};
	size_t length = strlen(file);
	char *name;

	for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++) {
		size_t ending = strlen(endings[i]);

		if (length > ending && file[length - ending - 1] != '/' &&
		    !strcmp(file + length - ending, endings[i])) {
			length -= ending;
			break;
		}
	}
	return asprintf(&name, "%.*s.html", (int)length, file) < 0 ? NULL : name;
}

static int write_html(const struct run_report *report, const struct report_input *input, const char *path)
{
	FILE *file = report_output__open("report", path, PAGE_BEGIN);

	return file ? report_output__close("report", file, path, page__write(report, input, VAPRO_VERSION, file))
		    : EXIT_FAILED;
}

/* Prints the verdict on a run in one line. Returns an exit code. */
static int print_line(const struct choice *choice, const struct run_report *report)
{
	char line[REPORT_LINE_SIZE];

	puts(report_text__line(report, choice->job, line));
	if (!fflush(stdout))
		return EXIT_OK;
	fprintf(stderr, "vapro report: standard output: %s\n", strerror(errno));
	return EXIT_FAILED;
}

static int write_all(const struct choice *choice, const struct run_report *report, const struct report_input *input)
{
	int code = choice->html ? write_html(report, input, choice->html) : EXIT_OK;

	return write_exports(&choice->exports, report) || code ? EXIT_FAILED : EXIT_OK;
}

/* What a report is made of, beside files. */
struct inputs {
	struct live_records live;
	struct source_results results;
	const char *name; /* of the job of results, or of the report that a job left */
	FILE *stored;	  /* that report's records */
	char title[STORE_NAME_SIZE];
};

/* Opens the records that a job left, where it did. Returns whether it did. */
static bool open_stored(const struct choice *choice, struct inputs *inputs, struct report_input *input)
{
	char err[4300];
	struct stored_reports *reports = stored_reports__list(choice->directory, err, sizeof(err));
	const struct store_report *found = reports ? stored_reports__find(reports, choice->job) : NULL;

	if (found)
		inputs->stored = stored_reports__open(reports, found, STORE_RECORDS);
	if (inputs->stored) {
		snprintf(inputs->title, sizeof(inputs->title), "%s", found->name);
		inputs->name = inputs->title;
		input->files = &inputs->name;
		input->count = 1;
		input->live = inputs->stored;
		input->job = NULL; /* the records are of that job alone */
	}
	stored_reports__free(reports);
	return inputs->stored;
}

/* Reads what workers published about a job. Returns 0 or an exit code. */
static int read_results(const struct choice *choice, struct source_results *results)
{
	struct source_options source = choice->source;
	char err[SOURCE_ERR];
	int ret;

	source.job = choice->job;
	ret = source__results(&source, results, err, sizeof(err));
	if (ret)
		fprintf(stderr, "vapro report: %s\n", err);
	return ret ? broker_rows__code(ret) : 0;
}

/* Chooses what is read: the files, a broker, or without any a running vaprod. Returns 0 or an exit code. */
static int choose_input(struct choice *choice, struct inputs *inputs, struct report_input *input)
{
	int code = 0;

	*input = (struct report_input){
	    .files = choice->files.items, .count = choice->files.count, .run = choice->run, .job = choice->job};
	if (choice->source.broker.servers) {
		code = read_results(choice, &inputs->results);
		inputs->name = inputs->results.job.job;
		input->files = &inputs->name;
		input->count = 1;
		input->live = inputs->results.file;
		input->job = NULL; /* it is of one job, which may have been named by its token */
		input->bad_lines = inputs->results.bad;
	} else if (!choice->files.count && choice->job && !choice->socket && open_stored(choice, inputs, input)) {
		code = 0;
	} else if (!choice->files.count) {
		code = read_records(&inputs->live, "report", choice->socket ? choice->socket : VAPRO_SOCKET);
		input->files = &inputs->live.name;
		input->count = 1;
		input->live = inputs->live.file;
	}
	return code;
}

static int report(struct choice *choice)
{
	bool plain = !choice->html && !exports_any(&choice->exports) && !choice->one_line;
	char err[512], *name = NULL;
	struct inputs inputs = {.live = {.file = NULL}, .results = {.file = NULL}};
	struct report_input input;
	struct run_report report;
	int code = choose_input(choice, &inputs, &input);

	if (code)
		return code;
	code = EXIT_FAILED;
	if (plain) {
		name = default_name(choice->files.count ? choice->files.items[0]
				    : inputs.stored	? inputs.name
							: LIVE_NAME);
		choice->html = name;
	}
	if (report_input__read(&input, &report, err, sizeof(err))) {
		fprintf(stderr, "vapro report: %s\n", err);
	} else if (plain && !name) {
		fprintf(stderr, "vapro report: out of memory\n");
	} else {
		if (inputs.stored)
			input.live = NULL; /* they are no records of a running vaprod */
		code = choice->one_line ? print_line(choice, &report) : write_all(choice, &report, &input);
	}
	if (!code && input.bad_lines) {
		fprintf(stderr, "vapro report: %llu bad line%s refused\n", (unsigned long long)input.bad_lines,
			input.bad_lines == 1 ? " was" : "s were");
		code = EXIT_FAILED;
	}
	run_report__free(&report);
	free_records(&inputs.live);
	if (inputs.results.file)
		fclose(inputs.results.file);
	if (inputs.stored)
		fclose(inputs.stored);
	free(name);
	return code || input.cut ? EXIT_FAILED : EXIT_OK;
}

/* Checks that at most one output is standard output. */
static bool one_to_stdout(const struct choice *choice)
{
	const char *const outputs[] = {choice->html, choice->exports.svg, choice->exports.trace};
	int count = 0;

	for (size_t i = 0; i < sizeof(outputs) / sizeof(*outputs); i++)
		count += outputs[i] && !strcmp(outputs[i], "-");
	return count <= 1;
}

static int check_outputs(const struct choice *choice)
{
	if (choice->exports.class && !choice->exports.svg) {
		fprintf(stderr, "vapro report: --class is that of the picture, so --svg is needed too\n");
		return EXIT_USAGE;
	}
	if (!one_to_stdout(choice)) {
		fprintf(stderr, "vapro report: only one output can be standard output (-)\n");
		return EXIT_USAGE;
	}
	return 0;
}

/* Checks what the options need of each other. Returns 0 or an exit code. */
static int check(const struct choice *choice)
{
	char err[SOURCE_ERR];

	if (broker_rows__check(&choice->source, err, sizeof(err)))
		return command__fail(&report_command, EXIT_USAGE, "%s", err);
	if ((choice->files.count != 0) + (choice->socket != NULL) + (choice->source.broker.servers != NULL) > 1)
		return command__fail(&report_command, EXIT_USAGE,
				     "files, --socket and --broker exclude each other: a report is of one of them");
	if (choice->one_line && (choice->html || exports_any(&choice->exports)))
		return command__fail(&report_command, EXIT_USAGE,
				     "--one-line writes no file: give no output beside it");
	if (!choice->html && !exports_any(&choice->exports) && !choice->one_line && choice->files.count &&
	    !strcmp(choice->files.items[0], "-"))
		return command__fail(&report_command, EXIT_USAGE,
				     "--html is needed where standard input is read: it says what to write");
	return check_outputs(choice);
}

static int report_command__main(int argc, char **argv)
{
	struct choice choice = {
	    .directory = STORE_DIRECTORY, .run = RUN_OPTION_LAST, .source.broker.name = "vapro report"};
	int code = command__parse(&report_command, &choice, argc, argv);

	if (!code)
		code = check(&choice);
	if (!code)
		code = report(&choice);
	option_list__clear(&choice.files);
	return code == COMMAND_DONE ? EXIT_OK : code;
}
