/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Declarations that only the model's own files share. */
#ifndef VAPRO_TOP_MODEL_PRIVATE_H
#define VAPRO_TOP_MODEL_PRIVATE_H

#include "top/model.h"

/* Return a number that stands for a job, or an item of a list, in all snapshots; never 0. */
uint64_t top_job__identity(const struct top_job *job);
uint64_t top_model__identity(const struct top_model *model, enum top_list list, size_t item);

#endif
