// SPDX-License-Identifier: GPL-2.0-or-later
/* Present activity of a process whose calls began before probes were open. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "target/process_private.h"

/* System calls that programs sleep in for long; of_file: the first argument is a descriptor. */
static const struct {
	const char *name;
	int number;
	bool of_file;
} sleeps[] = {
    {"read", SYS_read, true},
    {"write", SYS_write, true},
    {"pread", SYS_pread64, true},
    {"pwrite", SYS_pwrite64, true},
    {"readv", SYS_readv, true},
    {"writev", SYS_writev, true},
    {"fsync", SYS_fsync, true},
    {"fdatasync", SYS_fdatasync, true},
    {"flock", SYS_flock, true},
    {"fcntl", SYS_fcntl, true},
    {"ioctl", SYS_ioctl, true},
    {"recvfrom", SYS_recvfrom, true},
    {"recvmsg", SYS_recvmsg, true},
    {"sendto", SYS_sendto, true},
    {"sendmsg", SYS_sendmsg, true},
    {"connect", SYS_connect, true},
    {"accept", SYS_accept, true},
    {"openat", SYS_openat, false},
    {"futex", SYS_futex, false},
    {"ppoll", SYS_ppoll, false},
    {"pselect", SYS_pselect6, false},
    {"epoll_pwait", SYS_epoll_pwait, false},
    {"nanosleep", SYS_nanosleep, false},
    {"clock_nanosleep", SYS_clock_nanosleep, false},
    {"wait4", SYS_wait4, false},
#ifdef SYS_open
    {"open", SYS_open, false},
    {"poll", SYS_poll, false},
    {"select", SYS_select, false},
    {"epoll_wait", SYS_epoll_wait, false},
#endif
};

/* "nr arg0 ... sp pc", "-1 sp pc" outside of any, or "running" (proc(5)). */
static void read_call(pid_t pid, struct process_activity *activity)
{
	char path[64], *text;
	unsigned long long file;
	size_t length;
	ssize_t read;
	int number;

	snprintf(path, sizeof(path), "/proc/%d/syscall", pid);
	text = process__read_file(path, 256, &length);
	if (!text)
		return;
	if (sscanf(text, "%d %llx", &number, &file) != 2 || number < 0)
		goto done;
	snprintf(activity->call, sizeof(activity->call), "system call %d", number);
	for (size_t i = 0; i < sizeof(sleeps) / sizeof(sleeps[0]); i++) {
		if (sleeps[i].number != number)
			continue;
		snprintf(activity->call, sizeof(activity->call), "%s", sleeps[i].name);
		if (!sleeps[i].of_file)
			break;
		snprintf(path, sizeof(path), "/proc/%d/fd/%llu", pid, file);
		read = readlink(path, activity->file, sizeof(activity->file) - 1);
		activity->file[read > 0 ? read : 0] = '\0';
	}
done:
	free(text);
}

int process__activity(pid_t pid, struct process_activity *activity)
{
	unsigned long long user = 0, system = 0;
	const char *after;
	char *text;

	*activity = (struct process_activity){.state = '?'};
	after = process__read_after_name(pid, &text);
	if (!after)
		return errno == ENOENT ? -ESRCH : -errno;
	sscanf(after, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &activity->state, &user, &system);
	free(text);
	activity->cpu_s = (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
	read_call(pid, activity);
	return 0;
}

char process__thread_state(pid_t tid)
{
	const char *after;
	char *text, state = '?';

	after = process__read_after_name(tid, &text);
	if (!after)
		return state;
	sscanf(after, " %c", &state);
	free(text);
	return state;
}

pid_t process__tracer(pid_t pid)
{
	char path[64], *text, *line;
	size_t length;
	pid_t tracer;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	text = process__read_file(path, 65536, &length);
	line = text ? strstr(text, "\nTracerPid:") : NULL;
	tracer = line ? (pid_t)atoi(line + 11) : 0;
	free(text);
	return tracer;
}
