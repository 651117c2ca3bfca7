// SPDX-License-Identifier: GPL-2.0-or-later
/* The process that writes job reports: a copy of vaprod from before its first probe, with the rights that it needs. */
#include <errno.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/grow.h"
#include "reports/reporter_private.h"
#include "reports/report_store.h"

#define RETAIN_NS 600000000000ULL /* between two looks at old reports, */
#define RETAIN_REPORTS 200	  /* or after so many new ones */
#define READ_BYTES (1U << 20)
#define READS_MOST 64 /* of the socket between two reports */
#define WAIT_MS 60000

/* A job whose records come, or whose report is due. */
struct served_job {
	struct spool_job spool;
	uint64_t due;  /* place in the order of requests; 0: no report is due */
	uint32_t lost; /* lines that were lost on the way */
	bool last;     /* no more lines come */
};

struct server {
	const struct reporter_options *options;
	int socket, jobs_directory, spool;
	int error; /* of the directories: no report can be written */
	struct served_job *jobs;
	size_t job_count, job_capacity;
	uint64_t bytes, requests; /* in the spool; so far */
	char *input;
	size_t used, room;
	uint64_t retain_ns; /* when old reports are looked for again */
	unsigned written;   /* since then */
	bool finished;
};

/* Leaves the rights to act as a user, and to list what users have. */
static void drop_rights(void)
{
	const uint64_t left = 1ULL << CAP_SETUID | 1ULL << CAP_SETGID | 1ULL << CAP_DAC_READ_SEARCH;
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};

	if (syscall(SYS_capget, &header, data))
		return;
	for (size_t i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		data[i].permitted &= (uint32_t)(left >> (32 * i));
		data[i].effective &= data[i].permitted;
		data[i].inheritable = 0;
	}
	syscall(SYS_capset, &header, data);
}

/* Reports to vaprod; what does not fit is not worth waiting for. */
static void notify(const struct server *server, enum report_frame_kind kind, uint64_t count)
{
	struct report_frame frame = {.kind = kind, .count = count > UINT32_MAX ? UINT32_MAX : (uint32_t)count};

	if (send(server->socket, &frame, sizeof(frame), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		errno = 0;
}

/* Writes the report of a job. Returns 0 or -errno. */
static int write_report(struct server *server, struct spool_job *job, uint64_t lost, const char *incomplete)
{
	struct write_request request = {.options = server->options,
					.jobs = server->jobs_directory,
					.spool = server->spool,
					.incomplete = incomplete,
					.lost = lost};
	int error = server->error ? server->error : reporter__write_report(&request, job);

	server->written++;
	if (error)
		notify(server, REPORT_FAILED, (uint64_t)-error);
	return error;
}

static struct served_job *find(struct server *server, uint64_t key)
{
	for (size_t i = 0; i < server->job_count; i++) {
		if (server->jobs[i].spool.key == key)
			return &server->jobs[i];
	}
	return NULL;
}

static void open_job(struct server *server, const struct report_frame *frame, const char *text)
{
	struct served_job *job = find(server, frame->key);

	if (job || !frame->user || grow(&server->jobs, &server->job_capacity, server->job_count + 1, sizeof(*job)))
		return;
	job = &server->jobs[server->job_count++];
	*job = (struct served_job){.spool = {.key = frame->key, .uid = frame->user - 1}};
	snprintf(job->spool.identity, sizeof(job->spool.identity), "%s", text);
	if (!server->error)
		spool__open(server->spool, &job->spool);
}

static void add_line(struct server *server, const struct report_frame *frame, char *text)
{
	struct served_job *job = find(server, frame->key);

	if (!job)
		return;
	text[frame->bytes] = '\n'; /* in place of the NUL that ends it here */
	if (server->error || !spool__add(server->spool, &job->spool, &server->bytes, text, frame->bytes + 1UL))
		notify(server, REPORT_DROPPED, 1);
}

static void close_job(struct server *server, struct served_job *job)
{
	spool__remove(server->spool, &job->spool);
	server->bytes -= job->spool.bytes < server->bytes ? job->spool.bytes : server->bytes;
	*job = server->jobs[--server->job_count];
}

/* The report of a job is due. Where an earlier version is, too, one is written in place of both. */
static void note_due(struct server *server, struct served_job *job, const struct report_frame *frame)
{
	job->due = job->due ? job->due : ++server->requests;
	job->lost = frame->count;
	job->last |= frame->kind == REPORT_CLOSE;
}

static bool was_written(const struct served_job *job)
{
	return job->spool.number != 0;
}

/* Returns the job whose report comes next: first reports before later versions, else in the order of requests; or NULL.
 */
static struct served_job *next_due(const struct server *server)
{
	struct served_job *next = NULL;

	for (size_t i = 0; i < server->job_count; i++) {
		struct served_job *job = &server->jobs[i];

		if (job->due && (!next || was_written(next) > was_written(job) ||
				 (was_written(next) == was_written(job) && job->due < next->due)))
			next = job;
	}
	return next;
}

static void write_due(struct server *server, struct served_job *job)
{
	job->due = 0;
	write_report(server, &job->spool, job->lost, NULL);
	if (job->last)
		close_job(server, job);
}

/*
 * A job of a number that closed and whose last report is due may begin again: its lines would be those of another run.
 * The report of the first is written before.
 */
static void reopen_job(struct server *server, const struct report_frame *frame)
{
	struct served_job *job = find(server, frame->key);

	if (job && job->last)
		write_due(server, job);
}

static void serve(struct server *server, const struct report_frame *frame, char *text)
{
	struct served_job *job;

	if (frame->kind == REPORT_OPEN) {
		reopen_job(server, frame);
		open_job(server, frame, text);
		return;
	}
	job = find(server, frame->key);
	if (frame->kind == REPORT_LINE)
		add_line(server, frame, text);
	else if (frame->kind == REPORT_FINISH)
		server->finished = true;
	else if (job)
		note_due(server, job, frame);
}

/* Serves what has come whole. Returns false where it makes no sense. */
static bool serve_input(struct server *server)
{
	size_t at = 0;

	while (!server->finished && server->used - at >= sizeof(struct report_frame)) {
		struct report_frame frame;
		char *text = server->input + at + sizeof(frame), behind;

		memcpy(&frame, server->input + at, sizeof(frame));
		if (frame.bytes > REPORT_TEXT_MOST)
			return false;
		if (server->used - at < sizeof(frame) + frame.bytes)
			break;
		/* there is one byte more than is used */
		behind = text[frame.bytes];
		text[frame.bytes] = '\0';
		serve(server, &frame, text);
		text[frame.bytes] = behind;
		at += sizeof(frame) + frame.bytes;
	}
	memmove(server->input, server->input + at, server->used - at);
	server->used -= at;
	return true;
}

static bool read_input(struct server *server)
{
	ssize_t got;

	if (grow_untouched(&server->input, &server->room, server->used + READ_BYTES + 1, 1))
		return false;
	got = recv(server->socket, server->input + server->used, READ_BYTES, 0);
	if (got < 0 && errno == EINTR)
		return true;
	if (got <= 0)
		return false;
	server->used += (size_t)got;
	return serve_input(server);
}

/* Writes the report of a job that an earlier vaprod left. */
static bool write_left(void *ctx, const struct spool_job *found)
{
	struct server *server = ctx;
	struct spool_job job = *found;
	int error = write_report(server, &job, 0,
				 "incomplete: vaprod ended, without notice, before the end of the job was recorded");

	/* what can never be written is not stored for ever; a full disk may have room at the next start */
	if (!error || (error != -ENOSPC && error != -EDQUOT))
		spool__remove(server->spool, &job);
	else
		server->bytes += job.bytes;
	return true;
}

static void retain(struct server *server, uint64_t now_ns)
{
	unsigned removed;

	if (server->error || (now_ns < server->retain_ns && server->written < RETAIN_REPORTS))
		return;
	server->retain_ns = now_ns + RETAIN_NS;
	server->written = 0;
	removed = reporter__remove_old(server->options, server->jobs_directory);
	if (removed)
		notify(server, REPORT_REMOVED, removed);
}

static void finish(struct server *server)
{
	for (struct served_job *job; (job = next_due(server)); close_job(server, job))
		write_report(server, &job->spool, job->lost, NULL);
	while (server->job_count) {
		struct served_job *job = &server->jobs[server->job_count - 1];

		write_report(server, &job->spool, 0,
			     was_written(job) ? NULL : "incomplete: vaprod was ended before the job");
		close_job(server, job);
	}
}

/*
 * Reads what vaprod has sent, for which it waits where no report is due: a report may take long, and vaprod holds a
 * bound of records only. Returns false at the end of vaprod.
 */
static bool read_all(struct server *server)
{
	struct pollfd ready = {.fd = server->socket, .events = POLLIN};

	for (int i = 0; i < READS_MOST && !server->finished; i++) {
		if (poll(&ready, 1, i || next_due(server) ? 0 : WAIT_MS) <= 0)
			return true;
		if (!read_input(server))
			return false;
	}
	return true;
}

int reporter__serve(int socket, const struct reporter_options *options)
{
	static const int defaults[] = {SIGCHLD, SIGALRM};
	struct server server = {.options = options, .socket = socket, .jobs_directory = -1, .spool = -1};
	struct served_job *job;

	prctl(PR_SET_NAME, "vapro-reports", 0, 0, 0);
	/* the terminal's signals are for vaprod, which then has the reports written */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	for (size_t i = 0; i < sizeof(defaults) / sizeof(*defaults); i++)
		signal(defaults[i], SIG_DFL);
	setpriority(PRIO_PROCESS, 0, 10);
	umask(022); /* files and directories of reports have modes of their own */
	server.error = report_store__open(options->directory, &server.jobs_directory, &server.spool);
	drop_rights();
	if (server.error)
		notify(&server, REPORT_FAILED, (uint64_t)-server.error);
	else
		spool__each(server.spool, write_left, &server);
	while (!server.finished) {
		retain(&server, mono_now());
		if (!read_all(&server))
			return 1;
		job = server.finished ? NULL : next_due(&server);
		if (job)
			write_due(&server, job);
	}
	finish(&server);
	return 0;
}
