// SPDX-License-Identifier: GPL-2.0-or-later
/* The status socket without a daemon: requests, snapshots, users, and clients that mean harm. */
#include <errno.h>
#include <grp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "query/socket.h"
#include "query/status.h"
#include "query/status_server.h"
#include "top/feeds.h"

#define SECOND 1000000000ULL
#define NOBODY 65534

static const char once[] = "vapro/1 status\ninterval_ms 0\n\n", each[] = "vapro/1 status\ninterval_ms 1000\n\n";
static const char whole[] = "vapro/1 report\n\n";
static const char region[] = "vapro/1 diagnose\nregion all@1..2\njob slurm:1\n\n";

static void test_request(void **state)
{
	static const char *const wrong[] = {"hello\n",
					    "vapro/1 dance\n",
					    "vapro/1 diagnose\nregion all@..\nregion all@..\n\n",
					    "vapro/1 report\n\nmore",
					    "vapro/1 report\nmore\n\n",
					    "vapro/1 reports\n\n",
					    "vapro/1 status\ninterval_ms 1\n\n",
					    "vapro/1 status\ninterval_ms -1\n\n",
					    "vapro/1 status\ninterval_ms 99999999999999999999\n\n",
					    "vapro/1 status\ninterval_ms 3600001\n\n",
					    "vapro/1 status\ninterval_ms \n\n",
					    "vapro/1 status\ninterval_ms 1000 \n\n",
					    "vapro/1 status\n\n",
					    "vapro/1 status\ninterval_ms 1000\nmore\n\n",
					    "vapro/1 status\ninterval_ms 1000\n\nmore"};
	char text[STATUS_REQUEST_MAX + 1], err[256];
	struct status_request request = {.interval_ms = 7};
	int length;

	(void)state;
	length = status_request__format(&(struct status_request){.interval_ms = 1000}, text, sizeof(text));
	assert_string_equal(text, each);
	for (int size = 0; size < length; size++)
		assert_int_equal(status_request__parse(text, (size_t)size, &request, err, sizeof(err)), -EAGAIN);
	assert_int_equal(status_request__parse(text, (size_t)length, &request, err, sizeof(err)), 0);
	assert_int_equal(request.interval_ms, 1000);
	assert_int_equal(status_request__format(&(struct status_request){.interval_ms = 1000}, text, 10), -EINVAL);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		*err = 0;
		if (status_request__parse(wrong[i], strlen(wrong[i]), &request, err, sizeof(err)) != -EINVAL)
			fail_msg("'%s' is taken", wrong[i]);
		assert_true(*err);
	}
	length = status_request__format(&(struct status_request){.report = true}, text, sizeof(text));
	assert_string_equal(text, whole);
	for (int size = 0; size < length; size++)
		assert_int_equal(status_request__parse(text, (size_t)size, &request, err, sizeof(err)), -EAGAIN);
	assert_int_equal(status_request__parse(text, (size_t)length, &request, err, sizeof(err)), 0);
	assert_true(request.report);
	length = (int)strlen(region);
	for (int size = 0; size < length; size++)
		assert_int_equal(status_request__parse(region, (size_t)size, &request, err, sizeof(err)), -EAGAIN);
	assert_int_equal(status_request__parse(region, (size_t)length, &request, err, sizeof(err)), 0);
	assert_true(request.diagnose && !request.report);
	assert_string_equal(request.query.job, "slurm:1");
	/* a line without an end */
	memset(text, '1', sizeof(text));
	memcpy(text, each, strlen(each) - 6);
	assert_int_equal(status_request__parse(text, STATUS_REQUEST_MAX, &request, err, sizeof(err)), -EINVAL);
}

/* ---- the server: as root only */

static char directory[64], path[128];
static size_t body_size; /* of snapshots, at least */
static unsigned answers;

static int set_up(void **state)
{
	(void)state;
	strcpy(directory, "/tmp/vapro-status.XXXXXX");
	if (!mkdtemp(directory) || chmod(directory, 0755))
		return -1;
	snprintf(path, sizeof(path), "%s/socket", directory);
	body_size = answers = 0;
	return 0;
}

static int remove_directory(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", directory);
	return system(command);
}

static int answer(void *ctx, uid_t uid, FILE *out)
{
	static const char block[1024] = {'x'};
	int *broken = ctx;

	answers++;
	fprintf(out, "user %u\n", uid);
	for (size_t i = 0; i < body_size; i += sizeof(block))
		fwrite(block, 1, sizeof(block), out);
	return broken ? *broken : 0;
}

/* Runs in a copy: what it does to the process does not reach the server. */
static int report(void *ctx, uid_t uid, FILE *out)
{
	answers += 100;
	return answer(ctx, uid, out);
}

/* Runs in a copy, too. */
static int diagnose(void *ctx, uid_t uid, const struct query_request *request, FILE *out, char *note,
		    enum query_error *error)
{
	(void)ctx;
	(void)error;
	strcpy(note, "of your jobs");
	fprintf(out, "user %u, region %s, job %s\n", uid, request->region_text, request->job);
	return 0;
}

static struct status_server *start(int *broken)
{
	struct status_server *server;
	char err[512];

	if (geteuid())
		skip();
	server =
	    status_server__open(path, &(struct status_answers){answer, report, diagnose, broken}, err, sizeof(err));
	if (!server)
		fail_msg("%s", err);
	return server;
}

static int client(const char *request)
{
	char name[QUERY_PATH_MAX];
	int fd;

	assert_false(query_socket__status_path(path, name));
	fd = query_socket__connect(name);
	assert_true(fd >= 0);
	if (request)
		assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
	return fd;
}

/* Reads what has come. Returns the bytes, and in *ended whether the server has closed. */
static size_t take(int fd, char *text, size_t size, bool *ended)
{
	size_t used = 0;
	ssize_t got;

	while ((got = recv(fd, text + used, size - used - 1, MSG_DONTWAIT)) > 0)
		used += (size_t)got;
	text[used] = 0;
	*ended = got == 0 || (got < 0 && errno != EAGAIN);
	return used;
}

static void test_snapshots(void **state)
{
	struct status_server *server = start(NULL);
	struct stat status;
	char text[4096];
	int fd;
	bool ended;

	(void)state;
	assert_false(stat(status_server__path(server), &status));
	assert_int_equal(status.st_mode & 0777, 0666);
	/* one snapshot, and the end */
	fd = client(once);
	status_server__step(server, SECOND);
	take(fd, text, sizeof(text), &ended);
	assert_string_equal(text, "ok 7\nuser 0\n");
	assert_true(ended);
	close(fd);
	/* a part of a request at first; then snapshots, by time and not by steps */
	fd = client("vapro/1 sta");
	status_server__step(server, 2 * SECOND);
	assert_int_equal(send(fd, each + 11, strlen(each) - 11, MSG_NOSIGNAL), strlen(each) - 11);
	for (int i = 0; i < 10; i++)
		status_server__step(server, 3 * SECOND + (uint64_t)i * 50000000);
	take(fd, text, sizeof(text), &ended);
	assert_string_equal(text, "ok 7\nuser 0\n");
	assert_false(ended);
	status_server__step(server, 4 * SECOND);
	assert_int_equal(take(fd, text, sizeof(text), &ended), 12);
	/* more than the request ends it */
	assert_int_equal(send(fd, "more", 4, MSG_NOSIGNAL), 4);
	status_server__step(server, 4 * SECOND);
	take(fd, text, sizeof(text), &ended);
	assert_non_null(strstr(text, "error usage"));
	assert_true(ended);
	close(fd);
	strcpy(text, status_server__path(server));
	status_server__close(server);
	assert_true(stat(text, &status));
	status_server__close(NULL);
}

static void test_no_snapshot(void **state)
{
	int broken = -1, fd;
	struct status_server *server = start(&broken);
	char text[4096];
	bool ended;

	(void)state;
	fd = client(each);
	status_server__step(server, SECOND);
	take(fd, text, sizeof(text), &ended);
	assert_non_null(strstr(text, "error failed"));
	assert_true(ended);
	close(fd);
	status_server__close(server);
}

/* A client that does not read gets one snapshot's buffer, no more, and is dropped; others go on. */
static void test_deaf(void **state)
{
	struct status_server *server = start(NULL);
	uint64_t now = SECOND;
	int deaf, fd;
	char text[4096];
	bool ended;

	(void)state;
	body_size = 1 << 20;
	deaf = client(each);
	for (int i = 0; i < 4; i++, now += SECOND)
		status_server__step(server, now);
	assert_int_equal(answers, 1);
	body_size = 0;
	fd = client(once);
	for (int i = 0; i < 20 && answers == 1; i++)
		status_server__step(server, now += SECOND / 10);
	assert_int_equal(take(fd, text, sizeof(text), &ended), 12);
	close(fd);
	status_server__step(server, now + 6 * SECOND);
	for (ended = false; !ended;)
		if (!take(deaf, text, sizeof(text), &ended) && !ended)
			fail_msg("it is not dropped");
	close(deaf);
	status_server__close(server);
}

static void test_nonsense(void **state)
{
	struct status_server *server = start(NULL);
	char text[4096], large[STATUS_REQUEST_MAX + 100];
	int fd, silent;
	bool ended;

	(void)state;
	memset(large, 'a', sizeof(large) - 1);
	large[sizeof(large) - 1] = 0;
	fd = client(large);
	status_server__step(server, SECOND);
	take(fd, text, sizeof(text), &ended);
	assert_true(ended && strstr(text, "error usage"));
	close(fd);
	/* silence */
	silent = client("vapro/1");
	status_server__step(server, SECOND);
	status_server__step(server, 4 * SECOND);
	take(silent, text, sizeof(text), &ended);
	assert_true(ended);
	assert_string_equal(text, "error failed no request came\n");
	close(silent);
	/* those who leave at once take no place */
	for (uint64_t i = 0; i < 3 * STATUS_CLIENTS; i++) {
		close(client(each));
		status_server__step(server, (5 + i) * SECOND);
	}
	fd = client(once);
	status_server__step(server, 200 * SECOND);
	assert_int_equal(take(fd, text, sizeof(text), &ended), 12);
	close(fd);
	status_server__close(server);
}

/* Runs a function as another user, in a process of its own, while the server steps. Returns its exit code. */
static int as_nobody(struct status_server *server, uint64_t now, int (*run)(void))
{
	pid_t pid = fork();
	int status = 0;

	if (!pid) {
		if (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY))
			_exit(100);
		_exit(run());
	}
	assert_true(pid > 0);
	while (!waitpid(pid, &status, WNOHANG)) {
		status_server__step(server, now += 10000000);
		usleep(2000);
	}
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Reads to the end as another user. Returns whether the text is as expected. */
static bool says(int fd, const char *expected)
{
	char text[4096];
	size_t used = 0;
	bool ended = false;

	for (int i = 0; i < 5000 && !ended; i++) {
		used += take(fd, text + used, sizeof(text) - used, &ended);
		usleep(1000);
	}
	return ended && strstr(text, expected);
}

static int as_user(void)
{
	return says(client(once), "ok 11\nuser 65534\n") ? 0 : 1;
}

/* More connections than a user may have; all but the first are refused. */
static int as_many(void)
{
	int fds[STATUS_PER_USER], more;

	for (int i = 0; i < STATUS_PER_USER; i++)
		fds[i] = client(each);
	more = client(each);
	if (!says(more, "error refused you have too many connections already"))
		return 1;
	for (int i = 0; i < STATUS_PER_USER; i++)
		close(fds[i]);
	return 0;
}

static void test_users(void **state)
{
	struct status_server *server = start(NULL);
	int fds[STATUS_CLIENTS], fd;
	char text[4096];
	bool ended;

	(void)state;
	/* the peer's user decides what it gets */
	assert_int_equal(as_nobody(server, SECOND, as_user), 0);
	assert_int_equal(as_nobody(server, 100 * SECOND, as_many), 0);
	/* users do not take the places of root */
	for (int i = 0; i < STATUS_CLIENTS - STATUS_USER_CLIENTS; i++)
		fds[i] = client(each);
	fd = client(once);
	for (int i = 0; i < 20; i++)
		status_server__step(server, (200 + (uint64_t)i) * SECOND);
	assert_int_equal(take(fd, text, sizeof(text), &ended), 12);
	close(fd);
	for (int i = 0; i < STATUS_CLIENTS - STATUS_USER_CLIENTS; i++)
		close(fds[i]);
	status_server__close(server);
}

#define FLOOD (STATUS_ACCEPTS_PER_S + 8)

/* In one second so many connections are accepted, and no more; the rest waits. */
static void test_flood(void **state)
{
	struct status_server *server = start(NULL);
	static int fds[FLOOD];
	char text[4096];
	int served = 0;
	bool ended;

	(void)state;
	status_server__step(server, SECOND);
	for (int round = 0; round < FLOOD / 2; round++) {
		for (int i = 0; i < 2; i++)
			fds[2 * round + i] = client("nonsense\n");
		status_server__step(server, SECOND + (uint64_t)round * 1000000);
	}
	for (int i = 0; i < FLOOD; i++)
		served += take(fds[i], text, sizeof(text), &ended) > 0;
	assert_int_equal(served, STATUS_ACCEPTS_PER_S);
	for (int i = 0; i < 4; i++)
		status_server__step(server, (3 + (uint64_t)i) * SECOND);
	for (int i = 0; i < FLOOD; i++) {
		served += take(fds[i], text, sizeof(text), &ended) > 0;
		close(fds[i]);
	}
	assert_int_equal(served, FLOOD);
	status_server__close(server);
}

static int as_reporter(void)
{
	return says(client(whole), "ok 11\nuser 65534\n") ? 0 : 1;
}

/* Reports that a user does not read: one is made, the others wait for it and are refused in the end. */
static int as_deaf_reporter(void)
{
	int fds[STATUS_PER_USER];

	for (int i = 0; i < STATUS_PER_USER; i++)
		fds[i] = client(whole);
	for (int i = 1; i < STATUS_PER_USER; i++) {
		if (!says(fds[i], "error failed other requests are at work; try again"))
			return 1;
	}
	for (int i = 0; i < STATUS_PER_USER; i++)
		close(fds[i]);
	return 0;
}

/* A copy makes a report, for the user who connected; a user who does not read it has no second copy. */
static void test_reports(void **state)
{
	int broken = -1;
	struct status_server *server = start(NULL);
	uint64_t now = SECOND;
	char text[4096];
	size_t used = 0;
	int fd = client(whole);
	bool ended = false;

	(void)state;
	while (!ended) {
		status_server__step(server, now += 10000000);
		used += take(fd, text + used, sizeof(text) - used, &ended);
	}
	assert_string_equal(text, "ok 7\nuser 0\n");
	assert_int_equal(answers, 0); /* in the server */
	close(fd);
	assert_int_equal(as_nobody(server, 100 * SECOND, as_reporter), 0);
	body_size = 8 << 20;
	assert_int_equal(as_nobody(server, 200 * SECOND, as_deaf_reporter), 0);
	/* what does not fit into the socket is the copy's to send; snapshots go on, and the end ends the copy */
	body_size = 0;
	fd = client(once);
	for (int i = 0; i < 20; i++)
		status_server__step(server, (2000 + (uint64_t)i) * SECOND);
	assert_int_equal(take(fd, text, sizeof(text), &ended), 12);
	close(fd);
	status_server__close(server);
	server = start(&broken);
	fd = client(whole);
	for (ended = false, used = 0; !ended;) {
		status_server__step(server, now += 10000000);
		used += take(fd, text + used, sizeof(text) - used, &ended);
	}
	assert_string_equal(text, "error failed memory is short\n");
	close(fd);
	status_server__close(server);
}

static int as_owner(void)
{
	return says(client(region), "user 65534, region all@1..2, job slurm:1\n") ? 0 : 1;
}

/* A user's query is answered about that user, by a copy, beside snapshots. */
static void test_diagnoses(void **state)
{
	struct status_server *server = start(NULL);

	(void)state;
	assert_int_equal(as_nobody(server, SECOND, as_owner), 0);
	assert_int_equal(answers, 0);
	status_server__close(server);
}

/* ---- the other side: finds, reads, and finds again */

static void test_feed(void **state)
{
	struct status_server *server = start(NULL);
	struct feed *feed = feed__new(path, 1000);
	const char *text;
	size_t size;

	(void)state;
	assert_int_equal(feed__step(feed, SECOND), FEED_CONNECTED);
	status_server__step(server, SECOND);
	assert_int_equal(feed__step(feed, SECOND), FEED_SNAPSHOT);
	text = feed__take(feed, &size);
	assert_int_equal(size, 7);
	assert_memory_equal(text, "user 0\n", 7);
	/* one that is larger than what a socket holds */
	body_size = 3 << 20;
	for (int i = 0; feed__step(feed, 2 * SECOND) != FEED_SNAPSHOT; i++) {
		status_server__step(server, 2 * SECOND);
		assert_true(i < 1000);
	}
	feed__take(feed, &size);
	assert_int_equal(size, 7 + body_size);
	/* the end of the server, and the next one */
	body_size = 0;
	status_server__close(server);
	assert_int_equal(feed__step(feed, 3 * SECOND), FEED_WAITING);
	assert_int_equal(feed__step(feed, 5 * SECOND), FEED_WAITING);
	assert_non_null(strstr(feed__why(feed), "waiting for vaprod"));
	assert_int_equal(feed__fd(feed), -1);
	server = start(NULL);
	assert_int_equal(feed__step(feed, 5 * SECOND), FEED_WAITING); /* not that soon */
	assert_int_equal(feed__step(feed, 7 * SECOND), FEED_CONNECTED);
	status_server__step(server, 7 * SECOND);
	assert_int_equal(feed__step(feed, 7 * SECOND), FEED_SNAPSHOT);
	assert_string_equal(feed__why(feed), "");
	/* silence */
	feed__take(feed, &size);
	assert_int_equal(feed__step(feed, 8 * SECOND), FEED_CONNECTED);
	assert_int_equal(feed__step(feed, 30 * SECOND), FEED_WAITING);
	assert_non_null(strstr(feed__why(feed), "does not respond"));
	feed__free(feed);
	feed__free(NULL);
	status_server__close(server);
}

/* Lets the servers and the feeds go on until there is a snapshot. Returns it. */
static const char *snapshot_of(struct feeds *feeds, struct status_server *const *servers, uint64_t now_ns, size_t *size)
{
	enum feed_state state = FEED_WAITING;

	for (int i = 0; i < 100 && state != FEED_SNAPSHOT; i++, now_ns += SECOND / 100) {
		state = feeds__step(feeds, now_ns);
		for (int k = 0; k < 2; k++) {
			if (servers[k])
				status_server__step(servers[k], now_ns);
		}
	}
	assert_int_equal(state, FEED_SNAPSHOT);
	return feeds__take(feeds, size);
}

/* A directory of sockets: all are asked, also those that come later. */
static void test_feeds(void **state)
{
	struct status_server *servers[2] = {NULL, NULL};
	char where[128], names[2][QUERY_PATH_MAX], err[512];
	struct pollfd fds[JOINED_PARTS];
	struct feeds *feeds;
	struct feed *feed;
	size_t size;

	(void)state;
	if (geteuid())
		skip();
	snprintf(where, sizeof(where), "%s/", directory);
	feeds = feeds__new(where, 1000);
	assert_int_equal(feeds__step(feeds, SECOND), FEED_WAITING);
	assert_non_null(strstr(feeds__why(feeds), "no socket in"));
	assert_int_equal(feeds__fds(feeds, fds), 0);
	for (int i = 0; i < 2; i++) {
		snprintf(names[i], sizeof(names[i]), "%svaprod.%d", where, i + 1);
		servers[i] = status_server__open(names[i], &(struct status_answers){answer, report, diagnose, NULL},
						 err, sizeof(err));
		assert_non_null(servers[i]);
	}
	/* the answers of these servers are not records: they are joined to nothing */
	assert_string_equal(snapshot_of(feeds, servers, 3 * SECOND, &size), "");
	assert_string_equal(feeds__why(feeds), "");
	assert_int_equal(feeds__fds(feeds, fds), 2);
	/* one that does not answer is not waited for */
	for (int i = 0; i < 20; i++) {
		assert_int_equal(feeds__step(feeds, 5 * SECOND), FEED_CONNECTED);
		status_server__step(servers[1], 5 * SECOND);
	}
	assert_int_equal(feeds__step(feeds, 5 * SECOND + SECOND / 4), FEED_CONNECTED);
	assert_int_equal(feeds__step(feeds, 6 * SECOND), FEED_SNAPSHOT);
	assert_non_null(feeds__take(feeds, &size));
	/* the end of one: the other's snapshot is all there is, as it came */
	status_server__close(servers[0]);
	servers[0] = NULL;
	assert_string_equal(snapshot_of(feeds, servers, 9 * SECOND, &size), "user 0\n");
	assert_string_equal(snapshot_of(feeds, servers, 20 * SECOND, &size), "user 0\n");
	assert_int_equal(feeds__fds(feeds, fds), 1);
	status_server__close(servers[1]);
	assert_int_equal(feeds__step(feeds, 21 * SECOND), FEED_WAITING);
	assert_string_equal(feeds__why(feeds), "vaprod has ended");
	assert_int_equal(feeds__fds(feeds, fds), 0);
	feeds__free(feeds);
	feeds__free(NULL);
	/* either name of a socket will do */
	servers[1] =
	    status_server__open(names[1], &(struct status_answers){answer, report, diagnose, NULL}, err, sizeof(err));
	for (int i = 0; i < 2; i++) {
		feed = feed__new(i ? status_server__path(servers[1]) : names[1], 0);
		assert_int_equal(feed__step(feed, SECOND), FEED_CONNECTED);
		feed__free(feed);
	}
	/* one snapshot, after which the server closes the connection */
	feeds = feeds__new(where, 0);
	assert_string_equal(snapshot_of(feeds, servers, 30 * SECOND, &size), "user 0\n");
	feeds__free(feeds);
	status_server__close(servers[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_request),
	    cmocka_unit_test_setup_teardown(test_snapshots, set_up, remove_directory),
	    cmocka_unit_test_setup_teardown(test_no_snapshot, set_up, remove_directory),
	    cmocka_unit_test_setup_teardown(test_deaf, set_up, remove_directory),
	    cmocka_unit_test_setup_teardown(test_nonsense, set_up, remove_directory),
	    cmocka_unit_test_setup_teardown(test_users, set_up, remove_directory),
	    cmocka_unit_test_setup_teardown(test_reports, set_up, remove_directory),
	    cmocka_unit_test_setup_teardown(test_diagnoses, set_up, remove_directory),
	    cmocka_unit_test_setup_teardown(test_flood, set_up, remove_directory),
	    cmocka_unit_test_setup_teardown(test_feed, set_up, remove_directory),
	    cmocka_unit_test_setup_teardown(test_feeds, set_up, remove_directory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
