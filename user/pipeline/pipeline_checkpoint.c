// SPDX-License-Identifier: GPL-2.0-or-later
/* Checkpoints of a pipeline: see pipeline.h and docs/checkpoint.md. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/checkpoint.h"
#include "pipeline/pipeline_private.h"

#define KIND "pipeline"

static const struct archive_column pipeline_columns[] = {
    ARCHIVE_ONE(struct pipeline, host),
    ARCHIVE_ONE(struct pipeline, clock.mono_ns),
    ARCHIVE_ONE(struct pipeline, clock.utc_ns),
    ARCHIVE_ONE(struct pipeline, rank_seconds),
    ARCHIVE_ONE(struct pipeline, judged_seconds),
    ARCHIVE_ONE(struct pipeline, selections),
    ARCHIVE_ONE(struct pipeline, totals.windows),
    ARCHIVE_ONE(struct pipeline, totals.variances),
    ARCHIVE_ONE(struct pipeline, totals.alarms),
    ARCHIVE_ONE(struct pipeline, totals.bundles),
    ARCHIVE_ONE(struct pipeline, totals.fragments),
    ARCHIVE_MANY(struct pipeline, totals.lost),
    ARCHIVE_ONE(struct pipeline, totals.lost_lines),
    ARCHIVE_ONE(struct pipeline, totals.refused),
    ARCHIVE_ONE(struct pipeline, begin_ns),
    ARCHIVE_ONE(struct pipeline, end_ns),
    ARCHIVE_ONE(struct pipeline, shed_reported),
};
static const struct archive_table pipeline_table = ARCHIVE_TABLE("pipeline", struct pipeline, pipeline_columns);

/* Checkpoints had copies of the threads once, and still have room for them: none are written, and those read are
 * dropped. */
static const struct archive_column thread_columns[] = {ARCHIVE_ONE(struct vapro_thread, id)};
static const struct archive_table thread_table =
    ARCHIVE_TABLE("announced threads", struct vapro_thread, thread_columns);

static void archive_head(struct archive *archive, struct pipeline *pipeline)
{
	struct intern *texts = intern__new();
	struct vapro_thread *threads = NULL;
	size_t count = 0, capacity = 0;
	char *host = pipeline->host;

	if (!texts) {
		archive__fail(archive, -ENOMEM, "out of memory");
		return;
	}
	if (!archive__reads(archive))
		intern__id(texts, pipeline->host);
	archive__texts(archive, texts);
	archive__record(archive, &pipeline_table, pipeline);
	archive__rows(archive, &thread_table, &threads, &count, &capacity);
	if (archive__reads(archive)) {
		free(host);
		pipeline->host = archive__copy(archive, pipeline->host);
	}
	free(threads);
	intern__free(texts);
}

static void archive_pipeline(struct archive *archive, struct pipeline *pipeline)
{
	uint64_t bands = pipeline->bands != NULL;

	if (pipeline->summary || pipeline->narrator || pipeline->board)
		archive__fail(archive, -ENOTSUP, "a summary and a narration cannot be part of a checkpoint");
	if (pipeline->selected)
		archive__fail(archive, -ENOTSUP, "a region chosen by hand cannot be part of a checkpoint");
	analysis__archive(archive, pipeline->analysis);
	archive_head(archive, pipeline);
	reported__archive(archive, pipeline->reported);
	reported__archive(archive, pipeline->reported_hangs);
	source_names__archive(archive, pipeline->names);
	causes__archive(archive, pipeline->causes);
	node_variances__archive(archive, &pipeline->nodes);
	job_book__archive(archive, pipeline->jobs);
	archive__number(archive, &bands);
	if (archive__check(archive, bands == (pipeline->bands != NULL), "its rules for states are others") && bands)
		bands__archive(archive, pipeline->bands);
}

int pipeline__save(const struct pipeline *pipeline, uint8_t **data, size_t *size, char *err, size_t err_size)
{
	struct archive *archive = archive__new();
	int error;

	*data = NULL;
	*size = 0;
	if (archive) {
		archive_pipeline(archive, (struct pipeline *)pipeline);
		*data = archive__seal(archive, KIND, size);
	}
	error = analysis__report(archive, "the analysis cannot be saved", err, err_size);
	archive__free(archive);
	return error;
}

int pipeline__load(struct pipeline *pipeline, const uint8_t *data, size_t size, char *err, size_t err_size)
{
	struct archive *archive = archive__unseal(data, size, KIND, analysis__most_bytes(size));
	int error;

	if (archive && (pipeline->begun || pipeline->totals.windows || pipeline->clock.utc_ns))
		archive__fail(archive, -EINVAL, "it can be read before the first event only");
	if (archive && !archive__error(archive)) {
		archive_pipeline(archive, (struct pipeline *)pipeline);
		archive__end(archive);
	}
	error = analysis__report(archive, "the checkpoint is refused", err, err_size);
	archive__free(archive);
	return error;
}
