/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The owners of tracked processes (struct process) and their rooms. What is bounded for the node is shared out by
 * owner: an active one has at least its capacity divided by OWNERS_LEAST, or by the number of owners where these are
 * more. What an owner has beyond that is borrowed, and given back when another one needs it. Pure.
 */
#ifndef VAPRO_OWNERS_H
#define VAPRO_OWNERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <vapro/bpf/abi.h>

#define OWNERS_LEAST 4

struct owner {
	uid_t uid;
	uint32_t processes; /* 0: the entry is free */
	uint32_t leaving;   /* of these: detached to give their slots back, or ended */
	bool reported;	    /* that processes were detached for others */
	double ran_ns;	    /* of vaprod for the owner, so far */
	double rate;	    /* of it per time, smoothed */
	unsigned level;	    /* its share is divided by 2 so often, since it makes vaprod run too much */
	uint64_t since_ns;  /* last step of the level */
};

/* All zeros: none. */
struct owners {
	struct owner of[KERNEL_SLOTS];
	size_t active;
	uint64_t calm_ns; /* time since which vaprod runs little, or one owner is alone */
};

/* Enters a process. Returns its owner's number. There are at most KERNEL_SLOTS processes. */
uint32_t owners__join(struct owners *owners, uid_t uid);
void owners__leave(struct owners *owners, uint32_t number);

/* Returns what an owner has for sure of a capacity. newcomer: one more owner is counted. */
uint32_t owners__guaranteed(const struct owners *owners, uint32_t capacity, bool newcomer);

/* Returns whether a process of this user may have a slot that an owner has borrowed: *lender is that owner. */
bool owners__may_claim(const struct owners *owners, uid_t uid, uint32_t capacity, uint32_t *lender);

/*
 * Returns the share of each table of the kernel side that an owner's processes may use, in KERNEL_SHARE_ALL parts: what
 * remains free is enough for the guaranteed share of an owner that comes next.
 */
uint32_t owners__share(const struct owners *owners, uint32_t number);

/* Notes what vaprod ran for an owner so far; passed_ns: since the last note. */
void owners__note(struct owners *owners, uint32_t number, double ran_ns, double passed_ns);

/*
 * Where several owners together make vaprod run for more than a part of the time of one CPU, the one that is furthest
 * beyond its guaranteed part has half of its share from now on, at most once in OWNERS_STEP_NS; a step goes back after
 * OWNERS_BACK_NS in which half of that part was enough. Returns the owner that lost a step, KERNEL_SLOTS: none.
 */
#define OWNERS_STEP_NS 4000000000ULL
#define OWNERS_BACK_NS 60000000000ULL
uint32_t owners__adjust(struct owners *owners, double part, uint64_t now_ns);

#endif
