/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What region.c and region_split.c share: cells of a map while they grow together. */
#ifndef VAPRO_REGION_PRIVATE_H
#define VAPRO_REGION_PRIVATE_H

#include "detect/region.h"

/* Layers of cells that grow apart. */
enum layer { LAYER_COMPUTATION, LAYER_SUSPENDED, LAYER_WAITING, LAYER_PATH, LAYER_IO, LAYERS };

#define NO_COMPONENT UINT32_MAX

struct component {
	uint32_t parent; /* union-find */
	uint32_t draft;	 /* likewise, over components that become one draft */
	enum layer layer;
	size_t cells;
	double lost, cpu, blocked;
	double taken; /* of cpu: not by the hypervisor */
	uint64_t begin, end;
};

struct grower {
	const struct heatmap *map;
	const struct stg_job *job;
	const struct vapro_config *config;
	unsigned char *slow;  /* [place][bin] -> bit per layer that the cell belongs to */
	uint32_t *of[LAYERS]; /* [place][bin] -> component; NULL where no cell belongs to the layer */
	size_t bins;
	struct component *components;
	size_t count, capacity;
};

struct cell region__cell(const struct grower *grower, size_t place, size_t b, enum layer layer);

/* Makes a component of one cell, the last of all. Returns 0 or -ENOMEM. */
int region__component(struct grower *grower, size_t place, size_t b, enum layer layer);

uint32_t region__root(struct grower *grower, uint32_t component);
void region__join(struct grower *grower, uint32_t a, uint32_t b);

/*
 * Parts what only touches: stretches that somebody on this machine makes slow who took the CPU, as the kernel
 * tells, and those where next to nothing is told, or it was the hypervisor. A hog in a stretch that is a little
 * slow anyway is a variance of its own, with its own beginning, end and cause. Where the two take turns all the
 * time they stay together. Returns 0 or -ENOMEM.
 */
int region__split(struct grower *grower, enum layer layer);

#endif
