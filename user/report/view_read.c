/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the lines of a run into the maps and the summary of a view. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "capture/packed_lines.h"
#include "base/job_names.h"
#include "report/json.h"
#include "report/line_runs.h"
#include "report/record.h"
#include "report/run_option.h"
#include "report/view_model.h"

#define SHOWN_MAX 20 /* bad lines reported one by one */

/* Returns whether a job has this name, with its user as view_model.c writes it or without. */
static bool is_called(const char *job, double uid, const char *name)
{
	size_t length = strlen(job);
	char user[40];

	snprintf(user, sizeof(user), " of uid %.0f", uid);
	if (job_names__match(name, job))
		return true;
	return !strncmp(name, job, length) && (!name[length] || !strcmp(name + length, user));
}

/* Returns whether a record is one of the job that is wanted, or of none as a warning is; counts those of the job. */
static bool is_wanted(struct view_model *model, const cJSON *line, const char *type)
{
	const cJSON *item = record__item(line, KEY(of_job, job));
	const char *job = cJSON_IsObject(item) ? record__text(item, KEY(process_job, identity))
					       : record__text(line, KEY(of_job, job));

	/* the counters of a stage without a job are those of the node */
	if (!model->job || !item || (!job && !strcmp(type, "stage")))
		return true;
	if (!job ||
	    !is_called(job, record__number(cJSON_IsObject(item) ? item : line, KEY(of_job, uid), NAN), model->job))
		return false;
	model->job_records++;
	return true;
}

static int add_line(struct view_model *model, struct line_runs *runs, const char *text, const char **why)
{
	cJSON *line = cJSON_ParseWithOpts(text, NULL, true);
	const char *type = record__text(line, KEY(head, type)), *schema = record__text(line, KEY(head, schema));
	int ret = 0;

	if (!line_runs__has(runs, line)) {
		cJSON_Delete(line);
		return 0;
	}
	if (!line) {
		*why = "no JSON";
		return -EINVAL;
	}
	if (!type || !schema || strcmp(schema, RECORD_SCHEMA)) {
		*why = "no line of vapro/1";
		ret = -EINVAL;
	} else if (!is_wanted(model, line, type)) {
		cJSON_Delete(line);
		return 0;
	} else if (!strcmp(type, "heatmap")) {
		ret = view_model__add_map(model, line, why);
	} else {
		model->began |= !strcmp(type, "hello");
		ret = summary__add_record(model->summary, line, why);
	}
	if (!ret && model->seen)
		model->seen(model->seen_arg, &line);
	cJSON_Delete(line);
	return ret;
}

/* Copies an unseekable file to an unnamed one; rewinds the result. Returns NULL with errno. */
static FILE *seekable(FILE *file)
{
	char bytes[65536];
	FILE *copy;
	size_t got;

	if (!fseeko(file, 0, SEEK_SET))
		return file;
	copy = tmpfile();
	while (copy && (got = fread(bytes, 1, sizeof(bytes), file)) > 0) {
		if (fwrite(bytes, 1, got, copy) == got)
			continue;
		fclose(copy);
		return NULL;
	}
	if (copy)
		rewind(copy);
	return copy;
}

/* Returns 0 or a negative errno. */
static int read_lines(struct view_model *model, struct line_runs *runs, FILE *file, const char *name)
{
	size_t capacity = 0;
	uint64_t line = 0, bad_lines = 0;
	char *text = NULL;
	int ret = 0;

	if (fseeko(file, line_runs__begin(runs, &line), SEEK_SET))
		return -errno;
	errno = 0;
	while (ret != -ENOMEM && getline(&text, &capacity, file) >= 0) {
		const char *why = "";

		line++;
		if (!text[strspn(text, " \t\r\n")])
			continue;
		ret = add_line(model, runs, text, &why);
		if (ret == -EINVAL && bad_lines++ < SHOWN_MAX)
			fprintf(stderr, "vapro: %s:%llu: %s\n", name, (unsigned long long)line, why);
	}
	if (ret != -ENOMEM)
		ret = ferror(file) ? (errno ? -errno : -EIO) : 0;
	model->lines += line;
	model->bad_lines += bad_lines;
	if (bad_lines > SHOWN_MAX)
		fprintf(stderr, "vapro: %s: %llu bad lines in all\n", name, (unsigned long long)bad_lines);
	free(text);
	return ret;
}

int view_model__init(struct view_model *model)
{
	*model = (struct view_model){.summary = summary__new()};
	return model->summary ? 0 : -ENOMEM;
}

int view_model__add_file(struct view_model *model, FILE *file, int run, const char *name)
{
	FILE *plain = packed_lines__unpacked(file), *input = plain ? seekable(plain) : NULL;
	struct line_runs *runs = input ? line_runs__read(input) : NULL;
	int ret = runs ? 0 : -errno;

	if (runs) {
		model->runs = line_runs__count(runs);
		model->run = line_runs__choose(runs, run);
		if (!model->run && (model->runs || run != RUN_OPTION_LAST))
			ret = -ENOENT;
		else
			ret = read_lines(model, runs, input, name);
	}
	line_runs__free(runs);
	if (input && input != plain)
		fclose(input);
	if (plain && plain != file)
		fclose(plain);
	return ret;
}

int view_model__read(struct view_model *model, FILE *file, int run, const char *name)
{
	int ret = view_model__init(model);

	if (!ret)
		ret = view_model__add_file(model, file, run, name);
	view_model__sort(model);
	return ret;
}
