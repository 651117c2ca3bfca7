// SPDX-License-Identifier: GPL-2.0-or-later
/* `vapro report`: a run as a page, for people. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/exit_codes.h"
#include "capture/output_file.h"
#include "cli/commands.h"
#include "daemon/daemon.h"
#include "page/page.h"
#include "page/report_input.h"
#include "report/run_option.h"

#define PERMISSIONS 0640 /* as all output */

enum { ROW_HTML = 1, ROW_RUN };

static const struct option_row rows[] = {
    {"html", "OUT|-", "the page's file; - is standard output (that of FILE with .html in place of its ending)",
     ROW_HTML, 0},
    {"run", "N", "of a file that holds several runs: 1 = the first, -1 = the last (-1)", ROW_RUN, 0},
    OPTIONS_HELP_ROW,
};

static int report_command__main(int argc, char **argv);

const struct command report_command = {
    .name = "report",
    .program = "vapro report",
    .summary = "write a run as one HTML page: verdict, causes, heat maps, regions",
    .synopsis = "[--html OUT|-] [--run N] FILE...",
    .about = "Writes a page that a browser opens without a network: the verdict, the causes of lost time, heat maps of "
	     "all ranks over time, the slow regions with when, where and why, and what could not be evaluated. FILE is "
	     "NDJSON output of vaprod, vapro run or vapro analyze (- is standard input), a capture, or fragments as "
	     "NDJSON; several files are the hosts of one run. A file that is no report is not overwritten.",
    .examples = "vapro report run.ndjson\twrites run.html\n"
		"vapro report --html job.html node1.capture node2.capture\tone job on two hosts",
    .rows = rows,
    .row_count = sizeof(rows) / sizeof(*rows),
    .main = report_command__main,
};

struct choice {
	const char *html;
	int run;
	const char **files;
	size_t file_count;
};

/* Returns whether a file may be replaced: it is new, empty, no regular file, or what the same command wrote. */
static bool may_replace(const char *path, const char *begin)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC);
	char bytes[256];
	struct stat status;
	ssize_t got;
	bool may;

	if (fd < 0)
		return errno == ENOENT || errno == ENXIO ||
		       errno == ELOOP; /* the last two are explained when it is opened */
	may = !fstat(fd, &status) && !S_ISREG(status.st_mode);
	got = may ? 0 : read(fd, bytes, sizeof(bytes));
	close(fd);
	return may || !got || (got >= (ssize_t)strlen(begin) && !memcmp(bytes, begin, strlen(begin)));
}

/*
 * Opens an output; "-" is standard output. begin: how what this command writes there begins. Returns NULL after
 * reporting why it is not written.
 */
static FILE *open_output(const char *path, const char *begin)
{
	struct stat status;
	FILE *file;
	int fd;

	if (!strcmp(path, "-"))
		return stdout;
	if (!may_replace(path, begin)) {
		fprintf(stderr, "vapro report: %s exists and is no report: it is left as it is; choose another name\n",
			path);
		return NULL;
	}
	fd = output_file__open(path, OUTPUT_FILE_REPLACE, PERMISSIONS, &status);
	/* a reader of a FIFO is waited for: nothing else depends on this program */
	if (fd >= 0)
		fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	file = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (!file)
		fprintf(stderr, "vapro report: cannot write %s: %s\n", path, output_file__reason(errno));
	return file;
}

/* Closes an output after writing, whose result is ret. Returns an exit code. */
static int close_output(FILE *file, const char *path, int ret)
{
	bool standard = file == stdout;

	errno = 0;
	if ((standard ? fflush(file) : fclose(file)) && !ret)
		ret = errno ? -errno : -EIO;
	if (ret) {
		fprintf(stderr, "vapro report: %s could not be written: %s\n", standard ? "standard output" : path,
			strerror(-ret));
		return EXIT_FAILED;
	}
	if (!standard)
		fprintf(stderr, "vapro report: wrote %s\n", path);
	return EXIT_OK;
}

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
	FILE *file = open_output(path, PAGE_BEGIN);

	return file ? close_output(file, path, page__write(report, input, VAPRO_VERSION, file)) : EXIT_FAILED;
}

static int report(const struct choice *choice)
{
	struct report_input input = {.files = choice->files, .count = choice->file_count, .run = choice->run};
	struct run_report report;
	char err[512], *name = choice->html ? NULL : default_name(choice->files[0]);
	int code = EXIT_FAILED;

	if (report_input__read(&input, &report, err, sizeof(err)))
		fprintf(stderr, "vapro report: %s\n", err);
	else if (choice->html || name)
		code = write_html(&report, &input, choice->html ? choice->html : name);
	else
		fprintf(stderr, "vapro report: out of memory\n");
	if (!code && input.bad_lines) {
		fprintf(stderr, "vapro report: %llu bad lines were refused\n", (unsigned long long)input.bad_lines);
		code = EXIT_FAILED;
	}
	run_report__free(&report);
	free(name);
	return code || input.cut ? EXIT_FAILED : EXIT_OK;
}

/* Applies one option. Returns 0, an exit code, or OPTIONS_HELP. */
static int parse(struct choice *choice, int argc, char **argv)
{
	struct options options = command__options(&report_command, argc, argv);
	int id;

	while ((id = options__next(&options)) != OPTIONS_END) {
		switch (id) {
		case OPTIONS_HELP:
			command__help(&report_command, options.value, stdout);
			return OPTIONS_HELP;
		case OPTIONS_ERROR:
			return EXIT_USAGE;
		case OPTIONS_OPERAND:
			choice->files[choice->file_count++] = options.value;
			break;
		case ROW_HTML:
			choice->html = options.value;
			break;
		case ROW_RUN:
			if (run_option__parse(options.value, &choice->run))
				break;
			fprintf(stderr, "vapro report: --run: '%s' is invalid; expected " RUN_OPTION_RANGE "\n",
				options.value);
			return EXIT_USAGE;
		}
	}
	if (!choice->file_count) {
		fprintf(stderr,
			"vapro report: a file is needed: NDJSON output of vaprod (or -), or a capture; see --help\n");
		return EXIT_USAGE;
	}
	if (!choice->html && !strcmp(choice->files[0], "-")) {
		fprintf(stderr, "vapro report: --html is needed where standard input is read: it says what to write\n");
		return EXIT_USAGE;
	}
	return 0;
}

static int report_command__main(int argc, char **argv)
{
	struct choice choice = {.run = RUN_OPTION_LAST, .files = calloc((size_t)argc, sizeof(*choice.files))};
	int code = choice.files ? parse(&choice, argc, argv) : EXIT_FAILED;

	if (!code)
		code = report(&choice);
	free(choice.files);
	return code == OPTIONS_HELP ? EXIT_OK : code;
}
