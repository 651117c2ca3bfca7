// SPDX-License-Identifier: GPL-2.0-or-later
/* The processes that the kernel side tracks, and its state of their threads: see kernel_side.h. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe/bpf/kernel_side.h"
#include "probe/bpf/first_account.h"
#include "target/process.h"
#include "vapro.skel.h"

#define PIDFD_THREAD_FLAG 0200 /* O_EXCL: a descriptor of one thread, kernel 6.9 */

static int thread_descriptor(pid_t tid)
{
	int fd = (int)syscall(SYS_pidfd_open, tid, PIDFD_THREAD_FLAG);

	if (fd < 0 && errno == EINVAL)
		fd = (int)syscall(SYS_pidfd_open, tid, 0); /* before 6.9: thread group leaders only */
	return fd;
}

int kernel_side__track(struct kernel_side *side, pid_t pid, const struct bpf_process_state *process)
{
	struct vapro_bpf *bpf = kernel_side__bpf(side);
	uint32_t key = (uint32_t)pid;
	pid_t tids[1024];
	size_t count;

	if (bpf_map_update_elem(bpf_map__fd(bpf->maps.processes), &key, process, BPF_ANY))
		return -errno;
	count = process__threads(pid, tids, sizeof(tids) / sizeof(tids[0]));
	if (count > sizeof(tids) / sizeof(tids[0]))
		count = sizeof(tids) / sizeof(tids[0]);
	/* threads that never call anything must still be known to the scheduler's accounting */
	for (size_t i = 0; i < count; i++) {
		struct bpf_thread_state thread = {.tgid = key,
						  .tid = (uint32_t)tids[i],
						  .slot = process->slot,
						  .process_flags = process->flags,
						  .generation = bpf->data->generation};
		int fd = thread_descriptor(tids[i]);

		if (fd < 0)
			continue;
		first_account__open(bpf, &thread, process__thread_state(tids[i]));
		if (bpf_map_update_elem(bpf_map__fd(bpf->maps.threads), &fd, &thread, BPF_NOEXIST))
			first_account__drop(bpf, &thread);
		else
			first_account__check(bpf, &thread, process__thread_state(tids[i]));
		close(fd);
	}
	return 0;
}

int kernel_side__reflag(struct kernel_side *side, pid_t pid, const struct bpf_process_state *process)
{
	struct vapro_bpf *bpf = kernel_side__bpf(side);
	uint32_t key = (uint32_t)pid;
	pid_t tids[1024];
	size_t count = process__threads(pid, tids, sizeof(tids) / sizeof(tids[0]));

	if (bpf_map_update_elem(bpf_map__fd(bpf->maps.processes), &key, process, BPF_EXIST))
		return -errno;
	for (size_t i = 0; i < count && i < sizeof(tids) / sizeof(tids[0]); i++) {
		int fd = thread_descriptor(tids[i]), map = bpf_map__fd(bpf->maps.threads);
		struct bpf_thread_state thread;

		if (fd < 0)
			continue;
		if (!bpf_map_lookup_elem(map, &fd, &thread)) {
			thread.process_flags = process->flags;
			bpf_map_update_elem(map, &fd, &thread, BPF_EXIST);
		}
		close(fd);
	}
	bpf->data->states_epoch++; /* the threads' cached look-ups may have been copied half way */
	return 0;
}

int kernel_side__untrack(struct kernel_side *side, pid_t pid)
{
	struct vapro_bpf *bpf = kernel_side__bpf(side);
	uint32_t key = (uint32_t)pid;

	bpf_map_delete_elem(bpf_map__fd(bpf->maps.reported), &key);
	return bpf_map_delete_elem(bpf_map__fd(bpf->maps.processes), &key) ? -errno : 0;
}

void kernel_side__release(struct kernel_side *side, pid_t pid)
{
	struct vapro_bpf *bpf = kernel_side__bpf(side);
	int map = bpf_map__fd(bpf->maps.threads);
	pid_t tids[1024];
	size_t count;

	kernel_side__untrack(side, pid); /* from here on no thread of it gets a state */
	count = process__threads(pid, tids, sizeof(tids) / sizeof(tids[0]));
	for (size_t i = 0; i < count && i < sizeof(tids) / sizeof(tids[0]); i++) {
		struct bpf_thread_state thread;
		int fd = thread_descriptor(tids[i]);

		if (fd < 0)
			continue;
		if (!bpf_map_lookup_elem(map, &fd, &thread)) {
			bpf_map_delete_elem(map, &fd);
			first_account__drop(bpf, &thread);
		}
		close(fd);
	}
}

int kernel_side__thread(struct kernel_side *side, pid_t tid, struct bpf_thread_state *out)
{
	struct vapro_bpf *bpf = kernel_side__bpf(side);
	int fd = thread_descriptor(tid), status;

	if (fd < 0)
		return -ENOENT;
	status = bpf_map_lookup_elem(bpf_map__fd(bpf->maps.threads), &fd, out);
	close(fd);
	return status ? -ENOENT : 0;
}
