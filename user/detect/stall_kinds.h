/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Internal noise components of a job (docs/noise.md): stalls of one length, of one class, on one row or many. The
 * stalls of a row that are alike are one kind; kinds of rows whose lengths agree are one; and what each row has too few
 * of is found in the sum over all rows. All sums are of integers, so that the order of stalls and of rows does not
 * matter.
 *
 * Without counts the work of a computation is not known to be equal: a longer one in one state alone may be more work.
 * It counts where several states are hit, or where LEAST_COMPARED rows are, seldom, each at times of its own.
 */
#ifndef VAPRO_DETECT_STALL_KINDS_H
#define VAPRO_DETECT_STALL_KINDS_H

#include "detect/stalls.h"
#include "model/stg.h"

enum { STALL_KINDS = 64 };    /* kinds of a job and class that are distinguished */
enum { STALL_SITES = 8 };     /* states of a kind that are named */
enum { STALL_EXEMPLARS = 5 }; /* latest stalls of a kind that are named */
enum { STALL_MOMENTS = 32 };  /* latest moments of a kind that are compared with those of others */

struct stall_kind {
	enum vapro_class class;
	uint32_t low, high; /* buckets of the excess */
	uint64_t n, ns;	    /* over all rows */
	bool summed;	    /* of all rows with such stalls; else of those in which they are a mode */
};

/* A job as kinds are looked for in it. */
struct stall_view {
	const struct stg_job *job;
	const double *observed_ns; /* by row: time in which it was observed */
	double share;		   /* of a row's time that a kind must have taken of some row */
	double least_ns;	   /* and of all rows */
};

/*
 * Finds the kinds of a class, by length. kinds has room for STALL_KINDS. Returns 0 or -ENOMEM.
 */
int stall_kinds__find(const struct stalls *stalls, const struct stall_view *view, enum vapro_class class,
		      struct stall_kind *kinds, size_t *count);

/* Sums the stalls of a kind in a row. */
void stall_kinds__of_row(const struct stalls *stalls, const struct stall_kind *kind, uint32_t row, uint64_t *n,
			 uint64_t *ns);

/* Sums the stalls of a kind again that was found in an earlier window. */
void stall_kinds__sum(const struct stalls *stalls, size_t rows, struct stall_kind *kind);

/* Whether a stall is of a kind. */
bool stall_kinds__has(const struct stall_kind *kind, const struct stall *stall);

enum stall_together { STALL_APART, STALL_HOST, STALL_JOB };

/* What the latest stalls of a kind say. Parts are of these, not of all. */
struct stall_facts {
	size_t stalls; /* how many these are */
	struct {
		uint32_t state;
		size_t stalls;
	} sites[STALL_SITES]; /* most stalls first */
	size_t site_count;    /* states, also beyond STALL_SITES */
	size_t rows;	      /* rows that were hit */
	bool resolved;	      /* most stalls of these rows and the class came one by one, or equal */
	double follow;	      /* part of them that follow the stall of the fragment before, in their state and row */
	double often;	      /* part of the fragments of their states that they are */
	double may_wait;      /* part of them that may be waits for other ranks */
	double regularity;    /* of the gaps of the row with most: deviation by mean; NAN: too few */
	enum stall_together together; /* nearly all at the same moments of the rows of a host, of the job */
	size_t moments;		      /* moments; of stalls that are not together each is one */
	struct {
		uint64_t begin_ns, end_ns;
	} latest[STALL_MOMENTS]; /* moments, the oldest first */
	size_t latest_count;
	int second;				 /* of the minute, UTC, at which all moments were; -1: none */
	struct stall exemplars[STALL_EXEMPLARS]; /* the latest, of any rows */
	uint32_t exemplar_rows[STALL_EXEMPLARS];
	size_t exemplar_count;
};

/* A kind that was emitted. */
struct stall_emitted {
	struct stall_kind kind;
	uint32_t id, revision;
	uint64_t emitted_n, emitted_ns;
	bool final;
};

enum { STALLS_EMITTED = 8 }; /* kinds of a job that are emitted, those that were found first */

struct stall_list {
	struct stall_emitted items[STALLS_EMITTED];
	size_t count;
};

/* Writes or reads the kinds that were emitted. */
void stall_kinds__archive(struct archive *archive, struct stall_list *list);

#endif
