// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/report_exports.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/exit_codes.h"
#include "cli/report_output.h"
#include "daemon/daemon.h"
#include "export/csv.h"
#include "export/svg.h"
#include "export/trace.h"

#define FOLDER_PERMISSIONS 0750

bool report_exports__any(const struct report_exports *exports)
{
	return exports->svg || exports->csv || exports->trace;
}

static int write_svg(const struct report_exports *exports, const struct run_report *report)
{
	char err[512];
	const struct view_map *map = svg__choose(report, exports->class, err, sizeof(err));
	FILE *file;

	if (!map) {
		fprintf(stderr, "vapro report: %s is not written: %s\n", exports->svg, err);
		return EXIT_FAILED;
	}
	file = report_output__open(exports->svg, SVG_BEGIN);
	return file ? report_output__close(file, exports->svg, svg__write(report, map, file)) : EXIT_FAILED;
}

static int write_table(const char *folder, const struct csv_table *table, const struct run_report *report)
{
	int code = EXIT_FAILED;
	char *path;
	FILE *file;

	if (asprintf(&path, "%s/%s", folder, table->name) < 0) {
		fprintf(stderr, "vapro report: out of memory\n");
		return EXIT_FAILED;
	}
	file = report_output__open(path, table->begin);
	if (file)
		code = report_output__close(file, path, csv__write(table, report, file));
	free(path);
	return code;
}

static int write_csv(const char *folder, const struct run_report *report)
{
	struct stat status;
	int code = EXIT_OK;

	if ((mkdir(folder, FOLDER_PERMISSIONS) && errno != EEXIST) || stat(folder, &status)) {
		fprintf(stderr, "vapro report: cannot make the folder %s: %s\n", folder, strerror(errno));
		return EXIT_FAILED;
	}
	if (!S_ISDIR(status.st_mode)) {
		fprintf(stderr, "vapro report: --csv writes into a folder, and %s is not one\n", folder);
		return EXIT_FAILED;
	}
	for (size_t i = 0; i < CSV_TABLES; i++)
		code |= write_table(folder, &csv_tables[i], report);
	return code ? EXIT_FAILED : EXIT_OK;
}

static int write_trace(const char *path, const struct run_report *report)
{
	FILE *file = report_output__open(path, TRACE_BEGIN);
	uint64_t left_out;
	int ret;

	if (!file)
		return EXIT_FAILED;
	ret = trace__write(report, VAPRO_VERSION, file, &left_out);
	if (left_out)
		fprintf(stderr, "vapro report: %s: %llu events are left out, more than a viewer can show\n", path,
			(unsigned long long)left_out);
	return report_output__close(file, path, ret);
}

int report_exports__write(const struct report_exports *exports, const struct run_report *report)
{
	int code = EXIT_OK;

	if (exports->svg)
		code |= write_svg(exports, report);
	if (exports->csv)
		code |= write_csv(exports->csv, report);
	if (exports->trace)
		code |= write_trace(exports->trace, report);
	return code ? EXIT_FAILED : EXIT_OK;
}
