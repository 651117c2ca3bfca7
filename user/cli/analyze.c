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
#include "cli/command_line.h"
#include "cli/from_blocks.h"
#include "cli/settings.h"
#include "config/rules.h"
#include "report/replay.h"
#include "cli/options.h"
#include "report/run_option.h"
#include "query/region_option.h"
#include "report/summary.h"

struct analyze {
	struct vapro_config config;
	const char *output;
	struct region_option region;
	struct time_option time; /* of a region of all ranks */
	bool timed;		 /* the region is of that time */
	struct outcome_limit fail_on;
	int run;		      /* number of the run in each capture */
	struct source_options source; /* a broker in place of files */
	bool ndjson, strict, summary, all, score;
	const char **files;
	int file_count;
};

enum {
	ROW_FORMAT = 1,
	ROW_STRICT,
	ROW_OUTPUT,
	ROW_SUMMARY,
	ROW_SCORE,
	ROW_REGION,
	ROW_SINCE,
	ROW_UNTIL,
	ROW_RUN,
	ROW_CONFIG,
	ROW_ALL,
	ROW_FAIL_ON,
	ROW_JOB,
};

static const struct option_row rows[] = {
    OPTIONS_GROUP("Input"),
    {"format", "capture|ndjson", "ndjson: the input is NDJSON fragments or bundles, any order across ranks (capture)",
     ROW_FORMAT, 0},
    {"strict", NULL, "the first bad line ends it", ROW_STRICT, 0},
    {"run", "N", "of captures that hold several runs: 1 = the first, -1 = the last (-1)", ROW_RUN, 0},
    {"config", "FILE", "read the tunables of this configuration file", ROW_CONFIG, 'c'},
    OPTIONS_GROUP("Output"),
    {"output", "FILE|-", "NDJSON lines (standard output)", ROW_OUTPUT, 'o'},
    {"summary", NULL, "a readable summary on standard error at the end", ROW_SUMMARY, 0},
    {"all", NULL, "every cause and slow region in the summary, not only the worst", ROW_ALL, 0},
    {"fail-on", OUTCOME_SEVERITIES, OUTCOME_HELP, ROW_FAIL_ON, 0},
    {"score", NULL,
     "NDJSON that carries `truth`: how well the clusters agree with it (homogeneity, completeness, V-measure), one "
     "line on standard error",
     ROW_SCORE, 0},
    {"region", "RANKS@BEGIN..END",
     "also diagnose these ranks (all, or as in 0-3,7) in this time, slow or not: seconds since the begin of the input, "
     "or as in the records",
     ROW_REGION, 0},
    {"since", "TIME", "as --region, of all ranks: " SINCE_HELP, ROW_SINCE, 'S'},
    {"until", "TIME", UNTIL_HELP, ROW_UNTIL, 'U'},
    OPTIONS_HELP_ALL_ROW,
    FROM_ROWS,
    {"job", "JOB", "this job, as records name it (the only one there is)", ROW_JOB, 'j'},
    OPTIONS_SECTION(VAPRO_GROUP_ANALYSIS),
    OPTIONS_SECTION(VAPRO_GROUP_ANALYSIS_EXPERT),
};

static int analyze__main(int argc, char **argv);

const struct command analyze_command = {
    .name = "analyze",
    .program = "vapro analyze",
    .summary = "replay captures or NDJSON fragments into the lines of a live run",
    .synopsis = "[option]... CAPTURE...\n[option]... --format ndjson FILE|-...\n[option]... --from URL [--job JOB]",
    .about = "Replays captures of vaprod (several hosts of one job: several files) or fragments as NDJSON, one a line "
	     "(several files are one run), into the lines a live run writes. A capture's own tunables hold unless "
	     "others are given; those of collection are options, too, but change nothing here. With --from it reads "
	     "what the nodes of a job have published so far, as their captures.",
    .examples =
	"vapro analyze --summary --output run.ndjson run.capture\ta summary; then: vapro view run.ndjson\n"
	"vapro analyze --summary -o /dev/null node1.capture node2.capture\tone job on two hosts\n"
	"vapro analyze --summary -o /dev/null --region 0-3@12..15 run.capture\twhy ranks 0 to 3 were slow then\n"
	"vapro analyze --summary -o run.ndjson --from nats://broker --job slurm:123.0\ta job of many nodes",
    .rows = rows,
    .row_count = sizeof(rows) / sizeof(*rows),
    .tunables = true,
    .main = analyze__main,
};

/* Applies one option. Returns 0, or -EINVAL with a sentence in err. */
static int set(struct analyze *analyze, int id, const struct options *options, char *err, size_t size)
{
	const char *value = options->value;

	if (from_rows__set(&analyze->source, id, value))
		return 0;
	switch (id) {
	case ROW_JOB:
		analyze->source.job = value;
		return 0;
	case ROW_STRICT:
		analyze->strict = true;
		return 0;
	case ROW_SUMMARY:
		analyze->summary = true;
		return 0;
	case ROW_ALL:
		analyze->all = true;
		return 0;
	case ROW_SCORE:
		analyze->score = true;
		return 0;
	case ROW_OUTPUT:
		analyze->output = value;
		return 0;
	case ROW_FORMAT:
		analyze->ndjson = !strcmp(value, "ndjson");
		if (analyze->ndjson || !strcmp(value, "capture"))
			return 0;
		snprintf(err, size, "--format: '%s' is neither capture nor ndjson", value);
		return -EINVAL;
	case ROW_FAIL_ON:
		if (!outcome__parse(value, &analyze->fail_on))
			return 0;
		snprintf(err, size, "--fail-on: '%s' is unknown; expected " OUTCOME_EXPECTED, value);
		return -EINVAL;
	case ROW_RUN:
		if (run_option__parse(value, &analyze->run))
			return 0;
		snprintf(err, size, "--run: '%s' is invalid; expected " RUN_OPTION_RANGE, value);
		return -EINVAL;
	case ROW_REGION:
		return region_option__parse(&analyze->region, value, err, size);
	case ROW_SINCE:
		analyze->time.since = value;
		return 0;
	case ROW_UNTIL:
		analyze->time.until = value;
		return 0;
	case ROW_CONFIG:
		return settings__read(&analyze->config, value, "", &settings_of_vaprod, NULL, err, size) < 0 ? -EINVAL
													     : 0;
	default:
		return config__set(&analyze->config, options->name, value, err, size);
	}
}

/* Makes a region of --since and --until. Returns 0 or an exit code. */
static int choose_time(struct analyze *analyze)
{
	char text[256], err[512];

	if (!analyze->time.since && !analyze->time.until)
		return 0;
	if (analyze->region.given && !analyze->timed) {
		fprintf(stderr, "vapro analyze: --region has its own time: leave out --since and --until\n");
		return EXIT_USAGE;
	}
	analyze->timed = true;
	if (!region_option__span(&analyze->region, NULL, &analyze->time, text, sizeof(text), err, sizeof(err)))
		return 0;
	fprintf(stderr, "vapro analyze: %s\n", err);
	return EXIT_USAGE;
}

/* Returns 0, an exit code or COMMAND_LINE_DONE. Options are read twice: the capture's tunables come between. */
static int parse(struct analyze *analyze, int argc, char **argv)
{
	struct options options = command__options(&analyze_command, argc, argv);
	char err[512];
	int id;

	analyze->file_count = 0;
	while ((id = options__next(&options)) != OPTIONS_END) {
		if (id == OPTIONS_HELP) {
			command__help(&analyze_command, options.value, stdout);
			return COMMAND_LINE_DONE;
		}
		if (id == OPTIONS_ERROR)
			return EXIT_USAGE;
		if (id == OPTIONS_OPERAND) {
			analyze->files[analyze->file_count++] = options.value;
		} else if (set(analyze, id, &options, err, sizeof(err))) {
			fprintf(stderr, "vapro analyze: %s\n", err);
			return EXIT_USAGE;
		}
	}
	return choose_time(analyze);
}

/* Prints how well the clusters agree with the truth. Returns an exit code. */
static int print_score(const struct stream_sink *pipeline)
{
	struct vapro_score score;
	int status = pipeline__score(pipeline, &score);

	if (status) {
		fprintf(stderr, "vapro analyze: no score: %s\n",
			status == -ENODATA ? "no fragment carries a `truth`" : strerror(-status));
		return EXIT_FAILED;
	}
	fprintf(
	    stderr,
	    "score: homogeneity %.6f, completeness %.6f, V-measure %.6f (%llu fragments, %llu truths, %llu clusters, "
	    "%s",
	    score.homogeneity, score.completeness, score.v_measure, (unsigned long long)score.fragments,
	    (unsigned long long)score.truths, (unsigned long long)score.clusters,
	    score.approximate ? "approximate in " : "exact");
	if (score.approximate)
		fprintf(stderr, "%u state%s", score.approximate, score.approximate > 1 ? "s" : "");
	if (score.unclustered)
		fprintf(stderr, "; %llu not measured", (unsigned long long)score.unclustered);
	fprintf(stderr, ")\n");
	return EXIT_OK;
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
static int judge_outcome(const struct analyze *analyze, const struct stream_sink *pipeline, int code)
{
	struct outcome outcome;
	uint64_t selections;
	char text[256];
	int found;

	pipeline__outcome(pipeline, &outcome, &selections);
	if (analyze->region.given && !selections && pipeline__unanswered(pipeline)) {
		fprintf(stderr, "vapro analyze: --region: %s\n", pipeline__unanswered(pipeline));
		return EXIT_FAILED;
	}
	found = outcome__code(&outcome, &analyze->fail_on, text, sizeof(text));
	if (found)
		fprintf(stderr, "vapro analyze: %s\n", text);
	return code ? code : found;
}

/* Where the input comes from: fragments or blocks; captures where both are NULL. */
struct input {
	struct ndjson *ndjson;
	struct source_blocks *blocks;
	size_t memory_bytes; /* that the merge of blocks may hold */
};

static int feed_blocks(void *ctx, struct stream_sink *sink, struct merge_watch *watch, char *err, size_t err_size)
{
	struct input *input = ctx;

	return source_blocks__feed(input->blocks, sink, input->memory_bytes, watch, err, err_size);
}

/* Feeds the input and writes what is found. Returns an exit code. */
static int replay(const struct analyze *analyze, struct input *input, const struct capture_info *info,
		  struct line_sink *lines, struct summary *summary)
{
	const struct replay replay = {.command = "analyze",
				      .files = analyze->files,
				      .count = (size_t)analyze->file_count,
				      .run = analyze->run,
				      .ndjson = input->ndjson,
				      .info = info,
				      .feed = input->blocks ? feed_blocks : NULL,
				      .ctx = input};
	struct stream_sink *pipeline = replay__pipeline(&replay, &analyze->config, lines, summary);
	struct vapro_selection selection = region_option__selection(&analyze->region);
	int status, score = EXIT_OK;
	char err[512] = "";

	if (!pipeline || (analyze->region.given && pipeline__select(pipeline, &selection))) {
		fprintf(stderr, "vapro analyze: out of memory\n");
		stream__close(pipeline);
		return EXIT_FAILED;
	}
	status = replay__feed(&replay, analyze->config.window_s, pipeline, err, sizeof(err));
	if (status) {
		fprintf(stderr, "vapro analyze: %s\n", err);
		if (summary)
			summary__add_trouble(summary, err);
	} else if (analyze->score)
		score = print_score(pipeline);
	replay__end(&replay, pipeline, lines, status);
	if (!status)
		score = judge_outcome(analyze, pipeline, score);
	stream__close(pipeline);
	return status ? EXIT_FAILED : score;
}

/* The cap of a run is that of one host times the hosts, unless the options say another. Returns 0 or an exit code. */
static int allow_memory(struct analyze *analyze, uint64_t hosts, int argc, char **argv)
{
	analyze->config.memory_cap *= hosts;
	return parse(analyze, argc, argv);
}

/* Checks what --from needs of the other options. Returns 0 or an exit code. */
static int check_from(const struct analyze *analyze)
{
	char err[SOURCE_ERR];

	if (from_rows__check(&analyze->source, err, sizeof(err)))
		fprintf(stderr, "vapro analyze: %s\n", err);
	else if (!analyze->source.broker.servers && analyze->source.job)
		fprintf(stderr, "vapro analyze: --job needs --from URL: the brokers from which the job is read\n");
	else if (analyze->source.broker.servers && analyze->file_count)
		fprintf(stderr, "vapro analyze: files or --from are read, not both\n");
	else if (analyze->source.broker.servers && (analyze->ndjson || analyze->run != CAPTURE_LAST_RUN))
		fprintf(stderr, "vapro analyze: --format and --run are for files: --from reads all runs of a job\n");
	else
		return 0;
	return EXIT_USAGE;
}

/* Opens a job's blocks. Returns 0 or an exit code. */
static int open_blocks(struct analyze *analyze, struct input *input, struct capture_info *info, int argc, char **argv)
{
	char err[SOURCE_ERR];
	int ret = source_blocks__open(&input->blocks, &analyze->source, err, sizeof(err));

	if (ret) {
		fprintf(stderr, "vapro analyze: %s\n", err);
		return from_rows__code(ret);
	}
	if (source_blocks__info(input->blocks, info, err, sizeof(err)))
		fprintf(stderr, "vapro analyze: %s\n", err);
	analyze->config = info->config;
	return allow_memory(analyze, source_blocks__hosts(input->blocks), argc, argv);
}

static int analyze__main(int argc, char **argv)
{
	struct analyze analyze = {.output = "-",
				  .run = CAPTURE_LAST_RUN,
				  .source.broker.name = "vapro analyze",
				  .files = calloc((size_t)argc, sizeof(char *))};
	struct capture_info info = {.by_instructions = false};
	struct summary *summary = NULL;
	struct line_sink *lines = NULL;
	struct input input = {.ndjson = NULL};
	uint64_t bad_lines = 0;
	char err[SOURCE_ERR] = "";
	int status;

	config__init(&analyze.config);
	status = analyze.files ? parse(&analyze, argc, argv) : EXIT_FAILED;
	if (status == COMMAND_LINE_DONE) {
		status = EXIT_OK;
		goto out;
	}
	if (!status)
		status = check_from(&analyze);
	if (!status && !analyze.file_count && !analyze.source.broker.servers) {
		fprintf(stderr, "vapro analyze: %s is needed; see --help\n",
			analyze.ndjson ? "a file (or -)" : "a capture");
		status = EXIT_USAGE;
	}
	if (!status && analyze.score && !analyze.ndjson) {
		fprintf(stderr, "vapro analyze: --score needs --format ndjson: captures hold no truth\n");
		status = EXIT_USAGE;
	}
	if (!status && analyze.run != CAPTURE_LAST_RUN && analyze.ndjson) {
		fprintf(stderr, "vapro analyze: --run needs captures: fragments belong to no run\n");
		status = EXIT_USAGE;
	}
	if (status)
		goto out;
	status = EXIT_FAILED;
	for (int i = 0; i < analyze.file_count; i++) {
		if (file_kind__expect(analyze.files[i], analyze.ndjson ? FILE_KIND_FRAGMENTS : FILE_KIND_CAPTURE, err,
				      sizeof(err))) {
			fprintf(stderr, "vapro analyze: %s\n", err);
			goto out;
		}
	}
	if (analyze.source.broker.servers) {
		status = open_blocks(&analyze, &input, &info, argc, argv);
		if (status)
			goto out;
	} else if (analyze.ndjson) {
		input.ndjson = ndjson__read(analyze.files, (size_t)analyze.file_count, analyze.strict, &bad_lines, err,
					    sizeof(err));
		if (!input.ndjson) {
			fprintf(stderr, "vapro analyze: %s\n", err);
			goto out;
		}
		config__init(&analyze.config);
		if (allow_memory(&analyze, ndjson__hosts(input.ndjson), argc, argv))
			goto out;
		if (!check_events(&analyze, input.ndjson)) {
			status = EXIT_USAGE;
			goto out;
		}
	} else {
		if (capture__run_info(analyze.files[0], analyze.run, &info, err, sizeof(err))) {
			fprintf(stderr, "vapro analyze: %s\n", err);
			goto out;
		}
		run_option__say("analyze", analyze.files[0], info.run, info.runs);
		analyze.config = info.config;
		if (allow_memory(&analyze, (uint64_t)analyze.file_count, argc, argv))
			goto out;
	}
	lines = line_sink__open(analyze.output, false);
	if (!lines) {
		fprintf(stderr, "vapro analyze: cannot write %s: %s\n", analyze.output, output_file__reason(errno));
		goto out;
	}
	if (analyze.summary)
		summary = summary__new();
	input.memory_bytes = analyze.config.memory_cap / 2;
	status = replay(&analyze, &input, &info, lines, summary);
	if (line_sink__close(lines)) {
		fprintf(stderr, "vapro analyze: %s could not be written\n", analyze.output);
		status = EXIT_FAILED;
	}
	if (input.blocks)
		from_blocks__say("analyze", input.blocks, summary);
	if (bad_lines) {
		snprintf(err, sizeof(err), "%llu bad %s of %s%s refused", (unsigned long long)bad_lines,
			 bad_lines == 1 ? "line" : "lines",
			 strcmp(analyze.files[0], "-") == 0 ? "standard input" : analyze.files[0],
			 analyze.file_count > 1 ? " and others were"
			 : bad_lines == 1	? " was"
						: " were");
		fprintf(stderr, "vapro analyze: %s\n", err);
		if (summary)
			summary__add_trouble(summary, err);
	}
	if (summary)
		summary__print(summary, stderr,
			       &(struct summary_options){.width = terminal__width(STDERR_FILENO),
							 .all = analyze.all,
							 .replayed = true,
							 .more = "--all lists them"});
out:
	summary__free(summary);
	ndjson__free(input.ndjson);
	source_blocks__close(input.blocks);
	free(analyze.files);
	return status;
}
