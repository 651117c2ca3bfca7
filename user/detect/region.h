/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Region growing over the heat map (VAPRO (PPoPP'22) section 3.5): contiguous cells below the threshold,
 * 4-neighbours in rows and bins, a null cell is a wall. Added to the paper:
 *  - Rows of one host, and of one socket, are neighbours whatever their ranks (struct stg_job).
 *  - Rows that differ clearly in the share of time they lose, or in begin or end, are separated
 *    (region__level); components of one host or socket that agree in both, with few calm rows beside
 *    them there, are one draft (region__unite).
 *  - Communication grows in four layers, suspended in a call, waiting, slow path and transfer, since a rank that
 *    lost its CPU inside MPI, its neighbour that waits for it, one whose own route is slow and a network that is
 *    slow for all are four things. A cell may belong to the layer of transfers, with its part of the loss, and with
 *    the rest to another one.
 *  - Hysteresis: a hog's share of a 200 ms bin varies by a time slice, and a rank that mostly
 *    communicates leaves null cells; a gap of at most REGION_GAP bins on one row is bridged where
 *    both sides qualify as regions or border on the gap with a strong cell (a quarter of the bin
 *    lost). Computation beside slow cells joins them where it loses half of what makes a cell slow
 *    and the kernel attributes that.
 *  - Borders whose column loses less than a fifth of the region's mean column are cut off. Rows that lose as
 *    little, or only for a short part of the region's time, are cut off too, but what they lost may be a region of
 *    its own, such as a hog on the neighbour of a rank that is slow for long. What is cut off of waiting and transfers
 *    grows again.
 *  - Regions of several classes on one row, in overlapping bins or up to REGION_GAP apart, that the
 *    same suspension mostly explains, are one draft; so is IO of one row that sleeps for as long as others
 *    have its CPU, on which the file system's threads and the device's interrupts run. Rows that only
 *    touch a draft are another one (region__part_rows).
 *  - Where the kernel's attribution is the evidence, stretches with and without attribution are
 *    separate components, as are stalls of IO and the slow IO around them (region__split). What is too small
 *    for a component of its own, before or after the attributed part, is noise and is cut off.
 *  - A draft needs min_cells and min_lost_s; one that the kernel attributes may be as small as the least that
 *    can cost the job min_share with the waiting it causes, and lie in one cell.
 */
#ifndef VAPRO_REGION_H
#define VAPRO_REGION_H

#include <vapro/analysis.h>

#include "detect/heatmap.h"
#include "model/stg.h"

#define REGION_GAP 2	   /* bins without loss within a region; begins and ends that differ by as much are the same */
#define REGION_GAP_MOST 12 /* the same where fragments are long */
#define REGION_SPARSE 10   /* bins of a gap that has bins without fragments, at most */

struct region_cell {
	uint32_t row;
	enum vapro_class class;
	uint64_t bin;
};

/* A variance before it has an identity. */
struct draft {
	struct region_cell *cells;
	size_t cell_count, cell_capacity;
	double lost[VAPRO_CLASSES]; /* ns */
	double attributed;	    /* loss attributed by the kernel or the machine */
	bool has[VAPRO_CLASSES];
	bool waiting;	     /* in the layers of waiting or of transfers */
	bool transfers;	     /* in the layer of transfers, and in no other */
	bool path;	     /* in the layer of slow paths */
	bool lasting;	     /* a set of ranks that is slow all the time: detect/sets.h */
	uint64_t begin, end; /* bins */
};

struct region_result {
	struct draft *drafts;
	size_t count, capacity;
	uint64_t small_from, small_to; /* bins of which small drafts are counted; set before */
	uint64_t small_count;	       /* drafts that cost too little, of those that begin there */
	double small_ns;	       /* their loss there, and that of slow cells which no draft has */
};

void region__clear(struct region_result *result);

/*
 * Bins that may lie between two parts of one disturbance. Where computations are longer than bins, slow states and
 * others alternate: the gap is two computations longer.
 */
uint64_t region__gap(const struct heatmap *map);

/* Finds all drafts of a job's map. source: what computation is distinguished by. Returns 0 or -ENOMEM. */
int region__grow(const struct heatmap *map, const struct stg_job *job, const struct vapro_config *config,
		 enum vapro_workload_source source, struct region_result *result);

#endif
