// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/report_output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/exit_codes.h"
#include "capture/output_file.h"

#define PERMISSIONS 0640 /* as all output */

/* Returns whether a file may be replaced: it is new, empty, no regular file, or what the same command wrote. */
static bool may_replace(const char *path, const char *begin)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC);
	char bytes[1024]; /* longer than any first line */
	struct stat status;
	ssize_t got;
	bool may;

	if (fd < 0)
		return errno == ENOENT || errno == ENXIO ||
		       errno == ELOOP; /* the last two are explained when it is opened */
	may = !fstat(fd, &status) && !S_ISREG(status.st_mode);
	got = may ? 0 : read(fd, bytes, sizeof(bytes));
	close(fd);
	return may || !got || (got >= (ssize_t)strlen(begin) && !memcmp(bytes, begin, strlen(begin)));
}

FILE *report_output__open(const char *command, const char *path, const char *begin)
{
	struct stat status;
	FILE *file;
	int fd;

	if (!strcmp(path, "-"))
		return stdout;
	if (!may_replace(path, begin)) {
		fprintf(stderr, "vapro %s: %s exists and is no report: it is left as it is; choose another name\n",
			command, path);
		return NULL;
	}
	fd = output_file__open(path, OUTPUT_FILE_REPLACE, PERMISSIONS, &status);
	/* a reader of a FIFO is waited for: nothing else depends on this program */
	if (fd >= 0)
		fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	file = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (!file)
		fprintf(stderr, "vapro %s: cannot write %s: %s\n", command, path, output_file__reason(errno));
	return file;
}

int report_output__close(const char *command, FILE *file, const char *path, int ret)
{
	bool standard = file == stdout;

	errno = 0;
	if ((standard ? fflush(file) : fclose(file)) && !ret)
		ret = errno ? -errno : -EIO;
	if (ret) {
		fprintf(stderr, "vapro %s: %s could not be written: %s\n", command, standard ? "standard output" : path,
			strerror(-ret));
		return EXIT_FAILED;
	}
	if (!standard)
		fprintf(stderr, "vapro %s: wrote %s\n", command, path);
	return EXIT_OK;
}
