// SPDX-License-Identifier: GPL-2.0-or-later
/* The caller's side: it starts a reader, waits for the response within limits, and names failures. */
#include "sandbox/confine_private.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "sandbox/user_file.h"

#define LINGERERS 16
#define BROKEN 64
#define BROKEN_MS 60000
#define LEAST_NICE 19
#define DIE_MS 200 /* time for a killed reader to exit; one in a dead file system is left behind */

/*
 * Files that broke a reader of a service recently: a hundred processes of a program that is made to cost the whole
 * deadline cost one deadline, not a hundred.
 */
static struct broken {
	char service[32];
	struct confine_version file;
	int64_t until_ms;
} broken[BROKEN];

/* Readers that were killed but had not exited yet; the next request reaps them. */
static pid_t lingerers[LINGERERS];

struct confine_request {
	const struct confine_query *query;
	struct confine_version versions[CONFINE_FILES_MAX];
	struct confine_response remembered; /* with pid 0: the response was remembered */
	pid_t pid;			    /* 0: no reader works */
	int pipe;
	unsigned int limit_ms;
	int64_t until_ms;
	int64_t idle_until_ms; /* in the background: 0 from then on */
};

static int64_t now_ms(void)
{
	return (int64_t)(mono_now() / 1000000);
}

/* Returns a file in memory with the request's bytes, or -1. */
static int about_file(const struct flat *about)
{
	int fd = memfd_create("vapro-question", MFD_CLOEXEC);
	size_t done = 0;

	while (fd >= 0 && about && done < about->size) {
		ssize_t n = write(fd, about->data + done, about->size - done);

		if (n <= 0) {
			close(fd);
			return -1;
		}
		done += (size_t)n;
	}
	return fd;
}

static uint64_t time_ns(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * 1000000000ULL + (uint64_t)time->tv_usec * 1000ULL;
}

static bool reaped(pid_t pid, int *how, uint64_t *cpu_ns)
{
	struct rusage usage = {0};
	pid_t got;

	do
		got = wait4(pid, how, WNOHANG, &usage);
	while (got < 0 && errno == EINTR);
	*cpu_ns = time_ns(&usage.ru_utime) + time_ns(&usage.ru_stime);
	return got == pid || (got < 0 && errno == ECHILD);
}

void confine__leave_behind(pid_t pid)
{
	for (int i = 0; i < LINGERERS; i++)
		if (!lingerers[i]) {
			lingerers[i] = pid;
			break;
		}
}

/* Waits for the reader's exit, and kills a reader that does not exit soon. Returns whether *how is known. */
static bool end(pid_t pid, bool force, int *how, uint64_t *cpu_ns)
{
	int64_t until = now_ms() + DIE_MS;

	for (;;) {
		struct timespec rest = {.tv_nsec = 500000};

		if (force)
			kill(pid, SIGKILL);
		*how = 0;
		if (reaped(pid, how, cpu_ns))
			return true;
		if (now_ms() >= until) {
			if (force)
				break;
			force = true;
			until = now_ms() + DIE_MS;
		}
		nanosleep(&rest, NULL);
	}
	confine__leave_behind(pid);
	return false;
}

static void reap_lingerers(void)
{
	uint64_t cpu_ns;
	int how;

	for (int i = 0; i < LINGERERS; i++)
		if (lingerers[i] && reaped(lingerers[i], &how, &cpu_ns))
			lingerers[i] = 0;
}

/* Reads exactly size bytes. Returns 0, -ETIMEDOUT, -EPIPE where the pipe ends before, or another -errno. */
static int receive(int fd, void *to, size_t size, int64_t until)
{
	char *at = to;

	while (size) {
		struct pollfd wait = {.fd = fd, .events = POLLIN};
		int64_t left = until - now_ms();
		ssize_t got;

		if (left <= 0)
			return -ETIMEDOUT;
		if (poll(&wait, 1, (int)left) < 0 && errno != EINTR)
			return -errno;
		if (!wait.revents)
			continue;
		got = read(fd, at, size);
		if (got < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		if (got == 0)
			return -EPIPE;
		if (got > 0) {
			at += got;
			size -= (size_t)got;
		}
	}
	return 0;
}

/* Receives the response's head and body; a refusal's sentence goes to err. */
static int receive_response(int fd, struct confine_response *response, int64_t until, char *err, size_t err_size)
{
	struct confine_head head;
	char sentence[CONFINE_SENTENCE_MAX] = "", more;
	int status = receive(fd, &head, sizeof(head), until);

	if (status)
		return status;
	if (head.status) {
		if (head.size >= sizeof(sentence))
			return -EBADMSG;
		status = receive(fd, sentence, head.size, until);
		for (char *at = sentence; *at; at++)
			if (*at < ' ' || *at > '~')
				*at = '?';
		snprintf(err, err_size, "%s", sentence);
		return status ? status : -EINVAL;
	}
	if (head.size > CONFINE_RESPONSE_BYTES_MAX)
		return -EBADMSG;
	response->data = malloc(head.size + 1);
	if (!response->data)
		return -ENOMEM;
	response->size = head.size;
	status = receive(fd, response->data, head.size, until);
	if (!status && receive(fd, &more, 1, until) != -EPIPE)
		status = -EBADMSG;
	return status;
}

static int name_failure(int received, bool known, int how, unsigned int limit_ms, char *err, size_t err_size)
{
	static const char reader[] = "its confined reader";

	if (received == -ENOMEM) {
		snprintf(err, err_size, "out of memory for its answer");
		return -ENOMEM;
	}
	if (received == -ETIMEDOUT)
		snprintf(err, err_size, "%s gave no answer within %u ms", reader, limit_ms);
	else if (known && WIFSIGNALED(how) && WTERMSIG(how) == SIGSYS)
		snprintf(err, err_size, "%s made a system call that is forbidden to it", reader);
	else if (known && WIFSIGNALED(how) && WTERMSIG(how) == SIGXCPU)
		snprintf(err, err_size, "%s used more than %d s of processor time", reader, CONFINE_CPU_SECONDS);
	else if (known && WIFSIGNALED(how) && received != -EBADMSG)
		snprintf(err, err_size, "%s crashed (signal %d)", reader, WTERMSIG(how));
	else if (known && WIFEXITED(how) && WEXITSTATUS(how) == CONFINE_EXIT_MEMORY)
		snprintf(err, err_size, "%s needed more memory than it may have", reader);
	else if (known && WIFEXITED(how) && WEXITSTATUS(how) == CONFINE_EXIT_READ)
		snprintf(err, err_size, "it could not be read");
	else if (known && WIFEXITED(how) && WEXITSTATUS(how) == CONFINE_EXIT_SETUP) {
		snprintf(err, err_size, "%s could not be confined, and has read nothing", reader);
		return -EPERM;
	} else {
		snprintf(err, err_size, "%s gave an answer that makes no sense", reader);
	}
	return -EPROTO;
}

static int check_files(const struct confine_query *query, char *err, size_t err_size)
{
	for (unsigned int i = 0; i < query->file_count; i++) {
		struct stat st;

		int status = user_file__stat(query->files[i], &st);

		if (status) {
			snprintf(err, err_size, "cannot stat: %s", strerror(-status));
			return -EFBIG;
		}
		if (!S_ISREG(st.st_mode)) {
			snprintf(err, err_size, "not a regular file");
			return -EFBIG;
		}
		if ((uint64_t)st.st_size > CONFINE_FILE_BYTES_MAX) {
			snprintf(err, err_size, "a size of %lld bytes is out of range", (long long)st.st_size);
			return -EFBIG;
		}
	}
	return 0;
}

static bool is_broken(const struct confine_request *request)
{
	for (int i = 0; i < BROKEN; i++)
		if (!strcmp(broken[i].service, request->query->service) &&
		    confine_version__same(&broken[i].file, &request->versions[0]) && now_ms() < broken[i].until_ms)
			return true;
	return false;
}

static void note_broken(const struct confine_request *request)
{
	struct broken *oldest = &broken[0];

	for (int i = 1; i < BROKEN; i++)
		if (broken[i].until_ms < oldest->until_ms)
			oldest = &broken[i];
	*oldest = (struct broken){.file = request->versions[0], .until_ms = now_ms() + BROKEN_MS};
	snprintf(oldest->service, sizeof(oldest->service), "%s", request->query->service);
}

/* Starts the reader of a request. 0 or -errno with a sentence in err. */
static int start_reader(struct confine_request *request, char *err, size_t err_size)
{
	int about = about_file(request->query->about), ends[2] = {-1, -1};
	int status = about < 0 || pipe2(ends, O_CLOEXEC) ? -errno : 0;

	if (!status)
		status = confine_template__start(request->query, about, ends[1], &request->pid);
	if (status) {
		snprintf(err, err_size, "its confined reader could not be started: %s", strerror(-status));
		request->pid = 0;
		if (ends[0] >= 0)
			close(ends[0]);
	} else {
		fcntl(ends[0], F_SETPIPE_SZ, 1 << 20); /* fewer reads; failure is harmless */
		request->pipe = ends[0];
	}
	if (ends[1] >= 0)
		close(ends[1]);
	if (about >= 0)
		close(about);
	return status;
}

/* Starts a request, or has it answered from memory. 0 or -errno with a sentence in err. */
static int begin(const struct confine_query *query, unsigned int limit_ms, struct confine_request *request, char *err,
		 size_t err_size)
{
	int status;

	*request =
	    (struct confine_request){.query = query, .pipe = -1, .limit_ms = limit_ms, .until_ms = now_ms() + limit_ms};
	if (!confine__armed) {
		snprintf(err, err_size, "this program has no confined reader");
		return -ENOSYS;
	}
	reap_lingerers();
	status = check_files(query, err, err_size);
	if (status)
		return status;
	if (confine_memory__recall(query, request->versions, &request->remembered))
		return 0;
	if (query->file_count && is_broken(request)) {
		snprintf(err, err_size, "its confined reader broke less than a minute ago; it is not tried again yet");
		return -EPROTO;
	}
	return start_reader(request, err, err_size);
}

/* Receives the response of a reader, which ends, and names failures. As confine__query(). */
static int finish(struct confine_request *request, struct confine_response *response, char *err, size_t err_size)
{
	int status = receive_response(request->pipe, response, request->until_ms, err, err_size), how = 0;
	bool known = end(request->pid, status && status != -EPIPE && status != -EINVAL, &how, &response->cpu_ns);

	close(request->pipe);
	request->pid = 0;
	if (!status && known && (!WIFEXITED(how) || WEXITSTATUS(how)))
		status = -EBADMSG;
	if (status && status != -EINVAL)
		status = name_failure(status, known, how, request->limit_ms, err, err_size);
	if (!status)
		confine_memory__keep(request->query, request->versions, response);
	if (status == -EPROTO && request->query->file_count)
		note_broken(request);
	if (status) {
		free(response->data);
		response->data = NULL;
		response->size = 0;
	}
	return status;
}

int confine__query(const struct confine_query *query, struct confine_response *response, char *err, size_t err_size)
{
	struct confine_request request;
	int status = begin(query, query->limit_ms ? query->limit_ms : CONFINE_LIMIT_MS, &request, err, err_size);

	*response = request.remembered;
	return status || !request.pid ? status : finish(&request, response, err, err_size);
}

int confine_request__begin(const struct confine_query *query, struct confine_request **request, char *err,
			   size_t err_size)
{
	unsigned int limit_ms = query->limit_ms ? query->limit_ms : CONFINE_BACKGROUND_LIMIT_MS;
	const struct sched_param none = {0};
	int status;

	*request = malloc(sizeof(**request));
	if (!*request) {
		snprintf(err, err_size, "out of memory");
		return -ENOMEM;
	}
	status = begin(query, limit_ms, *request, err, err_size);
	if (status) {
		free(*request);
		*request = NULL;
		return status;
	}
	if ((*request)->pid) {
		setpriority(PRIO_PROCESS, (id_t)(*request)->pid, LEAST_NICE);
		sched_setscheduler((*request)->pid, SCHED_IDLE, &none);
		(*request)->idle_until_ms = now_ms() + (query->idle_ms ? query->idle_ms : CONFINE_IDLE_MS);
	}
	return 0;
}

/* There may be no idle time for hours. The least priority stays. */
void confine_request__end_idle(struct confine_request *request)
{
	const struct sched_param none = {0};

	if (!request->pid || !request->idle_until_ms)
		return;
	request->idle_until_ms = 0;
	sched_setscheduler(request->pid, SCHED_BATCH, &none);
}

int confine_request__poll(struct confine_request *request, struct confine_response *response, char *err,
			  size_t err_size)
{
	siginfo_t ended = {0};

	*response = request->remembered;
	request->remembered = (struct confine_response){0};
	if (!request->pid)
		return 0;
	/* the whole response is in the pipe once the reader has exited */
	if (!waitid(P_PID, (id_t)request->pid, &ended, WEXITED | WNOHANG | WNOWAIT) && ended.si_pid) {
		request->until_ms = now_ms() + DIE_MS;
		return finish(request, response, err, err_size);
	}
	if (now_ms() < request->until_ms) {
		if (now_ms() >= request->idle_until_ms)
			confine_request__end_idle(request);
		return -EAGAIN;
	}
	if (request->query->file_count)
		note_broken(request);
	return name_failure(-ETIMEDOUT, false, 0, request->limit_ms, err, err_size);
}

void confine_request__free(struct confine_request *request)
{
	if (!request)
		return;
	if (request->pid) {
		kill(request->pid, SIGKILL);
		confine__leave_behind(request->pid);
		close(request->pipe);
	}
	free(request->remembered.data);
	free(request);
}
