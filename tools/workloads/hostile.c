// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Processes whose files make others wait, for tests of what waits for them. Each maps a library executable, without a
 * call of it, and prints {"ready":true,"pid":P}. All end after SECONDS.
 *
 *   hostile map LIBRARY SECONDS           nothing else
 *   hostile lease LIBRARY SECONDS         holds a write lease on it
 *   hostile evict LIBRARY SECONDS         drops its pages from the page cache, in a loop
 *   hostile touch LIBRARY SECONDS         changes its times each second
 *   hostile held LIBRARY SECONDS HOLD     a copy of it on overlayfs above a FUSE server that holds each OPEN and READ
 *                                         for HOLD s, 0: for ever; in a user namespace unless it is root's
 *   hostile direct LIBRARY SECONDS HOLD   the same without overlayfs
 *
 * FUSE needs the device FUSE_DEVICE (environment; /dev/fuse by default) and an empty current directory. Exit code 77
 * where it cannot be mounted.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NAME "libmpi.so.40"
#define SKIP 77

enum { ROOT = 1, LIBRARY = 2 };

static char *data;
static long size;
static volatile int *armed;
static int hold_s;

static void fail(const char *what, int code)
{
	perror(what);
	exit(code);
}

static void write_text(const char *path, const char *text)
{
	int file = open(path, O_WRONLY | O_CLOEXEC);

	if (file < 0 || write(file, text, strlen(text)) < 0)
		fail(path, SKIP);
	close(file);
}

static void fill_attributes(struct fuse_attr *attributes, bool directory)
{
	attributes->ino = directory ? ROOT : LIBRARY;
	attributes->mode = directory ? S_IFDIR | 0755 : S_IFREG | 0755;
	attributes->nlink = 1;
	attributes->size = directory ? 0 : (uint64_t)size;
	attributes->blksize = 4096;
	attributes->blocks = (attributes->size + 511) / 512;
}

/* Returns whether a request is to be answered, after the hold. */
static bool hold(void)
{
	if (!*armed)
		return true;
	if (!hold_s)
		return false; /* other requests go on: this program could not even exit without the answer to its FLUSH
			       */
	sleep((unsigned int)hold_s);
	return true;
}

/* Fills the answer's body and adds its size. Returns whether there is an answer. */
static bool answer(const struct fuse_in_header *in, struct fuse_out_header *out, void *body)
{
	const struct fuse_read_in *part = (const void *)(in + 1);
	struct fuse_entry_out *entry = body;
	struct fuse_attr_out *attributes = body;
	struct fuse_init_out *init = body;
	struct fuse_open_out *opened = body;
	struct fuse_statfs_out *status = body;
	long bytes;

	switch (in->opcode) {
	case FUSE_INIT:
		init->major = 7;
		init->minor = 31;
		init->max_readahead = init->max_write = 4096;
		init->max_background = 8;
		out->len += sizeof(*init);
		break;
	case FUSE_LOOKUP:
		if (strcmp((const char *)(in + 1), NAME)) {
			out->error = -ENOENT;
			break;
		}
		entry->nodeid = LIBRARY;
		entry->entry_valid = entry->attr_valid = 1000;
		fill_attributes(&entry->attr, false);
		out->len += sizeof(*entry);
		break;
	case FUSE_GETATTR:
		attributes->attr_valid = 1000;
		fill_attributes(&attributes->attr, in->nodeid == ROOT);
		out->len += sizeof(*attributes);
		break;
	case FUSE_OPEN:
		if (!hold())
			return false;
		/* fall through */
	case FUSE_OPENDIR:
		opened->fh = 1;
		out->len += sizeof(*opened);
		break;
	case FUSE_READ:
		if (!hold())
			return false;
		bytes = (long)part->offset < size ? size - (long)part->offset : 0;
		bytes = bytes < (long)part->size ? bytes : (long)part->size;
		memcpy(body, data + part->offset, (size_t)bytes);
		out->len += (uint32_t)bytes;
		break;
	case FUSE_STATFS:
		status->st.bsize = 4096;
		status->st.namelen = 255;
		out->len += sizeof(*status);
		break;
	case FUSE_READDIR:
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
	case FUSE_FLUSH:
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
		return false;
	default:
		out->error = -ENOSYS;
	}
	return true;
}

static void serve(int device)
{
	static char request[1 << 21], reply[1 << 18];

	for (;;) {
		struct fuse_in_header *in = (void *)request;
		struct fuse_out_header *out = (void *)reply;

		if (read(device, request, sizeof(request)) < 0) {
			if (errno == EINTR || errno == ENOENT)
				continue;
			_exit(0);
		}
		memset(reply, 0, 4096);
		out->unique = in->unique;
		out->len = sizeof(*out);
		if (answer(in, out, out + 1) && write(device, reply, out->len) < 0 && errno != ENOENT)
			perror("reply");
	}
}

static void read_library(const char *path)
{
	int library = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (library < 0 || fstat(library, &st))
		fail(path, 1);
	size = st.st_size;
	data = malloc((size_t)size);
	if (!data || read(library, data, (size_t)size) != size)
		fail(path, 1);
	close(library);
}

/* Makes the mounts in name spaces of this process. root makes them as itself. */
static int mount_all(const char *seconds, bool overlay)
{
	const char *node = getenv("FUSE_DEVICE") ? getenv("FUSE_DEVICE") : "/dev/fuse";
	static const char *const names[] = {"lower", "upper", "work", "merged"};
	char top[400], path[500], map[64], options[2000];
	uid_t user = getuid();
	gid_t group = getgid();
	int device;

	if (!getcwd(top, sizeof(top)))
		fail("directory", 1);
	if (unshare(CLONE_NEWNS | (user ? CLONE_NEWUSER : 0)))
		fail("name spaces", SKIP);
	if (user) {
		snprintf(map, sizeof(map), "0 %u 1", user);
		write_text("/proc/self/setgroups", "deny");
		write_text("/proc/self/uid_map", map);
		snprintf(map, sizeof(map), "0 %u 1", group);
		write_text("/proc/self/gid_map", map);
	}
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) || mount("none", top, "tmpfs", 0, NULL))
		fail("tmpfs", SKIP);
	for (int i = 0; i < 4; i++) {
		snprintf(path, sizeof(path), "%s/%s", top, names[i]);
		mkdir(path, 0755);
	}
	device = open(node, O_RDWR | O_CLOEXEC);
	if (device < 0)
		fail(node, SKIP);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", device);
	snprintf(path, sizeof(path), "%s/lower", top);
	if (mount("fuse", path, "fuse", MS_NOSUID | MS_NODEV, options))
		fail("fuse", SKIP);
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve(device);
	}
	close(device);
	alarm((unsigned int)atoi(seconds)); /* ends this process, and so the server */
	if (overlay) {
		snprintf(options, sizeof(options), "lowerdir=%s/lower,upperdir=%s/upper,workdir=%s/work%s", top, top,
			 top, user ? ",userxattr" : "");
		snprintf(path, sizeof(path), "%s/merged", top);
		if (mount("overlay", path, "overlay", 0, options))
			fail("overlay", SKIP);
	}
	strcat(path, "/" NAME);
	device = open(path, O_RDONLY | O_CLOEXEC);
	if (device < 0)
		fail(path, 1);
	*armed = 1;
	return device;
}

static void misbehave(const char *kind, int file, const char *path)
{
	if (!strcmp(kind, "lease")) {
		signal(SIGIO, SIG_IGN); /* the request to give it up */
		if (fcntl(file, F_SETLEASE, F_WRLCK))
			fail("lease", SKIP);
	}
	printf("{\"ready\":true,\"pid\":%d}\n", getpid());
	fflush(stdout);
	while (!strcmp(kind, "evict"))
		posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
	while (!strcmp(kind, "touch")) {
		utimes(path, NULL);
		sleep(1);
	}
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	const char *kind = argc > 3 ? argv[1] : "";
	bool overlay = !strcmp(kind, "held");
	struct stat st;
	int file;

	if (argc < 4 || ((overlay || !strcmp(kind, "direct")) && argc < 5)) {
		fprintf(stderr, "usage: hostile map|lease|evict|touch|held|direct LIBRARY SECONDS [HOLD]\n");
		return 2;
	}
	alarm((unsigned int)atoi(argv[3]));
	if (argc > 4) {
		hold_s = atoi(argv[4]);
		armed = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		read_library(argv[2]);
		file = mount_all(argv[3], overlay);
	} else {
		file = open(argv[2], O_RDONLY | O_CLOEXEC);
	}
	if (file < 0 || fstat(file, &st))
		fail(argv[2], 1);
	if (!strcmp(kind, "evict"))
		fsync(file); /* dirty pages are not dropped */
	if (mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0) == MAP_FAILED)
		fail("mmap", 1);
	misbehave(kind, file, argv[2]);
}
