// SPDX-License-Identifier: GPL-2.0-or-later
#include "compare/match.h"

#include <stdio.h>

#include "base/grow.h"
#include "compare/match_sites.h"

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
	return match_sites__pair(a, image->name_a, b, image->name_b, image->name_b);
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
	const char *from = match_sites__text(sites, state->from);
	char *text;

	return asprintf(&text, "%d\n%s\n%s\n%s", (int)state->class, from ? from : "",
			match_sites__text(sites, state->to), state->common) < 0
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
	error = match_sites__gather(&in_a, a);
	if (!error)
		error = match_sites__gather(&in_b, b);
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
	match_sites__clear(&in_a);
	match_sites__clear(&in_b);
	return error;
}
