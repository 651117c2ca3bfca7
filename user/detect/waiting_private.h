/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of waiting and slow_path.c: the excess of calls. */
#ifndef VAPRO_WAITING_PRIVATE_H
#define VAPRO_WAITING_PRIVATE_H

#include "detect/together.h"
#include "detect/waiting.h"

/* Further communicators count with the whole job, where less of the excess is transfer. */
enum { GROUPS_MAX = 64 };
enum { COMMUNICATORS_MOST = 256 }; /* communicators of one label */

struct group {
	uint32_t id;
	unsigned char *uses; /* by row: has ever called in the group */
	size_t uses_capacity;
	uint32_t *alive; /* by bin: members, + 1; 0: not counted yet. Not for STG_PROCESS */
	size_t alive_capacity;
	uint32_t *of; /* by row: number of its communicator, from 1, as latest seen; 0: unknown */
	size_t of_capacity;
	bool divided;	 /* in this view: it consists of several communicators */
	uint32_t *sizes; /* rows of each */
	size_t size_capacity;
};

/* The excess of a bundle that ended in the first bin or later. */
struct excess {
	uint32_t site, row, n; /* n: 0 while it is open */
	uint32_t from, bin;    /* bins, counted from the first: begin, or the first that may change, and end */
	uint32_t number;       /* of the bundle; WAITING_OPEN: it has not ended */
	uint64_t start_ns, end_ns;
	double ns, reference_ns; /* sums over all n; ns of a single call may be below 0 */
	double transfer_ns, path_ns;
	float cpu_ns;	 /* of a single call: in which others had its CPU, or it had none */
	float absent_ns; /* of that: stopped or throttled */
	bool no_bytes;	 /* transfer and path become 0: the transfer size is unknown */
	bool may_wait;	 /* path_ns may be a wait for ranks that go on with other work meanwhile */
};

/* The calls of a workload in a group, which form operations. */
struct call_site {
	uint32_t group, workload;
	uint32_t next;		       /* next site of the workload, + 1 */
	size_t count, singles, merged; /* items; of them single calls, and merged calls */
	size_t begin;		       /* first item in waiting->order */
	size_t users;		       /* rows of the workload; 0: not counted yet */
	bool arrivals_known;	       /* waiting->arrivals are of this site */
	bool together;		       /* no rank leaves its calls before all have entered */
	bool one_sided;		       /* its calls wait for no rank */
};

/* A single call, and the process or communicator that it waits for. */
struct single {
	struct excess *item;
	uint32_t leader, at;
};

/* The row that came last to an operation. */
struct last_arrival {
	uint32_t bin, row;
	uint64_t late_ns; /* later than the median member */
};

/* The beginning of a call. */
struct arrival {
	uint64_t start_ns;
	uint32_t row;
};

/* Calls of any call-site that last long, up to one of them in the order of their beginnings. */
struct long_calls {
	uint64_t start_ns; /* of this one */
	uint64_t end_ns;   /* the latest end so far */
	uint32_t row;	   /* of the call that ends then */
	uint64_t other_ns; /* the latest end of another row's call */
};

/* The least excess of a group's members in a bin. */
struct least {
	double ns;
	size_t rows; /* rows with an excess */
	bool known;  /* final: absent members are counted */
};

/* Rows that belong together: lists by leader. Numbers are + 1, 0 is the end. */
struct followers {
	uint32_t *first, *next;
	size_t first_capacity, next_capacity;
};

struct waiting {
	struct group groups[GROUPS_MAX];
	size_t group_count, rows, bins, reach;
	double longest_ns;    /* longest bundle, for reach */
	uint64_t begin;	      /* the first bin */
	uint64_t before_view; /* first bins, with only the calls of states that became known now */
	struct heatmap *map;
	struct excess *items; /* in order of arrival */
	size_t item_count, item_capacity;
	struct call_site *sites;
	size_t site_count, site_capacity;
	uint32_t *site_of; /* by workload: its first call-site, + 1 */
	uint32_t *by_site; /* call-sites by group and workload */
	uint32_t *order;   /* items by call-site as in by_site, and bin; where a site has single calls by end and row */
	uint32_t *by_bin;
	size_t site_of_capacity, by_site_capacity, order_capacity, by_bin_capacity;
	struct followers followers;
	uint32_t *last;		  /* by row: its last operation */
	uint32_t operation;	  /* number of the latest operation; from 1 */
	struct least *least;	  /* by leader */
	uint32_t *busy;		  /* by bin: earlier bins in which calls are slow */
	double *late;		  /* by bin: the most that any member lost beside communication */
	bool late_known;	  /* late is filled for this view */
	struct arrival *arrivals; /* single calls of one call-site, in order */
	size_t arrival_count, arrival_capacity;
	struct long_calls *long_calls; /* in order */
	size_t long_count, long_capacity;
	bool long_known; /* long_calls are of this view */
	struct last_arrival *last_arrivals;
	size_t last_arrival_count, last_arrival_capacity;
	double *paths, *sums; /* scratch, by row */
	uint64_t *starts;     /* scratch, by member of an operation */
	float *transfers;     /* by number of bundle: the transfer; those written so far */
	size_t transfer_count, transfer_capacity;
	size_t start_capacity, busy_capacity, last_capacity, late_capacity, path_capacity, sum_capacity, least_capacity;
};

static inline struct excess *waiting__item(const struct waiting *waiting, size_t at)
{
	return &waiting->items[waiting->order[at]];
}

/* The end of the items from `at` on that end in the same bin; at most `to`. */
static inline size_t waiting__bin_end(const struct waiting *waiting, size_t at, size_t to)
{
	uint32_t bin = waiting__item(waiting, at)->bin;

	while (at < to && waiting__item(waiting, at)->bin == bin)
		at++;
	return at;
}

/* When calls of one operation ended, and how long the longest took, ns. */
struct ends {
	uint64_t first_ns; /* the first end */
	uint64_t last_ns;  /* the last one, had no call lost its CPU before it returned */
	double longest;
};

static inline void waiting__add_end(struct ends *ends, uint64_t start_ns, uint64_t end_ns, double cpu_ns)
{
	uint64_t without = cpu_ns < (double)(end_ns - start_ns) ? (uint64_t)cpu_ns : end_ns - start_ns;

	ends->first_ns = !ends->first_ns || end_ns < ends->first_ns ? end_ns : ends->first_ns;
	ends->last_ns = end_ns - without > ends->last_ns ? end_ns - without : ends->last_ns;
	ends->longest = (double)(end_ns - start_ns) > ends->longest ? (double)(end_ns - start_ns) : ends->longest;
}

/* Whether calls ended at one moment. */
static inline bool waiting__at_once(const struct ends *ends)
{
	return (double)ends->last_ns <= (double)ends->first_ns + together__most_apart(ends->longest);
}

/* Finds which rows of each group are a communicator of their own in this view. Returns 0 or -ENOMEM. */
int waiting__find_communicators(struct waiting *waiting, const struct stg_job *job);

/* Lists the rows of each leader. Returns 0 or -ENOMEM. */
int waiting__link(struct waiting *waiting, const struct stg_job *job);

/* Splits single calls of one call-site: overlapping calls are one operation. Returns 0 or -ENOMEM. */
int waiting__split_singles(struct waiting *waiting, const struct stg_job *job, const struct series_book *book,
			   const struct call_site *site);

/* Writes who came last into the bins of the view. */
void waiting__write_arrivals(struct waiting *waiting);

/* Calls that wait for no rank: all of their excess that is no slow path is transfer. */
void waiting__split_one_sided(struct waiting *waiting, const struct call_site *site);

/* Splits merged calls of one call-site, compared within one bin. */
void waiting__split_merged(struct waiting *waiting, const struct stg_job *job, const struct call_site *site);

/* Makes room to find slow paths. Returns 0 or -ENOMEM. */
int waiting__begin_slow_paths(struct waiting *waiting);

/* Finds the slow-path part of the excess in the calls of one call-site. Returns whether there is any. */
bool waiting__find_slow_path(struct waiting *waiting, const struct series_book *book, struct call_site *site);

/*
 * Drops the slow paths of ranks that computed less than another rank in the view, by half of the paths or more:
 * the other rank came late, with more work or less speed than is known.
 */
void waiting__drop_slow_paths(struct waiting *waiting, const struct stg_job *job, const struct series_book *book);

/*
 * Subtracts what ranks lost on their slow paths in a bin from the transfers of merged calls of other call-sites that
 * end there: their members waited for those ranks. Returns 0 or -ENOMEM.
 */
int waiting__clear_transfers(struct waiting *waiting);

#endif
