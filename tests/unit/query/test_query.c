// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `vapro diagnose` without the analysis: messages over the socket, ownership of the socket, clients that
 * hang or send nonsense, and the sentences that say why there is no response.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "query/protocol.h"
#include "query/server.h"
#include "query/socket.h"
#include "report/response.h"
#include "sim.h"

#define SECOND 1000000000ULL

static const char request_text[] = "vapro/1 diagnose\nregion 0-3,7@1.5..4\njob slurm:1.0 x\nformat json\nwidth 120\n\n";

/* ---- sockets: as root only */

static char directory[64];

static int make_directory(void **state)
{
	(void)state;
	strcpy(directory, "/tmp/vapro-query.XXXXXX");
	return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", directory);
	return system(command);
}

static void needs_root(void)
{
	if (geteuid())
		skip();
}

static const char *in(const char *name)
{
	static char path[4][128];
	static int at;

	at = (at + 1) % 4;
	snprintf(path[at], sizeof(path[at]), "%s/%s", directory, name);
	return path[at];
}

static bool exists(const char *path)
{
	struct stat status;

	return !lstat(path, &status);
}

static void test_sockets(void **state)
{
	char path[QUERY_PATH_MAX], other[QUERY_PATH_MAX], found[4][QUERY_PATH_MAX], err[512], name[160];
	struct stat status;
	int fd, second, client;

	(void)state;
	needs_root();
	/* the server makes a directory to which it alone may write */
	snprintf(name, sizeof(name), "%s/", in("run/vapro"));
	fd = query_socket__listen(name, path, err, sizeof(err));
	if (fd < 0)
		fail_msg("%s", err);
	assert_false(stat(in("run/vapro"), &status));
	assert_int_equal(status.st_mode & 0777, 0755);
	assert_false(stat(path, &status));
	assert_int_equal(status.st_mode & 0777, 0600);
	snprintf(other, sizeof(other), "%svaprod.%d", name, (int)getpid());
	assert_string_equal(path, other);
	assert_int_equal(query_socket__find(name, false, found, 4), 1);
	assert_string_equal(found[0], path);
	/* no other server takes the socket of a live one, which goes on */
	assert_int_equal(query_socket__listen(path, other, err, sizeof(err)), -EADDRINUSE);
	assert_non_null(strstr(err, "another vaprod"));
	client = query_socket__connect(path);
	assert_true(client >= 0);
	close(client);
	/* other servers' sockets stay; sockets left over are removed, other files are not */
	second = query_socket__listen(in("run/vapro/vaprod.1"), other, err, sizeof(err));
	assert_true(second >= 0);
	assert_int_equal(query_socket__find(name, false, found, 1), 2);
	close(second);
	assert_true(exists(other));
	assert_int_equal(query_socket__connect(other), -ECONNREFUSED);
	assert_int_equal(query_socket__find(name, false, found, 4), 1);
	close(open(in("run/vapro/vaprod.note"), O_CREAT | O_WRONLY, 0600));
	close(fd);
	fd = query_socket__listen(name, path, err, sizeof(err));
	assert_true(fd >= 0);
	assert_false(exists(other));
	assert_true(exists(in("run/vapro/vaprod.note")));
	/* a left-over socket of the same name */
	close(fd);
	second = query_socket__listen(path, other, err, sizeof(err));
	assert_true(second >= 0);
	close(second);
	assert_int_equal(query_socket__find(in("nowhere"), false, found, 4), -ENOENT);
	assert_int_equal(query_socket__connect(in("nowhere")), -ENOENT);
}

static void test_bad_sockets(void **state)
{
	char path[QUERY_PATH_MAX], err[512], name[256];
	struct stat status;
	int fd, second;

	(void)state;
	needs_root();
	assert_int_equal(query_socket__listen("here", path, err, sizeof(err)), -EINVAL);
	assert_int_equal(query_socket__listen("here/", path, err, sizeof(err)), -EINVAL);
	memset(name, 'a', sizeof(name));
	name[0] = '/';
	name[sizeof(name) - 1] = 0;
	assert_int_equal(query_socket__listen(name, path, err, sizeof(err)), -ENAMETOOLONG);
	/* a user who can write there could replace the socket */
	assert_false(mkdir(in("open"), 0700) || chmod(in("open"), 0777));
	assert_int_equal(query_socket__listen(in("open/socket"), path, err, sizeof(err)), -EPERM);
	assert_non_null(strstr(err, "0777"));
	snprintf(name, sizeof(name), "%s/", in("open"));
	assert_int_equal(query_socket__listen(name, path, err, sizeof(err)), -EPERM);
	assert_false(chmod(in("open"), 0755));
	fd = query_socket__listen(in("open/socket"), path, err, sizeof(err));
	assert_true(fd >= 0);
	close(fd);
	/* only sockets are removed, no other files */
	close(open(in("open/file"), O_CREAT | O_WRONLY, 0600));
	assert_int_equal(query_socket__listen(in("open/file"), path, err, sizeof(err)), -EEXIST);
	assert_true(exists(in("open/file")));
	/* another process holds the lock: the server gives up and does not wait */
	fd = open(in("open"), O_RDONLY);
	assert_false(flock(fd, LOCK_EX));
	assert_true(query_socket__listen(in("open/socket"), path, err, sizeof(err)) < 0);
	/* in a directory of vaprods' own, where any user may lock the directory, that does not matter */
	second = query_socket__listen(name, path, err, sizeof(err));
	assert_true(second >= 0);
	assert_false(stat(in("open/.lock"), &status));
	assert_int_equal(status.st_mode & 0777, 0600);
	close(second);
	close(fd);
}

/* ---- the server */

static int answered; /* set in the copy alone */

static int response(void *ctx, const struct query_request *request, FILE *out, char *note, enum query_error *error)
{
	int *spoilt = ctx;

	++*spoilt;
	answered = 1;
	if (!strcmp(request->job, "slow")) {
		close(open(in("started"), O_CREAT | O_WRONLY, 0600));
		sleep(30);
	}
	if (!strcmp(request->job, "open")) {
		for (int fd = 0; fd < 1024; fd++)
			fprintf(out, "%s", fcntl(fd, F_GETFD) >= 0 ? fd > 3 ? "more " : fd == 3 ? "client" : "" : "");
		return 0;
	}
	if (!strcmp(request->job, "none")) {
		*error = QUERY_FAILED;
		snprintf(note, QUERY_SENTENCE_MAX, "there is none");
		return -1;
	}
	if (!strcmp(request->job, "large")) {
		for (int i = 0; i < 300000; i++)
			fputs("0123456789", out);
		return 0;
	}
	snprintf(note, QUERY_SENTENCE_MAX, "of %s", request->region_text);
	fprintf(out, "spoilt %d, width %u\n", *spoilt, request->width);
	return 0;
}

static int query(const struct query_server *server, const char *job)
{
	struct query_request request = {.width = 77};
	char text[QUERY_REQUEST_MAX];
	int fd = query_socket__connect(query_server__path(server)), length;

	assert_true(fd >= 0);
	strcpy(request.region_text, "0@1..2");
	snprintf(request.job, sizeof(request.job), "%s", job);
	length = query_request__format(&request, text, sizeof(text));
	assert_int_equal(send(fd, text, (size_t)length, MSG_NOSIGNAL), length);
	return fd;
}

/* Runs the loop until the client has the whole response. */
static size_t take(struct query_server *server, int fd, uint64_t now_ns, char *text, size_t size)
{
	size_t used = 0;

	for (int i = 0; i < 3000; i++) {
		ssize_t got;

		query_server__step(server, now_ns);
		while ((got = recv(fd, text + used, size - used - 1, 0)) > 0)
			used += (size_t)got;
		text[used] = 0;
		if (!got)
			return used;
		usleep(10000);
	}
	fail_msg("no answer within 30 s: '%.100s'", text);
	return 0;
}

static void test_server(void **state)
{
	struct query_server *server;
	char err[512], text[4096], *large;
	int spoilt = 0, fd, silent, others[3];
	uint64_t now = SECOND;

	(void)state;
	needs_root();
	server = query_server__open(in("server/socket"), response, &spoilt, err, sizeof(err));
	if (!server)
		fail_msg("%s", err);
	query_server__step(server, now);
	/* the copy's activity has no effect here */
	for (int i = 0; i < 2; i++) {
		fd = query(server, "");
		take(server, fd, now, text, sizeof(text));
		assert_string_equal(text, "note of 0@1..2\nok 19\nspoilt 1, width 77\n");
		close(fd);
	}
	assert_true(!spoilt && !answered);
	fd = query(server, "none");
	take(server, fd, now, text, sizeof(text));
	assert_string_equal(text, "error failed there is none\n");
	close(fd);
	large = malloc(4000000);
	assert_non_null(large);
	fd = query(server, "large");
	assert_int_equal(take(server, fd, now, large, 4000000), strlen("ok 3000000\n") + 3000000);
	close(fd);
	free(large);
	/* a client that sends nonsense gets an error at once */
	fd = query_socket__connect(query_server__path(server));
	assert_int_equal(send(fd, "hello\n", 6, MSG_NOSIGNAL), 6);
	take(server, fd, now, text, sizeof(text));
	assert_non_null(strstr(text, "error usage"));
	close(fd);
	/* a silent client is dropped, and delays no other client */
	silent = query_socket__connect(query_server__path(server));
	assert_int_equal(send(silent, request_text, 20, MSG_NOSIGNAL), 20);
	query_server__step(server, now);
	fd = query(server, "");
	take(server, fd, now, text, sizeof(text));
	assert_non_null(strstr(text, "ok 19"));
	close(fd);
	assert_int_equal(recv(silent, text, sizeof(text), 0), -1);
	assert_int_equal(errno, EAGAIN);
	query_server__step(server, now + 3 * SECOND);
	take(server, silent, now + 3 * SECOND, text, sizeof(text));
	assert_string_equal(text, "error failed no request came\n");
	close(silent);
	/* a client that leaves without a response does no harm */
	close(query(server, ""));
	query_server__step(server, now);
	/* two clients may keep the server busy; the third gets that message in the end */
	for (int i = 0; i < 3; i++) {
		others[i] = query(server, "slow");
		query_server__step(server, now);
	}
	take(server, others[2], now + 30 * SECOND, text, sizeof(text));
	assert_string_equal(text, "error failed other requests are at work; try again\n");
	fd = open(query_server__path(server), O_PATH);
	assert_true(fd >= 0);
	close(fd);
	strcpy(text, query_server__path(server));
	query_server__close(server); /* ends the copies, too */
	assert_false(exists(text));
	for (int i = 0; i < 3; i++)
		close(others[i]);
	query_server__close(NULL);
}

/* A copy holds nothing of the daemon's, and does not outlive it. */
static void test_copy(void **state)
{
	static const char slow[] = "vapro/1 diagnose\nregion all@..\njob slow\n\n";
	struct query_server *server;
	char err[512], text[256], path[128];
	int spoilt = 0, fd, held = open("/dev/null", O_RDONLY);
	pid_t daemon;

	(void)state;
	needs_root();
	server = query_server__open(in("copy/socket"), response, &spoilt, err, sizeof(err));
	assert_non_null(server);
	assert_true(held >= 0);
	fd = query(server, "open");
	take(server, fd, SECOND, text, sizeof(text));
	assert_string_equal(text, "ok 6\nclient");
	close(fd);
	close(held);
	query_server__close(server);
	strcpy(path, in("killed/socket"));
	daemon = fork();
	if (!daemon) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* in case the test fails */
		server = query_server__open(path, response, &spoilt, err, sizeof(err));
		while (server) {
			query_server__step(server, SECOND);
			usleep(10000);
		}
		_exit(1);
	}
	for (fd = -1; fd < 0; usleep(10000))
		fd = query_socket__connect(path);
	assert_int_equal(send(fd, slow, strlen(slow), MSG_NOSIGNAL), strlen(slow));
	while (!exists(in("started")))
		usleep(10000);
	assert_int_equal(recv(fd, text, sizeof(text), 0), -1);
	assert_false(kill(daemon, SIGKILL));
	assert_int_equal(waitpid(daemon, NULL, 0), daemon);
	/* both had the other end; the kernel ends the copy, long before its 30 s */
	fcntl(fd, F_SETFL, 0);
	assert_int_equal(recv(fd, text, sizeof(text), 0), 0);
	close(fd);
}

/* More clients than the server holds at once, all silent. */
static void test_many_clients(void **state)
{
	struct query_server *server;
	int spoilt = 0, clients[12], fd = -1;
	char err[512], text[4096];

	(void)state;
	needs_root();
	server = query_server__open(in("clients/socket"), response, &spoilt, err, sizeof(err));
	assert_non_null(server);
	for (int i = 0; i < 12; i++) {
		clients[i] = query_socket__connect(query_server__path(server));
		assert_true(clients[i] >= 0);
		query_server__step(server, SECOND);
	}
	fd = query(server, "");
	for (int i = 0; i < 3; i++)
		query_server__step(server, (uint64_t)(5 + 5 * i) * SECOND);
	take(server, fd, 20 * SECOND, text, sizeof(text));
	assert_non_null(strstr(text, "ok 19"));
	close(fd);
	for (int i = 0; i < 12; i++)
		close(clients[i]);
	query_server__close(server);
}

static void test_refused_user(void **state)
{
	struct query_server *server;
	char err[512], text[256] = "";
	int spoilt = 0, status;
	pid_t pid;

	(void)state;
	needs_root();
	server = query_server__open(in("users/socket"), response, &spoilt, err, sizeof(err));
	assert_non_null(server);
	/* as if the modes of file and directory were lost */
	assert_false(chmod(query_server__path(server), 0666) || chmod(in("users"), 0755) || chmod(directory, 0755));
	pid = fork();
	if (!pid) {
		int fd = -1;

		if (setgid(65534) || setuid(65534))
			_exit(1);
		fd = query_socket__connect(query_server__path(server));
		if (fd < 0)
			_exit(2);
		for (int i = 0; i < 1000 && recv(fd, text, sizeof(text) - 1, 0) < 0; i++)
			usleep(10000);
		_exit(strcmp(text, "error refused only root may query\n") ? 3 : 0);
	}
	for (int i = 0; i < 1000 && !waitpid(pid, &status, WNOHANG); i++) {
		query_server__step(server, SECOND);
		usleep(10000);
	}
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	query_server__close(server);
}

/* ---- sentences without a response */

static void test_reasons(void **state)
{
	static const int32_t ranks[] = {0, 1, 2, 3}, wanted[][2] = {{2, 9}}, others[][2] = {{7, 9}};
	const uint64_t start = SIM_BEGIN_NS;
	struct result_variance region = {.class = VAPRO_COMPUTATION};
	struct result_uncovered why_not = {.share = 0.75, .reason = VAPRO_FEW_FRAGMENTS};
	struct job_result jobs[] = {
	    {.job = "a",
	     .begin_ns = start + 40 * SECOND,
	     .end_ns = start + 60 * SECOND,
	     .ranks = ranks,
	     .rank_count = 4},
	    {.job = "b",
	     .begin_ns = start + 50 * SECOND,
	     .end_ns = start + 60 * SECOND,
	     .ranks = ranks,
	     .rank_count = 1},
	};
	struct response response = {.jobs = jobs, .job_count = 2};
	struct query query = {.selection = {.begin_ns = start, .ranks = wanted, .range_count = 1},
			      .job = "a",
			      .now_ns = start + 60 * SECOND,
			      .start_ns = start};
	struct response nothing = {0};
	char why[QUERY_SENTENCE_MAX];

	(void)state;
	assert_false(response__check(&nothing, &query, why, sizeof(why)));
	assert_non_null(strstr(why, "no data of any job"));
	query.selection.end_ns = start + 40 * SECOND;
	assert_false(response__check(&response, &query, why, sizeof(why)));
	assert_string_equal(why, "that region is over and dropped; available: ranks 0-3 of job a, 2023-11-14 "
				 "22:14:00.0 UTC (40.0 s) to 2023-11-14 22:14:20.0 UTC (60.0 s)");
	query.selection.begin_ns = start + 60 * SECOND;
	query.selection.end_ns = 0;
	assert_false(response__check(&response, &query, why, sizeof(why)));
	assert_non_null(
	    strstr(why, "in the future; available: ranks 0-3 of job a, 2023-11-14 22:14:00.0 UTC (40.0 s) to"));
	query.selection.begin_ns = start + 45 * SECOND;
	query.selection.ranks = others;
	assert_false(response__check(&response, &query, why, sizeof(why)));
	assert_non_null(strstr(why, "no such ranks; available: ranks "));
	/* a replay asks about the whole input, of which the last window is only a part; times count from its begin */
	assert_false(response__chosen(
	    jobs, 2, &(struct vapro_selection){.ranks = others, .range_count = 1, .relative = true, .end_ns = SECOND},
	    start, why, sizeof(why)));
	assert_string_equal(
	    why, "no such ranks; available: ranks 0-3 of job a, 2023-11-14 22:13:20.0 UTC (0.0 s) to "
		 "2023-11-14 22:14:20.0 UTC (60.0 s); ranks 0 of job b, 2023-11-14 22:13:20.0 UTC (0.0 s) to "
		 "2023-11-14 22:14:20.0 UTC (60.0 s)");
	query.selection.ranks = wanted;
	assert_false(response__check(&response, &query, why, sizeof(why)));
	assert_non_null(strstr(why, "no data of that region"));
	jobs[0].fragments = 10;
	jobs[0].uncovered = &why_not;
	jobs[0].uncovered_count = 1;
	assert_false(response__check(&response, &query, why, sizeof(why)));
	assert_string_equal(why, "nothing there could be judged: 75 % seen too few times to know its usual speed");
	query.job = "c\n";
	assert_false(response__check(&response, &query, why, sizeof(why)));
	assert_string_equal(why, "there is no data of a job 'c?', only of a, b");
	query.job = NULL;
	jobs[0].selections = &region;
	jobs[0].selection_count = 1;
	assert_true(response__check(&response, &query, why, sizeof(why)));
	assert_string_equal(why, "");
	query.selection.begin_ns = start + 35 * SECOND;
	query.selection.end_ns = start + 99 * SECOND;
	assert_true(response__check(&response, &query, why, sizeof(why)));
	assert_string_equal(why, "the data of job a begins at 2023-11-14 22:14:00.0 UTC (40.0 s); the "
				 "region has not ended yet");
	/* the query is for all retained data, which is there */
	query.selection.begin_ns = start;
	query.selection.end_ns = 0;
	assert_true(response__check(&response, &query, why, sizeof(why)));
	assert_string_equal(why, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_sockets, make_directory, remove_directory),
	    cmocka_unit_test_setup_teardown(test_bad_sockets, make_directory, remove_directory),
	    cmocka_unit_test_setup_teardown(test_server, make_directory, remove_directory),
	    cmocka_unit_test_setup_teardown(test_copy, make_directory, remove_directory),
	    cmocka_unit_test_setup_teardown(test_many_clients, make_directory, remove_directory),
	    cmocka_unit_test_setup_teardown(test_refused_user, make_directory, remove_directory),
	    cmocka_unit_test(test_reasons),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
