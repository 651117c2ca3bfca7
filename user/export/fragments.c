// SPDX-License-Identifier: GPL-2.0-or-later
#include "export/fragments.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/grow.h"
#include "capture/output_file.h"
#include "export/csv.h"
#include "model/state_id.h"
#include "report/json.h"

/* A thread or a state as all of its lines have it. */
struct heading {
	char *text;   /* NULL: it was not announced */
	char *labels; /* of a state as NDJSON: its labels in "workload" */
	int32_t rank;
	bool chosen;
};

struct headings {
	struct heading *items;
	size_t count;
};

struct fragments {
	struct stream_sink sink; /* first */
	struct stream_sink *to;
	struct fragments_choice choice;
	FILE *out;
	bool csv;
	int error;
	uint64_t lines;
	struct stream_clock clock;
	struct headings threads, states;
	uint64_t begin_ns; /* of the first window; 0: not known yet */
	/* bundles, times in UTC: of the first window, until its begin is known; and those that have not ended */
	struct vapro_bundle *early, *open;
	size_t early_count, early_capacity, open_count, open_capacity;
};

static const char *const magnitude_names[VAPRO_NAMED] = {"instructions", "bytes"};

static const char *magnitude_name(const struct fragments *fragments, int magnitude)
{
	return magnitude < VAPRO_NAMED ? magnitude_names[magnitude] : fragments->choice.named[magnitude - VAPRO_NAMED];
}

static void write_csv_columns(const struct fragments *fragments)
{
	fputs("job,host,rank,thread,pid,tid,class,function,from,to,state_id,labels,n,open,start_ns,end_ns,duration_ns,"
	      "min_ns,max_ns",
	      fragments->out);
	for (int i = 0; i < VAPRO_MAGNITUDES; i++) {
		const char *name = magnitude_name(fragments, i);

		if (name)
			fprintf(fragments->out, ",%s_min,%s_max", name, name);
	}
	for (int i = 0; i < VAPRO_FACTORS; i++)
		fprintf(fragments->out, ",%s%s", vapro_factor_name[i], i < VAPRO_FACTOR_COUNTS ? "_ns" : "");
	fputs("\r\n", fragments->out);
}

static void write_csv(struct fragments *fragments, const struct vapro_bundle *bundle)
{
	struct csv_row row = {.out = fragments->out, .begun = true};

	fprintf(fragments->out, "%s,%s", fragments->threads.items[bundle->thread].text,
		fragments->states.items[bundle->state].text);
	csv__integer(&row, bundle->n);
	csv__flag(&row, bundle->flags & VAPRO_BUNDLE_OPEN);
	csv__integer(&row, (int64_t)bundle->start_ns);
	csv__integer(&row, (int64_t)bundle->end_ns);
	csv__integer(&row, (int64_t)bundle->sum_ns);
	csv__integer(&row, (int64_t)bundle->min_ns);
	csv__integer(&row, (int64_t)bundle->max_ns);
	for (int i = 0; i < VAPRO_MAGNITUDES; i++) {
		if (!magnitude_name(fragments, i))
			continue;
		csv__number(&row, bundle->magnitude_min[i]);
		csv__number(&row, bundle->magnitude_max[i]);
	}
	for (int i = 0; i < VAPRO_FACTORS; i++)
		csv__number(&row, bundle->factor[i]);
	csv__end(&row);
}

/* A bundle's amount of work is that of its fragments on average: the reader takes one number. */
static void write_workload(const struct fragments *fragments, const struct vapro_bundle *bundle, const char *labels)
{
	const char *comma = *labels ? "," : "";

	fprintf(fragments->out, ",\"workload\":{%s", labels);
	for (int i = 0; i < VAPRO_MAGNITUDES; i++) {
		double amount = (bundle->magnitude_min[i] + bundle->magnitude_max[i]) / 2;

		if (!magnitude_name(fragments, i) || amount <= 0)
			continue;
		fprintf(fragments->out, "%s\"%s\":%.17g", comma, magnitude_name(fragments, i), amount);
		comma = ",";
	}
	putc('}', fragments->out);
}

static void write_factors(const struct fragments *fragments, const struct vapro_bundle *bundle)
{
	const char *before = ",\"factors\":{";

	for (int i = 0; i < VAPRO_FACTORS; i++) {
		if (bundle->factor[i] <= 0)
			continue;
		fprintf(fragments->out, "%s\"%s%s\":%.17g", before, vapro_factor_name[i],
			i < VAPRO_FACTOR_COUNTS ? "_ns" : "", bundle->factor[i]);
		before = ",";
	}
	if (before[1] == '\0')
		putc('}', fragments->out);
}

static void write_ndjson(struct fragments *fragments, const struct vapro_bundle *bundle)
{
	const struct heading *state = &fragments->states.items[bundle->state];

	fprintf(fragments->out, "{%s,%s,\"start_ns\":%" PRIu64 ",\"duration_ns\":%" PRIu64,
		fragments->threads.items[bundle->thread].text, state->text, bundle->start_ns, bundle->sum_ns);
	if (bundle->n > 1)
		fprintf(fragments->out, ",\"n\":%u,\"end_ns\":%" PRIu64 ",\"min_ns\":%" PRIu64 ",\"max_ns\":%" PRIu64,
			bundle->n, bundle->end_ns, bundle->min_ns, bundle->max_ns);
	if (bundle->flags & VAPRO_BUNDLE_OPEN)
		fputs(",\"open\":true", fragments->out);
	write_workload(fragments, bundle, state->labels);
	write_factors(fragments, bundle);
	fputs("}\n", fragments->out);
}

/* Whether a bundle overlaps the chosen time. */
static bool is_in_time(const struct fragments *fragments, const struct vapro_bundle *bundle)
{
	const struct vapro_selection *selection = &fragments->choice.selection;
	uint64_t offset = selection->relative ? fragments->begin_ns : 0;

	return (!selection->begin_ns || bundle->end_ns > selection->begin_ns + offset) &&
	       (!selection->end_ns || bundle->start_ns < selection->end_ns + offset);
}

static void write_bundle(struct fragments *fragments, const struct vapro_bundle *bundle)
{
	if (!is_in_time(fragments, bundle))
		return;
	if (fragments->csv)
		write_csv(fragments, bundle);
	else
		write_ndjson(fragments, bundle);
	fragments->lines++;
}

/* Writes the bundles that waited for the begin of the run, which is now known, or never will be. */
static void write_early(struct fragments *fragments, uint64_t begin_ns)
{
	fragments->begin_ns = begin_ns;
	for (size_t i = 0; i < fragments->early_count; i++)
		write_bundle(fragments, &fragments->early[i]);
	free(fragments->early);
	fragments->early = NULL;
	fragments->early_count = fragments->early_capacity = 0;
}

static int append(struct vapro_bundle **list, size_t *count, size_t *capacity, const struct vapro_bundle *bundle)
{
	if (grow(list, capacity, *count + 1, sizeof(**list)))
		return -ENOMEM;
	(*list)[(*count)++] = *bundle;
	return 0;
}

static int add_bundle(struct fragments *fragments, const struct vapro_bundle *bundle)
{
	uint64_t offset = fragments->clock.utc_ns - fragments->clock.mono_ns;
	struct vapro_bundle own = *bundle;

	if (bundle->thread >= fragments->threads.count || bundle->state >= fragments->states.count ||
	    !fragments->threads.items[bundle->thread].chosen || !fragments->states.items[bundle->state].chosen)
		return 0;
	own.start_ns += offset;
	own.end_ns += offset;
	if (own.flags & VAPRO_BUNDLE_OPEN)
		return append(&fragments->open, &fragments->open_count, &fragments->open_capacity, &own);
	if (fragments->choice.selection.relative && !fragments->begin_ns)
		return append(&fragments->early, &fragments->early_count, &fragments->early_capacity, &own);
	write_bundle(fragments, &own);
	return 0;
}

/* Returns an object's members as text without braces, malloc'ed; frees the object. NULL when out of memory. */
static char *members(cJSON *object, bool ok)
{
	char *text = ok ? json__finish(object) : NULL;
	size_t length;

	if (!ok)
		cJSON_Delete(object);
	if (!text)
		return NULL;
	length = strlen(text);
	memmove(text, text + 1, length);
	text[length - 2] = '\0';
	return text;
}

static char *thread_as_ndjson(const struct vapro_thread *thread)
{
	cJSON *object = cJSON_CreateObject();
	bool ok = object && json__add_number(object, "rank", thread->rank, 0) &&
		  json__add_number(object, "thread", thread->thread, 0) &&
		  (!thread->world_size || json__add_uint(object, "world_size", thread->world_size)) &&
		  json__add_uint(object, "pid", thread->pid) && json__add_uint(object, "tid", thread->tid) &&
		  json__add_text(object, "host", thread->host) &&
		  (!thread->job || !*thread->job || json__add_text(object, "job", thread->job));

	return members(object, ok);
}

static bool add_symbol(cJSON *object, const char *key, const char *symbol)
{
	return !symbol || !*symbol || json__add_text(object, key, symbol);
}

/* A vertex of communication or IO is at a call-site; an edge between two of them that polls has none of its own. */
static char *state_as_ndjson(const struct vapro_state *state)
{
	bool computes = state->class == VAPRO_COMPUTATION;
	char id[STATE_ID_SIZE];
	cJSON *object = cJSON_CreateObject();
	bool ok = object && json__add_text(object, "class", vapro_class_name[state->class]);

	if (ok && computes)
		ok = json__add_text(object, "from", state->from) && json__add_text(object, "to", state->to) &&
		     add_symbol(object, "from_symbol", state->from_symbol) &&
		     add_symbol(object, "to_symbol", state->to_symbol);
	else if (ok)
		ok = json__add_text(object, "at", state->to) && add_symbol(object, "at_symbol", state->to_symbol) &&
		     (!state->from || json__add_text(object, "from", state->from));
	ok = ok && json__add_text(object, "state_id", state_id__text(state, id));
	return members(object, ok);
}

/* Labels are words "key=value", joined by blanks. */
static char *labels_as_ndjson(const char *labels)
{
	cJSON *object = cJSON_CreateObject();
	char *copy = strdup(labels), *rest = copy, *word;
	bool ok = object && copy;

	while (ok && (word = strsep(&rest, " "))) {
		char *value = strchr(word, '=');

		if (!value)
			continue;
		*value++ = '\0';
		ok = json__add_text(object, word, value);
	}
	free(copy);
	return members(object, ok);
}

static char *thread_as_csv(const struct vapro_thread *thread)
{
	char *text = NULL;
	size_t size;
	struct csv_row row = {.out = open_memstream(&text, &size)};

	if (!row.out)
		return NULL;
	csv__text(&row, thread->job);
	csv__text(&row, thread->host);
	csv__integer(&row, thread->rank);
	csv__integer(&row, thread->thread);
	csv__integer(&row, thread->pid);
	csv__integer(&row, thread->tid);
	fclose(row.out);
	return text;
}

static char *state_as_csv(const struct vapro_state *state)
{
	const char *function = strstr(state->labels, "function=");
	char name[128] = "", id[STATE_ID_SIZE], *text = NULL;
	size_t size;
	struct csv_row row = {.out = open_memstream(&text, &size)};

	if (!row.out)
		return NULL;
	/* of computation the label is that of the calls around it: "from.function" */
	if (function && state->class != VAPRO_COMPUTATION && (function == state->labels || function[-1] == ' '))
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(function + 9, " "), function + 9);
	csv__text(&row, vapro_class_name[state->class]);
	csv__text(&row, *name ? name : NULL);
	csv__text(&row, state->from);
	csv__text(&row, state->to);
	csv__text(&row, state_id__text(state, id));
	csv__text(&row, state->labels);
	fclose(row.out);
	return text;
}

static bool has(const char *text, const char *part)
{
	return text && strstr(text, part);
}

static bool is_chosen_state(const struct fragments *fragments, const struct vapro_state *state)
{
	const char *part = fragments->choice.state;
	char id[STATE_ID_SIZE];

	return !part || !strcmp(state_id__text(state, id), part) || has(state->from, part) || has(state->to, part) ||
	       has(state->labels, part) || has(state->from_symbol, part) || has(state->to_symbol, part);
}

static bool is_chosen_rank(const struct fragments *fragments, int32_t rank)
{
	const struct vapro_selection *selection = &fragments->choice.selection;

	for (uint32_t i = 0; i < selection->range_count; i++)
		if (rank >= selection->ranks[i][0] && rank <= selection->ranks[i][1])
			return true;
	return !selection->range_count;
}

/* Returns the heading of a number, made where it is new; NULL when out of memory. */
static struct heading *heading_at(struct headings *headings, uint32_t number)
{
	struct heading *heading;

	if (grow(&headings->items, &headings->count, (size_t)number + 1, sizeof(*headings->items)))
		return NULL;
	heading = &headings->items[number];
	free(heading->text);
	free(heading->labels);
	*heading = (struct heading){.text = NULL};
	return heading;
}

static int add_thread(struct fragments *fragments, const struct vapro_thread *thread)
{
	struct heading *heading = heading_at(&fragments->threads, thread->id);

	if (!heading)
		return -ENOMEM;
	heading->chosen = is_chosen_rank(fragments, thread->rank);
	heading->text = fragments->csv ? thread_as_csv(thread) : thread_as_ndjson(thread);
	return heading->text ? 0 : -ENOMEM;
}

static int add_state(struct fragments *fragments, const struct vapro_state *state)
{
	struct heading *heading = heading_at(&fragments->states, state->id);

	if (!heading)
		return -ENOMEM;
	heading->chosen = is_chosen_state(fragments, state);
	heading->text = fragments->csv ? state_as_csv(state) : state_as_ndjson(state);
	if (heading->text && !fragments->csv)
		heading->labels = labels_as_ndjson(state->labels);
	return heading->text && (fragments->csv || heading->labels) ? 0 : -ENOMEM;
}

/* What had not ended at a window's end comes again in the next one, as ended or not. */
static void end_window(struct fragments *fragments, const struct stream_window *window)
{
	if (!fragments->begin_ns)
		write_early(fragments, window->begin_ns);
	if (!window->last)
		fragments->open_count = 0;
}

static int put(struct stream_sink *sink, const struct stream_event *event)
{
	struct fragments *fragments = (struct fragments *)sink;
	int error = 0;

	switch (event->type) {
	case STREAM_CLOCK:
		fragments->clock = event->clock;
		break;
	case STREAM_THREAD:
		error = add_thread(fragments, &event->thread);
		break;
	case STREAM_STATE:
		error = add_state(fragments, &event->state);
		break;
	case STREAM_BUNDLE:
		error = add_bundle(fragments, &event->bundle);
		break;
	case STREAM_WINDOW:
		end_window(fragments, &event->window);
		break;
	default:
		break;
	}
	return error ? error : stream__put(fragments->to, event);
}

/* Opens a file, whose reader is waited for where it is a FIFO. Returns NULL with errno set. */
static FILE *open_output(const char *path)
{
	struct stat status;
	int fd = output_file__open(path, OUTPUT_FILE_REPLACE, 0640, &status), error;
	FILE *out = NULL;

	if (fd >= 0 && fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK) == 0)
		out = fdopen(fd, "w");
	error = errno;
	if (!out && fd >= 0)
		close(fd);
	errno = error;
	return out;
}

struct fragments *fragments__open(const char *path, const struct fragments_choice *choice, struct stream_sink *to)
{
	struct fragments *fragments = calloc(1, sizeof(*fragments));
	size_t length = strlen(path);
	int error;

	if (!fragments)
		return NULL;
	*fragments = (struct fragments){.sink = {.put = put}, .to = to, .choice = *choice, .out = open_output(path)};
	if (!fragments->out) {
		error = errno;
		free(fragments);
		errno = error;
		return NULL;
	}
	fragments->csv = length > 4 && !strcmp(path + length - 4, ".csv");
	if (fragments->csv)
		write_csv_columns(fragments);
	return fragments;
}

struct stream_sink *fragments__sink(struct fragments *fragments)
{
	return &fragments->sink;
}

static void free_headings(struct headings *headings)
{
	for (size_t i = 0; i < headings->count; i++) {
		free(headings->items[i].text);
		free(headings->items[i].labels);
	}
	free(headings->items);
}

int fragments__close(struct fragments *fragments, uint64_t *lines)
{
	int error = 0;

	if (!fragments)
		return 0;
	if (fragments->early_count)
		write_early(fragments, fragments->early[0].start_ns);
	for (size_t i = 0; i < fragments->open_count; i++)
		write_bundle(fragments, &fragments->open[i]);
	if (ferror(fragments->out))
		error = -EIO;
	if (fclose(fragments->out))
		error = -errno;
	*lines = fragments->lines;
	free_headings(&fragments->threads);
	free_headings(&fragments->states);
	free(fragments->early);
	free(fragments->open);
	free(fragments);
	return error;
}
