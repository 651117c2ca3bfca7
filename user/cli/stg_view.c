// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/stg_view.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/capture.h"
#include "model/clusters.h"
#include "base/grow.h"
#include "base/printable.h"
#include "model/bands.h"
#include "model/series.h"
#include "report/name_lookup.h"

struct state {
	enum vapro_class class;
	char *from, *to, *labels; /* from NULL: a vertex */
	char *from_symbol, *to_symbol, *from_path, *to_path;
	struct clusters *clusters; /* NULL: no workload that could be clustered */
	uint64_t calls;
	double seconds, least_s, most_s;
	double bytes_min, bytes_max; /* vertices only */
	bool approx;
};

struct stg_view {
	struct stream_sink sink; /* first */
	int rank;
	struct vapro_config config;
	bool by_instructions;
	struct rules rules;
	struct bands *bands; /* NULL where no rule splits states */
	struct source_names *names;
	struct state *states;
	size_t state_count, state_room;
	int32_t *ranks; /* by thread id */
	size_t rank_count, rank_room;
};

static char *copy(const char *text)
{
	return text ? strdup(text) : NULL;
}

static int add_state(struct stg_view *view, const struct vapro_state *state)
{
	struct state *own;

	if (state->id != view->state_count)
		return state->id < view->state_count ? 0 : -EINVAL;
	if (grow(&view->states, &view->state_room, view->state_count + 1, sizeof(*view->states)))
		return -ENOMEM;
	own = &view->states[view->state_count++];
	*own = (struct state){.class = state->class,
			      .from = copy(state->from),
			      .to = copy(state->to),
			      .labels = copy(state->labels),
			      .from_symbol = copy(state->from_symbol),
			      .to_symbol = copy(state->to_symbol),
			      .from_path = copy(state->from_path),
			      .to_path = copy(state->to_path)};
	if (state->class == VAPRO_COMPUTATION && !view->by_instructions)
		return own->to && own->labels ? 0 : -ENOMEM;
	own->clusters = clusters__new(&view->config);
	return own->to && own->labels && own->clusters ? 0 : -ENOMEM;
}

static int add_bundle(struct stg_view *view, const struct vapro_bundle *bundle)
{
	struct state *state = &view->states[bundle->state];
	double least = bundle->magnitude_min[VAPRO_BYTES], most = bundle->magnitude_max[VAPRO_BYTES];
	double low[VAPRO_MAGNITUDES], high[VAPRO_MAGNITUDES];
	uint32_t handle;

	if (!state->calls || least < state->bytes_min)
		state->bytes_min = least;
	if (!state->calls || most > state->bytes_max)
		state->bytes_max = most;
	if (bundle->n && (!state->calls || (double)bundle->min_ns * 1e-9 < state->least_s))
		state->least_s = (double)bundle->min_ns * 1e-9;
	if (bundle->n && (double)bundle->max_ns * 1e-9 > state->most_s)
		state->most_s = (double)bundle->max_ns * 1e-9;
	state->approx |= (bundle->flags & VAPRO_BUNDLE_APPROX) != 0;
	state->calls += bundle->n;
	state->seconds += (double)bundle->sum_ns * 1e-9;
	if (!state->clusters || !bundle->n)
		return 0;
	for (int i = 0; i < VAPRO_MAGNITUDES; i++) {
		bool counts = (i == VAPRO_BYTES) != (state->class == VAPRO_COMPUTATION);

		low[i] = counts ? bundle->magnitude_min[i] : 0;
		high[i] = counts ? bundle->magnitude_max[i] : 0;
	}
	return clusters__add(state->clusters, low, high, bundle->n, bundle->sum_ns, bundle->min_ns, &handle);
}

/* Adds a bundle to its state by the rules of the user. */
static int place_bundle(struct stg_view *view, const struct vapro_bundle *bundle)
{
	struct vapro_bundle placed = *bundle;
	struct vapro_state fresh;
	int ret = view->bands ? bands__place(view->bands, &placed, &fresh) : 0;

	if (ret > 0)
		ret = add_state(view, &fresh);
	if (ret)
		return ret;
	if (placed.state >= view->state_count)
		return -EINVAL;
	rules__apply(&view->rules, &placed);
	return add_bundle(view, &placed);
}

static int put(struct stream_sink *sink, const struct stream_event *event)
{
	struct stg_view *view = (struct stg_view *)sink;
	const struct vapro_bundle *bundle = &event->bundle;

	switch (event->type) {
	case STREAM_THREAD:
		if (grow(&view->ranks, &view->rank_room, (size_t)event->thread.id + 1, sizeof(*view->ranks)))
			return -ENOMEM;
		if (event->thread.id >= view->rank_count)
			view->rank_count = (size_t)event->thread.id + 1;
		view->ranks[event->thread.id] = event->thread.rank;
		return 0;
	case STREAM_STATE:
		return view->bands ? bands__add_state(view->bands, &event->state) : add_state(view, &event->state);
	case STREAM_BUNDLE:
		if (bundle->thread >= view->rank_count)
			return -EINVAL;
		if (bundle->flags & VAPRO_BUNDLE_OPEN || (view->rank >= 0 && view->ranks[bundle->thread] != view->rank))
			return 0;
		return place_bundle(view, bundle);
	case STREAM_NAME:
		return source_names__add(view->names, &event->name);
	default:
		return 0;
	}
}

/* Reads the rules in force at the capture's time. Returns 0 or -ENOMEM. */
static int read_rules(struct stg_view *view, const struct capture_info *info)
{
	const char *named[RULES_NAMED];
	char why[256];

	for (int i = 0; i < RULES_NAMED; i++)
		named[i] = info->named[i][0] ? info->named[i] : NULL;
	if (rules__parse(&view->rules, info->config.workload, info->config.bands, why, sizeof(why)))
		memset(&view->rules, 0, sizeof(view->rules));
	rules__finalize(&view->rules, named);
	if (!rules__split(&view->rules))
		return 0;
	view->bands = bands__new(&view->rules);
	return view->bands ? 0 : -ENOMEM;
}

struct stg_view *stg_view__new(int rank, const struct capture_info *info)
{
	struct stg_view *view = calloc(1, sizeof(*view));

	if (!view)
		return NULL;
	view->sink.put = put;
	view->rank = rank;
	view->config = info->config;
	view->by_instructions = info->by_instructions;
	view->names = source_names__new();
	if (view->names && !read_rules(view, info))
		return view;
	stg_view__free(view);
	return NULL;
}

void stg_view__free(struct stg_view *view)
{
	if (!view)
		return;
	for (size_t i = 0; i < view->state_count; i++) {
		free(view->states[i].from);
		free(view->states[i].to);
		free(view->states[i].labels);
		free(view->states[i].from_symbol);
		free(view->states[i].to_symbol);
		free(view->states[i].from_path);
		free(view->states[i].to_path);
		clusters__free(view->states[i].clusters);
	}
	bands__free(view->bands);
	source_names__free(view->names);
	free(view->states);
	free(view->ranks);
	free(view);
}

struct stream_sink *stg_view__sink(struct stg_view *view)
{
	return &view->sink;
}

int stg_view__query_lines(struct stg_view *view, FILE *complaints)
{
	struct name_lookup *lookup = name_lookup__new(view->names);
	int status = lookup ? 0 : -ENOMEM;

	for (size_t i = 0; i < view->state_count && !status; i++) {
		const struct state *state = &view->states[i];

		if (!state->calls)
			continue;
		status = name_lookup__add(lookup, state->to, state->to_path);
		if (!status && state->from)
			status = name_lookup__add(lookup, state->from, state->from_path);
	}
	if (!status)
		name_lookup__query(lookup, "vapro stg", complaints);
	name_lookup__free(lookup);
	return status;
}

/* Returns how many clusters a state's workloads form; 0 where these have no measure. */
static size_t cluster_count(const struct state *state)
{
	size_t count = 0;

	if (state->clusters && !clusters__form(state->clusters))
		clusters__all(state->clusters, &count);
	return count;
}

/* Words where a state is, for people. malloc'ed; NULL when out of memory. */
static char *words_of(const struct stg_view *view, const struct state *state)
{
	return printable(source_names__words(view->names, &(struct vapro_state){.from = state->from,
										.to = state->to,
										.from_symbol = state->from_symbol,
										.to_symbol = state->to_symbol}));
}

/* Formats `file:line` of a call-site, or of the outermost of its callers in the same image; or "". */
static const char *line_of(const struct stg_view *view, const char *site, char *buf, size_t size)
{
	size_t image = strcspn(site, "+");

	buf[0] = '\0';
	for (const char *at = site; at;) {
		const char *next = strstr(at, SITE_CALLED_BY), *slash;
		size_t length = next ? (size_t)(next - at) : strlen(at), count;
		const struct source_frame *frame = source_names__of(view->names, at, length, &count);

		if (frame && frame->file && frame->line && !strncmp(at, site, image)) {
			slash = strrchr(frame->file, '/');
			snprintf(buf, size, "%s:%u", slash ? slash + 1 : frame->file, frame->line);
		}
		at = next ? next + strlen(SITE_CALLED_BY) : NULL;
	}
	return buf;
}

static int by_seconds(const void *a, const void *b)
{
	const struct state *x = a, *y = b;

	return x->seconds > y->seconds ? -1 : x->seconds < y->seconds;
}

int stg_view__table(struct stg_view *view, FILE *out, const struct stg_table_options *options)
{
	struct stg_table_row *rows = calloc(view->state_count + 1, sizeof(*rows));
	size_t count = 0;
	int ret = rows ? 0 : -ENOMEM;

	qsort(view->states, view->state_count, sizeof(*view->states), by_seconds);
	for (size_t i = 0; !ret && i < view->state_count; i++) {
		const struct state *state = &view->states[i];
		if (!state->calls)
			continue;
		rows[count] = (struct stg_table_row){.class = state->class,
						     .calls = state->calls,
						     .seconds = state->seconds,
						     .least_s = state->least_s,
						     .most_s = state->most_s,
						     .clusters = state->clusters ? (int64_t)cluster_count(state) : -1,
						     .place = words_of(view, state),
						     .labels = state->labels,
						     .from = state->from,
						     .to = state->to};
		ret = rows[count].place ? 0 : -ENOMEM;
		count++;
	}
	if (!ret)
		stg_table__print(rows, count, out, options);
	for (size_t i = 0; i < count; i++) {
		free((char *)rows[i].place);
	}
	free(rows);
	return ret;
}

static bool add_text(cJSON *object, const char *name, const char *text)
{
	return !text || cJSON_AddStringToObject(object, name, text);
}

/* Adds nothing where the line is not known. */
static bool add_source(cJSON *object, const char *name, const char *line)
{
	return add_text(object, name, *line ? line : NULL);
}

static bool add_words(const struct stg_view *view, cJSON *object, const struct state *state)
{
	char *words = words_of(view, state);
	bool ok = words && add_text(object, "source", words);

	free(words);
	return ok;
}

static bool add_clusters(cJSON *object, const struct state *state)
{
	return !state->clusters || cJSON_AddNumberToObject(object, "clusters", (double)cluster_count(state));
}

/* Adds the call-sites of a state: one that is entered, or two that a computation lies between. */
static bool add_sites(const struct stg_view *view, cJSON *object, const struct state *state)
{
	const bool edge = state->from;
	char from[512] = "", to[512];

	line_of(view, state->to, to, sizeof(to));
	if (edge)
		line_of(view, state->from, from, sizeof(from));
	return add_text(object, "from", state->from) && add_text(object, edge ? "to" : "at", state->to) &&
	       add_text(object, "from_symbol", state->from_symbol) &&
	       add_text(object, edge ? "to_symbol" : "at_symbol", state->to_symbol) &&
	       add_source(object, "from_source", from) && add_source(object, edge ? "to_source" : "at_source", to) &&
	       add_words(view, object, state) &&
	       (!edge || source_names__add_frames(view->names, object, "from_frames", state->from)) &&
	       source_names__add_frames(view->names, object, edge ? "to_frames" : "at_frames", state->to);
}

static bool add_sums(cJSON *object, const struct state *state)
{
	return cJSON_AddNumberToObject(object, "n", (double)state->calls) &&
	       cJSON_AddNumberToObject(object, "seconds", state->seconds) &&
	       cJSON_AddNumberToObject(object, "min_seconds", state->least_s) &&
	       cJSON_AddNumberToObject(object, "max_seconds", state->most_s) &&
	       (state->from || (cJSON_AddNumberToObject(object, "min_bytes", state->bytes_min) &&
				cJSON_AddNumberToObject(object, "max_bytes", state->bytes_max))) &&
	       add_clusters(object, state) && cJSON_AddBoolToObject(object, "approx", state->approx);
}

int stg_view__json(struct stg_view *view, FILE *out)
{
	for (size_t i = 0; i < view->state_count; i++) {
		const struct state *state = &view->states[i];
		cJSON *object = state->calls ? cJSON_CreateObject() : NULL;
		char *text = NULL;

		if (!state->calls)
			continue;
		if (object && add_text(object, "class", vapro_class_name[state->class]) &&
		    add_sites(view, object, state) && add_text(object, "labels", state->labels) &&
		    add_sums(object, state))
			text = cJSON_PrintUnformatted(object);
		cJSON_Delete(object);
		if (!text)
			return -ENOMEM;
		fprintf(out, "%s\n", text);
		free(text);
	}
	return 0;
}

/* Writes a text inside double quotes of DOT. */
static void quote(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putc('\\', out);
		putc(*text, out);
	}
}

/* Copies the value of a label, or "". */
static void label(const char *labels, const char *key, char *buf, size_t size)
{
	const char *at = strstr(labels, key);
	size_t length;

	buf[0] = '\0';
	if (!at || (at != labels && at[-1] != ' '))
		return;
	at += strlen(key);
	length = strcspn(at, " ");
	snprintf(buf, size, "%.*s", (int)length, at);
}

static int by_sites(const void *a, const void *b)
{
	const struct state *x = a, *y = b;
	int order = strcmp(x->from ? x->from : "", y->from ? y->from : "");

	return order ? order : strcmp(x->to, y->to);
}

static bool same_sites(const struct state *x, const struct state *y)
{
	return by_sites(x, y) == 0 && x->class == y->class;
}

void stg_view__dot(struct stg_view *view, FILE *out)
{
	char function[64], *words;

	qsort(view->states, view->state_count, sizeof(*view->states), by_sites);
	fputs("digraph stg {\n\tnode [shape=box, fontname=\"sans-serif\"];\n\tedge [fontname=\"sans-serif\"];\n", out);
	for (size_t i = 0, next; i < view->state_count; i = next) {
		const struct state *state = &view->states[i];
		double seconds = 0;
		uint64_t calls = 0;
		size_t clusters = 0;

		for (next = i; next < view->state_count && same_sites(state, &view->states[next]); next++) {
			seconds += view->states[next].seconds;
			calls += view->states[next].calls;
			if (cluster_count(&view->states[next]) > clusters)
				clusters = cluster_count(&view->states[next]); /* per set of labels */
		}
		if (!calls)
			continue;
		label(state->labels, "function=", function, sizeof(function));
		fputs("\t\"", out);
		quote(out, state->from ? state->from : state->to);
		if (state->from) {
			fputs("\" -> \"", out);
			quote(out, state->to);
		}
		fputs("\" [label=\"", out);
		if (!state->from) {
			quote(out, function);
			fputs("\\n", out);
			words = words_of(view, state);
			quote(out, words ? words : state->to);
			fputs("\\n", out);
			free(words);
		}
		fprintf(out, "%llu x, %.3f s", (unsigned long long)calls, seconds);
		if (clusters)
			fprintf(out, ", %zu cluster%s", clusters, clusters == 1 ? "" : "s");
		fputs("\"];\n", out);
	}
	fputs("}\n", out);
}
