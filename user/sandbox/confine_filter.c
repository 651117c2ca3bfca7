// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The reader's seccomp filter is an allow-list: new memory that is neither a file's nor executable,
 * writing to the one pipe, exiting. Opening a file fails with EACCES and does not kill: libdw looks
 * for supplementary debug files by itself, and works without them.
 */
#include "sandbox/confine_order.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

/* Call numbers of x86-64's other ABI (x32) are above all numbers in the list and fall to the list's end. */
#define DATA(field) (uint32_t) offsetof(struct seccomp_data, field)
#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, DATA(field))
#define ARGUMENT(n) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, DATA(args) + 8 * (n)) /* the lower half, little endian */
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, what)
#define ALLOW(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), RETURN(SECCOMP_RET_ALLOW)
#define DENY(number, error)                                                                                            \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), RETURN(SECCOMP_RET_ERRNO | ((error)&SECCOMP_RET_DATA))

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the lower half of an argument lies elsewhere on this machine"
#endif

int sandbox__filter(void)
{
	static const struct sock_filter code[] = {
	    LOAD(arch),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0),
	    RETURN(SECCOMP_RET_KILL_PROCESS),
	    LOAD(nr),
	    ALLOW(SYS_brk),
	    ALLOW(SYS_munmap),
	    ALLOW(SYS_mremap),
	    ALLOW(SYS_madvise),
	    ALLOW(SYS_exit),
	    ALLOW(SYS_exit_group),
	    ALLOW(SYS_rt_sigreturn),
	    ALLOW(SYS_restart_syscall),
	    ALLOW(SYS_futex),
	    ALLOW(SYS_getrandom),
	    ALLOW(SYS_sysinfo), /* glibc's qsort reads the memory size */
	    DENY(SYS_openat, EACCES),
	    DENY(SYS_readlinkat, EACCES),
#ifdef SYS_open /* not on arm64 */
	    DENY(SYS_open, EACCES),
	    DENY(SYS_readlink, EACCES),
#endif
	    /* write, to the pipe alone */
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 0, 4),
	    ARGUMENT(0),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CONFINE_PIPE, 0, 1),
	    RETURN(SECCOMP_RET_ALLOW),
	    RETURN(SECCOMP_RET_KILL_PROCESS),
	    /* mprotect, but nothing executable */
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 4),
	    ARGUMENT(2),
	    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 1, 0),
	    RETURN(SECCOMP_RET_ALLOW),
	    RETURN(SECCOMP_RET_KILL_PROCESS),
	    /* mmap, of no file and nothing executable */
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 5),
	    ARGUMENT(2),
	    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 3, 0),
	    ARGUMENT(3),
	    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, MAP_ANONYMOUS, 0, 1),
	    RETURN(SECCOMP_RET_ALLOW),
	    RETURN(SECCOMP_RET_KILL_PROCESS),
	};
	static const struct sock_fprog program = {.len = sizeof(code) / sizeof(*code),
						  .filter = (struct sock_filter *)code};

	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0))
		return -errno;
	return 0;
}
