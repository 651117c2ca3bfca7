// SPDX-License-Identifier: GPL-2.0-or-later
/* The daemon's side of the processes that hold pages: one that is free, and those that their users' files hold. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "sandbox/confine_owner.h"
#include "sandbox/confine_order.h"
#include "sandbox/confine_private.h"
#include "sandbox/page_holder_private.h"
#include "sandbox/user_file.h"

#define HOLDERS 16
#define LEAST_MS 10    /* that is waited for a holder of any user */
#define LATE_MS 60000  /* that a late answer is stored, for the same pages */
#define SILENT_MS 1000 /* after which a file system counts as one that does not answer */

/* Pages of a file. */
struct pages {
	dev_t device;
	ino_t inode;
	uint64_t offsets; /* a hash */
	size_t count;
};

static struct holder {
	pid_t pid; /* 0: a free entry */
	pid_t parent;
	int socket;
	bool busy; /* it has not answered the last order */
	uid_t owner;
	uint64_t since_ns;
	struct page_hold late; /* what it holds, or will, that was not waited for */
	struct pages what;     /* of late */
} holders[HOLDERS];

static uint64_t ids;

static void end(struct holder *holder)
{
	close(holder->socket);
	if (holder->parent == getpid()) { /* not in a copy of the daemon */
		kill(holder->pid, SIGKILL);
		confine__leave_behind(holder->pid);
	}
	*holder = (struct holder){0};
}

static int start(struct holder *holder)
{
	struct confine_query query = {.service = PAGE_HOLDER_SERVICE};
	int ends[2], about, status;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	about = memfd_create("vapro-question", MFD_CLOEXEC);
	*holder = (struct holder){.socket = ends[0], .parent = getpid()};
	status = about < 0 ? -errno : confine_template__start(&query, about, ends[1], &holder->pid);
	if (about >= 0)
		close(about);
	close(ends[1]);
	if (status) {
		close(ends[0]);
		*holder = (struct holder){0};
	}
	return status;
}

/* Takes the answer of a holder where it has come. -EAGAIN: it has not. */
static int answer_of(struct holder *holder)
{
	int32_t status;
	ssize_t got = recv(holder->socket, &status, sizeof(status), MSG_DONTWAIT);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return -EAGAIN;
	if (got != (ssize_t)sizeof(status)) { /* it was killed */
		end(holder);
		return -EPIPE;
	}
	holder->busy = false;
	return status;
}

static int send_order(const struct holder *holder, const struct page_order *order, int file)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec data = {.iov_base = (void *)(uintptr_t)order, .iov_len = (2 + order->count) * sizeof(uint64_t)};
	struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};

	if (file >= 0) {
		message.msg_control = control.room;
		message.msg_controllen = sizeof(control.room);
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.head), &file, sizeof(int));
	}
	return sendmsg(holder->socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

/* Waits for a holder's answer while its user may be waited for. */
static int wait_for(struct holder *holder)
{
	uint64_t begin_ns = mono_now();
	int64_t now_ms = (int64_t)(begin_ns / 1000000);
	unsigned int patience = confine_owner__patience(holder->owner, now_ms);
	struct pollfd ready = {.fd = holder->socket, .events = POLLIN};
	uid_t owner = holder->owner;
	int status;

	poll(&ready, 1, patience > LEAST_MS ? (int)patience : LEAST_MS);
	status = answer_of(holder);
	confine_owner__waited(owner, mono_now() - begin_ns, now_ms);
	return status;
}

static void release(const struct holder *holder, uint64_t id)
{
	struct page_order order = {.id = id};

	send_order(holder, &order, -1);
}

/* Whether a holder that has not answered counts as held by a file system. */
static bool is_silent(const struct holder *holder)
{
	return mono_now() - holder->since_ns >= SILENT_MS * 1000000ULL;
}

static struct pages pages_of(int file, const uint64_t *offsets, size_t count)
{
	struct pages pages = {.offsets = 14695981039346656037ULL, .count = count};
	struct stat st;

	if (!user_file__stat(file, &st)) {
		pages.device = st.st_dev;
		pages.inode = st.st_ino;
	}
	for (size_t i = 0; i < count; i++)
		pages.offsets = (pages.offsets ^ offsets[i]) * 1099511628211ULL;
	return pages;
}

static bool is_same(const struct pages *a, const struct pages *b)
{
	return a->device == b->device && a->inode == b->inode && a->offsets == b->offsets && a->count == b->count;
}

/*
 * Looks whether a holder has answered late. 0: it is free; 1: it holds these pages; -EAGAIN: it waits, or holds others.
 */
static int look_at(struct holder *holder, uid_t owner, const struct pages *pages)
{
	if (holder->busy)
		answer_of(holder);
	if (holder->busy || !holder->late.id)
		return holder->busy ? -EAGAIN : 0;
	if (is_same(&holder->what, pages))
		return 1;
	if (holder->owner != owner && mono_now() - holder->since_ns < LATE_MS * 1000000ULL)
		return -EAGAIN; /* a user has one holder */
	release(holder, holder->late.id);
	holder->late = (struct page_hold){0};
	return 0;
}

/*
 * Finds or starts a holder that is free; one such is enough. 1 with *hold where the pages are held already, or
 * -EINPROGRESS or -ETIMEDOUT where a holder of the owner waits.
 */
static int find(uid_t owner, const struct pages *pages, struct holder **found, struct page_hold *hold)
{
	struct holder *unused = NULL;

	*found = NULL;
	for (int i = 0; i < HOLDERS; i++) {
		struct holder *holder = &holders[i];
		int status;

		if (holder->pid && holder->parent != getpid())
			end(holder);
		status = holder->pid ? look_at(holder, owner, pages) : 0;
		if (status == 1) {
			*hold = holder->late;
			holder->late = (struct page_hold){0};
			return 1;
		}
		if (holder->busy && holder->owner == owner)
			return is_silent(holder) ? -ETIMEDOUT : -EINPROGRESS;
		if (holder->pid && !status && *found)
			end(holder);
		else if (holder->pid && !status)
			*found = holder;
		if (!holder->pid)
			unused = holder;
	}
	if (*found)
		return 0;
	if (!unused)
		return -ETIMEDOUT;
	*found = unused;
	return start(unused);
}

int page_holder__hold(struct page_hold *hold, int file, uid_t owner, const uint64_t *offsets, size_t count)
{
	struct page_order *order;
	struct holder *holder;
	struct pages pages;
	int status;

	*hold = (struct page_hold){0};
	if (!confine__armed || !count)
		return 0;
	if (count > PAGE_HOLDER_OFFSETS_MAX)
		count = PAGE_HOLDER_OFFSETS_MAX;
	pages = pages_of(file, offsets, count);
	status = find(owner, &pages, &holder, hold);
	if (status)
		return status == -EINPROGRESS || status == -ETIMEDOUT ? status : 0;
	order = malloc(sizeof(*order));
	if (!order)
		return 0;
	order->id = ++ids;
	order->count = count;
	memcpy(order->offsets, offsets, order->count * sizeof(*offsets));
	status = send_order(holder, order, file);
	free(order);
	if (status) {
		end(holder);
		return 0;
	}
	holder->busy = true;
	holder->owner = owner;
	holder->since_ns = mono_now();
	status = wait_for(holder);
	if (status == -EAGAIN) {
		holder->late = (struct page_hold){.id = ids, .holder = holder->pid};
		holder->what = pages;
		return -EINPROGRESS;
	}
	if (holder->pid) /* else it was killed */
		*hold = (struct page_hold){.id = ids, .holder = holder->pid};
	return 0;
}

bool page_holder__waits(uid_t owner, bool held)
{
	for (int i = 0; i < HOLDERS; i++)
		if (holders[i].busy && holders[i].owner == owner && answer_of(&holders[i]) == -EAGAIN)
			return held || !is_silent(&holders[i]);
	return false;
}

void page_holder__release(struct page_hold *hold)
{
	for (int i = 0; hold->id && i < HOLDERS; i++)
		if (holders[i].pid == hold->holder)
			release(&holders[i], hold->id);
	*hold = (struct page_hold){0};
}
