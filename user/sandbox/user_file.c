// SPDX-License-Identifier: GPL-2.0-or-later
#include "sandbox/user_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

int user_file__refer(const char *path)
{
	return open(path, O_PATH | O_CLOEXEC);
}

static struct timespec time_of(const struct statx_timestamp *stamp)
{
	return (struct timespec){.tv_sec = stamp->tv_sec, .tv_nsec = stamp->tv_nsec};
}

int user_file__stat(int fd, struct stat *st)
{
	struct statx got;

	memset(st, 0, sizeof(*st));
	/* fstat() asks the server of the file where what is known of it has a limited life */
	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &got))
		return -errno;
	st->st_dev = makedev(got.stx_dev_major, got.stx_dev_minor);
	st->st_ino = got.stx_ino;
	st->st_mode = got.stx_mode;
	st->st_uid = got.stx_uid;
	st->st_size = (off_t)got.stx_size;
	st->st_mtim = time_of(&got.stx_mtime);
	st->st_ctim = time_of(&got.stx_ctime);
	return 0;
}

int user_file__open(const char *path)
{
	return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

int user_file__reopen(int fd)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return user_file__open(path);
}
