// SPDX-License-Identifier: GPL-2.0-or-later
/* vaprod's side of the process that writes job reports. */
#include "reports/reporter_private.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/grow.h"
#include "base/text.h"

#define QUEUE_MOST (8U << 20)  /* bytes held for the process; lines beyond are dropped, and counted */
#define EARLY_NS 7000000000ULL /* after its end, at the latest, a job's report is written with what is known */
#define JOBS_MOST 1024	       /* others have no report, and are counted */
#define WAIT_NS 20000000LL

/* A job that is, or was, running. */
struct reported_job {
	uint64_t key;
	uint32_t user, lost; /* lost: lines that were not sent */
	uint64_t ended_ns;   /* CLOCK_MONOTONIC; 0: it runs */
	bool seen;	     /* in the present pass over the processes */
	bool written;	     /* once since its end */
	bool window;	     /* a window that holds its end has ended */
};

struct reporter {
	int socket; /* -1: the process has ended */
	pid_t pid;
	char *queue;
	size_t used, sent, room;
	struct reported_job *jobs;
	size_t job_count, job_capacity;
	struct report_frame reply;
	size_t replied; /* bytes of it */
	/* what is to be said */
	uint64_t failed, dropped, left_out, removed;
	int error; /* of the latest that failed */
	bool ended, ended_said;
};

uint64_t reporter__key(const char *job, uint32_t user)
{
	return text__hash(job, strlen(job)) ^ (uint64_t)user * 0x9e3779b97f4a7c15ULL;
}

struct reporter *reporter__start(const struct reporter_options *options, char *err, size_t err_size)
{
	struct reporter *reporter = calloc(1, sizeof(*reporter));
	pid_t parent = getpid();
	int ends[2];

	if (!reporter || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) {
		snprintf(err, err_size, "%s", reporter ? strerror(errno) : "out of memory");
		free(reporter);
		return NULL;
	}
	reporter->pid = fork();
	if (!reporter->pid) {
		close(ends[0]);
		if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) || getppid() != parent)
			_exit(1);
		_exit(reporter__serve(ends[1], options));
	}
	close(ends[1]);
	reporter->socket = ends[0];
	if (reporter->pid > 0)
		return reporter;
	snprintf(err, err_size, "%s", strerror(errno));
	close(ends[0]);
	free(reporter);
	return NULL;
}

/* Adds a frame to the queue. Returns whether there was room; without `always` a full queue has none. */
static bool enqueue(struct reporter *reporter, const struct report_frame *frame, const char *text, bool always)
{
	size_t size = sizeof(*frame) + frame->bytes;

	if (reporter->socket < 0 || frame->bytes > REPORT_TEXT_MOST ||
	    (!always && reporter->used - reporter->sent + size > QUEUE_MOST))
		return false;
	if (reporter->sent && reporter->sent == reporter->used)
		reporter->sent = reporter->used = 0;
	if (grow(&reporter->queue, &reporter->room, reporter->used + size, 1))
		return false;
	memcpy(reporter->queue + reporter->used, frame, sizeof(*frame));
	memcpy(reporter->queue + reporter->used + sizeof(*frame), text, frame->bytes);
	reporter->used += size;
	return true;
}

static struct reported_job *find(const struct reporter *reporter, uint64_t key)
{
	for (size_t i = 0; i < reporter->job_count; i++) {
		if (reporter->jobs[i].key == key)
			return &reporter->jobs[i];
	}
	return NULL;
}

/* Finds a job, or opens one that begins; NULL: it has no report, or there is no room for it. */
static struct reported_job *open_job(struct reporter *reporter, const char *job, uint32_t user, bool begins)
{
	struct report_frame frame = {
	    .kind = REPORT_OPEN, .bytes = (uint32_t)strlen(job), .key = reporter__key(job, user), .user = user};
	struct reported_job *found = find(reporter, frame.key);

	if (found || !begins)
		return found;
	if (reporter->job_count == JOBS_MOST ||
	    grow(&reporter->jobs, &reporter->job_capacity, reporter->job_count + 1, sizeof(*found)) ||
	    !enqueue(reporter, &frame, job, true)) {
		reporter->left_out++;
		return NULL;
	}
	found = &reporter->jobs[reporter->job_count++];
	*found = (struct reported_job){.key = frame.key, .user = user};
	return found;
}

void reporter__line(struct reporter *reporter, const char *job, uint32_t user, const char *line, bool begins)
{
	struct reported_job *found = user && job ? open_job(reporter, job, user, begins) : NULL;
	struct report_frame frame = {.kind = REPORT_LINE, .bytes = (uint32_t)strlen(line)};

	if (!found)
		return;
	frame.key = found->key;
	frame.user = user;
	if (enqueue(reporter, &frame, line, false))
		return;
	found->lost++;
	reporter->dropped++;
}

/* Has the report of a job written; last: no more lines of it come. */
static void write_job(struct reporter *reporter, struct reported_job *job, bool last)
{
	struct report_frame frame = {
	    .kind = last ? REPORT_CLOSE : REPORT_WRITE, .key = job->key, .user = job->user, .count = job->lost};

	job->written = true;
	if (!enqueue(reporter, &frame, "", true))
		reporter->failed++;
}

void reporter__see(struct reporter *reporter, const struct reporter_process *processes, size_t count, uint64_t now_ns)
{
	for (size_t i = 0; i < reporter->job_count; i++)
		reporter->jobs[i].seen = false;
	for (size_t i = 0; i < count; i++) {
		struct reported_job *job =
		    processes[i].ended ? NULL : find(reporter, reporter__key(processes[i].job, processes[i].user));

		if (!job)
			continue;
		job->seen = true;
		job->ended_ns = 0; /* a job whose processes come and go goes on */
		job->written = job->window = false;
	}
	for (size_t i = 0; i < reporter->job_count; i++) {
		struct reported_job *job = &reporter->jobs[i];

		if (!job->seen && !job->ended_ns)
			job->ended_ns = now_ns;
		if (job->ended_ns && !job->written && now_ns - job->ended_ns >= EARLY_NS)
			write_job(reporter, job, false);
	}
}

void reporter__window_ended(struct reporter *reporter, uint64_t end_ns)
{
	for (size_t i = reporter->job_count; i-- > 0;) {
		struct reported_job *job = &reporter->jobs[i];

		if (!job->ended_ns || job->ended_ns > end_ns)
			continue;
		/* the window after has what is known only when a job is over */
		write_job(reporter, job, job->window);
		if (job->window)
			*job = reporter->jobs[--reporter->job_count];
		else
			job->window = true;
	}
}

static void end(struct reporter *reporter)
{
	if (reporter->socket >= 0)
		close(reporter->socket);
	reporter->socket = -1;
	reporter->ended = true;
	reporter->used = reporter->sent = 0;
}

/* Sends what is accepted at once. */
static void send_queue(struct reporter *reporter)
{
	while (reporter->socket >= 0 && reporter->sent < reporter->used) {
		ssize_t sent = send(reporter->socket, reporter->queue + reporter->sent, reporter->used - reporter->sent,
				    MSG_NOSIGNAL | MSG_DONTWAIT);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != ENOBUFS)
			end(reporter);
		if (sent <= 0)
			return;
		reporter->sent += (size_t)sent;
	}
	if (reporter->sent && reporter->sent == reporter->used) {
		reporter->sent = reporter->used = 0;
	} else if (reporter->sent > QUEUE_MOST) {
		memmove(reporter->queue, reporter->queue + reporter->sent, reporter->used - reporter->sent);
		reporter->used -= reporter->sent;
		reporter->sent = 0;
	}
}

static void take_reply(struct reporter *reporter)
{
	const struct report_frame *reply = &reporter->reply;

	if (reply->kind == REPORT_FAILED) {
		reporter->failed++;
		reporter->error = (int)reply->count;
	} else if (reply->kind == REPORT_DROPPED) {
		reporter->dropped += reply->count;
	} else if (reply->kind == REPORT_REMOVED) {
		reporter->removed += reply->count;
	}
}

static void read_replies(struct reporter *reporter)
{
	while (reporter->socket >= 0) {
		ssize_t got = recv(reporter->socket, (char *)&reporter->reply + reporter->replied,
				   sizeof(reporter->reply) - reporter->replied, MSG_DONTWAIT);

		if (got < 0 && errno == EINTR)
			continue;
		if (!got || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK))
			end(reporter);
		if (got <= 0)
			return;
		reporter->replied += (size_t)got;
		if (reporter->replied < sizeof(reporter->reply))
			continue;
		reporter->replied = 0;
		take_reply(reporter);
	}
}

void reporter__step(struct reporter *reporter, uint64_t now_ns)
{
	(void)now_ns;
	send_queue(reporter);
	read_replies(reporter);
}

bool reporter__news(struct reporter *reporter, char *text, size_t size)
{
	if (reporter->ended && !reporter->ended_said) {
		reporter->ended_said = true;
		snprintf(text, size,
			 "the process that writes job reports has ended: no further job leaves one; those "
			 "of running jobs are written, incomplete, when vaprod is started again");
		return true;
	}
	if (reporter->failed) {
		snprintf(text, size, "%llu report%s of jobs could not be written (%s)",
			 (unsigned long long)reporter->failed, reporter->failed == 1 ? "" : "s",
			 reporter->error ? strerror(reporter->error) : "the process that writes them has ended");
		reporter->failed = 0;
		return true;
	}
	if (reporter->dropped) {
		snprintf(text, size,
			 "%llu line%s of job reports were lost: they are more than is stored for a job, or the "
			 "disk is slow or full",
			 (unsigned long long)reporter->dropped, reporter->dropped == 1 ? "" : "s");
		reporter->dropped = 0;
		return true;
	}
	if (reporter->left_out) {
		snprintf(text, size, "%llu records of jobs beyond %d at a time are in no report",
			 (unsigned long long)reporter->left_out, JOBS_MOST);
		reporter->left_out = 0;
		return true;
	}
	return false;
}

uint64_t reporter__removed(struct reporter *reporter)
{
	uint64_t removed = reporter->removed;

	reporter->removed = 0;
	return removed;
}

void reporter__finish(struct reporter *reporter, uint64_t patience_ns)
{
	struct report_frame frame = {.kind = REPORT_FINISH};
	uint64_t until_ns = mono_now() + patience_ns;
	bool ended = false;

	if (!reporter)
		return;
	enqueue(reporter, &frame, "", true);
	while (!ended && mono_now() < until_ns) {
		reporter__step(reporter, mono_now());
		if (reporter->socket >= 0)
			poll(&(struct pollfd){.fd = reporter->socket,
					      .events =
						  (short)(POLLIN | (reporter->sent < reporter->used ? POLLOUT : 0))},
			     1, WAIT_NS / 1000000);
		ended = waitpid(reporter->pid, NULL, WNOHANG) != 0;
	}
	if (!ended) {
		kill(reporter->pid, SIGKILL);
		waitpid(reporter->pid, NULL, 0);
	}
	end(reporter);
	free(reporter->queue);
	free(reporter->jobs);
	free(reporter);
}
