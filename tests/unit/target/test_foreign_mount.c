// SPDX-License-Identifier: GPL-2.0-or-later
/* File systems that users mounted, by the kernel's tables of mounts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

#include "target/foreign_mount.h"

static enum foreign_mount search(unsigned int device)
{
	char table[] = "21 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
		       "22 21 0:30 / /nfs rw shared:2 master:3 - nfs4 server:/export rw,user_id=7\n"
		       "23 21 0:31 / /cvmfs rw - fuse cvmfs2 rw,user_id=0,group_id=0,allow_other\n"
		       "24 21 0:32 / /home/a/x\\040y rw - fuse.sshfs a@b: rw,user_id=1000,group_id=1000,allow_other\n"
		       "no mount at all\n"
		       "25 21 0:33 / /bare rw\n"
		       "26 21 0:34 / /odd rw - fuse";

	return foreign_mount__search(table, makedev(0, device));
}

static void test_search(void **state)
{
	(void)state;
	assert_int_equal(search(30), MOUNT_TRUSTED);
	assert_int_equal(search(31), MOUNT_TRUSTED);
	assert_int_equal(search(32), MOUNT_OF_USER);
	assert_int_equal(search(33), MOUNT_TRUSTED);
	assert_int_equal(search(34), MOUNT_OF_USER);
	assert_int_equal(search(35), MOUNT_MISSING);
}

static bool has(uint64_t device)
{
	struct process process = {.pid = getpid()};
	struct process_mapping mapping = {.device = device, .inode = 1, .path = "/x"};

	return foreign_mount__has(&process, &mapping);
}

static void test_has(void **state)
{
	struct stat st;
	int file = memfd_create("memory", MFD_CLOEXEC);

	(void)state;
	assert_int_equal(fstat(file, &st), 0);
	assert_false(has(st.st_dev));
	assert_false(has(makedev(253, 7))); /* a block device */
	assert_true(has(makedev(0, 0xfffff)));
	assert_int_equal(stat("/proc/self/stat", &st), 0);
	for (int i = 0; i < 2; i++) /* searched, then remembered */
		assert_false(has(st.st_dev));
	close(file);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {cmocka_unit_test(test_search), cmocka_unit_test(test_has)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
