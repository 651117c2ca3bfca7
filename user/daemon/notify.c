// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int notify__send(const char *state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const char *path = getenv("NOTIFY_SOCKET");
	size_t length = path ? strlen(path) : 0;
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
	int fd, error = 0;

	if (!length)
		return 0;
	if ((path[0] != '/' && path[0] != '@') || length >= sizeof(address.sun_path))
		return -EINVAL;
	memcpy(address.sun_path, path, length);
	if (path[0] == '@') /* an abstract name */
		address.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT, (struct sockaddr *)&address, size) < 0)
		error = -errno;
	close(fd);
	return error;
}

uint64_t notify__watchdog_ns(void)
{
	const char *limit = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	long long limit_us = limit ? atoll(limit) : 0;

	if (limit_us <= 0 || (pid && atoll(pid) != getpid()))
		return 0;
	return (uint64_t)limit_us * 1000 / 2;
}
