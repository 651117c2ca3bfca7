/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The text of a summary of the lines that a test has written. */
#ifndef VAPRO_TESTS_SUMMARIZED_H
#define VAPRO_TESTS_SUMMARIZED_H

#include "parsed.h"
#include "report/summary.h"

/* Returns what a summary of all lines prints, allocated; all: with what it leaves out otherwise. */
static inline char *summarized(bool all)
{
	struct summary *summary = summary__new();
	const struct summary_options options = {.width = 100, .all = all};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(summary);
	assert_non_null(out);
	for (size_t i = line_count; i-- > 0;) {
		const char *why;
		cJSON *object = parsed(i);

		assert_int_equal(summary__add_record(summary, object, &why), 0);
		cJSON_Delete(object);
	}
	summary__print(summary, out, &options);
	summary__free(summary);
	fclose(out);
	return text;
}

#endif
