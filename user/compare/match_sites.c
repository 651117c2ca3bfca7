// SPDX-License-Identifier: GPL-2.0-or-later
#include "compare/match_sites.h"

#include <stdio.h>

#include "base/grow.h"

void match_sites__clear(struct match_sites *sites)
{
	for (size_t i = 0; i < sites->count; i++) {
		free(sites->items[i].image);
		free(sites->items[i].build);
		free(sites->items[i].symbol);
		free(sites->items[i].function);
		free(sites->items[i].common);
	}
	free(sites->items);
	intern__free(sites->ids);
	*sites = (struct match_sites){0};
}

/* Copies a symbol without the offsets behind functions' names: these change with any edit. */
static char *without_offsets(const char *symbol)
{
	char *copy = strdup(symbol ? symbol : ""), *to = copy;

	for (const char *at = copy; copy && *at;) {
		if (!strncmp(at, "+0x", 3))
			at += 3 + strspn(at + 3, "0123456789abcdef");
		else
			*to++ = *at++;
	}
	if (copy)
		*to = '\0';
	return copy;
}

/* Parses name@build+0xOFFSET, of a call-site that callers follow its first part; else all of it is the name. */
static int parse(struct match_site *site)
{
	size_t length = strcspn(site->text, "<");
	const char *plus, *at;

	length -= length && site->text[length] == '<' && site->text[length - 1] == ' ';
	plus = memrchr(site->text, '+', length);
	at = plus ? memrchr(site->text, '@', (size_t)(plus - site->text)) : NULL;
	site->image = at ? strndup(site->text, (size_t)(at - site->text)) : strdup(site->text);
	site->build = at ? strndup(at + 1, (size_t)(plus - at - 1)) : strdup("");
	site->offset = at ? strtoull(plus + 1, NULL, 16) : 0;
	return site->image && site->build ? 0 : -ENOMEM;
}

static int add(struct match_sites *sites, const char *text, const char *symbol, const char *labels, double seconds)
{
	uint32_t id = intern__id(sites->ids, text);
	struct match_site *site;
	const char *function = labels ? strstr(labels, "function=") : NULL;

	if (id == INTERN_NONE)
		return -ENOMEM;
	if (id > sites->count) {
		if (grow(&sites->items, &sites->capacity, id, sizeof(*sites->items)))
			return -ENOMEM;
		sites->count = id;
		site = &sites->items[id - 1];
		site->text = text;
		site->symbol = without_offsets(symbol);
		if (!site->symbol || parse(site))
			return -ENOMEM;
	}
	site = &sites->items[id - 1];
	site->seconds += seconds;
	if (!function || site->function)
		return 0;
	function += strlen("function=");
	site->function = strndup(function, strcspn(function, " "));
	return site->function ? 0 : -ENOMEM;
}

int match_sites__gather(struct match_sites *sites, const struct profile *profile)
{
	sites->ids = intern__new();
	if (!sites->ids || intern__id(sites->ids, NULL) == INTERN_NONE)
		return -ENOMEM;
	for (size_t i = 0; i < profile->kind_capacity; i++) {
		const struct profile_kind *kind = &profile->kinds[i];
		const struct vapro_state *state;

		if (!kind->used || kind->seconds <= 0)
			continue;
		state = &stg__state(profile->stg, kind->state)->about;
		if (add(sites, state->to, state->to_symbol, state->from ? NULL : state->labels, kind->seconds) ||
		    (state->from && add(sites, state->from, state->from_symbol, NULL, 0)))
			return -ENOMEM;
	}
	return 0;
}

static int compare_texts(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

/* Whether two call-sites agree in all but their offsets. */
static int compare_group(const struct match_site *a, const struct match_site *b)
{
	int order = strcmp(a->symbol, b->symbol);

	return order ? order : compare_texts(a->function, b->function);
}

static int in_order(const void *a, const void *b)
{
	const struct match_site *x = *(struct match_site *const *)a, *y = *(struct match_site *const *)b;
	int order = compare_group(x, y);

	if (order)
		return order;
	return x->offset != y->offset ? (x->offset > y->offset) - (x->offset < y->offset) : strcmp(x->text, y->text);
}

/* Returns the call-sites of an image in the order of their groups; *count of them. NULL when out of memory. */
static struct match_site **of_image(const struct match_sites *sites, const char *image, size_t *count)
{
	struct match_site **found = calloc(sites->count + 1, sizeof(*found));

	*count = 0;
	for (size_t i = 0; found && i < sites->count; i++)
		if (!strcmp(sites->items[i].image, image))
			found[(*count)++] = &sites->items[i];
	if (found)
		qsort(found, *count, sizeof(*found), in_order);
	return found;
}

/* Returns the end of the group that begins at `at`. */
static size_t group_end(struct match_site *const *sites, size_t at, size_t count)
{
	size_t end = at + 1;

	while (end < count && !compare_group(sites[at], sites[end]))
		end++;
	return end;
}

static int name_group(struct match_site **sites, size_t count, const char *as)
{
	for (size_t i = 0; i < count; i++) {
		if (asprintf(&sites[i]->common, "%s!%s!%s#%zu", as, sites[i]->symbol,
			     sites[i]->function ? sites[i]->function : "", i) < 0) {
			sites[i]->common = NULL;
			return -ENOMEM;
		}
	}
	return 0;
}

int match_sites__pair(struct match_sites *a, const char *image_a, struct match_sites *b, const char *image_b,
		      const char *as)
{
	size_t a_count = 0, b_count = 0, i = 0, k = 0;
	struct match_site **in_a = of_image(a, image_a, &a_count), **in_b = of_image(b, image_b, &b_count);
	int error = in_a && in_b ? 0 : -ENOMEM;

	while (!error && i < a_count && k < b_count) {
		size_t a_end = group_end(in_a, i, a_count), b_end = group_end(in_b, k, b_count);
		int order = compare_group(in_a[i], in_b[k]);

		if (!order && a_end - i == b_end - k)
			error =
			    name_group(in_a + i, a_end - i, as) || name_group(in_b + k, b_end - k, as) ? -ENOMEM : 0;
		i = order <= 0 ? a_end : i;
		k = order >= 0 ? b_end : k;
	}
	free(in_a);
	free(in_b);
	return error;
}

const char *match_sites__text(const struct match_sites *sites, const char *site)
{
	uint32_t id = site ? intern__id(sites->ids, site) : 0;

	return id && id <= sites->count && sites->items[id - 1].common ? sites->items[id - 1].common : site;
}
