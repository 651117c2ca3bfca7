/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Numbers that several rules of the judgement share, in model, detect, diagnose and compare: each is one idea. A number
 * of one rule alone stands with that rule. docs/judgement.md lists all, with their sources and what holds them.
 */
#ifndef VAPRO_JUDGEMENT_H
#define VAPRO_JUDGEMENT_H

/* Parts of a whole. */
#define SHARE_MOST 0.5	      /* from which a part is most of the whole; of what is half as much, or half as slow */
#define SHARE_STEADY 0.8      /* of durations or batches near one centre, from which they repeat */
#define SHARE_MEANINGFUL 0.1  /* from which a part matters: a smaller one is next to nothing */
#define SHARE_NEGLIGIBLE 0.01 /* up to which a part is as good as nothing */
#define SHARE_TAIL 0.02	      /* longest fragments of a state: the tail of its durations */
#define SHARE_STALLS 0.005    /* longest fragments of a state that may be stalls, and no part of its scatter */
#define SHARE_OF_RANKS 0.6    /* ranks that agree, from which what they do is usual */
#define SHARE_OF_PLACE 0.75   /* ranks of a host or socket, from which all of it is meant */
#define SHARE_OF_SLOWEST 0.7  /* excess of the slowest rank, from which another one is slow itself */
#define SHARE_NEARLY_ALL (1 - SHARE_MEANINGFUL)

/* Durations to each other. */
#define RATIO_ALIKE 1.1	 /* up to which durations are alike */
#define RATIO_APART 1.25 /* from which durations are distinguished */
#define RATIO_WIDE 2	 /* up to which durations may be of one group, however they scatter */
#define RATIO_STALL 10	 /* of a stall, past any tail, to what is usual */
#define LONG_NS 1e9	 /* a fragment this long is judged by itself: it is the mean of much */

/* Least numbers that show what is usual. */
#define LEAST_REPEATED 3   /* occurrences that are no coincidence */
#define LEAST_COMPARED 3   /* ranks of which one may be found to be the slow one */
#define LEAST_RANKS 5	   /* ranks whose agreement or spread is known */
#define LEAST_BATCHES 5	   /* batches that are a duration */
#define LEAST_MEMBERS 10   /* members of a group or a mean */
#define LEAST_FRAGMENTS 20 /* fragments of a state that show its scatter */

/* Standard deviations, and chance. */
#define SIGMAS_VALLEY 2	 /* between a peak and a valley that parts two groups */
#define SIGMAS_AGREE 3	 /* within which means agree */
#define SIGMAS_UNUSUAL 4 /* from which a mean is unusual */
#define SIGMAS_CERTAIN 6 /* from which a difference is certain, however many are compared */
#define CHANCE_MOST 0.01 /* such findings that scatter alone is expected to make in a run: more are chance */

#endif
