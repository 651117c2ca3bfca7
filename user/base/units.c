// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/units.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Reads a plain number; *unit is what follows it and its spaces. */
static bool parse(const char *text, double *number, const char **unit)
{
	const char *digits = text + (*text == '+' || *text == '-');
	char *end;

	if (!isdigit((unsigned char)*digits) && !(*digits == '.' && isdigit((unsigned char)digits[1])))
		return false;
	if (digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X'))
		return false;
	errno = 0;
	*number = strtod(text, &end);
	if (errno == ERANGE || !isfinite(*number))
		return false;
	while (*end == ' ')
		end++;
	*unit = end;
	return true;
}

int units__number(const char *text, double *number)
{
	const char *unit;

	return parse(text, number, &unit) && !*unit ? 0 : -EINVAL;
}

int units__seconds(const char *text, double *seconds)
{
	const char *unit;

	if (!parse(text, seconds, &unit))
		return -EINVAL;
	if (!*unit || !strcmp(unit, "s"))
		return 0;
	/* divided, so that 10ms is the very double that 0.01 is */
	if (!strcmp(unit, "ms"))
		*seconds /= 1000;
	else if (!strcmp(unit, "m") || !strcmp(unit, "min"))
		*seconds *= 60;
	else if (!strcmp(unit, "h"))
		*seconds *= 3600;
	else
		return -EINVAL;
	return 0;
}

int units__bytes(const char *text, double *bytes)
{
	static const char letters[] = "KMGT";
	const char *unit, *letter;

	if (!parse(text, bytes, &unit))
		return -EINVAL;
	if (!*unit || !strcmp(unit, "B"))
		return 0;
	letter = strchr(letters, toupper((unsigned char)*unit));
	if (!letter || (unit[1] && strcasecmp(unit + 1, "iB") && strcasecmp(unit + 1, "B")))
		return -EINVAL;
	for (const char *at = letters; at <= letter; at++)
		*bytes *= 1024;
	return 0;
}

int units__share(const char *text, double *share)
{
	const char *unit;

	if (!parse(text, share, &unit) || (*unit && strcmp(unit, "%")))
		return -EINVAL;
	if (*unit)
		*share /= 100;
	return 0;
}

int units__percent(const char *text, double *percent)
{
	const char *unit;

	return parse(text, percent, &unit) && (!*unit || !strcmp(unit, "%")) ? 0 : -EINVAL;
}

void units__format_seconds(double seconds, char *text, size_t size)
{
	if (seconds > 0 && seconds < 1)
		snprintf(text, size, "%.15gms", seconds * 1000);
	else if (seconds > 0 && fmod(seconds, 3600) == 0)
		snprintf(text, size, "%.15gh", seconds / 3600);
	else if (seconds > 0 && fmod(seconds, 60) == 0)
		snprintf(text, size, "%.15gm", seconds / 60);
	else
		snprintf(text, size, "%.15gs", seconds);
}

void units__format_bytes(unsigned long long bytes, char *text, size_t size)
{
	const char *unit = "\0KMGT";

	while (bytes && bytes % 1024 == 0 && unit[1]) {
		bytes /= 1024;
		unit++;
	}
	snprintf(text, size, "%llu%.1s", bytes, unit);
}

void units__format_share(double share, char *text, size_t size)
{
	snprintf(text, size, "%.15g%%", share * 100);
}

void units__format_percent(double percent, char *text, size_t size)
{
	snprintf(text, size, "%.15g%%", percent);
}
