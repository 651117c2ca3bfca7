// SPDX-License-Identifier: GPL-2.0-or-later
#include "top/broker_feed.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/grow.h"
#include "report/board.h"
#include "report/record.h"

#define BACK_NS 600000000000ULL /* age of the oldest messages that are read at the begin */
#define RETRY_NS 1000000000ULL
#define MESSAGES_MOST 1000	 /* of a step */
#define WINDOW_BYTES (64U << 20) /* of the lines of a job's window; others are not shown */
#define JUDGING "{\"schema\":\"vapro/1\",\"type\":\"judging\""

/* A job: the lines of a window that is not whole yet. */
struct feed_job {
	char *subject;
	struct wire_job job;
	uint64_t epoch, judged_ns;
	char *text;
	size_t size, room;
};

struct broker_feed {
	const struct source_options *options;
	const char *version;
	uint64_t interval_ns, due_ns, begin_ns;
	char servers[512];
	struct broker_reader *reader;
	struct board *board;
	struct feed_job *jobs;
	size_t job_count, job_capacity;
	char *text; /* the snapshot */
	size_t size;
	char why[SOURCE_ERR];
};

struct broker_feed *broker_feed__new(const struct source_options *options, unsigned interval_ms, const char *version)
{
	struct broker_feed *feed = calloc(1, sizeof(*feed));

	if (!feed)
		return NULL;
	feed->options = options;
	feed->version = version;
	feed->interval_ns = interval_ms * 1000000ULL;
	feed->begin_ns = utc_now();
	feed->board = board__new(NULL, NULL);
	broker__printable(feed->servers, sizeof(feed->servers), options->broker.servers);
	if (feed->board)
		return feed;
	free(feed);
	return NULL;
}

static void forget_jobs(struct broker_feed *feed)
{
	for (size_t i = 0; i < feed->job_count; i++) {
		free(feed->jobs[i].subject);
		free(feed->jobs[i].text);
	}
	feed->job_count = 0;
}

void broker_feed__free(struct broker_feed *feed)
{
	if (!feed)
		return;
	broker_reader__close(feed->reader);
	forget_jobs(feed);
	free(feed->jobs);
	board__free(feed->board);
	free(feed->text);
	free(feed);
}

/* Finds or makes a job by the subject of its results. NULL: out of memory, or no such subject. */
static struct feed_job *job_of(struct broker_feed *feed, const char *subject)
{
	struct wire_subject parsed;
	struct feed_job *job;

	for (size_t i = 0; i < feed->job_count; i++) {
		if (!strcmp(feed->jobs[i].subject, subject))
			return &feed->jobs[i];
	}
	if (wire_subject__parse(&parsed, subject) ||
	    grow(&feed->jobs, &feed->job_capacity, feed->job_count + 1, sizeof(*job)))
		return NULL;
	job = &feed->jobs[feed->job_count];
	*job = (struct feed_job){.subject = strdup(subject), .job = parsed.job};
	feed->job_count += job->subject != NULL;
	return job->subject ? job : NULL;
}

/* A pass begins: records of a later pass replace those of earlier ones. */
static void begin_pass(struct broker_feed *feed, struct feed_job *job, const char *text, size_t size)
{
	const char *end = memchr(text, '\n', size);
	cJSON *record = cJSON_ParseWithLength(text, end ? (size_t)(end - text) : size);

	if (record__uint(record, KEY(judging, pass)) || !record__text(record, KEY(judging, from)))
		board__forget(feed->board, job->job.job, job->job.user);
	cJSON_Delete(record);
	job->size = 0;
}

static void add_lines(struct broker_feed *feed, struct feed_job *job, const struct broker_message *message,
		      const char *text, size_t size)
{
	if (message->epoch < job->epoch)
		return; /* of a worker that another one has replaced */
	job->epoch = message->epoch;
	if (size >= strlen(JUDGING) && !memcmp(text, JUDGING, strlen(JUDGING))) {
		begin_pass(feed, job, text, size);
		job->judged_ns = message->judged_ns;
		return;
	}
	if (job->size + size <= WINDOW_BYTES && !grow_untouched(&job->text, &job->room, job->size + size, 1)) {
		memcpy(job->text + job->size, text, size);
		job->size += size;
	}
	/* the last message of a window marks the window as complete */
	if (message->judged_ns == job->judged_ns)
		return;
	job->judged_ns = message->judged_ns;
	board__records(feed->board, job->job.job, job->job.user, job->text, job->size);
	job->size = 0;
}

static void add_message(struct broker_feed *feed, const struct broker_message *message)
{
	struct feed_job *job = job_of(feed, message->subject);
	char *unpacked = NULL;
	size_t size = message->size;

	if (!job || (feed->options->job && !source__is_wanted(feed->options, &job->job)))
		return;
	if (message->packed && source__unpack(message, &unpacked, &size))
		return;
	add_lines(feed, job, message, unpacked ? unpacked : message->bytes, size);
	free(unpacked);
}

/* Writes the snapshot. Returns 0 or -ENOMEM. */
static int write_snapshot(struct broker_feed *feed)
{
	struct board_facts facts = {.host = feed->servers,
				    .version = feed->version,
				    .utc_ns = utc_now(),
				    .begin_ns = feed->begin_ns,
				    .daemon_cpu_pct = NAN};
	const struct board_reader reader = {.all = true};
	size_t count = board__ranks(feed->board, NULL, 0);
	struct board_process *ranks = calloc(count + 1, sizeof(*ranks));
	FILE *out;
	int ret = ranks ? 0 : -ENOMEM;

	free(feed->text);
	feed->text = NULL;
	out = ret ? NULL : open_memstream(&feed->text, &feed->size);
	if (!ret)
		board__ranks(feed->board, ranks, count);
	ret = out ? board__write(feed->board, &facts, ranks, count, &reader, out) : -ENOMEM;
	if (out && fclose(out))
		ret = -ENOMEM;
	free(ranks);
	return ret;
}

/* Connects. Returns 0 or a negative errno with the reason in why. */
static int connect_to(struct broker_feed *feed)
{
	char filter[WIRE_SUBJECT_MAX];
	int ret = broker_reader__open(&feed->reader, &feed->options->broker, WIRE_OUT, feed->why, sizeof(feed->why));

	if (ret)
		return ret;
	wire__filter(filter, sizeof(filter), WIRE_OUT, feed->options->cluster, NULL, NULL);
	ret = broker_reader__start(feed->reader, filter, utc_now() - BACK_NS, feed->why, sizeof(feed->why));
	if (!ret)
		return 0;
	broker_reader__close(feed->reader);
	feed->reader = NULL;
	return ret;
}

enum feed_state broker_feed__step(struct broker_feed *feed, uint64_t now_ns)
{
	struct broker_message message;
	int ret = 0, count = 0;

	if (now_ns < feed->due_ns)
		return *feed->why ? FEED_WAITING : FEED_CONNECTED;
	if (!feed->reader)
		ret = connect_to(feed);
	while (!ret && count++ < MESSAGES_MOST &&
	       (ret = broker_reader__next(feed->reader, &message, feed->why, sizeof(feed->why))) > 0) {
		add_message(feed, &message);
		ret = 0;
	}
	if (ret < 0) {
		feed->due_ns = now_ns + RETRY_NS;
		return ret == -EACCES || ret == -EINVAL ? FEED_REFUSED : FEED_WAITING;
	}
	*feed->why = 0;
	if (count > MESSAGES_MOST)
		return FEED_CONNECTED; /* there are more */
	feed->due_ns = now_ns + feed->interval_ns;
	return write_snapshot(feed) ? FEED_CONNECTED : FEED_SNAPSHOT;
}

const char *broker_feed__take(struct broker_feed *feed, size_t *size)
{
	*size = feed->size;
	return feed->text;
}

const char *broker_feed__why(const struct broker_feed *feed)
{
	return feed->why;
}
