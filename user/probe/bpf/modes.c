// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/bpf/modes.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe/bpf/sigkill_guard.h"
#include "target/process.h"

#define MULTI_RETURN 1	    /* BPF_F_UPROBE_MULTI_RETURN */
#define ENOTSUPP_KERNEL 524 /* a site the kernel will not probe; not in errno.h */
#define PMU "/sys/bus/event_source/devices/uprobe/"

const char *const attach_mode_name[ATTACH_MODES] = {
    [ATTACH_MODE_SESSION] = "session", [ATTACH_MODE_MULTI] = "multi", [ATTACH_MODE_PERF] = "perf"};

/* The attribute blocks of bpf(2) as the kernel's ABI has them. */
struct link_multi {
	uint32_t prog_fd, target_fd, attach_type, flags;
	uint64_t path, offsets, ref_ctr_offsets, cookies;
	uint32_t count, multi_flags, pid, pad;
};

struct link_perf {
	uint32_t prog_fd, target_fd, attach_type, flags;
	uint64_t cookie;
};

/* One half of a probe: its entry or its return, and their program. */
struct half {
	int program;
	uint32_t attach_type;
	bool returns;
};

/* Returns are linked before entries: a return without entry is ignored, an entry without return is a loss. */
static uint32_t halves_of(enum attach_mode mode, const struct mode_programs *programs, bool entry_only,
			  struct half halves[2])
{
	uint32_t type = mode == ATTACH_MODE_PERF ? BPF_PERF_EVENT : ATTACH_UPROBE_MULTI, count = 0;

	if (!entry_only && mode == ATTACH_MODE_SESSION) {
		halves[0] = (struct half){programs->session, ATTACH_UPROBE_SESSION, false};
		return 1;
	}
	if (!entry_only)
		halves[count++] = (struct half){programs->exited, type, true};
	halves[count++] = (struct half){programs->entry, type, false};
	return count;
}

static int multi_link(const struct half *half, const char *path, const uint64_t *offsets, const uint64_t *cookies,
		      uint32_t count, pid_t pid)
{
	struct link_multi attr = {
	    .prog_fd = (uint32_t)half->program,
	    .attach_type = half->attach_type,
	    .path = (uint64_t)(uintptr_t)path,
	    .offsets = (uint64_t)(uintptr_t)offsets,
	    .cookies = (uint64_t)(uintptr_t)cookies,
	    .count = count,
	    .multi_flags = half->returns ? MULTI_RETURN : 0,
	    .pid = (uint32_t)pid,
	};
	int spare = fcntl(0, F_DUPFD_CLOEXEC, 0);
	long fd;

	/* kernels before 6.11 use freed memory when they find no descriptor free */
	if (spare < 0 && errno == EMFILE)
		return -EMFILE;
	if (spare >= 0)
		close(spare);
	fd = syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));
	return fd < 0 ? -errno : (int)fd;
}

/* Reads a number by a format from a file of the uprobe PMU. */
static int pmu_number(const char *name, const char *format, unsigned int *number)
{
	char path[128];
	FILE *file;
	int found;

	snprintf(path, sizeof(path), PMU "%s", name);
	file = fopen(path, "re");
	if (!file)
		return -errno;
	found = fscanf(file, format, number);
	fclose(file);
	return found == 1 ? 0 : -EINVAL;
}

static int perf_link(const struct half *half, const char *path, uint64_t offset, uint64_t cookie, pid_t pid)
{
	struct perf_event_attr event = {
	    .size = sizeof(event), .config1 = (uint64_t)(uintptr_t)path, .config2 = offset, .sample_period = 1};
	struct link_perf attr = {
	    .prog_fd = (uint32_t)half->program, .attach_type = half->attach_type, .cookie = cookie};
	unsigned int bit = 0;
	int status = pmu_number("type", "%u", &event.type), event_fd;
	long fd;

	if (!status)
		status = pmu_number("format/retprobe", "config:%u", &bit);
	if (status)
		return status;
	event.config = half->returns ? 1ULL << bit : 0;
	/* the program runs on every CPU: the one named here only says where the unused event lives */
	event_fd = (int)syscall(SYS_perf_event_open, &event, pid ? pid : -1, pid ? -1 : 0, -1, PERF_FLAG_FD_CLOEXEC);
	if (event_fd < 0)
		return -errno;
	attr.target_fd = (uint32_t)event_fd;
	fd = syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));
	status = fd < 0 ? -errno : (int)fd;
	close(event_fd); /* the link holds it */
	return status;
}

/*
 * Kernels refuse a site with these errors: an instruction that may not be moved (ENOTSUPP; EINVAL on
 * arm64), one they cannot decode, an offset past the file's end.
 */
static bool is_refusal(int status)
{
	return status == -ENOTSUPP_KERNEL || status == -EOPNOTSUPP || status == -ENOEXEC || status == -EINVAL ||
	       status == -EIO;
}

/* One refused site fails a whole link: halves of the list are tried until each is named. */
static int find_refused(const struct half *half, const struct kernel_sites *sites, uint32_t first, uint32_t count,
			bool *refused)
{
	int fd = multi_link(half, sites->path, sites->offsets + first, sites->cookies + first, count, sites->pid);
	int status;

	if (fd >= 0)
		return close(fd);
	if (!is_refusal(fd))
		return fd;
	if (count == 1) {
		refused[first] = true;
		return 0;
	}
	status = find_refused(half, sites, first, count / 2, refused);
	return status ? status : find_refused(half, sites, first + count / 2, count - count / 2, refused);
}

static int open_multi(const struct half *halves, uint32_t half_count, const struct kernel_sites *sites,
		      struct kernel_link *link)
{
	for (uint32_t i = 0; i < half_count; i++) {
		int fd = multi_link(&halves[i], sites->path, sites->offsets, sites->cookies, sites->count, sites->pid);

		if (fd < 0)
			return fd;
		link->fds[link->count++] = fd;
	}
	return 0;
}

static int open_multi_but_refused(const struct half *halves, uint32_t half_count, const struct kernel_sites *sites,
				  bool *refused, struct kernel_link *link)
{
	uint64_t *offsets = calloc(sites->count, sizeof(*offsets)), *cookies = calloc(sites->count, sizeof(*cookies));
	struct kernel_sites chosen = *sites;
	int status = offsets && cookies ? find_refused(halves, sites, 0, sites->count, refused) : -ENOMEM;

	chosen.offsets = offsets;
	chosen.cookies = cookies;
	chosen.count = 0;
	for (uint32_t i = 0; !status && i < sites->count; i++)
		if (!refused[i]) {
			offsets[chosen.count] = sites->offsets[i];
			cookies[chosen.count++] = sites->cookies[i];
		}
	if (!status)
		status = chosen.count ? open_multi(halves, half_count, &chosen, link) : -EOPNOTSUPP;
	free(offsets);
	free(cookies);
	return status;
}

static int open_perf(const struct half *halves, uint32_t half_count, const struct kernel_sites *sites, bool *refused,
		     struct kernel_link *link)
{
	for (uint32_t i = 0; i < half_count; i++)
		for (uint32_t j = 0; j < sites->count; j++) {
			int fd;

			if (refused[j])
				continue;
			fd = perf_link(&halves[i], sites->path, sites->offsets[j], sites->cookies[j], sites->pid);
			if (fd >= 0)
				link->fds[link->count++] = fd;
			else if (is_refusal(fd) && !i)
				refused[j] = true;
			else
				return fd;
		}
	return link->count ? 0 : -EOPNOTSUPP;
}

struct opening {
	enum attach_mode mode;
	const struct half *halves;
	uint32_t half_count;
	const struct kernel_sites *sites;
	bool *refused;
	struct kernel_link *link;
};

static int close_all(void *ctx)
{
	struct kernel_link *link = ctx;

	while (link->count)
		close(link->fds[--link->count]);
	return 0;
}

static int open_all(void *ctx)
{
	const struct opening *opening = ctx;
	struct kernel_link *link = opening->link;
	int status;

	if (opening->mode == ATTACH_MODE_PERF) {
		status = open_perf(opening->halves, opening->half_count, opening->sites, opening->refused, link);
	} else {
		status = open_multi(opening->halves, opening->half_count, opening->sites, link);
		if (is_refusal(status) && !link->count)
			status = open_multi_but_refused(opening->halves, opening->half_count, opening->sites,
							opening->refused, link);
	}
	if (status)
		close_all(link);
	return status;
}

int modes__open(enum attach_mode mode, const struct mode_programs *programs, const struct kernel_sites *sites,
		struct kernel_link **out)
{
	struct half halves[2];
	uint32_t half_count = halves_of(mode, programs, sites->entry_only, halves);
	size_t fds = mode == ATTACH_MODE_PERF ? (size_t)half_count * sites->count : half_count;
	struct kernel_link *link = calloc(1, sizeof(*link) + fds * sizeof(link->fds[0]));
	bool *refused = calloc(sites->count, sizeof(*refused));
	int status = -ENOMEM;

	*out = NULL;
	if (!link || !refused)
		goto out;
	link->mode = mode;
	link->pid = sites->pid;
	status = sigkill_guard__run(open_all, &(struct opening){mode, halves, half_count, sites, refused, link});
	if (sites->refused)
		memcpy(sites->refused, refused, sites->count * sizeof(*refused));
out:
	free(refused);
	if (status) {
		free(link);
		return status;
	}
	*out = link;
	return 0;
}

void modes__close(struct kernel_link *link)
{
	if (link)
		sigkill_guard__run(close_all, link);
	free(link);
}

/* Rungs are tried on this function; it has no other use. */
__attribute__((noinline)) static void tried_function(void)
{
	__asm__ volatile("" ::: "memory");
}

/* A program that does nothing. */
static int empty_program(uint32_t attach_type)
{
	static const struct bpf_insn nothing[] = {
	    {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
	    {.code = BPF_JMP | BPF_EXIT},
	};
	LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = (enum bpf_attach_type)attach_type);
	int fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "vapro_try", "GPL", nothing, sizeof(nothing) / sizeof(nothing[0]),
			       &options);

	return fd < 0 ? -errno : fd;
}

static int try_link(enum attach_mode mode, const struct process *self, int program)
{
	const struct mode_programs programs = {.session = program, .entry = program, .exited = program};
	const struct process_mapping *mapping = process__mapping_at(self, (uint64_t)(uintptr_t)tried_function);
	uint64_t offset, cookie = 0;
	struct kernel_sites sites = {
	    .path = "/proc/self/exe", .offsets = &offset, .cookies = &cookie, .count = 1, .pid = getpid()};
	struct kernel_link *link;
	int status;

	if (!mapping)
		return -ENOENT;
	offset = (uint64_t)(uintptr_t)tried_function - mapping->start + mapping->offset;
	tried_function(); /* brings its page into memory */
	status = modes__open(mode, &programs, &sites, &link);
	if (!status)
		modes__close(link);
	return status;
}

int modes__try(enum attach_mode mode, char *reason, size_t reason_size)
{
	static const char *const since[ATTACH_MODES] = {[ATTACH_MODE_SESSION] = "uprobe sessions came with kernel 6.13",
							[ATTACH_MODE_MULTI] = "uprobe_multi links came with kernel 6.6",
							[ATTACH_MODE_PERF] = "perf uprobe links came with kernel 5.15"};
	uint32_t type = mode == ATTACH_MODE_SESSION ? ATTACH_UPROBE_SESSION
			: mode == ATTACH_MODE_MULTI ? ATTACH_UPROBE_MULTI
						    : 0;
	struct process *self = NULL;
	int program = empty_program(type), status = program < 0 ? program : 0;
	bool loaded = !status, denied;

	if (!status)
		status = process__read(getpid(), &self, reason, reason_size);
	if (!status)
		status = try_link(mode, self, program);
	denied = status == -EPERM || status == -EACCES;
	if (status)
		snprintf(reason, reason_size, "the kernel refuses %s: %s (%s)",
			 loaded ? "the link" : "an empty program", strerror(-status),
			 !denied		    ? since[mode]
			 : mode == ATTACH_MODE_PERF ? "it needs CAP_SYS_ADMIN"
						    : "it needs CAP_BPF and CAP_PERFMON");
	process__free(self);
	if (program >= 0)
		close(program);
	return status;
}

int modes__filters_by_thread(void)
{
	const uint64_t offset = 0, cookie = 0;
	struct half half = {.program = empty_program(ATTACH_UPROBE_MULTI), .attach_type = ATTACH_UPROBE_MULTI};
	int status;

	if (half.program < 0)
		return half.program;
	/* the kernel that mended the filter also refuses a pid of -1, before it looks at the path */
	status = multi_link(&half, "/", &offset, &cookie, 1, -1);
	close(half.program);
	if (status >= 0)
		return close(status);
	return status == -EINVAL ? 0 : status == -EBADF || status == -ESRCH ? 1 : status;
}
