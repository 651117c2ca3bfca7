// SPDX-License-Identifier: GPL-2.0-or-later
/* The table of hangs: a row for each group of ranks that do the same. */
#include <errno.h>
#include <math.h>

#include "export/csv.h"
#include "report/record.h"

/* Writes where a group's ranks are: functions and lines, where those are known. */
static void write_call(struct csv_row *row, const cJSON *group)
{
	const char *source = record__text(group, KEY(state, source)), *labels = record__text(group, KEY(state, labels));

	csv__text(row, source ? source : record__text(group, KEY(state, to)));
	csv__text(row, labels);
}

static void write_group(const struct run_report *report, const cJSON *hang, const cJSON *group, struct csv_row *row)
{
	csv__text(row, csv__job_of(report, hang));
	csv__integer(row, (int64_t)record__uint(hang, KEY(hang, id)));
	csv__text(row, record__text(hang, KEY(hang, kind)));
	csv__text(row, record__text(hang, KEY(hang, outcome)));
	csv__flag(row, record__true(hang, KEY(hang, alarm)));
	csv__text(row, record__text(hang, KEY(hang, severity)));
	csv__time_of(report, row, hang, KEY(hang, begin));
	csv__time_of(report, row, hang, KEY(hang, end));
	csv__number(row, record__number(hang, KEY(hang, seconds), NAN));
	csv__text(row, record__text(group, KEY(hang_group, ranks)));
	csv__text(row, record__text(group, KEY(hang_group, condition)));
	csv__time_of(report, row, group, KEY(hang_group, since));
	write_call(row, group);
	csv__text(row, record__text(group, KEY(hang_group, waits_for)));
	csv__text(row, record__text(group, KEY(hang_group, did_not_enter)));
	csv__text(row, record__text(hang, KEY(hang, text)));
	csv__end(row);
}

int csv__hangs(const struct run_report *report, FILE *out)
{
	struct csv_row row = {.out = out};

	for (size_t i = 0; i < report->hangs.count; i++) {
		const cJSON *hang = report->hangs.items[i], *group;

		cJSON_ArrayForEach(group, record__item(hang, KEY(hang, groups))) write_group(report, hang, group, &row);
	}
	return row.out_of_memory ? -ENOMEM : 0;
}
