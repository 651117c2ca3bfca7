// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Prints the pages of code of processes that differ from their file, as a page with a breakpoint does.
 * For guests, which have no Python; text_of() of tests/live/live.py does the same.
 *
 *   changed_text PID...      lines "PID FILE+0xOFFSET"; exits with 1 where a process cannot be read
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE 4096

static bool compare(int memory, const char *pid, const char *path, unsigned long first, unsigned long last,
		    off_t offset)
{
	unsigned char found[PAGE], wanted[PAGE];
	int file = open(path, O_RDONLY);

	if (file < 0) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return false;
	}
	for (; first < last; first += PAGE, offset += PAGE) {
		ssize_t size;

		memset(wanted, 0, PAGE);
		size = pread(file, wanted, PAGE, offset);
		if (size <= 0 || pread(memory, found, PAGE, (off_t)first) != PAGE) {
			fprintf(stderr, "%s %s: cannot read\n", pid, path);
			close(file);
			return false;
		}
		if (memcmp(found, wanted, (size_t)size) != 0)
			printf("%s %s+0x%lx\n", pid, path, (unsigned long)offset);
	}
	close(file);
	return true;
}

static bool process(const char *pid)
{
	char path[64], line[4096], file[4096], permissions[8];
	unsigned long first, last, offset;
	bool good = true;
	FILE *maps;
	int memory;

	snprintf(path, sizeof(path), "/proc/%s/maps", pid);
	maps = fopen(path, "r");
	snprintf(path, sizeof(path), "/proc/%s/mem", pid);
	memory = open(path, O_RDONLY);
	if (!maps || memory < 0) {
		fprintf(stderr, "%s: %s\n", pid, strerror(errno));
		good = false;
	}
	while (good && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %4095s", &first, &last, permissions, &offset, file) == 5 &&
		    permissions[2] == 'x' && file[0] == '/')
			good = compare(memory, pid, file, first, last, (off_t)offset);
	if (maps)
		fclose(maps);
	if (memory >= 0)
		close(memory);
	return good;
}

int main(int argc, char **argv)
{
	bool good = argc > 1;

	for (int i = 1; i < argc; i++)
		good &= process(argv[i]);
	return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
