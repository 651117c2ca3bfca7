/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hangs: time in which no rank of a job makes progress while calls are open, and no thread outside of calls uses a CPU.
 *
 * Progress of a rank is the end of a fragment of its first thread, or of a communication call of another one; other
 * threads may read or log for themselves. A thread outside of calls is at work in each bin of which it ran or wanted a
 * CPU for a tenth (stg__note_account). A job cannot hang before each of its ranks has completed a collective: until
 * then it may be setting up, or wait for its user.
 *
 * Calls that did not end are known from open bundles. What was not seen is not guessed: where the governor closed
 * probes after the last progress, a rank without an open call may be in one, and where some ranks are not watched, or
 * nothing came from their node, these may be at work.
 */
#ifndef VAPRO_DETECT_HANG_H
#define VAPRO_DETECT_HANG_H

#include "detect/coverage.h"
#include "model/series.h"

#define HANG_NO_STATE UINT32_MAX

/* A rank of a job that makes no progress. */
struct hang_member {
	uint32_t row;	    /* its first */
	uint32_t condition; /* enum vapro_hang_condition */
	uint32_t state;	    /* the call that it is in, else the last one that it made; HANG_NO_STATE: none */
	uint64_t since_ns;  /* UTC: begin of that call; else the end of its last fragment or of itself; 0: not known */
};

struct hang {
	bool started;	    /* each rank has completed a collective */
	bool open;	    /* the job makes no progress */
	bool changed;	    /* to be emitted in this window */
	uint64_t closed_ns; /* end of the last window in which probes of calls were closed; 0: never */
	uint64_t id;	    /* 0: none was found yet */
	uint32_t revision, kind, outcome;
	uint64_t begin_ns, end_ns, emitted_ns; /* UTC; emitted_ns: end as emitted last */
	uint64_t signature;		       /* of kind and members as emitted last */
	struct hang_member *members;	       /* in the order of rows */
	size_t count, capacity;
};

struct hang_input {
	const struct vapro_config *config;
	const struct stg *stg;
	uint32_t job;
	const struct series_book *series;
	const struct bundle_rec *open, *recs; /* open calls, and what the view has of finished fragments */
	size_t open_count, rec_count;
	const struct coverage_facts *facts;
	bool partial;		   /* some ranks are not watched */
	bool last;		   /* the last window */
	uint64_t begin_ns, end_ns; /* UTC: the window */
	uint32_t *last_id;	   /* the run's last number of a variance or hang */
};

/* Judges a window: finds a hang, follows one or ends it. Returns 0 or -ENOMEM. */
int hang__judge(struct hang *hang, const struct hang_input *input);

/* Whether a function is a collective that waits for other ranks, by its name. */
bool hang__is_collective(const char *function);

/* Bytes held. */
size_t hang__bytes(const struct hang *hang);

/* Takes the states of its members out of those marked, by number. */
void hang__use(const struct hang *hang, bool *over);

/* Writes or reads a hang; rows and states: how many there are. One to be read is empty. */
void hang__archive(struct archive *archive, struct hang *hang, size_t rows, size_t states);

void hang__clear(struct hang *hang);

#endif
