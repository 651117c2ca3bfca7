/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The orders of a job's rows. Rows come in any order, and many at once: one call orders all of them. */
#ifndef VAPRO_ROWS_H
#define VAPRO_ROWS_H

#include "model/stg.h"

/* Fills order, place and neighbours. */
void rows__order(struct stg_job *job);

#endif
