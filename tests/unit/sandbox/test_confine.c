// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The confined reader: actions that it may not do, and the end of a reader that breaks. Built twice: with
 * sanitizers as a unit test, without (and so with the limit on memory) for tests/live/confine.t.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "sandbox/confine.h"
#include "sandbox/confine_order.h"

#define CASES "build/test/site_cases.so"

/* ---- requests to readers of this program */

enum deed {
	DEED_ECHO,
	DEED_REFUSE,
	DEED_CRASH,
	DEED_SLEEP,
	DEED_SPIN,
	DEED_EAT,
	DEED_SOCKET,
	DEED_FORK,
	DEED_KILL,
	DEED_EXECUTABLE,
	DEED_STDOUT,
	DEED_OPEN,
	DEED_SILENT,
	DEED_HALF_HEAD,
	DEED_HUGE,
	DEED_MORE,
};

static void say(const void *data, size_t size)
{
	if (write(CONFINE_PIPE, data, size) != (ssize_t)size)
		syscall(SYS_exit_group, 1);
}

static int break_down(enum deed deed)
{
	static volatile uint32_t word;
	volatile int *nowhere = NULL;
	struct confine_head head = {.size = 4};

	switch (deed) {
	case DEED_CRASH:
		*nowhere = 1;
		break;
	case DEED_SLEEP:
		for (;;)
			syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL, NULL, 0);
	case DEED_SPIN:
		for (;;)
			word++;
	case DEED_EAT:
		for (size_t size = 1 << 20;; size *= 2) {
			char *more = malloc(size);

			if (!more)
				return -ENOMEM;
			memset(more, 1, size);
		}
	case DEED_SOCKET:
		return socket(AF_UNIX, SOCK_STREAM, 0);
	case DEED_FORK:
		return fork();
	case DEED_KILL:
		return (int)syscall(SYS_kill, 1, 0);
	case DEED_EXECUTABLE:
		return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != NULL;
	case DEED_STDOUT:
		return (int)syscall(SYS_write, 1, "x", 1);
	case DEED_SILENT:
		syscall(SYS_exit_group, 0);
		break;
	case DEED_HALF_HEAD:
		say(&head, sizeof(head) / 2);
		syscall(SYS_exit_group, 0);
		break;
	case DEED_HUGE:
		head.size = 1ULL << 40;
		say(&head, sizeof(head));
		syscall(SYS_exit_group, 0);
		break;
	case DEED_MORE:
		say(&head, sizeof(head));
		say("12345", 5);
		syscall(SYS_exit_group, 0);
	default:
		break;
	}
	return 0;
}

static int do_deed(struct flat_reader *about, struct confine_file *files, unsigned int file_count,
		   struct flat *response, char *err, size_t err_size)
{
	enum deed deed = (enum deed)flat__get(about);

	if (deed == DEED_REFUSE) {
		snprintf(err, err_size, "refused: \x1b[31m%d", (int)deed);
		return -EINVAL;
	}
	if (deed == DEED_OPEN) {
		flat__put(response, open("/etc/passwd", O_RDONLY | O_CLOEXEC) < 0 ? (uint64_t)errno : 0);
		return 0;
	}
	if (deed != DEED_ECHO)
		return break_down(deed);
	flat__put(response, flat__get(about));
	flat__put(response, file_count ? files[0].size : 0);
	return 0;
}
static const struct confine_service services[] = {
    {"deed", do_deed},
    {0},
};

/* ---- the tests */

static int query(enum deed deed, int file, unsigned int limit_ms, struct confine_response *response, char *err,
		 size_t err_size)
{
	struct flat about = {0};
	struct confine_query query = {
	    .service = "deed", .about = &about, .files = {file}, .file_count = file >= 0, .limit_ms = limit_ms};
	int status;

	flat__put(&about, deed);
	flat__put(&about, 77);
	status = confine__query(&query, response, err, err_size);
	free(about.data);
	return status;
}

static void broken(enum deed deed, unsigned int limit_ms, const char *named)
{
	struct confine_response response;
	char err[256] = "";

	assert_int_equal(query(deed, -1, limit_ms, &response, err, sizeof(err)), -EPROTO);
	assert_null(response.data);
	if (!strstr(err, named))
		fail_msg("deed %d: '%s' does not say '%s'", (int)deed, err, named);
}

static void test_answers(void **state)
{
	struct confine_response response;
	struct flat_reader reader;
	char err[256];
	int file = open(CASES, O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_int_equal(query(DEED_ECHO, file, 0, &response, err, sizeof(err)), 0);
	reader = (struct flat_reader){.at = response.data, .end = response.data + response.size};
	assert_int_equal(flat__get(&reader), 77);
	assert_int_equal(flat__get(&reader), lseek(file, 0, SEEK_END));
	assert_true(flat__done(&reader));
	free(response.data);
	close(file);
	/* a refusal's own words, without control characters */
	assert_int_equal(query(DEED_REFUSE, -1, 0, &response, err, sizeof(err)), -EINVAL);
	assert_string_equal(err, "refused: ?[31m1");
	/* opening is denied, and does not kill: libdw tries */
	assert_int_equal(query(DEED_OPEN, -1, 0, &response, err, sizeof(err)), 0);
	reader = (struct flat_reader){.at = response.data, .end = response.data + response.size};
	assert_int_equal(flat__get(&reader), EACCES);
	free(response.data);
}

static void test_files(void **state)
{
	struct confine_response response;
	char err[256];
	int file = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_int_equal(query(DEED_ECHO, file, 0, &response, err, sizeof(err)), -EFBIG);
	assert_string_equal(err, "not a regular file");
	close(file);
	file = memfd_create("huge", MFD_CLOEXEC);
	assert_int_equal(ftruncate(file, (off_t)CONFINE_FILE_BYTES_MAX + 1), 0);
	assert_int_equal(query(DEED_ECHO, file, 0, &response, err, sizeof(err)), -EFBIG);
	assert_non_null(strstr(err, "out of range"));
	close(file);
}

static void test_broken(void **state)
{
	(void)state;
	broken(DEED_SLEEP, 500, "no answer within 500 ms");
	broken(DEED_SPIN, 500, "no answer within 500 ms");
	broken(DEED_SOCKET, 0, "forbidden");
	broken(DEED_FORK, 0, "forbidden");
	broken(DEED_KILL, 0, "forbidden");
	broken(DEED_EXECUTABLE, 0, "forbidden");
	broken(DEED_STDOUT, 0, "forbidden");
	broken(DEED_SILENT, 0, "makes no sense");
	broken(DEED_HALF_HEAD, 0, "makes no sense");
	broken(DEED_HUGE, 0, "makes no sense");
	broken(DEED_MORE, 0, "makes no sense");
#if defined(__SANITIZE_ADDRESS__) /* its handler of crashes opens files, and its heap has no limit */
	broken(DEED_CRASH, 0, "its confined reader");
#else
	broken(DEED_CRASH, 0, "crashed (signal 11)");
	broken(DEED_EAT, 0, "more memory than it may have");
#endif
}

static void rest(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
}

/* A file that breaks readers does so once a minute at most, and no other file suffers for it. */
static void test_not_tried_again(void **state)
{
	struct confine_response response;
	char err[256] = "";
	int bad = memfd_create("bad", MFD_CLOEXEC), good = memfd_create("good", MFD_CLOEXEC);

	(void)state;
	assert_int_equal(query(DEED_SILENT, bad, 0, &response, err, sizeof(err)), -EPROTO);
	assert_non_null(strstr(err, "makes no sense"));
	assert_int_equal(query(DEED_ECHO, bad, 0, &response, err, sizeof(err)), -EPROTO);
	assert_non_null(strstr(err, "not tried again yet"));
	assert_int_equal(query(DEED_ECHO, good, 0, &response, err, sizeof(err)), 0);
	free(response.data);
	/* nor a file that was repaired; times of change are coarse */
	rest();
	rest();
	assert_int_equal(write(bad, "x", 1), 1);
	assert_int_equal(query(DEED_ECHO, bad, 0, &response, err, sizeof(err)), 0);
	free(response.data);
	close(bad);
	close(good);
}

static void test_not_armed(void **state)
{
	struct confine_response response;
	char err[256];

	(void)state;
	confine__armed = false;
	assert_int_equal(query(DEED_ECHO, -1, 0, &response, err, sizeof(err)), -ENOSYS);
	confine__armed = true;
	assert_int_equal(query(DEED_ECHO, -1, 0, &response, err, sizeof(err)), 0);
	free(response.data);
}

/* Reads a file of /proc/PID; returns false when it is gone. */
static bool look(pid_t pid, const char *name, char *text, size_t size)
{
	char path[64];
	FILE *file;
	size_t length;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	file = fopen(path, "re");
	if (!file)
		return false;
	length = fread(text, 1, size - 1, file);
	text[length] = '\0';
	fclose(file);
	return length > 0;
}

/* The i-th child of a process, 0 where there is none: first the template, then readers. */
static pid_t child_of(pid_t parent, int i)
{
	char name[64], text[256], *at = text;
	pid_t child = 0;

	snprintf(name, sizeof(name), "task/%d/children", parent);
	if (!look(parent, name, text, sizeof(text)))
		return 0;
	for (; i >= 0; i--)
		child = (pid_t)strtol(at, &at, 10);
	return child;
}

/* Starts a client process whose reader sleeps; waits until the reader is confined. */
static pid_t start_asker(pid_t *reader)
{
	char text[4096] = "";
	pid_t asker = fork();

	if (!asker) {
		struct confine_response response;
		char err[256] = "";
		int status = query(DEED_SLEEP, -1, 20000, &response, err, sizeof(err));

		_exit(status == -EPROTO && strstr(err, "crashed (signal 9)") ? 0 : 1);
	}
	assert_true(asker > 0);
	for (int i = 0; i < 1000; i++, rest()) {
		*reader = child_of(asker, 1);
		if (*reader && look(*reader, "status", text, sizeof(text)) && strstr(text, "\nSeccomp:\t2\n"))
			return asker;
	}
	kill(asker, SIGKILL);
	fail_msg("the reader was never confined: %s", text);
	return -1;
}

static void has(const char *text, const char *line)
{
	if (!strstr(text, line))
		fail_msg("'%s' is not in:\n%s", line, text);
}

static void test_confined(void **state)
{
	char status[4096], limits[4096], path[64], oom[64];
	int how, inherited = 0;
	pid_t reader, asker = start_asker(&reader);

	(void)state;
	assert_true(look(reader, "status", status, sizeof(status)));
	assert_true(look(reader, "limits", limits, sizeof(limits)));
	assert_true(look(reader, "oom_score_adj", oom, sizeof(oom)));
	for (int fd = 0; fd < 256; fd++) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", reader, fd);
		inherited += fd > 2 && readlink(path, status + sizeof(status) - 1, 1) > 0 ? fd : 0;
	}
	kill(reader, SIGKILL);
	waitpid(asker, &how, 0);
	assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0); /* the process named the reader's end */
	has(status, "\nNoNewPrivs:\t1\n");
	assert_string_equal(oom, "1000\n");
	has(status, "\nSeccomp:\t2\n");
	has(limits, "Max core file size        0                    0 ");
	has(limits, "Max file size             0                    0 ");
	has(limits, "Max open files            0                    0 ");
	has(limits, "Max cpu time              5                    5 ");
#if !defined(__SANITIZE_ADDRESS__)
	has(limits, "Max address space         402653184            402653184 ");
#endif
	if (geteuid()) /* an unprivileged user stays unprivileged */
		return;
	has(status, "\nUid:\t65534\t65534\t65534\t65534\n");
	has(status, "\nGid:\t65534\t65534\t65534\t65534\n");
	has(status, "\nGroups:\t \n");
	has(status, "\nCapPrm:\t0000000000000000\n");
	has(status, "\nCapEff:\t0000000000000000\n");
	assert_int_equal(inherited, CONFINE_PIPE); /* the only descriptor beside the first three */
}

/* Begins a request in the background. */
static struct confine_request *request(struct confine_query *query, struct flat *about, enum deed deed)
{
	struct confine_request *request;
	char err[256];

	*about = (struct flat){0};
	flat__put(about, deed);
	flat__put(about, 77);
	query->service = "deed";
	query->about = about;
	assert_int_equal(confine_request__begin(query, &request, err, sizeof(err)), 0);
	return request;
}

static int result(struct confine_request *request, struct confine_response *response, char *err, size_t err_size)
{
	int status;

	while ((status = confine_request__poll(request, response, err, err_size)) == -EAGAIN)
		rest();
	return status;
}

static void test_background(void **state)
{
	int file = open(CASES, O_RDONLY | O_CLOEXEC);
	struct confine_query query = {.files = {file}, .file_count = 1};
	struct confine_response response;
	struct flat_reader reader;
	struct flat about;
	char err[256] = "";

	(void)state;
	for (int i = 0; i < 2; i++) { /* the second time it may come from memory */
		struct confine_request *echo = request(&query, &about, DEED_ECHO);

		assert_int_equal(result(echo, &response, err, sizeof(err)), 0);
		reader = (struct flat_reader){.at = response.data, .end = response.data + response.size};
		assert_int_equal(flat__get(&reader), 77);
		assert_int_equal(flat__get(&reader), lseek(file, 0, SEEK_END));
		assert_true(flat__done(&reader));
		free(response.data);
		confine_request__free(echo);
		free(about.data);
	}
	close(file);
}

/* A reader in the background begins with idle time only, has some soon even if there is none, and ends with its
 * request. */
static void test_background_given_up(void **state)
{
	struct confine_query query = {0};
	struct flat about;
	struct confine_request *slow = request(&query, &about, DEED_SLEEP);
	struct confine_response response;
	char err[256], text[4096];
	pid_t reader = child_of(getpid(), 1);

	(void)state;
	assert_true(reader > 0);
	assert_int_equal(sched_getscheduler(reader), SCHED_IDLE);
	while (!geteuid() && sched_getscheduler(reader) == SCHED_IDLE) {
		assert_int_equal(confine_request__poll(slow, &response, err, sizeof(err)), -EAGAIN);
		rest();
	}
	assert_int_equal(sched_getscheduler(reader), geteuid() ? SCHED_IDLE : SCHED_BATCH);
	assert_int_equal(getpriority(PRIO_PROCESS, (id_t)reader), 19);
	confine_request__free(slow);
	free(about.data);
	for (int i = 0; i < 6000; i++, rest())
		if (!look(reader, "status", text, sizeof(text)) || strstr(text, "State:\tZ"))
			return;
	fail_msg("the reader lives on: %s", text);
}

static void test_background_broken(void **state)
{
	static const struct {
		enum deed deed;
		int status;
		const char *named;
	} diagnoses[] = {
	    {DEED_SLEEP, -EPROTO, "no answer within 300 ms"},
	    {DEED_SOCKET, -EPROTO, "forbidden"},
	    {DEED_SILENT, -EPROTO, "makes no sense"},
	    {DEED_REFUSE, -EINVAL, "refused"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(diagnoses) / sizeof(*diagnoses); i++) {
		struct confine_query query = {.limit_ms = diagnoses[i].deed == DEED_SLEEP ? 300 : 0};
		struct confine_response response;
		struct flat about;
		char err[256] = "";
		struct confine_request *broken = request(&query, &about, diagnoses[i].deed);

		assert_int_equal(result(broken, &response, err, sizeof(err)), diagnoses[i].status);
		assert_null(response.data);
		assert_non_null(strstr(err, diagnoses[i].named));
		confine_request__free(broken);
		free(about.data);
	}
}

/* Waits until a process has ended, if only its parent has not noticed. */
static bool ends(pid_t pid, char *text, size_t size)
{
	for (int i = 0; i < 1000; i++, rest())
		if (!look(pid, "status", text, size) || strstr(text, "State:\tZ"))
			return true;
	return false;
}

/* A template that was killed is replaced. */
static void test_template_dies(void **state)
{
	struct confine_response response;
	pid_t template = child_of(getpid(), 0);
	char err[256] = "", text[4096];

	(void)state;
	assert_true(template > 0);
	kill(template, SIGKILL);
	assert_true(ends(template, text, sizeof(text)));
	for (int i = 0; i < 2; i++) { /* the second query reaps what the first one replaced */
		assert_int_equal(query(DEED_ECHO, -1, 0, &response, err, sizeof(err)), 0);
		free(response.data);
	}
	assert_int_not_equal(child_of(getpid(), 0), template);
}

/* A template that does not answer is replaced, and the query answered. */
static void test_template_stops(void **state)
{
	struct confine_response response;
	pid_t template = child_of(getpid(), 0);
	char err[256] = "";

	(void)state;
	assert_true(template > 0);
	kill(template, SIGSTOP);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(query(DEED_ECHO, -1, 0, &response, err, sizeof(err)), 0);
		free(response.data);
	}
	assert_int_not_equal(child_of(getpid(), 0), template);
}

/* kill -9 of the daemon leaves no reader and no template behind. */
static void test_asker_dies(void **state)
{
	char text[4096] = "";
	int how;
	pid_t reader, asker = start_asker(&reader), template = child_of(asker, 0);

	(void)state;
	assert_true(template > 0 && template != reader);
	kill(asker, SIGKILL);
	waitpid(asker, &how, 0);
	if (!ends(reader, text, sizeof(text))) {
		kill(reader, SIGKILL);
		fail_msg("the reader lives on: %s", text);
	}
	if (!ends(template, text, sizeof(text)))
		fail_msg("the template lives on: %s", text);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_answers),
	    cmocka_unit_test(test_files),
	    cmocka_unit_test(test_broken),
	    cmocka_unit_test(test_not_tried_again),
	    cmocka_unit_test(test_not_armed),
	    cmocka_unit_test(test_confined),
	    cmocka_unit_test(test_asker_dies),
	    cmocka_unit_test(test_template_dies),
	    cmocka_unit_test(test_template_stops),
	    cmocka_unit_test(test_background),
	    cmocka_unit_test(test_background_given_up),
	    cmocka_unit_test(test_background_broken),
	};

	confine__main(argc, argv, services);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
