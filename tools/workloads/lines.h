/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Cache lines that a workload and an injector share, in a file that both map. A write removes the line from the
 * other's caches: this slows a core on the CPU, on any machine with two, without using that CPU.
 */
#ifndef VAPRO_WORKLOAD_LINES_H
#define VAPRO_WORKLOAD_LINES_H

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define LINES 4096

struct line {
	uint32_t next; /* link that the workload follows: each access waits for the previous one */
	uint32_t pad;
	volatile uint64_t written; /* written by the injector */
	uint64_t rest[6];
};

/* Maps all lines of a file, which `create` makes first. Exits with 1 on failure. */
static inline struct line *map_lines(const char *path, int create)
{
	int fd = open(path, O_RDWR | (create ? O_CREAT | O_TRUNC : 0), 0600);
	struct line *lines = MAP_FAILED;

	if (fd >= 0 && (!create || !ftruncate(fd, LINES * sizeof(*lines))))
		lines = mmap(NULL, LINES * sizeof(*lines), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (lines == MAP_FAILED) {
		perror(path);
		exit(1);
	}
	close(fd);
	return lines;
}

#endif
