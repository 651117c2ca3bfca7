// SPDX-License-Identifier: GPL-2.0-or-later
#include "page/report_input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "capture/capture.h"
#include "pipeline/replay.h"
#include "report/run_option.h"
#include "capture/ndjson.h"

static const char *command_of(const struct report_input *input)
{
	return input->command ? input->command : "report";
}

/* Shows how far long reading is, once a second. */
static void show_progress(uint64_t count, const char *what)
{
	static uint64_t next_ns;
	uint64_t now = mono_now();

	if (!next_ns)
		next_ns = now + 1000000000;
	if (now < next_ns)
		return;
	next_ns = now + 1000000000;
	fprintf(stderr, "\rvapro report: %llu %s \033[K", (unsigned long long)count, what);
}

/* Finds out what the files are: all of one kind. */
static int find_kind(struct report_input *input, char *err, size_t err_size)
{
	static const char *const names[] = {[FILE_KIND_CAPTURE] = "a capture",
					    [FILE_KIND_RECORDS] = "output of vaprod",
					    [FILE_KIND_FRAGMENTS] = "a file of fragments"};

	for (size_t i = 0; i < input->count; i++) {
		const char *path = input->files[i];
		struct stat status;
		/* what cannot be looked at before it is read is taken for records */
		enum file_kind kind = strcmp(path, "-") ? file_kind__of(path) : FILE_KIND_RECORDS;

		if (!stat(path, &status) && S_ISSOCK(status.st_mode)) {
			snprintf(err, err_size,
				 "%s is a socket: name it by --socket, and no file, for a report of what that vaprod "
				 "retains",
				 path);
			return -EINVAL;
		}
		if (access(path, R_OK) && strcmp(path, "-")) {
			int error = errno;

			snprintf(err, err_size, "%s: %s", path, strerror(error));
			return -error;
		}
		if (kind == FILE_KIND_UNKNOWN)
			kind = FILE_KIND_RECORDS;
		if (kind != FILE_KIND_CAPTURE && kind != FILE_KIND_FRAGMENTS &&
		    file_kind__expect(path, FILE_KIND_RECORDS, err, err_size))
			return -EINVAL;
		if (!i)
			input->kind = kind;
		if (kind == input->kind)
			continue;
		snprintf(err, err_size, "%s is %s and %s is %s: the files of a report are of one kind", input->files[0],
			 names[input->kind], path, names[kind]);
		return -EINVAL;
	}
	return 0;
}

static int read_live(struct report_input *input, struct run_report *report, char *err, size_t err_size)
{
	int ret = run_report__add_file(report, input->live, RUN_OPTION_LAST, input->files[0]);

	input->kind = FILE_KIND_RECORDS;
	input->run_read = input->runs = 1;
	if (ret)
		snprintf(err, err_size, "%s: %s", input->files[0], strerror(-ret));
	return ret;
}

static int read_records(struct report_input *input, struct run_report *report, char *err, size_t err_size)
{
	for (size_t i = 0; i < input->count; i++) {
		bool standard = !strcmp(input->files[i], "-");
		const char *name = standard ? "standard input" : input->files[i];
		FILE *file = standard ? stdin : fopen(input->files[i], "re");
		int ret = file ? run_report__add_file(report, file, input->run, name) : -errno;

		if (file && !standard)
			fclose(file);
		if (ret == -ENOENT && report->view.runs)
			snprintf(err, err_size, "%s: it has no run %d, but %zu", name, input->run, report->view.runs);
		else if (ret)
			snprintf(err, err_size, "%s: %s", name, strerror(-ret));
		if (ret)
			return ret;
		if (!i)
			run_option__say(command_of(input), name, report->view.run, report->view.runs);
	}
	input->run_read = report->view.run;
	input->runs = report->view.runs;
	return 0;
}

/* Replays the input into lines. Returns 0, 1 where it was cut short, or a negative errno with a sentence in err. */
static int replay(struct report_input *input, struct line_sink *lines, struct state_totals *states, char *err,
		  size_t err_size)
{
	struct capture_info info = {.by_instructions = false};
	struct replay replay = {.command = command_of(input),
				.files = input->files,
				.count = input->count,
				.run = input->run,
				.info = &info};
	struct pipeline *pipeline;
	int ret;

	if (input->kind == FILE_KIND_CAPTURE) {
		ret = capture__run_info(input->files[0], input->run, &info, err, err_size);
		if (ret)
			return ret;
		run_option__say(command_of(input), input->files[0], info.run, info.runs);
		info.config.memory_cap *= input->count;
	} else {
		replay.ndjson = ndjson__read(input->files, input->count, false, &input->bad_lines, err, err_size);
		if (!replay.ndjson)
			return -EINVAL;
		config__init(&info.config);
		info.config.memory_cap *= ndjson__hosts(replay.ndjson);
		info.run = info.runs = 1;
	}
	input->run_read = info.run;
	input->runs = info.runs;
	pipeline = replay__pipeline(&replay, &info.config, lines, NULL);
	if (pipeline) {
		pipeline__count_states(pipeline, states);
		ret = replay__feed(&replay, info.config.window_s, pipeline, err, err_size);
		replay__end(&replay, pipeline, lines, ret);
	}
	if (!pipeline || pipeline__close(pipeline)) {
		snprintf(err, err_size, "out of memory");
		ret = -ENOMEM;
	}
	ndjson__free(replay.ndjson);
	return ret;
}

/* Replays captures or fragments into an unnamed file of records, and reads that. */
static int read_replayed(struct report_input *input, struct run_report *report, char *err, size_t err_size)
{
	FILE *file = tmpfile();
	struct line_sink *lines = NULL;
	char path[32];
	int ret;

	if (file) {
		snprintf(path, sizeof(path), "/dev/fd/%d", fileno(file));
		lines = line_sink__open(path, false);
	}
	if (!lines) {
		ret = -errno;
		snprintf(err, err_size, "no room for the records of the replay (TMPDIR or /tmp): %s", strerror(-ret));
		if (file)
			fclose(file);
		return ret;
	}
	report->states = state_totals__new();
	if (report->states) {
		ret = replay(input, lines, report->states, err, err_size);
	} else {
		snprintf(err, err_size, "out of memory");
		ret = -ENOMEM;
	}
	if (ret > 0) {
		fprintf(stderr, "vapro %s: %s\n", command_of(input), err);
		input->cut = true;
		ret = 0;
	}
	if (line_sink__close(lines) && !ret) {
		snprintf(err, err_size, "no room for the records of the replay in /tmp");
		ret = -ENOSPC;
	}
	if (!ret) {
		ret = run_report__add_file(report, file, RUN_OPTION_LAST, "the replay");
		if (ret)
			snprintf(err, err_size, "the replay: %s", strerror(-ret));
	}
	fclose(file);
	return ret;
}

int report_input__read(struct report_input *input, struct run_report *report, char *err, size_t err_size)
{
	int ret = run_report__init(report);

	if (ret)
		snprintf(err, err_size, "out of memory");
	else if (!input->live)
		ret = find_kind(input, err, err_size);
	report->view.job = input->job;
	if (isatty(STDERR_FILENO))
		report->progress = show_progress;
	if (!ret)
		ret = input->live			 ? read_live(input, report, err, err_size)
		      : input->kind == FILE_KIND_RECORDS ? read_records(input, report, err, err_size)
							 : read_replayed(input, report, err, err_size);
	if (report->progress)
		fputs("\r\033[K", stderr);
	if (!ret && input->job && !report->view.job_records) {
		snprintf(err, err_size, "the run has no job '%.200s'; `vapro view` names its jobs", input->job);
		ret = -ENOENT;
	}
	if (!ret) {
		input->bad_lines += report->view.bad_lines;
		ret = run_report__finish(report);
		if (ret)
			snprintf(err, err_size, "out of memory");
	}
	return ret;
}
