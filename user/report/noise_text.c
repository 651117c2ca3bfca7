// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/noise_text.h"

#include <stdio.h>
#include <string.h>

#include "base/printable.h"

char *noise_text__task(const char *what, const char *relation, uint64_t pid, char *text)
{
	static const struct {
		const char *relation, *words;
	} whose[] = {{"monitor", "of vapro"}, {"other_job", "of another watched job"}};
	char process[32] = "", aside[80] = "";
	const char *words = "";

	for (size_t i = 0; relation && i < sizeof(whose) / sizeof(*whose); i++) {
		if (!strcmp(relation, whose[i].relation))
			words = whose[i].words;
	}
	if (pid)
		snprintf(process, sizeof(process), "pid %llu", (unsigned long long)pid);
	if (pid || *words)
		snprintf(aside, sizeof(aside), " (%s%s%s)", process, pid && *words ? ", " : "", words);
	snprintf(text, NOISE_TASK_SIZE, "%.47s%s", what ? what : "?", aside);
	return printable(text);
}
