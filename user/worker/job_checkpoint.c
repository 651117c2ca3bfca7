// SPDX-License-Identifier: GPL-2.0-or-later
/* Checkpoints of a job: its runs, the merge, the pipeline. */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/archive.h"
#include "base/intern.h"
#include "pipeline/pipeline.h"
#include "worker/job_private.h"

#define KIND "job"
#define BYTES_SHARE 10		/* bytes of blocks for one of checkpoints */
#define MOST_BYTES (1ULL << 30) /* of a checkpoint, and of what is made of its part about the job */
#define LEVEL 3

/* What is saved of the job itself in one row. */
struct saved_job {
	const char *name, *tunables, *hello;
	uint64_t memory_cap, resume, through;
	uint64_t late, refused, input_bytes, checkpoint_bytes;
	uint64_t judged_count, first_number;
};

static const struct archive_column job_columns[] = {
    ARCHIVE_ONE(struct saved_job, name),	 ARCHIVE_ONE(struct saved_job, tunables),
    ARCHIVE_ONE(struct saved_job, hello),	 ARCHIVE_ONE(struct saved_job, memory_cap),
    ARCHIVE_ONE(struct saved_job, resume),	 ARCHIVE_ONE(struct saved_job, through),
    ARCHIVE_ONE(struct saved_job, late),	 ARCHIVE_ONE(struct saved_job, refused),
    ARCHIVE_ONE(struct saved_job, input_bytes),	 ARCHIVE_ONE(struct saved_job, checkpoint_bytes),
    ARCHIVE_ONE(struct saved_job, judged_count), ARCHIVE_ONE(struct saved_job, first_number),
};
static const struct archive_table job_table = ARCHIVE_TABLE("job", struct saved_job, job_columns);

static const struct archive_column member_columns[] = {
    ARCHIVE_ONE(struct member, missed_ns),
    ARCHIVE_ONE(struct member, missing),
    ARCHIVE_ONE(struct member, dropped),
    ARCHIVE_ONE(struct member, timed),
};
static const struct archive_table member_table = ARCHIVE_TABLE("member", struct member, member_columns);

/* at_ns: how long ago the window was judged, since clocks of workers have nothing in common. */
static const struct archive_column judged_columns[] = {
    ARCHIVE_ONE(struct judged, begin_ns),
    ARCHIVE_ONE(struct judged, end_ns),
    ARCHIVE_ONE(struct judged, at_ns),
};
static const struct archive_table judged_table = ARCHIVE_TABLE("judged", struct judged, judged_columns);

/* The least number in the stream of a block that has to be read again. */
static uint64_t resume_of(const struct worker_job *job)
{
	uint64_t least = job->number + 1;

	for (size_t i = 0; i < job->member_count; i++) {
		uint64_t resume = worker_run__resume(job->members[i].run);

		if (resume < least)
			least = resume;
	}
	return least;
}

/* When windows were judged: a job that is judged again knows it better, and does not take it over. */
static void archive_judged(struct archive *archive, struct worker_job *job, uint64_t total, uint64_t now_ns)
{
	size_t capacity = JUDGED, count = total < JUDGED ? total : JUDGED;
	struct judged *list = NULL;

	if (!archive__reads(archive)) {
		list = calloc(JUDGED, sizeof(*list));
		if (!list)
			archive__fail(archive, -ENOMEM, "out of memory");
		for (size_t i = 0; list && i < count; i++) {
			list[i] = job->judged[(total - count + i) % JUDGED];
			list[i].at_ns = now_ns - list[i].at_ns;
		}
	}
	archive__rows(archive, &judged_table, &list, &count, &capacity);
	archive__check(archive, count <= JUDGED && count <= total, "it has too many windows");
	if (archive__reads(archive) && !archive__error(archive) && !job->judged_count) {
		for (size_t i = 0; i < count; i++) {
			struct judged *judged = &job->judged[(total - count + i) % JUDGED];

			*judged = list[i];
			judged->at_ns = now_ns > list[i].at_ns ? now_ns - list[i].at_ns : 0;
		}
		job->judged_count = total;
	}
	free(list);
}

static int copy_text(char **copy, const char *text)
{
	*copy = text ? strdup(text) : NULL;
	return text && !*copy ? -ENOMEM : 0;
}

static void load_row(struct archive *archive, struct worker_job *job, const struct saved_job *saved, const char *name)
{
	archive__check(archive, saved->name && !strcmp(saved->name, name), "it is of another job");
	archive__check(archive, saved->resume <= saved->through + 1, "the blocks that it rests on are damaged");
	archive__check(archive, saved->memory_cap && saved->memory_cap <= job->options.memory_bytes,
		       "it was made with more memory (--memory)");
	if (copy_text(&job->tunables, saved->tunables) || copy_text(&job->hello, saved->hello))
		archive__fail(archive, -ENOMEM, "out of memory");
	job->memory_cap = saved->memory_cap;
	job->through = saved->through;
	job->late = saved->late;
	job->refused = saved->refused;
	if (saved->through <= job->highest)
		return;
	job->highest = saved->through;
	job->first_number = saved->first_number;
	job->input_bytes = saved->input_bytes;
	job->checkpoint_bytes = saved->checkpoint_bytes;
}

static void archive_members(struct archive *archive, struct worker_job *job, uint64_t now_ns)
{
	uint64_t count = job->member_count;

	archive__number(archive, &count);
	for (size_t i = 0; i < count && !archive__error(archive); i++) {
		struct worker_run *run = archive__reads(archive) ? NULL : job->members[i].run;
		struct member *member;

		worker_run__archive(&run, archive);
		member = archive__reads(archive) && run ? worker_job__add_member(job, run) : &job->members[i];
		if (!run || !member) {
			worker_run__free(run);
			archive__fail(archive, -ENOMEM, "out of memory");
			break;
		}
		archive__record(archive, &member_table, member);
		if (!archive__reads(archive))
			continue;
		member->came_ns = now_ns;
		member->introduced = worker_run__hello(run) != NULL;
		member->source = stream_merge__add(job->merge, worker_run__reader(run));
		if (member->source < 0)
			archive__fail(archive, -ENOMEM, "out of memory");
	}
}

/* All but the pipeline. resume is set when reading. */
static void archive_job(struct archive *archive, struct worker_job *job, const char *name, uint64_t now_ns,
			uint64_t *resume)
{
	struct intern *texts = intern__new();
	struct saved_job saved = {
	    .name = name,
	    .tunables = job->tunables,
	    .hello = job->hello,
	    .memory_cap = job->memory_cap,
	    .resume = *resume,
	    .through = job->number,
	    .late = job->late,
	    .refused = job->refused,
	    .input_bytes = job->input_bytes,
	    .checkpoint_bytes = job->checkpoint_bytes,
	    .judged_count = job->judged_count,
	    .first_number = job->first_number,
	};
	if (!texts) {
		archive__fail(archive, -ENOMEM, "out of memory");
		return;
	}
	if (!archive__reads(archive)) {
		intern__id(texts, name);
		intern__id(texts, job->tunables);
		intern__id(texts, job->hello);
	}
	archive__texts(archive, texts);
	archive__record(archive, &job_table, &saved);
	if (archive__reads(archive) && !archive__error(archive)) {
		load_row(archive, job, &saved, name);
		*resume = saved.resume;
	}
	intern__free(texts);
	if (!archive__error(archive))
		archive_judged(archive, job, saved.judged_count, now_ns);
	if (!archive__error(archive))
		archive_members(archive, job, now_ns);
	if (!archive__error(archive))
		stream_merge__archive(job->merge, archive);
}

bool worker_job__wants_save(const struct worker_job *job)
{
	/* while blocks are read again, the latest one that came is not the latest of the stream */
	return job->begun && !job->finished && !job->reread_began_ns && job->last_judged_ns > job->saved_ns &&
	       job->again_ns == UINT64_MAX &&
	       (job->checkpoint_bytes + job->expected_bytes) * BYTES_SHARE <= job->input_bytes;
}

void worker_job__saved(struct worker_job *job, size_t size, bool written)
{
	job->expected_bytes = size;
	if (!written)
		return;
	job->checkpoint_bytes += size;
	job->saved_ns = job->last_judged_ns;
}

/* Whether the job is between two windows, and nothing of it is on its way. */
static bool may_save(const struct worker_job *job)
{
	if (!job->begun || job->finished || !job->last_judged_ns || job->lines.length || job->again_ns != UINT64_MAX)
		return false;
	for (size_t i = 0; i < job->member_count; i++) {
		if (job->members[i].source != (int)i)
			return false;
	}
	return stream_merge__replayed(job->merge);
}

/* Both parts as one frame: the length of the first, and they themselves. */
static int pack(struct worker_checkpoint *checkpoint, const uint8_t *job, size_t job_size, const uint8_t *pipeline,
		size_t pipeline_size)
{
	size_t raw_size = sizeof(uint64_t) + job_size + pipeline_size, room = ZSTD_compressBound(raw_size), packed;
	uint64_t length = htole64(job_size);
	uint8_t *raw = malloc(raw_size), *at = raw;

	checkpoint->bytes = malloc(room);
	if (!raw || !checkpoint->bytes) {
		free(raw);
		free(checkpoint->bytes);
		checkpoint->bytes = NULL;
		return -ENOMEM;
	}
	at = mempcpy(at, &length, sizeof(length));
	at = mempcpy(at, job, job_size);
	memcpy(at, pipeline, pipeline_size);
	packed = ZSTD_compress(checkpoint->bytes, room, raw, raw_size, LEVEL);
	free(raw);
	if (!ZSTD_isError(packed)) {
		checkpoint->size = packed;
		return 0;
	}
	free(checkpoint->bytes);
	checkpoint->bytes = NULL;
	return -ENOMEM;
}

/* Returns the archive's error with its sentence, or 0. */
static int report(const struct archive *archive, char *err, size_t err_size)
{
	if (!archive) {
		snprintf(err, err_size, "out of memory");
		return -ENOMEM;
	}
	if (archive__error(archive))
		snprintf(err, err_size, "%s", archive__why(archive));
	return archive__error(archive);
}

int worker_job__save(struct worker_job *job, const char *name, uint64_t now_ns, struct worker_checkpoint *checkpoint,
		     char *err, size_t err_size)
{
	struct archive *archive;
	uint8_t *own = NULL, *pipeline = NULL;
	size_t own_size = 0, pipeline_size = 0;
	int ret;

	memset(checkpoint, 0, sizeof(*checkpoint));
	if (!may_save(job))
		return -EAGAIN;
	checkpoint->end_ns = job->last_judged_ns;
	checkpoint->resume = resume_of(job);
	archive = archive__new();
	if (archive) {
		archive_job(archive, job, name, now_ns, &checkpoint->resume);
		own = archive__seal(archive, KIND, &own_size);
	}
	ret = report(archive, err, err_size);
	archive__free(archive);
	if (!ret)
		ret = pipeline__save(job->pipeline, &pipeline, &pipeline_size, err, err_size);
	if (!ret) {
		ret = pack(checkpoint, own, own_size, pipeline, pipeline_size);
		if (ret)
			snprintf(err, err_size, "out of memory");
	}
	free(own);
	free(pipeline);
	return ret;
}

/* Returns the unpacked bytes, which the caller frees, or NULL with a sentence. */
static uint8_t *unpack(const uint8_t *bytes, size_t size, size_t *raw_size, char *err, size_t err_size)
{
	unsigned long long length = ZSTD_getFrameContentSize(bytes, size);
	uint8_t *raw;
	size_t got;

	if (length == ZSTD_CONTENTSIZE_UNKNOWN || length == ZSTD_CONTENTSIZE_ERROR || length < sizeof(uint64_t) ||
	    length > MOST_BYTES) {
		snprintf(err, err_size, "it is no checkpoint");
		return NULL;
	}
	raw = malloc(length);
	if (!raw) {
		snprintf(err, err_size, "out of memory");
		return NULL;
	}
	got = ZSTD_decompress(raw, length, bytes, size);
	*raw_size = length;
	if (!ZSTD_isError(got) && got == length)
		return raw;
	snprintf(err, err_size, "it is damaged");
	free(raw);
	return NULL;
}

static int load(struct worker_job *job, const char *name, const uint8_t *raw, size_t size, uint64_t now_ns,
		uint64_t *resume, char *err, size_t err_size)
{
	struct archive *archive;
	uint64_t length;
	int ret;

	memcpy(&length, raw, sizeof(length));
	length = le64toh(length);
	raw += sizeof(length);
	size -= sizeof(length);
	if (length > size) {
		snprintf(err, err_size, "it is damaged");
		return -EBADMSG;
	}
	archive = archive__unseal(raw, length, KIND, MOST_BYTES);
	if (archive && !archive__error(archive)) {
		archive_job(archive, job, name, now_ns, resume);
		archive__end(archive);
	}
	ret = report(archive, err, err_size);
	archive__free(archive);
	if (!ret && worker_job__remake_pipeline(job)) {
		snprintf(err, err_size, "out of memory");
		ret = -ENOMEM;
	}
	return ret ? ret : pipeline__load(job->pipeline, raw + length, size - length, err, err_size);
}

int worker_job__load(struct worker_job *job, const char *name, const uint8_t *bytes, size_t size, uint64_t now_ns,
		     uint64_t *resume, char *err, size_t err_size)
{
	bool fresh = !job->judged_count;
	size_t raw_size = 0;
	uint8_t *raw = unpack(bytes, size, &raw_size, err, err_size);
	int ret = raw ? load(job, name, raw, raw_size, now_ns, resume, err, err_size) : -EBADMSG;

	free(raw);
	if (ret) {
		if (fresh)
			job->judged_count = 0;
		return worker_job__reset(job, now_ns) ? -ENOMEM : ret;
	}
	job->begun = job->loaded = true;
	job->first_ns = job->latest_ns = now_ns;
	job->last_judged_ns = job->saved_ns = stream_merge__end_ns(job->merge);
	job->expected_bytes = size;
	if (fresh)
		job->checkpoint_bytes += size;
	return 0;
}
