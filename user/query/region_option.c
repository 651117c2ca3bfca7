/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "query/region_option.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/json.h"

static bool parse_ranks(struct region_option *region, const char *text, size_t length)
{
	const char *at = text, *end = text + length;

	if (length == 3 && !memcmp(text, "all", 3))
		return true;
	while (at < end) {
		int32_t *range = region->ranks[region->range_count];
		char *next;
		long number;

		if (region->range_count == REGION_RANGES)
			return false;
		for (int i = 0; i < 2; i++) {
			if (!isdigit((unsigned char)*at))
				return false;
			number = strtol(at, &next, 10);
			if (number > INT32_MAX)
				return false;
			range[i] = (int32_t)number;
			if (!i)
				range[1] = range[0];
			at = next;
			if (i || at >= end || *at != '-')
				break;
			at++;
		}
		if (range[1] < range[0])
			return false;
		region->range_count++;
		if (at == end)
			return true;
		if (*at++ != ',')
			return false;
	}
	return false;
}

/* Parses a time of either kind; "" leaves *ns as it is. */
static bool parse_time(const char *text, uint64_t *ns, bool *relative, bool *absolute)
{
	double seconds;
	char *end;

	if (!*text)
		return true;
	if (json__parse_time(text, ns)) {
		*absolute = true;
		return true;
	}
	if (!isdigit((unsigned char)*text) && *text != '.')
		return false;
	seconds = strtod(text, &end);
	if (*end == 's')
		end++;
	if (*end || !(seconds >= 0 && seconds < 1e9))
		return false;
	*ns = (uint64_t)llround(seconds * 1e9);
	*relative = true;
	return true;
}

int region_option__parse(struct region_option *region, const char *text, char *err, size_t err_size)
{
	const char *at = strchr(text, '@'), *dots = at ? strstr(at, "..") : NULL;
	bool relative = false, absolute = false;
	char begin[64];

	*region = (struct region_option){.given = true};
	if (!dots || (size_t)(dots - at) > sizeof(begin)) {
		snprintf(err, err_size,
			 "invalid region '%s': expected RANKS@BEGIN..END, as in 8-15@12.5..20 or all@..30", text);
		return -EINVAL;
	}
	if (!parse_ranks(region, text, (size_t)(at - text))) {
		snprintf(err, err_size, "invalid ranks '%.*s': expected all, or a list as in 0-3,7", (int)(at - text),
			 text);
		return -EINVAL;
	}
	snprintf(begin, sizeof(begin), "%.*s", (int)(dots - at - 1), at + 1);
	if (!parse_time(begin, &region->begin_ns, &relative, &absolute) ||
	    !parse_time(dots + 2, &region->end_ns, &relative, &absolute)) {
		snprintf(err, err_size, "invalid time '%s': expected seconds since the begin, or as in the records",
			 at + 1);
		return -EINVAL;
	}
	if (relative && absolute) {
		snprintf(err, err_size, "'%s' has times of two kinds", at + 1);
		return -EINVAL;
	}
	if (dots[2] && region->end_ns <= region->begin_ns) {
		snprintf(err, err_size, "'%s' ends before it begins", at + 1);
		return -EINVAL;
	}
	region->relative = !absolute;
	return 0;
}

int region_option__span(struct region_option *region, const char *ranks, const struct time_option *time, char *text,
			size_t size, char *err, size_t err_size)
{
	int length;

	if (ranks && strchr(ranks, '@')) {
		snprintf(err, err_size, "'%s' has a time of its own: --since and --until take ranks alone, as in 0-3,7",
			 ranks);
		return -EINVAL;
	}
	length = snprintf(text, size, "%s@%s..%s", ranks ? ranks : "all", time->since ? time->since : "",
			  time->until ? time->until : "");
	if (length < 0 || (size_t)length >= size) {
		snprintf(err, err_size, "the region is too long");
		return -EINVAL;
	}
	return region_option__parse(region, text, err, err_size);
}

struct vapro_selection region_option__selection(const struct region_option *region)
{
	return (struct vapro_selection){
	    .ranks = region->range_count ? region->ranks : NULL,
	    .range_count = region->range_count,
	    .relative = region->relative,
	    .begin_ns = region->begin_ns,
	    .end_ns = region->end_ns,
	};
}
