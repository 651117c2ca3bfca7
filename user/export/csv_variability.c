// SPDX-License-Identifier: GPL-2.0-or-later
/* The table of how the time of equal work varied: a row for each workload. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "export/csv.h"
#include "report/record.h"

static void write_workload(const struct run_report *report, const cJSON *record, struct csv_row *row)
{
	const cJSON *temporal = record__item(record, KEY(variability, temporal));
	const cJSON *spatial = record__item(record, KEY(variability, spatial));
	const cJSON *rv = record__item(record, KEY(variability, rv));
	const cJSON *calls = record__item(record, KEY(variability, calls));
	const char *job = record__text(record, KEY(of_job, job));
	double uid = record__number(record, KEY(of_job, uid), NAN);
	char *state = summary__describe_item(record);

	row->out_of_memory |= !state;
	csv__text(row, csv__job(report, job ? job : "", uid >= 0 && uid < UINT32_MAX ? (uint32_t)uid + 1 : 0));
	csv__text(row, state);
	csv__text(row, record__text(record, KEY(state, class)));
	csv__text(row, record__text(record, KEY(variability, kind)));
	csv__text(row, record__text(record, KEY(variability, origin)));
	csv__text(row, record__text(record, KEY(variability, work)));
	csv__number(row, record__number(record, KEY(variability, seconds), NAN));
	csv__number(row, record__number(record, KEY(variability, ranks), NAN));
	csv__number(row, record__number(record, KEY(variability, batches), NAN));
	csv__number(row, record__number(record, KEY(variability, fragments_per_batch), NAN));
	csv__number(row, record__number(temporal, KEY(temporal, median_pct), NAN));
	csv__number(row, record__number(temporal, KEY(temporal, worst_pct), NAN));
	csv__number(row, record__number(temporal, KEY(temporal, worst_rank), NAN));
	csv__number(row, record__number(temporal, KEY(temporal, range_over_mean_pct), NAN));
	csv__number(row, record__number(spatial, KEY(spatial, spread_pct), NAN));
	csv__number(row, record__number(spatial, KEY(spatial, slowest_pct), NAN));
	csv__number(row, record__number(spatial, KEY(spatial, slowest_over_fastest_pct), NAN));
	csv__number(row, record__number(spatial, KEY(spatial, between_pct), NAN));
	csv__text(row, record__text(spatial, KEY(spatial, slow_ranks)));
	csv__number(row, record__number(rv, KEY(rv, median), NAN));
	csv__number(row, record__number(rv, KEY(rv, error), NAN));
	csv__number(row, record__number(record, KEY(variability, software_pct), NAN));
	csv__number(row, record__number(record, KEY(variability, frequency_pct), NAN));
	csv__number(row, record__number(record, KEY(variability, stalls_pct), NAN));
	csv__number(row, record__number(calls, KEY(io_calls, p50_us), NAN));
	csv__number(row, record__number(calls, KEY(io_calls, p95_us), NAN));
	csv__number(row, record__number(calls, KEY(io_calls, above_p50_seconds), NAN));
	csv__text(row, record__text(record, KEY(state, state_id)));
	csv__end(row);
	free(state);
}

int csv__variability(const struct run_report *report, FILE *out)
{
	const struct summary *summary = run_report__summary(report);
	struct csv_row row = {.out = out};

	for (size_t i = 0; i < summary->variability_count; i++)
		write_workload(report, summary->variability[i], &row);
	return row.out_of_memory ? -ENOMEM : 0;
}
