/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files that belong to the users of watched processes. */
#ifndef VAPRO_USER_FILE_H
#define VAPRO_USER_FILE_H

#include <fcntl.h>

/*
 * Opens a file for reading, to be closed by the caller; -1 with errno. It never waits for the file's owner: a FIFO
 * opens without a writer, and a file on which its owner holds a write lease fails with EWOULDBLOCK (fcntl(2): the
 * kernel would wait for lease-break-time, 45 s, and again at each open). The caller refuses what is no regular file.
 */
static inline int user_file__open(const char *path)
{
	return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

#endif
