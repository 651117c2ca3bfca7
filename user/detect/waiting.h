/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Waiting is not work (ARCHITECTURE section 7): the cost of communication beyond its reference, without waits for a
 * CPU, is split into three parts.
 *
 *  transfer   The last arriver of an operation waits for no peer: the least call of any member of the group, beyond
 *             what calls take by themselves (model/own_part.h), is the transfer of each; where that is not known, the
 *             least excess. Operations are distinguished where their calls are single fragments: those of one
 *             call-site that overlap. Merged calls have one excess per bin; the least sum of a bin is more than the
 *             sum of the leasts, so the attributed time of the group's computation in that bin is subtracted.
 *  slow path  Excess of a few members in one call-site while most of its members have none, and while no member lost
 *             half as much in computation or IO in that bin or shortly before: no rank was late.
 *  late peer  The rest.
 *
 * Threads of a process that wait for each other (STG_PROCESS) are a group per process. A member that was not in a
 * call at all has no excess, hence nothing is transfer while a member computes. Several threads of a rank that call MPI
 * are members of their own. Calls on a communicator that was not seen from its start belong to the group that its
 * label names, of which only ranks that were seen calling are members. Where several communicators have one label, each
 * is a group for as long as the view shows which ranks leave their calls together (waiting_groups.c). The excess of a
 * call in bins before the first one counts as late peer.
 */
#ifndef VAPRO_WAITING_H
#define VAPRO_WAITING_H

#include "detect/heatmap.h"
#include "model/series.h"

struct waiting;

struct waiting *waiting__new(void);
void waiting__free(struct waiting *waiting);

/* Writes or reads what outlives a window; an object to be read is new. */
void waiting__archive(struct archive *archive, struct waiting *waiting);

/* Marks the texts of stg that its groups are: their ids stay. */
void waiting__use_groups(const struct waiting *waiting, unsigned char *used);

size_t waiting__bytes(const struct waiting *waiting);

/*
 * Starts the bins [from, end) of a job of `rows` rows. The bins before the view have only the calls of states that
 * became known in this window. Returns 0 or -ENOMEM.
 */
int waiting__begin(struct waiting *waiting, struct heatmap *map, size_t rows, uint64_t from, uint64_t view,
		   uint64_t end);

/*
 * Notes how long a computation or IO bundle took, ns: its loss may delay others for that long. The longest of all
 * bundles on the map counts.
 */
void waiting__reach(struct waiting *waiting, double ns);

/* Returns the bins before a wait in which a rank may have become late, as noted since waiting__begin. */
uint32_t waiting__bins_of_reach(const struct waiting *waiting);

#define WAITING_OPEN UINT32_MAX /* in place of a bundle's number: it has not ended */

/*
 * Adds a covered communication bundle of a state, by its number in the view; from is the first bin that may still
 * change. Where the transfer size of the state is unknown, none of the excess is transfer or a slow path: larger
 * transfers take longer. Returns 0 or -ENOMEM.
 */
int waiting__add(struct waiting *waiting, const struct bundle_rec *rec, uint32_t number, const struct series *series,
		 const struct stg_state *state, uint64_t from);

/* Whether a row has called on the communicator of a group; every rank belongs to the world. Not for STG_PROCESS. */
bool waiting__is_member(const struct waiting *waiting, const struct stg_job *job, uint32_t group, uint32_t row);

/* Writes late, transfer and slow path into the cells, which hold all classes by now. Returns 0 or -ENOMEM. */
int waiting__end(struct waiting *waiting, const struct stg_job *job, const struct series_book *book);

/*
 * Sets *transfers to the transfer of each of `count` bundles, ns, by number; NULL where no bundle has any. Valid after
 * waiting__end, until the next waiting__begin. Returns 0 or -ENOMEM.
 */
int waiting__transfers(struct waiting *waiting, size_t count, const float **transfers);

/* may_wait: what is not due to late peers may be a wait for a rank that goes on with other calls meanwhile. */
typedef int waiting_visit(void *arg, uint32_t number, double late_ns, bool may_wait);

/*
 * Visits the finished calls with an excess that is for the greater part not due to late peers, in order of arrival;
 * late_ns: the part that is. Valid after waiting__end. Returns 0 or what a visit returned.
 */
int waiting__visit_own(const struct waiting *waiting, waiting_visit *visit, void *arg);

#endif
