// SPDX-License-Identifier: GPL-2.0-or-later
#include "node/generator.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "node/instances.h"

enum { POLL_MS = 200 };
#define PATIENCE_S 60 /* that the child may take longer: memory is touched, and others may have the CPUs */

/* Takes what the child says. Returns 0, 1 at its end, or a negative errno with a sentence in err. */
static int take(struct node_run *run, const struct instance_message *message, char *err, size_t err_size)
{
	int error = 0;

	switch (message->news) {
	case INSTANCE_BUNDLE:
		error = node_run__add(run, &message->bundle);
		break;
	case INSTANCE_UNPINNED:
		node_run__unpin(run, message->bundle.instance);
		break;
	case INSTANCE_WRONG:
		node_run__note_wrong(run, message->bundle.instance, (enum node_kernel)message->bundle.kernel);
		break;
	case INSTANCE_FAILED:
		error = message->error > 0 ? -message->error : -EIO;
		break;
	case INSTANCE_DONE:
		return 1;
	}
	if (error)
		snprintf(err, err_size, "the kernels cannot run: %s", strerror(-error));
	return error;
}

/* Receives all messages. Returns 0, -EINTR or another negative errno with a sentence in err. */
static int receive(int pipe, double seconds, const volatile sig_atomic_t *stop, struct node_run *run, char *err,
		   size_t err_size)
{
	uint64_t until = mono_now() + (uint64_t)((seconds + PATIENCE_S) * 1e9);
	struct pollfd poll_fd = {.fd = pipe, .events = POLLIN};
	struct instance_message message;
	int ret = 0;

	while (!ret) {
		ssize_t got;

		if (*stop)
			return -EINTR;
		if (mono_now() > until) {
			snprintf(err, err_size, "the kernels did not end: others have the CPUs");
			return -ETIMEDOUT;
		}
		if (poll(&poll_fd, 1, POLL_MS) <= 0)
			continue;
		got = read(pipe, &message, sizeof(message));
		if (got < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (got != sizeof(message)) {
			snprintf(err, err_size, "the kernels ended early: their process was killed, or had no memory");
			return -EIO;
		}
		ret = take(run, &message, err, err_size);
	}
	return ret < 0 ? ret : 0;
}

/* Becomes the child: what ends the parent ends it, and only that. */
__attribute__((noreturn)) static void become_child(const struct machine_cpus *machine, double seconds, int pipe,
						   pid_t parent)
{
	signal(SIGINT, SIG_IGN); /* of the terminal: the parent has it, too, and kills */
	signal(SIGTERM, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	instances__run(machine, seconds, pipe);
}

int generator__run(const struct machine_cpus *machine, double seconds, const volatile sig_atomic_t *stop,
		   struct node_run **run, char *err, size_t err_size)
{
	int ends[2] = {-1, -1}, error = 0;
	pid_t parent = getpid(), child = -1;

	*run = node_run__new(machine);
	if (!*run) {
		snprintf(err, err_size, "out of memory");
		return -ENOMEM;
	}
	if (pipe2(ends, O_CLOEXEC) || (child = fork()) < 0) {
		error = -errno;
		snprintf(err, err_size, "the kernels have no process: %s", strerror(-error));
		goto cleanup;
	}
	if (!child) {
		close(ends[0]);
		become_child(machine, seconds, ends[1], parent);
	}
	close(ends[1]);
	ends[1] = -1;
	error = receive(ends[0], seconds, stop, *run, err, err_size);
cleanup:
	if (child > 0) {
		kill(child, SIGKILL);
		while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
			;
	}
	for (int i = 0; i < 2; i++) {
		if (ends[i] >= 0)
			close(ends[i]);
	}
	return error;
}
