/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/json.h"
#include "report/regions.h"
#include "report/run_option.h"
#include "base/terminal.h"
#include "report/view.h"
#include "report/view_model.h"

#define ROWS 48

static bool wants_color(enum view_color color, FILE *out)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	if (color != VIEW_COLOR_AUTO)
		return color == VIEW_COLOR_ALWAYS;
	/* no-color.org: set and not empty */
	return isatty(fileno(out)) && !(no_color && *no_color) && !(term && !strcmp(term, "dumb"));
}

void view__finalize(struct view_options *options, FILE *out)
{
	options->color = wants_color(options->color, out) ? VIEW_COLOR_ALWAYS : VIEW_COLOR_NEVER;
	if (!options->width)
		options->width = terminal__width(fileno(out));
}

/* Sums up what a model shows, for an exit code. */
static void fill_outcome(const struct view_model *model, struct outcome *outcome)
{
	const struct regions *regions = summary__regions(model->summary);

	*outcome = (struct outcome){.rank_seconds = 0};
	for (size_t i = 0; i < regions->count; i++) {
		const struct region *region = &regions->items[i];

		for (int severity = 0; severity < VAPRO_SEVERITIES; severity++)
			outcome->alarms[severity] +=
			    region->alarm && !strcmp(region->severity, json_severity_name[severity]);
	}
	for (size_t i = 0; i < model->map_count; i++) {
		for (size_t k = 0; k < model->maps[i].row_count; k++) {
			const struct view_row *row = &model->maps[i].rows[k];

			for (size_t p = 0; p < row->piece_count; p++) {
				outcome->rank_seconds += row->pieces[p].count;
				for (uint32_t v = 0; v < row->pieces[p].count; v++)
					outcome->judged_seconds += !isnan(row->pieces[p].values[v]);
			}
		}
	}
}

/* Returns whether a map is drawn: that of communication shows waiting, which is no finding, on demand only. */
static bool is_drawn(const struct view_map *map, const struct view_options *options)
{
	if (!map->end)
		return false;
	if (options->class)
		return !strcmp(options->class, map->class);
	return options->all || strcmp(map->class, vapro_class_name[VAPRO_COMMUNICATION]) != 0;
}

static int draw_maps(const struct view_model *model, const struct view_options *options, FILE *out, size_t *drawn)
{
	bool color = options->color == VIEW_COLOR_ALWAYS, hidden = false;
	unsigned rows = options->rows ? options->rows : ROWS;
	int ret = 0;

	for (size_t i = 0; !ret && i < model->map_count; i++) {
		const struct view_map *map = &model->maps[i];

		if (is_drawn(map, options)) {
			ret = view_model__draw_map(map, out, color, options->width, rows);
			(*drawn)++;
		} else if (map->end && !options->class) {
			hidden = true;
		}
	}
	if (hidden && !ret)
		fputs("The map of waiting is hidden; --class communication draws it.\n", out);
	*drawn += hidden;
	return ret;
}

static bool has_maps(const struct view_model *model, const struct view_options *options)
{
	for (size_t i = 0; i < model->map_count; i++) {
		const struct view_map *map = &model->maps[i];

		if (map->end && (!options->class || !strcmp(options->class, map->class)))
			return true;
	}
	return false;
}

static int draw(struct view_model *model, const struct view_options *options, FILE *out, size_t *drawn)
{
	const struct summary_options summary = {
	    .width = options->width, .all = options->all, .more = "--all lists them"};
	int ret;

	if (!has_maps(model, options)) {
		/* a whole run without a map is one in which nothing was watched, or for too short */
		if (model->map_count || !model->began)
			return 0;
		summary__print_top(model->summary, out, &summary);
		*drawn = 1;
		return fflush(out) ? -errno : 0;
	}
	summary__start(model->summary, model->start_ns);
	summary__print_top(model->summary, out, &summary);
	putc('\n', out);
	ret = draw_maps(model, options, out, drawn);
	if (ret)
		return ret;
	summary__print_rest(model->summary, out, &summary);
	return fflush(out) ? -errno : 0;
}

/* Leaves out what lies outside the requested time. Returns 0, or -ERANGE with a sentence in err where that is all. */
static int clip(struct view_model *model, const struct view_options *options, char *err, size_t err_size)
{
	uint64_t base = options->relative ? model->start_ns : 0;
	uint64_t end = options->until_ns ? options->until_ns + base : UINT64_MAX;

	if ((!options->since_ns && !options->until_ns) || !model->start_ns ||
	    view_model__clip(model, options->since_ns + base, end))
		return 0;
	snprintf(err, err_size, "nothing was recorded in that time");
	return -ERANGE;
}

int view__stream(FILE *file, const char *name, const struct view_options *options, FILE *out, uint64_t *bad_lines,
		 char *err, size_t err_size)
{
	struct view_options whole = *options;
	struct view_model model;
	size_t drawn = 0;
	int ret;

	view__finalize(&whole, out);
	ret = view_model__read(&model, file, options->run ? options->run : RUN_OPTION_LAST, name);
	if (!ret)
		run_option__say("view", name, model.run, model.runs);
	if (bad_lines)
		*bad_lines = model.bad_lines;
	if (!ret)
		ret = clip(&model, options, err, err_size);
	if (options->outcome)
		fill_outcome(&model, options->outcome);
	if (!ret)
		ret = view_model__measure(&model);
	if (!ret && options->by_loss)
		view_model__sort_by_loss(&model);
	if (!ret)
		ret = draw(&model, &whole, out, &drawn);
	if (ret == -ENOENT) {
		snprintf(err, err_size, "%s: it has no run %d, but %zu", name, options->run, model.runs);
	} else if (ret && ret != -ERANGE) {
		snprintf(err, err_size, "%s: %s", name, strerror(-ret));
	} else if (!ret && !drawn) {
		ret = -ENODATA;
		snprintf(err, err_size, "%s: no heat map%s%s in %llu lines", name, options->class ? " of class " : "",
			 options->class ? options->class : "", (unsigned long long)model.lines);
	}
	view_model__free(&model);
	return ret;
}

int view__file(const char *path, const struct view_options *options, FILE *out, uint64_t *bad_lines, char *err,
	       size_t err_size)
{
	bool standard = !strcmp(path, "-");
	FILE *file = standard ? stdin : fopen(path, "re");
	int ret;

	if (bad_lines)
		*bad_lines = 0;
	if (!file) {
		ret = -errno;
		snprintf(err, err_size, "%s: %s", path, strerror(-ret));
		return ret;
	}
	ret = view__stream(file, standard ? "standard input" : path, options, out, bad_lines, err, err_size);
	if (!standard)
		fclose(file);
	return ret;
}
