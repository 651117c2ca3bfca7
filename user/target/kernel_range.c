// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/kernel_range.h"

#include <stdio.h>
#include <sys/utsname.h>

const struct kernel_range kernel_ranges[] = {
    {KERNEL_SECCOMP_KILLS, 6, 11, 6, 13, "a return probe is a system call that seccomp filters: the target is killed",
     "processes with a seccomp filter are watched without returns, as by --no-return; or not at all before 6.13"},
    {KERNEL_NOP5_RED_ZONE, 6, 18, 6, 18,
     "a probe on a 5-byte nop inside a function overwrites the function's data below its stack pointer",
     "handled: such places are probed at function entries only"},
    {KERNEL_THREAD_FILTER, 6, 6, 6, 9, "a uprobe_multi link for one process sees its main thread only",
     "found by trying, and said of each process it concerns; --attach perf sees all threads"},
};

const size_t kernel_range_count = sizeof(kernel_ranges) / sizeof(kernel_ranges[0]);

/* Returns the version as one number, or 0 for an unknown release. */
static int version_of(const char *release)
{
	struct utsname running;
	int major, minor;

	if (!release) {
		uname(&running);
		release = running.release;
	}
	return sscanf(release, "%d.%d", &major, &minor) == 2 ? major * 1000 + minor : 0;
}

bool kernel_range__holds(const struct kernel_range *range, const char *release)
{
	int version = version_of(release);

	return version && version >= range->first_major * 1000 + range->first_minor &&
	       version <= range->last_major * 1000 + range->last_minor;
}

bool kernel_range__before(const char *release, int major, int minor)
{
	int version = version_of(release);

	return version && version < major * 1000 + minor;
}

bool kernel_range__troubled(enum kernel_trouble trouble)
{
	for (size_t i = 0; i < kernel_range_count; i++)
		if (kernel_ranges[i].trouble == trouble && kernel_range__holds(&kernel_ranges[i], NULL))
			return true;
	return false;
}
