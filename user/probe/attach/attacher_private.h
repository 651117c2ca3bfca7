/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of the attacher only. */
#ifndef VAPRO_ATTACHER_PRIVATE_H
#define VAPRO_ATTACHER_PRIVATE_H

#include "base/grow.h"
#include "probe/attach/attacher.h"
#include "probe/elf/site.h"
#include "probe/bpf/shared.h"

struct probe {
	uint64_t offset, entry; /* file offsets of the site and of the function's entry */
	uint64_t row;
	const char *name;
	enum site_class class;
	uint32_t departed; /* checks in a row at which returns were missing */
	uint64_t entered;  /* calls of the row until it was opened last */
	bool hot;	   /* closed in duty cycles */
	int unit;	   /* functions__unit() of its row: -1 where its calls can wait */
};

struct link {
	struct kernel_link *open; /* NULL while closed */
	pid_t pid;		  /* 0 = all processes */
	int64_t row;		  /* row of its one function, or LINK_* */
};

/*
 * Links of many functions. Functions that can wait share one link or, once parted, a link that stays and one that
 * goes. Functions that never wait share LINK_OTHERS; each one that loops call has its own link from the beginning.
 */
enum { LINK_WAITING = -1, LINK_CALM = -2, LINK_HOT = -3, LINK_OTHERS = -4 };

/* Polling calls, linked for a short time at the start of a process. */
struct learning {
	struct probe *probes;
	size_t count, room;
	struct kernel_link *open; /* NULL: learnt */
	pid_t pid;		  /* 0 = all processes */
	uint64_t until_ns;	  /* CLOCK_MONOTONIC */
	uint64_t polls;		  /* polls seen before it was opened */
};

struct attached {
	struct attached_image public;
	char *path;
	char build_id[IMAGE_BUILD_ID_MAX];
	struct survey *survey; /* owns the reasons of the skips */
	int file;	       /* keeps the file reachable whatever its name space, until the last mapper ends */
	struct probe *probes;
	size_t probe_count, probe_room;
	struct attached_skip *skips;
	size_t skip_room;
	struct link *links;
	size_t link_count, link_room;
	pid_t *mappers;
	size_t mapper_count, mapper_room;
	struct learning learning;
	bool parted; /* its links are LINK_CALM and LINK_HOT, not LINK_WAITING */
};

struct attacher {
	struct kernel_side *side;
	struct attached **images;
	size_t count, room;
	bool paused; /* for good */
	uint32_t cpus;
	uint64_t learn_ns; /* how long polling calls are learnt */
};

/* Notes that a function of the image is not probed. False when out of memory. */
bool attached__skip(struct attached *image, const char *function, const char *reason);

/* Updates the public counts from the probes. */
void attached__count_probes(struct attached *image);

/*
 * Links all probes of the image, less those that the kernel refuses and those of units that are left out, for one
 * process or all (pid 0). Functions that never wait have links of their own, so that they can be closed alone; where
 * links are slow to close each function has one. Returns 0 or -errno, and then no link is added.
 */
int attached__link(struct attacher *attacher, struct attached *image, pid_t pid);

/* Closes the open links of the image that are chosen. */
void attached__close_links(struct attacher *attacher, struct attached *image,
			   bool (*chosen)(const struct attached *image, const struct link *link, int64_t by),
			   int64_t by);

/* Closes the first count links of the image and waits until they are gone. */
void attached__drop_links(struct attacher *attacher, struct attached *image, size_t count);

/* Begins to learn polling calls of the image, or goes on if it is under way. Failure only leaves them unknown. */
void attached__learn(struct attacher *attacher, struct attached *image, pid_t pid);

/* Ends the learning. */
void attached__learnt(struct attacher *attacher, struct attached *image);

/* Whether a probe belongs to links of a row, or LINK_*. */
bool attached__is_of(const struct probe *probe, int64_t row);

/* Whether a link is of functions that are left out at present. */
bool attached__leaves_out(const struct attached *image, const struct link *link);

/* Starts counting calls for the next choice of what is closed or left out. */
void attached__begin_count(const struct attacher *attacher, struct attached *image);

/* Opens a link: link->open stays NULL where that fails, or where there is nothing to link. 0 or -errno. */
int attached__open_link(struct attacher *attacher, struct attached *image, struct link *link);

/* Relinks functions that can wait as those that stay and those that go; the latter stay closed. 0 or -errno. */
int attached__part(struct attacher *attacher, struct attached *image);

/* Updates the kernel side's view of the rows that this image defines. */
void attached__describe_rows(struct attacher *attacher, const struct attached *image);

/*
 * Moves a probe to another site of its function: new links are opened before the old ones are closed, so that no
 * call in flight loses a return that the kernel has hijacked for it. Fragments that are open are discarded.
 */
void attached__move(struct attacher *attacher, struct attached *image, struct probe *probe, uint64_t offset,
		    enum site_class class);

/* Opens new links that hold a probe, then closes the old ones. */
void attached__relink(struct attacher *attacher, struct attached *image, const struct probe *probe);

#endif
