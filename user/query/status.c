// SPDX-License-Identifier: GPL-2.0-or-later
#include "query/status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GREETING "vapro/1 status\n"
#define INTERVAL "interval_ms "
#define REPORT "vapro/1 report\n\n"
#define DIAGNOSE "vapro/1 d" /* how a request of protocol.h begins, and no other */

/* Parses the interval's digits, without a newline. Returns 0 or -EINVAL. */
static int parse_interval(const char *text, size_t size, unsigned *interval_ms)
{
	unsigned long number = 0;

	if (!size || size > 9)
		return -EINVAL;
	for (size_t i = 0; i < size; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -EINVAL;
		number = 10 * number + (unsigned long)(text[i] - '0');
	}
	if (number && (number < STATUS_LEAST_MS || number > STATUS_MOST_MS))
		return -EINVAL;
	*interval_ms = (unsigned)number;
	return 0;
}

/* Parses a request for a report, which has no parameters. */
static int parse_report(const char *text, size_t size, char *err, size_t err_size)
{
	size_t length = sizeof(REPORT) - 1;

	if (size <= length && !memcmp(text, REPORT, size))
		return size < length ? -EAGAIN : 0;
	snprintf(err, err_size, "an empty line is expected after the request for a report, and nothing else");
	return -EINVAL;
}

int status_request__parse(const char *text, size_t size, struct status_request *request, char *err, size_t err_size)
{
	static const char head[] = GREETING INTERVAL;
	size_t length = sizeof(head) - 1, report = sizeof(REPORT) - 2;
	const char *line = text + length, *stop;

	*request = (struct status_request){.report = false};
	if (size >= strlen(DIAGNOSE) && !memcmp(text, DIAGNOSE, strlen(DIAGNOSE))) {
		request->diagnose = true;
		return query_request__parse(text, size, &request->query, err, err_size);
	}
	if (!memcmp(text, REPORT, size < report ? size : report) && memcmp(text, head, size < length ? size : length)) {
		request->report = true;
		return parse_report(text, size, err, err_size);
	}
	if (memcmp(text, head, size < length ? size : length)) {
		snprintf(err, err_size, "this is not a request that this vaprod understands");
		return -EINVAL;
	}
	stop = size > length ? memchr(line, '\n', size - length) : NULL;
	if (stop && parse_interval(line, (size_t)(stop - line), &request->interval_ms)) {
		snprintf(err, err_size, "the interval is not 0 or %d to %d ms", STATUS_LEAST_MS, STATUS_MOST_MS);
		return -EINVAL;
	}
	if (stop && stop + 1 < text + size) {
		if (stop[1] == '\n' && stop + 2 == text + size)
			return 0;
		snprintf(err, err_size, "an empty line is expected after the interval, and nothing else");
		return -EINVAL;
	}
	if (size < STATUS_REQUEST_MAX)
		return -EAGAIN;
	snprintf(err, err_size, "the request is longer than %d bytes", STATUS_REQUEST_MAX);
	return -EINVAL;
}

int status_request__format(const struct status_request *request, char *buf, size_t size)
{
	int length = request->report ? snprintf(buf, size, REPORT)
				     : snprintf(buf, size, GREETING INTERVAL "%u\n\n", request->interval_ms);

	return length < 0 || (size_t)length >= size ? -EINVAL : length;
}
