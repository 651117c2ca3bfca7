/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checkpoints of hops. */
#include "model/hops_private.h"

#include <errno.h>

static const struct archive_column site_columns[] = {
    ARCHIVE_ONE(struct site, symbol), ARCHIVE_ONE(struct site, hop),	    ARCHIVE_ONE(struct site, since_ns),
    ARCHIVE_ONE(struct site, before), ARCHIVE_ONE(struct site, doubted_ns), ARCHIVE_ONE(struct site, below),
    ARCHIVE_ONE(struct site, depth),  ARCHIVE_ONE(struct site, callers),    ARCHIVE_ONE(struct site, only),
};
static const struct archive_table site_table = ARCHIVE_TABLE("hop sites", struct site, site_columns);

static const struct archive_column chain_columns[] = {
    ARCHIVE_MANY(struct hops_state, end[0].site), ARCHIVE_ONE(struct hops_state, end[0].count),
    ARCHIVE_MANY(struct hops_state, end[1].site), ARCHIVE_ONE(struct hops_state, end[1].count),
    ARCHIVE_ONE(struct hops_state, counts),	  ARCHIVE_ONE(struct hops_state, vacant),
};
static const struct archive_table chain_table = ARCHIVE_TABLE("hop states", struct hops_state, chain_columns);

static const struct archive_column steady_columns[] = {
    ARCHIVE_ONE(struct hops_series, n),
    ARCHIVE_ONE(struct hops_series, steady),
};
static const struct archive_table steady_table = ARCHIVE_TABLE("hop series", struct hops_series, steady_columns);

static bool possible(const struct hops *hops, const struct hops_state *state)
{
	bool possible = true;

	for (int end = 0; end < 2; end++) {
		possible &= state->end[end].count <= FRAMES_MOST;
		for (unsigned i = 0; possible && i < state->end[end].count; i++)
			possible = state->end[end].site[i] < hops->site_count;
	}
	return possible;
}

void hops__archive(struct archive *archive, struct hops *hops)
{
	size_t series = hops->series_room, count = hops->site_count;
	struct intern *symbols = intern__new();

	if (!symbols) {
		archive__fail(archive, -ENOMEM, "out of memory");
		return;
	}
	for (size_t i = 0; i < hops->site_count; i++)
		intern__id(symbols, hops->sites[i].symbol);
	archive__texts(archive, symbols);
	archive__rows(archive, &site_table, &hops->sites, &hops->site_count, &hops->site_room);
	archive__texts(archive, hops->texts);
	archive__rows(archive, &chain_table, &hops->states, &hops->state_count, &hops->state_room);
	archive__rows(archive, &steady_table, &hops->series, &series, &hops->series_room);
	count = archive__reads(archive) ? hops->site_count : 0;
	archive__check(archive, !archive__reads(archive) || count + 1 == intern__count(hops->texts),
		       "a call-site has no name");
	for (size_t i = 0; i < count; i++) {
		struct site *site = &hops->sites[i];

		site->text = archive__copy(archive, intern__text(hops->texts, (uint32_t)i + 1));
		site->symbol = archive__copy(archive, site->symbol);
		archive__check(archive,
			       site->hop < VAPRO_HOPS && site->below <= count && site->only <= count &&
				   (!site->callers || site->only),
			       "a call-site contradicts others");
	}
	for (size_t i = 0; archive__reads(archive) && i < hops->state_count; i++)
		archive__check(archive, possible(hops, &hops->states[i]), "a call-site is missing");
	intern__free(symbols);
}
