// SPDX-License-Identifier: GPL-2.0-or-later
#include "query/socket.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define BACKLOG 128
#define PATIENCE_S 3 /* others may connect all the time */
#define LOCK_FILE ".lock"
#define LOCK_TRIES 100
#define LOCK_PAUSE_US 10000

static int address_of(const char *path, struct sockaddr_un *address)
{
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(address->sun_path))
		return -ENAMETOOLONG;
	strcpy(address->sun_path, path);
	return 0;
}

int query_socket__peer_uid(int fd, uid_t *uid)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size))
		return -errno;
	*uid = peer.uid;
	return 0;
}

bool query_socket__peer_is_root(int fd)
{
	uid_t uid = 1;

	return !query_socket__peer_uid(fd, &uid) && uid == 0;
}

pid_t query_socket__peer_pid(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) ? -errno : peer.pid;
}

/* patience_s: time to wait for room in the queue of connections, 0: none. */
static int connect_to(const char *path, time_t patience_s)
{
	const struct timeval patience = {.tv_sec = patience_s};
	struct sockaddr_un address;
	int fd, error = address_of(path, &address);

	if (error)
		return error;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | (patience_s ? 0 : SOCK_NONBLOCK), 0);
	if (fd < 0)
		return -errno;
	if (patience_s)
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)))
		error = -errno;
	else if (!query_socket__peer_is_root(fd))
		error = -EPERM;
	else if (patience_s && fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK))
		error = -errno;
	if (!error)
		return fd;
	close(fd);
	return error;
}

int query_socket__connect(const char *path)
{
	return connect_to(path, PATIENCE_S);
}

/* Returns whether a process listens, also where its queue of connections is full. */
static bool alive(const char *path)
{
	int fd = connect_to(path, 0);

	if (fd >= 0)
		close(fd);
	return fd >= 0 || (fd != -ECONNREFUSED && fd != -ENOENT);
}

static int compare_paths(const void *a, const void *b)
{
	return strcmp(a, b);
}

static bool is_status(const char *name)
{
	size_t length = strlen(name), suffix = strlen(QUERY_STATUS);

	return length > suffix && !strcmp(name + length - suffix, QUERY_STATUS);
}

int query_socket__find(const char *directory, bool status, char (*paths)[QUERY_PATH_MAX], size_t room)
{
	DIR *dir = opendir(directory);
	struct dirent *entry;
	int count = 0;

	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		char path[512];

		if (strncmp(entry->d_name, QUERY_PREFIX, strlen(QUERY_PREFIX)) || is_status(entry->d_name) != status ||
		    (size_t)snprintf(path, sizeof(path), "%s%s%s", directory,
				     directory[strlen(directory) - 1] == '/' ? "" : "/",
				     entry->d_name) >= QUERY_PATH_MAX ||
		    !alive(path))
			continue;
		if ((size_t)count < room)
			strcpy(paths[count], path);
		count++;
	}
	closedir(dir);
	qsort(paths, (size_t)count < room ? (size_t)count : room, sizeof(*paths), compare_paths);
	return count;
}

/* Makes a missing directory (its name ends in '/') and its parents, which all may pass. Returns 0 or -errno. */
static int make(const char *directory)
{
	char path[QUERY_PATH_MAX + 1];

	snprintf(path, sizeof(path), "%s", directory);
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		if (mkdir(path, 0755)) {
			if (errno != EEXIST)
				return -errno;
		} else if (chmod(path, 0755)) { /* whatever the umask is */
			return -errno;
		}
		*slash = '/';
	}
	return 0;
}

/* Locks a directory. A vaprod holds the lock only briefly; any process may hold it longer, so the wait is bounded. */
static int lock_alone(int fd)
{
	for (int i = 0; flock(fd, LOCK_EX | LOCK_NB); i++) {
		if (errno != EWOULDBLOCK || i == LOCK_TRIES)
			return -errno;
		usleep(LOCK_PAUSE_US);
	}
	return 0;
}

/* Opens the file that is locked in a directory of vaprod's own: any user may lock the directory, but not this file. */
static int open_lock(int directory)
{
	int fd = openat(directory, LOCK_FILE, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	int error = fd < 0 ? -errno : 0;

	close(directory);
	return error ? error : fd;
}

/*
 * Opens and locks a directory, to which root alone may write, against other vaprods. own: it is for sockets of vaprods
 * only. Returns an fd, or -errno with a sentence in err.
 */
static int lock_directory(const char *directory, bool own, char *err, size_t err_size)
{
	struct stat status;
	int error = make(directory), fd = error ? -1 : open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (!error && (fd < 0 || fstat(fd, &status)))
		error = -errno;
	if (!error && (status.st_uid != 0 || status.st_mode & 022)) {
		snprintf(err, err_size, "%s is not root's alone to write to: user %u, mode %04o", directory,
			 status.st_uid, status.st_mode & 07777);
		close(fd);
		return -EPERM;
	}
	if (!error && own) {
		fd = open_lock(fd);
		error = fd < 0 ? fd : 0;
	}
	if (!error)
		error = lock_alone(fd);
	if (!error)
		return fd;
	snprintf(err, err_size, "%s: %s", directory, strerror(-error));
	if (fd >= 0)
		close(fd);
	return error;
}

/* Removes the sockets of vaprods that were killed. */
static void sweep(const char *name)
{
	DIR *dir = opendir(name);
	struct dirent *entry;

	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		struct stat status;
		char path[512];

		snprintf(path, sizeof(path), "%s%s", name, entry->d_name);
		if (!strncmp(entry->d_name, QUERY_PREFIX, strlen(QUERY_PREFIX)) &&
		    !fstatat(dirfd(dir), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) && S_ISSOCK(status.st_mode) &&
		    strlen(path) < QUERY_PATH_MAX && !alive(path))
			unlinkat(dirfd(dir), entry->d_name, 0);
	}
	closedir(dir);
}

/* Binds to a name at which no process listens; mode: of the socket. Returns 0, or -errno with a sentence in err. */
static int take_name(int fd, const char *path, mode_t mode, char *err, size_t err_size)
{
	struct sockaddr_un address;
	struct stat status;
	mode_t mask;
	int error = address_of(path, &address);

	if (!error && !lstat(path, &status)) {
		if (!S_ISSOCK(status.st_mode))
			error = -EEXIST;
		else if (alive(path))
			error = -EADDRINUSE;
		else if (unlink(path))
			error = -errno;
	}
	if (!error) {
		mask = umask(0777 & ~mode);
		if (bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, BACKLOG))
			error = -errno;
		umask(mask);
	}
	if (error)
		snprintf(err, err_size, "%s: %s", path,
			 error == -EADDRINUSE ? "another vaprod listens there" : strerror(-error));
	return error;
}

/* Listens at a path. Returns an fd, or -errno with a sentence in err. */
static int listen_at(const char *path, mode_t mode, char *err, size_t err_size)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), error;

	if (fd < 0) {
		error = -errno;
		snprintf(err, err_size, "no socket: %s", strerror(-error));
		return error;
	}
	error = take_name(fd, path, mode, err, err_size);
	if (!error)
		return fd;
	close(fd);
	return error;
}

int query_socket__status_path(const char *path, char *name)
{
	int length = snprintf(name, QUERY_PATH_MAX, "%s" QUERY_STATUS, path);

	return length < 0 || (size_t)length >= QUERY_PATH_MAX ? -ENAMETOOLONG : 0;
}

int query_socket__listen_status(const char *path, char *name, char *err, size_t err_size)
{
	if (query_socket__status_path(path, name)) {
		snprintf(err, err_size, "%s" QUERY_STATUS ": a socket's name has at most %zu bytes", path,
			 QUERY_PATH_MAX - 1);
		return -ENAMETOOLONG;
	}
	/* every user may connect: what a user sees is decided by who connected */
	return listen_at(name, 0666, err, err_size);
}

int query_socket__listen(const char *where, char *path, char *err, size_t err_size)
{
	size_t length = strlen(where);
	bool own = length && where[length - 1] == '/';
	const char *slash = strrchr(where, '/');
	char directory[QUERY_PATH_MAX + 1];
	int fd, lock, used;

	if (!slash || *where != '/') {
		snprintf(err, err_size, "'%s' is not an absolute path", where);
		return -EINVAL;
	}
	used = own ? snprintf(path, QUERY_PATH_MAX, "%s" QUERY_PREFIX "%d", where, (int)getpid())
		   : snprintf(path, QUERY_PATH_MAX, "%s", where);
	if (used < 0 || (size_t)used >= QUERY_PATH_MAX) {
		snprintf(err, err_size, "%s: a socket's name has at most %zu bytes", where, QUERY_PATH_MAX - 1);
		return -ENAMETOOLONG;
	}
	snprintf(directory, sizeof(directory), "%.*s", (int)(slash - where) + 1, where);
	lock = lock_directory(directory, own, err, err_size);
	if (lock < 0)
		return lock;
	if (own)
		sweep(directory);
	fd = listen_at(path, 0600, err, err_size);
	close(lock);
	return fd;
}
