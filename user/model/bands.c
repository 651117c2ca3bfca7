/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "model/bands.h"

#include "base/grow.h"
#include "base/intern.h"
#include "base/table.h"

#include <stdio.h>

enum { LABELS_MAX = 2048 }; /* longest text of labels with a band, bytes */

struct bands {
	const struct rules *rules;
	struct intern *texts;
	struct table *out; /* (incoming state, band) -> outgoing state */
	struct vapro_state *states;
	size_t count, capacity;
	uint32_t next;
};

struct bands *bands__new(const struct rules *rules)
{
	struct bands *bands = calloc(1, sizeof(*bands));

	if (!bands)
		return NULL;
	bands->rules = rules;
	bands->texts = intern__new();
	bands->out = table__new();
	if (bands->texts && bands->out)
		return bands;
	bands__free(bands);
	return NULL;
}

void bands__free(struct bands *bands)
{
	if (!bands)
		return;
	intern__free(bands->texts);
	table__free(bands->out);
	free(bands->states);
	free(bands);
}

static int keep(struct bands *bands, const char **text)
{
	uint32_t id = intern__id(bands->texts, *text);

	if (id == INTERN_NONE)
		return -ENOMEM;
	*text = intern__text(bands->texts, id);
	return 0;
}

int bands__add_state(struct bands *bands, const struct vapro_state *state)
{
	struct vapro_state copy = *state;

	if (state->id < bands->count)
		return 0;
	if (state->id > bands->count)
		return -EINVAL;
	if (!copy.labels)
		copy.labels = "";
	if (!copy.common)
		copy.common = copy.labels;
	if (keep(bands, &copy.from) || keep(bands, &copy.to) || keep(bands, &copy.labels) ||
	    keep(bands, &copy.common) || keep(bands, &copy.from_symbol) || keep(bands, &copy.to_symbol) ||
	    keep(bands, &copy.from_path) || keep(bands, &copy.to_path) ||
	    grow(&bands->states, &bands->capacity, bands->count + 1, sizeof(*bands->states)))
		return -ENOMEM;
	bands->states[bands->count++] = copy;
	return 0;
}

/* Merges the labels of a band into labels; both are sorted by key. */
static int add_labels(struct bands *bands, const char **labels, const char *more)
{
	char text[LABELS_MAX];
	const char *old = *labels, *new = more;
	size_t used = 0;

	while ((*old || *new) && used < sizeof(text)) {
		const char **from = !*new || (*old && strcmp(old, new) <= 0) ? &old : &new;
		size_t length = strcspn(*from, " ");

		used +=
		    (size_t)snprintf(text + used, sizeof(text) - used, "%s%.*s", used ? " " : "", (int)length, *from);
		*from += length + ((*from)[length] == ' ');
	}
	*labels = text;
	return keep(bands, labels);
}

int bands__place(struct bands *bands, struct vapro_bundle *bundle, struct vapro_state *is_new)
{
	const struct vapro_state *state;
	char labels[LABELS_MAX / 2];
	unsigned band = 0;
	bool approx = false;

	if (bundle->state >= bands->count)
		return -EINVAL;
	state = &bands->states[bundle->state];
	if (state->class == VAPRO_COMPUTATION)
		band = rules__band(bands->rules, bundle, &approx);
	if (approx)
		bundle->flags |= VAPRO_BUNDLE_APPROX;
	if (table__get(bands->out, bundle->state, band, &bundle->state))
		return 0;
	*is_new = *state;
	is_new->id = bands->next;
	rules__labels(bands->rules, band, labels, sizeof(labels));
	if ((*labels && (add_labels(bands, &is_new->labels, labels) || add_labels(bands, &is_new->common, labels))) ||
	    table__put(bands->out, bundle->state, band, is_new->id))
		return -ENOMEM;
	bundle->state = bands->next++;
	return 1;
}

/* A state that leaves for one that came in with a band. */
struct placed {
	uint32_t state, band, out;
};

static const struct archive_column placed_columns[] = {
    ARCHIVE_ONE(struct placed, state),
    ARCHIVE_ONE(struct placed, band),
    ARCHIVE_ONE(struct placed, out),
};
static const struct archive_table placed_table = ARCHIVE_TABLE("bands", struct placed, placed_columns);

static const struct archive_column state_columns[] = {
    ARCHIVE_ONE(struct vapro_state, id),	  ARCHIVE_ONE(struct vapro_state, class),
    ARCHIVE_ONE(struct vapro_state, from),	  ARCHIVE_ONE(struct vapro_state, to),
    ARCHIVE_ONE(struct vapro_state, labels),	  ARCHIVE_ONE(struct vapro_state, common),
    ARCHIVE_ONE(struct vapro_state, from_symbol), ARCHIVE_ONE(struct vapro_state, to_symbol),
    ARCHIVE_ONE(struct vapro_state, from_path),	  ARCHIVE_ONE(struct vapro_state, to_path),
};
static const struct archive_table state_table = ARCHIVE_TABLE("incoming states", struct vapro_state, state_columns);

/* The order in which states left is that of their numbers, whatever the order in the table. */
static void write_placed(struct archive *archive, const struct bands *bands)
{
	struct placed *placed = archive__take(archive, bands->next, sizeof(*placed));
	size_t count = bands->next, at = 0;
	uint64_t state, band;
	uint32_t out;

	while (placed && table__next(bands->out, &at, &state, &band, &out))
		placed[out] = (struct placed){(uint32_t)state, (uint32_t)band, out};
	archive__rows(archive, &placed_table, &placed, &count, &count);
	free(placed);
}

static void read_placed(struct archive *archive, struct bands *bands)
{
	size_t count = 0, capacity = 0;
	struct placed *placed = NULL;
	uint32_t other;

	archive__rows(archive, &placed_table, &placed, &count, &capacity);
	for (size_t i = 0; i < count && !archive__error(archive); i++) {
		if (archive__check(archive,
				   placed[i].state < bands->count && placed[i].out == i &&
				       !table__get(bands->out, placed[i].state, placed[i].band, &other),
				   "a band contradicts others") &&
		    table__put(bands->out, placed[i].state, placed[i].band, placed[i].out))
			archive__fail(archive, -ENOMEM, "out of memory");
	}
	bands->next = (uint32_t)count;
	free(placed);
}

void bands__archive(struct archive *archive, struct bands *bands)
{
	archive__texts(archive, bands->texts);
	archive__rows(archive, &state_table, &bands->states, &bands->count, &bands->capacity);
	for (size_t i = 0; archive__reads(archive) && i < bands->count; i++)
		archive__check(archive,
			       bands->states[i].id == i && bands->states[i].class < VAPRO_CLASSES &&
				   bands->states[i].labels && bands->states[i].common && bands->states[i].to,
			       "a state contradicts others");
	if (archive__reads(archive))
		read_placed(archive, bands);
	else
		write_placed(archive, bands);
}
