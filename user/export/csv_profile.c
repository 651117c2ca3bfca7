// SPDX-License-Identifier: GPL-2.0-or-later
/* profile.csv: the time of each rank in computation and in each function, over the run. */
#include <errno.h>
#include <math.h>

#include "export/csv.h"
#include "report/record.h"

static void write_part(const struct run_report *report, const cJSON *record, const cJSON *part, struct csv_row *row)
{
	csv__text(row, csv__job_of(report, record));
	csv__number(row, record__number(record, KEY(rank_profile, rank), NAN));
	csv__number(row, record__number(record, KEY(rank_profile, pid), NAN));
	csv__text(row, record__text(record, KEY(rank_profile, on_host)));
	csv__number(row, record__number(record, KEY(rank_profile, seconds), NAN));
	csv__text(row, record__text(part, KEY(profile_part, class)));
	csv__text(row, record__text(part, KEY(profile_part, function)));
	csv__number(row, record__number(part, KEY(profile_part, calls), NAN));
	csv__number(row, record__number(part, KEY(profile_part, seconds), NAN));
	csv__number(row, record__number(part, KEY(profile_part, waiting_seconds), NAN));
	csv__number(row, record__number(part, KEY(profile_part, covered_seconds), NAN));
	csv__end(row);
}

int csv__profile(const struct run_report *report, FILE *out)
{
	const struct summary *summary = run_report__summary(report);
	struct csv_row row = {.out = out};
	const cJSON *part;

	for (size_t i = 0; i < summary->profile_count; i++)
		cJSON_ArrayForEach(part, record__item(summary->profiles[i], KEY(rank_profile, parts)))
		    write_part(report, summary->profiles[i], part, &row);
	return row.out_of_memory ? -ENOMEM : 0;
}
