/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/shed_text.h"

#include <stdio.h>

void shed_text__write(const struct vapro_shed *shed, uint64_t cap, const struct job_result *worst, char *text,
		      size_t size)
{
	const struct {
		uint64_t count;
		const char *what;
	} steps[] = {
	    {shed->remembered, "bundles retained for queries dropped"},
	    {shed->merged, "bundles merged with others of their state"},
	    {shed->bins, "bins of the heat map's history forgotten"},
	    {shed->coarser, "times a state's workloads were distinguished more coarsely"},
	    {shed->bundles, "bundles dropped"},
	};
	size_t used =
	    (size_t)snprintf(text, size, "the analysis would hold more than %.1f MiB:", (double)cap / (1 << 20));

	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		if (steps[i].count && used < size)
			used +=
			    (size_t)snprintf(text + used, size - used, "%s %llu %s", text[used - 1] == ':' ? "" : ",",
					     (unsigned long long)steps[i].count, steps[i].what);
	}
	if (shed->bundles && used < size)
		used += (size_t)snprintf(text + used, size - used, " (%.3f s of %llu fragments are uncovered",
					 shed->seconds, (unsigned long long)shed->fragments);
	if (shed->bundles && worst && used < size)
		used += (size_t)snprintf(text + used, size - used, ", %llu of them of job %s",
					 (unsigned long long)worst->shed, worst->job);
	if (shed->bundles && used < size)
		used += (size_t)snprintf(text + used, size - used, ")");
	if (used < size)
		snprintf(text + used, size - used, "; raise --memory-cap");
}
