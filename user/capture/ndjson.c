/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fragments of other tracers as a stream. Lines may come in any order across ranks and files, so all
 * are read first; threads and states are numbered in the order of their texts, and bundles are emitted
 * in the order of their ends, window by window: the same lines make the same stream in any order.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/ndjson.h"
#include "capture/ndjson_private.h"
#include "base/grow.h"
#include "base/printable.h"

#define SHOWN_MAX 20	    /* bad lines reported one by one */
#define WINDOWS_MAX 1000000 /* with more, times are not of one clock */

static char *copy(const char *text)
{
	return text ? strdup(text) : NULL;
}

/* Numbers a key from 0, or -ENOMEM. */
static int64_t number_of(struct intern *keys, const char *format, const char *a, const char *b, const char *c,
			 const char *d, int x, int y)
{
	char *key;
	uint32_t id;

	if (asprintf(&key, format, x, y, a, b, c, d) < 0)
		return -ENOMEM;
	id = intern__id(keys, key);
	free(key);
	return id == INTERN_NONE ? -ENOMEM : (int64_t)id - 1; /* the table's 0 is NULL */
}

static void take_least(int32_t *number, int32_t other)
{
	if (other >= 0 && (*number < 0 || other < *number))
		*number = other;
}

/* Retains the first in the alphabet. 0 or -ENOMEM. */
static int take_first(const char **text, const char *other)
{
	const char *own;

	if (!other || (*text && strcmp(*text, other) <= 0))
		return 0;
	own = strdup(other);
	if (!own)
		return -ENOMEM;
	free((char *)*text);
	*text = own;
	return 0;
}

/* The order of lines does not count: of contradicting values the least holds. */
static int add_place(struct vapro_place *place, const struct vapro_place *from)
{
	take_least(&place->cpu, from->cpu);
	take_least(&place->socket, from->socket);
	take_least(&place->numa, from->numa);
	if (take_first(&place->core_type, from->core_type) || take_first(&place->cpu_model, from->cpu_model) ||
	    take_first(&place->cgroup, from->cgroup))
		return -ENOMEM;
	return 0;
}

/* Counts a host once. Returns 0 or -ENOMEM. */
static int add_host(struct ndjson *ndjson, const char *host)
{
	uint32_t id = intern__id(ndjson->hosts, host);

	if (id == INTERN_NONE)
		return -ENOMEM;
	if (id > ndjson->host_count) /* from 1: 0 is NULL's */
		ndjson->host_count = id;
	return 0;
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
		    grow(&ndjson->seen, &ndjson->seen_capacity, (size_t)id + 1, sizeof(*ndjson->seen)) ||
		    grow(&ndjson->places, &ndjson->place_capacity, (size_t)id + 1, sizeof(*ndjson->places)))
			return -ENOMEM;
		thread = &ndjson->threads[id];
		*thread = *from;
		thread->id = (uint32_t)id;
		thread->job = copy(from->job);
		thread->host = copy(from->host);
		ndjson->places[id] = (struct vapro_place){.cpu = -1, .socket = -1, .numa = -1};
		ndjson->thread_count++;
		if (!thread->job || !thread->host || add_host(ndjson, thread->host))
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
	/* of contradicting values the least holds */
	if (!thread->pid || (from->pid && from->pid < thread->pid))
		thread->pid = from->pid;
	if (!thread->tid || (from->tid && from->tid < thread->tid))
		thread->tid = from->tid;
	if (add_place(&ndjson->places[id], &line->place))
		return -ENOMEM;
	return id;
}

static int64_t add_state(struct ndjson *ndjson, const struct ndjson_line *line)
{
	const struct vapro_state *from = &line->state;
	int64_t id = number_of(ndjson->state_keys, "%d%d\n%s\n%s\n%s\n%s", from->from ? from->from : "", from->to,
			       from->labels, from->common, from->class, from->from != NULL);
	struct vapro_state *state;

	if (id < 0)
		return id;
	if ((size_t)id < ndjson->state_count)
		goto symbols;
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
	};
	if (!state->to || !state->labels || !state->common || (from->from && !state->from))
		return -ENOMEM;
symbols:
	state = &ndjson->states[id];
	/* symbols are no part of a state */
	if (take_first(&state->from_symbol, from->from_symbol) || take_first(&state->to_symbol, from->to_symbol))
		return -ENOMEM;
	return id;
}

/* Returns 0, -EINVAL with the reason in why, or -ENOMEM. */
static int add_line(struct ndjson *ndjson, const char *text, char *why, size_t why_size)
{
	struct ndjson_line line;
	int64_t thread, state;
	int ret = ndjson_line__parse(&line, text, &ndjson->names, why, why_size);

	if (ret)
		goto cleanup;
	thread = add_thread(ndjson, &line);
	state = add_state(ndjson, &line);
	if (thread < 0 || state < 0 ||
	    grow(&ndjson->bundles, &ndjson->capacity, ndjson->count + 1, sizeof(*ndjson->bundles))) {
		ret = -ENOMEM;
		goto cleanup;
	}
	line.bundle.thread = (uint32_t)thread;
	line.bundle.state = (uint32_t)state;
	ndjson->bundles[ndjson->count++] = line.bundle;
	ndjson->instructions |= line.instructions;
cleanup:
	ndjson_line__free(&line);
	return ret;
}

static void report_unknown(const struct ndjson *ndjson)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, ndjson->names.unknown_factors)
	{
		printable(item->string); /* goes to a terminal */
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
			ret = add_line(ndjson, text, why, sizeof(why));
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

static int read_file(struct ndjson *ndjson, const char *path, bool strict, uint64_t *bad_lines, char *err,
		     size_t err_size)
{
	bool standard = !strcmp(path, "-");
	FILE *file = standard ? stdin : fopen(path, "re");
	uint64_t bad = 0;
	int ret;

	if (!file) {
		ret = -errno;
		snprintf(err, err_size, "%s: %s", path, strerror(-ret));
		return ret;
	}
	free(ndjson->path);
	ndjson->path = strdup(standard ? "standard input" : path);
	ret = ndjson->path ? read_lines(ndjson, file, strict, &bad, err, err_size) : -ENOMEM;
	*bad_lines += bad;
	if (!standard)
		fclose(file);
	return ret;
}

struct ndjson *ndjson__read(const char *const *paths, size_t count, bool strict, uint64_t *bad_lines, char *err,
			    size_t err_size)
{
	struct ndjson *ndjson = calloc(1, sizeof(*ndjson));
	int ret = -ENOMEM;

	*bad_lines = 0;
	if (!ndjson)
		goto cleanup;
	ndjson->thread_keys = intern__new();
	ndjson->state_keys = intern__new();
	ndjson->hosts = intern__new();
	if (!ndjson->thread_keys || !ndjson->state_keys || !ndjson->hosts)
		goto cleanup;
	ret = 0;
	for (size_t i = 0; !ret && i < count; i++)
		ret = read_file(ndjson, paths[i], strict, bad_lines, err, err_size);
	if (ret)
		goto cleanup;
	report_unknown(ndjson);
	ret = ndjson__order(ndjson);
cleanup:
	if (!ret)
		return ndjson;
	if (ret == -ENOMEM)
		snprintf(err, err_size, "%s: %s", paths[0], strerror(ENOMEM));
	ndjson__free(ndjson);
	errno = -ret;
	return NULL;
}

bool ndjson__by_instructions(const struct ndjson *ndjson)
{
	return ndjson->instructions;
}

uint64_t ndjson__hosts(const struct ndjson *ndjson)
{
	return ndjson->host_count;
}

const char *ndjson__named(const struct ndjson *ndjson, int number)
{
	return ndjson->names.magnitude[number];
}

static int put_tables(const struct ndjson *ndjson, uint64_t begin_ns, struct stream_sink *sink)
{
	/* times are UTC already; 0 would mean no clock */
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
		event = (struct stream_event){.type = STREAM_PLACE, .place = ndjson->places[i]};
		if (!ret && (event.place.cpu >= 0 || event.place.socket >= 0 || event.place.numa >= 0 ||
			     event.place.core_type || event.place.cpu_model || event.place.cgroup))
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
	uint64_t end_ns = begin_ns + window; /* the first window is all new */
	struct stream_event event;
	size_t next = 0;
	int ret = 0;

	for (bool last = false; !ret && !last; begin_ns = end_ns, end_ns += stride) {
		last = end_ns >= last_ns;
		if (last)
			end_ns = last_ns;
		while (!ret && next < ndjson->count && ndjson->bundles[next].end_ns < end_ns) {
			event = (struct stream_event){.type = STREAM_BUNDLE, .bundle = ndjson->bundles[next++]};
			ret = stream__put(sink, &event);
		}
		if (ret)
			break;
		event = (struct stream_event){
		    .type = STREAM_WINDOW,
		    .window = {.begin_ns = begin_ns,
			       .end_ns = end_ns,
			       .last = last,
			       .daemon_cpu_pct = NAN,
			       .io_traced_pct = NAN,
			       .io_tax_pct = NAN,
			       .bystander_hits = NAN,
			       .bystander_pct = NAN},
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
		free((char *)ndjson->places[i].core_type);
		free((char *)ndjson->places[i].cpu_model);
		free((char *)ndjson->places[i].cgroup);
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
	intern__free(ndjson->hosts);
	ndjson_line__free_names(&ndjson->names);
	free(ndjson->threads);
	free(ndjson->seen);
	free(ndjson->places);
	free(ndjson->states);
	free(ndjson->bundles);
	free(ndjson->path);
	free(ndjson);
}

int ndjson__replay(const char *const *paths, size_t count, bool strict, double window_s, struct stream_sink *sink,
		   uint64_t *bad_lines, char *err, size_t err_size)
{
	struct ndjson *ndjson = ndjson__read(paths, count, strict, bad_lines, err, err_size);
	int ret;

	if (!ndjson)
		return -errno;
	ret = ndjson__feed(ndjson, window_s, sink, err, err_size);
	ndjson__free(ndjson);
	return ret;
}
