// SPDX-License-Identifier: GPL-2.0-or-later
/* The caller's side: it starts a reader, waits for the response within limits, and names failures. */
#include "sandbox/confine.h"

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
#include "sandbox/confine_order.h"
#include "sandbox/confine_owner.h"
#include "sandbox/confine_private.h"
#include "sandbox/confine_watch.h"
#include "sandbox/user_file.h"

#define LIMIT_MS 10000
#define AT_ONCE (64U << 10)
#define BYTES_MAX (sizeof(struct confine_head) + CONFINE_RESPONSE_BYTES_MAX)

/* A response, as far as it has come; all zeros: nothing has. */
struct inbox {
	uint8_t *data;
	size_t size, room;
};

/* How many bytes the response has by its head; 0 where the head makes no sense, BYTES_MAX while there is none. */
static size_t size_of(const struct inbox *inbox)
{
	struct confine_head head;

	if (inbox->size < sizeof(head))
		return BYTES_MAX;
	memcpy(&head, inbox->data, sizeof(head));
	if (head.size > (head.status ? CONFINE_SENTENCE_MAX - 1 : CONFINE_RESPONSE_BYTES_MAX))
		return 0;
	return sizeof(head) + (size_t)head.size;
}

static int make_room(struct inbox *inbox)
{
	size_t wanted = inbox->size + AT_ONCE, room = inbox->room * 2 > wanted ? inbox->room * 2 : wanted;
	uint8_t *more;

	if (inbox->room >= wanted)
		return 0;
	more = realloc(inbox->data, room);
	if (!more)
		return -ENOMEM;
	inbox->data = more;
	inbox->room = room;
	return 0;
}

/* Receives what a pipe that does not wait has. 0 at its end, -EAGAIN where more may come, or another -errno. */
static int receive_inbox(struct inbox *inbox, int pipe)
{
	for (;;) {
		ssize_t got;

		if (make_room(inbox))
			return -ENOMEM;
		got = read(pipe, inbox->data + inbox->size, AT_ONCE);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno; /* -EAGAIN: more may come */
		if (got == 0)
			return 0;
		inbox->size += (size_t)got;
		if (inbox->size > size_of(inbox))
			return -EBADMSG;
	}
}

/* Opens a complete response: 0; -EINVAL with a refusal's sentence; -EPIPE where it is not complete; or -ENOMEM. */
static int open_inbox(struct inbox *inbox, struct confine_response *response, char *err, size_t err_size)
{
	struct confine_head head;

	if (inbox->size < sizeof(head) || inbox->size != size_of(inbox))
		return -EPIPE;
	memcpy(&head, inbox->data, sizeof(head));
	if (head.status) {
		for (size_t i = sizeof(head); i < inbox->size; i++)
			if (inbox->data[i] < ' ' || inbox->data[i] > '~')
				inbox->data[i] = '?';
		snprintf(err, err_size, "%.*s", (int)head.size, inbox->data + sizeof(head));
		return -EINVAL;
	}
	/* the bytes move to the front, so that the caller can free them */
	memmove(inbox->data, inbox->data + sizeof(head), (size_t)head.size);
	response->data = realloc(inbox->data, (size_t)head.size + 1);
	if (!response->data)
		return -ENOMEM;
	response->size = (size_t)head.size;
	*inbox = (struct inbox){0};
	return 0;
}

static void free_inbox(struct inbox *inbox)
{
	free(inbox->data);
	*inbox = (struct inbox){0};
}

#define LINGERERS 64
#define BROKEN 64
#define BROKEN_MS 60000
#define LEAST_NICE 19
#define SILENT_LOOKS 10 /* at a reader in the background, after which its file system counts as silent */
#define DIE_MS 200	/* time for a killed reader to exit; one in a dead file system is left behind */

/*
 * Files that broke a reader of a service recently: a hundred processes of a program that is made to cost the whole
 * deadline cost one deadline, not a hundred.
 */
static struct broken {
	char service[32];
	struct confine_version file;
	int64_t until_ms;
	char reason[CONFINE_SENTENCE_MAX];
} broken[BROKEN];

/* Readers that were killed but had not exited yet; the next request reaps them. */
static struct lingerer {
	pid_t pid; /* 0: a free entry */
	bool owned, charged;
	uid_t owner;
} lingerers[LINGERERS];

struct confine_request {
	const struct confine_query *query;
	struct confine_version versions[CONFINE_FILES_MAX];
	struct confine_response remembered; /* with pid 0: the response was remembered */
	struct inbox inbox;
	pid_t pid; /* 0: no reader works */
	int pipe;
	bool charged;  /* to the query's owner */
	bool complete; /* the reader has closed its pipe */
	bool background;
	struct confine_watch watch; /* of one in the background */
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

static void leave_behind(const struct lingerer *killed)
{
	for (int i = 0; i < LINGERERS; i++)
		if (!lingerers[i].pid) {
			lingerers[i] = *killed;
			break;
		}
}

void confine__leave_behind(pid_t pid)
{
	leave_behind(&(struct lingerer){.pid = pid});
}

static struct lingerer lingerer_of(const struct confine_request *request)
{
	return (struct lingerer){
	    .pid = request->pid, .owned = true, .charged = request->charged, .owner = request->query->owner};
}

/* Waits for the reader's exit, and kills a reader that does not exit soon. Returns whether *how is known. */
static bool end(const struct confine_request *request, bool force, int *how, uint64_t *cpu_ns)
{
	struct lingerer lingerer = lingerer_of(request);
	int64_t until = now_ms() + DIE_MS;

	for (;;) {
		struct timespec rest = {.tv_nsec = 500000};

		if (force)
			kill(request->pid, SIGKILL);
		*how = 0;
		if (reaped(request->pid, how, cpu_ns))
			return true;
		if (now_ms() >= until) {
			if (force)
				break;
			force = true;
			until = now_ms() + DIE_MS;
		}
		nanosleep(&rest, NULL);
	}
	leave_behind(&lingerer);
	return false;
}

static void reap_lingerers(void)
{
	uint64_t cpu_ns;
	int how;

	for (int i = 0; i < LINGERERS; i++) {
		struct lingerer *one = &lingerers[i];

		if (!one->pid || !reaped(one->pid, &how, &cpu_ns))
			continue;
		if (one->charged)
			confine_owner__charge(one->owner, cpu_ns, now_ms());
		one->pid = 0;
	}
}

/* cpu_ns: processor time that the reader used, where *how is known. */
static int name_failure(int received, bool known, int how, uint64_t cpu_ns, unsigned int limit_ms, char *err,
			size_t err_size)
{
	/* the kernel kills at the limit, which it compares with what its clock ticks saw */
	bool spent =
	    known && WIFSIGNALED(how) &&
	    (WTERMSIG(how) == SIGXCPU || (WTERMSIG(how) == SIGKILL && cpu_ns >= CONFINE_CPU_SECONDS * 500000000ULL));

	static const char reader[] = "its confined reader";

	if (received == -ENOMEM) {
		snprintf(err, err_size, "out of memory for its answer");
		return -ENOMEM;
	}
	if (received == -ETIMEDOUT)
		snprintf(err, err_size, "%s gave no answer within %u ms", reader, limit_ms);
	else if (known && WIFSIGNALED(how) && WTERMSIG(how) == SIGSYS)
		snprintf(err, err_size, "%s made a system call that is forbidden to it", reader);
	else if (spent)
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

int confine__broken(const struct confine_query *query, const struct confine_version *files, char *err, size_t err_size)
{
	for (int i = 0; i < BROKEN && query->file_count; i++)
		if (!strcmp(broken[i].service, query->service) && confine_memory__is_same(&broken[i].file, &files[0]) &&
		    now_ms() < broken[i].until_ms) {
			snprintf(err, err_size, "%s; it is not tried again yet", broken[i].reason);
			return -EPROTO;
		}
	return 0;
}

static void note_broken(const struct confine_request *request, const char *reason)
{
	struct broken *oldest = &broken[0];

	for (int i = 1; i < BROKEN; i++)
		if (broken[i].until_ms < oldest->until_ms)
			oldest = &broken[i];
	*oldest = (struct broken){.file = request->versions[0], .until_ms = now_ms() + BROKEN_MS};
	snprintf(oldest->service, sizeof(oldest->service), "%s", request->query->service);
	snprintf(oldest->reason, sizeof(oldest->reason), "%s", reason);
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
		fcntl(ends[0], F_SETFL, O_NONBLOCK);
		request->pipe = ends[0];
	}
	if (ends[1] >= 0)
		close(ends[1]);
	if (about >= 0)
		close(about);
	return status;
}

int confine_request__start(const struct confine_query *query, unsigned int limit_ms, struct confine_request **started,
			   char *err, size_t err_size)
{
	struct confine_request *request = calloc(1, sizeof(*request));
	int status;

	*started = NULL;
	if (!request) {
		snprintf(err, err_size, "out of memory");
		return -ENOMEM;
	}
	*request =
	    (struct confine_request){.query = query, .pipe = -1, .limit_ms = limit_ms, .until_ms = now_ms() + limit_ms};
	status = -ENOSYS;
	snprintf(err, err_size, "this program has no confined reader");
	if (!confine__armed)
		goto out;
	reap_lingerers();
	status = check_files(query, err, err_size);
	request->charged = confine__is_charged(query);
	if (status)
		goto out;
	if (confine_memory__recall(query, request->versions, &request->remembered)) {
		*started = request;
		return 0;
	}
	status = confine__broken(query, request->versions, err, err_size);
	if (!status)
		status = start_reader(request, err, err_size);
out:
	if (status)
		free(request);
	else
		*started = request;
	return status;
}

/* Takes the response of a reader that has ended or is ended here, and names failures. As confine__query(). */
static int finish(struct confine_request *request, int status, struct confine_response *response, char *err,
		  size_t err_size)
{
	bool known;
	int how = 0;

	if (!status)
		status = open_inbox(&request->inbox, response, err, err_size);
	known = end(request, status && status != -EPIPE && status != -EINVAL, &how, &response->cpu_ns);
	close(request->pipe);
	request->pid = 0;
	if (request->charged)
		confine_owner__charge(request->query->owner, response->cpu_ns, now_ms());
	if (!status && known && (!WIFEXITED(how) || WEXITSTATUS(how)))
		status = -EBADMSG;
	if (status && status != -EINVAL)
		status = name_failure(status, known, how, response->cpu_ns, request->limit_ms, err, err_size);
	if (!status)
		confine_memory__keep(request->query, request->versions, response);
	if (status == -EPROTO && request->query->file_count)
		note_broken(request, err);
	if (status) {
		free(response->data);
		response->data = NULL;
		response->size = 0;
	}
	return status;
}

/* Whether the reader has exited, which it soon does after its last byte. */
static bool has_exited(const struct confine_request *request)
{
	siginfo_t ended = {0};

	return !waitid(P_PID, (id_t)request->pid, &ended, WEXITED | WNOHANG | WNOWAIT) && ended.si_pid;
}

/* Whether a reader in the background waits for a file system: others are waiting for their turn. */
static bool is_silent(struct confine_request *request)
{
	return request->background && confine_ahead__is_on() &&
	       confine_watch__look(&request->watch, request->pid, now_ms()) >= SILENT_LOOKS;
}

int confine_request__poll(struct confine_request *request, struct confine_response *response, char *err,
			  size_t err_size)
{
	int status;

	*response = request->remembered;
	request->remembered = (struct confine_response){0};
	if (!request->pid)
		return 0;
	status = request->complete ? 0 : receive_inbox(&request->inbox, request->pipe);
	request->complete |= !status;
	if (status && status != -EAGAIN)
		return finish(request, status, response, err, err_size);
	if (request->complete && has_exited(request))
		return finish(request, 0, response, err, err_size);
	if (now_ms() < request->until_ms && !is_silent(request)) {
		if (now_ms() >= request->idle_until_ms)
			confine_request__end_idle(request);
		return -EAGAIN;
	}
	status = name_failure(-ETIMEDOUT, false, 0, 0, request->limit_ms, err, err_size);
	if (now_ms() < request->until_ms)
		snprintf(err, err_size, "its file system does not answer");
	if (request->query->file_count)
		note_broken(request, err);
	return status;
}

void confine_request__wait(const struct confine_request *request, unsigned int limit_ms)
{
	struct pollfd more = {.fd = request->pipe, .events = POLLIN};

	if (!request->pid)
		return;
	if (request->complete)
		nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
	else
		poll(&more, 1, (int)limit_ms);
}

pid_t confine_request__reader(const struct confine_request *request)
{
	return request->pid;
}

bool confine__is_charged(const struct confine_query *query)
{
	struct stat st;

	for (unsigned int i = 0; i < query->file_count; i++)
		if (!user_file__stat(query->files[i], &st) && st.st_uid)
			return true;
	return query->charged;
}

bool confine__left_behind(uid_t owner)
{
	int count = 0;

	reap_lingerers();
	for (int i = 0; i < LINGERERS; i++) {
		if (lingerers[i].pid && lingerers[i].owned && lingerers[i].owner == owner)
			return true;
		count += lingerers[i].pid != 0;
	}
	return count == LINGERERS;
}

int confine__query(const struct confine_query *query, struct confine_response *response, char *err, size_t err_size)
{
	unsigned int limit_ms = query->limit_ms ? query->limit_ms : LIMIT_MS;
	struct confine_request *request;
	int status;

	*response = (struct confine_response){0};
	if (confine_ahead__is_on())
		return confine_ahead__query(query, response, err, err_size);
	status = confine_request__start(query, limit_ms, &request, err, err_size);
	if (status)
		return status;
	while ((status = confine_request__poll(request, response, err, err_size)) == -EAGAIN) {
		int64_t left_ms = request->until_ms - now_ms();

		confine_request__wait(request, left_ms > 0 ? (unsigned int)left_ms : 0);
	}
	confine_request__free(request);
	return status;
}

int confine_request__begin(const struct confine_query *query, struct confine_request **request, char *err,
			   size_t err_size)
{
	unsigned int limit_ms = query->limit_ms ? query->limit_ms : CONFINE_BACKGROUND_LIMIT_MS;
	const struct sched_param none = {0};
	int status;

	*request = NULL;
	if (confine_ahead__is_held(query->owner)) {
		snprintf(err, err_size, "the file system of another file of its user does not answer");
		return -EPROTO;
	}
	status = confine_request__start(query, limit_ms, request, err, err_size);
	if (!status) {
		(*request)->charged = false;
		(*request)->background = true;
	}
	if (!status && (*request)->pid) {
		setpriority(PRIO_PROCESS, (id_t)(*request)->pid, LEAST_NICE);
		sched_setscheduler((*request)->pid, SCHED_IDLE, &none);
		(*request)->idle_until_ms = now_ms() + (query->idle_ms ? query->idle_ms : CONFINE_IDLE_MS);
	}
	return status;
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

void confine_request__free(struct confine_request *request)
{
	if (!request)
		return;
	if (request->pid) {
		struct lingerer lingerer = lingerer_of(request);

		kill(request->pid, SIGKILL);
		leave_behind(&lingerer);
		close(request->pipe);
	}
	free_inbox(&request->inbox);
	free(request->remembered.data);
	free(request);
}
