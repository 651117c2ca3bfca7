// SPDX-License-Identifier: GPL-2.0-or-later
/* The table of noise components, each as its latest record has it. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "export/csv.h"

static void write_hosts(struct csv_row *row, const cJSON *noise)
{
	const cJSON *hosts = record__item(noise, KEY(noise, hosts)), *host;
	const char **names = calloc((size_t)cJSON_GetArraySize(hosts) + 1, sizeof(*names));
	size_t count = 0;

	row->out_of_memory |= !names;
	cJSON_ArrayForEach(host, hosts)
	{
		if (names && cJSON_GetStringValue(host))
			names[count++] = cJSON_GetStringValue(host);
	}
	csv__list(row, names, count);
	free(names);
}

static void write_component(const struct run_report *report, const cJSON *noise, struct csv_row *row)
{
	uint64_t slices = record__uint(noise, KEY(noise, n));
	double lost_s = record__number(noise, KEY(noise, lost_seconds), NAN);

	csv__text(row, csv__job_of(report, noise));
	csv__integer(row, (int64_t)record__uint(noise, KEY(noise, id)));
	csv__text(row, record__text(noise, KEY(noise, source)));
	csv__text(row, record__text(noise, KEY(noise, what)));
	csv__text(row, record__text(noise, KEY(noise, relation)));
	csv__number(row, record__number(noise, KEY(noise, pid), NAN));
	csv__integer(row, (int64_t)slices);
	csv__number(row, slices ? 1e6 * lost_s / (double)slices : NAN);
	csv__number(row, record__number(noise, KEY(noise, longest_us), NAN));
	csv__number(row, record__number(noise, KEY(noise, period_ms), NAN));
	csv__number(row, record__number(noise, KEY(noise, period_least_ms), NAN));
	csv__number(row, record__number(noise, KEY(noise, period_most_ms), NAN));
	csv__number(row, record__number(noise, KEY(noise, time_pct_of_ranks), NAN));
	csv__number(row, lost_s);
	csv__time_of(report, row, noise, KEY(noise, begin));
	csv__time_of(report, row, noise, KEY(noise, end));
	csv__text(row, record__text(noise, KEY(noise, ranks)));
	write_hosts(row, noise);
	csv__text(row, record__text(noise, KEY(noise, class)));
	csv__number(row, record__number(noise, KEY(noise, waited_seconds), NAN));
	csv__number(row, record__number(noise, KEY(noise, regularity), NAN));
	csv__text(row, record__text(noise, KEY(noise, together)));
	csv__number(row, record__number(noise, KEY(noise, second), NAN));
	csv__end(row);
}

int csv__noise(const struct run_report *report, FILE *out)
{
	struct csv_row row = {.out = out};

	for (size_t i = 0; i < report->noise.count; i++)
		write_component(report, report->noise.items[i], &row);
	return row.out_of_memory ? -ENOMEM : 0;
}
