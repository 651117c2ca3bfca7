// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/shown.h"

#include <stdio.h>

#include "base/exit_codes.h"
#include "cli/shared_rows.h"
#include "page/report_input.h"
#include "report/pager.h"

/* Reads the input and has it printed. Returns an exit code. */
static int show(const char *command, const void *choice, const struct shown *shown,
		int (*print)(const void *choice, const struct run_report *report, FILE *out))
{
	struct source_results results = {.file = NULL};
	const char *name;
	struct report_input input = {
	    .command = command, .files = shown->files.items, .count = shown->files.count, .run = shown->run};
	struct run_report report;
	char err[SOURCE_ERR];
	int code = EXIT_FAILED, ret;
	FILE *out;

	if (shown->source.broker.servers) {
		struct source_options source = shown->source;

		source.job = shown->job;
		ret = source__results(&source, &results, err, sizeof(err));
		if (ret) {
			fprintf(stderr, "vapro %s: %s\n", command, err);
			return broker_rows__code(ret);
		}
		name = results.job.job;
		input.files = &name;
		input.count = 1;
		input.live = results.file;
		input.bad_lines = results.bad;
	}
	if (report_input__read(&input, &report, err, sizeof(err))) {
		fprintf(stderr, "vapro %s: %s\n", command, err);
	} else {
		out = pager__open(!shown->no_pager);
		code = print(choice, &report, out);
		pager__close(out);
	}
	if (!code && input.bad_lines) {
		fprintf(stderr, "vapro %s: %llu bad line%s refused\n", command, (unsigned long long)input.bad_lines,
			input.bad_lines == 1 ? " was" : "s were");
		code = EXIT_FAILED;
	}
	run_report__free(&report);
	if (results.file)
		fclose(results.file);
	return code || input.cut ? EXIT_FAILED : EXIT_OK;
}

int shown__main(const struct command *command, void *choice, struct shown *shown, int argc, char **argv,
		int (*print)(const void *choice, const struct run_report *report, FILE *out))
{
	char err[SOURCE_ERR];
	int code;

	shown->run = RUN_OPTION_LAST;
	shown->source.broker.name = command->program;
	code = command__parse(command, choice, argc, argv);
	if (!code && broker_rows__check(&shown->source, err, sizeof(err)))
		code = command__fail(command, EXIT_USAGE, "%s", err);
	if (!code && !shown->files.count == !shown->source.broker.servers)
		code = command__fail(command, EXIT_USAGE, "files or --broker are needed, not both; see --help");
	if (!code)
		code = show(command->name, choice, shown, print);
	option_list__clear(&shown->files);
	return code == COMMAND_DONE ? EXIT_OK : code;
}
