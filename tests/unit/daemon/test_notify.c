// SPDX-License-Identifier: GPL-2.0-or-later
/* What a service manager receives. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>
#include "daemon/notify.h"

/* Listens at a name, as NOTIFY_SOCKET has it. */
static int listen_at(const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	memcpy(address.sun_path, name, strlen(name));
	if (name[0] == '@')
		address.sun_path[0] = '\0';
	assert_int_equal(
	    bind(fd, (struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name))),
	    0);
	setenv("NOTIFY_SOCKET", name, 1);
	return fd;
}

static void receives(int fd, const char *state)
{
	char text[64] = "";

	assert_int_equal(recv(fd, text, sizeof(text) - 1, 0), (ssize_t)strlen(state));
	assert_string_equal(text, state);
	assert_int_equal(recv(fd, text, sizeof(text), 0), -1);
}

static void a_state_is_a_datagram(void **state)
{
	char directory[] = "/tmp/notifyXXXXXX", path[64], name[64];
	int fd;

	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/socket", directory);
	fd = listen_at(path);
	assert_int_equal(notify__send("READY=1"), 0);
	receives(fd, "READY=1");
	/* a manager that does not read is not waited for */
	for (int i = 0; i < 10000; i++)
		if (notify__send("WATCHDOG=1"))
			break;
	assert_int_equal(notify__send("WATCHDOG=1"), -EAGAIN);
	close(fd);
	assert_int_equal(notify__send("WATCHDOG=1"), -ECONNREFUSED);
	unlink(path);
	rmdir(directory);
	snprintf(name, sizeof(name), "@vapro-test-%d", getpid());
	fd = listen_at(name);
	assert_int_equal(notify__send("STOPPING=1"), 0);
	receives(fd, "STOPPING=1");
	close(fd);
}

static void without_a_manager_nothing_is_sent(void **state)
{
	(void)state;
	unsetenv("NOTIFY_SOCKET");
	assert_int_equal(notify__send("READY=1"), 0);
	setenv("NOTIFY_SOCKET", "relative", 1);
	assert_int_equal(notify__send("READY=1"), -EINVAL);
}

static void the_watchdog_is_of_this_process(void **state)
{
	char own[32];

	(void)state;
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
	assert_int_equal(notify__watchdog_ns(), 0);
	setenv("WATCHDOG_USEC", "2000000", 1);
	assert_int_equal(notify__watchdog_ns(), 1000000000);
	setenv("WATCHDOG_PID", "1", 1);
	assert_int_equal(notify__watchdog_ns(), 0);
	snprintf(own, sizeof(own), "%d", getpid());
	setenv("WATCHDOG_PID", own, 1);
	assert_int_equal(notify__watchdog_ns(), 1000000000);
	setenv("WATCHDOG_USEC", "-5", 1);
	assert_int_equal(notify__watchdog_ns(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_state_is_a_datagram),
	    cmocka_unit_test(without_a_manager_nothing_is_sent),
	    cmocka_unit_test(the_watchdog_is_of_this_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
