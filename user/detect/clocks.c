// SPDX-License-Identifier: GPL-2.0-or-later
/* The calls of each host, and the offsets of all hosts from those of pairs: see clocks.h. */
#include "detect/clocks.h"

#include "base/grow.h"
#include "detect/clock_ends.h"
#include "detect/clock_track.h"
#include "model/judgement.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SITES_MAX = 8 };			       /* call-sites of a host; more show nothing else */
static const double OFFSET_POSSIBLE_NS = 1e12; /* largest offset in a checkpoint */
static const double ORDINAL_POSSIBLE = 1e15;   /* largest ordinal in a checkpoint */
/*
 * Comparisons of a window, as clock_search counts them: some 15 ms of a 3 GHz CPU. Whatever the number of hosts, a
 * window of 10 s takes so much; a search among all differences of ordinals is 2,000 to 3,000 comparisons.
 */
enum { COMPARISONS_MOST = 32768 };

struct clock_host {
	struct clock_track *tracks;
	size_t track_count, track_capacity;
	struct clock_link link; /* to the base: that of the track that agrees best */
	struct clock_offset offset;
};

/* The ends of the base's calls at one call-site, listed once a window. */
struct base_ends {
	struct clock_end room[CLOCK_CALLS];
	struct clock_ends ends;
	bool listed;
};

struct clocks {
	struct clock_host *hosts;
	size_t host_count, capacity;
	uint64_t windows; /* estimated so far */
	uint64_t base;	  /* number of the host that others are compared with, from 1; 0: none yet */
};

/* Room of one window. */
struct room {
	struct clock_scratch scratch;
	struct base_ends base_ends[SITES_MAX]; /* by track of the base */
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

/* Notes how much longer than usual the calls since the latest end took. */
static void note_gap(struct clock_track *track, uint64_t end_ns, uint32_t n)
{
	track->pending += n;
	if (end_ns <= track->last_ns)
		return; /* of one bin, bundles of short and of long calls overlap */
	if (track->last_ns && track->each_ns > 0)
		track->new_gap_ns = fmax(track->new_gap_ns,
					 (double)(end_ns - track->last_ns) - track->each_ns * (double)track->pending);
	track->last_ns = end_ns;
	track->pending = 0;
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
		track->last_ns = 0;
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
	note_gap(track, end_ns, n);
	return 0;
}

/* Times are counted from the first call of the base, so that doubles have them exactly. */
static uint64_t base_origin(const struct clock_host *base)
{
	return base->tracks[0].count ? base->tracks[0].calls[0].end_ns : 0;
}

static bool is_known(const struct clock_host *host)
{
	for (size_t i = 0; i < host->track_count; i++) {
		if (host->tracks[i].link.known)
			return true;
	}
	return false;
}

/* A track of a host in the order in which links are searched. */
struct queued_link {
	const char *host;
	struct clock_pair pair;
	bool known; /* another call-site of the host has shown its offset */
};

/*
 * Hosts whose offset is unknown first; of these candidates, which take one more search to become known, and then what
 * was searched the longest time ago.
 */
static int compare_queued(const void *a, const void *b)
{
	const struct queued_link *left = a, *right = b;
	uint64_t former = left->pair.other->schedule.tried, later = right->pair.other->schedule.tried;
	int order;

	if (left->known != right->known)
		return left->known ? 1 : -1;
	if (left->pair.other->link.found != right->pair.other->link.found)
		return left->pair.other->link.found ? -1 : 1;
	if (former != later)
		return former < later ? -1 : 1;
	order = strcmp(left->host, right->host);
	if (order)
		return order;
	return (left->pair.other->site > right->pair.other->site) - (left->pair.other->site < right->pair.other->site);
}

/* The ends of the base's calls at the call-site of one of its tracks. */
static const struct clock_ends *ends_of_base(const struct clock_host *base, struct clock_track *track,
					     struct room *room)
{
	struct base_ends *listed = &room->base_ends[track - base->tracks];

	if (!listed->listed) {
		listed->ends = clock_ends__list(track, base_origin(base), &room->scratch, listed->room);
		track->each_ns = listed->ends.each_ns;
		listed->listed = true;
	}
	return &listed->ends;
}

/* Lists the tracks of all hosts that have one in common with the base. Returns how many. */
static size_t list_links(struct clocks *clocks, const struct clock_host_about *about, struct queued_link *links)
{
	const struct clock_host *base = &clocks->hosts[clocks->base - 1];
	double base_error_ns = about[clocks->base - 1].error_ns;
	size_t count = 0;

	for (size_t i = 0; i < clocks->host_count; i++) {
		struct clock_host *host = &clocks->hosts[i];
		bool known = is_known(host);

		for (size_t k = 0; host != base && k < host->track_count; k++) {
			struct clock_track *other = &host->tracks[k], *track = find(base, other->site);

			if (!track)
				continue;
			links[count++] = (struct queued_link){
			    .host = about[i].name,
			    .known = known,
			    .pair = {.base = track,
				     .other = other,
				     .bound_ns = base_error_ns + about[i].error_ns + CLOCK_LITTLE_NS,
				     .window = clocks->windows}};
		}
	}
	return count;
}

/* Links hosts to the base. Comparisons are spent on known links and searches, in their order, then on audits. */
static void link_queued(struct queued_link *links, size_t count, const struct clock_host *base, struct room *room)
{
	struct clock_scratch *scratch = &room->scratch;

	for (size_t i = 0; i < count; i++) {
		struct clock_pair *pair = &links[i].pair;
		bool may_search = scratch->spent < COMPARISONS_MOST;

		if (!pair->other->link.known && (!may_search || !clock_track__is_due(pair)))
			continue;
		pair->base_ends = ends_of_base(base, pair->base, room);
		clock_track__link(pair, scratch, may_search);
	}
	for (size_t i = 0; i < count && scratch->spent < COMPARISONS_MOST; i++) {
		struct clock_pair *pair = &links[i].pair;

		if (!pair->other->link.unaudited)
			continue;
		pair->base_ends = ends_of_base(base, pair->base, room);
		clock_track__audit(pair, scratch);
	}
}

/* Returns 0 or -ENOMEM. */
static int link_all(struct clocks *clocks, const struct clock_host_about *about)
{
	struct queued_link *links = calloc(clocks->host_count * SITES_MAX, sizeof(*links));
	struct room *room = malloc(sizeof(*room));
	size_t count;
	int ret;

	if (links && room) {
		room->scratch.spent = 0;
		for (size_t i = 0; i < SITES_MAX; i++)
			room->base_ends[i].listed = false;
		count = list_links(clocks, about, links);
		qsort(links, count, sizeof(*links), compare_queued);
		link_queued(links, count, &clocks->hosts[clocks->base - 1], room);
	}
	ret = links && room ? 0 : -ENOMEM;
	free(links);
	free(room);
	return ret;
}

/* Ends a window: what arrives from now on is new. Sets each host's link to that of its track that agrees best. */
static void end_window(struct clocks *clocks)
{
	for (size_t i = 0; i < clocks->host_count; i++) {
		struct clock_host *host = &clocks->hosts[i];

		host->link = (struct clock_link){.known = i + 1 == clocks->base};
		for (size_t k = 0; k < host->track_count; k++) {
			struct clock_track *track = &host->tracks[k];

			track->new_gap_ns = 0;
			track->schedule.gap_ns *= CLOCK_GAP_DECAY;
			if (i + 1 != clocks->base && track->link.known &&
			    (!host->link.known || track->link.cost < host->link.cost))
				host->link = track->link;
		}
	}
}

/*
 * Chooses the host that others are compared with, the first by name, of synchronised ones if there are any. It stays: a
 * host that joins later does not make all offsets unknown.
 */
static void choose_base(struct clocks *clocks, const struct clock_host_about *about)
{
	uint64_t base = 0;
	bool known = false;

	for (size_t i = 0; i < clocks->host_count; i++) {
		bool synchronised = isfinite(about[i].error_ns);

		known |= i + 1 != clocks->base && is_known(&clocks->hosts[i]);
		if (!clocks->hosts[i].track_count)
			continue;
		if (!base || (synchronised && !isfinite(about[base - 1].error_ns)) ||
		    (synchronised == isfinite(about[base - 1].error_ns) &&
		     strcmp(about[i].name, about[base - 1].name) < 0))
			base = i + 1;
	}
	if (!clocks->base)
		clocks->base = base;
	if (!base || known || isfinite(about[clocks->base - 1].error_ns) || !isfinite(about[base - 1].error_ns))
		return;
	for (size_t i = 0; i < clocks->host_count; i++) {
		for (size_t k = 0; k < clocks->hosts[i].track_count; k++) {
			clocks->hosts[i].tracks[k].link = (struct clock_link){0};
			clocks->hosts[i].tracks[k].schedule = (struct clock_schedule){0};
		}
	}
	clocks->base = base;
}

static int compare_offsets(const void *a, const void *b)
{
	const double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

/* Sets what is corrected: the noise of the estimate moves no events, and a refuted offset no more. */
static void correct(struct clock_offset *offset)
{
	double size = fabs(offset->offset_ns), moved = fabs(offset->offset_ns - offset->corrected_ns);

	if (!offset->known)
		offset->corrected_ns = 0;
	else if (size < CLOCK_LITTLE_NS && moved > SHARE_MOST * CLOCK_LITTLE_NS)
		offset->corrected_ns = 0;
	else if (size >= CLOCK_LITTLE_NS && moved > SHARE_MOST * CLOCK_LITTLE_NS)
		offset->corrected_ns = offset->offset_ns;
}

/* Sets the offsets of all hosts from their links. Returns 0 or -ENOMEM. */
static int set_offsets(struct clocks *clocks)
{
	double *sorted = calloc(clocks->host_count + 1, sizeof(*sorted));
	size_t known = 0;

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < clocks->host_count; i++) {
		if (clocks->hosts[i].link.known)
			sorted[known++] = clocks->hosts[i].link.offset_ns;
	}
	if (known)
		qsort(sorted, known, sizeof(*sorted), compare_offsets);
	for (size_t i = 0; i < clocks->host_count; i++) {
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

int clocks__estimate(struct clocks *clocks, const struct clock_host_about *about, uint32_t hosts)
{
	int ret;

	if (!clocks->host_count || hosts < clocks->host_count)
		return 0;
	clocks->windows++;
	choose_base(clocks, about);
	ret = clocks->base ? link_all(clocks, about) : 0;
	if (ret)
		return ret;
	end_window(clocks);
	return set_offsets(clocks);
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
    ARCHIVE_ONE(struct clock_track, site),
    ARCHIVE_ONE(struct clock_track, rank),
    ARCHIVE_ONE(struct clock_track, before),
    ARCHIVE_ONE(struct clock_track, link.found),
    ARCHIVE_ONE(struct clock_track, link.known),
    ARCHIVE_ONE(struct clock_track, link.slip),
    ARCHIVE_ONE(struct clock_track, link.until),
    ARCHIVE_ONE(struct clock_track, link.offset_ns),
    ARCHIVE_ONE(struct clock_track, link.spread_ns),
    ARCHIVE_ONE(struct clock_track, link.cost),
    ARCHIVE_ONE(struct clock_track, link.unaudited),
    ARCHIVE_ONE(struct clock_track, schedule.tries),
    ARCHIVE_ONE(struct clock_track, schedule.due),
    ARCHIVE_ONE(struct clock_track, schedule.tried),
    ARCHIVE_ONE(struct clock_track, schedule.gap_ns),
    ARCHIVE_ONE(struct clock_track, each_ns),
    ARCHIVE_ONE(struct clock_track, last_ns),
    ARCHIVE_ONE(struct clock_track, pending),
    ARCHIVE_ONE(struct clock_track, new_gap_ns),
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
			   fabs(track->link.offset_ns) < OFFSET_POSSIBLE_NS &&
			   track->schedule.tries <= CLOCK_TRIES_MOST,
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
	archive__number(archive, &clocks->windows);
	archive__number(archive, &clocks->base);
	archive__check(archive, clocks->base <= clocks->host_count, "clocks have an unknown base");
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
