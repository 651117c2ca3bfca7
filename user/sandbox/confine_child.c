// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A reader's life: it reads the request and the files, confines itself, responds and exits. It begins as a copy of the
 * template, which reads nothing but orders of the process that started it.
 */
#include "sandbox/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sandbox/confine_order.h"
#include "sandbox/page_holder_private.h"
#include "sandbox/user_file.h"

#define NOBODY 65534
#define CONFINE_MEMORY_BYTES (384ULL << 20) /* beside the files */
#define LARGE_FILE (256 << 10)
#define PAGE 4096 /* the smallest there is: with larger ones some files are read that could be mapped */

bool confine__armed;

/* The address sanitizer reserves terabytes and prints its findings. */
#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

/*
 * Maps a file: a page that nothing looks at costs nothing, and no memory is filled. A file that is truncated meanwhile
 * ends its reader (SIGBUS). false where the last page has no room for the byte behind the file.
 */
static bool map_whole(int fd, size_t size, struct confine_file *file)
{
	void *at = size % PAGE ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0) : MAP_FAILED;

	if (at == MAP_FAILED)
		return false;
	*file = (struct confine_file){at, size};
	return true;
}

/* Reads a whole file into memory. The size is checked here again, after the caller's check. */
static int read_whole(int fd, struct confine_file *file)
{
	struct stat st;
	size_t done = 0;

	if (fstat(fd, &st))
		return CONFINE_EXIT_READ;
	if (!S_ISREG(st.st_mode) || st.st_size < 0 || (uint64_t)st.st_size > CONFINE_FILE_BYTES_MAX)
		return CONFINE_EXIT_READ;
	if (st.st_size >= LARGE_FILE && map_whole(fd, (size_t)st.st_size, file))
		return 0;
	file->data = malloc((size_t)st.st_size + 1);
	if (!file->data)
		return CONFINE_EXIT_MEMORY;
	while (done < (size_t)st.st_size) {
		ssize_t got = pread(fd, file->data + done, (size_t)st.st_size - done, (off_t)done);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return CONFINE_EXIT_READ;
		if (got == 0)
			break; /* truncated meanwhile: the bytes read must do */
		done += (size_t)got;
	}
	file->size = done;
	return 0;
}

static bool limit(int what, uint64_t most)
{
	struct rlimit now, wanted = {.rlim_cur = most, .rlim_max = most};

	if (getrlimit(what, &now))
		return false;
	if (now.rlim_max < wanted.rlim_max) /* the limit is lower already, and raising it may be forbidden */
		wanted.rlim_cur = wanted.rlim_max = now.rlim_max;
	return !setrlimit(what, &wanted);
}

/* Limits memory, before the files are read; lock() sets the other limits afterwards. */
static bool limit_memory(unsigned int file_count)
{
	uint64_t bytes = CONFINE_MEMORY_BYTES;
	struct stat st;

	for (unsigned int i = 0; i < file_count; i++)
		if (!fstat(CONFINE_FIRST_FILE + (int)i, &st) && st.st_size > 0)
			bytes += 2 * (uint64_t)st.st_size;
	return SANITIZED || limit(RLIMIT_AS, bytes);
}

/* Makes the reader the first to be killed when the daemon's whole group is short of memory. Failure is harmless. */
static void offer_to_die(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, "1000", 4) < 0)
		errno = 0;
	close(fd);
}

static bool lock(void)
{
	uid_t real, effective, saved;

	if (!limit(RLIMIT_CORE, 0) || !limit(RLIMIT_FSIZE, 0) || !limit(RLIMIT_CPU, CONFINE_CPU_SECONDS) ||
	    !limit(RLIMIT_NOFILE, 0) || !limit(RLIMIT_NPROC, 0))
		return false;
	if (!geteuid()) {
		if (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY))
			return false;
		if (getresuid(&real, &effective, &saved) || real != NOBODY || effective != NOBODY || saved != NOBODY)
			return false;
	}
	/* the reader dies with the daemon; a change of user clears an earlier setting */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0))
		return false;
	return !prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) && !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !sandbox__filter();
}

static bool write_whole(const void *data, size_t size)
{
	for (const char *at = data; size;) {
		ssize_t done = write(CONFINE_PIPE, at, size);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return false;
		at += done;
		size -= (size_t)done;
	}
	return true;
}

/* Responds with a sentence and an errno. Returns the reader's exit code. */
static int refuse(int error, const char *sentence)
{
	struct confine_head head = {.status = (uint64_t)error, .size = strlen(sentence)};

	return write_whole(&head, sizeof(head)) && write_whole(sentence, head.size) ? 0 : CONFINE_EXIT_READ;
}

/*
 * Opens the files, to which the daemon only refers: where a file system does not answer it is this process that waits.
 * 0, or an errno with a sentence.
 */
static int open_files(unsigned int file_count, char *sentence, size_t size)
{
	for (int i = CONFINE_FIRST_FILE; i < CONFINE_FIRST_FILE + (int)file_count; i++) {
		int file = user_file__reopen(i), error = errno;

		if (file < 0) {
			snprintf(sentence, size, "cannot open: %s", strerror(error));
			return error;
		}
		dup3(file, i, O_CLOEXEC);
		close(file);
	}
	return 0;
}

static int serve(const struct confine_service *service, unsigned int file_count)
{
	struct confine_file about = {0}, files[CONFINE_FILES_MAX] = {0};
	struct confine_head head = {0};
	struct flat_reader reader;
	struct flat response = {0};
	char sentence[CONFINE_SENTENCE_MAX] = "";
	int status;

	closefrom(CONFINE_FIRST_FILE + (int)file_count);
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	offer_to_die();
	status = open_files(file_count, sentence, sizeof(sentence));
	if (status)
		return refuse(status, sentence);
	if (!limit_memory(file_count))
		return CONFINE_EXIT_SETUP;
	status = read_whole(CONFINE_ABOUT, &about);
	close(CONFINE_ABOUT);
	for (unsigned int i = 0; i < file_count && !status; i++) {
		status = read_whole(CONFINE_FIRST_FILE + (int)i, &files[i]);
		close(CONFINE_FIRST_FILE + (int)i);
	}
	if (status)
		return status;
	if (!lock())
		return CONFINE_EXIT_SETUP;
	reader = (struct flat_reader){.at = (uint8_t *)about.data, .end = (uint8_t *)about.data + about.size};
	status = service->response(&reader, files, file_count, &response, sentence, sizeof(sentence));
	if (!status && response.failed)
		status = -ENOMEM;
	if (status == -ENOMEM)
		return CONFINE_EXIT_MEMORY;
	if (status)
		return refuse(-status, sentence);
	head.size = response.size;
	if (!write_whole(&head, sizeof(head)) || !write_whole(response.data, head.size))
		return CONFINE_EXIT_READ;
	return 0;
}

/* Exits without the leak search of sanitizers, whose system calls the filter forbids. */
static void __attribute__((noreturn)) leave(int code)
{
	for (;;)
		syscall(SYS_exit_group, code);
}

static void respond(const struct confine_service *services, const struct confine_order *order)
{
	if (!strncmp(PAGE_HOLDER_SERVICE, order->service, sizeof(order->service)))
		page_holder__serve(CONFINE_PIPE);
	for (; services->name; services++)
		if (!strncmp(services->name, order->service, sizeof(order->service)))
			leave(serve(services, order->file_count));
	leave(CONFINE_EXIT_SETUP);
}

/* Receives an order and its descriptors. Returns whether there is one; *complete: all descriptors are where they
 * belong. */
static bool receive_order(struct confine_order *order, bool *complete)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int) * (2 + CONFINE_FILES_MAX))];
	} control;
	struct iovec data = {.iov_base = order, .iov_len = sizeof(*order)};
	struct msghdr message = {
	    .msg_iov = &data, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof(control.room)};
	struct cmsghdr *head;
	unsigned int count = 0;
	ssize_t got;

	do
		got = recvmsg(CONFINE_SOCKET, &message, 0);
	while (got < 0 && errno == EINTR);
	if (got != (ssize_t)sizeof(*order))
		return false;
	head = CMSG_FIRSTHDR(&message);
	if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS)
		count = (unsigned int)((head->cmsg_len - CMSG_LEN(0)) / sizeof(int));
	*complete = order->file_count <= CONFINE_FILES_MAX && count == 2 + order->file_count;
	for (unsigned int i = 0; i < count; i++) {
		int descriptor;

		memcpy(&descriptor, CMSG_DATA(head) + i * sizeof(int), sizeof(int));
		*complete &= descriptor == CONFINE_PIPE + (int)i;
	}
	return true;
}

/* Starts readers as children of the process that started this one, until that ends. */
static void __attribute__((noreturn)) be_template(const struct confine_service *services)
{
	struct confine_order order;
	bool complete;

	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	prctl(PR_SET_NAME, "vapro-reader"); /* it was executed by descriptor: "exe" */
	closefrom(CONFINE_SOCKET + 1);
	for (int fd = CONFINE_PIPE; fd < CONFINE_SOCKET; fd++)
		close(fd);
	while (receive_order(&order, &complete)) {
		int32_t pid = -EMFILE;

		if (complete)
			pid = (int32_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
		if (!pid)
			respond(services, &order);
		if (pid < 0 && complete)
			pid = -errno;
		for (int fd = CONFINE_PIPE; fd < CONFINE_SOCKET; fd++)
			close(fd);
		if (send(CONFINE_SOCKET, &pid, sizeof(pid), MSG_NOSIGNAL) < 0)
			break;
	}
	leave(0);
}

void confine__main(int argc, char **argv, const struct confine_service *services)
{
	if (argc == 1 && !strcmp(argv[0], CONFINE_NAME))
		be_template(services);
	confine__armed = true;
}
