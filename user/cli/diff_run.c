// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/diff_run.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/grow.h"
#include "capture/capture.h"
#include "capture/capture_format.h"
#include "capture/profile_file.h"
#include "capture/packed_lines.h"
#include "report/run_option.h"
#include "capture/ndjson.h"

static int sink_put(struct stream_sink *sink, const struct stream_event *event)
{
	struct diff_sink *own = (struct diff_sink *)sink;
	int error;

	switch (event->type) {
	case STREAM_THREAD:
		return profile__add_thread(own->profile, &event->thread);
	case STREAM_STATE:
		return profile__add_state(own->profile, &event->state);
	case STREAM_BUNDLE:
		error = profile__add_bundle(own->profile, &event->bundle);
		own->refused += error == -EINVAL;
		return error == -EINVAL ? 0 : error;
	default:
		return 0;
	}
}

void diff_run__init_sink(struct diff_sink *sink, struct profile *profile)
{
	*sink = (struct diff_sink){.sink = {.put = sink_put}, .profile = profile};
}

static int add_file(struct diff_run *run, size_t *capacity, char *path)
{
	if (!path || grow(&run->files, capacity, run->file_count + 1, sizeof(*run->files))) {
		free(path);
		return -ENOMEM;
	}
	run->files[run->file_count++] = path;
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int list_directory(struct diff_run *run, size_t *capacity)
{
	DIR *directory = opendir(run->operand);
	struct dirent *entry;
	int error = directory ? 0 : -errno;

	while (!error && (entry = readdir(directory))) {
		struct stat status;
		char *path;

		if (entry->d_name[0] == '.' || asprintf(&path, "%s/%s", run->operand, entry->d_name) < 0)
			continue;
		if (stat(path, &status) || !S_ISREG(status.st_mode))
			free(path);
		else
			error = add_file(run, capacity, path);
	}
	if (directory)
		closedir(directory);
	if (!error && run->file_count)
		qsort(run->files, run->file_count, sizeof(*run->files), by_name);
	return error;
}

static int list_files(struct diff_run *run, char *err, size_t err_size)
{
	size_t capacity = 0;
	struct stat status;
	int error = 0;

	if (!stat(run->operand, &status)) {
		error = S_ISDIR(status.st_mode) ? list_directory(run, &capacity)
						: add_file(run, &capacity, strdup(run->operand));
	} else if (!strchr(run->operand, ',')) {
		error = -errno;
	} else {
		for (const char *at = run->operand; !error && *at;) {
			size_t length = strcspn(at, ",");

			error = length ? add_file(run, &capacity, strndup(at, length)) : 0;
			at += length + (at[length] == ',');
		}
	}
	if (error)
		snprintf(err, err_size, "%s: %s", run->operand, strerror(-error));
	else if (!run->file_count)
		snprintf(err, err_size, "%s: the directory has no file", run->operand);
	return error ? error : run->file_count ? 0 : -ENOENT;
}

/* Finds out what a file is from its first line. Returns 0, or a negative errno with a sentence in err. */
static int recognise(const char *path, enum diff_input *input, char *err, size_t err_size)
{
	FILE *file = packed_lines__open(path);
	char *line = NULL;
	size_t size = 0;
	ssize_t length = file ? getline(&line, &size, file) : -1;
	int error = 0;

	if (!file)
		error = -errno;
	if (error)
		snprintf(err, err_size, "%s: %s", path, strerror(-error));
	else if (profile_file__is(path))
		*input = DIFF_PROFILE;
	else if (length > 0 && !strncmp(line, CAPTURE_HEAD_BEGIN, strlen(CAPTURE_HEAD_BEGIN)))
		*input = DIFF_CAPTURE;
	else if (length > 0 && line[0] == '{')
		*input = strstr(line, "\"schema\":\"vapro/") ? DIFF_RECORDS : DIFF_FRAGMENTS;
	else {
		snprintf(
		    err, err_size,
		    "%s: %s; captures (vaprod --capture), profiles (vaprod --profiles), fragments as NDJSON and the "
		    "output of vaprod can be read",
		    path, length > 0 ? "neither a capture nor NDJSON" : "empty");
		error = -EINVAL;
	}
	free(line);
	if (file)
		fclose(file);
	return error;
}

int diff_run__open(struct diff_run *run, const char *command, const char *operand, enum diff_input input, char *err,
		   size_t err_size)
{
	int error;

	*run = (struct diff_run){.command = command, .operand = operand, .input = input};
	error = list_files(run, err, err_size);
	for (size_t i = 0; !error && i < run->file_count; i++) {
		enum diff_input found = DIFF_UNKNOWN;

		error = recognise(run->files[i], &found, err, err_size);
		if (error)
			break;
		if (run->input == DIFF_UNKNOWN)
			run->input = found;
		if (found != run->input && !(run->input == DIFF_FRAGMENTS && found == DIFF_RECORDS)) {
			static const char *const names[] = {"a capture", "NDJSON fragments", "NDJSON output of vaprod",
							    "a profile"};

			snprintf(err, err_size, "%s is %s, and not %s", run->files[i], names[found], names[run->input]);
			error = -EINVAL;
		}
	}
	return error;
}

int diff_run__count(const struct diff_run *run, size_t *count, char *err, size_t err_size)
{
	struct capture_info info;
	int error = 0;

	*count = 1;
	if (run->file_count == 1 && run->input == DIFF_RECORDS)
		return diff_run__count_records(run, count, err, err_size);
	if (run->file_count == 1 && run->input == DIFF_CAPTURE) {
		error = capture__info(run->files[0], &info, err, err_size);
		if (!error)
			*count = info.runs;
	}
	return error;
}

void diff_run__close(struct diff_run *run)
{
	for (size_t i = 0; i < run->file_count; i++)
		free(run->files[i]);
	free(run->files);
	free(run->records.causes);
	profile__free(run->profile);
	*run = (struct diff_run){0};
}

static int read_captures(struct diff_run *run, int number, struct stream_sink *sink, char *err, size_t err_size)
{
	int status = capture__replay_run((const char *const *)run->files, run->file_count, number, sink, err, err_size);

	if (status > 0) {
		fprintf(stderr, "vapro %s: %s\n", run->command, err);
		run->cut = true;
		return 0;
	}
	return status;
}

static int read_fragments(const struct ndjson *ndjson, struct stream_sink *sink, char *err, size_t err_size)
{
	struct vapro_config config;

	config__init(&config);
	return ndjson__feed(ndjson, config.window_s, sink, err, err_size);
}

int diff_run__read(struct diff_run *run, int number, char *err, size_t err_size)
{
	struct capture_info info = {0};
	struct ndjson *ndjson = NULL;
	struct diff_sink sink;
	int error = 0;

	if (run->input == DIFF_RECORDS)
		return diff_run__read_records(run, number, err, err_size);
	if (run->input == DIFF_PROFILE) {
		if (run->file_count == 1)
			return profile_file__read(run->files[0], &run->profile, err, err_size);
		snprintf(err, err_size, "%s: a profile is a run of its own: those of several hosts cannot be joined",
			 run->operand);
		return -EINVAL;
	}
	if (run->input == DIFF_CAPTURE) {
		error = capture__run_info(run->files[0], number, &info, err, err_size);
		if (error)
			return error;
		if (!run->every)
			run_option__say(run->command, run->files[0], info.run, info.runs);
		snprintf(run->host, sizeof(run->host), "%s", info.host);
	} else {
		ndjson = ndjson__read((const char *const *)run->files, run->file_count, false, &run->bad_lines, err,
				      err_size);
		if (!ndjson)
			return errno ? -errno : -EINVAL;
	}
	run->profile = profile__new(ndjson ? ndjson__by_instructions(ndjson) : info.by_instructions);
	diff_run__init_sink(&sink, run->profile);
	if (!run->profile) {
		snprintf(err, err_size, "out of memory");
		error = -ENOMEM;
	} else {
		error = ndjson ? read_fragments(ndjson, &sink.sink, err, err_size)
			       : read_captures(run, number, &sink.sink, err, err_size);
	}
	ndjson__free(ndjson);
	if (error)
		return error;
	error = profile__end(run->profile);
	if (error)
		snprintf(err, err_size,
			 error == -ENODATA ? "%s: no call of any process was seen in it" : "%s: out of memory",
			 run->operand);
	if (run->bad_lines)
		fprintf(stderr, "vapro %s: %s: %llu bad lines were refused\n", run->command, run->operand,
			(unsigned long long)run->bad_lines);
	return error;
}
