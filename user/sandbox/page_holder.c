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
#include "sandbox/confine_private.h"
#include "sandbox/page_holder_private.h"

#define HOLDERS 16
#define LEAST_MS 10    /* that is waited for a holder of any user */
#define SILENT_MS 1000 /* after which a file system counts as one that does not answer */

static struct holder {
	pid_t pid; /* 0: a free entry */
	pid_t parent;
	int socket;
	bool busy; /* it has not answered the last order */
	uid_t owner;
	uint64_t since_ns;
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

/* Finds or starts a holder that is free. Those that have answered late are free again, and one of them is enough. */
static int find(uid_t owner, struct holder **found)
{
	struct holder *unused = NULL;

	*found = NULL;
	for (int i = 0; i < HOLDERS; i++) {
		struct holder *holder = &holders[i];

		if (holder->pid && holder->parent != getpid())
			end(holder);
		if (holder->busy)
			answer_of(holder);
		if (holder->busy && holder->owner == owner)
			return mono_now() - holder->since_ns < SILENT_MS * 1000000ULL ? -EINPROGRESS : -ETIMEDOUT;
		if (holder->pid && !holder->busy) {
			if (*found)
				end(holder);
			else
				*found = holder;
		}
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

int page_hold__begin(struct page_hold *hold, int file, uid_t owner, const uint64_t *offsets, size_t count)
{
	struct page_order *order;
	struct holder *holder;
	int status;

	*hold = (struct page_hold){0};
	if (!confine__armed || !count)
		return 0;
	status = find(owner, &holder);
	if (status)
		return status == -EINPROGRESS || status == -ETIMEDOUT ? status : 0;
	order = malloc(sizeof(*order));
	if (!order)
		return 0;
	order->id = ++ids;
	order->count = count < PAGE_HOLDER_OFFSETS_MAX ? count : PAGE_HOLDER_OFFSETS_MAX;
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
		release(holder, ids); /* as soon as it answers */
		return -EINPROGRESS;
	}
	*hold = (struct page_hold){.id = ids, .holder = holder->pid};
	return 0;
}

void page_hold__end(struct page_hold *hold)
{
	for (int i = 0; hold->id && i < HOLDERS; i++)
		if (holders[i].pid == hold->holder)
			release(&holders[i], hold->id);
	*hold = (struct page_hold){0};
}
