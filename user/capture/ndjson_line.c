/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/ndjson_line.h"
#include "model/cells.h"
#include "base/printable.h"

struct parser {
	const char *text;
	struct ndjson_line *line;
	struct ndjson_names *names;
	char *why;
	size_t why_size;
};

__attribute__((format(printf, 2, 3))) static int refuse(struct parser *parser, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(parser->why, parser->why_size, format, arguments);
	va_end(arguments);
	printable(parser->why); /* quotes the input and goes to a terminal */
	return -EINVAL;
}

static const cJSON *get(const struct parser *parser, const char *key)
{
	return cJSON_GetObjectItemCaseSensitive(parser->line->object, key);
}

static const char *skip_string(const char *at)
{
	for (at++; *at && *at != '"'; at++) {
		if (*at == '\\' && at[1])
			at++;
	}
	return *at ? at + 1 : at;
}

/*
 * cJSON keeps numbers as doubles, and UTC in ns is beyond 2^53: whole numbers at the top level are
 * read again from the text, which is known to be valid JSON.
 */
static bool exact_uint(const char *text, const char *key, uint64_t *value)
{
	size_t length = strlen(key);
	int depth = 0;

	for (const char *at = text; *at;) {
		const char *string = at;

		if (*at == '{' || *at == '[')
			depth++;
		if (*at == '}' || *at == ']')
			depth--;
		if (*at != '"') {
			at++;
			continue;
		}
		at = skip_string(at);
		if (depth != 1 || (size_t)(at - string) != length + 2 || memcmp(string + 1, key, length))
			continue;
		at += strspn(at, " \t\r\n");
		if (*at != ':')
			continue; /* a value that reads like the key */
		at += 1 + strspn(at + 1, " \t\r\n");
		length = strspn(at, "0123456789");
		if (!length || length > 19 || strchr(".eE", at[length]))
			return false;
		*value = strtoull(at, NULL, 10);
		return true;
	}
	return false;
}

/* Reads a time or count: 0 .. max. An optional one may be missing: *value stays. */
static int get_uint(struct parser *parser, const char *key, bool optional, uint64_t max, uint64_t *value)
{
	const cJSON *item = get(parser, key);

	if (!item)
		return optional ? 0 : refuse(parser, "%s is missing", key);
	if (!cJSON_IsNumber(item))
		return refuse(parser, "%s is no number", key);
	if (item->valuedouble < 0)
		return refuse(parser, "%s is negative", key);
	if (!(item->valuedouble <= (double)max))
		return refuse(parser, "%s is too large", key);
	if (!exact_uint(parser->text, key, value))
		*value = (uint64_t)llround(item->valuedouble);
	return *value > max ? refuse(parser, "%s is too large", key) : 0;
}

static int get_text(struct parser *parser, const char *key, bool optional, const char **value)
{
	const cJSON *item = get(parser, key);

	if (!item)
		return optional ? 0 : refuse(parser, "%s is missing", key);
	if (!cJSON_IsString(item) || !*item->valuestring)
		return refuse(parser, "%s is no text", key);
	*value = item->valuestring;
	return 0;
}

static int parse_thread(struct parser *parser)
{
	struct vapro_thread *thread = &parser->line->thread;
	uint64_t number = 0, world = 0, pid = 0, tid = 0;
	const cJSON *rank = get(parser, "rank");
	int ret;

	if (!rank)
		return refuse(parser, "rank is missing");
	if (!cJSON_IsNumber(rank) || rank->valuedouble != rank->valueint || rank->valueint < -1)
		return refuse(parser, "rank is no rank (0 and up, -1 for unknown)");
	thread->rank = rank->valueint;
	thread->job = "ndjson";
	thread->host = "unknown";
	ret = get_uint(parser, "thread", true, INT32_MAX, &number);
	if (!ret)
		ret = get_uint(parser, "world_size", true, INT32_MAX, &world);
	if (!ret)
		ret = get_uint(parser, "pid", true, UINT32_MAX, &pid);
	if (!ret)
		ret = get_uint(parser, "tid", true, UINT32_MAX, &tid);
	if (!ret)
		ret = get_text(parser, "job", true, &thread->job);
	if (!ret)
		ret = get_text(parser, "host", true, &thread->host);
	thread->thread = (int32_t)number;
	thread->world_size = (uint32_t)world;
	thread->pid = (uint32_t)pid;
	thread->tid = (uint32_t)tid;
	return ret;
}

static int get_number(struct parser *parser, const char *key, int32_t *value)
{
	uint64_t number = 0;
	int ret = get_uint(parser, key, true, INT32_MAX, &number);

	*value = !ret && get(parser, key) ? (int32_t)number : -1;
	return ret;
}

static int parse_place(struct parser *parser)
{
	struct vapro_place *place = &parser->line->place;
	int ret = get_number(parser, "cpu", &place->cpu);

	if (!ret)
		ret = get_number(parser, "socket", &place->socket);
	if (!ret)
		ret = get_number(parser, "numa", &place->numa);
	if (!ret)
		ret = get_text(parser, "core_type", true, &place->core_type);
	if (!ret)
		ret = get_text(parser, "cpu_model", true, &place->cpu_model);
	return ret ? ret : get_text(parser, "cgroup", true, &place->cgroup);
}

static int parse_state(struct parser *parser)
{
	struct vapro_state *state = &parser->line->state;
	const char *class = NULL;
	int ret = get_text(parser, "class", false, &class), index = 0;

	if (ret)
		return ret;
	while (index < VAPRO_CLASSES && strcmp(class, vapro_class_name[index]))
		index++;
	if (index == VAPRO_CLASSES)
		return refuse(parser, "class '%.40s' is unknown: computation, communication or io", class);
	state->class = (enum vapro_class)index;
	if (state->class == VAPRO_COMPUTATION) {
		ret = get_text(parser, "from", false, &state->from);
		if (!ret)
			ret = get_text(parser, "to", false, &state->to);
		if (!ret)
			ret = get_text(parser, "from_symbol", true, &state->from_symbol);
		if (!ret)
			ret = get_text(parser, "to_symbol", true, &state->to_symbol);
		return ret;
	}
	ret = get_text(parser, "at", false, &state->to);
	if (!ret)
		ret = get_text(parser, "at_symbol", true, &state->to_symbol);
	return ret;
}

static int parse_times(struct parser *parser)
{
	struct vapro_bundle *bundle = &parser->line->bundle;
	const cJSON *open = get(parser, "open");
	uint64_t n = 1;
	int ret = get_uint(parser, "start_ns", false, NDJSON_TIME_MAX, &bundle->start_ns);

	if (!ret)
		ret = get_uint(parser, "duration_ns", false, NDJSON_TIME_MAX, &bundle->sum_ns);
	if (!ret)
		ret = get_uint(parser, "n", true, UINT32_MAX, &n);
	if (ret)
		return ret;
	if (!n)
		return refuse(parser, "n is 0");
	bundle->n = (uint32_t)n;
	bundle->end_ns = bundle->start_ns + bundle->sum_ns;
	bundle->min_ns = bundle->max_ns = bundle->sum_ns / n;
	if (n > 1)
		ret = get_uint(parser, "end_ns", false, NDJSON_TIME_MAX, &bundle->end_ns);
	if (!ret)
		ret = get_uint(parser, "end_ns", true, NDJSON_TIME_MAX, &bundle->end_ns);
	if (!ret)
		ret = get_uint(parser, "min_ns", true, NDJSON_TIME_MAX, &bundle->min_ns);
	if (!ret)
		ret = get_uint(parser, "max_ns", true, NDJSON_TIME_MAX, &bundle->max_ns);
	if (ret)
		return ret;
	if (n > 1 && !get(parser, "max_ns") && bundle->sum_ns % n)
		bundle->max_ns++;
	if (bundle->end_ns < bundle->start_ns)
		return refuse(parser, "end_ns lies before start_ns");
	if (bundle->sum_ns > bundle->end_ns - bundle->start_ns)
		return refuse(parser, "duration_ns is longer than start_ns to end_ns");
	if (n == 1 && (bundle->min_ns != bundle->sum_ns || bundle->max_ns != bundle->sum_ns ||
		       bundle->end_ns - bundle->start_ns != bundle->sum_ns))
		return refuse(parser,
			      "one fragment has one duration: end_ns, min_ns and max_ns contradict duration_ns");
	/* compared as means: the products may overflow */
	if (bundle->min_ns > bundle->max_ns || bundle->min_ns > bundle->sum_ns / n ||
	    bundle->max_ns < (bundle->sum_ns + n - 1) / n)
		return refuse(parser, "min_ns and max_ns contradict duration_ns (the sum) and n");
	if (cJSON_IsTrue(open)) {
		if (n != 1)
			return refuse(parser, "an open fragment has n 1");
		bundle->flags |= VAPRO_BUNDLE_OPEN;
	}
	return 0;
}

static int find_magnitude(struct parser *parser, const char *name)
{
	if (!strcmp(name, "instructions"))
		return VAPRO_INSTRUCTIONS;
	if (!strcmp(name, "bytes"))
		return VAPRO_BYTES;
	for (int i = 0; i < NDJSON_NAMED; i++) {
		char **slot = &parser->names->magnitude[i];

		if (!*slot)
			*slot = strdup(name);
		if (!*slot)
			return -ENOMEM;
		if (!strcmp(*slot, name))
			return VAPRO_NAMED + i;
	}
	return refuse(parser,
		      "workload.%.40s: only %d magnitudes beside instructions and bytes, and '%.40s' and "
		      "'%.40s' came first; a label is written as text",
		      name, NDJSON_NAMED, parser->names->magnitude[0], parser->names->magnitude[1]);
}

static int compare_labels(const void *a, const void *b)
{
	return strcmp((*(cJSON *const *)a)->string, (*(cJSON *const *)b)->string);
}

/* Blanks separate labels, and the first = ends a key: inside they become _. Returns the end of the copy. */
static char *copy_word(char *to, const char *word, bool key)
{
	for (; *word; word++)
		*to++ = isspace((unsigned char)*word) || iscntrl((unsigned char)*word) || (key && *word == '=') ? '_'
														: *word;
	return to;
}

static char *join(cJSON *const *labels, size_t count, bool common)
{
	static const char *const own[] = {"comm", "file", "peer"}; /* mean one rank only */
	size_t size = 1;
	char *text, *at;

	for (size_t i = 0; i < count; i++)
		size += strlen(labels[i]->string) + strlen(labels[i]->valuestring) + 2;
	text = at = malloc(size);
	if (!text)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		const char *key = labels[i]->string;

		if (common && (!strcmp(key, own[0]) || !strcmp(key, own[1]) || !strcmp(key, own[2])))
			continue;
		if (at > text)
			*at++ = ' ';
		at = copy_word(at, key, true);
		*at++ = '=';
		at = copy_word(at, labels[i]->valuestring, false);
	}
	*at = '\0';
	return text;
}

static int parse_workload(struct parser *parser)
{
	struct ndjson_line *line = parser->line;
	cJSON *workload = (cJSON *)get(parser, "workload"), *item, **labels;
	size_t count = 0;
	int ret = 0;

	if (workload && !cJSON_IsObject(workload))
		return refuse(parser, "workload is no object");
	labels = calloc((size_t)cJSON_GetArraySize(workload) + 1, sizeof(*labels));
	if (!labels)
		return -ENOMEM;
	cJSON_ArrayForEach(item, workload)
	{
		int slot;

		if (cJSON_IsString(item)) {
			labels[count++] = item;
			continue;
		}
		if (!cJSON_IsNumber(item) || !isfinite(item->valuedouble) || item->valuedouble < 0) {
			ret = refuse(parser, "workload.%.40s is neither a text nor a number from 0 up", item->string);
			goto cleanup;
		}
		if (item->valuedouble > CELLS_MAGNITUDE_MAX) {
			ret = refuse(parser, "workload.%.40s is too large", item->string);
			goto cleanup;
		}
		slot = find_magnitude(parser, item->string);
		if (slot < 0) {
			ret = slot;
			goto cleanup;
		}
		line->bundle.magnitude_min[slot] = line->bundle.magnitude_max[slot] = item->valuedouble;
		if (slot == VAPRO_INSTRUCTIONS && line->state.class == VAPRO_COMPUTATION)
			line->instructions = true;
	}
	qsort(labels, count, sizeof(*labels), compare_labels);
	line->state.labels = line->labels = join(labels, count, false);
	line->state.common = line->common = join(labels, count, true);
	if (!line->labels || !line->common)
		ret = -ENOMEM;
cleanup:
	free(labels);
	return ret;
}

static int find_factor(const char *name)
{
	size_t length = strlen(name);

	for (int i = 0; i < VAPRO_FACTORS; i++) {
		size_t known;

		if (*name != *vapro_factor_name[i])
			continue;
		known = strlen(vapro_factor_name[i]);

		if (!strncmp(name, vapro_factor_name[i], known) &&
		    (i < VAPRO_FACTOR_COUNTS ? !strcmp(name + known, "_ns") : known == length))
			return i;
	}
	return -1;
}

static int count_unknown(struct parser *parser, const char *name)
{
	cJSON **unknown = &parser->names->unknown_factors, *count;

	if (!*unknown)
		*unknown = cJSON_CreateObject();
	count = cJSON_GetObjectItemCaseSensitive(*unknown, name);
	if (!count)
		count = cJSON_AddNumberToObject(*unknown, name, 0);
	if (!count)
		return -ENOMEM;
	cJSON_SetNumberValue(count, count->valuedouble + 1);
	return 0;
}

static int parse_factors(struct parser *parser)
{
	const cJSON *factors = get(parser, "factors"), *item;

	if (factors && !cJSON_IsObject(factors))
		return refuse(parser, "factors is no object");
	cJSON_ArrayForEach(item, factors)
	{
		int factor = find_factor(item->string);

		if (!cJSON_IsNumber(item) || !isfinite(item->valuedouble) || item->valuedouble < 0)
			return refuse(parser, "factors.%.40s is no number from 0 up", item->string);
		if (factor >= 0)
			parser->line->bundle.factor[factor] = item->valuedouble;
		else if (count_unknown(parser, item->string))
			return -ENOMEM;
	}
	return 0;
}

int ndjson_line__parse(struct ndjson_line *line, const char *text, struct ndjson_names *names, char *why,
		       size_t why_size)
{
	struct parser parser = {.text = text, .line = line, .names = names, .why = why, .why_size = why_size};
	const char *end = NULL;
	int ret;

	memset(line, 0, sizeof(*line));
	line->object = cJSON_ParseWithOpts(text, &end, true);
	if (!line->object)
		return refuse(&parser, "no JSON (at character %zu)", end ? (size_t)(end - text) + 1 : 1);
	if (!cJSON_IsObject(line->object))
		return refuse(&parser, "no JSON object");
	if (get(&parser, "schema"))
		return refuse(&parser, "this is a line that vapro wrote, not a fragment");
	ret = parse_thread(&parser);
	if (!ret)
		ret = parse_place(&parser);
	if (!ret)
		ret = parse_state(&parser);
	if (!ret)
		ret = parse_times(&parser);
	/* the last ones add to names: only for lines that are good otherwise */
	if (!ret)
		ret = parse_workload(&parser);
	if (!ret)
		ret = parse_factors(&parser);
	return ret;
}

void ndjson_line__free(struct ndjson_line *line)
{
	cJSON_Delete(line->object);
	free(line->labels);
	free(line->common);
}

void ndjson_line__free_names(struct ndjson_names *names)
{
	for (int i = 0; i < NDJSON_NAMED; i++)
		free(names->magnitude[i]);
	cJSON_Delete(names->unknown_factors);
}
