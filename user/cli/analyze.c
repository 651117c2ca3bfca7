// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/terminal.h"
#include "capture/capture.h"
#include "capture/file_kind.h"
#include "capture/output_file.h"
#include "cli/broker_rows.h"
#include "cli/commands.h"
#include "cli/from_blocks.h"
#include "cli/settings.h"
#include "cli/shared_rows.h"
#include "config/rules.h"
#include "export/fragments.h"
#include "pipeline/replay.h"
#include "report/summary.h"
#include "capture/ndjson.h"

struct analyze {
	struct vapro_config config;
	const char *output, *config_file;
	const char *fragments, *state; /* a file of fragments; of one state */
	struct region_option region;
	struct time_option time; /* of a region of all ranks */
	struct outcome_limit fail_on;
	int run;		      /* number of the run in each capture */
	struct source_options source; /* a broker in place of files */
	enum { FORMAT_CAPTURE, FORMAT_NDJSON } format;
	bool strict, summary, all;
	struct option_list files;
};

/* Reads a region. */
static int read_region(void *member, const char *value, char *why, size_t why_size)
{
	return region_option__parse(member, value, why, why_size);
}

/* clang-format off */
static const struct option_row rows[] = {
    OPTION_HEADING_ROW("Input"),
    {.type = OPTION_WORD, OPTION_AT(struct analyze, format), .name = "format", .words = "capture|ndjson",
     .help = "ndjson: the input is NDJSON fragments or bundles, any order across ranks (capture)"},
    {.type = OPTION_SWITCH, OPTION_AT(struct analyze, strict), .name = "strict", .help = "the first bad line ends it"},
    RUN_ROW(struct analyze, run, "of captures that hold"),
    {.type = OPTION_STRING, OPTION_AT(struct analyze, config_file), .name = "config", .letter = 'c', .value = "FILE",
     .early = true, .help = "read the tunables of this configuration file"},
    OPTION_HEADING_ROW("Output"),
    {.type = OPTION_STRING, OPTION_AT(struct analyze, output), .name = "output", .letter = 'o', .value = "FILE|-",
     .help = "NDJSON lines (standard output)"},
    {.type = OPTION_SWITCH, OPTION_AT(struct analyze, summary), .name = "summary",
     .help = "a readable summary on standard error at the end"},
    {.type = OPTION_SWITCH, OPTION_AT(struct analyze, all), .name = "all",
     .help = "every cause and slow region in the summary, not only the worst"},
    FAIL_ON_ROW(struct analyze, fail_on),
    {.type = OPTION_STRING, OPTION_AT(struct analyze, fragments), .name = "fragments", .value = "FILE",
     .help = "also write the fragments of the input, one a line; NDJSON, or CSV where FILE ends in .csv; those of the "
	     "ranks and the time of --region only, or of --since and --until; merged ones are one line with their number"},
    {.type = OPTION_STRING, OPTION_AT(struct analyze, state), .name = "state", .value = "TEXT",
     .help = "of --fragments only those of a state: its state_id in the records, or a part of its call-sites, labels or "
	     "symbols, such as MPI_Allreduce"},
    {.type = OPTION_CUSTOM, OPTION_AT(struct analyze, region), .name = "region", .value = "RANKS@BEGIN..END",
     .read = read_region,
     .help = "also diagnose these ranks (all, or as in 0-3,7) in this time, slow or not: seconds since the begin of the "
	     "input, or as in the records"},
    SINCE_ROW(struct analyze, time, "as --region, of all ranks: " SINCE_HELP),
    UNTIL_ROW(struct analyze, time),
    OPTIONS_HELP_ALL_ROW,
    FROM_ROWS(struct analyze, source),
    JOB_ROW(struct analyze, source.job, "this job, as records name it (the only one there is)"),
    OPTION_GROUP_ROW(VAPRO_GROUP_ANALYSIS),
};
/* clang-format on */

static int read_config(void *base, const struct command *command, int argc, char **argv);
static int analyze__main(int argc, char **argv);

const struct command analyze_command = {
    .name = "analyze",
    .program = "vapro analyze",
    .summary = "replay captures or NDJSON fragments into the lines of a live run",
    .synopsis = "[option]... CAPTURE...\n[option]... --format ndjson FILE|-...\n[option]... --broker URL [--job JOB]",
    .about = "Replays captures of vaprod (several hosts of one job: several files) or fragments as NDJSON, one a line "
	     "(several files are one run), into the lines a live run writes. A capture's own tunables hold unless "
	     "others are given; those of collection are options, too, but change nothing here. With --broker it reads "
	     "what the nodes of a job have published so far, as their captures.",
    .examples =
	"vapro analyze --summary --output run.ndjson run.capture\ta summary; then: vapro view run.ndjson\n"
	"vapro analyze --summary -o /dev/null node1.capture node2.capture\tone job on two hosts\n"
	"vapro analyze --summary -o /dev/null --region 0-3@12..15 run.capture\twhy ranks 0 to 3 were slow then\n"
	"vapro analyze -o /dev/null --fragments rank3.csv --region 3@12..15 --state MPI_Send run.capture\ttimes of "
	"calls\n"
	"vapro analyze --summary -o run.ndjson --broker nats://broker --job slurm:123.0\ta job of many nodes",
    .rows = rows,
    .row_count = sizeof(rows) / sizeof(*rows),
    .tunables = true,
    .config = offsetof(struct analyze, config),
    .operands = offsetof(struct analyze, files),
    .prepare = read_config,
    .main = analyze__main,
};

/* Makes a region of --since and --until. Returns 0 or an exit code. */
static int choose_time(struct analyze *analyze)
{
	char text[256], err[512];

	if (!analyze->time.since && !analyze->time.until)
		return 0;
	if (analyze->region.given)
		return command__fail(&analyze_command, EXIT_USAGE,
				     "--region has its own time: leave out --since and --until");
	if (!region_option__span(&analyze->region, NULL, &analyze->time, text, sizeof(text), err, sizeof(err)))
		return 0;
	return command__fail(&analyze_command, EXIT_USAGE, "%s", err);
}

/* The tunables of a file hold unless the command line has others. */
static int read_config(void *base, const struct command *command, int argc, char **argv)
{
	struct analyze *analyze = base;
	char err[512];

	(void)argc;
	(void)argv;
	if (!analyze->config_file || settings__read(&analyze->config, analyze->config_file, "", &settings_of_vaprod,
						    NULL, err, sizeof(err)) >= 0)
		return 0;
	return command__fail(command, EXIT_USAGE, "%s", err);
}

/*
 * The tunables of the input hold unless those of the file and of the command line are others, which are read once more;
 * its cap of memory is that of one host. Returns 0 or an exit code.
 */
static int take_tunables(struct analyze *analyze, const struct vapro_config *input, uint64_t hosts, int argc,
			 char **argv)
{
	struct analyze again = {.config = *input};
	int code;

	again.config.memory_cap *= hosts;
	code = command__parse(&analyze_command, &again, argc, argv);
	option_list__clear(&again.files);
	analyze->config = again.config;
	return code;
}

/* Returns whether the lines have every event of the rules; false after reporting a missing one. */
static bool check_events(const struct analyze *analyze, const struct ndjson *ndjson)
{
	const struct vapro_config *config = &analyze->config;
	const char *const named[RULES_NAMED] = {ndjson__named(ndjson, 0), ndjson__named(ndjson, 1)};
	struct rules rules;
	char why[256];

	/* the options were checked: rules that cannot be parsed do not occur */
	if (rules__parse(&rules, config->workload, config->bands, why, sizeof(why)))
		return true;
	rules__finalize(&rules, named);
	for (unsigned i = 0; i < rules.event_count; i++) {
		if (rules.slot[i] >= 0)
			continue;
		fprintf(stderr, "vapro analyze: no fragment's workload has '%s'\n", rules.events[i].name);
		return false;
	}
	return true;
}

/* Reports a region that is not in the input, and what --fail-on looks for. Returns an exit code; code: that so far. */
static int judge_outcome(const struct analyze *analyze, const struct pipeline *pipeline)
{
	struct outcome outcome;
	uint64_t selections;
	char text[256];
	int code;

	pipeline__outcome(pipeline, &outcome, &selections);
	if (analyze->region.given && !selections && pipeline__unanswered(pipeline)) {
		fprintf(stderr, "vapro analyze: --region: %s\n", pipeline__unanswered(pipeline));
		return EXIT_FAILED;
	}
	code = outcome__code(&outcome, &analyze->fail_on, text, sizeof(text));
	if (code)
		fprintf(stderr, "vapro analyze: %s\n", text);
	return code;
}

/* Where the input comes from: fragments or blocks; captures where both are NULL. */
struct input {
	struct ndjson *ndjson;
	struct source_blocks *blocks;
	size_t memory_bytes; /* that the merge of blocks may hold */
	uint64_t bad_lines;  /* of the fragments */
};

static int feed_blocks(void *ctx, struct stream_sink *sink, struct merge_watch *watch, char *err, size_t err_size)
{
	struct input *input = ctx;

	return source_blocks__feed(input->blocks, sink, input->memory_bytes, watch, err, err_size);
}

/* Opens the file of fragments in front of the pipeline. Returns false after reporting why it cannot be written. */
static bool open_fragments(const struct analyze *analyze, const struct input *input, const struct capture_info *info,
			   const struct vapro_selection *selection, struct pipeline *pipeline,
			   struct fragments **fragments)
{
	struct fragments_choice choice = {.selection = *selection, .state = analyze->state};

	for (int i = 0; i < RULES_NAMED; i++)
		choice.named[i] = input->ndjson	      ? ndjson__named(input->ndjson, i)
				  : info->named[i][0] ? info->named[i]
						      : NULL;
	*fragments = analyze->fragments ? fragments__open(analyze->fragments, &choice, pipeline__sink(pipeline)) : NULL;
	if (*fragments || !analyze->fragments)
		return true;
	fprintf(stderr, "vapro analyze: cannot write %s: %s\n", analyze->fragments, output_file__reason(errno));
	return false;
}

/* Ends the file of fragments. Returns false after reporting that it could not be written. */
static bool close_fragments(const struct analyze *analyze, struct fragments *fragments)
{
	uint64_t lines = 0;
	int error = fragments__close(fragments, &lines);

	if (error)
		fprintf(stderr, "vapro analyze: %s could not be written: %s\n", analyze->fragments, strerror(-error));
	else if (fragments && !lines)
		fprintf(stderr,
			"vapro analyze: %s is empty: no fragment of the input is of these ranks, this time and "
			"this state\n",
			analyze->fragments);
	return !error;
}

/* Feeds the input and writes what is found. Returns an exit code. */
static int replay(const struct analyze *analyze, struct input *input, const struct capture_info *info,
		  struct line_sink *lines, struct summary *summary)
{
	struct replay replay = {.command = "analyze",
				.files = analyze->files.items,
				.count = analyze->files.count,
				.run = analyze->run,
				.ndjson = input->ndjson,
				.info = info,
				.feed = input->blocks ? feed_blocks : NULL,
				.ctx = input};
	struct pipeline *pipeline = replay__pipeline(&replay, &analyze->config, lines, summary);
	struct vapro_selection selection = region_option__selection(&analyze->region);
	struct fragments *fragments = NULL;
	int status, code = EXIT_OK;
	char err[512] = "";

	if (!pipeline || (analyze->region.given && pipeline__select(pipeline, &selection))) {
		fprintf(stderr, "vapro analyze: out of memory\n");
		pipeline__close(pipeline);
		return EXIT_FAILED;
	}
	if (!open_fragments(analyze, input, info, &selection, pipeline, &fragments)) {
		pipeline__close(pipeline);
		return EXIT_FAILED;
	}
	replay.through = fragments ? fragments__sink(fragments) : NULL;
	status = replay__feed(&replay, analyze->config.window_s, pipeline, err, sizeof(err));
	if (!close_fragments(analyze, fragments))
		code = EXIT_FAILED;
	if (status) {
		fprintf(stderr, "vapro analyze: %s\n", err);
		if (summary)
			summary__add_trouble(summary, err);
	}
	replay__end(&replay, pipeline, lines, status);
	if (!status && !code)
		code = judge_outcome(analyze, pipeline);
	pipeline__close(pipeline);
	return status ? EXIT_FAILED : code;
}

/* Checks what the options need of each other. Returns 0 or an exit code. */
static int check(const struct analyze *analyze)
{
	const char *servers = analyze->source.broker.servers, *why = NULL;
	bool ndjson = analyze->format == FORMAT_NDJSON, one = analyze->run != CAPTURE_LAST_RUN;
	char err[SOURCE_ERR];

	if (broker_rows__check(&analyze->source, err, sizeof(err)))
		why = err;
	else if (!servers && analyze->source.job)
		why = "--job needs --broker URL: the brokers from which the job is read";
	else if (servers && analyze->files.count)
		why = "files or --broker are read, not both";
	else if (servers && (ndjson || one))
		why = "--format and --run are for files: --broker reads all runs of a job";
	else if (!servers && !analyze->files.count)
		why = ndjson ? "a file (or -) is needed; see --help" : "a capture is needed; see --help";
	else if (one && ndjson)
		why = "--run needs captures: fragments belong to no run";
	else if (analyze->state && !analyze->fragments)
		why = "--state needs --fragments FILE: it chooses what is written there";
	return why ? command__fail(&analyze_command, EXIT_USAGE, "%s", why) : 0;
}

/* Opens a job's blocks. Returns 0 or an exit code. */
static int open_blocks(struct analyze *analyze, struct input *input, struct capture_info *info, int argc, char **argv)
{
	char err[SOURCE_ERR];
	int ret = source_blocks__open(&input->blocks, &analyze->source, err, sizeof(err));

	if (ret) {
		fprintf(stderr, "vapro analyze: %s\n", err);
		return broker_rows__code(ret);
	}
	if (source_blocks__info(input->blocks, info, err, sizeof(err)))
		fprintf(stderr, "vapro analyze: %s\n", err);
	return take_tunables(analyze, &info->config, source_blocks__hosts(input->blocks), argc, argv);
}

/* Opens the input, and takes its tunables. Returns 0 or an exit code. */
static int open_input(struct analyze *analyze, struct input *input, struct capture_info *info, int argc, char **argv)
{
	bool ndjson = analyze->format == FORMAT_NDJSON;
	struct vapro_config defaults;
	char err[SOURCE_ERR];
	int code;

	for (size_t i = 0; i < analyze->files.count; i++)
		if (file_kind__expect(analyze->files.items[i], ndjson ? FILE_KIND_FRAGMENTS : FILE_KIND_CAPTURE, err,
				      sizeof(err)))
			return command__fail(&analyze_command, EXIT_FAILED, "%s", err);
	if (analyze->source.broker.servers)
		return open_blocks(analyze, input, info, argc, argv);
	if (!ndjson) {
		if (capture__run_info(analyze->files.items[0], analyze->run, info, err, sizeof(err)))
			return command__fail(&analyze_command, EXIT_FAILED, "%s", err);
		run_option__say("analyze", analyze->files.items[0], info->run, info->runs);
		return take_tunables(analyze, &info->config, analyze->files.count, argc, argv);
	}
	input->ndjson = ndjson__read(analyze->files.items, analyze->files.count, analyze->strict, &input->bad_lines,
				     err, sizeof(err));
	if (!input->ndjson)
		return command__fail(&analyze_command, EXIT_FAILED, "%s", err);
	config__init(&defaults);
	code = take_tunables(analyze, &defaults, ndjson__hosts(input->ndjson), argc, argv);
	return code ? code : check_events(analyze, input->ndjson) ? 0 : EXIT_USAGE;
}

/* Says how many lines were refused. */
static void say_bad_lines(const struct analyze *analyze, uint64_t bad_lines, struct summary *summary)
{
	const char *first = analyze->files.items[0];
	char text[512];

	snprintf(text, sizeof(text), "%llu bad %s of %s%s refused", (unsigned long long)bad_lines,
		 bad_lines == 1 ? "line" : "lines", strcmp(first, "-") == 0 ? "standard input" : first,
		 analyze->files.count > 1 ? " and others were"
		 : bad_lines == 1	  ? " was"
					  : " were");
	command__fail(&analyze_command, 0, "%s", text);
	if (summary)
		summary__add_trouble(summary, text);
}

/* Replays the opened input. Returns an exit code. */
static int analyze_input(const struct analyze *analyze, struct input *input, const struct capture_info *info)
{
	struct line_sink *lines = line_sink__open(analyze->output, false);
	struct summary *summary = NULL;
	int status;

	if (!lines)
		return command__fail(&analyze_command, EXIT_FAILED, "cannot write %s: %s", analyze->output,
				     output_file__reason(errno));
	if (analyze->summary)
		summary = summary__new();
	input->memory_bytes = analyze->config.memory_cap / 2;
	status = replay(analyze, input, info, lines, summary);
	if (line_sink__close(lines))
		status = command__fail(&analyze_command, EXIT_FAILED, "%s could not be written", analyze->output);
	if (input->blocks)
		from_blocks__say("analyze", input->blocks, summary);
	if (input->bad_lines)
		say_bad_lines(analyze, input->bad_lines, summary);
	if (summary)
		summary__print(summary, stderr,
			       &(struct summary_options){.width = terminal__width(STDERR_FILENO),
							 .all = analyze->all,
							 .replayed = true,
							 .more = "--all lists them"});
	summary__free(summary);
	return status;
}

static int analyze__main(int argc, char **argv)
{
	struct analyze analyze = {.output = "-", .run = CAPTURE_LAST_RUN, .source.broker.name = "vapro analyze"};
	struct capture_info info = {.by_instructions = false};
	struct input input = {.ndjson = NULL};
	int code;

	config__init(&analyze.config);
	code = command__parse(&analyze_command, &analyze, argc, argv);
	if (!code)
		code = choose_time(&analyze);
	if (!code)
		code = check(&analyze);
	if (!code)
		code = open_input(&analyze, &input, &info, argc, argv);
	if (!code)
		code = analyze_input(&analyze, &input, &info);
	ndjson__free(input.ndjson);
	source_blocks__close(input.blocks);
	option_list__clear(&analyze.files);
	return code == COMMAND_DONE ? EXIT_OK : code;
}
