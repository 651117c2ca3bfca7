// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/check_disk.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#define GIB (1024.0 * 1024 * 1024)
#define LITTLE_GIB 1 /* a job of some hundred ranks and some hours writes so much */

int check_disk__set(void *ctx, const struct option_row *row, const char *value, const char *prefix, char *err,
		    size_t err_size)
{
	struct check_disk *disk = ctx;

	(void)prefix;
	(void)err;
	(void)err_size;
	if (!strcmp(row->name, "output") && strcmp(value, "-") != 0) /* - is standard output */
		snprintf(disk->output, sizeof(disk->output), "%s", value);
	else if (!strcmp(row->name, "capture"))
		snprintf(disk->capture, sizeof(disk->capture), "%s", value);
	return 0;
}

bool check_disk__room(const char *file, char *text, size_t size)
{
	const char *slash = strrchr(file, '/');
	char folder[CHECK_DISK_PATH] = ".";
	struct statvfs disk;
	double free_gib;

	if (slash)
		snprintf(folder, sizeof(folder), "%.*s", (int)(slash - file) + 1, file);
	if (statvfs(folder, &disk)) {
		snprintf(text, size, "%s: %s", folder, strerror(errno));
		return false;
	}
	free_gib = (double)disk.f_bavail * (double)disk.f_frsize / GIB;
	snprintf(text, size, "%.1f GiB free %s%s%s", free_gib, *file ? "for " : "in the current folder", file,
		 free_gib < LITTLE_GIB ? ": little for the records and captures of a long run" : "");
	return free_gib >= LITTLE_GIB;
}
