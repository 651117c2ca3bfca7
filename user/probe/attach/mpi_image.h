/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The attacher of MPI functions and its images, for the files of that. */
#ifndef VAPRO_MPI_IMAGE_H
#define VAPRO_MPI_IMAGE_H

#include "functions/functions.h"
#include "probe/attach/attachments.h"
#include "probe/elf/site.h"

struct probe {
	uint64_t offset, entry; /* file offsets of the site and of the function's entry */
	uint64_t row;
	const char *name;
	enum site_class class;
	uint32_t departed;	      /* checks in a row at which returns were missing */
	struct function_calls calls;  /* of the row, when they were last read */
	struct function_calls before; /* the same until counting began */
	double cost;		      /* of its calls since then, in calls at emulated sites */
	bool large;		      /* the large-count form of its row */
	bool hot;		      /* closed in duty cycles */
	bool costly;		      /* had a part of the cost when it became hot */
	int unit;		      /* functions__unit() of its row */
	int64_t set;		      /* functions that share its links: its row where it is alone, or SET_* */
};

/*
 * Functions that can wait are divided into those that stay and those that are closed in duty cycles, at first all into
 * the former; one that is left out once is alone from then on. Functions that never wait share SET_OTHERS; each one
 * that loops call is alone, and where links are slow to close each function is. Polling calls that are learnt have a
 * set that no other code opens.
 */
enum { SET_CALM = -1, SET_HOT = -2, SET_OTHERS = -3, SET_POLLING = -4 };

/* Polling calls, linked for a short time at the start of a process. */
struct learning {
	struct probe *probes;
	size_t count, room;
	uint64_t until_ns; /* CLOCK_MONOTONIC; 0: learnt */
	uint64_t polls;	   /* polls seen before they were linked */
	uint64_t seen;	   /* polls of a learning that ended since counting began */
	bool put_off;	   /* until the probes of the image are open */
};

struct mpi_image {
	struct attached base;
	struct survey *survey; /* owns the reasons of the skips */
	struct probe *probes;
	size_t probe_count, probe_room;
	struct learning learning;
};

struct attacher {
	struct attachments base;
	uint64_t learn_ns; /* how long polling calls are learnt */
};

static inline struct mpi_image *attacher__image(const struct attacher *attacher, size_t i)
{
	return (struct mpi_image *)attacher->base.images[i];
}

/* The image that others know as public; NULL where it is gone. */
struct mpi_image *mpi_image__find(const struct attacher *attacher, const struct attached_image *public);

/* Notes once that a function of the image is not probed. 0 or -ENOMEM. */
int mpi_image__skip(struct mpi_image *image, const char *function, const char *reason);

/* Updates the public counts from the probes. */
void mpi_image__count_probes(struct mpi_image *image);

/*
 * Links all probes of the image, less those that the kernel refuses and those that are closed or left out, for one
 * process or all (pid 0). Returns 0 or -errno, and then no link is added.
 */
int mpi_image__link(struct attacher *attacher, struct mpi_image *image, pid_t pid);

/* Begins to learn polling calls of the image, or goes on if it is under way. Failure only leaves them unknown. */
void mpi_image__learn(const struct attacher *attacher, struct mpi_image *image, pid_t pid);

/* Returns how many polling calls were seen since the learning or the counting of calls began. */
uint64_t mpi_image__polls(const struct attacher *attacher, const struct mpi_image *image);

/* Ends the learning. */
void mpi_image__learnt(const struct attacher *attacher, struct mpi_image *image);

/* Whether a link is not to be open at present: functions of its set are closed or left out. */
bool mpi_image__stays_closed(const struct attacher *attacher, const struct mpi_image *image,
			     const struct attached_link *link);

/* Divides the image's functions as an earlier run of the program did; for an image without links. */
void mpi_image__spare(const struct attachments *all, struct mpi_image *image, const struct functions_spared *spared);

/* Starts counting calls for the next choice of what is closed or left out. */
void mpi_image__begin_count(const struct attachments *all, struct mpi_image *image);

/* Opens links that should be open and are not. 0 or the first -errno. */
int mpi_image__open_links(struct attacher *attacher, struct mpi_image *image);

/* Updates the kernel side's view of the rows that this image defines. */
void mpi_image__describe_rows(const struct attachments *all, const struct mpi_image *image);

/*
 * Moves a probe to another site of its function: new links are opened before the old ones are closed, so that no
 * call in flight loses a return that the kernel has hijacked for it. Fragments that are open are discarded.
 */
void mpi_image__move(struct attacher *attacher, struct mpi_image *image, struct probe *probe, uint64_t offset,
		     enum site_class class);

/* Opens new links of a set, then closes the old ones. */
void mpi_image__relink(struct attacher *attacher, struct mpi_image *image, int64_t set);

#endif
