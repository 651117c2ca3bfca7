/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Variances: drafts of regions with an identity over windows. A draft continues the variance that
 * owned most of its cells in the last window; a variance whose cells went to another one is closed
 * and its loss belongs to the survivor, but what was reported as closed stays apart. A variance is closed when its end
 * lies so far before the end of the new part that nothing can be bridged to it any more.
 */
#ifndef VAPRO_VARIANCE_H
#define VAPRO_VARIANCE_H

#include "detect/region.h"
#include "detect/tally.h"

#include <vapro/analysis.h>

struct variance_emitted {
	uint64_t begin, end;
	uint32_t row_count;
	double lost_seconds;
	bool confirmed, alarm, still_open, by_place;
	enum vapro_severity severity;
	uint64_t effect_of;
	uint32_t diagnosed;
};

struct variance {
	uint32_t id, revision;
	enum vapro_region_state state;
	uint64_t begin, end; /* bins */
	uint32_t *rows;	     /* in rank order */
	size_t row_count, row_capacity;
	bool has[VAPRO_CLASSES];
	bool waiting;	/* in the layers of waiting or of transfers */
	bool transfers; /* in the layer of transfers: it owns these parts of its cells only */
	bool path;	/* in the layer of slow paths */
	bool lasting;	/* a set of ranks: detect/sets.h */
	bool matched;	/* matched by a draft of this window */
	bool emitted_once;
	bool over; /* closed, and reported as closed */
	uint32_t merged_into;
	struct tally history, retiring, staying, total; /* total = the sum of the three */
	/* The verdict of this window. */
	enum vapro_class class;
	double late, transfer; /* ns, of a waiting variance */
	bool confirmed, alarm;
	bool proven;   /* once: most of its loss was attributed, or of one merged into it, or its transfers stood out */
	bool alike;    /* all ranks slowed alike, and nothing attributes it: work or speed of all */
	bool outlier;  /* one fragment that nothing attributes */
	bool lone;     /* its ranks became slow at once, and no others changed */
	bool stepped;  /* so did several states of a rank */
	bool moved;    /* when its ranks became slow others changed as well */
	bool gradual;  /* it began in steps too small to see */
	bool by_place; /* not confirmed, but likely: enum vapro_confidence */
	bool small;    /* costs too little to be a variance: weight.h */
	double others; /* rows that can wait for one of its rows */
	double caused_ns, share;
	double rated_share, denominator_ns; /* decides the severity, and the ranks' time of which it is */
	enum vapro_severity severity;
	uint64_t effect_of;
	char evidence[160];
	uint32_t diagnosed; /* progress of its diagnosis, a number of the caller */
	struct variance_emitted emitted;
};

struct variance_book {
	struct variance *variances; /* ascending by id */
	size_t count, capacity;
	uint32_t *last_id; /* shared by the books of all jobs: ids are unique in the run */
};

void variance__free(struct variance_book *book);

/*
 * Writes or reads the variances of a job with so many rows, over a book of so many series; a book to be read is
 * empty.
 */
void variance__archive(struct archive *archive, struct variance_book *book, size_t rows, size_t series);

/* What a variance owns of the calls in its cells: HEATMAP_TRANSFERS, or VAPRO_COMMUNICATION for all but these. */
static inline enum vapro_class variance__calls(const struct variance *variance)
{
	return variance->transfers ? HEATMAP_TRANSFERS : VAPRO_COMMUNICATION;
}

/*
 * Takes over the drafts and writes the owners into the map. Cells of a variance that was reported as closed are parted
 * from a draft that another one continues. Returns 0 or -ENOMEM.
 */
int variance__match(struct variance_book *book, struct heatmap *map, const struct stg_job *job,
		    struct region_result *drafts, uint64_t end, bool last);

/* NULL where no variance has the id. */
struct variance *variance__find(const struct variance_book *book, uint32_t id);

/*
 * Returns the share of its rows' time in the variance that was in fragments, judged or not, as far as the map goes
 * back; the rest passed with probes closed, in lost fragments or in open ones. NAN where the map has none of its bins.
 */
double variance__observed(const struct variance *variance, const struct heatmap *map);

/*
 * Returns the bins right before its begin, from bin `from` on, and right after its end, up to bin `to`, in which next
 * to nothing was seen of its rows, since probes were closed or fragments were lost: it may have begun earlier, or ended
 * later. 0 where the kernel attributes most of its loss, whose account has no such gaps.
 */
uint64_t variance__unseen_before(const struct variance *variance, const struct heatmap *map, uint64_t from);
uint64_t variance__unseen_after(const struct variance *variance, const struct heatmap *map, uint64_t to);

/*
 * Returns the variance's loss, ns, if the time that was not observed was like the rest. What the kernel attributes is
 * known at all times. A waiting or a path's loss is returned as it is.
 */
double variance__whole_loss(const struct variance *variance, double observed);

/*
 * Returns what a variance lost, ns: by its class, and at least what the kernel attributes of that; of other classes
 * what the kernel attributes. A shorter fragment makes up for no attributed time.
 */
double variance__lost(const struct variance *variance);

/* Returns the judged time of the rows in which variance__lost was lost, ns. */
double variance__judged(const struct variance *variance);

/* Whether a bundle of a class is part of the loss: calls in a region of another class are where they were held up. */
bool variance__counts(const struct variance *variance, const struct bundle_rec *rec, enum vapro_class class);

/* Returns what a part took of the loss, ns. All parts add up to variance__lost. */
double variance__part(const struct variance *variance, enum tally_part part);

/* Least loss, in seconds, of a variance that is new. */
double variance__least_s(const struct vapro_config *config);

/*
 * Whether the variance must be emitted in this window; if so, notes what is emitted and counts the
 * revision. An ongoing variance is emitted again where its verdict, its beginning or its rows changed or
 * its loss by half (not that of an effect), so that a long one takes few lines, and when it closes;
 * one that rests on an open fragment, each time. A small variance is not emitted at all, nor a new one that
 * lost less than least_s: its cells are older than all bundles, so it was emitted under another id.
 */
bool variance__emit(struct variance *variance, double least_s);

/* Ends the window: retired tallies become the past, closed variances out of the map are dropped. */
int variance__retire(struct variance_book *book, const struct heatmap *map);

#endif
