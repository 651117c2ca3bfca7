/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Draws a model into a grid of any size, and a snapshot as plain text. */
#ifndef VAPRO_TOP_LAYOUT_H
#define VAPRO_TOP_LAYOUT_H

#include "top/grid.h"
#include "top/model.h"

/* Draws the page. Keeps in the model which rows are shown, so that the cursor stays visible. */
void top_layout__draw(struct top_model *model, struct grid *grid);

/*
 * Writes all that a model shows of its snapshot: the node, jobs, ranks of each job, slow regions in full sentences, in
 * the model's orders. width: columns. Returns 0 or -ENOMEM.
 */
int top_layout__text(struct top_model *model, FILE *out, unsigned width);

#endif
