/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared by the files of region growing: cells of a map while they grow together. A place is the index of a row in
 * the job's neighbours: rows of one host are contiguous.
 */
#ifndef VAPRO_REGION_PRIVATE_H
#define VAPRO_REGION_PRIVATE_H

#include "detect/region.h"

/* Layers of cells that grow separately. */
enum layer { LAYER_COMPUTATION, LAYER_SUSPENDED, LAYER_WAITING, LAYER_PATH, LAYER_TRANSFER, LAYER_IO, LAYERS };
_Static_assert((int)LAYERS == REGION_LAYERS, "the memory of a heat map counts them");

#define NO_COMPONENT UINT32_MAX
#define REGION_WEAK 0.2 /* of the mean row or column: one that lost less is no part of a region */

extern const enum vapro_class region__class[LAYERS];

struct component {
	uint32_t parent; /* union-find */
	uint32_t draft;	 /* union-find, over components that become one draft */
	enum layer layer;
	size_t cells;
	double lost, cpu, blocked;
	double preempted; /* part of cpu: by others on this machine, not by the hypervisor */
	uint64_t begin, end;
};

struct grower {
	const struct heatmap *map;
	const struct stg_job *job;
	const struct vapro_config *config;
	uint32_t *place;      /* place of each row */
	unsigned char *slow;  /* [place][bin] -> bit per layer that the cell belongs to */
	unsigned char *waits; /* [bin] -> whether ranks may wait for slow work: 1 no, 2 yes, 0 not known yet */
	uint32_t *of[LAYERS]; /* [place][bin] -> component; NULL where no cell belongs to the layer */
	size_t bins, gap;     /* gap: as region__gap */
	struct component *components;
	size_t count, capacity;
};

/* The cells of a layer by component: those of component i are cells[first[i]] to cells[first[i + 1]]. */
struct region_list {
	uint32_t *cells; /* place * bins + bin, ascending */
	uint32_t *first;
	size_t count; /* components listed */
};

/* The part of a cell that belongs to a layer: calls without the transfers that are slow by themselves, or these. */
struct cell region__cell(const struct grower *grower, size_t place, size_t b, enum layer layer);

double region__lost(const struct grower *grower, size_t place, size_t b, enum layer layer);

/* Makes a component of one cell, the last of all. Returns 0 or -ENOMEM. */
int region__component(struct grower *grower, size_t place, size_t b, enum layer layer);

uint32_t region__root(struct grower *grower, uint32_t component);
void region__join(struct grower *grower, uint32_t a, uint32_t b);

/* The component that stands for a root's draft. */
uint32_t region__draft(struct grower *grower, uint32_t component);

/* Lists the cells of a layer; the list is to be freed with region__unlist. Returns 0 or -ENOMEM. */
int region__list(struct grower *grower, enum layer layer, struct region_list *list);
void region__unlist(struct region_list *list);

/*
 * Cuts off columns at either end of a component, and rows, that lose next to nothing beside the others, or for a short
 * part of its time. What such a row lost may be a component of its own. Returns 0 or -ENOMEM.
 */
int region__trim(struct grower *grower, enum layer layer);

/*
 * Separates adjacent stretches with a mark and without. REGION_PREEMPTED: in which other tasks of this machine had the
 * CPU, as the kernel reports, and in which next to nothing is attributed, or to the hypervisor. A hog in a stretch that
 * is a little slow anyway is a variance of its own, with its own beginning, end and cause. REGION_STALLED: in which
 * next to nothing was done; a frozen file system is not the slow disk before and after it. Stretches that alternate all
 * the time stay together. Returns 0 or -ENOMEM.
 */
enum region_mark { REGION_PREEMPTED, REGION_STALLED };
int region__split(struct grower *grower, enum layer layer, enum region_mark mark);

/*
 * Separates neighbour rows that are not one thing: their losses differ clearly over all of their time in the
 * component, or they begin or end at clearly different times. Rows that agree stay together, whatever rows are between
 * them. Returns 0 or -ENOMEM.
 */
int region__level(struct grower *grower, enum layer layer);

/*
 * Makes one draft of components that are one thing: of several layers on one row that the same suspension explains,
 * and of one layer that agree in time, ratio and place. Returns 0 or -ENOMEM.
 */
int region__unite(struct grower *grower, unsigned layers);

/*
 * Rows that lose next to nothing of a draft become another one, as do rows that lose little, in a short part of its
 * time, where several components were united: they were disturbed beside what the first one is about. Returns 0 or
 * -ENOMEM.
 */
int region__part_rows(struct grower *grower);

/* Makes drafts of all cells of components, and drops drafts of little loss. */
int region__collect(struct grower *grower, struct region_result *result);
void region__filter(struct region_result *result, const struct vapro_config *config);

#endif
