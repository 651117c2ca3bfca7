// SPDX-License-Identifier: GPL-2.0-or-later
/* Checkpoints of a pipeline: see pipeline.h and docs/checkpoint.md. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/checkpoint.h"
#include "report/pipeline_private.h"

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

static const struct archive_column thread_columns[] = {
    ARCHIVE_ONE(struct vapro_thread, id),     ARCHIVE_ONE(struct vapro_thread, rank),
    ARCHIVE_ONE(struct vapro_thread, thread), ARCHIVE_ONE(struct vapro_thread, world_size),
    ARCHIVE_ONE(struct vapro_thread, pid),    ARCHIVE_ONE(struct vapro_thread, tid),
    ARCHIVE_ONE(struct vapro_thread, job),    ARCHIVE_ONE(struct vapro_thread, host),
    ARCHIVE_ONE(struct vapro_thread, user),
};
static const struct archive_table thread_table =
    ARCHIVE_TABLE("announced threads", struct vapro_thread, thread_columns);

/* Texts of lists that own copies of their texts. */
static void collect_texts(const struct pipeline *pipeline, struct intern *texts)
{
	intern__id(texts, pipeline->host);
	for (size_t i = 0; i < pipeline->thread_count; i++) {
		intern__id(texts, pipeline->threads[i].job);
		intern__id(texts, pipeline->threads[i].host);
	}
}

/* Takes over texts that were read, and are not the archive's any more. */
static void own_texts(struct archive *archive, struct pipeline *pipeline)
{
	pipeline->host = archive__copy(archive, pipeline->host);
	for (size_t i = 0; i < pipeline->thread_count; i++) {
		struct vapro_thread *thread = &pipeline->threads[i];

		archive__check(archive, thread->host, "a thread has no host");
		thread->job = archive__copy(archive, thread->job);
		thread->host = archive__copy(archive, thread->host);
	}
}

static void archive_lists(struct archive *archive, struct pipeline *pipeline)
{
	struct intern *texts = intern__new();
	char *host = pipeline->host;

	if (!texts) {
		archive__fail(archive, -ENOMEM, "out of memory");
		return;
	}
	if (!archive__reads(archive))
		collect_texts(pipeline, texts);
	archive__texts(archive, texts);
	archive__record(archive, &pipeline_table, pipeline);
	archive__rows(archive, &thread_table, &pipeline->threads, &pipeline->thread_count, &pipeline->thread_capacity);
	if (archive__reads(archive)) {
		free(host);
		own_texts(archive, pipeline);
	}
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
	archive_lists(archive, pipeline);
	reported__archive(archive, &pipeline->reported);
	reported__archive(archive, &pipeline->reported_hangs);
	source_names__archive(archive, pipeline->names);
	causes__archive(archive, pipeline->causes);
	node_variances__archive(archive, &pipeline->nodes);
	archive__number(archive, &bands);
	if (archive__check(archive, bands == (pipeline->bands != NULL), "its rules for states are others") && bands)
		bands__archive(archive, pipeline->bands);
}

int pipeline__save(const struct stream_sink *sink, uint8_t **data, size_t *size, char *err, size_t err_size)
{
	struct archive *archive = archive__new();
	int error;

	*data = NULL;
	*size = 0;
	if (archive) {
		archive_pipeline(archive, pipeline_of(sink));
		*data = archive__seal(archive, KIND, size);
	}
	error = analysis__report(archive, "the analysis cannot be saved", err, err_size);
	archive__free(archive);
	return error;
}

int pipeline__load(struct stream_sink *sink, const uint8_t *data, size_t size, char *err, size_t err_size)
{
	struct archive *archive = archive__unseal(data, size, KIND, analysis__most_bytes(size));
	struct pipeline *pipeline = pipeline_of(sink);
	int error;

	if (archive && (pipeline->thread_count || pipeline->totals.windows || pipeline->clock.utc_ns))
		archive__fail(archive, -EINVAL, "it can be read before the first event only");
	if (archive && !archive__error(archive)) {
		archive_pipeline(archive, pipeline);
		archive__end(archive);
	}
	error = analysis__report(archive, "the checkpoint is refused", err, err_size);
	archive__free(archive);
	return error;
}
