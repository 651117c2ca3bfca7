/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of the watch share and nobody else sees. */
#ifndef VAPRO_WATCH_PRIVATE_H
#define VAPRO_WATCH_PRIVATE_H

#include "report/lines.h"
#include "target/image.h"
#include "target/topology.h"
#include "probe/elf/static_mpi.h"
#include "vapro.skel.h"
#include "daemon/tracker.h"

/* What the governor does about a process, and what it rests on. */
struct governed {
	struct governor_account account;
	struct governor_steps steps;
	struct governor_turns io; /* its system calls */
	struct kernel_counters charged;
	uint64_t charged_io;
	uint64_t held_ns;	       /* its threads waited for vaprod, up to the last charge */
	uint64_t spent_ns;	       /* by its busiest thread, so far */
	uint64_t paid_ns, reported_ns; /* of that, charged to the account, and in windows that ended */
	struct governor_load load;     /* of the time since load_ns; and what counters were then */
	uint64_t load_ns, load_calls, load_io, load_thinned_io;
	uint64_t calls[KERNEL_SPANS], time_ns[KERNEL_SPANS];
	double cost;	    /* of the last load, share of its time */
	bool looked;	    /* once, soon after it was attached */
	uint64_t asked_ns;  /* when it was last asked what could be left out, before its allowance is used up */
	uint64_t gap_ns;    /* since when some of it is not seen and not counted yet; 0 = all is seen */
	uint64_t closed_ns; /* such time in this window */
	uint64_t thinned, thinned_ns, thinned_io; /* at the last window's end */
};

/* An image's probes: what is left out of them, and whether they are closed and opened in turns. */
struct image_turns {
	const struct attached_image *image;
	struct governor_set set;
	uint64_t counted_ns; /* since when calls are counted, for the shares of functions */
	struct governor_turns turns;
	uint64_t closed_ns; /* when links were closed last */
	bool told;
	unsigned told_level;
};

struct watched {
	pid_t pid;
	int pidfd;
	uint32_t slot;
	uint32_t flags;		 /* KERNEL_PROCESS_* */
	struct process identity; /* its mappings belong to the resolver's copy and are not used here */
	const struct attached_image *image;
	char build_id[IMAGE_BUILD_ID_MAX];
	uint64_t attached_ns, ended_ns;
	uint64_t attach_cost_ns; /* CPU time that was spent on reading its images and setting its probes */
	uint64_t start_utc_ns;
	struct kernel_counters window; /* at the last window's end */
	struct governed governed;
	uint64_t told;	      /* vertex fragments of this slot, when it was given */
	uint64_t unaccounted; /* reported so far */
	uint64_t io_calls, io_ns;
	uint64_t looked_ns; /* when it was looked at first, and what CPU time it had then */
	double looked_cpu_s;
	uint64_t remapped_ns;  /* it mapped more at this time; 0: it is as it was read */
	bool io_asked;	       /* it did IO before it was watched: traced at once, not after a second of watching */
	bool threaded;	       /* its thread rows were looked for when it had threads */
	bool gone;	       /* its end was seen */
	bool pathless;	       /* keeps no frame pointers, and that was said */
	pid_t tracer;	       /* that a warning was given of; 0: none */
	uint32_t bounded_told; /* KERNEL_BOUNDED_* that were reported */
	bool silence_told;     /* that no call was seen, or one was and there is nothing to tell */
};

struct heard {
	pid_t pid;
	uint64_t since_ns;
	int looks, limit;
	uint64_t due_ns; /* it is old enough for its attachment then; 0 = that was not asked yet */
	char exe[64];	 /* set with due_ns */
};

/* What the last attachment to an image cost, ns: the next one is put off by it. 0 = not known yet. */
struct image_cost {
	uint64_t device, inode;
	uint64_t join_ns; /* of a process whose image had its links */
	uint64_t open_ns; /* where they were opened; not the first time, when the image was read as well */
};
#define IMAGE_COSTS 16

/* Whether the last image that was asked about is shared with others than targets. */
struct verdict {
	uint64_t device, inode, at_ns;
	bool alone;
	uint32_t uses; /* by processes that are alone */
};

/* A thread that ended. */
struct ended_thread {
	pid_t tid;
	uint64_t time_ns;
};

struct watch {
	struct watch_parts parts;
	const struct selection *selection;
	struct watched *watched;
	size_t count, room;
	struct heard *heard;
	size_t heard_count, heard_room;
	struct heard later; /* of one that was too young: its due_ns and exe */
	bool slots[KERNEL_SLOTS];
	size_t ever;
	uint64_t hits; /* of processes that ended */
	uint64_t last_second_ns;
	uint64_t window_ns; /* CLOCK_MONOTONIC; the present window began here */
	struct static_mpi *statics;
	struct topology *topology;
	uint64_t *named_start; /* of the processes asked for by number; 0 not seen yet */
	struct verdict verdict;
	struct image_cost costs[IMAGE_COSTS]; /* a ring */
	size_t cost_count;
	struct image_turns *turns;
	size_t turn_count, turn_room;
	struct ended_thread *ended; /* in the order of their ends */
	size_t ended_count, ended_room;
};

static inline const struct kernel_counters *watch__counters(const struct watch *watch, const struct watched *watched)
{
	return &kernel_side__bpf(watch->parts.side)->bss->counters[watched->slot];
}

static inline uint64_t watch__hits_of(const struct watch *watch, const struct watched *watched)
{
	return watch__counters(watch, watched)->enter;
}

/* Start of a process as UTC, ns. */
uint64_t watch__start_utc(const struct process *process);

struct watched *watch__of(struct watch *watch, pid_t pid);

/*
 * Begins to watch a process that was read; takes it over. The kernel side must know the process, its
 * handles and its libc before the first hit, so the links come last. 0 or -errno with a sentence.
 */
int watch__attach(struct watch *watch, struct process *process, uint64_t now_ns, char *err, size_t err_size);

/* What an attachment to an image will cost by what the last one did, ns; 0 where there was none. */
uint64_t watch__attach_cost(struct watch *watch, const struct process_mapping *mapping);

/* A process became another program: it is looked at soon. */
void watch__executed(struct watch *watch, pid_t pid, uint64_t now_ns);

/* Looks at whom we heard of. */
void watch__look(struct watch *watch, uint64_t now_ns);

/* Forgets one that ended and has been drained since, with its last facts. false where it is too early. */
bool watch__retire(struct watch *watch, struct watched *watched, uint64_t now_ns);

/* Attaches user and thread rows of a process that begins to be watched. Returns how many functions. */
int watch__attach_rows(struct watch *watch, struct watched *watched, const struct process *process);

/* A process maps more than it did. */
void watch__rows_remapped(struct watch *watch, struct watched *watched);

/* A process may have got threads since. */
void watch__look_for_threads(struct watch *watch, struct watched *watched, size_t threads);

/* Reports a decision about functions' probes; ctx: the watch. */
void watch__rows_decided(void *ctx, const struct row_decision *decision);

/* Whether a process maps a library of OpenMP's. */
bool watch__maps_openmp(const struct process *process);

/* A process begins to be governed: its slot is its own from now on. */
void watch__begin_governing(const struct watch *watch, struct watched *watched, uint64_t now_ns);

/* All that will be probed of it is: its image's probes may be closed at present, or some left out. */
void watch__join_image(struct watch *watch, struct watched *watched, uint64_t now_ns);

/* Its links are about to change one by one: until it joins its image, no time between two calls is a fragment. */
void watch__leave_image(const struct watch *watch, const struct watched *watched);

/*
 * Leaves functions that never wait out of the image of a process that costs too much (sets.c). Returns whether
 * there were any: then it costs less from now on.
 */
bool watch__leave_out(struct watch *watch, struct watched *watched, uint64_t now_ns);

/* The same where a process costs more than its budget, though its allowance lasts for a while yet. */
bool watch__leave_out_early(struct watch *watch, struct watched *watched, uint64_t now_ns);

/* Probes them again where all processes of the image can afford it. */
void watch__probe_again(struct watch *watch, struct image_turns *turns, uint64_t now_ns);

/* What the governor wants of a process, as the kernel side reads it. */
struct kernel_governed *watch__orders(const struct watch *watch, const struct watched *watched);

/* A new interval begins, over which the cost of a process's calls is measured. */
void watch__begin_load(const struct watch *watch, struct watched *watched, uint64_t now_ns);

/* "process 12 (lmp): 31000 calls/s cost 2.9 % of its time", of the interval. */
const char *watch__say_load(const struct watch *watch, const struct watched *watched, char *text, size_t size);

/* The record of an image, made at first sight; NULL when out of memory. */
struct image_turns *watch__turns_of(struct watch *watch, const struct attached_image *image);

/*
 * Links of an image change: threads of its processes begin anew. unseen: from here on some of their calls are not
 * seen. voids: open calls will not be seen to return.
 */
void watch__turn_image(struct watch *watch, const struct attached_image *image, bool unseen, bool voids);

/* What its processes cost until its links were closed or opened says nothing of what they will cost. */
void watch__charge_image(struct watch *watch, const struct attached_image *image, uint64_t now_ns);

double watch__budget_pct(const struct watch *watch);

/* How many times as much a call costs whose site is single-stepped. */
double watch__stepped_ratio(const struct costs *costs);

/* An image may be gone with the process that let go of it. */
void watch__forget_image(struct watch *watch, const struct attached_image *image);

/* Adds the time up to now in which some of it was not seen to the window's; goes_on: it still is not. */
void watch__count_gap(struct watched *watched, uint64_t now_ns, bool goes_on);

/* What the probes of a process cost its busiest thread since the last call, ns. */
uint64_t watch__spent(const struct watch *watch, struct watched *watched);

/* A `process` line. */
void watch__tell_process(struct watch *watch, const struct watched *watched, enum line_process_state state,
			 uint64_t hits, const char *reason);

/* Where a thread that has a row runs; one that ended stays where it was seen last. Returns what the sink does. */
int watch__tell_place(struct watch *watch, const struct watched *watched, pid_t tid);

/* Announces the main thread as a row, from its attachment to to_ns (0: it goes on). */
void watch__tell_row(struct watch *watch, const struct watched *watched, uint64_t to_ns);

#endif
