/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `vapro diagnose` finds a vaprod by a local stream socket that root alone can use. A name that ends
 * in '/' is a directory (made, mode 0755) in which each vaprod has a socket of its own, vaprod.PID; any
 * other name is the socket itself. Only root can write to the directory. Beside it, with QUERY_STATUS after its name,
 * is the socket that `vapro top` uses and all users may connect to. The socket of a killed vaprod is removed; a socket
 * with a listener is never replaced. While a socket is opened, a file in vaprod's directory, or another directory
 * itself, is locked.
 */
#ifndef VAPRO_QUERY_SOCKET_H
#define VAPRO_QUERY_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/un.h>

#define QUERY_PATH_MAX sizeof(((struct sockaddr_un *)NULL)->sun_path)
#define QUERY_PREFIX "vaprod."
#define QUERY_STATUS ".status"

/* Opens a listening, non-blocking socket; path, of QUERY_PATH_MAX bytes, is the file to remove after its end. Returns
 * an fd, or -errno with a sentence in err. */
int query_socket__listen(const char *where, char *path, char *err, size_t err_size);

/*
 * Opens the status socket beside a socket at path that this process listens on: mode 0666, otherwise as above. name,
 * of QUERY_PATH_MAX bytes, is its path.
 */
int query_socket__listen_status(const char *path, char *name, char *err, size_t err_size);

/* Writes the path of the status socket beside a socket. Returns 0, or -ENAMETOOLONG. */
int query_socket__status_path(const char *path, char *name);

/*
 * Connects, non-blocking and close-on-exec, only to root; where the queue of connections is full it waits for 3 s. fd
 * or -errno: -ECONNREFUSED where no process listens, -EAGAIN where the queue stays full.
 */
int query_socket__connect(const char *path);

/* Returns the process that listens at the other end of a connection, or -errno. */
pid_t query_socket__peer_pid(int fd);

/* Gets the user at the other end when it connected, or began to listen. Returns 0 or -errno. */
int query_socket__peer_uid(int fd, uid_t *uid);

/* Returns whether the other end was root when it connected or began to listen. */
bool query_socket__peer_is_root(int fd);

/*
 * Finds the sockets of a directory that have a listener, the status sockets or the others; fills the first paths.
 * Returns how many there are, or -errno.
 */
int query_socket__find(const char *directory, bool status, char (*paths)[QUERY_PATH_MAX], size_t room);

#endif
