/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Files that belong to the users of watched processes. The daemon refers to them and never opens them for reading: a
 * descriptor of O_PATH reaches the file's place in the tree without a call to the file system, so that neither a
 * FIFO, a lease nor a file system that does not answer is waited for, not at its closing either. Confined readers
 * open the file behind such a descriptor, and wait for it in place of the daemon.
 */
#ifndef VAPRO_USER_FILE_H
#define VAPRO_USER_FILE_H

#include <sys/stat.h>

/* A descriptor that refers to a file and cannot be read, to be closed by the caller; -1 with errno. */
int user_file__refer(const char *path);

/*
 * The status of a file behind a descriptor, as this machine knows it: a network file system is not asked. Only device,
 * inode, type, owner, size and times are filled. 0 or -errno.
 */
int user_file__stat(int fd, struct stat *st);

/*
 * Opens a file for reading, to be closed by the caller; -1 with errno. It waits for no owner: a FIFO opens without a
 * writer, and a file on which its owner holds a write lease fails with EWOULDBLOCK (fcntl(2): the kernel would wait for
 * lease-break-time, 45 s, and again at each open). It does wait for the file system. The caller refuses what is no
 * regular file.
 */
int user_file__open(const char *path);

/* Opens the file behind a descriptor again, for reading; as user_file__open(). */
int user_file__reopen(int fd);

#endif
