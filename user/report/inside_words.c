// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/inside_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/json.h"
#include "report/record.h"

#define FUNCTIONS_MOST 5  /* of a record */
#define LEAST_LISTED 0.01 /* share of all samples */
#define PHRASE_MOST 2
#define LEAST_SAID 0.1

/* The samples of a function, of the kernel, or of a file whose functions are not known. */
struct function {
	const char *site;		  /* its place with most samples */
	const struct source_frame *frame; /* NULL: not known */
	uint64_t samples;
};

/* Returns the function of a place, into which others may be inlined; NULL where it is not known. */
static const struct source_frame *frame_of(const struct source_names *names, const char *site)
{
	size_t count;
	const struct source_frame *frames = source_names__of(names, site, strlen(site), &count);

	return count && frames[count - 1].function ? &frames[count - 1] : NULL;
}

static bool same(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool belongs(const struct function *function, const char *site, const struct source_frame *frame)
{
	size_t file = strcspn(site, "@");

	if (frame || function->frame)
		return frame && function->frame && same(frame->function, function->frame->function) &&
		       same(frame->file, function->frame->file);
	return strcspn(function->site, "@") == file && !strncmp(function->site, site, file);
}

static int compare(const void *a, const void *b)
{
	const struct function *left = a, *right = b;

	if (left->samples != right->samples)
		return left->samples > right->samples ? -1 : 1;
	return strcmp(left->site, right->site);
}

/* Sums places up to functions, most samples first. Returns a list to be freed, or NULL. */
static struct function *functions_of(const struct result_variance *variance, const struct source_names *names,
				     size_t *count)
{
	struct function *functions = calloc(variance->inside_count + 1, sizeof(*functions));

	*count = 0;
	for (uint32_t i = 0; functions && i < variance->inside_count; i++) {
		const struct result_inside *place = &variance->inside[i];
		const struct source_frame *frame = frame_of(names, place->site);
		size_t at = 0;

		while (at < *count && !belongs(&functions[at], place->site, frame))
			at++;
		if (at == *count)
			functions[(*count)++] = (struct function){.site = place->site, .frame = frame};
		functions[at].samples += place->samples;
	}
	if (functions)
		qsort(functions, *count, sizeof(*functions), compare);
	return functions;
}

/* Returns a function with its line, or what is known instead; malloc'ed, NULL when out of memory. */
static char *words_of(const struct function *function, const struct source_names *names)
{
	const struct source_frame *frame = function->frame;
	char *words = NULL;

	if (frame && frame->line)
		return source_names__place(names, function->site);
	if (frame)
		return strdup(frame->function);
	if (!strcmp(function->site, VAPRO_IN_KERNEL))
		return strdup("the kernel");
	if (!strchr(function->site, '@'))
		return strdup("code of no file");
	return asprintf(&words, "%.*s", (int)strcspn(function->site, "@"), function->site) < 0 ? NULL : words;
}

static bool add_function(cJSON *list, const struct function *function, uint64_t all, const struct source_names *names)
{
	cJSON *item = record__append(list);
	char *words = words_of(function, names);
	bool ok = item && words && record__put_text(item, KEY(inside_function, source), words) &&
		  record__put_text(item, KEY(inside_function, function),
				   function->frame ? function->frame->function : NULL) &&
		  record__put_number(item, KEY(inside_function, pct_of_samples),
				     100 * (double)function->samples / (double)all) &&
		  record__put_uint(item, KEY(inside_function, samples), function->samples);
	free(words);
	return ok;
}

bool inside_words__add_json(cJSON *object, const struct result_variance *variance, const struct source_names *names)
{
	struct function *functions;
	cJSON *list;
	size_t count;
	bool ok;

	if (!variance->inside_samples)
		return true;
	functions = functions_of(variance, names, &count);
	list = record__put_list(object, KEY(variance, inside));
	ok = functions && list;
	for (size_t i = 0; ok && i < count && i < FUNCTIONS_MOST; i++)
		if ((double)functions[i].samples >= LEAST_LISTED * (double)variance->inside_samples)
			ok = add_function(list, &functions[i], variance->inside_samples, names);
	free(functions);
	return ok;
}

char *inside_words__of_record(const cJSON *record)
{
	const cJSON *list = record__item(record, KEY(variance, inside)), *item;
	char *text = NULL;
	size_t size, said = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	cJSON_ArrayForEach(item, list)
	{
		const char *source = record__text(item, KEY(inside_function, source));
		double share = record__number(item, KEY(inside_function, pct_of_samples), 0);

		if (!source || said == PHRASE_MOST || share < 100 * LEAST_SAID)
			continue;
		fprintf(out, "%s%.0f %% in %s", said++ ? ", " : "", share, source);
	}
	if (!said && cJSON_GetArraySize(list))
		fputs("spread over many functions", out);
	if (!fclose(out) && text && *text)
		return text;
	free(text);
	return NULL;
}

char *inside_words__of(const struct result_variance *variance, const struct source_names *names)
{
	cJSON *record = cJSON_CreateObject();
	char *text = NULL;

	if (record && inside_words__add_json(record, variance, names))
		text = inside_words__of_record(record);
	cJSON_Delete(record);
	return text;
}
