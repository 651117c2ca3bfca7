// SPDX-License-Identifier: GPL-2.0-or-later
#include "compare/match.h"

#include <stdio.h>

#include "base/grow.h"
#include "base/intern.h"
#include "compare/profile.h"

struct match_site {
	const char *text; /* the profile's */
	char *image, *build;
	char *symbol;	/* without offsets; "" where unknown */
	char *function; /* that is called there; "" where unknown */
	uint64_t offset;
	double seconds;
	char *common; /* NULL: its text is the same in both runs, or it has no counterpart */
};

struct match_sites {
	struct intern *ids;	  /* of texts; NULL has id 0 */
	struct match_site *items; /* item of id - 1 */
	size_t count, capacity;
};

static void clear_sites(struct match_sites *sites)
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

/* Gathers the call-sites of all kinds that have time. Returns 0 or -ENOMEM; to be cleared in either case. */
static int gather_sites(struct match_sites *sites, const struct profile *profile)
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

/*
 * Gives the call-sites of an image of either run, by their names, common texts where they agree. `as` is the name of
 * the image in these texts. Returns 0 or -ENOMEM.
 */
static int pair_sites(struct match_sites *a, const char *image_a, struct match_sites *b, const char *image_b,
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

/* The text of a call-site by which it is matched; NULL for NULL. */
static const char *site_text(const struct match_sites *sites, const char *site)
{
	uint32_t id = site ? intern__id(sites->ids, site) : 0;

	return id && id <= sites->count && sites->items[id - 1].common ? sites->items[id - 1].common : site;
}

void match__clear(struct match *match)
{
	for (size_t i = 0; i < match->changed_count; i++) {
		free(match->changed[i].name_a);
		free(match->changed[i].name_b);
		free(match->changed[i].build_a);
		free(match->changed[i].build_b);
	}
	free(match->changed);
	free(match->pairs);
	*match = (struct match){0};
}

/* The first call-site of an image, of a build where one is given; NULL: none. */
static const struct match_site *find_image(const struct match_sites *sites, const char *image, const char *build)
{
	for (size_t i = 0; i < sites->count; i++)
		if (!strcmp(sites->items[i].image, image) && (!build || !strcmp(sites->items[i].build, build)))
			return &sites->items[i];
	return NULL;
}

static bool is_listed(const struct match *match, const char *image)
{
	for (size_t i = 0; i < match->changed_count; i++)
		if (!strcmp(match->changed[i].name_a, image))
			return true;
	return false;
}

static int pair_images(struct match *match, struct match_sites *a, const struct match_site *in_a, struct match_sites *b,
		       const struct match_site *in_b)
{
	struct match_image *image;

	if (grow(&match->changed, &match->changed_capacity, match->changed_count + 1, sizeof(*match->changed)))
		return -ENOMEM;
	image = &match->changed[match->changed_count++];
	*image = (struct match_image){.name_a = strdup(in_a->image),
				      .name_b = strdup(in_b->image),
				      .build_a = strdup(in_a->build),
				      .build_b = strdup(in_b->build)};
	if (!image->name_a || !image->name_b || !image->build_a || !image->build_b)
		return -ENOMEM;
	return pair_sites(a, image->name_a, b, image->name_b, image->name_b);
}

/* Pairs images of one name whose build-ids differ: no call-site of one run has a build of the other. */
static int pair_rebuilt(struct match *match, struct match_sites *a, struct match_sites *b)
{
	for (size_t i = 0; i < a->count; i++) {
		const struct match_site *site = &a->items[i], *other = find_image(b, site->image, NULL);
		bool same = !other;

		for (size_t k = i; !same && k < a->count; k++)
			same = !strcmp(a->items[k].image, site->image) && find_image(b, site->image, a->items[k].build);
		if (!same && *site->build && !is_listed(match, site->image) && pair_images(match, a, site, b, other))
			return -ENOMEM;
	}
	return 0;
}

/* The call-site with most time in an image that the other run lacks; NULL: none. */
static const struct match_site *foreign(const struct match_sites *sites, const struct match_sites *others)
{
	const struct match_site *most = NULL;

	for (size_t i = 0; i < sites->count; i++)
		if (*sites->items[i].build && !find_image(others, sites->items[i].image, NULL) &&
		    (!most || sites->items[i].seconds > most->seconds))
			most = &sites->items[i];
	return most;
}

static int add_pair(struct match *match, uint32_t a, uint32_t b)
{
	if (grow(&match->pairs, &match->capacity, match->count + 1, sizeof(*match->pairs)))
		return -ENOMEM;
	match->pairs[match->count++] = (struct match_pair){a, b};
	return 0;
}

/* The text by which a kind is matched. malloc'ed. */
static char *key_of(const struct profile *profile, const struct match_sites *sites, uint32_t kind)
{
	const struct vapro_state *state = &stg__state(profile->stg, profile->kinds[kind].state)->about;
	const char *from = site_text(sites, state->from);
	char *text;

	return asprintf(&text, "%d\n%s\n%s\n%s", (int)state->class, from ? from : "", site_text(sites, state->to),
			state->common) < 0
		   ? NULL
		   : text;
}

static bool has_time(const struct profile *profile, uint32_t kind)
{
	return profile->kinds[kind].used && profile->kinds[kind].seconds > 0;
}

/* Enters the kinds of A by their texts. of: kind + 1 by the text's id. */
static int enter(struct intern *texts, const struct profile *a, const struct match_sites *sites, uint32_t *of)
{
	for (uint32_t i = 0; i < a->kind_capacity; i++) {
		char *key = has_time(a, i) ? key_of(a, sites, i) : NULL;
		uint32_t id = key ? intern__id(texts, key) : INTERN_NONE;

		free(key);
		if (!has_time(a, i))
			continue;
		if (id == INTERN_NONE)
			return -ENOMEM;
		of[id] = i + 1;
	}
	return 0;
}

static int pair_kinds(struct match *match, const struct profile *a, const struct match_sites *in_a,
		      const struct profile *b, const struct match_sites *in_b)
{
	struct intern *texts = intern__new();
	uint32_t *of = calloc(a->kind_capacity + b->kind_capacity + 1, sizeof(*of));
	int error = texts && of ? enter(texts, a, in_a, of) : -ENOMEM;

	for (uint32_t i = 0; !error && i < b->kind_capacity; i++) {
		char *key = has_time(b, i) ? key_of(b, in_b, i) : NULL;
		uint32_t id = key ? intern__id(texts, key) : INTERN_NONE;

		free(key);
		if (!has_time(b, i))
			continue;
		if (id == INTERN_NONE) {
			error = -ENOMEM;
		} else if (of[id]) {
			error = add_pair(match, of[id] - 1, i);
			of[id] = 0;
		} else {
			match->only_b++;
			match->only_b_s += b->kinds[i].seconds;
		}
	}
	for (uint32_t i = 0; !error && i <= a->kind_capacity + b->kind_capacity; i++) {
		if (of[i]) {
			match->only_a++;
			match->only_a_s += a->kinds[of[i] - 1].seconds;
		}
	}
	intern__free(texts);
	free(of);
	return error;
}

int match__kinds(struct match *match, const struct profile *a, const struct profile *b)
{
	struct match_sites in_a = {0}, in_b = {0};
	const struct match_site *foreign_a, *foreign_b;
	int error;

	*match = (struct match){0};
	error = gather_sites(&in_a, a);
	if (!error)
		error = gather_sites(&in_b, b);
	if (!error)
		error = pair_rebuilt(match, &in_a, &in_b);
	if (!error) {
		foreign_a = foreign(&in_a, &in_b);
		foreign_b = foreign(&in_b, &in_a);
		if (foreign_a && foreign_b)
			error = pair_images(match, &in_a, foreign_a, &in_b, foreign_b);
	}
	if (!error)
		error = pair_kinds(match, a, &in_a, b, &in_b);
	clear_sites(&in_a);
	clear_sites(&in_b);
	return error;
}
