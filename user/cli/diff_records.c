// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The NDJSON output of vaprod as a run: performance by rank and class from heat maps, and sums of what it says of
 * losses. A bin of performance p counts as work that took 1 / p of its time, so that ranks are compared as those of
 * captures are; communication is not compared by rank, since a rank that waits longer is not slower.
 */
#include "cli/diff_run.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/intern.h"
#include "base/table.h"
#include "capture/packed_lines.h"
#include "report/json.h"
#include "report/line_runs.h"
#include "report/run_option.h"

struct bin {
	uint64_t number;
	uint32_t thread, class;
	uint32_t revision;
	float performance;
};

struct variance {
	double lost_s[VAPRO_CLASSES];
	bool alarm, effect;
};

/* What one diagnosis says of a variance. */
struct part {
	uint32_t variance; /* index */
	uint32_t revision;
	char name[32];
	double seconds;
};

struct reader {
	struct diff_run *run;
	struct intern *rows;	 /* "job\nrank\npid\nhost" */
	struct intern *ids;	 /* of variances, "host\nid" */
	struct table *bin_index; /* thread and class, bin */
	struct bin *bins;
	size_t bin_count, bin_capacity;
	struct variance *variances;
	size_t variance_count, variance_capacity;
	struct part *parts;
	size_t part_count, part_capacity;
	double coverage, performance, covered_s;
	uint32_t threads;
};

static const cJSON *member(const cJSON *line, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(line, name);
}

static const char *text_of(const cJSON *line, const char *name)
{
	const char *text = cJSON_GetStringValue(member(line, name));

	return text ? text : "";
}

static double number_of(const cJSON *line, const char *name, double otherwise)
{
	const cJSON *item = member(line, name);

	return cJSON_IsNumber(item) ? item->valuedouble : otherwise;
}

static int class_of(const cJSON *line)
{
	for (int i = 0; i < VAPRO_CLASSES; i++)
		if (!strcmp(text_of(line, "class"), vapro_class_name[i]))
			return i;
	return -1;
}

/* The thread of a row; announces a new one. Returns 0, -EINVAL or -ENOMEM. */
static int thread_of(struct reader *reader, const cJSON *line, const cJSON *row, uint32_t *thread)
{
	const char *host = *text_of(row, "host") ? text_of(row, "host") : text_of(line, "host");
	struct vapro_thread added = {.rank = (int32_t)number_of(row, "rank", -1),
				     .pid = (uint32_t)number_of(row, "pid", 0),
				     .job = text_of(line, "job"),
				     .host = host};
	char *key;
	uint32_t id;

	if (asprintf(&key, "%s\n%d\n%u\n%s", added.job, added.rank, added.rank < 0 ? added.pid : 0,
		     added.rank < 0 ? host : "") < 0)
		return -ENOMEM;
	id = intern__id(reader->rows, key);
	free(key);
	if (id == INTERN_NONE)
		return -ENOMEM;
	*thread = added.id = id - 1; /* 0 is the id of no text */
	if (added.id < reader->threads)
		return 0;
	reader->threads++;
	added.pid = added.pid ? added.pid : id;
	return profile__add_thread(reader->run->profile, &added);
}

static int add_bin(struct reader *reader, uint32_t thread, int class, uint64_t number, uint32_t revision,
		   double performance)
{
	uint64_t key = (uint64_t)thread * VAPRO_CLASSES + (uint64_t) class;
	struct bin *bin;
	uint32_t at;

	if (!table__get(reader->bin_index, key, number, &at)) {
		at = (uint32_t)reader->bin_count;
		if (grow(&reader->bins, &reader->bin_capacity, (size_t)at + 1, sizeof(*reader->bins)) ||
		    table__put(reader->bin_index, key, number, at))
			return -ENOMEM;
		reader->bin_count++;
		reader->bins[at] = (struct bin){.number = number, .thread = thread, .class = (uint32_t) class};
	}
	bin = &reader->bins[at];
	if (revision < bin->revision)
		return 0;
	bin->revision = revision;
	bin->performance = (float)performance;
	return 0;
}

static int read_heatmap(struct reader *reader, const cJSON *line)
{
	int class = class_of(line);
	uint64_t begin_ns;
	const cJSON *row, *value;

	if (class < 0 || !json__parse_time(text_of(line, "begin"), &begin_ns) ||
	    number_of(line, "bin_ns", 0) != (double)VAPRO_BIN_NS)
		return 0;
	cJSON_ArrayForEach(row, member(line, "rows"))
	{
		uint64_t number = begin_ns / VAPRO_BIN_NS;
		uint32_t thread;

		if (member(row, "thread"))
			continue;
		if (thread_of(reader, line, row, &thread))
			return -ENOMEM;
		cJSON_ArrayForEach(value, member(row, "values"))
		{
			if (cJSON_IsNumber(value) && value->valuedouble > 0 &&
			    add_bin(reader, thread, class, number, (uint32_t)number_of(line, "revision", 0),
				    value->valuedouble))
				return -ENOMEM;
			number++;
		}
	}
	return 0;
}

static void read_window(struct reader *reader, const cJSON *line)
{
	uint64_t begin_ns, end_ns;
	double seconds, coverage = number_of(member(line, "coverage"), "total", NAN);
	double performance = number_of(member(line, "performance"), "total", NAN);

	if (!json__parse_time(text_of(line, "begin"), &begin_ns) || !json__parse_time(text_of(line, "end"), &end_ns) ||
	    end_ns < begin_ns)
		return;
	seconds = (double)(end_ns - begin_ns) * 1e-9;
	reader->run->records.window_s += seconds;
	if (isnan(coverage))
		return;
	reader->coverage += coverage * seconds;
	if (isnan(performance))
		return;
	reader->performance += performance * coverage * seconds;
	reader->covered_s += coverage * seconds;
}

/* The number of a variance of the line's host. Returns 0 or -ENOMEM. */
static int variance_of(struct reader *reader, const cJSON *line, const char *member_name, uint32_t *at)
{
	char *key;

	if (asprintf(&key, "%s\n%.0f", text_of(line, "host"), number_of(line, member_name, 0)) < 0)
		return -ENOMEM;
	*at = intern__id(reader->ids, key) - 1;
	free(key);
	if (*at == INTERN_NONE - 1 ||
	    grow(&reader->variances, &reader->variance_capacity, (size_t)*at + 1, sizeof(*reader->variances)))
		return -ENOMEM;
	if (*at >= reader->variance_count)
		reader->variance_count = (size_t)*at + 1;
	return 0;
}

static int read_variance(struct reader *reader, const cJSON *line)
{
	struct variance *variance;
	uint32_t at;

	if (variance_of(reader, line, "id", &at))
		return -ENOMEM;
	variance = &reader->variances[at];
	variance->alarm = cJSON_IsTrue(member(line, "alarm"));
	variance->effect = cJSON_IsNumber(member(line, "effect_of"));
	for (int i = 0; i < VAPRO_CLASSES; i++)
		variance->lost_s[i] = number_of(member(line, "lost_by_class"), vapro_class_name[i], 0);
	return 0;
}

/* Whether another major factor is a part of this one: the parts say more, and their sum is the same time. */
static bool has_major_part(const cJSON *factors, const char *name)
{
	const cJSON *factor;

	cJSON_ArrayForEach(factor, factors)
	{
		if (cJSON_IsTrue(member(factor, "major")) && !strcmp(text_of(factor, "parent"), name))
			return true;
	}
	return false;
}

/* Notes the causes of a variance; those of an earlier revision no longer count. */
static int read_diagnosis(struct reader *reader, const cJSON *line)
{
	const cJSON *factor;
	uint32_t at, revision = (uint32_t)number_of(line, "revision", 0);
	size_t count = 0;

	if (number_of(line, "variance", 0) <= 0) /* a region chosen by hand */
		return 0;
	if (variance_of(reader, line, "variance", &at))
		return -ENOMEM;
	for (size_t i = 0; i < reader->part_count; i++)
		if (reader->parts[i].variance != at)
			reader->parts[count++] = reader->parts[i];
	reader->part_count = count;
	cJSON_ArrayForEach(factor, member(line, "factors"))
	{
		double seconds = number_of(factor, "impact_seconds", 0);
		struct part *part;

		if (seconds <= 0 || !cJSON_IsTrue(member(factor, "major")) ||
		    has_major_part(member(line, "factors"), text_of(factor, "name")))
			continue;
		if (grow(&reader->parts, &reader->part_capacity, reader->part_count + 1, sizeof(*part)))
			return -ENOMEM;
		part = &reader->parts[reader->part_count++];
		*part = (struct part){.variance = at, .revision = revision, .seconds = seconds};
		snprintf(part->name, sizeof(part->name), "%s", text_of(factor, "name"));
	}
	return 0;
}

static int read_line(struct reader *reader, const cJSON *line)
{
	const char *type = text_of(line, "type");

	if (!*reader->run->host)
		snprintf(reader->run->host, sizeof(reader->run->host), "%s", text_of(line, "host"));
	if (!strcmp(type, "heatmap"))
		return read_heatmap(reader, line);
	if (!strcmp(type, "window"))
		read_window(reader, line);
	if (!strcmp(type, "variance"))
		return read_variance(reader, line);
	return strcmp(type, "diagnosis") ? 0 : read_diagnosis(reader, line);
}

static int read_file(struct reader *reader, const char *path, int number, char *err, size_t err_size)
{
	FILE *file = packed_lines__open(path);
	struct line_runs *runs = file ? line_runs__read(file) : NULL;
	int error = runs ? 0 : -errno;
	uint64_t at = 0;
	char *text = NULL;
	size_t size = 0, chosen;

	if (!error) {
		chosen = line_runs__choose(runs, number);
		if (!chosen) {
			snprintf(err, err_size, "%s: it has no run %d; it holds %zu", path, number,
				 line_runs__count(runs));
			error = -ENOENT;
		} else {
			if (!reader->run->every)
				run_option__say(reader->run->command, path, chosen, line_runs__count(runs));
			fseeko(file, line_runs__begin(runs, &at), SEEK_SET);
		}
	} else {
		snprintf(err, err_size, "%s: %s", path, strerror(-error));
	}
	while (!error && getline(&text, &size, file) > 0) {
		cJSON *line = cJSON_Parse(text);

		if (!line)
			reader->run->bad_lines++;
		if (line_runs__has(runs, line) && line)
			error = read_line(reader, line);
		cJSON_Delete(line);
		if (error)
			snprintf(err, err_size, "%s: out of memory", path);
	}
	free(text);
	line_runs__free(runs);
	if (file)
		fclose(file);
	return error;
}

static int by_time(const void *a, const void *b)
{
	const struct bin *x = a, *y = b;

	return x->number != y->number ? (x->number > y->number) - (x->number < y->number)
				      : (x->thread > y->thread) - (x->thread < y->thread);
}

/* Feeds bins as fragments of one state per class. */
static int feed(struct reader *reader)
{
	struct profile *profile = reader->run->profile;
	int error = 0;

	for (uint32_t i = 0; !error && i < VAPRO_CLASSES; i++) {
		const struct vapro_state state = {
		    .id = i, .class = (enum vapro_class)i, .to = vapro_class_name[i], .labels = "", .common = ""};

		error = profile__add_state(profile, &state);
	}
	if (reader->bin_count)
		qsort(reader->bins, reader->bin_count, sizeof(*reader->bins), by_time);
	for (size_t i = 0; !error && i < reader->bin_count; i++) {
		const struct bin *bin = &reader->bins[i];
		struct vapro_bundle bundle = {.thread = bin->thread,
					      .state = bin->class,
					      .n = 1,
					      .start_ns = bin->number * VAPRO_BIN_NS,
					      .end_ns = (bin->number + 1) * VAPRO_BIN_NS,
					      .sum_ns = (uint64_t)((double)VAPRO_BIN_NS / (double)bin->performance)};

		bundle.min_ns = bundle.max_ns = bundle.sum_ns;
		error = profile__add_bundle(profile, &bundle);
	}
	return error;
}

/* Sums up variances and their causes. */
static int add_up(struct reader *reader)
{
	struct diff_records *records = &reader->run->records;

	records->coverage = records->window_s > 0 ? reader->coverage / records->window_s : NAN;
	records->performance = reader->covered_s > 0 ? reader->performance / reader->covered_s : NAN;
	for (size_t i = 0; i < reader->variance_count; i++) {
		const struct variance *variance = &reader->variances[i];

		records->variances++;
		records->alarms += variance->alarm;
		for (int k = 0; k < VAPRO_CLASSES; k++)
			records->lost_s[k] += variance->lost_s[k];
	}
	for (size_t i = 0; i < reader->part_count; i++) {
		size_t at = 0;

		while (at < records->cause_count && strcmp(records->causes[at].name, reader->parts[i].name))
			at++;
		if (at == records->cause_count) {
			if (grow(&records->causes, &records->cause_capacity, at + 1, sizeof(*records->causes)))
				return -ENOMEM;
			records->cause_count++;
			memcpy(records->causes[at].name, reader->parts[i].name, sizeof(records->causes[at].name));
		}
		records->causes[at].seconds += reader->parts[i].seconds;
	}
	return 0;
}

int diff_run__count_records(const struct diff_run *run, size_t *count, char *err, size_t err_size)
{
	FILE *file = packed_lines__open(run->files[0]);
	struct line_runs *runs = file ? line_runs__read(file) : NULL;
	int error = runs ? 0 : -errno;

	if (error)
		snprintf(err, err_size, "%s: %s", run->files[0], strerror(-error));
	else
		*count = line_runs__count(runs);
	line_runs__free(runs);
	if (file)
		fclose(file);
	return error;
}

int diff_run__read_records(struct diff_run *run, int number, char *err, size_t err_size)
{
	struct reader reader = {.run = run, .rows = intern__new(), .ids = intern__new(), .bin_index = table__new()};
	int error = 0;

	run->profile = profile__new(false);
	if (!reader.rows || !reader.ids || !reader.bin_index || !run->profile) {
		snprintf(err, err_size, "out of memory");
		error = -ENOMEM;
	}
	for (size_t i = 0; !error && i < run->file_count; i++)
		error = read_file(&reader, run->files[i], number, err, err_size);
	if (!error) {
		error = feed(&reader) || add_up(&reader) ? -ENOMEM : profile__end(run->profile);
		if (error)
			snprintf(err, err_size,
				 error == -ENODATA ? "%s: no heat map has a valid bin: nothing was covered"
						   : "%s: out of memory",
				 run->operand);
	}
	intern__free(reader.rows);
	intern__free(reader.ids);
	table__free(reader.bin_index);
	free(reader.bins);
	free(reader.variances);
	free(reader.parts);
	return error;
}
