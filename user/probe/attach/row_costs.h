/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What probes of functions with exit sites cost: measured while they are open, or estimated by a look. */
#ifndef VAPRO_ROW_COSTS_H
#define VAPRO_ROW_COSTS_H

#include "probe/attach/row_image.h"
#include "probe/attach/row_plan.h"

struct costs;

bool row_costs__share_exit(const struct row_function *a, const struct row_function *b);

/* Returns the loads of functions for a plan, to be freed; NULL when out of memory. */
struct row_load *row_costs__loads(struct row_probe *const *probes, size_t count);

/* Extra cost of a hit at a single-stepped site, ns. */
double row_costs__stepping_ns(const struct costs *costs);

/* Starts a new interval for its rates. */
void row_costs__mark(struct row_probe *probe);

/* Adds the estimated cost of the exits of all calls since its mark, each after the same pause as its entry. */
void row_costs__estimate_exits(const struct costs *costs, struct row_probe *probe);

#endif
