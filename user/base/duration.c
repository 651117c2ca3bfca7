// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/duration.h"

#include <stdio.h>

char *duration__text(double seconds, char *buf, size_t size)
{
	unsigned long whole = (unsigned long)(seconds + 0.5);

	if (seconds < 0.0000995)
		snprintf(buf, size, "%.3g us", seconds * 1e6);
	else if (seconds < 0.0995)
		snprintf(buf, size, "%.3g ms", seconds * 1000);
	else if (seconds < 9.995)
		snprintf(buf, size, "%.2f s", seconds);
	else if (seconds < 119.95)
		snprintf(buf, size, "%.1f s", seconds);
	else if (seconds < 7200 && !(whole % 60))
		snprintf(buf, size, "%lu min", whole / 60);
	else if (seconds < 7200)
		snprintf(buf, size, "%lu min %lu s", whole / 60, whole % 60);
	else
		snprintf(buf, size, "%lu h %lu min", whole / 3600, whole / 60 % 60);
	return buf;
}
