/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fragments of other tracers as a stream. Lines may come in any order across ranks, so all are read
 * first; then they are told in the order of their ends, window by window.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/capture.h"
#include "collect/ndjson_line.h"
#include "model/grow.h"
#include "model/intern.h"

#define SHOWN_MAX 20	    /* bad lines told one by one */
#define WINDOWS_MAX 1000000 /* beyond, times are not of one clock */

struct entry {
	struct vapro_bundle bundle;
	uint64_t line;
};

struct ndjson {
	char *path;
	struct entry *entries; /* by end */
	size_t count, capacity;
	struct vapro_thread *threads;
	struct stream_seen *seen; /* of each thread */
	size_t thread_count, thread_capacity, seen_capacity;
	struct vapro_state *states;
	size_t state_count, state_capacity;
	struct intern *thread_keys, *state_keys;
	struct ndjson_names names;
	bool instructions;
};

static char *copy(const char *text)
{
	return text ? strdup(text) : NULL;
}

/* The number of a key from 0, or -ENOMEM. */
static int64_t number_of(struct intern *keys, const char *format, const char *a, const char *b, const char *c,
			 const char *d, int x, int y)
{
	char *key = NULL;
	size_t size;
	uint32_t id;
	FILE *out = open_memstream(&key, &size);

	if (!out)
		return -ENOMEM;
	fprintf(out, format, x, y, a, b, c, d);
	if (fclose(out)) {
		free(key);
		return -ENOMEM;
	}
	id = intern__id(keys, key);
	free(key);
	return id == INTERN_NONE ? -ENOMEM : (int64_t)id - 1; /* the table's 0 is NULL */
}

static int64_t add_thread(struct ndjson *ndjson, const struct ndjson_line *line)
{
	const struct vapro_thread *from = &line->thread;
	int64_t id = number_of(ndjson->thread_keys, "%d.%d\n%s\n%s%s%s", from->job, from->host, "", "", from->rank,
			       from->thread);
	struct vapro_thread *thread;
	struct stream_seen *seen;

	if (id < 0)
		return id;
	if ((size_t)id == ndjson->thread_count) {
		if (grow(&ndjson->threads, &ndjson->thread_capacity, (size_t)id + 1, sizeof(*ndjson->threads)) ||
		    grow(&ndjson->seen, &ndjson->seen_capacity, (size_t)id + 1, sizeof(*ndjson->seen)))
			return -ENOMEM;
		thread = &ndjson->threads[id];
		*thread = *from;
		thread->id = (uint32_t)id;
		thread->job = copy(from->job);
		thread->host = copy(from->host);
		ndjson->thread_count++;
		if (!thread->job || !thread->host)
			return -ENOMEM;
		ndjson->seen[id] = (struct stream_seen){
		    .thread = (uint32_t)id,
		    .from_ns = line->bundle.start_ns,
		    .to_ns = line->bundle.end_ns,
		};
	}
	thread = &ndjson->threads[id];
	seen = &ndjson->seen[id];
	if (line->bundle.start_ns < seen->from_ns)
		seen->from_ns = line->bundle.start_ns;
	if (line->bundle.end_ns > seen->to_ns)
		seen->to_ns = line->bundle.end_ns;
	if (from->world_size > thread->world_size)
		thread->world_size = from->world_size;
	if (!thread->pid)
		thread->pid = from->pid;
	if (!thread->tid)
		thread->tid = from->tid;
	return id;
}

static int64_t add_state(struct ndjson *ndjson, const struct ndjson_line *line)
{
	const struct vapro_state *from = &line->state;
	int64_t id = number_of(ndjson->state_keys, "%d%d\n%s\n%s\n%s\n%s", from->from ? from->from : "", from->to,
			       from->labels, from->common, from->class, from->from != NULL);
	struct vapro_state *state;

	if (id < 0 || (size_t)id < ndjson->state_count)
		return id;
	if (grow(&ndjson->states, &ndjson->state_capacity, (size_t)id + 1, sizeof(*ndjson->states)))
		return -ENOMEM;
	state = &ndjson->states[ndjson->state_count++];
	*state = (struct vapro_state){
	    .id = (uint32_t)id,
	    .class = from->class,
	    .from = copy(from->from),
	    .to = copy(from->to),
	    .labels = copy(from->labels),
	    .common = copy(from->common),
	    .from_symbol = copy(from->from_symbol),
	    .to_symbol = copy(from->to_symbol),
	};
	if (!state->to || !state->labels || !state->common || (from->from && !state->from))
		return -ENOMEM;
	return id;
}

/* Returns 0, -EINVAL with the reason in why, or -ENOMEM. */
static int add_line(struct ndjson *ndjson, const char *text, uint64_t number, char *why, size_t why_size)
{
	struct ndjson_line line;
	int64_t thread, state;
	int ret = ndjson_line__parse(&line, text, &ndjson->names, why, why_size);

	if (ret)
		goto cleanup;
	thread = add_thread(ndjson, &line);
	state = add_state(ndjson, &line);
	if (thread < 0 || state < 0 ||
	    grow(&ndjson->entries, &ndjson->capacity, ndjson->count + 1, sizeof(*ndjson->entries))) {
		ret = -ENOMEM;
		goto cleanup;
	}
	line.bundle.thread = (uint32_t)thread;
	line.bundle.state = (uint32_t)state;
	ndjson->entries[ndjson->count++] = (struct entry){.bundle = line.bundle, .line = number};
	ndjson->instructions |= line.instructions;
cleanup:
	ndjson_line__free(&line);
	return ret;
}

static int compare_entries(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->bundle.end_ns != y->bundle.end_ns)
		return x->bundle.end_ns < y->bundle.end_ns ? -1 : 1;
	return x->line < y->line ? -1 : x->line > y->line;
}

static int number_calls(struct ndjson *ndjson)
{
	uint64_t *calls = calloc(ndjson->thread_count + 1, sizeof(*calls));

	if (!calls)
		return -ENOMEM;
	for (size_t i = 0; i < ndjson->count; i++) {
		struct vapro_bundle *bundle = &ndjson->entries[i].bundle;

		bundle->first_call = calls[bundle->thread] + 1;
		bundle->last_call = calls[bundle->thread] += bundle->n;
	}
	free(calls);
	return 0;
}

static void tell_unknown(const struct ndjson *ndjson)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, ndjson->names.unknown_factors)
	{
		for (char *c = item->string; *c; c++) { /* it goes to a terminal */
			if (iscntrl((unsigned char)*c))
				*c = '?';
		}
		fprintf(stderr, "vapro: %s: no factor is called '%s' (in %.0f lines); it is passed over\n",
			ndjson->path, item->string, item->valuedouble);
	}
}

static int read_lines(struct ndjson *ndjson, FILE *file, bool strict, uint64_t *bad_lines, char *err, size_t err_size)
{
	char *text = NULL, why[256];
	uint64_t number = 0;
	size_t capacity = 0;
	ssize_t length;
	int ret = 0;

	errno = 0;
	while (!ret && (length = getline(&text, &capacity, file)) >= 0) {
		number++;
		if (strlen(text) != (size_t)length) {
			snprintf(why, sizeof(why), "it has a NUL inside");
			ret = -EINVAL;
		} else if (strspn(text, " \t\r\n") != (size_t)length) {
			ret = add_line(ndjson, text, number, why, sizeof(why));
		}
		if (ret != -EINVAL)
			continue;
		if (strict) {
			snprintf(err, err_size, "%s:%llu: %s", ndjson->path, (unsigned long long)number, why);
			(*bad_lines)++;
			break;
		}
		if ((*bad_lines)++ < SHOWN_MAX)
			fprintf(stderr, "vapro: %s:%llu: %s\n", ndjson->path, (unsigned long long)number, why);
		ret = 0;
	}
	if (!ret && ferror(file))
		ret = errno ? -errno : -EIO;
	if (ret && ret != -EINVAL)
		snprintf(err, err_size, "%s: %s", ndjson->path, strerror(-ret));
	if (*bad_lines > SHOWN_MAX)
		fprintf(stderr, "vapro: %s: %llu bad lines in all\n", ndjson->path, (unsigned long long)*bad_lines);
	free(text);
	return ret;
}

struct ndjson *ndjson__read(const char *path, bool strict, uint64_t *bad_lines, char *err, size_t err_size)
{
	bool standard = !strcmp(path, "-");
	FILE *file = standard ? stdin : fopen(path, "re");
	struct ndjson *ndjson = NULL;
	int ret;

	*bad_lines = 0;
	if (!file) {
		ret = -errno;
		snprintf(err, err_size, "%s: %s", path, strerror(-ret));
		goto cleanup;
	}
	ret = -ENOMEM;
	ndjson = calloc(1, sizeof(*ndjson));
	if (!ndjson)
		goto cleanup;
	ndjson->path = strdup(standard ? "standard input" : path);
	ndjson->thread_keys = intern__new();
	ndjson->state_keys = intern__new();
	if (!ndjson->path || !ndjson->thread_keys || !ndjson->state_keys)
		goto cleanup;
	ret = read_lines(ndjson, file, strict, bad_lines, err, err_size);
	if (ret)
		goto cleanup;
	tell_unknown(ndjson);
	if (ndjson->count)
		qsort(ndjson->entries, ndjson->count, sizeof(*ndjson->entries), compare_entries);
	ret = number_calls(ndjson);
cleanup:
	if (file && !standard)
		fclose(file);
	if (!ret)
		return ndjson;
	if (ret == -ENOMEM)
		snprintf(err, err_size, "%s: %s", path, strerror(ENOMEM));
	ndjson__free(ndjson);
	errno = -ret;
	return NULL;
}

bool ndjson__by_instructions(const struct ndjson *ndjson)
{
	return ndjson->instructions;
}

static int put_tables(const struct ndjson *ndjson, uint64_t begin_ns, struct stream_sink *sink)
{
	/* times are UTC already; 0 would read as no clock at all */
	uint64_t now = begin_ns ? begin_ns : 1;
	struct stream_event event = {.type = STREAM_CLOCK, .clock = {now, now}};
	int ret = stream__put(sink, &event);

	for (size_t i = 0; !ret && i < ndjson->thread_count; i++) {
		event = (struct stream_event){.type = STREAM_THREAD, .thread = ndjson->threads[i]};
		ret = stream__put(sink, &event);
		if (ret)
			break;
		event = (struct stream_event){.type = STREAM_SEEN, .seen = ndjson->seen[i]};
		ret = stream__put(sink, &event);
	}
	for (size_t i = 0; !ret && i < ndjson->state_count; i++) {
		event = (struct stream_event){.type = STREAM_STATE, .state = ndjson->states[i]};
		ret = stream__put(sink, &event);
	}
	return ret;
}

static int put_windows(const struct ndjson *ndjson, double window_s, uint64_t begin_ns, uint64_t last_ns,
		       struct stream_sink *sink)
{
	uint64_t window = (uint64_t)fmax(1, round(window_s * 1e9 / VAPRO_BIN_NS)) * VAPRO_BIN_NS;
	uint64_t stride = (uint64_t)fmax(1, round(window_s * 2 / 3 * 1e9 / VAPRO_BIN_NS)) * VAPRO_BIN_NS;
	uint64_t end_ns = begin_ns + window; /* the first window's new part is all of it */
	struct stream_event event;
	size_t next = 0;
	int ret = 0;

	for (bool last = false; !ret && !last; begin_ns = end_ns, end_ns += stride) {
		last = end_ns >= last_ns;
		if (last)
			end_ns = last_ns;
		while (!ret && next < ndjson->count && ndjson->entries[next].bundle.end_ns < end_ns) {
			event = (struct stream_event){.type = STREAM_BUNDLE, .bundle = ndjson->entries[next++].bundle};
			ret = stream__put(sink, &event);
		}
		if (ret)
			break;
		event = (struct stream_event){
		    .type = STREAM_WINDOW,
		    .window = {.begin_ns = begin_ns, .end_ns = end_ns, .last = last, .daemon_cpu_pct = NAN},
		};
		ret = stream__put(sink, &event);
	}
	return ret;
}

int ndjson__feed(const struct ndjson *ndjson, double window_s, struct stream_sink *sink, char *err, size_t err_size)
{
	struct stream_event end = {.type = STREAM_END};
	uint64_t begin_ns = UINT64_MAX, last_ns = 0;
	int ret;

	if (!ndjson->count) {
		snprintf(err, err_size, "%s: no fragments", ndjson->path);
		return -ENODATA;
	}
	for (size_t i = 0; i < ndjson->thread_count; i++) {
		if (ndjson->seen[i].from_ns < begin_ns)
			begin_ns = ndjson->seen[i].from_ns;
		if (ndjson->seen[i].to_ns > last_ns)
			last_ns = ndjson->seen[i].to_ns;
	}
	begin_ns = begin_ns / VAPRO_BIN_NS * VAPRO_BIN_NS;
	last_ns = (last_ns / VAPRO_BIN_NS + 1) * VAPRO_BIN_NS;
	if ((double)(last_ns - begin_ns) / 1e9 / window_s > WINDOWS_MAX) {
		snprintf(err, err_size, "%s: the fragments span %.0f days: are their times of one clock?", ndjson->path,
			 (double)(last_ns - begin_ns) / 86400e9);
		return -ERANGE;
	}
	ret = put_tables(ndjson, begin_ns, sink);
	if (!ret)
		ret = put_windows(ndjson, window_s, begin_ns, last_ns, sink);
	if (!ret)
		ret = stream__put(sink, &end);
	if (ret)
		snprintf(err, err_size, "%s: the analysis stopped: %s", ndjson->path, strerror(-ret));
	return ret;
}

void ndjson__free(struct ndjson *ndjson)
{
	if (!ndjson)
		return;
	for (size_t i = 0; i < ndjson->thread_count; i++) {
		free((char *)ndjson->threads[i].job);
		free((char *)ndjson->threads[i].host);
	}
	for (size_t i = 0; i < ndjson->state_count; i++) {
		struct vapro_state *state = &ndjson->states[i];

		free((char *)state->from);
		free((char *)state->to);
		free((char *)state->labels);
		free((char *)state->common);
		free((char *)state->from_symbol);
		free((char *)state->to_symbol);
	}
	intern__free(ndjson->thread_keys);
	intern__free(ndjson->state_keys);
	ndjson_names__free(&ndjson->names);
	free(ndjson->threads);
	free(ndjson->seen);
	free(ndjson->states);
	free(ndjson->entries);
	free(ndjson->path);
	free(ndjson);
}

int ndjson__replay(const char *path, bool strict, double window_s, struct stream_sink *sink, uint64_t *bad_lines,
		   char *err, size_t err_size)
{
	struct ndjson *ndjson = ndjson__read(path, strict, bad_lines, err, err_size);
	int ret;

	if (!ndjson)
		return -errno;
	ret = ndjson__feed(ndjson, window_s, sink, err, err_size);
	ndjson__free(ndjson);
	return ret;
}
