// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/foreign_mount.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/clock.h"
#include "target/process_private.h"

#define TABLE_MAX (16U << 20)
#define KNOWN 128
#define KNOWN_NS 5000000000ULL

/* Devices of trusted file systems; the oldest makes way. */
static struct known {
	uint64_t device, until_ns;
} known[KNOWN];

static size_t next_known;

static bool is_known(uint64_t device, uint64_t now_ns)
{
	for (size_t i = 0; i < KNOWN; i++)
		if (known[i].device == device && now_ns < known[i].until_ns)
			return true;
	return false;
}

/* Whether FUSE of a line's last part, "TYPE SOURCE OPTIONS", is served by a user other than root. */
static bool is_served_by_user(const char *type)
{
	const char *options = strchr(type, ' '), *user;

	if (strncmp(type, "fuse", 4))
		return false;
	options = options ? strchr(options + 1, ' ') : NULL;
	user = options ? strstr(options, "user_id=") : NULL;
	return !user || strtoul(user + 8, NULL, 10) != 0;
}

enum foreign_mount foreign_mount__search(char *table, uint64_t device)
{
	enum foreign_mount found = MOUNT_MISSING;
	char *next;

	/* 36 35 98:0 /root /mount options optional... - TYPE SOURCE OPTIONS */
	for (char *line = table; *line; line = next) {
		unsigned int major_number, minor_number;
		const char *type;

		next = line + strcspn(line, "\n");
		if (*next)
			*next++ = '\0';
		if (sscanf(line, "%*u %*u %u:%u", &major_number, &minor_number) != 2 ||
		    makedev(major_number, minor_number) != device)
			continue;
		type = strstr(line, " - ");
		if (type && is_served_by_user(type + 3))
			return MOUNT_OF_USER;
		found = MOUNT_TRUSTED;
	}
	return found;
}

static enum foreign_mount search(const char *process, uint64_t device)
{
	enum foreign_mount found = MOUNT_MISSING;
	char path[64], *table;
	size_t length;

	snprintf(path, sizeof(path), "/proc/%s/mountinfo", process);
	table = process__read_file(path, TABLE_MAX, &length);
	if (table)
		found = foreign_mount__search(table, device);
	free(table);
	return found;
}

/* The device of files in memory (memfd, shared memory), which no table has. */
static uint64_t memory_device(void)
{
	static uint64_t device;
	struct stat st;
	int fd = device ? -1 : memfd_create("vapro-device", MFD_CLOEXEC);

	if (fd >= 0 && !fstat(fd, &st))
		device = st.st_dev;
	if (fd >= 0)
		close(fd);
	return device;
}

/* Whether a process is in the daemon's user namespace; also where that cannot be read. */
static bool is_in_namespace(pid_t pid)
{
	char path[64], own[64] = "", its[64] = "";

	snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	return readlink("/proc/self/ns/user", own, sizeof(own) - 1) <= 0 || readlink(path, its, sizeof(its) - 1) <= 0 ||
	       !strcmp(own, its);
}

bool foreign_mount__has(const struct process *process, const struct process_mapping *mapping)
{
	uint64_t now_ns = mono_now(), device = mapping->device;
	enum foreign_mount found;
	char pid[16];

	if (major(device) || is_known(device, now_ns) || device == memory_device())
		return false;
	found = search("self", device);
	if (found == MOUNT_MISSING)
		found = search("1", device); /* a service may see less: ProtectHome= */
	if (found == MOUNT_MISSING && is_in_namespace(process->pid)) {
		snprintf(pid, sizeof(pid), "%d", process->pid);
		found = search(pid, device);
	}
	if (found != MOUNT_TRUSTED)
		return true;
	known[next_known++ % KNOWN] = (struct known){device, now_ns + KNOWN_NS};
	return false;
}
