// SPDX-License-Identifier: GPL-2.0-or-later
/* One job of a worker: from the stream of blocks into its analysis, and from there into the stream of results. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "capture/output_file.h"
#include "report/json.h"
#include "report/record.h"
#include "worker/worker_private.h"

#define MESSAGE_BYTES (512U << 10) /* lines of a message; a broker accepts 1 MiB by default */
#define BATCH 512		   /* blocks of a request */
#define TRIES 30		   /* to publish, a second apart: an absence of the broker that is survived */

static void nap(void)
{
	const struct timespec second = {1, 0};

	nanosleep(&second, NULL);
}

/* Publishes a message, again and again while the broker is away. */
static int publish(struct work *work, const void *lines, size_t size, const char *encoding)
{
	char id[WIRE_SUBJECT_MAX + 80];
	struct worker_job_state state;
	int ret = -ETIMEDOUT;

	worker_job__state(work->job, &state);
	snprintf(id, sizeof(id), "%s-%llu-%llu-%llu", work->key, (unsigned long long)work->epoch,
		 (unsigned long long)state.pass, (unsigned long long)work->messages);
	for (int try = 0; try < TRIES && !*work->worker->options->stop; try++) {
		if (!keeper__holds(work->worker->keeper, work->key))
			return -ESTALE;
		ret = store__publish(work->worker->store, work->out, id, lines, size, encoding, &work->result);
		if (ret != -ETIMEDOUT && ret != -ENOTCONN && ret != -EIO)
			break;
		nap();
	}
	work->messages += !ret;
	return ret;
}

/* Publishes a line that is longer than a message, such as the heat map of thousands of ranks: compressed. */
static int publish_packed(struct work *work, const char *line, size_t size)
{
	size_t room = ZSTD_compressBound(size), packed;
	char *bytes = malloc(room);
	int ret = -EMSGSIZE;

	if (!bytes)
		return -ENOMEM;
	packed = ZSTD_compress(bytes, room, line, size, ZSTD_CLEVEL_DEFAULT);
	if (!ZSTD_isError(packed))
		ret = publish(work, bytes, packed, "zstd");
	free(bytes);
	if (ret != -EMSGSIZE)
		return ret;
	log__warning("%s: a record of %zu bytes is too large for the broker, and only in the file", work->key, size);
	return 0;
}

/* Puts lines where people read them, after they are published. */
static void put_lines(struct work *work, const char *lines, size_t size)
{
	struct line_sink *const sinks[] = {work->file, work->worker->stdout_sink};
	char *copy = strndup(lines, size), *line, *end, news[512];

	for (line = copy; line && (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		for (size_t i = 0; i < sizeof(sinks) / sizeof(sinks[0]); i++) {
			if (sinks[i] && line_sink__put(sinks[i], line))
				log__error("%s", line_sink__error(sinks[i]));
		}
	}
	free(copy);
	for (size_t i = 0; i < sizeof(sinks) / sizeof(sinks[0]); i++) {
		if (sinks[i] && line_sink__flush(sinks[i]))
			log__error("%s", line_sink__error(sinks[i]));
		while (sinks[i] && line_sink__news(sinks[i], news, sizeof(news)))
			log__warning("%s", news);
	}
}

/* Bytes of the lines that fit into a message; of the first one where that alone is longer. */
static size_t whole_lines(const char *lines, size_t size)
{
	size_t length = MESSAGE_BYTES;

	while (length && lines[length - 1] != '\n')
		length--;
	while (!length || (lines[length - 1] != '\n' && length < size))
		length++;
	return length;
}

static const char *cluster_of(const struct work *work, struct wire_subject *subject)
{
	return wire_subject__parse(subject, work->out) ? "" : subject->job.cluster;
}

static void meter(struct worker_receiver *receiver, const struct job_result *result)
{
	struct work *work = (struct work *)receiver;
	struct wire_subject subject;

	metrics__add(work->worker->metrics, cluster_of(work, &subject), result, mono_now());
}

static void meter_causes(struct work *work)
{
	struct wire_subject subject;
	struct cause_list list;

	if (!work->worker->metrics || worker_job__causes(work->job, &list))
		return;
	metrics__add_causes(work->worker->metrics, cluster_of(work, &subject), &list);
	causes__free_list(&list);
}

/* Publishes the lines of a window, in as many messages as they need; only the last one says that the window is whole.
 */
static int take(struct worker_receiver *receiver, uint64_t end_ns, const char *lines, size_t size)
{
	struct work *work = (struct work *)receiver;
	size_t at = 0;

	while (at < size) {
		size_t length = size - at;
		int ret;

		if (length > MESSAGE_BYTES)
			length = whole_lines(&lines[at], length);
		if (at + length == size)
			work->result.judged_ns = end_ns;
		ret = length > MESSAGE_BYTES ? publish_packed(work, &lines[at], length)
					     : publish(work, &lines[at], length, NULL);
		if (ret)
			return ret;
		at += length;
	}
	put_lines(work, lines, size);
	meter_causes(work);
	return 0;
}

/* Publishes that a pass begins, and what it replaces. From here on no worker of an earlier epoch can publish. */
static int announce(struct work *work, const char *reason)
{
	struct worker_job_state state;
	struct wire_subject subject;
	cJSON *object;
	char *record, *line;
	bool ok;
	int ret;

	worker_job__state(work->job, &state);
	wire_subject__parse(&subject, work->out);
	object = record__begin(RECORD_OBJECT_judging, utc_now(), work->worker->host);
	ok = object && record__put_text(object, KEY(judging, cluster), subject.job.cluster) &&
	     record__put_job(object, subject.job.job, subject.job.user) &&
	     record__put_text(object, KEY(judging, worker), work->worker->id) &&
	     record__put_text(object, KEY(judging, reason), reason) &&
	     (state.from_ns ? record__put_time(object, KEY(judging, from), state.from_ns)
			    : record__put_text(object, KEY(judging, from), NULL)) &&
	     (work->resumed_ns ? record__put_time(object, KEY(judging, checkpoint), work->resumed_ns)
			       : record__put_text(object, KEY(judging, checkpoint), NULL)) &&
	     record__put_uint(object, KEY(judging, epoch), work->epoch) &&
	     record__put_uint(object, KEY(judging, pass), state.pass);
	record = json__finish(object);
	if (!ok || !record || asprintf(&line, "%s\n", record) < 0) {
		free(record);
		return -ENOMEM;
	}
	free(record);
	work->messages = 0;
	work->result.epoch = work->epoch;
	work->result.judged_ns = state.from_ns;
	ret = publish(work, line, strlen(line), NULL);
	if (!ret)
		put_lines(work, line, strlen(line));
	free(line);
	return ret;
}

/* Opens the reader from this number on. */
static int read_from(struct work *work, uint64_t number)
{
	char err[512];

	store_reader__free(work->reader);
	work->reader =
	    store_reader__new(work->worker->store, work->filter, work->reader_name, number, err, sizeof(err));
	if (work->reader)
		return 0;
	log__warning("%s: %s", work->key, err);
	return -EIO;
}

static int open_file(struct work *work)
{
	const struct worker_options *options = work->worker->options;
	char path[4096];

	if (!options->output)
		return 0;
	snprintf(path, sizeof(path), "%s/%s.%llu.ndjson%s", options->output, work->key, (unsigned long long)work->epoch,
		 options->pack ? ".zst" : "");
	work->file = line_sink__append(path, false, LINE_SINK_BACKLOG);
	if (work->file)
		return line_sink__bound(work->file, record_filter__choice(options->records), options->output_most);
	log__error("cannot write %s: %s", path, output_file__reason(errno));
	return -EIO;
}

static void expect_hosts(struct work *work)
{
	struct store_subject *list;
	struct wire_subject parsed;
	size_t count, prefix = strlen(work->filter) - 1;

	if (store__subjects(work->worker->store, &list, &count))
		return;
	for (size_t i = 0; i < count; i++) {
		if (!strncmp(list[i].text, work->filter, prefix) && !wire_subject__parse(&parsed, list[i].text) &&
		    !parsed.cut)
			worker_job__expect(work->job, parsed.host);
	}
	free(list);
}

int work__open(struct worker *worker, const struct held_lease *lease, struct work **opened)
{
	struct work *work = calloc(1, sizeof(*work));
	uint64_t from_ns, number = 0;
	int ret;

	if (!work)
		return -ENOMEM;
	work->receiver.take = take;
	work->receiver.result = worker->metrics ? meter : NULL;
	work->worker = worker;
	work->epoch = lease->epoch;
	snprintf(work->key, sizeof(work->key), "%s", lease->job);
	snprintf(work->filter, sizeof(work->filter), WIRE_PREFIX ".in.%.600s.*", lease->job);
	snprintf(work->out, sizeof(work->out), WIRE_PREFIX ".out.%.600s", lease->job);
	snprintf(work->state, sizeof(work->state), WIRE_PREFIX ".state.%.600s", lease->job);
	ret = store__last_result(worker->store, work->out, &work->result);
	if (ret)
		goto failed;
	if (work->result.epoch >= work->epoch) {
		work->epoch = work->result.epoch + 1;
		keeper__raise(worker->keeper, work->key, work->epoch);
	}
	snprintf(work->reader_name, sizeof(work->reader_name), "worker-%016llx-%llu",
		 (unsigned long long)text__hash(work->key, strlen(work->key)), (unsigned long long)work->epoch);
	from_ns = work->result.judged_ns;
	work->job = worker_job__new(work->epoch, from_ns, mono_now(), &worker->options->job, &work->receiver);
	ret = work->job ? open_file(work) : -ENOMEM;
	if (!ret) {
		work__list(work, lease->checkpoint);
		number = work__load(work, from_ns);
		if (lease->checkpoint && !number)
			log__warning(
			    "%s: there is no checkpoint to go on from, the job's blocks are read from the first one",
			    work->key);
		ret = announce(work, work->result.sequence ? "taken_over" : "new");
	}
	if (!ret)
		ret = read_from(work, number);
	if (ret)
		goto failed;
	expect_hosts(work);
	log__info("%s: epoch %llu", work->key, (unsigned long long)work->epoch);
	*opened = work;
	return 0;
failed:
	work__free(work);
	return ret;
}

void work__free(struct work *work)
{
	if (!work)
		return;
	store_reader__free(work->reader);
	worker_job__free(work->job);
	if (work->file) {
		work->worker->lost_lines += line_sink__lost(work->file);
		work->worker->over_lines += line_sink__over(work->file);
	}
	if (line_sink__close(work->file))
		log__error("%s: lines of this job are missing in its file", work->key);
	free(work);
}

static int put_block(void *arg, const char *subject, uint64_t sequence, void *bytes, size_t size)
{
	struct work *work = arg;

	work->last_sequence = sequence;
	return worker_job__put(work->job, subject, sequence, bytes, size, mono_now());
}

/* Whether the stream still holds the first blocks of the job. */
static bool has_start(const struct work *work)
{
	struct worker_job_state state;
	uint64_t first;

	worker_job__state(work->job, &state);
	return !store__first_number(work->worker->store, &first) && first <= state.first_number;
}

/* Judges again from the checkpoint before the late blocks, or from the start. */
static int judge_again(struct work *work)
{
	uint64_t from_ns = worker_job__again_from(work->job), number;
	int ret;

	if (!work__has(work, from_ns) && !has_start(work)) {
		log__warning(
		    "%s: late blocks are counted only: neither a checkpoint nor the stream has what was before them",
		    work->key);
		worker_job__too_late(work->job);
		return 0;
	}
	ret = worker_job__again(work->job, mono_now());
	if (ret)
		return ret;
	number = work__load(work, from_ns);
	ret = announce(work, "late_blocks");
	if (!ret)
		ret = read_from(work, number);
	work->finished_ns = 0;
	return ret;
}

/* Ends a job: judges the rest, waits for late blocks, and hands the lease back. */
static int end(struct work *work)
{
	const struct worker_options *options = work->worker->options;
	uint64_t now_ns = mono_now();
	struct worker_job_state state;
	int ret;

	if (work->finished_ns) {
		if (now_ns - work->finished_ns < options->job.again_ns)
			return 0;
		work__retire(work);
		keeper__hand_back(work->worker->keeper, work->key, true, work->last_sequence);
		return -ECANCELED;
	}
	ret = worker_job__finish(work->job, now_ns);
	worker_job__state(work->job, &state);
	work->finished_ns = now_ns;
	log__info("%s: ended; %llu windows, %llu blocks, %llu missing, %llu late, %llu refused", work->key,
		  (unsigned long long)state.windows, (unsigned long long)state.blocks,
		  (unsigned long long)state.missing, (unsigned long long)state.late, (unsigned long long)state.refused);
	if (!ret)
		ret = store_reader__acknowledge(work->reader, work->last_sequence);
	return ret;
}

int work__step(struct work *work)
{
	struct worker_job_state before, after;
	uint64_t read = work->last_sequence;
	bool caught_up;
	int ret = store_reader__next(work->reader, BATCH, put_block, work);

	if (ret < 0)
		return ret;
	caught_up = store_reader__caught_up(work->reader);
	if (worker_job__wants_reread(work->job, mono_now(), caught_up)) {
		log__info(
		    "%s: blocks are missing among those that came: those that are not acknowledged are read again",
		    work->key);
		store_reader__rewind(work->reader);
		return 0;
	}
	worker_job__state(work->job, &before);
	ret = worker_job__advance(work->job, mono_now(), caught_up);
	if (ret)
		return ret;
	worker_job__state(work->job, &after);
	/* without checkpoints, blocks that were read before the last window was due have served */
	if (after.judged_ns > before.judged_ns && !store__has_state(work->worker->store))
		store_reader__acknowledge(work->reader, read);
	if (after.judged_ns > before.judged_ns && caught_up)
		work__request(work, after.judged_ns);
	if (work__save(work) && keeper__has_surplus(work->worker->keeper)) {
		log__info("%s: handed over to a worker with fewer jobs", work->key);
		keeper__hand_back(work->worker->keeper, work->key, false, 0);
		return -ECANCELED;
	}
	if (worker_job__wants_again(work->job, mono_now()))
		return judge_again(work);
	if (work->finished_ns || worker_job__ended(work->job, mono_now(), work->worker->options->idle_ns))
		return end(work);
	return 0;
}
