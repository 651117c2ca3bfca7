/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "diagnose/kernel_threads.h"

#include <string.h>

/* Names begin so, in the kernel's sources up to 6.12 (kthread_create, kthread_run, smpboot threads, alloc_workqueue).
 */
static const struct {
	const char *name, *work;
} threads[] = {
    {"kdamond", "monitors accesses to memory (DAMON); its intervals are in /sys/kernel/mm/damon"},
    {"kworker/", "does deferred work of drivers and file systems"},
    {"ksoftirqd/", "handles soft interrupts, most often of network traffic; look at which devices interrupt that CPU"},
    {"rcu_", "ends grace periods of the kernel's own data (RCU); rcu_nocbs= moves its callbacks to other CPUs"},
    {"rcuo", "runs callbacks of the kernel's own data (RCU), away from the CPUs of rcu_nocbs="},
    {"kswapd", "frees memory; look at how much memory is left and who needs it"},
    {"kcompactd", "compacts memory for huge pages"},
    {"khugepaged", "joins pages into huge pages; its settings are in /sys/kernel/mm/transparent_hugepage/khugepaged"},
    {"ksmd", "merges equal pages; its settings are in /sys/kernel/mm/ksm"},
    {"migration/", "moves tasks between CPUs"},
    {"irq/", "handles the interrupts of a device; /proc/irq/*/smp_affinity moves them"},
    {"jbd2/", "writes the journal of a file system (ext4)"},
    {"xfsaild/", "writes a file system (XFS)"},
    {"btrfs-", "writes a file system (Btrfs)"},
    {"kauditd", "writes the audit log"},
    {"nfsd", "serves files of this node to others (NFS)"},
    {"rpciod", "talks to file servers (NFS)"},
    {"ptlrpcd", "talks to file servers (Lustre)"},
    {"kblockd", "does IO to disks"},
    {"loop", "does IO to a disk in a file"},
    {"md", "does IO to disks in a RAID"},
    {"napi/", "handles network traffic"},
    {"idle_inject/", "makes CPUs idle against heat"},
    {"cpuhp/", "takes CPUs in and out of use"},
    {"watchdog/", "looks for CPUs that hang"},
    {"khungtaskd", "looks for tasks that hang"},
    {"kthreadd", "starts threads of the kernel"},
    {"kcryptd", ""},
    {"dmcrypt_write", ""},
    {"oom_reaper", ""},
    {"writeback", ""},
    {"scsi_eh_", ""},
    {"usb-storage", ""},
};

/* Names that programs may have, too: a number follows, as in "md0_raid1" and "loop7". */
static bool is_numbered(const char *name)
{
	return !strcmp(name, "md") || !strcmp(name, "loop");
}

const char *kernel_threads__work(const struct result_interferer *task)
{
	if (task->relation != VAPRO_FOREIGN)
		return NULL;
	for (size_t i = 0; i < sizeof(threads) / sizeof(*threads); i++) {
		size_t length = strlen(threads[i].name);
		const char *rest = task->comm + length;

		if (!strncmp(task->comm, threads[i].name, length) &&
		    (!is_numbered(threads[i].name) || (*rest >= '0' && *rest <= '9')))
			return threads[i].work;
	}
	return NULL;
}
