/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report.h"

#include <string.h>

unsigned report__papers(const struct run *runs, size_t count, FILE *out)
{
	unsigned demanded = 0, missed = 0;

	for (size_t i = 0; i < count; i++) {
		const struct run *run = &runs[i];
		const struct paper *paper = papers__find(run->at->kind);
		const char *verdict = !run->paper.judged ? "free" : run->paper.good ? "ok" : "MISS";

		if (!paper)
			continue;
		if (!demanded++)
			fprintf(out, "\n%-12s %-9s %4s  %-42s %-20s %-4s  found, and what is missing\n", "papers",
				"mode", "seed", "case study", "wanted", "");
		if (run->failed)
			verdict = "FAIL";
		missed += run->failed || (run->paper.judged && !run->paper.good);
		fprintf(out, "%-12s %-9s %4llu  %-42s %-20s %-4s  %s%s%s\n", run->at->kind,
			report__mode_name[run->source], (unsigned long long)run->seed, paper->study, run->paper.wanted,
			verdict, run->paper.found, *run->paper.missing ? "; MISSING: " : "",
			*run->paper.missing ? run->paper.missing + 2 : "");
	}
	if (demanded)
		fprintf(out, "%u case studies, %u missed\n", demanded, missed);
	return missed;
}
