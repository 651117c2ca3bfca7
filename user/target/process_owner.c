// SPDX-License-Identifier: GPL-2.0-or-later
/* The owner of a process, through user namespaces. */
#include "target/process.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH_MOST 33 /* user namespaces nest 32 deep */

static bool same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

uid_t process__owner(pid_t pid, uid_t uid)
{
	struct stat own, other;
	char path[64];
	uid_t owner = uid;
	int fd, parent;

	snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	if (stat("/proc/self/ns/user", &own) || stat(path, &other) || same(&own, &other))
		return uid;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	/* each namespace on the way up belongs to a user of its parent; the last one found is of a user of ours */
	for (int depth = 0; fd >= 0 && depth < DEPTH_MOST; depth++) {
		if (ioctl(fd, NS_GET_OWNER_UID, &owner))
			owner = uid;
		parent = ioctl(fd, NS_GET_PARENT);
		close(fd);
		fd = parent;
		if (fd >= 0 && (fstat(fd, &other) || same(&own, &other)))
			break;
	}
	if (fd >= 0)
		close(fd);
	return owner;
}
