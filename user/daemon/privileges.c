// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/privileges.h"

#include <linux/capability.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "target/kernel_range.h"

/* numbers that older kernel headers lack */
#define PERFMON 38
#define BPF 39
#define RESTORE 40

#define BIT(number) (1ULL << (number))

const struct privilege privileges[] = {
    {"CAP_BPF", "the kernel side cannot be loaded", BIT(BPF) | BIT(CAP_SYS_ADMIN), true, 0, 0},
    {"CAP_PERFMON", "no probe can be attached", BIT(PERFMON) | BIT(CAP_SYS_ADMIN), true, 0, 0},
    {"CAP_SYS_PTRACE", "processes of other users are not seen, and none of them is watched", BIT(CAP_SYS_PTRACE), true,
     0, 0},
    {"CAP_CHECKPOINT_RESTORE", "what processes map cannot be opened, and all are refused",
     BIT(RESTORE) | BIT(CAP_SYS_ADMIN), true, 0, 0},
    {"CAP_DAC_READ_SEARCH", "programs below directories that only their users may read are refused",
     BIT(CAP_DAC_READ_SEARCH) | BIT(CAP_DAC_OVERRIDE), false, 0, 0},
    {"CAP_SETUID", "no file of a user can be read in a confined process, and all processes are refused",
     BIT(CAP_SETUID), true, 0, 0},
    {"CAP_SETGID", "no file of a user can be read in a confined process, and all processes are refused",
     BIT(CAP_SETGID), true, 0, 0},
    {"CAP_SYS_ADMIN", "no probe can be attached, since this kernel has no uprobe_multi links (6.6)", BIT(CAP_SYS_ADMIN),
     true, 6, 6},
    {"CAP_SYS_RESOURCE", "the kernel side may not lock its memory and cannot be loaded (kernels before 5.11)",
     BIT(CAP_SYS_RESOURCE), true, 5, 11},
    {"CAP_KILL", "a confined process that takes too long for a user's file cannot be ended", BIT(CAP_KILL), false, 0,
     0},
};

const size_t privilege_count = sizeof(privileges) / sizeof(privileges[0]);

uint64_t privileges__held(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};

	if (syscall(SYS_capget, &header, data))
		return 0;
	return data[0].effective | (uint64_t)data[1].effective << 32;
}

bool privileges__missing(const struct privilege *privilege, uint64_t held, const char *release)
{
	if (privilege->before_major && !kernel_range__before(release, privilege->before_major, privilege->before_minor))
		return false;
	return !(privilege->any_of & held);
}

size_t privileges__name_missing(uint64_t held, char *text, size_t size)
{
	size_t count = 0, used = 0;

	for (size_t i = 0; i < privilege_count; i++) {
		if (!privileges[i].required || !privileges__missing(&privileges[i], held, NULL))
			continue;
		if (used < size)
			used +=
			    (size_t)snprintf(text + used, size - used, "%s%s", count ? ", " : "", privileges[i].name);
		count++;
	}
	return count;
}
