// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/from_blocks.h"

#include "report/summary.h"

#define SENTENCE 640

void from_blocks__say(const char *command, const struct source_blocks *blocks, struct summary *summary)
{
	char text[4][SENTENCE] = {"", "", "", ""};
	struct source_counts counts;

	source_blocks__counts(blocks, &counts);
	if (counts.missing)
		snprintf(text[0], SENTENCE, "%llu blocks are missing in the stream: fragments of that time are missing",
			 (unsigned long long)counts.missing);
	if (counts.refused)
		snprintf(text[1], SENTENCE, "%llu block%s refused; the first one: %s",
			 (unsigned long long)counts.refused, counts.refused == 1 ? " was" : "s were", counts.refusal);
	if (counts.overfull)
		snprintf(text[2], SENTENCE,
			 "windows went without nodes whose blocks come later in the stream: a larger --memory-cap of "
			 "vapro analyze waits for them");
	if (counts.running)
		snprintf(text[3], SENTENCE, "job %s has not ended on all of its nodes: this is its begin",
			 source_blocks__job(blocks)->job);
	for (size_t i = 0; i < sizeof(text) / sizeof(*text); i++) {
		if (!*text[i])
			continue;
		fprintf(stderr, "vapro %s: %s\n", command, text[i]);
		if (summary)
			summary__add_trouble(summary, text[i]);
	}
}
