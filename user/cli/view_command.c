/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "report/run_option.h"
#include "report/view.h"

enum { OPT_COLOR = 256, OPT_WIDTH, OPT_ROWS, OPT_CLASS, OPT_RUN };

static const struct option options_table[] = {
    {"color", required_argument, NULL, OPT_COLOR},
    {"colour", required_argument, NULL, OPT_COLOR},
    {"width", required_argument, NULL, OPT_WIDTH},
    {"rows", required_argument, NULL, OPT_ROWS},
    {"class", required_argument, NULL, OPT_CLASS},
    {"run", required_argument, NULL, OPT_RUN},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static void usage(FILE *out)
{
	fputs("Usage: vapro view [option]... FILE\n"
	      "\n"
	      "Draws the heat maps of a run (rows = ranks, columns = time) and its slow regions with their\n"
	      "causes. FILE is NDJSON output of vaprod, vapro run or vapro analyze; - is standard input.\n"
	      "\n"
	      "  --color auto|always|never  colours; auto = on a terminal, unless NO_COLOR is set (auto)\n"
	      "  --width COLUMNS            how wide (that of the terminal)\n"
	      "  --rows COUNT               most rows of a map; more ranks share rows (48)\n"
	      "  --class CLASS              only computation, communication or io\n"
	      "  --run N                    of a file that holds several runs: 1 = the first, -1 = the last (-1)\n",
	      out);
}

static bool parse_count(const char *text, unsigned *count)
{
	char *end;
	unsigned long number;

	errno = 0;
	number = strtoul(text, &end, 10);
	if (errno || end == text || *end || *text == '-' || !number || number > 1000000)
		return false;
	*count = (unsigned)number;
	return true;
}

int view__main(int argc, char **argv)
{
	struct view_options options = {0};
	uint64_t bad_lines = 0;
	char err[512];
	int option;

	optind = 0; /* another command may have used getopt before */
	while ((option = getopt_long(argc, argv, "h", options_table, NULL)) != -1) {
		bool good = true;

		switch (option) {
		case OPT_COLOR:
			good = view__parse_color(optarg, &options.color);
			break;
		case OPT_WIDTH:
			good = parse_count(optarg, &options.width);
			break;
		case OPT_ROWS:
			good = parse_count(optarg, &options.rows);
			break;
		case OPT_CLASS:
			options.class = optarg;
			good =
			    !strcmp(optarg, "computation") || !strcmp(optarg, "communication") || !strcmp(optarg, "io");
			break;
		case OPT_RUN:
			good = run_option__parse(optarg, &options.run);
			break;
		case 'h':
			usage(stdout);
			return 0;
		default:
			return 2; /* getopt has said what is wrong */
		}
		if (!good) {
			fprintf(stderr, "vapro view: invalid value '%s' for this option; --help lists them\n", optarg);
			return 2;
		}
	}
	if (optind + 1 != argc) {
		usage(stderr);
		return 2;
	}
	if (view__file(argv[optind], &options, stdout, &bad_lines, err, sizeof(err))) {
		fprintf(stderr, "vapro view: %s\n", err);
		return 1;
	}
	return bad_lines ? 1 : 0;
}
