// SPDX-License-Identifier: GPL-2.0-or-later
/* Words and JSON made of the functions and lines behind the call-sites of a state. */
#include "report/source_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vapro/bundle.h>

#include "report/json.h"
#include "report/record.h"

#define PATH_MARK "#path:"  /* follows a call-site whose callers are a hash */
#define TEMPLATE_LONGEST 24 /* bytes of template arguments that are shown */
#define ANONYMOUS "(anonymous namespace)"

/* One of the places in a call-site's text, with the part of its symbol text that is the place's. */
struct part {
	const char *site, *symbol; /* symbol NULL: none */
	size_t length, symbol_length;
	const struct source_frame *frames;
	size_t count;
};

static size_t piece_length(const char *text)
{
	const char *end = strstr(text, SITE_CALLED_BY);

	return end ? (size_t)(end - text) : strlen(text);
}

/* Moves to the text behind a piece; NULL at the end. */
static const char *behind(const char *text)
{
	const char *next = text ? strstr(text, SITE_CALLED_BY) : NULL;

	return next ? next + strlen(SITE_CALLED_BY) : NULL;
}

static struct part part_of(const struct source_names *names, const char *site, const char *symbol)
{
	struct part part = {.site = site, .symbol = symbol, .length = piece_length(site)};
	const char *mark = memmem(site, part.length, PATH_MARK, strlen(PATH_MARK));

	/* the last place has all that is left of the symbols */
	part.symbol_length = !symbol ? 0 : site[part.length] ? piece_length(symbol) : strlen(symbol);
	part.frames = source_names__of(names, site, mark ? (size_t)(mark - site) : part.length, &part.count);
	return part;
}

/* Finds the end of a bracketed text that begins here; the text's end where a bracket is missing. */
static const char *past_brackets(const char *text)
{
	int depth = 0;

	for (; *text; text++) {
		depth += *text == '<' || *text == '(' || *text == '[' || *text == '{';
		if (*text == '>' || *text == ')' || *text == ']' || *text == '}')
			depth--;
		if (depth <= 0)
			return text + 1;
	}
	return text;
}

/* Returns the length of an operator's name that begins here, with the word before it, or 0. */
static size_t operator_length(const char *name, const char *at)
{
	static const char word[] = "operator";
	size_t length = strlen(word);

	if (strncmp(at, word, length) || (at > name && at[-1] != ':' && at[-1] != ' '))
		return 0;
	if (!strncmp(at + length, "()", 2))
		return length + 2;
	return length + strspn(at + length, "<>=!+-*/%^&|~,[] ");
}

/* Writes a function without the types of its result and arguments, and without long template arguments. */
static void put_function(FILE *out, const char *function)
{
	const char *begin = function, *at = function;
	size_t skip;

	/* the result's type comes before a blank outside of all brackets */
	while (*at && (*at != '(' || !strncmp(at, ANONYMOUS, strlen(ANONYMOUS)))) {
		skip = operator_length(function, at);
		if (skip)
			at += skip;
		else if (*at == '<' || *at == '{' || *at == '(')
			at = past_brackets(at);
		else if (*at++ == ' ')
			begin = at;
	}
	for (at = begin; *at;) {
		const char *end = at + 1;

		skip = operator_length(begin, at);
		if (skip) {
			end = at + skip;
		} else if (*at == '{') {
			end = past_brackets(at);
		} else if (!strncmp(at, ANONYMOUS, strlen(ANONYMOUS))) {
			end = at + strlen(ANONYMOUS);
		} else if (*at == '<') {
			end = past_brackets(at);
			if (end - at > TEMPLATE_LONGEST) {
				fputs("<...>", out);
				at = end;
				continue;
			}
		} else if (*at == '(') {
			end = past_brackets(at);
			/* a function inside a function goes on behind the arguments */
			if (strncmp(end, "::", 2) && strncmp(end, " const::", 8))
				break;
			at = strstr(end, "::");
			continue;
		}
		fprintf(out, "%.*s", (int)(end - at), at);
		at = end;
	}
}

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static void put_frame(FILE *out, const struct source_frame *frame, uint32_t to_line)
{
	if (frame->function)
		put_function(out, frame->function);
	if (!frame->file || !frame->line) {
		if (frame->offset)
			fprintf(out, "+%#llx", (unsigned long long)frame->offset);
		return;
	}
	fprintf(out, "%s%s:%u", frame->function ? " (" : "", base_of(frame->file), frame->line);
	if (to_line && to_line != frame->line)
		fprintf(out, " to %u", to_line);
	if (frame->function)
		putc(')', out);
}

static bool says_anything(const struct source_frame *frame)
{
	return frame->function || (frame->file && frame->line);
}

/* Writes a place: by its function and line, else by its symbol, else by module and offset. */
static void put_part(FILE *out, const struct part *part)
{
	const char *at = memchr(part->site, '@', part->length), *plus = NULL;

	if (part->count && says_anything(&part->frames[0])) {
		put_frame(out, &part->frames[0], 0);
		if (part->count > 1 && says_anything(&part->frames[1])) {
			fputs(" in ", out);
			put_frame(out, &part->frames[1], 0);
		}
		return;
	}
	if (part->symbol_length) {
		fprintf(out, "%.*s", (int)part->symbol_length, part->symbol);
		return;
	}
	if (at)
		plus = memrchr(at, '+', part->length - (size_t)(at - part->site));
	if (!plus) /* a text of another tracer */
		at = plus = part->site + part->length;
	fprintf(out, "%.*s%.*s", (int)(at - part->site), part->site, (int)(part->site + part->length - plus), plus);
}

static void put_parts(FILE *out, const struct source_names *names, const char *site, const char *symbol)
{
	for (const char *separator = ""; site; separator = SITE_CALLED_BY) {
		struct part part = part_of(names, site, symbol);

		fputs(separator, out);
		put_part(out, &part);
		site = behind(site);
		symbol = behind(symbol);
	}
}

static bool same_text(const char *a, const char *b)
{
	return a && b && !strcmp(a, b);
}

/*
 * Finds the innermost function that holds both places of a computation, by its frame at each; both are inlined into it
 * along with equal outer frames. Returns whether there is one with lines.
 */
static bool common_frame(const struct part *from, const struct part *to, const struct source_frame **at_from,
			 const struct source_frame **at_to)
{
	const struct source_frame *a, *b;

	*at_from = *at_to = NULL;
	for (size_t i = 1; i <= from->count && i <= to->count; i++) {
		a = &from->frames[from->count - i];
		b = &to->frames[to->count - i];
		if (!same_text(a->function, b->function) || !same_text(a->file, b->file) || !a->line || !b->line)
			break;
		*at_from = a;
		*at_to = b;
		if (a->line != b->line)
			break;
	}
	return *at_from;
}

/* Writes a computation whose two ends lie in one function. Returns whether they do. */
static bool put_within(FILE *out, const struct source_names *names, const struct vapro_state *state)
{
	struct part from = part_of(names, state->from, state->from_symbol);
	struct part to = part_of(names, state->to, state->to_symbol);
	const struct source_frame *at_from, *at_to;
	const char *callers = behind(state->to);

	/* callers that differ are written in full */
	if (!common_frame(&from, &to, &at_from, &at_to) || !!callers != !!behind(state->from) ||
	    (callers && strcmp(callers, behind(state->from))))
		return false;
	if (at_from != from.frames || at_to != to.frames) {
		put_frame(out, &from.frames[0], 0);
		fputs(" -> ", out);
		put_frame(out, &to.frames[0], 0);
		fputs(" in ", out);
	}
	put_frame(out, at_from, at_to->line);
	if (callers) {
		fputs(SITE_CALLED_BY, out);
		put_parts(out, names, callers, behind(state->to_symbol));
	}
	return true;
}

char *source_names__words(const struct source_names *names, const struct vapro_state *state)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	if (!state->from || !put_within(out, names, state)) {
		if (state->from) {
			put_parts(out, names, state->from, state->from_symbol);
			fputs(" -> ", out);
		}
		put_parts(out, names, state->to, state->to_symbol);
	}
	if (!fclose(out))
		return text;
	free(text);
	return NULL;
}

char *source_names__place(const struct source_names *names, const char *site)
{
	size_t count, size;
	const struct source_frame *frames = source_names__of(names, site, strlen(site), &count);
	char *text = NULL;
	FILE *out = frames && says_anything(&frames[0]) ? open_memstream(&text, &size) : NULL;

	if (!out)
		return NULL;
	put_frame(out, &frames[0], 0);
	if (count > 1 && says_anything(&frames[count - 1])) {
		fputs(" in ", out);
		put_frame(out, &frames[count - 1], 0);
	}
	if (!fclose(out))
		return text;
	free(text);
	return NULL;
}

static bool add_frame(cJSON *list, const struct source_frame *frame, bool inlined)
{
	cJSON *item = record__append(list);

	return item && record__put_text(item, KEY(frame, function), frame->function) &&
	       (!frame->offset || record__put_uint(item, KEY(frame, offset), frame->offset)) &&
	       record__put_text(item, KEY(frame, file), frame->file) &&
	       record__put(item, KEY(frame, line),
			   frame->line ? cJSON_CreateNumber(frame->line) : cJSON_CreateNull()) &&
	       record__put_bool(item, KEY(frame, inlined), inlined);
}

bool source_names__add_frames(const struct source_names *names, cJSON *object, const char *key, const char *site)
{
	cJSON *list = NULL;
	bool ok = true;

	for (; site && ok; site = behind(site)) {
		struct part part = part_of(names, site, NULL);

		if (part.count && !list)
			list = cJSON_AddArrayToObject(object, key);
		ok = !part.count || list;
		for (size_t i = 0; ok && i < part.count; i++)
			ok = add_frame(list, &part.frames[i], i + 1 < part.count);
	}
	return ok;
}

bool source_names__add_json(const struct source_names *names, cJSON *object, const struct vapro_state *state)
{
	char *words = source_names__words(names, state);
	bool ok = words && record__put_text(object, KEY(state, source), words) &&
		  source_names__add_frames(names, object, "to_frames", state->to) &&
		  (!state->from || source_names__add_frames(names, object, "from_frames", state->from));

	free(words);
	return ok;
}

/* Finds the called function among the labels of a call; NULL of a computation, whose labels name those at its ends. */
static const char *called_function(const struct vapro_state *state)
{
	const char *found =
	    strncmp(state->labels, "function=", 9) ? strstr(state->labels, " function=") : state->labels;

	return found ? strchr(found, '=') + 1 : NULL;
}

char *source_names__call(const struct source_names *names, const struct vapro_state *state)
{
	char *words = source_names__words(names, state), *text = NULL;
	const char *function = called_function(state);

	if (!words || !function)
		return words;
	if (asprintf(&text, "%.*s at %s", (int)strcspn(function, " "), function, words) < 0)
		text = NULL;
	free(words);
	return text;
}
