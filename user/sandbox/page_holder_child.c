// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The process that holds pages. It reads nothing of what the files hold: the kernel brings the pages in and locks them.
 * Pages that are mapped are left where they are by posix_fadvise() and by invalidation of a file's cache; locked ones
 * are not taken for other uses of memory either. The mappings are shared, which the kernel sets no breakpoints in.
 */
#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sandbox/page_holder_private.h"
#include "sandbox/user_file.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

#define HOLDS 16 /* at a time; the oldest makes way */

struct held {
	uint64_t id; /* 0: none */
	struct run {
		void *at;
		size_t size;
	} * runs;
	size_t count;
} held[HOLDS];

static size_t next_held;

static void release(struct held *one)
{
	for (size_t i = 0; i < one->count; i++)
		munmap(one->runs[i].at, one->runs[i].size);
	free(one->runs);
	*one = (struct held){0};
}

static int by_number(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return left < right ? -1 : left > right;
}

/* Maps a run of pages and brings them in. 0 or -errno: -ENODEV where the file system maps no files. */
static int hold_run(struct held *one, int file, uint64_t offset, size_t size)
{
	void *at = mmap(NULL, size, PROT_READ, MAP_SHARED, file, (off_t)offset);
	int status = 0;

	if (at == MAP_FAILED)
		return -errno;
	one->runs[one->count++] = (struct run){at, size};
	if (madvise(at, size, MADV_POPULATE_READ))
		status = errno == EINVAL ? 0 : -errno; /* before kernel 5.14 locking alone brings them in */
	mlock(at, size);
	return status;
}

static int hold_pages(struct held *one, int file, uint64_t *offsets, size_t count)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	int status = 0;

	one->runs = calloc(count, sizeof(*one->runs));
	if (!one->runs)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		offsets[i] &= ~(page - 1);
	qsort(offsets, count, sizeof(*offsets), by_number);
	for (size_t i = 0, next; i < count && !status; i = next) {
		uint64_t end = offsets[i] + page;

		for (next = i + 1; next < count && offsets[next] <= end; next++)
			if (offsets[next] == end)
				end += page;
		status = hold_run(one, file, offsets[i], (size_t)(end - offsets[i]));
	}
	return status;
}

static int32_t hold(struct page_order *order, int reference)
{
	struct held *one = &held[next_held++ % HOLDS];
	int file = user_file__reopen(reference), status = file < 0 ? -errno : 0;

	release(one);
	one->id = order->id;
	if (!status)
		status = hold_pages(one, file, order->offsets, (size_t)order->count);
	if (file >= 0)
		close(file);
	return status;
}

/* Receives an order with its descriptor, or -1. Returns false at the end of the socket. */
static bool receive(int socket, struct page_order *order, int *reference)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec data = {.iov_base = order, .iov_len = sizeof(*order)};
	struct msghdr message = {
	    .msg_iov = &data, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof(control.room)};
	struct cmsghdr *head;
	ssize_t got;

	do
		got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got < (ssize_t)(2 * sizeof(uint64_t)) || order->count > PAGE_HOLDER_OFFSETS_MAX ||
	    (size_t)got != (2 + order->count) * sizeof(uint64_t))
		return false;
	*reference = -1;
	head = CMSG_FIRSTHDR(&message);
	if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS &&
	    head->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(reference, CMSG_DATA(head), sizeof(int));
	return true;
}

/* Gives up what opening and locking do not need. Failure leaves what root has. */
static void drop_capabilities(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct sets[2], needed = {.permitted = 1U << CAP_DAC_READ_SEARCH | 1U << CAP_IPC_LOCK};

	if (syscall(SYS_capget, &head, sets))
		return;
	sets[0].permitted &= needed.permitted;
	sets[0].effective = sets[0].permitted;
	sets[1] = (struct __user_cap_data_struct){0};
	sets[0].inheritable = 0;
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	syscall(SYS_capset, &head, sets);
}

void page_holder__serve(int socket)
{
	static struct page_order order;
	struct rlimit lock;
	int reference;

	closefrom(socket + 1);
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	prctl(PR_SET_NAME, "vapro-pages");
	if (!getrlimit(RLIMIT_MEMLOCK, &lock)) {
		lock.rlim_cur = lock.rlim_max;
		setrlimit(RLIMIT_MEMLOCK, &lock);
	}
	drop_capabilities();
	while (receive(socket, &order, &reference)) {
		int32_t status;

		if (reference < 0) {
			for (int i = 0; i < HOLDS; i++)
				if (held[i].id == order.id)
					release(&held[i]);
			continue;
		}
		status = hold(&order, reference);
		close(reference);
		if (send(socket, &status, sizeof(status), MSG_NOSIGNAL) < 0)
			break;
	}
	syscall(SYS_exit_group, 0);
	__builtin_unreachable();
}
