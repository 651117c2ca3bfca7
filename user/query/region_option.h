/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * --region RANKS@BEGIN..END: a region chosen by hand (VAPRO (PPoPP'22) section 3.5). RANKS is `all` or a list as
 * in the records (0-3,7); BEGIN and END are seconds since the begin of the input, or times as in the
 * records (RFC 3339, UTC); an empty one is the begin or the end of the input.
 */
#ifndef VAPRO_REGION_OPTION_H
#define VAPRO_REGION_OPTION_H

#include <vapro/analysis.h>

#define REGION_RANGES 256

struct region_option {
	bool given;
	int32_t ranks[REGION_RANGES][2];
	uint32_t range_count;
	bool relative;
	uint64_t begin_ns, end_ns;
};

/* Returns 0, or -EINVAL with a sentence in err. */
int region_option__parse(struct region_option *region, const char *text, char *err, size_t err_size);

/* A time span as options give it: --since and --until, either may be NULL. */
struct time_option {
	const char *since, *until;
};

#define SINCE_HELP "begin of the time: seconds since the begin, or a time as in the records (the begin)"
#define UNTIL_HELP "end of the time, in the same form (the end)"

/*
 * Sets a region of ranks (NULL: all) in the time of the options. text, of size bytes, is the region as
 * region_option__parse() has it. Returns 0, or -EINVAL with a sentence in err.
 */
int region_option__span(struct region_option *region, const char *ranks, const struct time_option *time, char *text,
			size_t size, char *err, size_t err_size);

/* Returns the region as a selection; its ranks stay the option's. */
struct vapro_selection region_option__selection(const struct region_option *region);

#endif
