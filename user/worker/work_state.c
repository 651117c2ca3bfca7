// SPDX-License-Identifier: GPL-2.0-or-later
/* Checkpoints of a job at the broker: written after windows, read when the job is taken over or judged again. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "worker/worker_private.h"

#define TRIES 3		      /* to publish a chunk, each as long as the broker is waited for */
#define CHUNKS_MAX (4U << 10) /* of a checkpoint: 2 GiB */

static const struct stored_checkpoint *latest(const struct work *work)
{
	return work->checkpoint_count ? &work->checkpoints[work->checkpoint_count - 1] : NULL;
}

/* Publishes a checkpoint, chunk by chunk. Returns 0 with its numbers, or a negative errno. */
static int publish(struct work *work, const struct worker_checkpoint *checkpoint, struct stored_checkpoint *stored)
{
	uint64_t number = 0, chunks = (checkpoint->size + STORE_CHUNK_BYTES - 1) / STORE_CHUNK_BYTES;
	int ret = 0;

	work->checkpoints_tried++;
	for (uint64_t i = 0; !ret && i < chunks; i++) {
		size_t at = i * STORE_CHUNK_BYTES, size = checkpoint->size - at;
		struct store_chunk chunk = {.before = number};
		char id[WIRE_SUBJECT_MAX + 96];

		if (size > STORE_CHUNK_BYTES)
			size = STORE_CHUNK_BYTES;
		if (i + 1 == chunks) {
			chunk.chunks = chunks;
			chunk.first = stored->first;
			chunk.older = latest(work) ? latest(work)->number : 0;
			chunk.end_ns = checkpoint->end_ns;
		}
		snprintf(id, sizeof(id), "state-%s-%llu-%llu-%llu", work->key, (unsigned long long)work->epoch,
			 (unsigned long long)work->checkpoints_tried, (unsigned long long)i);
		ret = -ETIMEDOUT;
		for (int try = 0; ret == -ETIMEDOUT && try < TRIES; try++) {
			if (!keeper__holds(work->worker->keeper, work->key))
				return -ESTALE;
			ret = store__put_state(work->worker->store, work->state, id, checkpoint->bytes + at, size,
					       &chunk, &number);
		}
		if (!i)
			stored->first = number;
	}
	stored->number = number;
	return ret;
}

/*
 * Retains what late blocks may need: the latest one that is older than they may be, and those after it; two at least,
 * since the entry of the lease may still name the one before.
 */
static void drop_old(struct work *work, uint64_t now_ns)
{
	uint64_t again_ns = work->worker->options->job.again_ns;
	size_t old = 0;

	while (work->checkpoint_count - old > 2 && now_ns - work->checkpoints[old + 1].saved_ns > again_ns)
		old++;
	if (!old)
		return;
	work->checkpoint_count -= old;
	memmove(work->checkpoints, work->checkpoints + old, work->checkpoint_count * sizeof(*work->checkpoints));
	store__drop_state(work->worker->store, work->state, work->checkpoints[0].first);
}

void work__retire(struct work *work)
{
	const struct stored_checkpoint *last = latest(work);
	int ret;

	if (!store__has_state(work->worker->store) || !keeper__holds(work->worker->keeper, work->key))
		return;
	ret = store__drop_state(work->worker->store, work->state, last ? last->first : 0);
	if (ret)
		log__debug("%s: its earlier checkpoints stay until the stream's limits remove them: %s", work->key,
			   strerror(-ret));
}

static void note_failure(struct work *work, const char *why)
{
	if (!work->checkpoint_failed)
		log__warning("%s: no checkpoint: %s; it is tried again after each window", work->key, why);
	work->checkpoint_failed = true;
}

bool work__save(struct work *work)
{
	struct stored_checkpoint stored = {.number = 0};
	struct worker_checkpoint checkpoint;
	struct worker_job_state state;
	uint64_t now_ns = mono_now();
	char err[512] = "";
	bool pays;
	int ret;

	if (!store__has_state(work->worker->store) || !worker_job__wants_save(work->job))
		return false;
	drop_old(work, now_ns);
	if (work->checkpoint_count == CHECKPOINTS)
		return false;
	ret = worker_job__save(work->job, work->state, now_ns, &checkpoint, err, sizeof(err));
	if (ret) {
		if (ret != -EAGAIN)
			note_failure(work, err);
		return false;
	}
	worker_job__saved(work->job, checkpoint.size, false);
	pays = worker_job__wants_save(work->job);
	if (pays)
		ret = publish(work, &checkpoint, &stored);
	free(checkpoint.bytes);
	worker_job__state(work->job, &state);
	if (!pays) {
		log__debug("%s: a checkpoint of %zu bytes does not pay yet: %llu bytes of blocks", work->key,
			   checkpoint.size, (unsigned long long)state.input_bytes);
		return false;
	}
	if (ret) {
		note_failure(work, ret == -ESTALE ? "the lease is gone" : strerror(-ret));
		return false;
	}
	worker_job__saved(work->job, checkpoint.size, true);
	work->checkpoint_failed = false;
	stored.end_ns = checkpoint.end_ns;
	stored.saved_ns = now_ns;
	work->checkpoints[work->checkpoint_count++] = stored;
	keeper__checkpoint(work->worker->keeper, work->key, stored.number);
	store_reader__acknowledge(work->reader, checkpoint.resume - 1);
	worker_job__state(work->job, &state);
	log__debug("%s: checkpoint of %zu bytes; %llu bytes of blocks, %llu of checkpoints so far", work->key,
		   checkpoint.size, (unsigned long long)state.input_bytes, (unsigned long long)state.checkpoint_bytes);
	return true;
}

void work__list(struct work *work, uint64_t number)
{
	struct stored_checkpoint found[CHECKPOINTS];
	size_t count = 0;

	while (number && count < CHECKPOINTS && store__has_state(work->worker->store)) {
		struct store_chunk chunk;
		void *bytes;
		size_t size;

		if (store__get_state(work->worker->store, work->state, number, &chunk, &bytes, &size))
			break;
		free(bytes);
		if (!chunk.chunks || chunk.older >= number)
			break;
		found[count++] = (struct stored_checkpoint){
		    .number = number,
		    .first = chunk.first ? chunk.first : number,
		    .end_ns = chunk.end_ns,
		    .saved_ns = mono_now(),
		};
		number = chunk.older;
	}
	work->checkpoint_count = count;
	for (size_t i = 0; i < count; i++)
		work->checkpoints[i] = found[count - 1 - i];
}

/* The bytes of a checkpoint, whose chunks are read from the last one on. */
struct collected {
	uint8_t *bytes;
	size_t size;
};

/* Puts bytes before those that are there. */
static int prepend(struct collected *collected, const void *bytes, size_t size)
{
	uint8_t *joined = malloc(collected->size + size + 1);

	if (!joined)
		return -ENOMEM;
	memcpy(joined, bytes, size);
	if (collected->size)
		memcpy(joined + size, collected->bytes, collected->size);
	free(collected->bytes);
	collected->bytes = joined;
	collected->size += size;
	return 0;
}

/* Reads a checkpoint. Returns 0 or a negative errno; the caller frees the bytes in any case. */
static int collect(const struct work *work, uint64_t number, struct collected *collected)
{
	uint64_t chunks = 1;

	for (uint64_t i = 0; i < chunks; i++) {
		struct store_chunk chunk;
		void *bytes;
		size_t size;
		int ret = store__get_state(work->worker->store, work->state, number, &chunk, &bytes, &size);

		if (!ret)
			ret = prepend(collected, bytes, size);
		free(bytes);
		if (ret)
			return ret;
		if (!i)
			chunks = chunk.chunks;
		if (chunks > CHUNKS_MAX || chunk.before >= number || (i + 1 < chunks) != (chunk.before != 0))
			return -EBADMSG;
		number = chunk.before;
	}
	return chunks ? 0 : -EBADMSG;
}

bool work__has(const struct work *work, uint64_t until_ns)
{
	return work->checkpoint_count && work->checkpoints[0].end_ns <= until_ns;
}

uint64_t work__load(struct work *work, uint64_t until_ns)
{
	uint64_t resume = 0;

	work->resumed_ns = 0;
	while (!resume && work->checkpoint_count) {
		const struct stored_checkpoint *stored = latest(work);
		struct collected collected = {NULL, 0};
		char err[512];
		int ret;

		if (stored->end_ns > until_ns) {
			work->checkpoint_count--;
			continue;
		}
		ret = collect(work, stored->number, &collected);
		if (ret)
			snprintf(err, sizeof(err), "%s",
				 ret == -ENOENT	   ? "the stream does not hold all of it"
				 : ret == -EBADMSG ? "its messages do not belong together"
						   : strerror(-ret));
		else
			ret = worker_job__load(work->job, work->state, collected.bytes, collected.size, mono_now(),
					       &resume, err, sizeof(err));
		free(collected.bytes);
		if (!ret) {
			work->resumed_ns = stored->end_ns;
			break;
		}
		resume = 0;
		work->checkpoint_count--;
		log__warning("%s: checkpoint %llu is not used: %s", work->key, (unsigned long long)stored->number, err);
	}
	keeper__checkpoint(work->worker->keeper, work->key, latest(work) ? latest(work)->number : 0);
	return resume;
}
