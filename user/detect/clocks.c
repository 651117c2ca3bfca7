// SPDX-License-Identifier: GPL-2.0-or-later
/* The calls of each host, and the offsets of all hosts from those of pairs: see clocks.h. */
#include "detect/clocks_private.h"

#include "base/grow.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SITES_MAX 8		/* call-sites of a host; more show nothing else */
#define OFFSET_POSSIBLE_NS 1e12 /* in a checkpoint */
#define ORDINAL_POSSIBLE 1e15	/* in a checkpoint */
#define CORRECT_FROM_NS 20e6	/* a smaller offset is left alone: a tenth of a bin */
#define CORRECT_AGAIN_NS 10e6	/* a correction stays until the offset has moved so far */
#define CORRECT_SPREAD_NS 50e6	/* a less certain offset is reported only */

struct clock_host {
	struct clock_track *tracks;
	size_t track_count, track_capacity;
	struct clock_link link; /* to the first host by name: that of the track that agrees best */
	struct clock_offset offset;
};

struct clocks {
	struct clock_host *hosts;
	size_t host_count, capacity;
	struct clock_scratch scratch;
};

struct clocks *clocks__new(void)
{
	return calloc(1, sizeof(struct clocks));
}

void clocks__free(struct clocks *clocks)
{
	if (!clocks)
		return;
	for (size_t i = 0; i < clocks->host_count; i++) {
		for (size_t k = 0; k < clocks->hosts[i].track_count; k++)
			free(clocks->hosts[i].tracks[k].calls);
		free(clocks->hosts[i].tracks);
	}
	free(clocks->hosts);
	free(clocks);
}

size_t clocks__bytes(const struct clocks *clocks)
{
	size_t bytes = sizeof(*clocks) + clocks->capacity * sizeof(*clocks->hosts);

	for (size_t i = 0; i < clocks->host_count; i++) {
		const struct clock_host *host = &clocks->hosts[i];

		bytes += host->track_capacity * sizeof(*host->tracks);
		for (size_t k = 0; k < host->track_count; k++)
			bytes += host->tracks[k].capacity * sizeof(*host->tracks[k].calls);
	}
	return bytes;
}

static struct clock_track *find(const struct clock_host *host, uint32_t site)
{
	for (size_t i = 0; i < host->track_count; i++) {
		if (host->tracks[i].site == site)
			return &host->tracks[i];
	}
	return NULL;
}

int clocks__add(struct clocks *clocks, uint32_t host, int32_t rank, uint32_t site, uint64_t start_ns, uint64_t end_ns,
		uint32_t n)
{
	struct clock_track *track;
	struct clock_host *at;

	if (grow(&clocks->hosts, &clocks->capacity, (size_t)host + 1, sizeof(*clocks->hosts)))
		return -ENOMEM;
	while (clocks->host_count <= host)
		clocks->hosts[clocks->host_count++] = (struct clock_host){0};
	at = &clocks->hosts[host];
	track = find(at, site);
	if (!track) {
		if (at->track_count == SITES_MAX)
			return 0;
		if (grow(&at->tracks, &at->track_capacity, at->track_count + 1, sizeof(*at->tracks)))
			return -ENOMEM;
		track = &at->tracks[at->track_count++];
		*track = (struct clock_track){.site = site, .rank = rank};
	}
	if (rank > track->rank)
		return 0;
	if (rank < track->rank) {
		track->rank = rank;
		track->count = 0;
		track->before = 0;
	}
	if (track->count == CLOCK_CALLS) {
		for (size_t i = 0; i < CLOCK_CALLS / 4; i++)
			track->before += track->calls[i].n;
		track->count -= CLOCK_CALLS / 4;
		memmove(track->calls, track->calls + CLOCK_CALLS / 4, track->count * sizeof(*track->calls));
	}
	if (grow(&track->calls, &track->capacity, track->count + 1, sizeof(*track->calls)))
		return -ENOMEM;
	track->calls[track->count++] = (struct clock_calls){start_ns, end_ns, n};
	return 0;
}

/* Links a host to another by the call-site that agrees best. */
static void link_to(struct clocks *clocks, struct clock_host *host, const struct clock_host *base)
{
	host->link = (struct clock_link){0};
	for (size_t i = 0; i < host->track_count; i++) {
		struct clock_track *track = &host->tracks[i];
		const struct clock_track *other = find(base, track->site);

		if (!other)
			continue;
		clock_track__link(other, track, &clocks->scratch, &track->link);
		if (track->link.known && (!host->link.known || track->link.cost < host->link.cost))
			host->link = track->link;
	}
}

static int compare_offsets(const void *a, const void *b)
{
	const double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

/* Sets what is corrected: neither noise of the estimate nor an uncertain offset moves events; a refuted one no more. */
static void correct(struct clock_offset *offset)
{
	double size = fabs(offset->offset_ns), moved = fabs(offset->offset_ns - offset->corrected_ns);

	if (!offset->known)
		offset->corrected_ns = 0;
	else if (offset->spread_ns > CORRECT_SPREAD_NS)
		return;
	else if (size < CORRECT_FROM_NS && moved > CORRECT_AGAIN_NS)
		offset->corrected_ns = 0;
	else if (size >= CORRECT_FROM_NS && moved > CORRECT_AGAIN_NS)
		offset->corrected_ns = offset->offset_ns;
}

int clocks__estimate(struct clocks *clocks, const char *const *names, uint32_t hosts)
{
	struct clock_host *base = NULL;
	const char *first = NULL;
	size_t known = 0;
	double *sorted;

	for (uint32_t i = 0; i < hosts && i < clocks->host_count; i++) {
		if (clocks->hosts[i].track_count && (!first || strcmp(names[i], first) < 0)) {
			base = &clocks->hosts[i];
			first = names[i];
		}
	}
	sorted = calloc(clocks->host_count + 1, sizeof(*sorted));
	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; base && i < clocks->host_count; i++) {
		struct clock_host *host = &clocks->hosts[i];

		if (host == base)
			host->link = (struct clock_link){.known = true};
		else
			link_to(clocks, host, base);
		if (host->link.known)
			sorted[known++] = host->link.offset_ns;
	}
	if (known)
		qsort(sorted, known, sizeof(*sorted), compare_offsets);
	for (size_t i = 0; base && i < clocks->host_count; i++) {
		struct clock_host *host = &clocks->hosts[i];
		struct clock_offset *offset = &host->offset;

		/* one clock alone is not compared with anything */
		offset->known = host->link.known && known > 1;
		offset->offset_ns = 0;
		if (offset->known)
			offset->offset_ns = rint(host->link.offset_ns - sorted[(known - 1) / 2]);
		offset->spread_ns = offset->known ? rint(host->link.spread_ns) : 0;
		correct(offset);
	}
	free(sorted);
	return 0;
}

struct clock_offset clocks__of(const struct clocks *clocks, uint32_t host)
{
	return clocks && host < clocks->host_count ? clocks->hosts[host].offset : (struct clock_offset){0};
}

static const struct archive_column calls_columns[] = {
    ARCHIVE_ONE(struct clock_calls, start_ns),
    ARCHIVE_ONE(struct clock_calls, end_ns),
    ARCHIVE_ONE(struct clock_calls, n),
};
static const struct archive_table calls_table = ARCHIVE_TABLE("clock calls", struct clock_calls, calls_columns);

static const struct archive_column track_columns[] = {
    ARCHIVE_ONE(struct clock_track, site),	     ARCHIVE_ONE(struct clock_track, rank),
    ARCHIVE_ONE(struct clock_track, before),	     ARCHIVE_ONE(struct clock_track, link.found),
    ARCHIVE_ONE(struct clock_track, link.known),     ARCHIVE_ONE(struct clock_track, link.slip),
    ARCHIVE_ONE(struct clock_track, link.until),     ARCHIVE_ONE(struct clock_track, link.offset_ns),
    ARCHIVE_ONE(struct clock_track, link.spread_ns), ARCHIVE_ONE(struct clock_track, link.cost),
};
static const struct archive_table track_table = ARCHIVE_TABLE("clock track", struct clock_track, track_columns);

static const struct archive_column host_columns[] = {
    ARCHIVE_ONE(struct clock_host, offset.known),
    ARCHIVE_ONE(struct clock_host, offset.offset_ns),
    ARCHIVE_ONE(struct clock_host, offset.spread_ns),
    ARCHIVE_ONE(struct clock_host, offset.corrected_ns),
};
static const struct archive_table host_table = ARCHIVE_TABLE("clock", struct clock_host, host_columns);

static void archive_track(struct archive *archive, struct clock_track *track)
{
	archive__rows(archive, &calls_table, &track->calls, &track->count, &track->capacity);
	archive__check(archive,
		       fabs(track->link.slip) < ORDINAL_POSSIBLE && fabs(track->link.until) < ORDINAL_POSSIBLE &&
			   fabs(track->link.offset_ns) < OFFSET_POSSIBLE_NS,
		       "a clock has an impossible link");
	if (!archive__check(archive, track->count <= CLOCK_CALLS, "a clock has too many calls"))
		return;
	for (size_t i = 0; i < track->count; i++)
		archive__check(archive, track->calls[i].n && track->calls[i].end_ns >= track->calls[i].start_ns,
			       "a clock has impossible calls");
}

void clocks__archive(struct archive *archive, struct clocks *clocks)
{
	archive__rows(archive, &host_table, &clocks->hosts, &clocks->host_count, &clocks->capacity);
	for (size_t i = 0; i < clocks->host_count && !archive__error(archive); i++) {
		struct clock_host *host = &clocks->hosts[i];

		archive__check(archive,
			       fabs(host->offset.offset_ns) < OFFSET_POSSIBLE_NS &&
				   fabs(host->offset.corrected_ns) < OFFSET_POSSIBLE_NS,
			       "a clock has an impossible offset");
		archive__rows(archive, &track_table, &host->tracks, &host->track_count, &host->track_capacity);
		archive__check(archive, host->track_count <= SITES_MAX, "a clock has too many call-sites");
		for (size_t k = 0; k < host->track_count && !archive__error(archive); k++)
			archive_track(archive, &host->tracks[k]);
	}
}
