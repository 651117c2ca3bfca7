// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/terminal.h"

#include <stdlib.h>
#include <sys/ioctl.h>

#define USUAL 80
#define LEAST 40
#define MOST 1000

unsigned terminal__width(int fd)
{
	const char *columns = getenv("COLUMNS");
	unsigned long width = columns ? strtoul(columns, NULL, 10) : 0;
	struct winsize size;

	if (!width && !ioctl(fd, TIOCGWINSZ, &size))
		width = size.ws_col;
	if (!width)
		width = USUAL;
	return width < LEAST ? LEAST : width > MOST ? MOST : (unsigned)width;
}
