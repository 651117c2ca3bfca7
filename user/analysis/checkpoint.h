/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The state of an analysis in an archive, for checkpoints that have more in them (report/pipeline_checkpoint.c). */
#ifndef VAPRO_ANALYSIS_CHECKPOINT_H
#define VAPRO_ANALYSIS_CHECKPOINT_H

#include "base/archive.h"

#include <vapro/analysis.h>

/*
 * Writes or reads an analysis; one to be read is new, and has the tunables that it was written with. An analysis
 * that could not be read can only be freed.
 */
void analysis__archive(struct archive *archive, struct analysis *analysis);

/* Bounds the memory of what a checkpoint of so many bytes may hold. */
size_t analysis__most_bytes(size_t size);

/* Writes the archive's error, where there is one, as a sentence; returns it. */
int analysis__report(const struct archive *archive, const char *what, char *err, size_t err_size);

#endif
